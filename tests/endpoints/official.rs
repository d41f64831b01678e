//! A fake official access point, as its users' logs show the real one.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value as Json, json};
use tokio::{
    sync::{mpsc, oneshot},
    time::{Instant, sleep_until},
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

const INITIALIZE: &str = r#"{"id":0,"jsonrpc":"2.0","method":"initialize","params":{"protocolVersion":"2024-11-05","capabilities":{"sampling":{},"roots":{"listChanged":false}},"clientInfo":{"name":"xz-mcp-broker","version":"0.0.1"}}}"#;
const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
const LIST: &str = r#"{"id":1,"jsonrpc":"2.0","method":"tools/list","params":{}}"#;

/// The broker drops a longer answer.
const RESULT_BYTES_MAX: usize = 8_192;

/// How long a frozen line stays open.
const FROZEN: Duration = Duration::from_secs(3_600);

/// The times of the broker.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    pub(crate) handshake: Duration,
    pub(crate) ping: Duration,
    pub(crate) call: Duration,
}

impl Pace {
    /// As until the summer of 2026: 10 s for a call.
    pub(crate) const OLD: Self =
        Self { handshake: Duration::from_secs(10), ping: Duration::from_secs(60), call: Duration::from_secs(10) };
    /// As since then: 300 s.
    pub(crate) const NEW: Self = Self { call: Duration::from_secs(300), ..Self::OLD };
}

/// What the model is told of a call.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Told {
    /// `result` or `error` of the answer, as it came.
    Answer(Json),
    /// `Tool call was aborted due to timeout`.
    Aborted,
    /// The line was lost before.
    Lost,
}

impl Told {
    /// The text of the one item.
    pub(crate) fn text(&self) -> &str {
        let Self::Answer(answer) = self else { panic!("{self:?}") };
        answer["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer}"))
    }
}

/// What the broker saw, in order.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Seen {
    Opened(String),
    /// The tools went over.
    Tools(Vec<String>),
    /// A ping was answered after so long.
    Pong(Duration),
    /// The broker closed, because something was not answered.
    GaveUp,
    /// The other side closed, with this code.
    Closed(Option<u16>),
    /// The line ended without a close frame.
    Lost,
    /// An answer to a call that was given up.
    Late,
    /// A frame that answers nothing, or nothing any more.
    Unasked(String),
    /// A WebSocket ping of the other side.
    WsPing,
}

enum Order {
    Call(String, Json, oneshot::Sender<Told>),
    Ask(String, oneshot::Sender<Told>),
    Raw(Vec<Message>),
    Close(u16, &'static str),
    Drop,
    Freeze,
}

/// The test's hand on the broker.
#[derive(Clone)]
pub(crate) struct Official {
    orders: mpsc::UnboundedSender<Order>,
    seen: Arc<Mutex<Vec<(Instant, Seen)>>>,
}

impl Official {
    pub(crate) fn start(door: Door, pace: Pace) -> Self {
        let (orders, taken) = mpsc::unbounded_channel();
        let official = Self { orders, seen: Arc::default() };
        tokio::spawn(serve(door, pace, taken, official.seen.clone()));
        official
    }

    /// What the model is told of a call; it waits for a line.
    pub(crate) async fn call(&self, tool: &str, arguments: Json) -> Told {
        let (told, answer) = oneshot::channel();
        self.order(Order::Call(tool.to_owned(), arguments, told));
        answer.await.unwrap_or(Told::Lost)
    }

    /// The answer to any other method.
    pub(crate) async fn ask(&self, method: &str) -> Told {
        let (told, answer) = oneshot::channel();
        self.order(Order::Ask(method.to_owned(), told));
        answer.await.unwrap_or(Told::Lost)
    }

    /// Sends these as they are, in one go.
    pub(crate) fn raw(&self, messages: Vec<Message>) {
        self.order(Order::Raw(messages));
    }

    pub(crate) fn close(&self, code: u16, reason: &'static str) {
        self.order(Order::Close(code, reason));
    }

    /// Ends the line without a close frame.
    pub(crate) fn drop_line(&self) {
        self.order(Order::Drop);
    }

