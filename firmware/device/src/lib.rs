//! The device core of truetwin: obeys, drives, reads back, reports. `no_std`, no allocator.
//!
//! | module | what it does |
//! |---|---|
//! | [`board`] | the trait that a body implements; a relay over `embedded-hal` pins |
//! | [`machine`] | the rules, as a state machine: bytes and `now` in, movements and bytes out; no socket, no clock |
//! | [`link`] | one MQTT connection over any `embedded-io-async` byte stream; drives the machine |
//! | [`store`] | what survives a reboot: designed, not used yet |
//!
//! The rules are those of [`truetwin_wire`] (*What a device does, by level*); this core is **level 2**:
//!
//! - it obeys only commands of the session of the last welcome, never retained ones, never late ones, and reads all that is
//!   buffered before it begins to drive;
//! - it says `completed` only of what it has read back, and answers a repeated `op` without moving;
//! - it begins an operation at most once in a run.
//!
//! Not there yet, and so not promised (level 3, and parts marked *later* in the protocol): pre-emption by a newer set of the
//! same property, stopping what has begun, several movements at a time (sets wait in a queue of four, further ones are
//! `busy`), an outbox that outlives a reconnect, fail-safe levels while the hub is gone, actions (`run` is `unsupported`) and
//! their log of intents, paging of a description, `get_log`.
#![cfg_attr(not(test), no_std)]

pub mod board;
pub mod link;
pub mod machine;
mod outbox;
mod ring;
pub mod store;
#[cfg(test)]
mod tests;
mod value;

pub use board::{Board, Relay, Relays};
pub use machine::{Identity, Machine, Start};
pub use truetwin_wire as wire;
