//! The rules, as a state machine without a socket and without a clock.
//!
//! Whoever drives it (see [`crate::link`]) repeats: hand in *all* messages that are there ([`Machine::handle`]), then let it
//! do what is due ([`Machine::step`]), then send what it has to say ([`Machine::outgoing`]), then wait for a message or until
//! [`Machine::deadline`]. Nothing moves but in `step`, so a withdrawal that was buffered behind a set is always seen first.

mod motion;
mod operations;
mod say;
mod session;

use heapless::{Deque, Vec};
use truetwin_wire::{
    Scalar,
    device::{self, Command, DescHash, desc_hash},
    limits::{self, ARGS_BYTES_MAX, EVENT_BYTES_MAX},
    words::{CauseWord, ReasonWord, ReportResult},
};

use crate::{
    board::{Board, Part},
    outbox::Outbox,
    ring::{Ended, Id, Ring, Told},
    store::Fate,
};

/// What this core promises (protocol, *What a device does, by level*).
pub const LEVEL: u8 = 3;

/// Most properties of one board; the memory for `seen` is fixed.
pub const PROPERTIES_MAX: usize = 8;

/// Most actions of one board; their names must fit into the hello beside the properties.
pub const ACTIONS_MAX: usize = 4;

/// Most commands that wait for what moves. The hub sends one per property and gives each a time limit, so a longer queue
/// would only hold what expires; one more is `rejected`, reason `busy`.
pub const WAITING_MAX: usize = 4;

/// Most things that move at a time: each property once. What comes on top waits.
const MOVING_MAX: usize = PROPERTIES_MAX;

/// How often a moving property is read back, and what waits is looked at, milliseconds: ten times finer than what a person
/// notices.
pub const CHECK_MS: u64 = 10;

/// How often a movement whose end the board can foresee is reported as `working`, milliseconds: often enough for somebody
/// who waits, seldom enough for a radio.
const WORKING_MS: u64 = 2_000;

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
    /// More than [`ACTIONS_MAX`] actions.
    TooManyActions,
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

/// What is wanted.
#[derive(Clone, Debug)]
enum Wish {
    /// A value of a property.
    Value(Scalar),
    /// Arguments of an action, as they stood in the command.
    Args(heapless::String<ARGS_BYTES_MAX>),
}

/// A command that has not begun.
#[derive(Clone, Debug)]
struct Waiting {
    op: Id,
    part: Part,
    wish: Wish,
    clamped: bool,
    hub_ms: u64,
    ttl_ms: u32,
}

/// A command that has begun.
#[derive(Clone, Debug)]
struct Moving {
    op: Id,
    part: Part,
    /// The value; `None` for an action.
    wish: Option<Scalar>,
    clamped: bool,
    begun_ms: u64,
    check_ms: u64,
    working_ms: u64,
}

