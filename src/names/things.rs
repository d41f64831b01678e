//! What things a device is: itself, and those of its properties that have a name of their own; and what of a thing is
//! switched.

use super::{Label, Name, Part, Thing};
use crate::property::{Description, Kind, Property, Role, is_plain};

/// One thing with its name, which need not be unique, and its room.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    /// What it is.
    pub thing: Thing,
    /// Its name.
    pub label: Label,
    /// Its room: that of its device, if it has none of its own.
    pub place: Option<Label>,
}

/// What is set when a thing is switched.
#[derive(Clone, Debug, PartialEq)]
pub enum Switch<'a> {
    /// This property.
    One(&'a Property),
    /// One of these; which one has to be said.
    Several(Vec<&'a Property>),
    /// Nothing: it can be read, or has not greeted yet.
    None,
}

/// The things that a device is, itself first. What has not greeted yet goes by its owner's names already.
pub fn things(name: &Name, description: Option<&Description>) -> Vec<Named> {
    let whole = Named { thing: Thing::device(&name.device), label: name.label.clone(), place: name.room.clone() };
    let parts: Vec<Named> = match description {
        None => name.parts.iter().filter_map(|part| Some(of_part(name, &part.property, part.label.clone()?))).collect(),
        Some(description) => {
            let named = |p: &Property| Some(of_part(name, &p.name, part_label(name, description, p)?));
            description.properties.iter().filter_map(named).collect()
        }
    };
    [whole].into_iter().chain(parts).collect()
}

/// A property as a thing, also where nobody gave it a name: then it goes by its device and its own name.
pub fn part(name: &Name, description: Option<&Description>, property: &str) -> Named {
    let known = description.and_then(|d| part_label(name, d, d.property(property)?));
    let owners = || part_of(name, property).and_then(|part| part.label.clone());
    let plain = || {
        let Label { en, zh } = &name.label;
        // What a device calls it is said only if it is a mere word (semantics 7.4).
        if !is_plain(property) {
            return Label { en: format!("part of {en}"), zh: format!("{zh}的一路") };
        }
        let property = property.replace('_', " ");
        Label { en: format!("{en} {property}"), zh: format!("{zh} {property}") }
    };
    of_part(name, property, known.or_else(owners).unwrap_or_else(plain))
}

fn of_part(name: &Name, property: &str, label: Label) -> Named {
    let place = part_of(name, property).and_then(|part| part.room.clone()).or_else(|| name.room.clone());
    Named { thing: Thing { device: name.device.clone(), property: Some(property.into()) }, label, place }
}

fn part_of<'a>(name: &'a Name, property: &str) -> Option<&'a Part> {
    name.parts.iter().find(|part| *part.property == *property)
}

/// What a property is called if it is a thing of its own: by its owner, or by its device where the owner accepts that; and
/// one of several switches of a kind goes by its device and its own name (in Chinese by its place among them, since devices'
/// names for properties are Latin), so that it can be chosen at all.
fn part_label(name: &Name, description: &Description, property: &Property) -> Option<Label> {
    if let Some(label) = part_of(name, &property.name).and_then(|part| part.label.clone()) {
        return Some(label);
    }
    let proposed = description.labels.iter().find(|(of, _)| name.proposals && *of == property.name);
    if let Some((_, label)) = proposed {
        return Some(Label::same(label));
    }
    let alike = |p: &&Property| is_switch(p) && p.role == property.role;
    if !is_switch(property) || description.properties.iter().filter(alike).count() < 2 {
        return None;
    }
    let at = description.properties.iter().filter(alike).position(|p| p.name == property.name)? + 1;
    let Label { en, zh } = &name.label;
    let word = if is_plain(&property.name) { property.name.replace('_', " ") } else { at.to_string() };
    Some(Label { en: format!("{en} {word}"), zh: format!("{zh}第{at}路") })
}

/// What is set when something with these properties is switched: the first that is `true` or `false` and can be set. Where
/// there are several of the first one's role, nobody can know which is meant. What opens and has only a position is opened
/// to its one end and closed to the other.
pub fn switch<'a>(properties: impl Iterator<Item = &'a Property> + Clone) -> Switch<'a> {
    let mut switches = properties.clone().filter(|p| is_switch(p));
    let Some(first) = switches.next() else {
        return properties.clone().find(|p| p.settable && ends(p).is_some()).map_or(Switch::None, Switch::One);
    };
    let same: Vec<&Property> = switches.filter(|p| p.role == first.role).collect();
    if same.is_empty() { Switch::One(first) } else { Switch::Several([first].into_iter().chain(same).collect()) }
}

/// The closed and the open end of a position.
pub fn ends(property: &Property) -> Option<(f64, f64)> {
    let opens = matches!(property.role, Role::Blind | Role::Door | Role::Valve);
    let number = matches!(property.kind, Kind::Integer | Kind::Number);
    property.min.zip(property.max).filter(|_| opens && number)
}

fn is_switch(property: &Property) -> bool {
    property.kind == Kind::Bool && property.settable
}
