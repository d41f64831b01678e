//! The data folder: what a hub must know again after a restart, held by one process at a time.
//!
//! | file | what | written |
//! |---|---|---|
//! | `hub.lock` | locked by the process that uses the folder; holds its id | at each start |
//! | `hub.id` | this hub's name in a welcome, random, for ever | once |
//! | `epoch` | a number that grows with each start of the hub | at each start |
//! | `devices.json` | credentials, mode 0600: salted hashes, no secrets | by `device add`, `rotate`, `remove` |
//! | `accounts.json` | service accounts with what they may, mode 0600: salted hashes and Argon2id, no secrets | by `account add`, `allow`, `rotate`, `remove` |
//! | `tokens.json` | bearer tokens of HTTP clients with what they may, mode 0600: salted hashes | by `token add`, `revoke` |
//! | `endpoints.json` | access points, mode 0600: their URLs with tokens, which are secrets | by `endpoint add`, `remove`, `import` |
//! | `ca.pem`, `ca.key` | the home's own authority, which devices are given to trust; the key mode 0600 | by `tls make`, once |
//! | `hub.pem`, `hub.key` | the door's certificate for TLS, signed by it; the key mode 0600 | by `tls make` |
//! | `endpoints.open` | there while sockets to access points may be open: a run that was killed leaves it behind | at each start, removed by a stop |
//! | `audit.jsonl` | what each call was, mode 0600 ([`crate::audit`], which appends to it) | while it runs |
//! | `hub.json` | where the running hub listens | while it runs |
//! | `hub.sock` | the running hub's control socket ([`crate::control`]) | while it runs |
//!
//! Files of mode 0600 are read only while nobody else has a right on them: what others could read or change lets nobody in.
//! Every file but the audit is replaced whole (written beside, synced, renamed), so a power cut leaves the old one or the new one. A
//! file that cannot be understood is an error that names it, never a silent new beginning: a hub that forgot its
//! devices would look like one that lost them.
//!
//! Knows nothing of sockets or twins; blocks on the disk, so asynchronous callers use `spawn_blocking`.

mod accounts;
mod authority;
mod chosen;
mod credentials;
mod endpoints;
mod file;
mod place;
mod sockets;
mod tokens;

use std::{
    fs::{DirBuilder, File, TryLockError},
    io::{self, Seek as _, Write as _},
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    os::unix::fs::DirBuilderExt as _,
    path::{Path, PathBuf},
    sync::Arc,
};

pub use self::{
    accounts::{ACCOUNTS_MAX, Account, Accounts, Login, Proof, account_names},
    authority::{Authority, AuthorityError, Made, NAMES_MAX, authority, make as make_certificate},
    chosen::{BadPassword, CHOSEN_CHARS_MIN, Chosen},
    credentials::{Credentials, DEVICES_MAX, Secret, device_names},
    endpoints::{
        BadEndpointName, ENDPOINTS_MAX, Endpoints, StoredEndpoint, URL_BYTES_MAX, endpoint_name, endpoint_names,
    },
    place::folder,
    tokens::{TOKENS_MAX, Token, Tokens, token_names},
};
use crate::property::DeviceId;

const LOCK: &str = "hub.lock";
const HUB_ID: &str = "hub.id";
/// The file with the epoch.
pub(crate) const EPOCH: &str = "epoch";
/// The small files without which a hub is another one: what a backup takes along beside the journal.
pub(crate) const KEPT: &[&str] =
    &[HUB_ID, EPOCH, DEVICES, ACCOUNTS, ENDPOINTS, TOKENS, TLS_CA_CERT, TLS_CA_KEY, TLS_CERT, TLS_KEY];
const HUB_JSON: &str = "hub.json";
/// There while sockets to access points may be open.
const SOCKETS: &str = "endpoints.open";
const DEVICES: &str = "devices.json";
const ACCOUNTS: &str = "accounts.json";
const ENDPOINTS: &str = "endpoints.json";
const TOKENS: &str = "tokens.json";
/// The certificate that `truetwin tls make` made for the door, and its key.
pub const TLS_CERT: &str = "hub.pem";
/// Its private key.
pub const TLS_KEY: &str = "hub.key";
/// The authority that signed it, which devices are given to trust.
pub const TLS_CA_CERT: &str = "ca.pem";
/// The authority's private key.
pub const TLS_CA_KEY: &str = "ca.key";

/// What is tried when the folder is made, for whoever tells a wrong path from a disk that is ill.
pub const MAKE_FOLDER: &str = "make the folder";

/// The largest of the small files that is read, bytes: ten times what any of them needs.
const SMALL_BYTES_MAX: u64 = 1_024;

