//! The supervisor: spawns devices' actors, restarts those that crash, sets aside those that cannot stop crashing, and
//! ends them in order.
//!
//! ractor's default supervisor stops when a child stops, and a stopping supervisor kills its children without asking
//! them (ractor 0.16 `actor.rs:315`, `actor_cell.rs:367`); so both are done here.

use std::{
    collections::BTreeMap,
    sync::{Arc, atomic::Ordering},
    time::{Duration, Instant},
};

use ractor::{Actor, ActorId, ActorProcessingErr, ActorRef, RpcReplyPort, SpawnErr, SupervisionEvent, rpc::CallResult};
use tokio::sync::watch;

use super::{Entry, Inner, Limits, Place, policy::Restarts};
use crate::{
    device::{Device, DeviceMsg, Shared},
    names::Name,
    property::DeviceId,
    twin::input::Memory,
};

/// How long a stopping actor may take to answer its callers. Answering is a matter of microseconds; an actor that does
/// not come to it is stuck, and is killed so that the others are not kept waiting.
const STOP_MAX: Duration = Duration::from_secs(2);

pub(crate) enum FleetMsg {
    /// Add a device with what an earlier process left of it, or give one that is there another name.
    Add(Name, Box<Memory>, RpcReplyPort<()>),
    Remove(DeviceId, RpcReplyPort<()>),
    ShutDown(RpcReplyPort<()>),
}

pub(super) async fn start(inner: Arc<Inner>, limits: Limits) -> Result<ActorRef<FleetMsg>, SpawnErr> {
    let (supervisor, _task) = Actor::spawn(None, Supervisor { inner, limits }, ()).await?;
    Ok(supervisor)
}

struct Supervisor {
    inner: Arc<Inner>,
    limits: Limits,
}

#[derive(Default)]
struct State {
    children: BTreeMap<ActorId, DeviceId>,
    /// When each device's actor was restarted lately.
    restarts: BTreeMap<DeviceId, Restarts>,
    stopping: bool,
}

impl Actor for Supervisor {
    type Msg = FleetMsg;
    type State = State;
    type Arguments = ();

    async fn pre_start(&self, _: ActorRef<FleetMsg>, (): ()) -> Result<State, ActorProcessingErr> {
        Ok(State::default())
    }

    async fn handle(
        &self,
        me: ActorRef<FleetMsg>,
        message: FleetMsg,
        state: &mut State,
    ) -> Result<(), ActorProcessingErr> {
        match message {
            FleetMsg::Add(name, memory, port) => {
                self.add(&me, state, name, *memory).await;
                let _caller_gone = port.send(());
            }
            FleetMsg::Remove(device, port) => {
                self.remove(state, &device).await;
                let _caller_gone = port.send(());
            }
            FleetMsg::ShutDown(port) => {
                state.stopping = true;
                self.stop_all().await;
                let _caller_gone = port.send(());
                me.stop(None);
            }
        }
        Ok(())
    }

    async fn handle_supervisor_evt(
        &self,
        me: ActorRef<FleetMsg>,
        event: SupervisionEvent,
        state: &mut State,
    ) -> Result<(), ActorProcessingErr> {
        match event {
            SupervisionEvent::ActorFailed(child, error) => {
                if let Some(device) = state.children.remove(&child.get_id()) {
                    tracing::error!(%device, %error, "the device's actor crashed");
                    self.restart(&me, state, device).await;
                }
            }
            SupervisionEvent::ActorTerminated(child, _, reason) => {
                if let Some(device) = state.children.remove(&child.get_id())
                    && !state.stopping
                {
                    tracing::error!(%device, ?reason, "the device's actor ended unasked");
                    self.restart(&me, state, device).await;
                }
            }
            SupervisionEvent::ActorStarted(_) | SupervisionEvent::ProcessGroupChanged(_) => {}
        }
        Ok(())
    }
}

