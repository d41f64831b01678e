//! Who may come in at the door: whoever the data folder has credentials of. A refusal is a line in the log, so that a
//! mistyped password is no riddle.
//!
//! | password | how it is looked at |
//! |---|---|
//! | one that the hub made | at once: one round of SHA-256 |
//! | one that somebody chose | Argon2id on a thread that may block, one at a time: each takes 19 MiB and some 100 ms of a Pi |
//! | one that was chosen, and was right lately | at once, by a hash under a key of this process alone |
//!
//! A name that nobody has is told at once, so the names of accounts can be found out by the time that an answer takes. They are
//! no secrets; they stand in the programs' configurations and logs.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use sha2::{Digest as _, Sha256};
use tokio::sync::Semaphore;

use crate::{
    broker::{Access, Answer, Who},
    data::{Accounts, Chosen, Credentials, Proof},
};

/// The shortest time between two lines about refused clients: a board that tries each second must not fill the disk. The
/// metrics count every one.
const REFUSAL_EVERY: Duration = Duration::from_secs(10);

/// Passwords that may wait to be checked, the one that is being checked included. They are some seconds of a Pi. At it the client
/// hears that the server is busy, and is counted; whoever was let in lately is not in the queue.
const CHECKS_MAX: usize = 16;

/// The door's question, answered by the data folder's credentials.
pub(super) struct Doorkeeper {
    credentials: Credentials,
    accounts: Accounts,
    checks: Arc<Checks>,
}

/// What checking takes and what came of it.
struct Checks {
    turn: Arc<Semaphore>,
    waiting: AtomicUsize,
    /// By account, the hash of what was right last, under `key`.
    right: Mutex<HashMap<String, [u8; 32]>>,
    key: [u8; 32],
    /// When a refusal was last logged.
    said: Mutex<Option<Instant>>,
}

impl Doorkeeper {
    /// # Panics
    /// If the operating system has no randomness to give; nothing here can go on without it.
    pub(super) fn new(credentials: Credentials, accounts: Accounts) -> Self {
        let mut key = [0; 32];
        getrandom::fill(&mut key).expect("the operating system provides randomness");
        let checks = Checks {
            turn: Arc::new(Semaphore::new(1)),
            waiting: AtomicUsize::new(0),
            right: Mutex::default(),
            key,
            said: Mutex::new(None),
        };
        Self { credentials, accounts, checks: Arc::new(checks) }
    }
}

impl Access for Doorkeeper {
    fn admits(&self, user: &str, password: &[u8]) -> Answer {
        let Some(login) = self.accounts.login(user, password) else {
            let admitted = self.credentials.verify(user, password);
            if !admitted {
                self.checks.refused(user);
            }
            return admitted.into();
        };
        match login.proof {
            Proof::Seen(true) => Answer::Now(Who::Account(login.rights)),
            Proof::Seen(false) => {
                self.checks.refused(user);
                Answer::Now(Who::Nobody)
            }
            Proof::Slow(chosen) => {
                let seen = self.checks.hash(&chosen, password);
                if self.checks.was_right(user, &seen) {
                    return Answer::Now(Who::Account(login.rights));
                }
                let Some(waiting) = Waiting::begin(&self.checks) else { return Answer::Now(Who::Busy) };
                let (user, password) = (user.to_owned(), password.to_vec());
                Answer::Later(Box::pin(async move {
                    if !waiting.is_right(&chosen, password).await {
                        waiting.0.refused(&user);
                        return Who::Nobody;
                    }
                    waiting.0.remember(user, seen);
                    Who::Account(login.rights)
                }))
            }
        }
    }
}

/// One password that waits to be checked, or is being checked.
struct Waiting(Arc<Checks>);

