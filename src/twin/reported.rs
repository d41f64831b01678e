//! What the device says: merged by `(boot, seq)` (semantics 2.1 to 2.4). An assumed value is never in here.

use std::{collections::BTreeMap, sync::Arc, time::Instant};

use crate::{
    property::{Description, Evidence, PropertyName, Value, ValueError},
    twin::{
        input::{Cause, Hello, Ignored, Report, Status},
        planted::{self, Planted},
        words::OpId,
    },
};

/// One reported value.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Known {
    pub(super) value: Value,
    pub(super) seq: u32,
    pub(super) evidence: Evidence,
    pub(super) received_at: Instant,
    /// It was told as the state, not at the end of an operation.
    pub(super) read: bool,
    /// Who brought this value about, as the report said that first told it.
    pub(super) changed_by: ChangedBy,
}

/// Who brought a value about (semantics 2.1).
#[derive(Clone, Debug, PartialEq)]
pub enum ChangedBy {
    /// An operation of this hub.
    Operation(OpId),
    /// What the device names.
    Cause(Cause),
}

/// A value that a report changed.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Change {
    pub(super) property: PropertyName,
    pub(super) to: Value,
    /// What was known of it before is no reading: nothing in this run of the hub, or what the device claimed at the end of an
    /// operation.
    pub(super) first: bool,
}

/// What came of merging one report.
#[derive(Debug, Default)]
pub(super) struct Merged {
    /// Properties whose merged value is other than before.
    pub(super) changes: Vec<Change>,
    /// Properties that the report carried a readable value for, whether or not a newer one stands.
    pub(super) carried: Vec<PropertyName>,
    /// Values that do not fit the description.
    pub(super) malformed: Vec<(PropertyName, Option<ValueError>)>,
}

/// The reported state of one device in one boot.
#[derive(Clone, Debug, Default)]
pub(super) struct Reported {
    boot: Option<Arc<str>>,
    seqs: Seqs,
    known: BTreeMap<PropertyName, Known>,
    /// The last operation finished on each property, with the first `seq` that said so (semantics 3.3).
    seen: BTreeMap<PropertyName, (u32, OpId)>,
}

impl Reported {
    pub(super) fn get(&self, property: &str) -> Option<&Known> {
        self.known.get(property)
    }

    /// If an operation is the last that the device has finished on a property: the number of the first report that said
    /// so. Values of older reports are from before its end.
    pub(super) fn finished(&self, property: &str, op: &OpId) -> Option<u32> {
        self.seen.get(property).filter(|(_, last)| last == op).map(|(seq, _)| *seq)
    }

    /// The last operation that the device has finished on a property.
    pub(super) fn finished_last(&self, property: &str) -> Option<&OpId> {
        self.seen.get(property).map(|(_, op)| op)
    }

    pub(super) fn boot(&self) -> Option<&Arc<str>> {
        self.boot.as_ref()
    }

    /// Goes on in a boot that a crashed actor knew; its values are asked for again.
    pub(super) fn resume(&mut self, boot: Option<Arc<str>>) {
        *self = Self { boot, ..Self::default() };
    }

    /// Takes a hello: a full snapshot, which replaces (semantics 2.3). `None` if reports of the same boot have overtaken it.
    pub(super) fn replace(&mut self, now: Instant, hello: &Hello) -> Option<Merged> {
        if self.boot.as_ref() == Some(&hello.boot) {
            if hello.seq <= self.seqs.highest {
                return None;
            }
        } else {
            self.seqs = Seqs::default();
            self.seen.clear();
        }
        self.boot = Some(hello.boot.clone());
        self.seqs.take(hello.seq);
        // What this boot has finished stays finished; a device may leave it out of its hello.
        self.seen.retain(|property, _| hello.description.property(property).is_some());
        for (property, op) in &hello.seen {
            self.finish(hello.seq, property, op, &hello.description);
        }
        let before = std::mem::take(&mut self.known);
        let mut merged = self.merge(now, hello.seq, &hello.status, &hello.description, &ChangedBy::Cause(hello.cause));
        merged.changes.retain(|change| before.get(&change.property).is_none_or(|known| known.value != change.to));
        for change in &mut merged.changes {
            change.first = !before.get(&change.property).is_some_and(|known| known.read);
        }
        Some(merged)
    }

