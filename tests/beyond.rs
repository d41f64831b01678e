//! Beyond loopback, over the real program: what it wants before it opens a port that others can reach, which secrets it refuses to
//! read, and that it speaks TLS as `truetwin tls make` sets it up.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod program;

use std::{
    fs,
    io::{Read as _, Write as _},
    net::TcpStream,
    os::unix::fs::PermissionsExt as _,
    path::Path,
    sync::Arc,
};

use program::{PATIENCE, Program, run, until};
use rustls::{
    ClientConfig, ClientConnection, RootCertStore, StreamOwned,
    pki_types::{CertificateDer, ServerName, pem::PemObject as _},
};
use serde_json::Value as Json;

/// The exit code of a wrong configuration.
const USAGE: i32 = 2;

/// A hub that does not start: what it ends with and says.
fn refused(data: &Path, arguments: &[&str]) -> String {
    let (code, said) = run(data, &[&["serve"], arguments].concat(), "");
    assert_eq!(code, USAGE, "{said}");
    said
}

/// A hub that starts; where its devices and its clients connect.
fn started(folder: &Path, data: &Path, arguments: &[&str]) -> (Program, String, String) {
    let fixed = ["serve", "--data", data.to_str().unwrap()];
    let hub = Program::start(folder, "hub", &[&fixed, arguments].concat());
    let at: Json = until("the hub is up", || serde_json::from_slice(&fs::read(data.join("hub.json")).ok()?).ok());
    let (mqtt, http) = (at["mqtt"].as_str().unwrap().to_owned(), at["http"].as_str().unwrap()[7..].to_owned());
    (hub, mqtt, http)
}

fn mode(file: &Path, mode: u32) {
    fs::set_permissions(file, fs::Permissions::from_mode(mode)).unwrap();
}

/// CONNECT of MQTT 3.1.1.
fn connect(user: &str, password: &str) -> Vec<u8> {
    let mut body = b"\0\x04MQTT\x04\xC2\0\x3C\0\x01x".to_vec();
    for text in [user, password] {
        body.extend_from_slice(&u16::try_from(text.len()).unwrap().to_be_bytes());
        body.extend_from_slice(text.as_bytes());
    }
    [&[0x10, u8::try_from(body.len()).unwrap()], &body[..]].concat()
}

fn connack(mut stream: impl std::io::Read + std::io::Write, user: &str, password: &str) -> [u8; 4] {
    stream.write_all(&connect(user, password)).unwrap();
    let mut answer = [0; 4];
    stream.read_exact(&mut answer).unwrap();
    answer
}

fn password_of(data: &Path, device: &str) -> String {
    let (code, added) = run(data, &["device", "add", device, "--json"], "");
    assert_eq!(code, 0, "{added}");
    let line = added.lines().find(|line| line.starts_with('{')).unwrap();
    serde_json::from_str::<Json>(line).unwrap()["password"].as_str().unwrap().to_owned()
}

#[test]
fn a_port_that_others_can_reach_is_opened_only_once_somebody_has_credentials_for_it() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let loopback = "127.0.0.1:0";
    for address in ["0.0.0.0:0", "[::]:0"] {
        let said = refused(&data, &["--mqtt", address, "--http", loopback]);
        for word in ["mqtt.listen (--mqtt)", "beyond loopback", "truetwin device add NAME --data"] {
            assert!(said.contains(word), "{word}: {said}");
        }
        let said = refused(&data, &["--mqtt", loopback, "--http", address]);
        for word in ["http.listen (--http)", "http.tokens = \"required\"", "token add NAME"] {
            assert!(said.contains(word), "{word}: {said}");
        }
    }
    let config = folder.path().join("hub.toml");
    fs::write(&config, "[http]\ntokens = \"required\"\n").unwrap();
    let tokens = ["--config", config.to_str().unwrap(), "--mqtt", loopback, "--http", "0.0.0.0:0"];
    let said = refused(&data, &tokens);
    assert!(said.contains("there is no token") && said.contains("truetwin token add NAME --data"), "{said}");
    assert!(!data.join("hub.json").exists(), "nothing of it has listened");

    let password = password_of(&data, "lamp");
    assert_eq!(run(&data, &["token", "add", "tv"], "").0, 0);
    let everywhere = ["--config", config.to_str().unwrap(), "--mqtt", "0.0.0.0:0", "--http", "0.0.0.0:0"];
    let (hub, mqtt, http) = started(folder.path(), &data, &everywhere);
    assert_eq!(connack(TcpStream::connect(&mqtt).unwrap(), "lamp", &password), [0x20, 2, 0, 0]);
    assert_eq!(connack(TcpStream::connect(&mqtt).unwrap(), "lamp", "guess"), [0x20, 2, 0, 4]);
    let mut answer = String::new();
    let mut page = TcpStream::connect(&http).unwrap();
    page.write_all(b"GET /metrics HTTP/1.0\r\nHost: localhost\r\n\r\n").unwrap();
    page.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.0 401"), "{answer}");
    assert!(hub.said().contains("passwords of devices cross the network as they are"), "{}", hub.said());
    hub.stop();
}

