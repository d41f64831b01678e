//! Who may what: the policies of configuration, tokens and endpoints.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use super::configured;
use crate::{
    authz::{Access, Policy, Principal, Scope, Selection, Style},
    config::{CallerText, Callers, Config, EndpointText, FailureStyle},
    data::{Endpoints, Token, Tokens},
    endpoint::Profile,
    names::Lang,
};

/// The policies in force.
pub(super) struct Policies {
    /// Whoever is on this machine.
    http: Option<Arc<Policy>>,
    stdio: Arc<Policy>,
    owner: Arc<Policy>,
    /// The endpoints of the configuration, whether or not their URL is there too.
    configured: HashMap<String, EndpointText>,
    stored: Endpoints,
    tokens: Tokens,
    usual: Usual,
    /// The policies that were asked for, as of one revision: as many as there are principals.
    kept: Mutex<(u64, HashMap<Principal, Arc<Policy>>)>,
}

/// What holds where nothing else is said.
#[derive(Clone, Copy)]
struct Usual {
    lang: Lang,
    answer_by_ms: u64,
}

impl Policies {
    /// Those of a configuration, and of what the data folder holds.
    pub(super) fn new(config: &Config, stored: Endpoints, tokens: Tokens) -> Self {
        let usual = Usual { lang: config.language(), answer_by_ms: config.timing.answer_by_ms.into() };
        let Callers { http, stdio } = &config.callers;
        let optional = config.http.tokens == crate::config::Tokens::Optional;
        let by_name = |endpoint: &EndpointText| Some((endpoint.name.clone()?, endpoint.clone()));
        Self {
            http: optional.then(|| Arc::new(usual.caller(http))),
            stdio: Arc::new(usual.caller(stdio)),
            owner: Arc::new(usual.policy()),
            configured: config.endpoints.iter().filter_map(by_name).collect(),
            stored,
            tokens,
            usual,
            kept: Mutex::default(),
        }
    }

    /// An endpoint that has a URL somewhere. With settings, as those say; else as an endpoint without settings.
    fn endpoint(&self, name: &str) -> Option<Policy> {
        let (configured, stored) = (self.configured.get(name), self.stored.get(name));
        let known = configured.is_some_and(|endpoint| endpoint.url.is_some()) || stored.is_some();
        let by_default = EndpointText::default();
        known.then(|| {
            let text = configured.unwrap_or(&by_default);
            let url = text.url.as_ref().map(|url| url.reveal().to_owned());
            let url = url.or_else(|| stored.map(|stored| stored.url.reveal().to_owned()));
            self.usual.endpoint(text, configured::profile(text, url.as_deref().unwrap_or_default()))
        })
    }

    fn make(&self, principal: &Principal) -> Option<Arc<Policy>> {
        match principal {
            Principal::Http => self.http.clone(),
            Principal::Stdio => Some(self.stdio.clone()),
            Principal::Owner => Some(self.owner.clone()),
            Principal::Endpoint(name) => self.endpoint(name).map(Arc::new),
            Principal::Token(name) => self.tokens.get(name).map(|token| Arc::new(self.usual.token(&token))),
        }
    }
}

impl Access for Policies {
    fn policy(&self, principal: &Principal) -> Option<Arc<Policy>> {
        // Read first: a change in between is then seen again by the next question instead of being missed.
        let revision = self.revision();
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.0 != revision {
            *kept = (revision, HashMap::new());
        }
        if let Some(known) = kept.1.get(principal) {
            return Some(known.clone());
        }
        let made = self.make(principal)?;
        kept.1.insert(principal.clone(), made.clone());
        Some(made)
    }

    fn revision(&self) -> u64 {
        // Both only grow, so their sum grows with each change of either.
        self.tokens.revision() + *self.stored.changes().borrow()
    }
}

impl Usual {
    fn policy(self) -> Policy {
        Policy { lang: self.lang, answer_by_ms: self.answer_by_ms, ..Policy::default() }
    }

    fn caller(self, text: &CallerText) -> Policy {
        Policy {
            scope: scope(text.devices.as_ref(), text.read.as_ref()),
            lang: text.language.unwrap_or(self.lang),
            answer_by_ms: text.budget_ms.map_or(self.answer_by_ms, u64::from),
            ..self.policy()
        }
    }

    fn token(self, token: &Token) -> Policy {
        let scope = scope(token.devices.as_ref(), token.read.as_ref());
        Policy { scope, lang: token.language.unwrap_or(self.lang), ..self.policy() }
    }

    fn endpoint(self, text: &EndpointText, profile: Profile) -> Policy {
        Policy {
            scope: scope(text.devices.as_ref(), text.read.as_ref()),
            lang: text.language.unwrap_or(self.lang),
            answer_by_ms: u64::from(text.budget_ms).min(profile.answer_by_ms_max()),
            // A call does not tell from which of several boxes it comes.
            here: text.room.clone().filter(|_| text.boxes == 1),
            several: text.boxes > 1,
            style: match text.failure_style {
                FailureStyle::Text => Style::Text,
                FailureStyle::IsError => Style::IsError,
            },
        }
    }
}

/// What two lists grant: neither is everything, to be moved; what is only to be looked at grants no more than that.
pub(super) fn scope(devices: Option<&Vec<String>>, read: Option<&Vec<String>>) -> Scope {
    let selection = |names: &Vec<String>| match names.iter().any(|name| name == "*") {
        true => Selection::All,
        false => Selection::Of(names.clone()),
    };
    match (devices, read) {
        (None, None) => Scope::everything(),
        (devices, read) => Scope {
            read: read.map_or_else(|| Selection::Of(Vec::new()), selection),
            write: devices.map_or_else(|| Selection::Of(Vec::new()), selection),
        },
    }
}
