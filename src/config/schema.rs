//! The table of all settings: name, documentation, type, default and what is allowed, each once.
//!
//! The structs, their defaults, the reader, the example file and `check-config` are all made of it, so none of them
//! can drift from the others. To add a setting, add a line here (and a rule in `rules.rs` if it depends on another),
//! then run the tests of `tests/config.rs` with `UPDATE_GOLDEN=1`.

use std::net::SocketAddr;

use super::{
    callers::SecretText,
    setting::{Allowed, FailureStyle, Keeping, Key, Profile, Proposals, Section, Setting, TlsMode, Tokens},
    terms::{Accepted, ByAction, Expect, Sensor, TERMS_CHARS_MAX},
};
use crate::{
    names::Lang,
    property::{Choice, Class, Confirm, Evidence},
};

/// Declares a section: a struct with one field a key, its defaults, and the table of its keys.
macro_rules! section {
    ($(#[doc = $about:literal])+ $name:ident {
        $($(#[doc = $doc:literal])+ $key:ident: $kind:ty = $default:expr, $allowed:expr;)+
    }) => {
        $(#[doc = $about])+
        #[derive(Clone, Debug, PartialEq)]
        pub struct $name {
            $(
                $(#[doc = $doc])+
                #[doc = concat!("\nDefault `", stringify!($default), "`; allowed: `", stringify!($allowed), "`.")]
                pub $key: $kind,
            )+
        }

        impl Default for $name {
            fn default() -> Self {
                Self { $($key: $default,)+ }
            }
        }

        impl Section for $name {
            const ABOUT: &'static [&'static str] = &[$($about),+];
            const KEYS: &'static [Key<Self>] = &[$(Key {
                name: stringify!($key),
                doc: &[$($doc),+],
                allowed: $allowed,
                get: |section| section.$key.scalar(),
                set: |section, scalar| Setting::from_scalar(scalar).map(|value| section.$key = value).is_some(),
            },)+];
        }
    };
}

/// Numbers from `min` to `max`, both allowed.
const fn within(min: u32, max: u32) -> Allowed {
    Allowed::Number { min, max }
}

section! {
    /// Settings that stand alone, at the top of the file.
    Top {
        /// The language of sentences and names where a client does not ask for one.
        language: Lang = Lang::En, Allowed::Words(&["en", "zh"]);
    }
}

section! {
    /// Where devices connect. Nobody comes in without a name and a password (truetwin device add), on any address. What happens at
    /// each limit, and by which metric it is seen: src/broker/limits.md.
    Mqtt {
        /// The address for devices. Loopback only, until you decide otherwise: "0.0.0.0:1883" opens it to the network.
        /// Port 0 takes a free one.
        listen: SocketAddr = SocketAddr::from(([127, 0, 0, 1], 1883)), Allowed::Address;
        /// TLS, on the same port. off: passwords cross the network as they are, so keep it in one that you trust. both: who wants
        /// may. only: who comes without is refused.
        tls: TlsMode = TlsMode::Off, Allowed::Words(TlsMode::WORDS);
        /// The certificate, PEM, with what leads to its authority. Without it: hub.pem of truetwin tls make, in the data folder. A
        /// path that is relative begins at this file. Once the files are replaced, the next connection sees the new one.
        tls_cert_file: Option<String> = None, Allowed::Text { chars_max: PATH_CHARS_MAX };
        /// Its private key, PEM, which nobody else may read (chmod 600).
        tls_key_file: Option<String> = None, Allowed::Text { chars_max: PATH_CHARS_MAX };
        /// Devices connected at once. One more is told that the hub is busy (0x89). An idle connection costs about 2 kB, with TLS
        /// about 10.
        connections_max: usize = 1024, within(1, 100_000);
        /// Of them, those from one address: one machine that has gone wrong leaves room for the others. One more is told so (0x97).
        connections_per_address_max: usize = 512, within(1, 100_000);
        /// Connections that have not said yet who they are. At the limit the oldest is closed once it was silent for a second.
        handshakes_max: usize = 256, within(1, 10_000);
        /// Of them, those from one address. At the limit its oldest is closed once it was silent for a second, else the new one.
        handshakes_per_address_max: usize = 128, within(1, 10_000);
        /// How long a new connection may take to say who it is, before it is closed.
        handshake_ms: u32 = 5_000, within(100, 60_000);
        /// How long a new connection may take over its TLS handshake: an ESP32 computes for one to three seconds.
        tls_handshake_ms: u32 = 10_000, within(100, 60_000);
        /// The largest first packet, bytes: nobody has said who it is yet. A larger one is refused unread (0x95).
        connect_bytes_max: usize = 2_048, within(64, 16_384);
        /// After several wrong passwords from an address or for a name, how long the next login waits for its answer, right or
        /// wrong. Who has come in from there before does not wait.
        login_delay_max_ms: u32 = 2_000, within(0, 10_000);
        /// The largest MQTT packet a device may send; a larger one ends its connection. An event is at most 2 KiB.
        packet_bytes_max: usize = 4_096, within(2_304, 16_384);
        /// Packets a second that one device may send over time, twice as many at once; 0 is without limit. At the limit its
        /// connection is not read for a moment; nothing is dropped.
        packets_per_s: u32 = 1_000, within(0, 100_000);
        /// Reports of one device that may wait for their acknowledgement. At the limit its reports wait until some are taken
        /// in; its pings are answered all the same, and nothing is dropped.
        inflight_max: u16 = 10, within(1, 1_000);
        /// Bytes of reports of all devices together that may wait to be taken in. At the limit reports wait everywhere until
        /// there is room, at most packet_bytes_max + 4096 bytes of each device, then TCP holds it back; nothing is dropped.
        credit_bytes: usize = 1_048_576, within(36_864, 67_108_864);
        /// How long a report may wait until it is taken in and acknowledged. Then its connection is closed, so that the device
        /// knows that it has to say it again; only a hub that is stuck comes to that.
        acknowledge_ms: u32 = 5_000, within(100, 60_000);
        /// Bytes that may wait to be written to one device. At the limit a command to it is lost, and its caller is told.
        outbound_bytes_max: usize = 8_192, within(2_304, 1_048_576);
        /// The longest keep-alive, seconds. A device that asks for more, or for none, gets this; one that is silent for 1.5 times
        /// its keep-alive counts as gone.
        keep_alive_max_s: u16 = 120, within(1, 43_690);
    }
}

