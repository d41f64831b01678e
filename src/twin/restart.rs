//! What becomes of operations in flight when the device goes away and comes back: in the same run (semantics 5.3) or in a
//! new one (5.4), or with another description (2.7).

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use crate::property::{Description, Property};
use crate::twin::{
    Twin,
    admission::can_do_harm,
    operation::Operation,
    settings::Settings,
    words::{OpId, Outcome, Reason, Stage},
};

/// So many reboots in one operation are a crash: the first may be chance, the second happened on the repeated command,
/// and a third drive into a failing supply helps nobody (semantics 5.4).
const REBOOTS_MAX: u8 = 2;

impl Twin {
    /// What a hello means for what was in flight.
    pub(super) fn after_hello(&mut self, now: Instant, rebooted: bool) {
        let sent: Vec<OpId> = self.operations.values().filter(|o| o.sent()).map(|o| o.op.clone()).collect();
        for op in sent {
            if self.operations.get(&op).is_some_and(|o| self.attributed(o)) {
                // Who has finished it has its command, should the notice of its writing be late.
                self.written(now, &op);
                self.judge(now, &op);
            }
            let Some(operation) = self.operations.get_mut(&op) else { continue };
            if rebooted {
                // Two boards with one name make some three reboots a second.
                operation.reboots = operation.reboots.saturating_add(1);
            }
            let finished = self.operations.get(&op).is_some_and(|o| self.attributed(o));
            if finished {
                self.advance(now, &op, Stage::WaitingReadBack);
                self.await_outbox(now, &op);
            } else if rebooted {
                self.after_reboot(now, &op);
            } else {
                self.in_new_session(now, &op);
            }
        }
    }

    /// The same run goes on: what was not acknowledged is sent again, for the device discards what it has not begun; what
    /// was is asked for once the device's outbox is empty (semantics 5.3).
    fn in_new_session(&mut self, now: Instant, op: &OpId) {
        if self.operations.get(op).is_some_and(|o| o.stage <= Stage::WaitingDeviceAck && o.may_repeat()) {
            self.send_again(now, op);
        } else {
            self.await_outbox(now, op);
        }
    }

    /// The device remembers nothing of it: only repeating shows how it ends, where that does no harm (semantics 5.4).
    fn after_reboot(&mut self, now: Instant, op: &OpId) {
        if let Some(value) = self.newer_than(op) {
            // It is not repeated for a wish that waits behind it.
            self.take_place(now, op, &value);
        }
        let Some(operation) = self.operations.get(op) else { return };
        if operation.reboots >= REBOOTS_MAX {
            self.give_up(now, op, Outcome::DeviceCrashed, Reason::DeviceRestarted);
        } else if !operation.may_repeat() || !self.send_again(now, op) {
            self.give_up(now, op, Outcome::Interrupted, Reason::DeviceRestarted);
        }
    }

    /// Sends an operation once more under the same id, if it can still begin in time. Whether it did.
    fn send_again(&mut self, now: Instant, op: &OpId) -> bool {
        let Some(operation) = self.operations.get_mut(op) else { return false };
        let act_by = operation.begins_by(now, &self.settings);
        if act_by.saturating_duration_since(now) < self.settings.begin_min {
            return false;
        }
        operation.act_by = Some(act_by);
        operation.written_at = None;
        // Nobody said of the sending before that it was not written: the device may have it.
        operation.reached = true;
        operation.measure_anew();
        self.send_command(now, op);
        true
    }

    /// Leaves the device the time to send what it kept, then asks it once.
    fn await_outbox(&mut self, now: Instant, op: &OpId) {
        let settings = &self.settings;
        if let Some(operation) = self.operations.get_mut(op) {
            operation.ask_again(now, settings);
        }
    }

    /// The device has gone: what was sent waits for it for a moment, as what was not does (semantics 5.3, 5.5).
    pub(super) fn wait_in_flight(&mut self, now: Instant) {
        let settings = &self.settings;
        for operation in self.operations.values_mut().filter(|o| o.reached) {
            operation.outlast(now, settings);
        }
    }

