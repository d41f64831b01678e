//! `truetwin audit`, `audit stats`, `dispute`: on the files, so that they work whether or not a hub runs.

use std::{collections::BTreeSet, fmt::Write as _, path::Path};

use anyhow::Context as _;
use jiff::{Timestamp, tz::TimeZone};

use super::{AuditArgs, AuditCommand, Exit, Failure, say, table::table, unexpected};
use crate::{
    audit::{self, CallerUse, Event, Filter, Record, Stats, Thing, Want, bounded},
    control::{self, Request, Response},
    data::DataFolder,
    mcp::Tool,
};

/// How many lines of hints and the like are shown; the figures count all.
const SHOWN_MAX: usize = 20;

/// How much of the user's words the table shows, characters; `--json` has all that was kept.
const USER_CHARS_MAX: usize = 24;

pub(super) fn run(args: AuditArgs, folder: &Path) -> anyhow::Result<Exit> {
    let found = audit::read(folder).context("the audit cannot be read")?;
    for note in found.notes() {
        eprintln!("truetwin: {note}");
    }
    let filter = args.filter()?;
    let wanted: Vec<&Record> = found.records.iter().filter(|record| filter.wants(record)).collect();
    if let Some(AuditCommand::Stats { json }) = args.command {
        let tools: Vec<&str> = Tool::ALL.iter().map(|tool| tool.as_str()).collect();
        let stats = Stats::of(wanted, &tools, endpoints(folder));
        return say(&if json { stats_json(&stats).to_string() + "\n" } else { shown(&stats) });
    }
    if args.json {
        let lines = wanted.iter().map(|record| serde_json::to_string(record).expect("it was read from JSON") + "\n");
        return say(&lines.collect::<String>());
    }
    let disputed: BTreeSet<&str> =
        found.records.iter().filter(|r| r.event == Event::Dispute).flat_map(|r| r.operations()).collect();
    if wanted.is_empty() {
        return say("no call\n");
    }
    say(&listed(&wanted, &disputed))
}

impl AuditArgs {
    fn filter(&self) -> Result<Filter, Failure> {
        let since = self.since.as_deref().map(|text| audit::since(text, Timestamp::now())).transpose();
        let since = since.map_err(|error| Failure { exit: Exit::Usage, message: format!("--since: {error}") })?;
        let (caller, device, tool) = (self.caller.clone(), self.device.clone(), self.tool.clone());
        Ok(Filter { caller, device, tool, since, failed: self.failed })
    }
}

/// `truetwin dispute`.
#[expect(clippy::wildcard_enum_match_arm, reason = "an answer to another question is one mistake, whichever it is")]
pub(super) fn dispute(what: String, note: Option<String>, folder: &Path) -> anyhow::Result<Exit> {
    let usage = |message: String| Failure { exit: Exit::Usage, message };
    let response = match control::ask(folder, &Request::Dispute { what: what.clone(), note: note.clone() }) {
        Err(control::Error::NoHub { .. }) if folder.exists() => {
            // No hub, so the folder can be had, and with it the file.
            let data = DataFolder::open_offline(folder)?;
            let found = audit::read(data.path()).context("the audit cannot be read")?;
            let disputed = audit::dispute(found.records.iter(), &what, note.as_deref());
            let (record, call) = disputed.map_err(|error| usage(error.to_string()))?;
            let response = disputed_by(&record, call);
            audit::append_offline(data.path(), record).context("the audit cannot be written")?;
            response
        }
        answered => answered?,
    };
    match response {
        Response::Disputed { operation, device, at, say: said } => {
            let operation = operation.map(|operation| format!(", operation {operation}")).unwrap_or_default();
            say(&format!("disputed: {device} at {}{operation}\nit was said: {said}\n", short(&at)))
        }
        other => unexpected(&other),
    }
}

/// What the owner is told of a dispute.
fn disputed_by(record: &Record, call: &Record) -> Response {
    Response::Disputed {
        operation: record.operation.clone(),
        device: record.things.first().map(|thing| thing.device.clone()).unwrap_or_default(),
        at: call.at.clone(),
        say: call.say.clone().unwrap_or_default(),
    }
}

/// The callers of all access points that are known: those from which no call arrived are to be seen as well.
fn endpoints(folder: &Path) -> Vec<String> {
    let name = |name: String| format!("endpoint:{name}");
    match control::ask(folder, &Request::EndpointList) {
        Ok(Response::Endpoints { endpoints }) => endpoints.into_iter().map(|e| name(e.name)).collect(),
        // Only names are read, and a file that cannot be is somebody else's complaint.
        Ok(_) | Err(_) => crate::data::endpoint_names(folder).unwrap_or_default().into_iter().map(name).collect(),
    }
}

