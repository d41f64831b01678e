#!/usr/bin/env bash
# Takes branches out of the twin, one at a time, and runs the twin's tests: a change that no test misses survives.
#
# The twin is pure and needs nothing of the crate but its properties, so it is laid out as a crate of its own, which builds
# in seconds instead of minutes. Survivors are compared with tests/setup/mutants.accepted, where each has its reason.
# usage: mutants.sh [FILE...]    files of src/twin; without one all of them (about an hour on two cores)
. "$(dirname "$0")/lib.sh"
version=27.1.0
tool="$build/cargo/bin/cargo-mutants"
if ! [ -x "$tool" ] || [ "$("$tool" mutants --version)" != "cargo-mutants $version" ]; then
    say "cargo-mutants $version to build into .build/cargo"
    cargo install cargo-mutants --version "$version" --locked --root "$build/cargo" > "$build/mutants-install.log" 2>&1 \
        || die "cargo install cargo-mutants failed, see $build/mutants-install.log"
fi