/// Random bytes in a hub's id; written as twice as many hex digits, within the 16 characters of the wire protocol.
const HUB_ID_BYTES: usize = 6;

/// What went wrong with the data folder. The text names the file.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is nowhere to put it.
    #[error("no place for the data folder: give --data DIR, or set TRUETWIN_DATA, XDG_DATA_HOME or HOME")]
    NoPlace,
    /// The disk said no.
    #[error("cannot {doing} {}", path.display())]
    Io {
        /// What was tried, a verb.
        doing: &'static str,
        /// With which file.
        path: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// Others may read what is secret.
    #[error("others may read {path} (mode {mode:04o}); mend it with: chmod 600 {path}", path = path.display())]
    Exposed {
        /// The file.
        path: PathBuf,
        /// Its mode.
        mode: u32,
    },
    /// A folder has the name of a file.
    #[error("{} is a folder, where a hub keeps a file of that name; move it away", path.display())]
    InTheWay {
        /// The folder.
        path: PathBuf,
    },
    /// Another process has it.
    #[error(
        "the data folder {} is in use{}; stop that hub, or give another folder with --data",
        path.display(),
        pid.map(|pid| format!(" by process {pid}")).unwrap_or_default()
    )]
    Taken {
        /// The folder.
        path: PathBuf,
        /// The process, if it has written its id yet.
        pid: Option<u32>,
    },
    /// A file that is not as this program writes it.
    #[error("{} is damaged: {problem}; restore it from a backup, nothing was changed", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong in it.
        problem: String,
    },
    /// A file of a later version.
    #[error("{} has version {found}, this program knows {known}; use a newer truetwin, nothing was changed", path.display())]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: u64,
        /// The version that is known.
        known: u64,
    },
    /// No hub runs on this folder.
    #[error("no hub is running on the data folder {0}; start one with: truetwin serve --data {0}", path.display())]
    NoHub {
        /// The folder.
        path: PathBuf,
    },
    /// The folder was given back while something still wanted to write.
    #[error("the data folder {} is closed: the hub is stopping", path.display())]
    Closed {
        /// The folder.
        path: PathBuf,
    },
    /// A device that has credentials already.
    #[error("{0} is there already; give it a new password with: truetwin device rotate {0}")]
    DeviceExists(DeviceId),
    /// A device without credentials.
    #[error("no device {0}; truetwin device list shows those there are")]
    UnknownDevice(DeviceId),
    /// No more devices.
    #[error("there are {DEVICES_MAX} devices already, the most that one hub takes")]
    TooManyDevices,
    /// A device is to get the name of an account.
    #[error("{0} is a service account; take another name, or remove that first with: truetwin account remove {0}")]
    NameOfAccount(DeviceId),
    /// An account is to get the name of a device.
    #[error("{0} is a device; take another name, or remove that first with: truetwin device remove {0}")]
    NameOfDevice(DeviceId),
    /// A service account that is there already.
    #[error("there is an account {0} already; give it a new password with: truetwin account rotate {0}")]
    AccountExists(DeviceId),
    /// No service account of that name.
    #[error("no account {0}; truetwin account list shows those there are")]
    UnknownAccount(DeviceId),
    /// No more service accounts.
    #[error("there are {ACCOUNTS_MAX} accounts already, the most that one hub takes")]
    TooManyAccounts,
    /// A password that somebody chose and that cannot be taken.
    #[error(transparent)]
    Password(#[from] BadPassword),
    /// An access point of that name is there.
    #[error("there is an endpoint {0} already; remove it first with: truetwin endpoint remove {0}")]
    EndpointExists(String),
    /// No access point of that name.
    #[error("no endpoint {0}; truetwin endpoint list shows those there are")]
    UnknownEndpoint(String),
    /// No more access points.
    #[error("there are {ENDPOINTS_MAX} endpoints already, the most that one hub takes")]
    TooManyEndpoints,
    /// A URL that is none.
    #[error("the URL has more than {URL_BYTES_MAX} bytes")]
    UrlTooLong,
    /// A token of that name is there.
    #[error("there is a token {0} already; take another name, or take it back first with: truetwin token revoke {0}")]
    TokenExists(String),
    /// No token of that name.
    #[error("no token {0}; truetwin token list shows those there are")]
    UnknownToken(String),
    /// No more tokens.
    #[error("there are {TOKENS_MAX} tokens already, the most that one hub takes")]
    TooManyTokens,
    /// The operating system gives no random numbers.
    #[error("the system gives no random numbers: {0}")]
    NoRandomness(getrandom::Error),
}

