//! The retained messages: one for each topic (3.3.1.3), bounded in number and bytes. Pure.
//!
//! What is to be written to the disk is told by [`Retained::as_it_is`] and [`Retained::next_change`]: a message of QoS 1 is written before it is acknowledged; the
//! changes of QoS 0, which nobody is promised, gather until somebody asks, so that a sensor that retains a value each second does
//! not wear a card out.

use std::{collections::BTreeMap, ops::Bound, sync::Arc};

use super::{
    disk::{Disk, Handed},
    message::Message,
};
use crate::topics::matches;

/// The retained messages.
pub(in crate::broker) struct Retained {
    kept: BTreeMap<Arc<str>, Arc<Message>>,
    bytes: usize,
    count_max: usize,
    bytes_max: usize,
    /// Each topic that has a message is in it, and those from which the disk is still to take one off. Of the latter there are at
    /// most twice `count_max`: while there are as many as that, no new topic is taken.
    disk: Disk,
}

/// No room for one more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::broker) struct Full;

/// What came of looking for the next message that a filter matches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::broker) enum Next {
    /// This one, on this topic.
    Found(Arc<str>, Arc<Message>),
    /// None up to this topic, and no more are looked at for now.
    StoppedAt(Arc<str>),
    /// None behind.
    NoMore,
}

impl Retained {
    pub(in crate::broker) fn new(count_max: usize, bytes_max: usize) -> Self {
        Self { kept: BTreeMap::new(), bytes: 0, count_max, bytes_max, disk: Disk::default() }
    }

    /// Keeps a message in the place of the one on its topic; an empty one only takes that away (3.3.1.3). Whether anything is
    /// another than before.
    pub(in crate::broker) fn set(&mut self, message: Arc<Message>, now_ms: u64) -> Result<bool, Full> {
        let old = self.kept.get(&*message.topic).cloned();
        if message.payload.is_empty() {
            return Ok(self.clear(&message.topic));
        }
        if old.as_ref().is_some_and(|old| old.says_what(&message)) {
            return Ok(false); // the same again: no reason to write it
        }
        let old_bytes = old.as_ref().map_or(0, |old| old.bytes());
        let fits = |all: &Self| {
            all.bytes - old_bytes + message.bytes() <= all.bytes_max
                && (old.is_some() || (all.kept.len() < all.count_max && all.to_take_off() < all.count_max))
        };
        if !fits(self) {
            self.forget_expired(now_ms, Some(&message.topic));
            if !fits(self) {
                return Err(Full);
            }
        }
        self.bytes = self.bytes - old_bytes + message.bytes();
        let topic: Arc<str> = match self.kept.get_key_value(&*message.topic) {
            Some((topic, _)) => topic.clone(),
            None => (&*message.topic).into(),
        };
        self.disk.changed(topic.clone());
        self.kept.insert(topic, message);
        Ok(true)
    }

    /// Takes in what was on the disk, without a bound on what was within one when it was written; nothing of it is to be written.
    pub(in crate::broker) fn take_in(&mut self, message: Message) {
        self.bytes += message.bytes();
        let topic: Arc<str> = (&*message.topic).into();
        self.disk.found(topic.clone());
        if let Some(old) = self.kept.insert(topic, Arc::new(message)) {
            self.bytes -= old.bytes();
        }
    }

    fn clear(&mut self, topic: &str) -> bool {
        let Some((topic, old)) = self.kept.remove_entry(topic) else { return false };
        self.bytes -= old.bytes();
        self.disk.gone(topic);
        true
    }

    /// Forgets what nobody is to have any more, but for one topic.
    pub(in crate::broker) fn forget_expired(&mut self, now_ms: u64, but: Option<&str>) {
        let over = |(topic, message): &(&Arc<str>, &Arc<Message>)| message.expired(now_ms) && Some(&***topic) != but;
        let expired: Vec<Arc<str>> = self.kept.iter().filter(over).map(|(topic, _)| topic.clone()).collect();
        for topic in expired {
            self.clear(&topic);
        }
    }

