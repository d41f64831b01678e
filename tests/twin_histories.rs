//! Random histories of one twin and a model board, with the invariants of semantics 9 checked after each input.
//!
//! The same 2000 in each run; `PROPTEST_CASES=20000 cargo test --test twin_histories` lives as many others, each time new
//! ones.

#[path = "twin_histories/board.rs"]
mod board;
#[path = "twin_histories/invariants.rs"]
mod invariants;
#[path = "twin_histories/world.rs"]
mod world;

use std::collections::BTreeSet;

use board::{FAULTS, Fault};
use proptest::{
    prelude::*,
    sample::select,
    strategy::ValueTree,
    test_runner::{Config, RngAlgorithm, RngSeed, TestRng, TestRunner},
};
use world::{Setting, Step, World};

type History = (Setting, Vec<(u64, Step)>);

/// Longest a twin may grow, bytes of its debug text: 64 records of some 900 are the most of it.
const TWIN_BYTES_MAX: usize = 120_000;

fn setting() -> impl Strategy<Value = Setting> {
    let times = (select(vec![0, 200]), select(vec![100, 300, 3_000, 20_000]));
    let start = (select(vec![0, 3_600]), select(vec![0, 0, 0, 5_000]));
    let rare = || prop::bool::weighted(0.25);
    let kind = (rare(), rare(), rare(), rare());
    (any::<u64>(), times, (any::<bool>(), select(vec![0, 500])), start, kind).prop_map(
        |(
            seed,
            (stable_ms, expected_ms),
            (pin, min_interval_ms),
            (hub_age_s, absent_ms),
            (metered, held, preempts, exclusive),
        )| Setting {
            seed,
            stable_ms,
            expected_ms,
            pin,
            min_interval_ms,
            hub_age_s,
            absent_ms,
            metered,
            held,
            preempts,
            exclusive,
        },
    )
}

fn step() -> impl Strategy<Value = Step> {
    let limit = || select(vec![40, 200, 700, 1_500, 4_000, 8_000, 30_000]);
    let away = || select(vec![0, 50, 1_000, 4_000, 70_000]);
    prop_oneof![
        12 => (any::<bool>(), limit(), 0_usize..3, prop::bool::weighted(0.2))
            .prop_map(|(on, limit_ms, who, needed)| Step::Set { on, limit_ms, who, needed }),
        5 => (limit(), 0_usize..3).prop_map(|(limit_ms, who)| Step::Toggle { limit_ms, who }),
        4 => (any::<bool>(), limit(), 0_usize..3)
            .prop_map(|(on, limit_ms, who)| Step::Other { on, limit_ms, who }),
        1 => (2_u64..14).prop_map(|sets| Step::Burst { sets }),
        2 => limit().prop_map(|limit_ms| Step::Query { limit_ms }),
        1 => limit().prop_map(|limit_ms| Step::Run { limit_ms }),
        2 => (0_usize..4).prop_map(|back| Step::Cancel { back }),
        5 => select(FAULTS.to_vec()).prop_map(Step::Fault),
        3 => Just(Step::Repair),
        3 => any::<bool>().prop_map(|told| Step::Touch { told }),
        2 => Just(Step::Periodic),
        1 => Just(Step::Heartbeat),
        2 => (away(), any::<bool>()).prop_map(|(away_ms, noticed)| Step::Drop { away_ms, noticed }),
        1 => away().prop_map(|away_ms| Step::Reboot { away_ms }),
        2 => any::<bool>().prop_map(|retained| Step::Leftover { retained }),
        1 => select(vec![50, 300]).prop_map(|permille| Step::Noise { permille }),
        1 => Just(Step::Restart),
        1 => select(vec![1, 30, 800]).prop_map(|ms| Step::Lag { ms }),
        1 => Just(Step::Tick),
        1 => Just(Step::Unreadable),
        1 => any::<bool>().prop_map(|down| Step::Bus { down }),
        1 => prop_oneof![9 => Just(Step::Wait), 1 => Just(Step::ShutDown), 1 => Just(Step::Removed)],
    ]
}

/// A wish of the first caller.
fn set(on: bool, limit_ms: u64) -> Step {
    Step::Set { on, limit_ms, who: 0, needed: false }
}

fn history() -> impl Strategy<Value = History> {
    let pause = select(vec![0, 1, 5, 20, 100, 250, 600, 1_100, 2_600, 9_000]);
    (setting(), prop::collection::vec((pause, step()), 1..60))
}

/// Lives a history to its end and a while longer: everybody is answered, nothing is left.
fn live((setting, steps): &History) -> World {
    let mut world = World::new(*setting);
    world.run(50);
    for (pause, step) in steps {
        let until = world.now + pause;
        world.run(until);
        world.step(step);
    }
    let until = world.now + 700_000;
    world.run(until);
    assert!(world.twin.in_flight() == 0 || setting.held, "something lives for ever");
    assert!(invariants::size(&world) < TWIN_BYTES_MAX, "{}", invariants::size(&world));
    world
}

