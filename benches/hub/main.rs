//! `make bench`: what a tool call costs on this machine, beside the floor under it, in one run.
//!
//! The hub is the program itself, a process of its own. The load is this process: instant devices on hand-written MQTT,
//! callers on hand-written HTTP, one thread. Floor and calls take turns in short rounds, so that their ratios hold on a
//! machine that does other things as well. `ROUNDS` sets how many (default 11); with `STRICT=1` a missed target is exit
//! code 1. For a profiler, `ONLY` is one kind and one number of callers, say `ONLY="k = 1,100"`: no targets then. `ONLY=door` is what
//! the door costs beside Mosquitto, without the calls and their echoes.
#![expect(clippy::print_stdout, reason = "what a benchmark is for")]

mod books;
mod deaths;
#[allow(dead_code, reason = "the load, tests/load.rs, has a use for more of it")]
mod device;
mod echo;
mod figures;
mod idle;
mod journal;
mod load;
mod mcp;
mod memory;
mod mqtt;
#[allow(dead_code, reason = "as above")]
mod process;
mod reports;

use std::{
    process::ExitCode,
    sync::{Arc, atomic::Ordering::Relaxed},
    time::Duration,
};

use anyhow::{Context as _, bail};
use mimalloc::MiMalloc;
use tokio::signal::unix::{SignalKind, signal};
use truetwin_wire::words::EvidenceWord;

use crate::{
    books::Books,
    device::Done,
    figures::{Sample, Targets, median},
    load::{Call, Callers, DEVICES, Echoes, RELAYS, SESSIONS},
    memory::Memory,
    process::{Hub, Process},
};

/// The program's own, so that the floor under a call stands on the same ground.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// Numbers of callers, and how long one round of one kind lasts with so many.
const LOADS: [(usize, Duration); 3] =
    [(1, Duration::from_millis(300)), (100, Duration::from_millis(300)), (1000, Duration::from_secs(1))];

/// Devices with a read-back in `completed`: one round trip. And those that are asked once more: two.
const PIN: &str = "pin";
const ASKED: &str = "asked";

/// The hub takes four HTTP connections for each session that it allows. Each relay has a name of its own.
fn config() -> String {
    let mut config = process::ONE_MACHINE.to_owned() + "[http]\nsessions_max = 260\n" + journal_config();
    for (kind, device, relay) in
        [PIN, ASKED].iter().flat_map(|kind| (0..DEVICES * RELAYS).map(move |at| (kind, at / RELAYS, at % RELAYS)))
    {
        config += &format!("[devices.{kind}-{device}.properties.r{relay}]\nname = \"{kind} {device} {relay}\"\n");
    }
    config
}

/// Whether the hub under load keeps a journal: unless `JOURNAL=off`.
fn journal_is_on() -> bool {
    std::env::var("JOURNAL").map_or(true, |journal| journal != "off")
}

fn journal_config() -> &'static str {
    if journal_is_on() { "" } else { "[journal]\nkeep = \"off\"\n" }
}

/// Targets.
const OVER_MOSQUITTO_MAX: f64 = 1.2;
const OVER_FLOOR_MAX: f64 = 1.3;
const SHARE_OF_PING_MIN: f64 = 0.5;
const IDLE_KIB_MAX: u64 = 16 * 1024;
const LOADED_KIB_MAX: u64 = 64 * 1024;

fn main() -> anyhow::Result<ExitCode> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        ["echo-door"] => one_thread()?.block_on(echo::door(None))?,
        ["echo-door", folder] => one_thread()?.block_on(echo::door(Some(process::tls(folder.as_ref()))))?,
        ["echo-client", mqtt] => one_thread()?.block_on(echo::client(mqtt))?,
        ["sink-client", mqtt] => one_thread()?.block_on(reports::sink(mqtt))?,
        ["dying-door"] => one_thread()?.block_on(deaths::door())?,
        _ if words.contains(&"--bench") => {
            let missed = one_thread()?.block_on(until_told_to_stop(bench()))?;
            let strict = std::env::var("STRICT").is_ok_and(|strict| strict == "1");
            return Ok(if strict && missed > 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS });
        }
        // `cargo test --all-targets` runs this as well.
        _ => println!("measures with: make bench"),
    }
    Ok(ExitCode::SUCCESS)
}

fn one_thread() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()
}

