//! A board's side: reads one command, writes one event. No allocator, no recursion, nothing that grows.

mod read;
mod spec;
mod write;

pub use read::{Args, Command, Head, ParseError, ParseErrorKind, parse};
pub use spec::{ActionSpec, Description, Failsafe, PropertySpec};
pub use write::{
    ActionReport, DescHash, DeviceState, Envelope, Event, Hello, NoRoom, Reading, desc_hash, write, write_will,
};
