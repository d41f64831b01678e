//! What a device says of itself: properties, their kinds, units, ranges, tolerances and feedback; and what counts
//! as the same value.
//!
//! Pure values. This module knows nothing of operations, time, transport or sentences.

mod confirmation;
mod predicate;
mod terms;

use std::{fmt, sync::Arc};

pub use self::{
    confirmation::{Confirm, Confirmation, Movement},
    predicate::{Choice, Predicate},
    terms::{Failsafe, Terms, Verify},
};

/// The id of a device: 1 to 32 of `a-z 0-9 _ -` (wire protocol, *Topics*). It is the MQTT user name and part of the
/// topics; what people call the device is a display name and lives elsewhere.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DeviceId(Arc<str>);

/// Why a text is no device id.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no device id: 1 to 32 of a-z, 0-9, _ and - are allowed")]
pub struct BadDeviceId(pub String);

impl DeviceId {
    /// Checks and takes an id.
    ///
    /// # Errors
    /// [`BadDeviceId`] if it is empty, longer than 32 bytes or holds another character.
    pub fn new(text: &str) -> Result<Self, BadDeviceId> {
        Self::of(&text.into())
    }

    /// The same of a shared text, which stays shared.
    ///
    /// # Errors
    /// As [`DeviceId::new`].
    pub fn of(text: &Arc<str>) -> Result<Self, BadDeviceId> {
        let allowed = |b: u8| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-');
        if (1..=32).contains(&text.len()) && text.bytes().all(allowed) {
            Ok(Self(text.clone()))
        } else {
            Err(BadDeviceId(text.chars().take(64).collect()))
        }
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for DeviceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for DeviceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The name of a property, 1 to 32 bytes (wire protocol, *Bounds*).
pub type PropertyName = Arc<str>;

/// One value of a property.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// On or off; for a lock locked or unlocked, for a blind open or closed ([`Role`]).
    Bool(bool),
    /// A whole number.
    Integer(i32),
    /// A number; finite, up to six significant digits on the wire.
    Number(f64),
    /// A text, one word of an enum, or a colour `#rrggbb`; at most 128 bytes of UTF-8.
    Text(Arc<str>),
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bool(v) => write!(f, "{v}"),
            Self::Integer(v) => write!(f, "{v}"),
            Self::Number(v) => write!(f, "{v}"),
            Self::Text(v) => f.write_str(v),
        }
    }
}

/// What sort of value a property has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `true` or `false`.
    Bool,
    /// A whole number in `i32`.
    Integer,
    /// A finite number.
    Number,
    /// One of the words in [`Property::values`].
    Enum,
    /// Free text, at most 128 bytes.
    Text,
    /// `#rrggbb`, lower case.
    Colour,
}

/// What a property is to a person; decides the words that people and models see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the words are their own explanation")]
pub enum Role {
    Light,
    Socket,
    Lock,
    Door,
    Blind,
    Valve,
    Heater,
    Fan,
    Pump,
    Sensor,
    Other,
}

/// Whether a wish outlives its operation (semantics 2.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Class {
    /// The wish lives only while its operation runs.
    #[default]
    Momentary,
    /// The wish stays until changed.
    Held,
}

/// How far down the physical chain a value is confirmed (semantics 3.5), lowest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Evidence {
    /// Nothing is known.
    None,
    /// The command left the hub.
    Sent,
    /// The device says that it has the command.
    Received,
    /// Its software says that it has done it.
    Firmware,
    /// The electrical level was read back through an input.
    Pin,
    /// An independent measurement, taken after completion, agrees.
    Sensor,
}

impl Evidence {
    /// All of them, lowest first.
    pub const ALL: &[Self] = &[Self::None, Self::Sent, Self::Received, Self::Firmware, Self::Pin, Self::Sensor];

    /// The word in answers, metrics and documents.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Sent => "sent",
            Self::Received => "received",
            Self::Firmware => "firmware",
            Self::Pin => "pin",
            Self::Sensor => "sensor",
        }
    }
}

