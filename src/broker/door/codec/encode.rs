//! Packets to a client, as bytes. Each function appends one packet.
//!
//! Texts that are given must be at most 65 535 bytes long, and none of them larger than the client's Maximum Packet Size
//! lets through: ask for the size before ([`publish_bytes`]).

use super::{Properties, Reason, fields::shortest, properties::MESSAGE_EXPIRY};
use crate::broker::MqttVersion;

/// Return codes of a 3.1.1 CONNACK (MQTT 3.1.1 3.2.2.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum ReturnCode {
    /// 1.
    UnacceptableVersion = 1,
    /// 2.
    IdentifierRejected = 2,
    /// 3.
    ServerUnavailable = 3,
    /// 4.
    BadLogin = 4,
    /// 5.
    NotAuthorized = 5,
}

/// What a CONNACK of MQTT 5 says about the server (3.2.2.3). What nobody is offered is said in each: no subscription
/// identifiers, no shared subscriptions, no QoS 2, no session beyond the connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Welcome<'a> {
    /// QoS 1 publishes that may wait for their acknowledgement, not 0.
    pub receive_max: u16,
    /// Bytes of the largest packet that is taken.
    pub packet_bytes_max: u32,
    /// The largest topic alias that is taken; 0: none.
    pub topic_alias_max: u16,
    /// Messages may be retained.
    pub retain: bool,
    /// Filters may have wildcards.
    pub wildcards: bool,
    /// Said if it is not what the client asked for.
    pub server_keep_alive_s: Option<u16>,
    /// Said if the client came without a client id.
    pub assigned_client_id: Option<&'a str>,
    /// The basis of response topics, to be said only if the client asked for it (3.2.2.3.15).
    pub response_information: Option<&'a str>,
}

/// CONNACK of success. A session is never present.
pub fn welcome(out: &mut Vec<u8>, version: MqttVersion, welcome: &Welcome<'_>) {
    if version == MqttVersion::V3_1_1 {
        out.extend_from_slice(&[0x20, 2, 0, 0]);
        return;
    }
    let mut properties = Vec::with_capacity(64);
    properties.extend_from_slice(&[0x11, 0, 0, 0, 0]); // session expiry interval
    properties.push(0x21);
    properties.extend_from_slice(&welcome.receive_max.to_be_bytes());
    properties.extend_from_slice(&[0x24, 1]); // maximum QoS
    properties.extend_from_slice(&[0x25, u8::from(welcome.retain)]);
    properties.push(0x27);
    properties.extend_from_slice(&welcome.packet_bytes_max.to_be_bytes());
    if let Some(id) = welcome.assigned_client_id {
        properties.push(0x12);
        text(&mut properties, id);
    }
    if welcome.topic_alias_max > 0 {
        properties.push(0x22);
        properties.extend_from_slice(&welcome.topic_alias_max.to_be_bytes());
    }
    properties.extend_from_slice(&[0x28, u8::from(welcome.wildcards)]);
    properties.extend_from_slice(&[0x29, 0, 0x2A, 0]); // subscription identifiers, shared subscriptions
    if let Some(seconds) = welcome.server_keep_alive_s {
        properties.push(0x13);
        properties.extend_from_slice(&seconds.to_be_bytes());
    }
    if let Some(basis) = welcome.response_information {
        properties.push(0x1A);
        text(&mut properties, basis);
    }
    out.push(0x20);
    varint(out, 2 + shortest(properties.len()) + properties.len());
    out.extend_from_slice(&[0, Reason::Success.code()]);
    varint(out, properties.len());
    out.extend_from_slice(&properties);
}

/// CONNACK of refusal to a 3.1.1 client.
pub fn refusal_v3(out: &mut Vec<u8>, code: ReturnCode) {
    out.extend_from_slice(&[0x20, 2, 0, code as u8]);
}

/// CONNACK of refusal to a v5 client.
pub fn refusal_v5(out: &mut Vec<u8>, reason: Reason) {
    out.extend_from_slice(&[0x20, 3, 0, reason.code(), 0]);
}

/// PUBACK. A 3.1.1 client can only be told of success.
pub fn puback(out: &mut Vec<u8>, version: MqttVersion, packet_id: u16, reason: Reason) {
    let [high, low] = packet_id.to_be_bytes();
    if version == MqttVersion::V5 && reason != Reason::Success {
        out.extend_from_slice(&[0x40, 3, high, low, reason.code()]);
    } else {
        debug_assert_eq!(reason, Reason::Success);
        out.extend_from_slice(&[0x40, 2, high, low]);
    }
}

/// SUBACK, with one code for each filter.
pub fn suback(out: &mut Vec<u8>, version: MqttVersion, packet_id: u16, codes: &[u8]) {
    acknowledge_each(out, 0x90, version, packet_id, codes);
}

/// UNSUBACK; a 3.1.1 one has no codes.
pub fn unsuback(out: &mut Vec<u8>, version: MqttVersion, packet_id: u16, codes: &[u8]) {
    let codes = if version == MqttVersion::V5 { codes } else { &[] };
    acknowledge_each(out, 0xB0, version, packet_id, codes);
}

fn acknowledge_each(out: &mut Vec<u8>, first: u8, version: MqttVersion, packet_id: u16, codes: &[u8]) {
    let v5 = version == MqttVersion::V5;
    out.push(first);
    varint(out, 2 + usize::from(v5) + codes.len());
    out.extend_from_slice(&packet_id.to_be_bytes());
    if v5 {
        out.push(0); // no properties
    }
    out.extend_from_slice(codes);
}

