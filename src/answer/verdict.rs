//! The table: what may be said of each outcome and each refusal, and what to do next. Total, one row each.

use super::{Next, ResultWord};
use crate::twin::words::{Outcome, RefusalWord};

/// What may be said of an outcome, and what to do next (semantics 8.3).
pub fn of_outcome(outcome: Outcome) -> (ResultWord, Next) {
    match outcome {
        Outcome::Converged | Outcome::Already | Outcome::Clamped => (ResultWord::Confirmed, Next::None),
        Outcome::Working => (ResultWord::Working, Next::Wait),
        Outcome::Partial => (ResultWord::Partly, Next::None),
        // A device that was removed in the middle may have done it all the same: not knowing is not failing.
        Outcome::TimedOut
        | Outcome::SentUnverified
        | Outcome::Interrupted
        | Outcome::Removed
        | Outcome::DeviceCrashed => (ResultWord::Unconfirmed, Next::AskUserToLook),
        Outcome::Superseded | Outcome::Rejected | Outcome::Failed | Outcome::Contradicted | Outcome::Cancelled => {
            (ResultWord::Failed, Next::None)
        }
    }
}

/// Whether an outcome is a success: the only three (semantics 8.4).
pub(super) fn is_success(outcome: Outcome) -> bool {
    match outcome {
        Outcome::Converged | Outcome::Already | Outcome::Clamped => true,
        Outcome::Working
        | Outcome::Partial
        | Outcome::SentUnverified
        | Outcome::Superseded
        | Outcome::Rejected
        | Outcome::Failed
        | Outcome::Contradicted
        | Outcome::TimedOut
        | Outcome::Interrupted
        | Outcome::Cancelled
        | Outcome::Removed
        | Outcome::DeviceCrashed => false,
    }
}

/// What may be said of a refusal, and what to do next (semantics 8.3). A refusal is never a success.
pub fn of_refusal(word: RefusalWord) -> (ResultWord, Next) {
    match word {
        RefusalWord::UnknownDevice
        | RefusalWord::AmbiguousName
        | RefusalWord::UnknownProperty
        | RefusalWord::MissingArgument
        | RefusalWord::UnknownArgument
        | RefusalWord::InvalidValue
        | RefusalWord::ConfirmationRequired
        | RefusalWord::CodeWrong
        | RefusalWord::CodeExpired
        | RefusalWord::CodeTooEarly => (ResultWord::AskUser, Next::AnswerQuestion),
        RefusalWord::HubJustStarted | RefusalWord::RateLimited | RefusalWord::QueueFull => {
            (ResultWord::Failed, Next::RetryOnce)
        }
        RefusalWord::Forbidden
        | RefusalWord::Declined
        | RefusalWord::Offline
        | RefusalWord::StateUnknown
        | RefusalWord::VerifierOffline
        | RefusalWord::DeadlineTooShort
        | RefusalWord::BrokerDown
        | RefusalWord::Quarantined
        | RefusalWord::ShuttingDown => (ResultWord::Failed, Next::None),
    }
}
