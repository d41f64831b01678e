//! A hub's memory as one file, and back: the journal with the small files of the data folder in it.
//!
//! A restored hub is the same hub to its devices: its name, their passwords. Its epoch jumps far ahead, because devices take no
//! welcome of an older one (wire protocol, *Greeting*) and nobody knows how often the hub began anew since the backup.
//! The last line is a checksum over all before it; a backup is looked through before anything is made or moved for it.
//! The file holds what lets people in (hashes of passwords and tokens, addresses of access points with theirs): mode 0600.

mod seal;

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

/// The row beside the files that says that the backup has a checksum.
const SEALED: &str = ".sealed";

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
    /// It was one, and was changed since.
    #[error("the backup {} is damaged: {problem}; take another one, nothing was changed", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong in it.
        problem: String,
    },
}

/// What a restored backup was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Checked {
    /// Each bit of it is as it was written.
    Whole,
    /// It has no checksum, as those of versions before there was one: only what SQLite sees was checked.
    WithoutChecksum,
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
        // A hub that was restored by a version before this one has the table of that backup in its journal.
        database.execute("DROP TABLE IF EXISTS file", []).map_err(disk("write", copy))?;
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
        let sealed = "INSERT INTO file (name, bytes) VALUES (?1, x'')";
        database.execute(sealed, [SEALED]).map_err(disk("write", copy))?;
        database.close().map_err(|(_, error)| disk("write", copy)(error))?;
        seal::put(copy).map_err(disk("write", copy))
    };
    taken().inspect_err(|_| {
        let _half_a_backup_is_none = fs::remove_file(copy);
    })
}

/// Puts a backup in the place of what a data folder holds; no hub may run on it. What was there is kept beside it, each file with
/// `.before-restore` behind its name, with a number if there is one of an earlier time. Blocks.
///
/// # Errors
/// [`Error`]; what is no backup of ours, or a damaged one, changes nothing and makes nothing.
pub fn restore(folder: &Path, from: &Path) -> Result<Checked, Error> {
    let (files, checked) = look_through(from)?;
    // Opening a folder that is new makes a hub in it, of which nothing is worth keeping.
    let there: Vec<bool> = KEPT.iter().map(|name| folder.join(name).exists()).collect();
    let held = DataFolder::open_offline(folder)?;
    journal::restore(folder, from)?;
    for (name, was_there) in KEPT.iter().zip(there) {
        let path = folder.join(name);
        if was_there {
            let kept = journal::before_restore(folder, name);
            fs::rename(&path, kept).map_err(disk("move away", &path))?;
        } else if path.exists() {
            fs::remove_file(&path).map_err(disk("remove", &path))?;
        }
    }
    for (name, bytes) in &files {
        let path = folder.join(name);
        let opened = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
        let written = opened.and_then(|mut file| file.write_all(bytes).and_then(|()| file.sync_all()));
        written.map_err(disk("write", &path))?;
    }
    drop(held);
    // What was restored is understood by this program: better said now than by the hub's next start.
    drop(DataFolder::open_offline(folder)?);
    Ok(checked)
}

