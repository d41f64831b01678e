//! Bearer tokens over HTTP: who comes in, what each sees, and that a session is its opener's.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod house;

use reqwest::{Client as Http, Response, StatusCode, header};
use serde_json::{Value as Json, json};
use truetwin::{
    control::{self, Request},
    mcp::{Client, ClientError},
    sim::Kind,
};

use house::{House, Member};

const NAMES: &str = "[devices.lamp-1]\nname = \"desk lamp\"\nroom = \"study\"\n[devices.lamp-2]\nname = \"bedside lamp\"\n\
                     room = \"bedroom\"\n";

const LAMPS: &[Member] = &[Member::new("lamp-1", Kind::Lamp), Member::new("lamp-2", Kind::Lamp)];

/// What `truetwin token …` asks of the running hub.
async fn ask(house: &House, request: Request) -> control::Response {
    let folder = house.hub().data().path().to_owned();
    tokio::task::spawn_blocking(move || control::ask(&folder, &request)).await.unwrap().unwrap()
}

async fn token(house: &House, name: &str, devices: Option<&[&str]>, read: Option<&[&str]>) -> String {
    let listed = |names: Option<&[&str]>| names.map(|names| names.iter().map(|name| (*name).to_owned()).collect());
    let request =
        Request::TokenAdd { name: name.to_owned(), devices: listed(devices), read: listed(read), language: None };
    match ask(house, request).await {
        control::Response::Token { token, .. } => token.reveal().to_owned(),
        other @ (control::Response::Device { .. }
        | control::Response::Devices { .. }
        | control::Response::Removed { .. }
        | control::Response::Answer { .. }
        | control::Response::Account { .. }
        | control::Response::Accounts { .. }
        | control::Response::Endpoint { .. }
        | control::Response::Endpoints { .. }
        | control::Response::Tokens { .. }
        | control::Response::BackedUp
        | control::Response::Disputed { .. }
        | control::Response::Error { .. }) => panic!("{other:?}"),
    }
}

fn mcp(house: &House) -> String {
    format!("http://{}/mcp", house.hub().http_addr())
}

async fn get(house: &House, path: &str, authorization: Option<&str>) -> Response {
    let mut request = Http::new().get(format!("http://{}{path}", house.hub().http_addr()));
    if let Some(authorization) = authorization {
        request = request.header(header::AUTHORIZATION, authorization);
    }
    request.send().await.unwrap()
}

/// A raw message of an MCP client: the status, and the session of the answer.
async fn post(
    house: &House,
    authorization: Option<&str>,
    session: Option<&str>,
    message: Json,
) -> (StatusCode, Option<String>) {
    let mut request = Http::new()
        .post(mcp(house))
        .header(header::ACCEPT, "application/json, text/event-stream")
        .header(header::CONTENT_TYPE, "application/json")
        .body(message.to_string());
    if let Some(authorization) = authorization {
        request = request.header(header::AUTHORIZATION, authorization);
    }
    if let Some(session) = session {
        request = request.header("mcp-session-id", session);
    }
    let response = request.send().await.unwrap();
    let session = response.headers().get("mcp-session-id").map(|id| id.to_str().unwrap().to_owned());
    (response.status(), session)
}

fn initialize() -> Json {
    json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}
    }})
}

fn list_tools() -> Json {
    json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"})
}

