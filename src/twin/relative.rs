//! Relative wishes (semantics 4.6): `toggle` and `+10` become absolute on the hub when their turn comes, from what then
//! stands. None is ever on the wire.

use std::time::{Duration, Instant};

use crate::{
    property::{Evidence, Kind, Property, Value, ValueError},
    twin::{
        Twin,
        operation::Operation,
        reported::Known,
        wish::Target,
        words::{Outcome, Refusal},
    },
};

/// What a wish starts from.
pub(super) enum Base {
    /// It names its value itself.
    Not,
    /// What the property has.
    Known(Value),
    /// Nothing that is fresh: the device is asked first.
    Unknown,
}

impl Twin {
    /// What a relative wish starts from: the value that the last operation was confirmed with, else what the device has
    /// reported, if that is of this session, newer than the end of the last operation and not too old.
    ///
    /// # Errors
    /// [`Refusal::InvalidValue`] for a property that cannot be wished so, as it is described now.
    pub(super) fn start_from(&self, now: Instant, operation: &Operation, property: &Property) -> Result<Base, Refusal> {
        if operation.absolute() {
            return Ok(Base::Not);
        }
        check(property, &operation.target)?;
        let Some(known) = self.fresh(now, &property.name, self.settings.base_max_age) else {
            return Ok(Base::Unknown);
        };
        // A reading beside the wish, within its tolerance, is the wish: else ten times `+10` would drift.
        let last = self.records.iter().rev().map(|r| &r.settled).find(|s| s.property == property.name);
        let confirmed = last
            .filter(|settled| settled.outcome == Outcome::Converged)
            .and_then(|settled| settled.wish.clone())
            .filter(|wish| property.same(wish, &known.value));
        Ok(Base::Known(confirmed.unwrap_or_else(|| known.value.clone())))
    }

    /// What is known of a property without asking, if that is good enough to go by: of this session, not too old, not older
    /// than the end of the last operation on it, and read: at the pad, or for a report of the state. What a device says of
    /// itself at the end of an operation is its first check alone (semantics 3.6).
    pub(super) fn fresh(&self, now: Instant, property: &str, max_age: Duration) -> Option<&Known> {
        let since = self.line.session.as_ref().and(self.line.session_since)?;
        let ended_at = self.touched.get(property).and_then(|touched| touched.ended_at);
        self.reported.get(property).filter(|known| {
            since <= known.received_at
                && now.saturating_duration_since(known.received_at) <= max_age
                && ended_at.is_none_or(|at| at <= known.received_at)
                && (known.read || known.evidence >= Evidence::Pin)
        })
    }
}

impl Operation {
    /// Makes a relative wish absolute. One that would go beyond the range goes to the range's end, and says so.
    ///
    /// # Errors
    /// [`Refusal::InvalidValue`] if there is no other value to go to.
    pub(super) fn start_at(&mut self, property: &Property, base: &Value) -> Result<(), Refusal> {
        let (value, limited) = match &self.target {
            Target::To(value) => (value.clone(), false),
            Target::Toggle => (other(property, base)?, false),
            Target::By(amount) => moved(property, base, *amount)?,
        };
        self.wish = Some(property.normalise(&value).map_err(|error| invalid(property, error))?);
        self.limited = limited;
        Ok(())
    }
}

/// Whether a property can be wished so: numbers are moved, what has two values is toggled.
///
/// # Errors
/// [`Refusal::InvalidValue`], which names what the property takes.
pub(super) fn check(property: &Property, target: &Target) -> Result<(), Refusal> {
    let (sent, fits) = match target {
        Target::To(_) => return Ok(()),
        Target::By(amount) => {
            (format!("{amount:+}"), amount.is_finite() && matches!(property.kind, Kind::Integer | Kind::Number))
        }
        Target::Toggle => ("toggle".to_owned(), two(property)),
    };
    if fits { Ok(()) } else { Err(invalid(property, ValueError::WrongKind { sent, expected: taken(property.kind) })) }
}

/// Whether a property has exactly two values.
fn two(property: &Property) -> bool {
    property.kind == Kind::Bool || (property.kind == Kind::Enum && property.values.len() == 2)
}

fn taken(kind: Kind) -> &'static str {
    match kind {
        Kind::Bool => "true or false",
        Kind::Integer => "a whole number",
        Kind::Number => "a number",
        Kind::Enum => "one of its words",
        Kind::Text => "a text",
        Kind::Colour => "a colour like #ff8800",
    }
}

fn invalid(property: &Property, error: ValueError) -> Refusal {
    Refusal::InvalidValue { property: property.name.clone(), error }
}

fn other(property: &Property, base: &Value) -> Result<Value, Refusal> {
    match base {
        Value::Bool(on) => Ok(Value::Bool(!on)),
        Value::Text(word) => {
            let other = property.values.iter().find(|value| *value != word);
            let error = || ValueError::NotListed { sent: word.to_string(), allowed: property.values.clone() };
            other.map(|value| Value::Text(value.clone())).ok_or_else(|| invalid(property, error()))
        }
        Value::Integer(_) | Value::Number(_) => {
            let error = ValueError::WrongKind { sent: base.to_string(), expected: taken(property.kind) };
            Err(invalid(property, error))
        }
    }
}

/// The value so much further, on a step, within the range; and whether the range ended it. A wish for less than a step
/// moves a whole one: else "a bit brighter" would be said to be done, and nothing moved.
fn moved(property: &Property, base: &Value, amount: f64) -> Result<(Value, bool), Refusal> {
    let from = match base {
        Value::Integer(number) => f64::from(*number),
        Value::Number(number) => *number,
        Value::Bool(_) | Value::Text(_) => {
            let error = ValueError::WrongKind { sent: base.to_string(), expected: taken(property.kind) };
            return Err(invalid(property, error));
        }
    };
    let step = property.step.filter(|step| *step > 0.0).or((property.kind == Kind::Integer).then_some(1.0));
    let wished = from + amount;
    let mut to = step.map_or(wished, |step| on_step(property, step, wished));
    if let Some(step) = step
        && amount != 0.0
        && (to - from) * amount.signum() < step / 2.0
    {
        to = on_step(property, step, from + step * amount.signum());
    }
    let lowest = property.min.unwrap_or(f64::NEG_INFINITY);
    // The highest value that is a step, where the range does not end on one.
    let highest = property.max.map_or(f64::INFINITY, |max| step.map_or(max, |step| last_step(property, step, max)));
    let within = to.max(lowest).min(highest);
    Ok((Value::Number(within), (within - to).abs() > f64::EPSILON))
}

/// The step nearest to a number.
fn on_step(property: &Property, step: f64, number: f64) -> f64 {
    let first = property.min.unwrap_or(0.0);
    first + ((number - first) / step).round() * step
}

fn last_step(property: &Property, step: f64, max: f64) -> f64 {
    let first = property.min.unwrap_or(0.0);
    // A millionth of a step: 0.1 is no binary fraction.
    first + ((max - first) / step + 1e-6).floor() * step
}
