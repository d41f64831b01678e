//! Access points of voice assistants: the hub dials out over `ws` or `wss` and is the MCP server there.
//!
//! | file | what |
//! |---|---|
//! | `url` | the address of an access point, its token hidden |

mod url;

use std::sync::Arc;

pub use self::url::{Address, Profile, URL_BYTES_MAX, UrlError, parse_url, parse_url_with};

/// What the dialler is told of one access point. What holds for its callers is in their [`crate::authz::Policy`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// What its owner calls it; unique.
    pub name: Arc<str>,
    /// Where it is, token and all; shows itself without it.
    pub address: Address,
    /// How it behaves, if not as [`Address::profile`] says.
    pub profile: Profile,
    /// How many voice boxes speak through it: only with one is its room where the person stands.
    pub boxes: u32,
}
