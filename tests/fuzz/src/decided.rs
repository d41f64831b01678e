//! What was decided where others read packets otherwise, each with the section that decides and examples.
//!
//! Sections are of MQTT 5; those after `3:` of MQTT 3.1.1.

mod table;

use truetwin::broker::MqttVersion;

pub use self::table::DECIDED;
use crate::{differences, differences::Difference, oracles::Oracle};

/// One decision, for the versions that its examples are of.
pub struct Decided {
    /// What we say, in the words of [`Difference::ours`].
    pub ours: &'static str,
    /// What they say, in the words of [`Difference::theirs`].
    pub theirs: &'static str,
    /// Who.
    pub who: &'static [Oracle],
    /// The section that decides, and how.
    pub because: &'static str,
    /// The version (3 or 5) and bytes.
    pub examples: &'static [&'static str],
}

/// The decision about a difference. What we refuse a packet for is wrong in any packet of that version; what we read is
/// decided for each kind of packet.
pub fn find(difference: &Difference) -> Option<&'static Decided> {
    let any_kind = !matches!(difference.ours.as_str(), "reads" | "waits");
    DECIDED.iter().find(|each| {
        each.ours == difference.ours
            && each.theirs == difference.theirs
            && each.who.contains(&difference.oracle)
            && each.examples.iter().any(|text| {
                let (version, bytes) = example(text);
                version.as_str() == difference.version && (any_kind || bytes[0] >> 4 == difference.packet)
            })
    })
}

/// The version and bytes of an example.
///
/// # Panics
/// If it is none.
pub fn example(text: &str) -> (MqttVersion, Vec<u8>) {
    let (version, bytes) = text.split_once(' ').unwrap();
    (if version == "5" { MqttVersion::V5 } else { MqttVersion::V3_1_1 }, differences::bytes(bytes))
}
