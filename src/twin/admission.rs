//! Whether a wish begins, queues or is refused (semantics 2.5, 3.5, 4.1, 4.5, 4.9, 5.5).

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use crate::{
    property::{Class, Property, PropertyName, Role},
    twin::{
        Desired, Twin,
        evidence::required,
        input::Effect,
        operation::Operation,
        relative,
        waiter::Waiter,
        wish::{CallerId, Wish},
        words::{OpId, Outcome, Presence, Reason, Refusal, Reply, Stage},
    },
};

/// How sure something must be kept before it counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Lasts {
    /// Over the end of the process.
    OverCrash,
    /// Over a power cut.
    OverPowerCut,
}

impl Twin {
    /// Whether a wish may be sent only once its admission is in the journal: what must not be repeated must not be forgotten,
    /// and a set point that was answered outlives a power cut (semantics 8.5).
    pub fn is_recorded_first(&self, property: &str) -> Option<Lasts> {
        // What a device has never told may be either, and is sent as soon as it does.
        let Some(description) = &self.description else { return Some(Lasts::OverCrash) };
        let property = description.property(property)?;
        match (property.class, property.repeatable) {
            (Class::Held, _) => Some(Lasts::OverPowerCut),
            (Class::Momentary, false) => Some(Lasts::OverCrash),
            (Class::Momentary, true) => None,
        }
    }

    /// The same for an action.
    pub fn is_action_recorded_first(&self, action: &str) -> Option<Lasts> {
        let action = self.description.as_ref()?.action(action)?;
        (!action.repeatable).then_some(Lasts::OverCrash)
    }

    pub(super) fn set(&mut self, now: Instant, op: OpId, caller: CallerId, wish: Wish, answer_by: Instant) {
        let waiter = Waiter::new(op.clone(), caller, self.expires_at(answer_by));
        if let Some(reply) = self.store_offline(now, &wish, &waiter) {
            return self.effects.push_back(Effect::Reply { op, reply });
        }
        match self.admit(now, waiter, &wish) {
            Err(refusal) => self.effects.push_back(Effect::Reply { op, reply: Reply::Refused(refusal) }),
            Ok(operation) if self.is_already(now, &operation, wish.if_needed) => {
                self.hold(now, &operation, wish.valid_for);
                self.already(now, operation);
            }
            Ok(operation) => {
                if let Err(refusal) = self.hold_and_place(now, operation) {
                    self.effects.push_back(Effect::Reply { op, reply: Reply::Refused(refusal) });
                }
            }
        }
    }

    /// Places an operation whose property is known now, and keeps its wish if that is held. Refused, it leaves what was held
    /// before.
    pub(super) fn hold_and_place(&mut self, now: Instant, operation: Operation) -> Result<(), Refusal> {
        let (name, before) = (operation.property.clone(), self.held.get(&operation.property).cloned());
        self.hold(now, &operation, operation.valid_for);
        let placed = self.place(now, operation);
        if placed.is_err() {
            self.held.remove(&name);
            self.held.extend(before.map(|held| (name, held)));
        }
        placed
    }

    fn admit(&mut self, now: Instant, waiter: Waiter, wish: &Wish) -> Result<Operation, Refusal> {
        let online_by = self.may_come(now)?;
        let expires_at = waiter.expires_at;
        self.arrivals += 1;
        let mut operation = Operation::new(now, self.arrivals, waiter, wish.property.clone(), wish.target.clone());
        operation.online_by = online_by.map(|by| by.min(expires_at));
        operation.valid_for = wish.valid_for;
        operation.needed = self.settings.begin_min;
        // Until the device has described itself any name may be asked for.
        if let Some(description) = self.description.clone() {
            self.fit(&mut operation, find(&description.properties, &wish.property)?)?;
        }
        // Nothing is begun that cannot begin before its caller's limit (semantics 4.9).
        if expires_at.saturating_duration_since(now) < operation.needed {
            return Err(Refusal::DeadlineTooShort { needed: operation.needed + self.settings.answer_margin });
        }
        Ok(operation)
    }

    /// Whether anything may be begun now, or until when it may wait for the device.
    pub(super) fn may_come(&self, now: Instant) -> Result<Option<Instant>, Refusal> {
        if self.stopping {
            return Err(Refusal::ShuttingDown);
        }
        if self.line.bus_down {
            return Err(Refusal::BrokerDown);
        }
        self.online_by(now)
    }

