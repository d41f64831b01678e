//! The lines of a recording: JSON objects, one a line, so that `grep` and `jq` can read them too.
//!
//! | line | what |
//! |---|---|
//! | `{"truetwin_recording": 1, "hub": "0.1.0", "unix_ms": …}` | a process begins: all twins before are gone, `at` counts from here |
//! | `{"at", "device", "begins": {…}}` | a twin begins, with its times and bounds |
//! | `{"at", "device", "input": {…}, "decided": […]}` | one input and what the twin decided, in order |
//! | `{"at", …, "crashed": true}` | the same, and the actor crashed over it |
//! | `{"device", "gap": n}` | so many lines of the device are missing here |
//! | `{"device", "left_out": why}` | nothing of the device is recorded |
//! | `{"end": why, "inputs": n, "missing": n}` | the recording ends on purpose |
//!
//! Times and durations are whole nanoseconds, because a twin compares them exactly; numbers come back bit for bit. A field that is
//! nothing or an empty list is left out. Inputs are read back ([`read`]); decisions are compared as they stand, so they are read by
//! people and by `truetwin replay` of the same version only ([`VERSION`]).

mod decisions;
mod happenings;
mod plain;
#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test that fails there has said so")]
mod tests;
mod things;

use std::time::Instant;

use serde_json::{Value as Json, json};

use self::plain::{Read as _, Write as _, field};
pub use self::plain::{Wrong, Zero};
use crate::{
    property::DeviceId,
    twin::{
        input::{Effect, Input},
        settings::Settings,
    },
};

/// The version of the form. It grows with every change of an input, of a decision or of their forms.
pub const VERSION: u64 = 1;

/// The key that a recording begins with.
const HEAD: &str = "truetwin_recording";

/// A line as it is read.
#[derive(Clone, Debug, PartialEq)]
pub enum Line {
    /// A process begins.
    Head(Head),
    /// A twin begins.
    Begins {
        /// Whose.
        device: DeviceId,
        /// When.
        at: Instant,
        /// Its times and bounds.
        settings: Box<Settings>,
    },
    /// An input was taken in.
    Moment(Box<Moment>),
    /// Something is missing.
    Gap {
        /// Of which device.
        device: DeviceId,
        /// How many lines.
        missing: u64,
    },
    /// A device is not recorded.
    LeftOut {
        /// Which.
        device: DeviceId,
        /// Why.
        why: String,
    },
    /// The recording ends.
    End {
        /// Why.
        why: String,
        /// How many inputs the process recorded.
        inputs: u64,
        /// How many lines it could not record, those before a gap and those behind which nothing came any more.
        missing: u64,
    },
}

/// What a process says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    /// The version of the hub, or the name of what else wrote it.
    pub hub: String,
    /// When it began, Unix milliseconds; 0: in no time of this world.
    pub unix_ms: u64,
}

/// One input of a twin.
#[derive(Clone, Debug, PartialEq)]
pub struct Moment {
    /// Whose twin.
    pub device: DeviceId,
    /// When it was taken in.
    pub at: Instant,
    /// What it was.
    pub input: Input,
    /// What the twin decided, in the form of [`decided`].
    pub decided: Vec<Json>,
    /// The actor crashed over it, and said no more.
    pub crashed: bool,
}

/// The first line of a process.
pub fn head(head: &Head) -> String {
    json!({ HEAD: VERSION, "hub": head.hub, "unix_ms": head.unix_ms }).to_string()
}

/// A twin begins.
pub fn begins(zero: Zero, at: Instant, device: &DeviceId, settings: &Settings) -> String {
    json!({ "at": at.write(zero), "device": device.as_str(), "begins": settings.write(zero) }).to_string()
}

