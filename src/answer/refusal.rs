//! The answer to a call that never began: nothing was sent and nothing has moved, and the sentence says so first.

use std::time::Duration;

use super::{
    Facts, MASKED, Naming, Rendered, millis,
    mistakes::{mistake_note, noun},
    of_refusal,
    operation::pick,
    speech::{ago, choices, names, number, span, spoken, the},
    terms,
};
use crate::{
    names::Lang,
    property::ValueError,
    twin::words::{Refusal, RefusalWord, Stage},
};

/// Renders a refusal. `naming` is the device that was meant, where it is known.
pub fn refusal(refusal: &Refusal, naming: Option<&Naming>, lang: Lang) -> Rendered {
    let voice = Voice { naming, lang };
    let word = refusal.word();
    let (result, next) = of_refusal(word);
    let facts = Facts {
        success: Some(false),
        outcome: Some(word.as_str()),
        stage: Some(Stage::Admission.as_str()),
        device: naming.map(|n| n.device.clone()),
        ..facts(refusal)
    };
    let hidden = naming.is_some_and(|n| n.sensitive);
    let facts = Facts { sent: facts.sent.map(|sent| if hidden { MASKED.to_owned() } else { sent }), ..facts };
    // An empty list would read as if nothing at all were allowed.
    let facts = Facts { allowed: facts.allowed.filter(|a| !a.is_empty()).map(|a| noun(a, lang)), ..facts };
    let note = mistake_note(refusal, lang).or_else(|| note(word, lang));
    Rendered::new(result, next, voice.say(refusal), note.map(str::to_owned), facts, lang)
}

/// The facts that a refusal carries, as fields.
fn facts(refusal: &Refusal) -> Facts {
    let none = Facts::default();
    match refusal {
        Refusal::UnknownDevice { asked, near } => {
            Facts { asked: Some(asked.clone()), near: Some(near.clone()), ..none }
        }
        Refusal::AmbiguousName { asked, candidates } => {
            Facts { asked: Some(asked.clone()), candidates: Some(candidates.clone()), ..none }
        }
        Refusal::UnknownProperty { asked, known } => {
            Facts { asked: Some(asked.clone()), allowed: Some(listed(known)), ..none }
        }
        Refusal::MissingArgument { parameter, allowed } => {
            Facts { parameter: Some((*parameter).to_owned()), allowed: Some(allowed.clone()), ..none }
        }
        Refusal::UnknownArgument { parameter, allowed } => {
            Facts { parameter: Some(parameter.clone()), allowed: Some(allowed.join(", ")), ..none }
        }
        Refusal::InvalidArgument { parameter, sent, allowed } => Facts {
            parameter: Some((*parameter).to_owned()),
            sent: Some(sent.clone()),
            allowed: Some(allowed.clone()),
            ..none
        },
        Refusal::InvalidValue { property, error } => {
            let (sent, allowed) = sent_and_allowed(error);
            Facts { parameter: Some(property.to_string()), sent: Some(sent), allowed: Some(allowed), ..none }
        }
        Refusal::ActsOnly { property, actions } => Facts {
            parameter: Some(property.to_string()),
            allowed: Some(format!("run_device_action: {}", listed(actions))),
            ..none
        },
        Refusal::Forbidden { property } | Refusal::NotAccepted { property } | Refusal::StateUnknown { property } => {
            Facts { parameter: Some(property.to_string()), ..none }
        }
        Refusal::Offline { last_heard } => {
            Facts { online: Some(false), last_heard_s: last_heard.map(|t| t.as_secs()), ..none }
        }
        Refusal::CodeWrong { left } => Facts { tries_left: Some(*left), ..none },
        Refusal::QueueFull { limit } => Facts { limit: Some(*limit), ..none },
        Refusal::DeadlineTooShort { needed } => Facts { needed_ms: Some(millis(*needed)), ..none },
        Refusal::VerifierOffline { device } => Facts { parameter: device.as_ref().map(ToString::to_string), ..none },
        Refusal::ConfirmationRequired
        | Refusal::CodeExpired
        | Refusal::CodeTooEarly
        | Refusal::LockedOut { .. }
        | Refusal::Declined
        | Refusal::HubJustStarted
        | Refusal::BrokerDown
        | Refusal::JournalDown
        | Refusal::Quarantined
        | Refusal::ShuttingDown => none,
    }
}

