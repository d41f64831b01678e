//! Keeping records: in memory, and in the file by a thread of its own, which no call waits for.

use std::{
    collections::VecDeque,
    fs::{File, OpenOptions},
    io::{self, Read as _, Seek as _, SeekFrom, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
        mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

use super::{Clock, FILE_BYTES_MAX, FILES_MAX, Record, Synchrony, file, read};

/// Records that wait to be written: what a thousand callers at once make, while a slow card is busy; some megabytes at most.
const WAITING_MAX: usize = 4_096;

/// Records that are handed to the system together, where so many wait.
const TOGETHER_MAX: u64 = 64;

/// Records in memory.
const RECENT_MAX: usize = 512;

/// How long records are collected where they come in less than [`DENSE`]: nobody pays for waking the thread then, and a process
/// that is killed loses the records of so long at most. Calls of people come seldom and are written at once.
const COLLECT: Duration = Duration::from_millis(50);
const DENSE: Duration = Duration::from_millis(5);

/// How long what was written may be with the system before it is brought to the disk.
const SYNC_EVERY: Duration = Duration::from_secs(5);

/// The shortest time between two lines in the log about records that were lost.
const TOLD_EVERY: Duration = Duration::from_secs(60);

/// How many records there were since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Written to the file.
    pub written: u64,
    /// Lost for the file: it could not keep up, or the disk was full.
    pub lost: u64,
}

/// The audit of a running hub. Clones are the same; all methods may be called from any thread, none waits for the disk but
/// [`Audit::close`].
#[derive(Clone, Debug)]
pub struct Audit {
    shared: Arc<Shared>,
}

/// The way to the writer's thread, and the thread.
type Writer = (SyncSender<Arc<Record>>, JoinHandle<()>);

#[derive(Debug)]
struct Shared {
    clock: Clock,
    recent: Mutex<VecDeque<Arc<Record>>>,
    /// `None` once it is closed.
    writer: Mutex<Option<Writer>>,
    counts: Arc<Counting>,
}

#[derive(Debug, Default)]
struct Counting {
    written: AtomicU64,
    lost: AtomicU64,
    told: Mutex<Option<Instant>>,
}

impl Counting {
    fn lose(&self, count: u64, why: &str) {
        let lost = self.lost.fetch_add(count, Ordering::Relaxed) + count;
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if told.is_none_or(|at| at.elapsed() >= TOLD_EVERY) {
            *told = Some(Instant::now());
            tracing::warn!(why, lost, "a record of the audit is lost; calls go on");
        }
    }
}

impl Audit {
    /// Opens the audit of a folder, whose lock the caller holds: takes the latest records into memory and starts the writer.
    /// What cannot be read or written is told in the log; a hub without an audit file is better than none.
    pub fn open(folder: &Path) -> Self {
        let mut recent = VecDeque::new();
        match read(folder) {
            Ok(found) => {
                for note in found.notes() {
                    tracing::info!("audit: {note}");
                }
                let skipped = found.records.len().saturating_sub(RECENT_MAX);
                recent.extend(found.records.into_iter().skip(skipped).map(Arc::new));
            }
            Err(error) => tracing::warn!(%error, "the audit of earlier runs cannot be read"),
        }
        let (sender, receiver) = sync_channel(WAITING_MAX);
        let counts = Arc::new(Counting::default());
        let (counted, path) = (counts.clone(), folder.to_owned());
        let spawned = std::thread::Builder::new().name("audit".into()).spawn(move || write(&path, &receiver, &counted));
        let writer = match spawned {
            Ok(thread) => Some((sender, thread)),
            Err(error) => {
                tracing::warn!(%error, "the audit has no thread to write with");
                None
            }
        };
        let (recent, writer) = (Mutex::new(recent), Mutex::new(writer));
        Self { shared: Arc::new(Shared { clock: Clock::default(), recent, writer, counts }) }
    }

    /// Keeps a record of something that began so long ago; its time is set here.
    pub fn keep(&self, record: Record, elapsed: Duration) {
        let record = Arc::new(dated(record, &self.shared.clock, elapsed));
        {
            let mut recent = self.shared.recent.lock().unwrap_or_else(PoisonError::into_inner);
            if recent.len() == RECENT_MAX {
                recent.pop_front();
            }
            recent.push_back(record.clone());
        }
        let writer = self.shared.writer.lock().unwrap_or_else(PoisonError::into_inner);
        match writer.as_ref().map(|(sender, _)| sender.try_send(record)) {
            Some(Ok(())) => {}
            Some(Err(TrySendError::Full(_))) => self.shared.counts.lose(1, "the disk does not keep up"),
            Some(Err(TrySendError::Disconnected(_))) | None => self.shared.counts.lose(1, "nobody writes"),
        }
    }

    /// The latest records, oldest first.
    pub fn recent(&self) -> Vec<Arc<Record>> {
        self.shared.recent.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }

    /// How many there were.
    pub fn counts(&self) -> Counts {
        let counts = &self.shared.counts;
        Counts { written: counts.written.load(Ordering::Relaxed), lost: counts.lost.load(Ordering::Relaxed) }
    }

    /// Writes what waits, and ends the writer. Blocks on the disk; what is kept afterwards is in memory only.
    pub fn close(&self) {
        let writer = self.shared.writer.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some((sender, thread)) = writer {
            drop(sender);
            let _it_has_said_what_went_wrong = thread.join();
        }
    }
}

/// Appends one record to the file of a folder where no hub runs, whose lock the caller holds. Blocks.
///
/// # Errors
/// From the disk.
pub fn append_offline(folder: &Path, record: Record) -> io::Result<()> {
    let record = dated(record, &Clock::default(), Duration::ZERO);
    let mut out = Out::open(folder)?;
    out.append(&record.line())?;
    out.file.sync_all()
}

fn dated(record: Record, clock: &Clock, elapsed: Duration) -> Record {
    let (at, synchrony) = clock.ago(elapsed);
    let clock = (synchrony == Synchrony::Unsynchronised).then(|| "unsynchronised".to_owned());
    Record { at, clock, ..record }.within_bounds()
}

/// The file that is written.
struct Out {
    folder: PathBuf,
    file: File,
    bytes: u64,
}

impl Out {
    /// Opens it, private, and ends a line that was torn.
    fn open(folder: &Path) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        let mut file = options.read(true).append(true).create(true).mode(0o600).open(file(folder, 0))?;
        let mut bytes = file.seek(SeekFrom::End(0))?;
        if bytes > 0 {
            let mut last = [0];
            file.seek(SeekFrom::End(-1))?;
            file.read_exact(&mut last)?;
            if last != *b"\n" {
                file.write_all(b"\n")?;
                bytes += 1;
            }
        }
        Ok(Self { folder: folder.to_owned(), file, bytes })
    }

    fn append(&mut self, line: &[u8]) -> io::Result<()> {
        if self.bytes > 0 && self.bytes + line.len() as u64 > FILE_BYTES_MAX {
            self.rotate()?;
        }
        self.file.write_all(line)?;
        self.bytes += line.len() as u64;
        Ok(())
    }

    fn rotate(&mut self) -> io::Result<()> {
        self.file.sync_all()?;
        for age in (0..FILES_MAX - 1).rev() {
            match std::fs::rename(file(&self.folder, age), file(&self.folder, age + 1)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                Ok(()) | Err(_) => {}
            }
        }
        *self = Self::open(&self.folder)?;
        Ok(())
    }
}

