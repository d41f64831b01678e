//! The configuration: the example, its mistakes and its rules.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::path::Path;

use truetwin::{
    config::{Config, Error, Place},
    names::Lang,
    property::{Class, Description, DeviceId, Evidence, Kind, Predicate, Property, Role, Terms, Value},
};

const EXAMPLE: &str = "deploy/truetwin.toml";

/// Whether golden files are to be written instead of compared.
fn update() -> bool {
    std::env::var_os("UPDATE_GOLDEN").is_some_and(|value| value == "1")
}

#[test]
fn the_example_is_what_the_code_generates() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(EXAMPLE);
    if update() {
        std::fs::write(&path, Config::example()).expect("the example can be written");
    }
    let found = std::fs::read_to_string(&path).expect("the example is there; UPDATE_GOLDEN=1 writes it");
    assert_eq!(found, Config::example(), "{EXAMPLE} is old; UPDATE_GOLDEN=1 writes it anew");
}

#[test]
fn the_example_holds_the_defaults() {
    assert_eq!(Config::parse("example", &Config::example()).unwrap(), Config::default());
    assert_eq!(Config::load(None).unwrap(), Config::default());
}

#[test]
fn all_mistakes_of_a_file_are_told_at_once() {
    let error = |text: &str| Config::parse("f", text).unwrap_err().to_string();
    let text = "langauge = \"en\"\n[timing]\nack_ms = \"soon\"\nbroker_ms = 0\n[mqtt]\nlisten = 3\n";
    let told = error(text);
    assert!(told.starts_with("4 mistakes:\n  f:1:1: unknown key langauge"), "{told}");
    for place in ["f:3:10", "f:4:13", "f:6:10"] {
        assert!(told.contains(place), "{place}: {told}");
    }
    // The rules between settings as well.
    let told = error("[http]\nlisten = \"0.0.0.0:80\"\n[confirm]\nearliest_ms = 100\nlatest_ms = 50\n");
    assert!(told.starts_with("2 mistakes:") && told.contains("f:2:10") && told.contains("f:5:13"), "{told}");
    // A file that is wrong from end to end does not flood its reader.
    let told = error(&(0..1_000).map(|number| format!("k{number} = 1\n")).collect::<String>());
    assert!(told.starts_with("1000 mistakes:") && told.ends_with("and 980 more"), "{told}");
    assert_eq!(told.lines().count(), 22);
}

#[test]
fn the_device_in_the_example_can_be_uncommented() {
    let is_sample = |line: &&str| line.starts_with("# [") || line.starts_with("# ") && line.contains(" = ");
    let example = Config::example();
    let sample: Vec<&str> = example.lines().filter(is_sample).map(|line| &line[2..]).collect();
    let config = Config::parse("sample", &sample.join("\n")).unwrap();
    let id = DeviceId::new("desk-lamp").unwrap();
    assert_eq!(config.name(&id).label.zh, "台灯");
    let relay = config.property(&id, "relay").unwrap();
    assert_eq!(
        (relay.stable_ms, relay.required_evidence, relay.expected_ms),
        (Some(200), Some(Evidence::Firmware), Some(300))
    );
    assert_eq!(config.scenes[0].label.zh, "回家");
}

#[test]
fn s7_1_a_scene_is_read_shown_and_read_again_and_each_mistake_has_its_line() {
    let text = "[[scene]]\nname = \"movie\"\nmembers = [\n  { device = \"lamp\", property = \"brightness\", value = 20 },\n  \
                { device = \"tv\", property = \"mode\", value = \"cinema\", required = false },\n]\n[[scene]]\nname_zh = \"回家\"\n\
                members = [{ device = \"ac\", property = \"target\", value = 21.5 }]\n";
    let config = Config::parse("mine", text).unwrap();
    assert_eq!(Config::parse("shown", &config.in_force()).unwrap(), config);
    assert_eq!((config.scenes.len(), config.scenes[0].members[1].required), (2, false));
    let cases = [
        ("scene = 3", "f:1:9: scene is of type integer"),
        ("[[scene]]\nnmae = \"x\"", "f:2:1: unknown key scene.0.nmae, did you mean name?"),
        ("[[scene]]\nmembers = []", "f:1:1: scene.0 is without a name"),
        ("[[scene]]\nname = \"x\"", "f:1:1: scene.0 is without members"),
        (
            "[[scene]]\nname = \"x\"\nmembers = [{ device = \"a\" }]",
            "f:3:12: scene.0.members.0 is without property; it takes a name",
        ),
        (
            "[[scene]]\nname = \"x\"\nmembers = [{ device = \"a\", property = \"b\", value = true }, \
             { device = \"a\", property = \"b\", value = false }]",
            "f:3:60: scene.0.members.1 is b of a a second time",
        ),
        ("[[scene]]\nname = \"x\"\nmembers = [{ dev = 1 }]", "f:3:14: unknown key scene.0.members.0.dev"),
    ];
    for (text, expected) in cases {
        let error = Config::parse("f", text).expect_err(text).to_string();
        assert!(error.starts_with(expected), "{text:?} gave {error:?}");
    }
}

