//! The groups of a house: the switches of one role in one room, and in the whole home.

use super::Entry;
use crate::{
    names::{GroupName, Known, Label, Lang, Switch, folded},
    property::Role,
};

/// How many things make a group: of one, its own name is the plainer word.
const MEMBERS_MIN: usize = 2;

/// Things of one role that are switched together.
#[derive(Clone, Debug)]
pub struct Group {
    /// What it is called in all languages.
    pub name: GroupName,
    /// As it is listed: unique in the house.
    pub shown: String,
    /// The places of its members among the house's entries.
    pub members: Vec<usize>,
}

impl Group {
    pub(super) fn known(&self) -> Known {
        let spellings = self.name.spellings();
        Known { offered: self.shown.clone(), id: None, spellings, own: 0, is_group: true }
    }
}

/// What people call a thing by what it is, without its name: "the light", 书房的灯.
#[derive(Clone, Debug)]
pub(super) struct Sort {
    /// The ways to say it, folded.
    pub(super) spellings: Vec<String>,
    /// Who may be meant, by place among the entries; never empty.
    pub(super) members: Vec<usize>,
    /// The group of all of them, as it is listed.
    pub(super) all: Option<String>,
    /// No room is named.
    pub(super) anywhere: bool,
}

/// The groups and the sorts that the entries make, rooms first. `known` are the entries' names: what they go by, no group is
/// listed as.
pub(super) fn groups(entries: &[Entry], known: &[Known], lang: Lang) -> (Vec<Group>, Vec<Sort>) {
    let mut sorted: Vec<(Role, Option<Label>, Vec<usize>)> = Vec::new();
    let mut put = |role: Role, room: Option<&Label>, member: usize| match sorted
        .iter_mut()
        .find(|(r, place, _)| *r == role && place.as_ref() == room)
    {
        Some((_, _, members)) => members.push(member),
        None => sorted.push((role, room.cloned(), vec![member])),
    };
    for (at, entry) in entries.iter().enumerate() {
        // A device that is several switches is in a group by its parts, one that is a part's device not once more.
        let Switch::One(property) = entry.switch() else { continue };
        let by_part = entry.thing.property.is_none()
            && entries
                .iter()
                .any(|e| e.thing.device == entry.thing.device && e.thing.property.as_ref() == Some(&property.name));
        if by_part {
            continue;
        }
        put(property.role, None, at);
        if let Some(room) = &entry.place {
            put(property.role, Some(room), at);
        }
    }
    sorted.sort_by_key(|(_, room, _)| room.is_none());
    let (mut groups, mut sorts) = (Vec::new(), Vec::new());
    for (role, room, members) in sorted {
        let anywhere = room.is_none();
        let Some(name) = GroupName::new(role, room) else { continue };
        let mut spellings = name.single();
        let mut all = None;
        if members.len() < MEMBERS_MIN {
            spellings.extend(name.spellings());
        } else {
            let taken = |form: &String| known.iter().any(|k| k.offered == *form || k.spellings.contains(&folded(form)));
            if let Some(shown) = name.forms(lang).into_iter().find(|form| !taken(form)) {
                all = Some(shown.clone());
                groups.push(Group { name, shown, members: members.clone() });
            }
        }
        sorts.push(Sort { spellings, members, all, anywhere });
    }
    (groups, sorts)
}
