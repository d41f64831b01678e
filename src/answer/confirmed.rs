//! The sentences of what was confirmed, by evidence and role; and the two corrections that may follow later.

use super::{
    operation::Voice,
    speech::{amount, is, opens},
    state_word,
};
use crate::{
    names::Lang,
    property::{Evidence, Role, Value},
};

fn is_number(value: Option<&Value>) -> bool {
    matches!(value, Some(Value::Integer(_) | Value::Number(_)))
}

impl Voice<'_> {
    /// What was confirmed, and not a word more: `的开关合上了`, `'s relay has closed`.
    pub(super) fn converged(&self, evidence: Evidence, value: Option<&Value>) -> String {
        if self.naming.is_action {
            return self.carried_out(evidence);
        }
        let (n, the) = (self.name(), self.subject());
        let role = self.naming.role;
        let Some(&Value::Bool(on)) = value else { return self.converged_amount(evidence, value) };
        let word = state_word(on, role);
        let (zh, en) = match (evidence, role) {
            (Evidence::Sensor, Role::Light) => (
                format!("{n}{}了，传感器也看到了。", if on { "亮" } else { "灭" }),
                format!("{the} is {}; a sensor sees it.", if on { "lit" } else { "dark" }),
            ),
            (Evidence::Sensor, Role::Lock) => (
                format!("{n}{}了，传感器也看到了。", if on { "上锁" } else { "开锁" }),
                format!("{the} is {word}; a sensor sees it."),
            ),
            (Evidence::Sensor, _) => (
                format!("{n}{}了，传感器也看到了。", if on { "开" } else { "关" }),
                format!("{the} is {word}; a sensor sees it."),
            ),
            (Evidence::Pin, Role::Lock) => (
                format!("{n}的触点读回来是{}。", if on { "上锁的" } else { "开锁的" }),
                format!("{the}'s contact reads {word}."),
            ),
            (Evidence::Pin, role) if opens(role) => (
                format!("{n}的触点读回来是{}。", if on { "开着的" } else { "关着的" }),
                format!("{the}'s contact reads {word}."),
            ),
            (Evidence::Pin, role) => {
                let (part_zh, part_en) =
                    if role == Role::Socket { ("继电器", "relay") } else { ("开关", "switch") };
                (
                    format!("{n}的{part_zh}{}了。", if on { "合上" } else { "断开" }),
                    format!("{the}'s {part_en} has {}.", if on { "closed" } else { "opened" }),
                )
            }
            (Evidence::None | Evidence::Sent | Evidence::Received | Evidence::Firmware, role) => {
                let zh = match (role == Role::Lock, opens(role), on) {
                    (true, _, true) => "上锁了",
                    (true, _, false) => "开锁了",
                    (false, true, true) => "开了",
                    (false, true, false) => "关了",
                    (false, false, true) => "接通了",
                    (false, false, false) => "断开了",
                };
                (
                    format!("{n}的控制板说{zh}，没有读回检查。"),
                    format!("{the}'s board says that it is {word}; nothing was read back."),
                )
            }
        };
        self.both(zh, en)
    }

    fn converged_amount(&self, evidence: Evidence, value: Option<&Value>) -> String {
        let (full, full_en) = (self.full(), self.full_subject());
        let zh = value.and_then(|v| amount(v, self.unit(), Lang::Zh)).unwrap_or_else(|| "要的那一种".to_owned());
        let en =
            value.and_then(|v| amount(v, self.unit(), Lang::En)).unwrap_or_else(|| "what was asked for".to_owned());
        // A relative wish that met the end of the range (semantics 4.6).
        let (end_zh, end_en) =
            if self.settled.limited && is_number(value) { ("，到头了", ", its limit") } else { ("", "") };
        let (got, set, at) =
            if is_number(value) { ("到了", "设到了", "is at") } else { ("成了", "换成了", "is") };
        match evidence {
            Evidence::Sensor => self.both(
                format!("{full}{got}{zh}{end_zh}，传感器也看到了。"),
                format!("{full_en} {at} {en}{end_en}; a sensor sees it."),
            ),
            Evidence::Pin => {
                self.both(format!("{full}读回来是{zh}{end_zh}。"), format!("{full_en} reads back {en}{end_en}."))
            }
            Evidence::None | Evidence::Sent | Evidence::Received | Evidence::Firmware => {
                let what = self.naming.what.as_deref().unwrap_or_default();
                let what_en = self.naming.what.as_deref().unwrap_or("it");
                self.both(
                    format!("{}的控制板说{what}{set}{zh}{end_zh}，没有读回检查。", self.name()),
                    format!(
                        "{}'s board says that {what_en} is set to {en}{end_en}; nothing was read back.",
                        self.subject()
                    ),
                )
            }
        }
    }

    /// An action that the device says it has completed.
    fn carried_out(&self, evidence: Evidence) -> String {
        let (n, the) = (self.name(), self.subject());
        let what = self.naming.what.as_deref();
        let (zh, en) = (what.unwrap_or("这个动作"), what.unwrap_or("it"));
        match evidence {
            Evidence::Sensor => self.both(
                format!("{n}的{zh}做了，传感器也看到了。"),
                format!("{the} has carried out: {en}; a sensor sees it."),
            ),
            Evidence::Pin => self.both(
                format!("{n}的{zh}做了，电平读回来对得上。"),
                format!("{the} has carried out: {en}; its level was read back."),
            ),
            Evidence::None | Evidence::Sent | Evidence::Received | Evidence::Firmware => self.both(
                format!("{n}的控制板说{zh}做了，没有读回检查。"),
                format!("{the}'s board says that it has carried out: {en}; nothing was read back."),
            ),
        }
    }

    /// What the device reported: a number may lie within its tolerance of the wish, and it is the number that is said.
    pub(super) fn reported(&self) -> Option<&Value> {
        self.settled.found.as_ref().map(|found| &found.value).or(self.settled.wish.as_ref())
    }

    pub(super) fn already(&self) -> String {
        let wish = |lang| self.settled.wish.as_ref().and_then(|wish| is(wish, self.naming.role, self.unit(), lang));
        let zh = wish(Lang::Zh).unwrap_or_else(|| "要的那一种".to_owned());
        let en = wish(Lang::En).unwrap_or_else(|| "as was asked".to_owned());
        self.both(
            format!("{}本来就是{zh}，不用再动。", self.full()),
            format!("{} was {en} already; nothing was sent.", self.full_subject()),
        )
    }

    pub(super) fn clamped(&self) -> String {
        let found = self.settled.found.as_ref().map(|f| &f.value);
        let number = |v: &Value| match v {
            Value::Integer(v) => Some(f64::from(*v)),
            Value::Number(v) => Some(*v),
            Value::Bool(_) | Value::Text(_) => None,
        };
        let lower = found
            .and_then(number)
            .zip(self.settled.wish.as_ref().and_then(number))
            .is_some_and(|(found, wish)| found > wish);
        let value = |lang| found.and_then(|v| amount(v, self.unit(), lang));
        match (value(Lang::Zh), value(Lang::En)) {
            (Some(zh), Some(en)) => self.both(
                format!("{}最{}只能到{zh}，现在设的是{zh}。", self.full(), if lower { "低" } else { "高" }),
                format!(
                    "{} goes no {} than {en}; it is set to {en}.",
                    self.full_subject(),
                    if lower { "lower" } else { "higher" }
                ),
            ),
            (None, _) | (_, None) => self.both(
                format!("{}只能设成最近的一种，已按那种设好。", self.name()),
                format!("{} was set to the nearest that it allows.", self.subject()),
            ),
        }
    }

    pub(super) fn late_success(&self) -> String {
        let found = self.settled.found.as_ref();
        let evidence = found.map_or(Evidence::Firmware, |f| f.evidence);
        let sentence = self.converged(evidence, self.reported());
        match self.lang {
            Lang::Zh => format!("更正：刚才没确认的，后来确认了：{sentence}"),
            Lang::En => format!("Correction: it is confirmed after all. {sentence}"),
        }
    }

    pub(super) fn reverted(&self) -> String {
        self.both(
            format!("更正：{}刚才确认过，可是后来自己又变回去了。", self.name()),
            format!("Correction: {} was confirmed, but went back by itself later.", self.object()),
        )
    }
}
