//! The control socket of a running hub: `hub.sock` in the data folder, for the commands of the owner on this machine.
//!
//! One JSON object a line in each direction, requests answered in order. Only the user who runs the hub, and root, get
//! an answer: the file has mode 0600, and the peer's user is looked at as well.
//!
//! | bound | value | at it |
//! |---|---|---|
//! | connections | 8 | one more is told so and closed: the commands of one person need one or two |
//! | request | 8 KiB | told so and closed |
//! | time for a request to arrive | 10 s | closed |
//!
//! Knows nothing of twins and tools: whoever serves brings a [`Handler`].

mod accounts;
mod tokens;
mod words;

use std::{
    future::Future,
    io::{self, BufRead as _, Read as _, Write as _},
    os::unix::{
        fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _},
        net::UnixStream as BlockingStream,
    },
    path::{Path, PathBuf},
    pin::pin,
    sync::Arc,
    time::Duration,
};

use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    net::{UnixListener, UnixStream, unix::OwnedReadHalf},
    sync::Semaphore,
    task::JoinSet,
};
use tokio_util::sync::CancellationToken;

pub use self::{
    accounts::on_accounts,
    tokens::on_tokens,
    words::{AccountInfo, EndpointInfo, Listed, Request, Response, TokenInfo},
};
use crate::{
    data::{Credentials, DataFolder, Secret},
    property::DeviceId,
};

const SOCKET: &str = "hub.sock";

/// Connections at once.
pub const CONNECTIONS_MAX: usize = 8;

/// Longest request, bytes with the newline: names and values are short; the URL of an access point may have
/// 4 KiB, the patterns of an account 6 KiB.
pub const REQUEST_BYTES_MAX: usize = 8_192;

/// Longest response that a client reads, bytes: a list of all devices that a hub may have.
const RESPONSE_BYTES_MAX: u64 = 1_048_576;

/// How long a connection may be silent before its next request.
const REQUEST_WITHIN: Duration = Duration::from_secs(10);

/// How long requests that are being handled may still take when the hub stops.
const STOP_WITHIN: Duration = Duration::from_secs(1);

/// How long a client waits for an answer: a little more than the longest `answer_by_ms`.
const ANSWER_WITHIN: Duration = Duration::from_secs(610);

/// Who carries requests out.
pub trait Handler: Send + Sync + 'static {
    /// Carries one out. Dropped when a caller of [`Request::Set`] has gone, which means to stop waiting (semantics 4.7).
    fn handle(&self, request: Request) -> impl Future<Output = Response> + Send;
}

impl<F, R> Handler for F
where
    F: Fn(Request) -> R + Send + Sync + 'static,
    R: Future<Output = Response> + Send,
{
    fn handle(&self, request: Request) -> impl Future<Output = Response> + Send {
        self(request)
    }
}

/// Carries out a request about credentials: the same for a running hub, which may add presence and end connections
/// afterwards, and for a command on a folder where none runs. `mqtt` is where devices connect. `None` for other
/// requests. Blocks on the disk.
pub fn on_credentials(credentials: &Credentials, mqtt: &str, request: &Request) -> Option<Response> {
    let result = match request {
        Request::DeviceAdd { name } => with_password(name, mqtt, |device| credentials.add(device)),
        Request::DeviceRotate { name } => with_password(name, mqtt, |device| credentials.rotate(device)),
        Request::DeviceRemove { name } => match DeviceId::new(name) {
            Ok(device) => match credentials.remove(&device) {
                Ok(()) => Ok(Response::Removed { device: device.to_string() }),
                Err(error) => Err(chain(&error)),
            },
            Err(error) => Err(error.to_string()),
        },
        Request::DeviceList => {
            let listed = |device: DeviceId| Listed { device: device.to_string(), presence: None };
            Ok(Response::Devices { devices: credentials.list().into_iter().map(listed).collect() })
        }
        Request::Set { .. }
        | Request::EndpointAdd { .. }
        | Request::EndpointList
        | Request::EndpointTest { .. }
        | Request::EndpointRemove { .. }
        | Request::TokenAdd { .. }
        | Request::TokenList
        | Request::TokenRevoke { .. }
        | Request::AccountAdd { .. }
        | Request::AccountList
        | Request::AccountAllow { .. }
        | Request::AccountRotate { .. }
        | Request::AccountRemove { .. }
        | Request::Dispute { .. }
        | Request::Backup { .. } => return None,
    };
    Some(result.unwrap_or_else(|message| Response::Error { message }))
}

