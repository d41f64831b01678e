//! What the journal knows of an earlier process, in the words of the twins.

use std::{
    collections::{BTreeMap, HashMap},
    path::PathBuf,
    sync::Arc,
};

use super::Error;
use crate::{
    config::{Config, JournalSettings, Keeping},
    device::unaccepted_name,
    dialect::native::{self, Heard},
    journal::{Journal, Recovered, Retention, Running, form},
    property::{Description, DeviceId},
    twin::{
        Hears,
        input::{Left, Memory},
        ledger,
    },
};

/// Milliseconds in a day.
const MS_PER_DAY: u64 = 86_400_000;

/// Opens the journal of a data folder, unless its owner wants none.
pub(super) async fn open(
    folder: PathBuf,
    settings: &JournalSettings,
) -> Result<(Option<Journal>, Recovered, Option<Running>), Error> {
    if settings.keep == Keeping::Off {
        tracing::warn!("the journal is off: a hub that begins anew knows no operation and no set point");
        return Ok((None, Recovered::default(), None));
    }
    let retention = Retention {
        age_ms: u64::from(settings.keep_days) * MS_PER_DAY,
        bytes: u64::from(settings.size_max_mib) * 1_048_576,
    };
    let opening = move || Journal::open(&folder, retention);
    let (journal, recovered, running) = tokio::task::spawn_blocking(opening).await.map_err(|_| Error::Recovery)??;
    Ok((Some(journal), recovered, Some(running)))
}

/// What was found, by device.
pub(super) struct Found {
    memories: BTreeMap<DeviceId, Memory>,
    /// What each device said last that it has.
    pub(super) described: HashMap<DeviceId, Arc<Description>>,
}

impl Found {
    /// Reads all rows. One that cannot be read is left out and told: it is of another version, or somebody has changed it.
    pub(super) fn new(recovered: Recovered, config: &Config, epoch: u32) -> Self {
        let clock = form::Clock::now();
        let mut found = Self { memories: BTreeMap::new(), described: HashMap::new() };
        let mut unreadable = 0_usize;
        for (device, json) in &recovered.descriptions {
            match (DeviceId::new(device), native::decode(json.as_bytes(), false)) {
                (Ok(device), Ok((Heard::Hello(hello), _))) => {
                    let in_force = Arc::new(config.overridden(&device, &hello.description));
                    found.of(&device).description = Some(in_force);
                    found.described.insert(device, hello.description);
                }
                _ => unreadable += 1,
            }
        }
        for device in found.described.keys().cloned().collect::<Vec<_>>() {
            let unaccepted = recovered.named.get(&unaccepted_name(&device)).and_then(|json| form::names_of(json));
            found.of(&device).unaccepted = unaccepted.unwrap_or_default();
        }
        for row in &recovered.held {
            match (DeviceId::new(&row.device), form::held_of(&row.json, clock, epoch)) {
                (Ok(device), Some(held)) => {
                    found.of(&device).held.insert(row.property.as_str().into(), held);
                }
                _ => unreadable += 1,
            }
        }
        for row in &recovered.reported {
            match (DeviceId::new(&row.device), form::reported_of(&row.json)) {
                (Ok(device), Some((value, evidence))) => {
                    let reading = (value, evidence, clock.at(row.at_ms));
                    found.of(&device).stale.insert(row.property.as_str().into(), reading);
                }
                _ => unreadable += 1,
            }
        }
        for row in &recovered.operations {
            match form::operation_of(&row.json) {
                // Its caller was told that it is at work, and its end was never written.
                Some((caller, mut settled)) if ledger::is_open(&settled) => {
                    settled.elapsed += clock.since(row.at_ms);
                    let hears = Hears::Told { outcome: settled.outcome, at: clock.at(row.at_ms) };
                    found.of(&settled.device.clone()).in_flight.push(Left { caller, hears, settled });
                }
                Some((caller, settled)) => {
                    let ended = clock.at(row.at_ms);
                    let hears = Hears::Told { outcome: settled.outcome, at: ended };
                    found.of(&settled.device.clone()).ended.push((ended, Left { caller, hears, settled }));
                }
                None => unreadable += 1,
            }
        }
        for row in &recovered.admitted {
            match form::left_of(&row.json) {
                Some(mut left) => {
                    left.settled.elapsed = clock.since(row.at_ms);
                    found.of(&left.settled.device.clone()).in_flight.push(left);
                }
                None => unreadable += 1,
            }
        }
        let (operations, held) = (recovered.operations.len(), recovered.held.len());
        tracing::info!(operations, held, interrupted = recovered.admitted.len(), unreadable, "the journal is read");
        found
    }

    /// What is known of one device. Its operations are as many as its twin would remember anyway: the twin forgets the oldest.
    pub(super) fn take(&mut self, device: &DeviceId) -> Memory {
        self.memories.remove(device).unwrap_or_default()
    }

    fn of(&mut self, device: &DeviceId) -> &mut Memory {
        self.memories.entry(device.clone()).or_default()
    }
}
