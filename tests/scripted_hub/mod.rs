//! A hub of a hundred lines: speaks as much MQTT 5 as one device needs, and does nothing that a test did not ask for.
#![allow(clippy::unwrap_used, reason = "a test that fails here says where")]
#![allow(dead_code, reason = "each test file uses its part")]

pub(crate) mod rig;

use std::{
    collections::VecDeque,
    net::SocketAddr,
    time::{Duration, Instant},
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    time::timeout,
};
use truetwin_wire::{
    Scalar,
    hub::{ActionReport, Command, DecodeError, DeviceState, Event, Hello, Incoming, decode_event, encode},
    words::ReportResult,
};

/// Whatever a test waits for has happened long before; this turns a hang into a failure.
const HANG: Duration = Duration::from_secs(30);

pub(crate) struct Hub {
    listener: TcpListener,
    pub(crate) address: SocketAddr,
    /// How many events a device may have unacknowledged; at most 127.
    pub(crate) window: u8,
}

/// One connected device.
pub(crate) struct Peer {
    stream: TcpStream,
    pub(crate) user: String,
    pub(crate) password: String,
    /// Topic, payload, QoS, retained.
    pub(crate) will: (String, Vec<u8>, u8, bool),
    pub(crate) clean_start: bool,
    pub(crate) subscribed: String,
    pub(crate) subscribed_qos: u8,
    pub(crate) session: String,
    /// Added to the hub's clock.
    pub(crate) ahead_ms: i64,
    begun: Instant,
    pub(crate) heartbeat_ms: u32,
    pub(crate) retain: bool,
    events: VecDeque<Incoming>,
    /// States that nobody asked for, as far as they were read over.
    unasked: VecDeque<DeviceState>,
    /// Events that could not be read.
    pub(crate) unreadable: Vec<DecodeError>,
    /// Whether events are acknowledged at once.
    pub(crate) acknowledges: bool,
    /// Packet ids of events that were not.
    owed: VecDeque<[u8; 2]>,
}

impl Hub {
    pub(crate) async fn listen() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        Self { listener, address, window: 100 }
    }

    /// Takes a connection up to its subscription.
    pub(crate) async fn accept(&self) -> Peer {
        let (mut stream, _) = timeout(HANG, self.listener.accept()).await.unwrap().unwrap();
        // Else a welcome waits 40 ms for the acknowledgement of what was written before it.
        stream.set_nodelay(true).unwrap();
        let (kind, connect) = packet(&mut stream).await.unwrap();
        assert_eq!(kind, 0x10, "CONNECT");
        let mut rest = connect.as_slice();
        assert_eq!(text(&mut rest), "MQTT");
        assert_eq!(byte(&mut rest), 5, "the version");
        let flags = byte(&mut rest);
        let _keep_alive = (byte(&mut rest), byte(&mut rest));
        properties(&mut rest);
        let _client_id = text(&mut rest);
        properties(&mut rest);
        let will = (text(&mut rest), binary(&mut rest), flags >> 3 & 3, flags & 0x20 != 0);
        let (user, password) = (text(&mut rest), text(&mut rest));
        // CONNACK with the property Receive Maximum.
        stream.write_all(&[0x20, 6, 0, 0, 3, 0x21, 0, self.window]).await.unwrap();
        let (kind, subscribe) = packet(&mut stream).await.unwrap();
        assert_eq!(kind, 0x82, "SUBSCRIBE");
        let mut rest = subscribe.as_slice();
        let id = [byte(&mut rest), byte(&mut rest)];
        properties(&mut rest);
        let subscribed = text(&mut rest);
        let subscribed_qos = byte(&mut rest) & 3;
        stream.write_all(&[0x90, 4, id[0], id[1], 0, 0]).await.unwrap();
        Peer {
            stream,
            user,
            password,
            will,
            clean_start: flags & 2 != 0,
            subscribed,
            subscribed_qos,
            session: String::new(),
            ahead_ms: 100_000,
            begun: Instant::now(),
            heartbeat_ms: 60_000,
            retain: false,
            events: VecDeque::new(),
            unasked: VecDeque::new(),
            unreadable: Vec::new(),
            acknowledges: true,
            owed: VecDeque::new(),
        }
    }

    /// Takes a connection and says: bad user name or password.
    pub(crate) async fn reject_next(&self) {
        let (mut stream, _) = timeout(HANG, self.listener.accept()).await.unwrap().unwrap();
        packet(&mut stream).await.unwrap();
        stream.write_all(&[0x20, 3, 0, 0x86, 0]).await.unwrap();
    }

    /// Whether a connection waits to be taken.
    pub(crate) async fn somebody_waits(&self) -> bool {
        timeout(Duration::ZERO, self.listener.accept()).await.is_ok()
    }
}

