//! What the actor writes into the journal, and what waits for it (semantics 8.5): the record of an operation is committed
//! before its answer goes out, and the admission of what must not be forgotten before its command does.
//!
//! Decides nothing about devices: it compares what the twin holds with what was written.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use ractor::{ActorRef, RpcReplyPort};

use super::{DeviceMsg, hand_over, now};
use crate::{
    journal::{Admission, Entry, HeldRow, Journal, Lasting, OperationRow, ReportedRow, form},
    metrics::Metrics,
    property::{DeviceId, PropertyName, Value},
    twin::{
        Twin,
        admission::Lasts,
        input::Left,
        ledger::{Fact, Ledger},
        wish::CallerId,
        words::{OpId, Refusal, Reply, Settled},
    },
};

/// A caller that waits for its answer.
pub(super) struct Waiting {
    pub(super) port: RpcReplyPort<Reply>,
    /// Whose call it is: part of the record.
    pub(super) caller: CallerId,
    /// When it must have its answer, recorded or not.
    pub(super) answer_by: Instant,
}

/// One device's part of the journal: what is to be written is the twin's [`ledger`]'s to say.
#[derive(Default)]
pub(super) struct Book {
    journal: Option<Journal>,
    ledger: Ledger,
    /// How much the journal had failed to keep when that was last looked at.
    not_kept: u64,
    /// The properties that the owner has yet to accept, as the journal has them.
    unaccepted: BTreeSet<PropertyName>,
    /// The values as the journal has them, and when it was last looked whether there are others.
    reported: BTreeMap<PropertyName, Value>,
    looked_at: Option<Instant>,
    /// What the device said that it has, and the journal has not: written with what follows from it.
    said: Option<String>,
    unkept: Arc<Unkept>,
}

/// Answers that were given and whose records were not kept: told again once the disk takes something. Else a hub that begins anew
/// would find the admission alone, and tell of an end that its caller has heard that it was `interrupted`.
#[derive(Default)]
struct Unkept(Mutex<Losses>);

#[derive(Default)]
struct Losses {
    /// As they were told, the oldest first; more than [`UNKEPT_MAX`] are forgotten, and stay `interrupted`.
    ends: VecDeque<(CallerId, Settled)>,
    /// Commits when the last was lost: before there is another one the disk takes nothing.
    commits: u64,
}

/// Answers of one device that may wait to be recorded: on a full disk a caller's every try is one.
const UNKEPT_MAX: usize = 64;

impl Unkept {
    fn losses(&self) -> MutexGuard<'_, Losses> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, journal: &Journal, ends: impl IntoIterator<Item = (CallerId, Settled)>) {
        let mut losses = self.losses();
        losses.commits = journal.counters().commits();
        losses.ends.extend(ends);
        let too_many = losses.ends.len().saturating_sub(UNKEPT_MAX);
        losses.ends.drain(..too_many);
    }

    /// All of them, if the disk may take them now.
    fn take(&self, journal: &Journal) -> Vec<(CallerId, Settled)> {
        let mut losses = self.losses();
        if losses.ends.is_empty() || journal.counters().commits() == losses.commits {
            return Vec::new();
        }
        losses.ends.drain(..).collect()
    }
}

impl Book {
    /// A book of a device; without a journal it writes nothing.
    pub(super) fn new(journal: Option<Journal>) -> Self {
        Self { journal, ..Self::default() }
    }

    /// What the journal had of this device before there was this actor.
    pub(super) fn resume(&mut self, twin: &Twin, left: &[Left]) {
        self.unaccepted = twin.unaccepted().clone();
        self.ledger.resume(twin, left);
    }

    /// The device said something new of what it has.
    pub(super) fn described(&mut self, said: Option<String>) {
        self.said = said.or(self.said.take());
    }