#[test]
fn s2_9_a_property_may_have_a_name_and_a_room_of_its_own() {
    let text = "[devices.board]\nname = \"board\"\nproposed_names = \"accept\"\n[devices.board.properties.relay2]\nname_zh = \"走廊灯\"\nroom = \"hall\"\n";
    let name = Config::parse("f", text).unwrap().name(&DeviceId::new("board").unwrap());
    assert!(name.proposals);
    let [part] = name.parts.as_slice() else { panic!("one part") };
    assert_eq!((&*part.property, part.label.as_ref().unwrap().get(Lang::En)), ("relay2", "走廊灯"));
    assert_eq!(part.room.as_ref().unwrap().get(Lang::Zh), "hall");
}

#[test]
fn s3_10_what_verifies_what_is_read_and_written_again() {
    let text = "[devices.pump.properties.power]\npredicate = \"within\"\nclass = \"held\"\naccepted = \"yes\"\n\
                by_action = \"true = start, false = halt\"\nverify_with = \"meter.watts\"\n\
                verify_expect = \"true: at_least 5.5; false: at_most 1; changes_by -2\"\nverify_within_ms = 9\n";
    let config = Config::parse("f", text).unwrap();
    assert_eq!(Config::parse("again", &config.in_force()).unwrap(), config);
    let pump = DeviceId::new("pump").unwrap();
    let mut power = truetwin_property("power");
    power.settable = false;
    let over = config.overridden(&pump, &Description { properties: vec![power], ..Description::default() });
    let power = &over.properties[0];
    let verify = power.terms.verify.as_ref().unwrap();
    assert_eq!((verify.device.as_str(), &*verify.property, verify.within_ms), ("meter", "watts", 9));
    assert_eq!(verify.of_wish(&Value::Bool(true)), Some(&Predicate::AtLeast(5.5)));
    assert_eq!(verify.of_wish(&Value::Bool(false)), Some(&Predicate::AtMost(1.0)));
    assert_eq!(verify.of_wish(&Value::Integer(3)), Some(&Predicate::ChangesBy(-2.0)));
    assert_eq!(power.terms.by_action[1], (Value::Bool(false), "halt".into()));
    assert!(power.settable && power.terms.accepted && power.class == Class::Held);
}

#[test]
fn s3_10_a_verifier_without_a_condition_is_refused_and_so_is_a_condition_that_is_none() {
    let section = "[devices.pump.properties.power]\n";
    let error = Config::parse("f", &format!("{section}verify_with = \"meter.watts\"")).unwrap_err().to_string();
    assert!(error.contains("verify_expect"), "{error}");
    let itself = format!("{section}verify_with = \"pump.power\"\nverify_expect = \"true: equals true\"");
    let error = Config::parse("f", &itself).unwrap_err().to_string();
    assert!(error.contains("itself"), "{error}");
    for bad in [
        "verify_with = \"meter\"",
        "verify_with = \"Meter.watts\"",
        "verify_expect = \"at_least\"",
        "verify_expect = \"at_least 1 2\"",
        "verify_expect = \"within 1 -2\"",
        "verify_expect = \"more 1\"",
        "verify_expect = \"at_least nan\"",
        "by_action = \"true\"",
        "by_action = \"=x\"",
        "accepted = \"no\"",
        "predicate = \"near\"",
    ] {
        let error = Config::parse("f", &format!("{section}{bad}")).expect_err(bad).to_string();
        assert!(error.contains("it takes"), "{bad}: {error}");
    }
}

