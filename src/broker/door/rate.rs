//! How fast one connection may send: so many packets a second over time, twice as many at once.

/// Seconds whose packets may come at once.
const BURST_S: u64 = 2;

/// The shortest pause, so that a connection that sends at the limit is not stopped and started for each packet.
const PAUSE_MIN_MS: u64 = 20;

/// One connection's rate (the generic cell rate algorithm, which needs one number): the time up to which it has used up what it may.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Rate {
    used_until_us: u64,
}

impl Rate {
    /// For how many milliseconds no more packet may come; `None` if one may now. With a rate of 0 there is no limit.
    pub(super) fn pause_ms(self, now_ms: u64, packets_per_s: u32) -> Option<u64> {
        let ahead_us = self.used_until_us.saturating_sub(now_ms * 1000) + cost_us(packets_per_s)?;
        let beyond_us = ahead_us.checked_sub(BURST_S * 1_000_000).filter(|us| *us > 0)?;
        Some((beyond_us / 1000).max(PAUSE_MIN_MS))
    }

    /// One came.
    pub(super) fn used(&mut self, now_ms: u64, packets_per_s: u32) {
        if let Some(cost_us) = cost_us(packets_per_s) {
            self.used_until_us = self.used_until_us.max(now_ms * 1000) + cost_us;
        }
    }
}

fn cost_us(packets_per_s: u32) -> Option<u64> {
    1_000_000_u64.checked_div(packets_per_s.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many of these packets a second come through.
    fn through(rate: &mut Rate, from_ms: u64, to_ms: u64, per_ms: u64) -> u64 {
        let times = (from_ms..to_ms).flat_map(|ms| std::iter::repeat_n(ms, usize::try_from(per_ms).unwrap_or(0)));
        let may = |ms: &u64| {
            let may = rate.pause_ms(*ms, 100).is_none();
            if may {
                rate.used(*ms, 100);
            }
            may
        };
        times.filter(may).count() as u64
    }

    #[test]
    fn a_burst_then_the_rate_and_after_a_rest_a_burst_again() {
        let mut rate = Rate::default();
        assert_eq!(through(&mut rate, 0, 1, 500), 200, "two seconds' worth at once");
        assert_eq!(rate.pause_ms(0, 100), Some(PAUSE_MIN_MS));
        assert_eq!(through(&mut rate, 1, 1001, 5), 100, "then as many as the rate");
        assert_eq!(through(&mut rate, 61_000, 61_001, 500), 200);
    }

    #[test]
    fn a_rate_of_zero_is_no_limit() {
        let mut rate = Rate::default();
        for _ in 0..1_000_000 {
            assert_eq!(rate.pause_ms(7, 0), None);
            rate.used(7, 0);
        }
    }
}
