//! JSON as it stands, before anything is made of it: keys in order and twice if they are there twice, because
//! `serde_json::Value` would silently keep the last one.

use std::{borrow::Cow, fmt, ops::Deref};

use serde::de::{self, Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};

use super::{DecodeError, shown};
use crate::{
    limits::{DEPTH_MAX, EVENT_BYTES_MAX},
    words::ErrorWord,
};

/// A text as it stands in the message, copied only where escapes had to be taken out of it: a report has some twenty, and a hub
/// under load reads thousands of reports a second.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Text<'a>(Cow<'a, str>);

impl Deref for Text<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

/// One JSON value.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Node<'a> {
    Null,
    Bool(bool),
    /// A number without a fraction and an exponent that fits.
    Integer(i128),
    Number(f64),
    Text(Text<'a>),
    List(Vec<Node<'a>>),
    Object(Vec<(Text<'a>, Node<'a>)>),
}

/// Reads bytes as one JSON object of at most 2 KiB and depth 4 without a key twice.
pub(super) fn read(bytes: &[u8]) -> Result<Vec<(Text<'_>, Node<'_>)>, DecodeError> {
    if bytes.len() > EVENT_BYTES_MAX {
        return Err(DecodeError::new(None, ErrorWord::TooLong, None, Some("at most 2048 bytes")));
    }
    let node = serde_json::from_slice(bytes).map_err(|error| no_json(bytes, &error))?;
    let Node::Object(fields) = node else {
        return Err(DecodeError::new(None, ErrorWord::NotAnObject, None, Some("one JSON object")));
    };
    let seq = fields.iter().find(|(key, _)| **key == *"seq").and_then(|(_, node)| node.as_u32());
    check(&fields, &Path::Top, 1)
        .map_err(|(reason, path, allowed)| DecodeError::new(seq, reason, Some(&path), Some(allowed)))?;
    Ok(fields)
}

impl Node<'_> {
    pub(super) fn as_text(&self) -> Option<&str> {
        if let Self::Text(text) = self { Some(text) } else { None }
    }

    pub(super) fn as_u32(&self) -> Option<u32> {
        if let Self::Integer(v) = self { u32::try_from(*v).ok() } else { None }
    }
}

/// Where a value stands; written out only for what is wrong.
enum Path<'a> {
    Top,
    Key(&'a Path<'a>, &'a str),
    Index(&'a Path<'a>, usize),
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Top => Ok(()),
            Self::Key(Self::Top, key) => f.write_str(key),
            Self::Key(parent, key) => write!(f, "{parent}.{key}"),
            Self::Index(parent, at) => write!(f, "{parent}[{at}]"),
        }
    }
}

