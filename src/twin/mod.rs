//! The pure state machine of one device.
pub mod words;
