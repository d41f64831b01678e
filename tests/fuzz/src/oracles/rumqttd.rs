//! rumqttd's codec.

use ::rumqttd::protocol::{Error, LastWill, Login, Packet, Protocol, RetainForwardRule, v4::V4, v5::V5};
use bytes::BytesMut;
use truetwin::broker::MqttVersion;

use super::*;
use crate::facts::{BYTES_MAX, Facts, will};

pub(super) fn read(bytes: &[u8], version: MqttVersion) -> Verdict {
    let mut stream = BytesMut::from(bytes);
    let read = match version {
        MqttVersion::V3_1_1 => V4.read_mut(&mut stream, BYTES_MAX),
        MqttVersion::V5 => V5.read_mut(&mut stream, BYTES_MAX),
    };
    match read {
        Ok(packet) => {
            Verdict::Reads(facts(packet, version == MqttVersion::V5).with("bytes", bytes.len() - stream.len()))
        }
        Err(Error::InsufficientBytes(_)) => Verdict::Waits,
        Err(error) => Verdict::Refuses(format!("{error:?}")),
    }
}

fn facts(packet: Packet, v5: bool) -> Facts {
    match packet {
        Packet::Connect(connect, properties, last_will, will_properties, login) => {
            let login = login.unwrap_or(Login { username: String::new(), password: String::new() });
            let mut facts = Facts::of("CONNECT")
                .with("clean", connect.clean_session)
                .with("keep alive", connect.keep_alive)
                .with("client id", &connect.client_id)
                .with("user", &login.username)
                .with("password", login.password.as_bytes());
            if v5 {
                facts = connect_properties!(facts, &properties);
            }
            if let Some(LastWill { topic, message, qos, retain }) = last_will {
                let mut wills = Facts::of("will")
                    .with("topic", String::from_utf8_lossy(&topic))
                    .with("payload", &message[..])
                    .with("qos", qos as u8)
                    .with("retain", retain);
                if v5 {
                    wills = will_properties!(wills, &will_properties);
                }
                facts = facts.with("will", will(wills));
            }
            facts
        }
        Packet::Publish(publish, properties) => {
            // Its fields are its own; this is the way to read them.
            let form = publish.serialize();
            let facts = Facts::of("PUBLISH")
                .with("dup", form[0] & 0x08 != 0)
                .with("qos", form[0] >> 1 & 0x03)
                .with("retain", publish.retain)
                .with("topic", String::from_utf8_lossy(&publish.topic))
                .with("payload", &publish.payload[..])
                .with("id", u16::from_be_bytes([form[1], form[2]]));
            if v5 { publish_properties!(facts, &properties) } else { facts }
        }
        Packet::PubAck(ack, properties) => {
            let facts = Facts::of("PUBACK").with("id", ack.pkid);
            if v5 { ack_properties!(facts, &properties).with("code", code(&ack.reason)) } else { facts }
        }
        Packet::Subscribe(subscribe, properties) => {
            let filters: Vec<_> =
                subscribe.filters.iter().map(|each| (each.path.as_str(), options!(each, RetainForwardRule))).collect();
            let facts = Facts::of("SUBSCRIBE").with("id", subscribe.pkid).with("filters", filters);
            if v5 { subscribe_properties!(facts, &properties) } else { facts }
        }
        Packet::Unsubscribe(unsubscribe, properties) => {
            let facts = Facts::of("UNSUBSCRIBE").with("id", unsubscribe.pkid).with("filters", &unsubscribe.filters);
            if v5 { unsubscribe_properties!(facts, &properties) } else { facts }
        }
        Packet::PingReq(_) => Facts::of("PINGREQ"),
        Packet::Disconnect(goodbye, properties) => {
            let facts = Facts::of("DISCONNECT");
            if v5 { disconnect_properties!(facts, &properties).with("code", code(&goodbye.reason_code)) } else { facts }
        }
        Packet::ConnAck(..)
        | Packet::PingResp(_)
        | Packet::SubAck(..)
        | Packet::PubRec(..)
        | Packet::PubRel(..)
        | Packet::PubComp(..)
        | Packet::UnsubAck(..) => Facts::of("another"),
    }
}
