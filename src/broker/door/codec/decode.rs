//! Packets of a device, from bytes.

use super::{
    Bad, Reason,
    fields::{Allowed, Fields, Properties, shortest, topic, varint},
};
use crate::broker::MqttVersion;

/// A packet after the handshake.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Packet<'a> {
    Publish(Publish<'a>),
    /// Of no meaning, as the door sends only QoS 0; harmless.
    PubAck,
    Subscribe(Subscribe<'a>),
    Unsubscribe(Unsubscribe<'a>),
    PingReq,
    Disconnect(Disconnect),
}

/// CONNECT (3.1).
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Connect<'a> {
    pub(crate) version: MqttVersion,
    pub(crate) clean: bool,
    pub(crate) keep_alive_s: u16,
    pub(crate) client_id: &'a str,
    pub(crate) will: Option<Will<'a>>,
    pub(crate) user: Option<&'a str>,
    pub(crate) password: Option<&'a [u8]>,
    /// The largest packet that the device takes.
    pub(crate) packet_bytes_max: Option<u32>,
    /// It asks for extended authentication.
    pub(crate) authentication: bool,
    /// It asks for a session that outlives its connection.
    pub(crate) session_expiry_s: u32,
}

/// The will in a CONNECT.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Will<'a> {
    pub(crate) topic: &'a str,
    pub(crate) payload: &'a [u8],
    pub(crate) qos: u8,
    pub(crate) retain: bool,
}

/// PUBLISH (3.3).
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Publish<'a> {
    /// Empty only with an alias.
    pub(crate) topic: &'a str,
    pub(crate) payload: &'a [u8],
    pub(crate) qos: u8,
    pub(crate) retain: bool,
    /// Sent before, on this connection or an older one.
    pub(crate) dup: bool,
    /// 0 for QoS 0.
    pub(crate) packet_id: u16,
    pub(crate) alias: bool,
}

/// SUBSCRIBE (3.8); its filters have been checked to be readable.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Subscribe<'a> {
    pub(crate) packet_id: u16,
    /// A subscription identifier was given.
    pub(crate) identified: bool,
    filters: &'a [u8],
}

impl<'a> Subscribe<'a> {
    /// Its filters, one after the other. The QoS that is asked for does not matter: 0 is granted.
    pub(crate) fn filters(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        let mut fields = Fields(self.filters);
        std::iter::from_fn(move || {
            let filter = fields.text().ok()?;
            fields.u8().ok()?;
            Some(filter)
        })
    }
}

/// UNSUBSCRIBE (3.10); its filters have been checked to be readable.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Unsubscribe<'a> {
    pub(crate) packet_id: u16,
    filters: &'a [u8],
}

impl<'a> Unsubscribe<'a> {
    /// Its filters, one after the other.
    pub(crate) fn filters(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        let mut fields = Fields(self.filters);
        std::iter::from_fn(move || fields.text().ok())
    }
}

/// DISCONNECT (3.14).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Disconnect {
    /// Reason 0: the will is not to be told.
    pub(crate) clean: bool,
}

/// Why a first packet is no CONNECT that can be answered in its own version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ConnectError {
    /// Not readable; if the version was, it is known.
    Bad(Bad, Option<MqttVersion>),
    /// A protocol level that is not spoken here; whether it is a later one than 5.
    Version { later: bool },
}

/// A packet's first byte, its body, and its bytes in all.
type Frame<'a> = (u8, &'a [u8], usize);

/// Cuts the first packet off the buffer; `None` if it is not whole yet.
fn frame(buffer: &[u8], bytes_max: usize, strict: bool) -> Result<Option<Frame<'_>>, Bad> {
    let Some((&first, tail)) = buffer.split_first() else { return Ok(None) };
    let Some((length, used)) = varint(tail)? else { return Ok(None) };
    if strict && used != shortest(length) {
        return Err(Bad::malformed("a length in more bytes than needed")); // 1.5.5; 3.1.1 does not forbid it
    }
    let total = 1 + used + length;
    if total > bytes_max {
        return Err(Bad { reason: Reason::PacketTooLarge, what: "a packet larger than allowed" });
    }
    Ok(buffer.get(1 + used..total).map(|body| (first, body, total)))
}

