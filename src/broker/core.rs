//! What door, bus and hub share: who is connected, the two lines of the bus, credits, counters.

use std::{
    collections::HashMap,
    hash::{DefaultHasher, Hash as _, Hasher as _},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use bytes::Bytes;
use tokio::sync::{Semaphore, mpsc::WeakSender};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    Access, Closed, Counters, FromDevice, LostWhy, MqttVersion, NO_NOTICE, Receipt, SendError, Settings,
    conn::{Conn, Place},
    counters::{Totals, count},
    credits::Credits,
    door::{Guesses, codec::encode},
    frame::{self, DEVICE_BYTES_MAX, Down, Kind, Up},
    relay::{Memory, Message, Refusals, Relay},
    rivals::{Origin, Rivals},
    router::{Hanger, Line},
    tls::Certificate,
};
use crate::{
    peer::{Peer, Seat, Seats},
    topics::DEVICES,
};

/// Locks. Nothing here panics while it holds a lock; were it so, the state would still be whole enough to go on.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Kicks are counted by name in so many numbers. Two names that share one cost a handshake of the one, at a kick of the other,
/// a second question for its credentials and nothing else.
const KICKS: usize = 256;

pub(super) struct Core {
    pub(super) access: Arc<dyn Access>,
    pub(super) settings: Settings,
    /// What is shown to those who come over TLS.
    pub(super) certificate: Option<Arc<Certificate>>,
    /// Slows down who guesses passwords.
    pub(super) guesses: Guesses,
    /// What was said of clients without TLS.
    pub(super) plain: Refusals,
    /// Connections by address.
    pub(super) seats: Seats,
    pub(super) totals: Totals,
    pub(super) credits: Credits,
    /// From the door to the hub: reports, presence, fates of commands.
    pub(super) up: Line<Cargo>,
    /// From the hub to the door: commands.
    pub(super) down: Line<Order>,
    /// A router runs.
    pub(super) bus_runs: AtomicBool,
    /// How long the bus did not carry when it last died, microseconds.
    pub(super) bus_rebuild_us: AtomicU64,
    /// Hangs the router that runs, for tests.
    pub(super) hanger: Mutex<Option<Hanger>>,
    /// The door closes: no new connections.
    pub(super) stopping: CancellationToken,
    /// The bus ends.
    pub(super) bus_stops: CancellationToken,
    /// It has ended, and all was told to the hub.
    pub(super) bus_ended: CancellationToken,
    /// Handshakes and sessions.
    pub(super) tasks: TaskTracker,
    /// Closed devices that may still read why.
    pub(super) farewells: Semaphore,
    /// Messages among accounts, and from devices to them.
    pub(super) relay: Relay,
    hub: WeakSender<FromDevice>,
    devices: Mutex<HashMap<Arc<str>, Arc<Conn>>>,
    next_connection: AtomicU64,
    /// Each grows with the kicks of its names, so that a handshake under way notices one.
    kicks: [AtomicU64; KICKS],
    born: Instant,
}

/// What belongs to a frame on the up lane.
pub(super) struct Cargo {
    pub(super) place: Place,
    pub(super) receipt: Option<Receipt>,
}

/// What belongs to a frame on the down lane.
pub(super) struct Order {
    place: Place,
    /// When the command must be with its device, if it has a limit.
    not_after: Option<Instant>,
}

/// What a handshake found out about a client that may come in.
pub(super) struct Newcomer {
    /// The device's or the account's name.
    pub(super) name: Arc<str>,
    pub(super) version: MqttVersion,
    pub(super) origin: Origin,
    pub(super) seat: Seat,
    pub(super) keep_alive_s: u16,
    pub(super) packet_bytes_max: usize,
}

/// Why a device with good credentials cannot come in now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoEntry {
    /// No room, no hub that listens, or the broker stops.
    Busy,
    /// Another board has its name (semantics 5.6).
    Rival,
}

impl Core {
    pub(super) fn new(
        access: Arc<dyn Access>,
        settings: Settings,
        certificate: Option<Certificate>,
        memory: Memory,
        hub: WeakSender<FromDevice>,
    ) -> Self {
        Self {
            access,
            certificate: certificate.map(Arc::new),
            guesses: Guesses::new(settings.login_delay_max_ms),
            plain: Refusals::default(),
            seats: Seats::default(),
            totals: Totals::default(),
            credits: Credits::new(settings.credit_bytes),
            up: Line::new("up"),
            down: Line::new("down"),
            bus_runs: AtomicBool::new(false),
            bus_rebuild_us: AtomicU64::new(0),
            hanger: Mutex::new(None),
            stopping: CancellationToken::new(),
            bus_stops: CancellationToken::new(),
            bus_ended: CancellationToken::new(),
            tasks: TaskTracker::new(),
            farewells: Semaphore::new(settings.handshakes_max),
            relay: Relay::new(&settings.accounts, memory),
            hub,
            devices: Mutex::default(),
            next_connection: AtomicU64::new(1),
            kicks: [const { AtomicU64::new(0) }; KICKS],
            born: Instant::now(),
            settings,
        }
    }

