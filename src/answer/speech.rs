//! How things are spoken: names, values by role, ages, lists. For the ear, so no brackets, quotes or ids.

use std::time::Duration;

use super::{colour, terms};
use crate::{
    names::Lang,
    property::{Role, Value},
};

/// Longest spoken name, characters (semantics 2.9). A longer one is cut: a sentence must fit the ear.
const NAME_CHARS_MAX: usize = 32;

/// The same in bytes of UTF-8: 32 characters of Chinese. Rarer signs take a byte more each, and an endpoint's answer has 1 KiB.
const NAME_BYTES_MAX: usize = 96;

/// How many characters of a list of names a sentence carries; the rest is counted. Keeps the whole sentence within
/// the 60 characters of a Chinese answer and the 140 of an English one.
fn list_chars_max(lang: Lang) -> usize {
    match lang {
        Lang::Zh => 30,
        Lang::En => 80,
    }
}

/// A name as it is spoken: brackets, quotes and control characters become spaces, at most 32 characters and 96 bytes. A name of
/// nothing else is spoken as "the device", since a sentence without a subject would be worse.
pub fn spoken(name: &str, lang: Lang) -> String {
    let unspeakable = |c: char| c.is_control() || "()[]{}<>（）【】《》〈〉「」『』“”‘’\"`".contains(c);
    let cleaned: String = name.chars().map(|c| if unspeakable(c) { ' ' } else { c }).collect();
    let joined = cleaned.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut cut: String = joined.chars().take(NAME_CHARS_MAX).collect();
    cut.truncate(cut.floor_char_boundary(NAME_BYTES_MAX));
    match (cut.trim(), lang) {
        ("", Lang::En) => "device".to_owned(),
        ("", Lang::Zh) => "这个设备".to_owned(),
        (name, _) => name.to_owned(),
    }
}

/// The word of a `true` or `false` by role, as tools take it and answers show it: `locked` and `unlocked` for a lock,
/// `open` and `closed` for what opens, else `on` and `off`.
pub fn state_word(value: bool, role: Role) -> &'static str {
    match (role, value) {
        (Role::Lock, true) => "locked",
        (Role::Lock, false) => "unlocked",
        (Role::Door | Role::Blind | Role::Valve, true) => "open",
        (Role::Door | Role::Blind | Role::Valve, false) => "closed",
        (Role::Light | Role::Socket | Role::Heater | Role::Fan | Role::Pump | Role::Sensor | Role::Other, true) => "on",
        (Role::Light | Role::Socket | Role::Heater | Role::Fan | Role::Pump | Role::Sensor | Role::Other, false) => {
            "off"
        }
    }
}

/// A state word of a tool's argument as a person says it.
pub(super) fn spoken_state_word(word: &str, lang: Lang) -> &str {
    match (lang, word) {
        (Lang::Zh, "on") => "打开",
        (Lang::Zh, "off") => "关掉",
        (Lang::Zh, "open") => "开",
        (Lang::Zh, "closed") => "关",
        (Lang::Zh, "locked") => "上锁",
        (Lang::Zh, "unlocked") => "开锁",
        (Lang::Zh, "yes") => "是",
        (Lang::Zh, "no") => "否",
        _ => word,
    }
}

/// Whether something opens and closes, rather than being on and off.
pub(super) fn opens(role: Role) -> bool {
    matches!(role, Role::Door | Role::Blind | Role::Valve)
}

/// Whether it takes its time, so that "still moving" is the word for it.
pub(super) fn moves(role: Role) -> bool {
    opens(role) || role == Role::Lock
}

