//! What the door sends is read by other people's codecs as what it is.
#![allow(missing_docs, clippy::unwrap_used, clippy::wildcard_enum_match_arm)]

use std::num::NonZeroU16;

use bytes::BytesMut;
use ntex_codec::Decoder;
use ntex_mqtt::{
    QoS,
    v3::codec as three,
    v5::codec::{self as five, ConnectAck, ConnectAckReason, SubscribeAck, UnsubscribeAck},
};
use rumqttc::{mqttbytes::v4, v5::mqttbytes::v5};
use truetwin::broker::{
    MqttVersion::{V3_1_1, V5},
    codec::{
        Reason,
        encode::{self, Outgoing, ReturnCode, Welcome},
    },
};

fn sent(write: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut out = Vec::new();
    write(&mut out);
    out
}

fn ntex_5(bytes: &[u8]) -> five::Packet {
    let mut stream = ntex_bytes::BytesMut::copy_from_slice(bytes);
    let Ok(Some(five::Decoded::Packet(packet, _))) = five::Codec::new().decode(&mut stream) else {
        panic!("{bytes:x?}");
    };
    assert!(stream.is_empty());
    packet
}

fn ntex_3(bytes: &[u8]) -> three::Packet {
    let mut stream = ntex_bytes::BytesMut::copy_from_slice(bytes);
    let Ok(Some(three::Decoded::Packet(packet, _))) = three::Codec::new().decode(&mut stream) else {
        panic!("{bytes:x?}");
    };
    assert!(stream.is_empty());
    packet
}

fn rumqttc_5(bytes: &[u8]) -> v5::Packet {
    v5::Packet::read(&mut BytesMut::from(bytes), None).unwrap()
}

fn rumqttc_3(bytes: &[u8]) -> v4::Packet {
    v4::Packet::read(&mut BytesMut::from(bytes), 4096).unwrap()
}

#[test]
fn a_welcome_says_what_is_offered() {
    for (some, assigned) in [(false, "x".repeat(200)), (true, "c".to_owned())] {
        let words = Welcome {
            receive_max: 10,
            packet_bytes_max: 4096,
            topic_alias_max: if some { 16 } else { 0 },
            retain: some,
            wildcards: some,
            server_keep_alive_s: some.then_some(120),
            assigned_client_id: Some(&assigned),
            response_information: some.then_some("r"),
        };
        let bytes = sent(|out| encode::welcome(out, V5, &words));
        let expected = ConnectAck {
            session_expiry_interval_secs: Some(0),
            receive_max: NonZeroU16::new(10).unwrap(),
            max_qos: QoS::AtLeastOnce,
            max_packet_size: Some(4096),
            assigned_client_id: Some(assigned.as_str().into()),
            topic_alias_max: words.topic_alias_max,
            retain_available: some,
            wildcard_subscription_available: some,
            subscription_identifiers_available: false,
            shared_subscription_available: false,
            server_keepalive_sec: words.server_keep_alive_s,
            response_info: words.response_information.map(Into::into),
            ..ConnectAck::default()
        };
        assert_eq!(ntex_5(&bytes), five::Packet::ConnectAck(Box::new(expected)));
        let v5::Packet::ConnAck(read) = rumqttc_5(&bytes) else { panic!("{bytes:x?}") };
        let properties = read.properties.unwrap();
        assert_eq!((properties.receive_max, properties.max_qos), (Some(10), Some(1)));
        assert_eq!(properties.assigned_client_identifier, Some(assigned.clone()));
        assert_eq!((properties.retain_available, properties.topic_alias_max), (Some(some.into()), some.then_some(16)));
        let bytes = sent(|out| encode::welcome(out, V3_1_1, &words));
        let v4::Packet::ConnAck(read) = rumqttc_3(&bytes) else { panic!("{bytes:x?}") };
        assert_eq!((read.session_present, read.code), (false, v4::ConnectReturnCode::Success));
    }
}

#[test]
fn a_refusal_says_why() {
    let reasons = [
        (Reason::Malformed, ConnectAckReason::MalformedPacket),
        (Reason::UnsupportedVersion, ConnectAckReason::UnsupportedProtocolVersion),
        (Reason::BadLogin, ConnectAckReason::BadUserNameOrPassword),
        (Reason::NotAuthorized, ConnectAckReason::NotAuthorized),
        (Reason::ServerBusy, ConnectAckReason::ServerBusy),
        (Reason::Banned, ConnectAckReason::Banned),
        (Reason::BadAuthenticationMethod, ConnectAckReason::BadAuthenticationMethod),
        (Reason::QosNotSupported, ConnectAckReason::QosNotSupported),
        (Reason::RetainNotSupported, ConnectAckReason::RetainNotSupported),
        (Reason::ConnectionRateExceeded, ConnectAckReason::ConnectionRateExceeded),
    ];
    for (reason, theirs) in reasons {
        let bytes = sent(|out| encode::refusal_v5(out, reason));
        let five::Packet::ConnectAck(read) = ntex_5(&bytes) else { panic!("{bytes:x?}") };
        assert_eq!(read.reason_code, theirs);
        assert!(matches!(rumqttc_5(&bytes), v5::Packet::ConnAck(_)));
    }
    let bytes = sent(|out| encode::refusal_v3(out, ReturnCode::BadLogin));
    let v4::Packet::ConnAck(read) = rumqttc_3(&bytes) else { panic!("{bytes:x?}") };
    assert_eq!(read.code, v4::ConnectReturnCode::BadUserNamePassword);
}

