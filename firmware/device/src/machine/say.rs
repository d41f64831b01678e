//! What the device says: each event with the state read at that moment.

use heapless::Vec;
use truetwin_wire::{
    Scalar,
    device::{self, ActionReport, Description, DeviceState, Envelope, Event, Hello, Reading},
    words::{CauseWord, ReasonWord, ReportResult},
};

use super::{Heard, Machine, PROPERTIES_MAX};
use crate::{board::Board, ring::Id};

/// One property, read.
struct Now {
    property: usize,
    value: Option<Scalar>,
    seen: Option<Id>,
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

    #[expect(clippy::too_many_arguments, reason = "the facts of one report")]
    pub(super) fn report(
        &mut self,
        op: &str,
        action: &str,
        property: Option<usize>,
        result: ReportResult,
        reason: Option<ReasonWord>,
        dup: bool,
        now: Option<Scalar>,
        now_ms: u64,
        board: &impl Board,
    ) {
        let readings: Vec<Now, 1> =
            property.map(|property| Now { property, value: now, seen: None }).into_iter().collect();
        self.with_readings(&readings, board, |machine, readings| {
            let property = readings.first().map(|r| r.property);
            let report =
                ActionReport { op, action, property, result, readings, reason, eta_ms: None, clamped: false, dup };
            machine.emit(&Event::ActionReport(report), now_ms);
        });
    }

    pub(super) fn hello(&mut self, now_ms: u64, board: &mut impl Board) {
        self.hello_ms = Some(now_ms);
        let cause = if self.known { CauseWord::Periodic } else { CauseWord::Boot };
        let readings = self.readings(board);
        let (identity, desc) = (self.identity, self.desc.clone());
        self.with_readings(&readings, board, |machine, readings| {
            let description = Description { properties: board.properties(), actions: &[], exclusive: &[] };
            let (fw, model) = (identity.fw, identity.model);
            let hello = Hello { level: 2, fw, model, desc: &desc, description, readings, cause };
            machine.emit(&Event::Hello(hello), now_ms);
        });
    }

    /// Reads all properties.
    fn readings(&self, board: &mut impl Board) -> Vec<Now, PROPERTIES_MAX> {
        let all = self.seen.iter().enumerate();
        all.map(|(property, seen)| Now { property, value: board.read(property), seen: seen.clone() }).collect()
    }

    /// Puts names and evidence to what was read.
    fn with_readings(&mut self, now: &[Now], board: &impl Board, then: impl FnOnce(&mut Self, &[Reading<'_>])) {
        let named = |now| {
            let Now { property, value, seen }: &Now = now;
            let spec = board.properties().get(*property)?;
            Some(Reading { property: spec.name, value: value.clone(), evidence: spec.feedback, seen: seen.as_deref() })
        };
        let readings: Vec<Reading<'_>, PROPERTIES_MAX> = now.iter().filter_map(named).collect();
        then(self, &readings);
    }

    /// Writes an event into the outbox. Without a session only a hello may be sent: what else happened is in its state.
    pub(super) fn emit(&mut self, event: &Event<'_>, now_ms: u64) {
        if self.session.is_none() && !matches!(event, Event::Hello(_)) {
            return;
        }
        self.seq = self.seq.saturating_add(1);
        let session = self.session.as_deref().unwrap_or_default();
        let envelope = Envelope { session, boot: &self.boot, seq: self.seq, up_ms: now_ms };
        if self.outbox.push(|buffer| device::write(&envelope, event, buffer)).is_err() {
            self.lost_events = self.lost_events.saturating_add(1);
        }
    }
}
