//! What a name means: boards with several relays, groups, candidates.

use super::*;

/// A board with so many relays, all lamps.
fn board(relays: &[&str]) -> Card {
    let one = card("board", "board", "板子", Some(("hall", "门厅")), Role::Light, true);
    let relay = one.description.as_ref().unwrap().properties[0].clone();
    let properties = relays.iter().map(|name| Property { name: (*name).into(), ..relay.clone() }).collect();
    let labels = vec![("r1".into(), "porch lamp".into())];
    Card { description: Some(Arc::new(Description { properties, labels, ..Description::default() })), ..one }
}

fn switch_in(house: &House, device: &str) -> Result<Request, Refused> {
    parse(Tool::SwitchDevice, json!({"device": device, "to": "on"}).as_object().unwrap(), house)
}

#[test]
fn s2_9_a_board_with_several_relays_is_as_many_lamps() {
    let house = |card: Card| House::new(&[card], Arc::default(), Lang::En);
    let plain = house(board(&["r1", "r2"]));
    let Refusal::AmbiguousName { candidates, .. } = switch_in(&plain, "board").unwrap_err().refusal else {
        panic!("nobody can know which relay is meant")
    };
    assert_eq!(candidates, ["board r1", "board r2"]);
    let mut named = board(&["r1", "r2"]);
    let label = Label { en: "corridor lamp".into(), zh: "走廊灯".into() };
    named.name.parts = vec![Part { property: "r2".into(), label: Some(label), room: None }];
    named.name.proposals = true;
    let named = house(named);
    for (asked, property) in [
        ("corridor lamp", "r2"),
        ("门厅的走廊灯", "r2"),
        ("hall corridor lamp", "r2"),
        ("porch lamp", "r1"),
        ("board.r1", "r1"),
    ] {
        let Ok(Request::Set { wish, .. }) = switch_in(&named, asked) else { panic!("{asked}") };
        assert_eq!(&*wish.property, property, "{asked}");
    }
    let listed: Vec<&str> = named.listed().map(|e| e.shown.as_str()).collect();
    assert_eq!(listed, ["porch lamp", "corridor lamp"], "the board itself is nothing beside them");
    assert!(matches!(switch_in(&plain, "porch lamp"), Err(Refused { refusal: Refusal::UnknownDevice { .. }, .. })));
    let Ok(Request::Together(all)) = switch_in(&named, "all the lights in the hall") else { panic!("a group") };
    assert_eq!(all.members.len(), 2);
    assert_eq!(named.naming(&DeviceId::new("board").unwrap(), Some("r2")).spoken, "corridor lamp");
}

#[test]
fn s2_9_what_several_are_called_means_the_one_in_the_callers_room() {
    let (study, hall) = (Some(("study", "书房")), Some(("hall", "门厅")));
    let cards = [
        card("a", "strip", "灯带", study, Role::Light, true),
        card("b", "strip", "灯带", hall, Role::Light, true),
        card("c", "ceiling lamp", "吸顶灯", hall, Role::Light, true),
    ];
    let house = |here: Option<&str>| {
        House::of(&cards, Arc::default(), &crate::authz::Policy { here: here.map(str::to_owned), ..Default::default() })
    };
    let switched = |house: &House, asked: &str| match switch_in(house, asked) {
        Ok(Request::Set { device, .. }) => device.to_string(),
        Ok(Request::Together(all)) => format!("{} of them", all.members.len()),
        other => format!("{:?}", other.unwrap_err().refusal.word()),
    };
    for (here, asked, wanted) in [
        (Some("书房"), "the light", "a"),
        (Some("Study"), "灯", "a"),
        (Some("study"), "灯带", "a"),
        (Some("hall"), "灯带", "b"),
        (Some("hall"), "灯", "AmbiguousName"),
        (Some("hall"), "study strip", "a"),
        (Some("study"), "all the lights", "3 of them"),
        (Some("study"), "门厅的灯", "2 of them"),
        (Some("attic"), "灯带", "AmbiguousName"),
        (None, "灯", "AmbiguousName"),
    ] {
        assert_eq!(switched(&house(here), asked), wanted, "{asked} in {here:?}");
    }
    // The only light there is, and it is elsewhere: nobody in a dark study means it.
    let blind = card("d", "blind", "窗帘", study, Role::Blind, true);
    let only = [cards[2].clone(), blind];
    let house = |here: &str| {
        House::of(&only, Arc::default(), &crate::authz::Policy { here: Some(here.to_owned()), ..Default::default() })
    };
    for (here, asked, wanted) in [
        ("study", "the light", "UnknownDevice"),
        ("study", "吸顶灯", "c"),
        ("study", "门厅的灯", "c"),
        ("hall", "灯", "c"),
    ] {
        assert_eq!(switched(&house(here), asked), wanted, "{asked} in {here}");
    }
}

