//! What happens in a house: who asks for what, what goes wrong and when. All of it from the seed.

use std::time::Duration;

use truetwin_proof::{
    property::{Evidence, Value},
    twin::{
        input::{ActionResult, Body, Cause, Input, Report, Status},
        wish::Wish,
        words::Stage,
    },
};

use crate::{
    checks,
    core::Spec,
    ends,
    fault::Fault,
    house::{House, Parcel, Setting},
    log::boot_token,
    random::Random,
    tally::STAGES,
    unit::{For, Kinds, Thing},
};

/// How long everything works before the end is looked at, milliseconds: longer than the longest pause between two sendings
/// of a held wish, and than a correction is owed.
const AFTERMATH_MS: u64 = 700_000;

/// The house that a seed makes.
pub(crate) fn setting(seed: u64) -> Setting {
    let mut random = Random::new(seed ^ 0x5EED);
    let devices = (0..random.of(&[1, 1, 1, 2, 2, 3])).map(|_| kinds(&mut random)).collect();
    let mut faults: Vec<Fault> = Vec::new();
    // One house in sixteen has a good day.
    for _ in 0..if random.one_in(16) { 0 } else { 1 + random.below(8) } {
        faults.push(random.of(Fault::ALL));
    }
    match seed % 8 {
        6 => return late(&mut random),
        7 => return echoing(&mut random),
        _ if seed % 16 == 13 => return holding(&mut random),
        _ => {}
    }
    let ways = [Fault::Lost, Fault::Doubled, Fault::Delayed];
    let noisy = faults.iter().any(|fault| ways.contains(fault));
    let noise = if noisy { random.of(&[20, 50, 300]) } else { 0 };
    Setting { devices, hub_age_s: random.of(&[0, 3_600]), faults, noise, steps: 40 + random.below(80) }
}

/// A house in which nothing goes wrong.
pub(crate) fn lucky(seed: u64) -> Setting {
    let mut random = Random::new(seed ^ 0x5EED);
    let devices = (0..random.of(&[1, 2])).map(|_| {
        let kinds = kinds(&mut random);
        let spec = Spec { expected_ms: random.of(&[100, 300]), held: false, ..kinds.spec };
        Kinds { spec, metered: false, ..kinds }
    });
    Setting { devices: devices.collect(), hub_age_s: 3_600, faults: Vec::new(), noise: 0, steps: 0 }
}

/// A house in which the hub is late: what comes at the last moment comes beside what is over.
fn late(random: &mut Random) -> Setting {
    let spec = Spec { expected_ms: random.of(&[300, 3_000]), ..kinds(random).spec };
    let kinds = Kinds { core: false, metered: false, absent_ms: 0, spec, ..kinds(random) };
    let faults = vec![Fault::TimerLate, Fault::Slow, Fault::TimerLate, Fault::Delayed, Fault::StartsLate];
    Setting { devices: vec![kinds], hub_age_s: 3_600, faults, noise: 50, steps: 100 }
}

/// A house in which messages are lost and come twice, and things fall back: what is said again must be looked at again.
fn echoing(random: &mut Random) -> Setting {
    let stable_ms = random.of(&[0, 0, 200]);
    let spec = Spec { feedback: Evidence::Pin, expected_ms: 100, stable_ms, ..kinds(random).spec };
    let kinds = Kinds { core: false, metered: false, absent_ms: 0, spec, ..kinds(random) };
    let faults =
        vec![Fault::Doubled, Fault::Lost, Fault::RevertsSoon, Fault::RevertsSoon, Fault::HalfOpen, Fault::NoAck];
    Setting { devices: vec![kinds], hub_age_s: 3_600, faults, noise: 300, steps: 100 }
}

/// A house with one set point that is changed again and again, while the disk takes nothing, the hub dies, and what the device has
/// done is heard of late: what was wished last stays what is held.
fn holding(random: &mut Random) -> Setting {
    let spec = Spec { held: true, expected_ms: random.of(&[100, 300, 3_000]), ..kinds(random).spec };
    let kinds = Kinds { metered: false, absent_ms: 0, spec, ..kinds(random) };
    let mut faults = vec![Fault::DiskFull, Fault::Killed, Fault::NoCompletion, Fault::HalfOpen, Fault::Slow];
    let more =
        [Fault::Actor, Fault::Broken, Fault::Touch, Fault::DiskStalled, Fault::Busy, Fault::Reboot, Fault::Killed];
    faults.extend(more.into_iter().filter(|_| random.one_in(2)));
    Setting {
        devices: vec![kinds],
        hub_age_s: random.of(&[0, 3_600]),
        faults,
        noise: random.of(&[0, 0, 50]),
        steps: 100,
    }
}

