//! The parameters of each tool, with the names and words of the house.

use rmcp::model::JsonObject;
use serde_json::{Map, Value as Json, json};

use super::{Tool, figures, texts::text};
use crate::{
    answer::terms,
    mcp::{
        arguments::options_of,
        house::{Entry, House},
    },
    names::Lang,
};

/// Above so many names the `device` list is dropped: the catalogue must stay small, and `find_devices` knows them.
const ENUM_NAMES_MAX: usize = 24;

/// Of so many words a mode of a device or an action's name consists at most; more are a sentence.
const WORDS_MAX: usize = 2;

/// Above so many properties, modes or actions their list is dropped; a wrong one is refused with those of the device.
const ENUM_OPTIONS_MAX: usize = 40;

/// Which lists a catalogue may carry.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lists {
    /// Names of things and rooms.
    pub(super) names: bool,
    /// Properties, modes and actions.
    pub(super) words: bool,
}

/// The parameters of a tool.
pub(super) fn input(tool: Tool, house: &House, lists: Lists) -> JsonObject {
    let lang = house.lang();
    let mut all = Parameters { lang, lists, properties: Map::new(), required: Vec::new() };
    match tool {
        Tool::FindDevices => {
            if !house.rooms().is_empty() {
                let rooms: Vec<&str> = house.rooms().iter().map(String::as_str).collect();
                all.names("room", ("room", "房间名"), &rooms);
            }
            all.text("query", ("part of a name", "名称中的几个字"));
        }
        Tool::GetDeviceState => {
            all.names("device", ("device name, copied from the list", "设备名，照抄列表"), &names(house.listed()));
            let fresh =
                ("yes = ask the device now (default), no = last report", "yes=现场问设备（默认）no=用最近的上报");
            all.one_of("fresh", fresh, &["yes", "no"]);
            all.required.push("device");
        }
        Tool::SwitchDevice => switch(&mut all, house),
        Tool::SetDeviceLevel => {
            let figures = figures::figures(house);
            let properties: Vec<&str> = figures.iter().map(figures::Figure::name).collect();
            all.bare_names("device", &names(house.listed().filter(|e| e.levels().next().is_some())));
            all.words("property", ("what to set", "要调的量"), &properties);
            all.put(
                "level",
                json!({"type": "number", "description": text(lang, "number without unit", "数值，不带单位")}),
            );
            let how = ("to (default), up_by, down_by", "to=调到（默认） up_by=调高 down_by=调低");
            all.one_of("how", how, &["to", "up_by", "down_by"]);
            all.bare("user_request");
            all.required.extend(["device", "property", "level"]);
        }
        Tool::SetDeviceOption => {
            let optional = || house.listed().filter(|e| e.options().next().is_some());
            let properties = distinct(optional().flat_map(Entry::options).map(|p| &*p.name));
            let options = distinct(optional().flat_map(Entry::options).flat_map(options_of));
            all.bare_names("device", &names(optional()));
            match lists.words {
                true => all.put("property", json!({"type": "string", "enum": properties})),
                false => all.bare("property"),
            }
            all.words("option", ("option", "选项"), &options);
            all.bare("user_request");
            all.required.extend(["device", "property", "option"]);
        }
        Tool::RunDeviceAction => {
            let acting = || house.entries().iter().filter(|e| e.actions().next().is_some());
            let actions = distinct(acting().flat_map(Entry::actions).map(|a| &*a.name));
            all.bare_names("device", &names(acting()));
            all.words("action", ("action", "动作"), &actions);
            all.bare("user_request");
            all.required.extend(["device", "action"]);
        }
        Tool::ActivateScene => {
            let scenes: Vec<&str> = house.scenes().iter().map(|s| s.label.get(lang)).collect();
            all.names("scene", ("scene", "场景名"), &scenes);
            all.bare("user_request");
            all.required.push("scene");
        }
        Tool::CheckOperation => {
            let operation = ("operation id; empty = the latest of this device", "操作号；不填就查该设备最近一次");
            all.bare("device");
            all.text("operation", operation);
        }
        Tool::ConfirmOperation => {
            all.text(
                "code",
                ("the code that was returned, or the code that the user said", "返回的确认码，或用户说的确认码"),
            );
            all.required.push("code");
        }
        Tool::Ping => {}
    }
    all.schema()
}

