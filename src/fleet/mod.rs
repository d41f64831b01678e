//! All devices of the hub: the handle that callers hold, and the actor that supervises the devices' actors.
//!
//! Callers find a device's actor in a map by its id; they never talk to the supervisor. A crashed actor is restarted and
//! goes on with what [`Shared`] kept; past [`Limits::restarts_max`] in [`Limits::restarts_within`] the device is
//! quarantined. This module knows no transport and no sentence.

pub mod policy;
mod recent;
mod supervisor;
#[cfg(test)]
mod tests;
mod verifier;

use std::{
    collections::BTreeMap,
    future::Future,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use dashmap::DashMap;
use ractor::{ActorRef, MessagingErr, RpcReplyPort, rpc::CallResult};
use tokio::sync::watch;

use self::{
    recent::{Called, Recent},
    supervisor::FleetMsg,
};
pub use crate::device::Stages;
use crate::{
    authz::{Look, Permitted, Rights},
    device::{Context, DeviceMsg, Shared},
    names::{Name, Thing},
    property::{Description, DeviceId, PropertyName, Value},
    twin::{
        input::Memory,
        owed::Correction,
        view::View,
        wish::{ActionName, Arguments, CallerId, Wish},
        words::{OpId, Presence, Reason, Refusal, Reply, Settled, StateReport},
    },
};

/// Who asked: known from the session, never from the arguments (`stdio`, `http:<session>`, `cli`).
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Caller(pub Arc<str>);

impl Caller {
    /// A client that has no session: any number of them go by one name.
    pub fn without_session(client: &str) -> Self {
        Self(format!("http:{client}:stateless").into())
    }

    /// The key by which a twin knows this caller.
    pub fn id(&self) -> CallerId {
        if self.is_shared() { CallerId::shared(&self.0) } else { CallerId::new(&self.0) }
    }

    /// Whether several clients may be this caller, so that "the latest operation of this caller" is nobody's.
    pub fn is_shared(&self) -> bool {
        self.0.ends_with(":stateless")
    }
}

/// What tools and lists see of one device.
#[derive(Clone, Debug)]
pub struct Card {
    /// What it is called.
    pub name: Name,
    /// Whether it can be reached.
    pub presence: Presence,
    /// What it has; `None` until it has greeted this hub.
    pub description: Option<Arc<Description>>,
    /// When anything was last heard of it.
    pub last_heard: Option<Instant>,
}

/// When a device's actor is set aside.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// So many restarts within [`Limits::restarts_within`] are allowed: an actor that fails at once, again and again,
    /// would do nothing but burn the processor. One more quarantines the device until the hub starts again.
    pub restarts_max: usize,
    /// The window of [`Limits::restarts_max`].
    pub restarts_within: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self { restarts_max: 5, restarts_within: Duration::from_secs(60) }
    }
}

/// How long behind a caller's limit its call gives up on the actor: an actor always answers by the limit, so this firing
/// is a fault of ours, and counted.
const BACKSTOP: Duration = Duration::from_secs(2);

/// Where a device's actor is.
#[derive(Clone)]
enum Place {
    Running(ActorRef<DeviceMsg>),
    Restarting,
    Quarantined,
}

struct Entry {
    name: Name,
    shared: Arc<Shared>,
    place: watch::Sender<Place>,
}

struct Inner {
    devices: DashMap<DeviceId, Entry>,
    context: Arc<Context>,
    /// Grows with each change of devices, names or descriptions.
    revision: Arc<AtomicU64>,
    recent: Recent,
    /// From now on calls are refused at once.
    stopping: AtomicBool,
}

/// The handle that callers hold; clones are the same fleet.
#[derive(Clone)]
pub struct Fleet {
    inner: Arc<Inner>,
    supervisor: ActorRef<FleetMsg>,
    /// Who hears the stages of what is asked for through this handle.
    stages: Option<Stages>,
}

/// Why a device could not be added or removed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The supervisor is gone: the hub is stopping.
    #[error("the hub is stopping")]
    Stopping,
}

