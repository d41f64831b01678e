//! The simulator on the command line: one JSON object a line for what happens, one word a line for what is wanted.

use std::{
    io::{self, BufRead, BufReader, Write},
    thread,
};

use serde_json::{Value, json};

use super::{Error, Handle, Happened, Options, start};

/// Runs a device until `quit` is read from standard input (its end does not end the device: a service has none). Prints
/// JSON lines on standard output.
///
/// # Errors
/// [`Error::Device`], [`Error::Start`], or [`Error::Output`] if nobody reads what is printed.
pub fn run(options: Options) -> Result<(), Error> {
    run_lines(options, BufReader::new(io::stdin()), &mut io::stdout())
}

/// As [`run`], with other ends. Lines in: `fault WORD`, `restart`, `quit`. Lines out: objects with `event`: `started`
/// (`boot`), `connected`, `welcomed`, `told` (`text`), `disconnected` (`why`), `moved` (`relay`, `moves`), `fault`
/// (`fault`), `not_understood` (`error`) for a line that is none of these, `ended`.
///
/// # Errors
/// As [`run`].
pub fn run_lines(options: Options, input: impl BufRead + Send + 'static, output: &mut impl Write) -> Result<(), Error> {
    if !truetwin_wire::limits::is_device_name(&options.device) {
        return Err(Error::Device(options.device.chars().take(64).collect()));
    }
    let mut simulator = start(options);
    let mut events = simulator.events();
    let handle = simulator.handle();
    let reading = move || {
        for line in input.lines() {
            let Ok(line) = line else { return };
            if let Err(error) = obey(line.trim(), &handle) {
                handle.world.tell(Happened::NotUnderstood(error));
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

fn obey(line: &str, handle: &Handle) -> Result<(), String> {
    match line.split_once(' ').unwrap_or((line, "")) {
        ("fault", word) => {
            handle.set_fault(word.trim().parse().map_err(|error: super::UnknownFault| error.to_string())?)
        }
        ("restart", "") => handle.restart(),
        ("quit", "") => handle.end(),
        ("", "") => {}
        _ => {
            let shown: String = line.chars().take(64).collect();
            return Err(format!("{shown:?} is no command; allowed: fault WORD, restart, quit"));
        }
    }
    Ok(())
}

fn line(happened: &Happened) -> Value {
    match happened {
        Happened::Started { boot } => json!({"event": "started", "boot": boot}),
        Happened::Connected => json!({"event": "connected"}),
        Happened::Welcomed => json!({"event": "welcomed"}),
        Happened::Told(text) => json!({"event": "told", "text": text}),
        Happened::Disconnected(why) => json!({"event": "disconnected", "why": why}),
        Happened::Moved { on, moves } => json!({"event": "moved", "relay": on, "moves": moves}),
        Happened::Fault(fault) => json!({"event": "fault", "fault": fault.as_str()}),
        Happened::NotUnderstood(error) => json!({"event": "not_understood", "error": error}),
        Happened::Ended => json!({"event": "ended"}),
    }
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
    fn lines_in_are_obeyed_and_lines_out_are_json() {
        // Port 1 of this machine: nobody answers, which is all that this test needs.
        let options = Options::new(([127, 0, 0, 1], 1).into(), "socket", "hush");
        let mut output = Vec::new();
        run_lines(options, "fault stuck\nfault broken\ndance\n\nquit\n".as_bytes(), &mut output).unwrap();
        let text = String::from_utf8(output).unwrap();
        let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert!(lines.contains(&json!({"event": "fault", "fault": "stuck"})), "{text}");
        assert_eq!(lines.iter().filter(|line| line["event"] == "not_understood").count(), 2, "{text}");
        assert_eq!(lines.last(), Some(&json!({"event": "ended"})));
        assert!(!text.contains("hush"));
    }
}
