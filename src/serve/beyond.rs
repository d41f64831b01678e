//! Beyond loopback: a listener that others can reach is opened only where somebody has credentials for it. Without any, nobody
//! could come in anyway, so it would be a door for attackers alone; who opens it meant to do something else first.
//!
//! | listener | beyond loopback it wants |
//! |---|---|
//! | MQTT | a device or an account with a password; nobody comes in without one, on any address |
//! | HTTP | `http.tokens = "required"` (checked with the configuration), and a token |

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
};

use crate::data::DataFolder;

/// Why the hub is not started. Ends the program with the code for a mistake in the configuration.
#[derive(Debug, thiserror::Error)]
pub enum Unguarded {
    /// Nobody has a password.
    #[error(
        "mqtt.listen (--mqtt) is {address}, beyond loopback (127.0.0.0/8, ::1), and neither a device nor an account has a password; give \
         one first with: truetwin device add NAME --data {0} (or truetwin account add NAME --read PATTERN --data {0})",
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

/// Those of these listeners that may not be opened. `users`: how many devices and accounts have a password; `tokens`: how many
/// bearer tokens there are.
pub(super) fn unguarded(
    mqtt: SocketAddr,
    http: SocketAddr,
    users: usize,
    tokens: usize,
    folder: &Path,
) -> Vec<Unguarded> {
    let folder = || folder.to_owned();
    let of_mqtt = (!mqtt.ip().is_loopback() && users == 0).then(|| Unguarded::Mqtt { address: mqtt, folder: folder() });
    let of_http =
        (!http.ip().is_loopback() && tokens == 0).then(|| Unguarded::Http { address: http, folder: folder() });
    of_mqtt.into_iter().chain(of_http).collect()
}

/// Whether these listeners may be opened.
///
/// # Errors
/// [`Unguarded`], the first.
pub(super) fn check(mqtt: SocketAddr, http: SocketAddr, data: &DataFolder) -> Result<(), Unguarded> {
    let users = data.credentials().list().len() + data.accounts().list().len();
    unguarded(mqtt, http, users, data.tokens().list().len(), data.path()).into_iter().next().map_or(Ok(()), Err)
}
