//! The short form of an answer, for voice endpoints (answers, *Two voices*): one text item that a model on a small line
//! reads whole. Made from the same facts as the whole answer, in an order of its own: what decides comes first.

use serde_json::{Map, Value as Json};

use super::{Rendered, ResultWord};
use crate::{authz::Style, names::Lang};

/// The longest text item of an endpoint, bytes of UTF-8: the official access point counts all tool results of a turn
/// against 8 KiB, and its model loses the end of what is long.
pub const ENDPOINT_BYTES_MAX: usize = 1024;

/// How many entries of each list are shown, tried in turn until the text fits; as many as a list has rows at most.
const LIST_LIMITS: [usize; 5] = [8, 5, 3, 2, 1];

/// The fields that may be left out, the first of them first. What is not here always stays: `success`, `result`, `next`,
/// `code`, `operation`, the counts, and `correction`.
const DROPPED_IN_ORDER: [&str; 12] = [
    "eta_s",
    "age_s",
    "trust",
    "stage",
    "reason",
    "devices",
    "not_confirmed",
    "device_state",
    "allowed",
    "parameter",
    "candidates",
    "device",
];

/// What goes back to an endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndpointAnswer {
    /// The one text item: `say`, a line of JSON, the note; at most [`ENDPOINT_BYTES_MAX`] bytes.
    pub text: String,
    /// The protocol's `isError`, always to be written out.
    pub is_error: bool,
    /// The sentence alone, to stand beside `isError`: a relay hands its model nothing but this of a failure.
    pub error: Option<String>,
}

/// How much of an answer is shown.
#[derive(Clone, Copy)]
struct Cut {
    /// Entries of each list and map.
    entries: usize,
    /// Whether rows of a list are more than names.
    rows: bool,
    /// Whether the note is there.
    note: bool,
    /// How many of [`DROPPED_IN_ORDER`] are left out.
    dropped: usize,
}

impl Rendered {
    /// The answer in the style of an endpoint. [`Style::Structured`] is as [`Style::Text`]: an endpoint has no second part.
    ///
    /// Above [`ENDPOINT_BYTES_MAX`] it is shortened, and says so: lists are cut and counted (`more`), then the note is left
    /// out, then fields. `say` is never cut.
    pub fn for_endpoint(&self, style: Style) -> EndpointAnswer {
        let text = self.short_text();
        match style {
            Style::Text | Style::Structured => EndpointAnswer { text, is_error: false, error: None },
            Style::IsError => {
                EndpointAnswer { text, is_error: self.is_error, error: self.is_error.then(|| self.say.clone()) }
            }
        }
    }

    fn short_text(&self) -> String {
        let with_note = LIST_LIMITS.iter().map(|entries| Cut { entries: *entries, rows: true, note: true, dropped: 0 });
        let names = LIST_LIMITS.iter().map(|entries| Cut { entries: *entries, rows: false, note: true, dropped: 0 });
        // The last three before the note goes would show next to nothing of a list that a person asked for.
        let bare = LIST_LIMITS.iter().map(|entries| Cut { entries: *entries, rows: false, note: false, dropped: 0 });
        let fewer = (1..=DROPPED_IN_ORDER.len()).map(|dropped| Cut { entries: 0, rows: false, note: false, dropped });
        let mut all = with_note.take(1).chain(names.take(3)).chain(bare).chain(fewer);
        all.find_map(|cut| Some(self.at(cut)).filter(|text| text.len() <= ENDPOINT_BYTES_MAX)).unwrap_or_else(|| {
            // Sentences and names have bounds of their own, so this is for a sentence that is written wrongly one day:
            // the other side would lose the whole of a longer text.
            let least = Cut { entries: 0, rows: false, note: false, dropped: DROPPED_IN_ORDER.len() };
            let mut text = self.at(least);
            text.truncate(text.floor_char_boundary(ENDPOINT_BYTES_MAX));
            text
        })
    }

    /// The text with so much of it.
    fn at(&self, cut: Cut) -> String {
        let mut line = Line { cut, fields: Vec::new(), shortened: cut.dropped > 0 };
        let answer = self.structured.as_object();
        for (name, value) in answer.iter().flat_map(|answer| FIELDS.iter().filter_map(|f| Some((*f, answer.get(*f)?))))
        {
            line.put(name, value, self.result);
        }
        // A refusal's reason is what it is called.
        if self.structured.get("reason").is_none() && self.structured.get("success") == Some(&Json::Bool(false)) {
            line.insert_reason(self.structured.get("outcome"));
        }
        let note = self.note.as_ref().filter(|_| cut.note);
        line.shortened |= self.note.is_some() && note.is_none();
        let line = line.json();
        match (note, self.lang) {
            (None, _) => format!("{}\n{line}", self.say),
            (Some(note), Lang::En) => format!("{}\n{line}\n(To the assistant: {note})", self.say),
            (Some(note), Lang::Zh) => format!("{}\n{line}\n（给助手：{note}）", self.say),
        }
    }
}

