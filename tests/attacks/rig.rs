//! The hub as a process, simulated devices that are its owner's, an account that watches all they say, and a client that asks.

use std::{
    collections::BTreeMap,
    fs,
    net::SocketAddr,
    path::PathBuf,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use truetwin::{
    data::{self, DataFolder},
    mcp::Client as Caller,
    property::DeviceId,
    sim::{self, Simulator},
    topics::Rights,
};

use crate::support::{Client, Login, subscribe_with, text};

/// Only a hang meets it.
pub(crate) const HANG: Duration = Duration::from_secs(60);

/// Devices of the house, which nobody else may move or speak for.
pub(crate) const HOUSE: [&str; 2] = ["lamp", "fan"];

/// A device whose board turned hostile.
pub(crate) const MALLORY: &str = "mallory";

/// An account with `home/#` for reading and writing.
pub(crate) const ASSISTANT: &str = "assistant";

/// An account that may read everything, and write `notes/#`.
pub(crate) const WATCHER: &str = "watcher";

/// A password that somebody chose, which is slow to check, unlike those that are made.
const CHOSEN: &str = "correct horse battery staple";

/// What every forged message has in it.
pub(crate) const FORGED: &str = "forged";

/// Where attackers dial from; the house is at 127.0.0.1.
pub(crate) const OUTSIDE: [u8; 4] = [127, 0, 0, 66];

/// Bounds that are met within the test; the rest is as installed.
const CONFIG: &str = "[mqtt]\nhandshake_ms = 1000\ntls = \"both\"\ntls_handshake_ms = 1000\n[accounts]\nretained_max = 64\n[limits]\nrecords_per_device = 64\n";

pub(crate) struct Rig {
    child: Child,
    folder: tempfile::TempDir,
    passwords: BTreeMap<String, String>,
    pub(crate) sims: BTreeMap<&'static str, Simulator>,
    pub(crate) mqtt: SocketAddr,
    pub(crate) http: SocketAddr,
    caller: Option<Caller>,
    watcher: Option<Client>,
    on: bool,
}

impl Rig {
    /// Starts all of it, and waits until the house is at work.
    pub(crate) async fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let passwords = introduce(&folder.path().join("data"));
        let mut rig = Self {
            child: serve(&folder),
            folder,
            passwords,
            sims: BTreeMap::new(),
            mqtt: ([0; 4], 0).into(),
            http: ([0; 4], 0).into(),
            caller: None,
            watcher: None,
            on: false,
        };
        let at = until("the hub listens", async || {
            let ended = rig.child.try_wait().unwrap();
            assert!(ended.is_none(), "the hub has ended: {ended:?}\n{}", rig.log());
            data::read_hub_json(&rig.data()).ok()
        })
        .await;
        (rig.mqtt, rig.http) = (at.mqtt.parse().unwrap(), at.http.trim_start_matches("http://").parse().unwrap());
        for device in HOUSE {
            let options = sim::Options::new(rig.mqtt, device, rig.password(device));
            rig.sims.insert(device, sim::start(options));
        }
        rig.caller = Some(rig.caller().await);
        let mut watcher = rig.comes_in(WATCHER, true).await;
        watcher.send(&subscribe_with(1, &["#"], 0, Some(&[]))).await;
        assert_eq!(watcher.next().await.map(|(first, body)| (first, body[3])), Some((0x90, 0)));
        rig.watcher = Some(watcher);
        for device in HOUSE {
            rig.online(device).await;
        }
        rig
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    pub(crate) fn password(&self, of: &str) -> &str {
        &self.passwords[of]
    }

    /// An MCP session of its own.
    pub(crate) async fn caller(&self) -> Caller {
        Caller::connect(&format!("http://{}/mcp", self.http)).await.unwrap()
    }

    /// Waits until a device is known to the hub by its state.
    pub(crate) async fn online(&self, device: &str) {
        let caller = self.caller.as_ref().unwrap();
        until(&format!("{device} is there"), async || {
            let told = caller.call("get_device_state", json!({"device": device})).await.ok()?;
            (told.structured["trust"] == "now").then_some(())
        })
        .await;
    }

    /// A socket of an attacker.
    pub(crate) async fn dial(&self, v5: bool) -> Client {
        Client::raw_from(OUTSIDE, self.mqtt, v5).await
    }

    /// The CONNECT of somebody who has an account or is a device.
    pub(crate) fn login(&self, name: &str, v5: bool) -> Login {
        Login::of(name).v5(v5).password(self.password(name)).client_id(name)
    }

    /// A connection of somebody with a login, from outside.
    pub(crate) async fn comes_in(&self, name: &str, v5: bool) -> Client {
        let mut client = self.dial(v5).await;
        name.clone_into(&mut client.name);
        assert_eq!(client.login(&self.login(name, v5).packet()).await, Some(0), "{name} must be let in");
        client
    }

    /// The code of an attacker's CONNACK, `None` if it is closed without one.
    pub(crate) async fn knocks(&self, login: &Login) -> Option<u8> {
        self.dial(login.v5).await.login(&login.packet()).await
    }

    /// The sum of the samples of a metric.
    pub(crate) async fn metric(&self, name: &str) -> u64 {
        let text = self.get("/metrics").await;
        let sample = |line: &str| {
            let (key, value) = line.rsplit_once(' ')?;
            (key.split('{').next() == Some(name)).then(|| value.parse::<f64>().unwrap())
        };
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "counts of a test")]
        let sum = text.lines().filter_map(sample).sum::<f64>() as u64;
        sum
    }

    /// The answer to a plain GET.
    pub(crate) async fn get(&self, path: &str) -> String {
        let asking = async {
            let mut stream = tokio::net::TcpStream::connect(self.http).await.unwrap();
            let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
            stream.write_all(request.as_bytes()).await.unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).await.unwrap();
            answer
        };
        tokio::time::timeout(HANG, asking).await.unwrap_or_else(|_| panic!("no answer to GET {path}"))
    }

    /// A tool call to the lamp converges, and the lamp really is what was said.
    pub(crate) async fn converges(&mut self, after: &str) {
        self.on = !self.on;
        let caller = self.caller.as_ref().unwrap();
        let to = if self.on { "on" } else { "off" };
        let asked = caller.call("switch_device", json!({"device": "lamp", "to": to}));
        let answer = tokio::time::timeout(HANG, asked).await.expect("an answer").unwrap().structured;
        assert_eq!(answer["success"], true, "{after}: {answer}\n{}", self.log());
        assert_eq!(self.sims["lamp"].relay(), self.on, "{after}: {answer}");
    }

    /// Nothing forged has come to the one who sees everything.
    pub(crate) async fn nothing_forged_was_seen(&mut self, after: &str) {
        let watcher = self.watcher.as_mut().unwrap();
        watcher.send(&[0xC0, 0]).await;
        loop {
            let (first, body) = watcher.next().await.expect("the watcher stays connected");
            if first == 0xD0 {
                return;
            }
            assert!(!text(&body).contains(FORGED), "{after}: {}", text(&body));
        }
    }

    /// What the hub printed.
    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("hub.log")).unwrap_or_default()
    }

    /// Fails if a part of the hub panicked, or the process is gone.
    pub(crate) fn is_well(&mut self) {
        let ended = self.child.try_wait().unwrap();
        let log = self.log();
        assert!(ended.is_none(), "the hub has ended: {ended:?}\n{log}");
        assert!(!log.contains("panicked"), "{log}");
    }

    /// Resident memory of the hub, KiB.
    pub(crate) fn resident_kib(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    }

    /// Ends it, in good health.
    pub(crate) async fn end(mut self) {
        self.is_well();
        if let Some(caller) = self.caller.take() {
            caller.close().await;
        }
        let stopped = Command::new("kill").args(["-TERM", &self.child.id().to_string()]).status().unwrap();
        assert!(stopped.success());
        let ended = until("the hub ends when it is asked to", async || self.child.try_wait().unwrap()).await;
        assert!(ended.success(), "{ended:?}\n{}", self.log());
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        let _gone_already = self.child.kill();
        let _gone_already = self.child.wait();
    }
}