/// An open data folder; no other process can open it until this is dropped.
#[derive(Debug)]
pub struct DataFolder {
    lock: Arc<Lock>,
    hub_id: String,
    epoch: u64,
    credentials: Credentials,
    accounts: Accounts,
    endpoints: Endpoints,
    tokens: Tokens,
}

/// The proof that this process has the folder. [`Credentials`] hold it weakly, so that a forgotten clone in some task
/// neither keeps the folder taken nor writes to it once it is somebody else's.
#[derive(Debug)]
struct Lock {
    folder: PathBuf,
    _file: File,
}

impl DataFolder {
    /// Opens the folder for a hub that starts: makes it if it is not there (mode 0700), locks it, and begins a new
    /// epoch.
    ///
    /// # Errors
    /// [`Error::Taken`] if another process has it; [`Error::Damaged`] or [`Error::Newer`] if a file in it cannot be
    /// understood; [`Error::Io`] from the disk.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let mut folder = Self::open_offline(path)?;
        folder.epoch += 1;
        file::replace(path, EPOCH, format!("{}\n", folder.epoch).as_bytes())?;
        Ok(folder)
    }

    /// Opens the folder for a command that changes something while no hub runs: as [`DataFolder::open`], in the old
    /// epoch.
    ///
    /// # Errors
    /// As [`DataFolder::open`].
    pub fn open_offline(path: &Path) -> Result<Self, Error> {
        let make = DirBuilder::new().recursive(true).mode(0o700).create(path);
        make.map_err(|source| Error::Io { doing: MAKE_FOLDER, path: path.to_owned(), source })?;
        in_the_way(path).next().map_or(Ok(()), Err)?;
        let lock = Arc::new(lock(path)?);
        // A hub that was killed left it behind, and nobody listens there any more.
        file::remove(path, HUB_JSON)?;
        let epoch = read_epoch(path)?;
        let hub_id = read_or_make_hub_id(path, epoch)?;
        let users = credentials::Shared::load(Arc::downgrade(&lock), path)?;
        let (credentials, accounts) = (Credentials::of(users.clone()), Accounts::of(users));
        let endpoints = Endpoints::load(Arc::downgrade(&lock), path.join(ENDPOINTS))?;
        let tokens = Tokens::load(Arc::downgrade(&lock), path.join(TOKENS))?;
        Ok(Self { lock, hub_id, epoch: epoch.unwrap_or(0), credentials, accounts, endpoints, tokens })
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.lock.folder
    }

    /// The hub's name in a welcome: 12 hex digits, random, the same for ever.
    pub fn hub_id(&self) -> &str {
        &self.hub_id
    }

    /// The number of this start, from 1; greater than at any earlier start of the same hub. A device takes no welcome
    /// of an older one (wire protocol, *Greeting*).
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// The credentials; clones share one set.
    pub fn credentials(&self) -> Credentials {
        self.credentials.clone()
    }

    /// The service accounts; clones share one set.
    pub fn accounts(&self) -> Accounts {
        self.accounts.clone()
    }

    /// The access points that were added by command; clones share one set.
    pub fn endpoints(&self) -> Endpoints {
        self.endpoints.clone()
    }

    /// The bearer tokens; clones share one set.
    pub fn tokens(&self) -> Tokens {
        self.tokens.clone()
    }

    /// Says in `hub.json` where this hub listens, and how it takes TLS (`mqtt.tls`), until the folder is dropped. An address that stands for all (0.0.0.0)
    /// is written as loopback, where a program on this machine reaches it.
    ///
    /// # Errors
    /// [`Error::Io`] from the disk.
    pub fn write_hub_json(&self, mqtt: SocketAddr, http: SocketAddr, tls: &str, pid: u32) -> Result<(), Error> {
        let (mqtt, http) = (reachable(mqtt), reachable(http));
        let hub = HubJson { mqtt: mqtt.to_string(), http: format!("http://{http}"), tls: tls.to_owned(), pid };
        let text = serde_json::to_vec(&hub).expect("three strings and a number are always JSON");
        file::replace(self.path(), HUB_JSON, &text)
    }
}

impl Drop for DataFolder {
    fn drop(&mut self) {
        if let Err(error) = file::remove(self.path(), HUB_JSON) {
            tracing::warn!(%error, "hub.json stays behind");
        }
    }
}

/// Where the running hub listens.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct HubJson {
    /// Address and port for devices.
    pub mqtt: String,
    /// The base of the URLs, without a slash at the end.
    pub http: String,
    /// `mqtt.tls`: `off`, `both` or `only`; empty from a version that did not say it.
    #[serde(default)]
    pub tls: String,
    /// The hub's process.
    pub pid: u32,
}

