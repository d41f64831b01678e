//! The closed sets of words that a twin speaks in (semantics 8): the same in code, metrics, answers and documents.
//!
//! Facts only; the sentences that people hear are made of them in [`crate::answer`].

use std::{fmt, sync::Arc, time::Duration};

use crate::property::{DeviceId, Evidence, PropertyName, Value, ValueError};

/// The id of an operation or a query, unique for ever: 1 to 16 bytes on the wire; the hub makes 12 random hex digits.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OpId(Arc<str>);

impl From<Arc<str>> for OpId {
    fn from(text: Arc<str>) -> Self {
        Self(text)
    }
}

impl OpId {
    /// Takes an id as it stands.
    pub fn new(text: &str) -> Self {
        Self(text.into())
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for OpId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Declares a closed enum whose variants are words, with `ALL` and `as_str`.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $word:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name { $($(#[$vdoc])* $variant,)+ }

        impl $name {
            /// All words, in order.
            pub const ALL: &[Self] = &[$(Self::$variant,)+];

            /// The word in answers, metrics and documents.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word,)+ }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}

words! {
    /// What an operation is waiting for (semantics 8.1), in order.
    Stage {
        /// Being checked.
        Admission = "admission",
        /// Behind another operation on the same property, or for a device that was away for a moment.
        Queued = "queued",
        /// For the bytes to be written to the device's socket.
        WaitingBroker = "waiting_broker",
        /// For the device to say that it has the command.
        WaitingDeviceAck = "waiting_device_ack",
        /// Received; the task has not begun.
        WaitingDeviceStart = "waiting_device_start",
        /// Begun; not reported as completed.
        WaitingDeviceReport = "waiting_device_report",
        /// Completed; the value has not been read back.
        WaitingReadBack = "waiting_read_back",
        /// Read back; an independent sensor has not agreed.
        WaitingSensor = "waiting_sensor",
        /// Ended with success.
        Settled = "settled",
    }
}

words! {
    /// How an operation ended (semantics 8.4).
    Outcome {
        /// Fresh, attributed, reported state equals the wish.
        Converged = "converged",
        /// It was so before, and that is known freshly.
        Already = "already",
        /// The device went to the nearest value it allows, and says so.
        Clamped = "clamped",
        /// Still going on when the caller had to be answered.
        Working = "working",
        /// Some members of a group only.
        Partial = "partial",
        /// Sent to a device that cannot answer.
        SentUnverified = "sent_unverified",
        /// Another wish took its place.
        Superseded = "superseded",
        /// The device refused.
        Rejected = "rejected",
        /// The device tried and says that it did not work.
        Failed = "failed",
        /// It said completed; what is read says otherwise.
        Contradicted = "contradicted",
        /// No evidence in time.
        TimedOut = "timed_out",
        /// The device or the hub restarted in the middle.
        Interrupted = "interrupted",
        /// The caller stopped waiting before the device began.
        Cancelled = "cancelled",
        /// The device was removed.
        Removed = "removed",
        /// The device restarted twice in one operation.
        DeviceCrashed = "device_crashed",
    }
}

impl Outcome {
    /// Whether it may be said to be done: the only three (semantics 8.4).
    pub fn is_success(self) -> bool {
        match self {
            Self::Converged | Self::Already | Self::Clamped => true,
            Self::Working
            | Self::Partial
            | Self::SentUnverified
            | Self::Superseded
            | Self::Rejected
            | Self::Failed
            | Self::Contradicted
            | Self::TimedOut
            | Self::Interrupted
            | Self::Cancelled
            | Self::Removed
            | Self::DeviceCrashed => false,
        }
    }
}

words! {
    /// Why an operation never began (semantics 8.4).
    RefusalWord {
        /// No device of that name.
        UnknownDevice = "unknown_device",
        /// Several devices of that name.
        AmbiguousName = "ambiguous_name",
        /// The device has no such property.
        UnknownProperty = "unknown_property",
        /// A parameter is missing.
        MissingArgument = "missing_argument",
        /// A parameter that the tool does not have.
        UnknownArgument = "unknown_argument",
        /// A value that is not allowed.
        InvalidValue = "invalid_value",
        /// The caller may not, or the property cannot be set.
        Forbidden = "forbidden",
        /// A dangerous operation waits for a confirmation.
        ConfirmationRequired = "confirmation_required",
        /// A confirmation code that was never given.
        CodeWrong = "code_wrong",
        /// A confirmation code that is too old.
        CodeExpired = "code_expired",
        /// A confirmation code that came back faster than a person can speak.
        CodeTooEarly = "code_too_early",
        /// The person was asked, and said no.
        Declined = "declined",
        /// The device is not connected.
        Offline = "offline",
        /// A relative wish, and the device does not tell what it would start from.
        StateUnknown = "state_unknown",
        /// The device is not connected yet because the hub has just started.
        HubJustStarted = "hub_just_started",
        /// The device that would verify is not connected.
        VerifierOffline = "verifier_offline",
        /// Too many calls.
        RateLimited = "rate_limited",
        /// Too many operations wait for this device.
        QueueFull = "queue_full",
        /// The caller's limit is too short to begin in time.
        DeadlineTooShort = "deadline_too_short",
        /// The hub's message bus is down.
        BrokerDown = "broker_down",
        /// What must be written down first could not be: the disk is full, or stalls.
        JournalDown = "journal_down",
        /// The device's actor failed too often and was set aside.
        Quarantined = "quarantined",
        /// The hub is stopping.
        ShuttingDown = "shutting_down",
    }
}

words! {
    /// Why an operation did not converge: the device's own reasons (wire protocol, *Events*) and the hub's.
    Reason {
        /// No evidence within the allowance. The answer says `timeout_after_<n>ms`, a metric says `timeout`.
        Timeout = "timeout",
        /// The actuator did not follow.
        Stuck = "stuck",
        /// The device does not take that value.
        OutOfRange = "out_of_range",
        /// The device is doing something else.
        Busy = "busy",
        /// Stopped in the middle.
        Interrupted = "interrupted",
        /// The command came too late.
        Expired = "expired",
        /// A newer command took its place.
        Superseded = "superseded",
        /// Taken back before it began.
        Withdrawn = "withdrawn",
        /// The device cannot do that.
        Unsupported = "unsupported",
        /// The device could not read the command.
        Malformed = "malformed",
        /// Not enough power.
        Power = "power",
        /// Read back, and not the value that was asked for.
        ReadBackDiffers = "read_back_differs",
        /// Reached, and not held until the read-back.
        DidNotHold = "did_not_hold",
        /// An independent measurement says otherwise (semantics 3.10).
        SensorDiffers = "sensor_differs",
        /// The device is away; the wish is kept until it comes (semantics 5.5).
        Offline = "offline",
        /// The connection went away in the middle.
        ConnectionLost = "connection_lost",
        /// The device began a new run in the middle.
        DeviceRestarted = "device_restarted",
        /// The property vanished or is of another kind now.
        PropertyChanged = "property_changed",
        /// The hub's actor of this device was restarted.
        ActorRestarted = "actor_restarted",
        /// The hub is stopping.
        HubStopping = "hub_stopping",
        /// The bus lost the command.
        BrokerDown = "broker_down",
        /// The device sent something that cannot be read.
        UnreadableReport = "unreadable_report",
        /// The device gave a reason that this version does not know.
        Unknown = "unknown",
    }
}

words! {
    /// Whether a device can be reached (semantics 5.5).
    Presence {
        /// Connected and greeting done.
        Online = "online",
        /// Connected; its heartbeat is overdue.
        Suspected = "suspected",
        /// Not connected.
        Offline = "offline",
    }
}

words! {
    /// Whether a value may be spoken of as present (semantics 8.2).
    Trust {
        /// Fresh: "it is".
        Now = "now",
        /// "It was, a while ago".
        Old = "old",
        /// Never heard.
        Unknown = "unknown",
    }
}

words! {
    /// How a report was tied to an operation (semantics 3.3).
    Attribution {
        /// The device named the operation.
        Named = "named",
        /// The report came after the command; the device cannot say more.
        Inferred = "inferred",
    }
}

words! {
    /// How a held wish stands (semantics 6.2).
    HeldState {
        /// It is so.
        Met = "met",
        /// It is not so yet, or not any more: it is sent until it is.
        Pursued = "pursued",
        /// It waits for the device to come back.
        Offline = "offline",
        /// Somebody at the device has changed it, and that counts.
        LocalOverride = "local_override",
        /// It does not fit the device's description any more; it is not sent (semantics 2.7).
        Blocked = "blocked",
    }
}

/// A wish that outlives its operation, as it is shown.
#[derive(Clone, Debug, PartialEq)]
pub struct HeldWish {
    /// The property.
    pub property: PropertyName,
    /// What it shall be.
    pub value: Value,
    /// How it stands.
    pub state: HeldState,
    /// Why it is not so, where its last operation said that.
    pub reason: Option<Reason>,
    /// How long it is still valid; `None`: until it is changed.
    pub valid_for: Option<Duration>,
}

/// What an independent measurement says of an operation (semantics 3.10).
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// The device that measures.
    pub device: DeviceId,
    /// Its property.
    pub property: PropertyName,
    /// What it was last, after completion; `None`: not measured (yet).
    pub value: Option<Value>,
    /// Whether it agrees with the wish.
    pub agrees: bool,
}

/// A value that a device reported, as the hub has it.
#[derive(Clone, Debug, PartialEq)]
pub struct Reading {
    /// The value.
    pub value: Value,
    /// How far down the chain it was confirmed.
    pub evidence: Evidence,
    /// How long ago it was received.
    pub age: Duration,
    /// Whether it may be spoken of as present.
    pub trust: Trust,
}

/// How an operation ended, or how far it is: facts for one caller, no sentences (semantics 8.2).
#[derive(Clone, Debug, PartialEq)]
pub struct Settled {
    /// The operation.
    pub op: OpId,
    /// Its device.
    pub device: DeviceId,
    /// Its property.
    pub property: PropertyName,
    /// The normalised wish; `None`: an action, or a relative wish that is not absolute yet (semantics 4.6).
    pub wish: Option<Value>,
    /// How it ended; [`Outcome::Working`] if it has not.
    pub outcome: Outcome,
    /// [`Stage::Settled`] on success, else the stage that broke or that it is in.
    pub stage: Stage,
    /// Why it did not converge.
    pub reason: Option<Reason>,
    /// The actual value, where one was ever reported.
    pub found: Option<Reading>,
    /// The evidence of a success; [`Evidence::None`] otherwise.
    pub confirmed_by: Evidence,
    /// How the confirming report was tied to the operation.
    pub attribution: Attribution,
    /// What an independent measurement says, where one is configured.
    pub measured: Option<Measured>,
    /// What the device says it still needs.
    pub eta: Option<Duration>,
    /// From the call to this answer.
    pub elapsed: Duration,
    /// How long it was in each stage, in order, the present one last. Stages that the device cannot show are absent.
    pub stages: Vec<(Stage, Duration)>,
    /// It was answered as not converged, and was found done afterwards (semantics 6.1).
    pub late_success: bool,
    /// It had converged, and the device went back by itself afterwards (semantics 3.7).
    pub reverted: bool,
    /// The operation that this caller waited for together with others, if it was not its own (semantics 4.3): the id that
    /// the device knows.
    pub joined: Option<OpId>,
    /// The value that took this wish's place (semantics 4.4).
    pub superseded_by: Option<Value>,
    /// The wish was relative and would have gone beyond the range: it went to the range's end (semantics 4.6).
    pub limited: bool,
    /// It is no success, and the wish is a set point that stays: the hub sends it again (semantics 6.2).
    pub kept: bool,
    /// The journal has it; `false` where it could not keep up and the answer went out all the same (semantics 8.5).
    pub recorded: bool,
}

/// Why nothing was begun: the facts behind a [`RefusalWord`].
#[derive(Clone, Debug, PartialEq)]
pub enum Refusal {
    /// No device of that name; names that are near, best first.
    UnknownDevice {
        /// What was asked for.
        asked: String,
        /// Near names, at most five.
        near: Vec<String>,
    },
    /// Several devices of that name.
    AmbiguousName {
        /// What was asked for.
        asked: String,
        /// The candidates.
        candidates: Vec<String>,
    },
    /// The device has no such property.
    UnknownProperty {
        /// What was asked for.
        asked: String,
        /// What there is.
        known: Vec<PropertyName>,
    },
    /// A parameter is missing.
    MissingArgument {
        /// Its name.
        parameter: &'static str,
        /// What is allowed, as a list or a noun.
        allowed: String,
    },
    /// A parameter that the tool does not have.
    UnknownArgument {
        /// Its name.
        parameter: String,
        /// The parameters that there are.
        allowed: Vec<&'static str>,
    },
    /// An argument that is not allowed.
    InvalidArgument {
        /// The parameter.
        parameter: &'static str,
        /// What was sent, shortened.
        sent: String,
        /// What is allowed, as a list or a noun.
        allowed: String,
    },
    /// A value that the property does not take.
    InvalidValue {
        /// The property.
        property: PropertyName,
        /// What was wrong and what is allowed.
        error: ValueError,
    },
    /// A person has to agree first (semantics 7.2).
    ConfirmationRequired,
    /// Nothing waits under that code.
    CodeWrong {
        /// How often another one may be tried; 0: the question is gone.
        left: u32,
    },
    /// The question was put too long ago.
    CodeExpired,
    /// No person answers so quickly; the question is gone.
    CodeTooEarly,
    /// Too many wrong codes.
    LockedOut {
        /// How much longer none is taken.
        left: Duration,
    },
    /// The person said no.
    Declined,
    /// The property cannot be set.
    Forbidden {
        /// The property.
        property: PropertyName,
    },
    /// The property cannot be set; what it shows is brought about by actions, if anything.
    ActsOnly {
        /// The property.
        property: PropertyName,
        /// What its device does.
        actions: Vec<Arc<str>>,
    },
    /// It appeared on a device that was known, can do harm, and the owner has not accepted it (semantics 2.7).
    NotAccepted {
        /// The property.
        property: PropertyName,
    },
    /// The device that would verify cannot be asked: nothing was moved (semantics 3.10).
    VerifierOffline {
        /// It; `None` for a caller that may not see it.
        device: Option<DeviceId>,
    },
    /// Not connected.
    Offline {
        /// How long ago anything was heard; `None` if never.
        last_heard: Option<Duration>,
    },
    /// A relative wish, and the device does not tell what it would start from (semantics 4.6).
    StateUnknown {
        /// The property.
        property: PropertyName,
    },
    /// Not connected yet: the hub has just started.
    HubJustStarted,
    /// Too many operations wait.
    QueueFull {
        /// How many may.
        limit: usize,
    },
    /// The caller's limit is too short.
    DeadlineTooShort {
        /// What is needed at least.
        needed: Duration,
    },
    /// The bus is down.
    BrokerDown,
    /// What must be written down first could not be.
    JournalDown,
    /// The device's actor was set aside.
    Quarantined,
    /// The hub is stopping.
    ShuttingDown,
}

impl Refusal {
    /// The word in answers and metrics.
    pub fn word(&self) -> RefusalWord {
        match self {
            Self::UnknownDevice { .. } => RefusalWord::UnknownDevice,
            Self::AmbiguousName { .. } => RefusalWord::AmbiguousName,
            Self::UnknownProperty { .. } => RefusalWord::UnknownProperty,
            Self::MissingArgument { .. } => RefusalWord::MissingArgument,
            Self::UnknownArgument { .. } => RefusalWord::UnknownArgument,
            Self::InvalidArgument { .. } | Self::InvalidValue { .. } => RefusalWord::InvalidValue,
            Self::ConfirmationRequired => RefusalWord::ConfirmationRequired,
            Self::CodeWrong { .. } => RefusalWord::CodeWrong,
            Self::CodeExpired => RefusalWord::CodeExpired,
            Self::CodeTooEarly => RefusalWord::CodeTooEarly,
            Self::LockedOut { .. } => RefusalWord::RateLimited,
            Self::Declined => RefusalWord::Declined,
            Self::Forbidden { .. } | Self::ActsOnly { .. } | Self::NotAccepted { .. } => RefusalWord::Forbidden,
            Self::VerifierOffline { .. } => RefusalWord::VerifierOffline,
            Self::Offline { .. } => RefusalWord::Offline,
            Self::StateUnknown { .. } => RefusalWord::StateUnknown,
            Self::HubJustStarted => RefusalWord::HubJustStarted,
            Self::QueueFull { .. } => RefusalWord::QueueFull,
            Self::DeadlineTooShort { .. } => RefusalWord::DeadlineTooShort,
            Self::BrokerDown => RefusalWord::BrokerDown,
            Self::JournalDown => RefusalWord::JournalDown,
            Self::Quarantined => RefusalWord::Quarantined,
            Self::ShuttingDown => RefusalWord::ShuttingDown,
        }
    }
}

/// What a caller of an operation is told.
#[derive(Clone, Debug, PartialEq)]
pub enum Reply {
    /// The operation began and ended so.
    Settled(Box<Settled>),
    /// It never began. Nothing moved.
    Refused(Refusal),
}

/// The state of one device, as a caller is told it.
#[derive(Clone, Debug, PartialEq)]
pub struct StateReport {
    /// The device.
    pub device: DeviceId,
    /// Whether it can be reached.
    pub presence: Presence,
    /// How long ago anything was heard; `None` if never.
    pub last_heard: Option<Duration>,
    /// The last reading of each property, in the description's order; properties never reported are absent.
    pub readings: Vec<(PropertyName, Reading)>,
    /// Properties on which an operation is in flight.
    pub moving: Vec<PropertyName>,
    /// Properties that went back by themselves after a success.
    pub reverted: Vec<PropertyName>,
    /// Wishes that outlive their operation.
    pub held: Vec<HeldWish>,
    /// Operations whose answer is no longer true (semantics 6.3): of the last ten minutes, the latest of each property.
    pub amended: Vec<Settled>,
    /// Whether the device was asked and has answered just now.
    pub asked_now: bool,
}

impl Settled {
    /// An operation whose end nobody knows because the hub's own part failed over it: interrupted, claimed neither done
    /// nor undone (semantics 8.3).
    pub fn unknown(op: OpId, device: DeviceId, property: PropertyName, wish: Option<Value>) -> Self {
        Self {
            op,
            device,
            property,
            wish,
            outcome: Outcome::Interrupted,
            stage: Stage::Admission,
            reason: Some(Reason::ActorRestarted),
            found: None,
            confirmed_by: Evidence::None,
            attribution: Attribution::Named,
            measured: None,
            eta: None,
            elapsed: Duration::ZERO,
            stages: Vec::new(),
            late_success: false,
            reverted: false,
            joined: None,
            superseded_by: None,
            limited: false,
            kept: false,
            recorded: true,
        }
    }
}
