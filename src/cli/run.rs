//! The commands that run something: each hands its arguments on and turns what came of it into an exit code.

use std::{
    future::Future,
    net::{SocketAddr, ToSocketAddrs as _},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use anyhow::Context as _;
use tokio_util::sync::CancellationToken;

use super::{DemoArgs, Exit, Failure, McpArgs, SimArgs, listen, say, secret, serve_config};
use crate::{
    config::Config,
    data::{self, DataFolder},
    demo, mcp,
    serve::Hub,
    sim,
};

/// How long `mcp` waits for a hub that holds the data folder and has not said yet where it listens.
const HUB_JSON_WITHIN: Duration = Duration::from_secs(5);

pub(super) async fn serve(config: Config, folder: PathBuf) -> anyhow::Result<Exit> {
    // Before anybody can know that it is up: who asks it to stop then must be heard.
    let stop = told_to_stop()?;
    let hub = hub(config, DataFolder::open(&folder)?).await?;
    say(&format!("mqtt: {}\nmcp: http://{}/mcp\ndata: {}\n", hub.mqtt_addr(), hub.http_addr(), folder.display()))?;
    stop.await;
    hub.stop().await;
    Ok(Exit::Success)
}

pub(super) async fn demo(args: DemoArgs) -> anyhow::Result<Exit> {
    let agreed = demo::run(args.lang, args.exit, told_to_stop()?).await?;
    Ok(if agreed { Exit::Success } else { Exit::NotConfirmed })
}

/// MCP on standard input and output: towards the hub that is named, or that runs on the data folder, or one inside.
pub(super) async fn mcp(args: McpArgs, folder: PathBuf) -> anyhow::Result<Exit> {
    let stop = CancellationToken::new();
    let (asked, stopping) = (told_to_stop()?, stop.clone());
    tokio::spawn(async move {
        asked.await;
        stopping.cancel();
    });
    let config = serve_config(&args.inside, None)?;
    let bridged = |hub| {
        let (lang, answer_within) = (config.language(), bridged(&config));
        mcp::BridgeSettings { hub, token: token().map(Into::into), lang, answer_within }
    };
    if let Some(url) = &args.hub {
        let url = mcp_url(url);
        mcp::bridge(bridged(Arc::new(move || Some(url.clone()))), stop).await.map_err(no_bridge)?;
        return Ok(Exit::Success);
    }
    match DataFolder::open(&folder) {
        Ok(data) => inside(config, data, stop).await,
        Err(data::Error::Taken { .. }) => {
            running(&folder).await?;
            // Read anew whenever the hub has to be found: it may have been restarted on another port.
            let hub = move || data::read_hub_json(&folder).ok().map(|hub| mcp_url(&hub.http));
            mcp::bridge(bridged(Arc::new(hub)), stop).await.map_err(no_bridge)?;
            Ok(Exit::Success)
        }
        Err(error) => Err(error.into()),
    }
}

/// The bearer token for the hub, from the environment: an argument would be in the list of processes.
fn token() -> Option<String> {
    std::env::var("TRUETWIN_TOKEN").ok().map(|token| token.trim().to_owned()).filter(|token| !token.is_empty())
}

/// A hub that cannot be reached is no hub, for whoever reads the exit code; one that wants another token is there.
fn no_hub(error: &mcp::ClientError) -> Failure {
    let exit = if matches!(error, mcp::ClientError::Token { .. }) { Exit::Usage } else { Exit::NoHub };
    Failure { exit, message: error.to_string() }
}

/// What a bridge ends with that found no hub.
fn no_bridge(error: mcp::BridgeError) -> anyhow::Error {
    match error {
        mcp::BridgeError::Hub(error) => no_hub(&error).into(),
        mcp::BridgeError::Handshake(_) => error.into(),
    }
}

/// How long a bridged call may take: the hub's own limit, as far as this process knows it, and the way there and back.
fn bridged(config: &Config) -> Duration {
    crate::config::ms(config.timing.answer_by_ms) + Duration::from_secs(5)
}

/// The hub inside the process of its only client; devices and other clients may use it as long as that stays.
async fn inside(config: Config, data: DataFolder, stop: CancellationToken) -> anyhow::Result<Exit> {
    let hub = hub(config, data).await?;
    let end_stdio = CancellationToken::new();
    let server = hub.parts().mcp_server(mcp::Transport::Stdio);
    let mut serving = tokio::spawn(mcp::stdio(server, end_stdio.clone()));
    let served = tokio::select! {
        served = &mut serving => served,
        () = stop.cancelled() => {
            // Whoever waits is answered first, and the answers are on their way when the session ends.
            hub.parts().fleet.shut_down().await;
            end_stdio.cancel();
            serving.await
        }
    };
    hub.stop().await;
    served.context("the MCP server failed")??;
    Ok(Exit::Success)
}

pub(super) fn sim(args: &SimArgs) -> anyhow::Result<Exit> {
    let (Some(mqtt), Some(device), Some(file)) = (&args.mqtt, &args.device, &args.password_file) else {
        return say(&sim::list()); // the arguments may be missing only with `--list`
    };
    if args.list {
        return say(&sim::list());
    }
    let usage = |message: String| Failure { exit: Exit::Usage, message };
    let password = secret::from_file(file)?;
    let fault = args.fault.as_deref().unwrap_or("none").parse().map_err(|error| usage(format!("{error}")))?;
    let kind = args.kind.as_deref().unwrap_or("socket").parse().map_err(|error| usage(format!("{error}")))?;
    sim::run(sim::Options {
        mqtt: address(mqtt).map_err(usage)?,
        device: device.to_string(),
        password: password.reveal().to_owned(),
        kind,
        speed: args.speed,
        fault,
        control: args.control,
        ..sim::Options::default()
    })?;
    Ok(Exit::Success)
}

/// An address as `HOST:PORT`, by number or by name. Asks the system's resolver, IPv4 first: it is the hub's default.
fn address(text: &str) -> Result<SocketAddr, String> {
    let example = "HOST:PORT is wanted, such as 127.0.0.1:1883 or hub.local:1883";
    let found = text.to_socket_addrs().map_err(|error| format!("--mqtt {text}: {error}; {example}"))?;
    found.min_by_key(SocketAddr::is_ipv6).ok_or_else(|| format!("--mqtt {text} has no address; {example}"))
}

/// One tool call on the running hub, through its MCP server.
pub(super) async fn call(
    tool: String,
    arguments: serde_json::Map<String, serde_json::Value>,
    folder: PathBuf,
) -> anyhow::Result<Exit> {
    let url = mcp_url(&data::read_hub_json(&folder)?.http);
    // A hub that was killed leaves its hub.json behind: that nobody answers there is all that is known.
    let client = mcp::Client::connect_as(&url, token().as_deref()).await.map_err(|error| no_hub(&error))?;
    let called = client.call(&tool, arguments.into()).await;
    let tools = match &called {
        Err(mcp::ClientError::Call(_)) => client.tools().await.ok(),
        _ => None,
    };
    client.close().await;
    if let Err(gone @ mcp::ClientError::Gone { .. }) = &called {
        return Err(no_hub(gone).into());
    }
    if let Some(tools) = tools.filter(|tools| !tools.contains(&tool)) {
        let lacks = mcp::Tool::parse(&tool).map(mcp::Tool::lacks).unwrap_or_default();
        let message = format!("the hub offers no tool {tool:?}{lacks}; it offers {}", tools.join(", "));
        return Err(Failure { exit: Exit::Usage, message }.into());
    }
    let answer = called?.structured;
    say(&format!("{answer:#}\n"))?;
    Ok(if answer["result"] == "confirmed" { Exit::Success } else { Exit::NotConfirmed })
}

/// Asks for as many open files as this process may have: many systems begin with 1024, which is fewer than the hub's own
/// bounds on connections. What stays then is the system's word, and a connection too many is refused.
fn raise_file_limit() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let wanted = rustix::process::Rlimit { current: limit.maximum, ..limit };
    if limit.current != limit.maximum
        && let Err(error) = setrlimit(Resource::Nofile, wanted)
    {
        tracing::warn!(%error, "the limit of open files stays at {:?}", limit.current);
    }
}

