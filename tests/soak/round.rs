//! A round: a house, its callers, and what goes wrong in it; afterwards what was said is held against what was done.

use std::{
    collections::BTreeMap,
    fs,
    net::SocketAddr,
    path::Path,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use serde_json::json;
use tokio::sync::watch;
use truetwin::mcp::Client;

use crate::{
    HANG_MS, LIMIT_MS,
    chance::Chance,
    device::{Device, Life},
    history::{Asked, End, History},
    hub::{self, Hub, since},
    proxy::Proxy,
    until,
};

/// The devices: the first is for the hub's deaths, the last relay has two callers, the heater holds its set point.
pub(crate) const DEVICES: [(&str, &str); 6] = [
    ("probe", "socket"),
    ("north", "socket"),
    ("south", "socket"),
    ("east", "socket"),
    ("shared", "socket"),
    ("heater", "thermostat"),
];
pub(crate) const PROBE: usize = 0;
pub(crate) const SHARED: usize = 4;
pub(crate) const HEATER: usize = 5;

/// Whose device each caller's is.
const CALLERS: [usize; 6] = [1, 2, 3, SHARED, SHARED, HEATER];

/// What all tasks of a round know.
pub(crate) struct Common {
    pub(crate) begun: Instant,
    pub(crate) http: SocketAddr,
    pub(crate) asked: Mutex<Vec<Asked>>,
    pub(crate) over: AtomicBool,
    /// How often the hub has died: nobody waits for an answer of a dead one. (A client does not notice it: it waits for the hub
    /// to come back and to go on with its stream.)
    pub(crate) deaths: watch::Sender<u64>,
}

pub(crate) struct House {
    pub(crate) folder: tempfile::TempDir,
    pub(crate) hub: Hub,
    pub(crate) mqtt: SocketAddr,
    pub(crate) proxy: Proxy,
    pub(crate) devices: Vec<Device>,
    pub(crate) common: Arc<Common>,
    pub(crate) history: History,
    pub(crate) faults: BTreeMap<String, u64>,
}

impl House {
    pub(crate) async fn build(seed: u64) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("data");
        let (mqtt, begun) = (hub::free_port(), Instant::now());
        // The devices' passwords, while no hub runs: that makes the folder.
        let secrets: Vec<_> = DEVICES.iter().map(|(name, _)| hub::add(folder.path(), &data, name)).collect();
        let hub = Hub::start(folder.path(), &data, mqtt, hub::free_port()).await;
        let proxy = Proxy::start(seed, mqtt).await;
        let device = |((name, kind), secret): (&(&str, &str), &std::path::PathBuf)| {
            Device::start(name, kind, proxy.address, secret, begun)
        };
        let devices: Vec<Device> = DEVICES.iter().zip(&secrets).map(device).collect();
        let http = hub.http;
        let common =
            Common { begun, http, asked: Mutex::default(), over: AtomicBool::new(false), deaths: watch::channel(0).0 };
        let mut house = Self {
            folder,
            hub,
            mqtt,
            proxy,
            devices,
            common: Arc::new(common),
            history: History { lives: vec![(0, u64::MAX)], ..History::default() },
            faults: BTreeMap::new(),
        };
        house.all_welcomed_since(0).await;
        house.history.lives = vec![(house.now(), u64::MAX)];
        house
    }

    pub(crate) fn now(&self) -> u64 {
        since(self.common.begun)
    }

    pub(crate) async fn all_welcomed_since(&self, ms: u64) {
        for device in &self.devices {
            let welcomed = async || device.welcomed_since(ms).then_some(());
            until(&format!("{} is welcomed again", device.name), welcomed).await;
        }
    }

    /// Starts all callers.
    pub(crate) fn callers(&self, chance: &mut Chance) -> Vec<tokio::task::JoinHandle<()>> {
        let start = |device: &usize| {
            let (common, chance) = (self.common.clone(), Chance::new(chance.below(u64::MAX)));
            tokio::spawn(caller(common, *device, chance))
        };
        CALLERS.iter().map(start).collect()
    }

    pub(crate) fn count(&mut self, fault: &str) {
        *self.faults.entry(fault.to_owned()).or_default() += 1;
    }

    /// `kill -9`, and a hub that begins anew on the same ports; what the dead one answered must be known to it.
    pub(crate) async fn die(&mut self) {
        // Before the signal: whoever loses its connection has lost it later than that.
        let died = self.now();
        self.hub.kill();
        self.common.deaths.send_modify(|deaths| *deaths += 1);
        self.history.lives.last_mut().unwrap().1 = died;
        let open = self.left_behind();
        self.hub = Hub::start(self.folder.path(), &self.hub.data.clone(), self.mqtt, self.common.http).await;
        self.history.lives.push((self.now(), u64::MAX));
        let client = self.hub.client().await;
        let asked = self.common.asked.lock().unwrap().clone();
        for device in 0..DEVICES.len() {
            let latest = asked.iter().rev().filter(|asked| asked.device == device && asked.ended_ms <= died);
            for (operation, outcome, answer) in latest.filter_map(Asked::recorded).take(6) {
                self.is_known(&client, operation, Some(outcome), &format!("answered {answer}")).await;
            }
        }
        for operation in open {
            self.is_known(&client, &operation, None, "admitted").await;
        }
        client.close().await;
    }

    async fn is_known(&mut self, client: &Client, operation: &str, outcome: Option<&str>, what: &str) {
        let told = client.call("check_operation", json!({"operation": operation})).await;
        let told = told.map(|told| told.structured).unwrap_or_default();
        // An operation that was in flight may have been found done since: then it is amended, and says so.
        let expected = outcome.unwrap_or("interrupted");
        if !crate::history::agrees(expected, &told) {
            self.history.lost.push(format!("{operation}, {what}, is told as {told}"));
        }
    }

    /// The operations that the dead hub had admitted and not ended, from a copy: a look must not mend what it looks at.
    fn left_behind(&self) -> Vec<String> {
        let copy = tempfile::tempdir().unwrap();
        let journal = journal_of(&self.hub.data, copy.path());
        let mut statement = journal.prepare("SELECT op FROM admission").unwrap();
        let rows = statement.query_map([], |row| row.get(0)).unwrap();
        rows.map(Result::unwrap).collect()
    }

    /// Everything is well again: the devices obey, the set point is met, every record is there, and what was said was true.
    pub(crate) async fn judge(&mut self) -> Vec<Life> {
        self.proxy.clear();
        self.die().await;
        self.all_welcomed_since(self.history.lives.last().unwrap().0).await;
        let client = self.hub.client().await;
        for (device, (name, _)) in DEVICES[..HEATER].iter().enumerate() {
            for to in [1.0, 0.0] {
                until(&format!("{name} obeys"), async || {
                    let asked = ask(&self.common, &client, device, to).await;
                    let done = matches!(&asked.end, End::Answered(answer) if answer["success"] == true);
                    self.common.asked.lock().unwrap().push(asked);
                    done.then_some(())
                })
                .await;
            }
        }
        self.set_point_is_met(&client).await;
        client.close().await;
        self.history.asked = self.common.asked.lock().unwrap().clone();
        self.hub.kill();
        let log = fs::read_to_string(self.folder.path().join("hub.log")).unwrap_or_default();
        let panics = log.lines().filter(|line| line.contains("panicked")).map(|line| format!("the hub's log: {line}"));
        self.history.wrong.extend(panics);
        self.every_record_is_there();
        let mut lives = Vec::new();
        for device in &mut self.devices {
            lives.push(device.life().await);
        }
        self.history.judge(&lives, &[SHARED], &[HEATER]);
        lives
    }

    /// The heater has the last set point that was taken, or a later one of which nobody was told what became of it.
    async fn set_point_is_met(&mut self, client: &Client) {
        let asked = self.common.asked.lock().unwrap().clone();
        let mut wanted = Vec::new();
        for asked in asked.iter().filter(|asked| asked.device == HEATER) {
            match asked.recorded() {
                Some(_) => wanted = vec![asked.wish],
                None if matches!(asked.end, End::Answered(_)) => {}
                None => wanted.push(asked.wish),
            }
        }
        let met = until("the set point is met", async || {
            let told = client.call("get_device_state", json!({"device": "heater"})).await.ok()?.structured;
            let held = &told["held"][0];
            // Nobody was at the heater.
            let by_hand = held["state"] == "local_override";
            (held.is_null() || held["state"] == "met" || by_hand).then(|| (held["value"].as_f64(), by_hand))
        })
        .await;
        let (met, by_hand) = met;
        if by_hand {
            self.history.lost.push(format!("set point: {met:?} is taken for a person's, of {wanted:?}"));
        }
        let _asked_anew = self.devices[HEATER].life().await;
        let really = self.devices[HEATER].truth_of("target");
        if !wanted.is_empty() && (met != really || !wanted.iter().any(|wanted| Some(*wanted) == really)) {
            self.history.lost.push(format!("set point: one of {wanted:?} was taken, held {met:?}, really {really:?}"));
        }
    }

    /// Each operation that was answered stands in the journal with what was answered.
    fn every_record_is_there(&mut self) {
        let copy = tempfile::tempdir().unwrap();
        let journal = journal_of(&self.hub.data, copy.path());
        let mut statement = journal.prepare("SELECT json FROM operation WHERE op = ?1 ORDER BY number").unwrap();
        for asked in &self.history.asked {
            let Some((operation, outcome, answer)) = asked.recorded() else { continue };
            let rows = statement.query_map([operation], |row| row.get::<_, String>(0)).unwrap();
            let rows: Vec<serde_json::Value> = rows.map(|row| serde_json::from_str(&row.unwrap()).unwrap()).collect();
            let same = rows.last().is_some_and(|told| crate::history::agrees(outcome, told));
            if !same {
                self.history.lost.push(format!("{operation}, answered {answer}, stands as {rows:?}"));
            }
        }
    }
}

