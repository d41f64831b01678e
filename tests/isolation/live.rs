//! On a real hub with devices: two callers with random policies, one of them hostile.

use std::{
    collections::BTreeSet,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
};

use serde_json::{Value as Json, json};
use tokio_util::sync::CancellationToken;
use truetwin::{
    authz::{Access, Policy, Principal, Scope, Selection},
    mcp::{Call, Guest, Server, Tool, Transport, Unobserved},
    names::{Label, Lang, Member as SceneMember, Scene},
    property::Value,
    random,
    sim::Kind,
};

use crate::house::{House, Member, id};

/// What people call the devices: nothing of one is part of another, so that a name in an answer tells whose it is.
const NAMES: &str = "\
[devices.dev-aa]\nname = \"alphalamp\"\nname_zh = \"甲灯\"\nroom = \"northroom\"\nroom_zh = \"北间\"\n\
[devices.dev-bb]\nname = \"betalamp\"\nname_zh = \"乙灯\"\nroom = \"southroom\"\nroom_zh = \"南间\"\n\
[devices.dev-cc]\nname = \"gammaplug\"\nname_zh = \"丙插座\"\nroom = \"eastroom\"\nroom_zh = \"东间\"\n\
[devices.dev-dd]\nname = \"deltabolt\"\nname_zh = \"丁锁\"\nroom = \"westroom\"\nroom_zh = \"西间\"\n\
[devices.dev-ee]\nname = \"epsiplug\"\nname_zh = \"戊插座\"\nroom = \"centreroom\"\nroom_zh = \"中间房\"\n";

/// Device, kind, and its words: id, names, rooms.
const DEVICES: &[(&str, Kind, [&str; 5])] = &[
    ("dev-aa", Kind::Lamp, ["dev-aa", "alphalamp", "甲灯", "northroom", "北间"]),
    ("dev-bb", Kind::Lamp, ["dev-bb", "betalamp", "乙灯", "southroom", "南间"]),
    ("dev-cc", Kind::Socket, ["dev-cc", "gammaplug", "丙插座", "eastroom", "东间"]),
    ("dev-dd", Kind::Lock, ["dev-dd", "deltabolt", "丁锁", "westroom", "西间"]),
    ("dev-ee", Kind::Socket, ["dev-ee", "epsiplug", "戊插座", "centreroom", "中间房"]),
];

/// Policies of two callers, changed by the test.
#[derive(Default)]
struct Two {
    policies: Mutex<Vec<(Principal, Arc<Policy>)>>,
    revision: AtomicU64,
}

impl Two {
    fn grant(&self, policies: Vec<(Principal, Policy)>) {
        let policies = policies.into_iter().map(|(who, policy)| (who, Arc::new(policy))).collect();
        *self.policies.lock().unwrap() = policies;
        self.revision.fetch_add(1, Ordering::Relaxed);
    }
}

impl Access for Two {
    fn policy(&self, principal: &Principal) -> Option<Arc<Policy>> {
        let policies = self.policies.lock().unwrap();
        policies.iter().find(|(who, _)| who == principal).map(|(_, policy)| policy.clone())
    }

    fn revision(&self) -> u64 {
        self.revision.load(Ordering::Relaxed)
    }
}

/// A random number below `n`.
fn below(n: usize) -> usize {
    usize::from_str_radix(&random::id(4), 16).unwrap() % n
}

/// Some of the devices, as bits.
type Set = u8;

fn has(set: Set, at: usize) -> bool {
    set >> at & 1 == 1
}

/// The words by which an owner might grant these devices.
fn selection(set: Set) -> Selection {
    let chosen = DEVICES.iter().enumerate().filter(|(at, _)| has(set, *at));
    Selection::Of(chosen.map(|(_, (_, _, words))| words[below(words.len())].to_owned()).collect())
}

fn policy(read: Set, write: Set) -> Policy {
    let lang = if below(2) == 0 { Lang::En } else { Lang::Zh };
    let scope = Scope { read: selection(read), write: selection(write) };
    Policy { scope, lang, answer_by_ms: 4_000, ..Policy::default() }
}

