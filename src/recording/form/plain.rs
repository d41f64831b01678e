//! What every form is made of: numbers, texts, times, lists; and how structs and enums are written field by field, so that a new
//! field or variant does not compile until it is in the form.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::{Duration, Instant},
};

use serde_json::{Map, Value as Json};

use crate::{
    property::{DeviceId, Value},
    twin::{wish::CallerId, words::OpId},
};

/// The moment from which a recording counts: a process's monotonic times mean nothing to the next one, their distances do.
#[derive(Clone, Copy, Debug)]
pub struct Zero(Instant);

impl Zero {
    /// Counts from this moment.
    pub fn new(zero: Instant) -> Self {
        Self(zero)
    }

    /// So many nanoseconds after the zero; before it, if negative. Exact for 292 years.
    pub fn ns(self, at: Instant) -> i64 {
        let ns = |distance: Duration| i64::try_from(distance.as_nanos()).unwrap_or(i64::MAX);
        match at.checked_duration_since(self.0) {
            Some(after) => ns(after),
            None => -ns(self.0.saturating_duration_since(at)),
        }
    }

    /// The moment so many nanoseconds after the zero; `None` where this machine's clock does not reach.
    pub fn at(self, ns: i64) -> Option<Instant> {
        let distance = Duration::from_nanos(ns.unsigned_abs());
        if ns < 0 { self.0.checked_sub(distance) } else { self.0.checked_add(distance) }
    }
}

/// What is wrong with a form, and where in it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{problem}", if path.is_empty() { String::new() } else { format!("{path}: ") })]
pub struct Wrong {
    path: String,
    problem: String,
}

impl Wrong {
    /// That something else is wanted than what is there.
    pub fn wanted(wanted: &str, found: &Json) -> Self {
        let found: String = found.to_string().chars().take(FOUND_CHARS_MAX).collect();
        Self { path: String::new(), problem: format!("{found} is not {wanted}") }
    }

    /// The same, seen from the form that holds this one under a name.
    #[must_use]
    pub fn within(self, name: &str) -> Self {
        let path = if self.path.is_empty() { name.to_owned() } else { format!("{name}.{}", self.path) };
        Self { path, ..self }
    }
}

/// How much of what is wrong is repeated, characters: enough to find it in its line.
const FOUND_CHARS_MAX: usize = 60;

/// What has a form.
pub(crate) trait Write {
    /// Its form.
    fn write(&self, zero: Zero) -> Json;
}

/// What can be read back from its form, exactly.
pub(crate) trait Read: Sized {
    /// What was written.
    fn read(json: &Json, zero: Zero) -> Result<Self, Wrong>;
}

/// Puts a field into a form; nothing and empty lists are left out. A struct without any is there: left out it would be nothing.
pub(crate) fn put(form: &mut Map<String, Json>, name: &str, value: Json) {
    let nothing = match &value {
        Json::Null => true,
        Json::Array(entries) => entries.is_empty(),
        Json::Object(_) | Json::Bool(_) | Json::Number(_) | Json::String(_) => false,
    };
    if !nothing {
        form.insert(name.to_owned(), value);
    }
}

/// A field of a form; one that was left out is nothing.
pub(crate) fn field<T: Read>(form: &Json, name: &str, zero: Zero) -> Result<T, Wrong> {
    T::read(form.get(name).unwrap_or(&Json::Null), zero).map_err(|wrong| wrong.within(name))
}

/// Forms of structs that are only written: every field under its name.
macro_rules! written {
    ($($ty:ident { $($field:ident),+ $(,)? })+) => { $(
        impl Write for $ty {
            fn write(&self, zero: Zero) -> Json {
                let Self { $($field),+ } = self;
                let mut form = serde_json::Map::new();
                $(put(&mut form, stringify!($field), $field.write(zero));)+
                Json::Object(form)
            }
        }
    )+ };
}

/// Forms of structs that are read back, too.
macro_rules! fields {
    ($($ty:ident { $($field:ident),+ $(,)? })+) => {
        written! { $($ty { $($field),+ })+ }
        $(impl Read for $ty {
            fn read(json: &Json, zero: Zero) -> Result<Self, Wrong> {
                if !json.is_object() {
                    return Err(Wrong::wanted("an object", json));
                }
                Ok(Self { $($field: field(json, stringify!($field), zero)?),+ })
            }
        })+
    };
}

