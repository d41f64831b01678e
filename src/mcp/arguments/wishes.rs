//! The arguments that become wishes: states, numbers, modes, scenes.

use serde_json::Value as Json;

use super::{Given, Part, Refused, Request, Together, invalid, refused};
use crate::{
    answer::{colour, state_word, terms},
    mcp::house::{Entry, Group, SWITCH_WORDS},
    names::{Switch, ends},
    property::{Kind, Property, PropertyName, Value, ValueError},
    twin::{wish::Wish, words::Refusal},
};

/// The ways to change a number.
const HOW: [&str; 3] = ["to", "up_by", "down_by"];

impl<'a> Given<'a> {
    /// A device or a part of one that is switched.
    pub(super) fn switch(&self, entry: &Entry) -> Result<Request, Refused> {
        if !entry.heard() {
            self.state_word(&SWITCH_WORDS).map_err(|r| r.of(entry, None))?;
            return unheard(entry);
        }
        let property = match entry.switch() {
            Switch::One(property) => property,
            Switch::Several(properties) => return Err(self.which_part(entry, &properties)),
            Switch::None => return Err(nothing_to_switch(entry)),
        };
        let value = self.state_of(property).map_err(|r| r.of(entry, Some(&property.name)))?;
        Ok(Request::Set { device: entry.thing.device.clone(), wish: Wish::to(property.name.clone(), value) })
    }

    /// All of a group: one word for all, since all are of one role.
    pub(super) fn switch_group(&self, group: &Group) -> Result<Request, Refused> {
        let mut members = Vec::with_capacity(group.members.len());
        for entry in group.members.iter().filter_map(|at| self.house.entries().get(*at)) {
            let Switch::One(property) = entry.switch() else { continue };
            let wish = Wish::to(property.name.clone(), self.state_of(property)?);
            members.push(Part { device: entry.thing.device.clone(), wish, required: true });
        }
        Ok(Request::Together(Together { name: group.shown.clone(), is_scene: false, members }))
    }

    fn state_of(&self, property: &Property) -> Result<Value, Refused> {
        let (yes, no) = (state_word(true, property.role), state_word(false, property.role));
        let is_yes = self.state_word(&[yes, no])? == yes;
        Ok(match ends(property) {
            None => Value::Bool(is_yes),
            Some((closed, open)) => normal(property, &Value::Number(if is_yes { open } else { closed }))?,
        })
    }

