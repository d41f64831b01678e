//! One frame in, at most one frame out: JSON-RPC 2.0 as access points speak it (MCP 2024-11-05). Pure.
//!
//! Nothing is kept from one frame to the next: a relay sends `initialize` for each of its boxes over one socket, ids begin
//! again, several come before anything was answered. So any method is answered at any time, to the very id that asked: its
//! text is echoed as it came, be it 0, a string, or one that was there before.
//!
//! | frame | what |
//! |---|---|
//! | a request | answered, an unknown method with -32601 |
//! | a notification | no answer: the protocol has none, `notifications/cancelled` names ids that a relay has rewritten |
//! | an answer | nothing was asked: counted |
//! | several in an array | each id is refused with -32600: the protocol of this version has no batches |
//! | no JSON, no object, an id that is none | counted and not answered: an answer without an id reaches nobody |

use std::collections::BTreeMap;

use rmcp::model::{JsonObject, Tool};
use serde::Serialize;
use serde_json::value::RawValue;

use crate::{answer::EndpointAnswer, mcp::Call};

/// The version of the protocol that all access points offer and that is answered, whatever was offered.
pub const PROTOCOL: &str = "2024-11-05";

/// The most bytes of an answer: the official access point drops a longer one without a word.
pub const RESULT_BYTES_MAX: usize = 8_192;

/// How many requests of an array are refused one by one; of the rest nobody has seen any.
const BATCH_MAX: usize = 64;

/// How much of a relay's name for a box identifies its session, characters: as with sessions over HTTP.
const SESSION_CHARS: usize = 8;

/// The text of a request's id, as it came.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Id(String);

impl Id {
    /// From the text between comma and colon: a string or a number, else it is none.
    fn new(raw: &RawValue) -> Option<Self> {
        let text = raw.get();
        let is_one = text.starts_with(|c: char| c == '"' || c == '-' || c.is_ascii_digit());
        is_one.then(|| Self(text.to_owned()))
    }

    /// Which box speaks. A relay rewrites its boxes' ids to `"<uuid>_n_<id>"`, one uuid for each session of a box; all
    /// others are one session.
    pub(super) fn session(&self) -> &str {
        let text = self.0.trim_matches('"');
        let Some((uuid, _)) = text.split_once("_n_") else { return "" };
        let is_uuid = uuid.len() == 36 && uuid.bytes().all(|b| b.is_ascii_hexdigit() || b == b'-');
        if is_uuid { &uuid[..SESSION_CHARS] } else { "" }
    }
}

/// What a frame wants.
#[derive(Debug)]
pub(super) enum Incoming {
    Initialize(Id),
    Ping(Id),
    List(Id),
    Call(Id, Call),
    /// `tools/call` with parameters that are none.
    BadCall(Id),
    /// Any other method.
    Unknown(Id),
    /// A request that is none: its method is no text.
    Invalid(Id),
    /// Several at once; those that wait for an answer.
    Batch(Vec<Id>),
    Notification,
    /// An answer to nothing.
    Stray,
    /// Not for anybody.
    Garbage,
}

/// Reads a frame.
pub(super) fn read(text: &str) -> Incoming {
    if text.trim_start().starts_with('[') {
        return batch(text);
    }
    let Ok(members) = serde_json::from_str::<BTreeMap<String, &RawValue>>(text) else { return Incoming::Garbage };
    let id = match members.get("id") {
        Some(raw) => match Id::new(raw) {
            Some(id) => Some(id),
            None => return Incoming::Garbage,
        },
        None => None,
    };
    let is_answer = members.contains_key("result") || members.contains_key("error");
    let method = members.get("method").map(|raw| serde_json::from_str::<String>(raw.get()));
    match (method, id) {
        (None, Some(id)) if !is_answer => Incoming::Invalid(id),
        (None, _) if is_answer => Incoming::Stray,
        (Some(Err(_)), Some(id)) => Incoming::Invalid(id),
        (Some(Err(_)) | None, None | Some(_)) => Incoming::Garbage,
        (Some(Ok(_)), None) => Incoming::Notification,
        (Some(Ok(method)), Some(id)) => match method.as_str() {
            "initialize" => Incoming::Initialize(id),
            "ping" => Incoming::Ping(id),
            "tools/list" => Incoming::List(id),
            "tools/call" => match call(members.get("params").copied()) {
                Some(call) => Incoming::Call(id, call),
                None => Incoming::BadCall(id),
            },
            _ => Incoming::Unknown(id),
        },
    }
}

