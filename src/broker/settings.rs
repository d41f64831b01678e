//! What can be set, each with its unit, default, reason, and what happens at it. `limits.md` has all of it in one table, with the
//! metric of each.

use super::Tls;

/// Settings of the broker. [`Settings::default`] suits a home lab of up to a thousand devices on a Raspberry Pi.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Devices connected at the same time, 1 to 100 000. Default 1024: an idle one costs about 2 kB. At it a further
    /// device hears CONNACK 0x89 (3.1.1: 3) and is counted; one that takes over its own older connection still comes in.
    pub connections_max: usize,
    /// Of them, those from one address (of IPv6, from one network of 64 bits), 1 to 100 000. Default 512, half of all: one
    /// machine that has gone wrong leaves room for the others, and a house behind one address fits. At it a further one hears
    /// CONNACK 0x97 (3.1.1: 3).
    pub connections_per_address_max: usize,
    /// Milliseconds from a socket's first moment, or from the end of its TLS handshake, to its whole CONNECT, 100 to 60 000.
    /// Default 5000: a slow board on weak Wi-Fi needs one or two. At it the socket is closed without a word and counted.
    pub handshake_ms: u64,
    /// Milliseconds from a socket's first moment to the end of its TLS handshake, 100 to 60 000. Default 10 000: an ESP32 computes
    /// for one to three seconds. At it the socket is closed and counted.
    pub tls_handshake_ms: u64,
    /// Sockets that have not finished their CONNECT, 1 to 10 000. Default 256. At it the oldest is cut if it has been
    /// silent for a second, else the next one waits in the kernel's queue: silent sockets can slow newcomers, never lock them out.
    pub handshakes_max: usize,
    /// Of them, those from one address, 1 to 10 000. Default 128, half of all. At it the oldest of this address is cut if it has been
    /// silent for a second, else the new one is closed: nobody else waits for it.
    pub handshakes_per_address_max: usize,
    /// Bytes of a CONNECT, 64 to 16 384 and not more than [`packet_bytes_max`](Self::packet_bytes_max). Default 2048: nobody has
    /// said who it is yet; names, a password and a will are some hundred. A larger one is refused unread (v5: CONNACK 0x95).
    pub connect_bytes_max: usize,
    /// Milliseconds that a login waits for its answer, right or wrong, after several wrong ones of its address or name, 0 to 10 000.
    /// Default 2000: guessing becomes slow, and nobody is locked out for longer than that. See `door/guesses.rs`.
    pub login_delay_max_ms: u64,
    /// Packets a second that one connection may send over time, twice as many at once; 0 to 100 000, 0 is without limit. Default
    /// 1000: a device says a few things a second, so this is a loop in its program. At it the connection is not read for a moment;
    /// TCP holds it back, nothing is dropped.
    pub packets_per_s: u32,
    /// Bytes of one MQTT packet in either direction, 256 to 16 384. Default 4096: events are at most 2 KiB, commands 512
    /// bytes (wire protocol). A larger one closes its connection (v5: DISCONNECT 0x95; announced in CONNACK).
    pub packet_bytes_max: usize,
    /// Reports of one connection that have not been acknowledged, 1 to 1000. Default 10: announced as Receive Maximum in
    /// v5. At it further ones wait until one is acknowledged; the connection is read on until `packet_bytes_max` bytes wait,
    /// so that its pings are answered and its end is noticed, then TCP holds the device back.
    pub inflight_max: u16,
    /// Milliseconds that a QoS 1 report may wait until it is taken in, 100 to 60 000. Default 5000: taking in is a matter of
    /// microseconds, a hung router is rebuilt within two seconds, so this is a hub that is stuck. At it the connection is
    /// closed (v5: DISCONNECT 0x89) and counted: the device knows that it has to say it again.
    pub acknowledge_ms: u64,
    /// Bytes of reports in all that the hub has not taken in, at least 16 packets. Default 1 MiB: a busy home makes some
    /// kilobytes a second, so this is a hub that is stuck. At it reports wait until some are taken in, as with `inflight_max`: in
    /// at most `packet_bytes_max` + 4096 bytes for each connection, 40 MiB for 5000 with the defaults.
    pub credit_bytes: usize,
    /// Bytes that wait to be written to one device, at least one packet. Default 8192. At it a command is
    /// [`Lost`](super::FromDevice::Lost) with `outbound_full`, and what the device sends is not read until it reads.
    pub outbound_bytes_max: usize,
    /// Bytes of commands on their way through the bus, at least one packet. Default 256 KiB: they stay for milliseconds,
    /// so this is a dead bus. At it [`Broker::send`](super::Broker::send) says `Full`.
    pub command_bytes_max: usize,
    /// Seconds of keep-alive that a device may have, 1 to 43 690. Default 120. A device that asks for more, or for none
    /// (0), gets this (v5: told as Server Keep Alive); after 1.5 times it without a packet the connection ends.
    pub keep_alive_max_s: u16,
    /// The certificate for TLS on the same port. Default none: a client that tries TLS is refused.
    pub tls: Option<Tls>,
    /// What service accounts have.
    pub accounts: AccountSettings,
}

