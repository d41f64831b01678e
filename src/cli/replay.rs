//! `truetwin replay`: what a hub recorded, stepped through the twin again.

use std::{
    fs::File,
    io::{self, BufReader, BufWriter, Write},
    path::Path,
};

use anyhow::Context as _;
use jiff::Timestamp;
use serde_json::{Value as Json, json};

use super::{Exit, Failure, ReplayArgs};
use crate::recording::{
    form,
    replay::{AtOdds, Compared, Replay, Step, Summary, Told},
    words,
};

/// Nanoseconds in a millisecond.
const NS_PER_MS: i64 = 1_000_000;

pub(super) fn run(args: &ReplayArgs) -> anyhow::Result<Exit> {
    let name = args.file.display().to_string();
    let mut replay = Replay::new(&name, BufReader::new(opened(&args.file)?), args.device.clone());
    let zero = replay.zero();
    let mut out = BufWriter::new(io::stdout().lock());
    // Stands above the first line of a recording, not above what is none.
    let mut heading = (!args.json).then(|| format!("{:>6}  {:>11}  {:<12}  what\n", "line", "seconds", "device"));
    for told in replay.by_ref() {
        // What was told before an error is part of the error's story.
        let told = told.inspect_err(|_| drop(out.flush())).map_err(usage)?;
        let text = if args.json { as_json(&told, zero).to_string() + "\n" } else { shown(&told) };
        let text = heading.take().unwrap_or_default() + &text;
        if !written(out.write_all(text.as_bytes()))? {
            return Ok(Exit::Success);
        }
    }
    let summary = replay.summary();
    let text = if args.json { summed_json(summary).to_string() + "\n" } else { summed(summary) };
    written(out.write_all(text.as_bytes()).and_then(|()| out.flush()))?;
    Ok(match summary.differences {
        0 if summary.is_whole() && !summary.is_open => Exit::Success,
        0 => Exit::NotConfirmed,
        _ => Exit::Differs,
    })
}

fn opened(file: &Path) -> anyhow::Result<File> {
    File::open(file).map_err(|error| {
        Failure { exit: Exit::Usage, message: format!("cannot read the recording {}: {error}", file.display()) }.into()
    })
}

/// A file that cannot be replayed is the wrong file, or a damaged one: the caller's to mend.
fn usage(error: crate::recording::replay::Error) -> anyhow::Error {
    Failure { exit: Exit::Usage, message: format!("{:#}", anyhow::Error::new(error)) }.into()
}

/// Whether there is still somebody who reads: one that has gone, as `head` does, is no mistake.
fn written(done: io::Result<()>) -> anyhow::Result<bool> {
    match done {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(error).context("cannot write to stdout"),
    }
}

/// A line of the table, with what was decided below it.
fn shown(told: &Told) -> String {
    let row = |line: u64, at: &str, device: &str, what: &str| format!("{line:>6}  {at:>11}  {device:<12}  {what}\n");
    match told {
        Told::Head { line, head } => {
            let since = i64::try_from(head.unix_ms).ok().filter(|ms| *ms > 0);
            let since = since.and_then(|ms| Timestamp::from_millisecond(ms).ok());
            let since = since.map(|at| format!(", {at:.3}")).unwrap_or_default();
            let own = env!("CARGO_PKG_VERSION");
            let own = if head.hub.starts_with(own) { String::new() } else { format!(", replayed by {own}") };
            row(*line, "0", "", &format!("a recording of truetwin {}{since}{own}", head.hub))
        }
        Told::Begins { line, device, at_ns } => row(*line, &seconds(*at_ns), device.as_str(), "its twin begins"),
        Told::Step(step) => stepped(step, &row),
        Told::Gap { line, device, missing } => {
            let what = format!("GAP: {missing} lines are missing; not stepped until its twin begins anew");
            row(*line, "", device.as_str(), &what)
        }
        Told::LeftOut { line, device, why } => row(*line, "", device.as_str(), &format!("not recorded: {why}")),
        Told::End { line, why } => row(*line, "", "", &format!("the recording ends: {why}")),
        Told::Torn { line } => row(*line, "", "", "the line is torn: the hub was killed here, or the file is cut"),
    }
}

fn stepped(step: &Step, row: &dyn Fn(u64, &str, &str, &str) -> String) -> String {
    let input = words::input(step.now, &step.input);
    let mut text = row(step.line, &seconds(step.at_ns), step.device.as_str(), &input);
    let mut below = |what: &str| text.push_str(&format!("{:35}{what}\n", ""));
    for effect in &step.effects {
        below(&format!("> {}", words::effect(effect)));
    }
    match &step.compared {
        Compared::Same => {}
        Compared::Differs { recorded } => {
            let at = first_difference(recorded, &step.decided);
            let of = |all: &[Json]| all.get(at).map_or_else(|| "nothing more".to_owned(), Json::to_string);
            below(&format!("! DIFFERS from what was recorded, at the {} decision", ordinal(at + 1)));
            below(&format!("! recorded: {}", of(recorded)));
            below(&format!("! decided:  {}", of(&step.decided)));
        }
        Compared::Fails => below("! DIFFERS: the twin fails over it, which it did not then"),
        Compared::Crashed { again: true } => below("! the actor crashed over it, and the twin fails over it now"),
        Compared::Crashed { again: false } => below("! the actor crashed over it; the twin does not fail over it now"),
    }
    text
}

