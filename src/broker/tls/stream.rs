//! A TLS connection that holds no buffer while nothing is on its way: rustls' session, and the bytes are ours.
//!
//! rustls' own buffers, which tokio-rustls uses, stay for as long as the connection does: 4 KiB for the next record
//! (`DeframerVecBuffer::prepare_read`, rustls 0.23), more than all its keys. Its unbuffered API leaves them to who uses it. Knows
//! sockets and records, nothing of MQTT.

use std::{
    future::poll_fn,
    io,
    mem::{MaybeUninit, take},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use rustls::{
    ServerConfig,
    server::UnbufferedServerConnection,
    unbuffered::{ConnectionState, EncodeError, EncryptError, InsufficientSizeError, UnbufferedStatus},
};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
};

/// Bytes read at once.
const READ_BYTES: usize = 4096;

/// Bytes that came and are no whole record, or no whole message of the handshake: the longest record (RFC 5246, 6.2.3; those of
/// RFC 8446 are shorter). A ClientHello is a tenth of that at most; a client that needs more is refused.
const INCOMING_BYTES_MAX: usize = 5 + (16 << 10) + 2048;

/// Bytes of the caller's that are encrypted at once: one record's (RFC 8446, 5.1).
const RECORD_BYTES_MAX: usize = 16 << 10;

/// A connection whose handshake is done; the server's side.
pub(in crate::broker) struct TlsStream {
    socket: TcpStream,
    session: UnbufferedServerConnection,
    /// Came and is not a whole record.
    incoming: Vec<u8>,
    /// Decrypted and not yet read.
    plain: Vec<u8>,
    /// Encrypted and not yet with the system.
    outgoing: Vec<u8>,
    phase: Phase,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Open,
    /// The other side has said that it sends nothing more.
    Closed,
    /// It did what TLS does not allow: nothing can be read or encrypted any more.
    Broken,
}

/// What is to be encrypted.
enum Say<'a> {
    Bytes(&'a [u8]),
    Goodbye,
}

impl TlsStream {
    /// The whole handshake, without a limit of time.
    ///
    /// # Errors
    /// What went wrong, and the socket: the alert that says so to the client is with the system, if it took it.
    pub(in crate::broker) async fn accept(
        config: Arc<ServerConfig>,
        socket: TcpStream,
    ) -> Result<Self, (io::Error, TcpStream)> {
        let session = match UnbufferedServerConnection::new(config) {
            Ok(session) => session,
            Err(error) => return Err((io::Error::other(error), socket)),
        };
        let (incoming, plain, outgoing) = (Vec::new(), Vec::new(), Vec::new());
        let mut this = Self { socket, session, incoming, plain, outgoing, phase: Phase::Open };
        match poll_fn(|cx| this.poll_handshake(cx)).await {
            Ok(()) => Ok(this),
            Err(error) => {
                let _the_client_has_gone = poll_fn(|cx| this.poll_drain(cx)).await;
                Err((error, this.socket))
            }
        }
    }

    /// The socket below.
    pub(in crate::broker) fn socket(&self) -> &TcpStream {
        &self.socket
    }

