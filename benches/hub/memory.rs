//! What the hub holds: idle, for each device that it knows, for each that is connected and has greeted.

use std::{path::Path, sync::Arc, time::Duration};

use tokio::task::JoinHandle;
use truetwin_wire::words::EvidenceWord;

use crate::{
    device::{Device, Done},
    process::{Hub, ONE_MACHINE},
};

/// Devices for these figures: many, so that a page more or less does not count.
const DEVICES: usize = 1000;

/// How long a process may come to rest before it is looked at.
pub(crate) const REST: Duration = Duration::from_secs(1);

/// Resident memory.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    /// Of a hub without devices, KiB.
    pub(crate) idle_kib: u64,
    /// For each device that is known and has never connected, KiB.
    pub(crate) known_kib: f64,
    /// For each that is connected and has greeted, on top, KiB.
    pub(crate) connected_kib: f64,
}

impl Memory {
    /// Starts two hubs, one without devices and one with many, and looks.
    pub(crate) async fn measure(folder: &Path) -> anyhow::Result<Self> {
        let (empty, full) = (folder.join("empty"), folder.join("full"));
        for folder in [&empty, &full] {
            std::fs::create_dir(folder)?;
        }
        let hub = Hub::start(&empty, ONE_MACHINE, &[])?;
        let idle_kib = rested_kib(&hub).await;
        drop(hub);

        let names: Vec<String> = (0..DEVICES).map(|i| format!("twin-{i}")).collect();
        let hub = Hub::start(&full, ONE_MACHINE, &names)?;
        let known_kib = rested_kib(&hub).await;
        let devices = connect(&hub, "twin-", EvidenceWord::Pin, 1, &Arc::default()).await?;
        let connected_kib = rested_kib(&hub).await;
        drop(hub);
        devices.iter().for_each(JoinHandle::abort);
        let each = |more: u64, less: u64| (more as f64 - less as f64) / DEVICES as f64;
        Ok(Self { idle_kib, known_kib: each(known_kib, idle_kib), connected_kib: each(connected_kib, known_kib) })
    }
}

/// Resident memory of a hub that has come to rest, KiB.
pub(crate) async fn rested_kib(hub: &Hub) -> u64 {
    tokio::time::sleep(REST).await;
    hub.process.resident_kib()
}

/// Connects those devices of a hub whose names begin so.
pub(crate) async fn connect(
    hub: &Hub,
    prefix: &str,
    feedback: EvidenceWord,
    relays: usize,
    done: &Arc<Done>,
) -> anyhow::Result<Vec<JoinHandle<anyhow::Result<()>>>> {
    let mut devices = Vec::new();
    for (name, password) in hub.devices.iter().filter(|(name, _)| name.starts_with(prefix)) {
        devices.push(Device::start(&hub.mqtt, name, password.reveal(), feedback, relays, done.clone()).await?);
    }
    Ok(devices)
}
