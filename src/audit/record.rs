//! The form of a record; the table in the module's head says what each field means.

use jiff::Timestamp;
use serde_json::{Map, Value as Json};

use super::{LINE_BYTES_MAX, mask::cut};

/// The version of the form.
pub const VERSION: u32 = 1;

/// Longest of the user's words, characters: a model is asked for twenty.
pub const WORDS_CHARS_MAX: usize = 200;

/// Longest name, value or word of a client, characters.
pub const HEARD_CHARS_MAX: usize = 64;

/// Longest sentence, characters: one item of speech with its corrections.
pub const SAY_CHARS_MAX: usize = 600;

/// Most things of one call: the members of a scene.
const THINGS_MAX: usize = 32;

/// Most arguments of one call: no tool has so many.
const ARGUMENTS_MAX: usize = 16;

/// What a record is about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Event {
    /// A call.
    Call,
    /// A call that was turned away before anything of it was looked at.
    TurnedAway,
    /// A step of a confirmation other than a call.
    Confirmation,
    /// The owner says that something which was said to be done was not.
    Dispute,
    /// One that a later version knows.
    #[default]
    #[serde(other)]
    Other,
}

/// One record.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(default)]
#[expect(missing_docs, reason = "the table in the module's head says what each is")]
pub struct Record {
    pub v: u32,
    pub event: Event,
    pub at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clock: Option<String>,
    pub caller: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_request: Option<String>,
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub arguments: Map<String, Json>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub heard: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub things: Vec<Thing>,
    #[serde(skip_serializing_if = "is_zero")]
    pub more_things: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stage: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confirmed_by: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refusal: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parameter: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sent: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub say: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operation: Option<String>,
    #[serde(skip_serializing_if = "is_false")]
    pub cancelled: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agreed: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// A thing that a call was about.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(default)]
#[expect(missing_docs, reason = "the text under the table in the module's head says what each is")]
pub struct Thing {
    pub device: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub property: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub action: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub want: Option<Want>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stage: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confirmed_by: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operation: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refusal: Option<String>,
    #[serde(skip_serializing_if = "is_false")]
    pub acknowledged: bool,
}

/// What was wanted of a thing.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Want {
    /// This value.
    To(Json),
    /// So much more.
    By(f64),
    /// The other of two values.
    Toggle,
}

impl Record {
    /// One of this version.
    pub fn new(event: Event, caller: &str) -> Self {
        Self { v: VERSION, event, caller: caller.to_owned(), ..Self::default() }
    }

    /// When it was, where that can be read.
    pub fn when(&self) -> Option<Timestamp> {
        self.at.parse().ok()
    }

    /// Whether the answer was one of success.
    pub fn is_success(&self) -> bool {
        self.result.as_deref() == Some("confirmed")
    }

    /// Whether the call moved something, or was to.
    pub fn wants_something(&self) -> bool {
        self.things.iter().any(|thing| thing.want.is_some() || thing.action.is_some())
    }

    /// Whether it stands for something that did not go as it should: no success, and no question either.
    pub fn is_failure(&self) -> bool {
        match self.event {
            Event::TurnedAway | Event::Dispute => true,
            Event::Call => {
                self.cancelled || matches!(self.result.as_deref(), Some("failed" | "unconfirmed" | "partly"))
            }
            Event::Confirmation | Event::Other => false,
        }
    }

    /// Its operations: its own, and those of its things.
    pub fn operations(&self) -> impl Iterator<Item = &str> {
        self.operation.iter().chain(self.things.iter().filter_map(|thing| thing.operation.as_ref())).map(String::as_str)
    }

    /// The line, with its newline; within [`LINE_BYTES_MAX`], for which the things may have to go.
    pub(super) fn line(&self) -> Vec<u8> {
        let text = |record: &Self| {
            let mut line = serde_json::to_vec(record).expect("texts, numbers and maps with text keys are always JSON");
            line.push(b'\n');
            line
        };
        let line = text(self);
        if line.len() <= LINE_BYTES_MAX {
            return line;
        }
        let things = self.things.len() + self.more_things;
        text(&Self { things: Vec::new(), more_things: things, arguments: Map::new(), ..self.clone() })
    }

    /// The same within all bounds.
    pub(super) fn within_bounds(mut self) -> Self {
        for (text, chars_max) in [
            (&mut self.user_request, WORDS_CHARS_MAX),
            (&mut self.note, WORDS_CHARS_MAX),
            (&mut self.say, SAY_CHARS_MAX),
            (&mut self.heard, HEARD_CHARS_MAX),
            (&mut self.sent, HEARD_CHARS_MAX),
            (&mut self.parameter, HEARD_CHARS_MAX),
            (&mut self.tool, HEARD_CHARS_MAX),
            (&mut self.session, HEARD_CHARS_MAX),
            (&mut self.reason, HEARD_CHARS_MAX),
        ] {
            if let Some(text) = text {
                cut(text, chars_max);
            }
        }
        cut(&mut self.caller, HEARD_CHARS_MAX);
        if self.things.len() > THINGS_MAX {
            self.more_things += self.things.len() - THINGS_MAX;
            self.things.truncate(THINGS_MAX);
        }
        if self.arguments.len() > ARGUMENTS_MAX {
            self.arguments = std::mem::take(&mut self.arguments).into_iter().take(ARGUMENTS_MAX).collect();
        }
        self
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde wants it so")]
fn is_zero(number: &usize) -> bool {
    *number == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde wants it so")]
fn is_false(flag: &bool) -> bool {
    !*flag
}
