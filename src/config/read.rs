//! From the text of the file to a [`Config`], with the place of each mistake.

use std::{collections::BTreeMap, fmt, sync::Arc};

use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

use super::{
    Config, Device, Error,
    callers::{CALLERS, ENDPOINT},
    scenes::SCENE,
    schema::{DeviceText, PropertySettings},
    setting::{Allowed, Scalar, Section},
};
use crate::property::DeviceId;

/// The keys at the top that hold sections.
pub(super) const SECTIONS: &[&str] = &[
    "mqtt",
    "accounts",
    "http",
    "timing",
    "limits",
    "journal",
    "recording",
    "confirm",
    CALLERS,
    ENDPOINT,
    "devices",
    SCENE,
];

/// The key in a device that holds its properties.
pub(super) const PROPERTIES: &str = "properties";

/// Longest name of a property, bytes (wire protocol, *Bounds*).
const PROPERTY_BYTES_MAX: usize = 32;

/// How near a known key must be to an unknown one to be offered: Jaro-Winkler similarity.
const NEAR: f64 = 0.8;

/// Where in a file something is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The file as it was named.
    pub file: Arc<str>,
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file, self.line, self.column)
    }
}

/// Reads a configuration; also says where each key stands, so that a rule that is broken later can name the line.
pub(super) fn read(file: &str, text: &str) -> Result<(Config, BTreeMap<String, Place>), Error> {
    let mut reader = Reader { file: file.into(), text, places: BTreeMap::new(), mistakes: Vec::new() };
    let parsed = DeTable::parse(text).map_err(|error| Error::Syntax {
        place: reader.place(error.span().map_or(0, |span| span.start)),
        message: error.message().trim_end().replace('\n', "; "),
    })?;
    let read = reader.config(parsed.get_ref());
    // What ended the reading may only follow from a mistake before it: a name that is missing because its key has a typo.
    Error::all(std::mem::take(&mut reader.mistakes))?;
    let config = read?;
    Ok((config, reader.places))
}

pub(super) struct Reader<'a> {
    file: Arc<str>,
    text: &'a str,
    places: BTreeMap<String, Place>,
    /// Keys and values that are wrong; reading goes on behind them, so that all are told at once.
    mistakes: Vec<Error>,
}

