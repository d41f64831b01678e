//! What people confirm by, out of the configuration: limits, the code that is said aloud, the buttons.

use std::{
    io::{self, Read as _},
    path::PathBuf,
    sync::Arc,
};

use crate::{
    authz::confirm::{BadSecret, Limits, Presses, Secret},
    config::{Config, ms},
    mcp,
    private::{self, Refused},
};

/// The largest file of a spoken code, bytes: a line, not a book.
const CODE_BYTES_MAX: u64 = 1_024;

/// Why the spoken code cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file cannot be read.
    #[error("confirm.code_file {} cannot be read", path.display())]
    Unreadable {
        /// It.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// Others may read it.
    #[error("others may read confirm.code_file {path}; mend it with: chmod 600 {path}", path = path.display())]
    Open {
        /// It.
        path: PathBuf,
    },
    /// What is in it is no code.
    #[error("confirm.code_file {} holds no code", path.display())]
    Bad {
        /// It.
        path: PathBuf,
        /// Why.
        source: BadSecret,
    },
}

/// Whether the code that is said aloud can be had, where one is wanted.
///
/// # Errors
/// [`Error`], with what is wrong with its file.
pub fn spoken_code(config: &Config) -> Result<(), Error> {
    config.confirm.code_file.as_ref().map(|path| secret(PathBuf::from(path)).map(drop)).unwrap_or(Ok(()))
}

/// What confirms, for all servers of one hub.
pub(super) fn confirmer(config: &Config, presses: Arc<Presses>) -> Result<mcp::Confirmer, Error> {
    let settings = &config.confirm;
    let limits = Limits {
        earliest: ms(settings.earliest_ms),
        latest: ms(settings.latest_ms),
        form: ms(settings.form_ms),
        guesses_max: settings.wrong_max,
        locked_out: ms(settings.locked_out_ms),
    };
    let secret = settings.code_file.as_ref().map(|path| secret(PathBuf::from(path))).transpose()?;
    Ok(mcp::Confirmer::new(limits, secret, presses))
}

fn secret(path: PathBuf) -> Result<Secret, Error> {
    let unreadable = |source| Error::Unreadable { path: path.clone(), source };
    let file = match private::open(&path) {
        Ok(file) => file,
        Err(Refused::Io(source)) => return Err(unreadable(source)),
        Err(Refused::Exposed { .. }) => return Err(Error::Open { path }),
    };
    let mut text = String::new();
    file.take(CODE_BYTES_MAX).read_to_string(&mut text).map_err(unreadable)?;
    let mut salt = [0; 16];
    getrandom::fill(&mut salt).expect("the operating system provides randomness");
    Secret::new(text.trim(), salt).map_err(|source| Error::Bad { path: path.clone(), source })
}
