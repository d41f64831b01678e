//! What is measured. Each metric is in the table (`table.rs`); the methods here are named after what happened.
//!
//! Every [`Metrics`] has a recorder of its own and nothing is installed globally, so several hubs fit in one process.
//! Handles are registered once and kept: to count is one atomic addition. Knows only the twin's words; whoever
//! knows more (the broker's counters, the fleet's list) hands it in when somebody asks for the text.

mod series;
mod table;

use std::{
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use metrics::{Counter, Gauge, Histogram};
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};

use self::series::Series;
pub use self::{
    series::{Kind, Metric, Words},
    table::{DOOR, Door, METRICS},
};
use crate::twin::{
    input::Ignored,
    words::{Outcome, Presence, Reason, RefusalWord, Stage},
};

/// How often [`Metrics::upkeep`] is to be called: observations wait in memory until then or until the next render, a
/// few dozen bytes each.
pub const UPKEEP_EVERY: Duration = Duration::from_secs(5);

/// The metrics of one hub; clones share them.
#[derive(Clone)]
pub struct Metrics {
    shared: Arc<Shared>,
}

struct Shared {
    handle: PrometheusHandle,
    stage_seconds: Series<Histogram>,
    operation_seconds: Series<Histogram>,
    operations: Series<Counter>,
    operations_in_flight: Series<Gauge>,
    failures: Series<Counter>,
    refusals: Series<Counter>,
    late_success: Series<Counter>,
    reverted: Series<Counter>,
    replies_unheard: Series<Counter>,
    answers_unrecorded: Series<Counter>,
    storage_written_bytes: Series<Counter>,
    journal_commits: Series<Counter>,
    journal_entries: Series<Counter>,
    journal_not_kept: Series<Counter>,
    calls_unanswered: Series<Counter>,
    devices: Series<Gauge>,
    commands: Series<Counter>,
    events: Series<Counter>,
    unreadable_events: Series<Counter>,
    reports_ignored: Series<Counter>,
    unknown_words: Series<Counter>,
    actor_restarts: Series<Counter>,
    quarantined: Series<Gauge>,
    tool_calls: Series<Counter>,
    tool_seconds: Series<Histogram>,
    tool_panics: Series<Counter>,
    mcp_sessions: Series<Counter>,
    endpoints: Series<Gauge>,
    endpoint_connections: Series<Counter>,
    endpoint_ends: Series<Counter>,
    endpoint_late: Series<Counter>,
    endpoint_garbage: Series<Counter>,
    audit_records: Series<Counter>,
    audit_lost: Series<Counter>,
    resident_bytes: Series<Gauge>,
    door: Vec<(&'static str, DoorHandle)>,
}

enum DoorHandle {
    Count(Series<Counter>),
    Now(Series<Gauge>),
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

impl Metrics {
    /// A recorder with every series of the table at 0.
    pub fn new() -> Self {
        let mut builder = PrometheusBuilder::new();
        for metric in METRICS {
            if let Kind::Histogram(bounds) = metric.kind {
                let matcher = Matcher::Full(metric.name.to_owned());
                builder = builder.set_buckets_for_metric(matcher, bounds).expect("every histogram has bounds");
            }
        }
        let recorder = builder.build_recorder();
        let counter = |metric: &Metric| series::counter(&recorder, metric);
        let gauge = |metric: &Metric| series::gauge(&recorder, metric);
        let histogram = |metric: &Metric| series::histogram(&recorder, metric);
        let door = |door: &Door| {
            let handle = match door.metric.kind {
                Kind::Counter => DoorHandle::Count(counter(&door.metric)),
                Kind::Gauge | Kind::Histogram(_) => DoorHandle::Now(gauge(&door.metric)),
            };
            (door.counter, handle)
        };
        gauge(&table::BUILD_INFO).at(&[env!("CARGO_PKG_VERSION")]).set(1);
        let started = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        gauge(&table::START_TIME).at(&[]).set(started.as_secs_f64());
        let shared = Shared {
            handle: recorder.handle(),
            stage_seconds: histogram(&table::STAGE_SECONDS),
            operation_seconds: histogram(&table::OPERATION_SECONDS),
            operations: counter(&table::OPERATIONS),
            operations_in_flight: gauge(&table::OPERATIONS_IN_FLIGHT),
            failures: counter(&table::FAILURES),
            refusals: counter(&table::REFUSALS),
            late_success: counter(&table::LATE_SUCCESS),
            reverted: counter(&table::REVERTED),
            replies_unheard: counter(&table::REPLIES_UNHEARD),
            answers_unrecorded: counter(&table::ANSWERS_UNRECORDED),
            storage_written_bytes: counter(&table::STORAGE_WRITTEN_BYTES),
            journal_commits: counter(&table::JOURNAL_COMMITS),
            journal_entries: counter(&table::JOURNAL_ENTRIES),
            journal_not_kept: counter(&table::JOURNAL_NOT_KEPT),
            calls_unanswered: counter(&table::CALLS_UNANSWERED),
            devices: gauge(&table::DEVICES),
            commands: counter(&table::COMMANDS),
            events: counter(&table::EVENTS),
            unreadable_events: counter(&table::UNREADABLE_EVENTS),
            reports_ignored: counter(&table::REPORTS_IGNORED),
            unknown_words: counter(&table::UNKNOWN_WORDS),
            actor_restarts: counter(&table::ACTOR_RESTARTS),
            quarantined: gauge(&table::QUARANTINED),
            tool_calls: counter(&table::TOOL_CALLS),
            tool_seconds: histogram(&table::TOOL_SECONDS),
            tool_panics: counter(&table::TOOL_PANICS),
            mcp_sessions: counter(&table::MCP_SESSIONS),
            endpoints: gauge(&table::ENDPOINTS),
            endpoint_connections: counter(&table::ENDPOINT_CONNECTIONS),
            endpoint_ends: counter(&table::ENDPOINT_ENDS),
            endpoint_late: counter(&table::ENDPOINT_LATE),
            endpoint_garbage: counter(&table::ENDPOINT_GARBAGE),
            audit_records: counter(&table::AUDIT_RECORDS),
            audit_lost: counter(&table::AUDIT_LOST),
            resident_bytes: gauge(&table::RESIDENT_BYTES),
            door: DOOR.iter().map(door).collect(),
        };
        Self { shared: Arc::new(shared) }
    }