impl Peer {
    /// Reads until an event has come; an error at the end of the connection, `true` if there was a DISCONNECT.
    async fn read(&mut self) -> Result<(), bool> {
        loop {
            let Some((kind, body)) = packet(&mut self.stream).await else { return Err(false) };
            match kind & 0xf0 {
                0x30 => {
                    assert_eq!(kind, 0x32, "events are QoS 1 and not retained");
                    let mut rest = body.as_slice();
                    assert_eq!(text(&mut rest), "truetwin/socket_1/event");
                    let id = [byte(&mut rest), byte(&mut rest)];
                    properties(&mut rest);
                    match decode_event(rest) {
                        Ok(event) => self.events.push_back(event),
                        Err(error) => self.unreadable.push(error),
                    }
                    self.owed.push_back(id);
                    while self.acknowledges && self.acknowledge_one().await.map_err(|_| false)? {}
                    return Ok(());
                }
                0xc0 => self.stream.write_all(&[0xd0, 0]).await.map_err(|_| false)?,
                0xe0 => return Err(true),
                other => panic!("packet {other:#x}"),
            }
        }
    }

    /// Acknowledges the oldest event that was not; whether there was one.
    pub(crate) async fn acknowledge_one(&mut self) -> std::io::Result<bool> {
        let Some([high, low]) = self.owed.pop_front() else { return Ok(false) };
        self.stream.write_all(&[0x40, 2, high, low]).await?;
        Ok(true)
    }

    pub(crate) async fn event(&mut self) -> Incoming {
        loop {
            if let Some(event) = self.events.pop_front() {
                return event;
            }
            timeout(HANG, self.read()).await.unwrap().unwrap();
        }
    }

    /// Whether nothing has come and the connection stands.
    pub(crate) fn is_silent(&self) -> bool {
        let would_block = |error: std::io::Error| error.kind() == std::io::ErrorKind::WouldBlock;
        self.events.is_empty() && self.stream.try_read(&mut [0]).is_err_and(would_block)
    }

    pub(crate) async fn hello(&mut self) -> (Incoming, Hello) {
        let incoming = self.event().await;
        let Event::Hello(hello) = incoming.event.clone() else { panic!("{incoming:?}") };
        (incoming, hello)
    }

    /// The next report; states that come unasked are kept for [`Peer::unasked`].
    pub(crate) async fn report(&mut self) -> (Incoming, ActionReport) {
        loop {
            let incoming = self.event().await;
            assert_eq!(*incoming.session, self.session);
            match incoming.event.clone() {
                Event::ActionReport(report) => return (incoming, report),
                Event::DeviceState(state) if state.op.is_none() => self.unasked.push_back(state),
                Event::Hello(_) | Event::Description(_) | Event::DeviceState(_) | Event::Heartbeat => {
                    panic!("{incoming:?}")
                }
            }
        }
    }

    /// The next answer to a query; states that come unasked are kept for [`Peer::unasked`].
    pub(crate) async fn state(&mut self) -> (Incoming, DeviceState) {
        loop {
            let incoming = self.event().await;
            let Event::DeviceState(state) = incoming.event.clone() else { panic!("{incoming:?}") };
            if state.op.is_some() {
                return (incoming, state);
            }
            self.unasked.push_back(state);
        }
    }

    /// The next state that nobody asked for.
    pub(crate) async fn unasked(&mut self) -> DeviceState {
        loop {
            if let Some(state) = self.unasked.pop_front() {
                return state;
            }
            let incoming = self.event().await;
            let Event::DeviceState(state) = incoming.event.clone() else { panic!("{incoming:?}") };
            assert_eq!(state.op, None, "{state:?}");
            self.unasked.push_back(state);
        }
    }

    /// The next state that nobody asked for; answers and reports before it are read over.
    pub(crate) async fn unasked_among_answers(&mut self) -> DeviceState {
        loop {
            if let Event::DeviceState(state) = self.event().await.event
                && state.op.is_none()
            {
                return state;
            }
        }
    }

    /// Reads until an event has come that cannot be read.
    pub(crate) async fn bad_event(&mut self) -> DecodeError {
        while self.unreadable.is_empty() {
            timeout(HANG, self.read()).await.unwrap().unwrap();
        }
        self.unreadable.remove(0)
    }

    /// The reports up to one that ends an operation.
    pub(crate) async fn reports_until_end(&mut self) -> Vec<ActionReport> {
        let mut reports = Vec::new();
        loop {
            let report = self.report().await.1;
            let ends = matches!(report.result, ReportResult::Completed | ReportResult::Failed | ReportResult::Rejected);
            reports.push(report);
            if ends {
                return reports;
            }
        }
    }

