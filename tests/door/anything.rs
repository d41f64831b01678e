//! Devices and accounts that say anything and go in any way, over TLS and without, with wills, wildcards and what is retained, while
//! the router dies and hangs: the hub hears a whole story of each connection, those that behave notice nothing, nothing is left.
//!
//! The seed is printed; `SEED=n` begins the same run again, as far as tasks and sockets let it.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering::SeqCst},
    },
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _},
    net::TcpStream,
    sync::mpsc::Receiver,
};
use truetwin::broker::{Broker, FromDevice, Settings};

use crate::{
    accounts::{account, got, subscribed},
    chance::Chance,
    garbage,
    support::*,
    tls::{Authority, dial},
};

/// The device whose topics the garbage is about.
const MALLORY: &str = "mallory";

/// Sockets at once, and lives that each of them lives behind the other.
const AT_ONCE: u64 = 8;
const LIVES: u64 = 40;

/// Every third router hangs, the others die.
const BLOWS: u64 = 5;

/// How long a client that says nothing more listens, milliseconds.
const LISTEN_MS: u64 = 15;

/// So little of everything that its bounds are met.
fn settings(authority: &Authority) -> Settings {
    let mut settings = Settings {
        packet_bytes_max: 1024,
        connect_bytes_max: 1024,
        credit_bytes: 16 * 1024,
        login_delay_max_ms: 0,
        ..authority.settings()
    };
    settings.accounts.retained_max = 8;
    settings.accounts.subscriptions_max = 16;
    settings.accounts.inflight_max = 4;
    settings
}

/// A good login, mostly, with a will sometimes.
fn login(chance: &mut Chance, v5: bool) -> (Vec<u8>, bool) {
    let is_account = chance.one_in(2);
    let id = *chance.pick(&["x", "y", "z", ""]);
    let mut login = Login::of(if is_account { "assistant" } else { MALLORY }).v5(v5).client_id(id);
    if chance.one_in(2) {
        let topic = if is_account { "home/light" } else { "truetwin/mallory/status" };
        let qos = u8::try_from(chance.below(2)).unwrap();
        let retain = is_account && chance.one_in(2);
        login.will = Some((topic.as_bytes().to_vec(), b"gone".to_vec(), qos, retain));
    }
    if chance.one_in(8) { (garbage::connect(chance, &login), is_account) } else { (login.packet(), is_account) }
}

/// What it says behind it: mostly what it may say, and much of that.
fn speech(chance: &mut Chance, v5: bool, is_account: bool) -> Vec<u8> {
    let mut said = Vec::new();
    for id in 1..=u16::try_from(chance.below(30)).unwrap() {
        let flags = u8::try_from(chance.below(2)).unwrap() << 1;
        let payload = vec![b'x'; usize::try_from(chance.below(700)).unwrap()];
        let bytes = match (chance.below(12), is_account) {
            (0, _) => garbage::mqtt(chance, v5),
            (1, _) => vec![0xC0, 0],
            (2 | 3, true) => {
                let filter = *chance.pick(&["home/#", "home/+/set", "+/light", "home/light", "#", "a/b/c/d"]);
                subscribe(id, filter, flags >> 1, v5)
            }
            (4, true) => unsubscribe(id, &["home/#", "home/light"], v5),
            (5, true) => vec![0x40, 2, 0, u8::try_from(id).unwrap()],
            (_, true) => {
                let topic = format!("home/{}", chance.below(12));
                let retain = u8::from(chance.one_in(2));
                let empty = retain == 1 && chance.one_in(3);
                publish_with(&topic, flags | retain, id, if empty { b"" } else { &payload }, v5.then_some(&[]))
            }
            (2, false) => subscribe(id, "truetwin/mallory/command", 0, v5),
            (_, false) => {
                let topic = *chance.pick(&["truetwin/mallory/event", "truetwin/mallory/status"]);
                publish_with(topic, flags, id, &payload, v5.then_some(&[]))
            }
        };
        said.extend_from_slice(&bytes);
    }
    said
}

