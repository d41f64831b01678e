//! Colours that have names: what a model may ask for and a person can be told.

use crate::names::Lang;

/// The names and their codes, as tools list them.
pub const NAMES: [(&str, &str); 10] = [
    ("red", "#ff0000"),
    ("orange", "#ff8000"),
    ("yellow", "#ffff00"),
    ("green", "#00ff00"),
    ("cyan", "#00ffff"),
    ("blue", "#0000ff"),
    ("purple", "#8000ff"),
    ("pink", "#ff80c0"),
    ("white", "#ffffff"),
    ("warm_white", "#ffd6aa"),
];

/// The code of a colour's name.
pub fn code(name: &str) -> Option<&'static str> {
    NAMES.iter().find(|(known, _)| known.eq_ignore_ascii_case(name.trim())).map(|(_, code)| *code)
}

/// How a colour is said; `None` for one without a name.
pub(super) fn spoken(code: &str, lang: Lang) -> Option<&'static str> {
    let (name, _) = NAMES.iter().find(|(_, known)| *known == code)?;
    Some(match (lang, *name) {
        (Lang::Zh, "red") => "红色",
        (Lang::Zh, "orange") => "橙色",
        (Lang::Zh, "yellow") => "黄色",
        (Lang::Zh, "green") => "绿色",
        (Lang::Zh, "cyan") => "青色",
        (Lang::Zh, "blue") => "蓝色",
        (Lang::Zh, "purple") => "紫色",
        (Lang::Zh, "pink") => "粉色",
        (Lang::Zh, "white") => "白色",
        (Lang::Zh, _) => "暖白色",
        (Lang::En, "warm_white") => "warm white",
        (Lang::En, name) => name,
    })
}
