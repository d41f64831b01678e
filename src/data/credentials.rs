//! Who may connect as which device: one random password a device, of which only a salted hash is kept.
//!
//! A password has 128 random bits, so one round of SHA-256 is enough: there is nothing to guess that a slow hash would
//! make slower, and a board that reconnects a hundred times an hour costs the hub nothing.

use std::{
    collections::BTreeMap,
    fmt,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, Weak},
};

use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

use super::{
    ACCOUNTS, DEVICES, Error, Lock,
    accounts::{self, StoredAccount},
    file,
};
use crate::property::DeviceId;

/// Most devices of one hub. One more is refused; each is one actor and one entry here, some kilobytes.
pub const DEVICES_MAX: usize = 16_384;

/// The version of `devices.json` that this program writes and reads.
const VERSION: u64 = 1;

/// The largest `devices.json`, bytes: [`DEVICES_MAX`] entries of at most 180 bytes.
const FILE_BYTES_MAX: u64 = 4 * 1_048_576;

/// Random bytes in a password; written as twice as many hex digits, which every board can store.
const SECRET_BYTES: usize = 16;

/// Longest password that is hashed, bytes; ours have 32. A longer one is wrong without a look.
pub(super) const PASSWORD_BYTES_MAX: usize = 256;

/// A password or a token: [`fmt::Debug`] prints nothing of it, and there is no other way to print one by mistake.
#[derive(Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(transparent)]
pub struct Secret(String);

impl Secret {
    /// Takes a text as a secret.
    pub fn new(text: String) -> Self {
        Self(text)
    }

    /// The password itself: to be shown to the owner, never to be logged.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

/// The credentials of all devices. Clones share one set; all methods may be called from any thread.
#[derive(Clone)]
pub struct Credentials {
    shared: Arc<Shared>,
}

/// Devices and service accounts, which have one name space: a name is a user name, and says who somebody is.
pub(super) struct Shared {
    pub(super) folder: PathBuf,
    lock: Weak<Lock>,
    /// Held over a change on the disk, so that a slow card makes changes wait and nobody who connects.
    writing: Mutex<()>,
    devices: RwLock<BTreeMap<DeviceId, Hashed>>,
    pub(super) accounts: RwLock<BTreeMap<DeviceId, StoredAccount>>,
}

impl Shared {
    /// Loads both files of a folder.
    pub(super) fn load(lock: Weak<Lock>, folder: &Path) -> Result<Arc<Self>, Error> {
        let path = folder.join(DEVICES);
        let devices = match file::read_private(&path, FILE_BYTES_MAX)? {
            None => BTreeMap::new(),
            Some(text) => decode(&path, &text)?,
        };
        let accounts = accounts::read(&folder.join(ACCOUNTS))?;
        if let Some(both) = accounts.keys().find(|name| devices.contains_key(name)) {
            let problem = format!("{both} is a device, too; one of them must go");
            return Err(Error::Damaged { path: folder.join(ACCOUNTS), problem });
        }
        let (devices, accounts) = (RwLock::new(devices), RwLock::new(accounts));
        Ok(Arc::new(Self { folder: folder.to_owned(), lock, writing: Mutex::new(()), devices, accounts }))
    }

    /// Held by whoever changes either, as long as the folder is this process's.
    pub(super) fn writing(&self) -> Result<Writing<'_>, Error> {
        let one_at_a_time = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(still_ours) = self.lock.upgrade() else {
            return Err(Error::Closed { path: self.folder.clone() });
        };
        Ok(Writing { _one_at_a_time: one_at_a_time, _still_ours: still_ours })
    }

    pub(super) fn devices(&self) -> std::sync::RwLockReadGuard<'_, BTreeMap<DeviceId, Hashed>> {
        self.devices.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn accounts(&self) -> std::sync::RwLockReadGuard<'_, BTreeMap<DeviceId, StoredAccount>> {
        self.accounts.read().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The right to change a file of the folder.
pub(super) struct Writing<'a> {
    _one_at_a_time: MutexGuard<'a, ()>,
    _still_ours: Arc<Lock>,
}

