//! A scope, resolved against the home as it is: which right a principal has to each thing.
//!
//! | a selector | selects |
//! |---|---|
//! | `*` | everything there is and will be |
//! | the id or the name of a device | the device and all its properties |
//! | `board.relay2`, or the name of a part | that property alone; its device as a whole stays unseen |
//! | else: a room | what is there: devices without those parts that are elsewhere, and parts that are there themselves |
//! | a group ("all lights", 客厅的灯) | its members: a device without the parts that have names of their own, or a part |
//! | a name with its room | the thing that is called so there |
//! | anything else | nothing |
//!
//! What several things are called selects them all. As everywhere (semantics 2.9), an owner's own name goes before what a
//! room or a group can be called.

use std::collections::BTreeMap;

use super::{
    Right, Scope, Selection,
    places::{Known, Selector},
};
use crate::{
    names::{Name, Thing},
    property::{Description, DeviceId, PropertyName},
};

/// What a principal may do with each thing of a home.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rights {
    /// To whatever is not listed below.
    usual: Right,
    devices: BTreeMap<DeviceId, Device>,
    unmatched: Vec<String>,
}

/// The rights to one device.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Device {
    /// To the device as a whole, its actions, and properties that are not listed below.
    whole: Right,
    parts: BTreeMap<PropertyName, Right>,
}

impl Rights {
    /// Everything may be moved.
    pub fn everything() -> Self {
        Self { usual: Right::Write, devices: BTreeMap::new(), unmatched: Vec::new() }
    }

    /// Whether everything may be moved, so that nothing has to be left out anywhere.
    pub fn is_everything(&self) -> bool {
        self.usual == Right::Write
    }

    /// The right to a device as a whole, or to one property of it.
    pub fn of(&self, device: &DeviceId, property: Option<&str>) -> Right {
        let Some(known) = self.devices.get(device) else { return self.usual };
        let own = property.and_then(|property| known.parts.get(property));
        own.copied().unwrap_or(known.whole)
    }

    /// The right to a thing.
    pub fn to(&self, thing: &Thing) -> Right {
        self.of(&thing.device, thing.property.as_deref())
    }

    /// Whether a property may be looked at.
    pub fn sees(&self, device: &DeviceId, property: &str) -> bool {
        self.of(device, Some(property)) >= Right::Read
    }

    /// The properties of a device that are in scope although the device as a whole is not.
    pub fn parts_alone(&self, device: &DeviceId) -> impl Iterator<Item = &PropertyName> {
        let known = self.devices.get(device).filter(|known| known.whole == Right::None);
        let parts = known.into_iter().flat_map(|known| &known.parts);
        parts.filter(|(_, right)| **right > Right::None).map(|(property, _)| property)
    }

    /// Selectors that select nothing in this home: misspelt, or of what has not greeted yet.
    pub fn unmatched(&self) -> &[String] {
        &self.unmatched
    }

    /// What of a device's description may be looked at: without the properties that may not be read, with those that may
    /// only be read as not settable, and without actions unless the whole device may be moved. `None` if all of it may be
    /// moved, so that it stands as it is.
    pub fn reduced(&self, device: &DeviceId, description: &Description) -> Option<Description> {
        let right = |property: &str| self.of(device, Some(property));
        let whole = self.of(device, None);
        if whole == Right::Write && description.properties.iter().all(|p| right(&p.name) == Right::Write) {
            return None;
        }
        let mut reduced = description.clone();
        reduced.properties.retain(|p| right(&p.name) > Right::None);
        for property in &mut reduced.properties {
            property.settable &= right(&property.name) == Right::Write;
        }
        reduced.labels.retain(|(of, _)| right(of) > Right::None);
        reduced.exclusive.iter_mut().for_each(|group| group.retain(|p| right(p) > Right::None));
        if whole != Right::Write {
            reduced.actions.clear();
        }
        Some(reduced)
    }
}

impl Scope {
    /// What the scope means in a home of these devices.
    pub fn rights<'a>(&self, home: impl IntoIterator<Item = (&'a Name, Option<&'a Description>)>) -> Rights {
        let usual = match (&self.write, &self.read) {
            (Selection::All, _) => return Rights::everything(),
            (Selection::Of(_), Selection::All) => Right::Read,
            (Selection::Of(_), Selection::Of(_)) => Right::None,
        };
        let home: Vec<Known> = home.into_iter().map(|(name, description)| Known::new(name, description)).collect();
        let blank = |known: &Known| {
            let parts = known.parts.iter().map(|part| (part.property.clone(), usual)).collect();
            (known.device.clone(), Device { whole: usual, parts })
        };
        let mut devices: BTreeMap<DeviceId, Device> = home.iter().map(blank).collect();
        let mut unmatched = Vec::new();
        for (selection, right) in [(&self.read, Right::Read), (&self.write, Right::Write)] {
            let Selection::Of(texts) = selection else { continue };
            for text in texts {
                let selector = Selector::new(text);
                let by_name = home.iter().any(|known| selector.names_something_of(known));
                let mut matched = selector.could_be_a_group(&home);
                for known in &home {
                    let Some(device) = devices.get_mut(&known.device) else { continue };
                    let hits = selector.hits(known, by_name);
                    matched |= hits.any();
                    if hits.whole {
                        device.whole = device.whole.max(right);
                    }
                    for property in hits.parts {
                        let own = device.parts.entry(property).or_insert(device.whole);
                        *own = (*own).max(right);
                    }
                }
                if !matched {
                    unmatched.push(text.clone());
                }
            }
        }
        Rights { usual, devices, unmatched }
    }
}

#[cfg(test)]
mod tests;