fn first_difference(recorded: &[Json], decided: &[Json]) -> usize {
    recorded.iter().zip(decided).take_while(|(one, other)| one == other).count()
}

fn ordinal(number: usize) -> String {
    match number {
        1 => "1st".to_owned(),
        2 => "2nd".to_owned(),
        3 => "3rd".to_owned(),
        _ => format!("{number}th"),
    }
}

/// Nanoseconds as seconds, to the microsecond.
fn seconds(ns: i64) -> String {
    let (sign, us) = (if ns < 0 { "-" } else { "" }, ns.unsigned_abs() / 1_000);
    format!("{sign}{}.{:06}", us / 1_000_000, us % 1_000_000)
}

fn summed(summary: &Summary) -> String {
    let answers: Vec<String> = summary.answers.iter().map(|(word, times)| format!("{times} {word}")).collect();
    let answers = if answers.is_empty() { "none".to_owned() } else { answers.join(", ") };
    let mut text = format!(
        "\n{} inputs of {} devices, {} operations, {} questions for the state\nanswers: {answers}\n",
        summary.inputs,
        summary.devices.len(),
        summary.operations,
        summary.questions,
    );
    if summary.crashed > 0 {
        text += &format!("actors crashed over {} inputs\n", summary.crashed);
    }
    if summary.unended > 0 {
        text += &format!("{} times no end is recorded: the hub was killed, or it still runs\n", summary.unended);
    }
    if summary.is_open {
        text += "the recording has no end: the file was cut off, or its hub was killed or still runs; more may have happened\n";
    }
    if !summary.is_whole() && summary.missing + summary.skipped > 0 {
        text += &format!("{} lines are missing, {} inputs were not stepped\n", summary.missing, summary.skipped);
    }
    if let Some(AtOdds { line, inputs_said, inputs, missing_said, missing }) = &summary.at_odds {
        text += &format!(
            "the end at line {line} does not fit: it says {inputs_said} inputs and {missing_said} missing lines, there are {inputs} \
             and gaps of {missing}; lines were taken out of the recording, or put in\n"
        );
    }
    text += &match summary.first_difference {
        None => "at each input that was stepped the same is decided as was recorded\n".to_owned(),
        Some(line) => {
            format!(
                "at {} inputs something else is decided than was recorded, first at line {line}\n",
                summary.differences
            )
        }
    };
    text
}

fn as_json(told: &Told, zero: form::Zero) -> Json {
    match told {
        Told::Head { line, head } => json!({ "line": line, "hub": head.hub, "unix_ms": head.unix_ms }),
        Told::Begins { line, device, at_ns } => {
            json!({ "line": line, "at_ms": at_ms(*at_ns), "device": device.as_str(), "begins": true })
        }
        Told::Step(step) => {
            let mut line = json!({
                "line": step.line,
                "at_ms": at_ms(step.at_ns),
                "device": step.device.as_str(),
                "input": form::taken(&step.input, zero),
                "words": words::input(step.now, &step.input),
                "decided": step.decided,
                "decided_words": step.effects.iter().map(words::effect).collect::<Vec<_>>(),
                "same": step.compared.is_same(),
            });
            match &step.compared {
                Compared::Same => {}
                Compared::Differs { recorded } => line["recorded"] = json!(recorded),
                Compared::Fails => line["fails"] = Json::Bool(true),
                Compared::Crashed { again } => line["crashed"] = json!({ "again": again }),
            }
            line
        }
        Told::Gap { line, device, missing } => json!({ "line": line, "device": device.as_str(), "missing": missing }),
        Told::LeftOut { line, device, why } => json!({ "line": line, "device": device.as_str(), "left_out": why }),
        Told::End { line, why } => json!({ "line": line, "end": why }),
        Told::Torn { line } => json!({ "line": line, "torn": true }),
    }
}

/// Milliseconds with their fraction, for machines that draw; exact for a hundred days.
#[expect(clippy::cast_precision_loss, reason = "a nanosecond more or less is none in a drawing")]
fn at_ms(ns: i64) -> f64 {
    ns as f64 / NS_PER_MS as f64
}

fn summed_json(summary: &Summary) -> Json {
    json!({ "summary": {
        "inputs": summary.inputs,
        "devices": summary.devices.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "operations": summary.operations,
        "questions": summary.questions,
        "answers": summary.answers,
        "crashed": summary.crashed,
        "unended": summary.unended,
        "open": summary.is_open,
        "missing": summary.missing,
        "at_odds": summary.at_odds.as_ref().map(|end| json!({
            "line": end.line,
            "inputs_said": end.inputs_said,
            "inputs": end.inputs,
            "missing_said": end.missing_said,
            "missing": end.missing,
        })),
        "skipped": summary.skipped,
        "differences": summary.differences,
        "first_difference": summary.first_difference,
    } })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_before_the_beginning_is_shown_as_such() {
        assert_eq!((seconds(1_234_567_890), seconds(-5_000)), ("1.234567".to_owned(), "-0.000005".to_owned()));
    }
}