fn batch(text: &str) -> Incoming {
    let Ok(all) = serde_json::from_str::<Vec<&RawValue>>(text) else { return Incoming::Garbage };
    let waiting = |one: &&RawValue| match read_one(one.get()) {
        Some(members) if members.contains_key("method") => members.get("id").and_then(|raw| Id::new(raw)),
        _ => None,
    };
    let ids: Vec<Id> = all.iter().take(BATCH_MAX).filter_map(waiting).collect();
    if ids.is_empty() { Incoming::Garbage } else { Incoming::Batch(ids) }
}

fn read_one(text: &str) -> Option<BTreeMap<String, &RawValue>> {
    serde_json::from_str(text).ok()
}

/// What a relay's server once put among the arguments by itself; no model wrote it, so no model may be told that it is wrong.
const PUT_IN_BY_SERVERS: &str = "mac_address";

/// A call's tool and arguments. Members beside them (`serialNumber`, `_meta`) are not ours; no arguments are none.
fn call(params: Option<&RawValue>) -> Option<Call> {
    #[derive(serde::Deserialize)]
    struct Params {
        name: String,
        arguments: Option<JsonObject>,
    }
    let Params { name, arguments } = serde_json::from_str(params?.get()).ok()?;
    let mut arguments = arguments.unwrap_or_default();
    arguments.remove(PUT_IN_BY_SERVERS);
    Some(Call::new(&name, arguments))
}

/// Codes of JSON-RPC 2.0, section 5.1.
#[derive(Clone, Copy, Debug)]
pub(super) enum Code {
    InvalidRequest = -32_600,
    MethodNotFound = -32_601,
    InvalidParams = -32_602,
    InternalError = -32_603,
}

/// `{"jsonrpc":"2.0","id":…,"result":…}`
fn answer(id: &Id, member: &str, value: &impl Serialize) -> String {
    let value = serde_json::to_string(value).expect("strings, numbers and maps with text keys are always JSON");
    format!(r#"{{"jsonrpc":"2.0","id":{},"{member}":{value}}}"#, id.0)
}

/// The answer to `initialize`.
pub(super) fn initialized(id: &Id) -> String {
    let server = serde_json::json!({"name": "truetwin", "version": env!("CARGO_PKG_VERSION")});
    let capabilities = serde_json::json!({"tools": {"listChanged": false}});
    let result = serde_json::json!({"protocolVersion": PROTOCOL, "capabilities": capabilities, "serverInfo": server});
    answer(id, "result", &result)
}

/// The answer to `ping`.
pub(super) fn pong(id: &Id) -> String {
    answer(id, "result", &JsonObject::new())
}

/// The tools as an access point may have them, as JSON: name, description and schema of the arguments. It counts each word
/// of the list against its model's, and an answer here has no structured part that an output schema could describe.
pub(super) fn tool_list(tools: &[Tool]) -> String {
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Listed<'a> {
        name: &'a str,
        description: &'a str,
        input_schema: &'a JsonObject,
    }
    let listed = tools.iter().map(|tool| Listed {
        name: &tool.name,
        description: tool.description.as_deref().unwrap_or_default(),
        input_schema: &tool.input_schema,
    });
    serde_json::to_string(&listed.collect::<Vec<_>>()).expect("texts and schemas are always JSON")
}

/// The answer to `tools/list`; all in one, there is no next page.
pub(super) fn listed(id: &Id, tools: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{},"result":{{"tools":{tools}}}}}"#, id.0)
}

/// The answer to `tools/call`; `None` if it would be longer than [`RESULT_BYTES_MAX`]. `isError` is always there: one client
/// takes its absence for a failure.
pub(super) fn result(id: &Id, told: &EndpointAnswer) -> Option<String> {
    #[derive(Serialize)]
    struct Content<'a> {
        r#type: &'static str,
        text: &'a str,
    }
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Told<'a> {
        content: [Content<'a>; 1],
        is_error: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<&'a str>,
    }
    let content = [Content { r#type: "text", text: &told.text }];
    let told = Told { content, is_error: told.is_error, error: told.error.as_deref() };
    Some(answer(id, "result", &told)).filter(|frame| frame.len() <= RESULT_BYTES_MAX)
}

/// A request that cannot be met. The message may be read out as it stands.
pub(super) fn error(id: &Id, code: Code, message: &str) -> String {
    answer(id, "error", &serde_json::json!({"code": code as i32, "message": message}))
}

/// The refusal of several at once, one for each.
pub(super) fn batch_refused(ids: &[Id], message: &str) -> String {
    let each: Vec<String> = ids.iter().map(|id| error(id, Code::InvalidRequest, message)).collect();
    format!("[{}]", each.join(","))
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test that fails there has said so")]
mod tests;
