//! Against the examples of the specification, and against looking at every topic there is.

use super::*;

#[test]
fn filters_match_as_in_the_examples_of_the_specification() {
    // 4.7.1.2
    for topic in ["sport/tennis/player1", "sport/tennis/player1/ranking", "sport/tennis/player1/score/wimbledon"] {
        assert!(matches("sport/tennis/player1/#", topic), "{topic}");
    }
    assert!(matches("sport/#", "sport"));
    assert!(matches("#", "sport"));
    assert!(!matches("sport/tennis/player1/#", "sport/tennis/player2"));
    // 4.7.1.3
    for (filter, topic, expected) in [
        ("sport/tennis/+", "sport/tennis/player1", true),
        ("sport/tennis/+", "sport/tennis/player2", true),
        ("sport/tennis/+", "sport/tennis/player1/ranking", false),
        ("sport/+", "sport", false),
        ("sport/+", "sport/", true),
        ("+/+", "/finance", true),
        ("/+", "/finance", true),
        ("+", "/finance", false),
        ("+/tennis/#", "sport/tennis/x", true),
    ] {
        assert_eq!(matches(filter, topic), expected, "{filter} {topic}");
    }
    // 4.7.2
    for (filter, topic, expected) in [
        ("#", "$SYS/x", false),
        ("+/monitor/Clients", "$SYS/monitor/Clients", false),
        ("$SYS/#", "$SYS/monitor/Clients", true),
        ("$SYS/monitor/+", "$SYS/monitor/Clients", true),
    ] {
        assert_eq!(matches(filter, topic), expected, "{filter} {topic}");
    }
    // 4.7.3
    assert!(!matches("ACCOUNTS", "Accounts"));
    assert!(!matches("/finance", "finance"));
    assert!(matches("/", "/") && !matches("/", ""));
}

#[test]
fn what_is_well_formed_is_told_from_what_is_not() {
    for filter in ["#", "+", "a/#", "+/b/#", "/", "//", "a b", "温度/#", "$SYS/#"] {
        assert!(is_filter(filter), "{filter}");
    }
    for filter in ["", "a#", "#a", "a/#/b", "a+", "+a/b", "a/b#", "a\0", &"a".repeat(1_025), &"/".repeat(64)] {
        assert!(!is_filter(filter), "{filter}");
    }
    for topic in ["/", "a", "a//b", "温度"] {
        assert!(is_topic(topic), "{topic}");
    }
    for topic in ["", "a/+", "#", "a\0", &"a".repeat(1_025)] {
        assert!(!is_topic(topic), "{topic}");
    }
}

/// All texts of one to `levels` levels out of these.
fn all_of(words: &[&str], levels: usize) -> Vec<String> {
    let mut found: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
    let mut last = found.clone();
    for _ in 1..levels {
        last = last.iter().flat_map(|head| words.iter().map(move |word| format!("{head}/{word}"))).collect();
        found.extend(last.iter().cloned());
    }
    found.retain(|text| !text.is_empty());
    found
}

#[test]
fn one_filter_lies_within_another_if_no_topic_says_otherwise() {
    let topics = all_of(&["", "a", "b", "$s"], 4);
    let mut filters = all_of(&["", "a", "$s", "+", "#"], 3);
    filters.retain(|filter| is_filter(filter));
    let seen: Vec<Vec<bool>> =
        filters.iter().map(|filter| topics.iter().map(|topic| matches(filter, topic)).collect()).collect();
    let mut within = 0;
    for (outer, outer_sees) in filters.iter().zip(&seen) {
        for (inner, inner_sees) in filters.iter().zip(&seen) {
            let oracle = inner_sees.iter().zip(outer_sees).all(|(inner, outer)| *outer || !*inner);
            assert_eq!(covers(outer, inner), oracle, "{outer} over {inner}");
            within += usize::from(oracle);
        }
    }
    assert!(within > filters.len(), "there is more than each within itself");
}

