//! Packets of a client that is in, from bytes.

use super::{
    Bad, Properties, Property, Reason,
    fields::{Fields, shortest, varint},
    properties::Allowed,
    topic,
};
use crate::broker::MqttVersion;

/// A packet after the handshake.
#[derive(Debug, PartialEq, Eq)]
pub enum Packet<'a> {
    /// PUBLISH.
    Publish(Publish<'a>),
    /// PUBACK.
    PubAck(PubAck<'a>),
    /// SUBSCRIBE.
    Subscribe(Subscribe<'a>),
    /// UNSUBSCRIBE.
    Unsubscribe(Unsubscribe<'a>),
    /// PINGREQ.
    PingReq,
    /// DISCONNECT.
    Disconnect(Disconnect<'a>),
}

/// PUBLISH (3.3).
#[derive(Debug, PartialEq, Eq)]
pub struct Publish<'a> {
    /// No wildcards; empty only with an alias.
    pub topic: &'a str,
    /// Any bytes; UTF-8 if the properties say so.
    pub payload: &'a [u8],
    /// 0 to 2.
    pub qos: u8,
    /// It is to be retained.
    pub retain: bool,
    /// Sent before, on this connection or an older one.
    pub dup: bool,
    /// 0 for QoS 0, else never.
    pub packet_id: u16,
    /// The topic alias, never 0; whether it is one that was offered is the session's business.
    pub alias: Option<u16>,
    /// All its properties, also the alias.
    pub properties: Properties<'a>,
}

/// PUBACK (3.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PubAck<'a> {
    /// Of the PUBLISH that it answers; never 0.
    pub packet_id: u16,
    /// One that a PUBACK may have (3.4.2.1); from 0x80 the message was refused. Always 0 in 3.1.1.
    pub reason: u8,
    /// Its properties.
    pub properties: Properties<'a>,
}

/// SUBSCRIBE (3.8); its filters are at least one and were checked to be readable.
#[derive(Debug, PartialEq, Eq)]
pub struct Subscribe<'a> {
    /// Never 0.
    pub packet_id: u16,
    /// A subscription identifier was given.
    pub identified: bool,
    /// Its properties.
    pub properties: Properties<'a>,
    filters: &'a [u8],
}

/// One filter of a SUBSCRIBE with its options (3.8.3.1). In 3.1.1 all but the QoS are 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Subscription<'a> {
    /// As sent; whether it is well-formed says [`topics`](crate::topics::is_well_formed_filter), so that one wrong filter is answered
    /// by one wrong code in the SUBACK.
    pub filter: &'a str,
    /// 0 to 2.
    pub qos: u8,
    /// Not what the client itself publishes.
    pub no_local: bool,
    /// The retain flag is passed on as it was published.
    pub retain_as_published: bool,
    /// 0: retained messages now; 1: only if the subscription is new; 2: not.
    pub retain_handling: u8,
}

impl<'a> Subscribe<'a> {
    /// Its filters, one after the other.
    pub fn subscriptions(&self) -> impl Iterator<Item = Subscription<'a>> + use<'a> {
        let mut fields = Fields(self.filters);
        std::iter::from_fn(move || {
            let filter = fields.text().ok()?;
            let options = fields.u8().ok()?;
            Some(Subscription {
                filter,
                qos: options & 0x03,
                no_local: options & 0x04 != 0,
                retain_as_published: options & 0x08 != 0,
                retain_handling: options >> 4 & 0x03,
            })
        })
    }
}

/// UNSUBSCRIBE (3.10); its filters are at least one and were checked to be readable.
#[derive(Debug, PartialEq, Eq)]
pub struct Unsubscribe<'a> {
    /// Never 0.
    pub packet_id: u16,
    /// Its properties.
    pub properties: Properties<'a>,
    filters: &'a [u8],
}

impl<'a> Unsubscribe<'a> {
    /// Its filters, one after the other.
    pub fn filters(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        let mut fields = Fields(self.filters);
        std::iter::from_fn(move || fields.text().ok())
    }
}

/// DISCONNECT (3.14).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Disconnect<'a> {
    /// One that a client may say (3.14.2.1). Always 0 in 3.1.1.
    pub reason: u8,
    /// Its properties.
    pub properties: Properties<'a>,
}

