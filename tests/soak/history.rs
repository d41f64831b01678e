//! Who asked for what, when, what was answered; and whether that can be true, beside what the devices really did.
//!
//! Times are milliseconds of the round, by this process's clock: later than the hub's own for an answer, earlier for a question.

use std::collections::BTreeMap;

use serde_json::Value as Json;

use crate::{LIMIT_MS, device::Life};

/// By how much a drive may seem late that is not: the longest way through the bad network (a board cannot tell a delay that all
/// its packets have from none), and this process's own ignorance of the device's clock.
pub(crate) const IGNORANCE_MS: u64 = 600;

/// By how much an answer may come late to this process on a machine that compiles beside it, before it is called late.
const LATE_MS: u64 = 5_000;

/// The words that say that nothing was begun: an answer, but no operation (semantics 8.4). The journal keeps none of these.
const REFUSALS: &[&str] = &[
    "unknown_device",
    "unknown_property",
    "offline",
    "state_unknown",
    "hub_just_started",
    "queue_full",
    "deadline_too_short",
    "broker_down",
    "journal_down",
    "quarantined",
    "shutting_down",
    "rate_limited",
];

/// How a call ended for its caller.
#[derive(Clone, Debug)]
pub(crate) enum End {
    Answered(Json),
    /// The caller stopped waiting.
    Vanished,
    /// The connection broke, or nothing came.
    Broken(#[expect(dead_code, reason = "shown where the call is")] String),
}

/// A call.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) device: usize,
    /// Where to: 0 or 1 of a relay, else a number.
    pub(crate) wish: f64,
    pub(crate) asked_ms: u64,
    pub(crate) ended_ms: u64,
    pub(crate) end: End,
}

impl Asked {
    /// The operation's id, its outcome and what was answered, if an operation was answered and recorded.
    pub(crate) fn recorded(&self) -> Option<(&str, &str, &Json)> {
        let End::Answered(answer) = &self.end else { return None };
        let (operation, outcome) = (answer["operation"].as_str()?, answer["outcome"].as_str()?);
        (answer["recorded"] != false && !REFUSALS.contains(&outcome)).then_some((operation, outcome, answer))
    }

    /// Whether the answer was that nothing was begun.
    pub(crate) fn is_refused(&self) -> bool {
        let End::Answered(answer) = &self.end else { return false };
        answer["outcome"].as_str().is_some_and(|outcome| REFUSALS.contains(&outcome))
    }

    fn overlaps(&self, other: &Self) -> bool {
        self.asked_ms <= other.ended_ms + LIMIT_MS && other.asked_ms <= self.ended_ms + LIMIT_MS
    }
}

/// Whether what is told of an operation agrees with what was answered; an amendment says that it is one.
pub(crate) fn agrees(answered: &str, told: &Json) -> bool {
    let outcome = told["outcome"].as_str().unwrap_or_default();
    let amended = told["late_success"] == true || told["reverted"] == true;
    !outcome.is_empty() && (outcome == answered || answered == "working" || amended)
}

/// A round's history.
#[derive(Default)]
pub(crate) struct History {
    pub(crate) asked: Vec<Asked>,
    /// When hubs lived.
    pub(crate) lives: Vec<(u64, u64)>,
    /// When hub, device or disk were held: answers may be late by so much.
    pub(crate) held: Vec<(u64, u64)>,
    pub(crate) wrong: Vec<String>,
    pub(crate) late_drives: Vec<String>,
    pub(crate) lost: Vec<String>,
    /// The longest that a caller waited beyond its limit, held times taken off.
    pub(crate) latest_ms: u64,
}

impl History {
    fn held_ms(&self, from: u64, to: u64) -> u64 {
        self.held.iter().map(|(began, ended)| (*ended).min(to).saturating_sub((*began).max(from))).sum()
    }

    fn one_life(&self, from: u64, to: u64) -> bool {
        self.lives.iter().any(|(began, ended)| *began <= from && to <= *ended)
    }

    /// Judges every call. `shared` devices have more callers than one, so that what moved is not one call's alone; the relay of
    /// a device that holds its wish may move whenever it likes.
    pub(crate) fn judge(&mut self, lives: &[Life], shared: &[usize], holding: &[usize]) {
        for asked in self.asked.clone() {
            self.answered_once_in_time(&asked);
            if let (End::Answered(answer), false) = (&asked.end, holding.contains(&asked.device)) {
                let (life, alone) = (&lives[asked.device], !shared.contains(&asked.device));
                self.no_wrong_done(&asked, answer, life, alone);
                self.no_wrong_failed(&asked, answer, life);
            }
        }
        for (device, life) in lives.iter().enumerate().filter(|(device, _)| !holding.contains(device)) {
            self.no_late_drive(device, life);
        }
    }

