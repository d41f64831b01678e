//! What is said while the journal cannot be written: that it begins, once a minute how much it was meanwhile, and that it is over.
//! Whoever may write retained messages makes as many refusals a second as it likes, and none of them is to fill the log of a disk
//! that is full already. All of them are counted (`truetwin_journal_not_kept_total`). Pure.

use std::time::{Duration, Instant};

/// The same trouble is not said again within this.
const AGAIN_AFTER: Duration = Duration::from_secs(60);

/// It is over once something was written and nothing was refused for as long as this: on a disk that is almost full small commits
/// succeed between larger ones that do not.
const OVER_AFTER: Duration = Duration::from_secs(10);

/// What was refused, and what of it was said.
#[derive(Debug, Default)]
pub(super) struct Refusing {
    /// When it was last said that something is refused.
    said: Option<Instant>,
    /// When something was last refused, until it is said that it is over.
    last: Option<Instant>,
    /// Entries that were refused and not told of.
    unsaid: u64,
}

impl Refusing {
    /// So many entries were refused now. How many a line is to tell of, if one is due.
    pub(super) fn refused(&mut self, now: Instant, entries: u64) -> Option<u64> {
        self.last = Some(now);
        self.unsaid += entries;
        let due = self.said.is_none_or(|said| now.saturating_duration_since(said) >= AGAIN_AFTER);
        due.then(|| {
            self.said = Some(now);
            std::mem::take(&mut self.unsaid)
        })
    }

    /// Something was written now. If with that it is over: how many entries were refused that nothing was said of.
    pub(super) fn written(&mut self, now: Instant) -> Option<u64> {
        self.last.take_if(|last| now.saturating_duration_since(*last) >= OVER_AFTER)?;
        Some(std::mem::take(&mut self.unsaid))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(start: Instant, ms: u64) -> Instant {
        start + Duration::from_millis(ms)
    }

    #[test]
    fn a_disk_that_refuses_thousands_a_second_is_told_of_once_a_minute_with_their_number() {
        let (mut refusing, start) = (Refusing::default(), Instant::now());
        let told: Vec<u64> = (0..150_000).filter_map(|ms| refusing.refused(at(start, ms), 2)).collect();
        assert_eq!(told, [2, 120_000, 120_000]);
        assert_eq!(refusing.written(at(start, 155_000)), None, "it may be by chance");
        assert_eq!(refusing.written(at(start, 160_000)), Some(59_998), "none is lost");
        assert_eq!(refusing.written(at(start, 300_000)), None, "it is over once");
        assert_eq!(refusing.refused(at(start, 300_001), 1), Some(1), "another time");
    }

    #[test]
    fn small_writes_that_succeed_between_large_ones_that_do_not_bring_no_line_each() {
        let (mut refusing, start) = (Refusing::default(), Instant::now());
        let mut lines = 0;
        for ms in 0..600_000 {
            lines += u32::from(refusing.refused(at(start, ms), 1).is_some());
            lines += u32::from(refusing.written(at(start, ms)).is_some());
        }
        assert_eq!(lines, 10);
        let mut refusing = Refusing::default();
        assert_eq!(refusing.written(start), None, "nothing was refused");
    }
}
