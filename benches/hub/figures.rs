//! Samples, quantiles, and whether a target is met.

use std::time::Duration;

/// What one kind of call cost with one number of callers, over all rounds.
#[derive(Debug, Default)]
pub(crate) struct Sample {
    rounds: Vec<Round>,
    took: Vec<Duration>,
    measured_cpu_s: f64,
    load_cpu_s: f64,
}

/// One round.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Round {
    /// The duration that half of its calls did not exceed, milliseconds.
    pub(crate) p50_ms: f64,
    /// Calls a second.
    pub(crate) rate: f64,
}

impl Sample {
    /// Adds a round: how long each call took, how long the round was, and processor seconds of what was measured and of
    /// the load.
    pub(crate) fn add(&mut self, mut took: Vec<Duration>, spent: Duration, measured_cpu_s: f64, load_cpu_s: f64) {
        took.sort_unstable();
        self.rounds.push(Round { p50_ms: quantile_ms(&took, 0.5), rate: took.len() as f64 / spent.as_secs_f64() });
        self.took.extend(took);
        self.measured_cpu_s += measured_cpu_s;
        self.load_cpu_s += load_cpu_s;
    }

    /// The rounds, in order.
    pub(crate) fn rounds(&self) -> &[Round] {
        &self.rounds
    }

    /// One line of the table.
    pub(crate) fn line(&self, what: &str) -> String {
        let us = |cpu_s: f64| cpu_s * 1e6 / self.took.len().max(1) as f64;
        let mut took = self.took.clone();
        took.sort_unstable();
        format!(
            "{what:<42} {:>7} {:>9.3} {:>9.3} {:>9.0} {:>7.0} {:>7.0}",
            took.len(),
            quantile_ms(&took, 0.5),
            quantile_ms(&took, 0.99),
            median(self.rounds.iter().map(|round| round.rate)),
            us(self.measured_cpu_s),
            us(self.load_cpu_s)
        )
    }
}

/// The duration that a share of sorted ones does not exceed, milliseconds; 0 of none.
fn quantile_ms(sorted: &[Duration], share: f64) -> f64 {
    let at = (share * sorted.len() as f64) as usize;
    sorted.get(at.min(sorted.len().saturating_sub(1))).map_or(0.0, |took| took.as_secs_f64() * 1e3)
}

/// The middle one; 0 of none.
pub(crate) fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_unstable_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}

/// The head of the table.
pub(crate) fn head(callers: usize) -> String {
    let what = if callers == 1 { "1 caller".to_owned() } else { format!("{callers} callers") };
    format!(
        "{what:<42} {:>7} {:>9} {:>9} {:>9} {:>7} {:>7}",
        "calls", "p50 ms", "p99 ms", "calls/s", "cpu us", "load us"
    )
}

/// Targets, as they were met or missed.
#[derive(Debug, Default)]
pub(crate) struct Targets {
    lines: Vec<String>,
    /// How many were missed.
    pub(crate) missed: usize,
}

impl Targets {
    /// Notes one.
    pub(crate) fn check(&mut self, met: bool, what: &str) {
        self.missed += usize::from(!met);
        self.lines.push(format!("{} {what}", if met { "PASS" } else { "MISS" }));
    }

    /// All of them.
    pub(crate) fn text(&self) -> String {
        self.lines.join("\n")
    }
}
