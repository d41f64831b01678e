//! What waits for the journal, and goes out when its commit is there (semantics 8.5). Pure; whoever drives the twin hands in
//! what [`super::ledger`] says must wait, tells what became of the commits, and carries out what [`Gate::poll`] lets go.
//!
//! Commands to a device stay in order (5.2): what comes behind one that waits, waits with it. One whose time to begin is over
//! while it waits is never sent. Answers wait each for themselves, and no longer than their caller's limit.

use std::{collections::VecDeque, time::Instant};

use crate::twin::{
    input::Command,
    words::{OpId, Reply},
};

/// What may go out.
#[derive(Clone, Debug, PartialEq)]
pub enum Go {
    /// This command, as it was decided at `at`: its time limit counts from then.
    Send {
        /// The command.
        command: Command,
        /// When it was decided.
        at: Instant,
    },
    /// An operation's command was taken back, or its time was over: [`super::input::Input::NotWritten`].
    NotWritten {
        /// The operation.
        op: OpId,
    },
    /// This answer.
    Answer {
        /// The operation.
        op: OpId,
        /// What its caller is told.
        reply: Reply,
        /// Whether its record is kept.
        recorded: bool,
    },
}

#[derive(Clone, Debug)]
struct Waiting {
    command: Command,
    at: Instant,
    commit: Option<u64>,
}

#[derive(Clone, Debug)]
struct Answer {
    op: OpId,
    reply: Reply,
    by: Instant,
    commit: u64,
}

/// The gate of one device. Bounded by the twin: an answer for each caller, and few commands for each operation.
#[derive(Clone, Debug, Default)]
pub struct Gate {
    commands: VecDeque<Waiting>,
    answers: Vec<Answer>,
    ready: VecDeque<Go>,
}

impl Gate {
    /// Takes a command, to go out once `commit` is there. A welcome begins a session: what was for the one before is not sent.
    pub fn send(&mut self, at: Instant, command: Command, commit: Option<u64>) {
        match &command {
            Command::Welcome { .. } => {
                for old in std::mem::take(&mut self.commands) {
                    self.ready.extend(operation(&old.command).map(|op| Go::NotWritten { op: op.clone() }));
                }
            }
            Command::Withdraw { op } => {
                // What the device never got need not be taken back.
                let held = self.commands.iter().position(|w| operation(&w.command) == Some(op));
                if let Some(at) = held {
                    self.commands.remove(at);
                    self.ready.push_back(Go::NotWritten { op: op.clone() });
                    return;
                }
            }
            Command::Set { .. } | Command::Run { .. } | Command::GetState { .. } => {}
        }
        self.commands.push_back(Waiting { command, at, commit });
    }

    /// Takes an answer, to go out once `commit` is there, or by its caller's limit.
    pub fn answer(&mut self, op: OpId, reply: Reply, by: Instant, commit: Option<u64>) {
        match commit {
            Some(commit) => self.answers.push(Answer { op, reply, by, commit }),
            None => self.ready.push_back(Go::Answer { op, reply, recorded: true }),
        }
    }

    /// A commit is there, or the disk has refused it; then what waited for it goes out all the same.
    pub fn kept(&mut self, commit: u64, kept: bool) {
        for waiting in self.commands.iter_mut().filter(|waiting| waiting.commit == Some(commit)) {
            waiting.commit = None;
        }
        for answer in self.answers.extract_if(.., |answer| answer.commit == commit) {
            let Answer { op, reply, .. } = answer;
            self.ready.push_back(Go::Answer { op, reply, recorded: kept });
        }
    }

    /// What goes out next at `now`.
    pub fn poll(&mut self, now: Instant) -> Option<Go> {
        if let Some(go) = self.ready.pop_front() {
            return Some(go);
        }
        if let Some(late) = self.answers.iter().position(|answer| answer.by <= now) {
            let Answer { op, reply, .. } = self.answers.remove(late);
            return Some(Go::Answer { op, reply, recorded: false });
        }
        let next = self.commands.front()?;
        if over(next, now) {
            let next = self.commands.pop_front()?;
            return operation(&next.command).map(|op| Go::NotWritten { op: op.clone() });
        }
        if next.commit.is_some() {
            return None;
        }
        let Waiting { command, at, .. } = self.commands.pop_front()?;
        Some(Go::Send { command, at })
    }

    /// When [`Gate::poll`] has something although no commit came.
    pub fn deadline(&self) -> Option<Instant> {
        let limit = self.commands.front().and_then(|next| Some(next.at + ttl(&next.command)?));
        self.answers.iter().map(|answer| answer.by).chain(limit).min()
    }

    /// How much waits.
    pub fn len(&self) -> usize {
        self.commands.len() + self.answers.len()
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Whether a command's time to begin is over.
fn over(waiting: &Waiting, now: Instant) -> bool {
    ttl(&waiting.command).is_some_and(|ttl| waiting.at + ttl <= now && waiting.at < now)
}

fn ttl(command: &Command) -> Option<std::time::Duration> {
    match command {
        Command::Set { ttl, .. } | Command::Run { ttl, .. } => Some(*ttl),
        Command::Welcome { .. } | Command::GetState { .. } | Command::Withdraw { .. } => None,
    }
}

/// The operation that a command carries out.
fn operation(command: &Command) -> Option<&OpId> {
    match command {
        Command::Set { op, .. } | Command::Run { op, .. } => Some(op),
        Command::Welcome { .. } | Command::GetState { .. } | Command::Withdraw { .. } => None,
    }
}
