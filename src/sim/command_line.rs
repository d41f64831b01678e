//! The simulator on the command line: one JSON object a line for what happens, one word a line for what is wanted.

use std::{
    io::{self, BufRead, BufReader, Write},
    thread,
};

use serde_json::{Map, Value, json};

use super::{Error, Fault, Handle, Happened, Kind, Options, Truth, control, start};

/// Speeds that are simulated (see [`Options::speed`]); beyond them times are shorter than the core looks.
const SPEEDS: std::ops::RangeInclusive<f64> = 0.001..=1_000.0;

/// All kinds and all faults, each with its sentence, for `truetwin sim --list`.
pub fn list() -> String {
    let row = |word: &str, sentence: &str| format!("  {word:<22} {sentence}\n");
    let kinds: String = Kind::ALL.iter().map(|kind| row(kind.as_str(), kind.sentence())).collect();
    let faults: String = Fault::ALL.iter().map(|fault| row(fault.as_str(), fault.sentence())).collect();
    format!(
        "Kinds of device (--kind):\n{kinds}\nWhat can go wrong (--fault, and `fault WORD` while it runs):\n{faults}"
    )
}

/// Runs a device until `quit` is read from standard input (its end does not end the device: a service has none). Prints
/// JSON lines on standard output.
///
/// # Errors
/// [`Error::Device`], [`Error::Start`], or [`Error::Output`] if nobody reads what is printed.
pub fn run(options: Options) -> Result<(), Error> {
    run_lines(options, BufReader::new(io::stdin()), &mut io::stdout())
}

/// As [`run`], with other ends. Lines in: `fault WORD`, `touch [PROPERTY [VALUE]]` (a person at the device), `restart`,
/// `truth`, `quit`. Lines out: objects with `event`: `started` (`boot`), `connected`, `welcomed`, `told` (`text`), `disconnected`
/// (`why`), `moved` (the thing under its name, `moves`, `at_ms`), `stopped` (the thing under its name), `acted` (`action`,
/// `times`, `at_ms`), `fault` (`fault`), `truth` (by name `{"at", "moves", "moving", "last_ms"}`), `listening` (`control`),
/// `not_understood` (`error`) for a line that is none of these, `ended`.
///
/// # Errors
/// As [`run`], and [`Error::Speed`], [`Error::Control`].
pub fn run_lines(options: Options, input: impl BufRead + Send + 'static, output: &mut impl Write) -> Result<(), Error> {
    if !truetwin_wire::limits::is_device_name(&options.device) {
        return Err(Error::Device(options.device.chars().take(64).collect()));
    }
    if !SPEEDS.contains(&options.speed) {
        return Err(Error::Speed(options.speed));
    }
    let listener = options.control.map(control::listen).transpose()?;
    let mut simulator = start(options);
    let mut events = simulator.events();
    let handle = simulator.handle();
    if let Some(listener) = listener {
        control::serve(listener, handle.clone())?;
    }
    let reading = move || {
        for line in input.lines() {
            let Ok(line) = line else { return };
            match obey(line.trim(), &handle) {
                Ok(None) => {}
                Ok(Some(truth)) => handle.world.tell(Happened::Truth(truth)),
                Err(error) => handle.world.tell(Happened::NotUnderstood(error)),
            }
        }
    };
    // Nobody waits for this thread: it sits in a read that nothing can interrupt, and ends with the process.
    thread::Builder::new().name("sim commands".to_owned()).spawn(reading).map_err(Error::Start)?;
    while let Some(happened) = events.blocking_recv() {
        writeln!(output, "{}", line(&happened)).and_then(|()| output.flush()).map_err(Error::Output)?;
        if happened == Happened::Ended {
            break;
        }
    }
    Ok(())
}

/// Does what a line says; the truth where it was asked for.
pub(super) fn obey(line: &str, handle: &Handle) -> Result<Option<Vec<Truth>>, String> {
    let mut words = line.split_whitespace();
    match (words.next().unwrap_or(""), words.next(), words.next(), words.next()) {
        ("fault", Some(word), None, None) => {
            handle.set_fault(word.parse().map_err(|error: super::UnknownFault| error.to_string())?);
        }
        ("touch", name, value, None) => {
            let value = value.map(|text| number(text).ok_or_else(|| format!("{text:?} is no value"))).transpose()?;
            if !handle.touch(name, value) {
                return Err(format!("there is no {} to be touched", name.unwrap_or("thing")));
            }
        }
        ("restart", None, None, None) => handle.restart(),
        ("truth", None, None, None) => return Ok(Some(handle.truth())),
        ("quit", None, None, None) => handle.end(),
        ("", None, None, None) => {}
        _ => {
            let shown: String = line.chars().take(64).collect();
            let allowed = "fault WORD, touch [PROPERTY [VALUE]], restart, truth, quit";
            return Err(format!("{shown:?} is no command; allowed: {allowed}"));
        }
    }
    Ok(None)
}

