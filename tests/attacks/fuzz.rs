//! Garbage at the running hub, over many sockets at once, with TLS and without, before and after a login, with wills and without,
//! while others' calls go on.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use rustls::{
    ClientConfig, RootCertStore,
    pki_types::{CertificateDer, ServerName, pem::PemObject as _},
};
use serde_json::json;
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _},
    net::{TcpSocket, TcpStream},
    task::JoinHandle,
};
use tokio_rustls::TlsConnector;
use truetwin::{data, mcp, sim};

use crate::{
    chance::Chance,
    garbage,
    rig::{ASSISTANT, HOUSE, MALLORY, Rig, until},
    support::Login,
};

/// Of garbage where no minutes are asked for, milliseconds.
const SHORT_MS: u64 = 8_000;

/// Before memory is looked at, of a short run and of a long one. What is bounded fills in the first minute of it: 8 MiB that are not
/// the program's file become 20, and stay so after three times as many sockets. A short run looks at the beginning of that.
const WARM_UP_MS: [u64; 2] = [6_000, 100_000];

/// How long the least of memory is looked for before and after: a password that is checked has 19 MiB for a while.
const SETTLE: [Duration; 2] = [Duration::from_secs(3), Duration::from_secs(20)];

/// How long a socket is listened to before the next one, milliseconds: nobody waits for an answer to garbage.
const LISTEN_MS: u64 = 20;

/// Only a hang takes so long, milliseconds.
const HANDSHAKE_MS: u64 = 5_000;

/// What memory may be after the garbage, in hundredths of what it was before.
const MEMORY_PERCENT: u64 = 110;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hub_that_is_fed_garbage_lives_forgets_it_and_serves_the_others() {
    let number = |name: &str| std::env::var(name).ok().map(|text| text.parse::<u64>().expect(name));
    let seed = number("SEED").unwrap_or_else(|| u64::from(std::process::id()));
    let minutes = number("MINUTES");
    let long = usize::from(minutes.is_some());
    let length_ms = minutes.map_or(SHORT_MS, |minutes| minutes * 60_000);
    println!("fuzz of the hub: SEED={seed}, {} s", length_ms / 1000);
    let mut rig = Rig::start().await;
    let over = Arc::new(AtomicBool::new(false));
    let mut callers = Vec::new();
    for device in HOUSE {
        callers.push(caller(rig.caller().await, rig.sims[device].handle(), device, over.clone()));
    }
    let warm = throw(&rig, &mut Chance::new(seed ^ 1), WARM_UP_MS[long]).await;
    let before = settled_kib(&rig, None, SETTLE[long]).await;
    let thrown = throw(&rig, &mut Chance::new(seed), length_ms).await;
    rig.is_well();
    let limit = before * MEMORY_PERCENT / 100;
    let after = settled_kib(&rig, Some(limit), SETTLE[1]).await;
    over.store(true, Ordering::Relaxed);
    let mut asked = 0;
    for caller in callers {
        asked += caller.await.unwrap();
    }
    println!(
        "  {thrown} sockets of garbage after {warm}, {asked} calls, memory {before} KiB before, {after} KiB after"
    );
    assert!(after <= limit, "SEED={seed}: memory was {before} KiB before and stays at {after} KiB");
    assert!(asked > 0, "nobody asked anything meanwhile");
    assert!(rig.metric("truetwin_door_tls_accepted_total").await > 0, "nothing came over TLS");
    rig.converges("the garbage").await;
    rig.end().await;
}

