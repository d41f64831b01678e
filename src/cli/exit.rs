//! How a command ends.

use std::{fmt::Write as _, io::ErrorKind, process::ExitCode};

use super::listen;
use crate::{backup, broker, config, control, data, journal, recorder, serve, sim};

/// The exit codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// Done, and confirmed.
    Success,
    /// The operation was not confirmed, the demo disagreed, or not all of a replay could be compared.
    NotConfirmed,
    /// The command line, the configuration, or a file that is damaged, of a newer version or open to others: another try ends so,
    /// too, until somebody has mended it.
    Usage,
    /// No hub is running.
    NoHub,
    /// The address or the data folder is taken.
    Taken,
    /// Anything else: a mistake in here, or a system that refuses what it usually gives.
    Internal,
    /// A replay decides otherwise than was recorded.
    Differs,
}

/// All codes with their meaning, for `--help`.
const TABLE: &[(Exit, &str)] = &[
    (Exit::Success, "done, and confirmed"),
    (
        Exit::NotConfirmed,
        "the operation or an endpoint was not confirmed, the demo disagreed, or not all of a replay could be compared",
    ),
    (Exit::Usage, "usage, configuration, or a file that cannot be used as it is; its owner mends that"),
    (Exit::NoHub, "no hub is running"),
    (Exit::Taken, "the address or the data folder is taken"),
    (Exit::Internal, "internal, or the system refused something"),
    (Exit::Differs, "a replay decides otherwise than was recorded"),
];

impl Exit {
    /// The number.
    pub fn code(self) -> u8 {
        match self {
            Self::Success => 0,
            Self::NotConfirmed => 1,
            Self::Usage => 2,
            Self::NoHub => 3,
            Self::Taken => 4,
            Self::Internal => 5,
            Self::Differs => 6,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        exit.code().into()
    }
}

/// An error of the command line itself, with the code to end with.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    /// How to end.
    pub exit: Exit,
    /// What was wrong, and what is allowed.
    pub message: String,
}

/// With which code an error ends the program: that of the first cause that has one, else [`Exit::Internal`].
pub fn exit_of(error: &anyhow::Error) -> Exit {
    error.chain().find_map(known).unwrap_or(Exit::Internal)
}