/// One named value of a device, as the device describes it and the owner may override it.
#[derive(Clone, Debug, PartialEq)]
pub struct Property {
    /// Its name on the wire.
    pub name: PropertyName,
    /// What it is to a person.
    pub role: Role,
    /// The sort of value.
    pub kind: Kind,
    /// The unit as the device writes it (`%`, `°C`); for display only.
    pub unit: Option<Arc<str>>,
    /// Smallest value allowed (numbers).
    pub min: Option<f64>,
    /// Largest value allowed (numbers).
    pub max: Option<f64>,
    /// Values are `min + n * step` (numbers).
    pub step: Option<f64>,
    /// How far apart two numbers may lie and still count as the same.
    pub tolerance: Option<f64>,
    /// The words of an enum.
    pub values: Vec<Arc<str>>,
    /// Whether a wish outlives its operation.
    pub class: Class,
    /// The highest evidence that the device offers for it.
    pub feedback: Evidence,
    /// How long the device expects to take from beginning to completion, milliseconds.
    pub expected_ms: u32,
    /// How long the value must hold after completion before it is asked for again, milliseconds (semantics 3.6).
    pub stable_ms: u32,
    /// The shortest time between the beginnings of two drives, milliseconds (semantics 4.4).
    pub min_interval_ms: u32,
    /// Whether a caller may set it.
    pub settable: bool,
    /// Whether setting it twice does no harm.
    pub repeatable: bool,
    /// On which terms it is confirmed.
    pub terms: Terms,
}

/// Something that a device does and that leaves no state, as it describes it (semantics 1, *Action*).
#[derive(Clone, Debug, PartialEq)]
pub struct Action {
    /// Its name on the wire.
    pub name: Arc<str>,
    /// What it acts on, to a person; decides whether it can do harm.
    pub role: Role,
    /// What its `completed` stands on; below [`Evidence::Firmware`] the device never says that it is done.
    pub feedback: Evidence,
    /// How long the device expects to take, milliseconds.
    pub expected_ms: u32,
    /// Whether doing it twice does no harm.
    pub repeatable: bool,
    /// The owner's word on how it is confirmed.
    pub confirmation: Confirmation,
}

/// All that a device says it has: at most 64 properties (semantics 2.10).
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Description {
    /// The properties, in the device's order.
    pub properties: Vec<Property>,
    /// Groups of properties that exclude each other: one of a group is driven at a time (semantics 4.5).
    pub exclusive: Vec<Vec<PropertyName>>,
    /// What it can do that leaves no state, at most 64.
    pub actions: Vec<Action>,
    /// The names that the device proposes for its properties; they count once the owner accepts them (semantics 2.9).
    pub labels: Vec<(PropertyName, Arc<str>)>,
    /// What the device promises, 1 to 3 (wire protocol, *What a device does, by level*); 0 where nothing is known of it.
    pub level: u8,
}

/// Why a value is not allowed for a property. The text names what is allowed.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ValueError {
    /// Another sort of value.
    #[error("{sent} is not {expected}")]
    WrongKind {
        /// What was sent.
        sent: String,
        /// The sort that is allowed, as a noun (`true or false`, `a whole number`).
        expected: &'static str,
    },
    /// A number outside the range.
    #[error("{sent} is outside {min} to {max}")]
    OutOfRange {
        /// What was sent.
        sent: f64,
        /// The smallest allowed.
        min: f64,
        /// The largest allowed.
        max: f64,
    },
    /// A number between two steps.
    #[error("{sent} is no step of {step} from {min}")]
    OffStep {
        /// What was sent.
        sent: f64,
        /// The step.
        step: f64,
        /// Where the steps begin.
        min: f64,
    },
    /// A word that the enum does not have.
    #[error("{sent:?} is not one of {}", allowed.join(", "))]
    NotListed {
        /// What was sent.
        sent: String,
        /// The words that are allowed.
        allowed: Vec<Arc<str>>,
    },
    /// A text over 128 bytes, or a colour that is no `#rrggbb`.
    #[error("{sent:?} is no {expected}")]
    BadText {
        /// What was sent, shortened.
        sent: String,
        /// What is allowed.
        expected: &'static str,
    },
}

/// How long a mere word is, characters.
const PLAIN_CHARS_MAX: usize = 20;

/// Whether a text of a device is a mere word: one or two Latin words or a number, which give nobody orders (semantics 7.4).
pub fn is_plain(text: &str) -> bool {
    let latin = |c: char| c.is_ascii_alphanumeric() || "_-.#".contains(c);
    text.len() <= PLAIN_CHARS_MAX && text.chars().all(latin) && text.matches(['_', '-', '.']).count() < 2
}

/// Longest text value on the wire, bytes of UTF-8 (wire protocol, *Bounds*).
const TEXT_BYTES_MAX: usize = 128;

/// Largest magnitude of a number on the wire (wire protocol, *Bounds*); up to it, rounding to six digits is exact.
const NUMBER_MAX: f64 = 1e15;

/// How much of a wrong value an error repeats, characters: enough to recognise it, too little to flood a log.
const SHOWN_CHARS_MAX: usize = 64;

