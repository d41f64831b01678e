//! What the device says: each event with the state read at that moment.

use heapless::Vec;
use truetwin_wire::{
    Scalar,
    device::{self, ActionReport, Description, DeviceState, Envelope, Event, Hello, Reading},
    words::{CauseWord, EvidenceWord, ReasonWord, ReportResult},
};

use super::{Heard, LEVEL, Machine, PROPERTIES_MAX};
use crate::{
    board::{Board, Part},
    ring::{Id, Told},
};

/// One property, read.
struct Now {
    property: usize,
    value: Option<Scalar>,
    seen: Option<Id>,
}

/// The facts of one report.
pub(super) struct Report<'r> {
    pub(super) op: &'r str,
    pub(super) part: Option<Part>,
    /// What was asked for, where it is no part of this board.
    pub(super) asked: &'r str,
    pub(super) result: ReportResult,
    pub(super) reason: Option<ReasonWord>,
    /// What the property was read as just now.
    pub(super) now: Option<Scalar>,
    pub(super) eta_ms: Option<u32>,
    pub(super) clamped: bool,
    pub(super) dup: bool,
}

impl<'r> Report<'r> {
    /// A report of how far it is, with nothing else to say.
    pub(super) fn new(op: &'r str, part: Option<Part>, result: ReportResult, now: Option<Scalar>) -> Self {
        Self { op, part, asked: "set", result, reason: None, now, eta_ms: None, clamped: false, dup: false }
    }
}

