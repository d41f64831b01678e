//! One connected device: reads packets, writes what waits. One hand-written poll, so that an idle device costs its
//! socket, its state and nothing else: no timer, no buffer, no task of its own for each direction.

use std::{
    io::ErrorKind,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use tokio::net::TcpStream;
use tokio_util::io::poll_read_buf;

use super::{
    codec::{Bad, Packet, Publish, Reason, Subscribe, Unsubscribe, decode, encode},
    rights::{self, Own},
    spawn_farewell,
};
use crate::broker::{
    Closed, FromDevice, MqttVersion, NO_NOTICE, Receipt,
    conn::{Conn, State},
    core::{Cargo, Core},
    counters::count,
    frame::Kind,
    settings::REPORT_OVERHEAD_BYTES,
};

/// Bytes read at once.
const READ_BYTES: usize = 4096;

/// Reads before others get their turn.
const TURNS: usize = 8;

/// Starts the session of a device that is in. `unread` came behind its CONNECT.
pub(super) fn spawn(core: Arc<Core>, conn: Arc<Conn>, socket: TcpStream, unread: Vec<u8>) {
    let tasks = core.tasks.clone();
    let mut session = Session { core, conn, socket, unread };
    tasks.spawn(async move {
        let (device, connection) = (session.conn.device.clone(), session.conn.number);
        tracing::debug!(device = &*device, connection, version = session.conn.version.as_str(), "a device came in");
        let ended = std::future::poll_fn(|cx| session.poll(cx)).await;
        tracing::debug!(device = &*device, connection, why = ended.why.as_str(), "a connection ended");
        session.finish(ended);
    });
}

struct Session {
    core: Arc<Core>,
    conn: Arc<Conn>,
    socket: TcpStream,
    /// A part of a packet, or packets that are held back; empty while idle.
    unread: Vec<u8>,
}

/// How a session ended, and the code for a v5 device, if it is to be told.
#[derive(Clone, Copy)]
struct Ended {
    why: Closed,
    code: Option<Reason>,
}

impl Ended {
    fn silently(why: Closed) -> Self {
        Self { why, code: None }
    }

    fn with(why: Closed, code: Reason) -> Self {
        Self { why, code: Some(code) }
    }
}

impl From<Bad> for Ended {
    fn from(bad: Bad) -> Self {
        tracing::debug!(what = bad.what, "a device sent what MQTT does not allow");
        let too_large = bad.reason == Reason::PacketTooLarge;
        Self::with(if too_large { Closed::PacketTooLarge } else { Closed::ProtocolError }, bad.reason)
    }
}

/// Whether reading may go on.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Flow {
    On,
    /// The window is full, or there are no credits: an acknowledgement or credits will wake the task.
    HeldBack,
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
            if self.conn.state().out.len() > self.core.settings.outbound_bytes_max {
                return Poll::Pending; // it does not read: it is not read either, until it does
            }
            let mut unread = std::mem::take(&mut self.unread);
            let worked = self.work(&mut unread);
            let flow = match worked.and_then(|flow| self.flush(cx).map(|()| flow)) {
                Ok(flow) => flow,
                Err(ended) => return Poll::Ready(ended),
            };
            if let Some(why) = self.conn.state().closing {
                return Poll::Ready(Ended { why, code: code_for(why) });
            }
            let read = if flow == Flow::On { self.read(cx, &mut unread) } else { Poll::Pending };
            self.keep(unread);
            if let Err(ended) = ready!(read) {
                return Poll::Ready(ended);
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
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
        let lost = Err(Ended::silently(Closed::Lost));
        if ready!(self.socket.poll_read_ready(cx)).is_err() {
            return Poll::Ready(lost);
        }
        unread.reserve(READ_BYTES);
        Poll::Ready(match ready!(poll_read_buf(Pin::new(&mut self.socket), cx, unread)) {
            Ok(0) | Err(_) => lost,
            Ok(_) => Ok(()),
        })
    }

    /// Writes what waits, as far as the socket takes it; tells of the commands that are wholly written.
    fn flush(&mut self, cx: &mut Context<'_>) -> Result<(), Ended> {
        let mut state = self.conn.state();
        while !state.out.is_empty() {
            match self.socket.try_write(&state.out) {
                Ok(bytes) => self.wrote(&mut state, bytes),
                Err(error) if error.kind() == ErrorKind::WouldBlock => match self.socket.poll_write_ready(cx) {
                    Poll::Pending => break,
                    Poll::Ready(Ok(())) => {}
                    Poll::Ready(Err(_)) => return Err(Ended::silently(Closed::Lost)),
                },
                Err(_) => return Err(Ended::silently(Closed::Lost)),
            }
        }
        Ok(())
    }

    fn wrote(&self, state: &mut State, bytes: usize) {
        for command in state.wrote(bytes) {
            count(&self.core.totals.commands_written);
            if command.ticket == NO_NOTICE {
                continue;
            }
            let (device, ticket) = (self.conn.device.clone(), command.ticket);
            command.place.send(FromDevice::Written { device, ticket });
        }
    }

    /// Works off whole packets from the front of `unread`.
    fn work(&self, unread: &mut Vec<u8>) -> Result<Flow, Ended> {
        let mut done = 0;
        let flow = loop {
            let rest = &unread[done..];
            match decode(rest, self.conn.version, self.core.settings.packet_bytes_max)? {
                None => break Flow::On,
                Some((packet, bytes)) => {
                    self.conn.heard(self.core.now_ms());
                    if self.handle(&packet)? == Flow::HeldBack {
                        break Flow::HeldBack;
                    }
                    done += bytes;
                }
            }
        };
        unread.drain(..done);
        Ok(flow)
    }

    fn handle(&self, packet: &Packet<'_>) -> Result<Flow, Ended> {
        match packet {
            Packet::Publish(publish) => self.publish(publish),
            Packet::PubAck => Ok(Flow::On), // nothing waits for it
            Packet::Subscribe(subscribe) => Ok(self.subscribe(subscribe)),
            Packet::Unsubscribe(unsubscribe) => Ok(self.unsubscribe(unsubscribe)),
            Packet::PingReq => {
                self.conn.state().put(encode::pingresp);
                Ok(Flow::On)
            }
            Packet::Disconnect(goodbye) => {
                Err(Ended::silently(if goodbye.clean { Closed::Clean } else { Closed::GoodbyeWithWill }))
            }
        }
    }

    fn publish(&self, publish: &Publish<'_>) -> Result<Flow, Ended> {
        let v5 = self.conn.version == MqttVersion::V5;
        // What CONNACK said is not offered.
        if publish.qos == 2 {
            return Err(Ended::with(Closed::ProtocolError, Reason::QosNotSupported));
        }
        if publish.alias {
            return Err(Ended::with(Closed::ProtocolError, Reason::TopicAliasInvalid));
        }
        if publish.retain && v5 {
            return Err(Ended::with(Closed::ProtocolError, Reason::RetainNotSupported));
        }
        if publish.dup && self.conn.state().waits_for(publish.packet_id) {
            return Ok(Flow::On); // said again on the same connection, out of impatience: its answer is on its way
        }
        let full = usize::from(self.core.settings.inflight_max);
        let mut state = self.conn.state();
        if state.closed.is_some() || (publish.qos == 1 && state.unacknowledged() >= full) {
            return Ok(Flow::HeldBack);
        }
        let Some(own) = rights::publishes_to(&self.conn.device, publish.topic) else {
            count(&self.core.totals.foreign_topics);
            if !v5 {
                return Err(Ended::silently(Closed::ForeignTopic)); // no code for it, and no silence either
            }
            if publish.qos == 1 {
                state.refuse(publish.packet_id, self.core.now_ms(), Reason::NotAuthorized);
                state.acknowledge(self.conn.version);
            }
            return Ok(Flow::On);
        };
        let cost_bytes = publish.payload.len() + REPORT_OVERHEAD_BYTES;
        let place = self.core.place_for_report().filter(|_| self.core.credits.take(cost_bytes));
        let Some(place) = place else {
            if !state.held_back {
                state.held_back = true;
                self.core.credits.wait(&self.conn);
            }
            return Ok(Flow::HeldBack);
        };
        count(&self.core.totals.reports_in);
        let slot = (publish.qos == 1).then(|| state.open_slot(publish.packet_id, self.core.now_ms()));
        let kind = match own {
            Own::Event => Kind::Event { retained: publish.retain },
            Own::Status => Kind::Status { retained: publish.retain },
        };
        let receipt = Some(Receipt::new(&self.core, &self.conn, slot, cost_bytes));
        // Under the lock, so that nothing of this connection is told after its end.
        let (device, number) = (&self.conn.device, self.conn.number);
        self.core.tell(device, number, kind, publish.payload, Cargo { place, receipt });
        Ok(Flow::On)
    }

    fn subscribe(&self, subscribe: &Subscribe<'_>) -> Flow {
        let (device, version) = (&self.conn.device, self.conn.version);
        let code = |filter| rights::subscription(device, version, filter, subscribe.identified);
        let codes: Vec<u8> = subscribe.filters().map(code).collect();
        let mut state = self.conn.state();
        for code in &codes {
            if *code == 0 {
                state.subscribed = true;
            } else {
                count(&self.core.totals.subscriptions_refused);
            }
        }
        state.put(|out| encode::suback(out, version, subscribe.packet_id, &codes));
        Flow::On
    }

    fn unsubscribe(&self, unsubscribe: &Unsubscribe<'_>) -> Flow {
        let mut state = self.conn.state();
        let mut codes = Vec::new();
        for filter in unsubscribe.filters() {
            let own = rights::is_own_command(&self.conn.device, filter);
            let existed = own && std::mem::take(&mut state.subscribed);
            codes.push(if existed { Reason::Success } else { Reason::NoSubscriptionExisted }.code());
        }
        state.put(|out| encode::unsuback(out, self.conn.version, unsubscribe.packet_id, &codes));
        Flow::On
    }

    /// Writes what can be written at once, ends the connection, and says why, if that is for the device to know.
    fn finish(self, ended: Ended) {
        {
            let mut state = self.conn.state();
            while !state.out.is_empty() && state.closed.is_none() {
                let Ok(bytes) = self.socket.try_write(&state.out) else { break };
                self.wrote(&mut state, bytes);
            }
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
        spawn_farewell(&self.core, self.socket, last);
    }
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
        Closed::Clean | Closed::GoodbyeWithWill | Closed::Lost => None,
    }
}
