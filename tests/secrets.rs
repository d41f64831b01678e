//! No secret is in anything that the hub writes: the real program runs with known ones through successes and failures, logging
//! all that can be logged, and what it wrote, shows and is called by is searched for them.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod program;

use std::{
    fs,
    io::{Read as _, Write as _},
    net::{SocketAddr, TcpStream},
    path::Path,
};

use futures_util::{SinkExt as _, StreamExt as _};
use program::{PATIENCE, Program, run, until};
use serde_json::{Value as Json, json};
use tokio::net::TcpListener;
use tokio_tungstenite::tungstenite::{
    Message,
    protocol::{CloseFrame, frame::coding::CloseCode},
};

/// A relay's token; with a percent sign, because it must not be seen in either form.
const TOKEN: &str = "sEcrEtRelAyTokEn%2B0123456789abcdef";
const TOKEN_DECODED: &str = "sEcrEtRelAyTokEn+0123456789abcdef";
/// One that is refused, in a URL that is none.
const MISTYPED: &str = "mIstYpedTokEn0123456789abcdefghij";
const BEARER: &str = "bEarErTokEn0123456789abcdefghijkl";
const WRONG_PASSWORD: &str = "wRongPasswOrd0123456789abcdefghi";
/// The password that somebody chose for a service account; and one that is too short to be taken.
const CHOSEN: &str = "cHosEnPasswOrd 热水";
const SHORT: &str = "sHOrtpw";
/// A code that is spoken.
const CODE: &str = "481516";

/// Files that are there to keep secrets, mode 0600.
const STORES: [&str; 3] = ["devices.json", "endpoints.json", "tokens.json"];

/// One HTTP request, whatever comes of it; the whole answer.
fn http(address: &str, request: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    String::from_utf8_lossy(&answer).into_owned()
}