/// Ends early when told to, so that no process stays behind.
async fn until_told_to_stop(bench: impl Future<Output = anyhow::Result<usize>>) -> anyhow::Result<usize> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    tokio::select! {
        missed = bench => missed,
        _ = terminate.recv() => bail!("told to stop"),
        _ = interrupt.recv() => bail!("told to stop"),
    }
}

/// What is measured, in this order in each round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Door,
    Mosquitto,
    Ping,
    Once,
    Twice,
}

impl Kind {
    const ALL: [Self; 5] = [Self::Door, Self::Mosquitto, Self::Ping, Self::Once, Self::Twice];

    /// Its line in the table.
    fn as_str(self) -> &'static str {
        match self {
            Self::Door => "door: QoS 1 echo",
            Self::Mosquitto => "mosquitto, nodelay: QoS 1 echo by a client",
            Self::Ping => "ping",
            Self::Once => "switch_device, k = 1",
            Self::Twice => "switch_device, k = 2 (asked once more)",
        }
    }
}

/// Samples of one number of callers, by kind.
#[derive(Default)]
struct Samples([Sample; Kind::ALL.len()]);

impl Samples {
    fn of(&self, kind: Kind) -> &Sample {
        &self.0[kind as usize]
    }
}

/// Measures, prints; how many targets were missed.
async fn bench() -> anyhow::Result<usize> {
    let rounds: u32 = std::env::var("ROUNDS").ok().map_or(Ok(11), |rounds| rounds.parse()).context("ROUNDS")?;
    let folder = tempfile::tempdir()?;
    println!(
        "{} {}, {} processors shared by hub and load; load average before: {}; journal: {}\n\
         {DEVICES} devices of each kind with {RELAYS} relays, which may be switched again at once; a caller is an HTTP connection, and more than {SESSIONS} share as many MCP sessions, the most \
         that a hub admits by default",
        std::env::consts::OS,
        std::env::consts::ARCH,
        std::thread::available_parallelism()?,
        load_average(),
        if journal_is_on() { "on" } else { "off" },
    );
    process::open_files();
    let only = std::env::var("ONLY").ok();
    if only.as_deref() == Some("door") {
        let mut targets = Targets::default();
        at_the_door(folder.path(), rounds, &mut targets).await?;
        println!("load average after: {}\n{}", load_average(), targets.text());
        return Ok(targets.missed);
    }
    let memory = if only.is_none() { Memory::measure(folder.path()).await? } else { Memory::default() };

    let (door, door_mqtt) = process::role(&["echo-door"])?;
    let mosquitto = process::mosquitto(folder.path(), None)?;
    let client = mosquitto.as_ref().map(|(_, mqtt)| process::role(&["echo-client", mqtt])).transpose()?;
    let mut at_door = Echoes::new(&door_mqtt, &[&door]);
    let mut at_mosquitto = match (&mosquitto, &client) {
        (Some((broker, mqtt)), Some((client, _))) => Some(Echoes::new(mqtt, &[broker, client])),
        _ => {
            println!("mosquitto is not installed: its echo is left out");
            None
        }
    };

    let names = [PIN, ASKED].iter().flat_map(|kind| (0..DEVICES).map(move |i| format!("{kind}-{i}")));
    let hub = Hub::start(folder.path(), &config(), &names.collect::<Vec<_>>())?;
    let (once, twice) = (Arc::new(Done::default()), Arc::new(Done::default()));
    let mut devices = memory::connect(&hub, PIN, EvidenceWord::Pin, RELAYS, &once).await?;
    devices.extend(memory::connect(&hub, ASKED, EvidenceWord::Firmware, RELAYS, &twice).await?);
    let before = Books::read(&hub).await?;
    let mut callers = Callers::new(&hub, &[PIN, ASKED]);
    let before_kib = memory::rested_kib(&hub).await;
    let mut sessions_kib = 0.0;
    let mut after_kib = Vec::new();

    let (only_kind, only_callers) = only.as_deref().and_then(|only| only.split_once(',')).unzip();
    let mut kinds = Kind::ALL.to_vec();
    kinds.retain(|kind| only_kind.is_none_or(|only| kind.as_str().contains(only)));
    kinds.retain(|kind| *kind != Kind::Mosquitto || at_mosquitto.is_some());
    let mut all = Vec::new();
    let processors = std::thread::available_parallelism()?.get();
    let processes: Vec<&Process> =
        [Some(&door), mosquitto.as_ref().map(|(broker, _)| broker), client.as_ref().map(|(client, _)| client)]
            .into_iter()
            .flatten()
            .collect();
    let mut one_processor = false;
    for (count, time) in
        LOADS.into_iter().filter(|(count, _)| only_callers.is_none_or(|only| count.to_string() == only))
    {
        let without = hub.process.resident_kib();
        callers.grow(count).await?;
        // A processor that has gone to sleep between two hops of one caller's call takes longer to wake than the call (on a
        // virtual machine), and whether it sleeps is chance: with one caller all shares one processor, so that what is
        // compared is the length of the ways. With more callers nothing sleeps.
        let own: Vec<&Process> = processes.iter().copied().chain([&hub.process]).collect();
        if count == 1 {
            one_processor = process::keep_on("0", &own);
        } else if std::mem::take(&mut one_processor) {
            process::keep_on(&format!("0-{}", processors - 1), &own);
        }
        if count == 100 {
            sessions_kib = hub.process.resident_kib().saturating_sub(without) as f64 / (SESSIONS - 1) as f64;
        }
        let mut samples = Samples::default();
        // The first round warms up and is not counted.
        for round in 0..=rounds {
            if round == 1 {
                samples = Samples::default();
            }
            for kind in kinds.iter().copied() {
                let sample = &mut samples.0[kind as usize];
                match kind {
                    Kind::Door => at_door.round(count, time, sample).await?,
                    Kind::Mosquitto => {
                        if let Some(echoes) = &mut at_mosquitto {
                            echoes.round(count, time, sample).await?;
                        }
                    }
                    Kind::Ping => callers.round(&hub, Call::Ping, time, sample).await?,
                    Kind::Once => callers.round(&hub, Call::Switch(PIN), time, sample).await?,
                    Kind::Twice => callers.round(&hub, Call::Switch(ASKED), time, sample).await?,
                }
            }
        }
        print(count, &samples, &kinds, one_processor);
        after_kib.push((count, hub.process.resident_kib()));
        all.push((count, samples));
    }
    if only.is_some() {
        return Ok(0);
    }
    let after = Books::read(&hub).await?;
    let failed = devices.iter().filter(|device| device.is_finished()).count();

    println!("\nresident memory of the hub (KiB)");
    println!("  idle, no device                          {:>8}", memory.idle_kib);
    println!("  each device known, of 1000               {:>8.1}", memory.known_kib);
    println!("  each device connected and greeted, more  {:>8.1}", memory.connected_kib);
    println!("  {} devices connected, no session        {:>8}", 2 * DEVICES, before_kib);
    println!("  each MCP session, with 1.6 connections   {sessions_kib:>8.1}");
    for (callers, kib) in &after_kib {
        println!("  after {callers:>4} callers, still connected        {kib:>8}");
    }

    let mut targets = Targets::default();
    latency(&all, &mut targets);
    throughput(&all, &mut targets);
    books(&callers, [&once, &twice], (&before, &after), failed, &mut targets);
    targets.check(memory.idle_kib <= IDLE_KIB_MAX, &format!("idle: {} KiB, at most {IDLE_KIB_MAX}", memory.idle_kib));
    let more = after_kib.last().map_or(0, |(_, kib)| kib.saturating_sub(before_kib));
    targets.check(more <= LOADED_KIB_MAX, &format!("after 1000 callers: {more} KiB more, at most {LOADED_KIB_MAX}"));
    drop((callers, hub));
    devices.iter().for_each(tokio::task::JoinHandle::abort);
    at_the_door(folder.path(), rounds, &mut targets).await?;
    journal::measure(folder.path(), rounds, &mut targets).await?;
    println!("load average after: {}\n{}", load_average(), targets.text());
    Ok(targets.missed)
}

