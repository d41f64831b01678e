//! Whether a wish begins, queues or is refused (semantics 2.5, 3.5, 4.1, 4.5, 4.9, 5.5).

use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

use crate::{
    property::{Property, PropertyName, Role},
    twin::{
        Desired, Twin,
        evidence::required,
        input::{Command, Effect},
        operation::Operation,
        wish::{ActionName, Wish},
        words::{OpId, Outcome, Presence, Reason, Refusal, Reply, Stage},
    },
};

impl Twin {
    pub(super) fn set(&mut self, now: Instant, op: OpId, wish: Wish, answer_by: Instant) {
        match self.admit(now, &op, wish, answer_by) {
            Err(refusal) => self.effects.push_back(Effect::Reply { op, reply: Reply::Refused(refusal) }),
            Ok(operation) => {
                let property = operation.property.clone();
                self.operations.insert(op.clone(), operation);
                self.slots.entry(property.clone()).or_default().push_back(op.clone());
                if !self.begin_next(now, &property) {
                    self.enter(now, &op, Stage::Queued);
                }
            }
        }
    }

    /// Actions are not carried out yet: none is known of any device.
    pub(super) fn run(&mut self, op: OpId, action: &ActionName) {
        let refusal = Refusal::UnknownProperty { asked: action.to_string(), known: Vec::new() };
        self.effects.push_back(Effect::Reply { op, reply: Reply::Refused(refusal) });
    }

    fn admit(&mut self, now: Instant, op: &OpId, wish: Wish, answer_by: Instant) -> Result<Operation, Refusal> {
        if self.stopping {
            return Err(Refusal::ShuttingDown);
        }
        if self.line.bus_down {
            return Err(Refusal::BrokerDown);
        }
        let online_by = self.online_by(now)?;
        let expires_at = self.expires_at(answer_by);
        let name = wish.property;
        let mut operation = Operation::new(now, op.clone(), name.clone(), wish.target, expires_at);
        operation.online_by = online_by.map(|by| by.min(expires_at));
        // Until the device has described itself any name may be asked for: then all wait in one queue.
        let waiting = match self.description.clone() {
            Some(description) => {
                let property = find(&description.properties, &name)?;
                self.fit(now, &mut operation, property)?;
                self.slots.get(&name).map_or(0, VecDeque::len)
            }
            None => {
                self.in_time(now, expires_at, Duration::ZERO)?;
                self.operations.len()
            }
        };
        if waiting > self.settings.queued_max {
            return Err(Refusal::QueueFull { limit: self.settings.queued_max });
        }
        Ok(operation)
    }

    /// Checks the wish against the property and takes its allowances.
    fn fit(&self, now: Instant, operation: &mut Operation, property: &Property) -> Result<(), Refusal> {
        if !property.settable {
            return Err(Refusal::Forbidden { property: property.name.clone() });
        }
        let Some(value) = operation.wish.as_ref().or(operation.target.value()) else {
            return Err(Refusal::Forbidden { property: property.name.clone() });
        };
        let normal = property.normalise(value);
        operation.wish =
            Some(normal.map_err(|error| Refusal::InvalidValue { property: property.name.clone(), error })?);
        operation.required = required(property);
        operation.allowance = self.settings.report(property);
        operation.stable = self.settings.stable(property);
        operation.spec = Some(property.clone());
        // What must not be left half-way with nobody listening has to fit as a whole (semantics 4.9).
        let whole = if !property.repeatable || can_do_harm(property.role) {
            operation.allowance.saturating_sub(self.settings.report_margin) + operation.stable
        } else {
            Duration::ZERO
        };
        self.in_time(now, operation.expires_at, whole)
    }

    /// Refuses what cannot begin before its caller's limit and then last `more`: nothing is sent for it (semantics 4.9).
    fn in_time(&self, now: Instant, expires_at: Instant, more: Duration) -> Result<(), Refusal> {
        let needed = self.settings.begin_min + more;
        if expires_at.saturating_duration_since(now) < needed {
            return Err(Refusal::DeadlineTooShort { needed: needed + self.settings.answer_margin });
        }
        Ok(())
    }