#[test]
fn s2_9_what_is_unseen_does_not_change_what_the_seen_is_called() {
    use crate::authz::{Policy, Scope, Selection};
    let (study, hall) = (Some(("study", "书房")), Some(("hall", "门厅")));
    let cards = [
        card("a", "lamp", "灯", study, Role::Light, true),
        card("b", "lamp", "灯", hall, Role::Light, true),
        board(&["r1", "r2"]),
    ];
    let of = |read: &[&str], write: &[&str]| {
        let of = |names: &[&str]| Selection::Of(names.iter().map(|name| (*name).to_owned()).collect());
        let scope = Scope { read: of(read), write: of(write) };
        House::of(&cards, Arc::default(), &Policy { scope, ..Policy::default() })
    };
    let shown = |house: &House| house.listed().map(|e| e.shown.clone()).collect::<Vec<_>>();
    let one = of(&[], &["a"]);
    assert_eq!(shown(&one), ["lamp"], "it is the only lamp that there is");
    assert!(
        matches!(switch_in(&one, "b"), Err(Refused { refusal: Refusal::UnknownDevice { near, .. }, .. }) if near.is_empty())
    );
    // A part without its board.
    let part = of(&[], &["board.r2"]);
    assert_eq!(shown(&part), ["board r2"]);
    assert!(matches!(switch_in(&part, "board r2"), Ok(Request::Set { .. })));
    assert!(switch_in(&part, "board").is_err() && switch_in(&part, "board.r1").is_err());
    // What may be read is not switched, and says so.
    let look = of(&["a"], &["b"]);
    assert_eq!(look.switchable().map(|e| e.shown.as_str()).collect::<Vec<_>>(), ["lamp (hall)"]);
    assert!(look.groups().is_empty(), "of one there is no group");
    let refused = switch_in(&look, "lamp (study)").unwrap_err();
    assert_eq!(refused.refusal.word(), RefusalWord::Forbidden);
}

#[test]
fn s2_9_whatever_is_offered_is_understood_when_it_comes_back() {
    let room = Some(("study", "书房"));
    let lamps = [
        card("a", "lamp", "灯", None, Role::Light, true),
        card("b", "lamp", "灯", None, Role::Light, true),
        card("c", "lamp", "灯", room, Role::Light, true),
        card("d", "lamp", "灯", room, Role::Light, true),
        card("lamp", "strip", "灯带", room, Role::Light, true),
        board(&["r1", "r2", "r3"]),
    ];
    for lang in [Lang::En, Lang::Zh] {
        let house = House::new(&lamps, Arc::default(), lang);
        for asked in ["灯", "书房的灯", "study lamp", "bord", "lamps in the studdy", "板子", "study lights"] {
            let offered = match house.find(asked) {
                Meant::Several(offered) | Meant::Nobody(offered) => offered,
                Meant::Thing(entry) => vec![entry.shown.clone()],
                Meant::Group(group) => vec![group.shown.clone()],
            };
            assert!(!offered.is_empty(), "{asked}");
            for name in &offered {
                let understood = match house.find(name) {
                    Meant::Thing(entry) => entry.shown == *name,
                    Meant::Group(group) => group.shown == *name,
                    Meant::Several(_) | Meant::Nobody(_) => false,
                };
                assert!(understood, "{name:?} was offered for {asked:?}");
            }
        }
        let all: Vec<&String> =
            house.listed().map(|e| &e.shown).chain(house.groups().iter().map(|g| &g.shown)).collect();
        let distinct: HashSet<&&String> = all.iter().collect();
        assert_eq!(distinct.len(), all.len());
    }
}
