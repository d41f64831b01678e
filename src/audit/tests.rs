use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;
use serde_json::json;

use super::*;

/// The time so many seconds into the test's evening.
fn at(seconds: i64) -> String {
    let begin: Timestamp = "2026-11-30T18:00:00+08:00".parse().unwrap();
    (begin + SignedDuration::from_secs(seconds)).to_string()
}

fn wish(seconds: i64, caller: &str, value: bool, result: &str) -> Record {
    let thing = Thing {
        device: "lamp".into(),
        property: Some("relay".into()),
        want: Some(Want::To(json!(value))),
        outcome: Some(if result == "confirmed" { "converged" } else { "timed_out" }.into()),
        stage: Some("waiting_device_report".into()),
        operation: Some(format!("op{seconds}{caller}")),
        ..Thing::default()
    };
    Record {
        at: at(seconds),
        tool: Some("switch_device".into()),
        things: vec![thing],
        result: Some(result.into()),
        duration_ms: Some(200),
        ..Record::new(Event::Call, caller)
    }
}

fn question(seconds: i64, caller: &str) -> Record {
    Record {
        at: at(seconds),
        tool: Some("get_device_state".into()),
        things: vec![Thing { device: "lamp".into(), ..Thing::default() }],
        result: Some("confirmed".into()),
        ..Record::new(Event::Call, caller)
    }
}

fn stats(records: &[Record]) -> Stats {
    Stats::of(records, &["switch_device", "get_device_state", "ping"], ["endpoint:kitchen".to_owned()])
}

fn hints(records: &[Record]) -> Vec<HintKind> {
    stats(records).hints.iter().map(|hint| hint.kind).collect()
}

#[test]
fn the_same_wish_again_within_a_minute_by_the_same_caller_is_a_hint() {
    assert_eq!(hints(&[wish(0, "a", true, "confirmed"), wish(60, "a", true, "confirmed")]), [HintKind::Again]);
    assert_eq!(hints(&[wish(0, "a", true, "confirmed"), wish(61, "a", true, "confirmed")]), []);
    assert_eq!(hints(&[wish(0, "a", true, "confirmed"), wish(5, "b", true, "confirmed")]), []);
    let told = stats(&[wish(0, "a", true, "failed"), wish(9, "a", true, "confirmed")]);
    assert_eq!(told.hints[0].answered, "failed", "what the first was answered");
}

#[test]
fn a_question_right_after_a_success_is_a_hint_and_one_after_a_failure_is_not() {
    assert_eq!(hints(&[wish(0, "a", true, "confirmed"), question(20, "a")]), [HintKind::Asked]);
    assert_eq!(hints(&[wish(0, "a", true, "confirmed"), question(31, "a")]), []);
    assert_eq!(hints(&[wish(0, "a", true, "unconfirmed"), question(5, "a")]), []);
    assert_eq!(hints(&[wish(0, "a", true, "confirmed"), question(5, "b")]), []);
}

#[test]
fn the_opposite_wish_within_ten_seconds_is_a_hint() {
    assert_eq!(hints(&[wish(0, "a", true, "confirmed"), wish(10, "a", false, "confirmed")]), [HintKind::Opposite]);
    assert_eq!(hints(&[wish(0, "a", true, "confirmed"), wish(11, "a", false, "confirmed")]), []);
    let by = |seconds, amount| {
        let mut record = wish(seconds, "a", true, "confirmed");
        record.things[0].want = Some(Want::By(amount));
        record
    };
    assert_eq!(hints(&[by(0, 20.0), by(5, -20.0)]), [HintKind::Opposite]);
    assert_eq!(hints(&[by(0, 20.0), by(5, 20.0)]), [], "a bit brighter, and a bit more, is how people talk");
}

#[test]
fn a_clock_that_was_set_back_in_between_says_nothing() {
    assert_eq!(hints(&[wish(100, "a", true, "confirmed"), wish(0, "a", true, "confirmed")]), []);
}

#[test]
fn what_was_acknowledged_and_never_confirmed_is_a_false_success_avoided_counted_once() {
    let mut stuck = wish(0, "a", true, "failed");
    stuck.things[0].acknowledged = true;
    stuck.things[0].reason = Some("stuck".into());
    let mut unheard = wish(1, "a", true, "unconfirmed");
    unheard.things[0].acknowledged = false;
    let mut done = wish(2, "a", true, "confirmed");
    done.things[0].acknowledged = true;
    let told = stats(&[stuck.clone(), unheard, done, stuck]);
    assert_eq!(told.refuted.len(), 1, "one operation, though two callers heard of it");
    assert_eq!((told.refuted[0].device.as_str(), told.refuted[0].outcome.as_str()), ("lamp", "stuck"));
}

