//! Access points that the owner adds by command: what is looked at before one is taken, and what is shown of one. The same
//! for a running hub and for a command on a folder where none runs.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp, tz::TimeZone};

use crate::{
    control::EndpointInfo,
    data::{Endpoints, Secret, StoredEndpoint, endpoint_name},
    endpoint::{Address, UrlError, parse_url},
};

/// Why an access point was not taken.
#[derive(Debug, thiserror::Error)]
pub enum Refused {
    /// Its name.
    #[error(transparent)]
    Name(#[from] crate::data::BadEndpointName),
    /// Its URL.
    #[error(transparent)]
    Url(#[from] UrlError),
    /// The token is that of another.
    #[error(
        "{name} and {other} are the same agent ({agent} at {address}): an access point takes one connection for each; \
         remove {other} first, or make another agent's token"
    )]
    SameAgent {
        /// The one that is to be added.
        name: String,
        /// The one that is there.
        other: String,
        /// Whose token it is.
        agent: String,
        /// Where it is, without the token.
        address: String,
    },
    /// A name that the configuration has with its own URL.
    #[error("the configuration has an endpoint {0} with a url of its own; take another name")]
    Configured(String),
    /// The store.
    #[error(transparent)]
    Store(#[from] crate::data::Error),
}

/// Adds one to the store. `configured`: those that the configuration has with their URLs. Blocks on the disk.
///
/// # Errors
/// [`Refused`]; then nothing has changed.
pub fn add(
    store: &Endpoints,
    configured: &[(Arc<str>, Address)],
    name: &str,
    url: &Secret,
) -> Result<(StoredEndpoint, Address), Refused> {
    let (name, address) = (endpoint_name(name)?, parse_url(url.reveal())?);
    if configured.iter().any(|(known, _)| *known == name) {
        return Err(Refused::Configured(name.to_string()));
    }
    let stored = store.list().into_iter().filter_map(|e| Some((e.name.clone(), address_of(&e)?)));
    let same =
        stored.chain(configured.iter().cloned()).find(|(known, other)| *known != name && other.is_same_agent(&address));
    if let Some((other, _)) = same {
        let (agent, address) = (address.agent().to_owned(), address.to_string());
        return Err(Refused::SameAgent { name: name.to_string(), other: other.to_string(), agent, address });
    }
    let added = now();
    let endpoint = StoredEndpoint { name, url: Secret::new(address.reveal().to_owned()), added };
    store.add(endpoint.clone())?;
    Ok((endpoint, address))
}

/// The time, RFC 3339.
pub(super) fn now() -> String {
    Timestamp::now().to_zoned(TimeZone::system()).strftime("%Y-%m-%dT%H:%M:%S%:z").to_string()
}

/// The address of a stored one; `None` if this version cannot read it (any more).
pub fn address_of(endpoint: &StoredEndpoint) -> Option<Address> {
    parse_url(endpoint.url.reveal()).ok()
}

/// What is shown of one, as far as its address tells.
pub fn info(name: &str, address: Option<&Address>, added: Option<&str>) -> EndpointInfo {
    EndpointInfo {
        name: name.to_owned(),
        address: address.map_or_else(|| "(cannot be read; remove it and add it again)".to_owned(), ToString::to_string),
        profile: address.map(|a| a.profile().as_str().to_owned()).unwrap_or_default(),
        agent: address.map(|a| a.agent().to_owned()).unwrap_or_default(),
        expires: address.and_then(Address::expires),
        added: added.map(str::to_owned),
        ..EndpointInfo::default()
    }
}

/// What is shown of a stored one, as far as its address tells.
pub fn info_of(endpoint: &StoredEndpoint) -> EndpointInfo {
    info(&endpoint.name, address_of(endpoint).as_ref(), Some(&endpoint.added))
}

/// Looks closely at an address from a machine where no hub runs.
#[expect(clippy::unused_async, reason = "dials once there is a dialler")]
pub async fn test(address: &Address) -> (Vec<String>, bool) {
    let found = checks(address, Timestamp::now());
    let good = found.is_empty();
    (found, good)
}

/// What its token and this machine's clock say without a connection; empty if nothing speaks against it.
pub fn checks(address: &Address, now: Timestamp) -> Vec<String> {
    let at = |seconds: u64| i64::try_from(seconds).ok().and_then(|seconds| Timestamp::from_second(seconds).ok());
    let day = |at: Timestamp| at.to_zoned(TimeZone::system()).strftime("%Y-%m-%d %H:%M").to_string();
    let mut found = Vec::new();
    // Five minutes are what tokens are usually allowed to be ahead.
    if let Some(issued) = address.issued().and_then(at).filter(|issued| *issued > now + SignedDuration::from_mins(5)) {
        let (now, issued) = (day(now), day(issued));
        found.push(format!("this machine's clock says {now}, and the token was made at {issued}: set the clock (NTP)"));
    }
    if let Some(expired) = address.expires().and_then(at).filter(|expires| *expires <= now) {
        let (now, expired) = (day(now), day(expired));
        found.push(format!(
            "the token ended at {expired}, and the clock says {now}: make a new one in the console, then remove and add"
        ));
    }
    found
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test that fails there has said so")]
mod tests {
    use super::*;
    use crate::data::DataFolder;

    #[test]
    fn the_same_agent_twice_is_refused_with_both_names_and_without_the_token() {
        let path = tempfile::tempdir().unwrap();
        let folder = DataFolder::open(path.path()).unwrap();
        let store = folder.endpoints();
        let url = |token: &str| Secret::new(format!("ws://192.168.1.9:8004/mcp_endpoint/mcp/?token={token}"));
        add(&store, &[], "kitchen", &url("aB3%2Bdef")).unwrap();
        let error = add(&store, &[], "bedroom", &url("aB3+def")).unwrap_err().to_string();
        assert!(error.contains("bedroom and kitchen are the same agent"), "{error}");
        assert!(!error.contains("aB3"), "{error}");
        assert!(matches!(add(&store, &[], "Bed room", &url("x")), Err(Refused::Name(_))));
        let configured = [("study".into(), parse_url(url("other").reveal()).unwrap())];
        assert!(matches!(add(&store, &configured, "study", &url("x")), Err(Refused::Configured(_))));
        let error = add(&store, &configured, "hall", &url("other")).unwrap_err().to_string();
        assert!(error.contains("hall and study"), "{error}");
        assert_eq!(store.list().len(), 1);
    }
}
