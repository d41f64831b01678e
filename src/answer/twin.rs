//! A device as a whole, as a resource shows it: facts for a program, no sentence. It tells no more than the tools tell.

use serde_json::{Map, Value as Json};

use super::{Naming, json_value, operation, other::role_word, terms, unless_sensitive};
use crate::{
    names::Lang,
    property::{Evidence, Property, Value},
    twin::{
        view::View,
        words::{HeldWish, Presence, Settled},
    },
};

/// What of a device is shown, and under which names.
#[derive(Clone, Debug)]
pub struct Whole<'a> {
    /// Its id: `board`, or `board.relay2` for a part.
    pub id: &'a str,
    /// What it is called.
    pub naming: &'a Naming,
    /// Its room.
    pub room: Option<&'a str>,
    /// The properties that are shown, in the device's order; empty until it has greeted.
    pub properties: Vec<&'a Property>,
    /// What the property or action of the latest operation is called; without it, that operation is not shown.
    pub latest: Option<&'a Naming>,
}

/// The twin as JSON. `view` holds nothing of what is not shown ([`View::of`]).
pub fn twin(view: &View, whole: &Whole<'_>, lang: Lang) -> Json {
    let mut facts = Map::new();
    facts.insert("id".into(), whole.id.into());
    facts.insert("device".into(), whole.naming.device.as_str().into());
    if let Some(room) = whole.room {
        facts.insert("room".into(), room.into());
    }
    let state = &view.state;
    facts.insert("role".into(), role_word(whole.naming.role).into());
    facts.insert("online".into(), (state.presence != Presence::Offline).into());
    facts.insert("presence".into(), state.presence.as_str().into());
    if let Some(heard) = state.last_heard {
        facts.insert("last_heard_s".into(), heard.as_secs().into());
    }
    if whole.naming.level > 0 {
        facts.insert("level".into(), whole.naming.level.into());
    }
    let properties: Map<String, Json> =
        whole.properties.iter().map(|p| (p.name.to_string(), property(view, p))).collect();
    facts.insert("properties".into(), properties.into());
    if let Some((settled, naming)) = view.latest.as_ref().zip(whole.latest) {
        facts.insert("last_operation".into(), latest(settled, naming, lang));
    }
    facts.into()
}

/// One property: what it is, what it was reported as, what is wished of it.
fn property(view: &View, property: &Property) -> Json {
    let state = &view.state;
    let name = &property.name;
    // What is not to be told is shown as being there, no more (semantics 7.3).
    let value = |value: &Value| json_value(&unless_sensitive(value, property.terms.sensitive), property.role);
    let mut facts = Map::new();
    facts.insert("role".into(), role_word(property.role).into());
    facts.insert("settable".into(), property.settable.into());
    if let Some(unit) = property.unit.as_deref().and_then(terms::unit) {
        facts.insert("unit".into(), unit.into());
    }
    match state.readings.iter().find(|(known, _)| known == name) {
        Some((_, reading)) => {
            facts.insert("value".into(), value(&reading.value));
            facts.insert("trust".into(), reading.trust.as_str().into());
            facts.insert("age_s".into(), reading.age.as_secs().into());
            facts.insert("confirmed_by".into(), reading.evidence.as_str().into());
        }
        // Never reported: said as such, so that a missing value is not taken for `false`.
        None => {
            facts.insert("trust".into(), "unknown".into());
            facts.insert("confirmed_by".into(), Evidence::None.as_str().into());
        }
    }
    if let Some((_, wished)) = view.desired.iter().find(|(known, _)| known == name) {
        facts.insert("desired".into(), value(wished));
    }
    if state.moving.contains(name) {
        facts.insert("moving".into(), true.into());
    }
    if state.reverted.contains(name) {
        facts.insert("reverted".into(), true.into());
    }
    if let Some(wish) = state.held.iter().find(|held| held.property == *name) {
        facts.insert("held".into(), held(wish, value(&wish.value)));
    }
    facts.into()
}

fn held(wish: &HeldWish, value: Json) -> Json {
    let mut facts = Map::new();
    facts.insert("value".into(), value);
    facts.insert("state".into(), wish.state.as_str().into());
    if let Some(reason) = wish.reason {
        facts.insert("reason".into(), reason.as_str().into());
    }
    if let Some(valid) = wish.valid_for {
        facts.insert("valid_for_s".into(), valid.as_secs().into());
    }
    facts.into()
}

/// The latest operation, as `check_operation` tells it, but for what is said of it.
fn latest(settled: &Settled, naming: &Naming, lang: Lang) -> Json {
    let mut told = operation(settled, naming, lang).structured;
    if let Some(facts) = told.as_object_mut() {
        for said in ["say", "note", "next", "device"] {
            facts.remove(said);
        }
        facts.insert("property".into(), settled.property.to_string().into());
        if naming.sensitive {
            for value in ["device_state", "superseded_by", "measured"] {
                facts.remove(value);
            }
        }
    }
    told
}
