//! Whose operation begins next (semantics 4.4, 4.5): one in flight on a property and on those that exclude it, not before
//! the shortest time between two drives is over, callers taken in turn.

use std::time::{Duration, Instant};

use crate::{
    property::{Property, PropertyName},
    twin::{
        Twin,
        admission::find,
        input::Command,
        operation::Operation,
        relative::Base,
        wish::CallerId,
        words::{OpId, Outcome, Reason, Refusal, Stage},
    },
};

/// Callers whose last turn is remembered; one that is forgotten counts as one that had none yet. More than speak in one
/// home at a time.
const SERVED_MAX: usize = 32;

/// From this level on a device takes a newer `set` while it drives (wire protocol, *What a device does, by level*).
const PREEMPTS: u8 = 3;

/// When a property was last moved, as far as the hub can know.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Touched {
    /// The latest moment at which the last drive can have begun.
    pub(super) began_at: Option<Instant>,
    /// When the last operation that was sent ended: what was reported before says nothing of what it left.
    pub(super) ended_at: Option<Instant>,
}

impl Twin {
    /// Begins all that may begin.
    pub(super) fn begin_due(&mut self, now: Instant) {
        if self.stopping {
            return;
        }
        while let Some(op) = self.next_turn(now) {
            match self.ready(now, &op) {
                Ok(true) => {
                    self.served(&op);
                    self.dispatch(now, &op);
                }
                // It asks for the state first; or some of its callers have no time left: for the others it goes on.
                Ok(false) if self.operations.get(&op).is_some_and(|operation| operation.already) => {
                    self.end(now, &op, Outcome::Already, None);
                }
                Ok(false) => self.refuse_short(now, &op),
                Err(refusal) => self.refuse_waiting(now, &op, &refusal),
            }
        }
        let new = self.operations.values().filter(|operation| operation.stage == Stage::Admission);
        let new: Vec<OpId> = new.map(|operation| operation.op.clone()).collect();
        for op in new {
            self.enter(now, &op, Stage::Queued);
        }
    }

    /// Whether a caller may have one more waiting: bounded for each caller, so that one who asks again and again leaves
    /// room for the others, and for all together.
    pub(super) fn room_for(&self, caller: &CallerId) -> Result<(), Refusal> {
        let waiting = self.operations.values().filter(|o| !o.sent());
        let (mut all, mut own) = (0, 0);
        for operation in waiting {
            all += 1;
            own += usize::from(operation.waiters.iter().any(|waiter| waiter.caller == *caller));
        }
        match (own >= self.settings.queued_max, all >= self.settings.waiting_max) {
            (true, _) => Err(Refusal::QueueFull { limit: self.settings.queued_max }),
            (false, true) => Err(Refusal::QueueFull { limit: self.settings.waiting_max }),
            (false, false) => Ok(()),
        }
    }

    /// When something that waits may begin although nothing else happens: a property's shortest time is over.
    pub(super) fn opens_at(&self) -> Option<Instant> {
        self.line.session.as_ref()?;
        let names = self.slots.keys().filter(|name| !self.blocked(name) && !self.candidates(name).is_empty());
        names.filter_map(|name| self.gate(name)).min()
    }

    /// The operation whose turn it is: of those that may begin, the one whose caller was served the longest ago; among
    /// equals the first that came.
    fn next_turn(&self, now: Instant) -> Option<OpId> {
        self.line.session.as_ref()?;
        let free = self.slots.keys().filter(|name| !self.blocked(name) && self.gate(name).is_none_or(|at| at <= now));
        let candidates = free.flat_map(|name| self.candidates(name));
        candidates.min_by_key(|operation| (self.last_turn(operation), operation.number)).map(|o| o.op.clone())
    }

    /// Of those that wait on a property, the ones that may be next: a wish for a value before all that came after it,
    /// relative ones in any order, because each starts from what it finds.
    fn candidates(&self, name: &PropertyName) -> Vec<&Operation> {
        let slot = self.slots.get(name).into_iter().flatten();
        let waiting: Vec<&Operation> = slot.filter_map(|op| self.operations.get(op)).filter(|o| !o.sent()).collect();
        match waiting.iter().position(|operation| operation.absolute()) {
            Some(0) => waiting[..1].iter().copied().filter(|o| o.base_by.is_none()).collect(),
            // Behind relative ones a wish for a value stands only if it equals the last of them.
            Some(first) => waiting[..first].iter().copied().filter(|o| o.base_by.is_none()).collect(),
            None => waiting.into_iter().filter(|o| o.base_by.is_none()).collect(),
        }
    }

    /// Whether something in flight keeps a property's operations waiting: on itself, or on one that excludes it.
    fn blocked(&self, name: &PropertyName) -> bool {
        let groups = self.description.iter().flat_map(|d| &d.exclusive).filter(|group| group.contains(name));
        let preempts = self.description.as_ref().is_some_and(|d| d.level >= PREEMPTS);
        let own = self.in_flight_on(name).any(|operation| {
            // A device that pre-empts takes the newer wish while it executes the superseded one.
            !(preempts && operation.superseded_by.is_some() && operation.begun())
        });
        own || groups.flatten().filter(|other| *other != name).any(|other| self.in_flight_on(other).next().is_some())
    }