    /// Writes an admission first where it must be, and sends the message to the actor again once that is kept. `None` if so;
    /// else the message goes on.
    pub(super) fn first(
        &mut self,
        me: &ActorRef<DeviceMsg>,
        twin: &Twin,
        metrics: &Metrics,
        message: DeviceMsg,
    ) -> Option<DeviceMsg> {
        let Some(journal) = self.journal.clone() else { return Some(message) };
        let Some((asked, answer_by)) = message.asks(twin) else { return Some(message) };
        let Some((fact, lasts)) = self.ledger.first(twin, &asked) else { return Some(message) };
        let kept = journal.keep(entries(twin.device(), vec![fact]), lasting(lasts));
        let (me, metrics, op) = (me.clone(), metrics.clone(), asked.op);
        tokio::spawn(async move {
            // A disk that stalls must not keep its caller waiting beyond its limit (semantics 4.8).
            let kept = match kept {
                Ok(kept) => tokio::time::timeout_at(answer_by.into(), kept).await.is_ok_and(|kept| kept == Ok(Ok(()))),
                Err(_not_taken) => false,
            };
            // Whoever stopped waiting meanwhile is not known to the twin yet: nothing begins for nobody.
            let next = match (kept, message) {
                (true, message) if message.is_waited_for() => message,
                (false, DeviceMsg::Set { port, .. } | DeviceMsg::Run { port, .. }) => {
                    metrics.call_refused(Refusal::JournalDown.word());
                    hand_over(&metrics, port, Reply::Refused(Refusal::JournalDown));
                    DeviceMsg::Cancel(op)
                }
                (_, _nobody_waits) => DeviceMsg::Cancel(op),
            };
            let _stopped = me.cast(next);
        });
        None
    }

    /// A caller stopped waiting, or was refused, before the twin knew of it.
    pub(super) fn given_up(&mut self, device: &DeviceId, op: &OpId) {
        if let (Some(fact), Some(journal)) = (self.ledger.given_up(op), &self.journal) {
            journal.queue(entries(device, vec![fact]));
        }
    }

    /// Answers a caller once its record is kept, or when its time is up.
    pub(super) fn answer(&mut self, twin: &Twin, metrics: &Metrics, waiting: Waiting, reply: Reply) {
        let Waiting { port, caller, answer_by } = waiting;
        let (Some(journal), Reply::Settled(settled)) = (self.journal.clone(), &reply) else {
            return hand_over(metrics, port, reply);
        };
        self.look_for_losses(&journal);
        let (facts, lasts) = self.ledger.answer(twin, &caller, settled);
        let kept = journal.keep(entries(twin.device(), facts), lasting(lasts));
        let (metrics, unkept, mut reply) = (metrics.clone(), self.unkept.clone(), reply);
        tokio::spawn(async move {
            let kept = match kept {
                Ok(kept) => tokio::time::timeout_at(answer_by.into(), kept).await.is_ok_and(|kept| kept == Ok(Ok(()))),
                Err(_not_taken) => false,
            };
            if let (false, Reply::Settled(settled)) = (kept, &mut reply) {
                unkept.add(&journal, [(caller, (**settled).clone())]);
                settled.recorded = false;
                metrics.answered_unrecorded();
            }
            hand_over(&metrics, port, reply);
        });
    }

    /// Writes down what has come and gone since, without anybody waiting for it.
    pub(super) fn catch_up(&mut self, twin: &Twin, in_flight: &[Left]) {
        let Some(journal) = self.journal.clone() else { return };
        self.look_for_losses(&journal);
        let device = twin.device();
        let mut entries = entries(device, self.ledger.catch_up(now(), twin, in_flight));
        entries.extend(self.reported_changes(twin, now(), false));
        // In one commit: a lock that appeared must not be found after a crash without the word that it is not accepted.
        if let Some(json) = self.said.take() {
            entries.push(Entry::Described { device: device.to_string(), json });
        }
        if *twin.unaccepted() != self.unaccepted {
            self.unaccepted = twin.unaccepted().clone();
            entries.push(Entry::Named { name: unaccepted_name(device), value: form::names(&self.unaccepted) });
        }
        if !entries.is_empty() {
            journal.queue(entries);
        }
        self.tell_again(&journal, twin);
    }

    /// Records the answers that were not, as they are known now.
    fn tell_again(&self, journal: &Journal, twin: &Twin) {
        let mut ends = self.unkept.take(journal);
        if ends.is_empty() {
            return;
        }
        for (_, settled) in &mut ends {
            if let Some(known) = twin.check(now(), Some(&settled.op)) {
                *settled = known;
            }
        }
        let entries = ends.iter().map(|(caller, settled)| record(caller, settled)).collect();
        let (kept, journal, unkept) = (journal.keep(entries, Lasting::Process), journal.clone(), self.unkept.clone());
        tokio::spawn(async move {
            let kept = match kept {
                Ok(kept) => kept.await == Ok(Ok(())),
                Err(_not_taken) => false,
            };
            if !kept {
                unkept.add(&journal, ends);
            }
        });
    }