/// What was sent, and what is allowed, for the model.
fn sent_and_allowed(error: &ValueError) -> (String, String) {
    match error {
        ValueError::WrongKind { sent, expected } | ValueError::BadText { sent, expected } => {
            (sent.clone(), (*expected).to_owned())
        }
        ValueError::OutOfRange { sent, min, max } => {
            let allowed = match (bounded(*min), bounded(*max)) {
                (true, true) => format!("{} to {}", number(*min), number(*max)),
                (true, false) => format!("at least {}", number(*min)),
                (false, _) => format!("at most {}", number(*max)),
            };
            (number(*sent), allowed)
        }
        ValueError::OffStep { sent, step, min } => {
            (number(*sent), format!("steps of {} from {}", number(*step), number(*min)))
        }
        ValueError::NotListed { sent, allowed } => (sent.clone(), listed(allowed)),
    }
}

/// Words of a device in a list.
fn listed(words: &[std::sync::Arc<str>]) -> String {
    words.iter().map(|word| terms::quoted(word)).collect::<Vec<_>>().join(", ")
}

/// Whether a limit is one: a property without a limit reports the largest number there is.
pub(super) fn bounded(limit: f64) -> bool {
    limit > f64::MIN && limit < f64::MAX
}

fn note(word: RefusalWord, lang: Lang) -> Option<&'static str> {
    let (zh, en) = match word {
        RefusalWord::UnknownDevice => ("不要选相近的代替。", "Do not take a near one instead."),
        RefusalWord::AmbiguousName => ("等用户选。", "Wait for the user's choice."),
        RefusalWord::UnknownProperty | RefusalWord::MissingArgument | RefusalWord::InvalidValue => {
            ("问用户，不要自己定。", "Ask the user; do not decide yourself.")
        }
        RefusalWord::UnknownArgument => (
            "这是参数名写错，不用问用户：按 allowed 改正后再调。",
            "The parameter's name is wrong, no need to ask the user: correct it by allowed and call again.",
        ),
        RefusalWord::ConfirmationRequired => (
            "把问题说给用户，等用户亲口同意；code 不要念出来。",
            "Put the question to the user and wait for a clear yes; never read out the code.",
        ),
        RefusalWord::CodeWrong => ("再问用户一次，绝不替用户确认。", "Ask the user again; never confirm for the user."),
        RefusalWord::CodeExpired | RefusalWord::CodeTooEarly => (
            "这个问题作废了：用户还要做的话，重新调原来的工具，再等用户亲口同意；绝不替用户确认。",
            "That question is gone: if it is still wanted, call the first tool again and wait for the user's own yes; never confirm for the user.",
        ),
        RefusalWord::Declined => {
            ("用户没有同意：不要再问，不要重试。", "The user said no: do not ask again, do not retry.")
        }
        RefusalWord::StateUnknown => ("可以问用户要设成多少。", "The user may be asked for the value wanted."),
        RefusalWord::Offline | RefusalWord::DeadlineTooShort | RefusalWord::Forbidden | RefusalWord::Quarantined => {
            ("不要重试。", "Do not retry.")
        }
        RefusalWord::HubJustStarted | RefusalWord::RateLimited | RefusalWord::QueueFull => {
            ("过一会儿可以再调一次。", "May be called once more in a while.")
        }
        RefusalWord::VerifierOffline
        | RefusalWord::BrokerDown
        | RefusalWord::JournalDown
        | RefusalWord::ShuttingDown => return None,
    };
    Some(pick(lang, zh, en))
}

pub(super) struct Voice<'a> {
    pub(super) naming: Option<&'a Naming>,
    pub(super) lang: Lang,
}

