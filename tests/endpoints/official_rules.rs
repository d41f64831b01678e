//! The official access point, hours of it in a moment.

use std::time::Duration;

use serde_json::json;
use tokio::time::Instant;
use tokio_tungstenite::tungstenite::Message;
use truetwin::endpoint::{AddError, EndWord, State};

use super::{
    bench::{Bench, OFFICIAL_URL, settings, takes, until},
    official::{Official, Pace, Seen, Told},
    wire::Pipes,
};

fn bench(pace: Pace) -> (Bench, Official, Pipes) {
    let (pipes, door) = Pipes::new();
    let bench = Bench::new(pipes.clone(), 8_000);
    bench.endpoints.add(settings("home", OFFICIAL_URL)).unwrap();
    (bench, Official::start(door, pace), pipes)
}

#[tokio::test(start_paused = true)]
async fn the_handshake_is_answered_from_id_0_on_and_the_tools_go_over() {
    let (bench, official, _) = bench(Pace::OLD);
    official.handshaken(1).await;
    let tools = vec!["switch_device".to_owned(), "ping".to_owned()];
    assert_eq!(official.seen(), [Seen::Opened("/mcp/".to_owned()), Seen::Tools(tools.clone())]);
    let status = bench.status("home");
    assert_eq!((status.state, status.tools, status.connects), (State::Up, tools, 1));
    assert!(status.tools_at.is_some());
    assert_eq!(bench.counts.in_state(State::Up), 1);
}

#[tokio::test(start_paused = true)]
async fn a_call_is_answered_with_one_text_and_an_explicit_is_error() {
    let (_bench, official, _) = bench(Pace::OLD);
    let Told::Answer(answer) = official.call("switch_device", takes(3, "开灯")).await else { panic!() };
    assert_eq!(answer["result"]["isError"], json!(false));
    assert_eq!(answer["result"]["content"].as_array().unwrap().len(), 1);
    assert_eq!(answer["result"]["content"][0]["type"], "text");
    assert!(answer["result"]["content"][0]["text"].as_str().unwrap().contains("开灯"));
    assert_eq!(answer["result"].get("action"), None);
}

#[tokio::test(start_paused = true)]
async fn a_ping_does_not_wait_for_calls() {
    let (_bench, official, _) = bench(Pace { ping: Duration::from_secs(2), ..Pace::OLD });
    assert!(matches!(official.call("switch_device", takes(7_900, "1")).await, Told::Answer(_)));
    let pongs: Vec<Seen> = official.seen().into_iter().filter(|seen| matches!(seen, Seen::Pong(_))).collect();
    assert!(pongs.len() >= 3 && pongs.iter().all(|pong| *pong == Seen::Pong(Duration::ZERO)), "{pongs:?}");
}

#[tokio::test(start_paused = true)]
async fn a_call_that_takes_too_long_is_answered_before_the_other_side_gives_up() {
    let (bench, official, _) = bench(Pace::OLD);
    let began = Instant::now();
    let told = official.call("switch_device", takes(60_000, "1")).await;
    assert!(told.text().starts_with("不确定"), "{told:?}");
    assert_eq!(began.elapsed().as_secs(), 8);
    assert_eq!(bench.counts.late.load(std::sync::atomic::Ordering::SeqCst), 1);
    assert!(!official.seen().contains(&Seen::Late));
}

#[tokio::test(start_paused = true)]
async fn since_the_limit_is_300_s_a_call_may_take_280_and_never_more() {
    let (bench, official, _) = bench(Pace::NEW);
    bench.script.policy.lock().unwrap().answer_by_ms = 900_000;
    assert!(official.call("switch_device", takes(279_000, "1")).await.text().contains('1'));
    let began = Instant::now();
    official.call("switch_device", takes(999_000, "1")).await.text();
    assert_eq!(began.elapsed().as_secs(), 280);
}

