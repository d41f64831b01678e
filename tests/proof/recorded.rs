//! What a seed did, as a recording: `truetwin replay` steps it through the hub's own twin, with what it decided at each input.

use std::{io::Cursor, path::Path};

use truetwin_proof::{
    recording::{
        form::{self, Head, Zero},
        replay::{Replay, Summary},
    },
    twin::planted::Planted,
};

use crate::{
    BUDGET,
    house::{House, Moment},
    lived,
};

impl House {
    /// From now on, which is the beginning, all that reaches the twins is kept.
    pub(crate) fn record_from_now(&mut self) {
        let hub = format!("{}, simulated", env!("CARGO_PKG_VERSION"));
        self.recording = Some(vec![form::head(&Head { hub, unix_ms: 0 })]);
        for unit in 0..self.units.len() {
            self.record_beginning(unit);
        }
    }

    /// A twin begins.
    pub(crate) fn record_beginning(&mut self, unit: usize) {
        let (zero, now) = (Zero::new(self.start), self.time(self.now));
        if let Some(recording) = &mut self.recording {
            recording.push(form::begins(zero, now, &self.units[unit].id, &self.settings));
        }
    }

    /// One input, and what came of it.
    pub(crate) fn record(&mut self, moment: &Moment) {
        let zero = Zero::new(self.start);
        if let Some(recording) = &mut self.recording {
            let Moment { unit, now, input, effects } = moment;
            recording.push(form::moment(zero, *now, &self.units[*unit].id, input, effects, false));
        }
    }
}

/// Lives a seed once more and writes what reached its twins; says how that is read.
pub(crate) fn file_of(seed: u64) -> String {
    let (house, _) = lived(seed, None, true);
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("seed-{seed}.jsonl"));
    let mut lines = house.recording.unwrap_or_default();
    lines.push(form::end("the simulation ended", house.tally.inputs, 0));
    match std::fs::write(&file, lines.join("\n") + "\n") {
        Ok(()) => format!("recorded, to be read with: truetwin replay {}", file.display()),
        Err(error) => format!("{} cannot be written: {error}", file.display()),
    }
}

/// Steps what a seed did through the twins again, without any mistake.
fn replayed(recording: &[String]) -> Summary {
    let mut replay = Replay::new("seed", Cursor::new(recording.join("\n") + "\n"), None);
    for told in replay.by_ref() {
        told.unwrap();
    }
    replay.summary().clone()
}

/// So many seeds, with each fault and crash in some.
const SEEDS: u64 = 40;

#[test]
fn what_a_seed_did_replays_with_the_same_decisions() {
    for seed in 0..SEEDS {
        let (house, broken) = lived(seed, None, true);
        broken.unwrap();
        let summary = replayed(&house.recording.unwrap());
        assert!(summary.is_whole(), "seed {seed}: {summary:?}");
        assert_eq!(summary.inputs, house.tally.inputs, "seed {seed}");
    }
}

#[test]
fn a_mistake_of_the_twin_is_where_a_replay_without_it_decides_otherwise() {
    std::panic::set_hook(Box::new(|_| {}));
    for mistake in [Planted::AckIsSuccess, Planted::StageOffByOne, Planted::NothingWithdrawn] {
        let broken =
            (0..BUDGET).map(|seed| lived(seed, Some(mistake), true)).find(|(_, lived)| lived.is_err()).unwrap();
        let (lines, summary) = (broken.0.recording.clone().unwrap(), replayed(&broken.0.recording.unwrap()));
        let first = summary.first_difference.expect("the mistake was made");
        // The invariants run after each input: what broke one is among the last that were recorded.
        assert!(first <= lines.len() as u64 && first > 1, "{mistake:?}: line {first} of {}", lines.len());
    }
}
