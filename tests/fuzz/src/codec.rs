//! A target: whatever the bytes are, the codec keeps its promises.

use truetwin::{
    broker::{
        MqttVersion,
        codec::{
            ConnectError, Packet, Properties, Publish, decode, decode_connect,
            encode::{Outgoing, publish, publish_bytes},
        },
    },
    topics::is_well_formed_topic,
};

use crate::{facts::BYTES_MAX, random::About};

/// The version that a fuzzer's input is about, and its packet: the first byte chooses.
pub fn split(input: &[u8]) -> Option<(MqttVersion, &[u8])> {
    let (first, bytes) = input.split_first()?;
    Some((if first & 1 == 0 { MqttVersion::V3_1_1 } else { MqttVersion::V5 }, bytes))
}

/// Holds the codec to its promises.
///
/// # Panics
/// If it breaks one.
pub fn check(bytes: &[u8], version: MqttVersion) {
    let _about = About(bytes);
    check_connect(bytes);
    match decode(bytes, version, BYTES_MAX) {
        Ok(None) => assert!(bytes.len() < BYTES_MAX, "what is as long as allowed does not wait for more"),
        Ok(Some((packet, used))) => {
            assert!((2..=bytes.len()).contains(&used), "a packet is of the bytes that were given");
            assert_eq!(decode(&bytes[..used], version, BYTES_MAX), Ok(Some((again(&packet, bytes, version), used))));
            for cut in 0..used.min(64) {
                assert_eq!(decode(&bytes[..cut], version, BYTES_MAX), Ok(None), "a part of a good packet waits");
            }
            assert!(decode(bytes, version, used - 1).is_err(), "one byte more than allowed");
            exercise(&packet, used, version);
        }
        Err(bad) => {
            let mut more = bytes.to_vec();
            more.extend_from_slice(&[0; 8]);
            assert_eq!(decode(&more, version, BYTES_MAX), Err(bad), "what comes behind mends nothing");
            assert!(bad.reason.code() >= 0x80 && !bad.what.is_empty());
        }
    }
}

fn check_connect(bytes: &[u8]) {
    match decode_connect(bytes, BYTES_MAX) {
        Ok(None) => assert!(bytes.len() < BYTES_MAX),
        Ok(Some((connect, used))) => {
            assert!((2..=bytes.len()).contains(&used));
            for cut in 0..used.min(64) {
                assert!(matches!(decode_connect(&bytes[..cut], BYTES_MAX), Ok(None)));
            }
            assert!(connect.receive_max > 0 && connect.packet_bytes_max != Some(0));
            if let Some(will) = &connect.will {
                assert!(is_well_formed_topic(will.topic) && will.qos < 3);
                sent_and_read(will.topic, will.payload, 1, will.retain, will.properties);
            }
        }
        Err(error) => {
            let mut more = bytes.to_vec();
            more.extend_from_slice(&[0; 8]);
            assert_eq!(decode_connect(&more, BYTES_MAX).unwrap_err(), error);
            if let ConnectError::Bad(bad, _) = error {
                assert!(bad.reason.code() >= 0x80);
            }
        }
    }
}

/// The same packet, read once more.
fn again<'a>(_: &Packet<'_>, bytes: &'a [u8], version: MqttVersion) -> Packet<'a> {
    decode(bytes, version, BYTES_MAX).unwrap().unwrap().0
}

fn exercise(packet: &Packet<'_>, used: usize, version: MqttVersion) {
    match packet {
        Packet::Publish(Publish { topic, payload, qos, retain, packet_id, alias, properties, .. }) => {
            assert!(topic.len() + payload.len() < used && *qos < 3);
            assert_eq!(*qos == 0, *packet_id == 0);
            assert!(is_well_formed_topic(topic) || (topic.is_empty() && alias.is_some()));
            assert_ne!(*alias, Some(0));
            if version == MqttVersion::V3_1_1 {
                assert!(properties.is_empty());
            }
            if !topic.is_empty() {
                sent_and_read(topic, payload, *packet_id, *retain, *properties);
            }
        }
        Packet::PubAck(ack) => assert!(ack.packet_id > 0),
        Packet::Subscribe(subscribe) => {
            assert!(subscribe.packet_id > 0 && subscribe.subscriptions().count() > 0);
            assert!(subscribe.subscriptions().all(|each| each.qos < 3 && each.retain_handling < 3));
        }
        Packet::Unsubscribe(unsubscribe) => assert!(unsubscribe.packet_id > 0 && unsubscribe.filters().count() > 0),
        Packet::PingReq => assert!(used >= 2),
        Packet::Disconnect(goodbye) => assert_eq!(goodbye.clean(), goodbye.reason == 0),
    }
}

/// What is passed on says the same to whoever reads it, and is as long as was said before.
fn sent_and_read(topic: &str, payload: &[u8], packet_id: u16, retain: bool, properties: Properties<'_>) {
    let kept = properties.passed_on().collect::<Vec<_>>().concat();
    let kept = Properties::of_publish(&kept).expect("what is passed on can be read");
    for version in [MqttVersion::V3_1_1, MqttVersion::V5] {
        let expiry_s = properties.message_expiry_s();
        let message = Outgoing { topic, payload, packet_id, dup: packet_id != 0, retain, properties: kept, expiry_s };
        let mut out = Vec::new();
        publish(&mut out, version, &message);
        assert_eq!(out.len(), publish_bytes(version, &message));
        let mut raw = Vec::new();
        publish(&mut raw, version, &Outgoing { properties, ..message });
        assert_eq!(raw, out, "what is not passed on is left out");
        let read = decode(&out, version, out.len()).expect("it can be read").expect("it is whole");
        let (Packet::Publish(read), used) = read else { panic!("a PUBLISH") };
        assert_eq!(used, out.len());
        assert_eq!((read.topic, read.payload, read.packet_id), (topic, payload, packet_id));
        assert_eq!((read.retain, read.dup, read.alias), (retain, packet_id != 0, None));
        if version == MqttVersion::V5 {
            assert_eq!(read.properties.message_expiry_s(), expiry_s);
            assert!(read.properties.user().eq(properties.user()));
            assert_eq!(read.properties.response_topic(), properties.response_topic());
            assert_eq!(read.properties.correlation_data(), properties.correlation_data());
            assert_eq!(read.properties.content_type(), properties.content_type());
            assert_eq!(read.properties.payload_is_text(), properties.payload_is_text());
        }
    }
}
