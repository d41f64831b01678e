//! How far a call is, while it runs. None of these sentences says that anything was done.

use super::{
    operation::pick,
    speech::{count_en, count_zh},
};
use crate::{names::Lang, twin::words::Stage};

/// What an operation waits for.
pub fn stage(stage: Stage, lang: Lang) -> &'static str {
    match stage {
        Stage::Admission => pick(lang, "正在检查这个要求。", "Checking what was asked for."),
        Stage::Queued => pick(lang, "排队等着。", "Waiting for its turn."),
        Stage::WaitingBroker => pick(lang, "正在发给设备。", "Sending it to the device."),
        Stage::WaitingDeviceAck => {
            pick(lang, "发出去了，等设备说收到。", "Sent; waiting for the device to say that it has it.")
        }
        Stage::WaitingDeviceStart => pick(lang, "设备收到了，还没开始。", "The device has it and has not begun."),
        Stage::WaitingDeviceReport => pick(lang, "设备正在做。", "The device is at it."),
        Stage::WaitingReadBack => {
            pick(lang, "设备说做完了，还没核对。", "The device says that it is finished; that is not checked yet.")
        }
        Stage::WaitingSensor => {
            pick(lang, "读回来对，等传感器。", "Read back as wished; waiting for the sensor to agree.")
        }
        Stage::Settled => pick(lang, "有结果了。", "There is a result."),
    }
}

/// How many of a group or a scene have answered, whatever they said.
pub fn members(answered: usize, of: usize, lang: Lang) -> String {
    let (answered, of) = (answered as u64, of as u64);
    match lang {
        Lang::Zh => format!("{}个里有{}个回了话。", count_zh(of), count_zh(answered)),
        Lang::En => format!("{} of {} have answered.", capital(&count_en(answered)), count_en(of)),
    }
}

fn capital(word: &str) -> String {
    let mut chars = word.chars();
    chars.next().map(|c| c.to_uppercase().chain(chars).collect()).unwrap_or_default()
}
