//! The words for what devices call their properties and modes, as people say them. Devices write Latin words; a Chinese
//! sentence has none, so what is not in these lists is left out there.

use crate::names::Lang;

/// What a property is, in words: `亮度`, `brightness`. `None` in Chinese for one that is not known here.
pub fn property(name: &str, lang: Lang) -> Option<String> {
    let zh = match name {
        "brightness" | "dimmer" => "亮度",
        "position" => "位置",
        "temperature" => "温度",
        "target" | "target_temperature" | "setpoint" => "设定温度",
        "angle" => "角度",
        "encoder" => "编码器读数",
        "presses" => "按下次数",
        "humidity" => "湿度",
        "volume" => "音量",
        "speed" => "速度",
        "level" => "档位",
        "mode" => "模式",
        "fan_mode" | "fan_speed" => "风速",
        "colour" | "color" => "颜色",
        "colour_temperature" | "color_temperature" => "色温",
        "effect" => "效果",
        "power" | "relay" | "on" | "switch" => "开关",
        "illuminance" | "lux" => "光照",
        "contact" | "open" | "door" => "门磁",
        "motion" | "presence" => "人体感应",
        "lock" | "bolt" | "locked" => "锁",
        "watts" | "load" => "功率",
        _ if name.is_ascii() => "",
        other => other,
    };
    match lang {
        Lang::Zh => Some(zh.to_owned()).filter(|zh| !zh.is_empty()),
        Lang::En if ["target", "setpoint"].contains(&name) => Some("target temperature".to_owned()),
        Lang::En => Some(name.replace('_', " ")),
    }
}

/// A mode, in words: `制冷`, `cool`. `None` in Chinese for a Latin word that is not known here.
pub fn option(word: &str, lang: Lang) -> Option<String> {
    if lang == Lang::En {
        return Some(word.replace('_', " "));
    }
    let zh = match word.to_ascii_lowercase().as_str() {
        "off" => "关",
        "on" => "开",
        "auto" | "automatic" => "自动",
        "cool" | "cooling" => "制冷",
        "heat" | "heating" => "制热",
        "dry" => "除湿",
        "fan" | "fan_only" => "送风",
        "eco" => "节能",
        "boost" | "turbo" => "强力",
        "sleep" | "night" => "睡眠",
        "silent" | "quiet" => "静音",
        "low" => "低档",
        "medium" | "mid" => "中档",
        "high" => "高档",
        "comfort" => "舒适",
        "away" => "离家",
        "home" => "在家",
        "party" => "聚会",
        "reading" => "阅读",
        "relax" => "放松",
        "rainbow" => "彩虹",
        _ if word.chars().any(|c| c.is_ascii_alphabetic()) => return None,
        _ => word,
    };
    Some(zh.to_owned())
}

/// An action, in words: `停止`, `stop`. `None` in Chinese for a Latin word that is not known here.
pub fn action(name: &str, lang: Lang) -> Option<String> {
    if lang == Lang::En {
        return Some(name.replace('_', " "));
    }
    let zh = match name {
        "press" | "push" | "click" => "按一下",
        "stop" => "停止",
        "reboot" | "restart" => "重启",
        "open" => "打开",
        "close" => "关闭",
        "ring" => "响铃",
        "beep" => "鸣响",
        "feed" => "喂食",
        "identify" | "blink" => "闪一下",
        "reset" => "复位",
        "start" => "启动",
        "pulse" => "点动",
        "calibrate" => "校准",
        _ if name.is_ascii() => return None,
        other => other,
    };
    Some(zh.to_owned())
}
