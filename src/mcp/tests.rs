use std::{
    pin::pin,
    sync::atomic::{AtomicUsize, Ordering},
};

use proptest::prelude::*;
use rmcp::model::Implementation;
use serde_json::{Value as Json, json};

use super::{
    call::caught,
    handler::{client_name, result},
    *,
};
use crate::{
    answer,
    fleet::Card,
    names::{Label, Lang, Name, Part, Thing},
    property::{Class, Description, DeviceId, Evidence, Kind, Property, Role, Terms, Value},
    twin::{
        wish::Wish,
        words::{OpId, Presence, Refusal, RefusalWord},
    },
};

mod things;

fn card(id: &str, en: &str, zh: &str, room: Option<(&str, &str)>, role: Role, settable: bool) -> Card {
    let property = Property {
        name: "power".into(),
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
        settable,
        repeatable: true,
        terms: Terms::default(),
    };
    let label = |en: &str, zh: &str| Label { en: en.into(), zh: zh.into() };
    Card {
        name: Name::new(DeviceId::new(id).unwrap(), label(en, zh), room.map(|(e, z)| label(e, z))),
        presence: Presence::Online,
        description: Some(Arc::new(Description { properties: vec![property], ..Description::default() })),
        last_heard: None,
    }
}

fn house(lang: Lang) -> House {
    let study = Some(("study", "书房"));
    let hall = Some(("hall", "门厅"));
    let cards = [
        card("blind-1", "blind", "窗帘", study, Role::Blind, true),
        card("lamp-1", "lamp", "灯", study, Role::Light, true),
        card("lamp-2", "lamp", "灯", hall, Role::Light, true),
        card("lock-1", "front door lock", "大门锁", hall, Role::Lock, true),
        Card { description: None, ..card("new-1", "new thing", "新的", hall, Role::Light, true) },
        card("pir-1", "motion sensor", "感应器", hall, Role::Sensor, false),
    ];
    House::new(&cards, Arc::default(), lang)
}

fn parsed(tool: Tool, arguments: Json) -> Result<Request, Refused> {
    parse(tool, arguments.as_object().unwrap(), &house(Lang::En))
}

fn refusal(tool: Tool, arguments: Json) -> Refusal {
    parsed(tool, arguments).unwrap_err().refusal
}

