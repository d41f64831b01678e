//! Who asks, and what it may see and move.
//!
//! A [`Principal`] is known from the session (an endpoint's socket, a bearer token, standard input), never from arguments.
//! Its [`Policy`] says which things it may read and write, and how it is spoken to. What a caller may not read does not
//! exist for it: its house ([`crate::mcp::House`]) is built without it.
//!
//! | file | what |
//! |---|---|
//! | `scope` | what an owner grants, in the owner's words |
//! | `places` | which things those words select |
//! | `rights` | a scope in a home as it is: a right for each thing |
//! | `permitted` | leave to do one thing; the fleet takes nothing else |
//!
//! Pure: knows no transport, no device, no state.

pub mod confirm;
mod permitted;
mod places;
mod principal;
mod rights;
mod scope;

use std::sync::Arc;

pub use self::{
    permitted::{Denied, Look, Permitted},
    principal::Principal,
    rights::Rights,
    scope::{Right, Scope, Selection},
};
use crate::names::Lang;

/// How long a caller waits for its answer if it says nothing else, milliseconds (semantics 4.2).
pub const ANSWER_BY_MS: u64 = 30_000;

/// What holds for one principal.
#[derive(Clone, Debug, PartialEq)]
pub struct Policy {
    /// What it may see and move.
    pub scope: Scope,
    /// The language of tools and answers.
    pub lang: Lang,
    /// How long a call of it may take, all told, milliseconds: below the limit of whoever asks.
    pub answer_by_ms: u64,
    /// The room in which it stands, by any of its names: what is meant by "the light". `None`: it has to be asked.
    pub here: Option<String>,
    /// The form of answers.
    pub style: Style,
    /// Whether several people speak through it whom nothing may tell apart: boxes of one agent. The yes of one is then not
    /// that of another (semantics 7.2).
    pub several: bool,
}

impl Default for Policy {
    /// Everything, in English, structured: what an owner at the machine itself has.
    fn default() -> Self {
        Self {
            scope: Scope::everything(),
            lang: Lang::default(),
            answer_by_ms: ANSWER_BY_MS,
            here: None,
            style: Style::Structured,
            several: false,
        }
    }
}

/// The form of an answer (answers, *Two voices*).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Style {
    /// The whole answer as structured content beside the text; failures are errors. For clients over stdio and HTTP.
    #[default]
    Structured,
    /// One short text, never an error: for voice endpoints, which do not hand errors to their model.
    Text,
    /// One short text; failures are errors with the sentence also as `error`: for relays that speak it as it stands.
    IsError,
}

/// The policies in force. Implemented by the composition root over configuration, tokens and endpoints.
pub trait Access: Send + Sync + 'static {
    /// What holds for a principal; `None` if it has none (any more): then it may nothing.
    fn policy(&self, principal: &Principal) -> Option<Arc<Policy>>;
    /// Grows with each change of any policy, so that what is built from one can be kept until then.
    fn revision(&self) -> u64;
}

/// One policy for everybody that never changes.
#[derive(Clone, Debug, Default)]
pub struct Everybody(pub Arc<Policy>);

impl Access for Everybody {
    fn policy(&self, _: &Principal) -> Option<Arc<Policy>> {
        Some(self.0.clone())
    }

    fn revision(&self) -> u64 {
        0
    }
}
