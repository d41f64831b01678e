//! What a wish means for those that were there before (semantics 4.3, 4.4): it joins one that is equal, takes the place of
//! others, or waits behind them; and what a caller that goes leaves behind (4.7).

use std::time::Instant;

use crate::{
    property::{PropertyName, Value},
    twin::{
        Twin,
        admission::find,
        input::Command,
        operation::Operation,
        planted::{self, Planted},
        waiter::{Hears, Waiter},
        words::{OpId, Outcome, Refusal, Stage},
    },
};

/// What a new wish does.
enum Relation {
    /// It waits for the same operation.
    Joins(OpId),
    /// It takes the place of all that were there before.
    Supersedes(Value),
    /// It waits behind them.
    Queues,
}

impl Twin {
    /// Finds the place of an operation that was admitted.
    ///
    /// # Errors
    /// [`Refusal::QueueFull`] if there is no room for it.
    pub(super) fn place(&mut self, now: Instant, operation: Operation) -> Result<(), Refusal> {
        self.supersede_relative(now, &operation);
        match self.relation(&operation) {
            Relation::Joins(op) => return self.join(&op, operation),
            Relation::Supersedes(value) => self.supersede(now, &operation, &value),
            Relation::Queues => {}
        }
        for waiter in &operation.waiters {
            self.room_for(&waiter.caller)?;
        }
        self.slots.entry(operation.property.clone()).or_default().push_back(operation.op.clone());
        self.operations.insert(operation.op.clone(), operation);
        Ok(())
    }

    /// Relative wishes that wait behind the last one for a value are no more when another value is named; what was before
    /// them may be equal to it.
    fn supersede_relative(&mut self, now: Instant, new: &Operation) {
        let Some(value) = new.wish.clone().filter(|_| new.absolute() && new.spec.is_some()) else { return };
        while let Some(last) = self.last_on(&new.property).filter(|last| !last.absolute() && !last.sent()) {
            let op = last.op.clone();
            self.end_superseded(now, &op, &value);
        }
    }

    fn last_on(&self, property: &PropertyName) -> Option<&Operation> {
        self.slots.get(property).and_then(|slot| slot.back()).and_then(|op| self.operations.get(op))
    }

    /// Ends an operation of which nothing was sent: another value has taken its place.
    fn end_superseded(&mut self, now: Instant, op: &OpId, value: &Value) {
        if let Some(operation) = self.operations.get_mut(op) {
            operation.superseded_by = Some(value.clone());
        }
        self.end(now, op, Outcome::Superseded, None);
    }

    /// What an operation is to the last that was admitted on its property. Until the device has described itself nobody
    /// knows what is equal.
    fn relation(&self, new: &Operation) -> Relation {
        let (Some(last), Some(value), Some(spec)) = (self.last_on(&new.property), &new.wish, &new.spec) else {
            return Relation::Queues;
        };
        if planted::is(Planted::RelativesJoin) && !new.absolute() && !last.absolute() && !last.sent() {
            return Relation::Joins(last.op.clone());
        }
        if !new.absolute() {
            return Relation::Queues;
        }
        let equal = last.wish.as_ref().is_some_and(|wish| spec.same(wish, value));
        match (equal, self.joinable(last, new)) {
            (true, true) => Relation::Joins(last.op.clone()),
            (true, false) => Relation::Queues,
            (false, _) => Relation::Supersedes(value.clone()),
        }
    }

    /// Whether an equal wish may wait for an operation: the same demands, its completion not taken in, and nothing that
    /// begins after the new caller was told that it is not known to be done (semantics 4.1).
    fn joinable(&self, last: &Operation, new: &Operation) -> bool {
        let open = last.absolute()
            && last.superseded_by.is_none()
            && !last.cancelled
            && (last.stage < Stage::WaitingReadBack || planted::is(Planted::JoinAfterCompletion))
            && last.waiters.len() + new.waiters.len() <= self.settings.joined_max;
        let in_time = last.begun() || last.act_by.is_none_or(|act_by| new.soonest().is_none_or(|by| act_by <= by));
        open && in_time && same_demands(last, new)
    }

    fn join(&mut self, op: &OpId, new: Operation) -> Result<(), Refusal> {
        if let Some(operation) = self.operations.get_mut(op) {
            let behind = new.admitted_at.saturating_duration_since(operation.admitted_at);
            operation.waiters.extend(new.waiters.into_iter().map(|waiter| Waiter { behind, ..waiter }));
            if let (Some(by), Some(other)) = (operation.online_by, new.online_by) {
                operation.online_by = Some(by.max(other));
            }
        }
        Ok(())
    }

