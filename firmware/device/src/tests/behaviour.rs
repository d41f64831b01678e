//! The core held to `vectors/behaviour.json`, as every other implementation.

extern crate std;

use std::{format, string::String, vec::Vec};

use serde_json::Value;
use truetwin_wire::{
    Scalar,
    device::PropertySpec,
    words::{EvidenceWord, KindWord, ReasonWord},
};

use crate::{Board, Identity, Machine, Start};

struct OneRelay {
    on: bool,
    follows: bool,
    moves: u64,
    specs: [PropertySpec<'static>; 1],
}

impl Board for OneRelay {
    fn properties(&self) -> &[PropertySpec<'_>] {
        &self.specs
    }

    fn drive(&mut self, _property: usize, value: &Scalar) -> Result<(), ReasonWord> {
        self.moves += 1;
        self.on = if self.follows { *value == Scalar::Bool(true) } else { self.on };
        Ok(())
    }

    fn read(&mut self, _property: usize) -> Option<Scalar> {
        Some(Scalar::Bool(self.on))
    }

    fn settle_ms(&self, _property: usize) -> u32 {
        400
    }

    fn make_safe(&mut self) {
        self.on = false;
    }
}

fn started(board: &mut OneRelay) -> Machine<'static> {
    let identity = Identity { device: "relay", model: "relay", fw: "1" };
    let mut machine = Machine::new(identity, "boot", Start::Unclean, board).unwrap();
    machine.connected(1_000, board);
    machine
}

/// Whether `found` has everything that `wanted` has.
fn holds(found: &Value, wanted: &Value) -> bool {
    match (found, wanted) {
        (Value::Object(found), Value::Object(wanted)) => {
            wanted.iter().all(|(key, value)| found.get(key).is_some_and(|found| holds(found, value)))
        }
        _ => found == wanted,
    }
}

#[test]
fn the_core_behaves_as_the_vectors_say() {
    let path = format!("{}/../wire/vectors/behaviour.json", env!("CARGO_MANIFEST_DIR"));
    let file: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    for scenario in file["scenarios"].as_array().unwrap() {
        let name = &scenario["name"];
        let specs = [PropertySpec::new("relay", KindWord::Bool, EvidenceWord::Pin)];
        let mut board = OneRelay { on: false, follows: true, moves: 0, specs };
        let mut machine = started(&mut board);
        let (mut now_ms, mut buffered) = (1_000, Vec::<(String, bool)>::new());
        for (at, step) in scenario["steps"].as_array().unwrap().iter().enumerate() {
            let (kind, value) = step.as_object().unwrap().iter().next().unwrap();
            let place = format!("{name}, step {at}: {step}");
            match kind.as_str() {
                "hub" | "retained" => buffered.push((serde_json::to_string(value).unwrap(), kind == "retained")),
                "wait_ms" => {
                    for (message, retained) in buffered.drain(..) {
                        machine.handle(message.as_bytes(), retained, now_ms, &mut board);
                    }
                    machine.step(now_ms, &mut board);
                    let until = now_ms + value.as_u64().unwrap();
                    while now_ms < until {
                        now_ms = until.min(now_ms + 10);
                        machine.step(now_ms, &mut board);
                    }
                }
                "device" => {
                    let event = machine.outgoing().unwrap_or_else(|| panic!("{place}: no event"));
                    let event: Value = serde_json::from_slice(event).unwrap();
                    machine.sent();
                    machine.acknowledged(u32::try_from(event["seq"].as_u64().unwrap()).unwrap());
                    assert!(holds(&event, value), "{place}: {event}");
                }
                "silent" => assert!(machine.outgoing().is_none(), "{place}"),
                "moves" => assert_eq!(Some(board.moves), value.as_u64(), "{place}"),
                "relay" => board.on = value.as_bool().unwrap(),
                "follows" => board.follows = value.as_bool().unwrap(),
                "reconnect" => {
                    buffered.clear();
                    machine.connected(now_ms, &mut board);
                }
                "reboot" => {
                    buffered.clear();
                    machine = started(&mut board);
                    now_ms = 1_000;
                }
                other => panic!("{place}: no such step {other}"),
            }
        }
    }
}
