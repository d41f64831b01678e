//! Every metric: name, kind, labels, help. Dashboards and alerts are checked against this table.
//!
//! Labels have closed sets of words, never anything that a device or a client wrote; no series is made for a device,
//! so their number does not grow with the home.

use super::series::{Kind, Metric, Words};
use truetwin_wire::words::{CommandWord, ErrorWord, EventWord};

use crate::twin::{
    input::Ignored,
    words::{Outcome, Presence, Reason, RefusalWord, Stage},
};

/// Seconds in one stage. The bounds stand around the allowances (semantics 4.9): what a home network takes (1 to 50
/// ms), how long a relay must hold (0.2), how long it expects to need (0.3), the allowance of one stage and of a relay
/// (1.0), of a servo (3.0), and blinds. What was cut off at an allowance lies in the bucket above it.
const STAGE_BUCKETS: &[f64] = &[0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.2, 0.3, 0.5, 1.0, 1.5, 3.0, 10.0, 30.0];

/// Seconds until an answer. The bounds stand around what a person feels (0.1, 0.25, 1), the sum of the allowances of a
/// relay (5), and the limits of callers: a voice box 8, others 30 (semantics 4.2); answers come just below them.
const ANSWER_BUCKETS: &[f64] = &[0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 3.0, 5.0, 8.0, 15.0, 30.0, 60.0];

const STAGE: Words = Words { label: "stage", all: || Stage::ALL.iter().map(|word| word.as_str()).collect() };
const OUTCOME: Words = Words { label: "outcome", all: || Outcome::ALL.iter().map(|word| word.as_str()).collect() };
const REASON: Words = Words { label: "reason", all: || Reason::ALL.iter().map(|word| word.as_str()).collect() };
const REFUSAL: Words = Words { label: "refusal", all: || RefusalWord::ALL.iter().map(|word| word.as_str()).collect() };
const PRESENCE: Words = Words { label: "presence", all: || Presence::ALL.iter().map(|word| word.as_str()).collect() };

/// The commands of the wire protocol.
const COMMAND: Words =
    Words { label: "command", all: || CommandWord::ALL.iter().map(|word| word.as_str()).chain(["unknown"]).collect() };

/// The events of the wire protocol; `status` is a publish on the status topic, `will` a last will.
const EVENT: Words = Words {
    label: "event",
    all: || EventWord::ALL.iter().map(|word| word.as_str()).chain(["status", "will", "unknown"]).collect(),
};

/// Why bytes of a device could not be taken in: the words that the device is told.
const UNREADABLE: Words =
    Words { label: "reason", all: || ErrorWord::ALL.iter().map(|word| word.as_str()).chain(["other"]).collect() };

/// Why a readable report counts for nothing.
const IGNORED: Words = Words { label: "reason", all: || Ignored::ALL.iter().map(|word| word.as_str()).collect() };

/// The tools of the catalogue (answers.md 2).
const TOOL: Words = Words {
    label: "tool",
    all: || {
        let read = ["find_devices", "get_device_state", "check_operation", "ping"];
        let write = ["switch_device", "set_device_level", "set_device_option", "run_device_action", "activate_scene"];
        read.into_iter().chain(write).chain(["confirm_operation", "other"]).collect()
    },
};

/// What a tool call may be said to be (semantics 8.3); `cancelled` if its client no longer waited, `error` if it could not be
/// answered at all.
const RESULT: Words = Words {
    label: "result",
    all: || vec!["confirmed", "failed", "unconfirmed", "working", "ask_user", "partly", "cancelled", "error"],
};

/// Where endpoints are; the words of the endpoint module, which this one does not know.
const ENDPOINT_STATE: Words = Words { label: "state", all: || vec!["waiting", "dialling", "up", "refused", "stopped"] };

/// Why connections to access points ended; the words of the endpoint module.
const ENDPOINT_END: Words = Words {
    label: "reason",
    all: || {
        let ours = ["stopped", "tools_changed", "restarted", "failed"];
        let lost = ["silent", "dropped", "closed", "unanswered", "token_refused", "replaced", "garbled"];
        let never = ["unreachable", "tls", "not_there", "http_refused"];
        ours.into_iter().chain(lost).chain(never).chain(["other"]).collect()
    },
};

const VERSION: Words = Words { label: "version", all: || vec![env!("CARGO_PKG_VERSION")] };

/// A metric without labels.
const fn plain(name: &'static str, kind: Kind, help: &'static str) -> Metric {
    Metric { name, kind, labels: &[], help }
}

/// A metric with labels.
const fn by(labels: &'static [Words], name: &'static str, kind: Kind, help: &'static str) -> Metric {
    Metric { name, kind, labels, help }
}

