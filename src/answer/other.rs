//! The answers that move nothing: a state, a list, a ping, an operation that is not known, a hub that failed.
//! They carry no `success`: nothing was to be done.

use serde::Serialize;
use serde_json::{Map, Value as Json, json};

use super::{
    AmendedFacts, Facts, HeldFacts, Naming, Next, Rendered, ResultWord, json_value,
    operation::pick,
    speech::{ago, amount, count_en, count_zh, is, names, the},
    terms, unless_sensitive,
};
use crate::{
    names::Lang,
    property::{Description, Evidence, Failsafe, Kind, Property, Role},
    twin::words::{HeldState, HeldWish, Presence, Reading, RefusalWord, Settled, Stage, StateReport, Trust},
};

/// How many readings a spoken state holds; more would be a lecture. All are in `device_state`.
const SPOKEN_READINGS_MAX: usize = 2;

/// How many rows a list carries; more are counted ("ask again with a room").
pub const LIST_ROWS_MAX: usize = 8;

/// Renders the state of one device. `naming.role` is that of its main property.
pub fn state(report: &StateReport, description: Option<&Description>, naming: &Naming, lang: Lang) -> Rendered {
    let report = &without_sensitive(report, description);
    let role_of = |name: &str| description.and_then(|d| d.property(name)).map_or(Role::Other, |p| p.role);
    let mains = spoken_readings(report, description);
    let trust = mains.iter().map(|(_, r)| r.trust).max().unwrap_or(Trust::Unknown);
    let age = mains.iter().map(|(_, r)| r.age).max();
    let evidence = mains.iter().map(|(_, r)| r.evidence).min().unwrap_or(Evidence::None);
    let (result, next) = match trust {
        Trust::Now => (ResultWord::Confirmed, Next::None),
        Trust::Old | Trust::Unknown => (ResultWord::Unconfirmed, Next::AskUserToLook),
    };
    let facts = Facts {
        device: Some(naming.device.clone()),
        device_state: Some(
            report
                .readings
                .iter()
                .map(|(p, r)| (p.to_string(), json_value(&r.value, role_of(p))))
                .collect::<Map<_, _>>(),
        ),
        trust: Some(trust.as_str()),
        age_s: age.map(|a| a.as_secs()),
        confirmed_by: Some(evidence.as_str()),
        online: Some(report.presence != Presence::Offline),
        last_heard_s: report.last_heard.map(|t| t.as_secs()),
        moving: (!report.moving.is_empty()).then(|| report.moving.iter().map(ToString::to_string).collect()),
        reverted: (!report.reverted.is_empty())
            .then(|| report.reverted.iter().map(|p| p.to_string().into()).collect::<Vec<serde_json::Value>>().into()),
        held: (!report.held.is_empty()).then(|| report.held.iter().map(|h| held(h, role_of(&h.property))).collect()),
        amended: (!report.amended.is_empty()).then(|| report.amended.iter().map(amended).collect()),
        failsafe: failsafe(description, &role_of),
        ..Facts::default()
    };
    let waits = report.held.iter().find(|h| h.state != HeldState::Met);
    let note = match (report.reverted.is_empty(), report.moving.is_empty(), trust) {
        (true, true, _) if waits.is_some() => waits.map(|h| held_note(h.state, lang)),
        (false, _, _) => Some(pick(
            lang,
            "它确认过以后自己又变回去了，要说出来。",
            "It was confirmed and went back by itself: say so.",
        )),
        (true, false, _) => Some(pick(
            lang,
            "正有一个操作在进行，状态可能马上会变。",
            "An operation is going on; the state may change at once.",
        )),
        (true, true, Trust::Now) if !report.amended.is_empty() => Some(pick(
            lang,
            "amended 里的操作，以前的回答不再对了，要说出来。",
            "What was answered of the operations in amended no longer holds: say so.",
        )),
        (true, true, Trust::Now) => None,
        (true, true, Trust::Old) => Some(pick(lang, "不要说“现在是”。", "Do not say that it is so now.")),
        (true, true, Trust::Unknown) => Some(pick(lang, "要说不知道。", "Say that it is not known.")),
    };
    let say = state_sentence(report, &mains, age, trust, naming, lang);
    Rendered::new(result, next, say, note.map(str::to_owned), facts, lang)
}

/// A report without the values of what nobody may read (semantics 7.3).
fn without_sensitive(report: &StateReport, description: Option<&Description>) -> StateReport {
    let mut report = report.clone();
    let hidden = |name: &str| description.and_then(|d| d.property(name)).is_some_and(|p| p.terms.sensitive);
    for (_, reading) in report.readings.iter_mut().filter(|(name, _)| hidden(name)) {
        reading.value = unless_sensitive(&reading.value, true);
    }
    for wish in report.held.iter_mut().filter(|wish| hidden(&wish.property)) {
        wish.value = unless_sensitive(&wish.value, true);
    }
    report
}

