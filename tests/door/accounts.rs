//! Service accounts at the door: who hears what, what is kept, what is refused, in both versions.

use std::sync::Arc;

use tokio::net::TcpListener;
use truetwin::{
    broker::{self, Access, AccountSettings, Answer, Broker, MqttVersion, Settings, Who},
    topics::Rights,
};

use crate::support::*;

const BOTH: [bool; 2] = [false, true];

/// A message as it came: first byte, topic, packet id, properties, payload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Got {
    pub(crate) first: u8,
    pub(crate) topic: String,
    pub(crate) id: u16,
    pub(crate) properties: Vec<u8>,
    pub(crate) payload: String,
}

impl Got {
    pub(crate) fn retained(&self) -> bool {
        self.first & 1 != 0
    }

    fn qos(&self) -> u8 {
        self.first >> 1 & 3
    }
}

/// An account's connection that was let in.
pub(crate) async fn account(broker: &Broker, name: &str, id: &str, v5: bool) -> Client {
    let mut client = Client::raw(broker.local_addr(), v5).await;
    assert_eq!(client.login(&Login::of(name).v5(v5).client_id(id).packet()).await, Some(0), "{name} must be let in");
    client
}

/// Subscribes with these options; the codes.
pub(crate) async fn subscribed(client: &mut Client, filters: &[&str], options: u8) -> Vec<u8> {
    let packet = subscribe_with(7, filters, options, client.v5.then_some(&[]));
    client.send(&packet).await;
    let (first, body) = client.next().await.expect("a SUBACK");
    assert_eq!(first, 0x90);
    body[2 + usize::from(client.v5)..].to_vec()
}

pub(crate) fn read(first: u8, body: &[u8], v5: bool) -> Got {
    let end = 2 + usize::from(u16::from_be_bytes([body[0], body[1]]));
    let topic = text(&body[2..end]);
    let (id, at) = match first >> 1 & 3 {
        0 => (0, end),
        _ => (u16::from_be_bytes([body[end], body[end + 1]]), end + 2),
    };
    let (properties, at) = if v5 {
        let length = usize::from(body[at]);
        (body[at + 1..at + 1 + length].to_vec(), at + 1 + length)
    } else {
        (Vec::new(), at)
    };
    Got { first, topic, id, properties, payload: text(&body[at..]) }
}

/// The next message, which is acknowledged.
pub(crate) async fn got(client: &mut Client) -> Got {
    loop {
        let (first, body) = client.next().await.expect("a message must come");
        if first >> 4 == 3 {
            let got = read(first, &body, client.v5);
            if got.id != 0 {
                let [high, low] = got.id.to_be_bytes();
                client.send(&[0x40, 2, high, low]).await;
            }
            return got;
        }
    }
}

/// Nothing came before the answer to a PINGREQ.
pub(crate) async fn hears_nothing(client: &mut Client) {
    client.send(&[0xC0, 0]).await;
    let (first, body) = client.next().await.expect("an answer");
    assert_eq!(first, 0xD0, "{}", text(&body));
}

/// Publishes with QoS 1; the code of its PUBACK.
async fn published(client: &mut Client, topic: &str, retain: bool, payload: &str) -> Option<u8> {
    let flags = 0x02 | u8::from(retain);
    let packet = publish_with(topic, flags, 9, payload.as_bytes(), client.v5.then_some(&[]));
    client.send(&packet).await;
    client.acknowledged().await.map(|(_, code)| code)
}

#[tokio::test]
async fn accounts_hear_each_other_within_their_rights_whatever_they_speak() {
    let (broker, _hub, access) = start(Settings::default()).await;
    access.account("ha", &["zigbee2mqtt/#"], &["zigbee2mqtt/+/set"]);
    access.account("z2m", &["zigbee2mqtt/+/set"], &["zigbee2mqtt/#"]);
    for (from, to) in [(false, true), (true, false), (false, false), (true, true)] {
        let (mut ha, mut z2m) = (account(&broker, "ha", "a", from).await, account(&broker, "z2m", "b", to).await);
        assert_eq!(subscribed(&mut ha, &["zigbee2mqtt/#"], 1).await, [1]);
        assert_eq!(subscribed(&mut z2m, &["zigbee2mqtt/+/set"], 0).await, [0]);
        assert_eq!(published(&mut ha, "zigbee2mqtt/lamp/set", false, "on").await, Some(0));
        let at_z2m = got(&mut z2m).await;
        assert_eq!((at_z2m.topic.as_str(), at_z2m.qos(), at_z2m.payload.as_str()), ("zigbee2mqtt/lamp/set", 0, "on"));
        assert_eq!(got(&mut ha).await.qos(), 1, "it hears itself, too");
        z2m.send(&publish("zigbee2mqtt/lamp", 0, 0, b"is on", to)).await;
        let at_ha = got(&mut ha).await;
        assert_eq!((at_ha.topic.as_str(), at_ha.qos(), at_ha.payload.as_str()), ("zigbee2mqtt/lamp", 0, "is on"));
        hears_nothing(&mut z2m).await;
    }
    broker.stop().await;
}

