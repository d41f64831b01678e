//! What each row must give.

use std::ops::RangeInclusive;

use serde_json::{Value as Json, json};
use truetwin::sim::{Fault, Kind};

use crate::house::Member;

/// What comes after the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Then {
    Nothing,
    /// The fault ends; nothing moves any more, and the outcome stays.
    Still,
    /// It is found done after all.
    LateSuccess,
    /// The fault ends, and it is found done after all when somebody asks for the state.
    LateWhenAsked,
    /// It goes back by itself.
    Reverted,
    /// What was still working ends.
    Converged,
}

/// One row of the fault table, played with one fault.
#[derive(Debug)]
pub(crate) struct Case {
    /// The row's first cell.
    pub(crate) row: &'static str,
    pub(crate) device: &'static str,
    pub(crate) kind: Kind,
    pub(crate) fault: Fault,
    pub(crate) to: &'static str,
    pub(crate) result: &'static str,
    pub(crate) outcome: &'static str,
    pub(crate) stage: &'static str,
    /// The whole word, or the beginning of one that ends with `_`.
    pub(crate) reason: Option<&'static str>,
    pub(crate) confirmed_by: Option<&'static str>,
    pub(crate) then: Then,
    /// How often the relay may have moved by the end.
    pub(crate) moves: RangeInclusive<u64>,
    /// Where it is at the end.
    pub(crate) on: Option<bool>,
}

/// A socket that is wished on, confirmed at its pin.
const DONE: Case = Case {
    row: "none",
    device: "",
    kind: Kind::Socket,
    fault: Fault::None,
    to: "on",
    result: "confirmed",
    outcome: "converged",
    stage: "settled",
    reason: None,
    confirmed_by: Some("pin"),
    then: Then::Nothing,
    moves: 1..=1,
    on: Some(true),
};

/// The same, of which nobody knows.
const UNKNOWN: Case = Case {
    result: "unconfirmed",
    outcome: "timed_out",
    reason: Some("timeout_after_"),
    confirmed_by: Some("none"),
    moves: 0..=0,
    on: Some(false),
    then: Then::Still,
    ..DONE
};

/// The same, and it was not done.
const NOT_DONE: Case =
    Case { result: "failed", confirmed_by: Some("none"), moves: 0..=0, on: Some(false), then: Then::Still, ..DONE };