/// What the device does by itself when the hub has been gone (semantics 6.4).
fn failsafe(description: Option<&Description>, role_of: &impl Fn(&str) -> Role) -> Option<Json> {
    let declared = description.iter().flat_map(|d| &d.properties).filter_map(|p| Some((p, p.terms.failsafe.as_ref()?)));
    let one = |(p, failsafe): (&Property, &Failsafe)| {
        let to = json_value(&unless_sensitive(&failsafe.value, p.terms.sensitive), role_of(&p.name));
        (p.name.to_string(), json!({"to": to, "after_s": failsafe.after_ms / 1_000}))
    };
    let all: Map<String, Json> = declared.map(one).collect();
    (!all.is_empty()).then(|| all.into())
}

fn held(wish: &HeldWish, role: Role) -> HeldFacts {
    HeldFacts {
        property: wish.property.to_string(),
        value: json_value(&wish.value, role),
        state: wish.state.as_str(),
        reason: wish.reason.map(crate::twin::words::Reason::as_str),
        valid_for_s: wish.valid_for.map(|t| t.as_secs()),
    }
}

fn amended(settled: &Settled) -> AmendedFacts {
    AmendedFacts {
        property: settled.property.to_string(),
        operation: settled.op.to_string(),
        outcome: settled.outcome.as_str(),
        late_success: settled.late_success,
        reverted: settled.reverted,
    }
}

/// What a model should say of a wish that is kept and not met (semantics 6.2).
fn held_note(state: HeldState, lang: Lang) -> &'static str {
    match state {
        HeldState::Met => pick(lang, "已经是要的样子。", "It is as was wished."),
        HeldState::Pursued => pick(
            lang,
            "held 里还有没达到的要求，中枢会继续试，要说出来。",
            "A wish in held is not met yet; the hub keeps trying: say so.",
        ),
        HeldState::Offline => pick(
            lang,
            "held 里的要求等它上线后再设，要说出来。",
            "A wish in held waits until it is back online: say so.",
        ),
        HeldState::LocalOverride => pick(
            lang,
            "有人在设备上改过，按那个算，不要改回去。",
            "Somebody at the device has changed it, and that counts; do not change it back.",
        ),
        HeldState::Blocked => pick(
            lang,
            "held 里的要求这个设备不再支持，没有发出。",
            "The device does not take the wish in held any more; it is not sent.",
        ),
    }
}

/// The readings that a sentence names: the first settable bool, else the first bool, then numbers and words.
fn spoken_readings<'a>(
    report: &'a StateReport,
    description: Option<&'a Description>,
) -> Vec<(Option<&'a Property>, &'a Reading)> {
    let mut found: Vec<(u8, Option<&Property>, &Reading)> = report
        .readings
        .iter()
        .map(|(name, reading)| {
            let property = description.and_then(|d| d.property(name));
            let rank = match property.map(|p| (p.kind, p.settable)) {
                Some((Kind::Bool, true)) => 0,
                Some((Kind::Bool, false)) => 1,
                Some((Kind::Integer | Kind::Number, _)) => 2,
                Some((Kind::Enum | Kind::Text | Kind::Colour, _)) | None => 3,
            };
            (rank, property, reading)
        })
        .collect();
    found.sort_by_key(|(rank, _, _)| *rank);
    found.into_iter().take(SPOKEN_READINGS_MAX).map(|(_, p, r)| (p, r)).collect()
}

