//! The door's certificate: read from its files, and read again once they have changed.
//!
//! A change is looked for at each TLS handshake, off the runtime: whoever renews the certificate replaces the files and is done.
//! What cannot be used (half a change, a key of another certificate) is said and counted, and the one in force stays.

mod expiry;

use std::{
    fs::File,
    io::{self, Read as _},
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use rustls::{
    ServerConfig,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _},
    server::NoServerSessionStorage,
};

use super::{
    core::lock,
    counters::{Totals, count},
};
use crate::private::{self, Refused};

/// The largest file that is read, bytes: a chain of a dozen certificates.
const FILE_BYTES_MAX: u64 = 65_536;

/// Files that changed and could not be read are tried again no sooner than this: file descriptors or a mount may be back, and a
/// flood of handshakes is no flood of tries.
const AGAIN_AFTER: Duration = Duration::from_secs(1);

/// A certificate that ends within this is warned about: time enough for a weekend, and for a holiday.
const WARN_BEFORE: Duration = Duration::from_secs(30 * 24 * 3600);

/// Where the certificate is that the door shows, and who has to look at it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tls {
    /// The certificate in PEM, its own first, then what leads to its authority.
    pub cert_file: PathBuf,
    /// Its private key in PEM (PKCS #8, PKCS #1 or SEC 1), in a file of its owner's alone.
    pub key_file: PathBuf,
    /// Whether the configuration names the files; else they are those that `truetwin tls make` makes.
    pub configured: bool,
    /// Whether clients may come without TLS, too, on the same port.
    pub plain: bool,
}

/// Why a certificate cannot be used. Never quotes the files.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read.
    #[error("cannot read the TLS {what} {} ({})", path.display(), remedy(*configured))]
    Unreadable {
        /// `certificate` or `key`.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// Whether the configuration names it.
        configured: bool,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// Others may read the key.
    #[error("others may read the TLS key {path} (mode {mode:04o}); mend it with: chmod 600 {path}", path = path.display())]
    Exposed {
        /// The file.
        path: PathBuf,
        /// Its mode.
        mode: u32,
    },
    /// A file holds something else.
    #[error("{} holds no {what} in PEM of at most {FILE_BYTES_MAX} bytes", path.display())]
    NotPem {
        /// `certificate` or `private key`.
        what: &'static str,
        /// The file.
        path: PathBuf,
    },
    /// The two do not serve.
    #[error("the TLS certificate {} cannot be used with the key {}: {problem}", cert.display(), key.display())]
    Unusable {
        /// The certificate's file.
        cert: PathBuf,
        /// The key's file.
        key: PathBuf,
        /// What rustls says.
        problem: rustls::Error,
    },
}

/// What helps when a file is not there. `truetwin tls make` writes to the data folder only.
fn remedy(configured: bool) -> &'static str {
    if configured {
        "mqtt.tls_cert_file and mqtt.tls_key_file name it: put it there, or leave both out and run truetwin tls make"
    } else {
        "truetwin tls make makes one"
    }
}

impl Tls {
    /// Whether the files can be used, and when the certificate ends, seconds since 1970 (`None` if it does not say so in a way
    /// that is understood). Blocks on the disk.
    ///
    /// # Errors
    /// [`TlsError`].
    pub fn check(&self) -> Result<Option<u64>, TlsError> {
        self.load().map(|loaded| loaded.expires_s)
    }

    fn load(&self) -> Result<Loaded, TlsError> {
        let stamp = self.stamp(); // before the files are read: a change in between is seen by the next look
        let not_pem = |what, path: &Path| TlsError::NotPem { what, path: path.to_owned() };
        let text = read("certificate", &self.cert_file, self.configured)?;
        let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
        let chain = chain.ok().filter(|chain| !chain.is_empty());
        let chain = chain.ok_or_else(|| not_pem("certificate", &self.cert_file))?;
        let text = read_key(&self.key_file, self.configured)?;
        let key = PrivateKeyDer::from_pem_slice(&text).map_err(|_| not_pem("private key", &self.key_file))?;
        let expires_s = expiry::not_after_s(&chain[0]);
        let (cert, key_file) = (self.cert_file.clone(), self.key_file.clone());
        let unusable = |problem| TlsError::Unusable { cert, key: key_file, problem };
        let config = server(chain, key).map_err(unusable)?;
        Ok(Loaded { config: Arc::new(config), stamp, expires_s })
    }

    /// What changes when a file does; `None` for one that cannot be looked at.
    fn stamp(&self) -> Stamp {
        let of = |path: &Path| {
            let found = path.metadata().ok()?;
            Some((found.modified().ok()?, found.ino(), found.len(), found.mode()))
        };
        [of(&self.cert_file), of(&self.key_file)]
    }
}

type Stamp = [Option<(SystemTime, u64, u64, u32)>; 2];

struct Loaded {
    config: Arc<ServerConfig>,
    stamp: Stamp,
    expires_s: Option<u64>,
}

