//! One thing of the house: a device, or a property of one that has a name of its own.

use std::sync::Arc;

use crate::{
    answer::Naming,
    fleet::Card,
    names::{self, Known, Label, Lang, Part, Thing},
    property::{Action, Description, Kind, Property, Role},
};

/// One thing under its unique name.
#[derive(Clone, Debug)]
pub struct Entry {
    /// What it is: a device, or one property.
    pub thing: Thing,
    /// Its name in both languages.
    pub label: Label,
    /// Its room in both languages.
    pub place: Option<Label>,
    /// The display name that the catalogue lists: unique in the house.
    pub shown: String,
    /// Whether lists show it. A device all of whose properties are things of their own is only found, not listed.
    pub listed: bool,
    /// What its device says it has; `None` until it has ever greeted the hub.
    pub description: Option<Arc<Description>>,
    pub(super) ear: String,
    pub(super) lang: Lang,
}

/// What `switch_device` would set.
#[derive(Clone, Debug, PartialEq)]
pub enum Switch<'a> {
    /// This property.
    One(&'a Property),
    /// One of these; which one has to be said.
    Several(Vec<&'a Property>),
    /// Nothing: it can be read, or has not greeted yet.
    None,
}

impl Entry {
    /// The things that a device is: itself, and its parts.
    pub(super) fn of(card: &Card, lang: Lang) -> Vec<Self> {
        let name = &card.name;
        let entry = |property: Option<&Property>, label: Label, place: Option<Label>| Self {
            thing: Thing { device: name.device.clone(), property: property.map(|p| p.name.clone()) },
            label,
            place,
            shown: String::new(),
            listed: true,
            description: card.description.clone(),
            ear: String::new(),
            lang,
        };
        let mut whole = entry(None, name.label.clone(), name.room.clone());
        let Some(description) = &card.description else {
            // What has not greeted yet goes by its owner's names already.
            let parts = name.parts.iter().filter_map(|part| {
                let thing = Thing { property: Some(part.property.clone()), ..whole.thing.clone() };
                let place = part.room.clone().or_else(|| name.room.clone());
                Some(Self { thing, place, label: part.label.clone()?, ..whole.clone() })
            });
            let parts: Vec<Self> = parts.collect();
            return [whole].into_iter().chain(parts).collect();
        };
        let mut parts = Vec::new();
        for property in &description.properties {
            let part = name.parts.iter().find(|part| part.property == property.name);
            let place = part.and_then(|part| part.room.clone()).or_else(|| name.room.clone());
            if let Some(label) = part_label(card, description, property, part) {
                parts.push(entry(Some(property), label, place));
            }
        }
        whole.listed = parts.is_empty() || parts.len() < description.properties.len();
        [whole].into_iter().chain(parts).collect()
    }

    /// Its room in the language of the house.
    pub fn room(&self) -> Option<&str> {
        self.place.as_ref().map(|r| r.get(self.lang))
    }

    /// The properties that it stands for.
    pub fn properties(&self) -> impl Iterator<Item = &Property> {
        let all = self.description.iter().flat_map(|d| &d.properties);
        all.filter(|p| self.thing.property.as_ref().is_none_or(|own| *own == p.name))
    }

    /// What `switch_device` sets: the first property that is `true` or `false` and can be set. Where a device has several
    /// of the first one's role, nobody can know which is meant. What opens and has only a position is opened to its one
    /// end and closed to the other.
    pub fn switch(&self) -> Switch<'_> {
        let mut switches = self.properties().filter(|p| is_switch(p));
        let Some(first) = switches.next() else {
            return self.properties().find(|p| p.settable && ends(p).is_some()).map_or(Switch::None, Switch::One);
        };
        let same: Vec<&Property> = switches.filter(|p| p.role == first.role).collect();
        if same.is_empty() { Switch::One(first) } else { Switch::Several([first].into_iter().chain(same).collect()) }
    }

    /// The numbers that can be set.
    pub fn levels(&self) -> impl Iterator<Item = &Property> {
        self.properties().filter(|p| p.settable && matches!(p.kind, Kind::Integer | Kind::Number))
    }

    /// The modes and colours that can be set.
    pub fn options(&self) -> impl Iterator<Item = &Property> {
        self.properties().filter(|p| p.settable && matches!(p.kind, Kind::Enum | Kind::Colour))
    }

    /// What it can do that leaves no state; a part does nothing of its own.
    pub fn actions(&self) -> impl Iterator<Item = &Action> {
        self.description.iter().filter(|_| self.thing.property.is_none()).flat_map(|d| &d.actions)
    }

    /// Whether it has greeted this hub.
    pub fn heard(&self) -> bool {
        self.description.is_some()
    }

    /// The property that stands for the thing: what is switched, else its first.
    pub fn main(&self) -> Option<&Property> {
        match self.switch() {
            Switch::One(property) => Some(property),
            Switch::Several(properties) => properties.first().copied(),
            Switch::None => self.properties().next(),
        }
    }

    /// What the thing and a property or an action of it are called in an answer; without one of that name, its main
    /// property.
    pub fn naming(&self, property: Option<&str>) -> Naming {
        let named = property.and_then(|p| self.description.as_ref()?.property(p));
        let level = self.description.as_ref().map_or(0, |d| d.level);
        let naming = Naming::new(&self.shown, &self.ear, named.or_else(|| self.main()), self.lang).of_level(level);
        match property.filter(|_| named.is_none()).and_then(|p| self.description.as_ref()?.action(p)) {
            None => naming,
            Some(action) => naming.about_action(&action.name, action.role, self.lang),
        }
    }

    /// What it could be listed as, shortest first; the last, the id, is unique among ids.
    pub(super) fn forms(&self) -> [String; 4] {
        let label = self.label.get(self.lang);
        let with_id = match self.lang {
            Lang::En => format!("{label} ({})", self.thing),
            Lang::Zh => format!("{label}（{}）", self.thing),
        };
        [label.to_owned(), names::shown(&self.label, self.place.as_ref(), self.lang), with_id, self.thing.to_string()]
    }

    pub(super) fn known(&self) -> Known {
        let (spellings, own) = names::spellings(&self.label, self.place.as_ref());
        Known { offered: self.shown.clone(), id: Some(self.thing.to_string()), spellings, own, is_group: false }
    }

    pub(super) fn spoken(&self, with_room: bool) -> String {
        let label = self.label.get(self.lang);
        match (self.room().filter(|_| with_room), self.lang) {
            (None, _) => label.to_owned(),
            (Some(room), Lang::En) => format!("{room} {label}"),
            (Some(room), Lang::Zh) => format!("{room}的{label}"),
        }
    }
}