fn kinds(random: &mut Random) -> Kinds {
    let core = random.one_in(4);
    let spec = Spec {
        feedback: random.of(&[Evidence::Pin, Evidence::Firmware]),
        expected_ms: random.of(&[100, 300, 300, 3_000, 20_000]),
        stable_ms: random.of(&[0, 200]),
        min_interval_ms: random.of(&[0, 500]),
        held: random.one_in(4),
    };
    let metered = !core && random.one_in(2);
    Kinds { spec, core, metered, absent_ms: random.of(&[0, 0, 0, 5_000]), preempts: random.one_in(4) }
}

impl House {
    /// Lives to the end, and a while longer in which everything works.
    pub(crate) fn live(&mut self) {
        self.pass(50);
        for _ in 0..self.setting.steps {
            let pause = self.random.of(&[0, 1, 5, 20, 100, 250, 600, 1_100, 2_600, 9_000]);
            self.pass(self.now + pause);
            self.step();
        }
        self.repair();
        self.pass(self.now + AFTERMATH_MS);
        // A hub that was killed in the last moment has to come back as well.
        if !self.hub_up {
            self.pass(self.now + AFTERMATH_MS);
        }
        ends::at_the_end(self);
        self.note_end();
    }

    fn note_end(&mut self) {
        self.tally.seeds += 1;
        self.tally.hours += Duration::from_millis(self.now).as_secs_f64() / 3_600.0;
        for call in self.calls.values().filter(|call| call.active) {
            checks::count(&mut self.tally, call);
        }
    }

    fn any_unit(&mut self) -> usize {
        usize::try_from(self.random.below(self.units.len() as u64)).expect("few devices")
    }

    fn step(&mut self) {
        let unit = self.any_unit();
        match self.random.below(100) {
            0..25 => self.somebody_asks(unit),
            25..30 => self.several_ask(unit),
            30..33 => self.query(unit),
            33..36 => self.vanish(unit),
            36..70 => self.prepare(unit),
            70..80 => self.go_wrong(unit),
            80..84 => self.repair(),
            84..87 => self.inject(unit, Fault::Touch),
            87..90 => self.periodic(unit),
            90..92 => self.feed(unit, Input::Tick),
            _ => {}
        }
        self.carry(unit);
    }

    fn limit(&mut self) -> u64 {
        self.random.of(&[40, 200, 700, 1_500, 4_000, 8_000, 8_000, 30_000])
    }

    fn somebody_asks(&mut self, unit: usize) {
        let (limit, who) = (self.limit(), self.random.below(3));
        match self.random.below(10) {
            0..5 => {
                let on = self.random.one_in(2);
                self.set(unit, on, limit, who);
            }
            5..8 => self.toggle(unit, limit, who),
            _ => self.press(unit, limit, who),
        }
    }

    /// Many at once: equal wishes, opposite ones, one who tries again and again.
    fn several_ask(&mut self, unit: usize) {
        let (kind, limit) = (self.random.below(4), self.limit());
        for n in 0..2 + self.random.below(10) {
            match kind {
                0 => self.set(unit, true, limit, n),
                1 => self.set(unit, n % 2 == 0, limit, n),
                2 => self.toggle(unit, limit, n / 4),
                _ => {
                    self.set(unit, true, limit, 0);
                    self.vanish(unit);
                }
            }
        }
    }

    /// Whether the fleet lets a call through.
    fn lets_in(&self, unit: usize) -> bool {
        self.hub_up && !self.units[unit].quarantined
    }

    pub(crate) fn set(&mut self, unit: usize, on: bool, limit_ms: u64, who: u64) {
        if !self.lets_in(unit) {
            return;
        }
        let caller = Self::who(usize::try_from(who).expect("few"));
        let (op, answer_by) = self.call(unit, For::Value(on), limit_ms, caller.clone());
        let if_needed = self.random.one_in(5).then_some(Duration::from_secs(2));
        let wish = Wish { if_needed, ..Wish::to("relay", Value::Bool(on)) };
        self.feed(unit, Input::Set { op, caller, wish, answer_by });
    }

