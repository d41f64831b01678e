use serde_json::{Value as Json, json};

use super::*;

#[test]
fn ids_are_echoed_as_they_came() {
    let uuid = "4f1c2a3b-0000-4000-8000-00000000abcd";
    for id in [
        "0",
        "1",
        "-7",
        "1.50",
        "1e3",
        "18446744073709551616",
        r#""0""#,
        r#""a\u5f71\"b""#,
        &format!(r#""{uuid}_n_1""#),
    ] {
        let Incoming::Ping(read) = read(&format!(r#"{{"id": {id} ,"jsonrpc":"2.0","method":"ping","params":{{}}}} "#))
        else {
            panic!("{id}");
        };
        assert_eq!(pong(&read), format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#));
    }
}
