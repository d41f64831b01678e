//! One device of each kind in one house, each moved through MCP as an assistant does it: what was answered is laid beside what
//! really happened behind the pins.
#![allow(clippy::unwrap_used, reason = "a test that fails here says where")]

mod house;

use serde_json::{Value as Json, json};
use truetwin::sim::Kind;

use crate::house::{House, Member};

/// One call, what it must give, and what is to be true behind the pins then: a thing's place and how often it moved.
struct Case {
    device: &'static str,
    kind: Kind,
    tool: &'static str,
    arguments: fn() -> Json,
    outcome: &'static str,
    /// Anything, if empty: of what cannot answer only the outcome counts here.
    confirmed_by: &'static str,
    thing: &'static str,
    at: f64,
    moves: u64,
}

#[rustfmt::skip]
const CASES: &[Case] = &[
    Case { device: "socket", kind: Kind::Socket, tool: "switch_device", arguments: || json!({"to": "on"}), outcome: "converged", confirmed_by: "pin", thing: "relay", at: 1.0, moves: 1 },
    Case { device: "meter", kind: Kind::Meter, tool: "switch_device", arguments: || json!({"to": "on"}), outcome: "converged", confirmed_by: "pin", thing: "relay", at: 1.0, moves: 1 },
    Case { device: "lamp", kind: Kind::Lamp, tool: "set_device_level", arguments: || json!({"property": "brightness", "level": 40}), outcome: "converged", confirmed_by: "firmware", thing: "brightness", at: 40.0, moves: 1 },
    Case { device: "servo", kind: Kind::Servo, tool: "set_device_level", arguments: || json!({"property": "angle", "level": 45}), outcome: "converged", confirmed_by: "firmware", thing: "angle", at: 45.0, moves: 1 },
    Case { device: "thermostat", kind: Kind::Thermostat, tool: "set_device_level", arguments: || json!({"property": "target", "level": 21.5}), outcome: "converged", confirmed_by: "firmware", thing: "target", at: 21.5, moves: 1 },
    Case { device: "blind", kind: Kind::Blind, tool: "set_device_level", arguments: || json!({"property": "position", "level": 70}), outcome: "converged", confirmed_by: "sensor", thing: "position", at: 70.0, moves: 1 },
    Case { device: "lock", kind: Kind::Lock, tool: "switch_device", arguments: || json!({"to": "unlocked"}), outcome: "converged", confirmed_by: "sensor", thing: "locked", at: 0.0, moves: 1 },
    Case { device: "garage", kind: Kind::Garage, tool: "run_device_action", arguments: || json!({"action": "pulse"}), outcome: "converged", confirmed_by: "firmware", thing: "pulse", at: 0.0, moves: 1 },
    Case { device: "button", kind: Kind::Button, tool: "run_device_action", arguments: || json!({"action": "press"}), outcome: "converged", confirmed_by: "firmware", thing: "press", at: 0.0, moves: 1 },
    Case { device: "remote", kind: Kind::Infrared, tool: "switch_device", arguments: || json!({"to": "on"}), outcome: "sent_unverified", confirmed_by: "", thing: "power", at: 1.0, moves: 1 },
    Case { device: "board", kind: Kind::Relays, tool: "switch_device", arguments: || json!({"to": "on"}), outcome: "converged", confirmed_by: "pin", thing: "relay_3", at: 1.0, moves: 1 },
];

#[tokio::test]
async fn each_kind_is_moved_through_mcp_and_really_is_as_answered() {
    let members: Vec<Member> = CASES.iter().map(|case| Member::new(case.device, case.kind).at_speed(10.0)).collect();
    let house = House::build("[confirm]\nearliest_ms = 0", &members).await;
    let caller = house.caller().await;
    let mut wrong = Vec::new();
    for case in CASES {
        let mut arguments = (case.arguments)();
        arguments["device"] = json!(case.device);
        let mut answer = caller.call(case.tool, arguments.clone()).await;
        if answer["outcome"] == "ambiguous_name" {
            // A board of four is four things: the third of those that are offered, as it is called there.
            arguments["device"] = answer["candidates"][2].clone();
            answer = caller.call(case.tool, arguments).await;
        }
        if answer["outcome"] == "confirmation_required" {
            assert_eq!(house.sim(case.device).truth_of(case.thing).unwrap().moves, 0, "{}", case.device);
            answer = caller.call("confirm_operation", json!({"code": answer["code"]})).await;
        }
        let truth = house.sim(case.device).truth_of(case.thing).unwrap();
        let so = answer["outcome"] == case.outcome
            && (case.confirmed_by.is_empty() || answer["confirmed_by"] == case.confirmed_by)
            && (truth.at, truth.moves) == (case.at, case.moves);
        if !so {
            wrong.push(format!("{}: at {}, {} moves\n    {answer}", case.device, truth.at, truth.moves));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    caller.close().await;
    house.take_down().await;
}
