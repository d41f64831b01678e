//! The connections of accounts: in, out, and what goes between them.

use std::{
    collections::BTreeSet,
    sync::{Arc, atomic::Ordering},
};

use super::{
    Full, Message, Options,
    outbox::{Filled, Offered, Outbox},
    tree::levels,
};
use crate::{
    broker::{
        Closed,
        conn::Conn,
        core::{Core, NoEntry},
        counters::{count, count_many},
    },
    topics::Rights,
};

/// Subscriptions of all connections are at most those of so many with as many as one may have: a home has one such program.
const CONNECTIONS_FULL_OF_SUBSCRIPTIONS: usize = 4;

/// All filters together have at most so many levels for each subscription that there may be: each level is some 400 bytes, and
/// a step of each publish that it matches. Real ones have three to five.
const LEVELS_PER_SUBSCRIPTION: usize = 8;

/// The role of a connection of an account: what does not change.
pub(in crate::broker) struct Account {
    /// Which of the account's connections it is; another with the same takes its place (3.1.4).
    pub(in crate::broker) client_id: Box<str>,
    pub(in crate::broker) rights: Arc<Rights>,
}

/// What changes, under the connection's lock.
pub(in crate::broker) struct AccountState {
    pub(in crate::broker) outbox: Outbox,
    /// Topics by their alias - 1 (3.3.2.3.4).
    pub(in crate::broker) aliases: Vec<Option<Box<str>>>,
    /// Its subscriptions.
    pub(in crate::broker) filters: BTreeSet<Box<str>>,
    /// Their levels, all together.
    pub(in crate::broker) levels: usize,
    /// Its will; the time until it expires begins when it is told (3.1.3.2.4).
    pub(in crate::broker) will: Option<Message>,
}

impl AccountState {
    pub(in crate::broker) fn new(outbox: Outbox, will: Option<Message>) -> Self {
        Self { outbox, aliases: Vec::new(), filters: BTreeSet::new(), levels: 0, will }
    }
}

impl Core {
    /// Lets an account's connection in; an older one with the same client id ends.
    pub(in crate::broker) fn admit_account(self: &Arc<Self>, conn: &Arc<Conn>) -> Result<(), NoEntry> {
        let settings = &self.settings.accounts;
        let client_id = |conn: &Conn| conn.account().map(|account| account.client_id.clone());
        let old = {
            let mut table = self.relay.table();
            let same_name = || table.connections.values().filter(|other| other.name == conn.name);
            let old = same_name().find(|other| client_id(other) == client_id(conn)).cloned();
            let full = table.connections.len() >= settings.connections_max
                || same_name().count() >= settings.connections_each_max;
            if self.stopping.is_cancelled() || (full && old.is_none()) {
                return Err(NoEntry::Busy);
            }
            table.connections.insert(conn.number, conn.clone());
            old
        };
        if let Some(old) = old {
            self.end(&old, Closed::TakenOver);
        }
        count(&self.totals.accepted);
        Ok(())
    }

    /// Ends an account's connection, once: its subscriptions go, its will is told.
    pub(in crate::broker) fn end_account(self: &Arc<Self>, conn: &Conn, why: Closed) {
        let (account, let_in) = {
            let mut state = conn.state();
            let Some(account) = state.account.take() else { return };
            state.closed = Some(why);
            state.wake();
            (account, state.let_in)
        };
        {
            let mut table = self.relay.table();
            for filter in &account.filters {
                table.tree.remove(filter, conn.number);
            }
            table.connections.remove(&conn.number);
            self.relay.subscriptions.fetch_sub(account.filters.len(), Ordering::Relaxed);
            self.relay.levels.fetch_sub(account.levels, Ordering::Relaxed);
        }
        self.count_end(why);
        let told = let_in && !matches!(why, Closed::Clean | Closed::Stopped);
        if let Some(will) = account.will.filter(|_| told) {
            let mut will = will;
            will.expires_ms = will.expires_ms.map(|after| self.now_ms().saturating_add(after));
            let will = Arc::new(will);
            match self.retain(&will) {
                Ok(()) if will.retain && will.qos == 1 => self.write_now(&will.topic, None),
                Err(Full) if self.relay.refusal_said.is_due(self.now_ms()) => {
                    tracing::warn!(account = &*conn.name, "a will is told but not retained: there is no room");
                }
                Ok(()) | Err(Full) => {}
            }
            self.route(&will);
        }
    }

    /// The connections of one account.
    pub(in crate::broker) fn of_account(&self, name: &str) -> Vec<Arc<Conn>> {
        self.relay.table().connections.values().filter(|conn| &*conn.name == name).cloned().collect()
    }

    /// Keeps a message that is to be retained; what is not leaves everything as it is.
    pub(in crate::broker) fn retain(&self, message: &Arc<Message>) -> Result<(), Full> {
        if !message.retain {
            return Ok(());
        }
        let kept = self.relay.table().retained.set(message.clone(), self.now_ms());
        if kept.is_err() {
            count(&self.totals.retained_refused);
        }
        kept.map(drop)
    }

