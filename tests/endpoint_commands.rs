//! `truetwin endpoint` against access points: what is printed when the tools went over, when the relay has forgotten the
//! connection, when it hangs.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod program;

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use futures_util::{SinkExt as _, StreamExt as _};
use program::{Program, run, until};
use serde_json::{Value as Json, json};
use tokio::net::{TcpListener, TcpStream};
use tokio_tungstenite::{
    WebSocketStream,
    tungstenite::{
        Message,
        handshake::server::{ErrorResponse, Request, Response},
    },
};

type Line = WebSocketStream<TcpStream>;

/// What a relay does with a question from the callers' side.
#[derive(Clone, Copy, PartialEq)]
enum Relay {
    Routes,
    HasForgotten,
    Hangs,
}

/// An access point of either kind, by the path that is dialled. Counts the connections to its tool side.
struct Point {
    port: u16,
    dialled: Arc<AtomicUsize>,
}

async fn point(relay: Relay) -> Point {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (port, dialled) = (listener.local_addr().unwrap().port(), Arc::new(AtomicUsize::new(0)));
    let counted = dialled.clone();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let counted = counted.clone();
            tokio::spawn(async move {
                let mut path = String::new();
                #[expect(clippy::result_large_err, reason = "the library wants it so")]
                let seen = |request: &Request, response: Response| -> Result<Response, ErrorResponse> {
                    request.uri().path().clone_into(&mut path);
                    Ok(response)
                };
                let Ok(line) = tokio_tungstenite::accept_hdr_async(stream, seen).await else { return };
                if path.contains("/call/") {
                    callers_side(line, relay).await;
                } else {
                    counted.fetch_add(1, Ordering::SeqCst);
                    tool_side(line, !path.contains("/mcp_endpoint/")).await;
                }
            });
        }
    });
    Point { port, dialled }
}

/// The official one asks at once; a relay's tool side is silent until a box speaks.
async fn tool_side(mut line: Line, official: bool) {
    if official {
        let initialize = json!({"id": 0, "jsonrpc": "2.0", "method": "initialize", "params": {"protocolVersion": "2024-11-05", "capabilities": {}, "clientInfo": {"name": "xz-mcp-broker", "version": "0.0.1"}}});
        let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        let list = json!({"id": 1, "jsonrpc": "2.0", "method": "tools/list", "params": {}});
        line.send(Message::text(initialize.to_string())).await.unwrap();
        line.next().await;
        for message in [initialized, list] {
            line.send(Message::text(message.to_string())).await.unwrap();
        }
    }
    while let Some(Ok(_)) = line.next().await {}
}

async fn callers_side(mut line: Line, relay: Relay) {
    while let Some(Ok(message)) = line.next().await {
        let Ok(asked) = serde_json::from_str::<Json>(message.to_text().unwrap_or_default()) else { continue };
        let answer = match relay {
            Relay::Routes => json!({"jsonrpc": "2.0", "id": asked["id"], "result": {}}),
            Relay::HasForgotten => {
                json!({"jsonrpc": "2.0", "id": asked["id"], "result": null, "error": {"code": -32001, "message": "工具端未连接"}})
            }
            Relay::Hangs => continue,
        };
        line.send(Message::text(answer.to_string())).await.unwrap();
    }
}

struct Home {
    data: PathBuf,
    _hub: Program,
    _folder: tempfile::TempDir,
}

fn home() -> Home {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let arguments = ["serve", "--data", data.to_str().unwrap(), "--mqtt", "127.0.0.1:0", "--http", "127.0.0.1:0"];
    let hub = Program::start(folder.path(), "hub", &arguments);
    until("the hub is up", || data.join("hub.json").exists().then_some(()));
    Home { data, _hub: hub, _folder: folder }
}

