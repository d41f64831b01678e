//! `make faults`: every row of the fault table (semantics, section 8) through real MCP and real MQTT. What was answered is
//! laid beside what the table says and what the device really did; one difference fails.
//!
//! The hub is whole: door, bus, actors, MCP over HTTP. The devices are the device core with one thing broken (`truetwin
//! sim`). All rows run at the same time, each on a device and with a caller of its own.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test that fails here says where; the table is for people"
)]

#[path = "faults/cases.rs"]
mod cases;
mod house;
#[path = "faults/spec.rs"]
mod spec;
#[path = "faults/table.rs"]
mod table;

use std::{rc::Rc, time::Instant};

use serde_json::{Value as Json, json};
use tokio::task::{LocalSet, spawn_local};
use truetwin::{sim::Fault, twin::words::Presence};

use self::{
    cases::{CASES, Case, Then},
    table::Row,
};
use crate::house::{Caller, House, Member, break_it, until};

/// A caller is answered after 4 s at the latest, so that "beyond the caller" is soon.
const CONFIG: &str = include_str!("faults/house.toml");

#[tokio::test]
async fn s8_2_every_row_of_the_fault_table_is_told_as_it_was() {
    let rows = spec::rows();
    let due = |case: &&Case| rows.iter().any(|row| row.fault == case.row && row.due);
    let cases: Vec<&Case> = CASES.iter().filter(due).collect();
    let members: Vec<Member> = cases.iter().map(|case| case.member()).collect();
    let house = Rc::new(House::build(CONFIG, &members).await);
    let mut played = Vec::new();
    let all = async {
        let playing: Vec<_> = cases.iter().map(|case| spawn_local(play(house.clone(), case))).collect();
        for row in playing {
            played.push(row.await.unwrap());
        }
    };
    LocalSet::new().run_until(all).await;
    table::print(&played);
    let wrong = played.iter().filter(|row| !row.differs.is_empty()).count();
    println!("{} rows, {wrong} differences", played.len());
    assert_eq!(wrong, 0, "see the table above");
}

#[test]
fn s8_2_each_row_of_the_document_is_played_and_expects_what_stands_there() {
    for row in spec::rows() {
        let played: Vec<&Case> = CASES.iter().filter(|case| case.row == row.fault).collect();
        assert!(!played.is_empty(), "nobody plays the row {:?}", row.fault);
        for case in played {
            assert!(row.allows(case), "{}: {:?} is not what the row says: {row:?}", case.device, case.outcome);
        }
    }
    for case in &CASES {
        assert!(spec::rows().iter().any(|row| row.fault == case.row), "{}: no row {:?}", case.device, case.row);
    }
}

/// One row, from the fault to what became known last.
async fn play(house: Rc<House>, case: &'static Case) -> Row {
    let caller = house.caller().await;
    let (before, _) = house.truth(case.device);
    break_it(&house, case.device, case.fault);
    if case.fault == Fault::Offline {
        house.presence(case.device, Presence::Offline).await;
    }
    let began = Instant::now();
    let answer = caller.switch(case.device, case.to).await;
    let took = began.elapsed();
    let mut differs = case.differs(&answer);
    let later = then(&house, &caller, case, &answer).await;
    if let Some((what, later)) = &later {
        differs.extend(case.differs_later(what, later));
    }
    let (after, on) = house.truth(case.device);
    let moves = after - before;
    if !case.moves.contains(&moves) {
        differs.push(format!("it moved {moves} times, not {:?}", case.moves));
    }
    if case.on.is_some_and(|wanted| wanted != on) {
        differs.push(format!("it is {} at the end", if on { "on" } else { "off" }));
    }
    caller.close().await;
    Row { case, answer, took, later: later.map(|(what, _)| what), moves, on, differs }
}

/// What happens after the answer, and what is told of the operation then.
async fn then(house: &House, caller: &Caller, case: &Case, answer: &Json) -> Option<(&'static str, Json)> {
    let operation = &answer["operation"];
    let heal = || break_it(house, case.device, Fault::None);
    match case.then {
        Then::Nothing => None,
        // Were a late command carried out, it would be now: it has answered a question that came behind it.
        Then::Still => {
            heal();
            until("it answers again", async || {
                let state = caller.call("get_device_state", json!({"device": case.device})).await;
                (state["trust"] == "now").then_some(())
            })
            .await;
            Some(("unchanged", caller.check(operation).await))
        }
        Then::LateSuccess | Then::LateWhenAsked => {
            if case.fault != Fault::Late {
                heal();
            }
            if case.then == Then::LateWhenAsked {
                caller.call("get_device_state", json!({"device": case.device})).await;
            }
            let late = caller.check_until(operation, |told| told["late_success"] == true).await;
            Some(("late_success", late))
        }
        Then::Reverted => {
            let back = caller.check_until(operation, |told| told["reverted"] == true).await;
            Some(("reverted", back))
        }
        Then::Converged => {
            let done = caller.check_until(operation, |told| told["outcome"] != "working").await;
            Some(("converged", done))
        }
    }
}