#[tokio::test(start_paused = true)]
async fn twenty_calls_at_once_are_each_answered_with_their_own() {
    let (_bench, official, _) = bench(Pace::OLD);
    let call = |n: u64| {
        let official = official.clone();
        async move { (n, official.call("switch_device", takes((n * 37) % 900, &format!("第{n}号"))).await) }
    };
    for (n, told) in futures_util::future::join_all((0..20).map(call)).await {
        assert!(told.text().contains(&format!("第{n}号")), "{n}: {told:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn one_call_too_many_is_told_so() {
    let (_bench, official, _) = bench(Pace::OLD);
    let many: Vec<_> = (0..40)
        .map(|_| {
            tokio::spawn({
                let official = official.clone();
                async move { official.call("switch_device", takes(1_000, "1")).await }
            })
        })
        .collect();
    let mut refused = 0;
    for told in many {
        let told = told.await.unwrap();
        refused += usize::from(told.text().contains("queue_full"));
    }
    assert_eq!(refused, 8);
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_panics_and_one_that_is_not_there_are_answered_in_words() {
    let (_bench, official, _) = bench(Pace::OLD);
    assert!(official.call("panic", json!({})).await.text().starts_with("不确定"));
    let Told::Answer(answer) = official.call("open_sesame", json!({})).await else { panic!() };
    assert_eq!(answer["error"]["code"], -32_602);
    assert!(answer["error"]["message"].as_str().unwrap().starts_with("没有执行"));
    for method in ["resources/list", "prompts/list", "completion/complete", ""] {
        let Told::Answer(answer) = official.ask(method).await else { panic!() };
        assert_eq!(answer["error"]["code"], -32_601, "{method}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_mistake_of_the_hub_ends_the_line_and_not_the_endpoint() {
    let (bench, official, _) = bench(Pace::OLD);
    official.handshaken(1).await;
    bench.script.tools_are(&["panic!"]);
    until("it failed", || bench.counts.ends().contains(&EndWord::Failed)).await;
    bench.script.tools_are(&["ping"]);
    official.handshaken(2).await;
    assert!(official.call("ping", json!({})).await.text().contains('1'));
}

#[tokio::test(start_paused = true)]
async fn garbage_is_counted_and_the_line_goes_on() {
    let (bench, official, _) = bench(Pace::OLD);
    official.handshaken(1).await;
    let texts = [
        "",
        " \n",
        "{",
        "null",
        "[]",
        "[[]]",
        "7",
        "\"ping\"",
        "{}",
        r#"{"id":null,"method":"ping"}"#,
        r#"{"id":{"a":1},"method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":99,"result":{}}"#,
        r#"{"method":7}"#,
    ];
    let mut messages: Vec<Message> = texts.iter().map(|text| Message::text(*text)).collect();
    messages.push(Message::binary(vec![0xff, 0xfe, 0]));
    messages.push(Message::text("[".repeat(100_000)));
    let sent = messages.len();
    official.raw(messages);
    official
        .raw(vec![Message::text(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":5}}"#)]);
    assert!(official.call("switch_device", takes(1, "还在")).await.text().contains("还在"));
    assert_eq!(bench.counts.garbage.load(std::sync::atomic::Ordering::SeqCst), sent);
    assert_eq!(bench.status("home").connects, 1);
    assert!(!official.seen().iter().any(|seen| matches!(seen, Seen::Unasked(_))), "{:?}", official.seen());
}

#[tokio::test(start_paused = true)]
async fn a_message_that_is_too_large_ends_the_line_and_a_new_one_is_made() {
    let (bench, official, _) = bench(Pace::OLD);
    official.handshaken(1).await;
    official.raw(vec![Message::text("x".repeat(400_000))]);
    official.handshaken(2).await;
    assert_eq!(bench.counts.ends(), [EndWord::Garbled]);
    assert!(official.seen().contains(&Seen::Closed(Some(1009))), "{:?}", official.seen());
}

#[tokio::test(start_paused = true)]
async fn several_requests_in_one_message_are_each_refused_by_their_ids() {
    let (_bench, official, _) = bench(Pace::OLD);
    official.handshaken(1).await;
    official.raw(vec![Message::text(r#"[{"id":7,"method":"ping"},{"method":"x"},{"id":"a","method":"tools/list"}]"#)]);
    let unasked = || {
        official.seen().iter().any(
            |seen| matches!(seen, Seen::Unasked(text) if text.contains(r#""id":7,"#) && text.contains(r#""id":"a","#)),
        )
    };
    until("the array was refused", unasked).await;
}

#[tokio::test(start_paused = true)]
async fn after_each_loss_it_comes_back_within_seconds_and_after_a_good_minute_the_waits_begin_anew() {
    let (bench, official, _) = bench(Pace::OLD);
    for (n, loss) in [0, 1, 2, 3].into_iter().enumerate() {
        official.handshaken(n + 1).await;
        tokio::time::sleep(Duration::from_secs(90)).await;
        match loss {
            0 => official.close(4004, "Internal server error"),
            1 => official.drop_line(),
            2 => official.close(1000, ""),
            _ => official.close(1011, "gone"),
        }
        let lost = Instant::now();
        official.handshaken(n + 2).await;
        assert!(lost.elapsed() <= Duration::from_millis(2_100), "{loss}: {:?}", lost.elapsed());
    }
    assert_eq!(bench.counts.ends(), [EndWord::Unanswered, EndWord::Dropped, EndWord::Closed, EndWord::Closed]);
    assert_eq!(bench.status("home").last_end.unwrap().0.code, Some(1011));
}

#[tokio::test(start_paused = true)]
async fn a_call_whose_line_is_lost_is_given_up_and_the_next_line_is_none_the_wiser() {
    let (bench, official, _) = bench(Pace::OLD);
    official.handshaken(1).await;
    let call = tokio::spawn({
        let official = official.clone();
        async move { official.call("switch_device", takes(5_000, "1")).await }
    });
    tokio::time::sleep(Duration::from_secs(1)).await;
    official.drop_line();
    assert_eq!(call.await.unwrap(), Told::Lost);
    official.handshaken(2).await;
    tokio::time::sleep(Duration::from_secs(20)).await;
    assert_eq!(bench.script.cancelled.load(std::sync::atomic::Ordering::SeqCst), 1);
    assert!(!official.seen().iter().any(|seen| matches!(seen, Seen::Unasked(_))));
}

#[tokio::test(start_paused = true)]
async fn a_peer_that_froze_is_given_up_after_two_pings_that_did_not_come() {
    let (bench, official, pipes) = bench(Pace::OLD);
    official.handshaken(1).await;
    let began = Instant::now();
    official.freeze();
    pipes.cut();
    until("the silence was heard", || bench.counts.ends() == [EndWord::Silent]).await;
    assert!((125..=131).contains(&began.elapsed().as_secs()), "{:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn an_access_point_that_is_away_is_tried_with_growing_waits_of_at_most_a_minute() {
    let (pipes, door) = Pipes::new();
    pipes.down(true);
    let bench = Bench::new(pipes.clone(), 8_000);
    bench.endpoints.add(settings("home", OFFICIAL_URL)).unwrap();
    tokio::time::sleep(Duration::from_secs(3_600)).await;
    let tries = bench.counts.ends().len();
    assert!((60..=240).contains(&tries), "{tries}");
    assert!(bench.counts.ends().iter().all(|end| *end == EndWord::Unreachable));
    pipes.down(false);
    let back = Instant::now();
    Official::start(door, Pace::OLD).handshaken(1).await;
    assert!(back.elapsed() <= Duration::from_secs(61), "{:?}", back.elapsed());
}

#[tokio::test(start_paused = true)]
async fn the_line_is_renewed_only_when_other_tools_have_settled_and_nobody_is_waiting() {
    let (bench, official, _) = bench(Pace::NEW);
    official.handshaken(1).await;
    tokio::time::sleep(Duration::from_secs(100)).await;
    bench.script.touch();
    tokio::time::sleep(Duration::from_secs(100)).await;
    assert_eq!(official.handshakes(), 1, "nothing has changed");
    let call = tokio::spawn({
        let official = official.clone();
        async move { official.call("switch_device", takes(7_900, "1")).await }
    });
    tokio::time::sleep(Duration::from_secs(1)).await;
    bench.script.tools_are(&["ping"]);
    assert!(call.await.unwrap().text().contains('1'));
    assert_eq!(official.handshakes(), 1, "a call was in flight");
    official.handshaken(2).await;
    assert_eq!(bench.counts.ends(), [EndWord::ToolsChanged]);
    assert_eq!(official.seen().iter().filter(|seen| matches!(seen, Seen::Closed(Some(1000)))).count(), 1);
    assert_eq!(official.seen().last(), Some(&Seen::Tools(vec!["ping".to_owned()])));
}

#[tokio::test(start_paused = true)]
async fn devices_that_greet_one_after_the_other_renew_the_line_once() {
    let (bench, official, _) = bench(Pace::OLD);
    official.handshaken(1).await;
    for n in 0..20 {
        bench.script.tools_are(&[&format!("tool_{n}")]);
        tokio::time::sleep(Duration::from_secs(2)).await;
    }
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(official.handshakes(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_stop_answers_who_waits_and_closes_the_line() {
    let (bench, official, _) = bench(Pace::OLD);
    official.handshaken(1).await;
    let call = tokio::spawn({
        let official = official.clone();
        async move { official.call("switch_device", takes(500, "最后")).await }
    });
    tokio::time::sleep(Duration::from_millis(10)).await;
    assert!(bench.endpoints.stop().await, "closed cleanly");
    assert!(call.await.unwrap().text().contains("最后"));
    until("the broker saw the close", || official.seen().last() == Some(&Seen::Closed(Some(1000)))).await;
    assert_eq!(bench.endpoints.add(settings("home", OFFICIAL_URL)), Err(AddError::Stopping));
}

#[tokio::test(start_paused = true)]
async fn one_agent_twice_is_an_error_that_names_both() {
    let (bench, _official, _) = bench(Pace::OLD);
    let error = bench.endpoints.add(settings("kitchen", OFFICIAL_URL)).unwrap_err().to_string();
    assert!(error.contains("home") && error.contains("kitchen") && !error.contains("token=official"), "{error}");
    assert_eq!(
        bench.endpoints.add(settings("home", "ws://elsewhere/mcp/?token=x")),
        Err(AddError::SameName("home".into()))
    );
}

#[tokio::test(start_paused = true)]
async fn the_hub_pings_a_line_that_would_otherwise_be_idle() {
    let (_bench, official, _) = bench(Pace::OLD);
    official.handshaken(1).await;
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(official.times(|seen| *seen == Seen::WsPing).len(), 12);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_runs_when_its_line_is_closed_on_this_side_is_told_that_it_is_not_known() {
    for removed in [true, false] {
        let (bench, official, _) = bench(Pace::OLD);
        official.handshaken(1).await;
        let call = official.call("switch_device", takes(7_000, "开灯"));
        let closing = async {
            until("the call runs", || bench.status("home").calls == 1).await;
            if removed {
                bench.endpoints.remove("home").await.unwrap();
            } else {
                bench.endpoints.restart("home").unwrap();
            }
        };
        let (told, ()) = tokio::join!(call, closing);
        let Told::Answer(answer) = &told else { panic!("{told:?}") };
        assert_eq!((&answer["error"]["code"], answer.get("result")), (&json!(-32_603), None), "{answer}");
        assert!(answer["error"]["message"].as_str().unwrap().starts_with("不确定"), "{answer}");
        assert_eq!(bench.script.cancelled.load(std::sync::atomic::Ordering::SeqCst), 1, "who works for it ends");
        let end = if removed { EndWord::Stopped } else { EndWord::Restarted };
        until("it has ended", || bench.counts.ends() == [end]).await;
    }
}
