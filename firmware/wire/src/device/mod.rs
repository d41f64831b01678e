//! A board's side: reads one command, writes one event. No allocator, no recursion, nothing that grows.

mod read;
mod write;

pub use read::{Args, Command, Head, ParseError, ParseErrorKind, parse};
pub use write::{
    ActionReport, ActionSpec, DescHash, Description, DeviceState, Envelope, Event, Failsafe, Hello, NoRoom,
    PropertySpec, Reading, desc_hash, write, write_will,
};