/// Month, day and time of an RFC 3339 time, in this machine's time zone.
fn short(at: &str) -> String {
    let parsed = at.parse::<Timestamp>().map(|at| at.to_zoned(TimeZone::system()));
    parsed.map_or_else(|_| at.to_owned(), |at| at.strftime("%m-%d %H:%M:%S").to_string())
}

fn listed(records: &[&Record], disputed: &BTreeSet<&str>) -> String {
    let rows: Vec<[String; 10]> = records.iter().map(|record| row(record, disputed)).collect();
    table(["time", "caller", "user said", "tool", "device", "wanted", "result", "by", "took", "answered"], &rows)
}

fn row(record: &Record, disputed: &BTreeSet<&str>) -> [String; 10] {
    let word = |text: &Option<String>| text.clone().unwrap_or_default();
    let unsure = if record.clock.is_some() { "?" } else { "" };
    let resolved: Vec<String> = record.things.iter().map(|thing| thing.device.clone()).collect();
    let more = if record.more_things > 0 { format!(" +{}", record.more_things) } else { String::new() };
    let device = match (record.heard.as_deref(), resolved.as_slice()) {
        (Some(heard), [one]) if heard == one => one.clone(),
        (Some(heard), []) => format!("{heard} → ?"),
        (Some(heard), all) => format!("{heard} → {}{more}", all.join(",")),
        (None, all) => format!("{}{more}", all.join(",")),
    };
    let wanted: BTreeSet<String> = record.things.iter().filter_map(wanted).collect();
    let result = match record.event {
        Event::Dispute => "DISPUTED".to_owned(),
        Event::TurnedAway => word(&record.refusal),
        Event::Call | Event::Confirmation | Event::Other if record.cancelled => "cancelled".to_owned(),
        Event::Call | Event::Confirmation | Event::Other => {
            let why = record.refusal.clone().or_else(|| record.reason.clone()).or_else(|| record.outcome.clone());
            let result = word(&record.result);
            let result = match why.filter(|_| record.result.as_deref() != Some("confirmed")) {
                Some(why) => format!("{result}: {why} at {}", record.stage.as_deref().unwrap_or("-")),
                None => result,
            };
            let is_disputed = record.operations().any(|operation| disputed.contains(operation));
            if is_disputed { format!("{result} (disputed)") } else { result }
        }
    };
    let evidence = record.confirmed_by.clone().filter(|word| word != "none").unwrap_or_default();
    let took = record.duration_ms.map(|ms| format!("{:.2}s", seconds(ms))).unwrap_or_default();
    let said = record.note.clone().or_else(|| record.say.clone()).unwrap_or_default();
    let operation = record.operation.as_ref().map(|operation| format!(" [{operation}]")).unwrap_or_default();
    let time = format!("{}{unsure}", short(&record.at));
    let wanted = wanted.into_iter().collect::<Vec<_>>().join(",");
    let user = record.user_request.as_deref().map(|words| bounded(words, USER_CHARS_MAX)).unwrap_or_default();
    let tool = word(&record.tool);
    [time, record.caller.clone(), user, tool, device, wanted, result, evidence, took, said + &operation]
}

fn wanted(thing: &Thing) -> Option<String> {
    let property = thing.property.as_deref().unwrap_or_default();
    match &thing.want {
        None => thing.action.clone(),
        Some(Want::Toggle) => Some(format!("{property}: toggle")),
        Some(Want::By(amount)) => Some(format!("{property}: {amount:+}")),
        Some(Want::To(serde_json::Value::String(text))) => Some(format!("{property}: {text}")),
        Some(Want::To(value)) => Some(format!("{property}: {value}")),
    }
}

#[expect(clippy::cast_precision_loss, reason = "exact up to 2^53 milliseconds")]
fn seconds(ms: u64) -> f64 {
    ms as f64 / 1_000.0
}

