//! From the arguments of a call to a request, or to the refusal that names what is wrong and what is allowed.
//!
//! The SDK checks nothing against a schema, and its own messages are for programmers; a model needs the parameter,
//! what it sent and what it may send. Pure: knows names, not state.

mod wishes;

pub(super) use wishes::options_of;

use serde_json::{Map, Value as Json};

use super::{
    catalogue::Tool,
    house::{Entry, House, Meant},
};
use crate::{
    names::Thing,
    property::{DeviceId, PropertyName},
    twin::{
        wish::{ActionName, Wish},
        words::{OpId, Refusal},
    },
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
    /// Reads the state of a device, or of one property.
    State {
        /// What is asked about.
        thing: Thing,
        /// Whether to ask the device now.
        fresh: bool,
    },
    /// Makes one wish true.
    Set {
        /// The device.
        device: DeviceId,
        /// The wish.
        wish: Wish,
    },
    /// Makes several wishes true, side by side (semantics 7.1).
    Together(Together),
    /// Has a device do something that leaves no state.
    Run {
        /// The device.
        device: DeviceId,
        /// The action.
        action: ActionName,
    },
    /// Something of a device that has not greeted this hub yet: what can be done with it is not known.
    Unheard {
        /// The device, or its part.
        thing: Thing,
    },
    /// Tells what became of an operation.
    Check {
        /// Which one.
        operation: Option<OpId>,
        /// The latest of this device, or of this part of it.
        thing: Option<Thing>,
    },
    /// Carries out what was asked about.
    Confirm {
        /// What was said: the code of the question, or a secret.
        code: String,
    },
    /// Tests the way to the hub.
    Ping,
}

/// Several wishes under one name.
#[derive(Clone, Debug, PartialEq)]
pub struct Together {
    /// The group or the scene, as it is listed.
    pub name: String,
    /// Whether it is a scene; else a group.
    pub is_scene: bool,
    /// What is wished, never empty.
    pub members: Vec<Part>,
}

/// One wish of several.
#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    /// The device.
    pub device: DeviceId,
    /// The wish.
    pub wish: Wish,
    /// Whether the whole counts as done only with it.
    pub required: bool,
}

