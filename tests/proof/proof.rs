//! The simulator: houses from seeds, with the invariants of semantics 9 after each step. `make sim` prints what it saw.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![expect(clippy::wildcard_enum_match_arm, reason = "a fault that is special in one place is not in most others")]

mod board;
mod checks;
mod core;
mod crashes;
mod disk;
mod ends;
mod fault;
mod house;
mod hub;
mod journal;
mod log;
mod noted;
mod random;
mod recorded;
mod small;
mod steps;
mod tally;
mod unit;
mod way;

use std::{
    io::Write as _,
    panic::{AssertUnwindSafe, catch_unwind},
    time::Instant,
};

use house::House;
use tally::Tally;
use truetwin_proof::twin::planted::{Planted, plant};

/// Seeds that are lived in each run.
const SEEDS: u64 = 12_500;

/// Lives one seed; what it saw, or what broke.
fn live(seed: u64, mistake: Option<Planted>, trace: bool) -> Result<Tally, String> {
    let (mut house, lived) = lived(seed, mistake, trace);
    match lived {
        Ok(()) => Ok(std::mem::take(&mut house.tally)),
        Err(text) => {
            let lines: Vec<String> = house.trace.take().unwrap_or_default().into();
            Err(format!("seed {seed}, {:?}\n{}\n{text}", house.setting, lines.join("\n")))
        }
    }
}

/// The house that a seed makes, as it is when all of it was lived, or an invariant broke.
fn lived(seed: u64, mistake: Option<Planted>, trace: bool) -> (House, Result<(), String>) {
    plant(mistake);
    // Every ninth house has nothing but good luck, and more is demanded of it.
    let good = seed % 9 == 8;
    let setting = if good { steps::lucky(seed) } else { steps::setting(seed) };
    let mut house = House::new(seed, setting);
    if trace {
        house.trace = Some(std::collections::VecDeque::new());
        house.record_from_now();
    }
    let lived = catch_unwind(AssertUnwindSafe(|| if good { house.good_day() } else { house.live() }));
    plant(None);
    let lived = lived.map_err(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        text.or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string)).unwrap_or_default()
    });
    (house, lived)
}

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// How often each fault must be met in each stage.
const PAIR_MIN: u64 = 50;

/// A mistake that is planted must break an invariant within so many seeds.
const BUDGET: u64 = 1_500;

/// The first seed that finds a mistake, and what it said.
fn killed(mistake: Planted, budget: u64) -> Option<(u64, String)> {
    (0..budget).find_map(|seed| {
        let story = live(seed, Some(mistake), false).err()?;
        Some((seed, story.lines().last().unwrap_or_default().to_owned()))
    })
}

/// The simulator bites: each mistake that is planted breaks an invariant.
#[test]
fn each_planted_mistake_breaks_an_invariant() {
    std::panic::set_hook(Box::new(|_| {}));
    let halves: Vec<Vec<Planted>> =
        (0..2).map(|half| Planted::ALL.iter().copied().skip(half).step_by(2).collect()).collect();
    let workers: Vec<_> = halves
        .into_iter()
        .map(|half| std::thread::spawn(move || half.into_iter().map(|m| (m, killed(m, BUDGET))).collect::<Vec<_>>()))
        .collect();
    let all: Vec<_> = workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect();
    let mut table = format!("{:<24} {:>10}  what it said\n", "planted mistake", "seeds");
    for (mistake, found) in &all {
        let (seeds, said) = found
            .clone()
            .map_or_else(|| ("SURVIVES".to_owned(), String::new()), |(seed, said)| ((seed + 1).to_string(), said));
        table += &format!("{:<24} {seeds:>10}  {said}\n", format!("{mistake:?}"));
    }
    let survivors = all.iter().filter(|(_, found)| found.is_none()).count();
    say(&format!("{table}{} of {} killed", all.len() - survivors, all.len()));
    assert_eq!(survivors, 0, "planted mistakes that no invariant noticed, see above");
}

/// States that are gone through at the most: a bound for the day when the machine is slow; it is not reached.
const STATES_MAX: u64 = 3_000_000;

/// Goes through every order of so many events.
fn search(left: small::Left) {
    std::panic::set_hook(Box::new(|_| {}));
    let began = Instant::now();
    let found = small::explore(left, STATES_MAX);
    let seconds = began.elapsed().as_secs_f64();
    say(&format!("small scope: {left:?}: {} states, {} moves, {seconds:.1} s", found.states, found.moves));
    if let Some(broken) = &found.broken {
        say(broken);
        panic!("an order of events breaks an invariant, see above");
    }
    assert!(found.states < STATES_MAX, "not all of it was gone through");
}

fn little(name: &str, default: u64) -> u8 {
    u8::try_from(number(name, default)).unwrap()
}

#[test]
fn in_the_small_every_order_of_events_keeps_the_invariants() {
    search(small::Left {
        messages: little("MESSAGES", 12),
        losses: 0,
        reboots: 1,
        crashes: 1,
        waits: little("WAITS", 2),
        asks: [true, true],
    });
}

/// Where any one of the messages may be lost as well there are several times as many orders: of fewer messages, and more time
/// passes, because only that shows what was lost.
#[test]
fn in_the_small_every_order_of_events_with_a_message_lost_keeps_the_invariants() {
    search(small::Left {
        messages: little("LOSSY_MESSAGES", 8),
        losses: little("LOSSES", 1),
        reboots: 1,
        crashes: 1,
        waits: little("LOSSY_WAITS", 3),
        asks: [true, true],
    });
}

/// Past the harness, which shows nothing of what passes.
fn say(text: &str) {
    let _nobody_reads = writeln!(std::io::stdout(), "{text}");
}

#[test]
fn every_house_keeps_the_invariants() {
    std::panic::set_hook(Box::new(|_| {}));
    let (seeds, first) = (number("SEEDS", SEEDS), number("FIRST", 0));
    let began = Instant::now();
    let workers: Vec<_> = (0..2)
        .map(|worker| {
            std::thread::spawn(move || {
                let (mut tally, mut broken) = (Tally::default(), Vec::new());
                for seed in (first + worker..first + seeds).step_by(2) {
                    match live(seed, None, false) {
                        Ok(lived) => tally.add(&lived),
                        Err(story) => broken.push((seed, story)),
                    }
                }
                (tally, broken)
            })
        })
        .collect();
    let (mut tally, mut broken) = (Tally::default(), Vec::new());
    for worker in workers {
        let (lived, failed) = worker.join().unwrap();
        tally.add(&lived);
        broken.extend(failed);
    }
    say(&format!("{}\n{:.1} s", tally.text(), began.elapsed().as_secs_f64()));
    let rare: Vec<String> =
        tally.rare(PAIR_MIN).iter().map(|(stage, fault, met)| format!("{stage} x {}: {met}", fault.word())).collect();
    for (seed, story) in &broken {
        say(&format!("seed {seed}: {}", story.lines().rev().take(3).collect::<Vec<_>>().join(" / ")));
    }
    if let Some((seed, _)) = broken.first() {
        say(&live(*seed, None, true).err().unwrap_or_default());
        say(&recorded::file_of(*seed));
        panic!("{} seeds broke an invariant, first {seed}, see above", broken.len());
    }
    if seeds >= SEEDS {
        assert!(tally.inputs >= 5_000_000 && tally.operations >= 200_000, "that is little");
        assert!(tally.troubled * 2 >= tally.operations, "less than half met a fault");
        assert!(
            rare.is_empty(),
            "pairs of stage and fault that were met less than {PAIR_MIN} times: {}",
            rare.join(", ")
        );
    }
}
