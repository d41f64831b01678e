//! The sentences of what was not confirmed: the verdict first, then what is known.

use super::{
    Naming,
    operation::Voice,
    reasons::reason_words,
    speech::{amount, is, moves, opens, span, the},
};
use crate::{
    names::Lang,
    property::{Role, Value},
    twin::words::{Reason, Stage},
};

impl Voice<'_> {
    pub(super) fn working(&self) -> String {
        let n = self.name();
        if self.settled.reason == Some(Reason::Offline) {
            return self.held_offline();
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

    /// A held wish of a device that is away: nothing was sent, and it will be (semantics 5.5).
    fn held_offline(&self) -> String {
        let said = |value: Option<&Value>, lang| value.and_then(|v| is(v, self.naming.role, self.unit(), lang));
        let (wish, found) = (self.settled.wish.as_ref(), self.settled.found.as_ref().map(|f| &f.value));
        let wish_zh = said(wish, Lang::Zh).unwrap_or_else(|| "要的那样".to_owned());
        let wish_en = said(wish, Lang::En).unwrap_or_else(|| "what was asked for".to_owned());
        let found_zh = said(found, Lang::Zh).map(|v| format!("，上次读到{v}")).unwrap_or_default();
        let found_en = said(found, Lang::En).map(|v| format!("; it last read {v}")).unwrap_or_default();
        self.both(
            format!("还没到：{}不在线，上线后会继续设到{wish_zh}{found_zh}。", self.full()),
            format!("Not there yet: {} is offline; it keeps trying for {wish_en}{found_en}.", self.full_object()),
        )
    }

    pub(super) fn timed_out(&self) -> String {
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

    /// What is not known: by role, and by what of the thing is meant.
    fn either(&self) -> (String, String) {
        let what = self.naming.what.as_deref();
        let zh = what.unwrap_or_default();
        let (zh, en) = match (&self.settled.wish, self.naming.role) {
            (_, _) if self.naming.is_action => (format!("{zh}做没做"), "It may or may not have happened".to_owned()),
            (Some(Value::Bool(_)), Role::Lock) => ("现在锁没锁".to_owned(), "It may be locked or unlocked".to_owned()),
            (Some(Value::Bool(_)), role) if opens(role) => {
                ("现在是开是关".to_owned(), "It may be open or closed".to_owned())
            }
            (Some(Value::Bool(_)), _) => ("现在是开是关".to_owned(), "It may be on or off".to_owned()),
            (Some(Value::Integer(_) | Value::Number(_)) | None, _) => {
                (format!("{zh}现在是多少"), format!("Its {} is not known", what.unwrap_or("value")))
            }
            (Some(Value::Text(_)), _) => {
                (format!("{zh}现在是哪一种"), format!("Its {} is not known", what.unwrap_or("setting")))
            }
        };
        (zh, en)
    }

    pub(super) fn superseded(&self) -> String {
        let newer = self.settled.superseded_by.as_ref();
        let (zh, en) = match (newer, &self.settled.wish) {
            (Some(Value::Bool(newer)), _) => asked_state(self.naming, *newer),
            (None, Some(Value::Bool(older))) => asked_state(self.naming, !older),
            (Some(newer), _) => {
                let zh = amount(newer, self.unit(), Lang::Zh).unwrap_or_else(|| "别的值".to_owned());
                let en = amount(newer, self.unit(), Lang::En).unwrap_or_else(|| "another value".to_owned());
                (format!("把{}设成{zh}", self.full()), format!("{} to be {en}", self.full_object()))
            }
            (None, _) => (format!("把{}改成别的", self.full()), format!("another value of {}", self.full_object())),
        };
        self.both(
            format!("没按这次的来：有人刚要求{zh}，以后来的为准。"),
            format!("Overtaken: someone has just asked for {en}."),
        )
    }
}

/// What is asked for of a thing that is one way or the other: `让大门锁开锁`, `the front door lock to be unlocked`.
pub(super) fn asked_state(naming: &Naming, wanted: bool) -> (String, String) {
    let (n, role) = (&naming.spoken, naming.role);
    let zh = match (role == Role::Lock, opens(role), wanted) {
        (true, _, true) => format!("让{n}上锁"),
        (true, _, false) => format!("让{n}开锁"),
        (false, _, true) => format!("把{n}打开"),
        (false, true, false) => format!("把{n}关上"),
        (false, false, false) => format!("把{n}关掉"),
    };
    (zh, format!("{} to be {}", the(n, false), super::state_word(wanted, role)))
}

impl Voice<'_> {
    pub(super) fn rejected(&self) -> String {
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

    pub(super) fn failed(&self) -> String {
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

    pub(super) fn contradicted(&self) -> String {
        let n = self.name();
        let found = |lang| {
            let value = self.settled.found.as_ref().map(|f| &f.value)?;
            is(value, self.naming.role, self.unit(), lang)
        };
        let now_zh = found(Lang::Zh);
        let now_en = found(Lang::En);
        if self.settled.reason == Some(Reason::DidNotHold) {
            let tail_zh = now_zh.map(|v| format!("，现在是{v}")).unwrap_or_default();
            let tail_en = now_en.map(|v| format!("; it reads {v} now")).unwrap_or_default();
            return self.both(
                format!("没稳住：{n}到过一下，又变回去了{tail_zh}。"),
                format!("It did not hold: {} got there and went back{tail_en}.", self.object()),
            );
        }
        if self.settled.stage == Stage::WaitingSensor {
            let measured = self.settled.measured.as_ref().and_then(|m| m.value.as_ref());
            let said = |lang| measured.and_then(|v| is(v, Role::Sensor, None, lang));
            return match (said(Lang::Zh), said(Lang::En)) {
                (Some(zh), Some(en)) => self.both(
                    format!("没做成：{n}自己说做了，可是传感器读到的是{zh}。"),
                    format!("It failed: {} says that it did it, but the sensor reads {en}.", self.object()),
                ),
                (None, _) | (_, None) => self.both(
                    format!("没做成：{n}自己说做了，可是传感器没看到。"),
                    format!("It failed: {} says that it did it, but the sensor does not agree.", self.object()),
                ),
            };
        }
        match (now_zh, now_en) {
            (Some(zh), Some(en)) => self.both(
                format!("没做成：{}执行后读回来还是{zh}。", self.full()),
                format!("It failed: after the command {} still reads {en}.", self.full_object()),
            ),
            (None, _) | (_, None) => self.both(
                format!("没做成：{n}执行后读回来不一样。"),
                format!("It failed: after the command {} reads otherwise.", self.object()),
            ),
        }
    }

    pub(super) fn interrupted(&self) -> String {
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
}
