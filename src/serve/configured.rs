//! The access points of the configuration, with their tokens and addresses.

use std::sync::Arc;

use crate::{
    config::{self, Config, EndpointText, TokenError},
    endpoint::{Address, Profile, Settings, UrlError, parse_url_with},
};

/// What is wrong with one of them. Never quotes a token.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Its token cannot be had.
    #[error(transparent)]
    Token(#[from] TokenError),
    /// Its URL is none.
    #[error("endpoint {endpoint}: {problem}")]
    Url {
        /// The endpoint.
        endpoint: String,
        /// Why.
        problem: UrlError,
    },
    /// Its calls would be answered after the other side has given up.
    #[error(
        "endpoint {endpoint}: budget_ms is {budget_ms}; at most {most} is allowed, there the {profile} access point gives up"
    )]
    Budget {
        /// The endpoint.
        endpoint: String,
        /// What it is.
        budget_ms: u32,
        /// What is allowed.
        most: u64,
        /// Of which kind the access point is.
        profile: &'static str,
    },
    /// Two for one agent.
    #[error(
        "endpoints {one} and {other} are the same agent ({agent} at {address}): an access point takes one connection for each; \
         leave one out, or make another agent's token"
    )]
    SameAgent {
        /// The first.
        one: String,
        /// The second.
        other: String,
        /// Whose token both have.
        agent: String,
        /// Where it is, without the token.
        address: String,
    },
}

/// All that have a URL, in the order of the file, and what is wrong with the others. Reads their tokens anew: blocks on the
/// disk.
pub(super) fn endpoints(config: &Config) -> (Vec<Settings>, Vec<Error>) {
    let (mut all, mut broken): (Vec<Settings>, Vec<Error>) = (Vec::new(), Vec::new());
    for text in config.endpoints.iter().filter(|text| text.url.is_some()) {
        match settings(text, &all) {
            Ok(settings) => all.push(settings),
            Err(error) => broken.push(error),
        }
    }
    (all, broken)
}

fn settings(text: &EndpointText, before: &[Settings]) -> Result<Settings, Error> {
    let name = text.name.clone().unwrap_or_default();
    let url = text.url.as_ref().map(config::SecretText::reveal).unwrap_or_default();
    let token = config::endpoint_token(text)?;
    let address = parse_url_with(url, token.as_ref().map(config::SecretText::reveal));
    let address = address.map_err(|problem| Error::Url { endpoint: name.clone(), problem })?;
    let profile = chosen(text, &address);
    let (budget_ms, most) = (text.budget_ms, profile.answer_by_ms_max());
    if u64::from(budget_ms) > most {
        return Err(Error::Budget { endpoint: name, budget_ms, most, profile: profile.as_str() });
    }
    if let Some(same) = before.iter().find(|known| known.address.is_same_agent(&address)) {
        let (agent, address) = (address.agent().to_owned(), address.to_string());
        return Err(Error::SameAgent { one: same.name.to_string(), other: name, agent, address });
    }
    Ok(Settings { name: name.into(), address, profile, boxes: text.boxes })
}

/// One that was added by command, with what the configuration says of it, if anything.
pub(super) fn added(config: &Config, name: Arc<str>, address: Address) -> Settings {
    let known = config.endpoints.iter().find(|text| text.name.as_deref() == Some(&*name));
    let usual = EndpointText::default();
    let text = known.unwrap_or(&usual);
    Settings { name, profile: chosen(text, &address), address, boxes: text.boxes }
}

/// Of which kind an endpoint is: as its owner says, else as its URL tells; whether that has its token does not matter.
pub(super) fn profile(text: &EndpointText, url: &str) -> Profile {
    let address = || parse_url_with(url, None).or_else(|_| parse_url_with(url, Some("none"))).ok();
    owners(text).or_else(|| address().map(|address| address.profile())).unwrap_or(Profile::Relay)
}

fn chosen(text: &EndpointText, address: &Address) -> Profile {
    owners(text).unwrap_or_else(|| address.profile())
}

fn owners(text: &EndpointText) -> Option<Profile> {
    text.profile.map(|profile| match profile {
        config::Profile::Official => Profile::Official,
        config::Profile::Relay => Profile::Relay,
    })
}
