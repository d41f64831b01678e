//! A session with a real broker, guided by coverage.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    truetwin_fuzz::session::check(&mut truetwin_fuzz::random::Source::Bytes(input));
});
