//! What must be known again after a crash: one SQLite file, one writer.
//!
//! | file | what |
//! |---|---|
//! | `entry` | what can be kept, as plain columns |
//! | `schema` | the tables, their version, and the way from an older one |
//! | `waiting` | what waits for the writer, and when it is woken |
//! | `writer` | the one thread that writes: everything that waits is one commit |
//! | `checkpoint` | moves what was written from the log into the file, on a thread of its own |
//! | `recovered` | what a hub finds at its start |
//! | `backup` | a copy while it runs, and back |
//!
//! What is committed survives a killed process; what is committed [`Lasting::PowerCut`] is on the disk before anybody hears of
//! it (semantics 8.5). Nothing is synced for each message: an SD card has a write budget. The journal knows columns, no twins;
//! it never blocks a caller: what it can't take at once is told, and the caller goes on without (`recorded: false`).

mod backup;
mod checkpoint;
mod entry;
pub mod form;
mod recovered;
mod refusing;
mod schema;
mod waiting;
mod writer;

use std::{
    fmt, io,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread::JoinHandle,
};

use tokio::sync::oneshot;

use self::waiting::{Order, Waiting};
pub use self::{
    entry::{Admission, Entry, HeldRow, OperationRow, ReportedRow, RetainedRow},
    recovered::Recovered,
};

/// The file in the data folder.
pub const FILE: &str = "journal.db";

/// How sure something is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Lasting {
    /// Over the end of this process.
    Process,
    /// Over a power cut, too: synced.
    PowerCut,
}

/// How long what is kept is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retention {
    /// Ended operations and audit older than so many milliseconds are deleted.
    pub age_ms: u64,
    /// Above so many bytes of file the oldest of them are deleted.
    pub bytes: u64,
}

impl Default for Retention {
    /// Thirty days, 256 MiB: little beside what a Pi's card holds.
    fn default() -> Self {
        Self { age_ms: 30 * 86_400_000, bytes: 256 * 1_048_576 }
    }
}

/// Why the journal can't be used. The text says what to do.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file can't be read or written as such.
    #[error("the journal {} cannot be used: {problem}; check the disk and the rights of the folder, nothing was changed", path.display())]
    Unusable {
        /// The file.
        path: PathBuf,
        /// What SQLite says.
        problem: String,
    },
    /// The file is none of SQLite's, or its inside does not hold together.
    #[error("the journal {} is damaged: {problem}; restore a backup with: truetwin restore FILE, or move the file away to begin with an empty one", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong in it.
        problem: String,
    },
    /// It was written by a later version.
    #[error("the journal {} has version {found}, this program knows {known}; use a newer truetwin, nothing was changed", path.display())]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: i64,
        /// The version that is known.
        known: i64,
    },
    /// A copy could not be made.
    #[error("the backup {} cannot be written: {problem}", path.display())]
    Backup {
        /// The copy.
        path: PathBuf,
        /// Why.
        problem: String,
    },
    /// The thread that writes could not be started.
    #[error("the journal's thread cannot be started: {0}")]
    Thread(#[source] io::Error),
}

/// Why something is not kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotKept {
    /// More waits for the disk than may.
    #[error("the journal is behind: more waits for the disk than may")]
    Behind,
    /// The disk refused it.
    #[error("the disk refused it")]
    Refused,
    /// The journal is closed: the hub is stopping.
    #[error("the journal is closed")]
    Closed,
}

/// What is counted.
#[derive(Debug, Default)]
pub struct Counters {
    written_bytes: AtomicU64,
    commits: AtomicU64,
    entries: AtomicU64,
    not_kept: AtomicU64,
}

impl Counters {
    /// Bytes that were handed to the disk, log and file together.
    pub fn written_bytes(&self) -> u64 {
        self.written_bytes.load(Ordering::Relaxed)
    }

    /// Transactions.
    pub fn commits(&self) -> u64 {
        self.commits.load(Ordering::Relaxed)
    }

    /// Entries in them.
    pub fn entries(&self) -> u64 {
        self.entries.load(Ordering::Relaxed)
    }

    /// Entries that were not kept.
    pub fn not_kept(&self) -> u64 {
        self.not_kept.load(Ordering::Relaxed)
    }
}

/// The handle of the running journal; clones are the same journal.
#[derive(Clone)]
pub struct Journal {
    waiting: Arc<Waiting>,
    counters: Arc<Counters>,
}

