//! ntex-mqtt's codecs, one for each version.

use ntex_bytes::{ByteString, BytesMut};
use ntex_codec::Decoder;
use ntex_mqtt::{v3::codec as three, v5::codec as five};
use truetwin::broker::MqttVersion;

use super::*;
use crate::facts::{BYTES_MAX, Facts, will};

pub(super) fn read(bytes: &[u8], version: MqttVersion) -> Verdict {
    let mut stream = BytesMut::copy_from_slice(bytes);
    let max = u32::try_from(BYTES_MAX).unwrap();
    let read = match version {
        MqttVersion::V3_1_1 => {
            let codec = three::Codec::new();
            codec.set_max_size(max);
            match codec.decode(&mut stream) {
                Ok(Some(three::Decoded::Packet(packet, _))) => Ok(Some(facts_3(packet))),
                Ok(Some(three::Decoded::Publish(publish, payload, _))) => {
                    let whole = payload.len() == publish.payload_size as usize;
                    Ok(whole.then(|| {
                        let id = publish.packet_id.map_or(0, std::num::NonZeroU16::get);
                        head(publish.dup, publish.qos, publish.retain, &publish.topic, id, &payload)
                    }))
                }
                Ok(None | Some(three::Decoded::PayloadChunk(..))) => Ok(None),
                Err(error) => Err(error),
            }
        }
        MqttVersion::V5 => {
            let codec = five::Codec::new();
            codec.set_max_inbound_size(max);
            match codec.decode(&mut stream) {
                Ok(Some(five::Decoded::Packet(packet, _))) => Ok(Some(facts_5(packet))),
                Ok(Some(five::Decoded::Publish(publish, payload, _))) => {
                    let whole = payload.len() == publish.payload_size as usize;
                    Ok(whole.then(|| {
                        let id = publish.packet_id.map_or(0, std::num::NonZeroU16::get);
                        let facts = head(publish.dup, publish.qos, publish.retain, &publish.topic, id, &payload);
                        let p = &publish.properties;
                        facts
                            .with("text", p.is_utf8_payload)
                            .with("expiry", p.message_expiry_interval)
                            .with("alias", p.topic_alias)
                            .with("content type", p.content_type.as_deref())
                            .with("response topic", p.response_topic.as_deref())
                            .with("correlation", p.correlation_data.as_deref())
                            .with("subscription id", p.subscription_ids.first())
                            .with("user properties", user(&p.user_properties))
                    }))
                }
                Ok(None | Some(five::Decoded::PayloadChunk(..))) => Ok(None),
                Err(error) => Err(error),
            }
        }
    };
    match read {
        Ok(Some(facts)) => Verdict::Reads(facts.with("bytes", bytes.len() - stream.len())),
        Ok(None) => Verdict::Waits,
        Err(error) => Verdict::Refuses(format!("{error:?}")),
    }
}

fn head(dup: bool, qos: ntex_mqtt::QoS, retain: bool, topic: &str, id: u16, payload: &[u8]) -> Facts {
    Facts::of("PUBLISH")
        .with("dup", dup)
        .with("qos", qos as u8)
        .with("retain", retain)
        .with("topic", topic)
        .with("payload", payload)
        .with("id", id)
}

fn user(properties: &[(ByteString, ByteString)]) -> Vec<(&str, &str)> {
    properties.iter().map(|(name, value)| (&name[..], &value[..])).collect()
}

fn texts(filters: &[ByteString]) -> Vec<&str> {
    filters.iter().map(|each| &each[..]).collect()
}

