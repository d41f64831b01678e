//! What the configuration names and nothing here is called: a typo, or what is still to come. It is told and never refused: a
//! device may be added later, and what one has is known only once it has connected.

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
};

use super::access;
use crate::{
    config::Config,
    names::{Found, Known, Label, Member, Name, Names, folded, spellings},
    property::{Description, DeviceId},
};

/// What each device said last that it has, of those that ever connected.
pub type Described = HashMap<DeviceId, Arc<Description>>;

/// In sentences: devices without a password, and what scenes, sensors, buttons, lists of callers and their rooms name in vain.
/// `able`: the devices that have a password; `described`: what is known of them.
pub fn unknown(config: &Config, able: &[DeviceId], described: &Described) -> Vec<String> {
    let home = Home::new(config, able, described);
    let mut told = without_password(config, able);
    for scene in &config.scenes {
        let wrong = scene.members.iter().filter_map(|member| home.member(member));
        told.extend(wrong.map(|wrong| format!("scene {:?}: {wrong}", scene.label.en)));
    }
    let properties = config.devices.iter().flat_map(|(id, device)| device.properties.iter().map(move |p| (id, p)));
    for (id, (property, settings)) in properties {
        for (key, sensor) in [("verify_with", &settings.verify_with), ("press_with", &settings.press_with)] {
            let wrong = sensor.as_ref().and_then(|sensor| home.device(&sensor.device));
            told.extend(wrong.map(|wrong| format!("devices.{id}.properties.{property}: {key}: {wrong}")));
        }
    }
    for (whose, caller) in [("callers.http", &config.callers.http), ("callers.stdio", &config.callers.stdio)] {
        told.extend(home.lists(whose, caller.devices.as_ref(), caller.read.as_ref()));
    }
    for endpoint in &config.endpoints {
        let whose = format!("endpoint {}", endpoint.name.as_deref().unwrap_or_default());
        told.extend(home.lists(&whose, endpoint.devices.as_ref(), endpoint.read.as_ref()));
        let wrong = endpoint.room.as_ref().and_then(|room| home.room(room));
        told.extend(wrong.map(|wrong| format!("{whose}: {wrong}")));
    }
    told
}

/// Devices that the configuration speaks of and that cannot connect.
fn without_password(config: &Config, able: &[DeviceId]) -> Vec<String> {
    let names = Names::new(able.iter().map(|id| bearer(&config.name(id))).collect());
    let unable = config.devices.keys().filter(|id| !able.contains(id));
    let told = |id: &DeviceId| {
        let near = near(id.as_str(), &names);
        format!("devices.{id}: no device {id} has a password (truetwin device add {id}), or it is a typo{near}")
    };
    unable.map(told).collect()
}

/// All that can be named.
struct Home<'a> {
    names: Vec<Name>,
    described: &'a Described,
    devices: Names,
}

impl<'a> Home<'a> {
    fn new(config: &Config, able: &[DeviceId], described: &'a Described) -> Self {
        let devices: BTreeSet<&DeviceId> = config.devices.keys().chain(able).collect();
        let names: Vec<Name> = devices.into_iter().map(|id| config.name(id)).collect();
        let devices = Names::new(names.iter().map(bearer).collect());
        Self { names, described, devices }
    }

    /// What is wrong with a device's id, if anything.
    fn device(&self, id: &DeviceId) -> Option<String> {
        let known = self.names.iter().any(|name| name.device == *id);
        (!known).then(|| format!("no device has the id {id} (yet){}", near(id.as_str(), &self.devices)))
    }

    fn member(&self, member: &Member) -> Option<String> {
        let (device, property) = (&member.device, &*member.property);
        if let Some(wrong) = self.device(device) {
            return Some(wrong);
        }
        let properties = &self.described.get(device)?.properties;
        match properties.iter().find(|known| *known.name == *property) {
            Some(known) if known.settable => None,
            Some(_) => Some(format!("{property} of {device} can be read, and not be set")),
            None => {
                let settable = properties.iter().filter(|known| known.settable);
                let near = near(property, &words(settable.map(|known| &*known.name)));
                Some(format!("{device} has no property {property}{near}"))
            }
        }
    }

    /// What of a caller's two lists selects nothing.
    fn lists(&self, whose: &str, devices: Option<&Vec<String>>, read: Option<&Vec<String>>) -> Vec<String> {
        let described = |name: &Name| self.described.get(&name.device).map(|known| &**known);
        let rights = access::scope(devices, read).rights(self.names.iter().map(|name| (name, described(name))));
        let parts = self.names.iter().flat_map(|name| &name.parts).filter_map(|part| part.label.as_ref());
        let labels = self.names.iter().map(|name| &name.label).chain(parts).chain(self.rooms());
        let known = words(labels.flat_map(both).chain(self.names.iter().map(|name| name.device.as_str())));
        let told = |word: &String| format!("{whose}: {word:?} selects nothing (yet){}", near(word, &known));
        rights.unmatched().iter().map(told).collect()
    }

