//! The rules, as a state machine without a socket and without a clock.
//!
//! Whoever drives it (see [`crate::link`]) repeats: hand in *all* messages that are there ([`Machine::handle`]), then let it
//! do what is due ([`Machine::step`]), then send what it has to say ([`Machine::outgoing`]), then wait for a message or until
//! [`Machine::deadline`]. Nothing moves but in `step`, so a withdrawal that was buffered behind a set is always seen first.

mod operations;
mod say;

use heapless::{Deque, Vec};
use truetwin_wire::{
    Scalar,
    device::{self, Command, DescHash, Description, Event, Head, ParseError, desc_hash},
    limits::{self, EVENT_BYTES_MAX},
    words::{CommandWord, ReasonWord},
};

use crate::{
    board::Board,
    outbox::Outbox,
    ring::{Id, Ring},
};

/// Most properties of one board; the memory for `seen` is fixed.
pub const PROPERTIES_MAX: usize = 8;

/// Most sets that wait for the one that moves. The hub sends one per property and gives each a time limit, so a longer queue
/// would only hold what expires.
const WAITING_MAX: usize = 4;

/// How often a moving property is read back, milliseconds: ten times finer than what a person notices.
const CHECK_MS: u64 = 10;

/// How long a welcome may take, milliseconds. It is what lateness is counted from, so a command can never be later than its
/// limit plus this.
pub const WELCOME_MS_MAX: u64 = 5_000;

/// Shortest heartbeat, milliseconds: whatever a hub asks for, a board has other things to do.
const HEARTBEAT_MS_MIN: u64 = 200;

/// What a device is.
#[derive(Clone, Copy, Debug)]
pub struct Identity<'d> {
    /// Its name; also its MQTT user name.
    pub device: &'d str,
    /// Its model.
    pub model: &'d str,
    /// The version of its firmware.
    pub fw: &'d str,
}

/// How this run began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// Power on, brown-out, watchdog, panic: nobody knows what the outputs did; they go to their safe level.
    Unclean,
    /// A wanted restart that kept the outputs.
    Clean,
}

/// Why a machine cannot be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unusable {
    /// `boot` is not 1 to 16 of printable ASCII without quotes and backslashes.
    Boot,
    /// The name is not 1 to 32 of `a-z 0-9 _ -`.
    Device,
    /// More than [`PROPERTIES_MAX`] properties.
    TooManyProperties,
    /// The hello would be longer than an event may be.
    HelloTooLong,
}

/// What became of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heard {
    /// A welcome that was accepted: a session has begun.
    Welcome,
    /// The hub refuses the hello.
    Refused,
    /// The hub could not read an event of ours.
    Error,
    /// A command that was answered or taken.
    Command,
    /// Nothing was done, for this reason.
    Dropped(Dropped),
}

/// Why a message was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dropped {
    /// It was delivered as retained: nobody knows how old it is.
    Retained,
    /// It could not be read, and not even answered.
    Unreadable,
    /// There is no session, or it carries another one.
    OtherSession,
    /// A welcome of this hub's past.
    EarlierEpoch,
    /// A welcome more than [`WELCOME_MS_MAX`] after the hello, or without one.
    LateWelcome,
    /// A part of the protocol that is not there yet.
    NotYet,
}

/// A set that has not begun.
struct Waiting {
    op: Id,
    property: usize,
    wish: Scalar,
    hub_ms: u64,
    ttl_ms: u32,
}

/// A set that has begun.
struct Moving {
    op: Id,
    property: usize,
    wish: Scalar,
    begun_ms: u64,
    check_ms: u64,
}

/// One device.
pub struct Machine<'d> {
    identity: Identity<'d>,
    boot: Id,
    desc: DescHash,
    seq: u32,
    /// The first hello of this run has been welcomed.
    known: bool,
    hello_ms: Option<u64>,
    session: Option<Id>,
    hub: Option<(Id, u32)>,
    /// The smallest `up_ms - hub_ms` of this session.
    smallest_ms: Option<i64>,
    heartbeat_ms: u64,
    next_heartbeat_ms: u64,
    waiting: Deque<Waiting, WAITING_MAX>,
    moving: Option<Moving>,
    ended: Ring,
    seen: Vec<Option<Id>, PROPERTIES_MAX>,
    outbox: Outbox,
    lost_events: u32,
}

