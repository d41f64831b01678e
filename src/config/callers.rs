//! Who may what, in the file: `[callers.http]`, `[callers.stdio]` and `[[endpoint]]`; where an endpoint's token comes from.
//!
//! Whether a URL is one of an access point, and what a selector selects, is decided where addresses and homes are known.

use std::{
    collections::BTreeMap,
    fmt, io,
    io::Read as _,
    path::{Path, PathBuf},
};

use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

use super::{
    Config, Error,
    read::{Place, Reader, in_order},
    schema::{CallerText, EndpointText},
    setting::{Scalar, Setting},
};
use crate::{
    private::{self, Refused},
    property::DeviceId,
};

/// The key that holds the callers of this machine.
pub(super) const CALLERS: &str = "callers";

/// The key that holds the access points.
pub(super) const ENDPOINT: &str = "endpoint";

/// How many access points there may be: one for each agent of a home, and each is a connection and a task.
const ENDPOINTS_MAX: usize = 64;

/// The largest file with a token, bytes; those that were seen have some 400.
const TOKEN_BYTES_MAX: u64 = 4_096;

/// The callers of this machine.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Callers {
    /// HTTP without a token.
    pub http: CallerText,
    /// The client on standard input and output of a hub of its own.
    pub stdio: CallerText,
}

/// A text that is shown nowhere: not by [`fmt::Debug`], not by `check-config`.
#[derive(Clone, PartialEq, Eq)]
pub struct SecretText(String);

impl SecretText {
    /// A secret.
    pub fn new(text: &str) -> Self {
        Self(text.to_owned())
    }

    /// The text itself, for whoever dials.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// Whether it is a URL with a token in it.
    fn holds_token(&self) -> bool {
        self.0.contains("token=")
    }

    /// It without the value of its token.
    fn shown(&self) -> String {
        match self.0.split_once("token=") {
            None => self.0.clone(),
            Some((before, _)) => format!("{before}token=..."),
        }
    }
}

impl fmt::Debug for SecretText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown())
    }
}

impl Setting for SecretText {
    fn scalar(&self) -> Option<Scalar> {
        Some(Scalar::Text(self.shown()))
    }

    fn from_scalar(scalar: &Scalar) -> Option<Self> {
        String::from_scalar(scalar).map(Self)
    }
}

/// Why an endpoint's token cannot be had. Never quotes it.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// The file cannot be read.
    #[error("endpoint {endpoint}: cannot read token_file {}", path.display())]
    Unreadable {
        /// The endpoint.
        endpoint: String,
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// Others can read it.
    #[error(
        "endpoint {endpoint}: others may read token_file {path} (mode {mode:04o}); mend it with: chmod 600 {path}",
        path = path.display()
    )]
    Exposed {
        /// The endpoint.
        endpoint: String,
        /// The file.
        path: PathBuf,
        /// Its mode.
        mode: u32,
    },
    /// It holds no token.
    #[error("endpoint {endpoint}: token_file {} holds no token, one line of at most {TOKEN_BYTES_MAX} bytes", path.display())]
    Empty {
        /// The endpoint.
        endpoint: String,
        /// The file.
        path: PathBuf,
    },
    /// The variable is not set.
    #[error("endpoint {endpoint}: the environment variable {variable} of token_env is not set")]
    NoVariable {
        /// The endpoint.
        endpoint: String,
        /// The variable.
        variable: String,
    },
}

/// The token of an endpoint that has it beside its URL; `None` if it has it in there, or elsewhere. Reads the file anew.
///
/// # Errors
/// [`TokenError`].
pub fn endpoint_token(endpoint: &EndpointText) -> Result<Option<SecretText>, TokenError> {
    let name = || endpoint.name.clone().unwrap_or_default();
    if let Some(variable) = &endpoint.token_env {
        let token = std::env::var(variable).ok().filter(|token| !token.trim().is_empty());
        let missing = || TokenError::NoVariable { endpoint: name(), variable: variable.clone() };
        return token.map(|token| Some(SecretText::new(token.trim()))).ok_or_else(missing);
    }
    let Some(path) = endpoint.token_file.as_ref().map(PathBuf::from) else { return Ok(None) };
    let unreadable = |source| TokenError::Unreadable { endpoint: name(), path: path.clone(), source };
    let file = match private::open(&path) {
        Ok(file) => file,
        Err(Refused::Io(source)) => return Err(unreadable(source)),
        Err(Refused::Exposed { mode }) => return Err(TokenError::Exposed { endpoint: name(), path, mode }),
    };
    let mut text = String::new();
    file.take(TOKEN_BYTES_MAX + 1).read_to_string(&mut text).map_err(unreadable)?;
    let token = text.trim();
    if token.is_empty() || text.len() as u64 > TOKEN_BYTES_MAX || token.contains(char::is_whitespace) {
        return Err(TokenError::Empty { endpoint: name(), path });
    }
    Ok(Some(SecretText::new(token)))
}