    /// `Ok(None)`: the device is there. `Ok(Some(until))`: it was a moment ago, wait so long (semantics 5.5).
    fn online_by(&self, now: Instant) -> Result<Option<Instant>, Refusal> {
        match self.line.presence {
            Presence::Online | Presence::Suspected => Ok(None),
            Presence::Offline => {
                let recently = self
                    .line
                    .last_heard
                    .is_some_and(|at| now.saturating_duration_since(at) < self.settings.recently_seen);
                if recently || self.just_started(now) {
                    Ok(Some(now + self.settings.wait_online))
                } else {
                    Err(self.offline(now))
                }
            }
        }
    }

    /// The refusal for a device that is not there.
    pub(super) fn offline(&self, now: Instant) -> Refusal {
        match self.line.last_heard {
            None if self.just_started(now) => Refusal::HubJustStarted,
            heard => Refusal::Offline { last_heard: heard.map(|at| now.saturating_duration_since(at)) },
        }
    }

    fn just_started(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.settings.started) < self.settings.just_started
    }

    /// Begins the next operation of a property if none is in flight on it and the device is there. Whether it did.
    pub(super) fn begin_next(&mut self, now: Instant, name: &PropertyName) -> bool {
        if self.line.session.is_none() {
            return false;
        }
        while let Some(op) = self.slots.get(name).and_then(|slot| slot.front()).cloned() {
            if self.operations.get(&op).is_none_or(Operation::sent) {
                return false;
            }
            match self.ready(now, &op) {
                Ok(()) => {
                    self.dispatch(now, &op);
                    return true;
                }
                Err(refusal) => self.refuse_waiting(&op, refusal),
            }
        }
        false
    }

    /// Checks again what may have changed while an operation waited: the description, and the time that is left.
    fn ready(&mut self, now: Instant, op: &OpId) -> Result<(), Refusal> {
        let Some(description) = self.description.clone() else { return Err(self.offline(now)) };
        let Some(mut operation) = self.operations.remove(op) else { return Ok(()) };
        let fits = find(&description.properties, &operation.property)
            .and_then(|property| self.fit(now, &mut operation, property));
        self.operations.insert(op.clone(), operation);
        fits
    }

    fn dispatch(&mut self, now: Instant, op: &OpId) {
        let Some(operation) = self.operations.get_mut(op) else { return };
        operation.act_by = Some(operation.begins_by(now, &self.settings));
        operation.online_by = None;
        if let Some(value) = operation.wish.clone() {
            let property = operation.property.clone();
            self.desired.insert(property, Desired { value, op: op.clone(), since: now });
        }
        self.set_predicate(op);
        self.send_command(now, op);
    }

    /// Sends an operation's command, for the first time or again, with the time that is left to begin.
    pub(super) fn send_command(&mut self, now: Instant, op: &OpId) {
        let Some(operation) = self.operations.get(op) else { return };
        let (Some(act_by), Some(value)) = (operation.act_by, operation.wish.clone()) else { return };
        let property = operation.property.clone();
        let ttl = act_by.saturating_duration_since(now);
        // A device measures lateness from the least transit of its session, so it cannot see that transit itself: it is
        // told so much less, and the withdrawal that follows at `act_by` has the time to arrive.
        let ttl = ttl - self.settings.transit.min(ttl / 4);
        self.enter(now, op, Stage::WaitingBroker);
        self.send(Command::Set { op: op.clone(), property, value, ttl });
    }

    /// The device is there: everything that waited for it begins.
    pub(super) fn start_waiting(&mut self, now: Instant) {
        let names: Vec<PropertyName> = self.slots.keys().cloned().collect();
        for name in names {
            self.begin_next(now, &name);
        }
    }

    /// The device went away: what waits for it does so for a moment (semantics 5.5).
    pub(super) fn wait_for_device(&mut self, now: Instant) {
        let until = now + self.settings.wait_online;
        for operation in self.operations.values_mut().filter(|o| !o.sent()) {
            operation.online_by.get_or_insert(until.min(operation.expires_at));
        }
    }

    /// Ends the waiting of an operation that has not begun, if it is over at `now`.
    pub(super) fn expire_waiting(&mut self, now: Instant, op: &OpId) {
        let away = self.line.session.is_none();
        let Some(operation) = self.operations.get_mut(op) else { return };
        if away && operation.online_by.is_some_and(|by| by <= now) {
            let refusal = self.offline(now);
            self.refuse_waiting(op, refusal);
        } else if operation.expires_at <= now {
            let needed = operation.allowance + self.settings.begin_min;
            self.refuse_waiting(op, Refusal::DeadlineTooShort { needed });
        } else {
            operation.online_by = operation.online_by.filter(|by| *by > now);
        }
    }

    /// The command never reached the device's socket: nothing was sent.
    pub(super) fn not_written(&mut self, now: Instant, op: &OpId) {
        let Some(operation) = self.operations.get(op).filter(|o| o.stage == Stage::WaitingBroker) else { return };
        let property = operation.property.clone();
        let reached = operation.reached;
        if self.take_back(now, op) {
            return;
        }
        if reached {
            let reason = if self.line.bus_down { Reason::BrokerDown } else { Reason::ConnectionLost };
            return self.give_up(now, op, Outcome::Interrupted, reason);
        }
        let refusal = if self.line.bus_down { Refusal::BrokerDown } else { self.offline(now) };
        self.refuse_waiting(op, refusal);
        self.begin_next(now, &property);
    }

    /// Ends an operation of which nothing reached the device, and tells its caller if it still waits.
    pub(super) fn refuse_waiting(&mut self, op: &OpId, refusal: Refusal) {
        if self.forget(op).is_some_and(|operation| !operation.answered) {
            self.effects.push_back(Effect::Reply { op: op.clone(), reply: Reply::Refused(refusal) });
        }
    }

    /// Takes an operation and its wish out.
    pub(super) fn forget(&mut self, op: &OpId) -> Option<Operation> {
        let operation = self.operations.remove(op)?;
        // A momentary wish lives only while its operation runs (semantics 6.1).
        self.desired.retain(|_, desired| desired.op != *op);
        self.leave_slot(&operation.property, op);
        Some(operation)
    }

    fn leave_slot(&mut self, property: &PropertyName, op: &OpId) {
        if let Some(slot) = self.slots.get_mut(property) {
            slot.retain(|other| other != op);
            if slot.is_empty() {
                self.slots.remove(property);
            }
        }
    }

    /// Moves an operation on to another stage.
    pub(super) fn enter(&mut self, now: Instant, op: &OpId, stage: Stage) {
        if let Some(operation) = self.operations.get_mut(op) {
            let (left, spent) = operation.enter(now, stage, &self.settings);
            self.effects.push_back(Effect::StageLeft { stage: left, spent });
        }
    }
}

fn find<'a>(properties: &'a [Property], name: &PropertyName) -> Result<&'a Property, Refusal> {
    properties.iter().find(|p| p.name == *name).ok_or_else(|| Refusal::UnknownProperty {
        asked: name.to_string(),
        known: properties.iter().map(|p| p.name.clone()).collect(),
    })
}

/// Whether a half-done movement of such a thing can do harm (semantics 2.7: lock, garage, heater).
fn can_do_harm(role: Role) -> bool {
    match role {
        Role::Lock | Role::Door | Role::Heater => true,
        Role::Light
        | Role::Socket
        | Role::Blind
        | Role::Valve
        | Role::Fan
        | Role::Pump
        | Role::Sensor
        | Role::Other => false,
    }
}
