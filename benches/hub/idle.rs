//! What an idle connection costs: devices that are let in, have subscribed, and say nothing.

use crate::{
    figures::Targets,
    memory::REST,
    mqtt::Link,
    process::{self, Process},
};

/// Connections before the first look, so that what is made once is made.
const FIRST: usize = 100;

/// Connections that are measured: many, so that a page more or less does not count.
const MORE: usize = 2_000;

/// Target, KiB resident for each plain one.
const PLAIN_KIB_MAX: f64 = 2.0;

/// Measures, prints, and notes the target.
pub(crate) async fn measure(folder: &std::path::Path, targets: &mut Targets) -> anyhow::Result<()> {
    let (door, mqtt) = process::role(&["echo-door"])?;
    let plain = each_kib(&door, &mqtt).await?;
    let folder = folder.join("idle");
    std::fs::create_dir(&folder)?;
    let mosquitto = match process::mosquitto(&folder)? {
        Some((broker, mqtt)) => Some(each_kib(&broker, &mqtt).await?),
        None => None,
    };
    println!("\nresident memory for each idle connection, of {MORE} (KiB)");
    println!("  door, plain                              {plain:>8.2}");
    if let Some(theirs) = mosquitto {
        println!("  mosquitto, plain                         {theirs:>8.2}");
    }
    let what = format!("an idle plain connection: {plain:.2} KiB, at most {PLAIN_KIB_MAX}");
    targets.check(plain <= PLAIN_KIB_MAX, &what);
    Ok(())
}

async fn each_kib(broker: &Process, mqtt: &str) -> anyhow::Result<f64> {
    let mut links = Vec::new();
    connect(mqtt, &mut links, FIRST).await?;
    let before = broker.resident_kib();
    connect(mqtt, &mut links, MORE).await?;
    Ok((broker.resident_kib() as f64 - before as f64) / MORE as f64)
}

/// Connects so many more, and waits until the broker has come to rest.
async fn connect(mqtt: &str, links: &mut Vec<Link>, more: usize) -> anyhow::Result<()> {
    for _ in 0..more {
        let name = format!("idle-{}", links.len());
        links.push(Link::open(mqtt, &name, "secret", &format!("truetwin/{name}/command")).await?);
    }
    tokio::time::sleep(REST).await;
    Ok(())
}
