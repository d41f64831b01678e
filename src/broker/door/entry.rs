//! Who comes in: who it is, what its role offers it, and the CONNACK.

use std::{
    net::IpAddr,
    sync::{Arc, atomic::AtomicU64},
};

use bytes::Bytes;

use super::{
    account::TOPIC_ALIASES_MAX,
    codec::{
        Connect, Reason,
        encode::{self, ReturnCode, Welcome},
    },
    guesses::Turn,
    rights::{self, Own},
};
use crate::{
    broker::{
        Answer, Closed, MqttVersion, Who,
        conn::Conn,
        core::{Core, Newcomer, NoEntry},
        counters::count,
        relay::{Account, AccountState, Message, Outbox, Wanted, passed_on},
        rivals::Origin,
    },
    peer::Peer,
    topics::Rights,
};

/// Where a CONNECT comes from.
#[derive(Clone, Copy)]
pub(super) struct Whence {
    pub(super) address: IpAddr,
    pub(super) peer: Peer,
    pub(super) origin: Origin,
    /// Without TLS.
    pub(super) plain: bool,
}

/// Decides about a CONNECT, when its turn has come. The bytes of the CONNACK, and the connection if it is in.
pub(super) async fn admit(
    core: &Arc<Core>,
    connect: &Connect<'_>,
    from: Whence,
) -> Result<(Arc<Conn>, Vec<u8>), Vec<u8>> {
    let refuse = |why: Refusal| {
        count(why.counter(core));
        tracing::debug!(user = connect.user, ?why, "a client was not let in");
        why.connack(connect.version)
    };
    // Whatever was sent is not looked at: it has been on the network as it is, and is not to become a habit.
    if from.plain && core.certificate.as_ref().is_some_and(|certificate| !certificate.plain()) {
        core.plain.tell_plain(core.now_ms(), from.address, connect.user.filter(|user| rights::is_device_name(user)));
        return Err(refuse(Refusal::Plain));
    }
    // Who names nobody guesses no password: refused without waiting, and takes no place from those who wait.
    let Some(user) = connect.user else { return judge(core, connect, from).await.map_err(refuse) };
    let candidate = core.guesses.candidate(from.peer, user);
    match core.guesses.turn(candidate, core.now_ms()) {
        Turn::Now => {}
        Turn::Later(delay, _place) => {
            count(&core.totals.logins_delayed);
            tokio::time::sleep(delay).await;
        }
        Turn::Never => return Err(refuse(Refusal::Guessing)),
    }
    let judged = judge(core, connect, from).await;
    match &judged {
        Ok(_) => core.guesses.right(candidate),
        Err(Refusal::BadLogin) => core.guesses.wrong(candidate, core.now_ms()),
        Err(_) => {}
    }
    judged.map_err(refuse)
}

/// How often the question who somebody is is asked anew, because somebody was kicked meanwhile.
const ASKED_ANEW_MAX: usize = 3;

/// Decides about a CONNECT. The bytes of the CONNACK, and the connection if it is in.
async fn judge(core: &Arc<Core>, connect: &Connect<'_>, from: Whence) -> Result<(Arc<Conn>, Vec<u8>), Refusal> {
    if connect.authentication {
        return Err(Refusal::Authentication);
    }
    // An empty client id needs a clean session in 3.1.1 (3.1.3.1); in 5 one is assigned.
    if connect.client_id.is_empty() && !connect.clean && connect.version == MqttVersion::V3_1_1 {
        return Err(Refusal::ClientId);
    }
    let Some(user) = connect.user else { return Err(Refusal::NoLogin) };
    if !rights::is_device_name(user) {
        return Err(Refusal::BadLogin);
    }
    let password = connect.password.unwrap_or_default();
    for _ in 0..ASKED_ANEW_MAX {
        let kicks = core.kicks(user);
        let who = match core.access.admits(user, password) {
            Answer::Now(who) => who,
            Answer::Later(asking) => asking.await,
        };
        let entering = match who {
            Who::Device => device(core, connect, user, from),
            Who::Account(rights) => account(core, connect, user, rights, from),
            Who::Nobody => Err(Refusal::BadLogin),
            Who::Busy => Err(Refusal::Checking),
        };
        let (conn, welcome) = entering?;
        if core.kicks(user) == kicks {
            conn.state().let_in = true;
            return Ok((conn, welcome));
        }
        // Kicked between the question and the entry: the credentials may not be good any more. It was never let in, so that no will
        // is told.
        core.end(&conn, Closed::Kicked);
        core.forget(&conn);
    }
    Err(Refusal::Busy)
}