#[tokio::test]
async fn a_subscription_beyond_the_rights_is_refused_with_its_code_and_the_others_are_granted() {
    let (broker, _hub, access) = start(Settings::default()).await;
    access.account("ha", &["a/#", "truetwin/+/event"], &[]);
    let filters = ["a/b", "#", "b", "$SYS/#", "$share/g/a/b", "a/#/b", "truetwin/+/event", "truetwin/#", "a/+"];
    let mut v5 = account(&broker, "ha", "x", true).await;
    assert_eq!(subscribed(&mut v5, &filters, 2).await, [1, 0x87, 0x87, 0x87, 0x9E, 0x8F, 1, 0x87, 1]);
    let mut v3 = account(&broker, "ha", "y", false).await;
    assert_eq!(subscribed(&mut v3, &filters, 0).await, [0, 0x80, 0x80, 0x80, 0x80, 0x80, 0, 0x80, 0]);
    v5.send(&subscribe_with(1, &["a/b"], 0, Some(&[0x0B, 1]))).await;
    assert_eq!(v5.next().await.unwrap().1.last(), Some(&0xA1), "subscription identifiers are not offered");
    v5.send(&unsubscribe(2, &["a/b", "a/c"], true)).await;
    assert_eq!(v5.next().await.unwrap(), (0xB0, vec![0, 2, 0, 0, 0x11]));
    broker.stop().await;
}

#[tokio::test]
async fn nobody_writes_where_only_the_hub_and_its_devices_do() {
    let (broker, mut hub, access) = start(Settings::default()).await;
    access.account("ha", &["#"], &["home/#"]);
    let mut lamp = Client::subscribed(&broker, "lamp", MqttVersion::V5).await;
    expect(&mut hub, &["lamp connected 5"]).await;
    let mut v5 = account(&broker, "ha", "x", true).await;
    for topic in ["truetwin/lamp/command", "truetwin/lamp/event", "truetwin/lamp/status", "other", "$SYS/x"] {
        assert_eq!(published(&mut v5, topic, false, "x").await, Some(0x87), "{topic}");
        v5.send(&publish(topic, 0, 0, b"x", true)).await;
        let mut v3 = account(&broker, "ha", "y", false).await;
        assert_eq!(published(&mut v3, topic, false, "x").await, None, "3.1.1 has no code: {topic}");
        let mut aliased = account(&broker, "ha", "z", true).await;
        aliased.send(&publish_with(topic, 0x02, 1, b"x", Some(&[0x23, 0, 1]))).await;
        aliased.send(&publish_with("", 0x03, 2, b"x", Some(&[0x23, 0, 1]))).await;
        assert_eq!(aliased.acknowledged().await, Some((1, 0x87)), "by an alias: {topic}");
        assert_eq!(aliased.acknowledged().await, Some((2, 0x87)), "and retained");
        let mut v3 = Client::raw(broker.local_addr(), false).await;
        assert_eq!(v3.login(&Login::of("ha").will(topic, "gone").packet()).await, Some(5), "a will there: {topic}");
    }
    hears_nothing(&mut lamp).await;
    assert_eq!(published(&mut v5, "home/x", false, "x").await, Some(0), "it is still there");
    lamp.report(b"mine").await;
    expect(&mut hub, &["lamp event mine"]).await;
    broker.stop().await;
}

