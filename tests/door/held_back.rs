//! A connection whose reports wait because the hub is busy: its pings are answered, its end is noticed, nothing is lost.

use tokio::sync::mpsc::Receiver;
use truetwin::broker::{Broker, FromDevice, MqttVersion::*, Receipt, Settings};

use crate::support::*;

/// Small packets, so that little is enough to use up what there is.
fn settings() -> Settings {
    Settings {
        packet_bytes_max: 1024,
        connect_bytes_max: 1024,
        credit_bytes: 16 * 1024,
        inflight_max: 100,
        ..Settings::default()
    }
}

/// Waits for something that the broker can be asked for.
async fn until(what: &str, broker: &Broker, so: impl Fn(&Broker) -> bool) {
    let by = tokio::time::Instant::now() + PATIENCE;
    while !so(broker) {
        assert!(tokio::time::Instant::now() < by, "{what}: {:?}", broker.counters());
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    }
}

/// A broker whose hub holds all credits: the receipts that free them, and the device that used them up.
async fn busy() -> (Broker, Receiver<FromDevice>, Vec<Receipt>, Client) {
    let (broker, mut hub, _) = start(settings()).await;
    let mut greedy = Client::device(&broker, "greedy", V3_1_1).await;
    expect(&mut hub, &["greedy connected 3.1.1"]).await;
    // Each costs 128 bytes besides its own: sixteen use up all credits, to the byte.
    for _ in 0..17 {
        greedy.report(&[b'x'; 1024 - 128]).await;
    }
    let mut receipts = Vec::new();
    for _ in 0..16 {
        let FromDevice::Event { receipt, .. } = hear(&mut hub).await else { panic!("an event") };
        receipts.push(receipt);
    }
    until("one more is held back", &broker, |broker| broker.counters().held_back_connections == 1).await;
    (broker, hub, receipts, greedy)
}

#[tokio::test]
async fn pings_subscriptions_and_commands_pass_by_reports_that_wait() {
    for version in [V3_1_1, V5] {
        let (broker, mut hub, receipts, mut greedy) = busy().await;
        assert!(greedy.lives().await, "held back itself");
        let mut lamp = Client::device(&broker, "lamp", version).await;
        let first = lamp.report(&[b'1'; 300]).await;
        let second = lamp.report(&[b'2'; 300]).await;
        assert!(lamp.lives().await);
        assert_eq!(lamp.subscribe("truetwin/lamp/command").await, Some(0));
        broker.send("lamp", "x".into(), 7).unwrap();
        assert_eq!(lamp.command().await, Some("x".into()));
        assert!(lamp.lives().await);
        receipts.into_iter().for_each(Receipt::taken);
        let mut lines = Vec::new();
        for _ in 0..5 {
            let line = hear_line(&mut hub).await;
            lines.push(
                line.split(' ')
                    .take(2)
                    .chain(line.split(' ').skip(2).map(|word| &word[..1]))
                    .collect::<Vec<_>>()
                    .join(" "),
            );
        }
        lines.retain(|line| line.starts_with("lamp event"));
        assert_eq!(lines, ["lamp event 1", "lamp event 2"], "in their order");
        assert_eq!(lamp.acknowledged().await, Some((first, 0)));
        assert_eq!(lamp.acknowledged().await, Some((second, 0)));
        assert_eq!(broker.counters().reports_unread, 0);
        broker.stop().await;
    }
}

#[tokio::test]
async fn a_full_window_is_held_back_in_the_same_way() {
    let (broker, mut hub, _) = start(Settings { inflight_max: 1, ..Settings::default() }).await;
    let mut lamp = Client::device(&broker, "lamp", V5).await;
    expect(&mut hub, &["lamp connected 5"]).await;
    for payload in ["1", "2", "3"] {
        lamp.report(payload.as_bytes()).await;
    }
    let FromDevice::Event { receipt, .. } = hear(&mut hub).await else { panic!("an event") };
    assert!(lamp.lives().await);
    receipt.taken();
    expect(&mut hub, &["lamp event 2", "lamp event 3"]).await;
    for id in 1..=3 {
        assert_eq!(lamp.acknowledged().await, Some((id, 0)));
    }
    broker.stop().await;
}

#[tokio::test]
async fn the_end_of_a_connection_that_is_held_back_is_noticed() {
    let (broker, mut hub, receipts, _greedy) = busy().await;
    let mut told = Vec::new();
    for (name, bytes) in [("goodbye", 100), ("lost", 100), ("full", 900)] {
        let mut lamp = Client::device(&broker, name, V3_1_1).await;
        // More than is kept of it: what lies behind is not read.
        for _ in 0..if bytes == 900 { 50 } else { 3 } {
            lamp.report(&vec![b'x'; bytes]).await;
        }
        if bytes == 100 {
            assert!(lamp.lives().await, "it is being read");
        }
        if name == "goodbye" {
            lamp.send(&[0xE0, 0]).await;
            assert_eq!(lamp.next().await, None);
        }
        drop(lamp);
        until(name, &broker, |broker| !broker.connected(name)).await;
        told.push(format!("{name} connected 3.1.1"));
        told.push(format!("{name} disconnected {}", if name == "goodbye" { "clean" } else { "lost" }));
    }
    let unread = broker.counters().reports_unread;
    assert!((7..=3 + 3 + 6).contains(&unread), "{unread} were read and wait for nobody any more");
    // What is told of it is what happened, and nothing of it is left.
    drop(receipts);
    let mut lines = Vec::new();
    while lines.len() < told.len() {
        lines.push(hear_line(&mut hub).await);
        lines.retain(|line| !line.starts_with("greedy"));
    }
    assert_eq!(lines, told);
    broker.stop().await;
}

#[tokio::test]
async fn keep_alive_counts_while_reports_wait() {
    let (broker, _hub, receipts, _greedy) = busy().await;
    let mut boards = Vec::new();
    for name in ["silent", "speaks"] {
        let mut board = Client::raw(broker.local_addr(), true).await;
        board.name = name.to_owned();
        assert_eq!(board.login(&Login::of(name).v5(true).keep_alive_s(1).packet()).await, Some(0));
        board.report(b"x").await;
        boards.push(board);
    }
    let by = tokio::time::Instant::now() + PATIENCE;
    while broker.connected("silent") {
        assert!(tokio::time::Instant::now() < by);
        assert!(boards[1].lives().await, "and the other one is");
    }
    assert_eq!(boards[0].farewell().await, Some(0x8D));
    assert!(boards[1].lives().await);
    assert_eq!(broker.counters().keep_alive_expiries, 1);
    drop(receipts);
    broker.stop().await;
}

#[tokio::test]
async fn what_cannot_be_understood_behind_reports_that_wait_ends_the_connection_at_once() {
    let (broker, _hub, _receipts, _greedy) = busy().await;
    let mut lamp = Client::device(&broker, "lamp", V5).await;
    lamp.report(b"x").await;
    lamp.send(&[0xF1, 0]).await;
    assert!(lamp.farewell().await.is_some());
    until("it is out", &broker, |broker| !broker.connected("lamp")).await;
    broker.stop().await;
}
