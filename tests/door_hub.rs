//! The door with a whole hub behind it: what callers hear when the bus dies under their calls, and when a device does not read.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test that fails here says where")]

mod house;
#[path = "door/support.rs"]
mod support;

use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicBool, AtomicU32, Ordering},
};

use house::{House, Member, until};
use serde_json::{Value as Json, json};
use support::{Client, Login};
use truetwin::{broker::NO_NOTICE, sim::Kind, twin::words::Presence};

const LAMPS: [&str; 12] = ["l0", "l1", "l2", "l3", "l4", "l5", "l6", "l7", "l8", "l9", "la", "lb"];

/// Every fifth router hangs, the others die.
const BLOWS: u64 = 10;

fn word<'a>(answer: &'a Json, field: &str) -> &'a str {
    answer[field].as_str().unwrap_or("-")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s5_5_calls_while_the_bus_dies_and_hangs_end_honestly_and_no_device_is_called_offline() {
    let members = LAMPS.map(|lamp| Member::new(lamp, Kind::Socket));
    let house = House::build("", &members).await;
    let broker = house.hub().parts().broker.clone();
    let accepted = broker.counters().accepted;
    let (over, calls) = (AtomicBool::new(false), AtomicU32::new(0));
    let (over, calls, house) = (&over, &calls, &house);
    let mut heard: BTreeMap<String, u32> = BTreeMap::new();
    let callers = LAMPS.map(|lamp| async move {
        let ann = house.caller().await;
        let (mut to, mut heard) = (true, Vec::new());
        while !over.load(Ordering::Relaxed) {
            let before = house.truth(lamp);
            let answer = ann.switch(lamp, if to { "on" } else { "off" }).await;
            calls.fetch_add(1, Ordering::Relaxed);
            let after = house.truth(lamp);
            if answer["success"] == true {
                assert_eq!(after.1, to, "{lamp} is as it was said: {answer}");
                to = !to;
            }
            match word(&answer, "outcome") {
                "offline" => panic!("{lamp} was called offline for the bus: {answer}"),
                // Nothing was sent, is what this says.
                "broker_down" => assert_eq!(after, before, "{lamp}: {answer}"),
                _ => {}
            }
            heard.push(format!("{} {} {}", word(&answer, "outcome"), word(&answer, "stage"), word(&answer, "reason")));
        }
        heard
    });
    let blows = async {
        for blow in 1..=BLOWS {
            let until_calls = calls.load(Ordering::Relaxed) + 6;
            until("calls go on", async || (calls.load(Ordering::Relaxed) >= until_calls).then_some(())).await;
            let hang = if blow % 5 == 0 { broker.hang_bus() } else { None };
            if hang.is_none() {
                broker.break_bus();
            }
            until("the bus is rebuilt", async || (broker.counters().bus_rebuilds >= blow && broker.up()).then_some(()))
                .await;
        }
        over.store(true, Ordering::Relaxed);
    };
    let (answers, ()) = tokio::join!(futures_util::future::join_all(callers), blows);
    for answer in answers.into_iter().flatten() {
        *heard.entry(answer).or_default() += 1;
    }
    println!("{heard:#?}");
    let ann = house.caller().await;
    for lamp in LAMPS {
        let to = if house.truth(lamp).1 { "off" } else { "on" };
        let answer = ann.switch(lamp, to).await;
        assert_eq!(word(&answer, "outcome"), "converged", "{lamp} afterwards: {answer}");
        assert_eq!(house.hub().parts().fleet.card(&house::id(lamp)).unwrap().presence, Presence::Online);
    }
    let counters = broker.counters();
    assert_eq!((counters.accepted, counters.bus_rebuilds), (accepted, BLOWS), "no connection noticed");
    assert_eq!(counters.reports_refused, 0, "nothing was lost");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_to_a_device_whose_socket_is_full_ends_at_once_and_says_that_nothing_was_sent() {
    let house = House::build("", &[Member::new("lamp", Kind::Socket)]).await;
    let password = house.introduce("deaf").await;
    let mut deaf = Client::raw(house.hub().mqtt_addr(), false).await;
    deaf.name = "deaf".to_owned();
    assert_eq!(deaf.login(&Login::of("deaf").password(&password).packet()).await, Some(0));
    assert_eq!(deaf.subscribe("truetwin/deaf/command").await, Some(0));
    let hello = json!({"event": "hello", "boot": "b1", "seq": 1, "up_ms": 1, "proto": 1, "level": 2, "fw": "1",
        "model": "test", "desc": "d1", "actions": [], "state": {"relay": false}, "evidence": {"relay": "pin"},
        "properties": [{"name": "relay", "role": "socket", "kind": "bool", "feedback": "pin", "stable_ms": 0}],
        "cause": "boot"});
    deaf.report(hello.to_string().as_bytes()).await;
    assert!(deaf.command().await.is_some(), "the welcome");
    house.presence("deaf", Presence::Online).await;
    // From here on it reads nothing. What is sent fills all buffers between, until the door loses even the smallest.
    let broker = &house.hub().parts().broker;
    let mut lost_in_a_row = 0;
    while lost_in_a_row < 20 {
        let before = broker.counters();
        let sizes = [4000; 16].into_iter().chain([100]);
        for bytes in sizes {
            broker.send("deaf", vec![b'x'; bytes].into(), NO_NOTICE).unwrap();
        }
        until("they are out of the bus", async || (broker.counters().bus_waiting == 0).then_some(())).await;
        let lost = broker.counters().commands_lost - before.commands_lost;
        lost_in_a_row = if lost == 17 { lost_in_a_row + 1 } else { 0 };
    }
    let lost = broker.counters().commands_lost;
    let ann = house.caller().await;
    let answer = ann.switch("deaf", "on").await;
    println!("{answer}");
    // Whatever waits for a deadline is `timed_out`.
    assert_eq!((word(&answer, "outcome"), word(&answer, "result")), ("offline", "failed"), "{answer}");
    assert!(broker.counters().commands_lost > lost, "the door said so");
    assert_eq!(word(&ann.switch("lamp", "on").await, "outcome"), "converged", "nobody else waits for it");
    // A device that is away is the same, and so is one that was never there.
    drop(deaf);
    house.presence("deaf", Presence::Offline).await;
    house.introduce("never").await;
    for absent in ["deaf", "never"] {
        let answer = ann.switch(absent, "on").await;
        println!("{answer}");
        assert_eq!(word(&answer, "result"), "failed", "{answer}");
        assert_ne!(word(&answer, "outcome"), "timed_out", "{answer}");
    }
    house.take_down().await;
}
