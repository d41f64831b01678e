//! The answer to several wishes at once (semantics 7.1): counts, and by name what is not confirmed.

use serde::Serialize;
use serde_json::{Map, Value as Json};

use super::{
    Facts, Naming, Next, Rendered, ResultWord,
    operation::pick,
    reply,
    speech::{count_en, count_zh, spoken, the},
};
use crate::{
    names::Lang,
    twin::words::{Outcome, Reason, Refusal, Reply},
};

/// How many members that are not confirmed an answer tells of; the rest is counted in `more`.
pub const MEMBER_ROWS_MAX: usize = 5;

/// How many confirmed members an answer names; `confirmed` counts them all.
pub const CONFIRMED_NAMES_MAX: usize = 24;

/// How many characters of a sentence tell of members that are not confirmed.
fn tail_chars_max(lang: Lang) -> usize {
    match lang {
        Lang::Zh => 22,
        Lang::En => 50,
    }
}

/// What became of one member.
#[derive(Clone, Debug)]
pub struct MemberReply {
    /// What it is called.
    pub naming: Naming,
    /// Whether the whole counts as done only with it.
    pub required: bool,
    /// Its own answer.
    pub reply: Reply,
}

/// One member that is not confirmed, in the facts.
#[derive(Clone, Debug, Serialize)]
pub(super) struct MemberRow {
    device: String,
    result: &'static str,
    outcome: &'static str,
    #[serde(skip_serializing_if = "Json::is_null")]
    reason: Json,
    #[serde(skip_serializing_if = "Map::is_empty")]
    device_state: Map<String, Json>,
    #[serde(skip_serializing_if = "Json::is_null")]
    operation: Json,
}

/// A member with its own answer.
type Told<'a> = (&'a MemberReply, Rendered);

/// Renders how several wishes ended. All required confirmed: a success. Some confirmed: `partial`. None confirmed: `working`
/// if any is still going on, else not known if any is not known, else failed; the outcome is then that of the first such
/// member.
pub fn together(name: &str, is_scene: bool, members: &[MemberReply], lang: Lang) -> Rendered {
    let told = members.iter().map(|m| (m, reply(&m.reply, &m.naming, lang)));
    let (confirmed, open): (Vec<Told<'_>>, Vec<Told<'_>>) = told.partition(|(_, r)| r.structured["success"] == true);
    let is_done = !confirmed.is_empty() && open.iter().all(|(m, _)| !m.required);
    let (result, next, outcome) = verdict(is_done, !confirmed.is_empty(), &open);
    let voice = Voice { name: said(name, is_scene, lang), all: members.len(), confirmed: confirmed.len(), lang };
    let say = voice.say(result, &tail(&open, lang));
    let rows: Vec<MemberRow> = open.iter().take(MEMBER_ROWS_MAX).map(MemberRow::new).collect();
    let more = open.len() - rows.len();
    let names = confirmed.iter().take(CONFIRMED_NAMES_MAX).map(|(m, _)| m.naming.device.clone());
    let not_checked = confirmed.iter().filter(|_| is_done).find_map(|(_, r)| r.structured["not_checked"].as_str());
    let facts = Facts {
        success: Some(is_done),
        outcome: Some(outcome),
        device: Some(name.to_owned()),
        not_checked: not_checked.map(str::to_owned),
        confirmed: Some(confirmed.len()),
        of: Some(members.len()),
        confirmed_devices: Some(names.collect()),
        not_confirmed: (!rows.is_empty()).then_some(rows),
        more: (more > 0).then_some(more),
        ..Facts::default()
    };
    let note = note(result, open.is_empty(), lang).map(str::to_owned);
    Rendered::new(result, next, say, note, facts, lang)
}

fn verdict(is_done: bool, any_confirmed: bool, open: &[Told<'_>]) -> (ResultWord, Next, &'static str) {
    if is_done {
        return (ResultWord::Confirmed, Next::None, Outcome::Converged.as_str());
    }
    if any_confirmed {
        return (ResultWord::Partly, Next::None, Outcome::Partial.as_str());
    }
    for (result, next) in [(ResultWord::Working, Next::Wait), (ResultWord::Unconfirmed, Next::AskUserToLook)] {
        if let Some((member, _)) = open.iter().find(|(_, r)| r.result == result) {
            return (result, next, outcome_of(&member.reply));
        }
    }
    // Refused, failed, or no value that the device takes: either way it is known that nothing is as was wished.
    let retry = !open.is_empty() && open.iter().all(|(_, r)| r.structured["next"] == Next::RetryOnce.as_str());
    let outcome = open.first().map_or(Outcome::Failed.as_str(), |(member, _)| outcome_of(&member.reply));
    (ResultWord::Failed, if retry { Next::RetryOnce } else { Next::None }, outcome)
}

fn outcome_of(reply: &Reply) -> &'static str {
    match reply {
        Reply::Settled(settled) => settled.outcome.as_str(),
        Reply::Refused(refusal) => refusal.word().as_str(),
    }
}

