//! A twin on the bench: inputs at virtual times, effects collected. No runtime, no sleep.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use truetwin::{
    property::{Action, Class, Description, DeviceId, Evidence, Kind, Property, PropertyName, Role, Terms, Value},
    twin::{
        Twin,
        input::{ActionResult, Body, Cause, Command, Effect, Hello, Input, Report, Status},
        owed::Correction,
        settings::Settings,
        wish::{CallerId, Wish},
        words::{OpId, Outcome, Reason, Refusal, Reply, Settled, Stage, StateReport},
    },
};

pub(crate) const ON: Value = Value::Bool(true);
pub(crate) const OFF: Value = Value::Bool(false);

/// When the hub began before the bench's time 0: long ago, so that no device is expected to come back.
const AGE: Duration = Duration::from_secs(3600);

/// A relay that reads its pad back and must hold for 200 ms.
pub(crate) fn relay() -> Property {
    Property {
        name: "relay".into(),
        role: Role::Light,
        kind: Kind::Bool,
        unit: None,
        min: None,
        max: None,
        step: None,
        tolerance: None,
        values: Vec::new(),
        class: Class::Momentary,
        feedback: Evidence::Pin,
        expected_ms: 300,
        stable_ms: 200,
        min_interval_ms: 0,
        settable: true,
        repeatable: true,
        terms: Terms::default(),
    }
}

/// A dimmer, 0 to 100 in steps of 5.
pub(crate) fn level() -> Property {
    Property {
        name: "level".into(),
        kind: Kind::Number,
        min: Some(0.0),
        max: Some(100.0),
        step: Some(5.0),
        tolerance: Some(2.0),
        stable_ms: 0,
        ..relay()
    }
}

pub(crate) fn op(id: &str) -> OpId {
    OpId::new(id)
}

/// A wish of a caller, as an input.
pub(crate) fn wish(id: &str, caller: &str, wish: Wish, answer_by: Instant) -> Input {
    Input::Set { op: op(id), caller: CallerId::new(caller), wish, answer_by }
}

pub(crate) struct Bench {
    pub(crate) twin: Twin,
    pub(crate) effects: Vec<(u64, Effect)>,
    start: Instant,
    seq: u32,
    pub(crate) boot: Arc<str>,
    pub(crate) properties: Vec<Property>,
    pub(crate) actions: Vec<Action>,
    sessions: u64,
    /// Groups of its properties that exclude each other.
    pub(crate) exclusive: Vec<Vec<PropertyName>>,
    /// What it promises (wire protocol).
    pub(crate) level: u8,
}

impl Bench {
    /// A device that was never heard of.
    pub(crate) fn unknown(properties: Vec<Property>) -> Self {
        let start = Instant::now() + AGE;
        let settings = Settings::new(start - AGE);
        Self::with(properties, settings, start)
    }

    /// The same, and the hub has just begun.
    pub(crate) fn just_started(properties: Vec<Property>) -> Self {
        let start = Instant::now();
        Self::with(properties, Settings::new(start), start)
    }

    /// A hub with other settings; the bench's time 0 is `start`.
    pub(crate) fn with(properties: Vec<Property>, settings: Settings, start: Instant) -> Self {
        let twin = Twin::new(DeviceId::new("lamp").expect("a device id"), settings);
        Self {
            twin,
            effects: Vec::new(),
            start,
            seq: 0,
            boot: "boot1".into(),
            properties,
            actions: Vec::new(),
            exclusive: Vec::new(),
            level: 2,
            sessions: 0,
        }
    }

    /// A relay that has greeted at 0 and is off.
    pub(crate) fn relay() -> Self {
        Self::online(relay(), OFF)
    }

    /// A relay without a time to hold: completion at the pad is both checks in one.
    pub(crate) fn quick_relay() -> Self {
        Self::online(Property { stable_ms: 0, ..relay() }, OFF)
    }

    /// A device of one property that has greeted at 0.
    pub(crate) fn online(property: Property, value: Value) -> Self {
        let mut bench = Self::unknown(vec![property]);
        bench.connect(0);
        bench.hello(0, value, None);
        bench
    }

    pub(crate) fn time(&self, ms: u64) -> Instant {
        self.start + Duration::from_millis(ms)
    }

    /// The first whole millisecond that is not before `at`.
    fn ms(&self, at: Instant) -> u64 {
        let micros = at.saturating_duration_since(self.start).as_micros();
        u64::try_from(micros.div_ceil(1_000)).expect("a short test")
    }

    /// Applies an input at a time, as the actor does: what is due before it ticks first.
    pub(crate) fn at(&mut self, ms: u64, input: Input) {
        self.until(ms);
        self.late(ms, input);
    }

    /// Applies an input without the ticks that were due before: the timer is late.
    pub(crate) fn late(&mut self, ms: u64, input: Input) {
        let now = self.time(ms);
        self.twin.apply(now, input);
        while let Some(effect) = self.twin.poll() {
            self.effects.push((ms, effect));
        }
        assert!(self.twin.deadline().is_none_or(|at| at > now), "due at once: the actor would spin");
    }

