//! Routers that die under load: how long the bus is away, and what becomes of the reports.

use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::Context as _;
use truetwin::broker::FromDevice;

use crate::{
    echo::{self, say},
    figures::Targets,
    mqtt::{Link, Packet},
    process,
};

/// Devices under load, and reports of each under way.
const DEVICES: usize = 50;
const WINDOW: u64 = 10;

/// How long the load lasts, and how often a router dies in it: one that dies young is followed by a pause, which is not what is
/// measured.
const LOAD: Duration = Duration::from_secs(12);
const EVERY: Duration = Duration::from_millis(1_100);

/// The device that ends it and is told what came of it.
const JUDGE: &str = "judge";

/// The role `dying-door`: a hub that takes in numbered reports and kills its router now and then.
pub(crate) async fn door() -> anyhow::Result<()> {
    // What kills a router is said nowhere: to look for its backtrace takes longer than to build a new one.
    std::panic::set_hook(Box::new(|_| {}));
    let (broker, mut heard) = echo::start(None).await?;
    say(&broker.local_addr().to_string())?;
    let mut next: HashMap<Arc<str>, u64> = HashMap::new();
    let (mut came, mut twice, mut missing) = (0u64, 0u64, 0u64);
    let mut away_us = Vec::new();
    let mut tick = tokio::time::interval(EVERY);
    tick.tick().await;
    loop {
        let message = tokio::select! {
            message = heard.recv() => message.context("the broker ended")?,
            _ = tick.tick() => {
                broker.break_bus();
                continue;
            }
        };
        match message {
            FromDevice::Event { device, receipt, .. } if &*device == JUDGE => {
                away_us.sort_unstable();
                let middle = away_us.get(away_us.len() / 2).copied().unwrap_or(0);
                let longest = away_us.last().copied().unwrap_or(0);
                let told = format!("{} {middle} {longest} {came} {twice} {missing}", away_us.len());
                receipt.taken();
                while broker.send(&device, told.clone().into(), 1).is_err() {
                    tokio::task::yield_now().await;
                }
            }
            FromDevice::Event { device, payload, receipt, .. } => {
                let number = payload.first_chunk().map(|bytes| u64::from_be_bytes(*bytes)).context("no number")?;
                let next = next.entry(device).or_insert(0);
                came += 1;
                twice += u64::from(number < *next);
                missing += number.saturating_sub(*next);
                *next = (number + 1).max(*next);
                receipt.taken();
            }
            FromDevice::BusUp => away_us.push(broker.counters().bus_rebuild_us),
            FromDevice::Connected { .. }
            | FromDevice::Disconnected { .. }
            | FromDevice::Will { .. }
            | FromDevice::Status { .. }
            | FromDevice::Written { .. }
            | FromDevice::Lost { .. }
            | FromDevice::BusDown => {}
        }
    }
}

/// Measures, prints, and notes the targets.
pub(crate) async fn measure(targets: &mut Targets) -> anyhow::Result<()> {
    let (_door, mqtt) = process::role(&["dying-door"])?;
    let end = Instant::now() + LOAD;
    let mut devices = Vec::new();
    for at in 0..DEVICES {
        devices.push(tokio::spawn(reports(mqtt.clone(), format!("r{at}"), end)));
    }
    let mut acknowledged = 0;
    for device in devices {
        acknowledged += device.await??;
    }
    let told = ask(&mqtt).await?;
    let numbers: Vec<u64> = told.split(' ').map(str::parse).collect::<Result<_, _>>()?;
    let [deaths, middle_us, longest_us, came, twice, missing] = numbers[..] else {
        anyhow::bail!("not what a judge is told: {told}")
    };
    let lost = acknowledged.saturating_sub(came) + missing;
    println!("\n{deaths} router deaths under {DEVICES} devices, {acknowledged} reports acknowledged");
    println!(
        "  bus away, p50 / longest (ms)             {:>8.1} {:>8.1}",
        middle_us as f64 / 1e3,
        longest_us as f64 / 1e3
    );
    println!("  duplicates to the hub, lost              {twice:>8} {lost:>8}");
    let what = format!("{deaths} router deaths: {lost} acknowledged reports lost, {twice} twice, 0 allowed");
    targets.check(lost == 0 && twice == 0 && deaths > 0, &what);
    Ok(())
}

/// One device, numbering its reports from 0; how many were acknowledged.
async fn reports(mqtt: String, name: String, end: Instant) -> anyhow::Result<u64> {
    let mut link = Link::open(&mqtt, &name, "secret", &format!("truetwin/{name}/command")).await?;
    let topic = format!("truetwin/{name}/event");
    let (mut sent, mut acknowledged) = (0u64, 0u64);
    loop {
        while sent < acknowledged + WINDOW && Instant::now() < end {
            let mut payload = [b'.'; 100];
            payload[..8].copy_from_slice(&sent.to_be_bytes());
            link.outbox.publish(topic.as_bytes(), &payload, 1);
            sent += 1;
        }
        if sent == acknowledged {
            return Ok(acknowledged);
        }
        link.turn().await?;
        while let Some(packet) = link.inbox.next()? {
            acknowledged += u64::from(matches!(packet, Packet::PubAck));
        }
    }
}

/// Asks what came of it.
async fn ask(mqtt: &str) -> anyhow::Result<String> {
    let mut link = Link::open(mqtt, JUDGE, "secret", &format!("truetwin/{JUDGE}/command")).await?;
    link.outbox.publish(format!("truetwin/{JUDGE}/event").as_bytes(), b"", 1);
    loop {
        link.turn().await?;
        while let Some(packet) = link.inbox.next()? {
            if let Packet::Publish { payload, .. } = packet {
                return Ok(String::from_utf8(payload.to_vec())?);
            }
        }
    }
}