type Wrong = (ErrorWord, String, &'static str);

fn check(fields: &[(Text<'_>, Node<'_>)], parent: &Path<'_>, depth: usize) -> Result<(), Wrong> {
    for (at, (key, node)) in fields.iter().enumerate() {
        let path = Path::Key(parent, key);
        // At most 2 KiB hold some 300 keys, so looking back is cheaper than a set.
        if fields.iter().take(at).any(|(earlier, _)| earlier == key) {
            return Err((ErrorWord::DuplicateField, path.to_string(), "each field once"));
        }
        check_node(node, &path, depth + 1)?;
    }
    Ok(())
}

fn check_node(node: &Node<'_>, path: &Path<'_>, depth: usize) -> Result<(), Wrong> {
    let deep = depth > DEPTH_MAX && matches!(node, Node::List(_) | Node::Object(_));
    if deep {
        return Err((ErrorWord::TooDeep, path.to_string(), "objects and lists in at most 4 levels"));
    }
    match node {
        Node::Object(fields) => check(fields, path, depth),
        Node::List(nodes) => {
            let mut nodes = nodes.iter().enumerate();
            nodes.try_for_each(|(at, node)| check_node(node, &Path::Index(path, at), depth + 1))
        }
        Node::Null | Node::Bool(_) | Node::Integer(_) | Node::Number(_) | Node::Text(_) => Ok(()),
    }
}

/// Why it is no JSON. The most frequent reason on a board is a sensor's NaN, which MicroPython writes as `nan`: said by
/// name, with the field.
fn no_json(bytes: &[u8], error: &serde_json::Error) -> DecodeError {
    let before_line: usize =
        bytes.split(|b| *b == b'\n').take(error.line().saturating_sub(1)).map(|l| l.len() + 1).sum();
    let at = (before_line + error.column()).min(bytes.len());
    let before = String::from_utf8_lossy(bytes.get(..at).unwrap_or_default());
    let (field, value) = before.rsplit_once(':').unwrap_or_default();
    let rest = bytes.get(at..).unwrap_or_default();
    let value =
        format!("{}{}", value.trim_start(), String::from_utf8_lossy(rest.get(..3).unwrap_or(rest))).to_lowercase();
    let value = value.trim_start_matches(['-', '+']);
    if value.starts_with("nan") || value.starts_with("inf") || error.to_string().starts_with("number out of range") {
        let field = field.trim_end().trim_end_matches('"').rsplit('"').next().map(shown);
        let allowed = Some("a finite number; leave out what is not known");
        return DecodeError::new(None, ErrorWord::NotANumber, field.as_deref(), allowed);
    }
    let place = shown(&format!("byte {at}"));
    DecodeError::new(None, ErrorWord::NotJson, Some(&place), Some("JSON in UTF-8 (RFC 8259)"))
}

impl<'de> Deserialize<'de> for Text<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(TextVisitor)
    }
}

struct TextVisitor;

impl<'de> Visitor<'de> for TextVisitor {
    type Value = Text<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text")
    }

    fn visit_borrowed_str<E>(self, v: &'de str) -> Result<Text<'de>, E> {
        Ok(Text(Cow::Borrowed(v)))
    }

    fn visit_str<E>(self, v: &str) -> Result<Text<'de>, E> {
        Ok(Text(Cow::Owned(v.to_owned())))
    }
}

impl<'de> Deserialize<'de> for Node<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NodeVisitor)
    }
}

/// Fields for which an object makes room at once; an event has some ten.
const ROOM: usize = 12;

struct NodeVisitor;

impl<'de> Visitor<'de> for NodeVisitor {
    type Value = Node<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Node<'de>, E> {
        Ok(Node::Null)
    }

    fn visit_bool<E>(self, v: bool) -> Result<Node<'de>, E> {
        Ok(Node::Bool(v))
    }

    fn visit_i64<E>(self, v: i64) -> Result<Node<'de>, E> {
        Ok(Node::Integer(v.into()))
    }

    fn visit_u64<E>(self, v: u64) -> Result<Node<'de>, E> {
        Ok(Node::Integer(v.into()))
    }

    fn visit_f64<E>(self, v: f64) -> Result<Node<'de>, E> {
        Ok(Node::Number(v))
    }

    fn visit_borrowed_str<E: de::Error>(self, v: &'de str) -> Result<Node<'de>, E> {
        TextVisitor.visit_borrowed_str(v).map(Node::Text)
    }

    fn visit_str<E: de::Error>(self, v: &str) -> Result<Node<'de>, E> {
        TextVisitor.visit_str(v).map(Node::Text)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut all: A) -> Result<Node<'de>, A::Error> {
        let mut nodes = Vec::new();
        while let Some(node) = all.next_element()? {
            nodes.push(node);
        }
        Ok(Node::List(nodes))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut all: A) -> Result<Node<'de>, A::Error> {
        let mut fields = Vec::new();
        while let Some(field) = all.next_entry()? {
            if fields.is_empty() {
                fields.reserve(ROOM);
            }
            fields.push(field);
        }
        Ok(Node::Object(fields))
    }
}
