//! The door, with real sockets: who is let in, what is told to the hub, what is acknowledged and when.
#![allow(missing_docs, clippy::unwrap_used)]

#[path = "door/support.rs"]
mod support;

use bytes::Bytes;
use support::*;
use truetwin::broker::{FromDevice, MqttVersion::*, Settings};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_device_comes_in_reports_and_is_commanded_in_both_versions() {
    let (broker, mut hub, _) = start(Settings::default()).await;
    for (version, word) in [(V3_1_1, "3.1.1"), (V5, "5")] {
        let mut lamp = Client::subscribed(&broker, "lamp", version).await;
        expect(&mut hub, &[&format!("lamp connected {word}")]).await;
        assert!(broker.connected("lamp"));
        let id = lamp.report(b"on").await;
        expect(&mut hub, &["lamp event on"]).await;
        assert_eq!(lamp.acknowledged().await, Some((id, 0)));
        broker.send("lamp", Bytes::from("off"), 7).unwrap();
        assert_eq!(lamp.command().await, Some(Bytes::from("off")));
        expect(&mut hub, &["lamp written 7"]).await;
        lamp.send(&[0xE0, 0]).await;
        expect(&mut hub, &["lamp disconnected clean"]).await;
        assert!(!broker.connected("lamp"));
    }
    broker.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_report_is_acknowledged_only_when_it_was_taken_in_and_in_order() {
    let (broker, mut hub, _) = start(Settings::default()).await;
    let mut lamp = Client::device(&broker, "lamp", V5).await;
    expect(&mut hub, &["lamp connected 5"]).await;
    let (first, second) = (lamp.report(b"1").await, lamp.report(b"2").await);
    let mut receipts = Vec::new();
    for _ in 0..2 {
        let FromDevice::Event { receipt, .. } = hear(&mut hub).await else { panic!("an event") };
        receipts.push(receipt);
    }
    receipts.pop().unwrap().taken();
    assert!(lamp.lives().await, "PINGRESP comes, and no PUBACK before it");
    receipts.pop().unwrap().taken();
    assert_eq!(lamp.acknowledged().await, Some((first, 0)));
    assert_eq!(lamp.acknowledged().await, Some((second, 0)));
    broker.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_router_that_dies_is_rebuilt_and_the_device_notices_nothing() {
    let (broker, mut hub, _) = start(Settings::default()).await;
    let mut lamp = Client::subscribed(&broker, "lamp", V3_1_1).await;
    expect(&mut hub, &["lamp connected 3.1.1"]).await;
    broker.break_bus();
    expect(&mut hub, &["bus down", "bus up"]).await;
    let id = lamp.report(b"on").await;
    expect(&mut hub, &["lamp event on"]).await;
    assert_eq!(lamp.acknowledged().await, Some((id, 0)));
    assert_eq!(broker.counters().bus_rebuilds, 1);
    broker.stop().await;
}
