//! One MQTT connection: drives the machine over any `embedded-io-async` byte stream (a socket, TLS, a UART).
//!
//! It ends when the connection does; the body owns dialling again and the pauses between. Each connection is a new MQTT
//! session (clean start): what the broker kept for us would be commands of an ended session.

use core::{
    future::{Future, pending, poll_fn},
    pin::pin,
    task::Poll,
};

use embassy_futures::select::{Either, select};
use embassy_time::{Duration, Timer, with_timeout};
use heapless::Deque;
use minimq::{
    Buffers, ConfigBuilder, Connection, Error, Io, Op, PeerError, PubError, Publication, QoS, ReasonCode,
    RetainHandling, Session, SubscriptionOptions, TopicFilter, Will,
};
use truetwin_wire::{
    device::write_will,
    limits::{COMMAND_BYTES_MAX, EVENT_BYTES_MAX, ID_BYTES_MAX},
    topics::{self, TOPIC_BYTES_MAX},
};

use crate::{
    board::Board,
    machine::{Heard, Machine},
};

/// How long each writing may take, and half of what connecting and subscribing may take together. minimq waits for ever for a CONNACK that was lost, and a write
/// into a full window of a peer that is gone would hold the task that drives.
const PATIENCE: Duration = Duration::from_secs(5);

/// MQTT keep-alive, seconds: minimq pings five seconds earlier, so a peer that is gone is noticed after it.
const KEEP_ALIVE_S: u16 = 20;

/// Room for one packet from the broker: a command, its topic, and what MQTT 5 may put around them.
const RECEIVE_BYTES: usize = COMMAND_BYTES_MAX + TOPIC_BYTES_MAX + 128;

/// Room for packets that are not acknowledged yet: the longest hello, and reports behind it.
const SEND_BYTES: usize = EVENT_BYTES_MAX + 2048 + 512;

/// Most messages that are read before something is driven: ten times what a hub can have in flight to one board. Only a
/// flood has more, and a flood must not keep a board from finishing what it has begun.
const READ_MAX: usize = 64;

/// Most events whose acknowledgement is watched for: minimq keeps what is not acknowledged in `SEND_BYTES`, where no more
/// than some fifteen reports fit. What is sent beyond is told again after a reconnect.
const WATCHED_MAX: usize = 16;

/// Events on their way, with their `seq`.
type Watched = Deque<(Op, u32), WATCHED_MAX>;

/// The memory of one connection; several hundred bytes too many for a small stack, so the body says where it lies.
pub struct Memory {
    receive: [u8; RECEIVE_BYTES],
    send: [u8; SEND_BYTES],
}

impl Memory {
    /// Memory for one connection at a time.
    pub const fn new() -> Self {
        Self { receive: [0; RECEIVE_BYTES], send: [0; SEND_BYTES] }
    }
}

impl Default for Memory {
    fn default() -> Self {
        Self::new()
    }
}

/// What happened on the link, for a log.
#[derive(Debug)]
pub enum Note<'m> {
    /// Connected and subscribed; the hello is on its way.
    Connected,
    /// A message, and what became of it.
    Heard(Heard, &'m [u8]),
}

/// Why a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The other side is gone, or what it said was no MQTT.
    Lost,
    /// The broker does not accept us: name, password or rights.
    NotAccepted(ReasonCode),
    /// The broker or the network did not answer in time.
    TimedOut,
    /// The hub did not answer the hello in time.
    NoWelcome,
    /// The hub refused the hello; connecting again at once would change nothing.
    Refused,
    /// The name of the device makes no topic, or the password is too long for the memory.
    BadAccount,
}

/// Lets the machine do what is due while there is no connection: what has begun is watched to its end, and outputs go to
/// their safe level when their time has come. Never ends; the body drops it when it has dialled.
pub async fn idle<B: Board>(machine: &mut Machine<'_>, board: &mut B, clock: impl Fn() -> u64) {
    loop {
        machine.step(clock(), board);
        let now_ms = clock();
        // At least a millisecond, so that a clock that stands still does not make this spin.
        after(machine.deadline(board).map(|at_ms| at_ms.saturating_sub(now_ms).max(1))).await;
    }
}