/// Reads the first packet of a connection and its length in bytes; `None` if it is not whole yet.
pub(crate) fn decode_connect(buffer: &[u8], bytes_max: usize) -> Result<Option<(Connect<'_>, usize)>, ConnectError> {
    // A wrong first byte is answered at once, not after as many bytes as it happens to announce.
    match buffer.first() {
        None | Some(0x10) => {}
        Some(0x16) => return Err(ConnectError::Bad(Bad::protocol("TLS, on a port for plain MQTT"), None)),
        Some(_) => return Err(ConnectError::Bad(Bad::protocol("a first packet that is no CONNECT"), None)),
    }
    let cut = frame(buffer, bytes_max, false).map_err(|bad| ConnectError::Bad(bad, None))?;
    let Some((_, body, total)) = cut else { return Ok(None) };
    let mut fields = Fields(body);
    let (name, level) = name_and_level(&mut fields).map_err(|bad| ConnectError::Bad(bad, None))?;
    let version = match (name, level) {
        ("MQTT", 4) => MqttVersion::V3_1_1,
        ("MQTT", 5) => MqttVersion::V5,
        ("MQTT" | "MQIsdp", level) => return Err(ConnectError::Version { later: level > 5 }),
        _ => return Err(ConnectError::Bad(Bad::protocol("another protocol than MQTT"), None)),
    };
    match connect(&mut fields, version) {
        Ok(connect) => Ok(Some((connect, total))),
        Err(bad) => Err(ConnectError::Bad(bad, Some(version))),
    }
}

fn name_and_level<'a>(fields: &mut Fields<'a>) -> Result<(&'a str, u8), Bad> {
    Ok((fields.text()?, fields.u8()?))
}

fn connect<'a>(fields: &mut Fields<'a>, version: MqttVersion) -> Result<Connect<'a>, Bad> {
    let v5 = version == MqttVersion::V5;
    let flags = fields.u8()?;
    let (has_user, has_password, has_will) = (flags & 0x80 != 0, flags & 0x40 != 0, flags & 0x04 != 0);
    let (will_retain, will_qos) = (flags & 0x20 != 0, flags >> 3 & 0x03);
    if flags & 0x01 != 0 || will_qos == 3 || (!has_will && (will_retain || will_qos != 0)) {
        return Err(Bad::malformed("connect flags that contradict each other")); // 3.1.2.3 to 3.1.2.6
    }
    if !v5 && has_password && !has_user {
        return Err(Bad::malformed("a password without a user name")); // 3.1.1 3.1.2.9
    }
    let keep_alive_s = fields.u16()?;
    let properties = if v5 { Properties::read(fields, Allowed::CONNECT)? } else { Properties::default() };
    let client_id = fields.text()?;
    let will = if has_will {
        if v5 {
            Properties::read(fields, Allowed::WILL)?;
        }
        let topic = topic(fields.text()?)?;
        Some(Will { topic, payload: fields.binary()?, qos: will_qos, retain: will_retain })
    } else {
        None
    };
    let user = if has_user { Some(fields.text()?) } else { None };
    let password = if has_password { Some(fields.binary()?) } else { None };
    nothing_left(*fields)?;
    Ok(Connect {
        version,
        clean: flags & 0x02 != 0,
        keep_alive_s,
        client_id,
        will,
        user,
        password,
        packet_bytes_max: properties.packet_bytes_max,
        authentication: properties.authentication,
        session_expiry_s: properties.session_expiry_s,
    })
}

/// Reads the first packet in the buffer and its length in bytes; `None` if it is not whole yet.
pub(crate) fn decode(
    buffer: &[u8],
    version: MqttVersion,
    bytes_max: usize,
) -> Result<Option<(Packet<'_>, usize)>, Bad> {
    let v5 = version == MqttVersion::V5;
    let Some((first, body, total)) = frame(buffer, bytes_max, v5)? else { return Ok(None) };
    let mut fields = Fields(body);
    let packet = match (first >> 4, first & 0x0F) {
        (3, flags) => Packet::Publish(publish(&mut fields, flags, v5)?),
        (4, 0) => puback(&mut fields, v5)?,
        (8, 2) => Packet::Subscribe(subscribe(&mut fields, v5)?),
        (10, 2) => Packet::Unsubscribe(unsubscribe(&mut fields, v5)?),
        (12, 0) => Packet::PingReq,
        (14, 0) => Packet::Disconnect(disconnect(&mut fields, v5)?),
        (1, 0) => return Err(Bad::protocol("a second CONNECT")), // 3.1
        (4 | 8 | 10 | 12 | 14 | 1, _) => return Err(Bad::malformed("reserved flags in the first byte")), // 2.1.3
        _ => return Err(Bad::protocol("a packet type that is not for a server, or of something not offered")),
    };
    nothing_left(fields)?;
    Ok(Some((packet, total)))
}

