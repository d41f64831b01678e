//! What the journal costs: converged calls a second with it and without, in turns; what it writes for each call and in an idle
//! house; and how long a killed hub takes until it knows everything again.

use std::{
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::task::JoinHandle;
use truetwin::journal::{Entry, Journal, ReportedRow, Retention};
use truetwin_wire::words::EvidenceWord;

use crate::{
    PIN,
    books::Books,
    config,
    figures::{Sample, Targets, median},
    load::{Call, Callers, DEVICES, RELAYS},
    memory,
    process::Hub,
};

/// Callers at once: enough that the hub works without a pause.
const CALLERS: usize = 100;

/// One round of one hub.
const ROUND: Duration = Duration::from_millis(300);

/// Devices that are known after a crash.
const RECOVERED: usize = 10_000;

/// The idle house, and what it may write in a day.
const IDLE_DEVICES: u32 = 300;
const IDLE_LOOKS: u32 = 8;
const IDLE_MB_MAX: f64 = 20.0;

/// Calls a second with the journal, of those without.
const SHARE_MIN: f64 = 0.8;

/// A hub with a load of its own.
struct Side {
    hub: Hub,
    callers: Callers,
    _devices: Vec<JoinHandle<anyhow::Result<()>>>,
}

impl Side {
    async fn start(folder: &Path, config: &str) -> anyhow::Result<Self> {
        std::fs::create_dir(folder)?;
        let names: Vec<String> = (0..DEVICES).map(|i| format!("{PIN}-{i}")).collect();
        let hub = Hub::start(folder, config, &names)?;
        let devices = memory::connect(&hub, PIN, EvidenceWord::Pin, RELAYS, &Arc::default()).await?;
        let mut callers = Callers::new(&hub, &[PIN]);
        callers.grow(CALLERS).await?;
        Ok(Self { hub, callers, _devices: devices })
    }

    async fn round(&mut self, sample: &mut Sample) -> anyhow::Result<()> {
        self.callers.round(&self.hub, Call::Switch(PIN), ROUND, sample).await
    }
}

/// Measures and prints; checks the targets.
pub(crate) async fn measure(folder: &Path, rounds: u32, targets: &mut Targets) -> anyhow::Result<()> {
    let mut with = Side::start(&folder.join("with"), &config()).await?;
    let off = format!("{}[journal]\nkeep = \"off\"\n", config());
    let mut without = Side::start(&folder.join("without"), &off).await?;
    let (mut kept, mut unkept) = (Sample::default(), Sample::default());
    let mut before = Books::read(&with.hub).await?;
    for round in 0..=rounds {
        if round == 1 {
            // The first warms up and is not counted.
            (kept, unkept) = (Sample::default(), Sample::default());
            before = Books::read(&with.hub).await?;
        }
        with.round(&mut kept).await?;
        without.round(&mut unkept).await?;
    }
    // The writer adds its figures once a second.
    tokio::time::sleep(Duration::from_secs(2)).await;
    let after = Books::read(&with.hub).await?;
    let grew = |metric: &str| (after.sum(metric, "") - before.sum(metric, "")) as f64;
    let calls = grew("truetwin_operations_total");
    let share = median(kept.rounds().iter().zip(unkept.rounds()).map(|(kept, unkept)| kept.rate / unkept.rate));
    println!("\njournal, {CALLERS} callers");
    println!(
        "  with it, calls/s                         {:>8.0}",
        median(kept.rounds().iter().map(|round| round.rate))
    );
    println!(
        "  without, calls/s                         {:>8.0}",
        median(unkept.rounds().iter().map(|round| round.rate))
    );
    println!(
        "  bytes written for each call              {:>8.0}",
        grew("truetwin_storage_written_bytes_total") / calls
    );
    println!(
        "  entries in one commit                    {:>8.1}",
        grew("truetwin_journal_entries_total") / grew("truetwin_journal_commits_total")
    );
    targets.check(
        share >= SHARE_MIN,
        &format!("journal: calls/s with it are {share:.2} of those without, at least {SHARE_MIN}"),
    );
    let lost = after.sum("truetwin_journal_not_kept_total", "") + after.sum("truetwin_answers_unrecorded_total", "");
    targets.check(lost == 0, &format!("journal: {lost} records or answers not kept"));
    drop((with, without));
    idle(&folder.join("idle-house"), targets)?;
    recover(&folder.join("recover"))
}

/// What a house writes in which nobody asks for anything: of each device, that reports every 30 s, the actor finds another value
/// at each look, four times an hour. The looks of two hours are written at once and scaled; time makes as many commits of them
/// again as their number does.
fn idle(folder: &Path, targets: &mut Targets) -> anyhow::Result<()> {
    std::fs::create_dir(folder)?;
    let (journal, _, running) = Journal::open(folder, Retention::default())?;
    let counted = journal.clone();
    for look in 0..IDLE_LOOKS {
        for device in 0..IDLE_DEVICES {
            journal.queue(vec![Entry::Reported(ReportedRow {
                device: format!("device-{device}"),
                property: "temperature".into(),
                at_ms: 1_800_000_000_000,
                json: format!("{{\"value\":{look}.25,\"evidence\":\"sensor\"}}"),
            })]);
        }
    }
    running.close(journal);
    let mb = 2.0 * counted.counters().written_bytes() as f64 / f64::from(IDLE_LOOKS) * 96.0 / 1e6;
    println!("  idle, {IDLE_DEVICES} devices, MB a day               {mb:>8.1}");
    targets.check(mb < IDLE_MB_MAX, &format!("journal: {mb:.1} MB a day in an idle house, below {IDLE_MB_MAX}"));
    Ok(())
}

/// A hub with many devices is killed and begins anew.
fn recover(folder: &Path) -> anyhow::Result<()> {
    std::fs::create_dir(folder)?;
    let names: Vec<String> = (0..RECOVERED).map(|i| format!("twin-{i}")).collect();
    let began = Instant::now();
    let hub = Hub::start(folder, "", &names)?;
    let first = began.elapsed();
    // SIGKILL: it has no time for anything.
    drop(hub);
    let began = Instant::now();
    let hub = Hub::start(folder, "", &[])?;
    println!("  start with {RECOVERED} devices, credentials made    {:>6.2} s", first.as_secs_f64());
    println!("  start again after SIGKILL                  {:>6.2} s", began.elapsed().as_secs_f64());
    drop(hub);
    Ok(())
}
