//! What the load is put on: processes of their own, on free ports of loopback, in a temporary folder, stopped by their own
//! handle; and what the system says about them.

use std::{
    io::{BufRead as _, BufReader},
    net::TcpListener,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context as _, ensure};
use truetwin::{
    broker::Tls,
    data::{self, DataFolder, HubJson, Secret},
    property::DeviceId,
};

/// Far above what any start takes; only a hang meets it.
const START_WITHIN: Duration = Duration::from_secs(30);

/// Ticks in a second of what `/proc` counts processor time in (USER_HZ is 100 on every Linux that is built today).
const TICKS_PER_S: f64 = 100.0;

/// All devices of a load come from one address, many at once, and as fast as they can.
pub(crate) const ONE_MACHINE: &str = "[mqtt]\nconnections_max = 20000\nconnections_per_address_max = 20000\n\
     handshakes_max = 10000\nhandshakes_per_address_max = 10000\npackets_per_s = 0\n";

/// A child that ends with its owner.
#[derive(Debug)]
pub(crate) struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ended_already = self.0.kill();
        let _reaped = self.0.wait();
    }
}

impl Process {
    fn start(mut command: Command) -> anyhow::Result<Self> {
        command.stdin(Stdio::null());
        let child = command.spawn().with_context(|| format!("cannot start {:?}", command.get_program()))?;
        Ok(Self(child))
    }

    /// Resident memory, KiB; 0 where there is no `/proc`.
    pub(crate) fn resident_kib(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.0.id())).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        line.and_then(|rest| rest.split_whitespace().next()?.parse().ok()).unwrap_or(0)
    }

    /// Processor seconds so far.
    pub(crate) fn cpu_s(&self) -> f64 {
        cpu_s(&self.0.id().to_string())
    }

    /// Its number.
    pub(crate) fn id(&self) -> u32 {
        self.0.id()
    }
}

/// Lets this process and those that it starts have as many open files as they may: each connection is one.
pub(crate) fn open_files() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let _stays_as_it_is = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
}

/// Lets all threads of these processes, and of this one, run on the processors in `list` (`0` or `0-3`) only. Whether the
/// system did so; `taskset` is everywhere where there is a Linux.
pub(crate) fn keep_on(list: &str, processes: &[&Process]) -> bool {
    let ids = processes.iter().map(|process| process.id()).chain([std::process::id()]);
    let keep = |id: u32| {
        let mut command = Command::new("taskset");
        command.args(["-a", "-p", "-c", list, &id.to_string()]).stdout(Stdio::null()).stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    };
    ids.filter(|id| !keep(*id)).count() == 0
}

/// Processor seconds of this process so far.
pub(crate) fn own_cpu_s() -> f64 {
    cpu_s("self")
}

fn cpu_s(process: &str) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    // Behind the name, which may hold anything: field 3 is the first, 14 and 15 are the ticks.
    let fields = stat.rsplit(')').next().unwrap_or_default();
    let ticks = fields.split_whitespace().skip(11).take(2).filter_map(|ticks| ticks.parse::<f64>().ok());
    ticks.sum::<f64>() / TICKS_PER_S
}

/// `truetwin serve` with a data folder and devices of its own.
#[derive(Debug)]
pub(crate) struct Hub {
    pub(crate) process: Process,
    pub(crate) mqtt: String,
    pub(crate) http: String,
    /// Names and passwords.
    pub(crate) devices: Vec<(String, Secret)>,
    folder: PathBuf,
}

impl Hub {
    /// Starts a hub that knows these devices from the beginning.
    pub(crate) fn start(folder: &Path, config: &str, devices: &[String]) -> anyhow::Result<Self> {
        let data = folder.join("data");
        let devices = {
            let open = DataFolder::open_offline(&data)?;
            let credentials = open.credentials();
            let ids = devices.iter().map(|name| Ok(DeviceId::new(name)?)).collect::<anyhow::Result<Vec<_>>>()?;
            devices.iter().cloned().zip(credentials.add_all(&ids)?).collect::<Vec<_>>()
        };
        std::fs::write(folder.join("truetwin.toml"), config)?;
        let (process, mqtt, http) = serve(folder, ["127.0.0.1:0", "127.0.0.1:0"])?;
        Ok(Self { process, mqtt, http, devices, folder: folder.to_owned() })
    }

