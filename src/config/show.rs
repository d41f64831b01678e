//! A [`Config`] as a file: with its documentation as the example, without it as what is in force.

use std::{collections::BTreeMap, fmt::Write as _};

use super::{
    Config, Device,
    callers::{CALLERS, ENDPOINT, SecretText},
    read::PROPERTIES,
    scenes,
    schema::{CallerText, DeviceText, EndpointText, PropertySettings, SceneText},
    setting::{Key, Profile, Section},
    terms::{Accepted, ByAction, Expect, Sensor},
};
use crate::{
    names::{Label, Lang, Member, Scene},
    property::{Choice, Class, Confirm, DeviceId, Evidence, Predicate, Value},
};

/// What stands at the top of the example.
const HEAD: &str = "\
# Every setting of truetwin with its default. No file is needed; one that names only what you change is enough:
#     truetwin serve --config FILE
# `truetwin check-config --config FILE` says what is wrong in a file, or prints what is in force.
# Generated from the code (src/config/schema.rs); a test holds the two together.

";

/// The device in the example, because there is none by default.
const SAMPLE_DEVICE: &str = "desk-lamp";

/// The example file: every key, documented, at its default; one device, commented out.
pub(super) fn example() -> String {
    let mut out = HEAD.to_owned();
    let config = Config::default();
    documented(&mut out, "", &config.top, "");
    documented(&mut out, "mqtt", &config.mqtt, "");
    documented(&mut out, "accounts", &config.accounts, "");
    documented(&mut out, "http", &config.http, "");
    documented(&mut out, "timing", &config.timing, "");
    documented(&mut out, "limits", &config.limits, "");
    documented(&mut out, "journal", &config.journal, "");
    documented(&mut out, "recording", &config.recording, "");
    documented(&mut out, "confirm", &config.confirm, "");
    documented(&mut out, &format!("{CALLERS}.http"), &sample_caller(), "# ");
    documented(&mut out, &format!("[{ENDPOINT}]"), &sample_endpoint(), "# ");
    documented(&mut out, &format!("devices.{SAMPLE_DEVICE}"), &sample_text(), "# ");
    let property = format!("devices.{SAMPLE_DEVICE}.{PROPERTIES}.relay");
    documented(&mut out, &property, &sample_property(), "# ");
    for line in SceneText::ABOUT {
        line_to(&mut out, &format!("#{line}"));
    }
    out.push_str(&scenes::written(&[sample_scene()], "# "));
    let end = out.trim_end().len();
    out.truncate(end);
    out.push('\n');
    out
}

/// What is in force, as a file that gives the same again; a comment stands where it is not the default.
pub(super) fn in_force(config: &Config) -> String {
    let mut out = String::new();
    plain(&mut out, "", &config.top);
    plain(&mut out, "mqtt", &config.mqtt);
    plain(&mut out, "accounts", &config.accounts);
    plain(&mut out, "http", &config.http);
    plain(&mut out, "timing", &config.timing);
    plain(&mut out, "limits", &config.limits);
    plain(&mut out, "journal", &config.journal);
    plain(&mut out, "recording", &config.recording);
    plain(&mut out, "confirm", &config.confirm);
    for (name, caller) in [("http", &config.callers.http), ("stdio", &config.callers.stdio)] {
        if *caller != CallerText::default() {
            plain(&mut out, &format!("{CALLERS}.{name}"), caller);
        }
    }
    for endpoint in &config.endpoints {
        plain(&mut out, &format!("[{ENDPOINT}]"), endpoint);
    }
    devices(&mut out, &config.devices);
    out.push_str(&scenes::written(&config.scenes, ""));
    let end = out.trim_end().len();
    out.truncate(end);
    out.push('\n');
    out
}

fn devices(out: &mut String, devices: &BTreeMap<DeviceId, Device>) {
    for (id, device) in devices {
        plain(out, &format!("devices.{id}"), &device.text);
        for (property, settings) in &device.properties {
            let quoted = toml::Value::String(property.to_string());
            plain(out, &format!("devices.{id}.{PROPERTIES}.{quoted}"), settings);
        }
    }
}

