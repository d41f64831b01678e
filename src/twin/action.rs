//! What leaves no state, and what comes about by it: actions (semantics 1, 3.5), values that an action brings about (a garage
//! door: the drive takes a pulse, the contact reads), and what can be sent but not known (infrared).

use std::time::Instant;

use crate::{
    property::{Action, Evidence, Property},
    twin::{
        Twin,
        admission::can_do_harm,
        evidence::{Verdict, required},
        input::{Command, Effect},
        operation::Operation,
        planted::{self, Planted},
        reported::Merged,
        waiter::Waiter,
        wish::{ActionName, Arguments, CallerId, Target},
        words::{OpId, Outcome, Reason, Refusal, Reply, Stage},
    },
};

/// Most arguments of an action, and their longest text altogether, bytes (wire protocol, *Commands*): a command must fit.
const ARGS_MAX: usize = 8;
const ARGS_BYTES_MAX: usize = 192;

/// How an operation is carried out.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) enum Work {
    /// A value is set.
    #[default]
    Set,
    /// An action is run for its own sake.
    Run(Call),
    /// An action is run so that a property, which it moves, reads as wished.
    Through(Call),
}

/// One call of an action.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Call {
    pub(super) action: Action,
    pub(super) args: Arguments,
}

impl Twin {
    /// A caller wants something done that leaves no state.
    pub(super) fn run(
        &mut self,
        now: Instant,
        op: OpId,
        caller: CallerId,
        action: &ActionName,
        args: Arguments,
        answer_by: Instant,
    ) {
        let waiter = Waiter::new(op.clone(), caller, self.expires_at(answer_by));
        let placed = self.admit_run(now, waiter, action, args).and_then(|operation| self.place(now, operation));
        if let Err(refusal) = placed {
            self.effects.push_back(Effect::Reply { op, reply: Reply::Refused(refusal) });
        }
    }

    fn admit_run(
        &mut self,
        now: Instant,
        waiter: Waiter,
        name: &ActionName,
        args: Arguments,
    ) -> Result<Operation, Refusal> {
        let online_by = self.may_come(now)?;
        let Some(description) = self.description.clone() else { return Err(self.offline(now)) };
        let Some(action) = description.action(name) else {
            let known = description.actions.iter().map(|action| action.name.clone()).collect();
            return Err(Refusal::UnknownProperty { asked: name.to_string(), known });
        };
        check_args(&args)?;
        let expires_at = waiter.expires_at;
        self.arrivals += 1;
        // A property of the same name is another thing: its wishes neither wait for the action nor take its place.
        let slot = if description.property(name).is_some() { format!("{name}()").into() } else { name.clone() };
        let mut operation = Operation::new(now, self.arrivals, waiter, slot, Target::Toggle);
        operation.online_by = online_by.map(|by| by.min(expires_at));
        operation.work = Work::Run(Call { action: action.clone(), args });
        self.fit_run(&mut operation)?;
        if expires_at.saturating_duration_since(now) < operation.needed {
            return Err(Refusal::DeadlineTooShort { needed: operation.needed + self.settings.answer_margin });
        }
        Ok(operation)
    }

    /// Checks an action against the description, as it is now, and takes its allowances.
    pub(super) fn fit_run(&self, operation: &mut Operation) -> Result<(), Refusal> {
        let Work::Run(call) = &mut operation.work else { return Ok(()) };
        let description = self.description.as_deref();
        let Some(action) = description.and_then(|d| d.action(&call.action.name)) else {
            let known = description.iter().flat_map(|d| &d.actions).map(|action| action.name.clone()).collect();
            return Err(Refusal::UnknownProperty { asked: call.action.name.to_string(), known });
        };
        call.action = action.clone();
        operation.required = Evidence::Firmware;
        operation.allowance = self.settings.expected(action.expected_ms);
        // What must not be left half-way with nobody listening has to fit as a whole (semantics 4.9).
        let unsafe_half_way = !action.repeatable || can_do_harm(action.role);
        operation.needed = self.settings.begin_min;
        if unsafe_half_way {
            operation.needed += operation.allowance.saturating_sub(self.settings.report_margin);
        }
        Ok(())
    }

    /// A property whose value an action brings about: which one, for the value that is wished.
    ///
    /// # Errors
    /// [`Refusal::Forbidden`] if the device has no such action, or none is named for the value.
    pub(super) fn fit_through(&self, operation: &mut Operation, property: &Property) -> Result<(), Refusal> {
        if property.terms.by_action.is_empty() {
            return Ok(());
        }
        let Some(wish) = &operation.wish else { return Ok(()) };
        let named = property.terms.by_action.iter().find(|(value, _)| property.same(value, wish));
        let action = named.and_then(|(_, name)| self.description.as_ref()?.action(name));
        let Some(action) = action.cloned() else {
            return Err(Refusal::Forbidden { property: property.name.clone() });
        };
        operation.required = required(property);
        if !action.repeatable && operation.needed == self.settings.begin_min {
            operation.needed += operation.allowance.saturating_sub(self.settings.report_margin) + operation.stable;
        }
        operation.work = Work::Through(Call { action, args: Vec::new() });
        Ok(())
    }

    /// The command that carries an operation out; `None` while a relative wish is not absolute.
    pub(super) fn command(&self, operation: &Operation, ttl: std::time::Duration) -> Option<Command> {
        let op = operation.op.clone();
        match &operation.work {
            Work::Set => {
                let (property, value) = (operation.property.clone(), operation.wish.clone()?);
                Some(Command::Set { op, property, value, ttl })
            }
            Work::Run(call) | Work::Through(call) => {
                Some(Command::Run { op, action: call.action.name.clone(), args: call.args.clone(), ttl })
            }
        }
    }

