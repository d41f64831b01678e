//! What a device says, and when it is acknowledged.

use truetwin::broker::{FromDevice, MqttVersion::*, Receipt, Settings};

use crate::support::*;

/// The receipt of the next message, which must be a report.
async fn receipt(hub: &mut tokio::sync::mpsc::Receiver<FromDevice>) -> Receipt {
    match hear(hub).await {
        FromDevice::Event { receipt, .. } | FromDevice::Status { receipt, .. } => receipt,
        other => panic!("no report: {other:?}"),
    }
}

#[tokio::test]
async fn a_device_comes_in_reports_and_is_commanded_in_both_versions() {
    let (broker, mut hub, _) = start(Settings::default()).await;
    for (version, word) in [(V3_1_1, "3.1.1"), (V5, "5")] {
        let mut lamp = Client::subscribed(&broker, "lamp", version).await;
        expect(&mut hub, &[&format!("lamp connected {word}")]).await;
        assert!(broker.connected("lamp"));
        let id = lamp.report(b"on").await;
        expect(&mut hub, &["lamp event on"]).await;
        assert_eq!(lamp.acknowledged().await, Some((id, 0)));
        broker.send("lamp", "off".into(), 7).unwrap();
        assert_eq!(lamp.command().await, Some("off".into()));
        expect(&mut hub, &["lamp written 7"]).await;
        lamp.send(&[0xE0, 0]).await;
        expect(&mut hub, &["lamp disconnected clean"]).await;
        assert_eq!(lamp.next().await, None);
        assert!(!broker.connected("lamp"));
    }
    let counters = broker.counters();
    assert_eq!((counters.accepted, counters.reports_in, counters.reports_taken, counters.acknowledged), (2, 2, 2, 2));
    assert_eq!((counters.commands_in, counters.commands_written, counters.commands_lost), (2, 2, 0));
    assert_eq!((counters.unacknowledged_bytes, counters.connections), (0, 0));
    broker.stop().await;
}

#[tokio::test]
async fn a_report_is_acknowledged_only_when_it_was_taken_in_and_in_order() {
    let (broker, mut hub, _) = start(Settings::default()).await;
    for version in [V3_1_1, V5] {
        let mut lamp = Client::device(&broker, "lamp", version).await;
        hear(&mut hub).await;
        let (first, second) = (lamp.report(b"1").await, lamp.report(b"2").await);
        let (one, two) = (receipt(&mut hub).await, receipt(&mut hub).await);
        two.taken();
        lamp.send(&[0xC0, 0]).await;
        assert_eq!(lamp.next().await, Some((0xD0, vec![])), "PINGRESP comes, and no PUBACK before it");
        one.taken();
        assert_eq!(lamp.acknowledged().await, Some((first, 0)));
        assert_eq!(lamp.acknowledged().await, Some((second, 0)));
        lamp.send(&[0xE0, 0]).await;
        expect(&mut hub, &["lamp disconnected clean"]).await;
    }
    broker.stop().await;
}

#[tokio::test]
async fn a_dropped_receipt_is_an_error_to_the_device_and_never_a_success() {
    let (broker, mut hub, _) = start(Settings::default()).await;
    let mut lamp = Client::device(&broker, "lamp", V5).await;
    hear(&mut hub).await;
    let (first, second) = (lamp.report(b"1").await, lamp.report(b"2").await);
    let (one, two) = (receipt(&mut hub).await, receipt(&mut hub).await);
    drop(one);
    two.taken();
    assert_eq!(lamp.acknowledged().await, Some((first, 0x80)));
    assert_eq!(lamp.acknowledged().await, Some((second, 0)));

    let mut lock = Client::device(&broker, "lock", V3_1_1).await;
    hear(&mut hub).await;
    let first = lock.report(b"1").await;
    lock.report(b"2").await;
    lock.report(b"3").await;
    receipt(&mut hub).await.taken();
    drop(receipt(&mut hub).await);
    assert_eq!(lock.acknowledged().await, Some((first, 0)));
    assert_eq!(lock.next().await, None, "3.1.1 cannot say it: closed, so that it sends again");
    receipt(&mut hub).await.taken(); // too late to be acknowledged, and no harm
    expect(&mut hub, &["lock disconnected report_refused"]).await;
    assert_eq!(broker.counters().reports_refused, 2);
    assert_eq!(broker.counters().unacknowledged_bytes, 0);
    broker.stop().await;
}

#[tokio::test]
async fn a_report_for_what_was_set_aside_is_refused_with_a_code_of_its_own() {
    let (broker, mut hub, _) = start(Settings::default()).await;
    let mut lamp = Client::device(&broker, "lamp", V5).await;
    hear(&mut hub).await;
    let (first, second) = (lamp.report(b"1").await, lamp.report(b"2").await);
    receipt(&mut hub).await.quarantined();
    receipt(&mut hub).await.taken();
    assert_eq!(lamp.acknowledged().await, Some((first, 0x83)));
    assert_eq!(lamp.acknowledged().await, Some((second, 0)));

    let mut lock = Client::device(&broker, "lock", V3_1_1).await;
    hear(&mut hub).await;
    lock.report(b"1").await;
    receipt(&mut hub).await.quarantined();
    assert_eq!(lock.next().await, None, "3.1.1 cannot say it");
    expect(&mut hub, &["lock disconnected quarantined"]).await;
    broker.stop().await;
}

