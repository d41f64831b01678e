//! The real program, started and asked as its owner does, logging all that can be logged.
#![allow(
    clippy::unwrap_used,
    dead_code,
    reason = "a test that cannot go on has failed; not each target needs all of it"
)]

use std::{
    fs,
    io::Write as _,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

/// Only a hang meets it.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) struct Program {
    child: Child,
    log: PathBuf,
}

impl Program {
    pub(crate) fn start(folder: &Path, name: &str, arguments: &[&str]) -> Self {
        let log = folder.join(format!("{name}.log"));
        let out = fs::File::create(&log).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_truetwin"));
        let command = command.args(arguments).env("RUST_LOG", "trace").stdin(Stdio::piped());
        let child = command.stdout(out.try_clone().unwrap()).stderr(out).spawn().unwrap();
        Self { child, log }
    }

    /// By what name the system's list of processes shows it.
    pub(crate) fn shown(&self) -> String {
        let shown = fs::read(format!("/proc/{}/cmdline", self.child.id())).unwrap_or_default();
        String::from_utf8_lossy(&shown).replace('\0', " ")
    }

    pub(crate) fn said(&self) -> String {
        String::from_utf8_lossy(&fs::read(&self.log).unwrap()).into_owned()
    }

    /// Asks it to stop as a service manager does.
    pub(crate) fn stop(mut self) {
        let asked = Command::new("kill").args(["-TERM", &self.child.id().to_string()]).status();
        assert!(asked.unwrap().success());
        self.child.wait().unwrap();
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _gone_already = self.child.kill();
        let _gone_already = self.child.wait();
    }
}

pub(crate) fn until<T>(what: &str, mut fact: impl FnMut() -> Option<T>) -> T {
    let by = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = fact() {
            return found;
        }
        assert!(Instant::now() < by, "still not so: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Runs a command to its end; all that it printed.
pub(crate) fn run(data: &Path, arguments: &[&str], input: &str) -> (i32, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_truetwin"));
    let command = command.args(arguments).arg("--data").arg(data).env("RUST_LOG", "trace");
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let done = child.wait_with_output().unwrap();
    let printed = [done.stdout, done.stderr].map(|out| String::from_utf8_lossy(&out).into_owned()).concat();
    (done.status.code().unwrap(), printed)
}
