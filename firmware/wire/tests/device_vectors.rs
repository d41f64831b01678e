//! A board's side held to the vectors: what it reads (`commands.json`), what it writes (`events.json`).
#![allow(clippy::unwrap_used, clippy::wildcard_enum_match_arm, reason = "a test that fails here says where")]

mod common;

use common::{Means, bytes, cases, number, scalar, text, value};
use serde_json::{Value, json};
use truetwin_wire::{
    Scalar,
    device::{
        ActionReport, ActionSpec, Command, Description, DeviceState, Envelope, Event, Failsafe, Head, Hello,
        ParseErrorKind, PropertySpec, Reading, parse, write,
    },
    limits::EVENT_BYTES_MAX,
    words::{CauseWord, ClassWord, EvidenceWord, KindWord, OnWithdraw, ReasonWord, ReportResult, RoleWord},
};

#[test]
fn a_board_reads_every_command_as_the_vectors_say() {
    for case in cases("commands.json", "commands") {
        let (name, bytes) = (&case["name"], bytes(&case));
        match (parse(&bytes), case.get("means")) {
            (Ok(command), Some(means)) => assert_eq!(meaning(&command), *means, "{name}"),
            (Err(error), None) => {
                let mut found = Means::default();
                found.put("kind", kind(error.kind)).put("op", error.op).put("session", error.session);
                if !error.field.is_empty() {
                    found.put("field", error.field);
                }
                assert_eq!(found.end(), case["error"], "{name}: {error}");
            }
            (result, _) => panic!("{name}: {result:?}"),
        }
    }
}

#[test]
fn a_board_writes_every_event_as_the_vectors_say() {
    for case in cases("events.json", "events") {
        if case["writes"] != json!(true) {
            continue;
        }
        let written: Value = serde_json::from_slice(&written(&case["means"])).unwrap();
        let expected: Value = serde_json::from_slice(&bytes(&case)).unwrap();
        assert_eq!(written, expected, "{}", case["name"]);
    }
}

fn kind(kind: ParseErrorKind) -> &'static str {
    match kind {
        ParseErrorKind::TooLong => "too_long",
        ParseErrorKind::Malformed => "malformed",
        ParseErrorKind::UnknownCommand => "unknown_command",
        ParseErrorKind::MissingField => "missing_field",
        ParseErrorKind::BadField => "bad_field",
    }
}

fn meaning(command: &Command<'_>) -> Value {
    let mut means = Means::default();
    let head = |means: &mut Means, word: &str, head: &Head<'_>, op: Option<&str>| {
        means.put("command", word).put("session", head.session).put("hub_ms", head.hub_ms).put("op", op);
    };
    match command {
        Command::Welcome { head: h, hub, epoch, heartbeat_ms } => {
            head(&mut means, "welcome", h, None);
            means.put("hub", *hub).put("epoch", *epoch).put("heartbeat_ms", *heartbeat_ms);
        }
        Command::Refused { reason, path, allowed } => {
            means.put("command", "refused").put("reason", *reason).put("path", *path).put("allowed", *allowed);
        }
        Command::Describe { page } => {
            means.put("command", "describe").put("page", *page);
        }
        Command::Error { of_seq, reason, path, allowed } => {
            means.put("command", "error").put("of_seq", *of_seq).put("reason", *reason);
            means.put("path", *path).put("allowed", *allowed);
        }
        Command::Set { head: h, op, property, value: wish, ttl_ms } => {
            head(&mut means, "set", h, Some(op));
            means.put("property", *property).put("value", value(wish)).put("ttl_ms", *ttl_ms);
        }
        Command::Run { head: h, op, action, args, ttl_ms } => {
            head(&mut means, "run", h, Some(op));
            let args = args.iter().map(|(name, arg)| (name.to_owned(), value(&arg.unwrap())));
            means.put("action", *action).put("args", Value::Object(args.collect())).put("ttl_ms", *ttl_ms);
        }
        Command::GetDeviceState { head: h, op, property } => {
            head(&mut means, "get_device_state", h, Some(op));
            means.put("property", *property);
        }
        Command::Withdraw { head: h, op } => head(&mut means, "withdraw", h, Some(op)),
        Command::GetLog { head: h, op } => head(&mut means, "get_log", h, Some(op)),
    }
    means.end()
}

