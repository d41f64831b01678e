//! TLS on the same port: both versions, both kinds of TLS, what is refused, and a certificate that is replaced while the hub runs.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    sync::Arc,
};

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::{
    ClientConfig, RootCertStore,
    pki_types::{CertificateDer, ServerName},
    version::{TLS12, TLS13},
};
use tokio::{io::AsyncReadExt as _, net::TcpStream};
use tokio_rustls::{TlsConnector, client::TlsStream};
use truetwin::broker::{self, Broker, MqttVersion::*, Settings, Tls};

use crate::support::*;

/// An authority, and a folder for the certificates that it signs.
pub(crate) struct Authority {
    folder: tempfile::TempDir,
    certificate: CertificateDer<'static>,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    pub(crate) fn new() -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let certificate = params.self_signed(&key).unwrap().der().clone();
        let this = Self { folder: tempfile::tempdir().unwrap(), certificate, issuer: Issuer::new(params, key) };
        this.signs("localhost", 2040);
        this
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A certificate for this name until that year, in place of the one before.
    fn signs(&self, name: &str, year: i32) {
        let (cert, key) = self.made(name, year);
        replace(&self.path("key"), key.as_bytes());
        replace(&self.path("cert"), cert.as_bytes());
    }

    fn made(&self, name: &str, year: i32) -> (String, String) {
        let mut params = CertificateParams::new([name.to_owned()]).unwrap();
        params.not_after = rcgen::date_time_ymd(year, 1, 1);
        let key = KeyPair::generate().unwrap();
        (params.signed_by(&key, &self.issuer).unwrap().pem(), key.serialize_pem())
    }

    fn tls(&self, plain: bool) -> Tls {
        Tls { cert_file: self.path("cert"), key_file: self.path("key"), configured: false, plain }
    }

    pub(crate) fn settings(&self) -> Settings {
        Settings { tls: Some(self.tls(true)), ..Settings::default() }
    }

    /// What a client trusts.
    pub(crate) fn client(&self, version: &'static rustls::SupportedProtocolVersion) -> Arc<ClientConfig> {
        let mut roots = RootCertStore::empty();
        roots.add(self.certificate.clone()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider).with_protocol_versions(&[version]).unwrap();
        Arc::new(builder.with_root_certificates(roots).with_no_client_auth())
    }
}

/// As a careful tool does it: whole, or not at all.
fn replace(path: &Path, content: &[u8]) {
    let beside = path.with_extension("new");
    fs::write(&beside, content).unwrap();
    fs::set_permissions(&beside, fs::Permissions::from_mode(0o600)).unwrap();
    fs::rename(&beside, path).unwrap();
}

pub(crate) async fn dial(
    config: &Arc<ClientConfig>,
    broker: &Broker,
    name: &str,
) -> std::io::Result<TlsStream<TcpStream>> {
    let socket = TcpStream::connect(broker.local_addr()).await.unwrap();
    socket.set_nodelay(true).unwrap();
    let name = ServerName::try_from(name.to_owned()).unwrap();
    let connected = TlsConnector::from(config.clone()).connect(name, socket);
    tokio::time::timeout(PATIENCE, connected).await.expect("neither a connection nor an error")
}

async fn device(config: &Arc<ClientConfig>, broker: &Broker, name: &str, v5: bool) -> Client<TlsStream<TcpStream>> {
    let mut client = Client::over(dial(config, broker, "localhost").await.unwrap(), v5);
    client.name = name.to_owned();
    assert_eq!(client.login(&Login::of(name).v5(v5).packet()).await, Some(0));
    assert_eq!(client.subscribe(&format!("truetwin/{name}/command")).await, Some(0));
    client
}

#[tokio::test]
async fn both_versions_of_mqtt_and_of_tls_and_plain_clients_share_one_port() {
    let authority = Authority::new();
    let (broker, hub, _) = start(authority.settings()).await;
    let echo = echo(broker.clone(), hub);
    for (at, (v5, version)) in
        [(false, &TLS12), (true, &TLS12), (false, &TLS13), (true, &TLS13)].into_iter().enumerate()
    {
        let mut client = device(&authority.client(version), &broker, &format!("d{at}"), v5).await;
        client.echoes("on").await;
        client.echoes(&"x".repeat(2048)).await;
        assert!(client.lives().await);
        let mut plain = Client::subscribed(&broker, &format!("p{at}"), if v5 { V5 } else { V3_1_1 }).await;
        plain.echoes("on").await;
    }
    let counters = broker.counters();
    assert_eq!((counters.tls_accepted, counters.tls_failed, counters.accepted), (4, 0, 8));
    assert_eq!(counters.tls_expires_s, 2_208_988_800);
    broker.stop().await;
    echo.await.unwrap();
}

