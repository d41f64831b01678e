//! Reports a second: into twins, beside Mosquitto's into a client.
//!
//! The same devices send the same reports, QoS 1 and ten under way each. With the hub one counts when it is acknowledged, which
//! is after the twin took it in. Mosquitto acknowledges what it has queued, so there one counts when the client has it.

use std::{
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context as _, ensure};
use truetwin_wire::words::EvidenceWord;

use crate::{
    books::Books,
    device::Device,
    echo::say,
    figures::{Targets, median},
    mqtt::{Link, Packet},
    process::{self, Hub},
};

/// Devices that report.
const DEVICES: usize = 50;

/// Reports of each under way: the Receive Maximum that the door announces.
const WINDOW: usize = 10;

/// How long one round lasts.
const ROUND: Duration = Duration::from_millis(300);

/// The topic whose report is answered with the number of all that came before.
const MARK: &str = "mark";

/// Target: the hub's reports a second in terms of Mosquitto's.
const SHARE_MIN: f64 = 1.0;

/// The role `sink-client MQTT`: a client that takes in all reports, and says how many when it is asked.
pub(crate) async fn sink(mqtt: &str) -> anyhow::Result<()> {
    let mut link = Link::open(mqtt, "", "", "truetwin/+/event").await?;
    say("ready")?;
    let mark = format!("truetwin/{MARK}/event").into_bytes();
    let mut came = 0u64;
    loop {
        link.turn().await?;
        while let Some(packet) = link.inbox.next()? {
            let Packet::Publish { topic, packet_id, .. } = packet else { continue };
            let packet_id = packet_id.context("a report without acknowledgement")?;
            link.outbox.puback(packet_id);
            if topic == mark {
                link.outbox.publish(format!("truetwin/{MARK}/command").as_bytes(), came.to_string().as_bytes(), 0);
            } else {
                came += 1;
            }
        }
    }
}

/// Measures in turns, prints, and notes the target.
pub(crate) async fn measure(folder: &Path, rounds: u32, targets: &mut Targets) -> anyhow::Result<()> {
    let folder = folder.join("reports");
    std::fs::create_dir(&folder)?;
    let names: Vec<String> = (0..DEVICES).map(|at| format!("reporter-{at}")).collect();
    let hub = Hub::start(&folder, process::ONE_MACHINE, &names)?;
    let mut at_hub = Vec::new();
    for (name, password) in &hub.devices {
        at_hub.push(Device::open(&hub.mqtt, name, password.reveal(), EvidenceWord::Pin, 1, Arc::default()).await?);
    }
    let mut at_mosquitto = match process::mosquitto(&folder, None)? {
        Some((broker, mqtt)) => Some(Rival::start(broker, mqtt).await?),
        None => None,
    };
    let before = taken_in(&hub).await?;
    let (mut rates, mut ratios, mut sent) = (Vec::new(), Vec::new(), 0);
    // The first round warms up and is not counted.
    for round in 0..=rounds {
        let begun = Instant::now();
        let acknowledged = all(&mut at_hub).await?;
        let ours = acknowledged as f64 / begun.elapsed().as_secs_f64();
        sent += acknowledged;
        let theirs = match &mut at_mosquitto {
            Some(rival) => rival.round().await?,
            None => continue,
        };
        if round > 0 {
            rates.push((ours, theirs));
            ratios.push(ours / theirs);
        }
    }
    let taken_in = taken_in(&hub).await? - before;
    targets.check(taken_in == sent, &format!("reports acknowledged = reports in twins: {sent} = {taken_in}"));
    let (ours, theirs) = (median(rates.iter().map(|rate| rate.0)), median(rates.iter().map(|rate| rate.1)));
    println!("\nreports a second, QoS 1, {DEVICES} devices with {WINDOW} under way");
    println!("  into twins                               {ours:>8.0}");
    println!("  mosquitto, into a client                 {theirs:>8.0}");
    if !ratios.is_empty() {
        let ratio = median(ratios.into_iter());
        let what = format!("reports/s into twins are {ratio:.2} x mosquitto's into a client, at least {SHARE_MIN}");
        targets.check(ratio >= SHARE_MIN, &what);
    }
    Ok(())
}

/// Reports that are in twins.
async fn taken_in(hub: &Hub) -> anyhow::Result<u64> {
    let books = Books::read(hub).await?;
    ensure!(books.sum("truetwin_reports_ignored_total", "") == 0, "reports were ignored");
    Ok(books.sum("truetwin_events_total", "event=\"device_state\""))
}

/// One round of all devices; how many reports were acknowledged.
async fn all(devices: &mut Vec<Device>) -> anyhow::Result<u64> {
    let end = Instant::now() + ROUND;
    let tasks: Vec<_> =
        std::mem::take(devices).into_iter().map(|device| tokio::spawn(device.report(WINDOW, end))).collect();
    let mut acknowledged = 0;
    for task in tasks {
        let (device, count) = task.await??;
        devices.push(device);
        acknowledged += count;
    }
    Ok(acknowledged)
}

/// Mosquitto with a client that takes in all.
struct Rival {
    _broker: process::Process,
    _sink: process::Process,
    devices: Vec<Device>,
    mark: Link,
    sent: u64,
}

impl Rival {
    async fn start(broker: process::Process, mqtt: String) -> anyhow::Result<Self> {
        let (sink, _) = process::role(&["sink-client", &mqtt])?;
        let mut devices = Vec::new();
        for at in 0..DEVICES {
            devices.push(Device::unwelcomed(&mqtt, &format!("reporter-{at}")).await?);
        }
        let mark = Link::open(&mqtt, MARK, "secret", &format!("truetwin/{MARK}/command")).await?;
        Ok(Self { _broker: broker, _sink: sink, devices, mark, sent: 0 })
    }

    /// One round; reports a second.
    async fn round(&mut self) -> anyhow::Result<f64> {
        let begun = Instant::now();
        let sent = all(&mut self.devices).await?;
        self.sent += sent;
        self.mark.outbox.publish(format!("truetwin/{MARK}/event").as_bytes(), b"", 1);
        let came: u64 = loop {
            self.mark.turn().await?;
            let mut came = None;
            while let Some(packet) = self.mark.inbox.next()? {
                if let Packet::Publish { payload, .. } = packet {
                    came = Some(std::str::from_utf8(payload)?.parse()?);
                }
            }
            if let Some(came) = came {
                break came;
            }
        };
        let spent = begun.elapsed();
        ensure!(came == self.sent, "mosquitto's client got {came} of {} reports", self.sent);
        Ok(sent as f64 / spent.as_secs_f64())
    }
}
