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

/// How long somebody who was not let in may take to read why.
const STRANGER_WAIT: Duration = Duration::from_secs(1);

/// Bytes of such a one that are still read and thrown away.
const STRANGER_BYTES_MAX: usize = 64 << 10;

/// How long a client that was in may take to send what it is about to send, and to read why it is closed: as long as it may wait for
/// an acknowledgement.
const CLIENT_WAIT: Duration = Duration::from_secs(5);

/// How a connection is closed.
struct Farewell {
    /// The last bytes to it.
    last: Vec<u8>,
    /// Bytes from it that are still read and thrown away.
    unread_bytes_max: usize,
    /// How long writing may take, and then reading.
    wait: Duration,
}

impl Farewell {
    /// Of somebody who was not let in: little is read of those.
    fn of_stranger(last: Vec<u8>) -> Self {
        Self { last, unread_bytes_max: STRANGER_BYTES_MAX, wait: STRANGER_WAIT }
    }

    /// Of a client that was in. Many send a packet to its end before they read again, also the one that they are closed for:
    /// twice the largest that it may send is read.
    fn of_client(last: Vec<u8>, packet_bytes_max: usize) -> Self {
        Self { last, unread_bytes_max: STRANGER_BYTES_MAX + 2 * packet_bytes_max, wait: CLIENT_WAIT }
    }

    /// Says goodbye in a task of its own, which holds up nobody.
    fn spawn(self, core: &Arc<Core>, socket: Socket) {
        let shared = core.clone();
        core.tasks.spawn(async move { self.say(&shared, socket).await });
    }

    /// Writes the last bytes and closes in such a way that they arrive: a socket closed with unread bytes in it is reset,
    /// and the client would never see the code that says why.
    async fn say(self, core: &Core, mut socket: Socket) {
        let writing = async { socket.write_all(&self.last).await.is_ok() && socket.shutdown().await.is_ok() };
        if !matches!(tokio::time::timeout(self.wait, writing).await, Ok(true)) {
            return;
        }
        // As many may take their time as may come in at once; the others are closed as it comes.
        let Ok(_turn) = core.farewells.try_acquire() else { return };
        let reading = async {
            let mut thrown_away = vec![0; 4096];
            let mut bytes = 0;
            while bytes < self.unread_bytes_max {
                match socket.read(&mut thrown_away).await {
                    Ok(0) | Err(_) => return,
                    Ok(read) => bytes += read,
                }
            }
        };
        tokio::select! {
            () = core.stopping.cancelled() => {} // what is on its way then arrives or not
            () = reading => {}
            () = tokio::time::sleep(self.wait) => {}
        }
    }
}