fn scenes() -> Arc<[Scene]> {
    let scene = |name: &str, members: &[usize]| {
        let member = |at: &usize| {
            let (device, kind, _) = DEVICES[*at];
            let property = if kind == Kind::Lock { "locked" } else { "relay" };
            SceneMember { device: id(device), property: property.into(), value: Value::Bool(true), required: true }
        };
        Scene { label: Label::same(name), members: members.iter().map(member).collect() }
    };
    Arc::new([scene("sunrise", &[0, 1]), scene("harvest", &[2, 4])])
}

/// The scenes, by the devices that are in them.
const SCENES: &[(&str, Set)] = &[("sunrise", 0b00011), ("harvest", 0b10100)];

/// A call by a caller: the whole answer as text, and what there was of structure.
async fn call(server: &Server, guest: &Guest, tool: &str, arguments: &Json) -> (String, Json) {
    let call = Call::new(tool, arguments.as_object().unwrap().clone());
    match server.call(guest, &call, &CancellationToken::new()).await {
        Ok(rendered) => (format!("{}\n{}", rendered.text(), rendered.structured), rendered.structured),
        Err(error) => (error.to_string(), Json::Null),
    }
}

/// A hostile request: any tool with any word of any device.
fn hostile(operations: &[String], code: &str) -> (&'static str, Json) {
    let word = || DEVICES[below(DEVICES.len())].2[below(5)];
    let tool = Tool::ALL[below(Tool::ALL.len())];
    let device = match below(8) {
        0 => "所有的灯".to_owned(),
        1 => "all sockets".to_owned(),
        2 => format!("{} {}", word(), word()),
        3 => format!("{}.relay", word()),
        // Nearly right.
        4 => word().chars().skip(1).collect(),
        _ => word().to_owned(),
    };
    let operation = operations.get(below(operations.len().max(1))).cloned().unwrap_or_default();
    let (to, scene) = (["on", "off", "locked", "unlocked"][below(4)], SCENES[below(2)].0);
    let full = json!({
        "device": device, "to": to, "room": word(), "query": word(),
        "property": "brightness", "level": 30, "option": word(), "action": "pulse", "scene": scene,
        "operation": operation, "fresh": "no", "code": code,
    });
    let mut arguments = full.as_object().unwrap().clone();
    arguments.retain(|key, _| tool.parameters().contains(&key.as_str()));
    if tool == Tool::CheckOperation && below(2) == 0 {
        arguments.remove("device");
    }
    (tool.as_str(), Json::Object(arguments))
}

