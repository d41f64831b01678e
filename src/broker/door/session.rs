//! One connection: reads packets, writes what waits. One hand-written poll, so that an idle device costs its
//! socket, its state and nothing else: no timer, no buffer, no task of its own for each direction. What a packet means
//! is the role's business (`device`, `account`); this file knows bytes, turns and ends.

use std::{
    future::Future as _,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Bytes;
use tokio::time::Sleep;

use super::{
    Farewell, account,
    codec::{Bad, Disconnect, Packet, Reason, decode, encode},
    device,
    rate::Rate,
    socket::Socket,
};
use crate::broker::{
    Closed, FromDevice, MqttVersion, NO_NOTICE,
    conn::{Conn, State},
    core::Core,
    counters::{count, count_many},
};

/// Reads, and fillings of the buffer, before others get their turn.
const TURNS: usize = 8;

/// Starts the session of a client that is in. `unread` came behind its CONNECT.
pub(super) fn spawn(core: Arc<Core>, conn: Arc<Conn>, socket: Socket, unread: Vec<u8>) {
    let tasks = core.tasks.clone();
    let mut session = Session {
        core,
        conn,
        socket,
        unread,
        held_bytes: 0,
        held: 0,
        going: None,
        deaf: false,
        rate: Rate::default(),
        pause: None,
    };
    tasks.spawn(async move {
        let (client, connection) = (session.conn.name.clone(), session.conn.number);
        tracing::debug!(client = &*client, connection, version = session.conn.version.as_str(), "a client came in");
        let ended = std::future::poll_fn(|cx| session.poll(cx)).await;
        tracing::debug!(client = &*client, connection, why = ended.why.as_str(), "a connection ended");
        session.finish(ended);
    });
}

struct Session {
    core: Arc<Core>,
    conn: Arc<Conn>,
    socket: Socket,
    /// Publishes that are held back, and a part of a packet behind them; empty while idle.
    unread: Vec<u8>,
    /// Bytes of the former, and how many they are.
    held_bytes: usize,
    held: u64,
    /// Nothing more is read, and why: it ends once what is held back is worked off.
    going: Option<Closed>,
    /// It cannot be written to any more; what it has said is still worked off.
    deaf: bool,
    rate: Rate,
    /// There while it is not read because it sent too fast.
    pause: Option<Pin<Box<Sleep>>>,
}

/// How a session ended, and the code for a v5 client, if it is to be told.
#[derive(Clone, Copy)]
pub(super) struct Ended {
    why: Closed,
    code: Option<Reason>,
}

impl Ended {
    /// Without a word.
    pub(super) fn silently(why: Closed) -> Self {
        Self { why, code: None }
    }

    /// A v5 client is told the code.
    pub(super) fn with(why: Closed, code: Reason) -> Self {
        Self { why, code: Some(code) }
    }
}

impl From<Bad> for Ended {
    fn from(bad: Bad) -> Self {
        tracing::debug!(what = bad.what, "a client sent what MQTT does not allow");
        let too_large = bad.reason == Reason::PacketTooLarge;
        Self::with(if too_large { Closed::PacketTooLarge } else { Closed::ProtocolError }, bad.reason)
    }
}

/// Whether publishes may go on.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Flow {
    On,
    /// The window is full, or there are no credits: an acknowledgement or credits will wake the task.
    HeldBack,
    /// It sends too fast: it is not read until its pause is over.
    Slowed,
}

