//! What a service account may say: publishes and subscriptions within its rights.

use std::sync::Arc;

use bytes::Bytes;

use super::{
    codec::{Publish, Reason, Subscribe, Subscription, Unsubscribe, encode},
    session::{Ended, Flow},
};
use crate::{
    broker::{
        Closed, MqttVersion,
        conn::Conn,
        core::Core,
        counters::count,
        relay::{Account, AccountState, Message, Options, Wanted, passed_on},
    },
    topics::{TOPIC_BYTES_MAX, is_filter, is_topic},
};

/// Topic aliases that an account may use on one connection: announced in CONNACK, remembered with up to
/// [`TOPIC_BYTES_MAX`] bytes each. A higher one closes the connection with 0x94 (3.3.2.3.4).
pub(super) const TOPIC_ALIASES_MAX: u16 = 16;

/// A publish: to all who have subscribed to its topic, and kept if it is to be retained.
pub(super) fn publish(
    core: &Arc<Core>,
    conn: &Arc<Conn>,
    account: &Account,
    publish: &Publish<'_>,
) -> Result<Flow, Ended> {
    let v5 = conn.version == MqttVersion::V5;
    if publish.qos == 2 {
        return Err(Ended::with(Closed::ProtocolError, Reason::QosNotSupported)); // CONNACK said so
    }
    if publish.dup && conn.state().waits_for(publish.packet_id) {
        return Ok(Flow::On); // said again on the same connection, out of impatience: its answer is on its way
    }
    let message = {
        let mut state = conn.state();
        let full = usize::from(core.settings.accounts.inflight_max);
        if state.closed.is_some() || (publish.qos == 1 && state.unacknowledged() >= full) {
            return Ok(Flow::HeldBack);
        }
        let Some(waiting) = &mut state.account else { return Ok(Flow::HeldBack) }; // it has ended
        let topic = topic_of(waiting, publish)?;
        if !account.rights.may_publish(&topic) {
            count(&core.totals.foreign_topics);
            core.relay.refused.tell(core.now_ms(), &conn.name, &account.rights, Wanted::Write(&topic));
            if !v5 {
                return Err(Ended::silently(Closed::ForeignTopic)); // no code for it, and no silence either
            }
            if publish.qos == 1 {
                let why = if is_topic(&topic) { Reason::NotAuthorized } else { Reason::TopicInvalid };
                state.refuse(publish.packet_id, why);
                state.acknowledge(conn.version);
            }
            return Ok(Flow::On);
        }
        message_of(core, conn, topic, publish)
    };
    count(&core.totals.messages_in);
    let message = Arc::new(message);
    if core.retain(&message).is_err() {
        return refuse_retained(core, conn, publish);
    }
    core.route(&message);
    if publish.qos == 1 {
        let slot = conn.state().open_slot(publish.packet_id, core.now_ms());
        if publish.retain {
            core.write_now(&message.topic, Some((conn.clone(), slot)));
        } else {
            conn.settle_publish(slot, true);
        }
    }
    Ok(Flow::On)
}

/// The topic of a publish, by its name or its alias.
fn topic_of(account: &mut AccountState, publish: &Publish<'_>) -> Result<Box<str>, Ended> {
    let Some(alias) = publish.alias else { return Ok(publish.topic.into()) };
    if alias > TOPIC_ALIASES_MAX {
        return Err(Ended::with(Closed::ProtocolError, Reason::TopicAliasInvalid));
    }
    let at = usize::from(alias) - 1;
    if publish.topic.is_empty() {
        let known = account.aliases.get(at).cloned().flatten();
        return known.ok_or(Ended::with(Closed::ProtocolError, Reason::Protocol)); // 3.3.2.3.4
    }
    if publish.topic.len() > TOPIC_BYTES_MAX {
        return Err(Ended::with(Closed::ProtocolError, Reason::TopicInvalid));
    }
    if account.aliases.len() <= at {
        account.aliases.resize(at + 1, None);
    }
    account.aliases[at] = Some(publish.topic.into());
    Ok(publish.topic.into())
}

fn message_of(core: &Core, conn: &Conn, topic: Box<str>, publish: &Publish<'_>) -> Message {
    let expiry_s = publish.properties.message_expiry_s();
    Message {
        topic,
        payload: Bytes::copy_from_slice(publish.payload),
        qos: publish.qos,
        retain: publish.retain,
        properties: passed_on(publish.properties),
        expires_ms: expiry_s.map(|seconds| core.now_ms() + u64::from(seconds) * 1000),
        from: conn.number,
    }
}

