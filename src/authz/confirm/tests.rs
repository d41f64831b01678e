use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use proptest::{prelude::*, sample::select};

use super::*;
use crate::property::{DeviceId, PropertyName, Value};

const ANN: &str = "http:ann:1";
const BEN: &str = "http:ben:2";

fn thing(device: &str) -> (DeviceId, PropertyName) {
    (DeviceId::new(device).expect("an id"), "locked".into())
}

fn spoken() -> Demand {
    Demand { spoken: true, things: vec![thing("front-door")], ..Demand::default() }
}

fn secret() -> Secret {
    Secret::new("4711", [7; 16]).expect("it is long enough")
}

/// A clock that the test moves.
fn at(start: Instant, ms: u64) -> Instant {
    start + Duration::from_millis(ms)
}

/// What a caller does.
#[derive(Clone, Debug)]
enum Step {
    Put { who: &'static str },
    Say { who: &'static str, whose: &'static str },
    SayWrong { who: &'static str },
    Wait(u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let who = || select(vec![ANN, BEN]);
    let step = prop_oneof![
        who().prop_map(|who| Step::Put { who }),
        (who(), who()).prop_map(|(who, whose)| Step::Say { who, whose }),
        who().prop_map(|who| Step::SayWrong { who }),
        select(vec![0, 500, 2_999, 3_000, 20_000, 60_001]).prop_map(Step::Wait),
    ];
    prop::collection::vec(step, 1..40)
}

proptest! {
    #[test]
    fn s7_2_no_other_caller_and_no_early_late_or_second_code_ever_releases_a_command(steps in steps()) {
        let start = Instant::now();
        let mut questions: Questions<u32> = Questions::new(Limits::default());
        // What each caller's latest question is: its command, its code, when it was put, how often it was answered wrongly.
        let mut put: std::collections::HashMap<&str, (u32, String, u64, u32)> = Default::default();
        let (mut ms, mut serial) = (0, 0);
        for step in steps {
            let now = at(start, ms);
            match step {
                Step::Wait(more) => ms += more,
                Step::Put { who } => {
                    serial += 1;
                    let code = format!("c{serial}");
                    questions.put(who, serial, Demand::default(), &code, now);
                    put.insert(who, (serial, code, ms, 0));
                }
                Step::Say { who, whose } => {
                    let code = put.get(whose).map_or_else(|| "c0".to_owned(), |(_, code, ..)| code.clone());
                    let own = put.get(who).cloned();
                    let told = questions.confirm(who, &code, None, true, false, now);
                    match own {
                        None => prop_assert_eq!(told, Err(Denied::Wrong { left: 0 })),
                        Some((command, own, since, wrong)) => {
                            let age = ms - since;
                            let expected = match (age, code == own) {
                                (60_001.., _) => Err(Denied::Expired),
                                (..3_000, _) => Err(Denied::TooEarly),
                                (_, true) => Ok(Confirmed(command)),
                                (_, false) => Err(Denied::Wrong { left: 2 - wrong }),
                            };
                            prop_assert_eq!(&told, &expected);
                            match told {
                                Err(Denied::Wrong { left: 1.. }) => {
                                    put.insert(who, (command, own, since, wrong + 1));
                                }
                                _ => drop(put.remove(who)),
                            }
                        }
                    }
                }
                Step::SayWrong { who } => {
                    let told = questions.confirm(who, "nonsense", None, true, false, now);
                    prop_assert!(told.is_err());
                    match told {
                        Err(Denied::Wrong { left: 1.. }) => put.entry(who).and_modify(|own| own.3 += 1),
                        _ => { put.remove(who); continue }
                    };
                }
            }
        }
    }
}

#[test]
fn s7_2_a_new_question_takes_the_place_of_the_old_one() {
    let start = Instant::now();
    let mut questions = Questions::new(Limits::default());
    questions.put(ANN, "garage", Demand::default(), "aa", start);
    questions.put(ANN, "door", Demand::default(), "bb", start);
    let later = at(start, 5_000);
    assert_eq!(questions.confirm(ANN, "aa", None, true, false, later), Err(Denied::Wrong { left: 2 }));
    assert_eq!(questions.confirm(ANN, "BB", None, true, false, later), Ok(Confirmed("door")));
    assert_eq!(questions.confirm(ANN, "bb", None, true, false, later), Err(Denied::Wrong { left: 0 }), "once");
}

#[test]
fn s7_2_a_press_is_waited_for_and_the_code_alone_releases_nothing() {
    let start = Instant::now();
    let mut questions = Questions::new(Limits::default());
    let demand = Demand { presses: vec![thing("bell")], ..Demand::default() };
    questions.put(ANN, (), demand, "aa", start);
    assert_eq!(questions.confirm(ANN, "aa", None, false, false, at(start, 4_000)), Err(Denied::NotPressed));
    assert_eq!(questions.confirm(ANN, "aa", None, true, false, at(start, 5_000)), Ok(Confirmed(())));
}

#[test]
fn s7_2_a_press_is_by_hand_and_newer_than_the_question() {
    let (bell, start) = (DeviceId::new("bell").expect("an id"), Instant::now());
    let presses = Presses::of([(bell.clone(), "presses".into()), (bell.clone(), "down".into())]);
    let report =
        |value, by_hand, ms| presses.reported(&bell, "presses", &Value::Integer(value), by_hand, at(start, ms));
    let down = |value, by_hand, ms| presses.reported(&bell, "down", &Value::Bool(value), by_hand, at(start, ms));
    let pressed = |property, ms| presses.pressed_since(&bell, property, at(start, ms));
    report(7, true, 10);
    assert!(!pressed("presses", 0), "what it was at before is not known");
    report(7, true, 20);
    report(8, false, 30);
    assert!(!pressed("presses", 0), "told again, and by a command");
    report(9, true, 40);
    assert!(pressed("presses", 39) && !pressed("presses", 40));
    down(false, false, 50);
    down(true, true, 60);
    down(false, true, 70);
    assert!(pressed("down", 50) && !pressed("down", 60), "letting go is no press");
    presses.reported(&bell, "other", &Value::Bool(true), true, start);
    assert!(!pressed("other", 0));
}

#[test]
fn s7_2_a_report_that_comes_again_or_from_before_is_no_news_of_a_press() {
    let (bell, boot) = (DeviceId::new("bell").expect("an id"), Arc::<str>::from("b1"));
    let presses = Presses::of([(bell.clone(), "down".into())]);
    let news = |boot, seq| presses.is_news(&bell, boot, seq);
    assert!(!news("b1", 1), "it has not greeted");
    presses.greeted(&bell, &boot, 2);
    assert!(!news("b1", 2) && news("b1", 3) && news("b1", 5), "newer than its greeting, and than one another");
    assert!(!news("b1", 5) && !news("b1", 4) && !news("b0", 9), "told again, overtaken, of another run");
    presses.reconnected(&bell);
    assert!(!news("b1", 6), "what it still had to tell when it came back");
    presses.greeted(&bell, &boot, 2);
    assert!(!news("b1", 6), "nor after a greeting of before");
    presses.greeted(&bell, &boot, 7);
    assert!(!news("b1", 6) && news("b1", 8));
    presses.greeted(&bell, &"b2".into(), 1);
    assert!(news("b2", 2) && !news("b1", 9));
}

#[test]
fn s7_2_a_spoken_code_is_heard_however_it_is_written() {
    let secret = Secret::new("open 4711", [1; 16]).expect("long enough");
    for said in [
        "open 4711",
        "Open4711",
        " OPEN, 47 11. ",
        "open 四七幺一",
        "ｏｐｅｎ４７１１".replace("ｏｐｅｎ", "open").as_str(),
    ] {
        assert!(secret.is(said), "{said}");
    }
    assert!(!secret.is("4711") && !secret.is(""));
    assert!(Secret::new("12 3", [0; 16]).is_err() && Secret::new(&"9".repeat(80), [0; 16]).is_err());
    assert!(!format!("{secret:?}").contains("4711"));
}

#[test]
fn s7_2_wrong_spoken_codes_lock_the_thing_out_whoever_guesses() {
    let (start, secret) = (Instant::now(), secret());
    let mut questions = Questions::new(Limits::default());
    let mut ms = 0;
    let mut guess = |who: &str, said: &str, ms: u64| {
        questions.put(who, (), spoken(), "", at(start, ms));
        questions.confirm(who, said, Some(&secret), true, false, at(start, ms + 3_000))
    };
    for n in 0..5 {
        let who = format!("caller {n}");
        assert!(matches!(guess(&who, "0000", ms), Err(Denied::Wrong { .. })), "{n}");
        ms += 3_000;
    }
    assert!(matches!(guess("somebody new", "4711", ms), Err(Denied::LockedOut { .. })), "even the right one");
    ms += 301_000;
    assert_eq!(guess("somebody new", "4711", ms), Ok(Confirmed(())));
}

#[test]
fn s7_2_callers_that_cannot_be_told_apart_say_the_code_of_their_question_as_well() {
    let (start, secret) = (Instant::now(), secret());
    let mut questions = Questions::new(Limits::default());
    questions.put("shared", "hers", spoken(), "k1", start);
    questions.put("shared", "his", spoken(), "k2", start);
    let now = at(start, 4_000);
    let mut say = |said| questions.confirm("shared", said, Some(&secret), true, true, now);
    assert_eq!(say("4711"), Err(Denied::Wrong { left: 2 }));
    assert_eq!(say("k1 4711"), Err(Denied::Wrong { left: 1 }));
    assert_eq!(say("k2 4711"), Ok(Confirmed("his")));
}

#[test]
fn s7_2_a_form_is_for_its_own_command_and_in_time() {
    let start = Instant::now();
    let mut questions = Questions::new(Limits::default());
    let late = at(start, 60_001);
    questions.put("form 1", "garage", Demand::default(), "", start);
    assert_eq!(questions.agreed("form 1", &"door", start), Err(Denied::Wrong { left: 0 }));
    assert_eq!(questions.agreed("form 1", &"garage", start), Err(Denied::Wrong { left: 0 }), "it is gone");
    questions.put("form 2", "garage", Demand::default(), "", start);
    assert_eq!(questions.agreed("form 2", &"garage", late), Err(Denied::Expired));
    questions.put("form 3", "garage", Demand::default(), "", start);
    assert_eq!(questions.agreed("form 3", &"garage", start), Ok((Confirmed("garage"), start)));
}

#[test]
fn s7_2_open_questions_are_bounded_and_the_oldest_is_forgotten() {
    let start = Instant::now();
    let mut questions = Questions::new(Limits::default());
    for n in 0..=CALLERS_MAX {
        questions.put(&format!("caller {n}"), n, Demand::default(), "aa", start);
    }
    let mut say = |who: &str| questions.confirm(who, "aa", None, true, false, at(start, 4_000));
    assert_eq!(say("caller 0"), Err(Denied::Wrong { left: 0 }));
    assert_eq!(say("caller 1"), Ok(Confirmed(1)));
}

#[test]
fn s7_2_a_yes_to_less_is_no_yes_to_more() {
    let thing = |name: &str| (DeviceId::new(name).expect("an id"), "p".into());
    let plain = Demand { asked: vec![thing("lock")], ..Demand::default() };
    let spoken = Demand { spoken: true, ..plain.clone() };
    let pressed = Demand { presses: vec![thing("bell")], ..plain.clone() };
    let wider = Demand { asked: vec![thing("lock"), thing("gate")], ..plain.clone() };
    let nothing = Demand::default();
    for (agreed, needed, covers) in [
        (&plain, &plain, true),
        (&plain, &nothing, true),
        (&plain, &spoken, false),
        (&plain, &pressed, false),
        (&plain, &wider, false),
        (&spoken, &plain, true),
        (&pressed, &spoken, false),
        (&wider, &plain, true),
        (&nothing, &plain, false),
    ] {
        assert_eq!(agreed.covers(needed), covers, "{agreed:?} {needed:?}");
    }
}
