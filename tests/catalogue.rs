//! What a model sees and what a person hears, as files that a reviewer can read and a change shows in.
//!
//! `UPDATE_GOLDEN=1 cargo test --test catalogue` writes the files anew.

use std::{fmt::Write as _, fs, path::Path, sync::Arc, time::Duration};

use serde_json::Value as Json;
use truetwin::{
    answer::{self, MemberReply, Naming, Rendered, Row},
    authz::{Policy, Scope, Selection},
    fleet::Card,
    mcp::{House, tool_list},
    names::{Label, Lang, Member, Name, Scene},
    property::{Action, Class, Description, DeviceId, Evidence, Kind, Property, Role, Terms, Value, ValueError},
    twin::words::{
        Attribution, HeldState, HeldWish, Measured, OpId, Outcome, Presence, Reading, Reason, Refusal, RefusalWord,
        Reply, Settled, Stage, StateReport, Trust,
    },
};

fn golden(file: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(file);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(&path, text).expect("the golden folder is writable");
    }
    let kept = fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(kept, text, "{file} differs; UPDATE_GOLDEN=1 writes it anew");
}

fn switch(name: &str, role: Role) -> Property {
    Property {
        name: name.into(),
        role,
        kind: Kind::Bool,
        unit: None,
        min: None,
        max: None,
        step: None,
        tolerance: None,
        values: Vec::new(),
        class: Class::Momentary,
        feedback: Evidence::Pin,
        expected_ms: 300,
        stable_ms: 200,
        min_interval_ms: 0,
        settable: true,
        repeatable: true,
        terms: Terms::default(),
    }
}

fn label(en: &str, zh: &str) -> Label {
    Label { en: en.to_owned(), zh: zh.to_owned() }
}

fn card(id: &str, name: Label, room: Option<Label>, properties: Vec<Property>) -> Card {
    Card {
        name: Name::new(DeviceId::new(id).expect("an id"), name, room),
        presence: Presence::Online,
        description: Some(Arc::new(Description { properties, ..Description::default() })),
        last_heard: None,
    }
}

/// The same card, with actions.
fn doing(mut card: Card, actions: &[&str]) -> Card {
    let action = |name: &&str| Action {
        name: Arc::from(*name),
        role: Role::Other,
        feedback: Evidence::Firmware,
        expected_ms: 300,
        repeatable: false,
        confirmation: Default::default(),
    };
    let properties = card.description.take().expect("it has greeted").properties.clone();
    card.description = Some(Arc::new(Description {
        properties,
        actions: actions.iter().map(action).collect(),
        ..Description::default()
    }));
    card
}

fn number(name: &str, role: Role, unit: &str, (min, max): (f64, f64), step: f64) -> Property {
    let kind = if step.fract() == 0.0 { Kind::Integer } else { Kind::Number };
    Property { kind, unit: Some(unit.into()), min: Some(min), max: Some(max), step: Some(step), ..switch(name, role) }
}

fn mode(name: &str, role: Role, values: &[&str]) -> Property {
    Property { kind: Kind::Enum, values: values.iter().map(|v| Arc::from(*v)).collect(), ..switch(name, role) }
}

fn home() -> Vec<Card> {
    let living = || Some(label("living room", "客厅"));
    let dimmer = number("brightness", Role::Light, "%", (0.0, 100.0), 1.0);
    let blind = number("position", Role::Blind, "%", (0.0, 100.0), 1.0);
    let target = number("temperature", Role::Heater, "°C", (16.0, 30.0), 0.5);
    let modes = mode("mode", Role::Heater, &["cool", "heat", "auto"]);
    let ac = vec![switch("power", Role::Heater), target, modes];
    vec![
        card("ac-1", label("air conditioner", "空调"), living(), ac),
        doing(
            card("blind-1", label("bedroom blind", "卧室窗帘"), Some(label("bedroom", "卧室")), vec![blind]),
            &["stop"],
        ),
        card("lamp-1", label("living room lamp", "客厅灯"), living(), vec![switch("power", Role::Light), dimmer]),
        card("lamp-2", label("floor lamp", "落地灯"), living(), vec![switch("power", Role::Light)]),
        card(
            "lock-1",
            label("front door lock", "大门锁"),
            Some(label("hall", "门厅")),
            vec![switch("bolt", Role::Lock)],
        ),
        card("socket-1", label("kettle socket", "水壶插座"), living(), vec![switch("relay", Role::Socket)]),
    ]
}

/// A home of so many lamps in four rooms.
fn home_of(lamps: usize) -> Vec<Card> {
    let rooms = [("kitchen", "厨房"), ("study", "书房"), ("hall", "门厅"), ("bedroom", "卧室")];
    (0..lamps)
        .map(|i| {
            let (en, zh) = rooms[i % rooms.len()];
            let name = label(&format!("{en} lamp {i}"), &format!("{zh}{i}号灯"));
            card(&format!("lamp-{i}"), name, Some(label(en, zh)), vec![switch("power", Role::Light)])
        })
        .collect()
}

fn scenes() -> Arc<[Scene]> {
    let member = |device: &str, property: &str, on: bool| Member {
        device: DeviceId::new(device).expect("an id"),
        property: property.into(),
        value: Value::Bool(on),
        required: true,
    };
    let members = vec![member("lamp-1", "power", false), member("lock-1", "bolt", true)];
    Arc::new([Scene { label: label("leaving home", "离家"), members }])
}

