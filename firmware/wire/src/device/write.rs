//! Writing one event. Maps (`status`, `evidence`, `seen`) are written from one slice of readings, so that a board has
//! no map.

use core::fmt;

use serde::{
    Serialize, Serializer,
    ser::{SerializeMap, SerializeStruct},
};

use super::spec::Description;
use crate::{
    limits::PROTO,
    scalar::Scalar,
    words::{CauseWord, EventWord, EvidenceWord, ReasonWord, ReportResult},
};

/// What each event carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Envelope<'a> {
    /// The session of the last welcome; empty before it, and then left out.
    pub session: &'a str,
    /// This run of the board.
    pub boot: &'a str,
    /// Counts the events of this run from 1.
    pub seq: u32,
    /// Since the start of this run, milliseconds.
    pub up_ms: u64,
}

/// One property as it was read just now.
#[derive(Clone, Debug, PartialEq)]
pub struct Reading<'a> {
    /// The property.
    pub property: &'a str,
    /// Its value; `None` where it could not be read, and then it is left out: unknown is absence (semantics 2.2).
    pub value: Option<Scalar>,
    /// How the value was read.
    pub evidence: EvidenceWord,
    /// The last operation *finished* on it (semantics 3.3).
    pub seen: Option<&'a str>,
}

/// How far an operation is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ActionReport<'a> {
    /// The operation.
    pub op: &'a str,
    /// `set`, or the action's name.
    pub action: &'a str,
    /// The property.
    pub property: Option<&'a str>,
    /// How far.
    pub result: ReportResult,
    /// The properties concerned, read *now*.
    pub readings: &'a [Reading<'a>],
    /// Why, when failed or rejected.
    pub reason: Option<ReasonWord>,
    /// How much longer, milliseconds, with `working`.
    pub eta_ms: Option<u32>,
    /// The value was brought into the allowed range.
    pub clamped: bool,
    /// The operation was known already; nothing moved.
    pub dup: bool,
}

/// What the state is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DeviceState<'a> {
    /// The query that it answers; `None` if unasked.
    pub op: Option<&'a str>,
    /// The properties, read now.
    pub readings: &'a [Reading<'a>],
    /// Why it is sent.
    pub cause: CauseWord,
}

/// The greeting, with the description inline.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hello<'a> {
    /// What the board promises, 1 to 3.
    pub level: u8,
    /// Its firmware.
    pub fw: &'a str,
    /// Its model.
    pub model: &'a str,
    /// Hash of the description ([`desc_hash`]).
    pub desc: &'a str,
    /// The description.
    pub description: Description<'a>,
    /// All properties, read now.
    pub readings: &'a [Reading<'a>],
    /// Why the state is as it is; [`CauseWord::Boot`] in the first hello after a start.
    pub cause: CauseWord,
}

/// One event.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Event<'a> {
    /// The greeting.
    Hello(Hello<'a>),
    /// How far an operation is.
    ActionReport(ActionReport<'a>),
    /// What the state is.
    DeviceState(DeviceState<'a>),
    /// The task that drives is alive.
    Heartbeat,
}

/// The buffer is too small for the message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoRoom;

impl fmt::Display for NoRoom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no room for the message in the buffer")
    }
}

impl core::error::Error for NoRoom {}

/// Writes one event into a buffer and returns how many bytes it took. A buffer of
/// [`crate::limits::EVENT_BYTES_MAX`] makes sure that what was written is no longer than allowed.
///
/// # Errors
/// [`NoRoom`]; the buffer then holds a part that must not be sent.
pub fn write(envelope: &Envelope<'_>, event: &Event<'_>, buffer: &mut [u8]) -> Result<usize, NoRoom> {
    serde_json_core::to_slice(&Whole { envelope, event }, buffer).map_err(|_| NoRoom)
}

/// Writes the last will.
///
/// # Errors
/// [`NoRoom`].
pub fn write_will(boot: &str, buffer: &mut [u8]) -> Result<usize, NoRoom> {
    #[derive(Serialize)]
    struct Will<'a> {
        boot: &'a str,
    }
    serde_json_core::to_slice(&Will { boot }, buffer).map_err(|_| NoRoom)
}

/// A hash of a description, 16 hex digits.
pub type DescHash = heapless::String<16>;

