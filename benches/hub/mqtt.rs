//! As much of an MQTT 3.1.1 client as the load needs: cheap, with TCP_NODELAY, QoS 0 in and QoS 1 out.
//!
//! Only for brokers that behave: what is not expected is an error and ends the run.

use anyhow::{Context as _, bail, ensure};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _},
    net::TcpStream,
};

/// Seconds of keep-alive; a load that is idle for longer sends a heartbeat in between.
const KEEP_ALIVE_S: u16 = 120;

/// What came.
#[derive(Debug)]
pub(crate) enum Packet<'a> {
    /// A publish; the packet id only with QoS 1.
    Publish { topic: &'a [u8], payload: &'a [u8], packet_id: Option<u16> },
    /// An acknowledgement of a publish.
    PubAck,
    /// CONNACK or SUBACK: type and return code.
    Answer(u8, u8),
    /// Anything else.
    Other,
}

/// A connection: bytes that came and bytes that wait to be written.
#[derive(Debug)]
pub(crate) struct Link<S = TcpStream> {
    socket: S,
    pub(crate) inbox: Inbox,
    pub(crate) outbox: Outbox,
}

/// Bytes that came and are not worked off.
#[derive(Debug, Default)]
pub(crate) struct Inbox {
    bytes: Vec<u8>,
    at: usize,
}

/// Bytes that go out with the next [`Link::flush`].
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    bytes: Vec<u8>,
    packet_id: u16,
}

impl Link {
    /// Connects with a clean session and subscribes with QoS 1 at most; both answers have come.
    pub(crate) async fn open(mqtt: &str, user: &str, password: &str, filter: &str) -> anyhow::Result<Self> {
        Self::over(socket(mqtt).await?, user, password, filter).await
    }
}

/// A socket to a broker.
pub(crate) async fn socket(mqtt: &str) -> anyhow::Result<TcpStream> {
    let socket = TcpStream::connect(mqtt).await.with_context(|| format!("cannot connect to {mqtt}"))?;
    socket.set_nodelay(true)?;
    Ok(socket)
}

impl<S: AsyncRead + AsyncWrite + Unpin> Link<S> {
    /// As [`open`](Link::open), over a connection that is there.
    pub(crate) async fn over(socket: S, user: &str, password: &str, filter: &str) -> anyhow::Result<Self> {
        let mut link = Self { socket, inbox: Inbox::default(), outbox: Outbox::default() };
        let named = !user.is_empty();
        let mut body = b"\x00\x04MQTT\x04".to_vec();
        body.push(if named { 0b1100_0010 } else { 0b0000_0010 });
        body.extend(KEEP_ALIVE_S.to_be_bytes());
        text(&mut body, user);
        if named {
            text(&mut body, user);
            text(&mut body, password);
        }
        packet(&mut link.outbox.bytes, 0x10, &body);
        let mut body = vec![0, 1];
        text(&mut body, filter);
        body.push(1);
        link.turn_until(2, "CONNACK").await?;
        packet(&mut link.outbox.bytes, 0x82, &body);
        link.turn_until(9, "SUBACK").await?;
        Ok(link)
    }

    async fn turn_until(&mut self, kind: u8, what: &str) -> anyhow::Result<()> {
        loop {
            self.turn().await?;
            if let Some(Packet::Answer(came, code)) = self.inbox.next()? {
                ensure!(came == kind && code <= 1, "instead of {what}: packet {came} with code {code}");
                return Ok(());
            }
        }
    }

    /// Writes what waits, then reads.
    pub(crate) async fn turn(&mut self) -> anyhow::Result<()> {
        self.flush().await?;
        self.read().await
    }

    /// Reads what has come, at least something. May be dropped at any moment without losing anything.
    pub(crate) async fn read(&mut self) -> anyhow::Result<()> {
        self.inbox.bytes.drain(..std::mem::take(&mut self.inbox.at));
        ensure!(self.socket.read_buf(&mut self.inbox.bytes).await? > 0, "the broker closed the connection");
        Ok(())
    }

    /// Writes what waits.
    pub(crate) async fn flush(&mut self) -> anyhow::Result<()> {
        if !self.outbox.bytes.is_empty() {
            self.socket.write_all(&self.outbox.bytes).await?;
            self.socket.flush().await?;
            self.outbox.bytes.clear();
        }
        Ok(())
    }
}

impl Inbox {
    /// The next whole packet.
    pub(crate) fn next(&mut self) -> anyhow::Result<Option<Packet<'_>>> {
        let bytes = &self.bytes[self.at..];
        let (mut length, mut head) = (0usize, 1);
        loop {
            let Some(byte) = bytes.get(head) else { return Ok(None) };
            ensure!(head <= 4, "a length of more than four bytes");
            length |= usize::from(byte & 0x7f) << (7 * (head - 1));
            head += 1;
            if byte & 0x80 == 0 {
                break;
            }
        }
        let Some(body) = bytes.get(head..head + length) else { return Ok(None) };
        self.at += head + length;
        Ok(Some(match bytes[0] >> 4 {
            3 => publish(bytes[0], body)?,
            4 => Packet::PubAck,
            kind @ (2 | 9) => Packet::Answer(kind, *body.last().context("an empty answer")?),
            _ => Packet::Other,
        }))
    }
}

fn publish(head: u8, body: &[u8]) -> anyhow::Result<Packet<'_>> {
    let Some((length, rest)) = body.split_first_chunk::<2>() else { bail!("a publish without a topic") };
    let (topic, rest) = rest.split_at_checked(usize::from(u16::from_be_bytes(*length))).context("a cut topic")?;
    if head & 0b0110 == 0 {
        return Ok(Packet::Publish { topic, payload: rest, packet_id: None });
    }
    let (id, payload) = rest.split_first_chunk::<2>().context("a publish without its packet id")?;
    Ok(Packet::Publish { topic, payload, packet_id: Some(u16::from_be_bytes(*id)) })
}

impl Outbox {
    /// A publish of QoS 0 or 1.
    pub(crate) fn publish(&mut self, topic: &[u8], payload: &[u8], qos: u8) {
        let id_bytes = if qos == 0 { 0 } else { 2 };
        self.bytes.push(0x30 | qos << 1);
        length(&mut self.bytes, 2 + topic.len() + id_bytes + payload.len());
        self.bytes.extend(u16::try_from(topic.len()).expect("topics are short").to_be_bytes());
        self.bytes.extend(topic);
        if qos > 0 {
            self.packet_id = self.packet_id.checked_add(1).unwrap_or(1);
            self.bytes.extend(self.packet_id.to_be_bytes());
        }
        self.bytes.extend(payload);
    }

    /// The acknowledgement of a publish.
    pub(crate) fn puback(&mut self, packet_id: u16) {
        let [high, low] = packet_id.to_be_bytes();
        self.bytes.extend([0x40, 2, high, low]);
    }
}

fn packet(out: &mut Vec<u8>, head: u8, body: &[u8]) {
    out.push(head);
    length(out, body.len());
    out.extend(body);
}

fn length(out: &mut Vec<u8>, mut bytes: usize) {
    while bytes >= 0x80 {
        out.push((bytes & 0x7f) as u8 | 0x80);
        bytes >>= 7;
    }
    out.push(bytes as u8);
}

fn text(out: &mut Vec<u8>, text: &str) {
    out.extend(u16::try_from(text.len()).expect("a short text").to_be_bytes());
    out.extend(text.as_bytes());
}
