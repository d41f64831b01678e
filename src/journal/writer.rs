//! The one thread that writes. Whatever waits when it comes round is one commit: under load a commit serves hundreds, alone it
//! goes out at once, and no timer holds back what somebody waits for.

use std::{
    collections::HashSet,
    sync::{Arc, atomic::Ordering},
    thread::{self, JoinHandle},
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use super::{
    Counters, Entry, Error, Lasting, NotKept, Retention, backup,
    checkpoint::{Log, thread_written_bytes},
    refusing::Refusing,
    waiting::{Batch, Order, Waiting},
};
use rusqlite::{Connection, Transaction, params};

/// How often what is too old or too much is deleted, and how many rows at once, so that nobody waits for it.
const RETAIN_EVERY: Duration = Duration::from_secs(60);
const RETAIN_ROWS: i64 = 2_000;

/// How often the thread's own account of written bytes is looked at.
const ACCOUNT_EVERY: Duration = Duration::from_secs(1);

pub(super) fn start(
    connection: Connection,
    waiting: Arc<Waiting>,
    log: Log,
    retention: Retention,
    counters: Arc<Counters>,
) -> Result<JoinHandle<()>, Error> {
    let now = Instant::now();
    let mut writer = Writer {
        connection,
        log,
        retention,
        counters,
        refusing: Refusing::default(),
        synced: false,
        retained: now,
        accounted: now,
        written_bytes: 0,
    };
    thread::Builder::new()
        .name("journal".to_owned())
        .spawn(move || {
            // Also if it panics: who waits must hear that nothing is kept any more, and not wait for ever.
            let _ends = Ends(&waiting);
            while writer.carry_out(waiting.next()) {}
            writer.account();
        })
        .map_err(Error::Thread)
}

/// Takes nothing more, and lets go of who still waits.
struct Ends<'a>(&'a Waiting);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        drop(self.0.end());
    }
}

struct Writer {
    connection: Connection,
    /// Looked at after each commit: whether there is enough to move.
    log: Log,
    retention: Retention,
    counters: Arc<Counters>,
    refusing: Refusing,
    /// Whether commits are synced at present.
    synced: bool,
    retained: Instant,
    accounted: Instant,
    written_bytes: u64,
}

impl Writer {
    /// One commit for all of a batch. Whether there will be another batch.
    fn carry_out(&mut self, batch: Batch) -> bool {
        let Batch { reported, orders } = batch;
        let lasting = orders.iter().filter_map(|order| match order {
            Order::Keep { lasting, .. } => Some(*lasting),
            Order::Backup { .. } | Order::Close => None,
        });
        let lasting = lasting.max().unwrap_or(Lasting::Process);
        let entries: Vec<&Entry> = reported.iter().chain(orders.iter().flat_map(Order::entries)).collect();
        let kept = if entries.is_empty() { Ok(()) } else { self.commit(&entries, lasting) };
        let mut goes_on = true;
        for order in orders {
            match order {
                Order::Keep { done: Some(done), .. } => {
                    let _nobody_waits_any_more = done.send(kept);
                }
                Order::Keep { done: None, .. } => {}
                Order::Backup { to, done } => {
                    let _nobody_waits_any_more = done.send(backup::copy(&self.connection, &to));
                }
                Order::Close => goes_on = false,
            }
        }
        self.log.look();
        if self.accounted.elapsed() >= ACCOUNT_EVERY {
            self.account();
        }
        goes_on
    }

    /// All of them, or none.
    fn commit(&mut self, entries: &[&Entry], lasting: Lasting) -> Result<(), NotKept> {
        let count = entries.len() as u64;
        match self.write(entries, lasting == Lasting::PowerCut) {
            Ok(()) => {
                self.counters.commits.fetch_add(1, Ordering::Relaxed);
                self.counters.entries.fetch_add(count, Ordering::Relaxed);
                if let Some(entries) = self.refusing.written(Instant::now()) {
                    tracing::warn!(entries, "the journal is written again; so many were refused since the last line");
                }
                Ok(())
            }
            Err(error) => {
                if let Some(entries) = self.refusing.refused(Instant::now(), count) {
                    tracing::error!(%error, entries, "the journal could not be written; while this lasts it is said once a minute");
                }
                self.counters.not_kept.fetch_add(count, Ordering::Relaxed);
                Err(NotKept::Refused)
            }
        }
    }

    fn write(&mut self, entries: &[&Entry], sync: bool) -> rusqlite::Result<()> {
        if sync != self.synced {
            self.connection.pragma_update(None, "synchronous", if sync { "FULL" } else { "NORMAL" })?;
            self.synced = sync;
        }
        let turn = self.log.turn().clone();
        let _no_log_is_ended = turn.take();
        let retain = self.retained.elapsed() >= RETAIN_EVERY;
        // What begins and ends in one commit need not be written as begun.
        let ended: HashSet<&str> = entries.iter().filter_map(|entry| entry.ends()).collect();
        let transaction = self.connection.transaction()?;
        for entry in entries {
            if !matches!(entry, Entry::Admitted(admission) if ended.contains(admission.op.as_str())) {
                keep(&transaction, entry)?;
            }
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
