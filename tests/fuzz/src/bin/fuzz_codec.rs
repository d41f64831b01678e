//! The codec, guided by coverage.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    if let Some((version, bytes)) = truetwin_fuzz::codec::split(input) {
        truetwin_fuzz::codec::check(bytes, version);
    }
});
