//! The actor of one device: it holds the reply ports and one timer, and carries out what its twin decides.
//!
//! `handle` never waits and decides nothing: one input into the twin, drain the effects, arm the timer. What must outlive
//! a crash of the actor lies in [`Shared`], which the fleet keeps.

mod context;
mod kept;
mod message;
mod shared;
mod told;

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use ractor::{Actor, ActorProcessingErr, ActorRef, RpcReplyPort};
use tokio::task::AbortHandle;

pub(crate) use self::kept::unaccepted_name;
use self::kept::{Book, Waiting};
pub use self::{
    context::{Ask, Context},
    message::DeviceMsg,
    shared::Shared,
    told::Stages,
};
use crate::{
    broker::{NO_NOTICE, Receipt, SendError},
    dialect::native,
    metrics::{InFlight, Metrics},
    property::DeviceId,
    recorder::Track,
    twin::{
        Twin,
        input::{Command, Effect, Found, Input},
        words::{OpId, Refusal, Reply, StateReport},
    },
};

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
        let mut receipts = Vec::new();
        let (input, stopped) = match message {
            DeviceMsg::Set { op, caller, wish, answer_by, stages, port } => {
                state.followed.follow(&op, stages);
                let named = (caller.clone(), op.clone(), wish.property.clone(), wish.target.value().cloned());
                self.shared.lock().admitting = Some(named);
                state.replies.insert(op.clone(), Waiting { port, caller: caller.clone(), answer_by });
                (Input::Set { op, caller, wish, answer_by }, None)
            }
            DeviceMsg::Run { op, caller, action, args, answer_by, stages, port } => {
                state.followed.follow(&op, stages);
                self.shared.lock().admitting = Some((caller.clone(), op.clone(), action.clone(), None));
                state.replies.insert(op.clone(), Waiting { port, caller: caller.clone(), answer_by });
                (Input::Run { op, caller, action, args, answer_by }, None)
            }
            DeviceMsg::Query { op, answer_by, port } => {
                state.questions.insert(op.clone(), port);
                (Input::Query { op, answer_by }, None)
            }
            DeviceMsg::State(port) => {
                hand_over(&self.context.metrics, port, state.twin.state(now));
                (Input::Tick, None)
            }
            DeviceMsg::View(port) => {
                // What is late expires first, so that it is part of what is told.
                self.feed(state, now, Input::Tick);
                hand_over(&self.context.metrics, port, state.twin.view(now));
                looks = true;
                (Input::Tick, None)
            }
            DeviceMsg::Check { op, port } => {
                hand_over(&self.context.metrics, port, state.twin.check(now, op.as_ref()));
                (Input::Tick, None)
            }
            DeviceMsg::Cancel(op) => {
                state.replies.remove(&op);
                state.questions.remove(&op);
                state.book.given_up(&self.id, &op);
                (Input::Cancel { op }, None)
            }
            DeviceMsg::Connected(connection) => (Input::Connected { connection }, None),
            DeviceMsg::Disconnected(connection) => (Input::Disconnected { connection }, None),
            DeviceMsg::Greeted { hello, said, receipt } => {
                state.book.described(said);
                receipts.push(receipt);
                (Input::Greeted { session: crate::random::id(4), hello }, None)
            }
            DeviceMsg::Heard(reports) => {
                let mut last = Input::Tick;
                for (report, receipt) in reports {
                    receipts.push(receipt);
                    let earlier = std::mem::replace(&mut last, Input::Heard(report));
                    if receipts.len() > 1 {
                        self.feed(state, now, earlier);
                    }
                }
                (last, None)
            }
            DeviceMsg::Verified(question, found) => (Input::Verified { question, found }, None),
            DeviceMsg::Unreadable => (Input::Unreadable, None),
            DeviceMsg::Written(ticket) => {
                let moves = state.tickets.remove(&ticket).filter(|op| !state.questions.contains_key(op));
                (moves.map_or(Input::Tick, |op| Input::Written { op }), None)
            }
            DeviceMsg::Lost(ticket) => {
                (state.tickets.remove(&ticket).map_or(Input::Tick, |op| Input::NotWritten { op }), None)
            }
            DeviceMsg::BusDown => (Input::BusDown, None),
            DeviceMsg::BusUp => (Input::BusUp, None),
            DeviceMsg::Tick => {
                state.timer = None;
                (Input::Tick, None)
            }
            DeviceMsg::ShutDown(port) => (Input::ShutDown, Some(port)),
            DeviceMsg::Removed(port) => (Input::Removed, Some(port)),
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
        receipts.into_iter().for_each(Receipt::taken);
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
