//! The home's own authority and the door's certificate for TLS, as `truetwin tls make` makes them.
//!
//! The authority is made once: devices are given its certificate to trust, and need no other when the hub's is made anew (other
//! names, a new end). Its key stays in the data folder, mode 0600, as secret as the rest of it; whoever wants it elsewhere moves
//! `ca.key` away and puts it back to make another certificate.
//!
//! Keys are on the curve P-256, which the smallest boards can check, and ends lie far off: a certificate that ends is a home that
//! stands still, and what it guards lies in the same folder as its authority.

use std::{
    io,
    path::{Path, PathBuf},
};

use jiff::{Timestamp, ToSpan as _, Zoned, civil::Date, tz::TimeZone};
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use rustls::pki_types::{CertificateDer, pem::PemObject as _};
use sha2::{Digest as _, Sha256};

use super::{TLS_CA_CERT, TLS_CA_KEY, TLS_CERT, TLS_KEY, file};

/// How an authority of ours is called; its key tells it from those of other homes.
const AUTHORITY: &str = "truetwin home authority";

/// How long the authority is good.
const AUTHORITY_YEARS: i32 = 30;

/// How long the hub's certificate is good.
const HUB_YEARS: i32 = 10;

/// How many names and addresses one certificate is for: more belong to several hubs.
pub const NAMES_MAX: usize = 32;

/// The largest file of ours, bytes.
const FILE_BYTES_MAX: u64 = 16_384;

/// Why there is no certificate. The text names the file; nothing was changed in it.
#[derive(Debug, thiserror::Error)]
pub enum AuthorityError {
    /// The data folder.
    #[error(transparent)]
    Data(#[from] super::Error),
    /// Only one of the two is there.
    #[error(
        "{} is there without {}: devices that trust it would not trust another; put that back, or move both away to begin anew",
        there.display(),
        missing.display()
    )]
    Half {
        /// The one that is there.
        there: PathBuf,
        /// The one that is not.
        missing: PathBuf,
    },
    /// A file that is not as this program writes it.
    #[error("{} cannot be used: {problem}", path.display())]
    Unusable {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        problem: String,
    },
    /// No authority is there.
    #[error("{} is not there; make it with: truetwin tls make", path.display())]
    None {
        /// Its file.
        path: PathBuf,
    },
    /// A name that no certificate can be for.
    #[error("{name:?} is no host name or address; names have letters, digits, dots and hyphens")]
    Name {
        /// The name.
        name: String,
    },
    /// Too many of them, or none.
    #[error("a certificate is for 1 to {NAMES_MAX} names and addresses")]
    Names,
    /// It cannot be made.
    #[error("the certificate cannot be made: {0}")]
    Making(#[from] rcgen::Error),
}

/// The home's authority.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Authority {
    /// Where its certificate is.
    pub file: PathBuf,
    /// Its certificate, PEM.
    pub pem: String,
    /// SHA-256 of the certificate, as `openssl x509 -fingerprint -sha256` writes it.
    pub fingerprint: String,
}

/// What was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Made {
    /// Who signed it.
    pub authority: Authority,
    /// Whether the authority is a new one.
    pub is_new: bool,
    /// The day on which the hub's certificate ends.
    pub until: Date,
}

/// The authority of a data folder. Blocks on the disk.
///
/// # Errors
/// [`AuthorityError::None`] if there is none, [`AuthorityError::Unusable`] if its file is damaged.
pub fn authority(folder: &Path) -> Result<Authority, AuthorityError> {
    let path = folder.join(TLS_CA_CERT);
    let pem = file::read(&path, FILE_BYTES_MAX)?.ok_or_else(|| AuthorityError::None { path: path.clone() })?;
    let unusable = |error: rustls::pki_types::pem::Error| AuthorityError::Unusable {
        path: path.clone(),
        problem: format!("it holds no certificate in PEM: {error}"),
    };
    let certificate = CertificateDer::from_pem_slice(pem.as_bytes()).map_err(unusable)?;
    let fingerprint: Vec<String> = Sha256::digest(&certificate).iter().map(|byte| format!("{byte:02X}")).collect();
    Ok(Authority { file: path, pem, fingerprint: fingerprint.join(":") })
}

/// Makes the certificate of the door for these names and addresses, and the authority if there is none. Each file is replaced
/// whole, the key first, so that a running hub never takes half. Blocks on the disk.
///
/// # Errors
/// [`AuthorityError`]; then a running hub goes on with what it has.
pub fn make(folder: &Path, names: &[String]) -> Result<Made, AuthorityError> {
    if names.is_empty() || names.len() > NAMES_MAX {
        return Err(AuthorityError::Names);
    }
    if let Some(name) = names.iter().find(|name| !is_name(name)) {
        return Err(AuthorityError::Name { name: name.clone() });
    }
    let (key, is_new) = authority_key(folder)?;
    let now = Timestamp::now().to_zoned(TimeZone::UTC);
    let issuer = Issuer::new(of_authority(&now), key);
    let own_key = KeyPair::generate()?;
    let mut params = CertificateParams::new(names)?;
    let until = lasting(&mut params, &now, HUB_YEARS);
    params.distinguished_name = called(&names[0]);
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    params.use_authority_key_identifier_extension = true;
    let certificate = params.signed_by(&own_key, &issuer)?;
    file::replace(folder, TLS_KEY, own_key.serialize_pem().as_bytes())?;
    file::replace(folder, TLS_CERT, certificate.pem().as_bytes())?;
    Ok(Made { authority: authority(folder)?, is_new, until })
}

