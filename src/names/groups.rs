//! Groups by room and role (semantics 2.9): "all lights in the living room", 客厅的灯.

use super::{Label, Lang, find::folded};
use crate::property::Role;

/// What a group of things of one role is called, in one room or in the whole home.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupName {
    /// What its members are.
    pub role: Role,
    /// Their room; `None` for the whole home.
    pub room: Option<Label>,
}

/// The words for the members: English plurals and Chinese nouns, the usual one first. `None` for roles of which nobody says
/// "all": what they are together would be a guess.
fn nouns(role: Role) -> Option<(&'static [&'static str], &'static [&'static str])> {
    match role {
        Role::Light => Some((&["lights", "lamps"], &["灯", "灯光"])),
        Role::Socket => Some((&["sockets", "outlets", "plugs"], &["插座"])),
        Role::Lock => Some((&["locks"], &["锁", "门锁"])),
        Role::Door => Some((&["doors"], &["门"])),
        Role::Blind => Some((&["blinds", "curtains", "shades"], &["窗帘"])),
        Role::Valve => Some((&["valves"], &["阀门", "水阀"])),
        Role::Heater => Some((&["heaters", "radiators"], &["暖气", "加热器"])),
        Role::Fan => Some((&["fans"], &["风扇"])),
        Role::Pump => Some((&["pumps"], &["水泵"])),
        Role::Sensor | Role::Other => None,
    }
}

/// The roles of which there are groups.
const ROLES: [Role; 9] =
    [Role::Light, Role::Socket, Role::Lock, Role::Door, Role::Blind, Role::Valve, Role::Heater, Role::Fan, Role::Pump];

impl GroupName {
    /// All groups that a room, or the whole home, might have.
    pub fn all_of(room: Option<&Label>) -> impl Iterator<Item = Self> {
        ROLES.into_iter().map(move |role| Self { role, room: room.cloned() })
    }

    /// A group; `None` for a role that makes none.
    pub fn new(role: Role, room: Option<Label>) -> Option<Self> {
        nouns(role).map(|_| Self { role, room })
    }

    /// What it may be listed as, the plainest first. The last says "all": a thing goes by that only if its owner is at
    /// pains to.
    pub fn forms(&self, lang: Lang) -> [String; 2] {
        let (en, zh) = self.nouns();
        match (&self.room, lang) {
            (Some(room), Lang::En) => [format!("{} {}", room.en, en[0]), format!("all {} {}", room.en, en[0])],
            (Some(room), Lang::Zh) => [format!("{}的{}", room.zh, zh[0]), format!("{}所有的{}", room.zh, zh[0])],
            (None, Lang::En) => [format!("all {}", en[0]), format!("all {} at home", en[0])],
            (None, Lang::Zh) => [format!("所有的{}", zh[0]), format!("家里所有的{}", zh[0])],
        }
    }

    /// All the ways in which it may be said, in both languages, folded.
    pub fn spellings(&self) -> Vec<String> {
        let (en, zh) = self.nouns();
        let mut all: Vec<String> = Vec::new();
        match &self.room {
            Some(room) => {
                for (r, n) in en.iter().map(|n| (&room.en, n)) {
                    let plain = [format!("{r} {n}"), format!("{n} in {r}"), format!("{n} in the {r}")];
                    all.extend(plain.iter().flat_map(|p| [p.clone(), format!("all {p}"), format!("all the {p}")]));
                }
                for (r, n) in zh.iter().map(|n| (&room.zh, n)) {
                    let between = ["", "的", "所有", "所有的", "全部", "全部的", "里的", "里所有的", "的所有"];
                    all.extend(between.iter().map(|between| format!("{r}{between}{n}")));
                    all.extend([format!("所有{r}{n}"), format!("所有{r}的{n}"), format!("全部{r}的{n}")]);
                }
            }
            None => {
                for n in en {
                    all.extend([
                        format!("all {n}"),
                        format!("all the {n}"),
                        format!("every {}", n.trim_end_matches('s')),
                    ]);
                    all.extend([format!("all {n} at home"), format!("all the {n} in the house")]);
                }
                for n in zh {
                    let before = ["所有", "所有的", "全部", "全部的", "家里的", "家里所有的", "家里全部的"];
                    all.extend(before.iter().map(|before| format!("{before}{n}")));
                }
            }
        }
        all.iter().map(|spelling| folded(spelling)).collect()
    }

    /// How one of its members may be called by what it is: "the light", 灯, "the study lamp". Folded. Where there is one
    /// member only, that is who is meant; else it has to be asked.
    pub fn single(&self) -> Vec<String> {
        let (en, zh) = self.nouns();
        let mut all: Vec<String> = Vec::new();
        for plural in en {
            let one = plural.trim_end_matches('s');
            match &self.room {
                Some(room) => {
                    let r = &room.en;
                    all.extend([format!("{r} {one}"), format!("{one} in {r}"), format!("{one} in the {r}")]);
                }
                None => all.extend([one.to_owned(), (*plural).to_owned()]),
            }
        }
        if self.room.is_none() {
            all.extend(zh.iter().map(|noun| (*noun).to_owned()));
        }
        all.iter().map(|spelling| folded(spelling)).collect()
    }

    fn nouns(&self) -> (&'static [&'static str], &'static [&'static str]) {
        nouns(self.role).expect("checked when it was made")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s2_9_what_a_group_is_listed_as_is_one_of_its_spellings() {
        let rooms = [None, Some(Label { en: "living room".into(), zh: "客厅".into() })];
        for room in rooms {
            let group = GroupName::new(Role::Light, room).expect("lights make a group");
            for lang in [Lang::En, Lang::Zh] {
                for form in group.forms(lang) {
                    assert!(group.spellings().contains(&folded(&form)), "{form}");
                }
            }
        }
        assert_eq!(GroupName::new(Role::Other, None), None);
    }
}