impl Voice<'_> {
    fn say(&self, refusal: &Refusal) -> String {
        match refusal {
            Refusal::UnknownDevice { near, .. } if near.is_empty() => self.bare(RefusalWord::UnknownDevice),
            Refusal::UnknownDevice { near, .. } => self.both(
                format!("没有叫这个名字的设备，相近的有{}。", names(near, Lang::Zh)),
                format!("No device of that name; near: {}.", names(near, Lang::En)),
            ),
            Refusal::AmbiguousName { candidates, .. } => {
                let count = candidates.len() as u64;
                self.both(
                    format!(
                        "有{}个：{}，要哪一个？都还没有动。",
                        super::speech::count_zh(count),
                        names(candidates, Lang::Zh)
                    ),
                    format!(
                        "There are {}: {}. Which one? Nothing has moved.",
                        super::speech::count_en(count),
                        names(candidates, Lang::En)
                    ),
                )
            }
            Refusal::MissingArgument { parameter, allowed } | Refusal::InvalidArgument { parameter, allowed, .. } => {
                self.argument(parameter, allowed)
            }
            Refusal::InvalidValue { error, .. } => self.value(error),
            Refusal::Offline { last_heard: Some(age) } => self.offline(*age),
            Refusal::DeadlineTooShort { needed } => self.both(
                format!("没有发出：{}至少要{}，时间不够。", self.name(), span(*needed, Lang::Zh)),
                format!("Nothing sent: {} needs at least {}.", self.object(), span(*needed, Lang::En)),
            ),
            Refusal::NotAccepted { property } => {
                let what = terms::property(property, self.lang).map(|what| spoken(&what, self.lang));
                let (zh, en) = (what.as_deref().unwrap_or("这一项"), what.as_deref().unwrap_or("this"));
                self.both(
                    format!("没有发出：{}的{zh}是新出现的，要先由主人同意。", self.name()),
                    format!("Nothing sent: {en} of {} is new and its owner has not accepted it.", self.object()),
                )
            }
            Refusal::ActsOnly { actions, .. } => {
                let all: Vec<&str> = actions.iter().map(AsRef::as_ref).collect();
                let said = self.spoken_words(&all, terms::action);
                match said.is_empty() {
                    true => self.bare(RefusalWord::Forbidden),
                    false => self.both(
                        format!("没有发出：{}不能直接开关，它会{}。", self.name(), choices(&said, Lang::Zh)),
                        format!(
                            "Nothing sent: {} is not switched; it can: {}.",
                            self.object(),
                            choices(&said, Lang::En)
                        ),
                    ),
                }
            }
            Refusal::UnknownProperty { asked, known } => {
                let known: Vec<&str> = known.iter().map(AsRef::as_ref).collect();
                let said = self.spoken_words(&known, terms::property);
                match said.is_empty() {
                    true => self.bare(RefusalWord::UnknownProperty),
                    // What set_device_level is for; "which one" would offer a switch as one.
                    false if asked == "level" => self.both(
                        format!(
                            "还没有动：{}没有这样能调的数值，有{}，要怎样？",
                            self.name(),
                            choices(&said, Lang::Zh)
                        ),
                        format!(
                            "Nothing has moved: {} has no such level to set; it has {}. What is wanted?",
                            self.object(),
                            choices(&said, Lang::En)
                        ),
                    ),
                    false => self.both(
                        format!("还没有动：{}没有这一项，有{}，要哪一项？", self.name(), choices(&said, Lang::Zh)),
                        format!(
                            "Nothing has moved: {} has no such thing, but {}; which one?",
                            self.object(),
                            choices(&said, Lang::En)
                        ),
                    ),
                }
            }
            Refusal::LockedOut { left } => self.both(
                format!("没有发出：确认码错得太多，{}以后再说。", span(*left, Lang::Zh)),
                format!("Nothing sent: too many wrong codes; none is taken for {}.", span(*left, Lang::En)),
            ),
            Refusal::UnknownArgument { .. }
            | Refusal::ConfirmationRequired
            | Refusal::CodeWrong { .. }
            | Refusal::CodeExpired
            | Refusal::CodeTooEarly
            | Refusal::Declined
            | Refusal::Forbidden { .. }
            | Refusal::VerifierOffline { .. }
            | Refusal::Offline { last_heard: None }
            | Refusal::StateUnknown { .. }
            | Refusal::HubJustStarted
            | Refusal::QueueFull { .. }
            | Refusal::BrokerDown
            | Refusal::JournalDown
            | Refusal::Quarantined
            | Refusal::ShuttingDown => self.bare(refusal.word()),
        }
    }

    /// The sentence of a word without facts; also for the words that nothing raises yet.
    pub(super) fn bare(&self, word: RefusalWord) -> String {
        let n = self.name();
        let the = self.object();
        let (zh, en) = match word {
            RefusalWord::UnknownDevice => (
                "没有叫这个名字的设备，要的是哪一个？".to_owned(),
                "No device of that name; which one is meant?".to_owned(),
            ),
            RefusalWord::AmbiguousName => (
                "有几个同名的，要哪一个？都还没有动。".to_owned(),
                "There are several. Which one? Nothing has moved.".to_owned(),
            ),
            RefusalWord::UnknownProperty => (
                format!("还没有动：{n}没有这一项，要哪一项？"),
                format!("Nothing has moved: {the} has no such thing; which one?"),
            ),
            RefusalWord::MissingArgument => (
                "还没有动：还差一样没说清，要怎样？".to_owned(),
                "Nothing has moved: something is missing; what is wanted?".to_owned(),
            ),
            RefusalWord::UnknownArgument => (
                "还没有动：助手传错了一个参数。".to_owned(),
                "Nothing has moved: the assistant sent a wrong parameter.".to_owned(),
            ),
            RefusalWord::InvalidValue => (
                format!("还没有动：{n}不能设成这样，要怎样？"),
                format!("Nothing has moved: {the} does not take that; what is wanted?"),
            ),
            RefusalWord::Forbidden => {
                (format!("没有发出：{n}只能看，不能改。"), format!("Nothing sent: {the} can be read but not set."))
            }
            RefusalWord::StateUnknown => (
                format!("没有发出：{n}没说现在是什么状态，没法接着改。"),
                format!("Nothing sent: {the} does not tell what it is at now."),
            ),
            RefusalWord::ConfirmationRequired => (
                format!("还没有动：{n}要先问一声，真的要现在做吗？"),
                format!("Nothing has moved: is it really wanted for {the} now?"),
            ),
            RefusalWord::CodeWrong => (
                format!("还没有动：{n}的确认码不对，请再说一遍。"),
                format!("Nothing has moved: the code for {the} is wrong; please say it once more."),
            ),
            RefusalWord::CodeExpired => (
                format!("还没有动：{n}的确认过时了，还要做吗？"),
                format!("Nothing has moved: the confirmation for {the} is too old; is it still wanted?"),
            ),
            RefusalWord::CodeTooEarly => (
                format!("还没有动：{n}要等人亲口同意，真的要做吗？"),
                format!("Nothing has moved: {the} waits for a person's own yes; is it really wanted?"),
            ),
            RefusalWord::Declined => (
                format!("没有发出：没有得到同意，{n}没有动。"),
                format!("Nothing sent: it was not agreed to; {the} has not moved."),
            ),
            RefusalWord::Offline => (
                format!("没有发出：{n}不在线，还从没联系上过，要先让它连上来。"),
                format!("Nothing sent: {the} is offline and was never heard; it has to connect first."),
            ),
            RefusalWord::HubJustStarted => (
                format!("没有发出：中枢刚启动，{n}还没连上，半分钟后再说一次。"),
                format!("Nothing sent: the hub has just started and {the} is not back yet; try in half a minute."),
            ),
            RefusalWord::VerifierOffline => (
                format!("没有发出：看{n}的传感器不在线，没法核对。"),
                format!("Nothing sent: the sensor that checks {the} is offline."),
            ),
            RefusalWord::RateLimited => (
                "没有发出：要求来得太密，过一会儿再说一次。".to_owned(),
                "Nothing sent: too many requests; try in a while.".to_owned(),
            ),
            RefusalWord::QueueFull => (
                format!("没有发出：{n}前面排得太满，过一会儿再说一次。"),
                format!("Nothing sent: too much waits for {the}; try in a while."),
            ),
            RefusalWord::DeadlineTooShort => {
                (format!("没有发出：{n}来不及。"), format!("Nothing sent: the time is too short for {the}."))
            }
            RefusalWord::BrokerDown => (
                format!("没有发出：家里的消息通道断了，不是{n}的问题。"),
                format!("Nothing sent: the hub's message bus is down, not {the}."),
            ),
            RefusalWord::JournalDown => (
                format!("没有发出：中枢的磁盘写不进去，{n}的这一步要先记下来才能做。"),
                format!("Nothing sent: the hub's disk takes no records, and this needs one before {the} may move."),
            ),
            RefusalWord::Quarantined => (
                format!("没有发出：中枢里管{n}的部分一再出错，停用了。"),
                format!("Nothing sent: the hub's part for {the} failed too often and was set aside."),
            ),
            RefusalWord::ShuttingDown => {
                ("没有发出：中枢正要停下。".to_owned(), "Nothing sent: the hub is stopping.".to_owned())
            }
        };
        self.both(zh, en)
    }

    fn offline(&self, age: Duration) -> String {
        self.both(
            format!("没有发出：{}不在线，上次联系是{}，没有动。", self.name(), ago(age, Lang::Zh)),
            format!("Nothing sent: {} is offline, last heard {}.", self.object(), ago(age, Lang::En)),
        )
    }

    pub(super) fn name(&self) -> &str {
        self.naming.map_or("设备", |n| &n.spoken)
    }

    pub(super) fn object(&self) -> String {
        self.naming.map_or_else(|| "the device".to_owned(), |n| the(&n.spoken, false))
    }

    pub(super) fn both(&self, zh: String, en: String) -> String {
        match self.lang {
            Lang::Zh => zh,
            Lang::En => en,
        }
    }
}

/// The sentence of a refusal word for a device, without any facts: what the catalogue of sentences shows, and what a
/// word says that nothing raises yet.
pub fn refusal_word(word: RefusalWord, naming: Option<&Naming>, lang: Lang) -> String {
    Voice { naming, lang }.bare(word)
}
