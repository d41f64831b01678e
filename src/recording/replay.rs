//! A recording, stepped through the twin: what it decides at each input, beside what was recorded.

mod error;
mod summary;

use std::{
    collections::{BTreeMap, BTreeSet},
    io::{BufRead, Read as _},
    panic::{AssertUnwindSafe, catch_unwind},
    time::Instant,
};

use serde_json::Value as Json;

pub use self::{
    error::Error,
    summary::{AtOdds, Summary},
};
use super::form::{self, Head, Line, Moment, Unreadable, Zero};
use crate::{
    property::DeviceId,
    twin::{
        Twin,
        input::{Effect, Input},
    },
};

/// The longest line that is read, bytes: a hundred times the longest that a hub writes (a restart with all that is remembered
/// of a device of 64 properties), and too little to fill the memory by a wrong path.
const LINE_BYTES_MAX: u64 = 16 * 1_048_576;

/// What a replay tells, in the order of the file.
#[derive(Clone, Debug, PartialEq)]
pub enum Told {
    /// A process began: all twins before are gone.
    Head {
        /// The line, from 1.
        line: u64,
        /// What it says of itself.
        head: Head,
    },
    /// A twin began.
    Begins {
        /// The line.
        line: u64,
        /// Whose.
        device: DeviceId,
        /// When, nanoseconds after its process began to record.
        at_ns: i64,
    },
    /// An input was stepped.
    Step(Box<Step>),
    /// Something is missing: the device is not stepped until its twin begins anew.
    Gap {
        /// The line.
        line: u64,
        /// Of which device.
        device: DeviceId,
        /// How many lines.
        missing: u64,
    },
    /// A device was not recorded.
    LeftOut {
        /// The line.
        line: u64,
        /// Which.
        device: DeviceId,
        /// Why.
        why: String,
    },
    /// The recording ended on purpose.
    End {
        /// The line.
        line: u64,
        /// Why.
        why: String,
    },
    /// The last line of a process is torn: the hub was killed, or the file was cut. All before it is whole.
    Torn {
        /// The line.
        line: u64,
    },
}

/// One input, stepped.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// The line, from 1.
    pub line: u64,
    /// Whose twin.
    pub device: DeviceId,
    /// When it was taken in, nanoseconds after its process began to record.
    pub at_ns: i64,
    /// The same, in the times of this replay.
    pub now: Instant,
    /// What it was.
    pub input: Input,
    /// What the twin decides.
    pub effects: Vec<Effect>,
    /// The same in the recording's form.
    pub decided: Vec<Json>,
    /// How that is beside what was recorded.
    pub compared: Compared,
}

/// What was recorded, beside what the twin decides.
#[derive(Clone, Debug, PartialEq)]
pub enum Compared {
    /// The same.
    Same,
    /// Something else.
    Differs {
        /// What was recorded.
        recorded: Vec<Json>,
    },
    /// The twin fails over it now; then it did not.
    Fails,
    /// The actor crashed over it then.
    Crashed {
        /// And the twin fails over it now: the mistake is the twin's own.
        again: bool,
    },
}

impl Compared {
    /// Whether it is what was recorded, as far as that can be said.
    pub fn is_same(&self) -> bool {
        match self {
            Self::Same | Self::Crashed { .. } => true,
            Self::Differs { .. } | Self::Fails => false,
        }
    }
}

/// A replay: an iterator over what it tells. It ends with the file, or with the first error.
pub struct Replay<R> {
    file: String,
    lines: R,
    line: u64,
    zero: Zero,
    wanted: Option<DeviceId>,
    /// Devices that the recording names.
    known: BTreeSet<DeviceId>,
    /// Devices that it leaves out, with the reason.
    left_out: BTreeMap<DeviceId, String>,
    /// Those whose state is known.
    twins: BTreeMap<DeviceId, Twin>,
    /// A line that is damaged, unless a process begins right behind it.
    torn: Option<(u64, Unreadable)>,
    /// Inputs of the running process, of all devices.
    inputs: u64,
    /// Lines that gaps of this process tell of, of all devices.
    missing: u64,
    summary: Summary,
    done: bool,
}

impl<R: BufRead> Replay<R> {
    /// Replays a recording, all of it or one device. `file` is what errors call it.
    pub fn new(file: &str, lines: R, device: Option<DeviceId>) -> Self {
        Self {
            file: file.to_owned(),
            lines,
            line: 0,
            zero: Zero::new(Instant::now()),
            wanted: device,
            known: BTreeSet::new(),
            left_out: BTreeMap::new(),
            twins: BTreeMap::new(),
            torn: None,
            inputs: 0,
            missing: 0,
            summary: Summary::default(),
            done: false,
        }
    }

    /// From which moment this replay counts.
    pub fn zero(&self) -> Zero {
        self.zero
    }

    /// What it came to so far.
    pub fn summary(&self) -> &Summary {
        &self.summary
    }

    /// Steps one input, if what came before it is known.
    fn step(&mut self, moment: Moment) -> Option<Step> {
        let Moment { device, at, input, decided: recorded, crashed } = moment;
        let Some(twin) = self.twins.get_mut(&device) else {
            self.summary.skipped += 1;
            return None;
        };
        let stepped = catch_unwind(AssertUnwindSafe(|| {
            twin.apply(at, input.clone());
            std::iter::from_fn(|| twin.poll()).collect::<Vec<Effect>>()
        }));
        let failed = stepped.is_err();
        let effects = stepped.unwrap_or_default();
        if failed || crashed {
            self.twins.remove(&device);
        }
        let decided: Vec<Json> = effects.iter().map(|effect| form::decided(effect, self.zero)).collect();
        let compared = match (crashed, failed) {
            (true, again) => Compared::Crashed { again },
            (false, true) => Compared::Fails,
            (false, false) if decided == recorded => Compared::Same,
            (false, false) => Compared::Differs { recorded },
        };
        let step =
            Step { line: self.line, at_ns: self.zero.ns(at), now: at, device, input, effects, decided, compared };
        self.summary.count(&step);
        Some(step)
    }

