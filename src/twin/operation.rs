//! One operation: an attempt to make one wish true (semantics 1), its stages and what it waits for.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use crate::{
    property::{Evidence, Predicate, Property, PropertyName, Value},
    twin::{
        action::Work,
        settings::Settings,
        verify::Check,
        waiter::{Hears, Waiter},
        wish::Target,
        words::{OpId, Outcome, Stage},
    },
};

/// An operation that was admitted and has not ended.
#[derive(Clone, Debug)]
pub(super) struct Operation {
    pub(super) op: OpId,
    pub(super) property: PropertyName,
    /// How it is carried out.
    pub(super) work: Work,
    /// The action that brings its value about was done: from then on its property counts.
    pub(super) acted: bool,
    /// What an independent measurement must show (semantics 3.10).
    pub(super) check: Option<Check>,
    /// When the measuring device is asked next.
    pub(super) sensor_at: Option<Instant>,
    /// Since when the state that it starts from is asked for, where it must be the very present one.
    pub(super) base_since: Option<Instant>,
    /// It was so before anything was sent.
    pub(super) already: bool,
    /// The normalised wish; `None` while a relative one is not absolute yet (semantics 4.6).
    pub(super) wish: Option<Value>,
    /// What the caller said.
    pub(super) target: Target,
    /// How long it is valid if it is a set point, as its caller said (semantics 6.2): what its property is may be known later.
    pub(super) valid_for: Option<Duration>,
    /// The property as it was described when the operation was checked: a description that changes in the middle makes
    /// nothing count as equal that was not (semantics 2.7).
    pub(super) spec: Option<Arc<Property>>,
    /// The value before its command went out, as far as it was known.
    pub(super) before: Option<Value>,
    /// When it is as wished; known once it was sent (semantics 3.1).
    pub(super) predicate: Option<Predicate>,
    /// The device announced that it went to another value, and may (semantics 3.9).
    pub(super) clamped: bool,
    /// The evidence that a success needs (semantics 3.5).
    pub(super) required: Evidence,
    /// What a caller's limit must leave for it to begin (semantics 4.9).
    pub(super) needed: Duration,
    /// How long driving may take (semantics 4.9).
    pub(super) allowance: Duration,
    /// How long the value must hold before it is asked for (semantics 3.6).
    pub(super) stable: Duration,
    pub(super) admitted_at: Instant,
    /// Its place in the order of arrival.
    pub(super) number: u64,
    /// Who it is for: its first caller, whose id it has, and those who joined (semantics 4.3).
    pub(super) waiters: Vec<Waiter>,
    /// The value that took its place: its callers were told, and its end says so (semantics 4.4).
    pub(super) superseded_by: Option<Value>,
    /// A relative wish would have gone beyond the range (semantics 4.6).
    pub(super) limited: bool,
    /// Until when a relative wish waits for the state that it asked for (semantics 4.6).
    pub(super) base_by: Option<Instant>,
    /// Until when it may wait for a device that was there a moment ago (semantics 5.5).
    pub(super) online_by: Option<Instant>,
    /// Until when it may begin to drive; known once it was sent (semantics 4.1).
    pub(super) act_by: Option<Instant>,
    /// When its command was given to the bus for the first time.
    pub(super) sent_at: Option<Instant>,
    /// Whether its command was ever written to the device's socket, in this session or an earlier one: from then on it is
    /// no refusal any more that ends it.
    pub(super) reached: bool,
    /// How often the device began a new run while it was in flight (semantics 5.4).
    pub(super) reboots: u8,
    /// When its command's bytes were written to the device's socket; evidence is newer than that (semantics 3.2).
    pub(super) written_at: Option<Instant>,
    /// All its callers have gone before it began, and the device was told to withdraw it (semantics 4.7).
    pub(super) cancelled: bool,
    /// The device sent something unreadable while it was in flight.
    pub(super) unreadable: bool,
    /// When the device says that it will be done.
    pub(super) eta_at: Option<Instant>,
    /// A question about it that has gone out.
    pub(super) question: Option<OpId>,
    /// When the next question is due: the read-back, or, where no completion comes, one that may find the report lost.
    pub(super) ask_at: Option<Instant>,
    /// How many questions have gone out: part of their ids.
    questions: u32,
    pub(super) stage: Stage,
    pub(super) stage_since: Instant,
    left: Vec<(Stage, Duration)>,
    /// When the present stage's allowance is over.
    pub(super) stage_ends_at: Instant,
}

impl Operation {
    pub(super) fn new(now: Instant, number: u64, waiter: Waiter, property: PropertyName, target: Target) -> Self {
        Self {
            op: waiter.op.clone(),
            number,
            stage_ends_at: waiter.expires_at,
            waiters: vec![waiter],
            work: Work::Set,
            acted: false,
            check: None,
            sensor_at: None,
            base_since: None,
            already: false,
            superseded_by: None,
            limited: false,
            base_by: None,
            property,
            wish: target.value().cloned(),
            target,
            valid_for: None,
            spec: None,
            before: None,
            predicate: None,
            clamped: false,
            required: Evidence::Firmware,
            needed: Duration::ZERO,
            allowance: Duration::ZERO,
            stable: Duration::ZERO,
            admitted_at: now,
            online_by: None,
            act_by: None,
            sent_at: None,
            reached: false,
            reboots: 0,
            written_at: None,
            cancelled: false,
            unreadable: false,
            eta_at: None,
            question: None,
            ask_at: None,
            questions: 0,
            stage: Stage::Admission,
            stage_since: now,
            left: Vec::new(),
        }
    }