    /// Already equal, and known freshly enough for this caller: by a value that is not older than it allows, of this
    /// session, with the evidence required, and nothing in flight that could change it (semantics 3.8).
    fn is_already(&self, now: Instant, operation: &Operation, if_needed: Option<Duration>) -> bool {
        let (Some(max_age), Some(property), Some(wish)) = (if_needed, &operation.spec, &operation.wish) else {
            return false;
        };
        let Some(known) = self.fresh(now, &operation.property, max_age) else { return false };
        self.line.presence == Presence::Online
            && !self.slots.contains_key(&operation.property)
            && known.evidence >= operation.required
            && property.same(&known.value, wish)
    }

    fn already(&mut self, now: Instant, operation: Operation) {
        let op = operation.op.clone();
        self.operations.insert(op.clone(), operation);
        self.end(now, &op, Outcome::Already, None);
    }

    /// Checks the wish against the property and takes its allowances.
    pub(super) fn fit(&self, operation: &mut Operation, property: &Property) -> Result<(), Refusal> {
        if !property.settable {
            return Err(Refusal::Forbidden { property: property.name.clone() });
        }
        if self.unaccepted.contains(&property.name) {
            return Err(Refusal::NotAccepted { property: property.name.clone() });
        }
        match operation.wish.as_ref().or(operation.target.value()) {
            Some(value) => {
                let normal = property.normalise(value);
                operation.wish =
                    Some(normal.map_err(|error| Refusal::InvalidValue { property: property.name.clone(), error })?);
            }
            None => relative::check(property, &operation.target)?,
        }
        operation.required = required(property);
        operation.allowance = self.settings.report(property);
        operation.stable = self.settings.stable(property);
        operation.spec = Some(Arc::new(property.clone()));
        // What must not be left half-way with nobody listening has to fit as a whole (semantics 4.9).
        let whole = if !property.repeatable || can_do_harm(property.role) {
            operation.allowance.saturating_sub(self.settings.report_margin) + operation.stable
        } else {
            Duration::ZERO
        };
        operation.needed = self.settings.begin_min + whole;
        Self::fit_check(operation);
        self.fit_through(operation, property)
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

    pub(super) fn dispatch(&mut self, now: Instant, op: &OpId) {
        let Some(operation) = self.operations.get_mut(op) else { return };
        if operation.unheard() {
            // Sent for a held wish alone: its time to begin counts from its turn, however long it waited for that (6.2).
            operation.waiters.iter_mut().for_each(|waiter| waiter.expires_at = now + self.settings.act_by_max);
        }
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
        let Some(act_by) = operation.act_by else { return };
        let ttl = act_by.saturating_duration_since(now);
        // A device measures lateness from the least transit of its session, so it cannot see that transit itself: it is
        // told so much less, and the withdrawal that follows at `act_by` has the time to arrive.
        let ttl = ttl - self.settings.transit.min(ttl / 4);
        let Some(command) = self.command(operation, ttl) else { return };
        self.enter(now, op, Stage::WaitingBroker);
        self.send(command);
    }

    /// The device went away: what waits for it does so for a moment (semantics 5.5).
    pub(super) fn wait_for_device(&mut self, now: Instant) {
        let until = now + self.settings.wait_online;
        for operation in self.operations.values_mut().filter(|o| !o.sent()) {
            operation.online_by.get_or_insert(until);
            // Its question went with the connection; the hello tells the state.
            operation.base_by = None;
        }
    }

    /// Ends the waiting of an operation that has not begun, if it is over at `now`; and of those of its callers whose limit
    /// has come.
    pub(super) fn expire_waiting(&mut self, now: Instant, op: &OpId) {
        let away = self.line.session.is_none();
        let Some(operation) = self.operations.get_mut(op) else { return };
        if away && operation.online_by.is_some_and(|by| by <= now) {
            let refusal = self.offline(now);
            return self.refuse_waiting(now, op, &refusal);
        }
        if operation.base_by.is_some_and(|by| by <= now) {
            let property = operation.property.clone();
            if operation.asks_verifier() {
                return self.refuse_unverified(now, op);
            }
            return self.refuse_waiting(now, op, &Refusal::StateUnknown { property });
        }
        operation.online_by = operation.online_by.filter(|by| *by > now);
        // It is the device that is away, not the limit that is short.
        let refusal = match away {
            true => self.offline(now),
            false => Refusal::DeadlineTooShort { needed: operation.allowance + self.settings.begin_min },
        };
        self.refuse_late(now, op, now + Duration::from_nanos(1), &refusal);
    }

    /// Refuses those callers of an operation that was not sent whose limit lies before `by`: it goes on for the others,
    /// under the id of the first of them, so that no id of one who was refused ever reaches the device.
    pub(super) fn refuse_late(&mut self, now: Instant, op: &OpId, by: Instant, refusal: &Refusal) {
        let Some(operation) = self.operations.get_mut(op) else { return };
        let (late, rest): (Vec<Waiter>, Vec<Waiter>) =
            std::mem::take(&mut operation.waiters).into_iter().partition(|w| w.waits() && w.expires_at < by);
        operation.waiters = rest;
        if !late.is_empty() {
            let property = operation.property.clone();
            self.refuse_all(&late, refusal);
            self.go_on_unsent(op);
            self.held_refused(now, &property, &late);
        }
    }

    /// After callers of an operation that was not sent have left it: it is forgotten, or has the id of the first who waits.
    pub(super) fn go_on_unsent(&mut self, op: &OpId) {
        let Some(operation) = self.operations.get_mut(op) else { return };
        operation.waiters.retain(Waiter::waits);
        let Some(first) = operation.waiters.first().map(|waiter| waiter.op.clone()) else {
            self.forget(op);
            return;
        };
        if first == *op {
            return;
        }
        let Some(mut operation) = self.operations.remove(op) else { return };
        operation.op = first.clone();
        if let Some(place) = self.slots.get_mut(&operation.property).and_then(|s| s.iter_mut().find(|o| *o == op)) {
            *place = first.clone();
        }
        self.operations.insert(first, operation);
    }

    /// The command never reached the device's socket: nothing was sent.
    pub(super) fn not_written(&mut self, now: Instant, op: &OpId) {
        if self.question_not_written(now, op) {
            return;
        }
        let Some(operation) = self.operations.get(op).filter(|o| o.stage == Stage::WaitingBroker) else { return };
        let reached = operation.reached;
        if operation.superseded_by.is_some() {
            return self.end(now, op, Outcome::Superseded, None);
        }
        if self.take_back(now, op) {
            return;
        }
        if reached {
            let reason = if self.line.bus_down { Reason::BrokerDown } else { Reason::ConnectionLost };
            return self.give_up(now, op, Outcome::Interrupted, reason);
        }
        let refusal = if self.line.bus_down { Refusal::BrokerDown } else { self.offline(now) };
        self.refuse_waiting(now, op, &refusal);
    }

    /// Ends an operation of which nothing reached the device, and tells those who still wait.
    pub(super) fn refuse_waiting(&mut self, now: Instant, op: &OpId, refusal: &Refusal) {
        if let Some(operation) = self.forget(op) {
            self.held_in_vain(now, &operation, refusal);
            self.held_refused(now, &operation.property, &operation.waiters);
            self.refuse_all(&operation.waiters, refusal);
        }
    }

    pub(super) fn refuse_all(&mut self, waiters: &[Waiter], refusal: &Refusal) {
        for waiter in waiters.iter().filter(|waiter| waiter.waits()) {
            self.effects.push_back(Effect::Reply { op: waiter.op.clone(), reply: Reply::Refused(refusal.clone()) });
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
            let begins = operation.sent() && !operation.begun();
            let (left, spent) = operation.enter(now, stage, &self.settings);
            let (began, property) = (begins && operation.begun(), operation.property.clone());
            self.effects.push_back(Effect::StageLeft { stage: left, spent });
            if began {
                self.note_drive(now, &property);
            }
        }
    }
}

pub(super) fn find<'a>(properties: &'a [Property], name: &PropertyName) -> Result<&'a Property, Refusal> {
    properties.iter().find(|p| p.name == *name).ok_or_else(|| Refusal::UnknownProperty {
        asked: name.to_string(),
        known: properties.iter().map(|p| p.name.clone()).collect(),
    })
}

/// Whether a half-done movement of such a thing can do harm (semantics 2.7: lock, garage, heater).
pub(super) fn can_do_harm(role: Role) -> bool {
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
