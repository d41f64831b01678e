//! Moves what was written from SQLite's log into the file, on a thread of its own: a commit never waits for it, but where the log would
//! never end.
//!
//! `PASSIVE` takes no lock that a commit wants. `RESTART` does: SQLite holds the lock of writers while it moves what is left, syncs
//! the file, and waits for readers of old pages (a second at most, `busy_timeout`); on a slow card that is as long as its sync. A
//! commit that met it in SQLite would be given up after that second, and its callers told `journal_down` or `recorded: false` of a
//! disk that is only slow. So the writer waits for [`Log::turn`] instead, without a limit: what comes meanwhile waits in line, is
//! kept afterwards, and a caller whose time is over first is answered by its own limit (semantics 4.8).

use std::{
    fs,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::Ordering,
        mpsc::{self, SyncSender},
    },
    thread::{self, JoinHandle},
};

use super::{Counters, Error, schema};

/// From so many bytes of log on it is moved, and again each time it has grown by as much. Larger means fewer writes of the same
/// page, and a longer start after a crash.
const LOG_BYTES: u64 = 4 * 1_048_576;

/// A log so large that commits wait for once, so that it ends: moving beside a writer that never rests never comes to its end.
const LOG_BYTES_MAX: u64 = 4 * LOG_BYTES;

/// The log as the writer sees it.
pub(super) struct Log {
    path: PathBuf,
    grown: SyncSender<()>,
    turn: Arc<Turn>,
}

/// Held by who has SQLite's lock of writers: a commit, or a log that is ended.
#[derive(Default)]
pub(super) struct Turn(Mutex<()>);

impl Turn {
    /// Waits for it.
    pub(super) fn take(&self) -> MutexGuard<'_, ()> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Log {
    /// Wakes the thread that moves it, if there is enough to move.
    pub(super) fn look(&self) {
        if bytes(&self.path) >= LOG_BYTES {
            let _it_is_awake_already = self.grown.try_send(());
        }
    }

    /// Whose turn it is to write; to be held for as long as a commit takes.
    pub(super) fn turn(&self) -> &Arc<Turn> {
        &self.turn
    }
}

/// The log's length: what is in it, because the first commit after it was wholly moved cuts it (`journal_size_limit`).
fn bytes(log: &Path) -> u64 {
    fs::metadata(log).map_or(0, |log| log.len())
}

/// Starts the thread, which ends with the log's handle.
pub(super) fn start(path: &Path, counters: Arc<Counters>) -> Result<(Log, JoinHandle<()>), Error> {
    let connection = schema::connect(path)?;
    let log = path.with_extension("db-wal");
    let (grown, told) = mpsc::sync_channel(1);
    let turn = Arc::new(Turn::default());
    let handle = Log { path: log.clone(), grown, turn: turn.clone() };
    let mut before = 0;
    let mut account = move || {
        let written = thread_written_bytes();
        counters.written_bytes.fetch_add(written.saturating_sub(before), Ordering::Relaxed);
        before = written;
    };
    let thread = thread::Builder::new().name("checkpoint".to_owned()).spawn(move || {
        let mut due_bytes = LOG_BYTES;
        while told.recv().is_ok() {
            let log_bytes = bytes(&log);
            // It was cut meanwhile.
            if log_bytes + LOG_BYTES < due_bytes {
                due_bytes = LOG_BYTES;
            }
            if log_bytes >= due_bytes {
                // The writer goes on meanwhile; what it adds is moved the next time. A log that never ends so is ended: commits wait
                // for the little that was added since.
                let hows: &[&str] = if log_bytes < LOG_BYTES_MAX { &["PASSIVE"] } else { &["PASSIVE", "RESTART"] };
                for how in hows {
                    let _commits_wait = (*how == "RESTART").then(|| turn.take());
                    if let Err(error) = connection.query_row(&format!("PRAGMA wal_checkpoint({how})"), [], |_| Ok(())) {
                        tracing::warn!(%error, "the journal's log could not be moved into its file");
                    }
                }
                due_bytes = log_bytes + LOG_BYTES;
                account();
            }
        }
        // At the end everything is in the one file: it can be copied as it stands.
        if let Err(error) = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())) {
            tracing::warn!(%error, "the journal's log could not be moved into its file");
        }
        account();
    });
    Ok((handle, thread.map_err(Error::Thread)?))
}

/// Bytes that this thread has handed to the system for writing so far; 0 where there is no `/proc`.
pub(super) fn thread_written_bytes() -> u64 {
    let io = fs::read_to_string("/proc/thread-self/io").unwrap_or_default();
    let written = io.lines().find_map(|line| line.strip_prefix("wchar:"));
    written.and_then(|bytes| bytes.trim().parse().ok()).unwrap_or(0)
}
