//! Reading one flat JSON object without an allocator and without recursion.
//!
//! Why not `serde-json-core`, which writes our events: it cannot read a value whose sort is not known beforehand
//! (`AnyIsUnsupported`, and `value` is a bool, a number or a text), and it skips unknown fields by recursion, so that
//! 500 opening brackets would overflow a board's stack. This scanner is bounded by the message and by `DEPTH_MAX`.

use crate::{
    limits::DEPTH_MAX,
    scalar::{BadText, Scalar, Text},
};

/// The text is no JSON object, or nests too deep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Malformed;

/// One value, as it stands in the text.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Raw<'a> {
    Null,
    Bool(bool),
    /// A number by JSON's grammar.
    Number(&'a str),
    /// A text between its quotes, escapes and all.
    Text(&'a str),
    /// An object or a list with its brackets; inside only brackets and strings were looked at.
    Nested(&'a str),
}

/// The fields of one object, in order.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fields<'a> {
    rest: &'a str,
    first: bool,
}

impl<'a> Fields<'a> {
    /// Begins to read an object.
    pub(crate) fn new(text: &'a str) -> Result<Self, Malformed> {
        let rest = skip_space(text).strip_prefix('{').ok_or(Malformed)?;
        Ok(Self { rest, first: true })
    }

    /// The next field; `None` after the last one, when nothing but space follows the object.
    pub(crate) fn next(&mut self) -> Result<Option<(&'a str, Raw<'a>)>, Malformed> {
        let mut rest = skip_space(self.rest);
        if let Some(after) = rest.strip_prefix('}') {
            return if skip_space(after).is_empty() { Ok(None) } else { Err(Malformed) };
        }
        if !self.first {
            rest = skip_space(rest.strip_prefix(',').ok_or(Malformed)?);
        }
        self.first = false;
        let (key, rest) = string(rest)?;
        let rest = skip_space(rest).strip_prefix(':').ok_or(Malformed)?;
        let (value, rest) = value(skip_space(rest))?;
        self.rest = rest;
        Ok(Some((key, value)))
    }
}

impl Raw<'_> {
    /// The value, if it is one; `None` for `null`, an object, a list, a number out of range, a text that is none.
    pub(crate) fn scalar(&self) -> Option<Scalar> {
        match self {
            Self::Null | Self::Nested(_) => None,
            Self::Bool(v) => Some(Scalar::Bool(*v)),
            Self::Number(v) if v.bytes().any(|b| matches!(b, b'.' | b'e' | b'E')) => Scalar::number(v.parse().ok()?),
            Self::Number(v) => v.parse().ok().map(Scalar::Integer),
            Self::Text(v) => unescaped(v).ok().map(Scalar::Text),
        }
    }
}

/// Undoes the escapes of RFC 8259 section 7, surrogate pairs included.
pub(crate) fn unescaped(raw: &str) -> Result<Text, BadText> {
    let mut text = Text::default();
    let mut chars = raw.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            text.push(c)?;
            continue;
        }
        let c = match chars.next() {
            Some('n') => '\n',
            Some('t') => '\t',
            Some('r') => '\r',
            Some('b') => '\u{8}',
            Some('f') => '\u{c}',
            Some('u') => {
                let rest = chars.as_str();
                let (c, used) = code_point(rest).ok_or(BadText::ControlCharacter)?;
                chars = rest.get(used..).unwrap_or_default().chars();
                c
            }
            Some(c @ ('"' | '\\' | '/')) => c,
            _ => return Err(BadText::ControlCharacter),
        };
        text.push(c)?;
    }
    Ok(text)
}

/// The character of `XXXX` or `XXXX\uXXXX`, and how many bytes it took.
fn code_point(text: &str) -> Option<(char, usize)> {
    let unit = |from: usize| {
        let hex = text.get(from..from + 4).filter(|h| h.bytes().all(|b| b.is_ascii_hexdigit()))?;
        u32::from_str_radix(hex, 16).ok()
    };
    let high = unit(0)?;
    if !(0xd800..0xdc00).contains(&high) {
        return Some((char::from_u32(high)?, 4));
    }
    let low = text.get(4..6).filter(|u| *u == "\\u").and_then(|_| unit(6))?;
    let low = low.checked_sub(0xdc00).filter(|l| *l < 0x400)?;
    Some((char::from_u32(0x1_0000 + ((high - 0xd800) << 10) + low)?, 10))
}

fn skip_space(text: &str) -> &str {
    text.trim_start_matches([' ', '\t', '\n', '\r'])
}

/// A string at the beginning: what is between its quotes, and the rest.
fn string(text: &str) -> Result<(&str, &str), Malformed> {
    let inside = text.strip_prefix('"').ok_or(Malformed)?;
    let mut escaped = false;
    for (at, byte) in inside.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            // Quotes are ASCII, so both slices lie on character boundaries.
            b'"' => return Ok((inside.get(..at).ok_or(Malformed)?, inside.get(at + 1..).ok_or(Malformed)?)),
            0..0x20 => return Err(Malformed),
            _ => {}
        }
    }
    Err(Malformed)
}

