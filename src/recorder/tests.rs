//! The file as a hub writes it: bounds, gaps, crashes, what was there before.

use std::{fs, io::BufReader, os::unix::fs::PermissionsExt as _, time::Duration};

use super::*;
use crate::{
    recording::replay::{Compared, Replay, Told},
    twin::Twin,
};

fn plan(folder: &Path) -> Plan {
    Plan { file: folder.join("r.jsonl"), bytes_max: 1_048_576, left_out: BTreeMap::new() }
}

fn lamp() -> DeviceId {
    DeviceId::new("lamp").unwrap()
}

fn settings() -> Settings {
    Settings::new(Instant::now())
}

/// Begins a twin and takes so many inputs in.
fn live(track: &Track, inputs: u64) {
    let (settings, now) = (settings(), Instant::now());
    let mut twin = Twin::new(lamp(), settings.clone());
    track.begins(now, &settings);
    for connection in 0..inputs {
        let (now, input) = (now + Duration::from_millis(connection), Input::Connected { connection });
        let mut taking = track.takes(now, &input);
        twin.apply(now, input);
        while let Some(effect) = twin.poll() {
            taking.decided(&effect);
        }
    }
}

fn told(file: &Path) -> Vec<Told> {
    let replay = Replay::new("r", BufReader::new(File::open(file).unwrap()), None);
    replay.map(|told| told.unwrap()).collect()
}

fn steps(told: &[Told]) -> usize {
    told.iter().filter(|told| matches!(told, Told::Step(step) if step.compared == Compared::Same)).count()
}

#[test]
fn the_file_is_its_owners_alone_and_each_process_adds_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let plan = plan(folder.path());
    for _ in 0..2 {
        let recorder = Recorder::start(plan.clone()).unwrap();
        live(&recorder.track(&lamp()), 3);
        recorder.close();
    }
    assert_eq!(plan.file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    let told = told(&plan.file);
    let heads = told.iter().filter(|told| matches!(told, Told::Head { .. })).count();
    assert_eq!((heads, steps(&told), told.len()), (2, 6, 2 + 2 + 6 + 2), "{told:?}");
    assert!(matches!(told.last(), Some(Told::End { why, .. }) if why == "the hub stopped"));
}

#[test]
fn what_is_no_recording_is_left_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let plan = plan(folder.path());
    for text in ["[http]\nlisten = \"127.0.0.1:1\"\n", "{\"truetwin_recording\":99,\"hub\":\"9\",\"unix_ms\":1}\n"] {
        fs::write(&plan.file, text).unwrap();
        assert!(matches!(Recorder::start(plan.clone()), Err(Error::NoRecording { .. })));
        assert_eq!(fs::read_to_string(&plan.file).unwrap(), text);
    }
    let nowhere = Plan { file: folder.path().join("no/r.jsonl"), ..plan };
    assert!(matches!(Recorder::start(nowhere), Err(Error::File { .. })));
}

#[test]
fn a_line_that_was_torn_by_a_kill_ends_before_the_next_process() {
    let folder = tempfile::tempdir().unwrap();
    let plan = plan(folder.path());
    let recorder = Recorder::start(plan.clone()).unwrap();
    live(&recorder.track(&lamp()), 3);
    recorder.close();
    let text = fs::read_to_string(&plan.file).unwrap();
    // The end's line is gone, and half of the last input's.
    let whole: Vec<&str> = text.lines().collect();
    let torn = format!("{}\n{}", whole[..4].join("\n"), &whole[4][..20]);
    fs::write(&plan.file, &torn).unwrap();
    let before = told(&plan.file);
    assert!(matches!(before.last(), Some(Told::Torn { line: 5 })), "{before:?}");
    let recorder = Recorder::start(plan.clone()).unwrap();
    live(&recorder.track(&lamp()), 3);
    recorder.close();
    let after = told(&plan.file);
    assert_eq!(steps(&after), 2 + 3, "{after:?}");
}

#[test]
fn at_its_size_limit_the_recording_ends_and_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let plan = Plan { bytes_max: 4_096, ..plan(folder.path()) };
    let recorder = Recorder::start(plan.clone()).unwrap();
    let track = recorder.track(&lamp());
    let thread = recorder.thread.lock().unwrap().take().unwrap();
    live(&track, 100);
    thread.join().unwrap();
    // Whatever comes now goes nowhere, and nobody waits.
    live(&track, 100);
    recorder.close();
    let bytes = plan.file.metadata().unwrap().len();
    assert!((3_500..=4_096).contains(&bytes), "what fits is there: {bytes}");
    let told = told(&plan.file);
    assert!(matches!(told.last(), Some(Told::End { why, .. }) if why.contains("4096 bytes")), "{told:?}");
    let full = Plan { bytes_max: 512, ..plan };
    assert!(matches!(Recorder::start(full), Err(Error::Full { .. })));
}

