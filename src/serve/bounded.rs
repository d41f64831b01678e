//! A listener that holds so many connections at most: one more waits in the system's queue until another ends. Another machine has
//! at most half of them.
//!
//! Without it a client that opens connections and says nothing takes the process's file descriptors, and with them
//! devices' connections and the control socket: axum has no limit of its own.

use std::{
    io,
    net::SocketAddr,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use axum::serve::Listener;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::{TcpListener, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore},
};

use crate::peer::{Seat, Seats};

/// The listener.
pub(super) struct Bounded {
    listener: TcpListener,
    places: Arc<Semaphore>,
    seats: Seats,
    per_address_max: usize,
}

impl Bounded {
    /// Holds at most `connections_max` connections, of which at most half come from one other machine.
    pub(super) fn new(listener: TcpListener, connections_max: usize) -> Self {
        let per_address_max = connections_max.div_ceil(2);
        Self { listener, places: Arc::new(Semaphore::new(connections_max)), seats: Seats::default(), per_address_max }
    }
}

impl Listener for Bounded {
    type Io = Placed;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Placed, SocketAddr) {
        let place = self.places.clone().acquire_owned().await.expect("the semaphore is never closed");
        loop {
            let (stream, address) = Listener::accept(&mut self.listener).await;
            // Another machine alone cannot keep all others out; what it has too many is closed.
            let max = if address.ip().to_canonical().is_loopback() { usize::MAX } else { self.per_address_max };
            let Some(seat) = self.seats.take(address.ip().into(), max) else { continue };
            // Without it each answer on a stream would wait some 40 ms for the client's delayed acknowledgement.
            let _without_it_it_is_only_slower = stream.set_nodelay(true);
            return (Placed { stream, _place: place, _seat: seat }, address);
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

/// A connection with its place, which is free again when it ends.
pub(super) struct Placed {
    stream: TcpStream,
    _place: OwnedSemaphorePermit,
    _seat: Seat,
}

impl AsyncRead for Placed {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl AsyncWrite for Placed {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, bufs)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncWriteExt;

    use super::*;

    #[tokio::test]
    async fn one_more_than_allowed_waits_until_another_ends() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("a bound listener");
        let mut bounded = Bounded::new(listener, 1);
        let _first_client = TcpStream::connect(address).await.expect("there is a place");
        let second_client = TcpStream::connect(address).await.expect("the system's queue takes it");
        let (first, _) = bounded.accept().await;
        let mut second = Box::pin(bounded.accept());
        assert!(futures_poll(&mut second).await.is_none(), "no place is free");
        drop(first);
        let (mut second, _) = second.await;
        second.write_all(b"hello").await.expect("it is served");
        second_client.readable().await.expect("and hears");
    }

    /// Polls a future once.
    async fn futures_poll<F: Future + Unpin>(future: &mut F) -> Option<F::Output> {
        std::future::poll_fn(|cx| match Pin::new(&mut *future).poll(cx) {
            Poll::Ready(output) => Poll::Ready(Some(output)),
            Poll::Pending => Poll::Ready(None),
        })
        .await
    }
}