    /// The next line without its end, and whether it has one; `None` at the end of the file.
    fn next_line(&mut self) -> Result<Option<(String, bool)>, Error> {
        let mut bytes = Vec::new();
        let read = (&mut self.lines).take(LINE_BYTES_MAX + 1).read_until(b'\n', &mut bytes);
        read.map_err(|source| Error::Io { file: self.file.clone(), source })?;
        if bytes.is_empty() {
            return Ok(None);
        }
        self.line += 1;
        if bytes.len() as u64 > LINE_BYTES_MAX {
            return Err(Error::TooLong { file: self.file.clone(), line: self.line });
        }
        let whole = bytes.pop_if(|last| *last == b'\n').is_some();
        Ok(Some((String::from_utf8_lossy(&bytes).into_owned(), whole)))
    }

    fn damaged(&self, line: u64, problem: Unreadable) -> Error {
        let file = self.file.clone();
        if line == 1 && matches!(problem, Unreadable::NoJson(_) | Unreadable::Strange) {
            return Error::NoRecording { file, problem: problem.to_string() };
        }
        Error::Damaged { file, line, problem }
    }

    /// Takes lines until one tells something.
    fn advance(&mut self) -> Result<Option<Told>, Error> {
        loop {
            let Some((text, whole)) = self.next_line()? else { return self.end() };
            let line = self.line;
            let read = match form::read(&text, self.zero) {
                Ok(read) => read,
                Err(problem @ Unreadable::NoJson(_)) if line > 1 && self.torn.is_none() => {
                    // A line that was being written as the process was killed is the last, or before the next process.
                    if !whole {
                        return Ok(Some(Told::Torn { line }));
                    }
                    self.torn = Some((line, problem));
                    continue;
                }
                Err(problem) => {
                    let (line, problem) = self.torn.take().unwrap_or((line, problem));
                    return Err(self.damaged(line, problem));
                }
            };
            if line == 1 && !matches!(read, Line::Head(_)) {
                return Err(self.damaged(line, Unreadable::Strange));
            }
            if !matches!(read, Line::Head(_))
                && let Some((torn, problem)) = self.torn.take()
            {
                return Err(self.damaged(torn, problem));
            }
            if let Some(told) = self.take(line, read) {
                return Ok(Some(told));
            }
        }
    }

    fn take(&mut self, line: u64, read: Line) -> Option<Told> {
        match read {
            Line::Head(head) => {
                self.torn = None;
                self.twins.clear();
                (self.inputs, self.missing) = (0, 0);
                self.summary.unended += 1;
                self.summary.is_open = true;
                Some(Told::Head { line, head })
            }
            Line::End { why, inputs: inputs_said, missing: missing_said } => {
                // Nothing comes behind an end: what does is not stepped.
                self.twins.clear();
                let (inputs, missing) = (self.inputs, self.missing);
                self.summary.ends(AtOdds { line, inputs_said, inputs, missing_said, missing });
                Some(Told::End { line, why })
            }
            Line::Begins { device, at, settings } => {
                let wanted = self.meets(&device);
                wanted.then(|| {
                    self.twins.insert(device.clone(), Twin::new(device.clone(), *settings));
                    Told::Begins { line, device, at_ns: self.zero.ns(at) }
                })
            }
            Line::LeftOut { device, why } => {
                self.left_out.entry(device.clone()).or_insert_with(|| why.clone());
                let is_wanted = self.wanted.as_ref().is_none_or(|wanted| *wanted == device);
                is_wanted.then_some(Told::LeftOut { line, device, why })
            }
            Line::Gap { device, missing } => {
                self.missing = self.missing.saturating_add(missing);
                self.meets(&device).then(|| {
                    self.summary.missing = self.summary.missing.saturating_add(missing);
                    self.twins.remove(&device);
                    Told::Gap { line, device, missing }
                })
            }
            Line::Moment(moment) => {
                self.inputs += 1;
                let wanted = self.meets(&moment.device);
                wanted.then(|| self.step(*moment)).flatten().map(|step| Told::Step(Box::new(step)))
            }
        }
    }

    /// Whether a device that the recording names is to be replayed.
    fn meets(&mut self, device: &DeviceId) -> bool {
        if !self.known.contains(device) {
            self.known.insert(device.clone());
        }
        self.wanted.as_ref().is_none_or(|wanted| wanted == device)
    }

    fn end(&mut self) -> Result<Option<Told>, Error> {
        self.done = true;
        let file = self.file.clone();
        if self.line == 0 {
            return Err(Error::Empty { file });
        }
        if let Some((line, problem)) = self.torn.take() {
            return Err(self.damaged(line, problem));
        }
        let Some(asked) = self.wanted.clone().filter(|asked| !self.known.contains(asked)) else { return Ok(None) };
        let known = self.known.iter().map(ToString::to_string).collect();
        Err(match self.left_out.get(&asked).cloned() {
            Some(why) => Error::LeftOut { file, asked, why, known },
            None => Error::UnknownDevice { file, asked, known },
        })
    }
}

impl<R: BufRead> Iterator for Replay<R> {
    type Item = Result<Told, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.done {
            return None;
        }
        let told = self.advance();
        self.done |= told.is_err();
        told.transpose()
    }
}