    /// Puts a new description in force. What can do harm and was not there before, of a device that was known, is read-only
    /// until the owner accepts it; what was held and does not fit any more is blocked (semantics 2.7).
    pub(super) fn take_description(&mut self, new: &Arc<Description>) {
        let harmful = |p: &&Property| p.settable && can_do_harm(p.role) && !p.terms.accepted;
        let was = |name: &str| {
            let known = self.description.as_ref().is_none_or(|old| old.property(name).filter(harmful).is_some());
            known && !self.unaccepted.contains(name)
        };
        let fresh = new.properties.iter().filter(harmful).filter(|p| !was(&p.name));
        self.unaccepted = fresh.map(|p| p.name.clone()).collect();
        self.description = Some(new.clone());
        self.block_held();
    }

    /// Ends what is in flight on a property that vanished or is of another kind now: what it is to the device nobody can
    /// say (semantics 2.7).
    pub(super) fn end_changed(&mut self, now: Instant) {
        let Some(description) = self.description.clone() else { return };
        let changed = |o: &&Operation| {
            let before = o.spec.as_ref().map(|spec| spec.kind);
            o.sent() && !o.is_run() && description.property(&o.property).map(|p| p.kind) != before
        };
        let gone = |o: &&Operation| o.sent() && o.called().is_some_and(|name| description.action(name).is_none());
        let ended: Vec<OpId> =
            self.operations.values().filter(|o| changed(o) || gone(o)).map(|o| o.op.clone()).collect();
        for op in ended {
            self.give_up(now, &op, Outcome::Interrupted, Reason::PropertyChanged);
        }
    }

    /// The command certainly never reached a device that has gone: it waits for it again, as if it had not been sent.
    /// Whether it does.
    pub(super) fn take_back(&mut self, now: Instant, op: &OpId) -> bool {
        if self.line.session.is_some() || self.line.bus_down {
            return false;
        }
        let wait = self.settings.wait_online;
        let Some(operation) = self.operations.get_mut(op).filter(|o| !o.cancelled) else { return false };
        if operation.reached {
            // An earlier sending may have: it is not as if nothing had been sent, so it waits where it is.
            return true;
        }
        operation.act_by = None;
        (operation.question, operation.ask_at) = (None, None);
        operation.online_by = Some(now + wait);
        self.enter(now, op, Stage::Queued);
        true
    }
}

impl Operation {
    /// Whether it may be sent again: doing it twice does no harm, and somebody still wants it.
    fn may_repeat(&self) -> bool {
        !self.cancelled && self.superseded_by.is_none() && self.repeatable()
    }

    /// Until when it may begin if its command goes out at `now`: the allowances, at most the configured maximum behind the
    /// first sending, and never later than its callers' limits (semantics 4.1, 6.1).
    pub(super) fn begins_by(&mut self, now: Instant, settings: &Settings) -> Instant {
        let first = *self.sent_at.get_or_insert(now);
        let by = (now + settings.ack + settings.start).min(first + settings.act_by_max);
        self.limit().map_or(by, |limit| limit.min(by))
    }

    /// Asks once, when the outbox had its time or the value has held (semantics 5.3).
    fn ask_again(&mut self, now: Instant, settings: &Settings) {
        let hold = if self.stage >= Stage::WaitingReadBack { self.stable } else { Duration::ZERO };
        let at = now + settings.outbox.max(hold);
        self.question = None;
        self.ask_at = (!self.is_run()).then_some(at);
        self.wait_until(at + settings.read_back, settings);
    }

    /// Its stage ends no earlier than a device that was there a moment ago may be back; it is not asked meanwhile. A value
    /// that must hold must still do so then.
    fn outlast(&mut self, now: Instant, settings: &Settings) {
        let back_by = now + settings.wait_online;
        self.ask_at = if self.must_hold() { Some(back_by) } else { None };
        self.question = None;
        self.wait_until(back_by + settings.read_back, settings);
    }

    /// Grows the stage's allowance, up to the longest driving allowed: a connection that flaps for ever keeps nothing alive.
    fn wait_until(&mut self, at: Instant, settings: &Settings) {
        let longest = match self.stage {
            Stage::WaitingBroker | Stage::WaitingDeviceAck => self.limit().unwrap_or(at),
            Stage::Admission
            | Stage::Queued
            | Stage::WaitingDeviceStart
            | Stage::WaitingDeviceReport
            | Stage::WaitingReadBack
            | Stage::WaitingSensor
            | Stage::Settled => self.stage_since + settings.driving_max,
        };
        self.stage_ends_at = self.stage_ends_at.max(at.min(longest));
    }
}