/// An input was taken in.
pub fn moment(zero: Zero, at: Instant, device: &DeviceId, input: &Input, effects: &[Effect], crashed: bool) -> String {
    let decided: Vec<Json> = effects.iter().map(|effect| decided(effect, zero)).collect();
    let mut line =
        json!({ "at": at.write(zero), "device": device.as_str(), "input": input.write(zero), "decided": decided });
    if crashed {
        line["crashed"] = Json::Bool(true);
    }
    line.to_string()
}

/// Lines of a device are missing.
pub fn gap(device: &DeviceId, missing: u64) -> String {
    json!({ "device": device.as_str(), "gap": missing }).to_string()
}

/// Nothing of a device is recorded.
pub fn left_out(device: &DeviceId, why: &str) -> String {
    json!({ "device": device.as_str(), "left_out": why }).to_string()
}

/// The recording ends on purpose.
pub fn end(why: &str, inputs: u64, missing: u64) -> String {
    json!({ "end": why, "inputs": inputs, "missing": missing }).to_string()
}

/// The form of a decision.
pub fn decided(effect: &Effect, zero: Zero) -> Json {
    effect.write(zero)
}

/// The form of an input.
pub fn taken(input: &Input, zero: Zero) -> Json {
    input.write(zero)
}

/// Why a line cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    /// It is no JSON: damaged, or torn.
    #[error("it is no JSON ({0})")]
    NoJson(String),
    /// It is none of a recording's lines.
    #[error("it is no line of a recording")]
    Strange,
    /// Something in it is not what it must be.
    #[error(transparent)]
    Wrong(#[from] Wrong),
    /// It was written in another version of the form.
    #[error("it begins a recording of version {found}, this program reads {VERSION}; use the truetwin that wrote it")]
    Version {
        /// Its version.
        found: String,
    },
}

/// Reads one line.
///
/// # Errors
/// [`Unreadable`], which names what is wrong in it.
pub fn read(line: &str, zero: Zero) -> Result<Line, Unreadable> {
    let json: Json = serde_json::from_str(line).map_err(|error| Unreadable::NoJson(error.to_string()))?;
    if let Some(version) = json.get(HEAD) {
        if version.as_u64() != Some(VERSION) {
            return Err(Unreadable::Version { found: version.to_string() });
        }
        let hub: std::sync::Arc<str> = field(&json, "hub", zero)?;
        return Ok(Line::Head(Head { hub: hub.to_string(), unix_ms: field(&json, "unix_ms", zero)? }));
    }
    let text = |name: &str| field::<std::sync::Arc<str>>(&json, name, zero).map(|text| text.to_string());
    let has = |name: &str| json.get(name).is_some();
    if has("end") {
        let (inputs, missing) = (field(&json, "inputs", zero)?, field(&json, "missing", zero)?);
        return Ok(Line::End { why: text("end")?, inputs, missing });
    }
    if !has("device") {
        return Err(Unreadable::Strange);
    }
    let device = field(&json, "device", zero)?;
    if has("gap") {
        return Ok(Line::Gap { device, missing: field(&json, "gap", zero)? });
    }
    if has("left_out") {
        return Ok(Line::LeftOut { device, why: text("left_out")? });
    }
    if has("begins") {
        let settings = Box::new(field(&json, "begins", zero)?);
        return Ok(Line::Begins { device, at: field(&json, "at", zero)?, settings });
    }
    if !has("input") {
        return Err(Unreadable::Strange);
    }
    let Some(Json::Array(decided)) = json.get("decided") else {
        return Err(Wrong::wanted("a list", json.get("decided").unwrap_or(&Json::Null)).within("decided").into());
    };
    let crashed = match json.get("crashed") {
        None => false,
        Some(crashed) => bool::read(crashed, zero).map_err(|wrong| wrong.within("crashed"))?,
    };
    let moment = Moment {
        device,
        at: field(&json, "at", zero)?,
        input: field(&json, "input", zero)?,
        decided: decided.clone(),
        crashed,
    };
    Ok(Line::Moment(Box::new(moment)))
}
