//! What the tests of the door share: a broker with a hub that echoes, and a raw MQTT client that can also misbehave.
#![allow(dead_code, unreachable_pub, missing_docs, clippy::unwrap_used)] // each test file uses its part

pub mod packets;

use std::{
    collections::HashMap,
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::Duration,
};

use bytes::Bytes;
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::{TcpListener, TcpSocket, TcpStream},
    sync::mpsc::Receiver,
};
use truetwin::{
    broker::{self, Access, Answer, Broker, FromDevice, MqttVersion, Settings, Who},
    topics::Rights,
};

pub use packets::*;

/// No test waits for the clock; this is when one gives up and fails.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// Every device's password is `pw-` and its name, until it is changed; so is that of each account, of which there are none until
/// one is made.
#[derive(Default)]
pub struct Passwords(pub Mutex<HashMap<String, String>>, pub Mutex<HashMap<String, Arc<Rights>>>);

impl Passwords {
    /// Makes somebody an account.
    pub fn account(&self, name: &str, read: &[&str], write: &[&str]) {
        let rights = Rights::new(read, write).unwrap();
        self.1.lock().unwrap().insert(name.to_owned(), Arc::new(rights));
    }
}

impl Access for Passwords {
    fn admits(&self, user: &str, password: &[u8]) -> Answer {
        let right = match self.0.lock().unwrap().get(user) {
            Some(changed) => changed.as_bytes() == password,
            None => password == format!("pw-{user}").as_bytes(),
        };
        match self.1.lock().unwrap().get(user) {
            Some(rights) if right => Answer::Now(Who::Account(rights.clone())),
            _ => right.into(),
        }
    }
}

pub async fn start(settings: Settings) -> (Broker, Receiver<FromDevice>, Arc<Passwords>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let passwords = Arc::new(Passwords::default());
    let (broker, hub) = broker::start(listener, passwords.clone(), settings).await.unwrap();
    (broker, hub, passwords)
}

/// The next message, or a failed test.
pub async fn hear(hub: &mut Receiver<FromDevice>) -> FromDevice {
    tokio::time::timeout(PATIENCE, hub.recv()).await.expect("the hub hears nothing").expect("the hub's channel ended")
}

/// The next message that is not about the bus.
pub async fn hear_device(hub: &mut Receiver<FromDevice>) -> FromDevice {
    loop {
        let message = hear(hub).await;
        if !matches!(message, FromDevice::BusDown | FromDevice::BusUp) {
            return message;
        }
    }
}

/// A message as one line, without its receipt, which is given back as taken.
pub fn line(message: FromDevice) -> String {
    match message {
        FromDevice::Connected { device, version, .. } => format!("{device} connected {}", version.as_str()),
        FromDevice::Disconnected { device, why, .. } => format!("{device} disconnected {}", why.as_str()),
        FromDevice::Event { device, payload, retained, receipt, .. } => {
            receipt.taken();
            format!("{device} event {}{}", text(&payload), if retained { " retained" } else { "" })
        }
        FromDevice::Status { device, payload, retained, receipt, .. } => {
            receipt.taken();
            format!("{device} status {}{}", text(&payload), if retained { " retained" } else { "" })
        }
        FromDevice::Will { device, payload, .. } => format!("{device} will {}", text(&payload)),
        FromDevice::Written { device, ticket } => format!("{device} written {ticket}"),
        FromDevice::Lost { device, ticket, why } => format!("{device} lost {ticket} {}", why.as_str()),
        FromDevice::BusDown => "bus down".to_owned(),
        FromDevice::BusUp => "bus up".to_owned(),
    }
}

/// The next message as a line.
pub async fn hear_line(hub: &mut Receiver<FromDevice>) -> String {
    line(hear(hub).await)
}

