//! Held wishes (semantics 2.6, 6.2): set points that stay until they are changed, are sent again when the device comes back or
//! drifts, and give way to whoever turned the knob at the device.

mod kept;

use std::time::{Duration, Instant};

pub(super) use self::kept::is_sending_of;
pub use self::kept::{Held, Kept};
use self::kept::{pause, sending};
use crate::{
    property::{Class, Property, PropertyName, Value},
    twin::{
        Twin,
        operation::Operation,
        record::seen_by,
        waiter::{Hears, Waiter},
        wish::{CallerId, Target, Wish},
        words::{HeldWish, OpId, Outcome, Reason, Refusal, Reply, Settled},
    },
};

impl Twin {
    /// A wish for a held property of a device that is away: stored, and answered `working`, reason `offline` (5.5).
    /// `None`: it is none of that kind.
    pub(super) fn store_offline(&mut self, now: Instant, wish: &Wish, waiter: &Waiter) -> Option<Reply> {
        if self.line.session.is_some() || self.stopping || self.line.bus_down {
            return None;
        }
        let property = self.held_property(&wish.property)?;
        let value = wish.target.value()?.clone();
        let mut operation =
            Operation::new(now, self.arrivals, waiter.clone(), wish.property.clone(), Target::To(value));
        if let Err(refusal) = self.fit(&mut operation, &property) {
            return Some(Reply::Refused(refusal));
        }
        let mut waiter = waiter.clone();
        waiter.hears = Hears::Told { outcome: Outcome::Working, at: now };
        // Whoever wished the same before is told of the same operation.
        let joins = |held: &&mut Held| {
            let some = 1..self.settings.joined_max;
            some.contains(&held.stored.len()) && Some(&held.value) == operation.wish.as_ref()
        };
        if let Some(held) = self.held.get_mut(&wish.property).filter(joins) {
            waiter.behind = now.saturating_duration_since(held.since);
            held.stored.push(waiter);
        } else {
            self.hold(now, &operation, wish.valid_for);
            if let Some(held) = self.held.get_mut(&wish.property) {
                held.stored = vec![waiter];
                held.reason = Some(Reason::Offline);
            }
        }
        let mut settled = self.so_far(now, &operation);
        settled.reason = Some(Reason::Offline);
        Some(Reply::Settled(Box::new(settled)))
    }

    fn held_property(&self, name: &str) -> Option<Property> {
        let property = self.description.as_ref()?.property(name)?;
        (property.class == Class::Held).then(|| property.clone())
    }

    /// Keeps the wish of an operation that was admitted, if its property is held.
    pub(super) fn hold(&mut self, now: Instant, operation: &Operation, valid_for: Option<Duration>) {
        let held = operation.spec.as_ref().is_some_and(|spec| spec.class == Class::Held);
        let (true, Some(value)) = (held, operation.wish.clone()) else { return };
        let until = valid_for.map(|time| now + time);
        let old = self.held.remove(&operation.property);
        if let Some(old) = &old {
            self.end_stored(now, &operation.property, old, &value);
        }
        let before = old.and_then(|old| match old.op == operation.op || self.may_be_refused(&old.op) {
            // Only one is remembered: should that one be refused, it was none.
            true => old.before,
            false => Some(Box::new(Held { before: None, stored: Vec::new(), ..old })),
        });
        let held = Held { before, ..Held::new(value, operation.op.clone(), now, until) };
        self.held.insert(operation.property.clone(), held);
    }

    /// A wish that was stored gives way to a newer one: its callers, who were told that it is to come, are owed that it does not.
    fn end_stored(&mut self, now: Instant, name: &PropertyName, old: &Held, by: &Value) {
        if let Some(mut operation) = old.operation(name) {
            let op = operation.op.clone();
            operation.superseded_by = Some(by.clone());
            self.operations.insert(op.clone(), operation);
            self.end(now, &op, Outcome::Superseded, None);
        }
    }

    /// Whether the caller of a wish waits, and nothing of it has reached the device.
    fn may_be_refused(&self, op: &OpId) -> bool {
        let of = |o: &&Operation| o.waiters.iter().any(|waiter| waiter.op == *op && waiter.waits());
        self.operations.values().find(of).is_some_and(|operation| !operation.reached)
    }