/// Why the arguments are no request.
#[derive(Clone, Debug, PartialEq)]
pub struct Refused {
    /// What was wrong.
    pub refusal: Refusal,
    /// The thing that was meant, where that much was clear, and the property, where one was.
    pub about: Option<(DeviceId, Option<PropertyName>)>,
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
            Ok(Request::State { thing: entry.thing.clone(), fresh: given.fresh(entry)? })
        }
        Tool::SwitchDevice => match given.meant()? {
            Meant::Group(group) => given.switch_group(group),
            Meant::Thing(entry) => given.switch(entry),
            Meant::Several(_) | Meant::Nobody(_) => Err(given.missing_device()),
        },
        Tool::SetDeviceLevel => given.level(given.device()?),
        Tool::SetDeviceOption => given.option(given.device()?),
        Tool::RunDeviceAction => given.action(given.device()?),
        Tool::ActivateScene => given.scene(),
        Tool::CheckOperation => {
            let operation = given.text("operation", "the id of an operation")?.map(|id| OpId::new(&id));
            let thing = given.optional_device()?.map(|e| e.thing.clone());
            Ok(Request::Check { operation, thing })
        }
        Tool::ConfirmOperation => {
            let allowed = "the code that was returned, or what the user said";
            let missing = Refusal::MissingArgument { parameter: "code", allowed: allowed.to_owned() };
            Ok(Request::Confirm { code: given.text("code", allowed)?.ok_or_else(|| refused(missing))? })
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
                Err(invalid(parameter, other, allowed.to_owned()))
            }
        }
    }

    /// A thing or a group; never several or nobody.
    fn meant(&self) -> Result<Meant<'a>, Refused> {
        match self.optional_meant()? {
            Some(meant) => Ok(meant),
            None => Err(self.missing_device()),
        }
    }

    fn optional_meant(&self) -> Result<Option<Meant<'a>>, Refused> {
        let Some(asked) = self.text("device", &self.device_names())? else { return Ok(None) };
        match self.house.find(&asked) {
            Meant::Several(candidates) => Err(refused(Refusal::AmbiguousName { asked: shortened(&asked), candidates })),
            Meant::Nobody(near) => Err(refused(Refusal::UnknownDevice { asked: shortened(&asked), near })),
            meant @ (Meant::Thing(_) | Meant::Group(_)) => Ok(Some(meant)),
        }
    }

    fn device(&self) -> Result<&'a Entry, Refused> {
        self.optional_device()?.ok_or_else(|| self.missing_device())
    }

    /// One thing. A group is none: its members are the candidates.
    fn optional_device(&self) -> Result<Option<&'a Entry>, Refused> {
        match self.optional_meant()? {
            None | Some(Meant::Several(_) | Meant::Nobody(_)) => Ok(None),
            Some(Meant::Thing(entry)) => Ok(Some(entry)),
            Some(Meant::Group(group)) => {
                let entries = self.house.entries();
                let candidates = group.members.iter().filter_map(|at| entries.get(*at)).map(|e| e.shown.clone());
                Err(refused(Refusal::AmbiguousName { asked: group.shown.clone(), candidates: candidates.collect() }))
            }
        }
    }

    fn missing_device(&self) -> Refused {
        refused(Refusal::MissingArgument { parameter: "device", allowed: self.device_names() })
    }

    fn room(&self) -> Result<Option<String>, Refused> {
        let rooms = self.house.rooms();
        let Some(asked) = self.text("room", &rooms.join(", "))? else { return Ok(None) };
        let wanted = asked.to_lowercase();
        let in_either = |e: &&Entry| {
            e.place.as_ref().is_some_and(|r| r.en.to_lowercase() == wanted || r.zh.to_lowercase() == wanted)
        };
        match self.house.entries().iter().find(in_either).and_then(Entry::room) {
            Some(room) => Ok(Some(room.to_owned())),
            None => Err(invalid("room", &Json::from(asked), rooms.join(", "))),
        }
    }

    fn fresh(&self, entry: &Entry) -> Result<bool, Refused> {
        const ALLOWED: &str = "yes, no";
        let word = self.text("fresh", ALLOWED).map_err(|r| r.of(entry, None))?;
        match word.as_deref().map(str::to_lowercase).as_deref() {
            None | Some("yes") => Ok(true),
            Some("no") => Ok(false),
            Some(other) => Err(invalid("fresh", &Json::from(other), ALLOWED.to_owned()).of(entry, None)),
        }
    }

    fn device_names(&self) -> String {
        // Asked for at every call, needed for a refusal: no more is looked at than is said.
        let listed = self.house.listed().take(ALLOWED_NAMES_MAX + 1);
        let names: Vec<&str> = listed.map(|e| e.shown.as_str()).collect();
        if names.len() > ALLOWED_NAMES_MAX {
            return "the name of a device, see find_devices".to_owned();
        }
        names.join(", ")
    }
}

impl Refused {
    fn of(self, entry: &Entry, property: Option<&PropertyName>) -> Self {
        let property = property.or(entry.thing.property.as_ref()).cloned();
        Self { about: Some((entry.thing.device.clone(), property)), ..self }
    }
}

fn refused(refusal: Refusal) -> Refused {
    Refused { refusal, about: None }
}

fn invalid(parameter: &'static str, sent: &Json, allowed: String) -> Refused {
    let sent = match sent {
        Json::String(text) => shortened(text),
        other @ (Json::Null | Json::Bool(_) | Json::Number(_) | Json::Array(_) | Json::Object(_)) => {
            shortened(&other.to_string())
        }
    };
    refused(Refusal::InvalidArgument { parameter, sent, allowed })
}

fn shortened(text: &str) -> String {
    let mut short: String = text.chars().take(SENT_CHARS_MAX).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short
}