/// The hash of a description (FNV-1a, 64 bits, over its JSON): the hub takes it as it is and only compares it, so any
/// hash does that changes when the description does. `scratch` must hold the description.
///
/// # Errors
/// [`NoRoom`].
pub fn desc_hash(description: &Description<'_>, scratch: &mut [u8]) -> Result<DescHash, NoRoom> {
    let len = serde_json_core::to_slice(description, scratch).map_err(|_| NoRoom)?;
    let bytes = scratch.get(..len).ok_or(NoRoom)?;
    let hash = bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3));
    let mut text = DescHash::new();
    fmt::Write::write_fmt(&mut text, format_args!("{hash:016x}")).map_err(|_| NoRoom)?;
    Ok(text)
}

struct Whole<'a> {
    envelope: &'a Envelope<'a>,
    event: &'a Event<'a>,
}

impl Serialize for Whole<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { envelope, event } = self;
        let mut out = serializer.serialize_struct("event", 16)?;
        let word = match event {
            Event::Hello(_) => EventWord::Hello,
            Event::ActionReport(_) => EventWord::DeviceActionReport,
            Event::DeviceState(_) => EventWord::DeviceState,
            Event::Heartbeat => EventWord::Heartbeat,
        };
        out.serialize_field("event", &word)?;
        if !envelope.session.is_empty() {
            out.serialize_field("session", envelope.session)?;
        }
        out.serialize_field("boot", envelope.boot)?;
        out.serialize_field("seq", &envelope.seq)?;
        out.serialize_field("up_ms", &envelope.up_ms)?;
        match event {
            Event::Hello(hello) => {
                out.serialize_field("proto", &PROTO)?;
                out.serialize_field("level", &hello.level)?;
                out.serialize_field("fw", hello.fw)?;
                out.serialize_field("model", hello.model)?;
                out.serialize_field("desc", hello.desc)?;
                out.serialize_field("properties", hello.description.properties)?;
                if !hello.description.actions.is_empty() {
                    out.serialize_field("actions", hello.description.actions)?;
                }
                if !hello.description.exclusive.is_empty() {
                    out.serialize_field("exclusive", hello.description.exclusive)?;
                }
                readings(&mut out, "state", hello.readings, true)?;
                out.serialize_field("cause", &hello.cause)?;
            }
            Event::ActionReport(report) => {
                out.serialize_field("op", report.op)?;
                out.serialize_field("action", report.action)?;
                if let Some(property) = report.property {
                    out.serialize_field("property", property)?;
                }
                out.serialize_field("result", &report.result)?;
                // An action leaves no state, and of what has no read-back there is none.
                if !report.readings.is_empty() {
                    readings(&mut out, "status", report.readings, false)?;
                }
                if let Some(reason) = report.reason {
                    out.serialize_field("reason", &reason)?;
                }
                if let Some(eta_ms) = report.eta_ms {
                    out.serialize_field("eta_ms", &eta_ms)?;
                }
                if report.clamped {
                    out.serialize_field("clamped", &true)?;
                }
                if report.dup {
                    out.serialize_field("dup", &true)?;
                }
            }
            Event::DeviceState(state) => {
                if let Some(op) = state.op {
                    out.serialize_field("op", op)?;
                }
                readings(&mut out, "status", state.readings, true)?;
                out.serialize_field("cause", &state.cause)?;
            }
            Event::Heartbeat => {}
        }
        out.end()
    }
}

fn readings<S: SerializeStruct>(
    out: &mut S,
    status: &'static str,
    all: &[Reading<'_>],
    seen: bool,
) -> Result<(), S::Error> {
    out.serialize_field(status, &Map(all, Column::Value))?;
    out.serialize_field("evidence", &Map(all, Column::Evidence))?;
    if seen && all.iter().any(|r| r.seen.is_some()) {
        out.serialize_field("seen", &Map(all, Column::Seen))?;
    }
    Ok(())
}

#[derive(Clone, Copy)]
enum Column {
    Value,
    Evidence,
    Seen,
}

/// One column of the readings, as an object by property.
struct Map<'a>(&'a [Reading<'a>], Column);

impl Serialize for Map<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for reading in self.0 {
            match (self.1, &reading.value, reading.seen) {
                (Column::Value, Some(value), _) => map.serialize_entry(reading.property, value)?,
                (Column::Evidence, Some(_), _) => map.serialize_entry(reading.property, &reading.evidence)?,
                (Column::Seen, _, Some(op)) => map.serialize_entry(reading.property, op)?,
                (Column::Value | Column::Evidence, None, _) | (Column::Seen, _, None) => {}
            }
        }
        map.end()
    }
}