    /// An operation ended: the held wish that it was for is true now, or is tried again after a pause.
    pub(super) fn held_ended(&mut self, now: Instant, operation: &Operation, outcome: Outcome, reason: Option<Reason>) {
        let Some(held) = self.held.get_mut(&operation.property) else { return };
        if operation.wish.as_ref() != Some(&held.value) {
            // What another wish was carried out for may not be so any more.
            if operation.sent() && !self.slots.contains_key(&operation.property) {
                self.compare_held(now, &operation.property);
            }
            return;
        }
        held.stored.clear();
        held.met = outcome.is_success();
        held.came_true |= held.met;
        held.reason = reason.filter(|_| !held.met);
        held.attempts = if held.met { 0 } else { held.attempts.saturating_add(1) };
        held.next_at = now + pause(&held.op, held.attempts);
    }

    /// Whether a value is what the hub still tries to bring a held property to.
    pub(super) fn pursues(&self, property: &PropertyName, wish: Option<&Value>) -> bool {
        self.held.get(property).is_some_and(|held| held.wants() && Some(&held.value) == wish)
    }

    /// A held wish has come true: whoever was told that it had not, and that it is tried again, is owed that (semantics 6.3).
    /// From the latest back, as long as it is the same wish.
    pub(super) fn note_kept(&mut self, now: Instant, settled: &Settled) {
        let (device, watch) = (&self.device, self.settings.watch);
        let of_property = self.records.iter_mut().rev().filter(|r| r.settled.property == settled.property);
        for record in of_property.take_while(|r| r.settled.kept && r.settled.wish == settled.wish) {
            let told = record.waiters.iter().any(|waiter| waiter.told().is_some());
            if !told || record.settled.late_success || now.saturating_duration_since(record.ended_at) > watch {
                continue;
            }
            record.settled.late_success = true;
            record.settled.kept = false;
            record.settled.confirmed_by = settled.confirmed_by;
            record.settled.attribution = settled.attribution;
            record.settled.found.clone_from(&settled.found);
            record.ended_at = now;
            self.effects.extend(record.news(device));
        }
    }

    /// Callers were refused: nothing moves for them, not later either. What others wish is held then, or what was held before.
    pub(super) fn held_refused(&mut self, now: Instant, name: &PropertyName, refused: &[Waiter]) {
        let Some(held) = self.held.get_mut(name) else { return };
        if !refused.iter().any(|waiter| waiter.op == held.op && waiter.waits()) {
            return;
        }
        let before = held.before.take();
        self.held.remove(name);
        let slot = self.slots.get(name).into_iter().flatten().rev();
        // One that nobody waits for is for what was held before.
        let somebodys = |o: &&Operation| o.superseded_by.is_none() && o.waiters.iter().any(|w| w.hears != Hears::Gone);
        let mut others = slot.filter_map(|op| self.operations.get(op)).filter(somebodys);
        let wished = |other: &Operation| {
            let until = other.valid_for.map(|time| other.admitted_at + time);
            Some(Held::new(other.wish.clone()?, other.op.clone(), other.admitted_at, until))
        };
        if let Some(held) = others.find_map(wished) {
            self.held.insert(name.clone(), Held { before, ..held });
        } else if let Some(before) = before {
            self.held.insert(name.clone(), *before);
            self.compare_held(now, name);
        }
    }

    /// A sending that nobody waits for came to nothing before it reached the device: it is tried again after a pause.
    pub(super) fn held_in_vain(&mut self, now: Instant, operation: &Operation, refusal: &Refusal) {
        let Some(held) = self.held.get_mut(&operation.property) else { return };
        if operation.unheard() && operation.wish.as_ref() == Some(&held.value) {
            held.attempts = held.attempts.saturating_add(1);
            held.next_at = now + pause(&held.op, held.attempts);
            held.reason = reason_of(refusal).or(held.reason);
        }
    }

    /// A held wish that is not as the device told last is sent.
    fn compare_held(&mut self, now: Instant, name: &PropertyName) {
        let property = self.description.as_ref().and_then(|description| description.property(name));
        let (Some(property), Some(held)) = (property, self.held.get_mut(name)) else { return };
        let is = self.reported.get(name).is_some_and(|known| property.same(&known.value, &held.value));
        if !is {
            (held.met, held.next_at) = (false, now);
        }
    }

