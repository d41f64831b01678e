//! How connections end, and what is told of it.

use truetwin::broker::{MqttVersion::*, Settings};

use crate::support::*;

/// A device with a will on its own status.
async fn with_will(broker: &truetwin::broker::Broker, name: &str, v5: bool, keep_alive_s: u16) -> Client {
    let mut client = Client::raw(broker.local_addr(), v5).await;
    client.name = name.to_owned();
    let login = Login::of(name).v5(v5).keep_alive_s(keep_alive_s).will(&format!("truetwin/{name}/status"), "gone");
    assert_eq!(client.login(&login.packet()).await, Some(0));
    client
}

#[tokio::test]
async fn s5_5_a_will_is_told_at_each_end_but_a_goodbye() {
    let (broker, mut hub, _) = start(Settings::default()).await;
    let (connected_3, connected_5) = ("lamp connected 3.1.1", "lamp connected 5");
    let goodbyes: [(bool, &[u8], &str, bool); 5] = [
        (false, &[0xE0, 0], "clean", false),
        (true, &[0xE0, 0], "clean", false),
        (true, &[0xE0, 1, 4], "goodbye_with_will", true),
        (true, &[0xE0, 2, 0x80, 0], "goodbye_with_will", true),
        (false, &[0xF0, 0], "protocol_error", true),
    ];
    for (v5, goodbye, why, told) in goodbyes {
        let mut lamp = with_will(&broker, "lamp", v5, 60).await;
        lamp.send(goodbye).await;
        expect(&mut hub, &[if v5 { connected_5 } else { connected_3 }]).await;
        if told {
            expect(&mut hub, &["lamp will gone"]).await;
        }
        expect(&mut hub, &[&format!("lamp disconnected {why}")]).await;
    }
    drop(with_will(&broker, "lamp", true, 60).await);
    expect(&mut hub, &[connected_5, "lamp will gone", "lamp disconnected lost"]).await;
    broker.stop().await;
}

#[tokio::test]
async fn a_second_connection_takes_over_and_the_first_ones_will_comes_before_it() {
    let (broker, mut hub, _) = start(Settings::default()).await;
    let mut first = with_will(&broker, "lamp", true, 60).await;
    let id = first.report(b"1").await;
    let mut second = with_will(&broker, "lamp", false, 60).await;
    second.report(b"2").await;
    let lines = ["connected 5", "event 1", "will gone", "disconnected taken_over", "connected 3.1.1", "event 2"];
    expect(&mut hub, &lines.map(|line| format!("lamp {line}")).each_ref().map(String::as_str)).await;
    let mut seen = Vec::new();
    while let Some((packet, body)) = first.next().await {
        seen.push((packet, body[0]));
    }
    assert_eq!(seen.last(), Some(&(0xE0, 0x8E)), "{id}");
    assert!(broker.connected("lamp"));
    assert!(second.lives().await);
    assert_eq!(broker.counters().takeovers, 1);
    broker.stop().await;
}

#[tokio::test]
async fn a_report_of_a_connection_that_was_taken_over_is_acknowledged_to_nobody() {
    let (broker, mut hub, _) = start(Settings::default()).await;
    let mut first = Client::device(&broker, "lamp", V3_1_1).await;
    first.report(b"1").await;
    hear(&mut hub).await;
    let truetwin::broker::FromDevice::Event { receipt, .. } = hear(&mut hub).await else { panic!("an event") };
    let mut second = Client::device(&broker, "lamp", V3_1_1).await;
    receipt.taken();
    assert!(second.lives().await, "and PINGRESP is the first thing that it hears");
    assert_eq!(first.acknowledged().await, None);
    assert_eq!(broker.counters().unacknowledged_bytes, 0);
    broker.stop().await;
}

#[tokio::test]
async fn s5_6_of_two_boards_with_one_name_the_one_that_is_in_stays() {
    let (broker, mut hub, _) = start(Settings::default()).await;
    let login = |id: &str, v5| Login::of("lamp").client_id(id).v5(v5).packet();
    let mut boards = Vec::new();
    for id in ["board-1", "board-2", "board-1"] {
        let mut board = Client::raw(broker.local_addr(), true).await;
        assert_eq!(board.login(&login(id, true)).await, Some(0));
        boards.push(board);
    }
    for (v5, code) in [(true, 0x8A), (false, 2)] {
        let mut refused = Client::raw(broker.local_addr(), v5).await;
        assert_eq!(refused.login(&login("board-2", v5)).await, Some(code));
        assert_eq!(refused.next().await, None);
    }
    assert!(boards[2].lives().await, "the incumbent stays");
    assert_eq!(broker.counters().refused_rivals, 2);
    let mut again = Client::raw(broker.local_addr(), true).await;
    assert_eq!(again.login(&login("board-1", true)).await, Some(0), "a board that comes back is no rival of itself");
    again.send(&[0xE0, 0]).await;
    while hear_line(&mut hub).await != "lamp disconnected clean" {}
    let mut other = Client::raw(broker.local_addr(), true).await;
    assert_eq!(other.login(&login("board-2", true)).await, Some(0), "the place is free");
    broker.stop().await;
}

