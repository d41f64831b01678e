//! Actions, values that an action brings about, and devices that cannot answer (semantics 3.5, 4.9).

use truetwin::{
    property::{Action, Evidence, Property, Role, Terms, Value},
    twin::{
        input::{ActionResult, Cause, Command, Input},
        wish::{Arguments, CallerId},
        words::{Attribution, Outcome, Reason, Refusal, Stage},
    },
};

use crate::bench::{Bench, OFF, ON, op, relay};

fn press() -> Action {
    Action {
        name: "press".into(),
        role: Role::Other,
        feedback: Evidence::Firmware,
        expected_ms: 500,
        repeatable: true,
        confirmation: Default::default(),
    }
}

fn with(action: Action) -> Bench {
    let mut bench = Bench::unknown(vec![relay()]);
    bench.actions = vec![action];
    bench.connect(0);
    bench.hello(0, OFF, None);
    bench
}

fn run(bench: &mut Bench, ms: u64, id: &str, action: &str, args: Arguments, answer_by: u64) {
    let answer_by = bench.time(answer_by);
    let (caller, action) = (CallerId::new("me"), action.into());
    bench.at(ms, Input::Run { op: op(id), caller, action, args, answer_by });
}

fn runs(bench: &Bench) -> Vec<String> {
    let action =
        |c: Command| if let Command::Run { op, action, .. } = c { Some(format!("{op} {action}")) } else { None };
    bench.commands().into_iter().filter_map(action).collect()
}

#[test]
fn s3_5_an_action_that_the_device_reports_as_completed_is_done() {
    let mut bench = with(press());
    let args = vec![("times".into(), Value::Integer(2))];
    run(&mut bench, 100, "a", "press", args.clone(), 8_000);
    let sent =
        bench.commands().into_iter().find_map(|c| if let Command::Run { args, .. } = c { Some(args) } else { None });
    assert_eq!(sent, Some(args));
    bench.begin(110, "a");
    bench.says(600, "a", ActionResult::Completed);
    assert_eq!(bench.outcome("a"), (Outcome::Converged, Stage::Settled, None));
    let settled = bench.settled("a").1;
    assert_eq!((settled.wish, settled.found, settled.confirmed_by), (None, None, Evidence::Firmware));
    assert_eq!(bench.questions(), 0, "there is no value to ask for");
}

#[test]
fn s3_5_an_action_that_is_not_reported_as_completed_was_sent_and_no_more_is_known() {
    let mut bench = with(press());
    run(&mut bench, 100, "a", "press", Vec::new(), 8_000);
    bench.begin(110, "a");
    bench.until(20_000);
    let ended = (Outcome::SentUnverified, Stage::WaitingDeviceReport, Some(Reason::Timeout));
    assert_eq!(bench.outcome("a"), ended);
    bench.says(21_000, "a", ActionResult::Completed);
    assert!(bench.check(21_100, "a").late_success, "its word is all there is, also later");
    // One that never began is told apart.
    run(&mut bench, 30_000, "b", "press", Vec::new(), 38_000);
    bench.written(30_010, "b");
    bench.until(60_000);
    assert_eq!(bench.outcome("b").0, Outcome::TimedOut);
}

#[test]
fn s3_5_what_cannot_answer_ends_when_the_telegram_has_left() {
    let mut bench = with(Action { feedback: Evidence::None, ..press() });
    run(&mut bench, 100, "a", "press", Vec::new(), 8_000);
    bench.begin(110, "a");
    assert_eq!(bench.outcome("a"), (Outcome::SentUnverified, Stage::WaitingDeviceReport, None));
}

#[test]
fn s3_5_no_word_of_a_device_that_cannot_know_is_a_success() {
    for (result, value) in [(ActionResult::Completed, ON), (ActionResult::Completed, OFF)] {
        let mut bench = Bench::online(Property { feedback: Evidence::None, stable_ms: 0, ..relay() }, OFF);
        bench.set(100, "a", ON, 8_000);
        bench.written(110, "a");
        let status = vec![bench.status(value)];
        let report = bench.action("a", result, status, None);
        bench.at(200, Input::Heard(report));
        assert_eq!(bench.outcome("a").0, Outcome::SentUnverified);
        bench.tells(300, ON, Cause::Periodic, Some("a"));
        assert!(!bench.check(400, "a").late_success, "nor later");
    }
}

