//! Without devices: catalogue, names, parsing.

use std::sync::Arc;

use proptest::prelude::*;
use serde_json::{Map, Value as Json, json};
use truetwin::{
    authz::{Policy, Right, Scope, Selection},
    fleet::Card,
    mcp::{House, Request, Tool, parse, tool_list},
    names::{Label, Lang, Member, Name, Part, Scene},
    property::{Action, Class, Description, DeviceId, Evidence, Kind, Property, PropertyName, Role, Terms, Value},
    twin::words::Presence,
};

const NAMES: &[(&str, &str)] = &[("lamp", "灯"), ("strip", "灯带"), ("kettle", "水壶"), ("study lights", "书房的灯")];
const ROOMS: &[(&str, &str)] = &[("study", "书房"), ("hall", "门厅")];
const IDS: &[&str] = &["a", "b", "board", "c", "d", "study"];
const WORDS: &[&str] = &[
    "lamp",
    "灯",
    "strip",
    "灯带",
    "kettle",
    "水壶",
    "study",
    "书房",
    "hall",
    "门厅",
    "a",
    "b",
    "board",
    "c",
    "d",
    "board.r1",
    "board.r2",
    "a.power",
    "all lights",
    "所有的灯",
    "study lights",
    "书房的灯",
    "the light",
    "lamp (a)",
    "strip (study)",
    "灯（b）",
    "kitchen lamp",
    "reading lamp",
    "阅读灯",
    "board r1",
    "板第2路",
    "evening",
    "away",
    "*",
    "nothing",
    "",
];

fn label((en, zh): (&str, &str)) -> Label {
    Label { en: en.to_owned(), zh: zh.to_owned() }
}

fn property(name: &str, role: Role, kind: Kind, settable: bool) -> Property {
    let numeric = matches!(kind, Kind::Integer | Kind::Number);
    Property {
        name: name.into(),
        role,
        kind,
        unit: None,
        min: numeric.then_some(0.0),
        max: numeric.then_some(100.0),
        step: None,
        tolerance: None,
        values: if kind == Kind::Enum { vec!["eco".into(), "boost".into()] } else { Vec::new() },
        class: Class::Momentary,
        feedback: Evidence::Pin,
        expected_ms: 300,
        stable_ms: 200,
        min_interval_ms: 0,
        settable,
        repeatable: true,
        terms: Terms::default(),
    }
}

/// What a device of one of eight sorts has; `None`: it has not greeted.
fn sort(which: usize) -> Option<Vec<Property>> {
    let light = |name: &str| property(name, Role::Light, Kind::Bool, true);
    Some(match which {
        0 | 1 => vec![light("power")],
        2 => vec![light("power"), property("brightness", Role::Light, Kind::Integer, true)],
        3 => vec![property("relay", Role::Socket, Kind::Bool, true), property("mode", Role::Socket, Kind::Enum, true)],
        4 => vec![property("position", Role::Blind, Kind::Integer, true)],
        5 => vec![property("lux", Role::Sensor, Kind::Number, false)],
        6 => vec![light("r1"), light("r2"), property("fan", Role::Fan, Kind::Bool, true)],
        _ => return None,
    })
}

fn card(id: &str) -> impl Strategy<Value = Card> + use<> {
    let id = DeviceId::new(id).unwrap();
    let room = || prop::option::of(prop::sample::select(ROOMS).prop_map(label));
    let name = prop::option::of(prop::sample::select(NAMES).prop_map(label));
    let part = prop::option::of((
        prop::sample::select(&["r1", "r2", "power"][..]),
        prop::option::of(Just(("reading lamp", "阅读灯"))),
        room(),
    ));
    (0..8_usize, name, room(), part, any::<bool>()).prop_map(move |(which, called, room, part, acts)| {
        let called = called.unwrap_or_else(|| Label::same(id.as_str()));
        let mut name = Name::new(id.clone(), called, room);
        name.parts = part
            .map(|(property, called, room)| Part { property: property.into(), label: called.map(label), room })
            .into_iter()
            .collect();
        let action = |name: &str| Action {
            name: name.into(),
            role: Role::Other,
            feedback: Evidence::Firmware,
            expected_ms: 300,
            repeatable: false,
            confirmation: truetwin::property::Confirmation::default(),
        };
        let actions = if acts { vec![action("reboot")] } else { Vec::new() };
        let description = sort(which).map(|properties| Description { properties, actions, ..Description::default() });
        Card { name, presence: Presence::Online, description: description.map(Arc::new), last_heard: None }
    })
}

