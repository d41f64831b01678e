//! Inputs and decisions in a few words each, for whoever reads a replay. No sentences: those are [`crate::answer`]'s.

use std::{
    fmt::{Display, Write as _},
    time::{Duration, Instant},
};

use crate::{
    property::{PropertyName, Value},
    twin::{
        input::{ActionResult, Body, Cause, Command, Effect, Found, Hello, Input, Memory, Report, Status},
        wish::{Arguments, Target, Wish},
        words::{OpId, Refusal, Reply, Settled, StateReport},
    },
};

/// An input that was taken in at `now`.
pub fn input(now: Instant, input: &Input) -> String {
    let within = |by: &Instant| match by.checked_duration_since(now) {
        Some(left) => format!("answer within {}", ms(left)),
        None => "too late to answer".to_owned(),
    };
    match input {
        Input::Set { op, caller, wish, answer_by } => {
            format!("{caller} wishes {} ({op}, {})", wished(wish), within(answer_by))
        }
        Input::Run { op, caller, action, args, answer_by } => {
            format!("{caller} runs {action}{} ({op}, {})", arguments(args), within(answer_by))
        }
        Input::Query { op, answer_by } => format!("the state is asked for ({op}, {})", within(answer_by)),
        Input::Cancel { op } => format!("nobody waits for {op} any more"),
        Input::Connected { connection } => format!("connection {connection} opens"),
        Input::Disconnected { connection } => format!("connection {connection} ends"),
        Input::Greeted { session, hello } => greeted(session, hello),
        Input::Heard(report) => heard(report),
        Input::Unreadable => "something that cannot be read".to_owned(),
        Input::Written { op } => format!("{op} is written to the socket"),
        Input::NotWritten { op } => format!("{op} never reached the socket"),
        Input::Verified { question, found } => match found {
            Found::Value(value) => format!("the sensor says {value} ({question})"),
            Found::Offline => format!("the sensor is offline ({question})"),
            Found::Silent => format!("the sensor is silent ({question})"),
        },
        Input::BusDown => "the bus is down".to_owned(),
        Input::BusUp => "the bus is back".to_owned(),
        Input::Restored(memory) => restored(memory),
        Input::ShutDown => "the hub stops".to_owned(),
        Input::Removed => "the device is removed".to_owned(),
        Input::Tick => "time".to_owned(),
    }
}

/// A decision.
pub fn effect(effect: &Effect) -> String {
    match effect {
        Effect::Send(command) => sent(command),
        Effect::Ask { question, device, property, .. } => format!("ask {device}.{property} ({question})"),
        Effect::Reply { op, reply } => match reply {
            Reply::Settled(settled) => format!("answer {op}: {}", ended(settled)),
            Reply::Refused(refusal) => format!("answer {op}: refused: {}", refused(refusal)),
        },
        Effect::State { op, state } => match state {
            Ok(state) => format!("tell {op}: {}", told(state)),
            Err(refusal) => format!("tell {op}: refused: {}", refused(refusal)),
        },
        Effect::StageLeft { stage, spent } => format!("{stage} took {}", ms(*spent)),
        Effect::Ended { outcome, stage, reason, elapsed } => {
            format!("ended: {outcome} at {stage}{} after {}", because(*reason), ms(*elapsed))
        }
        Effect::LateSuccess { op } => format!("{op} is done after all"),
        Effect::Reverted { op, property } => format!("{property} went back after {op}"),
        Effect::Owed { caller, correction } => {
            format!("owe {caller} a correction of {}: {}", correction.operation, ended(&correction.settled))
        }
        Effect::LocalOverride { property } => format!("{property} was changed at the device: that is held now"),
        Effect::Presence(presence) => presence.to_string(),
        Effect::Described(description) => {
            let names =
                description.properties.iter().map(|p| &p.name).chain(description.actions.iter().map(|a| &a.name));
            format!("it has {}", listed(names))
        }
        Effect::Malformed { of_seq, property, error } => match error {
            Some(error) => format!("tell it: {property} of report {of_seq}: {error}"),
            None => format!("tell it: it has no {property}, of report {of_seq}"),
        },
        Effect::StaleHello { of_seq } => format!("tell it: hello {of_seq} has a boot and a number of before"),
        Effect::Ignored(why) => format!("ignored: {}", why.as_str()),
    }
}

fn wished(wish: &Wish) -> String {
    let Wish { property, target, if_needed, valid_for } = wish;
    let mut text = match target {
        Target::To(value) => format!("{property} = {value}"),
        Target::By(amount) => format!("{property} by {amount:+}"),
        Target::Toggle => format!("{property} toggled"),
    };
    if let Some(age) = if_needed {
        write!(text, ", if not so within {}", ms(*age)).expect("writing to a string does not fail");
    }
    if let Some(time) = valid_for {
        write!(text, ", for {}", ms(*time)).expect("writing to a string does not fail");
    }
    text
}

fn greeted(session: &str, hello: &Hello) -> String {
    let Hello { boot, seq, description: _, status, cause, seen } = hello;
    format!("hello {seq} of {boot}, {}: {}{}; welcomed as {session}", why(*cause), values(status), finished(seen))
}

