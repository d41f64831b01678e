#!/usr/bin/env bash
# Fuzzing guided by coverage: each target in turn for the same time, from the corpus in the repository.
#
# libFuzzer with the pinned toolchain: instrumented like `cargo fuzz --sanitizer none`, without the tool, and without a
# nightly compiler. What is found stays in .build/fuzz; a crash ends it with the command that has it again.
# usage: fuzz.sh MINUTES [TARGET...]    targets: codec differences session
. "$(dirname "$0")/lib.sh"
minutes=${1:-3}
shift || true
targets=("$@")
[ ${#targets[@]} -gt 0 ] || targets=(codec differences session)
command -v g++ > /dev/null || "$root/tests/setup/debian.sh" fuzz || true
command -v g++ > /dev/null \
    || die "fuzzing guided by coverage needs g++ for libFuzzer, which could not be installed; make test fuzzes without it"

host=$(rustc -vV | sed -n 's/^host: //p')
flags="-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 -Cllvm-args=-sanitizer-coverage-inline-8bit-counters"
flags+=" -Cllvm-args=-sanitizer-coverage-pc-table -Cllvm-args=-sanitizer-coverage-trace-compares --cfg=fuzzing"
flags+=" -Cdebug-assertions -Ccodegen-units=1"
say "the targets to build into .build/fuzz, instrumented"
RUSTFLAGS=$flags cargo build --locked --package truetwin-fuzz --features guided --bins --profile ci \
    --target "$host" --target-dir "$build/fuzz/target" || die "the instrumented targets do not build"

seconds=$((minutes * 60 / ${#targets[@]}))
for target in "${targets[@]}"; do
    kept=$root/tests/fuzz/corpus/$target
    [ -d "$kept" ] || kept=$root/tests/fuzz/corpus/codec # the differences' inputs are the codec's
    mkdir -p "$build/fuzz/$target"
    say "$target for $seconds s"
    # One process. What the target itself prints is thrown away (mqttbytes 0.6 prints); a find is run again with its words.
    "$build/fuzz/target/$host/ci/fuzz_$target" "$build/fuzz/$target" "$kept" -max_total_time="$seconds" -max_len=600 \
        -timeout=60 -rss_limit_mb=4096 -print_final_stats=1 -close_fd_mask=3 \
        -exact_artifact_path="$build/fuzz/$target.found" > "$build/fuzz/$target.log" 2>&1 || {
        "$build/fuzz/target/$host/ci/fuzz_$target" "$build/fuzz/$target.found" 2>&1 | grep -v mqttbytes- | tail -n 30 >&2
        die "$target found something. Again: $build/fuzz/target/$host/ci/fuzz_$target $build/fuzz/$target.found"
    }
    grep -E "^(stat::number_of_executed_units|stat::new_units_added|Done)" "$build/fuzz/$target.log" || tail -n 3 "$build/fuzz/$target.log"
done