#[test]
fn a_certificate_of_the_homes_own_is_made_shown_and_renewed_while_the_hub_runs() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let config = folder.path().join("hub.toml");
    fs::write(&config, "[mqtt]\ntls = \"only\"\n").unwrap();
    let arguments = ["--config", config.to_str().unwrap(), "--mqtt", "127.0.0.1:0", "--http", "127.0.0.1:0"];
    let said = refused(&data, &arguments);
    assert!(said.contains("hub.pem (truetwin --data"), "{said}");

    let (code, made) = run(&data, &["tls", "make", "hub.home", "127.0.0.1"], "");
    assert_eq!(code, 0, "{made}");
    assert!(made.contains("SHA-256 fingerprint: ") && made.contains("tls = \"both\""), "{made}");
    let (_, shown) = run(&data, &["tls", "show"], "");
    let fingerprint = made.lines().find(|line| line.starts_with("SHA-256")).unwrap();
    assert!(shown.contains(fingerprint), "{shown}");

    let password = password_of(&data, "lamp");
    let (hub, mqtt, _) = started(folder.path(), &data, &arguments);
    assert_eq!(connack(TcpStream::connect(&mqtt).unwrap(), "lamp", &password), [0x20, 2, 0, 5], "plain");
    let told = until("who came without TLS is told", || {
        hub.said().lines().find(|line| line.contains("it came without TLS")).map(str::to_owned)
    });
    assert!(told.contains("127.0.0.1") && told.contains("lamp") && told.contains("tls show --pem"), "{told}");
    assert!(hub.said().contains("speaks plain MQTT is refused"), "{}", hub.said());
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(&fs::read(data.join("ca.pem")).unwrap()).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let trusting = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let trusting = Arc::new(trusting.with_root_certificates(roots).with_no_client_auth());
    let dial = |name: &str| {
        let name = ServerName::try_from(name.to_owned()).unwrap();
        let socket = TcpStream::connect(&mqtt).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        StreamOwned::new(ClientConnection::new(trusting.clone(), name).unwrap(), socket)
    };
    for name in ["hub.home", "127.0.0.1"] {
        assert_eq!(connack(dial(name), "lamp", &password), [0x20, 2, 0, 0], "{name}");
    }
    assert!(dial("other.home").write_all(b"x").is_err(), "it is for those names only");
    let (code, made) = run(&data, &["tls", "make", "other.home"], "");
    assert_eq!(code, 0, "{made}");
    assert!(made.contains("the same as before"), "{made}");
    assert_eq!(connack(dial("other.home"), "lamp", &password), [0x20, 2, 0, 0]);
    hub.stop();
    for (arguments, word) in [(vec!["tls", "make", "a b"], "host name"), (vec!["tls", "make", "灯"], "host name")] {
        let (code, said) = run(&data, &arguments, "");
        assert_eq!(code, USAGE, "{said}");
        assert!(said.contains(word), "{said}");
    }
}