fn cases(default: u32) -> Config {
    let config = Config::default();
    let (cases, rng_seed) = match std::env::var_os("PROPTEST_CASES") {
        Some(_) => (config.cases, config.rng_seed),
        None => (default, RngSeed::Fixed(1)),
    };
    Config { cases, rng_seed, failure_persistence: None, max_shrink_iters: 20_000, ..config }
}

proptest! {
    #![proptest_config(cases(2_000))]

    #[test]
    fn every_history_keeps_the_invariants(history in history()) {
        live(&history);
    }
}

proptest! {
    #![proptest_config(cases(200))]

    /// The other half of honesty: what can be known to be done is said to be done. Of wishes for a value the last wins, and
    /// those before it converge or hear so; every toggle toggles; and however many speak, the relay keeps its interval.
    #[test]
    fn s8_3_on_a_good_day_every_wish_converges(
        setting in setting(),
        wishes in prop::collection::vec((prop::option::of(any::<bool>()), 0_u64..2_000, 0_usize..3), 1..8),
    ) {
        let mut world = World::new(Setting { expected_ms: 300, absent_ms: 0, metered: false, held: false, ..setting });
        world.run(50);
        let mut last = false;
        for (on, pause, who) in wishes {
            let until = world.now + pause;
            world.run(until);
            let limit_ms = 30_000;
            last = on.unwrap_or(!last);
            world.step(&match on {
                Some(on) => Step::Set { on, limit_ms, who, needed: false },
                None => Step::Toggle { limit_ms, who },
            });
        }
        let until = world.now + 30_000;
        world.run(until);
        prop_assert_eq!(world.board.relay, last);
        for (number, (op, caller)) in world.callers.iter().enumerate() {
            let settled = world.twin.check(world.time(world.now), Some(op)).expect("a record");
            let is_last = number + 1 == world.callers.len();
            let fine = settled.outcome.as_str() == "converged" || (!is_last && settled.outcome.as_str() == "superseded");
            prop_assert!(fine, "{} {:?}", op, settled);
            prop_assert_eq!(caller.replies.len(), 1);
        }
        for pair in world.board.drives.windows(2) {
            let interval = u64::from(setting.min_interval_ms);
            prop_assert!(pair[1].at - pair[0].at >= interval, "driven after {} ms", pair[1].at - pair[0].at);
        }
    }
}

/// The histories are worth something only if they come everywhere.
#[test]
fn random_histories_reach_every_outcome_of_a_twin() {
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[7; 32]);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    let mut reached = BTreeSet::new();
    for _ in 0..300 {
        let history = history().new_tree(&mut runner).expect("a history").current();
        reached.extend(live(&history).outcomes);
    }
    for word in [
        "converged",
        "working",
        "rejected",
        "failed",
        "contradicted",
        "timed_out",
        "interrupted",
        "device_crashed",
        "sent_unverified",
        "verifier_offline",
        "local_override",
        "pursued",
        "cancelled",
        "already",
        "superseded",
        "owed",
        "state_unknown",
        "late_success",
        "reverted",
        "offline",
        "hub_just_started",
        "broker_down",
        "queue_full",
        "deadline_too_short",
        "shutting_down",
        "removed",
        "asked",
        "told",
        "online",
        "suspected",
        "retained",
        "old_boot",
        "duplicate",
    ] {
        assert!(reached.contains(word), "{word} was not reached: {reached:?}");
    }
}

/// A history of a board with a read-back at the pad that must hold for 200 ms.
fn relay(seed: u64) -> Setting {
    Setting {
        seed,
        stable_ms: 200,
        expected_ms: 300,
        pin: true,
        min_interval_ms: 0,
        hub_age_s: 3_600,
        absent_ms: 0,
        metered: false,
        held: false,
        preempts: false,
        exclusive: false,
    }
}

#[test]
fn a_history_without_a_fault_converges() {
    let world = live(&(relay(1), vec![(0, set(true, 8_000))]));
    assert!(world.outcomes.contains("converged") && world.board.relay);
}

#[test]
fn a_board_that_thaws_late_moves_nothing() {
    let steps = vec![(0, Step::Fault(Fault::Frozen)), (0, set(true, 8_000)), (9_000, Step::Repair)];
    let world = live(&(relay(1), steps));
    assert!(world.outcomes.contains("timed_out") && !world.board.relay && world.board.drives.is_empty());
}

// Histories that once broke an invariant.

#[test]
fn a_lying_boards_word_after_a_restart_is_no_late_success() {
    let setting = Setting {
        seed: 0,
        stable_ms: 0,
        expected_ms: 3_000,
        pin: false,
        min_interval_ms: 0,
        hub_age_s: 0,
        absent_ms: 0,
        metered: false,
        held: false,
        preempts: false,
        exclusive: false,
    };
    let steps = vec![(0, set(true, 200)), (0, Step::Fault(Fault::Lying)), (0, Step::Restart)];
    live(&(setting, steps));
}