fn publish<'a>(fields: &mut Fields<'a>, flags: u8, v5: bool) -> Result<Publish<'a>, Bad> {
    let (dup, qos, retain) = (flags & 0x08 != 0, flags >> 1 & 0x03, flags & 0x01 != 0);
    if qos == 3 || (qos == 0 && dup) {
        return Err(Bad::malformed("publish flags that contradict each other")); // 3.3.1.1, 3.3.1.2
    }
    let name = fields.text()?;
    let packet_id = if qos > 0 { fields.packet_id()? } else { 0 };
    let properties = if v5 { Properties::read(fields, Allowed::PUBLISH)? } else { Properties::default() };
    let alias = properties.topic_alias.is_some();
    if name.is_empty() && !alias {
        return Err(Bad::protocol("neither a topic nor an alias")); // 3.3.2.1
    }
    if !name.is_empty() {
        topic(name)?;
    }
    Ok(Publish { topic: name, payload: fields.rest(), qos, retain, dup, packet_id, alias })
}

fn puback<'a>(fields: &mut Fields<'_>, v5: bool) -> Result<Packet<'a>, Bad> {
    fields.packet_id()?;
    if v5 && !fields.is_empty() {
        let reason = fields.u8()?;
        if !matches!(reason, 0x00 | 0x10 | 0x80 | 0x83 | 0x87 | 0x90 | 0x91 | 0x97 | 0x99) {
            return Err(Bad::protocol("a reason code that PUBACK does not have")); // 3.4.2.1
        }
        if !fields.is_empty() {
            Properties::read(fields, Allowed::PUBACK)?;
        }
    }
    Ok(Packet::PubAck)
}

fn subscribe<'a>(fields: &mut Fields<'a>, v5: bool) -> Result<Subscribe<'a>, Bad> {
    let packet_id = fields.packet_id()?;
    let properties = if v5 { Properties::read(fields, Allowed::SUBSCRIBE)? } else { Properties::default() };
    let filters = fields.rest();
    let mut each = Fields(filters);
    while !each.is_empty() {
        let filter = each.text()?;
        let options = each.u8()?;
        let (qos, no_local, retain_handling) = (options & 0x03, options & 0x04 != 0, options >> 4 & 0x03);
        let reserved = if v5 { options & 0xC0 } else { options & 0xFC };
        if qos == 3 || reserved != 0 || retain_handling == 3 {
            return Err(Bad::malformed("subscription options that do not exist")); // 3.8.3.1
        }
        if no_local && filter.starts_with("$share/") {
            return Err(Bad::protocol("no local on a shared subscription")); // 3.8.3.1
        }
    }
    if filters.is_empty() {
        return Err(Bad::protocol("a SUBSCRIBE without a filter")); // 3.8.3
    }
    Ok(Subscribe { packet_id, identified: properties.subscription_id, filters })
}

fn unsubscribe<'a>(fields: &mut Fields<'a>, v5: bool) -> Result<Unsubscribe<'a>, Bad> {
    let packet_id = fields.packet_id()?;
    if v5 {
        Properties::read(fields, Allowed::UNSUBSCRIBE)?;
    }
    let filters = fields.rest();
    let mut each = Fields(filters);
    while !each.is_empty() {
        each.text()?;
    }
    if filters.is_empty() {
        return Err(Bad::protocol("an UNSUBSCRIBE without a filter")); // 3.10.3
    }
    Ok(Unsubscribe { packet_id, filters })
}

fn disconnect(fields: &mut Fields<'_>, v5: bool) -> Result<Disconnect, Bad> {
    if !v5 || fields.is_empty() {
        return Ok(Disconnect { clean: true });
    }
    let reason = fields.u8()?;
    // What a client may say (3.14.2.1).
    if !matches!(reason, 0x00 | 0x04 | 0x80..=0x83 | 0x90 | 0x93..=0x99) {
        return Err(Bad::protocol("a reason code that a client's DISCONNECT does not have"));
    }
    if !fields.is_empty() {
        Properties::read(fields, Allowed::DISCONNECT)?;
    }
    Ok(Disconnect { clean: reason == 0 })
}

fn nothing_left(fields: Fields<'_>) -> Result<(), Bad> {
    if fields.is_empty() { Ok(()) } else { Err(Bad::malformed("a packet that is longer than its fields")) }
}
