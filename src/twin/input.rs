//! All that can happen to a twin, and all that it can ask for: two closed sets.
//!
//! No arm is `_`: a new input or effect must be thought about everywhere. Times are arguments of
//! [`crate::twin::Twin::apply`], never fields.

mod heard;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::{Duration, Instant},
};

pub use self::heard::{ActionResult, Body, Cause, Hello, Report, Status};
use crate::{
    property::{Description, DeviceId, Evidence, PropertyName, Value, ValueError},
    twin::{
        Hears,
        held::Held,
        owed::Correction,
        wish::{ActionName, Arguments, CallerId, Wish},
        words::{OpId, Outcome, Presence, Reason, Refusal, Reply, Settled, Stage, StateReport},
    },
};

/// One thing that happens to a device.
#[derive(Clone, Debug, PartialEq)]
pub enum Input {
    /// A caller wants a property to have a value.
    Set {
        /// The new operation's id, unique for ever.
        op: OpId,
        /// Who asks.
        caller: CallerId,
        /// What it wants, as it said it.
        wish: Wish,
        /// When the caller must have its answer (semantics 4.1).
        answer_by: Instant,
    },
    /// A caller wants something done that leaves no state (semantics 1, *Action*).
    Run {
        /// The new operation's id, unique for ever.
        op: OpId,
        /// Who asks.
        caller: CallerId,
        /// The action.
        action: ActionName,
        /// What it is done with; flat, may be empty.
        args: Arguments,
        /// When the caller must have its answer (semantics 4.1).
        answer_by: Instant,
    },
    /// A caller asks what the state is.
    Query {
        /// The question's id, unique for ever.
        op: OpId,
        /// When the caller must have its answer.
        answer_by: Instant,
    },
    /// A caller stopped waiting: it gets no answer any more (semantics 4.7).
    Cancel {
        /// Its operation or question.
        op: OpId,
    },
    /// The device's connection is open; it has not greeted yet.
    Connected {
        /// Which connection.
        connection: u64,
    },
    /// A connection ended.
    Disconnected {
        /// Which connection.
        connection: u64,
    },
    /// The device said hello; the hub welcomes it with this session.
    Greeted {
        /// The session that the hub names in its welcome.
        session: Arc<str>,
        /// What it said.
        hello: Hello,
    },
    /// The device reported.
    Heard(Report),
    /// The device sent something that could not be read.
    Unreadable,
    /// The bytes of an operation's command were written to the device's socket (semantics 8.1).
    Written {
        /// The operation.
        op: OpId,
    },
    /// An operation's command, or a caller's question, certainly never reached the device's socket: there is nothing to wait for.
    NotWritten {
        /// The operation, or the question.
        op: OpId,
    },
    /// What another device was asked for ([`Effect::Ask`]) is known, or is not to be had (semantics 3.10).
    Verified {
        /// The question.
        question: OpId,
        /// What was found.
        found: Found,
    },
    /// The bus is down.
    BusDown,
    /// The bus is back.
    BusUp,
    /// This twin follows one whose actor crashed (semantics 5.8).
    Restored(Memory),
    /// The hub is stopping: everybody is answered.
    ShutDown,
    /// The owner removed the device: everybody is answered (semantics 2.8).
    Removed,
    /// Time passed.
    Tick,
}

/// What came of a question to another device.
#[derive(Clone, Debug, PartialEq)]
pub enum Found {
    /// It has this value, read after the question.
    Value(Value),
    /// It is not connected, or there is no such device or property.
    Offline,
    /// It did not answer in time.
    Silent,
}

/// What outlives a crashed actor: enough to withdraw what was in flight and to go on with the session.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Memory {
    /// The open connection, if any.
    pub connection: Option<u64>,
    /// The session of the last welcome.
    pub session: Option<Arc<str>>,
    /// The boot of the last hello.
    pub boot: Option<Arc<str>>,
    /// The description in force.
    pub description: Option<Arc<Description>>,
    /// When anything was last heard of the device.
    pub last_heard: Option<Instant>,
    /// Wishes that outlive their operation (semantics 6.2).
    pub held: BTreeMap<PropertyName, Held>,
    /// Properties that the owner has yet to accept (semantics 2.7).
    pub unaccepted: BTreeSet<PropertyName>,
    /// Operations that were admitted and not ended, as the crash left them, for each of their callers.
    pub in_flight: Vec<Left>,
    /// What the device reported in an earlier process, with when that was: shown as old until it reports itself, evidence of
    /// nothing (semantics 2.1).
    pub stale: BTreeMap<PropertyName, (Value, Evidence, Instant)>,
    /// Operations that ended before, oldest first, as their callers were told: what a journal knows of an earlier process.
    /// A crashed actor leaves none. Each with when it ended.
    pub ended: Vec<(Instant, Left)>,
}

