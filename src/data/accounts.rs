//! Service accounts: programs and people who speak MQTT and are no device, each with the topics that it may read and write.
//!
//! A password that the hub made has 128 random bits and is kept like a device's; one that somebody chose is kept with Argon2id
//! ([`Chosen`]). Names are those of devices, too: nobody can be both.

use std::{
    collections::BTreeMap,
    fmt,
    path::Path,
    sync::{Arc, PoisonError},
};

use super::{
    ACCOUNTS, Chosen, Error, Secret,
    chosen::StoredChosen,
    credentials::{Hashed, Shared, new_secret},
    file,
};
use crate::{property::DeviceId, topics::Rights};

/// Most accounts of one hub. One more is refused; a home has three or four.
pub const ACCOUNTS_MAX: usize = 64;

/// The version of `accounts.json` that this program writes and reads.
const VERSION: u64 = 1;

/// The largest `accounts.json`, bytes: [`ACCOUNTS_MAX`] entries with the longest patterns, and room for escapes.
const FILE_BYTES_MAX: u64 = 2 * 1_048_576;

/// One account, as its owner sees it. Nothing of it is secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// Its user name.
    pub name: DeviceId,
    /// What it may read and write.
    pub rights: Arc<Rights>,
    /// Whether its password was chosen by somebody, not made by the hub.
    pub chosen: bool,
}

/// All service accounts. Clones share one set; all methods may be called from any thread.
#[derive(Clone)]
pub struct Accounts {
    shared: Arc<Shared>,
}

/// What is kept of one.
#[derive(Clone)]
pub(super) struct StoredAccount {
    rights: Arc<Rights>,
    proof: Kept,
}

#[derive(Clone)]
enum Kept {
    Made(Hashed),
    Chosen(Arc<Chosen>),
}

/// How it is found out whether a password is an account's.
#[derive(Clone, Debug)]
pub enum Proof {
    /// It was looked at already: whether it is.
    Seen(bool),
    /// By [`Chosen::is_of`], which is slow.
    Slow(Arc<Chosen>),
}

/// Somebody wants in under an account's name.
#[derive(Clone, Debug)]
pub struct Login {
    /// What the account may.
    pub rights: Arc<Rights>,
    /// Whether the password is the account's.
    pub proof: Proof,
}

impl Accounts {
    pub(super) fn of(shared: Arc<Shared>) -> Self {
        Self { shared }
    }

    /// Adds one, with a password that somebody chose, or with one that is made and given back. It counts once this returns.
    /// With a chosen one slow, by design.
    ///
    /// # Errors
    /// [`Error::AccountExists`], [`Error::NameOfDevice`], [`Error::TooManyAccounts`], [`Error::Password`], or from the disk;
    /// then nothing has changed.
    pub fn add(&self, name: &DeviceId, rights: Rights, password: Option<&Secret>) -> Result<Option<Secret>, Error> {
        let (made, proof) = new_proof(password)?;
        self.change(|accounts| {
            if accounts.contains_key(name) {
                return Err(Error::AccountExists(name.clone()));
            }
            if self.shared.devices().contains_key(name) {
                return Err(Error::NameOfDevice(name.clone()));
            }
            if accounts.len() >= ACCOUNTS_MAX {
                return Err(Error::TooManyAccounts);
            }
            accounts.insert(name.clone(), StoredAccount { rights: Arc::new(rights), proof });
            Ok(())
        })?;
        Ok(made)
    }

    /// Gives one another password, as [`Accounts::add`] does; the old one counts no more. Connections that are open are the
    /// caller's to end.
    ///
    /// # Errors
    /// [`Error::UnknownAccount`], [`Error::Password`], or from the disk; then nothing has changed.
    pub fn rotate(&self, name: &DeviceId, password: Option<&Secret>) -> Result<Option<Secret>, Error> {
        let (made, proof) = new_proof(password)?;
        self.change(|accounts| {
            let account = accounts.get_mut(name).ok_or_else(|| Error::UnknownAccount(name.clone()))?;
            account.proof = proof;
            Ok(())
        })?;
        Ok(made)
    }

    /// Lets one read and write other topics than until now. Connections that are open keep what they had, and are the caller's to
    /// end.
    ///
    /// # Errors
    /// [`Error::UnknownAccount`], or from the disk; then nothing has changed.
    pub fn allow(&self, name: &DeviceId, rights: Rights) -> Result<(), Error> {
        self.change(|accounts| {
            let account = accounts.get_mut(name).ok_or_else(|| Error::UnknownAccount(name.clone()))?;
            account.rights = Arc::new(rights);
            Ok(())
        })
    }

    /// Removes one. Connections that are open are the caller's to end.
    ///
    /// # Errors
    /// [`Error::UnknownAccount`], or from the disk; then nothing has changed.
    pub fn remove(&self, name: &DeviceId) -> Result<(), Error> {
        self.change(|accounts| accounts.remove(name).map(drop).ok_or_else(|| Error::UnknownAccount(name.clone())))
    }

    /// All of them, ordered by name.
    pub fn list(&self) -> Vec<Account> {
        self.shared.accounts().iter().map(|(name, account)| shown(name, account)).collect()
    }

    /// One of them.
    pub fn get(&self, name: &DeviceId) -> Option<Account> {
        self.shared.accounts().get(name).map(|account| shown(name, account))
    }

