//! The actor of one device: it holds the reply ports and one timer, and carries out what its twin decides.
//!
//! `handle` never waits and decides nothing: one input into the twin, drain the effects, arm the timer. What must outlive
//! a crash of the actor lies in [`Shared`], which the fleet keeps.

mod kept;
mod told;

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use ractor::{Actor, ActorProcessingErr, ActorRef, RpcReplyPort};
use tokio::{
    sync::{mpsc, watch},
    task::AbortHandle,
};

pub(crate) use self::kept::unaccepted_name;
use self::kept::{Book, Waiting};
pub use self::told::Stages;
use crate::{
    broker::{Broker, NO_NOTICE, Receipt, SendError},
    dialect::native,
    journal::Journal,
    metrics::{InFlight, Metrics},
    property::{Description, DeviceId, PropertyName, Value},
    recorder::{Recorder, Track},
    twin::{
        Hears, Twin,
        input::{Command, Effect, Found, Input, Left, Memory, Report},
        ledger::Asked,
        owed::Owed,
        settings::Settings,
        view::View,
        wish::{ActionName, Arguments, CallerId, Wish},
        words::{OpId, Presence, Refusal, Reply, Settled, StateReport},
    },
};

/// What every device actor of one hub works with.
pub struct Context {
    /// The way to the devices.
    pub broker: Broker,
    /// Where things are counted.
    pub metrics: Metrics,
    /// Who this hub is: part of each welcome.
    pub identity: native::Identity,
    /// Times and bounds.
    pub settings: Settings,
    /// Where operations and set points are written down; without one nothing is.
    journal: Option<Journal>,
    /// Where what reaches the twins is recorded, if its owner wants that.
    recorder: Option<Arc<Recorder>>,
    /// What is owed to callers (semantics 6.3).
    owed: Mutex<Owed>,
    /// Numbers the commands whose writing the hub wants to hear of.
    tickets: AtomicU64,
    asks: mpsc::Sender<Ask>,
    asked: Mutex<Option<mpsc::Receiver<Ask>>>,
}

/// A question of one device's actor to another device (semantics 3.10); answered with [`DeviceMsg::Verified`].
#[derive(Debug)]
pub struct Ask {
    /// Who asks.
    pub from: ActorRef<DeviceMsg>,
    /// The question.
    pub question: OpId,
    /// Who is asked.
    pub device: DeviceId,
    /// For which property.
    pub property: PropertyName,
    /// When the answer must be there.
    pub answer_by: Instant,
}

/// Questions to other devices that may wait to be taken up: they are taken up at once, so this is never reached; one more is
/// answered as if the device were silent.
const ASKS_MAX: usize = 1_024;

impl Context {
    /// Puts together what the actors need.
    pub fn new(broker: Broker, metrics: Metrics, identity: native::Identity, settings: Settings) -> Self {
        let (asks, asked) = mpsc::channel(ASKS_MAX);
        let asked = Mutex::new(Some(asked));
        let (owed, tickets) = (Mutex::default(), AtomicU64::new(1));
        Self { broker, metrics, identity, settings, journal: None, recorder: None, owed, tickets, asks, asked }
    }

    /// The same with a journal, if there is one.
    #[must_use]
    pub fn with_journal(self, journal: Option<Journal>) -> Self {
        Self { journal, ..self }
    }

    /// The same with a recording, if there is one.
    #[must_use]
    pub fn with_recorder(self, recorder: Option<Arc<Recorder>>) -> Self {
        Self { recorder, ..self }
    }

    /// What is owed to callers, over all devices.
    pub fn owed(&self) -> std::sync::MutexGuard<'_, Owed> {
        // A panic beside the lock leaves at worst one correction untold.
        self.owed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The questions of all actors to other devices; for the fleet, once.
    pub(crate) fn take_asks(&self) -> Option<mpsc::Receiver<Ask>> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// What is known of a device outside its actor: what lists show, and what a successor needs after a crash.
#[derive(Debug, Default)]
pub struct Shared {
    inner: Mutex<Known>,
    /// Grows with each message that the actor takes in while somebody listens; gone when the device is.
    changed: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct Known {
    presence: Option<Presence>,
    description: Option<Arc<Description>>,
    last_heard: Option<Instant>,
    memory: Memory,
    /// The wish that is being taken in: should the actor crash over it, its end is unknown all the same.
    admitting: Option<Admitting>,
}

/// A wish that is being taken in: who has it, and what it is on.
type Admitting = (CallerId, OpId, PropertyName, Option<Value>);

impl Shared {
    /// Presence, description and when anything was last heard.
    pub fn view(&self) -> (Presence, Option<Arc<Description>>, Option<Instant>) {
        let known = self.lock();
        (known.presence.unwrap_or(Presence::Offline), known.description.clone(), known.last_heard)
    }