#[test]
fn what_the_thread_cannot_take_is_missing_and_the_file_says_where() {
    let folder = tempfile::tempdir().unwrap();
    let plan = plan(folder.path());
    // A recorder whose thread is not there yet, with room for two.
    let (entries, waiting) = sync_channel(2);
    let missing = Arc::new(AtomicU64::new(0));
    let zero = Zero::new(Instant::now());
    let mut out = Out::open(&plan).unwrap();
    out.append(&(form::head(&Head { hub: "t".to_owned(), unix_ms: 0 }) + "\n")).unwrap();
    let writer = Writer { out, zero, inputs: 0, missing: missing.clone() };
    let recorder = Arc::new(Recorder { entries, left_out: BTreeMap::new(), missing, thread: Mutex::new(None) });
    let track = recorder.track(&lamp());
    live(&track, 5);
    assert_eq!(recorder.missing.load(Ordering::Relaxed), 4);
    let thread = std::thread::spawn(move || writer.write(&waiting));
    // Until the thread has made room, whatever is handed over may be missing as well.
    while track.0.as_ref().unwrap().missing.load(Ordering::Relaxed) > 0 {
        drop(track.takes(Instant::now(), &Input::Tick));
        std::thread::yield_now();
    }
    recorder.entries.send(Order::Close).unwrap();
    thread.join().unwrap();
    let told = told(&plan.file);
    let [Told::Head { .. }, Told::Begins { .. }, Told::Step(_), Told::Gap { missing, .. }, Told::End { .. }] =
        &told[..]
    else {
        panic!("{told:?}")
    };
    assert!(*missing >= 4, "and what came behind it is not stepped");
}

#[test]
fn an_input_that_an_actor_crashed_over_is_recorded_as_that() {
    let folder = tempfile::tempdir().unwrap();
    let plan = plan(folder.path());
    let recorder = Recorder::start(plan.clone()).unwrap();
    let track = recorder.track(&lamp());
    track.begins(Instant::now(), &settings());
    let crashed = std::thread::spawn(move || {
        let _taking = track.takes(Instant::now(), &Input::BusDown);
        std::panic::resume_unwind(Box::new("on purpose"));
    });
    crashed.join().unwrap_err();
    recorder.close();
    let told = told(&plan.file);
    let Some(Told::Step(step)) = told.get(2) else { panic!("{told:?}") };
    assert_eq!((&step.input, &step.compared), (&Input::BusDown, &Compared::Crashed { again: false }));
}

#[test]
fn of_a_device_that_is_left_out_nothing_is_recorded_but_that() {
    let folder = tempfile::tempdir().unwrap();
    let left_out = BTreeMap::from([(lamp(), "code is sensitive".to_owned())]);
    let plan = Plan { left_out, ..plan(folder.path()) };
    let recorder = Recorder::start(plan.clone()).unwrap();
    live(&recorder.track(&lamp()), 3);
    recorder.close();
    let told = told(&plan.file);
    assert!(matches!(&told[..], [Told::Head { .. }, Told::LeftOut { .. }, Told::End { .. }]), "{told:?}");
}

#[test]
fn a_disk_that_is_full_ends_the_recording_and_nobody_else() {
    // A device that takes nothing, where the system has one.
    let Ok(file) = OpenOptions::new().write(true).open("/dev/full") else { return };
    let out = Out { file, bytes: 0, bytes_max: 1_048_576 };
    let (entries, waiting) = sync_channel(64);
    let missing = Arc::new(AtomicU64::new(0));
    let writer = Writer { out, zero: Zero::new(Instant::now()), inputs: 0, missing: missing.clone() };
    let thread = std::thread::spawn(move || writer.write(&waiting));
    let recorder = Arc::new(Recorder { entries, left_out: BTreeMap::new(), missing, thread: Mutex::new(Some(thread)) });
    let track = recorder.track(&lamp());
    live(&track, 1);
    recorder.close();
    live(&track, 1);
}
