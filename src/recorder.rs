//! The recording of a running hub: what reaches each twin and what it decides, as lines of [`crate::recording`] in a file.
//!
//! Off unless its owner wants one. A thread of its own writes; an actor hands over a copy and never waits: what the thread cannot
//! keep up with is missing, and the file says where and how much. The file is its owner's alone (0600), since it tells who was home;
//! of a device that has a value which is nobody's to read, nothing is recorded. Ends by itself at the size limit and when the disk
//! refuses it: the hub goes on as if there had been none.

use std::{
    collections::BTreeMap,
    fmt,
    fs::{File, OpenOptions, Permissions},
    io::{self, Read as _, Seek as _, SeekFrom, Write as _},
    os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
        mpsc::{Receiver, SyncSender, TrySendError, sync_channel},
    },
    thread::JoinHandle,
    time::{Instant, SystemTime, UNIX_EPOCH},
};

use crate::{
    property::DeviceId,
    recording::form::{self, Head, Line, Zero},
    twin::{
        input::{Effect, Input},
        settings::Settings,
    },
};

/// Entries that may wait for the thread: seconds of a stalled disk in a busy house, some megabytes. One more is missing.
const WAITING_MAX: usize = 8_192;

/// Bytes that are handed to the system together, where so much waits.
const TOGETHER_BYTES: usize = 65_536;

/// What is kept free for the line that says why the recording ends.
const END_BYTES: u64 = 256;

/// What is to be recorded, and where.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The file. One that is there must be a recording: it goes on.
    pub file: PathBuf,
    /// How large it may become, bytes.
    pub bytes_max: u64,
    /// Devices of which nothing is recorded, and why.
    pub left_out: BTreeMap<DeviceId, String>,
}

/// Why nothing can be recorded.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file cannot be opened or written.
    #[error("cannot write the recording {}; its folder must be there, and yours to write in", file.display())]
    File {
        /// The file.
        file: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// There is something else.
    #[error("{} is there and is no recording of this version; name another file", file.display())]
    NoRecording {
        /// The file.
        file: PathBuf,
    },
    /// There is no room for more.
    #[error("the recording {} has {bytes} bytes already, {bytes_max} are allowed; move it away", file.display())]
    Full {
        /// The file.
        file: PathBuf,
        /// How large it is.
        bytes: u64,
        /// How large it may be.
        bytes_max: u64,
    },
    /// The thread that writes could not be started.
    #[error("the recording's thread cannot be started")]
    Thread(#[source] io::Error),
}

impl Error {
    /// Whether it is the disk's or the file's state of today, and not a mistake of whoever named the file: then a hub that is
    /// started again by itself must come up all the same.
    pub fn is_passing(&self) -> bool {
        match self {
            Self::Full { .. } | Self::Thread(_) => true,
            Self::File { source, .. } => {
                matches!(source.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
            }
            Self::NoRecording { .. } => false,
        }
    }
}

/// Whether a recording may go on in a file that is there: one that is not there may be made.
///
/// # Errors
/// [`Error::NoRecording`], or [`Error::File`] if it cannot be read.
pub fn check(file: &Path) -> Result<(), Error> {
    let problem = |source| Error::File { file: file.to_owned(), source };
    match file.metadata() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => match file.parent() {
            // One that cannot be made is told as opening it would tell it; `""` is the current folder.
            Some(folder) if !folder.as_os_str().is_empty() => {
                let metadata = folder.metadata().map_err(problem)?;
                if metadata.is_dir() { Ok(()) } else { Err(problem(io::ErrorKind::NotADirectory.into())) }
            }
            Some(_) | None => Ok(()),
        },
        Err(error) => Err(problem(error)),
        Ok(metadata) if metadata.len() == 0 || is_recording(file).map_err(problem)? => Ok(()),
        Ok(_) => Err(Error::NoRecording { file: file.to_owned() }),
    }
}

/// A recording that goes on; shared by all actors.
pub struct Recorder {
    entries: SyncSender<Order>,
    left_out: BTreeMap<DeviceId, String>,
    missing: Arc<AtomicU64>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

enum Order {
    Keep(Box<Entry>),
    /// Write what there is, and end.
    Close,
}

struct Entry {
    device: DeviceId,
    at: Instant,
    what: What,
    /// So many entries of the device are missing before this one.
    missing: u64,
}

enum What {
    Begins(Settings),
    Moment { input: Input, effects: Vec<Effect>, crashed: bool },
}

impl fmt::Debug for Recorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recorder").field("missing", &self.missing).finish_non_exhaustive()
    }
}

