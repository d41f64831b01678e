//! How far a call is, told while it runs; and calls that nobody waits for any more. Over real HTTP, in both lifecycles.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod assistant;
mod house;

use assistant::{Assistant, Life, Told};
use house::{House, Member, until};
use serde_json::{Value as Json, json};
use truetwin::{
    sim::{Fault, Kind},
    twin::words::Presence,
};

const LIVES: [Life; 2] = [Life::Session, Life::Stateless];
const LAMP: [Member; 1] = [Member::new("lamp", Kind::Socket)];
/// A call waits for a device that has just gone away for as long as a test may need.
const PATIENT: &str = "[timing]\nwait_online_ms = 25000\nrecently_seen_ms = 600000\n";

fn steps(assistant: &Assistant) -> Vec<(f64, Option<f64>, String)> {
    let step = |told| match told {
        Told::Progress { done, of, message } => Some((done, of, message)),
        Told::Tools | Told::Resources | Told::Updated(_) => None,
    };
    assistant.so_far().into_iter().filter_map(step).collect()
}

/// How many calls were cancelled by their clients.
fn cancelled(house: &House) -> u64 {
    let text = house.hub().parts().metrics.render();
    let of = |line: &&str| line.starts_with("truetwin_tool_calls_total") && line.contains("result=\"cancelled\"");
    text.lines().filter(of).filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok()).sum()
}

async fn says(assistant: &Assistant, sentence: &str) {
    let so = async || steps(assistant).iter().any(|(_, _, message)| message == sentence).then_some(());
    until(&format!("{sentence:?} is told"), so).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_stages_are_told_in_order_in_the_language_of_the_caller_and_never_say_done() {
    for (language, sentence) in
        [("en", "Sent; waiting for the device to say that it has it."), ("zh", "发出去了，等设备说收到。")]
    {
        let house = House::build(&format!("language = \"{language}\""), &LAMP).await;
        for life in LIVES {
            let assistant = Assistant::connect(house.hub().http_addr(), life).await;
            let answer = assistant.call("switch_device", json!({"device": "lamp", "to": "on"})).await;
            assert_eq!(answer["success"], true, "{answer}");
            says(&assistant, sentence).await;
            // This client hands each note to a task of its own, so their order is only known by what they say.
            let mut told = steps(&assistant);
            told.sort_by(|a, b| a.0.total_cmp(&b.0));
            assert!(told.len() >= 3, "{told:?}");
            assert!(told.windows(2).all(|pair| pair[0].0 < pair[1].0), "each stage once: {told:?}");
            assert!(
                told.iter().all(|(done, of, _)| *done < of.unwrap()),
                "the answer is the end, not a step: {told:?}"
            );
            assert!(told.iter().all(|(_, _, message)| !message.to_lowercase().contains("done") && !message.is_empty()));
            assert_eq!(assistant.call("switch_device", json!({"device": "lamp", "to": "off"})).await["success"], true);
            assistant.close().await;
        }
        house.take_down().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn of_a_group_it_is_told_how_many_have_answered() {
    let members =
        [Member::new("one", Kind::Socket), Member::new("two", Kind::Socket), Member::new("three", Kind::Socket)];
    let house = House::build("", &members).await;
    let assistant = Assistant::connect(house.hub().http_addr(), Life::Session).await;
    let answer = assistant.call("switch_device", json!({"device": "all sockets", "to": "on"})).await;
    assert_eq!(answer["success"], true, "{answer}");
    says(&assistant, "Three of three have answered.").await;
    let told: Vec<_> = steps(&assistant).into_iter().map(|(done, of, _)| (done, of)).collect();
    assert_eq!(told, [(1.0, Some(3.0)), (2.0, Some(3.0)), (3.0, Some(3.0))]);
    assistant.close().await;
    house.take_down().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn s4_7_a_cancelled_call_that_had_not_begun_moves_nothing() {
    let house = House::build(PATIENT, &LAMP).await;
    for (times, life) in (1..).zip(LIVES) {
        let assistant = Assistant::connect(house.hub().http_addr(), life).await;
        house.sim("lamp").set_fault(Fault::Offline);
        house.presence("lamp", Presence::Offline).await;
        let call = assistant.begin("switch_device", json!({"device": "lamp", "to": "on"})).await;
        says(&assistant, "Waiting for its turn.").await;
        call.cancel(Some("changed my mind".into())).await.unwrap();
        // Counted once the work was dropped: the device's actor has then been told.
        until("the call is counted as cancelled", async || (cancelled(&house) == times).then_some(())).await;
        house.sim("lamp").set_fault(Fault::None);
        house.presence("lamp", Presence::Online).await;
        let state = assistant.call("get_device_state", json!({"device": "lamp", "fresh": "yes"})).await;
        assert_eq!((&state["trust"], &state["device_state"]["relay"]), (&json!("now"), &json!("off")), "{state}");
        assert_eq!(house.truth("lamp"), (0, false), "{life:?}");
        assistant.close().await;
    }
    house.take_down().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn s4_7_a_call_that_the_device_has_and_has_not_begun_is_withdrawn() {
    let house = House::build("", &LAMP).await;
    for life in LIVES {
        let assistant = Assistant::connect(house.hub().http_addr(), life).await;
        house.sim("lamp").set_fault(Fault::NeverStarts);
        let call = assistant.begin("switch_device", json!({"device": "lamp", "to": "on"})).await;
        says(&assistant, "The device has it and has not begun.").await;
        call.cancel(None).await.unwrap();
        let told = until("it is told as cancelled", async || {
            let told = assistant.call("check_operation", json!({"device": "lamp"})).await;
            (told["outcome"] == "cancelled").then_some(told)
        })
        .await;
        assert_eq!((&told["success"], &told["result"]), (&Json::Bool(false), &json!("failed")), "{told}");
        house.sim("lamp").set_fault(Fault::None);
        let answer = assistant.call("switch_device", json!({"device": "lamp", "to": "off"})).await;
        assert_eq!(answer["success"], true, "{answer}");
        assert_eq!(house.truth("lamp"), (0, false), "it is still where it was");
        assistant.close().await;
    }
    house.take_down().await;
}
