//! The data folder: one holder, epochs that grow, credentials that are kept and never shown.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::{os::unix::fs::PermissionsExt as _, path::Path};

use truetwin::{
    data::{
        ACCOUNTS_MAX, DataFolder, ENDPOINTS_MAX, Error, HubJson, Proof, Secret, StoredEndpoint, URL_BYTES_MAX,
        read_hub_json,
    },
    property::DeviceId,
    topics::Rights,
};

fn id(name: &str) -> DeviceId {
    DeviceId::new(name).unwrap()
}

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn the_folder_is_made_private_and_so_is_each_file_in_it() {
    let outer = tempfile::tempdir().unwrap();
    let path = outer.path().join("a/b");
    let folder = DataFolder::open(&path).unwrap();
    folder.credentials().add(&id("lamp")).unwrap();
    folder.write_hub_json("127.0.0.1:1".parse().unwrap(), "127.0.0.1:2".parse().unwrap(), "off", 3).unwrap();
    assert_eq!(mode(&path), 0o700);
    let mut names = Vec::new();
    for entry in std::fs::read_dir(&path).unwrap() {
        let path = entry.unwrap().path();
        assert_eq!(mode(&path), 0o600, "{}", path.display());
        names.push(path.file_name().unwrap().to_str().unwrap().to_owned());
    }
    names.sort();
    assert_eq!(names, ["devices.json", "epoch", "hub.id", "hub.json", "hub.lock"]);
}

#[test]
fn a_second_holder_is_told_who_has_the_folder() {
    let path = tempfile::tempdir().unwrap();
    let first = DataFolder::open(path.path()).unwrap();
    let error = DataFolder::open(path.path()).unwrap_err();
    assert!(error.to_string().contains(&format!("by process {}", std::process::id())), "{error}");
    assert!(matches!(DataFolder::open_offline(path.path()), Err(Error::Taken { .. })));
    let forgotten = first.credentials();
    drop(first);
    let second = DataFolder::open(path.path()).expect("a forgotten clone of the credentials does not hold the folder");
    assert!(matches!(forgotten.add(&id("lamp")), Err(Error::Closed { .. })), "nor may it write any more");
    assert!(second.credentials().list().is_empty());
}

#[test]
fn the_hub_id_stays_and_the_epoch_grows_with_each_start() {
    let path = tempfile::tempdir().unwrap();
    let open = || {
        let folder = DataFolder::open(path.path()).unwrap();
        (folder.hub_id().to_owned(), folder.epoch())
    };
    let (hub, first) = open();
    assert_eq!((hub.len(), first), (12, 1));
    assert_eq!(open(), (hub.clone(), 2));
    assert_eq!(DataFolder::open_offline(path.path()).unwrap().epoch(), 2, "a command is no start");
    assert_eq!(open(), (hub.clone(), 3));
    let other = tempfile::tempdir().unwrap();
    assert_ne!(DataFolder::open(other.path()).unwrap().hub_id(), hub);
}

/// As the hub keeps it: its owner's alone.
fn write_private(file: &Path, content: &str) {
    std::fs::write(file, content).unwrap();
    std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o600)).unwrap();
}

#[test]
fn a_damaged_or_newer_file_is_an_error_that_names_it_and_changes_nothing() {
    let good = r#"{"version":1,"devices":{"lamp":{"salt":"00112233445566778899aabbccddeeff","sha256":"SHA"}}}"#
        .replace("SHA", &"ab".repeat(32));
    let cases = [
        ("epoch", "", "no whole number"),
        ("epoch", "-3", "no whole number"),
        ("epoch", "18446744073709551615", "no whole number"),
        ("hub.id", "xyz", "12 hex digits"),
        ("devices.json", "", "EOF"),
        ("devices.json", "{\"version\":1,\"devices\":{", "EOF"),
        ("devices.json", "{\"version\":2,\"other\":true}", "version 2, this program knows 1"),
        ("devices.json", "{\"version\":0,\"devices\":{}}", "version 0"),
        ("devices.json", &good.replace("lamp", "La mp"), "no device id"),
        ("devices.json", &good.replace("0011", "00"), "not hex"),
        ("devices.json", &good.replace("\"salt\"", "\"salt2\""), "salt2"),
    ];
    for (name, content, expected) in cases {
        let path = tempfile::tempdir().unwrap();
        drop(DataFolder::open(path.path()).unwrap());
        let file = path.path().join(name);
        write_private(&file, content);
        let error = DataFolder::open(path.path()).expect_err(content).to_string();
        assert!(error.contains(name) && error.contains(expected), "{content:?} in {name} gave {error:?}");
        assert_eq!(std::fs::read_to_string(&file).unwrap(), content);
    }
    let path = tempfile::tempdir().unwrap();
    drop(DataFolder::open(path.path()).unwrap());
    write_private(&path.path().join("devices.json"), &good);
    assert_eq!(DataFolder::open(path.path()).unwrap().credentials().list(), [id("lamp")], "the good one is taken");
}