    /// Nobody reads or writes this line any more.
    pub(crate) fn freeze(&self) {
        self.order(Order::Freeze);
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().iter().map(|(_, seen)| seen.clone()).collect()
    }

    /// When things of this kind were seen.
    pub(crate) fn times(&self, wanted: impl Fn(&Seen) -> bool) -> Vec<Instant> {
        self.seen.lock().unwrap().iter().filter(|(_, seen)| wanted(seen)).map(|(at, _)| *at).collect()
    }

    pub(crate) fn handshakes(&self) -> usize {
        self.times(|seen| matches!(seen, Seen::Tools(_))).len()
    }

    /// Waits until the tools went over for the `n`th time.
    pub(crate) async fn handshaken(&self, n: usize) {
        super::bench::until("the tools went over", || self.handshakes() >= n).await;
    }

    fn order(&self, order: Order) {
        assert!(self.orders.send(order).is_ok(), "the broker has ended");
    }
}

enum Waiting {
    Initialize,
    List,
    Ping,
    Call(oneshot::Sender<Told>),
    /// The model was told that it was aborted.
    Aborted,
}

struct Broker {
    line: WebSocketStream<Box<dyn Wire>>,
    pace: Pace,
    next_id: u64,
    waiting: BTreeMap<u64, (Instant, Waiting)>,
    is_listed: bool,
    seen: Arc<Mutex<Vec<(Instant, Seen)>>>,
}

async fn serve(
    mut door: Door,
    pace: Pace,
    mut orders: mpsc::UnboundedReceiver<Order>,
    seen: Arc<Mutex<Vec<(Instant, Seen)>>>,
) {
    while let Some(wire) = door.accept().await {
        let mut path = String::new();
        #[expect(clippy::result_large_err, reason = "the library's signature")]
        let look = |request: &Request, response: Response| -> Result<Response, ErrorResponse> {
            path = request.uri().path().to_owned();
            Ok(response)
        };
        // Who dialled may have been cut off meanwhile.
        let accepted = tokio::time::timeout(pace.handshake, accept_hdr_async(wire, look)).await;
        let Ok(Ok(line)) = accepted else { continue };
        seen.lock().unwrap().push((Instant::now(), Seen::Opened(path)));
        let broker = Broker { line, pace, next_id: 2, waiting: BTreeMap::new(), is_listed: false, seen: seen.clone() };
        if broker.run(&mut orders).await.is_none() {
            return;
        }
    }
}

impl Broker {
    fn saw(&self, seen: Seen) {
        self.seen.lock().unwrap().push((Instant::now(), seen));
    }

    /// One connection; `None`: the test is over.
    async fn run(mut self, orders: &mut mpsc::UnboundedReceiver<Order>) -> Option<()> {
        self.waiting.insert(0, (Instant::now(), Waiting::Initialize));
        let _gone = self.line.send(Message::text(INITIALIZE)).await;
        let mut ping_at = Instant::now() + self.pace.ping;
        loop {
            let due = self.waiting.values().filter_map(|(since, waiting)| Some(*since + self.limit(waiting)?)).min();
            tokio::select! {
                message = self.line.next() => match message {
                    Some(Ok(Message::Text(text))) => self.heard(&text).await,
                    Some(Ok(Message::Close(frame))) => {
                        self.saw(Seen::Closed(frame.map(|frame| frame.code.into())));
                        while let Some(Ok(_)) = self.line.next().await {}
                        return Some(());
                    }
                    Some(Ok(Message::Ping(_))) => self.saw(Seen::WsPing),
                    Some(Ok(_)) => {}
                    Some(Err(_)) | None => {
                        self.saw(Seen::Lost);
                        return Some(());
                    }
                },
                order = orders.recv(), if self.is_listed => match order? {
                    Order::Call(tool, arguments, told) => {
                        let id = self.id(Waiting::Call(told));
                        let params = json!({"name": tool, "arguments": arguments, "serialNumber": null});
                        self.say(&json!({"id": id, "jsonrpc": "2.0", "method": "tools/call", "params": params})).await;
                    }
                    Order::Ask(method, told) => {
                        let id = self.id(Waiting::Call(told));
                        self.say(&json!({"id": id, "jsonrpc": "2.0", "method": method, "params": {}})).await;
                    }
                    Order::Raw(messages) => {
                        for message in messages {
                            let _gone = self.line.feed(message).await;
                        }
                        let _not_read = tokio::time::timeout(self.pace.handshake, self.line.flush()).await;
                    }
                    Order::Close(code, reason) => {
                        self.end(code, reason).await;
                        return Some(());
                    }
                    Order::Drop => return Some(()),
                    // The line stays open and nobody is there; others are taken.
                    Order::Freeze => {
                        self.waiting.clear();
                        tokio::spawn(async move {
                            tokio::time::sleep(FROZEN).await;
                            drop(self);
                        });
                        return Some(());
                    }
                },
                () = sleep_until(ping_at), if self.is_listed => {
                    ping_at = Instant::now() + self.pace.ping;
                    let id = self.id(Waiting::Ping);
                    self.say(&json!({"id": id, "jsonrpc": "2.0", "method": "ping", "params": {}})).await;
                }
                () = sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => {
                    if self.expired() {
                        self.saw(Seen::GaveUp);
                        self.end(4004, "Internal server error").await;
                        return Some(());
                    }
                }
            }
        }
    }

