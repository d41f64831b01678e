//! The hub's side held to the vectors: what it reads (`events.json`), what it writes (`commands.json`).
#![allow(clippy::unwrap_used, clippy::wildcard_enum_match_arm, reason = "a test that fails here says where")]

mod common;

use common::{bytes, cases, incoming, number, scalar, text};
use serde_json::{Value, json};
use truetwin_wire::{
    hub::{Command, decode_event, decode_will, encode},
    limits::COMMAND_BYTES_MAX,
    words::ErrorWord,
};

#[test]
fn the_hub_reads_every_event_as_the_vectors_say() {
    for case in cases("events.json", "events") {
        let name = &case["name"];
        match (decode_event(&bytes(&case)), case.get("means")) {
            (Ok(read), Some(means)) => {
                assert_eq!(incoming(&read), *means, "{name}");
                assert_eq!(json!(read.unknown_words), *case.get("unknown_words").unwrap_or(&json!(0)), "{name}");
            }
            (Err(error), None) => {
                let mut found = json!({"reason": error.reason.as_str()});
                if let Some(path) = &error.path {
                    found["path"] = json!(path);
                }
                if let Some(seq) = error.of_seq {
                    found["of_seq"] = json!(seq);
                }
                assert_eq!(found, case["error"], "{name}: {error}");
                // Whatever is wrong can be told to the device in one command, in plain characters.
                let told = error.encode();
                assert!(told.len() <= COMMAND_BYTES_MAX && !told.contains(&b'\\'), "{name}");
            }
            (result, _) => panic!("{name}: {result:?}"),
        }
    }
}

#[test]
fn the_hub_writes_every_command_as_the_vectors_say() {
    for case in cases("commands.json", "commands") {
        if case["encodes"] != json!(true) {
            continue;
        }
        let written = encode(&command(&case["means"]));
        let (written, expected): (Value, Value) =
            (serde_json::from_slice(&written).unwrap(), serde_json::from_slice(&bytes(&case)).unwrap());
        assert_eq!(written, expected, "{}", case["name"]);
    }
}

fn command(means: &Value) -> Command {
    let own = |field: &str| text(means, field).to_owned();
    let may = |field: &str| means.get(field).map(|v| v.as_str().unwrap().to_owned());
    let ms = |field: &str| number(means, field);
    let small = |field: &str| u32::try_from(ms(field)).unwrap();
    match text(means, "command") {
        "welcome" => Command::Welcome {
            session: own("session"),
            hub: own("hub"),
            epoch: small("epoch"),
            hub_ms: ms("hub_ms"),
            heartbeat_ms: small("heartbeat_ms"),
            warnings: Vec::new(),
        },
        "refused" => Command::Refused {
            reason: ErrorWord::read(text(means, "reason")),
            path: may("path"),
            allowed: may("allowed"),
        },
        "describe" => Command::Describe { page: small("page") },
        "error" => Command::Error {
            of_seq: means.get("of_seq").map(|_| small("of_seq")),
            reason: ErrorWord::read(text(means, "reason")),
            path: may("path"),
            allowed: may("allowed"),
        },
        "set" => Command::Set {
            session: own("session"),
            hub_ms: ms("hub_ms"),
            op: own("op"),
            property: own("property"),
            value: scalar(&means["value"]),
            ttl_ms: small("ttl_ms"),
        },
        "run" => Command::Run {
            session: own("session"),
            hub_ms: ms("hub_ms"),
            op: own("op"),
            action: own("action"),
            args: means["args"].as_object().into_iter().flatten().map(|(k, v)| (k.clone(), scalar(v))).collect(),
            ttl_ms: small("ttl_ms"),
        },
        "get_device_state" => Command::GetDeviceState {
            session: own("session"),
            hub_ms: ms("hub_ms"),
            op: own("op"),
            property: may("property"),
        },
        "withdraw" => Command::Withdraw { session: own("session"), hub_ms: ms("hub_ms"), op: own("op") },
        "get_log" => Command::GetLog { session: own("session"), hub_ms: ms("hub_ms"), op: own("op") },
        other => panic!("{other}"),
    }
}

#[test]
fn a_welcome_keeps_the_warnings_that_fit_and_no_command_is_too_long() {
    let warnings: Vec<String> = (0..20).map(|n| format!("warning {n}: {}", "w".repeat(60))).collect();
    let long = |n| "x".repeat(n);
    let welcome = Command::Welcome {
        session: long(16),
        hub: long(16),
        epoch: u32::MAX,
        hub_ms: u64::MAX,
        heartbeat_ms: u32::MAX,
        warnings,
    };
    let written: Value = serde_json::from_slice(&encode(&welcome)).unwrap();
    assert!(welcome.fits() && written["warnings"].as_array().is_some_and(|kept| kept.len() >= 3));
    let set = Command::Set {
        session: long(16),
        hub_ms: u64::MAX,
        op: long(16),
        property: long(32),
        value: scalar(&json!("\"".repeat(128))),
        ttl_ms: u32::MAX,
    };
    assert!(set.fits());
    let refused = Command::Refused {
        reason: ErrorWord::UnsupportedProtocol,
        path: Some("灯".repeat(200)),
        allowed: Some("灯".repeat(200)),
    };
    assert!(refused.fits());
}

#[test]
fn a_will_names_its_boot() {
    assert_eq!(&*decode_will(br#"{"boot":"9f3a11"}"#).unwrap().boot, "9f3a11");
    for bad in ["", "{}", r#"{"boot":1}"#, r#"{"boot":""}"#, "offline"] {
        assert!(decode_will(bad.as_bytes()).is_err(), "{bad}");
    }
}