/// What a property is called if it is a thing of its own: by its owner, or by its device where the owner accepts that; and
/// one of several switches of a kind goes by its device and its own name (in Chinese by its place among them, since devices'
/// names for properties are Latin), so that it can be chosen at all.
fn part_label(card: &Card, description: &Description, property: &Property, part: Option<&Part>) -> Option<Label> {
    if let Some(label) = part.and_then(|part| part.label.clone()) {
        return Some(label);
    }
    let proposed = description.labels.iter().find(|(name, _)| card.name.proposals && *name == property.name);
    if let Some((_, label)) = proposed {
        return Some(Label::same(label));
    }
    let alike = |p: &&Property| is_switch(p) && p.role == property.role;
    if !is_switch(property) || description.properties.iter().filter(alike).count() < 2 {
        return None;
    }
    let at = description.properties.iter().filter(alike).position(|p| p.name == property.name)? + 1;
    let Label { en, zh } = &card.name.label;
    Some(Label { en: format!("{en} {}", property.name.replace('_', " ")), zh: format!("{zh}第{at}路") })
}

/// The closed and the open end of a position.
pub(in crate::mcp) fn ends(property: &Property) -> Option<(f64, f64)> {
    let opens = matches!(property.role, Role::Blind | Role::Door | Role::Valve);
    let number = matches!(property.kind, Kind::Integer | Kind::Number);
    property.min.zip(property.max).filter(|_| opens && number)
}

fn is_switch(property: &Property) -> bool {
    property.kind == Kind::Bool && property.settable
}
