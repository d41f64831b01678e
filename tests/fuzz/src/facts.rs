//! What a packet says, in one form, whoever read it.

use truetwin::broker::{
    MqttVersion,
    codec::{self, Packet, Properties, Property},
};

/// Name and value of everything that a packet says, in the order of names. Values that are not said and have a default
/// have that default, because some of the others do not keep apart what was said and what was not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts(Vec<(&'static str, String)>);

impl Facts {
    /// Of a packet of this kind.
    pub fn of(kind: &'static str) -> Self {
        Self::default().with("packet", kind)
    }

    /// With one more; nothing is added for an absent one.
    #[must_use]
    pub fn with(mut self, name: &'static str, value: impl std::fmt::Debug) -> Self {
        let value = format!("{value:?}");
        let said = value.strip_prefix("Some(").and_then(|some| some.strip_suffix(')')).unwrap_or(&value);
        if said != "None" {
            self.0.push((name, said.to_owned()));
        }
        self.0.sort_by(|a, b| a.0.cmp(b.0));
        self
    }

    /// The names of what differs, with what both say of it.
    pub fn unlike(&self, other: &Self) -> Vec<(&'static str, String, String)> {
        let value = |facts: &Self, name| {
            let all: Vec<_> =
                facts.0.iter().filter(|(each, _)| *each == name).map(|(_, value)| value.as_str()).collect();
            all.join(", ")
        };
        let mut names: Vec<_> = self.0.iter().chain(&other.0).map(|(name, _)| *name).collect();
        names.sort_unstable();
        names.dedup();
        let each = names.into_iter().map(|name| (name, value(self, name), value(other, name)));
        each.filter(|(_, ours, theirs)| ours != theirs).collect()
    }
}

/// What somebody makes of bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// There is no whole packet.
    Waits,
    /// The first packet says this.
    Reads(Facts),
    /// The first packet is refused, in its reader's words.
    Refuses(String),
    /// The reader panicked.
    Panics,
}

/// Packets larger than this are refused; larger than any that is made here.
pub const BYTES_MAX: usize = 4096;

/// Which version a packet is of and what the door's codec makes of it. A CONNECT says its version itself.
pub fn ours(bytes: &[u8], version: MqttVersion) -> (MqttVersion, Verdict) {
    if bytes.first().is_some_and(|first| first >> 4 == 1) {
        return match codec::decode_connect(bytes, BYTES_MAX) {
            Ok(None) => (version, Verdict::Waits),
            Ok(Some((connect, used))) => (connect.version, Verdict::Reads(of_connect(&connect).with("bytes", used))),
            Err(codec::ConnectError::Bad(bad, known)) => (known.unwrap_or(version), Verdict::Refuses(bad.to_string())),
            Err(codec::ConnectError::Version { .. }) => (version, Verdict::Refuses("another version".to_owned())),
        };
    }
    let verdict = match codec::decode(bytes, version, BYTES_MAX) {
        Ok(None) => Verdict::Waits,
        Ok(Some((packet, used))) => Verdict::Reads(of_packet(&packet, version).with("bytes", used)),
        Err(bad) => Verdict::Refuses(bad.to_string()),
    };
    (version, verdict)
}

fn of_connect(connect: &codec::Connect<'_>) -> Facts {
    let mut facts = Facts::of("CONNECT")
        .with("clean", connect.clean)
        .with("keep alive", connect.keep_alive_s)
        .with("client id", connect.client_id)
        .with("user", connect.user.unwrap_or_default())
        .with("password", connect.password.unwrap_or_default());
    if connect.version == MqttVersion::V5 {
        facts = facts
            .with("session expiry", connect.session_expiry_s)
            .with("receive max", connect.receive_max)
            .with("packet max", connect.packet_bytes_max)
            .with("alias max", connect.topic_alias_max)
            .with("response information", connect.request_response)
            .with("problem information", connect.request_problem);
        facts = with_properties(facts, connect.properties);
    }
    if let Some(will) = &connect.will {
        let mut wills = Facts::of("will")
            .with("topic", will.topic)
            .with("payload", will.payload)
            .with("qos", will.qos)
            .with("retain", will.retain);
        if connect.version == MqttVersion::V5 {
            wills = with_properties(wills.with("delay", will.delay_s), will.properties);
            wills = wills.with("text", will.properties.payload_is_text());
        }
        facts = facts.with("will", wills.0);
    }
    facts
}