/// Declares the metrics and the list of them all.
macro_rules! metrics {
    ($($name:ident = $metric:expr;)+) => {
        $(pub(super) const $name: Metric = $metric;)+

        /// All metrics except those of the door and the bus ([`DOOR`]).
        pub const METRICS: &[Metric] = &[$($name,)+];
    };
}

metrics! {
    STAGE_SECONDS = by(&[STAGE], "truetwin_stage_seconds", Kind::Histogram(STAGE_BUCKETS),
        "Seconds that operations spent in each stage.");
    OPERATION_SECONDS = by(&[OUTCOME], "truetwin_operation_seconds", Kind::Histogram(ANSWER_BUCKETS),
        "Seconds from the call to the end of an operation.");
    OPERATIONS = by(&[OUTCOME], "truetwin_operations_total", Kind::Counter,
        "Operations that ended, by outcome.");
    OPERATIONS_IN_FLIGHT = plain("truetwin_operations_in_flight", Kind::Gauge,
        "Operations that have begun and not ended.");
    FAILURES = by(&[STAGE, REASON], "truetwin_failures_total", Kind::Counter,
        "Operations that ended without success, by the stage that broke and the reason.");
    REFUSALS = by(&[REFUSAL], "truetwin_refusals_total", Kind::Counter,
        "Calls that were refused before anything began.");
    LATE_SUCCESS = plain("truetwin_late_success_total", Kind::Counter,
        "Operations that were found done after their callers had heard otherwise.");
    REVERTED = plain("truetwin_reverted_total", Kind::Counter,
        "Devices that went back by themselves after a success.");
    REPLIES_UNHEARD = plain("truetwin_replies_unheard_total", Kind::Counter,
        "Answers whose caller had gone.");
    ANSWERS_UNRECORDED = plain("truetwin_answers_unrecorded_total", Kind::Counter,
        "Answers that went out without their record, because the journal could not keep up.");
    STORAGE_WRITTEN_BYTES = plain("truetwin_storage_written_bytes_total", Kind::Counter,
        "Bytes that the journal handed to the disk.");
    JOURNAL_COMMITS = plain("truetwin_journal_commits_total", Kind::Counter,
        "Transactions of the journal.");
    JOURNAL_ENTRIES = plain("truetwin_journal_entries_total", Kind::Counter,
        "Entries in the journal's transactions.");
    JOURNAL_NOT_KEPT = plain("truetwin_journal_not_kept_total", Kind::Counter,
        "Entries that the journal did not keep: the disk is full or stalls.");
    CALLS_UNANSWERED = plain("truetwin_calls_unanswered_total", Kind::Counter,
        "Calls that their device's actor did not answer by the limit: a fault of the hub.");
    DEVICES = by(&[PRESENCE], "truetwin_devices", Kind::Gauge,
        "Devices by presence.");
    COMMANDS = by(&[COMMAND], "truetwin_commands_published_total", Kind::Counter,
        "Messages published to devices.");
    EVENTS = by(&[EVENT], "truetwin_events_total", Kind::Counter,
        "Messages heard from devices.");
    UNREADABLE_EVENTS = by(&[UNREADABLE], "truetwin_unreadable_events_total", Kind::Counter,
        "Messages of devices that could not be taken in.");
    REPORTS_IGNORED = by(&[IGNORED], "truetwin_reports_ignored_total", Kind::Counter,
        "Readable reports that count for nothing.");
    UNKNOWN_WORDS = plain("truetwin_unknown_words_total", Kind::Counter,
        "Words of devices that this version does not know.");
    ACTOR_RESTARTS = plain("truetwin_actor_restarts_total", Kind::Counter,
        "Restarts of the part of the hub that serves one device.");
    QUARANTINED = plain("truetwin_devices_quarantined", Kind::Gauge,
        "Devices that were set aside because that part failed too often.");
    TOOL_CALLS = by(&[TOOL, RESULT], "truetwin_tool_calls_total", Kind::Counter,
        "Tool calls answered, by tool and result.");
    TOOL_SECONDS = by(&[TOOL], "truetwin_tool_seconds", Kind::Histogram(ANSWER_BUCKETS),
        "Seconds from a tool call to its answer.");
    TOOL_PANICS = plain("truetwin_tool_panics_total", Kind::Counter,
        "Tool calls that failed by a mistake in the hub.");
    MCP_SESSIONS = plain("truetwin_mcp_sessions_total", Kind::Counter,
        "MCP sessions that were opened.");
    ENDPOINTS = by(&[ENDPOINT_STATE], "truetwin_endpoints", Kind::Gauge,
        "Access points of voice assistants, by what they are doing.");
    ENDPOINT_CONNECTIONS = plain("truetwin_endpoint_connections_total", Kind::Counter,
        "Connections that were made to access points.");
    ENDPOINT_ENDS = by(&[ENDPOINT_END], "truetwin_endpoint_ends_total", Kind::Counter,
        "Connections to access points that ended or could not be made, by reason.");
    ENDPOINT_LATE = plain("truetwin_endpoint_calls_late_total", Kind::Counter,
        "Calls of access points that had no answer by their limit: a fault of the hub.");
    ENDPOINT_GARBAGE = plain("truetwin_endpoint_garbage_frames_total", Kind::Counter,
        "Frames of access points that were for nobody.");
    AUDIT_RECORDS = plain("truetwin_audit_records_total", Kind::Counter,
        "Records written to the audit's file.");
    AUDIT_LOST = plain("truetwin_audit_lost_total", Kind::Counter,
        "Records that the audit's file did not take: the disk is full or too slow.");
    BUILD_INFO = by(&[VERSION], "truetwin_build_info", Kind::Gauge,
        "Always 1; the version is in the label.");
    START_TIME = plain("process_start_time_seconds", Kind::Gauge,
        "When the process started, seconds since 1970.");
    RESIDENT_BYTES = plain("process_resident_memory_bytes", Kind::Gauge,
        "Resident memory, bytes; absent where the system does not tell.");
}

