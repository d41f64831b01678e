//! One device with its twin, and the calls that are about it.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::{Duration, Instant},
};

use truetwin_proof::{
    policy::Restarts,
    property::{Description, DeviceId},
    twin::{
        Twin,
        input::Input,
        ledger::{Fact, Ledger},
        wish::CallerId,
        words::{OpId, Outcome, Settled, Stage},
    },
};

use crate::{
    board::Board,
    core::{Core, Spec},
    fault::Fault,
    log::Log,
};

/// What kind of device.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kinds {
    pub(crate) spec: Spec,
    /// The device core itself.
    pub(crate) core: bool,
    /// A meter beside the relay must agree.
    pub(crate) metered: bool,
    pub(crate) absent_ms: u64,
    /// It takes a newer wish while it drives (level 3).
    pub(crate) preempts: bool,
}

/// A device with its twin.
pub(crate) enum Thing {
    Model(Box<Board>),
    Core(Box<Core>),
}

impl Thing {
    pub(crate) fn log(&self) -> &Log {
        match self {
            Self::Model(board) => &board.log,
            Self::Core(core) => &core.log,
        }
    }

    pub(crate) fn log_mut(&mut self) -> &mut Log {
        match self {
            Self::Model(board) => &mut board.log,
            Self::Core(core) => &mut core.log,
        }
    }

    pub(crate) fn switch(&mut self, now: u64, fault: Fault) {
        match self {
            Self::Model(board) => board.switch(now, fault),
            Self::Core(core) => core.switch(now, fault),
        }
    }

    pub(crate) fn repair(&mut self, now: u64) {
        match self {
            Self::Model(board) => board.repair(now),
            Self::Core(core) => core.repair(now),
        }
    }

    pub(crate) fn load(&self) -> bool {
        match self {
            Self::Model(board) => board.load(),
            Self::Core(core) => core.load(),
        }
    }
}

/// The newest report with a value that has reached the twin.
#[derive(Clone, Debug)]
pub(crate) struct LastWord {
    pub(crate) seq: u32,
    pub(crate) relay: bool,
    /// The operation that the device had finished last, and the one that it spoke of.
    pub(crate) finished: [Option<OpId>; 2],
    /// The relay was so by nobody's command.
    pub(crate) alone: bool,
}

/// What a call is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum For {
    Value(bool),
    Toggle,
    Run,
    Query,
    /// A held wish that is sent again: nobody's.
    Nobody,
}

/// One call.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) device: usize,
    pub(crate) what: For,
    pub(crate) asked_at: u64,
    pub(crate) answer_by: Instant,
    /// The run of the hub that it was made in.
    pub(crate) run: u64,
    pub(crate) gone: bool,
    /// The fleet told it that the actor crashed.
    pub(crate) told_by_fleet: bool,
    /// What the twin decided to tell.
    pub(crate) decided: u32,
    pub(crate) told: Vec<Outcome>,
    pub(crate) refused: bool,
    pub(crate) caller: CallerId,
    pub(crate) decided_at: Instant,
    /// How many changes of what is held there were when its answer was decided.
    pub(crate) promise: usize,
    /// What it heard, and whether that is said to be recorded.
    pub(crate) heard: Vec<(Option<Outcome>, bool)>,
    /// What was sent under its id: for a toggle known only then, for one that joined never.
    pub(crate) value: Option<bool>,
    /// When its command was given to the bus, how late it may begin, and in which session.
    pub(crate) sent: Vec<(u64, Duration, Option<Arc<str>>)>,
    pub(crate) ended: bool,
    /// Its command was written to the socket, as far as the twin knows.
    pub(crate) written: bool,
    /// Its command went to the device's socket.
    pub(crate) really_sent: bool,
    /// How far it is by the evidence that has reached the twin, and how far it was before the present moment.
    pub(crate) stage: Stage,
    pub(crate) stage_before: Stage,
    /// When its completion was taken in for the first time in this run of the device.
    pub(crate) completed_at: Option<u64>,
    /// Questions about it that went out, and when.
    pub(crate) questions: Vec<(OpId, u64)>,
    /// The last of its questions that was answered, by when it was asked; or a hello that told its end.
    pub(crate) read_back: Option<u64>,
    /// It is looked at after each step.
    pub(crate) active: bool,
    /// Faults by the stage in which it met them.
    pub(crate) met: BTreeMap<Stage, u64>,
}

/// A call that waits for the disk before the twin hears of it.
pub(crate) struct Deferred {
    pub(crate) commit: u64,
    pub(crate) op: OpId,
    pub(crate) by: Instant,
    pub(crate) input: Input,
}

/// An answer that waits for the disk.
pub(crate) struct Answer {
    pub(crate) commit: u64,
    pub(crate) op: OpId,
    pub(crate) outcome: Outcome,
    pub(crate) by: Instant,
}

/// A device, its twin, and what lies between them.
pub(crate) struct Unit {
    pub(crate) id: DeviceId,
    pub(crate) kinds: Kinds,
    // The hub's part.
    pub(crate) twin: Twin,
    pub(crate) quarantined: bool,
    pub(crate) session: Option<Arc<str>>,
    pub(crate) hub_connection: Option<u64>,
    pub(crate) tickets: BTreeMap<u64, OpId>,
    pub(crate) restarts: Restarts,
    pub(crate) ledger: Ledger,
    /// Calls whose admission is being written, by the number of its commit.
    pub(crate) deferred: Vec<Deferred>,
    /// Answers whose record is being written.
    pub(crate) answers: Vec<Answer>,
    /// The actor crashes over its next message.
    pub(crate) crash: bool,
    pub(crate) lag: u64,
    pub(crate) wake: u64,
    // The way.
    pub(crate) connection: Option<u64>,
    pub(crate) last_down: u64,
    pub(crate) last_up: u64,
    // The device.
    pub(crate) thing: Thing,
    pub(crate) description: Arc<Description>,
    /// What lasts and is wrong with it.
    pub(crate) wrong: BTreeSet<Fault>,
    pub(crate) drives_seen: usize,
    // What has reached the twin.
    pub(crate) hub_boot: Option<u32>,
    pub(crate) last_word: Option<LastWord>,
    pub(crate) heard_before: Option<Instant>,
    pub(crate) measured: Option<bool>,
    /// What was confirmed last, and nothing was sent since.
    pub(crate) claimed: Option<(OpId, bool, u64)>,
    pub(crate) active: Vec<OpId>,
    pub(crate) newly_ended: Vec<Settled>,
    /// Each change of what is held, as it was given to the journal.
    pub(crate) held_facts: Vec<Fact>,
    /// The wish that was held when it was last looked at, in this run of the actor.
    pub(crate) held_op: Option<OpId>,
    /// So many of them were promised to survive a power cut.
    pub(crate) held_promised: usize,
    /// A fault to bring about when an operation comes to a stage.
    pub(crate) ambush: Option<(Stage, Fault)>,
}
