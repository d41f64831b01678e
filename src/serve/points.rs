//! What the owner asks about access points, tokens and disputes, carried out on the running hub.

use std::time::{Duration, SystemTime};

use jiff::{Timestamp, tz::TimeZone};

use super::{added, owner::Owner};
use crate::{
    audit,
    authz::Principal,
    control::{self, EndpointInfo, Request, Response, TokenInfo},
    data::{Secret, endpoint_name},
    endpoint::{Profile, State, Status},
    names::Lang,
};

/// What a request gets whose task died; nothing of ours does.
const FAILED: &str = "the hub failed over this request; nothing is known to have changed";

/// How long `endpoint add` waits for what it has added: a dial takes 15 s at most, and the official access point asks for the
/// tools at once.
const DIALLED_WITHIN: Duration = Duration::from_secs(20);

/// How long a relay's socket must have held before it is asked whether it leads here.
const HELD_FOR: Duration = Duration::from_millis(500);

/// How often it is looked whether what was added has appeared among the connections.
const APPEARS_EVERY: Duration = Duration::from_millis(20);

impl Owner {
    /// All access points, ordered by name: those that were added by command, and those of the configuration.
    pub(super) fn endpoints(&self) -> Vec<EndpointInfo> {
        let parts = &self.parts;
        let mut all: Vec<EndpointInfo> = parts.endpoints.list().iter().map(added::info_of).collect();
        for status in parts.lines.statuses() {
            match all.iter_mut().find(|info| info.name == *status.name) {
                Some(info) => describe(info, &status),
                None => {
                    let mut info = EndpointInfo { name: status.name.to_string(), ..EndpointInfo::default() };
                    describe(&mut info, &status);
                    all.push(info);
                }
            }
        }
        all.sort_by(|one, other| one.name.cmp(&other.name));
        let recent = parts.audit.recent();
        for info in &mut all {
            let caller = format!("endpoint:{}", info.name);
            let last = recent.iter().rev().find(|record| record.caller == caller);
            info.last_call = last.map(|record| record.at.clone()).or(info.last_call.take());
            let policy = parts.access.policy(&Principal::Endpoint(info.name.as_str().into()));
            info.language = policy.map(|policy| word(policy.lang).to_owned());
        }
        all
    }

    fn endpoint(&self, name: &str) -> Option<EndpointInfo> {
        self.endpoints().into_iter().find(|endpoint| endpoint.name == name)
    }

    pub(super) async fn endpoint_add(&self, name: String, url: Secret) -> Response {
        let configured: Vec<EndpointInfo> = self.endpoints().into_iter().filter(|e| e.added.is_none()).collect();
        let (store, wanted) = (self.parts.endpoints.clone(), name.clone());
        let done = tokio::task::spawn_blocking(move || added::add(&store, &configured, &wanted, &url)).await;
        match done {
            Err(_) => error(FAILED),
            Ok(Err(refused)) => error(&refused.to_string()),
            Ok(Ok((stored, _))) => {
                let came = tokio::time::timeout(DIALLED_WITHIN, self.dialled(&name)).await;
                let endpoint = self.endpoint(&name).unwrap_or_else(|| added::info_of(&stored));
                let (found, good) = match came {
                    Ok(Some(status)) => self.verdict(&status).await,
                    Ok(None) | Err(_) => (vec!["added; it is still being dialled".to_owned()], false),
                };
                Response::Endpoint { endpoint: Box::new(endpoint), found, good }
            }
        }
    }

