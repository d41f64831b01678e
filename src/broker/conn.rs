//! A client's connection, a device's or an account's, as both sides see it: the session's task writes and reads, the bus's readers put commands in
//! and acknowledgements out, the registry ends it. One lock, held for microseconds, never over a wait.
//!
//! Order of locks: registry, then one connection's state, then credits or a lane. Never two connections at once.

use std::{
    collections::VecDeque,
    fmt,
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    task::Waker,
};

use bytes::Bytes;
use tokio::sync::mpsc::OwnedPermit;

use super::{
    Closed, FromDevice, MqttVersion,
    core::{Core, Newcomer, lock},
    counters::count,
    door::codec::{Reason, encode},
    relay::{Account, AccountState},
    rivals::{Origin, Rivals},
};
use crate::peer::Seat;

/// How often a session with nothing but acknowledgements to write steps back behind the tasks that are ready. A report that
/// ends an operation is followed by its answer, some four tasks further; the acknowledgement, which nobody waits for, costs a
/// write and wakes the device's side. So the answer leaves first, and the acknowledgements of a busy moment leave together.
const STEPS_BACK: u8 = 6;

/// A place in the hub's channel, reserved before the message goes on its way.
pub(super) type Place = OwnedPermit<FromDevice>;

pub(super) struct Conn {
    /// Who it is: the device's or the account's name.
    pub(super) name: Arc<str>,
    pub(super) number: u64,
    pub(super) version: MqttVersion,
    /// Milliseconds without a packet after which it is given up: 1.5 times its keep-alive (MQTT 3.1.2.10).
    pub(super) silence_ms: u64,
    /// The device's Maximum Packet Size (v5), else no limit.
    pub(super) packet_bytes_max: usize,
    /// Where it came from.
    pub(super) origin: Origin,
    /// Its place among those of its address.
    pub(super) seat: Seat,
    /// Its role, if it is no device's.
    account: Option<Account>,
    heard_ms: AtomicU64,
    state: Mutex<State>,
}

/// What changes, under the connection's lock.
#[derive(Default)]
pub(super) struct State {
    /// Bytes that wait for the socket.
    pub(super) out: Vec<u8>,
    /// Bytes ever put into `out`, and bytes of them written to the socket.
    queued_bytes: u64,
    written_bytes: u64,
    /// Commands in `out`, in order.
    commands: VecDeque<Command>,
    /// QoS 1 reports that are not acknowledged, in the order in which they came (MQTT 4.6: acknowledged in that order).
    window: VecDeque<Slot>,
    /// The number of the window's first slot.
    first_slot: u64,
    waker: Option<Waker>,
    /// See [`STEPS_BACK`]; 0 when something urgent waits, or nothing.
    steps_back: u8,
    /// Others who want its name.
    pub(super) rivals: Rivals,
    /// It is in line for credits.
    pub(super) held_back: bool,
    /// As much of it is held back as may be: it is not read.
    pub(super) full: bool,
    /// Since when it is known that it has gone, while what it said before is still to be worked off.
    going_ms: Option<u64>,
    /// Nobody was kicked meanwhile: it is in, and its will counts. Before that it has none, whoever ends it.
    pub(super) let_in: bool,
    /// It has subscribed to its command topic.
    pub(super) subscribed: bool,
    /// The session is asked to write what waits, then to end.
    pub(super) closing: Option<Closed>,
    /// It has ended, and that was told.
    pub(super) closed: Option<Closed>,
    /// The will, and the places for telling it and the end; there until it has ended.
    pub(super) end: Option<End>,
    /// What an account has; there until it has ended.
    pub(super) account: Option<Box<AccountState>>,
}

/// What is needed to tell a connection's end, kept from its beginning so that it can always be told.
pub(super) struct End {
    pub(super) will: Option<Bytes>,
    pub(super) will_place: Place,
    pub(super) end_place: Place,
}

/// A command whose bytes wait for the socket.
pub(super) struct Command {
    ends_at: u64,
    pub(super) ticket: u64,
    pub(super) place: Place,
    /// Its bytes, if accounts may want to see it.
    pub(super) seen: Option<Bytes>,
}

