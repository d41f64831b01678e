//! Packets of a client, legal and nearly so.

use truetwin::broker::MqttVersion;

use crate::random::Source;

/// The device that sessions log in as; its password is `pw-` and its name.
pub const DEVICE: &str = "lamp";

/// The service account that they log in as, with its password alike.
pub const ACCOUNT: &str = "ha";

const TEXTS: &[&[u8]] = &[
    b"truetwin/lamp/event",
    b"truetwin/lamp/command",
    b"truetwin/lamp/status",
    b"truetwin/other/event",
    b"a",
    b"a/b",
    b"",
    b"#",
    b"+",
    b"a/#",
    b"a/+/b",
    b"a/#/b",
    b"$share/g/a",
    b"$share//a",
    b"$SYS/x",
    "\u{e9}/x".as_bytes(),
    "\u{8bbe}\u{5907}/\u{706f}".as_bytes(),
    b"a\0b",
    b"\xFF\xFE",
    b"\xED\xA0\x80",
    b"\xEF\xBB\xBFx",
];

const PAYLOADS: &[&[u8]] = &[b"", b"{}", b"hi", b"\xFF\0", "\u{706f}".as_bytes(), b"a\0b", &[b'x'; 140]];

/// A text or bytes with its length before it.
fn field(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend_from_slice(&u16::try_from(bytes.len()).unwrap().to_be_bytes());
    out.extend_from_slice(bytes);
}

fn varint(out: &mut Vec<u8>, mut value: usize) {
    loop {
        let byte = (value & 0x7F) as u8;
        value >>= 7;
        out.push(if value > 0 { byte | 0x80 } else { byte });
        if value == 0 {
            return;
        }
    }
}

/// A first byte, the length, the body.
pub fn packet(first: u8, body: &[u8]) -> Vec<u8> {
    let mut out = vec![first];
    varint(&mut out, body.len());
    out.extend_from_slice(body);
    out
}

/// One property with this identifier, of the right type, with a value that may be out of range.
fn property(out: &mut Vec<u8>, source: &mut Source<'_>, id: u8) {
    out.push(id);
    match id {
        0x01 | 0x17 | 0x19 | 0x24 | 0x25 | 0x28..=0x2A => out.push(source.one(&[0, 1, 1, 0, 2])),
        0x02 | 0x11 | 0x18 | 0x27 => {
            out.extend_from_slice(&source.one(&[[0, 0, 0, 9], [0, 1, 0, 0], [0; 4], [0xFF; 4]]))
        }
        0x13 | 0x21 | 0x22 | 0x23 => out.extend_from_slice(&source.one(&[[0, 1], [0, 9], [0, 0], [0xFF; 2]])),
        0x0B => varint(out, source.one(&[1, 127, 128, 268_435_455, 0])),
        0x26 => {
            field(out, source.one(&TEXTS[..6]));
            let value = source.one(TEXTS);
            field(out, value);
        }
        0x09 | 0x16 => field(out, source.one(PAYLOADS)),
        _ => field(out, source.one(TEXTS)), // 0x03, 0x08, 0x12, 0x15, 0x1A, 0x1C, 0x1F
    }
}

const EVERY_PROPERTY: &[u8] = &[
    0x01, 0x02, 0x03, 0x08, 0x09, 0x0B, 0x11, 0x12, 0x13, 0x15, 0x16, 0x17, 0x18, 0x19, 0x1A, 0x1C, 0x1F, 0x21, 0x22,
    0x23, 0x24, 0x25, 0x26, 0x27, 0x28, 0x29, 0x2A,
];

/// Properties with their length, mostly some of those that the packet may have.
fn properties(out: &mut Vec<u8>, source: &mut Source<'_>, allowed: &[u8]) {
    let mut some = Vec::new();
    let many = source.one(&[0, 0, 0, 1, 1, 2, 3, 5]);
    for _ in 0..many {
        let id = if source.once_in(16) { source.one(EVERY_PROPERTY) } else { source.one(allowed) };
        property(&mut some, source, id);
    }
    varint(out, some.len());
    out.extend_from_slice(&some);
}

/// Good flags mostly.
fn rarely(source: &mut Source<'_>, good: u8) -> u8 {
    if source.once_in(24) { source.byte() & 0x0F } else { good }
}

fn id(out: &mut Vec<u8>, source: &mut Source<'_>) {
    let id = if source.once_in(32) { 0 } else { 1 + source.below(200) };
    out.extend_from_slice(&u16::try_from(id).unwrap().to_be_bytes());
}

/// A CONNECT of this user, with the right password more often than not.
pub fn connect(source: &mut Source<'_>, version: MqttVersion, user: &str) -> Vec<u8> {
    let v5 = version == MqttVersion::V5;
    let password = format!("pw-{user}");
    let mut body = Vec::new();
    field(&mut body, if source.once_in(40) { source.one(&[&b"MQIsdp"[..], b"HTTP", b"mqtt", b""]) } else { b"MQTT" });
    body.push(if source.once_in(40) {
        source.byte()
    } else if v5 {
        5
    } else {
        4
    });
    let flags =
        if source.once_in(16) { source.byte() } else { source.one(&[0xC2, 0xC2, 0xC0, 0xC6, 0xCE, 0xE6, 0x82, 0x02]) };
    body.push(flags);
    body.extend_from_slice(&source.one(&[[0, 60], [0, 0], [0xFF; 2]]));
    if v5 {
        properties(&mut body, source, &[0x11, 0x21, 0x27, 0x22, 0x19, 0x17, 0x26, 0x26, 0x15, 0x16]);
    }
    field(&mut body, source.one(&TEXTS[4..]));
    if flags & 0x04 != 0 {
        if v5 {
            properties(&mut body, source, &[0x18, 0x01, 0x02, 0x03, 0x08, 0x09, 0x26]);
        }
        let topic = if source.once_in(3) { source.one(TEXTS) } else { b"truetwin/lamp/status" };
        field(&mut body, topic);
        field(&mut body, source.one(PAYLOADS));
    }
    if flags & 0x80 != 0 {
        field(&mut body, if source.once_in(12) { source.one(TEXTS) } else { user.as_bytes() });
    }
    if flags & 0x40 != 0 {
        field(&mut body, if source.once_in(12) { source.one(TEXTS) } else { password.as_bytes() });
    }
    packet(0x10 | rarely(source, 0), &body)
}

