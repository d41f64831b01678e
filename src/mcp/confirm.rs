//! What has to be agreed to before it is carried out (semantics 7.2): between the arguments and the fleet, so that nothing
//! of the twin knows of it.

mod danger;

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use self::danger::{Danger, dangers, dangers_unseen, demand, first_of};
use super::{
    arguments::Request,
    house::House,
    person::{Form, Person, Said},
    tools::Desk,
};
use crate::{
    answer::{self, Asking, Rendered},
    authz::confirm::{Confirmed, Demand, Denied, Limits, Presses, Questions, Secret},
    twin::words::Refusal,
};

/// Random bytes of a question's code: a thousand million to one against its three tries, short enough for a model to copy.
const CODE_BYTES: usize = 4;

/// Random bytes of what a client hands back with an answer: it stands for the person's yes, so nobody guesses it.
const STATE_BYTES: usize = 16;

/// The open questions of one hub, and what they are confirmed by; shared by its servers.
pub struct Confirmer {
    questions: Mutex<Questions<Request>>,
    limits: Limits,
    secret: Option<Secret>,
    presses: Arc<Presses>,
}

impl Confirmer {
    /// With the owner's limits, spoken code and buttons.
    pub fn new(limits: Limits, secret: Option<Secret>, presses: Arc<Presses>) -> Self {
        Self { questions: Mutex::new(Questions::new(limits)), limits, secret, presses }
    }

    /// How long a client may show a question.
    pub(super) fn form(&self) -> Duration {
        self.limits.form
    }

    fn questions(&self) -> MutexGuard<'_, Questions<Request>> {
        self.questions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn pressed(&self, demand: &Demand, since: Instant) -> bool {
        demand.presses.iter().all(|(device, property)| self.presses.pressed_since(device, property, since))
    }
}

impl Default for Confirmer {
    fn default() -> Self {
        Self::new(Limits::default(), None, Arc::default())
    }
}

impl fmt::Debug for Confirmer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Confirmer").field("limits", &self.limits).finish_non_exhaustive()
    }
}

/// What becomes of a command.
#[derive(Debug)]
pub(super) enum Gate {
    /// It is carried out; `Some`: somebody was asked first and has agreed to this, so its time begins now.
    Open(Option<(Instant, Demand)>),
    /// It is not, and this is why.
    Shut(Box<Rendered>),
    /// Its client asks the person, and calls again.
    Ask(Form),
}

/// Looks whether a command has to be agreed to, and asks.
pub(super) async fn gate(desk: &Desk<'_>, house: &House, request: &Request, answer_by: Instant) -> Gate {
    let dangers = dangers(desk, house, request, answer_by).await;
    if dangers.is_empty() {
        return Gate::Open(None);
    }
    let demand = demand(&dangers);
    let asking = asking(desk, house, request, &dangers, &demand);
    let (confirmer, caller) = (desk.confirmer, &desk.caller.0);
    let form =
        |state: String| Form { text: answer::form_text(&asking, house.lang()), wants_code: demand.spoken, state };
    let (said, since) = match desk.person {
        Person::ByModel => return by_model(desk, house, request, demand, asking),
        Person::Form(show) => {
            let since = Instant::now();
            match tokio::time::timeout(confirmer.limits.form, show(form(String::new()))).await {
                Ok(Some(said)) => (said, since),
                // The client says that it can, and does not: the model asks.
                Ok(None) if since.elapsed() < confirmer.limits.form => {
                    return by_model(desk, house, request, demand, asking);
                }
                Ok(None) | Err(_) => return shut(desk, house, &dangers, &Refusal::CodeExpired),
            }
        }
        Person::Between(None) => {
            let state = crate::random::id(STATE_BYTES).to_string();
            let key = form_key(caller, &state);
            confirmer.questions().put(&key, request.clone(), demand.clone(), "", Instant::now());
            return Gate::Ask(form(state));
        }
        Person::Between(Some((state, said))) => {
            match confirmer.questions().agreed(&form_key(caller, state), request, Instant::now()) {
                Ok((Confirmed(_), since)) => (said.clone(), since),
                Err(denied) => return shut(desk, house, &dangers, &refusal(denied)),
            }
        }
    };
    let Said::Yes { code } = said else { return shut(desk, house, &dangers, &Refusal::Declined) };
    if demand.spoken {
        let written = confirmer.questions().written(caller, &demand, &code, confirmer.secret.as_ref(), Instant::now());
        if let Err(denied) = written {
            return shut(desk, house, &dangers, &refusal(denied));
        }
    }
    if !confirmer.pressed(&demand, since) {
        // The yes stands; the press may come after it. What the form has shown need not be said again.
        let demand = Demand { spoken: false, ..demand };
        let asking = Asking { spoken: false, not_pressed: true, ..asking };
        return by_model(desk, house, request, demand, asking);
    }
    desk.noting.agreed(&[("form", true), ("spoken_code", demand.spoken), ("press", !demand.presses.is_empty())]);
    Gate::Open(Some((Instant::now(), demand)))
}