fn state_sentence(
    report: &StateReport,
    readings: &[(Option<&Property>, &Reading)],
    age: Option<std::time::Duration>,
    trust: Trust,
    naming: &Naming,
    lang: Lang,
) -> String {
    let several = readings.len() > 1;
    let values: Vec<String> = readings
        .iter()
        .filter_map(|(p, r)| {
            let said = is(&r.value, p.map_or(Role::Other, |p| p.role), p.and_then(|p| p.unit.as_deref()), lang)
                .or_else(|| amount(&r.value, None, lang))?;
            // Which of several numbers it is; what is on or off is the thing itself.
            let what = p.filter(|p| several && p.kind != Kind::Bool).and_then(|p| terms::property(&p.name, lang));
            Some(match (what, lang) {
                (None, _) => said,
                (Some(what), Lang::Zh) => format!("{what}{said}"),
                (Some(what), Lang::En) => format!("{what} {said}"),
            })
        })
        .collect();
    let value = values.join(pick(lang, "、", ", "));
    let n = &naming.spoken;
    let offline = report.presence == Presence::Offline;
    let when = ago(age.unwrap_or_default(), lang);
    match (trust, value.is_empty(), lang) {
        (Trust::Now, true, Lang::Zh) => format!("{n}刚刚回了话，它报的没法念出来。"),
        (Trust::Now, true, Lang::En) => format!("{} has just answered; its state cannot be read out.", the(n, true)),
        (Trust::Now, false, Lang::Zh) if report.asked_now => format!("{n}现在是{value}，刚刚问过它。"),
        (Trust::Now, false, Lang::En) if report.asked_now => {
            format!("{} is {value}; I have just asked it.", the(n, true))
        }
        (Trust::Now, false, Lang::Zh) => format!("{n}现在是{value}，{when}报的。"),
        (Trust::Now, false, Lang::En) => format!("{} is {value}; it said so {when}.", the(n, true)),
        (Trust::Old, true, Lang::Zh) => format!("不确定现在的情况，{n}上次回话是{when}。"),
        (Trust::Old, true, Lang::En) => format!("Not sure about now; {} last reported {when}.", the(n, false)),
        (Trust::Old, false, Lang::Zh) if offline => format!("不确定现在的情况，{n}不在线，{when}看到的是{value}。"),
        (Trust::Old, false, Lang::En) if offline => {
            format!("Not sure about now: {} is offline; {when} it was {value}.", the(n, false))
        }
        (Trust::Old, false, Lang::Zh) => format!("不确定现在的情况，{when}看到{n}是{value}。"),
        (Trust::Old, false, Lang::En) => format!("Not sure about now; {when} {} was {value}.", the(n, false)),
        (Trust::Unknown, _, Lang::Zh) if offline => format!("不知道：{n}不在线，还没报过状态。"),
        (Trust::Unknown, _, Lang::En) if offline => {
            format!("Not known: {} is offline and has never reported its state.", the(n, false))
        }
        (Trust::Unknown, _, Lang::Zh) => format!("不知道：{n}还没报过状态。"),
        (Trust::Unknown, _, Lang::En) => format!("Not known: {} has never reported its state.", the(n, false)),
    }
}

/// One row of a list.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// The display name, to be copied into other calls.
    pub device: String,
    /// The room, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub room: Option<String>,
    /// The last known state.
    pub state: Map<String, serde_json::Value>,
    /// How far the state may be trusted.
    pub trust: &'static str,
    /// Whether the device can be reached.
    pub online: bool,
    /// The tools' word for `true`/`false` needs no explanation; what this device is: `light`, `lock` ...
    pub role: &'static str,
    /// What the device promises, 1 to 3; absent where nothing is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub level: Option<u8>,
    /// What is said of it; not shown.
    #[serde(skip)]
    pub spoken: String,
}

impl Row {
    /// A row from what is known of a device. `report` is absent where its state could not be asked for.
    pub fn new(
        naming: &Naming,
        room: Option<&str>,
        online: bool,
        report: Option<&StateReport>,
        description: Option<&Description>,
    ) -> Self {
        let role_of = |name: &str| description.and_then(|d| d.property(name)).map_or(Role::Other, |p| p.role);
        let report = report.map(|report| without_sensitive(report, description));
        let readings = report.as_ref().map(|r| r.readings.as_slice()).unwrap_or_default();
        Self {
            device: naming.device.clone(),
            room: room.map(str::to_owned),
            state: readings.iter().map(|(p, r)| (p.to_string(), json_value(&r.value, role_of(p)))).collect(),
            trust: readings.iter().map(|(_, r)| r.trust).max().unwrap_or(Trust::Unknown).as_str(),
            online,
            role: role_word(naming.role),
            level: Some(naming.level).filter(|level| *level > 0),
            spoken: naming.spoken.clone(),
        }
    }
}

pub(super) fn role_word(role: Role) -> &'static str {
    match role {
        Role::Light => "light",
        Role::Socket => "socket",
        Role::Lock => "lock",
        Role::Door => "door",
        Role::Blind => "blind",
        Role::Valve => "valve",
        Role::Heater => "heater",
        Role::Fan => "fan",
        Role::Pump => "pump",
        Role::Sensor => "sensor",
        Role::Other => "other",
    }
}

