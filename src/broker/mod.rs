//! The embedded broker: the door that devices connect to, and the bus behind it.
//!
//! ```text
//!  device ── TCP, MQTT 3.1.1 or 5 ──> door/  ── up lane ──> router (rumqttd) ──> hub: Receiver<FromDevice>
//!         <──────── commands ──────── door/ <── down lane ── router <─────────── hub: Broker::send
//! ```
//! - [`door`](self) listens, speaks MQTT, authenticates, enforces rights and limits, knows who is connected, and
//!   acknowledges a report only after the hub has taken it in ([`Receipt::taken`]).
//! - `router` runs rumqttd's `Router` without any listener, with exactly two in-process links (door, hub), watches it with a
//!   canary and builds a new one when it dies. Only this part names rumqttd.
//! - `lane` numbers what travels in one direction, keeps it until it came out of the router, and sends it again over a
//!   rebuilt one: the router holds nothing that anyone needs.
//! - `relay` carries messages among service accounts, and shows them what devices say and are told: past the bus.
//! - `tls` keeps the certificate that the door shows.
//! - `core` is what all of them share; `settings` and `counters` are what goes in and what can be seen.
//!
//! This module must not know what a report says or what a device is: names, bytes, and who may come in. It uses nothing
//! else of this crate but [`topics`](crate::topics) and what counts as one address ([`crate::peer`]).
//!
//! **A router thread that lives cannot be stopped** (it holds its own sender, rumqttd 0.20 `router/routing.rs`): after
//! [`Broker::stop`] one idle thread named `router-0` and about a megabyte stay until the process ends. Tests should
//! share brokers.
//!
#![doc = include_str!("protocol.md")]
//!
#![doc = include_str!("interoperability.md")]

mod conn;
mod core;
mod counters;
mod credits;
mod door;
mod frame;
mod lane;
mod relay;
mod rivals;
mod router;
mod settings;
mod tls;

use std::{
    net::SocketAddr,
    pin::Pin,
    sync::Arc,
    time::{Duration, Instant},
};

use bytes::Bytes;
use tokio::{net::TcpListener, sync::mpsc};

use self::core::Core;
pub use self::{
    conn::Receipt,
    counters::Counters,
    door::codec,
    relay::{Change, Keeper, Kept, Memory, Stored},
    router::Hang,
    settings::{AccountSettings, SettingError, Settings},
    tls::{Tls, TlsError},
};

use crate::topics::Rights;

/// Who may come in. The door asks at each CONNECT.
pub trait Access: Send + Sync + 'static {
    /// Who a user is who comes with this password. The user name is the identity; it was checked to be a name (1 to 32 of
    /// `a-z 0-9 _ -`). Must be cheap and must not block, as it is called on the runtime: what takes longer is answered
    /// [`Answer::Later`].
    fn admits(&self, user: &str, password: &[u8]) -> Answer;
}

/// Who somebody is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Who {
    /// The device of that name.
    Device,
    /// The service account of that name, with what it may read and write.
    Account(Arc<Rights>),
    /// Nobody: there is no such user, or the password is another one.
    Nobody,
    /// Too many passwords are being checked; the client hears that the server is busy, and may try again.
    Busy,
}

/// The answer to the question who somebody is.
pub enum Answer {
    /// Known at once.
    Now(Who),
    /// Known later: a password that somebody chose is slow to check.
    Later(Pin<Box<dyn Future<Output = Who> + Send>>),
}

impl From<bool> for Answer {
    /// A device, or nobody.
    fn from(admitted: bool) -> Self {
        Self::Now(if admitted { Who::Device } else { Who::Nobody })
    }
}

/// The version of MQTT that a device speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MqttVersion {
    /// 3.1.1 (protocol level 4).
    V3_1_1,
    /// 5.0 (protocol level 5).
    V5,
}

impl MqttVersion {
    /// `3.1.1` or `5`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::V3_1_1 => "3.1.1",
            Self::V5 => "5",
        }
    }
}

