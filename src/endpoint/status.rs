//! How an access point is doing, for its owner.

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use super::{End, EndWord, Profile, Settings};

/// Where an access point's task is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum State {
    /// It is dialled later.
    Waiting,
    /// It is being dialled.
    Dialling,
    /// There is a connection.
    Up,
    /// Its token was refused: it is not dialled any more.
    Refused,
    /// The hub stops.
    Stopped,
}

impl State {
    /// All of them.
    pub const ALL: &[Self] = &[Self::Waiting, Self::Dialling, Self::Up, Self::Refused, Self::Stopped];

    /// The word in lists and metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Dialling => "dialling",
            Self::Up => "up",
            Self::Refused => "refused",
            Self::Stopped => "stopped",
        }
    }
}

/// How one access point is doing. Nothing of it is secret.
#[derive(Clone, Debug, PartialEq)]
pub struct Status {
    /// What its owner calls it.
    pub name: Arc<str>,
    /// Where it is, without the token.
    pub address: String,
    /// Whose token it is, as [`super::Address::agent`].
    pub agent: String,
    /// Until when the token holds, seconds since 1970.
    pub expires: Option<u64>,
    /// Which kind it is.
    pub profile: Profile,
    /// Where its task is.
    pub state: State,
    /// Since when.
    pub since: SystemTime,
    /// How long after [`Self::since`] it is dialled, while waiting.
    pub dials_in: Option<Duration>,
    /// How the last connection, or the last try, ended.
    pub last_end: Option<(End, SystemTime)>,
    /// The tools that went over last, by name; empty before any did.
    pub tools: Vec<String>,
    /// When they went over on this connection; `None` while the access point has not asked on it.
    pub tools_at: Option<SystemTime>,
    /// Connections so far.
    pub connects: u64,
    /// Calls so far.
    pub calls: u64,
    /// The last of them.
    pub last_call: Option<SystemTime>,
    /// Calls that were not answered by their limit.
    pub late: u64,
    /// Frames that were for nobody.
    pub garbage: u64,
}

impl Status {
    pub(super) fn new(settings: &Settings) -> Self {
        Self {
            name: settings.name.clone(),
            address: settings.address.to_string(),
            agent: settings.address.agent().to_owned(),
            expires: settings.address.expires(),
            profile: settings.profile,
            state: State::Waiting,
            since: SystemTime::now(),
            dials_in: None,
            last_end: None,
            tools: Vec::new(),
            tools_at: None,
            connects: 0,
            calls: 0,
            last_call: None,
            late: 0,
            garbage: 0,
        }
    }

    /// What it is now.
    pub(super) fn is(&mut self, state: State, dials_in: Option<Duration>) {
        (self.state, self.since, self.dials_in) = (state, SystemTime::now(), dials_in);
        self.tools_at = None;
    }

    /// What an owner has to do about it; `None`: nothing.
    pub fn advice(&self) -> Option<&'static str> {
        let (end, _) = self.last_end.as_ref().filter(|_| self.state != State::Up)?;
        match end.word {
            EndWord::TokenRefused | EndWord::Replaced | EndWord::Tls | EndWord::NotThere | EndWord::HttpRefused => {
                Some(end.word.told())
            }
            EndWord::Stopped
            | EndWord::ToolsChanged
            | EndWord::Restarted
            | EndWord::Silent
            | EndWord::Dropped
            | EndWord::Closed
            | EndWord::Unanswered
            | EndWord::Unreachable
            | EndWord::Garbled
            | EndWord::Failed => None,
        }
    }
}