/// Asserts the next messages, as lines.
pub async fn expect(hub: &mut Receiver<FromDevice>, lines: &[&str]) {
    for expected in lines {
        assert_eq!(hear_line(hub).await, *expected);
    }
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A hub that takes in each report and sends it back as a command.
pub fn echo(broker: Broker, mut hub: Receiver<FromDevice>) -> tokio::task::JoinHandle<()> {
    tokio::spawn(async move {
        let mut ticket = 0;
        while let Some(message) = hub.recv().await {
            if let FromDevice::Event { device, payload, receipt, .. } = message {
                receipt.taken();
                ticket += 1;
                while broker.send(&device, payload.clone(), ticket).is_err() {
                    tokio::task::yield_now().await; // the bus is being rebuilt
                }
            }
        }
    })
}

/// A raw client, over whatever carries bytes.
pub struct Client<S = TcpStream> {
    pub socket: S,
    pub v5: bool,
    pub name: String,
    buffer: Vec<u8>,
    next_id: u16,
}

impl Client {
    pub async fn raw(to: SocketAddr, v5: bool) -> Self {
        let socket = TcpStream::connect(to).await.unwrap();
        socket.set_nodelay(true).unwrap();
        Self::over(socket, v5)
    }

    /// From an address of its own; those of 127.0.0.0/8 are all this machine's.
    pub async fn raw_from(from: [u8; 4], to: SocketAddr, v5: bool) -> Self {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind((from, 0).into()).unwrap();
        let socket = socket.connect(to).await.unwrap();
        socket.set_nodelay(true).unwrap();
        Self::over(socket, v5)
    }

    /// Connects as a device, and must be let in.
    pub async fn device(broker: &Broker, name: &str, version: MqttVersion) -> Self {
        let mut client = Self::raw(broker.local_addr(), version == MqttVersion::V5).await;
        client.name = name.to_owned();
        let packet = Login::of(name).v5(client.v5).packet();
        assert_eq!(client.login(&packet).await, Some(0), "{name} must be let in");
        client
    }

    /// Connects and subscribes to its command topic.
    pub async fn subscribed(broker: &Broker, name: &str, version: MqttVersion) -> Self {
        let mut client = Self::device(broker, name, version).await;
        assert_eq!(client.subscribe(&format!("truetwin/{name}/command")).await, Some(0));
        client
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Client<S> {
    pub fn over(socket: S, v5: bool) -> Self {
        Self { socket, v5, name: String::new(), buffer: Vec::new(), next_id: 0 }
    }

    /// Sends a CONNECT; the code of the CONNACK, `None` if it was closed instead.
    pub async fn login(&mut self, packet: &[u8]) -> Option<u8> {
        self.send(packet).await;
        let (first, body) = self.next().await?;
        assert_eq!(first, 0x20, "a CONNACK comes first");
        Some(body[1])
    }

    /// The bytes go out, or the socket is closed already.
    pub async fn send(&mut self, bytes: &[u8]) {
        let _closed = self.sends(bytes).await;
    }

    /// Sends; whether the socket took it.
    pub async fn sends(&mut self, bytes: &[u8]) -> bool {
        self.socket.write_all(bytes).await.is_ok()
    }

    /// The next packet: first byte and body; `None` at the end.
    pub async fn next(&mut self) -> Option<(u8, Vec<u8>)> {
        tokio::time::timeout(PATIENCE, self.next_inner()).await.expect("neither a packet nor an end")
    }

    async fn next_inner(&mut self) -> Option<(u8, Vec<u8>)> {
        loop {
            if let Some(packet) = cut(&mut self.buffer) {
                return Some(packet);
            }
            match self.socket.read_buf(&mut self.buffer).await {
                Ok(0) | Err(_) => return None,
                Ok(_) => {}
            }
        }
    }

    /// The code of a v5 DISCONNECT, `None` if it is closed without one.
    pub async fn farewell(&mut self) -> Option<u8> {
        while let Some((first, body)) = self.next().await {
            if first == 0xE0 {
                return Some(body[0]);
            }
        }
        None
    }

    /// Subscribes; the code of the SUBACK.
    pub async fn subscribe(&mut self, filter: &str) -> Option<u8> {
        self.send(&subscribe(1, filter, 1, self.v5)).await;
        loop {
            let (first, body) = self.next().await?;
            if first == 0x90 {
                return body.last().copied();
            }
        }
    }

    pub fn event_topic(&self) -> String {
        format!("truetwin/{}/event", self.name)
    }

    /// Sends a QoS 1 report without waiting; its packet id.
    pub async fn report(&mut self, payload: &[u8]) -> u16 {
        self.next_id = self.next_id % 60_000 + 1;
        let packet = publish(&self.event_topic(), 1, self.next_id, payload, self.v5);
        self.send(&packet).await;
        self.next_id
    }

    /// The next PUBACK: packet id and code; `None` at the end.
    pub async fn acknowledged(&mut self) -> Option<(u16, u8)> {
        loop {
            let (first, body) = self.next().await?;
            if first == 0x40 {
                return Some((u16::from_be_bytes([body[0], body[1]]), body.get(2).copied().unwrap_or(0)));
            }
        }
    }

    /// The next command's payload; `None` at the end.
    pub async fn command(&mut self) -> Option<Bytes> {
        loop {
            let (first, body) = self.next().await?;
            if first >> 4 == 3 {
                let topic = usize::from(u16::from_be_bytes([body[0], body[1]]));
                return Some(Bytes::copy_from_slice(&body[2 + topic + usize::from(self.v5)..]));
            }
        }
    }

    /// Sends a report and waits for its echo and its acknowledgement.
    pub async fn echoes(&mut self, payload: &str) {
        let id = self.report(payload.as_bytes()).await;
        let (mut echoed, mut acknowledged) = (false, false);
        while !(echoed && acknowledged) {
            let (first, body) = self.next().await.expect("the echo must come");
            match first {
                0x40 => {
                    assert_eq!(u16::from_be_bytes([body[0], body[1]]), id);
                    acknowledged = true;
                }
                0x30 => {
                    assert!(body.ends_with(payload.as_bytes()));
                    echoed = true;
                }
                _ => {}
            }
        }
    }

    /// Whether it is still served: a PINGREQ is answered.
    pub async fn lives(&mut self) -> bool {
        self.send(&[0xC0, 0]).await;
        while let Some((first, _)) = self.next().await {
            if first == 0xD0 {
                return true;
            }
        }
        false
    }
}

/// Cuts one packet off the front.
fn cut(buffer: &mut Vec<u8>) -> Option<(u8, Vec<u8>)> {
    let (mut length, mut at) = (0usize, 1);
    loop {
        let byte = *buffer.get(at)?;
        length |= usize::from(byte & 0x7F) << (7 * (at - 1));
        at += 1;
        if byte < 0x80 {
            break;
        }
    }
    if buffer.len() < at + length {
        return None;
    }
    let packet = (buffer[0], buffer[at..at + length].to_vec());
    buffer.drain(..at + length);
    Some(packet)
}