/// Settings for service accounts: programs that a home has a handful of, and that are trusted more than a board.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccountSettings {
    /// Connections of all accounts, 1 to 1000. Default 64, apart from those of devices. At it a further one hears CONNACK
    /// 0x89 (3.1.1: 3).
    pub connections_max: usize,
    /// Connections of one account, 1 to 1000. Default 16: a program has one, a person perhaps three. At it as above.
    pub connections_each_max: usize,
    /// Bytes of one packet in either direction, 4096 to 16 777 216. Default 1 MiB: Zigbee2MQTT tells of all its devices in one
    /// message. A larger one closes its connection (v5: 0x95; announced in CONNACK).
    pub packet_bytes_max: usize,
    /// QoS 1 messages that are not acknowledged, in each direction, 1 to 1000. Default 100. Announced as Receive Maximum in v5;
    /// at it the connection is not read. Towards the account the smaller of this and its own Receive Maximum counts.
    pub inflight_max: u16,
    /// Subscriptions of one connection, 1 to 100 000. Default 4096: Home Assistant has some for each entity. All connections
    /// together have four times as many at most. At it a further one hears SUBACK 0x97 (3.1.1: 0x80).
    pub subscriptions_max: usize,
    /// Bytes that wait for one connection, at least one packet. Default 4 MiB. At it QoS 0 messages are dropped and counted; for
    /// a QoS 1 message the connection is closed (v5: 0x97), because sessions do not outlive it and nothing is to be lost in
    /// silence.
    pub outbound_bytes_max: usize,
    /// Retained messages, 0 to 1 000 000. Default 10 000: discovery of a hundred devices is some two thousand. At it a publish that
    /// would retain one more is refused (v5: PUBACK 0x97; QoS 0: dropped and counted; 3.1.1 with QoS 1: closed).
    pub retained_max: usize,
    /// Bytes of retained messages, at least one packet. Default 16 MiB. At it as above.
    pub retained_bytes_max: usize,
}

impl Default for AccountSettings {
    fn default() -> Self {
        Self {
            connections_max: 64,
            connections_each_max: 16,
            packet_bytes_max: 1 << 20,
            inflight_max: 100,
            subscriptions_max: 4096,
            outbound_bytes_max: 4 << 20,
            retained_max: 10_000,
            retained_bytes_max: 16 << 20,
        }
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            connections_max: 1024,
            connections_per_address_max: 512,
            handshake_ms: 5000,
            tls_handshake_ms: 10_000,
            handshakes_max: 256,
            handshakes_per_address_max: 128,
            connect_bytes_max: 2048,
            login_delay_max_ms: 2000,
            packets_per_s: 1000,
            packet_bytes_max: 4096,
            inflight_max: 10,
            acknowledge_ms: 5000,
            credit_bytes: 1 << 20,
            outbound_bytes_max: 8192,
            command_bytes_max: 256 << 10,
            keep_alive_max_s: 120,
            tls: None,
            accounts: AccountSettings::default(),
        }
    }
}

/// A setting that is out of its range.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{name} is {got}, allowed are {min} to {max}")]
pub struct SettingError {
    /// Which one.
    pub name: &'static str,
    /// Its value.
    pub got: u64,
    /// The smallest allowed value.
    pub min: u64,
    /// The largest allowed value.
    pub max: u64,
}

