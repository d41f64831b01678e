//! Every setting, with its unit, its default and what is allowed; the file it comes from, and the rules between
//! settings.
//!
//! No file is needed. A file names only what it changes; an unknown key or an impossible value is an error with the
//! line and what is allowed, because a setting that is silently ignored is a lie about what the hub does.
//! `deploy/truetwin.toml` is the example, generated from the table in `schema.rs`.
//!
//! Knows nothing of sockets, of the data folder or of devices that connect: it only says what the owner wants.

mod callers;
mod notes;
mod overrides;
mod read;
mod rules;
mod scenes;
mod schema;
mod setting;
mod show;
mod terms;

use std::{
    collections::BTreeMap,
    io::{self, Read as _},
    path::{Path, PathBuf},
    time::Duration,
};

pub use self::{
    callers::{Callers, SecretText, TokenError, endpoint_token},
    read::Place,
    rules::Broken,
    schema::{
        AccountsSettings, CallerText, Confirmations, DeviceText, EndpointText, Http, JournalSettings, Limits, Mqtt,
        PropertySettings, Recording, SELECTOR_CHARS_MAX, SELECTORS_MAX, SceneText, Timing, Top,
    },
    setting::{FailureStyle, Keeping, Profile, Proposals, TlsMode, Tokens},
    terms::{Accepted, ByAction, Expect, Sensor},
};
use crate::{
    names::{Label, Lang, Name, Part, Scene},
    property::{DeviceId, PropertyName},
};

/// The largest file that is read, bytes: room for some thousand devices, too little to fill the memory by a wrong path.
const FILE_BYTES_MAX: u64 = 1_048_576;

/// All settings in force.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Config {
    /// Those at the top of the file.
    pub top: Top,
    /// Where devices connect.
    pub mqtt: Mqtt,
    /// What service accounts have.
    pub accounts: AccountsSettings,
    /// Where MCP clients connect.
    pub http: Http,
    /// How long things may take.
    pub timing: Timing,
    /// How much may wait.
    pub limits: Limits,
    /// What is written down.
    pub journal: JournalSettings,
    /// What is recorded for a replay.
    pub recording: Recording,
    /// How people agree to what can do harm.
    pub confirm: Confirmations,
    /// What callers on this machine may.
    pub callers: Callers,
    /// The access points, in the order of the file.
    pub endpoints: Vec<EndpointText>,
    /// What the owner says about single devices, whether or not they have credentials.
    pub devices: BTreeMap<DeviceId, Device>,
    /// The scenes, in the order of the file.
    pub scenes: Vec<Scene>,
}

/// What the owner says about one device.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Device {
    /// Its names, as they stand in the file.
    pub text: DeviceText,
    /// Its properties.
    pub properties: BTreeMap<PropertyName, PropertySettings>,
}

/// Why there is no configuration. The text names the file, the line and what is allowed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file cannot be read.
    #[error("cannot read the configuration {}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The file is too long.
    #[error("the configuration {} has more than {FILE_BYTES_MAX} bytes", path.display())]
    TooLong {
        /// The file.
        path: PathBuf,
    },
    /// The file is no TOML.
    #[error("{place}: {message}")]
    Syntax {
        /// Where.
        place: Place,
        /// What the TOML reader says.
        message: String,
    },
    /// A key that there is not.
    #[error(
        "{place}: unknown key {key}{}; known here: {}",
        near.as_ref().map(|near| format!(", did you mean {near}?")).unwrap_or_default(),
        known.join(", ")
    )]
    UnknownKey {
        /// Where.
        place: Place,
        /// The key with its section.
        key: String,
        /// The known key that is nearest, if one is near.
        near: Option<String>,
        /// The keys that are known in this section.
        known: Vec<String>,
    },
    /// A value that the key does not take.
    #[error("{place}: {key} is {found}; it takes {allowed}")]
    Value {
        /// Where.
        place: Place,
        /// The key with its section.
        key: String,
        /// What was found.
        found: String,
        /// What is allowed, as a noun.
        allowed: String,
    },
    /// A token in a file that others can read.
    #[error(
        "{place}: {key} holds a token, and others may read the file (mode {mode:04o}); mend it with: chmod 600 {}",
        path.display()
    )]
    Exposed {
        /// Where.
        place: Place,
        /// The key with its section.
        key: String,
        /// The file's mode.
        mode: u32,
        /// The file.
        path: PathBuf,
    },
    /// A rule between settings that does not hold.
    #[error("{}{broken}", place.as_ref().map(|place| format!("{place}: ")).unwrap_or_default())]
    Rule {
        /// Where the key stands, if it is in the file.
        place: Option<Place>,
        /// The rule.
        broken: Broken,
    },
    /// More than one of these.
    #[error("{} mistakes:{}", .0.len(), listed(.0))]
    Several(Vec<Self>),
}

/// Mistakes of one file that are told at once; it is mended before one has read more.
const MISTAKES_MAX: usize = 20;

fn listed(mistakes: &[Error]) -> String {
    let shown = mistakes.iter().take(MISTAKES_MAX).map(|mistake| format!("\n  {mistake}"));
    let more = mistakes.len().saturating_sub(MISTAKES_MAX);
    let more = if more > 0 { format!("\n  and {more} more") } else { String::new() };
    shown.chain([more]).collect()
}