/// The journal's threads; to be ended last.
#[derive(Debug)]
pub struct Running {
    writer: JoinHandle<()>,
    checkpoint: JoinHandle<()>,
}

impl Journal {
    /// Opens the journal of a data folder, brings it to this version, and reads what there is. Blocks.
    ///
    /// # Errors
    /// [`Error`]; then nothing was changed.
    pub fn open(folder: &Path, retention: Retention) -> Result<(Self, Recovered, Running), Error> {
        let path = folder.join(FILE);
        let mut connection = schema::open(&path)?;
        let recovered = recovered::read(&path, &mut connection)?;
        let counters = Arc::new(Counters::default());
        let (log, checkpoint) = checkpoint::start(&path, counters.clone())?;
        let waiting = Arc::new(Waiting::new());
        let writer = writer::start(connection, waiting.clone(), log, retention, counters.clone())?;
        Ok((Self { waiting, counters }, recovered, Running { writer, checkpoint }))
    }

    /// A journal on a disk that takes nothing and refuses nothing.
    #[cfg(test)]
    pub(crate) fn stalled() -> Self {
        Self { waiting: Arc::new(Waiting::new()), counters: Arc::default() }
    }

    /// Keeps entries in one commit, behind all that was given before. The receiver hears once they are kept; it may be dropped.
    ///
    /// # Errors
    /// [`NotKept::Behind`] or [`NotKept::Closed`] at once; what the disk says comes over the receiver.
    pub fn keep(
        &self,
        entries: Vec<Entry>,
        lasting: Lasting,
    ) -> Result<oneshot::Receiver<Result<(), NotKept>>, NotKept> {
        let (done, kept) = oneshot::channel();
        self.order(Order::Keep { entries, lasting, done: Some(done) }).map(|()| kept)
    }

    /// Keeps entries together without anybody waiting: with the next commit, or within 50 ms; values that were only reported
    /// within a quarter of an hour. What can't be taken is counted.
    pub fn queue(&self, entries: Vec<Entry>) {
        let _counted = self.order(Order::Keep { entries, lasting: Lasting::Process, done: None });
    }

    /// Copies all that was given before to a file, while the journal goes on.
    ///
    /// # Errors
    /// [`NotKept::Closed`]; what became of the copy comes over the receiver.
    pub fn backup(&self, to: PathBuf) -> Result<oneshot::Receiver<Result<(), Error>>, NotKept> {
        let (done, copied) = oneshot::channel();
        self.order(Order::Backup { to, done }).map(|()| copied)
    }

    /// What is counted.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    fn order(&self, order: Order) -> Result<(), NotKept> {
        let count = order.entries().len() as u64;
        self.waiting.give(order).inspect_err(|_| {
            self.counters.not_kept.fetch_add(count, Ordering::Relaxed);
        })
    }
}

/// Puts a backup in the place of a folder's journal; no hub may run on the folder. The journal that was there is kept as
/// `journal.db.before-restore`, with a number if there is one. Blocks.
///
/// # Errors
/// [`Error`] if the backup is none, is newer than this program, or cannot be put there; then nothing was changed.
pub fn restore(folder: &Path, from: &Path) -> Result<(), Error> {
    backup::restore(folder, from)
}

/// Whether a hub could begin with the journal of a folder, as far as its head tells: nothing is changed, nothing made, and the folder
/// may be a running hub's.
///
/// # Errors
/// [`Error`] if the file is no journal, is newer than this program or cannot be read.
pub fn look(folder: &Path) -> Result<(), Error> {
    schema::look(&folder.join(FILE))
}

/// Looks a backup through, in full, without changing anything. Blocks.
///
/// # Errors
/// [`Error`] if it is damaged, none, or newer than this program.
pub fn check(from: &Path) -> Result<(), Error> {
    backup::check(from)
}

/// Under which name a file of a folder is kept that is restored over.
pub(crate) fn before_restore(folder: &Path, name: &str) -> PathBuf {
    backup::before_restore(folder, name)
}

impl fmt::Debug for Journal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Journal").field("counters", &self.counters).finish_non_exhaustive()
    }
}

impl Running {
    /// Writes everything that was given before, and closes the file; what is given later is not kept. Blocks.
    pub fn close(self, journal: Journal) {
        // It waits behind all that is there; a writer that is gone has closed already.
        let _closed = journal.waiting.give(Order::Close);
        // A thread that panicked has said so on standard error; what it held is in SQLite's log.
        let _panicked = self.writer.join();
        let _panicked = self.checkpoint.join();
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test that fails there has said so")]
mod tests;
