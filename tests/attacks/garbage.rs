//! What is nearly right, and what is not at all: packets of both versions and requests over HTTP, mutated by chance.

use crate::{
    chance::Chance,
    support::{Login, packet, publish, publish_with, subscribe, subscribe_with, unsubscribe},
};

/// The longest piece of noise, bytes.
const NOISE_BYTES: u64 = 3_000;

fn upto(chance: &mut Chance, n: usize) -> usize {
    usize::try_from(chance.below(n.max(1) as u64)).unwrap()
}

fn byte(chance: &mut Chance) -> u8 {
    u8::try_from(chance.below(256)).unwrap()
}

pub(crate) fn noise(chance: &mut Chance) -> Vec<u8> {
    (0..chance.below(NOISE_BYTES)).map(|_| byte(chance)).collect()
}

/// Changes some bytes: other values, flipped bits, put in, taken out, cut, doubled, numbers at their limits.
pub(crate) fn mutate(chance: &mut Chance, bytes: &mut Vec<u8>) {
    for _ in 0..chance.below(4) {
        if bytes.is_empty() {
            return;
        }
        let at = upto(chance, bytes.len());
        match chance.below(8) {
            0 => bytes[at] = byte(chance),
            1 => bytes[at] ^= 1 << chance.below(8),
            2 => bytes.insert(at, byte(chance)),
            3 => drop(bytes.remove(at)),
            4 => bytes.truncate(at),
            5 => {
                let rest = bytes[at..].to_vec();
                bytes.extend_from_slice(&rest[..rest.len().min(1_000)]);
            }
            6 => bytes[at] = *chance.pick(&[0, 1, 0x7F, 0x80, 0xFF]),
            _ => {
                let piece = *chance.pick(&[
                    &b"\0"[..],
                    b"#",
                    b"+",
                    b"/",
                    b"$share/",
                    "é".as_bytes(),
                    b"\xFF\xFE",
                    b"\r\n",
                    b"{",
                ]);
                bytes.splice(at..at, piece.iter().copied());
            }
        }
    }
}

/// Topics that somebody may mean, and some that nobody may.
const TOPICS: [&str; 12] = [
    "truetwin/mallory/event",
    "truetwin/mallory/status",
    "truetwin/mallory/command",
    "truetwin/lamp/command",
    "home/light",
    "home/light/set",
    "home/#",
    "home/+/set",
    "#",
    "$SYS/#",
    "$share/g/home/#",
    "设备/灯",
];

/// Legal properties of a PUBLISH, each with its identifier.
const PROPERTIES: [&[u8]; 8] = [
    &[],
    &[0x01, 1],
    &[0x02, 0, 0, 0, 1],
    &[0x23, 0, 1],
    &[0x08, 0, 1, b'r'],
    &[0x09, 0, 2, 0, 1],
    &[0x26, 0, 1, b'k', 0, 1, b'v'],
    &[0x0B, 1],
];

/// A packet that a client may send, or nearly.
pub(crate) fn mqtt(chance: &mut Chance, v5: bool) -> Vec<u8> {
    let topic = *chance.pick(&TOPICS);
    let properties = *chance.pick(&PROPERTIES);
    let id = u16::try_from(chance.below(4)).unwrap();
    let payloads: [&[u8]; 4] = [
        b"",
        b"on",
        br#"{"event":"heartbeat","boot":"b","seq":1,"up_ms":1}"#,
        br#"{"event":"hello","proto":1,"level":1,"boot":"b","seq":1,"up_ms":1,"fw":"1","model":"m","desc":"d","properties":[],"actions":[],"state":{},"evidence":{},"seen":{}}"#,
    ];
    let payload = *chance.pick(&payloads);
    let mut bytes = match chance.below(12) {
        0..4 => {
            let flags = u8::try_from(chance.below(16)).unwrap();
            publish_with(topic, flags, id, payload, v5.then_some(properties))
        }
        4 => publish(topic, 1, 7, payload, v5),
        5 | 6 => subscribe(id, topic, byte(chance) & 0x3F, v5),
        7 => subscribe_with(id, &TOPICS, 1, v5.then_some(&[])),
        8 => unsubscribe(id, &[topic], v5),
        9 => packet(*chance.pick(&[0x40, 0x50, 0x62, 0x70]), &[0, byte(chance)]),
        10 => packet(*chance.pick(&[0xC0, 0xD0, 0xE0, 0xF0, 0x00, 0x20, 0x90, 0xB0]), &[]),
        _ => {
            let many = upto(chance, 64);
            packet(byte(chance), &(0..many).map(|_| byte(chance)).collect::<Vec<u8>>())
        }
    };
    mutate(chance, &mut bytes);
    bytes
}

