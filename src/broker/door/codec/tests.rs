#![allow(clippy::unwrap_used)]

mod connect;
mod fuzz;
mod others;

use super::{encode::*, *};
use crate::broker::MqttVersion::{self, V3_1_1, V5};

/// A packet of a first byte and a body shorter than 128 bytes.
fn packet(first: u8, body: &[u8]) -> Vec<u8> {
    let mut out = vec![first, u8::try_from(body.len()).unwrap()];
    assert!(out[1] < 0x80);
    out.extend_from_slice(body);
    out
}

/// Its length, then the bytes.
fn field(bytes: &[u8]) -> Vec<u8> {
    let mut out = u16::try_from(bytes.len()).unwrap().to_be_bytes().to_vec();
    out.extend_from_slice(bytes);
    out
}

fn joined(parts: &[&[u8]]) -> Vec<u8> {
    parts.concat()
}

/// The one packet in these bytes.
fn whole(bytes: &[u8], version: MqttVersion) -> Result<Packet<'_>, Bad> {
    let (packet, used) = decode(bytes, version, 4096)?.expect("it is whole");
    assert_eq!(used, bytes.len());
    Ok(packet)
}

/// The code with which these bytes are refused.
fn reason(bytes: &[u8], version: MqttVersion) -> Reason {
    decode(bytes, version, 4096).expect_err("it must be refused").reason
}
