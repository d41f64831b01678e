//! Reading the greeting and the description.

use std::sync::Arc;

use super::{
    DecodeError,
    event::{Seen, cause, evidence, seen, values},
    object::{NAME, Object},
    tree::Node,
};
use crate::{
    limits::{ACTIONS_MAX, LABEL_CHARS_MAX, PROPERTIES_MAX, PROTO, is_name},
    scalar::Scalar,
    words::{CauseWord, ClassWord, ErrorWord, EvidenceWord, KindWord, OnWithdraw, RoleWord},
};

/// The greeting of a device.
#[derive(Clone, Debug, PartialEq)]
pub struct Hello {
    /// The version of the protocol; always [`PROTO`], others are refused.
    pub proto: u32,
    /// What the device promises, 1 to 3.
    pub level: u8,
    /// Its firmware.
    pub fw: String,
    /// Its model.
    pub model: String,
    /// Hash of its description.
    pub desc: Arc<str>,
    /// Whether the description is inline; if not, the hub must know `desc` or ask for it.
    pub inline: bool,
    /// Its properties, in its own order.
    pub properties: Vec<PropertyWire>,
    /// Its actions.
    pub actions: Vec<ActionWire>,
    /// Groups of properties that exclude each other (semantics 4.5).
    pub exclusive: Vec<Vec<String>>,
    /// All properties (a full snapshot, semantics 2.3).
    pub state: Vec<(Arc<str>, Scalar)>,
    /// How each was read.
    pub evidence: Vec<(Arc<str>, EvidenceWord)>,
    /// Why the state is as it is.
    pub cause: CauseWord,
    /// By property the last operation *finished* on it.
    pub seen: Seen,
}

/// One property as a device describes it. What is absent has the hub's default.
#[derive(Clone, Debug, PartialEq)]
pub struct PropertyWire {
    /// Its name.
    pub name: Arc<str>,
    /// The display name that the device proposes; counts after the owner accepted it (semantics 2.9).
    pub label: Option<String>,
    /// What it is to a person.
    pub role: Option<RoleWord>,
    /// The sort of value.
    pub kind: KindWord,
    /// The unit, for display.
    pub unit: Option<Arc<str>>,
    /// Smallest value.
    pub min: Option<f64>,
    /// Largest value.
    pub max: Option<f64>,
    /// Values are `min + n * step`; larger than 0.
    pub step: Option<f64>,
    /// How far apart two numbers may lie and count as the same; not below 0.
    pub tolerance: Option<f64>,
    /// The words of an enum; never empty for one.
    pub values: Vec<String>,
    /// Whether a wish outlives its operation.
    pub class: Option<ClassWord>,
    /// The highest evidence that the device offers; [`EvidenceWord::None`] for what it can send and not know.
    pub feedback: EvidenceWord,
    /// From beginning to completion, milliseconds.
    pub expected_ms: Option<u32>,
    /// How long a value must hold after completion, milliseconds (semantics 3.6).
    pub stable_ms: Option<u32>,
    /// Smallest time between two commands, milliseconds (semantics 4.4).
    pub min_interval_ms: Option<u32>,
    /// Whether it may be set.
    pub settable: Option<bool>,
    /// Whether setting it twice does no harm.
    pub repeatable: Option<bool>,
    /// Whether the device brings values into its range (semantics 3.9).
    pub clamps: bool,
    /// What happens to what has begun when it is withdrawn.
    pub on_withdraw: Option<OnWithdraw>,
    /// What the output goes to without the hub (semantics 6.4).
    pub failsafe: Option<Failsafe>,
}

/// What an output goes to when the hub has been gone.
#[derive(Clone, Debug, PartialEq)]
pub struct Failsafe {
    /// The value.
    pub value: Scalar,
    /// How long the hub must have been gone, milliseconds.
    pub after_ms: u32,
}

/// One action as a device describes it.
#[derive(Clone, Debug, PartialEq)]
pub struct ActionWire {
    /// Its name.
    pub name: Arc<str>,
    /// What it acts on, to a person.
    pub role: Option<RoleWord>,
    /// What its `completed` stands on; [`EvidenceWord::None`] if it never says so. Absent: firmware.
    pub feedback: Option<EvidenceWord>,
    /// How long it takes, milliseconds.
    pub expected_ms: Option<u32>,
    /// Whether doing it twice does no harm.
    pub repeatable: bool,
}

/// A page of a description that is too large for the hello.
#[derive(Clone, Debug, PartialEq)]
pub struct DescriptionPage {
    /// Hash of the description.
    pub desc: Arc<str>,
    /// From 0.
    pub page: u32,
    /// How many there are.
    pub pages: u32,
    /// The properties on it.
    pub properties: Vec<PropertyWire>,
    /// The actions on it.
    pub actions: Vec<ActionWire>,
}