/// The figures for a person.
fn shown(stats: &Stats) -> String {
    let mut text = String::new();
    let mut section = |head: &str, body: String| {
        write!(text, "{}{head}\n{body}", if text.is_empty() { "" } else { "\n" }).expect("a string takes everything");
    };
    let callers = stats.callers.iter().map(|(caller, used)| of_caller(caller, used)).collect::<Vec<_>>();
    section("callers", table(["caller", "calls", "moved or meant to", "confirmed", "last call"], &callers));
    let tools: Vec<[String; 4]> = stats
        .tools
        .iter()
        .map(|(tool, used)| {
            let results =
                used.results.iter().map(|(result, times)| format!("{result} {times}")).collect::<Vec<_>>().join(", ");
            let mean = used.total_ms / used.calls.max(1);
            let times = format!("{:.2}s / {:.2}s", seconds(mean), seconds(used.longest_ms));
            [tool.clone(), used.calls.to_string(), times, results]
        })
        .collect();
    section("tools", table(["tool", "calls", "mean / longest", "results"], &tools));
    if !stats.never_used.is_empty() {
        section("tools that nobody called", format!("{}\n", stats.never_used.join(", ")));
    }
    let wrong: Vec<[String; 5]> = stats
        .wrong_arguments
        .iter()
        .take(SHOWN_MAX)
        .map(|w| [w.times.to_string(), w.tool.clone(), w.parameter.clone(), w.sent.clone(), w.refusal.clone()])
        .collect();
    section(
        "arguments that models get wrong",
        or_none(table(["times", "tool", "argument", "sent", "refusal"], &wrong), wrong.len()),
    );
    let refuted: Vec<[String; 4]> =
        latest(&stats.refuted).map(|r| [short(&r.at), r.device.clone(), r.outcome.clone(), r.stage.clone()]).collect();
    let head = format!(
        "false successes avoided (the device had acknowledged, nothing was confirmed): {}",
        stats.refuted.len()
    );
    section(&head, or_none(table(["time", "device", "how it ended", "stage"], &refuted), refuted.len()));
    let hints: Vec<[String; 5]> = latest(&stats.hints)
        .map(|h| [short(&h.at), h.caller.clone(), h.device.clone(), h.kind.as_str().to_owned(), h.answered.clone()])
        .collect();
    let head = format!("hints at wrong final words, which the hub cannot hear: {}", stats.hints.len());
    section(&head, or_none(table(["time", "caller", "device", "what", "the call before was"], &hints), hints.len()));
    let disputed: Vec<[String; 2]> = latest(&stats.disputed).map(|(at, of)| [short(at), of.clone()]).collect();
    section(&format!("disputed: {}", stats.disputed.len()), or_none(table(["time", "of"], &disputed), disputed.len()));
    text
}

fn latest<T>(all: &[T]) -> impl Iterator<Item = &T> {
    all.iter().skip(all.len().saturating_sub(SHOWN_MAX))
}

fn or_none(table: String, rows: usize) -> String {
    if rows == 0 { "none\n".to_owned() } else { table }
}

fn of_caller(caller: &str, used: &CallerUse) -> [String; 5] {
    let last =
        used.last.as_deref().map(|at| format!("{} {}", short(at), used.last_tool.as_deref().unwrap_or_default()));
    let last = last.unwrap_or_else(|| "no call arrived".to_owned());
    [caller.to_owned(), used.calls.to_string(), used.wishes.to_string(), used.confirmed.to_string(), last]
}

fn stats_json(stats: &Stats) -> serde_json::Value {
    let tool = |(name, used): (&String, &audit::ToolUse)| {
        (
            name.clone(),
            serde_json::json!({"calls": used.calls, "results": used.results, "longest_ms": used.longest_ms, "total_ms": used.total_ms}),
        )
    };
    let caller = |(name, used): (&String, &CallerUse)| {
        (
            name.clone(),
            serde_json::json!({"calls": used.calls, "wishes": used.wishes, "confirmed": used.confirmed, "last": used.last, "last_tool": used.last_tool}),
        )
    };
    serde_json::json!({
        "tools": stats.tools.iter().map(tool).collect::<serde_json::Map<_, _>>(),
        "never_used": stats.never_used,
        "callers": stats.callers.iter().map(caller).collect::<serde_json::Map<_, _>>(),
        "wrong_arguments": stats.wrong_arguments.iter().map(|w| serde_json::json!({"tool": w.tool, "parameter": w.parameter, "refusal": w.refusal, "sent": w.sent, "times": w.times})).collect::<Vec<_>>(),
        "false_successes_avoided": stats.refuted.iter().map(|r| serde_json::json!({"at": r.at, "device": r.device, "outcome": r.outcome, "stage": r.stage})).collect::<Vec<_>>(),
        "hints": stats.hints.iter().map(|h| serde_json::json!({"at": h.at, "caller": h.caller, "device": h.device, "kind": h.kind.as_str(), "answered": h.answered})).collect::<Vec<_>>(),
        "disputed": stats.disputed.iter().map(|(at, of)| serde_json::json!({"at": at, "of": of})).collect::<Vec<_>>(),
    })
}
