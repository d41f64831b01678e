//! What people say, and the call that it should lead to: each tool is listed for that house, each argument is one that the
//! catalogue allows, and the real parser makes of it what was meant. Where a question should be asked instead, the call
//! that a hasty model would make is refused with the right question.
//!
//! Whether a model really chooses so is not tried here; that the texts let it, is. The house has every kind of device that
//! can be simulated, described by the simulators themselves over the real protocol.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use serde::Deserialize;
use serde_json::{Map, Value as Json};
use truetwin::{
    config::Config,
    data::DataFolder,
    fleet::Card,
    mcp::{House, Request, Tool, parse, tool_list},
    names::{Lang, Scene},
    property::{Class, Description, DeviceId, Evidence, Kind, Property, Role, Terms},
    serve::Hub,
    sim,
    twin::{
        wish::{Target, Wish},
        words::{Presence, Refusal},
    },
};

const UTTERANCES: &str = include_str!("utterances.toml");

/// The house: its names, and what is simulated.
const HOUSE: &str = include_str!("utterances.house.toml");

/// Whatever the test waits for has happened long before; this turns a hang into a failure.
const HANG: Duration = Duration::from_secs(60);

#[derive(Deserialize)]
struct File {
    say: Vec<Say>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Say {
    zh: Option<String>,
    en: Option<String>,
    /// The calls that it should lead to, one after the other.
    #[serde(default)]
    call: Vec<Call>,
    /// The call of a hasty model, and the question that it gets.
    ask: Option<Ask>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Call {
    tool: String,
    #[serde(default)]
    with: Map<String, Json>,
    means: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Ask {
    tool: String,
    #[serde(default)]
    with: Map<String, Json>,
    refusal: String,
    /// Names or words among those that are offered.
    #[serde(default)]
    offers: Vec<String>,
}

#[tokio::test(flavor = "multi_thread")]
async fn what_people_say_leads_to_the_call_that_is_meant_or_to_the_question() {
    let (cards, scenes) = home().await;
    let file: File = toml::from_str(UTTERANCES).expect("the utterances can be read");
    let (mut wrong, mut said) = (Vec::new(), 0);
    for (lang, of) in [(Lang::Zh, (|s: &Say| s.zh.clone()) as fn(&Say) -> Option<String>), (Lang::En, |s| s.en.clone())]
    {
        let house = House::new(&cards, scenes.clone(), lang);
        let tools = serde_json::to_value(tool_list(&house)).expect("tools serialise");
        for utterance in &file.say {
            let Some(text) = of(utterance) else { continue };
            said += 1;
            assert!(utterance.ask.is_some() == utterance.call.is_empty(), "{text}: calls or a question");
            for call in &utterance.call {
                let problem = listed(&tools, &call.tool, &call.with, true).and_then(|()| leads(call, &house));
                wrong.extend(problem.err().map(|why| format!("{text}: {why}")));
            }
            if let Some(ask) = &utterance.ask {
                let problem = listed(&tools, &ask.tool, &ask.with, false).and_then(|()| asks(ask, &house));
                wrong.extend(problem.err().map(|why| format!("{text}: {why}")));
            }
        }
    }
    assert!(said >= 120, "only {said} utterances");
    assert!(wrong.is_empty(), "{} of {said}:\n{}", wrong.len(), wrong.join("\n"));
}

/// Whether a model can find the call in the catalogue: tool, parameters, and for a call that should be made also the words.
fn listed(tools: &Json, tool: &str, with: &Map<String, Json>, strict: bool) -> Result<(), String> {
    let listed = tools.as_array().into_iter().flatten().find(|t| t["name"] == tool);
    let schema = &listed.ok_or(format!("{tool} is not listed"))?["inputSchema"];
    for (parameter, value) in with {
        let known = &schema["properties"][parameter];
        if known.is_null() {
            return Err(format!("{tool} has no parameter {parameter}"));
        }
        let is_number = known["type"] == "number";
        if value.is_number() != is_number {
            return Err(format!("{parameter} is {value}"));
        }
        let words = known["enum"].as_array();
        if strict && words.is_some_and(|words| !words.contains(value)) {
            return Err(format!("{value} is not in the list of {parameter}: {}", known["enum"]));
        }
    }
    let missing =
        schema["required"].as_array().into_iter().flatten().find(|r| !with.contains_key(r.as_str().unwrap_or("")));
    match missing.filter(|_| strict) {
        Some(missing) => Err(format!("{missing} is required")),
        None => Ok(()),
    }
}

/// Whether the parser understands what was meant.
fn leads(call: &Call, house: &House) -> Result<(), String> {
    let tool = Tool::parse(&call.tool).ok_or("no such tool")?;
    let request = parse(tool, &call.with, house).map_err(|r| format!("refused: {:?}", r.refusal))?;
    let understood = meaning(&request);
    if understood == call.means { Ok(()) } else { Err(format!("understood as {understood:?}, not {:?}", call.means)) }
}

fn meaning(request: &Request) -> String {
    let wish = |device: &DeviceId, wish: &Wish| match &wish.target {
        Target::To(value) => format!("{device}.{} = {value}", wish.property),
        Target::By(amount) if *amount < 0.0 => format!("{device}.{} - {}", wish.property, -amount),
        Target::By(amount) => format!("{device}.{} + {amount}", wish.property),
        Target::Toggle => format!("{device}.{} toggled", wish.property),
    };
    match request {
        Request::Find { room, query } => {
            let parts = [
                Some("find".to_owned()),
                room.as_ref().map(|r| format!("in {r}")),
                query.as_ref().map(|q| format!("like {q}")),
            ];
            parts.into_iter().flatten().collect::<Vec<_>>().join(" ")
        }
        Request::State { thing, fresh } => format!("state of {thing}{}", if *fresh { "" } else { ", last report" }),
        Request::Set { device, wish: wanted } => wish(device, wanted),
        Request::Together(all) => all.members.iter().map(|m| wish(&m.device, &m.wish)).collect::<Vec<_>>().join(", "),
        Request::Run { device, action } => format!("{device} does {action}"),
        Request::Unheard { thing } => format!("{thing} is unheard"),
        Request::Check { operation, thing } => match (operation, thing) {
            (Some(operation), _) => format!("check {operation}"),
            (None, Some(device)) => format!("check {device}"),
            (None, None) => "check the latest".to_owned(),
        },
        Request::Confirm { code } => format!("confirm {code}"),
        Request::Ping => "ping".to_owned(),
    }
}

/// Whether the parser asks what should be asked, and offers what there is.
fn asks(ask: &Ask, house: &House) -> Result<(), String> {
    let tool = Tool::parse(&ask.tool).ok_or("no such tool")?;
    let refused = match parse(tool, &ask.with, house) {
        Ok(request) => return Err(format!("understood as {:?}", meaning(&request))),
        Err(refused) => refused,
    };
    let (word, offered) = (refused.refusal.word(), offered(&refused.refusal));
    if word.as_str() != ask.refusal {
        return Err(format!("{word}, not {}", ask.refusal));
    }
    match ask.offers.iter().find(|offer| !offered.contains(offer)) {
        Some(missing) => Err(format!("{missing} is not offered: {offered:?}")),
        None => Ok(()),
    }
}

fn offered(refusal: &Refusal) -> Vec<String> {
    match refusal {
        Refusal::UnknownDevice { near, .. } => near.clone(),
        Refusal::AmbiguousName { candidates, .. } => candidates.clone(),
        Refusal::MissingArgument { allowed, .. } | Refusal::InvalidArgument { allowed, .. } => {
            allowed.split(", ").map(str::to_owned).collect()
        }
        Refusal::UnknownProperty { known, .. } => known.iter().map(ToString::to_string).collect(),
        Refusal::UnknownArgument { .. }
        | Refusal::InvalidValue { .. }
        | Refusal::ConfirmationRequired
        | Refusal::CodeWrong { .. }
        | Refusal::CodeExpired
        | Refusal::CodeTooEarly
        | Refusal::LockedOut { .. }
        | Refusal::Declined
        | Refusal::Forbidden { .. }
        | Refusal::ActsOnly { .. }
        | Refusal::NotAccepted { .. }
        | Refusal::VerifierOffline { .. }
        | Refusal::Offline { .. }
        | Refusal::StateUnknown { .. }
        | Refusal::HubJustStarted
        | Refusal::QueueFull { .. }
        | Refusal::DeadlineTooShort { .. }
        | Refusal::BrokerDown
        | Refusal::JournalDown
        | Refusal::Quarantined
        | Refusal::ShuttingDown => Vec::new(),
    }
}

/// A hub with every kind of simulator, and the cards that it has of them; and two devices of sorts that nobody simulates.
async fn home() -> (Vec<Card>, Arc<[Scene]>) {
    let kinds: BTreeMap<String, String> = HOUSE
        .lines()
        .filter_map(|line| line.strip_prefix("# simulate ")?.split_once(' '))
        .map(|(id, kind)| (id.to_owned(), kind.to_owned()))
        .collect();
    for kind in sim::Kind::ALL {
        assert!(kinds.values().any(|used| used == kind.as_str()), "the house has no {kind}");
    }
    let config = Config::parse("house", HOUSE).expect("the house is allowed");
    let folder = tempfile::tempdir().expect("a temporary folder");
    let free = || async { tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port") };
    let data = DataFolder::open(&folder.path().join("data")).expect("a fresh folder opens");
    let hub = Hub::start(config.clone(), data, free().await, free().await).await.expect("a hub starts");
    let mut simulators = Vec::new();
    for (id, kind) in &kinds {
        let device = DeviceId::new(id).expect("an id");
        let password = hub.parts().add_device(&device).await.expect("the device is new");
        simulators.push(sim::start(sim::Options {
            kind: kind.parse().expect("a kind"),
            ..sim::Options::new(hub.mqtt_addr(), id, password.reveal())
        }));
    }
    let all_greeted = async {
        while !hub.parts().fleet.cards().iter().all(|c| c.presence == Presence::Online && c.description.is_some()) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(HANG, all_greeted).await.expect("every simulator greets");
    let mut cards = hub.parts().fleet.cards();
    for simulator in simulators {
        simulator.stop();
    }
    hub.stop().await;
    cards.extend([made("ac-1", &config, air_conditioner()), made("strip-1", &config, light_strip())]);
    (cards, config.scenes())
}

fn made(id: &str, config: &Config, properties: Vec<Property>) -> Card {
    let description = Description { properties, ..Description::default() };
    let name = config.name(&DeviceId::new(id).expect("an id"));
    Card { name, presence: Presence::Online, description: Some(Arc::new(description)), last_heard: None }
}

fn property(name: &str, role: Role, kind: Kind) -> Property {
    Property {
        name: name.into(),
        role,
        kind,
        unit: None,
        min: None,
        max: None,
        step: None,
        tolerance: None,
        values: Vec::new(),
        class: Class::Momentary,
        feedback: Evidence::Firmware,
        expected_ms: 300,
        stable_ms: 0,
        settable: true,
        repeatable: true,
        min_interval_ms: 0,
        terms: Terms::default(),
    }
}

fn number(name: &str, role: Role, unit: &str, (min, max): (f64, f64), step: f64) -> Property {
    let base = property(name, role, Kind::Number);
    Property { unit: Some(unit.into()), min: Some(min), max: Some(max), step: Some(step), ..base }
}

fn mode(name: &str, values: &[&str]) -> Property {
    Property { values: values.iter().map(|v| (*v).into()).collect(), ..property(name, Role::Heater, Kind::Enum) }
}

fn air_conditioner() -> Vec<Property> {
    vec![
        property("power", Role::Heater, Kind::Bool),
        number("temperature", Role::Heater, "°C", (16.0, 30.0), 0.5),
        mode("mode", &["cool", "heat", "dry", "auto"]),
        mode("fan_speed", &["low", "medium", "high"]),
    ]
}

fn light_strip() -> Vec<Property> {
    vec![
        property("power", Role::Light, Kind::Bool),
        number("brightness", Role::Light, "%", (0.0, 100.0), 1.0),
        property("colour", Role::Light, Kind::Colour),
    ]
}