#[tokio::test]
async fn a_client_that_is_cut_hears_why_over_tls_too() {
    let authority = Authority::new();
    let (broker, hub, _) = start(authority.settings()).await;
    let _echo = echo(broker.clone(), hub);
    let config = authority.client(&TLS13);
    let mut lamp = device(&config, &broker, "lamp", true).await;
    broker.kick("lamp");
    assert_eq!(lamp.farewell().await, Some(0x98));
    let mut wrong = Client::over(dial(&config, &broker, "localhost").await.unwrap(), true);
    assert_eq!(wrong.login(&Login::of("lamp").v5(true).password("guess").packet()).await, Some(0x86));
    assert_eq!(wrong.next().await, None, "and is closed");
    broker.stop().await;
}

#[tokio::test]
async fn where_tls_is_required_a_plain_client_is_told_so_and_its_password_is_not_looked_at() {
    let authority = Authority::new();
    let settings = Settings { tls: Some(authority.tls(false)), ..Settings::default() };
    let (broker, hub, _) = start(settings).await;
    let _echo = echo(broker.clone(), hub);
    for (v5, code) in [(false, 5), (true, 0x87)] {
        let mut plain = Client::raw(broker.local_addr(), v5).await;
        assert_eq!(plain.login(&Login::of("lamp").v5(v5).packet()).await, Some(code));
        assert_eq!(plain.next().await, None);
    }
    device(&authority.client(&TLS13), &broker, "lamp", true).await.echoes("on").await;
    let counters = broker.counters();
    assert_eq!((counters.refused_plain, counters.logins_failed, counters.accepted), (2, 0, 1));
    broker.stop().await;
}

#[tokio::test]
async fn a_client_that_does_not_trust_the_certificate_and_one_that_speaks_no_tls_disturb_nobody() {
    let (authority, other) = (Authority::new(), Authority::new());
    let (broker, hub, _) = start(authority.settings()).await;
    let _echo = echo(broker.clone(), hub);
    let mut lamp = device(&authority.client(&TLS13), &broker, "lamp", true).await;
    assert!(dial(&other.client(&TLS13), &broker, "localhost").await.is_err());
    assert!(dial(&authority.client(&TLS13), &broker, "elsewhere").await.is_err());
    let mut garbled = Client::raw(broker.local_addr(), true).await;
    garbled.send(&[0x16, 3, 1, 0, 5, 1, 2, 3, 4, 5]).await;
    let mut alert = Vec::new();
    garbled.socket.read_to_end(&mut alert).await.unwrap();
    assert!(alert.first().is_none_or(|first| *first == 0x15), "closed, at most with an alert: {alert:?}");
    while broker.counters().tls_failed < 3 {
        tokio::task::yield_now().await; // a client that hangs up tells its reason right behind
    }
    lamp.echoes("on").await;
    broker.stop().await;
}

#[tokio::test]
async fn without_a_certificate_tls_is_refused_at_once() {
    let (broker, _hub, _) = start(Settings::default()).await;
    assert!(dial(&Authority::new().client(&TLS13), &broker, "localhost").await.is_err());
    assert_eq!(broker.counters().refused_malformed, 1);
    broker.stop().await;
}

