//! Writing one command.

use serde::{
    Serialize, Serializer,
    ser::{SerializeMap, SerializeStruct},
};

use super::shown;
use crate::{
    limits::{ARGS_BYTES_MAX, ARGS_MAX, COMMAND_BYTES_MAX},
    scalar::Scalar,
    words::{CommandWord, ErrorWord},
};

/// One message from the hub to a device. `hub_ms` is the hub's monotonic clock, milliseconds.
#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    /// The greeting is accepted.
    Welcome {
        /// The name of this connection; commands carry it.
        session: String,
        /// This hub, random per data folder.
        hub: String,
        /// Grows with each start.
        epoch: u32,
        /// The hub's clock.
        hub_ms: u64,
        /// How often to send a heartbeat, milliseconds.
        heartbeat_ms: u32,
        /// What is odd about the hello, as sentences; those that do not fit into one command are left out.
        warnings: Vec<String>,
    },
    /// The greeting is not accepted.
    Refused {
        /// Why.
        reason: ErrorWord,
        /// Where in the hello.
        path: Option<String>,
        /// What is allowed there.
        allowed: Option<String>,
    },
    /// Send a page of the description.
    Describe {
        /// From 0.
        page: u32,
    },
    /// An event could not be taken in.
    Error {
        /// Its `seq`.
        of_seq: Option<u32>,
        /// Why.
        reason: ErrorWord,
        /// Where in it.
        path: Option<String>,
        /// What is allowed there.
        allowed: Option<String>,
    },
    /// Make a property have a value.
    Set {
        /// The device's session.
        session: String,
        /// The hub's clock.
        hub_ms: u64,
        /// The operation.
        op: String,
        /// The property.
        property: String,
        /// The value.
        value: Scalar,
        /// Until when it may begin, milliseconds after `hub_ms`.
        ttl_ms: u32,
    },
    /// Do something that leaves no state.
    Run {
        /// The device's session.
        session: String,
        /// The hub's clock.
        hub_ms: u64,
        /// The operation.
        op: String,
        /// The action.
        action: String,
        /// Its arguments, at most [`crate::limits::ARGS_MAX`]. Whoever makes them must see to it that the command fits
        /// ([`Command::fits`]); one that does not is answered by the device's `too long`, and nothing moves.
        args: Vec<(String, Scalar)>,
        /// Until when it may begin, milliseconds after `hub_ms`.
        ttl_ms: u32,
    },
    /// Say what the state is now.
    GetDeviceState {
        /// The device's session.
        session: String,
        /// The hub's clock.
        hub_ms: u64,
        /// The query.
        op: String,
        /// One property; without it all.
        property: Option<String>,
    },
    /// Do not begin this operation any more.
    Withdraw {
        /// The device's session.
        session: String,
        /// The hub's clock.
        hub_ms: u64,
        /// The operation.
        op: String,
    },
    /// Send the last marks.
    GetLog {
        /// The device's session.
        session: String,
        /// The hub's clock.
        hub_ms: u64,
        /// The query.
        op: String,
    },
}

impl Command {
    /// Its word.
    pub fn word(&self) -> CommandWord {
        match self {
            Self::Welcome { .. } => CommandWord::Welcome,
            Self::Refused { .. } => CommandWord::Refused,
            Self::Describe { .. } => CommandWord::Describe,
            Self::Error { .. } => CommandWord::Error,
            Self::Set { .. } => CommandWord::Set,
            Self::Run { .. } => CommandWord::Run,
            Self::GetDeviceState { .. } => CommandWord::GetDeviceState,
            Self::Withdraw { .. } => CommandWord::Withdraw,
            Self::GetLog { .. } => CommandWord::GetLog,
        }
    }

    /// Whether a device will read it: at most 512 bytes, and of a `run` the arguments within their bounds. Only a `run` can
    /// be longer.
    pub fn fits(&self) -> bool {
        let args_fit = match self {
            Self::Run { args, .. } => {
                let text = serde_json::to_vec(&Map(args)).expect("all keys are texts");
                args.len() <= ARGS_MAX && text.len() <= ARGS_BYTES_MAX
            }
            Self::Welcome { .. }
            | Self::Refused { .. }
            | Self::Describe { .. }
            | Self::Error { .. }
            | Self::Set { .. }
            | Self::GetDeviceState { .. }
            | Self::Withdraw { .. }
            | Self::GetLog { .. } => true,
        };
        args_fit && encode(self).len() <= COMMAND_BYTES_MAX
    }
}