fn truetwin_property(name: &str) -> Property {
    Property {
        name: name.into(),
        role: Role::Pump,
        kind: Kind::Bool,
        unit: None,
        min: None,
        max: None,
        step: None,
        tolerance: None,
        values: Vec::new(),
        class: Class::Momentary,
        feedback: Evidence::Pin,
        expected_ms: 300,
        stable_ms: 200,
        min_interval_ms: 0,
        settable: true,
        repeatable: true,
        terms: Terms::default(),
    }
}

#[test]
fn s3_5_the_owner_may_be_content_with_less_evidence_and_what_is_reported_stands() {
    let config = Config::parse("f", "[devices.a.properties.relay]\nrequired_evidence = \"firmware\"").unwrap();
    let description = Description { properties: vec![truetwin_property("relay")], ..Description::default() };
    let over = config.overridden(&DeviceId::new("a").unwrap(), &description);
    assert_eq!(over.properties[0].feedback, Evidence::Pin);
    assert_eq!(over.properties[0].terms.required, Some(Evidence::Firmware));
}

#[test]
fn what_is_in_force_gives_the_same_again() {
    let text = "language = \"zh\"\n[timing]\nanswer_by_ms = 8_000\n[devices.a-1]\nroom = \"say \\\"hi\\\"\"\n\
                [devices.a-1.properties.\"温度 1\"]\nstable_ms = 5\n";
    let config = Config::parse("mine", text).unwrap();
    let shown = config.in_force();
    assert_eq!(Config::parse("shown", &shown).unwrap(), config);
    assert!(shown.contains("answer_by_ms = 8000  # default 30000\n"), "{shown}");
    assert!(shown.contains("\nack_ms = 1000\n"), "{shown}");
}

#[test]
fn an_unknown_key_is_an_error_with_its_line_and_the_near_one() {
    let error = Config::parse("f.toml", "[mqtt]\nlisten = \"127.0.0.1:1\"\n\n  listne = 3\n").unwrap_err();
    let Error::UnknownKey { place, key, near, .. } = &error else { panic!("{error:?}") };
    assert_eq!(place, &Place { file: "f.toml".into(), line: 4, column: 3 });
    assert_eq!((key.as_str(), near.as_deref()), ("mqtt.listne", Some("listen")));
    let said = "f.toml:4:3: unknown key mqtt.listne, did you mean listen?; known here: listen, tls, ";
    assert!(error.to_string().starts_with(said), "{error}");
}

#[test]
fn each_mistake_names_the_place_and_what_is_allowed() {
    let cases = [
        ("x = ", "1:5: "),
        ("[timing]\nack_ms = \"1s\"", "2:10: timing.ack_ms is \"1s\"; it takes a whole number from 10 to 60000"),
        ("[timing]\nack_ms = 9", "2:10: timing.ack_ms is 9; it takes a whole number from 10 to 60000"),
        ("[timing]\nack_ms = 1.5", "2:10: timing.ack_ms is of type float; it takes a whole number"),
        ("[timing]\nack_ms = 99999999999999999999", "2:10: timing.ack_ms is of type integer"),
        ("[timing]\nack_ms = -1", "2:10: timing.ack_ms is -1;"),
        ("timing = 3", "1:10: timing is of type integer; it takes a table"),
        ("language = \"de\"", "1:12: language is \"de\"; it takes \"en\" or \"zh\""),
        ("[http]\nlisten = \"localhost:8080\"", "2:10: http.listen is \"localhost:8080\"; it takes an IP address"),
        ("[devices.Lamp]", "1:10: devices is \"Lamp\"; it takes ids of 1 to 32 of a-z, 0-9, _ and -"),
        ("[devices.lamp]\nname = \"\"", "2:8: devices.lamp.name is \"\"; it takes a text of 1 to 32"),
        ("[devices.lamp]\nname = \"a\\nb\"", "2:8: devices.lamp.name is"),
        ("[devices.lamp]\nnmae = \"a\"", "2:1: unknown key devices.lamp.nmae, did you mean name?"),
        (
            "[devices.lamp.properties.relay]\nrequired_evidence = \"received\"",
            "2:21: devices.lamp.properties.relay.required_evidence is \"received\"; it takes \"firmware\" or \"pin\"",
        ),
        ("[mqtt]\nlisten = \"127.0.0.1:1\"\nlisten = \"127.0.0.1:1\"", "3:1: "),
    ];
    for (text, expected) in cases {
        let error = Config::parse("f", text).expect_err(text).to_string();
        assert!(error.starts_with(&format!("f:{expected}")), "{text:?} gave {error:?}, not {expected:?}");
    }
}

