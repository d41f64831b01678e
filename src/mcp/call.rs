//! One call, whatever transport it came over: house, tools, corrections, what is counted.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    pin::{Pin, pin},
    sync::Arc,
    task::Poll,
    time::{Duration, Instant},
};

use rmcp::model::JsonObject;
use tokio_util::sync::CancellationToken;

use super::{
    Form, Kept, Notes, Person, Progress, Server, catalogue::Tool, eyes, house::House, noted::Noting,
    resources::resource_list, session::Guest, tool_list, tools,
};
use crate::{
    answer::{self, Rendered},
    authz::{Policy, Principal, Right, Scope},
};

/// Words of policies that select nothing and were told: those of some callers whose lists are all wrong. More are not told.
const UNMATCHED_MAX: usize = 1_024;

/// A call as it came in.
#[derive(Clone, Debug)]
pub struct Call {
    /// The tool's name.
    pub tool: String,
    /// Its arguments.
    pub arguments: JsonObject,
    /// How the person behind it is asked before something moves that can do harm.
    pub person: Person,
}

impl Call {
    /// A call of a client that shows no questions itself.
    pub fn new(tool: &str, arguments: JsonObject) -> Self {
        Self { tool: tool.to_owned(), arguments, person: Person::ByModel }
    }
}

/// Why a call has no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoAnswer {
    /// No tool of that name is in this caller's catalogue.
    #[error("no such tool{}; there are: {}", tool.map(Tool::lacks).unwrap_or_default(), known.join(", "))]
    NoSuchTool {
        /// The tool, where others may have it: here is nothing that it could act on.
        tool: Option<Tool>,
        /// Those there are.
        known: Vec<String>,
    },
    /// The client no longer waits.
    #[error("cancelled by the client")]
    Cancelled,
    /// Its client puts this to the person first, and calls again ([`Person::Between`]).
    #[error("the person has to be asked first")]
    AskFirst(Form),
    /// Its principal may nothing any more: its token was revoked, its endpoint removed.
    #[error("access was withdrawn")]
    NoAccess,
}

/// A call that has ended, for those who count and keep.
#[derive(Debug)]
pub struct Ended<'a> {
    /// Who asked.
    pub guest: &'a Guest,
    /// Which tool.
    pub tool: Tool,
    /// With what.
    pub arguments: &'a JsonObject,
    /// What was answered, corrections in front; `None` if the client no longer waited.
    pub answer: Option<&'a Rendered>,
    /// What it was about and what became of that.
    pub notes: &'a Notes,
    /// How long it took.
    pub elapsed: Duration,
}

/// A call that was turned away before anything of it was looked at.
#[derive(Clone, Copy, Debug)]
pub struct TurnedAway<'a> {
    /// Who asked.
    pub principal: &'a Principal,
    /// In which session; `None` if it has none.
    pub guest: Option<&'a Guest>,
    /// For which tool: the client's own word.
    pub tool: &'a str,
    /// Why, one of `unknown_tool`, `no_access`.
    pub why: &'static str,
}

impl Server {
    /// A session of a principal; `None` if it may nothing (a revoked token, an endpoint that was removed).
    pub fn guest(&self, principal: Principal, session: &str) -> Option<Guest> {
        let policy = self.shared.access.policy(&principal)?;
        Some(Guest::new(principal, session, policy))
    }

    /// The tools of a caller.
    pub fn tools(&self, guest: &Guest) -> Vec<rmcp::model::Tool> {
        self.house(guest).tools.clone()
    }

    /// Changes whenever the tools of anybody may have changed.
    pub fn revision(&self) -> (u64, u64) {
        (self.shared.fleet.revision(), self.shared.access.revision())
    }

    /// Carries out one call and answers within the caller's limit. `gone` says that the client no longer waits.
    ///
    /// # Errors
    /// [`NoAnswer`]: then there is nobody to answer, or the tool does not exist.
    pub async fn call(&self, guest: &Guest, call: &Call, gone: &CancellationToken) -> Result<Rendered, NoAnswer> {
        self.call_with(guest, call, gone, None).await
    }

