//! A real hub, real devices, real sockets.

use std::{collections::BTreeMap, sync::Arc};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::pki_types::PrivateKeyDer;
use serde_json::json;
use tokio::net::TcpListener;
use tokio_tungstenite::tungstenite::Message;
use truetwin::{
    authz::{Access, Policy, Principal, Scope, Selection, Style},
    config::Config,
    data::{DataFolder, Secret, StoredEndpoint},
    endpoint::{EndWord, Endpoints, Network, Outside, Settings, State, Tuning, Uncounted},
    mcp::{Server, Transport, Unobserved},
    names::Lang,
    serve::Hub,
    sim::{Fault, Kind},
    twin::words::Presence,
};

use super::{
    bench::{Bench, settings, takes, until},
    house::{HANG, House, Member, break_it},
    official::{Official, Pace, Seen, Told},
    relay::{Relay, TOKEN},
    voice::{Heard, VoiceBox},
    wire::Door,
};

const HOME: &str = r#"
language = "zh"
[devices.lamp]
name = "客厅灯"
room = "客厅"
[devices.fan]
name = "书房风扇"
room = "书房"
[devices.heater]
name = "浴室暖风"
room = "浴室"
"#;

/// Twenty times as fast as the real ones.
const FAST: u32 = 20;

fn pace() -> Pace {
    let Pace { handshake, ping, call } = Pace::OLD;
    Pace { handshake, ping: ping / (10 * FAST), call }
}