impl<'d> Machine<'d> {
    /// Begins a run. `boot` names it: random, or counted in flash.
    ///
    /// # Errors
    /// [`Unusable`]: what is wrong with the board or its name, before anything is connected.
    pub fn new(identity: Identity<'d>, boot: &str, start: Start, board: &mut impl Board) -> Result<Self, Unusable> {
        let boot = Some(boot).filter(|b| limits::is_id(b)).and_then(|b| Id::try_from(b).ok()).ok_or(Unusable::Boot)?;
        if !limits::is_device_name(identity.device) {
            return Err(Unusable::Device);
        }
        let mut seen = Vec::new();
        seen.resize(board.properties().len(), None).map_err(|_| Unusable::TooManyProperties)?;
        if start == Start::Unclean {
            board.make_safe();
        }
        let mut scratch = [0; EVENT_BYTES_MAX];
        let desc =
            desc_hash(&Description { properties: board.properties(), actions: &[], exclusive: &[] }, &mut scratch)
                .map_err(|_| Unusable::HelloTooLong)?;
        let mut machine = Self {
            identity,
            boot,
            desc,
            seq: 0,
            known: false,
            hello_ms: None,
            session: None,
            hub: None,
            smallest_ms: None,
            heartbeat_ms: 0,
            next_heartbeat_ms: 0,
            waiting: Deque::new(),
            moving: None,
            ended: Ring::default(),
            seen,
            outbox: Outbox::new(),
            lost_events: 0,
        };
        // A hello that does not fit would otherwise show as a board that is silent.
        machine.hello(0, board);
        if machine.outbox.is_empty() {
            return Err(Unusable::HelloTooLong);
        }
        (machine.seq, machine.hello_ms) = (0, None);
        machine.outbox.clear();
        Ok(machine)
    }

    /// The name of this run, for the will.
    pub fn boot(&self) -> &str {
        &self.boot
    }

