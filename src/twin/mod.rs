#![doc = include_str!("semantics.md")]
//!
//! # How to drive it
//!
//! [`Twin`] is a pure state machine. One rule: *one input with `now` ([`Twin::apply`]), then drain effects
//! ([`Twin::poll`]) until there are none, then wake at [`Twin::deadline`].* Early, late and repeated wake-ups are
//! harmless: each input first expires what is late, so what is answered depends on the clock alone (semantics 4.8).
//!
//! It knows no clock, no tokio, no randomness (ids come with the inputs), no JSON and no sentence.
//!
//! | file | what it decides |
//! |---|---|
//! | [`input`] | what can happen, what can be asked for |
//! | `admission.rs` | whether an operation is admitted or refused, and its sending |
//! | `joining.rs` | what a wish means for those before it: joining, superseding; who stops waiting |
//! | `turns.rs` | whose operation begins next |
//! | `relative.rs` | relative wishes become absolute |
//! | `waiter.rs` | the callers of one operation |
//! | [`ledger`] | what of it must be kept, and what waits for that |
//! | [`planted`] | mistakes for the simulator to find; none in the hub |
//! | [`owed`] | what is owed to callers whose answer is no longer true |
//! | `evidence.rs` | what counts as done: predicate, freshness, attribution, evidence |
//! | `action.rs` | what leaves no state, and values that come about by it |
//! | `drift.rs` | reading again what nobody tells |
//! | `verify.rs` | independent measurements |
//! | `held.rs` | wishes that outlive their operation |
//! | `changed.rs` | who changed what is held |
//! | `progress.rs` | what a report means for the operations in flight: convergence |
//! | `reported.rs` | merging reports |
//! | `restart.rs` | what a new session or a new run means for what is in flight |
//! | `operation.rs` | one operation's stages and allowances |
//! | `record.rs` | how operations end |
//! | [`view`] | all that is known of a device at one moment |
//! | `watch.rs` | what changes the truth of it afterwards |
//! | `presence.rs` | whether the device can be reached |
//! | `questions.rs` | callers who ask how it is |
//! | [`wish`] | what a caller may want, and who it is |
//! | [`settings`] | times and bounds |
//! | [`words`] | the closed sets of words |

mod action;
pub mod admission;
mod changed;
mod drift;
mod evidence;
pub mod held;
pub mod input;
mod joining;
pub mod ledger;
mod operation;
pub mod owed;
pub mod planted;
mod presence;
mod progress;
mod questions;
mod record;
mod relative;
mod reported;
mod restart;
pub use reported::ChangedBy;
pub mod settings;
mod turns;
mod verify;
pub mod view;
mod waiter;
mod watch;
pub mod wish;
pub mod words;

pub use self::waiter::Hears;
pub(crate) use self::waiter::Waiter;

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
    time::Instant,
};

use self::{
    held::Held,
    input::{Effect, Input, Memory},
    operation::Operation,
    planted::Planted,
    presence::Line,
    questions::Question,
    record::Record,
    reported::Reported,
    settings::Settings,
    turns::Touched,
    wish::CallerId,
};
use crate::{
    property::{Description, DeviceId, Evidence, PropertyName, Value},
    twin::words::{OpId, Outcome, Presence, Reading, Reason, Refusal, Settled, Stage, StateReport, Trust},
};

/// A wished value, beside the reported one (semantics 2.1).
#[derive(Clone, Debug, PartialEq)]
pub struct Desired {
    /// The normalised value.
    pub value: Value,
    /// The operation that makes it true.
    pub op: OpId,
    /// Since when it is wished.
    pub since: Instant,
}

/// The digital twin of one device.
#[derive(Clone, Debug)]
pub struct Twin {
    device: DeviceId,
    settings: Settings,
    description: Option<Arc<Description>>,
    desired: BTreeMap<PropertyName, Desired>,
    reported: Reported,
    line: Line,
    operations: BTreeMap<OpId, Operation>,
    /// For each property the operations in flight, then those that wait, in order of their arrival (semantics 4.5).
    slots: BTreeMap<PropertyName, VecDeque<OpId>>,
    questions: BTreeMap<OpId, Question>,
    records: VecDeque<Record>,
    /// When each property was last moved (semantics 4.4).
    touched: BTreeMap<PropertyName, Touched>,
    /// Wishes that outlive their operation (semantics 6.2); at most one for each property that was ever described and held.
    held: BTreeMap<PropertyName, Held>,
    /// Properties that appeared later, can do harm, and are not accepted by the owner (semantics 2.7).
    unaccepted: BTreeSet<PropertyName>,
    /// What was reported in an earlier process (semantics 2.1).
    stale: BTreeMap<PropertyName, (Value, Evidence, Instant)>,
    /// Callers in the order of their last turns (semantics 4.5).
    turns: VecDeque<CallerId>,
    /// How many operations have come.
    arrivals: u64,
    effects: VecDeque<Effect>,
    stopping: bool,
}

