//! Messages among service accounts, and from devices to them.
//!
//! | file | what |
//! |---|---|
//! | `message` | one message, shared by all who are to have it |
//! | `tree` | who has subscribed to what |
//! | `retained` | the retained messages |
//! | `disk` | which of them the disk has |
//! | `outbox` | what waits for one connection |
//! | `wanted` | which of its subscriptions still want what is retained |
//! | `keeper` | how the retained messages outlive the process |
//! | `refusals` | what the log says of topics that an account was refused, and of clients without TLS |
//! | `accounts` | the account's connections: in, out, and what goes between them |
//!
//! Nothing here goes over the bus: a message is put into the outboxes of those who are to have it in the turn in which it was
//! read. Order of locks: one connection's state, then the table; never a state under the table, never two states.

mod accounts;
mod disk;
mod keeper;
mod message;
mod outbox;
mod refusals;
mod retained;
mod tree;
mod wanted;

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, SystemTime},
};

pub use self::keeper::{Change, Keeper, Kept, Memory, Stored};
pub(super) use self::{
    accounts::{Account, AccountState},
    message::{Message, passed_on},
    outbox::Outbox,
    refusals::{Refusals, Wanted},
    retained::Full,
    tree::Options,
};
use self::{keeper::Waiting, retained::Retained, tree::Tree};
use super::{
    conn::Conn,
    core::{Core, lock},
    settings::AccountSettings,
};

/// Changes that are handed to the keeper at once.
const CHANGES_AT_ONCE: usize = 256;

/// The log says at most this often that something cannot be retained.
const REFUSAL_EVERY_MS: u64 = 10_000;

/// What all accounts share.
pub(super) struct Relay {
    table: Mutex<Table>,
    /// How many subscriptions there are: as long as there are none, devices' messages are copied for nobody.
    subscriptions: AtomicUsize,
    /// The levels of their filters, all together.
    levels: AtomicUsize,
    /// When the log last said that something cannot be retained.
    pub(super) refusal_said: Seldom,
    /// What the log said of topics that were refused.
    pub(super) refused: Refusals,
    keeper: Arc<dyn Keeper>,
    /// Held from taking changes out of the table until the keeper has them: so it gets those of one topic in their order. Taken
    /// before the table, with nothing else locked.
    handing: Mutex<()>,
}

/// Whether something is to be said that clients can cause as often as they like: once in a while, so that nobody fills the disk
/// through the log. Metrics count each.
#[derive(Default)]
pub(super) struct Seldom(Mutex<Option<u64>>);

impl Seldom {
    /// Whether it is time to say it; then it is said.
    pub(super) fn is_due(&self, now_ms: u64) -> bool {
        let mut said_ms = lock(&self.0);
        let due = said_ms.is_none_or(|at| now_ms.saturating_sub(at) >= REFUSAL_EVERY_MS);
        if due {
            *said_ms = Some(now_ms);
        }
        due
    }
}

pub(super) struct Table {
    tree: Tree,
    retained: Retained,
    /// All connections of accounts, by their number.
    connections: HashMap<u64, Arc<Conn>>,
}

impl Relay {
    /// With what was kept. Times are turned into those of the broker's clock, which is at 0.
    pub(super) fn new(settings: &AccountSettings, memory: Memory) -> Self {
        let mut retained = Retained::new(settings.retained_max, settings.retained_bytes_max);
        let now = SystemTime::now();
        for Kept { topic, payload, qos, properties, expires } in memory.kept {
            let left = expires.map(|at| at.duration_since(now).unwrap_or_default());
            let expires_ms = left.map(|left| u64::try_from(left.as_millis()).unwrap_or(u64::MAX));
            let (topic, properties) = (topic.into_boxed_str(), properties.into_boxed_slice());
            retained.take_in(Message { topic, payload, qos, retain: true, properties, expires_ms, from: 0 });
        }
        let table = Mutex::new(Table { tree: Tree::default(), retained, connections: HashMap::new() });
        let (subscriptions, levels) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let (keeper, handing) = (memory.keeper, Mutex::new(()));
        let (refusal_said, refused) = (Seldom::default(), Refusals::default());
        Self { table, subscriptions, levels, refusal_said, refused, keeper, handing }
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        lock(&self.table)
    }

    /// Whether anybody has subscribed to anything.
    pub(super) fn is_heard(&self) -> bool {
        self.subscriptions.load(Ordering::Relaxed) > 0
    }

    /// Connections of accounts, for the sweep and for the broker's end.
    pub(super) fn connections(&self) -> Vec<Arc<Conn>> {
        self.table().connections.values().cloned().collect()
    }

    /// Connections, subscriptions, retained messages and their bytes.
    pub(super) fn sizes(&self) -> (u64, u64, u64, u64) {
        let table = self.table();
        let (messages, bytes) = table.retained.size();
        let subscriptions = self.subscriptions.load(Ordering::Relaxed);
        (table.connections.len() as u64, subscriptions as u64, messages as u64, bytes as u64)
    }

    /// Changes were kept, or refused: then they are tried again with the next ones.
    fn settled(&self, changes: Vec<disk::Handed>, taken: bool) {
        let mut table = self.table();
        for change in changes {
            table.retained.settled(change, taken);
        }
    }
}

impl Core {
    /// Hands the keeper all changes that wait. Those of QoS 0 do so for a while, so that a value that changes each second is written
    /// once.
    pub(super) fn write_retained(self: &Arc<Self>) {
        let _in_order = lock(&self.relay.handing);
        let mut waiting: Vec<_> = {
            let mut table = self.relay.table();
            table.retained.forget_expired(self.now_ms(), None);
            std::iter::from_fn(|| table.retained.next_change()).collect()
        };
        while !waiting.is_empty() {
            let now = waiting.split_off(waiting.len().saturating_sub(CHANGES_AT_ONCE));
            let changes = now.iter().map(|(handed, message)| self.change(&handed.topic, message.as_deref())).collect();
            let now = now.into_iter().map(|(handed, _)| handed).collect();
            let stored = Stored::new(Waiting { core: self.clone(), changes: now, publish: None });
            self.relay.keeper.keep(changes, false, stored);
        }
    }

    /// Keeps what is on the topic of one publish, which is acknowledged once that is done, behind all that was kept before. Also
    /// if it said the same again: what it rests on may be on its way to a disk that refuses it. Nobody waits for that of a will.
    pub(super) fn write_now(self: &Arc<Self>, topic: &str, publish: Option<(Arc<Conn>, u64)>) {
        let _in_order = lock(&self.relay.handing);
        let (handed, message) = self.relay.table().retained.as_it_is(topic);
        let changes = vec![self.change(topic, message.as_deref())];
        let waiting = Waiting { core: self.clone(), changes: vec![handed], publish };
        self.relay.keeper.keep(changes, true, Stored::new(waiting));
    }

    fn change(&self, topic: &str, message: Option<&Message>) -> Change {
        let Some(message) = message else { return Change::Forget(topic.to_owned()) };
        let left = message.expires_ms.map(|at| Duration::from_millis(at.saturating_sub(self.now_ms())));
        Change::Keep(Kept {
            topic: topic.to_owned(),
            payload: message.payload.clone(),
            qos: message.qos,
            properties: message.properties.to_vec(),
            expires: left.and_then(|left| SystemTime::now().checked_add(left)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_clients_can_cause_at_will_is_said_once_in_a_while() {
        let seldom = Seldom::default();
        let said: Vec<u64> = (0..=25_000).filter(|now_ms| seldom.is_due(*now_ms)).collect();
        assert_eq!(said, [0, 10_000, 20_000]);
    }
}
