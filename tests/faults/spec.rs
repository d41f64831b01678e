//! The fault table as it stands in the specification.

use crate::cases::Case;

const SEMANTICS: &str = include_str!("../../src/twin/semantics.md");

/// One row of the document.
#[derive(Debug)]
pub(crate) struct Spec {
    pub(crate) fault: &'static str,
    outcome: &'static str,
    stage: &'static str,
    reason: &'static str,
    relay: &'static str,
    /// Whether the hub keeps it already.
    pub(crate) due: bool,
}

/// All rows; a document without them fails.
pub(crate) fn rows() -> Vec<Spec> {
    let table = SEMANTICS.split("| fault | outcome |").nth(1).expect("the fault table");
    let lines = table.lines().skip(2).take_while(|line| line.starts_with('|'));
    let rows: Vec<Spec> = lines
        .map(|line| {
            let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
            Spec {
                fault: cells[0],
                outcome: cells[1],
                stage: cells[2],
                reason: cells[3],
                relay: cells[4],
                due: cells[5] == "now",
            }
        })
        .collect();
    assert!(rows.len() > 20, "{} rows", rows.len());
    rows
}

impl Spec {
    /// Whether what a case expects is what the row says.
    pub(crate) fn allows(&self, case: &Case) -> bool {
        let reason = match case.reason {
            None => true,
            Some("timeout_after_") => self.reason.contains("timeout"),
            // The reason is the device's, or the sensor's, own.
            Some(word) => self.reason.contains(word) || !self.reason.contains('`'),
        };
        // Cells that say more than how often are for people.
        let moves = match self.relay {
            "still" | "still, also after thawing" => case.moves == (0..=0),
            "moved once" | "moves once" => case.moves == (1..=1),
            "moved, back" => case.moves == (2..=2),
            _ => true,
        };
        self.outcome.contains(case.outcome) && self.stage == case.stage && reason && moves
    }
}
