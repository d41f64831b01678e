//! A model of a board, as the wire protocol wants it: session, ring of operations, time limit by lateness, driving,
//! reading back, outbox; with faults to switch on. Its relay is the truth.

use std::{collections::VecDeque, sync::Arc};

use truetwin_proof::{
    property::{Description, Evidence, PropertyName, Value},
    twin::{
        input::{ActionResult, Body, Cause, Command, Hello, Report, Status},
        planted::{self, Planted},
        words::{OpId, Reason},
    },
};

use crate::{
    fault::Fault,
    log::{Drive, Event, Log, Timer, Truth, boot_token},
};

#[derive(Clone, Debug)]
struct Job {
    op: OpId,
    to: bool,
    sent_at: u64,
    ttl: u64,
}

/// How an operation ended.
type Ending = (ActionResult, Option<Reason>);

/// How many operations a board remembers (wire protocol, level 2).
const RING: usize = 8;

pub(crate) struct Board {
    property: PropertyName,
    feedback: Evidence,
    drive_ms: u64,
    faults: Vec<Fault>,
    seq: u32,
    session: Option<Arc<str>>,
    described: Arc<Description>,
    /// A hub has welcomed this run.
    known: bool,
    /// Its clock's offset to the hub's as it can know it: the smallest transit seen in this session.
    skew: Option<u64>,
    ring: VecDeque<(OpId, Option<Ending>)>,
    job: Option<Job>,
    driving: bool,
    next: Option<Job>,
    seen: Option<OpId>,
    /// Commands that a frozen board has not read.
    buffer: VecDeque<(u64, Arc<str>, Command)>,
    pub(crate) log: Log,
}

impl Board {
    pub(crate) fn new(property: PropertyName, feedback: Evidence, drive_ms: u64) -> Self {
        Self {
            property,
            feedback,
            drive_ms,
            faults: Vec::new(),
            seq: 0,
            session: None,
            described: Arc::default(),
            known: false,
            skew: None,
            ring: VecDeque::new(),
            job: None,
            driving: false,
            next: None,
            seen: None,
            buffer: VecDeque::new(),
            log: Log::default(),
        }
    }

    fn has(&self, fault: Fault) -> bool {
        self.faults.contains(&fault)
    }

    pub(crate) fn switch(&mut self, now: u64, fault: Fault) {
        match self.faults.iter().position(|f| *f == fault) {
            Some(at) => {
                self.faults.remove(at);
                if fault == Fault::Frozen {
                    self.thaw(now);
                }
            }
            None => self.faults.push(fault),
        }
    }

    pub(crate) fn repair(&mut self, now: u64) {
        self.faults.clear();
        self.thaw(now);
    }

    fn thaw(&mut self, now: u64) {
        for (sent_at, session, command) in std::mem::take(&mut self.buffer) {
            self.receive(now, sent_at, &session, command);
        }
    }

    /// A new connection: what has not begun in the old session is discarded.
    pub(crate) fn connect(&mut self, description: Arc<Description>) {
        self.renew();
        self.described = description;
        self.hello();
    }

    fn hello(&mut self) {
        self.count();
        let description = self.described.clone();
        let (boot, status, seen) = (boot_token(self.log.boot), vec![self.greets()], self.seen_now());
        let seq = self.seq;
        let cause = if self.known { Cause::Unknown } else { Cause::Boot };
        self.log.out.push(Event::Hello(Box::new(Hello { boot, seq, description, status, cause, seen })));
    }

    fn renew(&mut self) {
        self.session = None;
        self.skew = None;
        self.buffer.clear();
        // Forgotten as well: should it come again, it is begun (wire protocol, level 3).
        let waited = [self.next.take(), self.job.take_if(|_| !self.driving)];
        self.ring.retain(|(op, _)| waited.iter().flatten().all(|job| job.op != *op));
    }

    /// Its value in a hello.
    fn greets(&mut self) -> Status {
        self.note(!self.has(Fault::WrongType));
        self.status(self.log.relay)
    }

