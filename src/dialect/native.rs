//! The native protocol (`firmware/wire/protocol.md`): events into twin inputs, commands into bytes.
//!
//! The types and their bounds are the wire crate's, shared with the boards; here they become the hub's own words. A
//! mistake in an event is a [`Mistake`], which goes back to the device with the path and what is allowed.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use bytes::Bytes;
pub use truetwin_wire::hub::DecodeError as Mistake;
use truetwin_wire::{
    Scalar, hub,
    words::{CauseWord, ClassWord, ErrorWord, EvidenceWord, KindWord, ReasonWord, ReportResult, RoleWord},
};

use crate::{
    property::{
        Action, Class, Confirmation, Description, Evidence, Failsafe, Kind, Property, PropertyName, Role, Terms, Value,
        ValueError,
    },
    twin::{
        input::{ActionResult, Body, Cause, Command, Hello, Report, Status},
        words::{OpId, Reason},
    },
};

/// How long a device that does not say so is expected to take, milliseconds: a relay (semantics 4.9).
const EXPECTED_MS: u32 = 300;

/// How long a switched thing must hold before it is read back, if the device does not say so, milliseconds: a relay's
/// contact bounces for some ten (semantics 3.6).
const STABLE_MS: u32 = 200;

/// Between the beginnings of two drives of a relay, if the device says nothing else (semantics 4.4).
const MIN_INTERVAL_MS: u32 = 500;

/// Who this hub is, in its welcomes.
#[derive(Clone, Debug)]
pub struct Identity {
    /// Random for each data folder.
    pub hub: Arc<str>,
    /// Grows with each start.
    pub epoch: u32,
    /// How often a device sends its heartbeat.
    pub heartbeat: Duration,
    /// The zero of `hub_ms`.
    pub started: Instant,
}

/// What a device sent.
#[derive(Debug)]
pub enum Heard {
    /// A greeting.
    Hello(Hello),
    /// Any other report.
    Report(Report),
}

impl Heard {
    /// What it was, for metrics.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Hello(_) => "hello",
            Self::Report(report) => match report.body {
                Body::Action { .. } => "device_action_report",
                Body::State { .. } => "device_state",
                Body::Heartbeat => "heartbeat",
            },
        }
    }
}

/// Reads one event; also tells how many words in it this version does not know.
///
/// # Errors
/// A [`Mistake`], for the device.
pub fn decode(payload: &[u8], retained: bool) -> Result<(Heard, u32), Mistake> {
    let incoming = hub::decode_event(payload)?;
    let (boot, seq): (Arc<str>, u32) = (incoming.boot, incoming.seq);
    let report = |status, body| Heard::Report(Report { boot: boot.clone(), seq, retained, status, body });
    let heard = match incoming.event {
        hub::Event::Hello(hello) => Heard::Hello(read_hello(boot, seq, hello)?),
        // The hub never asks for pages yet, so it is none that anyone waits for.
        hub::Event::Description(_) => {
            let allowed = Some("the description inside the hello");
            return Err(Mistake::new(Some(seq), ErrorWord::UnknownEvent, Some("event"), allowed));
        }
        hub::Event::ActionReport(action) => report(
            status(action.status, &action.evidence),
            Body::Action {
                op: action.op.into(),
                result: result(action.result),
                reason: action.reason.map(reason),
                eta: action.eta_ms.map(|ms| Duration::from_millis(ms.into())),
                clamped: action.clamped,
            },
        ),
        hub::Event::DeviceState(state) => report(
            status(state.status, &state.evidence),
            Body::State { op: state.op.map(OpId::from), cause: cause(state.cause), seen: seen(state.seen) },
        ),
        hub::Event::Heartbeat => report(Vec::new(), Body::Heartbeat),
    };
    Ok((heard, incoming.unknown_words))
}

/// A command's word on the wire, for metrics.
pub fn word(command: &Command) -> &'static str {
    match command {
        Command::Welcome { .. } => "welcome",
        Command::Set { .. } => "set",
        Command::Run { .. } => "run",
        Command::GetState { .. } => "get_device_state",
        Command::Withdraw { .. } => "withdraw",
    }
}

/// Writes one command of a session.
pub fn encode(identity: &Identity, session: &str, now: Instant, command: &Command) -> Bytes {
    let session = session.to_owned();
    let hub_ms = whole_ms(now.saturating_duration_since(identity.started));
    let command = match command {
        Command::Welcome { .. } => hub::Command::Welcome {
            session,
            hub: identity.hub.to_string(),
            epoch: identity.epoch,
            hub_ms,
            heartbeat_ms: clamped_ms(identity.heartbeat),
            warnings: Vec::new(),
        },
        Command::Set { op, property, value, ttl } => hub::Command::Set {
            session,
            hub_ms,
            op: op.to_string(),
            property: property.to_string(),
            value: scalar(value),
            ttl_ms: clamped_ms(*ttl),
        },
        Command::Run { op, action, args, ttl } => hub::Command::Run {
            session,
            hub_ms,
            op: op.to_string(),
            action: action.to_string(),
            args: args.iter().map(|(name, value)| (name.to_string(), scalar(value))).collect(),
            ttl_ms: clamped_ms(*ttl),
        },
        Command::GetState { op, property } => hub::Command::GetDeviceState {
            session,
            hub_ms,
            op: op.to_string(),
            property: property.as_ref().map(ToString::to_string),
        },
        Command::Withdraw { op } => hub::Command::Withdraw { session, hub_ms, op: op.to_string() },
    };
    hub::encode(&command).into()
}