/// What is kept of a password.
#[derive(Clone, Copy)]
pub(super) struct Hashed {
    salt: [u8; SECRET_BYTES],
    sha256: [u8; 32],
}

impl Hashed {
    /// Whether it is that of this password; constant time.
    pub(super) fn is_of(&self, password: &[u8]) -> bool {
        hash(&self.salt, password).ct_eq(&self.sha256).into()
    }

    /// Salt and hash as they are stored.
    pub(super) fn hex(&self) -> (String, String) {
        (file::hex(&self.salt), file::hex(&self.sha256))
    }

    /// From what is stored; `None` if that is not hex of the right length.
    pub(super) fn from_hex(salt: &str, sha256: &str) -> Option<Self> {
        let (salt, sha256) = file::unhex(salt).zip(file::unhex(sha256))?;
        Some(Self { salt, sha256 })
    }
}

impl Credentials {
    pub(super) fn of(shared: Arc<Shared>) -> Self {
        Self { shared }
    }

    /// Gives a new device its password. It counts once this returns.
    ///
    /// # Errors
    /// [`Error::DeviceExists`], [`Error::TooManyDevices`], or from the disk; then nothing has changed.
    pub fn add(&self, device: &DeviceId) -> Result<Secret, Error> {
        self.change(|devices| self.added(devices, device))
    }

    /// Gives several new devices their passwords, in one change of the file; all of them or none.
    ///
    /// # Errors
    /// As [`Credentials::add`].
    pub fn add_all(&self, new: &[DeviceId]) -> Result<Vec<Secret>, Error> {
        self.change(|devices| new.iter().map(|device| self.added(devices, device)).collect())
    }

    /// Gives a device another password; the old one counts no more. A connection that is open stays open, it is up to
    /// the caller to end it.
    ///
    /// # Errors
    /// [`Error::UnknownDevice`], or from the disk; then nothing has changed.
    pub fn rotate(&self, device: &DeviceId) -> Result<Secret, Error> {
        self.change(|devices| {
            let entry = devices.get_mut(device).ok_or_else(|| Error::UnknownDevice(device.clone()))?;
            let (secret, hashed) = new_secret()?;
            *entry = hashed;
            Ok(secret)
        })
    }

    /// Takes a device's password away. As with [`Credentials::rotate`], an open connection is the caller's to end.
    ///
    /// # Errors
    /// [`Error::UnknownDevice`], or from the disk; then nothing has changed.
    pub fn remove(&self, device: &DeviceId) -> Result<(), Error> {
        self.change(|devices| devices.remove(device).map(drop).ok_or_else(|| Error::UnknownDevice(device.clone())))
    }

    /// The devices that have a password, ordered by id.
    pub fn list(&self) -> Vec<DeviceId> {
        self.devices().keys().cloned().collect()
    }

    /// Whether a device has a password.
    pub fn contains(&self, device: &DeviceId) -> bool {
        self.devices().contains_key(device)
    }

    /// Whether this password is that user's. Compared in constant time; a user who is not known costs the same.
    pub fn verify(&self, user: &str, password: &[u8]) -> bool {
        let known = DeviceId::new(user).ok().and_then(|device| self.devices().get(&device).copied());
        let hashed = known.unwrap_or(Hashed { salt: [0; SECRET_BYTES], sha256: [0; 32] });
        if password.len() > PASSWORD_BYTES_MAX {
            return false;
        }
        hashed.is_of(password) && known.is_some()
    }