fn note(result: ResultWord, all: bool, lang: Lang) -> Option<&'static str> {
    let (zh, en) = match (result, all) {
        (ResultWord::Confirmed, true) => {
            ("只说都确认了，不要说得更多。", "Say that all are confirmed and claim no more.")
        }
        (ResultWord::Confirmed | ResultWord::Partly, _) => ("必须说出没确认的。", "Name what is not confirmed."),
        (ResultWord::Working, _) => (
            "现在不能说做好了；用户再问时按设备调 check_operation。",
            "Do not say that it is done; call check_operation with a device when the user asks again.",
        ),
        (ResultWord::Unconfirmed | ResultWord::Failed | ResultWord::AskUser, _) => {
            ("不要自动重试。", "Do not retry on your own.")
        }
    };
    Some(pick(lang, zh, en))
}

impl MemberRow {
    fn new((member, told): &Told<'_>) -> Self {
        let state = told.structured["device_state"].as_object().cloned();
        Self {
            device: member.naming.device.clone(),
            result: told.result.as_str(),
            outcome: outcome_of(&member.reply),
            reason: told.structured["reason"].clone(),
            device_state: state.unwrap_or_default(),
            operation: told.structured["operation"].clone(),
        }
    }
}

/// How a group or a scene is spoken: a scene says that it is one.
pub(super) fn said(name: &str, is_scene: bool, lang: Lang) -> String {
    let name = spoken(name, lang);
    match (is_scene, lang) {
        (false, Lang::Zh) => name,
        (false, Lang::En) => name,
        (true, Lang::Zh) if name.ends_with("模式") || name.ends_with("场景") => name,
        (true, Lang::Zh) => format!("{name}场景"),
        (true, Lang::En) => format!("scene {name}"),
    }
}

/// What is the matter with one member, in a few words.
fn matter(reply: &Reply, lang: Lang) -> &'static str {
    let (zh, en) = match reply {
        Reply::Settled(settled) => match (settled.outcome, settled.reason) {
            (Outcome::TimedOut, Some(Reason::UnreadableReport)) => ("回的话看不懂", "unreadable report"),
            (Outcome::TimedOut, _) => ("没有回音", "no answer"),
            (Outcome::Working, _) => ("还在进行", "still going on"),
            (Outcome::SentUnverified, _) => ("不会回话", "cannot answer"),
            (Outcome::Superseded, _) => ("被后来的要求代替", "overtaken"),
            (Outcome::Rejected, _) => ("拒绝了", "refused"),
            (Outcome::Failed | Outcome::Cancelled, _) => ("没做成", "failed"),
            (Outcome::Contradicted, Some(Reason::DidNotHold)) => ("没稳住", "did not hold"),
            (Outcome::Contradicted, _) => ("读回来不一样", "reads otherwise"),
            (Outcome::Interrupted | Outcome::DeviceCrashed, _) => ("中途断了", "interrupted"),
            (Outcome::Removed, _) => ("被移除了", "removed"),
            (Outcome::Converged | Outcome::Already | Outcome::Clamped | Outcome::Partial, _) => {
                ("不确定", "not confirmed")
            }
        },
        Reply::Refused(refusal) => match refusal {
            Refusal::UnknownDevice { .. } => ("找不到", "not found"),
            Refusal::Offline { .. } | Refusal::HubJustStarted => ("不在线", "offline"),
            Refusal::QueueFull { .. } | Refusal::DeadlineTooShort { .. } => ("来不及", "no time for it"),
            Refusal::BrokerDown
            | Refusal::JournalDown
            | Refusal::Quarantined
            | Refusal::ShuttingDown
            | Refusal::VerifierOffline { .. } => ("没有发出", "nothing sent"),
            Refusal::UnknownProperty { .. } | Refusal::InvalidValue { .. } | Refusal::InvalidArgument { .. } => {
                ("不能这样设", "cannot be set so")
            }
            Refusal::StateUnknown { .. } => ("没说现在的状态", "its state is not known"),
            Refusal::Forbidden { .. } | Refusal::ActsOnly { .. } | Refusal::NotAccepted { .. } => {
                ("不能改", "cannot be set")
            }
            Refusal::ConfirmationRequired
            | Refusal::CodeWrong { .. }
            | Refusal::CodeExpired
            | Refusal::CodeTooEarly
            | Refusal::LockedOut { .. }
            | Refusal::Declined => ("还没同意", "not agreed to"),
            Refusal::AmbiguousName { .. } | Refusal::MissingArgument { .. } | Refusal::UnknownArgument { .. } => {
                ("没说清", "not clear")
            }
        },
    };
    pick(lang, zh, en)
}

