//! Why a recording cannot be replayed.

use std::io;

use super::LINE_BYTES_MAX;
use crate::{property::DeviceId, recording::form::Unreadable};

/// Why a recording cannot be replayed. The text names the file, the line and what is wrong.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It cannot be read.
    #[error("cannot read the recording {file}")]
    Io {
        /// The file as it was named.
        file: String,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// There is nothing in it.
    #[error("{file} is empty: no recording")]
    Empty {
        /// The file.
        file: String,
    },
    /// It does not begin as a recording does.
    #[error("{file}:1: no recording begins so ({problem}); one is made with: truetwin serve --record FILE")]
    NoRecording {
        /// The file.
        file: String,
        /// What is wrong with its first line.
        problem: String,
    },
    /// A line that cannot be read.
    #[error("{file}:{line}: {problem}")]
    Damaged {
        /// The file.
        file: String,
        /// The line, from 1.
        line: u64,
        /// What is wrong with it.
        problem: Unreadable,
    },
    /// A line that is too long for any.
    #[error("{file}:{line}: the line has more than {LINE_BYTES_MAX} bytes")]
    TooLong {
        /// The file.
        file: String,
        /// The line.
        line: u64,
    },
    /// A device that the recording leaves out on purpose.
    #[error("{file}: {asked} was not recorded ({why}); recorded is {}", if known.is_empty() { "nothing".to_owned() } else { known.join(", ") })]
    LeftOut {
        /// The file.
        file: String,
        /// Which was asked for.
        asked: DeviceId,
        /// Why it is not there.
        why: String,
        /// Those that are.
        known: Vec<String>,
    },
    /// A device that the recording does not know.
    #[error("{file}: no device {asked} is in the recording; there is {}", if known.is_empty() { "none".to_owned() } else { known.join(", ") })]
    UnknownDevice {
        /// The file.
        file: String,
        /// Which was asked for.
        asked: DeviceId,
        /// Those that there are.
        known: Vec<String>,
    },
}