fn catalogue(cards: &[Card], lang: Lang) -> Json {
    serde_json::to_value(tool_list(&House::new(cards, scenes(), lang))).expect("tools serialise")
}

#[test]
fn the_catalogue_of_a_home_is_the_golden_one() {
    for (lang, file) in [(Lang::En, "catalogue.en.json"), (Lang::Zh, "catalogue.zh.json")] {
        let text = serde_json::to_string_pretty(&catalogue(&home(), lang)).expect("tools serialise");
        golden(file, &format!("{text}\n"));
    }
}

#[test]
fn the_catalogues_of_callers_are_the_golden_ones() {
    let of = |names: &[&str]| Selection::Of(names.iter().map(|name| (*name).to_owned()).collect());
    let callers = [
        // Who may only look.
        ("catalogue.reader.zh.json", Lang::Zh, Scope { read: Selection::All, write: of(&[]) }),
        // A voice box in the bedroom that may also switch lights anywhere.
        ("catalogue.bedroom.en.json", Lang::En, Scope { read: of(&[]), write: of(&["bedroom", "all lights"]) }),
        // Who may look everywhere and move one thing.
        ("catalogue.guest.en.json", Lang::En, Scope { read: Selection::All, write: of(&["floor lamp"]) }),
        ("catalogue.nobody.en.json", Lang::En, Scope::nothing()),
    ];
    for (file, lang, scope) in callers {
        let house = House::of(&home(), scenes(), &Policy { scope, lang, ..Policy::default() });
        golden(file, &format!("{}\n", serde_json::to_string_pretty(&tool_list(&house)).expect("tools serialise")));
    }
}

#[test]
fn who_may_move_nothing_has_three_tools() {
    let names = |scope: Scope| -> Vec<String> {
        let house = House::of(&home(), scenes(), &Policy { scope, ..Policy::default() });
        tool_list(&house).into_iter().map(|tool| tool.name.into_owned()).collect()
    };
    let reader = Scope { read: Selection::All, write: Selection::Of(Vec::new()) };
    assert_eq!(names(reader), ["find_devices", "get_device_state", "ping"]);
    assert_eq!(names(Scope::nothing()), ["find_devices", "ping"]);
}

/// A home of so many devices in eight rooms, of all sorts, each with a name of an everyday length.
fn mixed_home_of(devices: usize) -> Vec<Card> {
    let rooms = [
        ("living room", "客厅"),
        ("kitchen", "厨房"),
        ("study", "书房"),
        ("hall", "门厅"),
        ("bedroom", "卧室"),
        ("children's room", "儿童房"),
        ("bathroom", "卫生间"),
        ("garage", "车库"),
    ];
    (0..devices)
        .map(|i| {
            let (en, zh) = rooms[i % rooms.len()];
            let (what_en, what_zh, properties) = match i % 5 {
                0 => (
                    "ceiling lamp",
                    "吸顶灯",
                    vec![
                        switch("power", Role::Light),
                        number("brightness", Role::Light, "%", (0.0, 100.0), 1.0),
                        Property { kind: Kind::Colour, ..switch("colour", Role::Light) },
                    ],
                ),
                1 => ("blind", "窗帘", vec![number("position", Role::Blind, "%", (0.0, 100.0), 1.0)]),
                2 => (
                    "air conditioner",
                    "空调",
                    vec![
                        switch("power", Role::Heater),
                        number("temperature", Role::Heater, "°C", (16.0, 30.0), 0.5),
                        mode("mode", Role::Heater, &["cool", "heat", "dry", "fan_only", "auto"]),
                    ],
                ),
                3 => ("socket", "插座", vec![switch("relay", Role::Socket)]),
                _ => ("lock", "门锁", vec![switch("bolt", Role::Lock)]),
            };
            let name = label(&format!("{what_en} {i}"), &format!("{i}号{what_zh}"));
            let card = card(&format!("device-{i}"), name, Some(label(en, zh)), properties);
            if i % 5 == 1 { doing(card, &["stop", "calibrate"]) } else { card }
        })
        .collect()
}

#[test]
fn the_catalogue_stays_under_8_kib_whatever_the_house() {
    for lang in [Lang::En, Lang::Zh] {
        for devices in [1, 8, 20, 24, 60, 300] {
            for cards in [home_of(devices), mixed_home_of(devices)] {
                let bytes = catalogue(&cards, lang).to_string().len();
                assert!(bytes <= 8 * 1024, "{bytes} bytes for {devices} devices");
            }
        }
    }
    // The longest names that there can be, and a mode of many words.
    let words: Vec<String> = (0..40).map(|i| format!("{i:032}")).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let long = |i: usize| {
        let name = Label::same(&format!("{}{i:02}", "灯".repeat(30)));
        let properties = vec![switch("power", Role::Light), mode("mode", Role::Light, &words)];
        card(&format!("lamp-{i}"), name, Some(Label::same(&format!("{}{i:02}", "房".repeat(30)))), properties)
    };
    let tools = catalogue(&(0..20).map(long).collect::<Vec<_>>(), Lang::Zh);
    assert!(tools.to_string().len() <= 8 * 1024, "{}", tools.to_string().len());
}