    /// Waits until something can be said of a new connection; `None` if it was removed meanwhile.
    async fn dialled(&self, name: &str) -> Option<Status> {
        let mut watch = loop {
            if let Ok(watch) = self.parts.lines.watch(name) {
                break watch;
            }
            tokio::time::sleep(APPEARS_EVERY).await;
        };
        let can_be_told = |status: &Status| match (status.state, status.profile) {
            (State::Up, Profile::Official) => status.tools_at.is_some(),
            (State::Up, Profile::Relay) | (State::Refused | State::Stopped, _) => true,
            // A relay that an earlier run may still be known at is left alone for a minute.
            (State::Waiting, _) => {
                status.last_end.is_some() || status.dials_in.is_some_and(|wait| wait > DIALLED_WITHIN)
            }
            (State::Dialling, _) => false,
        };
        let status = watch.wait_for(can_be_told).await.ok()?.clone();
        if status.state == State::Up && status.profile == Profile::Relay {
            tokio::time::sleep(HELD_FOR).await;
        }
        Some(watch.borrow().clone())
    }

    pub(super) async fn endpoint_test(&self, name: &str) -> Response {
        let Some(endpoint) = self.endpoint(name) else { return unknown(name) };
        let stored = self.parts.endpoints.get(name);
        let checks =
            stored.as_ref().and_then(added::address_of).map(|address| added::checks(&address, Timestamp::now()));
        let status = self.parts.lines.watch(name).ok().map(|watch| watch.borrow().clone());
        let (mut found, mut good) = match status {
            Some(status) => self.verdict(&status).await,
            None => (vec!["it is not dialled; the hub's log says why".to_owned()], false),
        };
        let checks = checks.unwrap_or_default();
        good &= checks.is_empty();
        found.splice(0..0, checks);
        match &endpoint.last_call {
            Some(at) => found.push(format!("the last call came at {at}")),
            None => found.push(
                "no call has arrived yet: if the assistant says that it did something, it made that up; paste what `truetwin \
                 endpoint prompt` prints into its role"
                    .to_owned(),
            ),
        }
        Response::Endpoint { endpoint: Box::new(endpoint), found, good }
    }

    /// What can be said of a connection, and whether calls can come through it.
    async fn verdict(&self, status: &Status) -> (Vec<String>, bool) {
        if status.state != State::Up {
            return (vec![not_up(status)], false);
        }
        if status.profile == Profile::Official {
            return match status.tools_at {
                Some(_) => (vec!["connected; the access point has read the tools".to_owned()], true),
                None => (vec!["connected, but the access point has not asked for the tools".to_owned()], false),
            };
        }
        match self.parts.lines.probe(&status.name).await {
            Err(_) => (vec!["it was removed meanwhile".to_owned()], false),
            Ok(probe) => {
                if probe == crate::endpoint::Probe::NotRegistered {
                    let _removed_meanwhile = self.parts.lines.restart(&status.name);
                }
                let (told, good) = added::told(&probe, true);
                (vec![told], good)
            }
        }
    }

    pub(super) async fn endpoint_remove(&self, name: String) -> Response {
        if let Err(error_of_name) = endpoint_name(&name) {
            return error(&error_of_name.to_string());
        }
        let (store, gone) = (self.parts.endpoints.clone(), name.clone());
        match tokio::task::spawn_blocking(move || store.remove(&gone)).await {
            Err(_) => error(FAILED),
            Ok(Err(_)) if self.endpoint(&name).is_some() => {
                error(&format!("{name} is in the configuration; take it out there and restart the hub"))
            }
            Ok(Err(problem)) => error(&problem.to_string()),
            Ok(Ok(())) => Response::Removed { device: name },
        }
    }

    /// Makes, lists and revokes tokens. What is revoked ends at once: each request and each call asks anew.
    pub(super) async fn tokens(&self, request: Request) -> Response {
        let (tokens, now) = (self.parts.tokens.clone(), added::now());
        let done = tokio::task::spawn_blocking(move || control::on_tokens(&tokens, &now, &request)).await;
        let Some(mut response) = done.ok().flatten() else { return error(FAILED) };
        if let Response::Token { info, .. } = &mut response {
            self.look_at(info);
        }
        if let Response::Tokens { tokens } = &mut response {
            tokens.iter_mut().for_each(|info| self.look_at(info));
        }
        response
    }