/// Connects and serves until the connection ends. `clock` is the time since the start of this run, milliseconds.
pub async fn serve<I: Io, B: Board>(
    io: I,
    password: &[u8],
    memory: &mut Memory,
    machine: &mut Machine<'_>,
    board: &mut B,
    clock: impl Fn() -> u64,
    mut note: impl FnMut(Note<'_>),
) -> End {
    let end = run(io, password, memory, machine, board, &clock, &mut note).await;
    machine.disconnected(clock());
    end
}

async fn run<I: Io, B: Board>(
    io: I,
    password: &[u8],
    memory: &mut Memory,
    machine: &mut Machine<'_>,
    board: &mut B,
    clock: &impl Fn() -> u64,
    note: &mut impl FnMut(Note<'_>),
) -> End {
    let device = machine.identity().device;
    let (Ok(command), Ok(event), Ok(status)) =
        (topics::command_topic(device), topics::event_topic(device), topics::status_topic(device))
    else {
        return End::BadAccount;
    };
    let mut will = [0; ID_BYTES_MAX + 16];
    let Ok(will_len) = write_will(machine.boot(), &mut will) else { return End::BadAccount };
    let will = will.get(..will_len).unwrap_or_default();
    let Some(config) = config(device, password, memory, &status, will) else { return End::BadAccount };
    let mut session = Session::new(config);

    let connecting = async {
        let mut mqtt = session.connect(io).await.map_err(|error| ended(&error))?;
        subscribed(&mut mqtt, &command).await?;
        Ok(mqtt)
    };
    let mut mqtt = match select(with_timeout(PATIENCE * 2, connecting), idle(machine, board, clock)).await {
        Either::First(Ok(Ok(mqtt))) => mqtt,
        Either::First(Ok(Err(end))) => return end,
        Either::First(Err(_)) | Either::Second(()) => return End::TimedOut,
    };
    let mut watched = Watched::new();
    note(Note::Connected);
    machine.step(clock(), board); // what moved while there was no connection belongs into the hello
    machine.connected(clock(), board);

    loop {
        if let Err(end) = send(&mut mqtt, &event, machine, &mut watched).await {
            return end;
        }
        let now_ms = clock();
        let due = machine.deadline(board).map(|at_ms| at_ms.saturating_sub(now_ms));
        let mut next = match select(mqtt.poll(), after(due)).await {
            Either::First(message) => Some(message),
            Either::Second(()) => None,
        };
        // All that is there is read before anything moves: a withdrawal may lie behind a set.
        for _ in 0..READ_MAX {
            let Some(message) = next else { break };
            match message {
                Ok(None) => {}
                Ok(Some(message)) => {
                    let heard = machine.handle(message.payload(), message.retained(), clock(), board);
                    note(Note::Heard(heard, message.payload()));
                    if heard == Heard::Refused {
                        return End::Refused;
                    }
                }
                Err(error) => return ended(&error),
            }
            next = ready(mqtt.poll()).await;
        }
        acknowledge(&mqtt, machine, &mut watched);
        machine.step(clock(), board);
        if machine.welcome_overdue(clock()) {
            return End::NoWelcome;
        }
    }
}

fn config<'m>(
    device: &'m str,
    password: &'m [u8],
    memory: &'m mut Memory,
    status: &str,
    will: &'m [u8],
) -> Option<ConfigBuilder<'m>> {
    let will = Will::new(status, will, &[]).ok()?.qos(QoS::AtLeastOnce);
    let buffers = Buffers::new(&mut memory.receive, &mut memory.send);
    let config = ConfigBuilder::new(buffers).client_id(device).ok()?.auth(device, password).ok()?;
    config.keepalive_interval(KEEP_ALIVE_S).will(will).ok()
}

async fn subscribed<I: Io>(mqtt: &mut Connection<'_, '_, I>, topic: &str) -> Result<(), End> {
    // QoS 0: a command that could not be delivered at once is worth nothing later (protocol, *Topics*).
    let options = SubscriptionOptions::default().maximum_qos(QoS::AtMostOnce).retain_behavior(RetainHandling::Never);
    let filter = TopicFilter::new(topic).options(options);
    let asked = mqtt.subscribe(&[filter], &[]).await.map_err(|error| ended(&error))?;
    while mqtt.is_pending(&asked) {
        // No command can be meant for us yet: there was no hello.
        let _too_early = mqtt.poll().await.map_err(|error| ended(&error))?;
    }
    Ok(())
}

/// Hands over what the outbox holds, as far as the window of unacknowledged packets has room.
async fn send<I: Io>(
    mqtt: &mut Connection<'_, '_, I>,
    topic: &str,
    machine: &mut Machine<'_>,
    watched: &mut Watched,
) -> Result<(), End> {
    while let Some(event) = machine.outgoing() {
        if !mqtt.can_publish(QoS::AtLeastOnce) {
            return Ok(()); // the next acknowledgement makes room, and wakes us
        }
        let publication = Publication::bytes(topic, event).qos(QoS::AtLeastOnce);
        match with_timeout(PATIENCE, mqtt.publish(publication)).await {
            Err(_) => return Err(End::TimedOut),
            Ok(Ok(op)) => {
                if let (Some(op), Some(seq)) = (op, machine.outgoing_seq()) {
                    // Without room it is told again after a reconnect, as `WATCHED_MAX` says.
                    let _told_again = watched.push_back((op, seq));
                }
                machine.sent();
            }
            Ok(Err(PubError::Payload(()) | PubError::Session(Error::NotReady | Error::Resource(_)))) => {
                if !mqtt.session().is_publish_quiescent() {
                    return Ok(()); // no room beside what is not acknowledged yet
                }
                machine.sent(); // no room ever: it would block all that is behind it
            }
            Ok(Err(PubError::Session(error))) => return Err(ended(&error)),
        }
    }
    Ok(())
}

/// Says which events the broker has taken over.
fn acknowledge<I: Io>(mqtt: &Connection<'_, '_, I>, machine: &mut Machine<'_>, watched: &mut Watched) {
    for _ in 0..watched.len() {
        let Some((op, seq)) = watched.pop_front() else { break };
        if mqtt.is_complete(&op) {
            machine.acknowledged(seq);
        } else {
            // There is room: it was just taken out.
            let _always_room = watched.push_back((op, seq));
        }
    }
}

fn ended<E>(error: &Error<E>) -> End {
    if let Error::Peer(PeerError::Rejected(code)) = error { End::NotAccepted(*code) } else { End::Lost }
}

/// Waits; for ever without a time.
async fn after(ms: Option<u64>) {
    match ms {
        Some(ms) => Timer::after_millis(ms).await,
        None => pending().await,
    }
}

/// What a future has to say now, without waiting. The future must not lose anything when it is dropped (minimq's `poll`
/// does not).
async fn ready<F: Future>(future: F) -> Option<F::Output> {
    let mut future = pin!(future);
    poll_fn(|context| match future.as_mut().poll(context) {
        Poll::Ready(output) => Poll::Ready(Some(output)),
        Poll::Pending => Poll::Ready(None),
    })
    .await
}