    fn state_word(&self, allowed: &[&'static str]) -> Result<&'static str, Refused> {
        let listed = allowed.join(", ");
        let Some(word) = self.text("to", &listed)? else {
            return Err(refused(Refusal::MissingArgument { parameter: "to", allowed: listed }));
        };
        let known = allowed.iter().find(|known| word.eq_ignore_ascii_case(known)).copied();
        known.ok_or_else(|| invalid("to", &Json::from(word), listed))
    }

    /// One device has several switches of a kind: their names are the candidates.
    fn which_part(&self, entry: &Entry, properties: &[&Property]) -> Refused {
        let of = |property: &&Property| self.house.thing(&entry.thing.device, &property.name);
        let candidates = properties.iter().filter_map(of).map(|e| e.shown.clone()).collect();
        refused(Refusal::AmbiguousName { asked: entry.shown.clone(), candidates })
    }

    /// A number.
    pub(super) fn level(&self, entry: &Entry) -> Result<Request, Refused> {
        if !entry.heard() {
            return unheard(entry);
        }
        let property = self.property(entry, "level", entry.levels().collect())?;
        let about = |r: Refused| r.of(entry, Some(&property.name));
        let level = self.number(property).map_err(about)?;
        let how = self.text("how", &HOW.join(", ")).map_err(about)?.map(|how| how.to_lowercase());
        let wish = match how.as_deref() {
            None | Some("to") => Wish::to(property.name.clone(), normal(property, &level).map_err(about)?),
            Some(how @ ("up_by" | "down_by")) => {
                let amount = match level {
                    Value::Integer(amount) => f64::from(amount),
                    Value::Number(amount) => amount,
                    Value::Bool(_) | Value::Text(_) => 0.0,
                };
                if amount <= 0.0 {
                    return Err(about(invalid(
                        "level",
                        &Json::from(amount),
                        "more than 0 with up_by and down_by".into(),
                    )));
                }
                Wish::by(property.name.clone(), if how == "up_by" { amount } else { -amount })
            }
            Some(other) => return Err(about(invalid("how", &Json::from(other), HOW.join(", ")))),
        };
        Ok(Request::Set { device: entry.thing.device.clone(), wish })
    }

    /// A mode or a colour.
    pub(super) fn option(&self, entry: &Entry) -> Result<Request, Refused> {
        if !entry.heard() {
            return unheard(entry);
        }
        let property = self.property(entry, "option", entry.options().collect())?;
        let about = |r: Refused| r.of(entry, Some(&property.name));
        let listed = options_of(property).into_iter().map(terms::quoted).collect::<Vec<_>>().join(", ");
        let Some(word) = self.text("option", &listed).map_err(about)? else {
            return Err(about(refused(Refusal::MissingArgument { parameter: "option", allowed: listed })));
        };
        let named = (property.kind == Kind::Colour).then(|| colour::code(&word)).flatten();
        let value = Value::Text(named.unwrap_or(&word).into());
        let value = match property.normalise(&value) {
            Ok(value) => value,
            Err(_) if property.kind == Kind::Colour => {
                return Err(about(invalid("option", &Json::from(word), listed)));
            }
            Err(error) => return Err(about(wrong(property, error))),
        };
        Ok(Request::Set { device: entry.thing.device.clone(), wish: Wish::to(property.name.clone(), value) })
    }

    /// The property that is meant: as it was named, or the only one there is. `parameter`: what such a property is given.
    fn property<'e>(
        &self,
        entry: &'e Entry,
        parameter: &str,
        choices: Vec<&'e Property>,
    ) -> Result<&'e Property, Refused> {
        let names: Vec<PropertyName> = choices.iter().map(|p| p.name.clone()).collect();
        let listed = names.iter().map(|name| terms::quoted(name)).collect::<Vec<_>>().join(", ");
        let asked = self.text("property", &listed).map_err(|r| r.of(entry, None))?;
        let about = |refusal| refused(refusal).of(entry, None);
        let fixed = |asked: &String| entry.properties().find(|p| !p.settable && p.name.eq_ignore_ascii_case(asked));
        if let Some(property) = asked.as_ref().and_then(fixed) {
            return Err(about(Refusal::Forbidden { property: property.name.clone() }));
        }
        if choices.is_empty() && !entry.properties().any(|p| p.settable) {
            return Err(nothing_to_switch(entry));
        }
        match (asked, choices.as_slice()) {
            (None, [only]) => Ok(only),
            // What there is to set, it takes by another tool: a socket has no level, and is switched.
            (_, []) => {
                let known = entry.properties().filter(|p| p.settable).map(|p| p.name.clone()).collect();
                Err(about(Refusal::UnknownProperty { asked: parameter.to_owned(), known }))
            }
            (None, _) => Err(about(Refusal::MissingArgument { parameter: "property", allowed: listed })),
            (Some(asked), _) => {
                let exact = choices.iter().find(|p| *p.name == *asked);
                let loose = || choices.iter().find(|p| p.name.eq_ignore_ascii_case(&asked));
                let refusal = || Refusal::UnknownProperty { asked: super::shortened(&asked), known: names.clone() };
                exact.or_else(loose).copied().ok_or_else(|| about(refusal()))
            }
        }
    }

    /// A number; written as a text, it is one all the same.
    fn number(&self, property: &Property) -> Result<Value, Refused> {
        let allowed = range(property);
        let sent = match self.arguments.get("level") {
            None | Some(Json::Null) => None,
            Some(Json::String(text)) if text.trim().is_empty() => None,
            Some(sent) => Some(sent),
        };
        let Some(sent) = sent else {
            return Err(refused(Refusal::MissingArgument { parameter: "level", allowed }));
        };
        let number = match sent {
            Json::Number(number) => number.as_f64(),
            Json::String(text) => text.trim().parse().ok(),
            Json::Null | Json::Bool(_) | Json::Array(_) | Json::Object(_) => None,
        };
        match number.filter(|number: &f64| number.is_finite()) {
            Some(number) => Ok(Value::Number(number)),
            None => Err(invalid("level", sent, allowed)),
        }
    }

