//! Access points that the owner adds by command: what is looked at before one is taken, and what is shown of one. The same
//! for a running hub and for a command on a folder where none runs.

use jiff::{SignedDuration, Timestamp, tz::TimeZone};

use crate::{
    control::EndpointInfo,
    data::{Endpoints, Secret, StoredEndpoint, endpoint_name},
    endpoint::{Address, End, Probe, Profile, UrlError, greeted_alone, parse_url, probe_alone},
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

/// Adds one to the store. `configured`: those that the configuration has. Blocks on the disk.
///
/// # Errors
/// [`Refused`]; then nothing has changed.
pub fn add(
    store: &Endpoints,
    configured: &[EndpointInfo],
    name: &str,
    url: &Secret,
) -> Result<(StoredEndpoint, Address), Refused> {
    let (name, address) = (endpoint_name(name)?, parse_url(url.reveal())?);
    if configured.iter().any(|known| known.name == *name) {
        return Err(Refused::Configured(name.to_string()));
    }
    let stored = store.list();
    let same_stored =
        |e: &&StoredEndpoint| e.name != name && address_of(e).is_some_and(|known| known.is_same_agent(&address));
    let shown = address.to_string();
    let same_configured = |e: &&EndpointInfo| e.agent == address.agent() && e.address == shown;
    let other = stored.iter().find(same_stored).map(|e| e.name.to_string());
    if let Some(other) = other.or_else(|| configured.iter().find(same_configured).map(|e| e.name.clone())) {
        let agent = address.agent().to_owned();
        return Err(Refused::SameAgent { name: name.to_string(), other, agent, address: shown });
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

/// Looks closely at an address from a machine where no hub runs. A relay is asked from its callers' side only: a connection to
/// its tool side would throw out whoever is there.
pub async fn test(address: &Address) -> (Vec<String>, bool) {
    let mut found = checks(address, Timestamp::now());
    let clean = found.is_empty();
    let (line, good) = match address.profile() {
        Profile::Relay => told(&probe_alone(address).await, false),
        Profile::Official => match greeted_alone(address).await {
            Ok(()) => {
                ("the access point takes the token; no hub runs here: truetwin serve will connect it".to_owned(), true)
            }
            Err(end) => (format!("{}{}", end.word.told(), said(&end)), false),
        },
    };
    found.push(line);
    (found, good && clean)
}

/// What a probe found, and what to do about it; whether it is well. `connected`: this hub has a connection there.
pub fn told(probe: &Probe, connected: bool) -> (String, bool) {
    match probe {
        Probe::Routed(took) if connected => {
            (format!("routed: a question from the boxes' side came back to this hub in {} ms", took.as_millis()), true)
        }
        Probe::Routed(_) => ("routed, to another program that uses this token: a relay takes one at a time".to_owned(), true),
        Probe::NotRegistered if connected => (
            "zombie: the relay has forgotten this connection, though it is open; it is made anew now, test again in a few seconds"
                .to_owned(),
            false,
        ),
        Probe::NotRegistered => (
            "the relay is there and takes the token; no hub is connected to it: truetwin serve will connect it".to_owned(),
            true,
        ),
        Probe::Hangs => (
            "wedged: the relay takes questions and answers none, for all its agents: restart mcp-endpoint-server".to_owned(),
            false,
        ),
        Probe::Refused(said) => (format!("the relay refuses callers: {said}"), false),
        Probe::Unreachable(end) => (format!("the relay's callers' side: {}{}", end.word.told(), said(end)), false),
        Probe::NoWay => ("the official access point cannot be asked from outside".to_owned(), true),
    }
}

fn said(end: &End) -> String {
    let code = end.code.map(|code| format!(" ({code})")).unwrap_or_default();
    if end.said.is_empty() { code } else { format!("{code}: {}", end.said) }
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
        let configured = [info("study", parse_url(url("other").reveal()).ok().as_ref(), None)];
        assert!(matches!(add(&store, &configured, "study", &url("x")), Err(Refused::Configured(_))));
        let error = add(&store, &configured, "hall", &url("other")).unwrap_err().to_string();
        assert!(error.contains("hall and study"), "{error}");
        assert_eq!(store.list().len(), 1);
    }
}