    /// Puts a message into the outboxes of all who have subscribed to its topic, of each one once.
    pub(in crate::broker) fn route(self: &Arc<Self>, message: &Arc<Message>) {
        if !self.relay.is_heard() {
            return;
        }
        for (conn, qos, retain) in self.hearers(message) {
            let offered = {
                let mut state = conn.state();
                let state = &mut *state;
                let Some(account) = &mut state.account else { continue };
                let offered = account.outbox.offer(message, qos, retain);
                state.wake();
                offered
            };
            match offered {
                Offered::Taken => {}
                Offered::Dropped => count(&self.totals.messages_dropped),
                Offered::Overrun => {
                    let account = &*conn.name;
                    tracing::warn!(
                        account,
                        "it reads too slowly for what it has subscribed to; its connection is closed"
                    );
                    self.end(&conn, Closed::SlowReader);
                }
            }
        }
    }

    /// Who is to have a message, with which QoS, and whether as a retained one. Of several subscriptions of one connection
    /// the highest QoS counts (3.3.4).
    fn hearers(&self, message: &Message) -> Vec<(Arc<Conn>, u8, bool)> {
        let mut found: Vec<(u64, u8, bool)> = Vec::new();
        let table = self.relay.table();
        table.tree.matching(&message.topic, &mut |who, options| {
            if options.no_local && who == message.from {
                return;
            }
            let (qos, retain) = (options.qos.min(message.qos), options.retain_as_published && message.retain);
            match found.iter_mut().find(|(known, _, _)| *known == who) {
                Some((_, best, flag)) => (*best, *flag) = ((*best).max(qos), *flag || retain),
                None => found.push((who, qos, retain)),
            }
        });
        let with_connection =
            |(who, qos, retain): (u64, u8, bool)| table.connections.get(&who).map(|conn| (conn.clone(), qos, retain));
        found.into_iter().filter_map(with_connection).collect()
    }

    /// Subscribes, with the connection's state locked; `None`: it has as many subscriptions, or
    /// levels in them, as it may. Else whether it is a new one.
    pub(in crate::broker) fn subscribe(
        &self,
        number: u64,
        account: &mut AccountState,
        filter: &str,
        options: Options,
    ) -> Option<bool> {
        let known = account.filters.contains(filter);
        let (each_max, all) = (self.settings.accounts.subscriptions_max, &self.relay.subscriptions);
        let all_max = each_max.saturating_mul(CONNECTIONS_FULL_OF_SUBSCRIPTIONS);
        let (levels, all_levels) = (levels(filter), &self.relay.levels);
        let fits = |before: usize, max: usize| before + levels <= max.saturating_mul(LEVELS_PER_SUBSCRIPTION);
        if !known
            && (account.filters.len() >= each_max
                || all.load(Ordering::Relaxed) >= all_max
                || !fits(account.levels, each_max)
                || !fits(all_levels.load(Ordering::Relaxed), all_max))
        {
            return None;
        }
        self.relay.table().tree.insert(filter, number, options);
        if !known {
            account.filters.insert(filter.into());
            account.levels += levels;
            self.relay.subscriptions.fetch_add(1, Ordering::Relaxed);
            all_levels.fetch_add(levels, Ordering::Relaxed);
        }
        Some(!known)
    }

    /// Unsubscribes, with the connection's state locked; whether there was such a subscription.
    pub(in crate::broker) fn unsubscribe(&self, number: u64, account: &mut AccountState, filter: &str) -> bool {
        let existed = account.filters.remove(filter);
        if existed {
            account.outbox.unwant(filter);
            self.relay.table().tree.remove(filter, number);
            let levels = levels(filter);
            account.levels -= levels;
            self.relay.subscriptions.fetch_sub(1, Ordering::Relaxed);
            self.relay.levels.fetch_sub(levels, Ordering::Relaxed);
        }
        existed
    }

    /// Moves what waits for an account into its session's buffer, as far as there is room.
    pub(in crate::broker) fn fill(&self, conn: &Conn) -> Filled {
        let mut state = conn.state();
        let state = &mut *state;
        let Some(account) = &mut state.account else { return Filled::default() };
        let now_ms = self.now_ms();
        let next = |filter: &str, after: Option<&str>, looks: &mut usize| {
            self.relay.table().retained.next(filter, after, now_ms, looks)
        };
        let before = state.out.len();
        let filled = account.outbox.fill(&mut state.out, now_ms, next);
        state.filled(before);
        count_many(&self.totals.messages_out, filled.sent);
        count_many(&self.totals.messages_expired, filled.expired);
        count_many(&self.totals.messages_too_large, filled.too_large);
        filled
    }
}
