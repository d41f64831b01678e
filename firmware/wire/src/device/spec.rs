//! What a board says that it has.

use serde::Serialize;

use crate::{
    scalar::Scalar,
    words::{ClassWord, EvidenceWord, KindWord, OnWithdraw, RoleWord},
};

/// What a board has.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Description<'a> {
    /// Its properties.
    pub properties: &'a [PropertySpec<'a>],
    /// Its actions.
    #[serde(skip_serializing_if = "is_empty")]
    pub actions: &'a [ActionSpec<'a>],
    /// Groups of properties of which one moves at a time (semantics 4.5).
    #[serde(skip_serializing_if = "is_empty")]
    pub exclusive: &'a [&'a [&'a str]],
}

/// What an output goes to by itself when the hub has been gone (semantics 6.4).
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Failsafe<'a> {
    /// The value, of the property's kind.
    pub value: &'a Scalar,
    /// How long the hub must have been gone, milliseconds.
    pub after_ms: u32,
}

/// One property of a description; the fields are those of *Description* in the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[expect(missing_docs, reason = "the protocol's own document explains the fields, once")]
pub struct PropertySpec<'a> {
    pub name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<RoleWord>,
    pub kind: KindWord,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unit: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tolerance: Option<f64>,
    #[serde(skip_serializing_if = "is_empty")]
    pub values: &'a [&'a str],
    #[serde(skip_serializing_if = "Option::is_none")]
    pub class: Option<ClassWord>,
    pub feedback: EvidenceWord,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected_ms: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stable_ms: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_interval_ms: Option<u32>,
    pub settable: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repeatable: Option<bool>,
    #[serde(skip_serializing_if = "is_false")]
    pub clamps: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_withdraw: Option<OnWithdraw>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failsafe: Option<Failsafe<'a>>,
}

impl<'a> PropertySpec<'a> {
    /// A property that can be set and has nothing else to say.
    pub const fn new(name: &'a str, kind: KindWord, feedback: EvidenceWord) -> Self {
        Self {
            name,
            label: None,
            role: None,
            kind,
            unit: None,
            min: None,
            max: None,
            step: None,
            tolerance: None,
            values: &[],
            class: None,
            feedback,
            expected_ms: None,
            stable_ms: None,
            min_interval_ms: None,
            settable: true,
            repeatable: None,
            clamps: false,
            on_withdraw: None,
            failsafe: None,
        }
    }
}

/// One action of a description.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ActionSpec<'a> {
    /// Its name.
    pub name: &'a str,
    /// What it acts on, to a person: of a lock, a door, a heater it can do harm.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<RoleWord>,
    /// What its `completed` stands on; [`EvidenceWord::None`] if the device cannot tell whether it was done and so never
    /// says `completed`. Absent: [`EvidenceWord::Firmware`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub feedback: Option<EvidenceWord>,
    /// How long it takes, milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected_ms: Option<u32>,
    /// Whether doing it twice does no harm.
    pub repeatable: bool,
}

impl<'a> ActionSpec<'a> {
    /// An action that has nothing else to say.
    pub const fn new(name: &'a str, repeatable: bool) -> Self {
        Self { name, role: None, feedback: None, expected_ms: None, repeatable }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_false(value: &bool) -> bool {
    !*value
}

fn is_empty<T>(list: &&[T]) -> bool {
    list.is_empty()
}