/// The mistake of a value that does not fit the device's own description.
pub fn malformed(of_seq: u32, property: &PropertyName, error: Option<&ValueError>) -> Mistake {
    let path = format!("status.{property}");
    match error {
        None => {
            Mistake::new(Some(of_seq), ErrorWord::UnknownProperty, Some(&path), Some("a property of the description"))
        }
        Some(error) => {
            let word = match error {
                ValueError::WrongKind { .. } => ErrorWord::WrongType,
                ValueError::OutOfRange { .. } | ValueError::OffStep { .. } | ValueError::NotListed { .. } => {
                    ErrorWord::OutOfRange
                }
                ValueError::BadText { .. } => ErrorWord::BadText,
            };
            Mistake::new(Some(of_seq), word, Some(&path), Some(&error.to_string()))
        }
    }
}

/// The mistake of a hello that carries the boot and the number of an earlier one: what makes random numbers has no seed.
pub fn stale_hello(of_seq: u32) -> Mistake {
    let allowed = "another token at each start of the device, and numbers that grow";
    Mistake::new(Some(of_seq), ErrorWord::OutOfRange, Some("boot"), Some(allowed))
}

fn read_hello(boot: Arc<str>, seq: u32, hello: hub::Hello) -> Result<Hello, Mistake> {
    if !hello.inline {
        let allowed = Some("the description inside the hello");
        return Err(Mistake::new(Some(seq), ErrorWord::MissingField, Some("properties"), allowed));
    }
    let label = |p: &hub::PropertyWire| Some((p.name.clone(), p.label.as_deref()?.into()));
    let labels = hello.properties.iter().filter_map(label).collect();
    let properties: Vec<Property> = hello.properties.into_iter().map(property).collect();
    let group = |names: Vec<String>| names.into_iter().map(Into::into).collect();
    let exclusive = hello.exclusive.into_iter().map(group).collect();
    let harmful = properties.iter().map(|p| p.role).find(|role| HARMFUL.contains(role));
    Ok(Hello {
        boot,
        seq,
        description: Arc::new(Description {
            properties,
            actions: hello.actions.into_iter().map(|one| action(one, harmful)).collect(),
            exclusive,
            labels,
            level: hello.level,
        }),
        status: status(hello.state, &hello.evidence),
        cause: cause(hello.cause),
        seen: seen(hello.seen),
    })
}

fn property(wire: hub::PropertyWire) -> Property {
    let role = wire.role.map_or(Role::Other, role);
    let kind = match wire.kind {
        KindWord::Bool => Kind::Bool,
        KindWord::Integer => Kind::Integer,
        KindWord::Number => Kind::Number,
        KindWord::Enum => Kind::Enum,
        KindWord::Colour => Kind::Colour,
        // A sort of value that this version does not know is shown as it comes.
        KindWord::Text | KindWord::Unknown => Kind::Text,
    };
    let known_kind = wire.kind != KindWord::Unknown;
    Property {
        name: wire.name,
        role,
        kind,
        unit: wire.unit,
        min: wire.min,
        max: wire.max,
        step: wire.step,
        tolerance: wire.tolerance,
        values: wire.values.into_iter().map(Into::into).collect(),
        class: match wire.class {
            Some(ClassWord::Held) => Class::Held,
            Some(ClassWord::Momentary | ClassWord::Unknown) | None => Class::Momentary,
        },
        feedback: evidence(wire.feedback),
        expected_ms: wire.expected_ms.unwrap_or(EXPECTED_MS),
        stable_ms: wire.stable_ms.unwrap_or(if kind == Kind::Bool { STABLE_MS } else { 0 }),
        min_interval_ms: wire.min_interval_ms.unwrap_or(if kind == Kind::Bool { MIN_INTERVAL_MS } else { 0 }),
        settable: known_kind && wire.settable.unwrap_or(role != Role::Sensor),
        repeatable: wire.repeatable.unwrap_or(true),
        terms: Terms {
            clamps: wire.clamps,
            failsafe: wire.failsafe.map(|f| Failsafe { value: value_of(&f.value), after_ms: f.after_ms }),
            confirmation: by_role_of(wire.role),
            ..Terms::default()
        },
    }
}

/// What can do harm, and with it the actions of its device that do not say what they move (semantics 7.2).
const HARMFUL: [Role; 3] = [Role::Lock, Role::Door, Role::Heater];

/// What a role says of confirming: one that this version does not know may be a gate (semantics 7.2).
fn by_role_of(role: Option<RoleWord>) -> Confirmation {
    Confirmation { strange_role: role == Some(RoleWord::Unknown), ..Confirmation::default() }
}