impl Description {
    /// The property of that name.
    pub fn property(&self, name: &str) -> Option<&Property> {
        self.properties.iter().find(|p| &*p.name == name)
    }

    /// The action of that name.
    pub fn action(&self, name: &str) -> Option<&Action> {
        self.actions.iter().find(|a| &*a.name == name)
    }
}

impl Property {
    /// Checks a wish against the kind, the range and the steps, and brings it into the one form that is stored, sent
    /// and compared (semantics 2.5): `Integer` for whole kinds, `Number` of six significant digits for numbers, the
    /// enum's own spelling, lower case colours.
    ///
    /// # Errors
    /// [`ValueError`], which names what is allowed.
    pub fn normalise(&self, sent: &Value) -> Result<Value, ValueError> {
        let value = self.read(sent)?;
        match value {
            Value::Integer(number) => self.check_range(f64::from(number))?,
            Value::Number(number) => self.check_range(number)?,
            Value::Bool(_) | Value::Text(_) => {}
        }
        Ok(value)
    }

    /// Reads what the device reports: as [`Self::normalise`], without range and steps. What is measured may lie beside
    /// a step or outside what may be wished, and is true all the same.
    ///
    /// # Errors
    /// [`ValueError`] for another kind, a word that is not listed, a text that is too long.
    pub fn read(&self, sent: &Value) -> Result<Value, ValueError> {
        match self.kind {
            Kind::Bool => match sent {
                Value::Bool(v) => Ok(Value::Bool(*v)),
                Value::Integer(_) | Value::Number(_) | Value::Text(_) => Err(wrong_kind(sent, "true or false")),
            },
            Kind::Integer => {
                let number = self.number(sent, "a whole number")?;
                if number.fract() != 0.0 || number < f64::from(i32::MIN) || number > f64::from(i32::MAX) {
                    return Err(wrong_kind(sent, "a whole number"));
                }
                #[expect(clippy::cast_possible_truncation, reason = "whole and in range of i32, checked above")]
                Ok(Value::Integer(number as i32))
            }
            Kind::Number => Ok(Value::Number(six_digits(self.number(sent, "a number")?))),
            Kind::Enum => {
                let word = self.text(sent, "one of its words")?;
                // Exactly so first: a device may have two words that differ by case only.
                let exact = self.values.iter().find(|v| ***v == *word);
                let known = exact.or_else(|| self.values.iter().find(|v| v.eq_ignore_ascii_case(word)));
                known
                    .map(|v| Value::Text(v.clone()))
                    .ok_or_else(|| ValueError::NotListed { sent: shown(word), allowed: self.values.clone() })
            }
            Kind::Text => {
                let text = self.text(sent, "a text")?;
                if text.len() > TEXT_BYTES_MAX {
                    return Err(ValueError::BadText { sent: shown(text), expected: "text of at most 128 bytes" });
                }
                Ok(Value::Text(text.into()))
            }
            Kind::Colour => {
                let text = self.text(sent, "a colour like #ff8800")?;
                let hex = text.strip_prefix('#').filter(|h| h.len() == 6 && h.bytes().all(|b| b.is_ascii_hexdigit()));
                hex.map(|_| Value::Text(text.to_ascii_lowercase().into()))
                    .ok_or_else(|| ValueError::BadText { sent: shown(text), expected: "colour like #ff8800" })
            }
        }
    }

    /// Whether two normalised values count as the same: numbers within the tolerance, or else half a step (semantics
    /// 3.1 `equals`); everything else exactly.
    pub fn same(&self, a: &Value, b: &Value) -> bool {
        match (a, b) {
            (Value::Number(a), Value::Number(b)) => (a - b).abs() <= self.nearness(),
            (Value::Integer(a), Value::Integer(b)) => {
                let apart = f64::from((i64::from(*a) - i64::from(*b)).unsigned_abs().try_into().unwrap_or(u32::MAX));
                apart <= self.tolerance.unwrap_or(0.0)
            }
            (a, b) => a == b,
        }
    }

    fn number(&self, sent: &Value, expected: &'static str) -> Result<f64, ValueError> {
        match sent {
            Value::Integer(v) => Ok(f64::from(*v)),
            Value::Number(v) if v.abs() <= NUMBER_MAX => Ok(*v),
            Value::Number(v) if v.is_finite() => {
                Err(ValueError::OutOfRange { sent: *v, min: -NUMBER_MAX, max: NUMBER_MAX })
            }
            Value::Number(_) | Value::Bool(_) | Value::Text(_) => Err(wrong_kind(sent, expected)),
        }
    }

