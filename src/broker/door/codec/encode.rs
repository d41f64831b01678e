//! Packets to a device, as bytes. Each function appends one packet.

use super::{Reason, fields::shortest};
use crate::broker::MqttVersion;

/// Return codes of a 3.1.1 CONNACK (MQTT 3.1.1 3.2.2.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum ReturnCode {
    UnacceptableVersion = 1,
    IdentifierRejected = 2,
    ServerUnavailable = 3,
    BadLogin = 4,
    NotAuthorized = 5,
}

/// What a CONNACK of MQTT 5 says about the server (3.2.2.3). What is not offered is said in each: no retained messages,
/// no wildcards, no subscription identifiers, no shared subscriptions, no QoS 2, no topic aliases (by leaving their
/// maximum out), no session beyond the connection.
pub(crate) struct Welcome<'a> {
    pub(crate) receive_max: u16,
    pub(crate) packet_bytes_max: u32,
    /// Said if it is not what the device asked for.
    pub(crate) server_keep_alive_s: Option<u16>,
    /// Said if the device came without a client id.
    pub(crate) assigned_client_id: Option<&'a str>,
}

/// CONNACK of success. A session is never present.
pub(crate) fn welcome(out: &mut Vec<u8>, version: MqttVersion, welcome: &Welcome<'_>) {
    if version == MqttVersion::V3_1_1 {
        out.extend_from_slice(&[0x20, 2, 0, 0]);
        return;
    }
    let mut properties = Vec::with_capacity(64);
    properties.extend_from_slice(&[0x11, 0, 0, 0, 0]); // session expiry interval
    properties.push(0x21);
    properties.extend_from_slice(&welcome.receive_max.to_be_bytes());
    properties.extend_from_slice(&[0x24, 1]); // maximum QoS
    properties.extend_from_slice(&[0x25, 0]); // retain available
    properties.push(0x27);
    properties.extend_from_slice(&welcome.packet_bytes_max.to_be_bytes());
    if let Some(id) = welcome.assigned_client_id {
        properties.push(0x12);
        text(&mut properties, id);
    }
    properties.extend_from_slice(&[0x28, 0, 0x29, 0, 0x2A, 0]); // wildcards, subscription identifiers, shared
    if let Some(seconds) = welcome.server_keep_alive_s {
        properties.push(0x13);
        properties.extend_from_slice(&seconds.to_be_bytes());
    }
    out.push(0x20);
    varint(out, 2 + shortest(properties.len()) + properties.len());
    out.extend_from_slice(&[0, Reason::Success.code()]);
    varint(out, properties.len());
    out.extend_from_slice(&properties);
}

/// CONNACK of refusal to a 3.1.1 device.
pub(crate) fn refusal_v3(out: &mut Vec<u8>, code: ReturnCode) {
    out.extend_from_slice(&[0x20, 2, 0, code as u8]);
}

/// CONNACK of refusal to a v5 device.
pub(crate) fn refusal_v5(out: &mut Vec<u8>, reason: Reason) {
    out.extend_from_slice(&[0x20, 3, 0, reason.code(), 0]);
}

/// PUBACK. A 3.1.1 device can only be told of success.
pub(crate) fn puback(out: &mut Vec<u8>, version: MqttVersion, packet_id: u16, reason: Reason) {
    let [high, low] = packet_id.to_be_bytes();
    if version == MqttVersion::V5 && reason != Reason::Success {
        out.extend_from_slice(&[0x40, 3, high, low, reason.code()]);
    } else {
        debug_assert_eq!(reason, Reason::Success);
        out.extend_from_slice(&[0x40, 2, high, low]);
    }
}

/// SUBACK, with one code for each filter.
pub(crate) fn suback(out: &mut Vec<u8>, version: MqttVersion, packet_id: u16, codes: &[u8]) {
    acknowledge_each(out, 0x90, version, packet_id, codes);
}

/// UNSUBACK; a 3.1.1 one has no codes.
pub(crate) fn unsuback(out: &mut Vec<u8>, version: MqttVersion, packet_id: u16, codes: &[u8]) {
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
pub(crate) fn pingresp(out: &mut Vec<u8>) {
    out.extend_from_slice(&[0xD0, 0]);
}

/// DISCONNECT, which only MQTT 5 knows from a server. With its empty properties, which could be left out (3.14.2.2):
/// rumqttc 0.25 waits for them.
pub(crate) fn disconnect(out: &mut Vec<u8>, reason: Reason) {
    out.extend_from_slice(&[0xE0, 2, reason.code(), 0]);
}

/// PUBLISH of a command: QoS 0, not retained, on `truetwin/<device>/command`.
pub(crate) fn command(out: &mut Vec<u8>, version: MqttVersion, device: &str, payload: &[u8]) {
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
pub(crate) fn command_bytes(version: MqttVersion, device: &str, payload_bytes: usize) -> usize {
    let body = command_body_bytes(version, device, payload_bytes);
    1 + shortest(body) + body
}

fn command_body_bytes(version: MqttVersion, device: &str, payload_bytes: usize) -> usize {
    let topic = "truetwin/".len() + device.len() + "/command".len();
    2 + topic + usize::from(version == MqttVersion::V5) + payload_bytes
}

fn text(out: &mut Vec<u8>, text: &str) {
    let bytes = u16::try_from(text.len()).expect("topics and client ids of ours are short");
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