/// One life over one socket: it comes in, says what it says in pieces, and goes.
async fn live<S: AsyncRead + AsyncWrite + Unpin>(mut socket: S, chance: &mut Chance) {
    let v5 = chance.one_in(2);
    let (mut said, is_account) = login(chance, v5);
    said.extend(speech(chance, v5, is_account));
    match chance.below(4) {
        0 => said.extend([0xE0, 0]),
        1 if v5 => said.extend([0xE0, 1, 0x04]),
        _ => {}
    }
    let piece = usize::try_from(chance.below(3_000)).unwrap() + 1;
    let listens = !chance.one_in(4);
    let living = async {
        for piece in said.chunks(piece) {
            let _closed_already = socket.write_all(piece).await;
        }
        let _closed_already = socket.flush().await;
        let mut heard = [0; 1024];
        while listens && socket.read(&mut heard).await.is_ok_and(|bytes| bytes > 0) {}
    };
    // It waits for no answer: it may be cut off in the middle, by itself.
    let _nobody_waits = tokio::time::timeout(Duration::from_millis(LISTEN_MS), living).await;
    if chance.one_in(2) {
        let _closed_already = tokio::time::timeout(Duration::from_millis(LISTEN_MS), socket.shutdown()).await;
    }
}

/// What the hub heard of one connection.
#[derive(Default)]
struct Story {
    will: bool,
    ended: bool,
}

/// The hub: takes in, refuses, is slow, answers, all by chance but for the one that behaves; holds each story to its form. Those
/// that have not ended come out.
async fn hub(broker: Broker, mut heard: Receiver<FromDevice>, mut chance: Chance, ups: Arc<AtomicU64>) -> usize {
    let mut stories: HashMap<u64, Story> = HashMap::new();
    let mut reports = 0;
    while let Some(message) = heard.recv().await {
        match message {
            FromDevice::Connected { device, connection, .. } => {
                let begun = stories.insert(connection, Story::default());
                assert!(begun.is_none(), "{device} {connection} begins once");
            }
            FromDevice::Event { device, connection, receipt, payload, .. }
            | FromDevice::Status { device, connection, receipt, payload, .. } => {
                let story = stories.get(&connection).expect("it has begun");
                assert!(!story.will && !story.ended, "{device} {connection} is told in order");
                reports += 1;
                if &*device == MALLORY && chance.one_in(10) {
                    drop(receipt);
                } else {
                    receipt.taken();
                }
                if chance.one_in(4) {
                    let _bus_down = broker.send(&device, payload, 1);
                }
                if chance.one_in(50) {
                    tokio::time::sleep(chance.ms(1..30)).await; // busy
                }
            }
            FromDevice::Will { device, connection, .. } => {
                let story = stories.get_mut(&connection).expect("it has begun");
                assert!(!story.ended && !std::mem::replace(&mut story.will, true), "{device} {connection}: one will");
            }
            FromDevice::Disconnected { device, connection, why } => {
                let story = stories.get_mut(&connection).expect("it has begun");
                assert!(!std::mem::replace(&mut story.ended, true), "{device} {connection} ends once");
                assert!(!story.will || why.as_str() != "clean", "{device} {connection}: no will after a goodbye");
            }
            FromDevice::BusUp => drop(ups.fetch_add(1, SeqCst)),
            FromDevice::BusDown | FromDevice::Written { .. } | FromDevice::Lost { .. } => {}
        }
    }
    assert!(reports > 0 && stories.len() > 10, "there was something to tell");
    stories.values().filter(|story| !story.ended).count()
}

/// A device that behaves: each report is acknowledged, whatever the others do; how many.
async fn guard(mut lamp: Client, over: Arc<AtomicBool>) -> u64 {
    let mut reports = 0;
    while !over.load(SeqCst) {
        let id = lamp.report(b"fine").await;
        assert_eq!(lamp.acknowledged().await, Some((id, 0)), "the one that behaves notices something");
        reports += 1;
    }
    lamp.send(&[0xE0, 0]).await;
    while lamp.next().await.is_some() {}
    reports
}

