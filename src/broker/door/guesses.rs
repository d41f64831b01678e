//! Slows down who guesses passwords, and nobody else for longer than a moment.
//!
//! - Wrong logins are counted by address, by name, and by both together. After [`FREE`] of them the next CONNECT from this address
//!   or for this name waits before it is looked at, longer each time, `login_delay_max_ms` at most. A right one waits as long as a
//!   wrong one, so the time tells nothing, and a name that there is not counts as one that there is.
//! - Nobody is locked out: what waits is looked at in the end. A device that has come in from its address before does not even wait:
//!   for it only wrong logins with its own name from its own address count.
//! - What waits is bounded: [`WAITING_PER_PAIR`] of one name from one address, [`WAITING_PER_ADDRESS`] of one address,
//!   [`WAITING_MAX`] in all. One more is refused unjudged and may try again (v5: 0x97, quota exceeded; 3.1.1: 3). So at the longest
//!   delay of 2 s one address tries two passwords a second for a name. The device whose name *and* address the guesser shares
//!   competes with it for these places; no other does.
//! - A minute without a wrong one, and it is forgotten.
//!
//! What it remembers is bounded ([`REMEMBERED_MAX`] of each kind). A kind that is full begins anew: who makes up names to fill it is
//! still counted by address.

use std::{
    collections::{HashMap, HashSet},
    hash::{BuildHasher as _, RandomState},
    sync::{Arc, Mutex},
    time::Duration,
};

use crate::{broker::core::lock, peer::Peer};

/// Wrong logins that cost nothing: a device with an old password, a person who mistypes.
const FREE: u32 = 5;

/// The first delay; each further wrong login doubles it.
const FIRST_DELAY_MS: u64 = 250;

/// How long wrong logins are remembered after the last one.
const REMEMBERED_MS: u64 = 60_000;

/// How many addresses, names, pairs of both, and pairs that came in, are remembered: 16 and some bytes each.
const REMEMBERED_MAX: usize = 4096;

/// CONNECTs for one name from one address that wait.
const WAITING_PER_PAIR: usize = 4;

/// CONNECTs from one address that wait.
const WAITING_PER_ADDRESS: usize = 32;

/// CONNECTs that wait.
const WAITING_MAX: usize = 128;

/// An address, a name or both, hashed with a key that nobody outside knows.
type Key = u64;

/// Who guesses.
pub(in crate::broker) struct Guesses {
    delay_max_ms: u64,
    hasher: RandomState,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    addresses: Wrong,
    names: Wrong,
    pairs: Wrong,
    /// Pairs that have come in.
    known: HashSet<Key>,
    waiting: HashMap<Key, usize>,
    waiting_in_all: usize,
}

/// Wrong logins: how many, and when the last one was.
#[derive(Default)]
struct Wrong(HashMap<Key, (u32, u64)>);

/// Who is to be judged.
#[derive(Clone, Copy)]
pub(super) struct Candidate {
    address: Key,
    name: Key,
    pair: Key,
}

/// When a CONNECT is judged.
pub(super) enum Turn {
    /// Now.
    Now,
    /// After so long; hold the place until then.
    Later(Duration, Waiting),
    /// Not at all: too many wait.
    Never,
}

/// A place among those that wait; free again when it is dropped.
pub(super) struct Waiting {
    candidate: Candidate,
    state: Arc<Mutex<State>>,
}

impl Guesses {
    /// With this longest delay; 0 is none.
    pub(in crate::broker) fn new(delay_max_ms: u64) -> Self {
        Self { delay_max_ms, hasher: RandomState::new(), state: Arc::default() }
    }

    /// Somebody who says to be `name`.
    pub(super) fn candidate(&self, peer: Peer, name: &str) -> Candidate {
        Candidate {
            address: self.hasher.hash_one(("address", peer)),
            name: self.hasher.hash_one(("name", name)),
            pair: self.hasher.hash_one((peer, name)),
        }
    }

    /// When it is judged.
    pub(super) fn turn(&self, candidate: Candidate, now_ms: u64) -> Turn {
        let mut state = lock(&self.state);
        let wrong = if state.known.contains(&candidate.pair) {
            state.pairs.of(candidate.pair, now_ms)
        } else {
            state.addresses.of(candidate.address, now_ms).max(state.names.of(candidate.name, now_ms))
        };
        let delay_ms = delay_ms(wrong).min(self.delay_max_ms);
        if delay_ms == 0 {
            return Turn::Now;
        }
        let waiting = |key| state.waiting.get(&key).copied().unwrap_or_default();
        if state.waiting_in_all >= WAITING_MAX
            || waiting(candidate.address) >= WAITING_PER_ADDRESS
            || waiting(candidate.pair) >= WAITING_PER_PAIR
        {
            return Turn::Never;
        }
        state.waiting_in_all += 1;
        for key in [candidate.address, candidate.pair] {
            *state.waiting.entry(key).or_default() += 1;
        }
        let place = Waiting { candidate, state: self.state.clone() };
        Turn::Later(Duration::from_millis(delay_ms), place)
    }

    /// Its password was wrong, or it gave none.
    pub(super) fn wrong(&self, candidate: Candidate, now_ms: u64) {
        let mut state = lock(&self.state);
        state.addresses.add(candidate.address, now_ms);
        state.names.add(candidate.name, now_ms);
        state.pairs.add(candidate.pair, now_ms);
    }

    /// It came in.
    pub(super) fn right(&self, candidate: Candidate) {
        let mut state = lock(&self.state);
        state.pairs.0.remove(&candidate.pair);
        if state.known.len() >= REMEMBERED_MAX {
            state.known.clear();
        }
        state.known.insert(candidate.pair);
    }
}