    /// The next message on a topic that a filter matches, in the order of topics, behind `after`. It looks at `looks` topics at
    /// most, but at one, and takes off those that it looked at.
    pub(in crate::broker) fn next(&self, filter: &str, after: Option<&str>, now_ms: u64, looks: &mut usize) -> Next {
        // All topics begin with the filter's levels before its first wildcard: only those are looked at.
        let plain = &filter[..filter.find(['+', '#']).unwrap_or(filter.len())];
        let plain = plain.strip_suffix('/').unwrap_or(plain); // a/# matches a
        let from = match after {
            Some(after) => Bound::Excluded(after),
            None => Bound::Included(plain),
        };
        let here = self.kept.range::<str, _>((from, Bound::Unbounded));
        for (topic, message) in here.take_while(|(topic, _)| topic.starts_with(plain)) {
            *looks = looks.saturating_sub(1);
            if matches(filter, topic) && !message.expired(now_ms) {
                return Next::Found(topic.clone(), message.clone());
            }
            if *looks == 0 {
                return Next::StoppedAt(topic.clone());
            }
        }
        Next::NoMore
    }

    /// What is on a topic, or that nothing is, to be written now, whether it has changed or not.
    pub(in crate::broker) fn as_it_is(&mut self, topic: &str) -> (Handed, Option<Arc<Message>>) {
        let (topic, message) = match self.kept.get_key_value(topic) {
            Some((topic, message)) => (topic.clone(), Some(message.clone())),
            None => (topic.into(), None),
        };
        (self.disk.hand(topic, message.is_some()), message)
    }

    /// The next change that waits to be written.
    pub(in crate::broker) fn next_change(&mut self) -> Option<(Handed, Option<Arc<Message>>)> {
        let topic = self.disk.next_unwritten()?;
        Some(self.as_it_is(&topic))
    }

    /// What became of a change: written, or refused, and then it waits again if it is of any use.
    pub(in crate::broker) fn settled(&mut self, change: Handed, taken: bool) {
        let kept = self.kept.contains_key(&change.topic);
        self.disk.settled(change, taken, kept);
    }

    /// Topics without a message from which the disk is still to take one off.
    fn to_take_off(&self) -> usize {
        self.disk.topics().saturating_sub(self.kept.len())
    }