#[tokio::test]
async fn accounts_see_what_devices_say_once_the_hub_has_it_and_commands_once_they_are_written() {
    let (broker, mut hub, access) = start(Settings::default()).await;
    access.account("ha", &["truetwin/#"], &[]);
    let mut ha = account(&broker, "ha", "x", true).await;
    assert_eq!(subscribed(&mut ha, &["truetwin/#"], 1).await, [1]);
    let login = Login::of("lamp").will("truetwin/lamp/status", "gone").packet();
    let mut lamp = Client::raw(broker.local_addr(), false).await;
    lamp.name = "lamp".to_owned();
    assert_eq!(lamp.login(&login).await, Some(0));
    assert_eq!(lamp.subscribe("truetwin/lamp/command").await, Some(0));
    expect(&mut hub, &["lamp connected 3.1.1"]).await;
    lamp.report(b"hello").await;
    let report = hear(&mut hub).await;
    hears_nothing(&mut ha).await;
    line(report); // taken in
    let event = got(&mut ha).await;
    assert_eq!((event.topic.as_str(), event.qos(), event.payload.as_str()), ("truetwin/lamp/event", 1, "hello"));
    lamp.send(&publish("truetwin/lamp/status", 0, 0, b"well", false)).await;
    expect(&mut hub, &["lamp status well"]).await;
    assert_eq!(got(&mut ha).await.topic, "truetwin/lamp/status");
    broker.send("lamp", "on".into(), 1).unwrap();
    expect(&mut hub, &["lamp written 1"]).await;
    let command = got(&mut ha).await;
    assert_eq!((command.topic.as_str(), command.qos(), command.payload.as_str()), ("truetwin/lamp/command", 0, "on"));
    drop(lamp);
    expect(&mut hub, &["lamp will gone", "lamp disconnected lost"]).await;
    assert_eq!(got(&mut ha).await.payload, "gone");
    broker.stop().await;
}

#[tokio::test]
async fn what_is_retained_is_heard_by_whoever_subscribes_later() {
    let (broker, _hub, access) = start(Settings::default()).await;
    access.account("ha", &["a/#"], &["a/#"]);
    for v5 in BOTH {
        let mut first = account(&broker, "ha", "first", v5).await;
        for (topic, payload) in [("a/1", "one"), ("a/2", "two"), ("a/2", "two again"), ("a/3", "three")] {
            assert_eq!(published(&mut first, topic, true, payload).await, Some(0));
        }
        assert_eq!(published(&mut first, "a/3", true, "").await, Some(0), "an empty one clears");
        let mut second = account(&broker, "ha", "second", v5).await;
        assert_eq!(subscribed(&mut second, &["a/+"], 1).await, [1]);
        for (topic, payload) in [("a/1", "one"), ("a/2", "two again")] {
            let got = got(&mut second).await;
            assert_eq!((got.topic.as_str(), got.payload.as_str()), (topic, payload));
            assert!(got.retained() && got.qos() == 1);
        }
        hears_nothing(&mut second).await;
        assert_eq!(published(&mut first, "a/1", true, "live").await, Some(0));
        assert!(!got(&mut second).await.retained(), "what comes live is not a retained one");
    }
    broker.stop().await;
}

#[tokio::test]
async fn the_options_of_a_v5_subscription_are_kept() {
    const NO_LOCAL: u8 = 0x04;
    const AS_PUBLISHED: u8 = 0x08;
    let (broker, _hub, access) = start(Settings::default()).await;
    access.account("ha", &["a/#"], &["a/#"]);
    let mut ha = account(&broker, "ha", "x", true).await;
    let mut other = account(&broker, "ha", "y", true).await;
    assert_eq!(published(&mut ha, "a/kept", true, "old").await, Some(0));
    assert_eq!(subscribed(&mut ha, &["a/#"], NO_LOCAL | AS_PUBLISHED | 0x20 | 1).await, [1]);
    hears_nothing(&mut ha).await; // retain handling 2: nothing that is retained
    assert_eq!(published(&mut ha, "a/own", false, "mine").await, Some(0));
    hears_nothing(&mut ha).await;
    assert_eq!(published(&mut other, "a/kept", true, "new").await, Some(0));
    assert!(got(&mut ha).await.retained(), "as published");
    // Retain handling 1: only if the subscription is a new one, which it is not.
    assert_eq!(subscribed(&mut ha, &["a/#"], 0x10 | 1).await, [1]);
    hears_nothing(&mut ha).await;
    assert_eq!(subscribed(&mut other, &["a/#"], 0x10 | 1).await, [1]);
    assert_eq!(got(&mut other).await.payload, "new");
    assert_eq!(subscribed(&mut other, &["a/#"], 1).await, [1]);
    assert_eq!(got(&mut other).await.payload, "new", "handling 0: each time");
    broker.stop().await;
}

