//! What must be kept of an input's effects, and which of them wait for that (semantics 5.8, 8.5). Pure, as the twin is: it
//! says what is to be kept; whoever drives the twin has the journal.
//!
//! After each [`Twin::apply`]: drain the effects, [`Ledger::note`] them, give [`Noted::facts`] to the journal as one commit,
//! and let those effects that [`Noted::waits`] names go out only once that commit is there. The rest goes out at once; what
//! goes to a device stays in order behind what waits. A commit that the disk refuses lets everything go, with
//! `recorded: false`; an answer goes out by its caller's limit in any case.
//!
//! A hub that starts again makes a [`Memory`] of what it finds: [`Kept::held`] and [`interrupted`].

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Instant,
};

use crate::{
    property::{Class, DeviceId, PropertyName, Value},
    twin::{
        Twin,
        held::Held,
        input::{Command, Effect, Left, Memory},
        planted::{self, Planted},
        waiter::Hears,
        wish::CallerId,
        words::{OpId, Outcome, Reason, Reply, Settled},
    },
};

/// How sure something must be kept before what waits for it goes out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Sure {
    /// Over the end of the process.
    Process,
    /// Over a power cut, too: set points and what must not be done twice.
    PowerCut,
}

/// One thing to keep.
#[derive(Clone, Debug, PartialEq)]
pub enum Fact {
    /// An operation was taken in.
    Admitted(Admitted),
    /// What is known of an operation, for one of its callers; it takes the place of what was known before.
    Known {
        /// It.
        settled: Box<Settled>,
        /// Whether it has ended: no longer an open admission.
        ended: bool,
    },
    /// Nothing came of an operation that was taken in: it was refused, or its caller left before anything was sent.
    Dropped {
        /// Its id.
        op: OpId,
    },
    /// What is held of a property; `None`: nothing any more.
    Held {
        /// The property.
        property: PropertyName,
        /// The set point.
        kept: Option<Kept>,
    },
}

/// An operation that was taken in.
#[derive(Clone, Debug, PartialEq)]
pub struct Admitted {
    /// Its id.
    pub op: OpId,
    /// Who asked.
    pub caller: CallerId,
    /// Its property or action.
    pub what: PropertyName,
    /// The value, where one was named.
    pub wish: Option<Value>,
}

/// A set point as it is kept.
#[derive(Clone, Debug, PartialEq)]
pub struct Kept {
    /// The value.
    pub value: Value,
    /// The operation that it came with.
    pub op: OpId,
    /// Until when it is valid, on the clock of the run that keeps it.
    pub valid_until: Option<Instant>,
    /// Somebody at the device has changed it, and that counts (semantics 6.2).
    pub overridden: bool,
}

impl Kept {
    /// The set point in a hub that starts again at `now`. `epoch` grows with each start: the ids of its sendings are others
    /// than those of earlier runs.
    pub fn held(self, now: Instant, epoch: u16) -> Held {
        Held {
            value: self.value,
            op: self.op,
            since: now,
            valid_until: self.valid_until,
            attempts: 0,
            sent: u32::from(epoch) << 16,
            next_at: now,
            met: self.overridden,
            stored: None,
            overridden: self.overridden,
            blocked: false,
            reason: None,
        }
    }
}

/// An operation that was found admitted and not ended: its end is not known, and nobody waits for it any more.
pub fn interrupted(device: DeviceId, admitted: Admitted) -> Left {
    let Admitted { op, caller, what, wish } = admitted;
    let settled = Settled { reason: Some(Reason::HubStopping), ..Settled::unknown(op, device, what, wish) };
    Left { caller, hears: Hears::Gone, settled }
}

/// What came of one input.
#[derive(Debug, Default, PartialEq)]
pub struct Noted {
    /// To be kept, in this order, in one commit.
    pub facts: Vec<Fact>,
    /// The places of the effects that wait for it, and for all that was given to be kept before; how sure it must be.
    pub waits: BTreeMap<usize, Sure>,
}

impl Noted {
    /// How sure the commit must be.
    pub fn sure(&self) -> Sure {
        self.waits.values().copied().max().unwrap_or(Sure::Process)
    }
}

/// What was given to be kept of one device, as far as it can change.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    /// Operations that were taken in and have not ended; bounded as the twin's are.
    open: BTreeSet<OpId>,
    /// What was given of each property that was ever held; at most those that were ever described.
    held: BTreeMap<PropertyName, Option<Kept>>,
    /// Something that was given was not kept.
    lost: bool,
}