#[test]
fn a_tool_without_anything_to_act_on_is_not_listed() {
    let names = |cards: &[Card]| -> Vec<String> {
        tool_list(&House::new(cards, Arc::default(), Lang::En)).into_iter().map(|t| t.name.into_owned()).collect()
    };
    assert_eq!(names(&[]), ["find_devices", "ping"]);
    let sensor = Property { settable: false, ..switch("motion", Role::Sensor) };
    let cards = [card("pir", label("pir", "感应器"), None, vec![sensor])];
    assert_eq!(names(&cards), ["find_devices", "get_device_state", "ping"]);
    assert_eq!(
        names(&home()),
        [
            "find_devices",
            "get_device_state",
            "switch_device",
            "set_device_level",
            "set_device_option",
            "run_device_action",
            "check_operation",
            "confirm_operation",
            "ping",
        ]
    );
}

#[test]
fn to_lists_only_what_exists_in_the_house() {
    let to = |cards: &[Card]| {
        let tools = catalogue(cards, Lang::En);
        tools.as_array().expect("an array").iter().find(|t| t["name"] == "switch_device").expect("listed")
            ["inputSchema"]["properties"]["to"]
            .clone()
    };
    assert_eq!(to(&home_of(1))["enum"], serde_json::json!(["on", "off"]));
    assert_eq!(to(&home_of(1))["description"], "state to reach");
    assert_eq!(to(&home())["enum"], serde_json::json!(["on", "off", "open", "closed", "locked", "unlocked"]));
}

#[test]
fn a_device_that_has_not_greeted_yet_is_listed_with_every_word() {
    let mut cards = home_of(1);
    cards[0].description = None;
    let tools = catalogue(&cards, Lang::En);
    let listed = tools.as_array().expect("an array").iter().find(|t| t["name"] == "switch_device").expect("listed");
    let words = serde_json::json!(["on", "off", "open", "closed", "locked", "unlocked"]);
    assert_eq!(listed["inputSchema"]["properties"]["to"]["enum"], words);
    assert_eq!(listed["inputSchema"]["properties"]["device"]["enum"], serde_json::json!(["kitchen lamp 0"]));
}

#[test]
fn schemas_are_flat() {
    fn keys(json: &Json, found: &mut Vec<String>) {
        match json {
            Json::Object(map) => map.iter().for_each(|(k, v)| {
                found.push(k.clone());
                keys(v, found);
            }),
            Json::Array(items) => items.iter().for_each(|v| keys(v, found)),
            Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) => {}
        }
    }
    for lang in [Lang::En, Lang::Zh] {
        let mut found = Vec::new();
        keys(&catalogue(&home(), lang), &mut found);
        for banned in ["$ref", "$defs", "oneOf", "anyOf", "allOf", "additionalProperties"] {
            assert!(!found.iter().any(|k| k == banned), "{banned}");
        }
    }
}

#[test]
fn names_in_the_device_list_are_unique() {
    let study = || Some(label("study", "书房"));
    let lamp = |id: &str, room| card(id, label("lamp", "灯"), room, vec![switch("power", Role::Light)]);
    let cards = [lamp("a", study()), lamp("b", Some(label("hall", "门厅"))), lamp("c", study()), lamp("d", None)];
    let house = House::new(&cards, Arc::default(), Lang::En);
    let shown: Vec<&str> = house.entries().iter().map(|e| e.shown.as_str()).collect();
    assert_eq!(shown, ["lamp (a)", "lamp (hall)", "lamp (c)", "lamp (d)"]);
}

// The sentences.

fn settled(outcome: Outcome, stage: Stage, reason: Option<Reason>, found: Option<Value>) -> Settled {
    let evidence = Evidence::Pin;
    Settled {
        op: OpId::new("4f1c00aa11bb"),
        device: DeviceId::new("lamp-1").expect("an id"),
        property: "power".into(),
        wish: Some(Value::Bool(true)),
        outcome,
        stage,
        reason,
        found: found.map(|value| Reading { value, evidence, age: Duration::from_secs(1), trust: Trust::Now }),
        confirmed_by: Evidence::None,
        attribution: Attribution::Named,
        measured: None,
        eta: None,
        elapsed: Duration::from_millis(3000),
        stages: vec![(Stage::Admission, Duration::from_millis(1))],
        late_success: false,
        reverted: false,
        joined: None,
        superseded_by: None,
        kept: false,
        recorded: true,
        limited: false,
    }
}

fn named(role: Role, lang: Lang) -> Naming {
    let (en, zh, unit) = match role {
        Role::Light => ("living room lamp", "客厅灯", None),
        Role::Socket => ("kettle socket", "水壶插座", None),
        Role::Lock => ("front door lock", "大门锁", None),
        Role::Door => ("garage door", "车库门", None),
        Role::Blind => ("bedroom blind", "卧室窗帘", None),
        Role::Valve => ("water valve", "水阀", None),
        Role::Heater => ("heater", "暖气", Some("°C".to_owned())),
        Role::Fan => ("fan", "风扇", None),
        Role::Pump => ("pump", "水泵", None),
        Role::Sensor => ("thermometer", "温度计", Some("°C".to_owned())),
        Role::Other => ("box", "盒子", None),
    };
    let name = match lang {
        Lang::En => en,
        Lang::Zh => zh,
    };
    Naming {
        device: name.to_owned(),
        spoken: name.to_owned(),
        role,
        unit,
        what: None,
        is_action: false,
        level: 0,
        sensitive: false,
    }
}