    pub(crate) fn toggle(&mut self, unit: usize, limit_ms: u64, who: u64) {
        if !self.lets_in(unit) {
            return;
        }
        let caller = Self::who(usize::try_from(who).expect("few"));
        let (op, answer_by) = self.call(unit, For::Toggle, limit_ms, caller.clone());
        self.feed(unit, Input::Set { op, caller, wish: Wish::toggle("relay"), answer_by });
    }

    pub(crate) fn press(&mut self, unit: usize, limit_ms: u64, who: u64) {
        if !self.lets_in(unit) {
            return;
        }
        let caller = Self::who(usize::try_from(who).expect("few"));
        let (op, answer_by) = self.call(unit, For::Run, limit_ms, caller.clone());
        self.feed(unit, Input::Run { op, caller, action: "press".into(), args: Vec::new(), answer_by });
    }

    fn query(&mut self, unit: usize) {
        if !self.lets_in(unit) {
            return;
        }
        let limit = self.limit();
        let (op, answer_by) = self.call(unit, For::Query, limit, Self::who(0));
        self.order[unit].pop();
        self.feed(unit, Input::Query { op, answer_by });
    }

    /// One of the last callers goes.
    fn vanish(&mut self, unit: usize) {
        let back = usize::try_from(self.random.below(3)).expect("small");
        let Some(op) = self.order[unit].iter().rev().nth(back).cloned() else { return };
        let run = self.run;
        let call = self.calls.get_mut(&op).expect("a call");
        if self.hub_up && call.run == run {
            call.gone = true;
            self.note_fault(unit, Fault::Vanished);
            self.feed(unit, Input::Cancel { op });
        }
    }

    pub(crate) fn periodic(&mut self, unit: usize) {
        if let Thing::Model(board) = &mut self.units[unit].thing {
            board.state(None, Cause::Periodic);
        }
    }

    /// Something will go wrong when an operation comes to a stage; and somebody asks, so that one does.
    fn prepare(&mut self, unit: usize) {
        if self.setting.faults.is_empty() {
            return self.somebody_asks(unit);
        }
        let fault = self.random.of(&self.setting.faults.clone());
        let metered = self.units[unit].kinds.metered && self.random.one_in(3);
        let stage = if metered { Stage::WaitingSensor } else { self.random.of(&STAGES[..6]) };
        self.units[unit].ambush = Some((stage, fault));
        let (limit, who) = (self.random.of(&[4_000, 8_000, 30_000]), self.random.below(3));
        let on = self.random.one_in(2);
        self.set(unit, on, limit, who);
        if self.random.one_in(3) {
            // Somebody waits behind it.
            self.toggle(unit, limit, who + 1);
        }
    }

    fn go_wrong(&mut self, unit: usize) {
        if !self.setting.faults.is_empty() {
            let fault = self.random.of(&self.setting.faults.clone());
            self.inject(unit, fault);
        }
    }

    /// Whether the moment has come that something waited for.
    pub(crate) fn spring(&mut self, unit: usize) {
        let Some((stage, fault)) = self.units[unit].ambush else { return };
        if self.units[unit].twin.stages().any(|(_, at)| at == stage) {
            self.units[unit].ambush = None;
            self.put(self.now, unit, Parcel::Spring { fault });
        }
    }

    /// Something goes wrong.
    pub(crate) fn inject(&mut self, unit: usize, fault: Fault) {
        let now = self.now;
        let core = matches!(self.units[unit].thing, Thing::Core(_));
        if core && !fault.of_core() {
            return;
        }
        let away = self.random.of(&[0, 50, 1_000, 4_000, 70_000]);
        if fault.lasts() {
            let until = now + self.random.of(&[100, 600, 2_000, 8_000, 40_000]);
            self.put(until, unit, Parcel::Mend { fault });
        }
        match fault {
            Fault::Killed | Fault::PowerCut => return self.hub_dies(fault),
            Fault::Broker => return self.broker_dies(),
            Fault::Lost | Fault::Doubled | Fault::Delayed => {
                self.noise = 500;
                self.put(now + 150, unit, Parcel::Mend { fault });
                return;
            }
            Fault::Actor => {
                // It crashes over its next message, which comes soon enough.
                self.units[unit].crash = self.hub_up && !self.units[unit].quarantined;
                return;
            }
            Fault::Vanished => return self.vanish(unit),
            _ => self.note_fault(unit, fault),
        }
        match fault {
            fault if fault.of_device() => {
                let new = self.units[unit].wrong.insert(fault);
                if new {
                    self.units[unit].thing.switch(now, fault);
                }
            }
            Fault::TimerLate => {
                self.units[unit].wrong.insert(fault);
                self.units[unit].lag = self.random.of(&[1, 30, 800]);
                self.arm(unit);
            }
            Fault::DiskFull => self.disk.full = true,
            Fault::DiskStalled => (self.disk.stalled, self.disk_slow) = (self.random.one_in(2), true),
            Fault::Touch => {
                let told = self.random.one_in(2);
                match &mut self.units[unit].thing {
                    Thing::Model(board) => board.touch(told),
                    Thing::Core(core) => core.touch(now, told),
                }
            }
            Fault::Reboot => self.reboot(unit, away),
            Fault::Broken => self.break_connection(unit, away, true),
            Fault::HalfOpen => self.break_connection(unit, away, false),
            Fault::Retained => self.leftover(unit, true),
            Fault::OldBoot => self.leftover(unit, false),
            Fault::Unreadable => self.feed(unit, Input::Unreadable),
            _ => {}
        }
    }

