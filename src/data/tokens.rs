//! Bearer tokens for HTTP clients: one random token a client, of which only a salted hash is kept, and what it may.
//!
//! As with passwords of devices ([`super::Credentials`]) 128 random bits need no slow hash.

use std::{
    collections::BTreeMap,
    fmt,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError, RwLock, Weak},
};

use tokio::sync::watch;

use super::{
    Error, Lock, Secret, TOKENS,
    credentials::{Hashed, new_secret},
    endpoint_name, file,
};
use crate::names::Lang;

/// Most tokens of one hub. One more is refused: a home has one for each program that asks.
pub const TOKENS_MAX: usize = 256;

/// The version of `tokens.json` that this program writes and reads.
const VERSION: u64 = 1;

/// The largest `tokens.json`, bytes: [`TOKENS_MAX`] entries of some dozen selectors each.
const FILE_BYTES_MAX: u64 = 4_194_304;

/// Longest token that is hashed, bytes; ours have 32. A longer one is wrong without a look.
const TOKEN_BYTES_MAX: usize = 256;

/// A token without its secret: whose it is and what it may.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    /// What its owner calls it, 1 to 32 of a-z, 0-9, _ and -.
    pub name: Arc<str>,
    /// What it may look at and move; `None`: everything, or with `read`, nothing.
    pub devices: Option<Vec<String>>,
    /// What it may only look at.
    pub read: Option<Vec<String>>,
    /// Its language; `None`: that of the hub.
    pub language: Option<Lang>,
    /// When it was made, RFC 3339.
    pub created: String,
}

/// All tokens. Clones share one set; all methods may be called from any thread.
#[derive(Clone)]
pub struct Tokens {
    shared: Arc<Shared>,
}

struct Shared {
    folder: PathBuf,
    lock: Weak<Lock>,
    /// Held over a change on the disk.
    writing: Mutex<()>,
    all: RwLock<BTreeMap<Arc<str>, (Token, Hashed)>>,
    /// Grows with each change.
    revision: watch::Sender<u64>,
}

impl Tokens {
    pub(super) fn load(lock: Weak<Lock>, path: PathBuf) -> Result<Self, Error> {
        let all = match file::read_private(&path, FILE_BYTES_MAX)? {
            None => BTreeMap::new(),
            Some(text) => decode(&path, &text)?,
        };
        let folder = path.parent().map(Path::to_owned).unwrap_or_default();
        let (writing, all, revision) = (Mutex::new(()), RwLock::new(all), watch::Sender::new(0));
        Ok(Self { shared: Arc::new(Shared { folder, lock, writing, all, revision }) })
    }

    /// Makes one. It counts once this returns.
    ///
    /// # Errors
    /// [`Error::TokenExists`], [`Error::TooManyTokens`], or from the disk; then nothing has changed.
    pub fn add(&self, token: Token) -> Result<Secret, Error> {
        self.change(|all| {
            if all.contains_key(&token.name) {
                return Err(Error::TokenExists(token.name.to_string()));
            }
            if all.len() >= TOKENS_MAX {
                return Err(Error::TooManyTokens);
            }
            let (secret, hashed) = new_secret()?;
            all.insert(token.name.clone(), (token, hashed));
            Ok(secret)
        })
    }

    /// Takes one back; it counts no more once this returns.
    ///
    /// # Errors
    /// [`Error::UnknownToken`], or from the disk; then nothing has changed.
    pub fn revoke(&self, name: &str) -> Result<(), Error> {
        self.change(|all| all.remove(name).map(drop).ok_or_else(|| Error::UnknownToken(name.to_owned())))
    }

    /// All of them, ordered by name.
    pub fn list(&self) -> Vec<Token> {
        self.all().values().map(|(token, _)| token.clone()).collect()
    }

    /// One of them.
    pub fn get(&self, name: &str) -> Option<Token> {
        self.all().get(name).map(|(token, _)| token.clone())
    }

