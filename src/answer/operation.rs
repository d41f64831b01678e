//! The answer to a call that began: one sentence for each outcome, by evidence, role and reason.

use serde_json::Map;

use super::{
    Facts, MeasuredFacts, Naming, Next, Rendered, ResultWord, StagesMs, json_value, millis, skipped,
    speech::the,
    unless_sensitive,
    verdict::{is_success, of_outcome},
};
use crate::{
    names::Lang,
    property::{Evidence, Role, Value},
    twin::words::{Attribution, Measured, Outcome, Reading, Reason, Settled},
};

/// Renders how an operation ended, or how far it is.
pub fn operation(settled: &Settled, naming: &Naming, lang: Lang) -> Rendered {
    if naming.sensitive {
        return rendered(&without_values(settled), naming, lang);
    }
    rendered(settled, naming, lang)
}

/// The same operation without the values of what nobody may read: that it is as was wished is told, what it is is not
/// (semantics 7.3).
fn without_values(settled: &Settled) -> Settled {
    let hidden = |value: &Option<Value>| value.as_ref().map(|value| unless_sensitive(value, true));
    Settled {
        wish: hidden(&settled.wish),
        superseded_by: hidden(&settled.superseded_by),
        found: settled.found.as_ref().map(|f| Reading { value: unless_sensitive(&f.value, true), ..f.clone() }),
        measured: settled.measured.as_ref().map(|m| Measured { value: hidden(&m.value), ..m.clone() }),
        // Whether it met the end of its range would tell where it is.
        limited: false,
        ..settled.clone()
    }
}

fn rendered(settled: &Settled, naming: &Naming, lang: Lang) -> Rendered {
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
        (false, false) if settled.kept => (voice.kept(), Some(voice.kept_note())),
        (false, false) => (voice.say(), voice.note()),
    };
    let joined = settled.joined.as_ref().map(|_| {
        pick(lang, "别人已经要求了同样的，这是同一次操作。", "Somebody else wished the same: it is one operation.")
    });
    let note = match (note, joined) {
        (Some(note), Some(joined)) => Some(format!("{note}{}{joined}", pick(lang, "", " "))),
        (note, joined) => note.or(joined).map(str::to_owned),
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
        not_checked: success.then(|| not_checked(evidence, naming, lang)).flatten().map(str::to_owned),
        attribution: success.then(|| settled.attribution.as_str()),
        late_success: settled.late_success.then_some(true),
        reverted: settled.reverted.then_some(true.into()),
        may_move_late: if settled.kept && result != ResultWord::Confirmed {
            Some(true)
        } else {
            may_move_late(voice.outcome, naming.level)
        },
        measured: settled.measured.as_ref().map(MeasuredFacts::of),
        joined: settled.joined.as_ref().map(ToString::to_string),
        superseded_by: settled.superseded_by.as_ref().map(|v| json_value(v, naming.role)),
        limited: settled.limited.then_some(true),
        recorded: (!settled.recorded).then_some(false),
        operation: Some(settled.op.to_string()),
        eta_s: settled.eta.map(|e| e.as_secs()),
        elapsed_ms: Some(millis(settled.elapsed)),
        stages_ms: Some(StagesMs::new(&settled.stages)),
        skipped: skipped(&settled.stages, settled.stage),
        ..Facts::default()
    };
    Rendered::new(result, next, say, note, facts, lang)
}

/// Whether a device of which nobody knows what it did may still begin: a board of level 1 counts no lateness, so of it that
/// is not excluded; one of level 2 or 3 begins nothing after its time limit. `None` where it is known, or nothing is
/// promised of the device.
fn may_move_late(outcome: Outcome, level: u8) -> Option<bool> {
    let (result, _) = of_outcome(outcome);
    (level > 0 && result == ResultWord::Unconfirmed).then_some(level == 1)
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
fn not_checked(evidence: Evidence, naming: &Naming, lang: Lang) -> Option<&'static str> {
    match evidence {
        Evidence::Pin if naming.is_action => {
            Some(pick(lang, "动作有没有效果，没有传感器", "whether it had its effect: no sensor sees it"))
        }
        Evidence::Sensor => None,
        Evidence::Pin => Some(match naming.role {
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
                format!("Not sure: {} kept restarting half-way; it may or may not have happened.", self.object()),
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
            Outcome::TimedOut if self.naming.level == 1 => (
                "不要说做了，也不要说没做；它可能晚一点才动；不要自动重试。",
                "Say neither that it was done nor that it was not; it may still move late; do not retry on your own.",
            ),
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

    /// A set point stays wished for, and may be reached after this answer.
    fn kept(&self) -> String {
        let say = self.say();
        self.both(format!("{say}还会继续试。"), format!("{say} The hub keeps trying."))
    }

    fn kept_note(&self) -> &'static str {
        pick(
            self.lang,
            "中枢会继续试，晚一点可能会动：要说出来；不要自动重试。",
            "The hub keeps trying, so it may move later: say so; do not retry on your own.",
        )
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

    /// The thing with what of it is meant, in Chinese.
    pub(super) fn full(&self) -> String {
        self.naming.full(Lang::Zh)
    }

    /// The same as the subject of an English sentence.
    pub(super) fn full_subject(&self) -> String {
        the(&self.naming.full(Lang::En), true)
    }

    /// The same inside an English sentence.
    pub(super) fn full_object(&self) -> String {
        the(&self.naming.full(Lang::En), false)
    }

    pub(super) fn unit(&self) -> Option<&str> {
        self.naming.unit.as_deref()
    }
}