fn action(wire: hub::ActionWire, harmful: Option<Role>) -> Action {
    Action {
        name: wire.name,
        role: wire.role.map_or(harmful.unwrap_or(Role::Other), role),
        feedback: wire.feedback.map_or(Evidence::Firmware, evidence),
        expected_ms: wire.expected_ms.unwrap_or(EXPECTED_MS),
        repeatable: wire.repeatable,
        confirmation: by_role_of(wire.role),
    }
}

fn status(values: Vec<(Arc<str>, Scalar)>, said: &[(Arc<str>, EvidenceWord)]) -> Vec<Status> {
    let of = |name: &str| said.iter().find(|(property, _)| **property == *name).map(|(_, word)| *word);
    values
        .into_iter()
        .map(|(name, value)| Status {
            // A device that does not say how it knows claims no more than its own software.
            evidence: of(&name).map_or(Evidence::Firmware, evidence),
            property: name,
            value: value_of(&value),
        })
        .collect()
}

fn value_of(scalar: &Scalar) -> Value {
    match scalar {
        Scalar::Bool(value) => Value::Bool(*value),
        Scalar::Integer(value) => Value::Integer(*value),
        Scalar::Number(value) => Value::Number(*value),
        Scalar::Text(text) => Value::Text(text.as_str().into()),
    }
}

fn scalar(value: &Value) -> Scalar {
    let empty = || Scalar::text("").expect("the empty text is within every bound");
    match value {
        Value::Bool(value) => Scalar::Bool(*value),
        Value::Integer(value) => Scalar::Integer(*value),
        // Normalised values are finite and texts within 128 bytes (semantics 2.5); a board refuses an empty text.
        Value::Number(value) => Scalar::number(*value).unwrap_or_else(empty),
        Value::Text(text) => Scalar::text(text).unwrap_or_else(|_| empty()),
    }
}

fn seen(seen: Vec<(Arc<str>, Arc<str>)>) -> Vec<(PropertyName, OpId)> {
    seen.into_iter().map(|(property, op)| (property, op.into())).collect()
}

fn evidence(word: EvidenceWord) -> Evidence {
    match word {
        EvidenceWord::None | EvidenceWord::Unknown => Evidence::None,
        EvidenceWord::Sent => Evidence::Sent,
        EvidenceWord::Received => Evidence::Received,
        EvidenceWord::Firmware => Evidence::Firmware,
        EvidenceWord::Pin => Evidence::Pin,
        EvidenceWord::Sensor => Evidence::Sensor,
    }
}

fn cause(word: CauseWord) -> Cause {
    match word {
        CauseWord::Command => Cause::Command,
        CauseWord::Local => Cause::Local,
        CauseWord::Boot => Cause::Boot,
        CauseWord::Periodic => Cause::Periodic,
        // What a device does by itself while the hub is gone is no person's touch (semantics 6.4).
        CauseWord::Failsafe => Cause::Failsafe,
        CauseWord::Query => Cause::Query,
        CauseWord::Unknown => Cause::Unknown,
    }
}

fn result(word: ReportResult) -> ActionResult {
    match word {
        ReportResult::Received => ActionResult::Received,
        ReportResult::Executing => ActionResult::Executing,
        ReportResult::Working => ActionResult::Working,
        ReportResult::Completed => ActionResult::Completed,
        ReportResult::Failed => ActionResult::Failed,
        ReportResult::Rejected => ActionResult::Rejected,
        ReportResult::Unknown => ActionResult::Unknown,
    }
}

fn reason(word: ReasonWord) -> Reason {
    match word {
        ReasonWord::Stuck => Reason::Stuck,
        ReasonWord::OutOfRange => Reason::OutOfRange,
        ReasonWord::Busy => Reason::Busy,
        ReasonWord::Interrupted => Reason::Interrupted,
        ReasonWord::Expired => Reason::Expired,
        ReasonWord::Superseded => Reason::Superseded,
        ReasonWord::Withdrawn => Reason::Withdrawn,
        ReasonWord::Unsupported => Reason::Unsupported,
        ReasonWord::Malformed => Reason::Malformed,
        ReasonWord::Power => Reason::Power,
        ReasonWord::Unknown => Reason::Unknown,
    }
}

fn role(word: RoleWord) -> Role {
    match word {
        RoleWord::Light => Role::Light,
        RoleWord::Socket => Role::Socket,
        RoleWord::Lock => Role::Lock,
        RoleWord::Door => Role::Door,
        RoleWord::Blind => Role::Blind,
        RoleWord::Valve => Role::Valve,
        RoleWord::Heater => Role::Heater,
        RoleWord::Fan => Role::Fan,
        RoleWord::Pump => Role::Pump,
        RoleWord::Sensor => Role::Sensor,
        RoleWord::Other | RoleWord::Unknown => Role::Other,
    }
}

fn whole_ms(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

fn clamped_ms(duration: Duration) -> u32 {
    u32::try_from(duration.as_millis()).unwrap_or(u32::MAX)
}