    /// Whether a report counts at all.
    pub(super) fn admit(&mut self, report: &Report) -> Result<(), Ignored> {
        if report.retained && !planted::is(Planted::RetainedCounts) {
            return Err(Ignored::Retained);
        }
        match &self.boot {
            None => return Err(Ignored::NotGreeted),
            Some(boot) if *boot != report.boot && !planted::is(Planted::OldBootCounts) => return Err(Ignored::OldBoot),
            Some(_) => {}
        }
        if self.seqs.take(report.seq) { Ok(()) } else { Err(Ignored::Duplicate) }
    }

    /// Merges a patch. A property that a newer report has set keeps its value.
    pub(super) fn merge(
        &mut self,
        now: Instant,
        seq: u32,
        status: &[Status],
        description: &Description,
        by: &ChangedBy,
    ) -> Merged {
        let mut merged = Merged::default();
        for Status { property: name, value, evidence } in status {
            let Some(property) = description.property(name) else {
                merged.malformed.push((name.clone(), None));
                continue;
            };
            let value = match property.read(value) {
                Ok(value) => value,
                Err(error) => {
                    merged.malformed.push((name.clone(), Some(error)));
                    continue;
                }
            };
            merged.carried.push(name.clone());
            let before = self.known.get(name);
            if before.is_some_and(|known| known.seq > seq) {
                continue;
            }
            let unchanged = before.filter(|known| known.value == value).map(|known| known.changed_by.clone());
            if unchanged.is_none() {
                merged.changes.push(Change {
                    property: name.clone(),
                    to: value.clone(),
                    first: !before.is_some_and(|known| known.read),
                });
            }
            // No claim beyond what the description offers (semantics 3.5).
            let evidence = (*evidence).min(property.feedback);
            let read = match by {
                ChangedBy::Operation(_) => false,
                ChangedBy::Cause(_) => true,
            };
            let changed_by = unchanged.unwrap_or_else(|| by.clone());
            self.known.insert(name.clone(), Known { value, seq, evidence, received_at: now, read, changed_by });
        }
        merged
    }

    /// Notes which operation was finished last on a property. One that is not described is no news: what is remembered is
    /// bounded by the description.
    pub(super) fn finish(&mut self, seq: u32, property: &PropertyName, op: &OpId, description: &Description) {
        if description.property(property).is_none() {
            return;
        }
        let (since, last) = self.seen.entry(property.clone()).or_insert_with(|| (seq, op.clone()));
        if last == op {
            *since = seq.min(*since);
        } else if *since <= seq {
            (*since, *last) = (seq, op.clone());
        }
    }
}

/// Which numbers of this boot were there: the highest, and one bit for each of the 64 below it. An older number counts as
/// a duplicate: a report overtaken by 64 others tells nothing that they do not.
#[derive(Clone, Debug, Default)]
struct Seqs {
    highest: u32,
    below: u64,
}

impl Seqs {
    /// Whether `seq` is new; it is not afterwards.
    fn take(&mut self, seq: u32) -> bool {
        if seq > self.highest {
            let by = seq - self.highest;
            let marked = if self.highest == 0 { 0 } else { 1 };
            self.below = match by {
                1..=63 => (self.below << by) | (marked << (by - 1)),
                64 => marked << 63,
                _ => 0,
            };
            self.highest = seq;
            return true;
        }
        let back = self.highest - seq;
        if seq == 0 || back == 0 || back > 64 {
            return false;
        }
        let bit = 1 << (back - 1);
        let new = self.below & bit == 0;
        self.below |= bit;
        new
    }
}

#[cfg(test)]
mod tests {
    use super::Seqs;

    #[test]
    fn s2_4_each_number_of_a_boot_counts_once_in_any_order() {
        let order = [3_u32, 1, 2, 3, 1, 70, 6, 69, 69, 4, 134, 70, 71, 300, 299, 299, 1];
        let new = [
            true, true, true, false, false, true, true, true, false, false, true, false, true, true, true, false, false,
        ];
        let mut seqs = Seqs::default();
        let got: Vec<bool> = order.iter().map(|s| seqs.take(*s)).collect();
        assert_eq!(got, new);
    }
}
