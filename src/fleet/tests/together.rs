//! Several callers of one device, over its real actor: joining, superseding, what is owed, another of the same name.

use super::*;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s4_3_two_callers_of_one_value_share_an_operation_and_each_can_ask_for_its_own() {
    let hub = Hub::start(Limits::default()).await;
    let mut lamp = hub.board("lamp").await;
    let (ann, bob) = (Caller("ann".into()), Caller("bob".into()));
    let first = hub.wish(&ann, Wish::to("relay", Value::Bool(true)));
    let set = lamp.next("set").await;
    let second = hub.wish(&bob, Wish::to("relay", Value::Bool(true)));
    hub.waiting("lamp", 2).await;
    lamp.complete(&set).await;
    let (first, second) = (settled(first.await.unwrap()), settled(second.await.unwrap()));
    assert_eq!((first.outcome, second.outcome), (Outcome::Converged, Outcome::Converged));
    assert_eq!((first.joined, second.joined), (None, Some(first.op.clone())));
    for (caller, op) in [(&ann, first.op), (&bob, second.op)] {
        for asked in [Some(&op), None] {
            let known = settled(hub.fleet.check(asked, None, caller, &Rights::everything()).await.unwrap());
            assert_eq!((known.op, known.outcome), (op.clone(), Outcome::Converged), "without an id: its latest");
        }
        assert_eq!(
            settled(hub.fleet.check(None, Some(&lamp_thing()), caller, &Rights::everything()).await.unwrap()).op,
            op
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s4_7_a_caller_that_vanishes_takes_nothing_from_another_that_waits() {
    let hub = Hub::start(Limits::default()).await;
    let mut lamp = hub.board("lamp").await;
    let first = hub.wish(&Caller("ann".into()), Wish::to("relay", Value::Bool(true)));
    let set = lamp.next("set").await;
    let second = hub.wish(&Caller("bob".into()), Wish::to("relay", Value::Bool(true)));
    hub.waiting("lamp", 2).await;
    first.abort();
    hub.waiting("lamp", 1).await;
    lamp.complete(&set).await;
    assert_eq!(settled(second.await.unwrap()).outcome, Outcome::Converged);
    // Nothing was withdrawn: the next command is another wish's.
    let third = hub.wish(&Caller("eve".into()), Wish::toggle("relay"));
    let set = lamp.commands.recv().await.unwrap();
    assert_eq!((&set["command"], &set["value"]), (&json!("set"), &json!(false)));
    lamp.complete(&set).await;
    assert_eq!(settled(third.await.unwrap()).outcome, Outcome::Converged);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s4_4_the_caller_of_an_older_value_hears_at_once_that_another_took_its_place() {
    let hub = Hub::start(Limits::default()).await;
    let mut lamp = hub.board("lamp").await;
    let first = hub.wish(&Caller("ann".into()), Wish::to("relay", Value::Bool(true)));
    let older = lamp.next("set").await;
    let second = hub.wish(&Caller("bob".into()), Wish::to("relay", Value::Bool(false)));
    let told = settled(first.await.unwrap());
    assert_eq!((told.outcome, told.superseded_by), (Outcome::Superseded, Some(Value::Bool(false))));
    assert_eq!(lamp.next("withdraw").await["op"], older["op"]);
    lamp.withdrawn(&older).await;
    let newer = lamp.next("set").await;
    lamp.complete(&newer).await;
    assert_eq!(settled(second.await.unwrap()).outcome, Outcome::Converged);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s5_8_an_actor_that_crashes_over_a_shared_operation_leaves_no_caller_without_an_answer() {
    let hub = Hub::start(Limits::default()).await;
    let mut lamp = hub.board("lamp").await;
    let calls = ["ann", "bob"].map(|who| hub.wish(&Caller(who.into()), Wish::to("relay", Value::Bool(true))));
    let set = lamp.next("set").await;
    hub.waiting("lamp", 2).await;
    assert!(hub.fleet.tell(&id("lamp"), DeviceMsg::Crash).is_ok());
    for call in calls {
        assert_eq!(settled(call.await.unwrap()).outcome, Outcome::Interrupted);
    }
    assert_eq!(lamp.next("withdraw").await["op"], set["op"]);
    assert_eq!(lamp.next("get_device_state").await["op"], json!("restored"), "it was withdrawn once");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s6_3_what_was_not_confirmed_and_is_done_after_all_is_owed_once_to_each_who_was_told() {
    let hub = Hub::start(Limits::default()).await;
    let mut lamp = hub.board("lamp").await;
    let (ann, bob) = (Caller("ann".into()), Caller("bob".into()));
    let wish = || Wish::to("relay", Value::Bool(true));
    let by = Instant::now() + Duration::from_millis(700);
    let (fleet, device) = (hub.fleet.clone(), id("lamp"));
    let both = async {
        tokio::join!(fleet.set(&ann, permitted(&device, wish()), by), fleet.set(&bob, permitted(&device, wish()), by))
    };
    let (told, set) = tokio::join!(both, lamp.next("set"));
    let ops = [settled(told.0), settled(told.1)].map(|s| (s.op, s.outcome));
    assert!(ops.iter().all(|(_, outcome)| *outcome == Outcome::TimedOut), "{ops:?}");
    assert!(hub.fleet.corrections_for(&ann).is_empty());
    lamp.complete(&set).await;
    while hub.fleet.state_of(&device, false, soon()).await.unwrap().amended.is_empty() {
        tokio::task::yield_now().await;
    }
    // Bob asks for it, and has heard it then.
    assert!(settled(hub.fleet.check(Some(&ops[1].0), None, &bob, &Rights::everything()).await.unwrap()).late_success);
    assert!(hub.fleet.corrections_for(&bob).is_empty());
    let owed = hub.fleet.corrections_for(&ann);
    assert_eq!(owed.len(), 1);
    assert_eq!((&owed[0].operation, owed[0].settled.late_success), (&ops[0].0, true));
    assert!(hub.fleet.corrections_for(&ann).is_empty(), "once");
    assert!(hub.fleet.corrections_for(&Caller::without_session("ann")).is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s2_8_a_device_that_comes_again_under_a_name_is_another_and_inherits_nothing() {
    let hub = Hub::start(Limits { restarts_max: 1, restarts_within: Duration::from_secs(600) }).await;
    let mut lamp = hub.board("lamp").await;
    let ann = Caller("ann".into());
    let call = hub.wish(&ann, Wish::to("relay", Value::Bool(true)));
    let set = lamp.next("set").await;
    lamp.complete(&set).await;
    let old = settled(call.await.unwrap()).op;
    // It has crashed as often as it may, and what it was told last is no longer true.
    hub.fleet.running(&id("lamp"), soon()).await.unwrap().cast(DeviceMsg::Crash).unwrap();
    hub.fleet.left_behind(&id("lamp")).await;
    hub.fleet.remove(&id("lamp")).await.unwrap();
    hub.broker.kick("lamp");
    let told = settled(hub.fleet.check(Some(&old), None, &ann, &Rights::everything()).await.unwrap());
    assert_eq!((told.outcome, &told.op), (Outcome::Removed, &old));
    let mut other = hub.board("lamp").await;
    for asked in [
        hub.fleet.check(Some(&old), None, &ann, &Rights::everything()).await,
        hub.fleet.check(None, None, &ann, &Rights::everything()).await,
    ] {
        assert_eq!(settled(asked.unwrap()).outcome, Outcome::Removed, "the new one knows nothing of it");
    }
    assert_eq!(hub.fleet.check(None, Some(&lamp_thing()), &ann, &Rights::everything()).await, None);
    assert!(hub.fleet.corrections_for(&ann).is_empty());
    // Nor does it inherit the crashes: one more is one, not too many.
    hub.fleet.running(&id("lamp"), soon()).await.unwrap().cast(DeviceMsg::Crash).unwrap();
    hub.fleet.left_behind(&id("lamp")).await;
    let call = hub.wish(&ann, Wish::to("relay", Value::Bool(true)));
    let set = other.next("set").await;
    other.complete(&set).await;
    assert_eq!(settled(call.await.unwrap()).outcome, Outcome::Converged);
}
