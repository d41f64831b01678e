//! What devices say that they have, and the owner's terms over it.

use serde_json::Value as Json;

use super::plain::{Read, Write, Wrong, Zero, field, fields, named, put, variants, words, written, written_variants};
use crate::property::{
    Action, Choice, Class, Confirm, Confirmation, Description, Evidence, Failsafe, Kind, Predicate, Property, Role,
    Terms, Verify,
};

words! { Evidence, Confirm }

named! {
    Kind {
        Bool = "bool",
        Integer = "integer",
        Number = "number",
        Enum = "enum",
        Text = "text",
        Colour = "colour",
    }
    Role {
        Light = "light",
        Socket = "socket",
        Lock = "lock",
        Door = "door",
        Blind = "blind",
        Valve = "valve",
        Heater = "heater",
        Fan = "fan",
        Pump = "pump",
        Sensor = "sensor",
        Other = "other",
    }
    Class {
        Momentary = "momentary",
        Held = "held",
    }
    Choice {
        Equals = "equals",
        Within = "within",
        AtLeast = "at_least",
        AtMost = "at_most",
        Approaches = "approaches",
    }
}

variants! {
    Predicate {
        Equals(value) = "equals",
        Within { target, abs } = "within",
        OneOf(values) = "one_of",
        AtLeast(number) = "at_least",
        AtMost(number) = "at_most",
        ChangesBy(number) = "changes_by",
        Approaches { target, by } = "approaches",
    }
}

fields! {
    Description { properties, exclusive, actions, labels, level }
    Property {
        name, role, kind, unit, min, max, step, tolerance, values, class, feedback, expected_ms, stable_ms, min_interval_ms,
        settable, repeatable, terms,
    }
    Action { name, role, feedback, expected_ms, repeatable, confirmation }
    Terms { predicate, required, clamps, failsafe, by_action, verify, accepted, confirmation, sensitive }
    Failsafe { value, after_ms }
    Verify { device, property, expect, within_ms, sensitive }
    Confirmation { how, strange_role, press }
}