struct Slot {
    packet_id: u16,
    /// When it came; of one that is refused already, never.
    since_ms: u64,
    fate: Fate,
}

#[derive(Clone, Copy)]
enum Fate {
    Waiting,
    Taken,
    Refused(Reason),
    /// Refused, because what it is for was set aside.
    Quarantined,
}

impl Conn {
    /// A device's connection, with the places for telling its end.
    pub(super) fn of_device(
        newcomer: Newcomer,
        number: u64,
        rivals: Rivals,
        [will_place, end_place]: [Place; 2],
        will: Option<Bytes>,
        now_ms: u64,
    ) -> Self {
        let state = State { rivals, end: Some(End { will, will_place, end_place }), ..State::default() };
        Self::new(newcomer, number, None, state, now_ms)
    }

    /// An account's connection.
    pub(super) fn of_account(
        newcomer: Newcomer,
        number: u64,
        account: Account,
        state: AccountState,
        now_ms: u64,
    ) -> Self {
        let state = State { account: Some(Box::new(state)), ..State::default() };
        Self::new(newcomer, number, Some(account), state, now_ms)
    }

    fn new(newcomer: Newcomer, number: u64, account: Option<Account>, state: State, now_ms: u64) -> Self {
        let Newcomer { name, version, origin, seat, keep_alive_s, packet_bytes_max } = newcomer;
        let silence_ms = u64::from(keep_alive_s) * 1500;
        let (heard_ms, state) = (AtomicU64::new(now_ms), Mutex::new(state));
        Self { name, number, version, silence_ms, packet_bytes_max, origin, seat, account, heard_ms, state }
    }

    /// Its role, if it is an account's.
    pub(super) fn account(&self) -> Option<&Account> {
        self.account.as_ref()
    }

    /// What became of an account's publish is known: it is acknowledged, in order.
    pub(super) fn settle_publish(&self, slot: u64, taken: bool) {
        let mut state = self.state();
        if state.closed.is_none() {
            state.settle(slot, if taken { Fate::Taken } else { Fate::Refused(Reason::ImplementationSpecific) });
            state.acknowledge(self.version);
            state.wake();
        }
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// A whole packet came from the device.
    pub(super) fn heard(&self, now_ms: u64) {
        self.heard_ms.store(now_ms, Relaxed);
    }

    /// Whether it was silent for too long. One that is not being read is not at fault.
    pub(super) fn expired(&self, now_ms: u64) -> bool {
        let silent = now_ms.saturating_sub(self.heard_ms.load(Relaxed)) > self.silence_ms;
        silent && {
            let state = self.state();
            !state.full && state.going_ms.is_none()
        }
    }

    /// Has the session look whether the other side has gone, if it does not notice by reading.
    pub(super) fn look(&self) {
        let state = self.state();
        if state.full {
            state.wake();
        }
    }

    /// Whether a report of it has waited for its acknowledgement for longer than this, or it has gone so long ago and what it said
    /// before still waits.
    pub(super) fn overdue(&self, now_ms: u64, wait_max_ms: u64) -> bool {
        let state = self.state();
        let oldest = state.window.front(); // what is in front is not settled, else it would have been acknowledged
        let late = |since_ms: u64| now_ms.saturating_sub(since_ms) > wait_max_ms;
        oldest.is_some_and(|slot| late(slot.since_ms)) || state.going_ms.is_some_and(late)
    }

    /// There may be credits again.
    pub(super) fn credits_came(&self) {
        let mut state = self.state();
        state.held_back = false;
        state.wake();
    }
}

impl State {
    /// Remembers whom to wake. Before looking at anything that others may change.
    pub(super) fn watch(&mut self, waker: &Waker) {
        if !self.waker.as_ref().is_some_and(|old| old.will_wake(waker)) {
            self.waker = Some(waker.clone());
        }
    }

