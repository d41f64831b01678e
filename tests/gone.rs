//! A hub that dies in the middle of a call: its caller is told that nothing is known, and is not left waiting.
#![allow(clippy::unwrap_used, reason = "a test that fails here says where")]

mod program;

use std::{path::Path, time::Duration};

use program::{PATIENCE, Program, until};
use serde_json::json;
use truetwin::{
    data::{self, DataFolder, HubJson},
    mcp::{Client, ClientError},
    property::DeviceId,
    sim::{self, Fault},
};

/// The program on this folder, where it listens for callers, and for devices.
fn serve(folder: &Path, name: &str, [mqtt, http]: [&str; 2]) -> (Program, HubJson) {
    let data = folder.join("data");
    let before = data::read_hub_json(&data).ok().map(|told| told.pid);
    let arguments = ["serve", "--data", data.to_str().unwrap(), "--mqtt", mqtt, "--http", http];
    let program = Program::start(folder, name, &arguments);
    let told = until("it listens", || data::read_hub_json(&data).ok().filter(|told| Some(told.pid) != before));
    (program, told)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_caller_whose_hub_dies_or_begins_anew_in_the_middle_is_told_that_it_is_not_known() {
    for begins_anew in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let lamp = DeviceId::new("lamp").unwrap();
        let password = {
            let data = DataFolder::open_offline(&folder.path().join("data")).unwrap();
            data.credentials().add(&lamp).unwrap()
        };
        let (hub, told) = serve(folder.path(), "first", ["127.0.0.1:0", "127.0.0.1:0"]);
        let options = sim::Options::new(told.mqtt.parse().unwrap(), "lamp", password.reveal());
        let lamp = sim::start(options);
        let caller = Client::connect(&format!("{}/mcp", told.http)).await.unwrap();
        let fresh = json!({"device": "lamp", "fresh": "yes"});
        let online = async {
            while caller.call("get_device_state", fresh.clone()).await.unwrap().structured["trust"] != "now" {}
        };
        tokio::time::timeout(PATIENCE, online).await.unwrap();
        // It never says what became of a command: its caller waits until the limit.
        lamp.handle().set_fault(Fault::Frozen);
        let call = caller.call("switch_device", json!({"device": "lamp", "to": "on"}));
        let killed = async {
            let journal = folder.path().join("data/journal.db");
            while !is_admitted(&journal) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            drop(hub);
            let http = told.http.trim_start_matches("http://");
            begins_anew.then(|| serve(folder.path(), "second", [&told.mqtt, http]))
        };
        let (called, second) = tokio::time::timeout(PATIENCE, async { tokio::join!(call, killed) }).await.unwrap();
        let error = called.unwrap_err();
        assert!(matches!(&error, ClientError::Gone { tool, .. } if tool == "switch_device"), "{error:?}");
        assert!(error.to_string().contains("whether switch_device was carried out is not known"), "{error}");
        lamp.stop();
        drop(second);
    }
}

/// Whether an operation has begun that has not ended.
fn is_admitted(journal: &Path) -> bool {
    let open = rusqlite::Connection::open_with_flags(journal, rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY);
    let count = open.and_then(|c| c.query_row("SELECT count(*) FROM admission", [], |row| row.get::<_, i64>(0)));
    count.is_ok_and(|count| count > 0)
}
