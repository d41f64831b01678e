//! "It said done, and it was not": the owner's word on an operation.

use super::record::{Event, Record, Thing};

/// Why nothing can be disputed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the audit knows no operation of {0:?}; truetwin audit shows the operations and devices there are")]
pub struct Unknown(pub String);

/// The record of a dispute, without its time: of the operation of that id, else of the latest call that wanted something of
/// that device, by its id or the name that was heard. `records` are oldest first. The second of the pair is the disputed call.
///
/// # Errors
/// [`Unknown`] if there is none.
pub fn dispute<'a>(
    records: impl DoubleEndedIterator<Item = &'a Record>,
    what: &str,
    note: Option<&str>,
) -> Result<(Record, &'a Record), Unknown> {
    let wanted = what.trim().to_lowercase();
    let is_name = |name: Option<&String>| name.is_some_and(|name| name.to_lowercase() == wanted);
    let about = |record: &&Record| {
        let by_operation = record.operations().any(|operation| operation == what);
        let of_device = record.things.iter().any(|thing| thing.device == what) || is_name(record.heard.as_ref());
        record.event == Event::Call && (by_operation || record.wants_something() && of_device)
    };
    let disputed = records.rev().find(about).ok_or_else(|| Unknown(super::bounded(what, 64)))?;
    let own = |thing: &&Thing| thing.device == what || thing.operation.as_deref() == Some(what);
    let thing = disputed.things.iter().find(own).or(disputed.things.first());
    let record = Record {
        tool: disputed.tool.clone(),
        operation: thing.and_then(|t| t.operation.clone()).or_else(|| disputed.operation.clone()),
        things: thing
            .map(|t| Thing { device: t.device.clone(), property: t.property.clone(), ..Thing::default() })
            .into_iter()
            .collect(),
        say: disputed.say.clone(),
        note: note.map(super::speech_masked),
        ..Record::new(Event::Dispute, "owner")
    };
    Ok((record, disputed))
}
