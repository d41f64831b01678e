//! What of a device must be kept, and what waits for that (semantics 5.8, 8.5). Pure, as the twin is: it says which facts are to
//! be kept; whoever drives the twin has the journal, and keeps them in the order in which they were told.
//!
//! A call goes by [`Ledger::first`] before the twin hears of it, each answer by [`Ledger::answer`], and after each input
//! [`Ledger::catch_up`] tells what else has come and gone. Nothing here decides about devices.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Instant,
};

use crate::{
    property::{Class, PropertyName, Value},
    twin::{
        Hears, Twin,
        admission::Lasts,
        held::{Held, Kept},
        input::Left,
        planted::{self, Planted},
        wish::CallerId,
        words::{OpId, Outcome, Settled},
    },
};

/// So many sendings of a held wish may go unwritten: the ids of its sendings skip as many when the hub begins anew.
pub const SENT_STEP: u32 = 100;

/// A call, before the twin has heard of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Asked {
    /// Its id.
    pub op: OpId,
    /// Who asks.
    pub caller: CallerId,
    /// The property or action.
    pub what: PropertyName,
    /// The value, where one was named.
    pub wish: Option<Value>,
    /// Whether it must be kept first, and how surely.
    pub first: Option<Lasts>,
}

/// One thing to keep.
#[derive(Clone, Debug, PartialEq)]
pub enum Fact {
    /// An operation was taken in, by one of its callers.
    Admitted(CallerId, Box<Settled>),
    /// What is known of an operation, by one of its callers; it takes the place of what was known before, and of its
    /// admission.
    Known(CallerId, Box<Settled>),
    /// Nothing came of an operation that was taken in.
    NotTaken(OpId),
    /// A set point.
    Held(PropertyName, Box<Held>),
    /// A set point is no more.
    Unheld(PropertyName),
}

/// What was told to be kept of one device, as far as it can change.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    /// Operations that were taken in and have not ended, by the ids of their callers' calls; bounded as the twin's are.
    open: BTreeMap<OpId, CallerId>,
    /// Those of them whose admission is still being written: the twin does not know them yet.
    pending: BTreeSet<OpId>,
    /// Set points.
    held: BTreeMap<PropertyName, Kept>,
    /// Every set point that was ever told, also those that are no more; bounded as the device's properties are.
    touched: BTreeSet<PropertyName>,
    /// What was told of them may not have been kept.
    doubted: bool,
}

impl Ledger {
    /// Goes on with what was kept before there was this twin.
    pub fn resume(&mut self, twin: &Twin, left: &[Left]) {
        self.held = twin.held().iter().map(|(property, held)| (property.clone(), held.kept())).collect();
        self.touched.extend(self.held.keys().cloned());
        self.open = left.iter().map(|left| (left.settled.op.clone(), left.caller.clone())).collect();
    }

    /// Something that was told, here or elsewhere, was not kept: a disk was full, or stalled. The set points are told anew, and
    /// that those which are no more are none: a hub that begins anew must not pursue what nobody wishes any longer (5.8, 6.2).
    /// Ends of operations are not: whoever was answered has heard that there is no record (8.5), and whoever drives the twin knows
    /// which they were.
    pub fn doubt(&mut self) {
        self.doubted = true;
    }

    /// The admission that must be kept before the twin may hear of a call, and how surely; `None`: it goes on. Asked again for
    /// the same call, it is kept.
    pub fn first(&mut self, twin: &Twin, asked: &Asked) -> Option<(Fact, Lasts)> {
        if self.pending.remove(&asked.op) || planted::is(Planted::AdmissionNotAwaited) {
            return None;
        }
        let lasts = asked.first?;
        let settled = Settled::unknown(asked.op.clone(), twin.device().clone(), asked.what.clone(), asked.wish.clone());
        self.open.insert(asked.op.clone(), asked.caller.clone());
        self.pending.insert(asked.op.clone());
        Some((Fact::Admitted(asked.caller.clone(), Box::new(settled)), lasts))
    }

    /// A caller stopped waiting, or was refused, before the twin knew of it.
    pub fn given_up(&mut self, op: &OpId) -> Option<Fact> {
        let pending = self.pending.remove(op);
        self.open.remove(op);
        pending.then(|| Fact::NotTaken(op.clone()))
    }

