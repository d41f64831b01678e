//! 5: sessions, time, restarts.

use truetwin::{
    property::Property,
    twin::{
        Twin,
        input::{ActionResult, Body, Cause, Command, Effect, Input},
        settings::Settings,
        words::{Outcome, Presence, Reason, Refusal, Stage},
    },
};

use crate::bench::{Bench, OFF, ON, op, relay};

#[test]
fn s5_1_no_command_goes_out_before_the_welcome() {
    let mut bench = Bench::relay();
    bench.disconnect(1_000);
    bench.connect(1_100);
    bench.set(1_200, "a", ON, 9_000);
    assert!(bench.sets().is_empty());
    bench.hello(1_300, OFF, None);
    let commands = bench.commands();
    assert!(matches!(commands[commands.len() - 2], Command::Welcome { .. }));
    assert!(matches!(commands[commands.len() - 1], Command::Set { .. }));
}

#[test]
fn s5_1_the_session_of_the_welcome_is_the_one_that_the_hub_named() {
    let mut bench = Bench::relay();
    bench.connect(100);
    bench.hello(110, OFF, None);
    assert_eq!(bench.commands().last(), Some(&Command::Welcome { session: "s2".into() }));
    assert_eq!(bench.twin.memory(bench.time(120)).session, Some("s2".into()));
}

#[test]
fn s5_1_the_same_operation_is_sent_once_in_each_session() {
    let mut bench = Bench::relay();
    bench.set(100, "a", ON, 30_000);
    bench.written(110, "a");
    bench.hello(210, OFF, None);
    bench.says(220, "a", ActionResult::Received);
    bench.connect(300);
    bench.hello(310, OFF, None);
    bench.until(30_000);
    assert_eq!(bench.sets(), [op("a"), op("a")]);
}

#[test]
fn s5_2_a_withdrawal_goes_out_behind_its_command() {
    let mut bench = Bench::relay();
    bench.set(100, "a", ON, 30_000);
    bench.at(100, Input::Cancel { op: op("a") });
    let commands = bench.commands();
    let set = commands.iter().position(|c| matches!(c, Command::Set { .. }));
    let withdraw = commands.iter().position(|c| matches!(c, Command::Withdraw { .. }));
    assert!(set.expect("sent") < withdraw.expect("withdrawn"));
}

#[test]
fn s5_4_what_must_not_be_repeated_is_interrupted_and_nobody_knows() {
    let mut bench = Bench::online(Property { repeatable: false, ..relay() }, OFF);
    bench.set(100, "a", ON, 8_000);
    bench.begin(110, "a");
    bench.reboot("boot2");
    bench.connect(500);
    bench.hello(510, OFF, None);
    let ended = (Outcome::Interrupted, Stage::WaitingDeviceReport, Some(Reason::DeviceRestarted));
    assert_eq!(bench.outcome("a"), ended);
    assert!(bench.withdrawn("a"));
}

#[test]
fn s5_4_a_hello_that_says_finished_and_equal_is_converged() {
    let mut bench = Bench::relay();
    bench.set(100, "a", ON, 8_000);
    bench.begin(110, "a");
    bench.reboot("boot2");
    bench.connect(500);
    bench.hello(510, ON, Some("a"));
    assert_eq!(bench.outcome("a"), (Outcome::Converged, Stage::Settled, None));
}

#[test]
fn s5_5_presence_comes_from_the_connection_and_the_heartbeat() {
    let mut bench = Bench::relay();
    assert_eq!(bench.twin.presence(), Presence::Online);
    bench.until(24_999);
    assert_eq!(bench.twin.presence(), Presence::Online);
    bench.until(25_000);
    assert_eq!(bench.twin.presence(), Presence::Suspected, "a board whose control task hangs");
    let heartbeat = bench.report(Vec::new(), Body::Heartbeat);
    bench.at(30_000, Input::Heard(heartbeat));
    assert_eq!(bench.twin.presence(), Presence::Online);
    bench.disconnect(31_000);
    assert_eq!(bench.twin.presence(), Presence::Offline);
    let told: Vec<&Effect> =
        bench.effects.iter().map(|(_, e)| e).filter(|e| matches!(e, Effect::Presence(_))).collect();
    assert_eq!(told.len(), 4);
}

#[test]
fn s5_5_the_end_of_a_connection_that_was_taken_over_says_nothing() {
    let mut bench = Bench::relay();
    bench.connect(100);
    bench.hello(110, OFF, None);
    bench.at(120, Input::Disconnected { connection: 1 });
    assert_eq!(bench.twin.presence(), Presence::Online);
}

#[test]
fn s5_5_after_a_blip_a_call_waits_for_the_device_and_then_begins() {
    let mut bench = Bench::relay();
    bench.disconnect(1_000);
    bench.set(2_000, "a", ON, 10_000);
    bench.connect(4_000);
    bench.hello(4_010, OFF, None);
    assert_eq!(bench.sets(), [op("a")]);
}

#[test]
fn s5_5_after_a_blip_a_call_waits_no_longer_than_that() {
    let mut bench = Bench::relay();
    bench.disconnect(1_000);
    bench.set(2_000, "a", ON, 10_000);
    // Nor longer than its caller does; and it is the device that is away, not the limit that is short.
    bench.set(2_000, "b", ON, 3_000);
    bench.until(10_000);
    assert!(matches!(bench.refusal("a"), (4_500, Refusal::Offline { last_heard: Some(_) })));
    assert!(matches!(bench.refusal("b"), (2_950, Refusal::Offline { last_heard: Some(_) })));
}