/// The writer's thread: until nobody can send any more.
fn write(folder: &Path, records: &Receiver<Arc<Record>>, counts: &Counting) {
    let mut out: Option<Out> = None;
    let (mut unsynced, mut wrote) = (None::<Instant>, None::<Instant>);
    loop {
        let mut collects = false;
        let wait = unsynced.map_or(Duration::from_secs(3_600), |since| SYNC_EVERY.saturating_sub(since.elapsed()));
        match records.recv_timeout(wait) {
            Ok(record) => {
                let (mut lines, mut count) = (record.line(), 1);
                while count < TOGETHER_MAX
                    && let Ok(more) = records.try_recv()
                {
                    lines.extend(more.line());
                    count += 1;
                }
                collects = count < TOGETHER_MAX && wrote.is_some_and(|at| at.elapsed() < DENSE);
                wrote = Some(Instant::now());
                // After an error the file is opened anew, so that a line that was written in part is ended.
                let written = match out.take() {
                    Some(open) => Ok(open),
                    None => Out::open(folder),
                }
                .and_then(|mut open| open.append(&lines).map(|()| open));
                match written {
                    Ok(open) => {
                        out = Some(open);
                        counts.written.fetch_add(count, Ordering::Relaxed);
                        unsynced.get_or_insert_with(Instant::now);
                    }
                    Err(error) => counts.lose(count, &error.to_string()),
                }
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
        if unsynced.is_some_and(|since| since.elapsed() >= SYNC_EVERY) {
            sync(out.as_ref());
            unsynced = None;
        }
        if collects {
            std::thread::sleep(COLLECT);
        }
    }
    sync(out.as_ref());
}

fn sync(out: Option<&Out>) {
    if let Some(Err(error)) = out.map(|out| out.file.sync_data()) {
        tracing::warn!(%error, "the audit may not be on the disk");
    }
}
