//! The questions that a missing or wrong argument is answered with: what there is to choose from, for the ear.

use super::{
    operation::pick,
    refusal::{Voice, bounded},
    speech::{choices, names, number, spoken, spoken_state_word, the, with_unit},
    terms,
};
use crate::{names::Lang, property::ValueError, twin::words::RefusalWord};

impl Voice<'_> {
    /// A parameter that is missing or wrong: the question that settles it.
    pub(super) fn argument(&self, parameter: &str, allowed: &str) -> String {
        let n = self.naming.map_or_else(|| "设备".to_owned(), |n| n.full(Lang::Zh));
        let the = self.naming.map_or_else(|| "the device".to_owned(), |n| the(&n.full(Lang::En), false));
        match parameter {
            "device" => self.both(
                "还没有动：要的是哪一个设备？".to_owned(),
                "Nothing has moved: which device is meant?".to_owned(),
            ),
            "to" => {
                let words: Vec<&str> = allowed.split(", ").map(|w| spoken_state_word(w, self.lang)).collect();
                let joined = words.join(pick(self.lang, "还是", " or "));
                let n = self.naming.map(|n| n.spoken.as_str()).unwrap_or_default();
                let it = self.naming.map_or_else(|| "it".to_owned(), |n| super::speech::the(&n.spoken, false));
                self.both(format!("还没有动：{n}要{joined}？"), format!("Nothing has moved: is {it} to be {joined}?"))
            }
            "room" => {
                let rooms: Vec<String> = allowed.split(", ").filter(|r| !r.is_empty()).map(str::to_owned).collect();
                if rooms.is_empty() {
                    return self.both("没有设房间。".to_owned(), "No rooms are set up.".to_owned());
                }
                self.both(
                    format!("没有这个房间，有{}。", names(&rooms, Lang::Zh)),
                    format!("No such room; there are: {}.", names(&rooms, Lang::En)),
                )
            }
            "operation" => self.both(
                "没有记下这样一次操作，要问的是哪个设备？".to_owned(),
                "No such operation is known; which device is meant?".to_owned(),
            ),
            "level" => {
                let (zh, en) = self.range(allowed);
                self.both(
                    format!("还没有动：{n}要调到多少？{zh}"),
                    format!("Nothing has moved: how much for {the}?{en}"),
                )
            }
            "property" => {
                let all: Vec<&str> = allowed.split(", ").filter(|w| !w.is_empty()).collect();
                let said = self.spoken_words(&all, terms::property);
                match said.is_empty() {
                    true => self.bare(RefusalWord::UnknownProperty),
                    false => self.both(
                        format!("还没有动：{}要调哪一项？有{}。", self.name(), choices(&said, Lang::Zh)),
                        format!("Nothing has moved: what of {}? It has {}.", self.object(), choices(&said, Lang::En)),
                    ),
                }
            }
            "option" => self.choice(&n, &the, &allowed.split(", ").collect::<Vec<_>>()),
            "scene" => {
                let scenes: Vec<String> = allowed.split(", ").filter(|s| !s.is_empty()).map(str::to_owned).collect();
                self.both(
                    format!("还没有动：没有这个场景，有{}，要哪一个？", names(&scenes, Lang::Zh)),
                    format!("Nothing has moved: the scenes are {}; which one?", names(&scenes, Lang::En)),
                )
            }
            "action" => {
                let said = self.spoken_words(&allowed.split(", ").collect::<Vec<_>>(), terms::action);
                match said.is_empty() {
                    true => self.bare(RefusalWord::InvalidValue),
                    false => self.both(
                        format!("还没有动：{}会{}，要做哪一样？", self.name(), choices(&said, Lang::Zh)),
                        format!("Nothing has moved: {} can do: {}; which?", self.object(), choices(&said, Lang::En)),
                    ),
                }
            }
            // The other parameters are the assistant's own business; the person can only be told.
            _ => self.bare(RefusalWord::UnknownArgument),
        }
    }

    /// What may be chosen, where it can be said.
    fn choice(&self, n: &str, the: &str, allowed: &[&str]) -> String {
        let said = self.spoken_words(allowed, |word, lang| {
            super::colour::code(word)
                .and_then(|code| super::colour::spoken(code, lang))
                .map(str::to_owned)
                .or_else(|| terms::option(word, lang))
        });
        if said.is_empty() {
            return self.both(
                format!("还没有动：{n}没有这一种，要哪一种？"),
                format!("Nothing has moved: {the} has no such setting; which one?"),
            );
        }
        self.both(
            format!("还没有动：{n}有{}，要哪一种？", choices(&said, Lang::Zh)),
            format!("Nothing has moved: {the} can be one of {}; which one?", choices(&said, Lang::En)),
        )
    }

    pub(super) fn spoken_words(&self, words: &[&str], term: impl Fn(&str, Lang) -> Option<String>) -> Vec<String> {
        words.iter().filter_map(|word| term(word, self.lang)).map(|word| spoken(&word, self.lang)).collect()
    }

    /// `16 to 30 °C`, as a tool's argument says it, for the ear.
    fn range(&self, allowed: &str) -> (String, String) {
        let unit = self.naming.and_then(|n| n.unit.as_deref());
        let ends: Vec<f64> = allowed.split([' ', ',']).filter_map(|word| word.parse().ok()).collect();
        let [min, max] = ends.as_slice() else { return (String::new(), String::new()) };
        (
            format!("能设{}到{}。", number(*min), with_unit(&number(*max), unit, Lang::Zh)),
            format!(" It takes {} to {}.", number(*min), with_unit(&number(*max), unit, Lang::En)),
        )
    }

    pub(super) fn value(&self, error: &ValueError) -> String {
        let n = self.naming.map_or_else(|| "设备".to_owned(), |n| n.full(Lang::Zh));
        let the = self.naming.map_or_else(|| "the device".to_owned(), |n| the(&n.full(Lang::En), false));
        let amount = |v: f64, lang| with_unit(&number(v), self.naming.and_then(|n| n.unit.as_deref()), lang);
        match error {
            ValueError::OutOfRange { min, max, .. } => {
                let (zh, en) = match (bounded(*min), bounded(*max)) {
                    (true, true) => (
                        format!("只能设{}到{}", number(*min), amount(*max, Lang::Zh)),
                        format!("{} to {}", number(*min), amount(*max, Lang::En)),
                    ),
                    (true, false) => {
                        (format!("最少要{}", amount(*min, Lang::Zh)), format!("at least {}", amount(*min, Lang::En)))
                    }
                    (false, _) => {
                        (format!("最多到{}", amount(*max, Lang::Zh)), format!("at most {}", amount(*max, Lang::En)))
                    }
                };
                self.both(
                    format!("还没有动：{n}{zh}，要多少？"),
                    format!("Nothing has moved: {the} takes {en}; how much?"),
                )
            }
            ValueError::OffStep { step, .. } => self.both(
                format!("还没有动：{n}每{}一档，要多少？", amount(*step, Lang::Zh)),
                format!("Nothing has moved: {the} goes in steps of {}; how much?", amount(*step, Lang::En)),
            ),
            ValueError::NotListed { allowed, .. } => {
                let all: Vec<&str> = allowed.iter().map(AsRef::as_ref).collect();
                self.choice(&n, &the, &all)
            }
            ValueError::WrongKind { .. } | ValueError::BadText { .. } => self.bare(RefusalWord::InvalidValue),
        }
    }
}
