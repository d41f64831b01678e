//! The self-hosted relay: boxes on one socket, its limits, and the faults that must not be woken.

use std::{sync::Arc, time::Duration};

use serde_json::json;
use tokio::time::Instant;
use tokio_tungstenite::tungstenite::Message;
use truetwin::{
    authz::Style,
    endpoint::{EndWord, Outside, Probe, State, Tuning},
};

use super::{
    bench::{Bench, RELAY_URL, settings, takes, until},
    relay::{Relay, Seen},
    voice::{Heard, VoiceBox},
    wire::Pipes,
};

const AT: &str = "relay:8004";

fn bench() -> (Bench, Relay, Pipes) {
    bench_with(Tuning::default(), false)
}

fn bench_with(tuning: Tuning, is_unclean: bool) -> (Bench, Relay, Pipes) {
    let (pipes, door) = Pipes::new();
    let outside = Outside { reach: Arc::new(pipes.clone()), tuning, is_unclean, ..Outside::default() };
    let bench = Bench::with(outside, 20_000);
    bench.endpoints.add(settings("home", RELAY_URL)).unwrap();
    (bench, Relay::start(door, 1), pipes)
}

#[tokio::test(start_paused = true)]
async fn four_boxes_on_one_socket_are_each_answered_and_told_apart() {
    let (bench, relay, pipes) = bench();
    relay.registered(1).await;
    let boxes = (0..4).map(|n| {
        let pipes = pipes.clone();
        tokio::spawn(async move {
            let mut voice = VoiceBox::dial(&pipes, AT).await;
            assert_eq!(voice.handshake().await, ["switch_device", "ping"]);
            for round in 0..20 {
                let (ms, say) = ((n * 331 + round * 97) % 1_500, format!("{n}号盒子第{round}次"));
                let Heard::Model(text) = voice.say("switch_device", takes(ms, &say)).await else { panic!() };
                assert!(text.contains(&say), "{text}");
            }
        })
    });
    for voice in boxes.collect::<Vec<_>>() {
        voice.await.unwrap();
    }
    let mut callers = bench.script.callers.lock().unwrap().clone();
    assert_eq!(callers.len(), 80);
    callers.sort();
    callers.dedup();
    assert_eq!(callers.len(), 4, "{callers:?}");
    assert!(callers.iter().all(|caller| caller.starts_with("endpoint:home:")), "{callers:?}");
    assert_eq!(bench.status("home").connects, 1);
    assert_eq!(relay.seen(), [Seen::Registered]);
}

