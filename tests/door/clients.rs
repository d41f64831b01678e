//! A client that nobody here wrote: rumqttc, in both versions.

use rumqttc::{AsyncClient, Event, MqttOptions, Packet, QoS};
use truetwin::broker::{MqttVersion, Settings};

use crate::support::*;

fn options(broker: &truetwin::broker::Broker, name: &str) -> MqttOptions {
    let mut options = MqttOptions::new("a client id", "127.0.0.1", broker.local_addr().port());
    options.set_credentials(name, format!("pw-{name}"));
    options.set_last_will(rumqttc::LastWill::new(format!("truetwin/{name}/status"), "gone", QoS::AtLeastOnce, false));
    options
}

#[tokio::test]
async fn rumqttc_speaks_3_1_1_with_the_door() {
    let (broker, hub, _) = start(Settings::default()).await;
    let hub = echo(broker.clone(), hub);
    let (client, mut events) = AsyncClient::new(options(&broker, "lamp"), 10);
    client.subscribe("truetwin/lamp/command", QoS::AtLeastOnce).await.unwrap();
    let (mut acknowledged, mut echoed) = (0, 0);
    while acknowledged < 50 || echoed < 50 {
        match tokio::time::timeout(PATIENCE, events.poll()).await.unwrap().unwrap() {
            Event::Incoming(Packet::SubAck(_)) => {
                let client = client.clone();
                tokio::spawn(async move {
                    for number in 0..50 {
                        let payload = number.to_string();
                        client.publish("truetwin/lamp/event", QoS::AtLeastOnce, false, payload).await.unwrap();
                    }
                });
            }
            Event::Incoming(Packet::PubAck(_)) => acknowledged += 1,
            Event::Incoming(Packet::Publish(publish)) => {
                assert_eq!((publish.topic.as_str(), publish.qos), ("truetwin/lamp/command", QoS::AtMostOnce));
                assert_eq!(text(&publish.payload), echoed.to_string());
                echoed += 1;
            }
            _ => {}
        }
    }
    client.disconnect().await.unwrap();
    while events.poll().await.is_ok() {}
    broker.stop().await;
    hub.await.unwrap();
}

#[tokio::test]
async fn rumqttc_speaks_5_with_the_door() {
    use rumqttc::v5::{self, mqttbytes::QoS, mqttbytes::v5::Packet};
    let (broker, hub, _) = start(Settings::default()).await;
    let hub = echo(broker.clone(), hub);
    let mut options = v5::MqttOptions::new("", "127.0.0.1", broker.local_addr().port());
    options.set_credentials("lamp", "pw-lamp");
    let (client, mut events) = v5::AsyncClient::new(options, 10);
    client.subscribe("truetwin/lamp/command", QoS::AtLeastOnce).await.unwrap();
    let (mut acknowledged, mut echoed, mut told) = (0, 0, false);
    while acknowledged < 50 || echoed < 50 {
        match tokio::time::timeout(PATIENCE, events.poll()).await.unwrap().unwrap() {
            v5::Event::Incoming(Packet::ConnAck(connack)) => {
                let said = connack.properties.unwrap();
                assert_eq!((said.receive_max, said.max_qos, said.retain_available), (Some(10), Some(1), Some(0)));
                assert_eq!(said.max_packet_size, Some(4096));
                assert_eq!(said.assigned_client_identifier.as_deref(), Some("lamp-auto"));
                told = true;
            }
            v5::Event::Incoming(Packet::SubAck(_)) => {
                let client = client.clone();
                tokio::spawn(async move {
                    for number in 0..50 {
                        let payload = number.to_string();
                        client.publish("truetwin/lamp/event", QoS::AtLeastOnce, false, payload).await.unwrap();
                    }
                });
            }
            v5::Event::Incoming(Packet::PubAck(_)) => acknowledged += 1,
            v5::Event::Incoming(Packet::Publish(publish)) => {
                assert_eq!(text(&publish.payload), echoed.to_string());
                echoed += 1;
            }
            _ => {}
        }
    }
    assert!(told);
    broker.kick("lamp");
    loop {
        match tokio::time::timeout(PATIENCE, events.poll()).await.unwrap() {
            Ok(_) => {}
            Err(error) => {
                assert!(error.to_string().contains("AdministrativeAction"), "{error}");
                break;
            }
        }
    }
    broker.stop().await;
    hub.await.unwrap();
}

#[tokio::test]
async fn rumqttc_is_told_of_a_wrong_password() {
    let (broker, _hub, _) = start(Settings::default()).await;
    let mut options = options(&broker, "lamp");
    options.set_credentials("lamp", "guess");
    let (_client, mut events) = AsyncClient::new(options, 10);
    let error = tokio::time::timeout(PATIENCE, events.poll()).await.unwrap().unwrap_err();
    assert!(
        matches!(error, rumqttc::ConnectionError::ConnectionRefused(rumqttc::ConnectReturnCode::BadUserNamePassword)),
        "{error}"
    );
    broker.stop().await;
}

#[tokio::test]
async fn rumqttc_that_vanishes_leaves_its_will() {
    let (broker, mut hub, _) = start(Settings::default()).await;
    let (client, mut events) = AsyncClient::new(options(&broker, "lamp"), 10);
    events.poll().await.unwrap();
    assert_eq!(hear_line(&mut hub).await, format!("lamp connected {}", MqttVersion::V3_1_1.as_str()));
    drop((client, events));
    expect(&mut hub, &["lamp will gone", "lamp disconnected lost"]).await;
    broker.stop().await;
}
