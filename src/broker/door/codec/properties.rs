//! The properties of MQTT 5 that a client may send (2.2.2).

use super::{Bad, Reason, fields::Fields, topic};

/// One property.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Property<'a> {
    /// 0x01: whether the payload is UTF-8.
    PayloadFormat(bool),
    /// 0x02, in seconds.
    MessageExpiry(u32),
    /// 0x03.
    ContentType(&'a str),
    /// 0x08; not empty, no wildcards.
    ResponseTopic(&'a str),
    /// 0x09.
    CorrelationData(&'a [u8]),
    /// 0x0B, 1 to 268 435 455.
    SubscriptionId(u32),
    /// 0x11, in seconds; `u32::MAX` never expires.
    SessionExpiry(u32),
    /// 0x15.
    AuthenticationMethod(&'a str),
    /// 0x16.
    AuthenticationData(&'a [u8]),
    /// 0x17.
    RequestProblemInformation(bool),
    /// 0x18, in seconds.
    WillDelay(u32),
    /// 0x19.
    RequestResponseInformation(bool),
    /// 0x1F.
    ReasonString(&'a str),
    /// 0x21, not 0.
    ReceiveMax(u16),
    /// 0x22.
    TopicAliasMax(u16),
    /// 0x23, not 0.
    TopicAlias(u16),
    /// 0x26: name and value. May come many times, in an order that is kept; every other one comes once.
    User(&'a str, &'a str),
    /// 0x27, in bytes, not 0.
    PacketBytesMax(u32),
}

pub(super) const MESSAGE_EXPIRY: u8 = 0x02;
const TOPIC_ALIAS: u8 = 0x23;
const WILL_DELAY: u8 = 0x18;
const SUBSCRIPTION_ID: u8 = 0x0B;
const AUTHENTICATION_METHOD: u8 = 0x15;
const AUTHENTICATION_DATA: u8 = 0x16;
const USER: u8 = 0x26;

impl<'a> Property<'a> {
    /// The property with this identifier.
    fn read(id: u8, fields: &mut Fields<'a>) -> Result<Self, Bad> {
        Ok(match id {
            0x01 => Self::PayloadFormat(flag(fields)?),
            MESSAGE_EXPIRY => Self::MessageExpiry(fields.u32()?),
            0x03 => Self::ContentType(fields.text()?),
            0x08 => Self::ResponseTopic(topic(fields.text()?)?), // 3.3.2.3.5
            0x09 => Self::CorrelationData(fields.binary()?),
            SUBSCRIPTION_ID => match fields.varint()? {
                0 => return Err(Bad::protocol("a subscription identifier of 0")), // 3.8.2.1.2
                id => Self::SubscriptionId(u32::try_from(id).expect("four bytes of seven bits")),
            },
            0x11 => Self::SessionExpiry(fields.u32()?),
            AUTHENTICATION_METHOD => Self::AuthenticationMethod(fields.text()?),
            AUTHENTICATION_DATA => Self::AuthenticationData(fields.binary()?),
            0x17 => Self::RequestProblemInformation(flag(fields)?),
            WILL_DELAY => Self::WillDelay(fields.u32()?),
            0x19 => Self::RequestResponseInformation(flag(fields)?),
            0x1F => Self::ReasonString(fields.text()?),
            0x21 => match fields.u16()? {
                0 => return Err(Bad::protocol("a receive maximum of 0")), // 3.1.2.11.3
                max => Self::ReceiveMax(max),
            },
            0x22 => Self::TopicAliasMax(fields.u16()?),
            TOPIC_ALIAS => match fields.u16()? {
                // 3.3.2.3.4
                0 => return Err(Bad { reason: Reason::TopicAliasInvalid, what: "a topic alias of 0" }),
                alias => Self::TopicAlias(alias),
            },
            USER => Self::User(fields.text()?, fields.text()?),
            0x27 => match fields.u32()? {
                0 => return Err(Bad::protocol("a maximum packet size of 0")), // 3.1.2.11.4
                bytes => Self::PacketBytesMax(bytes),
            },
            _ => return Err(Bad::malformed("a property that does not exist")), // 2.2.2.2
        })
    }
}

fn flag(fields: &mut Fields<'_>) -> Result<bool, Bad> {
    match fields.u8()? {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(Bad::protocol("a property that must be 0 or 1")), // 3.1.2.11.6, 3.1.2.11.7, 3.3.2.3.2
    }
}

/// The checked properties of one packet: only such as it may have, each once, each with a legal value. Empty in 3.1.1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Properties<'a>(&'a [u8]);

impl<'a> Properties<'a> {
    /// No properties.
    pub const NONE: Self = Self(&[]);

    /// Checks the raw properties of a PUBLISH (without their length), for example such as were kept.
    ///
    /// # Errors
    /// As those of a PUBLISH from a client.
    pub fn of_publish(raw: &'a [u8]) -> Result<Self, Bad> {
        Self::check(raw, Allowed::PUBLISH)
    }

    /// Reads and checks the properties of a packet, with their length before them.
    pub(super) fn read(fields: &mut Fields<'a>, allowed: Allowed) -> Result<Self, Bad> {
        let length = fields.varint()?;
        Self::check(fields.bytes(length)?, allowed)
    }

    fn check(raw: &'a [u8], allowed: Allowed) -> Result<Self, Bad> {
        let mut fields = Fields(raw);
        let mut seen = 0u64;
        while !fields.is_empty() {
            // An identifier is a variable byte integer (2.2.2.2); none of them needs a second byte.
            let id = fields.u8()?;
            if id == SUBSCRIPTION_ID && allowed.has(TOPIC_ALIAS) {
                return Err(Bad::protocol("a subscription identifier from a client")); // a PUBLISH (3.3.4)
            }
            if !allowed.has(id) {
                return Err(Bad::malformed("a property that this packet cannot have")); // 2.2.2.2
            }
            if seen & bit(id) != 0 && id != USER {
                return Err(Bad::protocol("a property that is given twice"));
            }
            seen |= bit(id);
            Property::read(id, &mut fields)?;
        }
        if seen & bit(AUTHENTICATION_DATA) != 0 && seen & bit(AUTHENTICATION_METHOD) == 0 {
            return Err(Bad::protocol("authentication data without its method")); // 3.1.2.11.10
        }
        Ok(Self(raw))
    }

    /// Their bytes as sent, without the length before them: what can be kept or passed on.
    pub fn raw(self) -> &'a [u8] {
        self.0
    }

    /// Whether there are none.
    pub fn is_empty(self) -> bool {
        self.0.is_empty()
    }

    /// One after the other, as sent.
    pub fn iter(self) -> impl Iterator<Item = Property<'a>> + use<'a> {
        let mut fields = Fields(self.0);
        std::iter::from_fn(move || {
            let id = fields.u8().ok()?;
            Property::read(id, &mut fields).ok() // they were checked
        })
    }

    /// The bytes of what is passed on with the message, in order (3.3.2.3): not an alias, which is one connection's own; not
    /// the expiry, of which the waiting time is taken off; not a will's delay, which is for the server. Put together they
    /// are raw properties for [`of_publish`](Self::of_publish).
    pub fn passed_on(self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let mut fields = Fields(self.0);
        std::iter::from_fn(move || {
            loop {
                let before = fields.0;
                let id = fields.u8().ok()?;
                Property::read(id, &mut fields).ok()?;
                if !matches!(id, TOPIC_ALIAS | MESSAGE_EXPIRY | WILL_DELAY) {
                    return Some(&before[..before.len() - fields.0.len()]);
                }
            }
        })
    }

    /// Whether the payload is said to be UTF-8 (3.3.2.3.2).
    pub fn payload_is_text(self) -> bool {
        self.iter().any(|each| each == Property::PayloadFormat(true))
    }

    /// Seconds for which the message is of use (3.3.2.3.3); none: for ever.
    pub fn message_expiry_s(self) -> Option<u32> {
        self.iter().find_map(|each| if let Property::MessageExpiry(seconds) = each { Some(seconds) } else { None })
    }

    /// The topic alias (3.3.2.3.4).
    pub fn topic_alias(self) -> Option<u16> {
        self.iter().find_map(|each| if let Property::TopicAlias(alias) = each { Some(alias) } else { None })
    }

    /// Where an answer is awaited (3.3.2.3.5).
    pub fn response_topic(self) -> Option<&'a str> {
        self.iter().find_map(|each| if let Property::ResponseTopic(topic) = each { Some(topic) } else { None })
    }

    /// What tells a request by its answer (3.3.2.3.6).
    pub fn correlation_data(self) -> Option<&'a [u8]> {
        self.iter().find_map(|each| if let Property::CorrelationData(data) = each { Some(data) } else { None })
    }

    /// What the payload is (3.3.2.3.9).
    pub fn content_type(self) -> Option<&'a str> {
        self.iter().find_map(|each| if let Property::ContentType(kind) = each { Some(kind) } else { None })
    }

    /// Why, in the client's words (3.4.2.2.2, 3.14.2.2.3).
    pub fn reason_string(self) -> Option<&'a str> {
        self.iter().find_map(|each| if let Property::ReasonString(why) = each { Some(why) } else { None })
    }

    /// The user properties, in order (3.3.2.3.7).
    pub fn user(self) -> impl Iterator<Item = (&'a str, &'a str)> + use<'a> {
        self.iter().filter_map(|each| if let Property::User(name, value) = each { Some((name, value)) } else { None })
    }
}

