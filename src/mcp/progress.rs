//! How far a call is, told while it runs to a client that asked for it.

use std::time::Duration;

use rmcp::{
    RoleServer,
    model::{ProgressNotificationParam, ProgressToken},
    service::{Peer, RequestContext},
};
use tokio::sync::mpsc;

use super::{
    Server,
    call::{Call, NoAnswer},
    session::Guest,
};
use crate::{
    answer::{self, Rendered},
    fleet::{Fleet, Stages},
    names::Lang,
    twin::words::Stage,
};

/// Steps that wait for a client that does not read: more than an operation has stages. What does not fit is not told; the
/// answer is.
const UNTOLD_MAX: usize = 16;

/// How long an answer waits for the steps before it to leave. They are a few messages; a client that does not read gets
/// neither.
const DRAIN_WITHIN: Duration = Duration::from_millis(500);

/// One step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The operation waits for this.
    Stage(Stage),
    /// So many of a group or a scene have answered.
    Members {
        /// So many.
        answered: usize,
        /// Of so many.
        of: usize,
    },
}

/// Where the steps of one call are told. Telling never waits.
#[derive(Clone, Debug)]
pub struct Progress(mpsc::Sender<Step>);

impl Progress {
    /// A way for the steps of one call, and its other end.
    pub fn new() -> (Self, mpsc::Receiver<Step>) {
        let (steps, told) = mpsc::channel(UNTOLD_MAX);
        (Self(steps), told)
    }

    /// Tells a step; one too many is dropped.
    pub(super) fn tell(&self, step: Step) {
        let _client_does_not_read = self.0.try_send(step);
    }

    /// The fleet, with the stages of what is asked for through it told here.
    pub(super) fn of(&self, fleet: &Fleet) -> Fleet {
        let progress = self.clone();
        fleet.telling(Stages::to(move |stage| progress.tell(Step::Stage(stage))))
    }
}

impl Step {
    /// How far that is, of how much: grows with each step of one call.
    fn measure(self) -> (usize, usize) {
        let place = |wanted: Stage| Stage::ALL.iter().position(|stage| *stage == wanted).unwrap_or_default();
        match self {
            Self::Stage(stage) => (place(stage), place(Stage::Settled)),
            Self::Members { answered, of } => (answered, of),
        }
    }

    fn say(self, lang: Lang) -> String {
        match self {
            Self::Stage(stage) => answer::stage(stage, lang).to_owned(),
            Self::Members { answered, of } => answer::members(answered, of, lang),
        }
    }
}

impl Server {
    /// Carries out one call of a client of the SDK; tells it how far it is if it has given a token for that. All that is
    /// told leaves before the answer: after it, a client without a session would not hear it any more.
    pub(super) async fn call_telling(
        &self,
        guest: &Guest,
        call: &Call,
        context: &RequestContext<RoleServer>,
    ) -> Result<Rendered, NoAnswer> {
        let Some(token) = context.meta.get_progress_token() else {
            return self.call(guest, call, &context.ct).await;
        };
        let (progress, steps) = Progress::new();
        // A task of its own: a client that does not read holds its steps up, not the call.
        let mut telling = tokio::spawn(tell(steps, context.peer.clone(), token, guest.policy.lang));
        let answered = self.call_with(guest, call, &context.ct, Some(progress)).await;
        // The call held the other end of the steps: what is left is told, then the task ends.
        if tokio::time::timeout(DRAIN_WITHIN, &mut telling).await.is_err() {
            telling.abort();
        }
        answered
    }
}

/// Tells each step that is further than the one before, until there are no more or the client is gone.
async fn tell(mut steps: mpsc::Receiver<Step>, peer: Peer<RoleServer>, token: ProgressToken, lang: Lang) {
    let mut told = 0;
    while let Some(step) = steps.recv().await {
        let (done, of) = step.measure();
        if done <= told {
            continue;
        }
        told = done;
        #[expect(clippy::cast_precision_loss, reason = "a few steps")]
        let note = ProgressNotificationParam::new(token.clone(), done as f64).with_total(of as f64);
        if peer.notify_progress(note.with_message(step.say(lang))).await.is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_that_does_not_read_costs_so_many_steps_and_no_waiting() {
        let (progress, mut told) = Progress::new();
        for answered in 1..=1_000 {
            progress.tell(Step::Members { answered, of: 1_000 });
        }
        let mut kept = 0;
        while told.try_recv().is_ok() {
            kept += 1;
        }
        assert_eq!(kept, UNTOLD_MAX);
    }

    #[test]
    fn each_stage_is_further_than_the_one_before_and_none_says_that_anything_was_done() {
        let steps: Vec<Step> = Stage::ALL.iter().map(|stage| Step::Stage(*stage)).collect();
        assert!(steps.windows(2).all(|pair| pair[0].measure().0 < pair[1].measure().0));
        for (step, lang) in steps.iter().flat_map(|step| [(step, Lang::En), (step, Lang::Zh)]) {
            let said = step.say(lang);
            let claims = ["done", "turned on", "success", "已打开", "打开了", "成功", "完成", "好的"];
            assert!(!claims.iter().any(|claim| said.contains(claim)), "{said}");
        }
    }
}