#[test]
fn an_older_report_does_not_confirm_a_lying_boards_word() {
    let setting = Setting {
        seed: 18_199_189_822_204_403_662,
        stable_ms: 0,
        expected_ms: 300,
        pin: false,
        min_interval_ms: 0,
        hub_age_s: 0,
        absent_ms: 0,
        metered: false,
        held: false,
        preempts: false,
        exclusive: false,
    };
    let steps = vec![
        (0, Step::Drop { away_ms: 0, noticed: true }),
        (0, set(false, 200)),
        (0, Step::Touch { told: false }),
        (0, Step::Periodic),
        (250, set(true, 200)),
        (20, Step::Drop { away_ms: 4_000, noticed: false }),
        (0, Step::Fault(Fault::Lying)),
        (0, Step::Touch { told: true }),
        (0, set(false, 40)),
    ];
    live(&(setting, steps));
}

#[test]
fn a_value_in_a_report_about_another_operation_is_no_late_success_of_an_earlier_one() {
    let setting = Setting {
        seed: 8_458_165_482_928_126_552,
        stable_ms: 0,
        expected_ms: 3_000,
        pin: true,
        min_interval_ms: 0,
        hub_age_s: 0,
        absent_ms: 0,
        metered: false,
        held: false,
        preempts: false,
        exclusive: false,
    };
    let steps = vec![
        (0, set(true, 200)),
        (0, Step::Fault(Fault::WrongType)),
        (0, set(false, 4_000)),
        (1_100, Step::Noise { permille: 50 }),
        (100, Step::Fault(Fault::NoCompletion)),
        (1_100, Step::Leftover { retained: false }),
        (2_600, Step::Query { limit_ms: 40 }),
        (1_100, Step::Touch { told: false }),
        (0, Step::Repair),
        (0, Step::Fault(Fault::Frozen)),
        (0, set(false, 200)),
        (250, Step::Fault(Fault::Frozen)),
    ];
    live(&(setting, steps));
}

#[test]
fn s4_4_what_a_reboot_undid_is_not_repeated_while_a_newer_value_waits_behind_it() {
    let setting = Setting { stable_ms: 0, pin: false, hub_age_s: 0, ..relay(361_956_955_936_609_524) };
    let steps = vec![
        (0, set(false, 1_500)),
        (250, Step::Reboot { away_ms: 1_000 }),
        (0, Step::Burst { sets: 7 }),
        (0, Step::Toggle { limit_ms: 1_500, who: 0 }),
    ];
    live(&(setting, steps));
}

#[test]
fn s5_3_what_an_earlier_sending_may_have_brought_is_not_refused() {
    let setting = Setting {
        stable_ms: 0,
        expected_ms: 3_000,
        pin: false,
        hub_age_s: 0,
        absent_ms: 5_000,
        ..relay(15_898_175_669_082_757_758)
    };
    let steps = vec![
        (0, set(false, 40)),
        (9_000, Step::Noise { permille: 50 }),
        (0, Step::Leftover { retained: false }),
        (0, Step::Touch { told: true }),
        (0, set(false, 200)),
        (2_600, set(false, 200)),
        (0, Step::Touch { told: true }),
        (0, Step::Repair),
        (2_600, Step::Cancel { back: 0 }),
        (0, set(false, 200)),
        (100, Step::Reboot { away_ms: 0 }),
        (0, Step::Noise { permille: 300 }),
        (1, Step::Touch { told: true }),
        (20, Step::Periodic),
        (0, set(false, 40)),
        (0, set(false, 200)),
        (5, Step::Drop { away_ms: 0, noticed: false }),
        (0, Step::Bus { down: true }),
    ];
    live(&(setting, steps));
}

#[test]
fn s3_10_what_a_meter_says_of_the_run_before_is_no_proof_of_this_one() {
    let setting = Setting { pin: false, hub_age_s: 0, metered: true, ..relay(9_971_211_412_633_779_128) };
    let steps = vec![
        (0, set(true, 200)),
        (0, Step::Run { limit_ms: 700 }),
        (0, Step::Query { limit_ms: 40 }),
        (0, Step::Toggle { limit_ms: 700, who: 0 }),
        (1_100, Step::Query { limit_ms: 40 }),
        (0, Step::Drop { away_ms: 1_000, noticed: true }),
        (0, Step::Periodic),
        (250, Step::Repair),
        (600, set(true, 700)),
        (250, set(true, 40)),
        (0, Step::Restart),
        (250, Step::Burst { sets: 4 }),
        (250, set(false, 40)),
        (250, Step::Reboot { away_ms: 0 }),
        (100, set(false, 40)),
    ];
    live(&(setting, steps));
}
