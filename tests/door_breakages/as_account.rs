//! The same as a service account, which has what devices do not have: wildcards, retained messages, many filters. One account
//! breaks things, another must still be served.

use truetwin::broker::{AccountSettings, Broker, Settings};

use crate::support::*;

const BOTH: [bool; 2] = [false, true];

/// Retained messages that the bench's broker keeps.
const RETAINED_MAX: usize = 520;

struct Bench {
    broker: Broker,
    /// Another account, subscribed to `w/#`.
    witness: Client,
}

impl Bench {
    async fn new() -> (Self, tokio::sync::mpsc::Receiver<truetwin::broker::FromDevice>) {
        let accounts = AccountSettings { retained_max: RETAINED_MAX, ..AccountSettings::default() };
        let (broker, hub, access) = start(Settings { accounts, ..Settings::default() }).await;
        access.account("breaker", &["#"], &["t/#", "w/#", "设备/#", "é/#"]);
        access.account("witness", &["w/#"], &["w/#"]);
        let mut witness = login(&broker, "witness", &Login::of("witness")).await;
        assert_eq!(witness.subscribe("w/#").await, Some(1));
        (Self { broker, witness }, hub)
    }

    async fn breaker(&self, v5: bool) -> Client {
        login(&self.broker, "breaker", &Login::of("breaker").v5(v5)).await
    }

    /// What an account says reaches another one.
    async fn still_serves(&mut self, after: &str) {
        let mut client = self.breaker(true).await;
        client.send(&publish("w/after", 1, 9, after.as_bytes(), true)).await;
        assert_eq!(client.acknowledged().await, Some((9, 0)), "{after}");
        while hears(&mut self.witness).await.2 != after {}
        assert_eq!(self.broker.counters().bus_rebuilds, 0, "after {after}");
    }
}

async fn login(broker: &Broker, name: &str, login: &Login) -> Client {
    let mut client = Client::raw(broker.local_addr(), login.v5).await;
    name.clone_into(&mut client.name);
    assert_eq!(client.login(&login.packet()).await, Some(0));
    client
}

/// The next message: first byte, topic, payload (behind its properties in v5, where none of them is longer than 127 bytes). It
/// is acknowledged.
async fn hears(client: &mut Client) -> (u8, String, String) {
    let (first, topic, id, payload) = hears_only(client).await;
    if let Some([high, low]) = id {
        client.send(&[0x40, 2, high, low]).await;
    }
    (first, topic, payload)
}

/// The same with its packet id, and not acknowledged.
async fn hears_only(client: &mut Client) -> (u8, String, Option<[u8; 2]>, String) {
    loop {
        let (first, body) = client.next().await.expect("a message must come");
        if first >> 4 != 3 {
            continue;
        }
        let end = 2 + usize::from(u16::from_be_bytes([body[0], body[1]]));
        let (id, at) = if first & 0x06 == 0 { (None, end) } else { (Some([body[end], body[end + 1]]), end + 2) };
        let at = if client.v5 { at + 1 + usize::from(body[at]) } else { at };
        return (first, text(&body[2..end]), id, text(&body[at..]));
    }
}

async fn granted(client: &mut Client, filter: &str) {
    assert_eq!(client.subscribe(filter).await, Some(1), "{filter}");
}

