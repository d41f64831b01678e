//! CONNECT, the first packet (3.1).

use super::{
    Bad, Properties, Property,
    decode::{cut, text_payload},
    fields::{Fields, shortest},
    properties::Allowed,
    topic,
};
use crate::broker::MqttVersion;

/// CONNECT (3.1).
#[derive(Debug, PartialEq, Eq)]
pub struct Connect<'a> {
    /// What the client speaks.
    pub version: MqttVersion,
    /// Clean session (3.1.1), clean start (5).
    pub clean: bool,
    /// Seconds; 0 means none.
    pub keep_alive_s: u16,
    /// Any text, or empty.
    pub client_id: &'a str,
    /// What is to be told if the connection ends without a goodbye.
    pub will: Option<Will<'a>>,
    /// Who it is.
    pub user: Option<&'a str>,
    /// Any bytes.
    pub password: Option<&'a [u8]>,
    /// QoS 1 messages that the client takes without having acknowledged them, at least 1; 65 535 unless said (3.1.2.11.3).
    pub receive_max: u16,
    /// Bytes of the largest packet that the client takes, if it said so (3.1.2.11.4).
    pub packet_bytes_max: Option<u32>,
    /// The largest alias that the client takes; 0: none (3.1.2.11.5).
    pub topic_alias_max: u16,
    /// It asks for a session that outlives its connection by so many seconds (3.1.2.11.2); always 0 in 3.1.1.
    pub session_expiry_s: u32,
    /// It asks for response information (3.1.2.11.6).
    pub request_response: bool,
    /// Without this, a reason string or user property may only come with CONNACK, PUBLISH and DISCONNECT (3.1.2.11.7).
    pub request_problem: bool,
    /// It asks for extended authentication.
    pub authentication: bool,
    /// All its properties.
    pub properties: Properties<'a>,
}

/// The will in a CONNECT (3.1.3.2 to 3.1.3.4).
#[derive(Debug, PartialEq, Eq)]
pub struct Will<'a> {
    /// Not empty, no wildcards.
    pub topic: &'a str,
    /// Any bytes; UTF-8 if the properties say so.
    pub payload: &'a [u8],
    /// 0 to 2.
    pub qos: u8,
    /// It is to be retained.
    pub retain: bool,
    /// Seconds between the connection's end and the will (3.1.3.2.2).
    pub delay_s: u32,
    /// Its properties. They are those of a PUBLISH, and the delay.
    pub properties: Properties<'a>,
}

/// Why a first packet is no CONNECT that can be answered in its own version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectError {
    /// Not readable; if the version was, it is known.
    Bad(Bad, Option<MqttVersion>),
    /// A protocol level that is not spoken here.
    Version {
        /// Whether it is a later one than 5.
        later: bool,
    },
}

/// Reads the first packet of a connection and its length in bytes; `None` if it is not whole yet.
///
/// # Errors
/// As soon as the bytes show that it will be none, and before it is whole if it is larger than `bytes_max`.
pub fn decode_connect(buffer: &[u8], bytes_max: usize) -> Result<Option<(Connect<'_>, usize)>, ConnectError> {
    let unknown = |bad| ConnectError::Bad(bad, None);
    // A wrong first byte is answered at once, not after as many bytes as it happens to announce.
    match buffer.first() {
        None | Some(0x10) => {}
        Some(0x16) => return Err(unknown(Bad::protocol("TLS, on a port for plain MQTT"))),
        Some(_) => return Err(unknown(Bad::protocol("a first packet that is no CONNECT"))),
    }
    let Some((body, total)) = cut(buffer, bytes_max, false).map_err(unknown)? else { return Ok(None) };
    let mut fields = Fields(body);
    let (name, level) = name_and_level(&mut fields).map_err(unknown)?;
    let version = match (name, level) {
        ("MQTT", 4) => MqttVersion::V3_1_1,
        ("MQTT", 5) => MqttVersion::V5,
        ("MQTT" | "MQIsdp", level) => return Err(ConnectError::Version { later: level > 5 }),
        _ => return Err(unknown(Bad::protocol("another protocol than MQTT"))), // 3.1.2.1
    };
    let bad = |bad| ConnectError::Bad(bad, Some(version));
    if version == MqttVersion::V5 && total != 1 + shortest(body.len()) + body.len() {
        return Err(bad(Bad::malformed("a length in more bytes than needed"))); // 1.5.5; 3.1.1 does not forbid it
    }
    let connect = connect(fields, version).map_err(bad)?;
    Ok(Some((connect, total)))
}

