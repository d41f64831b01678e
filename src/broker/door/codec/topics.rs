//! Topic names and topic filters (4.7, 4.8.2).

use super::{Bad, Reason};

/// Whether this is a topic to publish to: not empty, no wildcards, no U+0000 (4.7.1, 4.7.3).
pub fn valid_topic(topic: &str) -> bool {
    !topic.is_empty() && !topic.contains(['+', '#', '\0'])
}

/// Whether a topic filter is well-formed (4.7.1, 4.7.3): not empty, `+` alone in its level, `#` alone in the last one,
/// no U+0000. One that begins with `$share/` must be a shared subscription (4.8.2): a name without `/ + #`, then a
/// well-formed filter.
pub fn valid_filter(filter: &str) -> bool {
    if let Some(shared) = filter.strip_prefix("$share/") {
        return shared
            .split_once('/')
            .is_some_and(|(name, filter)| !name.is_empty() && !name.contains(['+', '#', '\0']) && well_formed(filter));
    }
    filter != "$share" && well_formed(filter)
}

/// The filter inside a shared subscription (4.8.2); `None` if it is none.
pub fn shared_filter(filter: &str) -> Option<&str> {
    Some(filter.strip_prefix("$share/")?.split_once('/')?.1)
}

fn well_formed(filter: &str) -> bool {
    let mut levels = filter.split('/').peekable();
    while let Some(level) = levels.next() {
        let whole = level.len() == 1 || !level.contains(['+', '#']);
        if !whole || (level == "#" && levels.peek().is_some()) {
            return false;
        }
    }
    !filter.is_empty() && !filter.contains('\0')
}

/// The topic, or why it is none.
pub(super) fn topic(topic: &str) -> Result<&str, Bad> {
    if valid_topic(topic) {
        return Ok(topic);
    }
    Err(Bad { reason: Reason::TopicInvalid, what: "a topic that is empty or has wildcards" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_follow_the_rules_for_wildcards() {
        for filter in [
            "a",
            "/",
            "#",
            "+",
            "a/#",
            "+/+",
            "/+",
            "a//b",
            "$SYS/#",
            "灯/+",
            "$share/g/a/#",
            "$share/g//",
            "$shared/a",
        ] {
            assert!(valid_filter(filter), "{filter}");
        }
        for filter in [
            "",
            "a/#/b",
            "a+",
            "#a",
            "a/b#",
            "++",
            "a\0",
            "$share/g",
            "$share/",
            "$share//a",
            "$share/+/a",
            "$share/g/",
        ] {
            assert!(!valid_filter(filter), "{filter}");
        }
    }

    #[test]
    fn a_filter_that_only_looks_shared_is_none() {
        // "$share" alone has no name and no filter; as an ordinary topic it would be the server's own (4.7.2).
        assert!(!valid_filter("$share"));
        assert_eq!(shared_filter("$share/g/a/b"), Some("a/b"));
        assert_eq!(shared_filter("a/$share/g"), None);
    }

    #[test]
    fn topics_have_no_wildcards() {
        for topic in ["a", "/", "a b", "é/x", "$SYS/x"] {
            assert!(valid_topic(topic), "{topic}");
        }
        for topic in ["", "a/+", "#", "a\0"] {
            assert!(!valid_topic(topic), "{topic}");
        }
    }
}