impl Recorder {
    /// Opens the file and begins. Blocks on the disk.
    ///
    /// # Errors
    /// [`Error`]; then nothing is recorded.
    pub fn start(plan: Plan) -> Result<Arc<Self>, Error> {
        let zero = Zero::new(Instant::now());
        let unix_ms = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
        let head =
            Head { hub: env!("CARGO_PKG_VERSION").to_owned(), unix_ms: u64::try_from(unix_ms).unwrap_or(u64::MAX) };
        let mut out = Out::open(&plan)?;
        let mut first = form::head(&head) + "\n";
        for (device, why) in &plan.left_out {
            first += &(form::left_out(device, why) + "\n");
        }
        if !out.takes(&first) {
            let (file, bytes, bytes_max) = (plan.file, out.bytes, plan.bytes_max);
            return Err(Error::Full { file, bytes, bytes_max });
        }
        out.append(&first).map_err(|source| Error::File { file: plan.file.clone(), source })?;
        let (entries, waiting) = sync_channel(WAITING_MAX);
        let missing = Arc::new(AtomicU64::new(0));
        let writer = Writer { out, zero, inputs: 0, missing: missing.clone() };
        let named = std::thread::Builder::new().name("recording".into());
        let thread = named.spawn(move || writer.write(&waiting)).map_err(Error::Thread)?;
        tracing::warn!(file = %plan.file.display(), "what reaches the devices' twins is recorded: who was home is in it");
        Ok(Arc::new(Self { entries, left_out: plan.left_out, missing, thread: Mutex::new(Some(thread)) }))
    }

    /// The recording of one device.
    pub fn track(self: &Arc<Self>, device: &DeviceId) -> Track {
        let recorded = !self.left_out.contains_key(device);
        Track(
            recorded.then(|| {
                Arc::new(Tracked { recorder: self.clone(), device: device.clone(), missing: AtomicU64::new(0) })
            }),
        )
    }

    /// Writes what there is and ends the recording. Blocks on the disk; what comes later is not recorded.
    pub fn close(&self) {
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            // A thread that is gone has ended the recording already.
            let _ended = self.entries.send(Order::Close);
            let _it_has_said_what_went_wrong = thread.join();
        }
    }
}

/// The recording of one device, or none; what its actor hands its moments to.
#[derive(Clone, Debug, Default)]
pub struct Track(Option<Arc<Tracked>>);

#[derive(Debug)]
struct Tracked {
    recorder: Arc<Recorder>,
    device: DeviceId,
    /// Entries that were not taken since the last one that was.
    missing: AtomicU64,
}

impl Track {
    /// A twin begins.
    pub fn begins(&self, at: Instant, settings: &Settings) {
        if let Some(tracked) = &self.0 {
            tracked.keep(at, What::Begins(settings.clone()));
        }
    }

    /// An input is about to be taken in. It is recorded as [`Taking`] is dropped, also by a crash over it.
    pub fn takes(&self, at: Instant, input: &Input) -> Taking {
        Taking(self.0.as_ref().map(|tracked| (tracked.clone(), at, input.clone(), Vec::new())))
    }
}

/// An input that is being taken in.
#[must_use = "it is recorded as it is dropped, with what was decided until then"]
pub struct Taking(Option<(Arc<Tracked>, Instant, Input, Vec<Effect>)>);

impl Taking {
    /// The twin decided that.
    pub fn decided(&mut self, effect: &Effect) {
        if let Some((.., effects)) = &mut self.0 {
            effects.push(effect.clone());
        }
    }
}

impl Drop for Taking {
    fn drop(&mut self) {
        if let Some((tracked, at, input, effects)) = self.0.take() {
            tracked.keep(at, What::Moment { input, effects, crashed: std::thread::panicking() });
        }
    }
}

impl Tracked {
    /// Hands an entry to the thread, if it can take one. Only the device's own actor does that, one entry after the other.
    fn keep(&self, at: Instant, what: What) {
        let missing = self.missing.load(Ordering::Relaxed);
        let entry = Entry { device: self.device.clone(), at, what, missing };
        match self.recorder.entries.try_send(Order::Keep(Box::new(entry))) {
            Ok(()) => self.missing.store(0, Ordering::Relaxed),
            Err(TrySendError::Full(_)) => {
                self.missing.store(missing + 1, Ordering::Relaxed);
                self.recorder.missing.fetch_add(1, Ordering::Relaxed);
            }
            // The recording has ended, and has said so.
            Err(TrySendError::Disconnected(_)) => {}
        }
    }
}

/// The thread.
struct Writer {
    out: Out,
    zero: Zero,
    inputs: u64,
    missing: Arc<AtomicU64>,
}

