//! Everything that can be wrong: each seed switches some of it on.

macro_rules! faults {
    ($($(#[$doc:meta])* $name:ident = $word:literal,)+) => {
        /// What can be wrong.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub(crate) enum Fault { $($(#[$doc])* $name,)+ }

        impl Fault {
            pub(crate) const ALL: &[Self] = &[$(Self::$name,)+];

            pub(crate) fn word(self) -> &'static str {
                match self { $(Self::$name => $word,)+ }
            }
        }
    };
}

faults! {
    /// Takes nothing from its socket; thawing, it reads all that is buffered before it drives.
    Frozen = "frozen",
    /// Loses its acknowledgements.
    NoAck = "no acknowledgement",
    /// Leaves `executing` out.
    NoExecuting = "no executing",
    /// Loses all that it reports after driving.
    NoCompletion = "no completion",
    /// Refuses.
    Busy = "busy",
    /// Acknowledges, and its task never begins.
    NeverStarts = "never starts",
    /// Begins after two and a half seconds only.
    StartsLate = "starts late",
    /// The relay does not follow.
    Stuck = "stuck",
    /// Says completed without having moved.
    Lying = "lying",
    /// Takes four seconds longer.
    Slow = "slow",
    /// Falls back 100 ms after completion.
    RevertsSoon = "reverts soon",
    /// Falls back three seconds after completion.
    RevertsLate = "reverts late",
    /// Sends values of a wrong type.
    WrongType = "wrong type",
    /// Reads nothing back: claims no more than its firmware.
    NoReadBack = "no read-back",
    /// Answers no questions.
    Mute = "mute",
    /// Leaves the value out of what it says of an operation.
    NoStatus = "no status",
    /// Its supply breaks down whenever it drives.
    BrownOut = "brown-out",
    /// The relay moves, and its load has no power.
    DeadLoad = "dead load",
    /// Somebody switches at the wall.
    Touch = "touched",
    /// It starts anew.
    Reboot = "reboot",
    /// A message is lost.
    Lost = "message lost",
    /// A message comes twice.
    Doubled = "message doubled",
    /// A message comes late, behind others.
    Delayed = "message delayed",
    /// The connection breaks, and the hub hears of it.
    Broken = "connection broken",
    /// The connection breaks, and the hub hears of it only with the next.
    HalfOpen = "half-open",
    /// The broker delivers a report with the RETAIN flag that claims success.
    Retained = "retained leftover",
    /// A report of an older boot claims success.
    OldBoot = "old boot",
    /// A device sends what cannot be read.
    Unreadable = "unreadable",
    /// The broker starts anew.
    Broker = "broker restart",
    /// A device's actor crashes.
    Actor = "actor crash",
    /// The hub's process is killed.
    Killed = "hub killed",
    /// The hub loses its power.
    PowerCut = "power cut",
    /// The actor's timer is late.
    TimerLate = "timer late",
    /// The disk takes nothing.
    DiskFull = "disk full",
    /// The disk takes its time.
    DiskStalled = "disk stalled",
    /// A caller goes.
    Vanished = "caller gone",
}

impl Fault {
    /// Whether it lasts until it is repaired; the others happen once.
    pub(crate) fn lasts(self) -> bool {
        self.of_device() || matches!(self, Self::TimerLate | Self::DiskFull | Self::DiskStalled)
    }

    /// Whether it is a fault of a device's own.
    pub(crate) fn of_device(self) -> bool {
        self <= Self::DeadLoad
    }

    /// Whether a device core as it is can have it: what lies in its body, not in what it says.
    pub(crate) fn of_core(self) -> bool {
        use Fault::{BrownOut, Busy, DeadLoad, Frozen, NeverStarts, RevertsLate, RevertsSoon, Slow, StartsLate, Stuck};
        let body = [Frozen, Busy, NeverStarts, StartsLate, Stuck, Slow, RevertsSoon, RevertsLate, BrownOut, DeadLoad];
        body.contains(&self) || !self.of_device()
    }

    pub(crate) fn number(self) -> usize {
        self as usize
    }
}