#[tokio::test]
async fn properties_are_carried_to_5_and_left_out_for_3_1_1() {
    let (broker, _hub, access) = start(Settings::default()).await;
    access.account("ha", &["a/#"], &["a/#"]);
    let (mut new, mut old) = (account(&broker, "ha", "x", true).await, account(&broker, "ha", "y", false).await);
    for client in [&mut new, &mut old] {
        assert_eq!(subscribed(client, &["a/#"], 1).await, [1]);
    }
    let mut properties = vec![0x01, 1];
    for (id, value) in [(0x08, "a/answer"), (0x09, "42"), (0x03, "text/plain")] {
        properties.push(id);
        text_field(&mut properties, value.as_bytes());
    }
    for (name, value) in [("k", "1"), ("k", "2")] {
        properties.push(0x26);
        text_field(&mut properties, name.as_bytes());
        text_field(&mut properties, value.as_bytes());
    }
    let mut sent = properties.clone();
    sent.extend_from_slice(&[0x02, 0, 0, 0, 100]); // expires in 100 s
    sent.extend_from_slice(&[0x23, 0, 3]); // topic alias 3
    let mut sender = account(&broker, "ha", "z", true).await;
    sender.send(&publish_with("a/b", 0, 0, b"x", Some(&sent))).await;
    let at_new = got(&mut new).await;
    assert_eq!(at_new.properties[..5], [0x02, 0, 0, 0, 100]);
    assert_eq!(at_new.properties[5..], properties, "the alias is the connection's own");
    assert_eq!(got(&mut old).await.payload, "x");
    sender.send(&publish_with("", 0, 0, b"by alias", Some(&[0x23, 0, 3]))).await;
    let by_alias = got(&mut old).await;
    assert_eq!((by_alias.topic.as_str(), by_alias.payload.as_str()), ("a/b", "by alias"));
    for (topic, alias, code) in [("", 4, 0x82), ("a/b", 17, 0x94)] {
        let mut sender = account(&broker, "ha", "w", true).await;
        sender.send(&publish_with(topic, 0, 0, b"x", Some(&[0x23, 0, alias]))).await;
        assert_eq!(sender.farewell().await, Some(code), "alias {alias}");
    }
    broker.stop().await;
}

#[tokio::test]
async fn an_account_is_told_what_it_is_offered() {
    let (broker, _hub, access) = start(Settings::default()).await;
    access.account("ha", &["a/#"], &["a/#"]);
    let mut ha = Client::raw(broker.local_addr(), true).await;
    ha.send(&Login::of("ha").v5(true).client_id("").packet()).await;
    let (_, body) = ha.next().await.unwrap();
    let properties = &body[3..];
    for (name, expected) in [
        ("session expiry 0", &[0x11, 0, 0, 0, 0][..]),
        ("receive maximum", &[0x21, 0, 100]),
        ("maximum QoS", &[0x24, 1]),
        ("retain", &[0x25, 1]),
        ("packet size", &[0x27, 0, 16, 0, 0]),
        ("alias maximum", &[0x22, 0, 16]),
        ("wildcards", &[0x28, 1]),
        ("no subscription identifiers, no shared subscriptions", &[0x29, 0, 0x2A, 0]),
        ("an id", b"\x12\x00\x04ha-"),
    ] {
        assert!(properties.windows(expected.len()).any(|window| window == expected), "{name}: {properties:?}");
    }
    ha.send(&publish("a/b", 2, 1, b"x", true)).await;
    assert_eq!(ha.farewell().await, Some(0x9B), "QoS 2 is not offered");
    broker.stop().await;
}

