//! What happens to a twin: its inputs, and what it began with.

use serde_json::Value as Json;

use super::plain::{Read, Write, Wrong, Zero, field, fields, named, put, variants, words, written, written_variants};
use crate::twin::{
    Hears, Waiter,
    held::Held,
    input::{ActionResult, Body, Cause, Found, Hello, Input, Left, Memory, Report, Status},
    settings::Settings,
    wish::{Target, Wish},
    words::{Attribution, Measured, Outcome, Reading, Reason, Settled, Stage, Trust},
};

words! { Stage, Outcome, Reason, Trust, Attribution }

named! {
    Cause {
        Command = "command",
        Local = "local",
        Boot = "boot",
        Periodic = "periodic",
        Query = "query",
        Failsafe = "failsafe",
        Unknown = "unknown",
    }
    ActionResult {
        Received = "received",
        Executing = "executing",
        Working = "working",
        Completed = "completed",
        Failed = "failed",
        Rejected = "rejected",
        Unknown = "unknown",
    }
}

variants! {
    Input {
        Set { op, caller, wish, answer_by } = "set",
        Run { op, caller, action, args, answer_by } = "run",
        Query { op, answer_by } = "query",
        Cancel { op } = "cancel",
        Connected { connection } = "connected",
        Disconnected { connection } = "disconnected",
        Greeted { session, hello } = "greeted",
        Heard(report) = "heard",
        Unreadable = "unreadable",
        Written { op } = "written",
        NotWritten { op } = "not_written",
        Verified { question, found } = "verified",
        BusDown = "bus_down",
        BusUp = "bus_up",
        Restored(memory) = "restored",
        ShutDown = "shut_down",
        Removed = "removed",
        Tick = "tick",
    }
    Target {
        To(value) = "to",
        By(amount) = "by",
        Toggle = "toggle",
    }
    Found {
        Value(value) = "value",
        Offline = "offline",
        Silent = "silent",
    }
    Body {
        Action { op, result, reason, eta, clamped } = "action",
        State { op, cause, seen } = "state",
        Heartbeat = "heartbeat",
    }
    Hears {
        Waits = "waits",
        Told { outcome, at } = "told",
        Gone = "gone",
    }
}

fields! {
    Wish { property, target, if_needed, valid_for }
    Hello { boot, seq, description, status, cause, seen }
    Report { boot, seq, retained, status, body }
    Status { property, value, evidence }
    Memory {
        connection, session, boot, description, last_heard, held, unaccepted, in_flight, stale, ended,
    }
    Held {
        value, op, since, valid_until, attempts, sent, next_at, met, came_true, before, stored, overridden, blocked, reason,
    }
    Waiter { op, caller, behind, expires_at, hears }
    Left { caller, hears, settled }
    Settled {
        op, device, property, wish, outcome, stage, reason, found, confirmed_by, attribution, measured, eta, elapsed, stages,
        late_success, reverted, joined, superseded_by, limited, kept, recorded,
    }
    Reading { value, evidence, age, trust }
    Measured { device, property, value, agrees }
    Settings {
        started, answer_margin, broker, ack, start, report_margin, read_back, act_by_max, transit, driving_max, outbox,
        begin_min, wait_online, recently_seen, just_started, heartbeat, reconcile, watch, base_max_age, queued_max, waiting_max,
        joined_max, queries_max, records_max,
    }
}