/// One row in each language, from the same facts.
fn row(table: &mut String, what: &str, render: impl Fn(Lang) -> Rendered) {
    let (zh, en) = (render(Lang::Zh), render(Lang::En));
    assert_eq!((zh.result, zh.structured["next"].clone()), (en.result, en.structured["next"].clone()));
    let note = |r: &Rendered| r.note.clone().unwrap_or_default();
    let next = en.structured["next"].as_str().expect("next is a word");
    writeln!(
        table,
        "| {what} | {} | {next} | {} | {} | {} | {} |",
        en.result.as_str(),
        zh.say,
        en.say,
        note(&zh),
        note(&en)
    )
    .expect("a string takes everything");
}

fn head(table: &mut String, title: &str) {
    write!(table, "\n## {title}\n\n| what | result | next | 中文 | English | note 中文 | note English |\n|---|---|---|---|---|---|---|\n")
        .expect("a string takes everything");
}

#[test]
fn every_sentence_is_the_golden_one() {
    let mut table =
        "# Sentences\n\nWritten by `tests/catalogue.rs`; every outcome and every refusal, in both languages.\n"
            .to_owned();
    successes(&mut table);
    endings(&mut table);
    numbers_modes_actions(&mut table);
    togethers(&mut table);
    questions(&mut table);
    refusals(&mut table);
    reads(&mut table);
    golden("sentences.md", &table);
}

fn successes(table: &mut String) {
    head(table, "Confirmed, by what was confirmed and by role");
    for evidence in [Evidence::Sensor, Evidence::Pin, Evidence::Firmware] {
        for role in [Role::Light, Role::Socket, Role::Lock, Role::Blind, Role::Fan] {
            for wish in [true, false] {
                let facts = Settled {
                    confirmed_by: evidence,
                    wish: Some(Value::Bool(wish)),
                    ..settled(Outcome::Converged, Stage::Settled, None, Some(Value::Bool(wish)))
                };
                let what =
                    format!("converged, {}, {} {}", evidence.as_str(), role_name(role), answer::state_word(wish, role));
                row(table, &what, |lang| answer::operation(&facts, &named(role, lang), lang));
            }
        }
        let wish = Value::Number(21.5);
        let facts = Settled {
            confirmed_by: evidence,
            wish: Some(wish.clone()),
            ..settled(Outcome::Converged, Stage::Settled, None, Some(wish))
        };
        row(table, &format!("converged, {}, 21.5 °C", evidence.as_str()), |lang| {
            answer::operation(&facts, &named(Role::Heater, lang), lang)
        });
    }
    let inferred = Settled {
        confirmed_by: Evidence::Pin,
        attribution: Attribution::Inferred,
        ..settled(Outcome::Converged, Stage::Settled, None, Some(Value::Bool(true)))
    };
    row(table, "converged, pin, inferred", |lang| answer::operation(&inferred, &named(Role::Light, lang), lang));
    let already = Settled {
        confirmed_by: Evidence::Pin,
        ..settled(Outcome::Already, Stage::Settled, None, Some(Value::Bool(true)))
    };
    row(table, "already", |lang| answer::operation(&already, &named(Role::Light, lang), lang));
    let clamped = Settled {
        confirmed_by: Evidence::Firmware,
        wish: Some(Value::Number(10.0)),
        ..settled(Outcome::Clamped, Stage::Settled, None, Some(Value::Number(16.0)))
    };
    row(table, "clamped", |lang| answer::operation(&clamped, &named(Role::Heater, lang), lang));
    let late = Settled {
        late_success: true,
        ..settled(Outcome::TimedOut, Stage::WaitingDeviceReport, Some(Reason::Timeout), Some(Value::Bool(true)))
    };
    row(table, "timed_out, late success", |lang| answer::operation(&late, &named(Role::Light, lang), lang));
    let reverted = Settled {
        reverted: true,
        confirmed_by: Evidence::Pin,
        ..settled(Outcome::Converged, Stage::Settled, None, Some(Value::Bool(false)))
    };
    row(table, "converged, reverted", |lang| answer::operation(&reverted, &named(Role::Light, lang), lang));
}

fn role_name(role: Role) -> &'static str {
    match role {
        Role::Light => "light",
        Role::Socket => "socket",
        Role::Lock => "lock",
        Role::Blind => "blind",
        Role::Door | Role::Valve | Role::Heater | Role::Fan | Role::Pump | Role::Sensor | Role::Other => "other",
    }
}

