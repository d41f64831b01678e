//! Randomness for ids and names: the operating system's, so that ids are unique for ever and cannot be guessed.

use std::sync::Arc;

/// `bytes` random bytes as lower-case hex digits: 6 bytes make an operation's id of 12 digits, 4 a session's name of 8.
///
/// # Panics
/// If the operating system has no randomness to give; nothing here can go on without it.
pub fn id(bytes: usize) -> Arc<str> {
    let mut buffer = [0_u8; 16];
    let taken = &mut buffer[..bytes.min(16)];
    getrandom::fill(taken).expect("the operating system provides randomness");
    let digit = |four: u8| char::from(b"0123456789abcdef"[usize::from(four & 0x0f)]);
    let text: String = taken.iter().flat_map(|byte| [digit(byte >> 4), digit(*byte)]).collect();
    text.into()
}

/// A number between 0 and 1 (exclusive), for chance in waits.
///
/// # Panics
/// As [`id`].
pub fn fraction() -> f64 {
    let mut bytes = [0_u8; 4];
    getrandom::fill(&mut bytes).expect("the operating system provides randomness");
    f64::from(u32::from_le_bytes(bytes)) / (f64::from(u32::MAX) + 1.0)
}
