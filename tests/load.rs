//! Many connections at the program itself: devices that stay, devices that all come back at once, strangers.
//!
//! `make load` with thousands on the program as released; a few hundred each without it. `DEVICES`, `STORM` and `STRANGERS` say how
//! many. The load is this process, one thread; the hub is another one. Times and memory are told; what is asserted is that
//! everybody who belongs is in, nobody else, and that the memory for each stays in bounds that no machine misses.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test that cannot go on has failed, and says what it did"
)]
#![allow(dead_code, reason = "of what the benchmark is made of this needs a part")]

#[path = "../benches/hub/books.rs"]
mod books;
#[path = "../benches/hub/device.rs"]
mod device;
#[path = "../benches/hub/mcp.rs"]
mod mcp;
#[path = "../benches/hub/mqtt.rs"]
mod mqtt;
#[path = "../benches/hub/process.rs"]
mod process;

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use anyhow::{Context as _, bail, ensure};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    sync::Semaphore,
    task::{JoinHandle, JoinSet},
};
use truetwin_wire::words::EvidenceWord;

use crate::{
    books::Books,
    device::Device,
    mcp::{Answer, Caller},
    process::Hub,
};

/// Handshakes of ours under way at once: fewer than the hub allows, because the rest would wait in the kernel's queue anyway.
const AT_ONCE: usize = 200;

/// How long a process may come to rest before its memory is looked at.
const REST: Duration = Duration::from_secs(2);

/// Only a hang meets it.
const PATIENCE: Duration = Duration::from_secs(240);

/// Resident memory for each connected device at most, KiB. Some 10 are usual; this is no figure but an alarm.
const DEVICE_KIB_MAX: f64 = 48.0;

/// What strangers may leave behind, KiB, however many came.
const STRANGERS_KIB_MAX: u64 = 24 * 1024;

/// How many of this kind.
fn number(name: &str) -> usize {
    let text = std::env::var(name).unwrap_or_else(|_| "500".to_owned());
    text.parse().unwrap_or_else(|_| panic!("{name}={text} is no whole number"))
}

/// Each connection is an open file; many systems begin with 1024.
fn open_files(needed: usize) {
    process::open_files();
    let may = rustix::process::getrlimit(rustix::process::Resource::Nofile).current.unwrap_or(u64::MAX);
    assert!(may >= needed as u64, "{needed} open files are needed and {may} allowed: ulimit -Hn {needed}");
}

/// A hub for so many devices, which it knows, with these settings.
fn hub(folder: &tempfile::TempDir, config: &str, devices: usize) -> Hub {
    let names: Vec<String> = (0..devices).map(|at| format!("d{at}")).collect();
    Hub::start(folder.path(), config, &names).unwrap()
}

/// Devices that come back when their connection ends, for as long as this lives.
struct Devices {
    tasks: Vec<JoinHandle<()>>,
    online: Arc<AtomicUsize>,
}

impl Devices {
    /// Connects all devices of a hub; returns when each has greeted and was welcomed.
    async fn connect(hub: &Hub) -> Self {
        let (online, turns) = (Arc::new(AtomicUsize::new(0)), Arc::new(Semaphore::new(AT_ONCE)));
        let mut tasks = Vec::new();
        for (name, password) in &hub.devices {
            let life =
                live(hub.mqtt.clone(), name.clone(), password.reveal().to_owned(), turns.clone(), online.clone());
            tasks.push(tokio::spawn(life));
        }
        let devices = Self { tasks, online };
        devices.all_online().await;
        devices
    }

