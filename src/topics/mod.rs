//! Topics of MQTT: which filter matches which topic, which filter lies within another, and who may read and write what.
//!
//! Pure text. Sections in comments are of MQTT 5; 3.1.1 says the same in 4.7. Knows no connections and no messages.

mod rights;

pub use self::rights::{BadPattern, PATTERN_BYTES_MAX, PATTERNS_MAX, Rights};

/// The longest topic or filter of a service account, bytes: ten times what Home Assistant and Zigbee2MQTT use. MQTT allows
/// 65 535, which would be memory for nothing.
pub const TOPIC_BYTES_MAX: usize = 1_024;

/// The most levels in one: each is a step of every look-up.
pub const LEVELS_MAX: usize = 64;

/// The tree of the devices' own topics. Nobody but a device writes its `event` and `status`, and nobody but the hub its
/// `command` (wire protocol, Topics).
pub const DEVICES: &str = "truetwin";

/// Whether a text can be a topic: not empty, no wildcards, no NUL (4.7.1, 4.7.3), within our bounds.
pub fn is_topic(text: &str) -> bool {
    within_bounds(text) && !text.contains(['+', '#', '\0'])
}

/// Whether a text can be a filter: `+` alone in its level, `#` alone in the last one (4.7.1), within our bounds.
pub fn is_filter(text: &str) -> bool {
    let mut levels = text.split('/').peekable();
    while let Some(level) = levels.next() {
        let whole = level.len() == 1 || !level.contains(['+', '#']);
        if !whole || (level == "#" && levels.peek().is_some()) {
            return false;
        }
    }
    within_bounds(text) && !text.contains('\0')
}

fn within_bounds(text: &str) -> bool {
    (1..=TOPIC_BYTES_MAX).contains(&text.len()) && text.split('/').count() <= LEVELS_MAX
}

/// Whether a filter matches a topic (4.7.1). A wildcard in the first level matches no topic that begins with `$` (4.7.2).
pub fn matches(filter: &str, topic: &str) -> bool {
    if topic.starts_with('$') && filter.starts_with(['+', '#']) {
        return false;
    }
    let (mut filter, mut topic) = (filter.split('/'), topic.split('/'));
    loop {
        match (filter.next(), topic.next()) {
            (Some("#"), _) | (None, None) => return true, // also its parent: a/# matches a
            (Some("+"), Some(_)) => {}
            (Some(wanted), Some(level)) if wanted == level => {}
            (_, _) => return false,
        }
    }
}

/// Whether every topic that `inner` matches is matched by `outer`, too.
pub fn covers(outer: &str, inner: &str) -> bool {
    if inner.starts_with('$') && outer.starts_with(['+', '#']) {
        return false;
    }
    // The same filters, written so that what they match shows: there is no topic above a first level, nor an empty one.
    let inner = match inner {
        "#" => "+/#",
        "/#" => "/+/#",
        _ => inner,
    };
    let (mut outer, mut inner) = (outer.split('/'), inner.split('/'));
    loop {
        match (outer.next(), inner.next()) {
            (Some("#"), _) | (None, None) => return true,
            (Some("+"), Some(level)) if level != "#" => {}
            (Some(wanted), Some(level)) if wanted == level => {}
            (_, _) => return false,
        }
    }
}

#[cfg(test)]
mod tests;
