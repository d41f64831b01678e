//! What the native dialect makes of a device's own words (semantics 2.10, 6.4); the twin's rules know no JSON.

use truetwin::{
    config::Config,
    dialect::native,
    property::{Confirm, DeviceId, Failsafe, Movement, Value},
    twin::input::Cause,
};

#[test]
fn s2_10_what_is_over_a_limit_is_a_named_error() {
    let said = |payload: &str| native::decode(payload.as_bytes(), false).expect_err("over a limit").reason.as_str();
    assert_eq!(said(&" ".repeat(2_049)), "too_long");
    assert_eq!(said(r#"{"event":"device_state","status":{"a":{"b":{"c":{"d":1}}}}}"#), "too_deep");
    let many: Vec<String> = (0..65).map(|n| format!("\"p{n}\":1")).collect();
    let state = format!(
        r#"{{"event":"device_state","session":"s","boot":"b","seq":1,"up_ms":1,"status":{{{}}}}}"#,
        many.join(",")
    );
    assert_eq!(said(&state), "too_many");
}

#[test]
fn s6_4_a_failsafe_is_read_with_the_description() {
    let hello = r#"{"event":"hello","proto":1,"level":3,"boot":"b","seq":1,"up_ms":1,"fw":"1","model":"m","desc":"d",
        "properties":[{"name":"valve","kind":"bool","feedback":"pin","failsafe":{"value":false,"after_ms":60000}}],
        "state":{"valve":false},"cause":"failsafe"}"#;
    let Ok((native::Heard::Hello(hello), _)) = native::decode(hello.as_bytes(), false) else { panic!("a hello") };
    let declared = hello.description.properties[0].terms.failsafe.clone();
    assert_eq!(declared, Some(Failsafe { value: Value::Bool(false), after_ms: 60_000 }));
    assert_eq!(hello.cause, Cause::Failsafe);
}

#[test]
fn s7_2_what_calls_itself_a_gate_is_asked_about_although_this_version_knows_no_gates() {
    let hello = |role: &str| {
        let hello = format!(
            r#"{{"event":"hello","proto":1,"level":3,"boot":"b","seq":1,"up_ms":1,"fw":"1","model":"m","desc":"d",
            "properties":[{{"name":"open","kind":"bool","feedback":"pin"{role}}}],
            "actions":[{{"name":"pulse","repeatable":false{role}}}],"state":{{"open":false}},"cause":"boot"}}"#
        );
        let Ok((native::Heard::Hello(hello), _)) = native::decode(hello.as_bytes(), false) else { panic!("a hello") };
        hello.description
    };
    let asked = |role: &str, owner: &str| {
        let id = DeviceId::new("gate").expect("an id");
        let config = Config::parse("t", owner).expect("a configuration");
        let description = config.overridden(&id, &hello(role));
        let property = description.properties[0].confirmation(Movement::To(&Value::Bool(true)), None);
        (property, description.actions[0].needs_confirmation())
    };
    let ask = Some(Confirm::Ask);
    assert_eq!(asked(r#","role":"gate""#, ""), (ask, ask));
    // That it has a name or a witness says nothing about who may move it.
    assert_eq!(asked(r#","role":"gate""#, "[devices.gate.properties.open]\nname = \"gate\"\n"), (ask, ask));
    let none =
        "[devices.gate.properties.open]\nconfirm = \"none\"\n[devices.gate.properties.pulse]\nconfirm = \"none\"\n";
    assert_eq!(asked(r#","role":"gate""#, none), (None, None));
    assert_eq!(asked(r#","role":"light""#, ""), (None, None));
    assert_eq!(asked("", ""), (None, None), "it says nothing at all: as before");
}
