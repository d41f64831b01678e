//! Keeps one bad client from filling the log: of what a caller does wrong a few lines a minute are written, the rest is counted
//! and told in one line. The audit and the metrics have all of it.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

/// Over which time lines are counted.
const WINDOW: Duration = Duration::from_secs(60);

/// Lines of one caller in a window: a scene that fails is told thing by thing, a loop is not.
const LINES_MAX: u64 = 10;

/// Callers that are counted apart: more than a home has. Those beyond are counted together.
const CALLERS_MAX: usize = 256;

/// Under which name callers are counted for whom there is no room: no caller is called so.
const OTHERS: &str = "others";

/// Counts the lines of each caller.
#[derive(Debug, Default)]
pub(super) struct Quiet {
    callers: Mutex<BTreeMap<String, Window>>,
}

#[derive(Debug)]
struct Window {
    since: Instant,
    lines: u64,
}

impl Quiet {
    /// Whether a line about this caller is written; if not, it is counted.
    pub(super) fn lets(&self, now: Instant, caller: &str) -> bool {
        self.tell(now);
        let mut callers = self.callers.lock().unwrap_or_else(PoisonError::into_inner);
        let known = callers.contains_key(caller) || callers.len() < CALLERS_MAX;
        let caller = if known { caller } else { OTHERS };
        let window = callers.entry(caller.to_owned()).or_insert(Window { since: now, lines: 0 });
        window.lines += 1;
        if window.lines == LINES_MAX + 1 {
            let seconds = WINDOW.as_secs();
            tracing::warn!(
                caller,
                "more calls that came to nothing are counted and not written, for {seconds} s; see truetwin audit --failed"
            );
        }
        window.lines <= LINES_MAX
    }

    /// Says how much was not written in the windows that are over, and forgets them.
    pub(super) fn tell(&self, now: Instant) {
        let mut callers = self.callers.lock().unwrap_or_else(PoisonError::into_inner);
        callers.retain(|caller, window| {
            let over = now.saturating_duration_since(window.since) >= WINDOW;
            let unwritten = window.lines.saturating_sub(LINES_MAX);
            if over && unwritten > 0 {
                tracing::warn!(caller, unwritten, "calls that came to nothing and were not written");
            }
            !over
        });
    }

    #[cfg(test)]
    fn unwritten(&self) -> u64 {
        let callers = self.callers.lock().unwrap_or_else(PoisonError::into_inner);
        callers.values().map(|window| window.lines.saturating_sub(LINES_MAX)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_client_in_a_loop_a_few_lines_are_written_and_another_one_still_has_its_own() {
        let (quiet, now) = (Quiet::default(), Instant::now());
        let written = |caller: &str, now| (0..1_000).filter(|_| quiet.lets(now, caller)).count();
        assert_eq!((written("http", now), quiet.unwritten()), (10, 990));
        assert_eq!(written("token:tv", now), 10);
        assert_eq!(written("http", now + WINDOW / 2), 0);
        assert_eq!(written("http", now + WINDOW), 10, "the next minute");
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let (quiet, now) = (Quiet::default(), Instant::now());
        let written = (0..10_000).filter(|number| quiet.lets(now, &format!("token:t{number}"))).count();
        assert_eq!(written, 256 + 10);
        assert_eq!(quiet.callers.lock().unwrap_or_else(PoisonError::into_inner).len(), 257);
        quiet.tell(now + WINDOW);
        assert_eq!(quiet.unwritten(), 0);
    }
}
