//! When an access point is dialled again. Pure: time and chance are handed in.
//!
//! | it ended | the next dial |
//! |---|---|
//! | by this hub for its tools, or by its owner | after the pause |
//! | lost, closed, 4004, unreachable | between the pause and 2 s, 4 s … 60 s, by chance, so that many do not come at once; anew after 60 s up |
//! | at a relay, without a word (frozen, cut off) | 60 s later at the earliest: earlier it hangs for everybody |
//! | at a relay, thrown out by another program | 5 min, 10 min … 1 h later: it is not fought |
//! | refused with HTTP 401 or 403 | as beside a rival: a gateway may be in trouble, too |
//! | token refused (1008) | never, until its owner says so |

use std::time::{Duration, Instant};

use super::{End, EndWord, Profile, Tuning};

/// When one access point is dialled.
#[derive(Debug)]
pub(super) struct Schedule {
    profile: Profile,
    tuning: Tuning,
    next: Option<Instant>,
    /// Before this no dial is safe, whoever asks for it.
    earliest: Instant,
    up_since: Option<Instant>,
    /// Losses in a row.
    losses: u32,
    /// Times in a row that another program was found to use the token.
    rivals: u32,
}

impl Schedule {
    /// Dials now; at a relay that may still hold the socket of an earlier run, or of this one, not before `earliest`.
    pub(super) fn new(profile: Profile, tuning: Tuning, now: Instant, earliest: Instant) -> Self {
        let earliest = earliest.max(now);
        Self { profile, tuning, next: Some(earliest), earliest, up_since: None, losses: 0, rivals: 0 }
    }

    /// When the next dial is due; `None`: never.
    pub(super) fn dial_at(&self) -> Option<Instant> {
        self.next
    }

    /// Before when nobody may dial this agent again.
    pub(super) fn earliest(&self) -> Instant {
        self.earliest
    }

    /// The connection is there.
    pub(super) fn up(&mut self, now: Instant) {
        self.up_since = Some(now);
    }

    /// The connection has ended, or could not be made. `chance` is between 0 and 1.
    pub(super) fn ended(&mut self, end: &End, now: Instant, chance: f64) {
        let up = self.up_since.take().map(|since| now.saturating_duration_since(since));
        let wait = match end.word {
            EndWord::Stopped | EndWord::ToolsChanged | EndWord::Restarted => Some(self.tuning.pause),
            EndWord::TokenRefused => None,
            EndWord::Replaced | EndWord::HttpRefused => {
                if up.is_some_and(|up| up > self.tuning.rival_max) {
                    self.rivals = 0;
                }
                let wait = doubled(self.tuning.rival, self.rivals, self.tuning.rival_max);
                self.rivals += 1;
                Some(wait + wait.mul_f64(chance * 0.1))
            }
            EndWord::Silent
            | EndWord::Dropped
            | EndWord::Closed
            | EndWord::Unanswered
            | EndWord::Unreachable
            | EndWord::Tls
            | EndWord::NotThere
            | EndWord::Garbled
            | EndWord::Failed => {
                if up.is_some_and(|up| up >= self.tuning.steady) {
                    (self.losses, self.rivals) = (0, 0);
                }
                let most = doubled(self.tuning.retry, self.losses, self.tuning.retry_max);
                self.losses += 1;
                Some(self.tuning.pause + most.saturating_sub(self.tuning.pause).mul_f64(chance))
            }
        };
        let is_held = self.profile == Profile::Relay && end.is_unclean;
        self.earliest = now + if is_held { self.tuning.unclean_pause } else { self.tuning.pause };
        self.next = wait.map(|wait| (now + wait).max(self.earliest));
    }

    /// Its owner wants it dialled now: as soon as it is safe.
    pub(super) fn now_please(&mut self, now: Instant) {
        self.next = Some(now.max(self.earliest));
    }
}

