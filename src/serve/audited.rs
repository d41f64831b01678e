//! From a call that has ended to its record in the audit, and to its line in the log.

use std::{collections::HashMap, sync::Arc, time::Instant};

use serde_json::{Map, Value as Json};

use super::quiet::Quiet;
use crate::{
    answer::{Rendered, ResultWord},
    audit::{Audit, Event, HEARD_CHARS_MAX, MASK, Record, Thing, Want, bounded, masked, speech_masked},
    authz::Principal,
    config::Config,
    fleet::{Caller, Fleet},
    mcp::{Aim, Ended, Notes, Touched, TurnedAway},
    property::{DeviceId, Evidence, Property, PropertyName, Value},
    twin::{
        wish::Target,
        words::{RefusalWord, Reply, Settled, Stage},
    },
};

/// Arguments that name something of the house: they are kept as they are, but for tokens.
const NAMES: [&str; 9] = ["device", "scene", "room", "property", "option", "action", "to", "how", "operation"];

/// Arguments that carry a value of a property.
const VALUES: [&str; 3] = ["to", "level", "option"];

/// Arguments that are secrets.
const CODES: [&str; 2] = ["code", "spoken_code"];

/// Makes records of what the MCP server tells.
pub(super) struct Auditor {
    audit: Audit,
    fleet: Fleet,
    /// What nobody may read, also of devices that have not greeted.
    secrets: Secrets,
    quiet: Arc<Quiet>,
}

/// The properties that the owner calls sensitive, by device; of most houses there are none, and each call asks.
struct Secrets(HashMap<DeviceId, Vec<PropertyName>>);

impl Secrets {
    /// Those of a configuration.
    fn of(config: &Config) -> Self {
        let sensitive = config.devices.iter().map(|(device, said)| {
            let names = said.properties.iter().filter(|(_, p)| p.sensitive).map(|(name, _)| name.clone());
            (device.clone(), names.collect::<Vec<_>>())
        });
        Self(sensitive.filter(|(_, names)| !names.is_empty()).collect())
    }
}

impl Auditor {
    /// For a hub of these devices.
    pub(super) fn new(audit: &Audit, fleet: &Fleet, config: &Config, quiet: &Arc<Quiet>) -> Self {
        Self { audit: audit.clone(), fleet: fleet.clone(), secrets: Secrets::of(config), quiet: quiet.clone() }
    }

    /// A call has ended.
    pub(super) fn call(&self, ended: &Ended<'_>) {
        let mut record = self.record(&ended.guest.principal, &ended.guest.caller, ended.tool.as_str());
        let hidden = self.asked(&mut record, ended.arguments, ended.notes);
        match ended.answer {
            Some(answer) => answered(&mut record, &answer.structured, &answer.say, answer.result),
            None => record.cancelled = true,
        }
        record.agreed = Some(ended.notes.agreed.clone()).filter(|ways| !ways.is_empty());
        hide_sent(&mut record, hidden);
        record.duration_ms = Some(u64::try_from(ended.elapsed.as_millis()).unwrap_or(u64::MAX));
        self.tell(&record, ended.tool.only_reads());
        self.audit.keep(record, ended.elapsed);
    }

    /// A call ended with a question that its client puts to the person.
    pub(super) fn asks_first(&self, ended: &Ended<'_>) {
        let mut record = self.record(&ended.guest.principal, &ended.guest.caller, ended.tool.as_str());
        record.event = Event::Confirmation;
        let _hidden = self.asked(&mut record, ended.arguments, ended.notes);
        record.note = Some("its client puts the question to the person".to_owned());
        record.duration_ms = Some(u64::try_from(ended.elapsed.as_millis()).unwrap_or(u64::MAX));
        self.audit.keep(record, ended.elapsed);
    }

    /// A call was turned away.
    pub(super) fn turned_away(&self, away: &TurnedAway<'_>) {
        let tool = bounded(&masked(away.tool), HEARD_CHARS_MAX);
        let nobody = Caller(away.principal.to_string().into());
        let caller = away.guest.map_or(&nobody, |guest| &guest.caller);
        let mut record = self.record(away.principal, caller, &tool);
        record.event = Event::TurnedAway;
        record.refusal = Some(away.why.to_owned());
        if self.quiet.lets(Instant::now(), &record.caller) {
            tracing::warn!(caller = %caller.0, tool, why = away.why, "a call was turned away");
        }
        self.audit.keep(record, std::time::Duration::ZERO);
    }

