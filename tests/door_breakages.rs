//! Everything that rumqttd 0.20's own listener breaks at, done to the door: afterwards another device still gets its
//! echo, over the same router.
//!
//! | what breaks rumqttd's listener | test |
//! |---|---|
//! | P1: a topic, will or filter that begins with no ASCII kills the router | `p1_topics_and_wills_and_filters_that_begin_with_no_ascii`, `p1_topics_that_begin_with_no_ascii` |
//! | P2: a client id with `/`, or a refused client that retries, locks everybody out | `p2_client_ids_with_slashes_and_refused_clients_that_retry` |
//! | P3: a shared subscription with an unacknowledged message kills the router | `p3_shared_subscriptions_without_clean_session`, `p3_shared_subscriptions_with_unacknowledged_messages` |
//! | P4: a goodbye, or a bad PUBACK, while messages stream kills the router | `p4_goodbyes_while_messages_stream`, `p4_goodbyes_while_messages_stream_to_the_account` |
//! | P5: properties of MQTT 5 cut a subscriber of 3.1.1 | `p5_properties_of_v5_do_not_reach_a_device_of_3_1_1`, `p5_properties_for_a_subscriber_of_3_1_1` |
//! | P6: packet types of a server | `p6_packet_types_of_a_server` in both files |
//! | P7: a silent connection on TLS blocks all others | `p7_a_silent_connection_blocks_nobody`, `a_tls_handshake_that_stalls_at_any_byte_blocks_nobody_and_ends` |
//! | P8: 40 ms an answer, without `TCP_NODELAY` | no test of its own: `handshake.rs` sets it before the first byte; `make bench` shows the time of an answer |
//! | P9: ids of links that ended block the router | no link of the router ever ends while it lives: `fast_reconnects`, `nothing_that_breaks_rumqttds_listener_breaks_the_door` counts no rebuild |
//! | no persistence: retained messages are gone after a restart | `test_what_is_retained_outlives_a_killed_hub_and_its_orderly_stop` |
//! | PUBACK says nothing: acknowledged reports are lost | `a_report_is_acknowledged_only_when_it_was_taken_in_and_in_order`, `no_acknowledged_report_is_lost_and_none_comes_twice_however_often_the_router_dies_and_hangs` |
//! | a slow reader loses messages without a sign | `a_stuck_hub_holds_the_devices_back_and_nothing_is_lost`, `whoever_reads_too_slowly_loses_qos_0_and_is_closed_for_qos_1` |
//! | memory for each filter ever subscribed | `five_thousand_filters`, `filters_topics_and_client_ids_leave_nothing_behind` |
//! | memory for each distinct topic, each client id | `filters_topics_and_client_ids_leave_nothing_behind` |
//! | retained messages: without bound, cut at 100, not told again, cleared by an empty one without the flag | `retained_messages_are_bounded_whole_and_cleared_only_by_a_retained_one` |
//! | retained by any client | `retained_and_empty_payloads`, `another_devices_topics_and_everything`, `nobody_writes_where_only_the_hub_and_its_devices_do` |
//! | QoS 0 is delivered as 1 | `quality_is_never_raised_and_qos_2_is_closed` |
//! | QoS 2 is told twice or lost | `qos_2_in_every_order`, `quality_is_never_raised_and_qos_2_is_closed` |
//! | acknowledgements out of order end the connection; the client's receive maximum is ignored | `acknowledgements_out_of_order`, `acknowledgements_in_any_order_and_within_the_window` |
//! | a takeover tells the new connection's will and forgets it | `takeovers_with_wills`, `a_takeover_tells_the_old_will_and_keeps_the_new_one` |
//! | what is sent counts as a sign of life | `what_is_sent_to_a_client_is_no_sign_of_its_life`, `s5_5_a_device_that_falls_silent_ends_and_one_that_speaks_does_not` |
//! | keep-alive 0 is refused | `keep_alive_of_none` |
//! | topics and filters that are malformed, or begin with `$` | `bad_filters_and_topics`, `dollar_and_malformed_filters_and_topics` |
//! | no rights: any topic, any wildcard | `another_devices_topics_and_everything`, and the table of `attacks.rs` |
//! | refused without a CONNACK | `each_refused_login_has_its_code_in_both_versions` |
//! | what MQTT 5 has and rumqttd has not | `src/broker/interoperability.md` |
//! | a client with the name of a link ends that | `a_client_with_the_name_of_a_link` |
//! | a link that is not woken stands still; a blocked router blocks its callers | `a_router_that_dies_while_the_hub_is_stuck_loses_nothing_either`, `a_router_that_is_stuck_without_being_dead_is_found_by_its_canary` |
//! | anything else, at random | `mutated_packets_in_live_sessions`, and the fuzz of `attacks.rs` |
//!
//! One broker for all of it: a router's thread cannot be stopped, and one that has been through the others is the better test.
#![allow(missing_docs, clippy::unwrap_used, clippy::wildcard_enum_match_arm)]

