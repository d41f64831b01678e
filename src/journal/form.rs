//! Facts of a twin as JSON and back: the form of the journal's `json` columns.
//!
//! A field that is missing when read has its default, an unknown word makes the row unreadable: it is left out and told in
//! the log, never guessed. Times are Unix milliseconds: those of a monotonic clock mean nothing to the next process.

use std::{
    collections::BTreeSet,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use crate::{
    property::{DeviceId, Evidence, PropertyName, Value},
    twin::{
        Hears,
        held::{Held, Kept},
        input::Left,
        wish::CallerId,
        words::{Attribution, Measured, OpId, Outcome, Reading, Reason, Settled, Stage, Trust},
    },
};

/// One moment on both clocks.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    now: Instant,
    unix_ms: i64,
}

impl Clock {
    /// This moment.
    pub fn now() -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self { now: Instant::now(), unix_ms: i64::try_from(since.as_millis()).unwrap_or(i64::MAX) }
    }

    /// This moment, Unix milliseconds.
    pub fn unix_ms(&self) -> i64 {
        self.unix_ms
    }

    /// A moment as Unix milliseconds.
    pub fn ms(&self, at: Instant) -> i64 {
        match at.checked_duration_since(self.now) {
            Some(ahead) => self.unix_ms.saturating_add(millis(ahead)),
            None => self.unix_ms.saturating_sub(millis(self.now - at)),
        }
    }

    /// How long ago a moment of Unix milliseconds is; what is told to lie ahead is now.
    pub fn since(&self, unix_ms: i64) -> Duration {
        self.now.saturating_duration_since(self.at(unix_ms))
    }

    /// Unix milliseconds as a moment; what is longer ago than this machine runs is as long ago as can be said.
    pub fn at(&self, unix_ms: i64) -> Instant {
        let ahead = unix_ms.saturating_sub(self.unix_ms);
        let distance = Duration::from_millis(ahead.unsigned_abs());
        let moved = if ahead >= 0 { self.now.checked_add(distance) } else { self.now.checked_sub(distance) };
        moved.unwrap_or(self.now)
    }
}

fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

/// What became of an operation for one of its callers.
#[derive(Debug, Serialize, Deserialize)]
struct OperationForm {
    caller: String,
    #[serde(default)]
    shared: bool,
    op: String,
    device: String,
    property: String,
    wish: Option<Json>,
    outcome: String,
    stage: String,
    reason: Option<String>,
    found: Option<FoundForm>,
    confirmed_by: String,
    attribution: String,
    measured: Option<MeasuredForm>,
    elapsed_ms: u64,
    stages_ms: Vec<(String, u64)>,
    #[serde(default)]
    late_success: bool,
    #[serde(default)]
    reverted: bool,
    joined: Option<String>,
    superseded_by: Option<Json>,
    #[serde(default)]
    limited: bool,
    #[serde(default)]
    kept: bool,
}

#[derive(Debug, Serialize, Deserialize)]
struct FoundForm {
    value: Json,
    evidence: String,
    age_ms: u64,
}

#[derive(Debug, Serialize, Deserialize)]
struct MeasuredForm {
    device: String,
    property: String,
    value: Option<Json>,
    agrees: bool,
}

#[derive(Debug, Serialize, Deserialize)]
struct HeldForm {
    value: Json,
    op: String,
    since_ms: i64,
    valid_until_ms: Option<i64>,
    #[serde(default)]
    sent: u32,
    // Rows of before it was kept: what is otherwise then counts as somebody's, as it did.
    #[serde(default = "yes")]
    came_true: bool,
    #[serde(default)]
    overridden: bool,
    #[serde(default)]
    blocked: bool,
}

fn yes() -> bool {
    true
}

/// Names of properties.
pub fn names(names: &BTreeSet<PropertyName>) -> String {
    Json::from(names.iter().map(|name| name.to_string()).collect::<Vec<_>>()).to_string()
}

/// The names that were written with [`names`].
pub fn names_of(json: &str) -> Option<BTreeSet<PropertyName>> {
    let names: Vec<String> = serde_json::from_str(json).ok()?;
    Some(names.iter().map(|name| name.as_str().into()).collect())
}

/// A word of a closed set.
fn word<T: Copy>(all: &[T], text: &str, of: impl Fn(T) -> &'static str) -> Option<T> {
    all.iter().copied().find(|known| of(*known) == text)
}

/// A value; whole numbers stay whole.
pub fn value(value: &Value) -> Json {
    match value {
        Value::Bool(v) => Json::from(*v),
        Value::Integer(v) => Json::from(*v),
        Value::Number(v) => Json::from(*v),
        Value::Text(v) => Json::from(&**v),
    }
}

/// The value that was meant; `None` for what is none.
pub fn value_of(json: &Json) -> Option<Value> {
    match json {
        Json::Bool(v) => Some(Value::Bool(*v)),
        Json::String(v) => Some(Value::Text(v.as_str().into())),
        Json::Number(v) => match v.as_i64() {
            Some(whole) => i32::try_from(whole).ok().map(Value::Integer),
            None => v.as_f64().map(Value::Number),
        },
        Json::Null | Json::Array(_) | Json::Object(_) => None,
    }
}

#[derive(Debug, Serialize, Deserialize)]
struct ReportedForm {
    value: Json,
    evidence: String,
}

/// A reported value.
pub fn reported(reported: &Value, evidence: Evidence) -> String {
    let form = ReportedForm { value: value(reported), evidence: evidence.as_str().to_owned() };
    serde_json::to_string(&form).expect("a value and a word are always JSON")
}