/// A first packet: a CONNECT of somebody or nobody, nearly right.
pub(crate) fn connect(chance: &mut Chance, login: &Login) -> Vec<u8> {
    let mut login = login.clone();
    if chance.one_in(3) {
        login.password = None;
    }
    if chance.one_in(3) {
        login.clean = false;
        login.client_id = Vec::new();
    }
    if chance.one_in(3) {
        let qos = u8::try_from(chance.below(4)).unwrap();
        login.will = Some((chance.pick(&TOPICS).as_bytes().to_vec(), b"gone".to_vec(), qos, chance.one_in(2)));
    }
    if login.v5 && chance.one_in(2) {
        let all: [&[u8]; 6] =
            [&[0x11, 0, 0, 0, 9], &[0x21, 0, 1], &[0x27, 0, 0, 0, 32], &[0x22, 0, 9], &[0x19, 1], &[0x15, 0, 1, b'x']];
        login.properties = chance.pick(&all).to_vec();
    }
    let mut bytes = login.packet();
    mutate(chance, &mut bytes);
    if chance.one_in(8) { noise(chance) } else { bytes }
}

/// JSON-RPC that a client may send, or nearly.
const CALLS: [&str; 9] = [
    r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}"#,
    r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"get_device_state","arguments":{"device":"mallory"}}}"#,
    r#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"find_devices","arguments":{}}}"#,
    r#"{"jsonrpc":"2.0","id":"four","method":"tools/list"}"#,
    r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
    r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}"#,
    r#"{"jsonrpc":"2.0","id":5,"method":"resources/read","params":{"uri":"device://mallory"}}"#,
    r#"[{"jsonrpc":"2.0","id":6,"method":"ping"}]"#,
    r#"{"jsonrpc":"2.0","id":7,"result":{}}"#,
];

/// A request over HTTP, nearly right.
pub(crate) fn http(chance: &mut Chance) -> Vec<u8> {
    if chance.one_in(10) {
        return noise(chance);
    }
    let mut body = chance.pick(&CALLS).as_bytes().to_vec();
    if chance.one_in(2) {
        mutate(chance, &mut body);
    }
    if chance.one_in(12) {
        body = b"[".repeat(upto(chance, 20_000));
    }
    let method = *chance.pick(&["POST", "POST", "POST", "GET", "DELETE", "PUT", "OPTIONS", "BREW"]);
    let path = *chance.pick(&["/mcp", "/mcp", "/mcp", "/metrics", "/healthz", "/", "/mcp/../x", "/%00"]);
    let host = *chance.pick(&["localhost", "localhost", "127.0.0.1", "example.org"]);
    let more = *chance.pick(&[
        "",
        "Mcp-Session-Id: 0123\r\n",
        "Mcp-Protocol-Version: 2026-01-01\r\n",
        "Authorization: Bearer guess\r\n",
        "Origin: https://example.org\r\n",
        "Transfer-Encoding: chunked\r\n",
    ]);
    let said = if chance.one_in(8) { upto(chance, 200_000) } else { body.len() };
    let mut bytes = format!(
        "{method} {path} HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\nAccept: application/json, \
         text/event-stream\r\n{more}Content-Length: {said}\r\nConnection: close\r\n\r\n"
    )
    .into_bytes();
    if chance.one_in(3) {
        mutate(chance, &mut bytes);
    }
    bytes.extend_from_slice(&body);
    bytes
}
