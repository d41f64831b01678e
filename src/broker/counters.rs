//! What is counted. Totals only grow; gauges are so now. The second part is filled in by whoever holds it.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Declares the totals twice: as atomics for the broker and as plain numbers for the reader.
macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident,)+ ; $($(#[$gdoc:meta])* $gauge:ident,)+) => {
        /// What was counted since the start (totals) and what is so now (`connections` and what follows it).
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct Counters {
            $($(#[$doc])* pub $name: u64,)+
            $($(#[$gdoc])* pub $gauge: u64,)+
        }

        impl Counters {
            /// All of them by name, in order.
            pub fn all(&self) -> Vec<(&'static str, u64)> {
                vec![$((stringify!($name), self.$name),)+ $((stringify!($gauge), self.$gauge),)+]
            }
        }

        /// The totals while they are being counted.
        #[derive(Debug, Default)]
        pub(super) struct Totals {
            $(pub(super) $name: AtomicU64,)+
        }

        impl Totals {
            /// The totals now; the bus's own numbers and the gauges are 0.
            pub(super) fn read(&self) -> Counters {
                Counters { $($name: self.$name.load(Relaxed),)+ ..Counters::default() }
            }
        }
    };
}

counters! {
    /// Sockets accepted.
    sockets_accepted,
    /// Connections let in (CONNACK success).
    accepted,
    /// Sockets that did not finish their CONNECT in time, or ended before it.
    refused_silent,
    /// Sockets cut before their CONNECT to make room for others.
    refused_crowded,
    /// Sockets closed or cut before their CONNECT because their address had too many.
    refused_address,
    /// TLS handshakes that were finished.
    tls_accepted,
    /// TLS handshakes that failed: another protocol, a client that does not trust the certificate.
    tls_failed,
    /// Certificates that were read anew because their files had changed.
    tls_reloads,
    /// Changed certificates that could not be used; the one before stayed.
    tls_reloads_failed,
    /// CONNECTs without TLS where it is required.
    refused_plain,
    /// First packets larger than [`connect_bytes_max`](super::Settings::connect_bytes_max).
    refused_connect_bytes,
    /// First packets that were no readable CONNECT.
    refused_malformed,
    /// CONNECTs of another MQTT version than 3.1.1 and 5.
    refused_version,
    /// CONNECTs with a wrong or missing user name or password.
    logins_failed,
    /// CONNECTs that waited for their answer because wrong ones had come from their address or for their name.
    logins_delayed,
    /// CONNECTs refused unjudged because too many like them waited.
    refused_guessing,
    /// CONNECTs with an empty client id and without clean session (3.1.1).
    refused_client_id,
    /// CONNECTs whose will is not on the own status topic, or (v5) is retained or QoS 2.
    refused_will,
    /// CONNECTs that asked for something that is not offered (v5: extended authentication).
    refused_unsupported,
    /// CONNECTs while [`connections_max`](super::Settings::connections_max) devices were connected, or while the hub did not listen.
    refused_busy,
    /// CONNECTs while [`connections_per_address_max`](super::Settings::connections_per_address_max) connections were there from their address.
    refused_address_full,
    /// CONNECTs of a second board with the name of one that is connected, after they took each other's place twice in a minute (semantics 5.6).
    refused_rivals,
    /// Publishes to a topic that is not the device's own.
    foreign_topics,
    /// Subscriptions refused.
    subscriptions_refused,
    /// Packets larger than allowed.
    oversize,
    /// Connections closed for what they sent (oversize and foreign topics not included).
    protocol_errors,
    /// Times that a connection was not read for a moment because it sent too fast.
    slowed,
    /// Connections that another one with the same credentials replaced.
    takeovers,
    /// Connections that were silent for too long.
    keep_alive_expiries,
    /// Connections ended because a report of theirs was not taken in within [`acknowledge_ms`](super::Settings::acknowledge_ms).
    acknowledgement_expiries,
    /// Connections cut by [`Broker::kick`](super::Broker::kick).
    kicks,
    /// Reports read from devices.
    reports_in,
    /// Reports that the hub has taken in.
    reports_taken,
    /// Reports that the hub gave up without taking them in.
    reports_refused,
    /// Reports that were held back, unacknowledged, when their connection ended.
    reports_unread,
    /// Reports acknowledged to their device (QoS 1).
    acknowledged,
    /// Commands handed in.
    commands_in,
    /// Commands wholly written to a device's socket.
    commands_written,
    /// Commands that were not.
    commands_lost,
    /// CONNECTs of accounts while as many passwords were being checked as may wait.
    refused_checking,
    /// Publishes of accounts.
    messages_in,
    /// Messages put on their way to accounts.
    messages_out,
    /// QoS 0 messages dropped for an account that reads too slowly.
    messages_dropped,
    /// Messages that expired before an account took them.
    messages_expired,
    /// Messages larger than their account takes.
    messages_too_large,
    /// Connections of accounts closed because they read too slowly for QoS 1 messages.
    slow_readers,
    /// Publishes that were to be retained where there was no room.
    retained_refused,
    /// Routers that died, or were given up, and were rebuilt.
    bus_rebuilds,
    /// Microseconds in which the bus did not carry: from a router's death, or from the last sign of life of one that
    /// hung, to its successor.
    bus_down_us,
    ;
    /// Gaps seen in what came out of the router.
    bus_gaps,
    /// Frames sent again over the bus.
    bus_resends,
    /// Frames that came out of the router a second time and were dropped.
    bus_duplicates,
    /// Times that the router's own channel was full (its frame went with the next).
    bus_full,
    /// The same of the last time alone, microseconds.
    bus_rebuild_us,
    /// Devices connected now.
    connections,
    /// Bytes of reports, with overhead, that the hub has not taken in now.
    unacknowledged_bytes,
    /// Connections that are not read now, because the credits are used up.
    held_back_connections,
    /// Frames inside or in front of the bus now.
    bus_waiting,
    /// When the certificate in force ends, seconds since 1970; 0 without one.
    tls_expires_s,
    /// Connections of accounts now.
    account_connections,
    /// Subscriptions of accounts now.
    subscriptions,
    /// Retained messages now.
    retained_messages,
    /// Bytes of retained messages now.
    retained_bytes,
}

/// Adds one.
pub(super) fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Relaxed);
}

/// Adds many.
pub(super) fn count_many(counter: &AtomicU64, many: u64) {
    counter.fetch_add(many, Relaxed);
}
