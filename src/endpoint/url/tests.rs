use super::*;

/// As the console makes them (header and signature are of no interest here).
fn jwt(payload: &str) -> String {
    format!("eyJhbGciOiJFUzI1NiIsInR5cCI6IkpXVCJ9.{}.c2lnbmF0dXJl-_", URL_SAFE_NO_PAD.encode(payload))
}

fn official(payload: &str) -> Address {
    parse_url(&format!("wss://api.xiaozhi.me/mcp/?token={}", jwt(payload))).unwrap()
}

const PAYLOAD: &str = r#"{"userId":9,"agentId":1234,"endpointId":"agent_1234","purpose":"mcp-endpoint","iat":1760000000,"exp":1791557600}"#;
const RELAY: &str = "ws://192.168.1.9:8004/mcp_endpoint/mcp/?token=aB3%2Bdef%2Fgh%3D%3D";

#[test]
fn the_path_says_which_kind_it_is_and_the_token_whose() {
    let address = official(PAYLOAD);
    assert_eq!((address.profile(), address.agent()), (Profile::Official, "agent_1234"));
    assert_eq!((address.issued(), address.expires()), (Some(1_760_000_000), Some(1_791_557_600)));
    let relay = parse_url(RELAY).unwrap();
    assert_eq!((relay.profile(), relay.agent().len()), (Profile::Relay, HASH_DIGITS));
    assert_eq!(relay.reveal(), RELAY);
    assert_eq!((relay.issued(), relay.expires()), (None, None));
}

#[test]
fn an_older_token_without_an_expiry_is_as_good() {
    let address = official(r#"{"userId":9,"agentId":77,"purpose":"mcp-endpoint","iat":1}"#);
    assert_eq!((address.agent(), address.expires()), ("agent_77", None));
}

#[test]
fn what_a_token_says_of_itself_is_not_believed_beyond_plain_ids() {
    for payload in [r#"{"endpointId":"a\nb"}"#, r#"{"endpointId":""}"#, "[1]", "no json", r#"{"endpointId":7}"#] {
        assert_eq!(official(payload).agent().len(), HASH_DIGITS, "{payload}");
    }
}

#[test]
fn a_relays_token_is_the_same_pasted_raw_encoded_or_from_a_file() {
    let encoded = parse_url(RELAY).unwrap();
    let raw = parse_url("ws://192.168.1.9:8004/mcp_endpoint/mcp/?token=aB3+def/gh==").unwrap();
    let beside = parse_url_with(" WS://192.168.1.9:8004/mcp_endpoint/mcp/ ", Some("aB3+def/gh==\n")).unwrap();
    assert_eq!((&raw, &beside), (&encoded, &encoded));
}

#[test]
fn one_agent_at_one_access_point_is_one_whatever_its_token_and_host_look_like() {
    let older = official(r#"{"endpointId":"agent_1234","iat":5}"#);
    assert!(official(PAYLOAD).is_same_agent(&older));
    let url = format!("wss://API.xiaozhi.me:443/mcp/?token={}", jwt(PAYLOAD));
    assert!(official(PAYLOAD).is_same_agent(&parse_url(&url).unwrap()));
    assert!(!official(PAYLOAD).is_same_agent(&official(r#"{"endpointId":"agent_5"}"#)));
    let elsewhere = parse_url("ws://192.168.1.10:8004/mcp_endpoint/mcp/?token=aB3%2Bdef%2Fgh%3D%3D").unwrap();
    assert!(!parse_url(RELAY).unwrap().is_same_agent(&elsewhere));
}

#[test]
fn neither_display_nor_debug_nor_an_error_holds_the_token() {
    let address = official(PAYLOAD);
    assert_eq!(address.to_string(), "wss://api.xiaozhi.me/mcp/?token=…");
    for shown in [format!("{address}"), format!("{address:?}"), format!("{address:#?}")] {
        assert!(!shown.contains("eyJ") && !shown.contains("c2lnbmF0dXJl"), "{shown}");
    }
    for bad in [
        "SECRET",
        "http://h/?token=SECRET",
        "wss://SECRET@h/?token=SECRET",
        "ws://h/SECRET SECRET?token=SECRET",
        "ws://h/?token=SECRET&token=SECRET",
        "ws://h/?token=SEC RET",
        "ws://h/?token=%zzSECRET",
        "ws:///?token=SECRET",
        "SECRET://h",
        "wss://h/?token=SECRET#SECRET",
    ] {
        let error = parse_url(bad).unwrap_err();
        assert!(!format!("{error} {error:?}").contains("SEC"), "{error}");
    }
}

#[test]
fn each_mistake_is_named() {
    let long = format!("ws://h/?token={}", "a".repeat(URL_BYTES_MAX));
    for (text, error) in [
        ("  ", UrlError::Empty),
        (long.as_str(), UrlError::TooLong(URL_BYTES_MAX + 14)),
        ("eyJ.a.b", UrlError::Scheme { scheme: None }),
        ("https://h/?token=a", UrlError::Scheme { scheme: Some("https") }),
        ("ws://h:port/?token=a", UrlError::Malformed),
        ("ws://u:p@h/?token=a", UrlError::Unexpected),
        ("wss://api.xiaozhi.me/mcp/", UrlError::NoToken),
        ("wss://api.xiaozhi.me/mcp/?token=", UrlError::NoToken),
        ("wss://h/?token=a&token=b", UrlError::TwoTokens),
        ("wss://h/?token=%4", UrlError::Token),
    ] {
        assert_eq!(parse_url(text), Err(error), "{text}");
    }
    assert_eq!(parse_url_with("wss://h/?token=a", Some("b")), Err(UrlError::TwoTokens));
}

#[test]
fn a_relay_is_probed_on_its_callers_side_with_the_same_token() {
    let probe = "ws://192.168.1.9:8004/mcp_endpoint/call/?token=aB3%2Bdef%2Fgh%3D%3D";
    assert_eq!(parse_url(RELAY).unwrap().call_side().as_deref(), Some(probe));
    assert_eq!(official(PAYLOAD).call_side(), None);
}
