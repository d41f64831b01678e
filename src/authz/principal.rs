//! Who asks, as policies know it.

use std::{fmt, sync::Arc};

/// Who asks. A session of it (one of several connections or clients) is a [`crate::fleet::Caller`].
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Principal {
    /// A voice box's access point, by the name its owner gave it.
    Endpoint(Arc<str>),
    /// A bearer token over HTTP, by the name its owner gave it.
    Token(Arc<str>),
    /// HTTP on this machine without a token.
    Http,
    /// The client on standard input and output.
    Stdio,
    /// The owner's command line on this machine.
    Owner,
}

impl fmt::Display for Principal {
    /// The word in logs, audit and policies: `endpoint:kitchen`, `token:grafana`, `http`, `stdio`, `owner`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Endpoint(name) => write!(f, "endpoint:{name}"),
            Self::Token(name) => write!(f, "token:{name}"),
            Self::Http => f.write_str("http"),
            Self::Stdio => f.write_str("stdio"),
            Self::Owner => f.write_str("owner"),
        }
    }
}
