//! What is known of the disk's side of the retained messages: on which topics it has, or may have, another message than there is.
//! Pure.
//!
//! A topic is remembered while it has a message, while a change of it is on its way, and while the disk has one that is to be
//! taken off. One that the disk never took and that has gone again is forgotten, so that a disk that refuses everything is not paid
//! for with memory by whoever retains and clears more and more topics.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// What is known of the disk.
#[derive(Default)]
pub(in crate::broker) struct Disk {
    topics: BTreeMap<Arc<str>, Row>,
    /// Topics whose message on the disk is another one, or none.
    unwritten: BTreeSet<Arc<str>>,
    /// The last change that was handed over.
    last: u64,
}

/// A topic as the disk knows it.
#[derive(Default)]
struct Row {
    /// Changes on their way.
    on_the_way: u32,
    /// The disk has a message, as the last change says that it took.
    there: bool,
    /// The number of that change.
    as_of: u64,
}

/// A change on its way to the disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::broker) struct Handed {
    pub(super) topic: Arc<str>,
    number: u64,
    /// It puts a message there; else it takes one off.
    puts: bool,
}

impl Disk {
    /// This was found on it.
    pub(super) fn found(&mut self, topic: Arc<str>) {
        self.topics.entry(topic).or_default().there = true;
    }

    /// There is another message on this topic.
    pub(super) fn changed(&mut self, topic: Arc<str>) {
        self.topics.entry(topic.clone()).or_default();
        self.unwritten.insert(topic);
    }

    /// There is none any more.
    pub(super) fn gone(&mut self, topic: Arc<str>) {
        self.unwritten.insert(topic.clone());
        self.forget_needless(&topic);
    }

    /// What is on this topic is handed to the disk now.
    pub(super) fn hand(&mut self, topic: Arc<str>, puts: bool) -> Handed {
        self.unwritten.remove(&topic);
        self.last += 1;
        self.topics.entry(topic.clone()).or_default().on_the_way += 1;
        Handed { topic, number: self.last, puts }
    }

    /// A topic that is to be written.
    pub(super) fn next_unwritten(&self) -> Option<Arc<str>> {
        self.unwritten.first().cloned()
    }

    /// What became of a change; words of several may come in any order. Refused, the disk is as it was before. `kept`: there is a
    /// message on its topic now.
    pub(super) fn settled(&mut self, change: Handed, taken: bool, kept: bool) {
        let Handed { topic, number, puts } = change;
        let Some(row) = self.topics.get_mut(&topic) else { return };
        row.on_the_way = row.on_the_way.saturating_sub(1);
        if number > row.as_of {
            if taken {
                (row.there, row.as_of) = (puts, number);
            } else {
                self.unwritten.insert(topic.clone());
            }
        }
        if !kept {
            self.forget_needless(&topic);
        }
    }

    /// Forgets a topic without a message if the disk has none either.
    fn forget_needless(&mut self, topic: &str) {
        if self.topics.get(topic).is_none_or(|row| row.on_the_way == 0 && !row.there) {
            self.topics.remove(topic);
            self.unwritten.remove(topic);
        }
    }

    /// Topics that are remembered.
    pub(super) fn topics(&self) -> usize {
        self.topics.len()
    }

    /// Whether the message on this topic is, or is on its way to be, on the disk.
    #[cfg(test)]
    pub(super) fn is_written(&self, topic: &str) -> bool {
        !self.unwritten.contains(topic)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_the_disk_refused_and_has_gone_is_forgotten() {
        let mut disk = Disk::default();
        for number in 0..1_000 {
            let topic: Arc<str> = format!("t/{number}").into();
            disk.changed(topic.clone());
            let put = disk.hand(topic.clone(), true);
            disk.gone(topic.clone());
            let off = disk.hand(topic.clone(), false);
            assert_eq!(disk.topics(), 1, "it is on its way");
            disk.settled(put, false, false);
            disk.settled(off, false, false);
            assert_eq!((disk.topics(), disk.next_unwritten()), (0, None), "{topic}");
        }
    }

    #[test]
    fn what_the_disk_has_is_remembered_until_it_is_taken_off() {
        let mut disk = Disk::default();
        disk.found("a".into());
        disk.gone("a".into());
        for _ in 0..3 {
            assert_eq!(disk.next_unwritten().as_deref(), Some("a"));
            let off = disk.hand("a".into(), false);
            assert_eq!(disk.next_unwritten(), None);
            disk.settled(off, false, false);
        }
        let off = disk.hand("a".into(), false);
        disk.settled(off, true, false);
        assert_eq!((disk.topics(), disk.next_unwritten()), (0, None));
    }

    proptest! {
        /// Beside a disk that really takes or refuses, with words that come late and in any order.
        #[test]
        fn in_the_end_the_disk_has_what_there_is_and_nothing_else_is_remembered(
            steps in prop::collection::vec((0..6u8, 0..3usize, any::<bool>(), any::<prop::sample::Index>()), 1..60),
        ) {
            let names: [Arc<str>; 3] = ["a".into(), "b".into(), "c".into()];
            let (mut disk, mut kept, mut real) = (Disk::default(), BTreeSet::new(), BTreeSet::new());
            let mut words: Vec<(Handed, bool)> = Vec::new();
            let hand = |disk: &mut Disk, real: &mut BTreeSet<Arc<str>>, topic: &Arc<str>, puts: bool, takes: bool| {
                let change = disk.hand(topic.clone(), puts);
                if takes {
                    if puts { real.insert(topic.clone()); } else { real.remove(topic); }
                }
                (change, takes)
            };
            for (what, at, takes, word) in steps {
                let topic = &names[at];
                match what {
                    0 | 1 => {
                        kept.insert(topic.clone());
                        disk.changed(topic.clone());
                    }
                    2 => if kept.remove(topic) { disk.gone(topic.clone()) },
                    3 => words.push(hand(&mut disk, &mut real, topic, kept.contains(topic), takes)),
                    _ if words.is_empty() => {}
                    _ => {
                        let (change, taken) = words.swap_remove(word.index(words.len()));
                        let there = kept.contains(&change.topic);
                        disk.settled(change, taken, there);
                    }
                }
                for topic in disk.topics.keys() {
                    let on_the_way = words.iter().any(|(change, _)| change.topic == *topic);
                    prop_assert!(kept.contains(topic) || real.contains(topic) || on_the_way, "{topic} is remembered");
                }
            }
            for (change, taken) in words {
                let there = kept.contains(&change.topic);
                disk.settled(change, taken, there);
            }
            while let Some(topic) = disk.next_unwritten() {
                let puts = kept.contains(&topic);
                let (change, taken) = hand(&mut disk, &mut real, &topic, puts, true);
                disk.settled(change, taken, puts);
            }
            prop_assert_eq!(&real, &kept);
            prop_assert_eq!(disk.topics(), kept.len());
        }
    }
}
