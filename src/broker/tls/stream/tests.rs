//! Against the client of rustls, through a way that cuts the bytes anywhere.

use rustls::{
    ClientConfig, RootCertStore,
    pki_types::{PrivateKeyDer, ServerName},
    version::{TLS12, TLS13},
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex},
    net::TcpListener,
};
use tokio_rustls::{TlsConnector, client};

use super::*;

/// Chance from a seed (Marsaglia's xorshift).
struct Random(u64);

impl Random {
    fn below(&mut self, end: u32) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % u64::from(end)) as u32
    }
}

/// What both sides need to trust each other.
fn configs(version: &'static rustls::SupportedProtocolVersion) -> (Arc<ServerConfig>, Arc<ClientConfig>) {
    let key = rcgen::KeyPair::generate().unwrap();
    let params = rcgen::CertificateParams::new(["localhost".to_owned()]).unwrap();
    let certificate = params.self_signed(&key).unwrap().der().clone();
    let mut roots = RootCertStore::empty();
    roots.add(certificate.clone()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let client = ClientConfig::builder_with_provider(provider).with_protocol_versions(&[version]).unwrap();
    let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
    let server = crate::broker::tls::server(vec![certificate], key).unwrap();
    (Arc::new(server), Arc::new(client.with_root_certificates(roots).with_no_client_auth()))
}

/// Two ends of a connection.
async fn sockets() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (there, here) = tokio::join!(TcpStream::connect(listener.local_addr().unwrap()), listener.accept());
    (there.unwrap(), here.unwrap().0)
}

/// Both ends of a handshake over this way of the client's.
async fn shaken<W>(
    version: &'static rustls::SupportedProtocolVersion,
    way: W,
    socket: TcpStream,
) -> (client::TlsStream<W>, TlsStream)
where
    W: AsyncRead + AsyncWrite + Unpin,
{
    let (server, config) = configs(version);
    let name = ServerName::try_from("localhost").unwrap();
    let (client, server) =
        tokio::join!(TlsConnector::from(config).connect(name, way), TlsStream::accept(server, socket));
    (client.unwrap(), server.map_err(|(error, _)| error).unwrap())
}

/// A way to the socket that carries what it is given in pieces of up to so many bytes.
fn in_pieces(socket: TcpStream, most: u32, seed: u64) -> DuplexStream {
    let (near, far) = duplex(1 << 16);
    let (mut from_far, mut to_far) = tokio::io::split(far);
    let (mut from_socket, mut to_socket) = socket.into_split();
    tokio::spawn(async move { tokio::io::copy(&mut from_socket, &mut to_far).await });
    tokio::spawn(async move {
        let mut random = Random(seed);
        let mut bytes = vec![0; most as usize];
        loop {
            let some = 1 + random.below(most) as usize;
            let came = from_far.read(&mut bytes[..some]).await.unwrap_or(0);
            if came == 0 || to_socket.write_all(&bytes[..came]).await.is_err() {
                return;
            }
            tokio::task::yield_now().await;
        }
    });
    near
}

fn holds_nothing(stream: &TlsStream) -> bool {
    [&stream.incoming, &stream.plain, &stream.outgoing].iter().all(|bytes| bytes.capacity() == 0)
}

#[tokio::test]
async fn what_is_sent_arrives_however_it_is_cut_and_an_idle_connection_holds_no_buffer() {
    for (seed, version, most) in [(1, &TLS12, 1), (2, &TLS13, 1), (3, &TLS12, 9_000), (4, &TLS13, 9_000)] {
        let (there, here) = sockets().await;
        here.set_nodelay(true).unwrap();
        let (mut client, mut server) = shaken(version, in_pieces(there, most, seed), here).await;
        assert!(holds_nothing(&server), "after the handshake");
        for bytes in [1, 200, 16 << 10, if most == 1 { 20_000 } else { 300_000 }] {
            let sent: Vec<u8> = (0..bytes).map(|at| (at % 251) as u8).collect();
            let (mut heard, mut back) = (vec![0; bytes], vec![0; bytes]);
            let to = async {
                client.write_all(&sent).await.unwrap();
                client.flush().await.unwrap();
                client.read_exact(&mut back).await.unwrap();
            };
            let from = async {
                server.read_exact(&mut heard).await.unwrap();
                server.write_all(&heard).await.unwrap();
                server.flush().await.unwrap();
            };
            tokio::join!(to, from);
            assert!(back == sent, "{bytes} bytes of TLS over pieces of at most {most}");
            assert!(holds_nothing(&server), "after {bytes} bytes");
        }
    }
}

