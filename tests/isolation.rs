//! What a caller may not see does not exist for it: random homes, random policies, random requests.
//!
//! | part | how |
//! |---|---|
//! | `pure` | nothing that is said or understood depends on what is unseen: it is the same in a home without it |
//! | `live` | on a real hub with devices: no answer names what is unseen, and nothing moves that may not be moved |
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "house/mod.rs"]
mod house;
#[path = "isolation/live.rs"]
mod live;
#[path = "isolation/pure.rs"]
mod pure;
