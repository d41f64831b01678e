//! The facts of an answer as fields, in the order of its text.

use std::time::Duration;

use serde::{Serialize, Serializer, ser::SerializeMap};
use serde_json::{Map, Value as Json};

use super::{Row, json_value, millis, together};
use crate::{
    property::Role,
    twin::words::{Measured, Stage},
};

/// Everything an answer may carry, in the order of the text item; what does not apply is absent.
#[derive(Default, Serialize)]
pub(super) struct Facts {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) success: Option<bool>,
    pub(super) result: &'static str,
    pub(super) next: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) outcome: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) stage: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) device: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) device_state: Option<Map<String, Json>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) trust: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) age_s: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) confirmed_by: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) not_checked: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) attribution: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) late_success: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) reverted: Option<Json>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) measured: Option<MeasuredFacts>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) joined: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) superseded_by: Option<Json>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) limited: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) recorded: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) failsafe: Option<Json>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) may_move_late: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) held: Option<Vec<HeldFacts>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) amended: Option<Vec<AmendedFacts>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) moving: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) online: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) last_heard_s: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) asked: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) near: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) candidates: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) parameter: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) sent: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) allowed: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) limit: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) needed_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) danger: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) confirm: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) code: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) open_for_s: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tries_left: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) confirmed: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) of: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) not_confirmed: Option<Vec<together::MemberRow>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) confirmed_devices: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) devices: Option<Vec<Row>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) more: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) pong: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) operation: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) eta_s: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) elapsed_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) stages_ms: Option<StagesMs>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) skipped: Option<Vec<&'static str>>,
}

/// What an independent measurement said (semantics 3.10).
#[derive(Serialize)]
pub(super) struct MeasuredFacts {
    pub(super) device: String,
    pub(super) property: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) value: Option<Json>,
    pub(super) agrees: bool,
}

impl MeasuredFacts {
    pub(super) fn of(measured: &Measured) -> Self {
        Self {
            device: measured.device.to_string(),
            property: measured.property.to_string(),
            value: measured.value.as_ref().map(|v| json_value(v, Role::Sensor)),
            agrees: measured.agrees,
        }
    }
}

/// A wish that outlives its operation, in a state (semantics 6.2).
#[derive(Serialize)]
pub(super) struct HeldFacts {
    pub(super) property: String,
    pub(super) value: Json,
    pub(super) state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) reason: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) valid_for_s: Option<u64>,
}

/// An operation whose answer is no longer true, in a state (semantics 6.3).
#[derive(Serialize)]
pub(super) struct AmendedFacts {
    pub(super) property: String,
    pub(super) operation: String,
    pub(super) outcome: &'static str,
    pub(super) late_success: bool,
    pub(super) reverted: bool,
}

/// Milliseconds in each stage, in the order they were entered; a stage that was entered twice is added up.
pub(super) struct StagesMs(Vec<(&'static str, u64)>);

impl StagesMs {
    pub(super) fn new(stages: &[(Stage, Duration)]) -> Self {
        let mut sums: Vec<(&'static str, u64)> = Vec::with_capacity(stages.len());
        for (stage, time) in stages {
            match sums.iter_mut().find(|(known, _)| *known == stage.as_str()) {
                Some((_, sum)) => *sum = sum.saturating_add(millis(*time)),
                None => sums.push((stage.as_str(), millis(*time))),
            }
        }
        Self(sums)
    }
}

/// The stages that an operation went past without their being seen (semantics 8.1): what the device cannot show, or did not
/// have to. Those before the bytes left the hub, and a sensor that was never asked for, are none.
pub(super) fn skipped(stages: &[(Stage, Duration)], reached: Stage) -> Option<Vec<&'static str>> {
    const SHOWN: [Stage; 4] =
        [Stage::WaitingDeviceAck, Stage::WaitingDeviceStart, Stage::WaitingDeviceReport, Stage::WaitingReadBack];
    let sent = stages.iter().any(|(stage, _)| *stage >= Stage::WaitingBroker);
    let seen = |wanted: &Stage| stages.iter().any(|(stage, _)| stage == wanted);
    let unseen = SHOWN.iter().filter(|stage| **stage < reached && !seen(stage)).map(|stage| stage.as_str());
    Some(unseen.collect::<Vec<_>>()).filter(|unseen| sent && !unseen.is_empty())
}

impl Serialize for StagesMs {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (stage, ms) in &self.0 {
            map.serialize_entry(stage, ms)?;
        }
        map.end()
    }
}
