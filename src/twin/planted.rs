//! Mistakes that are planted on purpose, so that the simulator shows what its invariants notice.
//!
//! They exist only in the simulator's own crate (`tests/proof`), which builds these sources with the feature `planted`; the
//! hub has no such feature, so there [`is`] is `false` before anything is compiled further.

/// One planted mistake.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Planted {
    /// A report delivered with the RETAIN flag counts (against 3.4).
    RetainedCounts,
    /// A report of an older boot counts (against 3.4).
    OldBootCounts,
    /// Which operation the device finished last is not looked at (against 3.3).
    SeenIgnored,
    /// The answer to an earlier query counts as the read-back (against 3.6).
    EarlierQueryCounts,
    /// That nobody answers the read-back counts as stable (against 3.6).
    SilenceIsStable,
    /// The acknowledgement is success (against 3.5).
    AckIsSuccess,
    /// A device that answers an operation again tells the value that it remembers (against 5.1).
    DupFromMemory,
    /// A wish joins an operation whose completion was taken in (against 4.3).
    JoinAfterCompletion,
    /// Two relative wishes join (against 4.6).
    RelativesJoin,
    /// What was in flight is sent again after a restart (against 5.8).
    ResendAfterRestart,
    /// A non-repeatable action goes out before its admission is kept (against 8.5).
    AdmissionNotAwaited,
    /// An answer goes out before its record is kept (against 8.5).
    ReplyBeforeCommit,
    /// What is late expires after the input (against 4.8).
    DeadlineAfterReport,
    /// A device counts the time limit from when it received the command (against 4.1).
    LimitFromReceipt,
    /// Of the reports that wait to be taken in only the newest is (against 2.4).
    IngressNewestOnly,
    /// A restarted actor withdraws nothing (against 5.8).
    NothingWithdrawn,
    /// A value that went away is not noticed (against 3.7).
    RevertUnnoticed,
    /// An answer names the stage behind the one that broke (against 8.1).
    StageOffByOne,
    /// `failed` is said where nobody knows (against 8.3).
    FailedForUnknown,
    /// An operation is told to the caller of another (against 4.8).
    ToldToAnother,
    /// What an own operation did unnoticed counts as a person's touch (against 6.2).
    OwnIsLocal,
}

impl Planted {
    /// All of them.
    pub const ALL: &[Self] = &[
        Self::RetainedCounts,
        Self::OldBootCounts,
        Self::SeenIgnored,
        Self::EarlierQueryCounts,
        Self::SilenceIsStable,
        Self::AckIsSuccess,
        Self::DupFromMemory,
        Self::JoinAfterCompletion,
        Self::RelativesJoin,
        Self::ResendAfterRestart,
        Self::AdmissionNotAwaited,
        Self::ReplyBeforeCommit,
        Self::DeadlineAfterReport,
        Self::LimitFromReceipt,
        Self::IngressNewestOnly,
        Self::NothingWithdrawn,
        Self::RevertUnnoticed,
        Self::StageOffByOne,
        Self::FailedForUnknown,
        Self::ToldToAnother,
        Self::OwnIsLocal,
    ];
}

#[cfg(feature = "planted")]
std::thread_local! {
    static NOW: std::cell::Cell<Option<Planted>> = const { std::cell::Cell::new(None) };
}

/// From now on this thread makes that mistake, or none.
#[cfg(feature = "planted")]
pub fn plant(mistake: Option<Planted>) {
    NOW.set(mistake);
}

/// Whether that mistake is planted.
#[cfg(feature = "planted")]
pub fn is(mistake: Planted) -> bool {
    NOW.get() == Some(mistake)
}

/// Whether that mistake is planted: never.
#[cfg(not(feature = "planted"))]
pub const fn is(_: Planted) -> bool {
    false
}
