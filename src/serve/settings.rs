//! The configuration, in the words of the parts.

use std::{
    path::{Path, PathBuf},
    time::Instant,
};

use crate::{
    broker,
    config::{Config, TlsMode, ms},
    data::{TLS_CERT, TLS_KEY},
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

/// What the door works with. `folder`: the data folder, where `truetwin tls make` puts its files.
pub(super) fn door(config: &Config, folder: &Path) -> broker::Settings {
    let (mqtt, accounts) = (&config.mqtt, &config.accounts);
    broker::Settings {
        connections_max: mqtt.connections_max,
        connections_per_address_max: mqtt.connections_per_address_max,
        handshake_ms: mqtt.handshake_ms.into(),
        acknowledge_ms: mqtt.acknowledge_ms.into(),
        tls_handshake_ms: mqtt.tls_handshake_ms.into(),
        handshakes_max: mqtt.handshakes_max,
        handshakes_per_address_max: mqtt.handshakes_per_address_max,
        connect_bytes_max: mqtt.connect_bytes_max,
        login_delay_max_ms: mqtt.login_delay_max_ms.into(),
        packet_bytes_max: mqtt.packet_bytes_max,
        packets_per_s: mqtt.packets_per_s,
        inflight_max: mqtt.inflight_max,
        credit_bytes: mqtt.credit_bytes,
        outbound_bytes_max: mqtt.outbound_bytes_max,
        keep_alive_max_s: mqtt.keep_alive_max_s,
        tls: tls_files(config, folder),
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

/// How the door takes TLS, as the configuration writes it.
pub(super) fn tls_word(mode: TlsMode) -> &'static str {
    match mode {
        TlsMode::Off => "off",
        TlsMode::Both => "both",
        TlsMode::Only => "only",
    }
}

/// Where the door's certificate is, if it speaks TLS: where the configuration says, else in the data folder.
pub fn tls_files(config: &Config, folder: &Path) -> Option<broker::Tls> {
    let mqtt = &config.mqtt;
    let plain = match mqtt.tls {
        TlsMode::Off => return None,
        TlsMode::Both => true,
        TlsMode::Only => false,
    };
    // In full: who is told that a file is not there must see where it was looked for.
    let file = |named: Option<&String>, own: &str| {
        let path = named.map_or_else(|| folder.join(own), PathBuf::from);
        std::path::absolute(&path).unwrap_or(path)
    };
    Some(broker::Tls {
        cert_file: file(mqtt.tls_cert_file.as_ref(), TLS_CERT),
        key_file: file(mqtt.tls_key_file.as_ref(), TLS_KEY),
        configured: mqtt.tls_cert_file.is_some(),
        plain,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_certificate_s_files_have_full_paths_wherever_they_are_named() {
        let mut config = Config::default();
        config.mqtt.tls = TlsMode::Both;
        let here = std::env::current_dir().expect("a folder");
        let own = tls_files(&config, Path::new("d")).expect("it speaks TLS");
        assert_eq!((own.cert_file, own.configured), (here.join("d").join(TLS_CERT), false));
        (config.mqtt.tls_cert_file, config.mqtt.tls_key_file) = (Some("nix.pem".into()), Some("/k/nix.key".into()));
        let named = tls_files(&config, Path::new("d")).expect("it speaks TLS");
        assert_eq!((named.cert_file, named.key_file), (here.join("nix.pem"), "/k/nix.key".into()));
        assert!(named.configured);
    }
}
