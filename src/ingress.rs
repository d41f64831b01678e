//! From the bus to the device's actor: reads what devices send, and answers what it cannot read.
//!
//! Nothing is dropped: the broker's credits bound what is under way, a report's acknowledgement goes out once its actor
//! has taken it in. One bad device disturbs nobody else.

use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::sync::mpsc::Receiver;

use crate::{
    authz::confirm::Presses,
    broker::{Broker, FromDevice, NO_NOTICE, Receipt},
    config::Config,
    device::DeviceMsg,
    dialect::native::{self, Heard},
    fleet::{Fleet, NotTold},
    metrics::Metrics,
    property::{Description, DeviceId},
    twin::input::{Body, Cause, Ignored, Report, Status},
};

/// The shortest time between two `error` messages to one device: a board that floods with rubbish is not flooded back,
/// and its maker still reads a sentence.
const ERROR_EVERY: Duration = Duration::from_millis(200);

/// Messages that are read at once. What a device reports in one breath (`received` and `completed` of a relay) comes in one
/// segment, and is one message to its actor.
const TOGETHER_MAX: usize = 64;

/// The one reader of the bus.
pub struct Ingress {
    fleet: Fleet,
    broker: Broker,
    metrics: Metrics,
    config: Arc<Config>,
    /// When each device was last told of a mistake; at most one entry for each device with credentials.
    told: HashMap<Arc<str>, Instant>,
    presses: Arc<Presses>,
    /// What each device said last that it has; one for each device with credentials.
    described: HashMap<DeviceId, Arc<Description>>,
    /// Reports of one device that follow upon each other, not handed to its actor yet.
    reports: Option<(DeviceId, Vec<(Report, Receipt)>)>,
}

impl Ingress {
    /// An ingress that tells `fleet`, answers over `broker`, puts the owner's word over descriptions, and notes `presses`.
    pub fn new(fleet: Fleet, broker: Broker, metrics: Metrics, config: Arc<Config>, presses: Arc<Presses>) -> Self {
        let (told, described) = (HashMap::new(), HashMap::new());
        Self { fleet, broker, metrics, config, told, presses, described, reports: None }
    }

    /// The same, knowing what devices said in an earlier process.
    #[must_use]
    pub fn knowing(self, described: HashMap<DeviceId, Arc<Description>>) -> Self {
        Self { described, ..self }
    }

    /// Runs until the broker has stopped.
    pub async fn run(mut self, mut heard: Receiver<FromDevice>) {
        let mut together = Vec::new();
        while heard.recv_many(&mut together, TOGETHER_MAX).await > 0 {
            for message in together.drain(..) {
                self.take(message);
            }
            self.hand_reports();
        }
    }

    fn take(&mut self, message: FromDevice) {
        match message {
            FromDevice::Connected { device, connection, version } => {
                tracing::info!(device = %device, version = version.as_str(), "connected");
                self.reconnected(&device);
                self.tell(&device, DeviceMsg::Connected(connection));
            }
            FromDevice::Disconnected { device, connection, why } => {
                tracing::info!(device = %device, why = why.as_str(), "disconnected");
                self.reconnected(&device);
                self.tell(&device, DeviceMsg::Disconnected(connection));
            }
            FromDevice::Event { device, payload, retained, receipt, .. } => {
                self.event(&device, &payload, retained, receipt);
            }
            // The connection itself has said it already: behind the door a will adds nothing (semantics 5.5).
            FromDevice::Will { .. } => self.metrics.event_heard("will"),
            FromDevice::Status { receipt, .. } => {
                self.metrics.event_heard("status");
                receipt.taken();
            }
            FromDevice::Written { device, ticket } => self.tell(&device, DeviceMsg::Written(ticket)),
            FromDevice::Lost { device, ticket, why } => {
                tracing::debug!(device = %device, why = why.as_str(), "a command was not written");
                self.tell(&device, DeviceMsg::Lost(ticket));
            }
            FromDevice::BusDown => {
                tracing::error!("the bus died and is being rebuilt");
                self.hand_reports();
                self.fleet.tell_all(|| DeviceMsg::BusDown);
            }
            FromDevice::BusUp => {
                tracing::info!("the bus is back");
                self.hand_reports();
                self.fleet.tell_all(|| DeviceMsg::BusUp);
            }
        }
    }