#[tokio::test]
async fn a_goodbye_is_an_end_and_a_cut_is_an_error() {
    for version in [&TLS12, &TLS13] {
        let (there, here) = sockets().await;
        let (mut client, mut server) = shaken(version, there, here).await;
        client.shutdown().await.unwrap();
        assert_eq!(server.read(&mut [0; 9]).await.unwrap(), 0);
        server.write_all(b"last words").await.unwrap();
        server.shutdown().await.unwrap();
        server.shutdown().await.unwrap();
        let mut last = String::new();
        client.read_to_string(&mut last).await.unwrap();
        assert_eq!(last, "last words", "and a goodbye behind them");

        let (there, here) = sockets().await;
        let (client, mut server) = shaken(version, there, here).await;
        drop(client.into_inner().0);
        let cut = server.read(&mut [0; 9]).await.unwrap_err();
        assert!(matches!(cut.kind(), io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset), "{cut}");
    }
}

#[tokio::test]
async fn a_client_may_change_its_keys_and_ask_for_the_hubs() {
    let (there, here) = sockets().await;
    let (mut client, mut server) = shaken(&TLS13, there, here).await;
    for _ in 0..3 {
        client.get_mut().1.refresh_traffic_keys().unwrap();
        client.write_all(b"ask").await.unwrap();
        client.flush().await.unwrap();
        let mut bytes = [0; 3];
        server.read_exact(&mut bytes).await.unwrap();
        server.write_all(&bytes).await.unwrap();
        server.flush().await.unwrap();
        client.read_exact(&mut bytes).await.unwrap();
        assert_eq!(&bytes, b"ask");
    }
}

#[tokio::test]
async fn a_record_that_was_tampered_with_ends_the_connection_with_an_alert_and_nothing_goes_after_it() {
    for version in [&TLS12, &TLS13] {
        let (there, here) = sockets().await;
        let (client, mut server) = shaken(version, there, here).await;
        let (mut socket, mut session) = client.into_inner();
        socket.write_all(&[0x17, 3, 3, 0, 32]).await.unwrap();
        socket.write_all(&[7; 32]).await.unwrap();
        let error = server.read(&mut [0; 9]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData, "{error}");
        assert_eq!(server.write(b"x").await.unwrap_err().kind(), io::ErrorKind::BrokenPipe);
        assert!(server.shutdown().await.is_err());
        assert!(server.read(&mut [0; 9]).await.is_ok_and(|read| read == 0), "and nothing is read");
        drop(server);
        let mut alert = Vec::new();
        socket.read_to_end(&mut alert).await.unwrap();
        session.read_tls(&mut &alert[..]).unwrap();
        let told = session.process_new_packets().unwrap_err();
        assert!(matches!(told, rustls::Error::AlertReceived(_)), "{told}");
    }
}

#[tokio::test]
async fn a_handshake_of_garbage_or_without_an_end_is_an_error_and_holds_no_more_than_a_record() {
    let seed = 20_261_201;
    let (config, _) = configs(&TLS13);
    let mut random = Random(seed);
    for round in 0..300 {
        let (mut there, here) = sockets().await;
        let mut bytes = vec![0x16, 3, 1];
        let length = random.below(2_000);
        bytes.extend(u16::try_from(if round % 3 == 0 { random.below(60_000) } else { length }).unwrap().to_be_bytes());
        bytes.extend((0..length).map(|_| random.below(256) as u8));
        if round % 2 == 0 && length > 8 {
            // The beginning of a ClientHello of 60 000 bytes, in many records.
            bytes.splice(5..9, [1, 0, 0xEA, 0x60]);
            bytes = bytes.repeat(1 + random.below(40) as usize);
        }
        let send = async {
            let _refused_half_way = there.write_all(&bytes).await;
            let _also = there.shutdown().await;
        };
        let (accepted, ()) = tokio::join!(TlsStream::accept(config.clone(), here), send);
        assert!(accepted.is_err(), "seed {seed}, round {round}");
    }
}

#[tokio::test]
async fn a_handshake_that_fails_tells_the_client_why() {
    let (there, here) = sockets().await;
    let (server, _) = configs(&TLS13);
    let (_, config) = configs(&TLS13); // of another hub
    let name = ServerName::try_from("localhost").unwrap();
    let (client, server) =
        tokio::join!(TlsConnector::from(config).connect(name, there), TlsStream::accept(server, here));
    assert!(client.is_err());
    let Err((error, _socket)) = server else { panic!("the client does not trust it") };
    assert_eq!(error.kind(), io::ErrorKind::InvalidData, "{error}");

    let (mut there, here) = sockets().await;
    let (server, _) = configs(&TLS13);
    let send = async { there.write_all(&[0x16, 3, 1, 0, 5, 1, 0, 0, 1, 0]).await.unwrap() };
    let (server, ()) = tokio::join!(TlsStream::accept(server, here), send);
    drop(server.map(drop).unwrap_err());
    let mut alert = Vec::new();
    there.read_to_end(&mut alert).await.unwrap();
    assert_eq!(alert.first(), Some(&0x15), "{alert:?}");
}