fn cards() -> impl Strategy<Value = Vec<Card>> {
    let each: Vec<_> = IDS.iter().map(|id| prop::option::weighted(0.8, card(id))).collect();
    each.prop_map(|cards| cards.into_iter().flatten().collect())
}

fn scenes() -> impl Strategy<Value = Vec<Scene>> {
    let member = (prop::sample::select(IDS), prop::sample::select(&["power", "r1", "relay"][..])).prop_map(
        |(device, property)| {
            let (device, property): (DeviceId, PropertyName) = (DeviceId::new(device).unwrap(), property.into());
            Member { device, property, value: Value::Bool(true), required: true }
        },
    );
    let scene = |name: (&'static str, &'static str)| {
        prop::collection::vec(member.clone(), 1..3).prop_map(move |members| Scene { label: label(name), members })
    };
    (scene(("evening", "晚上")), scene(("away", "离家"))).prop_map(|(one, other)| vec![one, other])
}

fn policy() -> impl Strategy<Value = Policy> {
    let selection = || {
        prop_oneof![
            9 => prop::collection::vec(prop::sample::select(WORDS).prop_map(str::to_owned), 0..3).prop_map(Selection::Of),
            1 => Just(Selection::All),
        ]
    };
    let here = prop::option::of(prop::sample::select(&["study", "门厅", "attic"][..]).prop_map(str::to_owned));
    (selection(), selection(), any::<bool>(), here).prop_map(|(read, write, zh, here)| Policy {
        scope: Scope { read, write },
        lang: if zh { Lang::Zh } else { Lang::En },
        here,
        ..Policy::default()
    })
}

fn request() -> impl Strategy<Value = (Tool, Map<String, Json>)> {
    let word = || prop::sample::select(WORDS).prop_map(|word| json!(word));
    let value = prop_oneof![
        3 => word(),
        2 => prop::sample::select(&["on", "off", "open", "closed", "eco", "reboot", "power", "r1", "fan", "brightness", "mode"][..]).prop_map(|word| json!(word)),
        1 => any::<i8>().prop_map(|number| json!(number)),
    ];
    let key = prop::sample::select(
        &["device", "to", "room", "query", "level", "property", "option", "action", "scene", "operation", "how"][..],
    );
    let rest = prop::collection::vec((key, value), 0..4);
    let to = prop::option::weighted(0.8, prop::sample::select(&["on", "off", "open", "closed"][..]));
    (prop::sample::select(Tool::ALL), prop::option::weighted(0.9, word()), to, rest).prop_map(
        |(tool, device, to, rest)| {
            let mut arguments: Map<String, Json> =
                rest.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
            arguments.extend(device.map(|device| ("device".to_owned(), device)));
            arguments.extend(to.filter(|_| tool == Tool::SwitchDevice).map(|to| ("to".to_owned(), json!(to))));
            // Most mistakes are of another sort than a parameter that the tool does not have.
            arguments.retain(|key, _| tool.parameters().contains(&key.as_str()));
            (tool, arguments)
        },
    )
}