fn known(error: &(dyn std::error::Error + 'static)) -> Option<Exit> {
    if let Some(failure) = error.downcast_ref::<Failure>() {
        return Some(failure.exit);
    }
    if error.is::<config::Error>() {
        return Some(Exit::Usage);
    }
    if let Some(error) = error.downcast_ref::<serve::Error>() {
        return match error {
            serve::Error::Unguarded(_) | serve::Error::SpokenCode(_) => Some(Exit::Usage),
            // A setting out of its range is refused with the configuration already.
            serve::Error::Broker(broker::Error::Tls(_) | broker::Error::Setting(_)) => Some(Exit::Usage),
            serve::Error::Journal(error) => known(error),
            serve::Error::Broker(broker::Error::Listener(_) | broker::Error::Bus(_))
            | serve::Error::Actors(_)
            | serve::Error::Data(_)
            | serve::Error::Control(_)
            | serve::Error::Recovery
            | serve::Error::Recording(_)
            | serve::Error::Recorder
            | serve::Error::Audit
            | serve::Error::Listener(_)
            | serve::Error::Fleet(_) => None,
        };
    }
    if let Some(error) = error.downcast_ref::<journal::Error>() {
        return Some(if matches!(error, journal::Error::Thread(_)) { Exit::Internal } else { Exit::Usage });
    }
    if error.is::<broker::TlsError>() || error.is::<data::AuthorityError>() {
        return Some(Exit::Usage);
    }
    if let Some(error) = error.downcast_ref::<backup::Error>() {
        return match error {
            backup::Error::Data(error) => known(error),
            backup::Error::Journal(error) => known(error),
            backup::Error::NoBackup { .. } | backup::Error::Damaged { .. } => Some(Exit::Usage),
            backup::Error::Closed | backup::Error::Disk { .. } => None,
        };
    }
    if let Some(error) = error.downcast_ref::<sim::Error>() {
        return match error {
            sim::Error::Device(_) | sim::Error::Speed(_) | sim::Error::Control(..) => Some(Exit::Usage),
            sim::Error::Start(_) | sim::Error::Output(_) => None,
        };
    }
    if let Some(error) = error.downcast_ref::<recorder::Error>() {
        return Some(if matches!(error, recorder::Error::Thread(_)) { Exit::Internal } else { Exit::Usage });
    }
    if let Some(error) = error.downcast_ref::<listen::Error>() {
        return Some(if error.is_taken() { Exit::Taken } else { Exit::Usage });
    }
    if let Some(error) = error.downcast_ref::<control::Error>() {
        return Some(match error {
            control::Error::NoHub { .. } => Exit::NoHub,
            control::Error::InTheWay { .. } => Exit::Usage,
            control::Error::Io { source, .. } if names_the_wrong_place(source.kind()) => Exit::Usage,
            control::Error::Io { .. } | control::Error::Unreadable { .. } => Exit::Internal,
        });
    }
    error.downcast_ref::<data::Error>().map(|error| match error {
        data::Error::NoHub { .. } => Exit::NoHub,
        data::Error::Taken { .. } => Exit::Taken,
        // A folder that cannot be one is the wrong folder.
        data::Error::Io { doing, source, .. }
            if *doing == data::MAKE_FOLDER || names_the_wrong_place(source.kind()) =>
        {
            Exit::Usage
        }
        data::Error::NoPlace
        | data::Error::Damaged { .. }
        | data::Error::Newer { .. }
        | data::Error::Exposed { .. }
        | data::Error::InTheWay { .. }
        | data::Error::DeviceExists(_)
        | data::Error::UnknownDevice(_)
        | data::Error::TooManyDevices
        | data::Error::NameOfAccount(_)
        | data::Error::NameOfDevice(_)
        | data::Error::AccountExists(_)
        | data::Error::UnknownAccount(_)
        | data::Error::TooManyAccounts
        | data::Error::Password(_)
        | data::Error::EndpointExists(_)
        | data::Error::UnknownEndpoint(_)
        | data::Error::TooManyEndpoints
        | data::Error::TokenExists(_)
        | data::Error::UnknownToken(_)
        | data::Error::TooManyTokens
        | data::Error::UrlTooLong => Exit::Usage,
        data::Error::Io { .. } | data::Error::Closed { .. } | data::Error::NoRandomness(_) => Exit::Internal,
    })
}

/// Whether a file's error says that the path was the mistake, and not the disk.
fn names_the_wrong_place(kind: ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::NotADirectory
            | ErrorKind::AlreadyExists
            | ErrorKind::PermissionDenied
            | ErrorKind::ReadOnlyFilesystem
            | ErrorKind::InvalidFilename
    )
}

/// The codes, as `--help` ends with them.
pub(super) fn help() -> String {
    let mut text = "Exit codes:".to_owned();
    for (exit, meaning) in TABLE {
        write!(text, "\n  {}  {meaning}", exit.code()).expect("writing to a string does not fail");
    }
    text
}

#[cfg(test)]
mod tests {
    use anyhow::Context as _;

    use super::*;

    #[test]
    fn an_error_has_its_code_however_deep_it_lies() {
        let taken = data::Error::Taken { path: "d".into(), pid: None };
        assert_eq!(exit_of(&anyhow::Error::new(taken).context("cannot start")), Exit::Taken);
        let no_hub: anyhow::Result<()> = Err(control::Error::NoHub { folder: "d".into() }).context("cannot set");
        assert_eq!(exit_of(&no_hub.expect_err("it is one")), Exit::NoHub);
        assert_eq!(exit_of(&anyhow::anyhow!("something else")), Exit::Internal);
    }

    #[test]
    fn the_help_and_the_module_document_list_the_codes() {
        for (code, (exit, meaning)) in TABLE.iter().enumerate() {
            assert_eq!(usize::from(exit.code()), code);
            assert!(help().contains(&format!("\n  {code}  {meaning}")));
            let row = format!("//! | {code} | {meaning} |");
            assert!(include_str!("mod.rs").contains(&row), "{row}");
        }
    }
}