#[tokio::test]
async fn a_report_that_nobody_takes_in_closes_the_connection() {
    let (broker, mut hub, _) = start(Settings { acknowledge_ms: 100, ..Settings::default() }).await;
    for (version, code) in [(V5, Some(0x89)), (V3_1_1, None)] {
        let mut lamp = Client::device(&broker, "lamp", version).await;
        let mut lock = Client::device(&broker, "lock", version).await;
        hear(&mut hub).await;
        hear(&mut hub).await;
        lamp.report(b"1").await;
        let (stuck, late) = (receipt(&mut hub).await, lamp.report(b"2").await);
        receipt(&mut hub).await.taken();
        assert_eq!(lamp.farewell().await, code, "{late} was taken in, but not what came before it");
        expect(&mut hub, &["lamp disconnected unacknowledged"]).await;
        stuck.taken(); // too late, and no harm
        lock.report(b"x").await;
        expect(&mut hub, &["lock event x"]).await;
        assert!(lock.lives().await, "who owes nothing is not touched");
        lock.send(&[0xE0, 0]).await;
        expect(&mut hub, &["lock disconnected clean"]).await;
    }
    assert_eq!(broker.counters().acknowledgement_expiries, 2);
    assert_eq!(broker.counters().unacknowledged_bytes, 0);
    // QoS 0 promises nothing, so nothing is owed.
    let mut lamp = Client::device(&broker, "lamp", V5).await;
    hear(&mut hub).await;
    lamp.send(&publish("truetwin/lamp/event", 0, 0, b"x", true)).await;
    let unanswered = receipt(&mut hub).await;
    let mut lock = Client::device(&broker, "lock", V5).await;
    hear(&mut hub).await;
    lock.report(b"1").await;
    let _stuck = receipt(&mut hub).await;
    expect(&mut hub, &["lock disconnected unacknowledged"]).await;
    assert!(lamp.lives().await);
    drop(unanswered);
    broker.stop().await;
}

#[tokio::test]
async fn a_report_without_acknowledgement_is_told_as_well() {
    let (broker, mut hub, _) = start(Settings::default()).await;
    let mut lamp = Client::device(&broker, "lamp", V3_1_1).await;
    lamp.send(&publish("truetwin/lamp/event", 0, 0, b"x", false)).await;
    expect(&mut hub, &["lamp connected 3.1.1"]).await;
    assert_eq!(broker.counters().reports_taken, 0);
    expect(&mut hub, &["lamp event x"]).await;
    lamp.send(&publish("truetwin/lamp/event", 0, 0, b"y", false)).await;
    drop(receipt(&mut hub).await);
    assert!(lamp.lives().await, "QoS 0 promises nothing, so nothing is broken");
    assert_eq!(broker.counters().unacknowledged_bytes, 0);
    broker.stop().await;
}

#[tokio::test]
async fn a_retained_report_of_3_1_1_is_flagged_and_an_empty_one_is_a_report() {
    let (broker, mut hub, _) = start(Settings::default()).await;
    let mut lamp = Client::device(&broker, "lamp", V3_1_1).await;
    lamp.send(&publish_with("truetwin/lamp/event", 3, 1, b"old", None)).await;
    lamp.send(&publish_with("truetwin/lamp/event", 3, 2, b"", None)).await;
    lamp.send(&publish_with("truetwin/lamp/status", 3, 3, b"up", None)).await;
    lamp.send(&publish("truetwin/lamp/status", 1, 4, b"up", false)).await;
    let lines = ["connected 3.1.1", "event old retained", "event  retained", "status up retained", "status up"];
    expect(&mut hub, &lines.map(|line| format!("lamp {line}")).each_ref().map(String::as_str)).await;
    for id in 1..=4 {
        assert_eq!(lamp.acknowledged().await, Some((id, 0)));
    }
    broker.stop().await;
}

#[tokio::test]
async fn a_report_that_is_said_again_on_the_same_connection_is_told_once() {
    let (broker, mut hub, _) = start(Settings::default()).await;
    let mut lamp = Client::device(&broker, "lamp", V3_1_1).await;
    hear(&mut hub).await;
    lamp.send(&publish_with("truetwin/lamp/event", 2, 5, b"x", None)).await;
    let once = receipt(&mut hub).await;
    lamp.send(&publish_with("truetwin/lamp/event", 0x0A, 5, b"x", None)).await;
    assert!(lamp.lives().await, "it was read");
    once.taken();
    assert_eq!(lamp.acknowledged().await, Some((5, 0)));
    lamp.send(&publish_with("truetwin/lamp/event", 0x0A, 6, b"y", None)).await;
    expect(&mut hub, &["lamp event y"]).await;
    assert_eq!(lamp.acknowledged().await, Some((6, 0)), "of an older connection: told");
    broker.stop().await;
}

#[tokio::test]
async fn acknowledgements_from_a_device_mean_nothing_and_do_no_harm() {
    let (broker, _hub, _) = start(Settings::default()).await;
    for version in [V3_1_1, V5] {
        let mut lamp = Client::device(&broker, "lamp", version).await;
        for id in [9u8, 3, 7, 3] {
            lamp.send(&[0x40, 2, 0, id]).await;
        }
        assert!(lamp.lives().await);
    }
    broker.stop().await;
}
