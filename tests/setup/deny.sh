#!/usr/bin/env bash
# cargo-deny in .build/cargo, for `make lint` alone: it takes some minutes to build, once.
. "$(dirname "$0")/lib.sh"
version=0.20.2
if [ -x "$build/cargo/bin/cargo-deny" ] && [ "$("$build/cargo/bin/cargo-deny" --version)" = "cargo-deny $version" ]; then
    say "cargo-deny: up to date"; exit 0
fi
say "cargo-deny $version to build into .build/cargo"
cargo install cargo-deny --version "$version" --locked --root "$build/cargo" > "$build/deny-install.log" 2>&1 \
    || die "cargo install cargo-deny failed, see $build/deny-install.log"