    /// Milliseconds since the broker's start.
    pub(super) fn now_ms(&self) -> u64 {
        u64::try_from(self.born.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    // ── places in the hub's channel ──

    /// A place for a report. There is one for each report that can have credits.
    pub(super) fn place_for_report(&self) -> Option<Place> {
        self.hub.upgrade()?.try_reserve_owned().ok()
    }

    /// A place for anything else, if enough stay for the reports: neither devices that come and go nor commands may use
    /// up the places of reports while the hub does not listen.
    pub(super) fn place(&self) -> Option<Place> {
        let hub = self.hub.upgrade()?;
        let for_reports = self.settings.report_places().saturating_sub(self.credits.reports());
        if hub.capacity() <= for_reports { None } else { hub.try_reserve_owned().ok() }
    }

    // ── who is connected ──

    /// A number for a connection, never given twice.
    pub(super) fn next_number(&self) -> u64 {
        self.next_connection.fetch_add(1, Ordering::Relaxed)
    }

    /// A place among the connections of its address; none if that has too many. Who takes over from its own address takes that
    /// place as well.
    pub(super) fn seat(&self, device: &str, peer: Peer) -> Option<Seat> {
        let own = lock(&self.devices).get(device).is_some_and(|old| old.seat.peer() == peer);
        self.seats.take(peer, if own { usize::MAX } else { self.settings.connections_per_address_max })
    }

    /// Lets a device in: its older connection, if any, ends first.
    pub(super) fn admit(self: &Arc<Self>, newcomer: Newcomer, will: Option<Bytes>) -> Result<Arc<Conn>, NoEntry> {
        let places = (self.place(), self.place(), self.place());
        let (Some(place), Some(will_place), Some(end_place)) = places else { return Err(NoEntry::Busy) };
        let now_ms = self.now_ms();
        let mut devices = lock(&self.devices);
        let old = devices.get(&newcomer.name).cloned();
        if self.stopping.is_cancelled() || (old.is_none() && devices.len() >= self.settings.connections_max) {
            return Err(NoEntry::Busy);
        }
        let mut rivals = Rivals::default();
        if let Some(old) = &old {
            let mut state = old.state();
            if state.closed.is_none()
                && !state.is_going()
                && old.origin != newcomer.origin
                && !state.rivals.yields(now_ms)
            {
                return Err(NoEntry::Rival);
            }
            rivals = state.rivals;
        }
        let number = self.next_number();
        let conn = Arc::new(Conn::of_device(newcomer, number, rivals, [will_place, end_place], will, now_ms));
        if let Some(old) = old {
            self.end(&old, Closed::TakenOver);
        }
        devices.insert(conn.name.clone(), conn.clone());
        let cargo = Cargo { place, receipt: None };
        self.tell(&conn.name, number, Kind::Connected(conn.version), b"", cargo);
        count(&self.totals.accepted);
        Ok(conn)
    }

    /// Ends a connection, once: its unwritten commands are lost, its will and its end are told, its task is woken.
    pub(super) fn end(self: &Arc<Self>, conn: &Conn, why: Closed) {
        if conn.account().is_some() {
            return self.end_account(conn, why);
        }
        let mut state = conn.state();
        let Some(end) = state.end.take() else { return };
        state.closed = Some(why);
        for command in state.unwritten() {
            self.lose(&conn.name, command.ticket, LostWhy::ConnectionClosed, command.place);
        }
        let number = conn.number;
        let told = state.let_in && !matches!(why, Closed::Clean | Closed::Stopped);
        if let Some(will) = end.will.filter(|_| told) {
            self.tell(&conn.name, number, Kind::Will, &will, Cargo { place: end.will_place, receipt: None });
        }
        let cargo = Cargo { place: end.end_place, receipt: None };
        self.tell(&conn.name, number, Kind::Disconnected(why), b"", cargo);
        self.count_end(why);
        state.wake();
    }

    /// Counts an end whose reason is counted.
    pub(super) fn count_end(&self, why: Closed) {
        match why {
            Closed::TakenOver => count(&self.totals.takeovers),
            Closed::KeepAlive => count(&self.totals.keep_alive_expiries),
            Closed::Kicked => count(&self.totals.kicks),
            Closed::Unacknowledged => count(&self.totals.acknowledgement_expiries),
            Closed::ProtocolError => count(&self.totals.protocol_errors),
            Closed::PacketTooLarge => count(&self.totals.oversize),
            Closed::Clean
            | Closed::GoodbyeWithWill
            | Closed::Lost
            | Closed::ForeignTopic
            | Closed::ReportRefused
            | Closed::Quarantined
            | Closed::Stopped
            | Closed::QuotaExceeded => {}
            Closed::SlowReader => count(&self.totals.slow_readers),
        }
    }

    /// Forgets a connection that has ended, unless another one has its place already.
    pub(super) fn forget(&self, conn: &Arc<Conn>) {
        let mut devices = lock(&self.devices);
        if devices.get(&conn.name).is_some_and(|now| Arc::ptr_eq(now, conn)) {
            devices.remove(&conn.name);
        }
    }

    pub(super) fn kick(self: &Arc<Self>, device: &str) {
        self.kicks_of(device).fetch_add(1, Ordering::SeqCst);
        for conn in self.of_account(device) {
            self.end(&conn, Closed::Kicked);
        }
        let mut devices = lock(&self.devices); // held until the end is told, so that a newcomer is told behind it
        if let Some(conn) = devices.remove(device) {
            self.end(&conn, Closed::Kicked);
        }
    }

    /// Grows with each kick of this name. A handshake reads it before it asks for the credentials and after the device is in.
    pub(super) fn kicks(&self, name: &str) -> u64 {
        self.kicks_of(name).load(Ordering::SeqCst)
    }

    fn kicks_of(&self, name: &str) -> &AtomicU64 {
        let mut hasher = DefaultHasher::new();
        name.hash(&mut hasher);
        &self.kicks[(hasher.finish() % KICKS as u64) as usize]
    }

    pub(super) fn connected(&self, device: &str) -> bool {
        lock(&self.devices).contains_key(device)
    }

    /// All connections, for the sweep.
    pub(super) fn connections(&self) -> Vec<Arc<Conn>> {
        let mut all = self.relay.connections();
        all.extend(lock(&self.devices).values().cloned());
        all
    }

    // ── towards the hub ──

    /// Puts a message for the hub on the up lane.
    pub(super) fn tell(&self, device: &str, connection: u64, kind: Kind, payload: &[u8], cargo: Cargo) {
        let up = Up { kind, connection, device, payload };
        self.up.push(cargo, up.bytes(), |out| up.write(out));
    }

    /// Tells that a command was lost. As with [`FromDevice::Written`], not over the bus: it is the door's own word, needs no
    /// order among the device's messages, and would wake the router's thread for nothing.
    pub(super) fn lose(&self, device: &str, ticket: u64, why: LostWhy, place: Place) {
        count(&self.totals.commands_lost);
        if ticket == NO_NOTICE {
            return;
        }
        place.send(FromDevice::Lost { device: device.into(), ticket, why });
    }

    /// A message for the hub came out of the bus. Its place is reserved: this never waits.
    pub(super) fn deliver(self: &Arc<Self>, body: Bytes, cargo: Cargo) {
        let Some((kind, connection, name, payload)) = frame::read_up(body) else { return };
        let device: Arc<str> = String::from_utf8_lossy(&name).into();
        let mut receipt = cargo.receipt.unwrap_or_else(Receipt::none);
        if self.relay.is_heard() {
            match kind {
                Kind::Event { .. } => receipt.seen("event", &payload),
                Kind::Status { .. } => receipt.seen("status", &payload),
                Kind::Will => self.show(&device, "status", payload.clone(), 0),
                Kind::Connected(_) | Kind::Disconnected(_) => {}
            }
        }
        let message = match kind {
            Kind::Connected(version) => FromDevice::Connected { device, connection, version },
            Kind::Disconnected(why) => FromDevice::Disconnected { device, connection, why },
            Kind::Event { retained } => FromDevice::Event { device, connection, payload, retained, receipt },
            Kind::Status { retained } => FromDevice::Status { device, connection, payload, retained, receipt },
            Kind::Will => FromDevice::Will { device, connection, payload },
        };
        cargo.place.send(message);
    }

    /// Shows accounts what went over a device's own topics: what it said once the hub has it, a command once it is written.
    pub(super) fn show(self: &Arc<Self>, device: &str, part: &str, payload: Bytes, qos: u8) {
        let topic = format!("{DEVICES}/{device}/{part}");
        self.route(&Arc::new(Message::plain(topic, payload, qos)));
    }

    // ── towards the device ──

    pub(super) fn send(
        &self,
        device: &str,
        payload: &[u8],
        ticket: u64,
        not_after: Option<Instant>,
    ) -> Result<(), SendError> {
        if !self.bus_runs() {
            return Err(SendError::BusDown);
        }
        if self.down.waiting_bytes() + payload.len() > self.settings.command_bytes_max {
            return Err(SendError::Full);
        }
        let place = self.place().ok_or(SendError::Full)?;
        count(&self.totals.commands_in);
        let why = if device.len() > DEVICE_BYTES_MAX {
            LostWhy::NotConnected // no device has such a name
        } else if payload.len() > self.settings.packet_bytes_max {
            LostWhy::TooLarge
        } else {
            let down = Down { ticket, device, payload };
            self.down.push(Order { place, not_after }, down.bytes(), |out| down.write(out));
            return Ok(());
        };
        count(&self.totals.commands_lost);
        if ticket != NO_NOTICE {
            place.send(FromDevice::Lost { device: device.into(), ticket, why });
        }
        Ok(())
    }

    /// A command came out of the bus: into its device's buffer, or lost. Never waits for the device.
    pub(super) fn deliver_command(&self, body: Bytes, Order { place, not_after }: Order) {
        let Some((ticket, name, payload)) = frame::read_down(body) else { return };
        let device = String::from_utf8_lossy(&name);
        if not_after.is_some_and(|limit| limit < Instant::now()) {
            return self.lose(&device, ticket, LostWhy::Expired, place);
        }
        let conn = lock(&self.devices).get(&*device).cloned();
        let Some(conn) = conn else { return self.lose(&device, ticket, LostWhy::NotConnected, place) };
        let mut state = conn.state();
        let packet_bytes = encode::command_bytes(conn.version, &conn.name, payload.len());
        let why = if state.closed.is_some() {
            LostWhy::NotConnected
        } else if !state.subscribed {
            LostWhy::NotSubscribed
        } else if packet_bytes > conn.packet_bytes_max.min(self.settings.packet_bytes_max) {
            LostWhy::TooLarge
        } else if state.out.len() + packet_bytes > self.settings.outbound_bytes_max {
            LostWhy::OutboundFull
        } else {
            let seen = self.relay.is_heard().then(|| payload.clone());
            let write = |out: &mut Vec<u8>| encode::command(out, conn.version, &conn.name, &payload);
            return state.put_command(ticket, place, seen, write);
        };
        drop(state);
        self.lose(&device, ticket, why, place);
    }

    // ── the whole ──

    pub(super) fn bus_runs(&self) -> bool {
        self.bus_runs.load(Ordering::Acquire) && !self.stopping.is_cancelled()
    }

    pub(super) fn counters_now(&self) -> Counters {
        let (unacknowledged, held_back) = self.credits.now();
        let (account_connections, subscriptions, retained_messages, retained_bytes) = self.relay.sizes();
        let sum = |of: fn(&super::router::LineTotals) -> &AtomicU64| {
            of(&self.up.totals).load(Ordering::Relaxed) + of(&self.down.totals).load(Ordering::Relaxed)
        };
        Counters {
            bus_gaps: sum(|totals| &totals.gaps),
            bus_resends: sum(|totals| &totals.resends),
            bus_duplicates: sum(|totals| &totals.duplicates),
            bus_full: sum(|totals| &totals.full),
            bus_rebuild_us: self.bus_rebuild_us.load(Ordering::Relaxed),
            connections: lock(&self.devices).len() as u64,
            unacknowledged_bytes: unacknowledged as u64,
            held_back_connections: held_back as u64,
            tls_expires_s: self.certificate.as_ref().map_or(0, |certificate| certificate.expires_s()),
            bus_waiting: (self.up.waiting_frames() + self.down.waiting_frames()) as u64,
            account_connections,
            subscriptions,
            retained_messages,
            retained_bytes,
            ..self.totals.read()
        }
    }

    pub(super) async fn stop(self: &Arc<Self>, wait_max: Duration) {
        self.stopping.cancel();
        for conn in self.connections() {
            self.end(&conn, Closed::Stopped);
        }
        self.tasks.close();
        if tokio::time::timeout(wait_max, self.tasks.wait()).await.is_err() {
            tracing::warn!("the broker stopped before all of its connections had ended");
        }
        self.write_retained();
        self.bus_stops.cancel();
        self.bus_ended.cancelled().await;
    }
}
