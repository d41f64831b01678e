//! Reason codes.

/// Reason codes of MQTT 5 (2.4) that a server may send and the door has a use for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Reason {
    /// 0x00, also "granted QoS 0".
    Success = 0x00,
    /// 0x01 of a SUBACK.
    GrantedQos1 = 0x01,
    /// 0x10 of a PUBACK: taken, and nobody has subscribed to it.
    NoMatchingSubscribers = 0x10,
    /// 0x11 of an UNSUBACK.
    NoSubscriptionExisted = 0x11,
    /// 0x80.
    Unspecified = 0x80,
    /// 0x81: the packet cannot be parsed.
    Malformed = 0x81,
    /// 0x82: it can, and is not allowed.
    Protocol = 0x82,
    /// 0x83.
    ImplementationSpecific = 0x83,
    /// 0x84.
    UnsupportedVersion = 0x84,
    /// 0x85.
    ClientIdInvalid = 0x85,
    /// 0x86.
    BadLogin = 0x86,
    /// 0x87.
    NotAuthorized = 0x87,
    /// 0x89.
    ServerBusy = 0x89,
    /// 0x8A. Two boards with one name (semantics 5.6): nothing else is refused with it.
    Banned = 0x8A,
    /// 0x8B.
    ServerShuttingDown = 0x8B,
    /// 0x8C.
    BadAuthenticationMethod = 0x8C,
    /// 0x8D.
    KeepAliveTimeout = 0x8D,
    /// 0x8E.
    TakenOver = 0x8E,
    /// 0x8F.
    FilterInvalid = 0x8F,
    /// 0x90.
    TopicInvalid = 0x90,
    /// 0x91.
    PacketIdInUse = 0x91,
    /// 0x93.
    ReceiveMaxExceeded = 0x93,
    /// 0x94.
    TopicAliasInvalid = 0x94,
    /// 0x95.
    PacketTooLarge = 0x95,
    /// 0x96.
    MessageRateTooHigh = 0x96,
    /// 0x97.
    QuotaExceeded = 0x97,
    /// 0x98.
    Administrative = 0x98,
    /// 0x99: the payload is not the UTF-8 that its format indicator promises.
    PayloadFormatInvalid = 0x99,
    /// 0x9A.
    RetainNotSupported = 0x9A,
    /// 0x9B.
    QosNotSupported = 0x9B,
    /// 0x9E.
    SharedNotSupported = 0x9E,
    /// 0x9F.
    ConnectionRateExceeded = 0x9F,
    /// 0xA1.
    SubscriptionIdsNotSupported = 0xA1,
    /// 0xA2.
    WildcardsNotSupported = 0xA2,
}

impl Reason {
    /// The byte on the wire.
    pub fn code(self) -> u8 {
        self as u8
    }
}
