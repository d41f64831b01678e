//! The tools as a model sees them: names, texts, schemas. The texts are those of the answers document, word for word.
//!
//! Schemas are made by hand: flat, without `$ref`, `$defs`, `oneOf` and `additionalProperties`, which relays in front
//! of models drop or dislike. A tool without anything to act on is not listed. Pure.

use std::sync::Arc;

use rmcp::model::{JsonObject, Tool as McpTool, ToolAnnotations};
use serde_json::{Map, Value as Json, json};

use super::house::{Entry, House};
use crate::names::Lang;

/// Above so many names the `device` list is dropped: the catalogue must stay small, and `find_devices` knows them.
const ENUM_NAMES_MAX: usize = 24;

/// The tools that there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tool {
    /// `find_devices`
    FindDevices,
    /// `get_device_state`
    GetDeviceState,
    /// `switch_device`
    SwitchDevice,
    /// `check_operation`
    CheckOperation,
    /// `ping`
    Ping,
}

impl Tool {
    /// All tools, in the order of the catalogue.
    pub const ALL: &[Self] =
        &[Self::FindDevices, Self::GetDeviceState, Self::SwitchDevice, Self::CheckOperation, Self::Ping];

    /// The name in calls and metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::FindDevices => "find_devices",
            Self::GetDeviceState => "get_device_state",
            Self::SwitchDevice => "switch_device",
            Self::CheckOperation => "check_operation",
            Self::Ping => "ping",
        }
    }

    /// The tool of that name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|t| t.as_str() == name)
    }

    /// Its parameters.
    pub fn parameters(self) -> &'static [&'static str] {
        match self {
            Self::FindDevices => &["room", "query"],
            Self::GetDeviceState => &["device", "fresh"],
            Self::SwitchDevice => &["device", "to", "user_request"],
            Self::CheckOperation => &["device", "operation"],
            Self::Ping => &[],
        }
    }

    /// Whether there is anything for it to act on.
    fn applies(self, house: &House) -> bool {
        match self {
            Self::FindDevices | Self::Ping => true,
            Self::GetDeviceState => !house.entries().is_empty(),
            Self::SwitchDevice | Self::CheckOperation => house.switchable().next().is_some(),
        }
    }

    fn description(self, lang: Lang) -> &'static str {
        let (en, zh) = match self {
            Self::FindDevices => (
                "Lists or finds devices in the home: name, room, state, online or not. Read only, moves nothing. Use when the user asks what there is, or when another tool answered \"no such device\" or \"several match\". Not needed when you know the name. At most 8 rows; if there are more the answer says so: ask again with a room.",
                "列出或查找家里能控制的设备：名称、房间、状态、是否在线。只读，不会动任何设备。何时用：用户问有哪些设备；别的工具回答“没有这个设备”或“有几个同名”。知道设备名时不用先查。一次最多返回8个，还有更多会说明，请带上房间再查。",
            ),
            Self::GetDeviceState => (
                "Reads the real state of one device. Read only. Always call it when the user asks \"is it on?\" or \"how warm is it?\"; never answer from memory or from an earlier result. trust=now: you may say \"it is\". trust=old: only \"it was, N minutes ago\". trust=unknown: say you don't know.",
                "查一个设备的真实状态，只读。用户问“灯开了没”“现在几度”时必须调用，不能凭记忆或上一次的结果回答。trust=now 才能说“现在是”；trust=old 只能说“几分钟前看到的是”；trust=unknown 要说不知道。",
            ),
            Self::SwitchDevice => (
                "Switches a device in the home (lamp, socket, blind, lock; not the speaker's own screen or volume) and returns only after the device has reported its real state. Say that it is done only if success is true and device_state is what was asked, and claim no more than say does. Otherwise tell the user what say says: result=failed means it was not done, result=unconfirmed means nobody knows; never call either done and do not call again at once. If the user did not say which device, ask; never guess.",
                "开关家里的设备（灯、插座、窗帘、门锁等，不是音箱自己的屏幕和音量），等设备回报真实状态后才返回。只有 success 为 true 且 device_state 与要求一致，才可以说开了或关了，并且只说到 say 所说的程度。否则照 say 说：result=failed 是没做成，result=unconfirmed 是不知道做没做成，两种都不要说完成，也不要马上再调一次。没说清是哪个设备时先问用户，不要猜。",
            ),
            Self::CheckOperation => (
                "Tells what became of an earlier operation. Read only, does nothing again. Use when the last result was working or unconfirmed and the user asks \"is it done?\" or \"did it really?\".",
                "查刚才那次操作后来怎样了。只读，不会再执行一次。何时用：上次 result 是 working 或 unconfirmed，用户问“好了没”“到底开了没”。",
            ),
            Self::Ping => (
                "Tests the way from the assistant to the hub; returns pong. Says nothing about any device or action. Only when the user asks to test the connection.",
                "测试助手到中枢是否连通，返回 pong。不说明任何设备在线，也不说明任何动作成功。只在用户要求测试连接时用。",
            ),
        };
        match lang {
            Lang::En => en,
            Lang::Zh => zh,
        }
    }

    fn annotations(self) -> ToolAnnotations {
        // Nothing here reaches beyond the home, so no world is open. Switching is repeatable by nature (an absolute
        // set) and destroys nothing.
        let read_only = match self {
            Self::FindDevices | Self::GetDeviceState | Self::CheckOperation | Self::Ping => true,
            Self::SwitchDevice => false,
        };
        ToolAnnotations::new().read_only(read_only).destructive(false).idempotent(true).open_world(false)
    }

    fn schema(self, house: &House) -> JsonObject {
        let lang = house.lang();
        let mut properties = Map::new();
        let mut required: Vec<&str> = Vec::new();
        match self {
            Self::FindDevices => {
                if !house.rooms().is_empty() {
                    properties.insert("room".to_owned(), one_of(text(lang, "room", "房间名"), house.rooms()));
                }
                properties.insert("query".to_owned(), string(text(lang, "part of a name", "名称中的几个字")));
            }
            Self::GetDeviceState => {
                properties.insert("device".to_owned(), device(house.entries().iter(), lang));
                let fresh = text(
                    lang,
                    "yes = ask the device now (default), no = last report",
                    "yes=现场问设备（默认）no=用最近的上报",
                );
                properties.insert("fresh".to_owned(), one_of(fresh, &["yes", "no"]));
                required.push("device");
            }
            Self::SwitchDevice => {
                let words = house.switch_words();
                let to = match words.contains(&"locked") {
                    true => text(
                        lang,
                        "state to reach; locks take only locked/unlocked",
                        "要变成的状态；锁只用 locked/unlocked",
                    ),
                    false => text(lang, "state to reach", "要变成的状态"),
                };
                let words_heard = text(
                    lang,
                    "Optional: the user's words in under 12 words; kept for audit only",
                    "可选：用户原话的简短摘要，20字以内，只用于留痕",
                );
                properties.insert("device".to_owned(), device(house.switchable(), lang));
                properties.insert("to".to_owned(), one_of(to, &words));
                properties.insert("user_request".to_owned(), string(words_heard));
                required.extend(["device", "to"]);
            }
            Self::CheckOperation => {
                let operation =
                    text(lang, "operation id; empty = the latest of this device", "操作号；不填就查该设备最近一次");
                properties.insert("device".to_owned(), device(house.switchable(), lang));
                properties.insert("operation".to_owned(), string(operation));
            }
            Self::Ping => {}
        }
        let mut schema = Map::new();
        schema.insert("type".to_owned(), Json::from("object"));
        schema.insert("properties".to_owned(), Json::Object(properties));
        if !required.is_empty() {
            schema.insert("required".to_owned(), json!(required));
        }
        schema
    }
}

