//! The machine under a clock that the tests move, each rule a test.
#![allow(clippy::unwrap_used, reason = "a test that fails here says where")]

mod actions;
mod alone;
mod behaviour;
mod histories;
mod motion;
mod outbox;
mod rig;
mod rules;
mod sessions;
mod values;
