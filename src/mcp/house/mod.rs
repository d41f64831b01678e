//! What the tools have to do with: the things of the fleet, groups and scenes under names that are unique in one language.
//!
//! Built from the fleet's cards and a caller's policy whenever one of them changes, kept otherwise. What the caller may not
//! see is left out before names are made unique, so that it shows nowhere. Knows nothing of presence or state.

mod entry;
mod group;

use std::{
    collections::{HashMap, HashSet},
    ops::Range,
    sync::Arc,
};

use crate::{
    answer::{self, Naming, state_word},
    authz::{Policy, Right, Rights},
    fleet::Card,
    names::{Found, Known, Label, Lang, Member, Names, Scene, Switch, Thing, folded},
    property::{DeviceId, Property},
};

pub use self::{entry::Entry, group::Group};

/// All words that a switch can take, in the order of the catalogue.
pub(super) const SWITCH_WORDS: [&str; 6] = ["on", "off", "open", "closed", "locked", "unlocked"];

/// How many candidates a name that may mean several is answered with: as many as a list has rows; more nobody chooses from.
const CANDIDATES_MAX: usize = 8;

/// The things that the tools act on, in one language.
#[derive(Clone, Debug)]
pub struct House {
    lang: Lang,
    entries: Vec<Entry>,
    /// Where the entries of a device stand. Looked up many times in a call: among two thousand names a search by comparing was
    /// a fiftieth of it.
    places: HashMap<DeviceId, Range<usize>>,
    groups: Vec<Group>,
    sorts: Vec<group::Sort>,
    scenes: Arc<[Scene]>,
    rooms: Vec<String>,
    /// The entries, then the groups, as names are looked up.
    names: Names,
    rights: Rights,
    /// Where its caller stands, if that is a room of this house.
    here: Option<Label>,
}