    /// Hears whenever something of the device may have changed. Ends when the device is removed.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    /// Says to whoever listens that something may have changed; if nobody does, that is one look at a number.
    pub(crate) fn changed(&self) {
        if self.changed.receiver_count() > 0 {
            self.changed.send_modify(|revision| *revision = revision.wrapping_add(1));
        }
    }

    /// What a crashed actor left of one operation: that it was in flight, and where. `None` if it never took it in.
    pub fn left_of(&self, op: &OpId) -> Option<Settled> {
        self.lock().memory.in_flight.iter().find(|left| left.settled.op == *op).map(|left| left.settled.clone())
    }

    /// How many callers wait for operations, as a successor would learn it.
    #[cfg(test)]
    pub fn callers_waiting(&self) -> usize {
        self.lock().memory.in_flight.iter().filter(|left| left.hears == Hears::Waits).count()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Known> {
        // Every write is one assignment: a panic beside the lock leaves nothing half-done.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What an earlier process left, for the first actor of this one.
    pub fn remembering(memory: Memory) -> Self {
        let description = memory.description.clone();
        Self { inner: Mutex::new(Known { description, memory, ..Known::default() }), ..Self::default() }
    }

    /// Takes out what the last actor left, for its successor; the wish that it crashed over included.
    fn take_memory(&self, device: &DeviceId) -> Option<Memory> {
        let mut known = self.lock();
        let mut memory = known.memory.clone();
        if let Some((caller, op, property, value)) = known.admitting.take()
            && memory.in_flight.iter().all(|left| left.settled.op != op)
        {
            let settled = Settled::unknown(op, device.clone(), property, value);
            memory.in_flight.push(Left { caller, hears: Hears::Waits, settled });
        }
        (memory != Memory::default()).then_some(memory)
    }
}

/// A message to a device's actor: an input of its twin, with the port to answer where somebody waits.
pub enum DeviceMsg {
    /// Make a wish true.
    Set {
        /// The new operation.
        op: OpId,
        /// Who asks.
        caller: CallerId,
        /// What it wants.
        wish: Wish,
        /// When the caller must have its answer.
        answer_by: Instant,
        /// Who wants to hear how far it is.
        stages: Option<Stages>,
        /// Who waits.
        port: RpcReplyPort<Reply>,
    },
    /// Do something that leaves no state.
    Run {
        /// The new operation.
        op: OpId,
        /// Who asks.
        caller: CallerId,
        /// The action.
        action: ActionName,
        /// What it is done with.
        args: Arguments,
        /// When the caller must have its answer.
        answer_by: Instant,
        /// Who wants to hear how far it is.
        stages: Option<Stages>,
        /// Who waits.
        port: RpcReplyPort<Reply>,
    },
    /// Ask the device what its state is.
    Query {
        /// The question.
        op: OpId,
        /// When the caller must have its answer.
        answer_by: Instant,
        /// Who waits.
        port: RpcReplyPort<Result<StateReport, Refusal>>,
    },
    /// Tell what is known of the state, without asking the device.
    State(RpcReplyPort<StateReport>),
    /// Tell all that is known, without asking the device.
    View(RpcReplyPort<View>),
    /// Tell what became of an operation, or of the latest.
    Check {
        /// Which.
        op: Option<OpId>,
        /// Who waits.
        port: RpcReplyPort<Option<Settled>>,
    },
    /// The caller of an operation stopped waiting.
    Cancel(OpId),
    /// The device's connection opened.
    Connected(u64),
    /// A connection of the device ended.
    Disconnected(u64),
    /// The device greeted.
    Greeted {
        /// Its greeting, with the owner's word over it.
        hello: crate::twin::input::Hello,
        /// The same as the device sent it, if it says something else of what it has than the one before: it is kept.
        said: Option<String>,
        /// Goes out once it is taken in.
        receipt: Receipt,
    },
    /// The device reported.
    Heard(Report, Receipt),
    /// What a question to another device came to.
    Verified(OpId, Found),
    /// The device sent something that could not be read.
    Unreadable,
    /// The bytes of a command were written to the device's socket.
    Written(u64),
    /// A command never reached the device's socket.
    Lost(u64),
    /// The bus died.
    BusDown,
    /// The bus is back.
    BusUp,
    /// The timer.
    Tick,
    /// Answer everybody, then stop.
    ShutDown(RpcReplyPort<()>),
    /// The owner removed the device: answer everybody, then stop.
    Removed(RpcReplyPort<()>),
    /// Panics, as a fault in this actor would.
    #[cfg(test)]
    Crash,
}

impl DeviceMsg {
    /// Which operation a message asks for, and when its caller must have its answer.
    fn asks(&self, twin: &Twin) -> Option<(Asked, Instant)> {
        if let Self::Set { op, caller, wish, answer_by, .. } = self {
            let (what, wished) = (wish.property.clone(), wish.target.value().cloned());
            let first = twin.is_recorded_first(&what);
            return Some((Asked { op: op.clone(), caller: caller.clone(), what, wish: wished, first }, *answer_by));
        }
        if let Self::Run { op, caller, action, answer_by, .. } = self {
            let first = twin.is_action_recorded_first(action);
            let (op, caller, what) = (op.clone(), caller.clone(), action.clone());
            return Some((Asked { op, caller, what, wish: None, first }, *answer_by));
        }
        None
    }

    /// The promise that goes with a report.
    pub(crate) fn into_receipt(self) -> Option<Receipt> {
        if let Self::Greeted { receipt, .. } | Self::Heard(_, receipt) = self { Some(receipt) } else { None }
    }

    /// Whether somebody still waits for its answer.
    fn is_waited_for(&self) -> bool {
        if let Self::Set { port, .. } | Self::Run { port, .. } = self { !port.is_closed() } else { false }
    }
}

/// The actor.
pub struct Device {
    id: DeviceId,
    context: Arc<Context>,
    shared: Arc<Shared>,
    /// The fleet's revision: grows when the description changes.
    revision: Arc<AtomicU64>,
}

/// What the actor keeps between messages.
pub struct State {
    me: ActorRef<DeviceMsg>,
    twin: Twin,
    track: Track,
    replies: BTreeMap<OpId, Waiting>,
    book: Book,
    followed: told::Followed,
    questions: BTreeMap<OpId, RpcReplyPort<Result<StateReport, Refusal>>>,
    /// Which operation or question a ticket of the broker belongs to.
    tickets: BTreeMap<u64, OpId>,
    session: Option<Arc<str>>,
    /// One for each operation of the twin, so that the gauge is right also if this actor crashes.
    in_flight: Vec<InFlight>,
    timer: Option<(Instant, AbortHandle)>,
    /// Its twin has been told that this is the end: it is told so once.
    ended: bool,
}

impl Device {
    /// An actor for one device; what `shared` holds of a crashed one is taken over.
    pub fn new(id: DeviceId, context: Arc<Context>, shared: Arc<Shared>, revision: Arc<AtomicU64>) -> Self {
        Self { id, context, shared, revision }
    }

    /// Feeds one input, and whatever its effects bring about at once.
    fn feed(&self, state: &mut State, now: Instant, input: Input) {
        let mut inputs = vec![input];
        while let Some(input) = inputs.pop() {
            let mut taking = state.track.takes(now, &input);
            state.twin.apply(now, input);
            while let Some(effect) = state.twin.poll() {
                taking.decided(&effect);
                if let Some(follow_up) = self.carry_out(state, now, effect) {
                    inputs.push(follow_up);
                }
            }
        }
    }

    /// Carries out one effect. A command that could not be sent is an input again.
    fn carry_out(&self, state: &mut State, now: Instant, effect: Effect) -> Option<Input> {
        let metrics = &self.context.metrics;
        match effect {
            Effect::Send(command) => return self.send(state, now, command),
            Effect::Ask { question, device, property, answer_by } => {
                let ask = Ask { from: state.me.clone(), question, device, property, answer_by };
                if let Err(full) = self.context.asks.try_send(ask) {
                    return Some(Input::Verified { question: full.into_inner().question, found: Found::Silent });
                }
            }
            Effect::Reply { op, reply } => {
                if let Reply::Refused(refusal) = &reply
                    && !is_no_call(refusal)
                {
                    metrics.call_refused(refusal.word());
                }
                if let Some(waiting) = state.replies.remove(&op) {
                    state.book.answer(&state.twin, metrics, waiting, reply);
                }
            }
            Effect::State { op, state: report } => {
                if let Some(port) = state.questions.remove(&op) {
                    hand_over(metrics, port, report);
                }
            }
            Effect::StageLeft { stage, spent } => metrics.stage_passed(stage, spent),
            Effect::Ended { outcome, stage, reason, elapsed } => {
                metrics.operation_ended(outcome, elapsed);
                if let Some(reason) = reason {
                    metrics.operation_failed(stage, reason);
                }
            }
            Effect::LateSuccess { op } => {
                tracing::warn!(device = %self.id, %op, "done after all: reported after the operation had ended unconfirmed");
                metrics.succeeded_late();
            }
            Effect::Reverted { op, property } => {
                tracing::warn!(device = %self.id, %op, %property, "went back by itself after a confirmed success");
                metrics.device_reverted();
            }
            Effect::Owed { caller, correction } => {
                state.book.amend(&caller, &correction.settled);
                self.context.owed().owe(now, &caller, *correction);
            }
            Effect::LocalOverride { property } => {
                tracing::info!(device = %self.id, %property, "changed at the device: that is what is held from now on");
            }
            Effect::Presence(presence) => {
                tracing::info!(device = %self.id, %presence, "presence");
                self.shared.lock().presence = Some(presence);
            }
            Effect::Described(description) => {
                self.shared.lock().description = Some(description);
                self.revision.fetch_add(1, Ordering::AcqRel);
            }
            Effect::Malformed { of_seq, property, error } => {
                let described = self.shared.lock().description.clone();
                let hidden = described.as_ref().and_then(|d| d.property(&property)).is_some_and(|p| p.terms.sensitive);
                // What is wrong names the value.
                let wrong = error.as_ref().filter(|_| !hidden);
                tracing::debug!(device = %self.id, of_seq, %property, ?wrong, "a value does not fit the description");
                let mistake = native::malformed(of_seq, &property, error.as_ref());
                metrics.event_unreadable(mistake.reason.as_str());
                let _not_connected = self.context.broker.send(self.id.as_str(), mistake.encode().into(), NO_NOTICE);
            }
            Effect::StaleHello { of_seq } => {
                let mistake = native::stale_hello(of_seq);
                tracing::warn!(device = %self.id, "it greets with a boot and a number of an earlier run: what it reports is ignored");
                metrics.event_unreadable(mistake.reason.as_str());
                let _not_connected = self.context.broker.send(self.id.as_str(), mistake.encode().into(), NO_NOTICE);
            }
            Effect::Ignored(why) => metrics.report_ignored(why),
        }
        None
    }

    fn send(&self, state: &mut State, now: Instant, command: Command) -> Option<Input> {
        if let Command::Welcome { session } = &command {
            state.session = Some(session.clone());
        }
        let session = state.session.clone()?;
        let payload = native::encode(&self.context.identity, &session, now, &command);
        // Only the writing of what moves something ends a stage; whoever asks need not wait for a question that was not written.
        let awaited = match &command {
            Command::Set { op, ttl, .. } | Command::Run { op, ttl, .. } => Some((op.clone(), Some(*ttl))),
            Command::GetState { op, .. } if state.questions.contains_key(op) => Some((op.clone(), None)),
            Command::Welcome { .. } | Command::GetState { .. } | Command::Withdraw { .. } => None,
        };
        self.context.metrics.command_published(native::word(&command));
        let (broker, device) = (&self.context.broker, self.id.as_str());
        let ticket = self.context.tickets.fetch_add(1, Ordering::Relaxed);
        let sent = match &awaited {
            Some((_, Some(ttl))) => broker.send_until(device, payload, ticket, now + *ttl),
            Some((_, None)) => broker.send(device, payload, ticket),
            None => broker.send(device, payload, NO_NOTICE),
        };
        match (sent, awaited.map(|(op, _)| op)) {
            (Ok(()), Some(op)) => {
                // Sent again: what becomes of the earlier sending is no news of this one (semantics 5.3).
                state.tickets.retain(|_, earlier| *earlier != op);
                state.tickets.insert(ticket, op);
                None
            }
            (Err(SendError::BusDown | SendError::Full), Some(op)) => Some(Input::NotWritten { op }),
            (Ok(()) | Err(SendError::BusDown | SendError::Full), None) => None,
        }
    }

    /// Keeps what a successor and the lists need.
    fn publish(&self, state: &mut State, now: Instant) {
        let operations = state.twin.in_flight();
        state.in_flight.truncate(operations);
        state.in_flight.resize_with(operations, || self.context.metrics.operation_began());
        let memory = state.twin.memory(now);
        state.book.catch_up(&state.twin, &memory.in_flight);
        let mut known = self.shared.lock();
        known.memory = memory;
        known.admitting = None;
        known.last_heard = state.twin.last_heard();
    }
}

impl Actor for Device {
    type Msg = DeviceMsg;
    type State = State;
    type Arguments = ();

    async fn pre_start(&self, me: ActorRef<DeviceMsg>, (): ()) -> Result<State, ActorProcessingErr> {
        let mut state = State {
            me: me.clone(),
            twin: Twin::new(self.id.clone(), self.context.settings.clone()),
            track: self.context.recorder.as_ref().map(|recorder| recorder.track(&self.id)).unwrap_or_default(),
            replies: BTreeMap::new(),
            book: Book::new(self.context.journal.clone()),
            followed: told::Followed::default(),
            questions: BTreeMap::new(),
            tickets: BTreeMap::new(),
            session: None,
            in_flight: Vec::new(),
            timer: None,
            ended: false,
        };
        state.track.begins(now(), &self.context.settings);
        if let Some(memory) = self.shared.take_memory(&self.id) {
            let now = now();
            state.session = memory.session.clone();
            let left = memory.in_flight.clone();
            self.feed(&mut state, now, Input::Restored(memory));
            state.book.resume(&state.twin, &left);
            self.publish(&mut state, now);
            arm(&me, &mut state);
        }
        Ok(state)
    }

    async fn handle(
        &self,
        me: ActorRef<DeviceMsg>,
        message: DeviceMsg,
        state: &mut State,
    ) -> Result<(), ActorProcessingErr> {
        let now = now();
        // Whoever looks because something has changed must not be told of its own look.
        let mut looks = false;
        let removed = matches!(message, DeviceMsg::Removed(_));
        let Some(message) = state.book.first(&me, &state.twin, &self.context.metrics, message) else { return Ok(()) };
        let (input, receipt, stopped) = match message {
            DeviceMsg::Set { op, caller, wish, answer_by, stages, port } => {
                state.followed.follow(&op, stages);
                let named = (caller.clone(), op.clone(), wish.property.clone(), wish.target.value().cloned());
                self.shared.lock().admitting = Some(named);
                state.replies.insert(op.clone(), Waiting { port, caller: caller.clone(), answer_by });
                (Input::Set { op, caller, wish, answer_by }, None, None)
            }
            DeviceMsg::Run { op, caller, action, args, answer_by, stages, port } => {
                state.followed.follow(&op, stages);
                self.shared.lock().admitting = Some((caller.clone(), op.clone(), action.clone(), None));
                state.replies.insert(op.clone(), Waiting { port, caller: caller.clone(), answer_by });
                (Input::Run { op, caller, action, args, answer_by }, None, None)
            }
            DeviceMsg::Query { op, answer_by, port } => {
                state.questions.insert(op.clone(), port);
                (Input::Query { op, answer_by }, None, None)
            }
            DeviceMsg::State(port) => {
                hand_over(&self.context.metrics, port, state.twin.state(now));
                (Input::Tick, None, None)
            }
            DeviceMsg::View(port) => {
                // What is late expires first, so that it is part of what is told.
                self.feed(state, now, Input::Tick);
                hand_over(&self.context.metrics, port, state.twin.view(now));
                looks = true;
                (Input::Tick, None, None)
            }
            DeviceMsg::Check { op, port } => {
                hand_over(&self.context.metrics, port, state.twin.check(now, op.as_ref()));
                (Input::Tick, None, None)
            }
            DeviceMsg::Cancel(op) => {
                state.replies.remove(&op);
                state.questions.remove(&op);
                state.book.given_up(&self.id, &op);
                (Input::Cancel { op }, None, None)
            }
            DeviceMsg::Connected(connection) => (Input::Connected { connection }, None, None),
            DeviceMsg::Disconnected(connection) => (Input::Disconnected { connection }, None, None),
            DeviceMsg::Greeted { hello, said, receipt } => {
                state.book.described(said);
                (Input::Greeted { session: crate::random::id(4), hello }, Some(receipt), None)
            }
            DeviceMsg::Heard(report, receipt) => (Input::Heard(report), Some(receipt), None),
            DeviceMsg::Verified(question, found) => (Input::Verified { question, found }, None, None),
            DeviceMsg::Unreadable => (Input::Unreadable, None, None),
            DeviceMsg::Written(ticket) => {
                let moves = state.tickets.remove(&ticket).filter(|op| !state.questions.contains_key(op));
                (moves.map_or(Input::Tick, |op| Input::Written { op }), None, None)
            }
            DeviceMsg::Lost(ticket) => {
                (state.tickets.remove(&ticket).map_or(Input::Tick, |op| Input::NotWritten { op }), None, None)
            }
            DeviceMsg::BusDown => (Input::BusDown, None, None),
            DeviceMsg::BusUp => (Input::BusUp, None, None),
            DeviceMsg::Tick => {
                state.timer = None;
                (Input::Tick, None, None)
            }
            DeviceMsg::ShutDown(port) => (Input::ShutDown, None, Some(port)),
            DeviceMsg::Removed(port) => (Input::Removed, None, Some(port)),
            #[cfg(test)]
            DeviceMsg::Crash => panic!("crashed on purpose"),
        };
        self.shared.lock().memory.happens(&input);
        self.feed(state, now, input);
        self.publish(state, now);
        state.followed.tell(&state.twin, now, |op| state.replies.contains_key(op));
        if !looks {
            self.shared.changed();
        }
        arm(&me, state);
        // Taken in: only now the device hears its acknowledgement.
        if let Some(receipt) = receipt {
            receipt.taken();
        }
        if let Some(port) = stopped {
            match removed {
                true => state.book.forget(&self.id),
                false => state.book.close(&state.twin),
            }
            state.ended = true;
            me.stop(None);
            let _caller_gone = port.send(());
        }
        Ok(())
    }

    async fn post_stop(&self, _: ActorRef<DeviceMsg>, state: &mut State) -> Result<(), ActorProcessingErr> {
        if !state.ended {
            self.feed(state, now(), Input::ShutDown);
        }
        if let Some((_, timer)) = state.timer.take() {
            timer.abort();
        }
        Ok(())
    }
}

/// The monotonic clock, through tokio so that a test's paused time reaches the twin.
fn now() -> Instant {
    tokio::time::Instant::now().into_std()
}

fn hand_over<T: Send + 'static>(metrics: &Metrics, port: RpcReplyPort<T>, answer: T) {
    if port.send(answer).is_err() {
        metrics.reply_unheard();
    }
}

/// Arms the one timer for the twin's deadline. One that is due earlier stays: its tick does nothing and arms the next,
/// where a new one for each message would cost a task each time. A timer outlives its actor unless it is aborted.
fn arm(me: &ActorRef<DeviceMsg>, state: &mut State) {
    let Some(at) = state.twin.deadline() else { return };
    if state.timer.as_ref().is_some_and(|(armed, _)| *armed <= at) {
        return;
    }
    if let Some((_, timer)) = state.timer.take() {
        timer.abort();
    }
    let wait: Duration = at.saturating_duration_since(now());
    state.timer = Some((at, me.send_after(wait, || DeviceMsg::Tick).abort_handle()));
}

/// A wish on a property without a name is the question whether the device has greeted (tools ask it before they know what
/// there is to wish for); "it has" is nobody's refused call.
fn is_no_call(refusal: &Refusal) -> bool {
    matches!(refusal, Refusal::UnknownProperty { asked, .. } if asked.is_empty())
}