    fn count(&mut self) {
        self.seq += 1;
    }

    /// The outputs fall to their safe level; nothing is remembered.
    pub(crate) fn reboot(&mut self) {
        self.log.boot += 1;
        self.seq = 0;
        (self.log.relay, self.log.alone, self.driving, self.known) = (false, false, false, false);
        (self.job, self.next, self.seen, self.session) = (None, None, None, None);
        self.ring.clear();
        self.buffer.clear();
        self.log.timers.clear();
    }

    pub(crate) fn receive(&mut self, now: u64, sent_at: u64, session: &Arc<str>, command: Command) {
        if self.has(Fault::Frozen) {
            self.buffer.push_back((sent_at, session.clone(), command));
            return;
        }
        let transit = now - sent_at;
        match command {
            Command::Welcome { session } => {
                self.session = Some(session);
                (self.known, self.skew) = (true, Some(transit));
            }
            _ if self.session.as_ref() != Some(session) => {}
            Command::Set { op, value, ttl, .. } => {
                self.skew = self.skew.map(|skew| skew.min(transit));
                let ttl = u64::try_from(ttl.as_millis()).expect("a short time");
                let to = value == Value::Bool(true);
                self.set(now, Job { op, to, sent_at, ttl });
            }
            Command::Run { op, ttl, .. } => {
                self.skew = self.skew.map(|skew| skew.min(transit));
                let ttl = u64::try_from(ttl.as_millis()).expect("a short time");
                self.run(now, Job { op, to: self.log.relay, sent_at, ttl });
            }
            Command::GetState { op, .. } => {
                if !self.has(Fault::Mute) {
                    self.state(Some(op), Cause::Query);
                }
            }
            Command::Withdraw { op } => self.withdraw(&op),
        }
    }

    /// What the load does, as a meter beside it sees.
    pub(crate) fn load(&self) -> bool {
        self.log.relay && !self.has(Fault::DeadLoad)
    }

    /// Runs an action at once: it leaves no state.
    fn run(&mut self, now: u64, job: Job) {
        let op = job.op.clone();
        if let Some((_, result)) = self.ring.iter().find(|(known, _)| *known == op) {
            if let Some((result, reason)) = *result {
                self.tell(&op, result, reason);
            }
            return;
        }
        self.log.received.insert(op.clone(), now);
        if self.ring.len() == RING {
            self.ring.pop_front();
        }
        let (result, reason) = match (self.late(now, &job), self.has(Fault::Busy)) {
            (true, _) => (ActionResult::Rejected, Some(Reason::Expired)),
            (_, true) => (ActionResult::Rejected, Some(Reason::Busy)),
            _ => (ActionResult::Completed, None),
        };
        self.ring.push_back((op.clone(), Some((result, reason))));
        self.log.results.insert(op.clone(), result);
        if result == ActionResult::Completed {
            self.log.begun.insert(op.clone());
            self.log.runs.push((op.clone(), self.log.boot));
            if !self.has(Fault::NoAck) {
                self.tell(&op, ActionResult::Received, None);
            }
            if !self.has(Fault::NoExecuting) {
                self.tell(&op, ActionResult::Executing, None);
            }
        }
        if result == ActionResult::Rejected || !self.has(Fault::NoCompletion) {
            self.tell(&op, result, reason);
        }
    }

    /// Says how far an action is: without a value, there is none.
    fn tell(&mut self, op: &OpId, result: ActionResult, reason: Option<Reason>) {
        self.say(Vec::new(), Body::Action { op: op.clone(), result, reason, eta: None, clamped: false }, false);
    }

