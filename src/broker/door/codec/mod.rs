//! MQTT 3.1.1 and 5, the server's side, over slices: what the door accepts and what it answers.
//!
//! Decoding borrows from the buffer, allocates nothing and panics on nothing. It checks the format (lengths, UTF-8, flags,
//! properties); what is allowed to whom is the session's business. Packet types that the door has no use for (those
//! of a server, of QoS 2, of extended authentication) are protocol errors. Sections in comments are of MQTT 5 if not said otherwise.

mod decode;
pub(crate) mod encode;
mod fields;

pub(crate) use self::{
    decode::{Connect, ConnectError, Packet, Publish, Subscribe, Unsubscribe, decode, decode_connect},
    fields::valid_filter,
};

/// Reason codes of MQTT 5 (2.4) that the door uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Reason {
    Success = 0x00,
    NoSubscriptionExisted = 0x11,
    Unspecified = 0x80,
    Malformed = 0x81,
    Protocol = 0x82,
    /// The hub is not willing to take it in: the device is quarantined.
    ImplementationSpecific = 0x83,
    UnsupportedVersion = 0x84,
    ClientIdInvalid = 0x85,
    BadLogin = 0x86,
    NotAuthorized = 0x87,
    ServerBusy = 0x89,
    /// Two boards with one name (semantics 5.6): nothing else is refused with it.
    Banned = 0x8A,
    ServerShuttingDown = 0x8B,
    BadAuthenticationMethod = 0x8C,
    KeepAliveTimeout = 0x8D,
    TakenOver = 0x8E,
    FilterInvalid = 0x8F,
    TopicInvalid = 0x90,
    TopicAliasInvalid = 0x94,
    PacketTooLarge = 0x95,
    Administrative = 0x98,
    RetainNotSupported = 0x9A,
    QosNotSupported = 0x9B,
    SharedNotSupported = 0x9E,
    SubscriptionIdsNotSupported = 0xA1,
    WildcardsNotSupported = 0xA2,
}

impl Reason {
    /// The byte on the wire.
    pub(crate) fn code(self) -> u8 {
        self as u8
    }
}

/// A packet that cannot be accepted: the code for a v5 device, and words for the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what}")]
pub(crate) struct Bad {
    pub(crate) reason: Reason,
    pub(crate) what: &'static str,
}

impl Bad {
    fn malformed(what: &'static str) -> Self {
        Self { reason: Reason::Malformed, what }
    }

    fn protocol(what: &'static str) -> Self {
        Self { reason: Reason::Protocol, what }
    }
}

#[cfg(test)]
mod tests;