    /// Lets time pass, waking whenever the twin asks for it.
    pub(crate) fn until(&mut self, ms: u64) {
        while let Some(at) = self.twin.deadline().filter(|at| *at <= self.time(ms)) {
            let due = self.ms(at);
            self.late(due, Input::Tick);
        }
    }

    pub(crate) fn connect(&mut self, ms: u64) {
        self.sessions += 1;
        self.at(ms, Input::Connected { connection: self.sessions });
    }

    pub(crate) fn disconnect(&mut self, ms: u64) {
        self.at(ms, Input::Disconnected { connection: self.sessions });
    }

    /// A hello of the present boot; the first property has the value.
    pub(crate) fn hello(&mut self, ms: u64, value: Value, seen: Option<&str>) {
        let status = vec![self.status(value)];
        self.hello_of(ms, status, Cause::Unknown, seen);
    }

    /// A hello of the present boot with these values, and why they are so.
    pub(crate) fn hello_of(&mut self, ms: u64, status: Vec<Status>, cause: Cause, seen: Option<&str>) {
        self.seq += 1;
        let name = self.properties[0].name.clone();
        let hello = Hello {
            boot: self.boot.clone(),
            seq: self.seq,
            description: Arc::new(Description {
                properties: self.properties.clone(),
                actions: self.actions.clone(),
                exclusive: self.exclusive.clone(),
                labels: Vec::new(),
                level: self.level,
            }),
            status,
            cause,
            seen: seen.map(|id| (name, op(id))).into_iter().collect(),
        };
        self.at(ms, Input::Greeted { session: format!("s{}", self.sessions).into(), hello });
    }

    pub(crate) fn reboot(&mut self, boot: &str) {
        self.boot = boot.into();
        self.seq = 0;
    }

    pub(crate) fn status(&self, value: Value) -> Status {
        Status { property: self.properties[0].name.clone(), value, evidence: self.properties[0].feedback }
    }

    /// A caller wants the first property to have a value.
    pub(crate) fn set(&mut self, ms: u64, id: &str, value: Value, answer_by: u64) {
        let (property, answer_by) = (self.properties[0].name.clone(), self.time(answer_by));
        self.at(ms, wish(id, "me", Wish::to(property, value), answer_by));
    }

    /// A caller wants the first property to have the other of its two values.
    pub(crate) fn toggle(&mut self, ms: u64, id: &str, answer_by: u64) {
        let wish = Wish::toggle(self.properties[0].name.clone());
        self.asks(ms, "me", id, wish, answer_by);
    }

    /// A caller wants something.
    pub(crate) fn asks(&mut self, ms: u64, caller: &str, id: &str, wished: Wish, answer_by: u64) {
        let answer_by = self.time(answer_by);
        self.at(ms, wish(id, caller, wished, answer_by));
    }

    pub(crate) fn written(&mut self, ms: u64, id: &str) {
        self.at(ms, Input::Written { op: op(id) });
    }

    /// A report of the present boot with the next number.
    pub(crate) fn report(&mut self, status: Vec<Status>, body: Body) -> Report {
        self.seq += 1;
        Report { boot: self.boot.clone(), seq: self.seq, retained: false, status, body }
    }

    pub(crate) fn action(
        &mut self,
        id: &str,
        result: ActionResult,
        status: Vec<Status>,
        reason: Option<Reason>,
    ) -> Report {
        self.report(status, Body::Action { op: op(id), result, reason, eta: None, clamped: false })
    }

    pub(crate) fn state(&mut self, question: Option<OpId>, value: Value, cause: Cause, seen: Option<&str>) -> Report {
        let (status, name) = (self.status(value), self.properties[0].name.clone());
        let seen = seen.map(|id| (name, op(id))).into_iter().collect();
        self.report(vec![status], Body::State { op: question, cause, seen })
    }

    /// The device says how far it is, without a value.
    pub(crate) fn says(&mut self, ms: u64, id: &str, result: ActionResult) {
        let report = self.action(id, result, Vec::new(), None);
        self.at(ms, Input::Heard(report));
    }

    pub(crate) fn completed(&mut self, ms: u64, id: &str, value: Value) {
        let status = vec![self.status(value)];
        let report = self.action(id, ActionResult::Completed, status, None);
        self.at(ms, Input::Heard(report));
    }

    pub(crate) fn refuses(&mut self, ms: u64, id: &str, result: ActionResult, reason: Reason) {
        let report = self.action(id, result, Vec::new(), Some(reason));
        self.at(ms, Input::Heard(report));
    }

    /// The device answers the last question about the first property.
    pub(crate) fn answers(&mut self, ms: u64, value: Value, seen: Option<&str>) {
        self.until(ms);
        let question = self.question().expect("a question was asked");
        let report = self.state(Some(question), value, Cause::Query, seen);
        self.at(ms, Input::Heard(report));
    }