#[path = "door_breakages/as_account.rs"]
mod as_account;
#[path = "door/support.rs"]
mod support;

use std::sync::Arc;

use support::*;
use truetwin::broker::{
    Broker,
    MqttVersion::{self, *},
    Settings,
};

/// A broker whose hub echoes, and the device that must still be served after each breakage.
struct Bench {
    broker: Broker,
    witness: Client,
}

impl Bench {
    async fn new() -> Self {
        let (broker, hub, _) = start(Settings::default()).await;
        echo(broker.clone(), hub);
        let witness = Client::subscribed(&broker, "witness", V3_1_1).await;
        Self { broker, witness }
    }

    async fn still_serves(&mut self, after: &str) {
        self.witness.echoes(after).await;
        assert_eq!(self.broker.counters().bus_rebuilds, 0, "after {after}");
    }

    async fn device(&self, version: MqttVersion) -> Client {
        Client::subscribed(&self.broker, "breaker", version).await
    }

    async fn raw(&self, version: MqttVersion) -> Client {
        Client::raw(self.broker.local_addr(), version == V5).await
    }
}

const BOTH: [MqttVersion; 2] = [V3_1_1, V5];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_that_breaks_rumqttds_listener_breaks_the_door() {
    let mut bench = Bench::new().await;
    p1_topics_and_wills_and_filters_that_begin_with_no_ascii(&mut bench).await;
    p2_client_ids_with_slashes_and_refused_clients_that_retry(&mut bench).await;
    p3_shared_subscriptions_without_clean_session(&mut bench).await;
    p4_goodbyes_while_messages_stream(&mut bench).await;
    p5_properties_of_v5_do_not_reach_a_device_of_3_1_1(&mut bench).await;
    p6_packet_types_of_a_server(&mut bench).await;
    p7_a_silent_connection_blocks_nobody(&mut bench).await;
    fast_reconnects(&mut bench).await;
    bad_filters_and_topics(&mut bench).await;
    five_thousand_filters(&mut bench).await;
    acknowledgements_out_of_order(&mut bench).await;
    keep_alive_of_none(&mut bench).await;
    retained_and_empty_payloads(&mut bench).await;
    qos_2_in_every_order(&mut bench).await;
    another_devices_topics_and_everything(&mut bench).await;
    takeovers_with_wills(&mut bench).await;
    a_client_with_the_name_of_a_link(&mut bench).await;
    mutated_packets_in_live_sessions(&mut bench).await;
    let counters = bench.broker.counters();
    assert_eq!((counters.bus_rebuilds, counters.bus_gaps), (0, 0));
    bench.broker.stop().await;
}

async fn p1_topics_and_wills_and_filters_that_begin_with_no_ascii(bench: &mut Bench) {
    for version in BOTH {
        let v5 = version == V5;
        for topic in ["é/x", "设备/灯/event", "灯", "truetwin/灯/event", "truetwin/breaker/event/灯", "\u{10FFFF}"]
        {
            for retain in [0, 1] {
                let mut device = bench.device(version).await;
                device.send(&publish_with(topic, 2 | retain, 7, "你好".as_bytes(), v5.then_some(&[]))).await;
                match (version, retain) {
                    (V5, 0) => assert_eq!(device.acknowledged().await, Some((7, 0x87)), "{topic}"),
                    (V5, _) => assert_eq!(device.farewell().await, Some(0x9A), "{topic}"),
                    (V3_1_1, _) => assert_eq!(device.next().await, None, "{topic}"),
                }
            }
            let mut device = bench.device(version).await;
            assert_eq!(device.subscribe(topic).await, Some(if v5 { 0x87 } else { 0x80 }), "{topic}");
            let mut device = bench.raw(version).await;
            let login = Login::of("breaker").v5(v5).will(topic, "gone").packet();
            assert_eq!(device.login(&login).await, Some(if v5 { 0x87 } else { 5 }), "{topic}");
        }
        bench.still_serves("P1").await;
    }
}

