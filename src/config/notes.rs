//! What is allowed and probably not meant.

use super::{Config, TlsMode};
use crate::names::{Lang, Name, shown};

impl Config {
    /// What an owner should know of a configuration that is right as such, in sentences.
    pub fn notes(&self) -> Vec<String> {
        let names: Vec<Name> = self.devices.keys().map(|id| self.name(id)).collect();
        let same = |one: &Name, other: &Name, lang| {
            one.label.get(lang) == other.label.get(lang)
                && one.room.as_ref().map(|room| room.get(lang)) == other.room.as_ref().map(|room| room.get(lang))
        };
        let mut notes = Vec::new();
        for (at, one) in names.iter().enumerate() {
            for other in &names[at + 1..] {
                if let Some(lang) = [Lang::En, Lang::Zh].into_iter().find(|lang| same(one, other, *lang)) {
                    let called = shown(&one.label, one.room.as_ref(), lang);
                    let (one, other) = (&one.device, &other.device);
                    notes
                        .push(format!("{one} and {other} are both called {called}: they can be told apart by id only"));
                }
            }
        }
        if !self.mqtt.listen.ip().is_loopback() && self.mqtt.tls == TlsMode::Off {
            let listen = self.mqtt.listen;
            notes.push(format!(
                "mqtt.listen is {listen}, and mqtt.tls is \"off\": passwords of devices cross the network as they are"
            ));
        }
        for endpoint in self.endpoints.iter().filter(|endpoint| endpoint.boxes > 1) {
            if let (Some(name), Some(room)) = (&endpoint.name, &endpoint.room) {
                let boxes = endpoint.boxes;
                notes.push(format!("endpoint {name}: room {room} does nothing while {boxes} boxes speak through it"));
            }
        }
        notes
    }
}
