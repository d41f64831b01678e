//! The access points that the owner added by command: a name, and the URL with its token, which is a secret.
//!
//! Unlike a device's password a token cannot be kept as a hash: the hub has to show it where it dials. So the file is as
//! private as the folder (mode 0600), and nothing but the dialler reads a URL out of it.

use std::{
    collections::BTreeMap,
    fmt,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError, RwLock, Weak},
};

use tokio::sync::watch;

use super::{ENDPOINTS, Error, Lock, Secret, file};

/// Most access points of one hub. One more is refused; each is a connection and a task, and a home has one for each agent.
pub const ENDPOINTS_MAX: usize = 64;

/// Longest URL, bytes. Tokens that were seen have 200 to 400.
pub const URL_BYTES_MAX: usize = 4_096;

/// The version of `endpoints.json` that this program writes and reads.
const VERSION: u64 = 1;

/// The largest `endpoints.json`, bytes: [`ENDPOINTS_MAX`] entries with the longest URL, and room for escapes.
const FILE_BYTES_MAX: u64 = 524_288;

/// One access point that was added by command. [`fmt::Debug`] prints nothing of its token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredEndpoint {
    /// What its owner calls it, 1 to 32 of a-z, 0-9, _ and -.
    pub name: Arc<str>,
    /// Where to dial, with the token.
    pub url: Secret,
    /// When it was added, RFC 3339.
    pub added: String,
}

/// Why a text is no name of an access point.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no name of an endpoint: 1 to 32 of a-z, 0-9, _ and - are allowed")]
pub struct BadEndpointName(pub String);

/// Checks a name: it stands in callers, logs and the audit, so it is as plain as a device's id.
///
/// # Errors
/// [`BadEndpointName`] if it is empty, longer than 32 bytes or holds another character.
pub fn endpoint_name(text: &str) -> Result<Arc<str>, BadEndpointName> {
    match crate::property::DeviceId::new(text) {
        Ok(name) => Ok(name.as_str().into()),
        Err(bad) => Err(BadEndpointName(bad.0)),
    }
}

/// All access points that were added by command. Clones share one set; all methods may be called from any thread.
#[derive(Clone)]
pub struct Endpoints {
    shared: Arc<Shared>,
}

struct Shared {
    folder: PathBuf,
    lock: Weak<Lock>,
    /// Held over a change on the disk.
    writing: Mutex<()>,
    all: RwLock<BTreeMap<Arc<str>, StoredEndpoint>>,
    /// Grows with each change.
    revision: watch::Sender<u64>,
}

impl Endpoints {
    pub(super) fn load(lock: Weak<Lock>, path: PathBuf) -> Result<Self, Error> {
        let all = match file::read_private(&path, FILE_BYTES_MAX)? {
            None => BTreeMap::new(),
            Some(text) => decode(&path, &text)?,
        };
        let folder = path.parent().map(Path::to_owned).unwrap_or_default();
        let (writing, all, revision) = (Mutex::new(()), RwLock::new(all), watch::Sender::new(0));
        Ok(Self { shared: Arc::new(Shared { folder, lock, writing, all, revision }) })
    }

    /// Adds one. Whether its agent is there already under another name, the caller has looked at: that needs the token to
    /// be read.
    ///
    /// # Errors
    /// [`Error::EndpointExists`], [`Error::TooManyEndpoints`], [`Error::UrlTooLong`], or from the disk; then nothing has
    /// changed.
    pub fn add(&self, endpoint: StoredEndpoint) -> Result<(), Error> {
        if endpoint.url.reveal().len() > URL_BYTES_MAX {
            return Err(Error::UrlTooLong);
        }
        self.change(|all| {
            if all.contains_key(&endpoint.name) {
                return Err(Error::EndpointExists(endpoint.name.to_string()));
            }
            if all.len() >= ENDPOINTS_MAX {
                return Err(Error::TooManyEndpoints);
            }
            all.insert(endpoint.name.clone(), endpoint);
            Ok(())
        })
    }