async fn p2_client_ids_with_slashes_and_refused_clients_that_retry(bench: &mut Bench) {
    for id in ["a/b", "+", "#", "$SYS", "灯", "hub-0", "door-0"] {
        for _ in 0..2 {
            let mut device = bench.raw(V3_1_1).await;
            assert_eq!(device.login(&Login::of("breaker").client_id(id).packet()).await, Some(0), "{id}");
        }
    }
    for _ in 0..10 {
        let mut device = bench.raw(V5).await;
        assert_eq!(device.login(&Login::of("breaker").v5(true).password("guess").packet()).await, Some(0x86));
    }
    bench.still_serves("P2").await;
}

async fn p3_shared_subscriptions_without_clean_session(bench: &mut Bench) {
    for version in BOTH {
        let mut device = bench.raw(version).await;
        let login = Login { clean: false, ..Login::of("breaker").v5(version == V5) };
        device.login(&login.packet()).await;
        let code = device.subscribe("$share/g/truetwin/breaker/command").await;
        assert_eq!(code, Some(if version == V5 { 0x9E } else { 0x80 }));
        device.subscribe("truetwin/breaker/command").await;
        device.name = "breaker".to_owned();
        device.report(b"x").await; // its echo is never acknowledged
        drop(device);
    }
    bench.still_serves("P3").await;
}

async fn p4_goodbyes_while_messages_stream(bench: &mut Bench) {
    for round in 0..60u16 {
        let version = BOTH[usize::from(round % 2)];
        let mut device = bench.device(version).await;
        let mut bytes = Vec::new();
        for id in 1..=300 {
            let qos = u8::from(id % 2 == 0);
            bytes.extend_from_slice(&publish("truetwin/breaker/event", qos, id, &[b'x'; 100], device.v5));
        }
        bytes.extend_from_slice(&[0xE0, 0]);
        device.send(&bytes).await;
        if round % 3 == 0 {
            while device.next().await.is_some() {} // the others do not even read
        }
    }
    bench.still_serves("P4").await;
}

async fn p5_properties_of_v5_do_not_reach_a_device_of_3_1_1(bench: &mut Bench) {
    let mut sender = bench.device(V5).await;
    let properties: &[u8] =
        &[0x01, 1, 0x02, 0, 0, 0, 9, 0x03, 0, 1, b't', 0x08, 0, 1, b'r', 0x09, 0, 1, 0, 0x26, 0, 1, b'a', 0, 1, b'b'];
    sender.send(&publish_with("truetwin/breaker/event", 2, 3, b"x", Some(properties))).await;
    // Late echoes of the flood before, to the same name, may come first.
    loop {
        let command = sender.command().await.expect("the payload comes, its properties stay with the door");
        if command != [b'x'; 100][..] {
            assert_eq!(command, "x", "the payload, and nothing of its properties");
            break;
        }
    }
    bench.still_serves("P5").await;
}

async fn p6_packet_types_of_a_server(bench: &mut Bench) {
    for version in BOTH {
        for packet in [
            &[0x20, 2, 0, 0][..], // CONNACK
            &[0xB0, 3, 0, 1, 0],  // UNSUBACK
            &[0x90, 3, 0, 1, 0],  // SUBACK
            &[0xD0, 0],           // PINGRESP
            &[0x50, 2, 0, 1],     // PUBREC
            &[0x62, 2, 0, 1],     // PUBREL
            &[0x70, 2, 0, 1],     // PUBCOMP
            &[0xF0, 0],           // AUTH
            &[0x00, 0],           // reserved
        ] {
            let mut device = bench.device(version).await;
            device.send(packet).await;
            assert_eq!(device.farewell().await, (version == V5).then_some(0x82), "{packet:x?}");
        }
    }
    bench.still_serves("P6").await;
}