impl Supervisor {
    async fn add(&self, me: &ActorRef<FleetMsg>, state: &mut State, name: Name, memory: Memory) {
        let device = name.device.clone();
        if let Some(mut entry) = self.inner.devices.get_mut(&device) {
            entry.name = name;
            entry.shared.changed();
            drop(entry);
        } else {
            let (place, _) = watch::channel(Place::Restarting);
            self.inner
                .devices
                .insert(device.clone(), Entry { name, shared: Arc::new(Shared::remembering(memory)), place });
            self.spawn(me, state, &device).await;
        }
        self.inner.revision.fetch_add(1, Ordering::AcqRel);
    }

    async fn remove(&self, state: &mut State, device: &DeviceId) {
        let Some((_, entry)) = self.inner.devices.remove(device) else { return };
        self.inner.revision.fetch_add(1, Ordering::AcqRel);
        // A device that comes under this name again is another: it inherits no operations, no news, no crashes.
        self.inner.recent.bury(device);
        self.inner.context.owed().forget_device(device);
        state.restarts.remove(device);
        let place = entry.place.borrow().clone();
        if let Place::Running(actor) = place {
            state.children.remove(&actor.get_id());
            stop(&actor, DeviceMsg::Removed).await;
        }
    }

    /// Spawns an actor. What its predecessor left is withdrawn by its first act (semantics 5.8).
    async fn spawn(&self, me: &ActorRef<FleetMsg>, state: &mut State, device: &DeviceId) {
        let Some(shared) = self.inner.devices.get(device).map(|entry| entry.shared.clone()) else { return };
        let actor = Device::new(device.clone(), self.inner.context.clone(), shared, self.inner.revision.clone());
        let spawned = Actor::spawn_linked(None, actor, (), me.get_cell()).await;
        let Some(entry) = self.inner.devices.get(device) else { return };
        match spawned {
            Ok((actor, _task)) => {
                state.children.insert(actor.get_id(), device.clone());
                entry.place.send_replace(Place::Running(actor));
            }
            Err(error) => {
                tracing::error!(%device, %error, "the device's actor cannot be started; it is quarantined");
                entry.place.send_replace(Place::Quarantined);
            }
        }
    }

    async fn restart(&self, me: &ActorRef<FleetMsg>, state: &mut State, device: DeviceId) {
        if state.stopping {
            return;
        }
        let now = Instant::now();
        let restarts = state.restarts.entry(device.clone()).or_default();
        if !restarts.once_more(now, self.limits.restarts_max, self.limits.restarts_within) {
            tracing::error!(%device, "its actor crashed too often; the device is quarantined until the hub starts again");
            if let Some(entry) = self.inner.devices.get(&device) {
                entry.place.send_replace(Place::Quarantined);
            }
            return;
        }
        self.inner.context.metrics.actor_restarted();
        if let Some(entry) = self.inner.devices.get(&device) {
            entry.place.send_replace(Place::Restarting);
        }
        self.spawn(me, state, &device).await;
    }

    async fn stop_all(&self) {
        let places: Vec<Place> = self.inner.devices.iter().map(|entry| entry.place.borrow().clone()).collect();
        // All at once: each answers its callers, and none waits for another.
        let mut stopping = tokio::task::JoinSet::new();
        for place in places {
            if let Place::Running(actor) = place {
                stopping.spawn(async move { stop(&actor, DeviceMsg::ShutDown).await });
            }
        }
        while stopping.join_next().await.is_some() {}
    }
}

/// Asks an actor to answer everybody and stop; kills one that does not come to it.
async fn stop(actor: &ActorRef<DeviceMsg>, message: fn(RpcReplyPort<()>) -> DeviceMsg) {
    match actor.call(message, Some(STOP_MAX)).await {
        Ok(CallResult::Success(())) | Err(_) => {}
        Ok(CallResult::Timeout | CallResult::SenderError) => actor.kill(),
    }
}
