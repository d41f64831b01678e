//! The wire between the device core and the hub: passes MQTT packets on, and loses or spoils single messages where the fault
//! says so. The core believes that a lost report was delivered: it is acknowledged here.
#![expect(clippy::wildcard_enum_match_arm, reason = "a fault that is not named in a place bends nothing there")]

use std::io;

use serde_json::Value;
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader, DuplexStream, ReadHalf, WriteHalf, duplex},
    net::TcpStream,
    sync::Mutex,
};

use super::{Fault, world::World};

/// Room between the core and the wire, bytes: more than either side writes at a time, so that nothing waits here.
const ROOM: usize = 64 * 1024;

/// Longest packet that is passed on, bytes; the core's own is 2 KiB, a hub's 1 KiB. A longer one ends the connection.
const PACKET_BYTES_MAX: usize = 16 * 1024;

/// MQTT packet types, in the first half of a packet's first byte.
const PUBLISH: u8 = 0x30;
const PUBACK: u8 = 0x40;

/// The core's end of a wire to the hub, and the wire: it has to be polled as long as the connection is to live, and ends with it.
pub(super) fn wire<'w>(
    hub: TcpStream,
    world: &'w World,
) -> (DuplexStream, impl Future<Output = io::Result<()>> + use<'w>) {
    let (core, ours) = duplex(ROOM);
    let wire = async move {
        let (from_core, to_core) = tokio::io::split(ours);
        let (from_hub, to_hub) = hub.into_split();
        let to_core = Mutex::new(to_core);
        tokio::select! {
            ended = up(BufReader::new(from_core), to_hub, &to_core, world) => ended,
            ended = down(BufReader::new(from_hub), &to_core, world) => ended,
        }
    };
    (core, wire)
}

/// What becomes of a message.
enum Fate {
    Passes,
    Lost,
    Becomes(Value),
}

type ToCore = Mutex<WriteHalf<DuplexStream>>;

/// From the core to the hub.
async fn up(
    mut core: BufReader<ReadHalf<DuplexStream>>,
    mut hub: impl AsyncWrite + Unpin,
    to_core: &ToCore,
    world: &World,
) -> io::Result<()> {
    loop {
        let packet = read_packet(&mut core).await?;
        let message = Message::read(&packet);
        let fate = message.as_ref().map_or(Fate::Passes, |message| report(message, world));
        match (message, fate) {
            (_, Fate::Passes) | (None, _) => hub.write_all(&packet).await?,
            (Some(message), Fate::Becomes(value)) => hub.write_all(&message.with(&value)).await?,
            (Some(message), Fate::Lost) => {
                if let Some([high, low]) = message.id {
                    to_core.lock().await.write_all(&[PUBACK, 2, high, low]).await?;
                }
            }
        }
    }
}

/// From the hub to the core.
async fn down(mut hub: BufReader<impl AsyncRead + Unpin>, to_core: &ToCore, world: &World) -> io::Result<()> {
    loop {
        let packet = read_packet(&mut hub).await?;
        let message = Message::read(&packet);
        let word = message.as_ref().and_then(|message| message.payload["command"].as_str());
        let fault = world.lock().fault;
        if fault == Fault::NoCommand && matches!(word, Some("set" | "run")) {
            continue;
        }
        to_core.lock().await.write_all(&packet).await?;
        if fault == Fault::HelloStorm && word == Some("welcome") {
            return Ok(());
        }
    }
}

/// What the fault does to an event of the device.
fn report(message: &Message, world: &World) -> Fate {
    let event = message.payload["event"].as_str();
    let result = message.payload["result"].as_str();
    let (report, state) = (event == Some("device_action_report"), event == Some("device_state"));
    let ends = matches!(result, Some("completed" | "failed"));
    let mut inner = world.lock();
    let lost = match inner.fault {
        Fault::NoAck => result == Some("received"),
        Fault::NoExecuting => result == Some("executing"),
        Fault::NoCompletion => ends,
        Fault::NoReports => report || state,
        Fault::NeverStarts | Fault::StartsLate => message.payload["reason"] == "expired",
        Fault::NothingAfterDriving => (report || state) && inner.silenced,
        Fault::WrongType if ends || state => return Fate::Becomes(wrong_type(&message.payload)),
        Fault::UnknownWord if ends || state => return Fate::Becomes(unknown_word(&message.payload)),
        _ => false,
    };
    inner.silenced |= inner.fault == Fault::NothingAfterDriving && result == Some("executing");
    if lost { Fate::Lost } else { Fate::Passes }
}

/// Each value as a text, or a text as a number.
fn wrong_type(payload: &Value) -> Value {
    let mut payload = payload.clone();
    if let Some(status) = payload.get_mut("status").and_then(Value::as_object_mut) {
        for (_, value) in status.iter_mut() {
            *value = if value.is_string() { Value::from(1) } else { Value::from("yes") };
        }
    }
    payload
}

