//! The MCP server of a real hub over real HTTP, with a client that speaks the real protocol and devices over real MQTT.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use rumqttc::{AsyncClient, Event, MqttOptions, Packet, QoS};
use serde_json::{Value as Json, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::watch,
    task::JoinHandle,
    time::timeout,
};
use truetwin::{
    config::Config,
    data::DataFolder,
    mcp::{Called, Client, ClientError},
    property::DeviceId,
    serve::Hub,
    twin::words::Presence,
};

/// How long anything here may take before the test says that it never came.
const PATIENCE: Duration = Duration::from_secs(20);

/// A hub on free ports and a folder of its own.
struct Home {
    hub: Hub,
    _folder: tempfile::TempDir,
}

impl Home {
    async fn with(settings: &str) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let config = Config::parse("test", settings).expect("the test's settings are allowed");
        let data = DataFolder::open(&folder.path().join("data")).expect("a fresh folder opens");
        let (mqtt, http) = (free_port().await, free_port().await);
        let hub = Hub::start(config, data, mqtt, http).await.expect("a hub starts");
        Self { hub, _folder: folder }
    }

    fn url(&self) -> String {
        format!("http://{}/mcp", self.hub.http_addr())
    }

    async fn client(&self) -> Client {
        Client::connect(&self.url()).await.expect("the hub answers")
    }

    /// Adds a device that was never switched on.
    async fn add(&self, id: &str) -> String {
        let device = DeviceId::new(id).expect("an id");
        self.hub.parts().add_device(&device).await.expect("the device is new").reveal().to_owned()
    }

    /// Adds a device and waits until the hub has taken in its greeting.
    async fn device(&self, id: &str, role: &str, nature: Nature) -> Device {
        let password = self.add(id).await;
        let device = Device::start(self.hub.mqtt_addr(), id, &password, role, nature);
        self.wait_for(id, Presence::Online).await;
        device
    }

    async fn wait_for(&self, id: &str, presence: Presence) {
        let id = DeviceId::new(id).expect("an id");
        let come = async {
            let there = |card: truetwin::fleet::Card| card.presence == presence && card.description.is_some();
            while !self.hub.parts().fleet.card(&id).is_some_and(there) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        timeout(PATIENCE, come).await.expect("the device's presence changes");
    }
}

async fn free_port() -> TcpListener {
    TcpListener::bind("127.0.0.1:0").await.expect("a free port")
}

/// How a device behaves.
#[derive(Clone, Copy, PartialEq)]
enum Nature {
    /// Does what it is told and reads it back.
    Honest,
    /// Tries, and says that its relay is stuck.
    Stuck,
    /// Reads everything and answers nothing.
    Frozen,
    /// Lets its relay fall before it is asked for its state.
    Fickle,
}

/// A device of level 1 with one relay, by the text of the protocol.
struct Device {
    task: JoinHandle<()>,
    /// How often its relay moved.
    moves: Arc<AtomicUsize>,
    /// The commands that it was sent, `welcome` aside.
    commands: watch::Receiver<Vec<Json>>,
    password: String,
}

impl Device {
    fn start(mqtt: SocketAddr, id: &str, password: &str, role: &str, nature: Nature) -> Self {
        let mut options = MqttOptions::new(id, mqtt.ip().to_string(), mqtt.port());
        options.set_credentials(id, password);
        let (client, mut connection) = AsyncClient::new(options, 16);
        let moves = Arc::new(AtomicUsize::new(0));
        let (sent, commands) = watch::channel(Vec::new());
        let mut board = Board {
            client,
            id: id.to_owned(),
            role: role.to_owned(),
            nature,
            session: None,
            seq: 0,
            relay: false,
            moves: moves.clone(),
        };
        let task = tokio::spawn(async move {
            board.client.subscribe(format!("truetwin/{}/command", board.id), QoS::AtMostOnce).await.expect("queued");
            board.hello().await;
            while let Ok(event) = connection.poll().await {
                let Event::Incoming(Packet::Publish(message)) = event else { continue };
                let command: Json = serde_json::from_slice(&message.payload).expect("the hub sends json");
                if command["command"] != "welcome" {
                    sent.send_modify(|all| all.push(command.clone()));
                }
                board.obey(&command).await;
            }
        });
        Self { task, moves, commands, password: password.to_owned() }
    }