impl Disconnect<'_> {
    /// Reason 0: the will is not to be told.
    pub fn clean(&self) -> bool {
        self.reason == 0
    }
}

/// Cuts the first packet off the buffer, its body and its bytes in all; `None` if it is not whole yet. `strict`: its
/// length must be written as short as it can be.
pub(super) fn cut(buffer: &[u8], bytes_max: usize, strict: bool) -> Result<Option<(&[u8], usize)>, Bad> {
    let Some((_, tail)) = buffer.split_first() else { return Ok(None) };
    let Some((length, used)) = varint(tail)? else { return Ok(None) };
    if strict && used != shortest(length) {
        return Err(Bad::malformed("a length in more bytes than needed")); // 1.5.5; 3.1.1 does not forbid it
    }
    let total = 1 + used + length;
    if total > bytes_max {
        return Err(Bad { reason: Reason::PacketTooLarge, what: "a packet larger than allowed" });
    }
    Ok(buffer.get(1 + used..total).map(|body| (body, total)))
}

/// Reads the first packet in the buffer and its length in bytes; `None` if it is not whole yet.
///
/// # Errors
/// As soon as the bytes show that the packet cannot be accepted, and before it is whole if it is larger than `bytes_max`.
pub fn decode(buffer: &[u8], version: MqttVersion, bytes_max: usize) -> Result<Option<(Packet<'_>, usize)>, Bad> {
    let v5 = version == MqttVersion::V5;
    let Some(&first) = buffer.first() else { return Ok(None) };
    first_byte(first)?;
    let Some((body, total)) = cut(buffer, bytes_max, v5)? else { return Ok(None) };
    let mut fields = Fields(body);
    let packet = match first >> 4 {
        3 => Packet::Publish(publish(&mut fields, first & 0x0F, v5)?),
        4 => Packet::PubAck(puback(&mut fields, v5)?),
        8 => Packet::Subscribe(subscribe(&mut fields, v5)?),
        10 => Packet::Unsubscribe(unsubscribe(&mut fields, v5)?),
        12 => Packet::PingReq,
        _ => Packet::Disconnect(disconnect(&mut fields, v5)?), // 14, the only one left by `first_byte`
    };
    fields.end()?;
    Ok(Some((packet, total)))
}

/// Whether a packet may begin with this byte; asked before it is whole.
fn first_byte(first: u8) -> Result<(), Bad> {
    match (first >> 4, first & 0x0F) {
        (3, flags) if flags >> 1 & 0x03 == 3 => Err(Bad::malformed("a QoS of 3")), // 3.3.1.2
        (3, flags) if flags & 0x0E == 0x08 => Err(Bad::malformed("sent again, with QoS 0")), // 3.3.1.1
        (3, _) | (4 | 12 | 14, 0) | (8 | 10, 2) => Ok(()),
        (1, 0) => Err(Bad::protocol("a second CONNECT")), // 3.1
        (1 | 4 | 8 | 10 | 12 | 14, _) => Err(Bad::malformed("reserved flags in the first byte")), // 2.1.3
        _ => Err(Bad::protocol("a packet type that is not for a server, or of something not offered")),
    }
}

fn publish<'a>(fields: &mut Fields<'a>, flags: u8, v5: bool) -> Result<Publish<'a>, Bad> {
    let (dup, qos, retain) = (flags & 0x08 != 0, flags >> 1 & 0x03, flags & 0x01 != 0);
    let name = fields.text()?;
    let packet_id = if qos > 0 { fields.packet_id()? } else { 0 };
    let properties = if v5 { Properties::read(fields, Allowed::PUBLISH)? } else { Properties::NONE };
    let alias = properties.topic_alias();
    if !name.is_empty() || !v5 {
        topic(name)?;
    } else if alias.is_none() {
        return Err(Bad::protocol("neither a topic nor an alias")); // 3.3.2.1
    }
    let payload = text_payload(properties, fields.rest())?;
    Ok(Publish { topic: name, payload, qos, retain, dup, packet_id, alias, properties })
}