impl Ledger {
    /// The ledger of a twin that goes on with a memory, after its actor or the hub has started again.
    pub fn after(memory: &Memory) -> Self {
        Self {
            open: memory.in_flight.iter().map(|left| left.settled.op.clone()).collect(),
            held: memory.held.iter().map(|(name, held)| (name.clone(), Some(held.kept()))).collect(),
            lost: false,
        }
    }

    /// The disk has refused something: what is held is given once more with the next input.
    pub fn not_kept(&mut self) {
        self.lost = true;
    }

    /// What came of an input. `admitting` is the call that it was, if it was one.
    pub fn note(&mut self, now: Instant, twin: &Twin, admitting: Option<Admitted>, effects: &[Effect]) -> Noted {
        let mut noted = Noted::default();
        if let Some(admitted) = admitting.filter(|admitted| twin.is_open(&admitted.op)) {
            self.open.insert(admitted.op.clone());
            noted.facts.push(Fact::Admitted(admitted));
        }
        self.note_held(twin, &mut noted);
        for (at, effect) in effects.iter().enumerate() {
            match effect {
                Effect::Send(Command::Set { op, .. } | Command::Run { op, .. }) if twin.commits_first(op) => {
                    if !planted::is(Planted::AdmissionNotAwaited) {
                        noted.waits.insert(at, Sure::PowerCut);
                    }
                }
                Effect::Reply { op, reply: Reply::Settled(settled) } => {
                    let ended = !twin.is_open(op) && settled.outcome != Outcome::Working;
                    noted.facts.push(Fact::Known { settled: settled.clone(), ended });
                    if ended {
                        self.open.remove(op);
                    }
                    let sure = if twin.holds(&settled.property) { Sure::PowerCut } else { Sure::Process };
                    if !planted::is(Planted::ReplyBeforeCommit) {
                        noted.waits.insert(at, sure);
                    }
                }
                Effect::Owed { correction, .. } => {
                    let settled = Box::new(correction.settled.clone());
                    self.open.remove(&settled.op);
                    noted.facts.push(Fact::Known { settled, ended: true });
                }
                Effect::Send(_)
                | Effect::Ask { .. }
                | Effect::Reply { .. }
                | Effect::State { .. }
                | Effect::StageLeft { .. }
                | Effect::Ended { .. }
                | Effect::LateSuccess { .. }
                | Effect::Reverted { .. }
                | Effect::LocalOverride { .. }
                | Effect::Presence(_)
                | Effect::Described(_)
                | Effect::Malformed { .. }
                | Effect::StaleHello { .. }
                | Effect::Ignored(_) => {}
            }
        }
        // What ended while nobody listened.
        let over: Vec<OpId> = self.open.iter().filter(|op| !twin.is_open(op)).cloned().collect();
        for op in over {
            self.open.remove(&op);
            noted.facts.push(match twin.check(now, Some(&op)).filter(|settled| settled.outcome != Outcome::Working) {
                Some(settled) => Fact::Known { settled: Box::new(settled), ended: true },
                None => Fact::Dropped { op },
            });
        }
        noted
    }

    fn note_held(&mut self, twin: &Twin, noted: &mut Noted) {
        if self.held.is_empty() && twin.held.is_empty() {
            return;
        }
        for name in twin.held.keys() {
            if !self.held.contains_key(name) {
                self.held.insert(name.clone(), None);
            }
        }
        let again = std::mem::take(&mut self.lost);
        for (property, given) in &mut self.held {
            let kept = twin.held.get(property).map(Held::kept);
            if again || *given != kept {
                noted.facts.push(Fact::Held { property: property.clone(), kept: kept.clone() });
                *given = kept;
            }
        }
    }
}

impl Twin {
    /// Whether an operation is in flight or waits, under the id of one of its callers.
    pub fn is_open(&self, op: &OpId) -> bool {
        self.operations.values().any(|operation| operation.waiters.iter().any(|waiter| waiter.op == *op))
    }

    /// Whether the admission of an operation is to be kept before its command goes out: what must not be done twice, and
    /// set points (semantics 8.5).
    pub fn commits_first(&self, op: &OpId) -> bool {
        self.operations.get(op).is_some_and(|o| !o.repeatable() || (!o.is_run() && self.holds(&o.property)))
    }

    /// Whether wishes for a property outlive their operation (semantics 2.6).
    pub fn holds(&self, property: &PropertyName) -> bool {
        let property = self.description.as_ref().and_then(|description| description.property(property));
        property.is_some_and(|property| property.class == Class::Held)
    }
}

impl Held {
    /// As it is kept.
    pub fn kept(&self) -> Kept {
        Kept {
            value: self.value.clone(),
            op: self.op.clone(),
            valid_until: self.valid_until,
            overridden: self.overridden,
        }
    }
}
