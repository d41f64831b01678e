//! The address of an access point: where it is, which agent it belongs to, and a token that nobody may read.
//!
//! The whole secret of an access point is in its URL. So an [`Address`] shows itself without it, an [`UrlError`] never quotes
//! what it could not read, and only [`Address::reveal`] gives it out, to the dialler and to the store.
//!
//! Pure: opens nothing, resolves nothing, checks no signature. A token is looked into only to say whose it is and how long
//! it lasts.

use std::{fmt, str::FromStr, sync::Arc};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use sha2::{Digest as _, Sha256};
use tokio_tungstenite::tungstenite::http::Uri;

/// The longest URL, bytes. A token of the official access point makes one of some 400; more is no URL but a file.
pub const URL_BYTES_MAX: usize = 4_096;

/// Hex digits of a token's SHA-256 that stand for an agent whose token cannot be looked into: two of a home's dozen are the
/// same once in 10^7.
const HASH_DIGITS: usize = 8;

/// The path under which a self-hosted relay takes tool sides, and that under which it takes callers.
const RELAY_TOOL_SIDE: &str = "/mcp_endpoint/mcp";
const RELAY_CALL_SIDE: &str = "/mcp_endpoint/call";

/// Which of the two kinds of access point is at the other end; they differ in everything but the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Profile {
    /// The vendor's broker (`wss://api.xiaozhi.me/mcp/`, and licensees'): it speaks for all boxes of an agent at once, asks
    /// `ping` every minute, takes several sockets for one token.
    Official,
    /// A self-hosted relay (`…/mcp_endpoint/mcp/`): each box is a client of its own on the one socket, WebSocket pings every
    /// 20 s, one socket for each token.
    Relay,
}

impl Profile {
    /// The word in lists and logs.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Official => "official",
            Self::Relay => "relay",
        }
    }

    /// Until when a call must be answered at the latest, milliseconds: the other side gives up at 300 s and at 30 s, and a
    /// part of that is the way there and back.
    pub fn answer_by_ms_max(self) -> u64 {
        match self {
            Self::Official => 280_000,
            Self::Relay => 25_000,
        }
    }
}

/// The address of an access point, token and all. Shows itself without the token.
#[derive(Clone, PartialEq, Eq)]
pub struct Address {
    /// Everything, as it is dialled.
    secret: Arc<str>,
    /// Scheme, host and path.
    shown: Arc<str>,
    /// Host in lower case and port, also where the URL leaves it out.
    authority: Arc<str>,
    agent: Arc<str>,
    profile: Profile,
    issued: Option<u64>,
    expires: Option<u64>,
}

/// Why a text is no address of an access point. Never quotes the text: it may be a token.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UrlError {
    /// Nothing but spaces.
    #[error("the url is empty; paste the whole address of the access point, it begins with wss:// or ws://")]
    Empty,
    /// Longer than [`URL_BYTES_MAX`].
    #[error("the url has {0} bytes; the most is {URL_BYTES_MAX}")]
    TooLong(usize),
    /// Another scheme, or none.
    #[error("the url does not begin with wss:// or ws://{}", hint(scheme))]
    Scheme {
        /// The one that was found, if it is one that people mistake for it.
        scheme: Option<&'static str>,
    },
    /// Not a URL.
    #[error("the url cannot be read; allowed: ws://HOST[:PORT]/PATH?token=TOKEN, without spaces")]
    Malformed,
    /// `user:password@` or `#fragment`.
    #[error("the url has a user, a password or a fragment; an access point knows only a token")]
    Unexpected,
    /// No `token=`.
    #[error("the url has no token; paste the whole address, with ?token= and what follows")]
    NoToken,
    /// A token in the URL and another beside it, or twice in it.
    #[error("there are two tokens; give one, in the url or beside it")]
    TwoTokens,
    /// A token that cannot be one.
    #[error("the token cannot be read; allowed: letters, digits, and any of - _ . ~ + / =, also as %XX")]
    Token,
}

