//! A house for tests: a hub with its real door, bus and MCP over HTTP, simulated devices on their own connections, and
//! clients as an assistant has them. What is asked goes in through MCP, what really happened is asked of the simulators.
#![allow(dead_code, reason = "each test binary uses a part")]

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use serde_json::{Value as Json, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    sync::mpsc,
};
use truetwin::{
    config::Config,
    control,
    data::DataFolder,
    mcp::Client,
    property::DeviceId,
    serve::Hub,
    sim::{self, Fault, Handle, Happened, Kind, Simulator},
    twin::words::Presence,
};

/// Far above what anything here takes; only a hang meets it.
pub(crate) const HANG: Duration = Duration::from_secs(60);

/// How long something may be told after the answer: a lying board moves 5 s late.
const TOLD_LATE: Duration = Duration::from_secs(20);

/// How often something is looked at that tells nobody when it changes.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// One device of the house.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Member {
    pub(crate) device: &'static str,
    pub(crate) kind: Kind,
    /// As [`sim::Options::speed`].
    pub(crate) speed: f64,
}

impl Member {
    pub(crate) const fn new(device: &'static str, kind: Kind) -> Self {
        Self { device, kind, speed: 1.0 }
    }

    pub(crate) const fn at_speed(self, speed: f64) -> Self {
        Self { speed, ..self }
    }
}

/// The hub, its devices, and the folder that goes with them.
pub(crate) struct House {
    hub: Hub,
    sims: BTreeMap<&'static str, Simulator>,
    folder: tempfile::TempDir,
}

impl House {
    /// Starts the hub with this configuration and all devices, and waits until they are online.
    pub(crate) async fn build(config: &str, members: &[Member]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let config = Config::parse("test", config).unwrap_or_else(|error| panic!("{error}"));
        let data = DataFolder::open(&folder.path().join("data")).unwrap();
        let free = || TcpListener::bind(("127.0.0.1", 0));
        let hub = Hub::start(config, data, free().await.unwrap(), free().await.unwrap()).await.unwrap();
        let mut house = Self { hub, sims: BTreeMap::new(), folder };
        for member in members {
            house.add(*member).await;
        }
        for member in members {
            house.presence(member.device, Presence::Online).await;
        }
        house
    }

    /// Adds a device and starts it.
    pub(crate) async fn add(&mut self, member: Member) {
        let password = self.introduce(member.device).await;
        self.start(member, &password);
    }

    /// Makes a device known that does not run yet; its password.
    pub(crate) async fn introduce(&self, device: &str) -> String {
        self.hub.parts().add_device(&id(device)).await.unwrap().reveal().to_owned()
    }

    /// Starts a device that is known.
    pub(crate) fn start(&mut self, Member { device, kind, speed }: Member, password: &str) {
        let simulator =
            sim::start(sim::Options { kind, speed, ..sim::Options::new(self.hub.mqtt_addr(), device, password) });
        self.sims.insert(device, simulator);
    }

    /// A new caller: an MCP session of its own.
    pub(crate) async fn caller(&self) -> Caller {
        Caller(Client::connect(&format!("http://{}/mcp", self.hub.http_addr())).await.unwrap())
    }

    /// The device itself.
    pub(crate) fn sim(&self, device: &str) -> Handle {
        self.sims[device].handle()
    }

    pub(crate) fn hub(&self) -> &Hub {
        &self.hub
    }

    /// What `truetwin device remove` does.
    pub(crate) async fn remove(&self, device: &str) {
        let (data, name) = (self.folder.path().join("data"), device.to_owned());
        let asked = move || control::ask(&data, &control::Request::DeviceRemove { name });
        let response = tokio::task::spawn_blocking(asked).await.unwrap().unwrap();
        assert!(matches!(response, control::Response::Removed { .. }), "{response:?}");
    }

    /// What happens to a device, from its start on; for one listener.
    pub(crate) fn events(&mut self, device: &str) -> Events {
        Events(self.sims.get_mut(device).unwrap().events())
    }

