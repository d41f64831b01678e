//! What is retained is kept: when it is acknowledged, what is tried again, and what is not remembered.

use std::sync::Arc;

use tokio::{
    net::TcpListener,
    sync::mpsc::{Receiver, UnboundedReceiver, UnboundedSender, unbounded_channel},
};
use truetwin::broker::{self, Broker, Change, FromDevice, Keeper, Kept, Memory, Settings, Stored};

use crate::{
    accounts::{account, got, hears_nothing, subscribed},
    support::*,
};

/// Keeps in a channel: the test decides what is kept, and when.
struct InHand(UnboundedSender<(Vec<Change>, bool, Stored)>);

impl Keeper for InHand {
    fn keep(&self, changes: Vec<Change>, lasting: bool, stored: Stored) {
        let _the_test_is_over = self.0.send((changes, lasting, stored));
    }
}

struct Handed {
    changes: UnboundedReceiver<(Vec<Change>, bool, Stored)>,
    unpromised: Vec<String>,
}

impl Handed {
    /// The next change that somebody waits for.
    async fn promised(&mut self) -> (Vec<Change>, Stored) {
        loop {
            let (changes, lasting, stored) = self.changes.recv().await.unwrap();
            if lasting {
                return (changes, stored);
            }
            self.keep(&changes, stored);
        }
    }

    /// All others, up to that of the topic `a/zero`.
    async fn unpromised(mut self) -> Vec<String> {
        while !self.unpromised.iter().any(|change| change.ends_with("a/zero")) {
            let (changes, _, stored) = self.changes.recv().await.unwrap();
            self.keep(&changes, stored);
        }
        self.unpromised
    }

    fn keep(&mut self, changes: &[Change], stored: Stored) {
        self.unpromised.extend(changes.iter().map(|change| match change {
            Change::Keep(kept) => format!("keep {}", kept.topic),
            Change::Forget(topic) => format!("forget {topic}"),
        }));
        stored.kept();
    }
}

/// A broker that begins with this, and what it wants kept.
async fn with(kept: Vec<Kept>) -> (Broker, Receiver<FromDevice>, Handed) {
    let (sender, changes) = unbounded_channel();
    let memory = Memory { kept, keeper: Arc::new(InHand(sender)) };
    let access = Arc::new(Passwords::default());
    access.account("ha", &["a/#"], &["a/#"]);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (broker, hub) = broker::start_with(listener, access, Settings::default(), memory).await.unwrap();
    (broker, hub, Handed { changes, unpromised: Vec::new() })
}

#[tokio::test]
async fn a_retained_publish_is_acknowledged_once_it_is_kept_and_not_if_it_cannot_be() {
    let kept = Kept { topic: "a/old".into(), payload: "old".into(), qos: 1, properties: Vec::new(), expires: None };
    let gone = Kept { topic: "a/gone".into(), expires: Some(std::time::UNIX_EPOCH), ..kept.clone() };
    let (broker, _hub, mut handed) = with(vec![kept, gone]).await;
    let mut ha = account(&broker, "ha", "x", true).await;
    assert_eq!(subscribed(&mut ha, &["a/#"], 1).await, [1]);
    let old = got(&mut ha).await;
    assert_eq!((old.topic.as_str(), old.payload.as_str(), old.retained()), ("a/old", "old", true));
    hears_nothing(&mut ha).await;
    ha.send(&publish_with("a/new", 0x03, 1, b"new", Some(&[]))).await;
    ha.send(&publish_with("a/plain", 0x02, 2, b"plain", Some(&[]))).await;
    assert_eq!(got(&mut ha).await.payload, "new");
    assert_eq!(got(&mut ha).await.payload, "plain");
    hears_nothing(&mut ha).await; // no PUBACK yet, and none that overtakes another
    let (changes, stored) = handed.promised().await;
    assert!(matches!(&changes[..], [Change::Keep(kept)] if kept.topic == "a/new" && kept.payload == "new"));
    stored.kept();
    assert_eq!(ha.acknowledged().await, Some((1, 0)));
    assert_eq!(ha.acknowledged().await, Some((2, 0)));
    // The same again, while what it says is on its way to a disk that will refuse it: each rests on what it brought itself.
    for (packet_id, payload) in [(3, "newer"), (4, "newer"), (5, ""), (6, "")] {
        ha.send(&publish_with("a/new", 0x03, packet_id, payload.as_bytes(), Some(&[]))).await;
    }
    let mut refused = Vec::new();
    for payload in ["newer", "newer", "", ""] {
        let (changes, stored) = handed.promised().await;
        match &changes[..] {
            [Change::Keep(kept)] => assert_eq!((&*kept.topic, &kept.payload[..]), ("a/new", payload.as_bytes())),
            [Change::Forget(topic)] => assert_eq!((&**topic, payload), ("a/new", "")),
            other => panic!("an acknowledgement would rest on {other:?}"),
        }
        refused.push(stored);
    }
    drop(refused);
    for packet_id in 3..=6 {
        assert_eq!(ha.acknowledged().await, Some((packet_id, 0x83)));
    }
    ha.send(&publish_with("a/zero", 0x01, 0, b"zero", Some(&[]))).await;
    while got(&mut ha).await.payload != "zero" {}
    let stopping = broker.clone();
    let stop = tokio::spawn(async move { stopping.stop().await });
    // Nobody was promised these: what was over when it was taken in, what was refused, and what came with QoS 0.
    let mut all = handed.unpromised().await;
    all.sort();
    assert_eq!(all, ["forget a/gone", "forget a/new", "keep a/zero"]);
    stop.await.unwrap();
}