#[test]
fn tools_that_nobody_used_and_endpoints_that_never_called_are_seen() {
    let told = stats(&[wish(0, "http", true, "confirmed"), question(40, "http")]);
    assert_eq!(told.never_used, ["ping"]);
    assert_eq!(told.callers["endpoint:kitchen"], CallerUse::default(), "no call arrived");
    let http = &told.callers["http"];
    assert_eq!((http.calls, http.wishes, http.last_tool.as_deref()), (2, 1, Some("get_device_state")));
    assert_eq!(told.tools["switch_device"].results["confirmed"], 1);
}

#[test]
fn arguments_that_models_get_wrong_are_counted_with_what_they_sent() {
    let wrong = |seconds, sent: &str| Record {
        at: at(seconds),
        tool: Some("set_device_level".into()),
        result: Some("ask_user".into()),
        refusal: Some("invalid_value".into()),
        parameter: Some("level".into()),
        sent: Some(sent.into()),
        ..Record::new(Event::Call, "a")
    };
    let unknown = Record {
        at: at(9),
        tool: Some("light_on".into()),
        refusal: Some("unknown_tool".into()),
        ..Record::new(Event::TurnedAway, "a")
    };
    let told = stats(&[wrong(0, "50%"), wrong(1, "50%"), wrong(2, "half"), unknown]);
    let seen: Vec<_> = told.wrong_arguments.iter().map(|w| (w.parameter.as_str(), w.sent.as_str(), w.times)).collect();
    assert_eq!(seen, [("level", "50%", 2), ("(the tool itself)", "light_on", 1), ("level", "half", 1)]);
    assert!(!told.tools.contains_key("light_on"), "there is no such tool");
}

#[test]
fn since_is_a_span_a_date_or_a_time() {
    let now: Timestamp = "2026-11-30T10:00:00Z".parse().unwrap();
    assert_eq!(since("2h", now).unwrap().to_string(), "2026-11-30T08:00:00Z");
    assert_eq!(since("3d", now).unwrap().to_string(), "2026-11-27T10:00:00Z");
    assert_eq!(since("2026-11-30T18:00:00+08:00", now).unwrap(), now);
    assert!(since("2026-11-30", now).is_ok());
    for bad in ["", "h", "2 h", "-2h", "2x", "yesterday", "99999999999999999999h", "2026-13-01", "九h", "时"] {
        assert!(since(bad, now).is_err(), "{bad}");
    }
}

#[test]
fn what_looks_like_a_secret_is_masked_and_what_a_person_says_is_not() {
    for (said, kept) in [
        ("把客厅灯打开", "把客厅灯打开"),
        ("set it to 21.5 degrees", "set it to 21.5 degrees"),
        ("开门 4711", "开门 ***"),
        ("开门，密码四七一一。", "开门，密码***。"),
        ("code 4 7 1 1 please", "code *** please"),
        ("wss://api.xiaozhi.me/mcp/?token=abc.def", "wss://api.xiaozhi.me/mcp/?token=***"),
        ("it is eyJhbGciOiJFUzI1NiJ9.eyJ1c2VySWQiOjF9.c2ln ok", "it is *** ok"),
        ("00112233445566778899aabbccddeeff", "***"),
    ] {
        assert_eq!(speech_masked(said), kept);
    }
    assert_eq!(masked("esp32-1234"), "esp32-1234", "a device's name stays");
    assert_eq!(bounded("客厅的灯", 3), "客厅…");
}

#[test]
fn records_survive_the_file_and_a_torn_last_line_is_skipped_with_a_note() {
    let folder = tempfile::tempdir().unwrap();
    let audit = Audit::open(folder.path());
    audit.keep(wish(0, "a", true, "confirmed"), Default::default());
    audit.keep(question(0, "客厅"), Default::default());
    audit.close();
    assert_eq!(audit.counts(), Counts { written: 2, lost: 0 });
    let path = folder.path().join("audit.jsonl");
    let whole = std::fs::read(&path).unwrap();
    std::fs::write(&path, &whole[..whole.len() - 20]).unwrap();
    let found = read(folder.path()).unwrap();
    assert_eq!((found.records.len(), found.unreadable), (1, 1));
    assert!(found.notes()[0].contains("power cut"));
    let audit = Audit::open(folder.path());
    assert_eq!(audit.recent().len(), 1, "the latest of earlier runs are there again");
    audit.keep(question(0, "b"), Default::default());
    audit.close();
    let found = read(folder.path()).unwrap();
    assert_eq!((found.records.len(), found.unreadable), (2, 1), "the next record has a line of its own");
    assert_eq!(found.records[0].things, wish(0, "a", true, "confirmed").things);
    assert!(found.records[0].when().is_some(), "{}", found.records[0].at);
}

