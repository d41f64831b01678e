//! A copy of the journal while it runs, and back.

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use rusqlite::{Connection, OpenFlags, backup::Backup};

use super::{Error, FILE, schema};

/// Pages copied at a time, and no pause between: the writer makes the copy itself, so nothing can change under it.
const PAGES_AT_ONCE: i32 = 1_024;

/// Copies the journal to a file that must not be there yet.
pub(super) fn copy(from: &Connection, to: &Path) -> Result<(), Error> {
    let failed = |problem: String| Error::Backup { path: to.to_owned(), problem };
    if to.exists() {
        return Err(failed("it is there already; give another name".to_owned()));
    }
    let copied = || -> rusqlite::Result<()> {
        let mut copy = Connection::open(to)?;
        Backup::new(from, &mut copy)?.run_to_completion(PAGES_AT_ONCE, Duration::ZERO, None)?;
        // The copy is one file, and on the disk once this returns.
        copy.query_row("PRAGMA journal_mode = DELETE", [], |_| Ok(()))
    };
    copied().map_err(|error| {
        let _half_a_copy_is_none = fs::remove_file(to);
        failed(error.to_string())
    })
}

/// Under which name a file is kept that is restored over: one that is free, so that nothing that was ever there is lost.
pub(super) fn before_restore(folder: &Path, name: &str) -> PathBuf {
    let first = folder.join(format!("{name}.before-restore"));
    let numbered = (2_u64..).map(|number| folder.join(format!("{name}.before-restore-{number}")));
    std::iter::once(first).chain(numbered).find(|path| !path.exists()).expect("the numbers do not end")
}

/// Looks a copy through without changing anything: all that SQLite can see, indexes too, and its version.
///
/// # Errors
/// [`Error`] if it is damaged, none, or newer than this program.
pub(super) fn check(from: &Path) -> Result<(), Error> {
    let damaged = |error: rusqlite::Error| schema::damaged(from, &error);
    let source = Connection::open_with_flags(from, OpenFlags::SQLITE_OPEN_READ_ONLY).map_err(damaged)?;
    schema::is_known(&source, from)?;
    schema::holds_together(&source, from, "PRAGMA integrity_check(1)")
}

/// Puts a copy in the place of a folder's journal; no hub may run on it. The one that was there is kept beside it.
///
/// # Errors
/// [`Error`] if the copy is none, is damaged, is newer than this program, or cannot be put there; then nothing was changed.
pub(super) fn restore(folder: &Path, from: &Path) -> Result<(), Error> {
    check(from)?;
    let path = folder.join(FILE);
    let unusable = |problem: String| Error::Unusable { path: path.clone(), problem };
    let fresh = folder.join("journal.db.restoring");
    let forget = || {
        for behind in ["", "-wal", "-shm"] {
            let _there_may_be_none = fs::remove_file(folder.join(format!("journal.db.restoring{behind}")));
        }
    };
    // An earlier try.
    forget();
    take(from, &fresh).inspect_err(|_| forget())?;
    for log in ["journal.db-wal", "journal.db-shm"] {
        let _there_may_be_none = fs::remove_file(folder.join(log));
    }
    if path.exists() {
        fs::rename(&path, before_restore(folder, FILE)).map_err(|error| unusable(error.to_string()))?;
    }
    fs::rename(&fresh, &path).map_err(|error| unusable(error.to_string()))
}

/// Copies a backup to a journal of this version.
fn take(from: &Path, fresh: &Path) -> Result<(), Error> {
    let source =
        Connection::open_with_flags(from, OpenFlags::SQLITE_OPEN_READ_ONLY).map_err(|e| schema::damaged(from, &e))?;
    copy(&source, fresh)?;
    let journal = schema::open(fresh)?;
    // The small files that came with it are the data folder's; in the journal they would be old secrets.
    journal.execute_batch("DROP TABLE IF EXISTS file").map_err(|error| schema::unusable(fresh, &error))
}
