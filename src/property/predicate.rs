//! When a value counts as what was wished (semantics 3.1).
//!
//! Pure: a value, the value before, yes or no. Whether a value is fresh and whose work it is, others decide.

use super::{Kind, Property, Value};

/// A condition on one value.
#[derive(Clone, Debug, PartialEq)]
pub enum Predicate {
    /// It is this value, exactly.
    Equals(Value),
    /// It lies no farther than `abs` from `target`.
    Within {
        /// The wished number.
        target: f64,
        /// How far it may lie off; not below 0.
        abs: f64,
    },
    /// It is one of these.
    OneOf(Vec<Value>),
    /// It is this number or a larger one.
    AtLeast(f64),
    /// It is this number or a smaller one.
    AtMost(f64),
    /// It is other than before by at least this much; below 0: it fell by so much, above: it rose.
    ChangesBy(f64),
    /// It is nearer to `target` than before by at least `by`, or no farther from it than that.
    Approaches {
        /// Where it shall go.
        target: f64,
        /// The least movement that counts as one.
        by: f64,
    },
}

/// Which predicate a property's wishes get, where the owner has chosen one. Without a choice numbers are judged by
/// [`Choice::Within`], all else by [`Choice::Equals`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// The value itself; for numbers exactly.
    Equals,
    /// Within the tolerance.
    Within,
    /// The wish or more.
    AtLeast,
    /// The wish or less.
    AtMost,
    /// Toward the wish: for what gets there long after it was told (a thermostat).
    Approaches,
}

impl Choice {
    /// The words of the configuration.
    pub const WORDS: &[&str] = &["equals", "within", "at_least", "at_most", "approaches"];

    /// The word in the configuration.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Equals => "equals",
            Self::Within => "within",
            Self::AtLeast => "at_least",
            Self::AtMost => "at_most",
            Self::Approaches => "approaches",
        }
    }

    /// Reads a word of the configuration.
    pub fn read(word: &str) -> Option<Self> {
        [Self::Equals, Self::Within, Self::AtLeast, Self::AtMost, Self::Approaches]
            .into_iter()
            .find(|choice| choice.as_str() == word)
    }
}

impl Predicate {
    /// What a wish for `wish` (normalised) needs, where the property was `before` (normalised), if that is known.
    pub fn of_wish(property: &Property, wish: &Value, before: Option<&Value>) -> Self {
        let Some(target) = wish.number() else { return Self::Equals(wish.clone()) };
        let within = || Self::Within { target, abs: tolerance(property, target, before.and_then(Value::number)) };
        match property.terms.predicate {
            None | Some(Choice::Within) => within(),
            Some(Choice::Equals) => Self::Equals(wish.clone()),
            Some(Choice::AtLeast) => Self::AtLeast(target),
            Some(Choice::AtMost) => Self::AtMost(target),
            Some(Choice::Approaches) => Self::Approaches { target, by: property.nearness() },
        }
    }

    /// Whether `value` is so. What is said of a change is false while the value before is not known.
    pub fn holds(&self, before: Option<&Value>, value: &Value) -> bool {
        match self {
            Self::Equals(wish) => value == wish,
            Self::OneOf(wishes) => wishes.contains(value),
            Self::Within { target, abs } => value.number().is_some_and(|v| (v - target).abs() <= *abs),
            Self::AtLeast(least) => value.number().is_some_and(|v| v >= *least),
            Self::AtMost(most) => value.number().is_some_and(|v| v <= *most),
            Self::ChangesBy(least) => match (before.and_then(Value::number), value.number()) {
                (Some(before), Some(now)) if *least < 0.0 => now - before <= *least,
                (Some(before), Some(now)) => now - before >= *least && now != before,
                (None, _) | (_, None) => false,
            },
            Self::Approaches { target, by } => match (before.and_then(Value::number), value.number()) {
                (_, Some(now)) if (now - target).abs() <= *by => true,
                (Some(before), Some(now)) => (before - target).abs() - (now - target).abs() >= *by,
                (None, _) | (_, None) => false,
            },
        }
    }

    /// Whether it needs the value before.
    pub fn compares(&self) -> bool {
        match self {
            Self::ChangesBy(_) | Self::Approaches { .. } => true,
            Self::Equals(_) | Self::Within { .. } | Self::OneOf(_) | Self::AtLeast(_) | Self::AtMost(_) => false,
        }
    }
}

impl Property {
    /// How far apart two numbers may lie and still count as the same: the tolerance, else half a step; whole numbers
    /// without a tolerance must be equal.
    pub fn nearness(&self) -> f64 {
        match self.kind {
            Kind::Number => self.tolerance.or(self.step.map(|step| step / 2.0)).unwrap_or(0.0),
            Kind::Bool | Kind::Integer | Kind::Enum | Kind::Text | Kind::Colour => self.tolerance.unwrap_or(0.0),
        }
    }
}

/// The tolerance of one wish: never more than a third of the way from the value before, else a device that has not moved
/// would have arrived. A value before that counts as the wish already leaves no way to tell one from the other: then the
/// tolerance stands as the device describes it.
fn tolerance(property: &Property, target: f64, before: Option<f64>) -> f64 {
    let described = property.nearness();
    match before.map(|before| (before - target).abs()) {
        Some(way) if way > described => described.min(way / 3.0),
        Some(_) | None => described,
    }
}

