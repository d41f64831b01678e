//! The fleet with real actors, the real broker, and a device that is a few lines of a real MQTT client.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod breath;
mod receipts;
mod stalled;
mod together;

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use rumqttc::{AsyncClient, Event, MqttOptions, Packet, QoS};
use serde_json::{Value as Json, json};
use tokio::{net::TcpListener, sync::mpsc};

use super::{Caller, Fleet, Limits};
use crate::{
    authz::{Permitted, Rights},
    broker::{self, Access, Answer, Broker, FromDevice},
    config::Config,
    device::{Context, DeviceMsg},
    dialect::native::Identity,
    ingress::Ingress,
    journal::Journal,
    metrics::Metrics,
    names::{Label, Name, Thing},
    property::{DeviceId, Evidence, Value},
    recorder::{Plan, Recorder},
    recording::replay::{Replay, Told},
    twin::{
        input::Input,
        settings::Settings,
        wish::Wish,
        words::{Outcome, Presence, Reason, Refusal, Reply},
    },
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crashed_actor_is_restarted_withdraws_what_was_in_flight_and_its_caller_hears_interrupted() {
    let hub = Hub::start(Limits::default()).await;
    let mut lamp = hub.board("lamp").await;
    let mut fan = hub.board("fan").await;
    let lamp_call = hub.call("lamp");
    let fan_call = hub.call("fan");
    let op = lamp.next("set").await["op"].clone();
    let fan_op = fan.next("set").await;
    assert!(hub.fleet.tell(&id("lamp"), DeviceMsg::Crash).is_ok());
    let Reply::Settled(settled) = lamp_call.await.unwrap() else { panic!("it had begun") };
    assert_eq!(settled.outcome, Outcome::Interrupted);
    assert_eq!(settled.reason, Some(Reason::ActorRestarted));
    // The successor's first act (s5_8).
    assert_eq!(lamp.next("withdraw").await["op"], op);
    let state = lamp.next("get_device_state").await;
    lamp.answer_state(&state, false).await;
    // The session goes on: the next call is carried out without a new greeting.
    let again = hub.call("lamp");
    let set = lamp.next("set").await;
    lamp.complete(&set).await;
    let Reply::Settled(settled) = again.await.unwrap() else { panic!("it had begun") };
    assert_eq!(settled.outcome, Outcome::Converged);
    // The sibling noticed nothing.
    fan.complete(&fan_op).await;
    let Reply::Settled(settled) = fan_call.await.unwrap() else { panic!("it had begun") };
    assert_eq!(settled.outcome, Outcome::Converged);
    // And the record says what became of the interrupted one.
    let check = hub.fleet.check(None, Some(&lamp_thing()), &caller(), &Rights::everything()).await;
    assert!(check.is_some());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_crashed_actor_left_and_its_successor_did_with_it_is_replayed_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("r.jsonl");
    let plan = Plan { file: file.clone(), bytes_max: 1_048_576, left_out: std::collections::BTreeMap::default() };
    let recorder = Recorder::start(plan).unwrap();
    let hub = Hub::start_recording(Limits::default(), Config::default(), Some(recorder.clone())).await;
    let mut lamp = hub.board("lamp").await;
    let call = hub.call("lamp");
    lamp.next("set").await;
    assert!(hub.fleet.tell(&id("lamp"), DeviceMsg::Crash).is_ok());
    assert!(matches!(call.await.unwrap(), Reply::Settled(settled) if settled.outcome == Outcome::Interrupted));
    lamp.next("withdraw").await;
    hub.fleet.shut_down().await;
    recorder.close();
    let mut replay = Replay::new("r", std::io::BufReader::new(std::fs::File::open(&file).unwrap()), None);
    let told: Vec<Told> = replay.by_ref().map(|told| told.unwrap()).collect();
    assert!(replay.summary().is_whole(), "{told:?}");
    assert_eq!(told.iter().filter(|told| matches!(told, Told::Begins { .. })).count(), 2, "{told:?}");
    let inputs = told.iter().filter_map(|told| if let Told::Step(step) = told { Some(&step.input) } else { None });
    let restored = |input: &Input| matches!(input, Input::Restored(memory) if memory.in_flight.len() == 1);
    assert_eq!(inputs.filter(|input| restored(input)).count(), 1, "{told:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_actor_that_cannot_stop_crashing_is_quarantined_and_calls_are_refused_at_once() {
    let hub = Hub::start(Limits { restarts_max: 2, restarts_within: Duration::from_secs(600) }).await;
    let _lamp = hub.board("lamp").await;
    let mut fan = hub.board("fan").await;
    hub.quarantine("lamp", 3).await;
    assert_eq!(hub.call("lamp").await.unwrap(), Reply::Refused(Refusal::Quarantined));
    assert_eq!(hub.fleet.quarantined(), 1);
    let call = hub.call("fan");
    let set = fan.next("set").await;
    fan.complete(&set).await;
    assert!(matches!(call.await.unwrap(), Reply::Settled(settled) if settled.outcome == Outcome::Converged));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stopping_fleet_answers_every_waiting_caller_and_withdraws() {
    let hub = Hub::start(Limits::default()).await;
    let mut boards = Vec::new();
    for name in ["a", "b", "c"] {
        boards.push(hub.board(name).await);
    }
    let calls: Vec<_> = ["a", "b", "c"].map(|name| hub.call(name)).into_iter().collect();
    for board in &mut boards {
        board.next("set").await;
    }
    hub.fleet.shut_down().await;
    for call in calls {
        let Reply::Settled(settled) = call.await.unwrap() else { panic!("it had begun") };
        assert_eq!((settled.outcome, settled.reason), (Outcome::Interrupted, Some(Reason::HubStopping)));
    }
    for board in &mut boards {
        board.next("withdraw").await;
    }
    assert_eq!(hub.call("a").await.unwrap(), Reply::Refused(Refusal::ShuttingDown));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s4_7_a_caller_that_vanishes_has_its_wish_withdrawn() {
    let hub = Hub::start(Limits::default()).await;
    let mut lamp = hub.board("lamp").await;
    let call = hub.call("lamp");
    let op = lamp.next("set").await["op"].clone();
    call.abort();
    assert_eq!(lamp.next("withdraw").await["op"], op);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_removed_device_answers_who_waits_and_is_unknown_afterwards() {
    let hub = Hub::start(Limits::default()).await;
    let mut lamp = hub.board("lamp").await;
    let call = hub.call("lamp");
    lamp.next("set").await;
    hub.fleet.remove(&id("lamp")).await.unwrap();
    let Reply::Settled(settled) = call.await.unwrap() else { panic!("it had begun") };
    assert_eq!(settled.outcome, Outcome::Removed);
    assert!(matches!(hub.call("lamp").await.unwrap(), Reply::Refused(Refusal::UnknownDevice { .. })));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_cannot_be_read_is_answered_with_a_sentence_and_counted() {
    let hub = Hub::start(Limits::default()).await;
    let mut lamp = hub.board("lamp").await;
    lamp.send(&json!({"event": "device_state", "session": lamp.session, "boot": "b1", "seq": 7, "up_ms": 1, "status": {"relay": "on"}})).await;
    let told = lamp.next("error").await;
    assert_eq!(
        (&told["of_seq"], &told["reason"], &told["path"]),
        (&json!(7), &json!("wrong_type"), &json!("status.relay"))
    );
    lamp.raw(b"{\"event\":").await;
    let told = lamp.next("error").await;
    assert_eq!(told["reason"], json!("not_json"));
    let text = hub.metrics.render();
    assert!(text.contains("truetwin_unreadable_events_total{reason=\"not_json\"} 1"), "{text}");
    assert!(text.contains("truetwin_unreadable_events_total{reason=\"wrong_type\"} 1"), "{text}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s3_10_two_devices_that_verify_each_other_at_once_do_not_wait_for_each_other() {
    let verify = |of: &str, with: &str| {
        format!(
            "[devices.{of}.properties.relay]\nverify_with = \"{with}.relay\"\nverify_expect = \"one_of true false\"\n"
        )
    };
    let config = Config::parse("f", &(verify("lamp", "fan") + &verify("fan", "lamp"))).unwrap();
    let hub = Hub::start_with(Limits::default(), config).await;
    let mut lamp = hub.board("lamp").await;
    let mut fan = hub.board("fan").await;
    let calls = [hub.call("lamp"), hub.call("fan")];
    // The baseline of each is asked of the other, before anything is sent.
    for board in [&mut lamp, &mut fan] {
        let asked = board.next("get_device_state").await;
        board.answer_state(&asked, false).await;
    }
    for board in [&mut lamp, &mut fan] {
        let set = board.next("set").await;
        board.complete(&set).await;
    }
    for board in [&mut lamp, &mut fan] {
        let asked = board.next("get_device_state").await;
        board.answer_state(&asked, true).await;
    }
    for call in calls {
        let Reply::Settled(settled) = call.await.unwrap() else { panic!("it had begun") };
        assert_eq!((settled.outcome, settled.confirmed_by), (Outcome::Converged, Evidence::Sensor));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s3_10_one_meter_serves_several_devices_and_one_that_is_away_is_a_refusal() {
    let verify = |of: &str| {
        format!("[devices.{of}.properties.relay]\nverify_with = \"meter.relay\"\nverify_expect = \"equals true\"\n")
    };
    let config = Config::parse("f", &(verify("lamp") + &verify("fan"))).unwrap();
    let hub = Hub::start_with(Limits::default(), config).await;
    let mut lamp = hub.board("lamp").await;
    let mut fan = hub.board("fan").await;
    let Reply::Refused(refusal) = hub.call("lamp").await.unwrap() else { panic!("there is no meter") };
    assert_eq!(refusal, Refusal::VerifierOffline { device: Some(id("meter")) });
    let mut meter = hub.board("meter").await;
    tokio::spawn(async move {
        loop {
            let asked = meter.next("get_device_state").await;
            meter.answer_state(&asked, true).await;
        }
    });
    let calls = [hub.call("lamp"), hub.call("fan")];
    for board in [&mut lamp, &mut fan] {
        let set = board.next("set").await;
        board.complete(&set).await;
    }
    for call in calls {
        let Reply::Settled(settled) = call.await.unwrap() else { panic!("it had begun") };
        assert_eq!((settled.outcome, settled.confirmed_by), (Outcome::Converged, Evidence::Sensor));
    }
}

// ── helpers ──

struct Hub {
    fleet: Fleet,
    broker: Broker,
    metrics: Metrics,
}

struct Everybody;

impl Access for Everybody {
    fn admits(&self, _: &str, password: &[u8]) -> Answer {
        (password == b"secret").into()
    }
}

impl Hub {
    async fn start(limits: Limits) -> Self {
        Self::start_with(limits, Config::default()).await
    }

    async fn start_with(limits: Limits, config: Config) -> Self {
        Self::start_on(limits, config, |context| context).await
    }

    async fn start_recording(limits: Limits, config: Config, recorder: Option<Arc<Recorder>>) -> Self {
        Self::start_on(limits, config, |context| context.with_recorder(recorder)).await
    }

    async fn start_on(limits: Limits, config: Config, with: impl FnOnce(Context) -> Context) -> Self {
        let (hub, heard, ingress) = Self::before_ingress(limits, config, with).await;
        tokio::spawn(ingress.run(heard));
        hub
    }

    /// Everything, with what is heard and who is to hear it still apart.
    async fn before_ingress(
        limits: Limits,
        config: Config,
        with: impl FnOnce(Context) -> Context,
    ) -> (Self, mpsc::Receiver<FromDevice>, Ingress) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (broker, heard) = broker::start(listener, Arc::new(Everybody), broker::Settings::default()).await.unwrap();
        let (started, metrics) = (Instant::now(), Metrics::new());
        let heartbeat = Duration::from_secs(10);
        let identity = Identity { hub: "hub".into(), epoch: 1, heartbeat, started };
        let context = Context::new(broker.clone(), metrics.clone(), identity, Settings::new(started));
        let fleet = Fleet::start(Arc::new(with(context)), limits).await.unwrap();
        let ingress = Ingress::new(fleet.clone(), broker.clone(), metrics.clone(), Arc::new(config), Arc::default());
        (Self { fleet, broker, metrics }, heard, ingress)
    }

    /// A board that has greeted.
    async fn board(&self, name: &str) -> Board {
        self.fleet.add(Name::new(id(name), Label::same(name), None)).await.unwrap();
        let mut board = Board::connect(name, self.broker.local_addr().port()).await;
        board.greet().await;
        while self.fleet.card(&id(name)).unwrap().presence != Presence::Online {
            tokio::task::yield_now().await;
        }
        board
    }

    /// Crashes a device's actor, the last time for good.
    async fn quarantine(&self, name: &str, crashes: usize) {
        for _ in 0..crashes {
            let actor = self.fleet.running(&id(name), soon()).await.expect("not yet quarantined");
            actor.cast(DeviceMsg::Crash).unwrap();
            self.fleet.left_behind(&id(name)).await;
        }
        let mut place = self.fleet.inner.devices.get(&id(name)).unwrap().place.subscribe();
        place.wait_for(|place| matches!(place, super::Place::Quarantined)).await.unwrap();
    }

    /// A caller wants something of the lamp.
    fn wish(&self, caller: &Caller, wish: Wish) -> tokio::task::JoinHandle<Reply> {
        let (fleet, caller) = (self.fleet.clone(), caller.clone());
        tokio::spawn(async move { fleet.set(&caller, permitted(&id("lamp"), wish), soon()).await })
    }

    /// Waits until so many callers wait for operations of a device.
    async fn waiting(&self, name: &str, callers: usize) {
        while self.fleet.inner.devices.get(&id(name)).unwrap().shared.callers_waiting() != callers {
            tokio::task::yield_now().await;
        }
    }

    fn call(&self, name: &str) -> tokio::task::JoinHandle<Reply> {
        let (fleet, device) = (self.fleet.clone(), id(name));
        tokio::spawn(async move {
            fleet.set(&caller(), permitted(&device, Wish::to("relay", Value::Bool(true))), soon()).await
        })
    }
}

struct Board {
    client: AsyncClient,
    commands: mpsc::UnboundedReceiver<Json>,
    topic: String,
    session: String,
    seq: u32,
}

impl Board {
    async fn connect(name: &str, port: u16) -> Self {
        let mut options = MqttOptions::new(name, "127.0.0.1", port);
        options.set_credentials(name, "secret");
        let (client, mut events) = AsyncClient::new(options, 16);
        let (tell, commands) = mpsc::unbounded_channel();
        client.subscribe(format!("truetwin/{name}/command"), QoS::AtMostOnce).await.unwrap();
        tokio::spawn(async move {
            while let Ok(event) = events.poll().await {
                if let Event::Incoming(Packet::Publish(publish)) = event
                    && tell.send(serde_json::from_slice(&publish.payload).unwrap()).is_err()
                {
                    return;
                }
            }
        });
        Self { client, commands, topic: format!("truetwin/{name}/event"), session: String::new(), seq: 0 }
    }

    async fn greet(&mut self) {
        let relay = json!({"name": "relay", "role": "socket", "kind": "bool", "feedback": "pin", "stable_ms": 0});
        self.event(json!({"event": "hello", "proto": 1, "level": 2, "fw": "1", "model": "test", "desc": "d1",
            "properties": [relay], "actions": [], "state": {"relay": false}, "evidence": {"relay": "pin"}, "cause": "boot"}))
            .await;
        self.session = self.next("welcome").await["session"].as_str().unwrap().to_owned();
    }

    /// The next command with this word; others are passed over.
    async fn next(&mut self, word: &str) -> Json {
        loop {
            let command = self.commands.recv().await.expect("the connection stays open");
            if command["command"] == word {
                return command;
            }
        }
    }

    async fn received(&mut self, set: &Json) {
        let report = json!({"event": "device_action_report", "op": set["op"], "action": "set", "property": "relay",
            "result": "received"});
        self.event(report).await;
    }

    async fn complete(&mut self, set: &Json) {
        let report = json!({"event": "device_action_report", "op": set["op"], "action": "set", "property": "relay",
            "result": "completed", "status": {"relay": set["value"]}, "evidence": {"relay": "pin"}});
        self.event(report).await;
    }

    /// What has not begun was taken back.
    async fn withdrawn(&mut self, set: &Json) {
        let report = json!({"event": "device_action_report", "op": set["op"], "action": "set", "property": "relay",
            "result": "failed", "reason": "withdrawn"});
        self.event(report).await;
    }

    async fn answer_state(&mut self, asked: &Json, relay: bool) {
        let state = json!({"event": "device_state", "op": asked["op"], "status": {"relay": relay},
            "evidence": {"relay": "pin"}, "cause": "query", "seen": {}});
        self.event(state).await;
    }

    async fn event(&mut self, mut event: Json) {
        self.seq += 1;
        let head = json!({"session": self.session, "boot": "b1", "seq": self.seq, "up_ms": self.seq});
        event.as_object_mut().unwrap().extend(head.as_object().unwrap().clone());
        if event["event"] == "hello" {
            event.as_object_mut().unwrap().remove("session");
        }
        self.send(&event).await;
    }

    async fn send(&self, event: &Json) {
        self.raw(event.to_string().as_bytes()).await;
    }

    async fn raw(&self, bytes: &[u8]) {
        self.client.publish(&self.topic, QoS::AtLeastOnce, false, bytes).await.unwrap();
    }
}

fn settled(reply: Reply) -> crate::twin::words::Settled {
    match reply {
        Reply::Settled(settled) => *settled,
        Reply::Refused(refusal) => panic!("it had begun: {refusal:?}"),
    }
}

fn permitted(device: &DeviceId, wish: Wish) -> Permitted<Wish> {
    Rights::everything().set(device, wish).unwrap()
}

fn lamp_thing() -> Thing {
    Thing::device(&id("lamp"))
}

fn id(name: &str) -> DeviceId {
    DeviceId::new(name).unwrap()
}

fn caller() -> Caller {
    Caller("test".into())
}

fn soon() -> Instant {
    Instant::now() + Duration::from_secs(30)
}