    fn moves(&self) -> usize {
        self.moves.load(Ordering::SeqCst)
    }

    /// Waits for a command.
    async fn told(&mut self, command: &str) {
        let there = self.commands.wait_for(|all| all.iter().any(|c| c["command"] == command));
        timeout(PATIENCE, there).await.expect("the command comes").expect("the device lives");
    }

    /// Pulls the plug.
    fn stop(&self) {
        self.task.abort();
    }
}

struct Board {
    client: AsyncClient,
    id: String,
    role: String,
    nature: Nature,
    session: Option<String>,
    seq: u32,
    relay: bool,
    moves: Arc<AtomicUsize>,
}

impl Board {
    async fn hello(&mut self) {
        let relay = json!({
            "name": "relay", "role": self.role, "kind": "bool", "feedback": "pin", "settable": true,
            "repeatable": true, "expected_ms": 100, "stable_ms": 0,
        });
        self.event(json!({
            "event": "hello", "proto": 1, "level": 1, "fw": "1", "model": "test", "desc": "test-1",
            "properties": [relay], "actions": [], "seen": {}, "state": {"relay": self.relay},
            "evidence": {"relay": "pin"},
        }))
        .await;
    }

    async fn obey(&mut self, command: &Json) {
        if command["command"] == "welcome" {
            self.session = command["session"].as_str().map(str::to_owned);
            return;
        }
        if self.nature == Nature::Frozen {
            return;
        }
        match command["command"].as_str() {
            Some("set") => {
                let wish = command["value"].as_bool().expect("a relay is set to a bool");
                let result = match self.nature {
                    Nature::Stuck => json!({"result": "failed", "reason": "stuck"}),
                    Nature::Honest | Nature::Frozen | Nature::Fickle => {
                        if self.relay != wish {
                            self.relay = wish;
                            self.moves.fetch_add(1, Ordering::SeqCst);
                        }
                        json!({"result": "completed"})
                    }
                };
                let mut report = json!({
                    "event": "device_action_report", "op": command["op"], "action": "set", "property": "relay",
                    "status": {"relay": self.relay}, "evidence": {"relay": "pin"},
                });
                merge(&mut report, result);
                self.event(report).await;
            }
            Some("get_device_state") => {
                if self.nature == Nature::Fickle {
                    self.relay = false;
                }
                self.event(json!({
                    "event": "device_state", "op": command["op"], "status": {"relay": self.relay},
                    "evidence": {"relay": "pin"}, "cause": "query", "seen": {},
                }))
                .await;
            }
            _ => {}
        }
    }

    async fn event(&mut self, mut event: Json) {
        self.seq += 1;
        merge(&mut event, json!({"boot": "b1", "seq": self.seq, "up_ms": self.seq * 10}));
        if let Some(session) = &self.session {
            merge(&mut event, json!({"session": session}));
        }
        let topic = format!("truetwin/{}/event", self.id);
        self.client.publish(topic, QoS::AtLeastOnce, false, event.to_string()).await.expect("queued");
    }
}

fn merge(into: &mut Json, more: Json) {
    let (Some(into), Json::Object(more)) = (into.as_object_mut(), more) else { panic!("objects only") };
    into.extend(more);
}

async fn call(client: &Client, tool: &str, arguments: Json) -> Called {
    timeout(PATIENCE, client.call(tool, arguments)).await.expect("an answer comes").expect("the call is understood")
}

fn words<'a>(answer: &'a Called, fields: &[&str]) -> Vec<&'a str> {
    fields.iter().map(|f| answer.structured[*f].as_str().unwrap_or("-")).collect()
}

const NAMED: &str = r#"
[devices.lamp]
name = "living room lamp"
name_zh = "客厅灯"
room = "living room"
room_zh = "客厅"
"#;

