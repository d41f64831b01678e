//! The last line of a backup: a SHA-256 over all that is before it, so that a single changed bit is found, also where SQLite has no
//! means to see it (a value in a row, a byte that nothing uses).
//!
//! ```text
//! <the SQLite file>truetwin-backup-sha256 <64 hex digits>\n
//! ```
//!
//! SQLite takes the number of its pages from its head and does not look at what is behind them. That a backup was sealed is also said
//! in its table of files (`super::SEALED`): a line that is lost does not make it one of an older version, which had none. Knows
//! nothing of what a backup holds.

use std::{
    fs::{File, OpenOptions},
    io::{self, Read, Seek as _, SeekFrom, Write as _},
    path::Path,
};

use sha2::{Digest as _, Sha256};

/// What the line begins with.
const MARK: &[u8] = b"truetwin-backup-sha256 ";

/// The whole line, bytes: the mark, two hex digits for each of 32 bytes, the end of the line.
pub(super) const LINE_BYTES: usize = MARK.len() + 64 + 1;

/// Bytes that are read at a time.
const CHUNK_BYTES: usize = 65_536;

/// What the last line says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Seal {
    /// There is none.
    Missing,
    /// It fits what is before it.
    Fits,
    /// Something was changed since.
    Broken,
}

/// Seals a file; nothing may change it afterwards. On the disk once this returns. Blocks.
pub(super) fn put(path: &Path) -> io::Result<()> {
    let mut file = OpenOptions::new().read(true).append(true).open(path)?;
    let bytes = file.metadata()?.len();
    let line = line_over(&mut file, bytes)?;
    file.write_all(&line)?;
    file.sync_all()
}

/// Reads a file whole and says whether its seal fits. Blocks.
pub(super) fn look(path: &Path) -> io::Result<Seal> {
    let mut file = File::open(path)?;
    let Some(before) = file.metadata()?.len().checked_sub(LINE_BYTES as u64) else { return Ok(Seal::Missing) };
    let mut found = [0; LINE_BYTES];
    file.seek(SeekFrom::Start(before))?;
    file.read_exact(&mut found)?;
    if !found.starts_with(MARK) {
        return Ok(Seal::Missing);
    }
    file.rewind()?;
    Ok(if line_over(&mut file, before)? == found { Seal::Fits } else { Seal::Broken })
}

/// The line for the first so many bytes.
fn line_over(file: &mut impl Read, bytes: u64) -> io::Result<[u8; LINE_BYTES]> {
    let mut hash = Sha256::new();
    let (mut rest, mut chunk) = (file.take(bytes), vec![0; CHUNK_BYTES]);
    loop {
        match rest.read(&mut chunk)? {
            0 => break,
            count => hash.update(&chunk[..count]),
        }
    }
    let hex: String = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    let mut line = [b'\n'; LINE_BYTES];
    line[..MARK.len()].copy_from_slice(MARK);
    line[MARK.len()..LINE_BYTES - 1].copy_from_slice(hex.as_bytes());
    Ok(line)
}
