//! What a hub finds at its start.

use std::{collections::BTreeMap, path::Path};

use rusqlite::{Connection, Row};

use super::{
    Error,
    entry::{Admission, HeldRow, OperationRow, ReportedRow, RetainedRow},
    schema::damaged,
};

/// All that is needed to go on; the audit is read by whoever asks for it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Recovered {
    /// Values by name.
    pub named: BTreeMap<String, String>,
    /// Operations that were taken in and never ended: the process died over them.
    pub admitted: Vec<Admission>,
    /// Those that ended, oldest first; of each only its last row.
    pub operations: Vec<OperationRow>,
    /// Set points.
    pub held: Vec<HeldRow>,
    /// Last reported values.
    pub reported: Vec<ReportedRow>,
    /// Descriptions by device.
    pub descriptions: BTreeMap<String, String>,
    /// Retained messages of service accounts.
    pub retained: Vec<RetainedRow>,
}

/// Reads everything. With a million operations this is a second; retention keeps it far below.
pub(super) fn read(path: &Path, connection: &mut Connection) -> Result<Recovered, Error> {
    let read = || -> rusqlite::Result<Recovered> {
        let admission = |row: &Row<'_>| {
            Ok(Admission {
                op: row.get(0)?,
                device: row.get(1)?,
                what: row.get(2)?,
                caller: row.get(3)?,
                at_ms: row.get(4)?,
                json: row.get(5)?,
            })
        };
        let operation = |row: &Row<'_>| {
            Ok(OperationRow { op: row.get(0)?, device: row.get(1)?, at_ms: row.get(2)?, json: row.get(3)? })
        };
        let held = |row: &Row<'_>| Ok(HeldRow { device: row.get(0)?, property: row.get(1)?, json: row.get(2)? });
        let reported = |row: &Row<'_>| {
            Ok(ReportedRow { device: row.get(0)?, property: row.get(1)?, at_ms: row.get(2)?, json: row.get(3)? })
        };
        let retained = |row: &Row<'_>| {
            Ok(RetainedRow {
                topic: row.get(0)?,
                qos: row.get(1)?,
                expires_ms: row.get(2)?,
                properties: row.get(3)?,
                payload: row.get(4)?,
            })
        };
        let pair = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?));
        let c = &*connection;
        Ok(Recovered {
            named: all(c, "SELECT name, value FROM named", pair)?.into_iter().collect(),
            admitted: all(c, "SELECT op, device, what, caller, at_ms, json FROM admission ORDER BY at_ms, op", admission)?,
            operations: all(
                c,
                "SELECT op, device, at_ms, json FROM operation WHERE number IN (SELECT max(number) FROM operation GROUP BY op)
                 ORDER BY number",
                operation,
            )?,
            held: all(c, "SELECT device, property, json FROM held", held)?,
            reported: all(c, "SELECT device, property, at_ms, json FROM reported", reported)?,
            descriptions: all(c, "SELECT device, json FROM description", pair)?.into_iter().collect(),
            retained: all(c, "SELECT topic, qos, expires_ms, properties, payload FROM retained", retained)?,
        })
    };
    read().map_err(|error| damaged(path, &error))
}

fn all<T>(
    connection: &Connection,
    sql: &str,
    row: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
) -> rusqlite::Result<Vec<T>> {
    connection.prepare(sql)?.query_map([], row)?.collect()
}
