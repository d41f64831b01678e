//! A run that ends, whatever hangs in it: its waits are known by name, and when its time is over they are told, its processes are
//! ended and it has failed.
//!
//! A thread of its own looks after that: a wait that blocks a thread of the runtime cannot keep it.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Mutex, mpsc},
    thread,
    time::{Duration, Instant},
};

use crate::hub;

/// What is being waited for, and since when.
static WAITS: Mutex<BTreeMap<u64, (String, Instant)>> = Mutex::new(BTreeMap::new());

/// Processes that were started and have not ended.
static PROCESSES: Mutex<BTreeSet<u32>> = Mutex::new(BTreeSet::new());

/// One thing that is waited for, until it is dropped.
pub(crate) struct Wait(u64);

impl Wait {
    pub(crate) fn of(what: &str) -> Self {
        let mut waits = WAITS.lock().unwrap();
        let number = waits.keys().last().map_or(0, |last| last + 1);
        waits.insert(number, (what.to_owned(), Instant::now()));
        Self(number)
    }
}

impl Drop for Wait {
    fn drop(&mut self) {
        WAITS.lock().unwrap().remove(&self.0);
    }
}

pub(crate) fn began(process: u32) {
    PROCESSES.lock().unwrap().insert(process);
}

pub(crate) fn ended(process: u32) {
    PROCESSES.lock().unwrap().remove(&process);
}

/// The limit of a run, while it is kept.
pub(crate) struct Limit(#[expect(dead_code, reason = "dropping it is the end of the run")] mpsc::Sender<()>);

impl Limit {
    /// A run that is not over within that time has failed.
    pub(crate) fn of(run: &str, within: Duration) -> Self {
        let (over, is_over) = mpsc::channel::<()>();
        let run = run.to_owned();
        thread::spawn(move || {
            if is_over.recv_timeout(within) == Err(mpsc::RecvTimeoutError::Timeout) {
                eprintln!("soak: {run}: no end within {} s; waited for:", within.as_secs());
                for (what, since) in WAITS.lock().unwrap().values() {
                    eprintln!("  {what}, for {} s", since.elapsed().as_secs());
                }
                for process in PROCESSES.lock().unwrap().iter() {
                    hub::signal(*process, "KILL");
                }
                std::process::exit(101);
            }
        });
        Self(over)
    }
}
