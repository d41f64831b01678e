//! A voice box behind a relay, and what its server makes of answers.

use std::time::Duration;

use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value as Json, json};
use tokio_tungstenite::{WebSocketStream, client_async, tungstenite::Message};
use truetwin::endpoint::{Reach, Wire};

use super::relay::TOKEN;

/// The server's own limit for a call.
const CALL: Duration = Duration::from_secs(30);

/// One session of a box: a socket to the relay's callers' side.
pub(crate) struct VoiceBox {
    line: WebSocketStream<Box<dyn Wire>>,
    next: u64,
}

impl VoiceBox {
    pub(crate) async fn dial(reach: &impl Reach, authority: &str) -> Self {
        let wire = reach.open(authority).await.unwrap();
        let url = format!("ws://{authority}/mcp_endpoint/call/?token={TOKEN}");
        Self { line: client_async(url, wire).await.unwrap().0, next: 1 }
    }

    /// The handshake, without waiting for anything in between; the names of the tools.
    pub(crate) async fn handshake(&mut self) -> Vec<String> {
        let client = json!({"name": "XiaozhiMCPEndpointClient", "version": "1.0.0"});
        let capabilities = json!({"roots": {"listChanged": true}, "sampling": {}});
        let params = json!({"protocolVersion": "2024-11-05", "capabilities": capabilities, "clientInfo": client});
        for message in [
            json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}),
            json!({"jsonrpc": "2.0", "method": "notifications/initialized", "params": {}}),
            json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"}),
        ] {
            self.line.feed(Message::text(message.to_string())).await.unwrap();
        }
        self.line.flush().await.unwrap();
        let welcome = self.answer(1).await.unwrap();
        assert_eq!(welcome["result"]["protocolVersion"], "2024-11-05");
        self.tools().await
    }

    /// The manager's way: it waits for the welcome, and has 10 s for all of it.
    pub(crate) async fn refresh(&mut self) -> Vec<String> {
        let client = json!({"name": "xz-mcp-broker", "version": "0.0.1"});
        let params = json!({"protocolVersion": "2024-11-05", "capabilities": {}, "clientInfo": client});
        self.send(&json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params})).await;
        self.answer(1).await.unwrap();
        self.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
        self.send(&json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"})).await;
        self.tools().await
    }

    async fn tools(&mut self) -> Vec<String> {
        let list = self.answer(2).await.unwrap();
        assert_eq!(list["result"].get("nextCursor"), None);
        let tools = list["result"]["tools"].as_array().unwrap().iter();
        tools.map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
    }

    /// The answer to a call as it came; `None`: not within the server's limit.
    pub(crate) async fn call(&mut self, tool: &str, arguments: Json) -> Option<Json> {
        let id = self.next;
        self.next += 1;
        let params = json!({"name": tool, "arguments": arguments});
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})).await;
        self.answer(id).await
    }

    /// What the user hears, or what the model is given, of a call.
    pub(crate) async fn say(&mut self, tool: &str, arguments: Json) -> Heard {
        match self.call(tool, arguments).await {
            Some(answer) => heard(&answer),
            None => Heard::Spoken("工具调用超时".to_owned()),
        }
    }

    pub(crate) async fn send(&mut self, message: &Json) {
        self.line.send(Message::text(message.to_string())).await.unwrap();
    }

    pub(crate) async fn answer(&mut self, id: u64) -> Option<Json> {
        let waiting = async {
            while let Some(message) = self.line.next().await {
                let Ok(Message::Text(text)) = message else { continue };
                let answer: Json = serde_json::from_str(&text).unwrap();
                assert_eq!(answer["id"], id, "an answer for somebody else, or a second one: {text}");
                return Some(answer);
            }
            None
        };
        tokio::time::timeout(CALL, waiting).await.ok().flatten()
    }
}

/// What became of an answer.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Heard {
    /// Handed to the model.
    Model(String),
    /// Read out as it stands.
    Spoken(String),
}

/// What the server makes of an answer, with its faults.
fn heard(answer: &Json) -> Heard {
    if let Some(result) = answer.get("result") {
        if result.is_null() {
            return Heard::Model("None".to_owned());
        }
        if result["isError"] == true {
            let error = result["error"].as_str().unwrap_or("工具调用返回错误，但未提供具体错误信息");
            return Heard::Spoken(format!("工具调用错误: {error}"));
        }
        let text = result["content"][0]["text"].as_str();
        let Some(text) = text else { return Heard::Model(result.to_string()) };
        assert!(
            serde_json::from_str::<Json>(text).is_ok_and(|json| json.get("action").is_none())
                || serde_json::from_str::<Json>(text).is_err(),
            "KeyError: {text}"
        );
        return Heard::Model(text.to_owned());
    }
    Heard::Spoken(format!("MCP接入点错误: {}", answer["error"]["message"].as_str().unwrap()))
}
