//! What waits for the writer, in the order in which it was given.
//!
//! Somebody waits for an order that is urgent, so it wakes the writer. Nobody waits for the others: they go out with the next
//! urgent one, or [`SOON`], and wake the writer only from its sleep. While there is something to do the writer comes round by
//! itself and sleeps once nothing came: under load nobody pays for waking it, and an idle house wakes nobody.

use std::{
    collections::{HashMap, VecDeque},
    path::PathBuf,
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use tokio::sync::oneshot;

use super::{Entry, Error, Lasting, NotKept};

/// How long what nobody waits for may wait for company. An operation that ends within it is one commit, and its admission is
/// never written; a process that is killed within it leaves no word of an operation whose end nobody has heard.
const SOON: Duration = Duration::from_millis(50);

/// Orders that may wait. A commit takes some 50 µs on an SD card's page cache, so this is seconds of a stalled disk; one more
/// is refused at once, and its caller answered without a record.
const ORDERS_MAX: usize = 8_192;

/// Bytes in the orders that wait: kept messages of service accounts may be large. One more order is refused then, too.
const BYTES_MAX: usize = 32 << 20;

/// Orders in one commit: more would make the first of them wait for the last.
const BATCH_MAX: usize = 512;

/// How long values that were only reported wait for a commit, and how many: each commit writes a page at least, so that three
/// hundred sensors that were written one by one would write a hundred megabytes a day. They are told to nobody as kept, and a hub
/// that was killed hears them from the devices again.
const REPORTED_FOR: Duration = Duration::from_secs(900);
const REPORTED_MAX: usize = 256;

/// Something to do.
pub(super) enum Order {
    /// Keep these; who waits for it hears.
    Keep { entries: Vec<Entry>, lasting: Lasting, done: Option<oneshot::Sender<Result<(), NotKept>>> },
    /// Copy the file.
    Backup { to: PathBuf, done: oneshot::Sender<Result<(), Error>> },
    /// End.
    Close,
}

impl Order {
    pub(super) fn entries(&self) -> &[Entry] {
        match self {
            Self::Keep { entries, .. } => entries,
            Self::Backup { .. } | Self::Close => &[],
        }
    }

    fn bytes(&self) -> usize {
        self.entries().iter().map(Entry::bytes).sum()
    }

    /// Whether what is only reported must stay behind it: it holds a value that was reported earlier, or makes one void.
    fn is_of_reported(&self) -> bool {
        self.entries().iter().any(|entry| matches!(entry, Entry::Reported(_) | Entry::Forgotten { .. }))
    }

    fn is_urgent(&self) -> bool {
        !matches!(self, Self::Keep { done: None, .. })
    }
}

/// The line, shared by all who give orders and the writer.
pub(super) struct Waiting {
    state: Mutex<State>,
    came: Condvar,
}

struct State {
    orders: VecDeque<Order>,
    /// Urgent ones among them, those of reported values, and the bytes in all.
    urgent: usize,
    of_reported: usize,
    bytes: usize,
    /// The last value of each property that was only reported, by device and property.
    reported: HashMap<(String, String), Entry>,
    reported_since: Instant,
    writer: Writer,
}

/// What the writer does when something comes that is not urgent.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Writer {
    /// It looks soon.
    ComesRound,
    /// It must be woken.
    Sleeps,
    /// It has ended: nothing is taken any more.
    Ended,
}

/// What goes into one commit.
pub(super) struct Batch {
    /// Reported values whose time has come; older than the orders.
    pub(super) reported: Vec<Entry>,
    /// In the order in which they were given.
    pub(super) orders: Vec<Order>,
}

