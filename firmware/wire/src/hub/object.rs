//! One object of an event, read field by field with the path of each.

use std::{cell::Cell, sync::Arc};

use super::{
    DecodeError,
    tree::{Node, Text as Written},
};
use crate::{
    limits::{PROPERTIES_MAX, is_id, is_name},
    scalar::{BadText, Scalar, Text},
    words::ErrorWord,
};

/// What all objects of one event share.
pub(super) struct Context {
    /// The event, for its errors.
    pub(super) of_seq: Option<u32>,
    /// Words that this version does not know.
    pub(super) unknown_words: Cell<u32>,
}

/// One object and where it stands. A field that is `null` counts as absent, except as a value.
#[derive(Clone, Copy)]
pub(super) struct Object<'a> {
    pub(super) fields: &'a [(Written<'a>, Node<'a>)],
    pub(super) path: &'a str,
    pub(super) context: &'a Context,
}

/// What is allowed as a value, for the errors.
const VALUE: &str = "true, false, a number or a text";

impl<'a> Object<'a> {
    pub(super) fn fail(&self, reason: ErrorWord, field: &str, allowed: &str) -> DecodeError {
        let path = if self.path.is_empty() { field.to_owned() } else { format!("{}.{field}", self.path) };
        DecodeError::new(self.context.of_seq, reason, Some(&path), Some(allowed))
    }

    pub(super) fn get(&self, field: &str) -> Option<&'a Node<'a>> {
        self.fields.iter().find(|(key, node)| **key == *field && *node != Node::Null).map(|(_, node)| node)
    }

    /// Turns an absent optional field into an error.
    pub(super) fn required<T>(&self, field: &str, allowed: &str, value: Option<T>) -> Result<T, DecodeError> {
        value.ok_or_else(|| self.fail(ErrorWord::MissingField, field, allowed))
    }

    pub(super) fn text(&self, field: &str) -> Result<Option<String>, DecodeError> {
        match self.get(field) {
            None => Ok(None),
            Some(Node::Text(text)) => match Text::new(text) {
                Ok(_) => Ok(Some(text.to_string())),
                Err(error) => Err(self.fail(ErrorWord::BadText, field, allowed_text(error))),
            },
            Some(_) => Err(self.fail(ErrorWord::WrongType, field, "a text")),
        }
    }

    pub(super) fn id(&self, field: &str) -> Result<Option<Arc<str>>, DecodeError> {
        let allowed = "1 to 16 printable ASCII characters without quotes and backslashes";
        match self.get(field) {
            None => Ok(None),
            Some(Node::Text(text)) if is_id(text) => Ok(Some((**text).into())),
            Some(Node::Text(_)) => Err(self.fail(ErrorWord::BadName, field, allowed)),
            Some(_) => Err(self.fail(ErrorWord::WrongType, field, allowed)),
        }
    }

    pub(super) fn name(&self, field: &str) -> Result<Option<Arc<str>>, DecodeError> {
        match self.get(field) {
            None => Ok(None),
            Some(Node::Text(text)) if is_name(text) => Ok(Some((**text).into())),
            Some(Node::Text(_)) => Err(self.fail(ErrorWord::BadName, field, NAME)),
            Some(_) => Err(self.fail(ErrorWord::WrongType, field, NAME)),
        }
    }

    pub(super) fn flag(&self, field: &str) -> Result<Option<bool>, DecodeError> {
        match self.get(field) {
            None => Ok(None),
            Some(Node::Bool(value)) => Ok(Some(*value)),
            Some(_) => Err(self.fail(ErrorWord::WrongType, field, "true or false")),
        }
    }

    pub(super) fn u32(&self, field: &str) -> Result<Option<u32>, DecodeError> {
        Ok(self.u64(field, u64::from(u32::MAX))?.and_then(|v| u32::try_from(v).ok()))
    }

    pub(super) fn u64(&self, field: &str, max: u64) -> Result<Option<u64>, DecodeError> {
        match self.get(field) {
            None => Ok(None),
            Some(Node::Integer(value)) => match u64::try_from(*value).ok().filter(|v| *v <= max) {
                Some(value) => Ok(Some(value)),
                None => Err(self.fail(ErrorWord::OutOfRange, field, &format!("0 to {max}"))),
            },
            Some(_) => Err(self.fail(ErrorWord::WrongType, field, "a whole number")),
        }
    }