impl Error {
    /// Nothing, the one, or all of them.
    fn all(mut mistakes: Vec<Self>) -> Result<(), Self> {
        match mistakes.len() {
            0 => Ok(()),
            1 => Err(mistakes.remove(0)),
            _ => Err(Self::Several(mistakes)),
        }
    }
}

impl Config {
    /// Reads and checks a file; without one, the defaults.
    ///
    /// # Errors
    /// [`Error`] if it cannot be read, is no TOML, or holds an unknown key, an impossible value or a combination that
    /// [`Config::check`] refuses.
    pub fn load(path: Option<&Path>) -> Result<Self, Error> {
        let Some(path) = path else { return Ok(Self::default()) };
        let unreadable = |source| Error::Unreadable { path: path.to_owned(), source };
        let mut text = String::new();
        let file = std::fs::File::open(path).map_err(unreadable)?;
        file.take(FILE_BYTES_MAX + 1).read_to_string(&mut text).map_err(unreadable)?;
        if text.len() as u64 > FILE_BYTES_MAX {
            return Err(Error::TooLong { path: path.to_owned() });
        }
        let (mut config, places) = Self::parse_with_places(&path.display().to_string(), &text)?;
        callers::check_file(&config, &places, path)?;
        callers::anchor(&mut config, path);
        Ok(config)
    }

    /// Reads and checks the text of a file; `file` is what errors call it.
    ///
    /// # Errors
    /// As [`Config::load`].
    pub fn parse(file: &str, text: &str) -> Result<Self, Error> {
        Self::parse_with_places(file, text).map(|(config, _)| config)
    }

    fn parse_with_places(file: &str, text: &str) -> Result<(Self, BTreeMap<String, Place>), Error> {
        let (config, places) = read::read(file, text)?;
        let broken = rules::check(&config).into_iter();
        Error::all(broken.map(|broken| Error::Rule { place: places.get(broken.key).cloned(), broken }).collect())?;
        Ok((config, places))
    }

    /// Checks the rules between settings (semantics 4.8, 4.9); to be called again after the command line has changed
    /// something.
    ///
    /// # Errors
    /// [`Error::Rule`], or several of them.
    pub fn check(&self) -> Result<(), Error> {
        Error::all(rules::check(self).into_iter().map(|broken| Error::Rule { place: None, broken }).collect())
    }

    /// The example file: every key with its documentation at its default.
    pub fn example() -> String {
        show::example()
    }

    /// What is in force, as a file that gives the same again.
    pub fn in_force(&self) -> String {
        show::in_force(self)
    }

    /// The language where a client does not ask for one.
    pub fn language(&self) -> Lang {
        self.top.language
    }

    /// What a device is called and where it is; without a word from the owner its id is its name (semantics 2.9).
    pub fn name(&self, id: &DeviceId) -> Name {
        let text = self.devices.get(id).map(|device| &device.text);
        let named = text.and_then(|text| label(text.name.as_ref(), text.name_zh.as_ref()));
        let room = text.and_then(|text| label(text.room.as_ref(), text.room_zh.as_ref()));
        let properties = self.devices.get(id).map(|device| &device.properties);
        let part = |(property, settings): (&PropertyName, &PropertySettings)| {
            let name = label(settings.name.as_ref(), settings.name_zh.as_ref());
            let room = label(settings.room.as_ref(), settings.room_zh.as_ref());
            (name.is_some() || room.is_some()).then(|| Part { property: property.clone(), label: name, room })
        };
        Name {
            device: id.clone(),
            label: named.unwrap_or_else(|| Label::same(id.as_str())),
            room,
            parts: properties.into_iter().flatten().filter_map(part).collect(),
            proposals: text.is_some_and(|text| text.proposed_names == Proposals::Accept),
        }
    }

    /// The scenes.
    pub fn scenes(&self) -> std::sync::Arc<[Scene]> {
        self.scenes.clone().into()
    }

    /// The buttons that confirmations wait for.
    pub fn buttons(&self) -> Vec<(DeviceId, PropertyName)> {
        let properties = self.devices.values().flat_map(|device| device.properties.values());
        let named = properties.filter_map(|settings| settings.press_with.as_ref());
        named.map(|button| (button.device.clone(), button.property.clone())).collect()
    }

    /// What the owner says about one property, if anything.
    pub fn property(&self, device: &DeviceId, property: &str) -> Option<&PropertySettings> {
        self.devices.get(device)?.properties.get(property)
    }
}

impl Timing {
    /// The longest that an operation takes until the device begins: to its connection, to its acknowledgement, to its
    /// task (semantics 4.9).
    pub fn begin(&self) -> Duration {
        ms(self.broker_ms) + ms(self.ack_ms) + ms(self.start_ms)
    }

    /// How long a device may be silent until it is suspected: two and a half heartbeats, so that one lost and one
    /// late do no harm (semantics 5.5).
    pub fn suspected_after(&self) -> Duration {
        ms(self.heartbeat_ms) * 5 / 2
    }
}

/// A setting in milliseconds as a duration.
pub fn ms(setting_ms: u32) -> Duration {
    Duration::from_millis(u64::from(setting_ms))
}

fn label(en: Option<&String>, zh: Option<&String>) -> Option<Label> {
    let (en, zh) = (en.or(zh)?, zh.or(en)?);
    Some(Label { en: en.clone(), zh: zh.clone() })
}
