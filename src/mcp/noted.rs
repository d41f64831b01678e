//! What a call turned out to be about, noted while it is carried out: for the audit, which wants the thing that was meant
//! and not only the name that was heard, and wants it also of a call that nobody waited for to the end.

use std::sync::{Mutex, PoisonError};

use super::arguments::Request;
use crate::{
    names::Thing,
    property::{DeviceId, PropertyName},
    twin::{
        wish::Target,
        words::{RefusalWord, Reply},
    },
};

/// What one call has to do with, as far as it has come.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Notes {
    /// The things, in the order of the call; several for a group or a scene.
    pub things: Vec<Touched>,
    /// Why the arguments were refused, where the fleet was not asked; what the fleet refuses is in [`Touched::reply`].
    pub refused: Option<RefusalWord>,
    /// How a person agreed to what can do harm: `code`, `spoken_code`, `form`, `press`, joined by `+`; empty: nobody was asked.
    pub agreed: String,
}

/// A thing that a call is about.
#[derive(Clone, Debug, PartialEq)]
pub struct Touched {
    /// The device.
    pub device: DeviceId,
    /// Its property, or its action; `None`: the whole device.
    pub property: Option<PropertyName>,
    /// What is wanted of it.
    pub aim: Aim,
    /// What became of it; `None`: it was only looked at, or nobody waited for it.
    pub reply: Option<Reply>,
}

/// What a call wants of a thing.
#[derive(Clone, Debug, PartialEq)]
pub enum Aim {
    /// To know how it is.
    Look,
    /// A value.
    Wish(Target),
    /// An action, which leaves no state.
    Action,
    /// It was meant, and what was wanted of it was refused.
    Unclear,
}

impl Touched {
    fn new(device: &DeviceId, property: Option<&PropertyName>, aim: Aim) -> Self {
        Self { device: device.clone(), property: property.cloned(), aim, reply: None }
    }
}

/// The notes of a call that is being carried out.
#[derive(Debug, Default)]
pub(super) struct Noting(Mutex<Notes>);

impl Noting {
    /// What the arguments ask for.
    pub(super) fn aims(&self, request: &Request) {
        let things = match request {
            Request::Find { .. } | Request::Ping | Request::Confirm { .. } | Request::Check { thing: None, .. } => {
                Vec::new()
            }
            Request::State { thing: Thing { device, property }, .. }
            | Request::Check { thing: Some(Thing { device, property }), .. } => {
                vec![Touched::new(device, property.as_ref(), Aim::Look)]
            }
            Request::Unheard { thing: Thing { device, property } } => {
                vec![Touched::new(device, property.as_ref(), Aim::Unclear)]
            }
            Request::Set { device, wish } => {
                vec![Touched::new(device, Some(&wish.property), Aim::Wish(wish.target.clone()))]
            }
            Request::Run { device, action } => vec![Touched::new(device, Some(action), Aim::Action)],
            Request::Together(together) => {
                let touched = together.members.iter().map(|member| {
                    let wish = &member.wish;
                    Touched::new(&member.device, Some(&wish.property), Aim::Wish(wish.target.clone()))
                });
                touched.collect()
            }
        };
        self.with(|notes| notes.things = things);
    }

    /// The arguments were refused; `about`: the thing that was meant, where that much was clear.
    pub(super) fn refused(&self, word: RefusalWord, about: Option<&(DeviceId, Option<PropertyName>)>) {
        self.with(|notes| {
            notes.refused = Some(word);
            // What was wanted of it is known already where only the asking back stood in the way.
            if notes.things.is_empty() {
                notes.things = about.map(|(d, p)| Touched::new(d, p.as_ref(), Aim::Unclear)).into_iter().collect();
            }
        });
    }

    /// A person has agreed, in these ways.
    pub(super) fn agreed(&self, ways: &[(&str, bool)]) {
        let ways: Vec<&str> = ways.iter().filter(|(_, so)| *so).map(|(way, _)| *way).collect();
        self.with(|notes| notes.agreed = ways.join("+"));
    }

    /// What became of the things, in the order of the call.
    pub(super) fn replied<'a>(&self, replies: impl IntoIterator<Item = &'a Reply>) {
        self.with(|notes| {
            for (touched, reply) in notes.things.iter_mut().zip(replies) {
                touched.reply = Some(reply.clone());
            }
        });
    }

    /// What was found to an earlier operation.
    pub(super) fn checked(&self, reply: &Reply) {
        let Reply::Settled(settled) = reply else { return self.replied([reply]) };
        let touched =
            Touched { reply: Some(reply.clone()), ..Touched::new(&settled.device, Some(&settled.property), Aim::Look) };
        self.with(|notes| notes.things = vec![touched]);
    }

    /// All that was noted.
    pub(super) fn take(&self) -> Notes {
        self.with(std::mem::take)
    }

    fn with<T>(&self, change: impl FnOnce(&mut Notes) -> T) -> T {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