async fn p7_a_silent_connection_blocks_nobody(bench: &mut Bench) {
    let mut silent = Vec::new();
    for _ in 0..50 {
        silent.push(bench.raw(V3_1_1).await);
    }
    let mut device = bench.device(V5).await;
    device.echoes("beside 50 silent sockets").await;
    bench.still_serves("P7").await;
}

async fn fast_reconnects(bench: &mut Bench) {
    let mut held = Vec::new();
    for round in 0..200 {
        let device = bench.device(BOTH[round % 2]).await;
        if round % 3 == 0 {
            held.push(device); // half open, as after a power cut
        }
    }
    for mut old in held {
        old.farewell().await;
    }
    assert!(bench.broker.counters().takeovers > 0);
    bench.still_serves("200 reconnects").await;
}

async fn bad_filters_and_topics(bench: &mut Bench) {
    for version in BOTH {
        let v5 = version == V5;
        let mut device = bench.device(version).await;
        for filter in ["a/#/b", "a+", "", "#a", "//", "+/+", "$SYS/#", "truetwin/breaker/command/"] {
            let code = device.subscribe(filter).await.unwrap();
            assert!(code >= 0x80, "{filter}");
        }
        for topic in ["a/#", "", "+", "truetwin/+/event"] {
            let mut device = bench.device(version).await;
            device.send(&publish(topic, 1, 1, b"x", v5)).await;
            let code = if topic.is_empty() { 0x82 } else { 0x90 };
            assert_eq!(device.farewell().await, v5.then_some(code), "{topic}");
        }
        let mut device = bench.device(version).await;
        device.send(&publish("truetwin/breaker/event\0", 1, 1, b"x", v5)).await;
        assert_eq!(device.farewell().await, v5.then_some(0x81));
    }
    bench.still_serves("bad filters and topics").await;
}

async fn five_thousand_filters(bench: &mut Bench) {
    for version in BOTH {
        let v5 = version == V5;
        let mut device = bench.device(version).await;
        for hundred in 0..50 {
            let names: Vec<String> = (0..100).map(|at| format!("f/{hundred}/{at}")).collect();
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            device.send(&subscribe_with(1, &names, 1, v5.then_some(&[]))).await;
            let (first, body) = device.next().await.unwrap();
            assert_eq!((first, body.len()), (0x90, 102 + usize::from(v5)));
            device.send(&unsubscribe(2, &names, v5)).await;
            assert_eq!(device.next().await.unwrap().0, 0xB0);
        }
    }
    bench.still_serves("5000 filters").await;
}

async fn acknowledgements_out_of_order(bench: &mut Bench) {
    for version in BOTH {
        let mut device = bench.device(version).await;
        for id in [3u8, 1, 2, 200, 1] {
            device.send(&[0x40, 2, 0, id]).await;
        }
        device.echoes("after acknowledging what was never sent").await;
        device.send(&[0x40, 2, 0, 0]).await; // an id that cannot be
        device.farewell().await;
    }
    bench.still_serves("acknowledgements").await;
}

async fn keep_alive_of_none(bench: &mut Bench) {
    for version in BOTH {
        let mut device = bench.raw(version).await;
        let login = Login::of("breaker").v5(version == V5).keep_alive_s(0);
        assert_eq!(device.login(&login.packet()).await, Some(0));
        assert!(device.lives().await);
    }
    bench.still_serves("keep-alive 0").await;
}

async fn retained_and_empty_payloads(bench: &mut Bench) {
    let mut device = bench.device(V3_1_1).await;
    for payload in [&b"kept"[..], b""] {
        device.send(&publish_with("truetwin/breaker/event", 3, 9, payload, None)).await;
        let mut firsts = Vec::new();
        for _ in 0..2 {
            firsts.push(device.next().await.unwrap().0);
        }
        firsts.sort_unstable();
        assert_eq!(firsts, [0x30, 0x40], "acknowledged, and echoed without the retain flag");
    }
    device.subscribe("truetwin/breaker/command").await;
    assert!(device.lives().await, "nothing retained comes");
    let mut device = bench.device(V5).await;
    device.send(&publish_with("truetwin/breaker/event", 1, 0, b"", Some(&[]))).await;
    assert_eq!(device.farewell().await, Some(0x9A));
    bench.still_serves("retained").await;
}

