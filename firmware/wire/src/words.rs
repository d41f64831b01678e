//! The closed sets of words. A word that this version does not know reads as `Unknown` and is counted, it is no error:
//! a newer board must be able to say more than an older hub understands.

use core::fmt;

use serde::{Serialize, Serializer};

/// Declares a closed set of words with `ALL` (those known), `as_str`, `read`, and `Unknown` for every other word.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $word:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name {
            $($(#[$vdoc])* $variant,)+
            /// A word that this version does not know.
            Unknown,
        }

        impl $name {
            /// All words that this version knows, in order.
            pub const ALL: &[Self] = &[$(Self::$variant,)+];

            /// The word on the wire; `unknown` for [`Self::Unknown`].
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word,)+ Self::Unknown => "unknown" }
            }

            /// Reads a word; every word that is not listed is [`Self::Unknown`].
            pub fn read(word: &str) -> Self {
                match word { $($word => Self::$variant,)+ _ => Self::Unknown }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }
    };
}

words! {
    /// What a message from the hub asks for or says (`command`).
    CommandWord {
        /// The greeting is accepted.
        Welcome = "welcome",
        /// The greeting is not accepted.
        Refused = "refused",
        /// Send the description.
        Describe = "describe",
        /// An event could not be taken in.
        Error = "error",
        /// Make a property have a value.
        Set = "set",
        /// Do something that leaves no state.
        Run = "run",
        /// Say what the state is now.
        GetDeviceState = "get_device_state",
        /// Do not begin this operation any more.
        Withdraw = "withdraw",
        /// Send the last marks.
        GetLog = "get_log",
    }
}

words! {
    /// What a message from a device is (`event`).
    EventWord {
        /// The greeting.
        Hello = "hello",
        /// A page of the description.
        Description = "description",
        /// How far an operation is.
        DeviceActionReport = "device_action_report",
        /// What the state is.
        DeviceState = "device_state",
        /// The task that drives is alive.
        Heartbeat = "heartbeat",
    }
}

words! {
    /// How far an operation is, or how it ended, as the device says it (`result`).
    ReportResult {
        /// The device has the command.
        Received = "received",
        /// Driving has begun.
        Executing = "executing",
        /// Still driving; `eta_ms` says how long.
        Working = "working",
        /// Done, and read back.
        Completed = "completed",
        /// Tried, and not done.
        Failed = "failed",
        /// Not tried.
        Rejected = "rejected",
    }
}

words! {
    /// Why a device failed or rejected (`reason`).
    ReasonWord {
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
    }
}

words! {
    /// How far down the physical chain a value is confirmed (semantics 3.5), lowest first.
    EvidenceWord {
        /// Nothing is known.
        None = "none",
        /// The command left the hub.
        Sent = "sent",
        /// The device says that it has the command.
        Received = "received",
        /// Its software says that it has done it.
        Firmware = "firmware",
        /// The electrical level was read back through an input.
        Pin = "pin",
        /// An independent measurement agrees.
        Sensor = "sensor",
    }
}

words! {
    /// Why a state is as it is (`cause`).
    CauseWord {
        /// A command.
        Command = "command",
        /// Somebody at the device.
        Local = "local",
        /// The device has just started.
        Boot = "boot",
        /// Time for a report.
        Periodic = "periodic",
        /// The hub asked.
        Query = "query",
        /// The device went to its safe level, because the hub was gone (semantics 6.4).
        Failsafe = "failsafe",
    }
}

words! {
    /// What sort of value a property has (`kind`).
    KindWord {
        /// `true` or `false`.
        Bool = "bool",
        /// A whole number in `i32`.
        Integer = "integer",
        /// A number of up to six significant digits.
        Number = "number",
        /// One of the words in `values`.
        Enum = "enum",
        /// Free text.
        Text = "text",
        /// `#rrggbb`.
        Colour = "colour",
    }
}

words! {
    /// What a property is to a person (`role`).
    RoleWord {
        /// A light.
        Light = "light",
        /// A socket.
        Socket = "socket",
        /// A lock: `true` is locked.
        Lock = "lock",
        /// A door: `true` is open.
        Door = "door",
        /// A blind: `true` is open.
        Blind = "blind",
        /// A valve: `true` is open.
        Valve = "valve",
        /// A heater.
        Heater = "heater",
        /// A fan.
        Fan = "fan",
        /// A pump.
        Pump = "pump",
        /// A measurement.
        Sensor = "sensor",
        /// Anything else.
        Other = "other",
    }
}

words! {
    /// Whether a wish outlives its operation (semantics 2.6; `class`).
    ClassWord {
        /// It lives only while its operation runs.
        Momentary = "momentary",
        /// It stays until changed.
        Held = "held",
    }
}

words! {
    /// What a device does with what has begun when it is withdrawn (`on_withdraw`).
    OnWithdraw {
        /// It finishes it.
        Finish = "finish",
        /// It stops it.
        Stop = "stop",
    }
}

words! {
    /// Why the hub could not take an event in, or refused a greeting (`reason` of `error` and `refused`).
    ErrorWord {
        /// More bytes than [`crate::limits::EVENT_BYTES_MAX`].
        TooLong = "too_long",
        /// No JSON (RFC 8259).
        NotJson = "not_json",
        /// JSON, but no object.
        NotAnObject = "not_an_object",
        /// Nested deeper than [`crate::limits::DEPTH_MAX`].
        TooDeep = "too_deep",
        /// One key twice in one object; two readers would see different values.
        DuplicateField = "duplicate_field",
        /// A field that must be there.
        MissingField = "missing_field",
        /// Another sort of value.
        WrongType = "wrong_type",
        /// `null` where a value belongs: what is not known is left out (semantics 2.2).
        NullValue = "null_value",
        /// NaN, infinity, or a number that no `f64` holds.
        NotANumber = "not_a_number",
        /// A number outside its range.
        OutOfRange = "out_of_range",
        /// More entries than allowed.
        TooMany = "too_many",
        /// A name, op, session or boot that is empty, too long, or holds a character that is not allowed.
        BadName = "bad_name",
        /// A text over its length, or with a control character.
        BadText = "bad_text",
        /// An `event` that the protocol does not have.
        UnknownEvent = "unknown_event",
        /// A property that the description does not have.
        UnknownProperty = "unknown_property",
        /// A number with neither `step` nor `tolerance`: nobody could say when it is equal (semantics 3.1).
        NoTolerance = "no_tolerance",
        /// An event of a session that is not the present one.
        WrongSession = "wrong_session",
        /// An event before the hello.
        NotGreeted = "not_greeted",
        /// A `proto` that this hub does not speak.
        UnsupportedProtocol = "unsupported_protocol",
        /// Two connections with one name that alternate (semantics 5.6).
        DuplicateDevice = "duplicate_device",
        /// The hub does not know this device.
        UnknownDevice = "unknown_device",
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that fails here says where")]
mod tests {
    use super::*;

    #[test]
    fn every_word_reads_back_and_every_other_word_is_unknown() {
        for word in ReasonWord::ALL {
            assert_eq!(ReasonWord::read(word.as_str()), *word);
        }
        for word in ErrorWord::ALL {
            assert_eq!(ErrorWord::read(word.as_str()), *word);
        }
        for other in ["", "Stuck", "stuck ", "unknown", "卡住"] {
            assert_eq!(ReasonWord::read(other), ReasonWord::Unknown, "{other}");
        }
    }
}
