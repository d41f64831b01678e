//! The door, with real sockets: who is let in, what is told to the hub, what is acknowledged and when.
//! What rumqttd's own listener breaks at is in `door_breakages.rs`.
#![allow(missing_docs, clippy::unwrap_used, clippy::wildcard_enum_match_arm, clippy::print_stdout)]

#[path = "door/support.rs"]
mod support;

#[path = "soak/chance.rs"]
#[allow(dead_code, reason = "the soak needs the rest")]
mod chance;
#[path = "attacks/garbage.rs"]
#[allow(dead_code, reason = "the attacks on the running hub need the rest")]
mod garbage;

#[path = "door/accounts.rs"]
mod accounts;
#[path = "door/accounts_random.rs"]
mod accounts_random;
#[path = "door/anything.rs"]
mod anything;
#[path = "door/bus.rs"]
mod bus;
#[path = "door/clients.rs"]
mod clients;
#[path = "door/commands.rs"]
mod commands;
#[path = "door/deaths.rs"]
mod deaths;
#[path = "door/ends.rs"]
mod ends;
#[path = "door/floods.rs"]
mod floods;
#[path = "door/held_back.rs"]
mod held_back;
#[path = "door/kept.rs"]
mod kept;
#[path = "door/limits.rs"]
mod limits;
#[path = "door/logins.rs"]
mod logins;
#[path = "door/reports.rs"]
mod reports;
#[path = "door/rights.rs"]
mod rights;
#[path = "door/tls.rs"]
mod tls;