async fn qos_2_in_every_order(bench: &mut Bench) {
    for version in BOTH {
        let v5 = version == V5;
        for flags in [0x04, 0x0C] {
            let mut device = bench.device(version).await;
            device.send(&publish_with("truetwin/breaker/event", flags, 1, b"x", v5.then_some(&[]))).await;
            device.send(&[0x62, 2, 0, 1]).await;
            assert_eq!(device.farewell().await, v5.then_some(0x9B));
        }
    }
    bench.still_serves("QoS 2").await;
}

async fn another_devices_topics_and_everything(bench: &mut Bench) {
    let mut device = bench.device(V5).await;
    for filter in ["#", "truetwin/witness/command", "truetwin/#", "+/+/+", "up", "down"] {
        assert!(device.subscribe(filter).await.unwrap() >= 0x80, "{filter}");
    }
    for (id, topic) in (1..).zip(["truetwin/witness/event", "truetwin/witness/command", "up", "down"]) {
        device.send(&publish(topic, 1, id, b"forged", true)).await;
        assert_eq!(device.acknowledged().await, Some((id, 0x87)), "{topic}");
    }
    bench.still_serves("forgery").await;
    device.send(&[0xC0, 0]).await;
    assert_eq!(device.next().await, Some((0xD0, vec![])), "nothing of the witness came here");
}

async fn takeovers_with_wills(bench: &mut Bench) {
    let mut devices = Vec::new();
    for round in 0..20 {
        let mut device = bench.raw(BOTH[round % 2]).await;
        let login = Login::of("breaker").v5(round % 2 == 1).will("truetwin/breaker/status", "gone");
        assert_eq!(device.login(&login.packet()).await, Some(0));
        devices.push(device);
    }
    assert!(devices.pop().unwrap().lives().await);
    bench.still_serves("takeovers").await;
}

async fn a_client_with_the_name_of_a_link(bench: &mut Bench) {
    for name in ["hub", "door", "hub-0", "up", "down"] {
        let mut device = Client::subscribed(&bench.broker, name, V5).await;
        device.echoes("a device may be called like a link").await;
    }
    bench.still_serves("names of links").await;
}

/// Packets that are nearly right, each in a session that was just let in. Deterministic.
async fn mutated_packets_in_live_sessions(bench: &mut Bench) {
    let mut state = 0x2545_F491_4F6C_DD1Du64;
    let mut random = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from(state >> 33).unwrap()
    };
    let broker = Arc::new(bench.broker.clone());
    for round in 0..2_000 {
        let v5 = round % 2 == 1;
        let own = "truetwin/breaker/event";
        let seeds = [
            publish(own, 1, 7, b"payload", v5),
            publish_with(own, 0, 0, b"", v5.then_some(&[0x26, 0, 1, b'a', 0, 1, b'b'])),
            subscribe(3, "truetwin/breaker/command", 1, v5),
            unsubscribe(4, &["truetwin/breaker/command"], v5),
            vec![0x40, 2, 0, 7],
            vec![0xC0, 0],
            vec![0xE0, 0],
            Login::of("breaker").v5(v5).packet(),
        ];
        let mut bytes = Login::of("breaker").v5(v5).packet();
        for _ in 0..3 {
            let mut packet = seeds[random() % seeds.len()].clone();
            for _ in 0..random() % 3 {
                let at = random() % packet.len();
                match random() % 3 {
                    0 => packet[at] = u8::try_from(random() % 256).unwrap(),
                    1 => packet[at] ^= 1 << (random() % 8),
                    _ => packet.insert(at, u8::try_from(random() % 256).unwrap()),
                }
            }
            bytes.extend_from_slice(&packet);
        }
        let mut client = Client::raw(broker.local_addr(), v5).await;
        client.send(&bytes).await;
        if round % 8 == 0 {
            client.next().await; // CONNACK; the others leave at once
        }
    }
    bench.still_serves("mutated packets").await;
}
