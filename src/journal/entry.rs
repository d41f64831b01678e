//! What can be kept: plain columns. Whoever hands them in decides on the form of `json` and of values.

/// One thing to keep.
#[derive(Clone, Debug, PartialEq)]
pub enum Entry {
    /// An operation was taken in.
    Admitted(Admission),
    /// An operation that was taken in never began: it was refused after all.
    NotTaken {
        /// Its id.
        op: String,
    },
    /// An operation ended, or what is known of its end has changed (late success, revert): the row is replaced.
    Ended(OperationRow),
    /// A set point is held.
    Held(HeldRow),
    /// A set point is held no more.
    Unheld {
        /// The device.
        device: String,
        /// Its property.
        property: String,
    },
    /// The last value that a device reported.
    Reported(ReportedRow),
    /// What a device says it has, and which properties its owner has not accepted yet (semantics 2.7).
    Described {
        /// The device.
        device: String,
        /// As JSON.
        json: String,
    },
    /// One line of the audit.
    Audited {
        /// When, Unix milliseconds.
        at_ms: i64,
        /// As JSON.
        json: String,
    },
    /// A device was removed: nothing is left of it but its operations and audit.
    Forgotten {
        /// The device.
        device: String,
    },
    /// A retained message of a service account took the place of the one on its topic.
    Retained(RetainedRow),
    /// A topic has no retained message any more.
    Unretained {
        /// The topic.
        topic: String,
    },
    /// A value by name: epoch, the hub's name.
    Named {
        /// The name.
        name: String,
        /// The value.
        value: String,
    },
}

impl Entry {
    /// Bytes of what may be large in it.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Admitted(admission) => admission.json.len(),
            Self::Ended(operation) => operation.json.len(),
            Self::Held(held) => held.json.len(),
            Self::Reported(reported) => reported.json.len(),
            Self::Described { json, .. } | Self::Audited { json, .. } => json.len(),
            Self::Named { value, .. } => value.len(),
            Self::Retained(row) => row.topic.len() + row.payload.len(),
            Self::Unretained { topic } => topic.len(),
            Self::NotTaken { .. } | Self::Unheld { .. } | Self::Forgotten { .. } => 0,
        }
    }

    /// The operation whose admission is void with this.
    pub(super) fn ends(&self) -> Option<&str> {
        match self {
            Self::NotTaken { op } => Some(op),
            Self::Ended(operation) => Some(&operation.op),
            Self::Admitted(_)
            | Self::Held(_)
            | Self::Unheld { .. }
            | Self::Reported(_)
            | Self::Described { .. }
            | Self::Audited { .. }
            | Self::Forgotten { .. }
            | Self::Named { .. }
            | Self::Retained(_)
            | Self::Unretained { .. } => None,
        }
    }
}

/// An operation that was taken in and has not ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Admission {
    /// Its id.
    pub op: String,
    /// Its device.
    pub device: String,
    /// Its property or action.
    pub what: String,
    /// Who asked.
    pub caller: String,
    /// When, Unix milliseconds.
    pub at_ms: i64,
    /// Its wish, as JSON.
    pub json: String,
}

/// An operation that has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OperationRow {
    /// Its id.
    pub op: String,
    /// Its device.
    pub device: String,
    /// When it ended, Unix milliseconds.
    pub at_ms: i64,
    /// Everything about it, as JSON.
    pub json: String,
}

/// A set point.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldRow {
    /// The device.
    pub device: String,
    /// Its property.
    pub property: String,
    /// Everything about it, as JSON.
    pub json: String,
}

/// A last reported value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReportedRow {
    /// The device.
    pub device: String,
    /// Its property.
    pub property: String,
    /// When it was received, Unix milliseconds.
    pub at_ms: i64,
    /// Everything about it, as JSON.
    pub json: String,
}

/// A retained message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RetainedRow {
    /// Its topic.
    pub topic: String,
    /// The quality of service with which it was published: 0 or 1.
    pub qos: u8,
    /// When it expires, Unix milliseconds.
    pub expires_ms: Option<i64>,
    /// Its properties, in MQTT 5's encoding.
    pub properties: Vec<u8>,
    /// Its payload.
    pub payload: Vec<u8>,
}
