//! The router dies: nobody outside notices, nothing that was acknowledged is lost, order is kept.

use truetwin::broker::{FromDevice, MqttVersion::*, SendError, Settings};

use crate::support::*;

#[tokio::test]
async fn a_router_that_dies_is_rebuilt_and_the_device_notices_nothing() {
    let (broker, mut hub, _) = start(Settings::default()).await;
    let mut lamp = Client::subscribed(&broker, "lamp", V3_1_1).await;
    expect(&mut hub, &["lamp connected 3.1.1"]).await;
    broker.break_bus();
    expect(&mut hub, &["bus down", "bus up"]).await;
    let id = lamp.report(b"on").await;
    expect(&mut hub, &["lamp event on"]).await;
    assert_eq!(lamp.acknowledged().await, Some((id, 0)));
    broker.send("lamp", "off".into(), 1).unwrap();
    assert_eq!(lamp.command().await, Some("off".into()));
    expect(&mut hub, &["lamp written 1"]).await;
    assert_eq!(broker.counters().bus_rebuilds, 1);
    broker.stop().await;
}

#[tokio::test]
async fn what_happens_while_the_router_is_dead_is_told_when_there_is_a_new_one() {
    let (broker, mut hub, _) = start(Settings::default()).await;
    let mut lamp = Client::subscribed(&broker, "lamp", V5).await;
    expect(&mut hub, &["lamp connected 5"]).await;
    broker.break_bus();
    // Handed in while the router dies, on its way or not: each has exactly one fate.
    let accepted = (1..=20).filter(|ticket| broker.send("lamp", "x".into(), *ticket).is_ok()).count();
    lamp.report(b"1").await;
    let lock = Client::device(&broker, "lock", V3_1_1).await;
    drop(lock);
    let (mut fates, mut lines) = (0, Vec::new());
    while fates < accepted || lines.len() < 3 {
        match hear(&mut hub).await {
            FromDevice::Written { .. } | FromDevice::Lost { .. } => fates += 1,
            FromDevice::BusDown | FromDevice::BusUp => {}
            message => lines.push(line(message)),
        }
    }
    lines.sort();
    assert_eq!(lines, ["lamp event 1", "lock connected 3.1.1", "lock disconnected lost"]);
    assert_eq!(lamp.acknowledged().await, Some((1, 0)));
    broker.stop().await;
}

#[tokio::test]
async fn a_router_that_is_stuck_without_being_dead_is_found_by_its_canary() {
    let (broker, mut hub, _) = start(Settings::default()).await;
    let mut lamp = Client::subscribed(&broker, "lamp", V5).await;
    expect(&mut hub, &["lamp connected 5"]).await;
    broker.stall_bus();
    let id = lamp.report(b"on").await;
    broker.send("lamp", "x".into(), 1).unwrap();
    expect(&mut hub, &["bus down", "bus up"]).await;
    let mut lines = [hear_line(&mut hub).await, hear_line(&mut hub).await];
    lines.sort();
    assert_eq!(lines, ["lamp event on", "lamp written 1"]);
    let mut firsts = [lamp.next().await.unwrap().0, lamp.next().await.unwrap().0];
    firsts.sort_unstable();
    assert_eq!(firsts, [0x30, 0x40], "the command and the acknowledgement of {id}");
    broker.stop().await;
}

#[tokio::test]
async fn a_router_that_hangs_in_the_middle_of_its_loop_is_found_by_its_canary() {
    let (broker, mut hub, _) = start(Settings::default()).await;
    let mut lamp = Client::subscribed(&broker, "lamp", V3_1_1).await;
    expect(&mut hub, &["lamp connected 3.1.1"]).await;
    let hang = broker.hang_bus().expect("a router runs");
    let id = lamp.report(b"on").await;
    broker.send("lamp", "x".into(), 1).unwrap();
    expect(&mut hub, &["bus down", "bus up"]).await;
    let mut lines = [hear_line(&mut hub).await, hear_line(&mut hub).await];
    lines.sort();
    assert_eq!(lines, ["lamp event on", "lamp written 1"]);
    assert_eq!(lamp.acknowledged().await, Some((id, 0)));
    // The old one goes on where it stood, with reports in its queue; nobody hears of it any more.
    drop(hang);
    lamp.report(b"off").await;
    expect(&mut hub, &["lamp event off"]).await;
    let counters = broker.counters();
    assert_eq!((counters.bus_rebuilds, counters.bus_duplicates, counters.commands_lost), (1, 0, 0));
    assert!(counters.bus_rebuild_us >= 1_500_000, "counted from its last sign of life: {}", counters.bus_rebuild_us);
    assert_eq!(counters.bus_down_us, counters.bus_rebuild_us);
    broker.stop().await;
}

#[tokio::test]
async fn a_router_that_hangs_for_a_moment_loses_nothing_and_repeats_nothing() {
    let (broker, mut hub, _) = start(Settings { inflight_max: 200, ..Settings::default() }).await;
    let mut lamp = Client::subscribed(&broker, "lamp", V5).await;
    expect(&mut hub, &["lamp connected 5"]).await;
    let hang = broker.hang_bus().expect("a router runs");
    // More than its log would keep, if all of it were handed to the router.
    for number in 0..200u64 {
        let mut payload = vec![b'x'; 2000];
        payload[..8].copy_from_slice(&number.to_be_bytes());
        lamp.report(&payload).await;
    }
    while broker.counters().reports_in < 200 {
        tokio::task::yield_now().await;
    }
    drop(hang);
    for number in 0..200u64 {
        let FromDevice::Event { payload, receipt, .. } = hear_device(&mut hub).await else { panic!("an event") };
        assert_eq!(payload[..8], number.to_be_bytes());
        receipt.taken();
    }
    for _ in 0..200 {
        assert_eq!(lamp.acknowledged().await.unwrap().1, 0);
    }
    let counters = broker.counters();
    assert_eq!((counters.bus_gaps, counters.bus_duplicates), (0, 0), "nothing was rotated away");
    broker.stop().await;
}

#[tokio::test]
async fn a_router_that_dies_while_the_hub_is_stuck_loses_nothing_either() {
    let (broker, mut hub, _) = start(Settings::default()).await;
    let mut lamp = Client::device(&broker, "lamp", V5).await;
    for number in 0..5u8 {
        lamp.report(&[b'0' + number]).await;
    }
    while broker.counters().reports_in < 5 {
        tokio::task::yield_now().await;
    }
    broker.break_bus();
    while broker.counters().bus_rebuilds < 1 || broker.counters().bus_waiting > 0 {
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    }
    for number in 5..9u8 {
        lamp.report(&[b'0' + number]).await;
    }
    assert_eq!(line(hear_device(&mut hub).await), "lamp connected 5");
    for number in 0..9 {
        assert_eq!(line(hear_device(&mut hub).await), format!("lamp event {number}"));
        assert_eq!(lamp.acknowledged().await.unwrap().1, 0);
    }
    broker.stop().await;
}

#[tokio::test]
async fn a_command_while_the_bus_is_down_is_refused_and_nothing_is_sent() {
    let (broker, mut hub, _) = start(Settings::default()).await;
    broker.break_bus();
    expect(&mut hub, &["bus down"]).await;
    // This thread runs the supervisor as well: between two waits of ours the bus is either down or up.
    match broker.send("lamp", "x".into(), 1) {
        Err(error) => assert_eq!(error, SendError::BusDown),
        Ok(()) => expect(&mut hub, &["bus up", "lamp lost 1 not_connected"]).await,
    }
    broker.stop().await;
}
