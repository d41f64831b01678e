//! An instant device of level 1: relays that may be switched again at once, `received` and `completed` in the same breath, on the wire types that boards use.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use anyhow::{Context as _, anyhow, bail, ensure};
use tokio::task::JoinHandle;
use truetwin_wire::{
    Scalar,
    device::{
        ActionReport, Command, Description, DeviceState, Envelope, Event, Hello, PropertySpec, Reading, parse, write,
    },
    limits::EVENT_BYTES_MAX,
    words::{CauseWord, EvidenceWord, KindWord, ReportResult, RoleWord},
};

use crate::mqtt::{Link, Packet};

/// Its relays; short names, because a hello holds at most 2 KiB.
const RELAYS: [&str; 10] = ["r0", "r1", "r2", "r3", "r4", "r5", "r6", "r7", "r8", "r9"];

/// One word for a whole run: the hub tells boots apart by device.
const BOOT: &str = "bench";

/// What all devices of one kind did.
#[derive(Debug, Default)]
pub(crate) struct Done {
    /// Commands to set a relay that came.
    pub(crate) sets: AtomicU64,
    /// Those that changed it.
    pub(crate) moves: AtomicU64,
    /// Questions that came.
    pub(crate) questions: AtomicU64,
}

/// A device that has been welcomed, in a task of its own.
pub(crate) struct Device {
    link: Link,
    topic: String,
    feedback: EvidenceWord,
    done: Arc<Done>,
    born: Instant,
    session: String,
    heartbeat: Duration,
    seq: u32,
    /// Where they stand, and what was done last on each.
    relays: Vec<(bool, String)>,
}

impl Device {
    /// As [`Device::open`], and goes on in a task of its own.
    pub(crate) async fn start(
        mqtt: &str,
        name: &str,
        password: &str,
        feedback: EvidenceWord,
        relays: usize,
        done: Arc<Done>,
    ) -> anyhow::Result<JoinHandle<anyhow::Result<()>>> {
        let mut device = Self::open(mqtt, name, password, feedback, relays, done).await?;
        Ok(tokio::spawn(async move { device.run().await }))
    }

    /// Connects, greets and waits for the welcome. With `feedback` of `pin` what it reads while completing is both checks of
    /// the hub in one message; with `firmware` the hub asks once more (semantics 3.6).
    pub(crate) async fn open(
        mqtt: &str,
        name: &str,
        password: &str,
        feedback: EvidenceWord,
        relays: usize,
        done: Arc<Done>,
    ) -> anyhow::Result<Self> {
        let link = Link::open(mqtt, name, password, &format!("truetwin/{name}/command")).await?;
        let mut device = Self {
            link,
            topic: format!("truetwin/{name}/event"),
            feedback,
            done,
            born: Instant::now(),
            session: String::new(),
            heartbeat: Duration::from_secs(10),
            seq: 0,
            relays: vec![(false, String::new()); relays],
        };
        device.welcome().await?;
        Ok(device)
    }

    /// The same towards a broker where nobody welcomes it.
    pub(crate) async fn unwelcomed(mqtt: &str, name: &str) -> anyhow::Result<Self> {
        let link = Link::open(mqtt, name, "secret", &format!("truetwin/{name}/command")).await?;
        Ok(Self {
            link,
            topic: format!("truetwin/{name}/event"),
            feedback: EvidenceWord::Pin,
            done: Arc::default(),
            born: Instant::now(),
            session: "00000000".to_owned(),
            heartbeat: Duration::from_secs(10),
            seq: 0,
            relays: vec![(false, String::new())],
        })
    }

    /// Tells its state over and over, so many reports under way at once, until `end` and until each is acknowledged; how
    /// many there were.
    pub(crate) async fn report(mut self, window: usize, end: Instant) -> anyhow::Result<(Self, u64)> {
        let (mut under_way, mut acknowledged) = (0, 0);
        loop {
            while under_way < window && Instant::now() < end {
                let readings = [self.reading(0)];
                self.say(&Event::DeviceState(DeviceState {
                    op: None,
                    readings: &readings,
                    cause: CauseWord::Periodic,
                }))?;
                under_way += 1;
            }
            if under_way == 0 {
                return Ok((self, acknowledged));
            }
            self.link.turn().await?;
            while let Some(packet) = self.link.inbox.next()? {
                if let Packet::PubAck = packet {
                    under_way -= 1;
                    acknowledged += 1;
                }
            }
        }
    }

    /// Connects once more in the same boot, greets and waits for the welcome.
    pub(crate) async fn again(&mut self, mqtt: &str, name: &str, password: &str) -> anyhow::Result<()> {
        self.link = Link::open(mqtt, name, password, &format!("truetwin/{name}/command")).await?;
        self.session.clear();
        self.welcome().await
    }

    async fn welcome(&mut self) -> anyhow::Result<()> {
        self.greet()?;
        while self.session.is_empty() {
            self.link.turn().await?;
            self.work()?;
        }
        Ok(())
    }

    /// Lives until its connection ends.
    pub(crate) async fn run(&mut self) -> anyhow::Result<()> {
        let mut beat = tokio::time::interval(self.heartbeat);
        beat.tick().await;
        loop {
            self.link.flush().await?;
            tokio::select! {
                read = self.link.read() => {
                    read?;
                    self.work()?;
                }
                _ = beat.tick() => self.say(&Event::Heartbeat)?,
            }
        }
    }