impl Fleet {
    /// Starts the supervisor, without any device.
    ///
    /// # Errors
    /// [`ractor::SpawnErr`] if the actor system refuses.
    pub async fn start(context: Arc<Context>, limits: Limits) -> Result<Self, ractor::SpawnErr> {
        let revision = Arc::new(AtomicU64::new(1));
        let inner = Arc::new(Inner {
            devices: DashMap::new(),
            context,
            revision,
            recent: Recent::default(),
            stopping: AtomicBool::new(false),
        });
        let supervisor = supervisor::start(inner.clone(), limits).await?;
        if let Some(asks) = inner.context.take_asks() {
            tokio::spawn(verifier::run(Arc::downgrade(&inner), supervisor.clone(), asks));
        }
        Ok(Self { inner, supervisor, stages: None })
    }

    /// The same fleet; the stages of what is asked for through this handle are told while it runs.
    #[must_use]
    pub fn telling(&self, stages: Stages) -> Self {
        Self { stages: Some(stages), ..self.clone() }
    }

    /// The same fleet, telling no stages.
    #[must_use]
    pub fn quiet(&self) -> Self {
        Self { stages: None, ..self.clone() }
    }

    /// Adds a device, or gives one that is there another name.
    ///
    /// # Errors
    /// [`Error::Stopping`].
    pub async fn add(&self, name: Name) -> Result<(), Error> {
        self.remember(name, Memory::default()).await
    }

    /// Adds a device with what an earlier process left of it: its description, its set points, what it had ended and what it
    /// died over (semantics 5.8). Who asked for those is answered by `check_operation` as if there had been no end.
    ///
    /// # Errors
    /// [`Error::Stopping`].
    pub async fn remember(&self, name: Name, memory: Memory) -> Result<(), Error> {
        for left in memory.ended.iter().map(|(_, left)| left).chain(&memory.in_flight) {
            let (settled, caller) = (&left.settled, Caller(left.caller.as_str().into()));
            let about = (settled.property.clone(), settled.wish.clone());
            self.inner.recent.note(Called::new(settled.op.clone(), settled.device.clone(), caller, about));
        }
        self.ask_supervisor(|port| FleetMsg::Add(name, Box::new(memory), port)).await
    }

    /// Removes a device; whoever waits for it is answered.
    ///
    /// # Errors
    /// [`Error::Stopping`].
    pub async fn remove(&self, device: &DeviceId) -> Result<(), Error> {
        self.ask_supervisor(|port| FleetMsg::Remove(device.clone(), port)).await
    }

    /// Answers everybody who waits, then stops all actors.
    pub async fn shut_down(&self) {
        self.inner.stopping.store(true, Ordering::Release);
        let _already_stopped = self.ask_supervisor(FleetMsg::ShutDown).await;
    }

    /// All devices, ordered by id.
    pub fn cards(&self) -> Vec<Card> {
        let sorted: BTreeMap<DeviceId, Card> =
            self.inner.devices.iter().map(|entry| (entry.key().clone(), card(entry.value()))).collect();
        sorted.into_values().collect()
    }

    /// One device.
    pub fn card(&self, device: &DeviceId) -> Option<Card> {
        self.inner.devices.get(device).map(|entry| card(entry.value()))
    }

    /// What a device says that it has, with the owner's word over it; `None` if it never greeted.
    pub fn description(&self, device: &DeviceId) -> Option<Arc<Description>> {
        let (_, description, _) = self.inner.devices.get(device)?.shared.view();
        description
    }

    /// Grows whenever the set of devices, names or descriptions changes, so that a catalogue can be kept until then.
    pub fn revision(&self) -> u64 {
        self.inner.revision.load(Ordering::Acquire)
    }

    /// Makes one wish true, or says why not. Answers by `answer_by`. Dropping the future means to stop waiting: what the
    /// device has not begun and nobody else waits for is withdrawn (semantics 4.7).
    pub async fn set(&self, caller: &Caller, permitted: Permitted<Wish>, answer_by: Instant) -> Reply {
        let (device, wish) = permitted.into_parts();
        let op = OpId::from(crate::random::id(6));
        let (id, who, property) = (op.clone(), caller.id(), wish.property.clone());
        let value = wish.target.value().cloned();
        let stages = self.stages.clone();
        let message = move |port| DeviceMsg::Set {
            op: id.clone(),
            caller: who.clone(),
            wish: wish.clone(),
            answer_by,
            stages: stages.clone(),
            port,
        };
        self.operate(caller, &device, op, (property, value), answer_by, message).await
    }