/// Which properties a packet may have, as bits (2.2.2.2).
#[derive(Clone, Copy)]
pub(super) struct Allowed(u64);

impl Allowed {
    pub(super) const CONNECT: Self =
        Self::of(&[0x11, 0x21, 0x27, 0x22, 0x19, 0x17, USER, AUTHENTICATION_METHOD, AUTHENTICATION_DATA]);
    pub(super) const WILL: Self = Self::of(&[WILL_DELAY, 0x01, MESSAGE_EXPIRY, 0x03, 0x08, 0x09, USER]);
    pub(super) const PUBLISH: Self = Self::of(&[0x01, MESSAGE_EXPIRY, TOPIC_ALIAS, 0x08, 0x09, USER, 0x03]);
    pub(super) const PUBACK: Self = Self::of(&[0x1F, USER]);
    pub(super) const SUBSCRIBE: Self = Self::of(&[SUBSCRIPTION_ID, USER]);
    pub(super) const UNSUBSCRIBE: Self = Self::of(&[USER]);
    pub(super) const DISCONNECT: Self = Self::of(&[0x11, 0x1F, USER]);

    const fn of(ids: &[u8]) -> Self {
        let mut bits = 0;
        let mut at = 0;
        while at < ids.len() {
            bits |= bit(ids[at]);
            at += 1;
        }
        Self(bits)
    }

    fn has(self, id: u8) -> bool {
        self.0 & bit(id) != 0
    }
}

/// The bit of an identifier; none for those that do not exist (the largest is 0x2A).
const fn bit(id: u8) -> u64 {
    if id < 64 { 1 << id } else { 0 }
}
