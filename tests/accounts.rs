//! Service accounts over the real program, as a person with an MQTT client meets them: what the log says of what was refused, what
//! mends it, and that a backup of a running hub has all that was retained.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod program;

use std::{
    fs,
    io::{Read as _, Write as _},
    net::TcpStream,
    path::Path,
};

use program::{PATIENCE, Program, run, until};
use serde_json::Value as Json;

/// Granted with QoS 0, and refused, in a SUBACK of 3.1.1.
const GRANTED: u8 = 0;
const REFUSED: u8 = 0x80;

/// A client of MQTT 3.1.1, which knows of a refusal only that it is one.
struct Client(TcpStream);

impl Client {
    fn connect(mqtt: &str, user: &str, password: &str) -> Self {
        let mut body = b"\0\x04MQTT\x04\xC2\0\x3C".to_vec();
        for text in ["x", user, password] {
            push(&mut body, text);
        }
        let mut socket = TcpStream::connect(mqtt).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        packet(&mut socket, 0x10, &body);
        let mut client = Self(socket);
        assert_eq!(client.next(), (0x20, vec![0, 0]), "{user} is let in");
        client
    }

    fn subscribe(&mut self, filter: &str) -> u8 {
        let mut body = vec![0, 1];
        push(&mut body, filter);
        body.push(0);
        packet(&mut self.0, 0x82, &body);
        loop {
            let (first, body) = self.next();
            if first == 0x90 {
                return body[2];
            }
        }
    }

    /// Publishes with QoS 0.
    fn publish(&mut self, topic: &str, retain: bool, payload: &str) {
        let mut body = Vec::new();
        push(&mut body, topic);
        body.extend_from_slice(payload.as_bytes());
        packet(&mut self.0, 0x30 | u8::from(retain), &body);
    }

    /// The next publish: its topic and what it says.
    fn heard(&mut self) -> (String, String) {
        loop {
            let (first, body) = self.next();
            if first >> 4 == 3 {
                let end = 2 + usize::from(u16::from_be_bytes([body[0], body[1]]));
                let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
                return (text(&body[2..end]), text(&body[end..]));
            }
        }
    }

    fn next(&mut self) -> (u8, Vec<u8>) {
        let mut head = [0; 2];
        self.0.read_exact(&mut head).unwrap();
        assert!(head[1] < 128, "nothing here is longer");
        let mut body = vec![0; usize::from(head[1])];
        self.0.read_exact(&mut body).unwrap();
        (head[0], body)
    }
}

fn push(body: &mut Vec<u8>, text: &str) {
    body.extend_from_slice(&u16::try_from(text.len()).unwrap().to_be_bytes());
    body.extend_from_slice(text.as_bytes());
}

fn packet(socket: &mut TcpStream, first: u8, body: &[u8]) {
    socket.write_all(&[&[first, u8::try_from(body.len()).unwrap()], body].concat()).unwrap();
}

/// A hub, and where it is reached.
fn serving(folder: &Path, name: &str, data: &Path) -> (Program, String) {
    let arguments = ["serve", "--data", data.to_str().unwrap(), "--mqtt", "127.0.0.1:0", "--http", "127.0.0.1:0"];
    let hub = Program::start(folder, name, &arguments);
    let at: Json = until("the hub is up", || serde_json::from_slice(&fs::read(data.join("hub.json")).ok()?).ok());
    (hub, at["mqtt"].as_str().unwrap().to_owned())
}

/// Makes an account; its password.
fn made(data: &Path, arguments: &[&str]) -> String {
    let (code, said) = run(data, &[&["account", "add", "me", "--json"], arguments].concat(), "");
    assert_eq!(code, 0, "{said}");
    let line = said.lines().find(|line| line.starts_with('{')).unwrap();
    serde_json::from_str::<Json>(line).unwrap()["password"].as_str().unwrap().to_owned()
}

#[test]
fn a_topic_that_was_refused_is_in_the_log_with_the_command_that_grants_it() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let (hub, mqtt) = serving(folder.path(), "hub", &data);
    let password = made(&data, &["--read", "home/#", "--write", "home/#"]);
    // Again and again, as programs do.
    for _ in 0..3 {
        let mut client = Client::connect(&mqtt, "me", &password);
        assert_eq!((client.subscribe("#"), client.subscribe("home/+")), (REFUSED, GRANTED));
        client.publish("other/x", false, "");
        assert!(client.0.read(&mut [0]).is_ok_and(|read| read == 0), "3.1.1 has no code for it");
        let mut client = Client::connect(&mqtt, "me", &password);
        client.publish("-x/y", false, "");
        assert!(client.0.read(&mut [0]).is_ok_and(|read| read == 0), "the same");
    }
    let said = hub.said();
    for (what, grants) in [
        ("a subscription to \"#\"", "--read='#'"),
        ("a publish to \"other/x\"", "--write='other/x'"),
        ("a publish to \"-x/y\"", "--write='-x/y'"),
    ] {
        let lines: Vec<&str> = said.lines().filter(|line| line.contains(what)).collect();
        let [line] = lines.as_slice() else { panic!("{} lines say {what}: {said}", lines.len()) };
        assert!(line.contains("me") && line.contains("home/#") && line.contains("WARN"), "{line}");
        // What the line says, typed as it stands.
        let command = line.split("truetwin ").nth(1).unwrap();
        assert!(command.starts_with(&format!("--data {} account allow me {grants}", data.display())), "{command}");
        let (code, said) = run(&data, &["account", "allow", "me", &grants.replace('\'', "")], "");
        assert!(code == 0 && said.contains("home/#"), "{said}");
    }
    let mut client = Client::connect(&mqtt, "me", &password);
    assert_eq!((client.subscribe("#"), client.subscribe("home/+")), (GRANTED, GRANTED));
    client.publish("other/x", false, "now");
    assert_eq!(client.heard(), ("other/x".to_owned(), "now".to_owned()));
    // More than can be granted is refused with the reason, and nothing has changed.
    let (code, said) = run(&data, &["account", "allow", "me", "--write", "truetwin/#"], "");
    assert!(code == 2 && said.contains("only the hub"), "{said}");
    let (code, said) = run(&data, &["account", "allow", "me"], "");
    assert!(code == 2 && said.contains("--read"), "{said}");
    hub.stop();
}

#[test]
fn a_backup_of_a_running_hub_has_what_was_retained_a_moment_ago() {
    let folder = tempfile::tempdir().unwrap();
    let (data, other) = (folder.path().join("data"), folder.path().join("other"));
    let (hub, mqtt) = serving(folder.path(), "hub", &data);
    let password = made(&data, &["--read", "#", "--write", "home/#"]);
    let mut client = Client::connect(&mqtt, "me", &password);
    assert_eq!(client.subscribe("#"), GRANTED);
    client.publish("home/x", true, "on");
    assert_eq!(client.heard().1, "on", "the hub has it");
    let file = folder.path().join("copy.truetwin");
    assert_eq!(run(&data, &["backup", file.to_str().unwrap()], "").0, 0);
    // Another process, which knows only what is in the file.
    assert_eq!(run(&other, &["restore", file.to_str().unwrap()], "").0, 0);
    let (restored, mqtt) = serving(folder.path(), "restored", &other);
    let mut client = Client::connect(&mqtt, "me", &password);
    assert_eq!(client.subscribe("home/#"), GRANTED);
    assert_eq!(client.heard(), ("home/x".to_owned(), "on".to_owned()));
    restored.stop();
    hub.stop();
}
