//! What the owner lays down on how a property is confirmed, in texts short enough for one line: which action brings about
//! which value, where an independent measurement stands, and what it must show.

use std::fmt;

use super::setting::{Scalar, Setting};
use crate::property::{Choice, Class, DeviceId, Predicate, PropertyName, Value};

/// Longest text of one of these settings, characters: eight conditions of a dozen words.
pub(super) const TERMS_CHARS_MAX: usize = 400;

/// Most entries in one of them: as many wishes as a person tells apart; more is an error.
const ENTRIES_MAX: usize = 16;

/// `true = pulse, false = pulse`: which action brings about which value (semantics 3.10).
#[derive(Clone, Debug, PartialEq)]
pub struct ByAction(pub Vec<(Value, String)>);

/// `meter.watts`: a property of a device.
#[derive(Clone, Debug, PartialEq)]
pub struct Sensor {
    /// The device that measures.
    pub device: DeviceId,
    /// Its property.
    pub property: PropertyName,
}

/// `true: at_least 5; false: at_most 1`: what a measurement must show, by the wish (semantics 3.1, 3.10).
#[derive(Clone, Debug, PartialEq)]
pub struct Expect(pub Vec<(Option<Value>, Predicate)>);

/// The owner accepts that a thing which can do harm is moved although it appeared later (semantics 2.7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Accepted;

impl ByAction {
    fn parse(text: &str) -> Option<Self> {
        let entry = |entry: &str| {
            let (value, action) = entry.split_once('=')?;
            Some((value_of(value)?, name(action)?))
        };
        bounded(text.split(',').map(entry).collect()).map(Self)
    }
}

impl Sensor {
    fn parse(text: &str) -> Option<Self> {
        let (device, property) = text.split_once('.')?;
        Some(Self { device: DeviceId::new(device.trim()).ok()?, property: name(property)?.into() })
    }
}

impl Expect {
    fn parse(text: &str) -> Option<Self> {
        let entry = |entry: &str| match entry.split_once(':') {
            Some((wish, condition)) => Some((Some(value_of(wish)?), predicate(condition)?)),
            None => Some((None, predicate(entry)?)),
        };
        bounded(text.split(';').map(entry).collect()).map(Self)
    }
}

fn bounded<T>(entries: Option<Vec<T>>) -> Option<Vec<T>> {
    entries.filter(|entries| (1..=ENTRIES_MAX).contains(&entries.len()))
}

fn predicate(text: &str) -> Option<Predicate> {
    let mut words = text.split_whitespace();
    let word = words.next()?;
    let rest: Vec<&str> = words.collect();
    let number = |at: usize| rest.get(at)?.parse::<f64>().ok().filter(|n| n.is_finite());
    let (predicate, arguments) = match word {
        "equals" => (Predicate::Equals(value_of(rest.first()?)?), 1),
        "one_of" => (Predicate::OneOf(rest.iter().map(|v| value_of(v)).collect::<Option<_>>()?), rest.len().max(1)),
        "within" => (Predicate::Within { abs: number(1).filter(|abs| *abs >= 0.0)?, target: number(0)? }, 2),
        "at_least" => (Predicate::AtLeast(number(0)?), 1),
        "at_most" => (Predicate::AtMost(number(0)?), 1),
        "changes_by" => (Predicate::ChangesBy(number(0)?), 1),
        "approaches" => (Predicate::Approaches { by: number(1).filter(|by| *by >= 0.0)?, target: number(0)? }, 2),
        _ => return None,
    };
    (rest.len() == arguments).then_some(predicate)
}

/// `true`, `false`, a number, else a word.
fn value_of(text: &str) -> Option<Value> {
    let text = name(text)?;
    Some(match (text.as_str(), text.parse::<i32>(), text.parse::<f64>()) {
        ("true", ..) => Value::Bool(true),
        ("false", ..) => Value::Bool(false),
        (_, Ok(whole), _) => Value::Integer(whole),
        (_, _, Ok(number)) if number.is_finite() => Value::Number(number),
        (word, ..) => Value::Text(word.into()),
    })
}

/// The name of a property or action, a word of an enum (wire protocol, *Bounds*).
fn name(text: &str) -> Option<String> {
    let text = text.trim();
    (1..=32).contains(&text.len()).then(|| text.to_owned())
}

impl fmt::Display for ByAction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let entries: Vec<String> = self.0.iter().map(|(value, action)| format!("{value} = {action}")).collect();
        f.write_str(&entries.join(", "))
    }
}

impl fmt::Display for Sensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.device, self.property)
    }
}

impl fmt::Display for Expect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let condition = |predicate: &Predicate| match predicate {
            Predicate::Equals(value) => format!("equals {value}"),
            Predicate::OneOf(values) => {
                let values: Vec<String> = values.iter().map(ToString::to_string).collect();
                format!("one_of {}", values.join(" "))
            }
            Predicate::Within { target, abs } => format!("within {target} {abs}"),
            Predicate::AtLeast(least) => format!("at_least {least}"),
            Predicate::AtMost(most) => format!("at_most {most}"),
            Predicate::ChangesBy(least) => format!("changes_by {least}"),
            Predicate::Approaches { target, by } => format!("approaches {target} {by}"),
        };
        let entries: Vec<String> = self
            .0
            .iter()
            .map(|(wish, predicate)| match wish {
                Some(wish) => format!("{wish}: {}", condition(predicate)),
                None => condition(predicate),
            })
            .collect();
        f.write_str(&entries.join("; "))
    }
}

/// A setting that is a text of a certain form.
macro_rules! text_setting {
    ($($name:ty: $read:expr, $write:expr;)+) => {
        $(impl Setting for $name {
            fn scalar(&self) -> Option<Scalar> {
                let write: fn(&Self) -> String = $write;
                Some(Scalar::Text(write(self)))
            }

            fn from_scalar(scalar: &Scalar) -> Option<Self> {
                let read: fn(&str) -> Option<Self> = $read;
                match scalar {
                    Scalar::Text(text) => read(text),
                    Scalar::Number(_) | Scalar::List(_) | Scalar::Flag(_) => None,
                }
            }
        })+
    };
}

text_setting! {
    ByAction: Self::parse, ToString::to_string;
    Sensor: Self::parse, ToString::to_string;
    Expect: Self::parse, ToString::to_string;
    Choice: Self::read, |choice| choice.as_str().to_owned();
    Accepted: |text| (text == "yes").then_some(Self), |_| "yes".to_owned();
    Class: |text| match text {
        "momentary" => Some(Self::Momentary),
        "held" => Some(Self::Held),
        _ => None,
    }, |class| match class {
        Self::Momentary => "momentary".to_owned(),
        Self::Held => "held".to_owned(),
    };
}
