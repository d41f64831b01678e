//! Commands that were sent before: published by others, kept for later, put into the device's own connection.

use serde_json::json;
use truetwin::sim::{self, Happened, Kind};

use crate::{
    middle::Middle,
    rig::{ASSISTANT, MALLORY, Rig, Table, WATCHER},
    support::publish_with,
};

pub(crate) async fn of_commands(rig: &mut Rig, table: &mut Table) {
    // The fan's connection leads through somebody else's hands from now on.
    let (middle, address) = Middle::start(rig.mqtt).await;
    rig.sims.remove("fan").unwrap().stop();
    let password = rig.password("fan").to_owned();
    let mut fan = sim::start(sim::Options { kind: Kind::Socket, ..sim::Options::new(address, "fan", &password) });
    let mut events = fan.events();
    let welcomed = async |events: &mut tokio::sync::mpsc::Receiver<Happened>| {
        while events.recv().await.expect("the fan runs") != Happened::Welcomed {}
    };
    welcomed(&mut events).await;
    rig.online("fan").await;
    let caller = rig.caller().await;
    let switch = async |to: &str| {
        let answer = caller.call("switch_device", json!({"device": "fan", "to": to})).await.unwrap().structured;
        assert_eq!(answer["success"], true, "{answer}");
    };
    switch("on").await;
    let old = middle.captured(&["\"set\"", "\"value\":true"]).pop().expect("the command passed by");
    let said = old[old.iter().position(|byte| *byte == b'{').unwrap()..].to_vec();
    switch("off").await;
    let moves = fan.moves();
    assert!(!fan.relay());

    for (who, v5, retain) in [
        (MALLORY, true, false),
        (MALLORY, false, false),
        (MALLORY, true, true),
        (MALLORY, false, true),
        (ASSISTANT, true, false),
        (ASSISTANT, false, false),
        (ASSISTANT, true, true),
        (ASSISTANT, false, true),
        (WATCHER, true, true),
    ] {
        let mut client = rig.comes_in(who, v5).await;
        let flags = 2 | u8::from(retain);
        client.send(&publish_with("truetwin/fan/command", flags, 9, &said, v5.then_some(&[]))).await;
        match (v5, who == MALLORY && retain) {
            (true, false) => assert_eq!(client.acknowledged().await, Some((9, 0x87)), "{who}"),
            (true, true) => assert_eq!(client.farewell().await, Some(0x9A), "{who}"),
            (false, _) => assert_eq!(client.next().await, None, "{who}"),
        }
    }
    table.row(
        "a captured command, published by a device or account",
        "PUBACK 0x87; 3.1.1: closed",
        "the device hears nothing",
    );
    table.row("the same, retained for its next connection", "0x87, device 0x9A; 3.1.1: closed", "nothing is kept");

    // Within the session: it is the last but one, whose end the device has told; it is answered and moves nothing.
    middle.send(&old).await;
    switch("off").await;
    assert_eq!((fan.moves(), fan.relay()), (moves, false), "a command that came twice moved it");
    table.row("a captured command, sent to the device again", "answered as repeated (`dup`)", "nothing moves");

    // In the next session it is an old one's, with the retain flag and without.
    fan.restart();
    welcomed(&mut events).await;
    rig.online("fan").await;
    let moves = fan.moves();
    let mut retained = old.clone();
    retained[0] |= 1;
    for packet in [&old, &retained] {
        middle.send(packet).await;
    }
    switch("off").await;
    assert_eq!((fan.moves(), fan.relay()), (moves, false), "a command of an old session moved it");
    table.row("s5.1 a captured command of an old session", "nothing", "the device drops it: nothing moves");
    let kept = middle.captured(&[]).iter().filter(|packet| packet[0] & 1 != 0).count();
    assert_eq!(kept, 0, "nothing that came from the hub was a retained one");
    caller.close().await;
    fan.stop();
    rig.sims.insert("fan", sim::start(sim::Options::new(rig.mqtt, "fan", &password)));
    rig.online("fan").await;
    rig.converges("replays").await;
}
