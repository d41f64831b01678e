//! Commands and their fates: exactly one for each ticket.

use std::time::{Duration, Instant};

use bytes::Bytes;
use truetwin::broker::{FromDevice, MqttVersion::*, SendError, Settings};

use crate::support::*;

#[tokio::test]
async fn a_command_whose_time_is_over_on_the_bus_never_reaches_the_device() {
    let (broker, mut hub, _) = start(Settings::default()).await;
    let mut lamp = Client::device(&broker, "lamp", V5).await;
    lamp.subscribe("truetwin/lamp/command").await;
    expect(&mut hub, &["lamp connected 5"]).await;
    let now = Instant::now();
    broker.send_until("lamp", "late".into(), 1, now - Duration::from_millis(1)).unwrap();
    broker.send_until("lamp", "in time".into(), 2, now + Duration::from_secs(60)).unwrap();
    expect(&mut hub, &["lamp lost 1 expired", "lamp written 2"]).await;
    // The same of one that waited for a new router.
    broker.stall_bus();
    broker.send_until("lamp", "late".into(), 3, Instant::now() + Duration::from_millis(100)).unwrap();
    expect(&mut hub, &["bus down", "bus up", "lamp lost 3 expired"]).await;
}

#[tokio::test]
async fn each_command_that_cannot_be_written_says_why() {
    let (broker, mut hub, _) = start(Settings::default()).await;
    broker.send("lamp", "x".into(), 1).unwrap();
    expect(&mut hub, &["lamp lost 1 not_connected"]).await;
    let long = "x".repeat(1000);
    broker.send(&long, "x".into(), 2).unwrap();
    expect(&mut hub, &[&format!("{long} lost 2 not_connected")]).await;

    let mut lamp = Client::device(&broker, "lamp", V3_1_1).await;
    expect(&mut hub, &["lamp connected 3.1.1"]).await;
    broker.send("lamp", "x".into(), 3).unwrap();
    expect(&mut hub, &["lamp lost 3 not_subscribed"]).await;
    lamp.subscribe("truetwin/lamp/command").await;
    broker.send("lamp", vec![b'x'; 4097].into(), 4).unwrap();
    broker.send("lamp", vec![b'x'; 4090].into(), 5).unwrap();
    broker.send("lamp", vec![b'x'; 4000].into(), 6).unwrap();
    expect(&mut hub, &["lamp lost 4 too_large", "lamp lost 5 too_large", "lamp written 6"]).await;
    lamp.send(&unsubscribe(2, &["truetwin/lamp/command"], false)).await;
    assert!(lamp.lives().await);
    broker.send("lamp", "x".into(), 7).unwrap();
    expect(&mut hub, &["lamp lost 7 not_subscribed"]).await;
    drop(lamp);
    expect(&mut hub, &["lamp disconnected lost"]).await;
    broker.send("lamp", "x".into(), 8).unwrap();
    expect(&mut hub, &["lamp lost 8 not_connected"]).await;
    let counters = broker.counters();
    assert_eq!((counters.commands_in, counters.commands_written, counters.commands_lost), (8, 1, 7));
    broker.stop().await;
}

#[tokio::test]
async fn a_device_that_takes_only_small_packets_gets_no_larger_ones() {
    let (broker, mut hub, _) = start(Settings::default()).await;
    let mut lamp = Client::raw(broker.local_addr(), true).await;
    lamp.login(&Login::of("lamp").v5(true).properties(&[0x27, 0, 0, 0, 100]).packet()).await;
    lamp.subscribe("truetwin/lamp/command").await;
    let head = 2 + 2 + "truetwin/lamp/command".len() + 1;
    broker.send("lamp", vec![b'x'; 100 - head].into(), 1).unwrap();
    broker.send("lamp", vec![b'x'; 101 - head].into(), 2).unwrap();
    let mut fates = Vec::new();
    for _ in 0..3 {
        fates.push(hear_line(&mut hub).await);
    }
    fates.sort();
    assert_eq!(fates, ["lamp connected 5", "lamp lost 2 too_large", "lamp written 1"]);
    assert_eq!(lamp.command().await.unwrap().len(), 100 - head);
    broker.stop().await;
}

#[tokio::test]
async fn commands_keep_their_order_and_so_do_their_fates() {
    let (broker, mut hub, _) = start(Settings::default()).await;
    let mut lamp = Client::subscribed(&broker, "lamp", V5).await;
    expect(&mut hub, &["lamp connected 5"]).await;
    for ticket in 1..=50u64 {
        broker.send("lamp", Bytes::from(ticket.to_string()), ticket).unwrap();
    }
    for ticket in 1..=50u64 {
        assert_eq!(lamp.command().await, Some(Bytes::from(ticket.to_string())));
        assert_eq!(hear_line(&mut hub).await, format!("lamp written {ticket}"));
    }
    broker.stop().await;
}

