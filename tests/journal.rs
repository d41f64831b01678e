//! What a hub knows again: after an orderly end, and after none (semantics 5.8, 8.5).
#![expect(clippy::unwrap_used, reason = "a test that fails there has said so")]

use std::{fs, net::SocketAddr, path::Path, time::Duration};

use serde_json::{Value as Json, json};
use tokio::net::TcpListener;
use truetwin::{
    config::Config,
    data::DataFolder,
    mcp::Client,
    property::DeviceId,
    serve::Hub,
    sim::{self, Fault, Kind, Simulator},
};

/// Far above what anything here takes; only a hang meets it.
const HANG: Duration = Duration::from_secs(60);

struct Running {
    hub: Hub,
    caller: Client,
}

/// A hub on this folder; devices connect where they did before.
async fn start(folder: &Path, mqtt: SocketAddr) -> Running {
    let config = Config::parse(
        "test",
        "[devices.heater]\nname = \"floor heating\"\n[devices.heater.properties.target]\nconfirm = \"none\"\n",
    )
    .unwrap();
    let free = SocketAddr::from(([127, 0, 0, 1], 0));
    let (mqtt, http) = (TcpListener::bind(mqtt).await.unwrap(), TcpListener::bind(free).await.unwrap());
    let hub = Hub::start(config, DataFolder::open(folder).unwrap(), mqtt, http).await.unwrap();
    let caller = Client::connect(&format!("http://{}/mcp", hub.http_addr())).await.unwrap();
    Running { hub, caller }
}

impl Running {
    async fn device(&self, device: &str, kind: Kind) -> Simulator {
        let password = self.hub.parts().add_device(&DeviceId::new(device).unwrap()).await.unwrap();
        let options = sim::Options { kind, ..sim::Options::new(self.hub.mqtt_addr(), device, password.reveal()) };
        sim::start(options)
    }

    async fn call(&self, tool: &str, arguments: Json) -> Json {
        self.caller.call(tool, arguments).await.unwrap_or_else(|error| panic!("{tool}: {error}")).structured
    }

    async fn until(&self, what: &str, tool: &str, arguments: Json, wanted: impl Fn(&Json) -> bool) -> Json {
        let looking = async {
            loop {
                let told = self.call(tool, arguments.clone()).await;
                if wanted(&told) {
                    return told;
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::time::timeout(HANG, looking).await.unwrap_or_else(|_| panic!("it never came to it: {what}"))
    }

    async fn stop(self) {
        self.caller.close().await;
        self.hub.stop().await;
    }
}

fn free() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 0))
}