/// Forms of enums that are only written: the variant's word as `kind`, its fields beside it.
macro_rules! written_variants {
    ($($ty:ident { $($variant:ident $({ $($field:ident),+ })? $(($inner:ident))? = $word:literal),+ $(,)? })+) => { $(
        impl Write for $ty {
            #[allow(unused_variables, reason = "an enum without fields has no times")]
            fn write(&self, zero: Zero) -> Json {
                let mut form = serde_json::Map::new();
                match self {
                    $(Self::$variant $({ $($field),+ })? $(($inner))? => {
                        form.insert("kind".to_owned(), Json::from($word));
                        $($(put(&mut form, stringify!($field), $field.write(zero));)+)?
                        $(put(&mut form, stringify!($inner), $inner.write(zero));)?
                    })+
                }
                Json::Object(form)
            }
        }
    )+ };
}

/// Forms of enums that are read back, too.
macro_rules! variants {
    ($($ty:ident { $($variant:ident $({ $($field:ident),+ })? $(($inner:ident))? = $word:literal),+ $(,)? })+) => {
        written_variants! { $($ty { $($variant $({ $($field),+ })? $(($inner))? = $word),+ })+ }
        $(impl Read for $ty {
            fn read(json: &Json, zero: Zero) -> Result<Self, Wrong> {
                match json.get("kind").and_then(Json::as_str) {
                    $(Some($word) => Ok(Self::$variant
                        $({ $($field: field(json, stringify!($field), zero)?),+ })?
                        $((field(json, stringify!($inner), zero)?))?),)+
                    Some(_) | None => Err(Wrong::wanted(concat!("a ", stringify!($ty), " of this version"), json)),
                }
            }
        })+
    };
}

/// Forms of enums without fields: a word.
macro_rules! named {
    ($($ty:ident { $($variant:ident = $word:literal),+ $(,)? })+) => { $(
        impl Write for $ty {
            fn write(&self, _: Zero) -> Json {
                Json::from(match self { $(Self::$variant => $word),+ })
            }
        }
        impl Read for $ty {
            fn read(json: &Json, _: Zero) -> Result<Self, Wrong> {
                match json.as_str() {
                    $(Some($word) => Ok(Self::$variant),)+
                    Some(_) | None => Err(Wrong::wanted(concat!("a ", stringify!($ty)), json)),
                }
            }
        }
    )+ };
}

/// Forms of enums that have words of their own (`ALL`, `as_str`).
macro_rules! words {
    ($($ty:ident),+ $(,)?) => { $(
        impl Write for $ty {
            fn write(&self, _: Zero) -> Json {
                Json::from(self.as_str())
            }
        }
        impl Read for $ty {
            fn read(json: &Json, _: Zero) -> Result<Self, Wrong> {
                let known = $ty::ALL.iter().copied().find(|known| Some(known.as_str()) == json.as_str());
                known.ok_or_else(|| Wrong::wanted(concat!("a ", stringify!($ty)), json))
            }
        }
    )+ };
}

pub(crate) use {fields, named, variants, words, written, written_variants};

/// Whole numbers and the like, as JSON has them.
macro_rules! plain {
    ($($ty:ty: $read:expr, $wanted:literal;)+) => { $(
        impl Write for $ty {
            fn write(&self, _: Zero) -> Json {
                Json::from(*self)
            }
        }
        impl Read for $ty {
            fn read(json: &Json, _: Zero) -> Result<Self, Wrong> {
                let read: fn(&Json) -> Option<$ty> = $read;
                read(json).ok_or_else(|| Wrong::wanted($wanted, json))
            }
        }
    )+ };
}

plain! {
    bool: Json::as_bool, "true or false";
    u8: |json| json.as_u64()?.try_into().ok(), "a number of 0 to 255";
    u32: |json| json.as_u64()?.try_into().ok(), "a whole number of 32 bits";
    u64: Json::as_u64, "a whole number";
    usize: |json| json.as_u64()?.try_into().ok(), "a whole number";
}

