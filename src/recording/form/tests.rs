//! Everything that can be in a line comes back as it was.

use std::{
    collections::BTreeSet,
    io::Cursor,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    time::{Duration, Instant},
};

use proptest::prelude::*;

use super::*;
use crate::{
    property::{
        Action, Choice, Class, Confirm, Confirmation, Description, Evidence, Failsafe, Kind, Predicate, Property, Role,
        Terms, Value, Verify,
    },
    recording::replay::{self, Compared, Replay, Told},
    twin::{
        Hears, Twin, Waiter,
        held::Held,
        input::{ActionResult, Body, Cause, Found, Hello, Left, Memory, Report, Status},
        wish::{CallerId, Target, Wish},
        words::{Attribution, Measured, OpId, Outcome, Reading, Reason, Settled, Stage, Trust},
    },
};

/// Chance from a seed, and everything that can be thrown with it.
struct Dice {
    state: u64,
    zero: Instant,
}

impl Dice {
    fn new(seed: u64) -> Self {
        Self { state: seed, zero: Instant::now() }
    }

    /// Splitmix64.
    fn bits(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.state ^ (self.state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.bits() % bound
    }

    fn flag(&mut self) -> bool {
        self.below(2) == 0
    }

    fn of<T: Clone>(&mut self, all: &[T]) -> T {
        all[usize::try_from(self.below(all.len() as u64)).unwrap()].clone()
    }

    fn some<T>(&mut self, make: impl FnOnce(&mut Self) -> T) -> Option<T> {
        self.flag().then(|| make(self))
    }

    fn list<T>(&mut self, mut make: impl FnMut(&mut Self) -> T) -> Vec<T> {
        (0..self.below(3)).map(|_| make(self)).collect()
    }

    fn small(&mut self) -> u32 {
        u32::try_from(self.below(1 << 32)).unwrap()
    }

    fn size(&mut self) -> usize {
        usize::try_from(self.below(1_000)).unwrap()
    }

    fn text(&mut self) -> Arc<str> {
        self.of(&["", "relay", "灯", "a\"b\\c\n", "\u{1F4A1}\0", "kind"]).into()
    }

    fn number(&mut self) -> f64 {
        let bits = f64::from_bits(self.bits());
        // What is not a number is none that equals itself.
        let bits = if bits.is_nan() { 0.1 + 0.2 } else { bits };
        self.of(&[0.0, -0.0, 21.0, 21.5, 1e300, f64::MIN_POSITIVE, f64::INFINITY, bits])
    }

    fn duration(&mut self) -> Duration {
        Duration::from_nanos(self.bits() >> self.below(64))
    }

    fn instant(&mut self) -> Instant {
        // Up to three years before and behind.
        let distance = Duration::from_nanos(self.bits() >> 7 >> self.below(57));
        if self.flag() { self.zero + distance } else { self.zero.checked_sub(distance).unwrap_or(self.zero) }
    }

    fn op(&mut self) -> OpId {
        OpId::new(&format!("{:012x}", self.bits() >> 16))
    }

    fn device(&mut self) -> DeviceId {
        DeviceId::new(self.of(&["lamp", "z_9-", "0"])).unwrap()
    }

    fn caller(&mut self) -> CallerId {
        let text = self.text();
        if self.flag() { CallerId::new(&text) } else { CallerId::shared(&text) }
    }

    fn value(&mut self) -> Value {
        match self.below(4) {
            0 => Value::Bool(self.flag()),
            1 => Value::Integer(self.of(&[i32::MIN, -1, 0, 1, i32::MAX])),
            2 => Value::Number(self.number()),
            _ => Value::Text(self.text()),
        }
    }

    fn evidence(&mut self) -> Evidence {
        self.of(Evidence::ALL)
    }

    fn wish(&mut self) -> Wish {
        let target = match self.below(3) {
            0 => Target::To(self.value()),
            1 => Target::By(self.number()),
            _ => Target::Toggle,
        };
        let (if_needed, valid_for) = (self.some(Self::duration), self.some(Self::duration));
        Wish { property: self.text(), target, if_needed, valid_for }
    }

    fn predicate(&mut self) -> Predicate {
        match self.below(7) {
            0 => Predicate::Equals(self.value()),
            1 => Predicate::Within { target: self.number(), abs: self.number() },
            2 => Predicate::OneOf(self.list(Self::value)),
            3 => Predicate::AtLeast(self.number()),
            4 => Predicate::AtMost(self.number()),
            5 => Predicate::ChangesBy(self.number()),
            _ => Predicate::Approaches { target: self.number(), by: self.number() },
        }
    }

    fn confirmation(&mut self) -> Confirmation {
        let press = self.some(|d| (d.device(), d.text()));
        Confirmation { how: self.some(|d| d.of(Confirm::ALL)), strange_role: self.flag(), press }
    }

    fn verify(&mut self) -> Verify {
        Verify {
            device: self.device(),
            property: self.text(),
            expect: self.list(|d| (d.some(Self::value), d.predicate())),
            within_ms: self.small(),
            sensitive: self.flag(),
        }
    }

    fn property(&mut self) -> Property {
        let choices = [Choice::Equals, Choice::Within, Choice::AtLeast, Choice::AtMost, Choice::Approaches];
        Property {
            name: self.text(),
            role: self.role(),
            kind: self.of(&[Kind::Bool, Kind::Integer, Kind::Number, Kind::Enum, Kind::Text, Kind::Colour]),
            unit: self.some(Self::text),
            min: self.some(Self::number),
            max: self.some(Self::number),
            step: self.some(Self::number),
            tolerance: self.some(Self::number),
            values: self.list(Self::text),
            class: self.of(&[Class::Momentary, Class::Held]),
            feedback: self.evidence(),
            expected_ms: self.small(),
            stable_ms: self.small(),
            min_interval_ms: self.small(),
            settable: self.flag(),
            repeatable: self.flag(),
            terms: Terms {
                predicate: self.some(|d| d.of(&choices)),
                required: self.some(Self::evidence),
                clamps: self.flag(),
                failsafe: self.some(|d| Failsafe { value: d.value(), after_ms: d.small() }),
                by_action: self.list(|d| (d.value(), d.text())),
                verify: self.some(Self::verify),
                accepted: self.flag(),
                confirmation: self.confirmation(),
                sensitive: self.flag(),
            },
        }
    }

    fn role(&mut self) -> Role {
        self.of(&[
            Role::Light,
            Role::Socket,
            Role::Lock,
            Role::Door,
            Role::Blind,
            Role::Valve,
            Role::Heater,
            Role::Fan,
            Role::Pump,
            Role::Sensor,
            Role::Other,
        ])
    }

    fn description(&mut self) -> Arc<Description> {
        Arc::new(Description {
            properties: self.list(Self::property),
            exclusive: self.list(|d| d.list(Self::text)),
            actions: self.list(|d| Action {
                name: d.text(),
                role: d.role(),
                feedback: d.evidence(),
                expected_ms: d.small(),
                repeatable: d.flag(),
                confirmation: d.confirmation(),
            }),
            labels: self.list(|d| (d.text(), d.text())),
            level: self.of(&[0, 1, 2, 3]),
        })
    }

    fn status(&mut self) -> Vec<Status> {
        self.list(|d| Status { property: d.text(), value: d.value(), evidence: d.evidence() })
    }

    fn cause(&mut self) -> Cause {
        self.of(&[
            Cause::Command,
            Cause::Local,
            Cause::Boot,
            Cause::Periodic,
            Cause::Query,
            Cause::Failsafe,
            Cause::Unknown,
        ])
    }

    fn report(&mut self) -> Report {
        let results = [
            ActionResult::Received,
            ActionResult::Executing,
            ActionResult::Working,
            ActionResult::Completed,
            ActionResult::Failed,
            ActionResult::Rejected,
            ActionResult::Unknown,
        ];
        let body = match self.below(3) {
            0 => Body::Action {
                op: self.op(),
                result: self.of(&results),
                reason: self.some(|d| d.of(Reason::ALL)),
                eta: self.some(Self::duration),
                clamped: self.flag(),
            },
            1 => Body::State { op: self.some(Self::op), cause: self.cause(), seen: self.list(|d| (d.text(), d.op())) },
            _ => Body::Heartbeat,
        };
        Report { boot: self.text(), seq: self.small(), retained: self.flag(), status: self.status(), body }
    }

    fn hears(&mut self) -> Hears {
        match self.below(3) {
            0 => Hears::Waits,
            1 => Hears::Told { outcome: self.of(Outcome::ALL), at: self.instant() },
            _ => Hears::Gone,
        }
    }

    fn settled(&mut self) -> Settled {
        Settled {
            op: self.op(),
            device: self.device(),
            property: self.text(),
            wish: self.some(Self::value),
            outcome: self.of(Outcome::ALL),
            stage: self.of(Stage::ALL),
            reason: self.some(|d| d.of(Reason::ALL)),
            found: self.some(|d| Reading {
                value: d.value(),
                evidence: d.evidence(),
                age: d.duration(),
                trust: d.of(Trust::ALL),
            }),
            confirmed_by: self.evidence(),
            attribution: self.of(Attribution::ALL),
            measured: self.some(|d| Measured {
                device: d.device(),
                property: d.text(),
                value: d.some(Self::value),
                agrees: d.flag(),
            }),
            eta: self.some(Self::duration),
            elapsed: self.duration(),
            stages: self.list(|d| (d.of(Stage::ALL), d.duration())),
            late_success: self.flag(),
            reverted: self.flag(),
            joined: self.some(Self::op),
            superseded_by: self.some(Self::value),
            limited: self.flag(),
            kept: self.flag(),
            recorded: self.flag(),
        }
    }

    fn left(&mut self) -> Left {
        Left { caller: self.caller(), hears: self.hears(), settled: self.settled() }
    }

    fn held(&mut self) -> Held {
        let before = self.flag().then(|| Box::new(self.held_alone()));
        Held { before, ..self.held_alone() }
    }

    fn waiter(&mut self) -> Waiter {
        Waiter {
            op: self.op(),
            caller: self.caller(),
            behind: self.duration(),
            expires_at: self.instant(),
            hears: self.hears(),
        }
    }

    fn held_alone(&mut self) -> Held {
        Held {
            value: self.value(),
            op: self.op(),
            since: self.instant(),
            valid_until: self.some(Self::instant),
            attempts: self.small(),
            sent: self.small(),
            next_at: self.instant(),
            met: self.flag(),
            came_true: self.flag(),
            before: None,
            stored: self.list(Self::waiter),
            overridden: self.flag(),
            blocked: self.flag(),
            reason: self.some(|d| d.of(Reason::ALL)),
        }
    }

    fn memory(&mut self) -> Memory {
        Memory {
            connection: self.some(Self::bits),
            session: self.some(Self::text),
            boot: self.some(Self::text),
            description: self.some(Self::description),
            last_heard: self.some(Self::instant),
            held: self.list(|d| (d.text(), d.held())).into_iter().collect(),
            unaccepted: self.list(Self::text).into_iter().collect(),
            in_flight: self.list(Self::left),
            stale: self.list(|d| (d.text(), (d.value(), d.evidence(), d.instant()))).into_iter().collect(),
            ended: self.list(|d| (d.instant(), d.left())),
        }
    }

    fn hello(&mut self) -> Hello {
        Hello {
            boot: self.text(),
            seq: self.small(),
            description: self.description(),
            status: self.status(),
            cause: self.cause(),
            seen: self.list(|d| (d.text(), d.op())),
        }
    }

    /// One of each kind of input.
    fn inputs(&mut self) -> Vec<Input> {
        let found = match self.below(3) {
            0 => Found::Value(self.value()),
            1 => Found::Offline,
            _ => Found::Silent,
        };
        vec![
            Input::Set { op: self.op(), caller: self.caller(), wish: self.wish(), answer_by: self.instant() },
            Input::Run {
                op: self.op(),
                caller: self.caller(),
                action: self.text(),
                args: self.list(|d| (d.text(), d.value())),
                answer_by: self.instant(),
            },
            Input::Query { op: self.op(), answer_by: self.instant() },
            Input::Cancel { op: self.op() },
            Input::Connected { connection: self.bits() },
            Input::Disconnected { connection: self.bits() },
            Input::Greeted { session: self.text(), hello: self.hello() },
            Input::Heard(self.report()),
            Input::Unreadable,
            Input::Written { op: self.op() },
            Input::NotWritten { op: self.op() },
            Input::Verified { question: self.op(), found },
            Input::BusDown,
            Input::BusUp,
            Input::Restored(self.memory()),
            Input::ShutDown,
            Input::Removed,
            Input::Tick,
        ]
    }

    fn settings(&mut self) -> Settings {
        Settings {
            started: self.instant(),
            answer_margin: self.duration(),
            broker: self.duration(),
            ack: self.duration(),
            start: self.duration(),
            report_margin: self.duration(),
            read_back: self.duration(),
            act_by_max: self.duration(),
            transit: self.duration(),
            driving_max: self.duration(),
            outbox: self.duration(),
            begin_min: self.duration(),
            wait_online: self.duration(),
            recently_seen: self.duration(),
            just_started: self.duration(),
            heartbeat: self.duration(),
            reconcile: self.duration(),
            watch: self.duration(),
            base_max_age: self.duration(),
            queued_max: self.size(),
            waiting_max: self.size(),
            joined_max: self.size(),
            queries_max: self.size(),
            records_max: self.size(),
        }
    }
}

/// The place of each kind of input in [`Dice::inputs`]: a new one does not compile until it is thrown there, too.
fn kind(input: &Input) -> usize {
    match input {
        Input::Set { .. } => 0,
        Input::Run { .. } => 1,
        Input::Query { .. } => 2,
        Input::Cancel { .. } => 3,
        Input::Connected { .. } => 4,
        Input::Disconnected { .. } => 5,
        Input::Greeted { .. } => 6,
        Input::Heard(_) => 7,
        Input::Unreadable => 8,
        Input::Written { .. } => 9,
        Input::NotWritten { .. } => 10,
        Input::Verified { .. } => 11,
        Input::BusDown => 12,
        Input::BusUp => 13,
        Input::Restored(_) => 14,
        Input::ShutDown => 15,
        Input::Removed => 16,
        Input::Tick => 17,
    }
}

#[test]
fn each_kind_of_input_is_thrown() {
    let thrown: BTreeSet<usize> = Dice::new(1).inputs().iter().map(kind).collect();
    assert_eq!(thrown, (0..18).collect());
}

proptest! {
    #[test]
    fn each_input_comes_back_as_it_was(seed in any::<u64>()) {
        let mut dice = Dice::new(seed);
        // This process's clock may lie anywhere: only the zero counts.
        let zero = Zero::new(dice.zero);
        for input in dice.inputs() {
            let (at, device, crashed) = (dice.instant(), dice.device(), dice.flag());
            let line = moment(zero, at, &device, &input, &[Effect::StaleHello { of_seq: 7 }], crashed);
            prop_assert!(!line.contains('\n'));
            let decided = vec![json!({"kind": "stale_hello", "of_seq": 7})];
            let written = Line::Moment(Box::new(Moment { device, at, input, decided, crashed }));
            prop_assert_eq!(read(&line, zero), Ok(written), "{}", line);
        }
    }

    #[test]
    fn a_twins_beginning_comes_back_as_it_was(seed in any::<u64>()) {
        let mut dice = Dice::new(seed);
        let (zero, device, at, settings) = (Zero::new(dice.zero), dice.device(), dice.instant(), dice.settings());
        let line = begins(zero, at, &device, &settings);
        prop_assert_eq!(read(&line, zero), Ok(Line::Begins { device, at, settings: Box::new(settings) }));
    }

    #[test]
    fn a_number_comes_back_bit_for_bit(number in any::<f64>()) {
        let zero = Zero::new(Instant::now());
        let text = plain::Write::write(&Value::Number(number), zero).to_string();
        let back: Value = plain::Read::read(&serde_json::from_str(&text).unwrap(), zero).unwrap();
        let Value::Number(back) = back else { panic!("{text}") };
        prop_assert!(back.to_bits() == number.to_bits() || back.is_nan() && number.is_nan(), "{text}");
    }

    #[test]
    fn no_line_makes_the_reader_panic(line in "\\PC{0,80}", at in 0_usize..200, seed in any::<u64>()) {
        let zero = Zero::new(Instant::now());
        let _whatever_it_is = read(&line, zero);
        let mut dice = Dice::new(seed);
        let inputs = dice.inputs();
        let input = dice.of(&inputs);
        let whole = moment(zero, dice.zero, &dice.device(), &input, &[], false);
        let cut: String = whole.chars().take(at).collect();
        prop_assert!(cut == whole || read(&cut, zero).is_err(), "{}", cut);
    }
}

#[test]
fn what_holds_nothing_comes_back_as_it_was() {
    let at = Instant::now();
    let (zero, device) = (Zero::new(at), DeviceId::new("lamp").unwrap());
    let input = Input::Restored(Memory::default());
    let line = moment(zero, at, &device, &input, &[], false);
    let written = Line::Moment(Box::new(Moment { device, at, input, decided: Vec::new(), crashed: false }));
    assert_eq!(read(&line, zero), Ok(written), "{line}");
}

/// A history of inputs thrown at a twin, as a recording. One that it fails over is the last.
fn history(dice: &mut Dice) -> Vec<String> {
    let (zero, lamp) = (Zero::new(dice.zero), DeviceId::new("lamp").unwrap());
    let settings = Settings::new(dice.zero);
    let mut twin = Twin::new(lamp.clone(), settings.clone());
    let mut lines =
        vec![head(&Head { hub: "thrown".to_owned(), unix_ms: 0 }), begins(zero, dice.zero, &lamp, &settings)];
    let mut now = dice.zero;
    for _ in 0..dice.below(40) {
        now += Duration::from_millis(dice.below(3_000));
        let inputs = dice.inputs();
        let input = dice.of(&inputs);
        let stepped = catch_unwind(AssertUnwindSafe(|| {
            twin.apply(now, input.clone());
            std::iter::from_fn(|| twin.poll()).collect::<Vec<Effect>>()
        }));
        let crashed = stepped.is_err();
        lines.push(moment(zero, now, &lamp, &input, &stepped.unwrap_or_default(), crashed));
        if crashed {
            break;
        }
    }
    lines
}

fn replayed(lines: &[String]) -> (Vec<Result<Told, replay::Error>>, replay::Summary) {
    let mut replay = Replay::new("r", Cursor::new(lines.join("\n") + "\n"), None);
    let told = replay.by_ref().collect();
    (told, replay.summary().clone())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn any_history_is_decided_again_as_it_was(seed in any::<u64>()) {
        let lines = history(&mut Dice::new(seed));
        let (told, summary) = replayed(&lines);
        prop_assert!(summary.is_whole() && summary.inputs + 2 == lines.len() as u64, "{:?}", told);
        let fails_only_now = |told: &Result<Told, replay::Error>| match told {
            Ok(Told::Step(step)) => step.compared == Compared::Crashed { again: false },
            Ok(_) => false,
            Err(_) => true,
        };
        prop_assert!(!told.iter().any(fails_only_now), "{:?}", told);
    }

    #[test]
    fn whatever_somebody_does_to_a_recording_it_is_read_or_refused(seed in any::<u64>()) {
        let mut dice = Dice::new(seed);
        let mut lines = history(&mut dice);
        for _ in 0..1 + dice.below(4) {
            let at = usize::try_from(dice.below(lines.len() as u64)).unwrap();
            let place = usize::try_from(dice.below(lines[at].len() as u64 + 1)).unwrap();
            let place = (place..=lines[at].len()).find(|place| lines[at].is_char_boundary(*place)).unwrap();
            let with = dice.of(&["9", "-", "\"", "}", "{", "0", "null", "18446744073709551615", "tick", ""]);
            match dice.below(3) {
                0 => lines[at].insert_str(place, with),
                1 => lines[at].truncate(place),
                _ => drop(lines.remove(at)),
            }
            if lines.is_empty() {
                break;
            }
        }
        let _read_or_refused = replayed(&lines);
    }
}

#[test]
fn what_is_wrong_with_a_line_is_named_with_its_place() {
    let zero = Zero::new(Instant::now());
    let error = |line: &str| read(line, zero).unwrap_err().to_string();
    for (line, wrong) in [
        ("{\"at\": 1", "it is no JSON"),
        ("[]", "it is no line of a recording"),
        ("{\"device\": \"lamp\", \"at\": 1}", "it is no line of a recording"),
        (
            r#"{"device": "Lamp", "at": 1, "input": {"kind": "tick"}, "decided": []}"#,
            "device: \"Lamp\" is not a device's id",
        ),
        (
            r#"{"device": "lamp", "input": {"kind": "tick"}, "decided": []}"#,
            "at: null is not a time in nanoseconds after the beginning",
        ),
        (r#"{"device": "lamp", "at": 1, "input": {"kind": "tick"}}"#, "decided: null is not a list"),
        (
            r#"{"device": "lamp", "at": 1, "input": {"kind": "fly"}, "decided": []}"#,
            r#"input: {"kind":"fly"} is not a Input of this version"#,
        ),
        (
            r#"{"device": "lamp", "at": 1, "input": {"kind": "heard", "report": {"boot": "b", "seq": -1}}, "decided": []}"#,
            "input.report.seq: -1 is not a whole number of 32 bits",
        ),
        (
            r#"{"truetwin_recording": 99, "hub": "9.9.9"}"#,
            "it begins a recording of version 99, this program reads 1; use the truetwin that wrote it",
        ),
    ] {
        assert!(error(line).contains(wrong), "{line}: {}", error(line));
    }
}

#[test]
fn the_other_lines_come_back_as_they_were() {
    let (zero, lamp) = (Zero::new(Instant::now()), DeviceId::new("lamp").unwrap());
    let first = Head { hub: "0.1.0".to_owned(), unix_ms: 17 };
    assert_eq!(read(&head(&first), zero), Ok(Line::Head(first)));
    assert_eq!(read(&gap(&lamp, 3), zero), Ok(Line::Gap { device: lamp.clone(), missing: 3 }));
    let why = "code is sensitive".to_owned();
    assert_eq!(read(&left_out(&lamp, &why), zero), Ok(Line::LeftOut { device: lamp, why: why.clone() }));
    assert_eq!(read(&end(&why, 1, 2), zero), Ok(Line::End { why, inputs: 1, missing: 2 }));
}

#[test]
fn what_the_end_says_beside_what_is_there_is_told_also_for_lines_of_which_no_gap_tells() {
    let mut lines = history(&mut Dice::new(7));
    let (inputs, lamp) =
        (lines.iter().filter(|line| line.contains("\"decided\"")).count() as u64, DeviceId::new("lamp").unwrap());
    let ended = |lines: &[String], inputs, missing| {
        let lines = [lines, &[end("the hub stopped", inputs, missing)]].concat();
        let (_, summary) = replayed(&lines);
        (summary.is_whole(), summary.at_odds.is_some(), summary.missing)
    };
    assert_eq!(ended(&lines, inputs, 0), (true, false, 0));
    assert_eq!(ended(&lines, inputs + 1, 0), (false, true, 0));
    assert_eq!(ended(&lines, inputs - 1, 0), (false, true, 0));
    assert_eq!(ended(&lines, inputs, 3), (false, false, 3), "missing to the end");
    lines.push(gap(&lamp, 2));
    assert_eq!(ended(&lines, inputs, 2), (false, false, 2));
    assert_eq!(ended(&lines, inputs, 3), (false, false, 3));
    assert_eq!(ended(&lines, inputs, 1), (false, true, 2));
}