    /// Has a device do something that leaves no state, or says why not; otherwise as [`Fleet::set`].
    pub async fn run(
        &self,
        caller: &Caller,
        permitted: Permitted<ActionName>,
        args: Arguments,
        answer_by: Instant,
    ) -> Reply {
        let (device, action) = permitted.into_parts();
        let op = OpId::from(crate::random::id(6));
        let (id, who, name) = (op.clone(), caller.id(), action.clone());
        let stages = self.stages.clone();
        let message = move |port| DeviceMsg::Run {
            op: id.clone(),
            caller: who.clone(),
            action: action.clone(),
            args: args.clone(),
            answer_by,
            stages: stages.clone(),
            port,
        };
        self.operate(caller, &device, op, (name, None), answer_by, message).await
    }

    /// Has a device's actor carry out an operation. One that it crashed over is `interrupted` (semantics 5.8).
    async fn operate(
        &self,
        caller: &Caller,
        device: &DeviceId,
        op: OpId,
        (name, value): (PropertyName, Option<Value>),
        answer_by: Instant,
        message: impl Fn(RpcReplyPort<Reply>) -> DeviceMsg,
    ) -> Reply {
        let called = Called::new(op.clone(), device.clone(), caller.clone(), (name.clone(), value.clone()));
        self.inner.recent.note(called);
        match self.call(device, &op, answer_by, message).await {
            Ok(reply) => reply,
            Err(Unanswered::Refused(refusal)) => {
                self.inner.context.metrics.call_refused(refusal.word());
                Reply::Refused(refusal)
            }
            Err(Unanswered::Crashed) => {
                let left = self.inner.devices.get(device).and_then(|entry| entry.shared.left_of(&op));
                let mut settled = left.unwrap_or_else(|| Settled::unknown(op, device.clone(), name, value));
                settled.outcome = crate::twin::words::Outcome::Interrupted;
                settled.reason = Some(Reason::ActorRestarted);
                Reply::Settled(Box::new(settled))
            }
        }
    }

    /// The state of one device, all of it; `fresh` asks the device now and waits for its answer until `answer_by`.
    ///
    /// # Errors
    /// A [`Refusal`] for an unknown or quarantined device, or a hub that is stopping. A device that is offline is no
    /// error: its last state is told, as old.
    pub async fn state(
        &self,
        permitted: &Permitted<Look>,
        fresh: bool,
        answer_by: Instant,
    ) -> Result<StateReport, Refusal> {
        self.state_of(permitted.device(), fresh, answer_by).await
    }

    async fn state_of(&self, device: &DeviceId, fresh: bool, answer_by: Instant) -> Result<StateReport, Refusal> {
        let op = OpId::from(crate::random::id(6));
        if fresh {
            let made = op.clone();
            let asked =
                self.call(device, &op, answer_by, |port| DeviceMsg::Query { op: made.clone(), answer_by, port }).await;
            match asked {
                Ok(report) => return report,
                Err(Unanswered::Refused(refusal)) => return Err(refusal),
                // The actor crashed over it: its successor tells what is known.
                Err(Unanswered::Crashed) => {}
            }
        }
        self.call(device, &op, answer_by, DeviceMsg::State).await.map_err(Unanswered::into_refusal)
    }

    /// All that is known of one device, without asking it. `None` if there is none of that id, or it does not tell by
    /// `answer_by`.
    pub async fn view(&self, permitted: &Permitted<Look>, answer_by: Instant) -> Option<View> {
        self.call(permitted.device(), &OpId::new("view"), answer_by, DeviceMsg::View).await.ok()
    }

    /// Hears whenever something of a device may have changed, until it is removed. `None`: there is no such device.
    pub fn changes(&self, permitted: &Permitted<Look>) -> Option<watch::Receiver<u64>> {
        self.inner.devices.get(permitted.device()).map(|entry| entry.shared.changes())
    }

