//! What a device may do once it is in, and what everything else is answered.

use truetwin::broker::{MqttVersion::*, Settings};

use crate::support::*;

const FOREIGN: [&str; 7] = [
    "truetwin/other/event",
    "truetwin/lamp/command",
    "truetwin/lamp/event/more",
    "truetwin/灯/event",
    "灯",
    "é/x",
    "$SYS/broker",
];

#[tokio::test]
async fn a_foreign_topic_is_refused_with_a_code_in_v5_and_closed_in_3_1_1() {
    let (broker, mut hub, _) = start(Settings::default()).await;
    let mut lamp = Client::device(&broker, "lamp", V5).await;
    for (id, topic) in (1..).zip(FOREIGN) {
        lamp.send(&publish(topic, 1, id, b"x", true)).await;
        assert_eq!(lamp.acknowledged().await, Some((id, 0x87)), "{topic}");
        lamp.send(&publish(topic, 0, 0, b"x", true)).await; // nothing can be answered; nothing happens
    }
    assert!(lamp.lives().await);
    expect(&mut hub, &["lamp connected 5"]).await;
    for topic in FOREIGN {
        let mut lock = Client::device(&broker, "lock", V3_1_1).await;
        lock.send(&publish(topic, 1, 1, b"x", false)).await;
        assert_eq!(lock.next().await, None, "{topic}");
        expect(&mut hub, &["lock connected 3.1.1", "lock disconnected foreign_topic"]).await;
    }
    assert_eq!(broker.counters().foreign_topics, 21);
    assert_eq!(broker.counters().reports_in, 0);
    broker.stop().await;
}

#[tokio::test]
async fn the_refusal_of_a_foreign_topic_waits_for_the_reports_before_it() {
    let (broker, mut hub, _) = start(Settings::default()).await;
    let mut lamp = Client::device(&broker, "lamp", V5).await;
    let mut bytes = publish("truetwin/lamp/event", 1, 1, b"mine", true);
    bytes.extend_from_slice(&publish("truetwin/other/event", 1, 2, b"not mine", true));
    lamp.send(&bytes).await;
    expect(&mut hub, &["lamp connected 5", "lamp event mine"]).await;
    assert_eq!(lamp.acknowledged().await, Some((1, 0)));
    assert_eq!(lamp.acknowledged().await, Some((2, 0x87)));
    broker.stop().await;
}

#[tokio::test]
async fn each_subscription_has_its_code() {
    let (broker, _hub, _) = start(Settings::default()).await;
    let filters = [
        ("truetwin/lamp/command", 0x00),
        ("truetwin/other/command", 0x87),
        ("truetwin/lamp/event", 0x87),
        ("truetwin/+/command", 0xA2),
        ("#", 0xA2),
        ("$share/g/truetwin/lamp/command", 0x9E),
        ("灯/command", 0x87),
        ("a/#/b", 0x8F),
        ("a+", 0x8F),
    ];
    let mut lamp = Client::device(&broker, "lamp", V5).await;
    let names: Vec<_> = filters.iter().map(|(name, _)| *name).collect();
    lamp.send(&subscribe_with(5, &names, 1, Some(&[]))).await;
    let codes: Vec<u8> = filters.iter().map(|(_, code)| *code).collect();
    assert_eq!(lamp.next().await, Some((0x90, [&[0, 5, 0][..], &codes].concat())));
    lamp.send(&subscribe_with(6, &names[..1], 1, Some(&[0x0B, 7]))).await;
    assert_eq!(lamp.next().await, Some((0x90, vec![0, 6, 0, 0xA1])), "a subscription identifier");

    let mut lock = Client::device(&broker, "lock", V3_1_1).await;
    for (filter, granted) in [("truetwin/lock/command", 0), ("truetwin/lamp/command", 0x80), ("#", 0x80), ("a+", 0x80)]
    {
        for options in 0..=2 {
            lock.send(&subscribe(7, filter, options, false)).await;
            assert_eq!(lock.next().await, Some((0x90, vec![0, 7, granted])), "{filter} with QoS {options}");
        }
    }
    assert_eq!(broker.counters().subscriptions_refused, 8 + 1 + 9);
    broker.stop().await;
}