impl Memory {
    /// Notes what an actor is about to take in, as far as it is true even if the actor crashes over it: a connection that its
    /// successor does not know of would end with the one before.
    pub fn happens(&mut self, input: &Input) {
        match input {
            Input::Connected { connection } => (self.connection, self.session) = (Some(*connection), None),
            Input::Disconnected { connection } => {
                if self.connection == Some(*connection) {
                    (self.connection, self.session) = (None, None);
                }
            }
            Input::Set { .. }
            | Input::Run { .. }
            | Input::Query { .. }
            | Input::Cancel { .. }
            | Input::Greeted { .. }
            | Input::Heard(_)
            | Input::Unreadable
            | Input::Written { .. }
            | Input::NotWritten { .. }
            | Input::Verified { .. }
            | Input::BusDown
            | Input::BusUp
            | Input::Restored(_)
            | Input::ShutDown
            | Input::Removed
            | Input::Tick => {}
        }
    }
}

/// What a crashed actor left of one operation, for one of its callers.
#[derive(Clone, Debug, PartialEq)]
pub struct Left {
    /// Whose it is.
    pub caller: CallerId,
    /// What it has heard.
    pub hears: Hears,
    /// How far it was, under the id of the caller's own call.
    pub settled: Settled,
}

/// What the hub sends to a device.
#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    /// The session begins.
    Welcome {
        /// Its name.
        session: Arc<str>,
    },
    /// Make a property have a value.
    Set {
        /// The operation.
        op: OpId,
        /// The property.
        property: PropertyName,
        /// The normalised value.
        value: Value,
        /// How much later than this sending it may begin (`act_by`, semantics 4.1).
        ttl: Duration,
    },
    /// Do something that leaves no state.
    Run {
        /// The operation.
        op: OpId,
        /// The action.
        action: ActionName,
        /// What it is done with; flat, may be empty.
        args: Arguments,
        /// How much later than this sending it may begin.
        ttl: Duration,
    },
    /// Say what the state is.
    GetState {
        /// The question.
        op: OpId,
        /// One property, or all.
        property: Option<PropertyName>,
    },
    /// Do not begin that operation any more.
    Withdraw {
        /// The operation.
        op: OpId,
    },
}

/// What the twin asks its actor to do.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Send this to the device. An operation's `Set` is answered with [`Input::Written`] or [`Input::NotWritten`], a caller's question with
    /// the latter alone.
    Send(Command),
    /// Ask another device what a property of it is now; answered with [`Input::Verified`]. Takes no slot there, and never
    /// waits here (semantics 3.10).
    Ask {
        /// The question: part of the answer.
        question: OpId,
        /// The device that measures.
        device: DeviceId,
        /// Its property.
        property: PropertyName,
        /// When it must have answered.
        answer_by: Instant,
    },
    /// Tell the caller of an operation.
    Reply {
        /// The operation.
        op: OpId,
        /// What it is told.
        reply: Reply,
    },
    /// Tell the caller of a question.
    State {
        /// The question.
        op: OpId,
        /// What it is told.
        state: Result<StateReport, Refusal>,
    },
    /// An operation left a stage after so long.
    StageLeft {
        /// The stage.
        stage: Stage,
        /// How long it was in it.
        spent: Duration,
    },
    /// An operation ended. Once for each whose command reached the device's socket or may have.
    Ended {
        /// How.
        outcome: Outcome,
        /// Where.
        stage: Stage,
        /// Why it did not converge.
        reason: Option<Reason>,
        /// From the call to the end.
        elapsed: Duration,
    },
    /// An operation that was answered as not confirmed was found done (semantics 6.1).
    LateSuccess {
        /// The operation.
        op: OpId,
    },
    /// A device went back by itself after a success (semantics 3.7).
    Reverted {
        /// The operation whose success no longer holds.
        op: OpId,
        /// Its property.
        property: PropertyName,
    },
    /// What a caller was told is no longer true (semantics 6.3).
    Owed {
        /// The caller.
        caller: CallerId,
        /// What is.
        correction: Box<Correction>,
    },
    /// Somebody at the device has changed what was held, and that counts from now on (semantics 6.2).
    LocalOverride {
        /// The property.
        property: PropertyName,
    },
    /// Presence changed.
    Presence(Presence),
    /// The description changed.
    Described(Arc<Description>),
    /// A value in a report does not fit the description: the device is told, so that a typo is a sentence.
    Malformed {
        /// The report's number.
        of_seq: u32,
        /// The property.
        property: PropertyName,
        /// What was wrong; `None` if the device has no such property.
        error: Option<ValueError>,
    },
    /// The first hello of a connection carries a boot and a number that were there before (semantics 2.4): what this board
    /// reports will be ignored, and it should be told.
    StaleHello {
        /// The hello's number.
        of_seq: u32,
    },
    /// A report that changes nothing, and why.
    Ignored(Ignored),
}

/// Why a report counts for nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Ignored {
    /// Delivered with the RETAIN flag (semantics 3.4).
    Retained,
    /// Of another boot than the last hello's (semantics 3.4).
    OldBoot,
    /// A `(boot, seq)` that was there before (semantics 2.4).
    Duplicate,
    /// Before any hello.
    NotGreeted,
}

impl Ignored {
    /// All of them, in order.
    pub const ALL: &[Self] = &[Self::Retained, Self::OldBoot, Self::Duplicate, Self::NotGreeted];

    /// The word in metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Retained => "retained",
            Self::OldBoot => "old_boot",
            Self::Duplicate => "duplicate",
            Self::NotGreeted => "not_greeted",
        }
    }
}