#[tokio::test]
async fn a_will_is_told_and_retained_unless_its_client_says_goodbye() {
    let (broker, _hub, access) = start(Settings::default()).await;
    access.account("z2m", &["a/#"], &["a/#"]);
    for v5 in BOTH {
        let mut hearing = account(&broker, "z2m", "h", v5).await;
        assert_eq!(subscribed(&mut hearing, &["a/state"], 1).await, [1]);
        let mut login = Login::of("z2m").v5(v5).client_id("x");
        login.will = Some((b"a/state".to_vec(), b"offline".to_vec(), 1, true));
        let mut client = Client::raw(broker.local_addr(), v5).await;
        assert_eq!(client.login(&login.packet()).await, Some(0));
        client.send(&[0xE0, 0]).await;
        assert_eq!(client.next().await, None);
        hears_nothing(&mut hearing).await;
        let mut client = Client::raw(broker.local_addr(), v5).await;
        assert_eq!(client.login(&login.packet()).await, Some(0));
        drop(client);
        assert_eq!(got(&mut hearing).await.payload, "offline");
        assert_eq!(subscribed(&mut hearing, &["a/+"], 1).await, [1]);
        assert!(got(&mut hearing).await.retained());
        assert_eq!(published(&mut hearing, "a/state", true, "").await, Some(0));
        drop(hearing);
        login.will = Some((b"a/state".to_vec(), b"offline".to_vec(), 2, false));
        let mut client = Client::raw(broker.local_addr(), v5).await;
        assert_eq!(client.login(&login.packet()).await, Some(if v5 { 0x9B } else { 5 }), "QoS 2 is not offered");
    }
    broker.stop().await;
}

#[tokio::test]
async fn the_client_id_says_whose_place_is_taken_within_an_account_and_nowhere_else() {
    let (broker, _hub, access) = start(Settings::default()).await;
    access.account("ha", &["a/#"], &["a/#"]);
    access.account("me", &["a/#"], &["a/#"]);
    let mut first = account(&broker, "ha", "x", true).await;
    let mut others = [account(&broker, "ha", "y", true).await, account(&broker, "me", "x", true).await];
    let mut second = account(&broker, "ha", "x", true).await;
    assert_eq!(first.farewell().await, Some(0x8E));
    for client in others.iter_mut().chain([&mut second]) {
        assert!(client.lives().await);
    }
    assert_eq!((broker.account_connections("ha"), broker.account_connections("me")), (2, 1));
    broker.kick("ha");
    assert_eq!(second.farewell().await, Some(0x98), "rotation and removal cut all of its connections");
    assert_eq!(others[0].farewell().await, Some(0x98));
    assert!(others[1].lives().await, "and nobody else's");
    broker.stop().await;
}

#[tokio::test]
async fn at_each_bound_somebody_is_told() {
    let accounts = AccountSettings {
        connections_max: 3,
        connections_each_max: 2,
        subscriptions_max: 2,
        retained_max: 2,
        packet_bytes_max: 4096,
        ..AccountSettings::default()
    };
    let (broker, _hub, access) = start(Settings { accounts, ..Settings::default() }).await;
    access.account("ha", &["a/#"], &["a/#"]);
    access.account("me", &["a/#"], &["a/#"]);
    let (mut v5, mut v3) = (account(&broker, "ha", "x", true).await, account(&broker, "ha", "y", false).await);
    let mut third = Client::raw(broker.local_addr(), true).await;
    assert_eq!(third.login(&Login::of("ha").v5(true).client_id("z").packet()).await, Some(0x89), "one account's");
    assert_eq!(subscribed(&mut v5, &["a/1", "a/2", "a/3", "a/1"], 0).await, [0, 0, 0x97, 0]);
    assert_eq!(subscribed(&mut v3, &["a/1", "a/2", "a/3"], 0).await, [0, 0, 0x80]);
    let mut others = account(&broker, "me", "o", true).await;
    assert_eq!(subscribed(&mut others, &["a/1", "a/2", "a/3"], 0).await, [0, 0, 0x97]);
    others.send(&[0xE0, 0]).await;
    assert_eq!(others.next().await, None, "it has gone");
    assert_eq!(published(&mut v5, "a/8", true, "x").await, Some(0));
    assert_eq!(published(&mut v5, "a/9", true, "x").await, Some(0));
    assert_eq!(published(&mut v5, "a/10", true, "x").await, Some(0x97));
    assert_eq!(published(&mut v5, "a/9", true, "y").await, Some(0), "a change is no new one");
    assert_eq!(published(&mut v3, "a/10", true, "x").await, None, "3.1.1 has no code");
    let mut me = account(&broker, "me", "y", false).await;
    me.send(&publish_with("a/10", 1, 0, b"x", None)).await;
    assert!(me.lives().await, "with QoS 0 nothing was promised");
    assert_eq!(broker.counters().retained_refused, 3);
    let _last = account(&broker, "me", "z", false).await;
    let mut more = Client::raw(broker.local_addr(), false).await;
    assert_eq!(more.login(&Login::of("me").client_id("w").packet()).await, Some(3), "of all accounts");
    v5.send(&publish("a/x", 0, 0, &[b'x'; 4096], true)).await;
    assert_eq!(v5.farewell().await, Some(0x95));
    broker.stop().await;
}