/// `on`, `true` and `1` are the same of a contact.
fn number(text: &str) -> Option<f64> {
    match text {
        "on" | "true" => Some(1.0),
        "off" | "false" => Some(0.0),
        _ => text.parse().ok().filter(|value: &f64| value.is_finite()),
    }
}

pub(super) fn line(happened: &Happened) -> Value {
    match happened {
        Happened::Started { boot } => json!({"event": "started", "boot": boot}),
        Happened::Connected => json!({"event": "connected"}),
        Happened::Welcomed => json!({"event": "welcomed"}),
        Happened::Told(text) => json!({"event": "told", "text": text}),
        Happened::Disconnected(why) => json!({"event": "disconnected", "why": why}),
        Happened::Moved { part, to, moves, at_ms } => {
            json!({"event": "moved", part: shown(part, *to), "moves": moves, "at_ms": at_ms})
        }
        Happened::Stopped { part, at } => json!({"event": "stopped", part: at}),
        Happened::Acted { action, times, at_ms } => {
            json!({"event": "acted", "action": action, "times": times, "at_ms": at_ms})
        }
        Happened::Truth(truth) => {
            let mut all = Map::new();
            all.insert("event".to_owned(), json!("truth"));
            for Truth { name, at, moves, moving, last_ms } in truth {
                let one = json!({"at": shown(name, *at), "moves": moves, "moving": moving, "last_ms": last_ms});
                all.insert(name.clone(), one);
            }
            all.into()
        }
        Happened::Listening(address) => json!({"event": "listening", "control": address.to_string()}),
        Happened::Fault(fault) => json!({"event": "fault", "fault": fault.as_str()}),
        Happened::NotUnderstood(error) => json!({"event": "not_understood", "error": error}),
        Happened::Ended => json!({"event": "ended"}),
    }
}

/// A contact's place is `true` or `false`, everything else a number.
fn shown(name: &str, at: f64) -> Value {
    if name.starts_with("relay") { json!(at > 0.5) } else { json!(at) }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that fails here says where")]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_cannot_stand_in_a_topic_is_refused() {
        let options = Options { device: "a/b".to_owned(), ..Options::default() };
        let result = run_lines(options, io::empty(), &mut Vec::new());
        assert!(matches!(result, Err(Error::Device(name)) if name == "a/b"));
    }

    #[test]
    fn a_speed_that_nobody_can_live_at_is_refused() {
        for speed in [0.0, -1.0, f64::NAN, 1e6] {
            let result = run_lines(Options { speed, ..Options::default() }, io::empty(), &mut Vec::new());
            assert!(matches!(result, Err(Error::Speed(_))), "{speed}");
        }
    }

    #[test]
    fn the_list_names_every_kind_and_every_fault() {
        let list = list();
        for word in Kind::ALL.iter().map(|kind| kind.as_str()).chain(Fault::ALL.iter().map(|fault| fault.as_str())) {
            assert!(list.lines().any(|line| line.split_whitespace().next() == Some(word)), "{word} in\n{list}");
        }
    }

    #[test]
    fn lines_in_are_obeyed_and_lines_out_are_json() {
        // Port 1 of this machine: nobody answers, which is all that this test needs.
        let options = Options::new(([127, 0, 0, 1], 1).into(), "socket", "hush");
        let mut output = Vec::new();
        run_lines(options, "fault stuck\nfault broken\ndance\n\ntouch relay on\ntruth\nquit\n".as_bytes(), &mut output)
            .unwrap();
        let text = String::from_utf8(output).unwrap();
        let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert!(lines.contains(&json!({"event": "fault", "fault": "stuck"})), "{text}");
        assert_eq!(lines.iter().filter(|line| line["event"] == "not_understood").count(), 2, "{text}");
        let moved = lines.iter().find(|line| line["event"] == "moved").unwrap();
        assert_eq!((&moved["relay"], &moved["moves"]), (&json!(true), &json!(1)), "{text}");
        let truth = lines.iter().find(|line| line["event"] == "truth").unwrap();
        assert_eq!((&truth["relay"]["at"], &truth["relay"]["moves"]), (&json!(true), &json!(1)), "{text}");
        assert_eq!(lines.last(), Some(&json!({"event": "ended"})));
        assert!(!text.contains("hush"));
    }
}
