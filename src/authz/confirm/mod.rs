//! What a person has to agree to before it moves (semantics 7.2): the questions that wait, the secret code that is spoken,
//! and the presses of buttons.
//!
//! Pure: time is an argument, randomness is handed in; what a command is, only those know that put it in.

mod presses;
mod questions;
mod secret;
#[cfg(test)]
mod tests;

use std::time::Duration;

pub use self::{
    presses::Presses,
    questions::{CALLERS_MAX, Confirmed, Demand, Denied, Questions, WRONG_MAX},
    secret::{BadSecret, SPOKEN_CHARS_MIN, Secret},
};

/// How long questions are open, and how often a secret may be guessed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// How soon after the question a confirmation may come.
    pub earliest: Duration,
    /// Until when after the question it may come.
    pub latest: Duration,
    /// How long a client may show the question itself.
    pub form: Duration,
    /// How many wrong spoken codes in a row lock their caller, or the thing that they were for, out.
    pub guesses_max: u32,
    /// How long that lasts.
    pub locked_out: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            earliest: Duration::from_secs(3),
            latest: Duration::from_secs(60),
            form: Duration::from_secs(60),
            guesses_max: 5,
            locked_out: Duration::from_secs(300),
        }
    }
}