#[rustfmt::skip]
pub(crate) static CASES: [Case; 27] = [
    Case { device: "healthy", ..DONE },
    Case { row: "offline (known)", device: "absent", fault: Fault::Offline, outcome: "offline", stage: "admission", confirmed_by: None, then: Then::Nothing, ..NOT_DONE },
    Case { row: "frozen: socket open, nothing answers", device: "frozen", fault: Fault::Frozen, stage: "waiting_device_ack", ..UNKNOWN },
    Case { row: "command lost", device: "deaf", fault: Fault::NoCommand, stage: "waiting_device_ack", ..UNKNOWN },
    Case { row: "acknowledgement lost, rest arrives", device: "no-ack", fault: Fault::NoAck, ..DONE },
    Case { row: "device busy or refuses", device: "busy", fault: Fault::Busy, outcome: "rejected", stage: "waiting_device_ack", reason: Some("busy"), ..NOT_DONE },
    Case { row: "task never starts after the acknowledgement", device: "idle", fault: Fault::NeverStarts, stage: "waiting_device_start", ..UNKNOWN },
    Case { row: "slow, within allowance", device: "slow", fault: Fault::Slow, ..DONE },
    Case { row: "slow, beyond the caller, within allowance", device: "blind", kind: Kind::Blind, to: "open", result: "working", outcome: "working", stage: "waiting_device_report", confirmed_by: Some("none"), then: Then::Converged, ..DONE },
    Case { row: "could begin later than `act_by` only, says nothing", device: "laggard", fault: Fault::StartsLate, stage: "waiting_device_start", ..UNKNOWN },
    Case { row: "could begin later than `act_by` only, says so", device: "expired", fault: Fault::Expires, outcome: "rejected", stage: "waiting_device_start", reason: Some("expired"), ..NOT_DONE },
    Case { row: "no report path at all (infrared)", device: "remote", kind: Kind::Infrared, result: "unconfirmed", outcome: "sent_unverified", stage: "waiting_device_report", confirmed_by: Some("none"), ..DONE },
    Case { row: "stuck, device notices", device: "stuck", fault: Fault::Stuck, outcome: "failed", stage: "waiting_device_report", reason: Some("stuck"), ..NOT_DONE },
    Case { row: "completion report lost, read-back works", device: "no-end", fault: Fault::NoCompletion, ..DONE },
    Case { row: "everything after driving lost", device: "mute", fault: Fault::NothingAfterDriving, stage: "waiting_device_report", moves: 1..=1, on: Some(true), then: Then::LateSuccess, ..UNKNOWN },
    Case { row: "firmware says completed, read-back differs", device: "lying", fault: Fault::Lying, outcome: "contradicted", stage: "waiting_read_back", reason: Some("read_back_differs"), ..NOT_DONE },
    Case { row: "reverts within `stable_for`", device: "bouncing", fault: Fault::RevertsSoon, outcome: "contradicted", stage: "waiting_read_back", reason: Some("read_back_differs"), moves: 2..=2, ..NOT_DONE },
    Case { row: "reverts within `stable_for`", device: "confessing", fault: Fault::RevertsSoonTold, outcome: "contradicted", stage: "waiting_read_back", reason: Some("did_not_hold"), moves: 2..=2, ..NOT_DONE },
    Case { row: "reverts after the answer", device: "faithless", fault: Fault::RevertsLate, then: Then::Reverted, moves: 2..=2, on: Some(false), ..DONE },
    Case { row: "pin right, sensor disagrees (load without power)", device: "fuse", kind: Kind::Meter, fault: Fault::NoLoad, outcome: "contradicted", stage: "waiting_sensor", reason: Some("sensor_differs"), moves: 1..=1, on: Some(true), then: Then::Nothing, ..NOT_DONE },
    Case { row: "reboot before driving, repeatable", device: "rebooting", fault: Fault::RebootBefore, moves: 1..=1, ..DONE },
    Case { row: "reboot after driving, before the report", device: "dazed", fault: Fault::RebootAfter, moves: 1..=3, ..DONE },
    Case { row: "brown-out on each driving", device: "brown-out", fault: Fault::BrownOut, result: "unconfirmed", outcome: "device_crashed", stage: "waiting_device_report", confirmed_by: Some("none"), on: Some(false), moves: 0..=2, ..DONE },
    Case { row: "answers with a wrong type or an unknown word", device: "wrong-type", fault: Fault::WrongType, stage: "waiting_device_report", reason: Some("unreadable_report"), moves: 1..=1, on: Some(true), then: Then::LateWhenAsked, ..UNKNOWN },
    Case { row: "answers with a wrong type or an unknown word", device: "odd-word", fault: Fault::UnknownWord, stage: "waiting_device_report", reason: Some("unreadable_report"), moves: 1..=1, on: Some(true), then: Then::LateWhenAsked, ..UNKNOWN },
    Case { row: "late: drives after the answer although told not to (a lying board)", device: "late", fault: Fault::Late, stage: "waiting_device_report", moves: 1..=1, on: Some(true), then: Then::LateSuccess, ..UNKNOWN },
    Case { row: "none", device: "quiet", fault: Fault::NoExecuting, ..DONE },
];

impl Case {
    pub(crate) fn member(&self) -> Member {
        // The blind needs 6 s for its whole way, longer than its caller waits.
        Member::new(self.device, self.kind).at_speed(if self.kind == Kind::Blind { 4.0 } else { 1.0 })
    }

    /// What the answer has that the row has not.
    pub(crate) fn differs(&self, answer: &Json) -> Vec<String> {
        let mut differs = Vec::new();
        let mut check = |field: &str, wanted: Json| {
            if answer[field] != wanted {
                differs.push(format!("{field} is {}, not {wanted}", answer[field]));
            }
        };
        check("success", json!(self.result == "confirmed"));
        check("result", json!(self.result));
        check("outcome", json!(self.outcome));
        check("stage", json!(self.stage));
        check("confirmed_by", json!(self.confirmed_by));
        let reason = answer["reason"].as_str();
        let fits = match self.reason {
            Some(beginning) if beginning.ends_with('_') => reason.is_some_and(|reason| reason.starts_with(beginning)),
            Some(word) => reason == Some(word),
            None => true,
        };
        if !fits {
            differs.push(format!("the reason is {reason:?}, not {:?}", self.reason));
        }
        differs
    }

    /// What is told of the operation afterwards, and should not be.
    pub(crate) fn differs_later(&self, what: &str, told: &Json) -> Vec<String> {
        let (result, outcome) = match self.then {
            Then::Nothing => return Vec::new(),
            Then::Still => (self.result, self.outcome),
            Then::LateSuccess | Then::LateWhenAsked => ("confirmed", self.outcome),
            Then::Reverted => ("failed", "converged"),
            Then::Converged => ("confirmed", "converged"),
        };
        let said = (told["result"].as_str(), told["outcome"].as_str());
        if said == (Some(result), Some(outcome)) {
            return Vec::new();
        }
        vec![format!("later ({what}) it is told as {said:?}, not {:?}", (result, outcome))]
    }
}
