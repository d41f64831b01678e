//! The hub as a process: started again and again on the same folder and the same ports, killed, stopped, starved.

use std::{
    fs,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{SocketAddr, TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::atomic::{AtomicU32, Ordering},
    thread,
    time::{Duration, Instant},
};

use serde_json::Value as Json;
use truetwin::mcp::Client;

use crate::{LIMIT_MS, end, until};

/// What the hub is told: a short limit, so that an answer that does not come is soon missed; all of a round's records in the
/// memory of their twins, so that each can be asked for; sessions for clients that vanish without a word.
fn config() -> String {
    format!(
        "[http]\nsessions_max = 1024\n[timing]\nanswer_by_ms = {LIMIT_MS}\n[limits]\nrecords_per_device = 1024\n\
         [devices.heater]\nname = \"floor heating\"\n[devices.heater.properties.target]\nconfirm = \"none\"\n"
    )
}

/// Milliseconds since then.
pub(crate) fn since(begun: Instant) -> u64 {
    u64::try_from(begun.elapsed().as_millis()).unwrap()
}

/// Sends a signal by its name; a process that is gone gets none.
pub(crate) fn signal(pid: u32, name: &str) {
    let _gone_already =
        Command::new("kill").args([&format!("-{name}"), &pid.to_string()]).stderr(Stdio::null()).status();
}

/// A port that nobody listens on, below those that the system gives to outgoing connections: it is free again after each kill.
/// None is given twice.
pub(crate) fn free_port() -> SocketAddr {
    static GIVEN: AtomicU32 = AtomicU32::new(0);
    loop {
        let at = (std::process::id() * 31 + GIVEN.fetch_add(1, Ordering::Relaxed) * 7) % 17_000;
        let address = SocketAddr::from(([127, 0, 0, 1], 15_000 + u16::try_from(at).unwrap()));
        if TcpListener::bind(address).is_ok() {
            return address;
        }
    }
}

/// The library that shifts a process's wall clock (Debian's package faketime); without it that fault is left out.
pub(crate) fn faketime() -> Option<PathBuf> {
    let folders = fs::read_dir("/usr/lib").ok()?;
    let found = |folder: fs::DirEntry| folder.path().join("faketime/libfaketimeMT.so.1");
    folders.filter_map(Result::ok).map(found).find(|library| library.exists())
}

pub(crate) struct Hub {
    child: Child,
    pub(crate) data: PathBuf,
    pub(crate) http: SocketAddr,
}

impl Hub {
    /// Starts it and waits until it answers.
    pub(crate) async fn start(folder: &Path, data: &Path, mqtt: SocketAddr, http: SocketAddr) -> Self {
        let file = folder.join("truetwin.toml");
        fs::write(&file, config()).unwrap();
        // A write beyond the limit on the size of files must fail as on a full disk, not end the process.
        let mut command = Command::new("sh");
        command.args(["-c", "trap '' XFSZ; exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_truetwin"), "serve"]);
        command.args(["--mqtt", &mqtt.to_string(), "--http", &http.to_string(), "--data"]).arg(data);
        command.arg("--config").arg(&file).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        if let Some(library) = faketime() {
            fs::write(folder.join("clock"), "+0").unwrap();
            command.env("LD_PRELOAD", library).env("FAKETIME_TIMESTAMP_FILE", folder.join("clock"));
            command
                .env("FAKETIME_NO_CACHE", "1")
                .env("FAKETIME_DONT_FAKE_MONOTONIC", "1")
                .env("DONT_FAKE_MONOTONIC", "1");
        }
        let mut child = command.spawn().unwrap();
        end::began(child.id());
        let (stderr, log) = (child.stderr.take().unwrap(), folder.join("hub.log"));
        thread::spawn(move || {
            let Ok(mut log) = fs::OpenOptions::new().create(true).append(true).open(log) else { return };
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                let _the_folder_is_gone = writeln!(log, "{line}");
            }
        });
        let mut hub = Self { child, data: data.to_owned(), http };
        until("the hub answers", async || {
            let ended = hub.child.try_wait().unwrap();
            let said = || fs::read_to_string(folder.join("hub.log")).unwrap_or_default();
            assert!(ended.is_none(), "the hub has ended: {ended:?}\n{}", said());
            hub.get("/healthz").map(drop)
        })
        .await;
        hub
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The body of a plain GET, from a hub that answers.
    pub(crate) fn get(&self, path: &str) -> Option<String> {
        let mut stream = TcpStream::connect(self.http).ok()?;
        stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        stream.set_write_timeout(Some(Duration::from_secs(10))).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        answer.starts_with("HTTP/1.1 200").then_some(answer)
    }

    /// A new MCP session.
    pub(crate) async fn client(&self) -> Client {
        let url = format!("http://{}/mcp", self.http);
        until("a client is let in", async || Client::connect(&url).await.ok()).await
    }

    /// `kill -9`.
    pub(crate) fn kill(&mut self) {
        let _gone_already = self.child.kill();
        self.child.wait().unwrap();
        end::ended(self.child.id());
    }

    /// No file may grow beyond so many bytes any more; `None` is the end of that.
    pub(crate) fn file_bytes_max(&self, bytes: Option<u64>) {
        let limit = bytes.map_or("unlimited".to_owned(), |bytes| bytes.to_string());
        let done =
            Command::new("prlimit").args(["--pid", &self.pid().to_string(), &format!("--fsize={limit}:")]).status();
        assert!(done.is_ok_and(|done| done.success()), "prlimit");
    }
}

impl Drop for Hub {
    fn drop(&mut self) {
        let _gone_already = self.child.kill();
        let _gone_already = self.child.wait();
        end::ended(self.child.id());
    }
}

/// Runs a command of the program on a data folder; what it printed.
pub(crate) fn run(data: &Path, arguments: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_truetwin"));
    let done = command.args(arguments).arg("--data").arg(data).output().unwrap();
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{arguments:?}: {said}");
    String::from_utf8(done.stdout).unwrap()
}

/// Makes a device known; the file with its password.
pub(crate) fn add(folder: &Path, data: &Path, name: &str) -> PathBuf {
    let told: Json = serde_json::from_str(&run(data, &["device", "add", name, "--json"])).unwrap();
    let file = folder.join(format!("{name}.secret"));
    fs::write(&file, told["password"].as_str().unwrap()).unwrap();
    fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    file
}
