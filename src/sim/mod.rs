//! The device core's first body: devices of eleven kinds over a real TCP connection, with faults to be switched on.
//!
//! What answers is [`truetwin_device`], the same code as on a board. Simulated are what stands behind the pins (`plant`), the
//! board (`body`), the wire (`line`) and the life of a run (`life`); a [`Fault`] bends one of these, never the core.
//! [`Handle::truth`] is what *really* moved: what the hub is measured against, and what it must never see. This module knows
//! nothing of the hub.
//!
//! How it is controlled from outside ([`run`]): lines on standard input, and with `--control` the same lines over a TCP
//! connection on this machine. Not over MQTT: a device may subscribe to its own command topic only (wire protocol,
//! *Topics*), and a control that comes through the connection that is offline or frozen could not switch the fault off.

mod body;
mod command_line;
mod control;
mod fault;
mod kind;
mod life;
mod line;
mod plant;
mod world;

use std::{
    fmt,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    sync::{Arc, Mutex, PoisonError},
    thread,
};

use tokio::sync::mpsc;

pub use command_line::{list, run, run_lines};
pub use fault::{Fault, UnknownFault};
pub use kind::{EXPECTED_MS, Kind, UnknownKind};

use world::World;

/// What the simulator is to be.
#[derive(Clone)]
pub struct Options {
    /// Where the hub's MQTT door listens.
    pub mqtt: SocketAddr,
    /// The device's name, also its MQTT user name: 1 to 32 of `a-z 0-9 _ -`.
    pub device: String,
    /// Its password; shown nowhere.
    pub password: String,
    /// What sort of device it is.
    pub kind: Kind,
    /// How fast the plant lives: 1 is as it would be, 10 makes a blind of 25 s one of 2.5 s. From 0.001 to 1000; the
    /// firmware's clock and the network are not touched.
    pub speed: f64,
    /// How long a relay's value must hold after completion, milliseconds; part of the description (semantics 3.6).
    pub stable_ms: u32,
    /// The fault that it begins with.
    pub fault: Fault,
    /// The address of this machine that it dials from; `None` leaves that to the system. A hub tells two boards of one name
    /// apart by it (semantics 5.6).
    pub from: Option<IpAddr>,
    /// Where lines of control are taken, too; loopback only. Port 0 takes a free one.
    pub control: Option<SocketAddr>,
}

impl Options {
    /// A healthy socket.
    pub fn new(mqtt: SocketAddr, device: &str, password: &str) -> Self {
        Self {
            mqtt,
            device: device.to_owned(),
            password: password.to_owned(),
            kind: Kind::Socket,
            speed: 1.0,
            stable_ms: 200,
            fault: Fault::None,
            from: None,
            control: None,
        }
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
        let Self { mqtt, device, password: _, kind, speed, stable_ms, fault, from, control } = self;
        write!(f, "Options {{ mqtt: {mqtt}, device: {device:?}, kind: {kind}, speed: {speed}, ")?;
        write!(f, "stable_ms: {stable_ms}, fault: {fault}, from: {from:?}, control: {control:?} }}")
    }
}

/// What really is, of one thing or measurement.
#[derive(Clone, Debug, PartialEq)]
pub struct Truth {
    /// Its name; that of the property where there is one.
    pub name: String,
    /// Where it is: 0 or 1 of a contact, else in the property's unit.
    pub at: f64,
    /// How often it has begun to move, or an action has taken place; reboots that let a relay fall included.
    pub moves: u64,
    /// Whether it moves now.
    pub moving: bool,
    /// When it last began to move, milliseconds since the start of the simulator.
    pub last_ms: Option<u64>,
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
    /// The speed is out of its range.
    #[error("{0} is no speed: 0.001 to 1000 are allowed")]
    Speed(f64),
    /// Nobody can be listened to.
    #[error("cannot listen for control on {0}; an address of this machine's loopback is allowed")]
    Control(SocketAddr, #[source] std::io::Error),
    /// What happens could not be printed.
    #[error("cannot print what the device does")]
    Output(#[source] std::io::Error),
}

/// Something that happened to the device.
#[derive(Clone, Debug, PartialEq)]
pub enum Happened {
    /// The MQTT connection stands and the hello was sent.
    Connected,
    /// The hub accepted the hello.
    Welcomed,
    /// The hub complained: the text of its `refused` or `error`.
    Told(String),
    /// The connection is gone, and why.
    Disconnected(String),
    /// Something really began to move; a contact is there at once.
    Moved {
        /// What.
        part: String,
        /// Where to: 0 or 1 of a contact, else in the property's unit.
        to: f64,
        /// How often it has moved by now.
        moves: u64,
        /// When, milliseconds since the start of the simulator.
        at_ms: u64,
    },
    /// Something that takes time has arrived, or was stopped by its end.
    Stopped {
        /// What.
        part: String,
        /// Where.
        at: f64,
    },
    /// An action really took place.
    Acted {
        /// Which.
        action: String,
        /// How often by now.
        times: u64,
        /// When, milliseconds since the start of the simulator.
        at_ms: u64,
    },
    /// Somebody asked what really is.
    Truth(Vec<Truth>),
    /// Lines of control are taken here.
    Listening(SocketAddr),
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

/// Where the second board of [`Fault::SecondBoard`] stands: the loopback of Linux is a whole network.
const ANOTHER: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2));

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
    options: Arc<Options>,
    /// The second board of [`Fault::SecondBoard`].
    second: Arc<Mutex<Option<Simulator>>>,
}