/// An end, and a state, in words that the protocol does not have.
fn unknown_word(payload: &Value) -> Value {
    let mut payload = payload.clone();
    match payload.get_mut("result") {
        Some(result) => *result = Value::from("accomplished"),
        None => payload["event"] = Value::from("device_condition"),
    }
    payload
}

/// One PUBLISH with JSON in it.
struct Message {
    /// Its first byte.
    first: u8,
    /// Topic, packet id and properties, as they stood.
    head: Vec<u8>,
    id: Option<[u8; 2]>,
    payload: Value,
}

impl Message {
    /// Reads a packet; `None` if it is another one, or no JSON.
    fn read(packet: &[u8]) -> Option<Self> {
        let (first, rest) = packet.split_first()?;
        if first & 0xf0 != PUBLISH {
            return None;
        }
        let (_, used) = length(rest)?;
        let body = rest.get(used..)?;
        let topic = usize::from(u16::from_be_bytes([*body.first()?, *body.get(1)?]));
        let mut at = 2 + topic;
        let mut id = None;
        if first & 0x06 != 0 {
            id = Some([*body.get(at)?, *body.get(at + 1)?]);
            at += 2;
        }
        let (properties, used) = length(body.get(at..)?)?;
        at += used + properties;
        let payload = serde_json::from_slice(body.get(at..)?).ok()?;
        Some(Self { first: *first, head: body.get(..at)?.to_vec(), id, payload })
    }

    /// The packet with another payload.
    fn with(&self, payload: &Value) -> Vec<u8> {
        let payload = payload.to_string().into_bytes();
        let mut packet = vec![self.first];
        let mut left = self.head.len() + payload.len();
        loop {
            let low = u8::try_from(left % 128).unwrap_or_default();
            left /= 128;
            packet.push(if left > 0 { low | 128 } else { low });
            if left == 0 {
                break;
            }
        }
        packet.extend_from_slice(&self.head);
        packet.extend_from_slice(&payload);
        packet
    }
}

/// A length of MQTT: seven bits a byte, the lowest first; and how many bytes it took.
fn length(bytes: &[u8]) -> Option<(usize, usize)> {
    let mut value = 0;
    for (at, byte) in bytes.iter().take(4).enumerate() {
        value |= usize::from(byte & 127) << (7 * at);
        if byte & 128 == 0 {
            return Some((value, at + 1));
        }
    }
    None
}

/// One whole packet. An error at the end of the connection, and at a packet that is none.
async fn read_packet(from: &mut (impl AsyncRead + Unpin)) -> io::Result<Vec<u8>> {
    let mut packet = vec![from.read_u8().await?];
    let (left, _) = loop {
        packet.push(from.read_u8().await?);
        let lengths = packet.get(1..).unwrap_or_default();
        if let Some(found) = length(lengths) {
            break found;
        }
        if lengths.len() >= 4 {
            return Err(io::ErrorKind::InvalidData.into());
        }
    };
    if left > PACKET_BYTES_MAX {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let head = packet.len();
    packet.resize(head + left, 0);
    from.read_exact(packet.get_mut(head..).unwrap_or_default()).await?;
    Ok(packet)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that fails here says where")]
mod tests {
    use super::*;

    /// QoS 1, topic `t`, id 7, no properties.
    fn publish(payload: &str) -> Vec<u8> {
        let mut packet = vec![0x32, u8::try_from(6 + payload.len()).unwrap(), 0, 1, b't', 0, 7, 0];
        packet.extend_from_slice(payload.as_bytes());
        packet
    }

    #[test]
    fn a_message_is_found_in_its_packet_and_put_back() {
        let packet = publish(r#"{"a":1}"#);
        let message = Message::read(&packet).unwrap();
        assert_eq!((message.id, &message.payload["a"]), (Some([0, 7]), &Value::from(1)));
        assert_eq!(message.with(&message.payload), packet);
        let long = message.with(&Value::from("x".repeat(300)));
        assert_eq!(Message::read(&long).unwrap().payload.as_str().unwrap().len(), 300);
        assert!(Message::read(&[0x40, 2, 0, 7]).is_none());
        assert!(Message::read(&packet[..9]).is_none());
    }

    #[test]
    fn what_is_spoiled_is_still_json_of_the_same_event() {
        let payload: Value = serde_json::from_str(r#"{"result":"completed","status":{"relay":true}}"#).unwrap();
        assert_eq!(wrong_type(&payload)["status"]["relay"], "yes");
        assert_eq!(unknown_word(&payload)["result"], "accomplished");
        let state: Value = serde_json::from_str(r#"{"event":"device_state"}"#).unwrap();
        assert_eq!(unknown_word(&state)["event"], "device_condition");
    }
}
