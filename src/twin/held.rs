//! Held wishes (semantics 2.6, 6.2): set points that stay until they are changed, are sent again when the device comes back or
//! drifts, and give way to whoever turned the knob at the device.

use std::time::{Duration, Instant};

use crate::{
    property::{Class, Property, PropertyName, Value},
    twin::{
        Twin,
        input::{Cause, Effect},
        ledger::SENT_STEP,
        operation::Operation,
        reported::Change,
        waiter::{Hears, Waiter},
        wish::{CallerId, Target, Wish},
        words::{HeldState, HeldWish, OpId, Outcome, Reason, Reply, Settled},
    },
};

/// The first pause before a held wish is sent again, and the longest (semantics 6.2): a heater that is off the air for a
/// moment is set at once, one that never obeys is not worn out.
const PAUSE_MIN: Duration = Duration::from_secs(1);
const PAUSE_MAX: Duration = Duration::from_secs(300);

/// Sendings of one held wish in one run of the hub: three days of the longest pause. More of them, and a start soon after that
/// is told by what was written ([`SENT_STEP`]).
const SENDINGS_OF_A_RUN: u32 = 1_024;

/// A wish that outlives its operation; opaque but to the twin and to recordings of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Held {
    pub(crate) value: Value,
    /// The operation that it came with.
    pub(crate) op: OpId,
    pub(crate) since: Instant,
    pub(crate) valid_until: Option<Instant>,
    /// How often it was sent in vain since it was last true.
    pub(crate) attempts: u32,
    /// How often it was sent at all: part of the ids of its operations.
    pub(crate) sent: u32,
    /// When it may be sent again.
    pub(crate) next_at: Instant,
    /// It is so, as far as is known; or the device has its own way.
    pub(crate) met: bool,
    /// It was wished while the device was away: its first operation is still to come, and its caller was told so.
    pub(crate) stored: Option<(Waiter, Instant)>,
    /// Somebody at the device has changed it, and that counts.
    pub(crate) overridden: bool,
    /// It does not fit the description any more: kept, shown, never sent (semantics 2.7).
    pub(crate) blocked: bool,
    /// Why it is not so, where its last operation said that.
    pub(crate) reason: Option<Reason>,
}

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
        self.hold(now, &operation, wish.valid_for);
        if let Some(held) = self.held.get_mut(&wish.property) {
            held.stored = Some((waiter, now));
            held.reason = Some(Reason::Offline);
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
        let held = Held {
            value,
            op: operation.op.clone(),
            since: now,
            valid_until: valid_for.map(|time| now + time),
            attempts: 0,
            sent: 0,
            next_at: now,
            met: false,
            stored: None,
            overridden: false,
            blocked: false,
            reason: None,
        };
        self.held.insert(operation.property.clone(), held);
    }

    /// An operation ended: the held wish that it was for is true now, or is tried again after a pause.
    pub(super) fn held_ended(&mut self, now: Instant, operation: &Operation, outcome: Outcome, reason: Option<Reason>) {
        let Some(held) = self.held.get_mut(&operation.property) else { return };
        if operation.wish.as_ref() != Some(&held.value) || held.overridden {
            return;
        }
        held.stored = None;
        held.met = outcome.is_success();
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

    /// The caller of a wish was refused: nothing moves for it, not later either.
    pub(super) fn drop_held(&mut self, operation: &Operation) {
        let named = |held: &Held| operation.waiters.iter().any(|waiter| waiter.op == held.op && waiter.waits());
        if self.held.get(&operation.property).is_some_and(named) {
            self.held.remove(&operation.property);
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
            let (waiter, admitted_at) = match held.stored.take() {
                Some((waiter, since)) => (Waiter { expires_at: by, ..waiter }, since),
                None => (nobody(&held.op, held.sent, by), now),
            };
            let target = Target::To(held.value.clone());
            self.arrivals += 1;
            let mut operation = Operation::new(admitted_at, self.arrivals, waiter, name.clone(), target);
            let placed = self.fit(&mut operation, &property).and_then(|()| self.place(now, operation));
            if placed.is_err()
                && let Some(held) = self.held.get_mut(&name)
            {
                held.attempts = held.attempts.saturating_add(1);
            }
        }
        any
    }

    /// Values changed that no operation was about: whoever changed them has the last word, unless the device did it by
    /// itself in starting or for want of the hub (semantics 6.2).
    pub(super) fn note_drift(&mut self, now: Instant, changes: &[Change], cause: Cause, rebooted: bool) {
        let Some(description) = self.description.clone() else { return };
        for change in changes {
            let busy = self.slots.contains_key(&change.property);
            let (Some(held), Some(property)) =
                (self.held.get_mut(&change.property).filter(|_| !busy), description.property(&change.property))
            else {
                continue;
            };
            if property.same(&held.value, &change.to) || held.stored.is_some() || held.blocked {
                continue;
            }
            let by_itself = rebooted
                || match cause {
                    Cause::Boot | Cause::Failsafe | Cause::Command => true,
                    Cause::Local | Cause::Periodic | Cause::Query | Cause::Unknown => false,
                };
            held.met = !by_itself;
            if !by_itself {
                held.value = change.to.clone();
                held.overridden = true;
                held.reason = None;
                let property = change.property.clone();
                self.effects.push_back(Effect::LocalOverride { property });
            } else if held.attempts == 0 {
                held.next_at = now;
            }
        }
    }

    /// After a hello: what is not as it is held is sent again, whatever the device did meanwhile.
    pub(super) fn hold_on_hello(&mut self, now: Instant) {
        let Some(description) = self.description.clone() else { return };
        for (name, held) in &mut self.held {
            let Some(property) = description.property(name) else { continue };
            let is = self.reported.get(name).is_some_and(|known| property.same(&known.value, &held.value));
            if !is {
                (held.met, held.next_at) = (false, now);
            }
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
        let of = |held: &&Held| held.stored.as_ref().is_some_and(|(waiter, _)| waiter.op == *op);
        let (name, held) = self.held.iter().find(|(_, held)| of(held))?;
        let (waiter, since) = held.stored.clone()?;
        let operation = Operation::new(since, 0, waiter, name.clone(), Target::To(held.value.clone()));
        let mut settled = self.so_far(now, &operation);
        settled.reason = Some(Reason::Offline);
        Some(settled)
    }
}

/// What of a held wish outlives the hub: what is wished, not how it stands.
#[derive(Clone, Debug, PartialEq)]
pub struct Kept {
    /// What it shall be.
    pub value: Value,
    /// The operation that it came with.
    pub op: OpId,
    /// Since when it is wished.
    pub since: Instant,
    /// Until when, if not for ever.
    pub valid_until: Option<Instant>,
    /// How often it was sent: part of the ids of its operations, so that none comes twice.
    pub sent: u32,
    /// Somebody at the device has changed it, and that counts.
    pub overridden: bool,
    /// It does not fit the description.
    pub blocked: bool,
}

impl Held {
    /// What of it outlives the hub.
    pub fn kept(&self) -> Kept {
        let Self { value, op, since, valid_until, sent, overridden, blocked, .. } = self.clone();
        Kept { value, op, since, valid_until, sent, overridden, blocked }
    }

    /// Goes on after the hub began anew: it is wanted until the device says that it is so (semantics 5.8). The ids of its
    /// sendings are derived from their number, so that begins beyond all that can have been sent before: `epoch` grows with
    /// each start of the hub, also where what was written last is lost.
    pub fn resumed(kept: Kept, now: Instant, epoch: u32) -> Self {
        let Kept { value, op, since, valid_until, sent, overridden, blocked } = kept;
        let sent = sent.saturating_add(SENT_STEP).max(epoch.saturating_mul(SENDINGS_OF_A_RUN));
        Self {
            value,
            op,
            since,
            valid_until,
            attempts: 0,
            sent,
            next_at: now,
            met: overridden,
            stored: None,
            overridden,
            blocked,
            reason: None,
        }
    }

    fn wants(&self) -> bool {
        !self.met && !self.blocked
    }

    fn due(&self, now: Instant) -> bool {
        self.wants() && self.next_at <= now
    }

    fn state(&self, online: bool) -> HeldState {
        match (self.blocked, self.overridden, self.met, online) {
            (true, ..) => HeldState::Blocked,
            (_, true, true, _) => HeldState::LocalOverride,
            (_, _, true, _) => HeldState::Met,
            (_, _, _, false) => HeldState::Offline,
            (_, _, _, true) => HeldState::Pursued,
        }
    }
}

/// The caller of an operation that nobody asked for just now.
fn nobody(op: &OpId, sent: u32, by: Instant) -> Waiter {
    let hash = mixed(op, sent) & 0xFFFF_FFFF_FFFF;
    let mut waiter = Waiter::new(OpId::new(&format!("{hash:012x}")), CallerId::new("held"), by);
    waiter.hears = Hears::Gone;
    waiter
}

/// How long to wait after so many attempts in vain: doubling, and a quarter more or less by the operation's id, so that a
/// house full of heaters does not ask all at once.
fn pause(op: &OpId, attempts: u32) -> Duration {
    let doubled = PAUSE_MIN.saturating_mul(1 << attempts.saturating_sub(1).min(16)).min(PAUSE_MAX);
    let permille = u32::try_from(mixed(op, attempts) % 501).unwrap_or(250) + 750;
    (doubled * permille / 1_000).min(PAUSE_MAX)
}

/// FNV-1a of an id and a number: as good as chance here, and the same in each run.
fn mixed(op: &OpId, number: u32) -> u64 {
    let bytes = op.as_str().bytes().chain(number.to_le_bytes());
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}
