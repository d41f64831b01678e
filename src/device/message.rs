//! What the actor of a device is sent.

use std::time::Instant;

use ractor::RpcReplyPort;

use super::told::Stages;
use crate::{
    broker::Receipt,
    twin::{
        Twin,
        input::{Found, Hello, Report},
        ledger::Asked,
        view::View,
        wish::{ActionName, Arguments, CallerId, Wish},
        words::{OpId, Refusal, Reply, Settled, StateReport},
    },
};

/// A message to a device's actor: an input of its twin, with the port to answer where somebody waits.
pub enum DeviceMsg {
    /// Make a wish true.
    Set {
        /// The new operation.
        op: OpId,
        /// Who asks.
        caller: CallerId,
        /// What it wants.
        wish: Wish,
        /// When the caller must have its answer.
        answer_by: Instant,
        /// Who wants to hear how far it is.
        stages: Option<Stages>,
        /// Who waits.
        port: RpcReplyPort<Reply>,
    },
    /// Do something that leaves no state.
    Run {
        /// The new operation.
        op: OpId,
        /// Who asks.
        caller: CallerId,
        /// The action.
        action: ActionName,
        /// What it is done with.
        args: Arguments,
        /// When the caller must have its answer.
        answer_by: Instant,
        /// Who wants to hear how far it is.
        stages: Option<Stages>,
        /// Who waits.
        port: RpcReplyPort<Reply>,
    },
    /// Ask the device what its state is.
    Query {
        /// The question.
        op: OpId,
        /// When the caller must have its answer.
        answer_by: Instant,
        /// Who waits.
        port: RpcReplyPort<Result<StateReport, Refusal>>,
    },
    /// Tell what is known of the state, without asking the device.
    State(RpcReplyPort<StateReport>),
    /// Tell all that is known, without asking the device.
    View(RpcReplyPort<View>),
    /// Tell what became of an operation, or of the latest.
    Check {
        /// Which.
        op: Option<OpId>,
        /// Who waits.
        port: RpcReplyPort<Option<Settled>>,
    },
    /// The caller of an operation stopped waiting.
    Cancel(OpId),
    /// The device's connection opened.
    Connected(u64),
    /// A connection of the device ended.
    Disconnected(u64),
    /// The device greeted.
    Greeted {
        /// Its greeting, with the owner's word over it.
        hello: Hello,
        /// The same as the device sent it, if it says something else of what it has than the one before: it is kept.
        said: Option<String>,
        /// Goes out once it is taken in.
        receipt: Receipt,
    },
    /// The device reported, perhaps several times in one breath; in the order in which it did.
    Heard(Vec<(Report, Receipt)>),
    /// What a question to another device came to.
    Verified(OpId, Found),
    /// The device sent something that could not be read.
    Unreadable,
    /// The bytes of a command were written to the device's socket.
    Written(u64),
    /// A command never reached the device's socket.
    Lost(u64),
    /// The bus died.
    BusDown,
    /// The bus is back.
    BusUp,
    /// The timer.
    Tick,
    /// Answer everybody, then stop.
    ShutDown(RpcReplyPort<()>),
    /// The owner removed the device: answer everybody, then stop.
    Removed(RpcReplyPort<()>),
    /// Panics, as a fault in this actor would.
    #[cfg(test)]
    Crash,
}

impl DeviceMsg {
    /// Which operation a message asks for, and when its caller must have its answer.
    pub(super) fn asks(&self, twin: &Twin) -> Option<(Asked, Instant)> {
        if let Self::Set { op, caller, wish, answer_by, .. } = self {
            let (what, wished) = (wish.property.clone(), wish.target.value().cloned());
            let first = twin.is_recorded_first(&what);
            return Some((Asked { op: op.clone(), caller: caller.clone(), what, wish: wished, first }, *answer_by));
        }
        if let Self::Run { op, caller, action, answer_by, .. } = self {
            let first = twin.is_action_recorded_first(action);
            let (op, caller, what) = (op.clone(), caller.clone(), action.clone());
            return Some((Asked { op, caller, what, wish: None, first }, *answer_by));
        }
        None
    }

    /// The promises that go with reports.
    pub(crate) fn into_receipts(self) -> Vec<Receipt> {
        if let Self::Heard(reports) = self {
            return reports.into_iter().map(|(_, receipt)| receipt).collect();
        }
        if let Self::Greeted { receipt, .. } = self { vec![receipt] } else { Vec::new() }
    }

    /// Whether somebody still waits for its answer.
    pub(super) fn is_waited_for(&self) -> bool {
        if let Self::Set { port, .. } | Self::Run { port, .. } = self { !port.is_closed() } else { false }
    }
}