/// The will's facts, to be one fact of the CONNECT.
pub fn will(facts: Facts) -> Vec<(&'static str, String)> {
    facts.0
}

fn of_packet(packet: &Packet<'_>, version: MqttVersion) -> Facts {
    let v5 = version == MqttVersion::V5;
    match packet {
        Packet::Publish(publish) => {
            let facts = Facts::of("PUBLISH")
                .with("dup", publish.dup)
                .with("qos", publish.qos)
                .with("retain", publish.retain)
                .with("topic", publish.topic)
                .with("payload", publish.payload)
                .with("id", publish.packet_id);
            let text = publish.properties.payload_is_text();
            if v5 { with_properties(facts, publish.properties).with("text", text) } else { facts }
        }
        Packet::PubAck(ack) => {
            let facts = Facts::of("PUBACK").with("id", ack.packet_id);
            if v5 { with_properties(facts, ack.properties).with("code", ack.reason) } else { facts }
        }
        Packet::Subscribe(subscribe) => {
            let options = |each: codec::Subscription<'_>| {
                each.qos
                    | u8::from(each.no_local) << 2
                    | u8::from(each.retain_as_published) << 3
                    | each.retain_handling << 4
            };
            let filters: Vec<_> = subscribe.subscriptions().map(|each| (each.filter, options(each))).collect();
            let facts = Facts::of("SUBSCRIBE").with("id", subscribe.packet_id).with("filters", filters);
            if v5 { with_properties(facts, subscribe.properties) } else { facts }
        }
        Packet::Unsubscribe(unsubscribe) => {
            let filters: Vec<_> = unsubscribe.filters().collect();
            let facts = Facts::of("UNSUBSCRIBE").with("id", unsubscribe.packet_id).with("filters", filters);
            if v5 { with_properties(facts, unsubscribe.properties) } else { facts }
        }
        Packet::PingReq => Facts::of("PINGREQ"),
        Packet::Disconnect(goodbye) => {
            let facts = Facts::of("DISCONNECT");
            if v5 { with_properties(facts, goodbye.properties).with("code", goodbye.reason) } else { facts }
        }
    }
}

/// The properties without a default.
fn with_properties(mut facts: Facts, properties: Properties<'_>) -> Facts {
    let packet = facts.0.iter().find(|(name, _)| *name == "packet").map(|(_, kind)| kind.clone());
    let goodbye = packet.as_deref() == Some("\"DISCONNECT\"");
    for property in properties.iter() {
        facts = match property {
            Property::MessageExpiry(seconds) => facts.with("expiry", seconds),
            Property::ContentType(kind) => facts.with("content type", kind),
            Property::ResponseTopic(topic) => facts.with("response topic", topic),
            Property::CorrelationData(data) => facts.with("correlation", data),
            Property::SubscriptionId(id) => facts.with("subscription id", id),
            Property::AuthenticationMethod(method) => facts.with("method", method),
            Property::AuthenticationData(data) => facts.with("data", data),
            Property::ReasonString(why) => facts.with("why", why),
            Property::TopicAlias(alias) => facts.with("alias", alias),
            Property::SessionExpiry(seconds) if goodbye => facts.with("session expiry", seconds),
            // With a default, or gathered below.
            Property::SessionExpiry(_)
            | Property::PayloadFormat(_)
            | Property::RequestProblemInformation(_)
            | Property::RequestResponseInformation(_)
            | Property::WillDelay(_)
            | Property::ReceiveMax(_)
            | Property::TopicAliasMax(_)
            | Property::PacketBytesMax(_)
            | Property::User(..) => facts,
        };
    }
    let user: Vec<_> = properties.user().collect();
    facts.with("user properties", user)
}
