//! What a setting is: a key with a type, a default and what is allowed; how it is read from a TOML scalar and
//! written as one.

use std::{fmt, net::SocketAddr};

use crate::{
    names::Lang,
    property::{Confirm, Evidence},
};

/// A value as the file has it.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Scalar {
    /// A whole number.
    Number(i64),
    /// A string.
    Text(String),
    /// `true` or `false`.
    Flag(bool),
    /// An array of strings.
    List(Vec<String>),
}

impl fmt::Display for Scalar {
    /// As TOML.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => write!(f, "{number}"),
            Self::Text(text) => write!(f, "{}", toml::Value::String(text.clone())),
            Self::Flag(flag) => write!(f, "{flag}"),
            Self::List(texts) => {
                let texts: Vec<String> =
                    texts.iter().map(|text| toml::Value::String(text.clone()).to_string()).collect();
                write!(f, "[{}]", texts.join(", "))
            }
        }
    }
}

/// What a key takes.
#[derive(Clone, Copy, Debug)]
pub(super) enum Allowed {
    /// A whole number in a range, both ends allowed.
    Number {
        /// The smallest.
        min: u32,
        /// The largest.
        max: u32,
    },
    /// An IP address and port.
    Address,
    /// `true` or `false`.
    Flag,
    /// One of these words.
    Words(&'static [&'static str]),
    /// A text of a certain form; whether it has it, the type of the key says.
    Form {
        /// The longest, characters.
        chars_max: usize,
        /// The form, as an example.
        form: &'static str,
    },
    /// A text without line breaks, not empty.
    Text {
        /// The longest, characters.
        chars_max: usize,
    },
    /// A text that is never shown.
    Secret {
        /// The longest, characters.
        chars_max: usize,
    },
    /// Texts without line breaks, none of them empty; there may be none.
    List {
        /// The most.
        entries_max: usize,
        /// The longest, characters.
        chars_max: usize,
    },
}

impl Allowed {
    /// Whether the value is of the sort and in the range.
    pub(super) fn takes(self, scalar: &Scalar) -> bool {
        match (self, scalar) {
            (Self::Number { min, max }, Scalar::Number(number)) => (i64::from(min)..=i64::from(max)).contains(number),
            (Self::Address, Scalar::Text(text)) => text.parse::<SocketAddr>().is_ok(),
            (Self::Words(words), Scalar::Text(text)) => words.contains(&text.as_str()),
            (
                Self::Text { chars_max } | Self::Form { chars_max, .. } | Self::Secret { chars_max },
                Scalar::Text(text),
            ) => is_line(text, chars_max),
            (Self::List { entries_max, chars_max }, Scalar::List(texts)) => {
                texts.len() <= entries_max && texts.iter().all(|text| is_line(text, chars_max))
            }
            (Self::Flag, Scalar::Flag(_)) => true,
            (
                Self::Number { .. }
                | Self::Address
                | Self::Words(_)
                | Self::Text { .. }
                | Self::Form { .. }
                | Self::Secret { .. }
                | Self::List { .. }
                | Self::Flag,
                Scalar::Number(_) | Scalar::Text(_) | Scalar::List(_) | Scalar::Flag(_),
            ) => false,
        }
    }

    /// How a value that is not taken is called in an error.
    pub(super) fn found(self, scalar: &Scalar) -> String {
        match (self, scalar) {
            (Self::Secret { .. }, Scalar::Text(text)) => format!("a text of {} characters", text.chars().count()),
            _ => scalar.to_string(),
        }
    }
}

fn is_line(text: &str, chars_max: usize) -> bool {
    text.chars().count() <= chars_max && !text.trim().is_empty() && !text.chars().any(char::is_control)
}

impl fmt::Display for Allowed {
    /// As a noun for errors and for the example file.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number { min, max } => write!(f, "a whole number from {min} to {max}"),
            Self::Flag => f.write_str("true or false"),
            Self::Address => write!(f, "an IP address and port such as \"127.0.0.1:1883\""),
            Self::Words(words) => {
                let words: Vec<String> = words.iter().map(|word| format!("{word:?}")).collect();
                f.write_str(&words.join(" or "))
            }
            Self::Form { form, .. } => write!(f, "a text of the form {form:?}"),
            Self::Text { chars_max } | Self::Secret { chars_max } => {
                write!(f, "a text of 1 to {chars_max} characters without line breaks")
            }
            Self::List { entries_max, chars_max } => {
                write!(
                    f,
                    "a list of at most {entries_max} texts of 1 to {chars_max} characters such as [\"study\", \"lamp\"]"
                )
            }
        }
    }
}

