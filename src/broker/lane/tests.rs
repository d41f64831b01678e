#![allow(clippy::unwrap_used)]

use std::collections::VecDeque;

use proptest::prelude::*;

use super::*;

const ROOM: u64 = 400;

/// What the router's log is sure to keep; the real one keeps twice the room as well.
const KEEPS: u64 = 2 * ROOM;

/// Canaries inside the router at most.
const CANARIES_MAX: usize = 8;

/// A router that forgets its oldest frames when its log is full, as the real one does, or for no reason, and dies.
struct Rig {
    lane: Lane<u64>,
    router: VecDeque<Bytes>,
    pushed: u64,
    came: Vec<u64>,
    now_ms: u64,
    /// Frames that went into the router, and those that it forgot because its log was full.
    injected: u64,
    rotated_away: u64,
}

impl Rig {
    fn new() -> Self {
        Self {
            lane: Lane::new(2, ROOM),
            router: VecDeque::new(),
            pushed: 0,
            came: Vec::new(),
            now_ms: 0,
            injected: 0,
            rotated_away: 0,
        }
    }

    fn push(&mut self) {
        let number = self.pushed;
        self.lane.push(number, 8, |out| out.put_u64(number));
        self.pushed += 1;
        self.pump();
    }

    fn pump(&mut self) {
        while let Some(frame) = self.lane.next_to_inject() {
            self.injected += 1;
            self.goes_in(frame);
        }
    }

    fn goes_in(&mut self, frame: Bytes) {
        self.router.push_back(frame);
        while self.inside_the_router() > KEEPS {
            self.router.pop_front();
            self.rotated_away += 1;
        }
    }

    fn inside_the_router(&self) -> u64 {
        self.router.iter().map(|frame| self.lane.counted(frame)).sum()
    }

    fn read(&mut self) -> Option<Arrived<u64>> {
        let frame = self.router.pop_front()?;
        let arrived = self.lane.arrived(&frame, self.now_ms);
        self.pump();
        if let Arrived::Next(body, cargo) = &arrived {
            assert_eq!(body.as_ref(), cargo.to_be_bytes(), "the body belongs to its cargo");
            self.came.push(*cargo);
        }
        Some(arrived)
    }

    fn canary(&mut self) {
        // A router that gave out none of so many has been given up.
        let unread = self.router.iter().filter(|frame| frame.len() == CANARY_BYTES).count();
        if unread >= CANARIES_MAX {
            return;
        }
        let canary = self.lane.canary();
        self.goes_in(canary);
    }

    fn die(&mut self) {
        self.router.clear();
        self.lane.restart(self.now_ms);
        self.pump();
    }

    /// Reads all there is, with a canary now and then, as the supervisor sends them.
    fn settle(&mut self) {
        for _ in 0..2 * self.pushed + 4 {
            while self.read().is_some() {}
            self.canary();
        }
    }

    fn all_came_once_and_in_order(&self) {
        assert_eq!(self.came, (0..self.pushed).collect::<Vec<_>>());
        assert_eq!((self.lane.waiting_frames(), self.lane.waiting_bytes()), (0, 0));
    }
}

#[test]
fn frames_come_out_in_order_with_what_belongs_to_them() {
    let mut rig = Rig::new();
    for _ in 0..5 {
        rig.push();
    }
    while rig.read().is_some() {}
    rig.all_came_once_and_in_order();
}

#[test]
fn no_more_than_the_room_is_inside_the_router() {
    let mut rig = Rig::new();
    for _ in 0..1000 {
        rig.push();
    }
    let each = 16 + 2 + LOG_OVERHEAD_BYTES;
    assert_eq!(rig.router.len() as u64, ROOM.div_ceil(each));
    while rig.read().is_some() {
        assert!(rig.router.len() as u64 <= ROOM.div_ceil(each));
    }
    rig.all_came_once_and_in_order();
}

