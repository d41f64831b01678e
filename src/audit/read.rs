//! Reading the files, whoever wrote into them: what cannot be understood is skipped and counted, never an error.

use std::{
    fs::File,
    io::{self, BufRead as _, BufReader},
    path::Path,
};

use jiff::Timestamp;

use super::{FILE_BYTES_MAX, FILES_MAX, LINE_BYTES_MAX, file, record::Record};

/// The longest file that is read, bytes: a larger one is not ours, and its rest is skipped.
const READ_BYTES_MAX: u64 = 2 * FILE_BYTES_MAX;

/// What the files hold.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Found {
    /// The records, oldest first.
    pub records: Vec<Record>,
    /// Lines that are no record: torn by a power cut, damaged, or of somebody else.
    pub unreadable: usize,
    /// Records of a later version.
    pub newer: usize,
}

/// Reads all files of a folder, oldest first; without any, nothing is found. Works while a hub writes.
///
/// # Errors
/// From the disk, with the file that it was about in the text.
pub fn read(folder: &Path) -> io::Result<Found> {
    let mut found = Found::default();
    for age in (0..FILES_MAX).rev() {
        let path = file(folder, age);
        let about = |error: io::Error| io::Error::new(error.kind(), format!("cannot read {}: {error}", path.display()));
        match File::open(&path) {
            Ok(file) => found.take(&mut BufReader::new(io::Read::take(file, READ_BYTES_MAX))).map_err(about)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(about(error)),
        }
    }
    Ok(found)
}

impl Found {
    /// Takes in the lines of one file.
    pub(super) fn take(&mut self, file: &mut impl io::BufRead) -> io::Result<()> {
        let mut line = Vec::new();
        loop {
            line.clear();
            let read = io::Read::take(&mut *file, LINE_BYTES_MAX as u64 + 1).read_until(b'\n', &mut line)?;
            if read == 0 {
                return Ok(());
            }
            if read > LINE_BYTES_MAX {
                self.unreadable += 1;
                file.skip_until(b'\n')?;
                continue;
            }
            let text = line.trim_ascii();
            if text.is_empty() {
                continue;
            }
            match serde_json::from_slice::<Record>(text) {
                Ok(record) if record.v == super::VERSION => self.records.push(record),
                Ok(record) if record.v > super::VERSION => self.newer += 1,
                Ok(_) | Err(_) => self.unreadable += 1,
            }
        }
    }

    /// What a reader has to be told besides the records; empty if all is well.
    pub fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.unreadable > 0 {
            notes.push(format!(
                "{} lines cannot be read (a power cut tears the last one) and were skipped",
                self.unreadable
            ));
        }
        if self.newer > 0 {
            notes.push(format!("{} records are of a newer truetwin and were skipped", self.newer));
        }
        notes
    }
}

/// Which records are wanted; an empty filter wants all.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Filter {
    /// Those whose caller or session contains this.
    pub caller: Option<String>,
    /// Those about this device, by its id or by the name that was heard.
    pub device: Option<String>,
    /// Those of this tool.
    pub tool: Option<String>,
    /// Those since then.
    pub since: Option<Timestamp>,
    /// Those that did not go as they should.
    pub failed: bool,
}

impl Filter {
    /// Whether a record is wanted.
    pub fn wants(&self, record: &Record) -> bool {
        let lower = |text: &str| text.to_lowercase();
        let has = |text: &str, part: &String| lower(text).contains(&lower(part));
        let by_caller = self.caller.as_ref().is_none_or(|caller| {
            has(&record.caller, caller) || record.session.as_ref().is_some_and(|session| has(session, caller))
        });
        let about_device = self.device.as_ref().is_none_or(|device| {
            let heard = record.heard.as_ref().is_some_and(|heard| lower(heard) == lower(device));
            heard || record.things.iter().any(|thing| thing.device == *device)
        });
        by_caller
            && about_device
            && self.tool.as_ref().is_none_or(|tool| record.tool.as_ref() == Some(tool))
            && self.since.is_none_or(|since| record.when().is_some_and(|when| when >= since))
            && (!self.failed || record.is_failure())
    }
}
