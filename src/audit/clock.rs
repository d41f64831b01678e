//! The time of a record, and whether it can be relied on.

use std::{
    path::Path,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant, SystemTime},
};

use jiff::{Timestamp, Zoned, tz::TimeZone};

/// Before this year no clock is right: this program is younger.
const YEAR_MIN: i16 = 2026;

/// How often somebody is asked whether the clock has been set, until it has.
const ASKED_EVERY: Duration = Duration::from_secs(5);

/// systemd-timesyncd's folder, and its file that is there once it has set the clock (systemd-timesyncd.service(8)).
const TIMESYNC: (&str, &str) = ("run/systemd/timesync", "run/systemd/timesync/synchronized");

/// chronyd writes its drift file once it follows a source (chrony.conf(5), `driftfile`), ntpd likewise; one that was written
/// before this machine started says nothing. The first is there while the daemon runs.
const DAEMONS: &[(&str, &str)] = &[
    ("run/chrony/chronyd.pid", "var/lib/chrony/chrony.drift"),
    ("run/chrony/chronyd.pid", "var/lib/chrony/drift"),
    ("run/ntpd.pid", "var/lib/ntp/ntp.drift"),
];

/// Whether this machine's clock can be relied on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Synchrony {
    /// Somebody has set it, or nobody here could say (a container, a machine without a time daemon that shows it).
    Plausible,
    /// The year cannot be, or a daemon that sets the clock has not done so yet.
    Unsynchronised,
}

/// Tells the time with its offset.
#[derive(Debug, Default)]
pub struct Clock {
    /// When somebody was last asked and what they said; [`Synchrony::Plausible`] stays.
    asked: Mutex<Option<(Instant, Synchrony)>>,
}

impl Clock {
    /// The time so long ago, RFC 3339 with milliseconds and the offset of this machine's time zone, and whether it can be
    /// relied on.
    pub fn ago(&self, elapsed: Duration) -> (String, Synchrony) {
        let now = Timestamp::now();
        let elapsed = jiff::SignedDuration::try_from(elapsed).unwrap_or_default();
        let at = now.checked_sub(elapsed).unwrap_or(now).to_zoned(TimeZone::system());
        let synchrony = self.synchrony(at.year());
        (written(&at), synchrony)
    }

    fn synchrony(&self, year: i16) -> Synchrony {
        if year < YEAR_MIN {
            return Synchrony::Unsynchronised;
        }
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        match *asked {
            Some((_, Synchrony::Plausible)) => Synchrony::Plausible,
            Some((at, Synchrony::Unsynchronised)) if at.elapsed() < ASKED_EVERY => Synchrony::Unsynchronised,
            Some(_) | None => {
                let synchrony = ask(Path::new("/"), booted());
                *asked = Some((Instant::now(), synchrony));
                synchrony
            }
        }
    }
}

/// RFC 3339 with milliseconds.
pub(super) fn written(at: &Zoned) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%S%.3f%:z").to_string()
}

/// What the daemons under this root have left behind. `booted`: when the machine started.
fn ask(root: &Path, booted: Option<SystemTime>) -> Synchrony {
    let there = |path: &str| root.join(path).exists();
    if there(TIMESYNC.1) {
        return Synchrony::Plausible;
    }
    let mut daemons = DAEMONS.iter().filter(|(running, _)| there(running)).peekable();
    if daemons.peek().is_some() {
        let followed = daemons.any(|(_, drift)| {
            let written = root.join(drift).metadata().and_then(|file| file.modified()).ok();
            written.zip(booted).is_some_and(|(written, booted)| written >= booted)
        });
        return if followed { Synchrony::Plausible } else { Synchrony::Unsynchronised };
    }
    if there(TIMESYNC.0) { Synchrony::Unsynchronised } else { Synchrony::Plausible }
}

/// When this machine started (proc(5), `uptime`).
fn booted() -> Option<SystemTime> {
    let uptime = std::fs::read_to_string("/proc/uptime").ok()?;
    let seconds: f64 = uptime.split_whitespace().next()?.parse().ok()?;
    SystemTime::now().checked_sub(Duration::try_from_secs_f64(seconds).ok()?)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test that fails there has said so")]
mod tests {
    use super::*;

    #[test]
    fn a_year_that_cannot_be_is_not_believed() {
        let clock = Clock::default();
        assert_eq!(clock.synchrony(1970), Synchrony::Unsynchronised);
        let (at, _) = clock.ago(Duration::from_secs(3));
        assert!(at.parse::<Timestamp>().is_ok() && at.len() == "2026-11-30T18:00:00.000+08:00".len(), "{at}");
    }

    #[test]
    fn who_sets_the_clock_is_believed_once_it_has_and_nobody_is_no_reproach() {
        let root = tempfile::tempdir().unwrap();
        let make = |path: &str| {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        };
        let (now, hour) = (SystemTime::now(), Duration::from_secs(3_600));
        assert_eq!(ask(root.path(), Some(now)), Synchrony::Plausible, "nobody here could say");
        make("run/chrony/chronyd.pid");
        assert_eq!(ask(root.path(), Some(now)), Synchrony::Unsynchronised, "chrony follows nobody yet");
        make("var/lib/chrony/chrony.drift");
        assert_eq!(ask(root.path(), now.checked_sub(hour)), Synchrony::Plausible);
        assert_eq!(ask(root.path(), now.checked_add(hour)), Synchrony::Unsynchronised, "of before this start");
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(root.path().join(TIMESYNC.0)).unwrap();
        assert_eq!(ask(root.path(), Some(now)), Synchrony::Unsynchronised);
        std::fs::write(root.path().join(TIMESYNC.1), "").unwrap();
        assert_eq!(ask(root.path(), Some(now)), Synchrony::Plausible);
    }
}