#[test]
fn after_a_gap_the_lane_goes_back_once_and_nothing_comes_twice() {
    let mut rig = Rig::new();
    for _ in 0..4 {
        rig.push();
    }
    rig.router.pop_front();
    assert_eq!(rig.read(), Some(Arrived::Gap(4)));
    assert_eq!(rig.read(), Some(Arrived::StillGap));
    assert_eq!(rig.read(), Some(Arrived::StillGap));
    while rig.read().is_some() {}
    rig.all_came_once_and_in_order();
}

#[test]
fn a_canary_tells_of_a_lost_tail() {
    let mut rig = Rig::new();
    rig.push();
    rig.router.clear();
    rig.canary();
    assert_eq!(rig.read(), Some(Arrived::Gap(1)));
    assert!(matches!(rig.read(), Some(Arrived::Next(..))));
    rig.now_ms = 77;
    rig.canary();
    assert_eq!(rig.read(), Some(Arrived::Canary));
    assert_eq!(rig.lane.canary_age_ms(100), 23);
    rig.all_came_once_and_in_order();
}

#[test]
fn what_was_sent_in_vain_is_counted_until_it_came_out() {
    let mut rig = Rig::new();
    for _ in 0..1000 {
        rig.push();
    }
    rig.router.pop_front();
    while rig.came.len() < 1000 {
        rig.read().expect("there is always something in the router");
        assert!(rig.inside_the_router() <= ROOM + 22, "going back sends no more than there is room for");
    }
    assert_eq!(rig.injected - 1000, ROOM.div_ceil(22), "only what was inside at the gap was sent again");
    rig.settle();
    rig.all_came_once_and_in_order();
}

#[test]
fn what_the_router_forgot_takes_no_room_for_ever() {
    let mut rig = Rig::new();
    for _ in 0..1000 {
        rig.push();
    }
    rig.router.clear();
    assert_eq!(rig.lane.next_to_inject(), None, "it may be inside yet");
    rig.canary();
    assert_eq!(rig.read(), Some(Arrived::Gap(ROOM.div_ceil(22))));
    assert!(!rig.router.is_empty(), "the canary told that it is not");
    rig.settle();
    rig.all_came_once_and_in_order();
}

#[test]
fn what_is_no_frame_is_foreign() {
    let mut lane = Lane::<()>::new(2, ROOM);
    for bytes in [&b""[..], b"short", &0u64.to_be_bytes(), &CANARY.to_be_bytes()] {
        assert_eq!(lane.arrived(&Bytes::copy_from_slice(bytes), 0), Arrived::Foreign);
    }
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Push,
    Read,
    Forget,
    Canary,
    Die,
    Wait(u16),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        6 => Just(Step::Push),
        6 => Just(Step::Read),
        1 => Just(Step::Forget),
        1 => Just(Step::Canary),
        1 => Just(Step::Die),
        1 => (0u16..400).prop_map(Step::Wait),
    ];
    proptest::collection::vec(step, 0..200)
}

proptest! {
    #[test]
    fn whatever_the_router_forgets_and_however_often_it_dies_all_come_once_and_in_order(steps in steps()) {
        let mut rig = Rig::new();
        for step in steps {
            match step {
                Step::Push => rig.push(),
                Step::Read => { rig.read(); }
                Step::Forget => { rig.router.pop_front(); }
                Step::Canary => rig.canary(),
                Step::Die => rig.die(),
                Step::Wait(ms) => rig.now_ms += u64::from(ms),
            }
            let counted: usize = rig.lane.waiting.iter().map(|(frame, _)| frame.len()).sum();
            prop_assert_eq!(rig.lane.waiting_bytes(), counted);
            prop_assert!(rig.inside_the_router() <= rig.lane.inside(), "never fewer than there are");
        }
        prop_assert_eq!(rig.rotated_away, 0, "what is inside stays below what the router may rotate away");
        rig.settle();
        rig.all_came_once_and_in_order();
    }
}
