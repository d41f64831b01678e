//! A connection as the door sees it: bytes in, bytes out, with TLS or without.
//!
//! An idle plain connection is its socket and nothing else. TLS is boxed, so that only those who use it pay for it.

use std::{
    io,
    mem::MaybeUninit,
    pin::{Pin, pin},
    task::{Context, Poll, Waker, ready},
};

use tokio::{
    io::{AsyncRead, AsyncWrite, Interest, ReadBuf},
    net::TcpStream,
};
use tokio_rustls::server::TlsStream;

/// Bytes read at once.
const READ_BYTES: usize = 4096;

/// The way to one client.
pub(super) enum Socket {
    /// As it is.
    Plain(TcpStream),
    /// Encrypted.
    Tls(Box<Encrypted>),
}

/// A TLS connection.
pub(super) struct Encrypted {
    stream: TlsStream<TcpStream>,
    /// Bytes of the caller's that are encrypted and not all with the system.
    unsent: usize,
}

impl From<TlsStream<TcpStream>> for Socket {
    fn from(stream: TlsStream<TcpStream>) -> Self {
        Self::Tls(Box::new(Encrypted { stream, unsent: 0 }))
    }
}

impl Socket {
    /// Appends what has come; how many bytes, 0 at the end. Nothing is allocated while nothing has come.
    pub(super) fn poll_receive(&mut self, cx: &mut Context<'_>, into: &mut Vec<u8>) -> Poll<io::Result<usize>> {
        let mut bytes = [const { MaybeUninit::uninit() }; READ_BYTES];
        let mut read = ReadBuf::uninit(&mut bytes);
        ready!(self.stream().poll_read(cx, &mut read))?;
        into.extend_from_slice(read.filled());
        Poll::Ready(Ok(read.filled().len()))
    }

    /// Sends the beginning of `bytes`; how many of them are with the system. Until then it must be called with the same
    /// bytes again, and more may follow them: what was encrypted cannot be taken back.
    pub(super) fn poll_send(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self {
            Self::Plain(stream) => Pin::new(stream).poll_write(cx, bytes),
            Self::Tls(tls) => {
                if tls.unsent == 0 {
                    tls.unsent = ready!(Pin::new(&mut tls.stream).poll_write(cx, bytes))?;
                }
                ready!(Pin::new(&mut tls.stream).poll_flush(cx))?;
                Poll::Ready(Ok(std::mem::take(&mut tls.unsent)))
            }
        }
    }

    /// As [`poll_send`](Self::poll_send), once, and nobody is woken later; `None` if nothing can be sent now.
    pub(super) fn try_send(&mut self, bytes: &[u8]) -> Option<usize> {
        match self.poll_send(&mut Context::from_waker(Waker::noop()), bytes) {
            Poll::Ready(Ok(sent)) => Some(sent),
            Poll::Ready(Err(_)) | Poll::Pending => None,
        }
    }

    /// Whether the other side sends nothing more, as far as is known without reading what it has sent.
    pub(super) fn has_gone(&self) -> bool {
        let stream = match self {
            Self::Plain(stream) => stream,
            Self::Tls(tls) => tls.stream.get_ref().0,
        };
        match pin!(stream.ready(Interest::READABLE)).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(Ok(ready)) => ready.is_read_closed(),
            Poll::Ready(Err(_)) => true,
            Poll::Pending => false,
        }
    }

    fn stream(&mut self) -> Pin<&mut dyn Stream> {
        match self {
            Self::Plain(stream) => Pin::new(stream),
            Self::Tls(tls) => Pin::new(&mut tls.stream),
        }
    }
}

/// What both are.
trait Stream: AsyncRead + AsyncWrite + Unpin {}

impl<S: AsyncRead + AsyncWrite + Unpin> Stream for S {}

impl AsyncRead for Socket {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        self.get_mut().stream().poll_read(cx, buffer)
    }
}

/// For the handshake and the goodbye; a session uses [`Socket::poll_send`], which knows what has left.
impl AsyncWrite for Socket {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.get_mut().stream().poll_write(cx, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.get_mut().stream().poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.get_mut().stream().poll_shutdown(cx)
    }
}