/// The present state in words: `开着的`, `locked`, `21 degrees`. `None` for a text that cannot be spoken in Chinese.
pub(super) fn is(value: &Value, role: Role, unit: Option<&str>, lang: Lang) -> Option<String> {
    match (value, lang) {
        (Value::Bool(v), Lang::En) => Some(state_word(*v, role).to_owned()),
        (Value::Bool(true), Lang::Zh) if role == Role::Lock => Some("锁着的".to_owned()),
        (Value::Bool(false), Lang::Zh) if role == Role::Lock => Some("没锁的".to_owned()),
        (Value::Bool(true), Lang::Zh) => Some("开着的".to_owned()),
        (Value::Bool(false), Lang::Zh) => Some("关着的".to_owned()),
        (Value::Integer(_) | Value::Number(_) | Value::Text(_), _) => amount(value, unit, lang),
    }
}

/// A number with its unit, or a text that can be spoken. `None` for a Latin text in Chinese that has no word there, a
/// colour without a name, a bool.
pub(super) fn amount(value: &Value, unit: Option<&str>, lang: Lang) -> Option<String> {
    match value {
        Value::Bool(_) => None,
        Value::Text(v) if **v == *super::MASKED => None,
        Value::Integer(v) => Some(with_unit(&v.to_string(), unit, lang)),
        Value::Number(v) => Some(with_unit(&number(*v), unit, lang)),
        Value::Text(v) if v.starts_with('#') => colour::spoken(v, lang).map(str::to_owned),
        Value::Text(v) => terms::option(v, lang).map(|word| spoken(&word, lang)),
    }
}

/// A number as it is spoken: at most two places, no trailing zeros.
pub fn number(value: f64) -> String {
    let text = format!("{value:.2}");
    let trimmed = text.trim_end_matches('0').trim_end_matches('.');
    if trimmed == "-0" { "0".to_owned() } else { trimmed.to_owned() }
}

/// A number and its unit in the words of the language; a unit that is not known here is left out, since letters read
/// out one by one help nobody.
pub(super) fn with_unit(number: &str, unit: Option<&str>, lang: Lang) -> String {
    match (unit, lang) {
        (Some("%"), _) => format!("{number}%"),
        (Some("°C" | "℃" | "C"), Lang::Zh) => format!("{number}度"),
        (Some("°C" | "℃" | "C"), Lang::En) => format!("{number} degrees"),
        (Some("W"), Lang::Zh) => format!("{number}瓦"),
        (Some("W"), Lang::En) => format!("{number} watts"),
        (Some("lx"), Lang::Zh) => format!("{number}勒克斯"),
        (Some("lx"), Lang::En) => format!("{number} lux"),
        (Some(_) | None, _) => number.to_owned(),
    }
}

/// The subject of a Chinese sentence is the name itself; of an English one it takes an article, unless it begins like
/// a proper name.
pub(super) fn the(name: &str, start: bool) -> String {
    let proper = name.chars().next().is_none_or(|c| c.is_uppercase() || !c.is_alphabetic());
    match (proper, start) {
        (true, _) => name.to_owned(),
        (false, true) => format!("The {name}"),
        (false, false) => format!("the {name}"),
    }
}

/// How long ago, rounded as people do: `刚刚`, `十二分钟前`, `three minutes ago`.
pub(super) fn ago(age: Duration, lang: Lang) -> String {
    match (age.as_secs() < 5, lang) {
        (true, Lang::Zh) => "刚刚".to_owned(),
        (true, Lang::En) => "just now".to_owned(),
        (false, Lang::Zh) => format!("{}前", span(age, lang)),
        (false, Lang::En) => format!("{} ago", span(age, lang)),
    }
}

/// A length of time, rounded as people do: seconds, from ten on in fives; then minutes, hours, days. At least one second.
pub(super) fn span(time: Duration, lang: Lang) -> String {
    let exact = (time.as_millis() + 500) / 1000;
    let seconds = u64::try_from(exact).unwrap_or(u64::MAX).max(1);
    let seconds = if seconds > 10 { (seconds + 2) / 5 * 5 } else { seconds };
    let (count, zh, en) = match seconds {
        ..60 => (seconds, "秒", "second"),
        60..3_570 => ((seconds + 30) / 60, "分钟", "minute"),
        3_570..171_000 => ((seconds + 1_800) / 3_600, "小时", "hour"),
        _ => ((seconds + 43_200) / 86_400, "天", "day"),
    };
    match lang {
        Lang::Zh => format!("{}{zh}", count_zh(count)),
        Lang::En => format!("{} {en}{}", count_en(count), if count == 1 { "" } else { "s" }),
    }
}

