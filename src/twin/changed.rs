//! Who changed what is held (semantics 6.2): the device by itself, an operation of this hub that was not known to be done, or
//! somebody, who then has the last word.

use std::time::Instant;

use crate::{
    property::{Property, Value},
    twin::{
        Twin,
        held::Held,
        input::{Cause, Effect},
        planted::{self, Planted},
        reported::{Change, Merged},
        words::{OpId, Settled},
    },
};

/// A wish of this hub that the device has carried out unnoticed.
struct Own {
    value: Value,
    op: OpId,
    since: Instant,
}

impl Twin {
    /// Values changed that no operation in flight is about.
    pub(super) fn note_drift(&mut self, now: Instant, changes: &[Change], cause: Cause, rebooted: bool) {
        let Some(description) = self.description.clone() else { return };
        for change in changes {
            let Some(property) = description.property(&change.property) else { continue };
            let busy = self.slots.contains_key(&change.property);
            let own = if cause == Cause::Local { None } else { self.done_unnoticed(property, change) };
            let Some(held) = self.held.get_mut(&change.property).filter(|_| !busy) else { continue };
            if property.same(&held.value, &change.to) || !held.stored.is_empty() || held.blocked {
                continue;
            }
            let by_itself = rebooted
                || match cause {
                    Cause::Boot | Cause::Failsafe | Cause::Command => true,
                    Cause::Local | Cause::Periodic | Cause::Query | Cause::Unknown => false,
                };
            // That it is otherwise is no news of a wish that never came true, unless the device names a person.
            let as_ever = change.first && !held.came_true && cause != Cause::Local;
            match own {
                // What was wished last and is done: its row was not written before the hub died.
                Some(own) if own.since > held.since => {
                    *held = Held { met: true, came_true: true, ..Held::new(own.value, own.op, own.since, None) };
                }
                None if !by_itself && !as_ever => {
                    held.value = change.to.clone();
                    (held.since, held.met, held.came_true, held.overridden) = (now, true, true, true);
                    (held.reason, held.before) = (None, None);
                    self.effects.push_back(Effect::LocalOverride { property: change.property.clone() });
                }
                Some(_) | None => {
                    (held.met, held.came_true) = (false, false);
                    if held.attempts == 0 {
                        held.next_at = now;
                    }
                }
            }
        }
    }

    /// A device reports on an operation, with the value that it has moved to: one that had ended is not what is held any more.
    pub(super) fn note_late_drive(&mut self, now: Instant, op: &OpId, merged: &Merged) {
        let record = self.records.iter().rev().find(|record| record.settled.op == *op);
        let Some(property) = record.map(|record| record.settled.property.clone()) else { return };
        let of = |change: &&Change| change.property == property;
        let changes: Vec<Change> = merged.changes.iter().filter(of).cloned().collect();
        self.note_drift(now, &changes, Cause::Command, false);
    }

    /// The operation whose doing a changed value is, if nobody knew yet that it was done: the device says that it has finished
    /// it last, and it is as was wished then.
    fn done_unnoticed(&self, property: &Property, change: &Change) -> Option<Own> {
        if planted::is(Planted::OwnIsLocal) {
            return None;
        }
        let last = self.reported.finished_last(&change.property)?;
        let of = |settled: &Settled| settled.op == *last && settled.property == change.property;
        let record = self.records.iter().rev().find(|record| of(&record.settled))?;
        let known = record.settled.outcome.is_success() || record.settled.late_success;
        let value = match &record.settled.wish {
            _ if known => return None,
            Some(wish) => record.still_met(property, &change.to).then(|| wish.clone())?,
            // A relative wish that a dead hub had taken in: where it led only the device knows.
            None => change.to.clone(),
        };
        Some(Own { value, op: last.clone(), since: record.admitted_at })
    }
}