/// What a process that was killed now would leave behind.
fn killed_now(folder: &Path, copy: &Path) {
    fs::create_dir_all(copy).unwrap();
    for file in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        if file.file_type().unwrap().is_file() {
            fs::copy(file.path(), copy.join(file.file_name())).unwrap();
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s8_5_an_operation_that_was_answered_is_known_after_the_hub_was_killed() {
    let folder = tempfile::tempdir().unwrap();
    let (data, copy) = (folder.path().join("data"), folder.path().join("copy"));
    let first = start(&data, free()).await;
    let lamp = first.device("lamp", Kind::Socket).await;
    let on = json!({"device": "lamp", "to": "on"});
    let done = first.until("switched", "switch_device", on, |told| told["success"] == true).await;
    killed_now(&data, &copy);
    let second = start(&copy, free()).await;
    let told = second.call("check_operation", json!({"operation": done["operation"]})).await;
    for field in ["result", "outcome", "confirmed_by", "stage", "operation"] {
        assert_eq!(told[field], done[field], "{field}: {told}");
    }
    assert_eq!(done.get("recorded"), None, "what is recorded says nothing of it");
    // What it has is known before it has greeted this hub.
    let wrong = second.call("switch_device", json!({"device": "lamp", "to": "half"})).await;
    assert_eq!(wrong["allowed"], "on, off", "{wrong}");
    lamp.stop();
    second.stop().await;
    first.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s5_8_what_was_in_flight_when_the_hub_was_killed_is_interrupted_and_never_sent_again() {
    let folder = tempfile::tempdir().unwrap();
    let (data, copy) = (folder.path().join("data"), folder.path().join("copy"));
    let first = start(&data, free()).await;
    let lamp = first.device("lamp", Kind::Socket).await;
    let fresh = json!({"device": "lamp"});
    first.until("online", "get_device_state", fresh, |told| told["trust"] == "now").await;
    lamp.handle().set_fault(Fault::Frozen);
    let mqtt = first.hub.mqtt_addr();
    let asked = async {
        let answer = first.call("switch_device", json!({"device": "lamp", "to": "on"})).await;
        assert_eq!(answer["success"], false, "a frozen lamp does not move: {answer}");
        answer["operation"].clone()
    };
    let killed = async {
        // Its admission is in the journal before anything can be answered.
        tokio::time::timeout(HANG, async {
            while !admitted(&data) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        })
        .await
        .unwrap();
        killed_now(&data, &copy);
    };
    let (operation, ()) = tokio::join!(asked, killed);
    first.stop().await;
    lamp.handle().set_fault(Fault::None);
    // The device meets the hub that begins anew, where the first one was.
    let second = start(&copy, mqtt).await;
    second.until("online", "get_device_state", json!({"device": "lamp"}), |told| told["trust"] == "now").await;
    let told = second.call("check_operation", json!({"operation": operation})).await;
    assert_eq!((&told["outcome"], &told["result"]), (&json!("interrupted"), &json!("unconfirmed")), "{told}");
    assert_eq!(lamp.moves(), 0, "nothing old moves");
    lamp.stop();
    second.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s5_8_a_set_point_is_pursued_by_the_hub_that_begins_anew() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let first = start(&data, free()).await;
    let heater = first.device("heater", Kind::Thermostat).await;
    let mqtt = first.hub.mqtt_addr();
    let fresh = json!({"device": "floor heating"});
    first.until("online", "get_device_state", fresh.clone(), |told| told["trust"] == "now").await;
    heater.stop();
    first.until("away", "get_device_state", fresh.clone(), |told| told["online"] == false).await;
    let wish = json!({"device": "floor heating", "property": "target", "level": 21});
    let stored = first.call("set_device_level", wish).await;
    assert_eq!((&stored["result"], &stored["reason"]), (&json!("working"), &json!("offline")), "{stored}");
    first.stop().await;
    let second = start(&data, mqtt).await;
    let told = second.call("get_device_state", json!({"device": "floor heating"})).await;
    assert_eq!(told["held"][0]["value"], 21.0, "{told}");
    // What it said to the hub before is shown, as old.
    assert_eq!((&told["device_state"]["target"], &told["trust"]), (&json!(18.0), &json!("old")), "{told}");
    let password = second.hub.parts().credentials.rotate(&DeviceId::new("heater").unwrap()).unwrap();
    let options = sim::Options { kind: Kind::Thermostat, ..sim::Options::new(mqtt, "heater", password.reveal()) };
    let heater = sim::start(options);
    second
        .until("set", "get_device_state", fresh, |told| {
            told["device_state"]["target"] == 21.0 && told["held"][0]["state"] == "met"
        })
        .await;
    heater.stop();
    second.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s8_5_a_disk_that_takes_nothing_costs_the_record_and_not_the_answer() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let hub = start(&data, free()).await;
    let (lamp, heater) = (hub.device("lamp", Kind::Socket).await, hub.device("heater", Kind::Thermostat).await);
    for device in ["lamp", "floor heating"] {
        hub.until("online", "get_device_state", json!({"device": device}), |told| told["trust"] == "now").await;
    }
    // As on a full or stalled disk no commit goes through, while another connection has the file.
    let mut other = rusqlite::Connection::open(data.join("journal.db")).unwrap();
    let stalled = other.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate).unwrap();
    let done = hub.call("switch_device", json!({"device": "lamp", "to": "on"})).await;
    assert_eq!((&done["success"], &done["recorded"]), (&json!(true), &json!(false)), "{done}");
    let wish = json!({"device": "floor heating", "property": "target", "level": 21});
    let refused = hub.call("set_device_level", wish.clone()).await;
    assert_eq!((&refused["outcome"], &refused["result"]), (&json!("journal_down"), &json!("failed")), "{refused}");
    assert_eq!(heater.moves(), 0, "what must be written down first was not sent");
    drop(stalled);
    let again = hub.call("switch_device", json!({"device": "lamp", "to": "off"})).await;
    assert_eq!((&again["success"], again.get("recorded")), (&json!(true), None), "{again}");
    let taken = hub.call("set_device_level", wish).await;
    assert_ne!(taken["outcome"], "journal_down", "{taken}");
    lamp.stop();
    heater.stop();
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s8_5_an_end_that_a_full_disk_did_not_take_is_recorded_once_it_does_and_not_told_as_interrupted() {
    let folder = tempfile::tempdir().unwrap();
    let (data, copy) = (folder.path().join("data"), folder.path().join("copy"));
    let first = start(&data, free()).await;
    let lamp = first.device("lamp", Kind::Socket).await;
    let state = || json!({"device": "lamp", "fresh": "yes"});
    first.until("online", "get_device_state", state(), |told| told["trust"] == "now").await;
    lamp.handle().set_fault(Fault::Frozen);
    let stalls = async {
        let written = async {
            while !admitted(&data) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(HANG, written).await.unwrap();
        let other = rusqlite::Connection::open(data.join("journal.db")).unwrap();
        other.execute_batch("BEGIN IMMEDIATE").unwrap();
        other
    };
    let (answer, stalled) = tokio::join!(first.call("switch_device", json!({"device": "lamp", "to": "on"})), stalls);
    assert_eq!((&answer["success"], &answer["recorded"]), (&json!(false), &json!(false)), "{answer}");
    assert!(admitted(&data), "the journal knows its beginning alone");
    drop(stalled);
    lamp.handle().set_fault(Fault::None);
    first.until("recorded", "switch_device", json!({"device": "lamp", "to": "off"}), |_| !admitted(&data)).await;
    killed_now(&data, &copy);
    let second = start(&copy, free()).await;
    let told = second.call("check_operation", json!({"operation": answer["operation"]})).await;
    for field in ["result", "outcome", "stage", "operation"] {
        assert_eq!(told[field], answer[field], "{field}: {told}");
    }
    lamp.stop();
    second.stop().await;
    first.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s6_2_a_set_point_that_changed_while_the_disk_took_nothing_is_written_once_it_does() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let hub = start(&data, free()).await;
    let heater = hub.device("heater", Kind::Thermostat).await;
    let state = || json!({"device": "floor heating"});
    hub.until("online", "get_device_state", state(), |told| told["trust"] == "now").await;
    let wish = json!({"device": "floor heating", "property": "target", "level": 21});
    hub.call("set_device_level", wish).await;
    hub.until("met", "get_device_state", state(), |told| told["held"][0]["state"] == "met").await;
    let mut other = rusqlite::Connection::open(data.join("journal.db")).unwrap();
    let stalled = other.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate).unwrap();
    assert!(heater.handle().touch(Some("target"), Some(15.0)), "a person turns it down");
    let lost = async {
        while hub.hub.parts().journal.as_ref().unwrap().counters().not_kept() == 0 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(HANG, lost).await.unwrap();
    drop(stalled);
    // Whatever happens to the device next tells it again: else a hub that begins anew would heat to 21.
    hub.until("written", "get_device_state", state(), |_| {
        let row = other.query_row("SELECT json FROM held", [], |row| row.get::<_, String>(0));
        row.is_ok_and(|row| serde_json::from_str::<Json>(&row).unwrap()["value"].as_f64() == Some(15.0))
    })
    .await;
    heater.stop();
    hub.stop().await;
}

/// Whether an operation stands in the journal that has not ended.
fn admitted(folder: &Path) -> bool {
    let path = folder.join("journal.db");
    let open = rusqlite::Connection::open_with_flags(path, rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY);
    let count = open.and_then(|c| c.query_row("SELECT count(*) FROM admission", [], |row| row.get::<_, i64>(0)));
    count.is_ok_and(|count| count > 0)
}
