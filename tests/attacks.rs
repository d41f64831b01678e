//! The hub as its attackers meet it: the built program as a process, attacked over real sockets by those who have no login, by a
//! device that turned hostile, by a service account, by whoever sits in the network, while other people's tool calls go on.
//!
//! `cargo test --test attacks -- --nocapture` prints the table: each attack, what the attacker is told, what came of it. A row
//! asserts both; after each group a tool call to another device still converges, and nothing forged was seen by anybody.
//!
//! The second half throws garbage at the running hub (`make fuzz-hub MINUTES=n SEED=n`; without either some seconds of it, with
//! a seed that is printed): no panic, no memory that stays, and each answer to other clients is true.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test that cannot go on has failed, and says what it did"
)]

#[path = "soak/chance.rs"]
#[allow(dead_code, reason = "the soak needs the rest")]
mod chance;
#[path = "door/support.rs"]
mod support;

#[path = "attacks/floods.rs"]
mod floods;
#[path = "attacks/fuzz.rs"]
mod fuzz;
#[path = "attacks/garbage.rs"]
mod garbage;
#[path = "attacks/middle.rs"]
mod middle;
#[path = "attacks/names.rs"]
mod names;
#[path = "attacks/replays.rs"]
mod replays;
#[path = "attacks/rig.rs"]
mod rig;
#[path = "attacks/slow.rs"]
mod slow;
#[path = "attacks/topics.rs"]
mod topics;

use rig::{Rig, Table};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_attack_of_the_table_gets_in_or_holds_others_up() {
    let mut rig = Rig::start().await;
    let mut table = Table::default();
    topics::by_a_device(&mut rig, &mut table).await;
    topics::by_an_account(&mut rig, &mut table).await;
    names::taken(&mut rig, &mut table).await;
    replays::of_commands(&mut rig, &mut table).await;
    slow::on_each_listener(&mut rig, &mut table).await;
    floods::without_login(&mut rig, &mut table).await;
    floods::of_wrong_passwords(&mut rig, &mut table).await;
    floods::from_one_device(&mut rig, &mut table).await;
    table.print();
    rig.end().await;
}
