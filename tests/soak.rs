//! Real processes: the hub and its devices as they are installed, a bad network between them, callers over HTTP; processes are
//! killed and held, the disk is full or stalled, the wall clock jumps. What was said is held against what the devices did.
//!
//! `MINUTES=n` for so long (`make soak MINUTES=n`), `SEED=n` for the same faults in the same order; without either some seconds
//! of it, with a seed of their own. Processes are not as repeatable as the simulator: a seed chooses the faults, not the turns
//! of the threads.
//!
//! A full disk is a limit on the size of files (`prlimit --fsize`), because a small file system to be filled needs root; a slow
//! one is the journal's write lock, held by somebody else. Wall clocks jump where Debian's package faketime is installed.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::float_cmp,
    reason = "a test that cannot go on has failed, and says what it did"
)]

#[path = "soak/chance.rs"]
mod chance;
#[path = "soak/device.rs"]
mod device;
#[path = "soak/end.rs"]
mod end;
#[path = "soak/faults.rs"]
mod faults;
#[path = "soak/history.rs"]
mod history;
#[path = "soak/hub.rs"]
mod hub;
#[path = "soak/moved_house.rs"]
mod moved_house;
#[path = "soak/proxy.rs"]
mod proxy;
#[path = "soak/round.rs"]
mod round;

use std::{
    collections::BTreeMap,
    sync::atomic::Ordering,
    time::{Duration, Instant},
};

use crate::{
    chance::Chance,
    end::{Limit, Wait},
    round::House,
};

/// When a caller is answered at the latest, milliseconds: short, so that an answer that is missing is missed soon.
const LIMIT_MS: u64 = 5_000;

/// So much beyond the limit a caller still waits, milliseconds: only a hang meets it.
const HANG_MS: u64 = 30_000;

/// One round, milliseconds, in a house of its own.
const ROUND_MS: u64 = 40_000;

/// The only round where no minutes are asked for.
const SHORT_MS: u64 = 10_000;

/// So much longer than was asked for a run may take, beside as much again for what is looked at after each round: only a hang
/// meets it.
const SLACK: Duration = Duration::from_secs(180);

/// How long anything may take to come about, once nothing hinders it any more.
const WITHIN: Duration = Duration::from_secs(90);

/// Looks again and again until something is so; says what was waited for if it never is, or if a look itself hangs.
async fn until<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let _waits = Wait::of(what);
    let looking = async {
        loop {
            if let Some(found) = look().await {
                return found;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let found = tokio::time::timeout(WITHIN, looking).await;
    found.unwrap_or_else(|_| panic!("still not so after {} s: {what}", WITHIN.as_secs()))
}

fn number(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name}={text} is no whole number")))
}

/// What all rounds came to.
#[derive(Default)]
struct Sum {
    rows: BTreeMap<String, u64>,
    outcomes: BTreeMap<String, u64>,
    wrong: Vec<String>,
    late: Vec<String>,
    lost: Vec<String>,
    latest_ms: u64,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_said_to_be_done_is_done_whatever_happens_to_the_processes() {
    let begun = Instant::now();
    let budget_ms = number("MINUTES").map_or(SHORT_MS, |minutes| minutes * 60_000);
    let _limit = Limit::of("what is said is held against what is done", Duration::from_millis(2 * budget_ms) + SLACK);
    let first = number("SEED").unwrap_or_else(|| u64::from(std::process::id()));
    if hub::faketime().is_none() {
        println!("soak: the wall clock does not jump: Debian's package faketime is not installed");
    }
    let (mut sum, mut seed) = (Sum::default(), first);
    loop {
        let left_ms = budget_ms.saturating_sub(hub::since(begun));
        println!("soak: SEED={seed}");
        let before = sum.wrong.len() + sum.late.len() + sum.lost.len();
        one_round(seed, left_ms.min(ROUND_MS), &mut sum).await;
        let after = sum.wrong.len() + sum.late.len() + sum.lost.len();
        if after > before {
            println!("soak: again: make soak SEED={seed}");
        }
        seed += 1;
        // What is left is not worth a house.
        if hub::since(begun) + SHORT_MS > budget_ms {
            break;
        }
    }
    println!("\n{:<44} {:>9}", "soak", begun.elapsed().as_secs());
    for (name, count) in sum.outcomes.iter().chain(&sum.rows) {
        println!("  {name:<42} {count:>9}");
    }
    println!("  {:<42} {:>9}", "longest beyond a limit, ms", sum.latest_ms);
    println!("  {:<42} {:>9}", "wrong answers", sum.wrong.len());
    println!("  {:<42} {:>9}", "late drives", sum.late.len());
    println!("  {:<42} {:>9}", "lost records", sum.lost.len());
    let all = [sum.wrong, sum.late, sum.lost].concat();
    assert!(all.is_empty(), "SEED={first}:\n{}", all.join("\n"));
}

async fn one_round(seed: u64, length_ms: u64, sum: &mut Sum) {
    let mut chance = Chance::new(seed);
    let mut house = House::build(seed).await;
    let callers = house.callers(&mut chance);
    let ends_ms = house.now() + length_ms;
    faults::happen(&mut house, &mut chance, ends_ms).await;
    house.common.over.store(true, Ordering::Relaxed);
    house.proxy.clear();
    let waits = Wait::of("the callers end");
    for caller in callers {
        caller.await.unwrap();
    }
    drop(waits);
    let lives = house.judge().await;
    let counted = house.proxy.counted();
    let packets = [
        ("packets", &counted.packets),
        ("packets lost", &counted.lost),
        ("packets twice", &counted.twice),
        ("packets late", &counted.delayed),
        ("connections cut", &counted.cut),
    ];
    let moves: usize = lives.iter().map(|life| life.moves.len()).sum();
    let others = [
        ("moves", moves as u64),
        ("calls", house.history.asked.len() as u64),
        ("hubs", house.history.lives.len() as u64),
    ];
    let packets = packets.map(|(name, count)| (name, count.load(Ordering::Relaxed)));
    let faults = house.faults.iter().map(|(name, count)| (name.as_str(), *count));
    for (name, count) in faults.chain(packets).chain(others) {
        *sum.rows.entry(name.to_owned()).or_default() += count;
    }
    for (name, count) in house.history.outcomes() {
        *sum.outcomes.entry(name).or_default() += count;
    }
    let history = &mut house.history;
    sum.latest_ms = sum.latest_ms.max(history.latest_ms);
    for (all, found) in [
        (&mut sum.wrong, &mut history.wrong),
        (&mut sum.late, &mut history.late_drives),
        (&mut sum.lost, &mut history.lost),
    ] {
        all.extend(found.drain(..).map(|found| format!("seed {seed}: {found}")));
    }
}
