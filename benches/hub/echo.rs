//! The floor under a tool call: a device publishes a report with QoS 1, the hub's side sends a command back.
//!
//! Two brokers carry it, each in a process of its own: this project's door and bus with a consumer that does nothing else,
//! and Mosquitto with a client that does nothing else (one process more, as every hub behind a broker has).

use std::{
    io::Write as _,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context as _, bail};
use tokio::{net::TcpListener, sync::mpsc::Receiver};
use truetwin::broker::{self, Access, Answer, Broker, FromDevice, Tls};

use crate::mqtt::{Link, Packet};

/// Bytes of a report and of its echo: about what `completed` with one property is.
const PAYLOAD_BYTES: usize = 200;

/// A device that sends and hears its own reports back.
pub(crate) struct Echo {
    link: Link,
    topic: Vec<u8>,
}

impl Echo {
    /// Connects and subscribes.
    pub(crate) async fn open(mqtt: &str, name: &str) -> anyhow::Result<Self> {
        let link = Link::open(mqtt, name, "secret", &format!("truetwin/{name}/command")).await?;
        Ok(Self { link, topic: format!("truetwin/{name}/event").into_bytes() })
    }

    /// Keeps `window` reports on their way until `end`, then waits for those that are; how long each took.
    pub(crate) async fn run(mut self, window: usize, end: Instant) -> anyhow::Result<(Self, Vec<Duration>)> {
        let mut took = Vec::new();
        let mut sent = vec![Instant::now(); window];
        for slot in 0..window {
            self.send(slot);
        }
        let mut under_way = window;
        while under_way > 0 {
            self.link.turn().await?;
            let mut again = Vec::new();
            loop {
                match self.link.inbox.next()? {
                    None => break,
                    Some(Packet::PubAck) => {}
                    Some(Packet::Publish { payload, .. }) => {
                        let slot = usize::from(*payload.first().context("an empty echo")?);
                        took.push(sent.get(slot).context("an echo that nobody sent")?.elapsed());
                        again.push(slot);
                    }
                    Some(other @ (Packet::Answer(..) | Packet::Other)) => bail!("an echo device got {other:?}"),
                }
            }
            let now = Instant::now();
            for slot in again {
                if now < end {
                    sent[slot] = now;
                    self.send(slot);
                } else {
                    under_way -= 1;
                }
            }
        }
        Ok((self, took))
    }

    fn send(&mut self, slot: usize) {
        let mut payload = [b'.'; PAYLOAD_BYTES];
        payload[0] = u8::try_from(slot).expect("windows are small");
        self.link.outbox.publish(&self.topic, &payload, 1);
    }
}

/// Who may come in at a door that is measured.
struct Everybody;

impl Access for Everybody {
    fn admits(&self, _: &str, _: &[u8]) -> Answer {
        true.into()
    }
}

/// A door and a bus that are measured, with this certificate.
pub(crate) async fn start(tls: Option<Tls>) -> anyhow::Result<(Broker, Receiver<FromDevice>)> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let settings = broker::Settings {
        connections_max: 10_000,
        connections_per_address_max: 10_000,
        handshakes_per_address_max: 256,
        packets_per_s: 0,
        tls,
        ..broker::Settings::default()
    };
    Ok(broker::start(listener, Arc::new(Everybody), settings).await?)
}

/// The roles `echo-door` and `echo-door FOLDER` (with the certificate in there): door and bus, and a consumer that sends each
/// report back. Prints where it listens.
pub(crate) async fn door(tls: Option<Tls>) -> anyhow::Result<()> {
    let (broker, mut heard) = start(tls).await?;
    say(&broker.local_addr().to_string())?;
    while let Some(message) = heard.recv().await {
        if let FromDevice::Event { device, payload, receipt, .. } = message {
            broker.send(&device, payload, broker::NO_NOTICE)?;
            receipt.taken();
        }
    }
    Ok(())
}

/// The role `echo-client MQTT`: a client of a broker that sends each report back.
pub(crate) async fn client(mqtt: &str) -> anyhow::Result<()> {
    let mut link = Link::open(mqtt, "", "", "truetwin/+/event").await?;
    say("ready")?;
    loop {
        link.turn().await?;
        while let Some(packet) = link.inbox.next()? {
            let Packet::Publish { topic, payload, packet_id } = packet else { continue };
            let device = topic.strip_suffix(b"event").context("a topic that was not subscribed")?;
            if let Some(packet_id) = packet_id {
                link.outbox.puback(packet_id);
            }
            link.outbox.publish(&[device, b"command"].concat(), payload, 0);
        }
    }
}

/// Prints what the process that started this one waits for.
pub(crate) fn say(line: &str) -> anyhow::Result<()> {
    let mut stdout = std::io::stdout().lock();
    writeln!(stdout, "{line}")?;
    Ok(stdout.flush()?)
}