/// Writes one command: at most 512 bytes as long as its names and ids are within their bounds (and for a `run`, its
/// arguments are). Of a welcome's warnings those that fit are kept; `path` and `allowed` are shortened to 64 characters.
pub fn encode(command: &Command) -> Vec<u8> {
    let mut command = command.clone();
    loop {
        let bytes = serde_json::to_vec(&command).expect("all keys are texts and writing into memory does not fail");
        let shorter = match &mut command {
            Command::Welcome { warnings, .. } if bytes.len() > COMMAND_BYTES_MAX => warnings.pop().is_some(),
            Command::Welcome { .. }
            | Command::Refused { .. }
            | Command::Describe { .. }
            | Command::Error { .. }
            | Command::Set { .. }
            | Command::Run { .. }
            | Command::GetDeviceState { .. }
            | Command::Withdraw { .. }
            | Command::GetLog { .. } => false,
        };
        if !shorter {
            return bytes;
        }
    }
}

impl Serialize for Command {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut out = serializer.serialize_struct("command", 8)?;
        out.serialize_field("command", &self.word())?;
        match self {
            Self::Welcome { session, hub, epoch, hub_ms, heartbeat_ms, warnings } => {
                head(&mut out, session, *hub_ms)?;
                out.serialize_field("hub", hub)?;
                out.serialize_field("epoch", epoch)?;
                out.serialize_field("heartbeat_ms", heartbeat_ms)?;
                if !warnings.is_empty() {
                    out.serialize_field("warnings", warnings)?;
                }
            }
            Self::Refused { reason, path, allowed } => mistake(&mut out, *reason, path.as_ref(), allowed.as_ref())?,
            Self::Describe { page } => out.serialize_field("page", page)?,
            Self::Error { of_seq, reason, path, allowed } => {
                if let Some(of_seq) = of_seq {
                    out.serialize_field("of_seq", of_seq)?;
                }
                mistake(&mut out, *reason, path.as_ref(), allowed.as_ref())?;
            }
            Self::Set { session, hub_ms, op, property, value, ttl_ms } => {
                head(&mut out, session, *hub_ms)?;
                out.serialize_field("op", op)?;
                out.serialize_field("property", property)?;
                out.serialize_field("value", value)?;
                out.serialize_field("ttl_ms", ttl_ms)?;
            }
            Self::Run { session, hub_ms, op, action, args, ttl_ms } => {
                head(&mut out, session, *hub_ms)?;
                out.serialize_field("op", op)?;
                out.serialize_field("action", action)?;
                if !args.is_empty() {
                    out.serialize_field("args", &Map(args))?;
                }
                out.serialize_field("ttl_ms", ttl_ms)?;
            }
            Self::GetDeviceState { session, hub_ms, op, property } => {
                head(&mut out, session, *hub_ms)?;
                out.serialize_field("op", op)?;
                if let Some(property) = property {
                    out.serialize_field("property", property)?;
                }
            }
            Self::Withdraw { session, hub_ms, op } | Self::GetLog { session, hub_ms, op } => {
                head(&mut out, session, *hub_ms)?;
                out.serialize_field("op", op)?;
            }
        }
        out.end()
    }
}

fn head<S: SerializeStruct>(out: &mut S, session: &str, hub_ms: u64) -> Result<(), S::Error> {
    out.serialize_field("session", session)?;
    out.serialize_field("hub_ms", &hub_ms)
}

fn mistake<S: SerializeStruct>(
    out: &mut S,
    reason: ErrorWord,
    path: Option<&String>,
    allowed: Option<&String>,
) -> Result<(), S::Error> {
    out.serialize_field("reason", &reason)?;
    if let Some(path) = path {
        out.serialize_field("path", &shown(path))?;
    }
    allowed.map_or(Ok(()), |allowed| out.serialize_field("allowed", &shown(allowed)))
}

struct Map<'a>(&'a [(String, Scalar)]);

impl Serialize for Map<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        self.0.iter().try_for_each(|(name, value)| map.serialize_entry(name, value))?;
        map.end()
    }
}
