//! What the records say when they are looked at together. Pure: records in, figures out.
//!
//! The last three kinds of [`Hint`] are about something that the hub cannot hear: whether the assistant's words were what the
//! answer said. A person who says it again, asks whether it is so, or wants the opposite at once was perhaps told something
//! wrong. They are hints, no proof.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use jiff::{SignedDuration, Timestamp};

use super::record::{Event, Record, Thing, Want};

/// The same wish again within this by the same caller is a hint.
const AGAIN_WITHIN: SignedDuration = SignedDuration::from_secs(60);

/// A question about a thing within this after its success is a hint.
const ASKED_WITHIN: SignedDuration = SignedDuration::from_secs(30);

/// An opposite wish within this is a hint.
const OPPOSITE_WITHIN: SignedDuration = SignedDuration::from_secs(10);

/// Refusals that mean that a model sent something wrong.
const WRONG: [&str; 7] = [
    "unknown_device",
    "ambiguous_name",
    "unknown_property",
    "missing_argument",
    "unknown_argument",
    "invalid_value",
    "unknown_tool",
];

/// All figures.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stats {
    /// By tool, of those that were called.
    pub tools: BTreeMap<String, ToolUse>,
    /// Tools of the catalogue that nobody called.
    pub never_used: Vec<String>,
    /// By caller, also of those that never called.
    pub callers: BTreeMap<String, CallerUse>,
    /// Arguments that were refused, most often first.
    pub wrong_arguments: Vec<WrongArgument>,
    /// What a hub that takes an acknowledgement for the deed would have called done, oldest first.
    pub refuted: Vec<Refuted>,
    /// What hints at wrong final words, oldest first.
    pub hints: Vec<Hint>,
    /// Disputes: when, and of what.
    pub disputed: Vec<(String, String)>,
}

/// How a tool was used.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolUse {
    /// Calls.
    pub calls: u64,
    /// Calls by the result of their answers; `cancelled` has none, `turned_away` was not looked at.
    pub results: BTreeMap<String, u64>,
    /// The longest that one took, milliseconds.
    pub longest_ms: u64,
    /// All together, milliseconds.
    pub total_ms: u64,
}

/// What a caller did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallerUse {
    /// Calls.
    pub calls: u64,
    /// Of these, how many were about moving something.
    pub wishes: u64,
    /// Of those, how many ended with success.
    pub confirmed: u64,
    /// When the last one came in, as it is written; `None`: no call arrived.
    pub last: Option<String>,
    /// Its tool.
    pub last_tool: Option<String>,
}

/// An argument that models get wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrongArgument {
    /// Which tool.
    pub tool: String,
    /// Which parameter.
    pub parameter: String,
    /// The refusal.
    pub refusal: String,
    /// What was sent.
    pub sent: String,
    /// How often.
    pub times: u64,
}

/// A false success that was avoided: the device had said that it has the command, and it was never confirmed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refuted {
    /// When.
    pub at: String,
    /// Which device.
    pub device: String,
    /// How it ended.
    pub outcome: String,
    /// Where it stopped.
    pub stage: String,
}

/// What hints at wrong final words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hint {
    /// When the second call came.
    pub at: String,
    /// Who.
    pub caller: String,
    /// About which device.
    pub device: String,
    /// What it is.
    pub kind: HintKind,
    /// What the first of the two calls was answered.
    pub answered: String,
}

/// The kinds of hints.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum HintKind {
    /// The same wish again.
    Again,
    /// A question about the state right after a success.
    Asked,
    /// The opposite wish.
    Opposite,
}

impl HintKind {
    /// In words.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Again => "the same wish again within 60 s",
            Self::Asked => "asked how it is within 30 s after a success",
            Self::Opposite => "the opposite wish within 10 s",
        }
    }
}

/// The latest wish of a caller on a property.
struct Wished<'a> {
    at: Timestamp,
    want: &'a Want,
    result: &'a str,
}