/// PINGRESP.
pub fn pingresp(out: &mut Vec<u8>) {
    out.extend_from_slice(&[0xD0, 0]);
}

/// DISCONNECT, which only MQTT 5 knows from a server. With its empty properties, which could be left out (3.14.2.2):
/// rumqttc 0.25 waits for them.
pub fn disconnect(out: &mut Vec<u8>, reason: Reason) {
    out.extend_from_slice(&[0xE0, 2, reason.code(), 0]);
}

/// The same with a reason in words (3.14.2.2.3), for a log or a person; at most 65 535 bytes. To be left out if the packet
/// would be larger than the client takes: [`disconnect_because_bytes`].
pub fn disconnect_because(out: &mut Vec<u8>, reason: Reason, why: &str) {
    let properties = 3 + why.len();
    out.push(0xE0);
    varint(out, 1 + shortest(properties) + properties);
    out.push(reason.code());
    varint(out, properties);
    out.push(0x1F);
    text(out, why);
}

/// Bytes of the whole packet that [`disconnect_because`] writes.
pub fn disconnect_because_bytes(why: &str) -> usize {
    let properties = 3 + why.len();
    let body = 1 + shortest(properties) + properties;
    1 + shortest(body) + body
}

/// A PUBLISH to a client (3.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outgoing<'a> {
    /// The whole topic; the door uses no aliases of its own.
    pub topic: &'a str,
    /// Its bytes.
    pub payload: &'a [u8],
    /// 0 for QoS 0; any other is the id of a QoS 1 message.
    pub packet_id: u16,
    /// Sent before on this connection; only with QoS 1.
    pub dup: bool,
    /// Retained before the subscription, or published so and asked for so.
    pub retain: bool,
    /// What came with the message, of which [`Properties::passed_on`] goes out. Left out in 3.1.1.
    pub properties: Properties<'a>,
    /// Seconds that are left of the message's expiry (3.3.2.3.3). Left out in 3.1.1.
    pub expiry_s: Option<u32>,
}

/// PUBLISH.
pub fn publish(out: &mut Vec<u8>, version: MqttVersion, message: &Outgoing<'_>) {
    let qos_1 = message.packet_id != 0;
    debug_assert!(qos_1 || !message.dup, "3.3.1.1");
    out.push(0x30 | u8::from(message.dup) << 3 | u8::from(qos_1) << 1 | u8::from(message.retain));
    let properties = passed_on_bytes(version, message);
    varint(out, publish_body_bytes(version, message, properties));
    text(out, message.topic);
    if qos_1 {
        out.extend_from_slice(&message.packet_id.to_be_bytes());
    }
    if version == MqttVersion::V5 {
        varint(out, properties);
        if let Some(seconds) = message.expiry_s {
            out.push(MESSAGE_EXPIRY);
            out.extend_from_slice(&seconds.to_be_bytes());
        }
        for bytes in message.properties.passed_on() {
            out.extend_from_slice(bytes);
        }
    }
    out.extend_from_slice(message.payload);
}

/// Bytes of the whole packet that [`publish`] writes.
pub fn publish_bytes(version: MqttVersion, message: &Outgoing<'_>) -> usize {
    let body = publish_body_bytes(version, message, passed_on_bytes(version, message));
    1 + shortest(body) + body
}

fn passed_on_bytes(version: MqttVersion, message: &Outgoing<'_>) -> usize {
    if version == MqttVersion::V3_1_1 {
        return 0;
    }
    let expiry = if message.expiry_s.is_some() { 5 } else { 0 };
    expiry + message.properties.passed_on().map(<[u8]>::len).sum::<usize>()
}

fn publish_body_bytes(version: MqttVersion, message: &Outgoing<'_>, properties: usize) -> usize {
    let id = if message.packet_id == 0 { 0 } else { 2 };
    let properties = if version == MqttVersion::V5 { shortest(properties) + properties } else { 0 };
    2 + message.topic.len() + id + properties + message.payload.len()
}

/// PUBLISH of a command: QoS 0, not retained, on `truetwin/<device>/command`.
pub fn command(out: &mut Vec<u8>, version: MqttVersion, device: &str, payload: &[u8]) {
    out.push(0x30);
    varint(out, command_body_bytes(version, device, payload.len()));
    let topic = format!("truetwin/{device}/command");
    text(out, &topic);
    if version == MqttVersion::V5 {
        out.push(0); // no properties
    }
    out.extend_from_slice(payload);
}

/// Bytes of the whole packet that [`command`] writes.
pub fn command_bytes(version: MqttVersion, device: &str, payload_bytes: usize) -> usize {
    let body = command_body_bytes(version, device, payload_bytes);
    1 + shortest(body) + body
}

fn command_body_bytes(version: MqttVersion, device: &str, payload_bytes: usize) -> usize {
    let topic = "truetwin/".len() + device.len() + "/command".len();
    2 + topic + usize::from(version == MqttVersion::V5) + payload_bytes
}

fn text(out: &mut Vec<u8>, text: &str) {
    let bytes = u16::try_from(text.len()).expect("texts are at most 65 535 bytes, as the module says");
    out.extend_from_slice(&bytes.to_be_bytes());
    out.extend_from_slice(text.as_bytes());
}

fn varint(out: &mut Vec<u8>, mut value: usize) {
    loop {
        let byte = (value & 0x7F) as u8;
        value >>= 7;
        if value == 0 {
            return out.push(byte);
        }
        out.push(byte | 0x80);
    }
}
