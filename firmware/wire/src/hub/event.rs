//! Reading one event.

use std::{cell::Cell, sync::Arc};

use super::{
    DecodeError,
    hello::{DescriptionPage, Hello},
    object::{Context, Object},
    tree,
};
use crate::{
    limits::is_id,
    scalar::Scalar,
    words::{CauseWord, ErrorWord, EventWord, EvidenceWord, ReasonWord, ReportResult},
};

/// By which op each property was moved last: names of properties, each with an op.
pub type Seen = Vec<(Arc<str>, Arc<str>)>;

/// One event of a device.
#[derive(Clone, Debug, PartialEq)]
pub struct Incoming {
    /// The session that the device believes in; empty in a `hello` and a `description` (they come before the welcome).
    pub session: Arc<str>,
    /// This run of the device.
    pub boot: Arc<str>,
    /// Counts the events of this run from 1.
    pub seq: u32,
    /// Since the start of this run, milliseconds.
    pub up_ms: u64,
    /// The device's wall clock, as it stands (RFC 3339 is asked for, not checked: nothing is decided by it).
    pub ts: Option<String>,
    /// What it says.
    pub event: Event,
    /// How many words in it this version does not know.
    pub unknown_words: u32,
}

/// What a device says.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// The greeting.
    Hello(Hello),
    /// A page of the description.
    Description(DescriptionPage),
    /// How far an operation is.
    ActionReport(ActionReport),
    /// What the state is.
    DeviceState(DeviceState),
    /// The task that drives is alive.
    Heartbeat,
}

/// How far an operation is.
#[derive(Clone, Debug, PartialEq)]
pub struct ActionReport {
    /// The operation.
    pub op: Arc<str>,
    /// `set`, or the action's name.
    pub action: Arc<str>,
    /// The property.
    pub property: Option<Arc<str>>,
    /// How far.
    pub result: ReportResult,
    /// The properties concerned, as read when this was written.
    pub status: Vec<(Arc<str>, Scalar)>,
    /// How each was read.
    pub evidence: Vec<(Arc<str>, EvidenceWord)>,
    /// Why, when failed or rejected.
    pub reason: Option<ReasonWord>,
    /// How much longer, milliseconds.
    pub eta_ms: Option<u32>,
    /// The value was brought into the allowed range.
    pub clamped: bool,
    /// The operation was known already; nothing moved for this report.
    pub dup: bool,
}

/// What the state is.
#[derive(Clone, Debug, PartialEq)]
pub struct DeviceState {
    /// The query that it answers; `None` if unasked.
    pub op: Option<Arc<str>>,
    /// The properties.
    pub status: Vec<(Arc<str>, Scalar)>,
    /// How each was read.
    pub evidence: Vec<(Arc<str>, EvidenceWord)>,
    /// Why it was sent; [`CauseWord::Unknown`] also if the device does not say.
    pub cause: CauseWord,
    /// By property the last operation *finished* on it.
    pub seen: Seen,
}

/// A last will.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Will {
    /// The run of the device that it belongs to.
    pub boot: Arc<str>,
}