/// The value that was written with [`reported`].
pub fn reported_of(json: &str) -> Option<(Value, Evidence)> {
    let form: ReportedForm = serde_json::from_str(json).ok()?;
    Some((value_of(&form.value)?, word(Evidence::ALL, &form.evidence, Evidence::as_str)?))
}

/// An operation as one of its callers was told.
pub fn operation(caller: &CallerId, settled: &Settled) -> String {
    let form = OperationForm {
        caller: caller.as_str().to_owned(),
        shared: caller.is_shared(),
        op: settled.op.to_string(),
        device: settled.device.to_string(),
        property: settled.property.to_string(),
        wish: settled.wish.as_ref().map(value),
        outcome: settled.outcome.to_string(),
        stage: settled.stage.to_string(),
        reason: settled.reason.map(|reason| reason.to_string()),
        found: settled.found.as_ref().map(|found| FoundForm {
            value: value(&found.value),
            evidence: found.evidence.as_str().to_owned(),
            age_ms: whole_ms(found.age),
        }),
        confirmed_by: settled.confirmed_by.as_str().to_owned(),
        attribution: settled.attribution.to_string(),
        measured: settled.measured.as_ref().map(|measured| MeasuredForm {
            device: measured.device.to_string(),
            property: measured.property.to_string(),
            value: measured.value.as_ref().map(value),
            agrees: measured.agrees,
        }),
        elapsed_ms: whole_ms(settled.elapsed),
        stages_ms: settled.stages.iter().map(|(stage, spent)| (stage.to_string(), whole_ms(*spent))).collect(),
        late_success: settled.late_success,
        reverted: settled.reverted,
        joined: settled.joined.as_ref().map(OpId::to_string),
        superseded_by: settled.superseded_by.as_ref().map(value),
        limited: settled.limited,
        kept: settled.kept,
    };
    serde_json::to_string(&form).expect("texts, numbers and flags are always JSON")
}

fn whole_ms(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// The operation that was written with [`operation`], and whose it is; `None` for what is none of this version's.
pub fn operation_of(json: &str) -> Option<(CallerId, Settled)> {
    let form: OperationForm = serde_json::from_str(json).ok()?;
    let caller = if form.shared { CallerId::shared(&form.caller) } else { CallerId::new(&form.caller) };
    let evidence = |text: &str| word(Evidence::ALL, text, Evidence::as_str);
    let found = match form.found {
        None => None,
        Some(found) => Some(Reading {
            value: value_of(&found.value)?,
            evidence: evidence(&found.evidence)?,
            age: Duration::from_millis(found.age_ms),
            // A reading of then is no reading of now.
            trust: Trust::Old,
        }),
    };
    let measured = match form.measured {
        None => None,
        Some(measured) => Some(Measured {
            device: DeviceId::new(&measured.device).ok()?,
            property: measured.property.as_str().into(),
            value: measured.value.as_ref().and_then(value_of),
            agrees: measured.agrees,
        }),
    };
    let stage = |text: &str| word(Stage::ALL, text, Stage::as_str);
    let stages = form.stages_ms.iter().map(|(name, ms)| Some((stage(name)?, Duration::from_millis(*ms))));
    let settled = Settled {
        op: OpId::new(&form.op),
        device: DeviceId::new(&form.device).ok()?,
        property: form.property.as_str().into(),
        wish: form.wish.as_ref().and_then(value_of),
        outcome: word(Outcome::ALL, &form.outcome, Outcome::as_str)?,
        stage: stage(&form.stage)?,
        reason: match &form.reason {
            None => None,
            Some(reason) => Some(word(Reason::ALL, reason, Reason::as_str)?),
        },
        found,
        confirmed_by: evidence(&form.confirmed_by)?,
        attribution: word(Attribution::ALL, &form.attribution, Attribution::as_str)?,
        measured,
        eta: None,
        elapsed: Duration::from_millis(form.elapsed_ms),
        stages: stages.collect::<Option<_>>()?,
        late_success: form.late_success,
        reverted: form.reverted,
        joined: form.joined.as_deref().map(OpId::new),
        superseded_by: form.superseded_by.as_ref().and_then(value_of),
        limited: form.limited,
        kept: form.kept,
        recorded: true,
    };
    Some((caller, settled))
}

/// An operation that a dead process had taken in and never ended, as its twin is told: its caller is gone with the process.
pub fn left_of(json: &str) -> Option<Left> {
    operation_of(json).map(|(caller, settled)| Left { caller, hears: Hears::Gone, settled })
}

/// A set point.
pub fn held(held: &Held, clock: Clock) -> String {
    let kept = held.kept();
    let form = HeldForm {
        value: value(&kept.value),
        op: kept.op.to_string(),
        since_ms: clock.ms(kept.since),
        valid_until_ms: kept.valid_until.map(|at| clock.ms(at)),
        sent: kept.sent,
        came_true: kept.came_true,
        overridden: kept.overridden,
        blocked: kept.blocked,
    };
    serde_json::to_string(&form).expect("texts, numbers and flags are always JSON")
}

/// The set point that was written with [`held`]; `None` for what is none of this version's.
/// `epoch` is this start's of the hub.
pub fn held_of(json: &str, clock: Clock, epoch: u32) -> Option<Held> {
    let form: HeldForm = serde_json::from_str(json).ok()?;
    Some(Held::resumed(
        Kept {
            value: value_of(&form.value)?,
            op: OpId::new(&form.op),
            since: clock.at(form.since_ms),
            valid_until: form.valid_until_ms.map(|at| clock.at(at)),
            sent: form.sent,
            came_true: form.came_true,
            overridden: form.overridden,
            blocked: form.blocked,
        },
        clock.now,
        epoch,
    ))
}