#[tokio::test]
async fn a_certificate_that_is_replaced_is_shown_to_the_next_and_one_that_cannot_be_used_is_not() {
    let authority = Authority::new();
    authority.signs("localhost", 2020);
    let (broker, hub, _) = start(authority.settings()).await;
    let _echo = echo(broker.clone(), hub);
    let config = authority.client(&TLS13);
    assert!(dial(&config, &broker, "localhost").await.is_err(), "it has ended");
    assert_eq!(broker.counters().tls_expires_s, 1_577_836_800);
    authority.signs("localhost", 2040);
    let mut lamp = device(&config, &broker, "lamp", true).await;
    // Half a change: the key of another certificate.
    let (cert, key) = authority.made("hub.local", 2041);
    replace(&authority.path("key"), key.as_bytes());
    let mut lock = device(&config, &broker, "lock", true).await;
    let counters = broker.counters();
    assert_eq!((counters.tls_reloads, counters.tls_reloads_failed), (1, 1));
    device(&config, &broker, "fan", true).await.echoes("on").await;
    assert_eq!(broker.counters().tls_reloads_failed, 1, "it is said once");
    // The other half.
    replace(&authority.path("cert"), cert.as_bytes());
    dial(&config, &broker, "hub.local").await.unwrap();
    assert_eq!((broker.counters().tls_reloads, broker.counters().tls_expires_s), (2, 2_240_611_200));
    // A key that others can read is none, a file that is gone changes nothing.
    fs::set_permissions(authority.path("key"), fs::Permissions::from_mode(0o644)).unwrap();
    dial(&config, &broker, "hub.local").await.unwrap();
    fs::remove_file(authority.path("cert")).unwrap();
    dial(&config, &broker, "hub.local").await.unwrap();
    assert_eq!(broker.counters().tls_reloads_failed, 3);
    lamp.echoes("still here").await;
    lock.echoes("still here").await;
    broker.stop().await;
}

#[tokio::test]
async fn the_broker_does_not_start_with_a_certificate_that_cannot_be_used_and_says_what_is_wrong() {
    let authority = Authority::new();
    let begin = async || {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let started = broker::start(listener, Arc::new(Passwords::default()), authority.settings()).await;
        let Err(error) = started else { panic!("it must not start") };
        error.to_string()
    };
    let key = authority.path("key");
    fs::set_permissions(&key, fs::Permissions::from_mode(0o640)).unwrap();
    let error = begin().await;
    assert!(error.ends_with(&format!("(mode 0640); mend it with: chmod 600 {}", key.display())), "{error}");
    replace(&key, b"nonsense");
    assert!(begin().await.contains("holds no private key in PEM"));
    replace(&key, authority.made("x", 2040).1.as_bytes());
    assert!(begin().await.contains("cannot be used with the key"));
    replace(&authority.path("cert"), b"");
    assert!(begin().await.contains("holds no certificate in PEM"));
    fs::remove_file(&key).unwrap();
    authority.signs("localhost", 2040);
    fs::remove_file(&key).unwrap();
    assert!(begin().await.contains("cannot read the TLS key"));
}

#[tokio::test]
async fn a_device_that_stops_reading_over_tls_loses_commands_honestly_and_gets_the_rest_whole() {
    let authority = Authority::new();
    let (broker, mut hub, _) = start(authority.settings()).await;
    let mut lamp = device(&authority.client(&TLS13), &broker, "lamp", true).await;
    expect(&mut hub, &["lamp connected 5"]).await;
    let (mut sent, mut written, mut lost) = (0u64, Vec::new(), Vec::new());
    // It does not read until some are lost: socket buffers, then the door's own, are full.
    while lost.is_empty() {
        sent += 1;
        let mut payload = sent.to_be_bytes().to_vec();
        payload.resize(2000, b'x');
        if broker.send("lamp", payload.into(), sent).is_err() {
            sent -= 1;
        }
        tokio::task::yield_now().await;
        while let Ok(message) = hub.try_recv() {
            match message {
                broker::FromDevice::Written { ticket, .. } => written.push(ticket),
                broker::FromDevice::Lost { ticket, .. } => lost.push(ticket),
                other => panic!("{other:?}"),
            }
        }
        assert!(sent < 100_000);
    }
    let mut heard = Vec::new();
    while heard.len() < (sent as usize) - lost.len() {
        let payload = lamp.command().await.unwrap();
        assert_eq!(payload.len(), 2000);
        heard.push(u64::from_be_bytes(payload[..8].try_into().unwrap()));
        while let Ok(message) = hub.try_recv() {
            match message {
                broker::FromDevice::Written { ticket, .. } => written.push(ticket),
                broker::FromDevice::Lost { ticket, .. } => lost.push(ticket),
                other => panic!("{other:?}"),
            }
        }
    }
    while written.len() < heard.len() {
        let broker::FromDevice::Written { ticket, .. } = hear(&mut hub).await else { panic!("written") };
        written.push(ticket);
    }
    assert_eq!(heard, written, "what is said to be written is what arrives, in order");
    broker.stop().await;
}
