//! Routers that die and hang under load: what was acknowledged reached the hub exactly once and in order, each command has one
//! fate, no connection notices.

use std::collections::HashMap;

use truetwin::broker::{Broker, FromDevice, Hang, MqttVersion::*, Settings};

use crate::support::*;

const DEVICES: usize = 60;

/// Every eighth router hangs, the others die.
const BLOWS: usize = 24;

fn hangs(blow: usize) -> bool {
    blow % 8 == 3
}

/// Reports between the end of one blow and the next.
const BETWEEN: u64 = 600;

/// What the hub heard of one device.
#[derive(Default)]
struct Heard {
    reports: u64,
    connected: bool,
    ended: bool,
}

/// A device that keeps ten reports under way, numbered from 1, until it is told to stop; how many were acknowledged.
async fn reports(mut device: Client, stop: tokio::sync::watch::Receiver<bool>) -> u64 {
    let mut acknowledged = 0u64;
    while !*stop.borrow() {
        let mut ids = Vec::new();
        for number in 1..=10 {
            ids.push(device.report(&(acknowledged + number).to_be_bytes()).await);
        }
        for id in ids {
            assert_eq!(device.acknowledged().await, Some((id, 0)), "no connection may notice");
            acknowledged += 1;
        }
    }
    device.send(&[0xE0, 0]).await;
    // Closed with unread commands in it, the goodbye might be reset away.
    while device.next().await.is_some() {}
    acknowledged
}

/// Commands of the hub, and what became of them.
#[derive(Default)]
struct Commands {
    fates: Vec<u32>,
    refused: u64,
}

impl Commands {
    fn send(&mut self, broker: &Broker, device: &str) {
        let ticket = self.fates.len() as u64 + 1;
        match broker.send(device, "x".into(), ticket) {
            Ok(()) => self.fates.push(0),
            Err(_) => self.refused += 1,
        }
    }

    fn ended(&mut self, ticket: u64) {
        self.fates[usize::try_from(ticket).unwrap() - 1] += 1;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_acknowledged_report_is_lost_and_none_comes_twice_however_often_the_router_dies_and_hangs() {
    let (broker, mut hub, _) = start(Settings::default()).await;
    let (stop_tx, stop) = tokio::sync::watch::channel(false);
    let mut devices = Vec::new();
    for at in 0..DEVICES {
        let version = if at % 2 == 0 { V5 } else { V3_1_1 };
        let device = Client::subscribed(&broker, &format!("d{at}"), version).await;
        devices.push(tokio::spawn(reports(device, stop.clone())));
    }
    let mut heard: HashMap<String, Heard> = HashMap::new();
    let mut commands = Commands::default();
    let mut hung: Vec<Hang> = Vec::new();
    let (mut blows, mut downs, mut ups, mut since, mut ended) = (0, 0, 0, 0u64, 0);
    while ended < DEVICES || commands.fates.contains(&0) {
        match hear(&mut hub).await {
            FromDevice::Connected { device, .. } => {
                let device = heard.entry(device.to_string()).or_default();
                assert!(!std::mem::replace(&mut device.connected, true), "once, and before everything else");
            }
            FromDevice::Event { device, payload, receipt, .. } => {
                let heard = heard.get_mut(&*device).expect("connected comes first");
                assert!(!heard.ended, "disconnected comes last");
                heard.reports += 1;
                assert_eq!(payload.as_ref(), heard.reports.to_be_bytes(), "in order, none missing, none twice");
                receipt.taken();
                if heard.reports.is_multiple_of(10) {
                    commands.send(&broker, &device);
                }
                since += 1;
                // The next blow comes under full load, when the last one is over.
                if blows == ups && since > BETWEEN {
                    since = 0;
                    if blows == BLOWS {
                        stop_tx.send_replace(true);
                        continue;
                    }
                    match hangs(blows) {
                        true => hung.extend(Some(broker.hang_bus().expect("a router runs"))),
                        false => broker.break_bus(),
                    }
                    blows += 1;
                }
            }
            FromDevice::Written { ticket, .. } | FromDevice::Lost { ticket, .. } => commands.ended(ticket),
            FromDevice::Disconnected { device, why, .. } => {
                assert_eq!(why.as_str(), "clean");
                assert!(!std::mem::replace(&mut heard.get_mut(&*device).unwrap().ended, true));
                ended += 1;
            }
            FromDevice::BusDown => downs += 1,
            FromDevice::BusUp => {
                ups += 1;
                // One that hung comes to itself beside its successor.
                if ups % 2 == 0 {
                    hung.clear();
                }
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!((downs, ups), (BLOWS, BLOWS));
    let mut acknowledged_in_all = 0;
    for (at, device) in devices.into_iter().enumerate() {
        let acknowledged = device.await.unwrap();
        assert_eq!(heard[&format!("d{at}")].reports, acknowledged);
        acknowledged_in_all += acknowledged;
    }
    assert!(commands.fates.iter().all(|fates| *fates == 1), "each command has one fate");
    let counters = broker.counters();
    println!(
        "{acknowledged_in_all} reports, {} commands ({} refused while the bus was down), {BLOWS} routers: none lost, none \
         twice; {} us without a bus in all, {} frames sent again, {} gaps",
        commands.fates.len(),
        commands.refused,
        counters.bus_down_us,
        counters.bus_resends,
        counters.bus_gaps
    );
    assert_eq!(counters.bus_rebuilds, BLOWS as u64);
    assert_eq!(counters.accepted, DEVICES as u64, "nobody came in again");
    assert_eq!((counters.reports_in, counters.acknowledged), (counters.reports_taken, counters.reports_taken));
    assert_eq!((counters.unacknowledged_bytes, counters.bus_waiting), (0, 0));
    broker.stop().await;
}