#[test]
fn a_lost_epoch_is_not_begun_anew_for_a_hub_that_devices_know() {
    let path = tempfile::tempdir().unwrap();
    drop(DataFolder::open(path.path()).unwrap());
    std::fs::remove_file(path.path().join("epoch")).unwrap();
    assert!(matches!(DataFolder::open(path.path()), Err(Error::Damaged { .. })));
    std::fs::remove_file(path.path().join("hub.id")).unwrap();
    assert_eq!(DataFolder::open(path.path()).unwrap().epoch(), 1, "without both it is a new hub");
}

#[test]
fn a_password_counts_for_its_device_alone_and_over_a_restart() {
    let path = tempfile::tempdir().unwrap();
    let folder = DataFolder::open(path.path()).unwrap();
    let credentials = folder.credentials();
    let lamp = credentials.add(&id("lamp")).unwrap();
    let fan = credentials.add(&id("fan")).unwrap();
    let check = |folder: &DataFolder| {
        let credentials = folder.credentials();
        assert!(credentials.verify("lamp", lamp.reveal().as_bytes()));
        assert!(credentials.verify("fan", fan.reveal().as_bytes()));
        assert!(!credentials.verify("lamp", fan.reveal().as_bytes()));
        assert!(!credentials.verify("Lamp", lamp.reveal().as_bytes()));
        assert!(!credentials.verify("nobody", lamp.reveal().as_bytes()));
        assert!(!credentials.verify("nobody", b""));
        assert!(!credentials.verify("lamp", b""));
        assert!(!credentials.verify("lamp", &[b'a'; 70_000]));
        assert_eq!(credentials.list(), [id("fan"), id("lamp")]);
    };
    check(&folder);
    drop(folder);
    check(&DataFolder::open(path.path()).unwrap());
}

#[test]
fn rotating_and_removing_end_the_old_password() {
    let path = tempfile::tempdir().unwrap();
    let folder = DataFolder::open(path.path()).unwrap();
    let credentials = folder.credentials();
    let seen_by_the_door = credentials.clone();
    let old = credentials.add(&id("lamp")).unwrap();
    assert!(matches!(credentials.add(&id("lamp")), Err(Error::DeviceExists(_))));
    let new = credentials.rotate(&id("lamp")).unwrap();
    assert!(!seen_by_the_door.verify("lamp", old.reveal().as_bytes()));
    assert!(seen_by_the_door.verify("lamp", new.reveal().as_bytes()));
    credentials.remove(&id("lamp")).unwrap();
    assert!(!seen_by_the_door.verify("lamp", new.reveal().as_bytes()));
    assert!(matches!(credentials.remove(&id("lamp")), Err(Error::UnknownDevice(_))));
    assert!(matches!(credentials.rotate(&id("lamp")), Err(Error::UnknownDevice(_))));
}

#[test]
fn a_secret_is_in_no_file_and_in_no_debug_output() {
    let path = tempfile::tempdir().unwrap();
    let folder = DataFolder::open(path.path()).unwrap();
    let secret = folder.credentials().add(&id("lamp")).unwrap();
    assert_eq!(secret.reveal().len(), 32);
    for shown in [format!("{secret:?}"), format!("{folder:?}"), format!("{:?}", folder.credentials())] {
        assert!(!shown.contains(secret.reveal()), "{shown}");
    }
    for entry in std::fs::read_dir(path.path()).unwrap() {
        let content = std::fs::read_to_string(entry.unwrap().path()).unwrap();
        assert!(!content.contains(secret.reveal()), "{content}");
    }
}

