//! "Since when" as a person writes it.

use jiff::{SignedDuration, Timestamp, civil::Date, tz::TimeZone};

/// A text that is no time.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no time: allowed are 90s, 30m, 2h, 3d, 1w, a date such as 2026-11-30, or RFC 3339")]
pub struct BadSince(pub String);

/// Reads a span until now (`90s`, `30m`, `2h`, `3d`, `1w`), a date of this machine's time zone, or an RFC 3339 time.
///
/// # Errors
/// [`BadSince`] if it is none of them.
pub fn since(text: &str, now: Timestamp) -> Result<Timestamp, BadSince> {
    let bad = || BadSince(super::bounded(text, 40));
    if let Some((number, unit_s)) = span(text) {
        let seconds = number.checked_mul(unit_s).ok_or_else(bad)?;
        return now.checked_sub(SignedDuration::from_secs(seconds)).map_err(|_| bad());
    }
    if let Ok(at) = text.parse::<Timestamp>() {
        return Ok(at);
    }
    let date = text.parse::<Date>().map_err(|_| bad())?;
    date.to_zoned(TimeZone::system()).map(|midnight| midnight.timestamp()).map_err(|_| bad())
}

fn span(text: &str) -> Option<(i64, i64)> {
    let unit = text.chars().last()?;
    let unit_s = match unit {
        's' => 1,
        'm' => 60,
        'h' => 3_600,
        'd' => 86_400,
        'w' => 604_800,
        _ => return None,
    };
    let digits = &text[..text.len() - 1];
    digits.bytes().all(|b| b.is_ascii_digit()).then(|| digits.parse().ok()).flatten().map(|number| (number, unit_s))
}