fn hint(scheme: &Option<&'static str>) -> String {
    match scheme {
        Some(scheme) => format!(" but with {scheme}://"),
        None => String::new(),
    }
}

/// Reads the URL of an access point.
///
/// # Errors
/// [`UrlError`], without the text.
pub fn parse_url(text: &str) -> Result<Address, UrlError> {
    parse_url_with(text, None)
}

/// Reads the URL of an access point whose token stands elsewhere, in a file or in the environment.
///
/// # Errors
/// [`UrlError`], without the text.
pub fn parse_url_with(text: &str, token: Option<&str>) -> Result<Address, UrlError> {
    let text = text.trim();
    if text.is_empty() {
        return Err(UrlError::Empty);
    }
    if text.len() > URL_BYTES_MAX {
        return Err(UrlError::TooLong(text.len()));
    }
    let Some((scheme, rest)) = text.split_once("://") else { return Err(UrlError::Scheme { scheme: None }) };
    let tls = match scheme.to_ascii_lowercase().as_str() {
        "wss" => true,
        "ws" => false,
        "https" => return Err(UrlError::Scheme { scheme: Some("https") }),
        "http" => return Err(UrlError::Scheme { scheme: Some("http") }),
        _ => return Err(UrlError::Scheme { scheme: None }),
    };
    let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
    let is_unexpected = |part: &str| part.contains('@') || part.contains('#');
    if is_unexpected(place) || query.contains('#') {
        return Err(UrlError::Unexpected);
    }
    let (given, others) = token_of(query)?;
    let token = match (given, token.map(str::trim)) {
        (Some(given), None) => given,
        (None, Some(beside)) => beside,
        (Some(given), Some(beside)) if decoded(given) == decoded(beside) => given,
        (Some(_), Some(_)) => return Err(UrlError::TwoTokens),
        (None, None) => return Err(UrlError::NoToken),
    };
    let token = decoded(token).ok_or(UrlError::Token)?;
    if token.is_empty() {
        return Err(UrlError::NoToken);
    }
    let (scheme, port) = if tls { ("wss", 443) } else { ("ws", 80) };
    let (host, path) = place.split_at(place.find('/').unwrap_or(place.len()));
    let path = if path.is_empty() { "/" } else { path };
    let host = host.to_ascii_lowercase();
    let shown = format!("{scheme}://{host}{path}");
    let secret = format!("{shown}?{others}token={}", encoded(&token));
    let uri = Uri::from_str(&secret).map_err(|_| UrlError::Malformed)?;
    let host_alone = uri.host().filter(|host| !host.is_empty()).ok_or(UrlError::Malformed)?;
    let port = match host.strip_prefix(host_alone) {
        Some("") => port,
        _ => uri.port_u16().ok_or(UrlError::Malformed)?,
    };
    let authority = format!("{host_alone}:{port}");
    let claims = claims_of(&token);
    let agent = claims.agent.unwrap_or_else(|| hash_of(&token));
    let profile = if path.contains(RELAY_TOOL_SIDE) { Profile::Relay } else { Profile::Official };
    Ok(Address {
        secret: secret.into(),
        shown: shown.into(),
        authority: authority.into(),
        agent: agent.into(),
        profile,
        issued: claims.issued,
        expires: claims.expires,
    })
}

impl Address {
    /// The whole URL, token and all: for the dialler and the store. Never for a log, an error or a list.
    pub fn reveal(&self) -> &str {
        &self.secret
    }

    /// Host and port.
    pub(super) fn authority(&self) -> &str {
        &self.authority
    }

    /// Which kind of access point it is, by its path.
    pub fn profile(&self) -> Profile {
        self.profile
    }

    /// Whose token it is: `agent_1234` where the token says so, else eight hex digits that stand for it.
    pub fn agent(&self) -> &str {
        &self.agent
    }

    /// When the token was made, seconds since 1970; `None` where it does not say.
    pub fn issued(&self) -> Option<u64> {
        self.issued
    }