impl Wrong {
    fn of(&self, key: Key, now_ms: u64) -> u32 {
        match self.0.get(&key) {
            Some((many, last_ms)) if now_ms.saturating_sub(*last_ms) < REMEMBERED_MS => *many,
            Some(_) | None => 0,
        }
    }

    fn add(&mut self, key: Key, now_ms: u64) {
        let many = self.of(key, now_ms).saturating_add(1);
        if self.0.len() >= REMEMBERED_MAX && !self.0.contains_key(&key) {
            self.0.retain(|_, (_, last_ms)| now_ms.saturating_sub(*last_ms) < REMEMBERED_MS);
            if self.0.len() >= REMEMBERED_MAX {
                self.0.clear();
            }
        }
        self.0.insert(key, (many, now_ms));
    }
}

fn delay_ms(wrong: u32) -> u64 {
    match wrong.checked_sub(FREE) {
        None => 0,
        Some(beyond) => FIRST_DELAY_MS << beyond.min(16),
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let mut state = lock(&self.state);
        state.waiting_in_all -= 1;
        for key in [self.candidate.address, self.candidate.pair] {
            if let Some(many) = state.waiting.get_mut(&key) {
                *many -= 1;
                if *many == 0 {
                    state.waiting.remove(&key);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use super::*;

    fn peer(last: u8) -> Peer {
        IpAddr::from([192, 168, 1, last]).into()
    }

    fn delay(guesses: &Guesses, who: Candidate, now_ms: u64) -> Option<u64> {
        match guesses.turn(who, now_ms) {
            Turn::Now => Some(0),
            Turn::Later(delay, _) => Some(u64::try_from(delay.as_millis()).expect("short")),
            Turn::Never => None,
        }
    }

    #[test]
    fn guessing_becomes_slow_up_to_the_bound_and_a_minute_makes_it_good() {
        let guesses = Guesses::new(2000);
        let who = guesses.candidate(peer(1), "lamp");
        let delays: Vec<_> = (0..10)
            .map(|_| {
                let delay = delay(&guesses, who, 0);
                guesses.wrong(who, 0);
                delay.expect("nobody waits")
            })
            .collect();
        assert_eq!(delays, [0, 0, 0, 0, 0, 250, 500, 1000, 2000, 2000]);
        assert_eq!(delay(&guesses, who, REMEMBERED_MS - 1), Some(2000));
        assert_eq!(delay(&guesses, who, REMEMBERED_MS), Some(0));
    }

    #[test]
    fn other_names_of_the_address_and_other_addresses_of_the_name_wait_too_but_not_who_came_in_before() {
        let guesses = Guesses::new(2000);
        let (neighbour, known) = (guesses.candidate(peer(1), "lock"), guesses.candidate(peer(1), "fan"));
        let (elsewhere, stranger) = (guesses.candidate(peer(2), "lamp"), guesses.candidate(peer(2), "lock"));
        guesses.right(known);
        let guesser = guesses.candidate(peer(1), "lamp");
        for _ in 0..20 {
            guesses.wrong(guesser, 0);
        }
        assert_eq!(delay(&guesses, neighbour, 1), Some(2000), "behind the same address");
        assert_eq!(delay(&guesses, elsewhere, 1), Some(2000), "the same name");
        assert_eq!((delay(&guesses, known, 1), delay(&guesses, stranger, 1)), (Some(0), Some(0)));
        for _ in 0..20 {
            guesses.wrong(known, 1);
        }
        assert_eq!(delay(&guesses, known, 1), Some(2000), "its own wrong ones count");
        guesses.right(known);
        assert_eq!(delay(&guesses, known, 1), Some(0));
    }

    #[test]
    fn what_waits_is_bounded_and_the_guesser_takes_nobodys_place() {
        let guesses = Guesses::new(2000);
        let mut places = Vec::new();
        let mut waits = |who| match guesses.turn(who, 0) {
            Turn::Later(_, place) => {
                places.push(place);
                true
            }
            Turn::Now | Turn::Never => false,
        };
        let guesser = guesses.candidate(peer(1), "lamp");
        for _ in 0..9 {
            guesses.wrong(guesser, 0);
        }
        assert_eq!((0..10).filter(|_| waits(guesser)).count(), WAITING_PER_PAIR);
        assert!(waits(guesses.candidate(peer(1), "lock")), "another name has its own places");
        assert!(waits(guesses.candidate(peer(2), "lamp")), "and so has the same name elsewhere");
        let names = (0..100).filter(|n| waits(guesses.candidate(peer(1), &format!("d{n}")))).count();
        assert_eq!(names, WAITING_PER_ADDRESS - WAITING_PER_PAIR - 1);
        places.clear();
        assert!(lock(&guesses.state).waiting.is_empty());
        assert!(matches!(guesses.turn(guesser, 0), Turn::Later(..)));
    }

    #[test]
    fn made_up_names_fill_nothing_for_good() {
        let guesses = Guesses::new(2000);
        for n in 0..3 * REMEMBERED_MAX {
            guesses.wrong(guesses.candidate(peer(1), &n.to_string()), 0);
        }
        let state = lock(&guesses.state);
        assert!(state.names.0.len() <= REMEMBERED_MAX && state.pairs.0.len() <= REMEMBERED_MAX);
        drop(state);
        assert_eq!(delay(&guesses, guesses.candidate(peer(1), "new"), 1), Some(2000), "the address is known");
    }

    #[test]
    fn without_a_delay_nobody_waits() {
        let guesses = Guesses::new(0);
        let who = guesses.candidate(peer(1), "lamp");
        (0..50).for_each(|_| guesses.wrong(who, 0));
        assert_eq!(delay(&guesses, who, 0), Some(0));
    }
}