    /// What became of an operation: by its id, else the latest of this caller on a thing, else the thing's latest, else the
    /// latest of this caller. One of a device that was removed since is `removed`, whatever bears its name now
    /// (semantics 2.8). `None`: nothing is known of one, or not to somebody with these rights.
    pub async fn check(
        &self,
        op: Option<&OpId>,
        thing: Option<&Thing>,
        caller: &Caller,
        rights: &Rights,
    ) -> Option<Reply> {
        let known = match (op, thing) {
            (Some(op), _) => self.inner.recent.known(op),
            (None, Some(_)) if caller.is_shared() => None,
            (None, thing) => self.inner.recent.latest_of(caller, thing),
        };
        if known.as_ref().is_some_and(|called| !rights.sees(&called.device, called.name())) {
            return None;
        }
        if let Some(removed) = known.as_ref().and_then(Called::removed) {
            return Some(Reply::Settled(Box::new(removed)));
        }
        let op = op.cloned().or_else(|| known.as_ref().map(|called| called.op.clone()));
        let part = thing.and_then(|thing| thing.property.as_ref()).filter(|_| op.is_none());
        let device = thing.map(|thing| thing.device.clone()).or_else(|| known.map(|called| called.device))?;
        let answer_by = Instant::now() + BACKSTOP;
        let question = OpId::new("check");
        let asked = self.call(&device, &question, answer_by, |port| DeviceMsg::Check { op: op.clone(), port }).await;
        let settled = asked.ok().flatten()?;
        if !rights.sees(&settled.device, &settled.property) || part.is_some_and(|part| *part != settled.property) {
            return None;
        }
        // It hears it now.
        self.inner.context.owed().heard(&caller.id(), &settled.op);
        Some(Reply::Settled(Box::new(settled)))
    }

    /// What is owed to a caller: answers of the last ten minutes that are no longer true, each told once (semantics 6.3).
    pub fn corrections_for(&self, caller: &Caller) -> Vec<Correction> {
        self.inner.context.owed().take(now(), &caller.id())
    }

    /// How many devices were set aside.
    pub fn quarantined(&self) -> usize {
        let aside = |place: &Place| match place {
            Place::Quarantined => true,
            Place::Running(_) | Place::Restarting => false,
        };
        self.inner.devices.iter().filter(|entry| aside(&entry.place.borrow())).count()
    }

    /// Hands a message to a device's actor, or back.
    pub(crate) fn tell(&self, device: &DeviceId, message: DeviceMsg) -> Result<(), NotTold> {
        match self.place(device) {
            Some(Place::Running(actor)) => match actor.cast(message) {
                Err(MessagingErr::SendErr(message)) => Err(NotTold::NotNow(Box::new(message))),
                Ok(()) | Err(MessagingErr::ChannelClosed | MessagingErr::InvalidActorType) => Ok(()),
            },
            Some(Place::Quarantined) => Err(NotTold::Quarantined(Box::new(message))),
            Some(Place::Restarting) | None => Err(NotTold::NotNow(Box::new(message))),
        }
    }

    /// Hands a message to every device's actor.
    pub(crate) fn tell_all(&self, message: impl Fn() -> DeviceMsg) {
        let places: Vec<Place> = self.inner.devices.iter().map(|entry| entry.place.borrow().clone()).collect();
        for place in places {
            if let Place::Running(actor) = place {
                let _stopping = actor.cast(message());
            }
        }
    }

    fn place(&self, device: &DeviceId) -> Option<Place> {
        self.inner.devices.get(device).map(|entry| entry.place.borrow().clone())
    }

    /// Waits for an actor that is being restarted.
    async fn running(&self, device: &DeviceId, answer_by: Instant) -> Result<ActorRef<DeviceMsg>, Refusal> {
        if self.inner.stopping.load(Ordering::Acquire) {
            return Err(Refusal::ShuttingDown);
        }
        let Some(mut place) = self.inner.devices.get(device).map(|entry| entry.place.subscribe()) else {
            return Err(Refusal::UnknownDevice { asked: device.to_string(), near: Vec::new() });
        };
        // Nearly always; no timer is made for it.
        if let Place::Running(actor) = &*place.borrow() {
            return Ok(actor.clone());
        }
        let settled = place.wait_for(|place| match place {
            Place::Running(_) | Place::Quarantined => true,
            Place::Restarting => false,
        });
        match tokio::time::timeout_at(answer_by.into(), settled).await {
            Ok(Ok(place)) => match &*place {
                Place::Running(actor) => Ok(actor.clone()),
                Place::Restarting | Place::Quarantined => Err(Refusal::Quarantined),
            },
            Ok(Err(_removed)) => Err(Refusal::UnknownDevice { asked: device.to_string(), near: Vec::new() }),
            Err(_elapsed) => Err(Refusal::Quarantined),
        }
    }

