//! The door: the one listener that devices connect to.
//!
//! ```text
//! listen     accepts, bounds the sockets that have not said who they are
//! socket     bytes in and out, with TLS or without
//! handshake  TLS, the first packet; in a task of its own, gone when the client is in
//! entry      CONNECT -> who, what its role offers, CONNACK
//! guesses    slows down who guesses passwords
//! rate       slows down who sends too fast
//! session    one hand-written poll for each connection: no timer and no buffer while it is idle
//! device     what a device's packets mean
//! account    what a service account's packets mean
//! sweep      one task that ends the connections that fell silent
//! rights     which topics are whose
//! codec      bytes <-> packets
//! ```
//! What comes in is a device's or an attacker's: whatever it is, one connection at most is closed, with the code that
//! says why, and counted.

mod account;
pub mod codec;
mod device;
mod entry;
mod guesses;
mod handshake;
mod listen;
mod rate;
mod rights;
mod session;
mod socket;
mod sweep;

pub(super) use self::{guesses::Guesses, listen::listen, sweep::sweep};

use std::{sync::Arc, time::Duration};

use self::socket::Socket;
use super::core::Core;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// How long a closed device may take to read why.
const FAREWELL_WAIT: Duration = Duration::from_secs(1);

/// Bytes of a closed device that are still read and thrown away.
const FAREWELL_READ_BYTES_MAX: usize = 64 << 10;

/// Says goodbye in a task of its own, which holds up nobody.
fn spawn_farewell(core: &Arc<Core>, socket: Socket, last: Vec<u8>) {
    let shared = core.clone();
    core.tasks.spawn(async move { farewell(&shared, socket, &last).await });
}

/// Writes the last bytes and closes in such a way that they arrive: a socket closed with unread bytes in it is reset,
/// and the device would never see the code that says why.
async fn farewell(core: &Core, mut socket: Socket, last: &[u8]) {
    let writing = async { socket.write_all(last).await.is_ok() && socket.shutdown().await.is_ok() };
    if !matches!(tokio::time::timeout(FAREWELL_WAIT, writing).await, Ok(true)) {
        return;
    }
    // As many may take their time as may come in at once; the others are closed as it comes.
    let Ok(_turn) = core.farewells.try_acquire() else { return };
    let reading = async {
        let mut thrown_away = [0; 512];
        let mut bytes = 0;
        while bytes < FAREWELL_READ_BYTES_MAX {
            match socket.read(&mut thrown_away).await {
                Ok(0) | Err(_) => return,
                Ok(read) => bytes += read,
            }
        }
    };
    tokio::select! {
        () = core.stopping.cancelled() => {} // what is on its way then arrives or not
        () = reading => {}
        () = tokio::time::sleep(FAREWELL_WAIT) => {}
    }
}