fn switched(device: &str, to: &str) -> (String, Value) {
    match parsed(Tool::SwitchDevice, json!({"device": device, "to": to})) {
        Ok(Request::Set { device, wish }) => (device.to_string(), wish.target.value().unwrap().clone()),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_device_goes_by_its_listed_name_its_id_and_both_languages() {
    for name in ["lamp (study)", "lamp-1", "书房灯", "study lamp", " STUDY LAMP "] {
        assert_eq!(switched(name, "on"), ("lamp-1".into(), Value::Bool(true)), "{name}");
    }
}

#[test]
fn words_go_by_role() {
    assert_eq!(switched("front door lock", "locked").1, Value::Bool(true));
    assert_eq!(switched("front door lock", "Unlocked").1, Value::Bool(false));
    assert_eq!(switched("blind", "open").1, Value::Bool(true));
    assert_eq!(switched("blind", "closed").1, Value::Bool(false));
    let wrong = |device: &str, to: &str| refusal(Tool::SwitchDevice, json!({"device": device, "to": to}));
    let invalid = |sent: &str, allowed: &str| Refusal::InvalidArgument {
        parameter: "to",
        sent: sent.into(),
        allowed: allowed.into(),
    };
    assert_eq!(wrong("front door lock", "on"), invalid("on", "locked, unlocked"));
    assert_eq!(wrong("blind", "on"), invalid("on", "open, closed"));
    assert_eq!(wrong("lamp-1", "open"), invalid("open", "on, off"));
}

#[test]
fn each_mistake_is_named_with_what_is_allowed() {
    let switch = |arguments| refusal(Tool::SwitchDevice, arguments);
    assert_eq!(
        switch(json!({"device": "lamp-1", "to": true})),
        Refusal::InvalidArgument { parameter: "to", sent: "true".into(), allowed: "on, off".into() }
    );
    assert_eq!(
        switch(json!({"device": "lamp-1"})),
        Refusal::MissingArgument { parameter: "to", allowed: "on, off".into() }
    );
    let Refusal::InvalidArgument { parameter: "device", sent, allowed } = switch(json!({"device": 5, "to": "on"}))
    else {
        panic!("a number is no device")
    };
    assert_eq!((sent.as_str(), allowed.starts_with("blind, lamp (study), lamp (hall)")), ("5", true));
    assert!(matches!(switch(json!({"to": "on"})), Refusal::MissingArgument { parameter: "device", .. }));
    assert!(matches!(switch(json!({"device": "", "to": "on"})), Refusal::MissingArgument { parameter: "device", .. }));
    assert!(matches!(
        switch(json!({"device": null, "to": "on"})),
        Refusal::MissingArgument { parameter: "device", .. }
    ));
    assert_eq!(
        switch(json!({"device": "lamp-1", "to": "on", "brightness": 3})),
        Refusal::UnknownArgument { parameter: "brightness".into(), allowed: vec!["device", "to", "user_request"] }
    );
    assert_eq!(
        refusal(Tool::GetDeviceState, json!({"device": "lamp-1", "fresh": "maybe"})),
        Refusal::InvalidArgument { parameter: "fresh", sent: "maybe".into(), allowed: "yes, no".into() }
    );
    assert_eq!(
        refusal(Tool::FindDevices, json!({"room": "attic"})),
        Refusal::InvalidArgument { parameter: "room", sent: "attic".into(), allowed: "study, hall".into() }
    );
}

#[test]
fn s2_9_a_name_that_is_not_exactly_one_device_moves_nothing() {
    let lamp = refusal(Tool::SwitchDevice, json!({"device": "lamp", "to": "on"}));
    assert_eq!(
        lamp,
        Refusal::AmbiguousName { asked: "lamp".into(), candidates: vec!["lamp (study)".into(), "lamp (hall)".into()] }
    );
    let near = refusal(Tool::SwitchDevice, json!({"device": "front dor lock", "to": "locked"}));
    let Refusal::UnknownDevice { near, .. } = near else { panic!("{near:?}") };
    assert_eq!(near.first().map(String::as_str), Some("front door lock"));
}

#[test]
fn levels_options_and_actions_are_checked_against_the_device() {
    let base = card("ac", "air conditioner", "空调", None, Role::Heater, true);
    let power = base.description.as_ref().unwrap().properties[0].clone();
    let target = Property {
        name: "target".into(),
        kind: Kind::Number,
        unit: Some("°C".into()),
        min: Some(16.0),
        max: Some(30.0),
        step: Some(0.5),
        ..power.clone()
    };
    let mode =
        Property { name: "mode".into(), kind: Kind::Enum, values: vec!["cool".into(), "heat".into()], ..power.clone() };
    let colour = Property { name: "glow".into(), kind: Kind::Colour, ..power.clone() };
    let properties = vec![power, target, mode, colour];
    let cards = [Card { description: Some(Arc::new(Description { properties, ..Description::default() })), ..base }];
    let house = House::new(&cards, Arc::default(), Lang::En);
    let ask = |tool, arguments: Json| parse(tool, arguments.as_object().unwrap(), &house);
    let wish = |tool, arguments: Json| match ask(tool, arguments) {
        Ok(Request::Set { wish, .. }) => wish,
        other => panic!("{other:?}"),
    };
    let refusal = |tool, arguments: Json| ask(tool, arguments).unwrap_err().refusal;
    let (level, option) = (Tool::SetDeviceLevel, Tool::SetDeviceOption);
    assert_eq!(
        wish(level, json!({"device": "空调", "property": "target", "level": 22})),
        Wish::to("target", Value::Number(22.0))
    );
    assert_eq!(
        wish(level, json!({"device": "ac", "level": "21.5"})),
        Wish::to("target", Value::Number(21.5)),
        "the only one"
    );
    assert_eq!(wish(level, json!({"device": "ac", "level": 2, "how": "down_by"})), Wish::by("target", -2.0));
    assert!(matches!(refusal(level, json!({"device": "ac", "level": 35})), Refusal::InvalidValue { .. }));
    assert!(matches!(
        refusal(level, json!({"device": "ac", "level": "warm"})),
        Refusal::InvalidArgument { parameter: "level", .. }
    ));
    assert!(matches!(
        refusal(level, json!({"device": "ac", "level": -1, "how": "up_by"})),
        Refusal::InvalidArgument { .. }
    ));
    assert!(matches!(
        refusal(level, json!({"device": "ac", "property": "volume", "level": 1})),
        Refusal::UnknownProperty { .. }
    ));
    let missing = Refusal::MissingArgument { parameter: "level", allowed: "16 to 30 °C".into() };
    assert_eq!(refusal(level, json!({"device": "ac"})), missing);
    let heat = json!({"device": "ac", "property": "mode", "option": "HEAT"});
    assert_eq!(wish(option, heat), Wish::to("mode", Value::Text("heat".into())));
    let red = json!({"device": "ac", "property": "glow", "option": "red"});
    assert_eq!(wish(option, red), Wish::to("glow", Value::Text("#ff0000".into())));
    let dry = json!({"device": "ac", "property": "mode", "option": "dry"});
    assert!(matches!(refusal(option, dry), Refusal::InvalidValue { .. }));
    let which = Refusal::MissingArgument { parameter: "property", allowed: "mode, glow".into() };
    assert_eq!(refusal(option, json!({"device": "ac", "option": "heat"})), which);
    assert!(matches!(
        refusal(Tool::RunDeviceAction, json!({"device": "ac", "action": "stop"})),
        Refusal::UnknownProperty { .. }
    ));
}

#[test]
fn a_tool_that_sets_nothing_of_a_device_names_what_there_is_and_the_tool_for_it() {
    for (tool, arguments) in [
        (Tool::SetDeviceLevel, json!({"device": "lamp-1", "level": 40})),
        (Tool::SetDeviceLevel, json!({"device": "lamp-1", "property": "brightness", "level": 40})),
        (Tool::SetDeviceOption, json!({"device": "lamp-1", "option": "cosy"})),
    ] {
        for (lang, asks) in [(Lang::En, "Ask the user"), (Lang::Zh, "先问用户")] {
            let refused = parse(tool, arguments.as_object().unwrap(), &house(lang)).unwrap_err();
            let answer = answer::refusal(&refused.refusal, None, lang).structured;
            assert_eq!(
                (&answer["outcome"], &answer["allowed"]),
                (&json!("unknown_property"), &json!("power")),
                "{answer}"
            );
            let text = answer.to_string();
            assert!(text.contains("switch_device") && text.contains(asks), "{text}");
        }
    }
}

#[test]
fn what_a_voice_box_adds_on_its_own_is_ignored_silently() {
    let request = parsed(Tool::Ping, json!({"device_id": "x", "mac_address": "00:11"}));
    assert_eq!(request, Ok(Request::Ping));
    let request =
        parsed(Tool::SwitchDevice, json!({"device": "lamp-1", "to": "on", "user_request": "lamp on", "device_id": 5}));
    assert!(matches!(request, Ok(Request::Set { .. })));
}

#[test]
fn a_device_that_cannot_be_switched_is_forbidden_and_not_unknown() {
    let refused = parsed(Tool::SwitchDevice, json!({"device": "pir-1", "to": "on"})).unwrap_err();
    assert_eq!(refused.refusal.word(), RefusalWord::Forbidden);
    assert_eq!(refused.about, Some((DeviceId::new("pir-1").unwrap(), Some("power".into()))));
}

#[test]
fn a_device_that_has_not_greeted_yet_takes_any_state_word() {
    let device = DeviceId::new("new-1").unwrap();
    assert_eq!(
        parsed(Tool::SwitchDevice, json!({"device": "new thing", "to": "locked"})),
        Ok(Request::Unheard { thing: Thing::device(&device) })
    );
    assert!(matches!(
        refusal(Tool::SwitchDevice, json!({"device": "new thing", "to": "purple"})),
        Refusal::InvalidArgument { parameter: "to", .. }
    ));
}

#[test]
fn reads_take_what_their_schemas_say() {
    let lamp = DeviceId::new("lamp-1").unwrap();
    assert_eq!(
        parsed(Tool::GetDeviceState, json!({"device": "lamp-1", "fresh": "no"})),
        Ok(Request::State { thing: Thing::device(&lamp), fresh: false })
    );
    assert_eq!(
        parsed(Tool::GetDeviceState, json!({"device": "lamp-1"})),
        Ok(Request::State { thing: Thing::device(&lamp), fresh: true })
    );
    assert_eq!(
        parsed(Tool::CheckOperation, json!({"operation": "4f1c"})),
        Ok(Request::Check { operation: Some(OpId::new("4f1c")), thing: None })
    );
    assert_eq!(parsed(Tool::CheckOperation, json!({})), Ok(Request::Check { operation: None, thing: None }));
    assert_eq!(
        parsed(Tool::FindDevices, json!({"room": "书房", "query": "LAMP"})),
        Ok(Request::Find { room: Some("study".into()), query: Some("LAMP".into()) })
    );
}

#[test]
fn a_query_finds_in_either_language_and_in_rooms_and_ids() {
    let house = house(Lang::Zh);
    let found = |room: Option<&str>, query: &str| -> Vec<&str> {
        let query = Some(query).filter(|q| !q.is_empty());
        house.entries().iter().filter(|e| tools::matches(e, room, query)).map(|e| e.thing.device.as_str()).collect()
    };
    assert_eq!(found(None, "LAMP"), ["lamp-1", "lamp-2"]);
    assert_eq!(found(Some("书房"), "灯"), ["lamp-1"]);
    assert_eq!(found(None, "门厅"), ["lamp-2", "lock-1", "new-1", "pir-1"]);
    assert_eq!(found(Some("书房"), ""), ["blind-1", "lamp-1"]);
}

#[test]
fn the_caller_s_client_name_cannot_forge_another_caller() {
    let named = |name: &str| client_name(&Implementation::new(name, "1"));
    assert_eq!(named("a:b\nc"), "abc");
    assert_eq!(named(" "), "unknown");
    assert_eq!(named(&"x".repeat(500)).chars().count(), 32);
}

#[tokio::test]
async fn a_panic_in_a_tool_is_caught_and_the_caller_still_answered() {
    let before = AtomicUsize::new(0);
    let outcome: Option<()> = caught(pin!(async {
        before.fetch_add(1, Ordering::Relaxed);
        tokio::task::yield_now().await;
        panic!("on purpose: the test wants to see it caught");
    }))
    .await;
    assert_eq!((outcome, before.load(Ordering::Relaxed)), (None, 1));
    assert_eq!(caught(pin!(async { 7 })).await, Some(7));
    let answer = result(answer::internal(Lang::En));
    assert_eq!(answer.is_error, Some(true));
    assert_eq!(answer.structured_content.unwrap()["result"], "unconfirmed");
}

fn any_json() -> impl Strategy<Value = Json> {
    let leaf = prop_oneof![
        Just(Json::Null),
        any::<bool>().prop_map(Json::from),
        any::<i64>().prop_map(Json::from),
        ".{0,80}".prop_map(Json::from),
        proptest::sample::select(vec!["on", "lamp", "lamp-1", "yes", "study"]).prop_map(Json::from),
    ];
    leaf.prop_recursive(2, 8, 4, |inner| prop::collection::vec(inner, 0..3).prop_map(Json::from))
}

proptest! {
    #[test]
    fn no_arguments_whatever_panic_and_each_refusal_can_be_said(
        tool in proptest::sample::select(Tool::ALL.to_vec()),
        arguments in prop::collection::hash_map(
            prop_oneof![
                proptest::sample::select(vec!["device", "to", "room", "query", "fresh", "operation", "property", "level", "how", "option", "scene"]).prop_map(str::to_owned),
                ".{0,80}",
            ],
            any_json(),
            0..4,
        ),
        lang in proptest::sample::select(vec![Lang::En, Lang::Zh]),
    ) {
        let house = house(lang);
        let arguments = arguments.into_iter().collect();
        if let Err(Refused { refusal, about }) = parse(tool, &arguments, &house) {
            let naming = about.map(|(device, property)| house.naming(&device, property.as_deref()));
            let answer = answer::refusal(&refusal, naming.as_ref(), lang);
            prop_assert!(!answer.say.is_empty());
            prop_assert!(answer.structured.to_string().len() < 4096);
        }
    }
}
