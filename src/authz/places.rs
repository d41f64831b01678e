//! Which things of a home a selector hits.

use crate::{
    names::{self, GroupName, Label, Name, Named, Switch, folded},
    property::{Description, DeviceId, PropertyName, Role},
};

/// One device, with all that a selector may name of it.
pub(super) struct Known {
    pub(super) device: DeviceId,
    whole: Spot,
    pub(super) parts: Vec<KnownPart>,
}

/// One property, whether or not it has a name of its own.
pub(super) struct KnownPart {
    pub(super) property: PropertyName,
    /// Where it is; with what it is called and does, if it is a thing of its own.
    spot: Spot,
    is_thing: bool,
}

/// What a thing goes by.
struct Spot {
    /// Its own names, folded.
    own: Vec<String>,
    /// With its room, folded.
    with_room: Vec<String>,
    place: Option<Label>,
    /// Of which groups it is a member: those of this role.
    role: Option<Role>,
}

impl Known {
    pub(super) fn new(name: &Name, description: Option<&Description>) -> Self {
        let things = names::things(name, description);
        let properties = description.map(|d| d.properties.as_slice()).unwrap_or_default();
        let switched = match names::switch(properties.iter()) {
            Switch::One(property) => Some(property),
            Switch::Several(_) | Switch::None => None,
        };
        let of_thing = |property: &str| things.iter().find(|named| named.thing.property.as_deref() == Some(property));
        // As in the groups of a house: a device that is switched by a part of it is not a member once more.
        let whole_role = switched.filter(|property| of_thing(&property.name).is_none()).map(|property| property.role);
        let settled = name.parts.iter().map(|part| &part.property).chain(properties.iter().map(|p| &p.name));
        let mut parts: Vec<KnownPart> = Vec::new();
        for property in settled {
            if parts.iter().any(|known| known.property == *property) {
                continue;
            }
            let named = of_thing(property);
            let described = properties.iter().find(|p| p.name == *property);
            let role = described.filter(|_| named.is_some()).and_then(|p| match names::switch([p].into_iter()) {
                Switch::One(property) => Some(property.role),
                Switch::Several(_) | Switch::None => None,
            });
            let spot = match named {
                Some(named) => Spot::new(named, role),
                None => Spot {
                    own: Vec::new(),
                    with_room: Vec::new(),
                    role: None,
                    ..Spot::new(&names::part(name, description, property), None)
                },
            };
            parts.push(KnownPart { property: property.clone(), spot, is_thing: named.is_some() });
        }
        let whole = things.first().map(|named| Spot::new(named, whole_role)).expect("a device is a thing itself");
        Self { device: name.device.clone(), whole, parts }
    }

    fn places(&self) -> impl Iterator<Item = &Label> {
        let parts = self.parts.iter().map(|part| &part.spot);
        std::iter::once(&self.whole).chain(parts).filter_map(|spot| spot.place.as_ref())
    }
}

impl Spot {
    fn new(named: &Named, role: Option<Role>) -> Self {
        let (mut own, count) = names::spellings(&named.label, named.place.as_ref());
        let with_room = own.split_off(count);
        Self { own, with_room, place: named.place.clone(), role }
    }
}

/// One entry of a selection.
pub(super) struct Selector<'a> {
    text: &'a str,
    folded: String,
}

/// What of one device a selector selects.
#[derive(Debug, Default)]
pub(super) struct Hits {
    /// The device as a whole.
    pub(super) whole: bool,
    /// These of its properties.
    pub(super) parts: Vec<PropertyName>,
}

impl Hits {
    pub(super) fn any(&self) -> bool {
        self.whole || !self.parts.is_empty()
    }
}

impl<'a> Selector<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        let text = text.trim();
        Self { text, folded: folded(text) }
    }

    /// Whether an id or an own name of a device or of a part is this.
    pub(super) fn names_something_of(&self, known: &Known) -> bool {
        self.is_device(known)
            || known.parts.iter().any(|part| self.is_part(known, part))
            || self.property_of(known).is_some()
    }

    /// Whether it says a group that there might be: of what has not greeted yet, nobody knows what it is.
    pub(super) fn could_be_a_group(&self, home: &[Known]) -> bool {
        let is = |room: Option<&Label>| GroupName::all_of(room).any(|group| group.spellings().contains(&self.folded));
        is(None) || home.iter().flat_map(Known::places).any(|place| is(Some(place)))
    }

    /// What it selects of a device; `by_name` says that somewhere in the home something bears this as its own name.
    pub(super) fn hits(&self, known: &Known, by_name: bool) -> Hits {
        let mut hits = Hits::default();
        let all = known.parts.iter().map(|part| part.property.clone());
        if by_name {
            if self.is_device(known) {
                return Hits { whole: true, parts: all.collect() };
            }
            let named = known.parts.iter().filter(|part| self.is_part(known, part));
            hits.parts = named.map(|part| part.property.clone()).chain(self.property_of(known)).collect();
            return hits;
        }
        if known.whole.with_room.contains(&self.folded) {
            return Hits { whole: true, parts: all.collect() };
        }
        let (by_room, by_group) = (self.is_room(&known.whole), self.is_group(&known.whole));
        hits.whole = by_room || by_group;
        for part in &known.parts {
            let called = part.spot.with_room.contains(&self.folded) || self.is_group(&part.spot);
            if called || self.is_room(&part.spot) || by_group && !part.is_thing {
                hits.parts.push(part.property.clone());
            }
        }
        hits
    }

    fn is_device(&self, known: &Known) -> bool {
        known.device.as_str() == self.text || known.whole.own.contains(&self.folded)
    }

    fn is_part(&self, known: &Known, part: &KnownPart) -> bool {
        self.property_of(known).as_ref() == Some(&part.property) || part.spot.own.contains(&self.folded)
    }

    /// `board.relay2`: a property of the device, also one that it has not told of yet.
    fn property_of(&self, known: &Known) -> Option<PropertyName> {
        let (device, property) = self.text.split_once('.')?;
        (device == known.device.as_str() && !property.is_empty()).then(|| property.into())
    }

    fn is_room(&self, spot: &Spot) -> bool {
        spot.place.as_ref().is_some_and(|place| folded(&place.en) == self.folded || folded(&place.zh) == self.folded)
    }

    fn is_group(&self, spot: &Spot) -> bool {
        let Some(role) = spot.role else { return false };
        let group = |room: Option<&Label>| GroupName::new(role, room.cloned());
        let groups = [group(None), spot.place.as_ref().and_then(|place| group(Some(place)))];
        groups.into_iter().flatten().any(|group| group.spellings().contains(&self.folded))
    }
}