/// Reads one event.
///
/// # Errors
/// [`DecodeError`]: over a limit, no JSON, a field missing, twice, or of another sort. Unknown fields are ignored and
/// unknown words counted; neither is an error.
pub fn decode_event(bytes: &[u8]) -> Result<Incoming, DecodeError> {
    let fields = tree::read(bytes)?;
    let of_seq = fields.iter().find(|(key, _)| **key == *"seq").and_then(|(_, node)| node.as_u32());
    let context = Context { of_seq, unknown_words: Cell::new(0) };
    let object = Object { fields: &fields, path: "", context: &context };

    let words = "hello, description, device_action_report, device_state or heartbeat";
    let word = object.required("event", words, object.word("event", EventWord::read, EventWord::Unknown)?)?;
    if word == EventWord::Unknown {
        return Err(object.fail(ErrorWord::UnknownEvent, "event", words));
    }
    let boot = object.required("boot", "a token of this run", object.id("boot")?)?;
    let seq = object.required("seq", "a number from 1", object.u32("seq")?)?;
    if seq == 0 {
        return Err(object.fail(ErrorWord::OutOfRange, "seq", "1 to 4294967295"));
    }
    let up_ms = object.required("up_ms", "milliseconds since the start", object.u64("up_ms", u64::MAX)?)?;
    let session = match (word, object.id("session")?) {
        (_, Some(session)) => session,
        (EventWord::Hello | EventWord::Description, None) => "".into(),
        _ => return Err(object.fail(ErrorWord::MissingField, "session", "the session of the last welcome")),
    };
    let event = match word {
        EventWord::Hello => Event::Hello(Hello::read(&object)?),
        EventWord::Description => Event::Description(DescriptionPage::read(&object)?),
        EventWord::DeviceActionReport => Event::ActionReport(action_report(&object)?),
        EventWord::DeviceState => Event::DeviceState(device_state(&object)?),
        EventWord::Heartbeat | EventWord::Unknown => Event::Heartbeat,
    };
    let ts = object.text("ts")?;
    Ok(Incoming { session, boot, seq, up_ms, ts, event, unknown_words: context.unknown_words.get() })
}

/// Reads a last will: `{"boot": "..."}`.
///
/// # Errors
/// As [`decode_event`].
pub fn decode_will(bytes: &[u8]) -> Result<Will, DecodeError> {
    let fields = tree::read(bytes)?;
    let context = Context { of_seq: None, unknown_words: Cell::new(0) };
    let object = Object { fields: &fields, path: "", context: &context };
    Ok(Will { boot: object.required("boot", "a token of this run", object.id("boot")?)? })
}

fn action_report(object: &Object<'_>) -> Result<ActionReport, DecodeError> {
    let results = "received, executing, working, completed, failed or rejected";
    Ok(ActionReport {
        op: object.required("op", "the op of the command", object.id("op")?)?,
        action: object.required("action", "set, or the name of the action", object.name("action")?)?,
        property: object.name("property")?,
        result: object.required(
            "result",
            results,
            object.word("result", ReportResult::read, ReportResult::Unknown)?,
        )?,
        status: values(object, "status")?,
        evidence: evidence(object)?,
        reason: object.word("reason", ReasonWord::read, ReasonWord::Unknown)?,
        eta_ms: object.u32("eta_ms")?,
        clamped: object.flag("clamped")?.unwrap_or(false),
        dup: object.flag("dup")?.unwrap_or(false),
    })
}

fn device_state(object: &Object<'_>) -> Result<DeviceState, DecodeError> {
    Ok(DeviceState {
        op: object.id("op")?,
        status: values(object, "status")?,
        evidence: evidence(object)?,
        cause: cause(object)?,
        seen: seen(object)?,
    })
}

pub(super) fn cause(object: &Object<'_>) -> Result<CauseWord, DecodeError> {
    Ok(object.word("cause", CauseWord::read, CauseWord::Unknown)?.unwrap_or(CauseWord::Unknown))
}

pub(super) fn values(object: &Object<'_>, field: &str) -> Result<Vec<(Arc<str>, Scalar)>, DecodeError> {
    object.by_property(field, |inner, key, node| inner.scalar(key, node))
}

pub(super) fn evidence(object: &Object<'_>) -> Result<Vec<(Arc<str>, EvidenceWord)>, DecodeError> {
    object.by_property("evidence", |inner, key, node| match node.as_text() {
        Some(word) => Ok(inner.counted(EvidenceWord::read(word), EvidenceWord::Unknown)),
        None => Err(inner.fail(ErrorWord::WrongType, key, "firmware, pin or sensor")),
    })
}

pub(super) fn seen(object: &Object<'_>) -> Result<Seen, DecodeError> {
    object.by_property("seen", |inner, key, node| match node.as_text() {
        Some(op) if is_id(op) => Ok(op.into()),
        Some(_) => Err(inner.fail(ErrorWord::BadName, key, "an op; leave out what is not known")),
        None => Err(inner.fail(ErrorWord::WrongType, key, "an op; leave out what is not known")),
    })
}
