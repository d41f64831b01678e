//! The metrics: each is described, labels are closed, and what happened is what is counted.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::{collections::BTreeSet, time::Duration};

use truetwin::{
    endpoint::{EndWord, State},
    metrics::{DOOR, Kind, METRICS, Metric, Metrics},
    twin::words::{Outcome, Presence, Reason, RefusalWord, Stage},
};

fn all() -> Vec<Metric> {
    METRICS.iter().copied().chain(DOOR.iter().map(|door| door.metric)).collect()
}

/// The value of the one line that begins so.
fn value(text: &str, series: &str) -> f64 {
    let found: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix(series)?.strip_prefix(' ')).collect();
    let [value] = found.as_slice() else { panic!("{} lines for {series} in\n{text}", found.len()) };
    value.parse().unwrap()
}

#[test]
fn every_metric_is_in_the_text_from_the_start_with_its_help_and_type() {
    let text = Metrics::new().render();
    for metric in all() {
        let kind = match metric.kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram(_) => "histogram",
        };
        assert!(text.contains(&format!("# HELP {} {}\n", metric.name, metric.help)), "{}", metric.name);
        assert!(text.contains(&format!("# TYPE {} {kind}\n", metric.name)), "{}", metric.name);
        let combinations: usize = metric.labels.iter().map(|label| (label.all)().len()).product();
        let counted = match metric.kind {
            Kind::Counter | Kind::Gauge => metric.name.to_owned(),
            Kind::Histogram(_) => format!("{}_count", metric.name),
        };
        let lines = text.lines().filter(|line| {
            line.strip_prefix(&counted).is_some_and(|rest| rest.starts_with('{') || rest.starts_with(' '))
        });
        assert_eq!(lines.count(), combinations, "{}", metric.name);
    }
    let types = text.lines().filter(|line| line.starts_with("# TYPE")).count();
    assert_eq!(types, all().len(), "nothing is in the text that is not in the table");
}

#[test]
fn names_are_unique_and_carry_their_unit() {
    let names: BTreeSet<&str> = all().iter().map(|metric| metric.name).collect();
    assert_eq!(names.len(), all().len());
    for metric in all() {
        assert!(metric.name.starts_with("truetwin_") || metric.name.starts_with("process_"), "{}", metric.name);
        assert_eq!(metric.name.ends_with("_total"), metric.kind == Kind::Counter, "{}", metric.name);
        if let Kind::Histogram(bounds) = metric.kind {
            assert!(metric.name.ends_with("_seconds"), "{}", metric.name);
            assert!(bounds.is_sorted_by(|a, b| a < b), "{}", metric.name);
        }
        assert!(metric.help.ends_with('.') && !metric.help.contains('\n'), "{}", metric.name);
    }
}

#[test]
fn a_word_that_nobody_knows_makes_no_new_series() {
    let metrics = Metrics::new();
    let before = metrics.render().lines().count();
    metrics.event_heard("'; drop table");
    metrics.event_unreadable("客厅灯");
    metrics.command_published("");
    metrics.tool_called("rm", "whatever", Duration::from_millis(1));
    assert!(!metrics.observe_door("nobody", 1));
    let text = metrics.render();
    assert_eq!(text.lines().count(), before);
    assert_eq!(value(&text, "truetwin_events_total{event=\"unknown\"}"), 1.0);
    assert_eq!(value(&text, "truetwin_unreadable_events_total{reason=\"other\"}"), 1.0);
    assert_eq!(value(&text, "truetwin_commands_published_total{command=\"unknown\"}"), 1.0);
    assert_eq!(value(&text, "truetwin_tool_calls_total{tool=\"other\",result=\"error\"}"), 1.0);
}

#[test]
fn what_happened_is_what_is_counted() {
    let metrics = Metrics::new();
    let first = metrics.operation_began();
    let _second = metrics.operation_began();
    drop(first);
    metrics.stage_passed(Stage::WaitingDeviceAck, Duration::from_millis(40));
    metrics.stage_passed(Stage::WaitingDeviceAck, Duration::from_millis(1001));
    metrics.operation_ended(Outcome::Converged, Duration::from_millis(70));
    metrics.operation_ended(Outcome::TimedOut, Duration::from_secs(4));
    metrics.operation_failed(Stage::WaitingReadBack, Reason::DidNotHold);
    metrics.call_refused(RefusalWord::QueueFull);
    metrics.succeeded_late();
    metrics.device_reverted();
    metrics.devices_are(Presence::Suspected, 3);
    metrics.command_published("withdraw");
    metrics.event_heard("heartbeat");
    metrics.unknown_words(2);
    metrics.tool_called("switch_device", "confirmed", Duration::from_millis(300));
    let text = metrics.render();
    for (series, expected) in [
        ("truetwin_operations_in_flight", 1.0),
        ("truetwin_stage_seconds_bucket{stage=\"waiting_device_ack\",le=\"0.025\"}", 0.0),
        ("truetwin_stage_seconds_bucket{stage=\"waiting_device_ack\",le=\"0.05\"}", 1.0),
        ("truetwin_stage_seconds_bucket{stage=\"waiting_device_ack\",le=\"1\"}", 1.0),
        ("truetwin_stage_seconds_count{stage=\"waiting_device_ack\"}", 2.0),
        ("truetwin_stage_seconds_count{stage=\"waiting_device_start\"}", 0.0),
        ("truetwin_operations_total{outcome=\"converged\"}", 1.0),
        ("truetwin_operation_seconds_sum{outcome=\"timed_out\"}", 4.0),
        ("truetwin_failures_total{stage=\"waiting_read_back\",reason=\"did_not_hold\"}", 1.0),
        ("truetwin_failures_total{stage=\"waiting_read_back\",reason=\"stuck\"}", 0.0),
        ("truetwin_refusals_total{refusal=\"queue_full\"}", 1.0),
        ("truetwin_late_success_total", 1.0),
        ("truetwin_reverted_total", 1.0),
        ("truetwin_devices{presence=\"suspected\"}", 3.0),
        ("truetwin_commands_published_total{command=\"withdraw\"}", 1.0),
        ("truetwin_events_total{event=\"heartbeat\"}", 1.0),
        ("truetwin_unknown_words_total", 2.0),
        ("truetwin_tool_calls_total{tool=\"switch_device\",result=\"confirmed\"}", 1.0),
        ("truetwin_tool_seconds_bucket{tool=\"switch_device\",le=\"0.5\"}", 1.0),
    ] {
        assert_eq!(value(&text, series), expected, "{series}");
    }
}