#[test]
fn s5_5_what_waits_in_the_queue_of_a_device_that_goes_away_waits_no_longer_either() {
    let mut bench = Bench::relay();
    bench.set(100, "a", ON, 60_000);
    bench.set(110, "b", OFF, 60_000);
    bench.begin(120, "a");
    bench.disconnect(200);
    bench.until(60_000);
    assert!(matches!(bench.refusal("b"), (2_700, Refusal::Offline { .. })));
}

#[test]
fn s5_5_a_hub_that_has_just_started_says_so_of_devices_that_it_never_heard() {
    let mut bench = Bench::just_started(vec![relay()]);
    bench.set(1_000, "a", ON, 20_000);
    bench.until(20_000);
    assert_eq!(bench.refusal("a"), (3_500, Refusal::HubJustStarted));
    bench.set(31_000, "b", ON, 40_000);
    assert_eq!(bench.refusal("b"), (31_000, Refusal::Offline { last_heard: None }));
}

#[test]
fn s5_5_a_bus_that_is_down_is_said_to_be_so_and_makes_no_device_offline() {
    let mut bench = Bench::relay();
    bench.at(100, Input::BusDown);
    bench.set(200, "a", ON, 8_000);
    assert_eq!(bench.refusal("a"), (200, Refusal::BrokerDown));
    assert_eq!(bench.twin.presence(), Presence::Online);
    bench.at(300, Input::BusUp);
    bench.set(400, "b", ON, 8_000);
    assert_eq!(bench.sets(), [op("b")]);
}

#[test]
fn s5_5_a_command_that_never_reached_the_socket_is_refused_and_the_next_begins() {
    let mut bench = Bench::relay();
    bench.set(100, "a", ON, 8_000);
    bench.toggle(100, "b", 8_000);
    bench.at(110, Input::NotWritten { op: op("a") });
    assert!(matches!(bench.refusal("a").1, Refusal::Offline { .. }));
    assert_eq!(bench.sets(), [op("a"), op("b")]);
    assert_eq!(bench.twin.desired("relay").map(|d| d.op.clone()), Some(op("b")));
}

#[test]
fn s5_7_the_twin_knows_no_clock() {
    let mut folders = vec![std::path::PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/src/twin"))];
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder of the twin") {
            let path = entry.expect("an entry").path();
            if path.is_dir() { folders.push(path) } else { files.push(path) }
        }
    }
    assert!(files.len() > 20, "the twin is there");
    for path in files {
        let text = std::fs::read_to_string(&path).expect("a text");
        for clock in ["SystemTime", "Instant::now", "Utc", "elapsed()", "tokio::"] {
            assert!(!text.contains(clock), "{} reads {clock}", path.display());
        }
    }
}

#[test]
fn s5_7_deadlines_depend_on_the_time_that_is_given_alone() {
    // The same history an hour later, and with doubled ticks, gives the same answers at the same times.
    let run = |shift: u64, doubled: bool| {
        let mut bench = Bench::unknown(vec![relay()]);
        bench.connect(shift);
        bench.hello(shift, OFF, None);
        bench.set(shift + 100, "a", ON, shift + 8_000);
        bench.written(shift + 110, "a");
        for ms in 0..if doubled { 500 } else { 0 } {
            bench.late(shift + 110 + ms, Input::Tick);
        }
        bench.until(shift + 20_000);
        let (ms, settled) = bench.settled("a");
        (ms - shift, settled)
    };
    assert_eq!(run(0, false), run(3_600_000, false));
    assert_eq!(run(0, false), run(0, true));
}

#[test]
fn s5_8_a_restarted_actor_first_withdraws_what_was_in_flight() {
    let mut bench = Bench::relay();
    bench.set(100, "a", ON, 8_000);
    bench.begin(110, "a");
    let memory = bench.twin.memory(bench.time(200));
    let device = truetwin::property::DeviceId::new("lamp").expect("a device id");
    bench.twin = Twin::new(device, Settings::new(bench.time(0)));
    bench.effects.clear();
    bench.at(300, Input::Restored(memory));
    assert_eq!(bench.commands().first(), Some(&Command::Withdraw { op: op("a") }));
    assert_eq!(bench.twin.presence(), Presence::Online, "it goes on in its session");
    let known = bench.check(310, "a");
    assert_eq!((known.outcome, known.reason), (Outcome::Interrupted, Some(Reason::ActorRestarted)));
    assert!(bench.sets().is_empty(), "and nothing is sent again");
    // A later report for it amends the record.
    bench.answers(400, ON, Some("a"));
    assert!(bench.has(&Effect::LateSuccess { op: op("a") }));
}

#[test]
fn s5_8_a_restarted_actor_takes_no_report_of_another_boot() {
    let mut bench = Bench::relay();
    let memory = bench.twin.memory(bench.time(200));
    let device = truetwin::property::DeviceId::new("lamp").expect("a device id");
    bench.twin = Twin::new(device, Settings::new(bench.time(0)));
    bench.at(300, Input::Restored(memory));
    bench.boot = "boot0".into();
    bench.tells(400, ON, Cause::Periodic, None);
    assert!(bench.twin.state(bench.time(410)).readings.is_empty());
}

#[test]
fn s5_8_a_restart_while_the_device_is_away_waits_for_its_hello() {
    let mut bench = Bench::online(Property { stable_ms: 0, ..relay() }, OFF);
    bench.disconnect(100);
    let memory = bench.twin.memory(bench.time(200));
    let device = truetwin::property::DeviceId::new("lamp").expect("a device id");
    bench.twin = Twin::new(device, Settings::new(bench.time(0)));
    bench.at(300, Input::Restored(memory));
    assert_eq!(bench.twin.presence(), Presence::Offline);
    assert_eq!(bench.twin.last_heard(), Some(bench.time(0)), "the restart is no sign of life");
    bench.connect(1_000);
    bench.hello(1_010, OFF, None);
    bench.converge(1_100, "a", ON);
}