#[test]
fn nobody_is_granted_what_belongs_to_the_hub_and_its_devices() {
    for pattern in
        ["#", "+/#", "truetwin/#", "truetwin/lamp/command", "+/lamp/command", "truetwin", "truetwin/x/y/z", "+"]
    {
        assert_eq!(Rights::new(&[], &[pattern]), Err(BadPattern::Devices(pattern.to_owned())));
    }
    // Were such a pattern there all the same, the door still says no.
    let rights = Rights { read: vec!["#".into()], write: vec!["#".into()] };
    for topic in ["truetwin/lamp/command", "truetwin/lamp/event", "truetwin/lamp/status", "truetwin", "$SYS/x", "a/+"] {
        assert!(!rights.may_publish(topic), "{topic}");
    }
    assert!(rights.may_publish("truetwin2/lamp/event"));
}

#[test]
fn a_subscription_is_granted_where_it_lies_within_one_pattern() {
    let rights = Rights::new(&["zigbee2mqtt/#", "truetwin/+/event"], &["zigbee2mqtt/+/set"]).expect("good");
    for filter in
        ["zigbee2mqtt/#", "zigbee2mqtt", "zigbee2mqtt/+/availability", "truetwin/lamp/event", "truetwin/+/event"]
    {
        assert!(rights.may_subscribe(filter), "{filter}");
    }
    for filter in [
        "#",
        "+/#",
        "zigbee2mqtt2/#",
        "truetwin/#",
        "truetwin/lamp/command",
        "$share/g/zigbee2mqtt/#",
        "zigbee2mqtt/#/x",
    ] {
        assert!(!rights.may_subscribe(filter), "{filter}");
    }
    assert!(rights.may_publish("zigbee2mqtt/lamp/set"));
    assert!(!rights.may_publish("zigbee2mqtt/lamp/get"));
    let all = Rights::new(&["#"], &[]).expect("good");
    assert!(all.may_subscribe("#") && all.may_subscribe("truetwin/+/command"));
    assert!(!all.may_subscribe("$SYS/#") && !all.may_subscribe("$share/g/#"));
}

#[test]
fn a_pattern_that_cannot_be_granted_says_why() {
    let refused = |read: &[&str], write: &[&str]| Rights::new(read, write).expect_err("refused").to_string();
    assert!(refused(&["a#"], &[]).contains("+ alone in its level"));
    assert!(refused(&["$SYS/#"], &[]).contains("not offered"));
    assert!(refused(&[], &["#"]).contains("homeassistant/#"));
    assert!(refused(&[], &[]).contains("--read"));
    assert!(refused(&["a"; 17], &[]).contains("at most 16"));
    assert!(refused(&["a".repeat(201).as_str()], &[]).contains("200 bytes"));
}

#[test]
fn filters_follow_the_rules_for_wildcards() {
    for filter in
        ["a", "/", "#", "+", "a/#", "+/+", "/+", "a//b", "$SYS/#", "灯/+", "$share/g/a/#", "$share/g//", "$shared/a"]
    {
        assert!(is_well_formed_filter(filter), "{filter}");
    }
    for filter in
        ["", "a/#/b", "a+", "#a", "a/b#", "++", "a\0", "$share/g", "$share/", "$share//a", "$share/+/a", "$share/g/"]
    {
        assert!(!is_well_formed_filter(filter), "{filter}");
    }
}

#[test]
fn a_filter_that_only_looks_shared_is_none() {
    // "$share" alone has no name and no filter; as an ordinary topic it would be the server's own (4.7.2).
    assert!(!is_well_formed_filter("$share"));
}

#[test]
fn topics_have_no_wildcards() {
    for topic in ["a", "/", "a b", "é/x", "$SYS/x"] {
        assert!(is_well_formed_topic(topic), "{topic}");
    }
    for topic in ["", "a/+", "#", "a\0"] {
        assert!(!is_well_formed_topic(topic), "{topic}");
    }
}