/// A number that comes back as it was: JSON's where its text does, else its shortest text. `serde_json` reads a number of more
/// digits than any device sends to the nearest but one.
impl Write for f64 {
    fn write(&self, _: Zero) -> Json {
        let plain = Json::from(*self);
        let back = serde_json::from_str::<Json>(&plain.to_string()).ok().and_then(|json| json.as_f64());
        if back.is_some_and(|back| back.to_bits() == self.to_bits()) {
            return plain;
        }
        serde_json::json!({ "number": format!("{self:?}") })
    }
}

impl Read for f64 {
    fn read(json: &Json, _: Zero) -> Result<Self, Wrong> {
        let written = || json.get("number")?.as_str()?.parse().ok();
        json.as_f64().or_else(written).ok_or_else(|| Wrong::wanted("a number", json))
    }
}

impl Write for Duration {
    /// Nanoseconds.
    fn write(&self, _: Zero) -> Json {
        Json::from(u64::try_from(self.as_nanos()).unwrap_or(u64::MAX))
    }
}

impl Read for Duration {
    fn read(json: &Json, _: Zero) -> Result<Self, Wrong> {
        json.as_u64().map(Self::from_nanos).ok_or_else(|| Wrong::wanted("a duration in nanoseconds", json))
    }
}

impl Write for Instant {
    /// Nanoseconds after the recording's zero.
    fn write(&self, zero: Zero) -> Json {
        Json::from(zero.ns(*self))
    }
}

impl Read for Instant {
    fn read(json: &Json, zero: Zero) -> Result<Self, Wrong> {
        let at = json.as_i64().and_then(|ns| zero.at(ns));
        at.ok_or_else(|| Wrong::wanted("a time in nanoseconds after the beginning", json))
    }
}

impl Write for &str {
    fn write(&self, _: Zero) -> Json {
        Json::from(*self)
    }
}

impl Write for String {
    fn write(&self, _: Zero) -> Json {
        Json::from(self.as_str())
    }
}

impl Write for Arc<str> {
    fn write(&self, _: Zero) -> Json {
        Json::from(&**self)
    }
}

impl Read for Arc<str> {
    fn read(json: &Json, _: Zero) -> Result<Self, Wrong> {
        json.as_str().map(Into::into).ok_or_else(|| Wrong::wanted("a text", json))
    }
}

impl Write for OpId {
    fn write(&self, _: Zero) -> Json {
        Json::from(self.as_str())
    }
}

impl Read for OpId {
    fn read(json: &Json, _: Zero) -> Result<Self, Wrong> {
        json.as_str().map(Self::new).ok_or_else(|| Wrong::wanted("an operation's id", json))
    }
}

impl Write for DeviceId {
    fn write(&self, _: Zero) -> Json {
        Json::from(self.as_str())
    }
}

impl Read for DeviceId {
    fn read(json: &Json, _: Zero) -> Result<Self, Wrong> {
        let id = json.as_str().and_then(|text| Self::new(text).ok());
        id.ok_or_else(|| Wrong::wanted("a device's id", json))
    }
}

impl Write for CallerId {
    /// The key; one that several go by is `{"shared": key}`.
    fn write(&self, _: Zero) -> Json {
        if self.is_shared() { serde_json::json!({ "shared": self.as_str() }) } else { Json::from(self.as_str()) }
    }
}

impl Read for CallerId {
    fn read(json: &Json, _: Zero) -> Result<Self, Wrong> {
        let shared = || json.get("shared").and_then(Json::as_str).map(Self::shared);
        json.as_str().map(Self::new).or_else(shared).ok_or_else(|| Wrong::wanted("a caller", json))
    }
}

impl Write for Value {
    fn write(&self, zero: Zero) -> Json {
        match self {
            Self::Bool(value) => Json::from(*value),
            Self::Integer(value) => Json::from(*value),
            Self::Number(value) => value.write(zero),
            Self::Text(text) => text.write(zero),
        }
    }
}

impl Read for Value {
    fn read(json: &Json, zero: Zero) -> Result<Self, Wrong> {
        let whole = || json.as_i64().and_then(|whole| i32::try_from(whole).ok());
        match json {
            Json::Bool(value) => Ok(Self::Bool(*value)),
            Json::String(text) => Ok(Self::Text(text.as_str().into())),
            Json::Number(number) if !number.is_f64() => {
                whole().map(Self::Integer).ok_or_else(|| Wrong::wanted("a whole number of 32 bits", json))
            }
            Json::Number(_) | Json::Object(_) => f64::read(json, zero).map(Self::Number),
            Json::Null | Json::Array(_) => Err(Wrong::wanted("a value", json)),
        }
    }
}

