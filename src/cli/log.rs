//! Logs: always on stderr, because in `mcp` stdout is the protocol.

use std::io::{self, IsTerminal as _};

use tracing_subscriber::{EnvFilter, fmt};

use super::exit::{Exit, Failure};

/// What is logged if `RUST_LOG` says nothing: rmcp tells each request at info, and a hub that is not there as an error of its
/// transport, which the command says in a sentence; rumqttd opens spans for each message at error,
/// and what can go wrong in it the bus watches for itself.
const DEFAULT: &str = "info,rmcp=warn,rmcp::transport=off,rumqttd=off";

/// The same for commands that are there to be read themselves: only what needs somebody's attention.
const QUIET: &str = "warn,rmcp::transport=off,rumqttd=off";

/// Starts logging; a second call changes nothing. `quiet`: the command's own words are what it is for.
pub(super) fn start(quiet: bool) -> Result<(), Failure> {
    let default = if quiet { QUIET } else { DEFAULT };
    let wanted = std::env::var("RUST_LOG").ok().filter(|text| !text.is_empty());
    let filter = EnvFilter::try_new(wanted.as_deref().unwrap_or(default))
        .map_err(|error| Failure { exit: Exit::Usage, message: format!("RUST_LOG cannot be read: {error}") })?;
    let colour = io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    let _already_started = fmt().with_env_filter(filter).with_writer(io::stderr).with_ansi(colour).try_init();
    Ok(())
}