#[test]
fn check_config_refuses_what_serve_refuses_and_both_tell_all_of_it_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let config = folder.path().join("hub.toml");
    let nowhere = folder.path().join("none/r.jsonl").display().to_string();
    let pieces = [
        ("[mqtt]\ntls = \"only\"\nlisten = \"0.0.0.0:0\"\n", &["cannot read the TLS certificate", "mqtt.listen"][..]),
        ("[http]\nlisten = \"0.0.0.0:0\"\ntokens = \"required\"\nhosts = [\"hub\"]\n", &["http.listen"]),
        (&format!("[recording]\nfile = {nowhere:?}\n"), &["cannot write the recording"]),
        ("[confirm]\ncode_file = \"/nowhere\"\n", &["confirm.code_file"]),
        ("[[endpoint]]\nname = \"kitchen\"\nurl = \"ftp://x\"\n", &["kitchen"]),
    ];
    // Each by itself, and all together.
    let single = pieces.iter().map(|(text, words)| ((*text).to_owned(), words.to_vec()));
    let all = (pieces.map(|(text, _)| text).concat(), pieces.map(|(_, words)| words).concat());
    for (text, words) in single.chain([all]) {
        fs::write(&config, &text).unwrap();
        let file = config.to_str().unwrap();
        let told = |arguments: &[&str]| {
            let (code, said) = run(&data, arguments, "");
            assert_eq!(code, USAGE, "{arguments:?} {text}: {said}");
            assert!(words.iter().all(|word| said.contains(word)), "{words:?} are not all in: {said}");
            let mistakes = said.split_once("truetwin: ").unwrap().1;
            mistakes.to_owned()
        };
        let (serve, check) = (told(&["serve", "--config", file]), told(&["check-config", "--config", file]));
        assert_eq!(serve, check, "{text}");
        assert!(!data.exists(), "what is refused leaves nothing behind");
    }
    // With what was missing, both are content.
    fs::write(&config, "[mqtt]\ntls = \"only\"\nlisten = \"0.0.0.0:0\"\n").unwrap();
    assert_eq!(run(&data, &["tls", "make"], "").0, 0);
    password_of(&data, "lamp");
    let (code, said) = run(&data, &["check-config", "--config", config.to_str().unwrap()], "");
    assert!(code == 0 && said.contains("tls = \"only\""), "{said}");
    let (hub, ..) = started(folder.path(), &data, &["--config", config.to_str().unwrap(), "--http", "127.0.0.1:0"]);
    // A hub that has the folder is no mistake, and what it takes is told to whoever makes a device.
    assert_eq!(run(&data, &["check-config", "--config", config.to_str().unwrap()], "").0, 0);
    for command in [&["device", "add", "board"][..], &["account", "add", "ha", "--read", "a"]] {
        let (code, said) = run(&data, command, "");
        assert!(code == 0 && said.contains("mqtt.tls") && said.contains("tls show"), "{said}");
    }
    hub.stop();
}

#[test]
fn a_certificate_that_is_named_and_not_there_is_told_with_its_full_path_and_what_helps() {
    let folder = tempfile::tempdir().unwrap();
    let (data, config) = (folder.path().join("data"), folder.path().join("hub.toml"));
    fs::write(&config, "[mqtt]\ntls = \"both\"\ntls_cert_file = \"nix.pem\"\ntls_key_file = \"nix.key\"\n").unwrap();
    let config = config.to_str().unwrap();
    let looked_at = folder.path().join("nix.pem").display().to_string();
    let (code, checked) = run(&data, &["check-config", "--config", config], "");
    assert_eq!(code, USAGE, "{checked}");
    let begun = refused(&data, &["--config", config, "--mqtt", "127.0.0.1:0", "--http", "127.0.0.1:0"]);
    for said in [checked, begun] {
        assert!(said.contains(&looked_at) && said.contains("put it there, or leave both out"), "{said}");
        assert!(!said.contains("makes one"), "tls make writes elsewhere: {said}");
    }
}