#[test]
fn the_words_of_endpoints_are_those_of_the_table() {
    let words = |name: &str| -> BTreeSet<&str> {
        let metric = all().into_iter().find(|metric| metric.name == name).unwrap();
        (metric.labels[0].all)().into_iter().collect()
    };
    assert_eq!(words("truetwin_endpoints"), State::ALL.iter().map(|state| state.as_str()).collect());
    let ends = EndWord::ALL.iter().map(|word| word.as_str()).chain(["other"]);
    assert_eq!(words("truetwin_endpoint_ends_total"), ends.collect());
}

#[test]
fn s5_6_each_metric_of_an_alert_exists() {
    let alerts = include_str!("../deploy/alerts.yml");
    let names: Vec<&str> = alerts
        .split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .filter(|word| word.starts_with("truetwin_"))
        .collect();
    assert!(names.contains(&"truetwin_door_duplicate_device_total"), "{names:?}");
    for name in names {
        assert!(all().iter().any(|metric| metric.name == name), "{name}");
    }
}

#[test]
fn the_doors_figures_are_taken_over_as_they_are() {
    let metrics = Metrics::new();
    for door in DOOR {
        assert!(metrics.observe_door(door.counter, 7));
    }
    assert!(metrics.observe_door("connections", 2));
    let text = metrics.render();
    assert_eq!(value(&text, "truetwin_bus_rebuilds_total"), 7.0);
    assert_eq!(value(&text, "truetwin_door_connections"), 2.0);
}

#[test]
fn two_hubs_in_one_process_count_for_themselves() {
    let (one, other) = (Metrics::new(), Metrics::new());
    one.reply_unheard();
    one.clone().reply_unheard();
    assert_eq!(value(&one.render(), "truetwin_replies_unheard_total"), 2.0);
    assert_eq!(value(&other.render(), "truetwin_replies_unheard_total"), 0.0);
}

#[test]
fn the_process_and_the_build_are_named() {
    let text = Metrics::new().render();
    assert_eq!(value(&text, &format!("truetwin_build_info{{version=\"{}\"}}", env!("CARGO_PKG_VERSION"))), 1.0);
    assert!(value(&text, "process_start_time_seconds") > 1.6e9);
    if cfg!(target_os = "linux") {
        assert!(value(&text, "process_resident_memory_bytes") > 1e6);
    }
}

#[test]
fn each_limit_of_the_door_is_in_its_table_with_a_key_its_default_and_a_metric_that_there_are() {
    let tables: Vec<&str> = include_str!("../src/broker/limits.md").split("| key |").skip(1).collect();
    assert_eq!(tables.len(), 2, "one for devices, one for service accounts");
    for (table, section, prefix) in [(tables[0], "mqtt", "door"), (tables[1], "accounts", "accounts")] {
        each_limit_is_in(table, section, prefix);
    }
}

fn each_limit_is_in(table: &str, section: &str, prefix: &str) {
    let example = truetwin::config::Config::example();
    let keys = example.split(&format!("[{section}]")).nth(1).unwrap().split("\n[").next().unwrap();
    let metrics: BTreeSet<&str> = all().iter().map(|metric| metric.name).collect();
    let rows: Vec<Vec<&str>> = table
        .lines()
        .filter(|line| line.starts_with("| `") || line.starts_with("| (fixed)"))
        .map(|line| line.trim_matches('|').split('|').map(str::trim).collect())
        .collect();
    for row in &rows {
        assert_eq!(row.len(), 6, "{row:?}");
        for metric in row[4].split(" and ").map(|metric| metric.trim_matches('`')) {
            let named = [metric.to_owned(), format!("truetwin_{prefix}_{metric}")];
            let known =
                named.iter().any(|name| ["", "_total"].iter().any(|end| metrics.contains(&*format!("{name}{end}"))));
            assert!(known, "{metric} is no metric");
        }
        if row[0] != "(fixed)" {
            let line = format!("\n{} = {}\n", row[0].trim_matches('`'), row[1]);
            assert!(keys.contains(&line), "{line} is not in the example");
        }
    }
    let is_limit = |key: &&str| ["_max", "_ms", "_bytes", "_per_s", "_max_s"].iter().any(|end| key.ends_with(end));
    let keys = keys.lines().filter_map(|line| line.split_once(" = ")).map(|(key, _)| key).filter(is_limit);
    for key in keys {
        assert!(rows.iter().any(|row| row[0] == format!("`{key}`")), "{key} is not in limits.md");
    }
}