impl Writer {
    /// Writes what is handed over until there is a reason to end.
    fn write(mut self, waiting: &Receiver<Order>) {
        let mut text = String::new();
        loop {
            let (mut inputs, mut why) = (0, None);
            // What waits is handed to the system together; the first is waited for.
            let mut next = waiting.recv().ok();
            if next.is_none() {
                return self.end("nobody records any more");
            }
            while let Some(order) = next {
                next = match self.take(order, &mut text) {
                    Ok(more) => {
                        inputs += more;
                        if text.len() < TOGETHER_BYTES { waiting.try_recv().ok() } else { None }
                    }
                    Err(end) => {
                        why = Some(end);
                        None
                    }
                };
            }
            if let Err(error) = self.out.append(&text) {
                let (inputs, missing) = (self.inputs, self.missing.load(Ordering::Relaxed));
                return tracing::warn!(%error, inputs, missing, "the disk refuses the recording: it ends, the hub goes on");
            }
            self.inputs += inputs;
            text.clear();
            if let Some(why) = why {
                return self.end(&why);
            }
        }
    }

    /// Adds an order's lines; how many inputs they are, or why the recording ends before them.
    fn take(&self, order: Order, text: &mut String) -> Result<u64, String> {
        let Order::Keep(entry) = order else { return Err("the hub stopped".to_owned()) };
        let Entry { device, at, what, missing } = *entry;
        let before = text.len();
        if missing > 0 {
            text.push_str(&form::gap(&device, missing));
            text.push('\n');
        }
        let (line, inputs) = match what {
            What::Begins(settings) => (form::begins(self.zero, at, &device, &settings), 0),
            What::Moment { input, effects, crashed } => {
                (form::moment(self.zero, at, &device, &input, &effects, crashed), 1)
            }
        };
        text.push_str(&line);
        text.push('\n');
        if self.out.takes(text) {
            return Ok(inputs);
        }
        text.truncate(before);
        Err(format!("the size limit of {} bytes is reached", self.out.bytes_max))
    }

    fn end(mut self, why: &str) {
        let (inputs, missing) = (self.inputs, self.missing.load(Ordering::Relaxed));
        let last = form::end(why, inputs, missing) + "\n";
        if let Err(error) = self.out.append(&last).and_then(|()| self.out.file.sync_data()) {
            tracing::warn!(%error, "the end of the recording is not written");
        }
        tracing::warn!(inputs, missing, why, "the recording ends");
    }
}

/// The file.
struct Out {
    file: File,
    bytes: u64,
    bytes_max: u64,
}

impl Out {
    /// Opens it, private. What is there must be a recording; a line that was torn is ended.
    fn open(plan: &Plan) -> Result<Self, Error> {
        let problem = |source| Error::File { file: plan.file.clone(), source };
        let mut options = OpenOptions::new();
        let opened = options.read(true).append(true).create(true).mode(0o600).open(&plan.file);
        let mut file = opened.map_err(problem)?;
        let mut bytes = file.seek(SeekFrom::End(0)).map_err(problem)?;
        if bytes > 0 {
            if !is_recording(&plan.file).map_err(problem)? {
                return Err(Error::NoRecording { file: plan.file.clone() });
            }
            let mut last = [0];
            file.seek(SeekFrom::End(-1)).and_then(|_| file.read_exact(&mut last)).map_err(problem)?;
            if last != *b"\n" {
                file.write_all(b"\n").map_err(problem)?;
                bytes += 1;
            }
        }
        file.set_permissions(Permissions::from_mode(0o600)).map_err(problem)?;
        Ok(Self { file, bytes, bytes_max: plan.bytes_max })
    }

    /// Whether there is room for that and an end.
    fn takes(&self, text: &str) -> bool {
        self.bytes + text.len() as u64 + END_BYTES <= self.bytes_max
    }

    /// Writes whole lines, or none of them.
    fn append(&mut self, text: &str) -> io::Result<()> {
        if let Err(error) = self.file.write_all(text.as_bytes()) {
            // What went out of it would be a torn line in front of the next process's.
            let _the_disk_is_ill = self.file.set_len(self.bytes);
            return Err(error);
        }
        self.bytes += text.len() as u64;
        Ok(())
    }
}

/// Whether a file begins as a recording of this version does.
fn is_recording(file: &Path) -> io::Result<bool> {
    let mut begin = Vec::new();
    // A head is far shorter.
    File::open(file)?.take(4_096).read_to_end(&mut begin)?;
    let first = begin.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let read = form::read(&String::from_utf8_lossy(first), Zero::new(Instant::now()));
    Ok(matches!(read, Ok(Line::Head(_))))
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test that fails there has said so")]
mod tests;