#[tokio::test]
async fn a_client_that_sends_a_packet_to_its_end_is_told_that_it_is_too_large() {
    let packet_bytes_max = 8 << 20; // more than sockets hold: the door has to read it
    let accounts =
        AccountSettings { packet_bytes_max, outbound_bytes_max: packet_bytes_max, ..AccountSettings::default() };
    let (broker, _hub, access) = start(Settings { accounts, ..Settings::default() }).await;
    access.account("ha", &["a/#"], &["a/#"]);
    let mut ha = account(&broker, "ha", "x", true).await;
    let packet = publish("a/x", 1, 1, &vec![b'x'; packet_bytes_max], true);
    assert!(ha.sends(&packet).await, "its socket was reset, and a client that had not read would never know why");
    assert_eq!(ha.farewell().await, Some(0x95));
    broker.stop().await;
}

#[tokio::test]
async fn whoever_reads_too_slowly_loses_qos_0_and_is_closed_for_qos_1() {
    let accounts =
        AccountSettings { packet_bytes_max: 65_536, outbound_bytes_max: 65_536, ..AccountSettings::default() };
    for qos in [0, 1] {
        let (broker, _hub, access) = start(Settings { accounts: accounts.clone(), ..Settings::default() }).await;
        access.account("ha", &["a/#"], &["a/#"]);
        let mut slow = account(&broker, "ha", "slow", true).await;
        assert_eq!(subscribed(&mut slow, &["a/#"], qos).await, [qos]);
        let mut fast = account(&broker, "ha", "fast", false).await;
        let payload = "x".repeat(16_384);
        let full = |broker: &Broker| {
            let counters = broker.counters();
            counters.messages_dropped + counters.slow_readers > 0
        };
        while !full(&broker) {
            assert_eq!(published(&mut fast, "a/b", false, &payload).await, Some(0), "the sender is never held up");
        }
        let counters = broker.counters();
        assert_eq!((counters.messages_dropped > 0, counters.slow_readers), (qos == 0, u64::from(qos)));
        assert_eq!(broker.account_connections("ha"), if qos == 0 { 2 } else { 1 });
        broker.stop().await;
    }
}

#[tokio::test]
async fn no_more_are_sent_unacknowledged_than_the_client_takes() {
    let (broker, _hub, access) = start(Settings::default()).await;
    access.account("ha", &["a/#"], &["a/#"]);
    let mut hearing = Client::raw(broker.local_addr(), true).await;
    let login = Login::of("ha").v5(true).client_id("h").properties(&[0x21, 0, 2, 0x27, 0, 0, 1, 0]);
    assert_eq!(hearing.login(&login.packet()).await, Some(0));
    assert_eq!(subscribed(&mut hearing, &["a/#"], 1).await, [1]);
    let mut sender = account(&broker, "ha", "s", false).await;
    assert_eq!(published(&mut sender, "a/large", false, &"x".repeat(300)).await, Some(0));
    for number in 0..5 {
        assert_eq!(published(&mut sender, "a/b", false, &number.to_string()).await, Some(0));
    }
    let mut ids = Vec::new();
    for number in 0..2 {
        let (first, body) = hearing.next().await.unwrap();
        let message = read(first, &body, true);
        assert_eq!(message.payload, number.to_string(), "larger ones than it takes are left out");
        ids.push(message.id);
    }
    hears_nothing(&mut hearing).await;
    for number in 2..5 {
        let [high, low] = ids.remove(0).to_be_bytes();
        hearing.send(&[0x40, 2, high, low]).await;
        let (first, body) = hearing.next().await.unwrap();
        let message = read(first, &body, true);
        assert_eq!(message.payload, number.to_string());
        ids.push(message.id);
    }
    assert_eq!(broker.counters().messages_too_large, 1);
    broker.stop().await;
}

