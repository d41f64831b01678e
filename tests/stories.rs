//! What people do to one house: several callers, slow things, things that come and go. Through real MCP and real MQTT, on
//! simulated devices whose own movement is the judge.
#![allow(clippy::unwrap_used, reason = "a test that fails here says where")]

mod house;

use std::time::Duration;

use house::{Caller, House, Member, break_it, until};
use serde_json::{Value as Json, json};
use truetwin::{
    sim::{Fault, Happened, Kind},
    twin::words::Presence,
};

const LAMP: Member = Member::new("lamp", Kind::Socket);

fn outcome(answer: &Json) -> &str {
    answer["outcome"].as_str().unwrap_or("none")
}

/// A level that a device is to be set to.
async fn level(caller: &Caller, device: &str, property: &str, how: &str, level: f64) -> Json {
    let wish = json!({"device": device, "property": property, "level": level, "how": how});
    caller.call("set_device_level", wish).await
}

/// Waits until an operation is under way on a device.
async fn under_way(house: &House, device: &str) {
    let bob = house.caller().await;
    until("an operation is under way", async || {
        let state = bob.call("get_device_state", json!({"device": device, "fresh": "no"})).await;
        state["moving"].is_array().then_some(())
    })
    .await;
}

#[tokio::test]
async fn s4_3_two_callers_with_one_wish_share_its_operation_and_the_relay_moves_once() {
    let house = House::build("", &[LAMP]).await;
    let (ann, bob) = (house.caller().await, house.caller().await);
    break_it(&house, "lamp", Fault::Slow);
    let (first, second) = tokio::join!(ann.switch("lamp", "on"), bob.switch("lamp", "on"));
    assert_eq!((outcome(&first), outcome(&second)), ("converged", "converged"), "{first} {second}");
    assert_eq!(house.truth("lamp"), (1, true));
    for (caller, answer) in [(&ann, &first), (&bob, &second)] {
        assert_eq!(outcome(&caller.check(&answer["operation"]).await), "converged");
    }
    house.take_down().await;
}

#[tokio::test]
async fn s4_4_the_later_of_two_opposite_wishes_counts_and_the_earlier_hears_so() {
    let house = House::build("", &[LAMP]).await;
    let (ann, bob) = (house.caller().await, house.caller().await);
    break_it(&house, "lamp", Fault::Slow);
    let second = async {
        under_way(&house, "lamp").await;
        bob.switch("lamp", "off").await
    };
    let (first, second) = tokio::join!(ann.switch("lamp", "on"), second);
    assert_eq!(first["success"], json!(outcome(&first) == "converged"));
    assert!(matches!(outcome(&first), "superseded" | "converged"), "{first}");
    assert_eq!(outcome(&second), "converged", "{second}");
    assert!(!house.truth("lamp").1, "the later wish is what is so");
    house.take_down().await;
}

#[tokio::test]
async fn s4_4_ten_alternating_wishes_move_the_relay_no_faster_than_it_may_and_each_is_answered() {
    let house = House::build("", &[LAMP]).await;
    let mut callers = Vec::new();
    for _ in 0..10 {
        callers.push(house.caller().await);
    }
    let began = std::time::Instant::now();
    let wishes = callers.iter().enumerate().map(|(at, caller)| {
        let to = if at % 2 == 0 { "on" } else { "off" };
        async move { (to, caller.switch("lamp", to).await) }
    });
    let mut answers = Vec::new();
    for wish in wishes {
        // Side by side: each is sent when the one before it is on its way.
        answers.push(wish);
    }
    let answers = join_all(answers).await;
    let took = began.elapsed();
    let (moves, on) = house.truth("lamp");
    let allowed = 1 + took.as_millis() / 500;
    assert!(u128::from(moves) <= allowed, "{moves} moves in {took:?}");
    for (to, answer) in &answers {
        assert!(matches!(outcome(answer), "converged" | "superseded"), "{to}: {answer}");
        assert_eq!(answer["success"], json!(outcome(answer) == "converged"));
    }
    let last_done = answers.iter().filter(|(_, answer)| outcome(answer) == "converged").count();
    assert!(last_done >= 1, "nobody got what was wished");
    let state = callers[0].call("get_device_state", json!({"device": "lamp"})).await;
    assert_eq!(state["device_state"]["relay"], if on { "on" } else { "off" }, "{state}");
    house.take_down().await;
}