    /// An operation was in a stage for so long.
    pub fn stage_passed(&self, stage: Stage, spent: Duration) {
        self.shared.stage_seconds.at(&[stage.as_str()]).record(spent);
    }

    /// An operation has begun; it is in flight until the guard is dropped, also if its actor fails.
    pub fn operation_began(&self) -> InFlight {
        let gauge = self.shared.operations_in_flight.at(&[]).clone();
        gauge.increment(1);
        InFlight { gauge }
    }

    /// An operation has ended, so long after the call that began it.
    pub fn operation_ended(&self, outcome: Outcome, elapsed: Duration) {
        self.shared.operations.at(&[outcome.as_str()]).increment(1);
        self.shared.operation_seconds.at(&[outcome.as_str()]).record(elapsed);
    }

    /// An operation has ended without success in this stage, for this reason.
    pub fn operation_failed(&self, stage: Stage, reason: Reason) {
        self.shared.failures.at(&[stage.as_str(), reason.as_str()]).increment(1);
    }

    /// A call was refused.
    pub fn call_refused(&self, refusal: RefusalWord) {
        self.shared.refusals.at(&[refusal.as_str()]).increment(1);
    }

    /// An operation was found done after its callers had heard otherwise (semantics 6.1).
    pub fn succeeded_late(&self) {
        self.shared.late_success.at(&[]).increment(1);
    }

    /// A device went back by itself after a success (semantics 3.7).
    pub fn device_reverted(&self) {
        self.shared.reverted.at(&[]).increment(1);
    }

    /// An answer was ready and its caller had gone.
    pub fn reply_unheard(&self) {
        self.shared.replies_unheard.at(&[]).increment(1);
    }

    /// An answer went out without its record: the journal could not keep up (semantics 8.5).
    pub fn answered_unrecorded(&self) {
        self.shared.answers_unrecorded.at(&[]).increment(1);
    }

    /// An actor did not answer a call by its limit: a fault of the hub.
    pub fn call_unanswered(&self) {
        self.shared.calls_unanswered.at(&[]).increment(1);
    }

    /// A report counts for nothing.
    pub fn report_ignored(&self, why: Ignored) {
        self.shared.reports_ignored.at(&[why.as_str()]).increment(1);
    }

    /// So many devices have this presence now.
    pub fn devices_are(&self, presence: Presence, count: usize) {
        self.shared.devices.at(&[presence.as_str()]).set(figure(count));
    }

    /// A message was published to a device; `command` is its word on the wire.
    pub fn command_published(&self, command: &str) {
        self.shared.commands.at(&[command]).increment(1);
    }

    /// A message of a device was read; `event` is its word on the wire, `status` for a publish on that topic, `will` for a last will.
    pub fn event_heard(&self, event: &str) {
        self.shared.events.at(&[event]).increment(1);
    }

    /// A message of a device could not be taken in; `reason` is the word that the device is told.
    pub fn event_unreadable(&self, reason: &str) {
        self.shared.unreadable_events.at(&[reason]).increment(1);
    }

