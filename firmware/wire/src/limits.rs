//! The bounds of the protocol, and what happens at each: a named error, never a truncation (semantics 2.10).

/// The version of the protocol that this crate speaks (`proto` in the hello).
pub const PROTO: u32 = 1;

/// Longest command, bytes. A board reads one command into a buffer of this size; a longer one is `too_long` there.
pub const COMMAND_BYTES_MAX: usize = 512;

/// Longest event, bytes (semantics 2.10). A longer one is answered with the error `too_long`.
pub const EVENT_BYTES_MAX: usize = 2048;

/// How deep objects and lists may nest, the message itself counted (semantics 2.10): a hello needs exactly four for the
/// words of an enum. Deeper is `too_deep`; a board must never recurse as far as a message tells it to.
pub const DEPTH_MAX: usize = 4;

/// Most properties of a device (semantics 2.10), and so most entries of `status`, `evidence`, `state` and `seen`.
pub const PROPERTIES_MAX: usize = 64;

/// Most actions of a device: as many as properties.
pub const ACTIONS_MAX: usize = 64;

/// Longest name of a device, property or action and longest word of an enum, bytes of UTF-8.
pub const NAME_BYTES_MAX: usize = 32;

/// Longest display name that a device proposes, characters (semantics 2.9).
pub const LABEL_CHARS_MAX: usize = 32;

/// Longest `op`, `session`, `boot` and `hub`, bytes of printable ASCII.
pub const ID_BYTES_MAX: usize = 16;

/// Longest text value, bytes of UTF-8.
pub const TEXT_BYTES_MAX: usize = 128;

/// Most significant digits of a number; a reader rounds to them, so that both ends compare the same number.
pub const NUMBER_DIGITS: u32 = 6;

/// Largest magnitude of a number. What is larger is `out_of_range`; what is smaller than its inverse reads as 0.
/// Between them the rounding to six digits is exact (see [`crate::scalar::six_digits`]).
pub const NUMBER_MAX: f64 = 1e15;

/// Most arguments of an action: with texts of any length more would not fit into one command anyway.
pub const ARGS_MAX: usize = 8;

/// Longest `args` of a `run`, bytes of JSON as they stand in the command: a board keeps them while the action waits. Longer
/// ones are `rejected`, reason `malformed`.
pub const ARGS_BYTES_MAX: usize = 192;

/// Whether a text may name a device: 1 to 32 of `a-z 0-9 _ -`. It stands in a topic, so nothing else may.
pub fn is_device_name(text: &str) -> bool {
    (1..=NAME_BYTES_MAX).contains(&text.len())
        && text.bytes().all(|b| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-'))
}

/// Whether a text may name a property or an action: 1 to 32 bytes of UTF-8 without control characters, `"` and `\`, so
/// that no board ever has to unescape a name.
pub fn is_name(text: &str) -> bool {
    (1..=NAME_BYTES_MAX).contains(&text.len()) && text.chars().all(|c| !c.is_control() && c != '"' && c != '\\')
}

/// Whether a text may be an `op`, `session`, `boot` or `hub`: 1 to 16 of printable ASCII without `"` and `\`.
pub fn is_id(text: &str) -> bool {
    (1..=ID_BYTES_MAX).contains(&text.len())
        && text.bytes().all(|b| matches!(b, b'!'..=b'~') && b != b'"' && b != b'\\')
}