/// The fields of the short form, in their order: what decides, what to do, what there is to choose from, then the rest.
const FIELDS: [&str; 25] = [
    "success",
    "result",
    "next",
    "code",
    "confirm",
    "danger",
    "correction",
    "stage",
    "reason",
    "device",
    "device_state",
    "trust",
    "age_s",
    "candidates",
    "near",
    "parameter",
    "allowed",
    "confirmed",
    "of",
    "not_confirmed",
    "devices",
    "more",
    "eta_s",
    "pong",
    "operation",
];

/// A line of JSON in the making.
struct Line {
    cut: Cut,
    fields: Vec<(&'static str, Json)>,
    shortened: bool,
}

impl Line {
    fn put(&mut self, name: &'static str, value: &Json, result: ResultWord) {
        if DROPPED_IN_ORDER.iter().take(self.cut.dropped).any(|dropped| *dropped == name) {
            return;
        }
        let Cut { entries, rows, .. } = self.cut;
        let value = match (name, value) {
            // Nothing to be done goes without saying, and `stage` of what went well as well.
            ("next", Json::String(next)) if next == "none" => return,
            ("stage", _) if result == ResultWord::Confirmed => return,
            // What is near may not be taken, only told; the sentence tells it.
            ("candidates" | "near" | "danger", Json::Array(all)) => self.first(all.clone(), entries),
            ("allowed", Json::String(listed)) => {
                let all: Vec<&str> = listed.split(", ").collect();
                self.shortened |= all.len() > entries;
                Json::from(all.into_iter().take(entries).collect::<Vec<_>>().join(", "))
            }
            ("device_state", Json::Object(all)) => {
                self.shortened |= all.len() > entries;
                Json::Object(all.iter().take(entries).map(|(k, v)| (k.clone(), v.clone())).collect())
            }
            ("devices", Json::Array(all)) => {
                let short = all.iter().map(|row| row_of(row, &["device", "state", "online"], rows)).collect();
                self.shortened |= !rows;
                self.counted(short, entries)
            }
            ("not_confirmed", Json::Array(all)) => {
                let short = all.iter().map(|row| row_of(row, &["device", "outcome"], rows)).collect();
                self.shortened |= !rows;
                self.counted(short, entries)
            }
            ("correction", Json::Array(all)) => {
                let short = all.iter().map(|row| row_of(row, &["device", "result"], true)).collect();
                self.first(short, entries)
            }
            ("more", more) => {
                self.add_more(more.as_u64().unwrap_or(0));
                return;
            }
            (_, value) => value.clone(),
        };
        if value.as_array().is_none_or(|all| !all.is_empty()) && value.as_object().is_none_or(|all| !all.is_empty()) {
            self.fields.push((name, value));
        }
    }

    fn first(&mut self, mut all: Vec<Json>, entries: usize) -> Json {
        self.shortened |= all.len() > entries;
        all.truncate(entries);
        Json::Array(all)
    }

    /// As [`Self::first`], with what is left out in `more`.
    fn counted(&mut self, all: Vec<Json>, entries: usize) -> Json {
        self.add_more(all.len().saturating_sub(entries) as u64);
        self.first(all, entries)
    }

    fn add_more(&mut self, more: u64) {
        match self.fields.iter_mut().find(|(name, _)| *name == "more") {
            Some((_, known)) => *known = Json::from(known.as_u64().unwrap_or(0) + more),
            None if more > 0 => self.fields.push(("more", Json::from(more))),
            None => {}
        }
    }

    fn insert_reason(&mut self, outcome: Option<&Json>) {
        let place = FIELDS.iter().position(|f| *f == "reason");
        let before = |name: &str| FIELDS.iter().position(|f| *f == name) < place;
        let at = self.fields.iter().position(|(name, _)| !before(name)).unwrap_or(self.fields.len());
        let left_out = DROPPED_IN_ORDER.iter().take(self.cut.dropped).any(|dropped| *dropped == "reason");
        if let Some(outcome) = outcome.filter(|_| !left_out) {
            self.fields.insert(at, ("reason", outcome.clone()));
        }
    }

    fn json(self) -> String {
        let mut all: Vec<String> = self.fields.iter().map(|(name, value)| format!("\"{name}\":{value}")).collect();
        if self.shortened {
            all.push("\"shortened\":true".to_owned());
        }
        format!("{{{}}}", all.join(","))
    }
}

/// One row: a few of its fields, or its first alone. What is online says so by not saying it.
fn row_of(row: &Json, fields: &[&str], whole: bool) -> Json {
    let Json::Object(row) = row else { return row.clone() };
    if !whole {
        return fields.first().and_then(|first| row.get(*first)).cloned().unwrap_or_default();
    }
    let kept = fields.iter().filter_map(|f| Some((*f, row.get(*f)?)));
    let kept = kept.filter(|(f, value)| !(*f == "online" && **value == Json::Bool(true)));
    let kept = kept.filter(|(_, value)| value.as_object().is_none_or(|map| !map.is_empty()));
    Json::Object(kept.map(|(f, value)| (f.to_owned(), value.clone())).collect::<Map<_, _>>())
}