/// What the hub hears. What one device said and did comes in the order in which it happened. The fate of a command is told
/// at once, past what is still on the bus, and always before a report that the command brought about.
#[derive(Debug)]
pub enum FromDevice {
    /// A device came in. Its messages of an older connection, if any, were all told before.
    Connected {
        /// The device: its MQTT user name.
        device: Arc<str>,
        /// This connection; numbers grow and are never used twice in a process.
        connection: u64,
        /// What it speaks.
        version: MqttVersion,
    },
    /// The connection ended. Nothing more comes from it but the fates of its commands.
    Disconnected {
        /// The device.
        device: Arc<str>,
        /// Its connection.
        connection: u64,
        /// Why.
        why: Closed,
    },
    /// A report: a publish on the device's own `event` topic.
    Event {
        /// The device.
        device: Arc<str>,
        /// Its connection.
        connection: u64,
        /// The report's bytes, as sent.
        payload: Bytes,
        /// Whether a 3.1.1 device set the retain flag (nothing is retained; a v5 device is refused for it).
        retained: bool,
        /// To be given back once the report has been taken in.
        receipt: Receipt,
    },
    /// The will of a connection that ended without a DISCONNECT, told by the door itself right before its
    /// [`Disconnected`](Self::Disconnected).
    Will {
        /// The device.
        device: Arc<str>,
        /// The connection that ended.
        connection: u64,
        /// The will's bytes, as given at CONNECT.
        payload: Bytes,
    },
    /// A live publish on the device's own `status` topic.
    Status {
        /// The device.
        device: Arc<str>,
        /// Its connection.
        connection: u64,
        /// The bytes, as sent.
        payload: Bytes,
        /// As in [`Event`](Self::Event).
        retained: bool,
        /// As in [`Event`](Self::Event).
        receipt: Receipt,
    },
    /// All bytes of that command were written to the device's socket (semantics 8.1: `waiting_broker` ends here).
    Written {
        /// The device.
        device: Arc<str>,
        /// The ticket given to [`Broker::send`].
        ticket: u64,
    },
    /// That command was not, or not wholly, written to the device's socket, and will not be.
    Lost {
        /// The device.
        device: Arc<str>,
        /// The ticket given to [`Broker::send`].
        ticket: u64,
        /// Why.
        why: LostWhy,
    },
    /// The router died. No device is offline for it (semantics 5.5); reports and commands under way are kept.
    BusDown,
    /// A new router runs; what was under way is being sent again.
    BusUp,
}

/// Declares a closed enum whose variants are words for logs and metrics.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $word:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $name { $($(#[$vdoc])* $variant,)+ }

        impl $name {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$variant,)+];

            /// The word in logs and metrics.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word,)+ }
            }
        }
    };
}

words! {
    /// Why a connection ended.
    Closed {
        /// The device said goodbye (DISCONNECT, in v5 with reason 0). The only end, besides the hub's own stop, after which no will is told.
        Clean = "clean",
        /// A v5 device said goodbye with another reason than 0, which asks for its will to be told (MQTT 5 3.14.2.1).
        GoodbyeWithWill = "goodbye_with_will",
        /// The socket ended without a goodbye.
        Lost = "lost",
        /// Nothing was heard for 1.5 times the keep-alive.
        KeepAlive = "keep_alive",
        /// Another connection came in with the same credentials.
        TakenOver = "taken_over",
        /// [`Broker::kick`].
        Kicked = "kicked",
        /// It sent what MQTT, or what was announced in CONNACK, does not allow.
        ProtocolError = "protocol_error",
        /// It sent a packet larger than [`Settings::packet_bytes_max`].
        PacketTooLarge = "packet_too_large",
        /// A 3.1.1 device published to a topic that is not its own: 3.1.1 has no code for that, so it is closed.
        ForeignTopic = "foreign_topic",
        /// What a 3.1.1 client published was not taken in: 3.1.1 has no code for that, so it is closed and may send it again.
        ReportRefused = "report_refused",
        /// A QoS 1 report was not taken in within [`Settings::acknowledge_ms`]: the device may say it again, here or elsewhere.
        Unacknowledged = "unacknowledged",
        /// A 3.1.1 device's report is for a part of the hub that was set aside ([`Receipt::quarantined`]).
        Quarantined = "quarantined",
        /// An account does not read what it has subscribed to with QoS 1, and nothing of that may be lost in silence.
        SlowReader = "slow_reader",
        /// A 3.1.1 account published what could not be retained: 3.1.1 has no code for that.
        QuotaExceeded = "quota_exceeded",
        /// [`Broker::stop`]. No will is told: the hub goes, not the device.
        Stopped = "stopped",
    }
}

