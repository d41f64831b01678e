//! The device core's first body: a socket with one relay, over a real TCP connection, with faults to be switched on.
//!
//! What answers is [`truetwin_device`], the same code as on a board; simulated are only the relay behind the pins, the
//! thread that drives, and the network ([`Fault`]). [`Simulator::relay`] is what the relay *really* does: what the hub is
//! measured against, and what it must never see. This module knows nothing of the hub.

mod command_line;
mod life;
mod relay;

use std::{fmt, net::SocketAddr, str::FromStr, sync::Arc, thread};

use tokio::sync::{mpsc, watch};

pub use command_line::{run, run_lines};
pub use relay::EXPECTED_MS;

use relay::World;

/// What the simulator is to be.
#[derive(Clone)]
pub struct Options {
    /// Where the hub's MQTT door listens.
    pub mqtt: SocketAddr,
    /// The device's name, also its MQTT user name: 1 to 32 of `a-z 0-9 _ -`.
    pub device: String,
    /// Its password; shown nowhere.
    pub password: String,
    /// How long a value must hold after completion, milliseconds; part of the description (semantics 3.6).
    pub stable_ms: u32,
    /// The fault that it begins with.
    pub fault: Fault,
}

impl Options {
    /// A healthy socket.
    pub fn new(mqtt: SocketAddr, device: &str, password: &str) -> Self {
        Self { mqtt, device: device.to_owned(), password: password.to_owned(), stable_ms: 200, fault: Fault::None }
    }
}

impl Default for Options {
    /// A healthy socket called `socket`, without a password, at the usual port of this machine.
    fn default() -> Self {
        Self::new(([127, 0, 0, 1], 1883).into(), "socket", "")
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { mqtt, device, password: _, stable_ms, fault } = self;
        write!(f, "Options {{ mqtt: {mqtt}, device: {device:?}, stable_ms: {stable_ms}, fault: {fault} }}")
    }
}

/// What is wrong with the simulated device (semantics, fault table).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Hash)]
pub enum Fault {
    /// Nothing.
    #[default]
    None,
    /// Driving moves nothing; the read-back shows it and the device says so.
    Stuck,
    /// The task that drives does nothing at all; the socket stays open, and what was sent meanwhile is read on thawing.
    Frozen,
    /// The device reports the wished value as read back although nothing moved; asked later, it reads the truth.
    Lying,
    /// The relay needs 700 ms.
    Slow,
    /// No connection, and none is tried.
    Offline,
}

impl Fault {
    /// All of them.
    pub const ALL: [Self; 6] = [Self::None, Self::Stuck, Self::Frozen, Self::Lying, Self::Slow, Self::Offline];

    /// The word on the command line and in events.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Stuck => "stuck",
            Self::Frozen => "frozen",
            Self::Lying => "lying",
            Self::Slow => "slow",
            Self::Offline => "offline",
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A text that is no fault.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no fault; allowed: none, stuck, frozen, lying, slow, offline")]
pub struct UnknownFault(pub String);

impl FromStr for Fault {
    type Err = UnknownFault;

    fn from_str(word: &str) -> Result<Self, UnknownFault> {
        let known = Self::ALL.into_iter().find(|fault| fault.as_str() == word);
        known.ok_or_else(|| UnknownFault(word.chars().take(64).collect()))
    }
}

/// Why there is no simulator.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The name of the device is not allowed.
    #[error("{0:?} is no device id: 1 to 32 of a-z, 0-9, _ and - are allowed")]
    Device(String),
    /// No thread, no random numbers.
    #[error("cannot start the simulated device")]
    Start(#[source] std::io::Error),
    /// What happens could not be printed.
    #[error("cannot print what the relay does")]
    Output(#[source] std::io::Error),
}

/// Something that happened to the device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Happened {
    /// The MQTT connection stands and the hello was sent.
    Connected,
    /// The hub accepted the hello.
    Welcomed,
    /// The hub complained: the text of its `refused` or `error`.
    Told(String),
    /// The connection is gone, and why.
    Disconnected(String),
    /// The relay really moved.
    Moved {
        /// Where to.
        on: bool,
        /// How often it has moved by now.
        moves: u64,
    },
    /// Another fault.
    Fault(Fault),
    /// A run has begun.
    Started {
        /// Its name.
        boot: String,
    },
    /// A line on the command line that was none.
    NotUnderstood(String),
    /// The device has ended, as it was told to.
    Ended,
}

/// How many events are kept for somebody who reads slowly; more are dropped (the device must not wait for a reader).
const EVENTS_KEPT: usize = 1024;

/// What is wanted of the device's thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Control {
    fault: Fault,
    /// Counts the reboots that were asked for.
    boots: u64,
    stop: bool,
}