    fn set(&mut self, now: u64, job: Job) {
        let op = job.op.clone();
        if let Some((_, result)) = self.ring.iter().find(|(known, _)| *known == op) {
            // The same operation again: its answer is repeated, with the state read now; nothing moves.
            if let Some((result, reason)) = *result {
                let memory = planted::is(Planted::DupFromMemory) && result == ActionResult::Completed;
                let claimed = if memory { job.to } else { self.log.relay };
                self.report_as(&op, result, reason, claimed, memory);
            }
            return;
        }
        self.log.received.insert(op.clone(), now);
        if self.ring.len() == RING {
            self.ring.pop_front();
        }
        self.ring.push_back((op.clone(), None));
        if self.late(now, &job) {
            return self.end(&op, ActionResult::Rejected, Some(Reason::Expired));
        }
        if self.has(Fault::Busy) {
            return self.end(&op, ActionResult::Rejected, Some(Reason::Busy));
        }
        if !self.has(Fault::NoAck) {
            self.report(&op, ActionResult::Received, None);
        }
        // A newer wish takes the place of one that waits; what drives is finished first.
        if let Some(old) = self.next.take() {
            self.end(&old.op, ActionResult::Failed, Some(Reason::Superseded));
        }
        if self.job.is_some() && !self.driving {
            let old = self.job.take().expect("one waits");
            self.end(&old.op, ActionResult::Failed, Some(Reason::Superseded));
        }
        if self.driving {
            self.next = Some(job);
        } else {
            self.take(now, job);
        }
    }

    fn take(&mut self, now: u64, job: Job) {
        let delay = if self.has(Fault::StartsLate) { 2_500 } else { 5 };
        if !self.has(Fault::NeverStarts) {
            self.log.timers.push((now + delay, Timer::Begin(job.op.clone())));
        }
        self.job = Some(job);
    }

    fn late(&self, now: u64, job: &Job) -> bool {
        if planted::is(Planted::LimitFromReceipt) {
            return false;
        }
        let lateness = (now - job.sent_at).saturating_sub(self.skew.unwrap_or_default());
        lateness > job.ttl
    }

    fn withdraw(&mut self, op: &OpId) {
        let waits = self.job.as_ref().is_some_and(|job| job.op == *op) && !self.driving;
        if waits {
            self.job = None;
            self.end(op, ActionResult::Failed, Some(Reason::Withdrawn));
        } else if self.next.as_ref().is_some_and(|job| job.op == *op) {
            self.next = None;
            self.end(op, ActionResult::Failed, Some(Reason::Withdrawn));
        }
    }

    /// Something goes off.
    pub(crate) fn fire(&mut self, now: u64, timer: &Timer) {
        match timer {
            Timer::Begin(op) => self.begin(now, op),
            Timer::Finish(op) => self.finish(now, op),
            Timer::Step => {}
            Timer::Revert => {
                if self.log.relay {
                    (self.log.relay, self.log.alone) = (false, true);
                    self.state(None, Cause::Unknown);
                }
            }
        }
    }

    fn begin(&mut self, now: u64, op: &OpId) {
        let Some(job) = self.job.clone().filter(|job| job.op == *op && !self.driving) else { return };
        if self.late(now, &job) {
            self.job = None;
            return self.end(op, ActionResult::Rejected, Some(Reason::Expired));
        }
        self.driving = true;
        self.log.drove(Drive { op: op.clone(), at: now, boot: self.log.boot, skew: self.skew.unwrap_or_default() });
        if !self.has(Fault::NoExecuting) {
            self.report(op, ActionResult::Executing, None);
        }
        self.log.fell = self.has(Fault::BrownOut);
        let slow = if self.has(Fault::Slow) { 4_000 } else { 0 };
        self.log.timers.push((now + self.drive_ms + slow, Timer::Finish(op.clone())));
    }

    fn finish(&mut self, now: u64, op: &OpId) {
        let Some(job) = self.job.take_if(|job| job.op == *op && self.driving) else { return };
        self.driving = false;
        if !self.has(Fault::Stuck) && !self.has(Fault::Lying) {
            (self.log.relay, self.log.alone) = (job.to, false);
        }
        if self.log.relay == job.to || self.has(Fault::Lying) {
            self.seen = Some(op.clone());
            self.end_as(op, ActionResult::Completed, None, job.to);
            for (fault, after) in [(Fault::RevertsSoon, 100), (Fault::RevertsLate, 3_000)] {
                if self.has(fault) {
                    self.log.timers.push((now + after, Timer::Revert));
                }
            }
        } else {
            self.end(op, ActionResult::Failed, Some(Reason::Stuck));
        }
        if let Some(next) = self.next.take() {
            self.take(now, next);
        }
    }

