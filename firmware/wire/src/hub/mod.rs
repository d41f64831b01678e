//! The hub's side: reads one event, writes one command. Owned types.
//!
//! A device is written by somebody at a kitchen table, so what is wrong with an event is said in full: which event,
//! where in it, what is allowed there. Such a [`DecodeError`] goes back to the device as an `error` (*Greeting* 3).

mod command;
mod event;
mod hello;
mod object;
mod tree;

use std::fmt;

pub use command::{Command, encode};
pub use event::{ActionReport, DeviceState, Event, Incoming, Seen, Will, decode_event, decode_will};
pub use hello::{ActionWire, DescriptionPage, Failsafe, Hello, PropertyWire};

use crate::words::ErrorWord;

/// What was wrong with an event, in the words of the protocol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecodeError {
    /// The `seq` of that event, if it could be read.
    pub of_seq: Option<u32>,
    /// What was wrong.
    pub reason: ErrorWord,
    /// Where: `status.relay`, `properties[2].step`. Shortened to 64 characters where a device invents long keys.
    pub path: Option<String>,
    /// What is allowed there, as a list or a noun.
    pub allowed: Option<String>,
}

impl DecodeError {
    /// An error of an event whose `seq` is known, for what only the hub can see (`wrong_session`, `unknown_property`).
    pub fn new(of_seq: Option<u32>, reason: ErrorWord, path: Option<&str>, allowed: Option<&str>) -> Self {
        Self { of_seq, reason, path: path.map(shown), allowed: allowed.map(shown) }
    }

    /// The `error` command that tells the device.
    pub fn encode(&self) -> Vec<u8> {
        encode(&Command::Error {
            of_seq: self.of_seq,
            reason: self.reason,
            path: self.path.clone(),
            allowed: self.allowed.clone(),
        })
    }
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.of_seq {
            Some(seq) => write!(f, "event {seq}: {}", self.reason)?,
            None => write!(f, "event: {}", self.reason)?,
        }
        if let Some(path) = &self.path {
            write!(f, " at {path}")?;
        }
        self.allowed.as_ref().map_or(Ok(()), |allowed| write!(f, "; allowed: {allowed}"))
    }
}

impl std::error::Error for DecodeError {}

/// How much of a path or of what is allowed is repeated, characters: with both the longest `error` fits into a command.
const SHOWN_CHARS_MAX: usize = 64;

/// A device's own text, fit to be shown: shortened, and without anything that would need an escape.
fn shown(text: &str) -> String {
    let plain = |c: char| if c.is_control() || c == '"' || c == '\\' { '?' } else { c };
    text.chars().take(SHOWN_CHARS_MAX).map(plain).collect()
}
