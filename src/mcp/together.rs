//! Several wishes side by side (semantics 7.1): each is an operation of its own, and each answers for itself.

use std::{
    collections::VecDeque,
    sync::{Mutex, PoisonError},
    time::Instant,
};

use tokio::task::JoinSet;

use super::{Progress, arguments::Together, eyes, house::House, progress::Step, tools::Silent};
use crate::{
    answer::{self, MemberReply, Rendered},
    authz::{Denied, Right, Rights},
    fleet::{Caller, Fleet},
    names::{Lang, Thing},
    twin::words::{OpId, Refusal, Reply, Settled},
};

/// Callers whose latest group or scene is remembered: as many sessions as a home has. The oldest is forgotten; each member
/// can still be asked for by its device or its operation.
const CALLERS_MAX: usize = 64;

/// A group or scene with what its caller was told of each member.
#[derive(Clone, Debug)]
pub(super) struct Told {
    name: String,
    is_scene: bool,
    members: Vec<(Thing, MemberReply)>,
}

/// The latest group or scene of each caller, so that "is it done?" is answered for the whole of it.
#[derive(Debug, Default)]
pub(super) struct Latest(Mutex<VecDeque<(Caller, Told)>>);

impl Latest {
    /// Remembers one; the caller's earlier one is forgotten. Callers that cannot be told apart have none.
    pub(super) fn keep(&self, caller: &Caller, told: Told) {
        if caller.is_shared() {
            return;
        }
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|(who, _)| who != caller);
        if all.len() == CALLERS_MAX {
            all.pop_front();
        }
        all.push_back((caller.clone(), told));
    }

    /// The caller's latest, if that operation is one of it.
    pub(super) fn of(&self, caller: &Caller, op: &OpId) -> Option<Told> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (_, told) = all.iter().find(|(who, _)| who == caller)?;
        let is_of_it =
            told.members.iter().any(|(_, m)| matches!(&m.reply, Reply::Settled(settled) if settled.op == *op));
        is_of_it.then(|| told.clone())
    }
}

impl Told {
    /// The same with what became of each operation since; without what may not be seen any more.
    pub(super) async fn brought_up_to_date(mut self, fleet: &Fleet, caller: &Caller, rights: &Rights) -> Self {
        self.members.retain(|(thing, _)| rights.to(thing) > Right::None);
        for (thing, member) in &mut self.members {
            let Reply::Settled(then) = &member.reply else { continue };
            if let Some(now) = fleet.check(Some(&then.op), Some(thing), caller, rights).await {
                member.reply = eyes::reply(now, rights);
            }
        }
        self
    }

    /// What became of each member, in the order of the call.
    pub(super) fn replies(&self) -> impl Iterator<Item = &Reply> {
        self.members.iter().map(|(_, member)| &member.reply)
    }

    /// As the caller hears it.
    pub(super) fn render(self, lang: Lang) -> Rendered {
        let members: Vec<MemberReply> = self.members.into_iter().map(|(_, member)| member).collect();
        answer::together(&self.name, self.is_scene, &members, lang)
    }
}

/// Makes the wishes of a group or a scene true. Dropping the future means to stop waiting for each of them (semantics 4.7).
/// As many at once as there are members: at most those of a scene, or the switches of the house, each of which has a device
/// of its own to wait for.
pub(super) async fn carry_out(
    fleet: &Fleet,
    house: &House,
    wanted: Together,
    silent: &Silent,
    caller: &Caller,
    answer_by: Instant,
    progress: Option<&Progress>,
) -> Told {
    let members: Vec<_> = wanted
        .members
        .iter()
        .map(|m| (m.device.clone(), m.wish.property.clone(), m.wish.target.value().cloned(), m.required))
        .collect();
    let mut running = JoinSet::new();
    for (at, member) in wanted.members.into_iter().enumerate() {
        let (fleet, caller) = (fleet.clone(), caller.clone());
        let (permitted, is_known) = (house.rights().set(&member.device, member.wish), house.greeted(&member.device));
        let unheard = silent.get(&member.device).cloned().unwrap_or(Refusal::Offline { last_heard: None });
        running.spawn(async move {
            match permitted {
                // What it is was not known when it was looked at whether somebody has to agree (semantics 7.2).
                Ok(_) if !is_known => (at, Reply::Refused(unheard)),
                Ok(permitted) => (at, fleet.set(&caller, permitted, answer_by).await),
                Err(denied) => (at, Reply::Refused(Denied::refusal(denied))),
            }
        });
    }
    let mut replies: Vec<Option<Reply>> = members.iter().map(|_| None).collect();
    let mut answered = 0;
    while let Some(ended) = running.join_next().await {
        answered += 1;
        if let Some(progress) = progress {
            progress.tell(Step::Members { answered, of: members.len() });
        }
        match ended {
            Ok((at, reply)) => replies[at] = Some(eyes::reply(reply, house.rights())),
            Err(error) => tracing::error!(%error, "a member of a group or scene was not carried out"),
        }
    }
    let members = members.into_iter().zip(replies).map(|((device, property, value, required), reply)| {
        let naming = house.naming(&device, Some(&property));
        // Its task failed: nobody knows how far it came.
        let thing = Thing { device: device.clone(), property: Some(property.clone()) };
        let unknown = || Reply::Settled(Box::new(Settled::unknown(OpId::new(""), device, property, value)));
        (thing, MemberReply { naming, required, reply: reply.unwrap_or_else(unknown) })
    });
    Told { name: wanted.name, is_scene: wanted.is_scene, members: members.collect() }
}