    /// It has gone, and what it said before is still to be worked off.
    pub(super) fn goes(&mut self, now_ms: u64) {
        self.going_ms.get_or_insert(now_ms);
    }

    /// Whether it has gone, as far as is known.
    pub(super) fn is_going(&self) -> bool {
        self.going_ms.is_some()
    }

    /// It said goodbye in such a way that its will is of no meaning any more (3.14.4), however it ends.
    pub(super) fn forget_will(&mut self) {
        if let Some(end) = &mut self.end {
            end.will = None;
        }
        if let Some(account) = &mut self.account {
            account.will = None;
        }
    }

    /// Wakes the session's task.
    pub(super) fn wake(&self) {
        if let Some(waker) = &self.waker {
            waker.wake_by_ref();
        }
    }

    /// Appends a packet. The session's task must be woken if it is not the caller.
    pub(super) fn put(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        let before = self.out.len();
        write(&mut self.out);
        self.filled(before);
    }

    /// Something was appended to `out`, which had so many bytes before.
    pub(super) fn filled(&mut self, before: usize) {
        self.queued_bytes += (self.out.len() - before) as u64;
    }

    /// Whether only acknowledgements wait, and the session's task steps back behind all that is ready to run.
    pub(super) fn lets_others_go_first(&mut self) -> bool {
        self.steps_back = self.steps_back.saturating_sub(1);
        self.steps_back > 0
    }

    /// Appends a command, whose fate will be told.
    pub(super) fn put_command(
        &mut self,
        ticket: u64,
        place: Place,
        seen: Option<Bytes>,
        write: impl FnOnce(&mut Vec<u8>),
    ) {
        self.put(write);
        self.steps_back = 0;
        self.commands.push_back(Command { ends_at: self.queued_bytes, ticket, place, seen });
        self.wake();
    }

    /// So many bytes went to the socket. The commands that are wholly written come out.
    pub(super) fn wrote(&mut self, bytes: usize) -> Vec<Command> {
        self.out.drain(..bytes);
        if self.out.is_empty() {
            self.out = Vec::new(); // an idle connection keeps no buffer
        }
        self.written_bytes += bytes as u64;
        let written = self.commands.iter().take_while(|command| command.ends_at <= self.written_bytes).count();
        self.commands.drain(..written).collect()
    }

    /// The commands that will not be written any more.
    pub(super) fn unwritten(&mut self) -> VecDeque<Command> {
        std::mem::take(&mut self.commands)
    }

    /// Whether a publish with this id is waiting for its acknowledgement.
    pub(super) fn waits_for(&self, packet_id: u16) -> bool {
        self.window.iter().any(|slot| slot.packet_id == packet_id)
    }

    /// QoS 1 reports that wait for their acknowledgement.
    pub(super) fn unacknowledged(&self) -> usize {
        self.window.len()
    }

    /// Opens a slot for a QoS 1 report; its number.
    pub(super) fn open_slot(&mut self, packet_id: u16, since_ms: u64) -> u64 {
        self.window.push_back(Slot { packet_id, since_ms, fate: Fate::Waiting });
        self.first_slot + self.window.len() as u64 - 1
    }

    /// Answers a QoS 1 publish with an error, behind those that came before it.
    pub(super) fn refuse(&mut self, packet_id: u16, reason: Reason) {
        self.window.push_back(Slot { packet_id, since_ms: u64::MAX, fate: Fate::Refused(reason) });
    }

    fn settle(&mut self, slot: u64, fate: Fate) {
        let at = slot.checked_sub(self.first_slot).and_then(|at| usize::try_from(at).ok());
        if let Some(slot) = at.and_then(|at| self.window.get_mut(at)) {
            slot.fate = fate;
        }
    }