fn switch(all: &mut Parameters, house: &House) {
    let words = house.switch_words();
    let mut listed = names(house.switchable());
    let group = house.groups().first().map(|group| group.shown.as_str());
    listed.extend(house.groups().iter().map(|group| group.shown.as_str()));
    let described = match (group, all.lang) {
        (None, Lang::En) => "device name, copied from the list".to_owned(),
        (None, Lang::Zh) => "设备名，照抄列表".to_owned(),
        (Some(group), Lang::En) => format!("device name, or all of a kind: {group}"),
        (Some(group), Lang::Zh) => format!("设备名，或一类设备：{group}"),
    };
    all.names("device", (&described, &described), &listed);
    let to = match words.contains(&"locked") {
        true => ("state to reach; locks take only locked/unlocked", "要变成的状态；锁只用 locked/unlocked"),
        false => ("state to reach", "要变成的状态"),
    };
    all.one_of("to", to, &words);
    let heard = (
        "Optional: the user's words in under 12 words; kept for audit only",
        "可选：用户原话的简短摘要，20字以内，只用于留痕",
    );
    all.text("user_request", heard);
    all.required.extend(["device", "to"]);
}

/// What every answer has; the rest depends on the tool and is explained by the answer itself.
pub(super) fn output() -> JsonObject {
    let schema = json!({
        "type": "object",
        "properties": {
            "success": {"type": "boolean"},
            "result": {"type": "string"},
            "say": {"type": "string"},
        },
        "required": ["result", "say"],
    });
    match schema {
        Json::Object(map) => map,
        Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) | Json::Array(_) => Map::new(),
    }
}

fn names<'a>(entries: impl Iterator<Item = &'a Entry>) -> Vec<&'a str> {
    entries.map(|e| e.shown.as_str()).collect()
}

fn distinct<'a>(words: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut all: Vec<&str> = Vec::new();
    for word in words {
        if !all.contains(&word) {
            all.push(word);
        }
    }
    all
}

struct Parameters {
    lang: Lang,
    lists: Lists,
    properties: Map<String, Json>,
    required: Vec<&'static str>,
}

impl Parameters {
    fn put(&mut self, name: &str, schema: Json) {
        self.properties.insert(name.to_owned(), schema);
    }

    fn text(&mut self, name: &str, (en, zh): (&str, &str)) {
        self.put(name, json!({"type": "string", "description": text(self.lang, en, zh)}));
    }

    /// One that another tool has described.
    fn bare(&mut self, name: &str) {
        self.put(name, json!({"type": "string"}));
    }

    fn one_of<S: AsRef<str>>(&mut self, name: &str, (en, zh): (&str, &str), words: &[S]) {
        let words: Vec<&str> = words.iter().map(AsRef::as_ref).collect();
        self.put(name, json!({"type": "string", "description": text(self.lang, en, zh), "enum": words}));
    }

    /// Names, as a list while they are few.
    fn names(&mut self, name: &str, described: (&str, &str), names: &[&str]) {
        if names.len() > ENUM_NAMES_MAX || !self.lists.names {
            self.text(name, described);
        } else {
            self.one_of(name, described, names);
        }
    }

    /// Words of the devices, as a list while they are few, and all of them words: in a list they would stand as the device
    /// wrote them, and a sentence would be read as one (semantics 7.4).
    fn words(&mut self, name: &str, described: (&str, &str), words: &[&str]) {
        let is_word = |word: &&str| terms::tame(word) == **word && word.split_whitespace().count() <= WORDS_MAX;
        if words.len() > ENUM_OPTIONS_MAX || !self.lists.words || !words.iter().all(is_word) {
            self.text(name, described);
        } else {
            self.one_of(name, described, words);
        }
    }

    fn bare_names(&mut self, name: &str, names: &[&str]) {
        if names.len() > ENUM_NAMES_MAX || !self.lists.names {
            self.bare(name);
        } else {
            self.put(name, json!({"type": "string", "enum": names}));
        }
    }

    fn schema(self) -> JsonObject {
        let mut schema = Map::new();
        schema.insert("type".to_owned(), Json::from("object"));
        schema.insert("properties".to_owned(), Json::Object(self.properties));
        if !self.required.is_empty() {
            schema.insert("required".to_owned(), json!(self.required));
        }
        schema
    }
}
