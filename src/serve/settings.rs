//! The configuration, in the words of the parts.

use std::time::Instant;

use crate::{
    broker,
    config::{Config, ms},
    twin::settings::Settings,
};

/// What the twins work with.
pub(super) fn twin(config: &Config, started: Instant) -> Settings {
    let timing = &config.timing;
    Settings {
        answer_margin: ms(timing.answer_margin_ms),
        broker: ms(timing.broker_ms),
        ack: ms(timing.ack_ms),
        start: ms(timing.start_ms),
        report_margin: ms(timing.report_margin_ms),
        read_back: ms(timing.read_back_ms),
        act_by_max: ms(timing.act_by_max_ms),
        wait_online: ms(timing.wait_online_ms),
        recently_seen: ms(timing.recently_seen_ms),
        just_started: ms(timing.just_started_ms),
        heartbeat: ms(timing.heartbeat_ms),
        reconcile: ms(timing.reconcile_ms),
        queued_max: config.limits.queued_per_caller,
        records_max: config.limits.records_per_device,
        ..Settings::new(started)
    }
}

/// What the door works with.
pub(super) fn door(config: &Config) -> broker::Settings {
    let (mqtt, accounts) = (&config.mqtt, &config.accounts);
    broker::Settings {
        connections_max: mqtt.connections_max,
        handshake_ms: mqtt.handshake_ms.into(),
        packet_bytes_max: mqtt.packet_bytes_max,
        inflight_max: mqtt.inflight_max,
        credit_bytes: mqtt.credit_bytes,
        accounts: broker::AccountSettings {
            connections_max: accounts.connections_max,
            connections_each_max: accounts.connections_each_max,
            packet_bytes_max: accounts.packet_bytes_max,
            inflight_max: accounts.inflight_max,
            subscriptions_max: accounts.subscriptions_max,
            outbound_bytes_max: accounts.outbound_bytes_max,
            retained_max: accounts.retained_max,
            retained_bytes_max: accounts.retained_bytes_max,
        },
        ..broker::Settings::default()
    }
}