fn facts_3(packet: three::Packet) -> Facts {
    use three::Packet;
    match packet {
        Packet::Connect(connect) => {
            let facts = Facts::of("CONNECT")
                .with("clean", connect.clean_session)
                .with("keep alive", connect.keep_alive)
                .with("client id", &connect.client_id[..])
                .with("user", connect.username.as_deref().unwrap_or_default())
                .with("password", connect.password.as_deref().unwrap_or_default());
            let Some(last) = &connect.last_will else { return facts };
            let wills = Facts::of("will")
                .with("topic", &last.topic[..])
                .with("payload", &last.message[..])
                .with("qos", last.qos as u8)
                .with("retain", last.retain);
            facts.with("will", will(wills))
        }
        Packet::PublishAck { packet_id } => Facts::of("PUBACK").with("id", packet_id),
        Packet::Subscribe { packet_id, topic_filters } => {
            let filters: Vec<_> = topic_filters.iter().map(|(filter, qos)| (&filter[..], *qos as u8)).collect();
            Facts::of("SUBSCRIBE").with("id", packet_id).with("filters", filters)
        }
        Packet::Unsubscribe { packet_id, topic_filters } => {
            Facts::of("UNSUBSCRIBE").with("id", packet_id).with("filters", texts(&topic_filters))
        }
        Packet::PingRequest => Facts::of("PINGREQ"),
        Packet::Disconnect => Facts::of("DISCONNECT"),
        Packet::ConnectAck(_)
        | Packet::PublishReceived { .. }
        | Packet::PublishRelease { .. }
        | Packet::PublishComplete { .. }
        | Packet::SubscribeAck { .. }
        | Packet::UnsubscribeAck { .. }
        | Packet::PingResponse => Facts::of("another"),
    }
}

fn facts_5(packet: five::Packet) -> Facts {
    use five::Packet;
    match packet {
        Packet::Connect(connect) => {
            let facts = Facts::of("CONNECT")
                .with("clean", connect.clean_start)
                .with("keep alive", connect.keep_alive)
                .with("client id", &connect.client_id[..])
                .with("user", connect.username.as_deref().unwrap_or_default())
                .with("password", connect.password.as_deref().unwrap_or_default())
                .with("session expiry", connect.session_expiry_interval_secs)
                .with("receive max", connect.receive_max.map_or(u16::MAX, std::num::NonZeroU16::get))
                .with("packet max", connect.max_packet_size)
                .with("alias max", connect.topic_alias_max)
                .with("response information", connect.request_response_info)
                .with("problem information", connect.request_problem_info)
                .with("method", connect.auth_method.as_deref())
                .with("data", connect.auth_data.as_deref())
                .with("user properties", user(&connect.user_properties));
            let Some(last) = &connect.last_will else { return facts };
            let wills = Facts::of("will")
                .with("topic", &last.topic[..])
                .with("payload", &last.message[..])
                .with("qos", last.qos as u8)
                .with("retain", last.retain)
                .with("delay", last.will_delay_interval_sec.unwrap_or(0))
                .with("text", last.is_utf8_payload == Some(true))
                .with("expiry", last.message_expiry_interval)
                .with("content type", last.content_type.as_deref())
                .with("response topic", last.response_topic.as_deref())
                .with("correlation", last.correlation_data.as_deref())
                .with("user properties", user(&last.user_properties));
            facts.with("will", will(wills))
        }
        Packet::PublishAck(ack) => Facts::of("PUBACK")
            .with("id", ack.packet_id)
            .with("code", ack.reason_code as u8)
            .with("why", ack.reason_string.as_deref())
            .with("user properties", user(&ack.properties)),
        Packet::Subscribe(subscribe) => {
            let options = |each: &five::SubscriptionOptions| {
                each.qos as u8
                    | u8::from(each.no_local) << 2
                    | u8::from(each.retain_as_published) << 3
                    | (each.retain_handling as u8) << 4
            };
            let filters: Vec<_> =
                subscribe.topic_filters.iter().map(|(filter, given)| (&filter[..], options(given))).collect();
            Facts::of("SUBSCRIBE")
                .with("id", subscribe.packet_id)
                .with("filters", filters)
                .with("subscription id", subscribe.id)
                .with("user properties", user(&subscribe.user_properties))
        }
        Packet::Unsubscribe(unsubscribe) => Facts::of("UNSUBSCRIBE")
            .with("id", unsubscribe.packet_id)
            .with("filters", texts(&unsubscribe.topic_filters))
            .with("user properties", user(&unsubscribe.user_properties)),
        Packet::PingRequest => Facts::of("PINGREQ"),
        Packet::Disconnect(goodbye) => Facts::of("DISCONNECT")
            .with("code", goodbye.reason_code as u8)
            .with("session expiry", goodbye.session_expiry_interval_secs)
            .with("why", goodbye.reason_string.as_deref())
            .with("user properties", user(&goodbye.user_properties)),
        Packet::ConnectAck(_)
        | Packet::PublishReceived(_)
        | Packet::PublishRelease(_)
        | Packet::PublishComplete(_)
        | Packet::SubscribeAck(_)
        | Packet::UnsubscribeAck(_)
        | Packet::PingResponse
        | Packet::Auth(_) => Facts::of("another"),
    }
}