    pub(super) fn number(&self, field: &str) -> Result<Option<f64>, DecodeError> {
        let value = self.get(field).map(|node| self.scalar(field, node)).transpose()?;
        let number = value.map(|v| v.as_f64().ok_or_else(|| self.fail(ErrorWord::WrongType, field, "a number")));
        number.transpose()
    }

    /// A word of a closed set; one that is not known is counted.
    pub(super) fn word<W: PartialEq + Copy>(
        &self,
        field: &str,
        read: fn(&str) -> W,
        unknown: W,
    ) -> Result<Option<W>, DecodeError> {
        match self.get(field) {
            None => Ok(None),
            Some(Node::Text(text)) => Ok(Some(self.counted(read(text), unknown))),
            Some(_) => Err(self.fail(ErrorWord::WrongType, field, "a word")),
        }
    }

    pub(super) fn counted<W: PartialEq>(&self, word: W, unknown: W) -> W {
        if word == unknown {
            self.context.unknown_words.set(self.context.unknown_words.get() + 1);
        }
        word
    }

    pub(super) fn list(&self, field: &str, max: usize) -> Result<Option<&'a [Node<'a>]>, DecodeError> {
        match self.get(field) {
            None => Ok(None),
            Some(Node::List(nodes)) if nodes.len() <= max => Ok(Some(nodes)),
            Some(Node::List(_)) => Err(self.fail(ErrorWord::TooMany, field, &format!("at most {max}"))),
            Some(_) => Err(self.fail(ErrorWord::WrongType, field, "a list")),
        }
    }

    /// An object by property; the closure reads each value.
    pub(super) fn by_property<T>(
        &self,
        field: &str,
        read: impl Fn(&Object<'_>, &str, &Node<'_>) -> Result<T, DecodeError>,
    ) -> Result<Vec<(Arc<str>, T)>, DecodeError> {
        let fields = match self.get(field) {
            None => return Ok(Vec::new()),
            Some(Node::Object(fields)) => fields,
            Some(_) => return Err(self.fail(ErrorWord::WrongType, field, "an object by property")),
        };
        if fields.len() > PROPERTIES_MAX {
            return Err(self.fail(ErrorWord::TooMany, field, "at most 64 properties"));
        }
        let inner = Object { fields, path: field, context: self.context };
        let one = |(key, node): &(Written<'_>, Node<'_>)| {
            if !is_name(key) {
                return Err(inner.fail(ErrorWord::BadName, key, NAME));
            }
            Ok(((**key).into(), read(&inner, key, node)?))
        };
        fields.iter().map(one).collect()
    }

    /// A value of a property.
    pub(super) fn scalar(&self, field: &str, node: &Node<'_>) -> Result<Scalar, DecodeError> {
        match node {
            Node::Bool(value) => Ok(Scalar::Bool(*value)),
            Node::Integer(value) => i32::try_from(*value).map(Scalar::Integer).map_err(|_| {
                self.fail(ErrorWord::OutOfRange, field, "whole numbers -2147483648 to 2147483647; write others with .0")
            }),
            Node::Number(value) => Scalar::number(*value)
                .ok_or_else(|| self.fail(ErrorWord::OutOfRange, field, "numbers from -1e15 to 1e15")),
            Node::Text(value) => {
                Scalar::text(value).map_err(|error| self.fail(ErrorWord::BadText, field, allowed_text(error)))
            }
            Node::Null => Err(self.fail(ErrorWord::NullValue, field, "a value; leave out what is not known")),
            Node::List(_) | Node::Object(_) => Err(self.fail(ErrorWord::WrongType, field, VALUE)),
        }
    }
}

/// What is allowed as a name.
pub(super) const NAME: &str = "1 to 32 bytes without control characters, quotes, backslashes";

fn allowed_text(error: BadText) -> &'static str {
    match error {
        BadText::TooLong => "at most 128 bytes of text",
        BadText::ControlCharacter => "no control characters but tab and line breaks",
    }
}
