//! The answer to a call that began: one sentence for each outcome, by evidence, role and reason.

use serde_json::Map;

use super::{
    Facts, Naming, Next, Rendered, ResultWord, StagesMs, json_value, millis,
    speech::{is, moves, opens, span, the},
    verdict::{is_success, of_outcome},
};
use crate::{
    names::Lang,
    property::{Evidence, Role, Value},
    twin::words::{Attribution, Outcome, Reason, Settled, Stage},
};

/// Renders how an operation ended, or how far it is.
pub fn operation(settled: &Settled, naming: &Naming, lang: Lang) -> Rendered {
    let voice = Voice { settled, naming, outcome: honest(settled), lang };
    let (mut result, mut next) = of_outcome(voice.outcome);
    let mut success = is_success(voice.outcome);
    let (say, note) = match (settled.reverted, settled.late_success && !success) {
        (true, _) => {
            (result, next, success) = (ResultWord::Failed, Next::None, false);
            (voice.reverted(), Some(pick(lang, "先说更正。", "Say the correction first.")))
        }
        (false, true) => {
            // The attempt was no success when it was answered and stays none; what may be said now is another matter.
            (result, next) = (ResultWord::Confirmed, Next::None);
            (voice.late_success(), Some(pick(lang, "先说更正。", "Say the correction first.")))
        }
        (false, false) => (voice.say(), voice.note()),
    };
    let found = settled.found.as_ref();
    let evidence = if success { evidence(settled) } else { Evidence::None };
    let facts = Facts {
        success: Some(success),
        outcome: Some(voice.outcome.as_str()),
        stage: Some(settled.stage.as_str()),
        reason: settled.reason.map(|r| {
            if r == Reason::Timeout { format!("timeout_after_{}ms", millis(settled.elapsed)) } else { r.to_string() }
        }),
        device: Some(naming.device.clone()),
        device_state: Some(
            found
                .map(|f| (settled.property.to_string(), json_value(&f.value, naming.role)))
                .into_iter()
                .collect::<Map<_, _>>(),
        ),
        trust: Some(found.map_or("unknown", |f| f.trust.as_str())),
        age_s: found.map(|f| f.age.as_secs()),
        confirmed_by: Some(evidence.as_str()),
        not_checked: success.then(|| not_checked(evidence, naming.role, lang)).flatten().map(str::to_owned),
        attribution: success.then(|| settled.attribution.as_str()),
        late_success: settled.late_success.then_some(true),
        reverted: settled.reverted.then_some(true.into()),
        operation: Some(settled.op.to_string()),
        eta_s: settled.eta.map(|e| e.as_secs()),
        elapsed_ms: Some(millis(settled.elapsed)),
        stages_ms: Some(StagesMs::new(&settled.stages)),
        ..Facts::default()
    };
    Rendered::new(result, next, say, note.map(str::to_owned), facts, lang)
}

/// The evidence of a success: what the operation says, and for `already` what its reading says.
fn evidence(settled: &Settled) -> Evidence {
    match settled.outcome {
        Outcome::Already => {
            settled.found.as_ref().map_or(settled.confirmed_by, |f| f.evidence.max(settled.confirmed_by))
        }
        Outcome::Converged
        | Outcome::Clamped
        | Outcome::Working
        | Outcome::Partial
        | Outcome::SentUnverified
        | Outcome::Superseded
        | Outcome::Rejected
        | Outcome::Failed
        | Outcome::Contradicted
        | Outcome::TimedOut
        | Outcome::Interrupted
        | Outcome::Cancelled
        | Outcome::Removed
        | Outcome::DeviceCrashed => settled.confirmed_by,
    }
}

/// The last door: a success that is backed by less than the device's own word is none (semantics 3.5), whatever came
/// before said.
fn honest(settled: &Settled) -> Outcome {
    if is_success(settled.outcome) && evidence(settled) < Evidence::Firmware {
        Outcome::SentUnverified
    } else {
        settled.outcome
    }
}