impl Stats {
    /// The figures of these records, oldest first. `tools`: the catalogue; `callers`: those that are known to exist.
    pub fn of<'a>(
        records: impl IntoIterator<Item = &'a Record>,
        tools: &[&str],
        callers: impl IntoIterator<Item = String>,
    ) -> Self {
        let mut stats =
            Self { callers: callers.into_iter().map(|c| (c, CallerUse::default())).collect(), ..Self::default() };
        let mut wrong: HashMap<(String, String, String, String), u64> = HashMap::new();
        let mut wished: HashMap<(&str, &str, &str), Wished<'a>> = HashMap::new();
        let mut refuted: BTreeSet<&str> = BTreeSet::new();
        for record in records {
            match record.event {
                Event::Call | Event::TurnedAway => {}
                Event::Dispute => {
                    let of = record.operation.clone().or_else(|| record.things.first().map(|t| t.device.clone()));
                    stats.dispute(&record.at, of.unwrap_or_default(), record.operation.is_some());
                    continue;
                }
                Event::Confirmation | Event::Other => continue,
            }
            stats.used(record);
            if let Some(key) = wrong_argument(record) {
                *wrong.entry(key).or_default() += 1;
            }
            for thing in &record.things {
                stats.refute(record, thing, &mut refuted);
                stats.hint(record, thing, &mut wished);
            }
        }
        let unused = tools.iter().filter(|tool| !stats.tools.contains_key(**tool));
        stats.never_used = unused.map(|tool| (*tool).to_owned()).collect();
        let argument =
            |((tool, parameter, refusal, sent), times)| WrongArgument { tool, parameter, refusal, sent, times };
        stats.wrong_arguments = wrong.into_iter().map(argument).collect();
        stats.wrong_arguments.sort_by(|a, b| {
            let key = |w: &WrongArgument| (w.tool.clone(), w.parameter.clone(), w.sent.clone());
            b.times.cmp(&a.times).then_with(|| key(a).cmp(&key(b)))
        });
        stats
    }

    /// What is said twice of one operation is one wrong word. Calls that have no id cannot be told apart by it.
    fn dispute(&mut self, at: &str, of: String, is_operation: bool) {
        if !is_operation || self.disputed.iter().all(|(_, known)| *known != of) {
            self.disputed.push((at.to_owned(), of));
        }
    }

    fn used(&mut self, record: &Record) {
        let tool = record.tool.clone().unwrap_or_default();
        let turned_away = record.event == Event::TurnedAway;
        let result = match (&record.result, record.cancelled) {
            _ if turned_away => "turned_away",
            (Some(result), _) => result,
            (None, true) => "cancelled",
            (None, false) => "unknown",
        };
        // A tool that does not exist is no use of a tool.
        if !turned_away {
            let of_tool = self.tools.entry(tool.clone()).or_default();
            of_tool.calls += 1;
            *of_tool.results.entry(result.to_owned()).or_default() += 1;
            of_tool.longest_ms = of_tool.longest_ms.max(record.duration_ms.unwrap_or(0));
            of_tool.total_ms = of_tool.total_ms.saturating_add(record.duration_ms.unwrap_or(0));
        }
        let of_caller = self.callers.entry(record.caller.clone()).or_default();
        of_caller.calls += 1;
        of_caller.wishes += u64::from(record.wants_something());
        of_caller.confirmed += u64::from(record.is_success() && record.wants_something());
        of_caller.last = Some(record.at.clone());
        of_caller.last_tool = Some(tool);
    }

    fn refute<'a>(&mut self, record: &'a Record, thing: &'a Thing, seen: &mut BTreeSet<&'a str>) {
        let moved = thing.want.is_some() || thing.action.is_some();
        let Some(outcome) = thing.outcome.as_deref().filter(|_| moved && thing.acknowledged) else { return };
        let not_done = !matches!(outcome, "converged" | "already" | "clamped" | "working" | "superseded");
        let first = thing.operation.as_deref().is_none_or(|operation| seen.insert(operation));
        if not_done && first {
            self.refuted.push(Refuted {
                at: record.at.clone(),
                device: thing.device.clone(),
                outcome: thing.reason.clone().unwrap_or_else(|| outcome.to_owned()),
                stage: thing.stage.clone().unwrap_or_default(),
            });
        }
    }

    fn hint<'a>(
        &mut self,
        record: &'a Record,
        thing: &'a Thing,
        wished: &mut HashMap<(&'a str, &'a str, &'a str), Wished<'a>>,
    ) {
        let Some(at) = record.when() else { return };
        let mut tell = |kind, before: &Wished<'_>| {
            self.hints.push(Hint {
                at: record.at.clone(),
                caller: record.caller.clone(),
                device: thing.device.clone(),
                kind,
                answered: before.result.to_owned(),
            });
        };
        let Some(want) = &thing.want else {
            let about = |(caller, device, _): &&(&str, &str, &str)| *caller == record.caller && *device == thing.device;
            let of_thing = wished.iter().filter(|(key, _)| about(key));
            let latest = of_thing.map(|(_, wished)| wished).max_by_key(|wished| wished.at);
            let looked = record.tool.as_deref() == Some("get_device_state");
            if let Some(before) = latest.filter(|b| looked && b.result == "confirmed" && within(b.at, at, ASKED_WITHIN))
            {
                tell(HintKind::Asked, before);
            }
            return;
        };
        let key = (record.caller.as_str(), thing.device.as_str(), thing.property.as_deref().unwrap_or_default());
        // Whoever was asked something says it again in answering: that hints at nothing.
        if let Some(before) = wished.get(&key).filter(|before| before.result != "ask_user") {
            if same(before.want, want) && within(before.at, at, AGAIN_WITHIN) {
                tell(HintKind::Again, before);
            } else if opposite(before.want, want) && within(before.at, at, OPPOSITE_WITHIN) {
                tell(HintKind::Opposite, before);
            }
        }
        let result = record.result.as_deref().unwrap_or("cancelled");
        wished.insert(key, Wished { at, want, result });
    }
}