    /// The device says something unasked.
    pub(crate) fn tells(&mut self, ms: u64, value: Value, cause: Cause, seen: Option<&str>) {
        let report = self.state(None, value, cause, seen);
        self.at(ms, Input::Heard(report));
    }

    /// A command that goes well up to the beginning of driving: written, received, executing.
    pub(crate) fn begin(&mut self, ms: u64, id: &str) {
        self.written(ms, id);
        self.says(ms + 10, id, ActionResult::Received);
        self.says(ms + 20, id, ActionResult::Executing);
    }

    /// A wish that converges at once (a relay without a time to hold).
    pub(crate) fn converge(&mut self, ms: u64, id: &str, value: Value) {
        self.set(ms, id, value.clone(), ms + 8000);
        self.begin(ms + 1, id);
        self.completed(ms + 300, id, value);
        assert_eq!(self.outcome(id), (Outcome::Converged, Stage::Settled, None));
    }

    // What came of it.

    pub(crate) fn commands(&self) -> Vec<Command> {
        self.effects.iter().filter_map(|(_, e)| if let Effect::Send(c) = e { Some(c.clone()) } else { None }).collect()
    }

    pub(crate) fn sets(&self) -> Vec<OpId> {
        let op = |c: Command| if let Command::Set { op, .. } = c { Some(op) } else { None };
        self.commands().into_iter().filter_map(op).collect()
    }

    pub(crate) fn withdrawn(&self, id: &str) -> bool {
        self.commands().contains(&Command::Withdraw { op: op(id) })
    }

    pub(crate) fn question(&self) -> Option<OpId> {
        let op = |c: Command| if let Command::GetState { op, .. } = c { Some(op) } else { None };
        self.commands().into_iter().rev().find_map(op)
    }

    pub(crate) fn questions(&self) -> usize {
        self.commands().iter().filter(|c| matches!(c, Command::GetState { .. })).count()
    }

    pub(crate) fn replies(&self, id: &str) -> Vec<(u64, Reply)> {
        let mut replies = Vec::new();
        for (ms, effect) in &self.effects {
            if let Effect::Reply { op: of, reply } = effect
                && *of == op(id)
            {
                replies.push((*ms, reply.clone()));
            }
        }
        replies
    }

    /// The one answer, which is how the operation ended or how far it is.
    pub(crate) fn settled(&self, id: &str) -> (u64, Settled) {
        match self.replies(id).as_slice() {
            [(ms, Reply::Settled(settled))] => (*ms, *settled.clone()),
            other => panic!("one answer to {id} was due: {other:?}"),
        }
    }

    pub(crate) fn outcome(&self, id: &str) -> (Outcome, Stage, Option<Reason>) {
        let (_, settled) = self.settled(id);
        (settled.outcome, settled.stage, settled.reason)
    }

    /// The one answer, which is a refusal.
    pub(crate) fn refusal(&self, id: &str) -> (u64, Refusal) {
        match self.replies(id).as_slice() {
            [(ms, Reply::Refused(refusal))] => (*ms, refusal.clone()),
            other => panic!("one refusal of {id} was due: {other:?}"),
        }
    }

    /// The answer to a caller's question.
    pub(crate) fn told(&self, id: &str) -> (u64, Result<StateReport, Refusal>) {
        let of = |(ms, e): &(u64, Effect)| {
            if let Effect::State { op: of, state } = e
                && *of == op(id)
            {
                return Some((*ms, state.clone()));
            }
            None
        };
        self.effects.iter().find_map(of).expect("the question was answered")
    }

    /// What is owed, to whom.
    pub(crate) fn owed(&self) -> Vec<(CallerId, Correction)> {
        let owed = |(_, e): &(u64, Effect)| {
            if let Effect::Owed { caller, correction } = e {
                return Some((caller.clone(), *correction.clone()));
            }
            None
        };
        self.effects.iter().filter_map(owed).collect()
    }

    /// Whether an effect sends an operation's command.
    pub(crate) fn is_set(&self, effect: &Effect, id: &str) -> bool {
        matches!(effect, Effect::Send(Command::Set { op: of, .. }) if *of == op(id))
    }

    /// The value that was sent for an operation.
    pub(crate) fn value_of(&self, id: &str) -> Value {
        let value = |c: Command| {
            if let Command::Set { op: of, value, .. } = c { (of == op(id)).then_some(value) } else { None }
        };
        self.commands().into_iter().find_map(value).expect("it was sent")
    }

    pub(crate) fn has(&self, wanted: &Effect) -> bool {
        self.effects.iter().any(|(_, effect)| effect == wanted)
    }

    /// What `check_operation` tells of an operation.
    pub(crate) fn check(&self, ms: u64, id: &str) -> Settled {
        self.twin.check(self.time(ms), Some(&op(id))).expect("the operation is known")
    }
}
