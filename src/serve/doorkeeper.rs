//! Who may come in at the door: whoever the data folder has credentials of. A refusal is a line in the log, so that a
//! mistyped password is no riddle.

use std::{
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use crate::{broker::Access, data::Credentials};

/// The door's question, answered by the data folder's credentials.
pub(super) struct Doorkeeper {
    credentials: Credentials,
    /// When a refusal was last logged.
    said: Mutex<Option<Instant>>,
}

/// The shortest time between two lines about refused devices: a board that tries each second must not fill the disk. The
/// metrics count every one.
const REFUSAL_EVERY: Duration = Duration::from_secs(10);

impl Doorkeeper {
    pub(super) fn new(credentials: Credentials) -> Self {
        Self { credentials, said: Mutex::new(None) }
    }
}

impl Access for Doorkeeper {
    fn admits(&self, user: &str, password: &[u8]) -> bool {
        let admitted = self.credentials.verify(user, password);
        if !admitted {
            let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
            if said.is_none_or(|at| at.elapsed() >= REFUSAL_EVERY) {
                *said = Some(Instant::now());
                tracing::warn!(
                    device = user,
                    "refused: no such device, or a wrong password; `truetwin device add` or `device rotate` gives one"
                );
            }
        }
        admitted
    }
}