/// Renders a list of devices; at most [`LIST_ROWS_MAX`] rows, `more` says how many were left out. `any` is whether the
/// home has a device at all.
pub fn list(rows: Vec<Row>, more: usize, any: bool, lang: Lang) -> Rendered {
    let spoken: Vec<String> = rows.iter().map(|r| r.spoken.clone()).collect();
    let total = (rows.len() + more) as u64;
    let say = match (rows.is_empty(), more, lang) {
        (true, _, Lang::Zh) if any => "没有找到这样的设备。".to_owned(),
        (true, _, Lang::En) if any => "No such device was found.".to_owned(),
        (true, _, Lang::Zh) => "家里还没有设备。".to_owned(),
        (true, _, Lang::En) => "There are no devices yet.".to_owned(),
        (false, 0, Lang::Zh) => format!("有{}个设备：{}。", count_zh(total), names(&spoken, lang)),
        (false, 0, Lang::En) => {
            format!(
                "{} device{}: {}.",
                capital(&count_en(total)),
                if total == 1 { "" } else { "s" },
                names(&spoken, lang)
            )
        }
        (false, more, Lang::Zh) => format!(
            "有{}个设备，先说{}个，还有{}个，请带房间再查。",
            count_zh(total),
            count_zh(rows.len() as u64),
            count_zh(more as u64)
        ),
        (false, more, Lang::En) => format!(
            "There are {} devices; here are {}, and {} more: ask again with a room.",
            count_en(total),
            count_en(rows.len() as u64),
            count_en(more as u64)
        ),
    };
    let facts = Facts { devices: Some(rows), more: (more > 0).then_some(more), ..Facts::default() };
    Rendered::new(ResultWord::Confirmed, Next::None, say, None, facts, lang)
}

/// Renders the answer to a ping: the way to the hub works, and nothing else is said.
pub fn pong(hub: &str, lang: Lang) -> Rendered {
    let say = pick(lang, "通的，中枢在答话。", "The hub answers.").to_owned();
    let note = pick(lang, "不说明任何设备在线。", "This says nothing about any device.").to_owned();
    let facts = Facts { pong: Some(hub.to_owned()), ..Facts::default() };
    Rendered::new(ResultWord::Confirmed, Next::None, say, Some(note), facts, lang)
}

/// How much of an id that is none an answer repeats, characters.
const SENT_CHARS_MAX: usize = 32;

/// Renders that no operation is known (of the id that was asked for, if one was): of the device, or of this caller where none is named.
pub fn nothing_known(asked: Option<&str>, naming: Option<&Naming>, lang: Lang) -> Rendered {
    let say = match (naming, lang) {
        (Some(n), Lang::Zh) => format!("没有记下{}的操作，要问的是哪一次？", n.spoken),
        (Some(n), Lang::En) => format!("No operation of {} is known; which one is meant?", the(&n.spoken, false)),
        (None, Lang::Zh) => "没有记下什么操作，要问的是哪个设备？".to_owned(),
        (None, Lang::En) => "No earlier operation is known; which device is meant?".to_owned(),
    };
    let facts = Facts {
        success: Some(false),
        outcome: Some(RefusalWord::InvalidValue.as_str()),
        stage: Some(Stage::Admission.as_str()),
        device: naming.map(|n| n.device.clone()),
        parameter: asked.map(|_| "operation".to_owned()),
        sent: asked.map(|asked| asked.chars().take(SENT_CHARS_MAX).collect()),
        ..Facts::default()
    };
    Rendered::new(ResultWord::AskUser, Next::AnswerQuestion, say, None, facts, lang)
}

/// Renders that the hub itself failed while it carried out a call: nobody knows what was done.
pub fn internal(lang: Lang) -> Rendered {
    let say = pick(
        lang,
        "不确定：中枢内部出错了，做没做成不知道，麻烦看一眼。",
        "Not sure: the hub failed internally; it may or may not have happened. Please look.",
    );
    let note = pick(
        lang,
        "不要自动重试；请用户看一眼，再看中枢的日志。",
        "Do not retry on your own; the hub's log says more.",
    );
    let facts = Facts { success: Some(false), reason: Some("hub_failed".to_owned()), ..Facts::default() };
    Rendered::new(ResultWord::Unconfirmed, Next::AskUserToLook, say.to_owned(), Some(note.to_owned()), facts, lang)
}

/// Renders that no hub could be reached: nothing was sent, and that is known.
pub fn no_hub(lang: Lang) -> Rendered {
    let say = pick(lang, "没有发出：家里的中枢连不上。", "Nothing sent: the hub cannot be reached.");
    let note = pick(lang, "不要重试；请用户看中枢开着没有。", "Do not retry; the user may look whether the hub runs.");
    let facts = Facts { success: Some(false), reason: Some("hub_unreachable".to_owned()), ..Facts::default() };
    Rendered::new(ResultWord::Failed, Next::None, say.to_owned(), Some(note.to_owned()), facts, lang)
}

fn capital(word: &str) -> String {
    let mut chars = word.chars();
    chars.next().map(|c| c.to_uppercase().chain(chars).collect()).unwrap_or_default()
}