section! {
    /// What service accounts have (truetwin account add): Home Assistant, Zigbee2MQTT, a person with MQTT Explorer.
    AccountsSettings {
        /// Connections of all accounts at once, apart from those of devices. One more is refused as busy.
        connections_max: usize = 64, within(1, 1_000);
        /// Connections of one account at once. One more is refused as busy; one with the same client id takes its place.
        connections_each_max: usize = 16, within(1, 1_000);
        /// The largest MQTT packet of an account; a larger one ends its connection. Zigbee2MQTT tells of all devices in one.
        packet_bytes_max: usize = 1_048_576, within(4_096, 16_777_216);
        /// QoS 1 messages of a connection that may wait for their acknowledgement, in each direction. At the limit the rest
        /// waits.
        inflight_max: u16 = 100, within(1, 1_000);
        /// Subscriptions of one connection; all together have four times as many at most. One more is refused; Home Assistant has
        /// some for each entity.
        subscriptions_max: usize = 4_096, within(1, 100_000);
        /// Bytes that may wait for one connection. At the limit messages of QoS 0 are dropped and counted; for one of QoS 1
        /// the connection is closed, so that nothing is lost in silence.
        outbound_bytes_max: usize = 4_194_304, within(4_096, 268_435_456);
        /// Retained messages of all accounts. A publish that would add one more is refused.
        retained_max: usize = 10_000, within(0, 1_000_000);
        /// Bytes of retained messages of all accounts, in memory and in the journal. A publish beyond them is refused.
        retained_bytes_max: usize = 16_777_216, within(4_096, 268_435_456);
    }
}

section! {
    /// Where MCP clients, Prometheus and health checks connect.
    Http {
        /// The address. Port 0 takes a free one. Beyond loopback only where tokens are required (below).
        listen: SocketAddr = SocketAddr::from(([127, 0, 0, 1], 8080)), Allowed::Address;
        /// Whether clients need a token (truetwin token add). optional: one that brings none is the caller http, below.
        tokens: Tokens = Tokens::Optional, Allowed::Words(Tokens::WORDS);
        /// The names by which clients reach the hub, beside localhost and addresses: others are refused, so that no web page
        /// can lead a browser here under a name of its own.
        hosts: Vec<String> = Vec::new(), Allowed::List { entries_max: HOSTS_MAX, chars_max: HOST_CHARS_MAX };
        /// MCP sessions at once. One more is refused with 503 until another ends.
        sessions_max: usize = 64, within(1, 4_096);
    }
}