/// A number in front of a measure word: 两, 十二, 二十; digits from one hundred on.
pub(super) fn count_zh(n: u64) -> String {
    const DIGITS: [&str; 10] = ["零", "一", "二", "三", "四", "五", "六", "七", "八", "九"];
    let digit = |n: u64| usize::try_from(n).ok().and_then(|n| DIGITS.get(n)).copied().unwrap_or("");
    match n {
        2 => "两".to_owned(),
        0..10 => digit(n).to_owned(),
        10 => "十".to_owned(),
        11..20 => format!("十{}", digit(n - 10)),
        20..100 if n.is_multiple_of(10) => format!("{}十", digit(n / 10)),
        20..100 => format!("{}十{}", digit(n / 10), digit(n % 10)),
        _ => n.to_string(),
    }
}

/// A number as English speaks it: words up to twenty and for whole tens, else digits.
pub(super) fn count_en(n: u64) -> String {
    const WORDS: [&str; 21] = [
        "no",
        "one",
        "two",
        "three",
        "four",
        "five",
        "six",
        "seven",
        "eight",
        "nine",
        "ten",
        "eleven",
        "twelve",
        "thirteen",
        "fourteen",
        "fifteen",
        "sixteen",
        "seventeen",
        "eighteen",
        "nineteen",
        "twenty",
    ];
    match n {
        30 => "thirty".to_owned(),
        40 => "forty".to_owned(),
        50 => "fifty".to_owned(),
        _ => usize::try_from(n).ok().and_then(|n| WORDS.get(n)).map_or_else(|| n.to_string(), |w| (*w).to_owned()),
    }
}

/// Names in a row, as many as a sentence holds, then how many more: `客厅灯、书房灯和大门锁`.
pub(super) fn names(all: &[String], lang: Lang) -> String {
    within(all, list_chars_max(lang), lang)
}

/// The same for a sentence that names a thing and what of it as well.
pub(super) fn choices(all: &[String], lang: Lang) -> String {
    within(all, list_chars_max(lang) * 2 / 3, lang)
}

fn within(all: &[String], mut budget: usize, lang: Lang) -> String {
    let mut shown: Vec<String> = Vec::new();
    for name in all.iter().map(|n| with_room_spoken(n, lang)) {
        let length = name.chars().count() + 2;
        if !shown.is_empty() && length > budget {
            break;
        }
        budget = budget.saturating_sub(length);
        shown.push(name);
    }
    let more = all.len() - shown.len();
    if more > 0 {
        return match lang {
            Lang::Zh => format!("{}，还有{}个", shown.join("、"), count_zh(more as u64)),
            Lang::En => format!("{} and {} more", shown.join(", "), count_en(more as u64)),
        };
    }
    let Some((last, first)) = shown.split_last() else { return String::new() };
    match (first.is_empty(), lang) {
        (true, _) => last.clone(),
        (false, Lang::Zh) => format!("{}和{last}", first.join("、")),
        (false, Lang::En) => format!("{} and {last}", first.join(", ")),
    }
}

/// `灯（书房）` as lists show it is spoken as `书房的灯`, `lamp (study)` as `lamp in study`.
fn with_room_spoken(shown: &str, lang: Lang) -> String {
    let inside = [('（', '）'), ('(', ')')]
        .into_iter()
        .find_map(|(open, close)| shown.strip_suffix(close)?.rsplit_once(open))
        .filter(|(name, _)| !name.trim().is_empty());
    match (inside, lang) {
        (Some((name, room)), Lang::Zh) => spoken(&format!("{room}的{}", name.trim()), lang),
        (Some((name, room)), Lang::En) => spoken(&format!("{} in {room}", name.trim()), lang),
        (None, _) => spoken(shown, lang),
    }
}