    /// A message held so many words that this version does not know.
    pub fn unknown_words(&self, count: u32) {
        self.shared.unknown_words.at(&[]).increment(count.into());
    }

    /// The actor of a device was restarted.
    pub fn actor_restarted(&self) {
        self.shared.actor_restarts.at(&[]).increment(1);
    }

    /// So many devices are set aside now.
    pub fn quarantined_are(&self, count: usize) {
        self.shared.quarantined.at(&[]).set(figure(count));
    }

    /// A tool call was answered; `result` is the word of its answer (semantics 8.3), or `error`.
    pub fn tool_called(&self, tool: &str, result: &str, took: Duration) {
        self.shared.tool_calls.at(&[tool, result]).increment(1);
        self.shared.tool_seconds.at(&[tool]).record(took);
    }

    /// A tool call failed by a mistake in the hub.
    pub fn tool_panicked(&self) {
        self.shared.tool_panics.at(&[]).increment(1);
    }

    /// An MCP session was opened.
    pub fn mcp_session_opened(&self) {
        self.shared.mcp_sessions.at(&[]).increment(1);
    }

    /// So many access points are in this state now.
    pub fn endpoints_are(&self, state: &str, count: usize) {
        self.shared.endpoints.at(&[state]).set(figure(count));
    }

    /// A connection was made to an access point.
    pub fn endpoint_connected(&self) {
        self.shared.endpoint_connections.at(&[]).increment(1);
    }

    /// A connection to an access point ended, or could not be made; `reason` is the endpoint module's word.
    pub fn endpoint_ended(&self, reason: &str) {
        self.shared.endpoint_ends.at(&[reason]).increment(1);
    }

    /// A call of an access point had no answer by its limit.
    pub fn endpoint_call_late(&self) {
        self.shared.endpoint_late.at(&[]).increment(1);
    }

    /// A frame of an access point was for nobody.
    pub fn endpoint_garbage(&self) {
        self.shared.endpoint_garbage.at(&[]).increment(1);
    }

    /// So many records were written to the audit's file, and so many lost for it.
    pub fn audit_is(&self, written: u64, lost: u64) {
        self.shared.audit_records.at(&[]).absolute(written);
        self.shared.audit_lost.at(&[]).absolute(lost);
    }

    /// Takes over the journal's figures.
    pub fn journal_is(&self, written_bytes: u64, commits: u64, entries: u64, not_kept: u64) {
        let shared = &self.shared;
        shared.storage_written_bytes.at(&[]).absolute(written_bytes);
        shared.journal_commits.at(&[]).absolute(commits);
        shared.journal_entries.at(&[]).absolute(entries);
        shared.journal_not_kept.at(&[]).absolute(not_kept);
    }

    /// Takes over one figure of the broker, by its name among the broker's counters ([`DOOR`]); says whether there is a
    /// metric for it, so that a test can hold the two lists together.
    pub fn observe_door(&self, counter: &str, value: u64) -> bool {
        let found = self.shared.door.iter().find(|(name, _)| *name == counter);
        match found {
            Some((_, DoorHandle::Count(count))) => count.at(&[]).absolute(value),
            #[expect(
                clippy::cast_precision_loss,
                reason = "exact up to 2^53, and a gauge is a float in Prometheus anyway"
            )]
            Some((_, DoorHandle::Now(gauge))) => gauge.at(&[]).set(value as f64),
            None => {}
        }
        found.is_some()
    }

    /// Sorts waiting observations into their buckets; to be called every [`UPKEEP_EVERY`], so that they do not pile up
    /// where nobody asks for the text.
    pub fn upkeep(&self) {
        self.shared.handle.run_upkeep();
    }

    /// The text for Prometheus.
    pub fn render(&self) -> String {
        if let Some(bytes) = resident_bytes() {
            self.shared.resident_bytes.at(&[]).set(figure(bytes));
        }
        // Histograms appear in the text only once their observations, even if there are none, have been sorted.
        self.upkeep();
        self.shared.handle.render()
    }
}

/// An operation in flight; dropped when it is not any more.
#[must_use]
#[derive(Debug)]
pub struct InFlight {
    gauge: Gauge,
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.gauge.decrement(1);
    }
}

#[expect(clippy::cast_precision_loss, reason = "exact up to 2^53")]
fn figure(count: usize) -> f64 {
    count as f64
}

/// Resident memory as Linux tells it (proc(5), `VmRSS`); `None` elsewhere.
fn resident_bytes() -> Option<usize> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let kib: usize = status.lines().find_map(|l| l.strip_prefix("VmRSS:"))?.trim().strip_suffix(" kB")?.parse().ok()?;
    kib.checked_mul(1024)
}
