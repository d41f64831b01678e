//! The door's codec and sessions under random packets.
//!
//! | file | what it is |
//! |---|---|
//! | [`codec`] | a target: whatever the bytes are, the codec keeps its promises |
//! | [`differences`] | a target: it says of a packet what other people's codecs say, but where [`decided`] says why not |
//! | [`session`] | a target: whatever a client sends, a real broker answers each packet once, in order, or ends it with a code |
//! | [`packets`] | packets of clients, legal and nearly so, from a seed or from bytes |
//! | [`facts`], [`oracles`] | what a packet says, in one form for ours and for each of theirs |
//!
//! `cargo test` replays the corpus and runs each target from printed seeds; `make fuzz` runs them guided by coverage.
//! SEED=n and RUNS=n in the environment choose another run.
#![allow(clippy::unwrap_used)]

pub mod codec;
pub mod corpus;
pub mod decided;
pub mod differences;
pub mod facts;
pub mod oracles;
pub mod packets;
pub mod random;
pub mod session;
