//! What of the hub goes by way of its journal: admissions first, answers after their records, and nobody waits beyond its limit.

use std::time::Instant;

use truetwin_proof::twin::{
    admission::Lasts,
    ledger::Fact,
    planted::{self, Planted},
    wish::CallerId,
    words::{OpId, Outcome, Reply},
};

use crate::{
    disk::Order,
    house::{House, Parcel},
    unit::{Answer, Deferred, For},
};

impl House {
    /// Who gave up before the twin knew of it.
    pub(crate) fn given_up(&mut self, unit: usize, op: &OpId) {
        self.units[unit].deferred.retain(|deferred| deferred.op != *op);
        if let Some(fact) = self.units[unit].ledger.given_up(op) {
            self.keep(unit, vec![fact], Lasts::OverCrash, false);
        }
    }

    /// Gives facts to the journal, as one commit behind all that was given before. Its number.
    pub(crate) fn keep(&mut self, unit: usize, facts: Vec<Fact>, sure: Lasts, awaited: bool) -> u64 {
        self.commits += 1;
        let number = self.commits;
        let held = facts.iter().filter(|fact| matches!(fact, Fact::Held(..) | Fact::Unheld(_))).cloned();
        self.units[unit].held_facts.extend(held);
        if self.disk.waiting() == 0 {
            let slow = if self.disk_slow { self.random.below(4_000) } else { 0 };
            let at = self.now + self.random.below(4) + slow;
            self.put(at, unit, Parcel::Commit);
        }
        let taken = self.disk.give(Order { device: unit, facts, sure, commit: awaited.then_some(number) });
        if !taken && awaited {
            self.refused.push((unit, number));
        }
        number
    }

    /// The disk has written what waited, or has not.
    pub(crate) fn committed(&mut self) {
        let done = self.disk.commit();
        if self.disk.waiting() > 0 {
            let at = self.now + 50;
            self.put(at, 0, Parcel::Commit);
        }
        for done in done {
            if let Some(commit) = done.commit {
                self.kept(done.device, commit, done.kept);
                self.settle_disk(done.device);
            }
        }
    }

    /// What became of one commit that somebody waits for.
    pub(crate) fn kept(&mut self, unit: usize, commit: u64, kept: bool) {
        if let Some(at) = self.units[unit].answers.iter().position(|answer| answer.commit == commit) {
            let answer = self.units[unit].answers.remove(at);
            self.heard(unit, &answer.op, Some(answer.outcome), kept);
        }
        if let Some(at) = self.units[unit].deferred.iter().position(|deferred| deferred.commit == commit) {
            let deferred = self.units[unit].deferred.remove(at);
            match kept {
                true => self.feed(unit, deferred.input),
                false => self.journal_down(unit, &deferred.op),
            }
        }
    }

    /// What must be written first was not: its caller hears so, and the twin never hears of it.
    pub(crate) fn journal_down(&mut self, unit: usize, op: &OpId) {
        *self.tally.outcomes.entry("journal_down").or_default() += 1;
        let call = self.calls.get_mut(op).expect("a call");
        (call.refused, call.decided) = (true, 1);
        self.heard(unit, op, None, true);
        self.given_up(unit, op);
    }

    /// What waits for the disk does so no longer than its caller may be kept; and what the journal did not even take.
    pub(crate) fn settle_disk(&mut self, unit: usize) {
        for (unit, commit) in std::mem::take(&mut self.refused) {
            self.kept(unit, commit, false);
        }
        let now = self.time(self.now);
        let late: Vec<Answer> = self.units[unit].answers.extract_if(.., |answer| answer.by <= now).collect();
        for answer in late {
            self.heard(unit, &answer.op, Some(answer.outcome), false);
        }
        let late: Vec<Deferred> = self.units[unit].deferred.extract_if(.., |deferred| deferred.by <= now).collect();
        for deferred in late {
            self.journal_down(unit, &deferred.op);
        }
        self.arm(unit);
    }

    /// A caller is told.
    pub(crate) fn heard(&mut self, unit: usize, op: &OpId, outcome: Option<Outcome>, recorded: bool) {
        if outcome.is_some() {
            let count = if recorded { &mut self.tally.recorded } else { &mut self.tally.unrecorded };
            *count += 1;
        }
        let held = self.units[unit].kinds.spec.held;
        let now = self.time(self.now);
        let call = self.calls.get_mut(op).expect("a call");
        call.heard.push((outcome, recorded));
        assert!(call.heard.len() == 1, "{op}: {} answers were heard", call.heard.len());
        let late = self.units[unit].lag > 0 || call.decided_at >= call.answer_by;
        assert!(late || now <= call.answer_by, "{op}: heard of after its limit");
        if recorded && outcome.is_some() && held && call.what != For::Run {
            // What was held when it was decided is on the disk.
            self.units[unit].held_promised = self.units[unit].held_promised.max(call.promise);
        }
    }

    /// Answers a caller once its record is kept.
    pub(crate) fn tell(&mut self, unit: usize, op: &OpId, reply: &Reply, by: Instant, caller: &CallerId) {
        let Reply::Settled(settled) = reply else { return self.heard(unit, op, None, true) };
        let of = &mut self.units[unit];
        let (facts, lasts) = of.ledger.answer(&of.twin, caller, settled);
        let outcome = settled.outcome;
        let commit = self.keep(unit, facts, lasts, true);
        self.calls.get_mut(op).expect("a call").promise = self.units[unit].held_facts.len();
        if planted::is(Planted::ReplyBeforeCommit) {
            return self.heard(unit, op, Some(outcome), true);
        }
        self.units[unit].answers.push(Answer { commit, op: op.clone(), outcome, by });
    }
}