fn name_and_level<'a>(fields: &mut Fields<'a>) -> Result<(&'a str, u8), Bad> {
    Ok((fields.text()?, fields.u8()?))
}

fn connect(mut fields: Fields<'_>, version: MqttVersion) -> Result<Connect<'_>, Bad> {
    let v5 = version == MqttVersion::V5;
    let flags = fields.u8()?;
    let (has_user, has_password, has_will) = (flags & 0x80 != 0, flags & 0x40 != 0, flags & 0x04 != 0);
    let (will_retain, will_qos) = (flags & 0x20 != 0, flags >> 3 & 0x03);
    if flags & 0x01 != 0 || will_qos == 3 || (!has_will && (will_retain || will_qos != 0)) {
        return Err(Bad::malformed("connect flags that contradict each other")); // 3.1.2.3 to 3.1.2.7
    }
    if !v5 && has_password && !has_user {
        return Err(Bad::malformed("a password without a user name")); // 3.1.1 3.1.2.9
    }
    let keep_alive_s = fields.u16()?;
    let properties = if v5 { Properties::read(&mut fields, Allowed::CONNECT)? } else { Properties::NONE };
    let client_id = fields.text()?;
    let will = if has_will { Some(will(&mut fields, v5, will_qos, will_retain)?) } else { None };
    let user = if has_user { Some(fields.text()?) } else { None };
    let password = if has_password { Some(fields.binary()?) } else { None };
    fields.end()?;
    let mut connect = Connect {
        version,
        clean: flags & 0x02 != 0,
        keep_alive_s,
        client_id,
        will,
        user,
        password,
        receive_max: u16::MAX,
        packet_bytes_max: None,
        topic_alias_max: 0,
        session_expiry_s: 0,
        request_response: false,
        request_problem: true,
        authentication: false,
        properties,
    };
    for property in properties.iter() {
        match property {
            Property::ReceiveMax(max) => connect.receive_max = max,
            Property::PacketBytesMax(bytes) => connect.packet_bytes_max = Some(bytes),
            Property::TopicAliasMax(max) => connect.topic_alias_max = max,
            Property::SessionExpiry(seconds) => connect.session_expiry_s = seconds,
            Property::RequestResponseInformation(asked) => connect.request_response = asked,
            Property::RequestProblemInformation(asked) => connect.request_problem = asked,
            Property::AuthenticationMethod(_) => connect.authentication = true,
            Property::AuthenticationData(_) | Property::User(..) => {}
            // What a CONNECT cannot have was refused.
            Property::PayloadFormat(_)
            | Property::MessageExpiry(_)
            | Property::ContentType(_)
            | Property::ResponseTopic(_)
            | Property::CorrelationData(_)
            | Property::SubscriptionId(_)
            | Property::WillDelay(_)
            | Property::ReasonString(_)
            | Property::TopicAlias(_) => {}
        }
    }
    Ok(connect)
}

fn will<'a>(fields: &mut Fields<'a>, v5: bool, qos: u8, retain: bool) -> Result<Will<'a>, Bad> {
    let properties = if v5 { Properties::read(fields, Allowed::WILL)? } else { Properties::NONE };
    let topic = topic(fields.text()?)?;
    let payload = text_payload(properties, fields.binary()?)?;
    let delay =
        properties.iter().find_map(|each| if let Property::WillDelay(delay) = each { Some(delay) } else { None });
    Ok(Will { topic, payload, qos, retain, delay_s: delay.unwrap_or(0), properties })
}
