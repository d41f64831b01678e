//! From the arguments of a call to a request, or to the refusal that names what is wrong and what is allowed.
//!
//! The SDK checks nothing against a schema, and its own messages are for programmers; a model needs the parameter,
//! what it sent and what it may send. Pure: knows names, not state.

use serde_json::{Map, Value as Json};

use super::{
    catalogue::Tool,
    house::{Entry, House, SWITCH_WORDS},
};
use crate::{
    answer::state_word,
    names::Found,
    property::{DeviceId, PropertyName, Value},
    twin::words::{OpId, Refusal},
};

/// What a call asks for, checked.
#[derive(Clone, Debug, PartialEq)]
pub enum Request {
    /// Lists or finds devices.
    Find {
        /// Only those in this room, as the house writes it.
        room: Option<String>,
        /// Only those whose names contain this.
        query: Option<String>,
    },
    /// Reads the state of a device.
    State {
        /// The device.
        device: DeviceId,
        /// Whether to ask the device now.
        fresh: bool,
    },
    /// Switches a device.
    Switch {
        /// The device.
        device: DeviceId,
        /// What is set on it.
        property: PropertyName,
        /// The wish.
        value: Value,
    },
    /// Switches a device that has not greeted this hub yet: what can be set on it is not known.
    SwitchUnheard {
        /// The device.
        device: DeviceId,
    },
    /// Tells what became of an operation.
    Check {
        /// Which one.
        operation: Option<OpId>,
        /// The latest of this device.
        device: Option<DeviceId>,
    },
    /// Tests the way to the hub.
    Ping,
}

/// Why the arguments are no request.
#[derive(Clone, Debug, PartialEq)]
pub struct Refused {
    /// What was wrong.
    pub refusal: Refusal,
    /// The device that was meant, where that much was clear.
    pub device: Option<DeviceId>,
}

/// Parameters that some voice boxes' firmware adds to each call on its own: nobody asked for them and nobody reads them.
const IGNORED: [&str; 2] = ["device_id", "mac_address"];

/// How much of a wrong argument an answer repeats, characters: enough to recognise it, too little to flood a model.
const SENT_CHARS_MAX: usize = 64;

/// How many names an answer to a missing or unreadable `device` carries, as in the catalogue's list.
const ALLOWED_NAMES_MAX: usize = 24;

/// Checks the arguments of a call.
///
/// # Errors
/// [`Refused`] with the refusal that names the parameter and what is allowed; the first mistake found is told.
pub fn parse(tool: Tool, arguments: &Map<String, Json>, house: &House) -> Result<Request, Refused> {
    let given = Given { arguments, house };
    given.no_unknown(tool)?;
    match tool {
        Tool::FindDevices => Ok(Request::Find { room: given.room()?, query: given.text("query", "a text")? }),
        Tool::GetDeviceState => {
            let entry = given.device()?;
            Ok(Request::State { device: entry.id.clone(), fresh: given.fresh(entry)? })
        }
        Tool::SwitchDevice => {
            let entry = given.device()?;
            given.switch(entry)
        }
        Tool::CheckOperation => {
            let operation = given.text("operation", "the id of an operation")?.map(|id| OpId::new(&id));
            let device = given.optional_device()?.map(|e| e.id.clone());
            Ok(Request::Check { operation, device })
        }
        Tool::Ping => Ok(Request::Ping),
    }
}

struct Given<'a> {
    arguments: &'a Map<String, Json>,
    house: &'a House,
}

impl<'a> Given<'a> {
    fn no_unknown(&self, tool: Tool) -> Result<(), Refused> {
        let known = tool.parameters();
        match self.arguments.keys().find(|k| !known.contains(&k.as_str()) && !IGNORED.contains(&k.as_str())) {
            None => Ok(()),
            Some(unknown) => {
                Err(refused(Refusal::UnknownArgument { parameter: shortened(unknown), allowed: known.to_vec() }))
            }
        }
    }

    /// A text; absent, `null` and empty are the same. Anything else than a text is refused.
    fn text(&self, parameter: &'static str, allowed: &str) -> Result<Option<String>, Refused> {
        match self.arguments.get(parameter) {
            None | Some(Json::Null) => Ok(None),
            Some(Json::String(text)) => Ok(Some(text.trim().to_owned()).filter(|t| !t.is_empty())),
            Some(other @ (Json::Bool(_) | Json::Number(_) | Json::Array(_) | Json::Object(_))) => {
                Err(self.invalid(parameter, other, allowed.to_owned()))
            }
        }
    }