fn within(before: Timestamp, after: Timestamp, most: SignedDuration) -> bool {
    // A clock that was set back in between says nothing.
    let between = after.duration_since(before);
    !between.is_negative() && between <= most
}

/// Whether two wishes are for the same. Steps are not: a bit brighter, and a bit more, is how people talk; nor is what is masked.
fn same(one: &Want, other: &Want) -> bool {
    match (one, other) {
        (Want::To(one), Want::To(other)) => one == other && one != super::MASK,
        (Want::Toggle | Want::By(_) | Want::To(_), _) => false,
    }
}

fn opposite(one: &Want, other: &Want) -> bool {
    match (one, other) {
        (Want::To(one), Want::To(other)) => one.is_boolean() && other.is_boolean() && one != other,
        (Want::By(one), Want::By(other)) => one * other < 0.0,
        (Want::Toggle, Want::Toggle) => true,
        _ => false,
    }
}

fn wrong_argument(record: &Record) -> Option<(String, String, String, String)> {
    let refusal = record.refusal.as_deref().filter(|refusal| WRONG.contains(refusal))?;
    let parameter = match refusal {
        "unknown_tool" => "(the tool itself)",
        "unknown_device" | "ambiguous_name" => record.parameter.as_deref().unwrap_or("device"),
        _ => record.parameter.as_deref().unwrap_or("?"),
    };
    let nothing = if refusal == "missing_argument" { "(nothing)" } else { "?" };
    let tool = record.tool.as_deref().filter(|_| refusal == "unknown_tool");
    // A name that nothing answers to is what was heard; of another argument nothing is known but what the record says.
    let heard = record.heard.as_deref().filter(|_| matches!(refusal, "unknown_device" | "ambiguous_name"));
    let sent = record.sent.as_deref().or(tool).or(heard).unwrap_or(nothing);
    Some((record.tool.clone().unwrap_or_default(), parameter.to_owned(), refusal.to_owned(), sent.to_owned()))
}
