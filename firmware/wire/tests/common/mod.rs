//! The vectors, and how both sides say what a message means in their form (`vectors/README.md`).
#![allow(dead_code, unreachable_pub, reason = "each test uses its part")]

use std::sync::Arc;

use serde_json::{Map, Value, json};
use truetwin_wire::{
    Scalar,
    hub::{ActionWire, Event, Incoming, PropertyWire},
};

pub fn cases(file: &str, list: &str) -> Vec<Value> {
    let path = format!("{}/vectors/{file}", env!("CARGO_MANIFEST_DIR"));
    let all: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    all[list].as_array().unwrap().clone()
}

/// The bytes of a case: the message, padded with spaces where the case says so.
pub fn bytes(case: &Value) -> Vec<u8> {
    let mut bytes = case["message"].as_str().unwrap().as_bytes().to_vec();
    if let Some(len) = case["pad_to_bytes"].as_u64() {
        bytes.resize(usize::try_from(len).unwrap(), b' ');
    }
    bytes
}

pub fn scalar(value: &Value) -> Scalar {
    match value {
        Value::Bool(v) => Scalar::Bool(*v),
        Value::Number(v) if v.is_i64() => Scalar::Integer(v.as_i64().unwrap().try_into().unwrap()),
        Value::Number(v) => Scalar::number(v.as_f64().unwrap()).unwrap(),
        Value::String(v) => Scalar::text(v).unwrap(),
        other => panic!("no scalar: {other}"),
    }
}

pub fn text<'a>(means: &'a Value, field: &str) -> &'a str {
    means[field].as_str().unwrap_or_else(|| panic!("{field} is no text in {means}"))
}

pub fn number(means: &Value, field: &str) -> u64 {
    means[field].as_u64().unwrap_or_else(|| panic!("{field} is no number in {means}"))
}

/// An object that leaves out what is absent, empty or false.
#[derive(Default)]
pub struct Means(Map<String, Value>);

impl Means {
    pub fn put(&mut self, field: &str, value: impl Into<Value>) -> &mut Self {
        let value = value.into();
        let empty = value.is_null()
            || value == json!(false)
            || value.as_array().is_some_and(Vec::is_empty)
            || value.as_object().is_some_and(Map::is_empty);
        if !empty {
            self.0.insert(field.to_owned(), value);
        }
        self
    }

    pub fn end(self) -> Value {
        Value::Object(self.0)
    }
}

pub fn value(scalar: &Scalar) -> Value {
    match scalar {
        Scalar::Bool(v) => json!(v),
        Scalar::Integer(v) => json!(v),
        Scalar::Number(v) => json!(v),
        Scalar::Text(v) => json!(v.as_str()),
    }
}

pub fn map<T>(all: &[(Arc<str>, T)], value: impl Fn(&T) -> Value) -> Value {
    Value::Object(all.iter().map(|(key, v)| (key.to_string(), value(v))).collect())
}

/// What the hub read, in the vectors' form.
pub fn incoming(incoming: &Incoming) -> Value {
    let mut means = Means::default();
    let word = |w: &dyn std::fmt::Display| json!(w.to_string());
    let mut envelope = |event: &str| {
        means.put("event", event).put("session", &*incoming.session).put("boot", &*incoming.boot);
        means.put("seq", incoming.seq).put("up_ms", incoming.up_ms).put("ts", incoming.ts.clone());
    };
    match &incoming.event {
        Event::Heartbeat => envelope("heartbeat"),
        Event::ActionReport(r) => {
            envelope("device_action_report");
            means.put("op", &*r.op).put("action", &*r.action).put("property", r.property.as_deref());
            means.put("result", word(&r.result)).put("status", map(&r.status, value));
            means.put("evidence", map(&r.evidence, |w| word(w))).put("reason", r.reason.map(|w| word(&w)));
            means.put("eta_ms", r.eta_ms).put("clamped", r.clamped).put("dup", r.dup);
        }
        Event::DeviceState(s) => {
            envelope("device_state");
            means.put("op", s.op.as_deref()).put("status", map(&s.status, value)).put("cause", word(&s.cause));
            means.put("evidence", map(&s.evidence, |w| word(w))).put("seen", map(&s.seen, |op| json!(**op)));
        }
        Event::Description(d) => {
            envelope("description");
            means.put("desc", &*d.desc).put("page", d.page).put("pages", d.pages);
            means.put("properties", d.properties.iter().map(property).collect::<Vec<_>>());
            means.put("actions", d.actions.iter().map(action).collect::<Vec<_>>());
        }
        Event::Hello(h) => {
            envelope("hello");
            means.put("proto", h.proto).put("level", h.level).put("fw", h.fw.as_str()).put("model", h.model.as_str());
            means.put("desc", &*h.desc).put("cause", word(&h.cause)).put("state", map(&h.state, value));
            means.put("properties", h.properties.iter().map(property).collect::<Vec<_>>());
            means.put("actions", h.actions.iter().map(action).collect::<Vec<_>>()).put("exclusive", json!(h.exclusive));
            means.put("evidence", map(&h.evidence, |w| word(w))).put("seen", map(&h.seen, |op| json!(**op)));
            let mut means = means.end();
            means["inline"] = json!(h.inline);
            return means;
        }
    }
    means.end()
}

fn action(action: &ActionWire) -> Value {
    let mut means = Means::default();
    means.put("name", &*action.name).put("expected_ms", action.expected_ms);
    means.put("role", action.role.map(|w| w.as_str())).put("feedback", action.feedback.map(|w| w.as_str()));
    let mut means = means.end();
    means["repeatable"] = json!(action.repeatable);
    means
}

fn property(p: &PropertyWire) -> Value {
    // The vectors write 5 where the number is 5.0.
    let number = |v: f64| if v.fract() == 0.0 { json!(v as i64) } else { json!(v) };
    let mut means = Means::default();
    means.put("name", &*p.name).put("label", p.label.clone()).put("role", p.role.map(|w| w.as_str()));
    means.put("kind", p.kind.as_str()).put("unit", p.unit.as_deref()).put("min", p.min.map(number));
    means.put("max", p.max.map(number)).put("step", p.step.map(number)).put("tolerance", p.tolerance.map(number));
    means.put("values", p.values.clone()).put("class", p.class.map(|w| w.as_str()));
    means.put("feedback", p.feedback.as_str()).put("expected_ms", p.expected_ms).put("stable_ms", p.stable_ms);
    means.put("min_interval_ms", p.min_interval_ms).put("settable", p.settable).put("repeatable", p.repeatable);
    means.put("clamps", p.clamps).put("on_withdraw", p.on_withdraw.map(|w| w.as_str()));
    means.put("failsafe", p.failsafe.as_ref().map(|f| json!({"value": value(&f.value), "after_ms": f.after_ms})));
    means.end()
}
