//! Random facts: values, readings, operations and refusals.

use super::*;

pub(super) fn value() -> impl Strategy<Value = Value> {
    prop_oneof![
        any::<bool>().prop_map(Value::Bool),
        (-1000..1000).prop_map(Value::Integer),
        (-1000.0..1000.0).prop_map(Value::Number),
        select(vec!["cool", "制冷", "#ff8800"]).prop_map(|t| Value::Text(t.into())),
    ]
}

pub(super) fn secs() -> impl Strategy<Value = Duration> {
    prop_oneof![0..5_000u64, 5_000..90_000u64, 90_000..400_000_000u64].prop_map(Duration::from_millis)
}

pub(super) fn reading() -> impl Strategy<Value = Reading> {
    (value(), select(EVIDENCE.to_vec()), secs(), select(Trust::ALL.to_vec()))
        .prop_map(|(value, evidence, age, trust)| Reading { value, evidence, age, trust })
}

pub(super) fn settled() -> impl Strategy<Value = Settled> {
    let facts = (
        (
            prop::option::weighted(0.9, value()),
            prop::option::of(value()),
            any::<bool>(),
            prop::option::of((prop::option::of(value()), any::<bool>())),
        ),
        select(Outcome::ALL.to_vec()),
        select(Stage::ALL.to_vec()),
        prop::option::of(select(Reason::ALL.to_vec())),
        prop::option::of(reading()),
        select(EVIDENCE.to_vec()),
        select(Attribution::ALL.to_vec()),
    );
    let rest = (prop::option::of(secs()), secs(), prop::bool::weighted(0.1), prop::bool::weighted(0.1), any::<bool>());
    (facts, rest).prop_map(|(f, (eta, elapsed, late_success, reverted, kept))| Settled {
        op: OpId::new("4f1c00aa11bb"),
        device: DeviceId::new("lamp").expect("an id"),
        property: "relay".into(),
        wish: f.0.0,
        outcome: f.1,
        stage: f.2,
        reason: f.3,
        found: f.4,
        confirmed_by: f.5,
        attribution: f.6,
        measured: f.0.3.map(|(value, agrees)| Measured {
            device: DeviceId::new("meter").expect("an id"),
            property: "power".into(),
            value,
            agrees,
        }),
        eta,
        elapsed,
        stages: vec![(Stage::Admission, Duration::ZERO), (f.2, elapsed)],
        late_success,
        reverted,
        joined: None,
        superseded_by: f.0.1,
        limited: f.0.2,
        kept: kept && !f.1.is_success(),
        recorded: true,
    })
}

/// Names as owners write them: up to 32 characters of anything, control characters and brackets too.
pub(super) fn owners_name() -> impl Strategy<Value = String> {
    prop::collection::vec(any::<char>(), 0..40).prop_map(|c| c.into_iter().collect())
}

/// Long names, Chinese most of all, also of signs that take four bytes.
pub(super) fn long_name() -> impl Strategy<Value = String> {
    let signs =
        prop_oneof![8 => select(vec!['客', '厅', '灯', '的', '第', '路']), 1 => select(vec!['𠮷', '🏠', 'a', '"'])];
    prop::collection::vec(signs, 1..33).prop_map(|c| c.into_iter().collect())
}

pub(super) fn refusals() -> impl Strategy<Value = Refusal> {
    let names = || {
        prop::collection::vec(
            select(vec!["客厅灯（书房）", "strip (study)", "大门锁", "a", "一二三四五六七八九十"]),
            0..6,
        )
        .prop_map(|v| v.into_iter().map(str::to_owned).collect::<Vec<_>>())
    };
    let property: Arc<str> = "relay".into();
    let p = property.clone();
    prop_oneof![
        names().prop_map(|near| Refusal::UnknownDevice { asked: "x".into(), near }),
        names().prop_map(|candidates| Refusal::AmbiguousName { asked: "x".into(), candidates }),
        Just(Refusal::UnknownProperty { asked: "x".into(), known: vec![property.clone()] }),
        select(vec![
            ("device", "lamp"),
            ("to", "locked, unlocked"),
            ("room", "客厅, 书房"),
            ("operation", ""),
            ("fresh", "yes, no"),
            ("query", ""),
            ("level", "16 to 30 °C"),
            ("level", "a number"),
            ("how", "to, up_by, down_by"),
            ("property", "brightness, colour_temperature"),
            ("property", ""),
            ("option", "cool, heat, dry, fan_only, auto, eco, sleep, high, medium, low, frobnicate"),
            ("option", "red, warm_white, blue"),
            ("option", "frobnicate"),
            ("scene", "离家, 回家, 睡觉"),
            ("action", "press, stop, frobnicate"),
        ])
        .prop_map(|(parameter, allowed)| Refusal::MissingArgument { parameter, allowed: allowed.into() }),
        Just(Refusal::InvalidValue {
            property: property.clone(),
            error: ValueError::NotListed { sent: "warm".into(), allowed: vec!["cool".into(), "Ultra".into()] },
        }),
        Just(Refusal::UnknownArgument { parameter: "x".into(), allowed: vec!["device"] }),
        (any::<f64>(), any::<f64>(), any::<f64>()).prop_map(move |(sent, min, max)| Refusal::InvalidValue {
            property: p.clone(),
            error: ValueError::OutOfRange { sent: sent % 1e6, min: min % 1e6, max: max % 1e6 },
        }),
        Just(Refusal::InvalidValue {
            property: property.clone(),
            error: ValueError::OutOfRange { sent: 5.0, min: 16.0, max: f64::MAX }
        }),
        Just(Refusal::InvalidValue {
            property: property.clone(),
            error: ValueError::OffStep { sent: 16.3, step: 0.5, min: 16.0 }
        }),
        Just(Refusal::Forbidden { property: property.clone() }),
        Just(Refusal::ActsOnly { property: property.clone(), actions: vec!["pulse".into(), "frobnicate".into()] }),
        Just(Refusal::ConfirmationRequired),
        (0..3_u32).prop_map(|left| Refusal::CodeWrong { left }),
        Just(Refusal::CodeExpired),
        Just(Refusal::CodeTooEarly),
        secs().prop_map(|left| Refusal::LockedOut { left }),
        Just(Refusal::Declined),
        prop::option::of(secs()).prop_map(|last_heard| Refusal::Offline { last_heard }),
        Just(Refusal::NotAccepted { property: "bolt".into() }),
        Just(Refusal::NotAccepted { property: "frobnication".into() }),
        Just(Refusal::VerifierOffline { device: DeviceId::new("meter").ok() }),
        Just(Refusal::StateUnknown { property: property.clone() }),
        Just(Refusal::HubJustStarted),
        Just(Refusal::QueueFull { limit: 8 }),
        secs().prop_map(|needed| Refusal::DeadlineTooShort { needed }),
        Just(Refusal::BrokerDown),
        Just(Refusal::Quarantined),
        Just(Refusal::ShuttingDown),
    ]
}