#[tokio::test]
async fn much_that_is_retained_is_heard_to_the_last_message() {
    let (broker, _hub, access) = start(Settings::default()).await;
    access.account("ha", &["a/#"], &["a/#"]);
    let mut sender = account(&broker, "ha", "s", false).await;
    let payload = "x".repeat(16_384);
    for number in 0..200 {
        assert_eq!(published(&mut sender, &format!("a/{number:03}"), true, &payload).await, Some(0));
    }
    for (v5, qos, receive_max) in [(false, 0, 0), (true, 1, 1), (true, 1, 65), (false, 1, 0)] {
        let mut hearing = Client::raw(broker.local_addr(), v5).await;
        let mut login = Login::of("ha").v5(v5).client_id("h");
        if receive_max > 0 {
            login = login.properties(&[0x21, 0, receive_max]);
        }
        assert_eq!(hearing.login(&login.packet()).await, Some(0));
        assert_eq!(subscribed(&mut hearing, &["a/#"], qos).await, [qos]);
        for number in 0..200 {
            let got = got(&mut hearing).await;
            assert_eq!((got.topic, got.first & 0x07), (format!("a/{number:03}"), qos << 1 | 1));
            assert_eq!(got.payload.len(), payload.len());
        }
        hears_nothing(&mut hearing).await;
    }
    broker.stop().await;
}

/// Whoever is asked about is known only once the test says so.
struct Later(tokio::sync::mpsc::UnboundedSender<tokio::sync::oneshot::Sender<Who>>);

impl Access for Later {
    fn admits(&self, user: &str, _: &[u8]) -> Answer {
        if user == "lamp" {
            return true.into();
        }
        let (tell, told) = tokio::sync::oneshot::channel();
        let _the_test_is_over = self.0.send(tell);
        Answer::Later(Box::pin(async move { told.await.unwrap_or(Who::Nobody) }))
    }
}

#[tokio::test]
async fn whose_password_takes_long_to_check_holds_up_nobody_and_is_asked_about_again_if_it_is_changed_meanwhile() {
    let (asked, mut asks) = tokio::sync::mpsc::unbounded_channel();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (broker, _hub) = broker::start(listener, Arc::new(Later(asked)), Settings::default()).await.unwrap();
    let rights = || Arc::new(Rights::new(&["a/#"], &[]).unwrap());
    let mut ha = Client::raw(broker.local_addr(), true).await;
    ha.send(&Login::of("ha").v5(true).packet()).await;
    let first = asks.recv().await.unwrap();
    let _lamp = Client::device(&broker, "lamp", MqttVersion::V5).await;
    broker.kick("ha"); // its password is another one now
    first.send(Who::Account(rights())).unwrap();
    asks.recv().await.unwrap().send(Who::Nobody).unwrap();
    assert_eq!(ha.next().await.map(|(first, body)| (first, body[1])), Some((0x20, 0x86)));
    assert_eq!(broker.account_connections("ha"), 0, "it was not in");
    for (who, code) in [(Who::Busy, 0x89), (Who::Account(rights()), 0)] {
        let mut ha = Client::raw(broker.local_addr(), true).await;
        ha.send(&Login::of("ha").v5(true).packet()).await;
        asks.recv().await.unwrap().send(who).unwrap();
        assert_eq!(ha.next().await.map(|(_, body)| body[1]), Some(code));
    }
    assert_eq!(broker.counters().refused_checking, 1);
    broker.stop().await;
}

#[tokio::test]
async fn filters_of_many_levels_are_refused_before_they_take_much_memory() {
    let accounts = AccountSettings { subscriptions_max: 4, ..AccountSettings::default() }; // 32 levels, 128 in all
    let (broker, _hub, access) = start(Settings { accounts, ..Settings::default() }).await;
    access.account("ha", &["#"], &["a/#"]);
    let deep = |name: &str, levels: usize| format!("{name}{}", "/x".repeat(levels - 1));
    let (of_30, of_3, of_2) = (deep("a", 30), deep("b", 3), deep("c", 2));
    let mut first = account(&broker, "ha", "0", true).await;
    assert_eq!(subscribed(&mut first, &[&of_30, &of_3, &of_2, &of_30, "d"], 0).await, [0, 0x97, 0, 0, 0x97]);
    first.send(&unsubscribe(9, &[&of_30], true)).await;
    assert_eq!(first.next().await.unwrap().0, 0xB0);
    assert_eq!(subscribed(&mut first, &[&of_3], 0).await, [0], "what has ended makes room");
    let mut others = Vec::new();
    for number in 1..=4 {
        let mut other = account(&broker, "ha", &number.to_string(), number % 2 == 0).await;
        assert_eq!(subscribed(&mut other, &[&of_30], 0).await, [0]);
        others.push(other);
    }
    let mut last = account(&broker, "ha", "5", false).await;
    assert_eq!(subscribed(&mut last, &[&of_3, &of_2], 0).await, [0, 0x80], "all have 128, which is the bound");
    assert_eq!(broker.counters().subscriptions_refused, 3);
    others.pop().unwrap().send(&[0xE0, 0]).await;
    while broker.counters().account_connections > 5 {
        tokio::task::yield_now().await;
    }
    assert_eq!(subscribed(&mut last, &[&of_2], 0).await, [0], "who has gone makes room");
    broker.stop().await;
}

