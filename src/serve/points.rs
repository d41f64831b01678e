//! What the owner asks about access points, tokens and disputes, carried out on the running hub.

use super::{added, configured, owner::Owner};
use crate::{
    audit,
    authz::Principal,
    control::{self, EndpointInfo, Request, Response, TokenInfo},
    data::{Secret, endpoint_name},
};

/// What a request gets whose task died; nothing of ours does.
const FAILED: &str = "the hub failed over this request; nothing is known to have changed";

impl Owner {
    /// All access points, ordered by name.
    pub(super) fn endpoints(&self) -> Vec<EndpointInfo> {
        let mut all: Vec<EndpointInfo> = self.parts.endpoints.list().iter().map(added::info_of).collect();
        let recent = self.parts.audit.recent();
        for endpoint in &mut all {
            let caller = format!("endpoint:{}", endpoint.name);
            endpoint.last_call =
                recent.iter().rev().find(|record| record.caller == caller).map(|record| record.at.clone());
        }
        all
    }

    fn endpoint(&self, name: &str) -> Option<EndpointInfo> {
        self.endpoints().into_iter().find(|endpoint| endpoint.name == name)
    }

    pub(super) async fn endpoint_add(&self, name: String, url: Secret) -> Response {
        let (store, config, wanted) = (self.parts.endpoints.clone(), self.parts.config.clone(), name.clone());
        let add = move || {
            let (known, _) = configured::endpoints(&config);
            let known: Vec<_> = known.into_iter().map(|settings| (settings.name, settings.address)).collect();
            added::add(&store, &known, &wanted, &url)
        };
        let done = tokio::task::spawn_blocking(add).await;
        match done {
            Err(_) => error(FAILED),
            Ok(Err(refused)) => error(&refused.to_string()),
            Ok(Ok((stored, _))) => {
                let found = vec!["added; it is dialled".to_owned()];
                let endpoint = self.endpoint(&name).unwrap_or_else(|| added::info_of(&stored));
                Response::Endpoint { endpoint: Box::new(endpoint), found, good: true }
            }
        }
    }

    pub(super) async fn endpoint_test(&self, name: &str) -> Response {
        let Some(stored) = self.parts.endpoints.get(name) else { return unknown(name) };
        let Some(address) = added::address_of(&stored) else {
            return error("its address cannot be read any more; remove it and add it again");
        };
        let (found, good) = added::test(&address).await;
        let endpoint = self.endpoint(name).unwrap_or_else(|| added::info_of(&stored));
        Response::Endpoint { endpoint: Box::new(endpoint), found, good }
    }

    pub(super) async fn endpoint_remove(&self, name: String) -> Response {
        if let Err(error_of_name) = endpoint_name(&name) {
            return error(&error_of_name.to_string());
        }
        let (store, gone) = (self.parts.endpoints.clone(), name.clone());
        match tokio::task::spawn_blocking(move || store.remove(&gone)).await {
            Err(_) => error(FAILED),
            Ok(Err(problem)) => error(&problem.to_string()),
            Ok(Ok(())) => Response::Removed { device: name },
        }
    }

    /// Makes, lists and revokes tokens. What is revoked ends at once: each request and each call asks anew.
    pub(super) async fn tokens(&self, request: Request) -> Response {
        let (tokens, now) = (self.parts.tokens.clone(), added::now());
        let done = tokio::task::spawn_blocking(move || control::on_tokens(&tokens, &now, &request)).await;
        let Some(mut response) = done.ok().flatten() else { return error(FAILED) };
        match &mut response {
            Response::Token { info, .. } => self.look_at(info),
            Response::Tokens { tokens } => tokens.iter_mut().for_each(|info| self.look_at(info)),
            _ => {}
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
                self.parts.audit.keep(record, std::time::Duration::ZERO);
                response
            }
        }
    }
}

fn error(message: &str) -> Response {
    Response::Error { message: message.to_owned() }
}

fn unknown(name: &str) -> Response {
    error(&crate::data::Error::UnknownEndpoint(name.to_owned()).to_string())
}
