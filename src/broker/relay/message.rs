//! One message between accounts, or from a device to them.

use bytes::Bytes;

use crate::broker::door::codec::{Properties, encode::Outgoing};

/// What a message costs in memory besides its bytes: itself, its place in a map or in a queue, its counts.
const OVERHEAD_BYTES: usize = 160;

/// A message, shared by all who are to have it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::broker) struct Message {
    pub(in crate::broker) topic: Box<str>,
    pub(in crate::broker) payload: Bytes,
    /// 0 or 1, as published.
    pub(in crate::broker) qos: u8,
    /// As published.
    pub(in crate::broker) retain: bool,
    /// The properties that are passed on, in MQTT 5's encoding ([`Properties::passed_on`]).
    pub(in crate::broker) properties: Box<[u8]>,
    /// Until when it is of use (3.3.2.3.3), milliseconds on the broker's clock.
    pub(in crate::broker) expires_ms: Option<u64>,
    /// The connection that published it; 0: a device or the hub.
    pub(in crate::broker) from: u64,
}

impl Message {
    /// One without properties, from a device or the hub.
    pub(in crate::broker) fn plain(topic: String, payload: Bytes, qos: u8) -> Self {
        let (topic, properties) = (topic.into_boxed_str(), Box::default());
        Self { topic, payload, qos, retain: false, properties, expires_ms: None, from: 0 }
    }

    /// What it takes in memory.
    pub(in crate::broker) fn bytes(&self) -> usize {
        OVERHEAD_BYTES + self.topic.len() + self.payload.len() + self.properties.len()
    }

    /// Whether nobody is to have it any more.
    pub(in crate::broker) fn expired(&self, now_ms: u64) -> bool {
        self.expires_ms.is_some_and(|at| at <= now_ms)
    }

    /// As a packet; `packet_id` 0: QoS 0. The time that is left is rounded up, so that it is never said to be over before it is.
    pub(in crate::broker) fn outgoing(&self, packet_id: u16, retain: bool, now_ms: u64) -> Outgoing<'_> {
        let left_s = |at: u64| u32::try_from(at.saturating_sub(now_ms).div_ceil(1000)).unwrap_or(u32::MAX);
        Outgoing {
            topic: &self.topic,
            payload: &self.payload,
            packet_id,
            dup: false,
            retain,
            properties: Properties::of_publish(&self.properties).unwrap_or(Properties::NONE),
            expiry_s: self.expires_ms.map(left_s),
        }
    }

    /// Whether it says the same, so that one need not be kept in the place of the other.
    pub(in crate::broker) fn says_what(&self, other: &Self) -> bool {
        (&self.payload, self.qos, &self.properties, self.expires_ms)
            == (&other.payload, other.qos, &other.properties, other.expires_ms)
    }
}

/// The properties that are passed on, put together.
pub(in crate::broker) fn passed_on(properties: Properties<'_>) -> Box<[u8]> {
    properties.passed_on().collect::<Vec<_>>().concat().into_boxed_slice()
}
