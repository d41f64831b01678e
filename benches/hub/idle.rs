//! What an idle connection costs: devices that are let in, have subscribed, and say nothing; in plain and over TLS.

use std::{path::Path, sync::Arc};

use anyhow::Context as _;
use rustls::{
    ClientConfig, RootCertStore,
    pki_types::{CertificateDer, ServerName, pem::PemObject as _},
};
use tokio_rustls::TlsConnector;
use truetwin::data;

use crate::{
    figures::Targets,
    memory::REST,
    mqtt::{self, Link},
    process::{self, Process},
};

/// Connections before the first look, so that what is made once is made.
const FIRST: usize = 100;

/// Connections that are measured: many, so that a page more or less does not count.
const MORE: usize = 2_000;

/// Target, KiB resident for each plain one.
const PLAIN_KIB_MAX: f64 = 2.0;

/// Measures, prints, and notes the target.
pub(crate) async fn measure(folder: &Path, targets: &mut Targets) -> anyhow::Result<()> {
    let (folder, encrypted) = (folder.join("idle"), folder.join("idle-tls"));
    std::fs::create_dir(&folder)?;
    std::fs::create_dir(&encrypted)?;
    data::make_certificate(&encrypted, &["127.0.0.1".to_owned()])?;
    let client = Client::trusting(&data::authority(&encrypted)?.pem)?;

    let (door, mqtt) = process::role(&["echo-door"])?;
    let plain = plain_kib(&door, &mqtt).await?;
    let (door, mqtt) = process::role(&["echo-door", encrypted.to_str().context("a folder with a strange name")?])?;
    let tls = client.tls_kib(&door, &mqtt).await?;
    drop(door);
    let mosquitto = match process::mosquitto(&folder, None)? {
        Some((broker, mqtt)) => Some(plain_kib(&broker, &mqtt).await?),
        None => None,
    };
    let mosquitto_tls = match process::mosquitto(&encrypted, Some(&process::tls(&encrypted)))? {
        Some((broker, mqtt)) => Some(client.tls_kib(&broker, &mqtt).await?),
        None => None,
    };
    println!("\nresident memory for each idle connection, of {MORE} (KiB)");
    for (what, kib) in [
        ("door, plain", Some(plain)),
        ("door, TLS 1.3", Some(tls)),
        ("mosquitto, plain", mosquitto),
        ("mosquitto, TLS 1.3", mosquitto_tls),
    ] {
        if let Some(kib) = kib {
            println!("  {what:<40} {kib:>8.2}");
        }
    }
    let what = format!("an idle plain connection: {plain:.2} KiB, at most {PLAIN_KIB_MAX}");
    targets.check(plain <= PLAIN_KIB_MAX, &what);
    Ok(())
}

/// Resident memory for each of many more connections, each kept open.
async fn each_kib<S>(broker: &Process, open: impl AsyncFn(String) -> anyhow::Result<Link<S>>) -> anyhow::Result<f64> {
    let mut links = Vec::new();
    let mut resident_kib = Vec::new();
    for more in [FIRST, MORE] {
        for _ in 0..more {
            links.push(open(format!("idle-{}", links.len())).await?);
        }
        tokio::time::sleep(REST).await; // the broker comes to rest
        resident_kib.push(broker.resident_kib() as f64);
    }
    Ok((resident_kib[1] - resident_kib[0]) / MORE as f64)
}

async fn plain_kib(broker: &Process, mqtt: &str) -> anyhow::Result<f64> {
    each_kib(broker, async |name| Link::open(mqtt, &name, "secret", &commands(&name)).await).await
}

fn commands(name: &str) -> String {
    format!("truetwin/{name}/command")
}

/// A client of TLS 1.3.
struct Client(TlsConnector);

impl Client {
    fn trusting(pem: &str) -> anyhow::Result<Self> {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(pem.as_bytes())?)?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider);
        let builder = builder.with_protocol_versions(&[&rustls::version::TLS13])?;
        Ok(Self(Arc::new(builder.with_root_certificates(roots).with_no_client_auth()).into()))
    }

    async fn tls_kib(&self, broker: &Process, mqtt: &str) -> anyhow::Result<f64> {
        let open = async |name: String| {
            let host = ServerName::try_from("127.0.0.1").context("an address is a name")?;
            let stream = self.0.connect(host, mqtt::socket(mqtt).await?).await?;
            Link::over(stream, &name, "secret", &commands(&name)).await
        };
        each_kib(broker, open).await
    }
}
