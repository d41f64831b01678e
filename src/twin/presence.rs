//! Whether the device can be reached: from the connection itself and its heartbeat (semantics 5.5).
//!
//! A broker that is down makes no device offline: presence stands as it was, and the refusal is `broker_down`.

use std::{collections::BTreeMap, sync::Arc, time::Instant};

use crate::{
    property::Evidence,
    twin::{
        Twin,
        input::{Command, Effect, Hello, Ignored, Left, Memory},
        planted::{self, Planted},
        settings::Settings,
        words::{OpId, Presence},
    },
};

/// The way to the device.
#[derive(Clone, Debug)]
pub(super) struct Line {
    pub(super) presence: Presence,
    pub(super) connection: Option<u64>,
    pub(super) session: Option<Arc<str>>,
    /// When the session began: what was heard before is of another (semantics 3.8).
    pub(super) session_since: Option<Instant>,
    pub(super) last_heard: Option<Instant>,
    /// When it last told a value, or was asked for lack of one (semantics 3.11).
    pub(super) told_at: Option<Instant>,
    /// How often it was asked for lack of one: part of the questions' ids.
    pub(super) reads: u32,
    pub(super) bus_down: bool,
}

impl Default for Line {
    fn default() -> Self {
        Self {
            presence: Presence::Offline,
            connection: None,
            session: None,
            session_since: None,
            last_heard: None,
            told_at: None,
            reads: 0,
            bus_down: false,
        }
    }
}

impl Line {
    /// When a device that stays silent is suspected.
    pub(super) fn suspect_at(&self, settings: &Settings) -> Option<Instant> {
        match self.presence {
            Presence::Online => self.last_heard.map(|at| at + settings.suspected_after()),
            Presence::Suspected | Presence::Offline => None,
        }
    }
}

impl Twin {
    pub(super) fn connected(&mut self, now: Instant, connection: u64) {
        // A new connection has no session yet: commands wait for its hello.
        self.line.connection = Some(connection);
        self.line.session = None;
        self.line.last_heard = Some(now);
        self.set_presence(Presence::Offline);
        self.wait_for_device(now);
        self.wait_in_flight(now);
    }

    pub(super) fn disconnected(&mut self, now: Instant, connection: u64) {
        // The end of a connection that was taken over says nothing of the one that took it. Of which one a twin whose
        // actor was restarted does not always know.
        if self.line.connection.is_none_or(|open| open == connection) {
            self.line.connection = None;
            self.line.session = None;
            self.set_presence(Presence::Offline);
            self.wait_for_device(now);
            self.wait_in_flight(now);
        }
    }

    pub(super) fn greeted(&mut self, now: Instant, session: Arc<str>, hello: &Hello) {
        self.alive(now);
        let first = self.line.session.is_none();
        self.line.session = Some(session.clone());
        self.line.session_since = Some(now);
        self.line.told_at = Some(now);
        self.send(Command::Welcome { session });
        let rebooted = self.reported.boot().is_some_and(|boot| *boot != hello.boot);
        if self.description.as_ref() != Some(&hello.description) {
            self.take_description(&hello.description);
            self.touched.retain(|name, _| hello.description.property(name).is_some());
            self.effects.push_back(Effect::Described(hello.description.clone()));
            self.end_changed(now);
        }
        self.set_presence(Presence::Online);
        if let Some(merged) = self.reported.replace(now, hello) {
            self.note_malformed(hello.seq, &merged);
            self.note_changes(now, &merged.changes, hello.cause);
            self.note_drift(now, &merged.changes, hello.cause, rebooted);
            self.hold_on_hello(now);
            self.after_hello(now, rebooted);
            let finished: Vec<&OpId> = hello.seen.iter().map(|(_, op)| op).collect();
            self.note_late(now, hello.seq, &finished, Evidence::Firmware);
        } else {
            self.effects.push_back(Effect::Ignored(Ignored::Duplicate));
            // Said again on one connection it is a repetition. On a new one it is an old message, or a board that has the
            // same token at each start and counts from 1: it must hear why nobody listens to it.
            if first {
                self.effects.push_back(Effect::StaleHello { of_seq: hello.seq });
            }
        }
        self.place_again(now);
    }

    /// Anything heard of the device, whatever it says, lifts a suspicion.
    pub(super) fn alive(&mut self, now: Instant) {
        self.line.last_heard = Some(now);
        if self.line.presence == Presence::Suspected {
            self.set_presence(Presence::Online);
        }
    }

    pub(super) fn expire_presence(&mut self, now: Instant) {
        if self.line.suspect_at(&self.settings).is_some_and(|at| at <= now) {
            self.set_presence(Presence::Suspected);
        }
    }

    /// Follows a twin whose actor crashed: withdraws what was in flight, and asks what the state is (semantics 5.8).
    pub(super) fn restore(&mut self, now: Instant, memory: Memory) {
        let Memory { connection, session, boot, description, last_heard, held, unaccepted, in_flight, stale, ended } =
            memory;
        (self.held, self.unaccepted, self.stale) = (held, unaccepted, stale);
        self.line.connection = connection;
        self.line.last_heard = last_heard;
        self.description = description;
        self.reported.resume(boot);
        if session.is_some() {
            self.line.session = session;
            self.line.session_since = Some(now);
            self.line.told_at = Some(now);
            self.set_presence(Presence::Online);
            self.expire_presence(now);
        }
        for (at, left) in ended {
            self.remember_ended(at, left);
        }
        // Each operation once, whoever waited for it, under the id that the device knows.
        let mut by_operation: BTreeMap<OpId, Vec<Left>> = BTreeMap::new();
        for left in in_flight {
            let known = left.settled.joined.clone().unwrap_or_else(|| left.settled.op.clone());
            by_operation.entry(known).or_default().push(left);
        }
        for (op, left) in by_operation {
            if planted::is(Planted::ResendAfterRestart)
                && let Some((property, value)) =
                    left.first().and_then(|l| Some((l.settled.property.clone(), l.settled.wish.clone()?)))
            {
                let ttl = self.settings.start;
                self.send(Command::Set { op: op.clone(), property, value, ttl });
            }
            if !planted::is(Planted::NothingWithdrawn) {
                self.send(Command::Withdraw { op });
            }
            self.remember_interrupted(now, left);
        }
        if self.line.session.is_some() {
            self.send(Command::GetState { op: OpId::new("restored"), property: None });
        }
    }

    fn set_presence(&mut self, presence: Presence) {
        if self.line.presence != presence {
            self.line.presence = presence;
            self.effects.push_back(Effect::Presence(presence));
        }
    }
}
