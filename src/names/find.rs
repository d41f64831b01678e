//! Who a spoken name means.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use super::Label;

/// One thing that may be meant, under all its spellings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Known {
    /// What it is offered as: unique in the house, and understood when it comes back.
    pub offered: String,
    /// Its id: understood exactly as it is written.
    pub id: Option<String>,
    /// Its own names and what can be made of them, see [`spellings`]; folded.
    pub spellings: Vec<String>,
    /// How many of the spellings, from the front, are its own names without a room.
    pub own: usize,
    /// Whether it is a group: it stands back where a thing has exactly that name.
    pub is_group: bool,
}

/// Who a spoken name means, by place among those that were known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// Exactly one.
    One(usize),
    /// Several.
    Several(Vec<usize>),
    /// None; near ones, best first, at most five.
    None(Vec<usize>),
}

/// How near a name must be to be offered as "did you mean": Jaro-Winkler similarity.
const NEAR: f64 = 0.72;

/// The same for a name of at most [`SHORT`] characters: one wrong of two, as speech recognition hears Chinese names.
const NEAR_SHORT: f64 = 0.66;

/// What a short name is, characters.
const SHORT: usize = 3;

/// How many near names an answer carries; more would be a list nobody listens to.
const NEAR_MAX: usize = 5;

/// What the things of a house may be called. Looked up by a hash of each spelling: in a house of two thousand things
/// comparing them all cost a tenth of a call.
#[derive(Clone, Debug)]
pub struct Names {
    known: Vec<Known>,
    /// The hash of each text that is understood with the place of who bears it, in order.
    index: Vec<(u64, usize)>,
}

impl Names {
    /// Takes all that may be meant; places in answers are places in this list.
    pub fn new(known: Vec<Known>) -> Self {
        let mut index: Vec<(u64, usize)> = known
            .iter()
            .enumerate()
            .flat_map(|(at, k)| {
                let texts = k.spellings.iter().chain(&k.id).chain([&k.offered]);
                texts.map(move |text| (hash(text), at))
            })
            .collect();
        index.sort_unstable();
        index.dedup();
        Self { known, index }
    }

    /// What one of them is offered as.
    pub fn offered(&self, at: usize) -> &str {
        &self.known[at].offered
    }

    /// Finds whom `asked` means: as it is offered, an id, or a name in either language, spaces, underscores and case aside; a
    /// room and a name put together also count. Never chooses a near one instead (semantics 2.9). A thing that was named so
    /// by its owner goes before a group that can be called the same.
    pub fn find(&self, asked: &str) -> Found {
        let asked = asked.trim();
        let exact = |k: &Known| k.offered == asked || k.id.as_deref() == Some(asked);
        if let Some(one) = self.candidates(asked).find(|at| exact(&self.known[*at])) {
            return Found::One(one);
        }
        let wanted = folded(asked);
        match self.hits(&wanted) {
            none if none.is_empty() => {}
            hits => return of(hits),
        }
        // "the lamp" is the lamp.
        if let Some(bare) = wanted.strip_prefix("the").filter(|_| asked.to_lowercase().starts_with("the ")) {
            match self.hits(bare) {
                none if none.is_empty() => {}
                hits => return of(hits),
            }
        }
        Found::None(near(&wanted, &self.known))
    }

    /// The places of those that may bear this very text, in order; a few of them do not, since hashes may be equal.
    fn candidates(&self, text: &str) -> impl Iterator<Item = usize> {
        let wanted = hash(text);
        let from = self.index.partition_point(|(hash, _)| *hash < wanted);
        self.index[from..].iter().take_while(move |(hash, _)| *hash == wanted).map(|(_, at)| *at)
    }

    fn hits(&self, wanted: &str) -> Vec<usize> {
        let known = &self.known;
        let all: Vec<usize> =
            self.candidates(wanted).filter(|at| known[*at].spellings.iter().any(|s| s == wanted)).collect();
        let owns = |k: &Known| !k.is_group && k.spellings[..k.own].iter().any(|s| s == wanted);
        if all.iter().any(|at| owns(&known[*at])) {
            return all.into_iter().filter(|at| !known[*at].is_group).collect();
        }
        all
    }
}