impl Waiting {
    pub(super) fn new() -> Self {
        let state = State {
            orders: VecDeque::new(),
            urgent: 0,
            of_reported: 0,
            bytes: 0,
            reported: HashMap::new(),
            reported_since: Instant::now(),
            writer: Writer::ComesRound,
        };
        Self { state: Mutex::new(state), came: Condvar::new() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes an order, behind all that were given before.
    ///
    /// # Errors
    /// [`NotKept::Behind`] if too many wait, [`NotKept::Closed`] after the end.
    pub(super) fn give(&self, order: Order) -> Result<(), NotKept> {
        let mut state = self.state();
        if state.writer == Writer::Ended {
            return Err(NotKept::Closed);
        }
        // The end must always find its way in.
        let bytes = order.bytes();
        let full = state.orders.len() >= ORDERS_MAX || (bytes > 0 && state.bytes + bytes > BYTES_MAX);
        if full && !matches!(order, Order::Close) {
            return Err(NotKept::Behind);
        }
        let urgent = order.is_urgent();
        let reported = order.entries().iter().all(|entry| matches!(entry, Entry::Reported(_)));
        if let (Order::Keep { entries, .. }, false) = (&order, urgent)
            && reported
            && state.of_reported == 0
        {
            state.report(entries);
        } else {
            state.urgent += usize::from(urgent);
            state.of_reported += usize::from(order.is_of_reported());
            state.bytes += bytes;
            state.orders.push_back(order);
        }
        if urgent || (state.writer == Writer::Sleeps && state.something_is_due()) {
            state.writer = Writer::ComesRound;
            self.came.notify_one();
        }
        Ok(())
    }

    /// Waits for the next commit's orders: the writer alone asks.
    pub(super) fn next(&self) -> Batch {
        let mut state = self.state();
        if state.urgent == 0 {
            let nothing_urgent = |state: &mut State| state.urgent == 0;
            (state, _) =
                self.came.wait_timeout_while(state, SOON, nothing_urgent).unwrap_or_else(PoisonError::into_inner);
        }
        if !state.something_is_due() {
            state.writer = Writer::Sleeps;
        }
        while state.writer == Writer::Sleeps && !state.something_is_due() {
            state = match state.reported_due_in() {
                Some(wait) => self.came.wait_timeout(state, wait).unwrap_or_else(PoisonError::into_inner).0,
                None => self.came.wait(state).unwrap_or_else(PoisonError::into_inner),
            };
        }
        state.writer = match state.writer {
            Writer::Ended => Writer::Ended,
            Writer::Sleeps | Writer::ComesRound => Writer::ComesRound,
        };
        state.take()
    }

    /// Takes nothing more; what waits is given back.
    pub(super) fn end(&self) -> Vec<Order> {
        let mut state = self.state();
        state.writer = Writer::Ended;
        state.orders.drain(..).collect()
    }
}

impl State {
    fn something_is_due(&self) -> bool {
        !self.orders.is_empty() || self.reported_are_due()
    }

    fn reported_are_due(&self) -> bool {
        self.reported.len() >= REPORTED_MAX
            || (!self.reported.is_empty() && self.reported_since.elapsed() >= REPORTED_FOR)
    }

    /// How long what was only reported may still wait; `None` if there is nothing.
    fn reported_due_in(&self) -> Option<Duration> {
        (!self.reported.is_empty()).then(|| REPORTED_FOR.saturating_sub(self.reported_since.elapsed()))
    }

    fn report(&mut self, entries: &[Entry]) {
        if self.reported.is_empty() {
            self.reported_since = Instant::now();
        }
        for entry in entries {
            let Entry::Reported(row) = entry else { continue };
            let key = (row.device.clone(), row.property.clone());
            self.reported.insert(key, entry.clone());
        }
    }

    fn take(&mut self) -> Batch {
        let some = self.orders.len().min(BATCH_MAX);
        let orders: Vec<Order> = self.orders.drain(..some).collect();
        self.urgent -= orders.iter().filter(|order| order.is_urgent()).count();
        self.of_reported -= orders.iter().filter(|order| order.is_of_reported()).count();
        self.bytes -= orders.iter().map(Order::bytes).sum::<usize>();
        // What comes in company is newer than what waits for it.
        for entry in orders.iter().flat_map(Order::entries) {
            if let Entry::Reported(new) = entry {
                self.reported.remove(&(new.device.clone(), new.property.clone()));
            } else if let Entry::Forgotten { device } = entry {
                self.reported.retain(|(of, _), _| of != device);
            }
        }
        // Before a copy and before the end all of it goes.
        let all = orders.iter().any(|order| matches!(order, Order::Close | Order::Backup { .. }));
        let go = all || self.reported_are_due();
        let reported = if go { self.reported.drain().map(|(_, entry)| entry).collect() } else { Vec::new() };
        Batch { reported, orders }
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test that fails there has said so")]
mod tests {
    use std::{sync::Arc, thread};

    use super::*;
    use crate::journal::ReportedRow;

    fn reported(device: &str, value: &str) -> Entry {
        let (device, property) = (device.to_owned(), "power".to_owned());
        Entry::Reported(ReportedRow { device, property, at_ms: 1, json: value.to_owned() })
    }

    fn named(name: usize) -> Entry {
        Entry::Named { name: name.to_string(), value: String::new() }
    }

    fn quiet(entry: Entry) -> Order {
        Order::Keep { entries: vec![entry], lasting: Lasting::Process, done: None }
    }

    fn urgent(entry: Entry) -> Order {
        Order::Keep { entries: vec![entry], lasting: Lasting::Process, done: Some(oneshot::channel().0) }
    }

    fn entries(batch: &Batch) -> Vec<Entry> {
        batch.reported.iter().chain(batch.orders.iter().flat_map(Order::entries)).cloned().collect()
    }

    #[test]
    fn what_was_given_comes_out_in_its_order_whether_somebody_waits_for_it_or_not() {
        let waiting = Waiting::new();
        for at in 0..9 {
            waiting.give(if at % 3 == 1 { urgent(named(at)) } else { quiet(named(at)) }).unwrap();
        }
        assert_eq!(entries(&waiting.next()), (0..9).map(named).collect::<Vec<_>>());
    }

    #[test]
    fn a_sleeping_writer_is_woken_by_what_nobody_waits_for_and_not_by_reported_values() {
        let waiting = Arc::new(Waiting::new());
        let writer = thread::spawn({
            let waiting = waiting.clone();
            move || entries(&waiting.next())
        });
        let sleeps = || waiting.state().writer == Writer::Sleeps;
        while !sleeps() {
            thread::yield_now();
        }
        waiting.give(quiet(reported("lamp", "1"))).unwrap();
        assert!(sleeps());
        waiting.give(quiet(named(1))).unwrap();
        assert!(!sleeps());
        assert_eq!(writer.join().unwrap(), [named(1)], "the reported value waits on");
    }

    #[test]
    fn only_the_last_reported_value_of_each_is_kept_and_none_that_is_void() {
        let waiting = Waiting::new();
        for value in ["1", "2", "3"] {
            waiting.give(quiet(reported("lamp", value))).unwrap();
            waiting.give(quiet(reported("fan", value))).unwrap();
            waiting.give(quiet(reported("gone", value))).unwrap();
        }
        let newer = vec![reported("fan", "4"), Entry::Forgotten { device: "gone".to_owned() }];
        waiting.give(Order::Keep { entries: newer.clone(), lasting: Lasting::Process, done: None }).unwrap();
        assert_eq!(entries(&waiting.next()), newer);
        waiting.give(Order::Close).unwrap();
        assert_eq!(entries(&waiting.next()), [reported("lamp", "3")], "before the end all of it");
    }

    #[test]
    fn a_value_that_was_reported_later_is_written_later() {
        let waiting = Waiting::new();
        let company = vec![named(1), reported("lamp", "1")];
        waiting.give(Order::Keep { entries: company.clone(), lasting: Lasting::Process, done: None }).unwrap();
        waiting.give(quiet(reported("lamp", "2"))).unwrap();
        waiting.give(Order::Close).unwrap();
        assert_eq!(entries(&waiting.next()), [company, vec![reported("lamp", "2")]].concat());
    }

    #[test]
    fn more_bytes_than_may_wait_are_refused_and_there_is_room_again_once_they_went() {
        let waiting = Waiting::new();
        let large = || Entry::Named { name: String::new(), value: "x".repeat(1 << 20) };
        let taken = (0..100).filter(|_| waiting.give(urgent(large())).is_ok()).count();
        assert_eq!(taken, BYTES_MAX >> 20);
        assert_eq!(waiting.next().orders.len(), taken);
        waiting.give(urgent(large())).unwrap();
    }

    #[test]
    fn many_reported_values_are_due_at_once() {
        let waiting = Waiting::new();
        for at in 0..REPORTED_MAX {
            waiting.give(quiet(reported(&at.to_string(), "1"))).unwrap();
        }
        assert_eq!(entries(&waiting.next()).len(), REPORTED_MAX);
    }

    #[test]
    fn too_many_are_refused_and_none_that_was_taken_is_lost() {
        let waiting = Waiting::new();
        let taken = (0..ORDERS_MAX + 10).filter(|at| waiting.give(quiet(named(*at))).is_ok()).count();
        assert_eq!(taken, ORDERS_MAX);
        assert_eq!(waiting.give(urgent(named(0))), Err(NotKept::Behind));
        waiting.give(Order::Close).unwrap();
        let mut out = 0;
        while out < ORDERS_MAX {
            out += entries(&waiting.next()).len();
        }
        assert_eq!(out, ORDERS_MAX);
        waiting.end();
        assert_eq!(waiting.give(quiet(named(0))), Err(NotKept::Closed));
    }
}
