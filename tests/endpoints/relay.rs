//! A fake self-hosted relay, with the faults that were measured at the real one: they come from how it locks and
//! unregisters, and so they do here.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::Value as Json;
use tokio::{
    sync::{mpsc, watch},
    time::{Instant, interval_at, sleep_until},
};
use tokio_tungstenite::{
    WebSocketStream, accept_hdr_async,
    tungstenite::{
        Message,
        handshake::server::{ErrorResponse, Request, Response},
        protocol::{CloseFrame, frame::coding::CloseCode},
    },
};
use truetwin::endpoint::Wire;

use super::wire::Door;

/// Uvicorn's: a ping each 20 s, 20 s for the pong.
const PING: Duration = Duration::from_secs(20);

/// How long the end of a socket takes to be noted: dialled again within it, a new socket is unregistered with the old.
const FINALLY: Duration = Duration::from_millis(10);

/// The token that the relay knows; another is refused after the upgrade.
pub(crate) const TOKEN: &str = "relay%3D";

/// What the relay saw of tool sides, in order.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Seen {
    Registered,
    Refused,
    /// A second one threw the first out.
    Replaced,
    /// The tool side closed, with this code.
    Closed(Option<u16>),
    /// Its line ended without a close frame.
    Lost,
    /// It did not answer a ping.
    PingTimeout,
    /// A frame whose id belongs to nobody.
    Unroutable(String),
}

type Out = mpsc::UnboundedSender<Message>;

struct Tool {
    out: Out,
    /// Its socket has been closed by both sides.
    is_closed: watch::Receiver<bool>,
}

#[derive(Default)]
struct Registry {
    tool: Option<Tool>,
    callers: BTreeMap<String, Out>,
}

#[derive(Default)]
struct Shared {
    /// The real relay's one lock, over awaits and all.
    lock: tokio::sync::Mutex<Registry>,
    seen: Mutex<Vec<(Instant, Seen)>>,
    next: AtomicU64,
    speed: AtomicU64,
}

/// The test's hand on the relay.
#[derive(Clone)]
pub(crate) struct Relay(Arc<Shared>);

impl Relay {
    /// `speed`: its pings come so many times as fast.
    pub(crate) fn start(mut door: Door, speed: u32) -> Self {
        let shared = Arc::new(Shared { speed: AtomicU64::new(speed.into()), ..Shared::default() });
        let relay = Self(shared.clone());
        tokio::spawn(async move {
            while let Some(wire) = door.accept().await {
                tokio::spawn(take(shared.clone(), wire));
            }
        });
        relay
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.0.seen.lock().unwrap().iter().map(|(_, seen)| seen.clone()).collect()
    }

    /// When things of this kind were seen.
    pub(crate) fn times(&self, wanted: &Seen) -> Vec<Instant> {
        self.0.seen.lock().unwrap().iter().filter(|(_, seen)| seen == wanted).map(|(at, _)| *at).collect()
    }

    /// Waits until a tool side registered for the `n`th time.
    pub(crate) async fn registered(&self, n: usize) {
        super::bench::until("it is registered", || self.times(&Seen::Registered).len() >= n).await;
    }

    /// Forgets the tool side and leaves its socket open.
    pub(crate) async fn forget(&self) {
        self.0.lock.lock().await.tool = None;
    }

    /// Hangs, for everybody, for ever.
    pub(crate) async fn hang(&self) {
        std::mem::forget(self.0.clone());
        let shared = self.0.clone();
        let (held, is_held) = tokio::sync::oneshot::channel();
        tokio::spawn(async move {
            let _lock = shared.lock.lock().await;
            held.send(()).unwrap();
            std::future::pending::<()>().await;
        });
        is_held.await.unwrap();
    }

    /// Sends the tool side a message as it is.
    pub(crate) async fn raw(&self, message: Message) {
        let registry = self.0.lock.lock().await;
        let _gone = registry.tool.as_ref().unwrap().out.send(message);
    }
}

impl Shared {
    fn saw(&self, seen: Seen) {
        self.seen.lock().unwrap().push((Instant::now(), seen));
    }

    fn ping_every(&self) -> Duration {
        PING / u32::try_from(self.speed.load(Ordering::Relaxed)).unwrap()
    }
}

async fn take(shared: Arc<Shared>, wire: Box<dyn Wire>) {
    let (mut path, mut query) = (String::new(), String::new());
    #[expect(clippy::result_large_err, reason = "the library's signature")]
    let look = |request: &Request, response: Response| -> Result<Response, ErrorResponse> {
        path = request.uri().path().to_owned();
        query = request.uri().query().unwrap_or_default().to_owned();
        Ok(response)
    };
    let Ok(mut line) = accept_hdr_async(wire, look).await else { return };
    if query != format!("token={TOKEN}") {
        shared.saw(Seen::Refused);
        let reason = format!("token解密失败: {}", query.trim_start_matches("token="));
        let _gone = line.close(Some(CloseFrame { code: CloseCode::Policy, reason: reason.as_str().into() })).await;
        while let Some(Ok(_)) = line.next().await {}
        return;
    }
    match path.as_str() {
        "/mcp_endpoint/mcp/" => tool_side(shared, line).await,
        "/mcp_endpoint/call/" => call_side(shared, line).await,
        path => panic!("{path}"),
    }
}

