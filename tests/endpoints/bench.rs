//! A hub's endpoints without a hub: who answers is scripted, so that hours pass in a moment and every answer is known.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures_util::future::BoxFuture;
use rmcp::model::{JsonObject, Tool};
use serde_json::json;
use tokio_util::sync::CancellationToken;
use truetwin::{
    answer::{self, Rendered},
    authz::{Policy, Principal, Style},
    endpoint::{EndWord, Endpoints, Host, Observer, Outside, Profile, Reach, Settings, State, parse_url},
    mcp::{Call, Guest, NoAnswer},
    names::Lang,
};

/// Far above what anything takes, in the time of the test.
const HANG: Duration = Duration::from_secs(3_600);

/// Answers after as many milliseconds as the call says, with what the call says.
pub(crate) struct Script {
    pub(crate) policy: Mutex<Policy>,
    revision: AtomicU64,
    tools: Mutex<Vec<String>>,
    /// Callers of finished calls, in order.
    pub(crate) callers: Mutex<Vec<String>>,
    pub(crate) cancelled: AtomicUsize,
}

impl Script {
    pub(crate) fn new(answer_by_ms: u64) -> Arc<Self> {
        let policy = Policy { lang: Lang::Zh, answer_by_ms, style: Style::Text, ..Policy::default() };
        Arc::new(Self {
            policy: Mutex::new(policy),
            revision: AtomicU64::new(0),
            tools: Mutex::new(vec!["switch_device".to_owned(), "ping".to_owned()]),
            callers: Mutex::default(),
            cancelled: AtomicUsize::new(0),
        })
    }

    /// Other tools from now on.
    pub(crate) fn tools_are(&self, tools: &[&str]) {
        *self.tools.lock().unwrap() = tools.iter().map(|tool| (*tool).to_owned()).collect();
        self.touch();
    }

    /// Something changed that may have changed tools.
    pub(crate) fn touch(&self) {
        self.revision.fetch_add(1, Ordering::SeqCst);
    }
}

impl Host for Script {
    fn guest(&self, endpoint: &str, session: &str) -> Option<Guest> {
        let policy = Arc::new(self.policy.lock().unwrap().clone());
        Some(Guest::new(Principal::Endpoint(endpoint.into()), session, policy))
    }

    fn tools(&self, _: &Guest) -> Vec<Tool> {
        assert!(!self.tools.lock().unwrap().contains(&"panic!".to_owned()), "as asked");
        let tool = |name: &String| Tool::new(name.clone(), "开关灯。", Arc::new(JsonObject::new()));
        self.tools.lock().unwrap().iter().map(tool).collect()
    }

    fn revision(&self) -> (u64, u64) {
        (self.revision.load(Ordering::SeqCst), 0)
    }

    fn call<'a>(
        &'a self,
        guest: &'a Guest,
        call: &'a Call,
        gone: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Rendered, NoAnswer>> {
        Box::pin(async move {
            if call.tool == "panic" {
                panic!("as asked");
            }
            if !self.tools.lock().unwrap().contains(&call.tool) {
                return Err(NoAnswer::NoSuchTool { tool: None, known: Vec::new() });
            }
            let ms = call.arguments.get("ms").and_then(serde_json::Value::as_u64).unwrap_or(0);
            tokio::select! {
                () = tokio::time::sleep(Duration::from_millis(ms)) => {}
                () = gone.cancelled() => {
                    self.cancelled.fetch_add(1, Ordering::SeqCst);
                    return Err(NoAnswer::Cancelled);
                }
            }
            self.callers.lock().unwrap().push(guest.caller.0.to_string());
            let say = call.arguments.get("say").and_then(serde_json::Value::as_str).unwrap_or("1");
            Ok(answer::pong(say, guest.policy.lang))
        })
    }
}

/// What was counted.
#[derive(Default)]
pub(crate) struct Counts {
    pub(crate) connected: AtomicUsize,
    pub(crate) late: AtomicUsize,
    pub(crate) garbage: AtomicUsize,
    ends: Mutex<Vec<EndWord>>,
    states: Mutex<BTreeMap<&'static str, usize>>,
}

impl Counts {
    pub(crate) fn ends(&self) -> Vec<EndWord> {
        self.ends.lock().unwrap().clone()
    }

    pub(crate) fn in_state(&self, state: State) -> usize {
        self.states.lock().unwrap().get(state.as_str()).copied().unwrap_or(0)
    }
}

impl Observer for Counts {
    fn are(&self, state: State, count: usize) {
        self.states.lock().unwrap().insert(state.as_str(), count);
    }

    fn connected(&self) {
        self.connected.fetch_add(1, Ordering::SeqCst);
    }

    fn ended(&self, word: EndWord) {
        self.ends.lock().unwrap().push(word);
    }

    fn late(&self) {
        self.late.fetch_add(1, Ordering::SeqCst);
    }

    fn garbage(&self) {
        self.garbage.fetch_add(1, Ordering::SeqCst);
    }
}

/// Endpoints over pipes.
pub(crate) struct Bench {
    pub(crate) endpoints: Endpoints,
    pub(crate) script: Arc<Script>,
    pub(crate) counts: Arc<Counts>,
}

impl Bench {
    pub(crate) fn new(reach: impl Reach, answer_by_ms: u64) -> Self {
        Self::with(Outside { reach: Arc::new(reach), ..Outside::default() }, answer_by_ms)
    }

    pub(crate) fn with(outside: Outside, answer_by_ms: u64) -> Self {
        let (script, counts) = (Script::new(answer_by_ms), Arc::new(Counts::default()));
        let endpoints = Endpoints::new(script.clone(), counts.clone(), outside);
        Self { endpoints, script, counts }
    }

    pub(crate) fn status(&self, name: &str) -> truetwin::endpoint::Status {
        self.endpoints.watch(name).unwrap().borrow().clone()
    }
}

pub(crate) const OFFICIAL_URL: &str = "ws://api.xiaozhi.me/mcp/?token=official";
pub(crate) const RELAY_URL: &str = "ws://relay:8004/mcp_endpoint/mcp/?token=relay%3D";

pub(crate) fn settings(name: &str, url: &str) -> Settings {
    let address = parse_url(url).unwrap();
    let profile: Profile = address.profile();
    Settings { name: name.into(), address, profile, boxes: 1 }
}

/// Looks again and again until something is so.
pub(crate) async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let by = tokio::time::Instant::now() + HANG;
    while !is_so() {
        assert!(tokio::time::Instant::now() < by, "it never came to pass: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Arguments of a call that takes so long and is answered with this.
pub(crate) fn takes(ms: u64, say: &str) -> serde_json::Value {
    json!({"ms": ms, "say": say})
}