/// What is not confirmed, by name, as many as a sentence holds; then how many more.
fn tail(open: &[Told<'_>], lang: Lang) -> String {
    let mut budget = tail_chars_max(lang);
    let mut parts: Vec<String> = Vec::new();
    for (member, _) in open {
        let matter = matter(&member.reply, lang);
        let part = match lang {
            Lang::Zh => format!("{}{matter}", member.naming.spoken),
            Lang::En => format!("{}: {matter}", member.naming.spoken),
        };
        let length = part.chars().count() + 2;
        if length > budget {
            break;
        }
        budget -= length;
        parts.push(part);
    }
    let more = (open.len() - parts.len()) as u64;
    match (more, parts.is_empty(), lang) {
        (0, _, Lang::Zh) => parts.join("，"),
        (0, _, Lang::En) => parts.join(", "),
        (_, true, Lang::Zh) => format!("{}个没有确认", count_zh(more)),
        (_, true, Lang::En) => format!("{} not confirmed", count_en(more)),
        (_, false, Lang::Zh) => format!("{}，还有{}个没有确认", parts.join("，"), count_zh(more)),
        (_, false, Lang::En) => format!("{}, and {} more", parts.join(", "), count_en(more)),
    }
}

struct Voice {
    name: String,
    all: usize,
    confirmed: usize,
    lang: Lang,
}

impl Voice {
    fn say(&self, result: ResultWord, tail: &str) -> String {
        let name = &self.name;
        let (all, some) = (self.all as u64, self.confirmed as u64);
        let (all_zh, all_en) = (count_zh(all), count_en(all));
        let (subject, object) = (the(name, true), the(name, false));
        let (zh, en) = match (result, tail.is_empty()) {
            (ResultWord::Confirmed, true) if all == 2 => {
                (format!("{name}：两个都确认了。"), format!("{subject}: both are confirmed."))
            }
            (ResultWord::Confirmed, true) if all == 1 => {
                (format!("{name}：确认了。"), format!("{subject}: it is confirmed."))
            }
            (ResultWord::Confirmed, true) => {
                (format!("{name}：{all_zh}个都确认了。"), format!("{subject}: all {all_en} are confirmed."))
            }
            (ResultWord::Confirmed, false) => (
                format!("{name}该做的都确认了；{tail}。"),
                format!("{subject}: all that is needed is confirmed; {tail}."),
            ),
            (ResultWord::Partly, _) => (
                format!("只做了一部分：{name}{all_zh}个里{}个确认了，{tail}。", count_zh(some)),
                format!("Only part of {object}: {} of {all_en} confirmed; {tail}.", count_en(some)),
            ),
            (ResultWord::Working, _) => (
                format!("还没到：{name}{all_zh}个都还没确认，{tail}。"),
                format!("Not there yet with {object}, none of {all_en} confirmed; {tail}."),
            ),
            (ResultWord::Unconfirmed | ResultWord::AskUser, _) => (
                format!("不确定：{name}{all_zh}个都没确认，{tail}，麻烦看一眼。"),
                format!("Not sure about {object}, none of {all_en} confirmed; {tail}. Please look."),
            ),
            (ResultWord::Failed, _) => (
                format!("没做成：{name}{all_zh}个都没成，{tail}。"),
                format!("It failed with {object}, none of {all_en}; {tail}."),
            ),
        };
        match self.lang {
            Lang::Zh => zh,
            Lang::En => en,
        }
    }
}