    /// Somebody wants in under this name; `None` if it is no account's. Cheap: what is slow is left to the caller.
    pub fn login(&self, name: &str, password: &[u8]) -> Option<Login> {
        let name = DeviceId::new(name).ok()?;
        let StoredAccount { rights, proof } = self.shared.accounts().get(&name)?.clone();
        let proof = match proof {
            Kept::Made(hashed) => Proof::Seen(hashed.is_of(password)),
            Kept::Chosen(chosen) => Proof::Slow(chosen),
        };
        Some(Login { rights, proof })
    }

    /// Changes a copy, writes it, and only then lets it count.
    fn change<T>(
        &self,
        apply: impl FnOnce(&mut BTreeMap<DeviceId, StoredAccount>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let _writing = self.shared.writing()?;
        let mut accounts = self.shared.accounts().clone();
        let result = apply(&mut accounts)?;
        file::replace(&self.shared.folder, ACCOUNTS, encode(&accounts).as_bytes())?;
        *self.shared.accounts.write().unwrap_or_else(PoisonError::into_inner) = accounts;
        Ok(result)
    }
}

impl fmt::Debug for Accounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.shared.accounts().keys()).finish()
    }
}

fn shown(name: &DeviceId, account: &StoredAccount) -> Account {
    let chosen = matches!(account.proof, Kept::Chosen(_));
    Account { name: name.clone(), rights: account.rights.clone(), chosen }
}

fn new_proof(password: Option<&Secret>) -> Result<(Option<Secret>, Kept), Error> {
    match password {
        Some(password) => Ok((None, Kept::Chosen(Arc::new(Chosen::new(password)?)))),
        None => {
            let (secret, hashed) = new_secret()?;
            Ok((Some(secret), Kept::Made(hashed)))
        }
    }
}

/// `accounts.json`, version 1.
#[derive(serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Stored {
    version: u64,
    accounts: BTreeMap<String, StoredEntry>,
}

#[derive(serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredEntry {
    read: Vec<String>,
    write: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    made: Option<StoredMade>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    argon2id: Option<StoredChosen>,
}

#[derive(serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredMade {
    /// Hex of 16 bytes, hashed before the password.
    salt: String,
    /// Hex of SHA-256 over salt and password.
    sha256: String,
}

/// What every version has.
#[derive(serde::Deserialize)]
struct Versioned {
    version: u64,
}

fn encode(accounts: &BTreeMap<DeviceId, StoredAccount>) -> String {
    let stored = |account: &StoredAccount| {
        let owned = |pattern: &str| pattern.to_owned();
        let (made, argon2id) = match &account.proof {
            Kept::Made(hashed) => {
                let (salt, sha256) = hashed.hex();
                (Some(StoredMade { salt, sha256 }), None)
            }
            Kept::Chosen(chosen) => (None, Some(chosen.stored())),
        };
        let rights = &account.rights;
        StoredEntry {
            read: rights.read().map(owned).collect(),
            write: rights.write().map(owned).collect(),
            made,
            argon2id,
        }
    };
    let accounts = accounts.iter().map(|(name, account)| (name.as_str().to_owned(), stored(account))).collect();
    let text = serde_json::to_string_pretty(&Stored { version: VERSION, accounts });
    text.expect("strings, numbers and lists are always JSON") + "\n"
}

/// The service accounts of a folder whose lock somebody else may hold; none if there is no such file.
///
/// # Errors
/// From the disk, or if the file cannot be understood.
pub fn account_names(folder: &Path) -> Result<Vec<DeviceId>, Error> {
    read(&folder.join(ACCOUNTS)).map(|accounts| accounts.into_keys().collect())
}

/// Reads the file; no accounts if there is none.
pub(super) fn read(path: &Path) -> Result<BTreeMap<DeviceId, StoredAccount>, Error> {
    let Some(text) = file::read_private(path, FILE_BYTES_MAX)? else { return Ok(BTreeMap::new()) };
    let damaged = |problem: String| Error::Damaged { path: path.to_owned(), problem };
    let Versioned { version } = serde_json::from_str(&text).map_err(|error| damaged(error.to_string()))?;
    if version > VERSION {
        return Err(Error::Newer { path: path.to_owned(), found: version, known: VERSION });
    }
    if version < VERSION {
        return Err(damaged(format!("there never was a version {version}")));
    }
    let stored: Stored = serde_json::from_str(&text).map_err(|error| damaged(error.to_string()))?;
    let entry = |(name, stored): (String, StoredEntry)| {
        let name = DeviceId::new(&name).map_err(|error| damaged(error.to_string()))?;
        let rights = Rights::new(&stored.read, &stored.write);
        let rights = rights.map_err(|error| damaged(format!("{name}: {error}")))?;
        let proof = match (&stored.made, &stored.argon2id) {
            (Some(made), None) => Hashed::from_hex(&made.salt, &made.sha256).map(Kept::Made),
            (None, Some(chosen)) => Chosen::from_stored(chosen).map(|chosen| Kept::Chosen(Arc::new(chosen))),
            (None, None) | (Some(_), Some(_)) => None,
        };
        let proof = proof.ok_or_else(|| damaged(format!("the password's hash of {name} is none")))?;
        Ok((name, StoredAccount { rights: Arc::new(rights), proof }))
    };
    stored.accounts.into_iter().map(entry).collect()
}
