//! Actors that crash, and the whole hub; what begins again, and with what.

use std::{collections::BTreeSet, time::Duration};

use truetwin_proof::{
    policy::Restarts,
    twin::{
        Hears, Twin,
        held::Held,
        input::{Input, Left, Memory},
        ledger::{Asked, Ledger},
        settings::Settings,
        wish::CallerId,
        words::{OpId, Outcome, Settled},
    },
};

use crate::{
    ends,
    fault::Fault,
    house::{House, Parcel},
    hub::asked,
    unit::Thing,
};

/// How often an actor may crash (`fleet::Limits`).
const RESTARTS_MAX: usize = 5;
const RESTARTS_WITHIN: Duration = Duration::from_secs(60);

impl House {
    /// The actor crashes over a message: another follows with what the fleet kept, or the device is set aside.
    pub(crate) fn crash(&mut self, unit: usize, over: &Input) {
        let now = self.time(self.now);
        self.note_fault(unit, Fault::Actor);
        let mut memory = self.units[unit].twin.memory(now);
        memory.happens(over);
        if let Some((Asked { op, caller, what, wish, .. }, _)) = asked(&self.units[unit].twin, over) {
            let settled = Settled::unknown(op, self.units[unit].id.clone(), what, wish);
            memory.in_flight.push(Left { caller, hears: Hears::Waits, settled });
        }
        // The ports drop, and the fleet tells what it knows: that nobody knows.
        for op in self.units[unit].active.clone() {
            let call = self.calls.get_mut(&op).expect("a call");
            call.told_by_fleet |= call.heard.is_empty() && call.decided == 0 || call.heard.is_empty();
            call.ended = true;
        }
        let (max, within) = (RESTARTS_MAX, RESTARTS_WITHIN);
        if !self.units[unit].restarts.once_more(now, max, within) {
            self.units[unit].quarantined = true;
            self.units[unit].answers.clear();
            self.units[unit].deferred.clear();
            self.units[unit].wake = u64::MAX;
            return;
        }
        self.begin_actor(unit, memory);
    }

    /// An actor begins with a memory.
    fn begin_actor(&mut self, unit: usize, memory: Memory) {
        let settings = self.settings.clone();
        let of = &mut self.units[unit];
        of.twin = Twin::new(of.id.clone(), settings);
        self.record_beginning(unit);
        let of = &mut self.units[unit];
        of.answers.clear();
        of.deferred.clear();
        of.tickets.clear();
        of.session.clone_from(&memory.session);
        of.ledger = Ledger::default();
        (of.last_word, of.claimed, of.held_op) = (None, None, None);
        let in_flight: BTreeSet<OpId> = memory
            .in_flight
            .iter()
            .map(|left| left.settled.joined.clone().unwrap_or_else(|| left.settled.op.clone()))
            .collect();
        let session = memory.session.is_some();
        let mut inputs = Vec::new();
        let sent_before: Vec<OpId> = in_flight.iter().filter(|op| self.was_sent(op)).cloned().collect();
        self.apply(unit, Input::Restored(memory), &mut inputs);
        assert!(inputs.is_empty());
        if session {
            ends::what_was_in_flight_is_withdrawn(self, unit, &sent_before);
        }
        self.settle_disk(unit);
    }

    fn was_sent(&self, op: &OpId) -> bool {
        self.calls.get(op).is_some_and(|call| call.sent.last().is_some_and(|(_, _, session)| session.is_some()))
    }

    /// The process is gone, or its power.
    pub(crate) fn hub_dies(&mut self, fault: Fault) {
        if !self.hub_up {
            return;
        }
        for unit in 0..self.units.len() {
            self.note_fault(unit, fault);
        }
        self.hub_up = false;
        match fault {
            Fault::PowerCut => {
                let luck = self.random.below(1_000);
                self.disk.power_cut(luck);
            }
            _ => self.disk.killed(),
        }
        for unit in 0..self.units.len() {
            // The kernel closes its sockets; what was written to them may still arrive.
            if let Some(connection) = self.units[unit].connection {
                let at = self.now + self.random.below(40);
                self.put(at, unit, Parcel::Lost { connection });
            }
            self.units[unit].hub_connection = None;
            self.units[unit].wake = u64::MAX;
        }
        let at = self.now + 50 + self.random.below(3_000);
        let cut = fault == Fault::PowerCut;
        self.put(at, 0, Parcel::Starts);
        for call in self.calls.values_mut().filter(|call| call.active) {
            // Its connection is gone with the hub.
            call.gone = true;
            call.ended = true;
        }
        ends::at_the_end_of_the_hub(self, cut);
    }

    /// The hub starts and finds what its journal kept.
    pub(crate) fn hub_starts(&mut self) {
        self.run += 1;
        self.hub_up = true;
        self.bus_down = false;
        self.tally.hub_starts += 1;
        let now = self.time(self.now);
        self.settings = Settings { reconcile: self.settings.reconcile, ..Settings::new(now) };
        let epoch = u32::try_from(self.run).expect("few starts");
        for (unit, found) in self.disk.recover(self.units.len()).into_iter().enumerate() {
            let of = &mut self.units[unit];
            if let Thing::Core(core) = &mut of.thing {
                core.next_epoch();
            }
            (of.quarantined, of.restarts, of.crash) = (false, Restarts::default(), false);
            (of.hub_boot, of.measured) = (None, None);
            // The description is kept with the rest; it does not change here.
            let known = of.twin.description().cloned();
            let (calls, start) = (&self.calls, self.start);
            let gone = |(caller, mut settled, told): (CallerId, Settled, Option<Outcome>)| {
                let asked = calls.get(&settled.op).map_or(self.now, |call| call.asked_at);
                settled.elapsed = Duration::from_millis(self.now - asked);
                let hears = told.map_or(Hears::Gone, |outcome| Hears::Told { outcome, at: now });
                Left { caller, hears, settled }
            };
            let ended = |(caller, settled): (CallerId, Settled)| {
                let asked = calls.get(&settled.op).map_or(now, |call| start + Duration::from_millis(call.asked_at));
                let at = (asked + settled.elapsed).min(now);
                let hears = Hears::Told { outcome: settled.outcome, at };
                (at, Left { caller, hears, settled })
            };
            let memory = Memory {
                description: known,
                held: found
                    .held
                    .into_iter()
                    .map(|(name, held)| (name, Held::resumed(held.kept(), now, epoch)))
                    .collect(),
                in_flight: found.admitted.into_iter().map(gone).collect(),
                ended: found.known.into_iter().map(ended).collect(),
                ..Memory::default()
            };
            self.begin_actor(unit, memory);
        }
    }
}