/// All of them side by side, in order.
async fn join_all<T>(futures: Vec<impl Future<Output = T>>) -> Vec<T> {
    let mut futures: Vec<_> = futures.into_iter().map(Box::pin).collect();
    let mut done: Vec<Option<T>> = futures.iter().map(|_| None).collect();
    std::future::poll_fn(|cx| {
        for (future, done) in futures.iter_mut().zip(&mut done) {
            if done.is_none()
                && let std::task::Poll::Ready(output) = future.as_mut().poll(cx)
            {
                *done = Some(output);
            }
        }
        if done.iter().all(Option::is_some) { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
    })
    .await;
    done.into_iter().flatten().collect()
}

#[tokio::test]
async fn s4_6_ten_brighter_twice_is_twenty_brighter() {
    let house = House::build("", &[Member::new("desk", Kind::Lamp)]).await;
    let (ann, bob) = (house.caller().await, house.caller().await);
    let start = level(&ann, "desk", "brightness", "to", 40.0).await;
    assert_eq!(outcome(&start), "converged", "{start}");
    let (first, second) = tokio::join!(
        level(&ann, "desk", "brightness", "up_by", 10.0),
        level(&bob, "desk", "brightness", "up_by", 10.0)
    );
    assert_eq!((outcome(&first), outcome(&second)), ("converged", "converged"), "{first} {second}");
    let really = house.sim("desk").truth_of("brightness").unwrap().at;
    assert!((really - 60.0).abs() < 1.0, "it is at {really}");
    house.take_down().await;
}

#[tokio::test]
async fn s4_7_a_caller_that_goes_away_takes_its_wish_along_if_nothing_has_begun() {
    let house = House::build("", &[LAMP]).await;
    let ann = house.caller().await;
    break_it(&house, "lamp", Fault::NeverStarts);
    {
        let wish = ann.switch("lamp", "on");
        let gone = tokio::time::timeout(Duration::from_millis(300), wish).await;
        assert!(gone.is_err(), "it was answered: {gone:?}");
    }
    // Were the device mended before the withdrawal has reached it, it would begin, and rightly so.
    until("it was taken back", async || {
        let told = ann.call("check_operation", json!({"device": "lamp"})).await;
        (told["outcome"] == "cancelled").then_some(())
    })
    .await;
    break_it(&house, "lamp", Fault::None);
    let bob = house.caller().await;
    let state = until("it answers", async || {
        let state = bob.call("get_device_state", json!({"device": "lamp"})).await;
        (state["trust"] == "now").then_some(state)
    })
    .await;
    assert_eq!(house.truth("lamp"), (0, false), "{state}");
    assert_eq!(state["device_state"]["relay"], "off", "{state}");
    assert_eq!(outcome(&bob.switch("lamp", "on").await), "converged", "and nobody else is held up by it");
    house.take_down().await;
}

#[tokio::test]
async fn s4_5_a_loop_does_not_starve_a_single_call() {
    let house = House::build("", &[LAMP]).await;
    let (looping, single) = (house.caller().await, house.caller().await);
    let mut rounds = 0;
    let answer = {
        let mut called = Box::pin(single.switch("lamp", "on"));
        loop {
            tokio::select! {
                answer = &mut called => break answer,
                _ = looping.switch("lamp", if rounds % 2 == 0 { "off" } else { "on" }) => rounds += 1,
            }
        }
    };
    assert!(matches!(outcome(&answer), "converged" | "superseded"), "after {rounds} rounds: {answer}");
    house.take_down().await;
}

#[tokio::test]
async fn s4_1_a_blind_that_takes_longer_than_its_caller_waits_is_not_stopped_for_it() {
    let config = "[timing]\nanswer_by_ms = 8000\n";
    let house = House::build(config, &[Member::new("blind", Kind::Blind)]).await;
    let ann = house.caller().await;
    let answer = ann.switch("blind", "open").await;
    assert_eq!((outcome(&answer), answer["result"].as_str()), ("working", Some("working")), "{answer}");
    assert!(answer["success"] == false && answer["eta_s"].as_u64().is_some(), "{answer}");
    let told = ann.check_until(&answer["operation"], |told| outcome(told) != "working").await;
    assert_eq!((outcome(&told), told["result"].as_str()), ("converged", Some("confirmed")), "{told}");
    let really = house.sim("blind").truth_of("position").unwrap();
    assert!(really.at >= 99.0 && really.moves == 1, "{really:?}");
    house.take_down().await;
}

#[tokio::test]
async fn s2_7_an_update_in_the_middle_that_drops_the_property_or_makes_it_another_ends_the_operation() {
    for (kind, device, update) in
        [(Kind::Relays, "board relay 4", Fault::UpdateDrop), (Kind::Lamp, "board", Fault::UpdateKind)]
    {
        let house = House::build("", &[Member::new("board", kind)]).await;
        let ann = house.caller().await;
        break_it(&house, "board", Fault::NeverStarts);
        let updated = async {
            under_way(&house, "board").await;
            break_it(&house, "board", update);
        };
        let (answer, ()) = tokio::join!(ann.switch(device, "on"), updated);
        assert_eq!(
            (&answer["success"], answer["reason"].as_str()),
            (&json!(false), Some("property_changed")),
            "{answer}"
        );
        assert_ne!(answer["result"], "confirmed", "{answer}");
        house.take_down().await;
    }
}

#[tokio::test]
async fn s2_8_a_device_that_is_removed_and_added_again_inherits_nothing() {
    let mut house = House::build("", &[LAMP]).await;
    let ann = house.caller().await;
    break_it(&house, "lamp", Fault::Frozen);
    let remove = async {
        under_way(&house, "lamp").await;
        house.remove("lamp").await;
    };
    let (answer, ()) = tokio::join!(ann.switch("lamp", "on"), remove);
    assert_eq!((outcome(&answer), answer["result"].as_str()), ("removed", Some("unconfirmed")), "{answer}");
    house.add(LAMP).await;
    house.presence("lamp", Presence::Online).await;
    let told = ann.check(&answer["operation"]).await;
    assert_eq!(outcome(&told), "removed", "{told}");
    let of_the_new = ann.call("check_operation", json!({"device": "lamp"})).await;
    assert!(of_the_new["operation"].is_null(), "the new one has done nothing yet: {of_the_new}");
    assert_eq!(outcome(&ann.switch("lamp", "on").await), "converged");
    house.take_down().await;
}

#[tokio::test]
async fn metrics_are_for_this_machine_s_own_names_only() {
    let house = House::build("", &[]).await;
    for (host, wanted) in [
        ("127.0.0.1:8080", "200"),
        ("localhost", "200"),
        ("[::1]:8080", "200"),
        ("evil.example", "403"),
        ("localhost.evil.example:8080", "403"),
    ] {
        assert_eq!(house.http_status("/metrics", host).await, wanted, "{host}");
    }
    house.take_down().await;
}

#[tokio::test]
async fn a_board_whose_random_numbers_have_no_seed_is_told_why_nobody_listens_to_it() {
    let mut house = House::build("", &[LAMP]).await;
    let mut events = house.events("lamp");
    let welcomed = |event: &Happened| *event == Happened::Welcomed;
    events.wait_for("welcomed", welcomed).await;
    break_it(&house, "lamp", Fault::SameBoot);
    for _ in 0..2 {
        house.sim("lamp").restart();
        events.wait_for("welcomed in a new run", welcomed).await;
    }
    let told = |event: &Happened| matches!(event, Happened::Told(text) if text.contains("boot"));
    events.wait_for("told of its boot", told).await;
    house.take_down().await;
}

#[tokio::test]
async fn s6_2_a_set_point_is_kept_for_a_device_that_is_away_and_a_person_at_the_knob_wins() {
    let config = "[devices.heating.properties.target]\nconfirm = \"none\"";
    let mut house = House::build(config, &[Member::new("heating", Kind::Thermostat)]).await;
    let mut events = house.events("heating");
    let ann = house.caller().await;
    break_it(&house, "heating", Fault::Offline);
    house.presence("heating", Presence::Offline).await;
    let answer = level(&ann, "heating", "target", "to", 22.0).await;
    assert_eq!((outcome(&answer), answer["reason"].as_str()), ("working", Some("offline")), "{answer}");
    assert_eq!((&answer["success"], answer["result"].as_str()), (&json!(false), Some("working")), "{answer}");
    break_it(&house, "heating", Fault::None);
    let told = ann.check_until(&answer["operation"], |told| outcome(told) == "converged").await;
    assert_eq!((outcome(&told), told["result"].as_str()), ("converged", Some("confirmed")), "{told}");
    let target = || house.sim("heating").truth_of("target").unwrap().at;
    assert!((target() - 22.0).abs() < 0.1, "{}", target());
    // A person turns the knob: what the hub wishes from then on is that.
    assert!(house.sim("heating").touch(Some("target"), Some(19.0)));
    until("the hub knows", async || {
        let state = ann.call("get_device_state", json!({"device": "heating"})).await;
        (state["device_state"]["target"] == 19.0 || state["device_state"]["target"] == 19).then_some(())
    })
    .await;
    house.sim("heating").restart();
    events.wait_for("welcomed", |event| *event == Happened::Welcomed).await;
    until("the wish of the person is back", async || ((target() - 19.0).abs() < 0.1).then_some(())).await;
    house.take_down().await;
}

/// Two sockets, each with the meter of the other as its witness.
const CROSSED: &str = r#"
[devices.left.properties.relay]
verify_with = "right.power"
verify_expect = "true: at_most 100"
[devices.right.properties.relay]
verify_with = "left.power"
verify_expect = "true: at_most 100"
"#;

#[tokio::test]
async fn s3_10_two_devices_that_verify_each_other_at_once_do_not_wait_for_each_other() {
    let meters = [Member::new("left", Kind::Meter), Member::new("right", Kind::Meter)];
    let house = House::build(CROSSED, &meters).await;
    let (ann, bob) = (house.caller().await, house.caller().await);
    let (left, right) = tokio::join!(ann.switch("left", "on"), bob.switch("right", "on"));
    for answer in [left, right] {
        assert_eq!((outcome(&answer), answer["confirmed_by"].as_str()), ("converged", Some("sensor")), "{answer}");
    }
    assert_eq!((house.truth("left"), house.truth("right")), ((1, true), (1, true)));
    house.take_down().await;
}

#[tokio::test]
async fn s3_10_a_witness_that_is_away_is_a_refusal_before_anything_moves() {
    let meters = [Member::new("left", Kind::Meter), Member::new("right", Kind::Meter)];
    let house = House::build(CROSSED, &meters).await;
    let ann = house.caller().await;
    break_it(&house, "right", Fault::Offline);
    house.presence("right", Presence::Offline).await;
    let answer = ann.switch("left", "on").await;
    assert_eq!((outcome(&answer), answer["result"].as_str()), ("verifier_offline", Some("failed")), "{answer}");
    assert_eq!(house.truth("left"), (0, false));
    house.take_down().await;
}
