//! Invariants of semantics 9 that are no matter of one input: drives, what is sent, what is found after a crash, what is left at
//! the end. Each panics with what it found.

use std::{collections::BTreeSet, time::Duration};

use truetwin_proof::{
    property::Value,
    twin::{
        ledger::Fact,
        words::{HeldState, OpId, Outcome},
    },
};

use crate::{
    house::House,
    unit::{For, Unit},
};

/// Each drive that has begun since the last look: no later than its `act_by`, but for what a device cannot tell from its
/// clock's offset; once in each run of the device, in two runs at the most; what must not be repeated is run once.
pub(crate) fn new_drives(house: &mut House, unit: usize) {
    let log = house.units[unit].thing.log();
    let margin = house.settings.answer_margin;
    for drive in &log.drives[house.units[unit].drives_seen..] {
        let call = &house.calls[&drive.op];
        assert_eq!(call.device, unit, "{}: driven by another device", drive.op);
        let (sent_at, ttl, _) = call.sent.iter().rfind(|(at, _, _)| *at <= drive.at).expect("it was sent");
        let act_by = house.time(*sent_at) + *ttl;
        assert!(house.time(drive.at) <= act_by + Duration::from_millis(drive.skew), "{}: begun too late", drive.op);
        // Nobody was told that it is not known to be done, and then it began. Who was told that it is at work may see it
        // begin again after a reboot.
        let at_work = call.told.contains(&Outcome::Working);
        let in_time = act_by <= call.answer_by - margin;
        assert!(in_time || call.gone || at_work || call.told_by_fleet, "{}: may outlive its caller", drive.op);
        let runs: Vec<u32> = log.drives.iter().filter(|d| d.op == drive.op).map(|d| d.boot).collect();
        let different: BTreeSet<&u32> = runs.iter().collect();
        assert!(different.len() == runs.len() && runs.len() <= 2, "{}: driven in the runs {runs:?}", drive.op);
    }
    for (op, _) in &log.runs {
        let runs = log.runs.iter().filter(|(of, _)| of == op).count();
        assert!(runs <= 1, "{op}: run {runs} times");
    }
    let drives = log.drives.len();
    house.tally.drives += (drives - house.units[unit].drives_seen) as u64;
    house.units[unit].drives_seen = drives;
}

/// An operation is sent once in each session; what must not be repeated is not sent again; and nothing momentary is sent by a
/// hub that did not take it in, nor by an actor that withdrew it (semantics 5.1, 5.8).
pub(crate) fn is_sent(house: &House, unit: usize, op: &OpId) {
    let call = &house.calls[op];
    let sessions: Vec<&str> = call.sent.iter().filter_map(|(_, _, session)| session.as_deref()).collect();
    let different: BTreeSet<&&str> = sessions.iter().collect();
    assert_eq!(sessions.len(), different.len(), "{op}: sent twice in one session");
    assert_eq!(call.device, unit, "{op}: sent to another device");
    assert_eq!(call.run, house.run, "{op}: sent again by a hub that has started again");
    let held = house.units[unit].kinds.spec.held && call.what != For::Run;
    assert!(!call.told_by_fleet || held, "{op}: sent again by an actor that has started again");
    if call.what == For::Run {
        assert!(call.sent.len() <= 1 || !call.written, "{op}: sent {} times", call.sent.len());
    }
}

/// The admission of what must not be repeated, and of set points, is on the disk before the command goes out; or the disk has
/// refused it (semantics 8.5).
pub(crate) fn goes_out(house: &House, unit: usize, op: &OpId) {
    let call = &house.calls[op];
    let first = call.what == For::Run || (house.units[unit].kinds.spec.held && call.what != For::Nobody);
    if first {
        assert!(house.disk.kept.contains(op), "{op}: sent before its admission was kept");
    }
}

/// After a restart of the actor the first that goes out withdraws what was in flight (semantics 5.8).
pub(crate) fn what_was_in_flight_is_withdrawn(house: &House, unit: usize, in_flight: &[OpId]) {
    let _ = unit;
    for op in in_flight {
        assert!(house.withdrawn.contains(op), "{op}: in flight at the crash, and not withdrawn");
    }
}

