//! What goes wrong before there is a call: one sentence each, that may be read out as it stands. Access points hand the
//! message of a protocol error to the person's ear.

use super::operation::pick;
use crate::names::Lang;

/// What is wrong with a request of an access point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// A method that there is not.
    UnknownMethod,
    /// A tool that this caller does not have.
    UnknownTool,
    /// Parameters that are none.
    BadCall,
    /// Several requests in one message.
    OneByOne,
    /// The endpoint was removed, or may nothing.
    NoAccess,
    /// The line is closed on this side while the call runs.
    Closing,
}

/// The sentence.
pub fn trouble(trouble: Trouble, lang: Lang) -> &'static str {
    match trouble {
        Trouble::UnknownMethod => pick(lang, "这里没有这个功能。", "There is no such function here."),
        Trouble::UnknownTool => pick(
            lang,
            "没有执行：这里没有这个工具，也许设备还没连上，或者没有这一项。",
            "Not done: there is no such tool here; perhaps a device has not connected yet, or has nothing of the kind.",
        ),
        Trouble::BadCall => pick(lang, "没有执行：请求不完整。", "Not done: the request was incomplete."),
        Trouble::OneByOne => pick(lang, "没有执行：请一次只说一件事。", "Not done: one request at a time, please."),
        Trouble::NoAccess => pick(lang, "没有执行：没有权限。", "Not done: access was withdrawn."),
        Trouble::Closing => pick(
            lang,
            "不确定：连接正在关闭，做没做成不知道，麻烦看一眼。",
            "Not sure: this connection is being closed; it may or may not have happened. Please look.",
        ),
    }
}
