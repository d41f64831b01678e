//! What a device says of itself, as its dialect has read it: greetings and reports.

use std::{sync::Arc, time::Duration};

use crate::{
    property::{Description, Evidence, PropertyName, Value},
    twin::words::{OpId, Reason},
};

/// A device's greeting (wire protocol, *Greeting*): a full snapshot (semantics 2.3).
#[derive(Clone, Debug, PartialEq)]
pub struct Hello {
    /// An opaque token of this run of the device.
    pub boot: Arc<str>,
    /// Its number in this boot.
    pub seq: u32,
    /// What it has.
    pub description: Arc<Description>,
    /// All its values.
    pub status: Vec<Status>,
    /// Why the values are as they are.
    pub cause: Cause,
    /// The last operation finished on each property.
    pub seen: Vec<(PropertyName, OpId)>,
}

/// One value in a report.
#[derive(Clone, Debug, PartialEq)]
pub struct Status {
    /// The property.
    pub property: PropertyName,
    /// The value, not yet checked against the description.
    pub value: Value,
    /// How it was confirmed; a device that does not say so claims no more than its firmware.
    pub evidence: Evidence,
}

/// Why a device reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// A command.
    Command,
    /// A person or a program at the device.
    Local,
    /// It has just started.
    Boot,
    /// The time for it had come.
    Periodic,
    /// It was asked.
    Query,
    /// It went to its safe level because the hub was gone (semantics 6.4).
    Failsafe,
    /// It does not say.
    Unknown,
}

/// One report of a device, but for its hello.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// The run of the device that it belongs to.
    pub boot: Arc<str>,
    /// Its number in this boot.
    pub seq: u32,
    /// Whether it was delivered with the RETAIN flag.
    pub retained: bool,
    /// The values in it, read as it was written.
    pub status: Vec<Status>,
    /// What it says.
    pub body: Body,
}

/// What a report says.
#[derive(Clone, Debug, PartialEq)]
pub enum Body {
    /// How far an operation is.
    Action {
        /// The operation.
        op: OpId,
        /// How far.
        result: ActionResult,
        /// Why it failed or was rejected.
        reason: Option<Reason>,
        /// What it still needs.
        eta: Option<Duration>,
        /// The device brought the value into its range (semantics 3.9).
        clamped: bool,
    },
    /// The state, asked for or not.
    State {
        /// The question that it answers.
        op: Option<OpId>,
        /// Why it was sent.
        cause: Cause,
        /// The last operation finished on each property.
        seen: Vec<(PropertyName, OpId)>,
    },
    /// The control task is alive.
    Heartbeat,
}

/// How far a device is with an operation (wire protocol, *Events*).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ActionResult {
    /// It has the command.
    Received,
    /// It has begun to drive.
    Executing,
    /// It is still driving.
    Working,
    /// Done, and read back by the device itself.
    Completed,
    /// Tried, and not done.
    Failed,
    /// Refused; nothing was begun.
    Rejected,
    /// A word that this version does not know.
    Unknown,
}