    fn text<'a>(&self, sent: &'a Value, expected: &'static str) -> Result<&'a str, ValueError> {
        match sent {
            Value::Text(v) => Ok(v),
            Value::Bool(_) | Value::Integer(_) | Value::Number(_) => Err(wrong_kind(sent, expected)),
        }
    }

    fn check_range(&self, sent: f64) -> Result<(), ValueError> {
        let (min, max) = (self.min.unwrap_or(-NUMBER_MAX), self.max.unwrap_or(NUMBER_MAX));
        if sent < min || sent > max {
            return Err(ValueError::OutOfRange { sent, min, max });
        }
        if let Some(step) = self.step {
            let min = self.min.unwrap_or(0.0);
            let steps = (sent - min) / step;
            // One millionth of a step: six significant digits on the wire, and 0.1 is no binary fraction.
            if step > 0.0 && (steps - steps.round()).abs() > 1e-6 {
                return Err(ValueError::OffStep { sent, step, min });
            }
        }
        Ok(())
    }
}

/// Rounds to six significant digits, as the wire does (wire protocol, *Bounds*): else the device would be asked for one
/// number and compared with another. What is nearer to 0 than 1e-15 is 0.
fn six_digits(number: f64) -> f64 {
    if number.abs() < 1.0 / NUMBER_MAX {
        return 0.0;
    }
    format!("{number:.5e}").parse().unwrap_or(number)
}

fn wrong_kind(sent: &Value, expected: &'static str) -> ValueError {
    ValueError::WrongKind { sent: shown(&sent.to_string()), expected }
}