/// An account that says numbers, which another one hears in their order, none missing, none twice.
async fn talk(mut says: Client, mut hears: Client, over: Arc<AtomicBool>) -> u64 {
    assert_eq!(subscribed(&mut hears, &["quiet/#"], 1).await, [1]);
    let mut number = 0u64;
    while !over.load(SeqCst) {
        number += 1;
        let text = number.to_string();
        says.send(&publish(&format!("quiet/{}", number % 5), 1, 7, text.as_bytes(), true)).await;
        assert_eq!(says.acknowledged().await, Some((7, 0)));
        let heard = got(&mut hears).await;
        assert_eq!(heard.payload, text, "one that behaves hears something else");
        let [high, low] = heard.id.to_be_bytes();
        hears.send(&[0x40, 2, high, low]).await;
    }
    number
}

/// Routers die and hang, each when the one before is in its place.
async fn blows(broker: Broker, mut chance: Chance, ups: Arc<AtomicU64>, over: Arc<AtomicBool>) {
    for blow in 1..=BLOWS {
        tokio::time::sleep(chance.ms(20..250)).await;
        let _hung = if blow % 3 == 0 { broker.hang_bus() } else { None };
        if blow % 3 != 0 {
            broker.break_bus();
        }
        let by = tokio::time::Instant::now() + PATIENCE;
        while ups.load(SeqCst) < blow {
            assert!(tokio::time::Instant::now() < by, "router {blow} is not replaced");
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
    over.store(true, SeqCst);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_clients_do_while_routers_die_those_that_behave_notice_nothing_and_nothing_is_left() {
    let seed = std::env::var("SEED").map_or_else(|_| u64::from(std::process::id()), |text| text.parse().expect("SEED"));
    println!("clients that do anything: SEED={seed}");
    let mut chance = Chance::new(seed);
    let mut fork = || Chance::new(chance.below(u64::MAX));
    let authority = Arc::new(Authority::new());
    let (broker, heard, access) = start(settings(&authority)).await;
    access.account("assistant", &["home/#", "+/light"], &["home/#"]);
    access.account("quiet", &["quiet/#"], &["quiet/#"]);
    let (ups, over, calm) =
        (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let hub = tokio::spawn(hub(broker.clone(), heard, fork(), ups.clone()));
    let lamp =
        tokio::spawn(guard(Client::device(&broker, "guard", truetwin::broker::MqttVersion::V5).await, calm.clone()));
    let (says, hears) = (account(&broker, "quiet", "s", true).await, account(&broker, "quiet", "h", true).await);
    let talk = tokio::spawn(talk(says, hears, calm.clone()));
    let blows = tokio::spawn(blows(broker.clone(), fork(), ups, over.clone()));
    let mut throwers = Vec::new();
    for at in 0..AT_ONCE {
        let (broker, authority, over, mut chance) = (broker.clone(), authority.clone(), over.clone(), fork());
        throwers.push(tokio::spawn(async move {
            let config = authority.client(&rustls::version::TLS13);
            let mut lives = 0;
            while lives < LIVES || !over.load(SeqCst) {
                lives += 1;
                if at % 2 == 0 {
                    live(dial(&config, &broker, "localhost").await.unwrap(), &mut chance).await;
                } else {
                    live(TcpStream::connect(broker.local_addr()).await.unwrap(), &mut chance).await;
                }
            }
            lives
        }));
    }
    let mut lives = 0;
    for thrower in throwers {
        lives += thrower.await.unwrap();
    }
    blows.await.unwrap();
    // Those that have gone are gone; what waits of them has its time.
    let by = tokio::time::Instant::now() + PATIENCE;
    while broker.connected(MALLORY) || broker.account_connections("assistant") > 0 {
        assert!(tokio::time::Instant::now() < by, "SEED={seed}: {:?}", broker.counters());
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let counters = broker.counters();
    assert_eq!(counters.subscriptions, 1, "that of the one who hears, SEED={seed}");
    assert!(counters.retained_messages <= 8, "SEED={seed}: {counters:?}");
    assert!(counters.tls_accepted > 0 && counters.protocol_errors > 0, "SEED={seed}: {counters:?}");
    calm.store(true, SeqCst);
    let (reports, said) = (lamp.await.unwrap(), talk.await.unwrap());
    assert!(reports > 0 && said > 0, "SEED={seed}");
    println!("  {lives} lives, {reports} reports and {said} messages of those that behave");
    broker.stop().await;
    drop(broker);
    assert_eq!(hub.await.unwrap(), 0, "SEED={seed}: each story has its end");
}
