//! What must hold between settings (the range of each alone is in the table).

use super::{Config, EndpointText, Mqtt, TlsMode, Tokens, ms};
use crate::property::Confirm;

/// How many of the largest packets the credits must hold at least, as the door wants it.
const CREDIT_PACKETS_MIN: usize = 16;

/// A rule that does not hold.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{key}{} {problem}", flag.map(|flag| format!(" ({flag})")).unwrap_or_default())]
pub struct Broken {
    /// The key to change.
    pub key: &'static str,
    /// The flag of the command line that sets the same.
    pub flag: Option<&'static str>,
    /// Its value, what is wrong with it, and what is allowed.
    pub problem: String,
}

/// The rules of the door that do not hold.
fn door(mqtt: &Mqtt) -> Vec<Broken> {
    let mut all = Vec::new();
    let mut broken = |key, problem| all.push(Broken { key, flag: None, problem });
    match (&mqtt.tls_cert_file, &mqtt.tls_key_file) {
        (Some(_), None) => broken("mqtt.tls_cert_file", "stands alone: mqtt.tls_key_file is needed with it".to_owned()),
        (None, Some(_)) => broken("mqtt.tls_key_file", "stands alone: mqtt.tls_cert_file is needed with it".to_owned()),
        (Some(_), Some(_)) if mqtt.tls == TlsMode::Off => {
            let problem = "is given, and mqtt.tls is \"off\"; set that to \"both\" or \"only\"".to_owned();
            broken("mqtt.tls_cert_file", problem);
        }
        (Some(_), Some(_)) | (None, None) => {}
    }
    if mqtt.connect_bytes_max > mqtt.packet_bytes_max {
        let problem = format!(
            "is {}; at most mqtt.packet_bytes_max ({}) is possible, which holds for the first packet as well",
            mqtt.connect_bytes_max, mqtt.packet_bytes_max
        );
        broken("mqtt.connect_bytes_max", problem);
    }
    if mqtt.outbound_bytes_max < mqtt.packet_bytes_max {
        let problem = format!(
            "is {}; at least mqtt.packet_bytes_max ({}) is needed, or a large packet could never be sent",
            mqtt.outbound_bytes_max, mqtt.packet_bytes_max
        );
        broken("mqtt.outbound_bytes_max", problem);
    }
    all
}

