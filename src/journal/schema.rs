//! The tables, their version, and the way from an older one to this.

use std::{
    fs,
    io::{self, Read as _},
    os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _},
    path::Path,
};

use rusqlite::{Connection, OpenFlags, TransactionBehavior};

use super::Error;

/// The version that this program writes: SQLite's `user_version`.
pub(super) const VERSION: i64 = 2;

/// The ways from each version to the next; version 0 is an empty file. A step never changes once it was released.
const STEPS: [&str; VERSION as usize] = [
    "
    CREATE TABLE named (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;
    CREATE TABLE admission (
        op TEXT PRIMARY KEY, device TEXT NOT NULL, what TEXT NOT NULL, caller TEXT NOT NULL, at_ms INTEGER NOT NULL, json TEXT NOT NULL
    ) STRICT, WITHOUT ROWID;
    -- In the order in which they ended; read whole at a start, deleted from the front.
    CREATE TABLE operation (
        number INTEGER PRIMARY KEY, op TEXT NOT NULL, device TEXT NOT NULL, at_ms INTEGER NOT NULL, json TEXT NOT NULL
    ) STRICT;
    CREATE TABLE held (
        device TEXT NOT NULL, property TEXT NOT NULL, json TEXT NOT NULL, PRIMARY KEY (device, property)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE reported (
        device TEXT NOT NULL, property TEXT NOT NULL, at_ms INTEGER NOT NULL, json TEXT NOT NULL, PRIMARY KEY (device, property)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE description (device TEXT PRIMARY KEY, json TEXT NOT NULL) STRICT, WITHOUT ROWID;
    CREATE TABLE audit (number INTEGER PRIMARY KEY, at_ms INTEGER NOT NULL, json TEXT NOT NULL) STRICT;
",
    "
    CREATE TABLE retained (
        topic TEXT PRIMARY KEY, qos INTEGER NOT NULL, expires_ms INTEGER, properties BLOB NOT NULL, payload BLOB NOT NULL
    ) STRICT;
",
];

/// Opens the file, or makes it; afterwards it has this version's tables.
pub(super) fn open(path: &Path) -> Result<Connection, Error> {
    make_private(path)?;
    let mut connection = connect(path)?;
    let found = is_known(&connection, path)?;
    // Not the full check: that compares each index with its table, which takes time with the size of the journal, at each start.
    // What a hub writes itself SQLite keeps together; what comes from elsewhere is checked in full by `restore`.
    holds_together(&connection, path, "PRAGMA quick_check(1)")?;
    let missing = &STEPS[usize::try_from(found).unwrap_or_default()..];
    if !missing.is_empty() {
        migrate(&mut connection, missing).map_err(|error| unusable(path, &error))?;
    }
    Ok(connection)
}

/// The version of a file, if it is none of a newer program.
pub(super) fn is_known(connection: &Connection, path: &Path) -> Result<i64, Error> {
    let found = connection.query_row("PRAGMA user_version", [], |row| row.get(0));
    let found: i64 = found.map_err(|error| damaged(path, &error))?;
    known(found, path)
}

fn known(found: i64, path: &Path) -> Result<i64, Error> {
    if found > VERSION { Err(Error::Newer { path: path.to_owned(), found, known: VERSION }) } else { Ok(found) }
}

/// What a file begins with that is SQLite's, and where its version stands ("The Database Header", sqlite.org/fileformat.html).
const MAGIC: &[u8] = b"SQLite format 3\0";
const HEADER_BYTES: usize = 100;
const USER_VERSION_AT: usize = 60;

/// Looks at the head of a file without SQLite, which would make its log beside it: whether it is a database, and of a version that is
/// known. A file that is not there, or an empty one, will be made. A version that is only in the log, and what is further inside, only
/// opening it shows.
pub(super) fn look(path: &Path) -> Result<(), Error> {
    let unusable = |error: io::Error| Error::Unusable { path: path.to_owned(), problem: error.to_string() };
    let mut head = Vec::new();
    match fs::File::open(path) {
        Ok(file) => file.take(HEADER_BYTES as u64).read_to_end(&mut head).map_err(unusable)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(unusable(error)),
    };
    let version =
        head.get(USER_VERSION_AT..).and_then(|bytes| bytes.first_chunk()).map(|bytes| i32::from_be_bytes(*bytes));
    match version {
        _ if head.is_empty() => Ok(()),
        Some(found) if head.len() == HEADER_BYTES && head.starts_with(MAGIC) => known(found.into(), path).map(|_| ()),
        Some(_) | None => Err(Error::Damaged { path: path.to_owned(), problem: "file is not a database".to_owned() }),
    }
}

/// What one of SQLite's checks says, `quick_check(1)` or `integrity_check(1)`.
pub(super) fn holds_together(connection: &Connection, path: &Path, check: &str) -> Result<(), Error> {
    let problem: String = connection.query_row(check, [], |row| row.get(0)).map_err(|error| damaged(path, &error))?;
    if problem == "ok" { Ok(()) } else { Err(Error::Damaged { path: path.to_owned(), problem }) }
}

/// The file is its owner's alone, like all in the data folder; SQLite gives its log the same rights.
fn make_private(path: &Path) -> Result<(), Error> {
    let unusable = |error: io::Error| Error::Unusable { path: path.to_owned(), problem: error.to_string() };
    let mut options = fs::OpenOptions::new();
    let file = options.write(true).create(true).truncate(false).mode(0o600).open(path).map_err(unusable)?;
    file.set_permissions(fs::Permissions::from_mode(0o600)).map_err(unusable)
}

/// All steps are one transaction: a crash in the middle leaves the old version.
fn migrate(connection: &mut Connection, steps: &[&str]) -> rusqlite::Result<()> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    for step in steps {
        transaction.execute_batch(step)?;
    }
    transaction.pragma_update(None, "user_version", VERSION)?;
    transaction.commit()
}

/// One more connection to the file.
pub(super) fn connect(path: &Path) -> Result<Connection, Error> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let set_up = || {
        let connection = Connection::open_with_flags(path, flags)?;
        // Checkpoints are moved by a thread of their own; a write never waits for one.
        connection.execute_batch(
            "PRAGMA journal_mode = WAL; PRAGMA journal_size_limit = 0; PRAGMA synchronous = NORMAL; PRAGMA wal_autocheckpoint = 0; \
             PRAGMA busy_timeout = 1000;",
        )?;
        Ok(connection)
    };
    let connection = set_up().map_err(|error| damaged(path, &error))?;
    Ok(connection)
}

/// What SQLite says of a file that is none of its own is damage; everything else is the disk's or the folder's fault.
pub(super) fn damaged(path: &Path, error: &rusqlite::Error) -> Error {
    match error.sqlite_error_code() {
        Some(rusqlite::ErrorCode::NotADatabase | rusqlite::ErrorCode::DatabaseCorrupt) => {
            Error::Damaged { path: path.to_owned(), problem: error.to_string() }
        }
        _ => unusable(path, error),
    }
}

pub(super) fn unusable(path: &Path, error: &rusqlite::Error) -> Error {
    Error::Unusable { path: path.to_owned(), problem: error.to_string() }
}
