//! Logs: always on stderr, because in `mcp` stdout is the protocol.
//!
//! No token, password or code is ever in a log, whatever `RUST_LOG` says: what this program writes names none, and libraries that
//! would write requests, headers or URLs as they are stay below the level at which they do ([`CAPS`]). `tests/secrets.rs` greps.

use std::io::{self, IsTerminal as _, Write};

use tracing::{Level, Metadata};
use tracing_subscriber::{
    EnvFilter, Layer as _, filter::filter_fn, fmt, layer::SubscriberExt as _, util::SubscriberInitExt as _,
};

use super::{
    exit::{Exit, Failure},
    hint,
};

/// What is logged if `RUST_LOG` says nothing: rmcp tells each request at info, and a hub that is not there as an error of its
/// transport, which the command says in a sentence; rumqttd opens spans for each message at error,
/// and what can go wrong in it the bus watches for itself.
const DEFAULT: &str = "info,rmcp=warn,rmcp::transport=off,rumqttd=off";

/// The same for commands that are there to be read themselves: only what needs somebody's attention.
const QUIET: &str = "warn,rmcp::transport=off,rumqttd=off";

/// How much of others' words is logged at most, by the beginning of their targets; the first that fits counts. rmcp's transport
/// names whole session ids at info, with which a session could be taken over; rmcp writes calls with their arguments at
/// debug, HTTP libraries headers, WebSocket libraries the URL of a request, rumqttd payloads.
const CAPS: [(&str, Level); 9] = [
    ("rmcp::transport", Level::WARN),
    ("rmcp", Level::INFO),
    ("tungstenite", Level::WARN),
    ("tokio_tungstenite", Level::WARN),
    ("hyper", Level::INFO),
    ("reqwest", Level::INFO),
    ("rustls", Level::INFO),
    ("axum", Level::INFO),
    ("rumqttd", Level::INFO),
];

/// Starts logging; a second call changes nothing. `quiet`: the command's own words are what it is for.
pub(super) fn start(quiet: bool) -> Result<(), Failure> {
    let default = if quiet { QUIET } else { DEFAULT };
    let wanted = std::env::var("RUST_LOG").ok().filter(|text| !text.is_empty());
    let filter = EnvFilter::try_new(wanted.as_deref().unwrap_or(default))
        .map_err(|error| Failure { exit: Exit::Usage, message: format!("RUST_LOG cannot be read: {error}") })?;
    let colour = io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    let written =
        fmt::layer().with_writer(|| Told(io::stderr())).with_ansi(colour).with_filter(filter_fn(may_be_written));
    let _already_started = tracing_subscriber::registry().with(written).with(filter).try_init();
    Ok(())
}

/// Standard error, on which commands that a line names have the data folder. A line comes in one piece.
struct Told(io::Stderr);

impl Write for Told {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        match std::str::from_utf8(line) {
            Ok(text) if text.contains("truetwin ") => self.0.write_all(hint::complete(text).as_bytes())?,
            Ok(_) | Err(_) => self.0.write_all(line)?,
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

fn may_be_written(metadata: &Metadata<'_>) -> bool {
    let cap = CAPS.iter().find(|(target, _)| metadata.target().starts_with(target));
    cap.is_none_or(|(_, most)| metadata.level() <= most)
}
