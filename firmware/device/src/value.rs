//! Whether a value is allowed for a property, and whether two values are the same (semantics 3.1, as the hub judges it).

use truetwin_wire::{
    Scalar,
    device::PropertySpec,
    words::{KindWord, ReasonWord},
};

/// Checks a wish against the description and brings it into the property's own form; whether it had to be brought into the
/// range, too.
pub(crate) fn checked(spec: &PropertySpec<'_>, wish: &Scalar) -> Result<(Scalar, bool), ReasonWord> {
    if !spec.settable {
        return Err(ReasonWord::Unsupported);
    }
    let value = match (spec.kind, wish) {
        (KindWord::Bool, Scalar::Bool(_))
        | (KindWord::Integer, Scalar::Integer(_))
        | (KindWord::Number, Scalar::Number(_)) => wish.clone(),
        (KindWord::Number, Scalar::Integer(whole)) => Scalar::Number(f64::from(*whole)),
        (KindWord::Enum, Scalar::Text(word)) if spec.values.contains(&word.as_str()) => wish.clone(),
        (KindWord::Enum, Scalar::Text(_)) => return Err(ReasonWord::OutOfRange),
        (KindWord::Text, Scalar::Text(_)) => wish.clone(),
        (KindWord::Colour, Scalar::Text(text)) if is_colour(text) => wish.clone(),
        (KindWord::Colour, Scalar::Text(_)) => return Err(ReasonWord::OutOfRange),
        (KindWord::Unknown, _) => return Err(ReasonWord::Unsupported),
        _ => return Err(ReasonWord::Malformed),
    };
    let Some(number) = value.as_f64() else { return Ok((value, false)) };
    let end = match (spec.min, spec.max) {
        (Some(min), _) if number < min => min,
        (_, Some(max)) if number > max => max,
        _ => return Ok((value, false)),
    };
    if !spec.clamps {
        return Err(ReasonWord::OutOfRange);
    }
    let whole = || end_of_integer(end);
    let clamped = if spec.kind == KindWord::Integer { whole() } else { Scalar::number(end) };
    clamped.map(|end| (end, true)).ok_or(ReasonWord::OutOfRange)
}

/// An end of the range as a whole number; `None` where it is none.
fn end_of_integer(end: f64) -> Option<Scalar> {
    #[expect(clippy::cast_possible_truncation, reason = "compared with what it was")]
    let whole = end as i32;
    (f64::from(whole) == end).then_some(Scalar::Integer(whole))
}

/// Whether two values count as the same: numbers within the tolerance, or else half a step; everything else exactly.
pub(crate) fn is_same(spec: &PropertySpec<'_>, wish: &Scalar, now: &Scalar) -> bool {
    match (wish, now) {
        (Scalar::Number(_), Scalar::Number(_) | Scalar::Integer(_))
        | (Scalar::Integer(_), Scalar::Number(_) | Scalar::Integer(_)) => {
            let half_step = spec.step.filter(|_| spec.kind == KindWord::Number).map(|step| step / 2.0);
            let within = spec.tolerance.or(half_step).unwrap_or(0.0);
            let (Some(wish), Some(now)) = (wish.as_f64(), now.as_f64()) else { return false };
            (wish - now).abs() <= within
        }
        _ => wish == now,
    }
}

fn is_colour(text: &str) -> bool {
    text.strip_prefix('#').is_some_and(|hex| hex.len() == 6 && hex.bytes().all(|b| b.is_ascii_hexdigit()))
}
