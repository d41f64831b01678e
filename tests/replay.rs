//! What a hub records is decided again, input by input: a real hub with simulated devices under faults, replayed by the library
//! and by the program.
#![allow(clippy::unwrap_used, reason = "a test that fails here says where")]

mod house;
mod program;

use std::{
    fs::{self, File},
    io::BufReader,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

use house::{House, Member, break_it};
use serde_json::{Value as Json, json};
use truetwin::{
    property::DeviceId,
    recording::replay::{Error, Replay, Summary},
    sim::{Fault, Kind},
    twin::words::Presence,
};

const MEMBERS: [Member; 3] =
    [Member::new("lamp", Kind::Socket), Member::new("heater", Kind::Thermostat), Member::new("safe", Kind::Socket)];

/// A hub that records, with one device that is nobody's to look at.
fn config(file: &Path) -> String {
    format!(
        "[recording]\nfile = \"{}\"\n[timing]\nwait_online_ms = 300\n[devices.safe.properties.relay]\nsensitive = true\n",
        file.display()
    )
}

/// A recorded house in which things went wrong.
async fn lived(folder: &Path) -> PathBuf {
    let file = folder.join("house.jsonl");
    let house = House::build(&config(&file), &MEMBERS).await;
    let caller = house.caller().await;
    assert_eq!(caller.switch("lamp", "on").await["success"], true);
    caller.call("get_device_state", json!({"device": "lamp", "fresh": "yes"})).await;
    for fault in [Fault::Stuck, Fault::Lying, Fault::Frozen, Fault::NeverStarts] {
        break_it(&house, "lamp", fault);
        assert_eq!(caller.switch("lamp", "off").await["success"], false, "{fault}");
        break_it(&house, "lamp", Fault::None);
        assert_eq!(caller.switch("lamp", "on").await["success"], true, "{fault}");
    }
    break_it(&house, "lamp", Fault::Offline);
    house.presence("lamp", Presence::Offline).await;
    assert_eq!(caller.switch("lamp", "off").await["success"], false);
    break_it(&house, "lamp", Fault::None);
    house.presence("lamp", Presence::Online).await;
    assert_eq!(caller.switch("safe", "on").await["success"], true);
    caller.close().await;
    house.take_down().await;
    file
}

fn replayed(file: &Path, device: Option<&str>) -> Result<Summary, Error> {
    let device = device.map(|name| DeviceId::new(name).unwrap());
    let mut replay = Replay::new("house", BufReader::new(File::open(file).unwrap()), device);
    for told in replay.by_ref() {
        told?;
    }
    Ok(replay.summary().clone())
}

/// The program over a file: its exit code and all that it prints.
fn program(file: &Path, more: &[&str]) -> (i32, String) {
    let arguments = [&["replay", file.to_str().unwrap()], more].concat();
    program::run(file.parent().unwrap(), &arguments, "")
}

fn times(summary: &Summary, word: &str) -> u64 {
    summary.answers.get(word).copied().unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_hub_decided_under_faults_is_decided_again_at_each_input() {
    let folder = tempfile::tempdir().unwrap();
    let file = lived(folder.path()).await;
    let summary = replayed(&file, None).unwrap();
    assert!(summary.is_whole() && summary.inputs > 50 && summary.questions >= 1, "{summary:?}");
    assert_eq!((summary.operations, times(&summary, "converged")), (10, 5), "{summary:?}");
    assert_eq!(summary.devices.iter().map(DeviceId::as_str).collect::<Vec<_>>(), ["heater", "lamp"]);
    // What nobody may read is in no line; that it is left out is.
    let text = fs::read_to_string(&file).unwrap();
    let of_safe: Vec<&str> = text.lines().filter(|line| line.contains("\"safe\"")).collect();
    assert_eq!(of_safe.len(), 1, "{of_safe:?}");
    assert!(of_safe[0].contains("left_out") && of_safe[0].contains("relay is sensitive"));

    let (exit, printed) = program(&file, &[]);
    assert_eq!(exit, 0, "{printed}");
    for part in [
        "a recording of truetwin",
        "its twin begins",
        "not recorded: relay is sensitive",
        "wishes relay = true",
        "> send relay = true",
        "converged by pin",
        "(stuck)",
        "refused: offline",
        "the recording ends: the hub stopped",
        "10 operations",
        "the same is decided as was recorded",
    ] {
        assert!(printed.contains(part), "{part:?} is not in:\n{printed}");
    }
    let (exit, printed) = program(&file, &["--json", "--device", "lamp"]);
    assert_eq!(exit, 0, "{printed}");
    let lines: Vec<Json> = printed.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    assert!(lines.iter().all(|line| line["device"].is_null() || line["device"] == "lamp"));
    assert_eq!(lines.last().unwrap()["summary"]["differences"], 0);
    let stops = lines.iter().filter(|line| line["words"] == "the hub stops").count();
    assert_eq!(stops, 1, "a device is told once that its hub stops");
    assert!(lines.iter().any(|line| line["input"]["kind"] == "set" && line["same"] == true));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_recording_that_is_cut_or_changed_says_where() {
    let folder = tempfile::tempdir().unwrap();
    let file = lived(folder.path()).await;
    let whole = fs::read_to_string(&file).unwrap();
    let lines: Vec<&str> = whole.lines().collect();
    let write = |text: String| fs::write(&file, text).unwrap();
    let half = lines.len() / 2;

    // Cut behind a line, and within one: all before it is whole, and that there may have been more is said.
    for (cut, torn) in [(String::new(), false), (lines[half][..lines[half].len() / 2].to_owned(), true)] {
        write(lines[..half].join("\n") + "\n" + &cut);
        let summary = replayed(&file, None).unwrap();
        assert!(summary.is_whole() && summary.is_open, "{summary:?}");
        let (exit, printed) = program(&file, &[]);
        let told = printed.contains("the recording has no end: the file was cut off");
        assert!(exit == 1 && told && printed.contains("the line is torn") == torn, "{exit} {printed}");
    }

    // A damaged line in the middle is none that a kill leaves.
    let mut damaged: Vec<&str> = lines.clone();
    damaged[half] = &lines[half][..lines[half].len() / 2];
    write(damaged.join("\n") + "\n");
    let (exit, printed) = program(&file, &[]);
    let place = format!("house.jsonl:{}: it is no JSON", half + 1);
    assert!(exit == 2 && printed.contains(&place), "{exit} {printed}");

    // The moment in which the first wish goes out.
    let on =
        lines.iter().position(|line| line.contains("\"kind\":\"send\"") && line.contains("\"kind\":\"set\"")).unwrap();

    // Changed by hand: what was decided, then what happened.
    let changed = |at: usize, from: &str, to: &str| {
        let mut changed: Vec<String> = lines.iter().map(ToString::to_string).collect();
        assert!(changed[at].contains(from), "{}", changed[at]);
        changed[at] = changed[at].replacen(from, to, 1);
        write(changed.join("\n") + "\n");
        let summary = replayed(&file, None).unwrap();
        (summary.first_difference, program(&file, &[]))
    };
    let (first, (exit, printed)) = changed(on, "\"property\":\"relay\",\"ttl\"", "\"property\":\"rele\",\"ttl\"");
    assert_eq!((first, exit), (Some(on as u64 + 1), 6), "{printed}");
    assert!(printed.contains("DIFFERS") && printed.contains("! recorded:") && printed.contains("rele"), "{printed}");
    let (first, (exit, _)) = changed(on, "\"property\":\"relay\",\"target\"", "\"property\":\"rele\",\"target\"");
    assert_eq!((first, exit), (Some(on as u64 + 1), 6));

    // Any line taken out, also one at which nothing was decided, and one that is there twice. What is left out is no line of a twin.
    for at in (1..lines.len()).filter(|at| !lines[*at].contains("left_out")) {
        let fewer = [&lines[..at], &lines[at + 1..]].concat();
        let more = [&lines[..=at], &lines[at..]].concat();
        for (text, must) in [(fewer, true), (more, lines[at].contains("\"decided\""))] {
            write(text.join("\n") + "\n");
            let is_told = replayed(&file, None).map_or(true, |summary| !summary.is_whole() || summary.is_open);
            assert!(is_told || !must, "{}", lines[at]);
        }
    }
    let nothing = lines.iter().rposition(|line| line.contains("\"decided\":[]")).unwrap();
    write([&lines[..nothing], &lines[nothing + 1..]].concat().join("\n") + "\n");
    let (exit, printed) = program(&file, &[]);
    let problem = format!("the end at line {} does not fit: it says ", lines.len() - 1);
    assert!(exit == 1 && printed.contains(&problem), "{exit} {printed}");
    let (exit, printed) = program(&file, &["--json"]);
    let summary: Json = serde_json::from_str(printed.lines().last().unwrap()).unwrap();
    let ([said, there], line) = (["inputs_said", "inputs"].map(|key| &summary["summary"]["at_odds"][key]), lines.len());
    assert!(exit == 1 && said.as_u64().unwrap() == there.as_u64().unwrap() + 1, "{line}: {summary}");

    // Another version, no recording at all, nothing, nobody of that name, no such file.
    for (text, problem) in [
        (whole.replacen("\"truetwin_recording\":1", "\"truetwin_recording\":2", 1), "a recording of version 2"),
        ("[http]\n".to_owned(), "house.jsonl:1: no recording begins so"),
        (lines[1..].join("\n"), "house.jsonl:1: no recording begins so"),
        (String::new(), "house.jsonl is empty"),
    ] {
        write(text);
        let (exit, printed) = program(&file, &[]);
        assert!(exit == 2 && printed.contains(problem), "{problem}: {exit} {printed}");
        assert!(!printed.contains("seconds  device"), "a heading over nothing: {printed}");
    }
    write(whole.clone());
    let (exit, printed) = program(&file, &["--device", "safe"]);
    assert!(
        exit == 2 && printed.contains("safe was not recorded (relay is sensitive); recorded is heater, lamp"),
        "{printed}"
    );
    let (exit, printed) = program(&file, &["--device", "nobody"]);
    assert!(exit == 2 && printed.contains("no device nobody is in the recording; there is heater, lamp"), "{printed}");
    assert_eq!(program(&folder.path().join("none"), &[]).0, 2);

    // A gap: the rest of that device is not stepped, the others are.
    let mut gap: Vec<String> = lines.iter().map(ToString::to_string).collect();
    gap[on] = json!({"device": "lamp", "gap": 1}).to_string();
    let inputs = gap.iter().filter(|line| line.contains("\"decided\"")).count();
    *gap.last_mut().unwrap() = json!({"end": "the hub stopped", "inputs": inputs, "missing": 1}).to_string();
    write(gap.join("\n") + "\n");
    let (exit, printed) = program(&file, &[]);
    assert!(exit == 1 && printed.contains("GAP: 1 lines are missing"), "{exit} {printed}");
    assert!(replayed(&file, Some("heater")).unwrap().is_whole());
}

#[test]
fn a_hub_that_was_killed_and_starts_again_goes_on_in_the_same_file_with_what_its_journal_kept() {
    let folder = tempfile::tempdir().unwrap();
    let (file, data) = (folder.path().join("r.jsonl"), folder.path().join("data"));
    let paths = [data.to_str().unwrap(), file.to_str().unwrap()];
    let serve = ["serve", "--mqtt", "127.0.0.1:0", "--http", "127.0.0.1:0", "--data", paths[0], "--record", paths[1]];
    let up = |hub: &program::Program| {
        let said = hub.said();
        said.lines()
            .find_map(|line| line.strip_prefix("mqtt: ").map(str::to_owned))
            .filter(|_| said.contains("mcp: http"))
    };
    let hub = program::Program::start(folder.path(), "first", &serve);
    let mqtt = program::until("the hub is up", || up(&hub));
    let (_, added) = program::run(&data, &["device", "add", "heater", "--json"], "");
    let added: Json = added.lines().find_map(|line| serde_json::from_str(line).ok()).unwrap();
    let password = folder.path().join("password");
    fs::write(&password, added["password"].as_str().unwrap()).unwrap();
    fs::set_permissions(&password, fs::Permissions::from_mode(0o600)).unwrap();
    let sim = ["sim", "--mqtt", &mqtt, "--device", "heater", "--kind", "thermostat", "--password-file"];
    let sim = program::Program::start(folder.path(), "sim", &[&sim[..], &[password.to_str().unwrap()]].concat());
    let set = |value: &str| program::run(&data, &["set", "heater", "target", value], "");
    program::until("the set point is taken", || (set("21").0 == 0).then_some(()));
    // As `kill -9` ends it.
    drop(hub);
    drop(sim);
    let hub = program::Program::start(folder.path(), "second", &serve);
    program::until("the hub is up again", || up(&hub));
    let (exit, said) = set("22");
    assert_eq!(exit, 1, "it is away: {said}");
    hub.stop();
    let (exit, printed) = program(&file, &[]);
    assert_eq!(exit, 0, "{printed}");
    for part in [
        "goes on: connection none",
        "1 held",
        "cli wishes target = 22",
        "1 times no end is recorded",
        "the hub stopped",
    ] {
        assert!(printed.contains(part), "{part:?} is not in:\n{printed}");
    }
    assert_eq!(replayed(&file, None).unwrap().unended, 1);
}

#[test]
fn serve_records_with_a_flag_and_does_not_start_where_it_cannot() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("r.jsonl");
    let record = ["serve", "--mqtt", "127.0.0.1:0", "--http", "127.0.0.1:0", "--record", file.to_str().unwrap()];
    let data = folder.path().join("data");
    let arguments = [&record[..], &["--data", data.to_str().unwrap()]].concat();
    let hub = program::Program::start(folder.path(), "hub", &arguments);
    program::until("the hub is up", || hub.said().contains("mcp: http").then_some(()));
    hub.stop();
    let (exit, printed) = program(&file, &[]);
    assert!(exit == 0 && printed.contains("the recording ends: the hub stopped"), "{exit} {printed}");
    fs::write(&file, "precious\n").unwrap();
    let (exit, printed) = program::run(&data, &record, "");
    assert!(exit == 2 && printed.contains("is no recording of this version"), "{exit} {printed}");
    assert_eq!(fs::read_to_string(&file).unwrap(), "precious\n");
}
