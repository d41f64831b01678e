//! MQTT 3.1.1 and 5, the server's side, over slices: what the door reads and what it answers.
//!
//! Decoding borrows from the buffer, allocates nothing and panics on nothing. It checks the format completely (lengths,
//! UTF-8, flags, properties, topic names, reason codes); what is allowed to whom is the session's business. Packet types
//! that the door has no use for (those of a server, of QoS 2, of extended authentication) are protocol errors. Encoding
//! appends one packet to a buffer, of a size that can be asked for before.
//!
//! It knows no connection, no account and no runtime. Sections in comments are of MQTT 5 if not said otherwise; `tests/fuzz`
//! holds it against other people's codecs.

mod connect;
mod decode;
pub mod encode;
mod fields;
mod properties;
mod reason;

pub use self::{
    connect::{Connect, ConnectError, Will, decode_connect},
    decode::{Disconnect, Packet, PubAck, Publish, Subscribe, Subscription, Unsubscribe, decode},
    properties::{Properties, Property},
    reason::Reason,
};

use crate::topics::is_well_formed_topic;

/// A packet that cannot be accepted: the code for a v5 client, and words for the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what}")]
pub struct Bad {
    /// The code of the CONNACK or DISCONNECT that answers it (4.13).
    pub reason: Reason,
    /// What was wrong with it.
    pub what: &'static str,
}

impl Bad {
    fn malformed(what: &'static str) -> Self {
        Self { reason: Reason::Malformed, what }
    }

    fn protocol(what: &'static str) -> Self {
        Self { reason: Reason::Protocol, what }
    }
}

/// The topic, or why it is none.
fn topic(topic: &str) -> Result<&str, Bad> {
    if is_well_formed_topic(topic) {
        return Ok(topic);
    }
    Err(Bad { reason: Reason::TopicInvalid, what: "a topic that is empty or has wildcards" })
}

#[cfg(test)]
mod tests;
