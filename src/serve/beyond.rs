//! Beyond loopback: a listener that others can reach is opened only where somebody has credentials for it. Without any, nobody
//! could come in anyway, so it would be a door for attackers alone; who opens it meant to do something else first.
//!
//! | listener | beyond loopback it wants |
//! |---|---|
//! | MQTT | a device or an account with a password; nobody comes in without one, on any address |
//! | HTTP | `http.tokens = "required"` (checked with the configuration), and a token |

use std::{net::SocketAddr, path::PathBuf};

use crate::data::DataFolder;

/// Why the hub is not started. Ends the program with the code for a mistake in the configuration.
#[derive(Debug, thiserror::Error)]
pub enum Unguarded {
    /// Nobody has a password.
    #[error(
        "mqtt.listen (--mqtt) is {address}, beyond loopback (127.0.0.0/8, ::1), and neither a device nor an account has a password; give \
         one first with: truetwin device add NAME --data {}",
        folder.display()
    )]
    Mqtt {
        /// Where it would listen.
        address: SocketAddr,
        /// The data folder.
        folder: PathBuf,
    },
    /// Nobody has a token.
    #[error(
        "http.listen (--http) is {address}, beyond loopback (127.0.0.0/8, ::1), and there is no token; make one first with: \
         truetwin token add NAME --data {}",
        folder.display()
    )]
    Http {
        /// Where it would listen.
        address: SocketAddr,
        /// The data folder.
        folder: PathBuf,
    },
}

/// Whether these listeners may be opened.
///
/// # Errors
/// [`Unguarded`].
pub(super) fn check(mqtt: SocketAddr, http: SocketAddr, data: &DataFolder) -> Result<(), Unguarded> {
    let folder = || data.path().to_owned();
    if !mqtt.ip().is_loopback() && data.credentials().list().is_empty() && data.accounts().list().is_empty() {
        return Err(Unguarded::Mqtt { address: mqtt, folder: folder() });
    }
    if !http.ip().is_loopback() && data.tokens().list().is_empty() {
        return Err(Unguarded::Http { address: http, folder: folder() });
    }
    Ok(())
}