fn endings(table: &mut String) {
    head(table, "Every other outcome");
    let off = || Some(Value::Bool(false));
    let cases = [
        (
            "working",
            Role::Blind,
            Settled {
                eta: Some(Duration::from_secs(20)),
                ..settled(Outcome::Working, Stage::WaitingDeviceReport, None, off())
            },
        ),
        ("working, no eta", Role::Light, settled(Outcome::Working, Stage::WaitingDeviceReport, None, off())),
        (
            "working, held, offline",
            Role::Heater,
            Settled {
                wish: Some(Value::Number(22.0)),
                ..settled(Outcome::Working, Stage::Queued, Some(Reason::Offline), Some(Value::Number(19.0)))
            },
        ),
        (
            "contradicted, measured",
            Role::Socket,
            Settled {
                measured: Some(Measured {
                    device: DeviceId::new("meter").expect("an id"),
                    property: "power".into(),
                    value: Some(Value::Number(0.0)),
                    agrees: false,
                }),
                ..settled(Outcome::Contradicted, Stage::WaitingSensor, Some(Reason::SensorDiffers), off())
            },
        ),
        (
            "interrupted, described otherwise",
            Role::Light,
            settled(Outcome::Interrupted, Stage::WaitingDeviceReport, Some(Reason::PropertyChanged), None),
        ),
        ("working, not begun", Role::Light, settled(Outcome::Working, Stage::Queued, None, off())),
        ("partial", Role::Light, settled(Outcome::Partial, Stage::WaitingDeviceReport, None, None)),
        ("sent_unverified", Role::Fan, settled(Outcome::SentUnverified, Stage::WaitingDeviceReport, None, None)),
        (
            "superseded",
            Role::Light,
            settled(Outcome::Superseded, Stage::WaitingDeviceAck, Some(Reason::Superseded), off()),
        ),
        (
            "superseded, lock",
            Role::Lock,
            settled(Outcome::Superseded, Stage::WaitingDeviceAck, Some(Reason::Superseded), off()),
        ),
        (
            "contradicted",
            Role::Light,
            settled(Outcome::Contradicted, Stage::WaitingReadBack, Some(Reason::ReadBackDiffers), off()),
        ),
        (
            "contradicted, did not hold",
            Role::Light,
            settled(Outcome::Contradicted, Stage::WaitingReadBack, Some(Reason::DidNotHold), off()),
        ),
        ("contradicted, sensor", Role::Light, settled(Outcome::Contradicted, Stage::WaitingSensor, None, off())),
        (
            "timed_out, no acknowledgement",
            Role::Light,
            settled(Outcome::TimedOut, Stage::WaitingDeviceAck, Some(Reason::Timeout), off()),
        ),
        (
            "timed_out, no report",
            Role::Lock,
            settled(Outcome::TimedOut, Stage::WaitingDeviceReport, Some(Reason::Timeout), None),
        ),
        (
            "timed_out, unreadable",
            Role::Blind,
            settled(Outcome::TimedOut, Stage::WaitingDeviceReport, Some(Reason::UnreadableReport), None),
        ),
        (
            "interrupted, device",
            Role::Light,
            settled(Outcome::Interrupted, Stage::WaitingDeviceReport, Some(Reason::DeviceRestarted), None),
        ),
        (
            "interrupted, hub",
            Role::Light,
            settled(Outcome::Interrupted, Stage::WaitingDeviceReport, Some(Reason::ActorRestarted), None),
        ),
        (
            "interrupted, connection",
            Role::Light,
            settled(Outcome::Interrupted, Stage::WaitingDeviceReport, Some(Reason::ConnectionLost), None),
        ),
        ("device_crashed", Role::Light, settled(Outcome::DeviceCrashed, Stage::WaitingDeviceReport, None, None)),
        ("cancelled", Role::Light, settled(Outcome::Cancelled, Stage::Queued, None, off())),
        ("removed", Role::Light, settled(Outcome::Removed, Stage::WaitingDeviceAck, None, off())),
        (
            "converged on receipt only",
            Role::Light,
            Settled { confirmed_by: Evidence::Received, ..settled(Outcome::Converged, Stage::Settled, None, None) },
        ),
    ];
    for (what, role, facts) in &cases {
        row(table, what, |lang| answer::operation(facts, &named(*role, lang), lang));
    }
    for outcome in [Outcome::Rejected, Outcome::Failed] {
        for reason in Reason::ALL {
            let facts = settled(outcome, Stage::WaitingDeviceAck, Some(*reason), off());
            row(table, &format!("{outcome}, {reason}"), |lang| {
                answer::operation(&facts, &named(Role::Pump, lang), lang)
            });
        }
    }
}