/// TLS 1.2 and 1.3. Clients resume by tickets, which cost the hub no memory; a board spares the second that its processor needs
/// for the whole handshake.
fn server(chain: Vec<CertificateDer<'static>>, key: PrivateKeyDer<'static>) -> Result<ServerConfig, rustls::Error> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let versions = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    let mut config = versions.with_no_client_auth().with_single_cert(chain, key)?;
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.ticketer = rustls::crypto::ring::Ticketer::new()?;
    config.send_tls13_tickets = 1;
    Ok(config)
}

fn read(what: &'static str, path: &Path, configured: bool) -> Result<Vec<u8>, TlsError> {
    let opened = File::open(path).and_then(|file| contents(&file));
    opened.map_err(|source| TlsError::Unreadable { what, path: path.to_owned(), configured, source })
}

fn read_key(path: &Path, configured: bool) -> Result<Vec<u8>, TlsError> {
    let unreadable = |source| TlsError::Unreadable { what: "key", path: path.to_owned(), configured, source };
    let file = private::open(path).map_err(|refused| match refused {
        Refused::Io(source) => unreadable(source),
        Refused::Exposed { mode } => TlsError::Exposed { path: path.to_owned(), mode },
    })?;
    contents(&file).map_err(unreadable)
}

/// A file that is too long is cut off, and then no PEM.
fn contents(file: &File) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(FILE_BYTES_MAX).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The certificate in force.
pub(super) struct Certificate {
    files: Tls,
    loaded: Mutex<Loaded>,
    /// Files as they are now that could not be read, and when that was tried last.
    unread: Mutex<Option<(Stamp, Instant)>>,
    /// Held by the one handshake that looks; the others go on with what is in force.
    looking: tokio::sync::Mutex<()>,
}

impl Certificate {
    /// Reads it. Blocks on the disk.
    ///
    /// # Errors
    /// [`TlsError`].
    pub(super) fn read(files: Tls) -> Result<Self, TlsError> {
        let loaded = files.load()?;
        warn_of_end(&files, loaded.expires_s);
        Ok(Self { files, loaded: Mutex::new(loaded), unread: Mutex::default(), looking: tokio::sync::Mutex::default() })
    }

    /// The one to show now, after a look at the files.
    pub(super) async fn current(self: &Arc<Self>, totals: &Totals) -> Arc<ServerConfig> {
        if let Ok(_only_one_looks) = self.looking.try_lock() {
            let this = self.clone();
            match tokio::task::spawn_blocking(move || this.look(Instant::now(), Tls::load)).await {
                Ok(Ok(true)) => {
                    count(&totals.tls_reloads);
                    tracing::info!(file = %self.files.cert_file.display(), "the TLS certificate was read anew");
                }
                Ok(Err(error)) => {
                    count(&totals.tls_reloads_failed);
                    let error: &dyn std::error::Error = &error;
                    tracing::error!(error, "the TLS certificate was changed and cannot be used; the one before stays");
                }
                Ok(Ok(false)) | Err(_) => {}
            }
        }
        lock(&self.loaded).config.clone()
    }

    /// When the one in force ends, seconds since 1970; 0 if it is not known.
    pub(super) fn expires_s(&self) -> u64 {
        lock(&self.loaded).expires_s.unwrap_or(0)
    }

    /// Whether clients may come without TLS.
    pub(super) fn plain(&self) -> bool {
        self.files.plain
    }

    /// Reads the files if they have changed; whether they had. What cannot be used is said once, not at each look. What cannot be
    /// read is tried again after [`AGAIN_AFTER`]: that may be for want of file descriptors, and leaves the files as they are.
    fn look(&self, now: Instant, load: impl FnOnce(&Tls) -> Result<Loaded, TlsError>) -> Result<bool, TlsError> {
        let stamp = self.files.stamp();
        if lock(&self.loaded).stamp == stamp {
            return Ok(false);
        }
        let mut unread = lock(&self.unread);
        let tried = unread.filter(|(unread, _)| *unread == stamp).map(|(_, tried)| tried);
        if tried.is_some_and(|tried| now.saturating_duration_since(tried) < AGAIN_AFTER) {
            return Ok(false);
        }
        *unread = None;
        match load(&self.files) {
            Ok(loaded) => {
                warn_of_end(&self.files, loaded.expires_s);
                *lock(&self.loaded) = loaded;
                Ok(true)
            }
            Err(error @ TlsError::Unreadable { .. }) => {
                *unread = Some((stamp, now));
                if tried.is_some() { Ok(false) } else { Err(error) }
            }
            Err(error) => {
                lock(&self.loaded).stamp = stamp;
                Err(error)
            }
        }
    }
}

/// Clients that look at the date refuse a certificate that has ended; those that have no clock do not, so it is shown nevertheless.
fn warn_of_end(files: &Tls, expires_s: Option<u64>) {
    let Some(expires_s) = expires_s else { return };
    let left = (UNIX_EPOCH + Duration::from_secs(expires_s)).duration_since(SystemTime::now());
    let file = files.cert_file.display();
    match left {
        Err(_) => tracing::error!(%file, "the TLS certificate has ended; make another: truetwin tls make"),
        Ok(left) if left < WARN_BEFORE => {
            let days = left.as_secs() / 86_400;
            tracing::warn!(%file, days, "the TLS certificate ends soon; make another: truetwin tls make");
        }
        Ok(_) => {}
    }
}

#[cfg(test)]
mod tests;