    /// The owner has set a property at the command line.
    pub(super) fn owner(
        &self,
        asked: (&str, &DeviceId, &str, &Value),
        reply: &Reply,
        answer: &Rendered,
        elapsed: std::time::Duration,
    ) {
        let (heard, device, property, value) = asked;
        let mut record = self.record(&Principal::Owner, &Caller("owner".into()), "set");
        let aim = Aim::Wish(Target::To(value.clone()));
        let touched =
            Touched { device: device.clone(), property: Some(property.into()), aim, reply: Some(reply.clone()) };
        record.heard = Some(masked(heard));
        let hidden = self.is_sensitive(&touched);
        record.things = vec![thing(&touched, hidden)];
        answered(&mut record, &answer.structured, &answer.say, answer.result);
        hide_sent(&mut record, hidden);
        record.duration_ms = Some(u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX));
        self.tell(&record, false);
        self.audit.keep(record, elapsed);
    }

    /// A wish that was not confirmed is told in the log, unless its caller has had its share.
    fn tell(&self, record: &Record, only_reads: bool) {
        if !only_reads && record.is_failure() && self.quiet.lets(Instant::now(), &record.caller) {
            tell(record);
        }
    }

    fn record(&self, principal: &Principal, caller: &Caller, tool: &str) -> Record {
        let who = principal.to_string();
        let session = caller.0.strip_prefix(&*who).map_or(&*caller.0, |rest| rest.trim_start_matches(':'));
        Record {
            session: Some(session.to_owned()).filter(|session| !session.is_empty()),
            tool: Some(tool.to_owned()),
            ..Record::new(Event::Call, &who)
        }
    }

    /// What was asked for, and what that was taken for; whether values of it are nobody's to read.
    fn asked(&self, record: &mut Record, arguments: &Map<String, Json>, notes: &Notes) -> bool {
        let text = |key: &str| arguments.get(key).and_then(Json::as_str);
        record.user_request = text("user_request").map(speech_masked).filter(|words| !words.is_empty());
        record.heard = text("device").or_else(|| text("scene")).map(masked);
        let mut any = false;
        let of = |touched: &Touched| {
            let hidden = self.is_sensitive(touched);
            any |= hidden;
            thing(touched, hidden)
        };
        record.things = notes.things.iter().map(of).collect();
        let kept = arguments.iter().filter(|(key, _)| *key != "user_request");
        // A value whose device was misheard may be one that nobody may read.
        let hidden = any || record.things.is_empty() && !self.secrets.0.is_empty();
        record.arguments = kept.map(|(key, value)| argument(key, value, hidden)).collect();
        any
    }

    /// Whether values of the property that is meant are nobody's to read; of a device as a whole, whether any of it is.
    fn is_sensitive(&self, touched: &Touched) -> bool {
        let of_it = |name: &PropertyName| touched.property.as_ref().is_none_or(|property| property == name);
        if self.secrets.0.get(&touched.device).is_some_and(|names| names.iter().any(of_it)) {
            return true;
        }
        let Some(description) = self.fleet.description(&touched.device) else { return false };
        let meant = |p: &&Property| touched.property.as_ref().is_none_or(|property| *property == p.name);
        description.properties.iter().filter(meant).any(is_sensitive)
    }
}

/// What was wrong may be a value that nobody may read, or a code.
fn hide_sent(record: &mut Record, hidden: bool) {
    if hidden || record.parameter.as_deref().is_some_and(|parameter| CODES.contains(&parameter)) {
        record.sent = record.sent.take().map(|_| MASK.to_owned());
    }
}

fn thing(touched: &Touched, hidden: bool) -> Thing {
    let property = touched.property.as_deref().map(str::to_owned);
    let is_action = touched.aim == Aim::Action;
    let mut thing = Thing { device: touched.device.to_string(), ..Thing::default() };
    (thing.property, thing.action) = if is_action { (None, property) } else { (property, None) };
    thing.want = match &touched.aim {
        Aim::Wish(_) if hidden => Some(Want::To(MASK.into())),
        Aim::Wish(Target::To(value)) => Some(Want::To(json(value))),
        Aim::Wish(Target::By(amount)) => Some(Want::By(*amount)),
        Aim::Wish(Target::Toggle) => Some(Want::Toggle),
        Aim::Look | Aim::Action | Aim::Unclear => None,
    };
    match &touched.reply {
        Some(Reply::Settled(settled)) => became(&mut thing, settled),
        Some(Reply::Refused(refusal)) => thing.refusal = Some(refusal.word().to_string()),
        None => {}
    }
    thing
}