    fn limit(&self, waiting: &Waiting) -> Option<Duration> {
        match waiting {
            Waiting::Initialize | Waiting::List => Some(self.pace.handshake),
            Waiting::Ping => Some(self.pace.ping),
            Waiting::Call(_) => Some(self.pace.call),
            Waiting::Aborted => None,
        }
    }

    /// Aborts calls whose time is over; whether something else was not answered.
    fn expired(&mut self) -> bool {
        let now = Instant::now();
        let over: Vec<u64> = self
            .waiting
            .iter()
            .filter(|(_, (since, w))| self.limit(w).is_some_and(|l| *since + l <= now))
            .map(|(id, _)| *id)
            .collect();
        let mut is_dead = false;
        for id in over {
            match self.waiting.insert(id, (now, Waiting::Aborted)) {
                Some((_, Waiting::Call(told))) => {
                    let _test_gone = told.send(Told::Aborted);
                }
                _ => is_dead = true,
            }
        }
        is_dead
    }

    fn id(&mut self, waiting: Waiting) -> u64 {
        let id = self.next_id;
        self.next_id += 1;
        self.waiting.insert(id, (Instant::now(), waiting));
        id
    }

    async fn say(&mut self, message: &Json) {
        let _gone = self.line.send(Message::text(message.to_string())).await;
    }

    async fn end(&mut self, code: u16, reason: &'static str) {
        let frame = CloseFrame { code: CloseCode::from(code), reason: reason.into() };
        let _gone = self.line.close(Some(frame)).await;
        let closing = async { while let Some(Ok(_)) = self.line.next().await {} };
        let _in_time = tokio::time::timeout(self.pace.handshake, closing).await;
    }

    async fn heard(&mut self, text: &str) {
        let answer: Json = serde_json::from_str(text).unwrap_or_default();
        let id = answer["id"].as_u64();
        let Some((since, waiting)) = id.and_then(|id| self.waiting.remove(&id)) else {
            self.saw(Seen::Unasked(text.to_owned()));
            return;
        };
        match waiting {
            Waiting::Initialize => {
                assert_eq!(answer["result"]["protocolVersion"], "2024-11-05", "{text}");
                assert!(answer["result"]["capabilities"]["tools"].is_object(), "{text}");
                let _gone = self.line.feed(Message::text(INITIALIZED)).await;
                self.waiting.insert(1, (Instant::now(), Waiting::List));
                let _gone = self.line.send(Message::text(LIST)).await;
            }
            Waiting::List => {
                let tools = answer["result"]["tools"].as_array().unwrap_or_else(|| panic!("{text}"));
                let names = tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect();
                self.is_listed = true;
                self.saw(Seen::Tools(names));
            }
            Waiting::Ping => self.saw(Seen::Pong(since.elapsed())),
            Waiting::Call(told) => {
                assert!(text.len() <= RESULT_BYTES_MAX, "{} bytes", text.len());
                let _test_gone = told.send(Told::Answer(answer));
            }
            Waiting::Aborted => self.saw(Seen::Late),
        }
    }
}
