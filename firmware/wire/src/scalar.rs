//! Values on the wire: `true`, `false`, a whole number in `i32`, a number of up to six significant digits, a text.

use core::{fmt, ops::Deref};

use serde::{Serialize, Serializer};

use crate::limits::{NUMBER_DIGITS, NUMBER_MAX, TEXT_BYTES_MAX};

/// One value of a property. `null` is none of them: what is not known is left out (semantics 2.2).
#[derive(Clone, Debug, PartialEq)]
pub enum Scalar {
    /// `true` or `false`.
    Bool(bool),
    /// A whole number. A JSON number without a fraction and an exponent reads as this.
    Integer(i32),
    /// A finite number; make it with [`Scalar::number`]. One that is not finite is written as `null`, which every reader refuses.
    Number(f64),
    /// A text, an enum's word or a colour.
    Text(Text),
}

/// A text value: at most 128 bytes of UTF-8, no control characters but tab, line feed and carriage return (so that its
/// escaped form is at most twice as long and a command always fits, see [`crate::limits::COMMAND_BYTES_MAX`]).
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Text(heapless::String<TEXT_BYTES_MAX>);

/// Why a text is no value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadText {
    /// Over 128 bytes.
    TooLong,
    /// A control character other than tab, line feed and carriage return.
    ControlCharacter,
}

impl fmt::Display for BadText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TooLong => "a text of more than 128 bytes",
            Self::ControlCharacter => "a control character in a text; only tab and line breaks are allowed",
        })
    }
}

impl core::error::Error for BadText {}

impl Text {
    /// Checks and takes a text.
    ///
    /// # Errors
    /// [`BadText`].
    pub fn new(text: &str) -> Result<Self, BadText> {
        let mut all = Self::default();
        text.chars().try_for_each(|c| all.push(c))?;
        Ok(all)
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub(crate) fn push(&mut self, c: char) -> Result<(), BadText> {
        if c.is_ascii_control() && !matches!(c, '\t' | '\n' | '\r') {
            return Err(BadText::ControlCharacter);
        }
        self.0.push(c).map_err(|_| BadText::TooLong)
    }
}

impl Deref for Text {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

impl Scalar {
    /// A number, rounded to six significant digits; `None` if it is not finite or larger than 1e15.
    pub fn number(value: f64) -> Option<Self> {
        (value.abs() <= NUMBER_MAX).then(|| Self::Number(six_digits(value)))
    }

    /// A text.
    ///
    /// # Errors
    /// [`BadText`].
    pub fn text(value: &str) -> Result<Self, BadText> {
        Ok(Self::Text(Text::new(value)?))
    }

    /// The value as a number, where it is one.
    pub fn as_f64(&self) -> Option<f64> {
        match self {
            Self::Integer(v) => Some(f64::from(*v)),
            Self::Number(v) => Some(*v),
            Self::Bool(_) | Self::Text(_) => None,
        }
    }
}

impl Serialize for Scalar {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Bool(v) => serializer.serialize_bool(*v),
            Self::Integer(v) => serializer.serialize_i32(*v),
            Self::Number(v) if v.is_finite() => serializer.serialize_f64(six_digits(*v)),
            Self::Number(_) => serializer.serialize_none(),
            Self::Text(v) => serializer.serialize_str(v),
        }
    }
}

/// Rounds to six significant digits. Values below 1e-15 become 0; values that are not finite stay.
///
/// Without `std` there is neither `log10` nor `powi`; the powers up to 1e22 are exact in an `f64`, so between 1e-15
/// and 1e15 the result is the nearest `f64` to the decimal, and rounding twice changes nothing.
pub fn six_digits(value: f64) -> f64 {
    let size = value.abs();
    if !size.is_finite() || size < 1.0 / NUMBER_MAX {
        return if size.is_finite() { 0.0 } else { value };
    }
    // Six digits before the point; a millionth less, because a division may come out one bit short.
    let (low, high) = (100_000.0 - 1e-6, 1_000_000.0 - 1e-6);
    const { assert!(NUMBER_DIGITS == 6, "the two bounds above") };
    let mut exponent = 0;
    while size / power(exponent) >= high {
        exponent += 1;
    }
    while scaled(size, exponent) < low {
        exponent -= 1;
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "positive and below 1e6 + 1")]
    let digits = f64::from((scaled(size, exponent) + 0.5) as u32);
    let rounded = if exponent >= 0 { digits * power(exponent) } else { digits / power(-exponent) };
    if value < 0.0 { -rounded } else { rounded }
}

fn scaled(size: f64, exponent: i32) -> f64 {
    if exponent >= 0 { size / power(exponent) } else { size * power(-exponent) }
}

fn power(exponent: i32) -> f64 {
    (0..exponent).fold(1.0, |power, _| power * 10.0)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that fails here says where")]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn numbers_are_rounded_to_six_significant_digits() {
        for (sent, kept) in [
            (21.299_999_237, 21.3),
            (0.1 + 0.2, 0.3),
            (999_999.5, 1_000_000.0),
            (123_456.49, 123_456.0),
            (-0.000_123_456_7, -0.000_123_457),
            (3e9, 3e9),
            (0.0, 0.0),
            (1e-16, 0.0),
        ] {
            assert_eq!(six_digits(sent), kept, "{sent}");
        }
        assert!(Scalar::number(f64::NAN).is_none() && Scalar::number(1.1e15).is_none());
    }

    #[test]
    fn a_text_holds_128_bytes_and_no_control_characters() {
        assert!(Text::new(&"x".repeat(128)).is_ok());
        assert_eq!(Text::new(&"灯".repeat(43)), Err(BadText::TooLong));
        assert_eq!(Text::new("a\u{1}"), Err(BadText::ControlCharacter));
        assert_eq!(Text::new("a\tb\n").unwrap().as_str(), "a\tb\n");
    }

    proptest! {
        #[test]
        fn rounding_twice_changes_nothing(digits in -1.0..1.0_f64, exponent in -14..=15) {
            let value = digits * 10_f64.powi(exponent);
            let once = six_digits(value);
            prop_assert_eq!(six_digits(once), once);
            if value.abs() >= 1e-15 {
                prop_assert!((once - value).abs() <= value.abs() * 5.1e-6);
                // It is the nearest to the decimal, so what a board prints is what the hub reads.
                prop_assert_eq!(format!("{once:.5e}").parse::<f64>().unwrap(), once);
            }
        }
    }
}
