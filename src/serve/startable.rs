//! Whether a hub can start, told before anything is opened: what `truetwin check-config` says and what `truetwin serve` says first
//! are the same, and all of it at once.
//!
//! Not told here is what only trying shows: an address or a data folder that is taken, a journal that is damaged further inside than its head, a
//! disk that is full or takes nothing.

use std::{io, path::Path};

use super::{SpokenCodeError, Unguarded, beyond, configured, settings, spoken_code, tls_files};
use crate::{
    broker::{SettingError, TlsError},
    config::{Config, Keeping},
    control, data, journal, recorder,
};

/// One reason why a hub would not start.
#[derive(Debug, thiserror::Error)]
pub enum Mistake {
    /// An access point.
    #[error(transparent)]
    Endpoint(#[from] configured::Error),
    /// The code that is said aloud.
    #[error(transparent)]
    SpokenCode(#[from] SpokenCodeError),
    /// The file of the recording.
    #[error(transparent)]
    Recording(#[from] recorder::Error),
    /// The certificate for TLS.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The door's limits.
    #[error(transparent)]
    Door(#[from] SettingError),
    /// A listener that others can reach, without credentials.
    #[error(transparent)]
    Unguarded(#[from] Unguarded),
    /// The data folder.
    #[error(transparent)]
    Data(#[from] data::Error),
    /// The journal in it.
    #[error(transparent)]
    Journal(#[from] journal::Error),
    /// What is where the control socket is to be.
    #[error(transparent)]
    Control(#[from] control::Error),
}

/// All reasons why a hub would not start with this configuration, as far as files tell. `folder`: the data folder, which may be a
/// running hub's and need not be there; without one, what lies in it is not looked at. Blocks on the disk.
pub fn mistakes(config: &Config, folder: Option<&Path>) -> Vec<Mistake> {
    let mut all: Vec<Mistake> = configured::endpoints(config).1.into_iter().map(Mistake::from).collect();
    all.extend(spoken_code(config).err().map(Mistake::from));
    let recording = config.recording.file.as_ref().and_then(|file| recorder::check(Path::new(file)).err());
    all.extend(recording.map(Mistake::from));
    // A certificate that is not named lies in the data folder.
    let looked_at = folder.is_some() || config.mqtt.tls_cert_file.is_some();
    let files = tls_files(config, folder.unwrap_or(Path::new(""))).filter(|_| looked_at);
    all.extend(files.and_then(|files| files.check().err()).map(Mistake::from));
    let Some(folder) = folder else { return all };
    all.extend(settings::door(config, folder).check().err().map(Mistake::from));
    if folder.exists() && !folder.is_dir() {
        let (doing, path, source) = (data::MAKE_FOLDER, folder.to_owned(), io::ErrorKind::NotADirectory.into());
        all.push(data::Error::Io { doing, path, source }.into());
        return all;
    }
    all.extend(data::mistakes(folder).into_iter().map(Mistake::from));
    if config.journal.keep != Keeping::Off {
        all.extend(journal::look(folder).err().map(Mistake::from));
    }
    all.extend(control::left_behind(folder).err().map(Mistake::from));
    let mut broken = Vec::new();
    let devices = counted(data::device_names(folder).map(Option::unwrap_or_default), &mut broken);
    let accounts = counted(data::account_names(folder), &mut broken);
    let tokens = counted(data::token_names(folder), &mut broken);
    broken.extend(data::endpoint_names(folder).err());
    // Who could come in is known only where all files could be read.
    if broken.is_empty() {
        let (mqtt, http) = (config.mqtt.listen, config.http.listen);
        all.extend(beyond::unguarded(mqtt, http, devices + accounts, tokens, folder).into_iter().map(Mistake::from));
    }
    all.extend(broken.into_iter().map(Mistake::from));
    all
}

fn counted<T>(names: Result<Vec<T>, data::Error>, broken: &mut Vec<data::Error>) -> usize {
    match names {
        Ok(names) => names.len(),
        Err(error) => {
            broken.push(error);
            0
        }
    }
}