section! {
    /// How long things may take.
    Timing {
        /// When a caller is answered at the latest, if its client names no shorter limit.
        answer_by_ms: u32 = 30_000, within(100, 600_000);
        /// How much earlier an operation ends, so that its record and its answer are out in time.
        answer_margin_ms: u32 = 50, within(1, 5_000);
        /// How long a command may take until it is written to the device's connection.
        broker_ms: u32 = 1_000, within(10, 60_000);
        /// How long a device may take to say that it has the command.
        ack_ms: u32 = 1_000, within(10, 60_000);
        /// How long a device may take from there until it begins.
        start_ms: u32 = 1_000, within(10, 60_000);
        /// What is added to the time a device says it needs: a relay that expects 300 ms is allowed 1 s.
        report_margin_ms: u32 = 700, within(0, 60_000);
        /// How long a device may take to answer when it is asked for its state.
        read_back_ms: u32 = 1_000, within(10, 60_000);
        /// The longest time after a call in which its operation may still begin to move something.
        act_by_max_ms: u32 = 30_000, within(100, 600_000);
        /// How long a call waits for a device that has just gone away, before it is refused as offline.
        wait_online_ms: u32 = 2_500, within(0, 60_000);
        /// How lately a device must have been heard for that wait to be worth while.
        recently_seen_ms: u32 = 60_000, within(0, 3_600_000);
        /// How long after its start the hub waits for devices that have not connected yet, instead of refusing.
        just_started_ms: u32 = 30_000, within(0, 600_000);
        /// How often a device shows that its control task lives. After 2.5 of them without one it is suspected.
        heartbeat_ms: u32 = 10_000, within(1_000, 600_000);
        /// A device that has told no value for so long is asked for its state, so that nothing stays unseen. 0: never.
        reconcile_ms: u32 = 300_000, within(0, 86_400_000);
    }
}

section! {
    /// How much may wait, and how often a part may fail.
    Limits {
        /// Operations of one caller that may wait on one device behind the one that runs; of all callers together it is 32.
        /// One more is refused at once: a queue behind a slow relay only makes late answers.
        queued_per_caller: usize = 8, within(1, 32);
        /// Ended operations that are remembered for each device, for check_operation. The oldest is forgotten.
        records_per_device: usize = 32, within(1, 4_096);
        /// How often the part of the hub that serves one device may fail within actor_restarts_window_ms and be
        /// restarted. Once more, and the device is set aside (quarantined) until the hub is restarted.
        actor_restarts_max: usize = 5, within(0, 100);
        /// The time in which those restarts are counted.
        actor_restarts_window_ms: u32 = 60_000, within(1_000, 3_600_000);
    }
}

/// Longest path of a file, characters.
const PATH_CHARS_MAX: usize = 1_024;

section! {
    /// How people agree to what can do harm: unlocking, moving a door or gate, heating more (semantics 7.2). What is asked
    /// about, and how, is said for each property.
    Confirmations {
        /// How soon after the question a confirmation may come. Whoever is quicker is no person, and the question is gone.
        earliest_ms: u32 = 3_000, within(0, 60_000);
        /// How long after the question a confirmation may come.
        latest_ms: u32 = 60_000, within(1, 600_000);
        /// How long a person may take over a question that the client itself shows.
        form_ms: u32 = 60_000, within(1, 600_000);
        /// The file that holds the code which is said where a property wants spoken_code: at least 4 characters on one line, a file
        /// of yours alone (chmod 600). Read at the start. A path that is relative begins at this file.
        code_file: Option<String> = None, Allowed::Text { chars_max: PATH_CHARS_MAX };
        /// How many wrong spoken codes in a row, of one caller or for one thing, lock it out.
        wrong_max: u32 = 5, within(1, 100);
        /// How long that lasts.
        locked_out_ms: u32 = 300_000, within(1, 86_400_000);
    }
}

section! {
    /// What is written down, so that a hub that begins anew, also after a crash, knows it: operations, set points, what
    /// devices have.
    JournalSettings {
        /// off spares an SD card every write; then a hub that begins anew knows no operation and no set point.
        keep: Keeping = Keeping::On, Allowed::Words(&["on", "off"]);
        /// Operations that ended longer ago are deleted.
        keep_days: u32 = 30, within(1, 3_650);
        /// Above so many MiB the oldest operations are deleted.
        size_max_mib: u32 = 256, within(8, 65_536);
    }
}