    /// Kills it and starts another one on the same folder and ports.
    pub(crate) fn restart(self) -> anyhow::Result<Self> {
        let Self { process, mqtt, http, devices, folder } = self;
        drop(process);
        let (process, mqtt, http) = serve(&folder, [&mqtt, &http])?;
        Ok(Self { process, mqtt, http, devices, folder })
    }
}

/// Starts the program on a folder; where it listens for devices and for callers.
fn serve(folder: &Path, [mqtt, http]: [&str; 2]) -> anyhow::Result<(Process, String, String)> {
    let data = folder.join("data");
    let log = std::fs::OpenOptions::new().create(true).append(true).open(folder.join("hub.log"))?;
    let mut command = Command::new(env!("CARGO_BIN_EXE_truetwin"));
    command.arg("serve").arg("--data").arg(&data).arg("--config").arg(folder.join("truetwin.toml"));
    command.args(["--mqtt", mqtt, "--http", http]).stdout(Stdio::null()).stderr(log);
    let process = Process::start(command)?;
    let itself = |told: &HubJson| told.pid == process.id(); // one that was killed has left its file
    let HubJson { mqtt, http, .. } =
        until("the hub says where it listens", || data::read_hub_json(&data).ok().filter(itself))?;
    Ok((process, mqtt, http.trim_start_matches("http://").to_owned()))
}

/// This program again, in another role; it prints where it listens, or that it is ready.
pub(crate) fn role(arguments: &[&str]) -> anyhow::Result<(Process, String)> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(arguments).stdout(Stdio::piped());
    let mut process = Process::start(command)?;
    let mut line = String::new();
    let stdout = process.0.stdout.take().context("its output is piped")?;
    BufReader::new(stdout).read_line(&mut line)?;
    ensure!(!line.is_empty(), "{arguments:?} ended at once");
    Ok((process, line.trim().to_owned()))
}

/// The certificate that `truetwin tls make` has put into a folder.
pub(crate) fn tls(folder: &Path) -> Tls {
    Tls {
        cert_file: folder.join(data::TLS_CERT),
        key_file: folder.join(data::TLS_KEY),
        configured: false,
        plain: false,
    }
}

/// Debian's Mosquitto, tuned as well as it can be: no Nagle, nothing held back. With a certificate it takes TLS alone. `None` where
/// there is none.
pub(crate) fn mosquitto(folder: &Path, tls: Option<&Tls>) -> anyhow::Result<Option<(Process, String)>> {
    let places = ["/usr/sbin/mosquitto", "/usr/local/sbin/mosquitto", "/opt/homebrew/sbin/mosquitto"];
    let Some(program) = places.iter().map(PathBuf::from).find(|path| path.exists()) else { return Ok(None) };
    // It cannot say which port it took: one that was free a moment ago.
    let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
    let config = folder.join("mosquitto.conf");
    let port = address.port();
    // `user`: if this runs as root, it would else give that up and could not read the key.
    let tls = tls.map(|Tls { cert_file, key_file, .. }| {
        format!("user root\ncertfile {}\nkeyfile {}\n", cert_file.display(), key_file.display())
    });
    let tls = tls.unwrap_or_default();
    std::fs::write(
        &config,
        format!(
            "listener {port} 127.0.0.1\nallow_anonymous true\npersistence false\nset_tcp_nodelay true\n\
             max_inflight_messages 0\nmax_queued_messages 0\nlog_type none\n{tls}"
        ),
    )?;
    let mut command = Command::new(program);
    command.arg("-c").arg(&config).stdout(Stdio::null()).stderr(Stdio::null());
    let process = Process::start(command)?;
    until("mosquitto listens", || std::net::TcpStream::connect(address).ok())?;
    Ok(Some((process, address.to_string())))
}

fn until<T>(what: &str, mut fact: impl FnMut() -> Option<T>) -> anyhow::Result<T> {
    let by = Instant::now() + START_WITHIN;
    loop {
        if let Some(value) = fact() {
            return Ok(value);
        }
        ensure!(Instant::now() < by, "after {START_WITHIN:?} still not so: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}