    /// Whether the device has said that it began: from then on the operation outlives its caller's limit (semantics 4.2).
    pub(super) fn begun(&self) -> bool {
        match self.stage {
            Stage::Admission
            | Stage::Queued
            | Stage::WaitingBroker
            | Stage::WaitingDeviceAck
            | Stage::WaitingDeviceStart => false,
            Stage::WaitingDeviceReport | Stage::WaitingReadBack | Stage::WaitingSensor | Stage::Settled => true,
        }
    }

    /// Whether anything was given to the bus for it.
    pub(super) fn sent(&self) -> bool {
        self.act_by.is_some()
    }

    /// Those who have not heard anything yet.
    pub(super) fn waiting(&self) -> impl Iterator<Item = &Waiter> {
        self.waiters.iter().filter(|waiter| waiter.waits())
    }

    /// Whether nobody waits for it any more: it lives on to its own end (semantics 4.2, 4.7).
    pub(super) fn unheard(&self) -> bool {
        self.waiting().next().is_none()
    }

    /// When the first of those who wait must be answered.
    pub(super) fn soonest(&self) -> Option<Instant> {
        self.waiting().map(|waiter| waiter.expires_at).min()
    }

    /// Until when it may begin at all: nothing does after one of its callers was told that it is not known to be done
    /// (semantics 4.1). `None`: it has no caller with a limit.
    pub(super) fn limit(&self) -> Option<Instant> {
        let unknown = |w: &&Waiter| w.waits() || w.told().is_some_and(|(outcome, _)| outcome == Outcome::TimedOut);
        let strict = self.waiters.iter().filter(unknown).map(|waiter| waiter.expires_at).min();
        strict.or_else(|| self.waiters.iter().map(|waiter| waiter.expires_at).min())
    }

    /// Whether all who wait leave it the time that it needs.
    pub(super) fn has_time(&self, now: Instant) -> bool {
        self.soonest().is_none_or(|soonest| soonest >= now + self.needed)
    }

    /// Notes what a caller was told.
    pub(super) fn tell(&mut self, now: Instant, op: &OpId, outcome: Outcome) {
        for waiter in self.waiters.iter_mut().filter(|waiter| waiter.op == *op) {
            waiter.hears = Hears::Told { outcome, at: now };
        }
    }

    /// Whether its wish names a value: only such join and supersede (semantics 4.3, 4.4, 4.6).
    pub(super) fn absolute(&self) -> bool {
        self.target.value().is_some()
    }

    /// Whether it is completed and the time that the value must hold is not over (semantics 3.6).
    pub(super) fn must_hold(&self) -> bool {
        self.stage >= Stage::WaitingReadBack && self.ask_at.is_some()
    }

    /// Leaves the present stage for another and returns the one left and how long it was in it.
    pub(super) fn enter(&mut self, now: Instant, stage: Stage, settings: &Settings) -> (Stage, Duration) {
        let left = (self.stage, now.saturating_duration_since(self.stage_since));
        self.left.push(left);
        self.stage = stage;
        self.stage_since = now;
        // Before its turn it asks only what it starts from, and that goes on.
        if stage != Stage::Queued {
            self.question = None;
            self.ask_at = None;
        }
        self.sensor_at = None;
        let act_by = self.act_by.unwrap_or(now);
        match stage {
            // While it waits for its turn only its callers' limits count.
            Stage::Admission | Stage::Queued | Stage::Settled => {}
            Stage::WaitingBroker => self.stage_ends_at = (now + settings.broker).min(act_by),
            Stage::WaitingDeviceAck => self.await_device(now, act_by),
            // A device that leaves `executing` out drives in this stage: it has its allowance behind the last begin.
            // Heard of late, after a time without connection, it is asked at least once.
            Stage::WaitingDeviceStart => {
                self.await_device(now, (act_by + self.allowance).max(now + settings.read_back));
            }
            Stage::WaitingDeviceReport => self.await_device(now, now + self.allowance),
            Stage::WaitingReadBack | Stage::WaitingSensor => {
                self.ask_at = Some(now + self.stable);
                self.stage_ends_at = now + self.stable + settings.read_back;
            }
        }
        left
    }

    /// The device says how much longer it drives: the allowance grows to that, up to the longest driving allowed.
    pub(super) fn extend(&mut self, now: Instant, eta: Duration, settings: &Settings) {
        let eta = eta.min(settings.driving_max);
        self.eta_at = Some(now + eta);
        let longest = self.stage_since + settings.driving_max;
        let ends = (now + eta + settings.report_margin).min(longest);
        if ends > self.stage_ends_at {
            self.await_device(now, ends);
        }
    }

    /// Waits for the device until `ends`, and asks it once when three quarters of that are gone: a lost report is no
    /// failure (semantics 3.6).
    fn await_device(&mut self, now: Instant, ends: Instant) {
        self.stage_ends_at = ends;
        // An action leaves no value to ask for.
        self.ask_at = (!self.is_run()).then_some(now + ends.saturating_duration_since(now) * 3 / 4);
    }

    /// The id of the next question about it: the operation's own with a number, so that no other answer fits.
    pub(super) fn next_question(&mut self) -> OpId {
        self.questions += 1;
        let id = OpId::new(&format!("{}-{}", self.op, self.questions));
        self.question = Some(id.clone());
        self.ask_at = None;
        id
    }

    /// How long it was in each stage until now.
    pub(super) fn stages(&self, now: Instant) -> Vec<(Stage, Duration)> {
        let mut stages = self.left.clone();
        if self.stage != Stage::Settled {
            stages.push((self.stage, now.saturating_duration_since(self.stage_since)));
        }
        stages
    }

    /// When the twin must look at it next.
    pub(super) fn wakes_at(&self) -> Option<Instant> {
        let ends = self.sent().then_some(self.stage_ends_at);
        let all = [self.soonest(), self.online_by, self.base_by, self.ask_at, self.sensor_at, ends];
        all.into_iter().flatten().min()
    }
}