/// One key of a section.
pub(super) struct Key<S> {
    /// Its name, units last.
    pub(super) name: &'static str,
    /// Its documentation, line by line, each with the leading space of a doc comment.
    pub(super) doc: &'static [&'static str],
    /// What it takes.
    pub(super) allowed: Allowed,
    /// Reads the field; `None` if it is not set.
    pub(super) get: fn(&S) -> Option<Scalar>,
    /// Writes the field with a value that `allowed` takes; `false` if it does not fit the field's type.
    pub(super) set: fn(&mut S, &Scalar) -> bool,
}

/// A group of keys.
pub(super) trait Section: Default + 'static {
    /// What it is about, line by line, each with the leading space of a doc comment.
    const ABOUT: &'static [&'static str];
    /// Its keys, in the order of the example file.
    const KEYS: &'static [Key<Self>];
}

/// A type that a key can have.
pub(super) trait Setting: Sized {
    /// As the file has it; `None` if it is not set.
    fn scalar(&self) -> Option<Scalar>;
    /// From the file; `None` if it does not fit.
    fn from_scalar(scalar: &Scalar) -> Option<Self>;
}

impl Setting for u32 {
    fn scalar(&self) -> Option<Scalar> {
        Some(Scalar::Number(i64::from(*self)))
    }

    fn from_scalar(scalar: &Scalar) -> Option<Self> {
        number(scalar)
    }
}

impl Setting for u16 {
    fn scalar(&self) -> Option<Scalar> {
        Some(Scalar::Number(i64::from(*self)))
    }

    fn from_scalar(scalar: &Scalar) -> Option<Self> {
        number(scalar)
    }
}

impl Setting for usize {
    fn scalar(&self) -> Option<Scalar> {
        i64::try_from(*self).ok().map(Scalar::Number)
    }

    fn from_scalar(scalar: &Scalar) -> Option<Self> {
        number(scalar)
    }
}

impl Setting for SocketAddr {
    fn scalar(&self) -> Option<Scalar> {
        Some(Scalar::Text(self.to_string()))
    }

    fn from_scalar(scalar: &Scalar) -> Option<Self> {
        text(scalar)?.parse().ok()
    }
}

impl Setting for String {
    fn scalar(&self) -> Option<Scalar> {
        Some(Scalar::Text(self.clone()))
    }

    fn from_scalar(scalar: &Scalar) -> Option<Self> {
        text(scalar).map(|text| text.trim().to_owned())
    }
}

/// Whether the names that a device proposes for its properties count (semantics 2.9).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Proposals {
    /// They do not.
    #[default]
    Ignore,
    /// The owner accepts them.
    Accept,
}

/// Whether operations and set points are written down.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Keeping {
    /// They are.
    #[default]
    On,
    /// Nothing is.
    Off,
}

impl Setting for Keeping {
    fn scalar(&self) -> Option<Scalar> {
        let word = match self {
            Self::On => "on",
            Self::Off => "off",
        };
        Some(Scalar::Text(word.to_owned()))
    }

    fn from_scalar(scalar: &Scalar) -> Option<Self> {
        match text(scalar)? {
            "on" => Some(Self::On),
            "off" => Some(Self::Off),
            _ => None,
        }
    }
}

impl Setting for Proposals {
    fn scalar(&self) -> Option<Scalar> {
        let word = match self {
            Self::Ignore => "ignore",
            Self::Accept => "accept",
        };
        Some(Scalar::Text(word.to_owned()))
    }

    fn from_scalar(scalar: &Scalar) -> Option<Self> {
        match text(scalar)? {
            "ignore" => Some(Self::Ignore),
            "accept" => Some(Self::Accept),
            _ => None,
        }
    }
}

impl Setting for Vec<String> {
    fn scalar(&self) -> Option<Scalar> {
        Some(Scalar::List(self.clone()))
    }