#[tokio::test]
async fn what_a_disk_that_refuses_never_had_and_is_gone_is_not_tried_again() {
    let (broker, _hub, mut handed) = with(Vec::new()).await;
    let mut ha = account(&broker, "ha", "x", true).await;
    for number in 0..200 {
        let topic = format!("a/{number}");
        let mut refused = Vec::new();
        for (packet_id, payload) in [(1, "x"), (2, "")] {
            // Also with QoS 0, of which the disk is not told at once.
            let qos = if number % 2 == 0 { 0x02 } else { 0 };
            ha.send(&publish_with(&topic, qos | 1, packet_id, payload.as_bytes(), Some(&[]))).await;
            if qos != 0 {
                refused.push(handed.promised().await.1);
            }
        }
        let promised = refused.len();
        if number % 4 == 0 {
            refused.reverse();
        }
        refused.into_iter().for_each(drop);
        for packet_id in 1..=promised {
            assert_eq!(ha.acknowledged().await, Some((u16::try_from(packet_id).unwrap(), 0x83)));
        }
    }
    ha.send(&publish_with("a/zero", 0x01, 0, b"zero", Some(&[]))).await;
    assert!(ha.lives().await);
    let stop = tokio::spawn(async move { broker.stop().await });
    assert_eq!(handed.unpromised().await, ["keep a/zero"]);
    stop.await.unwrap();
}

#[tokio::test]
async fn a_will_that_is_retained_goes_to_the_disk_at_once_as_a_publish_of_its_qos() {
    let (broker, _hub, mut handed) = with(Vec::new()).await;
    for (v5, qos) in [(false, 1), (true, 1), (true, 0)] {
        let mut login = Login::of("ha").v5(v5).client_id("x");
        let payload = format!("gone {v5}");
        login.will = Some((b"a/state".to_vec(), payload.clone().into_bytes(), qos, true));
        let mut client = Client::raw(broker.local_addr(), v5).await;
        assert_eq!(client.login(&login.packet()).await, Some(0));
        drop(client);
        if qos == 1 {
            let (changes, stored) = handed.promised().await;
            assert!(matches!(&changes[..], [Change::Keep(kept)] if kept.topic == "a/state" && kept.payload == payload));
            stored.kept();
        }
    }
    let mut ha = account(&broker, "ha", "y", true).await;
    ha.send(&publish_with("a/zero", 0x01, 0, b"zero", Some(&[]))).await;
    assert!(ha.lives().await);
    let stop = tokio::spawn(async move { broker.stop().await });
    let unpromised = handed.unpromised().await;
    assert!(unpromised.ends_with(&["keep a/zero".to_owned()]), "{unpromised:?}");
    stop.await.unwrap();
}
