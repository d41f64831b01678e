//! What a whole replay came to, counted step by step.

use std::collections::{BTreeMap, BTreeSet};

use super::{Compared, Step};
use crate::{
    property::DeviceId,
    twin::{
        input::{Effect, Input},
        words::Reply,
    },
};

/// What a whole replay came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Inputs that were stepped.
    pub inputs: u64,
    /// Devices whose inputs they were.
    pub devices: BTreeSet<DeviceId>,
    /// Wishes and actions among them.
    pub operations: u64,
    /// Questions for the state among them.
    pub questions: u64,
    /// Answers to wishes and actions, by outcome, or `refused: ` and why.
    pub answers: BTreeMap<String, u64>,
    /// Inputs over which an actor crashed.
    pub crashed: u64,
    /// Inputs at which something else was decided than recorded.
    pub differences: u64,
    /// The line of the first of them.
    pub first_difference: Option<u64>,
    /// Processes whose recording does not say why it ends: they were killed, or the last one still runs.
    pub unended: u64,
    /// Whether the last of them does not: then more may have been decided than is in the file, which may have been cut.
    pub is_open: bool,
    /// Lines that are missing.
    pub missing: u64,
    /// The first end of a process that does not fit what is there: lines were taken out or put in.
    pub at_odds: Option<AtOdds>,
    /// Inputs that were not stepped because something before them is missing.
    pub skipped: u64,
}

/// What the end of a process says that it recorded, beside what is there, of all devices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AtOdds {
    /// The line of the end.
    pub line: u64,
    /// Inputs that it says.
    pub inputs_said: u64,
    /// Inputs that are there.
    pub inputs: u64,
    /// Lines that it says could not be recorded.
    pub missing_said: u64,
    /// Those that gaps tell of.
    pub missing: u64,
}

impl Summary {
    /// A process ends after so many inputs and lines missing in gaps. More missing than the gaps tell of is no contradiction: a device
    /// of which nothing was recorded any more has no gap.
    pub(super) fn ends(&mut self, end: AtOdds) {
        self.unended = self.unended.saturating_sub(1);
        self.is_open = false;
        self.missing = self.missing.saturating_add(end.missing_said.saturating_sub(end.missing));
        if end.inputs_said != end.inputs || end.missing > end.missing_said {
            self.at_odds.get_or_insert(end);
        }
    }

    pub(super) fn count(&mut self, step: &Step) {
        self.inputs += 1;
        if !self.devices.contains(&step.device) {
            self.devices.insert(step.device.clone());
        }
        match &step.input {
            Input::Set { .. } | Input::Run { .. } => self.operations += 1,
            Input::Query { .. } => self.questions += 1,
            Input::Cancel { .. }
            | Input::Connected { .. }
            | Input::Disconnected { .. }
            | Input::Greeted { .. }
            | Input::Heard(_)
            | Input::Unreadable
            | Input::Written { .. }
            | Input::NotWritten { .. }
            | Input::Verified { .. }
            | Input::BusDown
            | Input::BusUp
            | Input::Restored(_)
            | Input::ShutDown
            | Input::Removed
            | Input::Tick => {}
        }
        for effect in &step.effects {
            if let Effect::Reply { reply, .. } = effect {
                let word = match reply {
                    Reply::Settled(settled) => settled.outcome.to_string(),
                    Reply::Refused(refusal) => format!("refused: {}", refusal.word()),
                };
                *self.answers.entry(word).or_default() += 1;
            }
        }
        self.crashed += u64::from(matches!(step.compared, Compared::Crashed { .. }));
        if !step.compared.is_same() {
            self.differences += 1;
            self.first_difference.get_or_insert(step.line);
        }
    }

    /// Whether all that the file has could be compared, and was the same.
    pub fn is_whole(&self) -> bool {
        self.differences == 0 && self.missing == 0 && self.skipped == 0 && self.at_odds.is_none()
    }
}
