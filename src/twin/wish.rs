//! What a caller may want, and who wants it: the shape that tools, fleet and twin share.
//!
//! A wish is what the caller said. What becomes of it (joining, superseding, turns) is decided by the twin.

use std::{fmt, sync::Arc, time::Duration};

use crate::property::{PropertyName, Value};

/// Who asks: an opaque key, the same for all calls of one session (semantics 1, *Caller*). Turns are taken by it (4.5), and
/// what is owed is owed to it (6.3).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallerId {
    key: Arc<str>,
    shared: bool,
}

impl CallerId {
    /// Takes a key as it stands.
    pub fn new(text: &str) -> Self {
        Self { key: text.into(), shared: false }
    }

    /// A key that several callers go by who cannot be told apart.
    pub fn shared(text: &str) -> Self {
        Self { key: text.into(), shared: true }
    }

    /// Whether several callers may go by it: what one of them heard, another did not.
    pub fn is_shared(&self) -> bool {
        self.shared
    }

    /// The key as text, for logs.
    pub fn as_str(&self) -> &str {
        &self.key
    }
}

impl fmt::Display for CallerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.key)
    }
}

/// A value that a caller wants a property to have.
#[derive(Clone, Debug, PartialEq)]
pub struct Wish {
    /// The property.
    pub property: PropertyName,
    /// What it shall be.
    pub target: Target,
    /// Only if it is not so already: a value that is not older than this answers without sending (semantics 3.8).
    pub if_needed: Option<Duration>,
    /// How long a held wish is valid (semantics 6.2); `None`: until it is changed.
    pub valid_for: Option<Duration>,
}

impl Wish {
    /// A wish for a value, as the caller gave it.
    pub fn to(property: impl Into<PropertyName>, value: Value) -> Self {
        Self::new(property, Target::To(value))
    }

    /// A wish to move a number by so much (semantics 4.6).
    pub fn by(property: impl Into<PropertyName>, amount: f64) -> Self {
        Self::new(property, Target::By(amount))
    }

    /// A wish for the other of two values (semantics 4.6).
    pub fn toggle(property: impl Into<PropertyName>) -> Self {
        Self::new(property, Target::Toggle)
    }

    fn new(property: impl Into<PropertyName>, target: Target) -> Self {
        Self { property: property.into(), target, if_needed: None, valid_for: None }
    }
}

/// What a property shall be.
#[derive(Clone, Debug, PartialEq)]
pub enum Target {
    /// This value.
    To(Value),
    /// So much more than it is, in the property's unit; less, if negative. Becomes absolute on the hub (semantics 4.6).
    By(f64),
    /// The other of two values. Becomes absolute on the hub (semantics 4.6).
    Toggle,
}

impl Target {
    /// The value, where the caller has named one.
    pub fn value(&self) -> Option<&Value> {
        match self {
            Self::To(value) => Some(value),
            Self::By(_) | Self::Toggle => None,
        }
    }
}

/// The name of an action of a device, 1 to 32 bytes, as properties are named.
pub type ActionName = Arc<str>;

/// The arguments of an action: flat, each a name and a scalar; may be empty.
pub type Arguments = Vec<(Arc<str>, Value)>;