#[test]
fn check_config_refuses_a_data_folder_that_serve_refuses_and_changes_nothing_in_it() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let (hub, ..) = started(folder.path(), &data, &["--mqtt", "127.0.0.1:0", "--http", "127.0.0.1:0"]);
    hub.stop();
    let journal = fs::read(data.join("journal.db")).unwrap();
    // As SQLite's `user_version`, in the head at 60.
    let newer = [&journal[..60], &[0, 0, 0, 99], &journal[64..]].concat();
    let newer = newer.as_slice();
    let cases: [(&str, Option<&[u8]>, &str); 13] = [
        ("journal.db", Some(b"garbage"), "is damaged: file is not a database"),
        ("journal.db", Some(&[7; 8_192]), "is damaged: file is not a database"),
        ("journal.db", Some(&journal[..50]), "is damaged: file is not a database"),
        ("journal.db", Some(newer), "has version 99"),
        ("journal.db", None, "cannot be used"),
        ("epoch", Some(b"many\n"), "it holds no whole number"),
        ("epoch", None, "is a folder, where a hub keeps a file of that name; move it away"),
        ("hub.id", Some(b"garbage"), "it does not hold 12 hex digits"),
        ("hub.id", None, "move it away"),
        ("hub.sock", None, "is no socket and was not made by truetwin; move it away"),
        ("hub.sock", Some(b"x"), "is no socket and was not made by truetwin; move it away"),
        ("hub.json", None, "move it away"),
        ("hub.lock", None, "move it away"),
    ];
    let told = |arguments: &[&str]| {
        let (code, said) = run(&data, arguments, "");
        assert_eq!(code, USAGE, "{arguments:?}: {said}");
        said.split_once("truetwin: ").unwrap().1.to_owned()
    };
    for (name, content, problem) in cases {
        let (path, kept) = (data.join(name), folder.path().join("kept"));
        let was_there = fs::rename(&path, &kept).is_ok();
        content.map_or_else(|| fs::create_dir(&path), |bytes| fs::write(&path, bytes)).unwrap();
        let names = || -> std::collections::BTreeSet<_> {
            fs::read_dir(&data).unwrap().map(|entry| entry.unwrap().file_name()).collect()
        };
        let before = names();
        let check = told(&["check-config"]);
        assert!(check.contains(problem) && check.contains(name), "{name}, {problem}: {check}");
        assert_eq!(told(&["serve", "--mqtt", "127.0.0.1:0", "--http", "127.0.0.1:0"]), check);
        assert_eq!(names(), before, "{name}: nothing is made, nothing goes");
        content.map_or_else(|| fs::remove_dir(&path), |_| fs::remove_file(&path)).unwrap();
        if was_there {
            fs::rename(&kept, &path).unwrap();
        }
    }
    // A hub whose memory is off does not open its journal.
    fs::write(data.join("journal.db"), "garbage").unwrap();
    let config = folder.path().join("off.toml");
    fs::write(&config, "[journal]\nkeep = \"off\"\n").unwrap();
    assert_eq!(run(&data, &["check-config", "--config", config.to_str().unwrap()], "").0, 0);
}

#[test]
fn each_secret_in_a_file_that_others_can_read_is_refused_with_the_command_that_mends_it() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let secret = folder.path().join("secret");
    assert_eq!(run(&data, &["tls", "make"], "").0, 0);
    fs::copy(data.join("hub.key"), &secret).unwrap();
    let (cert, file) = (data.join("hub.pem"), secret.display().to_string());
    let tls = format!("[mqtt]\ntls = \"both\"\ntls_cert_file = {cert:?}\ntls_key_file = {file:?}\n");
    let token =
        format!("[[endpoint]]\nname = \"k\"\nurl = \"ws://127.0.0.1:9/mcp_endpoint/mcp/\"\ntoken_file = {file:?}\n");
    let code = format!("[confirm]\ncode_file = {file:?}\n");
    for text in [&tls, &token, &code] {
        let config = folder.path().join("hub.toml");
        fs::write(&config, text).unwrap();
        for exposed in [0o640, 0o604, 0o644, 0o660] {
            mode(&secret, exposed);
            let mend = format!("chmod 600 {file}");
            let said = refused(
                &data,
                &["--config", config.to_str().unwrap(), "--mqtt", "127.0.0.1:0", "--http", "127.0.0.1:0"],
            );
            assert!(said.contains(&mend), "{text}: {said}");
            let (code, said) = run(&data, &["check-config", "--config", config.to_str().unwrap()], "");
            assert_eq!(code, USAGE, "{said}");
            assert!(said.contains(&mend), "{text}: {said}");
        }
    }
    // A URL with its token in the configuration makes that the secret.
    let config = folder.path().join("url.toml");
    fs::write(&config, "[[endpoint]]\nname = \"k\"\nurl = \"ws://127.0.0.1:9/mcp_endpoint/mcp/?token=x\"\n").unwrap();
    mode(&config, 0o644);
    let said = refused(&data, &["--config", config.to_str().unwrap()]);
    assert!(said.contains(&format!("chmod 600 {}", config.display())), "{said}");
    // A device's own password, and one for an account.
    mode(&secret, 0o644);
    let sim = ["sim", "--mqtt", "127.0.0.1:9", "--device", "lamp", "--password-file", &file];
    let account = ["account", "add", "ha", "--password-file", &file];
    for arguments in [&sim[..], &account[..]] {
        let (code, said) = run(&data, arguments, "");
        assert_eq!(code, USAGE, "{said}");
        assert!(said.contains(&format!("chmod 600 {file}")), "{said}");
    }
}

