//! A hub's memory as one file, and back: the journal with the small files of the data folder in it.
//!
//! A restored hub is the same hub to its devices: its name, their passwords. Its epoch jumps far ahead, because devices take no
//! welcome of an older one (wire protocol, *Greeting*) and nobody knows how often the hub began anew since the backup.
//! The file holds what lets people in (hashes of passwords and tokens, addresses of access points with theirs): mode 0600.

use std::{
    fs,
    io::Write as _,
    os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
};

use rusqlite::{Connection, OpenFlags, OptionalExtension as _, params};

use crate::{
    data::{DataFolder, EPOCH, KEPT},
    journal::{self, Journal, Retention},
};

/// How far the epoch jumps: more starts than a hub makes between two backups, were it once a second for eleven days.
const EPOCHS_AHEAD: u64 = 1_000_000;

/// The largest file that is taken along, bytes: ten times what a full `devices.json` has.
const FILE_BYTES_MAX: u64 = 16 * 1_048_576;

/// Why there is no backup, or none was restored. The text says what to do.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The journal.
    #[error(transparent)]
    Journal(#[from] journal::Error),
    /// The data folder.
    #[error(transparent)]
    Data(#[from] crate::data::Error),
    /// The hub is stopping.
    #[error("the journal is closed: the hub is stopping")]
    Closed,
    /// The disk said no.
    #[error("cannot {doing} {}: {problem}", path.display())]
    Disk {
        /// What was tried, a verb.
        doing: &'static str,
        /// With which file.
        path: PathBuf,
        /// Why not.
        problem: String,
    },
    /// No backup of ours.
    #[error("{} is no backup of truetwin: {problem}; nothing was changed", path.display())]
    NoBackup {
        /// The file.
        path: PathBuf,
        /// What is missing.
        problem: String,
    },
}

/// Makes a backup of the data folder of a hub that runs, through its journal.
///
/// # Errors
/// [`Error`]; then there is no file, or the one that was there is untouched.
pub async fn of_running(journal: &Journal, folder: PathBuf, to: PathBuf) -> Result<(), Error> {
    let copied = journal.backup(to.clone()).map_err(|_| Error::Closed)?;
    copied.await.map_err(|_| Error::Closed)??;
    let taking = tokio::task::spawn_blocking(move || take_files(&folder, &to));
    taking.await.map_err(|_| Error::Closed)?
}

/// Makes a backup of a data folder on which no hub runs. Blocks.
///
/// # Errors
/// As [`of_running`]; [`crate::data::Error::Taken`] if a hub runs there after all.
pub fn of_folder(folder: &Path, to: &Path) -> Result<(), Error> {
    let _held = DataFolder::open_offline(folder)?;
    let (journal, _, running) = Journal::open(folder, Retention::default())?;
    let copied = journal.backup(to.to_owned()).map_err(|_| Error::Closed)?.blocking_recv();
    running.close(journal);
    copied.map_err(|_| Error::Closed)??;
    take_files(folder, to)
}

/// Takes the small files of the folder into the copy. A copy without them is none, and is taken away again.
fn take_files(folder: &Path, copy: &Path) -> Result<(), Error> {
    let taken = || -> Result<(), Error> {
        fs::set_permissions(copy, fs::Permissions::from_mode(0o600)).map_err(disk("protect", copy))?;
        let database = Connection::open(copy).map_err(disk("open", copy))?;
        let table = "CREATE TABLE file (name TEXT PRIMARY KEY, bytes BLOB NOT NULL) STRICT";
        database.execute(table, []).map_err(disk("write", copy))?;
        for name in KEPT {
            let path = folder.join(name);
            match fs::read(&path) {
                Ok(bytes) => {
                    let row = params![name, bytes];
                    database
                        .execute("INSERT INTO file (name, bytes) VALUES (?1, ?2)", row)
                        .map_err(disk("write", copy))?;
                }
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(error) => return Err(disk("read", &path)(error)),
            }
        }
        Ok(())
    };
    taken().inspect_err(|_| {
        let _half_a_backup_is_none = fs::remove_file(copy);
    })
}

/// Puts a backup in the place of what a data folder holds; no hub may run on it. What was there is kept beside it, each file with
/// `.before-restore` behind its name, with a number if there is one of an earlier time. Blocks.
///
/// # Errors
/// [`Error`]; what is no backup of ours changes nothing.
pub fn restore(folder: &Path, from: &Path) -> Result<(), Error> {
    let files = files_of(from)?;
    let held = DataFolder::open_offline(folder)?;
    journal::restore(folder, from)?;
    for name in KEPT {
        let path = folder.join(name);
        if path.exists() {
            let kept = journal::before_restore(folder, name);
            fs::rename(&path, kept).map_err(disk("move away", &path))?;
        }
    }
    for (name, bytes) in &files {
        let path = folder.join(name);
        let bytes = if *name == EPOCH { ahead(bytes, from)? } else { bytes.clone() };
        let opened = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
        let written = opened.and_then(|mut file| file.write_all(&bytes).and_then(|()| file.sync_all()));
        written.map_err(disk("write", &path))?;
    }
    drop(held);
    // What was restored is understood by this program: better said now than by the hub's next start.
    drop(DataFolder::open_offline(folder)?);
    Ok(())
}

/// The small files in a backup.
fn files_of(from: &Path) -> Result<Vec<(&'static str, Vec<u8>)>, Error> {
    let none = |problem: String| Error::NoBackup { path: from.to_owned(), problem };
    let open = || Connection::open_with_flags(from, OpenFlags::SQLITE_OPEN_READ_ONLY);
    let database = open().map_err(|error| none(error.to_string()))?;
    let mut files = Vec::new();
    for name in KEPT {
        let one = "SELECT bytes FROM file WHERE name = ?1 AND length(bytes) <= ?2";
        let read = |row: &rusqlite::Row<'_>| row.get::<_, Vec<u8>>(0);
        let found = database.query_row(one, params![name, FILE_BYTES_MAX.cast_signed()], read).optional();
        if let Some(bytes) = found.map_err(|error| none(error.to_string()))? {
            files.push((*name, bytes));
        }
    }
    if files.iter().any(|(name, _)| *name == EPOCH) { Ok(files) } else { Err(none("it has no epoch".to_owned())) }
}

/// The epoch that a restored hub goes on from.
fn ahead(epoch: &[u8], from: &Path) -> Result<Vec<u8>, Error> {
    let number = std::str::from_utf8(epoch).ok().and_then(|text| text.trim().parse::<u64>().ok());
    let number = number
        .ok_or_else(|| Error::NoBackup { path: from.to_owned(), problem: "its epoch is no number".to_owned() })?;
    Ok(format!("{}\n", number.saturating_add(EPOCHS_AHEAD)).into_bytes())
}

fn disk<E: std::fmt::Display>(doing: &'static str, path: &Path) -> impl FnOnce(E) -> Error {
    let path = path.to_owned();
    move |error| Error::Disk { doing, path, problem: error.to_string() }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test that fails there has said so")]
mod tests {
    use super::*;
    use crate::property::DeviceId;

    #[test]
    fn a_restored_folder_is_the_same_hub_with_the_same_passwords_far_ahead_of_any_epoch() {
        let (old, new) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let file = old.path().join("copy.truetwin");
        let folder = DataFolder::open(&old.path().join("data")).unwrap();
        let lamp = DeviceId::new("lamp").unwrap();
        let secret = folder.credentials().add(&lamp).unwrap();
        let rights = crate::topics::Rights::new(&["#"], &[]).unwrap();
        folder.accounts().add(&DeviceId::new("me").unwrap(), rights, None).unwrap();
        let (hub, epoch, path) = (folder.hub_id().to_owned(), folder.epoch(), folder.path().to_owned());
        assert!(matches!(of_folder(&path, &file), Err(Error::Data(_))), "a hub has it");
        drop(folder);
        of_folder(&path, &file).unwrap();
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        assert!(of_folder(&path, &file).is_err(), "a backup is never written over");

        let other = DataFolder::open(&new.path().join("data")).unwrap();
        let there = other.path().to_owned();
        other.credentials().add(&DeviceId::new("other").unwrap()).unwrap();
        assert!(matches!(restore(&there, &file), Err(Error::Data(_))), "a hub has it");
        drop(other);
        restore(&there, &file).unwrap();
        let restored = DataFolder::open(&there).unwrap();
        assert_eq!(restored.hub_id(), hub);
        assert!(restored.epoch() > epoch + 1_000);
        assert_eq!(restored.credentials().list(), std::slice::from_ref(&lamp));
        assert!(restored.credentials().verify(lamp.as_str(), secret.reveal().as_bytes()));
        assert!(restored.accounts().get(&DeviceId::new("me").unwrap()).is_some());
        assert!(there.join("devices.json.before-restore").exists(), "what was there is kept");
    }

    #[test]
    fn what_is_no_backup_changes_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let data = DataFolder::open(&folder.path().join("data")).unwrap();
        let (hub, path) = (data.hub_id().to_owned(), data.path().to_owned());
        drop(data);
        let rubbish = folder.path().join("rubbish");
        fs::write(&rubbish, "no database at all, and longer than the head of one would be").unwrap();
        for from in [rubbish, folder.path().join("nowhere")] {
            assert!(matches!(restore(&path, &from), Err(Error::NoBackup { .. })));
            assert_eq!(DataFolder::open_offline(&path).unwrap().hub_id(), hub);
        }
    }
}