/// Who a name means.
#[derive(Clone, Debug)]
pub enum Meant<'a> {
    /// This thing.
    Thing(&'a Entry),
    /// All of these.
    Group(&'a Group),
    /// One of these, as they are listed.
    Several(Vec<String>),
    /// Nobody; near ones, as they are listed.
    Nobody(Vec<String>),
}

impl House {
    /// The house of whoever may everything.
    pub fn new(cards: &[Card], scenes: Arc<[Scene]>, lang: Lang) -> Self {
        Self::of(cards, scenes, &Policy { lang, ..Policy::default() })
    }

    /// The house of a caller: without what it may not read, in its language. Each thing gets a unique name: its display name,
    /// else with its room, else with its id. A group whose names are all taken by things is none. A scene is there for whom
    /// all of it may be moved.
    pub fn of(cards: &[Card], scenes: Arc<[Scene]>, policy: &Policy) -> Self {
        let lang = policy.lang;
        let rights = policy.scope.rights(cards.iter().map(|card| (&card.name, card.description.as_deref())));
        let mut entries: Vec<Entry> = cards.iter().flat_map(|card| Entry::of(card, &rights, lang)).collect();
        // As the fleet gives them already; finding one by its device relies on it.
        entries.sort_by(|a, b| a.thing.device.cmp(&b.thing.device));
        // A form that any other thing could also go by is nobody's: "lamp" stays ambiguous even if only one of two lamps
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
            entry.ear = entry.spoken(own > 0);
            entry.shown = forms[own].clone();
        }
        let mut rooms: Vec<String> = Vec::new();
        for room in entries.iter().filter_map(Entry::room) {
            if !rooms.iter().any(|known| known == room) {
                rooms.push(room.to_owned());
            }
        }
        let mut known: Vec<Known> = entries.iter().map(Entry::known).collect();
        let (groups, sorts) = group::groups(&entries, &known, lang);
        known.extend(groups.iter().map(Group::known));
        let is_there = |device: &DeviceId| rights.is_everything() || entries.iter().any(|e| e.thing.device == *device);
        let may_move = |m: &Member| rights.of(&m.device, Some(&m.property)) == Right::Write && is_there(&m.device);
        let may = |scene: &&Scene| scene.members.iter().all(may_move);
        let scenes =
            if scenes.iter().all(|scene| may(&scene)) { scenes } else { scenes.iter().filter(may).cloned().collect() };
        let called = |room: &Label, here: &str| [&room.en, &room.zh].iter().any(|name| folded(name) == folded(here));
        let here = policy
            .here
            .as_ref()
            .and_then(|here| entries.iter().filter_map(|e| e.place.as_ref()).find(|room| called(room, here)));
        let here = here.cloned();
        let mut places: HashMap<DeviceId, Range<usize>> = HashMap::new();
        for (at, entry) in entries.iter().enumerate() {
            places.entry(entry.thing.device.clone()).or_insert(at..at).end = at + 1;
        }
        Self { lang, entries, places, groups, sorts, scenes, rooms, names: Names::new(known), rights, here }
    }

    /// What its caller may do.
    pub fn rights(&self) -> &Rights {
        &self.rights
    }

    /// The language of the names.
    pub fn lang(&self) -> Lang {
        self.lang
    }

    /// All things, ordered by device id, a device before its parts.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The things that lists show.
    pub fn listed(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter().filter(|e| e.listed)
    }

    /// The groups: at least two things of one role, in one room or in the whole home.
    pub fn groups(&self) -> &[Group] {
        &self.groups
    }

    /// The scenes.
    pub fn scenes(&self) -> &[Scene] {
        &self.scenes
    }

    /// The rooms, in the order in which things name them.
    pub fn rooms(&self) -> &[String] {
        &self.rooms
    }

    /// The things that can be switched, and those that have not greeted yet and might be.
    pub fn switchable(&self) -> impl Iterator<Item = &Entry> {
        self.listed().filter(|e| e.is_switchable())
    }

    /// The words that a switch takes somewhere in this house, in a fixed order; all of them while a device is unheard.
    pub fn switch_words(&self) -> Vec<&'static str> {
        if self.entries.iter().any(|e| !e.heard() && e.writable) {
            return SWITCH_WORDS.to_vec();
        }
        let both = |p: &Property| [state_word(true, p.role), state_word(false, p.role)];
        let switch = |e: &Entry| match e.switch() {
            Switch::One(property) => both(property).to_vec(),
            Switch::Several(_) | Switch::None => Vec::new(),
        };
        let taken: Vec<&str> = self.entries.iter().flat_map(switch).collect();
        SWITCH_WORDS.into_iter().filter(|w| taken.contains(w)).collect()
    }

    /// The device of that id, as a whole.
    pub fn device(&self, id: &DeviceId) -> Option<&Entry> {
        self.of_device(id).iter().find(|e| e.thing.property.is_none())
    }

    /// The entry of a thing.
    pub fn entry(&self, thing: &Thing) -> Option<&Entry> {
        self.of_device(&thing.device).iter().find(|e| e.thing == *thing)
    }

    /// The thing that stands for a property of a device: that property's own, else the whole device.
    pub fn thing(&self, id: &DeviceId, property: &str) -> Option<&Entry> {
        let own = |e: &&Entry| e.thing.property.as_deref() == Some(property);
        self.of_device(id).iter().find(own).or_else(|| self.device(id))
    }

    /// Whether a device has greeted this hub, so that it is known what it is.
    pub fn greeted(&self, id: &DeviceId) -> bool {
        self.of_device(id).iter().any(Entry::heard)
    }

    /// The things that a device is; they stand together, since entries are ordered by device.
    fn of_device(&self, id: &DeviceId) -> &[Entry] {
        self.places.get(id).and_then(|place| self.entries.get(place.clone())).unwrap_or_default()
    }

    /// What a property of a device, or the whole device, is called in an answer; one that has left the house since goes by
    /// its id.
    pub fn naming(&self, id: &DeviceId, property: Option<&str>) -> Naming {
        let entry = match property {
            Some(property) => self.thing(id, property),
            None => self.device(id),
        };
        entry.map_or_else(|| Naming::new(id.as_str(), id.as_str(), None, self.lang), |entry| entry.naming(property))
    }

    /// What a button is called in a question; one that is not of this house is "the button".
    pub fn button(&self, device: &DeviceId, property: &str, lang: Lang) -> String {
        match (self.thing(device, property), lang) {
            (Some(entry), _) => answer::button(&entry.ear, lang),
            (None, Lang::Zh) => "按钮".to_owned(),
            (None, Lang::En) => "button".to_owned(),
        }
    }

    /// Whether anything that may be moved is asked about first.
    pub fn asks(&self) -> bool {
        let asks = |e: &Entry| {
            e.properties().any(Property::may_need_confirmation) || e.actions().any(|a| a.needs_confirmation().is_some())
        };
        self.entries.iter().any(asks)
    }

    /// What a thing is called in an answer.
    pub fn naming_of(&self, thing: &Thing) -> Naming {
        self.naming(&thing.device, thing.property.as_deref())
    }

    /// Who a name means: as the catalogue lists it, an id, or any display name of either language. What several things are
    /// called means the one in the caller's room, if there is exactly one there.
    pub fn find(&self, asked: &str) -> Meant<'_> {
        let offered = |all: Vec<usize>| {
            let names = all.into_iter().take(CANDIDATES_MAX).map(|i| self.names.offered(i).to_owned());
            names.collect()
        };
        match self.names.find(asked) {
            Found::One(i) => match self.entries.get(i) {
                Some(entry) => Meant::Thing(entry),
                None => Meant::Group(&self.groups[i - self.entries.len()]),
            },
            Found::Several(all) => match self.only_here(&all) {
                Some(entry) => Meant::Thing(entry),
                None => Meant::Several(offered(all)),
            },
            Found::None(near) => self.by_sort(asked).unwrap_or_else(|| Meant::Nobody(offered(near))),
        }
    }

    /// Of several things that bear a name, the only one in the caller's room. Where a group is among them, a room was named.
    fn only_here(&self, all: &[usize]) -> Option<&Entry> {
        let entries = all.iter().map(|at| self.entries.get(*at)).collect::<Option<Vec<_>>>()?;
        let mut here = entries.into_iter().filter(|e| self.is_here(e));
        here.next().filter(|_| here.next().is_none())
    }

    fn is_here(&self, entry: &Entry) -> bool {
        self.here.is_some() && entry.place == self.here
    }

    /// Who is meant by what it is: "the light" is the only one, or the only one in the caller's room, else a question.
    fn by_sort(&self, asked: &str) -> Option<Meant<'_>> {
        let wanted = folded(asked);
        let is = |spelling: &str| wanted == spelling || wanted.strip_prefix("the") == Some(spelling);
        let sort = self.sorts.iter().find(|sort| sort.spellings.iter().any(|spelling| is(spelling)))?;
        if let [one] = sort.members.as_slice() {
            let entry = &self.entries[*one];
            // Who stands in a room without a light and says "the light" does not mean the one elsewhere.
            let elsewhere = sort.anywhere && self.here.is_some() && !self.is_here(entry);
            return Some(if elsewhere { Meant::Nobody(vec![entry.shown.clone()]) } else { Meant::Thing(entry) });
        }
        if let Some(entry) = self.only_here(&sort.members) {
            return Some(Meant::Thing(entry));
        }
        let members = sort.members.iter().take(CANDIDATES_MAX - 1).map(|at| self.entries[*at].shown.clone());
        Some(Meant::Several(members.chain(sort.all.clone()).collect()))
    }

    /// The scene of that name, in either language.
    pub fn scene(&self, asked: &str) -> Option<&Scene> {
        let wanted = asked.trim().to_lowercase();
        let bare = wanted.trim_end_matches("模式").trim_end_matches("场景");
        let is = |scene: &&Scene| {
            [&scene.label.en, &scene.label.zh].iter().any(|l| l.to_lowercase() == wanted || l.to_lowercase() == bare)
        };
        self.scenes.iter().find(is)
    }
}