    /// Calls a device's actor. If the future is dropped, the actor hears that nobody waits any more.
    async fn call<T: Send + 'static>(
        &self,
        device: &DeviceId,
        op: &OpId,
        answer_by: Instant,
        message: impl Fn(RpcReplyPort<T>) -> DeviceMsg,
    ) -> Result<T, Unanswered> {
        let wait = answer_by.saturating_duration_since(Instant::now()) + BACKSTOP;
        let incarnation = || self.inner.devices.get(device).map(|entry| entry.shared.clone());
        let asked = incarnation();
        // A message that finds its actor just gone was not taken in: its successor gets it.
        for _ in 0..2 {
            // But not another device that has come under its name (semantics 2.8).
            if let (Some(asked), Some(present)) = (&asked, incarnation())
                && !Arc::ptr_eq(asked, &present)
            {
                let refusal = Refusal::UnknownDevice { asked: device.to_string(), near: Vec::new() };
                return Err(Unanswered::Refused(refusal));
            }
            let actor = self.running(device, answer_by).await.map_err(Unanswered::Refused)?;
            let hang_up = HangUp { actor: actor.clone(), op: op.clone(), armed: true };
            let called = actor.call(&message, Some(wait)).await;
            hang_up.disarm();
            match called {
                Ok(CallResult::Success(answer)) => return Ok(answer),
                Ok(CallResult::SenderError) => return Err(Unanswered::Crashed),
                Ok(CallResult::Timeout) => {
                    tracing::error!(%device, %op, "an actor did not answer by its caller's limit");
                    self.inner.context.metrics.call_unanswered();
                    return Err(Unanswered::Crashed);
                }
                Err(_gone) => self.left_behind(device).await,
            }
        }
        Err(Unanswered::Refused(Refusal::ShuttingDown))
    }

    /// The actor's mailbox is closed: waits until the supervisor has noticed.
    async fn left_behind(&self, device: &DeviceId) {
        let Some(mut place) = self.inner.devices.get(device).map(|entry| entry.place.subscribe()) else { return };
        place.borrow_and_update();
        let _stopping = tokio::time::timeout(BACKSTOP, place.changed()).await;
    }

    async fn ask_supervisor(&self, message: impl FnOnce(RpcReplyPort<()>) -> FleetMsg) -> Result<(), Error> {
        match self.supervisor.call(message, None).await {
            Ok(CallResult::Success(())) => Ok(()),
            Ok(CallResult::SenderError | CallResult::Timeout) | Err(_) => Err(Error::Stopping),
        }
    }
}

/// A message that nobody took, and why.
pub(crate) enum NotTold {
    /// The device was set aside: nobody will take it before somebody has looked.
    Quarantined(Box<DeviceMsg>),
    /// There is no actor at this moment, or no such device.
    NotNow(Box<DeviceMsg>),
}

/// Why a call has no answer of its actor.
enum Unanswered {
    /// There is no actor to ask.
    Refused(Refusal),
    /// The actor ended over it.
    Crashed,
}

impl Unanswered {
    fn into_refusal(self) -> Refusal {
        match self {
            Self::Refused(refusal) => refusal,
            Self::Crashed => Refusal::Quarantined,
        }
    }
}

/// Tells the actor that its caller stopped waiting, unless it was answered (semantics 4.7).
struct HangUp {
    actor: ActorRef<DeviceMsg>,
    op: OpId,
    armed: bool,
}

impl HangUp {
    fn disarm(mut self) {
        self.armed = false;
    }
}

impl Drop for HangUp {
    fn drop(&mut self) {
        if self.armed {
            let _actor_gone = self.actor.cast(DeviceMsg::Cancel(self.op.clone()));
        }
    }
}

/// The monotonic clock, as the actors read it.
fn now() -> Instant {
    tokio::time::Instant::now().into_std()
}

fn card(entry: &Entry) -> Card {
    let (presence, description, last_heard) = entry.shared.view();
    Card { name: entry.name.clone(), presence, description, last_heard }
}

/// Keeps the compiler honest about what callers may do with a call: it can be sent to another task.
#[expect(dead_code, reason = "compiles or does not")]
fn calls_are_send(fleet: &Fleet, wish: Permitted<Wish>, caller: &Caller) -> impl Future<Output = Reply> + Send {
    fleet.set(caller, wish, Instant::now())
}