/// The rules that do not hold.
pub(super) fn check(config: &Config) -> Vec<Broken> {
    let Config { mqtt, accounts, http, timing, .. } = config;
    let mut all = door(mqtt);
    let mut broken = |key, flag, problem| all.push(Broken { key, flag, problem });

    // Whoever reaches the HTTP port without a token is the caller http, and may what that may.
    if !http.listen.ip().is_loopback() && http.tokens == Tokens::Optional {
        let problem = format!(
            "is {}: beyond loopback (127.0.0.0/8, ::1) clients need tokens; set http.tokens = \"required\" and make one with: \
             truetwin token add NAME",
            http.listen
        );
        broken("http.listen", Some("--http"), problem);
    }
    if http.listen == mqtt.listen && http.listen.port() != 0 {
        let problem = format!("is {}, the same as mqtt.listen; each needs a port of its own", http.listen);
        broken("http.listen", Some("--http"), problem);
    }
    let credit_bytes_min = CREDIT_PACKETS_MIN * mqtt.packet_bytes_max;
    if mqtt.credit_bytes < credit_bytes_min {
        let problem = format!(
            "is {}; at least {CREDIT_PACKETS_MIN} times mqtt.packet_bytes_max ({credit_bytes_min}) is needed, or a few \
             large packets would hold back all devices",
            mqtt.credit_bytes
        );
        broken("mqtt.credit_bytes", None, problem);
    }
    for (key, bytes) in [
        ("accounts.outbound_bytes_max", accounts.outbound_bytes_max),
        ("accounts.retained_bytes_max", accounts.retained_bytes_max),
    ] {
        if bytes < accounts.packet_bytes_max {
            let packet = accounts.packet_bytes_max;
            let problem =
                format!("is {bytes}; at least accounts.packet_bytes_max ({packet}) is needed, or no such packet fits");
            broken(key, None, problem);
        }
    }
    // Semantics 4.8 and 4.9: what cannot begin before the caller must be answered is never sent.
    let begin = config.timing.begin();
    if ms(timing.answer_by_ms) <= ms(timing.answer_margin_ms) + begin {
        let problem = format!(
            "is {}; more than answer_margin_ms + broker_ms + ack_ms + start_ms ({}) is needed, or nothing could begin in time",
            timing.answer_by_ms,
            u128::from(timing.answer_margin_ms) + begin.as_millis()
        );
        broken("timing.answer_by_ms", None, problem);
    }
    if ms(timing.act_by_max_ms) < begin {
        let problem = format!(
            "is {}; at least broker_ms + ack_ms + start_ms ({}) is needed, or those allowances could never be used",
            timing.act_by_max_ms,
            begin.as_millis()
        );
        broken("timing.act_by_max_ms", None, problem);
    }
    if ms(timing.wait_online_ms) + ms(timing.answer_margin_ms) >= ms(timing.answer_by_ms) {
        let problem = format!(
            "is {}; less than answer_by_ms - answer_margin_ms ({}) is needed, or the caller would be answered while waiting",
            timing.wait_online_ms,
            timing.answer_by_ms - timing.answer_margin_ms
        );
        broken("timing.wait_online_ms", None, problem);
    }
    if config.confirm.earliest_ms >= config.confirm.latest_ms {
        let problem = format!(
            "is {}; more than earliest_ms ({}) is needed, or nothing could ever be confirmed",
            config.confirm.latest_ms, config.confirm.earliest_ms
        );
        broken("confirm.latest_ms", None, problem);
    }
    // The same for callers with limits of their own.
    let least = timing.answer_margin_ms + timing.broker_ms + timing.ack_ms + timing.start_ms;
    let callers = [("http", config.callers.http.budget_ms), ("stdio", config.callers.stdio.budget_ms)];
    let callers = callers.into_iter().filter_map(|(name, budget)| Some((format!("of callers.{name}"), budget?)));
    let named = |endpoint: &EndpointText| format!("of endpoint {}", endpoint.name.as_deref().unwrap_or_default());
    let endpoints = config.endpoints.iter().map(|endpoint| (named(endpoint), endpoint.budget_ms));
    for (whose, budget) in callers.chain(endpoints).filter(|(_, budget)| *budget <= least) {
        let problem = format!(
            "{whose} is {budget}; more than answer_margin_ms + broker_ms + ack_ms + start_ms ({least}) is needed, or nothing \
             could begin in time"
        );
        broken("budget_ms", None, problem);
    }
    for (device, settings) in &config.devices {
        for (property, owner) in &settings.properties {
            if owner.verify_with.is_some() != owner.verify_expect.is_some() {
                let problem = format!(
                    "of {property} of {device} stands alone: verify_with and verify_expect are needed together, or nothing \
                     would be verified"
                );
                broken("verify_with", None, problem);
            }
            if owner.confirm == Some(Confirm::Press) && owner.press_with.is_none() {
                let problem = format!("of {property} of {device} is \"press\": press_with has to name what is pressed");
                broken("confirm", None, problem);
            }
            if owner.confirm == Some(Confirm::SpokenCode) && config.confirm.code_file.is_none() {
                let problem =
                    format!("of {property} of {device} is \"spoken_code\": confirm.code_file has to hold the code");
                broken("confirm", None, problem);
            }
            // What a property says of itself is no measurement, and would be called one.
            if owner.verify_with.as_ref().is_some_and(|w| w.device == *device && *w.property == **property) {
                let problem = format!("of {property} of {device} is that property itself; another one must measure it");
                broken("verify_with", None, problem);
            }
        }
    }
    all
}
