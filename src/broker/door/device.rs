//! What a device may say: reports on its own topics, a subscription to its own commands.

use std::sync::Arc;

use super::{
    codec::{Publish, Reason, Subscribe, Unsubscribe, encode},
    rights::{self, Own},
    session::{Ended, Flow},
};
use crate::broker::{
    Closed, MqttVersion, Receipt,
    conn::Conn,
    core::{Cargo, Core},
    counters::count,
    frame::Kind,
    settings::REPORT_OVERHEAD_BYTES,
};

/// A publish: a report, if it is on one of the device's own topics.
pub(super) fn publish(core: &Arc<Core>, conn: &Arc<Conn>, publish: &Publish<'_>) -> Result<Flow, Ended> {
    let v5 = conn.version == MqttVersion::V5;
    // What CONNACK said is not offered.
    if publish.qos == 2 {
        return Err(Ended::with(Closed::ProtocolError, Reason::QosNotSupported));
    }
    if publish.alias.is_some() {
        return Err(Ended::with(Closed::ProtocolError, Reason::TopicAliasInvalid));
    }
    if publish.retain && v5 {
        return Err(Ended::with(Closed::ProtocolError, Reason::RetainNotSupported));
    }
    if publish.dup && conn.state().waits_for(publish.packet_id) {
        return Ok(Flow::On); // said again on the same connection, out of impatience: its answer is on its way
    }
    let full = usize::from(core.settings.inflight_max);
    let mut state = conn.state();
    if state.closed.is_some() || (publish.qos == 1 && state.unacknowledged() >= full) {
        return Ok(Flow::HeldBack);
    }
    let Some(own) = rights::publishes_to(&conn.name, publish.topic) else {
        count(&core.totals.foreign_topics);
        if !v5 {
            return Err(Ended::silently(Closed::ForeignTopic)); // no code for it, and no silence either
        }
        if publish.qos == 1 {
            state.refuse(publish.packet_id, Reason::NotAuthorized);
            state.acknowledge(conn.version);
        }
        return Ok(Flow::On);
    };
    let cost_bytes = publish.payload.len() + REPORT_OVERHEAD_BYTES;
    let place = core.place_for_report().filter(|_| core.credits.take(cost_bytes));
    let Some(place) = place else {
        if !state.held_back {
            state.held_back = true;
            core.credits.wait(conn);
        }
        return Ok(Flow::HeldBack);
    };
    count(&core.totals.reports_in);
    let slot = (publish.qos == 1).then(|| state.open_slot(publish.packet_id, core.now_ms()));
    let kind = match own {
        Own::Event => Kind::Event { retained: publish.retain },
        Own::Status => Kind::Status { retained: publish.retain },
    };
    let receipt = Some(Receipt::new(core, conn, slot, cost_bytes));
    // Under the lock, so that nothing of this connection is told after its end.
    let (device, number) = (&conn.name, conn.number);
    core.tell(device, number, kind, publish.payload, Cargo { place, receipt });
    Ok(Flow::On)
}

/// A SUBSCRIBE: to its own `command` topic, and to nothing else.
pub(super) fn subscribe(core: &Core, conn: &Conn, subscribe: &Subscribe<'_>) -> Flow {
    let (device, version) = (&conn.name, conn.version);
    let code = |filter| rights::subscription(device, version, filter, subscribe.identified);
    let codes: Vec<u8> = subscribe.subscriptions().map(|each| code(each.filter)).collect();
    let mut state = conn.state();
    for code in &codes {
        if *code == 0 {
            state.subscribed = true;
        } else {
            count(&core.totals.subscriptions_refused);
        }
    }
    state.put(|out| encode::suback(out, version, subscribe.packet_id, &codes));
    Flow::On
}

/// An UNSUBSCRIBE.
pub(super) fn unsubscribe(conn: &Conn, unsubscribe: &Unsubscribe<'_>) -> Flow {
    let mut state = conn.state();
    let mut codes = Vec::new();
    for filter in unsubscribe.filters() {
        let own = rights::is_own_command(&conn.name, filter);
        let existed = own && std::mem::take(&mut state.subscribed);
        codes.push(if existed { Reason::Success } else { Reason::NoSubscriptionExisted }.code());
    }
    state.put(|out| encode::unsuback(out, conn.version, unsubscribe.packet_id, &codes));
    Flow::On
}
