//! Other people's codecs, asked what they make of bytes.

mod mqttbytes;
mod ntex;
mod rumqttc;
mod rumqttd;

use std::{
    cell::Cell,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Once,
};

use truetwin::broker::MqttVersion;

use crate::facts::Verdict;

/// One of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Oracle {
    /// rumqttd 0.20, `protocol`.
    Rumqttd,
    /// rumqttc 0.25, `mqttbytes` and `v5::mqttbytes`.
    Rumqttc,
    /// mqttbytes 0.6.
    Mqttbytes,
    /// ntex-mqtt 9, `v3::codec` and `v5::codec`.
    Ntex,
}

impl Oracle {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Rumqttd, Self::Rumqttc, Self::Mqttbytes, Self::Ntex];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Rumqttd => "rumqttd",
            Self::Rumqttc => "rumqttc",
            Self::Mqttbytes => "mqttbytes",
            Self::Ntex => "ntex-mqtt",
        }
    }

    /// What it makes of the first packet in these bytes. Its panics are caught.
    pub fn judge(self, bytes: &[u8], version: MqttVersion) -> Verdict {
        let read = match self {
            Self::Rumqttd => rumqttd::read,
            Self::Rumqttc => rumqttc::read,
            Self::Mqttbytes => mqttbytes::read,
            Self::Ntex => ntex::read,
        };
        quietly(|| read(bytes, version)).unwrap_or(Verdict::Panics)
    }
}

thread_local! {
    static QUIET: Cell<bool> = const { Cell::new(false) };
}

/// Runs what may panic, without the panic's words on the screen.
fn quietly<T>(run: impl FnOnce() -> T) -> Option<T> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if !QUIET.get() {
                before(info);
            }
        }));
    });
    QUIET.set(true);
    let result = catch_unwind(AssertUnwindSafe(run)).ok();
    QUIET.set(false);
    result
}

/// The number of a reason code that a library gives as a variant.
fn code(variant: &impl std::fmt::Debug) -> u8 {
    match format!("{variant:?}").as_str() {
        "Success" | "NormalDisconnection" => 0x00,
        "DisconnectWithWillMessage" | "DisconnectWithWill" => 0x04,
        "NoMatchingSubscribers" => 0x10,
        "UnspecifiedError" => 0x80,
        "MalformedPacket" => 0x81,
        "ProtocolError" => 0x82,
        "ImplementationSpecificError" => 0x83,
        "NotAuthorized" => 0x87,
        "TopicNameInvalid" => 0x90,
        "PacketIdentifierInUse" => 0x91,
        "ReceiveMaximumExceeded" => 0x93,
        "TopicAliasInvalid" => 0x94,
        "PacketTooLarge" => 0x95,
        "MessageRateTooHigh" => 0x96,
        "QuotaExceeded" => 0x97,
        "AdministrativeAction" => 0x98,
        "PayloadFormatInvalid" => 0x99,
        _ => 0xFF, // a server's
    }
}

/// CONNECT's properties of the three libraries that have the same names for them.
macro_rules! connect_properties {
    ($facts:expr, $properties:expr) => {{
        let p = $properties;
        let p = p.as_ref();
        let flag = |value: Option<u8>, default| value.map_or(default, |value| value != 0);
        $facts
            .with("session expiry", p.and_then(|p| p.session_expiry_interval).unwrap_or(0))
            .with("receive max", p.and_then(|p| p.receive_maximum).unwrap_or(u16::MAX))
            .with("packet max", p.and_then(|p| p.max_packet_size))
            .with("alias max", p.and_then(|p| p.topic_alias_max).unwrap_or(0))
            .with("response information", flag(p.and_then(|p| p.request_response_info), false))
            .with("problem information", flag(p.and_then(|p| p.request_problem_info), true))
            .with("method", p.and_then(|p| p.authentication_method.as_deref()))
            .with("data", p.and_then(|p| p.authentication_data.as_deref()))
            .with("user properties", p.map_or(&[][..], |p| &p.user_properties))
    }};
}

/// The same of a will.
macro_rules! will_properties {
    ($facts:expr, $properties:expr) => {{
        let p = $properties;
        let p = p.as_ref();
        $facts
            .with("delay", p.and_then(|p| p.delay_interval).unwrap_or(0))
            .with("text", p.and_then(|p| p.payload_format_indicator) == Some(1))
            .with("expiry", p.and_then(|p| p.message_expiry_interval))
            .with("content type", p.and_then(|p| p.content_type.as_deref()))
            .with("response topic", p.and_then(|p| p.response_topic.as_deref()))
            .with("correlation", p.and_then(|p| p.correlation_data.as_deref()))
            .with("user properties", p.map_or(&[][..], |p| &p.user_properties))
    }};
}

/// The same of a PUBLISH.
macro_rules! publish_properties {
    ($facts:expr, $properties:expr) => {{
        let p = $properties;
        let p = p.as_ref();
        let ids = p.map_or(&[][..], |p| &p.subscription_identifiers);
        $facts
            .with("text", p.and_then(|p| p.payload_format_indicator) == Some(1))
            .with("expiry", p.and_then(|p| p.message_expiry_interval))
            .with("alias", p.and_then(|p| p.topic_alias))
            .with("content type", p.and_then(|p| p.content_type.as_deref()))
            .with("response topic", p.and_then(|p| p.response_topic.as_deref()))
            .with("correlation", p.and_then(|p| p.correlation_data.as_deref()))
            .with("subscription id", ids.first())
            .with("user properties", p.map_or(&[][..], |p| &p.user_properties))
    }};
}

/// The same of an acknowledgement.
macro_rules! ack_properties {
    ($facts:expr, $properties:expr) => {{
        let p = $properties;
        let p = p.as_ref();
        $facts
            .with("why", p.and_then(|p| p.reason_string.as_deref()))
            .with("user properties", p.map_or(&[][..], |p| &p.user_properties))
    }};
}

/// The same of a SUBSCRIBE.
macro_rules! subscribe_properties {
    ($facts:expr, $properties:expr) => {{
        let p = $properties;
        let p = p.as_ref();
        $facts
            .with("subscription id", p.and_then(|p| p.id))
            .with("user properties", p.map_or(&[][..], |p| &p.user_properties))
    }};
}

/// The same of an UNSUBSCRIBE.
macro_rules! unsubscribe_properties {
    ($facts:expr, $properties:expr) => {{
        let p = $properties;
        $facts.with("user properties", p.as_ref().map_or(&[][..], |p| &p.user_properties))
    }};
}

/// The same of a DISCONNECT.
macro_rules! disconnect_properties {
    ($facts:expr, $properties:expr) => {{
        let p = $properties;
        let p = p.as_ref();
        $facts
            .with("session expiry", p.and_then(|p| p.session_expiry_interval))
            .with("why", p.and_then(|p| p.reason_string.as_deref()))
            .with("user properties", p.map_or(&[][..], |p| &p.user_properties))
    }};
}

/// The options byte of a filter.
macro_rules! options {
    ($filter:expr, $rules:path) => {{
        use $rules as Rule;
        let handling = match $filter.retain_forward_rule {
            Rule::OnEverySubscribe => 0,
            Rule::OnNewSubscribe => 1,
            Rule::Never => 2,
        };
        $filter.qos as u8 | u8::from($filter.nolocal) << 2 | u8::from($filter.preserve_retain) << 3 | handling << 4
    }};
}

use {
    ack_properties, connect_properties, disconnect_properties, options, publish_properties, subscribe_properties,
    unsubscribe_properties, will_properties,
};