impl Session {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Ended> {
        for _ in 0..TURNS {
            {
                let mut state = self.conn.state();
                state.watch(cx.waker()); // before looking at what others may change
                if let Some(why) = state.closed {
                    return Poll::Ready(Ended { why, code: code_for(why) });
                }
                if state.lets_others_go_first() {
                    cx.waker().wake_by_ref();
                    return Poll::Pending;
                }
            }
            if let Err(ended) = self.flush(cx) {
                return Poll::Ready(ended);
            }
            if !self.deaf && self.conn.state().out.len() > self.outbound_bytes_max() {
                return Poll::Pending; // it does not read: it is not read either, until it does
            }
            if self.pauses(cx) {
                return Poll::Pending;
            }
            let mut unread = std::mem::take(&mut self.unread);
            let worked = self.work(&mut unread);
            let flow = match worked.and_then(|flow| self.flush(cx).map(|()| flow)) {
                Ok(flow) => flow,
                Err(ended) => return Poll::Ready(ended),
            };
            let full = flow == Flow::HeldBack && unread.len() >= self.packet_bytes_max();
            {
                let mut state = self.conn.state();
                if let Some(why) = state.closing {
                    return Poll::Ready(Ended { why, code: code_for(why) });
                }
                state.full = full;
            }
            let read = match (flow, self.going) {
                (Flow::Slowed, _) => Poll::Ready(Ok(())), // its pause begins with the next turn
                (Flow::On, Some(why)) => Poll::Ready(Err(Ended::silently(why))),
                (Flow::HeldBack, Some(_)) => Poll::Pending,
                (Flow::HeldBack, None) if full => self.look(),
                (Flow::On | Flow::HeldBack, None) => self.read(cx, &mut unread),
            };
            self.keep(unread);
            if let Err(ended) = ready!(read) {
                return Poll::Ready(ended);
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// Whether its pause is not over.
    fn pauses(&mut self, cx: &mut Context<'_>) -> bool {
        let pauses = self.pause.as_mut().is_some_and(|pause| pause.as_mut().poll(cx).is_pending());
        if !pauses {
            self.pause = None;
        }
        pauses
    }

    /// Keeps what is not worked off, and no more memory than that.
    fn keep(&mut self, mut unread: Vec<u8>) {
        if unread.is_empty() {
            unread = Vec::new();
        } else {
            unread.shrink_to_fit();
        }
        self.unread = unread;
    }

    /// Reads what has come.
    fn read(&mut self, cx: &mut Context<'_>, unread: &mut Vec<u8>) -> Poll<Result<(), Ended>> {
        let lost = match ready!(self.socket.poll_receive(cx, unread)) {
            Ok(0) | Err(_) => true,
            Ok(_) => false,
        };
        if lost && self.held == 0 {
            return Poll::Ready(Err(Ended::silently(Closed::Lost)));
        }
        if lost {
            self.going = Some(Closed::Lost);
            self.conn.state().goes(self.core.now_ms());
        }
        Poll::Ready(Ok(()))
    }

    /// Looks whether the other side has gone, without reading: what it said before is read when there is room for it, if that
    /// is soon. The sweep wakes the task for it: a socket that has something to be read says nothing of its own.
    fn look(&self) -> Poll<Result<(), Ended>> {
        if self.socket.has_gone() {
            self.conn.state().goes(self.core.now_ms());
        }
        Poll::Pending
    }

    /// Writes what waits, as far as the socket takes it; tells of the commands that are wholly written.
    fn flush(&mut self, cx: &mut Context<'_>) -> Result<(), Ended> {
        for _ in 0..TURNS {
            if self.deaf {
                return Ok(());
            }
            let filled = self.core.fill(&self.conn);
            let mut seen = Vec::new();
            let written = self.write(cx, &mut seen);
            for payload in seen {
                self.core.show(&self.conn.name, "command", payload, 0);
            }
            if written.is_err() && self.held > 0 {
                self.deaf = true;
                self.conn.state().goes(self.core.now_ms());
                return Ok(());
            }
            written?;
            if filled.more {
                break;
            }
            if filled.sent == 0 || !self.conn.state().out.is_empty() {
                return Ok(());
            }
        }
        cx.waker().wake_by_ref(); // an account with much to read, or much to look for: others get their turn
        Ok(())
    }

    fn write(&mut self, cx: &mut Context<'_>, seen: &mut Vec<Bytes>) -> Result<(), Ended> {
        let mut state = self.conn.state();
        while !state.out.is_empty() {
            match self.socket.poll_send(cx, &state.out) {
                Poll::Ready(Ok(bytes)) => wrote(&self.core, &self.conn, &mut state, bytes, seen),
                Poll::Ready(Err(_)) => return Err(Ended::silently(Closed::Lost)),
                Poll::Pending => break,
            }
        }
        Ok(())
    }

    /// The largest packet that is taken.
    fn packet_bytes_max(&self) -> usize {
        let settings = &self.core.settings;
        if self.conn.account().is_some() { settings.accounts.packet_bytes_max } else { settings.packet_bytes_max }
    }

    /// Bytes that may wait for the socket before the client is not read any more.
    fn outbound_bytes_max(&self) -> usize {
        let settings = &self.core.settings;
        if self.conn.account().is_some() { settings.accounts.outbound_bytes_max } else { settings.outbound_bytes_max }
    }

    /// Works off whole packets. Publishes that are held back stay, in their order, and whatever else comes behind them passes
    /// by: MQTT orders publishes among themselves (4.6), and a ping does not wait for a busy hub. A goodbye does, for what was said
    /// before it; nothing may come behind it (3.14.4).
    fn work(&mut self, unread: &mut Vec<u8>) -> Result<Flow, Ended> {
        let per_s = self.core.settings.packets_per_s;
        let known_bytes = std::mem::take(&mut self.held_bytes);
        self.held = 0;
        let (mut at, mut flow) = (0, Flow::On);
        while let Some((packet, bytes)) = decode(&unread[at..], self.conn.version, self.packet_bytes_max())? {
            if at >= known_bytes {
                let now_ms = self.core.now_ms();
                self.conn.heard(now_ms);
                // As many acknowledgements come as messages went out: they are no flood of the account's making.
                if self.conn.account().is_none() || !matches!(packet, Packet::PubAck(_)) {
                    if let Some(pause_ms) = self.rate.pause_ms(now_ms, per_s) {
                        count(&self.core.totals.slowed);
                        self.pause = Some(Box::pin(tokio::time::sleep(Duration::from_millis(pause_ms))));
                        flow = Flow::Slowed;
                        break;
                    }
                    self.rate.used(now_ms, per_s);
                }
            }
            if let (Flow::HeldBack, Packet::Disconnect(goodbye)) = (flow, &packet) {
                let mut state = self.conn.state();
                state.goes(self.core.now_ms());
                if goodbye.clean() {
                    state.forget_will();
                }
                self.going = Some(why_of(goodbye));
                at = unread.len();
                break;
            }
            let waits = flow == Flow::HeldBack && matches!(packet, Packet::Publish(_));
            if waits || self.handle(&packet)? == Flow::HeldBack {
                flow = Flow::HeldBack;
                unread.copy_within(at..at + bytes, self.held_bytes);
                self.held_bytes += bytes;
                self.held += 1;
            }
            at += bytes;
        }
        unread.drain(self.held_bytes..at);
        Ok(flow)
    }

    fn handle(&self, packet: &Packet<'_>) -> Result<Flow, Ended> {
        let (core, conn) = (&self.core, &self.conn);
        match (packet, conn.account()) {
            (Packet::Publish(publish), None) => device::publish(core, conn, publish),
            (Packet::Publish(publish), Some(account)) => account::publish(core, conn, account, publish),
            (Packet::PubAck(_), None) => Ok(Flow::On), // nothing waits for it
            (Packet::PubAck(puback), Some(_)) => {
                if let Some(account) = &mut conn.state().account {
                    account.outbox.acknowledged(puback.packet_id);
                }
                Ok(Flow::On)
            }
            (Packet::Subscribe(subscribe), None) => Ok(device::subscribe(core, conn, subscribe)),
            (Packet::Subscribe(subscribe), Some(account)) => Ok(account::subscribe(core, conn, account, subscribe)),
            (Packet::Unsubscribe(unsubscribe), None) => Ok(device::unsubscribe(conn, unsubscribe)),
            (Packet::Unsubscribe(unsubscribe), Some(_)) => Ok(account::unsubscribe(core, conn, unsubscribe)),
            (Packet::PingReq, _) => {
                conn.state().put(encode::pingresp);
                Ok(Flow::On)
            }
            (Packet::Disconnect(goodbye), _) => Err(Ended::silently(why_of(goodbye))),
        }
    }

    /// Writes what can be written at once, ends the connection, and says why, if that is for the device to know.
    fn finish(mut self, ended: Ended) {
        let mut seen = Vec::new();
        {
            let mut state = self.conn.state();
            while !state.out.is_empty() && state.closed.is_none() {
                let Some(bytes) = self.socket.try_send(&state.out) else { break };
                wrote(&self.core, &self.conn, &mut state, bytes, &mut seen);
            }
        }
        count_many(&self.core.totals.reports_unread, self.held);
        for payload in seen {
            self.core.show(&self.conn.name, "command", payload, 0);
        }
        self.core.end(&self.conn, ended.why);
        self.core.forget(&self.conn);
        self.core.credits.wake(); // it may have been woken for credits that it does not take
        let whole = self.conn.state().out.is_empty();
        let Some(code) = ended.code else { return };
        let mut last = Vec::new();
        if whole && self.conn.version == MqttVersion::V5 {
            encode::disconnect(&mut last, code); // behind a packet that is cut off it could not be read
        }
        Farewell::of_client(last, self.packet_bytes_max()).spawn(&self.core, self.socket);
    }
}

/// So many bytes are with the system: tells of the commands that are wholly written. `seen` takes what accounts may want to see of
/// it, once the state is not locked any more.
fn wrote(core: &Core, conn: &Conn, state: &mut State, bytes: usize, seen: &mut Vec<Bytes>) {
    for command in state.wrote(bytes) {
        count(&core.totals.commands_written);
        seen.extend(command.seen);
        if command.ticket == NO_NOTICE {
            continue;
        }
        let (device, ticket) = (conn.name.clone(), command.ticket);
        command.place.send(FromDevice::Written { device, ticket });
    }
}

/// What a goodbye means (3.14.4).
fn why_of(goodbye: &Disconnect) -> Closed {
    if goodbye.clean() { Closed::Clean } else { Closed::GoodbyeWithWill }
}

/// What a v5 device hears when others end its connection.
fn code_for(why: Closed) -> Option<Reason> {
    match why {
        Closed::KeepAlive => Some(Reason::KeepAliveTimeout),
        Closed::TakenOver => Some(Reason::TakenOver),
        Closed::Kicked => Some(Reason::Administrative),
        Closed::Stopped => Some(Reason::ServerShuttingDown),
        Closed::Unacknowledged => Some(Reason::ServerBusy),
        Closed::Quarantined => Some(Reason::ImplementationSpecific),
        Closed::ReportRefused => Some(Reason::Unspecified),
        Closed::ProtocolError => Some(Reason::Protocol),
        Closed::PacketTooLarge => Some(Reason::PacketTooLarge),
        Closed::ForeignTopic => Some(Reason::NotAuthorized),
        Closed::SlowReader | Closed::QuotaExceeded => Some(Reason::QuotaExceeded),
        Closed::Clean | Closed::GoodbyeWithWill | Closed::Lost => None,
    }
}