#[test]
fn the_file_is_private_and_turns_over_at_its_bound() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.jsonl");
    let filling = vec![b'x'; usize::try_from(FILE_BYTES_MAX).unwrap() - 10];
    for round in 0..FILES_MAX + 1 {
        append_offline(folder.path(), question(0, &format!("round{round}"))).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        std::fs::write(&path, &filling).unwrap();
    }
    append_offline(folder.path(), question(0, "last")).unwrap();
    let mut names: Vec<_> = std::fs::read_dir(folder.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["audit.1.jsonl", "audit.2.jsonl", "audit.3.jsonl", "audit.jsonl"]);
    assert_eq!(read(folder.path()).unwrap().records.len(), 1);
}

#[test]
fn a_disk_that_takes_nothing_loses_records_and_no_call() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("audit.jsonl")).unwrap();
    let audit = Audit::open(folder.path());
    audit.keep(question(0, "a"), Default::default());
    audit.close();
    assert_eq!(audit.counts(), Counts { written: 0, lost: 1 });
    audit.keep(question(0, "a"), Default::default());
    assert_eq!((audit.counts().lost, audit.recent().len()), (2, 2));
}

#[test]
fn a_record_of_a_later_version_is_counted_and_a_later_event_is_kept() {
    let mut found = Found::default();
    let lines =
        "{\"v\":2,\"anything\":[]}\n{\"v\":1,\"event\":\"dreamt\",\"new\":1}\n{\"v\":1,\"event\":\"call\"}\n{}\n[]\n\n";
    found.take(&mut lines.as_bytes()).unwrap();
    assert_eq!((found.newer, found.records.len(), found.unreadable), (1, 2, 2));
    assert_eq!(found.records[0].event, Event::Other);
}

#[test]
fn a_line_is_never_longer_than_a_reader_takes() {
    let things = (0..500).map(|n| Thing { device: format!("{n}").repeat(30), ..Thing::default() }).collect();
    let long = "\u{1}长".repeat(20_000);
    let record = Record { things, say: Some(long.clone()), user_request: Some(long), ..question(0, "a") };
    assert!(record.within_bounds().line().len() <= LINE_BYTES_MAX);
}

#[test]
fn a_dispute_is_of_an_operation_or_of_the_latest_wish_on_a_device() {
    let early = wish(0, "a", true, "confirmed");
    let late = Record { heard: Some("客厅灯".into()), ..wish(5, "b", false, "confirmed") };
    let records = [early, late, question(9, "a")];
    let of = |what: &str| dispute(records.iter(), what, Some("code 4711, nothing")).map(|(record, _)| record);
    assert_eq!(of("op0a").unwrap().operation.as_deref(), Some("op0a"));
    assert_eq!(of("lamp").unwrap().operation.as_deref(), Some("op5b"), "a question is no wish");
    assert_eq!(of("客厅灯").unwrap().operation.as_deref(), Some("op5b"));
    assert_eq!(of("lamp").unwrap().note.as_deref(), Some("code ***, nothing"));
    assert!(of("fan").unwrap_err().to_string().contains("truetwin audit"));
    let told = stats(&[records[0].clone(), Record { at: at(30), ..of("op0a").unwrap() }]);
    assert_eq!(told.disputed, [(at(30), "op0a".to_owned())]);
    let said_at = |seconds| Record { at: at(seconds), ..of("op0a").unwrap() };
    let told = stats(&[records[0].clone(), said_at(30), said_at(40)]);
    assert_eq!(told.disputed, [(at(30), "op0a".to_owned())], "said twice, it is one wrong word");
}

proptest! {
    #[test]
    fn reading_never_fails_and_garbage_hides_no_record(
        garbage in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..200), 0..20),
        cut in 0_usize..100,
    ) {
        let good = wish(0, "a", true, "confirmed").line();
        let mut bytes = Vec::new();
        let mut put = 0;
        for line in &garbage {
            bytes.extend(line.iter().filter(|b| **b != b'\n'));
            bytes.push(b'\n');
            bytes.extend(&good);
            put += 1;
        }
        bytes.extend(&good[..cut.min(good.len() - 1)]);
        let mut found = Found::default();
        found.take(&mut bytes.as_slice()).unwrap();
        let ours = found.records.iter().filter(|record| record.caller == "a").count();
        prop_assert_eq!(ours, put);
        let _it_does_not_panic = Stats::of(&found.records, &[], []);
    }

    #[test]
    fn figures_of_any_record_can_be_made(text in "\\PC{0,40}", number in any::<f64>(), flag in any::<bool>()) {
        let thing = Thing { device: text.clone(), want: Some(Want::By(number)), acknowledged: flag, ..Thing::default() };
        let record = Record { at: text.clone(), things: vec![thing], heard: Some(text), cancelled: flag, ..Record::new(Event::Call, "a") };
        let _it_does_not_panic = Stats::of([&record, &record], &[], []);
        prop_assert!(record.within_bounds().line().len() <= LINE_BYTES_MAX);
    }
}
