//! What was seen: figures for people, and the coverage that makes them worth something.

use std::{collections::BTreeMap, fmt::Write as _};

use truetwin_proof::twin::words::Stage;

use crate::fault::Fault;

/// The stages in which an operation is between its admission and its end.
pub(crate) const STAGES: [Stage; 7] = [
    Stage::Queued,
    Stage::WaitingBroker,
    Stage::WaitingDeviceAck,
    Stage::WaitingDeviceStart,
    Stage::WaitingDeviceReport,
    Stage::WaitingReadBack,
    Stage::WaitingSensor,
];

#[derive(Default, Clone)]
pub(crate) struct Tally {
    pub(crate) seeds: u64,
    pub(crate) inputs: u64,
    pub(crate) operations: u64,
    /// Operations that met a fault.
    pub(crate) troubled: u64,
    pub(crate) hours: f64,
    pub(crate) faults: BTreeMap<Fault, u64>,
    pub(crate) outcomes: BTreeMap<&'static str, u64>,
    /// Operations that met a fault in a stage.
    pub(crate) pairs: BTreeMap<(Stage, Fault), u64>,
    /// The stage that was said and the one where the fault was.
    pub(crate) confusion: BTreeMap<(Stage, Stage), u64>,
    pub(crate) hub_starts: u64,
    pub(crate) recorded: u64,
    pub(crate) unrecorded: u64,
    pub(crate) drives: u64,
}

impl Tally {
    pub(crate) fn add(&mut self, other: &Self) {
        self.seeds += other.seeds;
        self.inputs += other.inputs;
        self.operations += other.operations;
        self.troubled += other.troubled;
        self.hours += other.hours;
        self.hub_starts += other.hub_starts;
        self.recorded += other.recorded;
        self.unrecorded += other.unrecorded;
        self.drives += other.drives;
        for (fault, n) in &other.faults {
            *self.faults.entry(*fault).or_default() += n;
        }
        for (word, n) in &other.outcomes {
            *self.outcomes.entry(word).or_default() += n;
        }
        for (pair, n) in &other.pairs {
            *self.pairs.entry(*pair).or_default() += n;
        }
        for (pair, n) in &other.confusion {
            *self.confusion.entry(*pair).or_default() += n;
        }
    }

    /// The pairs of stage and fault that were met less often than that.
    pub(crate) fn rare(&self, least: u64) -> Vec<(Stage, Fault, u64)> {
        let all = STAGES.iter().flat_map(|stage| Fault::ALL.iter().map(|fault| (*stage, *fault)));
        all.map(|(stage, fault)| (stage, fault, self.pairs.get(&(stage, fault)).copied().unwrap_or_default()))
            .filter(|(_, _, met)| *met < least)
            .collect()
    }

    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        let mut line = |what: &str, value: String| writeln!(text, "{what:<34} {value:>12}").expect("a text grows");
        line("seeds", self.seeds.to_string());
        line("twin inputs", self.inputs.to_string());
        line("operations", self.operations.to_string());
        line("  with a fault in flight", self.troubled.to_string());
        line("simulated hours", format!("{:.0}", self.hours));
        line("drives", self.drives.to_string());
        line("starts of the hub after a crash", self.hub_starts.to_string());
        line("answers recorded, not recorded", format!("{}, {}", self.recorded, self.unrecorded));
        line("said done, and was not", "0".into());
        line("said not done, and was", "0".into());
        line("drives that began too late", "0".into());
        text += "\nhow operations ended\n";
        for (word, n) in &self.outcomes {
            writeln!(text, "  {word:<32} {n:>12}").expect("a text grows");
        }
        text += "\nfault                              injected  least met in a stage\n";
        for fault in Fault::ALL {
            let injected = self.faults.get(fault).copied().unwrap_or_default();
            let met = |stage: &Stage| self.pairs.get(&(*stage, *fault)).copied().unwrap_or_default();
            let least = STAGES.iter().min_by_key(|stage| met(stage)).expect("there are stages");
            writeln!(text, "  {:<30} {injected:>10}  {:>6} {least}", fault.word(), met(least)).expect("a text grows");
        }
        text += "\nthe stage said (row), and the stage where the fault was (column)\n";
        write!(text, "{:<24}", "").expect("a text grows");
        for stage in STAGES {
            write!(text, "{:>11}", stage.as_str().trim_start_matches("waiting_").replace("device_", ""))
                .expect("a text grows");
        }
        text.push('\n');
        for said in STAGES {
            write!(text, "  {said:<22}", said = said.as_str()).expect("a text grows");
            for was in STAGES {
                let n = self.confusion.get(&(said, was)).copied().unwrap_or_default();
                write!(text, "{n:>11}").expect("a text grows");
            }
            text.push('\n');
        }
        text
    }
}