#[tokio::test]
async fn a_kick_during_a_connect_tells_no_will_and_matters_to_nobody_of_another_name() {
    let (asked, mut asks) = tokio::sync::mpsc::unbounded_channel();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (broker, _hub) = broker::start(listener, Arc::new(Later(asked)), Settings::default()).await.unwrap();
    let rights = || Who::Account(Arc::new(Rights::new(&["a/#"], &["a/#"]).unwrap()));
    let mut hearing = Client::raw(broker.local_addr(), true).await;
    hearing.send(&Login::of("me").v5(true).packet()).await;
    asks.recv().await.unwrap().send(rights()).unwrap();
    assert_eq!(hearing.next().await.map(|(_, body)| body[1]), Some(0));
    assert_eq!(subscribed(&mut hearing, &["a/state"], 1).await, [1]);
    for (kicked, last, code) in [("z", None, 0), ("ha", Some(rights()), 0), ("ha", Some(Who::Nobody), 0x86)] {
        let mut ha = Client::raw(broker.local_addr(), true).await;
        ha.send(&Login::of("ha").v5(true).will("a/state", "offline").packet()).await;
        let first = asks.recv().await.unwrap();
        broker.kick(kicked);
        first.send(rights()).unwrap();
        if let Some(last) = last {
            asks.recv().await.unwrap().send(last).unwrap();
        }
        assert_eq!(ha.next().await.map(|(_, body)| body[1]), Some(code), "{kicked}");
        hears_nothing(&mut hearing).await;
        assert!(asks.try_recv().is_err(), "{kicked}: asked no more often than that");
        drop(ha);
        if code == 0 {
            assert_eq!(got(&mut hearing).await.payload, "offline", "one that was let in has its will");
        }
    }
    broker.stop().await;
}

#[tokio::test]
async fn rumqttc_is_an_account_with_wildcards_and_retained_messages() {
    use rumqttc::{AsyncClient, Event, MqttOptions, Packet, QoS};
    let (broker, _hub, access) = start(Settings::default()).await;
    access.account("ha", &["home/#"], &["home/#"]);
    let options = |id: &str| {
        let mut options = MqttOptions::new(id, "127.0.0.1", broker.local_addr().port());
        options.set_credentials("ha", "pw-ha");
        options
    };
    let (sender, mut sending) = AsyncClient::new(options("sender"), 10);
    for room in ["hall", "study"] {
        sender.publish(format!("home/{room}/light"), QoS::AtLeastOnce, true, room).await.unwrap();
    }
    let mut acknowledged = 0;
    while acknowledged < 2 {
        let event = tokio::time::timeout(PATIENCE, sending.poll()).await.unwrap().unwrap();
        acknowledged += usize::from(matches!(event, Event::Incoming(Packet::PubAck(_))));
    }
    let (hearer, mut hearing) = AsyncClient::new(options("hearer"), 10);
    hearer.subscribe("home/+/light", QoS::AtLeastOnce).await.unwrap();
    let mut heard = Vec::new();
    while heard.len() < 2 {
        if let Event::Incoming(Packet::Publish(publish)) =
            tokio::time::timeout(PATIENCE, hearing.poll()).await.unwrap().unwrap()
        {
            assert!(publish.retain && publish.qos == QoS::AtLeastOnce);
            heard.push(publish.topic);
        }
    }
    assert_eq!(heard, ["home/hall/light", "home/study/light"]);
    broker.stop().await;
}