    fn in_flight_on(&self, name: &PropertyName) -> impl Iterator<Item = &Operation> {
        let slot = self.slots.get(name).into_iter().flatten();
        slot.filter_map(|op| self.operations.get(op)).filter(|operation| operation.sent())
    }

    /// Until when the next drive of a property must wait, if anything ever moved it.
    fn gate(&self, name: &PropertyName) -> Option<Instant> {
        let property = self.description.as_ref().and_then(|d| d.property(name))?;
        let began_at = self.touched.get(name)?.began_at?;
        Some(began_at + Duration::from_millis(property.min_interval_ms.into()).min(self.settings.driving_max))
    }

    /// When its callers had their last turn: 0 if one of them had none.
    fn last_turn(&self, operation: &Operation) -> usize {
        let turn = |caller: &CallerId| self.turns.iter().position(|served| served == caller).map_or(0, |at| at + 1);
        operation.waiters.iter().map(|waiter| turn(&waiter.caller)).min().unwrap_or(0)
    }

    /// Refuses those callers of an operation whose limit is too near for it to begin.
    fn refuse_short(&mut self, now: Instant, op: &OpId) {
        let Some(needed) = self.operations.get(op).map(|operation| operation.needed) else { return };
        let refusal = Refusal::DeadlineTooShort { needed: needed + self.settings.answer_margin };
        self.refuse_late(now, op, now + needed, &refusal);
    }

    fn served(&mut self, op: &OpId) {
        let Some(operation) = self.operations.get(op) else { return };
        let callers: Vec<CallerId> = operation.waiters.iter().map(|waiter| waiter.caller.clone()).collect();
        for caller in callers {
            self.turns.retain(|served| *served != caller);
            self.turns.push_back(caller);
        }
        while self.turns.len() > SERVED_MAX {
            self.turns.pop_front();
        }
    }

    /// Checks again what may have changed while an operation waited: the description, the time that is left, and for a
    /// relative wish the state that it starts from. `Ok(false)`: it does not begin now.
    fn ready(&mut self, now: Instant, op: &OpId) -> Result<bool, Refusal> {
        let Some(description) = self.description.clone() else { return Err(self.offline(now)) };
        let Some(mut operation) = self.operations.remove(op) else { return Ok(false) };
        if operation.is_run() {
            let begins = self.fit_run(&mut operation).map(|()| operation.has_time(now));
            self.operations.insert(op.clone(), operation);
            return begins;
        }
        let name = operation.property.clone();
        let fits = find(&description.properties, &name).and_then(|p| self.fit(&mut operation, p).map(|()| p));
        let begins = fits.and_then(|property| self.ready_with(now, &mut operation, property));
        self.operations.insert(op.clone(), operation);
        begins
    }

    fn ready_with(&mut self, now: Instant, operation: &mut Operation, property: &Property) -> Result<bool, Refusal> {
        if !operation.has_time(now) {
            return Ok(false);
        }
        match self.start_from(now, operation, property)? {
            Base::Not => self.ready_to_send(now, operation, property),
            Base::Known(base) => {
                operation.start_at(property, &base)?;
                self.fit(operation, property)?;
                self.hold(now, operation, operation.valid_for);
                self.ready_to_send(now, operation, property)
            }
            Base::Unknown => {
                operation.base_by = Some(now + self.settings.read_back);
                let question = operation.next_question();
                self.send(Command::GetState { op: question, property: Some(property.name.clone()) });
                Ok(false)
            }
        }
    }

    /// Asks for what must be known before anything moves: where a thing stands that an action sends the other way, and what
    /// an independent measurement shows. `Ok(false)`: it does not begin now.
    fn ready_to_send(&mut self, now: Instant, operation: &mut Operation, property: &Property) -> Result<bool, Refusal> {
        if operation.through() {
            let known = self.reported.get(&property.name);
            let fresh = known.filter(|known| operation.base_since.is_some_and(|since| since <= known.received_at));
            let Some(known) = fresh else {
                operation.base_since = Some(now);
                operation.base_by = Some(now + self.settings.read_back);
                let question = operation.next_question();
                self.send(Command::GetState { op: question, property: Some(property.name.clone()) });
                return Ok(false);
            };
            operation.already = operation.wish.as_ref().is_some_and(|wish| property.same(&known.value, wish));
            if operation.already {
                return Ok(false);
            }
        }
        Ok(!self.wants_baseline(now, operation))
    }

    /// A drive has begun, now at the latest.
    pub(super) fn note_drive(&mut self, now: Instant, property: &PropertyName) {
        self.touched.entry(property.clone()).or_default().began_at = Some(now);
    }

    /// An operation that was sent has ended: what it may have moved counts as moved now, if it was never seen to begin.
    pub(super) fn note_end(&mut self, now: Instant, operation: &Operation, outcome: Outcome, reason: Option<Reason>) {
        if !operation.sent() {
            return;
        }
        let still = matches!(outcome, Outcome::Rejected | Outcome::Cancelled)
            || matches!(reason, Some(Reason::Withdrawn | Reason::Expired | Reason::Busy));
        let touched = self.touched.entry(operation.property.clone()).or_default();
        touched.ended_at = Some(now);
        if !still && !operation.begun() {
            touched.began_at = Some(now);
        }
    }
}
