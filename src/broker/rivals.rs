//! Two boards with one name: they take each other's connection over and over, and neither works (semantics 5.6).
//!
//! A board that only reconnects comes from where it came before (address and client id); rivals do not.

/// Milliseconds in which rivals are counted.
const WITHIN_MS: u64 = 60_000;

/// The change of hands that is refused: the third within a minute.
const REFUSED: usize = 3;

/// Where a connection came from: a hash of its address and client id.
pub(super) type Origin = u64;

/// The last times that a device's connection changed hands between different origins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Rivals {
    times_ms: [Option<u64>; REFUSED - 1],
}

impl Rivals {
    /// Somebody of another origin wants the connection now. False: the one who has it stays, as long as others try at
    /// least once a minute; true: it changes hands, and the new one inherits this.
    pub(super) fn yields(&mut self, now_ms: u64) -> bool {
        let recent = |at: &Option<u64>| at.is_some_and(|at| now_ms.saturating_sub(at) < WITHIN_MS);
        let stays = self.times_ms.iter().all(recent);
        self.times_ms.rotate_left(1);
        self.times_ms[REFUSED - 2] = Some(now_ms);
        !stays
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s5_6_the_third_change_of_hands_in_a_minute_is_refused_and_the_incumbent_stays() {
        let mut rivals = Rivals::default();
        assert!(rivals.yields(1_000));
        assert!(rivals.yields(5_000));
        assert!(!rivals.yields(9_000));
        assert!(!rivals.yields(60_000), "as long as the other one tries");
        assert!(!rivals.yields(68_000));
        assert!(rivals.yields(190_000), "it gave up for a minute");
    }

    #[test]
    fn a_board_that_moves_now_and_then_is_no_rival() {
        let mut rivals = Rivals::default();
        for minute in 0..20 {
            assert!(rivals.yields(minute * 31_000), "two in a minute are allowed");
        }
    }
}