fn shown(text: &str) -> String {
    text.chars().take(SHOWN_CHARS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    pub(super) fn property(kind: Kind) -> Property {
        Property {
            name: "p".into(),
            role: Role::Other,
            kind,
            unit: None,
            min: None,
            max: None,
            step: None,
            tolerance: None,
            values: vec!["Eco".into(), "Boost".into()],
            class: Class::Momentary,
            feedback: Evidence::Firmware,
            expected_ms: 0,
            stable_ms: 0,
            min_interval_ms: 0,
            settable: true,
            repeatable: true,
            terms: Terms::default(),
        }
    }

    fn any_property() -> impl Strategy<Value = Property> {
        let kinds = vec![Kind::Bool, Kind::Integer, Kind::Number, Kind::Enum, Kind::Text, Kind::Colour];
        let some = |range: std::ops::Range<f64>| prop::option::of(range);
        (prop::sample::select(kinds), some(-100.0..0.0), some(0.0..100.0), some(0.1..10.0), some(0.0..5.0))
            .prop_map(|(kind, min, max, step, tolerance)| Property { min, max, step, tolerance, ..property(kind) })
    }

    fn any_value() -> impl Strategy<Value = Value> {
        prop_oneof![
            any::<bool>().prop_map(Value::Bool),
            any::<i32>().prop_map(Value::Integer),
            (-120..120).prop_map(Value::Integer),
            any::<f64>().prop_map(Value::Number),
            (-120.0..120.0).prop_map(Value::Number),
            "#[0-9a-fA-F]{5,7}|[eE][cC]o|boost|.{0,40}".prop_map(|text| Value::Text(text.into())),
        ]
    }

    proptest! {
        #[test]
        fn s2_5_what_is_normalised_once_is_normalised(property in any_property(), sent in any_value()) {
            if let Ok(value) = property.normalise(&sent) {
                prop_assert_eq!(property.normalise(&value), Ok(value.clone()));
                prop_assert_eq!(property.read(&value), Ok(value.clone()), "what may be wished can be reported");
                prop_assert!(property.same(&value, &value));
            }
            if let Ok(value) = property.read(&sent) {
                prop_assert_eq!(property.read(&value), Ok(value));
            }
        }

        #[test]
        fn s3_1_equal_is_equal_both_ways(property in any_property(), a in any_value(), b in any_value()) {
            prop_assert_eq!(property.same(&a, &b), property.same(&b, &a));
        }

        #[test]
        fn s2_5_a_number_is_the_one_that_the_wire_carries(number in -1e15..1e15_f64) {
            let Ok(Value::Number(kept)) = property(Kind::Number).normalise(&Value::Number(number)) else {
                return Err(TestCaseError::fail("in range"));
            };
            prop_assert_eq!(format!("{kept:.5e}").parse::<f64>(), Ok(kept));
            prop_assert!((kept - number).abs() <= number.abs() * 5.1e-6 + 1e-15);
        }
    }

    #[test]
    fn s2_5_bounds_are_inside_and_what_lies_beyond_is_named_with_what_is_allowed() {
        let level = Property { min: Some(0.0), max: Some(100.0), step: Some(0.1), ..property(Kind::Number) };
        for good in [0.0, 100.0, 0.3, 99.9] {
            assert_eq!(level.normalise(&Value::Number(good)), Ok(Value::Number(good)));
        }
        assert_eq!(level.normalise(&Value::Integer(7)), Ok(Value::Number(7.0)));
        let said = |value| level.normalise(&value).map_err(|e| e.to_string());
        assert_eq!(said(Value::Number(100.5)), Err("100.5 is outside 0 to 100".into()));
        assert_eq!(said(Value::Number(0.25)), Err("0.25 is no step of 0.1 from 0".into()));
        assert_eq!(said(Value::Number(f64::NAN)), Err("NaN is not a number".into()));
        assert_eq!(said(Value::Bool(true)), Err("true is not a number".into()));
        let huge = property(Kind::Number).normalise(&Value::Number(1e16)).map_err(|e| e.to_string());
        assert_eq!(huge, Err("10000000000000000 is outside -1000000000000000 to 1000000000000000".into()));
    }

    #[test]
    fn s2_5_whole_numbers_are_whole() {
        let whole = property(Kind::Integer);
        assert_eq!(whole.normalise(&Value::Number(21.0)), Ok(Value::Integer(21)));
        for bad in [Value::Number(21.5), Value::Number(3e9), Value::Text("21".into())] {
            assert!(matches!(whole.normalise(&bad), Err(ValueError::WrongKind { .. })), "{bad}");
        }
    }

    #[test]
    fn s2_5_words_colours_and_texts_have_one_spelling_and_a_length() {
        let word = property(Kind::Enum);
        assert_eq!(word.normalise(&Value::Text("eCO".into())), Ok(Value::Text("Eco".into())));
        let twins = Property { values: vec!["eco".into(), "Eco".into()], ..property(Kind::Enum) };
        for spelling in ["eco", "Eco"] {
            assert_eq!(twins.normalise(&Value::Text(spelling.into())), Ok(Value::Text(spelling.into())));
        }
        let unknown = word.normalise(&Value::Text("turbo".into())).map_err(|e| e.to_string());
        assert_eq!(unknown, Err("\"turbo\" is not one of Eco, Boost".into()));
        let colour = property(Kind::Colour);
        assert_eq!(colour.normalise(&Value::Text("#FF88aa".into())), Ok(Value::Text("#ff88aa".into())));
        for bad in ["ff88aa", "#ff88a", "#ff88aaa", "#ff88ag", ""] {
            assert!(matches!(colour.normalise(&Value::Text(bad.into())), Err(ValueError::BadText { .. })), "{bad}");
        }
        let text = property(Kind::Text);
        assert!(text.normalise(&Value::Text("灯".repeat(42).into())).is_ok());
        assert!(text.normalise(&Value::Text("灯".repeat(43).into())).is_err());
    }

    #[test]
    fn s2_5_what_is_reported_may_lie_beside_a_step_and_outside_of_what_may_be_wished() {
        let level = Property { min: Some(0.0), max: Some(100.0), step: Some(5.0), ..property(Kind::Number) };
        assert_eq!(level.read(&Value::Number(52.0)), Ok(Value::Number(52.0)));
        assert_eq!(level.read(&Value::Number(-3.0)), Ok(Value::Number(-3.0)));
        assert!(level.read(&Value::Text("52".into())).is_err());
    }

    #[test]
    fn s3_1_whole_numbers_far_apart_are_not_the_same() {
        let whole = Property { tolerance: Some(2.0), ..property(Kind::Integer) };
        assert!(whole.same(&Value::Integer(-1), &Value::Integer(1)));
        assert!(!whole.same(&Value::Integer(-1), &Value::Integer(2)));
        assert!(!whole.same(&Value::Integer(i32::MIN), &Value::Integer(i32::MAX)));
        assert!(!whole.same(&Value::Integer(1), &Value::Number(1.0)), "normalised values are of one kind");
    }

    #[test]
    fn a_device_id_is_1_to_32_of_the_allowed_characters() {
        assert!(DeviceId::new("a").is_ok() && DeviceId::new(&"z_9-".repeat(8)).is_ok());
        for bad in ["", &"a".repeat(33), "Lamp", "lamp 1", "灯", "a/b", "a+"] {
            assert!(DeviceId::new(bad).is_err(), "{bad}");
        }
    }
}
