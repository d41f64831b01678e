//! Several wishes side by side (semantics 7.1): each is an operation of its own, and each answers for itself.

use std::time::Instant;

use tokio::task::JoinSet;

use super::{arguments::Together, house::House};
use crate::{
    answer::{self, MemberReply, Rendered},
    fleet::{Caller, Fleet},
    twin::words::{OpId, Reply, Settled},
};

/// Makes the wishes of a group or a scene true. Dropping the future means to stop waiting for each of them (semantics 4.7).
/// As many at once as there are members: at most those of a scene, or the switches of the house, each of which has a device
/// of its own to wait for.
pub(super) async fn carry_out(
    fleet: &Fleet,
    house: &House,
    wanted: Together,
    caller: &Caller,
    answer_by: Instant,
) -> Rendered {
    let members: Vec<_> = wanted
        .members
        .iter()
        .map(|m| (m.device.clone(), m.wish.property.clone(), m.wish.target.value().cloned(), m.required))
        .collect();
    let mut running = JoinSet::new();
    for (at, member) in wanted.members.into_iter().enumerate() {
        let (fleet, caller) = (fleet.clone(), caller.clone());
        running.spawn(async move { (at, fleet.set(&caller, &member.device, member.wish, answer_by).await) });
    }
    let mut replies: Vec<Option<Reply>> = members.iter().map(|_| None).collect();
    while let Some(ended) = running.join_next().await {
        match ended {
            Ok((at, reply)) => replies[at] = Some(reply),
            Err(error) => tracing::error!(%error, "a member of a group or scene was not carried out"),
        }
    }
    let answers: Vec<MemberReply> = members
        .into_iter()
        .zip(replies)
        .map(|((device, property, value, required), reply)| {
            let naming = house.naming(&device, Some(&property));
            // Its task failed: nobody knows how far it came.
            let unknown = || Reply::Settled(Box::new(Settled::unknown(OpId::new(""), device, property, value)));
            MemberReply { naming, required, reply: reply.unwrap_or_else(unknown) }
        })
        .collect();
    answer::together(&wanted.name, wanted.is_scene, &answers, house.lang())
}