/// Policies by endpoint.
struct Policies(BTreeMap<&'static str, Arc<Policy>>);

impl Access for Policies {
    fn policy(&self, principal: &Principal) -> Option<Arc<Policy>> {
        let Principal::Endpoint(name) = principal else { return None };
        self.0.get(&**name).cloned()
    }

    fn revision(&self) -> u64 {
        0
    }
}

fn policy(names: &[&str]) -> Arc<Policy> {
    let scope = match names {
        [] => Scope::everything(),
        names => {
            let of = Selection::Of(names.iter().map(|name| (*name).to_owned()).collect());
            Scope { read: of.clone(), write: of }
        }
    };
    Arc::new(Policy { scope, lang: Lang::Zh, answer_by_ms: 8_000, style: Style::Text, ..Policy::default() })
}

/// Endpoints on a real hub.
fn endpoints(house: &House, policies: &[(&'static str, Arc<Policy>)]) -> Endpoints {
    let parts = house.hub().parts();
    let access = Arc::new(Policies(policies.iter().cloned().collect()));
    let server = Server::new(
        parts.fleet.clone(),
        access,
        parts.config.scenes(),
        Transport::Http,
        Arc::new(Unobserved),
        Arc::default(),
    );
    let tuning = Tuning::default().scaled(FAST);
    let outside = Outside { reach: Arc::new(Network), tuning, ..Outside::default() };
    Endpoints::new(Arc::new(server), Arc::new(Uncounted), outside)
}

/// An access point on a socket, and what an endpoint is told of it.
async fn access_point(name: &str) -> (Official, Settings) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let url = format!("ws://{}/mcp/?token={name}", listener.local_addr().unwrap());
    (Official::start(Door::Socket(listener), pace()), settings(name, &url))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_voice_box_switches_a_real_device_and_hears_what_happened() {
    let house = House::build(HOME, &[Member::new("lamp", Kind::Lamp), Member::new("fan", Kind::Socket)]).await;
    let endpoints = endpoints(&house, &[("home", policy(&[]))]);
    let (official, settings) = access_point("home").await;
    endpoints.add(settings).unwrap();
    official.handshaken(1).await;

    let told = official.call("switch_device", json!({"device": "客厅灯", "to": "on"})).await;
    assert!(told.text().contains(r#""success":true"#), "{told:?}");
    assert_eq!(house.truth("lamp"), (1, true));

    break_it(&house, "fan", Fault::Stuck);
    let told = official.call("switch_device", json!({"device": "书房风扇", "to": "on"})).await;
    assert!(told.text().contains(r#""success":false"#), "{told:?}");
    assert!(!house.truth("fan").1);
    let Told::Answer(answer) = told else { panic!() };
    assert_eq!(answer["result"]["isError"], false, "style text");

    assert!(endpoints.stop().await);
    let closed = || official.seen().last() == Some(&Seen::Closed(Some(1000)));
    within(until("it was closed", closed)).await;
    house.take_down().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn twenty_calls_at_once_are_each_answered_with_what_they_asked_for() {
    let house = House::build(HOME, &[Member::new("lamp", Kind::Lamp), Member::new("fan", Kind::Socket)]).await;
    let endpoints = endpoints(&house, &[("home", policy(&[]))]);
    let (official, settings) = access_point("home").await;
    endpoints.add(settings).unwrap();
    official.handshaken(1).await;
    let call = |n: usize| {
        let official = official.clone();
        async move {
            let (tool, arguments, part) = match n % 4 {
                0 => ("get_device_state", json!({"device": "客厅灯"}), "客厅灯"),
                1 => ("get_device_state", json!({"device": "书房风扇"}), "书房风扇"),
                2 => ("find_devices", json!({"room": "书房"}), "书房风扇"),
                _ => ("switch_device", json!({"device": "书房风扇", "to": "on"}), "书房风扇"),
            };
            let told = official.call(tool, arguments).await;
            assert!(told.text().contains(part), "{n}: {told:?}");
        }
    };
    within(futures_util::future::join_all((0..20).map(call))).await;
    assert!(house.truth("fan").1);
    assert!(endpoints.stop().await);
    house.take_down().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn three_endpoints_see_and_move_their_own_things_alone() {
    let members =
        [Member::new("lamp", Kind::Lamp), Member::new("fan", Kind::Socket), Member::new("heater", Kind::Socket)];
    let house = House::build(HOME, &members).await;
    let policies = [("living", policy(&["客厅"])), ("study", policy(&["书房"])), ("bath", policy(&["浴室"]))];
    let endpoints = endpoints(&house, &policies);
    let (living, first) = access_point("living").await;
    let (study, second) = access_point("study").await;
    let (bath, third) = access_point("bath").await;
    for settings in [first, second, third] {
        endpoints.add(settings).unwrap();
    }
    let all = [(&living, "客厅灯"), (&study, "书房风扇"), (&bath, "浴室暖风")];
    for (point, _) in all {
        within(point.handshaken(1)).await;
    }
    for (point, own) in all {
        for (_, thing) in all {
            let told = point.call("get_device_state", json!({"device": thing})).await;
            let is_known = !told.text().contains("unknown_device");
            assert_eq!(is_known, own == thing, "{own} asked for {thing}: {told:?}");
            if own != thing {
                let told = point.call("switch_device", json!({"device": thing, "to": "on"})).await;
                assert!(told.text().contains(r#""success":false"#), "{told:?}");
            }
        }
        let listed = point.call("find_devices", json!({})).await;
        let others = all.iter().filter(|(_, thing)| *thing != own && listed.text().contains(thing)).count();
        assert!(listed.text().contains(own) && others == 0, "{listed:?}");
    }
    assert_eq!([house.truth("lamp").0, house.truth("fan").0, house.truth("heater").0], [0, 0, 0]);
    // All at once, each its own.
    let switch =
        |point: Official, thing| async move { point.call("switch_device", json!({"device": thing, "to": "on"})).await };
    let told = futures_util::future::join_all(all.map(|(point, thing)| switch(point.clone(), thing))).await;
    for told in &told {
        assert!(told.text().contains(r#""success":true"#), "{told:?}");
    }
    assert_eq!([house.truth("lamp").1, house.truth("fan").1, house.truth("heater").1], [true; 3]);
    assert!(endpoints.stop().await);
    house.take_down().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_handshake_is_answered_with_every_device_offline_and_the_bus_down() {
    let house = House::build(HOME, &[Member::new("lamp", Kind::Lamp), Member::new("fan", Kind::Socket)]).await;
    for device in ["lamp", "fan"] {
        break_it(&house, device, Fault::Offline);
        house.presence(device, Presence::Offline).await;
    }
    house.hub().parts().broker.stop().await;
    let endpoints = endpoints(&house, &[("home", policy(&[]))]);
    let (official, settings) = access_point("home").await;
    endpoints.add(settings).unwrap();
    within(official.handshaken(1)).await;
    let has_switch = |seen: &Seen| matches!(seen, Seen::Tools(tools) if tools.contains(&"switch_device".to_owned()));
    assert!(official.seen().iter().any(has_switch), "{:?}", official.seen());
    let told = official.call("switch_device", json!({"device": "客厅灯", "to": "on"})).await;
    assert!(told.text().contains(r#""success":false"#), "{told:?}");
    assert!(endpoints.stop().await);
    house.take_down().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn four_boxes_behind_a_relay_switch_real_devices_and_the_line_outlives_everything() {
    let house = House::build(HOME, &[Member::new("lamp", Kind::Lamp), Member::new("fan", Kind::Socket)]).await;
    let endpoints = endpoints(&house, &[("home", policy(&[]))]);
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let authority = listener.local_addr().unwrap().to_string();
    let relay = Relay::start(Door::Socket(listener), FAST);
    endpoints.add(settings("home", &format!("ws://{authority}/mcp_endpoint/mcp/?token={TOKEN}"))).unwrap();
    within(relay.registered(1)).await;
    for round in 1..=3 {
        let boxes = ["客厅灯", "书房风扇", "客厅灯", "书房风扇"].map(|thing| {
            let authority = authority.clone();
            async move {
                let mut voice = VoiceBox::dial(&Network, &authority).await;
                assert!(voice.handshake().await.contains(&"switch_device".to_owned()));
                let to = if round % 2 == 0 { "off" } else { "on" };
                let Heard::Model(text) = voice.say("switch_device", json!({"device": thing, "to": to})).await else {
                    panic!();
                };
                assert!(text.contains(r#""success":true"#) && text.contains(thing), "{text}");
            }
        });
        within(futures_util::future::join_all(boxes)).await;
        assert_eq!(endpoints.probe("home").await.unwrap().as_str(), "routed");
        match round {
            1 => relay.raw(Message::Close(None)).await,
            2 => {
                // A dead registration, seen only by the probe, mended by its owner.
                relay.forget().await;
                assert_eq!(endpoints.probe("home").await.unwrap().as_str(), "not_registered");
                endpoints.restart("home").unwrap();
            }
            _ => {}
        }
        within(relay.registered((round + 1).min(3))).await;
    }
    assert!(endpoints.stop().await);
    house.take_down().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn wss_is_spoken_with_an_authority_that_is_trusted_and_refused_with_another() {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    let key = KeyPair::generate().unwrap();
    let certificate =
        CertificateParams::new(vec!["localhost".to_owned()]).unwrap().signed_by(&key, &authority).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let tls = rustls::ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
    let tls = tls.with_no_client_auth().with_single_cert(vec![certificate.der().clone()], key).unwrap();
    let listener = TcpListener::bind(("localhost", 0)).await.unwrap();
    let url = format!("wss://localhost:{}/mcp/?token=secret", listener.local_addr().unwrap().port());
    let official = Official::start(Door::Tls(listener, Arc::new(tls).into()), pace());

    let outside = |more_roots| Outside { more_roots, tuning: Tuning::default().scaled(FAST), ..Outside::default() };
    let stranger = Bench::with(outside(Vec::new()), 8_000);
    stranger.endpoints.add(settings("home", &url)).unwrap();
    within(until("it was refused", || stranger.counts.ends().contains(&EndWord::Tls))).await;
    assert_eq!(stranger.status("home").advice(), Some(EndWord::Tls.told()));
    assert!(stranger.endpoints.stop().await);

    let bench = Bench::with(outside(vec![authority.der().clone()]), 8_000);
    bench.endpoints.add(settings("home", &url)).unwrap();
    assert!(within(official.call("switch_device", takes(1, "加密"))).await.text().contains("加密"));
    assert_eq!(bench.status("home").state, State::Up);
    assert!(bench.endpoints.stop().await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hub_dials_what_its_owner_added_follows_changes_and_closes_when_it_stops() {
    let folder = tempfile::tempdir().unwrap();
    let data = DataFolder::open(folder.path()).unwrap();
    let (first, settings) = access_point("first").await;
    let (second, others) = access_point("second").await;
    let stored = |name: &str, settings: &Settings| StoredEndpoint {
        name: name.into(),
        url: Secret::new(settings.address.reveal().to_owned()),
        added: "2026-11-30T12:00:00+00:00".to_owned(),
    };
    data.endpoints().add(stored("first", &settings)).unwrap();
    let free = || TcpListener::bind(("127.0.0.1", 0));
    let outside = Outside { tuning: Tuning::default().scaled(FAST), ..Outside::default() };
    let config = Config::parse("test", "").unwrap();
    let hub = Hub::start_towards(outside, config, data, free().await.unwrap(), free().await.unwrap()).await.unwrap();
    within(first.handshaken(1)).await;
    let marker = folder.path().join("endpoints.open");
    assert!(marker.exists());

    let store = hub.data().endpoints();
    store.add(stored("second", &others)).unwrap();
    within(second.handshaken(1)).await;
    assert!(hub.parts().metrics.render().contains("truetwin_endpoints{state=\"up\"} 2"));
    store.remove("first").unwrap();
    within(until("the first was closed", || first.seen().last() == Some(&Seen::Closed(Some(1000))))).await;
    hub.stop().await;
    within(until("the second was closed", || second.seen().last() == Some(&Seen::Closed(Some(1000))))).await;
    assert!(!marker.exists());
    assert_eq!((first.handshakes(), second.handshakes()), (1, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_of_the_configuration_has_its_scope_its_language_and_its_place_in_the_audit() {
    let (official, settings) = access_point("study").await;
    let config = format!(
        "{}[[endpoint]]\nname = \"study\"\nurl = \"{}\"\ndevices = [\"书房\"]\nlanguage = \"zh\"\n",
        HOME.replace("language = \"zh\"", "language = \"en\""),
        settings.address.reveal(),
    );
    let house = House::build(&config, &[Member::new("lamp", Kind::Lamp), Member::new("fan", Kind::Socket)]).await;
    within(official.handshaken(1)).await;
    let told = official.call("switch_device", json!({"device": "书房风扇", "to": "on"})).await;
    assert!(told.text().contains("书房风扇") && told.text().contains(r#""success":true"#), "{told:?}");
    let told = official.call("switch_device", json!({"device": "客厅灯", "to": "on"})).await;
    assert!(told.text().contains("unknown_device"), "{told:?}");
    assert_eq!((house.truth("fan").1, house.truth("lamp").0), (true, 0));
    let audit = house.hub().parts().audit.recent();
    assert_eq!(audit.iter().filter(|record| record.caller == "endpoint:study").count(), 2);
    house.take_down().await;
    within(until("it was closed", || official.seen().last() == Some(&Seen::Closed(Some(1000))))).await;
}

/// Only a hang meets the limit.
async fn within<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(HANG, what).await.expect("it hangs")
}