#[tokio::test]
async fn unsubscribing_is_answered_for_each_filter() {
    let (broker, _hub, _) = start(Settings::default()).await;
    let mut lamp = Client::subscribed(&broker, "lamp", V5).await;
    lamp.send(&unsubscribe(2, &["truetwin/lamp/command", "truetwin/lamp/command", "x"], true)).await;
    assert_eq!(lamp.next().await, Some((0xB0, vec![0, 2, 0, 0x00, 0x11, 0x11])));
    let mut lock = Client::subscribed(&broker, "lock", V3_1_1).await;
    lock.send(&unsubscribe(2, &["truetwin/lock/command", "x"], false)).await;
    assert_eq!(lock.next().await, Some((0xB0, vec![0, 2])));
    broker.stop().await;
}

#[tokio::test]
async fn what_is_not_offered_or_not_allowed_ends_the_connection_with_its_code() {
    let (broker, mut hub, _) = start(Settings::default()).await;
    let own = "truetwin/lamp/event";
    let none: &[u8] = &[];
    for (what, packet, code, why) in [
        ("QoS 2", publish_with(own, 4, 1, b"x", Some(none)), 0x9B, "protocol_error"),
        ("QoS 3", publish_with(own, 6, 1, b"x", Some(none)), 0x81, "protocol_error"),
        ("a retained publish", publish_with(own, 3, 1, b"x", Some(none)), 0x9A, "protocol_error"),
        ("a topic alias", publish_with(own, 2, 1, b"x", Some(&[0x23, 0, 1])), 0x94, "protocol_error"),
        ("an alias alone", publish_with("", 2, 1, b"x", Some(&[0x23, 0, 1])), 0x94, "protocol_error"),
        ("no topic", publish_with("", 2, 1, b"x", Some(none)), 0x82, "protocol_error"),
        ("a wildcard", publish_with("truetwin/+/event", 2, 1, b"x", Some(none)), 0x90, "protocol_error"),
        ("a second CONNECT", Login::of("lamp").v5(true).packet(), 0x82, "protocol_error"),
        ("AUTH", vec![0xF0, 0], 0x82, "protocol_error"),
        ("PUBREL", vec![0x62, 2, 0, 1], 0x82, "protocol_error"),
        ("a bad length", vec![0x30, 0xFF, 0xFF, 0xFF, 0xFF], 0x81, "protocol_error"),
        ("a large packet", publish(own, 1, 1, &vec![b'x'; 4096], true), 0x95, "packet_too_large"),
    ] {
        let mut lamp = Client::device(&broker, "lamp", V5).await;
        lamp.send(&packet).await;
        assert_eq!(lamp.farewell().await, Some(code), "{what}");
        assert_eq!(lamp.next().await, None, "{what}");
        expect(&mut hub, &["lamp connected 5", &format!("lamp disconnected {why}")]).await;
    }
    for (what, packet, why) in [
        ("QoS 2", publish_with(own, 4, 1, b"x", None), "protocol_error"),
        ("a second CONNECT", Login::of("lamp").packet(), "protocol_error"),
        ("nonsense", vec![0xFF, 0xFF], "protocol_error"),
        ("a large packet", publish(own, 1, 1, &vec![b'x'; 4096], false), "packet_too_large"),
    ] {
        let mut lamp = Client::device(&broker, "lamp", V3_1_1).await;
        lamp.send(&packet).await;
        if what == "nonsense" {
            lamp.send(&[0xFF; 4]).await;
        }
        assert_eq!(lamp.next().await, None, "{what}: 3.1.1 has no DISCONNECT from a server");
        expect(&mut hub, &["lamp connected 3.1.1", &format!("lamp disconnected {why}")]).await;
    }
    let counters = broker.counters();
    assert_eq!((counters.protocol_errors, counters.oversize), (14, 2));
    broker.stop().await;
}

#[tokio::test]
async fn the_answers_before_an_error_still_arrive() {
    let (broker, mut hub, _) = start(Settings::default()).await;
    let mut lamp = Client::device(&broker, "lamp", V5).await;
    let bytes = [&[0xC0, 0][..], &subscribe(1, "truetwin/lamp/command", 0, true), &[0xC0, 0, 0xF0, 0]].concat();
    lamp.send(&bytes).await;
    let mut firsts = Vec::new();
    while let Some((first, _)) = lamp.next().await {
        firsts.push(first);
    }
    assert_eq!(firsts, [0xD0, 0x90, 0xD0, 0xE0]);
    expect(&mut hub, &["lamp connected 5", "lamp disconnected protocol_error"]).await;
    broker.stop().await;
}