    /// Something that leaves no state.
    pub(super) fn action(&self, entry: &Entry) -> Result<Request, Refused> {
        if !entry.heard() {
            return unheard(entry);
        }
        let about = |r: Refused| r.of(entry, None);
        if !entry.writable {
            let property = entry.main().map_or_else(|| "".into(), |main| main.name.clone());
            return Err(about(refused(Refusal::Forbidden { property })));
        }
        let listed = entry.actions().map(|a| terms::quoted(&a.name)).collect::<Vec<_>>().join(", ");
        if listed.is_empty() {
            return Err(about(refused(Refusal::UnknownProperty { asked: "action".to_owned(), known: Vec::new() })));
        }
        let Some(asked) = self.text("action", &listed).map_err(about)? else {
            return Err(about(refused(Refusal::MissingArgument { parameter: "action", allowed: listed })));
        };
        let exact = entry.actions().find(|a| *a.name == *asked);
        let Some(action) = exact.or_else(|| entry.actions().find(|a| a.name.eq_ignore_ascii_case(&asked))) else {
            return Err(about(invalid("action", &Json::from(asked), listed)));
        };
        Ok(Request::Run { device: entry.thing.device.clone(), action: action.name.clone() })
    }

    /// A scene.
    pub(super) fn scene(&self) -> Result<Request, Refused> {
        let lang = self.house.lang();
        let listed = self.house.scenes().iter().map(|s| s.label.get(lang)).collect::<Vec<_>>().join(", ");
        let Some(asked) = self.text("scene", &listed)? else {
            return Err(refused(Refusal::MissingArgument { parameter: "scene", allowed: listed }));
        };
        let Some(scene) = self.house.scene(&asked) else {
            return Err(invalid("scene", &Json::from(asked), listed));
        };
        let part = |m: &crate::names::Member| Part {
            device: m.device.clone(),
            wish: Wish::to(m.property.clone(), m.value.clone()),
            required: m.required,
        };
        let members = scene.members.iter().map(part).collect();
        Ok(Request::Together(Together { name: scene.label.get(lang).to_owned(), is_scene: true, members }))
    }
}

/// What can be done with something is not known until it greets; that it may only be looked at, is.
fn unheard(entry: &Entry) -> Result<Request, Refused> {
    if entry.writable {
        return Ok(Request::Unheard { thing: entry.thing.clone() });
    }
    let property = entry.thing.property.clone().unwrap_or_else(|| "".into());
    Err(refused(Refusal::Forbidden { property }).of(entry, None))
}

/// The words that an option takes.
pub(in crate::mcp) fn options_of(property: &Property) -> Vec<&str> {
    match property.kind {
        Kind::Colour => colour::NAMES.iter().map(|(name, _)| *name).collect(),
        Kind::Bool | Kind::Integer | Kind::Number | Kind::Enum | Kind::Text => {
            property.values.iter().map(AsRef::as_ref).collect()
        }
    }
}

/// What a number may be, for the model.
fn range(property: &Property) -> String {
    let unit = property.unit.as_deref().and_then(terms::unit).map(|unit| format!(" {unit}")).unwrap_or_default();
    match (property.min, property.max) {
        (Some(min), Some(max)) => format!("{min} to {max}{unit}"),
        (Some(min), None) => format!("at least {min}{unit}"),
        (None, Some(max)) => format!("at most {max}{unit}"),
        (None, None) => "a number".to_owned(),
    }
}

fn normal(property: &Property, value: &Value) -> Result<Value, Refused> {
    property.normalise(value).map_err(|error| wrong(property, error))
}

fn wrong(property: &Property, error: ValueError) -> Refused {
    refused(Refusal::InvalidValue { property: property.name.clone(), error })
}

/// Nothing of the device is on or off: either it only tells something, or it is set in another way.
fn nothing_to_switch(entry: &Entry) -> Refused {
    match entry.main() {
        Some(main) if !entry.properties().any(|p| p.settable) => {
            let (property, actions) = (main.name.clone(), entry.actions().map(|a| a.name.clone()).collect::<Vec<_>>());
            let refusal = match actions.is_empty() {
                true => Refusal::Forbidden { property },
                false => Refusal::ActsOnly { property, actions },
            };
            refused(refusal).of(entry, Some(&main.name))
        }
        _ => {
            let known = entry.properties().filter(|p| p.settable).map(|p| p.name.clone()).collect();
            refused(Refusal::UnknownProperty { asked: "to".to_owned(), known }).of(entry, None)
        }
    }
}
