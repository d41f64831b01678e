//! What devices say in one breath: it is handed on together, and is as if each word had come alone.

use rumqttc::v5::{self, mqttbytes::v5::Packet as Packet5, mqttbytes::v5::PubAckReason};

use super::*;

/// A hub whose ingress hears what comes at once, until it is told to hold some back and to let it through together.
struct Held {
    hub: Hub,
    gather: mpsc::Sender<usize>,
}

impl Held {
    async fn start(limits: Limits, recorder: Option<Arc<Recorder>>) -> Self {
        let with = |context: Context| context.with_recorder(recorder);
        let (hub, mut heard, ingress) = Hub::before_ingress(limits, Config::default(), with).await;
        let (pass, passed) = mpsc::channel(64);
        tokio::spawn(ingress.run(passed));
        let (gather, mut wanted) = mpsc::channel::<usize>(1);
        tokio::spawn(async move {
            let (mut held, mut until) = (Vec::new(), 1);
            loop {
                tokio::select! {
                    biased;
                    Some(messages) = wanted.recv() => until = messages,
                    Some(message) = heard.recv() => held.push(message),
                    else => return,
                }
                if held.len() == until {
                    // Without a pause in between: on one thread the ingress finds them all.
                    held.drain(..).for_each(|message| pass.try_send(message).unwrap());
                    until = 1;
                }
            }
        });
        Self { hub, gather }
    }

    /// The next so many messages come to the ingress together.
    async fn gather(&self, messages: usize) {
        self.gather.send(messages).await.unwrap();
        while self.gather.capacity() == 0 {
            tokio::task::yield_now().await;
        }
    }
}

#[tokio::test]
async fn what_is_said_in_one_breath_is_taken_in_at_once_in_its_order_and_all_of_it_is_acknowledged() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("r.jsonl");
    let plan = Plan { file: file.clone(), bytes_max: 1_048_576, left_out: std::collections::BTreeMap::default() };
    let recorder = Recorder::start(plan).unwrap();
    let held = Held::start(Limits::default(), Some(recorder.clone())).await;
    let (mut lamp, mut fan) = (held.hub.board("lamp").await, held.hub.board("fan").await);
    let call = held.hub.call("lamp");
    let set = lamp.next("set").await;
    let acknowledged = held.hub.broker.counters().reports_taken;

    held.gather(6).await;
    lamp.received(&set).await;
    lamp.complete(&set).await;
    lamp.raw(b"no report").await;
    lamp.event(json!({"event": "heartbeat"})).await;
    while held.hub.broker.counters().reports_in < acknowledged + 4 {
        tokio::task::yield_now().await;
    }
    fan.event(json!({"event": "heartbeat"})).await;
    fan.event(json!({"event": "heartbeat"})).await;
    assert_eq!(settled(call.await.unwrap()).outcome, Outcome::Converged);
    while held.hub.broker.counters().reports_taken < acknowledged + 6 {
        tokio::task::yield_now().await;
    }
    assert_eq!(held.hub.broker.counters().reports_refused, 0);
    held.hub.fleet.shut_down().await;
    recorder.close();

    let mut replay = Replay::new("r", std::io::BufReader::new(std::fs::File::open(&file).unwrap()), None);
    let steps = replay.by_ref().filter_map(|told| if let Told::Step(step) = told.unwrap() { Some(step) } else { None });
    let mut said = Vec::new();
    for step in steps {
        if let Input::Heard(report) = &step.input {
            said.push((step.device.to_string(), Some(report.seq), step.at_ns));
        }
        if let Input::Unreadable = step.input {
            said.push((step.device.to_string(), None, step.at_ns));
        }
    }
    assert!(replay.summary().is_whole(), "{said:?}");
    // The first was its hello.
    let order: Vec<_> = said.iter().map(|(device, seq, _)| (device.as_str(), *seq)).collect();
    let of = |name: &str| order.iter().filter(|(device, _)| *device == name).map(|(_, seq)| *seq).collect::<Vec<_>>();
    assert_eq!(of("lamp"), [Some(2), Some(3), None, Some(4)], "{said:?}");
    assert_eq!(of("fan"), [Some(2), Some(3)], "{said:?}");
    // One message to its actor, one time at which it was taken in.
    let at = |name: &str, seq: u32| said.iter().find(|said| said.0 == name && said.1 == Some(seq)).unwrap().2;
    assert_eq!(at("lamp", 2), at("lamp", 3), "{said:?}");
    assert_eq!(at("fan", 2), at("fan", 3), "{said:?}");
    assert!(at("lamp", 3) < at("lamp", 4), "what cannot be read came in between: {said:?}");
}

#[tokio::test]
async fn a_quarantined_device_hears_of_each_report_of_a_breath_that_nobody_takes_it() {
    let held = Held::start(Limits { restarts_max: 0, ..Limits::default() }, None).await;
    let _lamp = held.hub.board("lamp").await;
    held.hub.quarantine("lamp", 1).await;
    let mut options = v5::MqttOptions::new("lamp", "127.0.0.1", held.hub.broker.local_addr().port());
    options.set_credentials("lamp", "secret");
    let (client, mut events) = v5::AsyncClient::new(options, 16);
    while !matches!(events.poll().await.unwrap(), v5::Event::Incoming(Packet5::ConnAck(_))) {}
    held.gather(3).await;
    for seq in 1..=3 {
        let heartbeat = json!({"event": "heartbeat", "session": "s", "boot": "b2", "seq": seq, "up_ms": 1}).to_string();
        client.publish("truetwin/lamp/event", v5::mqttbytes::QoS::AtLeastOnce, false, heartbeat).await.unwrap();
    }
    let mut reasons = Vec::new();
    while reasons.len() < 3 {
        if let v5::Event::Incoming(Packet5::PubAck(puback)) = events.poll().await.expect("the connection stays open") {
            reasons.push(puback.reason);
        }
    }
    assert_eq!(reasons, [PubAckReason::ImplementationSpecificError; 3]);
    assert_eq!(held.hub.broker.counters().reports_refused, 3);
}