/// A metric of the door or the bus, with the name that the broker's own counters have for it.
#[derive(Clone, Copy, Debug)]
pub struct Door {
    /// The name among the broker's counters.
    pub counter: &'static str,
    /// The metric.
    pub metric: Metric,
}

/// A count of the broker, which only grows.
const fn count(counter: &'static str, name: &'static str, help: &'static str) -> Door {
    Door { counter, metric: plain(name, Kind::Counter, help) }
}

/// A figure of the broker at this moment.
const fn now(counter: &'static str, name: &'static str, help: &'static str) -> Door {
    Door { counter, metric: plain(name, Kind::Gauge, help) }
}

/// The metrics of the door and the bus; set from the broker's counters when somebody asks.
pub const DOOR: &[Door] = &[
    count("sockets_accepted", "truetwin_door_sockets_accepted_total", "Sockets accepted."),
    count("accepted", "truetwin_door_connections_accepted_total", "Connections of devices let in."),
    count("refused_silent", "truetwin_door_refused_silent_total", "Sockets that did not say who they are in time."),
    count("refused_crowded", "truetwin_door_refused_crowded_total", "Silent sockets cut to make room for others."),
    count(
        "refused_address",
        "truetwin_door_refused_address_total",
        "Sockets closed before they said who they are, because their address had too many.",
    ),
    count("tls_accepted", "truetwin_door_tls_accepted_total", "TLS handshakes that were finished."),
    count("tls_failed", "truetwin_door_tls_failed_total", "TLS handshakes that failed."),
    count("tls_reloads", "truetwin_door_tls_reloads_total", "TLS certificates that were read anew."),
    count(
        "tls_reloads_failed",
        "truetwin_door_tls_reloads_failed_total",
        "Changed TLS certificates that could not be used; the one before stayed.",
    ),
    count("refused_plain", "truetwin_door_refused_plain_total", "Connections without TLS where it is required."),
    count("refused_connect_bytes", "truetwin_door_refused_connect_bytes_total", "First packets that were too large."),
    count("refused_malformed", "truetwin_door_refused_malformed_total", "First packets that were no readable CONNECT."),
    count("refused_version", "truetwin_door_refused_version_total", "Connections with another MQTT version."),
    count("logins_failed", "truetwin_door_logins_failed_total", "Connections with a wrong user name or password."),
    count("logins_delayed", "truetwin_door_logins_delayed_total", "Logins that waited because wrong ones came before."),
    count("refused_guessing", "truetwin_door_refused_guessing_total", "Logins refused unjudged: too many waited."),
    count("refused_client_id", "truetwin_door_refused_client_id_total", "Connections with a client id that cannot be."),
    count("refused_will", "truetwin_door_refused_will_total", "Connections with a last will that is not allowed."),
    count("refused_unsupported", "truetwin_door_refused_unsupported_total", "Connections that asked for too much."),
    count("refused_busy", "truetwin_door_refused_busy_total", "Connections refused because there were too many."),
    count(
        "refused_address_full",
        "truetwin_door_refused_address_full_total",
        "Connections refused because their address had too many.",
    ),
    count(
        "refused_rivals",
        "truetwin_door_duplicate_device_total",
        "Connections refused because another board has the name and the connection.",
    ),
    count("foreign_topics", "truetwin_door_foreign_topics_total", "Publishes to a topic of somebody else."),
    count("subscriptions_refused", "truetwin_door_subscriptions_refused_total", "Subscriptions refused."),
    count("oversize", "truetwin_door_oversize_total", "Packets larger than allowed."),
    count("protocol_errors", "truetwin_door_protocol_errors_total", "Connections closed for what they sent."),
    count("slowed", "truetwin_door_slowed_total", "Times that a connection was not read because it sent too fast."),
    count("takeovers", "truetwin_door_takeovers_total", "Connections replaced by another of the same device."),
    count("keep_alive_expiries", "truetwin_door_keep_alive_expiries_total", "Connections that were silent too long."),
    count(
        "acknowledgement_expiries",
        "truetwin_door_acknowledgement_expiries_total",
        "Connections ended because a report was not taken in in time.",
    ),
    count("kicks", "truetwin_door_kicks_total", "Connections that the hub cut."),
    count("reports_in", "truetwin_door_reports_read_total", "Reports read from devices."),
    count("reports_taken", "truetwin_door_reports_taken_total", "Reports that the hub has taken in."),
    count("reports_refused", "truetwin_door_reports_refused_total", "Reports that the hub gave up."),
    count(
        "reports_unread",
        "truetwin_door_reports_unread_total",
        "Reports that were held back, unacknowledged, when their connection ended.",
    ),
    count("acknowledged", "truetwin_door_reports_acknowledged_total", "Reports acknowledged to their device."),
    count("commands_in", "truetwin_door_commands_total", "Commands handed to the door."),
    count("commands_written", "truetwin_door_commands_written_total", "Commands written to a device's connection."),
    count("commands_lost", "truetwin_door_commands_lost_total", "Commands that could not be written."),
    count(
        "refused_checking",
        "truetwin_door_refused_checking_total",
        "Logins of accounts refused because too many passwords were being checked.",
    ),
    count("messages_in", "truetwin_accounts_messages_in_total", "Publishes of service accounts."),
    count("messages_out", "truetwin_accounts_messages_out_total", "Messages sent to service accounts."),
    count(
        "messages_dropped",
        "truetwin_accounts_messages_dropped_total",
        "QoS 0 messages dropped for an account that reads too slowly.",
    ),
    count(
        "messages_expired",
        "truetwin_accounts_messages_expired_total",
        "Messages that expired before they were sent.",
    ),
    count(
        "messages_too_large",
        "truetwin_accounts_messages_too_large_total",
        "Messages larger than the account's program takes.",
    ),
    count(
        "slow_readers",
        "truetwin_accounts_slow_readers_total",
        "Connections of accounts closed because they read too slowly for QoS 1.",
    ),
    count("retained_refused", "truetwin_accounts_retained_refused_total", "Messages not retained for lack of room."),
    count("bus_rebuilds", "truetwin_bus_rebuilds_total", "Routers that died and were rebuilt."),
    count(
        "bus_down_us",
        "truetwin_bus_down_microseconds_total",
        "Microseconds in which the bus did not carry, from a router's last sign of life to its successor.",
    ),
    count("bus_gaps", "truetwin_bus_gaps_total", "Gaps in what came out of the router."),
    count("bus_resends", "truetwin_bus_resends_total", "Frames sent again over the bus."),
    count("bus_duplicates", "truetwin_bus_duplicates_total", "Frames that came twice and were dropped."),
    count("bus_full", "truetwin_bus_full_total", "Times that the router's channel was full."),
    now(
        "bus_rebuild_us",
        "truetwin_bus_rebuild_microseconds",
        "Microseconds in which the bus did not carry when it was last rebuilt.",
    ),
    now("connections", "truetwin_door_connections", "Devices connected."),
    now("unacknowledged_bytes", "truetwin_door_unacknowledged_bytes", "Bytes of reports not taken in yet."),
    now("held_back_connections", "truetwin_door_held_back_connections", "Connections not read for lack of credits."),
    now("bus_waiting", "truetwin_bus_waiting", "Frames in or in front of the bus."),
    now(
        "tls_expires_s",
        "truetwin_door_tls_certificate_end_seconds",
        "When the TLS certificate ends, seconds since 1970; 0 without TLS.",
    ),
    now("account_connections", "truetwin_accounts_connections", "Connections of service accounts."),
    now("subscriptions", "truetwin_accounts_subscriptions", "Subscriptions of service accounts."),
    now("retained_messages", "truetwin_accounts_retained_messages", "Retained messages."),
    now("retained_bytes", "truetwin_accounts_retained_bytes", "Bytes of retained messages."),
];