    /// Writes the acknowledgements that are due, in order; how many of success. A 3.1.1 device cannot be told of a
    /// refusal (MQTT 3.1.1 3.4: PUBACK has no code), so it is closed instead and may send again.
    pub(super) fn acknowledge(&mut self, version: MqttVersion) -> u64 {
        let mut acknowledged = 0;
        while let Some(&Slot { packet_id, fate, .. }) = self.window.front() {
            let reason = match fate {
                Fate::Waiting => break,
                Fate::Taken => Reason::Success,
                Fate::Refused(_) if version == MqttVersion::V3_1_1 => {
                    self.closing.get_or_insert(Closed::ReportRefused);
                    break;
                }
                Fate::Quarantined if version == MqttVersion::V3_1_1 => {
                    self.closing.get_or_insert(Closed::Quarantined);
                    break;
                }
                Fate::Refused(reason) => reason,
                Fate::Quarantined => Reason::ImplementationSpecific,
            };
            self.window.pop_front();
            self.first_slot += 1;
            acknowledged += u64::from(reason == Reason::Success);
            self.put(|out| encode::puback(out, version, packet_id, reason));
        }
        if self.window.is_empty() {
            self.window.shrink_to_fit(); // an idle connection keeps no window
        }
        acknowledged
    }
}

/// The hub's promise for one report. Give it back with [`taken`](Receipt::taken) once the device's actor has taken the
/// report in: only then the device's PUBACK goes out, in the order of its publishes. Dropped otherwise, the device hears
/// an error and never a success (v5: PUBACK 0x80; 3.1.1: its connection is closed).
#[must_use = "a dropped receipt refuses the report"]
pub struct Receipt(Option<Pending>);

struct Pending {
    core: Arc<Core>,
    conn: Arc<Conn>,
    /// The slot in the connection's window; none for QoS 0.
    slot: Option<u64>,
    cost_bytes: usize,
    /// The topic's last part and the report's bytes, if accounts may want to see it once it has been taken in.
    seen: Option<(&'static str, Bytes)>,
}

impl Receipt {
    pub(super) fn new(core: &Arc<Core>, conn: &Arc<Conn>, slot: Option<u64>, cost_bytes: usize) -> Self {
        Self(Some(Pending { core: core.clone(), conn: conn.clone(), slot, cost_bytes, seen: None }))
    }

    /// Accounts are to see the report once it has been taken in.
    pub(super) fn seen(&mut self, part: &'static str, payload: &Bytes) {
        if let Some(pending) = &mut self.0 {
            pending.seen = Some((part, payload.clone()));
        }
    }

    /// For what needs none.
    pub(super) fn none() -> Self {
        Self(None)
    }

    /// The report has been taken in.
    pub fn taken(mut self) {
        if let Some(pending) = self.0.take() {
            pending.settle(Fate::Taken);
        }
    }

    /// Nobody takes it in, now or later: the part of the hub that serves this device was set aside. v5: PUBACK 0x83;
    /// 3.1.1: its connection is closed.
    pub fn quarantined(mut self) {
        if let Some(pending) = self.0.take() {
            pending.settle(Fate::Quarantined);
        }
    }
}

impl Drop for Receipt {
    fn drop(&mut self) {
        if let Some(pending) = self.0.take() {
            pending.settle(Fate::Refused(Reason::Unspecified));
        }
    }
}

impl fmt::Debug for Receipt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Receipt")
    }
}

impl Pending {
    fn settle(self, fate: Fate) {
        let totals = &self.core.totals;
        match fate {
            Fate::Taken => count(&totals.reports_taken),
            Fate::Refused(_) | Fate::Quarantined | Fate::Waiting => count(&totals.reports_refused),
        }
        if let Some(slot) = self.slot {
            let mut state = self.conn.state();
            if state.closed.is_none() {
                state.settle(slot, fate);
                let acknowledged = state.acknowledge(self.conn.version);
                super::counters::count_many(&totals.acknowledged, acknowledged);
                if state.steps_back == 0 && state.commands.is_empty() {
                    state.steps_back = STEPS_BACK;
                }
                state.wake();
            }
        }
        self.core.credits.give(self.cost_bytes);
        if let (Fate::Taken, Some((part, payload))) = (fate, self.seen) {
            self.core.show(&self.conn.name, part, payload, u8::from(self.slot.is_some()));
        }
    }
}
