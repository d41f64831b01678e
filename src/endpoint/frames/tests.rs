use proptest::prelude::*;
use serde_json::{Map, Value as Json, json};

use super::*;

const UUID: &str = "4f1c2a3b-0000-4000-8000-00000000abcd";

/// The id that is answered.
fn id_of(incoming: &Incoming) -> Option<&Id> {
    match incoming {
        Incoming::Initialize(id)
        | Incoming::Ping(id)
        | Incoming::List(id)
        | Incoming::Call(id, _)
        | Incoming::BadCall(id)
        | Incoming::Unknown(id)
        | Incoming::Invalid(id) => Some(id),
        Incoming::Batch(_) | Incoming::Notification | Incoming::Stray | Incoming::Garbage => None,
    }
}

#[test]
fn ids_are_echoed_as_they_came() {
    let of_a_relay = format!(r#""{UUID}_n_1""#);
    for id in
        ["0", "1", "-7", "1.50", "1e3", "18446744073709551616", r#""0""#, r#""a\u5f71\"b""#, r#""灯""#, &of_a_relay]
    {
        let text = format!(r#"{{"id": {id} ,"jsonrpc":"2.0","method":"ping","params":{{}}}} "#);
        let Incoming::Ping(read) = read(&text) else { panic!("{id}") };
        assert_eq!(pong(&read), format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#));
    }
}

#[test]
fn boxes_behind_a_relay_are_told_apart_and_all_others_are_one() {
    let session = |id: &str| {
        let Incoming::Ping(id) = read(&format!(r#"{{"id":{id},"method":"ping"}}"#)) else { panic!("{id}") };
        id.session().to_owned()
    };
    assert_eq!(session(&format!(r#""{UUID}_n_1""#)), "4f1c2a3b");
    assert_eq!(session(&format!(r#""{UUID}_n_2""#)), "4f1c2a3b");
    for id in ["0", r#""x_n_1""#, r#""_n_""#, r#""灯灯灯灯灯灯灯灯灯灯灯灯_n_1""#] {
        assert_eq!(session(id), "", "{id}");
    }
}

#[test]
fn the_frames_of_both_kinds_are_read() {
    let call = r#"{"id":10,"jsonrpc":"2.0","method":"tools/call","params":{"name":"calculator","arguments":{"python_expression":"130000 * 130000"},"serialNumber":null}}"#;
    let Incoming::Call(_, call) = read(call) else { panic!() };
    assert_eq!((call.tool.as_str(), &call.arguments["python_expression"]), ("calculator", &json!("130000 * 130000")));
    let escaped = r#"{"jsonrpc":"2.0","id":"x","method":"tools/call","params":{"name":"t","arguments":{"device":"\u5f71\u97f3"}}}"#;
    let Incoming::Call(_, call) = read(escaped) else { panic!() };
    assert_eq!(call.arguments["device"], "影音");
    let stuffed =
        r#"{"id":1,"method":"tools/call","params":{"name":"t","arguments":{"mac_address":"00:11","device":"灯"}}}"#;
    assert!(matches!(read(stuffed), Incoming::Call(_, call) if call.arguments.len() == 1));
    for none in [
        r#"{"id":1,"method":"tools/call","params":{"name":"t"}}"#,
        r#"{"id":1,"method":"tools/call","params":{"name":"t","arguments":null}}"#,
    ] {
        assert!(matches!(read(none), Incoming::Call(_, call) if call.arguments.is_empty()));
    }
    assert!(matches!(read(r#"{"jsonrpc":"2.0","id":"x","method":"tools/list"}"#), Incoming::List(_)));
    assert!(matches!(
        read(r#"{"jsonrpc":"2.0","method":"notifications/initialized","params":{}}"#),
        Incoming::Notification
    ));
    let manager = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"clientInfo":{"name":"xz-mcp-broker"}}}"#;
    assert!(matches!(read(manager), Incoming::Initialize(_)));
}

#[test]
fn a_call_that_is_none_is_told_so_by_its_id() {
    for params in [
        "",
        r#","params":null"#,
        r#","params":[1]"#,
        r#","params":{"name":7}"#,
        r#","params":{"name":"t","arguments":"{}"}"#,
        r#","params":{"name":"t","arguments":{"a":"\ud800"}}"#,
    ] {
        let text = format!(r#"{{"id":3,"method":"tools/call"{params}}}"#);
        assert!(matches!(read(&text), Incoming::BadCall(_)), "{text}");
    }
    assert!(matches!(read(r#"{"id":3,"method":7}"#), Incoming::Invalid(_)));
    assert!(matches!(read(r#"{"id":3}"#), Incoming::Invalid(_)));
    assert!(matches!(read(r#"{"id":3,"result":{}}"#), Incoming::Stray));
}

#[test]
fn answers_have_what_every_client_needs_and_nothing_that_breaks_one() {
    let id = Id("7".to_owned());
    let json = |text: &str| serde_json::from_str::<Json>(text).unwrap();
    let welcome = json(&initialized(&id));
    assert_eq!(welcome["result"]["protocolVersion"], "2024-11-05");
    assert!(welcome["result"]["capabilities"]["tools"].is_object());
    let told =
        EndpointAnswer { text: "没有确认".to_owned(), is_error: true, error: Some("没有确认".to_owned()) };
    let failed = json(&result(&id, &told).unwrap());
    assert_eq!(
        failed["result"],
        json!({"content": [{"type": "text", "text": "没有确认"}], "isError": true, "error": "没有确认"})
    );
    let told = EndpointAnswer { text: "好了".to_owned(), is_error: false, error: None };
    assert_eq!(
        json(&result(&id, &told).unwrap())["result"],
        json!({"content": [{"type": "text", "text": "好了"}], "isError": false})
    );
    let long = EndpointAnswer { text: "长".repeat(RESULT_BYTES_MAX / 3), is_error: false, error: None };
    assert_eq!(result(&id, &long), None);
}

#[test]
fn a_tool_goes_over_with_name_description_and_schema_alone() {
    let schema: JsonObject = serde_json::from_value(json!({"type": "object"})).unwrap();
    let tool = Tool::new("switch_device", "开关。", std::sync::Arc::new(schema)).with_title("Switch");
    let list = listed(&Id("0".to_owned()), &tool_list(&[tool]));
    let expected = r#"{"jsonrpc":"2.0","id":0,"result":{"tools":[{"name":"switch_device","description":"开关。","inputSchema":{"type":"object"}}]}}"#;
    assert_eq!(list, expected);
}

/// JSON as nobody should send it.
fn any_json() -> impl Strategy<Value = Json> {
    let leaf = prop_oneof![
        Just(Json::Null),
        any::<bool>().prop_map(Json::from),
        any::<i64>().prop_map(Json::from),
        any::<f64>().prop_map(Json::from),
        ".{0,12}".prop_map(Json::from),
        prop::sample::select(vec!["ping", "tools/call", "tools/list", "initialize", "notifications/x"])
            .prop_map(Json::from),
    ];
    let key = prop_oneof![
        prop::sample::select(vec!["id", "method", "params", "result", "error", "name", "arguments", "jsonrpc"])
            .prop_map(str::to_owned),
        ".{0,6}",
    ];
    leaf.prop_recursive(3, 24, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Json::from),
            prop::collection::vec((key.clone(), inner), 0..6)
                .prop_map(|all| Json::from(all.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

proptest! {
    #[test]
    fn no_text_is_too_much(text in ".{0,200}") {
        read(&text);
    }

    #[test]
    fn a_request_is_answered_to_its_id_and_nothing_else_is(frame in any_json()) {
        let incoming = read(&frame.to_string());
        let id = frame.get("id").filter(|id| id.is_string() || id.is_number());
        let has = |member: &str| frame.get(member).is_some();
        let is_request = frame.is_object() && id.is_some() && (has("method") || !(has("result") || has("error")));
        match (id_of(&incoming), id) {
            (Some(answered), Some(id)) => prop_assert_eq!(&answered.0, &id.to_string()),
            (None, _) => prop_assert!(!is_request, "{frame} {incoming:?}"),
            (Some(_), None) => prop_assert!(false, "{frame}"),
        }
    }

    #[test]
    fn whatever_is_answered_is_one_object_with_the_id(id in ".{0,20}", message in ".{0,50}") {
        let text = json!({"id": id, "method": "ping"}).to_string();
        let Incoming::Ping(read) = read(&text) else { panic!("{text}") };
        let told = EndpointAnswer { text: message.clone(), is_error: true, error: Some(message.clone()) };
        for frame in [pong(&read), initialized(&read), listed(&read, "[]"), error(&read, Code::InvalidParams, &message), result(&read, &told).unwrap()] {
            let frame: Json = serde_json::from_str(&frame).unwrap();
            prop_assert_eq!(&frame["id"], &json!(id));
            prop_assert_eq!(&frame["jsonrpc"], "2.0");
            prop_assert_eq!(frame.get("result").is_some(), frame.get("error").is_none());
        }
    }
}
