//! Who may what: the policies of configuration, tokens and endpoints.

use std::sync::Arc;

use crate::{
    authz::{Access, Policy, Principal},
    config::Config,
};

/// The policies in force.
pub(super) struct Policies {
    /// Whoever is on this machine.
    here: Arc<Policy>,
}

impl Policies {
    /// Those of a configuration.
    pub(super) fn new(config: &Config) -> Self {
        let here =
            Policy { lang: config.language(), answer_by_ms: config.timing.answer_by_ms.into(), ..Policy::default() };
        Self { here: Arc::new(here) }
    }
}

impl Access for Policies {
    fn policy(&self, principal: &Principal) -> Option<Arc<Policy>> {
        match principal {
            Principal::Http | Principal::Stdio | Principal::Owner => Some(self.here.clone()),
            Principal::Endpoint(_) | Principal::Token(_) => None,
        }
    }

    fn revision(&self) -> u64 {
        0
    }
}