fn heard(report: &Report) -> String {
    let Report { boot, seq, retained, status, body } = report;
    let retained = if *retained { ", RETAINED" } else { "" };
    let said = match body {
        Body::Action { op, result, reason, eta, clamped } => {
            let eta = eta.map(|eta| format!(", {} to go", ms(eta))).unwrap_or_default();
            let clamped = if *clamped { ", brought into range" } else { "" };
            format!("{op} {}{}{eta}{clamped}", how_far(*result), because(*reason))
        }
        Body::State { op: Some(op), cause, seen } => format!("answers {op}, {}{}", why(*cause), finished(seen)),
        Body::State { op: None, cause, seen } => format!("state, {}{}", why(*cause), finished(seen)),
        Body::Heartbeat => "heartbeat".to_owned(),
    };
    let values = if status.is_empty() { String::new() } else { format!(": {}", values(status)) };
    format!("report {seq} of {boot}{retained}: {said}{values}")
}

fn restored(memory: &Memory) -> String {
    let Memory { connection, session, boot, in_flight, held, stale, ended, unaccepted, .. } = memory;
    let or_none = |text: Option<String>| text.unwrap_or_else(|| "none".to_owned());
    format!(
        "goes on: connection {}, session {}, boot {}, {} in flight, {} held, {} old values, {} ended, {} to be accepted",
        or_none(connection.map(|number| number.to_string())),
        or_none(session.as_ref().map(ToString::to_string)),
        or_none(boot.as_ref().map(ToString::to_string)),
        in_flight.len(),
        held.len(),
        stale.len(),
        ended.len(),
        unaccepted.len(),
    )
}

fn sent(command: &Command) -> String {
    match command {
        Command::Welcome { session } => format!("send welcome {session}"),
        Command::Set { op, property, value, ttl } => format!("send {property} = {value} ({op}, within {})", ms(*ttl)),
        Command::Run { op, action, args, ttl } => {
            format!("send run {action}{} ({op}, within {})", arguments(args), ms(*ttl))
        }
        Command::GetState { op, property: None } => format!("send a question ({op})"),
        Command::GetState { op, property: Some(property) } => format!("send a question for {property} ({op})"),
        Command::Withdraw { op } => format!("send withdrawal of {op}"),
    }
}

fn ended(settled: &Settled) -> String {
    let Settled { outcome, stage, reason, found, confirmed_by, elapsed, joined, .. } = settled;
    let found = found.as_ref().map(|found| format!(", found {}", found.value)).unwrap_or_default();
    let joined = joined.as_ref().map(|of| format!(", together with {of}")).unwrap_or_default();
    let by = if outcome.is_success() { format!(" by {}", confirmed_by.as_str()) } else { format!(" at {stage}") };
    format!("{outcome}{by}{}{found}{joined} after {}", because(*reason), ms(*elapsed))
}

fn refused(refusal: &Refusal) -> String {
    let word = refusal.word();
    match refusal {
        Refusal::InvalidValue { property, error } => format!("{word}: {property}: {error}"),
        Refusal::UnknownDevice { .. }
        | Refusal::AmbiguousName { .. }
        | Refusal::UnknownProperty { .. }
        | Refusal::MissingArgument { .. }
        | Refusal::UnknownArgument { .. }
        | Refusal::InvalidArgument { .. }
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
        | Refusal::ShuttingDown => word.to_string(),
    }
}

fn told(state: &StateReport) -> String {
    let readings: Vec<String> = state
        .readings
        .iter()
        .map(|(name, reading)| format!("{name} = {} ({})", reading.value, reading.trust))
        .collect();
    let values = if readings.is_empty() { "nothing".to_owned() } else { readings.join(", ") };
    format!("{}, {values}", state.presence)
}

fn values(status: &[Status]) -> String {
    if status.is_empty() {
        return "no values".to_owned();
    }
    let value = |s: &Status| format!("{} = {} ({})", s.property, s.value, s.evidence.as_str());
    status.iter().map(value).collect::<Vec<_>>().join(", ")
}

fn finished(seen: &[(PropertyName, OpId)]) -> String {
    let entry = |(property, op): &(PropertyName, OpId)| format!(", {property} was last {op}");
    seen.iter().map(entry).collect()
}

fn arguments(args: &Arguments) -> String {
    if args.is_empty() {
        return String::new();
    }
    let arg = |(name, value): &(PropertyName, Value)| format!("{name} = {value}");
    format!(" with {}", args.iter().map(arg).collect::<Vec<_>>().join(", "))
}

fn listed<T: Display>(names: impl Iterator<Item = T>) -> String {
    let names: Vec<String> = names.map(|name| name.to_string()).collect();
    if names.is_empty() { "nothing".to_owned() } else { names.join(", ") }
}

fn because(reason: Option<crate::twin::words::Reason>) -> String {
    reason.map(|reason| format!(" ({reason})")).unwrap_or_default()
}

fn why(cause: Cause) -> &'static str {
    match cause {
        Cause::Command => "by command",
        Cause::Local => "by hand",
        Cause::Boot => "just started",
        Cause::Periodic => "as it was due",
        Cause::Query => "as it was asked",
        Cause::Failsafe => "as the hub was gone",
        Cause::Unknown => "it does not say why",
    }
}

fn how_far(result: ActionResult) -> &'static str {
    match result {
        ActionResult::Received => "received",
        ActionResult::Executing => "executing",
        ActionResult::Working => "working",
        ActionResult::Completed => "completed",
        ActionResult::Failed => "failed",
        ActionResult::Rejected => "rejected",
        ActionResult::Unknown => "in an unknown word",
    }
}

/// Milliseconds, with their fraction only where there is one.
fn ms(duration: Duration) -> String {
    let us = duration.as_micros();
    match us % 1_000 {
        0 => format!("{} ms", us / 1_000),
        fraction => format!("{}.{fraction:03} ms", us / 1_000),
    }
}