fn hash(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}

fn of(hits: Vec<usize>) -> Found {
    match hits.as_slice() {
        [one] => Found::One(*one),
        _ => Found::Several(hits),
    }
}

fn near(wanted: &str, known: &[Known]) -> Vec<usize> {
    let best = |k: &Known| {
        let ids = k.id.iter().map(|id| folded(id));
        let spellings = k.spellings.iter().cloned().chain(ids);
        spellings.map(|s| strsim::jaro_winkler(&s, wanted)).fold(0.0, f64::max)
    };
    let enough = if wanted.chars().count() <= SHORT { NEAR_SHORT } else { NEAR };
    let mut scored: Vec<(f64, usize)> =
        known.iter().enumerate().map(|(i, k)| (best(k), i)).filter(|(score, _)| *score >= enough).collect();
    scored.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| known[a.1].offered.cmp(&known[b.1].offered)));
    scored.into_iter().take(NEAR_MAX).map(|(_, i)| i).collect()
}

/// The ways in which a name may be said, with and without its room, as lists and answers write them and as people say
/// them; its own names first, as many as the second value says.
pub fn spellings(label: &Label, room: Option<&Label>) -> (Vec<String>, usize) {
    let labels = [&label.en, &label.zh];
    let rooms = room.iter().flat_map(|r| [&r.en, &r.zh]).collect::<Vec<_>>();
    let with_room = rooms.iter().flat_map(|r| {
        labels.iter().flat_map(move |l| {
            let the = format!("{l} in the {r}");
            [
                format!("{r}{l}"),
                format!("{r}的{l}"),
                format!("{l} ({r})"),
                format!("{l}（{r}）"),
                format!("{l} in {r}"),
                the,
            ]
        })
    });
    let own: Vec<String> = labels.iter().map(|l| folded(l)).collect();
    let count = own.len();
    (own.into_iter().chain(with_room.map(|spelling| folded(&spelling))).collect(), count)
}

/// Spaces, underscores (a device's own names for its properties have them) and case do not matter.
pub fn folded(text: &str) -> String {
    text.chars().filter(|c| !c.is_whitespace() && *c != '_').flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(asked: &str, known: &[Known]) -> Found {
        Names::new(known.to_vec()).find(asked)
    }

    fn lamp(id: &str, room: &str, room_zh: &str) -> Known {
        let label = Label { en: "lamp".into(), zh: "灯".into() };
        let (spellings, own) = spellings(&label, Some(&Label { en: room.into(), zh: room_zh.into() }));
        Known { offered: format!("lamp ({room})"), id: Some(id.into()), spellings, own, is_group: false }
    }

    #[test]
    fn s2_9_a_name_means_one_thing_or_its_candidates() {
        let known = [lamp("a", "study", "书房"), lamp("b", "kitchen", "厨房")];
        for asked in ["lamp", "灯", "The LAMP"] {
            assert_eq!(find(asked, &known), Found::Several(vec![0, 1]), "{asked}");
        }
        for asked in ["lamp in studi", "灯灯"] {
            let Found::None(_) = find(asked, &known) else { panic!("{asked}") };
        }
        for asked in ["lamp in study", "lamp in the study", "the study lamp", "书房的灯", "书房灯", "a", "lamp (study)"]
        {
            assert_eq!(find(asked, &known), Found::One(0), "{asked}");
        }
        assert_eq!(find("厨房的灯", &known), Found::One(1));
        assert!(matches!(find("A", &known), Found::None(_)), "ids are taken as they are written");
    }

    #[test]
    fn s2_9_a_group_stands_back_behind_an_owners_name_only() {
        let group = |spelling: &str| Known {
            offered: "all".into(),
            id: None,
            spellings: vec![folded(spelling)],
            own: 0,
            is_group: true,
        };
        let known = [lamp("a", "study", "书房"), group("灯")];
        assert_eq!(find("灯", &known), Found::One(0), "the owner's own word");
        let known = [lamp("a", "study", "书房"), group("书房的灯")];
        assert_eq!(find("书房的灯", &known), Found::Several(vec![0, 1]), "a room and a name may mean either");
    }
}