/// What was agreed to, looked at again in the house as it is now: what it moves may have become something else since it was
/// asked about, or may have greeted only then. `Some`: it was agreed to something less, and is asked about anew.
pub(super) async fn gate_again(
    desk: &Desk<'_>,
    house: &House,
    request: &Request,
    agreed: &Demand,
    answer_by: Instant,
) -> Option<Box<Rendered>> {
    let dangers = dangers(desk, house, request, answer_by).await;
    let demand = demand(&dangers);
    if agreed.covers(&demand) {
        return None;
    }
    let asking = asking(desk, house, request, &dangers, &demand);
    match by_model(desk, house, request, demand, asking) {
        Gate::Shut(answer) => Some(answer),
        Gate::Open(_) | Gate::Ask(_) => None,
    }
}

/// The caller says a code.
///
/// # Errors
/// The answer, where it is not the one.
pub(super) fn confirmed(desk: &Desk<'_>, house: &House, code: &str) -> Result<(Request, Demand), Box<Rendered>> {
    let (confirmer, caller) = (desk.confirmer, &desk.caller.0);
    let mut questions = confirmer.questions();
    let open = questions.open(caller).map(|(request, demand, put)| (request.clone(), demand.clone(), put));
    let pressed = open.as_ref().is_some_and(|(_, demand, put)| confirmer.pressed(demand, *put));
    let secret = confirmer.secret.as_ref();
    let denied = match questions.confirm(caller, code, secret, pressed, desk.several, Instant::now()) {
        Ok(Confirmed(request)) => {
            if let Some((_, demand, _)) = &open {
                let (spoken, press) = (demand.spoken, !demand.presses.is_empty());
                desk.noting.agreed(&[("code", !spoken), ("spoken_code", spoken), ("press", press)]);
            }
            return Ok((request, open.map(|(_, demand, _)| demand).unwrap_or_default()));
        }
        Err(denied) => denied,
    };
    drop(questions);
    let refusal = refusal(denied);
    desk.observer.refused(refusal.word());
    let Some((request, demand, _)) = open else {
        desk.noting.refused(refusal.word(), None);
        return Err(Box::new(answer::refusal(&refusal, None, house.lang())));
    };
    desk.noting.aims(&request);
    desk.noting.refused(refusal.word(), first_of(&request).as_ref());
    if denied == Denied::NotPressed {
        let all = dangers_unseen(house, &request);
        let asking = Asking { not_pressed: true, ..asking(desk, house, &request, &all, &demand) };
        return Err(Box::new(answer::question(&asking, house.lang())));
    }
    let naming = first_of(&request).map(|(device, property)| house.naming(&device, property.as_deref()));
    Err(Box::new(answer::refusal(&refusal, naming.as_ref(), house.lang())))
}

fn form_key(caller: &str, state: &str) -> String {
    // No caller has a line break in it.
    format!("{caller}\n{state}")
}

fn refusal(denied: Denied) -> Refusal {
    match denied {
        Denied::Wrong { left } => Refusal::CodeWrong { left },
        Denied::Expired => Refusal::CodeExpired,
        Denied::TooEarly => Refusal::CodeTooEarly,
        Denied::NotPressed => Refusal::ConfirmationRequired,
        Denied::LockedOut { left } => Refusal::LockedOut { left },
    }
}

/// The model puts the question, and gets the code that its answer needs.
fn by_model(desk: &Desk<'_>, house: &House, request: &Request, demand: Demand, asking: Asking) -> Gate {
    let (code, caller) = (crate::random::id(CODE_BYTES), desk.caller);
    // A spoken code is the person's alone; only where callers cannot be told apart a word of ours goes in front of it.
    let told = !demand.spoken || desk.several;
    desk.confirmer.questions().put(&caller.0, request.clone(), demand, &code, Instant::now());
    let refused = Refusal::ConfirmationRequired.word();
    desk.observer.refused(refused);
    desk.noting.refused(refused, first_of(request).as_ref());
    let asking = Asking { code: told.then(|| code.to_string()), ..asking };
    Gate::Shut(Box::new(answer::question(&asking, house.lang())))
}

fn shut(desk: &Desk<'_>, house: &House, dangers: &[Danger], refusal: &Refusal) -> Gate {
    desk.observer.refused(refusal.word());
    let about = dangers.first().map(|danger| (danger.device.clone(), Some(danger.name.clone())));
    desk.noting.refused(refusal.word(), about.as_ref());
    let naming = dangers.first().map(|danger| house.naming(&danger.device, Some(&danger.name)));
    Gate::Shut(Box::new(answer::refusal(refusal, naming.as_ref(), house.lang())))
}

fn asking(desk: &Desk<'_>, house: &House, request: &Request, dangers: &[Danger], demand: &Demand) -> Asking {
    let lang = house.lang();
    let whole = match request {
        Request::Together(together) => Some((together.name.clone(), together.is_scene)),
        Request::Find { .. }
        | Request::State { .. }
        | Request::Set { .. }
        | Request::Run { .. }
        | Request::Unheard { .. }
        | Request::Check { .. }
        | Request::Confirm { .. }
        | Request::Ping => None,
    };
    let things = dangers.iter().map(|danger| (house.naming(&danger.device, Some(&danger.name)), danger.wanted.clone()));
    Asking {
        things: things.collect(),
        whole,
        spoken: demand.spoken,
        buttons: demand.presses.iter().map(|(device, property)| house.button(device, property, lang)).collect(),
        not_pressed: false,
        code: None,
        open_for: desk.confirmer.limits.latest,
    }
}