/// Reads where the hub on this folder listens.
///
/// # Errors
/// [`Error::NoHub`] if none runs there; [`Error::Damaged`] if the file is not as a hub writes it.
pub fn read_hub_json(folder: &Path) -> Result<HubJson, Error> {
    let path = folder.join(HUB_JSON);
    let text = file::read(&path, SMALL_BYTES_MAX)?.ok_or_else(|| Error::NoHub { path: folder.to_owned() })?;
    serde_json::from_str(&text).map_err(|error| Error::Damaged { path, problem: error.to_string() })
}

fn lock(folder: &Path) -> Result<Lock, Error> {
    let path = folder.join(LOCK);
    let io = |doing| {
        let path = path.clone();
        move |source| Error::Io { doing, path, source }
    };
    let mut file = file::for_owner().read(true).truncate(false).open(&path).map_err(io("open"))?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            let pid = file::read(&path, SMALL_BYTES_MAX)?.and_then(|text| text.trim().parse().ok());
            return Err(Error::Taken { path: folder.to_owned(), pid });
        }
        Err(TryLockError::Error(source)) => return Err(io("lock")(source)),
    }
    // In place, not replaced: the lock is on this very file.
    file.set_len(0).and_then(|()| file.rewind()).map_err(io("write"))?;
    file.write_all(format!("{}\n", std::process::id()).as_bytes()).map_err(io("write"))?;
    Ok(Lock { folder: folder.to_owned(), _file: file })
}

fn read_epoch(folder: &Path) -> Result<Option<u64>, Error> {
    let path = folder.join(EPOCH);
    let Some(text) = file::read(&path, SMALL_BYTES_MAX)? else { return Ok(None) };
    let parsed = text.trim().parse().ok().filter(|epoch| *epoch < u64::MAX);
    parsed.map(Some).ok_or_else(|| Error::Damaged { path, problem: "it holds no whole number".to_owned() })
}

/// Files that a hub could not begin with because folders have their names.
fn in_the_way(folder: &Path) -> impl Iterator<Item = Error> {
    let paths = [LOCK, HUB_JSON, SOCKETS, EPOCH, HUB_ID].map(|name| folder.join(name));
    paths.into_iter().filter(|path| path.is_dir()).map(|path| Error::InTheWay { path })
}

/// What keeps a hub from beginning with the files of this folder that are about itself, as far as it can be told without changing
/// anything; the folder may be a running hub's.
pub fn mistakes(folder: &Path) -> Vec<Error> {
    let mut all: Vec<Error> = in_the_way(folder).collect();
    if !all.is_empty() {
        return all;
    }
    // Before the epoch: a hub that begins beside this writes the epoch first.
    let has_id = folder.join(HUB_ID).exists();
    let epoch = read_epoch(folder).unwrap_or_else(|error| {
        all.push(error);
        Some(0)
    });
    all.extend(has_id.then(|| read_hub_id(folder, epoch).err()).flatten());
    all
}

/// The epoch is written before the id, so an id without an epoch is a loss: devices that know this hub would take no
/// welcome of its new first epoch.
fn read_hub_id(folder: &Path, epoch: Option<u64>) -> Result<Option<String>, Error> {
    let path = folder.join(HUB_ID);
    let Some(text) = file::read(&path, SMALL_BYTES_MAX)? else { return Ok(None) };
    let id = text.trim();
    if id.len() != 2 * HUB_ID_BYTES || !id.bytes().all(|b| b.is_ascii_hexdigit()) {
        return Err(Error::Damaged { path, problem: format!("it does not hold {} hex digits", 2 * HUB_ID_BYTES) });
    }
    if epoch.is_none() {
        let problem = format!("there is none beside {HUB_ID} (without both, the hub begins anew)");
        return Err(Error::Damaged { path: folder.join(EPOCH), problem });
    }
    Ok(Some(id.to_owned()))
}

fn read_or_make_hub_id(folder: &Path, epoch: Option<u64>) -> Result<String, Error> {
    if let Some(id) = read_hub_id(folder, epoch)? {
        return Ok(id);
    }
    if epoch.is_none() {
        file::replace(folder, EPOCH, b"0\n")?;
    }
    let id = file::hex(&file::random::<HUB_ID_BYTES>()?);
    file::replace(folder, HUB_ID, format!("{id}\n").as_bytes())?;
    Ok(id)
}

fn reachable(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip @ (IpAddr::V4(_) | IpAddr::V6(_)) => ip,
    };
    SocketAddr::new(ip, address.port())
}
