//! What a twin decides. Only written: decisions are compared, form against form.

use serde_json::Value as Json;

use super::plain::{Write, Zero, put, written, written_variants};
use crate::{
    property::ValueError,
    twin::{
        input::{Command, Effect, Ignored},
        owed::Correction,
        words::{HeldState, HeldWish, Presence, Refusal, Reply, StateReport},
    },
};

/// Words that are only written.
macro_rules! written_words {
    ($($ty:ident),+) => { $(
        impl Write for $ty {
            fn write(&self, _: Zero) -> Json {
                Json::from(self.as_str())
            }
        }
    )+ };
}

written_words! { Presence, HeldState, Ignored }

written_variants! {
    Effect {
        Send(command) = "send",
        Ask { question, device, property, answer_by } = "ask",
        Reply { op, reply } = "reply",
        State { op, state } = "state",
        StageLeft { stage, spent } = "stage_left",
        Ended { outcome, stage, reason, elapsed } = "ended",
        LateSuccess { op } = "late_success",
        Reverted { op, property } = "reverted",
        Owed { caller, correction } = "owed",
        LocalOverride { property } = "local_override",
        Presence(presence) = "presence",
        Described(description) = "described",
        Malformed { of_seq, property, error } = "malformed",
        StaleHello { of_seq } = "stale_hello",
        Ignored(why) = "ignored",
    }
    Command {
        Welcome { session } = "welcome",
        Set { op, property, value, ttl } = "set",
        Run { op, action, args, ttl } = "run",
        GetState { op, property } = "get_state",
        Withdraw { op } = "withdraw",
    }
    Reply {
        Settled(settled) = "settled",
        Refused(refusal) = "refused",
    }
    Refusal {
        UnknownDevice { asked, near } = "unknown_device",
        AmbiguousName { asked, candidates } = "ambiguous_name",
        UnknownProperty { asked, known } = "unknown_property",
        MissingArgument { parameter, allowed } = "missing_argument",
        UnknownArgument { parameter, allowed } = "unknown_argument",
        InvalidArgument { parameter, sent, allowed } = "invalid_argument",
        InvalidValue { property, error } = "invalid_value",
        ConfirmationRequired = "confirmation_required",
        CodeWrong { left } = "code_wrong",
        CodeExpired = "code_expired",
        CodeTooEarly = "code_too_early",
        LockedOut { left } = "locked_out",
        Declined = "declined",
        Forbidden { property } = "forbidden",
        ActsOnly { property, actions } = "acts_only",
        NotAccepted { property } = "not_accepted",
        VerifierOffline { device } = "verifier_offline",
        Offline { last_heard } = "offline",
        StateUnknown { property } = "state_unknown",
        HubJustStarted = "hub_just_started",
        QueueFull { limit } = "queue_full",
        DeadlineTooShort { needed } = "deadline_too_short",
        BrokerDown = "broker_down",
        JournalDown = "journal_down",
        Quarantined = "quarantined",
        ShuttingDown = "shutting_down",
    }
    ValueError {
        WrongKind { sent, expected } = "wrong_kind",
        OutOfRange { sent, min, max } = "out_of_range",
        OffStep { sent, step, min } = "off_step",
        NotListed { sent, allowed } = "not_listed",
        BadText { sent, expected } = "bad_text",
    }
}

written! {
    StateReport { device, presence, last_heard, readings, moving, reverted, held, amended, asked_now }
    HeldWish { property, value, state, reason, valid_for }
    Correction { device, operation, settled }
}

impl Write for Result<StateReport, Refusal> {
    fn write(&self, zero: Zero) -> Json {
        match self {
            Ok(state) => state.write(zero),
            Err(refusal) => serde_json::json!({ "refused": refusal.write(zero) }),
        }
    }
}
