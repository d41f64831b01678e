//! Access points of voice assistants: the hub dials out over `ws` or `wss` and is the MCP server there.
//!
//! An access point is kept connected by a task of its own, which nothing but its owner ends. The handshake, `ping` and the
//! list of tools are answered from memory, whatever the devices and the bus do; each call runs by itself and is answered
//! once, before the other side gives up, to the id that asked. There are two kinds, which behave differently
//! ([`Profile`]); what each wants of its line is in `schedule` and `tuning`.
//!
//! | file | what |
//! |---|---|
//! | `url` | the address of an access point, its token hidden; pure |
//! | `frames` | a frame to what it wants, an answer to a frame; pure |
//! | `schedule` | when it is dialled again; pure |
//! | `end` | why a connection ended |
//! | `tuning` | all times and bounds |
//! | `dial` | from an address to an open WebSocket |
//! | `socket` | one connection |
//! | `supervisor` | the task that keeps one access point connected |
//! | `status` | how one is doing, for its owner |
//! | `probe` | whether a relay leads to us: asked from its callers' side |
//! | `host` | who answers (the MCP server), and who counts |
//!
//! It must not know devices, configuration or where tokens are kept. What holds for the callers of an endpoint is in its
//! [`crate::authz::Policy`].

mod dial;
mod end;
mod frames;
mod host;
mod probe;
mod schedule;
mod socket;
mod status;
mod supervisor;
mod tuning;
mod url;

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use rustls::pki_types::CertificateDer;
use tokio::{
    sync::{Notify, watch},
    task::JoinHandle,
};
use tokio_util::sync::CancellationToken;

use self::{
    dial::Dialler,
    supervisor::{Census, Post},
};
pub use self::{
    dial::{Network, Reach, Wire},
    end::{End, EndWord},
    frames::{PROTOCOL, RESULT_BYTES_MAX},
    host::{Host, Observer, Uncounted},
    probe::{Probe, greeted_alone, probe_alone},
    status::{State, Status},
    tuning::Tuning,
    url::{Address, Profile, URL_BYTES_MAX, UrlError, parse_url, parse_url_with},
};

/// The most endpoints of one hub: a home has one for each agent of its assistants, and each is a task and a connection.
pub const ENDPOINTS_MAX: usize = 64;

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

/// How endpoints reach the world.
#[derive(Clone)]
pub struct Outside {
    /// Sockets, or what stands for them.
    pub reach: Arc<dyn Reach>,
    /// Authorities that are trusted for `wss` beside those that browsers trust.
    pub more_roots: Vec<CertificateDer<'static>>,
    /// Times and bounds.
    pub tuning: Tuning,
    /// Whether an earlier run may have left sockets behind that nobody closed: relays are then left alone for a while.
    pub is_unclean: bool,
}

impl Default for Outside {
    fn default() -> Self {
        Self { reach: Arc::new(Network), more_roots: Vec::new(), tuning: Tuning::default(), is_unclean: false }
    }
}

/// Why an endpoint was not added.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AddError {
    /// The name is taken.
    #[error("there is an endpoint {0} already")]
    SameName(Arc<str>),
    /// The agent is connected already. The official access point would list every tool twice, a relay throws the first out.
    #[error(
        "endpoints {name} and {other} are the same agent ({agent}) at {address}; one connection serves all its boxes, so remove one of them"
    )]
    SameAgent {
        /// The one to be added.
        name: Arc<str>,
        /// The one that is there.
        other: Arc<str>,
        /// Whose both are.
        agent: String,
        /// Where.
        address: String,
    },
    /// No more.
    #[error("there are {ENDPOINTS_MAX} endpoints already, the most that one hub takes")]
    TooMany,
    /// The hub stops.
    #[error("the hub is stopping")]
    Stopping,
}

/// There is no endpoint of that name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no endpoint {0}; truetwin endpoint list shows those there are")]
pub struct NoSuch(pub String);

/// All access points of a hub. Clones are the same set.
#[derive(Clone)]
pub struct Endpoints {
    shared: Arc<Shared>,
}

struct Shared {
    host: Arc<dyn Host>,
    observer: Arc<dyn Observer>,
    dialler: Arc<Dialler>,
    census: Arc<Census>,
    tuning: Tuning,
    /// Before this no relay is dialled that an earlier run may still be known at.
    relays_from: Instant,
    set: Mutex<Set>,
}

#[derive(Default)]
struct Set {
    kept: BTreeMap<Arc<str>, Kept>,
    /// Agents that were removed, and from when on they may be dialled again.
    left: Vec<(Address, Instant)>,
    is_stopping: bool,
}

struct Kept {
    post: Arc<Post>,
    task: JoinHandle<Instant>,
}

impl Endpoints {
    /// None yet.
    pub fn new(host: Arc<dyn Host>, observer: Arc<dyn Observer>, outside: Outside) -> Self {
        let Outside { reach, more_roots, tuning, is_unclean } = outside;
        let dialler = Arc::new(Dialler::new(reach, &more_roots));
        let wait = if is_unclean { tuning.unclean_pause } else { Duration::ZERO };
        let relays_from = now() + wait;
        let (census, set) = (Arc::default(), Mutex::default());
        Self { shared: Arc::new(Shared { host, observer, dialler, census, tuning, relays_from, set }) }
    }

