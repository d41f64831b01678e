//! Those who come in numbers, are silent, guess, or send without a pause: what each of them meets, and that nobody else does.

use std::time::Duration;

use tokio::net::TcpStream;
use truetwin::broker::{Broker, MqttVersion::*, Settings};

use crate::support::*;

/// Addresses of this machine, one for each neighbour.
const HERE: [u8; 4] = [127, 0, 0, 1];
const NEIGHBOUR: [u8; 4] = [127, 0, 0, 2];
const THIRD: [u8; 4] = [127, 0, 0, 3];

async fn login_from(broker: &Broker, from: [u8; 4], name: &str, password: &str) -> (Client, Option<u8>) {
    let mut client = Client::raw_from(from, broker.local_addr(), true).await;
    name.clone_into(&mut client.name);
    let code = client.login(&Login::of(name).v5(true).password(password).packet()).await;
    (client, code)
}

async fn comes_in(broker: &Broker, from: [u8; 4], name: &str) -> Client {
    let (client, code) = login_from(broker, from, name, &format!("pw-{name}")).await;
    assert_eq!(code, Some(0), "{name}");
    client
}

/// Waits for what the door has counted.
async fn counted(broker: &Broker, what: &str, many: u64) {
    let until = tokio::time::Instant::now() + PATIENCE;
    let now = || broker.counters().all().into_iter().find(|(name, _)| *name == what).unwrap().1;
    while now() < many {
        assert!(tokio::time::Instant::now() < until, "{what} is {} and not {many}", now());
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn one_address_has_so_many_connections_and_no_more_and_takes_over_its_own() {
    let settings = Settings { connections_per_address_max: 2, ..Settings::default() };
    let (broker, _hub, _) = start(settings).await;
    let first = comes_in(&broker, NEIGHBOUR, "a").await;
    let _second = comes_in(&broker, NEIGHBOUR, "b").await;
    assert_eq!(login_from(&broker, NEIGHBOUR, "c", "pw-c").await.1, Some(0x97));
    let mut old = Client::raw_from(NEIGHBOUR, broker.local_addr(), false).await;
    assert_eq!(old.login(&Login::of("c").packet()).await, Some(3));
    let _elsewhere = comes_in(&broker, THIRD, "c").await;
    let _again = comes_in(&broker, NEIGHBOUR, "a").await;
    drop(first);
    assert_eq!(login_from(&broker, NEIGHBOUR, "d", "pw-d").await.1, Some(0x97));
    assert_eq!(broker.counters().refused_address_full, 3);
    broker.kick("b");
    while broker.connected("b") {
        tokio::task::yield_now().await;
    }
    loop {
        let (_client, code) = login_from(&broker, NEIGHBOUR, "d", "pw-d").await;
        if code == Some(0) {
            break;
        }
        assert_eq!(code, Some(0x97), "until the one that was cut is gone");
    }
    broker.stop().await;
}

#[tokio::test]
async fn silent_sockets_of_one_address_wait_for_nobody_but_themselves() {
    let settings = Settings { handshakes_max: 64, handshakes_per_address_max: 4, ..Settings::default() };
    let (broker, hub, _) = start(settings).await;
    let _echo = echo(broker.clone(), hub);
    let mut silent = Vec::new();
    for _ in 0..40 {
        silent.push(Client::raw_from(NEIGHBOUR, broker.local_addr(), true).await);
    }
    counted(&broker, "refused_address", 36).await;
    for at in 0..10 {
        comes_in(&broker, HERE, &format!("d{at}")).await;
    }
    // Their own neighbour comes in too, once the oldest of them has been silent for a second.
    loop {
        let mut client = Client::raw_from(NEIGHBOUR, broker.local_addr(), true).await;
        if client.login(&Login::of("lamp").v5(true).packet()).await == Some(0) {
            break;
        }
    }
    assert_eq!(broker.counters().refused_crowded, 0, "nobody else was cut");
    broker.stop().await;
}

#[tokio::test]
async fn a_tls_handshake_that_stalls_at_any_byte_blocks_nobody_and_ends() {
    let authority = crate::tls::Authority::new();
    let settings = Settings { tls_handshake_ms: 300, handshake_ms: 300, ..authority.settings() };
    let (broker, hub, _) = start(settings).await;
    let _echo = echo(broker.clone(), hub);
    let mut stalled = Vec::new();
    for bytes in [&[][..], &[0x16], &[0x16, 3, 1, 2, 0], &[0x16, 3, 1, 2, 0, 1, 0, 1], &[0x10], &[0x10, 0x20, 0, 4]] {
        let mut client = Client::raw_from(NEIGHBOUR, broker.local_addr(), true).await;
        client.send(bytes).await;
        stalled.push(client);
    }
    let mut lamp = Client::subscribed(&broker, "lamp", V5).await;
    lamp.echoes("on").await;
    for mut client in stalled {
        assert_eq!(client.next().await, None);
    }
    assert_eq!(broker.counters().refused_silent, 6);
    broker.stop().await;
}

#[tokio::test]
async fn a_first_packet_that_is_too_large_is_refused_unread() {
    let (broker, _hub, _) = start(Settings { connect_bytes_max: 256, ..Settings::default() }).await;
    for (v5, code) in [(true, Some(0x95)), (false, None)] {
        let packet = Login::of("lamp").v5(v5).will("truetwin/lamp/status", &"x".repeat(300)).packet();
        let mut client = Client::raw(broker.local_addr(), v5).await;
        client.send(&packet[..20]).await;
        assert_eq!(client.next().await.map(|(_, body)| body[1]), code, "its beginning is enough");
    }
    assert_eq!(broker.counters().refused_connect_bytes, 2);
    Client::device(&broker, "lamp", V5).await;
    broker.stop().await;
}

#[tokio::test]
async fn a_device_that_sends_without_a_pause_is_slowed_and_loses_nothing_and_others_are_not() {
    let (broker, hub, _) = start(Settings { packets_per_s: 200, ..Settings::default() }).await;
    let _echo = echo(broker.clone(), hub);
    let mut mad = Client::device(&broker, "mad", V5).await;
    let mut lamp = Client::subscribed(&broker, "lamp", V3_1_1).await;
    for _ in 0..600 {
        mad.report(b"again").await;
    }
    counted(&broker, "slowed", 1).await;
    lamp.echoes("on").await;
    for _ in 0..600 {
        assert_eq!(mad.acknowledged().await.map(|(_, code)| code), Some(0));
    }
    assert!(lamp.lives().await && mad.lives().await);
    broker.stop().await;
}

#[tokio::test]
async fn guesses_become_slow_and_who_came_in_before_does_not_wait_for_them() {
    // Nobody waits for ten seconds: a login that did would find the counter changed.
    let settings = Settings { login_delay_max_ms: 10_000, ..Settings::default() };
    let (broker, _hub, _) = start(settings).await;
    drop(comes_in(&broker, NEIGHBOUR, "fan").await);
    for _ in 0..6 {
        assert_eq!(login_from(&broker, NEIGHBOUR, "lamp", "guess").await.1, Some(0x86));
    }
    assert_eq!(broker.counters().logins_delayed, 1, "the sixth");
    comes_in(&broker, NEIGHBOUR, "fan").await;
    comes_in(&broker, THIRD, "lock").await;
    assert_eq!(broker.counters().logins_delayed, 1, "neither of them waited");
    // The right one waits like a wrong one, and then comes in: behind the guesser's address, and under the name that is guessed.
    comes_in(&broker, NEIGHBOUR, "lock").await;
    comes_in(&broker, THIRD, "lamp").await;
    assert_eq!(broker.counters().logins_delayed, 3);
    broker.stop().await;
}

#[tokio::test]
async fn guesses_at_once_are_refused_unjudged_above_a_few() {
    let (broker, _hub, _) = start(Settings { login_delay_max_ms: 300, ..Settings::default() }).await;
    for _ in 0..6 {
        assert_eq!(login_from(&broker, NEIGHBOUR, "lamp", "guess").await.1, Some(0x86));
    }
    let packet = Login::of("lamp").v5(true).password("guess").packet();
    let mut clients = Vec::new();
    for _ in 0..10 {
        let mut client = Client::raw_from(NEIGHBOUR, broker.local_addr(), true).await;
        client.send(&packet).await;
        clients.push(client);
    }
    let mut codes = Vec::new();
    for client in &mut clients {
        codes.push(client.next().await.map(|(_, body)| body[1]));
    }
    assert_eq!(codes.iter().filter(|code| **code == Some(0x97)).count(), 6, "{codes:?}");
    assert_eq!(broker.counters().refused_guessing, 6);
    comes_in(&broker, NEIGHBOUR, "lamp").await;
    broker.stop().await;
}

#[tokio::test]
async fn connects_without_a_login_by_the_hundred_leave_nothing_behind() {
    let (broker, hub, _) = start(Settings { login_delay_max_ms: 0, ..Settings::default() }).await;
    let _echo = echo(broker.clone(), hub);
    let mut lamp = Client::subscribed(&broker, "lamp", V5).await;
    for at in 0..500u32 {
        let mut client = Client::raw(broker.local_addr(), true).await;
        match at % 4 {
            0 => assert_eq!(
                client.login(&Login { user: None, password: None, ..Login::of("x").v5(true) }.packet()).await,
                Some(0x87)
            ),
            1 => assert_eq!(client.login(&Login::of("lamp").v5(true).password("x").packet()).await, Some(0x86)),
            2 => client.send(b"GET / HTTP/1.0\r\n\r\n").await,
            _ => drop(TcpStream::connect(broker.local_addr()).await),
        }
        if at % 50 == 0 {
            lamp.echoes("on").await;
        }
    }
    let settled = || broker.counters().connections == 1;
    while !settled() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    broker.stop().await;
}
