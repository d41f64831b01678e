//! The questions that wait for a person's yes: one of each caller, each for one command.

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
    time::{Duration, Instant},
};

use super::{Limits, Secret, secret::same};
use crate::property::{DeviceId, PropertyName};

/// How many callers may have a question open, and of how many wrong guesses are counted: more sessions than a home has. At
/// the bound the oldest question is forgotten; it has to be asked again.
pub const CALLERS_MAX: usize = 256;

/// After so many wrong codes a question is gone.
pub const WRONG_MAX: u32 = 3;

/// What a command has to be confirmed by; nothing in particular: by the code of its question.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Demand {
    /// By the secret code, said aloud, instead of the code of the question.
    pub spoken: bool,
    /// Also by all of these buttons.
    pub presses: Vec<(DeviceId, PropertyName)>,
    /// What the secret code is for: wrong guesses are counted for each.
    pub things: Vec<(DeviceId, PropertyName)>,
    /// All that was asked about.
    pub asked: Vec<(DeviceId, PropertyName)>,
}

impl Demand {
    /// Whether who has met this has met the other, too.
    pub fn covers(&self, other: &Self) -> bool {
        (self.spoken || !other.spoken)
            && other.presses.iter().all(|button| self.presses.contains(button))
            && other.asked.iter().all(|thing| self.asked.contains(thing))
    }
}

/// A command that was confirmed, to be carried out now, once.
#[derive(Clone, Debug, PartialEq)]
pub struct Confirmed<C>(pub C);

/// Why a command was not confirmed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Denied {
    /// Nothing waits under this code; `left`: how often it may still be tried.
    Wrong {
        /// More tries.
        left: u32,
    },
    /// The question was put too long ago.
    Expired,
    /// No person answers so quickly; the question is gone.
    TooEarly,
    /// The code is right, the button has not been pressed since the question.
    NotPressed,
    /// Too many wrong codes; nothing is compared before this has passed.
    LockedOut {
        /// How much longer.
        left: Duration,
    },
}

/// One question.
#[derive(Clone, Debug)]
struct Question<C> {
    command: C,
    demand: Demand,
    code: Arc<str>,
    put: Instant,
    wrong: u32,
}

/// Wrong guesses in a row.
#[derive(Clone, Copy, Debug, Default)]
struct Guesses {
    wrong: u32,
    until: Option<Instant>,
}

/// The open questions of all callers.
#[derive(Debug)]
pub struct Questions<C> {
    limits: Limits,
    /// The oldest in front.
    open: VecDeque<(Arc<str>, Question<C>)>,
    /// By caller, the one that guessed longest ago in front.
    callers: VecDeque<(Arc<str>, Guesses)>,
    /// By thing: as many as are confirmed by a spoken code, which the configuration names one by one.
    things: HashMap<(DeviceId, PropertyName), Guesses>,
}

impl<C: Clone + PartialEq> Questions<C> {
    /// None yet.
    pub fn new(limits: Limits) -> Self {
        Self { limits, open: VecDeque::new(), callers: VecDeque::new(), things: HashMap::new() }
    }

    /// What holds.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// A question was put; an earlier one of the same caller is gone. `code` is random; for a question that is answered in
    /// another way it is that way's own secret.
    pub fn put(&mut self, caller: &str, command: C, demand: Demand, code: &str, now: Instant) {
        self.open.retain(|(who, _)| **who != *caller);
        if self.open.len() >= CALLERS_MAX {
            self.open.pop_front();
        }
        let question = Question { command, demand, code: code.into(), put: now, wrong: 0 };
        self.open.push_back((caller.into(), question));
    }

    /// The open question of a caller: its command, what it demands, and since when.
    pub fn open(&self, caller: &str) -> Option<(&C, &Demand, Instant)> {
        let (_, question) = self.open.iter().find(|(who, _)| **who == *caller)?;
        Some((&question.command, &question.demand, question.put))
    }