    /// Adds one and dials it.
    ///
    /// # Errors
    /// [`AddError`]; then nothing has changed.
    pub fn add(&self, settings: Settings) -> Result<(), AddError> {
        let shared = &self.shared;
        let mut set = self.set();
        if set.is_stopping {
            return Err(AddError::Stopping);
        }
        if set.kept.contains_key(&settings.name) {
            return Err(AddError::SameName(settings.name));
        }
        let same = set.kept.values().find(|kept| kept.post.settings.address.is_same_agent(&settings.address));
        if let Some(same) = same {
            let (other, agent) = (same.post.settings.name.clone(), settings.address.agent().to_owned());
            let address = settings.address.to_string();
            return Err(AddError::SameAgent { name: settings.name, other, agent, address });
        }
        if set.kept.len() >= ENDPOINTS_MAX {
            return Err(AddError::TooMany);
        }
        let now = now();
        set.left.retain(|(_, until)| *until > now);
        let left = set.left.iter().filter(|(address, _)| address.is_same_agent(&settings.address)).map(|(_, at)| *at);
        let earliest = match settings.profile {
            Profile::Relay => left.chain([shared.relays_from]).max().unwrap_or(now),
            Profile::Official => now,
        };
        let post = Arc::new(Post {
            status: watch::Sender::new(Status::new(&settings)),
            tuning: shared.tuning.clone(),
            host: shared.host.clone(),
            observer: shared.observer.clone(),
            dialler: shared.dialler.clone(),
            stop: CancellationToken::new(),
            restart: Notify::new(),
            census: shared.census.clone(),
            settings,
        });
        shared.census.count(State::Waiting, true, &*shared.observer);
        let task = tokio::spawn(supervisor::keep(post.clone(), earliest));
        set.kept.insert(post.settings.name.clone(), Kept { post, task });
        Ok(())
    }

    /// Answers its calls, closes its connection and forgets it.
    ///
    /// # Errors
    /// [`NoSuch`].
    pub async fn remove(&self, name: &str) -> Result<(), NoSuch> {
        let kept = self.set().kept.remove(name).ok_or_else(|| NoSuch(name.to_owned()))?;
        let address = kept.post.settings.address.clone();
        let earliest = kept.end().await;
        self.shared.census.count(State::Stopped, false, &*self.shared.observer);
        self.set().left.push((address, earliest));
        Ok(())
    }

    /// Makes the set this one: what is not in it or is otherwise in it is removed, what is new is added. Tells what could not
    /// be added.
    pub async fn apply(&self, wanted: Vec<Settings>) -> Vec<AddError> {
        let is_wanted = |kept: &Kept| wanted.contains(&kept.post.settings);
        let over: Vec<Arc<str>> =
            self.set().kept.iter().filter(|(_, kept)| !is_wanted(kept)).map(|(name, _)| name.clone()).collect();
        futures_util::future::join_all(over.iter().map(|name| self.remove(name))).await;
        let is_new = |settings: &Settings| !self.set().kept.contains_key(&settings.name);
        wanted.into_iter().filter(is_new).filter_map(|settings| self.add(settings).err()).collect()
    }

    /// Dials it anew, as soon as that is safe; also one whose token was refused.
    ///
    /// # Errors
    /// [`NoSuch`].
    pub fn restart(&self, name: &str) -> Result<(), NoSuch> {
        self.post(name)?.restart.notify_one();
        Ok(())
    }

    /// How all of them are doing, ordered by name.
    pub fn statuses(&self) -> Vec<Status> {
        self.set().kept.values().map(|kept| kept.post.status.borrow().clone()).collect()
    }

    /// How one of them is doing, and what changes of that.
    ///
    /// # Errors
    /// [`NoSuch`].
    pub fn watch(&self, name: &str) -> Result<watch::Receiver<Status>, NoSuch> {
        Ok(self.post(name)?.status.subscribe())
    }

    /// Asks a relay from its callers' side whether it leads here: the only way to find out, since a relay that has lost a
    /// tool side leaves its socket open and silent.
    ///
    /// # Errors
    /// [`NoSuch`].
    pub async fn probe(&self, name: &str) -> Result<Probe, NoSuch> {
        let post = self.post(name)?;
        Ok(probe::probe(&post).await)
    }

    /// Answers what is still to be answered, closes all connections, and waits for it: some seconds at most. Whether all
    /// were closed so that no relay believes they are still there.
    pub async fn stop(&self) -> bool {
        let all = {
            let mut set = self.set();
            set.is_stopping = true;
            std::mem::take(&mut set.kept)
        };
        for kept in all.values() {
            kept.post.stop.cancel();
        }
        let (now, mut is_clean) = (now(), true);
        for kept in all.into_values() {
            let (pause, profile) = (self.shared.tuning.unclean_pause, kept.post.profile());
            let earliest = kept.end().await;
            is_clean &= profile == Profile::Official || earliest < now + pause;
        }
        is_clean
    }

    fn post(&self, name: &str) -> Result<Arc<Post>, NoSuch> {
        self.set().kept.get(name).map(|kept| kept.post.clone()).ok_or_else(|| NoSuch(name.to_owned()))
    }

    fn set(&self) -> MutexGuard<'_, Set> {
        self.shared.set.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    /// Ends its task; tells from when on the agent may be dialled again.
    async fn end(self) -> Instant {
        self.post.stop.cancel();
        self.task.await.unwrap_or_else(|_| now() + self.post.tuning.unclean_pause)
    }
}

impl fmt::Debug for Endpoints {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.set().kept.keys()).finish()
    }
}

/// The runtime's clock, so that hours can be tried in a moment.
fn now() -> Instant {
    tokio::time::Instant::now().into_std()
}
