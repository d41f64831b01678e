//! Topics of MQTT: which filter matches which topic, which filter lies within another, and who may read and write what.
//!
//! Pure text. Sections in comments are of MQTT 5; 3.1.1 says the same in 4.7. Knows no connections and no messages.

mod rights;
mod shown;

pub use self::{
    rights::{BadPattern, PATTERN_BYTES_MAX, PATTERNS_MAX, Rights},
    shown::{has_invisible, shown},
};

/// The longest topic or filter of a service account, bytes: ten times what Home Assistant and Zigbee2MQTT use. MQTT allows
/// 65 535, which would be memory for nothing.
pub const TOPIC_BYTES_MAX: usize = 1_024;

/// The most levels in one: each is a step of every look-up.
pub const LEVELS_MAX: usize = 64;

/// The tree of the devices' own topics. Nobody but a device writes its `event` and `status`, and nobody but the hub its
/// `command` (wire protocol, Topics).
pub const DEVICES: &str = "truetwin";

/// Whether a text is a topic of MQTT: not empty, no wildcards, no NUL (4.7.1, 4.7.3). How long it is does not matter here.
pub fn is_well_formed_topic(text: &str) -> bool {
    !text.is_empty() && !text.contains(['+', '#', '\0'])
}

/// Whether a text is a filter of MQTT: not empty, `+` alone in its level, `#` alone in the last one, no NUL (4.7.1, 4.7.3). One
/// that begins with `$share/` must be a shared subscription (4.8.2): a name without `/ + #`, then a filter. How long it is does
/// not matter here.
pub fn is_well_formed_filter(text: &str) -> bool {
    let is_plain = |filter: &str| !filter.is_empty() && !filter.contains('\0') && has_whole_wildcards(filter);
    match text.strip_prefix("$share/") {
        Some(shared) => {
            shared.split_once('/').is_some_and(|(name, filter)| is_well_formed_topic(name) && is_plain(filter))
        }
        None => text != "$share" && is_plain(text),
    }
}

/// Whether a text can be a topic of a service account: well-formed and within our bounds.
pub fn is_topic(text: &str) -> bool {
    within_bounds(text) && is_well_formed_topic(text)
}

/// Whether a text can be a filter of a service account: well-formed and within our bounds.
pub fn is_filter(text: &str) -> bool {
    within_bounds(text) && is_well_formed_filter(text)
}

fn has_whole_wildcards(filter: &str) -> bool {
    let mut levels = filter.split('/').peekable();
    while let Some(level) = levels.next() {
        let whole = level.len() == 1 || !level.contains(['+', '#']);
        if !whole || (level == "#" && levels.peek().is_some()) {
            return false;
        }
    }
    true
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
