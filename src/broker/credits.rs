//! Credits: how many bytes of reports the hub may owe its attention to.
//!
//! A report takes credits when it goes on its way and gives them back when the hub has taken it in. Without credits a
//! connection's reports wait; it stands here in line and is woken when some come back.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
};

use super::{conn::Conn, core::lock};

/// Connections woken at once for each KiB of free credits: each will take some.
const WAKE_PER_BYTES: usize = 1024;

pub(super) struct Credits(Mutex<State>);

struct State {
    free_bytes: usize,
    taken_bytes: usize,
    reports: usize,
    waiting: VecDeque<Arc<Conn>>,
}

impl Credits {
    pub(super) fn new(total_bytes: usize) -> Self {
        Self(Mutex::new(State { free_bytes: total_bytes, taken_bytes: 0, reports: 0, waiting: VecDeque::new() }))
    }

    /// Takes credits for one report; false if there are not enough.
    pub(super) fn take(&self, cost_bytes: usize) -> bool {
        let mut state = lock(&self.0);
        let Some(rest) = state.free_bytes.checked_sub(cost_bytes) else { return false };
        state.free_bytes = rest;
        state.taken_bytes += cost_bytes;
        state.reports += 1;
        true
    }

    /// Puts a connection in line. It must not be in line already.
    pub(super) fn wait(&self, conn: &Arc<Conn>) {
        lock(&self.0).waiting.push_back(conn.clone());
    }

    /// Gives one report's credits back and wakes who waits. No connection's state may be locked.
    pub(super) fn give(&self, cost_bytes: usize) {
        {
            let mut state = lock(&self.0);
            state.free_bytes += cost_bytes;
            state.taken_bytes -= cost_bytes;
            state.reports -= 1;
        }
        self.wake();
    }

    /// Wakes who waits, as far as there are credits. No connection's state may be locked.
    pub(super) fn wake(&self) {
        let woken: Vec<_> = {
            let mut state = lock(&self.0);
            if state.waiting.is_empty() || state.free_bytes == 0 {
                return;
            }
            let many = (1 + state.free_bytes / WAKE_PER_BYTES).min(state.waiting.len());
            state.waiting.drain(..many).collect()
        };
        for conn in woken {
            conn.credits_came();
        }
    }

    /// Reports that hold credits.
    pub(super) fn reports(&self) -> usize {
        lock(&self.0).reports
    }

    /// Bytes taken, and connections in line.
    pub(super) fn now(&self) -> (usize, usize) {
        let state = lock(&self.0);
        (state.taken_bytes, state.waiting.len())
    }
}