    /// Places the held wishes that are due. Whether there were any.
    pub(super) fn pursue(&mut self, now: Instant) -> bool {
        if self.line.session.is_none() || self.stopping || self.line.bus_down {
            return false;
        }
        let due = |(name, held): &(&PropertyName, &Held)| held.due(now) && !self.slots.contains_key(*name);
        let names: Vec<PropertyName> = self.held.iter().filter(due).map(|(name, _)| name.clone()).collect();
        let any = !names.is_empty();
        for name in names {
            let Some(property) = self.held_property(&name) else { continue };
            let by = now + self.settings.act_by_max;
            let Some(held) = self.held.get_mut(&name) else { continue };
            held.sent += 1;
            // Should it come to nothing at once, it is not tried again at once.
            held.next_at = now + pause(&held.op, held.attempts.saturating_add(1));
            let again = || {
                let target = Target::To(held.value.clone());
                Operation::new(now, 0, nobody(&held.op, held.sent, by), name.clone(), target)
            };
            let mut operation = held.operation(&name).unwrap_or_else(again);
            held.stored.clear();
            self.arrivals += 1;
            operation.number = self.arrivals;
            operation.stage_ends_at = by;
            operation.waiters.iter_mut().for_each(|waiter| waiter.expires_at = by);
            let placed = self.fit(&mut operation, &property).and_then(|()| self.place(now, operation));
            if let (Err(refusal), Some(held)) = (placed, self.held.get_mut(&name)) {
                held.attempts = held.attempts.saturating_add(1);
                held.reason = reason_of(&refusal).or(held.reason);
            }
        }
        any
    }

    /// After a hello: what is not as it is held is sent again, whatever the device did meanwhile.
    pub(super) fn hold_on_hello(&mut self, now: Instant) {
        for name in self.held.keys().cloned().collect::<Vec<_>>() {
            self.compare_held(now, &name);
        }
    }

    /// A description is in force: what does not fit it any more is blocked, what fits again is not (semantics 2.7).
    pub(super) fn block_held(&mut self) {
        let Some(description) = self.description.clone() else { return };
        for (name, held) in &mut self.held {
            let property = description.property(name).filter(|p| p.settable && p.class == Class::Held);
            held.blocked = property.is_none_or(|p| p.normalise(&held.value).as_ref() != Ok(&held.value));
        }
    }

    /// Ends the held wishes whose time is over.
    pub(super) fn expire_held(&mut self, now: Instant) {
        self.held.retain(|_, held| held.valid_until.is_none_or(|until| until > now));
    }

    /// When a held wish is due or over.
    pub(super) fn held_deadline(&self) -> Option<Instant> {
        let awake = self.line.session.is_some() && !self.stopping && !self.line.bus_down;
        let due = |(name, held): (&PropertyName, &Held)| {
            let next = (awake && held.wants() && !self.slots.contains_key(name)).then_some(held.next_at);
            [next, held.valid_until].into_iter().flatten().min()
        };
        self.held.iter().filter_map(due).min()
    }

    /// The held wishes, for whoever looks at the state.
    pub(super) fn held_wishes(&self, now: Instant) -> Vec<HeldWish> {
        let shown = |(name, held): (&PropertyName, &Held)| HeldWish {
            property: name.clone(),
            value: held.value.clone(),
            state: held.state(self.line.session.is_some()),
            reason: held.reason,
            valid_for: held.valid_until.map(|until| until.saturating_duration_since(now)),
        };
        self.held.iter().map(shown).collect()
    }

    /// The stored wish of that operation, as its caller was told.
    pub(super) fn stored(&self, now: Instant, op: &OpId) -> Option<Settled> {
        let waits = |(name, held): (&PropertyName, &Held)| {
            let waiter = held.stored.iter().find(|waiter| waiter.op == *op)?.clone();
            Some((held.operation(name)?, waiter))
        };
        let (operation, waiter) = self.held.iter().find_map(waits)?;
        let mut settled = seen_by(self.so_far(now, &operation), &waiter);
        settled.reason = Some(Reason::Offline);
        Some(settled)
    }
}

/// Why a sending came to nothing before it reached the device, in the words of operations.
fn reason_of(refusal: &Refusal) -> Option<Reason> {
    if matches!(refusal, Refusal::BrokerDown) {
        return Some(Reason::BrokerDown);
    }
    matches!(refusal, Refusal::Offline { .. } | Refusal::HubJustStarted).then_some(Reason::ConnectionLost)
}

/// The caller of an operation that nobody asked for just now.
fn nobody(op: &OpId, sent: u32, by: Instant) -> Waiter {
    let mut waiter = Waiter::new(OpId::new(&format!("{:012x}", sending(op, sent))), CallerId::new("held"), by);
    waiter.hears = Hears::Gone;
    waiter
}
