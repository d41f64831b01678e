//! Devices as resources, over real HTTP, in both lifecycles of the protocol: lists in pages, what is read, who is told of
//! changes, and that what is not there tells nothing.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod assistant;
mod house;

use assistant::{Assistant, Life, Told, next};
use house::{House, Member, id, until};
use rmcp::model::{
    ArgumentInfo, CompleteRequestParams, ErrorCode, ErrorData, PaginatedRequestParams, Reference, SubscriptionFilter,
};
use rmcp::service::{ServiceError, SubscriptionEnd};
use serde_json::json;
use std::time::Instant;
use truetwin::{
    control,
    sim::{Fault, Kind},
};

const LIVES: [Life; 2] = [Life::Session, Life::Stateless];
const LAMP: &str = "twin://devices/lamp";
const KETTLE: &str = "twin://devices/kettle";
const TWO: [Member; 2] = [Member::new("lamp", Kind::Socket), Member::new("kettle", Kind::Socket)];
const NAMES: &str = r#"
language = "zh"
[devices.lamp]
name = "lamp"
name_zh = "台灯"
room = "study"
room_zh = "书房"
"#;

async fn assistant(house: &House, life: Life) -> Assistant {
    Assistant::connect(house.hub().http_addr(), life).await
}

fn updated(uri: &str) -> Told {
    Told::Updated(uri.to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_device_is_listed_by_its_name_in_the_language_of_the_caller_and_read_as_its_twin() {
    let house = House::build(NAMES, &TWO).await;
    for life in LIVES {
        let assistant = assistant(&house, life).await;
        let (listed, pages) = assistant.resources().await;
        let listed: Vec<_> = listed.iter().map(|(uri, title)| (uri.as_str(), title.as_str())).collect();
        assert_eq!((listed, pages), (vec![(KETTLE, "kettle"), (LAMP, "台灯")], 1));
        let templates = assistant.peer().list_resource_templates(None).await.unwrap().resource_templates;
        assert_eq!(templates.iter().map(|t| t.uri_template.as_str()).collect::<Vec<_>>(), ["twin://devices/{id}"]);
        let answer = assistant.call("switch_device", json!({"device": "台灯", "to": "on"})).await;
        assert_eq!(answer["success"], true, "{answer}");
        let twin = assistant.read(LAMP).await.unwrap();
        assert_eq!((&twin["id"], &twin["device"], &twin["room"]), (&json!("lamp"), &json!("台灯"), &json!("书房")));
        assert_eq!((&twin["online"], &twin["presence"]), (&json!(true), &json!("online")));
        let relay = &twin["properties"]["relay"];
        assert_eq!((&relay["value"], &relay["settable"]), (&json!("on"), &json!(true)), "{twin}");
        assert!(relay["age_s"].is_u64() && relay["confirmed_by"] == "pin" && relay["trust"] != "now", "{twin}");
        let last = &twin["last_operation"];
        assert_eq!(
            (&last["operation"], &last["success"], &last["property"]),
            (&answer["operation"], &json!(true), &json!("relay"))
        );
        assert!(last.get("say").is_none(), "facts, no sentence: {twin}");
        assert_eq!(assistant.call("switch_device", json!({"device": "台灯", "to": "off"})).await["success"], true);
        assistant.close().await;
    }
    house.take_down().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_never_heard_of_is_said_to_be_unknown() {
    let house = House::build("", &[]).await;
    house.hub().parts().add_device(&id("lamp")).await.unwrap();
    let assistant = assistant(&house, Life::Session).await;
    let twin = assistant.read(LAMP).await.unwrap();
    assert_eq!(
        (&twin["online"], &twin["presence"], &twin["properties"]),
        (&json!(false), &json!("offline"), &json!({}))
    );
    assert!(twin.get("last_operation").is_none() && twin.get("last_heard_s").is_none(), "{twin}");
    assistant.close().await;
    house.take_down().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_there_is_not_found_whatever_it_is_called() {
    let house = House::build("", &TWO).await;
    for (life, code) in [(Life::Session, ErrorCode::RESOURCE_NOT_FOUND), (Life::Stateless, ErrorCode::INVALID_PARAMS)] {
        let assistant = assistant(&house, life).await;
        let long = format!("twin://devices/{}", "x".repeat(10_000));
        for uri in [
            "twin://devices/lam",
            "twin://devices/",
            "twin://devices/lamp/",
            "twin://devices/lamp.nothing",
            "file:///etc/passwd",
            "",
            "twin://devices/LAMP",
            "twin://devices/{id}",
            &long,
        ] {
            let error = assistant.read(uri).await.unwrap_err();
            assert_eq!((error.code, &*error.message), (code, "resource not found"), "{uri:.40}");
            assert!(error.data.unwrap().to_string().len() < 600);
        }
        assistant.close().await;
    }
    house.take_down().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_is_told_of_what_it_subscribed_to_until_it_unsubscribes() {
    let house = House::build("", &TWO).await;
    let (ear, mouth) = (assistant(&house, Life::Session).await, assistant(&house, Life::Session).await);
    let subscribe = |uri| ear.subscribe(uri);
    subscribe(LAMP).await.unwrap();
    subscribe(LAMP).await.unwrap();
    let switch = async |device: &str, to: &str| {
        let answer = mouth.call("switch_device", json!({"device": device, "to": to})).await;
        assert_eq!(answer["success"], true, "{answer}");
    };
    switch("kettle", "on").await;
    switch("lamp", "on").await;
    ear.hears(&updated(LAMP), 1).await;
    // The last change is told as well: what is read after the last news is what is.
    let read = async || {
        let twin = ear.read(LAMP).await.unwrap();
        (twin["properties"]["relay"]["value"] == "on" && twin["last_operation"]["success"] == true).then_some(())
    };
    until("the twin says on", read).await;
    assert!(!ear.so_far().contains(&updated(KETTLE)), "nobody subscribed to the kettle");
    ear.unsubscribe(LAMP).await;
    subscribe(KETTLE).await.unwrap();
    let before = ear.so_far().iter().filter(|told| **told == updated(LAMP)).count();
    switch("lamp", "off").await;
    switch("kettle", "off").await;
    ear.hears(&updated(KETTLE), 1).await;
    assert_eq!(ear.so_far().iter().filter(|told| **told == updated(LAMP)).count(), before);
    ear.close().await;
    mouth.close().await;
    house.take_down().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_is_told_of_what_it_listens_to_and_ends_in_good_order_when_the_hub_stops() {
    let mut house = House::build("", &TWO).await;
    let ear = assistant(&house, Life::Stateless).await;
    let wanted = SubscriptionFilter::builder()
        .tools_list_changed()
        .resources_list_changed()
        .prompts_list_changed()
        .resource_subscriptions([LAMP, "twin://devices/nobody", "file:///etc/passwd"]);
    let mut stream = ear.listen(wanted.build()).await;
    let acknowledged = stream.acknowledged();
    assert_eq!((acknowledged.tools_list_changed, acknowledged.resources_list_changed), (Some(true), Some(true)));
    assert_eq!(acknowledged.prompts_list_changed, None, "there are no prompts");
    // Whether there is somebody of that id is not told to whoever may not see it.
    assert_eq!(acknowledged.resource_subscriptions.clone().unwrap(), [LAMP, "twin://devices/nobody"]);
    let answer = ear.call("switch_device", json!({"device": "lamp", "to": "on"})).await;
    assert_eq!(answer["success"], true, "{answer}");
    assert_eq!(next(&mut stream).await, Some(updated(LAMP)));
    house.add(Member::new("radio", Kind::Socket)).await;
    let mut told = Vec::new();
    while !(told.contains(&Told::Tools) && told.contains(&Told::Resources)) {
        told.push(next(&mut stream).await.unwrap());
    }
    house.take_down().await;
    while next(&mut stream).await.is_some() {}
    assert!(matches!(stream.end(), Some(SubscriptionEnd::Graceful(_))), "{:?}", stream.end());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_is_told_of_devices_that_come_and_go_and_nothing_of_one_that_went() {
    let mut house = House::build("", &TWO).await;
    let ear = assistant(&house, Life::Session).await;
    ear.subscribe(LAMP).await.unwrap();
    house.add(Member::new("radio", Kind::Socket)).await;
    ear.hears(&Told::Resources, 1).await;
    ear.hears(&Told::Tools, 1).await;
    until("radio is listed", async || {
        ear.resources().await.0.iter().any(|(uri, _)| uri == "twin://devices/radio").then_some(())
    })
    .await;
    let before = ear.so_far().iter().filter(|told| **told == Told::Resources).count();
    house.remove("lamp").await;
    ear.hears(&Told::Resources, before + 1).await;
    assert_eq!(ear.read(LAMP).await.unwrap_err().message, "resource not found");
    assert!(!ear.resources().await.0.iter().any(|(uri, _)| uri == LAMP));
    let gone = ear.subscribe(LAMP).await;
    assert!(matches!(gone, Err(error) if error.code == ErrorCode::RESOURCE_NOT_FOUND));
    ear.close().await;
    house.take_down().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_has_so_many_subscriptions_and_no_more() {
    let house = House::build("", &[]).await;
    let max = truetwin::mcp::SUBSCRIPTIONS_MAX;
    for n in 0..=max {
        house.hub().parts().add_device(&id(&format!("d{n:03}"))).await.unwrap();
    }
    let ear = assistant(&house, Life::Session).await;
    let uri = |n: usize| format!("twin://devices/d{n:03}");
    for n in 0..max {
        ear.subscribe(&uri(n)).await.unwrap();
    }
    let one_more = ear.subscribe(&uri(max)).await;
    assert!(matches!(one_more, Err(error) if error.message.contains("at most")));
    ear.unsubscribe(&uri(0)).await;
    ear.subscribe(&uri(max)).await.unwrap();
    let stateless = assistant(&house, Life::Stateless).await;
    let all = SubscriptionFilter::builder().resource_subscriptions((0..=max).map(uri)).build();
    let stream = stateless.listen(all).await;
    assert_eq!(stream.acknowledged().resource_subscriptions.as_ref().unwrap().len(), max);
    ear.close().await;
    house.take_down().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_come_in_pages_and_a_cursor_that_was_never_given_is_an_error() {
    let house = House::build("", &[]).await;
    for n in 0..120 {
        house.hub().parts().add_device(&id(&format!("d{n:03}"))).await.unwrap();
    }
    for life in LIVES {
        let assistant = assistant(&house, life).await;
        let (listed, pages) = assistant.resources().await;
        let uris: Vec<_> = listed.into_iter().map(|(uri, _)| uri).collect();
        assert_eq!((uris, pages), ((0..120).map(|n| format!("twin://devices/d{n:03}")).collect(), 3));
        let bad = || Some(PaginatedRequestParams::default().with_cursor(Some("no cursor of yours".into())));
        let peer = assistant.peer();
        let errors = [
            peer.list_resources(bad()).await.map(|_| ()),
            peer.list_tools(bad()).await.map(|_| ()),
            peer.list_resource_templates(bad()).await.map(|_| ()),
        ];
        for error in errors {
            assert!(
                matches!(&error, Err(ServiceError::McpError(e)) if e.code == ErrorCode::INVALID_PARAMS && e.message.contains("cursor")),
                "{error:?}"
            );
        }
        assert_eq!(peer.list_tools(None).await.unwrap().next_cursor, None, "tools are one page");
        assistant.close().await;
    }
    house.take_down().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_id_of_the_template_is_completed_and_nothing_else() {
    let house = House::build("", &TWO).await;
    for life in LIVES {
        let assistant = assistant(&house, life).await;
        let complete = async |uri: &str, argument: &str, begun: &str| {
            let params = CompleteRequestParams::new(Reference::for_resource(uri), ArgumentInfo::new(argument, begun));
            assistant.peer().complete(params).await.map(|done| done.completion)
        };
        let completed = complete("twin://devices/{id}", "id", "la").await.unwrap();
        assert_eq!(
            (completed.values, completed.total, completed.has_more),
            (vec!["lamp".to_owned()], Some(1), Some(false))
        );
        assert!(complete("twin://devices/{id}", "id", "x").await.unwrap().values.is_empty());
        assert!(complete("twin://rooms/{id}", "id", "la").await.is_err());
        assert!(complete("twin://devices/{id}", "name", "la").await.is_err());
        assistant.close().await;
    }
    house.take_down().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_parts_resource_is_told_of_its_own_changes_only() {
    let house = House::build("", &[Member::new("board", Kind::Relays)]).await;
    let ear = assistant(&house, Life::Session).await;
    let (listed, _) = ear.resources().await;
    let uris: Vec<&str> = listed.iter().map(|(uri, _)| uri.as_str()).collect();
    assert_eq!(
        uris,
        [
            "twin://devices/board.relay_1",
            "twin://devices/board.relay_2",
            "twin://devices/board.relay_3",
            "twin://devices/board.relay_4"
        ]
    );
    let twin = ear.read("twin://devices/board.relay_2").await.unwrap();
    assert_eq!(twin["properties"].as_object().unwrap().keys().collect::<Vec<_>>(), ["relay_2"]);
    let (one, two) = ("twin://devices/board.relay_1", "twin://devices/board.relay_2");
    ear.subscribe(one).await.unwrap();
    ear.subscribe(two).await.unwrap();
    let switch = async |part: &str| {
        let answer = ear.call("switch_device", json!({"device": part, "to": "on"})).await;
        assert_eq!(answer["success"], true, "{answer}");
    };
    switch("board relay 1").await;
    ear.hears(&updated(one), 1).await;
    switch("board relay 2").await;
    ear.hears(&updated(two), 1).await;
    let told = ear.so_far();
    assert!(told.iter().position(|t| *t == updated(one)) < told.iter().position(|t| *t == updated(two)));
    assert!(ear.read(one).await.unwrap()["last_operation"].is_null(), "the latest was of another part");
    ear.close().await;
    house.take_down().await;
}

/// A token that may only read and move these.
async fn token(house: &House, name: &str, devices: &[&str]) -> String {
    let devices = Some(devices.iter().map(|device| (*device).to_owned()).collect());
    let request = control::Request::TokenAdd { name: name.to_owned(), devices, read: None, language: None };
    let control::Response::Token { token, .. } = ask(house, request).await else { panic!("no token was made") };
    token.reveal().to_owned()
}

async fn ask(house: &House, request: control::Request) -> control::Response {
    let folder = house.hub().data().path().to_owned();
    tokio::task::spawn_blocking(move || control::ask(&folder, &request)).await.unwrap().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_caller_may_not_read_is_answered_as_if_it_were_not_there() {
    let house = House::build("", &TWO).await;
    let token = token(&house, "tv", &["kettle"]).await;
    let owner = assistant(&house, Life::Session).await;
    for (times, life) in (1..).zip(LIVES) {
        let guest = Assistant::connect_as(house.hub().http_addr(), life, Some(&token)).await;
        let (listed, _) = guest.resources().await;
        assert_eq!(listed.iter().map(|(uri, _)| uri.as_str()).collect::<Vec<_>>(), [KETTLE]);
        let (unseen, unknown) =
            (guest.read(LAMP).await.unwrap_err(), guest.read("twin://devices/lump").await.unwrap_err());
        assert_eq!((unseen.code, &unseen.message), (unknown.code, &unknown.message));
        let told = |error: ErrorData| error.data.unwrap().to_string().replace("lamp", "l?mp").replace("lump", "l?mp");
        assert_eq!(told(unseen), told(unknown));
        let completions =
            CompleteRequestParams::new(Reference::for_resource("twin://devices/{id}"), ArgumentInfo::new("id", ""));
        assert_eq!(guest.peer().complete(completions).await.unwrap().completion.values, ["kettle"]);
        let stream = match life {
            Life::Session => {
                let (unseen, unknown) = (
                    guest.subscribe(LAMP).await.unwrap_err(),
                    guest.subscribe("twin://devices/lump").await.unwrap_err(),
                );
                assert_eq!((unseen.code, unseen.message), (unknown.code, unknown.message));
                guest.subscribe(KETTLE).await.unwrap();
                None
            }
            Life::Stateless => {
                let both = SubscriptionFilter::builder().resource_subscriptions([LAMP, KETTLE]).build();
                Some(guest.listen(both).await)
            }
        };
        // The lamp's change comes first; had it been told, it would have been told before the kettle's.
        let to = if times % 2 == 1 { "on" } else { "off" };
        for device in ["lamp", "kettle"] {
            let answer = owner.call("switch_device", json!({"device": device, "to": to})).await;
            assert_eq!(answer["success"], true, "{answer}");
        }
        match stream {
            None => guest.hears(&updated(KETTLE), 1).await,
            Some(mut stream) => assert_eq!(next(&mut stream).await, Some(updated(KETTLE))),
        }
        assert!(!guest.so_far().contains(&updated(LAMP)), "{:?}", guest.so_far());
        guest.close().await;
    }
    owner.close().await;
    house.take_down().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_sensitive_is_shown_as_being_there_and_no_more() {
    let house = House::build("[devices.lamp.properties.relay]\nsensitive = true\n", &TWO).await;
    let assistant = assistant(&house, Life::Session).await;
    assert_eq!(assistant.call("switch_device", json!({"device": "lamp", "to": "on"})).await["success"], true);
    let twin = assistant.read(LAMP).await.unwrap();
    assert_eq!(
        (&twin["properties"]["relay"]["value"], &twin["last_operation"]["success"]),
        (&json!("***"), &json!(true))
    );
    for value in ["\"on\"", "\"off\""] {
        assert!(
            !twin["properties"].to_string().contains(value) && !twin["last_operation"]["device_state"].is_object(),
            "{twin}"
        );
    }
    assistant.close().await;
    house.take_down().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_ends_when_its_callers_access_is_withdrawn() {
    let house = House::build("", &TWO).await;
    let token = token(&house, "tv", &["kettle"]).await;
    let guest = Assistant::connect_as(house.hub().http_addr(), Life::Stateless, Some(&token)).await;
    let mut stream = guest.listen(SubscriptionFilter::builder().resource_subscriptions([KETTLE]).build()).await;
    ask(&house, control::Request::TokenRevoke { name: "tv".to_owned() }).await;
    while let Some(told) = next(&mut stream).await {
        assert_eq!(told, updated(KETTLE));
    }
    assert!(matches!(stream.end(), Some(SubscriptionEnd::Graceful(_))), "{:?}", stream.end());
    house.take_down().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_chattering_device_is_told_of_once_a_second_at_most() {
    let house = House::build("", &TWO).await;
    let ear = assistant(&house, Life::Session).await;
    let began = Instant::now();
    ear.subscribe(LAMP).await.unwrap();
    for to in ["on", "off"].into_iter().cycle().take(8) {
        let answer = ear.call("switch_device", json!({"device": "lamp", "to": to})).await;
        assert_eq!(answer["success"], true, "{answer}");
    }
    ear.hears(&updated(LAMP), 1).await;
    let told = ear.so_far().iter().filter(|told| **told == updated(LAMP)).count();
    // However long that took on this machine: the first at once, then one a second.
    assert!(told as u64 <= began.elapsed().as_secs() + 1, "{told} times");
    ear.close().await;
    house.take_down().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_device_that_goes_away_is_news_of_its_resource() {
    let house = House::build("", &TWO).await;
    let ear = assistant(&house, Life::Session).await;
    ear.subscribe(LAMP).await.unwrap();
    house.sim("lamp").set_fault(Fault::Offline);
    ear.hears(&updated(LAMP), 1).await;
    until("it is read as offline", async || (ear.read(LAMP).await.unwrap()["presence"] == "offline").then_some(()))
        .await;
    ear.close().await;
    house.take_down().await;
}
