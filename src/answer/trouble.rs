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
}

/// The sentence.
pub fn trouble(trouble: Trouble, lang: Lang) -> &'static str {
    match trouble {
        Trouble::UnknownMethod => pick(lang, "这里没有这个功能。", "There is no such function here."),
        Trouble::UnknownTool => pick(lang, "没有执行：这里没有这个工具。", "Not done: there is no such tool here."),
        Trouble::BadCall => pick(lang, "没有执行：请求不完整。", "Not done: the request was incomplete."),
        Trouble::OneByOne => pick(lang, "没有执行：请一次只说一件事。", "Not done: one request at a time, please."),
        Trouble::NoAccess => pick(lang, "没有执行：没有权限。", "Not done: access was withdrawn."),
    }
}