    fn answered_once_in_time(&mut self, asked: &Asked) {
        let Asked { asked_ms, ended_ms, end, .. } = asked;
        match end {
            End::Answered(_) => {
                let late = (ended_ms - asked_ms).saturating_sub(LIMIT_MS + self.held_ms(*asked_ms, *ended_ms));
                self.latest_ms = self.latest_ms.max(late);
                if late > LATE_MS {
                    self.wrong.push(format!("answered {late} ms late: {asked:?}"));
                }
            }
            End::Broken(_) if self.one_life(*asked_ms, *ended_ms) => {
                self.wrong.push(format!("not answered by a hub that lived: {asked:?}"));
            }
            End::Broken(_) | End::Vanished => {}
        }
    }

    /// Semantics 9, phantom success.
    fn no_wrong_done(&mut self, asked: &Asked, answer: &Json, life: &Life, alone: bool) {
        if answer["success"] != true {
            return;
        }
        let Asked { asked_ms, ended_ms, wish, .. } = asked;
        // A device that lost its supply on the way of the answer has not said so yet.
        let reborn = life.starts.iter().any(|at| asked_ms <= at && *at <= ended_ms + IGNORANCE_MS);
        let at_the_end = life.at(*ended_ms + 20) == *wish || life.at(*ended_ms) == *wish;
        let sometime = at_the_end
            || life.at(*asked_ms) == *wish
            || life.moves.iter().any(|(at, to)| asked_ms <= at && *at <= ended_ms + 20 && to == wish);
        if !sometime || (alone && !reborn && !at_the_end) {
            self.wrong.push(format!("said to be done, and was not: {asked:?}, moves {:?}", around(life, asked)));
        }
    }

    /// Semantics 9, phantom failure: what moved was no other call's doing, and stayed.
    fn no_wrong_failed(&mut self, asked: &Asked, answer: &Json, life: &Life) {
        if answer["result"] != "failed" || answer["outcome"] == "superseded" {
            return;
        }
        let Asked { asked_ms, ended_ms, wish, device, .. } = asked;
        let moved = life.moves.iter().any(|(at, to)| asked_ms <= at && at <= ended_ms && to == wish);
        let others = self.asked.iter().filter(|other| {
            other.device == *device && other.wish == *wish && other.asked_ms != *asked_ms && other.overlaps(asked)
        });
        if moved && life.at(*ended_ms) == *wish && others.count() == 0 {
            self.wrong.push(format!("said not to be done, and was: {asked:?}, moves {:?}", around(life, asked)));
        }
    }

    /// Semantics 6.1, 5.8: each drive is some call's, and begins before that call has ended in whatever way it did.
    fn no_late_drive(&mut self, device: usize, life: &Life) {
        for (at, to) in &life.moves {
            let fell = *to == 0.0 && life.starts.iter().any(|start| start + 500 >= *at && *at + 3_000 >= *start);
            let explained =
                self.asked.iter().filter(|asked| asked.device == device && asked.wish == *to).any(|asked| {
                    let limit = asked.asked_ms + LIMIT_MS;
                    let until = match &asked.end {
                        End::Answered(answer) if answer["outcome"] == "working" => limit,
                        End::Answered(_) => asked.ended_ms,
                        End::Vanished => limit,
                        // What a dead hub had sent ends with the next hub's welcome.
                        End::Broken(_) => {
                            let next = self.lives.iter().map(|(began, _)| *began).find(|began| *began > asked.asked_ms);
                            let met = life.welcomes.iter().find(|at| next.is_some_and(|next| **at >= next));
                            met.copied().unwrap_or(limit).min(limit)
                        }
                    };
                    asked.asked_ms <= *at + 20 && *at <= until + IGNORANCE_MS + self.held_ms(asked.asked_ms, until)
                });
            if !fell && !explained {
                let near: Vec<_> =
                    self.asked.iter().filter(|a| a.device == device && a.asked_ms <= *at).rev().take(3).collect();
                self.late_drives
                    .push(format!("device {device} moved to {to} at {at}, nobody's wish then; before: {near:?}"));
            }
        }
    }

