//! The code that its owner says aloud: kept hashed, compared in constant time, however a speech recogniser writes it.

use std::fmt;

use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

/// The fewest characters of a code: four digits are guessed once in two thousand lock-outs of five.
pub const SPOKEN_CHARS_MIN: usize = 4;

/// The most that is looked at of what was said, characters.
const SPOKEN_CHARS_MAX: usize = 64;

/// Why a text is no code to be said.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a spoken code has at least {SPOKEN_CHARS_MIN} letters or digits, and at most {SPOKEN_CHARS_MAX}")]
pub struct BadSecret;

/// A hashed code.
#[derive(Clone)]
pub struct Secret {
    salt: [u8; 16],
    sha256: [u8; 32],
}

impl Secret {
    /// Takes the code of an owner; `salt` is random.
    ///
    /// # Errors
    /// [`BadSecret`] if it is too short or too long.
    pub fn new(code: &str, salt: [u8; 16]) -> Result<Self, BadSecret> {
        let code = plain(code);
        let length = code.chars().count();
        if (SPOKEN_CHARS_MIN..SPOKEN_CHARS_MAX).contains(&length) {
            Ok(Self { salt, sha256: hash(&salt, &code) })
        } else {
            Err(BadSecret)
        }
    }

    /// Whether it is what was said, in a time that does not tell how much of it is right.
    pub(super) fn is(&self, said: &str) -> bool {
        hash(&self.salt, &plain(said)).ct_eq(&self.sha256).into()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// Whether two codes are the same, in constant time for codes of one length.
pub(super) fn same(a: &str, b: &str) -> bool {
    plain(a).as_bytes().ct_eq(plain(b).as_bytes()).into()
}

fn hash(salt: &[u8; 16], code: &str) -> [u8; 32] {
    Sha256::new().chain_update(salt).chain_update(code.as_bytes()).finalize().into()
}

/// A code as it is compared: letters and digits only, in lower case; full-width digits and spoken Chinese ones are digits.
fn plain(code: &str) -> String {
    let digit = |c: char| match c {
        '零' | '〇' | '洞' => '0',
        '一' | '幺' | '壹' => '1',
        '二' | '两' => '2',
        '三' => '3',
        '四' => '4',
        '五' => '5',
        '六' => '6',
        '七' | '拐' => '7',
        '八' => '8',
        '九' | '勾' => '9',
        '０'..='９' => char::from_digit(u32::from(c) - u32::from('０'), 10).unwrap_or(c),
        other => other,
    };
    code.chars()
        .take(SPOKEN_CHARS_MAX)
        .filter(|c| c.is_alphanumeric())
        .flat_map(char::to_lowercase)
        .map(digit)
        .collect()
}
