//! What a refusal adds for the model: what is allowed in the language of the answer, and which mistakes are its own.

use super::operation::pick;
use crate::{names::Lang, twin::words::Refusal};

/// What is allowed, as the language says it; figures and names stay.
pub(super) fn noun(allowed: String, lang: Lang) -> String {
    if lang == Lang::En {
        return allowed;
    }
    let zh = match allowed.as_str() {
        "true or false" => "true 或 false",
        "a whole number" => "整数",
        "a number" => "数字",
        "a text" => "文字",
        "one of its words" => "列出的一种",
        "a colour like #ff8800" | "colour like #ff8800" => "颜色，例如 #ff8800",
        "text of at most 128 bytes" => "最多128字节的文字",
        "more than 0 with up_by and down_by" => "用 up_by 和 down_by 时要大于0",
        "the id of an operation" => "操作号",
        "a device, or the id of an operation" => "设备名或操作号",
        "the name of a device, see find_devices" => "设备名，用 find_devices 查",
        "the code that was returned, or what the user said" => "返回的确认码，或用户说的",
        other => {
            let figures = other.split_once(" to ").filter(|(min, _)| min.parse::<f64>().is_ok());
            let between = figures.map(|(min, max)| format!("{min} 到 {max}"));
            let ends = [("at least ", "最少"), ("at most ", "最多")];
            let end = ends.iter().find_map(|(en, zh)| Some(format!("{zh} {}", other.strip_prefix(en)?)));
            let steps = || other.strip_prefix("steps of ").and_then(|rest| rest.split_once(" from "));
            let step = || steps().map(|(step, min)| format!("从 {min} 起，每 {step} 一档"));
            return between.or(end).or_else(step).unwrap_or(allowed);
        }
    };
    zh.to_owned()
}

/// A mistake that is the assistant's own: the user has nothing to do with it.
pub(super) fn mistake_note(refusal: &Refusal, lang: Lang) -> Option<&'static str> {
    /// What a device was to be given of which it has nothing.
    const OF_ANOTHER_TOOL: [&str; 3] = ["to", "level", "option"];
    const OWN: [&str; 4] = ["how", "fresh", "query", "user_request"];
    if matches!(refusal, Refusal::ActsOnly { .. }) {
        return Some(pick(
            lang,
            "先问用户要不要做 allowed 里的动作，再用 run_device_action。",
            "Ask the user whether to do an action in allowed; then use run_device_action.",
        ));
    }
    if let Refusal::UnknownProperty { asked, .. } = refusal
        && OF_ANOTHER_TOOL.contains(&asked.as_str())
    {
        return Some(pick(
            lang,
            "这个工具设不了它：开关用 switch_device，数值用 set_device_level，模式和颜色用 set_device_option。先问用户要怎样。",
            "This tool sets nothing of it: on and off take switch_device, numbers set_device_level, modes and colours \
             set_device_option. Ask the user what is wanted.",
        ));
    }
    let Refusal::InvalidArgument { parameter, .. } = refusal else { return None };
    OWN.contains(parameter).then(|| {
        pick(
            lang,
            "这是参数写错，不用问用户：按 allowed 改正后再调。",
            "That argument is wrong, no need to ask the user: correct it by allowed and call again.",
        )
    })
}
