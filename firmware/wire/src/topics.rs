//! The three topics of a device (*Topics*).
//!
//! Three and fixed: a device may publish only to its own `event` and `status` and subscribe only to its own `command`,
//! so a door can check rights by comparing text.

use core::fmt::{self, Write as _};

use crate::limits::{NAME_BYTES_MAX, is_device_name};

/// What all topics begin with.
pub const PREFIX: &str = "truetwin/";

/// Longest topic, bytes: prefix, name, and the longest suffix `/command`.
pub const TOPIC_BYTES_MAX: usize = PREFIX.len() + NAME_BYTES_MAX + "/command".len();

/// One topic, without an allocator.
pub type Topic = heapless::String<TOPIC_BYTES_MAX>;

/// What a topic is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Channel {
    /// Device to hub: reports.
    Event,
    /// Hub to device: commands.
    Command,
    /// The device's last will.
    Status,
}

impl Channel {
    /// The last part of the topic.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Event => "event",
            Self::Command => "command",
            Self::Status => "status",
        }
    }
}

/// A text that names no device: 1 to 32 of `a-z`, `0-9`, `_` and `-` are allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadDeviceName;

impl fmt::Display for BadDeviceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no device name: 1 to 32 of a-z, 0-9, _ and - are allowed")
    }
}

impl core::error::Error for BadDeviceName {}

/// The topic of a channel of a device.
///
/// # Errors
/// [`BadDeviceName`] if the name may not stand in a topic.
pub fn topic(device: &str, channel: Channel) -> Result<Topic, BadDeviceName> {
    if !is_device_name(device) {
        return Err(BadDeviceName);
    }
    let mut topic = Topic::new();
    write!(topic, "{PREFIX}{device}/{}", channel.as_str()).map_err(|_| BadDeviceName)?;
    Ok(topic)
}

/// `truetwin/<device>/event`.
///
/// # Errors
/// As [`topic`].
pub fn event_topic(device: &str) -> Result<Topic, BadDeviceName> {
    topic(device, Channel::Event)
}

/// `truetwin/<device>/command`.
///
/// # Errors
/// As [`topic`].
pub fn command_topic(device: &str) -> Result<Topic, BadDeviceName> {
    topic(device, Channel::Command)
}

/// `truetwin/<device>/status`.
///
/// # Errors
/// As [`topic`].
pub fn status_topic(device: &str) -> Result<Topic, BadDeviceName> {
    topic(device, Channel::Status)
}

/// The device and the channel of a topic; `None` if it is none of ours.
pub fn parse(topic: &str) -> Option<(&str, Channel)> {
    let (device, last) = topic.strip_prefix(PREFIX)?.split_once('/')?;
    let channel = [Channel::Event, Channel::Command, Channel::Status].into_iter().find(|c| c.as_str() == last)?;
    is_device_name(device).then_some((device, channel))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that fails here says where")]
mod tests {
    use super::*;

    #[test]
    fn a_topic_reads_back_as_what_it_was_made_of() {
        let longest = "a".repeat(32);
        for device in ["lamp", "a-b_9", &longest] {
            for channel in [Channel::Event, Channel::Command, Channel::Status] {
                assert_eq!(parse(&topic(device, channel).unwrap()), Some((device, channel)));
            }
        }
    }

    #[test]
    fn a_topic_that_is_none_of_ours_is_none() {
        for other in
            ["truetwin/lamp", "truetwin/lamp/event/x", "truetwin//event", "truetwin/Lamp/event", "灯/lamp/event", ""]
        {
            assert_eq!(parse(other), None, "{other}");
        }
        assert!(topic("a/b", Channel::Event).is_err() && topic("", Channel::Event).is_err());
        assert!(topic(&"a".repeat(33), Channel::Event).is_err());
    }
}
