//! The fault table of `src/twin/semantics.md`, row by row, with nothing replaced: a real hub, the device core behind a real
//! MQTT connection with the fault switched on, a real MCP client, and the relay itself as the judge.
#![allow(clippy::unwrap_used, reason = "a test that fails here says where")]

use std::{sync::Arc, time::Duration};

use serde_json::{Value as Json, json};
use tokio::{net::TcpListener, task::JoinSet};
use truetwin::{
    config::Config,
    data::DataFolder,
    mcp::Client,
    property::DeviceId,
    serve::Hub,
    sim::{self, Fault, Options, Simulator},
    twin::words::Presence,
};

/// One row: what a `switch_device` on a socket with this fault must answer, and what the relay must have done by then.
struct Row {
    fault: Fault,
    outcome: &'static str,
    stage: &'static str,
    /// What `reason` begins with; anything if empty.
    reason: &'static str,
    /// How often the relay may have moved when the answer comes.
    moves: &'static [u64],
}

const fn row(
    fault: Fault,
    outcome: &'static str,
    stage: &'static str,
    reason: &'static str,
    moves: &'static [u64],
) -> Row {
    Row { fault, outcome, stage, reason, moves }
}

#[rustfmt::skip]
const ROWS: &[Row] = &[
    row(Fault::None,                "converged",      "settled",               "",                  &[1]),
    row(Fault::Frozen,              "timed_out",      "waiting_device_ack",    "timeout_after_",    &[0]),
    row(Fault::NoCommand,           "timed_out",      "waiting_device_ack",    "timeout_after_",    &[0]),
    row(Fault::NoAck,               "converged",      "settled",               "",                  &[1]),
    row(Fault::NoExecuting,         "converged",      "settled",               "",                  &[1]),
    row(Fault::Busy,                "rejected",       "waiting_device_ack",    "busy",              &[0]),
    row(Fault::NeverStarts,         "timed_out",      "waiting_device_start",  "timeout_after_",    &[0]),
    row(Fault::StartsLate,          "timed_out",      "waiting_device_start",  "timeout_after_",    &[0]),
    row(Fault::Expires,             "rejected",       "waiting_device_start",  "expired",           &[0]),
    row(Fault::Slow,                "converged",      "settled",               "",                  &[1]),
    row(Fault::Stuck,               "failed",         "waiting_device_report", "stuck",             &[0]),
    row(Fault::NoCompletion,        "converged",      "settled",               "",                  &[1]),
    row(Fault::NothingAfterDriving, "timed_out",      "waiting_device_report", "timeout_after_",    &[1]),
    row(Fault::Lying,               "contradicted",   "waiting_read_back",     "read_back_differs", &[0]),
    row(Fault::RevertsSoon,         "contradicted",   "waiting_read_back",     "read_back_differs", &[2]),
    row(Fault::RevertsSoonTold,     "contradicted",   "waiting_read_back",     "did_not_hold",      &[2]),
    row(Fault::RevertsLate,         "converged",      "settled",               "",                  &[1]),
    row(Fault::RebootBefore,        "converged",      "settled",               "",                  &[1]),
    // The relay falls with the supply, which is a movement, and is switched on again.
    row(Fault::RebootAfter,         "converged",      "settled",               "",                  &[3]),
    row(Fault::BrownOut,            "device_crashed", "waiting_device_report", "device_restarted",  &[0]),
    row(Fault::WrongType,           "timed_out",      "waiting_device_report", "unreadable_report", &[1]),
    row(Fault::UnknownWord,         "timed_out",      "waiting_device_report", "unreadable_report", &[1]),
    row(Fault::Late,                "timed_out",      "waiting_device_report", "timeout_after_",    &[0]),
];

/// What becomes true of these answers afterwards, by the field that `check_operation` then has.
const LATER: &[(Fault, &str)] =
    &[(Fault::NothingAfterDriving, "late_success"), (Fault::Late, "late_success"), (Fault::RevertsLate, "reverted")];

/// What must not move any more, not even when it is mended.
const STILL: &[Fault] = &[
    Fault::Frozen,
    Fault::NoCommand,
    Fault::Busy,
    Fault::NeverStarts,
    Fault::StartsLate,
    Fault::Expires,
    Fault::Stuck,
];

/// Whatever is waited for has happened long before; this turns a hang into a failure.
const PATIENCE: Duration = Duration::from_secs(60);

struct House {
    hub: Hub,
    sockets: Vec<Arc<Simulator>>,
    _folder: tempfile::TempDir,
}

