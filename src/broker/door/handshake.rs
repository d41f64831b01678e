//! From a socket to a session: CONNECT, who it is, what it may, CONNACK.

use std::{
    hash::{BuildHasher, RandomState},
    net::IpAddr,
    sync::{Arc, atomic::AtomicU64},
    time::Duration,
};

use bytes::Bytes;
use tokio::{io::AsyncReadExt, net::TcpStream};

use super::{
    codec::{
        Connect, ConnectError, Reason, decode_connect,
        encode::{self, ReturnCode, Welcome},
    },
    rights::{self, Own},
    session, spawn_farewell,
};
use crate::broker::{
    Closed, MqttVersion,
    conn::Conn,
    core::{Core, Newcomer, NoEntry},
    counters::count,
    rivals::Origin,
};

/// Bytes that a CONNECT is first read into; most fit.
const FIRST_READ_BYTES: usize = 512;

/// Lets a device in, or says why not and closes.
pub(super) async fn run(core: Arc<Core>, mut socket: TcpStream, from: IpAddr, origins: &RandomState) {
    if let Err(error) = socket.set_nodelay(true) {
        tracing::debug!(%error, "a socket ended before it was used"); // Nagle would cost 40 ms an answer
        return;
    }
    let mut buffer = Vec::with_capacity(FIRST_READ_BYTES);
    let reading = read_connect(&core, &mut socket, &mut buffer);
    let deadline = Duration::from_millis(core.settings.handshake_ms);
    let whole = tokio::select! {
        () = core.stopping.cancelled() => return,
        whole = tokio::time::timeout(deadline, reading) => whole,
    };
    let connect = match whole {
        Ok(Ok(used)) => decode_connect(&buffer[..used], core.settings.packet_bytes_max),
        Ok(Err(Some(error))) => Err(error),
        Ok(Err(None)) | Err(_) => return count(&core.totals.refused_silent),
    };
    let answer = match connect {
        Ok(Some((connect, used))) => judge(&core, &connect, origins.hash_one((from, connect.client_id)))
            .map(|(conn, welcome)| (conn, welcome, used)),
        Ok(None) => return count(&core.totals.refused_malformed), // cannot be: it was whole
        Err(error) => Err(refuse_unreadable(&core, error)),
    };
    match answer {
        Ok((conn, welcome, used)) => {
            conn.state().put(|out| out.extend_from_slice(&welcome));
            session::spawn(core, conn, socket, buffer.split_off(used));
        }
        Err(refusal) => spawn_farewell(&core, socket, refusal),
    }
}

/// Reads until the first packet is whole; its bytes. `Err(None)`: the socket ended before.
async fn read_connect(
    core: &Core,
    socket: &mut TcpStream,
    buffer: &mut Vec<u8>,
) -> Result<usize, Option<ConnectError>> {
    loop {
        if let Some((_, used)) = decode_connect(buffer, core.settings.packet_bytes_max).map_err(Some)? {
            return Ok(used);
        }
        match socket.read_buf(buffer).await {
            Ok(0) | Err(_) => return Err(None),
            Ok(_) => {}
        }
    }
}

/// Decides about a CONNECT. The bytes of the CONNACK, and the connection if it is in.
fn judge(core: &Arc<Core>, connect: &Connect<'_>, origin: Origin) -> Result<(Arc<Conn>, Vec<u8>), Vec<u8>> {
    let refuse = |why: Refusal| {
        count(why.counter(core));
        tracing::debug!(user = connect.user, ?why, "a device was not let in");
        Err(why.connack(connect.version))
    };
    if connect.authentication {
        return refuse(Refusal::Authentication);
    }
    // An empty client id needs a clean session in 3.1.1 (3.1.3.1); in 5 one is assigned.
    if connect.client_id.is_empty() && !connect.clean && connect.version == MqttVersion::V3_1_1 {
        return refuse(Refusal::ClientId);
    }
    let Some(user) = connect.user else { return refuse(Refusal::NoLogin) };
    let password = connect.password.unwrap_or_default();
    let kicks = core.kicks();
    if !rights::is_device_name(user) || !core.access.admits(user, password) {
        return refuse(Refusal::BadLogin);
    }
    if let Some(why) = refused_will(user, connect) {
        return refuse(why);
    }
    let keep_alive_s = granted_keep_alive_s(core, connect.keep_alive_s);
    let packet_bytes_max =
        connect.packet_bytes_max.map_or(usize::MAX, |bytes| usize::try_from(bytes).unwrap_or(usize::MAX));
    let assigned = format!("{user}-auto");
    let mut welcome = Vec::with_capacity(64);
    let words = Welcome {
        receive_max: core.settings.inflight_max,
        packet_bytes_max: u32::try_from(core.settings.packet_bytes_max).unwrap_or(u32::MAX),
        topic_alias_max: 0,
        retain: false,
        wildcards: false,
        server_keep_alive_s: (keep_alive_s != connect.keep_alive_s).then_some(keep_alive_s),
        assigned_client_id: connect.client_id.is_empty().then_some(assigned.as_str()),
        response_information: None,
    };
    encode::welcome(&mut welcome, connect.version, &words);
    if welcome.len() > packet_bytes_max {
        return refuse(Refusal::PacketsTooSmall);
    }
    let newcomer = Newcomer {
        device: user.into(),
        version: connect.version,
        origin,
        keep_alive_s,
        packet_bytes_max,
        will: connect.will.as_ref().map(|will| Bytes::copy_from_slice(will.payload)),
    };
    let conn = match core.admit(newcomer) {
        Ok(conn) => conn,
        Err(NoEntry::Busy) => return refuse(Refusal::Busy),
        Err(NoEntry::Rival) => {
            tracing::warn!(device = user, "two boards have this device's name; the one that is connected stays");
            return refuse(Refusal::Rival);
        }
    };
    // Kicked between the question and the entry: the credentials may not be good any more.
    if core.kicks() != kicks && !core.access.admits(user, password) {
        core.end(&conn, Closed::Kicked);
        core.forget(&conn);
        return refuse(Refusal::BadLogin);
    }
    Ok((conn, welcome))
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
fn refuse_unreadable(core: &Core, error: ConnectError) -> Vec<u8> {
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
            count(&core.totals.refused_malformed);
            tracing::debug!(what = bad.what, "a first packet was no readable CONNECT");
            if version == Some(MqttVersion::V5) {
                encode::refusal_v5(&mut answer, bad.reason); // 3.1.1 says to close without a word (3.1.4)
            }
        }
    }
    answer
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
    Busy,
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
            Self::Busy => &totals.refused_busy,
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
            Self::Busy => (ReturnCode::ServerUnavailable, Reason::ServerBusy),
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
