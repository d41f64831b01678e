//! What each tool says of itself to a model: what it does, when to use it and when not, and what an answer means.

use std::borrow::Cow;

use super::{Tool, figures};
use crate::{mcp::house::House, names::Lang};

/// The text of the language.
pub(super) fn text<'a>(lang: Lang, en: &'a str, zh: &'a str) -> &'a str {
    match lang {
        Lang::En => en,
        Lang::Zh => zh,
    }
}

/// What a tool does, with the figures of the house.
pub(super) fn description(tool: Tool, house: &House) -> Cow<'static, str> {
    let lang = house.lang();
    let (en, zh) = match tool {
        Tool::FindDevices => (
            "Lists or finds devices in the home: name, room, state, online or not. Read only, moves nothing. Use when the user asks what there is, or when another tool answered \"no such device\" or \"several match\". Not needed when you know the name. At most 8 rows; if there are more the answer says so: ask again with a room or a part of the name.",
            "列出或查找家里能控制的设备：名称、房间、状态、是否在线。只读，不会动任何设备。何时用：用户问有哪些设备；别的工具回答“没有这个设备”或“有几个同名”。知道设备名时不用先查。一次最多返回8个，还有更多会说明，请带上房间或名称中的几个字再查。",
        ),
        Tool::GetDeviceState => (
            "Reads the real state of one device. Read only. Always call it when the user asks \"is it on?\" or \"how warm is it?\"; never answer from memory or from an earlier result. trust=now: you may say \"it is\". trust=old: only \"it was, N minutes ago\". trust=unknown: say you don't know.",
            "查一个设备的真实状态，只读。用户问“灯开了没”“现在几度”时必须调用，不能凭记忆或上一次的结果回答。trust=now 才能说“现在是”；trust=old 只能说“几分钟前看到的是”；trust=unknown 要说不知道。",
        ),
        Tool::SwitchDevice => (
            "Switches a device in the home (lamp, socket, blind, lock; not the speaker's own screen or volume) and returns only after the device has reported its real state. Say that it is done only if success is true and device_state is what was asked, and claim no more than say does. Otherwise tell the user what say says: result=failed means it was not done, result=unconfirmed means nobody knows; never call either done and do not call again at once. If the user did not say which device, ask; never guess.",
            "开关家里的设备（灯、插座、窗帘、门锁等，不是音箱自己的屏幕和音量），等设备回报真实状态后才返回。只有 success 为 true 且 device_state 与要求一致，才可以说开了或关了，并且只说到 say 所说的程度。否则照 say 说：result=failed 是没做成，result=unconfirmed 是不知道做没做成，两种都不要说完成，也不要马上再调一次。没说清是哪个设备时先问用户，不要猜。",
        ),
        Tool::SetDeviceLevel => return level(house).into(),
        Tool::SetDeviceOption => (
            "Sets a mode or colour, only one of those listed. If what the user wants is not listed, tell them what there is; do not take a near one. For on and off use switch_device. Results mean what they mean there.",
            "把设备切换到一种模式或颜色，只能用列出的选项。没有用户要的选项时，告诉用户有哪些，不要挑相近的代替。开和关用 switch_device。结果的意思与 switch_device 相同。",
        ),
        Tool::RunDeviceAction => (
            "Makes a device do one thing, such as press, stop or reboot. It moves real things and must not be repeated: if result is not confirmed, do not call again; tell the user what say says. To bring a device to on or off use switch_device.",
            "让设备做一个动作，例如按一下、停止、重启。会动真东西，而且不可重复：结果不是 confirmed 时不要再调，先照 say 告诉用户。要设备变成“开”或“关”的状态，用 switch_device。",
        ),
        Tool::ActivateScene => (
            "Runs a prepared scene on several devices. Only result=confirmed means that all is done; with result=partly name the devices that are not confirmed. Not for a single device.",
            "执行一个设好的场景，一次控制多个设备。result=confirmed 才能说全部完成；result=partly 必须说出哪几个没有确认。只控制一个设备时不要用。",
        ),
        Tool::CheckOperation => (
            "Tells what became of an earlier operation (with neither parameter: your latest). Read only, does nothing again. Use when the last result was working or unconfirmed and the user asks \"is it done?\" or \"did it really?\".",
            "查刚才那次操作后来怎样了（参数都不填：最近一次）。只读，不会再执行一次。何时用：上次 result 是 working 或 unconfirmed，用户问“好了没”“到底开了没”。",
        ),
        Tool::ConfirmOperation => (
            "Carries out one dangerous operation (lock, garage, heater) after the user's yes. Only if a tool returned result=ask_user with confirm, you have put the question to the user, and the user agreed in a later message. No reply, a vague one or another topic is not a yes: do not call. Never confirm for the user.",
            "用户同意后才执行一次危险操作（门锁、车库门、加热）。前提：工具返回了 result=ask_user 和 confirm，你已把问题说给用户，用户在那之后亲口同意。没有回答、含糊、换话题都不算同意，不要调用，绝不替用户确认。",
        ),
        Tool::Ping => (
            "Tests the way from the assistant to the hub; returns pong. Says nothing about any device or action. Only when the user asks to test the connection.",
            "测试助手到中枢是否连通，返回 pong。不说明任何设备在线，也不说明任何动作成功。只在用户要求测试连接时用。",
        ),
    };
    text(lang, en, zh).into()
}

fn level(house: &House) -> String {
    let (lang, figures) = (house.lang(), figures::figures(house));
    let (ranges, relative) = (figures::ranges(&figures, lang), figures::relative(&figures, lang));
    match lang {
        Lang::En => format!(
            "Sets a number to a level, or raises or lowers it. {ranges}. \"A bit brighter\" or \"warmer\" without a figure: up_by, {relative}. For plain on or off use switch_device. Results mean what they mean there."
        ),
        Lang::Zh => format!(
            "把一个数值调到多少，或调高、调低多少。{ranges}。用户说“亮一点”“暖一点”没说多少：用 up_by，{relative}。单纯开或关用 switch_device。结果的意思与 switch_device 相同。"
        ),
    }
}

/// What the server says of itself to a model (`instructions`): the console text of the answers document.
pub fn instructions(lang: Lang) -> &'static str {
    text(
        lang,
        "You control devices in the home through tools. Call a tool before saying anything about a device; never answer from memory, never claim a call that you did not make. Say what `say` says and nothing stronger. confirmed: done. failed: not done. unconfirmed: not known, claim neither. working: still going on. partly: name what is not confirmed. ask_user: put the question. Never retry or confirm on your own. If there is a correction, say it first. Read out no ids, codes or field names.",
        "你可以通过工具控制家里的设备。规则：一、凡是要动设备或问设备状态，必须先调用工具，不能凭记忆回答，也不能没调用就说做了。二、工具返回后，照 say 的意思说，不要说得比它更肯定。只有 result 是 confirmed 才能说做到了；failed 说没做成；unconfirmed 说不确定，既不说做了也不说没做；working 说还在进行；partly 要说出哪几个没确认；ask_user 就把问题问用户。三、不要自动重试，不要替用户确认。四、有 correction 时先说更正。五、不要念出操作号、代码和英文字段。",
    )
}