    /// The same, telling how far it is.
    ///
    /// # Errors
    /// As [`Server::call`].
    pub async fn call_with(
        &self,
        guest: &Guest,
        call: &Call,
        gone: &CancellationToken,
        progress: Option<Progress>,
    ) -> Result<Rendered, NoAnswer> {
        let started = Instant::now();
        // A transport may have bound its session further than the policy does: the other side gives up earlier.
        let bound_ms = guest.policy.answer_by_ms;
        // As it is now: a session may be older than its policy.
        let Some(policy) = self.shared.access.policy(&guest.principal) else {
            let (principal, tool, why) = (&guest.principal, call.tool.as_str(), "no_access");
            self.shared.observer.turned_away(&TurnedAway { principal, guest: Some(guest), tool, why });
            return Err(NoAnswer::NoAccess);
        };
        let guest = &Guest { policy, ..guest.clone() };
        let kept = self.house(guest);
        let known = Tool::parse(&call.tool);
        let Some(tool) = known.filter(|tool| kept.tools.iter().any(|t| t.name == tool.as_str())) else {
            let (principal, tool) = (&guest.principal, call.tool.as_str());
            let why = "unknown_tool";
            self.shared.observer.turned_away(&TurnedAway { principal, guest: Some(guest), tool, why });
            return Err(NoAnswer::NoSuchTool {
                tool: known,
                known: kept.tools.iter().map(|t| t.name.to_string()).collect(),
            });
        };
        let shared = &*self.shared;
        let answer_by = started + Duration::from_millis(guest.policy.answer_by_ms.min(bound_ms));
        let (noting, observer) = (Noting::default(), shared.observer.as_ref());
        let telling = progress.as_ref().map(|progress| progress.of(&shared.fleet));
        let desk = tools::Desk {
            fleet: telling.as_ref().unwrap_or(&shared.fleet),
            observer,
            latest: &shared.latest,
            noting: &noting,
            progress: progress.as_ref(),
            confirmer: &shared.confirmer,
            person: &call.person,
            caller: &guest.caller,
            several: guest.is_several(),
            answer_within: Duration::from_millis(guest.policy.answer_by_ms),
        };
        let ended = |answer: Option<&Rendered>| {
            let (elapsed, notes) = (started.elapsed(), noting.take());
            observer.call(&Ended { guest, tool, arguments: &call.arguments, answer, notes: &notes, elapsed });
        };
        let work = pin!(tools::call(&desk, || self.house(guest), tool, &call.arguments, &guest.caller, answer_by));
        let rendered = tokio::select! {
            outcome = caught(work) => match outcome {
                Some(Ok(rendered)) => rendered,
                // Not the end of the call: its second half is.
                Some(Err(form)) => {
                    let (elapsed, notes) = (started.elapsed(), noting.take());
                    let (arguments, answer) = (&call.arguments, None);
                    observer.asks_first(&Ended { guest, tool, arguments, answer, notes: &notes, elapsed });
                    return Err(NoAnswer::AskFirst(form));
                }
                None => {
                    tracing::error!(tool = tool.as_str(), caller = %guest.caller.0, "a tool panicked");
                    shared.observer.panicked();
                    answer::internal(guest.policy.lang)
                }
            },
            // The client no longer waits: dropping the work tells the fleet so (semantics 4.7).
            () = gone.cancelled() => {
                ended(None);
                return Err(NoAnswer::Cancelled);
            }
        };
        let rendered = self.corrected(rendered, guest);
        ended(Some(&rendered));
        Ok(rendered)
    }

    /// The house of a caller as it is now; built anew only when the fleet or a policy has changed.
    pub(super) fn house(&self, guest: &Guest) -> Arc<Kept> {
        let shared = &*self.shared;
        // Read before the cards: a change in between is then seen again by the next call instead of being missed.
        let revision = (shared.fleet.revision(), shared.access.revision());
        let mut kept = shared.houses.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(known) = kept.get(&guest.principal).filter(|known| known.revision == revision) {
            return known.clone();
        }
        // Not the session's own policy, which may be of an earlier revision; without one, an empty house.
        let policy = shared.access.policy(&guest.principal);
        let policy = policy.unwrap_or_else(|| Arc::new(Policy { scope: Scope::nothing(), ..(*guest.policy).clone() }));
        let house = House::of(&shared.fleet.cards(), shared.scenes.clone(), &policy);
        let (tools, resources) = (tool_list(&house), resource_list(&house));
        self.tell_unmatched(&guest.principal, &house);
        let fresh = Arc::new(Kept { revision, house, tools, resources });
        // What is of another revision would be built anew when it is asked for: those who never ask again leave nothing.
        kept.retain(|_, known| known.revision == revision);
        kept.insert(guest.principal.clone(), fresh.clone());
        fresh
    }

    /// Says in the log which words of a token's lists select nothing, each once; those of the configuration are told at the start.
    fn tell_unmatched(&self, principal: &Principal, house: &House) {
        let Principal::Token(_) = principal else { return };
        let mut told = self.shared.unmatched.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        for selector in house.rights().unmatched() {
            if told.len() < UNMATCHED_MAX && told.insert((principal.clone(), selector.clone())) {
                tracing::warn!(%principal, selector, "nothing is called so; it selects nothing");
            }
        }
    }

    /// An answer with what is owed to its caller in front (semantics 6.3).
    fn corrected(&self, rendered: Rendered, guest: &Guest) -> Rendered {
        let owed = self.shared.fleet.corrections_for(&guest.caller);
        if owed.is_empty() {
            return rendered;
        }
        let house = &self.house(guest).house;
        // What it may not see any more it is not told of either.
        let seen = owed.into_iter().filter(|c| house.rights().of(&c.device, Some(&c.settled.property)) > Right::None);
        let named = seen.map(|mut correction| {
            eyes::without_unseen_sensor(&mut correction.settled, house.rights());
            let naming = house.naming(&correction.device, Some(&correction.settled.property));
            (correction.settled, naming)
        });
        rendered.corrected(&named.collect::<Vec<_>>(), house.lang())
    }
}

/// Runs a future and catches its panic: `None`. The SDK drops the handle of a call's task, so a panic would otherwise
/// leave the caller without any answer. By reference, since a future that takes another one keeps room for it twice, and a call is
/// copied into its task.
pub(super) async fn caught<T>(mut work: Pin<&mut impl Future<Output = T>>) -> Option<T> {
    std::future::poll_fn(|context| {
        // Unwind safety: after a panic the future is never polled again, and what it shares (the fleet's handles, the
        // kept house) is either whole or behind a lock that forgives poison.
        match catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(context))) {
            Ok(Poll::Pending) => Poll::Pending,
            Ok(Poll::Ready(value)) => Poll::Ready(Some(value)),
            Err(_panic) => Poll::Ready(None),
        }
    })
    .await
}
