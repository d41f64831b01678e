//! Reading the fields that packets are made of (1.5), and the properties of MQTT 5 (2.2.2).

use super::{Bad, Reason};

/// Reads fields off the front of a slice.
#[derive(Clone, Copy)]
pub(super) struct Fields<'a>(pub(super) &'a [u8]);

impl<'a> Fields<'a> {
    pub(super) fn is_empty(self) -> bool {
        self.0.is_empty()
    }

    /// Everything that is left.
    pub(super) fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.0)
    }

    pub(super) fn bytes(&mut self, count: usize) -> Result<&'a [u8], Bad> {
        let Some((head, tail)) = self.0.split_at_checked(count) else {
            return Err(Bad::malformed("a field ends after its packet"));
        };
        self.0 = tail;
        Ok(head)
    }

    pub(super) fn u8(&mut self) -> Result<u8, Bad> {
        Ok(self.bytes(1)?[0])
    }

    pub(super) fn u16(&mut self) -> Result<u16, Bad> {
        let bytes = self.bytes(2)?;
        Ok(u16::from_be_bytes([bytes[0], bytes[1]]))
    }

    pub(super) fn u32(&mut self) -> Result<u32, Bad> {
        let bytes = self.bytes(4)?;
        Ok(u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
    }

    /// A packet identifier, which is never 0 (2.2.1).
    pub(super) fn packet_id(&mut self) -> Result<u16, Bad> {
        match self.u16()? {
            0 => Err(Bad::protocol("a packet identifier of 0")),
            id => Ok(id),
        }
    }

    /// Binary data with its length before it (1.5.6).
    pub(super) fn binary(&mut self) -> Result<&'a [u8], Bad> {
        let count = self.u16()?;
        self.bytes(usize::from(count))
    }

    /// A UTF-8 string, without U+0000 (1.5.4).
    pub(super) fn text(&mut self) -> Result<&'a str, Bad> {
        let text = std::str::from_utf8(self.binary()?).map_err(|_| Bad::malformed("text that is not UTF-8"))?;
        if text.contains('\0') { Err(Bad::malformed("text with a NUL")) } else { Ok(text) }
    }

    /// A variable byte integer in its shortest form (1.5.5).
    pub(super) fn varint(&mut self) -> Result<usize, Bad> {
        match varint(self.0)? {
            Some((value, used)) if used == shortest(value) => {
                self.bytes(used)?;
                Ok(value)
            }
            Some(_) => Err(Bad::malformed("a variable byte integer longer than needed")),
            None => Err(Bad::malformed("a field ends after its packet")),
        }
    }
}

/// A variable byte integer at the front, and its bytes; `None` if there are not enough bytes yet.
pub(super) fn varint(bytes: &[u8]) -> Result<Option<(usize, usize)>, Bad> {
    let mut value = 0;
    for at in 0..4 {
        let Some(&byte) = bytes.get(at) else { return Ok(None) };
        value |= usize::from(byte & 0x7F) << (7 * at);
        if byte & 0x80 == 0 {
            return Ok(Some((value, at + 1)));
        }
    }
    Err(Bad::malformed("a variable byte integer of more than four bytes"))
}

/// Bytes of a variable byte integer in its shortest form.
pub(super) fn shortest(value: usize) -> usize {
    match value {
        0..=0x7F => 1,
        0x80..=0x3FFF => 2,
        0x4000..=0x1F_FFFF => 3,
        _ => 4,
    }
}

/// A topic to publish to: not empty, no wildcards (4.7).
pub(super) fn topic(topic: &str) -> Result<&str, Bad> {
    if topic.is_empty() || topic.contains(['+', '#']) {
        return Err(Bad { reason: Reason::TopicInvalid, what: "a topic that is empty or has wildcards" });
    }
    Ok(topic)
}

/// Whether a topic filter is well-formed (4.7.1): `+` alone in its level, `#` alone in the last one.
pub(crate) fn valid_filter(filter: &str) -> bool {
    let mut levels = filter.split('/').peekable();
    while let Some(level) = levels.next() {
        let whole = level.len() == 1 || !level.contains(['+', '#']);
        if !whole || (level == "#" && levels.peek().is_some()) {
            return false;
        }
    }
    !filter.is_empty()
}

/// Which properties a packet may have, as bits (2.2.2.2).
#[derive(Clone, Copy)]
pub(super) struct Allowed(u64);

