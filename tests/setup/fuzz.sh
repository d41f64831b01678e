#!/usr/bin/env bash
# Fuzzing guided by coverage: each target in turn for the same time, from the corpus in the repository.
#
# libFuzzer with the pinned toolchain: instrumented like `cargo fuzz --sanitizer none`, without the tool and without a
# nightly compiler. New inputs stay in .build/fuzz; a find ends it, with the command that has it again.
# usage: fuzz.sh MINUTES [TARGET...]    targets: codec differences session
. "$(dirname "$0")/lib.sh"
minutes=${1:-3}
shift || true
targets=("$@")
[ ${#targets[@]} -gt 0 ] || targets=(codec differences session)
command -v g++ > /dev/null || "$root/tests/setup/debian.sh" fuzz || true
command -v g++ > /dev/null \
    || die "fuzzing guided by coverage needs g++ for libFuzzer, which could not be installed; make test fuzzes without it"

# Only our own crates are instrumented, by a wrapper around the compiler that does not touch what they depend on: that is
# shared with the tests' build.
wrapper=$build/fuzz/rustc
mkdir -p "$build/fuzz"
cat > "$wrapper" << 'SH'
#!/bin/sh
exec "$@" -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
    -Cllvm-args=-sanitizer-coverage-pc-table -Cllvm-args=-sanitizer-coverage-trace-compares -Ccodegen-units=1
SH
chmod +x "$wrapper"
profile=${PROFILE:-ci}
say "the targets to build, instrumented"
RUSTC_WORKSPACE_WRAPPER=$wrapper cargo build --locked --package truetwin-fuzz --features guided --bins --profile "$profile" \
    || die "the instrumented targets do not build"
bins=$root/target/$profile
[ "$profile" != dev ] || bins=$root/target/debug

seconds=$((minutes * 60 / ${#targets[@]}))
for target in "${targets[@]}"; do
    kept=$root/tests/fuzz/corpus/$target
    [ -d "$kept" ] || kept=$root/tests/fuzz/corpus/codec # the differences' inputs are the codec's
    mkdir -p "$build/fuzz/$target"
    say "$target for $seconds s"
    # One process. What the target itself prints is thrown away (mqttbytes 0.6 prints); a find is run again with its words.
    "$bins/fuzz_$target" "$build/fuzz/$target" "$kept" -max_total_time="$seconds" -max_len=600 \
        -timeout=60 -rss_limit_mb=4096 -print_final_stats=1 -close_fd_mask=3 \
        -exact_artifact_path="$build/fuzz/$target.found" > "$build/fuzz/$target.log" 2>&1 || {
        "$bins/fuzz_$target" "$build/fuzz/$target.found" 2>&1 | grep -v mqttbytes- | tail -n 30 >&2
        die "$target found something. Again: $bins/fuzz_$target $build/fuzz/$target.found"
    }
    grep -E "^(stat::number_of_executed_units|stat::new_units_added|Done)" "$build/fuzz/$target.log" || tail -n 3 "$build/fuzz/$target.log"
done