/// What the door itself costs, beside Mosquitto.
async fn at_the_door(folder: &std::path::Path, rounds: u32, targets: &mut Targets) -> anyhow::Result<()> {
    idle::measure(folder, targets).await?;
    reports::measure(folder, rounds, targets).await?;
    deaths::measure(targets).await
}

/// Of the last minute; above what the bench itself makes (about 2) others want the processors as well.
fn load_average() -> String {
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    load.split(' ').next().filter(|load| !load.is_empty()).unwrap_or("unknown").to_owned()
}

fn print(callers: usize, samples: &Samples, kinds: &[Kind], one_processor: bool) {
    let place = if one_processor { "; all on one processor" } else { "" };
    println!("\n{}{place}", figures::head(callers));
    for kind in kinds {
        println!("{}", samples.of(*kind).line(kind.as_str()));
    }
}

/// What a call takes beside what it cannot avoid: its round trips and the tool call itself. The ratio is taken within each
/// round, and of all rounds the middle one counts: a machine that was slow for a second was so for all kinds.
fn latency(all: &[(usize, Samples)], targets: &mut Targets) {
    let Some((_, alone)) = all.first() else { return };
    let echoes = alone.of(Kind::Door).rounds().iter().zip(alone.of(Kind::Mosquitto).rounds());
    if echoes.len() > 0 {
        let ratio = median(echoes.map(|(door, mosquitto)| door.p50_ms / mosquitto.p50_ms));
        let what = format!(
            "1 device: the door's echo p50 is {ratio:.2} x mosquitto's by a client, at most {OVER_MOSQUITTO_MAX}"
        );
        targets.check(ratio <= OVER_MOSQUITTO_MAX, &what);
    }
    for (k, kind) in [(1.0, Kind::Once), (2.0, Kind::Twice)] {
        let floors = alone.of(Kind::Door).rounds().iter().zip(alone.of(Kind::Ping).rounds());
        let floors = floors.map(|(echo, ping)| k * echo.p50_ms + ping.p50_ms);
        let ratios = floors.zip(alone.of(kind).rounds()).map(|(floor, call)| call.p50_ms / floor);
        let ratio = median(ratios);
        let what = format!("1 caller, k = {k}: p50 is {ratio:.2} x ({k} echo + ping), at most {OVER_FLOOR_MAX}");
        targets.check(ratio <= OVER_FLOOR_MAX, &what);
    }
}

