//! The retained messages of service accounts, kept in the journal.

use std::{
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use crate::{
    broker::{Change, Keeper, Kept, Memory, Stored},
    journal::{Entry, Journal, Lasting, RetainedRow},
};

/// What is kept, and the journal to keep more; without one, nothing is kept beyond the hub's end.
pub(super) fn memory(journal: Option<Journal>, rows: Vec<RetainedRow>) -> Memory {
    let Some(journal) = journal else { return Memory::none() };
    Memory { kept: rows.into_iter().map(kept).collect(), keeper: Arc::new(InJournal(journal)) }
}

struct InJournal(Journal);

impl Keeper for InJournal {
    fn keep(&self, changes: Vec<Change>, lasting: bool, stored: Stored) {
        let lasting = if lasting { Lasting::PowerCut } else { Lasting::Process };
        let Ok(kept) = self.0.keep(changes.into_iter().map(entry).collect(), lasting) else {
            return drop(stored); // the journal is behind or closed: tried again later, and the publisher is told
        };
        tokio::spawn(async move {
            match kept.await {
                Ok(Ok(())) => stored.kept(),
                Ok(Err(_)) | Err(_) => drop(stored),
            }
        });
    }
}

fn entry(change: Change) -> Entry {
    match change {
        Change::Forget(topic) => Entry::Unretained { topic },
        Change::Keep(Kept { topic, payload, qos, properties, expires }) => {
            let since = |at: SystemTime| at.duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
            let expires_ms = expires.map(|at| i64::try_from(since(at)).unwrap_or(i64::MAX));
            Entry::Retained(RetainedRow { topic, qos, expires_ms, properties, payload: payload.to_vec() })
        }
    }
}

fn kept(row: RetainedRow) -> Kept {
    let RetainedRow { topic, qos, expires_ms, properties, payload } = row;
    let expires = expires_ms.and_then(|ms| UNIX_EPOCH.checked_add(Duration::from_millis(ms.max(0).cast_unsigned())));
    Kept { topic, payload: payload.into(), qos: qos.min(1), properties, expires }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_comes_out_as_it_went_in() {
        let expires = Some(UNIX_EPOCH + Duration::from_millis(1_800_000_000_123));
        for expires in [None, expires] {
            let properties = vec![3, 0, 1, b'x'];
            let message = Kept { topic: "a/b".into(), payload: "on".into(), qos: 1, properties, expires };
            let Entry::Retained(row) = entry(Change::Keep(message.clone())) else { panic!("another entry") };
            assert_eq!(kept(row), message);
        }
        assert_eq!(entry(Change::Forget("a".into())), Entry::Unretained { topic: "a".into() });
    }
}
