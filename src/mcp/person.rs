//! How the person at the other end is asked: by the model, or by the client itself, where it can show a form (elicitation).
//! Older clients show it while the call waits; those of 2026-07-28 get it as the call's result and call again with what was
//! said.

use std::{fmt, future::Future, pin::Pin, sync::Arc, time::Duration};

use rmcp::{
    RoleServer,
    model::{
        CallToolRequestParams, ClientResult, ElicitRequest, ElicitRequestParams, ElicitResult, ElicitationAction,
        ElicitationSchema, InputRequest, InputRequiredResult, ProtocolVersion, ServerRequest,
    },
    service::{Peer, PeerRequestOptions, RequestContext},
};
use serde_json::{Value as Json, json};

/// The key of the one question in a result that asks, and of its answer in the next call.
const QUESTION: &str = "confirmation";

/// Longest state that a client hands back, bytes: ours has 32. A longer one is none of ours.
const STATE_BYTES_MAX: usize = 64;

/// A question as a client shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Form {
    /// The question.
    pub text: String,
    /// Whether the secret code is to be written into it; else it is a yes or a no.
    pub wants_code: bool,
    /// What the client hands back, where it calls again.
    pub state: String,
}

/// What a person said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Said {
    /// Yes, with what was written as the code.
    Yes {
        /// It, where the form had a place for it.
        code: String,
    },
    /// No, or nothing.
    No,
}

/// Puts a form to the person and waits for what is said; `None`: it could not be shown, or nobody answered.
pub type Show = Arc<dyn Fn(Form) -> Pin<Box<dyn Future<Output = Option<Said>> + Send>> + Send + Sync>;

/// How the person is asked in one call.
#[derive(Clone, Default)]
pub enum Person {
    /// By the model.
    #[default]
    ByModel,
    /// By the client, while the call waits.
    Form(Show),
    /// By the client, between two calls; this one brings what was said, if it is the second.
    Between(Option<(String, Said)>),
}

impl fmt::Debug for Person {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ByModel => f.write_str("ByModel"),
            Self::Form(_) => f.write_str("Form"),
            Self::Between(said) => f.debug_tuple("Between").field(&said.is_some()).finish(),
        }
    }
}

impl Person {
    /// How the person behind a request is asked: as its client has declared. The SDK would put a form to any.
    pub(super) fn behind(
        context: &RequestContext<RoleServer>,
        request: &CallToolRequestParams,
        within: Duration,
    ) -> Self {
        let shows = context.client_capabilities().and_then(|can| can.elicitation);
        // Without a word on the mode it is forms.
        let forms = shows.is_some_and(|modes| modes.form.is_some() || modes.url.is_none());
        if !forms {
            return Self::ByModel;
        }
        let sessionless =
            context.protocol_version().is_some_and(|v| v.as_str() >= ProtocolVersion::V_2026_07_28.as_str());
        if !sessionless {
            return Self::Form(showing(context.peer.clone(), within));
        }
        let state = request.request_state.as_ref().filter(|state| state.len() <= STATE_BYTES_MAX);
        let said = request.input_responses.as_ref().and_then(|all| all.get(QUESTION));
        Self::Between(state.zip(said).map(|(state, said)| (state.clone(), read(said.clone()))))
    }
}

fn showing(peer: Peer<RoleServer>, within: Duration) -> Show {
    Arc::new(move |form| {
        let peer = peer.clone();
        Box::pin(async move {
            let request = ServerRequest::ElicitRequest(form.request());
            let handle = peer.send_cancellable_request(request, PeerRequestOptions::with_timeout(within)).await;
            let told = match handle {
                Ok(handle) => handle.await_response().await,
                Err(error) => Err(error),
            };
            match told {
                Ok(ClientResult::ElicitResult(said)) => Some(said_in(said)),
                Ok(_) => None,
                Err(error) => {
                    tracing::debug!(%error, "a client did not put its form to the person");
                    None
                }
            }
        })
    })
}

impl Form {
    fn request(&self) -> ElicitRequest {
        let schema = match self.wants_code {
            true => json!({"type": "object", "required": ["code"], "properties": {"code": {"type": "string"}}}),
            false => json!({"type": "object", "required": ["confirm"], "properties": {"confirm": {"type": "boolean"}}}),
        };
        let schema = match schema {
            Json::Object(schema) => ElicitationSchema::from_json_schema(schema),
            Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) | Json::Array(_) => {
                ElicitationSchema::from_json_schema(serde_json::Map::new())
            }
        };
        ElicitRequest::new(ElicitRequestParams::FormElicitationParams {
            meta: None,
            message: self.text.clone(),
            requested_schema: schema.expect("a flat object of one bool or text is what the schema's type takes"),
        })
    }

    /// The result that asks a client of 2026-07-28.
    pub(super) fn result(&self) -> InputRequiredResult {
        let asked = [(QUESTION.to_owned(), InputRequest::Elicitation(self.request()))];
        InputRequiredResult::new(Some(asked.into()), Some(self.state.clone()))
    }
}

/// What an answer says that the client hands on as it came.
fn read(said: Json) -> Said {
    serde_json::from_value::<ElicitResult>(said).map_or(Said::No, said_in)
}

/// Only a yes is one: accepted, and said so where a yes or no was asked for.
fn said_in(said: ElicitResult) -> Said {
    if said.action != ElicitationAction::Accept {
        return Said::No;
    }
    let content = said.content.unwrap_or_default();
    match (content.get("confirm"), content.get("code").and_then(Json::as_str)) {
        (_, Some(code)) => Said::Yes { code: code.to_owned() },
        (Some(Json::Bool(true)), None) => Said::Yes { code: String::new() },
        (Some(_) | None, None) => Said::No,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s7_2_only_a_yes_is_a_yes() {
        let yes = || Said::Yes { code: String::new() };
        for (said, meant) in [
            (json!({"action": "accept", "content": {"confirm": true}}), yes()),
            (json!({"action": "accept", "content": {"code": "4711"}}), Said::Yes { code: "4711".into() }),
            (json!({"action": "accept", "content": {"confirm": false}}), Said::No),
            (json!({"action": "accept", "content": {"confirm": "true"}}), Said::No),
            (json!({"action": "accept"}), Said::No),
            (json!({"action": "decline"}), Said::No),
            (json!({"action": "cancel", "content": {"confirm": true}}), Said::No),
            (json!({"confirm": true}), Said::No),
            (json!(true), Said::No),
        ] {
            assert_eq!(read(said.clone()), meant, "{said}");
        }
    }
}