/// Makes everybody known while no hub runs, and a certificate; their passwords.
fn introduce(folder: &std::path::Path) -> BTreeMap<String, String> {
    let data = DataFolder::open(folder).unwrap();
    data::make_certificate(folder, &["localhost".to_owned()]).unwrap();
    let mut passwords = BTreeMap::new();
    for device in HOUSE.into_iter().chain([MALLORY, "clone"]) {
        let secret = data.credentials().add(&DeviceId::new(device).unwrap()).unwrap();
        passwords.insert(device.to_owned(), secret.reveal().to_owned());
    }
    let chosen = data::Secret::new(CHOSEN.to_owned());
    for (account, read, write, password) in
        [(ASSISTANT, "home/#", "home/#", Some(&chosen)), (WATCHER, "#", "notes/#", None)]
    {
        let rights = Rights::new(&[read], &[write]).unwrap();
        let made = data.accounts().add(&DeviceId::new(account).unwrap(), rights, password).unwrap();
        let password = made.map_or_else(|| CHOSEN.to_owned(), |made| made.reveal().to_owned());
        passwords.insert(account.to_owned(), password);
    }
    passwords
}

fn serve(folder: &tempfile::TempDir) -> Child {
    let (file, log) = (folder.path().join("truetwin.toml"), folder.path().join("hub.log"));
    fs::write(&file, CONFIG).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_truetwin"));
    command.args(["serve", "--mqtt", "127.0.0.1:0", "--http", "127.0.0.1:0", "--data"]).arg(folder.path().join("data"));
    command.arg("--config").arg(&file).stdin(Stdio::null()).stdout(Stdio::null());
    command.stderr(fs::File::create(log).unwrap()).spawn().unwrap()
}

/// Looks again and again until something is so.
pub(crate) async fn until<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let by = Instant::now() + HANG;
    loop {
        if let Some(found) = look().await {
            return found;
        }
        assert!(Instant::now() < by, "still not so: {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// What was tried, and what came of it.
#[derive(Default)]
pub(crate) struct Table(Vec<[String; 3]>);

impl Table {
    /// A row whose facts were asserted.
    pub(crate) fn row(&mut self, attack: &str, told: &str, effect: &str) {
        println!("  {attack}");
        self.0.push([attack, told, effect].map(str::to_owned));
    }

    pub(crate) fn print(&self) {
        println!("\n| attack | the attacker is told | what came of it |\n|---|---|---|");
        for [attack, told, effect] in &self.0 {
            println!("| {attack} | {told} | {effect} |");
        }
    }
}

/// The code of a version, for the table and for asserting: what MQTT 5 says, or the one thing that 3.1.1 can.
pub(crate) const fn of(v5: bool, five: u8, three: u8) -> Option<u8> {
    Some(if v5 { five } else { three })
}
