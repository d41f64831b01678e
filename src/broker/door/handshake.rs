//! From a socket to a session: CONNECT, who it is, what it may, CONNACK.

use std::{
    hash::BuildHasher as _,
    net::IpAddr,
    sync::{Arc, atomic::AtomicU64},
    time::Duration,
};

use bytes::Bytes;
use rustls::server::Acceptor;
use tokio::{
    io::AsyncReadExt,
    net::TcpStream,
    time::{Instant, timeout_at},
};
use tokio_rustls::LazyConfigAcceptor;

use super::{
    codec::{
        Connect, ConnectError, Reason, decode_connect,
        encode::{self, ReturnCode, Welcome},
    },
    guesses::Turn,
    listen::Place,
    rights::{self, Own},
    session,
    socket::Socket,
    spawn_farewell,
};
use crate::{
    broker::{
        Answer, Closed, MqttVersion, Who,
        conn::Conn,
        core::{Core, Newcomer, NoEntry},
        counters::count,
        relay::{Account, AccountState, Message, Outbox, passed_on},
        rivals::Origin,
        tls::Certificate,
    },
    peer::Peer,
    topics::Rights,
};

/// Bytes that a CONNECT is first read into; most fit.
const FIRST_READ_BYTES: usize = 512;

/// The first byte of a TLS connection: a record of the handshake (RFC 8446, 5.1). A CONNECT begins with 0x10.
const TLS_HANDSHAKE: u8 = 0x16;

/// Lets a device in, or says why not and closes. `place` is its place among those that have not said who they are.
pub(super) async fn run(core: Arc<Core>, socket: TcpStream, from: IpAddr, place: Place) {
    if let Err(error) = socket.set_nodelay(true) {
        tracing::debug!(%error, "a socket ended before it was used"); // Nagle would cost 40 ms an answer
        return;
    }
    let whole = tokio::select! {
        () = core.stopping.cancelled() => return,
        whole = hear(&core, socket) => whole,
    };
    let Some((socket, buffer, whole)) = whole else { return };
    let answer = match whole {
        Ok(used) => match decode_connect(&buffer[..used], core.settings.connect_bytes_max) {
            Ok(Some((connect, _))) => {
                let from = Whence {
                    peer: from.into(),
                    origin: place.handshakes().origins.hash_one((from, connect.client_id)),
                    plain: matches!(socket, Socket::Plain(_)),
                };
                drop(place);
                let judged = tokio::select! {
                    () = core.stopping.cancelled() => return,
                    judged = admit(&core, &connect, from) => judged,
                };
                judged.map(|(conn, welcome)| (conn, welcome, used))
            }
            Ok(None) => return count(&core.totals.refused_malformed), // cannot be: it was whole
            Err(error) => Err(refuse_unreadable(&core, &buffer, error)),
        },
        Err(error) => Err(refuse_unreadable(&core, &buffer, error)),
    };
    match answer {
        Ok((conn, welcome, used)) => {
            conn.state().put(|out| out.extend_from_slice(&welcome));
            let mut buffer = buffer;
            session::spawn(core, conn, socket, buffer.split_off(used));
        }
        Err(refusal) => spawn_farewell(&core, socket, refusal),
    }
}

/// Where a CONNECT comes from.
#[derive(Clone, Copy)]
struct Whence {
    peer: Peer,
    origin: Origin,
    /// Without TLS.
    plain: bool,
}

/// A socket, what was read from it, and the length of its CONNECT or why it is none.
type Heard = (Socket, Vec<u8>, Result<usize, ConnectError>);

/// TLS, if that is what comes, and then the first packet. `None`: there is nobody to answer.
async fn hear(core: &Arc<Core>, socket: TcpStream) -> Option<Heard> {
    let connect_within = Duration::from_millis(core.settings.handshake_ms);
    let by = Instant::now() + connect_within;
    let (mut socket, by) = match &core.certificate {
        None => (Socket::Plain(socket), by),
        Some(certificate) => {
            let mut first = [0];
            match timeout_at(by, socket.peek(&mut first)).await {
                Ok(Ok(1)) => {}
                Ok(Ok(_) | Err(_)) | Err(_) => {
                    count(&core.totals.refused_silent);
                    return None;
                }
            }
            if first[0] == TLS_HANDSHAKE {
                (encrypt(core, certificate, socket).await?, Instant::now() + connect_within)
            } else {
                (Socket::Plain(socket), by)
            }
        }
    };
    let mut buffer = Vec::with_capacity(FIRST_READ_BYTES);
    let whole = match timeout_at(by, read_connect(core, &mut socket, &mut buffer)).await {
        Ok(Ok(used)) => Ok(used),
        Ok(Err(Some(error))) => Err(error),
        Ok(Err(None)) | Err(_) => {
            count(&core.totals.refused_silent);
            return None;
        }
    };
    Some((socket, buffer, whole))
}