    /// Something works again.
    pub(crate) fn mend(&mut self, unit: usize, fault: Fault) {
        let now = self.now;
        match fault {
            fault if fault.of_device() => {
                let was = self.units[unit].wrong.remove(&fault);
                if was {
                    self.units[unit].thing.switch(now, fault);
                }
            }
            Fault::TimerLate => {
                self.units[unit].wrong.remove(&fault);
                self.units[unit].lag = 0;
                self.arm(unit);
            }
            Fault::DiskFull => self.disk.full = false,
            Fault::DiskStalled => (self.disk.stalled, self.disk_slow) = (false, false),
            Fault::Lost | Fault::Doubled | Fault::Delayed => self.noise = self.setting.noise,
            _ => {}
        }
    }

    fn repair(&mut self) {
        let now = self.now;
        self.noise = 0;
        (self.disk.full, self.disk.stalled, self.disk_slow) = (false, false, false);
        for unit in 0..self.units.len() {
            self.units[unit].wrong.clear();
            self.units[unit].ambush = None;
            self.units[unit].lag = 0;
            self.units[unit].thing.repair(now);
            self.carry(unit);
            self.arm(unit);
        }
    }

    /// A good day: nothing fails, and whoever asks is served. Of wishes for a value the last wins, and those before it converge or
    /// hear so; every toggle toggles; an action is done once; and however many speak, the relay keeps its interval.
    pub(crate) fn good_day(&mut self) {
        self.setting.faults.clear();
        self.noise = 0;
        self.pass(6_000);
        let mut last = vec![false; self.units.len()];
        let mut wishes: Vec<Vec<truetwin_proof::twin::words::OpId>> = vec![Vec::new(); self.units.len()];
        for _ in 0..2 + self.random.below(7) {
            let pause = self.random.below(2_000);
            self.pass(self.now + pause);
            let (unit, who) = (self.any_unit(), self.random.below(3));
            match self.random.below(5) {
                0 => {
                    self.press(unit, 30_000, who);
                    // Others speak at the same time.
                    self.periodic(unit);
                    self.carry(unit);
                    continue;
                }
                1..3 => {
                    last[unit] = self.random.one_in(2);
                    self.set(unit, last[unit], 30_000, who);
                }
                _ => {
                    last[unit] = !last[unit];
                    self.toggle(unit, 30_000, who);
                }
            }
            wishes[unit].push(self.order[unit].last().expect("just asked").clone());
        }
        self.pass(self.now + 60_000);
        for (unit, wishes) in wishes.iter().enumerate() {
            ends::on_a_good_day(self, unit, wishes, last[unit]);
        }
        ends::at_the_end(self);
        self.note_end();
    }

    /// A report delivered with the RETAIN flag, or of an older boot, claims that the latest operation is done.
    fn leftover(&mut self, unit: usize, retained: bool) {
        let (Some(op), Some(boot)) = (self.order[unit].last().cloned(), self.units[unit].hub_boot) else { return };
        let For::Value(value) = self.calls[&op].what else { return };
        let boot = if retained { boot_token(boot) } else { boot_token(0) };
        let seq = 1 + u32::try_from(self.random.below(200)).expect("small");
        let body = match self.random.below(2) {
            0 => Body::Action { op, result: ActionResult::Completed, reason: None, eta: None, clamped: false },
            _ => Body::State { op: None, cause: Cause::Query, seen: vec![("relay".into(), op)] },
        };
        let status = vec![Status { property: "relay".into(), value: Value::Bool(value), evidence: Evidence::Pin }];
        self.feed(unit, Input::Heard(Report { boot, seq, retained, status, body }));
    }
}
