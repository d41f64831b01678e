//! What a device hears of its reports when nobody can take them in.

use rumqttc::v5::{
    self,
    mqttbytes::{QoS, v5::Packet, v5::PubAckReason},
};

use super::*;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_quarantined_devices_reports_are_refused_with_the_code_that_says_so() {
    let hub = Hub::start(Limits { restarts_max: 0, ..Limits::default() }).await;
    let mut lamp = hub.board("lamp").await;
    let mut fan = hub.board("fan").await;
    hub.quarantine("lamp", 1).await;
    // 3.1.1 has no code for it: closed.
    lamp.event(json!({"event": "heartbeat"})).await;
    assert_eq!(lamp.commands.recv().await, None, "the connection is closed");
    // 5 has one, and the connection goes on.
    let mut options = v5::MqttOptions::new("lamp", "127.0.0.1", hub.broker.local_addr().port());
    options.set_credentials("lamp", "secret");
    let (client, mut events) = v5::AsyncClient::new(options, 16);
    let heartbeat = r#"{"event":"heartbeat","session":"s","boot":"b2","seq":1,"up_ms":1}"#;
    for _ in 0..2 {
        client.publish("truetwin/lamp/event", QoS::AtLeastOnce, false, heartbeat).await.unwrap();
        let reason = loop {
            match events.poll().await.expect("the connection stays open") {
                v5::Event::Incoming(Packet::PubAck(puback)) => break puback.reason,
                v5::Event::Incoming(_) | v5::Event::Outgoing(_) => {}
            }
        };
        assert_eq!(reason, PubAckReason::ImplementationSpecificError);
    }
    assert_eq!(hub.broker.counters().reports_refused, 3);
    // Another device notices nothing.
    let call = hub.call("fan");
    let set = fan.next("set").await;
    fan.complete(&set).await;
    assert_eq!(settled(call.await.unwrap()).outcome, Outcome::Converged);
}