impl Waiting {
    fn begin(checks: &Arc<Checks>) -> Option<Self> {
        let began = checks.waiting.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |waiting| {
            (waiting < CHECKS_MAX).then_some(waiting + 1)
        });
        began.is_ok().then(|| Self(checks.clone()))
    }

    /// Checks it once it is its turn. A client that goes meanwhile changes nothing about whose turn it is.
    async fn is_right(&self, chosen: &Arc<Chosen>, password: Vec<u8>) -> bool {
        let Ok(turn) = self.0.turn.clone().acquire_owned().await else { return false };
        let chosen = chosen.clone();
        let checking = tokio::task::spawn_blocking(move || {
            let right = chosen.is_of(&password);
            drop(turn);
            right
        });
        checking.await.unwrap_or(false)
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Checks {
    /// A hash of a password and of what it is checked against: another one once the account has another password.
    fn hash(&self, chosen: &Chosen, password: &[u8]) -> [u8; 32] {
        let digest = Sha256::new().chain_update(self.key).chain_update(chosen.fingerprint()).chain_update(password);
        digest.finalize().into()
    }

    fn was_right(&self, user: &str, seen: &[u8; 32]) -> bool {
        // Under a key that nobody knows, so how far two hashes agree tells nothing.
        self.right.lock().unwrap_or_else(PoisonError::into_inner).get(user) == Some(seen)
    }

    /// Only accounts that there are come here, of which there are few.
    fn remember(&self, user: String, seen: [u8; 32]) {
        self.right.lock().unwrap_or_else(PoisonError::into_inner).insert(user, seen);
    }

    fn refused(&self, user: &str) {
        let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        if said.is_none_or(|at| at.elapsed() >= REFUSAL_EVERY) {
            *said = Some(Instant::now());
            tracing::warn!(
                user,
                "refused: no such device or account, or a wrong password; `truetwin device add` makes a device, `truetwin account add` \
                 a program or a person, `rotate` another password"
            );
        }
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test that fails there has said so")]
mod tests {
    use super::*;
    use crate::{
        data::{DataFolder, Secret},
        property::DeviceId,
        topics::Rights,
    };

    fn doorkeeper() -> (tempfile::TempDir, DataFolder, Doorkeeper) {
        let folder = tempfile::tempdir().unwrap();
        let data = DataFolder::open(folder.path()).unwrap();
        let name = DeviceId::new("ha").unwrap();
        let rights = Rights::new(&["#"], &[]).unwrap();
        data.accounts().add(&name, rights, Some(&Secret::new("correct horse".into()))).unwrap();
        let doorkeeper = Doorkeeper::new(data.credentials(), data.accounts());
        (folder, data, doorkeeper)
    }

    async fn who(answer: Answer) -> Who {
        match answer {
            Answer::Now(who) => who,
            Answer::Later(later) => later.await,
        }
    }

    #[tokio::test]
    async fn a_chosen_password_is_checked_once_and_then_known_until_it_is_another() {
        let (_folder, data, doorkeeper) = doorkeeper();
        let first = doorkeeper.admits("ha", b"correct horse");
        assert!(matches!(first, Answer::Later(_)));
        assert!(matches!(who(first).await, Who::Account(_)));
        assert!(matches!(doorkeeper.admits("ha", b"correct horse"), Answer::Now(Who::Account(_))));
        assert_eq!(who(doorkeeper.admits("ha", b"wrong horse")).await, Who::Nobody);
        assert!(matches!(doorkeeper.admits("ha", b"correct horse"), Answer::Now(Who::Account(_))), "still known");
        let name = DeviceId::new("ha").unwrap();
        data.accounts().rotate(&name, Some(&Secret::new("battery staple".into()))).unwrap();
        assert_eq!(who(doorkeeper.admits("ha", b"correct horse")).await, Who::Nobody);
        data.accounts().remove(&name).unwrap();
        assert!(matches!(doorkeeper.admits("ha", b"battery staple"), Answer::Now(Who::Nobody)));
    }

    #[tokio::test]
    async fn as_many_wait_as_may_and_one_more_hears_that_the_server_is_busy() {
        let (_folder, _data, doorkeeper) = doorkeeper();
        let waiting: Vec<Answer> = (0..CHECKS_MAX).map(|_| doorkeeper.admits("ha", b"wrong horse")).collect();
        assert!(waiting.iter().all(|answer| matches!(answer, Answer::Later(_))));
        assert!(matches!(doorkeeper.admits("ha", b"wrong horse"), Answer::Now(Who::Busy)));
        drop(waiting);
        assert!(matches!(who(doorkeeper.admits("ha", b"correct horse")).await, Who::Account(_)), "they have gone");
    }
}