fn is_sensitive(property: &Property) -> bool {
    property.terms.sensitive
}

fn json(value: &Value) -> Json {
    match value {
        Value::Bool(value) => Json::from(*value),
        Value::Integer(value) => Json::from(*value),
        Value::Number(value) => Json::from(*value),
        Value::Text(value) => Json::from(bounded(&masked(value), HEARD_CHARS_MAX)),
    }
}

/// One argument as it is kept.
fn argument(key: &str, value: &Json, hidden: bool) -> (String, Json) {
    let kept = match value {
        _ if CODES.contains(&key) || hidden && VALUES.contains(&key) => Json::from(MASK),
        Json::String(text) if NAMES.contains(&key) => Json::from(bounded(&masked(text), HEARD_CHARS_MAX)),
        Json::String(text) => Json::from(bounded(&speech_masked(text), HEARD_CHARS_MAX)),
        Json::Null | Json::Bool(_) | Json::Number(_) => value.clone(),
        // No tool has any: a model's invention, kept as a text so that it can be looked at.
        Json::Array(_) | Json::Object(_) => Json::from(bounded(&speech_masked(&value.to_string()), HEARD_CHARS_MAX)),
    };
    (bounded(&masked(key), HEARD_CHARS_MAX), kept)
}

/// What was answered.
fn answered(record: &mut Record, answer: &Json, say: &str, result: ResultWord) {
    let text = |key: &str| answer[key].as_str().map(str::to_owned);
    record.result = Some(result.as_str().to_owned());
    record.outcome = text("outcome");
    record.stage = text("stage");
    record.reason = text("reason");
    record.confirmed_by = text("confirmed_by");
    record.operation = text("operation");
    record.parameter = text("parameter").map(|parameter| masked(&parameter));
    record.sent = text("sent").or_else(|| text("asked")).map(|sent| speech_masked(&sent));
    record.say = Some(say.to_owned());
    // What never began is a refusal, whoever refused.
    let refused = |outcome: &&String| RefusalWord::ALL.iter().any(|word| word.as_str() == outcome.as_str());
    record.refusal = record.outcome.as_ref().filter(refused).cloned();
}

/// How an operation ended, or how far it is.
fn became(thing: &mut Thing, settled: &Settled) {
    thing.outcome = Some(settled.outcome.to_string());
    thing.stage = Some(settled.stage.to_string());
    thing.reason = settled.reason.map(|reason| reason.to_string());
    thing.confirmed_by = (settled.confirmed_by != Evidence::None).then(|| settled.confirmed_by.as_str().to_owned());
    thing.operation = Some(settled.op.to_string()).filter(|op| !op.is_empty());
    thing.acknowledged = settled.stages.iter().any(|(stage, _)| *stage > Stage::WaitingDeviceAck);
}

/// One line in the log for each wish that was not confirmed; nothing of it is what somebody said or a value.
fn tell(record: &Record) {
    let word = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_owned());
    let (caller, tool, result) = (&record.caller, word(&record.tool), word(&record.result));
    let session = word(&record.session);
    if record.things.is_empty() || record.things.iter().all(|thing| thing.outcome.is_none()) {
        let device = record.things.first().map_or("-", |thing| thing.device.as_str());
        let (stage, reason) = (word(&record.stage), word(&record.refusal));
        let reason = if record.cancelled { "the client no longer waited".to_owned() } else { reason };
        tracing::warn!(caller, session, tool, device, result, stage, reason, "not done");
        return;
    }
    let failed = |outcome: &str| !matches!(outcome, "converged" | "already" | "clamped");
    for thing in record.things.iter().filter(|thing| thing.outcome.as_deref().is_none_or(failed)) {
        let (device, stage) = (&thing.device, word(&thing.stage));
        let reason = thing.reason.clone().or_else(|| thing.refusal.clone()).or_else(|| thing.outcome.clone());
        let (reason, operation) = (word(&reason), word(&thing.operation));
        tracing::warn!(caller, session, tool, device, result, stage, reason, operation, "not confirmed");
    }
}