    /// Another value was wished: whoever waited for an older one hears so at once. What was not sent is no more; what has
    /// not begun is withdrawn; what has is let run to its end, and what is completed is told by its read-back.
    fn supersede(&mut self, now: Instant, new: &Operation, value: &Value) {
        let older: Vec<OpId> = self.slots.get(&new.property).into_iter().flatten().cloned().collect();
        for op in older {
            let Some(operation) = self.operations.get(&op) else { continue };
            if operation.stage >= Stage::WaitingReadBack || operation.superseded_by.is_some() {
                continue;
            }
            if !operation.sent() {
                self.end_superseded(now, &op, value);
                continue;
            }
            let withdraw = !operation.begun() && !operation.cancelled;
            self.take_place(now, &op, value);
            if withdraw {
                self.send(Command::Withdraw { op });
            }
        }
    }

    /// The value of a wish that waits behind an operation and is another. Relative ones may stand behind that wish in turn:
    /// they move from where it leads, not from where this one would.
    pub(super) fn newer_than(&self, op: &OpId) -> Option<Value> {
        let operation = self.operations.get(op)?;
        let waiting = self.slots.get(&operation.property)?.iter().rev().filter_map(|other| self.operations.get(other));
        let newest = waiting.filter(|other| !other.sent()).find(|other| other.absolute())?;
        let same = operation.spec.as_ref().zip(operation.wish.as_ref()).zip(newest.wish.as_ref());
        newest.wish.clone().filter(|_| !same.is_some_and(|((spec, old), new)| spec.same(old, new)))
    }

    /// Another value takes the place of an operation that was sent: its callers hear so, it lives on to its end.
    pub(super) fn take_place(&mut self, now: Instant, op: &OpId, value: &Value) {
        if let Some(operation) = self.operations.get_mut(op) {
            operation.superseded_by = Some(value.clone());
        }
        self.answer_all(now, op, Outcome::Superseded);
    }

    /// Tells all who wait for an operation the same, while it lives on.
    pub(super) fn answer_all(&mut self, now: Instant, op: &OpId, outcome: Outcome) {
        let waiting: Vec<OpId> =
            self.operations.get(op).into_iter().flat_map(Operation::waiting).map(|w| w.op.clone()).collect();
        for caller in waiting {
            self.answer_one(now, op, &caller, outcome, None);
        }
    }

    /// Places anew what waited for the device's description: only now it is known what is equal. What does not fit is
    /// refused.
    pub(super) fn place_again(&mut self, now: Instant) {
        let mut waiting: Vec<Operation> = Vec::new();
        let unsent: Vec<OpId> = self.operations.values().filter(|o| !o.sent()).map(|o| o.op.clone()).collect();
        for op in unsent {
            waiting.extend(self.forget(&op));
        }
        waiting.sort_by_key(|operation| operation.number);
        let description = self.description.clone().unwrap_or_default();
        for mut operation in waiting {
            operation.base_by = None;
            let (waiters, property) = (operation.waiters.clone(), operation.property.clone());
            // Only now it is known whether it is a set point.
            let unknown = operation.spec.is_none() && !operation.is_run();
            let fits = match operation.is_run() {
                true => self.fit_run(&mut operation),
                false => find(&description.properties, &operation.property).and_then(|p| self.fit(&mut operation, p)),
            };
            let placed = fits.and_then(|()| match unknown {
                true => self.hold_and_place(now, operation),
                false => self.place(now, operation),
            });
            if let Err(refusal) = placed {
                self.held_refused(now, &property, &waiters);
                self.refuse_all(&waiters, &refusal);
            }
        }
    }

    /// A caller stopped waiting (semantics 4.7). If nobody else waits: what was not sent is forgotten; what was sent and has
    /// not begun is withdrawn and goes on unheard: whether the device has begun it is not known before it says so, only
    /// then it is `cancelled`.
    pub(super) fn cancel(&mut self, caller: &OpId) {
        if self.questions.remove(caller).is_some() {
            return;
        }
        let of_caller = |o: &&mut Operation| o.waiters.iter().any(|waiter| waiter.op == *caller && waiter.waits());
        let Some(operation) = self.operations.values_mut().find(of_caller) else { return };
        for waiter in operation.waiters.iter_mut().filter(|waiter| waiter.op == *caller) {
            waiter.hears = Hears::Gone;
        }
        let op = operation.op.clone();
        if !operation.sent() {
            self.go_on_unsent(&op);
        } else if operation.unheard() && !operation.begun() && !operation.cancelled {
            operation.cancelled = true;
            self.send(Command::Withdraw { op });
        }
    }
}

/// Whether two operations on one property ask for the same proof: a caller with a stricter demand does not pass on a weaker
/// one, nor by another description.
fn same_demands(a: &Operation, b: &Operation) -> bool {
    a.spec == b.spec && a.required == b.required
}