section! {
    /// What reaches each device's twin and what it decides, for truetwin replay. For the day on which something goes wrong: it
    /// tells who was home, so the file is its owner's alone, and a device with a sensitive property is left out.
    Recording {
        /// The file. Without one nothing is recorded. A path that is relative begins at this file.
        file: Option<String> = None, Allowed::Text { chars_max: PATH_CHARS_MAX };
        /// At so many MiB the recording ends.
        size_max_mib: u32 = 64, within(1, 65_536);
    }
}

/// Longest display name of a device or room, characters (semantics 2.9).
const NAME_CHARS_MAX: usize = 32;

/// Host names of one hub: it has a few at most.
const HOSTS_MAX: usize = 16;

/// Longest host name, characters (RFC 1035).
const HOST_CHARS_MAX: usize = 253;

/// How many things, rooms and groups a caller may be granted by name: more is a room or "*".
pub const SELECTORS_MAX: usize = 128;

/// The longest of them, characters: the longest name with the longest room in the longest of their forms.
pub const SELECTOR_CHARS_MAX: usize = 96;

const SELECTORS: Allowed = Allowed::List { entries_max: SELECTORS_MAX, chars_max: SELECTOR_CHARS_MAX };

section! {
    /// What a caller on this machine may, for the callers http (HTTP without a token) and stdio (truetwin mcp with a hub of
    /// its own). Without a word from you, everything. Names are those of devices, parts, rooms and groups ("all lights"),
    /// or ids; "*" is everything; what nothing is called is nothing.
    CallerText {
        /// What it may look at and move. Without it: everything, or with read, nothing.
        devices: Option<Vec<String>> = None, SELECTORS;
        /// What it may only look at.
        read: Option<Vec<String>> = None, SELECTORS;
        /// Its language, if not that at the top.
        language: Option<Lang> = None, Allowed::Words(&["en", "zh"]);
        /// When it is answered at the latest, if not after timing.answer_by_ms.
        budget_ms: Option<u32> = None, within(100, 600_000);
    }
}

section! {
    /// An access point of voice boxes to which the hub connects. There may be several such tables. One without url gives
    /// settings to an access point that was added with truetwin endpoint add.
    EndpointText {
        /// What it is called here: 1 to 32 of a-z, 0-9, _ and -.
        name: Option<String> = None, Allowed::Text { chars_max: NAME_CHARS_MAX };
        /// Where it is. With its token in it, nobody else may read this file (chmod 600).
        url: Option<SecretText> = None, Allowed::Secret { chars_max: URL_CHARS_MAX };
        /// The file with its token, which nobody else may read (chmod 600). A path that is relative begins at this file.
        token_file: Option<String> = None, Allowed::Text { chars_max: URL_CHARS_MAX };
        /// The environment variable with its token, instead.
        token_env: Option<String> = None, Allowed::Text { chars_max: HOST_CHARS_MAX };
        /// Of which kind it is, where its URL does not tell.
        profile: Option<Profile> = None, Allowed::Words(Profile::WORDS);
        /// What it may look at and move, as for a caller. Without it: everything, or with read, nothing.
        devices: Option<Vec<String>> = None, SELECTORS;
        /// What it may only look at.
        read: Option<Vec<String>> = None, SELECTORS;
        /// The room in which its box stands: there, "the light" is the one in this room. Only with one box, since a call does
        /// not tell from which box it comes.
        room: Option<String> = None, Allowed::Text { chars_max: NAME_CHARS_MAX };
        /// How many boxes speak through it.
        boxes: u32 = 1, within(1, 1_000);
        /// Its language, if not that at the top.
        language: Option<Lang> = None, Allowed::Words(&["en", "zh"]);
        /// When a call is answered at the latest: below the limit of the other side, on a relay at most 25000.
        budget_ms: u32 = 8_000, within(1_000, 280_000);
        /// How it is told of failures. is_error is for relays that speak the text of an error as it stands.
        failure_style: FailureStyle = FailureStyle::Text, Allowed::Words(FailureStyle::WORDS);
    }
}

/// Longest URL and path, characters.
const URL_CHARS_MAX: usize = 4_096;