impl House {
    async fn build() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let free = async || TcpListener::bind("127.0.0.1:0").await.unwrap();
        let config = Config::parse("test", "").unwrap();
        let data = DataFolder::open(&folder.path().join("data")).unwrap();
        let hub = Hub::start(config, data, free().await, free().await).await.unwrap();
        let mut sockets = Vec::new();
        for row in ROWS {
            let id = id(row);
            let password = hub.parts().add_device(&id).await.unwrap();
            let options = Options::new(hub.mqtt_addr(), id.as_str(), password.reveal());
            sockets.push(Arc::new(sim::start(options)));
        }
        let house = Self { hub, sockets, _folder: folder };
        for row in ROWS {
            while house.hub.parts().fleet.card(&id(row)).is_none_or(|card| card.presence != Presence::Online) {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
        house
    }

    fn socket(&self, fault: Fault) -> &Simulator {
        let at = ROWS.iter().position(|row| row.fault == fault).unwrap();
        &self.sockets[at]
    }

    /// Asks again and again until an answer is as wanted.
    async fn until(&self, client: &Client, tool: &str, arguments: Json, wanted: impl Fn(&Json) -> bool) {
        let asking = async {
            loop {
                let answer = client.call(tool, arguments.clone()).await.unwrap().structured;
                if wanted(&answer) {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        };
        tokio::time::timeout(PATIENCE, asking)
            .await
            .unwrap_or_else(|_| panic!("{tool} {arguments} never was as wanted"));
    }

    async fn client(&self) -> Client {
        Client::connect(&format!("http://{}/mcp", self.hub.http_addr())).await.unwrap()
    }
}

fn id(row: &Row) -> DeviceId {
    DeviceId::new(row.fault.as_str()).unwrap()
}

/// What is other than the row says.
fn differs(row: &Row, answer: &Json, moves: u64) -> Vec<String> {
    let mut differs = Vec::new();
    let mut check = |field: &str, wanted: &str| {
        if answer[field] != wanted {
            differs.push(format!("{field} is {}, not {wanted}", answer[field]));
        }
    };
    check("outcome", row.outcome);
    check("stage", row.stage);
    let reason = answer["reason"].as_str().unwrap_or_default();
    if !reason.starts_with(row.reason) {
        differs.push(format!("reason is {reason}, not {}", row.reason));
    }
    if answer["success"] != json!(row.outcome == "converged") {
        differs.push(format!("success is {}", answer["success"]));
    }
    if !row.moves.contains(&moves) {
        differs.push(format!("the relay moved {moves} times, not {:?}", row.moves));
    }
    differs
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_row_gives_what_the_table_says_and_the_relay_agrees_then_and_later() {
    let house = House::build().await;
    let mut calls = JoinSet::new();
    for (row, socket) in ROWS.iter().zip(&house.sockets) {
        socket.set_fault(row.fault);
        let (client, socket) = (house.client().await, socket.clone());
        calls.spawn(async move {
            let call = client.call("switch_device", json!({"device": id(row).as_str(), "to": "on"}));
            let answer = call.await.unwrap().structured;
            let differs = differs(row, &answer, socket.moves());
            client.close().await;
            (row.fault, differs, answer)
        });
    }
    let (mut wrong, mut operations) = (Vec::new(), Vec::new());
    while let Some(done) = calls.join_next().await {
        let (fault, differs, answer) = done.unwrap();
        operations.push((fault, answer["operation"].clone()));
        if !differs.is_empty() {
            wrong.push(format!("{fault}: {}\n    {answer}", differs.join("; ")));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));

    let client = house.client().await;
    house.socket(Fault::NothingAfterDriving).set_fault(Fault::None);
    for (fault, field) in LATER {
        let (_, operation) = operations.iter().find(|(found, _)| found == fault).unwrap();
        let wanted = |answer: &Json| answer[field] == json!(true);
        house.until(&client, "check_operation", json!({"operation": operation}), wanted).await;
    }
    assert_eq!(house.socket(Fault::Late).moves(), 1, "it moved after its answer, and the answer was amended");
    for fault in STILL {
        house.socket(*fault).set_fault(Fault::None);
        // When it answers a question that was asked after the mending, it has read all that was sent before.
        let trusted = |answer: &Json| answer["trust"] == "now";
        house.until(&client, "get_device_state", json!({"device": fault.as_str()}), trusted).await;
        assert_eq!(house.socket(*fault).moves(), 0, "{fault}");
    }
    client.close().await;
    house.hub.stop().await;
}