    fn event(&mut self, device: &Arc<str>, payload: &[u8], retained: bool, receipt: Receipt) {
        let Ok(id) = DeviceId::of(device) else { return };
        match native::decode(payload, retained) {
            Ok((heard, unknown_words)) => {
                self.metrics.event_heard(heard.word());
                self.metrics.unknown_words(unknown_words);
                match heard {
                    // What a broker kept proves no presence and greets nobody (semantics 3.4).
                    Heard::Hello(_) if retained => {
                        self.metrics.report_ignored(Ignored::Retained);
                        receipt.taken();
                    }
                    Heard::Hello(mut hello) => {
                        self.presses.greeted(&id, &hello.boot, hello.seq);
                        self.note_buttons(&id, &hello.status, false);
                        let said =
                            self.is_new(&id, &hello.description).then(|| String::from_utf8_lossy(payload).into_owned());
                        let overridden = self.config.overridden(&id, &hello.description);
                        hello.description = Arc::new(overridden);
                        self.hand(&id, DeviceMsg::Greeted { hello, said, receipt });
                    }
                    Heard::Report(report) => {
                        if self.presses.is_news(&id, &report.boot, report.seq) {
                            self.note_buttons(&id, &report.status, by_hand(&report));
                        }
                        self.gather(id, report, receipt);
                    }
                }
            }
            Err(mistake) => {
                self.metrics.event_unreadable(mistake.reason.as_str());
                self.answer(device, &mistake);
                // It has been dealt with: it is acknowledged.
                self.tell(device, DeviceMsg::Unreadable);
                receipt.taken();
            }
        }
    }

    /// Whether a greeting says something else of what the device has than the one before.
    fn is_new(&mut self, device: &DeviceId, description: &Arc<Description>) -> bool {
        let is_new = self.described.get(device) != Some(description);
        if is_new {
            self.described.insert(device.clone(), description.clone());
        }
        is_new
    }

    fn reconnected(&self, device: &str) {
        if let Ok(id) = DeviceId::new(device) {
            self.presses.reconnected(&id);
        }
    }

    /// Watched buttons hear of their values before the device's actor does.
    fn note_buttons(&self, id: &DeviceId, status: &[Status], by_hand: bool) {
        if self.presses.watches(id) {
            let now = Instant::now();
            for Status { property, value, .. } in status {
                self.presses.reported(id, property, value, by_hand, now);
            }
        }
    }

    /// A sentence and not silence (wire protocol, *Greeting*).
    fn answer(&mut self, device: &Arc<str>, mistake: &native::Mistake) {
        let now = Instant::now();
        let told = self.told.get(device).is_some_and(|at| now.saturating_duration_since(*at) < ERROR_EVERY);
        if !told {
            self.told.insert(device.clone(), now);
            tracing::warn!(device = %device, %mistake, "an event cannot be read");
            let _not_connected = self.broker.send(device, mistake.encode().into(), NO_NOTICE);
        }
    }

    fn tell(&mut self, device: &Arc<str>, message: DeviceMsg) {
        if let Ok(id) = DeviceId::of(device) {
            self.hand(&id, message);
        }
    }

    /// Keeps a report for those of the same device that follow upon it.
    fn gather(&mut self, id: DeviceId, report: Report, receipt: Receipt) {
        match &mut self.reports {
            Some((device, reports)) if *device == id => reports.push((report, receipt)),
            _none_of_it => {
                self.hand_reports();
                self.reports = Some((id, vec![(report, receipt)]));
            }
        }
    }

    /// Hands the reports that were gathered to their actor.
    fn hand_reports(&mut self) {
        if let Some((device, reports)) = self.reports.take() {
            self.hand(&device, DeviceMsg::Heard(reports));
        }
    }

    /// Hands a message to its actor, behind the reports that came before it. What nobody takes is not acknowledged: the device
    /// hears so, and whether there is any use in saying it again.
    fn hand(&mut self, id: &DeviceId, message: DeviceMsg) {
        self.hand_reports();
        match self.fleet.tell(id, message) {
            Ok(()) => {}
            Err(NotTold::Quarantined(message)) => message.into_receipts().into_iter().for_each(Receipt::quarantined),
            Err(NotTold::NotNow(message)) => drop(message),
        }
    }
}

/// Whether a report says that somebody at the device brought its values about. One that a broker kept says nothing of now.
fn by_hand(report: &Report) -> bool {
    match &report.body {
        Body::State { op: None, cause: Cause::Local, .. } => !report.retained,
        Body::State { .. } | Body::Action { .. } | Body::Heartbeat => false,
    }
}