#[test]
fn a_name_over_32_characters_is_refused_and_one_of_32_chinese_ones_is_not() {
    let named = |name: &str| Config::parse("f", &format!("[devices.a]\nname = \"{name}\""));
    assert!(named(&"灯".repeat(32)).is_ok());
    assert!(named(&"灯".repeat(33)).is_err());
}

#[test]
fn mqtt_may_be_opened_to_the_network_and_http_only_with_tokens() {
    assert!(Config::parse("f", "[mqtt]\nlisten = \"0.0.0.0:1883\"").is_ok());
    assert!(Config::parse("f", "[http]\nlisten = \"[::1]:8080\"").is_ok());
    let error = Config::parse("f", "[http]\nlisten = \"0.0.0.0:8080\"").unwrap_err().to_string();
    assert!(error.starts_with("f:2:10: http.listen (--http) is 0.0.0.0:8080: "), "{error}");
    assert!(error.contains("loopback") && error.contains("http.tokens = \"required\""), "{error}");
    let open = Config::parse("f", "[http]\nlisten = \"0.0.0.0:8080\"\ntokens = \"required\"\nhosts = [\"hub.local\"]")
        .unwrap();
    assert_eq!(open.http.hosts, ["hub.local"]);
    assert_eq!(Config::parse("shown", &open.in_force()).unwrap(), open);
}

#[test]
fn callers_and_endpoints_are_read_shown_and_read_again_and_each_mistake_has_its_line() {
    let text = "[callers.stdio]\nread = [\"*\"]\n[callers.http]\ndevices = [\" study \", \"客厅的灯\"]\nlanguage = \"zh\"\n\
                budget_ms = 9000\n[[endpoint]]\nname = \"kitchen\"\nurl = \"wss://api.xiaozhi.me/mcp/\"\ntoken_env = \"T\"\n\
                devices = []\nroom = \"kitchen\"\nboxes = 2\nbudget_ms = 20000\nfailure_style = \"is_error\"\n\
                profile = \"relay\"\n[[endpoint]]\nname = \"attic\"\n";
    let config = Config::parse("mine", text).unwrap();
    assert_eq!(Config::parse("shown", &config.in_force()).unwrap(), config);
    assert_eq!(config.callers.http.devices, Some(vec!["study".to_owned(), "客厅的灯".to_owned()]));
    assert_eq!((config.endpoints[0].boxes, config.endpoints[0].devices.as_deref()), (2, Some(&[][..])));
    assert_eq!((config.endpoints[1].boxes, config.endpoints[1].budget_ms), (1, 8_000));
    let many = format!("[callers.http]\nread = [{}]", "\"a\",".repeat(129));
    let cases = [
        ("[callers.ftp]", "f:1:10: unknown key callers.ftp; known here: http, stdio"),
        (
            "[callers.http]\ndevices = \"lamp\"",
            "f:2:11: callers.http.devices is \"lamp\"; it takes a list of at most 128 texts",
        ),
        ("[callers.http]\ndevices = [1]", "f:2:11: callers.http.devices is of type array; it takes a list"),
        ("[callers.http]\ndevices = [\"\"]", "f:2:11: callers.http.devices is [\"\"]; it takes a list"),
        (&many, "f:2:8: callers.http.read is [\"a\", "),
        ("[[endpoint]]\nboxes = 2", "f:1:1: endpoint.0 is without a name"),
        ("[[endpoint]]\nname = \"Küche\"", "f:1:1: endpoint.0.name is \"Küche\"; it takes 1 to 32 of a-z"),
        ("[[endpoint]]\nname = \"a\"\n[[endpoint]]\nname = \"a\"", "f:3:1: endpoint.1 is \"a\" a second time"),
        (
            "[[endpoint]]\nname = \"a\"\nfailure_style = \"loud\"",
            "f:3:17: endpoint.0.failure_style is \"loud\"; it takes \"text\" or",
        ),
        ("[[endpoint]]\nname = \"a\"\ntoken_env = \"T\"", "f:1:1: endpoint.0 is with a token and without a url"),
        (
            "[[endpoint]]\nname = \"a\"\nurl = \"ws://h/?token=s3cret\"\ntoken_env = \"T\"",
            "f:1:1: endpoint.0 is with several tokens",
        ),
        (
            "[[endpoint]]\nname = \"a\"\nbudget_ms = 300000",
            "f:3:13: endpoint.0.budget_ms is 300000; it takes a whole number from",
        ),
        ("[[endpoint]]\nname = \"a\"\nbudget_ms = 3050", "budget_ms of endpoint a is 3050; more than"),
        ("[[endpoint]]\nname = \"a\"\nurl = 7", "f:3:7: endpoint.0.url is 7; it takes a text"),
    ];
    for (text, expected) in cases {
        let error = Config::parse("f", text).expect_err(text).to_string();
        assert!(error.starts_with(expected), "{text:?} gave {error:?}");
    }
}