    async fn all_online(&self) {
        let by = Instant::now() + PATIENCE;
        while self.online.load(Relaxed) < self.tasks.len() {
            assert!(Instant::now() < by, "{} of {} are in", self.online.load(Relaxed), self.tasks.len());
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

impl Drop for Devices {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

/// One device: it tries again ten times a second, as nobody's firmware should.
async fn live(mqtt: String, name: String, password: String, turns: Arc<Semaphore>, online: Arc<AtomicUsize>) {
    let mut device: Option<Device> = None;
    loop {
        let turn = turns.acquire().await.expect("never closed");
        let come = match &mut device {
            Some(device) => device.again(&mqtt, &name, &password).await,
            None => Device::open(&mqtt, &name, &password, EvidenceWord::Pin, 1, Arc::default())
                .await
                .map(|opened| device = Some(opened)),
        };
        drop(turn);
        if let (Ok(()), Some(device)) = (come, &mut device) {
            online.fetch_add(1, Relaxed);
            let _connection_ended = device.run().await;
            online.fetch_sub(1, Relaxed);
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// Waits until a metric of the hub is so.
async fn metric(hub: &Hub, name: &str, label: &str, wanted: u64) -> anyhow::Result<()> {
    let by = Instant::now() + PATIENCE;
    loop {
        let is = Books::read(hub).await?.sum(name, label);
        if is == wanted {
            return Ok(());
        }
        ensure!(Instant::now() < by, "{name} {label} is {is}, not {wanted}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

async fn rested_kib(hub: &Hub) -> u64 {
    tokio::time::sleep(REST).await;
    hub.process.resident_kib()
}

#[tokio::test]
async fn many_devices_are_connected_and_each_costs_little() {
    let devices = number("DEVICES");
    open_files(devices + 500);
    let folder = tempfile::tempdir().unwrap();
    let hub = hub(&folder, process::ONE_MACHINE, devices);
    let before_kib = rested_kib(&hub).await;
    let begun = Instant::now();
    let connected = Devices::connect(&hub).await;
    let took = begun.elapsed();
    metric(&hub, "truetwin_devices", "presence=\"online\"", devices as u64).await.unwrap();
    let after_kib = rested_kib(&hub).await;
    assert_eq!(connected.online.load(Relaxed), devices, "nobody was cut off");
    let each = after_kib.saturating_sub(before_kib) as f64 / devices as f64;
    println!(
        "load: {devices} devices greeted in {:.2} s ({:.0}/s); resident memory {before_kib} KiB with all known, {after_kib} KiB \
         with all connected: {each:.1} KiB each",
        took.as_secs_f64(),
        devices as f64 / took.as_secs_f64()
    );
    let books = Books::read(&hub).await.unwrap();
    for nothing in [
        "truetwin_door_reports_refused_total",
        "truetwin_door_acknowledgement_expiries_total",
        "truetwin_bus_gaps_total",
    ] {
        assert_eq!(books.sum(nothing, ""), 0, "{nothing}");
    }
    if !cfg!(target_os = "linux") {
        return;
    }
    assert!(each <= DEVICE_KIB_MAX, "{each:.1} KiB for each device");
}

#[tokio::test]
async fn all_devices_are_back_after_the_hub_was_killed_and_started_again() {
    let devices = number("STORM");
    open_files(devices + 500);
    let folder = tempfile::tempdir().unwrap();
    let hub = hub(&folder, process::ONE_MACHINE, devices);
    let connected = Devices::connect(&hub).await;
    let hub = hub.restart().unwrap();
    let begun = Instant::now();
    metric(&hub, "truetwin_devices", "presence=\"online\"", devices as u64).await.unwrap();
    let took = begun.elapsed();
    println!("load: a storm of {devices} was over {:.2} s after the hub listened again", took.as_secs_f64());
    connected.all_online().await;
    assert_eq!(Books::read(&hub).await.unwrap().sum("truetwin_door_reports_refused_total", ""), 0);
}

#[tokio::test]
async fn strangers_are_refused_however_many_and_a_call_meanwhile_converges() {
    let strangers = number("STRANGERS");
    open_files(2_000);
    let folder = tempfile::tempdir().unwrap();
    let hub = hub(&folder, "", 1); // as it is by default
    let _device = Devices::connect(&hub).await;
    let before = Books::read(&hub).await.unwrap();
    let before_kib = rested_kib(&hub).await;
    let session = Caller::open_session(&hub.http).await.unwrap();
    let mut caller = Caller::join(&hub.http, session, 1).await.unwrap();
    let begun = Instant::now();
    let all = tokio::spawn(knock(hub.mqtt.clone(), strangers));
    let (mut calls, mut longest) = (0u32, Duration::ZERO);
    while !all.is_finished() || calls < 2 {
        let to = if calls.is_multiple_of(2) { "on" } else { "off" };
        let asked = Instant::now();
        let answer = caller.call("switch_device", &format!(r#"{{"device":"d0","to":"{to}"}}"#)).await.unwrap();
        longest = longest.max(asked.elapsed());
        assert!(matches!(answer, Answer::Good), "{answer:?}");
        calls += 1;
    }
    let refused = all.await.unwrap().unwrap();
    let took = begun.elapsed();
    let after = Books::read(&hub).await.unwrap();
    let after_kib = rested_kib(&hub).await;
    println!(
        "load: {strangers} connects without login refused in {:.2} s; resident memory {before_kib} KiB before, {after_kib} KiB \
         after; {calls} calls meanwhile converged, the longest in {:.0} ms",
        took.as_secs_f64(),
        longest.as_secs_f64() * 1e3
    );
    assert_eq!(refused, strangers, "none was let in");
    let accepted = |books: &Books| books.sum("truetwin_door_connections_accepted_total", "");
    assert_eq!(accepted(&after), accepted(&before), "none was let in");
    assert!(after_kib <= before_kib + STRANGERS_KIB_MAX, "strangers leave {} KiB behind", after_kib - before_kib);
}

/// So many connects without user name and password; how many were refused, with a code or by being closed.
async fn knock(mqtt: String, strangers: usize) -> anyhow::Result<usize> {
    let turns = Arc::new(Semaphore::new(AT_ONCE));
    let mut all = JoinSet::new();
    for _ in 0..strangers {
        let turn = turns.clone().acquire_owned().await?;
        let mqtt = mqtt.clone();
        all.spawn(async move {
            let _turn = turn;
            stranger(&mqtt).await
        });
    }
    let mut refused = 0;
    while let Some(one) = all.join_next().await {
        one??;
        refused += 1;
    }
    Ok(refused)
}

async fn stranger(mqtt: &str) -> anyhow::Result<()> {
    let mut socket = TcpStream::connect(mqtt).await.context("the kernel's queue is full")?;
    let connect = b"\x10\x0d\x00\x04MQTT\x04\x02\x00\x3c\x00\x01x";
    let _closed_already = socket.write_all(connect).await;
    let mut answer = Vec::new();
    let _reset = socket.read_to_end(&mut answer).await;
    match answer[..] {
        [] | [0x20, 2, 0, 1..=5] => Ok(()),
        _ => bail!("{answer:02x?} to a stranger"),
    }
}