/// Whether anything of a device is seen.
fn sees_any(house: &House, card: &Card) -> bool {
    house.entries().iter().any(|entry| entry.thing.device == card.name.device)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    /// What is seen, how it is called, and what words mean is as if the rest of the home were not there.
    #[test]
    fn what_is_unseen_changes_nothing(
        cards in cards(),
        scenes in scenes(),
        policy in policy(),
        requests in prop::collection::vec(request(), 1..12),
    ) {
        let scenes: Arc<[Scene]> = scenes.into();
        let house = House::of(&cards, scenes.clone(), &policy);
        let left: Vec<Card> = cards.iter().filter(|card| sees_any(&house, card)).cloned().collect();
        // A selector goes by the home as it is, so only the names must be looked up anew: grant the same rights by id.
        let rights = house.rights().clone();
        let by_id = |wanted: Right| -> Vec<String> {
            let mut all = Vec::new();
            for card in &left {
                let device = &card.name.device;
                if rights.of(device, None) == wanted {
                    all.push(device.to_string());
                }
                let described = card.description.iter().flat_map(|d| d.properties.iter().map(|p| p.name.clone()));
                let named = card.name.parts.iter().map(|part| part.property.clone());
                // Also what the device does not have: it may be granted, and a scene may be of it.
                let others = ["power", "r1", "r2", "relay"].map(PropertyName::from);
                for property in described.chain(named).chain(others) {
                    if rights.of(device, Some(&property)) == wanted {
                        all.push(format!("{device}.{property}"));
                    }
                }
            }
            all
        };
        // Only where ids say the same: a device that is seen without one of its parts cannot be granted so.
        let scope = Scope { read: Selection::Of(by_id(Right::Read)), write: Selection::Of(by_id(Right::Write)) };
        let same = scope.rights(left.iter().map(|card| (&card.name, card.description.as_deref())));
        let all_the_same = left.iter().all(|card| {
            let device = &card.name.device;
            let properties = card.description.iter().flat_map(|d| &d.properties);
            same.of(device, None) == rights.of(device, None)
                && properties.map(|p| &p.name).chain(card.name.parts.iter().map(|part| &part.property)).all(|p| same.of(device, Some(p)) == rights.of(device, Some(p)))
        });
        prop_assume!(all_the_same || rights.is_everything());
        let scope = if rights.is_everything() { Scope::everything() } else { scope };
        let alone = House::of(&left, scenes, &Policy { scope, ..policy.clone() });

        prop_assert_eq!(tool_list(&house), tool_list(&alone));
        prop_assert_eq!(house.rooms(), alone.rooms());
        for (tool, arguments) in &requests {
            let (one, other) = (parse(*tool, arguments, &house), parse(*tool, arguments, &alone));
            prop_assert_eq!(one, other, "{:?} {:?}", tool, arguments);
        }
    }

    /// Whatever is asked, no wish is on anything that may not be moved, and nothing is looked at that may not be.
    #[test]
    fn no_request_goes_beyond_its_callers_rights(
        cards in cards(),
        scenes in scenes(),
        policy in policy(),
        requests in prop::collection::vec(request(), 1..12),
    ) {
        let house = House::of(&cards, scenes.into(), &policy);
        let rights = house.rights();
        for (tool, arguments) in &requests {
            match parse(*tool, arguments, &house) {
                Ok(Request::Set { device, wish }) => prop_assert!(rights.set(&device, wish).is_ok()),
                Ok(Request::Run { device, action }) => prop_assert!(rights.run(&device, action).is_ok()),
                Ok(Request::Together(together)) => {
                    for part in together.members {
                        prop_assert!(rights.set(&part.device, part.wish).is_ok());
                    }
                }
                Ok(Request::State { thing, .. }) => prop_assert!(rights.look(&thing).is_ok()),
                Ok(Request::Unheard { thing }) => prop_assert_eq!(rights.to(&thing), Right::Write),
                Ok(Request::Check { thing: Some(thing), .. }) => prop_assert!(rights.look(&thing).is_ok()),
                Ok(_) => {}
                Err(refused) => {
                    if let Some((device, property)) = refused.about {
                        prop_assert!(rights.of(&device, property.as_deref()) > Right::None);
                    }
                }
            }
        }
        for group in house.groups() {
            for at in &group.members {
                prop_assert!(house.entries()[*at].writable || rights.to(&house.entries()[*at].thing) > Right::None);
            }
        }
        for scene in house.scenes() {
            prop_assert!(scene.members.iter().all(|m| rights.of(&m.device, Some(&m.property)) == Right::Write));
        }
    }

    /// Names that a relay rewrites (`re.sub(r"[^a-zA-Z0-9_\-\u4e00-\u9fff]", "_", name)`) stay those of different tools.
    #[test]
    fn names_of_tools_are_unique_after_a_relays_rewriting(cards in cards(), policy in policy()) {
        let rewritten = |name: &str| -> String {
            let kept = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-' || ('\u{4e00}'..='\u{9fff}').contains(&c);
            name.chars().map(|c| if kept(c) { c } else { '_' }).collect()
        };
        let tools = tool_list(&House::of(&cards, Arc::default(), &policy));
        let mut names: Vec<String> = tools.iter().map(|tool| rewritten(&tool.name)).collect();
        names.sort();
        let count = names.len();
        names.dedup();
        prop_assert_eq!(names.len(), count);
    }
}