async fn hub(config: Config, data: DataFolder) -> anyhow::Result<Hub> {
    raise_file_limit();
    let bind = |address, flag| -> anyhow::Result<tokio::net::TcpListener> {
        let listener = listen(address, flag)?;
        tokio::net::TcpListener::from_std(listener).context("the listener cannot be used")
    };
    let (mqtt, http) = (bind(config.mqtt.listen, "--mqtt")?, bind(config.http.listen, "--http")?);
    Ok(Hub::start(config, data, mqtt, http).await?)
}

/// Where the hub that holds the folder listens; it may have locked the folder a moment before it says so.
async fn running(folder: &Path) -> Result<data::HubJson, data::Error> {
    let by = tokio::time::Instant::now() + HUB_JSON_WITHIN;
    loop {
        match data::read_hub_json(folder) {
            Err(data::Error::NoHub { .. }) if tokio::time::Instant::now() < by => {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            read => return read,
        }
    }
}

/// The MCP endpoint of a hub's URL, with or without its path.
fn mcp_url(hub: &str) -> String {
    let hub = hub.trim_end_matches('/');
    if hub.ends_with("/mcp") { hub.to_owned() } else { format!("{hub}/mcp") }
}

/// Ends with SIGTERM or SIGINT.
fn told_to_stop() -> anyhow::Result<impl Future<Output = ()>> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut terminate = signal(SignalKind::terminate()).context("cannot wait for SIGTERM")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("cannot wait for SIGINT")?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}