    /// Removes one.
    ///
    /// # Errors
    /// [`Error::UnknownEndpoint`], or from the disk; then nothing has changed.
    pub fn remove(&self, name: &str) -> Result<(), Error> {
        self.change(|all| all.remove(name).map(drop).ok_or_else(|| Error::UnknownEndpoint(name.to_owned())))
    }

    /// All of them, ordered by name.
    pub fn list(&self) -> Vec<StoredEndpoint> {
        self.all().values().cloned().collect()
    }

    /// One of them.
    pub fn get(&self, name: &str) -> Option<StoredEndpoint> {
        self.all().get(name).cloned()
    }

    /// Tells of each change: the number grows with it.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.shared.revision.subscribe()
    }

    /// Changes a copy, writes it, and only then lets it count.
    fn change<T>(
        &self,
        apply: impl FnOnce(&mut BTreeMap<Arc<str>, StoredEndpoint>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let _one_at_a_time = self.shared.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(_still_ours) = self.shared.lock.upgrade() else {
            return Err(Error::Closed { path: self.shared.folder.clone() });
        };
        let mut all = self.all().clone();
        let result = apply(&mut all)?;
        file::replace(&self.shared.folder, ENDPOINTS, encode(&all).as_bytes())?;
        *self.shared.all.write().unwrap_or_else(PoisonError::into_inner) = all;
        self.shared.revision.send_modify(|revision| *revision += 1);
        Ok(result)
    }

    fn all(&self) -> std::sync::RwLockReadGuard<'_, BTreeMap<Arc<str>, StoredEndpoint>> {
        self.shared.all.read().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Endpoints {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.all().keys()).finish()
    }
}

/// The names of the access points of a folder, also while a hub has it; nothing else is looked at.
///
/// # Errors
/// From the disk, or if the file cannot be understood.
pub fn endpoint_names(folder: &Path) -> Result<Vec<String>, Error> {
    let path = folder.join(ENDPOINTS);
    let Some(text) = file::read_private(&path, FILE_BYTES_MAX)? else { return Ok(Vec::new()) };
    Ok(decode(&path, &text)?.into_keys().map(|name| name.to_string()).collect())
}

/// `endpoints.json`, version 1.
#[derive(serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Stored {
    version: u64,
    endpoints: BTreeMap<String, StoredUrl>,
}

#[derive(serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredUrl {
    /// With the token.
    url: Secret,
    /// RFC 3339.
    added: String,
}

/// What every version has.
#[derive(serde::Deserialize)]
struct Versioned {
    version: u64,
}

fn encode(all: &BTreeMap<Arc<str>, StoredEndpoint>) -> String {
    let stored = |e: &StoredEndpoint| StoredUrl { url: e.url.clone(), added: e.added.clone() };
    let endpoints = all.iter().map(|(name, endpoint)| (name.to_string(), stored(endpoint))).collect();
    let text = serde_json::to_string_pretty(&Stored { version: VERSION, endpoints });
    text.expect("strings and numbers are always JSON") + "\n"
}

fn decode(path: &Path, text: &str) -> Result<BTreeMap<Arc<str>, StoredEndpoint>, Error> {
    // Only where the mistake is: what the reader found there may be a token.
    let at =
        |error: &serde_json::Error| format!("it is no {ENDPOINTS} at line {}, column {}", error.line(), error.column());
    let damaged = |problem: String| Error::Damaged { path: path.to_owned(), problem };
    let Versioned { version } = serde_json::from_str(text).map_err(|error| damaged(at(&error)))?;
    if version > VERSION {
        return Err(Error::Newer { path: path.to_owned(), found: version, known: VERSION });
    }
    if version < VERSION {
        return Err(damaged(format!("there never was a version {version}")));
    }
    let stored: Stored = serde_json::from_str(text).map_err(|error| damaged(at(&error)))?;
    let entry = |(name, stored): (String, StoredUrl)| {
        let name = endpoint_name(&name).map_err(|error| damaged(error.to_string()))?;
        Ok((name.clone(), StoredEndpoint { name, url: stored.url, added: stored.added }))
    };
    stored.endpoints.into_iter().map(entry).collect()
}