/// The small files of a backup, its name and its bytes.
type Files = Vec<(&'static str, Vec<u8>)>;

/// Reads a backup through: its checksum, what SQLite can see of its inside, and the small files, the epoch as it is to be.
fn look_through(from: &Path) -> Result<(Files, Checked), Error> {
    let none = |problem: String| Error::NoBackup { path: from.to_owned(), problem };
    let damaged = |problem: &str| Error::Damaged { path: from.to_owned(), problem: problem.to_owned() };
    let seal = seal::look(from).map_err(|error| none(error.to_string()))?;
    if seal == seal::Seal::Broken {
        let seen = match journal::check(from) {
            Err(journal::Error::Damaged { problem, .. }) => format!(" ({problem})"),
            Ok(()) | Err(_) => String::new(),
        };
        return Err(damaged(&format!("its contents are not those that its checksum (SHA-256) was made over{seen}")));
    }
    let (mut files, is_sealed) = files_of(from)?;
    if is_sealed && seal == seal::Seal::Missing {
        return Err(damaged("the checksum at its end is missing or cannot be read"));
    }
    match journal::check(from) {
        Err(journal::Error::Damaged { problem, .. }) => return Err(damaged(&problem)),
        checked => checked?,
    }
    let Some((_, epoch)) = files.iter_mut().find(|(name, _)| *name == EPOCH) else {
        return Err(none("it has no epoch".to_owned()));
    };
    *epoch = ahead(epoch, from)?;
    Ok((files, if is_sealed { Checked::Whole } else { Checked::WithoutChecksum }))
}

/// The small files in a backup, and whether it says that it has a checksum.
fn files_of(from: &Path) -> Result<(Files, bool), Error> {
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
    let sealed = database.query_row("SELECT 1 FROM file WHERE name = ?1", [SEALED], |_| Ok(())).optional();
    Ok((files, sealed.map_err(|error| none(error.to_string()))?.is_some()))
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
    fn where_nothing_was_nothing_is_kept_beside_what_is_restored() {
        let folder = tempfile::tempdir().unwrap();
        let file = backed_up(folder.path());
        let (absent, empty) = (folder.path().join("absent"), folder.path().join("empty"));
        fs::create_dir(&empty).unwrap();
        for new in [absent, empty] {
            restore(&new, &file).unwrap();
            let mut names: Vec<String> =
                fs::read_dir(&new).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
            names.sort_unstable();
            assert_eq!(names, ["devices.json", "epoch", "hub.id", "hub.lock", "journal.db"]);
        }
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
    /// A data folder with a device and two retained messages, and its backup.
    fn backed_up(folder: &Path) -> PathBuf {
        let (data, file) = (folder.join("data"), folder.join("copy.truetwin"));
        DataFolder::open(&data).unwrap().credentials().add(&DeviceId::new("lamp").unwrap()).unwrap();
        let (journal, _, running) = Journal::open(&data, Retention::default()).unwrap();
        running.close(journal);
        let row = "INSERT INTO retained (topic, qos, properties, payload) VALUES (?1, 1, x'', x'31')";
        let database = Connection::open(data.join(journal::FILE)).unwrap();
        for topic in ["home/hall/light", "home/attic/light"] {
            database.execute(row, [topic]).unwrap();
        }
        database.close().unwrap();
        of_folder(&data, &file).unwrap();
        file
    }

    /// Makes a backup as versions before the checksum did.
    fn without_checksum(file: &Path) {
        let bytes = fs::read(file).unwrap();
        fs::write(file, &bytes[..bytes.len() - seal::LINE_BYTES]).unwrap();
        Connection::open(file).unwrap().execute("DELETE FROM file WHERE name = ?1", [SEALED]).unwrap();
    }

    #[test]
    fn no_bit_of_a_backup_can_change_unnoticed_and_what_is_refused_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let file = backed_up(folder.path());
        let (whole, new) = (fs::read(&file).unwrap(), folder.path().join("new"));
        // All of the head, of the seal, and bits spread over what is between them.
        let seal_begins = whole.len() - seal::LINE_BYTES;
        let places = (0..100).chain((100..seal_begins).step_by(997)).chain(seal_begins..whole.len());
        for (number, place) in places.enumerate() {
            let mut changed = whole.clone();
            changed[place] ^= 1 << (number % 8);
            fs::write(&file, &changed).unwrap();
            let error = restore(&new, &file).expect_err("a bit is another");
            let Error::Damaged { .. } = &error else { panic!("byte {place}: {error}") };
            assert!(error.to_string().contains("checksum") && !new.exists(), "byte {place}: {error}");
        }
        // Cut anywhere, or with something behind it.
        let longer = [&whole[..], b"x"].concat();
        for bytes in [&whole[..seal_begins], &whole[..whole.len() - 1], &whole[..whole.len() / 2], &whole[..0], &longer]
        {
            fs::write(&file, bytes).unwrap();
            restore(&new, &file).expect_err("it is not whole");
            assert!(!new.exists());
        }
        fs::write(&file, &whole).unwrap();
        assert_eq!(restore(&new, &file).unwrap(), Checked::Whole);
    }

    #[test]
    fn a_backup_of_a_version_without_checksums_is_restored_but_not_one_whose_index_is_damaged() {
        let folder = tempfile::tempdir().unwrap();
        let file = backed_up(folder.path());
        without_checksum(&file);
        let whole = fs::read(&file).unwrap();
        assert_eq!(restore(&folder.path().join("new"), &file).unwrap(), Checked::WithoutChecksum);
        // Each topic is in its row and in the index; one of them is changed, which `quick_check` takes for good.
        let topic = b"home/attic/light";
        let places: Vec<usize> =
            whole.windows(topic.len()).enumerate().filter(|(_, w)| *w == topic).map(|(at, _)| at).collect();
        assert_eq!(places.len(), 2);
        for place in places {
            let mut changed = whole.clone();
            changed[place] = b'z';
            fs::write(&file, changed).unwrap();
            let other = folder.path().join("other");
            let error = restore(&other, &file).expect_err("row and index differ").to_string();
            assert!(error.contains("is damaged") && error.contains("index") && !other.exists(), "{error}");
        }
    }

    #[test]
    fn a_restored_hub_can_be_backed_up_and_restored_again() {
        let folder = tempfile::tempdir().unwrap();
        let (file, new, again) = (backed_up(folder.path()), folder.path().join("new"), folder.path().join("again"));
        restore(&new, &file).unwrap();
        of_folder(&new, &again).unwrap();
        assert_eq!(restore(&folder.path().join("third"), &again).unwrap(), Checked::Whole);
        let names: Vec<_> = fs::read_dir(&new).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert!(!names.iter().any(|name| name.to_string_lossy().contains("restoring")), "{names:?}");
    }
}