    /// Somebody touches the switch at the wall.
    pub(crate) fn touch(&mut self, told: bool) {
        (self.log.relay, self.log.alone) = (!self.log.relay, true);
        if told {
            self.state(None, Cause::Local);
        }
    }

    pub(crate) fn heartbeat(&mut self) {
        match self.session {
            _ if self.has(Fault::Frozen) => {}
            Some(_) => self.say(Vec::new(), Body::Heartbeat, false),
            // Nobody has answered its greeting.
            None => self.hello(),
        }
    }

    pub(crate) fn state(&mut self, question: Option<OpId>, cause: Cause) {
        if self.has(Fault::Frozen) {
            return;
        }
        let (status, seen) = (vec![self.status(self.log.relay)], self.seen_now());
        self.say(status, Body::State { op: question, cause, seen }, true);
    }

    fn end(&mut self, op: &OpId, result: ActionResult, reason: Option<Reason>) {
        self.end_as(op, result, reason, self.log.relay);
    }

    /// Ends an operation with a value that a lying board only claims.
    fn end_as(&mut self, op: &OpId, result: ActionResult, reason: Option<Reason>, claimed: bool) {
        self.log.results.insert(op.clone(), result);
        if let Some((_, kept)) = self.ring.iter_mut().find(|(known, _)| known == op) {
            *kept = Some((result, reason));
        }
        if result == ActionResult::Rejected || !self.has(Fault::NoCompletion) {
            self.report_as(op, result, reason, claimed, false);
        }
    }

    fn report(&mut self, op: &OpId, result: ActionResult, reason: Option<Reason>) {
        self.report_as(op, result, reason, self.log.relay, false);
    }

    fn report_as(&mut self, op: &OpId, result: ActionResult, reason: Option<Reason>, claimed: bool, memory: bool) {
        let ended = matches!(result, ActionResult::Completed | ActionResult::Failed | ActionResult::Rejected);
        let mut status = Vec::new();
        if ended && !self.has(Fault::NoStatus) {
            let mut read = self.status(claimed);
            if claimed != self.log.relay && !memory {
                // The pad it cannot have read.
                read.evidence = Evidence::Firmware;
            }
            status.push(read);
        }
        let carried = !status.is_empty();
        self.say(status, Body::Action { op: op.clone(), result, reason, eta: None, clamped: false }, carried);
    }

    fn say(&mut self, status: Vec<Status>, body: Body, carried: bool) {
        self.count();
        let seq = self.note(carried && !self.has(Fault::WrongType));
        if let Body::Action { op, result: ActionResult::Completed, .. } = &body {
            let newest = self.log.reports.get_mut(&(self.log.boot, seq)).expect("just noted");
            newest.about = Some(op.clone());
        }
        self.log.out.push(Event::Report(Report {
            boot: boot_token(self.log.boot),
            seq,
            retained: false,
            status,
            body,
        }));
    }

    fn note(&mut self, carried: bool) -> u32 {
        let Log { relay, alone, .. } = self.log;
        let truth = Truth { relay, finished: self.seen.clone(), about: None, carried, alone };
        self.log.reports.insert((self.log.boot, self.seq), truth);
        self.seq
    }

    fn status(&self, relay: bool) -> Status {
        let value = if self.has(Fault::WrongType) { Value::Integer(i32::from(relay)) } else { Value::Bool(relay) };
        let evidence = if self.has(Fault::NoReadBack) { Evidence::Firmware } else { self.feedback };
        Status { property: self.property.clone(), value, evidence }
    }

    fn seen_now(&self) -> Vec<(PropertyName, OpId)> {
        self.seen.iter().map(|op| (self.property.clone(), op.clone())).collect()
    }
}