/// What a report costs in credits besides its payload: its frame's head, its entries in lane, window and channel. Also
/// bounds how many tiny reports fit into the credits.
pub(super) const REPORT_OVERHEAD_BYTES: usize = 128;

/// Places in the hub's channel for the fates of commands that the hub has not heard yet.
const COMMAND_PLACES: usize = 4096;

/// Places in the hub's channel for each possible connection: connected, will, disconnected, and one for a reconnect.
const CONNECTION_PLACES: usize = 4;

/// Places for the bus's own going down and coming up.
const BUS_PLACES: usize = 2;

impl Settings {
    /// Whether each value is in its range.
    ///
    /// # Errors
    /// The first one that is not.
    pub fn check(&self) -> Result<(), SettingError> {
        let (packet, account_packet) = (self.packet_bytes_max, self.accounts.packet_bytes_max);
        let mib_1024 = 1 << 30;
        let ms = |ms: u64| usize::try_from(ms).unwrap_or(usize::MAX);
        for (name, got, min, max) in [
            ("connections_max", self.connections_max, 1, 100_000),
            ("connections_per_address_max", self.connections_per_address_max, 1, 100_000),
            ("handshake_ms", ms(self.handshake_ms), 100, 60_000),
            ("tls_handshake_ms", ms(self.tls_handshake_ms), 100, 60_000),
            ("handshakes_max", self.handshakes_max, 1, 10_000),
            ("handshakes_per_address_max", self.handshakes_per_address_max, 1, 10_000),
            ("login_delay_max_ms", ms(self.login_delay_max_ms), 0, 10_000),
            ("packets_per_s", usize::try_from(self.packets_per_s).unwrap_or(usize::MAX), 0, 100_000),
            ("packet_bytes_max", packet, 256, 16_384),
            ("connect_bytes_max", self.connect_bytes_max, 64, packet),
            ("inflight_max", usize::from(self.inflight_max), 1, 1000),
            ("acknowledge_ms", usize::try_from(self.acknowledge_ms).unwrap_or(usize::MAX), 100, 60_000),
            ("credit_bytes", self.credit_bytes, 16 * packet, mib_1024),
            ("outbound_bytes_max", self.outbound_bytes_max, packet, mib_1024),
            ("command_bytes_max", self.command_bytes_max, packet, mib_1024),
            ("accounts.connections_max", self.accounts.connections_max, 1, 1000),
            ("accounts.connections_each_max", self.accounts.connections_each_max, 1, 1000),
            ("accounts.packet_bytes_max", account_packet, 4096, 16 << 20),
            ("accounts.inflight_max", usize::from(self.accounts.inflight_max), 1, 1000),
            ("accounts.subscriptions_max", self.accounts.subscriptions_max, 1, 100_000),
            ("accounts.outbound_bytes_max", self.accounts.outbound_bytes_max, account_packet, mib_1024),
            ("accounts.retained_max", self.accounts.retained_max, 0, 1_000_000),
            ("accounts.retained_bytes_max", self.accounts.retained_bytes_max, account_packet, mib_1024),
            ("keep_alive_max_s", usize::from(self.keep_alive_max_s), 1, 43_690),
        ] {
            if !(min..=max).contains(&got) {
                return Err(SettingError { name, got: got as u64, min: min as u64, max: max as u64 });
            }
        }
        Ok(())
    }

    /// Places in the hub's channel that reports can need at most.
    pub(super) fn report_places(&self) -> usize {
        self.credit_bytes / REPORT_OVERHEAD_BYTES
    }

    /// The capacity of the hub's channel. Nothing is allocated for a place that is not used.
    pub(super) fn places(&self) -> usize {
        self.report_places() + COMMAND_PLACES + CONNECTION_PLACES * self.connections_max + BUS_PLACES
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_allowed() {
        assert_eq!(Settings::default().check(), Ok(()));
    }

    #[test]
    fn a_setting_out_of_its_range_is_named_with_the_range() {
        let settings = Settings { credit_bytes: 100, ..Settings::default() };
        let error = settings.check().expect_err("100 bytes are too few");
        assert_eq!(error.to_string(), "credit_bytes is 100, allowed are 65536 to 1073741824");
    }
}
