//! Passwords that people choose: Argon2id, because what can be guessed must be slow to guess.

use std::fmt;

use argon2::{Algorithm, Argon2, Params, Version};
use subtle::ConstantTimeEq as _;

use super::{Error, Secret, credentials::PASSWORD_BYTES_MAX, file};

/// The fewest characters of a password that somebody chose (NIST SP 800-63B, 5.1.1.2).
pub const CHOSEN_CHARS_MIN: usize = 8;

/// Memory, passes and lanes: the second of the equal choices of OWASP's Password Storage Cheat Sheet, 19 MiB, 2, 1. A
/// Raspberry Pi 4 takes some 100 ms, and 19 MiB as long as one is being checked.
const MEMORY_KIB: u32 = 19 * 1024;
const PASSES: u32 = 2;
const LANES: u32 = 1;

/// Bytes of salt and of hash (RFC 9106, 4).
const SALT_BYTES: usize = 16;
const HASH_BYTES: usize = 32;

/// The most memory that a stored hash may ask for, KiB: a file that somebody else wrote must not take the machine's.
const MEMORY_KIB_MAX: u32 = 256 * 1024;

/// The most passes that a stored hash may ask for.
const PASSES_MAX: u32 = 16;

/// Why a chosen password cannot be taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadPassword {
    /// Too short.
    #[error("the password has {0} characters; at least {CHOSEN_CHARS_MIN} are needed")]
    Short(usize),
    /// Too long.
    #[error("the password has {0} bytes; at most {PASSWORD_BYTES_MAX} are allowed")]
    Long(usize),
}

/// What is kept of a chosen password.
#[derive(Clone, PartialEq, Eq)]
pub struct Chosen {
    memory_kib: u32,
    passes: u32,
    lanes: u32,
    salt: [u8; SALT_BYTES],
    hash: [u8; HASH_BYTES],
}

impl fmt::Debug for Chosen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Chosen")
    }
}

/// What of a [`Chosen`] stands in the file.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StoredChosen {
    memory_kib: u32,
    passes: u32,
    lanes: u32,
    /// Hex.
    salt: String,
    /// Hex.
    hash: String,
}

impl Chosen {
    /// Takes a password. Slow, by design: it blocks for some 100 ms.
    ///
    /// # Errors
    /// [`BadPassword`], or [`Error::NoRandomness`].
    pub fn new(password: &Secret) -> Result<Self, Error> {
        let text = password.reveal();
        let chars = text.chars().count();
        if chars < CHOSEN_CHARS_MIN {
            return Err(BadPassword::Short(chars).into());
        }
        if text.len() > PASSWORD_BYTES_MAX {
            return Err(BadPassword::Long(text.len()).into());
        }
        let salt = file::random()?;
        let blank = Self { memory_kib: MEMORY_KIB, passes: PASSES, lanes: LANES, salt, hash: [0; HASH_BYTES] };
        let hash = blank.hash_of(text.as_bytes()).expect("our own parameters are within those of Argon2");
        Ok(Self { hash, ..blank })
    }

    /// Whether it is that of this password; the comparison is in constant time. Slow, by design: it blocks for some 100 ms and
    /// takes 19 MiB meanwhile, so check one at a time.
    pub fn is_of(&self, password: &[u8]) -> bool {
        password.len() <= PASSWORD_BYTES_MAX && self.hash_of(password).is_some_and(|hash| hash.ct_eq(&self.hash).into())
    }

    fn hash_of(&self, password: &[u8]) -> Option<[u8; HASH_BYTES]> {
        let params = Params::new(self.memory_kib, self.passes, self.lanes, Some(HASH_BYTES)).ok()?;
        let mut hash = [0; HASH_BYTES];
        let argon2 = Argon2::new(Algorithm::Argon2id, Version::V0x13, params);
        argon2.hash_password_into(password, &self.salt, &mut hash).ok()?;
        Some(hash)
    }

    /// Something that is another one for another password: to remember by it which one was checked.
    pub fn fingerprint(&self) -> &[u8] {
        &self.hash
    }

    pub(super) fn stored(&self) -> StoredChosen {
        let Self { memory_kib, passes, lanes, salt, hash } = self;
        StoredChosen {
            memory_kib: *memory_kib,
            passes: *passes,
            lanes: *lanes,
            salt: file::hex(salt),
            hash: file::hex(hash),
        }
    }

    /// From what is stored; `None` if that is not hex of its length, or asks for more than we would ever.
    pub(super) fn from_stored(stored: &StoredChosen) -> Option<Self> {
        let StoredChosen { memory_kib, passes, lanes, ref salt, ref hash } = *stored;
        let (salt, hash) = file::unhex(salt).zip(file::unhex(hash))?;
        let bounded = memory_kib <= MEMORY_KIB_MAX && (1..=PASSES_MAX).contains(&passes) && lanes == LANES;
        let known = bounded && Params::new(memory_kib, passes, lanes, Some(HASH_BYTES)).is_ok();
        known.then_some(Self { memory_kib, passes, lanes, salt, hash })
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test that fails there has said so")]
mod tests {
    use super::*;

    #[test]
    fn argon2_is_that_of_the_rfc() {
        // RFC 9106, 5.3, needs a secret and associated data, which we do not use; this is the reference program's own vector:
        // echo -n password | argon2 somesalt -id -t 2 -m 8 -p 1 -l 32
        let params = Params::new(1 << 8, 2, 1, Some(32)).unwrap();
        let mut hash = [0; 32];
        let argon2 = Argon2::new(Algorithm::Argon2id, Version::V0x13, params);
        argon2.hash_password_into(b"password", b"somesalt", &mut hash).unwrap();
        assert_eq!(file::hex(&hash), "9dfeb910e80bad0311fee20f9c0e2b12c17987b4cac90c2ef54d5b3021c68bfe");
    }

    #[test]
    fn a_chosen_password_is_known_again_and_no_other() {
        let chosen = Chosen::new(&Secret::new("correct horse".into())).unwrap();
        let again = Chosen::from_stored(&chosen.stored()).unwrap();
        assert_eq!(again, chosen);
        assert!(again.is_of(b"correct horse"));
        assert!(!again.is_of(b"correct horsE") && !again.is_of(b""));
        assert_ne!(Chosen::new(&Secret::new("correct horse".into())).unwrap(), chosen, "another salt");
        assert_eq!(format!("{chosen:?}"), "Chosen");
    }

    #[test]
    fn a_password_that_is_too_short_or_too_long_is_not_taken() {
        let refused = |text: &str| Chosen::new(&Secret::new(text.into())).unwrap_err().to_string();
        assert!(refused("seven77").contains("7 characters; at least 8"));
        assert!(refused("密码").contains("2 characters"));
        assert!(refused(&"x".repeat(257)).contains("257 bytes; at most 256"));
    }

    #[test]
    fn a_stored_hash_that_asks_for_the_machines_memory_is_not_taken() {
        let stored = Chosen::new(&Secret::new("correct horse".into())).unwrap().stored();
        assert!(Chosen::from_stored(&StoredChosen { memory_kib: u32::MAX, ..stored.clone() }).is_none());
        assert!(Chosen::from_stored(&StoredChosen { passes: u32::MAX, ..stored.clone() }).is_none());
        assert!(Chosen::from_stored(&StoredChosen { lanes: 0, ..stored.clone() }).is_none());
        assert!(Chosen::from_stored(&StoredChosen { hash: "00".into(), ..stored }).is_none());
    }
}