/// The `tools` array for a house.
pub fn tool_list(house: &House) -> Vec<McpTool> {
    let output = Arc::new(output_schema());
    Tool::ALL
        .iter()
        .filter(|tool| tool.applies(house))
        .map(|tool| {
            McpTool::new(tool.as_str(), tool.description(house.lang()), tool.schema(house))
                .with_annotations(tool.annotations())
                .with_raw_output_schema(output.clone())
        })
        .collect()
}

/// What every answer has; the rest depends on the tool and is explained by the answer itself.
fn output_schema() -> JsonObject {
    let schema = json!({
        "type": "object",
        "properties": {
            "success": {"type": "boolean"},
            "result": {"type": "string"},
            "next": {"type": "string"},
            "say": {"type": "string"},
        },
        "required": ["result", "next", "say"],
    });
    match schema {
        Json::Object(map) => map,
        Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) | Json::Array(_) => Map::new(),
    }
}

fn device<'a>(entries: impl Iterator<Item = &'a Entry>, lang: Lang) -> Json {
    let names: Vec<&str> = entries.map(|e| e.shown.as_str()).collect();
    let description = text(lang, "device name, copied from the list", "设备名，照抄列表");
    if names.len() > ENUM_NAMES_MAX { string(description) } else { one_of(description, &names) }
}

fn string(description: &str) -> Json {
    json!({"type": "string", "description": description})
}

fn one_of<S: AsRef<str>>(description: &str, words: &[S]) -> Json {
    let words: Vec<&str> = words.iter().map(AsRef::as_ref).collect();
    json!({"type": "string", "description": description, "enum": words})
}

fn text<'a>(lang: Lang, en: &'a str, zh: &'a str) -> &'a str {
    match lang {
        Lang::En => en,
        Lang::Zh => zh,
    }
}

/// What the server says of itself to a model (`instructions`): the console text of the answers document.
pub fn instructions(lang: Lang) -> &'static str {
    text(
        lang,
        "You control devices in the home through tools. Call a tool before saying anything about a device; never answer from memory, never claim a call that you did not make. Say what `say` says and nothing stronger. confirmed: done. failed: not done. unconfirmed: not known, claim neither. working: still going on. partly: name what is not confirmed. ask_user: put the question. Never retry or confirm on your own. If there is a correction, say it first. Read out no ids, codes or field names.",
        "你可以通过工具控制家里的设备。规则：一、凡是要动设备或问设备状态，必须先调用工具，不能凭记忆回答，也不能没调用就说做了。二、工具返回后，照 say 的意思说，不要说得比它更肯定。只有 result 是 confirmed 才能说做到了；failed 说没做成；unconfirmed 说不确定，既不说做了也不说没做；working 说还在进行；partly 要说出哪几个没确认；ask_user 就把问题问用户。三、不要自动重试，不要替用户确认。四、有 correction 时先说更正。五、不要念出操作号、代码和英文字段。",
    )
}