    /// Until when the token holds, seconds since 1970; `None` where it does not say. Tokens go bad earlier, too.
    pub fn expires(&self) -> Option<u64> {
        self.expires
    }

    /// Whether two addresses are of the same agent at the same access point: only one of them may be dialled, since a relay
    /// throws out the first for the second, whatever their tokens look like.
    pub fn is_same_agent(&self, other: &Self) -> bool {
        (&self.authority, &self.agent) == (&other.authority, &other.agent)
    }

    /// Where a relay takes callers with the same token: the way by which an access point can be probed. `None` at the
    /// official one, which has none.
    pub(super) fn call_side(&self) -> Option<String> {
        let at = self.secret.find(RELAY_TOOL_SIDE).filter(|_| self.profile == Profile::Relay)?;
        Some(format!("{}{RELAY_CALL_SIDE}{}", &self.secret[..at], &self.secret[at + RELAY_TOOL_SIDE.len()..]))
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}?token=…", self.shown)
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Address({self}, {}, {})", self.profile.as_str(), self.agent)
    }
}

/// The token of a query as it stands there, and the other parameters, each with its `&`.
fn token_of(query: &str) -> Result<(Option<&str>, String), UrlError> {
    let (mut token, mut others) = (None, String::new());
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        match pair.strip_prefix("token=") {
            Some(found) if token.is_none() => token = Some(found),
            Some(_) => return Err(UrlError::TwoTokens),
            None => {
                others.push_str(pair);
                others.push('&');
            }
        }
    }
    Ok((token.filter(|token| !token.is_empty()), others))
}

/// A token without its percent signs. A plus stands for itself: a relay's token is base64 and has no spaces, and people
/// paste it either way. `None` if it has what no token has.
fn decoded(token: &str) -> Option<String> {
    let mut bytes = token.bytes();
    let mut decoded = String::with_capacity(token.len());
    while let Some(byte) = bytes.next() {
        let byte = if byte == b'%' {
            let mut digit = || char::from(bytes.next()?).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
            digit()? << 4 | digit()?
        } else {
            byte
        };
        if !byte.is_ascii_alphanumeric() && !b"-_.~+/=".contains(&byte) {
            return None;
        }
        decoded.push(char::from(byte));
    }
    Some(decoded)
}

/// A token as a query has it (RFC 3986): only what is unreserved stands for itself.
fn encoded(token: &str) -> String {
    let mut encoded = String::with_capacity(token.len());
    for c in token.chars() {
        match c {
            '+' => encoded.push_str("%2B"),
            '/' => encoded.push_str("%2F"),
            '=' => encoded.push_str("%3D"),
            c => encoded.push(c),
        }
    }
    encoded
}

#[derive(Default)]
struct Claims {
    agent: Option<String>,
    issued: Option<u64>,
    expires: Option<u64>,
}

/// What a token says of itself, if it is a JSON Web Token (RFC 7519) of an access point; older ones have no `exp`.
fn claims_of(token: &str) -> Claims {
    let parts: Vec<&str> = token.split('.').collect();
    let [_, payload, _] = parts.as_slice() else { return Claims::default() };
    let payload = URL_SAFE_NO_PAD.decode(payload.trim_end_matches('=')).unwrap_or_default();
    let Ok(claims) = serde_json::from_slice::<serde_json::Value>(&payload) else { return Claims::default() };
    let plain =
        |id: &str| (1..=64).contains(&id.len()) && id.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-.".contains(&b));
    let endpoint = claims["endpointId"].as_str().filter(|id| plain(id)).map(str::to_owned);
    let agent = || claims["agentId"].as_u64().map(|id| format!("agent_{id}"));
    Claims { agent: endpoint.or_else(agent), issued: claims["iat"].as_u64(), expires: claims["exp"].as_u64() }
}

fn hash_of(token: &str) -> String {
    let hash = Sha256::digest(token.as_bytes());
    hash.iter().map(|byte| format!("{byte:02x}")).collect::<String>()[..HASH_DIGITS].to_owned()
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test that fails there has said so")]
mod tests;
