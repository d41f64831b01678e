//! What the merged twin says of an operation's wish: predicate, freshness, attribution, evidence (semantics 3.1 to 3.5), and
//! what a device that brings values into its range may say (3.9).

use crate::{
    property::{Evidence, Predicate, Property, PropertyName},
    twin::{
        Twin,
        operation::Operation,
        planted::{self, Planted},
        reported::Merged,
        words::{OpId, Outcome},
    },
};

/// What the merged twin says of an operation's wish.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It is so, with the evidence required.
    Met,
    /// It is so, with less evidence than required.
    Weak,
    /// It is otherwise.
    Other,
    /// Nothing is known that is newer than the command, and than its end if the device has finished it.
    Nothing,
}

impl Twin {
    /// Attributed: the device says that this operation is the last that it has finished on the property (semantics 3.3); or,
    /// where an action brings the value about, that it has done the action: the value is inferred.
    pub(super) fn attributed(&self, operation: &Operation) -> bool {
        planted::is(Planted::SeenIgnored)
            || operation.acted
            || self.reported.finished(&operation.property, &operation.op).is_some()
    }

    /// The operation's predicate on the merged value: received after the command was written to the device (3.2), and not
    /// older than the operation's end on the device.
    pub(super) fn verdict(&self, operation: &Operation) -> Verdict {
        let (Some(predicate), Some(known), Some(written_at)) =
            (&operation.predicate, self.reported.get(&operation.property), operation.written_at)
        else {
            return Verdict::Nothing;
        };
        let finished = self.reported.finished(&operation.property, &operation.op);
        if known.received_at < written_at || finished.is_some_and(|seq| known.seq < seq) {
            Verdict::Nothing
        } else if !predicate.holds(operation.before.as_ref(), &known.value) {
            Verdict::Other
        } else if known.evidence < operation.required {
            Verdict::Weak
        } else {
            Verdict::Met
        }
    }

    /// Fixes what the operation's success is, before its command goes out for the first time: afterwards the value before
    /// is gone.
    pub(super) fn set_predicate(&mut self, op: &OpId) {
        let Some(operation) = self.operations.get_mut(op).filter(|o| o.predicate.is_none()) else { return };
        operation.before = self.reported.get(&operation.property).map(|known| known.value.clone());
        if let (Some(property), Some(wish)) = (&operation.spec, &operation.wish) {
            operation.predicate = Some(Predicate::of_wish(property, wish, operation.before.as_ref()));
        }
    }

    /// The device says that it brought the value into its range. Where its description allows that, the value that it went
    /// to is what counts from now on; where not, the wish stands (semantics 3.9).
    pub(super) fn take_clamped(&mut self, op: &OpId, property: &PropertyName, merged: &Merged) {
        let Some(operation) = self.operations.get_mut(op) else { return };
        let (Some(spec), Some(known)) = (&operation.spec, self.reported.get(property)) else { return };
        let as_wished = operation.predicate.as_ref().is_some_and(|p| p.holds(operation.before.as_ref(), &known.value));
        if spec.terms.clamps && known.value.number().is_some() && merged.carried.contains(property) && !as_wished {
            operation.clamped = true;
            operation.predicate = Some(Predicate::of_wish(spec, &known.value, operation.before.as_ref()));
        }
    }
}

impl Operation {
    /// How it ends if what is known meets its predicate.
    pub(super) fn success(&self) -> Outcome {
        if self.clamped { Outcome::Clamped } else { Outcome::Converged }
    }
}

/// The evidence that a success needs: the highest that the device offers, unless the owner is content with less; receipt is
/// never completion (semantics 3.5).
pub(super) fn required(property: &Property) -> Evidence {
    let enough = property.terms.required.unwrap_or(property.feedback);
    enough.min(property.feedback).max(Evidence::Firmware)
}
