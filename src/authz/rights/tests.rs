use crate::{
    names::{Label, Part},
    property::{Class, Evidence, Kind, Property, Role, Terms},
};

use super::*;

fn label(en: &str, zh: &str) -> Label {
    Label { en: en.into(), zh: zh.into() }
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

fn id(id: &str) -> DeviceId {
    DeviceId::new(id).expect("an id")
}

type Home = Vec<(Name, Option<Description>)>;

/// A lamp and a socket in the study, a lamp in the hall, a board in the study of whose relays one is a lamp in the hall, and
/// something that has not greeted.
fn home() -> Home {
    let study = || Some(label("study", "书房"));
    let hall = || Some(label("hall", "门厅"));
    let described = |properties: Vec<Property>| Some(Description { properties, ..Description::default() });
    let name = |device: &str, en: &str, zh: &str, room| Name::new(id(device), label(en, zh), room);
    let mut board = name("board", "board", "板子", study());
    board.parts = vec![Part { property: "r2".into(), label: Some(label("corridor lamp", "走廊灯")), room: hall() }];
    vec![
        (board, described(vec![switch("r1", Role::Light), switch("r2", Role::Light), switch("fan", Role::Fan)])),
        (name("lamp-1", "lamp", "灯", study()), described(vec![switch("power", Role::Light)])),
        (name("lamp-2", "lamp", "灯", hall()), described(vec![switch("power", Role::Light)])),
        (name("new-1", "new thing", "新的", hall()), None),
        (name("socket-1", "kettle", "水壶", study()), described(vec![switch("relay", Role::Socket)])),
    ]
}

fn rights(scope: &Scope, home: &Home) -> Rights {
    scope.rights(home.iter().map(|(name, description)| (name, description.as_ref())))
}

/// What a selector selects: devices as wholes, and properties.
fn selected(selector: &str) -> Vec<String> {
    let scope = Scope { read: Selection::Of(Vec::new()), write: Selection::Of(vec![selector.to_owned()]) };
    let home = home();
    let rights = rights(&scope, &home);
    let mut all = Vec::new();
    for (name, description) in &home {
        let device = &name.device;
        if rights.of(device, None) == Right::Write {
            all.push(device.to_string());
        }
        for property in description.iter().flat_map(|d| &d.properties) {
            if rights.of(device, Some(&property.name)) == Right::Write {
                all.push(format!("{device}.{}", property.name));
            }
        }
    }
    all
}

#[test]
fn a_selector_is_an_id_a_name_a_room_a_group_and_else_nothing() {
    let board = ["board", "board.r1", "board.r2", "board.fan"];
    let cases: &[(&[&str], &[&str])] = &[
        (&["lamp-1", "study lamp", "书房的灯 ", "灯（书房）"], &["lamp-1", "lamp-1.power"]),
        (&["lamp", "灯"], &["lamp-1", "lamp-1.power", "lamp-2", "lamp-2.power"]),
        (&["board", "板子", "Board (study)"], &board),
        (&["board.r2", "corridor lamp", "门厅走廊灯"], &["board.r2"]),
        (&["board.fan"], &["board.fan"]),
        (&["new-1", "新的"], &["new-1"]),
        (
            &["study", "书房"],
            &["board", "board.r1", "board.fan", "lamp-1", "lamp-1.power", "socket-1", "socket-1.relay"],
        ),
        (&["hall"], &["board.r2", "lamp-2", "lamp-2.power", "new-1"]),
        (&["hall lights", "门厅所有的灯"], &["board.r2", "lamp-2", "lamp-2.power"]),
        (
            &["all lights", "all the lights in the house", "家里的灯"],
            &["board.r1", "board.r2", "lamp-1", "lamp-1.power", "lamp-2", "lamp-2.power"],
        ),
        (&["", "LAMP-1", "board.", "cellar", "lamp-11", "study lamps lamps"], &[]),
    ];
    for (selectors, wanted) in cases {
        for selector in *selectors {
            let mut wanted = wanted.to_vec();
            if *selector == "书房的灯 " {
                // The lamp of that name there, and what can be called so as a group.
                wanted.insert(0, "board.r1");
            }
            assert_eq!(selected(selector), wanted, "{selector:?}");
        }
    }
}

#[test]
fn an_owners_own_name_goes_before_a_room_and_a_group() {
    let mut home = home();
    home[4].0.label = label("hall", "所有的灯");
    let scope = |text: &str| Scope { read: Selection::Of(vec![text.into()]), write: Selection::Of(Vec::new()) };
    for selector in ["hall", "所有的灯"] {
        let rights = rights(&scope(selector), &home);
        assert_eq!(rights.of(&id("socket-1"), None), Right::Read);
        assert_eq!(rights.of(&id("lamp-2"), None), Right::None, "{selector}");
    }
}

#[test]
fn write_goes_before_read_and_what_is_not_selected_is_not_there() {
    let home = home();
    let scope = Scope {
        read: Selection::Of(vec!["study".into(), "nowhere".into(), "all fans".into()]),
        write: Selection::Of(vec!["lamp-1".into(), "typo".into()]),
    };
    let rights = rights(&scope, &home);
    assert_eq!(rights.of(&id("lamp-1"), Some("power")), Right::Write);
    assert_eq!(rights.of(&id("socket-1"), Some("relay")), Right::Read);
    assert_eq!(rights.of(&id("lamp-2"), None), Right::None);
    assert_eq!(rights.of(&id("never-seen"), None), Right::None);
    assert_eq!(rights.unmatched(), ["nowhere", "typo"], "a group may come yet");
    let board = home[0].1.as_ref().expect("it has greeted");
    let reduced = rights.reduced(&id("board"), board).expect("less than all");
    assert_eq!(
        reduced.properties.iter().map(|p| (&*p.name, p.settable)).collect::<Vec<_>>(),
        [("r1", false), ("fan", false)]
    );
}

#[test]
fn all_is_all_also_what_comes_later_and_read_only_is_all_to_be_read() {
    let home = home();
    let all = rights(&Scope::everything(), &home);
    assert!(all.is_everything() && all.of(&id("never-seen"), Some("x")) == Right::Write);
    let look = rights(&Scope { read: Selection::All, write: Selection::Of(vec!["lamp-1".into()]) }, &home);
    assert_eq!(look.of(&id("never-seen"), None), Right::Read);
    assert_eq!(look.of(&id("lamp-1"), None), Right::Write);
    assert!(look.set(&id("lamp-2"), crate::twin::wish::Wish::toggle("power")).is_err());
}