/// Lets a device in.
fn device(core: &Arc<Core>, connect: &Connect<'_>, user: &str, from: Whence) -> Result<(Arc<Conn>, Vec<u8>), Refusal> {
    if let Some(why) = refused_will(user, connect) {
        return Err(why);
    }
    let offers = Offers {
        receive_max: core.settings.inflight_max,
        packet_bytes_max: core.settings.packet_bytes_max,
        topic_alias_max: 0,
        retain: false,
        wildcards: false,
    };
    let (newcomer, welcome) = newcomer(core, connect, from, &offers, &format!("{user}-auto"))?;
    let will = connect.will.as_ref().map(|will| Bytes::copy_from_slice(will.payload));
    match core.admit(newcomer, will) {
        Ok(conn) => Ok((conn, welcome)),
        Err(NoEntry::Busy) => Err(Refusal::Busy),
        Err(NoEntry::Rival) => {
            tracing::warn!(device = user, "two boards have this device's name; the one that is connected stays");
            Err(Refusal::Rival)
        }
    }
}

/// Lets an account in.
fn account(
    core: &Arc<Core>,
    connect: &Connect<'_>,
    user: &str,
    rights: Arc<Rights>,
    from: Whence,
) -> Result<(Arc<Conn>, Vec<u8>), Refusal> {
    let settings = &core.settings.accounts;
    let will = match &connect.will {
        None => None,
        Some(will) if !rights.may_publish(will.topic) => {
            core.relay.refused.tell(core.now_ms(), user, &rights, Wanted::Write(will.topic));
            return Err(Refusal::ForeignWill);
        }
        Some(will) if will.qos == 2 => return Err(Refusal::Qos2Will),
        Some(will) => Some(will),
    };
    let number = core.next_number();
    // A delay is of no effect: the session ends with its connection, and with it the waiting (3.1.3.2.2).
    let will = will.map(|will| Message {
        topic: will.topic.into(),
        payload: Bytes::copy_from_slice(will.payload),
        qos: will.qos,
        retain: will.retain,
        properties: passed_on(will.properties),
        expires_ms: will.properties.message_expiry_s().map(|seconds| u64::from(seconds) * 1000),
        from: number,
    });
    let offers = Offers {
        receive_max: settings.inflight_max,
        packet_bytes_max: settings.packet_bytes_max,
        topic_alias_max: TOPIC_ALIASES_MAX,
        retain: true,
        wildcards: true,
    };
    let assigned = format!("{user}-{number}");
    let (newcomer, welcome) = newcomer(core, connect, from, &offers, &assigned)?;
    let client_id = if connect.client_id.is_empty() { assigned.as_str() } else { connect.client_id };
    let inflight_max = settings.inflight_max.min(connect.receive_max);
    let outbox = Outbox::new(connect.version, settings.outbound_bytes_max, inflight_max, newcomer.packet_bytes_max);
    let account = Account { client_id: client_id.into(), rights };
    let state = AccountState::new(outbox, will);
    let conn = Arc::new(Conn::of_account(newcomer, number, account, state, core.now_ms()));
    core.admit_account(&conn).map(|()| (conn, welcome)).map_err(|_| Refusal::Busy)
}

/// What a role is offered; said in CONNACK.
struct Offers {
    receive_max: u16,
    packet_bytes_max: usize,
    topic_alias_max: u16,
    retain: bool,
    wildcards: bool,
}

/// What is the same for all who come in, and the CONNACK. `assigned`: its client id, if it has none.
fn newcomer(
    core: &Core,
    connect: &Connect<'_>,
    from: Whence,
    offers: &Offers,
    assigned: &str,
) -> Result<(Newcomer, Vec<u8>), Refusal> {
    let keep_alive_s = granted_keep_alive_s(core, connect.keep_alive_s);
    let packet_bytes_max =
        connect.packet_bytes_max.map_or(usize::MAX, |bytes| usize::try_from(bytes).unwrap_or(usize::MAX));
    let words = Welcome {
        receive_max: offers.receive_max,
        packet_bytes_max: u32::try_from(offers.packet_bytes_max).unwrap_or(u32::MAX),
        topic_alias_max: offers.topic_alias_max,
        retain: offers.retain,
        wildcards: offers.wildcards,
        server_keep_alive_s: (keep_alive_s != connect.keep_alive_s).then_some(keep_alive_s),
        assigned_client_id: connect.client_id.is_empty().then_some(assigned),
        response_information: None,
    };
    let mut welcome = Vec::with_capacity(64);
    encode::welcome(&mut welcome, connect.version, &words);
    if welcome.len() > packet_bytes_max {
        return Err(Refusal::PacketsTooSmall);
    }
    let user = connect.user.unwrap_or_default();
    let seat = core.seat(user, from.peer).ok_or(Refusal::AddressFull)?;
    let (name, version, origin) = (user.into(), connect.version, from.origin);
    Ok((Newcomer { name, version, origin, seat, keep_alive_s, packet_bytes_max }, welcome))
}