    /// What was answered, by outcome, and how often without a record.
    pub(crate) fn outcomes(&self) -> BTreeMap<String, u64> {
        let mut all = BTreeMap::new();
        for asked in &self.asked {
            let word = match &asked.end {
                End::Answered(answer) => answer["outcome"].as_str().unwrap_or("no outcome").to_owned(),
                End::Vanished => "(caller gone)".to_owned(),
                End::Broken(_) => "(hub gone)".to_owned(),
            };
            *all.entry(word).or_default() += 1;
            if matches!(&asked.end, End::Answered(answer) if answer["recorded"] == false) {
                *all.entry("(answered without a record)".to_owned()).or_default() += 1;
            }
        }
        all
    }
}

fn around<'a>(life: &'a Life, asked: &Asked) -> Vec<&'a (u64, f64)> {
    let (from, to) = (asked.asked_ms.saturating_sub(2_000), asked.ended_ms + 2_000);
    life.moves.iter().filter(|(at, _)| (from..to).contains(at)).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn asked(wish: f64, asked_ms: u64, ended_ms: u64, answer: Json) -> Asked {
        Asked { device: 0, wish, asked_ms, ended_ms, end: End::Answered(answer) }
    }

    fn judged(asked: Vec<Asked>, moves: &[(u64, f64)], lives: &[(u64, u64)]) -> History {
        let mut history = History { asked, lives: lives.to_vec(), ..History::default() };
        history.judge(&[Life { moves: moves.to_vec(), starts: vec![0], welcomes: vec![10, 9_000] }], &[], &[]);
        history
    }

    const ALWAYS: &[(u64, u64)] = &[(0, u64::MAX)];

    fn done() -> Json {
        json!({"success": true, "result": "confirmed", "outcome": "converged", "operation": "a"})
    }

    #[test]
    fn what_is_true_is_no_mistake() {
        let history = judged(vec![asked(1.0, 5_000, 5_600, done())], &[(5_100, 1.0)], ALWAYS);
        assert_eq!((history.wrong, history.late_drives), (vec![], vec![]));
    }

    #[test]
    fn done_is_wrong_where_nothing_moved_or_it_went_back() {
        for moves in [&[][..], &[(5_100, 1.0), (5_300, 0.0)][..]] {
            assert_eq!(judged(vec![asked(1.0, 5_000, 5_600, done())], moves, ALWAYS).wrong.len(), 1, "{moves:?}");
        }
    }

    #[test]
    fn failed_is_wrong_where_it_moved_and_stayed() {
        let failed = json!({"success": false, "result": "failed", "outcome": "contradicted", "operation": "a"});
        assert_eq!(judged(vec![asked(1.0, 5_000, 5_600, failed)], &[(5_100, 1.0)], ALWAYS).wrong.len(), 1);
    }

    #[test]
    fn a_drive_after_the_answer_or_after_the_next_hub_is_late() {
        let unknown = json!({"success": false, "result": "unconfirmed", "outcome": "timed_out", "operation": "a"});
        assert_eq!(judged(vec![asked(1.0, 5_000, 8_000, unknown)], &[(8_700, 1.0)], ALWAYS).late_drives.len(), 1);
        let broken = Asked { end: End::Broken(String::new()), ..asked(1.0, 7_000, 7_100, Json::Null) };
        let two = &[(0, 7_050), (8_500, u64::MAX)];
        assert_eq!(judged(vec![broken.clone()], &[(9_700, 1.0)], two).late_drives.len(), 1, "sent again");
        assert_eq!(judged(vec![broken], &[(7_200, 1.0)], two).late_drives.len(), 0, "sent before");
    }

    #[test]
    fn a_hub_that_lives_answers() {
        let broken = Asked { end: End::Broken(String::new()), ..asked(1.0, 7_000, 7_100, Json::Null) };
        assert_eq!(judged(vec![broken], &[], ALWAYS).wrong.len(), 1);
        assert_eq!(judged(vec![asked(1.0, 5_000, 16_000, done())], &[(5_100, 1.0)], ALWAYS).wrong.len(), 1, "too late");
    }

    #[test]
    fn a_record_agrees_or_says_that_it_is_amended() {
        assert!(agrees("converged", &json!({"outcome": "converged"})));
        assert!(agrees("timed_out", &json!({"outcome": "timed_out", "late_success": true})));
        assert!(agrees("working", &json!({"outcome": "interrupted"})));
        assert!(!agrees("converged", &json!({"outcome": "interrupted"})));
        assert!(!agrees("converged", &json!({})));
    }
}
