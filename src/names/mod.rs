//! What people call devices, their parts, rooms and groups: display names in two languages, and finding what somebody
//! meant.
//!
//! Names belong to the owner (semantics 2.9): they come from the configuration; without one the id is the name.
//! Pure; knows nothing of state or tools.
//!
//! | file | what |
//! |---|---|
//! | `find` | who a spoken name means |
//! | `groups` | "all lights in the living room" |
//! | `scene` | prepared wishes under one name |
//! | `things` | the things that a device is, and what of them is switched |

mod find;
mod groups;
mod scene;
mod things;

use std::fmt;

use crate::property::{DeviceId, PropertyName};

pub use find::{Found, Known, Names, folded, spellings};
pub use groups::GroupName;
pub use scene::{MEMBERS_MAX, Member, Scene};
pub use things::{Named, Switch, ends, part, switch, things};

/// A language that truetwin speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Lang {
    /// English.
    #[default]
    En,
    /// Chinese.
    Zh,
}

/// One text in both languages.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Label {
    /// In English.
    pub en: String,
    /// In Chinese.
    pub zh: String,
}

impl Label {
    /// The same text in both.
    pub fn same(text: &str) -> Self {
        Self { en: text.to_owned(), zh: text.to_owned() }
    }

    /// The text in one language.
    pub fn get(&self, lang: Lang) -> &str {
        match lang {
            Lang::En => &self.en,
            Lang::Zh => &self.zh,
        }
    }
}

/// What a name stands for (semantics 2.9): a device, or one property of it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Thing {
    /// The device.
    pub device: DeviceId,
    /// The property, if not the whole device.
    pub property: Option<PropertyName>,
}

impl Thing {
    /// A whole device.
    pub fn device(device: &DeviceId) -> Self {
        Self { device: device.clone(), property: None }
    }
}

impl fmt::Display for Thing {
    /// The id that is offered where names do not tell things apart: `board`, `board.relay2`. No device id has a full
    /// stop in it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.property {
            None => write!(f, "{}", self.device),
            Some(property) => write!(f, "{}.{property}", self.device),
        }
    }
}

/// What one device is called, where it is, and what its parts are called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name {
    /// The device.
    pub device: DeviceId,
    /// Its display name.
    pub label: Label,
    /// Its room, if the owner gave one.
    pub room: Option<Label>,
    /// Properties with names of their own: a board with four relays is four lamps.
    pub parts: Vec<Part>,
    /// Whether the names count that the device proposes for its properties. The owner decides; without a word, they do
    /// not.
    pub proposals: bool,
}

/// One property with a name of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// The property.
    pub property: PropertyName,
    /// Its display name; `None` if only its room is its own.
    pub label: Option<Label>,
    /// Its room; `None` if it is where the device is.
    pub room: Option<Label>,
}

impl Name {
    /// A device with a name and perhaps a room, without named parts.
    pub fn new(device: DeviceId, label: Label, room: Option<Label>) -> Self {
        Self { device, label, room, parts: Vec::new(), proposals: false }
    }
}

/// A display name with its room, as lists show it.
pub fn shown(label: &Label, room: Option<&Label>, lang: Lang) -> String {
    match (room, lang) {
        (None, _) => label.get(lang).to_owned(),
        (Some(room), Lang::En) => format!("{} ({})", label.en, room.en),
        (Some(room), Lang::Zh) => format!("{}（{}）", label.zh, room.zh),
    }
}
