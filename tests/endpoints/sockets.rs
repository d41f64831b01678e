//! A real hub, real devices, real sockets.

use std::{collections::BTreeMap, sync::Arc};

use serde_json::json;
use tokio::net::TcpListener;
use truetwin::{
    authz::{Access, Policy, Principal, Scope, Selection, Style},
    endpoint::{Endpoints, Network, Outside, Settings, Tuning, Uncounted},
    mcp::{Server, Transport, Unobserved},
    names::Lang,
    sim::{Fault, Kind},
};

use super::{
    bench::{settings, until},
    house::{HANG, House, Member, break_it},
    official::{Official, Pace, Seen, Told},
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
    tokio::time::timeout(HANG, until("it was closed", closed)).await.unwrap();
    house.take_down().await;
}
