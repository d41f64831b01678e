#![doc = include_str!("../protocol.md")]
//!
//! # This crate
//!
//! | module | for whom | what it does |
//! |---|---|---|
//! | [`limits`], [`topics`], [`words`], [`scalar`] | both | bounds, topics, closed sets of words, values |
//! | [`device`] | a board; no allocator | reads one command from a byte slice, writes one event into a byte slice |
//! | `hub` (feature `std`) | the hub | reads one event with the path of each mistake, writes one command |
//!
//! It knows nothing of MQTT, time, actuators or twins: bytes in, types out, and back. The files in `vectors/` say the
//! same in a form that any language can read; every implementation is held to them.
#![cfg_attr(not(any(feature = "std", test)), no_std)]

pub mod device;
mod flat;
#[cfg(feature = "std")]
pub mod hub;
pub mod limits;
pub mod scalar;
pub mod topics;
pub mod words;

pub use scalar::{Scalar, Text};