async fn says(client: &mut Client, topic: &str, flags: u8, payload: &str) -> Option<u8> {
    let v5 = client.v5;
    client.send(&publish_with(topic, flags, 7, payload.as_bytes(), v5.then_some(&[]))).await;
    client.acknowledged().await.map(|(_, code)| code)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_that_breaks_rumqttds_listener_breaks_the_door_for_accounts() {
    let (mut bench, _hub) = Bench::new().await;
    p1_topics_that_begin_with_no_ascii(&mut bench).await;
    p3_shared_subscriptions_with_unacknowledged_messages(&mut bench).await;
    p4_goodbyes_while_messages_stream_to_the_account(&mut bench).await;
    p5_properties_for_a_subscriber_of_3_1_1(&mut bench).await;
    p6_packet_types_of_a_server(&mut bench).await;
    filters_topics_and_client_ids_leave_nothing_behind(&mut bench).await;
    retained_messages_are_bounded_whole_and_cleared_only_by_a_retained_one(&mut bench).await;
    quality_is_never_raised_and_qos_2_is_closed(&mut bench).await;
    acknowledgements_in_any_order_and_within_the_window(&mut bench).await;
    a_takeover_tells_the_old_will_and_keeps_the_new_one(&mut bench).await;
    what_is_sent_to_a_client_is_no_sign_of_its_life(&mut bench).await;
    dollar_and_malformed_filters_and_topics(&mut bench).await;
    bench.broker.stop().await;
}

async fn p1_topics_that_begin_with_no_ascii(bench: &mut Bench) {
    for v5 in BOTH {
        let mut account = bench.breaker(v5).await;
        granted(&mut account, "#").await;
        for topic in ["设备/灯", "é/x"] {
            assert_eq!(says(&mut account, topic, 3, "kept").await, Some(0), "{topic}");
            granted(&mut account, "+/+").await; // P1 was a retained one and any SUBSCRIBE behind it
            assert_eq!(says(&mut account, topic, 3, "").await, Some(0), "{topic}");
        }
        drop(account);
        let will = Login::of("breaker").v5(v5).will("é/x", "gone");
        drop(login(&bench.broker, "breaker", &will).await);
    }
    bench.still_serves("P1").await;
}

async fn p3_shared_subscriptions_with_unacknowledged_messages(bench: &mut Bench) {
    for v5 in BOTH {
        let without = Login { clean: false, ..Login::of("breaker").v5(v5).client_id("p3") };
        let mut account = login(&bench.broker, "breaker", &without).await;
        assert_eq!(account.subscribe("$share/g/t/x").await, Some(if v5 { 0x9E } else { 0x80 }));
        granted(&mut account, "t/x").await;
        assert_eq!(says(&mut account, "t/x", 2, "never acknowledged").await, Some(0));
    }
    bench.still_serves("P3").await;
}

async fn p4_goodbyes_while_messages_stream_to_the_account(bench: &mut Bench) {
    let mut loud = bench.breaker(true).await;
    for round in 0..60u16 {
        let mut account = login(&bench.broker, "breaker", &Login::of("breaker").client_id("p4")).await;
        granted(&mut account, "t/stream").await;
        let burst = publish("t/stream", u8::from(round % 2 == 0), 1, &[b'x'; 100], true);
        for _ in 0..50 {
            loud.send(&burst).await;
        }
        let goodbye: &[u8] = if round % 3 == 0 { &[0x40, 2, 0, 0] } else { &[0xE0, 0] };
        account.send(goodbye).await;
    }
    assert!(loud.lives().await);
    bench.still_serves("P4").await;
}

async fn p5_properties_for_a_subscriber_of_3_1_1(bench: &mut Bench) {
    let (mut three, mut five) = (bench.breaker(false).await, login(&bench.broker, "b", &second()).await);
    granted(&mut three, "t/p5").await;
    let properties: &[u8] =
        &[0x01, 1, 0x02, 0, 0, 0, 9, 0x03, 0, 1, b't', 0x08, 0, 1, b'r', 0x09, 0, 1, 0, 0x26, 0, 1, b'a', 0, 1, b'b'];
    five.send(&publish_with("t/p5", 2, 3, b"x", Some(properties))).await;
    assert_eq!(hears(&mut three).await, (0x32, "t/p5".to_owned(), "x".to_owned()));
    assert!(three.lives().await);
    bench.still_serves("P5").await;
}

/// Another connection of the breaker, beside its first one.
fn second() -> Login {
    Login::of("breaker").v5(true).client_id("second")
}

async fn p6_packet_types_of_a_server(bench: &mut Bench) {
    for v5 in BOTH {
        for packet in [&[0x20, 2, 0, 0][..], &[0xB0, 3, 0, 1, 0], &[0x90, 3, 0, 1, 0], &[0xD0, 0], &[0xF0, 0], &[0, 0]]
        {
            let mut account = bench.breaker(v5).await;
            account.send(packet).await;
            assert_eq!(account.farewell().await, v5.then_some(0x82), "{packet:x?}");
        }
    }
    bench.still_serves("P6").await;
}

async fn filters_topics_and_client_ids_leave_nothing_behind(bench: &mut Bench) {
    let before = bench.broker.counters();
    let mut account = bench.breaker(true).await;
    for hundred in 0..50 {
        let names: Vec<String> = (0..100).map(|at| format!("f/{hundred}/{at}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        account.send(&subscribe_with(1, &names, 1, Some(&[]))).await;
        assert_eq!(account.next().await.unwrap().0, 0x90);
        account.send(&unsubscribe(2, &names, true)).await;
        assert_eq!(account.next().await.unwrap().0, 0xB0);
    }
    assert_eq!(bench.broker.counters().subscriptions, before.subscriptions, "filters that are ended are gone");
    for at in 0..5_000 {
        account.send(&publish(&format!("t/topic/{at}"), 0, 0, b"x", true)).await;
    }
    assert!(account.lives().await);
    assert_eq!(bench.broker.counters().retained_messages, before.retained_messages, "a topic is nothing to be kept");
    drop(account);
    for at in 0..300 {
        let login_of = Login { clean: false, ..Login::of("breaker").client_id(&format!("id-{at}")) };
        let mut account = login(&bench.broker, "breaker", &login_of).await;
        account.subscribe("t/left").await;
        account.send(&[0xE0, 0]).await;
        while account.next().await.is_some() {}
    }
    let after = bench.broker.counters();
    assert_eq!(after.subscriptions, before.subscriptions, "a client id that came once leaves no session");
    bench.still_serves("filters, topics, client ids").await;
}

async fn retained_messages_are_bounded_whole_and_cleared_only_by_a_retained_one(bench: &mut Bench) {
    let mut account = bench.breaker(true).await;
    for at in 0..500 {
        assert_eq!(says(&mut account, &format!("t/kept/{at}"), 3, "x").await, Some(0));
    }
    assert_eq!(says(&mut account, "t/kept/0", 2, "").await, Some(0));
    for _ in 0..2 {
        granted(&mut account, "t/kept/#").await; // and once more: all of it is told again
        for _ in 0..500 {
            assert_eq!(hears(&mut account).await.0, 0x33);
        }
    }
    for at in 500..RETAINED_MAX {
        assert_eq!(says(&mut account, &format!("t/kept/{at}"), 3, "x").await, Some(0));
    }
    account.send(&unsubscribe(2, &["t/kept/#"], true)).await;
    assert_eq!(
        says(&mut account, "t/kept/more", 3, "x").await,
        Some(0x97),
        "there is a bound, and who meets it hears so"
    );
    for at in 0..RETAINED_MAX {
        account.send(&publish_with(&format!("t/kept/{at}"), 1, 0, b"", Some(&[]))).await;
    }
    assert!(account.lives().await);
    assert_eq!(bench.broker.counters().retained_messages, 0);
    bench.still_serves("retained").await;
}

async fn quality_is_never_raised_and_qos_2_is_closed(bench: &mut Bench) {
    let mut account = bench.breaker(true).await;
    granted(&mut account, "t/q").await;
    account.send(&publish("t/q", 0, 0, b"zero", true)).await;
    assert_eq!(hears(&mut account).await, (0x30, "t/q".to_owned(), "zero".to_owned()));
    for flags in [0x04, 0x0C] {
        for v5 in BOTH {
            let mut account = bench.breaker(v5).await;
            account.send(&publish_with("t/q", flags, 1, b"two", v5.then_some(&[]))).await;
            account.send(&[0x62, 2, 0, 1]).await;
            assert_eq!(account.farewell().await, v5.then_some(0x9B));
        }
    }
    bench.still_serves("QoS").await;
}

async fn acknowledgements_in_any_order_and_within_the_window(bench: &mut Bench) {
    let three = Login::of("breaker").v5(true).client_id("window").properties(&[0x21, 0, 3]); // Receive Maximum
    let (mut account, mut other) =
        (login(&bench.broker, "breaker", &three).await, login(&bench.broker, "b", &second()).await);
    granted(&mut account, "t/acks").await;
    for at in 0..6 {
        assert_eq!(says(&mut other, "t/acks", 2, &at.to_string()).await, Some(0));
    }
    let mut ids = Vec::new();
    for _ in 0..3 {
        ids.push(hears_only(&mut account).await.2.unwrap());
    }
    account.send(&[0xC0, 0]).await;
    assert_eq!(account.next().await.unwrap().0, 0xD0, "no more than three, until one is acknowledged");
    for [high, low] in ids.into_iter().rev() {
        account.send(&[0x40, 2, high, low]).await;
    }
    for at in 3..6 {
        assert_eq!(hears(&mut account).await.2, at.to_string());
    }
    bench.still_serves("acknowledgements").await;
}

async fn a_takeover_tells_the_old_will_and_keeps_the_new_one(bench: &mut Bench) {
    let with = |text: &str| Login::of("breaker").client_id("willed").will("w/will", text);
    let mut first = login(&bench.broker, "breaker", &with("first")).await;
    let second = login(&bench.broker, "breaker", &with("second")).await;
    assert_eq!(first.next().await, None);
    assert_eq!(hears(&mut bench.witness).await.2, "first", "of the connection that ended");
    drop(second);
    assert_eq!(hears(&mut bench.witness).await.2, "second", "the new one's is told at its own end");
    bench.still_serves("takeover").await;
}

async fn what_is_sent_to_a_client_is_no_sign_of_its_life(bench: &mut Bench) {
    let mut account =
        login(&bench.broker, "breaker", &Login::of("breaker").v5(true).client_id("dead").keep_alive_s(1)).await;
    granted(&mut account, "t/more").await;
    let to = bench.broker.clone();
    let talking = tokio::spawn(async move {
        let mut other = login(&to, "breaker", &second()).await;
        loop {
            other.send(&publish("t/more", 0, 0, b"x", true)).await;
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
    });
    assert_eq!(account.farewell().await, Some(0x8D));
    talking.abort();
    bench.still_serves("keep-alive").await;
}

async fn dollar_and_malformed_filters_and_topics(bench: &mut Bench) {
    for v5 in BOTH {
        let mut account = bench.breaker(v5).await;
        for filter in ["a/#/b", "a+", "", "#a", "$SYS/#", "$x"] {
            assert!(account.subscribe(filter).await.unwrap() >= 0x80, "{filter}");
        }
        assert!(account.lives().await, "a refused filter closes nothing");
        for topic in ["t/#", "", "+"] {
            let mut account = bench.breaker(v5).await;
            account.send(&publish(topic, 1, 1, b"x", v5)).await;
            let code = if topic.is_empty() { 0x82 } else { 0x90 };
            assert_eq!(account.farewell().await, v5.then_some(code), "{topic}");
        }
    }
    bench.still_serves("filters and topics").await;
}
