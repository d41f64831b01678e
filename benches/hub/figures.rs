//! Samples, quantiles, and whether a target is met.

use std::time::Duration;

/// What one kind of call cost with one number of callers, over all rounds.
#[derive(Debug, Default)]
pub(crate) struct Sample {
    took: Vec<Duration>,
    spent: Duration,
    measured_cpu_s: f64,
    load_cpu_s: f64,
}

impl Sample {
    /// Adds a round: how long each call took, how long the round was, and processor seconds of what was measured and of
    /// the load.
    pub(crate) fn add(&mut self, took: Vec<Duration>, spent: Duration, measured_cpu_s: f64, load_cpu_s: f64) {
        self.took.extend(took);
        self.spent += spent;
        self.measured_cpu_s += measured_cpu_s;
        self.load_cpu_s += load_cpu_s;
    }

    /// The duration that a share of the calls did not exceed, milliseconds; 0 without calls.
    pub(crate) fn quantile_ms(&self, share: f64) -> f64 {
        let mut sorted = self.took.clone();
        sorted.sort_unstable();
        let at = (share * sorted.len() as f64) as usize;
        sorted.get(at.min(sorted.len().saturating_sub(1))).map_or(0.0, |took| took.as_secs_f64() * 1e3)
    }

    /// Calls a second.
    pub(crate) fn rate(&self) -> f64 {
        self.took.len() as f64 / self.spent.as_secs_f64().max(1e-9)
    }

    /// One line of the table.
    pub(crate) fn line(&self, what: &str) -> String {
        let us = |cpu_s: f64| cpu_s * 1e6 / self.took.len().max(1) as f64;
        format!(
            "{what:<42} {:>7} {:>9.3} {:>9.3} {:>9.0} {:>7.0} {:>7.0}",
            self.took.len(),
            self.quantile_ms(0.5),
            self.quantile_ms(0.99),
            self.rate(),
            us(self.measured_cpu_s),
            us(self.load_cpu_s)
        )
    }
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
