//! The one thread that writes. Whatever waits when it comes round is one commit: under load a commit serves hundreds, alone it
//! goes out at once, and no timer holds anything back.

use std::{
    path::PathBuf,
    sync::{
        Arc,
        atomic::Ordering,
        mpsc::{Receiver, SyncSender},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use rusqlite::{Connection, Transaction, params};
use tokio::sync::oneshot;

use super::{Counters, Entry, Error, Lasting, NotKept, Retention, backup, checkpoint::thread_written_bytes};

/// Orders in one commit: more would make the first of them wait for the last.
const BATCH_MAX: usize = 512;

/// How often what is too old or too much is deleted, and how many rows at once, so that nobody waits for it.
const RETAIN_EVERY: Duration = Duration::from_secs(60);
const RETAIN_ROWS: i64 = 2_000;

/// How long values that were only reported wait for a commit, and how many: each commit writes a page at least, so that three
/// hundred sensors that were written one by one would write a hundred megabytes a day. They are told to nobody as kept, and a hub
/// that was killed hears them from the devices again.
const ASIDE_FOR: Duration = Duration::from_secs(900);
const ASIDE_MAX: usize = 256;

/// How often the thread's own account of written bytes is looked at.
const ACCOUNT_EVERY: Duration = Duration::from_secs(1);

/// Something to do.
pub(super) enum Order {
    /// Keep these.
    Keep { entries: Vec<Entry>, lasting: Lasting, done: Option<oneshot::Sender<Result<(), NotKept>>> },
    /// End.
    Close,
    /// Copy the file.
    Backup { to: PathBuf, done: oneshot::Sender<Result<(), Error>> },
}

impl Order {
    pub(super) fn entries(&self) -> usize {
        match self {
            Self::Keep { entries, .. } => entries.len(),
            Self::Backup { .. } | Self::Close => 0,
        }
    }

    /// Whether it is of reported values alone, and nobody waits for it.
    fn may_wait(&self) -> bool {
        match self {
            Self::Keep { entries, done: None, .. } => entries.iter().all(|entry| matches!(entry, Entry::Reported(_))),
            Self::Keep { done: Some(_), .. } | Self::Backup { .. } | Self::Close => false,
        }
    }
}

pub(super) fn start(
    connection: Connection,
    orders: Receiver<Order>,
    grown: SyncSender<()>,
    retention: Retention,
    counters: Arc<Counters>,
) -> Result<JoinHandle<()>, Error> {
    let now = Instant::now();
    let mut writer = Writer {
        connection,
        grown,
        retention,
        counters,
        synced: false,
        retained: now,
        accounted: now,
        written_bytes: 0,
        aside: Vec::new(),
        aside_since: now,
    };
    thread::Builder::new()
        .name("journal".to_owned())
        .spawn(move || {
            while let Ok(first) = orders.recv() {
                let batch: Vec<Order> = std::iter::once(first).chain(orders.try_iter().take(BATCH_MAX - 1)).collect();
                let closes = batch.iter().any(|order| matches!(order, Order::Close));
                writer.carry_out(batch);
                if closes {
                    break;
                }
            }
            writer.account();
        })
        .map_err(Error::Thread)
}

struct Writer {
    connection: Connection,
    /// Told after each commit; the other side looks whether there is enough to move.
    grown: SyncSender<()>,
    retention: Retention,
    counters: Arc<Counters>,
    /// Whether commits are synced at present.
    synced: bool,
    retained: Instant,
    accounted: Instant,
    written_bytes: u64,
    /// Reported values that wait for company.
    aside: Vec<Entry>,
    aside_since: Instant,
}

impl Writer {
    /// Takes out of a batch what may wait, and puts in what has waited long enough: before the end and before a copy, all of it.
    fn set_aside(&mut self, batch: Vec<Order>) -> Vec<Order> {
        let (waits, mut rest): (Vec<_>, Vec<_>) = batch.into_iter().partition(Order::may_wait);
        // What comes in company is newer than what waits for it.
        for order in &rest {
            let Order::Keep { entries, .. } = order else { continue };
            for entry in entries {
                if let Entry::Forgotten { device } = entry {
                    self.aside.retain(|aside| !matches!(aside, Entry::Reported(old) if old.device == *device));
                } else if let Entry::Reported(new) = entry {
                    self.aside.retain(|aside| {
                        !matches!(aside, Entry::Reported(old) if (&old.device, &old.property) == (&new.device, &new.property))
                    });
                }
            }
        }
        for order in waits {
            let Order::Keep { entries, .. } = order else { continue };
            if self.aside.is_empty() {
                self.aside_since = Instant::now();
            }
            self.aside.extend(entries);
        }
        let all = rest.iter().any(|order| matches!(order, Order::Close | Order::Backup { .. }));
        let enough = self.aside.len() >= ASIDE_MAX || self.aside_since.elapsed() >= ASIDE_FOR;
        if !self.aside.is_empty() && (all || enough) {
            let entries = std::mem::take(&mut self.aside);
            rest.insert(0, Order::Keep { entries, lasting: Lasting::Process, done: None });
        }
        rest
    }

    fn carry_out(&mut self, batch: Vec<Order>) {
        let batch = self.set_aside(batch);
        let lasting = batch.iter().filter_map(|order| match order {
            Order::Keep { lasting, .. } => Some(*lasting),
            Order::Backup { .. } | Order::Close => None,
        });
        if let Some(lasting) = lasting.max() {
            let kept = self.commit(&batch, lasting);
            for order in batch {
                match order {
                    Order::Keep { done: Some(done), .. } => {
                        let _nobody_waits_any_more = done.send(kept);
                    }
                    Order::Keep { done: None, .. } | Order::Close => {}
                    Order::Backup { to, done } => {
                        let _nobody_waits_any_more = done.send(backup::copy(&self.connection, &to));
                    }
                }
            }
            let _it_is_awake_already = self.grown.try_send(());
        } else {
            for order in batch {
                let Order::Backup { to, done } = order else { continue };
                let _nobody_waits_any_more = done.send(backup::copy(&self.connection, &to));
            }
        }
        if self.accounted.elapsed() >= ACCOUNT_EVERY {
            self.account();
        }
    }

    /// All entries of a batch, or none.
    fn commit(&mut self, batch: &[Order], lasting: Lasting) -> Result<(), NotKept> {
        let entries = || {
            batch.iter().flat_map(|order| match order {
                Order::Keep { entries, .. } => entries.as_slice(),
                Order::Backup { .. } | Order::Close => &[],
            })
        };
        let count = entries().count() as u64;
        match self.write(entries(), lasting == Lasting::PowerCut) {
            Ok(()) => {
                self.counters.commits.fetch_add(1, Ordering::Relaxed);
                self.counters.entries.fetch_add(count, Ordering::Relaxed);
                Ok(())
            }
            Err(error) => {
                tracing::error!(%error, entries = count, "the journal could not be written");
                self.counters.not_kept.fetch_add(count, Ordering::Relaxed);
                Err(NotKept::Refused)
            }
        }
    }

    fn write<'a>(&mut self, entries: impl Iterator<Item = &'a Entry>, sync: bool) -> rusqlite::Result<()> {
        if sync != self.synced {
            self.connection.pragma_update(None, "synchronous", if sync { "FULL" } else { "NORMAL" })?;
            self.synced = sync;
        }
        let retain = self.retained.elapsed() >= RETAIN_EVERY;
        let transaction = self.connection.transaction()?;
        for entry in entries {
            keep(&transaction, entry)?;
        }
        if retain {
            delete_old(&transaction, self.retention)?;
            self.retained = Instant::now();
        }
        transaction.commit()
    }

    /// Adds what this thread has written since it was last asked.
    fn account(&mut self) {
        self.accounted = Instant::now();
        let written = thread_written_bytes();
        self.counters.written_bytes.fetch_add(written.saturating_sub(self.written_bytes), Ordering::Relaxed);
        self.written_bytes = written;
    }
}

pub(super) fn keep(to: &Transaction<'_>, entry: &Entry) -> rusqlite::Result<()> {
    let run = |sql: &str, values: &[&dyn rusqlite::ToSql]| to.prepare_cached(sql)?.execute(values).map(|_| ());
    match entry {
        Entry::Admitted(a) => run(
            "INSERT OR REPLACE INTO admission (op, device, what, caller, at_ms, json) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
            params![a.op, a.device, a.what, a.caller, a.at_ms, a.json],
        ),
        Entry::NotTaken { op } => run("DELETE FROM admission WHERE op = ?1", params![op]),
        Entry::Ended(o) => {
            run("DELETE FROM admission WHERE op = ?1", params![o.op])?;
            run(
                "INSERT INTO operation (op, device, at_ms, json) VALUES (?1, ?2, ?3, ?4)",
                params![o.op, o.device, o.at_ms, o.json],
            )
        }
        Entry::Held(h) => run(
            "INSERT OR REPLACE INTO held (device, property, json) VALUES (?1, ?2, ?3)",
            params![h.device, h.property, h.json],
        ),
        Entry::Unheld { device, property } => {
            run("DELETE FROM held WHERE device = ?1 AND property = ?2", params![device, property])
        }
        Entry::Reported(r) => run(
            "INSERT OR REPLACE INTO reported (device, property, at_ms, json) VALUES (?1, ?2, ?3, ?4)",
            params![r.device, r.property, r.at_ms, r.json],
        ),
        Entry::Described { device, json } => {
            run("INSERT OR REPLACE INTO description (device, json) VALUES (?1, ?2)", params![device, json])
        }
        Entry::Audited { at_ms, json } => run("INSERT INTO audit (at_ms, json) VALUES (?1, ?2)", params![at_ms, json]),
        Entry::Forgotten { device } => {
            for table in ["held", "reported", "description"] {
                run(&format!("DELETE FROM {table} WHERE device = ?1"), params![device])?;
            }
            Ok(())
        }
        Entry::Retained(r) => run(
            "INSERT OR REPLACE INTO retained (topic, qos, expires_ms, properties, payload) VALUES (?1, ?2, ?3, ?4, ?5)",
            params![r.topic, r.qos, r.expires_ms, r.properties, r.payload],
        ),
        Entry::Unretained { topic } => run("DELETE FROM retained WHERE topic = ?1", params![topic]),
        Entry::Named { name, value } => {
            run("INSERT OR REPLACE INTO named (name, value) VALUES (?1, ?2)", params![name, value])
        }
    }
}

/// Deletes what is too old, and the oldest where the file is too large.
pub(super) fn delete_old(from: &Transaction<'_>, retention: Retention) -> rusqlite::Result<()> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let since = i64::try_from(now.as_millis()).unwrap_or(i64::MAX).saturating_sub_unsigned(retention.age_ms);
    let pragma = |name: &str| from.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    let used = (pragma("page_count")? - pragma("freelist_count")?) * pragma("page_size")?;
    for table in ["operation", "audit"] {
        let oldest = format!("SELECT number FROM {table} ORDER BY number LIMIT {RETAIN_ROWS}");
        match u64::try_from(used).unwrap_or_default() > retention.bytes {
            true => from.execute(&format!("DELETE FROM {table} WHERE number IN ({oldest})"), [])?,
            false => {
                from.execute(&format!("DELETE FROM {table} WHERE number IN ({oldest}) AND at_ms < ?1"), [since])?
            }
        };
    }
    Ok(())
}