#[tokio::test(flavor = "multi_thread")]
async fn done_is_said_when_it_is_done() {
    let home = Home::with(NAMED).await;
    let lamp = home.device("lamp", "light", Nature::Honest).await;
    let client = home.client().await;
    let answer = call(&client, "switch_device", json!({"device": "living room lamp", "to": "on"})).await;
    assert_eq!(answer.structured["success"], true, "{}", answer.text);
    assert_eq!(
        words(&answer, &["result", "next", "outcome", "stage", "trust", "confirmed_by", "attribution"]),
        ["confirmed", "none", "converged", "settled", "now", "pin", "named"]
    );
    assert_eq!(answer.structured["device_state"], json!({"relay": "on"}));
    assert_eq!(answer.structured["say"], "The living room lamp's switch has closed.");
    assert!(answer.text.starts_with("The living room lamp's switch has closed.\n{\"success\":true,"));
    assert!(!answer.is_error);
    assert_eq!(lamp.moves(), 1);
    let state = call(&client, "get_device_state", json!({"device": "lamp"})).await;
    assert_eq!(state.structured["device_state"], json!({"relay": "on"}), "{}", state.text);
    assert_eq!(words(&state, &["result", "trust"]), ["confirmed", "now"]);
    assert_eq!(state.structured.get("success"), None);
    home.hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_answers_speak_the_language_of_the_hub() {
    let home = Home::with(&format!("language = \"zh\"\n{NAMED}")).await;
    let _lamp = home.device("lamp", "light", Nature::Honest).await;
    let client = home.client().await;
    let answer = call(&client, "switch_device", json!({"device": "客厅灯", "to": "on"})).await;
    assert_eq!(answer.structured["say"], "客厅灯的开关合上了。");
    assert!(answer.text.ends_with("（给助手：只能说开关合上，不要说灯亮了。）"), "{}", answer.text);
    home.hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn s8_3_a_device_that_failed_is_failed_and_one_that_is_silent_is_unknown() {
    let home = Home::with("").await;
    let _stuck = home.device("stuck", "pump", Nature::Stuck).await;
    let _frozen = home.device("frozen", "light", Nature::Frozen).await;
    let client = home.client().await;
    let stuck = call(&client, "switch_device", json!({"device": "stuck", "to": "on"})).await;
    assert_eq!(words(&stuck, &["result", "outcome", "reason", "say"])[..3], ["failed", "failed", "stuck"]);
    assert!(stuck.is_error && stuck.structured["success"] == false);
    let frozen = call(&client, "switch_device", json!({"device": "frozen", "to": "on"})).await;
    assert_eq!(
        words(&frozen, &["result", "next", "outcome", "stage"]),
        ["unconfirmed", "ask_user_to_look", "timed_out", "waiting_device_ack"]
    );
    assert!(frozen.is_error && frozen.structured["say"].as_str().expect("a text").starts_with("Not sure:"));
    assert!(frozen.structured["reason"].as_str().expect("a text").starts_with("timeout_after_"));
    let later = call(&client, "check_operation", json!({})).await;
    assert_eq!(later.structured["operation"], frozen.structured["operation"], "the caller's latest");
    let by_id = call(&client, "check_operation", json!({"operation": stuck.structured["operation"]})).await;
    assert_eq!(words(&by_id, &["device", "outcome"]), ["stuck", "failed"]);
    home.hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn s6_3_the_next_answer_of_a_caller_begins_with_what_is_no_longer_true() {
    let home = Home::with(NAMED).await;
    let _lamp = home.device("lamp", "light", Nature::Fickle).await;
    let (client, other) = (home.client().await, home.client().await);
    let done = call(&client, "switch_device", json!({"device": "lamp", "to": "on"})).await;
    assert_eq!(words(&done, &["result", "correction"]), ["confirmed", "-"]);
    // Another caller finds it fallen: it was told nothing that would have to be corrected.
    let state = call(&other, "get_device_state", json!({"device": "lamp"})).await;
    assert_eq!(
        (&state.structured["device_state"], state.structured.get("correction")),
        (&json!({"relay": "off"}), None)
    );
    let pong = call(&client, "ping", json!({})).await;
    let owed = &pong.structured["correction"][0];
    assert_eq!((&owed["operation"], &owed["result"]), (&done.structured["operation"], &json!("failed")), "{pong:?}");
    let say = pong.structured["say"].as_str().expect("a text");
    assert!(say.starts_with("Correction: the living room lamp was confirmed, but went back by itself later."), "{say}");
    assert!(say.ends_with("The hub answers.") && pong.text.starts_with(say), "{}", pong.text);
    let line = pong.text.lines().nth(1).expect("the line of facts");
    let line: Json = serde_json::from_str(line).expect("it is still JSON");
    assert_eq!(line["correction"][0]["operation"], done.structured["operation"]);
    let again = call(&client, "ping", json!({})).await;
    assert_eq!(again.structured.get("correction"), None, "it is said once");
    home.hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn s5_5_a_device_that_is_gone_is_refused_and_nothing_is_sent() {
    let home = Home::with("[timing]\nwait_online_ms = 0\n").await;
    let lamp = home.device("lamp", "light", Nature::Honest).await;
    lamp.stop();
    home.wait_for("lamp", Presence::Offline).await;
    let client = home.client().await;
    let answer = call(&client, "switch_device", json!({"device": "lamp", "to": "on"})).await;
    assert_eq!(words(&answer, &["result", "outcome", "stage"]), ["failed", "offline", "admission"], "{}", answer.text);
    assert_eq!(lamp.moves(), 0);
    home.hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn s5_5_a_device_that_comes_back_while_its_call_waits_is_switched() {
    let home = Home::with("[timing]\nwait_online_ms = 20000\n").await;
    let password = home.add("lamp").await;
    let client = home.client().await;
    let tools = client.tools().await.expect("tools");
    assert!(tools.contains(&"switch_device".to_owned()), "a device that has not greeted yet might be switchable");
    let calling =
        tokio::spawn(async move { call(&client, "switch_device", json!({"device": "lamp", "to": "on"})).await });
    let lamp = Device::start(home.hub.mqtt_addr(), "lamp", &password, "light", Nature::Honest);
    let answer = calling.await.expect("the call ends");
    assert_eq!(words(&answer, &["result", "outcome"]), ["confirmed", "converged"], "{}", answer.text);
    assert_eq!(lamp.moves(), 1);
    home.hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn s5_5_a_device_that_never_greeted_is_refused_and_not_misnamed() {
    let home = Home::with("[timing]\nwait_online_ms = 0\n").await;
    home.add("lamp").await;
    let client = home.client().await;
    let answer = call(&client, "switch_device", json!({"device": "lamp", "to": "on"})).await;
    assert_eq!(words(&answer, &["result", "outcome", "next"]), ["failed", "hub_just_started", "retry_once"]);
    home.hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn mistakes_are_questions_and_move_nothing() {
    let home = Home::with("").await;
    let lock = home.device("lock", "lock", Nature::Honest).await;
    let client = home.client().await;
    for (arguments, outcome, parameter) in [
        (json!({}), "missing_argument", "device"),
        (json!({"device": "lock"}), "missing_argument", "to"),
        (json!({"device": "lock", "to": "on"}), "invalid_value", "to"),
        (json!({"device": "lock", "to": true}), "invalid_value", "to"),
        (json!({"device": 5, "to": "locked"}), "invalid_value", "device"),
        (json!({"device": "lock", "to": "locked", "force": 1}), "unknown_argument", "force"),
    ] {
        let answer = call(&client, "switch_device", arguments).await;
        assert_eq!(
            words(&answer, &["result", "next", "outcome", "parameter"]),
            ["ask_user", "answer_question", outcome, parameter],
            "{}",
            answer.text
        );
        assert!(!answer.is_error && answer.structured["allowed"].is_string());
    }
    let near = call(&client, "switch_device", json!({"device": "lokc", "to": "locked"})).await;
    assert_eq!(
        (near.structured["outcome"].as_str(), &near.structured["near"]),
        (Some("unknown_device"), &json!(["lock"]))
    );
    assert_eq!(lock.moves(), 0);
    home.hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_tool_is_an_error_of_the_protocol_that_names_the_tools() {
    let home = Home::with("").await;
    let client = home.client().await;
    let error = client.call("open_the_pod_bay_doors", json!({})).await.expect_err("there is no such tool");
    assert!(matches!(error, ClientError::Call(_)) && error.to_string().contains("find_devices"), "{error}");
    let error = client.call("set_device_level", json!({})).await.expect_err("nothing has a level");
    assert!(error.to_string().contains("on and off take switch_device"), "{error}");
    let pong = call(&client, "ping", json!({})).await;
    assert!(pong.structured["pong"].as_str().expect("a text").starts_with("truetwin "));
    home.hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn s4_7_a_caller_that_stops_waiting_is_told_to_the_device() {
    let home = Home::with("").await;
    let mut frozen = home.device("frozen", "light", Nature::Frozen).await;
    let client = home.client().await;
    let calling = client.call("switch_device", json!({"device": "frozen", "to": "on"}));
    tokio::select! {
        answer = calling => panic!("a frozen device was answered for: {answer:?}"),
        () = frozen.told("set") => {}
    }
    // The call was dropped here; the hub withdraws what the device has not begun.
    frozen.told("withdraw").await;
    home.hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn find_devices_lists_rooms_and_states() {
    let home = Home::with(NAMED).await;
    let _lamp = home.device("lamp", "light", Nature::Honest).await;
    home.add("ghost").await;
    let client = home.client().await;
    let all = call(&client, "find_devices", json!({})).await;
    let rows = all.structured["devices"].as_array().expect("rows");
    assert_eq!(rows.len(), 2, "{}", all.text);
    assert_eq!((&rows[0]["device"], &rows[0]["online"]), (&json!("ghost"), &json!(false)));
    let lamp = json!({"device": "living room lamp", "room": "living room", "online": true, "role": "light", "state": {"relay": "off"}});
    for (field, value) in lamp.as_object().expect("an object") {
        assert_eq!(&rows[1][field], value, "{field}");
    }
    let one = call(&client, "find_devices", json!({"room": "客厅"})).await;
    assert_eq!(one.structured["devices"].as_array().map(Vec::len), Some(1));
    home.hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn at_the_limit_a_new_session_is_refused_and_the_old_ones_go_on() {
    let home = Home::with("[http]\nsessions_max = 1\n").await;
    let first = home.client().await;
    assert!(Client::connect(&home.url()).await.is_err());
    let _pong = call(&first, "ping", json!({})).await;
    first.close().await;
    let again = async {
        while Client::connect(&home.url()).await.is_err() {
            tokio::task::yield_now().await;
        }
    };
    timeout(PATIENCE, again).await.expect("a closed session makes room");
    home.hub.stop().await;
}

/// One POST to `/mcp` by hand; gives the status line and the body.
async fn post(http: SocketAddr, headers: &str, body: &Json) -> (String, String) {
    let body = body.to_string();
    let request = format!(
        "POST /mcp HTTP/1.1\r\nConnection: close\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\nContent-Length: {}\r\n{headers}\r\n{body}",
        body.len()
    );
    let mut socket = TcpStream::connect(http).await.expect("the hub listens");
    socket.write_all(request.as_bytes()).await.expect("the hub reads");
    let mut answer = Vec::new();
    timeout(PATIENCE, socket.read_to_end(&mut answer)).await.expect("an answer comes").expect("the hub writes");
    let answer = String::from_utf8_lossy(&answer).into_owned();
    let status = answer.split(' ').nth(1).unwrap_or_default().to_owned();
    (status, answer)
}

/// A call in the protocol of 2026-07-28: no session, everything in the request.
fn stateless_call(tool: &str, arguments: Json) -> Json {
    json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
        "name": tool, "arguments": arguments,
        "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "by hand", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {},
        },
    }})
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_without_sessions_is_served_by_the_same_address() {
    let home = Home::with("[http]\nsessions_max = 1\n").await;
    let lamp = home.device("lamp", "light", Nature::Honest).await;
    let _takes_the_only_session = home.client().await;
    let headers =
        "Host: 127.0.0.1\r\nMCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: switch_device\r\n";
    let body = stateless_call("switch_device", json!({"device": "lamp", "to": "on"}));
    let (status, answer) = post(home.hub.http_addr(), headers, &body).await;
    assert!(status == "200" && answer.contains(r#""outcome":"converged""#), "{answer}");
    assert_eq!(lamp.moves(), 1);
    home.hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_of_other_origins_and_hosts_may_not_call() {
    let home = Home::with("").await;
    let body = stateless_call("ping", json!({}));
    let protocol = "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: ping\r\n";
    for (headers, expected) in [
        ("Host: 127.0.0.1\r\n", "200"),
        ("Host: localhost:8300\r\nOrigin: http://localhost:5173\r\n", "200"),
        ("Host: 127.0.0.1\r\nOrigin: https://example.org\r\n", "403"),
        ("Host: example.org\r\n", "403"),
    ] {
        let (status, answer) = post(home.hub.http_addr(), &format!("{headers}{protocol}"), &body).await;
        assert_eq!(status, expected, "{headers} {answer}");
    }
    home.hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn s4_8_a_hub_that_stops_answers_who_waits() {
    let home = Home::with("").await;
    let mut frozen = home.device("frozen", "light", Nature::Frozen).await;
    let client = home.client().await;
    let calling =
        tokio::spawn(async move { call(&client, "switch_device", json!({"device": "frozen", "to": "on"})).await });
    frozen.told("set").await;
    home.hub.stop().await;
    let answer = calling.await.expect("the call ends");
    assert_eq!(answer.structured["result"], "unconfirmed", "{}", answer.text);
}

const LIVING_ROOM: &str = r#"
[devices.lamp]
name = "lamp"
name_zh = "吊灯"
room = "living room"
room_zh = "客厅"
[devices.strip]
name = "strip"
name_zh = "灯带"
room = "living room"
room_zh = "客厅"
[[scene]]
name = "evening"
name_zh = "晚上"
members = [
    { device = "lamp", property = "relay", value = true },
    { device = "strip", property = "relay", value = true, required = false },
]
"#;

#[tokio::test(flavor = "multi_thread")]
async fn s7_1_all_lights_of_a_room_are_done_only_if_each_is() {
    let home = Home::with(&format!("[timing]\nack_ms = 300\n{LIVING_ROOM}")).await;
    let lamp = home.device("lamp", "light", Nature::Honest).await;
    let strip = home.device("strip", "light", Nature::Honest).await;
    let client = home.client().await;
    let on = call(&client, "switch_device", json!({"device": "living room lights", "to": "on"})).await;
    assert_eq!(words(&on, &["result", "outcome"]), ["confirmed", "converged"], "{}", on.text);
    assert_eq!((&on.structured["success"], &on.structured["confirmed"]), (&json!(true), &json!(2)));
    assert_eq!(on.structured["confirmed_devices"], json!(["lamp", "strip"]));
    assert_eq!((lamp.moves(), strip.moves()), (1, 1));
    strip.stop();
    home.wait_for("strip", Presence::Offline).await;
    let frozen = Device::start(home.hub.mqtt_addr(), "strip", &strip.password, "light", Nature::Frozen);
    home.wait_for("strip", Presence::Online).await;
    let off = call(&client, "switch_device", json!({"device": "客厅所有的灯", "to": "off"})).await;
    assert_eq!(words(&off, &["result", "next", "outcome"]), ["partly", "none", "partial"], "{}", off.text);
    assert_eq!(off.structured["say"], "Only part of the living room lights: one of two confirmed; strip: no answer.");
    let row = &off.structured["not_confirmed"][0];
    assert_eq!(
        (&row["device"], &row["result"], &row["outcome"]),
        (&json!("strip"), &json!("unconfirmed"), &json!("timed_out"))
    );
    let later = call(&client, "check_operation", json!({"operation": row["operation"]})).await;
    assert_eq!(words(&later, &["device", "outcome"]), ["strip", "timed_out"], "each is an operation of its own");
    let latest = call(&client, "check_operation", json!({})).await;
    assert_eq!(
        words(&latest, &["device", "result", "say"]),
        words(&off, &["device", "result", "say"]),
        "and one whole"
    );
    assert_eq!((lamp.moves(), frozen.moves()), (2, 0));
    home.hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn s7_1_a_scene_counts_as_done_with_those_that_it_requires() {
    let home = Home::with(&format!("[timing]\nack_ms = 300\n{LIVING_ROOM}")).await;
    let lamp = home.device("lamp", "light", Nature::Honest).await;
    let _strip = home.device("strip", "light", Nature::Frozen).await;
    let client = home.client().await;
    assert!(client.tools().await.expect("tools").contains(&"activate_scene".to_owned()));
    let done = call(&client, "activate_scene", json!({"scene": "Evening"})).await;
    assert_eq!(words(&done, &["result", "device"]), ["confirmed", "evening"], "{}", done.text);
    assert_eq!(done.structured["success"], true);
    assert_eq!(done.structured["say"], "The scene evening: all that is needed is confirmed; strip: no answer.");
    assert_eq!(lamp.moves(), 1);
    let unknown = call(&client, "activate_scene", json!({"scene": "party"})).await;
    assert_eq!(words(&unknown, &["result", "outcome", "allowed"]), ["ask_user", "invalid_value", "evening"]);
    home.hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_requests_at_once_under_one_id_are_not_mixed_up() {
    let home = Home::with("[timing]\nack_ms = 300\n").await;
    let mut frozen = home.device("frozen", "light", Nature::Frozen).await;
    let http = home.hub.http_addr();
    let begin = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "by hand", "version": "1"}}});
    let (_, opened) = post(http, "Host: 127.0.0.1\r\n", &begin).await;
    let session = opened.lines().find_map(|line| line.strip_prefix("mcp-session-id: ")).expect("a session").to_owned();
    let headers = format!("Host: 127.0.0.1\r\nMcp-Session-Id: {session}\r\n");
    post(http, &headers, &json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
    let call = |tool: &str, arguments: Json| json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": tool, "arguments": arguments}});
    let (first, with) = (call("switch_device", json!({"device": "frozen", "to": "on"})), headers.clone());
    let first = tokio::spawn(async move { post(http, &with, &first).await });
    frozen.told("set").await;
    let (status, second) = post(http, &headers, &call("ping", json!({}))).await;
    assert!(status == "200" && second.contains(r#""code":-32600"#) && second.contains("the id 7"), "{second}");
    let (_, answer) = first.await.expect("the first call ends");
    assert!(answer.contains("timed_out") && !answer.contains("pong"), "{answer}");
    // Answered, the id is free again.
    let (_, third) = post(http, &headers, &call("ping", json!({}))).await;
    assert!(third.contains("pong"), "{third}");
    home.hub.stop().await;
}

/// Hears that the tools have changed.
#[derive(Clone, Default)]
struct Listener(Arc<tokio::sync::Notify>);

impl rmcp::ClientHandler for Listener {
    async fn on_tool_list_changed(&self, _: rmcp::service::NotificationContext<rmcp::RoleClient>) {
        self.0.notify_one();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_is_told_when_its_tools_have_changed() {
    use rmcp::{ServiceExt, transport::StreamableHttpClientTransport};
    let home = Home::with("").await;
    let listener = Listener::default();
    let client = listener.clone().serve(StreamableHttpClientTransport::from_uri(home.url())).await.expect("a session");
    let before = client.list_all_tools().await.expect("tools");
    assert!(!before.iter().any(|tool| tool.name == "switch_device"));
    let _lamp = home.device("lamp", "light", Nature::Honest).await;
    timeout(PATIENCE, listener.0.notified()).await.expect("the client is told");
    let after = client.list_all_tools().await.expect("tools");
    assert!(after.iter().any(|tool| tool.name == "switch_device"));
    client.cancel().await.expect("the session ends");
    home.hub.stop().await;
}
