//! Who is let in, and with which code who is not.

use truetwin::broker::{MqttVersion::*, Settings};

use crate::support::*;

const OWN_STATUS: &str = "truetwin/lamp/status";

#[tokio::test]
async fn each_refused_login_has_its_code_in_both_versions() {
    let (broker, _hub, _) = start(Settings { login_delay_max_ms: 0, ..Settings::default() }).await;
    let of = Login::of;
    let with_will = |topic: &str, qos, retain| {
        let mut login = of("lamp").will(topic, "gone");
        let will = login.will.as_mut().unwrap();
        (will.2, will.3) = (qos, retain);
        login
    };
    let without_user = Login { user: None, password: None, ..of("lamp") };
    let empty_id_kept = Login { client_id: Vec::new(), clean: false, ..of("lamp") };
    for (what, login, v3, v5) in [
        ("good", of("lamp"), 0, 0),
        ("wrong password", of("lamp").password("guess"), 4, 0x86),
        ("no password", Login { password: None, ..of("lamp") }, 4, 0x86),
        ("no user", without_user, 5, 0x87),
        ("a user that cannot be a device", of("Lamp"), 4, 0x86),
        ("a user with a wildcard", of("+"), 4, 0x86),
        ("a user with a Chinese name", of("灯"), 4, 0x86),
        ("an empty client id without clean session", empty_id_kept, 2, 0),
        ("a client id with wildcards and slashes", of("lamp").client_id("a/b+#$"), 0, 0),
        ("not clean", Login { clean: false, ..of("lamp") }, 0, 0),
        ("a will on the own status", with_will(OWN_STATUS, 1, false), 0, 0),
        ("a will on the own event", with_will("truetwin/lamp/event", 1, false), 5, 0x87),
        ("a will on another's status", with_will("truetwin/other/status", 1, false), 5, 0x87),
        ("a will that begins with no ASCII", with_will("é/x", 1, false), 5, 0x87),
        ("a retained will", with_will(OWN_STATUS, 1, true), 0, 0x9A),
        ("a will with QoS 2", with_will(OWN_STATUS, 2, false), 0, 0x9B),
        ("extended authentication", of("lamp").properties(&[0x15, 0, 1, b'x']), 0, 0x8C),
        ("a maximum packet size that its own CONNACK exceeds", of("lamp").properties(&[0x27, 0, 0, 0, 8]), 0, 0x95),
    ] {
        for (is_v5, code) in [(false, v3), (true, v5)] {
            let mut client = Client::raw(broker.local_addr(), is_v5).await;
            let login = login.clone().v5(is_v5);
            assert_eq!(client.login(&login.packet()).await, Some(code), "{what}, v5: {is_v5}");
            if code != 0 {
                assert_eq!(client.next().await, None, "closed after {what}");
            }
        }
    }
    let counters = broker.counters();
    assert_eq!(counters.logins_failed, 12);
    assert_eq!(counters.refused_will, 8);
    assert_eq!(counters.refused_client_id, 1);
    assert_eq!(counters.refused_unsupported, 2);
    broker.stop().await;
}

#[tokio::test]
async fn other_versions_and_other_protocols_are_told_so_or_closed() {
    let (broker, _hub, _) = start(Settings::default()).await;
    let connect = |name: &[u8], level: u8| {
        let mut body = Vec::new();
        text_field(&mut body, name);
        body.extend_from_slice(&[level, 2, 0, 60, 0, 1, b'x']);
        packet(0x10, &body)
    };
    for (bytes, answer) in [
        (connect(b"MQIsdp", 3), Some((0x20, vec![0, 1]))),
        (connect(b"MQTT", 3), Some((0x20, vec![0, 1]))),
        (connect(b"MQTT", 6), Some((0x20, vec![0, 0x84, 0]))),
        (connect(b"AMQP", 4), None),
        (b"GET / HTTP/1.1\r\n\r\n".to_vec(), None),
        (vec![0x16, 3, 1, 0, 0x80], None),                         // TLS
        (vec![0xC0, 0], None),                                     // a packet before CONNECT
        (publish("truetwin/lamp/event", 0, 0, b"x", false), None), //
        (vec![0x10, 0xFF, 0xFF, 0xFF, 0xFF], None),
        (vec![0x10, 0xFF, 0xFF, 0x7F], None), // two megabytes are announced
    ] {
        let mut client = Client::raw(broker.local_addr(), true).await;
        client.send(&bytes).await;
        assert_eq!(client.next().await, answer, "{bytes:x?}");
        if answer.is_some() {
            assert_eq!(client.next().await, None);
        }
    }
    assert_eq!(broker.counters().refused_version, 3);
    assert_eq!((broker.counters().refused_malformed, broker.counters().refused_connect_bytes), (6, 1));
    broker.stop().await;
}

