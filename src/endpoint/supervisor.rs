//! The task of one access point: dials, serves, waits, and dials again, for ever. A panic in it is an end like any other.

use std::{
    panic::AssertUnwindSafe,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Instant, SystemTime},
};

use futures_util::FutureExt as _;
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;

use super::{
    End, EndWord, Host, Observer, Profile, Settings, State, Status, Tuning, dial::Dialler, schedule::Schedule,
    socket::Session,
};

/// What belongs to one access point for as long as it is there.
pub(super) struct Post {
    pub(super) settings: Settings,
    pub(super) tuning: Tuning,
    pub(super) host: Arc<dyn Host>,
    pub(super) observer: Arc<dyn Observer>,
    pub(super) dialler: Arc<Dialler>,
    pub(super) status: watch::Sender<Status>,
    /// Ends the task, once its calls are answered.
    pub(super) stop: CancellationToken,
    /// Ends the connection, or the wait for the next.
    pub(super) restart: Notify,
    /// How many are in each state.
    pub(super) census: Arc<Census>,
}

/// How many access points are in each state.
#[derive(Default)]
pub(super) struct Census([AtomicU64; State::ALL.len()]);

impl Census {
    /// One more, or one less.
    pub(super) fn count(&self, state: State, is_more: bool, observer: &dyn Observer) {
        let at = State::ALL.iter().position(|s| *s == state).expect("the list holds all states");
        let now = if is_more {
            self.0[at].fetch_add(1, Ordering::AcqRel) + 1
        } else {
            self.0[at].fetch_sub(1, Ordering::AcqRel).saturating_sub(1)
        };
        observer.are(state, usize::try_from(now).unwrap_or(usize::MAX));
    }
}

impl Post {
    pub(super) fn profile(&self) -> Profile {
        self.settings.profile
    }

    /// A frame was for nobody.
    pub(super) fn garbage(&self) {
        self.observer.garbage();
        self.status.send_modify(|status| status.garbage += 1);
    }

    /// A call was not answered by its limit.
    pub(super) fn late(&self) {
        self.observer.late();
        self.status.send_modify(|status| status.late += 1);
    }

    fn is(&self, state: State, dials_at: Option<Instant>) {
        let dials_in = dials_at.map(|at| at.saturating_duration_since(now()));
        let before = self.status.borrow().state;
        self.status.send_modify(|status| status.is(state, dials_in));
        self.census.count(before, false, &*self.observer);
        self.census.count(state, true, &*self.observer);
    }

    /// One connection, from the dial to its end.
    async fn connect(self: &Arc<Self>, schedule: &mut Schedule) -> End {
        self.is(State::Dialling, None);
        let address = &self.settings.address;
        let dial = self.dialler.dial(address.reveal(), address.authority(), self.tuning.dial);
        let dialled = tokio::select! {
            dialled = dial => dialled,
            () = self.stop.cancelled() => Err(End::new(EndWord::Stopped)),
        };
        let line = match dialled {
            Ok(line) => line,
            Err(end) => return end,
        };
        schedule.up(now());
        // Who wanted a new connection while it was being dialled has it.
        let _wanted = self.restart.notified().now_or_never();
        self.is(State::Up, None);
        self.status.send_modify(|status| status.connects += 1);
        self.observer.connected();
        tracing::info!(endpoint = %self.settings.name, %address, "endpoint connected");
        Session::new(line, self).run().await
    }

    fn ended(&self, end: &End) {
        self.observer.ended(end.word);
        let (name, why, code, said) = (&self.settings.name, end.word.told(), end.code, end.said.as_str());
        match end.word {
            EndWord::Stopped | EndWord::ToolsChanged | EndWord::Restarted => {
                tracing::info!(endpoint = %name, why, "endpoint disconnected");
            }
            EndWord::TokenRefused | EndWord::Replaced | EndWord::Failed => {
                tracing::error!(endpoint = %name, why, code, said, "endpoint disconnected");
            }
            EndWord::Silent
            | EndWord::Dropped
            | EndWord::Closed
            | EndWord::Unanswered
            | EndWord::Unreachable
            | EndWord::Tls
            | EndWord::NotThere
            | EndWord::HttpRefused
            | EndWord::Garbled => {
                tracing::warn!(endpoint = %name, why, code, said, "endpoint disconnected");
            }
        }
        self.status.send_modify(|status| status.last_end = Some((end.clone(), SystemTime::now())));
    }
}

/// Keeps one access point connected until it is stopped; tells from when on its agent may be dialled again.
pub(super) async fn keep(post: Arc<Post>, earliest: Instant) -> Instant {
    let mut schedule = Schedule::new(post.profile(), post.tuning.clone(), now(), earliest);
    loop {
        let due = schedule.dial_at();
        post.is(if due.is_some() { State::Waiting } else { State::Refused }, due);
        let waiting = async {
            match due {
                Some(at) => tokio::time::sleep_until(at.into()).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = waiting => {}
            () = post.restart.notified() => {
                schedule.now_please(now());
                continue;
            }
            () = post.stop.cancelled() => break,
        }
        let connecting = AssertUnwindSafe(post.connect(&mut schedule)).catch_unwind().await;
        let end = connecting.unwrap_or_else(|_panic| End::new(EndWord::Failed));
        post.ended(&end);
        schedule.ended(&end, now(), crate::random::fraction());
        if post.stop.is_cancelled() {
            break;
        }
    }
    post.is(State::Stopped, None);
    schedule.earliest()
}

/// The runtime's clock, so that hours can be tried in a moment.
fn now() -> Instant {
    tokio::time::Instant::now().into_std()
}
