//! The rounds: each kind of call in turn, so that what else the machine does falls on all of them alike.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use tokio::task::JoinHandle;

use crate::{
    echo::Echo,
    figures::Sample,
    mcp::{Answer, Caller, Session},
    process::{Hub, Process, own_cpu_s},
};

/// Devices of each kind.
pub(crate) const DEVICES: usize = 100;

/// Relays of each: of 1000 callers each has one to itself.
pub(crate) const RELAYS: usize = 10;

/// MCP sessions at most, which further callers share: what a hub admits unless it is told otherwise.
pub(crate) const SESSIONS: usize = 64;

/// What is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Call {
    /// The tool that asks nobody.
    Ping,
    /// `switch_device` on devices of a kind, the other value each time.
    Switch(&'static str),
}

/// Callers of one hub, and what they have found out.
pub(crate) struct Callers {
    http: String,
    sessions: Vec<Session>,
    callers: Vec<Caller>,
    /// How often each relay was switched, by kind: the next wish follows from it.
    wishes: Vec<(&'static str, Arc<Vec<AtomicU64>>)>,
    /// Operations asked for.
    pub(crate) operations: u64,
    /// Answers that were not what they should be: how many, and the first.
    pub(crate) bad: (u64, Option<String>),
}

impl Callers {
    /// None yet.
    pub(crate) fn new(hub: &Hub, kinds: &[&'static str]) -> Self {
        let wishes =
            kinds.iter().map(|kind| (*kind, Arc::new((0..DEVICES * RELAYS).map(|_| AtomicU64::new(0)).collect())));
        Self {
            http: hub.http.clone(),
            sessions: Vec::new(),
            callers: Vec::new(),
            wishes: wishes.collect(),
            operations: 0,
            bad: (0, None),
        }
    }

    /// Connects callers until there are so many, each with a session of its own as far as they go.
    pub(crate) async fn grow(&mut self, callers: usize) -> anyhow::Result<()> {
        while self.sessions.len() < callers.min(SESSIONS) {
            self.sessions.push(Caller::open_session(&self.http).await?);
        }
        for number in self.callers.len()..callers {
            let session = self.sessions[number % self.sessions.len()].clone();
            self.callers.push(Caller::join(&self.http, session, number as u64).await?);
        }
        Ok(())
    }

    /// All callers at once, one call after the other each, for so long.
    pub(crate) async fn round(
        &mut self,
        hub: &Hub,
        call: Call,
        time: Duration,
        sample: &mut Sample,
    ) -> anyhow::Result<()> {
        let measured = [&hub.process];
        let meter = Meter::start(&measured);
        let end = Instant::now() + time;
        let tasks: Vec<JoinHandle<_>> = std::mem::take(&mut self.callers)
            .into_iter()
            .enumerate()
            .map(|(i, caller)| match call {
                Call::Ping => tokio::spawn(calls(caller, end, || ("ping", "{}".to_owned()))),
                Call::Switch(kind) => {
                    let wishes =
                        self.wishes.iter().find(|(name, _)| *name == kind).expect("a kind from `new`").1.clone();
                    let (device, relay) = (i % DEVICES, i / DEVICES);
                    let next = move || {
                        let to = if wishes[device * RELAYS + relay].fetch_add(1, Relaxed).is_multiple_of(2) {
                            "on"
                        } else {
                            "off"
                        };
                        ("switch_device", format!(r#"{{"device":"{kind} {device} {relay}","to":"{to}"}}"#))
                    };
                    tokio::spawn(calls(caller, end, next))
                }
            })
            .collect();
        let mut took = Vec::new();
        for task in tasks {
            let (caller, times, bad) = task.await??;
            if call != Call::Ping {
                self.operations += times.len() as u64;
            }
            self.callers.push(caller);
            took.extend(times);
            self.bad.0 += bad.len() as u64;
            self.bad.1 = self.bad.1.take().or_else(|| bad.into_iter().next());
        }
        meter.stop(took, sample);
        Ok(())
    }
}

async fn calls(
    mut caller: Caller,
    end: Instant,
    mut next: impl FnMut() -> (&'static str, String),
) -> anyhow::Result<(Caller, Vec<Duration>, Vec<String>)> {
    let (mut took, mut wrong) = (Vec::new(), Vec::new());
    while Instant::now() < end {
        let (tool, arguments) = next();
        let begun = Instant::now();
        let answer = caller.call(tool, &arguments).await?;
        took.push(begun.elapsed());
        if let Answer::Bad(said) = answer {
            wrong.push(said);
        }
    }
    Ok((caller, took, wrong))
}

/// Devices that hear themselves over one broker.
pub(crate) struct Echoes<'a> {
    mqtt: String,
    measured: Vec<&'a Process>,
    devices: Vec<Echo>,
}

impl<'a> Echoes<'a> {
    /// None yet.
    pub(crate) fn new(mqtt: &str, measured: &[&'a Process]) -> Self {
        Self { mqtt: mqtt.to_owned(), measured: measured.to_vec(), devices: Vec::new() }
    }

    /// So many reports on their way, spread over at most [`DEVICES`] devices, for so long.
    pub(crate) async fn round(&mut self, callers: usize, time: Duration, sample: &mut Sample) -> anyhow::Result<()> {
        while self.devices.len() < callers.min(DEVICES) {
            self.devices.push(Echo::open(&self.mqtt, &format!("echo-{}", self.devices.len())).await?);
        }
        let window = callers.div_ceil(DEVICES);
        let meter = Meter::start(&self.measured);
        let end = Instant::now() + time;
        let tasks: Vec<_> =
            std::mem::take(&mut self.devices).into_iter().map(|device| tokio::spawn(device.run(window, end))).collect();
        let mut took = Vec::new();
        for task in tasks {
            let (device, times) = task.await??;
            self.devices.push(device);
            took.extend(times);
        }
        meter.stop(took, sample);
        Ok(())
    }
}

/// Time and processor time of one round.
struct Meter<'a> {
    measured: &'a [&'a Process],
    begun: Instant,
    measured_cpu_s: f64,
    own_cpu_s: f64,
}

impl<'a> Meter<'a> {
    fn start(measured: &'a [&'a Process]) -> Self {
        let measured_cpu_s = measured.iter().map(|process| process.cpu_s()).sum();
        Self { measured, begun: Instant::now(), measured_cpu_s, own_cpu_s: own_cpu_s() }
    }

    fn stop(self, took: Vec<Duration>, sample: &mut Sample) {
        let spent = self.begun.elapsed();
        let measured: f64 = self.measured.iter().map(|process| process.cpu_s()).sum();
        sample.add(took, spent, measured - self.measured_cpu_s, own_cpu_s() - self.own_cpu_s);
    }
}