/// A token in a file that others can read is no secret.
pub(super) fn check_file(config: &Config, places: &BTreeMap<String, Place>, path: &Path) -> Result<(), Error> {
    let holds = |endpoint: &EndpointText| endpoint.url.as_ref().is_some_and(SecretText::holds_token);
    let Some(at) = config.endpoints.iter().position(holds) else { return Ok(()) };
    let metadata = path.metadata().map_err(|source| Error::Unreadable { path: path.to_owned(), source })?;
    let key = format!("{ENDPOINT}.{at}.url");
    match places.get(&key).zip(private::exposed(&metadata.permissions())) {
        Some((place, mode)) => Err(Error::Exposed { place: place.clone(), key, mode, path: path.to_owned() }),
        None => Ok(()),
    }
}

/// Relative paths in a file begin where the file is.
pub(super) fn anchor(config: &mut Config, path: &Path) {
    let Some(folder) = path.parent() else { return };
    let Config { mqtt, endpoints, recording, confirm, .. } = config;
    let tokens = endpoints.iter_mut().map(|endpoint| endpoint.token_file.as_mut());
    let others = [&mut mqtt.tls_cert_file, &mut mqtt.tls_key_file, &mut recording.file, &mut confirm.code_file];
    for file in tokens.chain(others.map(Option::as_mut)).flatten() {
        *file = folder.join(&*file).display().to_string();
    }
}

impl Reader<'_> {
    /// The callers of this machine.
    pub(super) fn callers(&mut self, table: &DeTable<'_>) -> Result<Callers, Error> {
        let mut callers = Callers::default();
        for (name, at, value) in in_order(table) {
            let path = format!("{CALLERS}.{name}");
            let into = match name {
                "http" => &mut callers.http,
                "stdio" => &mut callers.stdio,
                _ => {
                    let known = ["http", "stdio"].map(str::to_owned).to_vec();
                    return Err(Error::UnknownKey { place: self.place(at), key: path, near: None, known });
                }
            };
            self.whole(&path, self.table(&path, value)?, into)?;
        }
        Ok(callers)
    }

    /// The access points, in the order of the file.
    pub(super) fn endpoints(&mut self, value: &Spanned<DeValue<'_>>) -> Result<Vec<EndpointText>, Error> {
        let listed = self.array(ENDPOINT, value, ENDPOINTS_MAX, "1 to 64 tables, each headed [[endpoint]]")?;
        let mut endpoints: Vec<EndpointText> = Vec::new();
        for (at, value) in listed.iter().enumerate() {
            let path = format!("{ENDPOINT}.{at}");
            let mut endpoint = EndpointText::default();
            self.whole(&path, self.table(&path, value)?, &mut endpoint)?;
            let Some(name) = &endpoint.name else { return Err(self.bad(value, path, "without a name", "a name")) };
            // As plain as a device's id: it stands in callers, logs and the audit.
            if DeviceId::new(name).is_err() {
                return Err(self.bad(
                    value,
                    format!("{path}.name"),
                    &format!("{name:?}"),
                    "1 to 32 of a-z, 0-9, _ and -",
                ));
            }
            if endpoints.iter().any(|known| known.name == endpoint.name) {
                return Err(self.bad(value, path, &format!("{name:?} a second time"), "a name of its own"));
            }
            let tokens = [endpoint.token_file.is_some(), endpoint.token_env.is_some()];
            let in_url = endpoint.url.as_ref().is_some_and(SecretText::holds_token);
            if tokens.into_iter().chain([in_url]).filter(|given| *given).count() > 1 {
                return Err(self.bad(value, path, "with several tokens", "one, in url, token_file or token_env"));
            }
            if endpoint.url.is_none() && tokens.contains(&true) {
                return Err(self.bad(value, path, "with a token and without a url", "a url for the token"));
            }
            endpoints.push(endpoint);
        }
        Ok(endpoints)
    }
}