impl Value {
    /// The value as a number, where it is one.
    pub fn number(&self) -> Option<f64> {
        match self {
            Self::Integer(v) => Some(f64::from(*v)),
            Self::Number(v) => Some(*v),
            Self::Bool(_) | Self::Text(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::property::tests::property;

    fn number(tolerance: Option<f64>, step: Option<f64>) -> Property {
        Property { tolerance, step, ..property(Kind::Number) }
    }

    fn abs(property: &Property, wish: f64, before: Option<f64>) -> f64 {
        match Predicate::of_wish(property, &Value::Number(wish), before.map(Value::Number).as_ref()) {
            Predicate::Within { abs, .. } => abs,
            other @ (Predicate::Equals(_)
            | Predicate::OneOf(_)
            | Predicate::AtLeast(_)
            | Predicate::AtMost(_)
            | Predicate::ChangesBy(_)
            | Predicate::Approaches { .. }) => panic!("{other:?}"),
        }
    }

    #[test]
    fn s3_1_the_tolerance_is_the_descriptions_else_half_a_step() {
        assert_eq!(abs(&number(Some(2.0), Some(5.0)), 50.0, None), 2.0);
        assert_eq!(abs(&number(None, Some(5.0)), 50.0, None), 2.5);
        assert_eq!(abs(&property(Kind::Integer), 50.0, None), 0.0);
    }

    #[test]
    fn s3_1_the_tolerance_is_never_more_than_a_third_of_the_way() {
        let wide = number(Some(10.0), None);
        assert_eq!(abs(&wide, 50.0, Some(20.0)), 10.0);
        assert_eq!(abs(&wide, 50.0, Some(35.0)), 5.0);
        // It counted as the wish before: there is no movement to be told from none.
        assert_eq!(abs(&wide, 50.0, Some(45.0)), 10.0);
    }

    #[test]
    fn s3_1_the_other_predicates() {
        let n = Value::Number;
        let before = n(10.0);
        let cases = [
            (Predicate::OneOf(vec![Value::Text("open".into()), Value::Text("opening".into())]), n(1.0), false),
            (Predicate::OneOf(vec![Value::Text("open".into())]), Value::Text("open".into()), true),
            (Predicate::AtLeast(5.0), n(5.0), true),
            (Predicate::AtLeast(5.0), n(4.9), false),
            (Predicate::AtMost(5.0), n(5.0), true),
            (Predicate::AtMost(5.0), n(5.1), false),
            (Predicate::ChangesBy(3.0), n(13.0), true),
            (Predicate::ChangesBy(3.0), n(12.9), false),
            (Predicate::ChangesBy(3.0), n(5.0), false),
            (Predicate::ChangesBy(-3.0), n(7.0), true),
            (Predicate::ChangesBy(0.0), n(10.0), false),
            (Predicate::Approaches { target: 20.0, by: 0.5 }, n(10.5), true),
            (Predicate::Approaches { target: 20.0, by: 0.5 }, n(10.4), false),
            (Predicate::Approaches { target: 20.0, by: 0.5 }, n(9.0), false),
            (Predicate::Approaches { target: 20.0, by: 0.5 }, n(35.0), false),
            (Predicate::Approaches { target: 20.0, by: 0.5 }, n(20.4), true),
        ];
        for (predicate, value, expected) in cases {
            assert_eq!(predicate.holds(Some(&before), &value), expected, "{predicate:?} of {value}");
        }
        for predicate in [Predicate::ChangesBy(3.0), Predicate::Approaches { target: 20.0, by: 0.5 }] {
            assert!(predicate.compares() && !predicate.holds(None, &n(15.0)), "unknown before, so nothing is known");
        }
    }

    #[test]
    fn s3_1_which_predicate_a_wish_gets() {
        let wish = |choice| {
            let mut property = number(Some(1.0), None);
            property.terms.predicate = choice;
            Predicate::of_wish(&property, &Value::Number(21.0), None)
        };
        assert_eq!(wish(None), Predicate::Within { target: 21.0, abs: 1.0 });
        assert_eq!(wish(Some(Choice::Equals)), Predicate::Equals(Value::Number(21.0)));
        assert_eq!(wish(Some(Choice::AtLeast)), Predicate::AtLeast(21.0));
        assert_eq!(wish(Some(Choice::AtMost)), Predicate::AtMost(21.0));
        assert_eq!(wish(Some(Choice::Approaches)), Predicate::Approaches { target: 21.0, by: 1.0 });
        let on = Value::Bool(true);
        assert_eq!(Predicate::of_wish(&property(Kind::Bool), &on, None), Predicate::Equals(on));
        for word in Choice::WORDS {
            assert_eq!(Choice::read(word).map(Choice::as_str), Some(*word));
        }
    }

    proptest! {
        #[test]
        fn s3_1_what_has_not_moved_has_not_arrived(before in -1e3..1e3_f64, wish in -1e3..1e3_f64, tol in 0.0..100.0_f64) {
            let property = number(Some(tol), None);
            let (before, wish) = (Value::Number(before), Value::Number(wish));
            let held = Predicate::of_wish(&property, &wish, Some(&before)).holds(Some(&before), &before);
            prop_assert_eq!(held, property.same(&before, &wish), "only what counted as the wish before");
        }

        #[test]
        fn s3_1_a_wish_that_is_met_exactly_is_met(before in -1e3..1e3_f64, wish in -1e3..1e3_f64, tol in 0.0..100.0_f64) {
            let (before, wish) = (Value::Number(before), Value::Number(wish));
            for choice in [None, Some(Choice::Equals), Some(Choice::AtLeast), Some(Choice::AtMost), Some(Choice::Approaches)] {
                let mut property = number(Some(tol), None);
                property.terms.predicate = choice;
                prop_assert!(Predicate::of_wish(&property, &wish, Some(&before)).holds(Some(&before), &wish));
            }
        }
    }
}