/// A key and its value, where the key is a table of its own and read by somebody else.
pub(super) type Inner<'t, 'i> = Vec<(&'t str, &'t Spanned<DeValue<'i>>)>;

impl Reader<'_> {
    fn config(&mut self, table: &DeTable<'_>) -> Result<Config, Error> {
        let mut config = Config::default();
        for (name, value) in self.section("", table, &mut config.top, SECTIONS)? {
            if name == SCENE {
                config.scenes = self.scenes(value)?;
                continue;
            }
            if name == ENDPOINT {
                config.endpoints = self.endpoints(value)?;
                continue;
            }
            let table = self.table(name, value)?;
            match name {
                CALLERS => config.callers = self.callers(table)?,
                "mqtt" => self.whole(name, table, &mut config.mqtt)?,
                "accounts" => self.whole(name, table, &mut config.accounts)?,
                "http" => self.whole(name, table, &mut config.http)?,
                "timing" => self.whole(name, table, &mut config.timing)?,
                "limits" => self.whole(name, table, &mut config.limits)?,
                "journal" => self.whole(name, table, &mut config.journal)?,
                "recording" => self.whole(name, table, &mut config.recording)?,
                "confirm" => self.whole(name, table, &mut config.confirm)?,
                _ => config.devices = self.devices(table)?,
            }
        }
        Ok(config)
    }

    fn devices(&mut self, devices: &DeTable<'_>) -> Result<BTreeMap<DeviceId, Device>, Error> {
        let mut found = BTreeMap::new();
        for (name, at, value) in in_order(devices) {
            let id = DeviceId::new(name).map_err(|_| Error::Value {
                place: self.place(at),
                key: "devices".to_owned(),
                found: format!("{name:?}"),
                allowed: "ids of 1 to 32 of a-z, 0-9, _ and -".to_owned(),
            })?;
            let path = format!("devices.{name}");
            let mut device = Device { text: DeviceText::default(), properties: BTreeMap::new() };
            for (_, value) in self.section(&path, self.table(&path, value)?, &mut device.text, &[PROPERTIES])? {
                let path = format!("{path}.{PROPERTIES}");
                for (property, at, value) in in_order(self.table(&path, value)?) {
                    if property.is_empty() || property.len() > PROPERTY_BYTES_MAX {
                        return Err(Error::Value {
                            place: self.place(at),
                            key: path,
                            found: format!("{property:?}"),
                            allowed: format!("names of 1 to {PROPERTY_BYTES_MAX} bytes"),
                        });
                    }
                    let path = format!("{path}.{property}");
                    let mut settings = PropertySettings::default();
                    self.whole(&path, self.table(&path, value)?, &mut settings)?;
                    device.properties.insert(property.into(), settings);
                }
            }
            found.insert(id, device);
        }
        Ok(found)
    }

    /// A section that holds nothing but its keys.
    pub(super) fn whole<S: Section>(&mut self, path: &str, table: &DeTable<'_>, into: &mut S) -> Result<(), Error> {
        self.section(path, table, into, &[]).map(drop)
    }

    /// Reads the keys of one section; those in `inner` are given back, all others must be known.
    pub(super) fn section<'t, 'i, S: Section>(
        &mut self,
        path: &str,
        table: &'t DeTable<'i>,
        into: &mut S,
        inner: &[&str],
    ) -> Result<Inner<'t, 'i>, Error> {
        let mut tables = Vec::new();
        for (name, at, value) in in_order(table) {
            let full = if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
            if inner.contains(&name) {
                tables.push((name, value));
                continue;
            }
            let Some(key) = S::KEYS.iter().find(|key| key.name == name) else {
                let allowed: Vec<&'static str> = S::KEYS.iter().map(|key| key.name).collect();
                let known = allowed.iter().copied().chain(inner.iter().copied());
                let known: Vec<String> = known.map(str::to_owned).collect();
                self.mistakes.push(Error::UnknownKey {
                    place: self.place(at),
                    key: full,
                    near: near(name, &known),
                    known,
                });
                continue;
            };
            let at = value.span().start;
            match scalar(value.get_ref()) {
                Some(scalar) if key.allowed.takes(&scalar) && (key.set)(into, &scalar) => {}
                Some(scalar) => {
                    self.mistakes.push(self.wrong(at, full, key.allowed.found(&scalar), key.allowed));
                    continue;
                }
                None => {
                    let found = format!("of type {}", value.get_ref().type_str());
                    self.mistakes.push(self.wrong(at, full, found, key.allowed));
                    continue;
                }
            }
            self.places.insert(full, self.place(at));
        }
        Ok(tables)
    }

    pub(super) fn table<'t, 'i>(&self, key: &str, value: &'t Spanned<DeValue<'i>>) -> Result<&'t DeTable<'i>, Error> {
        value.get_ref().as_table().ok_or_else(|| Error::Value {
            place: self.place(value.span().start),
            key: key.to_owned(),
            found: format!("of type {}", value.get_ref().type_str()),
            allowed: "a table".to_owned(),
        })
    }

    fn wrong(&self, at: usize, key: String, found: String, allowed: Allowed) -> Error {
        Error::Value { place: self.place(at), key, found, allowed: allowed.to_string() }
    }

    pub(super) fn place(&self, at: usize) -> Place {
        let before = self.text.get(..at).unwrap_or(self.text);
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        Place {
            file: self.file.clone(),
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
        }
    }
}

/// The entries in the order of the file, so that the first mistake in it is the one that is reported.
pub(super) fn in_order<'t, 'i>(table: &'t DeTable<'i>) -> Vec<(&'t str, usize, &'t Spanned<DeValue<'i>>)> {
    let mut entries: Vec<_> = table.iter().map(|(key, value)| (&**key.get_ref(), key.span().start, value)).collect();
    entries.sort_by_key(|(_, at, _)| *at);
    entries
}

fn scalar(value: &DeValue<'_>) -> Option<Scalar> {
    match value {
        DeValue::String(text) => Some(Scalar::Text(text.clone().into_owned())),
        DeValue::Integer(number) => i64::from_str_radix(number.as_str(), number.radix()).ok().map(Scalar::Number),
        DeValue::Array(values) => {
            let texts = values.iter().map(|value| value.get_ref().as_str().map(str::to_owned));
            texts.collect::<Option<_>>().map(Scalar::List)
        }
        DeValue::Boolean(flag) => Some(Scalar::Flag(*flag)),
        DeValue::Float(_) | DeValue::Datetime(_) | DeValue::Table(_) => None,
    }
}

fn near(name: &str, known: &[String]) -> Option<String> {
    let scored = known.iter().map(|key| (strsim::jaro_winkler(key, name), key));
    scored.filter(|(score, _)| *score >= NEAR).max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, key)| key.clone())
}