async fn tool_side(shared: Arc<Shared>, mut line: WebSocketStream<Box<dyn Wire>>) {
    let (out, mut orders) = mpsc::unbounded_channel();
    let (closed, is_closed) = watch::channel(false);
    {
        let mut registry = shared.lock.lock().await;
        if let Some(mut old) = registry.tool.take() {
            shared.saw(Seen::Replaced);
            let frame = CloseFrame { code: CloseCode::Normal, reason: "新连接替换".into() };
            let _gone = old.out.send(Message::Close(Some(frame)));
            // As the real one: with the lock in hand. Of a peer that does not answer it never comes back.
            let _closed = old.is_closed.wait_for(|closed| *closed).await;
        }
        registry.tool = Some(Tool { out, is_closed });
    }
    shared.saw(Seen::Registered);
    let every = shared.ping_every();
    let (mut pings, mut pong_by) = (interval_at(Instant::now() + every, every), None);
    let mut is_closing = false;
    loop {
        tokio::select! {
            message = line.next() => match message {
                Some(Ok(Message::Text(text))) => route(&shared, &text).await,
                Some(Ok(Message::Pong(_))) => pong_by = None,
                Some(Ok(Message::Close(frame))) => {
                    if !is_closing {
                        shared.saw(Seen::Closed(frame.map(|frame| frame.code.into())));
                    }
                    while let Some(Ok(_)) = line.next().await {}
                    break;
                }
                Some(Ok(_)) => {}
                Some(Err(_)) | None => {
                    shared.saw(Seen::Lost);
                    break;
                }
            },
            order = orders.recv(), if !is_closing => match order {
                Some(message) => {
                    is_closing = message.is_close();
                    let _gone = line.send(message).await;
                }
                // Forgotten; the socket stays.
                None => is_closing = true,
            },
            _ = pings.tick() => {
                let _gone = line.send(Message::Ping(Default::default())).await;
                pong_by = pong_by.or(Some(Instant::now() + every));
            }
            () = sleep_until(pong_by.unwrap_or_else(Instant::now)), if pong_by.is_some() && !is_closing => {
                shared.saw(Seen::PingTimeout);
                break;
            }
        }
    }
    drop(line);
    closed.send_replace(true);
    tokio::time::sleep(FINALLY).await;
    // As the real one: whichever socket is registered.
    shared.lock.lock().await.tool = None;
}

/// From the tool side to the box that the id names.
async fn route(shared: &Shared, text: &str) {
    let mut message: Json = serde_json::from_str(text).unwrap();
    let parts = message["id"].as_str().and_then(|id| id.split_once("_n_")).map(|(u, i)| (u.to_owned(), i.to_owned()));
    let registry = shared.lock.lock().await;
    let Some((out, id)) = parts.and_then(|(uuid, id)| Some((registry.callers.get(&uuid)?, id))) else {
        shared.saw(Seen::Unroutable(text.to_owned()));
        return;
    };
    message["id"] = id.parse::<u64>().map_or(Json::from(id), Json::from);
    let _gone = out.send(Message::text(escaped(&message)));
}

async fn call_side(shared: Arc<Shared>, mut line: WebSocketStream<Box<dyn Wire>>) {
    let number = shared.next.fetch_add(1, Ordering::Relaxed);
    let uuid = format!("{:08x}-1c2d-4e3f-8a4b-{number:012x}", number.wrapping_mul(2_654_435_761) & 0xffff_ffff);
    let (out, mut answers) = mpsc::unbounded_channel();
    shared.lock.lock().await.callers.insert(uuid.clone(), out);
    loop {
        tokio::select! {
            message = line.next() => match message {
                Some(Ok(Message::Text(text))) => {
                    if let Some(answer) = forward(&shared, &uuid, &text).await {
                        let _gone = line.send(Message::text(answer)).await;
                    }
                }
                Some(Ok(_)) => {}
                Some(Err(_)) | None => break,
            },
            Some(answer) = answers.recv() => {
                let _gone = line.send(answer).await;
            }
        }
    }
    shared.lock.lock().await.callers.remove(&uuid);
}

/// From a box to the tool side; what the relay itself answers.
async fn forward(shared: &Shared, uuid: &str, text: &str) -> Option<String> {
    let mut message: Json = serde_json::from_str(text).unwrap();
    let id = message["id"].clone();
    // `if original_id:`: neither none nor 0.
    if id.as_u64().is_some_and(|id| id > 0) {
        message["id"] = Json::from(format!("{uuid}_n_{id}"));
    }
    let registry = shared.lock.lock().await;
    let Some(tool) = &registry.tool else {
        let error = r#"{"code": -32001, "message": "工具端未连接"}"#;
        return Some(format!(r#"{{"result": null, "error": {error}, "id": {id}, "jsonrpc": "2.0"}}"#));
    };
    let _gone = tool.out.send(Message::text(escaped(&message)));
    None
}

/// As Python's `json.dumps` writes it.
fn escaped(message: &Json) -> String {
    let mut units = [0; 2];
    let text = message.to_string();
    let escape = |c: char| match c {
        c if c.is_ascii() => c.to_string(),
        c => c.encode_utf16(&mut units).iter().map(|unit| format!("\\u{unit:04x}")).collect(),
    };
    text.chars().map(escape).collect()
}
