//! A broker of this process, with a hub that takes reports in, and clients of it that wait for no longer than they must.

use std::{
    io::{Read, Write},
    net::{Shutdown, SocketAddr, TcpStream},
    sync::{
        Arc, Mutex, OnceLock,
        mpsc::{Receiver, Sender, channel},
    },
    time::Duration,
};

use truetwin::{
    broker::{self, Access, Answer, Broker, Closed, FromDevice, Settings, Who},
    topics::Rights,
};

use super::model::Reply;
use crate::packets::{ACCOUNT, DEVICE};

/// Nothing waits for the clock; this is when something hangs.
const PATIENCE: Duration = Duration::from_secs(20);

/// A report that the hub gives up, so that its sender hears of it.
pub(super) const GIVEN_UP: &[u8] = b"hi";

/// What the hub hears.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Heard {
    Connected,
    Report,
    Will,
    Disconnected { clean: bool },
}

/// The broker, and what its hub hears.
pub(super) struct Bench {
    broker: Broker,
    address: SocketAddr,
    heard: Mutex<Receiver<Heard>>,
}

struct Passwords;

impl Access for Passwords {
    fn admits(&self, user: &str, password: &[u8]) -> Answer {
        let who = match user {
            _ if password != format!("pw-{user}").as_bytes() => Who::Nobody,
            DEVICE => Who::Device,
            ACCOUNT => Who::Account(Arc::new(Rights::new(&["#"], &["a/#"]).unwrap())),
            _ => Who::Nobody,
        };
        Answer::Now(who)
    }
}

impl Bench {
    /// The one broker: its router's thread could not be ended.
    pub(super) fn of_this_process() -> &'static Self {
        static BENCH: OnceLock<Bench> = OnceLock::new();
        BENCH.get_or_init(|| {
            let (ready, started) = channel();
            let (tell, heard) = channel();
            std::thread::spawn(move || {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
                runtime.block_on(hub(&ready, &tell));
            });
            let broker: Broker = started.recv_timeout(PATIENCE).unwrap();
            Self { address: broker.local_addr(), broker, heard: Mutex::new(heard) }
        })
    }

    pub(super) fn connect(&self) -> Client {
        let socket = TcpStream::connect(self.address).unwrap();
        socket.set_nodelay(true).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        socket.set_write_timeout(Some(PATIENCE)).unwrap();
        Client { socket, unread: Vec::new() }
    }

    /// The next thing that the hub hears.
    pub(super) fn heard(&self) -> Heard {
        self.heard.lock().unwrap().recv_timeout(PATIENCE).expect("the hub hears nothing more")
    }

    pub(super) fn connected(&self, device: &str) -> bool {
        self.broker.connected(device)
    }
}

/// Takes each report in and sends it back, until the process ends.
async fn hub(ready: &Sender<Broker>, tell: &Sender<Heard>) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    // Wrong logins do not wait: they are part of the game here.
    let settings = Settings { login_delay_max_ms: 0, ..Settings::default() };
    let (broker, mut messages) = broker::start(listener, Arc::new(Passwords), settings).await.unwrap();
    ready.send(broker.clone()).unwrap();
    while let Some(message) = messages.recv().await {
        let heard = match message {
            FromDevice::Connected { .. } => Heard::Connected,
            FromDevice::Event { device, payload, receipt, .. } => {
                if payload == GIVEN_UP {
                    drop(receipt);
                } else {
                    let _bus_down = broker.send(&device, payload, 1);
                    receipt.taken();
                }
                Heard::Report
            }
            FromDevice::Status { receipt, .. } => {
                receipt.taken();
                Heard::Report
            }
            FromDevice::Will { .. } => Heard::Will,
            FromDevice::Disconnected { why, .. } => Heard::Disconnected { clean: why == Closed::Clean },
            FromDevice::Written { .. } | FromDevice::Lost { .. } | FromDevice::BusDown | FromDevice::BusUp => continue,
        };
        if tell.send(heard).is_err() {
            return;
        }
    }
}

/// A client's socket.
pub(super) struct Client {
    socket: TcpStream,
    unread: Vec<u8>,
}

impl Write for Client {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.socket.write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.socket.flush()
    }
}

impl Client {
    /// The next packet; `None` at the end.
    pub(super) fn reply(&mut self) -> Option<Reply> {
        loop {
            if let Some(reply) = self.cut() {
                return Some(reply);
            }
            let mut bytes = [0; 4096];
            match self.socket.read(&mut bytes) {
                Ok(0) => {
                    assert!(self.unread.is_empty(), "it ended within a packet: {:?}", self.unread);
                    return None;
                }
                Ok(count) => self.unread.extend_from_slice(&bytes[..count]),
                Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => return None,
                Err(error) => panic!("neither a packet nor an end: {error}"),
            }
        }
    }

    /// Says nothing more.
    pub(super) fn close(&mut self) {
        let _closed_already = self.socket.shutdown(Shutdown::Write);
    }

    fn cut(&mut self) -> Option<Reply> {
        let (mut length, mut at) = (0, 1);
        loop {
            let byte = *self.unread.get(at)?;
            length |= usize::from(byte & 0x7F) << (7 * (at - 1));
            at += 1;
            if byte & 0x80 == 0 {
                break;
            }
        }
        let body = self.unread.get(at..at + length)?.to_vec();
        let first = self.unread[0];
        self.unread.drain(..at + length);
        Some(Reply { first, body })
    }
}
