//! The printed table.

use std::time::Duration;

use serde_json::Value as Json;

use crate::cases::Case;

/// What came out of one case.
pub(crate) struct Row {
    pub(crate) case: &'static Case,
    pub(crate) answer: Json,
    pub(crate) took: Duration,
    pub(crate) later: Option<&'static str>,
    pub(crate) moves: u64,
    pub(crate) on: bool,
    pub(crate) differs: Vec<String>,
}

const HEADS: [&str; 10] =
    ["fault (simulator)", "result", "outcome", "stage", "reason", "evidence", "later", "really", "took", "="];

/// Prints all rows, and below each that differs what differs.
pub(crate) fn print(rows: &[Row]) {
    let cells: Vec<[String; 10]> = rows.iter().map(cells).collect();
    let heads = HEADS.map(str::to_owned);
    let width = |column: usize| cells.iter().chain([&heads]).map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..HEADS.len()).map(width).collect();
    let line = |row: &[String; 10]| {
        let padded = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}"));
        println!("{}", padded.collect::<Vec<_>>().join("  ").trim_end());
    };
    line(&heads);
    for (row, cells) in rows.iter().zip(&cells) {
        line(cells);
        for difference in &row.differs {
            println!("    ≠ {difference}");
        }
    }
}

fn cells(row: &Row) -> [String; 10] {
    let word = |field: &str| row.answer[field].as_str().unwrap_or("-").to_owned();
    let position = if row.on { "on" } else { "off" };
    [
        format!("{} ({})", row.case.row, row.case.fault),
        word("result"),
        word("outcome"),
        word("stage"),
        word("reason"),
        word("confirmed_by"),
        row.later.unwrap_or("-").to_owned(),
        format!("{} x, {position}", row.moves),
        format!("{:.1} s", row.took.as_secs_f64()),
        if row.differs.is_empty() { "=" } else { "≠" }.to_owned(),
    ]
}