fn doubled(first: Duration, times: u32, most: Duration) -> Duration {
    first.checked_mul(1 << times.min(16)).unwrap_or(most).min(most)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test that fails there has said so")]
mod tests {
    use super::*;

    fn s(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    struct Bench(Schedule, Instant);

    impl Bench {
        fn new(profile: Profile) -> Self {
            let now = Instant::now();
            Self(Schedule::new(profile, Tuning::default(), now, now), now)
        }

        /// Up for so long, then ended so: the wait until the next dial, in seconds; it is waited for.
        fn wait(&mut self, up: u64, word: EndWord, chance: f64) -> Option<f64> {
            if up > 0 {
                self.0.up(self.1);
            }
            self.1 += s(up);
            self.0.ended(&End::new(word), self.1, chance);
            let at = self.0.dial_at()?;
            let wait = at - self.1;
            self.1 = at;
            Some(wait.as_secs_f64())
        }
    }

    #[test]
    fn a_new_one_is_dialled_at_once_and_after_a_crash_when_a_relay_has_forgotten() {
        let now = Instant::now();
        assert!(Bench::new(Profile::Official).0.dial_at().is_some());
        let later = Schedule::new(Profile::Relay, Tuning::default(), now, now + s(60));
        assert_eq!(later.dial_at(), Some(now + s(60)));
    }

    #[test]
    fn waits_grow_to_a_minute_and_begin_anew_after_a_minute_up() {
        let mut bench = Bench::new(Profile::Official);
        let most: Vec<f64> = (0..8).map(|_| bench.wait(0, EndWord::Unreachable, 1.0).unwrap()).collect();
        assert_eq!(most, [2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0, 60.0]);
        assert_eq!(bench.wait(59, EndWord::Unanswered, 1.0), Some(60.0));
        assert_eq!(bench.wait(60, EndWord::Dropped, 1.0), Some(2.0));
        assert_eq!(bench.wait(1, EndWord::Closed, 0.0), Some(1.0));
    }

    #[test]
    fn a_relay_is_left_alone_for_a_minute_after_a_loss_without_a_word() {
        assert_eq!(Bench::new(Profile::Relay).wait(300, EndWord::Silent, 0.3), Some(60.0));
        assert_eq!(Bench::new(Profile::Relay).wait(300, EndWord::Dropped, 0.0), Some(1.0));
        assert!(Bench::new(Profile::Official).wait(300, EndWord::Silent, 0.3).unwrap() < 2.0);
    }

    #[test]
    fn not_even_its_owner_makes_it_dial_a_relay_too_early() {
        let mut bench = Bench::new(Profile::Relay);
        bench.0.up(bench.1);
        let lost = bench.1 + s(100);
        bench.0.ended(&End::new(EndWord::Silent), lost, 0.0);
        bench.0.now_please(lost + s(5));
        assert_eq!(bench.0.dial_at(), Some(lost + s(60)));
        assert_eq!(bench.0.earliest(), lost + s(60));
    }

    #[test]
    fn a_refused_token_is_not_dialled_again_until_its_owner_says_so() {
        let mut bench = Bench::new(Profile::Relay);
        assert_eq!(bench.wait(1, EndWord::TokenRefused, 0.0), None);
        bench.0.now_please(bench.1 + s(9));
        assert_eq!(bench.0.dial_at(), Some(bench.1 + s(9)));
    }

    #[test]
    fn another_program_is_not_fought() {
        let mut bench = Bench::new(Profile::Relay);
        let waits: Vec<f64> = (0..6).map(|_| bench.wait(1, EndWord::Replaced, 0.0).unwrap()).collect();
        assert_eq!(waits, [300.0, 600.0, 1200.0, 2400.0, 3600.0, 3600.0]);
    }

    #[test]
    fn a_line_is_renewed_for_its_tools_after_the_pause() {
        assert_eq!(Bench::new(Profile::Relay).wait(40, EndWord::ToolsChanged, 0.9), Some(1.0));
    }
}