words! {
    /// Why a command was not written to the device.
    LostWhy {
        /// The device has no connection.
        NotConnected = "not_connected",
        /// It is connected and has not subscribed to its `command` topic.
        NotSubscribed = "not_subscribed",
        /// It does not read: [`Settings::outbound_bytes_max`] bytes wait already.
        OutboundFull = "outbound_full",
        /// It was still on the bus when its time was over ([`Broker::send_until`]).
        Expired = "expired",
        /// The connection ended before all of the command's bytes were written. Some of them may have been.
        ConnectionClosed = "connection_closed",
        /// The packet would be larger than the device's announced Maximum Packet Size (v5), or than [`Settings::packet_bytes_max`].
        TooLarge = "too_large",
    }
}

/// Why the broker could not be started.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A setting is out of its range.
    #[error(transparent)]
    Setting(#[from] SettingError),
    /// The listener cannot be used.
    #[error("the listener has no address")]
    Listener(#[source] std::io::Error),
    /// The certificate for TLS cannot be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// No router could be started.
    #[error("the bus could not be started: {0}")]
    Bus(String),
}

/// Why a command was not accepted. Nothing was sent, and no [`FromDevice::Written`] or [`FromDevice::Lost`] follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// The router is dead at this moment, or the broker was stopped.
    #[error("the bus is down")]
    BusDown,
    /// [`Settings::command_bytes_max`] bytes of commands are under way, or their fates have not been heard by the hub.
    #[error("too many commands are under way")]
    Full,
}

/// The running broker. Clones are the same broker. It runs until [`stop`](Self::stop), whether or not a clone is left.
#[derive(Clone)]
pub struct Broker {
    core: Arc<Core>,
    local_addr: SocketAddr,
}

/// The ticket of a command whose fate nobody waits for.
pub const NO_NOTICE: u64 = 0;

/// How long [`Broker::stop`] waits for the goodbyes to be written and the last messages to reach the hub.
const STOP_WAIT: Duration = Duration::from_secs(2);

/// Starts the broker on a bound listener: the router, then the door.
///
/// The channel never makes the broker wait: each message has its place in it reserved before it goes on its way
/// (reports by [`Settings::credit_bytes`], commands and connections by their limits). A hub that stops reading stops
/// the devices, and nothing is lost.
///
/// # Errors
/// [`Error::Setting`] for a setting out of its range, [`Error::Tls`] for a certificate that cannot be used, [`Error::Listener`] for a
/// broken listener, [`Error::Bus`] if the router's thread cannot be started.
pub async fn start(
    listener: TcpListener,
    access: Arc<dyn Access>,
    settings: Settings,
) -> Result<(Broker, mpsc::Receiver<FromDevice>), Error> {
    start_with(listener, access, settings, Memory::none()).await
}

