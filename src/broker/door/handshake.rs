//! From a socket to a session: TLS, the first packet; what that is answered is decided in `entry`.

use std::{hash::BuildHasher as _, net::IpAddr, sync::Arc, time::Duration};

use rustls::server::Acceptor;
use tokio::{
    io::AsyncReadExt,
    net::TcpStream,
    time::{Instant, timeout_at},
};
use tokio_rustls::LazyConfigAcceptor;

use super::{
    Farewell,
    codec::{
        ConnectError, Reason, decode_connect,
        encode::{self, ReturnCode},
    },
    entry::{Whence, admit},
    listen::Place,
    session,
    socket::Socket,
};
use crate::broker::{MqttVersion, core::Core, counters::count, tls::Certificate};

/// Bytes that a CONNECT is first read into; most fit.
const FIRST_READ_BYTES: usize = 512;

/// The first byte of a TLS connection: a record of the handshake (RFC 8446, 5.1). A CONNECT begins with 0x10.
const TLS_HANDSHAKE: u8 = 0x16;

/// Lets a device in, or says why not and closes. `place` is its place among those that have not said who they are.
pub(super) async fn run(core: Arc<Core>, socket: TcpStream, from: IpAddr, place: Place) {
    if let Err(error) = socket.set_nodelay(true) {
        tracing::debug!(%error, "a socket ended before it was used"); // Nagle would cost 40 ms an answer
        return;
    }
    let whole = tokio::select! {
        () = core.stopping.cancelled() => return,
        whole = hear(&core, socket) => whole,
    };
    let Some((socket, buffer, whole)) = whole else { return };
    let answer = match whole {
        Ok(used) => match decode_connect(&buffer[..used], core.settings.connect_bytes_max) {
            Ok(Some((connect, _))) => {
                let from = Whence {
                    address: from,
                    peer: from.into(),
                    origin: place.handshakes().origins.hash_one((from, connect.client_id)),
                    plain: matches!(socket, Socket::Plain(_)),
                };
                drop(place);
                let judged = tokio::select! {
                    () = core.stopping.cancelled() => return,
                    judged = admit(&core, &connect, from) => judged,
                };
                judged.map(|(conn, welcome)| (conn, welcome, used))
            }
            Ok(None) => return count(&core.totals.refused_malformed), // cannot be: it was whole
            Err(error) => Err(refuse_unreadable(&core, &buffer, error)),
        },
        Err(error) => Err(refuse_unreadable(&core, &buffer, error)),
    };
    match answer {
        Ok((conn, welcome, used)) => {
            conn.state().put(|out| out.extend_from_slice(&welcome));
            let mut buffer = buffer;
            session::spawn(core, conn, socket, buffer.split_off(used));
        }
        Err(refusal) => Farewell::of_stranger(refusal).spawn(&core, socket),
    }
}

/// A socket, what was read from it, and the length of its CONNECT or why it is none.
type Heard = (Socket, Vec<u8>, Result<usize, ConnectError>);

/// TLS, if that is what comes, and then the first packet. `None`: there is nobody to answer.
async fn hear(core: &Arc<Core>, socket: TcpStream) -> Option<Heard> {
    let connect_within = Duration::from_millis(core.settings.handshake_ms);
    let by = Instant::now() + connect_within;
    let (mut socket, by) = match &core.certificate {
        None => (Socket::Plain(socket), by),
        Some(certificate) => {
            let mut first = [0];
            match timeout_at(by, socket.peek(&mut first)).await {
                Ok(Ok(1)) => {}
                Ok(Ok(_) | Err(_)) | Err(_) => {
                    count(&core.totals.refused_silent);
                    return None;
                }
            }
            if first[0] == TLS_HANDSHAKE {
                (encrypt(core, certificate, socket).await?, Instant::now() + connect_within)
            } else {
                (Socket::Plain(socket), by)
            }
        }
    };
    let mut buffer = Vec::with_capacity(FIRST_READ_BYTES);
    let whole = match timeout_at(by, read_connect(core, &mut socket, &mut buffer)).await {
        Ok(Ok(used)) => Ok(used),
        Ok(Err(Some(error))) => Err(error),
        Ok(Err(None)) | Err(_) => {
            count(&core.totals.refused_silent);
            return None;
        }
    };
    Some((socket, buffer, whole))
}

