//! What was true on a device, for the invariants; and what a device has to say.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use truetwin_proof::twin::{
    input::{ActionResult, Hello, Report},
    words::OpId,
};

/// What was true when a report was made.
#[derive(Clone, Debug)]
pub(crate) struct Truth {
    pub(crate) relay: bool,
    /// The operation that the device had finished last.
    pub(crate) finished: Option<OpId>,
    /// The operation whose completion the report tells, perhaps again.
    pub(crate) about: Option<OpId>,
    /// Whether the report carried a value that can be read.
    pub(crate) carried: bool,
    /// The relay was as it was by nobody's command: somebody touched it, or it fell.
    pub(crate) alone: bool,
}

/// One beginning to drive.
#[derive(Clone, Debug)]
pub(crate) struct Drive {
    pub(crate) op: OpId,
    pub(crate) at: u64,
    /// The run in which it was.
    pub(crate) boot: u32,
    /// The least transit of a command in this session: what a device cannot tell from its clock's offset.
    pub(crate) skew: u64,
}

/// What a device sends.
#[derive(Clone, Debug)]
pub(crate) enum Event {
    Hello(Box<Hello>),
    Report(Report),
}

/// What goes off in a device by itself.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Timer {
    Begin(OpId),
    Finish(OpId),
    Revert,
    /// The device core asked to be stepped.
    Step,
}

/// The truth of one device.
#[derive(Clone, Debug)]
pub(crate) struct Log {
    pub(crate) relay: bool,
    /// Nobody commanded that.
    pub(crate) alone: bool,
    pub(crate) boot: u32,
    /// Its supply has broken down.
    pub(crate) fell: bool,
    pub(crate) out: Vec<Event>,
    pub(crate) timers: Vec<(u64, Timer)>,
    pub(crate) reports: BTreeMap<(u32, u32), Truth>,
    pub(crate) drives: Vec<Drive>,
    /// Actions that were run, in which run of the device.
    pub(crate) runs: Vec<(OpId, u32)>,
    pub(crate) results: BTreeMap<OpId, ActionResult>,
    pub(crate) received: BTreeMap<OpId, u64>,
    /// Operations that it began to carry out.
    pub(crate) begun: BTreeSet<OpId>,
}

impl Default for Log {
    fn default() -> Self {
        Self {
            relay: false,
            alone: false,
            boot: 1,
            fell: false,
            out: Vec::new(),
            timers: Vec::new(),
            reports: BTreeMap::new(),
            drives: Vec::new(),
            runs: Vec::new(),
            results: BTreeMap::new(),
            received: BTreeMap::new(),
            begun: BTreeSet::new(),
        }
    }
}

impl Log {
    pub(crate) fn drove(&mut self, drive: Drive) {
        self.begun.insert(drive.op.clone());
        self.drives.push(drive);
    }
}

pub(crate) fn boot_token(boot: u32) -> Arc<str> {
    format!("boot{boot}").into()
}

/// The number of a run of a device.
pub(crate) fn number(boot: &str) -> u32 {
    boot.trim_start_matches("boot").parse().expect("a boot of a model device")
}