/// Numbers, modes and actions, under names that say what is meant.
fn numbers_modes_actions(table: &mut String) {
    head(table, "Numbers, modes and actions");
    let heater = |lang, what: &str| Naming { what: answer::terms::property(what, lang), ..named(Role::Heater, lang) };
    let bell = |lang| named(Role::Other, lang).about_action("ring", Role::Other, lang);
    let number = |v: f64| Some(Value::Number(v));
    let evidence = [Evidence::Sensor, Evidence::Pin, Evidence::Firmware];
    for confirmed_by in evidence {
        let at = |value: Option<Value>| Settled {
            confirmed_by,
            wish: value.clone(),
            ..settled(Outcome::Converged, Stage::Settled, None, value)
        };
        let by = confirmed_by.as_str();
        row(table, &format!("converged, {by}, temperature 21.5"), |lang| {
            answer::operation(&at(number(21.5)), &heater(lang, "temperature"), lang)
        });
        row(table, &format!("converged, {by}, at the end of the range"), |lang| {
            let facts = Settled { limited: true, ..at(number(30.0)) };
            answer::operation(&facts, &heater(lang, "temperature"), lang)
        });
        row(table, &format!("converged, {by}, mode heat"), |lang| {
            answer::operation(
                &at(Some(Value::Text("heat".into()))),
                &Naming { unit: None, ..heater(lang, "mode") },
                lang,
            )
        });
        row(table, &format!("converged, {by}, action"), |lang| answer::operation(&at(None), &bell(lang), lang));
    }
    let cases = [
        ("already", settled(Outcome::Already, Stage::Settled, None, number(21.5))),
        ("timed_out", settled(Outcome::TimedOut, Stage::WaitingDeviceAck, Some(Reason::Timeout), number(19.0))),
        (
            "contradicted",
            settled(Outcome::Contradicted, Stage::WaitingReadBack, Some(Reason::ReadBackDiffers), number(19.0)),
        ),
        (
            "superseded",
            Settled {
                superseded_by: number(18.0),
                ..settled(Outcome::Superseded, Stage::WaitingDeviceAck, Some(Reason::Superseded), None)
            },
        ),
    ];
    for (what, facts) in cases {
        let confirmed_by = if facts.outcome == Outcome::Already { Evidence::Pin } else { Evidence::None };
        let facts = Settled { wish: number(21.5), confirmed_by, ..facts };
        row(table, &format!("{what}, temperature"), |lang| {
            answer::operation(&facts, &heater(lang, "temperature"), lang)
        });
    }
    for (what, outcome, stage) in [
        ("timed_out, action", Outcome::TimedOut, Stage::WaitingDeviceAck),
        ("interrupted, action", Outcome::Interrupted, Stage::WaitingDeviceReport),
        ("sent_unverified, action", Outcome::SentUnverified, Stage::WaitingDeviceReport),
    ] {
        let facts = Settled { wish: None, ..settled(outcome, stage, None, None) };
        row(table, what, |lang| answer::operation(&facts, &bell(lang), lang));
    }
    let missing = |parameter, allowed: &str| Refusal::MissingArgument { parameter, allowed: allowed.into() };
    for refusal in [
        missing("level", "16 to 30 °C"),
        missing("property", "temperature, mode"),
        missing("option", "cool, heat, auto"),
        missing("option", "red, warm_white"),
        missing("action", "stop, reboot"),
        missing("scene", "离家, 回家"),
        Refusal::InvalidValue {
            property: "mode".into(),
            error: ValueError::NotListed { sent: "warm".into(), allowed: vec!["cool".into(), "heat".into()] },
        },
        Refusal::UnknownProperty { asked: "volume".into(), known: vec!["temperature".into()] },
    ] {
        let what = if matches!(&refusal, Refusal::MissingArgument { parameter: "level", .. }) {
            "temperature"
        } else {
            "mode"
        };
        row(table, refusal.word().as_str(), |lang| answer::refusal(&refusal, Some(&heater(lang, what)), lang));
    }
}

/// Several at once.
fn togethers(table: &mut String) {
    head(table, "Groups and scenes");
    let done = || Settled {
        confirmed_by: Evidence::Pin,
        ..settled(Outcome::Converged, Stage::Settled, None, Some(Value::Bool(true)))
    };
    let silent = || settled(Outcome::TimedOut, Stage::WaitingDeviceAck, Some(Reason::Timeout), None);
    let stuck = || settled(Outcome::Failed, Stage::WaitingDeviceReport, Some(Reason::Stuck), None);
    let moving = || settled(Outcome::Working, Stage::WaitingDeviceReport, None, None);
    let gone = || Reply::Refused(Refusal::Offline { last_heard: None });
    let told = |settled: Settled| Reply::Settled(Box::new(settled));
    let cases = vec![
        ("all confirmed", false, vec![(told(done()), true), (told(done()), true)]),
        ("a scene, all confirmed", true, vec![(told(done()), true), (told(done()), true), (told(done()), true)]),
        ("a scene, without an optional one", true, vec![(told(done()), true), (told(silent()), false)]),
        (
            "one silent",
            true,
            vec![
                (told(done()), true),
                (told(done()), true),
                (told(done()), true),
                (told(done()), true),
                (told(silent()), true),
            ],
        ),
        (
            "one of each",
            false,
            vec![(told(done()), true), (told(silent()), true), (told(stuck()), true), (gone(), true)],
        ),
        ("none: moving", false, vec![(told(moving()), true), (told(silent()), true)]),
        ("none: not known", false, vec![(told(silent()), true), (told(stuck()), true)]),
        ("none: failed", false, vec![(told(stuck()), true), (gone(), true)]),
        ("none: all offline", true, vec![(gone(), true), (gone(), true), (gone(), true)]),
    ];
    for (what, is_scene, members) in &cases {
        row(table, what, |lang| {
            let roles = [Role::Light, Role::Fan, Role::Blind, Role::Pump, Role::Socket];
            let members: Vec<MemberReply> = members
                .iter()
                .zip(roles)
                .map(|((reply, required), role)| MemberReply {
                    naming: named(role, lang),
                    required: *required,
                    reply: reply.clone(),
                })
                .collect();
            let name = match (*is_scene, lang) {
                (true, Lang::En) => "coming home",
                (true, Lang::Zh) => "回家",
                (false, Lang::En) => "living room lights",
                (false, Lang::Zh) => "客厅的灯",
            };
            answer::together(name, *is_scene, &members, lang)
        });
    }
}