/// The hub is gone: what was answered as recorded is found again, after a power cut what was promised to be held.
pub(crate) fn at_the_end_of_the_hub(house: &House, cut: bool) {
    committed_survives_process_crash(house, cut);
}

fn committed_survives_process_crash(house: &House, cut: bool) {
    let found = house.disk.recover(house.units.len());
    if !cut {
        for (op, call) in house.calls.iter().filter(|(_, call)| call.run == house.run) {
            if let Some((Some(outcome), true)) = call.heard.first() {
                let found = &found[call.device];
                let known = found.known.iter().any(|(_, settled)| settled.op == *op);
                let open =
                    *outcome == Outcome::Working && found.admitted.iter().any(|(_, settled, _)| settled.op == *op);
                assert!(known || open, "{op}: {outcome} was answered, and nothing of it is found");
            }
        }
    }
    for (unit, found) in house.units.iter().zip(&found) {
        if unit.held_promised == 0 {
            continue;
        }
        let is = found.held.get("relay").map(|held| held.kept().op);
        let since = &unit.held_facts[unit.held_promised - 1..];
        let op = |fact: &Fact| if let Fact::Held(_, held) = fact { Some(held.kept().op) } else { None };
        let fine = since.iter().any(|fact| op(fact) == is);
        assert!(fine, "{}: held {is:?}, promised one of {since:?}", unit.id);
    }
}

/// At the end, when everything works again: nobody waits, and what is held is so.
pub(crate) fn at_the_end(house: &House) {
    for unit in house.units.iter().filter(|unit| !unit.quarantined) {
        let held = unit.kinds.spec.held;
        assert!(unit.twin.in_flight() == 0 || held, "{}: something lives for ever", unit.id);
        assert!(unit.answers.is_empty() && unit.deferred.is_empty(), "{}: something waits for ever", unit.id);
        held_wishes_converge_or_stall_with_the_reason(house, unit);
    }
}

fn held_wishes_converge_or_stall_with_the_reason(house: &House, unit: &Unit) {
    let state = unit.twin.state(house.time(house.now));
    for held in &state.held {
        let relay = Value::Bool(unit.thing.log().relay);
        match held.state {
            HeldState::Met => assert_eq!(held.value, relay, "{}: held, and it is otherwise", unit.id),
            HeldState::LocalOverride | HeldState::Blocked => {}
            HeldState::Pursued => assert!(held.reason.is_some(), "{}: {held:?}", unit.id),
            HeldState::Offline => panic!("{}: it is there", unit.id),
        }
    }
}

/// The other half of honesty: what can be known to be done is said to be done.
pub(crate) fn on_a_good_day(house: &House, unit: usize, wishes: &[OpId], last: bool) {
    let of = &house.units[unit];
    let log = of.thing.log();
    assert!(wishes.is_empty() || log.relay == last, "{}: it is {}", of.id, log.relay);
    for op in &house.order[unit] {
        let call = &house.calls[op];
        let heard = call.heard.first().map(|(outcome, recorded)| (*outcome, *recorded));
        let superseded = wishes.last() != Some(op) && call.what != For::Run;
        let fine = match heard {
            Some((Some(Outcome::Converged | Outcome::Already), true)) => true,
            Some((Some(Outcome::Superseded), true)) => superseded,
            _ => false,
        };
        assert!(fine, "{op}: on a good day it heard {heard:?}");
        if call.what == For::Run {
            assert_eq!(log.runs.iter().filter(|(of, _)| of == op).count(), 1, "{op}: not run");
        }
    }
    for pair in log.drives.windows(2) {
        let interval = u64::from(of.kinds.spec.min_interval_ms);
        assert!(pair[1].at - pair[0].at >= interval, "{}: driven after {} ms", pair[1].op, pair[1].at - pair[0].at);
    }
}
