//! What happens at the bounds, and that nobody else notices.

use truetwin::broker::{Broker, FromDevice, MqttVersion::*, Receipt, Settings};

use crate::support::*;

#[tokio::test]
async fn a_device_with_a_full_window_is_not_read_until_one_is_acknowledged() {
    let (broker, mut hub, _) = start(Settings { inflight_max: 2, ..Settings::default() }).await;
    let mut lamp = Client::device(&broker, "lamp", V5).await;
    let mut lock = Client::device(&broker, "lock", V3_1_1).await;
    expect(&mut hub, &["lamp connected 5", "lock connected 3.1.1"]).await;
    for payload in ["1", "2", "3", "4"] {
        lamp.report(payload.as_bytes()).await;
    }
    let mut receipts = Vec::new();
    for _ in 0..2 {
        let FromDevice::Event { receipt, .. } = hear(&mut hub).await else { panic!("an event") };
        receipts.push(receipt);
    }
    lock.report(b"x").await;
    expect(&mut hub, &["lock event x"]).await;
    assert_eq!(broker.counters().reports_in, 3, "the third of the lamp was not read");
    receipts.remove(0).taken();
    expect(&mut hub, &["lamp event 3"]).await;
    receipts.remove(0).taken();
    expect(&mut hub, &["lamp event 4"]).await;
    for id in 1..=4 {
        assert_eq!(lamp.acknowledged().await, Some((id, 0)));
    }
    broker.stop().await;
}

/// Waits until so many reports were read and all that waits is with the hub.
async fn read_and_delivered(broker: &Broker, reports: u64) {
    let until = tokio::time::Instant::now() + PATIENCE;
    while broker.counters().reports_in < reports || broker.counters().bus_waiting > 0 {
        assert!(tokio::time::Instant::now() < until, "{:?}", broker.counters());
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_stuck_hub_holds_the_devices_back_and_nothing_is_lost() {
    let settings = Settings { credit_bytes: 16 * 4096, ..Settings::default() };
    let (broker, mut hub, _) = start(settings).await;
    let mut devices = Vec::new();
    for at in 0..20 {
        devices.push(Client::device(&broker, &format!("d{at}"), if at % 2 == 0 { V5 } else { V3_1_1 }).await);
    }
    for round in 0..10u8 {
        for device in &mut devices {
            let mut payload = vec![b'x'; 1000];
            payload[0] = round;
            device.report(&payload).await;
        }
    }
    let held = 16 * 4096 / 1128;
    read_and_delivered(&broker, held).await;
    // A new device is still let in, and heard of when the hub listens again.
    let mut late = Client::device(&broker, "late", V5).await;
    assert!(late.lives().await);
    let counters = broker.counters();
    assert!(counters.unacknowledged_bytes <= 16 * 4096);
    assert_eq!(counters.reports_in, held, "no more are read");
    assert!(counters.held_back_connections > 0);
    let mut next = [0u8; 20];
    let mut heard = 0;
    while heard < 200 {
        if let FromDevice::Event { device, payload, receipt, .. } = hear(&mut hub).await {
            let at: usize = device[1..].parse().unwrap();
            assert_eq!(payload[0], next[at], "in order");
            next[at] += 1;
            heard += 1;
            receipt.taken();
        }
    }
    for device in &mut devices {
        for id in 1..=10 {
            assert_eq!(device.acknowledged().await, Some((id, 0)));
        }
    }
    let counters = broker.counters();
    assert_eq!((counters.unacknowledged_bytes, counters.held_back_connections), (0, 0));
    assert_eq!((counters.bus_rebuilds, counters.keep_alive_expiries), (0, 0));
    broker.stop().await;
}

#[tokio::test]
async fn devices_that_come_and_go_before_a_stuck_hub_are_told_to_wait_at_last() {
    let settings = Settings { connections_max: 4, ..Settings::default() };
    let (broker, mut hub, _) = start(settings).await;
    let mut came = 0u64;
    loop {
        let mut lamp = Client::raw(broker.local_addr(), true).await;
        match lamp.login(&Login::of("lamp").v5(true).packet()).await {
            Some(0) => came += 1,
            code => {
                assert_eq!(code, Some(0x89));
                break;
            }
        }
        assert!(came < 10_000);
    }
    let mut connected = 0;
    while connected < came {
        if hear_line(&mut hub).await == "lamp connected 5" {
            connected += 1;
        }
    }
    let mut lamp = Client::device(&broker, "lamp", V5).await;
    lamp.report(b"x").await;
    while hear_line(&mut hub).await != "lamp event x" {}
    broker.stop().await;
}

#[tokio::test]
async fn a_device_that_asks_and_never_reads_is_not_read_either() {
    let (broker, mut hub, _) = start(Settings::default()).await;
    let deaf = Client::device(&broker, "deaf", V3_1_1).await;
    let mut lamp = Client::device(&broker, "lamp", V5).await;
    expect(&mut hub, &["deaf connected 3.1.1", "lamp connected 5"]).await;
    let pings = [0xC0, 0].repeat(32 * 1024);
    let mut refused = 0;
    let mut sent = 0usize;
    while refused < 100 {
        match deaf.socket.try_write(&pings) {
            Ok(bytes) => {
                sent += bytes;
                refused = 0;
            }
            Err(_) => refused += 1,
        }
        assert!(sent < 256 << 20, "it must be held back");
        assert!(lamp.lives().await);
    }
    broker.stop().await;
}

#[tokio::test]
async fn a_hub_that_is_gone_answers_nothing_and_breaks_nothing() {
    let (broker, mut hub, _) = start(Settings::default()).await;
    let mut lamp = Client::device(&broker, "lamp", V5).await;
    hear(&mut hub).await;
    lamp.report(b"1").await;
    let FromDevice::Event { receipt, .. } = hear(&mut hub).await else { panic!("an event") };
    lamp.report(b"2").await;
    read_and_delivered(&broker, 2).await;
    drop(hub);
    assert_eq!(broker.counters().reports_taken, 0);
    drop::<Receipt>(receipt);
    assert_eq!(lamp.acknowledged().await, Some((1, 0x80)));
    assert_eq!(lamp.acknowledged().await, Some((2, 0x80)));
    let mut other = Client::raw(broker.local_addr(), true).await;
    assert_eq!(other.login(&Login::of("other").v5(true).packet()).await, Some(0x89));
    broker.stop().await;
}