/// There is no room for what is to be retained. It is refused as a whole: whoever said it hears so, or is closed.
fn refuse_retained(core: &Core, conn: &Conn, publish: &Publish<'_>) -> Result<Flow, Ended> {
    if core.relay.refusal_said.is_due(core.now_ms()) {
        let account = &*conn.name;
        tracing::warn!(account, topic = publish.topic, "a message cannot be retained: there is no room");
    }
    if publish.qos == 1 && conn.version == MqttVersion::V3_1_1 {
        return Err(Ended::silently(Closed::QuotaExceeded)); // its acknowledgement would say that it is kept
    }
    if publish.qos == 1 {
        let mut state = conn.state();
        state.refuse(publish.packet_id, Reason::QuotaExceeded);
        state.acknowledge(conn.version);
    }
    Ok(Flow::On)
}

/// A SUBSCRIBE: each filter is granted or refused on its own.
pub(super) fn subscribe(core: &Core, conn: &Conn, account: &Account, subscribe: &Subscribe<'_>) -> Flow {
    let mut state = conn.state();
    let state = &mut *state;
    let Some(waiting) = &mut state.account else { return Flow::HeldBack }; // it has ended
    let mut codes = Vec::new();
    for wanted in subscribe.subscriptions() {
        let code = match refusal(account, &wanted, subscribe.identified) {
            None => granted(core, conn, waiting, &wanted),
            Some(why) => Err(why),
        };
        codes.push(match code {
            Ok(qos) => qos,
            Err(why) => {
                count(&core.totals.subscriptions_refused);
                if why == Reason::NotAuthorized {
                    let wanted = Wanted::Read(wanted.filter);
                    core.relay.refused.tell(core.now_ms(), &conn.name, &account.rights, wanted);
                } else {
                    tracing::debug!(account = &*conn.name, filter = wanted.filter, ?why, "a subscription was refused");
                }
                if conn.version == MqttVersion::V5 { why.code() } else { 0x80 } // MQTT 3.1.1 3.9.3
            }
        });
    }
    state.put(|out| encode::suback(out, conn.version, subscribe.packet_id, &codes));
    Flow::On
}

/// Why a subscription is refused, if it is.
fn refusal(account: &Account, wanted: &Subscription<'_>, identified: bool) -> Option<Reason> {
    let filter = wanted.filter;
    if !is_filter(filter) {
        Some(Reason::FilterInvalid)
    } else if filter.starts_with("$share/") {
        Some(Reason::SharedNotSupported)
    } else if !account.rights.may_subscribe(filter) {
        Some(Reason::NotAuthorized)
    } else if identified {
        Some(Reason::SubscriptionIdsNotSupported)
    } else {
        None
    }
}

/// Subscribes, and asks for what is retained (3.8.3.1); the granted QoS.
fn granted(core: &Core, conn: &Conn, account: &mut AccountState, wanted: &Subscription<'_>) -> Result<u8, Reason> {
    let qos = wanted.qos.min(1);
    let options = Options { qos, no_local: wanted.no_local, retain_as_published: wanted.retain_as_published };
    let new = core.subscribe(conn.number, account, wanted.filter, options).ok_or(Reason::QuotaExceeded)?;
    if wanted.retain_handling == 0 || (wanted.retain_handling == 1 && new) {
        account.outbox.want(wanted.filter, qos);
    }
    Ok(qos)
}

/// An UNSUBSCRIBE.
pub(super) fn unsubscribe(core: &Core, conn: &Conn, unsubscribe: &Unsubscribe<'_>) -> Flow {
    let mut state = conn.state();
    let state = &mut *state;
    let Some(account) = &mut state.account else { return Flow::HeldBack }; // it has ended
    let mut end = |filter| match core.unsubscribe(conn.number, account, filter) {
        true => Reason::Success.code(),
        false => Reason::NoSubscriptionExisted.code(),
    };
    let codes: Vec<u8> = unsubscribe.filters().map(&mut end).collect();
    state.put(|out| encode::unsuback(out, conn.version, unsubscribe.packet_id, &codes));
    Flow::On
}
