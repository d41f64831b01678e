//! What a service account may read and write.

use super::{DEVICES, covers, is_filter, is_topic, matches};

/// Patterns in one list. Sixteen trees are more than any program of a home uses; each is looked at for each publish.
pub const PATTERNS_MAX: usize = 16;

/// The longest pattern, bytes.
pub const PATTERN_BYTES_MAX: usize = 200;

/// What an account may read and write, as MQTT filters. Made by [`Rights::new`], so each of them is well-formed, and none that
/// is for writing reaches a device's topics.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rights {
    pub(super) read: Vec<Box<str>>,
    pub(super) write: Vec<Box<str>>,
}

/// Why a pattern cannot be granted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadPattern {
    /// It is no filter.
    #[error(
        "{0:?} is no topic pattern: 1 to {PATTERN_BYTES_MAX} bytes, + alone in its level, # alone in the last one, as in \
         homeassistant/# or zigbee2mqtt/+/set"
    )]
    Malformed(String),
    /// It begins with `$`.
    #[error("{0:?} begins with $: such topics ($SYS, $share) are not offered")]
    Reserved(String),
    /// It is for writing and reaches the devices.
    #[error(
        "{0:?} reaches {DEVICES}/…, where only the hub and each device itself may write; name the trees that the account may \
         write, as in homeassistant/#"
    )]
    Devices(String),
    /// There are too many.
    #[error("{0} patterns for one list; at most {PATTERNS_MAX} are allowed")]
    TooMany(usize),
    /// There are none at all.
    #[error(
        "an account that may read and write nothing is of no use; give --read or --write with a pattern, as in homeassistant/#"
    )]
    Nothing,
}

impl Rights {
    /// Takes both lists.
    ///
    /// # Errors
    /// [`BadPattern`], with the first one that cannot be granted.
    pub fn new<S: AsRef<str>>(read: &[S], write: &[S]) -> Result<Self, BadPattern> {
        if read.is_empty() && write.is_empty() {
            return Err(BadPattern::Nothing);
        }
        let (read, write) = (checked(read)?, checked(write)?);
        if let Some(pattern) = write.iter().find(|pattern| reaches_devices(pattern)) {
            return Err(BadPattern::Devices(pattern.to_string()));
        }
        Ok(Self { read, write })
    }

    /// These, and more. A pattern that is there already is not there twice.
    ///
    /// # Errors
    /// As [`Rights::new`].
    pub fn with<S: AsRef<str>>(&self, read: &[S], write: &[S]) -> Result<Self, BadPattern> {
        let joined = |own: &[Box<str>], more: &[S]| {
            let mut all: Vec<String> = own.iter().map(ToString::to_string).collect();
            for pattern in more.iter().map(S::as_ref) {
                if !all.iter().any(|known| known == pattern) {
                    all.push(pattern.to_owned());
                }
            }
            all
        };
        Self::new(&joined(&self.read, read), &joined(&self.write, write))
    }

    /// What may be read.
    pub fn read(&self) -> impl Iterator<Item = &str> {
        self.read.iter().map(|pattern| &**pattern)
    }

    /// What may be written.
    pub fn write(&self) -> impl Iterator<Item = &str> {
        self.write.iter().map(|pattern| &**pattern)
    }

    /// Whether all that a filter matches lies within one of the patterns for reading. A wider one is not narrowed: its
    /// owner would think it heard all.
    pub fn may_subscribe(&self, filter: &str) -> bool {
        is_filter(filter) && !filter.starts_with('$') && self.read.iter().any(|pattern| covers(pattern, filter))
    }

    /// Whether a topic may be written. Those of the devices never, whatever the patterns say.
    pub fn may_publish(&self, topic: &str) -> bool {
        is_topic(topic)
            && !topic.starts_with('$')
            && !reaches_devices(topic)
            && self.write.iter().any(|pattern| matches(pattern, topic))
    }
}

fn checked<S: AsRef<str>>(patterns: &[S]) -> Result<Vec<Box<str>>, BadPattern> {
    if patterns.len() > PATTERNS_MAX {
        return Err(BadPattern::TooMany(patterns.len()));
    }
    let check = |pattern: &S| {
        let pattern = pattern.as_ref();
        match pattern {
            _ if pattern.len() > PATTERN_BYTES_MAX => {
                Err(BadPattern::Malformed(pattern.chars().take(PATTERN_BYTES_MAX).collect()))
            }
            _ if pattern.starts_with('$') => Err(BadPattern::Reserved(pattern.to_owned())),
            _ if !is_filter(pattern) => Err(BadPattern::Malformed(pattern.to_owned())),
            _ => Ok(pattern.into()),
        }
    };
    patterns.iter().map(check).collect()
}

/// Whether a topic or a pattern can be of the devices' tree. The whole of it is theirs, so that a later version may use more.
fn reaches_devices(pattern: &str) -> bool {
    matches!(pattern.split('/').next(), Some("#" | "+" | DEVICES))
}