    /// What the device is.
    pub fn identity(&self) -> Identity<'d> {
        self.identity
    }

    /// A connection was made and the command topic subscribed: greets.
    pub fn connected(&mut self, now_ms: u64, board: &mut impl Board) {
        self.disconnected();
        self.hello(now_ms, board);
    }

    /// The connection is gone: ends the session. What has begun goes on; what has not begun is forgotten, and so is what
    /// was not sent (an outbox that outlives a reconnect is level 3): the hub asks after the next hello.
    pub fn disconnected(&mut self) {
        self.session = None;
        self.smallest_ms = None;
        self.hello_ms = None;
        self.waiting.clear();
        self.outbox.clear();
    }

    /// Takes one message from the hub. Moves nothing.
    pub fn handle(&mut self, payload: &[u8], retained: bool, now_ms: u64, board: &mut impl Board) -> Heard {
        if retained {
            return Heard::Dropped(Dropped::Retained);
        }
        let command = match device::parse(payload) {
            Ok(command) => command,
            Err(error) => return self.unreadable(error, now_ms, board),
        };
        match command {
            Command::Welcome { head, hub, epoch, heartbeat_ms } => {
                self.welcome(&head, hub, epoch, heartbeat_ms, now_ms)
            }
            Command::Refused { .. } => Heard::Refused,
            Command::Error { .. } => Heard::Error,
            Command::Describe { .. } => Heard::Dropped(Dropped::NotYet),
            Command::Set { head, op, property, value, ttl_ms } => match self.of_this_session(&head, now_ms) {
                Err(dropped) => Heard::Dropped(dropped),
                Ok(()) => self.set(op, property, &value, (head.hub_ms, ttl_ms), now_ms, board),
            },
            Command::Run { head, op, action, .. } => match self.of_this_session(&head, now_ms) {
                Err(dropped) => Heard::Dropped(dropped),
                Ok(()) => self.reject(op, action, None, ReasonWord::Unsupported, now_ms, board),
            },
            Command::GetDeviceState { head, op, property } => match self.of_this_session(&head, now_ms) {
                Err(dropped) => Heard::Dropped(dropped),
                Ok(()) => self.state(op, property, now_ms, board),
            },
            Command::Withdraw { head, op } => match self.of_this_session(&head, now_ms) {
                Err(dropped) => Heard::Dropped(dropped),
                Ok(()) => self.withdraw(op, now_ms, board),
            },
            Command::GetLog { .. } => Heard::Dropped(Dropped::NotYet),
        }
    }

    /// Does what is due: looks at what moves, begins what waits, sends a heartbeat.
    pub fn step(&mut self, now_ms: u64, board: &mut impl Board) {
        self.look(now_ms, board);
        while self.moving.is_none() {
            let Some(next) = self.waiting.pop_front() else { break };
            self.begin(next, now_ms, board);
        }
        if self.session.is_some() && now_ms >= self.next_heartbeat_ms {
            self.next_heartbeat_ms = now_ms + self.heartbeat_ms;
            // Behind other events that could not be sent it would say nothing new.
            if self.outbox.is_empty() {
                self.emit(&Event::Heartbeat, now_ms);
            }
        }
    }

    /// When [`Machine::step`] is due next, milliseconds of the same clock; spurious calls do no harm.
    pub fn deadline(&self) -> Option<u64> {
        let check = self.moving.as_ref().map(|m| m.check_ms);
        let heartbeat = self.session.as_ref().map(|_| self.next_heartbeat_ms);
        let welcome = self.hello_ms.filter(|_| self.session.is_none()).map(|hello| hello + WELCOME_MS_MAX + 1);
        [check, heartbeat, welcome].into_iter().flatten().min()
    }

    /// Whether the hub has not answered the hello in time: connect again.
    pub fn welcome_overdue(&self, now_ms: u64) -> bool {
        self.session.is_none() && self.hello_ms.is_some_and(|hello| now_ms > hello + WELCOME_MS_MAX)
    }

    /// The event to be sent next.
    pub fn outgoing(&self) -> Option<&[u8]> {
        self.outbox.front()
    }

    /// The event was handed over (or cannot be sent at all).
    pub fn sent(&mut self) {
        self.outbox.pop();
    }

    /// How many events found no room in the outbox in this run.
    pub fn lost_events(&self) -> u32 {
        self.lost_events
    }

    fn welcome(&mut self, head: &Head<'_>, hub: &str, epoch: u32, heartbeat_ms: u32, now_ms: u64) -> Heard {
        if self.hello_ms.is_none_or(|hello| now_ms > hello + WELCOME_MS_MAX) {
            return Heard::Dropped(Dropped::LateWelcome);
        }
        if self.hub.as_ref().is_some_and(|(known, last)| known == hub && epoch < *last) {
            return Heard::Dropped(Dropped::EarlierEpoch);
        }
        let (Ok(session), Ok(hub)) = (Id::try_from(head.session), Id::try_from(hub)) else {
            return Heard::Dropped(Dropped::Unreadable);
        };
        self.session = Some(session);
        self.hub = Some((hub, epoch));
        self.known = true;
        self.waiting.clear(); // they were of another session
        self.smallest_ms = Some(behind(now_ms, head.hub_ms));
        self.heartbeat_ms = u64::from(heartbeat_ms).max(HEARTBEAT_MS_MIN);
        self.next_heartbeat_ms = now_ms + self.heartbeat_ms;
        Heard::Welcome
    }

    /// Checks the session of a command and learns from its clock.
    fn of_this_session(&mut self, head: &Head<'_>, now_ms: u64) -> Result<(), Dropped> {
        if self.session.as_ref().is_none_or(|session| session != head.session) {
            return Err(Dropped::OtherSession);
        }
        let behind = behind(now_ms, head.hub_ms);
        self.smallest_ms = Some(self.smallest_ms.map_or(behind, |smallest| smallest.min(behind)));
        Ok(())
    }

    /// Whether a command came, or would begin, later than it may: only differences of the two clocks count, so neither
    /// needs to know the time of day.
    fn is_late(&self, hub_ms: u64, ttl_ms: u32, now_ms: u64) -> bool {
        let smallest = self.smallest_ms.unwrap_or(i64::MAX);
        behind(now_ms, hub_ms).saturating_sub(smallest) > i64::from(ttl_ms)
    }

    fn unreadable(&mut self, error: ParseError<'_>, now_ms: u64, board: &mut impl Board) -> Heard {
        let ours = error.session.is_some() && error.session == self.session.as_deref();
        let action = match error.command {
            Some(CommandWord::Set) => "set",
            Some(CommandWord::Run) => "run",
            _ => return Heard::Dropped(Dropped::Unreadable),
        };
        match error.op {
            Some(op) if ours => self.reject(op, action, None, ReasonWord::Malformed, now_ms, board),
            _ => Heard::Dropped(Dropped::Unreadable),
        }
    }
}

/// How far this clock is ahead of the hub's; both are arbitrary, so only differences of this mean anything.
fn behind(now_ms: u64, hub_ms: u64) -> i64 {
    now_ms.wrapping_sub(hub_ms).cast_signed()
}