#[tokio::test]
async fn a_device_that_never_reads_loses_its_commands_and_holds_up_nobody() {
    let (broker, mut hub, _) = start(Settings::default()).await;
    let deaf = Client::subscribed(&broker, "deaf", V3_1_1).await;
    let mut lamp = Client::subscribed(&broker, "lamp", V5).await;
    expect(&mut hub, &["deaf connected 3.1.1", "lamp connected 5"]).await;
    // Until the kernel's buffers and ours are full.
    let (mut sent, mut written, mut lost) = (0u64, 0u64, 0u64);
    while lost == 0 {
        assert!(sent < 100_000, "some 8 MB of buffers must be full by now");
        for _ in 0..10 {
            sent += 1;
            broker.send("deaf", vec![b'x'; 4000].into(), sent).unwrap();
        }
        broker.send("lamp", "on".into(), u64::MAX).unwrap();
        assert_eq!(lamp.command().await, Some("on".into()), "the other one is served");
        loop {
            match hear_line(&mut hub).await.as_str() {
                line if line.starts_with("deaf written") => written += 1,
                line if line.ends_with("outbound_full") => lost += 1,
                line => {
                    assert_eq!(line, format!("lamp written {}", u64::MAX));
                    break;
                }
            }
        }
    }
    // The end of the connection settles the rest: each ticket has exactly one fate.
    drop(deaf);
    loop {
        let line = hear_line(&mut hub).await;
        if line.starts_with("deaf written") {
            written += 1;
        } else if line.starts_with("deaf lost") {
            lost += 1;
        } else {
            assert_eq!(line, "deaf disconnected lost");
            break;
        }
    }
    assert_eq!(written + lost, sent);
    broker.stop().await;
}

#[tokio::test]
async fn commands_that_wait_are_lost_when_another_connection_takes_over() {
    let (broker, mut hub, _) = start(Settings::default()).await;
    let deaf = Client::subscribed(&broker, "deaf", V3_1_1).await;
    expect(&mut hub, &["deaf connected 3.1.1"]).await;
    let mut sent = 1;
    'full: loop {
        broker.send("deaf", vec![b'x'; 4000].into(), sent).unwrap();
        sent += 1;
        while broker.counters().bus_waiting > 0 {
            tokio::task::yield_now().await;
        }
        while let Ok(message) = hub.try_recv() {
            if matches!(message, FromDevice::Lost { .. }) {
                break 'full;
            }
        }
    }
    let mut again = Client::subscribed(&broker, "deaf", V3_1_1).await;
    let mut lines = Vec::new();
    while lines.last().is_none_or(|line| line != "deaf connected 3.1.1") {
        lines.push(hear_line(&mut hub).await);
    }
    let lost = lines.iter().filter(|line| line.ends_with("connection_closed")).count();
    assert!(lost >= 1, "{lines:?}");
    assert_eq!(lines[lines.len() - 2], "deaf disconnected taken_over");
    broker.send("deaf", "new".into(), 1_000_000).unwrap();
    assert_eq!(again.command().await, Some("new".into()), "nothing of the old connection comes here");
    drop(deaf);
    broker.stop().await;
}

#[tokio::test]
async fn a_stop_leaves_no_command_without_its_fate() {
    let (broker, mut hub, _) = start(Settings::default()).await;
    let _lamp = Client::subscribed(&broker, "lamp", V5).await;
    expect(&mut hub, &["lamp connected 5"]).await;
    for ticket in 1..=100 {
        broker.send(if ticket % 2 == 0 { "lamp" } else { "nobody" }, "x".into(), ticket).unwrap();
    }
    broker.stop().await;
    let mut fates = Vec::new();
    while let Some(message) = hub.recv().await {
        if let FromDevice::Written { ticket, .. } | FromDevice::Lost { ticket, .. } = message {
            fates.push(ticket);
        }
    }
    fates.sort_unstable();
    assert_eq!(fates, (1..=100).collect::<Vec<_>>());
}

#[tokio::test]
async fn commands_under_way_are_bounded() {
    let (broker, mut hub, _) = start(Settings { command_bytes_max: 4096, ..Settings::default() }).await;
    // The runtime of this test has one thread: nothing is read from the bus while this loop does not wait.
    let mut accepted = 0u64;
    let error = loop {
        match broker.send("lamp", vec![b'x'; 1000].into(), accepted + 1) {
            Ok(()) => accepted += 1,
            Err(error) => break error,
        }
    };
    assert_eq!(error, SendError::Full);
    assert_eq!(accepted, 4);
    for ticket in 1..=accepted {
        assert_eq!(hear_line(&mut hub).await, format!("lamp lost {ticket} not_connected"));
    }
    broker.send("lamp", "x".into(), 9).unwrap();
    broker.stop().await;
    assert_eq!(broker.send("lamp", "x".into(), 10), Err(SendError::BusDown), "stopped");
}

#[tokio::test]
async fn a_hub_that_does_not_hear_the_fates_is_told_that_there_are_too_many() {
    let settings = Settings { connections_max: 1, ..Settings::default() };
    let (broker, mut hub, _) = start(settings).await;
    let mut accepted = 0u64;
    loop {
        match broker.send("lamp", "x".into(), accepted + 1) {
            Ok(()) => accepted += 1,
            Err(error) => {
                assert_eq!(error, SendError::Full);
                break;
            }
        }
        tokio::task::yield_now().await;
    }
    assert!((4000..5000).contains(&accepted), "{accepted}");
    for ticket in 1..=accepted {
        assert_eq!(hear_line(&mut hub).await, format!("lamp lost {ticket} not_connected"));
    }
    broker.send("lamp", "x".into(), accepted + 1).unwrap();
    broker.stop().await;
}

#[tokio::test]
async fn nobody_hears_of_a_command_without_a_ticket() {
    let (broker, mut hub, _) = start(Settings::default()).await;
    let mut lamp = Client::subscribed(&broker, "lamp", V5).await;
    expect(&mut hub, &["lamp connected 5"]).await;
    broker.send("lamp", "quiet".into(), 0).unwrap();
    broker.send("nobody", "quiet".into(), 0).unwrap();
    broker.send("lamp", "told".into(), 7).unwrap();
    assert_eq!(lamp.command().await, Some("quiet".into()));
    assert_eq!(lamp.command().await, Some("told".into()));
    assert_eq!(hear_line(&mut hub).await, "lamp written 7");
    broker.stop().await;
}
