//! A connection whose reports wait because the hub is busy: its pings are answered, its end waits for what it said, nothing is lost.

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
    busy_for(Settings::default().acknowledge_ms).await
}

/// The same; so long reports may wait.
async fn busy_for(acknowledge_ms: u64) -> (Broker, Receiver<FromDevice>, Vec<Receipt>, Client) {
    let (broker, mut hub, _) = start(Settings { acknowledge_ms, ..settings() }).await;
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

/// How a client goes that has said more than the hub takes now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Goodbye,
    GoodbyeWithWill,
    Silent,
}

impl Way {
    const ALL: [Self; 3] = [Self::Goodbye, Self::GoodbyeWithWill, Self::Silent];

    /// The code of its DISCONNECT, if it says one; 3.1.1 has none.
    fn packet(self, v5: bool) -> Option<Vec<u8>> {
        match self {
            Self::Goodbye => Some(vec![0xE0, 0]),
            Self::GoodbyeWithWill if v5 => Some(vec![0xE0, 1, 0x04]),
            Self::GoodbyeWithWill | Self::Silent => None,
        }
    }
}

/// A client that says so many reports in one breath, then goes.
async fn says_and_goes(broker: &Broker, name: &str, v5: bool, way: Way, reports: usize, bytes: usize) {
    let mut lamp = Client::raw(broker.local_addr(), v5).await;
    lamp.name = name.to_owned();
    let will = format!("truetwin/{name}/status");
    assert_eq!(lamp.login(&Login::of(name).v5(v5).will(&will, "gone").packet()).await, Some(0));
    for number in 0..reports {
        let (qos, packet_id) = if number % 2 == 0 { (0, 0) } else { (1, u16::try_from(number).unwrap()) };
        let payload = format!("{number:0>bytes$}");
        lamp.send(&publish(&lamp.event_topic(), qos, packet_id, payload.as_bytes(), v5)).await;
    }
    if let Some(goodbye) = way.packet(v5) {
        lamp.send(&goodbye).await;
    }
    drop(lamp);
}

/// What the hub hears of one device until its end, the reports as their numbers.
async fn story(hub: &mut Receiver<FromDevice>, name: &str) -> (Vec<usize>, Vec<String>) {
    let (mut reports, mut others) = (Vec::new(), Vec::new());
    loop {
        let line = hear_line(hub).await;
        let Some(line) = line.strip_prefix(&format!("{name} ")) else { continue };
        match line.strip_prefix("event ") {
            Some(number) => reports.push(number.parse().unwrap()),
            None => others.push(line.to_owned()),
        }
        if line.starts_with("disconnected") {
            return (reports, others);
        }
    }
}

#[tokio::test]
async fn whoever_goes_while_it_is_held_back_has_said_all_that_it_said() {
    for way in Way::ALL {
        // The many are more than is kept of it: what lies behind is not read before there is room.
        for (v5, reports, bytes) in [(false, 3, 100), (true, 3, 100), (false, 50, 860), (true, 50, 860)] {
            let (broker, mut hub, receipts, _greedy) = busy().await;
            says_and_goes(&broker, "lamp", v5, way, reports, bytes).await;
            until("it is held back, too", &broker, |broker| broker.counters().held_back_connections == 2).await;
            receipts.into_iter().for_each(Receipt::taken);
            let (heard, others) = story(&mut hub, "lamp").await;
            assert_eq!(heard, (0..reports).collect::<Vec<_>>(), "{way:?} {v5} {bytes}");
            let connected = if v5 { "connected 5" } else { "connected 3.1.1" };
            let expected: &[&str] = match way {
                Way::Goodbye => &[connected, "disconnected clean"],
                Way::GoodbyeWithWill if v5 => &[connected, "will gone", "disconnected goodbye_with_will"],
                Way::GoodbyeWithWill | Way::Silent => &[connected, "will gone", "disconnected lost"],
            };
            assert_eq!(others, expected, "{way:?} {v5} {bytes}");
            assert_eq!(broker.counters().reports_unread, 0);
            broker.stop().await;
        }
    }
}

#[tokio::test]
async fn the_end_of_a_connection_that_is_held_back_is_told_in_time_although_the_hub_is_stuck() {
    for way in Way::ALL {
        for (v5, reports, bytes) in [(true, 3, 100), (false, 50, 860)] {
            let (broker, mut hub, receipts, _greedy) = busy_for(500).await;
            says_and_goes(&broker, "lamp", v5, way, reports, bytes).await;
            until("it is out", &broker, |broker| broker.counters().accepted == 2 && !broker.connected("lamp")).await;
            assert!(broker.counters().reports_unread > 0, "what was lost is counted");
            drop(receipts);
            let (heard, others) = story(&mut hub, "lamp").await;
            assert!(heard.is_empty(), "nothing is told behind an end");
            let connected = if v5 { "connected 5" } else { "connected 3.1.1" };
            // A goodbye that was read takes the will with it; one that was not could not.
            let will = if way == Way::Goodbye && reports == 3 { None } else { Some("will gone") };
            let expected: Vec<&str> =
                [Some(connected), will, Some("disconnected unacknowledged")].into_iter().flatten().collect();
            assert_eq!(others, expected, "{way:?} {v5} {bytes}");
            broker.stop().await;
        }
    }
}

#[tokio::test]
async fn whoever_has_gone_while_it_was_held_back_comes_in_again_at_once() {
    let (broker, mut hub, receipts, _greedy) = busy().await;
    says_and_goes(&broker, "lamp", true, Way::Goodbye, 2, 100).await;
    until("it is held back, too", &broker, |broker| broker.counters().held_back_connections == 2).await;
    // From another address, too: whoever has said goodbye is no rival.
    let mut again = Client::raw_from([127, 0, 0, 9], broker.local_addr(), true).await;
    assert_eq!(again.login(&Login::of("lamp").v5(true).packet()).await, Some(0));
    assert!(again.lives().await);
    receipts.into_iter().for_each(Receipt::taken);
    let (heard, others) = story(&mut hub, "lamp").await;
    assert!(heard.is_empty() && others == ["connected 5", "disconnected taken_over"], "{others:?}");
    assert_eq!(broker.counters().reports_unread, 2, "and that is counted");
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
