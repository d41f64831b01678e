//! Access points: a fake official one and a fake relay, which speak the exact frames of the real ones, over pipes under
//! paused time (hours of it) and over sockets with a real hub.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![allow(clippy::wildcard_enum_match_arm, reason = "what a fake saw beside what a test looks for is of no account")]

#[path = "house/mod.rs"]
mod house;

#[path = "endpoints/bench.rs"]
mod bench;
#[path = "endpoints/hours.rs"]
mod hours;
#[path = "endpoints/official.rs"]
mod official;
#[path = "endpoints/official_rules.rs"]
mod official_rules;
#[path = "endpoints/relay.rs"]
mod relay;
#[path = "endpoints/relay_rules.rs"]
mod relay_rules;
#[path = "endpoints/sockets.rs"]
mod sockets;
#[path = "endpoints/voice.rs"]
mod voice;
#[path = "endpoints/wire.rs"]
mod wire;
