//! Files that are replaced whole, are private, and are read up to a limit; random bytes and hex.

use std::{
    fs::{File, OpenOptions},
    io::{self, Read as _, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::Path,
};

use super::Error;
use crate::private::{self, Refused};

/// How a private file is opened for writing: made with mode 0600 if it is not there.
pub(super) fn for_owner() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true).create(true).mode(0o600);
    options
}

/// Replaces a file of the folder as a whole: after a power cut there is the old content or the new.
pub(super) fn replace(folder: &Path, name: &str, content: &[u8]) -> Result<(), Error> {
    let path = folder.join(name);
    let beside = folder.join(format!(".{name}.new"));
    let written = || -> io::Result<()> {
        let mut file = for_owner().truncate(true).open(&beside)?;
        file.write_all(content)?;
        file.sync_all()?;
        std::fs::rename(&beside, &path)?;
        // The name is on the disk only once the folder is.
        File::open(folder)?.sync_all()
    };
    written().map_err(|source| Error::Io { doing: "write", path: path.clone(), source })
}

/// Removes a file of the folder, if it is there.
pub(super) fn remove(folder: &Path, name: &str) -> Result<(), Error> {
    let path = folder.join(name);
    match std::fs::remove_file(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(Error::Io { doing: "remove", path, source: error })
        }
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Reads a text file of at most `bytes_max` bytes; `None` if it is not there.
pub(super) fn read(path: &Path, bytes_max: u64) -> Result<Option<String>, Error> {
    match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(Error::Io { doing: "read", path: path.to_owned(), source }),
        Ok(file) => text_of(&file, path, bytes_max).map(Some),
    }
}

/// The same for a file that is a secret: with rights for others it is refused.
pub(super) fn read_private(path: &Path, bytes_max: u64) -> Result<Option<String>, Error> {
    match private::open(path) {
        Err(Refused::Io(error)) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(Refused::Io(source)) => Err(Error::Io { doing: "read", path: path.to_owned(), source }),
        Err(Refused::Exposed { mode }) => Err(Error::Exposed { path: path.to_owned(), mode }),
        Ok(file) => text_of(&file, path, bytes_max).map(Some),
    }
}

fn text_of(file: &File, path: &Path, bytes_max: u64) -> Result<String, Error> {
    let io = |source| Error::Io { doing: "read", path: path.to_owned(), source };
    let mut bytes = Vec::new();
    file.take(bytes_max + 1).read_to_end(&mut bytes).map_err(io)?;
    let damaged = |problem: String| Error::Damaged { path: path.to_owned(), problem };
    if bytes.len() as u64 > bytes_max {
        return Err(damaged(format!("it has more than {bytes_max} bytes")));
    }
    String::from_utf8(bytes).map_err(|error| damaged(error.to_string()))
}

/// Random bytes from the operating system.
pub(super) fn random<const N: usize>() -> Result<[u8; N], Error> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(Error::NoRandomness)?;
    Ok(bytes)
}

/// Two lower case hex digits a byte.
pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Exactly `N` bytes from hex; `None` otherwise.
pub(super) fn unhex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let digits: Option<Vec<u8>> = text.chars().map(|c| c.to_digit(16).and_then(|d| u8::try_from(d).ok())).collect();
    let (pairs, rest) = digits.as_deref()?.as_chunks::<2>();
    let bytes: Vec<u8> = pairs.iter().map(|[high, low]| high << 4 | low).collect();
    if rest.is_empty() { bytes.try_into().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hex_goes_both_ways_and_takes_no_other_length() {
        assert_eq!(hex(&[0, 0x1f, 0xff]), "001fff");
        assert_eq!(unhex("001fff"), Some([0, 0x1f, 0xff]));
        assert_eq!(unhex::<3>("001ff"), None);
        assert_eq!(unhex::<2>("001fff"), None);
        assert_eq!(unhex::<1>("0g"), None);
    }
}