    /// The caller says a code: the question's, or the secret. `pressed`: all buttons that it demands were pressed since it
    /// was put. With `shared`, where several clients may be this caller, the secret comes behind the question's own code, so
    /// that nobody confirms another's command.
    ///
    /// # Errors
    /// [`Denied`]; the command is not to be carried out.
    pub fn confirm(
        &mut self,
        caller: &str,
        said: &str,
        secret: Option<&Secret>,
        pressed: bool,
        shared: bool,
        now: Instant,
    ) -> Result<Confirmed<C>, Denied> {
        let at = self.open.iter().position(|(who, _)| **who == *caller).ok_or(Denied::Wrong { left: 0 })?;
        let (_, question) = self.open.get(at).ok_or(Denied::Wrong { left: 0 })?;
        let (demand, age) = (question.demand.clone(), now.saturating_duration_since(question.put));
        if age > self.limits.latest {
            self.open.remove(at);
            return Err(Denied::Expired);
        }
        if age < self.limits.earliest {
            self.open.remove(at);
            return Err(Denied::TooEarly);
        }
        let right = if demand.spoken {
            if let Some(left) = self.locked_out(caller, &demand.things, now) {
                return Err(Denied::LockedOut { left });
            }
            let (own, spoken) = said.trim().split_once(char::is_whitespace).filter(|_| shared).unwrap_or(("", said));
            let right = secret.is_some_and(|secret| secret.is(spoken));
            // A secret that is said for another question is no wrong guess, and no right one either.
            self.guessed(caller, &demand.things, right, now);
            right && (!shared || same(own, &question_code(&self.open, at)))
        } else {
            same(said, &question_code(&self.open, at))
        };
        if right && !pressed && !demand.presses.is_empty() {
            return Err(Denied::NotPressed);
        }
        if right {
            let (_, question) = self.open.remove(at).ok_or(Denied::Wrong { left: 0 })?;
            return Ok(Confirmed(question.command));
        }
        let (_, question) = self.open.get_mut(at).ok_or(Denied::Wrong { left: 0 })?;
        question.wrong += 1;
        let left = WRONG_MAX.saturating_sub(question.wrong);
        if left == 0 {
            self.open.remove(at);
        }
        Err(Denied::Wrong { left })
    }

    /// A person's yes came through a form that was put under `key`, which nobody else was told. For that command only.
    ///
    /// # Errors
    /// [`Denied::Expired`] if it took too long, [`Denied::Wrong`] for another command or none.
    pub fn agreed(&mut self, key: &str, command: &C, now: Instant) -> Result<(Confirmed<C>, Instant), Denied> {
        let at = self.open.iter().position(|(who, _)| **who == *key).ok_or(Denied::Wrong { left: 0 })?;
        let (_, question) = self.open.remove(at).ok_or(Denied::Wrong { left: 0 })?;
        if now.saturating_duration_since(question.put) > self.limits.form {
            return Err(Denied::Expired);
        }
        if question.command != *command {
            return Err(Denied::Wrong { left: 0 });
        }
        Ok((Confirmed(question.command), question.put))
    }

    /// What a person has written into a form as the secret code.
    ///
    /// # Errors
    /// [`Denied::Wrong`] or [`Denied::LockedOut`].
    pub fn written(
        &mut self,
        caller: &str,
        demand: &Demand,
        said: &str,
        secret: Option<&Secret>,
        now: Instant,
    ) -> Result<(), Denied> {
        if let Some(left) = self.locked_out(caller, &demand.things, now) {
            return Err(Denied::LockedOut { left });
        }
        let right = secret.is_some_and(|secret| secret.is(said));
        self.guessed(caller, &demand.things, right, now);
        if right { Ok(()) } else { Err(Denied::Wrong { left: 0 }) }
    }

    fn locked_out(&self, caller: &str, things: &[(DeviceId, PropertyName)], now: Instant) -> Option<Duration> {
        let callers = self.callers.iter().filter(|(who, _)| **who == *caller).map(|(_, guesses)| guesses);
        let until =
            callers.chain(things.iter().filter_map(|thing| self.things.get(thing))).filter_map(|g| g.until).max()?;
        Some(until.saturating_duration_since(now)).filter(|left| !left.is_zero())
    }

    fn guessed(&mut self, caller: &str, things: &[(DeviceId, PropertyName)], right: bool, now: Instant) {
        let limits = self.limits;
        let count = |guesses: &mut Guesses| {
            let ended = guesses.until.is_some_and(|until| until <= now);
            if right || ended {
                *guesses = Guesses::default();
            }
            if !right {
                guesses.wrong += 1;
            }
            if guesses.wrong >= limits.guesses_max {
                guesses.until = Some(now + limits.locked_out);
            }
        };
        let before = self.callers.iter().position(|(who, _)| **who == *caller);
        let mut own = before.and_then(|at| self.callers.remove(at)).map(|(_, guesses)| guesses).unwrap_or_default();
        count(&mut own);
        if self.callers.len() >= CALLERS_MAX {
            self.callers.pop_front();
        }
        self.callers.push_back((caller.into(), own));
        for thing in things {
            count(self.things.entry(thing.clone()).or_default());
        }
    }
}

fn question_code<C>(open: &VecDeque<(Arc<str>, Question<C>)>, at: usize) -> Arc<str> {
    open.get(at).map_or_else(|| "".into(), |(_, question)| question.code.clone())
}