/// The journal that a dead hub left, as the next one will find it.
fn journal_of(data: &Path, copy: &Path) -> rusqlite::Connection {
    for file in ["journal.db", "journal.db-wal"] {
        let _there_may_be_no_log = fs::copy(data.join(file), copy.join(file));
    }
    rusqlite::Connection::open(copy.join("journal.db")).unwrap()
}

/// One call to its end.
pub(crate) async fn ask(common: &Common, client: &Client, device: usize, wish: f64) -> Asked {
    let (name, kind) = DEVICES[device];
    let mut deaths = common.deaths.subscribe();
    let asked_ms = since(common.begun);
    let calling = if kind == "socket" {
        client.call("switch_device", json!({"device": name, "to": if wish > 0.5 { "on" } else { "off" }}))
    } else {
        // The arguments of both have the same type; only the words differ.
        client.call("set_device_level", json!({"device": name, "property": "target", "level": wish}))
    };
    let hang = Duration::from_millis(LIMIT_MS + HANG_MS);
    let end = tokio::select! {
        biased;
        called = calling => match called {
            Ok(called) => End::Answered(called.structured),
            Err(error) => End::Broken(error.to_string()),
        },
        _died = deaths.changed() => End::Broken("the hub died".to_owned()),
        () = tokio::time::sleep(hang) => End::Broken("no answer came".to_owned()),
    };
    Asked { device, wish, asked_ms, ended_ms: since(common.begun), end }
}