/// The authority's key; made with its certificate if neither is there.
fn authority_key(folder: &Path) -> Result<(KeyPair, bool), AuthorityError> {
    let (certificate, key_file) = (folder.join(TLS_CA_CERT), folder.join(TLS_CA_KEY));
    match (certificate.exists(), key_file.exists()) {
        (true, true) => Ok((read_key(&key_file)?, false)),
        (true, false) => Err(AuthorityError::Half { there: certificate, missing: key_file }),
        (false, true) => Err(AuthorityError::Half { there: key_file, missing: certificate }),
        (false, false) => {
            let key = KeyPair::generate()?;
            let made = of_authority(&Timestamp::now().to_zoned(TimeZone::UTC)).self_signed(&key)?;
            file::replace(folder, TLS_CA_KEY, key.serialize_pem().as_bytes())?;
            file::replace(folder, TLS_CA_CERT, made.pem().as_bytes())?;
            Ok((key, true))
        }
    }
}

fn read_key(path: &Path) -> Result<KeyPair, AuthorityError> {
    let pem = file::read_private(path, FILE_BYTES_MAX)?;
    let missing = || super::Error::Io { doing: "read", path: path.to_owned(), source: io::ErrorKind::NotFound.into() };
    let pem = pem.ok_or_else(missing)?;
    let unusable = |error: rcgen::Error| AuthorityError::Unusable { path: path.to_owned(), problem: error.to_string() };
    KeyPair::from_pem(&pem).map_err(unusable)
}

fn of_authority(now: &Zoned) -> CertificateParams {
    let mut params = CertificateParams::default();
    lasting(&mut params, now, AUTHORITY_YEARS);
    params.distinguished_name = called(AUTHORITY);
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params
}

/// From yesterday, because clocks differ, for so many years; the day on which it ends.
fn lasting(params: &mut CertificateParams, now: &Zoned, years: i32) -> Date {
    let time =
        |date: Date| rcgen::date_time_ymd(date.year().into(), date.month().unsigned_abs(), date.day().unsigned_abs());
    let today = now.date();
    let until = today.saturating_add(years.years());
    params.not_before = time(today.saturating_sub(1.day()));
    params.not_after = time(until);
    until
}

fn called(name: &str) -> DistinguishedName {
    let mut called = DistinguishedName::new();
    called.push(DnType::CommonName, name);
    called
}

/// An address, or a host name (RFC 1123).
fn is_name(name: &str) -> bool {
    let is_label = |label: &str| {
        (1..=63).contains(&label.len())
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    name.parse::<std::net::IpAddr>().is_ok() || (name.len() <= 253 && name.split('.').all(is_label))
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test that fails there has said so")]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn names() -> Vec<String> {
        ["hub.local", "192.168.1.7", "::1"].map(str::to_owned).to_vec()
    }

    #[test]
    fn the_authority_stays_when_the_certificate_is_made_anew() {
        let folder = tempfile::tempdir().unwrap();
        assert!(matches!(authority(folder.path()), Err(AuthorityError::None { .. })));
        let first = make(folder.path(), &names()).unwrap();
        let certificate = std::fs::read(folder.path().join(TLS_CERT)).unwrap();
        let second = make(folder.path(), &names()).unwrap();
        assert!(first.is_new && !second.is_new);
        assert_eq!(first.authority, second.authority);
        assert_ne!(certificate, std::fs::read(folder.path().join(TLS_CERT)).unwrap());
        assert_eq!(first.authority.fingerprint.len(), 32 * 3 - 1);
        for key in [TLS_KEY, TLS_CA_KEY] {
            let mode = folder.path().join(key).metadata().unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600, "{key}");
        }
    }

    #[test]
    fn a_key_that_others_may_read_half_an_authority_and_what_is_no_name_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        make(folder.path(), &names()).unwrap();
        let key = folder.path().join(TLS_CA_KEY);
        std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o640)).unwrap();
        let error = make(folder.path(), &names()).unwrap_err().to_string();
        assert!(error.ends_with(&format!("(mode 0640); mend it with: chmod 600 {}", key.display())), "{error}");
        std::fs::remove_file(&key).unwrap();
        assert!(matches!(make(folder.path(), &names()), Err(AuthorityError::Half { .. })));
        for name in ["", "a b", "hub..local", "-hub", "灯", "*.local", "hub:8883", "10.0.0.0/8"] {
            assert!(!is_name(name), "{name}");
        }
        assert!(matches!(make(folder.path(), &[]), Err(AuthorityError::Names)));
    }
}
