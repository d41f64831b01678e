//! The access points of the configuration, with their tokens and addresses.

use std::sync::Arc;

use crate::{
    config::{self, Config, EndpointText, TokenError},
    endpoint::{Address, Profile, UrlError, parse_url_with},
};

/// An access point that the configuration has with its URL: what is needed to dial it.
#[derive(Clone, Debug)]
pub struct Configured {
    /// What its owner calls it.
    pub name: Arc<str>,
    /// Where it is, token and all; shows itself without it.
    pub address: Address,
    /// How it behaves.
    pub profile: Profile,
    /// How many boxes speak through it.
    pub boxes: u32,
}

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

/// All that have a URL, in the order of the file. Reads their tokens anew: blocks on the disk.
///
/// # Errors
/// [`Error`] with the first that is not right.
pub fn endpoints(config: &Config) -> Result<Vec<Configured>, Error> {
    let mut all: Vec<Configured> = Vec::new();
    for text in &config.endpoints {
        let name = text.name.clone().unwrap_or_default();
        let Some(url) = &text.url else { continue };
        let token = config::endpoint_token(text)?;
        let address = parse_url_with(url.reveal(), token.as_ref().map(config::SecretText::reveal))
            .map_err(|problem| Error::Url { endpoint: name.clone(), problem })?;
        let profile = chosen(text, &address);
        let most = profile.answer_by_ms_max();
        if u64::from(text.budget_ms) > most {
            let budget_ms = text.budget_ms;
            return Err(Error::Budget { endpoint: name, budget_ms, most, profile: profile.as_str() });
        }
        if let Some(same) = all.iter().find(|known| known.address.is_same_agent(&address)) {
            let (agent, address) = (address.agent().to_owned(), address.to_string());
            return Err(Error::SameAgent { one: same.name.to_string(), other: name, agent, address });
        }
        all.push(Configured { name: name.into(), address, profile, boxes: text.boxes });
    }
    Ok(all)
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