fn written(means: &Value) -> Vec<u8> {
    let small = |field: &str| u32::try_from(number(means, field)).unwrap();
    let envelope = Envelope {
        session: text(means, "session"),
        boot: text(means, "boot"),
        seq: small("seq"),
        up_ms: number(means, "up_ms"),
    };
    let status = means.get("state").or(means.get("status")).and_then(Value::as_object);
    let readings: Vec<Reading<'_>> = status
        .into_iter()
        .flatten()
        .map(|(name, value)| Reading {
            property: name,
            value: Some(scalar(value)),
            evidence: EvidenceWord::read(text(&means["evidence"], name)),
            seen: means["seen"][name].as_str(),
        })
        .collect();
    let list = |field: &str| means[field].as_array().cloned().unwrap_or_default();
    let (properties, actions) = (list("properties"), list("actions"));
    let safe: Vec<Option<Scalar>> = properties.iter().map(|p| p.get("failsafe").map(|f| scalar(&f["value"]))).collect();
    let specs: Vec<PropertySpec<'_>> = properties.iter().zip(&safe).map(|(p, safe)| spec(p, safe.as_ref())).collect();
    let actions: Vec<ActionSpec<'_>> = actions.iter().map(action).collect();
    let groups = list("exclusive");
    let groups: Vec<Vec<&str>> =
        groups.iter().map(|g| g.as_array().unwrap().iter().map(|n| n.as_str().unwrap()).collect()).collect();
    let exclusive: Vec<&[&str]> = groups.iter().map(Vec::as_slice).collect();
    let event = match text(means, "event") {
        "heartbeat" => Event::Heartbeat,
        "device_state" => Event::DeviceState(DeviceState {
            op: means["op"].as_str(),
            readings: &readings,
            cause: CauseWord::read(text(means, "cause")),
        }),
        "device_action_report" => Event::ActionReport(ActionReport {
            op: text(means, "op"),
            action: text(means, "action"),
            property: means["property"].as_str(),
            result: ReportResult::read(text(means, "result")),
            readings: &readings,
            reason: means["reason"].as_str().map(ReasonWord::read),
            eta_ms: means.get("eta_ms").map(|_| small("eta_ms")),
            clamped: means["clamped"] == json!(true),
            dup: means["dup"] == json!(true),
        }),
        "hello" => Event::Hello(Hello {
            level: u8::try_from(number(means, "level")).unwrap(),
            fw: text(means, "fw"),
            model: text(means, "model"),
            desc: text(means, "desc"),
            description: Description { properties: &specs, actions: &actions, exclusive: &exclusive },
            readings: &readings,
            cause: CauseWord::read(text(means, "cause")),
        }),
        other => panic!("{other}"),
    };
    let mut buffer = [0; EVENT_BYTES_MAX];
    let len = write(&envelope, &event, &mut buffer).unwrap();
    buffer[..len].to_vec()
}

fn spec<'a>(p: &'a Value, safe: Option<&'a Scalar>) -> PropertySpec<'a> {
    let ms = |field: &str| p.get(field).map(|_| u32::try_from(number(p, field)).unwrap());
    let float = |field: &str| p[field].as_f64();
    PropertySpec {
        role: p["role"].as_str().map(RoleWord::read),
        unit: p["unit"].as_str(),
        min: float("min"),
        max: float("max"),
        step: float("step"),
        tolerance: float("tolerance"),
        class: p["class"].as_str().map(ClassWord::read),
        expected_ms: ms("expected_ms"),
        stable_ms: ms("stable_ms"),
        min_interval_ms: ms("min_interval_ms"),
        repeatable: p["repeatable"].as_bool(),
        clamps: p["clamps"] == json!(true),
        on_withdraw: p["on_withdraw"].as_str().map(OnWithdraw::read),
        failsafe: safe
            .map(|value| Failsafe { value, after_ms: u32::try_from(number(&p["failsafe"], "after_ms")).unwrap() }),
        ..PropertySpec::new(text(p, "name"), KindWord::read(text(p, "kind")), EvidenceWord::read(text(p, "feedback")))
    }
}

fn action(a: &Value) -> ActionSpec<'_> {
    ActionSpec {
        role: a["role"].as_str().map(RoleWord::read),
        feedback: a["feedback"].as_str().map(EvidenceWord::read),
        expected_ms: a.get("expected_ms").map(|_| u32::try_from(number(a, "expected_ms")).unwrap()),
        ..ActionSpec::new(text(a, "name"), a["repeatable"] == json!(true))
    }
}