/// The TLS handshake.
async fn encrypt(core: &Arc<Core>, certificate: &Arc<Certificate>, socket: TcpStream) -> Option<Socket> {
    let handshake = async {
        let mut acceptor = LazyConfigAcceptor::new(Acceptor::default(), socket);
        match (&mut acceptor).await {
            Ok(start) => {
                let config = certificate.current(&core.totals).await;
                start.into_stream(config).into_fallible().await.map_err(|(error, socket)| (error, Some(socket)))
            }
            Err(error) => Err((error, acceptor.take_io())),
        }
    };
    match tokio::time::timeout(Duration::from_millis(core.settings.tls_handshake_ms), handshake).await {
        Ok(Ok(stream)) => {
            count(&core.totals.tls_accepted);
            Some(stream.into())
        }
        Ok(Err((error, socket))) => {
            count(&core.totals.tls_failed);
            tracing::debug!(%error, "a TLS handshake failed");
            if let Some(socket) = socket {
                spawn_farewell(core, Socket::Plain(socket), Vec::new()); // the alert that says why is written, and has to arrive
            }
            None
        }
        Err(_) => {
            count(&core.totals.refused_silent);
            None
        }
    }
}

/// Reads until the first packet is whole; its bytes. `Err(None)`: the socket ended before.
async fn read_connect(core: &Core, socket: &mut Socket, buffer: &mut Vec<u8>) -> Result<usize, Option<ConnectError>> {
    loop {
        if let Some((_, used)) = decode_connect(buffer, core.settings.connect_bytes_max).map_err(Some)? {
            return Ok(used);
        }
        match socket.read_buf(buffer).await {
            Ok(0) | Err(_) => return Err(None),
            Ok(_) => {}
        }
    }
}

/// Decides about a CONNECT, when its turn has come. The bytes of the CONNACK, and the connection if it is in.
async fn admit(core: &Arc<Core>, connect: &Connect<'_>, from: Whence) -> Result<(Arc<Conn>, Vec<u8>), Vec<u8>> {
    let refuse = |why: Refusal| {
        count(why.counter(core));
        tracing::debug!(user = connect.user, ?why, "a client was not let in");
        why.connack(connect.version)
    };
    // Whatever was sent is not looked at: it has been on the network as it is, and is not to become a habit.
    if from.plain && core.certificate.as_ref().is_some_and(|certificate| !certificate.plain()) {
        return Err(refuse(Refusal::Plain));
    }
    let candidate = core.guesses.candidate(from.peer, connect.user.unwrap_or_default());
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
        Err(Refusal::NoLogin | Refusal::BadLogin) => core.guesses.wrong(candidate, core.now_ms()),
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
        let kicks = core.kicks();
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
        if core.kicks() == kicks {
            return Ok((conn, welcome));
        }
        // Kicked between the question and the entry: the credentials may not be good any more.
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
        Some(will) if !rights.may_publish(will.topic) => return Err(Refusal::ForeignWill),
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
        topic_alias_max: super::account::TOPIC_ALIASES_MAX,
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
    let (device, version, origin) = (user.into(), connect.version, from.origin);
    Ok((Newcomer { device, version, origin, seat, keep_alive_s, packet_bytes_max }, welcome))
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

/// The answer to a first packet that is no CONNECT to be judged; empty if it must not be answered.
fn refuse_unreadable(core: &Core, buffer: &[u8], error: ConnectError) -> Vec<u8> {
    let mut answer = Vec::new();
    match error {
        ConnectError::Version { later } => {
            count(&core.totals.refused_version);
            if later {
                encode::refusal_v5(&mut answer, Reason::UnsupportedVersion);
            } else {
                encode::refusal_v3(&mut answer, ReturnCode::UnacceptableVersion);
            }
        }
        ConnectError::Bad(bad, version) => {
            let too_large = bad.reason == Reason::PacketTooLarge;
            let totals = &core.totals;
            count(if too_large { &totals.refused_connect_bytes } else { &totals.refused_malformed });
            let version = version.or_else(|| version_of(buffer).filter(|_| too_large));
            tracing::debug!(what = bad.what, "a first packet was no readable CONNECT");
            if version == Some(MqttVersion::V5) {
                encode::refusal_v5(&mut answer, bad.reason); // 3.1.1 says to close without a word (3.1.4)
            }
        }
    }
    answer
}

/// The version of a CONNECT that is too large to be read, if it is among the bytes that came: it stands right at the front (3.1.2).
fn version_of(connect: &[u8]) -> Option<MqttVersion> {
    let length_bytes = 1 + connect.get(1..)?.iter().position(|byte| *byte < 0x80)?;
    match connect.get(1 + length_bytes..)?.strip_prefix(b"\0\x04MQTT")?.first()? {
        4 => Some(MqttVersion::V3_1_1),
        5 => Some(MqttVersion::V5),
        _ => None,
    }
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