    fn greet(&mut self) -> anyhow::Result<()> {
        let relay = |name| PropertySpec {
            role: Some(RoleWord::Socket),
            stable_ms: Some(0),
            min_interval_ms: Some(0),
            repeatable: Some(true),
            ..PropertySpec::new(name, KindWord::Bool, self.feedback)
        };
        let names = &RELAYS[..self.relays.len()];
        let properties: Vec<_> = names.iter().map(|name| relay(name)).collect();
        let readings: Vec<_> = (0..names.len()).map(|at| self.reading(at)).collect();
        let hello = Event::Hello(Hello {
            level: 1,
            fw: "1",
            model: "bench",
            desc: "bench",
            description: Description { properties: &properties, actions: &[], exclusive: &[] },
            readings: &readings,
            cause: CauseWord::Boot,
        });
        let mut buffer = [0; EVENT_BYTES_MAX];
        self.seq += 1;
        let envelope = Envelope { session: "", boot: BOOT, seq: self.seq, up_ms: 0 };
        let bytes = write(&envelope, &hello, &mut buffer)?;
        self.link.outbox.publish(self.topic.as_bytes(), &buffer[..bytes], 1);
        Ok(())
    }

    /// Reads a relay.
    fn reading(&self, at: usize) -> Reading<'static> {
        let value = Some(Scalar::Bool(self.relays[at].0));
        Reading { property: RELAYS[at], value, evidence: self.feedback, seen: None }
    }

    /// Which of its relays.
    fn at(&self, property: &str) -> anyhow::Result<usize> {
        let own = &RELAYS[..self.relays.len()];
        own.iter().position(|name| *name == property).with_context(|| format!("no relay {property}"))
    }

    /// Works off all that came; answers go out together.
    fn work(&mut self) -> anyhow::Result<()> {
        loop {
            let payload = match self.link.inbox.next()? {
                None => return Ok(()),
                Some(Packet::Publish { payload, .. }) => payload.to_vec(),
                Some(Packet::PubAck) => continue,
                Some(other @ (Packet::Answer(..) | Packet::Other)) => bail!("a device got {other:?}"),
            };
            let command = parse(&payload).map_err(|error| anyhow!("a command cannot be read: {error:?}"))?;
            match command {
                Command::Welcome { head, heartbeat_ms, .. } => {
                    self.session = head.session.to_owned();
                    self.heartbeat = Duration::from_millis(heartbeat_ms.into());
                }
                Command::Set { head, op, property, value, .. } => {
                    ensure!(head.session == self.session, "a set for somebody else");
                    self.set(self.at(property)?, op, value)?;
                }
                Command::GetDeviceState { head, op, property, .. } => {
                    ensure!(head.session == self.session, "a question of another session");
                    self.done.questions.fetch_add(1, Relaxed);
                    let asked = match property {
                        Some(property) => self.at(property)?..=self.at(property)?,
                        None => 0..=self.relays.len() - 1,
                    };
                    let relays = self.relays.clone();
                    let seen = |at: usize| Some(relays[at].1.as_str()).filter(|last| !last.is_empty());
                    let readings: Vec<_> = asked.map(|at| Reading { seen: seen(at), ..self.reading(at) }).collect();
                    let state = DeviceState { op: Some(op), readings: &readings, cause: CauseWord::Query };
                    self.say(&Event::DeviceState(state))?;
                }
                Command::Refused { reason, path, allowed } | Command::Error { reason, path, allowed, .. } => {
                    bail!("the hub complains: {reason} at {path:?}, allowed {allowed:?}")
                }
                Command::Describe { .. } | Command::Run { .. } | Command::Withdraw { .. } | Command::GetLog { .. } => {
                    bail!("not expected here: {command:?}")
                }
            }
        }
    }

    fn set(&mut self, at: usize, op: &str, value: Scalar) -> anyhow::Result<()> {
        let Scalar::Bool(wish) = value else { bail!("the relay takes true and false") };
        self.done.sets.fetch_add(1, Relaxed);
        let report = |result| ActionReport {
            op,
            action: "set",
            property: Some(RELAYS[at]),
            result,
            readings: &[],
            reason: None,
            eta_ms: None,
            clamped: false,
            dup: false,
        };
        self.say(&Event::ActionReport(report(ReportResult::Received)))?;
        if std::mem::replace(&mut self.relays[at].0, wish) != wish {
            self.done.moves.fetch_add(1, Relaxed);
        }
        let readings = [self.reading(at)];
        self.say(&Event::ActionReport(ActionReport { readings: &readings, ..report(ReportResult::Completed) }))?;
        op.clone_into(&mut self.relays[at].1);
        Ok(())
    }

    fn say(&mut self, event: &Event<'_>) -> anyhow::Result<()> {
        let mut buffer = [0; EVENT_BYTES_MAX];
        self.seq += 1;
        let up_ms = u64::try_from(self.born.elapsed().as_millis()).context("up for too long")?;
        let envelope = Envelope { session: &self.session, boot: BOOT, seq: self.seq, up_ms };
        let bytes = write(&envelope, event, &mut buffer)?;
        self.link.outbox.publish(self.topic.as_bytes(), &buffer[..bytes], 1);
        Ok(())
    }
}