/// Controls a simulated device from any thread.
#[derive(Clone)]
pub struct Handle {
    world: Arc<World>,
    control: Arc<watch::Sender<Control>>,
}

impl Handle {
    /// Switches a fault on, and the one before off. When this returns, what the device does from then on is under the new
    /// fault.
    pub fn set_fault(&self, fault: Fault) {
        self.change(|control| control.fault = fault);
        self.world.tell(Happened::Fault(fault));
    }

    /// Whether the relay is really on.
    pub fn relay(&self) -> bool {
        self.world.is_on()
    }

    /// How often the relay really moved, reboots that let it fall included.
    pub fn moves(&self) -> u64 {
        self.world.moves()
    }

    /// Pulls the plug and puts it back: the connection breaks without a goodbye, the relay falls, a new run begins.
    pub fn restart(&self) {
        self.change(|control| control.boots += 1);
    }

    /// Ends the device; [`Simulator::stop`] also waits for it.
    pub fn end(&self) {
        self.change(|control| control.stop = true);
    }

    fn change(&self, change: impl FnOnce(&mut Control)) {
        // Between two turns of the device, never in one: a command sent after this returns meets the new fault.
        let _between_turns = self.world.turn();
        self.control.send_modify(|control| {
            change(control);
            self.world.set_fault(control.fault);
        });
    }
}

/// A simulated device on its own thread. Dropping it ends the device.
pub struct Simulator {
    handle: Handle,
    events: Option<mpsc::Receiver<Happened>>,
    thread: Option<thread::JoinHandle<()>>,
}

/// Starts a device. It dials at once, and again with growing pauses for as long as it lives. A device that cannot live (a
/// name that is none, a system that gives no thread) says so in its events and ends.
pub fn start(options: Options) -> Simulator {
    let (sender, events) = mpsc::channel(EVENTS_KEPT);
    let world = Arc::new(World::new(options.fault, sender));
    let (control, changes) = watch::channel(Control { fault: options.fault, boots: 0, stop: false });
    let theirs = world.clone();
    // A thread of its own, because the core's futures hold what cannot be sent to another one.
    let thread = thread::Builder::new().name(format!("sim {}", options.device)).spawn(move || {
        match tokio::runtime::Builder::new_current_thread().enable_all().build() {
            // Without tokio's budget: a device that reads all there is must not be told that there is nothing.
            Ok(runtime) => runtime.block_on(tokio::task::unconstrained(life::live(options, theirs.clone(), changes))),
            Err(error) => theirs.tell(Happened::Disconnected(format!("no runtime: {error}"))),
        }
        theirs.tell(Happened::Ended);
    });
    if let Err(error) = &thread {
        world.tell(Happened::Disconnected(format!("no thread: {error}")));
        world.tell(Happened::Ended);
    }
    let handle = Handle { world, control: Arc::new(control) };
    Simulator { handle, events: Some(events), thread: thread.ok() }
}

impl Simulator {
    /// Controls it from another thread.
    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// As [`Handle::set_fault`].
    pub fn set_fault(&self, fault: Fault) {
        self.handle.set_fault(fault);
    }

    /// As [`Handle::relay`].
    pub fn relay(&self) -> bool {
        self.handle.relay()
    }

    /// As [`Handle::moves`].
    pub fn moves(&self) -> u64 {
        self.handle.moves()
    }

    /// As [`Handle::restart`].
    pub fn restart(&self) {
        self.handle.restart();
    }

    /// What happens, from the start on, at most the first 1024 that nobody has read. The first call gets it; a later one
    /// gets a receiver that is closed.
    pub fn events(&mut self) -> mpsc::Receiver<Happened> {
        self.events.take().unwrap_or_else(|| mpsc::channel(1).1)
    }

    /// Ends the device, as if its power went, and waits for it.
    pub fn stop(mut self) {
        self.handle.end();
        if let Some(thread) = self.thread.take() {
            let _panicked = thread.join();
        }
    }
}

impl Drop for Simulator {
    fn drop(&mut self) {
        self.handle.end();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fault_reads_back_as_its_word() {
        for fault in Fault::ALL {
            assert_eq!(fault.to_string().parse(), Ok(fault));
        }
        assert_eq!("broken".parse::<Fault>(), Err(UnknownFault("broken".to_owned())));
    }

    #[test]
    fn the_password_is_shown_nowhere() {
        let options = Options::new(([127, 0, 0, 1], 1883).into(), "socket", "hush");
        assert!(!format!("{options:?}").contains("hush"));
    }
}