#[test]
fn what_could_not_be_written_does_not_count() {
    let path = tempfile::tempdir().unwrap();
    let folder = DataFolder::open(path.path()).unwrap();
    // A folder in the place of the file to be written makes the write fail for root as well.
    std::fs::create_dir(path.path().join(".devices.json.new")).unwrap();
    assert!(matches!(folder.credentials().add(&id("lamp")), Err(Error::Io { .. })));
    assert!(folder.credentials().list().is_empty());
}

#[test]
fn hub_json_says_where_the_hub_is_and_goes_with_it() {
    let path = tempfile::tempdir().unwrap();
    assert!(matches!(read_hub_json(path.path()), Err(Error::NoHub { .. })));
    let folder = DataFolder::open(path.path()).unwrap();
    folder.write_hub_json("127.0.0.1:1883".parse().unwrap(), "127.0.0.1:8080".parse().unwrap(), "off", 42).unwrap();
    assert_eq!(
        std::fs::read_to_string(path.path().join("hub.json")).unwrap(),
        r#"{"mqtt":"127.0.0.1:1883","http":"http://127.0.0.1:8080","tls":"off","pid":42}"#
    );
    folder.write_hub_json("0.0.0.0:1883".parse().unwrap(), "[::1]:8080".parse().unwrap(), "only", 42).unwrap();
    let expected =
        HubJson { mqtt: "127.0.0.1:1883".into(), http: "http://[::1]:8080".into(), tls: "only".into(), pid: 42 };
    assert_eq!(read_hub_json(path.path()).unwrap(), expected);
    drop(folder);
    assert!(matches!(read_hub_json(path.path()), Err(Error::NoHub { .. })));
}

#[test]
fn a_killed_hubs_hub_json_is_gone_with_the_next_start() {
    let path = tempfile::tempdir().unwrap();
    std::fs::write(path.path().join("hub.json"), "{\"mqtt\":\"127.0.0.1:1\",\"http\":\"x\",\"pid\":1}").unwrap();
    let _folder = DataFolder::open(path.path()).unwrap();
    assert!(matches!(read_hub_json(path.path()), Err(Error::NoHub { .. })));
}

fn endpoint(name: &str) -> StoredEndpoint {
    let url = Secret::new(format!("wss://api.xiaozhi.me/mcp/?token=sec.{name}.ret"));
    StoredEndpoint { name: name.into(), url, added: "2026-11-30T18:00:00+08:00".into() }
}

#[test]
fn an_endpoint_is_kept_over_a_restart_in_a_private_file_and_is_never_shown() {
    let path = tempfile::tempdir().unwrap();
    let folder = DataFolder::open(path.path()).unwrap();
    let endpoints = folder.endpoints();
    let mut changes = endpoints.changes();
    endpoints.add(endpoint("kitchen")).unwrap();
    endpoints.add(endpoint("bedroom")).unwrap();
    assert!(changes.has_changed().unwrap(), "who dials hears of it");
    changes.mark_unchanged();
    assert!(matches!(endpoints.add(endpoint("kitchen")), Err(Error::EndpointExists(_))));
    assert!(!changes.has_changed().unwrap(), "nothing has changed");
    assert_eq!(mode(&path.path().join("endpoints.json")), 0o600);
    for shown in [format!("{folder:?}"), format!("{endpoints:?}"), format!("{:?}", endpoints.list())] {
        assert!(shown.contains("kitchen") && !shown.contains("sec."), "{shown}");
    }
    drop(folder);
    let folder = DataFolder::open(path.path()).unwrap();
    assert_eq!(folder.endpoints().list(), [endpoint("bedroom"), endpoint("kitchen")]);
    assert!(matches!(endpoints.remove("kitchen"), Err(Error::Closed { .. })), "a forgotten clone writes nothing");
    folder.endpoints().remove("kitchen").unwrap();
    assert!(matches!(folder.endpoints().remove("kitchen"), Err(Error::UnknownEndpoint(_))));
    assert_eq!(folder.endpoints().get("kitchen"), None);
}