/// The TLS handshake.
async fn encrypt(core: &Arc<Core>, certificate: &Arc<Certificate>, socket: TcpStream) -> Option<Socket> {
    let handshake = async {
        let mut acceptor = LazyConfigAcceptor::new(Acceptor::default(), socket);
        match (&mut acceptor).await {
            Ok(start) => {
                let config = certificate.current(&core.totals).await;
                start.into_stream(config).into_fallible().await.map_err(|(error, socket)| (error, Some(socket)))
            }
            Err(error) => Err((error, acceptor.take_io())),
        }
    };
    match tokio::time::timeout(Duration::from_millis(core.settings.tls_handshake_ms), handshake).await {
        Ok(Ok(stream)) => {
            count(&core.totals.tls_accepted);
            Some(stream.into())
        }
        Ok(Err((error, socket))) => {
            count(&core.totals.tls_failed);
            tracing::debug!(%error, "a TLS handshake failed");
            if let Some(socket) = socket {
                // The alert that says why is written, and has to arrive.
                Farewell::of_stranger(Vec::new()).spawn(core, Socket::Plain(socket));
            }
            None
        }
        Err(_) => {
            count(&core.totals.refused_silent);
            None
        }
    }
}

/// Reads until the first packet is whole; its bytes. `Err(None)`: the socket ended before.
async fn read_connect(core: &Core, socket: &mut Socket, buffer: &mut Vec<u8>) -> Result<usize, Option<ConnectError>> {
    loop {
        if let Some((_, used)) = decode_connect(buffer, core.settings.connect_bytes_max).map_err(Some)? {
            return Ok(used);
        }
        match socket.read_buf(buffer).await {
            Ok(0) | Err(_) => return Err(None),
            Ok(_) => {}
        }
    }
}

/// The answer to a first packet that is no CONNECT to be judged; empty if it must not be answered.
fn refuse_unreadable(core: &Core, buffer: &[u8], error: ConnectError) -> Vec<u8> {
    let mut answer = Vec::new();
    match error {
        ConnectError::Version { later } => {
            count(&core.totals.refused_version);
            if later {
                encode::refusal_v5(&mut answer, Reason::UnsupportedVersion);
            } else {
                encode::refusal_v3(&mut answer, ReturnCode::UnacceptableVersion);
            }
        }
        ConnectError::Bad(bad, version) => {
            let too_large = bad.reason == Reason::PacketTooLarge;
            let totals = &core.totals;
            count(if too_large { &totals.refused_connect_bytes } else { &totals.refused_malformed });
            let version = version.or_else(|| version_of(buffer).filter(|_| too_large));
            tracing::debug!(what = bad.what, "a first packet was no readable CONNECT");
            if version == Some(MqttVersion::V5) {
                encode::refusal_v5(&mut answer, bad.reason); // 3.1.1 says to close without a word (3.1.4)
            }
        }
    }
    answer
}

/// The version of a CONNECT that is too large to be read, if it is among the bytes that came: it stands right at the front (3.1.2).
fn version_of(connect: &[u8]) -> Option<MqttVersion> {
    let length_bytes = 1 + connect.get(1..)?.iter().position(|byte| *byte < 0x80)?;
    match connect.get(1 + length_bytes..)?.strip_prefix(b"\0\x04MQTT")?.first()? {
        4 => Some(MqttVersion::V3_1_1),
        5 => Some(MqttVersion::V5),
        _ => None,
    }
}