impl Twin {
    /// A twin of a device that was never heard of.
    pub fn new(device: DeviceId, settings: Settings) -> Self {
        Self {
            device,
            settings,
            description: None,
            desired: BTreeMap::new(),
            reported: Reported::default(),
            line: Line::default(),
            operations: BTreeMap::new(),
            slots: BTreeMap::new(),
            questions: BTreeMap::new(),
            records: VecDeque::new(),
            touched: BTreeMap::new(),
            held: BTreeMap::new(),
            unaccepted: BTreeSet::new(),
            stale: BTreeMap::new(),
            turns: VecDeque::new(),
            arrivals: 0,
            effects: VecDeque::new(),
            stopping: false,
        }
    }

    /// Takes one input in. What is late at `now` expires first, whatever the input is (semantics 4.8); what may begin does
    /// so last, when all that the input changes is known.
    pub fn apply(&mut self, now: Instant, input: Input) {
        let late = planted::is(Planted::DeadlineAfterReport);
        if !late {
            self.expire(now);
        }
        match input {
            Input::Set { op, caller, wish, answer_by } => self.set(now, op, caller, wish, answer_by),
            Input::Run { op, caller, action, args, answer_by } => self.run(now, op, caller, &action, args, answer_by),
            Input::Verified { question, found } => self.verified(now, &question, found),
            Input::Query { op, answer_by } => self.query(now, op, answer_by),
            Input::Cancel { op } => self.cancel(&op),
            Input::Connected { connection } => self.connected(now, connection),
            Input::Disconnected { connection } => self.disconnected(now, connection),
            Input::Greeted { session, hello } => self.greeted(now, session, &hello),
            Input::Heard(report) => self.heard(now, &report),
            Input::Unreadable => self.unreadable(now),
            Input::Written { op } => self.written(now, &op),
            Input::NotWritten { op } => self.not_written(now, &op),
            Input::BusDown => self.line.bus_down = true,
            Input::BusUp => self.line.bus_down = false,
            Input::Restored(memory) => self.restore(now, memory),
            Input::ShutDown => self.end_all(now, Outcome::Interrupted, &Refusal::ShuttingDown),
            Input::Removed => self.end_all(now, Outcome::Removed, &self.unknown()),
            Input::Tick => {}
        }
        if late {
            self.expire(now);
        }
        self.reconcile(now);
        self.begin_due(now);
        if self.pursue(now) {
            self.begin_due(now);
        }
    }

    /// The next thing to do, until there is none.
    pub fn poll(&mut self) -> Option<Effect> {
        self.effects.pop_front()
    }

    /// When [`Input::Tick`] is due at the latest. May change with every input.
    pub fn deadline(&self) -> Option<Instant> {
        let operations = self.operations.values().filter_map(Operation::wakes_at);
        let questions = self.questions.values().map(|q| q.expires_at);
        operations
            .chain(questions)
            .chain(self.line.suspect_at(&self.settings))
            .chain(self.opens_at())
            .chain(self.held_deadline())
            .chain(self.reconcile_at())
            .min()
    }

    /// The description in force, if the device ever greeted.
    pub fn description(&self) -> Option<&Arc<Description>> {
        self.description.as_ref()
    }

    /// Whether the device can be reached.
    pub fn presence(&self) -> Presence {
        self.line.presence
    }

    /// When anything was last heard of the device.
    pub fn last_heard(&self) -> Option<Instant> {
        self.line.last_heard
    }

    /// What is wished of a property, while it is.
    pub fn desired(&self, property: &str) -> Option<&Desired> {
        self.desired.get(property)
    }

    /// Who brought the present value of a property about, as far as the device says.
    pub fn last_changed_by(&self, property: &str) -> Option<&ChangedBy> {
        self.reported.get(property).map(|known| &known.changed_by)
    }

    /// How many operations are in flight or wait.
    pub fn in_flight(&self) -> usize {
        self.operations.len()
    }

    /// Where each operation is that is in flight or waits, by the id that the device knows or will know.
    pub fn stages(&self) -> impl Iterator<Item = (&OpId, Stage)> {
        self.operations.values().map(|operation| (&operation.op, operation.stage))
    }

    /// What is known of an operation: how it ended, or how far it is. Without an id, the latest.
    pub fn check(&self, now: Instant, op: Option<&OpId>) -> Option<Settled> {
        if let Some(op) = op {
            let of = |waiters: &[Waiter]| waiters.iter().find(|waiter| waiter.op == *op).cloned();
            let live =
                self.operations.values().find_map(|o| Some(record::seen_by(self.so_far(now, o), &of(&o.waiters)?)));
            let ended = || self.records.iter().rev().find(|record| of(&record.waiters).is_some());
            let ended = || ended().map(|record| self.recalled(now, record, Some(op)));
            return live.or_else(ended).or_else(|| self.stored(now, op));
        }
        let live = self.operations.values().max_by_key(|o| o.number);
        match (live, self.records.back()) {
            (Some(live), Some(ended)) if live.admitted_at < ended.admitted_at => Some(self.recalled(now, ended, None)),
            (Some(live), _) => Some(self.so_far(now, live)),
            (None, ended) => ended.map(|r| self.recalled(now, r, None)),
        }
    }

