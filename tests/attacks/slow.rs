//! Those who connect and are slow, or silent: on each listener, before and after they have said who they are.

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpSocket, TcpStream, UnixStream},
};
use truetwin::control::{self, Request, Response};

use crate::{
    rig::{HANG, MALLORY, OUTSIDE, Rig, Table},
    support::{Client, publish},
};

/// Where somebody comes in from meanwhile; the address of those who are slow has its places taken.
const NEIGHBOUR: [u8; 4] = [127, 0, 0, 67];

/// Sockets that are slow at once, on the MQTT listener and on that of HTTP.
const MANY: usize = 200;

pub(crate) async fn on_each_listener(rig: &mut Rig, table: &mut Table) {
    before_login(rig, table).await;
    after_login(rig, table).await;
    let requests = over_http(rig).await;
    let commands = over_the_control_socket(rig).await;
    rig.converges("while requests and commands do not end").await;
    for mut socket in requests {
        let mut answer = Vec::new();
        let read = tokio::time::timeout(HANG, socket.read_to_end(&mut answer)).await;
        assert!(read.is_ok(), "a request that does not come is waited for without an end");
    }
    table.row("HTTP: 200 requests that never end", "408, or nothing; closed at the deadline", "others are answered");
    for mut socket in commands {
        let mut said = Vec::new();
        tokio::time::timeout(HANG, socket.read_to_end(&mut said)).await.expect("it is closed").unwrap();
    }
    table.row("control socket: 7 that say nothing (its owner's only)", "closed after 10 s", "commands are answered");
}

/// A CONNECT or a TLS handshake that begins and never ends, and sockets that say nothing at all.
async fn before_login(rig: &mut Rig, table: &mut Table) {
    let ended = async |rig: &Rig| {
        let mut sum = 0;
        for name in ["refused_silent", "refused_crowded", "refused_address"] {
            sum += rig.metric(&format!("truetwin_door_{name}_total")).await;
        }
        sum
    };
    let connect = rig.login(MALLORY, true).packet();
    // The head of a handshake record of 512 bytes, and of the ClientHello in it (RFC 8446 5.1, 4).
    let hello = [0x16, 3, 1, 2, 0, 1, 0, 1, 0xFC, 3, 3, 0, 0, 0, 0, 0];
    for (what, first) in [("CONNECT", &connect[..connect.len() - 1]), ("TLS handshake", &hello[..])] {
        let before = ended(rig).await;
        let mut slow = Vec::new();
        for at in 0..MANY {
            let mut client = rig.dial(true).await;
            client.send(&first[..at % first.len()]).await;
            slow.push(client);
        }
        rig.converges("while 200 sockets are slow before their login").await;
        let mut neighbour = Client::raw_from(NEIGHBOUR, rig.mqtt, false).await;
        assert_eq!(neighbour.login(&rig.login(MALLORY, false).packet()).await, Some(0), "from another address");
        for client in &mut slow {
            assert_eq!(client.next().await, None, "it is closed without a word");
        }
        assert_eq!(ended(rig).await - before, MANY as u64);
        let attack = format!("MQTT: 200 sockets that never end their {what}");
        table.row(&attack, "nothing; closed at the deadline", "others come in and are answered");
    }
}

/// A packet that is announced and never comes.
async fn after_login(rig: &mut Rig, table: &mut Table) {
    let mut mallory = rig.dial(true).await;
    assert_eq!(mallory.login(&rig.login(MALLORY, true).keep_alive_s(1).packet()).await, Some(0));
    let packet = publish("truetwin/mallory/event", 1, 1, &[b'x'; 2000], true);
    mallory.send(&packet[..1000]).await;
    rig.converges("while a packet is not finished").await;
    assert_eq!(mallory.farewell().await, Some(0x8D));
    table.row(
        "MQTT: half a packet after the login",
        "DISCONNECT 0x8D at 1.5 times the keep-alive",
        "nobody waits for it",
    );
}

async fn over_http(rig: &mut Rig) -> Vec<TcpStream> {
    let mut slow = Vec::new();
    for at in 0..MANY {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind((OUTSIDE, 0).into()).unwrap();
        let mut socket = socket.connect(rig.http).await.unwrap();
        let request = [
            &b""[..],
            b"P",
            b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Ty",
            b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{\"json",
        ][at % 4];
        let _closed_already = socket.write_all(request).await;
        slow.push(socket);
    }
    let another = rig.caller().await;
    rig.converges("while 200 requests over HTTP do not end").await;
    another.close().await;
    slow
}

async fn over_the_control_socket(rig: &mut Rig) -> Vec<UnixStream> {
    let (data, mut silent) = (rig.data(), Vec::new());
    for _ in 0..control::CONNECTIONS_MAX - 1 {
        silent.push(UnixStream::connect(data.join("hub.sock")).await.unwrap());
    }
    let asked = tokio::task::spawn_blocking(move || control::ask(&data, &Request::DeviceList)).await.unwrap();
    assert!(matches!(asked, Ok(Response::Devices { .. })), "{asked:?}");
    silent
}