impl<T: Write> Write for Option<T> {
    fn write(&self, zero: Zero) -> Json {
        self.as_ref().map_or(Json::Null, |value| value.write(zero))
    }
}

impl<T: Read> Read for Option<T> {
    fn read(json: &Json, zero: Zero) -> Result<Self, Wrong> {
        if json.is_null() { Ok(None) } else { T::read(json, zero).map(Some) }
    }
}

impl<T: Write> Write for Box<T> {
    fn write(&self, zero: Zero) -> Json {
        (**self).write(zero)
    }
}

impl<T: Read> Read for Box<T> {
    fn read(json: &Json, zero: Zero) -> Result<Self, Wrong> {
        T::read(json, zero).map(Self::new)
    }
}

impl<T: Write> Write for Arc<T> {
    fn write(&self, zero: Zero) -> Json {
        (**self).write(zero)
    }
}

impl<T: Read> Read for Arc<T> {
    fn read(json: &Json, zero: Zero) -> Result<Self, Wrong> {
        T::read(json, zero).map(Self::new)
    }
}

impl<T: Write> Write for Vec<T> {
    fn write(&self, zero: Zero) -> Json {
        self.iter().map(|entry| entry.write(zero)).collect()
    }
}

impl<T: Read> Read for Vec<T> {
    fn read(json: &Json, zero: Zero) -> Result<Self, Wrong> {
        match json {
            Json::Null => Ok(Self::new()),
            Json::Array(entries) => entries
                .iter()
                .enumerate()
                .map(|(at, entry)| T::read(entry, zero).map_err(|wrong| wrong.within(&at.to_string())))
                .collect(),
            Json::Bool(_) | Json::Number(_) | Json::String(_) | Json::Object(_) => Err(Wrong::wanted("a list", json)),
        }
    }
}

impl<T: Write + Ord> Write for BTreeSet<T> {
    fn write(&self, zero: Zero) -> Json {
        self.iter().map(|entry| entry.write(zero)).collect()
    }
}

impl<T: Read + Ord> Read for BTreeSet<T> {
    fn read(json: &Json, zero: Zero) -> Result<Self, Wrong> {
        Vec::read(json, zero).map(|entries| entries.into_iter().collect())
    }
}

/// By name.
impl<T: Write> Write for BTreeMap<Arc<str>, T> {
    fn write(&self, zero: Zero) -> Json {
        Json::Object(self.iter().map(|(name, value)| (name.to_string(), value.write(zero))).collect())
    }
}

impl<T: Read> Read for BTreeMap<Arc<str>, T> {
    fn read(json: &Json, zero: Zero) -> Result<Self, Wrong> {
        match json {
            Json::Null => Ok(Self::new()),
            Json::Object(entries) => {
                let entry = |(name, value): (&String, &Json)| {
                    let value = T::read(value, zero).map_err(|wrong| wrong.within(name))?;
                    Ok((name.as_str().into(), value))
                };
                entries.iter().map(entry).collect()
            }
            Json::Bool(_) | Json::Number(_) | Json::String(_) | Json::Array(_) => Err(Wrong::wanted("an object", json)),
        }
    }
}

/// Several in a row.
macro_rules! tuples {
    ($($len:literal: $($name:ident $at:tt),+;)+) => { $(
        impl<$($name: Write),+> Write for ($($name,)+) {
            fn write(&self, zero: Zero) -> Json {
                Json::Array(vec![$(self.$at.write(zero)),+])
            }
        }
        impl<$($name: Read),+> Read for ($($name,)+) {
            fn read(json: &Json, zero: Zero) -> Result<Self, Wrong> {
                match json.as_array() {
                    Some(entries) if entries.len() == $len => Ok(($($name::read(&entries[$at], zero)?,)+)),
                    Some(_) | None => Err(Wrong::wanted(concat!($len, " in a list"), json)),
                }
            }
        }
    )+ };
}

tuples! {
    2: A 0, B 1;
    3: A 0, B 1, C 2;
}