    fn from_scalar(scalar: &Scalar) -> Option<Self> {
        match scalar {
            Scalar::List(texts) => Some(texts.iter().map(|text| text.trim().to_owned()).collect()),
            Scalar::Number(_) | Scalar::Text(_) | Scalar::Flag(_) => None,
        }
    }
}

impl Setting for Lang {
    fn scalar(&self) -> Option<Scalar> {
        let word = match self {
            Self::En => "en",
            Self::Zh => "zh",
        };
        Some(Scalar::Text(word.to_owned()))
    }

    fn from_scalar(scalar: &Scalar) -> Option<Self> {
        match text(scalar)? {
            "en" => Some(Self::En),
            "zh" => Some(Self::Zh),
            _ => None,
        }
    }
}

impl Setting for Evidence {
    fn scalar(&self) -> Option<Scalar> {
        Some(Scalar::Text(self.as_str().to_owned()))
    }

    /// Only what can be required: never less than `firmware` (semantics 3.5).
    fn from_scalar(scalar: &Scalar) -> Option<Self> {
        [Self::Firmware, Self::Pin, Self::Sensor].into_iter().find(|e| Some(e.as_str()) == text(scalar))
    }
}

impl Setting for bool {
    fn scalar(&self) -> Option<Scalar> {
        Some(Scalar::Flag(*self))
    }

    fn from_scalar(scalar: &Scalar) -> Option<Self> {
        match scalar {
            Scalar::Flag(flag) => Some(*flag),
            Scalar::Number(_) | Scalar::Text(_) | Scalar::List(_) => None,
        }
    }
}

impl Setting for Confirm {
    fn scalar(&self) -> Option<Scalar> {
        Some(Scalar::Text(self.as_str().to_owned()))
    }

    fn from_scalar(scalar: &Scalar) -> Option<Self> {
        Self::ALL.iter().copied().find(|how| Some(how.as_str()) == text(scalar))
    }
}

impl<T: Setting> Setting for Option<T> {
    fn scalar(&self) -> Option<Scalar> {
        self.as_ref().and_then(Setting::scalar)
    }

    fn from_scalar(scalar: &Scalar) -> Option<Self> {
        T::from_scalar(scalar).map(Some)
    }
}

/// Declares settings that are one of some words.
macro_rules! word_setting {
    ($($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $word:literal,)+ })+) => {
        $($(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name { $($(#[$vdoc])* $variant,)+ }

        impl $name {
            /// The words that are taken.
            pub const WORDS: &[&str] = &[$($word),+];
        }

        impl Setting for $name {
            fn scalar(&self) -> Option<Scalar> {
                let word = match self { $(Self::$variant => $word,)+ };
                Some(Scalar::Text(word.to_owned()))
            }

            fn from_scalar(scalar: &Scalar) -> Option<Self> {
                match text(scalar)? {
                    $($word => Some(Self::$variant),)+
                    _ => None,
                }
            }
        })+
    };
}

word_setting! {
    /// Whether HTTP clients need a token.
    Tokens {
        /// On this machine they do not.
        Optional = "optional",
        /// All do.
        Required = "required",
    }
    /// Whether devices connect with TLS.
    TlsMode {
        /// None does.
        Off = "off",
        /// Those who want to do, on the same port.
        Both = "both",
        /// All do.
        Only = "only",
    }
    /// The kind of an access point, where its URL does not tell.
    Profile {
        /// The vendor's, or one that works as it does.
        Official = "official",
        /// A self-hosted relay.
        Relay = "relay",
    }
    /// The form in which an access point is told of a failure (answers, *Two voices*).
    FailureStyle {
        /// As any answer: the access point hands no errors to its model.
        Text = "text",
        /// As an error with the sentence in it: for relays that speak it as it stands.
        IsError = "is_error",
    }
}

fn number<T: TryFrom<i64>>(scalar: &Scalar) -> Option<T> {
    match scalar {
        Scalar::Number(number) => T::try_from(*number).ok(),
        Scalar::Text(_) | Scalar::List(_) | Scalar::Flag(_) => None,
    }
}

fn text(scalar: &Scalar) -> Option<&str> {
    match scalar {
        Scalar::Text(text) => Some(text),
        Scalar::Number(_) | Scalar::List(_) | Scalar::Flag(_) => None,
    }
}
