//! Scenes: prepared wishes for several devices under one name (semantics 7.1).

use super::Label;
use crate::property::{DeviceId, PropertyName, Value};

/// How many members a scene may have: as many as a large room has devices, few enough to be sent side by side within the
/// time of a call. One more is an error of the configuration.
pub const MEMBERS_MAX: usize = 32;

/// A scene, as the owner set it up.
#[derive(Clone, Debug, PartialEq)]
pub struct Scene {
    /// What it is called.
    pub label: Label,
    /// What it wishes for, 1 to [`MEMBERS_MAX`].
    pub members: Vec<Member>,
}

/// One wish of a scene.
#[derive(Clone, Debug, PartialEq)]
pub struct Member {
    /// The device.
    pub device: DeviceId,
    /// The property.
    pub property: PropertyName,
    /// What it shall be; checked against the device's description when the scene is activated.
    pub value: Value,
    /// Whether the scene counts as done only with it.
    pub required: bool,
}