/// One device.
#[derive(Clone, Debug)]
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
    moving: Vec<Moving, MOVING_MAX>,
    ended: Ring,
    seen: Vec<Option<Id>, PROPERTIES_MAX>,
    /// When each property last began to move (`min_interval_ms`).
    begun_ms: Vec<Option<u64>, PROPERTIES_MAX>,
    /// Since when there has been no session; `None` within one.
    gone_ms: Option<u64>,
    /// Which outputs have gone to their safe level in this absence.
    failed_safe: Vec<bool, PROPERTIES_MAX>,
    /// Why the state changed while nobody could be told.
    changed_alone: Option<CauseWord>,
    /// What still moves has to be told to the new session.
    greet_again: bool,
    /// When the board is asked next whether it noticed something.
    watch_ms: u64,
    /// When what waits is looked at again; `None` if nothing waits.
    retry_ms: Option<u64>,
    /// The memory of non-repeatable actions cannot be read.
    store_failed: bool,
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
        let count = board.properties().len();
        let (mut seen, mut begun_ms, mut failed_safe) = (Vec::new(), Vec::new(), Vec::new());
        seen.resize(count, None).map_err(|_| Unusable::TooManyProperties)?;
        begun_ms.resize(count, None).map_err(|_| Unusable::TooManyProperties)?;
        failed_safe.resize(count, false).map_err(|_| Unusable::TooManyProperties)?;
        if board.actions().len() > ACTIONS_MAX {
            return Err(Unusable::TooManyActions);
        }
        if start == Start::Unclean {
            board.make_safe();
        }
        let mut scratch = [0; EVENT_BYTES_MAX];
        let desc = desc_hash(&say::description(board), &mut scratch).map_err(|_| Unusable::HelloTooLong)?;
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
            moving: Vec::new(),
            ended: Ring::default(),
            seen,
            begun_ms,
            gone_ms: Some(0),
            failed_safe,
            changed_alone: None,
            greet_again: false,
            watch_ms: 0,
            retry_ms: None,
            store_failed: false,
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
        machine.remember_kept(board);
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
        self.disconnected(now_ms);
        self.hello(now_ms, board);
    }

    /// The connection is gone: ends the session. What has begun goes on; what has not begun is forgotten. Reports of ends
    /// that were not acknowledged are told again in the next session; whatever else was not sent is in its hello.
    pub fn disconnected(&mut self, now_ms: u64) {
        if self.session.take().is_some() {
            self.gone_ms = Some(now_ms);
        }
        self.smallest_ms = None;
        self.hello_ms = None;
        self.waiting.clear();
        self.retry_ms = None;
        self.outbox.clear();
        for ended in self.ended.iter_mut().filter(|ended| matches!(ended.told, Told::Sent(_))) {
            ended.told = Told::Owed;
        }
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
            Command::Run { head, op, action, args, ttl_ms } => match self.of_this_session(&head, now_ms) {
                Err(dropped) => Heard::Dropped(dropped),
                Ok(()) => self.run(op, action, args, (head.hub_ms, ttl_ms), now_ms, board),
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

    /// When [`Machine::step`] is due next, milliseconds of the same clock; spurious calls do no harm.
    pub fn deadline(&self, board: &impl Board) -> Option<u64> {
        let check = self.moving.iter().map(|m| m.check_ms).min();
        let heartbeat = self.session.as_ref().map(|_| self.next_heartbeat_ms);
        let welcome = self.hello_ms.filter(|_| self.session.is_none()).map(|hello| hello + WELCOME_MS_MAX + 1);
        let watch = board.watch_ms().map(|_| self.watch_ms);
        let safe = self.next_failsafe_ms(board);
        [check, heartbeat, welcome, watch, safe, self.retry_ms].into_iter().flatten().min()
    }

    /// Whether the hub has not answered the hello in time: connect again.
    pub fn welcome_overdue(&self, now_ms: u64) -> bool {
        self.session.is_none() && self.hello_ms.is_some_and(|hello| now_ms > hello + WELCOME_MS_MAX)
    }

    /// The event to be sent next.
    pub fn outgoing(&self) -> Option<&[u8]> {
        self.outbox.front().map(|(event, _)| event)
    }

    /// The `seq` of the event to be sent next.
    pub fn outgoing_seq(&self) -> Option<u32> {
        self.outbox.front().map(|(_, seq)| seq)
    }

    /// The event was handed over (or cannot be sent at all).
    pub fn sent(&mut self) {
        self.outbox.pop();
    }

    /// The broker has the event with this `seq`. A body that does not know does not call this: the hub then hears the last
    /// ends again in each new session, which does no harm.
    pub fn acknowledged(&mut self, seq: u32) {
        for ended in self.ended.iter_mut().filter(|ended| ended.told == Told::Sent(seq)) {
            ended.told = Told::Done;
        }
    }

    /// How many events found no room in the outbox in this run.
    pub fn lost_events(&self) -> u32 {
        self.lost_events
    }

    /// Takes what the last run kept into the ring.
    fn remember_kept(&mut self, board: &mut impl Board) {
        let Some(store) = board.store() else { return };
        match store.kept() {
            Err(_) => self.store_failed = true,
            Ok(None) => {}
            Ok(Some((op, fate))) => {
                let (result, reason) = match fate {
                    Fate::Completed => (ReportResult::Completed, None),
                    Fate::Failed => (ReportResult::Failed, None),
                    Fate::Begun => (ReportResult::Failed, Some(ReasonWord::Interrupted)),
                };
                // Told only when asked: the hub of this run may be another one.
                self.ended.remember(Ended { op, part: None, result, reason, clamped: false, told: Told::Done });
            }
        }
    }
}