impl Hello {
    pub(super) fn read(object: &Object<'_>) -> Result<Self, DecodeError> {
        let proto = object.required("proto", "1", object.u32("proto")?)?;
        if proto != PROTO {
            return Err(object.fail(ErrorWord::UnsupportedProtocol, "proto", "1"));
        }
        let level = object.required("level", "1, 2 or 3", object.u32("level")?)?;
        let level = u8::try_from(level).ok().filter(|l| (1..=3).contains(l));
        let properties = properties(object)?;
        let hello = Self {
            proto,
            level: level.ok_or_else(|| object.fail(ErrorWord::OutOfRange, "level", "1, 2 or 3"))?,
            fw: object.required("fw", "the version of the firmware", object.text("fw")?)?,
            model: object.required("model", "the model of the board", object.text("model")?)?,
            desc: object.required("desc", "a hash of the description", object.name("desc")?)?,
            inline: properties.is_some(),
            properties: properties.unwrap_or_default(),
            actions: actions(object)?,
            exclusive: exclusive(object)?,
            state: values(object, "state")?,
            evidence: evidence(object)?,
            cause: cause(object)?,
            seen: seen(object)?,
        };
        let known = |name: &str| hello.properties.iter().any(|p| *p.name == *name);
        let mut grouped = hello.exclusive.iter().enumerate().flat_map(|(at, group)| group.iter().map(move |n| (at, n)));
        if let Some((at, _)) = grouped.find(|(_, name)| hello.inline && !known(name)) {
            let path = format!("exclusive[{at}]");
            return Err(object.fail(ErrorWord::UnknownProperty, &path, "the names in properties"));
        }
        match hello.state.iter().find(|(name, _)| hello.inline && !known(name)) {
            Some((name, _)) => Err(Object { path: "state", ..*object }.fail(
                ErrorWord::UnknownProperty,
                name,
                "the names in properties",
            )),
            None => Ok(hello),
        }
    }
}

impl DescriptionPage {
    pub(super) fn read(object: &Object<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            desc: object.required("desc", "a hash of the description", object.name("desc")?)?,
            page: object.required("page", "a number from 0", object.u32("page")?)?,
            pages: object.required("pages", "how many pages there are", object.u32("pages")?)?,
            properties: properties(object)?.unwrap_or_default(),
            actions: actions(object)?,
        })
    }
}

fn properties(object: &Object<'_>) -> Result<Option<Vec<PropertyWire>>, DecodeError> {
    let Some(nodes) = object.list("properties", PROPERTIES_MAX)? else { return Ok(None) };
    let all = each(object, "properties", nodes, property)?;
    unique(object, "properties", all.iter().map(|p| &*p.name))?;
    Ok(Some(all))
}

fn actions(object: &Object<'_>) -> Result<Vec<ActionWire>, DecodeError> {
    let Some(nodes) = object.list("actions", ACTIONS_MAX)? else { return Ok(Vec::new()) };
    let all = each(object, "actions", nodes, |action| {
        Ok(ActionWire {
            name: action.required("name", NAME, action.name("name")?)?,
            role: action.word("role", RoleWord::read, RoleWord::Unknown)?,
            feedback: action.word("feedback", EvidenceWord::read, EvidenceWord::Unknown)?,
            expected_ms: action.u32("expected_ms")?,
            repeatable: action.required("repeatable", "true or false", action.flag("repeatable")?)?,
        })
    })?;
    unique(object, "actions", all.iter().map(|a| &*a.name))?;
    Ok(all)
}

