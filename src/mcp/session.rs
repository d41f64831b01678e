//! One session of one principal: who asks, what it may, how it is spoken to.

use std::sync::Arc;

use crate::{
    authz::{Policy, Principal},
    fleet::Caller,
};

/// Who is at the other end of a session or a request.
#[derive(Clone, Debug)]
pub struct Guest {
    /// Whose policy holds.
    pub principal: Principal,
    /// This session among those of the principal: whose operations these are.
    pub caller: Caller,
    /// What holds, as of this request.
    pub policy: Arc<Policy>,
}

impl Guest {
    /// A session of a principal. `session` tells sessions of one principal apart; without one, they share everything that
    /// goes by session.
    pub fn new(principal: Principal, session: &str, policy: Arc<Policy>) -> Self {
        let caller = match session {
            "" => Caller(principal.to_string().into()),
            session => Caller(format!("{principal}:{session}").into()),
        };
        Self { principal, caller, policy }
    }

    /// Whether several people may be this one, so that a code has to say which question it answers: clients without a
    /// session, and boxes that their access point does not tell apart.
    pub(super) fn is_several(&self) -> bool {
        self.caller.is_shared() || self.policy.several && *self.caller.0 == self.principal.to_string()
    }
}
