//! The bodies that travel over the bus. Both ends are in this process and of the same build: no versions, no checks
//! beyond what keeps a wrong body from being a panic.

use bytes::{Buf, BufMut, Bytes, BytesMut};

use super::{Closed, MqttVersion};

/// Longest device name in bytes (wire protocol); also what a frame's one-byte length can always hold.
pub(super) const DEVICE_BYTES_MAX: usize = 32;

/// What the door tells the hub. The device's name and its connection stand in the frame's head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Connected(MqttVersion),
    Disconnected(Closed),
    Event { retained: bool },
    Status { retained: bool },
    Will,
}

/// A message from the door to the hub, as bytes: kind, detail, connection, name, payload.
pub(super) struct Up<'a> {
    pub(super) kind: Kind,
    pub(super) connection: u64,
    pub(super) device: &'a str,
    pub(super) payload: &'a [u8],
}

/// Bytes of an up body before the name.
const UP_HEAD_BYTES: usize = 2 + 8 + 1;

impl Up<'_> {
    pub(super) fn bytes(&self) -> usize {
        UP_HEAD_BYTES + self.device.len() + self.payload.len()
    }

    pub(super) fn write(&self, out: &mut BytesMut) {
        let (kind, detail) = match self.kind {
            Kind::Connected(version) => (0, u8::from(version == MqttVersion::V5)),
            Kind::Disconnected(why) => (1, position(Closed::ALL, why)),
            Kind::Event { retained } => (2, u8::from(retained)),
            Kind::Status { retained } => (3, u8::from(retained)),
            Kind::Will => (4, 0),
        };
        out.put_u8(kind);
        out.put_u8(detail);
        out.put_u64(self.connection);
        write_name(out, self.device);
        out.put_slice(self.payload);
    }
}

/// Reads an up body: kind, connection, name, payload. `None` for bytes that no [`Up`] writes.
pub(super) fn read_up(mut body: Bytes) -> Option<(Kind, u64, Bytes, Bytes)> {
    if body.len() < UP_HEAD_BYTES {
        return None;
    }
    let (kind, detail, connection) = (body.get_u8(), body.get_u8(), body.get_u64());
    let device = read_name(&mut body)?;
    let kind = match kind {
        0 => Kind::Connected(if detail == 1 { MqttVersion::V5 } else { MqttVersion::V3_1_1 }),
        1 => Kind::Disconnected(*Closed::ALL.get(usize::from(detail))?),
        2 => Kind::Event { retained: detail == 1 },
        3 => Kind::Status { retained: detail == 1 },
        4 => Kind::Will,
        _ => return None,
    };
    Some((kind, connection, device, body))
}

/// A command from the hub to the door, as bytes: ticket, name, payload.
pub(super) struct Down<'a> {
    pub(super) ticket: u64,
    pub(super) device: &'a str,
    pub(super) payload: &'a [u8],
}

impl Down<'_> {
    pub(super) fn bytes(&self) -> usize {
        8 + 1 + self.device.len() + self.payload.len()
    }

    pub(super) fn write(&self, out: &mut BytesMut) {
        out.put_u64(self.ticket);
        write_name(out, self.device);
        out.put_slice(self.payload);
    }
}

/// Reads a down body: ticket, name, payload.
pub(super) fn read_down(mut body: Bytes) -> Option<(u64, Bytes, Bytes)> {
    if body.len() < 9 {
        return None;
    }
    let ticket = body.get_u64();
    let device = read_name(&mut body)?;
    Some((ticket, device, body))
}

fn write_name(out: &mut BytesMut, name: &str) {
    debug_assert!(name.len() <= DEVICE_BYTES_MAX, "names are checked before they come here");
    out.put_u8(u8::try_from(name.len()).expect("at most 32 bytes, checked before"));
    out.put_slice(name.as_bytes());
}

fn read_name(body: &mut Bytes) -> Option<Bytes> {
    let bytes = usize::from(body.get_u8());
    (body.len() >= bytes).then(|| body.split_to(bytes))
}

fn position<T: PartialEq>(all: &[T], one: T) -> u8 {
    let at = all.iter().position(|each| *each == one).expect("`ALL` holds every variant");
    u8::try_from(at).expect("fewer than 256 words")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_comes_out_as_it_went_in() {
        let mut kinds = vec![
            Kind::Connected(MqttVersion::V5),
            Kind::Connected(MqttVersion::V3_1_1),
            Kind::Event { retained: true },
            Kind::Event { retained: false },
            Kind::Status { retained: true },
            Kind::Will,
        ];
        kinds.extend(Closed::ALL.iter().map(|why| Kind::Disconnected(*why)));
        for kind in kinds {
            let up = Up { kind, connection: 9, device: "lamp", payload: b"x" };
            let mut out = BytesMut::new();
            up.write(&mut out);
            assert_eq!(out.len(), up.bytes());
            assert_eq!(read_up(out.freeze()), Some((kind, 9, Bytes::from("lamp"), Bytes::from("x"))));
        }
    }

    #[test]
    fn a_cut_body_is_nothing_and_no_panic() {
        let mut out = BytesMut::new();
        Up { kind: Kind::Will, connection: 9, device: "lamp", payload: b"" }.write(&mut out);
        let body = out.freeze();
        for cut in 0..body.len() {
            assert_eq!(read_up(body.slice(..cut)), None);
        }
        assert_eq!(read_down(Bytes::from_static(&[0, 0, 0, 0, 0, 0, 0, 0, 5, b'x'])), None);
    }
}
