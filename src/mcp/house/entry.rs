//! One thing of the house: a device, or a property of one that has a name of its own.

use std::sync::Arc;

use crate::{
    answer::Naming,
    authz::{Right, Rights},
    fleet::Card,
    names::{self, Known, Label, Lang, Named, Switch, Thing},
    property::{Action, Description, Kind, Property},
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
    /// Whether its caller may move all of it; else it may look at it, and move what of it can be set.
    pub writable: bool,
    pub(super) ear: String,
    pub(super) lang: Lang,
}

impl Entry {
    /// The things that a device is for a caller with these rights: itself, and its parts, without what may not be read.
    pub(super) fn of(card: &Card, rights: &Rights, lang: Lang) -> Vec<Self> {
        let (name, full) = (&card.name, card.description.as_deref());
        let mut things = names::things(name, full);
        // What is in scope without its device is a thing also where nobody gave it a name.
        for property in rights.parts_alone(&name.device) {
            let there = full.is_none_or(|d| d.property(property).is_some());
            if there && !things.iter().any(|named| named.thing.property.as_ref() == Some(property)) {
                things.push(names::part(name, full, property));
            }
        }
        things.retain(|named| rights.to(&named.thing) > Right::None);
        let reduced = full.and_then(|full| rights.reduced(&name.device, full)).map(Arc::new);
        let description = reduced.or_else(|| card.description.clone());
        let parts = things.iter().filter(|named| named.thing.property.is_some()).count();
        let whole_is_more = description.as_ref().is_none_or(|d| parts == 0 || parts < d.properties.len());
        let entry = |Named { thing, label, place }: Named| Self {
            listed: thing.property.is_some() || whole_is_more,
            writable: rights.to(&thing) == Right::Write,
            thing,
            label,
            place,
            shown: String::new(),
            description: description.clone(),
            ear: String::new(),
            lang,
        };
        things.into_iter().map(entry).collect()
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

    /// What `switch_device` sets.
    pub fn switch(&self) -> Switch<'_> {
        let own = self.thing.property.as_ref();
        let all = self.description.as_deref().map(|d| d.properties.as_slice()).unwrap_or_default();
        names::switch(all.iter().filter(move |p| own.is_none_or(|own| *own == p.name)))
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

    /// Whether it can be switched, or might be once it greets: a client that asks for the tools while the hub starts would
    /// otherwise never learn of it.
    pub fn is_switchable(&self) -> bool {
        match self.heard() {
            true => matches!(self.switch(), Switch::One(_)),
            false => self.writable,
        }
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
