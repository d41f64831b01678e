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
const TIMESYNC: (&str, &str) = ("/run/systemd/timesync", "/run/systemd/timesync/synchronized");

/// chronyd writes its drift file once it follows a source (chrony.conf(5), `driftfile`), ntpd likewise; one that was written
/// before this machine started says nothing. The first is there while the daemon runs.
const DAEMONS: &[(&str, &str)] = &[
    ("/run/chrony/chronyd.pid", "/var/lib/chrony/chrony.drift"),
    ("/run/chrony/chronyd.pid", "/var/lib/chrony/drift"),
    ("/run/ntpd.pid", "/var/lib/ntp/ntp.drift"),
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
                let synchrony = ask();
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

fn ask() -> Synchrony {
    let there = |path: &str| Path::new(path).exists();
    if there(TIMESYNC.1) {
        return Synchrony::Plausible;
    }
    let booted = booted();
    let mut daemons = DAEMONS.iter().filter(|(running, _)| there(running)).peekable();
    if daemons.peek().is_some() {
        let followed = daemons.any(|(_, drift)| {
            let written = Path::new(drift).metadata().and_then(|file| file.modified()).ok();
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