#[test]
fn a_token_in_the_file_is_never_shown_and_nobody_else_may_read_the_file() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.toml");
    let mode = |mode| std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
    std::fs::write(&path, "[[endpoint]]\nname = \"a\"\nurl = \"wss://h/mcp/?token=s3cret\"\n").unwrap();
    for open in [0o644, 0o640, 0o606] {
        mode(open);
        let error = Config::load(Some(&path)).unwrap_err().to_string();
        assert!(error.contains("t.toml:3:7: endpoint.0.url holds a token"), "{error}");
        assert!(error.contains(&format!("chmod 600 {}", path.display())) && !error.contains("s3cret"), "{error}");
    }
    mode(0o600);
    let config = Config::load(Some(&path)).unwrap();
    assert_eq!(config.endpoints[0].url.as_ref().unwrap().reveal(), "wss://h/mcp/?token=s3cret");
    assert!(!format!("{config:?}").contains("s3cret") && !config.in_force().contains("s3cret"));
    // A wrong one is not quoted either.
    let long = format!("[[endpoint]]\nname = \"a\"\nurl = \"s3cret{}\"", "x".repeat(5_000));
    let error = Config::parse("f", &long).unwrap_err().to_string();
    assert!(error.contains("a text of 5006 characters") && !error.contains("s3cret"), "{error}");
}

#[test]
fn a_token_file_lies_beside_the_configuration_and_nobody_else_may_read_it() {
    use std::os::unix::fs::PermissionsExt as _;
    use truetwin::config::endpoint_token;
    let folder = tempfile::tempdir().unwrap();
    let (path, token) = (folder.path().join("t.toml"), folder.path().join("a.token"));
    std::fs::write(&path, "[[endpoint]]\nname = \"a\"\nurl = \"wss://h/mcp/\"\ntoken_file = \"a.token\"\n").unwrap();
    let config = Config::load(Some(&path)).unwrap();
    let endpoint = &config.endpoints[0];
    assert!(endpoint_token(endpoint).unwrap_err().to_string().contains("cannot read token_file"));
    std::fs::write(&token, " s3cret\n").unwrap();
    let mode = |mode| std::fs::set_permissions(&token, std::fs::Permissions::from_mode(mode)).unwrap();
    mode(0o644);
    let error = endpoint_token(endpoint).unwrap_err().to_string();
    assert!(error.contains(&format!("chmod 600 {}", token.display())), "{error}");
    mode(0o600);
    assert_eq!(endpoint_token(endpoint).unwrap().unwrap().reveal(), "s3cret");
    for bad in ["", "two words", &"x".repeat(5_000)] {
        std::fs::write(&token, bad).unwrap();
        assert!(endpoint_token(endpoint).unwrap_err().to_string().contains("holds no token"));
    }
}