fn questions(table: &mut String) {
    use truetwin::answer::{Asking, Wanted};
    head(table, "Questions before something that can do harm");
    let (yes, no) = (|| Wanted::To(Value::Bool(true)), || Wanted::To(Value::Bool(false)));
    let cases = [
        ("unlock", vec![(Role::Lock, no())], None, false, false),
        ("open", vec![(Role::Door, yes())], None, false, false),
        ("close", vec![(Role::Door, no())], None, false, false),
        ("on", vec![(Role::Heater, yes())], None, false, false),
        ("warmer", vec![(Role::Heater, Wanted::To(Value::Number(22.5)))], None, false, false),
        ("warmer by", vec![(Role::Heater, Wanted::By(1.0))], None, false, false),
        ("an action", vec![(Role::Door, Wanted::Action)], None, false, false),
        ("spoken code", vec![(Role::Lock, no())], None, true, false),
        ("press", vec![(Role::Door, yes())], None, false, true),
        ("press and spoken code", vec![(Role::Door, yes())], None, true, true),
        ("a scene with one", vec![(Role::Lock, no())], Some(true), false, false),
        ("a scene with two", vec![(Role::Lock, no()), (Role::Door, yes())], Some(true), false, false),
        ("a group", vec![(Role::Door, yes()), (Role::Door, yes())], Some(false), false, false),
    ];
    for (what, things, whole, spoken, pressed) in cases {
        row(table, what, |lang| {
            let zh = lang == Lang::Zh;
            let asking = Asking {
                things: things.iter().map(|(role, wanted)| (named(*role, lang), wanted.clone())).collect(),
                whole: whole.map(|is_scene| {
                    let name = match (is_scene, zh) {
                        (true, true) => "回家",
                        (true, false) => "coming home",
                        (false, true) => "所有的门",
                        (false, false) => "all doors",
                    };
                    (name.to_owned(), is_scene)
                }),
                spoken,
                buttons: pressed.then(|| if zh { "门铃" } else { "bell" }.to_owned()).into_iter().collect(),
                not_pressed: false,
                code: Some("4f1c00aa".to_owned()),
                open_for: Duration::from_secs(60),
            };
            answer::question(&asking, lang)
        });
    }
}

fn refusals(table: &mut String) {
    head(table, "Refusals: nothing was begun");
    let names = |names: &[&str]| names.iter().map(|n| (*n).to_owned()).collect::<Vec<_>>();
    let range = |min, max| Refusal::InvalidValue {
        property: "target".into(),
        error: ValueError::OutOfRange { sent: 50.0, min, max },
    };
    let known = [
        (Refusal::UnknownDevice { asked: "灯".into(), near: names(&["书房台灯"]) }, Role::Light),
        (Refusal::UnknownDevice { asked: "灯".into(), near: Vec::new() }, Role::Light),
        (
            Refusal::AmbiguousName {
                asked: "灯".into(), candidates: names(&["灯（客厅）", "灯带（客厅）"])
            },
            Role::Light,
        ),
        (Refusal::UnknownProperty { asked: "x".into(), known: vec!["power".into()] }, Role::Light),
        (Refusal::MissingArgument { parameter: "device", allowed: "客厅灯".into() }, Role::Light),
        (Refusal::MissingArgument { parameter: "to", allowed: "on, off".into() }, Role::Light),
        (
            Refusal::InvalidArgument { parameter: "to", sent: "on".into(), allowed: "locked, unlocked".into() },
            Role::Lock,
        ),
        (Refusal::InvalidArgument { parameter: "to", sent: "on".into(), allowed: "open, closed".into() }, Role::Blind),
        (
            Refusal::InvalidArgument { parameter: "room", sent: "attic".into(), allowed: "客厅, 书房".into() },
            Role::Light,
        ),
        (Refusal::InvalidArgument { parameter: "fresh", sent: "maybe".into(), allowed: "yes, no".into() }, Role::Light),
        (Refusal::UnknownArgument { parameter: "x".into(), allowed: vec!["device", "to"] }, Role::Light),
        (range(16.0, 30.0), Role::Heater),
        (range(16.0, f64::MAX), Role::Heater),
        (range(f64::MIN, 30.0), Role::Heater),
        (
            Refusal::InvalidValue {
                property: "target".into(),
                error: ValueError::OffStep { sent: 16.3, step: 0.5, min: 16.0 },
            },
            Role::Heater,
        ),
        (Refusal::Forbidden { property: "motion".into() }, Role::Sensor),
        (Refusal::ActsOnly { property: "door".into(), actions: vec!["pulse".into()] }, Role::Door),
        (Refusal::Offline { last_heard: Some(Duration::from_secs(720)) }, Role::Light),
        (Refusal::Offline { last_heard: None }, Role::Light),
        (Refusal::CodeWrong { left: 2 }, Role::Door),
        (Refusal::CodeExpired, Role::Door),
        (Refusal::CodeTooEarly, Role::Door),
        (Refusal::LockedOut { left: Duration::from_secs(300) }, Role::Lock),
        (Refusal::Declined, Role::Door),
        (Refusal::NotAccepted { property: "bolt".into() }, Role::Lock),
        (Refusal::VerifierOffline { device: DeviceId::new("meter").ok() }, Role::Socket),
        (Refusal::StateUnknown { property: "power".into() }, Role::Light),
        (Refusal::HubJustStarted, Role::Light),
        (Refusal::QueueFull { limit: 8 }, Role::Light),
        (Refusal::DeadlineTooShort { needed: Duration::from_secs(3) }, Role::Light),
        (Refusal::BrokerDown, Role::Light),
        (Refusal::JournalDown, Role::Heater),
        (Refusal::Quarantined, Role::Light),
        (Refusal::ShuttingDown, Role::Light),
    ];
    for (refusal, role) in &known {
        row(table, refusal.word().as_str(), |lang| answer::refusal(refusal, Some(&named(*role, lang)), lang));
    }
    table.push_str("\n## Refusals without facts, also those that nothing raises yet\n\n| what | result | 中文 | English |\n|---|---|---|---|\n");
    for word in RefusalWord::ALL {
        let say = |lang| answer::refusal_word(*word, Some(&named(Role::Door, lang)), lang);
        let (result, _) = answer::of_refusal(*word);
        writeln!(table, "| {word} | {} | {} | {} |", result.as_str(), say(Lang::Zh), say(Lang::En))
            .expect("a string takes everything");
    }
}