/// Resident memory once nobody throws: as soon as it is within the limit, else the least that it comes to.
async fn settled_kib(rig: &Rig, limit: Option<u64>, within: Duration) -> u64 {
    let settle = Instant::now() + within;
    let mut least = u64::MAX;
    loop {
        least = least.min(rig.resident_kib());
        if limit.is_some_and(|limit| least <= limit) || Instant::now() > settle {
            return least;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// Switches a device again and again; each answer says what the device really is. How many there were.
fn caller(client: mcp::Client, sim: sim::Handle, device: &'static str, over: Arc<AtomicBool>) -> JoinHandle<u64> {
    tokio::spawn(async move {
        let mut asked = 0;
        while !over.load(Ordering::Relaxed) {
            let on = asked % 2 == 0;
            let to = if on { "on" } else { "off" };
            let answer = client.call("switch_device", json!({"device": device, "to": to})).await.expect("an answer");
            asked += 1;
            let answer = answer.structured;
            assert_eq!(answer["success"], true, "{answer}");
            assert_eq!(sim.relay(), on, "{answer}");
        }
        asked
    })
}

/// Throws garbage from several sockets at once, for so long; how many sockets there were.
async fn throw(rig: &Rig, chance: &mut Chance, length_ms: u64) -> u64 {
    let by = Instant::now() + Duration::from_millis(length_ms);
    let thrown = Arc::new(AtomicU64::new(0));
    let mut throwers = Vec::new();
    for at in 0..8u8 {
        let mut chance = Chance::new(chance.below(u64::MAX));
        let name = [MALLORY, ASSISTANT][usize::from(at % 2)];
        let logins = [rig.login(name, false), rig.login(name, true)];
        let (mqtt, http, thrown) = (rig.mqtt, rig.http, thrown.clone());
        let tls = (at >= 6).then(|| trusting(rig));
        throwers.push(tokio::spawn(async move {
            while Instant::now() < by {
                let (to, bytes) = match at {
                    0..2 => (http, garbage::http(&mut chance)),
                    2..4 => (mqtt, garbage::connect(&mut chance, &logins[usize::from(at % 4 == 3)])),
                    _ => (mqtt, session(&mut chance, &logins)),
                };
                throw_one([127, 0, 2, at], to, tls.as_ref(), &bytes).await;
                thrown.fetch_add(1, Ordering::Relaxed);
            }
        }));
    }
    for thrower in throwers {
        thrower.await.unwrap();
    }
    // The sockets are gone; whoever was let in is not connected any more either.
    until("the hub has let go of the sockets", async || {
        (rig.metric("truetwin_accounts_connections").await <= 1).then_some(())
    })
    .await;
    thrown.load(Ordering::Relaxed)
}

/// A good login and what it should not say afterwards.
fn session(chance: &mut Chance, logins: &[Login; 2]) -> Vec<u8> {
    let v5 = chance.one_in(2);
    let mut login = logins[usize::from(v5)].clone();
    if chance.one_in(2) {
        let is_account = login.user.as_deref() == Some(ASSISTANT.as_bytes());
        let topic = if is_account { "home/light" } else { "truetwin/mallory/status" };
        let retain = is_account && chance.one_in(2);
        login.will = Some((topic.into(), b"gone".to_vec(), u8::try_from(chance.below(2)).unwrap(), retain));
    }
    let mut bytes = login.packet();
    for _ in 0..=chance.below(12) {
        bytes.extend_from_slice(&garbage::mqtt(chance, v5));
    }
    bytes
}

/// Who trusts the hub's certificate.
fn trusting(rig: &Rig) -> TlsConnector {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(rig.data().join(data::TLS_CA_CERT)).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    Arc::new(builder.with_root_certificates(roots).with_no_client_auth()).into()
}

async fn throw_one(from: [u8; 4], to: SocketAddr, tls: Option<&TlsConnector>, bytes: &[u8]) {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind((from, 0).into()).unwrap();
    let Ok(socket): Result<TcpStream, _> = socket.connect(to).await else { return };
    let Some(tls) = tls else { return throw_over(socket, bytes).await };
    let name = ServerName::try_from("localhost").unwrap();
    // While others flood it, the hub may refuse the handshake.
    let encrypted = tokio::time::timeout(Duration::from_millis(HANDSHAKE_MS), tls.connect(name, socket)).await;
    if let Ok(socket) = encrypted.expect("neither a handshake nor an end") {
        throw_over(socket, bytes).await;
    }
}

async fn throw_over(mut socket: impl AsyncRead + AsyncWrite + Unpin, bytes: &[u8]) {
    let listening = async {
        let _closed_already = socket.write_all(bytes).await;
        let _closed_already = socket.flush().await;
        let mut heard = [0; 1024];
        while socket.read(&mut heard).await.is_ok_and(|bytes| bytes > 0) {}
    };
    let _nobody_waits = tokio::time::timeout(Duration::from_millis(LISTEN_MS), listening).await;
}
