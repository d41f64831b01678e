//! What the native dialect makes of a device's own words (semantics 2.10, 6.4); the twin's rules know no JSON.

use truetwin::{
    dialect::native,
    property::{Failsafe, Value},
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