/// Asks for one thing after the other; now and then without waiting for the answer.
async fn caller(common: Arc<Common>, device: usize, mut chance: Chance) {
    let url = format!("http://{}/mcp", common.http);
    let mut client = None;
    while !common.over.load(Ordering::Relaxed) {
        let Some(connected) = client.take() else {
            // A hub that is dead or held lets nobody in.
            let connecting = tokio::time::timeout(Duration::from_secs(5), Client::connect(&url)).await;
            client = connecting.ok().and_then(Result::ok);
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        let number = u8::try_from(chance.below(17)).unwrap();
        let wish = if device == HEATER { 10.0 + f64::from(number) } else { f64::from(number % 2) };
        let vanishes = chance.one_in(10).then(|| chance.ms(1..600));
        let asked_ms = since(common.begun);
        let calling = ask(&common, &connected, device, wish);
        let asked = match vanishes {
            None => Some(calling.await),
            Some(after) => tokio::time::timeout(after, calling).await.ok(),
        };
        let keeps = asked.as_ref().is_none_or(|asked| !matches!(asked.end, End::Broken(_)));
        let gone = Asked { device, wish, asked_ms, ended_ms: since(common.begun), end: End::Vanished };
        common.asked.lock().unwrap().push(asked.unwrap_or(gone));
        // Whoever stops waiting goes away altogether now and then.
        if keeps && (vanishes.is_none() || chance.one_in(2)) {
            client = Some(connected);
        }
        tokio::time::sleep(chance.ms(0..150)).await;
    }
}