    /// What must be kept before a caller may hear how its operation ended, or how far it is. What is held goes with it: an
    /// answer that is recorded is one whose set point outlives a power cut.
    pub fn answer(&mut self, twin: &Twin, caller: &CallerId, settled: &Settled) -> (Vec<Fact>, Lasts) {
        let (mut facts, mut lasts) = (self.held_changes(twin), Lasts::OverCrash);
        if twin.holds(&settled.property) {
            lasts = Lasts::OverPowerCut;
            let told = facts.iter().any(|fact| matches!(fact, Fact::Held(name, _) if *name == settled.property));
            if let (false, Some(held)) = (told, twin.held().get(&settled.property)) {
                // It was told before, but nobody waited for it.
                facts.push(Fact::Held(settled.property.clone(), Box::new(held.clone())));
            }
        }
        facts.push(Fact::Known(caller.clone(), Box::new(settled.clone())));
        if !is_open(settled) {
            self.open.remove(&settled.op);
        }
        (facts, lasts)
    }

    /// What has come and gone since, with nobody waiting for it.
    pub fn catch_up(&mut self, now: Instant, twin: &Twin, in_flight: &[Left]) -> Vec<Fact> {
        let mut facts = self.held_changes(twin);
        if self.open.is_empty() && in_flight.is_empty() {
            return facts;
        }
        for left in in_flight {
            if !self.open.contains_key(&left.settled.op) && is_awaited(left) {
                facts.push(Fact::Admitted(left.caller.clone(), Box::new(left.settled.clone())));
                self.open.insert(left.settled.op.clone(), left.caller.clone());
            }
        }
        let gone = |op: &OpId| in_flight.iter().all(|left| left.settled.op != *op) && !self.pending.contains(op);
        let over: Vec<(OpId, CallerId)> =
            self.open.iter().filter(|(op, _)| gone(op)).map(|(op, caller)| (op.clone(), caller.clone())).collect();
        for (op, caller) in over {
            self.open.remove(&op);
            facts.push(match twin.check(now, Some(&op)) {
                Some(settled) => Fact::Known(caller, Box::new(settled)),
                None => Fact::NotTaken(op),
            });
        }
        facts
    }

    /// The set points that are not as they were told.
    fn held_changes(&mut self, twin: &Twin) -> Vec<Fact> {
        let doubted = std::mem::take(&mut self.doubted);
        if twin.held().is_empty() && self.held.is_empty() && (!doubted || self.touched.is_empty()) {
            return Vec::new();
        }
        let mut facts = Vec::new();
        if doubted {
            self.held.clear();
            let gone = self.touched.iter().filter(|property| !twin.held().contains_key(*property));
            facts.extend(gone.cloned().map(Fact::Unheld));
        }
        for (property, held) in twin.held() {
            let kept = held.kept();
            let known = self.held.get(property);
            // How often it was sent alone is no change worth a write: the ids of its sendings skip a hundred at a restart.
            let same = known.is_some_and(|known| {
                Kept { sent: kept.sent, ..known.clone() } == kept && kept.sent < known.sent + SENT_STEP
            });
            if !same {
                facts.push(Fact::Held(property.clone(), Box::new(held.clone())));
                self.held.insert(property.clone(), kept);
                self.touched.insert(property.clone());
            }
        }
        self.held.retain(|property, _| {
            let stays = twin.held().contains_key(property);
            if !stays {
                facts.push(Fact::Unheld(property.clone()));
            }
            stays
        });
        facts
    }
}

/// Whether what was kept last of an operation is no end: a hub that starts again finds it interrupted.
pub fn is_open(settled: &Settled) -> bool {
    settled.outcome == Outcome::Working
}

/// Whether an end is to be kept for a caller: one that waits or was told something.
fn is_awaited(left: &Left) -> bool {
    match left.hears {
        Hears::Waits => true,
        Hears::Told { outcome, .. } => outcome == Outcome::Working,
        Hears::Gone => false,
    }
}

impl Twin {
    /// Whether an operation is in flight or waits, under the id of one of its callers.
    pub fn is_open(&self, op: &OpId) -> bool {
        self.operations.values().any(|operation| operation.waiters.iter().any(|waiter| waiter.op == *op))
    }

    /// Whether wishes for a property outlive their operation (semantics 2.6).
    pub fn holds(&self, property: &PropertyName) -> bool {
        let property = self.description.as_ref().and_then(|description| description.property(property));
        property.is_some_and(|property| property.class == Class::Held)
    }
}
