//! Hours of an access point's life, with everything that happens to one, in random order.

use std::{sync::Arc, time::Duration};

use tokio::time::{Instant, sleep};
use tokio_tungstenite::tungstenite::Message;
use truetwin::endpoint::Outside;

use super::{
    bench::{Bench, OFFICIAL_URL, RELAY_URL, settings, takes},
    official::{Official, Pace, Seen, Told},
    relay::Relay,
    voice::{Heard, VoiceBox},
    wire::Pipes,
};

/// Each of them.
const HOURS: Duration = Duration::from_secs(6 * 3_600);

/// Until a line that was cut off is there again, at the most: 130 s of silence, the longest wait, a dial that hangs.
const BACK_WITHIN: Duration = Duration::from_secs(130 + 60 + 15 + 60);

/// A random sequence that is the same for the same seed (xorshift).
struct Chance(u64);

impl Chance {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}

async fn hours_at_the_official_one(seed: u64) {
    let mut chance = Chance(0x9e37_79b9_7f4a_7c15 ^ (seed + 1));
    let (pipes, door) = Pipes::new();
    let bench = Bench::new(pipes.clone(), 8_000);
    bench.endpoints.add(settings("home", OFFICIAL_URL)).unwrap();
    let official = Official::start(door, Pace::OLD);
    let (ends_at, mut said, mut answered) = (Instant::now() + HOURS, 0_u64, 0_u64);
    while Instant::now() < ends_at {
        sleep(Duration::from_secs(chance.below(240))).await;
        let handshakes = official.handshakes();
        let calls = (0..1 + chance.below(4)).map(|_| {
            said += 1;
            let (say, ms, official) = (format!("第{said}句"), chance.below(12_000), official.clone());
            tokio::spawn(async move { (say.clone(), ms, official.call("switch_device", takes(ms, &say)).await) })
        });
        let calls: Vec<_> = calls.collect();
        sleep(Duration::from_millis(chance.below(9_000))).await;
        let mut is_disturbed = true;
        let act = chance.below(12);
        match act {
            0 => official.drop_line(),
            1 => official.close(4004, "Internal server error"),
            2 => official.close(1000, ""),
            3 => pipes.cut(),
            4 => official.freeze(),
            5 => {
                pipes.down(true);
                official.drop_line();
                sleep(Duration::from_secs(chance.below(900))).await;
                pipes.down(false);
            }
            6 => official.raw(vec![Message::text("{"), Message::binary(vec![0xff]), Message::text("[{\"id\":null}]")]),
            7 => bench.script.tools_are(&["switch_device", &format!("tool_{said}")]),
            8 => official.raw(vec![Message::text("x".repeat(300_000))]),
            _ => is_disturbed = false,
        }
        if matches!(act, 0..=5 | 8) {
            let by = Instant::now() + BACK_WITHIN;
            while official.handshakes() <= handshakes {
                let told = || format!("seed {seed}, {act}: {:?} {:?}", bench.status("home"), bench.counts.ends());
                assert!(Instant::now() < by, "{}", told());
                sleep(Duration::from_secs(1)).await;
            }
        }
        for call in calls {
            match call.await.unwrap() {
                (say, ms, told @ Told::Answer(_)) => {
                    answered += 1;
                    let is_own = told.text().contains(&say) || (ms >= 8_000 && told.text().starts_with("不确定"));
                    assert!(is_own, "seed {seed}: {say} was answered with {told:?}");
                }
                (say, _, told) => assert!(is_disturbed, "seed {seed}: {say} had {told:?}"),
            }
        }
    }
    assert!(answered > said / 2, "seed {seed}: {answered} of {said}");
    for seen in official.seen() {
        match seen {
            Seen::Pong(after) => assert_eq!(after, Duration::ZERO, "seed {seed}: a ping waited"),
            Seen::Unasked(text) => panic!("seed {seed}: nobody asked for {text}"),
            Seen::Late => panic!("seed {seed}: an answer came after the other side had given up"),
            Seen::Opened(_) | Seen::Tools(_) | Seen::GaveUp | Seen::Closed(_) | Seen::Lost | Seen::WsPing => {}
        }
    }
    assert!(bench.counts.connected.load(std::sync::atomic::Ordering::SeqCst) > 10, "seed {seed}");
}

#[tokio::test(start_paused = true)]
async fn hours_of_everything_at_the_official_one_loses_no_call_to_the_hub() {
    for seed in 0..3 {
        hours_at_the_official_one(seed).await;
    }
}

async fn hours_at_a_relay(seed: u64) {
    let mut chance = Chance(0xd1b5_4a32_d192_ed03 ^ (seed + 1));
    let (pipes, door) = Pipes::new();
    let relay = Relay::start(door, 1);
    let start = |is_unclean| {
        let outside = Outside { reach: Arc::new(pipes.clone()), is_unclean, ..Outside::default() };
        let bench = Bench::with(outside, 20_000);
        bench.endpoints.add(settings("home", RELAY_URL)).unwrap();
        bench
    };
    let mut bench = start(false);
    let ends_at = Instant::now() + HOURS;
    while Instant::now() < ends_at {
        sleep(Duration::from_secs(chance.below(300))).await;
        // A line that was cut off is noticed after a while; until then a question is lost on it.
        let by = Instant::now() + BACK_WITHIN;
        while bench.endpoints.probe("home").await.unwrap().as_str() != "routed" {
            assert!(Instant::now() < by, "seed {seed}: {:?} {:?}", bench.status("home"), relay.seen());
            sleep(Duration::from_secs(1)).await;
        }
        let mut boxes = Vec::new();
        for n in 0..1 + chance.below(3) {
            let mut voice = VoiceBox::dial(&pipes, "relay:8004").await;
            assert!(!voice.handshake().await.is_empty());
            let (ms, say) = (chance.below(15_000), format!("{n}号"));
            boxes.push(tokio::spawn(async move { (say.clone(), voice.say("switch_device", takes(ms, &say)).await) }));
        }
        sleep(Duration::from_millis(chance.below(16_000))).await;
        let mut is_disturbed = true;
        match chance.below(9) {
            0 => pipes.cut(),
            1 => relay.raw(Message::Close(None)).await,
            2 => bench.script.tools_are(&["switch_device", &format!("tool_{}", chance.below(1_000))]),
            // A clean restart of the hub.
            3 => {
                let is_clean = bench.endpoints.stop().await;
                sleep(Duration::from_secs(1)).await;
                bench = start(!is_clean);
            }
            // The power is cut, and comes back.
            4 => {
                pipes.cut();
                bench.endpoints.stop().await;
                sleep(Duration::from_secs(chance.below(40))).await;
                bench = start(true);
            }
            _ => is_disturbed = false,
        }
        for voice in boxes {
            match voice.await.unwrap() {
                (say, Heard::Model(text)) => assert!(text.contains(&say), "seed {seed}: {say} heard {text}"),
                (say, told) => assert!(is_disturbed, "seed {seed}: {say} heard {told:?}"),
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn hours_of_everything_at_a_relay_never_makes_it_hang_or_forget() {
    for seed in 0..3 {
        hours_at_a_relay(seed).await;
    }
}