fn documented<S: Section>(out: &mut String, path: &str, section: &S, prefix: &str) {
    for line in S::ABOUT {
        line_to(out, &format!("#{line}"));
    }
    header(out, path, prefix);
    for key in S::KEYS {
        for line in key.doc {
            line_to(out, &format!("#{line}"));
        }
        match (key.get)(section) {
            Some(value) => {
                line_to(out, &format!("# Takes {}.", key.allowed));
                line_to(out, &format!("{prefix}{} = {value}", key.name));
            }
            None => line_to(out, &format!("# {} takes {}; it is not set.", key.name, key.allowed)),
        }
    }
    out.push('\n');
}

fn plain<S: Section>(out: &mut String, path: &str, section: &S) {
    header(out, path, "");
    let default = S::default();
    for Key { name, get, .. } in S::KEYS {
        let Some(value) = get(section) else { continue };
        match get(&default) {
            Some(usual) if usual != value => line_to(out, &format!("{name} = {value}  # default {usual}")),
            Some(_) | None => line_to(out, &format!("{name} = {value}")),
        }
    }
    out.push('\n');
}

fn header(out: &mut String, path: &str, prefix: &str) {
    if !path.is_empty() {
        line_to(out, &format!("{prefix}[{path}]"));
    }
}

fn line_to(out: &mut String, line: &str) {
    writeln!(out, "{line}").expect("writing to a string does not fail");
}

fn sample_caller() -> CallerText {
    let names = |names: &[&str]| Some(names.iter().map(|name| (*name).to_owned()).collect());
    CallerText {
        devices: names(&["study", "all lights"]),
        read: names(&["*"]),
        language: Some(Lang::En),
        budget_ms: Some(30_000),
    }
}

fn sample_endpoint() -> EndpointText {
    let some = |text: &str| Some(text.to_owned());
    EndpointText {
        name: some("kitchen"),
        url: Some(SecretText::new("wss://api.xiaozhi.me/mcp/")),
        token_file: some("/etc/truetwin/kitchen.token"),
        profile: Some(Profile::Official),
        devices: Some(vec!["kitchen".to_owned(), "all lights".to_owned()]),
        read: Some(vec!["*".to_owned()]),
        room: some("kitchen"),
        language: Some(Lang::Zh),
        ..EndpointText::default()
    }
}

fn sample_text() -> DeviceText {
    let some = |text: &str| Some(text.to_owned());
    DeviceText {
        name: some("desk lamp"),
        name_zh: some("台灯"),
        room: some("study"),
        room_zh: some("书房"),
        ..DeviceText::default()
    }
}

fn sample_property() -> PropertySettings {
    let some = |text: &str| Some(text.to_owned());
    PropertySettings {
        name: some("reading lamp"),
        name_zh: some("阅读灯"),
        room: some("bedroom"),
        room_zh: some("卧室"),
        stable_ms: Some(200),
        required_evidence: Some(Evidence::Firmware),
        expected_ms: Some(300),
        predicate: Some(Choice::Equals),
        class: Some(Class::Momentary),
        accepted: Some(Accepted),
        confirm: Some(Confirm::Press),
        press_with: Some(Sensor { device: DeviceId::new("door-bell").expect("an id"), property: "presses".into() }),
        sensitive: false,
        by_action: Some(ByAction(vec![
            (Value::Bool(true), "press".to_owned()),
            (Value::Bool(false), "press".to_owned()),
        ])),
        verify_with: Some(Sensor { device: DeviceId::new("meter").expect("an id"), property: "watts".into() }),
        verify_expect: Some(Expect(vec![
            (Some(Value::Bool(true)), Predicate::AtLeast(5.0)),
            (Some(Value::Bool(false)), Predicate::AtMost(1.0)),
        ])),
        verify_within_ms: Some(2_000),
    }
}

fn sample_scene() -> Scene {
    let device = DeviceId::new(SAMPLE_DEVICE).expect("an id");
    let member = Member { device, property: "relay".into(), value: Value::Bool(true), required: true };
    Scene { label: Label { en: "coming home".to_owned(), zh: "回家".to_owned() }, members: vec![member] }
}
