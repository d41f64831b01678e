//! Scenes in the file: `[[scene]]` with a name and members (semantics 7.1).

use std::fmt::Write as _;

use toml::{Spanned, de::DeValue};

use super::{
    Error, label,
    read::{Reader, in_order},
    schema::SceneText,
    setting::Section,
};
use crate::{
    names::{MEMBERS_MAX, Member, Scene},
    property::{DeviceId, Value},
};

/// The key that holds the scenes.
pub(super) const SCENE: &str = "scene";

/// The key in a scene that holds its members.
const MEMBERS: &str = "members";

/// How many scenes there may be. The catalogue names them all to a model; more than a screen of them nobody remembers.
const SCENES_MAX: usize = 64;

/// What stands in a member.
const MEMBER_KEYS: [&str; 4] = ["device", "property", "value", "required"];

/// Longest text value, bytes (wire protocol, *Bounds*).
const TEXT_BYTES_MAX: usize = 128;

impl Reader<'_> {
    /// The scenes, in the order of the file.
    pub(super) fn scenes(&mut self, value: &Spanned<DeValue<'_>>) -> Result<Vec<Scene>, Error> {
        let listed = self.array(SCENE, value, SCENES_MAX, "1 to 64 tables, each headed [[scene]]")?;
        let mut scenes: Vec<Scene> = Vec::new();
        for (at, value) in listed.iter().enumerate() {
            let path = format!("{SCENE}.{at}");
            let mut text = SceneText::default();
            let mut members = Vec::new();
            for (_, value) in self.section(&path, self.table(&path, value)?, &mut text, &[MEMBERS])? {
                members = self.members(&format!("{path}.{MEMBERS}"), value)?;
            }
            let Some(label) = label(text.name.as_ref(), text.name_zh.as_ref()) else {
                return Err(self.bad(value, path, "without a name", "name or name_zh"));
            };
            if members.is_empty() {
                return Err(self.bad(value, path, "without members", "1 to 32 members"));
            }
            let alike = |s: &&Scene| s.label.en == label.en || s.label.zh == label.zh;
            if scenes.iter().any(|s| alike(&s)) {
                return Err(self.bad(value, path, &format!("{:?} a second time", label.en), "a name of its own"));
            }
            scenes.push(Scene { label, members });
        }
        Ok(scenes)
    }

    fn members(&mut self, path: &str, value: &Spanned<DeValue<'_>>) -> Result<Vec<Member>, Error> {
        let listed = self.array(path, value, MEMBERS_MAX, "1 to 32 tables of device, property and value")?;
        let mut members = Vec::new();
        for (at, value) in listed.iter().enumerate() {
            let path = format!("{path}.{at}");
            let table = self.table(&path, value)?;
            if let Some((key, at, _)) = in_order(table).into_iter().find(|(key, _, _)| !MEMBER_KEYS.contains(key)) {
                let known: Vec<String> = MEMBER_KEYS.map(str::to_owned).to_vec();
                return Err(Error::UnknownKey {
                    place: self.place(at),
                    key: format!("{path}.{key}"),
                    near: None,
                    known,
                });
            }
            let text =
                |key| table.get(key).and_then(|v: &Spanned<DeValue<'_>>| v.get_ref().as_str()).map(str::to_owned);
            let device = text("device").and_then(|id| DeviceId::new(&id).ok());
            let property = text("property").filter(|name| (1..=32).contains(&name.len()));
            let wanted = table.get("value").and_then(|v| wish(v.get_ref()));
            let required = match table.get("required").map(|v| v.get_ref()) {
                None => Some(true),
                Some(DeValue::Boolean(required)) => Some(*required),
                Some(_) => None,
            };
            let wrong = |key: &str, allowed: &str| {
                let found =
                    if table.contains_key(key) { format!("with a wrong {key}") } else { format!("without {key}") };
                self.bad(table.get(key).unwrap_or(value), path.clone(), &found, allowed)
            };
            let Some(device) = device else { return Err(wrong("device", "a device's id")) };
            let Some(property) = property else { return Err(wrong("property", "a name of 1 to 32 bytes")) };
            let Some(wanted) = wanted else {
                return Err(wrong("value", "a value: true, false, a number, or a text of at most 128 bytes"));
            };
            let Some(required) = required else { return Err(wrong("required", "true or false")) };
            if members.iter().any(|m: &Member| m.device == device && *m.property == *property) {
                let found = format!("{property} of {device} a second time");
                return Err(self.bad(value, path, &found, "each property once"));
            }
            members.push(Member { device, property: property.into(), value: wanted, required });
        }
        Ok(members)
    }

    pub(super) fn array<'t, 'i>(
        &self,
        path: &str,
        value: &'t Spanned<DeValue<'i>>,
        max: usize,
        allowed: &str,
    ) -> Result<&'t [Spanned<DeValue<'i>>], Error> {
        match value.get_ref().as_array() {
            Some(array) if array.len() <= max => Ok(array),
            Some(array) => Err(self.bad(value, path.to_owned(), &format!("{} of them", array.len()), allowed)),
            None => {
                let found = format!("of type {}", value.get_ref().type_str());
                Err(self.bad(value, path.to_owned(), &found, allowed))
            }
        }
    }

    pub(super) fn bad(&self, value: &Spanned<DeValue<'_>>, key: String, found: &str, allowed: &str) -> Error {
        Error::Value {
            place: self.place(value.span().start),
            key,
            found: found.to_owned(),
            allowed: allowed.to_owned(),
        }
    }
}

/// A TOML scalar as a value; a whole number in `i32` stays whole.
fn wish(value: &DeValue<'_>) -> Option<Value> {
    match value {
        DeValue::Boolean(value) => Some(Value::Bool(*value)),
        DeValue::Integer(number) => i32::from_str_radix(number.as_str(), number.radix()).ok().map(Value::Integer),
        DeValue::Float(number) => number.as_str().parse().ok().filter(|n: &f64| n.is_finite()).map(Value::Number),
        DeValue::String(text) if text.len() <= TEXT_BYTES_MAX => Some(Value::Text(text.as_ref().into())),
        DeValue::String(_) | DeValue::Datetime(_) | DeValue::Array(_) | DeValue::Table(_) => None,
    }
}

/// The scenes as they stand in a file.
pub(super) fn written(scenes: &[Scene], prefix: &str) -> String {
    let mut out = String::new();
    for scene in scenes {
        let text = SceneText { name: Some(scene.label.en.clone()), name_zh: Some(scene.label.zh.clone()) };
        let _never_fails = writeln!(out, "{prefix}[[{SCENE}]]");
        for key in SceneText::KEYS {
            if let Some(value) = (key.get)(&text) {
                let _never_fails = writeln!(out, "{prefix}{} = {value}", key.name);
            }
        }
        let members = scene.members.iter().map(member).collect::<Vec<_>>().join(", ");
        let _never_fails = writeln!(out, "{prefix}{MEMBERS} = [{members}]\n");
    }
    out
}

fn member(member: &Member) -> String {
    let text = |text: &str| toml::Value::String(text.to_owned()).to_string();
    let value = match &member.value {
        Value::Bool(value) => value.to_string(),
        Value::Integer(value) => value.to_string(),
        Value::Number(value) => format!("{value:?}"),
        Value::Text(value) => text(value),
    };
    let required = if member.required { "" } else { ", required = false" };
    let (device, property) = (text(member.device.as_str()), text(&member.property));
    format!("{{ device = {device}, property = {property}, value = {value}{required} }}")
}