fn post(address: &str, bearer: &str, body: &Json) -> String {
    let body = body.to_string();
    let request = format!(
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {bearer}\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    http(address, &request)
}

/// A relay that has every message of an access point's life, and in the end says the token itself, as the real one does.
async fn relay(listener: TcpListener) {
    let call = |id: &str, device: &str| {
        let arguments = json!({"device": device, "to": "on", "user_request": format!("打开，密码 {CODE}，{TOKEN_DECODED}"), "code": CODE});
        json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": "switch_device", "arguments": arguments}}).to_string()
    };
    let frames = [
        json!({"jsonrpc": "2.0", "id": "a_n_1", "method": "initialize", "params": {"protocolVersion": "2024-11-05", "capabilities": {}, "clientInfo": {"name": TOKEN_DECODED, "version": "1"}}}).to_string(),
        json!({"jsonrpc": "2.0", "id": "a_n_2", "method": "tools/list"}).to_string(),
        format!("garbage {TOKEN_DECODED}"),
        json!({"jsonrpc": "2.0", "id": "a_n_3", "method": TOKEN_DECODED}).to_string(),
        json!({"jsonrpc": "2.0", "id": "a_n_4", "method": "tools/call", "params": {"name": TOKEN_DECODED, "arguments": {}}}).to_string(),
        call("a_n_5", "lamp"),
        call("a_n_6", TOKEN_DECODED),
    ];
    while let Ok((stream, _)) = listener.accept().await {
        let frames = frames.clone();
        tokio::spawn(async move {
            let Ok(mut line) = tokio_tungstenite::accept_async(stream).await else { return };
            for frame in frames {
                if line.send(Message::text(frame)).await.is_err() {
                    return;
                }
            }
            let mut answers = 0;
            while let Some(Ok(message)) = line.next().await {
                // Every request but the garbage is answered once.
                answers += usize::from(message.is_text());
                if answers == 6 {
                    break;
                }
            }
            let reason = format!("token解密失败: {TOKEN_DECODED}").into();
            let _gone = line.close(Some(CloseFrame { code: CloseCode::Policy, reason })).await;
            while let Some(Ok(_)) = line.next().await {}
        });
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_secret_is_in_anything_that_the_hub_writes_shows_or_is_called_by() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let relay = tokio::spawn(relay(listener));
    tokio::task::spawn_blocking(move || searched(port)).await.unwrap();
    relay.abort();
}

fn searched(relay: u16) {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let path = data.to_str().unwrap();
    let hub = Program::start(
        folder.path(),
        "hub",
        &["serve", "--data", path, "--mqtt", "127.0.0.1:0", "--http", "127.0.0.1:0"],
    );
    let whereabouts: Json =
        until("the hub is up", || serde_json::from_slice(&fs::read(data.join("hub.json")).ok()?).ok());
    let (mqtt, address) =
        (whereabouts["mqtt"].as_str().unwrap(), whereabouts["http"].as_str().unwrap()[7..].to_owned());
    let mut shown: Vec<(String, String)> = Vec::new();

    // A device that works, and one with a wrong password.
    let password_of = |device: &str| {
        let (code, added) = run(&data, &["device", "add", device, "--json"], "");
        assert_eq!(code, 0, "{added}");
        let line = added.lines().find(|line| line.starts_with('{')).unwrap();
        serde_json::from_str::<Json>(line).unwrap()["password"].as_str().unwrap().to_owned()
    };
    let password = password_of("lamp");
    let sim = |name: &str, device: &str, kind: &str, secret: &str| {
        let file = folder.path().join(format!("{name}.secret"));
        fs::write(&file, secret).unwrap();
        fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
        let password = file.to_str().unwrap();
        let arguments = ["sim", "--mqtt", mqtt, "--device", device, "--kind", kind, "--password-file", password];
        Program::start(folder.path(), name, &arguments)
    };
    let stranger = sim("stranger", "lamp", "socket", WRONG_PASSWORD);
    until("the stranger was refused", || hub.said().contains("wrong password").then_some(()));
    shown.push(("the stranger".to_owned(), stranger.shown()));
    stranger.stop();
    let lamp = sim("lamp", "lamp", "socket", &password);
    let door = sim("door", "door", "lock", &password_of("door"));
    let online = "truetwin_devices{presence=\"online\"} 2";
    let get_metrics = || http(&address, "GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    until("lamp and door are online", || get_metrics().contains(online).then_some(()));

    // An access point: added, called through, refused by its own words, tested, added again, removed; and addresses that are none.
    let url = format!("ws://127.0.0.1:{relay}/mcp_endpoint/mcp/?token={TOKEN}\n");
    let (_, added) = run(&data, &["endpoint", "add", "kitchen"], &url);
    assert!(added.contains("kitchen"), "{added}");
    shown.push(("endpoint add".to_owned(), added));
    until("the relay has refused it", || hub.said().contains("token refused").then_some(()));
    let dotenv = folder.path().join("dotenv");
    fs::write(&dotenv, format!("MCP_ENDPOINT={url}SECRET={BEARER}\n{BEARER}=1\n")).unwrap();
    let broken = folder.path().join("broken.json");
    fs::write(&broken, format!("{{\"mcpEndpoint\": \"{}\" {MISTYPED}", url.trim())).unwrap();
    let mistyped = format!("https://api.xiaozhi.me/mcp/?token={MISTYPED}\n");
    let [dotenv, broken] = [dotenv, broken].map(|file| file.to_str().unwrap().to_owned());
    let user_request =
        json!({"device": "lamp", "to": "off", "user_request": format!("{CODE} {TOKEN_DECODED}")}).to_string();
    let commands: [(&[&str], &str); 17] = [
        (&["endpoint", "add", "bedroom"], &url),
        (&["endpoint", "add", "hall"], &mistyped),
        (&["endpoint", "list"], ""),
        (&["endpoint", "list", "--json"], ""),
        (&["endpoint", "test", "kitchen"], ""),
        (&["import", &dotenv], ""),
        (&["import", &broken], ""),
        (&["import", "-"], &mistyped),
        (&["account", "add", "me", "--read", "#", "--ask"], CHOSEN),
        (&["account", "add", "you", "--read", "#", "--ask"], SHORT),
        (&["account", "rotate", "me", "--ask", "--json"], CHOSEN),
        (&["account", "list"], ""),
        (&["call", "switch_device", &user_request], ""),
        (&["dispute", "lamp", "--note", CODE], ""),
        (&["audit"], ""),
        (&["audit", "--json"], ""),
        (&["audit", "stats"], ""),
    ];
    for (arguments, input) in commands {
        let (_, printed) = run(&data, arguments, input);
        // What the owner writes on a command line is the owner's; everything here came over standard input or from a file.
        let printed = if arguments[0] == "dispute" { printed.replace(CODE, "") } else { printed };
        shown.push((arguments.join(" "), printed));
    }

    // A client with a bearer token, in and out of the protocol.
    let initialize = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}});
    let (_, made) = run(&data, &["token", "add", "ci", "--json"], "");
    let line = made.lines().find(|line| line.starts_with('{')).unwrap();
    let bearer = serde_json::from_str::<Json>(line).unwrap()["token"].as_str().unwrap().to_owned();
    let accepted = post(&address, &bearer, &initialize);
    assert!(accepted.contains("serverInfo"), "{accepted}");
    shown.push(("initialize".to_owned(), accepted));
    shown.push(("a token that is none".to_owned(), post(&address, BEARER, &initialize)));
    shown.push(("nonsense".to_owned(), post(&address, &bearer, &json!({"nonsense": true}))));
    let (_, listed) = run(&data, &["token", "list"], "");
    assert!(listed.contains("ci"), "{listed}");
    shown.push(("token list".to_owned(), listed));

    // A lock: the code that its question carries, said back by somebody else.
    let (_, asked) = run(&data, &["call", "switch_device", r#"{"device": "door", "to": "unlocked"}"#], "");
    let asked: Json = serde_json::Deserializer::from_str(&asked).into_iter().next().unwrap().unwrap();
    let code = asked["code"].as_str().unwrap_or_else(|| panic!("it is asked about: {asked}")).to_owned();
    let back = json!({"code": code}).to_string();
    let (_, answered) = run(&data, &["call", "confirm_operation", &back], "");
    shown.push(("confirm_operation".to_owned(), answered));
    shown.push(("metrics".to_owned(), get_metrics()));
    shown.push(("the hub".to_owned(), hub.shown()));
    shown.push(("the lamp".to_owned(), lamp.shown()));
    let audited = fs::read_to_string(data.join("audit.jsonl")).unwrap();
    assert!(audited.contains("endpoint:kitchen") && audited.contains("***"), "the call was audited, masked: {audited}");
    for file in ["hub", "lamp", "door", "stranger"] {
        shown.push((
            format!("the log of {file}"),
            fs::read_to_string(folder.path().join(format!("{file}.log"))).unwrap(),
        ));
    }
    shown.push(("the hub's own files while it runs".to_owned(), files_of(&data)));
    lamp.stop();
    door.stop();
    hub.stop();
    shown.push(("the log of hub to its end".to_owned(), fs::read_to_string(folder.path().join("hub.log")).unwrap()));
    shown.push(("the hub's own files".to_owned(), files_of(&data)));

    let token_encoded = TOKEN.replace("%2B", "%2b");
    let secrets = [
        TOKEN,
        &token_encoded,
        TOKEN_DECODED,
        MISTYPED,
        BEARER,
        &bearer,
        WRONG_PASSWORD,
        CODE,
        &password,
        &code,
        CHOSEN,
        SHORT,
    ];
    let mut leaks = Vec::new();
    for (what, text) in &shown {
        for secret in secrets {
            for line in text.lines().filter(|line| line.contains(secret)) {
                leaks.push(format!("{secret} in {what}: {line}"));
            }
        }
    }
    assert!(leaks.is_empty(), "{leaks:#?}");
    let long: usize = shown.iter().map(|(_, text)| text.len()).sum();
    assert!(long > 10_000, "there was something to search");
}

/// All files of the data folder but those that are there to keep secrets; those are private.
fn files_of(data: &Path) -> String {
    use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
    let mut all = String::new();
    for entry in fs::read_dir(data).unwrap() {
        let entry = entry.unwrap();
        let (name, kind) = (entry.file_name().into_string().unwrap(), entry.file_type().unwrap());
        assert_eq!(entry.metadata().unwrap().permissions().mode() & 0o077, 0, "{name} is private");
        if !kind.is_socket() && !STORES.contains(&name.as_str()) {
            all.push_str(&String::from_utf8_lossy(&fs::read(entry.path()).unwrap()));
            all.push('\n');
        }
    }
    all
}

#[test]
fn an_address_that_cannot_be_taken_is_named_without_its_token() {
    let folder = tempfile::tempdir().unwrap();
    let unused: SocketAddr = "127.0.0.1:1".parse().unwrap();
    let url = format!("ws://{unused}/mcp_endpoint/mcp/?token={TOKEN}\n");
    let (code, printed) = run(folder.path(), &["endpoint", "add", "kitchen"], &url);
    assert_eq!(code, 0, "{printed}");
    assert!(printed.contains("truetwin serve --data") && !printed.contains(TOKEN), "no hub runs: {printed}");
    let (code, printed) = run(folder.path(), &["endpoint", "add", "study"], &url);
    assert_eq!(code, 2, "{printed}");
    assert!(printed.contains("study and kitchen") && !printed.contains(TOKEN), "{printed}");
    let (code, printed) = run(folder.path(), &["endpoint", "test", "kitchen"], "");
    assert_eq!(code, 1, "{printed}");
    assert!(printed.contains("cannot be reached") && !printed.contains(TOKEN), "{printed}");
}