fn with_password(
    name: &str,
    mqtt: &str,
    new: impl FnOnce(&DeviceId) -> Result<Secret, crate::data::Error>,
) -> Result<Response, String> {
    let device = DeviceId::new(name).map_err(|error| error.to_string())?;
    let password = new(&device).map_err(|error| chain(&error))?;
    Ok(Response::Device { device: device.to_string(), password, mqtt: mqtt.to_owned() })
}

/// An error with its causes, for the other end of the socket.
fn chain(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

/// What went wrong with the socket. The text names it.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Nobody listens there.
    #[error("no hub is running on the data folder {0}; start one with: truetwin serve --data {0}", folder.display())]
    NoHub {
        /// The data folder.
        folder: PathBuf,
    },
    /// Something that is no socket has its name.
    #[error("{} is no socket and was not made by truetwin; move it away", path.display())]
    InTheWay {
        /// The path.
        path: PathBuf,
    },
    /// The system said no.
    #[error("cannot {doing} {}", path.display())]
    Io {
        /// What was tried, a verb.
        doing: &'static str,
        /// The socket.
        path: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// The answer was none.
    #[error("the hub at {} gave no answer that can be read: {problem}", path.display())]
    Unreadable {
        /// The socket.
        path: PathBuf,
        /// What was wrong with it.
        problem: String,
    },
}

/// The listening end.
#[derive(Debug)]
pub struct Server {
    listener: UnixListener,
    path: PathBuf,
    /// The user whom the socket belongs to.
    owner: u32,
}

/// Whether there is a socket in the folder: a running hub's, or one that a hub left behind that was killed. Changes nothing.
///
/// # Errors
/// [`Error::InTheWay`] if it is something else, so that no hub could listen there; [`Error::Io`].
pub fn left_behind(folder: &Path) -> Result<bool, Error> {
    let path = folder.join(SOCKET);
    match path.symlink_metadata() {
        Ok(found) if found.file_type().is_socket() => Ok(true),
        Ok(_) => Err(Error::InTheWay { path }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(source) => Err(Error::Io { doing: "look at", path, source }),
    }
}

impl Server {
    /// Listens in the folder. Because its lock is held, a socket that is there already belongs to a hub that is dead,
    /// and is replaced. To be called in a tokio runtime.
    ///
    /// # Errors
    /// [`Error::InTheWay`] or [`Error::Io`]; a path of more than some 100 bytes is too long for a socket.
    pub fn bind(folder: &DataFolder) -> Result<Self, Error> {
        let path = folder.path().join(SOCKET);
        let io = |doing| {
            let path = path.clone();
            move |source| Error::Io { doing, path, source }
        };
        if left_behind(folder.path())? {
            std::fs::remove_file(&path).map_err(io("remove"))?;
        }
        let listener = UnixListener::bind(&path).map_err(io("listen on"))?;
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).map_err(io("make private"))?;
        let owner = path.metadata().map_err(io("look at"))?.uid();
        Ok(Self { listener, path, owner })
    }

    /// Serves until `stop`; then the socket is removed, and requests that are being handled get a second.
    pub async fn run(self, handler: impl Handler, stop: CancellationToken) {
        let handler = Arc::new(handler);
        let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
        let mut connections = JoinSet::new();
        loop {
            tokio::select! {
                () = stop.cancelled() => break,
                Some(_ended) = connections.join_next() => {}
                accepted = self.listener.accept() => match accepted {
                    Ok((stream, _)) if !self.may_ask(&stream) => {
                        tracing::warn!("a user who does not run this hub tried its control socket");
                    }
                    Ok((stream, _)) => match places.clone().try_acquire_owned() {
                        Ok(place) => {
                            let (handler, stop) = (handler.clone(), stop.clone());
                            connections.spawn(async move {
                                serve(stream, &*handler, &stop).await;
                                drop(place);
                            });
                        }
                        Err(_full) => turn_away(&stream),
                    },
                    Err(error) => {
                        // Out of file descriptors, say: there is nothing to do but to let others end.
                        tracing::warn!(%error, "the control socket cannot accept");
                        tokio::time::sleep(Duration::from_millis(100)).await;
                    }
                },
            }
        }
        if let Err(error) = std::fs::remove_file(&self.path) {
            tracing::warn!(%error, "the control socket stays behind");
        }
        let ended = async { while connections.join_next().await.is_some() {} };
        if tokio::time::timeout(STOP_WITHIN, ended).await.is_err() {
            tracing::warn!("requests at the control socket were cut off");
        }
    }

    fn may_ask(&self, stream: &UnixStream) -> bool {
        stream.peer_cred().is_ok_and(|peer| peer.uid() == self.owner || peer.uid() == 0)
    }
}

/// Told without waiting: it fits into the socket's buffer, or the peer does not hear it.
fn turn_away(stream: &UnixStream) {
    let message = format!("the hub is serving {CONNECTIONS_MAX} commands already, the most at once; try again");
    let _unheard = stream.try_write(&line(&Response::Error { message }));
}

/// One connection, until it ends, is silent for too long, sends too long a line, or the hub stops.
async fn serve(stream: UnixStream, handler: &impl Handler, stop: &CancellationToken) {
    let (reader, mut writer) = stream.into_split();
    let mut reader = BufReader::new(reader);
    loop {
        let request = tokio::select! {
            () = stop.cancelled() => return,
            read = tokio::time::timeout(REQUEST_WITHIN, read_line(&mut reader)) => read,
        };
        let Ok(Ok(Some(request))) = request else { return };
        let too_long = request.len() > REQUEST_BYTES_MAX;
        let response = if too_long {
            Response::Error { message: format!("a request has at most {REQUEST_BYTES_MAX} bytes") }
        } else {
            match serde_json::from_slice::<Request>(&request) {
                Err(error) => Response::Error { message: format!("not a request: {error}") },
                Ok(request) => match handle(request, handler, &mut reader).await {
                    Some(response) => response,
                    None => return,
                },
            }
        };
        if writer.write_all(&line(&response)).await.is_err() || too_long {
            return;
        }
    }
}

/// Reads up to a newline, or one byte more than allowed; `None` at the end.
async fn read_line(reader: &mut BufReader<OwnedReadHalf>) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    reader.take(REQUEST_BYTES_MAX as u64 + 1).read_until(b'\n', &mut bytes).await?;
    let whole = bytes.ends_with(b"\n") || bytes.len() > REQUEST_BYTES_MAX;
    Ok(whole.then_some(bytes))
}