impl Machine<'_> {
    pub(super) fn state(&mut self, op: &str, name: Option<&str>, now_ms: u64, board: &mut impl Board) -> Heard {
        let readings = self.readings(board);
        let wanted =
            |r: &Now| name.is_none_or(|name| board.properties().get(r.property).is_some_and(|p| p.name == name));
        let wanted: Vec<Now, PROPERTIES_MAX> = readings.into_iter().filter(wanted).collect();
        self.with_readings(&wanted, board, |machine, readings| {
            let state = DeviceState { op: Some(op), readings, cause: CauseWord::Query };
            machine.emit(&Event::DeviceState(state), now_ms);
        });
        Heard::Command
    }

    /// Tells the whole state unasked.
    pub(super) fn tell_state(&mut self, cause: CauseWord, now_ms: u64, board: &mut impl Board) {
        let readings = self.readings(board);
        self.with_readings(&readings, board, |machine, readings| {
            machine.emit(&Event::DeviceState(DeviceState { op: None, readings, cause }), now_ms);
        });
    }

    /// Tells how far an operation is; how that is on its way to the hub.
    pub(super) fn report(&mut self, report: Report<'_>, now_ms: u64, board: &impl Board) -> Told {
        let Report { op, part, asked, result, reason, now, eta_ms, clamped, dup } = report;
        let readings: Vec<Now, 1> = match part {
            Some(Part::Property(property)) => core::iter::once(Now { property, value: now, seen: None }).collect(),
            Some(Part::Action(_)) | None => Vec::new(),
        };
        let action = match part {
            Some(Part::Action(action)) => board.actions().get(action).map_or(asked, |spec| spec.name),
            Some(Part::Property(_)) => "set",
            None => asked,
        };
        let named = readings.first().and_then(|r| board.properties().get(r.property)).map(|spec| spec.name);
        let mut told = Told::Owed;
        self.with_readings(&readings, board, |machine, readings| {
            let report = ActionReport { op, action, property: named, result, readings, reason, eta_ms, clamped, dup };
            told = machine.emit(&Event::ActionReport(report), now_ms).map_or(Told::Owed, Told::Sent);
        });
        told
    }

    pub(super) fn hello(&mut self, now_ms: u64, board: &mut impl Board) {
        self.hello_ms = Some(now_ms);
        let cause = match (self.known, self.changed_alone) {
            (false, _) => CauseWord::Boot,
            (true, Some(cause)) => cause,
            (true, None) => CauseWord::Periodic,
        };
        let readings = self.readings(board);
        let (identity, desc) = (self.identity, self.desc.clone());
        self.with_readings(&readings, board, |machine, readings| {
            let description = description(board);
            let (fw, model) = (identity.fw, identity.model);
            let hello = Hello { level: LEVEL, fw, model, desc: &desc, description, readings, cause };
            machine.emit(&Event::Hello(hello), now_ms);
        });
    }

    /// Reads a property; what has no read-back is unknown, whatever the board thinks.
    pub(super) fn read(&self, part: Option<Part>, board: &mut impl Board) -> Option<Scalar> {
        let Some(Part::Property(property)) = part else { return None };
        let known = board.properties().get(property)?.feedback != EvidenceWord::None;
        if known { board.read(property) } else { None }
    }

    /// Reads all properties.
    fn readings(&self, board: &mut impl Board) -> Vec<Now, PROPERTIES_MAX> {
        let all = self.seen.iter().enumerate();
        all.map(|(property, seen)| Now {
            property,
            value: self.read(Some(Part::Property(property)), board),
            seen: seen.clone(),
        })
        .collect()
    }

    /// Puts names and evidence to what was read.
    fn with_readings(&mut self, now: &[Now], board: &impl Board, then: impl FnOnce(&mut Self, &[Reading<'_>])) {
        let named = |now| {
            let Now { property, value, seen }: &Now = now;
            let spec = board.properties().get(*property)?;
            if value.is_none() && seen.is_none() {
                return None; // unknown is absence
            }
            Some(Reading { property: spec.name, value: value.clone(), evidence: spec.feedback, seen: seen.as_deref() })
        };
        let readings: Vec<Reading<'_>, PROPERTIES_MAX> = now.iter().filter_map(named).collect();
        then(self, &readings);
    }

    /// Writes an event into the outbox; its `seq`. Without a session only a hello may be sent: what else happened is in its
    /// state.
    pub(super) fn emit(&mut self, event: &Event<'_>, now_ms: u64) -> Option<u32> {
        if self.session.is_none() && !matches!(event, Event::Hello(_)) {
            return None;
        }
        self.seq = self.seq.saturating_add(1);
        let session = self.session.as_deref().unwrap_or_default();
        let envelope = Envelope { session, boot: &self.boot, seq: self.seq, up_ms: now_ms };
        match self.outbox.push(self.seq, |buffer| device::write(&envelope, event, buffer)) {
            Ok(()) => Some(self.seq),
            Err(_) => {
                self.lost_events = self.lost_events.saturating_add(1);
                None
            }
        }
    }

    /// Tells the ends that the hub does not know, the oldest first, with the state of now, and what still moves: after a
    /// reconnect, and after the outbox was full.
    pub(super) fn tell_what_is_owed(&mut self, now_ms: u64, board: &mut impl Board) {
        if self.session.is_none() {
            return;
        }
        if core::mem::take(&mut self.greet_again) {
            for at in 0..self.moving.len() {
                let Some(moving) = self.moving.get(at) else { break };
                let (op, part, clamped) = (moving.op.clone(), Some(moving.part), moving.clamped);
                let now = self.read(part, board);
                let executing = Report::new(&op, part, ReportResult::Executing, now);
                self.report(Report { clamped, ..executing }, now_ms, board);
            }
        }
        while self.outbox.has_room() {
            let Some(ended) = self.ended.owed().cloned() else { break };
            let now = self.read(ended.part, board);
            let report = Report::new(&ended.op, ended.part, ended.result, now);
            let told = self.report(Report { reason: ended.reason, clamped: ended.clamped, ..report }, now_ms, board);
            for known in self.ended.iter_mut().filter(|known| known.op == ended.op) {
                known.told = told;
            }
            if told == Told::Owed {
                break;
            }
        }
    }
}

/// What the board has.
pub(super) fn description(board: &impl Board) -> Description<'_> {
    Description { properties: board.properties(), actions: board.actions(), exclusive: board.exclusive() }
}