fn value(text: &str) -> Result<(Raw<'_>, &str), Malformed> {
    if text.starts_with('"') {
        let (inside, rest) = string(text)?;
        return Ok((Raw::Text(inside), rest));
    }
    if text.starts_with(['{', '[']) {
        return nested(text);
    }
    for (word, raw) in [("true", Raw::Bool(true)), ("false", Raw::Bool(false)), ("null", Raw::Null)] {
        if let Some(rest) = text.strip_prefix(word) {
            return Ok((raw, rest));
        }
    }
    let end = text.bytes().position(|b| !matches!(b, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E'));
    let (number, rest) = text.split_at(end.unwrap_or(text.len()));
    if is_number(number) { Ok((Raw::Number(number), rest)) } else { Err(Malformed) }
}

/// JSON's own grammar: Rust would also take `+1`, `.5`, `1.` and `007`.
fn is_number(text: &str) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let text = text.strip_prefix('-').unwrap_or(text);
    let (mantissa, exponent) = text.split_once(['e', 'E']).map_or((text, None), |(m, e)| (m, Some(e)));
    let (whole, fraction) = mantissa.split_once('.').map_or((mantissa, None), |(w, f)| (w, Some(f)));
    digits(whole)
        && (whole.len() == 1 || !whole.starts_with('0'))
        && fraction.is_none_or(digits)
        && exponent.is_none_or(|e| digits(e.strip_prefix(['+', '-']).unwrap_or(e)))
}

/// Skips an object or a list by its brackets.
fn nested(text: &str) -> Result<(Raw<'_>, &str), Malformed> {
    let mut open = [0_u8; DEPTH_MAX - 1]; // the message itself is the first level
    let mut depth = 0;
    let mut rest = text;
    while let Some(byte) = rest.bytes().next() {
        match byte {
            b'"' => {
                rest = string(rest)?.1;
                continue;
            }
            b'{' | b'[' => {
                *open.get_mut(depth).ok_or(Malformed)? = byte;
                depth += 1;
            }
            b'}' | b']' => {
                depth -= 1; // never below: the loop ends at 0, and the first byte opened
                if open.get(depth) != Some(&(byte - 2)) {
                    return Err(Malformed); // `{` and `[` lie two before their partners in ASCII
                }
            }
            _ => {}
        }
        // Every character but an ASCII one is skipped whole: its first byte is no bracket, so step by character.
        rest = rest.get(rest.chars().next().map_or(1, char::len_utf8)..).ok_or(Malformed)?;
        if depth == 0 {
            let used = text.len() - rest.len();
            return Ok((Raw::Nested(text.get(..used).ok_or(Malformed)?), rest));
        }
    }
    Err(Malformed)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that fails here says where")]
mod tests {
    use super::*;

    fn all(text: &str) -> Result<Vec<(&str, Raw<'_>)>, Malformed> {
        let mut fields = Fields::new(text)?;
        let mut found = Vec::new();
        while let Some(field) = fields.next()? {
            found.push(field);
        }
        Ok(found)
    }

    #[test]
    fn the_fields_of_a_flat_object_come_in_order() {
        let text = r#" { "a" : true, "b":-1.5e3 ,"c":"x\"y","d":{"k":["}"]},"e":null } "#;
        let expected = [
            ("a", Raw::Bool(true)),
            ("b", Raw::Number("-1.5e3")),
            ("c", Raw::Text(r#"x\"y"#)),
            ("d", Raw::Nested(r#"{"k":["}"]}"#)),
            ("e", Raw::Null),
        ];
        assert_eq!(all(text).unwrap(), expected);
        assert_eq!(all("{}").unwrap(), []);
    }

    #[test]
    fn what_is_no_json_object_is_malformed() {
        for bad in [
            "",
            "1",
            "[]",
            "{",
            r#"{"a"}"#,
            r#"{"a":}"#,
            r#"{"a":1,}"#,
            r#"{"a":1 "b":2}"#,
            r#"{"a":01}"#,
            r#"{"a":+1}"#,
            r#"{"a":1.}"#,
            r#"{"a":.5}"#,
            r#"{"a":NaN}"#,
            r#"{"a":tru}"#,
            r#"{"a":{]}"#,
            r#"{"a":[}}"#,
            r#"{"a":1}x"#,
            r#"{"a":1}{"#,
            r#"{"a":[[[[1]]]]}"#,
            "{\"a\":\"\n\"}",
            r#"{a:1}"#,
            r#"{,"a":1}"#,
        ] {
            assert_eq!(all(bad), Err(Malformed), "{bad}");
        }
        assert_eq!(all(&format!("{{\"a\":{}", "[".repeat(500))), Err(Malformed));
    }

    #[test]
    fn escapes_are_undone_surrogate_pairs_included() {
        assert_eq!(unescaped(r#"\"\\\/\n\u706f\ud83d\ude00"#).unwrap().as_str(), "\"\\/\n灯😀");
        for bad in [r"\x", r"\u12", r"\ud83d", r"\ud83dx", r"\ude00", r"\u0000", r"\u+123"] {
            assert!(unescaped(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_number_without_a_fraction_is_an_integer_of_i32() {
        assert_eq!(Raw::Number("5").scalar(), Some(Scalar::Integer(5)));
        assert_eq!(Raw::Number("5.0").scalar(), Some(Scalar::Number(5.0)));
        assert_eq!(Raw::Number("2147483648").scalar(), None);
        assert_eq!(Raw::Number("1e400").scalar(), None);
    }
}
