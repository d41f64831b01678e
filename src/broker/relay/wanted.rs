//! Subscriptions of one connection whose retained messages are still to be sent, in the order in which they asked. Pure.

use std::{collections::BTreeMap, sync::Arc};

/// One for each filter at most; of what is retained there is no copy.
#[derive(Default)]
pub(super) struct Wanting {
    /// By their turns.
    line: BTreeMap<u64, Wanted>,
    /// The turn of each filter: one SUBSCRIBE may have thousands, so that nobody looks for one in the line.
    turns: BTreeMap<Arc<str>, u64>,
    last: u64,
}

/// A subscription that wants what is retained.
pub(super) struct Wanted {
    pub(super) filter: Arc<str>,
    pub(super) qos: u8,
    /// The last topic that was looked at.
    pub(super) after: Option<Arc<str>>,
}

impl Wanting {
    /// A filter goes to the end of the line, and begins anew.
    pub(super) fn push(&mut self, filter: &str, qos: u8) {
        self.remove(filter);
        self.last += 1;
        let filter: Arc<str> = filter.into();
        self.turns.insert(filter.clone(), self.last);
        self.line.insert(self.last, Wanted { filter, qos, after: None });
    }

    /// It wants nothing any more.
    pub(super) fn remove(&mut self, filter: &str) {
        if let Some(turn) = self.turns.remove(filter) {
            self.line.remove(&turn);
        }
    }

    /// Whose turn it is.
    pub(super) fn first(&mut self) -> Option<&mut Wanted> {
        self.line.first_entry().map(|entry| entry.into_mut())
    }

    /// It has all.
    pub(super) fn pop(&mut self) {
        if let Some((_, wanted)) = self.line.pop_first() {
            self.turns.remove(&wanted.filter);
        }
    }

    /// Whether nobody wants anything.
    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.line.is_empty() && self.turns.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filters(wanting: &mut Wanting) -> Vec<String> {
        let mut all = Vec::new();
        while let Some(wanted) = wanting.first() {
            all.push(format!("{} {}", wanted.filter, wanted.qos));
            wanting.pop();
        }
        assert!(wanting.is_empty());
        all
    }

    #[test]
    fn who_asks_again_stands_behind_the_others_and_nobody_twice() {
        let mut wanting = Wanting::default();
        for (filter, qos) in [("a", 0), ("b", 0), ("c", 1), ("a", 1)] {
            wanting.push(filter, qos);
        }
        wanting.remove("b");
        wanting.remove("x");
        assert_eq!(filters(&mut wanting), ["c 1", "a 1"]);
    }

    #[test]
    fn as_many_as_there_may_be_come_in_their_order() {
        let mut wanting = Wanting::default();
        let all: Vec<String> = (0..20_000).map(|number| format!("f/{number} 0")).collect();
        for _ in 0..2 {
            all.iter().for_each(|text| wanting.push(&text[..text.len() - 2], 0));
        }
        assert_eq!(filters(&mut wanting), all);
    }
}