/// What a success leaves open, by evidence and role.
fn not_checked(evidence: Evidence, role: Role, lang: Lang) -> Option<&'static str> {
    match evidence {
        Evidence::Sensor => None,
        Evidence::Pin => Some(match role {
            Role::Light => pick(lang, "灯亮没亮，没有传感器", "whether the light is lit: no sensor sees it"),
            Role::Lock | Role::Door | Role::Blind | Role::Valve => {
                pick(lang, "是不是真的到位，没有传感器", "whether it is really in place: no sensor sees it")
            }
            Role::Socket | Role::Heater | Role::Fan | Role::Pump | Role::Sensor | Role::Other => {
                pick(lang, "接着的东西动没动，没有传感器", "whether what hangs on it works: no sensor sees it")
            }
        }),
        Evidence::None | Evidence::Sent | Evidence::Received | Evidence::Firmware => {
            Some(pick(lang, "没有读回检查，只是设备自己说的", "nothing was read back: only the device's own word"))
        }
    }
}

/// The text of the language.
pub(super) fn pick<'a>(lang: Lang, zh: &'a str, en: &'a str) -> &'a str {
    match lang {
        Lang::Zh => zh,
        Lang::En => en,
    }
}

/// A reason in words, as the end of "because"; `None` where the device gave none that is known.
fn reason_words(reason: Option<Reason>, lang: Lang) -> Option<&'static str> {
    let (zh, en) = match reason? {
        Reason::Timeout => ("没有回音", "no answer"),
        Reason::Stuck => ("卡住了", "it is stuck"),
        Reason::OutOfRange => ("超出了它的范围", "out of its range"),
        Reason::Busy => ("它正忙着", "it is busy"),
        Reason::Interrupted => ("中途停下了", "it stopped half-way"),
        Reason::Expired => ("指令到得太晚", "the command came too late"),
        Reason::Superseded => ("有更新的指令", "a newer command came"),
        Reason::Withdrawn => ("指令收回了", "the command was taken back"),
        Reason::Unsupported => ("它不会做这个", "it cannot do that"),
        Reason::Malformed => ("它看不懂指令", "it could not read the command"),
        Reason::Power => ("供电不足", "not enough power"),
        Reason::ReadBackDiffers => ("读回来不一样", "it reads back otherwise"),
        Reason::DidNotHold => ("没有稳住", "it did not hold"),
        Reason::SensorDiffers => ("传感器看到的不一样", "the sensor does not agree"),
        Reason::Offline => ("它不在线", "it is offline"),
        Reason::ConnectionLost => ("断了联系", "the connection was lost"),
        Reason::DeviceRestarted => ("它中途重启", "it restarted"),
        Reason::PropertyChanged => ("它的功能变了", "it describes itself otherwise now"),
        Reason::ActorRestarted | Reason::HubStopping => ("中枢中途重启", "the hub restarted"),
        Reason::BrokerDown => ("消息通道断了", "the hub's message bus is down"),
        Reason::UnreadableReport => ("它回的话看不懂", "its report cannot be read"),
        Reason::Unknown => return None,
    };
    Some(pick(lang, zh, en))
}

/// Makes the sentences of one answer.
pub(super) struct Voice<'a> {
    pub(super) settled: &'a Settled,
    pub(super) naming: &'a Naming,
    outcome: Outcome,
    pub(super) lang: Lang,
}

