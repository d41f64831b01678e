//! What goes wrong in a round. Each seed switches kinds on and off; the hub's death is always among them.

use std::{sync::atomic::Ordering, time::Duration};

use crate::{
    chance::Chance,
    hub,
    round::{DEVICES, House, PROBE, ask},
};

/// Where an operation is stopped that the hub dies over: by what the device does, and how long after the question.
const STAGES: [(&str, &str, u64, u64); 6] = [
    ("kill -9 at admission", "none", 0, 25),
    ("kill -9 before the acknowledgement", "no_command", 60, 700),
    ("kill -9 before the start", "never_starts", 60, 900),
    ("kill -9 before the report", "no_completion", 250, 700),
    ("kill -9 in the stable time", "none", 150, 600),
    ("kill -9 while it is asked again", "no_reports", 700, 2_000),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Kill,
    KillAtStage,
    HubStops,
    DeviceStops,
    DeviceRestarts,
    DiskFull,
    DiskStalls,
    ClockJumps,
    Cut,
    Weather,
}

const SOMETIMES: [Kind; 8] = [
    Kind::HubStops,
    Kind::DeviceStops,
    Kind::DeviceRestarts,
    Kind::DiskFull,
    Kind::DiskStalls,
    Kind::ClockJumps,
    Kind::Cut,
    Kind::Weather,
];

/// Lets things go wrong for so long.
pub(crate) async fn happen(house: &mut House, chance: &mut Chance, ends_ms: u64) {
    let mut on = vec![Kind::Kill, Kind::KillAtStage];
    on.extend(SOMETIMES.iter().filter(|_| !chance.one_in(4)));
    if hub::faketime().is_none() {
        on.retain(|kind| *kind != Kind::ClockJumps);
    }
    println!("  on: {on:?}");
    while house.now() < ends_ms {
        tokio::time::sleep(chance.ms(50..500)).await;
        let kind = *chance.pick(&on);
        one(house, chance, kind).await;
    }
}

async fn one(house: &mut House, chance: &mut Chance, kind: Kind) {
    let began = house.now();
    match kind {
        Kind::Kill => {
            house.count("kill -9 at any moment");
            house.die().await;
        }
        Kind::KillAtStage => at_a_stage(house, chance).await,
        Kind::HubStops => {
            house.count("hub held (SIGSTOP)");
            hub::signal(house.hub.pid(), "STOP");
            tokio::time::sleep(chance.ms(100..1_500)).await;
            hub::signal(house.hub.pid(), "CONT");
        }
        Kind::DeviceStops => {
            house.count("device held (SIGSTOP)");
            let device = usize::try_from(chance.below(DEVICES.len() as u64)).unwrap();
            house.devices[device].signal("STOP");
            tokio::time::sleep(chance.ms(100..3_000)).await;
            house.devices[device].signal("CONT");
        }
        Kind::DeviceRestarts => {
            house.count("device loses its supply");
            let device = usize::try_from(chance.below(DEVICES.len() as u64)).unwrap();
            house.devices[device].tell("restart");
        }
        Kind::DiskFull => {
            house.count("disk full (RLIMIT_FSIZE)");
            house.hub.file_bytes_max(Some(1));
            tokio::time::sleep(chance.ms(300..1_500)).await;
            house.hub.file_bytes_max(None);
        }
        Kind::DiskStalls => {
            house.count("disk stalled (write lock held)");
            let (file, length) = (house.hub.data.join("journal.db"), chance.ms(200..2_500));
            let stalled = tokio::task::spawn_blocking(move || stall(&file, length));
            stalled.await.unwrap();
        }
        Kind::ClockJumps => {
            house.count("wall clock jumps");
            let jump = chance.pick(&["+3600", "-86400", "+0", "+2000000", "-30"]);
            std::fs::write(house.folder.path().join("clock"), jump).unwrap();
        }
        Kind::Cut => {
            house.count("all lines cut");
            house.proxy.cut();
        }
        Kind::Weather => {
            house.count("network turns bad or well");
            let weather = house.proxy.weather();
            weather.lost_permille.store(*chance.pick(&[0, 0, 20, 100]), Ordering::Relaxed);
            weather.twice_permille.store(*chance.pick(&[0, 20, 200]), Ordering::Relaxed);
            weather.delay_max_ms.store(*chance.pick(&[0, 50, 300]), Ordering::Relaxed);
        }
    }
    if matches!(kind, Kind::HubStops | Kind::DiskStalls) {
        let now = house.now();
        house.history.held.push((began, now));
    }
}

/// The hub dies over an operation of which it is known how far it has come.
async fn at_a_stage(house: &mut House, chance: &mut Chance) {
    let (name, fault, from, to) = *chance.pick(&STAGES);
    house.count(name);
    house.devices[PROBE].fault(fault).await;
    let client = house.hub.client().await;
    let (common, wish) = (house.common.clone(), f64::from(u8::from(chance.one_in(2))));
    let asking = tokio::spawn(async move {
        let asked = ask(&common, &client, PROBE, wish).await;
        common.asked.lock().unwrap().push(asked);
    });
    tokio::time::sleep(chance.ms(from..to)).await;
    house.die().await;
    house.devices[PROBE].fault("none").await;
    asking.await.unwrap();
}

/// Keeps the journal's writer waiting, as a card does that is busy with itself.
fn stall(file: &std::path::Path, length: Duration) {
    let mut other = rusqlite::Connection::open(file).unwrap();
    other.busy_timeout(Duration::from_secs(5)).unwrap();
    if let Ok(held) = other.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate) {
        std::thread::sleep(length);
        drop(held);
    }
}