/// A PUBLISH.
pub fn publish(source: &mut Source<'_>, version: MqttVersion) -> Vec<u8> {
    let good = source.one(&[0x00, 0x02, 0x02, 0x0A, 0x01, 0x03, 0x04]);
    let flags = rarely(source, good);
    let mut body = Vec::new();
    field(&mut body, if source.once_in(2) { source.one(TEXTS) } else { b"truetwin/lamp/event" });
    if flags & 0x06 != 0 {
        id(&mut body, source);
    }
    if version == MqttVersion::V5 {
        properties(&mut body, source, &[0x01, 0x02, 0x23, 0x08, 0x09, 0x26, 0x26, 0x03, 0x0B]);
    }
    body.extend_from_slice(source.one(PAYLOADS));
    packet(0x30 | flags, &body)
}

/// A PUBACK.
pub fn puback(source: &mut Source<'_>, version: MqttVersion) -> Vec<u8> {
    let mut body = Vec::new();
    id(&mut body, source);
    if version == MqttVersion::V5 && source.once_in(2) {
        body.push(source.one(&[0, 0x10, 0x80, 0x83, 0x87, 0x90, 0x91, 0x97, 0x99, 0x01, 0x92]));
        if source.once_in(2) {
            properties(&mut body, source, &[0x1F, 0x26]);
        }
    }
    packet(0x40 | rarely(source, 0), &body)
}

/// A SUBSCRIBE of up to three filters.
pub fn subscribe(source: &mut Source<'_>, version: MqttVersion) -> Vec<u8> {
    let v5 = version == MqttVersion::V5;
    let mut body = Vec::new();
    id(&mut body, source);
    if v5 {
        properties(&mut body, source, &[0x26, 0x26, 0x0B]);
    }
    let many = if source.once_in(24) { 0 } else { 1 + source.below(3) };
    for _ in 0..many {
        field(&mut body, source.one(TEXTS));
        let plain = source.one(&[0, 1, 1, 2]);
        let more = if v5 { source.one(&[0, 0, 0x04, 0x08, 0x10, 0x20, 0x2C]) } else { 0 };
        body.push(if source.once_in(24) { source.byte() } else { plain | more });
    }
    packet(0x80 | rarely(source, 2), &body)
}

/// An UNSUBSCRIBE of up to three filters.
pub fn unsubscribe(source: &mut Source<'_>, version: MqttVersion) -> Vec<u8> {
    let mut body = Vec::new();
    id(&mut body, source);
    if version == MqttVersion::V5 {
        properties(&mut body, source, &[0x26]);
    }
    let many = if source.once_in(24) { 0 } else { 1 + source.below(3) };
    for _ in 0..many {
        field(&mut body, source.one(TEXTS));
    }
    packet(0xA0 | rarely(source, 2), &body)
}

/// A DISCONNECT.
pub fn disconnect(source: &mut Source<'_>, version: MqttVersion) -> Vec<u8> {
    let mut body = Vec::new();
    if version == MqttVersion::V5 && source.once_in(2) {
        body.push(if source.once_in(4) { source.byte() } else { source.one(&[0, 4, 0x80, 0x81, 0x93, 0x99]) });
        if source.once_in(2) {
            properties(&mut body, source, &[0x11, 0x1F, 0x26]);
        }
    }
    packet(0xE0 | rarely(source, 0), &body)
}

/// Any packet but CONNECT.
pub fn later(source: &mut Source<'_>, version: MqttVersion) -> Vec<u8> {
    match source.below(16) {
        0..=5 => publish(source, version),
        6..=8 => subscribe(source, version),
        9 | 10 => unsubscribe(source, version),
        11 => puback(source, version),
        12 | 13 => packet(0xC0 | rarely(source, 0), &[]),
        14 => disconnect(source, version),
        // Of a server, of QoS 2, of extended authentication, of none.
        _ => packet(source.one(&[0x00, 0x20, 0x50, 0x62, 0x70, 0x90, 0xB0, 0xD0, 0xF0]), &[0, 1]),
    }
}

/// Changes some bytes; mostly mends the length, so that the change reaches the fields.
pub fn mutate(bytes: &mut Vec<u8>, source: &mut Source<'_>) {
    for _ in 0..=source.below(3) {
        let at = source.below(bytes.len().max(1));
        match source.below(7) {
            _ if bytes.len() < 3 => bytes.push(source.byte()),
            0 => bytes[at] = source.byte(),
            1 => bytes[at] ^= 1 << source.below(8),
            2 => bytes.insert(at, source.byte()),
            3 => drop(bytes.remove(at)),
            4 => bytes.extend_from_slice(&[source.byte(), source.byte()]),
            5 => bytes.truncate(at.max(2)),
            _ => {
                let piece: Vec<u8> = bytes[at..].iter().take(6).copied().collect();
                bytes.splice(at..at, piece);
            }
        }
    }
    if bytes.len() > 2 && bytes.len() < 0x80 && !source.once_in(8) {
        bytes[1] = u8::try_from(bytes.len() - 2).unwrap();
    }
}
