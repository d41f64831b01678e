//! The router dies: nobody outside notices, nothing that was acknowledged is lost, order is kept.

use std::collections::HashMap;

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

/// What the hub heard of one device.
#[derive(Default)]
struct Heard {
    reports: u64,
    connected: bool,
    ended: bool,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_acknowledged_report_is_lost_when_the_router_dies_again_and_again_under_load() {
    const DEVICES: usize = 20;
    const DEATHS: u64 = 10;
    let (broker, mut hub, _) = start(Settings::default()).await;
    let (stop_tx, stop) = tokio::sync::watch::channel(false);
    let mut devices = Vec::new();
    for at in 0..DEVICES {
        let version = if at % 2 == 0 { V5 } else { V3_1_1 };
        let mut device = Client::subscribed(&broker, &format!("d{at}"), version).await;
        let mut stop = stop.clone();
        devices.push(tokio::spawn(async move {
            // Windows of ten; the answers must come in order.
            let mut acknowledged = 0u64;
            while !*stop.borrow_and_update() {
                let ids: Vec<u16> = {
                    let mut ids = Vec::new();
                    for number in 1..=10 {
                        ids.push(device.report(&(acknowledged + number).to_be_bytes()).await);
                    }
                    ids
                };
                for id in ids {
                    assert_eq!(device.acknowledged().await, Some((id, 0)), "no connection may notice");
                    acknowledged += 1;
                }
            }
            device.send(&[0xE0, 0]).await;
            acknowledged
        }));
    }
    let mut heard: HashMap<String, Heard> = HashMap::new();
    let (mut downs, mut ups, mut since, mut ended) = (0, 0, 0u64, 0);
    while ended < DEVICES {
        match hear(&mut hub).await {
            FromDevice::Connected { device, .. } => {
                let device = heard.entry(device.to_string()).or_default();
                assert!(!std::mem::replace(&mut device.connected, true), "once, and before everything else");
            }
            FromDevice::Event { device, payload, receipt, .. } => {
                let device = heard.get_mut(&*device).expect("connected comes first");
                assert!(!device.ended, "disconnected comes last");
                device.reports += 1;
                assert_eq!(payload.as_ref(), device.reports.to_be_bytes(), "in order, none missing, none twice");
                receipt.taken();
                since += 1;
                // The next death comes under full load, when the last one is over.
                if downs == ups && since > 500 {
                    since = 0;
                    if ups < DEATHS {
                        broker.break_bus();
                    } else {
                        stop_tx.send(true).unwrap();
                    }
                }
            }
            FromDevice::Disconnected { device, why, .. } => {
                assert_eq!(why.as_str(), "clean");
                assert!(!std::mem::replace(&mut heard.get_mut(&*device).unwrap().ended, true));
                ended += 1;
            }
            FromDevice::BusDown => downs += 1,
            FromDevice::BusUp => ups += 1,
            other => panic!("{other:?}"),
        }
    }
    assert_eq!((downs, ups), (DEATHS, DEATHS));
    for (at, device) in devices.into_iter().enumerate() {
        let acknowledged = device.await.unwrap();
        assert_eq!(heard[&format!("d{at}")].reports, acknowledged);
    }
    let counters = broker.counters();
    assert_eq!(counters.bus_rebuilds, DEATHS);
    assert_eq!((counters.reports_in, counters.acknowledged), (counters.reports_taken, counters.reports_taken));
    assert_eq!((counters.unacknowledged_bytes, counters.bus_waiting), (0, 0));
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