    /// Messages, and their bytes.
    pub(in crate::broker) fn size(&self) -> (usize, usize) {
        (self.kept.len(), self.bytes)
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    fn message(topic: &str, payload: &str) -> Message {
        Message { retain: true, ..Message::plain(topic.to_owned(), Bytes::copy_from_slice(payload.as_bytes()), 1) }
    }

    fn set(retained: &mut Retained, topic: &str, payload: &str) -> Result<bool, Full> {
        retained.set(Arc::new(message(topic, payload)), 0)
    }

    /// All that a new subscriber to a filter hears.
    fn heard(retained: &Retained, filter: &str, now_ms: u64) -> Vec<String> {
        let mut topics: Vec<String> = Vec::new();
        let mut after: Option<Arc<str>> = None;
        loop {
            after = match retained.next(filter, after.as_deref(), now_ms, &mut 1) {
                Next::Found(topic, _) => {
                    topics.push(topic.to_string());
                    Some(topic)
                }
                Next::StoppedAt(topic) => Some(topic),
                Next::NoMore => return topics,
            };
        }
    }

    #[test]
    fn a_topic_has_one_message_and_an_empty_one_takes_it_away() {
        let mut retained = Retained::new(10, 10_000);
        assert_eq!(set(&mut retained, "a", "1"), Ok(true));
        assert_eq!(set(&mut retained, "a", "2"), Ok(true));
        assert_eq!(retained.next("a", None, 0, &mut 1), Next::Found("a".into(), Arc::new(message("a", "2"))));
        assert_eq!(retained.size(), (1, message("a", "2").bytes()));
        assert_eq!(set(&mut retained, "a", ""), Ok(true));
        assert_eq!(set(&mut retained, "a", ""), Ok(false), "there was none");
        assert_eq!(retained.size(), (0, 0));
    }

    #[test]
    fn a_new_subscriber_hears_what_its_filter_matches_and_nothing_twice() {
        let mut retained = Retained::new(10, 10_000);
        for topic in ["a", "a/b", "a/b/c", "a/c", "ab", "b", "$s/a"] {
            set(&mut retained, topic, "x").expect("room");
        }
        assert_eq!(heard(&retained, "a/#", 0), ["a", "a/b", "a/b/c", "a/c"]);
        assert_eq!(heard(&retained, "a/+", 0), ["a/b", "a/c"]);
        assert_eq!(heard(&retained, "#", 0).len(), 6, "none that begins with $");
        assert_eq!(heard(&retained, "a/b", 0), ["a/b"]);
        assert_eq!(heard(&retained, "+/b/#", 0), ["a/b", "a/b/c"]);
        assert!(heard(&retained, "c/#", 0).is_empty());
    }

    #[test]
    fn at_its_bounds_it_takes_no_more_but_changes_and_clears_what_it_has() {
        let one = message("a", "1").bytes();
        let mut retained = Retained::new(2, 10 * one);
        set(&mut retained, "a", "1").expect("room");
        set(&mut retained, "b", "1").expect("room");
        assert_eq!(set(&mut retained, "c", "1"), Err(Full), "a third");
        assert_eq!(set(&mut retained, "a", "2"), Ok(true));
        set(&mut retained, "b", "").expect("clearing needs no room");
        set(&mut retained, "c", "1").expect("room again");
        let mut retained = Retained::new(100, 2 * one);
        set(&mut retained, "a", "1").expect("room");
        set(&mut retained, "b", "1").expect("room");
        assert_eq!(set(&mut retained, "a", "22"), Err(Full), "a byte more than there is");
        assert_eq!(set(&mut retained, "c", "1"), Err(Full));
        assert_eq!(retained.size(), (2, 2 * one));
    }

    #[test]
    fn what_has_expired_is_heard_by_nobody_and_makes_room() {
        let mut retained = Retained::new(2, 10_000);
        let passing = Message { expires_ms: Some(1_000), ..message("a", "1") };
        retained.set(Arc::new(passing), 0).expect("room");
        set(&mut retained, "b", "1").expect("room");
        assert_eq!(heard(&retained, "#", 999), ["a", "b"]);
        assert_eq!(heard(&retained, "#", 1_000), ["b"]);
        assert_eq!(retained.set(Arc::new(message("c", "1")), 999), Err(Full));
        assert_eq!(retained.set(Arc::new(message("c", "1")), 1_000), Ok(true));
        assert_eq!(heard(&retained, "#", 0), ["b", "c"]);
    }

    #[test]
    fn each_change_is_written_once_and_the_same_again_is_none() {
        let mut retained = Retained::new(10, 10_000);
        set(&mut retained, "a", "1").expect("room");
        set(&mut retained, "a", "2").expect("room");
        let (change, written) = retained.as_it_is("a");
        assert_eq!((&*change.topic, &*written.expect("a message").payload), ("a", &b"2"[..]));
        retained.settled(change, true);
        assert_eq!(set(&mut retained, "a", "2"), Ok(false));
        assert!(retained.disk.is_written("a") && retained.next_change().is_none());
        assert!(retained.as_it_is("a").1.is_some(), "but to whoever is to hear that it is kept");
        set(&mut retained, "a", "").expect("clearing needs no room");
        let (change, gone) = retained.next_change().expect("a change");
        assert!(gone.is_none() && retained.next_change().is_none());
        retained.settled(change, false);
        assert!(!retained.disk.is_written("a"));
        let mut again = Retained::new(1, 1);
        again.take_in(message("x", "from the disk"));
        assert_eq!((again.size().0, again.next_change()), (1, None));
    }

    #[test]
    fn a_disk_that_refuses_everything_is_not_paid_for_with_memory() {
        let mut retained = Retained::new(10, 100_000);
        for number in 0..1_000 {
            let topic = format!("t/{number}");
            set(&mut retained, &topic, "1").expect("room");
            if number % 2 == 0 {
                let (change, _) = retained.as_it_is(&topic);
                retained.settled(change, false);
            }
            set(&mut retained, &topic, "").expect("clearing needs no room");
            if number % 3 == 0 {
                let (change, _) = retained.as_it_is(&topic);
                retained.settled(change, false);
            }
            assert_eq!((retained.disk.topics(), retained.next_change()), (0, None), "{topic}");
        }
    }

    #[test]
    fn a_disk_that_keeps_and_does_not_take_off_bounds_what_is_new() {
        let mut retained = Retained::new(10, 100_000);
        let mut took = 0;
        for number in 0..1_000 {
            let topic = format!("t/{number}");
            if set(&mut retained, &topic, "1").is_err() {
                continue;
            }
            took += 1;
            let (put, _) = retained.as_it_is(&topic);
            retained.settled(put, true);
            set(&mut retained, &topic, "").expect("clearing needs no room");
            let (off, _) = retained.as_it_is(&topic);
            retained.settled(off, false);
        }
        assert_eq!((took, retained.disk.topics()), (10, 10));
        while let Some((off, _)) = retained.next_change() {
            retained.settled(off, true);
        }
        set(&mut retained, "t", "1").expect("room, now that the disk takes off");
    }
}