#[test]
fn acknowledgements_say_what_became_of_each() {
    let id = NonZeroU16::new(258).unwrap();
    let bytes = sent(|out| encode::puback(out, V5, 258, Reason::NotAuthorized));
    let five::Packet::PublishAck(read) = ntex_5(&bytes) else { panic!("{bytes:x?}") };
    assert_eq!((read.packet_id, read.reason_code), (id, five::PublishAckReason::NotAuthorized));
    let bytes = sent(|out| encode::puback(out, V3_1_1, 258, Reason::Success));
    assert_eq!(ntex_3(&bytes), three::Packet::PublishAck { packet_id: id });
    assert_eq!(rumqttc_3(&bytes), v4::Packet::PubAck(v4::PubAck::new(258)));

    let codes = [0, 1, 0x80, 0x87, 0x8F, 0x97, 0x9E, 0xA1, 0xA2];
    let bytes = sent(|out| encode::suback(out, V5, 258, &codes));
    let status = codes.iter().map(|code| (*code).try_into().unwrap()).collect();
    let expected = SubscribeAck { packet_id: id, properties: Vec::new(), reason_string: None, status };
    assert_eq!(ntex_5(&bytes), five::Packet::SubscribeAck(expected));
    let v5::Packet::SubAck(read) = rumqttc_5(&bytes) else { panic!("{bytes:x?}") };
    assert_eq!((read.pkid, read.return_codes.len()), (258, codes.len()));
    let bytes = sent(|out| encode::suback(out, V3_1_1, 258, &[0, 1, 0x80]));
    let v4::Packet::SubAck(read) = rumqttc_3(&bytes) else { panic!("{bytes:x?}") };
    assert_eq!((read.pkid, read.return_codes.len()), (258, 3));

    let bytes = sent(|out| encode::unsuback(out, V5, 258, &[0, 0x11, 0x8F]));
    let status = [0, 0x11, 0x8F].into_iter().map(|code: u8| code.try_into().unwrap()).collect();
    let expected = UnsubscribeAck { packet_id: id, properties: Vec::new(), reason_string: None, status };
    assert_eq!(ntex_5(&bytes), five::Packet::UnsubscribeAck(expected));
    let bytes = sent(|out| encode::unsuback(out, V3_1_1, 258, &[0]));
    assert_eq!(ntex_3(&bytes), three::Packet::UnsubscribeAck { packet_id: id });
    assert_eq!(ntex_5(&sent(encode::pingresp)), five::Packet::PingResponse);
}

#[test]
fn a_goodbye_says_why() {
    for why in ["", "a packet larger than allowed", &"x".repeat(300)] {
        let bytes = sent(|out| encode::disconnect_because(out, Reason::PacketTooLarge, why));
        let five::Packet::Disconnect(read) = ntex_5(&bytes) else { panic!("{bytes:x?}") };
        assert_eq!(read.reason_code, five::DisconnectReasonCode::PacketTooLarge);
        assert_eq!(read.reason_string.as_deref(), Some(why));
        let v5::Packet::Disconnect(read) = rumqttc_5(&bytes) else { panic!("{bytes:x?}") };
        assert_eq!(read.properties.unwrap().reason_string.as_deref(), Some(why));
    }
    let bytes = sent(|out| encode::disconnect(out, Reason::TakenOver));
    let v5::Packet::Disconnect(read) = rumqttc_5(&bytes) else { panic!("{bytes:x?}") };
    assert_eq!(read.reason_code, v5::DisconnectReasonCode::SessionTakenOver);
}

#[test]
fn a_message_arrives_as_it_was_sent() {
    for packet_id in [0, 7] {
        for payload in [&b""[..], b"hi", &[b'x'; 300]] {
            let message = Outgoing {
                topic: "truetwin/lamp/command",
                payload,
                packet_id,
                dup: packet_id > 0,
                retain: true,
                properties: truetwin::broker::codec::Properties::of_publish(b"\x26\0\x01a\0\x01b\x08\0\x01r").unwrap(),
                expiry_s: Some(9),
            };
            let bytes = sent(|out| encode::publish(out, V5, &message));
            let v5::Packet::Publish(read) = rumqttc_5(&bytes) else { panic!("{bytes:x?}") };
            assert_eq!((&read.topic[..], &read.payload[..]), (message.topic.as_bytes(), payload));
            assert_eq!((read.pkid, read.dup, read.retain), (packet_id, packet_id > 0, true));
            let properties = read.properties.unwrap();
            assert_eq!(
                (properties.message_expiry_interval, properties.response_topic.as_deref()),
                (Some(9), Some("r"))
            );
            assert_eq!(properties.user_properties, [("a".to_owned(), "b".to_owned())]);
            let bytes = sent(|out| encode::publish(out, V3_1_1, &message));
            let v4::Packet::Publish(read) = rumqttc_3(&bytes) else { panic!("{bytes:x?}") };
            assert_eq!((read.topic.as_str(), &read.payload[..]), (message.topic, payload));
            assert_eq!((read.pkid, read.dup, read.retain), (packet_id, packet_id > 0, true));
        }
    }
}
