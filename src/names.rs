//! What people call devices and rooms: display names in two languages, and finding the one that somebody meant.
//!
//! Names belong to the owner (semantics 2.9): they come from the configuration; without one the id is the name.
//! Pure; knows nothing of state or tools.

use crate::property::DeviceId;

/// A language that truetwin speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Hash, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Lang {
    /// English.
    #[default]
    En,
    /// Chinese.
    Zh,
}

/// One text in both languages.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Label {
    /// In English.
    pub en: String,
    /// In Chinese.
    pub zh: String,
}

impl Label {
    /// The same text in both.
    pub fn same(text: &str) -> Self {
        Self { en: text.to_owned(), zh: text.to_owned() }
    }

    /// The text in one language.
    pub fn get(&self, lang: Lang) -> &str {
        match lang {
            Lang::En => &self.en,
            Lang::Zh => &self.zh,
        }
    }
}

/// What one device is called, and where it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name {
    /// The device.
    pub device: DeviceId,
    /// Its display name.
    pub label: Label,
    /// Its room, if the owner gave one.
    pub room: Option<Label>,
}

/// Who a spoken name means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// Exactly one device.
    One(DeviceId),
    /// Several: their display names with the room, in the language asked.
    Several(Vec<String>),
    /// None; near display names, best first, at most five.
    None(Vec<String>),
}

/// How near a name must be to be offered as "did you mean": Jaro-Winkler similarity.
const NEAR: f64 = 0.72;

/// How many near names an answer carries; more would be a list nobody listens to.
const NEAR_MAX: usize = 5;

/// Finds whom `asked` means: an id, or a display name in either language, spaces and case aside; `room name` put
/// together also counts. Never chooses a near one instead (semantics 2.9).
pub fn find<'a>(asked: &str, names: impl IntoIterator<Item = &'a Name>, lang: Lang) -> Found {
    let wanted = folded(asked);
    let names: Vec<&Name> = names.into_iter().collect();
    if let Some(name) = names.iter().find(|n| n.device.as_str() == asked.trim()) {
        return Found::One(name.device.clone());
    }
    let hits: Vec<&&Name> = names.iter().filter(|n| spellings(n).any(|s| s == wanted)).collect();
    match hits.as_slice() {
        [one] => Found::One(one.device.clone()),
        [] => Found::None(near(&wanted, &names, lang)),
        several => Found::Several(several.iter().map(|n| shown(n, lang)).collect()),
    }
}

/// The display name with its room, as lists show it.
pub fn shown(name: &Name, lang: Lang) -> String {
    match (&name.room, lang) {
        (None, _) => name.label.get(lang).to_owned(),
        (Some(room), Lang::En) => format!("{} ({})", name.label.en, room.en),
        (Some(room), Lang::Zh) => format!("{}（{}）", name.label.zh, room.zh),
    }
}

fn spellings(name: &Name) -> impl Iterator<Item = String> {
    let labels = [&name.label.en, &name.label.zh];
    let rooms = name.room.iter().flat_map(|r| [&r.en, &r.zh]).collect::<Vec<_>>();
    // As lists and answers write them, so that whatever is offered is understood when it comes back.
    let with_room = rooms.iter().flat_map(|r| {
        labels.iter().flat_map(move |l| {
            [format!("{r}{l}"), format!("{r}的{l}"), format!("{l} ({r})"), format!("{l}（{r}）"), format!("{l} in {r}")]
        })
    });
    let with_room = with_room.map(|spelling| folded(&spelling));
    labels.iter().map(|l| folded(l)).chain(with_room).collect::<Vec<_>>().into_iter()
}

fn near(wanted: &str, names: &[&Name], lang: Lang) -> Vec<String> {
    let mut scored: Vec<(f64, String)> = names
        .iter()
        .map(|n| {
            let best = spellings(n)
                .chain([n.device.as_str().to_owned()])
                .map(|s| strsim::jaro_winkler(&s, wanted))
                .fold(0.0, f64::max);
            (best, shown(n, lang))
        })
        .filter(|(score, _)| *score >= NEAR)
        .collect();
    scored.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    scored.into_iter().take(NEAR_MAX).map(|(_, name)| name).collect()
}

fn folded(text: &str) -> String {
    text.chars().filter(|c| !c.is_whitespace()).flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lamp(id: &str, room: &str, room_zh: &str) -> Name {
        let label = Label { en: "lamp".into(), zh: "灯".into() };
        let device = DeviceId::new(id).expect("an id");
        Name { device, label, room: Some(Label { en: room.into(), zh: room_zh.into() }) }
    }

    #[test]
    fn s2_9_every_name_that_is_offered_is_understood() {
        let names = [lamp("a", "study", "书房"), lamp("b", "kitchen", "厨房")];
        for lang in [Lang::En, Lang::Zh] {
            let Found::Several(offered) = find(names[0].label.get(lang), &names, lang) else {
                panic!("two of one name")
            };
            let Found::None(near) = find("lamp in studi", &names, lang) else { panic!("no such name") };
            assert_eq!(offered.len(), 2);
            assert!(!near.is_empty());
            for name in offered.iter().chain(&near) {
                assert!(matches!(find(name, &names, lang), Found::One(_)), "{name}");
            }
        }
        assert_eq!(find("lamp in study", &names, Lang::En), Found::One(names[0].device.clone()));
        assert_eq!(find("厨房的灯", &names, Lang::Zh), Found::One(names[1].device.clone()));
    }
}
