//! The times and bounds that a twin works with. The configuration fills them; the defaults are its defaults.

use std::time::{Duration, Instant};

use crate::property::Property;

/// Times and bounds of one twin.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// When the hub began, for `hub_just_started` (semantics 5.5).
    pub started: Instant,
    /// How much before `answer_by` an operation expires, so that its record fits (semantics 4.8).
    pub answer_margin: Duration,
    /// How long writing a command to the device's socket may take.
    pub broker: Duration,
    /// How long a device may take to say that it has a command.
    pub ack: Duration,
    /// How long it may then take to begin. `ack + start` after the sending is `act_by` (semantics 4.1).
    pub start: Duration,
    /// Added to a property's `expected_ms`: how long driving may take (semantics 4.9).
    pub report_margin: Duration,
    /// How long an answer to a question may take.
    pub read_back: Duration,
    /// The longest that `act_by` may lie behind the sending, whatever the allowances are (semantics 4.1).
    pub act_by_max: Duration,
    /// The longest way of a message to a device that is reckoned with: by so much less a device is told that it may be
    /// late, at most by a quarter.
    pub transit: Duration,
    /// How long one operation may drive at most, whatever the device announces.
    pub driving_max: Duration,
    /// How long a device that is back may take to send what it kept meanwhile, before it is asked (semantics 5.3).
    pub outbox: Duration,
    /// What a caller's limit must leave for a device to begin (semantics 4.9).
    pub begin_min: Duration,
    /// How long a call waits for a device that was there a moment ago (semantics 5.5).
    pub wait_online: Duration,
    /// What "a moment ago" is.
    pub recently_seen: Duration,
    /// How long after its start the hub expects devices to come back.
    pub just_started: Duration,
    /// How often a device is asked to send its heartbeat; it is `suspected` after 2.5 of them.
    pub heartbeat: Duration,
    /// A device that has told no value for so long is asked (semantics 3.11); zero: never.
    pub reconcile: Duration,
    /// How long after its end an operation's truth is watched (semantics 6.3).
    pub watch: Duration,
    /// How old a reported value may be that a relative wish starts from; an older one is asked for anew (semantics 4.6).
    pub base_max_age: Duration,
    /// Operations of one caller that may wait on one device: behind a slow relay a longer queue only makes late answers.
    /// One more is refused `queue_full`.
    pub queued_max: usize,
    /// Operations of all callers that may wait on one device. One more is refused `queue_full`.
    pub waiting_max: usize,
    /// Callers that one operation may have (semantics 4.3). One more has an operation of its own, behind it.
    pub joined_max: usize,
    /// Questions of callers that may be open at once. One more is refused `queue_full`.
    pub queries_max: usize,
    /// Ended operations that are remembered for `check_operation`, some half a kilobyte each: 32 are the last hours of a
    /// lamp. The oldest is forgotten.
    pub records_max: usize,
}

impl Settings {
    /// The defaults, for a hub that began at `started`.
    pub fn new(started: Instant) -> Self {
        let ms = Duration::from_millis;
        Self {
            started,
            answer_margin: ms(50),
            broker: ms(1_000),
            ack: ms(1_000),
            start: ms(1_000),
            report_margin: ms(700),
            read_back: ms(1_000),
            act_by_max: ms(30_000),
            transit: ms(300),
            driving_max: ms(300_000),
            outbox: ms(300),
            begin_min: ms(100),
            wait_online: ms(2_500),
            recently_seen: ms(60_000),
            just_started: ms(30_000),
            heartbeat: ms(10_000),
            reconcile: Duration::ZERO,
            watch: ms(600_000),
            base_max_age: ms(10_000),
            queued_max: 8,
            waiting_max: 32,
            joined_max: 16,
            queries_max: 32,
            records_max: 32,
        }
    }

    /// How long driving this property may take (semantics 4.9): a relay that expects 300 ms has 1 s. No device takes a
    /// property for longer than [`Settings::driving_max`], whatever it announces.
    pub fn report(&self, property: &Property) -> Duration {
        self.expected(property.expected_ms)
    }

    /// How long something may take that a device expects to take so long.
    pub fn expected(&self, expected_ms: u32) -> Duration {
        Duration::from_millis(expected_ms.into()).min(self.driving_max) + self.report_margin
    }

    /// How long this property's value must hold before it is read back (semantics 3.6), bounded like driving.
    pub fn stable(&self, property: &Property) -> Duration {
        Duration::from_millis(property.stable_ms.into()).min(self.driving_max)
    }

    /// After how much silence a connected device is suspected.
    pub fn suspected_after(&self) -> Duration {
        self.heartbeat * 5 / 2
    }
}