    /// The status of a plain GET that names this host.
    pub(crate) async fn http_status(&self, path: &str, host: &str) -> String {
        let mut stream = TcpStream::connect(self.hub.http_addr()).await.unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer.split(' ').nth(1).unwrap_or_default().to_owned()
    }

    /// Waits until the hub knows that a device is there, or is not.
    pub(crate) async fn presence(&self, device: &str, wanted: Presence) {
        let fleet = &self.hub.parts().fleet;
        let so = || fleet.card(&id(device)).is_some_and(|card| card.presence == wanted);
        until(&format!("{device} is {wanted}"), async || so().then_some(())).await;
    }

    /// How often the first thing that a device drives really moved, and whether it is on now.
    pub(crate) fn truth(&self, device: &str) -> (u64, bool) {
        let sim = &self.sims[device];
        (sim.moves(), sim.relay())
    }

    /// Ends everything.
    pub(crate) async fn take_down(self) {
        for sim in self.sims.into_values() {
            sim.stop();
        }
        self.hub.stop().await;
    }
}

/// What happens to a device.
pub(crate) struct Events(mpsc::Receiver<Happened>);

impl Events {
    /// Waits for something to happen.
    pub(crate) async fn wait_for(&mut self, what: &str, wanted: impl Fn(&Happened) -> bool) {
        let happening = async {
            while let Some(event) = self.0.recv().await {
                if wanted(&event) {
                    return;
                }
            }
            panic!("the device ended, and this had not happened: {what}");
        };
        tokio::time::timeout(HANG, happening).await.unwrap_or_else(|_| panic!("it never happened: {what}"));
    }
}

/// One MCP session.
pub(crate) struct Caller(Client);

impl Caller {
    /// Calls a tool: the whole answer.
    pub(crate) async fn call(&self, tool: &str, arguments: Json) -> Json {
        self.0.call(tool, arguments).await.unwrap_or_else(|error| panic!("{tool}: {error}")).structured
    }

    /// Wishes a device on, off, open, closed, locked or unlocked.
    pub(crate) async fn switch(&self, device: &str, to: &str) -> Json {
        self.call("switch_device", json!({"device": device, "to": to})).await
    }

    /// The names of its tools.
    pub(crate) async fn tools(&self) -> Vec<String> {
        self.0.tools().await.unwrap()
    }

    /// What became of an operation.
    pub(crate) async fn check(&self, operation: &Json) -> Json {
        self.call("check_operation", json!({"operation": operation})).await
    }

    /// Asks what became of an operation until it is as wanted; what was told last if that does not come.
    pub(crate) async fn check_until(&self, operation: &Json, wanted: impl Fn(&Json) -> bool) -> Json {
        let by = Instant::now() + TOLD_LATE;
        loop {
            let told = self.check(operation).await;
            if wanted(&told) || Instant::now() > by {
                return told;
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    pub(crate) async fn close(self) {
        self.0.close().await;
    }
}

pub(crate) fn id(device: &str) -> DeviceId {
    DeviceId::new(device).unwrap()
}

/// Tries to start a hub with this configuration and nothing else.
pub(crate) async fn start_with(config: &str) -> Result<(), truetwin::serve::Error> {
    let folder = tempfile::tempdir().unwrap();
    let config = Config::parse("test", config).unwrap_or_else(|error| panic!("{error}"));
    let data = DataFolder::open(&folder.path().join("data")).unwrap();
    let free = || TcpListener::bind(("127.0.0.1", 0));
    Hub::start(config, data, free().await.unwrap(), free().await.unwrap()).await.map(drop)
}

/// Looks again and again until something is so.
pub(crate) async fn until<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let by = Instant::now() + HANG;
    loop {
        if let Some(found) = look().await {
            return found;
        }
        assert!(Instant::now() < by, "after {HANG:?} still not so: {what}");
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

/// A fault that begins now.
pub(crate) fn break_it(house: &House, device: &str, fault: Fault) {
    house.sim(device).set_fault(fault);
}