    /// What is known of the state, without asking.
    pub fn state(&self, now: Instant) -> StateReport {
        self.state_report(now, None)
    }

    /// Whose twin it is.
    pub fn device(&self) -> &DeviceId {
        &self.device
    }

    /// The wishes that outlive their operations (semantics 6.2).
    pub fn held(&self) -> &BTreeMap<PropertyName, Held> {
        &self.held
    }

    /// The properties that the owner has yet to accept (semantics 2.7).
    pub fn unaccepted(&self) -> &BTreeSet<PropertyName> {
        &self.unaccepted
    }

    /// What a successor needs if this twin's actor crashes.
    pub fn memory(&self, now: Instant) -> Memory {
        Memory {
            connection: self.line.connection,
            session: self.line.session.clone(),
            boot: self.reported.boot().cloned(),
            description: self.description.clone(),
            last_heard: self.line.last_heard,
            in_flight: self.left(now),
            held: self.held.clone(),
            unaccepted: self.unaccepted.clone(),
            stale: self.stale.clone(),
            ended: Vec::new(),
        }
    }

    /// The state, with trust `now` for what was received at or after `fresh_since` (semantics 8.2).
    fn state_report(&self, now: Instant, fresh_since: Option<Instant>) -> StateReport {
        let described = self.description.iter().flat_map(|d| &d.properties);
        let readings =
            described.filter_map(|p| Some((p.name.clone(), self.reading(now, &p.name, fresh_since)?))).collect();
        StateReport {
            device: self.device.clone(),
            presence: self.line.presence,
            last_heard: self.line.last_heard.map(|at| now.saturating_duration_since(at)),
            readings,
            moving: self.slots.iter().filter(|(_, slot)| !slot.is_empty()).map(|(p, _)| p.clone()).collect(),
            reverted: self.reverted_properties(),
            held: self.held_wishes(now),
            amended: self.amended(now),
            asked_now: fresh_since.is_some(),
        }
    }

    fn reading(&self, now: Instant, property: &str, fresh_since: Option<Instant>) -> Option<Reading> {
        let Some(known) = self.reported.get(property) else { return self.stale_reading(now, property) };
        let fresh = fresh_since.is_some_and(|since| known.received_at >= since);
        Some(Reading {
            value: known.value.clone(),
            evidence: known.evidence,
            age: now.saturating_duration_since(known.received_at),
            trust: if fresh { Trust::Now } else { Trust::Old },
        })
    }

    /// What was reported in an earlier process, until the device reports itself.
    fn stale_reading(&self, now: Instant, property: &str) -> Option<Reading> {
        let (value, evidence, at) = self.stale.get(property).filter(|_| self.reported.boot().is_none())?;
        let age = now.saturating_duration_since(*at);
        Some(Reading { value: value.clone(), evidence: *evidence, age, trust: Trust::Old })
    }

    /// When a caller is answered at the latest: its limit less the margin for the record (semantics 4.8).
    fn expires_at(&self, answer_by: Instant) -> Instant {
        answer_by.checked_sub(self.settings.answer_margin).unwrap_or(answer_by)
    }

    fn send(&mut self, command: input::Command) {
        self.effects.push_back(Effect::Send(command));
    }

    /// Ends what is late: operations, questions, presence.
    fn expire(&mut self, now: Instant) {
        self.expire_presence(now);
        self.expire_held(now);
        self.expire_operations(now);
        self.ask_sensors(now);
        self.expire_questions(now);
    }

    /// Answers everybody who waits, for the last time: what was sent ends with `outcome` and is withdrawn, the rest is
    /// refused.
    fn end_all(&mut self, now: Instant, outcome: Outcome, refusal: &Refusal) {
        self.stopping = true;
        // That a device was removed says all; the hub goes on.
        let reason = (outcome != Outcome::Removed).then_some(Reason::HubStopping);
        let open: Vec<OpId> = self.operations.keys().cloned().collect();
        for op in open {
            match self.operations.get(&op).is_some_and(Operation::sent) {
                true => {
                    self.send(input::Command::Withdraw { op: op.clone() });
                    self.end(now, &op, outcome, reason);
                }
                false => self.refuse_waiting(now, &op, refusal),
            }
        }
        for op in std::mem::take(&mut self.questions).into_keys() {
            self.tell_state(op, Err(refusal.clone()));
        }
    }

    /// The refusal of a device that is none any more.
    fn unknown(&self) -> Refusal {
        Refusal::UnknownDevice { asked: self.device.to_string(), near: Vec::new() }
    }
}
