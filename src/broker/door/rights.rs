//! Which topics are whose (wire protocol, Topics): a device publishes to its own `event` and `status`, subscribes to its own
//! `command`, and leaves its will on its own `status`. Nothing else, and no wildcards.

use super::codec::Reason;
use crate::{
    broker::{MqttVersion, frame::DEVICE_BYTES_MAX},
    topics::is_well_formed_filter,
};

/// Whether this can be a device: 1 to 32 of `a-z 0-9 _ -`.
pub(super) fn is_device_name(name: &str) -> bool {
    (1..=DEVICE_BYTES_MAX).contains(&name.len())
        && name.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-'))
}

/// A topic that a device may publish to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Own {
    Event,
    Status,
}

/// Whether a topic is one of the device's own.
pub(super) fn publishes_to(device: &str, topic: &str) -> Option<Own> {
    match own(device, topic)? {
        "event" => Some(Own::Event),
        "status" => Some(Own::Status),
        _ => None,
    }
}

/// Whether a filter is the device's own `command` topic.
pub(super) fn is_own_command(device: &str, filter: &str) -> bool {
    own(device, filter) == Some("command")
}

/// The answer to one filter of a SUBSCRIBE: the granted QoS, which is always 0, or why not. `identified`: it came with a
/// subscription identifier.
pub(super) fn subscription(device: &str, version: MqttVersion, filter: &str, identified: bool) -> u8 {
    let refusal = if !is_well_formed_filter(filter) {
        Reason::FilterInvalid
    } else if filter.starts_with("$share/") {
        Reason::SharedNotSupported
    } else if filter.contains(['+', '#']) {
        Reason::WildcardsNotSupported
    } else if !is_own_command(device, filter) {
        Reason::NotAuthorized
    } else if identified {
        Reason::SubscriptionIdsNotSupported
    } else {
        return 0;
    };
    match version {
        MqttVersion::V3_1_1 => 0x80, // the only code of failure there (MQTT 3.1.1 3.9.3)
        MqttVersion::V5 => refusal.code(),
    }
}

/// The last part of a topic that is the device's own.
fn own<'a>(device: &str, topic: &'a str) -> Option<&'a str> {
    topic.strip_prefix("truetwin/")?.strip_prefix(device)?.strip_prefix('/')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_publishes_to_its_own_topics_only() {
        assert_eq!(publishes_to("lamp", "truetwin/lamp/event"), Some(Own::Event));
        assert_eq!(publishes_to("lamp", "truetwin/lamp/status"), Some(Own::Status));
        for topic in [
            "truetwin/lamp/command",
            "truetwin/lamp2/event",
            "truetwin/lam/event",
            "truetwin/lamp/event/x",
            "truetwin//event",
            "/truetwin/lamp/event",
            "Truetwin/lamp/event",
            "设备/lamp/event",
            "$SYS/x",
        ] {
            assert_eq!(publishes_to("lamp", topic), None, "{topic}");
        }
    }

    #[test]
    fn each_subscription_that_is_refused_says_why() {
        let code = |filter| subscription("lamp", MqttVersion::V5, filter, false);
        assert_eq!(code("truetwin/lamp/command"), 0x00);
        assert_eq!(code("truetwin/other/command"), 0x87);
        assert_eq!(code("truetwin/lamp/event"), 0x87);
        assert_eq!(code("#"), 0xA2);
        assert_eq!(code("truetwin/+/command"), 0xA2);
        assert_eq!(code("$share/g/truetwin/lamp/command"), 0x9E);
        for filter in ["", "a/#/b", "a+", "#a", "a/b#"] {
            assert_eq!(code(filter), 0x8F, "{filter}");
        }
        assert_eq!(subscription("lamp", MqttVersion::V5, "truetwin/lamp/command", true), 0xA1);
        assert_eq!(subscription("lamp", MqttVersion::V3_1_1, "#", false), 0x80);
    }

    #[test]
    fn device_names_are_short_and_plain() {
        for name in ["a", "lamp-1_x", "0123456789abcdef0123456789abcdef"] {
            assert!(is_device_name(name), "{name}");
        }
        for name in ["", "Lamp", "a b", "a/b", "灯", "+", "#", "0123456789abcdef0123456789abcdef0"] {
            assert!(!is_device_name(name), "{name}");
        }
    }
}