    /// Whatever the journal could not keep may have been of this device: what must not be found old after a crash is told again
    /// with the next input, until it is kept.
    fn look_for_losses(&mut self, journal: &Journal) {
        let not_kept = journal.counters().not_kept();
        if not_kept != self.not_kept {
            self.not_kept = not_kept;
            self.ledger.doubt();
        }
    }

    /// An answer that was given is not true any more: the record says so.
    pub(super) fn amend(&self, caller: &CallerId, settled: &Settled) {
        if let Some(journal) = &self.journal {
            journal.queue(vec![record(caller, settled)]);
        }
    }

    /// Nothing is left of a device that was removed, but its operations.
    pub(super) fn forget(&mut self, device: &DeviceId) {
        if let Some(journal) = self.journal.take() {
            let value = form::names(&BTreeSet::new());
            let nothing = Entry::Named { name: unaccepted_name(device), value };
            journal.queue(vec![Entry::Forgotten { device: device.to_string() }, nothing]);
        }
    }

    /// The hub ends in good order: the last values are written, too.
    pub(super) fn close(&mut self, twin: &Twin) {
        let entries = self.reported_changes(twin, now(), true);
        if let (Some(journal), false) = (&self.journal, entries.is_empty()) {
            journal.queue(entries);
        }
    }

    /// The values that are not as the journal has them; looked for now and then only, since a house full of sensors would write
    /// an SD card full, and for each other reason to write nothing is known of them that matters.
    fn reported_changes(&mut self, twin: &Twin, now: Instant, at_once: bool) -> Vec<Entry> {
        if self.journal.is_none() {
            return Vec::new();
        }
        let looked_at = *self.looked_at.get_or_insert(now);
        if !at_once && now.saturating_duration_since(looked_at) < LOOK_EVERY {
            return Vec::new();
        }
        self.looked_at = Some(now);
        let (clock, device) = (form::Clock::now(), twin.device());
        let mut entries = Vec::new();
        for (property, reading) in twin.state(now).readings {
            if self.reported.get(&property) != Some(&reading.value) {
                entries.push(Entry::Reported(ReportedRow {
                    device: device.to_string(),
                    property: property.to_string(),
                    at_ms: clock.unix_ms().saturating_sub(i64::try_from(reading.age.as_millis()).unwrap_or(i64::MAX)),
                    json: form::reported(&reading.value, reading.evidence),
                }));
                self.reported.insert(property, reading.value);
            }
        }
        entries
    }
}

/// How often values are looked at. They wait as long again for company (the journal's writer): a hub that was killed shows values
/// of half an hour ago at most until the devices greet it.
const LOOK_EVERY: Duration = Duration::from_secs(900);

/// Under which name the properties of a device are kept that its owner has yet to accept (semantics 2.7).
pub(crate) fn unaccepted_name(device: &DeviceId) -> String {
    format!("unaccepted/{device}")
}

/// Facts of a device as the journal has them.
fn entries(device: &DeviceId, facts: Vec<Fact>) -> Vec<Entry> {
    let entry = |fact| match fact {
        Fact::Admitted(caller, settled) => admission(&caller, &settled),
        Fact::Known(caller, settled) => record(&caller, &settled),
        Fact::NotTaken(op) => Entry::NotTaken { op: op.to_string() },
        Fact::Held(property, held) => Entry::Held(HeldRow {
            device: device.to_string(),
            property: property.to_string(),
            json: form::held(&held, form::Clock::now()),
        }),
        Fact::Unheld(property) => Entry::Unheld { device: device.to_string(), property: property.to_string() },
    };
    facts.into_iter().map(entry).collect()
}

fn lasting(lasts: Lasts) -> Lasting {
    match lasts {
        Lasts::OverCrash => Lasting::Process,
        Lasts::OverPowerCut => Lasting::PowerCut,
    }
}

fn admission(caller: &CallerId, settled: &Settled) -> Entry {
    Entry::Admitted(Admission {
        op: settled.op.to_string(),
        device: settled.device.to_string(),
        what: settled.property.to_string(),
        caller: caller.to_string(),
        at_ms: form::Clock::now().unix_ms(),
        json: form::operation(caller, settled),
    })
}

fn record(caller: &CallerId, settled: &Settled) -> Entry {
    Entry::Ended(OperationRow {
        op: settled.op.to_string(),
        device: settled.device.to_string(),
        at_ms: form::Clock::now().unix_ms(),
        json: form::operation(caller, settled),
    })
}