    /// What is wrong with the room of a caller, if anything.
    fn room(&self, room: &str) -> Option<String> {
        let known = self.rooms().flat_map(both).any(|known| folded(known) == folded(room));
        (!known)
            .then(|| format!("nothing is in a room {room:?} (yet){}", near(room, &words(self.rooms().flat_map(both)))))
    }

    fn rooms(&self) -> impl Iterator<Item = &Label> {
        let own = self.names.iter().filter_map(|name| name.room.as_ref());
        own.chain(self.names.iter().flat_map(|name| &name.parts).filter_map(|part| part.room.as_ref()))
    }
}

fn both(label: &Label) -> [&str; 2] {
    [&label.en, &label.zh]
}

/// A device, under its id and its names.
fn bearer(name: &Name) -> Known {
    let (spellings, own) = spellings(&name.label, name.room.as_ref());
    let id = name.device.to_string();
    Known { offered: id.clone(), id: Some(id), spellings, own, is_group: false }
}

/// Words that stand for themselves, each once.
fn words<'a>(words: impl Iterator<Item = &'a str>) -> Names {
    let all: BTreeSet<&str> = words.collect();
    let known = |word: &str| {
        let spellings = vec![folded(word)];
        Known { offered: word.to_owned(), id: None, own: spellings.len(), spellings, is_group: false }
    };
    Names::new(all.into_iter().map(known).collect())
}

/// The end of a sentence: what was probably meant; nothing if nothing is near.
fn near(word: &str, known: &Names) -> String {
    let found = match known.find(word) {
        Found::One(at) => vec![at],
        Found::Several(all) | Found::None(all) => all,
    };
    let offered: Vec<&str> = found.into_iter().map(|at| known.offered(at)).collect();
    if offered.is_empty() { String::new() } else { format!("; did you mean {}?", offered.join(" or ")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::property::{Class, Evidence, Kind, Property, Role, Terms};

    fn id(text: &str) -> DeviceId {
        DeviceId::new(text).expect("an id")
    }

    fn property(name: &str, settable: bool) -> Property {
        Property {
            name: name.into(),
            role: Role::Light,
            kind: Kind::Bool,
            unit: None,
            min: None,
            max: None,
            step: None,
            tolerance: None,
            values: Vec::new(),
            class: Class::Momentary,
            feedback: Evidence::Pin,
            expected_ms: 300,
            stable_ms: 200,
            min_interval_ms: 0,
            settable,
            repeatable: true,
            terms: Terms::default(),
        }
    }

    fn told(text: &str, described: &Described) -> Vec<String> {
        let config = Config::parse("t", text).expect("good");
        unknown(&config, &[id("lamp"), id("door-bell")], described)
    }

    #[test]
    fn a_member_of_a_scene_that_nothing_is_called_is_told_with_near_names() {
        let text = "[[scene]]\nname = \"evening\"\nmembers = [{ device = \"lmap\", property = \"relay\", value = true }, \
                    { device = \"lamp\", property = \"realy\", value = true }, { device = \"lamp\", property = \"power\", value = 1 }]";
        let first = "scene \"evening\": no device has the id lmap (yet); did you mean lamp?";
        assert_eq!(told(text, &Described::new()), [first], "what a lamp has is not known before it has connected");
        let properties = vec![property("relay", true), property("power", false)];
        let lamp = Description { properties, ..Description::default() };
        assert_eq!(
            told(text, &Described::from([(id("lamp"), Arc::new(lamp))])),
            [
                first,
                "scene \"evening\": lamp has no property realy; did you mean relay?",
                "scene \"evening\": power of lamp can be read, and not be set",
            ]
        );
    }

    #[test]
    fn what_a_list_a_room_or_a_button_names_in_vain_is_told_and_what_may_come_is_not() {
        let text = "[devices.lamp]\nname = \"desk lamp\"\nroom = \"study\"\n\
                    [devices.lamp.properties.relay]\nconfirm = \"press\"\npress_with = \"doorbell.presses\"\n\
                    [devices.lmap]\n\
                    [callers.http]\ndevices = [\"study\", \"desk lamp\", \"lamp.relay\", \"all study lights\", \"all fans\"]\n\
                    read = [\"*\"]\n\
                    [[endpoint]]\nname = \"kitchen\"\ndevices = [\"studi\", \"xyz\"]\nroom = \"stduy\"";
        assert_eq!(
            told(text, &Described::new()),
            [
                "devices.lmap: no device lmap has a password (truetwin device add lmap), or it is a typo; did you mean lamp?",
                "devices.lamp.properties.relay: press_with: no device has the id doorbell (yet); did you mean door-bell?",
                "endpoint kitchen: \"studi\" selects nothing (yet); did you mean study?",
                "endpoint kitchen: \"xyz\" selects nothing (yet)",
                "endpoint kitchen: nothing is in a room \"stduy\" (yet); did you mean study?",
            ]
        );
    }
}
