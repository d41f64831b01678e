#!/usr/bin/env bash
# Takes branches out of the twin, one at a time, and runs the twin's tests: a change that no test misses survives.
#
# The twin is pure and needs nothing of the crate but its properties, so it is laid out as a crate of its own, which builds
# in seconds instead of minutes. Survivors are laid beside tests/setup/mutants.accepted, where each has its reason; one
# more is exit code 1.
# usage: mutants.sh [FILE...]    names of files in src/twin; without one all of them (hours)
. "$(dirname "$0")/lib.sh"
version=27.1.0
tool=$build/cargo/bin/cargo-mutants
if ! [ -x "$tool" ] || [ "$("$tool" mutants --version)" != "cargo-mutants $version" ]; then
    say "cargo-mutants $version to build into .build/cargo"
    cargo install cargo-mutants --version "$version" --locked --root "$build/cargo" > "$build/mutants-install.log" 2>&1 \
        || die "cargo install cargo-mutants failed, see $build/mutants-install.log"
fi

crate=$build/mutants
rm -rf "$crate" && mkdir -p "$crate/src" "$crate/tests"
cp -r "$root"/src/twin "$root"/src/property* "$crate/src/"
cp -r "$root"/tests/twin_rules* "$root"/tests/twin_histories* "$crate/tests/"
cp "$root/Cargo.lock" "$crate/"
printf '%s\n' '//! The twin by itself.' 'pub mod property;' 'pub mod twin;' > "$crate/src/lib.rs"
cat > "$crate/Cargo.toml" <<'TOML'
[package]
name = "truetwin"
version = "0.1.0"
edition = "2024"
[dependencies]
thiserror = "2"
[dev-dependencies]
proptest = "1"
[profile.dev]
debug = false
[workspace]
TOML

files=()
for file in "$@"; do files+=(--file "src/twin/$file"); done
# 100 histories for each change instead of 2000; a change that makes a test run for ever is caught by the time limit.
cd "$crate"
PROPTEST_CASES=100 "$tool" mutants --in-place --baseline skip --timeout 60 --no-shuffle --colors never \
    --output "$crate" "${files[@]}" -- --quiet || true

# Without line and column, which move with every change.
bare() { sed -E 's/:[0-9]+:[0-9]+: /: /' | sort -u; }
accepted() { sed -E 's/ *#.*//; /^$/d' "$root/tests/setup/mutants.accepted" | sort -u; }
caught=$(wc -l < mutants.out/caught.txt) timed_out=$(wc -l < mutants.out/timeout.txt)
unviable=$(wc -l < mutants.out/unviable.txt) missed=$(wc -l < mutants.out/missed.txt)
printf '\n%s caught, %s hung, %s do not build, %s missed\n' "$caught" "$timed_out" "$unviable" "$missed"
new=$(comm -23 <(bare < mutants.out/missed.txt) <(accepted))
if [ -n "$new" ]; then
    printf 'missed, without a reason in tests/setup/mutants.accepted:\n%s\n' "$new"
    exit 1
fi