async fn asked(data: &Path, arguments: &[&str], input: String) -> (i32, String) {
    let (data, arguments) = (data.to_owned(), arguments.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>());
    let running = move || {
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        run(&data, &arguments, &input)
    };
    tokio::task::spawn_blocking(running).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_tools_that_went_over_are_printed_and_the_same_agent_again_is_refused() {
    let (point, home) = (point(Relay::Routes).await, home());
    let address = || format!("ws://127.0.0.1:{}/mcp/?token=first\n", point.port);
    let (code, printed) = asked(&home.data, &["endpoint", "add", "kitchen"], address()).await;
    assert_eq!(code, 0, "{printed}");
    assert!(printed.contains("official access point") && printed.contains("the token says no end"), "{printed}");
    assert!(
        printed.contains("has read the tools") && printed.contains("tools that went over: find_devices, ping"),
        "{printed}"
    );
    let (code, printed) = asked(&home.data, &["endpoint", "add", "bedroom"], address()).await;
    assert_eq!(code, 2, "{printed}");
    assert!(printed.contains("bedroom and kitchen are the same agent"), "{printed}");
    let (code, printed) = asked(&home.data, &["endpoint", "test", "kitchen"], String::new()).await;
    assert_eq!(code, 0, "{printed}");
    assert!(printed.contains("no call has arrived yet"), "{printed}");
    let (_, printed) = asked(&home.data, &["endpoint", "list"], String::new()).await;
    assert!(printed.lines().any(|line| line.starts_with("kitchen  up ")), "{printed}");
    assert_eq!(point.dialled.load(Ordering::SeqCst), 1, "one socket for a token");
    let (code, printed) = asked(&home.data, &["endpoint", "remove", "kitchen"], String::new()).await;
    assert_eq!(code, 0, "{printed}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_relay_is_asked_from_the_boxes_side_whether_it_leads_here() {
    for (relay, code, said) in
        [(Relay::Routes, 0, "routed"), (Relay::HasForgotten, 1, "zombie: the relay has forgotten this connection")]
    {
        let (point, home) = (point(relay).await, home());
        let address = format!("ws://127.0.0.1:{}/mcp_endpoint/mcp/?token=first\n", point.port);
        let (added, printed) = asked(&home.data, &["endpoint", "add", "kitchen"], address).await;
        assert_eq!(added, code, "{printed}");
        assert!(printed.contains("relay access point") && printed.contains(said), "{printed}");
        if relay == Relay::HasForgotten {
            until("it is dialled anew", || (point.dialled.load(Ordering::SeqCst) > 1).then_some(()));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn where_no_hub_runs_a_relay_is_asked_without_throwing_out_who_is_there() {
    for (relay, code, said) in [
        (Relay::Routes, 0, "to another program that uses this token"),
        (Relay::HasForgotten, 0, "no hub is connected to it: truetwin --data /"),
        (Relay::Hangs, 1, "restart mcp-endpoint-server"),
    ] {
        let (point, folder) = (point(relay).await, tempfile::tempdir().unwrap());
        let address = format!("ws://127.0.0.1:{}/mcp_endpoint/mcp/?token=first\n", point.port);
        let (added, printed) = asked(folder.path(), &["endpoint", "add", "kitchen"], address).await;
        assert_eq!(added, 0, "{printed}");
        let (tested, printed) = asked(folder.path(), &["endpoint", "test", "kitchen"], String::new()).await;
        assert_eq!(tested, code, "{printed}");
        assert!(printed.contains(said), "{printed}");
        assert_eq!(point.dialled.load(Ordering::SeqCst), 0, "nobody was thrown out");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_text_for_the_role_is_in_the_language_that_is_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let (_, zh) = asked(folder.path(), &["endpoint", "prompt", "--lang", "zh"], String::new()).await;
    let (_, en) = asked(folder.path(), &["endpoint", "prompt", "--lang", "en"], String::new()).await;
    assert!(zh.contains("必须先调用工具") && en.contains("Call a tool before saying anything"), "{zh}{en}");
    let (code, printed) = asked(folder.path(), &["endpoint", "prompt", "nobody"], String::new()).await;
    assert_eq!(code, 2, "{printed}");
}