    fn device(&self) -> Result<&'a Entry, Refused> {
        let missing = || Refusal::MissingArgument { parameter: "device", allowed: self.device_names() };
        self.optional_device()?.ok_or_else(|| refused(missing()))
    }

    fn optional_device(&self) -> Result<Option<&'a Entry>, Refused> {
        let Some(asked) = self.text("device", &self.device_names())? else { return Ok(None) };
        let refusal = match self.house.find(&asked) {
            Found::One(id) => match self.house.by_id(&id) {
                Some(entry) => return Ok(Some(entry)),
                None => Refusal::UnknownDevice { asked: shortened(&asked), near: Vec::new() },
            },
            Found::Several(candidates) => Refusal::AmbiguousName { asked: shortened(&asked), candidates },
            Found::None(near) => Refusal::UnknownDevice { asked: shortened(&asked), near },
        };
        Err(refused(refusal))
    }

    fn room(&self) -> Result<Option<String>, Refused> {
        let rooms = self.house.rooms();
        let Some(asked) = self.text("room", &rooms.join(", "))? else { return Ok(None) };
        let wanted = asked.to_lowercase();
        let in_either = |e: &&Entry| {
            e.name.room.as_ref().is_some_and(|r| r.en.to_lowercase() == wanted || r.zh.to_lowercase() == wanted)
        };
        match self.house.entries().iter().find(in_either).and_then(Entry::room) {
            Some(room) => Ok(Some(room.to_owned())),
            None => Err(self.invalid("room", &Json::from(asked), rooms.join(", "))),
        }
    }

    fn fresh(&self, entry: &Entry) -> Result<bool, Refused> {
        const ALLOWED: &str = "yes, no";
        let word = self.text("fresh", ALLOWED).map_err(|r| Refused { device: Some(entry.id.clone()), ..r })?;
        match word.as_deref().map(str::to_lowercase).as_deref() {
            None | Some("yes") => Ok(true),
            Some("no") => Ok(false),
            Some(other) => Err(self.invalid("fresh", &Json::from(other), ALLOWED.to_owned()).of(entry)),
        }
    }

    fn switch(&self, entry: &Entry) -> Result<Request, Refused> {
        let Some(description) = &entry.description else {
            return self.switch_unheard(entry);
        };
        let Some(property) = entry.switch() else {
            let refusal = match description.properties.first() {
                Some(main) => Refusal::Forbidden { property: main.name.clone() },
                None => Refusal::UnknownProperty { asked: "to".to_owned(), known: Vec::new() },
            };
            return Err(refused(refusal).of(entry));
        };
        let (yes, no) = (state_word(true, property.role), state_word(false, property.role));
        let allowed = format!("{yes}, {no}");
        let word = self.text("to", &allowed).map_err(|r| r.of(entry))?;
        let value = match word.as_deref().map(str::to_lowercase) {
            None => return Err(refused(Refusal::MissingArgument { parameter: "to", allowed }).of(entry)),
            Some(word) if word == yes => true,
            Some(word) if word == no => false,
            Some(word) => return Err(self.invalid("to", &Json::from(word), allowed).of(entry)),
        };
        Ok(Request::Switch { device: entry.id.clone(), property: property.name.clone(), value: Value::Bool(value) })
    }

    fn switch_unheard(&self, entry: &Entry) -> Result<Request, Refused> {
        let allowed = SWITCH_WORDS.join(", ");
        match self.text("to", &allowed).map_err(|r| r.of(entry))?.map(|word| word.to_lowercase()) {
            None => Err(refused(Refusal::MissingArgument { parameter: "to", allowed }).of(entry)),
            Some(word) if SWITCH_WORDS.contains(&word.as_str()) => {
                Ok(Request::SwitchUnheard { device: entry.id.clone() })
            }
            Some(word) => Err(self.invalid("to", &Json::from(word), allowed).of(entry)),
        }
    }

    fn invalid(&self, parameter: &'static str, sent: &Json, allowed: String) -> Refused {
        let sent = match sent {
            Json::String(text) => shortened(text),
            other @ (Json::Null | Json::Bool(_) | Json::Number(_) | Json::Array(_) | Json::Object(_)) => {
                shortened(&other.to_string())
            }
        };
        refused(Refusal::InvalidArgument { parameter, sent, allowed })
    }

    fn device_names(&self) -> String {
        let entries = self.house.entries();
        if entries.len() > ALLOWED_NAMES_MAX {
            return "the name of a device, see find_devices".to_owned();
        }
        entries.iter().map(|e| e.shown.as_str()).collect::<Vec<_>>().join(", ")
    }
}

impl Refused {
    fn of(self, entry: &Entry) -> Self {
        Self { device: Some(entry.id.clone()), ..self }
    }
}

fn refused(refusal: Refusal) -> Refused {
    Refused { refusal, device: None }
}

fn shortened(text: &str) -> String {
    let mut short: String = text.chars().take(SENT_CHARS_MAX).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short
}