/// A user property may come many times, every other one once.
const USER_PROPERTY: u8 = 0x26;

impl Allowed {
    pub(super) const CONNECT: Self = Self::of(&[0x11, 0x21, 0x27, 0x22, 0x19, 0x17, USER_PROPERTY, 0x15, 0x16]);
    pub(super) const WILL: Self = Self::of(&[0x18, 0x01, 0x02, 0x03, 0x08, 0x09, USER_PROPERTY]);
    pub(super) const PUBLISH: Self = Self::of(&[0x01, 0x02, 0x23, 0x08, 0x09, USER_PROPERTY, 0x03]);
    pub(super) const PUBACK: Self = Self::of(&[0x1F, USER_PROPERTY]);
    pub(super) const SUBSCRIBE: Self = Self::of(&[0x0B, USER_PROPERTY]);
    pub(super) const UNSUBSCRIBE: Self = Self::of(&[USER_PROPERTY]);
    pub(super) const DISCONNECT: Self = Self::of(&[0x11, 0x1F, USER_PROPERTY]);

    const fn of(ids: &[u8]) -> Self {
        let mut bits = 0;
        let mut at = 0;
        while at < ids.len() {
            bits |= 1 << ids[at];
            at += 1;
        }
        Self(bits)
    }
}

/// The properties that the door acts on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Properties {
    pub(super) session_expiry_s: u32,
    pub(super) packet_bytes_max: Option<u32>,
    pub(super) topic_alias: Option<u16>,
    pub(super) subscription_id: bool,
    pub(super) authentication: bool,
}

impl Properties {
    /// Reads and checks the properties of a packet: only allowed ones, each once, each with a legal value.
    pub(super) fn read(fields: &mut Fields<'_>, allowed: Allowed) -> Result<Self, Bad> {
        let length = fields.varint()?;
        let mut fields = Fields(fields.bytes(length)?);
        let mut properties = Self::default();
        let mut seen = 0u64;
        while !fields.is_empty() {
            let id = fields.u8()?;
            let bit = 1u64.checked_shl(u32::from(id)).unwrap_or(0);
            if allowed.0 & bit == 0 {
                return Err(Bad::protocol("a property that this packet cannot have"));
            }
            if seen & bit != 0 && id != USER_PROPERTY {
                return Err(Bad::protocol("a property that is given twice"));
            }
            seen |= bit;
            properties.read_one(id, &mut fields)?;
        }
        if seen & (1 << 0x16) != 0 && !properties.authentication {
            return Err(Bad::protocol("authentication data without its method")); // 3.1.2.11.10
        }
        Ok(properties)
    }

    fn read_one(&mut self, id: u8, fields: &mut Fields<'_>) -> Result<(), Bad> {
        match id {
            // payload format, request problem information, request response information: 0 or 1
            0x01 | 0x17 | 0x19 => {
                if fields.u8()? > 1 {
                    return Err(Bad::protocol("a property that must be 0 or 1"));
                }
            }
            // message expiry and will delay: nothing is stored for later, and sessions end with their connection
            0x02 | 0x18 => {
                fields.u32()?;
            }
            // content type, reason string
            0x03 | 0x1F => {
                fields.text()?;
            }
            // response topic: no wildcards (3.3.2.3.5)
            0x08 => {
                topic(fields.text()?)?;
            }
            // correlation data, authentication data
            0x09 | 0x16 => {
                fields.binary()?;
            }
            0x0B => {
                if fields.varint()? == 0 {
                    return Err(Bad::protocol("a subscription identifier of 0"));
                }
                self.subscription_id = true;
            }
            0x11 => self.session_expiry_s = fields.u32()?,
            0x15 => {
                fields.text()?;
                self.authentication = true;
            }
            // receive maximum: the door sends only QoS 0, which it does not limit
            0x21 => {
                if fields.u16()? == 0 {
                    return Err(Bad::protocol("a receive maximum of 0"));
                }
            }
            // topic alias maximum: the door uses none
            0x22 => {
                fields.u16()?;
            }
            0x23 => self.topic_alias = Some(fields.u16()?),
            0x27 => match fields.u32()? {
                0 => return Err(Bad::protocol("a maximum packet size of 0")),
                bytes => self.packet_bytes_max = Some(bytes),
            },
            USER_PROPERTY => {
                fields.text()?;
                fields.text()?;
            }
            _ => return Err(Bad::malformed("a property that does not exist")),
        }
        Ok(())
    }
}