#[test]
fn endpoints_have_bounds_and_a_damaged_file_is_named_without_its_tokens() {
    let path = tempfile::tempdir().unwrap();
    let folder = DataFolder::open(path.path()).unwrap();
    let long = StoredEndpoint { url: Secret::new("x".repeat(URL_BYTES_MAX + 1)), ..endpoint("long") };
    assert!(matches!(folder.endpoints().add(long), Err(Error::UrlTooLong)));
    for number in 0..ENDPOINTS_MAX {
        folder.endpoints().add(endpoint(&format!("e{number}"))).unwrap();
    }
    assert!(matches!(folder.endpoints().add(endpoint("more")), Err(Error::TooManyEndpoints)));
    drop(folder);
    let file = path.path().join("endpoints.json");
    let good = std::fs::read_to_string(&file).unwrap();
    for (damage, expected) in [
        (good.replace("\"url\": \"wss", "\"url2\": \"wss"), "line"),
        (good.replace("\"e0\"", "\"E 0\""), "no name of an endpoint"),
        (good.replace("\"version\": 1", "\"version\": 2"), "version 2"),
        (good[..good.len() / 2].to_owned(), "line"),
    ] {
        std::fs::write(&file, &damage).unwrap();
        let error = DataFolder::open(path.path()).unwrap_err().to_string();
        assert!(error.contains("endpoints.json") && error.contains(expected), "{error}");
        assert!(!error.contains("sec."), "{error}");
    }
}

fn rights() -> Rights {
    Rights::new(&["zigbee2mqtt/#"], &["zigbee2mqtt/+/set"]).unwrap()
}

/// Whether this is the password of that account; of one that somebody chose, slowly.
fn is_right(folder: &DataFolder, name: &str, password: &[u8]) -> bool {
    folder.accounts().login(name, password).is_some_and(|login| match login.proof {
        Proof::Seen(right) => right,
        Proof::Slow(chosen) => chosen.is_of(password),
    })
}

#[test]
fn an_account_is_kept_over_a_restart_with_its_rights_and_no_password() {
    let path = tempfile::tempdir().unwrap();
    let folder = DataFolder::open(path.path()).unwrap();
    let made = folder.accounts().add(&id("z2m"), rights(), None).unwrap().expect("a password was made");
    let chosen = Secret::new("correct horse".into());
    assert!(folder.accounts().add(&id("me"), rights(), Some(&chosen)).unwrap().is_none());
    assert!(matches!(folder.accounts().add(&id("me"), rights(), None), Err(Error::AccountExists(_))));
    let short = Secret::new("horse".into());
    assert!(matches!(folder.accounts().add(&id("you"), rights(), Some(&short)), Err(Error::Password(_))));
    assert_eq!(mode(&path.path().join("accounts.json")), 0o600);
    let content = std::fs::read_to_string(path.path().join("accounts.json")).unwrap();
    for shown in [content, format!("{folder:?}"), format!("{:?}", folder.accounts().list())] {
        assert!(shown.contains("z2m") && !shown.contains(made.reveal()) && !shown.contains("horse"), "{shown}");
    }
    let forgotten = folder.accounts();
    drop(folder);
    let folder = DataFolder::open(path.path()).unwrap();
    assert!(matches!(forgotten.remove(&id("me")), Err(Error::Closed { .. })), "a forgotten clone writes nothing");
    assert!(is_right(&folder, "z2m", made.reveal().as_bytes()) && is_right(&folder, "me", b"correct horse"));
    assert!(!is_right(&folder, "z2m", b"correct horse") && !is_right(&folder, "me", made.reveal().as_bytes()));
    assert!(!is_right(&folder, "me", &[b'a'; 70_000]) && !is_right(&folder, "nobody", b""));
    assert_eq!(*folder.accounts().get(&id("me")).unwrap().rights, rights());
    let new = folder.accounts().rotate(&id("me"), None).unwrap().unwrap();
    assert!(is_right(&folder, "me", new.reveal().as_bytes()) && !is_right(&folder, "me", b"correct horse"));
    folder.accounts().remove(&id("me")).unwrap();
    assert!(!is_right(&folder, "me", new.reveal().as_bytes()));
    assert!(matches!(folder.accounts().rotate(&id("me"), None), Err(Error::UnknownAccount(_))));
}