    /// Changes a copy, writes it, and only then lets it count.
    fn change<T>(&self, apply: impl FnOnce(&mut BTreeMap<DeviceId, Hashed>) -> Result<T, Error>) -> Result<T, Error> {
        let _writing = self.shared.writing()?;
        let mut devices = self.devices().clone();
        let result = apply(&mut devices)?;
        file::replace(&self.shared.folder, DEVICES, encode(&devices).as_bytes())?;
        *self.shared.devices.write().unwrap_or_else(PoisonError::into_inner) = devices;
        Ok(result)
    }

    fn devices(&self) -> std::sync::RwLockReadGuard<'_, BTreeMap<DeviceId, Hashed>> {
        self.shared.devices()
    }

    /// Adds one device to a set.
    fn added(&self, devices: &mut BTreeMap<DeviceId, Hashed>, device: &DeviceId) -> Result<Secret, Error> {
        if devices.contains_key(device) {
            return Err(Error::DeviceExists(device.clone()));
        }
        if self.shared.accounts().contains_key(device) {
            return Err(Error::NameOfAccount(device.clone()));
        }
        if devices.len() >= DEVICES_MAX {
            return Err(Error::TooManyDevices);
        }
        let (secret, hashed) = new_secret()?;
        devices.insert(device.clone(), hashed);
        Ok(secret)
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Credentials of {} devices", self.devices().len())
    }
}

/// The devices that have a password in a folder whose lock somebody else may hold; `None`: there is no such file.
///
/// # Errors
/// From the disk, or if the file cannot be understood.
pub fn device_names(folder: &Path) -> Result<Option<Vec<DeviceId>>, Error> {
    let path = folder.join(DEVICES);
    let Some(text) = file::read_private(&path, FILE_BYTES_MAX)? else { return Ok(None) };
    Ok(Some(decode(&path, &text)?.into_keys().collect()))
}

/// A new secret with what is kept of it.
pub(super) fn new_secret() -> Result<(Secret, Hashed), Error> {
    let secret = file::hex(&file::random::<SECRET_BYTES>()?);
    let salt = file::random()?;
    let sha256 = hash(&salt, secret.as_bytes());
    Ok((Secret(secret), Hashed { salt, sha256 }))
}

fn hash(salt: &[u8], password: &[u8]) -> [u8; 32] {
    Sha256::new().chain_update(salt).chain_update(password).finalize().into()
}

/// `devices.json`, version 1.
#[derive(serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Stored {
    version: u64,
    devices: BTreeMap<String, StoredDevice>,
}

#[derive(serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredDevice {
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

fn encode(devices: &BTreeMap<DeviceId, Hashed>) -> String {
    let stored = |hashed: &Hashed| {
        let (salt, sha256) = hashed.hex();
        StoredDevice { salt, sha256 }
    };
    let devices = devices.iter().map(|(id, hashed)| (id.as_str().to_owned(), stored(hashed))).collect();
    let text = serde_json::to_string_pretty(&Stored { version: VERSION, devices });
    text.expect("strings and numbers are always JSON") + "\n"
}

fn decode(path: &Path, text: &str) -> Result<BTreeMap<DeviceId, Hashed>, Error> {
    let damaged = |problem: String| Error::Damaged { path: path.to_owned(), problem };
    let Versioned { version } = serde_json::from_str(text).map_err(|error| damaged(error.to_string()))?;
    if version > VERSION {
        return Err(Error::Newer { path: path.to_owned(), found: version, known: VERSION });
    }
    if version < VERSION {
        return Err(damaged(format!("there never was a version {version}")));
    }
    let stored: Stored = serde_json::from_str(text).map_err(|error| damaged(error.to_string()))?;
    let entry = |(name, device): (String, StoredDevice)| {
        let id = DeviceId::new(&name).map_err(|error| damaged(error.to_string()))?;
        let hashed = Hashed::from_hex(&device.salt, &device.sha256);
        let hashed = hashed.ok_or_else(|| damaged(format!("salt or sha256 of {id} is not hex of its length")))?;
        Ok((id, hashed))
    };
    stored.devices.into_iter().map(entry).collect()
}