/// The same, with retained messages that outlive the process.
///
/// # Errors
/// As [`start`].
pub async fn start_with(
    listener: TcpListener,
    access: Arc<dyn Access>,
    settings: Settings,
    memory: Memory,
) -> Result<(Broker, mpsc::Receiver<FromDevice>), Error> {
    settings.check()?;
    let local_addr = listener.local_addr().map_err(Error::Listener)?;
    let certificate = settings.tls.clone().map(tls::Certificate::read).transpose()?;
    let (hub_tx, hub_rx) = mpsc::channel(settings.places());
    let core = Arc::new(Core::new(access, settings, certificate, memory, hub_tx.downgrade()));
    router::start(core.clone(), hub_tx).await.map_err(Error::Bus)?;
    tokio::spawn(door::listen(core.clone(), listener));
    tokio::spawn(door::sweep(core.clone()));
    Ok((Broker { core, local_addr }, hub_rx))
}

impl Broker {
    /// Sends a command to a device, QoS 0 on `truetwin/<device>/command`. Never blocks. Exactly one
    /// [`FromDevice::Written`] or [`FromDevice::Lost`] with this ticket follows; none with the ticket [`NO_NOTICE`], which
    /// is only counted. Commands of one device keep their order.
    ///
    /// # Errors
    /// [`SendError::BusDown`] and [`SendError::Full`]; nothing was sent.
    pub fn send(&self, device: &str, payload: Bytes, ticket: u64) -> Result<(), SendError> {
        self.core.send(device, &payload, ticket, None)
    }

    /// The same, but not after `not_after`: a command that has waited on the bus until then (its router died) is
    /// [`LostWhy::Expired`]. For what must not begin late on a device that cannot judge lateness itself (level 1).
    ///
    /// # Errors
    /// As [`send`](Self::send).
    pub fn send_until(&self, device: &str, payload: Bytes, ticket: u64, not_after: Instant) -> Result<(), SendError> {
        self.core.send(device, &payload, ticket, Some(not_after))
    }

    /// Cuts the connection of a device, or all of an account, at once (v5: DISCONNECT 0x98), for example because its credentials were rotated. A
    /// connection that is just being let in is asked for its credentials again. Its will is told.
    pub fn kick(&self, device: &str) {
        self.core.kick(device);
    }

    /// Whether the device has a connection.
    pub fn connected(&self, device: &str) -> bool {
        self.core.connected(device)
    }

    /// Connections that the account has.
    pub fn account_connections(&self, account: &str) -> usize {
        self.core.of_account(account).len()
    }

    /// Hands the [`Keeper`] what is retained and waits to be written, as it does by itself every few seconds: who copies what is
    /// kept has it all.
    pub fn write_retained(&self) {
        self.core.write_retained();
    }

    /// Whether the bus carries at this moment.
    pub fn up(&self) -> bool {
        self.core.bus_runs()
    }

    /// Where the door listens.
    pub fn local_addr(&self) -> SocketAddr {
        self.local_addr
    }

    /// What was counted since the start, and what is so now.
    pub fn counters(&self) -> Counters {
        self.core.counters_now()
    }

    /// Stops: no new connection, each device hears DISCONNECT 0x8B (v5) and is closed, the tasks end, and the hub's
    /// channel ends after the last message. Waits some two
    /// seconds at most, for devices that do not read. The router's idle thread stays (see the module).
    pub async fn stop(&self) {
        self.core.stop(STOP_WAIT).await;
    }

    /// Kills the router, to prove that it is rebuilt: a publish whose topic begins with a character that is not ASCII
    /// panics rumqttd 0.20 (`protocol/mod.rs:658`). No device can send one: the door lets only its own topics through.
    #[doc(hidden)]
    pub fn break_bus(&self) {
        self.core.down.poison();
    }

    /// Hangs the router until what is returned is dropped: it lives and does nothing, as one that loops or waits for ever.
    /// `None` if there is none to hang at this moment.
    #[doc(hidden)]
    pub fn hang_bus(&self) -> Option<Hang> {
        let hanger = core::lock(&self.core.hanger);
        hanger.as_ref().and_then(|hang| hang().ok())
    }

    /// Makes the router deaf: it takes nothing in and gives nothing out, without being dead. To prove the canary.
    #[doc(hidden)]
    pub fn stall_bus(&self) {
        self.core.up.detach();
        self.core.down.detach();
    }
}