/// A house that wants a token of everybody.
async fn closed_house() -> House {
    House::build(&format!("[http]\ntokens = \"required\"\n{NAMES}"), LAMPS).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_token_has_its_own_house_and_without_one_it_is_the_caller_http() {
    let house = House::build(&format!("[callers.http]\nread = [\"study\"]\n{NAMES}"), LAMPS).await;
    let (study, all) = (token(&house, "study", Some(&["study"]), None).await, token(&house, "all", None, None).await);
    let names = |answer: &Json| -> Vec<String> {
        answer["devices"].as_array().unwrap().iter().map(|row| row["device"].as_str().unwrap().to_owned()).collect()
    };
    for (token, sees, moves) in [
        (None, vec!["desk lamp"], false),
        (Some(&study), vec!["desk lamp"], true),
        (Some(&all), vec!["desk lamp", "bedside lamp"], true),
    ] {
        let client = Client::connect_as(&mcp(&house), token.map(String::as_str)).await.unwrap();
        let listed = client.call("find_devices", json!({})).await.unwrap().structured;
        assert_eq!(names(&listed), sees);
        let has = client.tools().await.unwrap().iter().any(|tool| tool == "switch_device");
        assert_eq!(has, moves);
        if moves {
            let other = client.call("switch_device", json!({"device": "lamp-2", "to": "on"})).await.unwrap().structured;
            let wanted = if sees.len() == 2 { "converged" } else { "unknown_device" };
            assert!(other.to_string().contains(wanted), "{other}");
        }
        client.close().await;
    }
    assert_eq!(house.truth("lamp-2").0, 1, "only who may move it did");
    house.take_down().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wrong_token_is_401_and_several_are_slowed_down_and_bounded() {
    let house = closed_house().await;
    // A client that is told so does not take the hub for none.
    let wrong = Client::connect_as(&mcp(&house), Some("0123456789abcdef0123456789abcdef")).await.unwrap_err();
    assert!(matches!(&wrong, ClientError::Token { .. }), "{wrong}");
    let good = format!("Bearer {}", token(&house, "tv", None, None).await);
    for path in ["/metrics", "/mcp"] {
        let refused = get(&house, path, None).await;
        assert_eq!(refused.status(), StatusCode::UNAUTHORIZED, "{path}");
        assert_eq!(refused.headers()[header::WWW_AUTHENTICATE], "Bearer");
    }
    assert_eq!(get(&house, "/healthz", None).await.status(), StatusCode::OK);
    assert_eq!(get(&house, "/metrics", Some(&good)).await.status(), StatusCode::OK);
    assert_eq!(get(&house, "/metrics", Some(&good.replace("Bearer", "bearer"))).await.status(), StatusCode::OK);
    let almost = format!("{}0", &good[..good.len() - 1]);
    let wrong = ["Bearer x", "Bearer", "Basic eDp5", &good[7..], &format!("{good}0"), "Bearer \u{7f}", &almost];
    for bad in wrong.iter().filter(|bad| ***bad != good).take(5) {
        let refused = get(&house, "/metrics", Some(bad)).await;
        assert_eq!(refused.status(), StatusCode::UNAUTHORIZED, "{bad}");
        assert!(refused.headers()[header::WWW_AUTHENTICATE].to_str().unwrap().contains("invalid_token"));
    }
    // From now on they wait, four at a time; whoever is right does not.
    let mut many = tokio::task::JoinSet::new();
    for _ in 0..12 {
        let url = format!("http://{}/metrics", house.hub().http_addr());
        many.spawn(async move { Http::new().get(url).bearer_auth("wrong").send().await.unwrap().status() });
    }
    let statuses = many.join_all().await;
    assert!(statuses.iter().filter(|status| **status == StatusCode::UNAUTHORIZED).count() >= 4, "{statuses:?}");
    assert!(statuses.contains(&StatusCode::TOO_MANY_REQUESTS), "{statuses:?}");
    assert_eq!(get(&house, "/metrics", Some(&good)).await.status(), StatusCode::OK);
    house.take_down().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_is_its_openers_and_ends_with_the_token() {
    let house = closed_house().await;
    let tokens = [token(&house, "a", None, None).await, token(&house, "b", None, None).await];
    let [a, b] = tokens.each_ref().map(|token| format!("Bearer {token}"));
    let (status, session) = post(&house, Some(&a), None, initialize()).await;
    assert_eq!(status, StatusCode::OK);
    let session = session.unwrap();
    assert_eq!(post(&house, Some(&a), Some(&session), list_tools()).await.0, StatusCode::OK);
    assert_eq!(post(&house, Some(&b), Some(&session), list_tools()).await.0, StatusCode::NOT_FOUND);
    assert_eq!(post(&house, None, Some(&session), list_tools()).await.0, StatusCode::UNAUTHORIZED);
    // A stream of what the hub has to tell is open while the token is taken back.
    let mut stream = Http::new()
        .get(mcp(&house))
        .header(header::ACCEPT, "text/event-stream")
        .header(header::AUTHORIZATION, &a)
        .header("mcp-session-id", &session)
        .send()
        .await
        .unwrap();
    assert_eq!(stream.status(), StatusCode::OK);
    let revoked = ask(&house, Request::TokenRevoke { name: "a".to_owned() }).await;
    assert!(matches!(revoked, control::Response::Removed { .. }), "{revoked:?}");
    assert_eq!(post(&house, Some(&a), Some(&session), list_tools()).await.0, StatusCode::UNAUTHORIZED);
    let ended = async { while let Ok(Some(_)) = stream.chunk().await {} };
    tokio::time::timeout(house::HANG, ended).await.expect("its stream ends");
    // A new token of the same name does not inherit the session.
    let again = format!("Bearer {}", token(&house, "a", None, None).await);
    assert_eq!(post(&house, Some(&again), Some(&session), list_tools()).await.0, StatusCode::NOT_FOUND);
    assert_eq!(post(&house, Some(&b), None, initialize()).await.0, StatusCode::OK);
    house.take_down().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_list_says_what_selects_nothing_and_the_catalogue_follows_a_change() {
    let house = closed_house().await;
    let _typo = token(&house, "typo", Some(&["stduy", "all lights", "bedroom"]), None).await;
    let control::Response::Tokens { tokens } = ask(&house, Request::TokenList).await else { panic!("a list") };
    assert_eq!(tokens[0].unmatched, ["stduy"]);
    house.take_down().await;
}