    /// Whose token this is. Compared with all of them in constant time, so that how long it takes tells nothing.
    pub fn verify(&self, token: &[u8]) -> Option<Arc<str>> {
        if token.len() > TOKEN_BYTES_MAX {
            return None;
        }
        let mut found = None;
        for (known, hashed) in self.all().values() {
            if hashed.is_of(token) {
                found = Some(known.name.clone());
            }
        }
        found
    }

    /// Grows with each change.
    pub fn revision(&self) -> u64 {
        *self.shared.revision.borrow()
    }

    /// Tells of each change.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.shared.revision.subscribe()
    }

    /// Changes a copy, writes it, and only then lets it count.
    fn change<T>(
        &self,
        apply: impl FnOnce(&mut BTreeMap<Arc<str>, (Token, Hashed)>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let _one_at_a_time = self.shared.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(_still_ours) = self.shared.lock.upgrade() else {
            return Err(Error::Closed { path: self.shared.folder.clone() });
        };
        let mut all = self.all().clone();
        let result = apply(&mut all)?;
        file::replace(&self.shared.folder, TOKENS, encode(&all).as_bytes())?;
        *self.shared.all.write().unwrap_or_else(PoisonError::into_inner) = all;
        self.shared.revision.send_modify(|revision| *revision += 1);
        Ok(result)
    }

    fn all(&self) -> std::sync::RwLockReadGuard<'_, BTreeMap<Arc<str>, (Token, Hashed)>> {
        self.shared.all.read().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.all().keys()).finish()
    }
}

/// The tokens' names of a folder whose lock somebody else may hold; none if there is no such file.
///
/// # Errors
/// From the disk, or if the file cannot be understood.
pub fn token_names(folder: &Path) -> Result<Vec<Arc<str>>, Error> {
    let path = folder.join(TOKENS);
    let Some(text) = file::read_private(&path, FILE_BYTES_MAX)? else { return Ok(Vec::new()) };
    Ok(decode(&path, &text)?.into_keys().collect())
}

/// `tokens.json`, version 1.
#[derive(serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Stored {
    version: u64,
    tokens: BTreeMap<String, StoredToken>,
}

#[derive(serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredToken {
    /// Hex of 16 bytes, hashed before the token.
    salt: String,
    /// Hex of SHA-256 over salt and token.
    sha256: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    devices: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    read: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    language: Option<Lang>,
    /// RFC 3339.
    created: String,
}

/// What every version has.
#[derive(serde::Deserialize)]
struct Versioned {
    version: u64,
}

fn encode(all: &BTreeMap<Arc<str>, (Token, Hashed)>) -> String {
    let stored = |(token, hashed): &(Token, Hashed)| {
        let (salt, sha256) = hashed.hex();
        let Token { devices, read, language, created, .. } = token.clone();
        (token.name.to_string(), StoredToken { salt, sha256, devices, read, language, created })
    };
    let text = serde_json::to_string_pretty(&Stored { version: VERSION, tokens: all.values().map(stored).collect() });
    text.expect("strings and numbers are always JSON") + "\n"
}

fn decode(path: &Path, text: &str) -> Result<BTreeMap<Arc<str>, (Token, Hashed)>, Error> {
    let damaged = |problem: String| Error::Damaged { path: path.to_owned(), problem };
    let Versioned { version } = serde_json::from_str(text).map_err(|error| damaged(error.to_string()))?;
    if version > VERSION {
        return Err(Error::Newer { path: path.to_owned(), found: version, known: VERSION });
    }
    if version < VERSION {
        return Err(damaged(format!("there never was a version {version}")));
    }
    let stored: Stored = serde_json::from_str(text).map_err(|error| damaged(error.to_string()))?;
    let entry = |(name, stored): (String, StoredToken)| {
        let StoredToken { salt, sha256, devices, read, language, created } = stored;
        let name = endpoint_name(&name).map_err(|_| damaged(format!("{name:?} is no name of a token")))?;
        let hashed = Hashed::from_hex(&salt, &sha256);
        let hashed = hashed.ok_or_else(|| damaged(format!("salt or sha256 of {name} is not hex of its length")))?;
        Ok((name.clone(), (Token { name, devices, read, language, created }, hashed)))
    };
    stored.tokens.into_iter().map(entry).collect()
}