#[tokio::test(start_paused = true)]
async fn the_managers_refresh_and_a_lost_id_0_leave_the_line_as_it_is() {
    let (bench, relay, pipes) = bench();
    relay.registered(1).await;
    let mut manager = VoiceBox::dial(&pipes, AT).await;
    assert_eq!(manager.refresh().await, ["switch_device", "ping"]);
    manager.send(&json!({"jsonrpc": "2.0", "id": 0, "method": "ping"})).await;
    assert!(manager.call("ping", json!({})).await.is_some());
    assert!(relay.seen().iter().any(|seen| matches!(seen, Seen::Unroutable(text) if text.contains(r#""id":0,"#))));
    assert_eq!(bench.status("home").state, State::Up);
}

#[tokio::test(start_paused = true)]
async fn a_call_is_answered_25_s_after_it_came_at_the_latest() {
    let (bench, relay, pipes) = bench();
    bench.script.policy.lock().unwrap().answer_by_ms = 900_000;
    relay.registered(1).await;
    let mut voice = VoiceBox::dial(&pipes, AT).await;
    let began = Instant::now();
    let Heard::Model(text) = voice.say("switch_device", takes(999_000, "1")).await else { panic!() };
    assert!(text.starts_with("不确定"), "{text}");
    assert_eq!(began.elapsed().as_secs(), 25);
}

#[tokio::test(start_paused = true)]
async fn a_failure_is_heard_in_words_in_both_styles() {
    let (bench, relay, pipes) = bench();
    relay.registered(1).await;
    let mut voice = VoiceBox::dial(&pipes, AT).await;
    let Heard::Model(text) = voice.say("panic", json!({})).await else { panic!() };
    assert!(text.starts_with("不确定"), "{text}");
    bench.script.policy.lock().unwrap().style = Style::IsError;
    let Heard::Spoken(text) = voice.say("panic", json!({})).await else { panic!() };
    assert!(text.starts_with("工具调用错误: 不确定"), "{text}");
    let Heard::Spoken(text) = voice.say("no_such_tool", json!({})).await else { panic!() };
    assert_eq!(text, "MCP接入点错误: 没有执行：这里没有这个工具，也许设备还没连上，或者没有这一项。");
}

#[tokio::test(start_paused = true)]
async fn its_pings_keep_the_line_for_hours_without_a_word() {
    let (bench, relay, _) = bench();
    tokio::time::sleep(Duration::from_secs(6 * 3_600)).await;
    assert_eq!((relay.seen(), bench.status("home").connects), (vec![Seen::Registered], 1));
}

#[tokio::test(start_paused = true)]
async fn a_refused_token_is_said_and_not_dialled_again() {
    let (pipes, door) = Pipes::new();
    let (bench, relay) = (Bench::new(pipes, 8_000), Relay::start(door, 1));
    bench.endpoints.add(settings("home", "ws://relay:8004/mcp_endpoint/mcp/?token=aSecretTokenThatIsWrong")).unwrap();
    tokio::time::sleep(Duration::from_secs(24 * 3_600)).await;
    assert_eq!(relay.seen(), [Seen::Refused]);
    let status = bench.status("home");
    assert_eq!((status.state, status.advice()), (State::Refused, Some(EndWord::TokenRefused.told())));
    assert!(!format!("{status:?}").contains("aSecret"), "{status:?}");
    bench.endpoints.restart("home").unwrap();
    until("it was tried once more", || relay.seen() == [Seen::Refused, Seen::Refused]).await;
}

#[tokio::test(start_paused = true)]
async fn another_program_with_the_token_is_not_fought() {
    let (bench, relay, pipes) = bench();
    let (rival, door) = (Bench::new(pipes, 8_000), relay.clone());
    door.registered(1).await;
    rival.endpoints.add(settings("rival", RELAY_URL)).unwrap();
    relay.registered(2).await;
    until("it noticed", || bench.counts.ends() == [EndWord::Replaced]).await;
    let status = bench.status("home");
    assert_eq!((status.state, status.advice()), (State::Waiting, Some(EndWord::Replaced.told())));
    tokio::time::sleep(Duration::from_secs(290)).await;
    assert_eq!(relay.times(&Seen::Registered).len(), 2);
    relay.registered(3).await;
}

#[tokio::test(start_paused = true)]
async fn renewed_for_its_tools_it_waits_long_enough_to_be_registered() {
    let (bench, relay, pipes) = bench();
    relay.registered(1).await;
    VoiceBox::dial(&pipes, AT).await.handshake().await;
    tokio::time::sleep(Duration::from_secs(40)).await;
    bench.script.tools_are(&["ping"]);
    relay.registered(2).await;
    assert_eq!(bench.endpoints.probe("home").await.unwrap().as_str(), "routed");
    assert_eq!(VoiceBox::dial(&pipes, AT).await.handshake().await, ["ping"]);

    // Without the pause the same ends in a socket that nobody knows.
    let (bench, relay, pipes) = bench_with(Tuning { pause: Duration::ZERO, ..Tuning::default() }, false);
    relay.registered(1).await;
    VoiceBox::dial(&pipes, AT).await.handshake().await;
    tokio::time::sleep(Duration::from_secs(40)).await;
    bench.script.tools_are(&["ping"]);
    relay.registered(2).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(bench.endpoints.probe("home").await.unwrap(), Probe::NotRegistered);
}

#[tokio::test(start_paused = true)]
async fn after_a_line_that_was_cut_off_the_relay_is_given_time_to_notice() {
    let (bench, relay, pipes) = bench();
    relay.registered(1).await;
    tokio::time::sleep(Duration::from_secs(100)).await;
    let cut = Instant::now();
    pipes.cut();
    relay.registered(2).await;
    assert!((100..=125).contains(&cut.elapsed().as_secs()), "{:?}", cut.elapsed());
    assert_eq!(relay.seen(), [Seen::Registered, Seen::PingTimeout, Seen::Registered]);
    assert!(VoiceBox::dial(&pipes, AT).await.call("ping", json!({})).await.is_some());
    assert_eq!(bench.endpoints.probe("home").await.unwrap().as_str(), "routed");

    // Dialled within seconds, the relay hangs for everybody.
    let tuning =
        Tuning { relay_silence: Duration::from_secs(21), unclean_pause: Duration::from_secs(1), ..Tuning::default() };
    let (bench, relay, pipes) = bench_with(tuning, false);
    relay.registered(1).await;
    tokio::time::sleep(Duration::from_secs(101)).await;
    pipes.cut();
    tokio::time::sleep(Duration::from_secs(300)).await;
    assert!(relay.seen().contains(&Seen::Replaced), "{:?}", relay.seen());
    assert_eq!(bench.endpoints.probe("home").await.unwrap(), Probe::Hangs);
}

#[tokio::test(start_paused = true)]
async fn the_first_dial_after_a_crash_waits_a_minute() {
    let began = Instant::now();
    let (bench, relay, _) = bench_with(Tuning::default(), true);
    relay.registered(1).await;
    assert_eq!(began.elapsed().as_secs(), 60);
    // So does one that is taken away and added again meanwhile, but not longer.
    bench.endpoints.remove("home").await.unwrap();
    bench.endpoints.add(settings("home", RELAY_URL)).unwrap();
    relay.registered(2).await;
    assert_eq!(began.elapsed().as_secs(), 61, "the pause");
}

#[tokio::test(start_paused = true)]
async fn a_probe_tells_a_routed_a_forgotten_and_a_hanging_relay_apart() {
    let (bench, relay, pipes) = bench();
    relay.registered(1).await;
    assert_eq!(bench.endpoints.probe("home").await.unwrap().as_str(), "routed");
    relay.forget().await;
    assert_eq!(bench.endpoints.probe("home").await.unwrap(), Probe::NotRegistered);
    assert_eq!(bench.status("home").state, State::Up, "nothing of it shows at the socket");
    bench.endpoints.restart("home").unwrap();
    relay.registered(2).await;
    assert_eq!(bench.endpoints.probe("home").await.unwrap().as_str(), "routed");
    relay.hang().await;
    assert_eq!(bench.endpoints.probe("home").await.unwrap(), Probe::Hangs);
    pipes.down(true);
    assert_eq!(bench.endpoints.probe("home").await.unwrap().as_str(), "unreachable");
}

#[tokio::test(start_paused = true)]
async fn a_close_without_a_code_is_followed_by_a_dial_within_seconds() {
    let (bench, relay, _) = bench();
    relay.registered(1).await;
    tokio::time::sleep(Duration::from_secs(70)).await;
    relay.raw(Message::Close(None)).await;
    let lost = Instant::now();
    relay.registered(2).await;
    assert!(lost.elapsed() <= Duration::from_millis(2_100), "{:?}", lost.elapsed());
    assert_eq!(bench.counts.ends(), [EndWord::Closed]);
}