section! {
    /// What the owner says about one device. Nothing of it is needed; without a name its id is its name.
    DeviceText {
        /// What it is called. With only one of name and name_zh, that one serves both languages.
        name: Option<String> = None, Allowed::Text { chars_max: NAME_CHARS_MAX };
        /// What it is called in Chinese.
        name_zh: Option<String> = None, Allowed::Text { chars_max: NAME_CHARS_MAX };
        /// Where it is. With only one of room and room_zh, that one serves both languages.
        room: Option<String> = None, Allowed::Text { chars_max: NAME_CHARS_MAX };
        /// Where it is, in Chinese.
        room_zh: Option<String> = None, Allowed::Text { chars_max: NAME_CHARS_MAX };
        /// Whether the names count that the device itself proposes for its properties. They are not yours, so they do not
        /// unless you accept them.
        proposed_names: Proposals = Proposals::Ignore, Allowed::Words(&["ignore", "accept"]);
    }
}

section! {
    /// What the owner says about one property of a device, instead of what the device says itself.
    PropertySettings {
        /// What this one property is called, if it is a thing of its own: a board with four relays is four lamps.
        name: Option<String> = None, Allowed::Text { chars_max: NAME_CHARS_MAX };
        /// What it is called in Chinese.
        name_zh: Option<String> = None, Allowed::Text { chars_max: NAME_CHARS_MAX };
        /// Where it is, if not where the device is.
        room: Option<String> = None, Allowed::Text { chars_max: NAME_CHARS_MAX };
        /// Where it is, in Chinese.
        room_zh: Option<String> = None, Allowed::Text { chars_max: NAME_CHARS_MAX };
        /// How long a value must hold after completion before the device is asked for it again.
        stable_ms: Option<u32> = None, within(0, 600_000);
        /// The evidence that an answer of success needs, where less than the device offers is enough for you.
        required_evidence: Option<Evidence> = None, Allowed::Words(&["firmware", "pin", "sensor"]);
        /// How long it takes from beginning to completion.
        expected_ms: Option<u32> = None, within(0, 3_600_000);
        /// When a value counts as what was wished. Without it: numbers within the tolerance, all else the very value.
        predicate: Option<Choice> = None, Allowed::Words(Choice::WORDS);
        /// How long a wish lives: momentary, only while its operation runs; held, until it is changed (a set point).
        class: Option<Class> = None, Allowed::Words(&["momentary", "held"]);
        /// A lock, door or heater that a known device offers for the first time is read-only until you accept it here.
        accepted: Option<Accepted> = None, Allowed::Words(&["yes"]);
        /// Who agrees to a movement: ask, the assistant asks and confirms; spoken_code, the person says a secret code; press,
        /// somebody presses what press_with names; none, nobody. Without it: ask for unlocking, doors and gates, and more
        /// heat. Also for an action of this name. Locking and less heat are never asked about.
        confirm: Option<Confirm> = None, Allowed::Words(&["ask", "spoken_code", "press", "none"]);
        /// What is pressed, where confirm is "press": a button that says itself when it was pressed by hand.
        press_with: Option<Sensor> = None, Allowed::Form { chars_max: TERMS_CHARS_MAX, form: "device.property" };
        /// Whether its values are hidden in answers, logs and the audit.
        sensitive: bool = false, Allowed::Flag;
        /// The actions of the device that bring values about, where setting is not how it is done.
        by_action: Option<ByAction> = None,
            Allowed::Form { chars_max: TERMS_CHARS_MAX, form: "value=action, value=action" };
        /// The device and its property whose measurement must agree after completion.
        verify_with: Option<Sensor> = None, Allowed::Form { chars_max: TERMS_CHARS_MAX, form: "device.property" };
        /// What it must show, by the wish; a wish that is not named is not verified. Conditions: equals V, one_of V V,
        /// within N BY, at_least N, at_most N, changes_by N, approaches N BY.
        verify_expect: Option<Expect> = None,
            Allowed::Form { chars_max: TERMS_CHARS_MAX, form: "wish: condition; wish: condition" };
        /// How long the measurement may take to show it. Default 2000.
        verify_within_ms: Option<u32> = None, within(0, 600_000);
    }
}

section! {
    /// Several wishes under one name, made true side by side. There may be several such tables with at most 32 members
    /// each; one that has required set to false may be missing from a scene that counts as done.
    SceneText {
        /// What the scene is called. With only one of name and name_zh, that one serves both languages.
        name: Option<String> = None, Allowed::Text { chars_max: NAME_CHARS_MAX };
        /// What it is called in Chinese.
        name_zh: Option<String> = None, Allowed::Text { chars_max: NAME_CHARS_MAX };
    }
}
