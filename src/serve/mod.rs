//! The composition root: builds the parts, connects them, runs them, and stops them in order. The only module that knows
//! all others.

mod access;
pub mod added;
mod audited;
mod bearer;
mod beyond;
mod bounded;
mod configured;
mod confirm;
mod doorkeeper;
mod endpoints;
mod http;
mod observer;
mod owner;
mod parts;
mod points;
mod quiet;
mod recorded;
mod recovered;
mod retained;
mod settings;
mod startable;
mod unknown;

use std::{
    io,
    net::SocketAddr,
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::{net::TcpListener, task::JoinHandle};
use tokio_util::sync::CancellationToken;

pub use self::{
    beyond::Unguarded,
    confirm::{Error as SpokenCodeError, spoken_code},
    parts::Parts,
    settings::tls_files,
    startable::{Mistake, mistakes},
    unknown::{Described, unknown},
};
use self::{bounded::Bounded, doorkeeper::Doorkeeper, quiet::Quiet};
use crate::{
    audit::Audit,
    authz::{Access, confirm::Presses},
    broker::{self},
    config::{Config, TlsMode, ms},
    control,
    data::{self, DataFolder},
    device::Context,
    dialect::native::Identity,
    endpoint::{self, Outside},
    fleet::{self, Fleet},
    ingress::Ingress,
    journal::{self},
    mcp,
    metrics::{Metrics, UPKEEP_EVERY},
    recorder::{self, Recorder},
};

/// HTTP connections for each session allowed: its stream, a call or two beside it, and something for Prometheus.
const CONNECTIONS_PER_SESSION: usize = 4;

/// How long HTTP may take to hand over its last answers once the hub stops. rmcp keeps streams open for their clients; what
/// has not ended by then is closed.
const HTTP_STOP_MAX: Duration = Duration::from_secs(2);

/// Why a hub could not be started, or a device not be added.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The broker.
    #[error("the broker cannot be started")]
    Broker(#[from] broker::Error),
    /// The actor system.
    #[error("the actors cannot be started")]
    Actors(#[from] ractor::SpawnErr),
    /// The data folder.
    #[error("the data folder cannot be used")]
    Data(#[from] data::Error),
    /// The control socket.
    #[error("the control socket cannot be opened")]
    Control(#[from] control::Error),
    /// The journal.
    #[error(transparent)]
    Journal(#[from] journal::Error),
    /// The journal's reader died.
    #[error("the journal cannot be opened")]
    Recovery,
    /// The recording.
    #[error("nothing can be recorded")]
    Recording(#[from] recorder::Error),
    /// The recording's opener died.
    #[error("the recording cannot be opened")]
    Recorder,
    /// The audit's reader died.
    #[error("the audit cannot be opened")]
    Audit,
    /// A listener.
    #[error("the listener has no address")]
    Listener(#[source] io::Error),
    /// A listener that others can reach, without credentials.
    #[error(transparent)]
    Unguarded(#[from] Unguarded),
    /// The code that is said aloud.
    #[error(transparent)]
    SpokenCode(#[from] SpokenCodeError),
    /// A device.
    #[error(transparent)]
    Fleet(#[from] fleet::Error),
}

/// A running hub.
pub struct Hub {
    parts: Arc<Parts>,
    http: JoinHandle<()>,
    ingress: JoinHandle<()>,
    upkeep: JoinHandle<()>,
    control: JoinHandle<()>,
    dialled: JoinHandle<()>,
    /// Ends the control socket, then, once everybody was answered, HTTP.
    stop_control: CancellationToken,
    stop_http: CancellationToken,
    http_addr: SocketAddr,
    /// The journal's threads.
    running: Option<journal::Running>,
    /// What is recorded for a replay.
    recorder: Option<Arc<Recorder>>,
    /// Held until the end: the lock on the folder, and `hub.json` in it.
    data: DataFolder,
}

impl Hub {
    /// Builds and starts a hub on bound listeners: whoever binds decides on the ports.
    ///
    /// # Errors
    /// [`Error`], with the part that could not be started.
    pub async fn start(config: Config, data: DataFolder, mqtt: TcpListener, http: TcpListener) -> Result<Self, Error> {
        Self::start_towards(Outside::default(), config, data, mqtt, http).await
    }

    /// As [`Hub::start`], with another way to access points and other times for them.
    ///
    /// # Errors
    /// As [`Hub::start`].
    pub async fn start_towards(
        outside: Outside,
        config: Config,
        data: DataFolder,
        mqtt: TcpListener,
        http: TcpListener,
    ) -> Result<Self, Error> {
        let started = Instant::now();
        let (mqtt_addr, http_addr) =
            (mqtt.local_addr().map_err(Error::Listener)?, http.local_addr().map_err(Error::Listener)?);
        beyond::check(mqtt_addr, http_addr, &data)?;
        if !mqtt_addr.ip().is_loopback() && config.mqtt.tls == TlsMode::Off {
            tracing::warn!(%mqtt_addr, "mqtt.tls is \"off\": passwords of devices cross the network as they are");
        }
        if config.mqtt.tls == TlsMode::Only {
            tracing::info!("mqtt.tls is \"only\": a device or a program that speaks plain MQTT is refused");
        }
        let (journal, mut recovered, running) = recovered::open(data.path().to_owned(), &config.journal).await?;
        let recorder = recorded::begin(&config).await?;
        let (config, metrics, credentials) = (Arc::new(config), Metrics::new(), data.credentials());
        let accounts = data.accounts();
        let access = Arc::new(Doorkeeper::new(credentials.clone(), accounts.clone()));
        let memory = retained::memory(journal.clone(), std::mem::take(&mut recovered.retained));
        let settings = settings::door(&config, data.path());
        let (broker, heard) = broker::start_with(mqtt, access, settings, memory).await?;
        let settings = settings::twin(&config, started);
        let epoch = u32::try_from(data.epoch()).unwrap_or(u32::MAX);
        let identity = Identity { hub: data.hub_id().into(), epoch, heartbeat: settings.heartbeat, started };
        let context = Context::new(broker.clone(), metrics.clone(), identity, settings);
        let context = Arc::new(context.with_journal(journal.clone()).with_recorder(recorder.clone()));
        let limits = fleet::Limits {
            restarts_max: config.limits.actor_restarts_max,
            restarts_within: ms(config.limits.actor_restarts_window_ms),
        };
        let fleet = Fleet::start(context, limits).await?;
        let mut found = recovered::Found::new(recovered, &config, epoch);
        for note in unknown(&config, &credentials.list(), &found.described) {
            tracing::warn!("{note}");
        }
        for device in credentials.list() {
            let memory = found.take(&device);
            fleet.remember(config.name(&device), memory).await?;
        }
        let (folder, endpoints, tokens) = (data.path().to_owned(), data.endpoints(), data.tokens());
        let audited = folder.clone();
        let audit = tokio::task::spawn_blocking(move || Audit::open(&audited)).await.map_err(|_| Error::Audit)?;
        let presses = Arc::new(Presses::of(config.buttons()));
        let confirmer = Arc::new(confirm::confirmer(&config, presses.clone())?);
        let access: Arc<dyn Access> = Arc::new(access::Policies::new(&config, endpoints.clone(), tokens.clone()));
        let quiet = Arc::new(Quiet::default());
        let auditor = Arc::new(audited::Auditor::new(&audit, &fleet, &config, &quiet));
        let observer = Arc::new(observer::Watching { metrics: metrics.clone(), auditor: auditor.clone() });
        let (scenes, http_first) = (config.scenes(), mcp::Transport::Http);
        let server = mcp::Server::new(fleet.clone(), access.clone(), scenes, http_first, observer, confirmer);
        let counted = Arc::new(observer::Counted(metrics.clone()));
        let outside = Outside { is_unclean: data.sockets_open()?, ..outside };
        let lines = endpoint::Endpoints::new(Arc::new(server.clone()), counted, outside);
        let parts = Parts {
            fleet,
            broker,
            credentials,
            accounts,
            endpoints,
            tokens,
            journal: journal.clone(),
            access,
            folder,
            metrics,
            audit,
            config,
            lines,
            auditor,
            server,
            quiet,
        };
        let parts = Arc::new(parts);
        let (broker, metrics) = (parts.broker.clone(), parts.metrics.clone());
        let ingress = Ingress::new(parts.fleet.clone(), broker, metrics, parts.config.clone(), presses)
            .knowing(std::mem::take(&mut found.described));
        let ingress = tokio::spawn(ingress.run(heard));
        let (stop_http, stop_control) = (CancellationToken::new(), CancellationToken::new());
        let connections_max = parts.config.http.sessions_max * CONNECTIONS_PER_SESSION;
        let http = tokio::spawn(http::serve(
            Bounded::new(http, connections_max),
            http::router(&parts, &stop_http),
            stop_http.clone(),
        ));
        let upkeep = tokio::spawn(keep_up(parts.metrics.clone(), parts.quiet.clone()));
        let socket = control::Server::bind(&data)?;
        let control = tokio::spawn(socket.run(owner::Owner::new(parts.clone()), stop_control.clone()));
        let dialled = tokio::spawn(endpoints::keep(
            parts.lines.clone(),
            parts.config.clone(),
            data.endpoints(),
            stop_control.clone(),
        ));
        data.write_hub_json(mqtt_addr, http_addr, settings::tls_word(parts.config.mqtt.tls), std::process::id())?;
        tracing::info!(mqtt = %mqtt_addr, http = %http_addr, epoch = data.epoch(), "the hub is up");
        Ok(Self {
            parts,
            http,
            ingress,
            upkeep,
            control,
            dialled,
            stop_control,
            stop_http,
            http_addr,
            running,
            recorder,
            data,
        })
    }

    /// Where devices connect.
    pub fn mqtt_addr(&self) -> SocketAddr {
        self.parts.broker.local_addr()
    }

    /// Where MCP clients connect.
    pub fn http_addr(&self) -> SocketAddr {
        self.http_addr
    }

    /// The folder it works in.
    pub fn data(&self) -> &DataFolder {
        &self.data
    }

    /// What the edges work with.
    pub fn parts(&self) -> &Arc<Parts> {
        &self.parts
    }

    /// Stops in order: every waiting caller is answered and hears it, what was in flight is withdrawn from its device,
    /// then the connections are closed.
    pub async fn stop(self) {
        tracing::info!("stopping: answering everybody who waits");
        self.parts.fleet.shut_down().await;
        self.stop_control.cancel();
        self.stop_http.cancel();
        let closed = self.parts.lines.stop().await;
        if closed && let Err(error) = self.data.sockets_closed() {
            tracing::warn!(%error, "the next start waits a minute before it dials relays");
        }
        let _ended_with_the_endpoints = self.dialled.await;
        let abort = self.http.abort_handle();
        if tokio::time::timeout(HTTP_STOP_MAX, self.http).await.is_err() {
            abort.abort();
        }
        let _ended_within_a_second = self.control.await;
        self.parts.broker.stop().await;
        let _ended_with_the_broker = self.ingress.await;
        self.upkeep.abort();
        let audit = self.parts.audit.clone();
        let _it_has_said_what_went_wrong = tokio::task::spawn_blocking(move || audit.close()).await;
        if let Some(recorder) = self.recorder {
            let _it_has_said_what_went_wrong = tokio::task::spawn_blocking(move || recorder.close()).await;
        }
        if let (Some(running), Some(journal)) = (self.running, self.parts.journal.clone()) {
            let _it_has_said_what_went_wrong = tokio::task::spawn_blocking(move || running.close(journal)).await;
        }
        tracing::info!("stopped");
    }
}

/// Sorts the histograms' observations, so that they do not pile up where nobody asks; tells what was not written to the log.
async fn keep_up(metrics: Metrics, quiet: Arc<Quiet>) {
    let mut every = tokio::time::interval(UPKEEP_EVERY);
    loop {
        every.tick().await;
        metrics.upkeep();
        quiet.tell(Instant::now());
    }
}
