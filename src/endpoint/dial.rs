//! From an address to an open WebSocket, or to the reason why there is none.

use std::{io, sync::Arc, time::Duration};

use futures_util::future::BoxFuture;
use rustls::{ClientConfig, RootCertStore, pki_types::CertificateDer};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
};
use tokio_tungstenite::{
    Connector, MaybeTlsStream, WebSocketStream, client_async_tls_with_config,
    tungstenite::{self, http::StatusCode, protocol::WebSocketConfig},
};

use super::{End, EndWord};

/// The largest message that is read, bytes. A call has some hundred; a larger one ends the connection (RFC 6455, 7.4.1:
/// 1009), because it cannot be skipped without being read.
const MESSAGE_BYTES_MAX: usize = 256 * 1024;

/// What the library sets aside for each connection and direction, bytes; its own 128 KiB are for streams of data.
const BUFFER_BYTES: usize = 8 * 1024;

/// How long one of a host's addresses may take: a home whose IPv6 leads nowhere must still get to the next, within the time
/// of a dial.
const ADDRESS_MAX: Duration = Duration::from_secs(4);

/// Bytes both ways.
pub trait Wire: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Wire for T {}

/// How bytes get to a host. Sockets, or pipes for those that test with hours of it.
pub trait Reach: Send + Sync + 'static {
    /// Opens a connection to `host:port`.
    fn open<'a>(&'a self, authority: &'a str) -> BoxFuture<'a, io::Result<Box<dyn Wire>>>;
}

/// A host's name that stands for no address. It is the owner's own word, so it is told in full.
#[derive(Debug, thiserror::Error)]
#[error(
    "the name of {authority} was not found ({problem}): look at how it is written, then at this machine's network and DNS"
)]
struct NoAddress {
    authority: String,
    problem: String,
}

impl NoAddress {
    fn of(authority: &str, error: &io::Error) -> io::Error {
        let told = error.to_string();
        let problem = told.strip_prefix("failed to lookup address information: ").unwrap_or(&told).to_owned();
        io::Error::new(error.kind(), Self { authority: authority.to_owned(), problem })
    }
}

/// Over the network.
#[derive(Clone, Copy, Debug, Default)]
pub struct Network;

impl Reach for Network {
    fn open<'a>(&'a self, authority: &'a str) -> BoxFuture<'a, io::Result<Box<dyn Wire>>> {
        Box::pin(async move {
            let mut last = io::Error::from(io::ErrorKind::NotFound);
            for address in tokio::net::lookup_host(authority).await.map_err(|error| NoAddress::of(authority, &error))? {
                match tokio::time::timeout(ADDRESS_MAX, TcpStream::connect(address)).await {
                    Ok(Ok(socket)) => {
                        // Answers are small and must not wait for one another.
                        socket.set_nodelay(true)?;
                        return Ok(Box::new(socket) as Box<dyn Wire>);
                    }
                    Ok(Err(error)) => last = error,
                    Err(_) => last = io::ErrorKind::TimedOut.into(),
                }
            }
            Err(last)
        })
    }
}

/// An open WebSocket.
pub(super) type Line = WebSocketStream<MaybeTlsStream<Box<dyn Wire>>>;

/// Opens WebSockets.
pub(super) struct Dialler {
    reach: Arc<dyn Reach>,
    tls: Arc<ClientConfig>,
}

impl Dialler {
    /// Trusts the authorities that browsers trust, and these.
    pub(super) fn new(reach: Arc<dyn Reach>, more_roots: &[CertificateDer<'static>]) -> Self {
        let mut roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
        roots.add_parsable_certificates(more_roots.iter().cloned());
        // The provider is named, so that nothing depends on what else a process has installed.
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let tls = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let tls = tls.expect("ring has what TLS 1.2 and 1.3 need").with_root_certificates(roots).with_no_client_auth();
        Self { reach, tls: Arc::new(tls) }
    }

    /// Opens a WebSocket at `url`, whose host and port are `authority`.
    pub(super) async fn dial(&self, url: &str, authority: &str, within: Duration) -> Result<Line, End> {
        let dialling = async {
            let wire = self.reach.open(authority).await.map_err(tungstenite::Error::Io)?;
            let config = WebSocketConfig::default()
                .max_message_size(Some(MESSAGE_BYTES_MAX))
                .max_frame_size(Some(MESSAGE_BYTES_MAX))
                .read_buffer_size(BUFFER_BYTES)
                .write_buffer_size(BUFFER_BYTES);
            let connector = Connector::Rustls(self.tls.clone());
            client_async_tls_with_config(url, wire, Some(config), Some(connector)).await
        };
        match tokio::time::timeout(within, dialling).await {
            Ok(Ok((line, _))) => Ok(line),
            Ok(Err(error)) => Err(not_dialled(&error)),
            Err(_) => Err(End::with(EndWord::Unreachable, None, "no answer in time")),
        }
    }
}

/// Why there is no WebSocket. Nothing of it quotes the URL.
fn not_dialled(error: &tungstenite::Error) -> End {
    use tungstenite::Error;
    match error {
        Error::Io(error) => {
            if let Some(none) = error.get_ref().and_then(|inner| inner.downcast_ref::<NoAddress>()) {
                return End { said: none.to_string(), ..End::new(EndWord::Unreachable) };
            }
            let is_tls = error.get_ref().is_some_and(|inner| inner.is::<rustls::Error>());
            let word = if is_tls { EndWord::Tls } else { EndWord::Unreachable };
            End::with(word, None, &error.to_string())
        }
        Error::Tls(error) => End::with(EndWord::Tls, None, &error.to_string()),
        Error::Http(response) => {
            let status = response.status();
            let is_refused = matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
            let word = if is_refused { EndWord::HttpRefused } else { EndWord::NotThere };
            End::with(word, Some(status.as_u16()), status.canonical_reason().unwrap_or_default())
        }
        Error::ConnectionClosed | Error::AlreadyClosed => End::with(EndWord::Unreachable, None, "closed at once"),
        Error::Protocol(error) => End::with(EndWord::NotThere, None, &error.to_string()),
        Error::Capacity(_)
        | Error::WriteBufferFull(_)
        | Error::Utf8(_)
        | Error::AttackAttempt
        | Error::Url(_)
        | Error::HttpFormat(_) => End::with(EndWord::NotThere, None, "no websocket"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_is_not_found_is_told_in_full_and_what_to_look_at() {
        let error = io::Error::other("failed to lookup address information: Name or service not known");
        let error = NoAddress::of("voice-box-relay.example.org:8004", &error);
        let end = not_dialled(&tungstenite::Error::Io(error));
        assert_eq!(end.word, EndWord::Unreachable);
        assert_eq!(
            end.said,
            "the name of voice-box-relay.example.org:8004 was not found (Name or service not known): look at how it is written, then at \
             this machine's network and DNS"
        );
    }
}