#[tokio::test]
async fn connack_of_v5_says_what_is_not_offered() {
    let (broker, _hub, _) = start(Settings::default()).await;
    for (login, assigned, keep_alive) in [
        (Login::of("lamp"), &[][..], &[][..]),
        (Login::of("lamp").client_id(""), b"\x12\0\x09lamp-auto", &[]),
        (Login::of("lamp").keep_alive_s(0), &[], &[0x13, 0, 120]),
        (Login::of("lamp").keep_alive_s(65_535), &[], &[0x13, 0, 120]),
        (Login::of("lamp").properties(&[0x11, 0xFF, 0xFF, 0xFF, 0xFF]), &[], &[]),
    ] {
        let mut client = Client::raw(broker.local_addr(), true).await;
        client.send(&login.v5(true).packet()).await;
        let first: &[u8] = &[0x11, 0, 0, 0, 0, 0x21, 0, 10, 0x24, 1, 0x25, 0, 0x27, 0, 0, 0x10, 0];
        let properties = [first, assigned, &[0x28, 0, 0x29, 0, 0x2A, 0], keep_alive].concat();
        let expected = [&[0, 0, u8::try_from(properties.len()).unwrap()][..], &properties].concat();
        assert_eq!(client.next().await, Some((0x20, expected)));
    }
    broker.stop().await;
}

#[tokio::test]
async fn a_full_house_is_said_so_and_a_known_device_still_comes_back() {
    let (broker, mut hub, _) = start(Settings { connections_max: 1, ..Settings::default() }).await;
    let _lamp = Client::device(&broker, "lamp", V3_1_1).await;
    for (v5, code) in [(false, 3), (true, 0x89)] {
        let mut other = Client::raw(broker.local_addr(), v5).await;
        assert_eq!(other.login(&Login::of("other").v5(v5).packet()).await, Some(code));
    }
    assert_eq!(broker.counters().refused_busy, 2);
    let mut again = Client::device(&broker, "lamp", V3_1_1).await;
    assert!(again.lives().await);
    expect(&mut hub, &["lamp connected 3.1.1", "lamp disconnected taken_over", "lamp connected 3.1.1"]).await;
    broker.stop().await;
}

#[tokio::test]
async fn silent_sockets_end_by_the_deadline_and_block_nobody() {
    let (broker, _hub, _) = start(Settings { handshake_ms: 300, handshakes_max: 4, ..Settings::default() }).await;
    let mut silent = Vec::new();
    for at in 0..6 {
        let mut client = Client::raw(broker.local_addr(), false).await;
        let login = Login::of("slow").packet();
        client.send(&login[..at]).await; // some have begun to speak
        silent.push(client);
    }
    let mut lamp = Client::device(&broker, "lamp", V5).await;
    assert!(lamp.lives().await);
    for mut client in silent {
        assert_eq!(client.next().await, None);
    }
    assert_eq!(broker.counters().refused_silent, 6);
    broker.stop().await;
}

#[tokio::test]
async fn a_crowd_of_silent_sockets_is_cut_from_the_oldest_on() {
    let (broker, _hub, _) = start(Settings { handshake_ms: 60_000, handshakes_max: 3, ..Settings::default() }).await;
    let mut silent = Vec::new();
    for _ in 0..3 {
        silent.push(Client::raw(broker.local_addr(), false).await);
    }
    let mut lamp = Client::device(&broker, "lamp", V5).await;
    assert!(lamp.lives().await);
    assert_eq!(silent.remove(0).next().await, None, "the oldest one is cut");
    assert_eq!(broker.counters().refused_crowded, 1);
    broker.stop().await;
}

#[tokio::test]
async fn a_login_in_single_bytes_and_with_packets_behind_it_is_read() {
    let (broker, mut hub, _) = start(Settings::default()).await;
    let mut lamp = Client::raw(broker.local_addr(), false).await;
    let mut bytes = Login::of("lamp").packet();
    bytes.extend_from_slice(&subscribe(1, "truetwin/lamp/command", 1, false));
    bytes.extend_from_slice(&publish("truetwin/lamp/event", 1, 9, b"hello", false));
    for byte in bytes {
        lamp.send(&[byte]).await;
    }
    expect(&mut hub, &["lamp connected 3.1.1", "lamp event hello"]).await;
    let mut answers = Vec::new();
    for _ in 0..3 {
        answers.push(lamp.next().await.unwrap().0);
    }
    assert_eq!(answers, [0x20, 0x90, 0x40]);
    broker.stop().await;
}
