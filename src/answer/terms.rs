//! The words for what devices call their properties, modes and actions, as people say them. Only what is in these lists is
//! ever said, in either language: a device writes what it likes, and what it writes is not for a person's ear, nor a model's
//! orders (semantics 7.4). What is not here is left out of sentences, and is in the facts.

use crate::{names::Lang, property};

/// Words of devices with the Chinese for them; in English the first of them is said, with spaces.
type Terms = &'static [(&'static [&'static str], &'static str)];

const PROPERTIES: Terms = &[
    (&["brightness"], "亮度"),
    (&["dimmer"], "亮度"),
    (&["position"], "位置"),
    (&["temperature"], "温度"),
    (&["target temperature", "target", "target_temperature", "setpoint"], "设定温度"),
    (&["angle"], "角度"),
    (&["encoder"], "编码器读数"),
    (&["presses"], "按下次数"),
    (&["humidity"], "湿度"),
    (&["volume"], "音量"),
    (&["speed"], "速度"),
    (&["level"], "档位"),
    (&["mode"], "模式"),
    (&["fan mode", "fan_mode"], "风速"),
    (&["fan speed", "fan_speed"], "风速"),
    (&["colour"], "颜色"),
    (&["color"], "颜色"),
    (&["colour temperature", "colour_temperature"], "色温"),
    (&["color temperature", "color_temperature"], "色温"),
    (&["effect"], "效果"),
    (&["power"], "开关"),
    (&["relay"], "开关"),
    (&["on"], "开关"),
    (&["switch"], "开关"),
    (&["illuminance"], "光照"),
    (&["lux"], "光照"),
    (&["contact"], "门磁"),
    (&["open"], "门磁"),
    (&["door"], "门磁"),
    (&["motion"], "人体感应"),
    (&["presence"], "人体感应"),
    (&["lock"], "锁"),
    (&["bolt"], "锁"),
    (&["locked"], "锁"),
    (&["watts"], "功率"),
    (&["load"], "功率"),
    (&["battery"], "电量"),
    (&["voltage"], "电压"),
    (&["current"], "电流"),
    (&["energy"], "用电量"),
    (&["pressure"], "气压"),
    (&["co2"], "二氧化碳"),
    (&["hue"], "色相"),
    (&["saturation"], "饱和度"),
    (&["tilt"], "倾斜"),
    (&["swing"], "摆风"),
    (&["timer"], "定时"),
    (&["duration"], "时长"),
    (&["flow"], "流量"),
];

const OPTIONS: Terms = &[
    (&["off"], "关"),
    (&["on"], "开"),
    (&["auto"], "自动"),
    (&["automatic"], "自动"),
    (&["manual"], "手动"),
    (&["cool"], "制冷"),
    (&["cooling"], "制冷"),
    (&["heat"], "制热"),
    (&["heating"], "制热"),
    (&["dry"], "除湿"),
    (&["fan"], "送风"),
    (&["fan only", "fan_only"], "送风"),
    (&["eco"], "节能"),
    (&["boost"], "强力"),
    (&["turbo"], "强力"),
    (&["sleep"], "睡眠"),
    (&["night"], "睡眠"),
    (&["silent"], "静音"),
    (&["quiet"], "静音"),
    (&["low"], "低档"),
    (&["medium"], "中档"),
    (&["mid"], "中档"),
    (&["high"], "高档"),
    (&["normal"], "普通"),
    (&["standby"], "待机"),
    (&["comfort"], "舒适"),
    (&["away"], "离家"),
    (&["home"], "在家"),
    (&["vacation"], "度假"),
    (&["party"], "聚会"),
    (&["reading"], "阅读"),
    (&["relax"], "放松"),
    (&["cinema"], "影院"),
    (&["warm"], "暖"),
    (&["cold"], "冷"),
    (&["rainbow"], "彩虹"),
    (&["locked"], "锁着"),
    (&["unlocked"], "没锁"),
    (&["open"], "开着"),
    (&["closed"], "关着"),
];

const ACTIONS: Terms = &[
    (&["press"], "按一下"),
    (&["push"], "按一下"),
    (&["click"], "按一下"),
    (&["stop"], "停止"),
    (&["reboot"], "重启"),
    (&["restart"], "重启"),
    (&["open"], "打开"),
    (&["close"], "关闭"),
    (&["lock"], "上锁"),
    (&["unlock"], "开锁"),
    (&["ring"], "响铃"),
    (&["beep"], "鸣响"),
    (&["feed"], "喂食"),
    (&["identify"], "闪一下"),
    (&["blink"], "闪一下"),
    (&["reset"], "复位"),
    (&["start"], "启动"),
    (&["pulse"], "点动"),
    (&["calibrate"], "校准"),
    (&["mute"], "静音"),
];

/// What a property is, in words: `亮度`, `brightness`. `None` for one that is not known here.
pub fn property(name: &str, lang: Lang) -> Option<String> {
    term(PROPERTIES, name, lang)
}

/// A mode, in words: `制冷`, `cool`. `None` for a word that is not known here.
pub fn option(word: &str, lang: Lang) -> Option<String> {
    term(OPTIONS, word, lang)
}

/// An action, in words: `停止`, `stop`. `None` for one that is not known here.
pub fn action(name: &str, lang: Lang) -> Option<String> {
    term(ACTIONS, name, lang)
}

/// A device may also write the Chinese word itself.
fn term(terms: Terms, word: &str, lang: Lang) -> Option<String> {
    let is = |known: &&str| known.eq_ignore_ascii_case(word);
    let (known, zh) = terms.iter().find(|(known, zh)| known.iter().any(is) || *zh == word)?;
    match lang {
        Lang::Zh => Some((*zh).to_owned()),
        Lang::En => known.first().map(|said| (*said).to_owned()),
    }
}

/// Whether any list has it.
fn is_known(word: &str) -> bool {
    [PROPERTIES, OPTIONS, ACTIONS].into_iter().any(|terms| term(terms, word, Lang::En).is_some())
}

/// Whether a text of a device may stand in an answer as it is: a word that is known, or a mere word.
pub fn is_plain(text: &str) -> bool {
    is_known(text) || property::is_plain(text) || text == super::MASKED
}

/// Longest text of a device in an answer, characters: as long as a value may be on the wire (wire protocol, *Bounds*).
const TEXT_CHARS_MAX: usize = 128;

/// A text of a device without what could hide in it or break out of its line: control characters and quotes are spaces,
/// and it has an end.
pub fn tame(text: &str) -> String {
    let calm = text.chars().map(|c| if c.is_control() || "\"“”".contains(c) { ' ' } else { c });
    // Marks that turn the direction of writing, and others that nobody sees.
    let seen = calm.filter(|c| !matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{e0000}'..='\u{e007f}'));
    seen.take(TEXT_CHARS_MAX).collect()
}

/// A word of a device in a list for a model: as it is if it is plain, else in quotes.
pub fn quoted(word: &str) -> String {
    if is_plain(word) { word.to_owned() } else { format!("\"{}\"", tame(word)) }
}

/// A unit, if it is one: a few signs without a space.
pub fn unit(unit: &str) -> Option<&str> {
    let sign = |c: char| !c.is_control() && !c.is_whitespace() && c != '"';
    Some(unit).filter(|unit| unit.chars().count() <= 8 && unit.chars().all(sign))
}