#[tokio::test]
async fn s5_5_a_device_that_falls_silent_ends_and_one_that_speaks_does_not() {
    let (broker, mut hub, _) = start(Settings::default()).await;
    let mut lamp = Client::device(&broker, "lamp", V3_1_1).await;
    let mut silent = with_will(&broker, "silent", true, 1).await;
    expect(&mut hub, &["lamp connected 3.1.1", "silent connected 5"]).await;
    // Commands that it is sent are no sign of life: rumqttd took them for one.
    silent.subscribe("truetwin/silent/command").await;
    let deadline = tokio::time::Instant::now() + PATIENCE;
    let mut ticket = 0;
    loop {
        assert!(tokio::time::Instant::now() < deadline, "it was never given up");
        broker.send("silent", "x".into(), ticket).unwrap();
        ticket += 1;
        let line = hear_line(&mut hub).await;
        if line != format!("silent written {}", ticket - 1) {
            assert_eq!(line, "silent will gone");
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await; // the pace of the commands, nothing waits for it
    }
    while hear_line(&mut hub).await != "silent disconnected keep_alive" {}
    assert_eq!(silent.farewell().await, Some(0x8D));
    assert!(lamp.lives().await);
    assert_eq!(broker.counters().keep_alive_expiries, 1);
    broker.stop().await;
}

#[tokio::test]
async fn a_device_without_keep_alive_gets_the_largest() {
    let (broker, mut hub, _) = start(Settings { keep_alive_max_s: 1, ..Settings::default() }).await;
    let mut lamp = Client::raw(broker.local_addr(), false).await;
    lamp.login(&Login::of("lamp").keep_alive_s(0).packet()).await;
    expect(&mut hub, &["lamp connected 3.1.1", "lamp disconnected keep_alive"]).await;
    assert_eq!(lamp.next().await, None);
    broker.stop().await;
}

#[tokio::test]
async fn a_kick_cuts_at_once_and_only_that_device() {
    let (broker, mut hub, passwords) = start(Settings::default()).await;
    let mut lamp = with_will(&broker, "lamp", true, 60).await;
    let mut lock = Client::device(&broker, "lock", V3_1_1).await;
    expect(&mut hub, &["lamp connected 5", "lock connected 3.1.1"]).await;
    passwords.0.lock().unwrap().insert("lamp".to_owned(), "new".to_owned());
    broker.kick("lamp");
    assert!(!broker.connected("lamp"));
    expect(&mut hub, &["lamp will gone", "lamp disconnected kicked"]).await;
    assert_eq!(lamp.farewell().await, Some(0x98));
    let mut again = Client::raw(broker.local_addr(), true).await;
    assert_eq!(again.login(&Login::of("lamp").v5(true).packet()).await, Some(0x86));
    let mut again = Client::raw(broker.local_addr(), true).await;
    assert_eq!(again.login(&Login::of("lamp").v5(true).password("new").packet()).await, Some(0));
    assert!(lock.lives().await);
    broker.kick("nobody");
    assert_eq!(broker.counters().kicks, 1);
    broker.stop().await;
}

#[tokio::test]
async fn stop_says_goodbye_closes_everything_and_ends_the_hubs_channel() {
    let (broker, mut hub, _) = start(Settings::default()).await;
    let mut lamp = with_will(&broker, "lamp", true, 60).await;
    let mut lock = Client::device(&broker, "lock", V3_1_1).await;
    let mut silent = Client::raw(broker.local_addr(), false).await;
    expect(&mut hub, &["lamp connected 5", "lock connected 3.1.1"]).await;
    let stopping = tokio::spawn({
        let broker = broker.clone();
        async move { broker.stop().await }
    });
    assert_eq!(lamp.farewell().await, Some(0x8B));
    assert_eq!(lock.next().await, None);
    assert_eq!(silent.next().await, None);
    let mut lines = vec![hear_line(&mut hub).await, hear_line(&mut hub).await];
    lines.sort();
    assert_eq!(lines, ["lamp disconnected stopped", "lock disconnected stopped"]);
    stopping.await.unwrap();
    assert!(hub.recv().await.is_none());
    assert!(tokio::net::TcpStream::connect(broker.local_addr()).await.is_err(), "the port is free");
    broker.stop().await; // again, and no harm
}