#[test]
fn every_setting_that_has_to_do_with_a_secret_names_a_file_or_a_variable() {
    let example = truetwin::config::Config::example();
    let key = |line: &'static str| {
        let line = line.trim_start_matches("# ");
        line.split_once(" = ")
            .or_else(|| line.split_once(" takes "))
            .map(|(key, _)| key)
            .filter(|key| !key.contains(' '))
    };
    let keys = String::leak(example).lines().filter_map(key);
    let words = ["password", "secret", "token", "key", "code", "url", "credential"];
    let mut about: Vec<&str> = keys.filter(|key| words.iter().any(|word| key.contains(word))).collect();
    about.sort_unstable();
    about.dedup();
    // `tokens` says whether tokens are wanted; `url` is a secret with its token in it, and then the file has to be the owner's alone.
    assert_eq!(about, ["code_file", "tls_key_file", "token_env", "token_file", "tokens", "url"]);
}

#[test]
fn whoever_is_slow_on_any_port_keeps_nobody_out() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    assert_eq!(run(&data, &["tls", "make", "localhost"], "").0, 0);
    let password = password_of(&data, "lamp");
    let config = folder.path().join("hub.toml");
    fs::write(&config, "[mqtt]\ntls = \"both\"\n").unwrap();
    let arguments = ["--config", config.to_str().unwrap(), "--mqtt", "127.0.0.1:0", "--http", "127.0.0.1:0"];
    let (hub, mqtt, http) = started(folder.path(), &data, &arguments);
    let mut slow = Vec::new();
    let beginnings: [(&str, &[u8]); 8] = [
        (&mqtt, b""),
        (&mqtt, b"\x10\x60\0\x04MQ"),
        (&mqtt, b"\x16"),
        (&mqtt, b"\x16\x03\x01\x02\x00\x01\x00"),
        (&http, b""),
        (&http, b"POST /mcp HT"),
        (&http, b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nX-"),
        (
            &http,
            b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 900\r\nContent-Type: application/json\r\n\r\n{",
        ),
    ];
    for _ in 0..20 {
        for (to, bytes) in beginnings {
            let mut socket = TcpStream::connect(to).unwrap();
            socket.write_all(bytes).unwrap();
            slow.push(socket);
        }
    }
    for _ in 0..truetwin::control::CONNECTIONS_MAX - 1 {
        let mut socket = std::os::unix::net::UnixStream::connect(data.join("hub.sock")).unwrap();
        socket.write_all(b"{\"request\":").unwrap();
        Box::leak(Box::new(socket));
    }
    assert_eq!(connack(TcpStream::connect(&mqtt).unwrap(), "lamp", &password), [0x20, 2, 0, 0]);
    let mut page = TcpStream::connect(&http).unwrap();
    page.write_all(b"GET /healthz HTTP/1.0\r\nHost: localhost\r\n\r\n").unwrap();
    let mut answer = String::new();
    page.read_to_string(&mut answer).unwrap();
    assert!(answer.contains("200 OK") && answer.ends_with("ok\n"), "{answer}");
    let (code, listed) = run(&data, &["device", "list"], "");
    assert_eq!(code, 0, "{listed}");
    assert!(listed.contains("lamp"), "{listed}");
    // In the end they are closed, all of them: the slowest bound is ten seconds.
    for mut socket in slow {
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut rest = Vec::new();
        let _closed_or_reset = socket.read_to_end(&mut rest);
    }
    hub.stop();
}
