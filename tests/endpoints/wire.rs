//! The way between hub and access point: sockets, or pipes that can be cut so that neither end is told.

use std::{
    io,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
};

use futures_util::future::BoxFuture;
use tokio::{
    io::{DuplexStream, copy_bidirectional, duplex},
    net::TcpListener,
    sync::{mpsc, watch},
};
use truetwin::endpoint::{Reach, Wire};

/// Bytes that a pipe holds: as much as a socket's buffers.
const PIPE_BYTES: usize = 64 * 1024;

/// Where an access point waits for connections.
pub(crate) enum Door {
    Socket(TcpListener),
    Tls(TcpListener, tokio_rustls::TlsAcceptor),
    Pipe(mpsc::UnboundedReceiver<DuplexStream>),
}

impl Door {
    /// The next connection; none comes any more when the pipes are gone.
    pub(crate) async fn accept(&mut self) -> Option<Box<dyn Wire>> {
        match self {
            Self::Socket(listener) => {
                let (stream, _) = listener.accept().await.ok()?;
                stream.set_nodelay(true).ok()?;
                Some(Box::new(stream))
            }
            Self::Tls(listener, acceptor) => loop {
                let (stream, _) = listener.accept().await.ok()?;
                // Whoever does not trust it goes again.
                if let Ok(stream) = acceptor.accept(stream).await {
                    return Some(Box::new(stream));
                }
            },
            Self::Pipe(pipes) => Some(Box::new(pipes.recv().await?)),
        }
    }
}

/// Pipes to one access point.
#[derive(Clone)]
pub(crate) struct Pipes {
    to: mpsc::UnboundedSender<DuplexStream>,
    cables: Arc<Mutex<Vec<watch::Sender<bool>>>>,
    is_down: Arc<AtomicBool>,
}

impl Pipes {
    pub(crate) fn new() -> (Self, Door) {
        let (to, door) = mpsc::unbounded_channel();
        (Self { to, cables: Arc::default(), is_down: Arc::default() }, Door::Pipe(door))
    }

    /// Whoever is connected now hears nothing more of the other end, ever, and not that it has gone either.
    pub(crate) fn cut(&self) {
        for cable in self.cables.lock().unwrap().drain(..) {
            cable.send_replace(true);
        }
    }

    /// Whether dials are refused.
    pub(crate) fn down(&self, is_down: bool) {
        self.is_down.store(is_down, Ordering::SeqCst);
    }
}

impl Reach for Pipes {
    fn open<'a>(&'a self, _: &'a str) -> BoxFuture<'a, io::Result<Box<dyn Wire>>> {
        Box::pin(async move {
            if self.is_down.load(Ordering::SeqCst) {
                return Err(io::ErrorKind::ConnectionRefused.into());
            }
            let ((ours, mut near), (mut far, theirs)) = (duplex(PIPE_BYTES), duplex(PIPE_BYTES));
            let (cable, mut is_cut) = watch::channel(false);
            self.cables.lock().unwrap().push(cable);
            tokio::spawn(async move {
                let was_cut = async { is_cut.wait_for(|cut| *cut).await.is_ok() };
                let was_cut = tokio::select! {
                    _ended = copy_bidirectional(&mut near, &mut far) => false,
                    cut = was_cut => cut,
                };
                if was_cut {
                    std::future::pending::<()>().await;
                }
            });
            self.to.send(theirs).map_err(|_| io::Error::from(io::ErrorKind::ConnectionRefused))?;
            Ok(Box::new(ours) as Box<dyn Wire>)
        })
    }
}