#[test]
fn s3_5_an_unknown_action_is_refused_with_those_that_there_are() {
    let mut bench = with(press());
    run(&mut bench, 100, "a", "reboot", Vec::new(), 8_000);
    assert!(matches!(bench.refusal("a").1, Refusal::UnknownProperty { known, .. } if known == ["press".into()]));
    let many = (0..9).map(|n| (format!("p{n}").into(), Value::Integer(n))).collect();
    run(&mut bench, 100, "b", "press", many, 8_000);
    assert!(matches!(bench.refusal("b").1, Refusal::InvalidArgument { .. }));
    assert!(runs(&bench).is_empty());
}

#[test]
fn s4_3_actions_never_join_and_wait_for_each_other() {
    let mut bench = with(press());
    run(&mut bench, 100, "a", "press", Vec::new(), 8_000);
    run(&mut bench, 100, "b", "press", Vec::new(), 8_000);
    assert_eq!(runs(&bench), ["a press"]);
    bench.begin(110, "a");
    bench.says(600, "a", ActionResult::Completed);
    assert_eq!(runs(&bench), ["a press", "b press"]);
}

#[test]
fn s4_9_an_action_that_must_not_be_left_half_way_needs_the_time() {
    for unsafe_one in [Action { repeatable: false, ..press() }, Action { role: Role::Door, ..press() }] {
        let mut bench = with(Action { expected_ms: 3_000, ..unsafe_one });
        run(&mut bench, 100, "a", "press", Vec::new(), 2_000);
        assert!(matches!(bench.refusal("a").1, Refusal::DeadlineTooShort { .. }));
        assert!(runs(&bench).is_empty());
    }
    let mut bench = with(Action { expected_ms: 3_000, ..press() });
    run(&mut bench, 100, "a", "press", Vec::new(), 2_000);
    assert_eq!(runs(&bench), ["a press"]);
}

#[test]
fn s5_3_an_action_that_must_not_be_repeated_runs_at_most_once() {
    for (boot, ends) in [("boot1", Outcome::TimedOut), ("boot2", Outcome::Interrupted)] {
        let mut bench = with(Action { repeatable: false, ..press() });
        run(&mut bench, 100, "a", "press", Vec::new(), 8_000);
        bench.written(110, "a");
        if boot == "boot2" {
            bench.reboot(boot);
        }
        bench.connect(200);
        bench.hello(210, OFF, None);
        bench.until(20_000);
        assert_eq!(runs(&bench), ["a press"]);
        assert_eq!(bench.outcome("a").0, ends);
    }
    let mut bench = with(press());
    run(&mut bench, 100, "a", "press", Vec::new(), 8_000);
    bench.written(110, "a");
    bench.connect(200);
    bench.hello(210, OFF, None);
    assert_eq!(runs(&bench), ["a press", "a press"], "one that may be is sent again");
}

#[test]
fn s2_7_an_action_that_vanished_ends_as_changed() {
    let mut bench = with(press());
    run(&mut bench, 100, "a", "press", Vec::new(), 8_000);
    bench.begin(110, "a");
    bench.actions.clear();
    bench.connect(200);
    bench.hello(210, OFF, None);
    let ended = (Outcome::Interrupted, Stage::WaitingDeviceReport, Some(Reason::PropertyChanged));
    assert_eq!(bench.outcome("a"), ended);
}

/// A garage door: the drive takes a pulse, the contact reads.
fn garage() -> Bench {
    let terms = Terms { by_action: vec![(ON, "pulse".into()), (OFF, "pulse".into())], ..Terms::default() };
    let door = Property { name: "door".into(), role: Role::Door, expected_ms: 4_000, stable_ms: 0, terms, ..relay() };
    let mut bench = Bench::unknown(vec![door]);
    bench.actions = vec![Action { name: "pulse".into(), role: Role::Door, repeatable: false, ..press() }];
    bench.connect(0);
    bench.hello(0, OFF, None);
    bench
}