fn each<T>(
    object: &Object<'_>,
    field: &str,
    nodes: &[Node<'_>],
    read: impl Fn(&Object<'_>) -> Result<T, DecodeError>,
) -> Result<Vec<T>, DecodeError> {
    let one = |(at, node): (usize, &Node<'_>)| {
        let path = format!("{field}[{at}]");
        let Node::Object(fields) = node else {
            return Err(object.fail(ErrorWord::WrongType, &path, "an object"));
        };
        read(&Object { fields, path: &path, ..*object })
    };
    nodes.iter().enumerate().map(one).collect()
}

fn unique<'n>(object: &Object<'_>, field: &str, names: impl Iterator<Item = &'n str>) -> Result<(), DecodeError> {
    let mut earlier = Vec::new();
    for (at, name) in names.enumerate() {
        if earlier.contains(&name) {
            return Err(object.fail(ErrorWord::DuplicateField, &format!("{field}[{at}].name"), "each name once"));
        }
        earlier.push(name);
    }
    Ok(())
}

fn property(object: &Object<'_>) -> Result<PropertyWire, DecodeError> {
    let kinds = "bool, integer, number, enum, text or colour";
    let feedbacks = "none, firmware, pin or sensor";
    let evidence = object.word("feedback", EvidenceWord::read, EvidenceWord::Unknown)?;
    let property = PropertyWire {
        name: object.required("name", NAME, object.name("name")?)?,
        label: label(object)?,
        role: object.word("role", RoleWord::read, RoleWord::Unknown)?,
        kind: object.required("kind", kinds, object.word("kind", KindWord::read, KindWord::Unknown)?)?,
        unit: object.name("unit")?,
        min: object.number("min")?,
        max: object.number("max")?,
        step: object.number("step")?,
        tolerance: object.number("tolerance")?,
        values: words(object)?,
        class: object.word("class", ClassWord::read, ClassWord::Unknown)?,
        feedback: object.required("feedback", feedbacks, evidence)?,
        expected_ms: object.u32("expected_ms")?,
        stable_ms: object.u32("stable_ms")?,
        min_interval_ms: object.u32("min_interval_ms")?,
        settable: object.flag("settable")?,
        repeatable: object.flag("repeatable")?,
        clamps: object.flag("clamps")?.unwrap_or(false),
        on_withdraw: object.word("on_withdraw", OnWithdraw::read, OnWithdraw::Unknown)?,
        failsafe: failsafe(object)?,
    };
    check(object, &property)?;
    Ok(property)
}

/// What the fields of one property must be together.
fn check(object: &Object<'_>, property: &PropertyWire) -> Result<(), DecodeError> {
    let PropertyWire { kind, min, max, step, tolerance, .. } = property;
    if *kind == KindWord::Number && step.is_none() && tolerance.is_none() {
        let allowed = "a step or a tolerance: when are two values the same?";
        return Err(object.fail(ErrorWord::NoTolerance, "step", allowed));
    }
    if *kind == KindWord::Enum && property.values.is_empty() {
        return Err(object.fail(ErrorWord::MissingField, "values", "the words of the enum"));
    }
    if step.is_some_and(|s| s <= 0.0) {
        return Err(object.fail(ErrorWord::OutOfRange, "step", "larger than 0"));
    }
    if tolerance.is_some_and(|t| t < 0.0) {
        return Err(object.fail(ErrorWord::OutOfRange, "tolerance", "0 or larger"));
    }
    // A safe level that the property cannot have would be found out when it is needed.
    let fits = |value: &Scalar| match (kind, value) {
        (KindWord::Bool, Scalar::Bool(_)) | (KindWord::Integer, Scalar::Integer(_)) | (KindWord::Unknown, _) => true,
        (KindWord::Number, value) => value.as_f64().is_some(),
        (KindWord::Enum, Scalar::Text(word)) => property.values.iter().any(|known| known == word.as_str()),
        (KindWord::Text | KindWord::Colour, Scalar::Text(_)) => true,
        (KindWord::Bool | KindWord::Integer | KindWord::Enum | KindWord::Text | KindWord::Colour, _) => false,
    };
    if property.failsafe.as_ref().is_some_and(|safe| !fits(&safe.value)) {
        return Err(object.fail(ErrorWord::WrongType, "failsafe.value", "a value of the property's kind"));
    }
    match (min, max) {
        (Some(min), Some(max)) if min > max => Err(object.fail(ErrorWord::OutOfRange, "max", "min or larger")),
        _ => Ok(()),
    }
}

fn label(object: &Object<'_>) -> Result<Option<String>, DecodeError> {
    let label = object.text("label")?;
    match label.as_ref().filter(|l| l.chars().count() > LABEL_CHARS_MAX || l.contains(char::is_control)) {
        Some(_) => Err(object.fail(ErrorWord::BadText, "label", "at most 32 characters without line breaks")),
        None => Ok(label),
    }
}

fn words(object: &Object<'_>) -> Result<Vec<String>, DecodeError> {
    let nodes = object.list("values", PROPERTIES_MAX)?.unwrap_or_default();
    let one = |(at, node): (usize, &Node<'_>)| match node.as_text() {
        Some(word) if is_name(word) => Ok(word.to_owned()),
        Some(_) => Err(object.fail(ErrorWord::BadName, &format!("values[{at}]"), NAME)),
        None => Err(object.fail(ErrorWord::WrongType, &format!("values[{at}]"), "a word")),
    };
    let all: Vec<String> = nodes.iter().enumerate().map(one).collect::<Result<_, _>>()?;
    Ok(all)
}

fn failsafe(object: &Object<'_>) -> Result<Option<Failsafe>, DecodeError> {
    let fields = match object.get("failsafe") {
        None => return Ok(None),
        Some(Node::Object(fields)) => fields,
        Some(_) => return Err(object.fail(ErrorWord::WrongType, "failsafe", "an object of value and after_ms")),
    };
    let path = format!("{}.failsafe", object.path);
    let inner = Object { fields, path: &path, ..*object };
    let value = inner.required("value", "the safe value", inner.get("value"))?;
    let after_ms = inner.required("after_ms", "milliseconds", inner.u32("after_ms")?)?;
    Ok(Some(Failsafe { value: inner.scalar("value", value)?, after_ms }))
}

/// `exclusive: [[a, b]]`.
fn exclusive(object: &Object<'_>) -> Result<Vec<Vec<String>>, DecodeError> {
    let nodes = object.list("exclusive", PROPERTIES_MAX)?.unwrap_or_default();
    let group = |(at, node): (usize, &Node<'_>)| {
        let wrong = || object.fail(ErrorWord::WrongType, &format!("exclusive[{at}]"), "a list of names");
        let Node::List(names) = node else { return Err(wrong()) };
        let name = |node: &Node| node.as_text().filter(|n| is_name(n)).map(str::to_owned).ok_or_else(wrong);
        names.iter().map(name).collect()
    };
    nodes.iter().enumerate().map(group).collect()
}
