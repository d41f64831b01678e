//! What can be wrong with a simulated device (semantics, the fault table): a closed set, one sentence each.

use std::{fmt, str::FromStr};

/// Declares the closed set with its words and sentences, so that none of the three can be forgotten.
macro_rules! faults {
    ($($(#[$attribute:meta])* $variant:ident, $word:literal, $sentence:literal;)+) => {
        /// What is wrong with the simulated device; one thing at a time, switched while it runs.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Hash)]
        pub enum Fault {
            $(#[doc = $sentence] $(#[$attribute])* $variant,)+
        }

        impl Fault {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$variant,)+];

            /// The word on the command line and in events.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word,)+ }
            }

            /// What it does, for `truetwin sim --list`.
            pub fn sentence(self) -> &'static str {
                match self { $(Self::$variant => $sentence,)+ }
            }
        }
    };
}

faults! {
    #[default] None, "none", "Nothing is wrong.";
    Offline, "offline", "No connection, and none is tried.";
    Frozen, "frozen", "The board hangs: the socket stays open, nothing answers; what was sent is read on thawing.";
    NoCommand, "no_command", "Commands that drive are lost on their way to the device; queries come through.";
    NoAck, "no_ack", "The report `received` is lost, the rest arrives.";
    NoExecuting, "no_executing", "The report `executing` is lost, the rest arrives.";
    NoCompletion, "no_completion", "The report of the end is lost; a query is answered.";
    NothingAfterDriving, "nothing_after_driving", "Once something was driven every report and state is lost, until this is switched off; then the state is told.";
    NoReports, "no_reports", "No report and no state gets through; only greetings and heartbeats do.";
    Busy, "busy", "The device rejects each command as busy.";
    NeverStarts, "never_starts", "Commands are received, the task that drives never begins, and nothing is said of it.";
    StartsLate, "starts_late", "The task that drives could begin only 3 s later; that the command has expired by then is not said.";
    Expires, "expires", "The task that drives never begins, and the device says that the command has expired.";
    Stuck, "stuck", "Driving moves nothing; the read-back shows it and the device says so.";
    Lying, "lying", "The wished value is reported as read back although nothing moved; asked later, the device reads the truth.";
    Slow, "slow", "Each movement begins 700 ms late: within the hub's allowance.";
    Late, "late", "Each movement begins 5 s late, after every answer, and no withdrawal stops it.";
    NoLoad, "no_load", "What is driven moves and reads right, but the load behind it has no power: only a sensor sees it.";
    RevertsSoon, "reverts_soon", "100 ms after it was read as done it goes back, and nothing is said of it.";
    RevertsSoonTold, "reverts_soon_told", "100 ms after it was read as done it goes back, and the device tells.";
    RevertsLate, "reverts_late", "3 s after it was read as done it goes back, and the device tells.";
    RebootBefore, "reboot_before", "The board reboots once, after it has received a command and before it drives.";
    RebootAfter, "reboot_after", "The board reboots once, after driving and before it reports.";
    BrownOut, "brown_out", "The supply breaks down at each driving: nothing moves, and the board reboots.";
    WrongType, "wrong_type", "Completions and states carry values of another type.";
    UnknownWord, "unknown_word", "Completions and states are said in words that the protocol does not have.";
    SecondBoard, "second_board", "A second board with the same name and password connects, too.";
    UpdateDrop, "update_drop", "An update has taken the last property away; reboots on and off.";
    UpdateAdd, "update_add", "An update has added `extra`, a heater that can be set; reboots on and off.";
    UpdateKind, "update_kind", "An update has changed the kind of the first property; reboots on and off.";
    HelloStorm, "hello_storm", "The connection breaks after each welcome and is made again at once.";
    SameBoot, "same_boot", "The random numbers have no seed: each run from the next start on has the same boot token.";
    ClockFast, "clock_fast", "The device's clock runs a fifth too fast.";
    ClockStopped, "clock_stopped", "The device's clock stands still.";
}

impl Fault {
    /// Whether it is another firmware, which a device becomes by a reboot only.
    pub(super) fn is_update(self) -> bool {
        matches!(self, Self::UpdateDrop | Self::UpdateAdd | Self::UpdateKind)
    }

    /// Whether it keeps the board from beginning what it has taken.
    pub(super) fn holds_back(self) -> bool {
        matches!(self, Self::NeverStarts | Self::StartsLate | Self::Expires | Self::RebootBefore)
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A text that is no fault.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no fault; `truetwin sim --list` names them all")]
pub struct UnknownFault(pub String);

impl FromStr for Fault {
    type Err = UnknownFault;

    fn from_str(word: &str) -> Result<Self, UnknownFault> {
        let known = Self::ALL.iter().copied().find(|fault| fault.as_str() == word);
        known.ok_or_else(|| UnknownFault(word.chars().take(64).collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fault_reads_back_as_its_word() {
        for fault in Fault::ALL {
            assert_eq!(fault.to_string().parse(), Ok(*fault));
            assert!(fault.sentence().ends_with('.'), "{fault}");
        }
        assert_eq!("broken".parse::<Fault>(), Err(UnknownFault("broken".to_owned())));
    }
}