impl Handle {
    /// Switches a fault on, and the one before off. When this returns, what the device does from then on is under the new
    /// fault.
    pub fn set_fault(&self, fault: Fault) {
        self.change(|control| {
            let reboots = (fault.is_update() || control.fault.is_update()) && control.fault != fault;
            control.boots += u64::from(reboots);
            control.fault = fault;
        });
        self.stand_beside(fault);
        self.world.tell(Happened::Fault(fault));
    }

    /// Starts or ends the second board.
    fn stand_beside(&self, fault: Fault) {
        let wanted = fault == Fault::SecondBoard;
        let mut second = self.second.lock().unwrap_or_else(PoisonError::into_inner);
        if !wanted {
            *second = None;
        } else if second.is_none() {
            // Another board has another address; this machine has a second one only on its loopback.
            let from = self.options.mqtt.ip().is_loopback().then_some(ANOTHER).or(self.options.from);
            let options = Options { fault: Fault::None, from, control: None, ..(*self.options).clone() };
            *second = Some(start(options));
        }
    }

    /// Whether the first thing that it drives is really on (at its upper half).
    pub fn relay(&self) -> bool {
        self.world.truth().first().is_some_and(|truth| truth.at > 0.5)
    }

    /// How often the first thing that it drives really moved, reboots that let it fall included.
    pub fn moves(&self) -> u64 {
        self.world.truth().first().map_or(0, |truth| truth.moves)
    }

    /// What really is: each thing that is driven, each action, each measurement.
    pub fn truth(&self) -> Vec<Truth> {
        self.world.truth()
    }

    /// What really is of one thing, action or measurement.
    pub fn truth_of(&self, name: &str) -> Option<Truth> {
        self.world.truth().into_iter().find(|truth| truth.name == name)
    }

    /// A person at the device switches something by hand: the first thing, or the one that is named; to the other side, or to
    /// a value. `false` if there is no such thing.
    pub fn touch(&self, name: Option<&str>, to: Option<f64>) -> bool {
        self.world.touch(name, to)
    }

    /// Pulls the plug and puts it back: the connection breaks without a goodbye, relays fall, a new run begins.
    pub fn restart(&self) {
        self.change(|control| control.boots += 1);
    }

    /// Ends the device; [`Simulator::stop`] also waits for it.
    pub fn end(&self) {
        *self.second.lock().unwrap_or_else(PoisonError::into_inner) = None;
        self.change(|control| control.stop = true);
    }

    /// Changes the control between two turns of the device, never in one: a command sent after this returns meets the new
    /// fault. The world is bent before, not within: what is due in it may be a reboot, which changes the control itself.
    fn change(&self, change: impl Fn(&mut Control)) {
        let _between_turns = self.world.turn();
        let before = *self.world.control.borrow();
        let mut after = before;
        change(&mut after);
        if after.fault != before.fault {
            self.world.bend(after.fault);
        }
        self.world.control.send_modify(change);
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
    let world = World::new(&options, sender);
    let changes = world.control.subscribe();
    let (theirs, fault, options) = (world.clone(), options.fault, Arc::new(options));
    let of_thread = (*options).clone();
    // A thread of its own, because the core's futures hold what cannot be sent to another one.
    let thread = thread::Builder::new().name(format!("sim {}", options.device)).spawn(move || {
        match tokio::runtime::Builder::new_current_thread().enable_all().build() {
            // Without tokio's budget: a device that reads all there is must not be told that there is nothing.
            Ok(runtime) => {
                runtime.block_on(tokio::task::unconstrained(life::live(of_thread, theirs.clone(), changes)));
            }
            Err(error) => theirs.tell(Happened::Disconnected(format!("no runtime: {error}"))),
        }
        theirs.tell(Happened::Ended);
    });
    if let Err(error) = &thread {
        world.tell(Happened::Disconnected(format!("no thread: {error}")));
        world.tell(Happened::Ended);
    }
    let handle = Handle { world, options, second: Arc::default() };
    handle.stand_beside(fault);
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
    fn the_password_is_shown_nowhere() {
        let options = Options::new(([127, 0, 0, 1], 1883).into(), "socket", "hush");
        assert!(!format!("{options:?}").contains("hush"));
    }

    #[test]
    fn a_fault_changes_while_a_reboot_is_due() {
        let options = Options::default();
        let world = World::new(&options, mpsc::channel(EVENTS_KEPT).0);
        let handle = Handle { world: world.clone(), options: Arc::new(options), second: Arc::default() };
        world.schedule(&mut world.lock(), 0.0, world::Event::Reboot);
        let (done, waiting) = std::sync::mpsc::channel();
        thread::spawn(move || {
            handle.set_fault(Fault::Stuck);
            done.send(handle.world.control.borrow().boots)
        });
        assert_eq!(waiting.recv_timeout(std::time::Duration::from_secs(60)), Ok(1), "it waits for itself");
    }
}
