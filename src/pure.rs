//! The pure part of the hub, as a crate of its own: the same sources, without actors, sockets and clocks. The root of the
//! simulator's crate (`tests/proof/Cargo.toml`), which builds it with planted mistakes to choose from and in seconds; the hub's
//! own root is `lib.rs`.

pub mod dialect;
pub mod property;
pub mod recording;
pub mod twin;

#[path = "fleet/policy.rs"]
pub mod policy;