/// The payload; if it is said to be text, it must be (3.3.2.3.2, 3.1.3.2.3). Unlike a string, it may have a U+0000.
pub(super) fn text_payload<'a>(properties: Properties<'_>, payload: &'a [u8]) -> Result<&'a [u8], Bad> {
    if properties.payload_is_text() && std::str::from_utf8(payload).is_err() {
        return Err(Bad {
            reason: Reason::PayloadFormatInvalid,
            what: "a payload that is not the UTF-8 it is said to be",
        });
    }
    Ok(payload)
}

fn puback<'a>(fields: &mut Fields<'a>, v5: bool) -> Result<PubAck<'a>, Bad> {
    let packet_id = fields.packet_id()?;
    let (reason, properties) = if v5 { reason_and_properties(fields, Allowed::PUBACK)? } else { (0, Properties::NONE) };
    if !matches!(reason, 0x00 | 0x10 | 0x80 | 0x83 | 0x87 | 0x90 | 0x91 | 0x97 | 0x99) {
        return Err(Bad::protocol("a reason code that PUBACK does not have")); // 3.4.2.1
    }
    Ok(PubAck { packet_id, reason, properties })
}

fn subscribe<'a>(fields: &mut Fields<'a>, v5: bool) -> Result<Subscribe<'a>, Bad> {
    let packet_id = fields.packet_id()?;
    let properties = if v5 { Properties::read(fields, Allowed::SUBSCRIBE)? } else { Properties::NONE };
    let filters = fields.rest();
    let mut each = Fields(filters);
    while !each.is_empty() {
        let filter = each.text()?;
        options(each.u8()?, v5, filter.starts_with("$share/"))?;
    }
    if filters.is_empty() {
        return Err(Bad::protocol("a SUBSCRIBE without a filter")); // 3.8.3
    }
    let identified = properties.iter().any(|each| matches!(each, Property::SubscriptionId(_)));
    Ok(Subscribe { packet_id, identified, properties, filters })
}

/// The options behind a filter (3.8.3.1).
fn options(options: u8, v5: bool, shared: bool) -> Result<(), Bad> {
    if options & if v5 { 0xC0 } else { 0xFC } != 0 {
        return Err(Bad::malformed("reserved bits in subscription options"));
    }
    if options & 0x03 == 3 {
        return Err(Bad::protocol("a subscription with QoS 3"));
    }
    if options & 0x30 == 0x30 {
        return Err(Bad::protocol("a retain handling of 3"));
    }
    if options & 0x04 != 0 && shared {
        return Err(Bad::protocol("no local on a shared subscription"));
    }
    Ok(())
}

fn unsubscribe<'a>(fields: &mut Fields<'a>, v5: bool) -> Result<Unsubscribe<'a>, Bad> {
    let packet_id = fields.packet_id()?;
    let properties = if v5 { Properties::read(fields, Allowed::UNSUBSCRIBE)? } else { Properties::NONE };
    let filters = fields.rest();
    let mut each = Fields(filters);
    while !each.is_empty() {
        each.text()?;
    }
    if filters.is_empty() {
        return Err(Bad::protocol("an UNSUBSCRIBE without a filter")); // 3.10.3
    }
    Ok(Unsubscribe { packet_id, properties, filters })
}

fn disconnect<'a>(fields: &mut Fields<'a>, v5: bool) -> Result<Disconnect<'a>, Bad> {
    let (reason, properties) =
        if v5 { reason_and_properties(fields, Allowed::DISCONNECT)? } else { (0, Properties::NONE) };
    // What a client may say (3.14.2.1).
    if !matches!(reason, 0x00 | 0x04 | 0x80..=0x83 | 0x90 | 0x93..=0x99) {
        return Err(Bad::protocol("a reason code that a client's DISCONNECT does not have"));
    }
    Ok(Disconnect { reason, properties })
}

/// A reason code and properties, of which both or the latter may be left out (3.4.2.2.1, 3.14.2.2.1).
fn reason_and_properties<'a>(fields: &mut Fields<'a>, allowed: Allowed) -> Result<(u8, Properties<'a>), Bad> {
    let reason = if fields.is_empty() { 0 } else { fields.u8()? };
    let properties = if fields.is_empty() { Properties::NONE } else { Properties::read(fields, allowed)? };
    Ok((reason, properties))
}