    /// The device says that it has begun. What can be sent but not known ends with that: the telegram has left (3.5).
    pub(super) fn executing(&mut self, now: Instant, op: &OpId) {
        self.advance(now, op, Stage::WaitingDeviceReport);
        let Some(operation) = self.operations.get_mut(op) else { return };
        if operation.unknowable() {
            return self.end(now, op, Outcome::SentUnverified, None);
        }
        if let Work::Through(call) = &operation.work
            && call.action.feedback < Evidence::Firmware
        {
            operation.acted = true;
        }
    }

    /// The device says that an action is done. Whether it was one.
    pub(super) fn action_completed(&mut self, now: Instant, op: &OpId, merged: &Merged) -> bool {
        let Some(operation) = self.operations.get_mut(op) else { return false };
        if operation.unknowable() {
            // Its word is worth no more than that something was sent.
            self.advance(now, op, Stage::WaitingDeviceReport);
            self.end(now, op, Outcome::SentUnverified, None);
            return true;
        }
        match operation.work {
            Work::Set => false,
            Work::Run(_) => {
                self.advance(now, op, Stage::WaitingDeviceReport);
                self.converge(now, op);
                true
            }
            // The drive has had its pulse: from now on the contact counts.
            Work::Through(_) => {
                operation.acted = true;
                self.advance(now, op, Stage::WaitingDeviceReport);
                self.watch_contacts(now, merged);
                true
            }
        }
    }

    /// A value that an action was to bring about is reported: it is so, and must be so at the read-back.
    pub(super) fn watch_contacts(&mut self, now: Instant, merged: &Merged) {
        let arrived = |o: &&Operation| {
            o.through() && o.acted && o.stage == Stage::WaitingDeviceReport && merged.carried.contains(&o.property)
        };
        let all = self.operations.values().filter(arrived).filter(|o| self.verdict(o) == Verdict::Met);
        for op in all.map(|o| o.op.clone()).collect::<Vec<_>>() {
            self.enter(now, &op, Stage::WaitingReadBack);
            self.ask_due(now);
        }
    }

    /// How an operation ends whose stage is over: an action that the device did not report as done, and what reads otherwise
    /// although its action was done, are told apart from what nobody knows (semantics 3.5).
    pub(super) fn run_out(&mut self, now: Instant, op: &OpId) {
        let Some(operation) = self.operations.get(op) else { return };
        let reason = if operation.unreadable { Reason::UnreadableReport } else { Reason::Timeout };
        let begun = operation.stage >= Stage::WaitingDeviceReport;
        if operation.stage == Stage::WaitingSensor {
            return self.sensor_run_out(now, op);
        }
        if planted::is(Planted::SilenceIsStable) && operation.stage == Stage::WaitingReadBack {
            return self.converge(now, op);
        }
        if planted::is(Planted::FailedForUnknown) {
            return self.give_up(now, op, Outcome::Failed, reason);
        }
        match operation.work {
            Work::Run(_) if begun => self.end(now, op, Outcome::SentUnverified, Some(reason)),
            Work::Through(_) if begun && operation.acted && self.verdict(operation) == Verdict::Other => {
                self.advance(now, op, Stage::WaitingReadBack);
                self.contradict(now, op, Reason::ReadBackDiffers);
            }
            Work::Set | Work::Run(_) | Work::Through(_) => self.give_up(now, op, Outcome::TimedOut, reason),
        }
    }
}

impl Operation {
    /// Whether it is an action for its own sake: there is no value to ask for.
    pub(super) fn is_run(&self) -> bool {
        match self.work {
            Work::Run(_) => true,
            Work::Set | Work::Through(_) => false,
        }
    }

    /// The action that it runs, if it is carried out by one.
    pub(super) fn called(&self) -> Option<&str> {
        match &self.work {
            Work::Set => None,
            Work::Run(call) | Work::Through(call) => Some(&call.action.name),
        }
    }

    /// Whether an action brings its value about.
    pub(super) fn through(&self) -> bool {
        match self.work {
            Work::Through(_) => true,
            Work::Set | Work::Run(_) => false,
        }
    }

    /// Whether doing it twice does no harm.
    pub(super) fn repeatable(&self) -> bool {
        match &self.work {
            Work::Set => self.spec.as_ref().is_some_and(|spec| spec.repeatable),
            Work::Run(call) => call.action.repeatable,
            // A drive that takes pulses goes the other way at the second.
            Work::Through(call) => call.action.repeatable && self.spec.as_ref().is_some_and(|spec| spec.repeatable),
        }
    }

    /// Whether it is an action that the device can report as done.
    pub(super) fn reports_done(&self) -> bool {
        self.is_run() && !self.unknowable()
    }

    /// Whether the device can offer no more than receipt (semantics 3.5).
    fn unknowable(&self) -> bool {
        let feedback = match &self.work {
            Work::Run(call) => Some(call.action.feedback),
            Work::Set | Work::Through(_) => self.spec.as_ref().map(|spec| spec.feedback),
        };
        feedback.is_some_and(|feedback| feedback < Evidence::Firmware)
    }
}

fn check_args(args: &Arguments) -> Result<(), Refusal> {
    let bytes: usize = args.iter().map(|(name, value)| name.len() + value.to_string().len()).sum();
    if args.len() > ARGS_MAX || bytes > ARGS_BYTES_MAX {
        return Err(Refusal::InvalidArgument {
            parameter: "arguments",
            sent: format!("{} arguments of {bytes} bytes", args.len()),
            allowed: format!("at most {ARGS_MAX} arguments of {ARGS_BYTES_MAX} bytes altogether"),
        });
    }
    Ok(())
}
