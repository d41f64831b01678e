//! What the tools have to do with: the devices of the fleet under names that are unique in one language.
//!
//! Built from the fleet's cards whenever its revision changes, kept otherwise. Knows nothing of presence or state.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use crate::{
    answer::{Naming, state_word},
    fleet::Card,
    names::{self, Found, Lang, Name},
    property::{Description, DeviceId, Kind, Property},
};

/// All words that a switch can take, in the order of the catalogue.
pub(super) const SWITCH_WORDS: [&str; 6] = ["on", "off", "open", "closed", "locked", "unlocked"];

/// The devices that the tools act on, in one language.
#[derive(Clone, Debug)]
pub struct House {
    lang: Lang,
    entries: Vec<Entry>,
    rooms: Vec<String>,
}

/// One device under its unique name.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The device.
    pub id: DeviceId,
    /// Its names, all of them understood.
    pub name: Name,
    /// The display name that the catalogue lists: unique in the house.
    pub shown: String,
    /// What it says it has; `None` until it has ever greeted the hub.
    pub description: Option<Arc<Description>>,
    ear: String,
    lang: Lang,
}

impl House {
    /// Gives each device a unique name: its display name, else with its room, else with its id.
    pub fn new(cards: &[Card], lang: Lang) -> Self {
        let mut entries: Vec<Entry> = cards.iter().map(|card| Entry::new(card, lang)).collect();
        // A form that any other device could also go by is nobody's: "lamp" stays ambiguous even if only one of two lamps
        // has no room (semantics 2.9).
        let mut users: HashMap<String, usize> = HashMap::new();
        for entry in &entries {
            for form in entry.forms().into_iter().collect::<HashSet<_>>() {
                *users.entry(form).or_default() += 1;
            }
        }
        for entry in &mut entries {
            let forms = entry.forms();
            let own = forms.iter().position(|form| users.get(form) == Some(&1)).unwrap_or(forms.len() - 1);
            entry.ear = entry.ear(own > 0);
            entry.shown = forms[own].clone();
        }
        let mut rooms: Vec<String> = Vec::new();
        for room in entries.iter().filter_map(Entry::room) {
            if !rooms.iter().any(|known| known == room) {
                rooms.push(room.to_owned());
            }
        }
        Self { lang, entries, rooms }
    }

    /// The language of the names.
    pub fn lang(&self) -> Lang {
        self.lang
    }

    /// All devices, ordered by id.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The rooms, in the order in which devices name them.
    pub fn rooms(&self) -> &[String] {
        &self.rooms
    }

    /// The devices that can be switched, and those that have not greeted yet and might be: a client that asks for the
    /// tools while the hub starts would otherwise never learn of them.
    pub fn switchable(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter().filter(|e| e.switch().is_some() || e.description.is_none())
    }

    /// The words that a switch takes somewhere in this house, in a fixed order; all of them while a device is unheard.
    pub fn switch_words(&self) -> Vec<&'static str> {
        if self.entries.iter().any(|e| e.description.is_none()) {
            return SWITCH_WORDS.to_vec();
        }
        let both = |p: &Property| [state_word(true, p.role), state_word(false, p.role)];
        let taken: Vec<&str> = self.switchable().filter_map(Entry::switch).flat_map(both).collect();
        SWITCH_WORDS.into_iter().filter(|w| taken.contains(w)).collect()
    }

    /// The device of that id.
    pub fn by_id(&self, id: &DeviceId) -> Option<&Entry> {
        self.entries.iter().find(|e| e.id == *id)
    }

    /// Who a name means: as the catalogue lists it, an id, or any display name of either language.
    pub fn find(&self, asked: &str) -> Found {
        match self.entries.iter().find(|e| e.shown == asked.trim()) {
            Some(entry) => Found::One(entry.id.clone()),
            None => names::find(asked, self.entries.iter().map(|e| &e.name), self.lang),
        }
    }
}

impl Entry {
    fn new(card: &Card, lang: Lang) -> Self {
        Self {
            id: card.name.device.clone(),
            name: card.name.clone(),
            shown: String::new(),
            description: card.description.clone(),
            ear: String::new(),
            lang,
        }
    }

    /// Its room in the language of the house.
    pub fn room(&self) -> Option<&str> {
        self.name.room.as_ref().map(|r| r.get(self.lang))
    }

    /// What `switch_device` sets: the first property that is `true` or `false` and can be set.
    pub fn switch(&self) -> Option<&Property> {
        self.description.as_ref()?.properties.iter().find(|p| p.kind == Kind::Bool && p.settable)
    }

    /// The property that stands for the device: what is switched, else its first.
    pub fn main(&self) -> Option<&Property> {
        self.switch().or_else(|| self.description.as_ref()?.properties.first())
    }

    /// What the device and a property of it are called in an answer; without a property of that name, its main one.
    pub fn naming(&self, property: Option<&str>) -> Naming {
        let named = property.and_then(|p| self.description.as_ref()?.property(p));
        Naming::new(&self.shown, &self.ear, named.or_else(|| self.main()), self.lang)
    }

    /// What it could be listed as, shortest first; the last, the id, is unique among ids.
    fn forms(&self) -> [String; 4] {
        let label = self.name.label.get(self.lang);
        let with_id = match self.lang {
            Lang::En => format!("{label} ({})", self.id),
            Lang::Zh => format!("{label}（{}）", self.id),
        };
        [label.to_owned(), names::shown(&self.name, self.lang), with_id, self.id.to_string()]
    }

    fn ear(&self, with_room: bool) -> String {
        let label = self.name.label.get(self.lang);
        match (self.room().filter(|_| with_room), self.lang) {
            (None, _) => label.to_owned(),
            (Some(room), Lang::En) => format!("{room} {label}"),
            (Some(room), Lang::Zh) => format!("{room}的{label}"),
        }
    }
}