fn throughput(all: &[(usize, Samples)], targets: &mut Targets) {
    for (callers, samples) in all.iter().filter(|(callers, _)| *callers == 100) {
        let pairs = samples.of(Kind::Once).rounds().iter().zip(samples.of(Kind::Ping).rounds());
        let share = median(pairs.map(|(once, ping)| once.rate / ping.rate));
        let what = format!("{callers} callers, k = 1: calls/s are {share:.2} of ping's, at least {SHARE_OF_PING_MIN}");
        targets.check(share >= SHARE_OF_PING_MIN, &what);
    }
}

/// Every call was an operation, every operation a command on the wire and in a device, every answer a success.
fn books(
    callers: &Callers,
    kinds: [&Arc<Done>; 2],
    (before, after): (&Books, &Books),
    failed: usize,
    targets: &mut Targets,
) {
    let grew = |metric: &str, label: &str| after.sum(metric, label) - before.sum(metric, label);
    let got = |of: fn(&Done) -> u64| kinds.iter().map(|done| of(done)).sum::<u64>();
    let (asked, ended) = (callers.operations, grew("truetwin_operations_total", ""));
    let converged = grew("truetwin_operations_total", "outcome=\"converged\"");
    let published = grew("truetwin_commands_published_total", "command=\"set\"");
    let (sets, moves) = (got(|done| done.sets.load(Relaxed)), got(|done| done.moves.load(Relaxed)));
    println!("\ncalls {asked}, converged {converged} of {ended}, set published {published}, set received {sets}");
    println!(
        "the relay moved in {moves}; {} asked for where it stood already: each caller has a relay to itself and \
         wants the other position each time",
        sets.saturating_sub(moves)
    );
    let same = [ended, converged, published, sets].iter().all(|count| *count == asked);
    targets.check(same, &format!("operations = publishes = calls: {converged} = {published} = {asked}"));
    let lost: u64 = [
        "truetwin_door_commands_lost_total",
        "truetwin_door_reports_refused_total",
        "truetwin_replies_unheard_total",
        "truetwin_calls_unanswered_total",
        "truetwin_refusals_total",
        "truetwin_unreadable_events_total",
        "truetwin_actor_restarts_total",
        "truetwin_tool_panics_total",
    ]
    .iter()
    .map(|metric| grew(metric, ""))
    .sum();
    let (bad, first) = &callers.bad;
    let what = format!(
        "nothing lost: {bad} answers other than confirmed{}, {lost} lost, refused or unheard, {failed} devices dropped out, \
         {} frames sent again over the bus",
        first.as_ref().map(|said| format!(" ({said})")).unwrap_or_default(),
        grew("truetwin_bus_resends_total", "")
    );
    targets.check(*bad == 0 && lost == 0 && failed == 0, &what);
}