/// Keep-alive 0 means none (3.1.2.10), which would let a dead device look connected for ever.
fn granted_keep_alive_s(core: &Core, asked_s: u16) -> u16 {
    let max_s = core.settings.keep_alive_max_s;
    if asked_s == 0 { max_s } else { asked_s.min(max_s) }
}

fn refused_will(user: &str, connect: &Connect<'_>) -> Option<Refusal> {
    let will = connect.will.as_ref()?;
    if rights::publishes_to(user, will.topic) != Some(Own::Status) {
        return Some(Refusal::ForeignWill);
    }
    // 3.1.1 knows no way to say that these are not offered; there they do no harm, because the will goes to the hub only.
    if connect.version == MqttVersion::V3_1_1 {
        return None;
    }
    if will.retain {
        return Some(Refusal::RetainedWill);
    }
    (will.qos == 2).then_some(Refusal::Qos2Will)
}

/// Why a readable CONNECT is refused.
#[derive(Clone, Copy, Debug)]
enum Refusal {
    NoLogin,
    BadLogin,
    ClientId,
    ForeignWill,
    RetainedWill,
    Qos2Will,
    Authentication,
    PacketsTooSmall,
    Checking,
    Busy,
    AddressFull,
    Guessing,
    Plain,
    Rival,
}

impl Refusal {
    fn counter(self, core: &Core) -> &AtomicU64 {
        let totals = &core.totals;
        match self {
            Self::NoLogin | Self::BadLogin => &totals.logins_failed,
            Self::ClientId => &totals.refused_client_id,
            Self::ForeignWill | Self::RetainedWill | Self::Qos2Will => &totals.refused_will,
            Self::Authentication | Self::PacketsTooSmall => &totals.refused_unsupported,
            Self::Checking => &totals.refused_checking,
            Self::Busy => &totals.refused_busy,
            Self::AddressFull => &totals.refused_address_full,
            Self::Guessing => &totals.refused_guessing,
            Self::Plain => &totals.refused_plain,
            Self::Rival => &totals.refused_rivals,
        }
    }

    /// The CONNACK. 3.1.1 has five codes: 4 is for a login that was given and is wrong, 5 for what is not allowed.
    fn connack(self, version: MqttVersion) -> Vec<u8> {
        let (v3, v5) = match self {
            Self::NoLogin => (ReturnCode::NotAuthorized, Reason::NotAuthorized),
            Self::BadLogin => (ReturnCode::BadLogin, Reason::BadLogin),
            Self::ClientId => (ReturnCode::IdentifierRejected, Reason::ClientIdInvalid),
            Self::ForeignWill => (ReturnCode::NotAuthorized, Reason::NotAuthorized),
            Self::RetainedWill => (ReturnCode::NotAuthorized, Reason::RetainNotSupported),
            Self::Qos2Will => (ReturnCode::NotAuthorized, Reason::QosNotSupported),
            Self::Authentication => (ReturnCode::NotAuthorized, Reason::BadAuthenticationMethod),
            Self::PacketsTooSmall => (ReturnCode::NotAuthorized, Reason::PacketTooLarge),
            Self::Checking | Self::Busy => (ReturnCode::ServerUnavailable, Reason::ServerBusy),
            Self::AddressFull | Self::Guessing => (ReturnCode::ServerUnavailable, Reason::QuotaExceeded),
            Self::Plain => (ReturnCode::NotAuthorized, Reason::NotAuthorized),
            // `duplicate_device` (semantics 5.6); 3.1.1 has no code of its own for it.
            Self::Rival => (ReturnCode::IdentifierRejected, Reason::Banned),
        };
        let mut answer = Vec::with_capacity(5);
        match version {
            MqttVersion::V3_1_1 => encode::refusal_v3(&mut answer, v3),
            MqttVersion::V5 => encode::refusal_v5(&mut answer, v5),
        }
        answer
    }
}