    /// What only a running hub knows of a token.
    fn look_at(&self, info: &mut TokenInfo) {
        let principal = Principal::Token(info.name.as_str().into());
        if let Some(policy) = self.parts.access.policy(&principal) {
            let cards = self.parts.fleet.cards();
            let rights = policy.scope.rights(cards.iter().map(|card| (&card.name, card.description.as_deref())));
            info.unmatched = rights.unmatched().to_vec();
        }
        let (recent, caller) = (self.parts.audit.recent(), principal.to_string());
        info.last_call = recent.iter().rev().find(|record| record.caller == caller).map(|record| record.at.clone());
    }

    /// What is in memory is looked at first: it is there before it is in the file.
    pub(super) async fn dispute(&self, what: String, note: Option<String>) -> Response {
        let recent = self.parts.audit.recent();
        let found = match audit::dispute(recent.iter().map(|record| &**record), &what, note.as_deref()) {
            Ok((record, call)) => Ok((record, call.clone())),
            Err(_) => {
                let folder = self.parts.folder.clone();
                let read = tokio::task::spawn_blocking(move || audit::read(&folder)).await;
                let records = read.ok().and_then(Result::ok).unwrap_or_default().records;
                audit::dispute(records.iter(), &what, note.as_deref()).map(|(record, call)| (record, call.clone()))
            }
        };
        match found {
            Err(unknown) => error(&unknown.to_string()),
            Ok((record, call)) => {
                let response = Response::Disputed {
                    operation: record.operation.clone(),
                    device: record.things.first().map(|thing| thing.device.clone()).unwrap_or_default(),
                    at: call.at.clone(),
                    say: call.say.clone().unwrap_or_default(),
                };
                tracing::warn!(operation = record.operation, "the owner says that this was not done");
                self.parts.audit.keep(record, Duration::ZERO);
                response
            }
        }
    }
}

/// How one is doing, put over what its address tells.
fn describe(info: &mut EndpointInfo, status: &Status) {
    info.address.clone_from(&status.address);
    info.agent.clone_from(&status.agent);
    info.expires = status.expires;
    status.profile.as_str().clone_into(&mut info.profile);
    info.state = Some(status.state.as_str().to_owned());
    if let Some((end, _)) = &status.last_end {
        info.last_end = Some(end.word.told().to_owned());
        info.last_code = end.code;
    }
    info.tools.clone_from(&status.tools);
    info.calls = status.calls;
    info.last_call = status.last_call.and_then(written);
}

fn written(at: SystemTime) -> Option<String> {
    let at = Timestamp::try_from(at).ok()?.to_zoned(TimeZone::system());
    Some(at.strftime("%Y-%m-%dT%H:%M:%S%:z").to_string())
}

/// Why there is no connection, and what comes next.
fn not_up(status: &Status) -> String {
    let next = match (status.state, status.dials_in) {
        (State::Refused, _) => "it is not dialled any more".to_owned(),
        (State::Waiting, Some(wait)) => format!("it is dialled again within {} s", wait.as_secs() + 1),
        (State::Waiting | State::Dialling, _) => "it is being dialled".to_owned(),
        (State::Stopped | State::Up, _) => "the hub is stopping".to_owned(),
    };
    match &status.last_end {
        None => format!("not connected yet; {next}"),
        Some((end, _)) => {
            let code = end.code.map(|code| format!(" ({code})")).unwrap_or_default();
            let said = if end.said.is_empty() { String::new() } else { format!(": {}", end.said) };
            format!("not connected: {}{code}{said}; {next}", end.word.told())
        }
    }
}

fn word(lang: Lang) -> &'static str {
    match lang {
        Lang::En => "en",
        Lang::Zh => "zh",
    }
}

fn error(message: &str) -> Response {
    Response::Error { message: message.to_owned() }
}

fn unknown(name: &str) -> Response {
    error(&crate::data::Error::UnknownEndpoint(name.to_owned()).to_string())
}