#[test]
fn s4_8_a_limit_in_which_nothing_could_begin_is_refused() {
    let with =
        |answer_by_ms| Config::parse("f", &format!("[timing]\nanswer_by_ms = {answer_by_ms}\nwait_online_ms = 0"));
    assert!(with(3_051).is_ok());
    let error = with(3_050).unwrap_err().to_string();
    assert!(error.starts_with("f:2:16: timing.answer_by_ms is 3050; more than "), "{error}");
    assert!(error.contains("(3050)"), "{error}");
}

#[test]
fn the_other_rules_between_settings_name_the_key_to_change() {
    let cases = [
        ("[timing]\nact_by_max_ms = 2999", "timing.act_by_max_ms is 2999"),
        ("[timing]\nwait_online_ms = 29_950", "timing.wait_online_ms is 29950"),
        ("[mqtt]\ncredit_bytes = 65535", "mqtt.credit_bytes is 65535; at least 16 times mqtt.packet_bytes_max (65536)"),
        ("[mqtt]\nlisten = \"127.0.0.1:8080\"", "http.listen (--http) is 127.0.0.1:8080, the same as mqtt.listen"),
    ];
    for (text, expected) in cases {
        let error = Config::parse("f", text).expect_err(text).to_string();
        assert!(error.contains(expected), "{text:?} gave {error:?}");
    }
    let free = "[mqtt]\nlisten = \"127.0.0.1:0\"\n[http]\nlisten = \"127.0.0.1:0\"";
    assert!(Config::parse("f", free).is_ok(), "two free ports are two ports");
}

#[test]
fn what_the_command_line_changed_is_checked_too() {
    let mut config = Config::default();
    config.http.listen = "192.168.1.5:80".parse().unwrap();
    assert!(config.check().unwrap_err().to_string().starts_with("http.listen (--http) is 192.168.1.5:80"));
}

#[test]
fn s2_9_one_name_serves_both_languages_and_without_one_the_id_is_the_name() {
    let text = "[devices.a]\nname = \"lamp\"\nroom_zh = \"书房\"\n[devices.b]\nname = \"fan\"\nname_zh = \"风扇\"";
    let config = Config::parse("f", text).unwrap();
    let [a, b, c] = ["a", "b", "c"].map(|id| config.name(&DeviceId::new(id).unwrap()));
    assert_eq!((a.label.get(Lang::En), a.label.get(Lang::Zh)), ("lamp", "lamp"));
    assert_eq!(a.room.unwrap().get(Lang::En), "书房");
    assert_eq!((b.label.get(Lang::En), b.label.get(Lang::Zh), b.room), ("fan", "风扇", None));
    assert_eq!((c.label.get(Lang::En), c.label.get(Lang::Zh)), ("c", "c"));
}

#[test]
fn what_is_probably_not_meant_is_noted() {
    let text = "[devices.a]\nname = \"lamp\"\n[devices.b]\nname = \"lamp\"\n[devices.c]\nname = \"lamp\"\nroom = \"hall\"\n\
                [[endpoint]]\nname = \"e\"\nroom = \"hall\"\nboxes = 2\n";
    let notes = Config::parse("f", text).unwrap().notes();
    assert_eq!(
        notes,
        [
            "a and b are both called lamp: they can be told apart by id only",
            "endpoint e: room hall does nothing while 2 boxes speak through it",
        ]
    );
}

#[test]
fn a_file_that_is_not_there_or_no_text_is_an_error_that_names_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.toml");
    assert!(Config::load(Some(&path)).unwrap_err().to_string().contains("t.toml"));
    std::fs::write(&path, [0xff, 0xfe]).unwrap();
    assert!(matches!(Config::load(Some(&path)).unwrap_err(), Error::Unreadable { .. }));
    std::fs::write(&path, "#".repeat(1_048_577)).unwrap();
    assert!(matches!(Config::load(Some(&path)).unwrap_err(), Error::TooLong { .. }));
    std::fs::write(&path, "\u{feff}language = \"zh\"\r\n").unwrap();
    assert_eq!(Config::load(Some(&path)).unwrap().language(), Lang::Zh);
}