/// What must not be in an answer: all words of unseen devices, unless the caller said them itself.
fn leaks(answer: &str, said: &Json, sees: Set) -> Option<String> {
    let said = said.to_string();
    let unseen = DEVICES.iter().enumerate().filter(|(at, _)| !has(sees, *at));
    let mut words = unseen.flat_map(|(_, (_, _, words))| words);
    words.find(|word| answer.contains(**word) && !said.contains(**word)).map(|word| (*word).to_owned())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hostile_caller_learns_nothing_of_what_it_may_not_see_and_moves_nothing_else() {
    let members: Vec<Member> =
        DEVICES.iter().map(|(device, kind, _)| Member::new(device, *kind).at_speed(20.0)).collect();
    let house = House::build(NAMES, &members).await;
    let access = Arc::new(Two::default());
    let fleet = house.hub().parts().fleet.clone();
    let server = Server::new(fleet, access.clone(), scenes(), Transport::Http, Arc::new(Unobserved), Arc::default());
    let (ann, bob) = (Principal::Token("ann".into()), Principal::Token("bob".into()));
    let mut reached = BTreeSet::new();
    for round in 0..12 {
        // Ann may read and write some; Bob may everything and leaves operations behind.
        let (write, read) = (below(32) as Set, below(32) as Set);
        let sees = write | read;
        access.grant(vec![(ann.clone(), policy(read, write)), (bob.clone(), Policy::default())]);
        let (a, b) = (server.guest(ann.clone(), "a").unwrap(), server.guest(bob.clone(), "b").unwrap());
        let mut operations = Vec::new();
        let mut of_unseen = Vec::new();
        for (at, (device, kind, _)) in DEVICES.iter().enumerate() {
            let to = if *kind == Kind::Lock { "locked" } else { ["on", "off"][round % 2] };
            let (_, answer) = call(&server, &b, "switch_device", &json!({"device": device, "to": to})).await;
            if let Some(operation) = answer["operation"].as_str() {
                operations.push(operation.to_owned());
                if !has(sees, at) {
                    of_unseen.push(operation.to_owned());
                }
            }
        }
        // He is asked whether to unlock: the code is his.
        let (asked, _) = call(&server, &b, "switch_device", &json!({"device": "dev-dd", "to": "unlocked"})).await;
        let code: String =
            asked.split("\"code\":\"").nth(1).unwrap_or_default().chars().take_while(|c| *c != '"').collect();
        assert!(!code.is_empty(), "{asked}");
        let before: Vec<u64> = DEVICES.iter().map(|(device, ..)| house.truth(device).0).collect();

        let catalogue = serde_json::to_string(&server.tools(&a)).unwrap();
        assert_eq!(leaks(&catalogue, &Json::Null, sees), None, "{catalogue}");
        let (resources, _) = server.resources(&a, None).unwrap();
        let resources = serde_json::to_string(&resources).unwrap();
        assert_eq!(leaks(&resources, &Json::Null, sees), None, "{resources}");
        let (completed, total) = server.completed(&a, "");
        assert_eq!(leaks(&completed.join(" "), &Json::Null, sees), None);
        assert_eq!(total, completed.len());
        for (at, (device, ..)) in DEVICES.iter().enumerate() {
            let resource = server.resource(&a, &format!("twin://devices/{device}")).await;
            assert_eq!(resource.is_some(), has(sees, at), "{device}");
            for part in ["relay", "locked"] {
                assert_eq!(server.resource(&a, &format!("twin://devices/{device}.{part}")).await, None);
            }
        }
        for (scene, members) in SCENES {
            assert_eq!(catalogue.contains(scene), members & write == *members, "{scene} {catalogue}");
        }
        for _ in 0..24 {
            let (tool, arguments) = hostile(&operations, &code);
            let (answer, structured) = call(&server, &a, tool, &arguments).await;
            let context = || format!("{tool} {arguments} with {read:05b}/{write:05b}: {answer}");
            assert_eq!(leaks(&answer, &arguments, sees), None, "{}", context());
            let asked = arguments["operation"].as_str().unwrap_or_default();
            for operation in &of_unseen {
                // What was sent may be repeated; that it is an operation may not be told.
                let told = structured["operation"] == operation.as_str();
                let known = told || asked != operation && answer.contains(operation.as_str());
                assert!(!known, "{}", context());
            }
            if let Some(device) = structured["device"].as_str() {
                reached.insert(device.to_owned());
            }
        }
        for (at, (device, ..)) in DEVICES.iter().enumerate() {
            if !has(write, at) {
                assert_eq!(house.truth(device).0, before[at], "{device} moved, with {read:05b}/{write:05b}");
            }
        }
    }
    assert!(reached.len() > DEVICES.len(), "the requests reached what they may: {reached:?}");
    house.take_down().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_granted_and_taken_counts_from_the_next_call_on() {
    let house = House::build(NAMES, &[Member::new("dev-aa", Kind::Lamp)]).await;
    let access = Arc::new(Two::default());
    let fleet = house.hub().parts().fleet.clone();
    let server =
        Server::new(fleet, access.clone(), Arc::default(), Transport::Http, Arc::new(Unobserved), Arc::default());
    let ann = Principal::Token("ann".into());
    access.grant(vec![(ann.clone(), policy(0, 1))]);
    let guest = server.guest(ann.clone(), "a").unwrap();
    let on = json!({"device": "dev-aa", "to": "on"});
    assert_eq!(call(&server, &guest, "switch_device", &on).await.1["result"], "confirmed");
    // Only to be looked at: the old session knows.
    access.grant(vec![(ann.clone(), policy(1, 0))]);
    let (refused, _) = call(&server, &guest, "switch_device", &on).await;
    assert!(refused.contains("no such tool"), "{refused}");
    assert!(call(&server, &guest, "get_device_state", &json!({"device": "dev-aa"})).await.1["result"].is_string());
    access.grant(Vec::new());
    assert_eq!(call(&server, &guest, "find_devices", &json!({})).await.0, "access was withdrawn");
    house.take_down().await;
}