#[test]
fn s3_5_a_value_by_an_action_converges_by_the_contact() {
    let mut bench = garage();
    bench.set(100, "a", ON, 30_000);
    assert!(runs(&bench).is_empty(), "what a pulse does depends on where the door is: that is asked first");
    bench.answers(110, OFF, None);
    assert_eq!(runs(&bench), ["a pulse"]);
    bench.begin(120, "a");
    bench.says(600, "a", ActionResult::Completed);
    assert!(bench.replies("a").is_empty(), "the drive had its pulse, the door is on its way");
    bench.tells(1_000, OFF, Cause::Periodic, None);
    assert!(bench.replies("a").is_empty(), "and not there yet");
    bench.tells(4_000, ON, Cause::Local, None);
    bench.answers(4_010, ON, None);
    assert_eq!(bench.outcome("a"), (Outcome::Converged, Stage::Settled, None));
    let settled = bench.settled("a").1;
    assert_eq!((settled.attribution, settled.confirmed_by), (Attribution::Inferred, Evidence::Pin));
}

#[test]
fn s3_5_a_door_that_is_open_gets_no_pulse_to_open() {
    let mut bench = garage();
    bench.set(100, "a", ON, 30_000);
    bench.answers(110, ON, None);
    assert_eq!(bench.outcome("a").0, Outcome::Already);
    assert!(runs(&bench).is_empty());
}

#[test]
fn s3_5_a_door_of_which_nobody_knows_where_it_is_gets_no_pulse() {
    let mut bench = garage();
    bench.set(100, "a", ON, 30_000);
    bench.until(20_000);
    assert!(matches!(bench.refusal("a").1, Refusal::StateUnknown { .. }));
    assert!(runs(&bench).is_empty());
}

#[test]
fn s3_5_a_door_that_does_not_arrive_is_contradicted_and_one_that_nobody_sees_is_unknown() {
    let mut bench = garage();
    bench.set(100, "a", ON, 30_000);
    bench.answers(110, OFF, None);
    bench.begin(120, "a");
    bench.says(600, "a", ActionResult::Completed);
    bench.answers(3_700, OFF, None);
    assert!(bench.replies("a").is_empty(), "it has its time");
    bench.until(30_000);
    let ended = (Outcome::Contradicted, Stage::WaitingReadBack, Some(Reason::ReadBackDiffers));
    assert_eq!(bench.outcome("a"), ended);
    let mut bench = garage();
    bench.set(100, "a", ON, 30_000);
    bench.answers(110, OFF, None);
    bench.begin(120, "a");
    bench.until(30_000);
    assert_eq!(bench.outcome("a"), (Outcome::TimedOut, Stage::WaitingDeviceReport, Some(Reason::Timeout)));
}

#[test]
fn s3_5_a_pulse_is_never_sent_twice() {
    let mut bench = garage();
    bench.set(100, "a", ON, 30_000);
    bench.answers(110, OFF, None);
    bench.written(120, "a");
    bench.reboot("boot2");
    bench.connect(200);
    bench.hello(210, OFF, None);
    assert_eq!(bench.outcome("a").0, Outcome::Interrupted);
    assert_eq!(runs(&bench), ["a pulse"]);
}

#[test]
fn fault_no_report_path_at_all_infrared() {
    let mut bench = Bench::unknown(vec![Property { feedback: Evidence::None, ..relay() }]);
    bench.connect(0);
    bench.hello_of(0, Vec::new(), Cause::Boot, None);
    bench.set(100, "a", ON, 8_000);
    bench.begin(110, "a");
    assert_eq!(bench.outcome("a"), (Outcome::SentUnverified, Stage::WaitingDeviceReport, None));
    let settled = bench.settled("a").1;
    assert_eq!(
        (settled.found, settled.confirmed_by),
        (None, Evidence::None),
        "the state is unknown, and said to be so"
    );
}