#[test]
fn nobody_is_a_device_and_an_account() {
    let path = tempfile::tempdir().unwrap();
    let folder = DataFolder::open(path.path()).unwrap();
    folder.credentials().add(&id("lamp")).unwrap();
    folder.accounts().add(&id("ha"), rights(), None).unwrap();
    assert!(matches!(folder.accounts().add(&id("lamp"), rights(), None), Err(Error::NameOfDevice(_))));
    assert!(matches!(folder.credentials().add(&id("ha")), Err(Error::NameOfAccount(_))));
    assert!(matches!(folder.credentials().add_all(&[id("fan"), id("ha")]), Err(Error::NameOfAccount(_))));
    assert_eq!(folder.credentials().list(), [id("lamp")], "all of them or none");
    drop(folder);
    let file = path.path().join("accounts.json");
    let both = std::fs::read_to_string(&file).unwrap().replace("\"ha\"", "\"lamp\"");
    std::fs::write(&file, both).unwrap();
    let error = DataFolder::open(path.path()).unwrap_err().to_string();
    assert!(error.contains("accounts.json") && error.contains("lamp is a device, too"), "{error}");
}

#[test]
fn accounts_have_a_bound_and_a_damaged_file_is_named() {
    let path = tempfile::tempdir().unwrap();
    let folder = DataFolder::open(path.path()).unwrap();
    for number in 0..ACCOUNTS_MAX {
        folder.accounts().add(&id(&format!("a{number}")), rights(), None).unwrap();
    }
    assert!(matches!(folder.accounts().add(&id("more"), rights(), None), Err(Error::TooManyAccounts)));
    drop(folder);
    let file = path.path().join("accounts.json");
    let good = std::fs::read_to_string(&file).unwrap();
    for (damage, expected) in [
        (good.replace("\"a0\"", "\"A 0\""), "no device id"),
        (good.replace("\"version\": 1", "\"version\": 2"), "version 2"),
        (good.replace("zigbee2mqtt/+/set", "truetwin/+/command"), "only the hub and each device itself may write"),
        (good.replacen("\"sha256\": \"", "\"sha256\": \"x", 1), "hash of a0"),
        (good[..good.len() / 2].to_owned(), "line"),
    ] {
        std::fs::write(&file, &damage).unwrap();
        let error = DataFolder::open(path.path()).unwrap_err().to_string();
        assert!(error.contains("accounts.json") && error.contains(expected), "{error}");
    }
}

#[test]
fn each_secret_of_the_folder_is_refused_while_others_have_a_right_on_it_and_made_without() {
    let folder = tempfile::tempdir().unwrap();
    let data = DataFolder::open(folder.path()).unwrap();
    data.credentials().add(&id("lamp")).unwrap();
    let rights = Rights::new(&["a/#"], &[]).unwrap();
    data.accounts().add(&id("ha"), rights, None).unwrap();
    drop(data);
    for command in [["token", "add", "tv"], ["tls", "make", "hub"]] {
        let status = std::process::Command::new(env!("CARGO_BIN_EXE_truetwin"))
            .args(command)
            .arg("--data")
            .arg(folder.path())
            .stdout(std::process::Stdio::null())
            .status();
        assert!(status.unwrap().success());
    }
    let endpoints = folder.path().join("endpoints.json");
    write_private(&endpoints, "{\"version\":1,\"endpoints\":{}}");
    for name in ["devices.json", "accounts.json", "tokens.json", "endpoints.json", "ca.key", "hub.key"] {
        let file = folder.path().join(name);
        let mode = |mode| std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600, "{name}");
        for exposed in [0o640, 0o604, 0o620, 0o602, 0o610] {
            mode(exposed);
            let refused = match name {
                "ca.key" => {
                    truetwin::data::make_certificate(folder.path(), &["hub".to_owned()]).unwrap_err().to_string()
                }
                "hub.key" => {
                    let (cert_file, key_file) = (folder.path().join("hub.pem"), file.clone());
                    truetwin::broker::Tls { cert_file, key_file, configured: false, plain: true }
                        .check()
                        .unwrap_err()
                        .to_string()
                }
                _ => DataFolder::open_offline(folder.path()).unwrap_err().to_string(),
            };
            assert!(
                refused.contains(&format!("(mode {exposed:04o}); mend it with: chmod 600 {}", file.display())),
                "{refused}"
            );
        }
        mode(0o600);
        DataFolder::open_offline(folder.path()).unwrap();
    }
}