/// `None` if the caller has gone before the end of a `set`. Other requests are carried out to the end: a password that
/// was made is not to be lost because a shell closed its writing end early.
async fn handle(request: Request, handler: &impl Handler, reader: &mut BufReader<OwnedReadHalf>) -> Option<Response> {
    let can_be_left = matches!(request, Request::Set { .. } | Request::EndpointTest { .. });
    let mut handling = pin!(handler.handle(request));
    if !can_be_left {
        return Some(handling.await);
    }
    tokio::select! {
        response = &mut handling => Some(response),
        more = reader.fill_buf() => match more {
            Ok([]) | Err(_) => None,
            Ok(_) => Some(handling.await),
        },
    }
}

fn line(message: &impl serde::Serialize) -> Vec<u8> {
    let mut bytes = serde_json::to_vec(message).expect("strings, flags and JSON values are always JSON");
    bytes.push(b'\n');
    bytes
}

/// Asks the hub that runs on this data folder, and waits for its answer. Blocks.
///
/// # Errors
/// [`Error::NoHub`] if none runs there, also if a killed one left its socket behind; [`Error::Io`] and
/// [`Error::Unreadable`] if there was no answer: then it is not known what the hub did.
pub fn ask(folder: &Path, request: &Request) -> Result<Response, Error> {
    let path = folder.join(SOCKET);
    let io = |doing| {
        let path = path.clone();
        move |source| Error::Io { doing, path, source }
    };
    let mut stream = match BlockingStream::connect(&path) {
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused) => {
            return Err(Error::NoHub { folder: folder.to_owned() });
        }
        connected => connected.map_err(io("connect to"))?,
    };
    stream.set_read_timeout(Some(ANSWER_WITHIN)).map_err(io("wait for"))?;
    // A hub that turns us away has closed before it read this; its answer is there to be read nevertheless.
    let written = stream.write_all(&line(request));
    let mut answer = Vec::new();
    let read = io::BufReader::new(stream).take(RESPONSE_BYTES_MAX).read_until(b'\n', &mut answer);
    if answer.is_empty() {
        written.map_err(io("write to"))?;
        read.map_err(io("read from"))?;
    }
    serde_json::from_slice(&answer).map_err(|error| Error::Unreadable { path, problem: error.to_string() })
}

#[cfg(test)]
mod tests;
