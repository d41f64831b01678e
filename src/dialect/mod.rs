//! Between bytes and twin inputs: one file a dialect. No clock, no socket, no state.
//!
//! There is one dialect yet, our own ([`native`]).

pub mod native;