impl Voice<'_> {
    fn say(&self) -> String {
        match self.outcome {
            Outcome::Converged => self.converged(evidence(self.settled), self.reported()),
            Outcome::Already => self.already(),
            Outcome::Clamped => self.clamped(),
            Outcome::Working => self.working(),
            Outcome::Partial => self.both(
                "只做了一部分，别的没有确认。".to_owned(),
                "Only part of it; the rest is not confirmed.".to_owned(),
            ),
            Outcome::SentUnverified => self.both(
                format!("不确定：{}的信号发出去了，它不会回话，做没做没法知道。", self.name()),
                format!("Not sure: the signal was sent, but {} can't answer, so I can't know.", self.object()),
            ),
            Outcome::Superseded => self.superseded(),
            Outcome::Rejected => self.rejected(),
            Outcome::Failed => self.failed(),
            Outcome::Contradicted => self.contradicted(),
            Outcome::TimedOut => self.timed_out(),
            Outcome::Interrupted => self.interrupted(),
            Outcome::DeviceCrashed => self.both(
                format!("不确定：{}中途一再重启，做没做成不知道。", self.name()),
                format!("Not sure: {} kept restarting half-way.", self.object()),
            ),
            Outcome::Cancelled => self.both(
                format!("没做成：还没开始就取消了，{}没有动。", self.name()),
                format!("Not carried out: cancelled before it began; {} has not moved.", self.object()),
            ),
            Outcome::Removed => self.both(
                format!("不确定：{}中途被移除，做没做成不知道。", self.name()),
                format!("Not sure: {} was removed half-way; it may or may not have happened.", self.object()),
            ),
        }
    }

    fn note(&self) -> Option<&'static str> {
        let (zh, en) = match self.outcome {
            Outcome::Already
                if evidence(self.settled) >= Evidence::Pin && self.settled.attribution == Attribution::Named =>
            {
                return None;
            }
            Outcome::Converged | Outcome::Already => match (evidence(self.settled), self.settled.attribution) {
                (Evidence::Sensor, Attribution::Named) => return None,
                (_, Attribution::Inferred) => {
                    ("只说到这里；也可能是别人动的。", "Claim no more than this; it may have been somebody else.")
                }
                (Evidence::Pin, Attribution::Named)
                    if self.naming.role == Role::Light && self.settled.wish == Some(Value::Bool(true)) =>
                {
                    (
                        "只能说开关合上，不要说灯亮了。",
                        "Say only that the switch has closed, not that the light is lit.",
                    )
                }
                (Evidence::Pin, Attribution::Named) => {
                    ("只说到这里：没有传感器看到结果。", "Claim no more than this: no sensor sees the effect.")
                }
                (Evidence::None | Evidence::Sent | Evidence::Received | Evidence::Firmware, Attribution::Named) => {
                    ("说明是设备自己说的。", "Say that it is the device's own word.")
                }
            },
            Outcome::Clamped => ("说出实际值。", "Say the actual value."),
            Outcome::Working => (
                "现在不能说做好了；用户再问时调 check_operation。",
                "Do not say that it is done; call check_operation when the user asks again.",
            ),
            Outcome::Partial => ("必须说出没确认的。", "Name what is not confirmed."),
            Outcome::TimedOut => (
                "不要说做了，也不要说没做；不要自动重试。",
                "Say neither that it was done nor that it was not; do not retry on your own.",
            ),
            Outcome::SentUnverified => ("不算做成。", "This does not count as done."),
            Outcome::Superseded => ("不要再抢回来，先问用户。", "Do not take it back; ask the user first."),
            Outcome::Contradicted => ("说出实际状态。", "Say the actual state."),
            Outcome::Rejected | Outcome::Failed | Outcome::Cancelled => ("不要自动重试。", "Do not retry on your own."),
            Outcome::Interrupted | Outcome::Removed | Outcome::DeviceCrashed => {
                ("不要自动重试；不可重复的动作不要再做。", "Do not retry on your own.")
            }
        };
        Some(pick(self.lang, zh, en))
    }

    fn working(&self) -> String {
        let n = self.name();
        if self.settled.reason == Some(Reason::Offline) {
            // A held wish: nothing was sent (semantics 5.5).
            return self.both(
                format!("记下了：{n}不在线，一上线就设。"),
                format!("Noted: {} is offline; it is set as soon as it is back.", self.object()),
            );
        }
        let (zh, en) = match (self.settled.stage < Stage::WaitingDeviceReport, moves(self.naming.role)) {
            (true, _) => (
                format!("还没到：{n}还没说开始"),
                format!("Not there yet: {} has not said that it began", self.object()),
            ),
            (false, true) => {
                (format!("还没到位：{n}还在动"), format!("Not there yet: {} is still moving", self.object()))
            }
            (false, false) => {
                (format!("还没到：{n}还在进行"), format!("Not there yet: {} is still at it", self.object()))
            }
        };
        match self.settled.eta {
            Some(eta) => self.both(
                format!("{zh}，大约还要{}。", span(eta, Lang::Zh)),
                format!("{en}; about {} more.", span(eta, Lang::En)),
            ),
            None => self.both(format!("{zh}，过一会儿再问。"), format!("{en}; ask again in a while.")),
        }
    }

    fn timed_out(&self) -> String {
        let n = self.name();
        let (time_zh, time_en) = (span(self.settled.elapsed, Lang::Zh), span(self.settled.elapsed, Lang::En));
        let unreadable = self.settled.reason == Some(Reason::UnreadableReport);
        let begun = self.settled.stage > Stage::WaitingDeviceAck;
        let (zh, en) = match (unreadable, begun) {
            (true, _) => (format!("{n}回的话看不懂"), format!("what {} sent cannot be read", self.object())),
            (false, true) => (
                format!("{n}收到了，{time_zh}没有下文"),
                format!("{} has the command, then nothing for {time_en}", self.object()),
            ),
            (false, false) => {
                (format!("{n}{time_zh}没有回音"), format!("no answer from {} in {time_en}", self.object()))
            }
        };
        let (state_zh, state_en) = self.either();
        self.both(
            format!("不确定：{zh}，{state_zh}不知道，麻烦看一眼。"),
            format!("Not sure: {en}. {state_en}; please look."),
        )
    }

    /// What is not known, by role.
    fn either(&self) -> (&'static str, &'static str) {
        match (&self.settled.wish, self.naming.role) {
            (Some(Value::Bool(_)), Role::Lock) => ("现在锁没锁", "It may be locked or unlocked"),
            (Some(Value::Bool(_)), role) if opens(role) => ("现在是开是关", "It may be open or closed"),
            (Some(Value::Bool(_)), _) => ("现在是开是关", "It may be on or off"),
            (Some(Value::Integer(_) | Value::Number(_)), _) => ("现在是多少", "Its value is not known"),
            (Some(Value::Text(_)), _) => ("现在是哪一种", "Its setting is not known"),
            (None, _) => ("做没做不知道", "It may or may not have happened"),
        }
    }

    fn superseded(&self) -> String {
        let n = self.name();
        match (&self.settled.wish, self.naming.role) {
            (Some(Value::Bool(wish)), role) => {
                let word = super::state_word(!wish, role);
                let zh = match (role == Role::Lock, opens(role), !wish) {
                    (true, _, true) => format!("让{n}上锁"),
                    (true, _, false) => format!("让{n}开锁"),
                    (false, _, true) => format!("把{n}打开"),
                    (false, true, false) => format!("把{n}关上"),
                    (false, false, false) => format!("把{n}关掉"),
                };
                self.both(
                    format!("没按这次的来：有人刚要求{zh}，以后来的为准。"),
                    format!("Overtaken: someone has just asked for {} to be {word}.", self.object()),
                )
            }
            (Some(Value::Integer(_) | Value::Number(_) | Value::Text(_)) | None, _) => self.both(
                format!("没按这次的来：有人刚给{n}定了别的值，以后来的为准。"),
                format!("Overtaken: someone has just asked for another value of {}.", self.object()),
            ),
        }
    }

    fn rejected(&self) -> String {
        let n = self.name();
        match (reason_words(self.settled.reason, Lang::Zh), reason_words(self.settled.reason, Lang::En)) {
            (Some(zh), Some(en)) => {
                self.both(format!("没做成：{n}拒绝了，原因是{zh}。"), format!("Refused by {}: {en}.", self.object()))
            }
            (None, _) | (_, None) => self.both(
                format!("没做成：{n}拒绝了，没说原因。"),
                format!("Refused by {}; it gave no reason.", self.object()),
            ),
        }
    }

    fn failed(&self) -> String {
        let n = self.name();
        match (reason_words(self.settled.reason, Lang::Zh), reason_words(self.settled.reason, Lang::En)) {
            (Some(zh), Some(en)) => {
                self.both(format!("没做成：{n}试过了，原因是{zh}。"), format!("It failed at {}: {en}.", self.object()))
            }
            (None, _) | (_, None) => self.both(
                format!("没做成：{n}试过了，没说原因。"),
                format!("It failed at {}, which gave no reason.", self.object()),
            ),
        }
    }

    fn contradicted(&self) -> String {
        let n = self.name();
        let found = |lang| {
            let value = self.settled.found.as_ref().map(|f| &f.value)?;
            is(value, self.naming.role, self.unit(), lang)
        };
        let now_zh = found(Lang::Zh);
        let now_en = found(Lang::En);
        if self.settled.reason == Some(Reason::DidNotHold) {
            let tail_zh = now_zh.map(|v| format!("，现在是{v}")).unwrap_or_default();
            let tail_en = now_en.map(|v| format!("; it is {v} now")).unwrap_or_default();
            return self.both(
                format!("没稳住：{n}到过一下，又变回去了{tail_zh}。"),
                format!("It did not hold: {} got there and went back{tail_en}.", self.object()),
            );
        }
        if self.settled.stage == Stage::WaitingSensor {
            return self.both(
                format!("没做成：{n}自己说做了，可是传感器没看到。"),
                format!("It failed: {} says that it did it, but the sensor does not agree.", self.object()),
            );
        }
        match (now_zh, now_en) {
            (Some(zh), Some(en)) => self.both(
                format!("没做成：{n}执行后读回来还是{zh}。"),
                format!("It failed: after the command {} still reads {en}.", self.object()),
            ),
            (None, _) | (_, None) => self.both(
                format!("没做成：{n}执行后读回来不一样。"),
                format!("It failed: after the command {} reads otherwise.", self.object()),
            ),
        }
    }

    fn interrupted(&self) -> String {
        let n = self.name();
        let (zh, en) = match self.settled.reason {
            Some(Reason::ActorRestarted | Reason::HubStopping) => {
                (format!("中枢中途重启，{n}"), "the hub restarted half-way".to_owned())
            }
            Some(Reason::ConnectionLost) => {
                (format!("{n}中途断了联系，"), format!("the connection to {} was lost half-way", self.object()))
            }
            Some(Reason::DeviceRestarted) => {
                (format!("{n}中途重启了，"), format!("{} restarted half-way", self.object()))
            }
            Some(Reason::PropertyChanged) => {
                (format!("{n}的功能中途变了，"), format!("{} came back as something else half-way", self.object()))
            }
            Some(
                Reason::Timeout
                | Reason::Stuck
                | Reason::OutOfRange
                | Reason::Busy
                | Reason::Interrupted
                | Reason::Expired
                | Reason::Superseded
                | Reason::Withdrawn
                | Reason::Unsupported
                | Reason::Malformed
                | Reason::Power
                | Reason::ReadBackDiffers
                | Reason::DidNotHold
                | Reason::SensorDiffers
                | Reason::Offline
                | Reason::BrokerDown
                | Reason::UnreadableReport
                | Reason::Unknown,
            )
            | None => (format!("{n}中途停了，"), format!("{} stopped half-way", self.object())),
        };
        self.both(format!("不确定：{zh}做没做成不知道。"), format!("Not sure: {en}; it may or may not have happened."))
    }

    pub(super) fn both(&self, zh: String, en: String) -> String {
        match self.lang {
            Lang::Zh => zh,
            Lang::En => en,
        }
    }

    pub(super) fn name(&self) -> &str {
        &self.naming.spoken
    }

    pub(super) fn subject(&self) -> String {
        the(&self.naming.spoken, true)
    }

    pub(super) fn object(&self) -> String {
        the(&self.naming.spoken, false)
    }

    pub(super) fn unit(&self) -> Option<&str> {
        self.naming.unit.as_deref()
    }
}