    /// Waits for the end of the connection; whether there was a DISCONNECT.
    pub(crate) async fn closed(&mut self) -> bool {
        loop {
            if let Err(goodbye) = timeout(HANG, self.read()).await.unwrap() {
                return goodbye;
            }
        }
    }

    pub(crate) fn hub_ms(&self) -> u64 {
        let elapsed_ms = i64::try_from(self.begun.elapsed().as_millis()).unwrap();
        u64::try_from(elapsed_ms + self.ahead_ms).unwrap()
    }

    pub(crate) async fn tell(&mut self, command: &Command) {
        let payload = encode(command);
        let topic = self.subscribed.as_bytes();
        let mut body = u16::try_from(topic.len()).unwrap().to_be_bytes().to_vec();
        body.extend_from_slice(topic);
        body.push(0); // no properties
        body.extend_from_slice(&payload);
        let mut packet = vec![0x30 | u8::from(self.retain)];
        let mut left = body.len();
        while left >= 128 {
            packet.push(u8::try_from(left % 128).unwrap() | 128);
            left /= 128;
        }
        packet.push(u8::try_from(left).unwrap());
        packet.extend_from_slice(&body);
        self.stream.write_all(&packet).await.unwrap();
    }

    pub(crate) async fn welcome(&mut self, session: &str) {
        self.session = session.to_owned();
        let welcome = Command::Welcome {
            session: session.to_owned(),
            hub: "scripted".to_owned(),
            epoch: 1,
            hub_ms: self.hub_ms(),
            heartbeat_ms: self.heartbeat_ms,
            warnings: Vec::new(),
        };
        self.tell(&welcome).await;
    }

    pub(crate) async fn set(&mut self, op: &str, on: bool, ttl_ms: u32) {
        self.set_to(op, "relay", Scalar::Bool(on), ttl_ms).await;
    }

    pub(crate) async fn set_to(&mut self, op: &str, property: &str, value: Scalar, ttl_ms: u32) {
        let (session, hub_ms) = (self.session.clone(), self.hub_ms());
        let (op, property) = (op.to_owned(), property.to_owned());
        self.tell(&Command::Set { session, hub_ms, op, property, value, ttl_ms }).await;
    }

    pub(crate) async fn run(&mut self, op: &str, action: &str) {
        let (session, hub_ms) = (self.session.clone(), self.hub_ms());
        let (op, action) = (op.to_owned(), action.to_owned());
        self.tell(&Command::Run { session, hub_ms, op, action, args: Vec::new(), ttl_ms: 60_000 }).await;
    }

    pub(crate) async fn withdraw(&mut self, op: &str) {
        let (session, hub_ms, op) = (self.session.clone(), self.hub_ms(), op.to_owned());
        self.tell(&Command::Withdraw { session, hub_ms, op }).await;
    }

    pub(crate) async fn publish_query(&mut self, op: &str) {
        let (session, hub_ms) = (self.session.clone(), self.hub_ms());
        self.tell(&Command::GetDeviceState { session, hub_ms, op: op.to_owned(), property: None }).await;
    }

    pub(crate) async fn query(&mut self, op: &str) -> DeviceState {
        self.publish_query(op).await;
        let (_, state) = self.state().await;
        assert_eq!(state.op.as_deref(), Some(op));
        state
    }
}

/// One packet: its first byte and what follows its length. `None` at the end of the connection.
async fn packet(stream: &mut TcpStream) -> Option<(u8, Vec<u8>)> {
    let kind = stream.read_u8().await.ok()?;
    let (mut length, mut shift) = (0, 0);
    loop {
        let byte = stream.read_u8().await.ok()?;
        length |= usize::from(byte & 127) << shift;
        shift += 7;
        if byte & 128 == 0 {
            break;
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.ok()?;
    Some((kind, body))
}

fn byte(rest: &mut &[u8]) -> u8 {
    let (first, after) = rest.split_first().unwrap();
    *rest = after;
    *first
}

fn binary(rest: &mut &[u8]) -> Vec<u8> {
    let length = usize::from(u16::from_be_bytes([byte(rest), byte(rest)]));
    let (inside, after) = rest.split_at(length);
    *rest = after;
    inside.to_vec()
}

fn text(rest: &mut &[u8]) -> String {
    String::from_utf8(binary(rest)).unwrap()
}

/// Skips MQTT 5 properties; none here are longer than 127 bytes.
fn properties(rest: &mut &[u8]) {
    let length = usize::from(byte(rest));
    *rest = &rest[length..];
}
