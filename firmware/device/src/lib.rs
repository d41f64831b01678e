//! The device core of truetwin: obeys, drives, reads back, reports. `no_std`, no allocator.
//!
//! | module | what it does |
//! |---|---|
//! | [`board`] | the trait that a body implements; a relay over `embedded-hal` pins |
//! | [`machine`] | the rules, as a state machine: bytes and `now` in, movements and bytes out; no socket, no clock |
//! | [`link`] | one MQTT connection over any `embedded-io-async` byte stream; drives the machine |
//! | [`store`] | the few bytes that survive a reboot, for actions that must not run twice |
//!
//! The rules are those of [`truetwin_wire`] (*What a device does, by level*); this core is **level 3**:
//!
//! - it obeys only commands of the session of the last welcome, never retained ones, never late ones, and reads all that is
//!   buffered before it begins to drive;
//! - it says `completed` only of what it has read back, and answers a repeated `op` without moving;
//! - it begins an operation at most once in a run, and one of a non-repeatable action at most once at all, as far as the
//!   body has a [`store`];
//! - it keeps receiving while something moves: a newer set takes the older one's place, a withdrawal finishes or stops it,
//!   properties move side by side unless they exclude each other;
//! - the end of an operation is told until the broker has acknowledged it, also over a reconnect;
//! - outputs go to their safe level when the hub is gone, without it.
//!
//! Bounds: eight properties, four actions, eight things that move, four commands that wait, eight operations remembered,
//! 4 KiB of events. Not there yet: paging of a description (`describe`), the marks (`get_log`).
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

pub use board::{Board, Part, Relay, Relays};
pub use machine::{Identity, Machine, Start};
pub use truetwin_wire as wire;