fn reads(table: &mut String) {
    head(table, "Reads");
    let thermometer = Description {
        properties: vec![Property {
            kind: Kind::Number,
            unit: Some("°C".into()),
            settable: false,
            ..switch("temperature", Role::Sensor)
        }],
        ..Description::default()
    };
    let lamp = Description { properties: vec![switch("power", Role::Light)], ..Description::default() };
    let report = |property: &str, value: Option<Value>, age: u64, trust: Trust, presence: Presence, asked_now: bool| {
        StateReport {
            device: DeviceId::new("lamp-1").expect("an id"),
            presence,
            last_heard: Some(Duration::from_secs(age)),
            readings: value
                .map(|value| {
                    (property.into(), Reading { value, evidence: Evidence::Pin, age: Duration::from_secs(age), trust })
                })
                .into_iter()
                .collect(),
            moving: Vec::new(),
            reverted: Vec::new(),
            held: Vec::new(),
            amended: Vec::new(),
            asked_now,
        }
    };
    let on = || Some(Value::Bool(true));
    let (online, offline) = (Presence::Online, Presence::Offline);
    let cases = [
        ("fresh, asked", &lamp, report("power", on(), 0, Trust::Now, online, true), Role::Light),
        ("fresh, told", &lamp, report("power", on(), 12, Trust::Now, online, false), Role::Light),
        (
            "fresh, number",
            &thermometer,
            report("temperature", Some(Value::Number(21.5)), 0, Trust::Now, online, true),
            Role::Sensor,
        ),
        ("old", &lamp, report("power", on(), 180, Trust::Old, online, false), Role::Light),
        ("old, offline", &lamp, report("power", on(), 7300, Trust::Old, offline, false), Role::Light),
        ("never heard", &lamp, report("power", None, 0, Trust::Unknown, online, false), Role::Light),
        ("never heard, offline", &lamp, report("power", None, 0, Trust::Unknown, offline, false), Role::Light),
        (
            "moving",
            &lamp,
            StateReport { moving: vec!["power".into()], ..report("power", on(), 0, Trust::Now, online, true) },
            Role::Light,
        ),
        (
            "reverted",
            &lamp,
            StateReport { reverted: vec!["power".into()], ..report("power", on(), 0, Trust::Now, online, true) },
            Role::Light,
        ),
    ];
    for state in HeldState::ALL {
        let held = HeldWish {
            property: "temperature".into(),
            value: Value::Number(22.0),
            state: *state,
            reason: None,
            valid_for: None,
        };
        let report = StateReport {
            held: vec![held],
            ..report("temperature", Some(Value::Number(19.0)), 0, Trust::Now, online, true)
        };
        row(table, &format!("held, {}", state.as_str()), |lang| {
            answer::state(&report, Some(&thermometer), &named(Role::Heater, lang), lang)
        });
    }
    for (what, description, report, role) in &cases {
        row(table, what, |lang| answer::state(report, Some(description), &named(*role, lang), lang));
    }
    let rows = |count: usize, lang| {
        (0..count).map(|_| Row::new(&named(Role::Light, lang), None, true, None, Some(&lamp))).collect::<Vec<_>>()
    };
    row(table, "list of three", |lang| answer::list(rows(3, lang), 0, true, lang));
    row(table, "list of eight and five more", |lang| answer::list(rows(8, lang), 5, true, lang));
    row(table, "nothing found", |lang| answer::list(Vec::new(), 0, true, lang));
    row(table, "no devices", |lang| answer::list(Vec::new(), 0, false, lang));
    row(table, "ping", |lang| answer::pong("truetwin", lang));
    row(table, "no operation of a device", |lang| answer::nothing_known(None, Some(&named(Role::Light, lang)), lang));
    row(table, "no operation of the caller", |lang| answer::nothing_known(None, None, lang));
    row(table, "the hub failed", answer::internal);
    row(table, "the hub is not there", answer::no_hub);
}