    fn poll_handshake(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            ready!(self.poll_drain(cx))?;
            if !self.session.is_handshaking() {
                return Poll::Ready(Ok(()));
            }
            if ready!(self.poll_take_in(cx))? == 0 || self.phase == Phase::Closed {
                return Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into()));
            }
        }
    }

    /// Reads once, and decrypts all records that are whole then; how many bytes came, 0 at the end.
    fn poll_take_in(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let mut bytes = [const { MaybeUninit::uninit() }; READ_BYTES];
        let mut read = ReadBuf::uninit(&mut bytes);
        ready!(Pin::new(&mut self.socket).poll_read(cx, &mut read))?;
        let came = read.filled().len();
        if came > 0 {
            self.incoming.extend_from_slice(read.filled());
            self.turn(None)?;
            if self.incoming.len() >= INCOMING_BYTES_MAX {
                self.phase = Phase::Broken;
                let problem = format!("a TLS message of more than {INCOMING_BYTES_MAX} bytes");
                return Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidData, problem)));
            }
        }
        Poll::Ready(Ok(came))
    }

    /// Gives the system what is encrypted.
    fn poll_drain(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.outgoing.is_empty() {
            let sent = ready!(Pin::new(&mut self.socket).poll_write(cx, &self.outgoing))?;
            if sent == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            discard(&mut self.outgoing, sent);
        }
        Poll::Ready(Ok(()))
    }

    /// Lets the session do all that it can with what came, and then say something, if its handshake is so far. What it says
    /// stands in `outgoing`, also when it fails: the alert that says why.
    fn turn(&mut self, say: Option<Say<'_>>) -> io::Result<()> {
        if self.phase == Phase::Broken {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        loop {
            let UnbufferedStatus { discard: mut used, state, .. } =
                self.session.process_tls_records(&mut self.incoming);
            let goes_on = match state {
                Ok(ConnectionState::ReadTraffic(mut traffic)) => {
                    while let Some(Ok(record)) = traffic.next_record() {
                        used += record.discard;
                        self.plain.extend_from_slice(record.payload);
                    }
                    true
                }
                Ok(ConnectionState::EncodeTlsData(mut record)) => {
                    append(&mut self.outgoing, |into| Ok(record.encode(into)?))?;
                    true
                }
                // `outgoing` keeps it, and lets nothing go before it.
                Ok(ConnectionState::TransmitTlsData(record)) => {
                    record.done();
                    true
                }
                Ok(ConnectionState::PeerClosed) => {
                    self.phase = Phase::Closed;
                    true
                }
                Ok(ConnectionState::WriteTraffic(mut traffic)) => {
                    match &say {
                        Some(Say::Bytes(bytes)) => {
                            append(&mut self.outgoing, |into| Ok(traffic.encrypt(bytes, into)?))?;
                        }
                        Some(Say::Goodbye) => append(&mut self.outgoing, |into| Ok(traffic.queue_close_notify(into)?))?,
                        None => {}
                    }
                    false
                }
                // Early data are not offered; and what a later rustls adds nobody asked for.
                Ok(ConnectionState::BlockedHandshake | ConnectionState::Closed | _) => false,
                Err(error) => {
                    self.phase = Phase::Broken;
                    self.append_alert()?;
                    return Err(io::Error::new(io::ErrorKind::InvalidData, error));
                }
            };
            discard(&mut self.incoming, used);
            if !goes_on {
                return Ok(());
            }
        }
    }

    /// What a session that has failed still has to say. It must not see again what it failed at, and does not look at what came
    /// before all is said.
    fn append_alert(&mut self) -> io::Result<()> {
        while self.session.wants_write() {
            let UnbufferedStatus { state: Ok(ConnectionState::EncodeTlsData(mut record)), .. } =
                self.session.process_tls_records(&mut [])
            else {
                return Ok(());
            };
            append(&mut self.outgoing, |into| Ok(record.encode(into)?))?;
        }
        Ok(())
    }
}

impl AsyncRead for TlsStream {
    /// At the end without a goodbye it fails: somebody else may have cut it (RFC 8446, 6.1).
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        while this.plain.is_empty() && this.phase == Phase::Open {
            let came = ready!(this.poll_take_in(cx));
            let _tried_once = this.poll_drain(cx); // an alert
            if came? == 0 {
                return Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into()));
            }
        }
        let some = this.plain.len().min(into.remaining());
        into.put_slice(&this.plain[..some]);
        discard(&mut this.plain, some);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for TlsStream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        ready!(this.poll_drain(cx))?;
        let some = &bytes[..bytes.len().min(RECORD_BYTES_MAX)];
        this.turn(Some(Say::Bytes(some)))?;
        let _the_rest_later = this.poll_drain(cx)?;
        Poll::Ready(Ok(some.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.get_mut().poll_drain(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        this.turn(Some(Say::Goodbye))?; // once: rustls knows
        ready!(this.poll_drain(cx))?;
        Pin::new(&mut this.socket).poll_shutdown(cx)
    }
}

/// Takes away the front; what is empty then holds no memory.
fn discard(bytes: &mut Vec<u8>, front: usize) {
    if front >= bytes.len() {
        drop(take(bytes));
    } else {
        bytes.drain(..front);
    }
}

/// Why rustls wrote nothing.
enum Unwritten {
    Needs(usize),
    Never,
}

impl From<EncodeError> for Unwritten {
    fn from(error: EncodeError) -> Self {
        match error {
            EncodeError::InsufficientSize(InsufficientSizeError { required_size }) => Self::Needs(required_size),
            EncodeError::AlreadyEncoded => Self::Never,
        }
    }
}

impl From<EncryptError> for Unwritten {
    fn from(error: EncryptError) -> Self {
        match error {
            EncryptError::InsufficientSize(InsufficientSizeError { required_size }) => Self::Needs(required_size),
            EncryptError::EncryptExhausted => Self::Never,
        }
    }
}

/// Lets rustls write behind what is there; it says how much room it needs.
fn append(to: &mut Vec<u8>, mut write: impl FnMut(&mut [u8]) -> Result<usize, Unwritten>) -> io::Result<()> {
    let (there, mut room) = (to.len(), 0);
    loop {
        to.resize(there + room, 0);
        match write(&mut to[there..]) {
            Ok(written) => {
                to.truncate(there + written);
                return Ok(());
            }
            Err(Unwritten::Needs(bytes)) if bytes > room => room = bytes,
            Err(Unwritten::Needs(_) | Unwritten::Never) => {
                to.truncate(there);
                return Err(io::Error::other("the keys of this TLS connection are used up"));
            }
        }
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test that fails there has said so")]
mod tests;
