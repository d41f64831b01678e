//! A simulated device as a process of its own; what it really did, by its own account.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    net::SocketAddr,
    path::Path,
    process::{Child, ChildStdin, Command, Stdio},
    sync::{Arc, Mutex},
    thread,
    time::Instant,
};

use serde_json::Value as Json;

use crate::{end, hub, until};

/// A line that it printed, and when that was read, milliseconds of the round.
type Line = (u64, Json);

pub(crate) struct Device {
    pub(crate) name: String,
    child: Child,
    stdin: ChildStdin,
    lines: Arc<Mutex<Vec<Line>>>,
}

/// What happened to a device, in milliseconds of the round.
#[derive(Debug)]
pub(crate) struct Life {
    /// What it drives, each time that it really moved, with where to.
    pub(crate) moves: Vec<(u64, f64)>,
    pub(crate) starts: Vec<u64>,
    pub(crate) welcomes: Vec<u64>,
}

impl Life {
    /// Where it was at a moment; it began at 0.
    pub(crate) fn at(&self, ms: u64) -> f64 {
        self.moves.iter().rev().find(|(moved, _)| *moved <= ms).map_or(0.0, |(_, to)| *to)
    }
}

impl Device {
    pub(crate) fn start(name: &str, kind: &str, mqtt: SocketAddr, password: &Path, begun: Instant) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_truetwin"));
        command.args(["sim", "--mqtt", &mqtt.to_string(), "--device", name, "--kind", kind, "--password-file"]);
        command.arg(password).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        end::began(child.id());
        let (stdin, stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let lines = Arc::new(Mutex::new(Vec::new()));
        let theirs = lines.clone();
        thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                let Ok(told) = serde_json::from_str(&line) else { continue };
                theirs.lock().unwrap().push((hub::since(begun), told));
            }
        });
        Self { name: name.to_owned(), child, stdin, lines }
    }

    /// A line of control.
    pub(crate) fn tell(&mut self, line: &str) {
        writeln!(self.stdin, "{line}").unwrap();
    }

    /// Another fault; it is in force when this returns.
    pub(crate) async fn fault(&mut self, word: &str) {
        let count = || self.count(|told| told["event"] == "fault");
        let before = count();
        self.tell(&format!("fault {word}"));
        let count = || self.count(|told| told["event"] == "fault");
        until(&format!("{} has the fault {word}", self.name), async || (count() > before).then_some(())).await;
    }

    /// Whether it has been welcomed since that moment.
    pub(crate) fn welcomed_since(&self, ms: u64) -> bool {
        self.lines.lock().unwrap().iter().any(|(at, told)| *at >= ms && told["event"] == "welcomed")
    }

    fn count(&self, wanted: impl Fn(&Json) -> bool) -> usize {
        self.lines.lock().unwrap().iter().filter(|(_, told)| wanted(told)).count()
    }

    /// STOP or CONT.
    pub(crate) fn signal(&self, name: &str) {
        hub::signal(self.child.id(), name);
    }

    /// What has happened to it, all of it: what it says last is the answer to a question of ours.
    pub(crate) async fn life(&mut self) -> Life {
        let before = self.count(|told| told["event"] == "truth");
        self.tell("truth");
        until(&format!("{} tells the truth", self.name), async || {
            (self.count(|told| told["event"] == "truth") > before).then_some(())
        })
        .await;
        let lines = self.lines.lock().unwrap();
        // Its clock begins when it does: the line that was read with the least delay tells how they differ.
        let differ = lines.iter().filter_map(|(read, told)| Some(read.saturating_sub(told["at_ms"].as_u64()?))).min();
        let differ = differ.unwrap_or(0);
        let moves = lines.iter().filter(|(_, told)| told["event"] == "moved").filter_map(|(_, told)| {
            let relay = told["relay"].as_bool().map(|on| f64::from(u8::from(on)));
            let to = relay.or_else(|| told["target"].as_f64())?;
            Some((differ + told["at_ms"].as_u64()?, to))
        });
        let when = |event: &str| lines.iter().filter(|(_, told)| told["event"] == event).map(|(at, _)| *at).collect();
        Life { moves: moves.collect(), starts: when("started"), welcomes: when("welcomed") }
    }

    /// Where a number that it drives really is.
    pub(crate) fn truth_of(&self, what: &str) -> Option<f64> {
        let lines = self.lines.lock().unwrap();
        lines.iter().rev().find(|(_, told)| told["event"] == "truth").and_then(|(_, told)| told[what]["at"].as_f64())
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        let _gone_already = self.child.kill();
        let _gone_already = self.child.wait();
        end::ended(self.child.id());
    }
}
