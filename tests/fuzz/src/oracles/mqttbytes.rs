//! The codecs of the crate mqttbytes, one for each version.

use ::mqttbytes::{Error, v4, v5};
use bytes::BytesMut;
use truetwin::broker::MqttVersion;

use super::*;
use crate::facts::{BYTES_MAX, Facts, will};

pub(super) fn read(bytes: &[u8], version: MqttVersion) -> Verdict {
    let mut stream = BytesMut::from(bytes);
    let read = match version {
        MqttVersion::V3_1_1 => v4::read(&mut stream, BYTES_MAX).map(facts_3),
        MqttVersion::V5 => v5::read(&mut stream, BYTES_MAX).map(facts_5),
    };
    match read {
        Ok(facts) => Verdict::Reads(facts.with("bytes", bytes.len() - stream.len())),
        Err(Error::InsufficientBytes(_)) => Verdict::Waits,
        Err(error) => Verdict::Refuses(format!("{error:?}")),
    }
}

fn facts_3(packet: v4::Packet) -> Facts {
    use v4::Packet;
    match packet {
        Packet::Connect(connect) => {
            let login = connect.login.unwrap_or_else(|| v4::Login::new("", ""));
            let facts = Facts::of("CONNECT")
                .with("clean", connect.clean_session)
                .with("keep alive", connect.keep_alive)
                .with("client id", &connect.client_id)
                .with("user", &login.username)
                .with("password", login.password.as_bytes());
            let Some(last) = connect.last_will else { return facts };
            let wills = Facts::of("will")
                .with("topic", &last.topic)
                .with("payload", &last.message[..])
                .with("qos", last.qos as u8)
                .with("retain", last.retain);
            facts.with("will", will(wills))
        }
        Packet::Publish(publish) => Facts::of("PUBLISH")
            .with("dup", publish.dup)
            .with("qos", publish.qos as u8)
            .with("retain", publish.retain)
            .with("topic", &publish.topic)
            .with("payload", &publish.payload[..])
            .with("id", publish.pkid),
        Packet::PubAck(ack) => Facts::of("PUBACK").with("id", ack.pkid),
        Packet::Subscribe(subscribe) => {
            let filters: Vec<_> = subscribe.filters.iter().map(|each| (each.path.as_str(), each.qos as u8)).collect();
            Facts::of("SUBSCRIBE").with("id", subscribe.pkid).with("filters", filters)
        }
        Packet::Unsubscribe(unsubscribe) => {
            Facts::of("UNSUBSCRIBE").with("id", unsubscribe.pkid).with("filters", &unsubscribe.topics)
        }
        Packet::PingReq => Facts::of("PINGREQ"),
        Packet::Disconnect => Facts::of("DISCONNECT"),
        Packet::ConnAck(_)
        | Packet::PubRec(_)
        | Packet::PubRel(_)
        | Packet::PubComp(_)
        | Packet::SubAck(_)
        | Packet::UnsubAck(_)
        | Packet::PingResp => Facts::of("another"),
    }
}

fn facts_5(packet: v5::Packet) -> Facts {
    use v5::{Packet, RetainForwardRule};
    match packet {
        Packet::Connect(connect) => {
            let login = connect.login.unwrap_or_else(|| v5::Login::new("", ""));
            let facts = Facts::of("CONNECT")
                .with("clean", connect.clean_session)
                .with("keep alive", connect.keep_alive)
                .with("client id", &connect.client_id)
                .with("user", &login.username)
                .with("password", login.password.as_bytes());
            let facts = connect_properties!(facts, &connect.properties);
            let Some(last) = connect.last_will else { return facts };
            let wills = Facts::of("will")
                .with("topic", &last.topic)
                .with("payload", &last.message[..])
                .with("qos", last.qos as u8)
                .with("retain", last.retain);
            facts.with("will", will(will_properties!(wills, &last.properties)))
        }
        Packet::Publish(publish) => {
            let facts = Facts::of("PUBLISH")
                .with("dup", publish.dup)
                .with("qos", publish.qos as u8)
                .with("retain", publish.retain)
                .with("topic", &publish.topic)
                .with("payload", &publish.payload[..])
                .with("id", publish.pkid);
            publish_properties!(facts, &publish.properties)
        }
        Packet::PubAck(ack) => {
            let facts = Facts::of("PUBACK").with("id", ack.pkid).with("code", code(&ack.reason));
            ack_properties!(facts, &ack.properties)
        }
        Packet::Subscribe(subscribe) => {
            let filters: Vec<_> =
                subscribe.filters.iter().map(|each| (each.path.as_str(), options!(each, RetainForwardRule))).collect();
            let facts = Facts::of("SUBSCRIBE").with("id", subscribe.pkid).with("filters", filters);
            subscribe_properties!(facts, &subscribe.properties)
        }
        Packet::Unsubscribe(unsubscribe) => {
            let facts = Facts::of("UNSUBSCRIBE").with("id", unsubscribe.pkid).with("filters", &unsubscribe.filters);
            unsubscribe_properties!(facts, &unsubscribe.properties)
        }
        Packet::PingReq => Facts::of("PINGREQ"),
        Packet::Disconnect(goodbye) => {
            let facts = Facts::of("DISCONNECT").with("code", code(&goodbye.reason_code));
            disconnect_properties!(facts, &goodbye.properties)
        }
        Packet::ConnAck(_)
        | Packet::PubRec(_)
        | Packet::PubRel(_)
        | Packet::PubComp(_)
        | Packet::SubAck(_)
        | Packet::UnsubAck(_)
        | Packet::PingResp => Facts::of("another"),
    }
}
