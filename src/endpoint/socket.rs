//! One connection, from the upgrade to its end: frames are answered, calls run beside one another, `ping` waits for nobody.

use std::{panic::AssertUnwindSafe, sync::Arc, time::SystemTime};

use futures_util::{FutureExt as _, SinkExt as _, StreamExt as _};
use tokio::{
    task::JoinSet,
    time::{Instant, MissedTickBehavior, interval, sleep_until, timeout, timeout_at},
};
use tokio_tungstenite::tungstenite::{
    self, Message,
    protocol::{CloseFrame, frame::coding::CloseCode},
};
use tokio_util::sync::CancellationToken;

use super::{
    End, EndWord,
    dial::Line,
    frames::{self, Code, Id, Incoming},
    supervisor::Post,
};
use crate::{
    answer::{self, Trouble},
    authz::Policy,
    mcp::{Call, Guest, NoAnswer},
    names::Lang,
    twin::words::Refusal,
};

/// Longest name of a tool in the log, characters: it comes from outside.
const TOOL_CHARS_MAX: usize = 32;

/// One connection.
pub(super) struct Session<'a> {
    line: Line,
    post: &'a Arc<Post>,
    /// Each gives the frame of its answer; `None` if none fits into a frame.
    calls: JoinSet<Option<String>>,
    gone: CancellationToken,
    began: Instant,
    /// When the last sign of life came.
    heard: Instant,
    tools: Sent,
}

/// The tools as they went over.
#[derive(Default)]
struct Sent {
    /// As JSON; `None` before they were asked for.
    list: Option<String>,
    /// The revision that was compared last.
    seen: (u64, u64),
    /// Since when they have been other ones.
    differ_since: Option<Instant>,
}

impl<'a> Session<'a> {
    pub(super) fn new(line: Line, post: &'a Arc<Post>) -> Self {
        let now = Instant::now();
        let (calls, gone) = (JoinSet::new(), CancellationToken::new());
        Self { line, post, calls, gone, began: now, heard: now, tools: Sent::default() }
    }

    /// Serves until it ends.
    pub(super) async fn run(mut self) -> End {
        let end = match self.serve().await {
            Ok(never) => match never {},
            Err(end) => end,
        };
        // Whoever called cannot be answered any more; those who work for them are told and end.
        self.gone.cancel();
        let ending = async { while self.calls.join_next().await.is_some() {} };
        let _or_aborted_with_the_set = timeout(self.post.tuning.drain, ending).await;
        end
    }

    async fn serve(&mut self) -> Result<std::convert::Infallible, End> {
        let post = self.post;
        let tuning = &post.tuning;
        let silence = tuning.silence(post.profile());
        let mut look = interval(tuning.look);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let ping_every = tuning.ping_every(post.profile());
        let mut ping_at = ping_every.map(|every| self.began + every);
        let mut stop_by = None;
        loop {
            if let Some(by) = stop_by
                && (self.calls.is_empty() || Instant::now() >= by)
            {
                self.end_calls().await?;
                return Err(self.close(EndWord::Stopped).await);
            }
            tokio::select! {
                message = self.line.next() => self.take(message).await?,
                Some(done) = self.calls.join_next() => {
                    if let Ok(Some(frame)) = done {
                        self.send(Message::text(frame)).await?;
                    }
                }
                () = sleep_until(self.heard + silence) => return Err(End::new(EndWord::Silent)),
                () = sleep_until(ping_at.unwrap_or(self.began)), if ping_at.is_some() => {
                    self.send(Message::Ping(Default::default())).await?;
                    ping_at = ping_every.map(|every| Instant::now() + every);
                }
                () = sleep_until(stop_by.unwrap_or(self.began)), if stop_by.is_some() => {}
                _ = look.tick() => {
                    if self.must_renew() {
                        return Err(self.close(EndWord::ToolsChanged).await);
                    }
                }
                () = post.stop.cancelled(), if stop_by.is_none() => stop_by = Some(Instant::now() + tuning.drain),
                () = post.restart.notified() => {
                    self.end_calls().await?;
                    return Err(self.close(EndWord::Restarted).await);
                }
            }
        }
    }

    /// A message, or the end of the line.
    async fn take(&mut self, message: Option<Result<Message, tungstenite::Error>>) -> Result<(), End> {
        let text = match message {
            Some(Ok(Message::Text(text))) => text,
            // Not what the protocol wants; but a text it may be.
            Some(Ok(Message::Binary(bytes))) => match bytes.try_into() {
                Ok(text) => text,
                Err(_) => {
                    self.heard = Instant::now();
                    self.post.garbage();
                    return Ok(());
                }
            },
            Some(Ok(Message::Ping(_))) => {
                self.heard = Instant::now();
                return Ok(());
            }
            // The answer to our own ping says that some machine on the way lives, not that the access point does.
            Some(Ok(Message::Pong(_) | Message::Frame(_))) => return Ok(()),
            Some(Ok(Message::Close(frame))) => return Err(self.closed(frame).await),
            Some(Err(error)) => return Err(self.broken(&error).await),
            None => return Err(End::new(EndWord::Dropped)),
        };
        self.heard = Instant::now();
        if let Some(answer) = self.answer(&text) {
            self.send(Message::text(answer)).await?;
        }
        Ok(())
    }

    /// The frame that goes back at once, if one does.
    fn answer(&mut self, text: &str) -> Option<String> {
        let lang = self.lang();
        match frames::read(text) {
            Incoming::Initialize(id) => Some(frames::initialized(&id)),
            Incoming::Ping(id) => Some(frames::pong(&id)),
            Incoming::List(id) => Some(self.list(&id)),
            Incoming::Call(id, call) => self.call(id, call),
            Incoming::BadCall(id) => Some(error(&id, Code::InvalidParams, Trouble::BadCall, lang)),
            Incoming::Unknown(id) => Some(error(&id, Code::MethodNotFound, Trouble::UnknownMethod, lang)),
            Incoming::Invalid(id) => Some(error(&id, Code::InvalidRequest, Trouble::UnknownMethod, lang)),
            Incoming::Batch(ids) => {
                self.post.garbage();
                Some(frames::batch_refused(&ids, answer::trouble(Trouble::OneByOne, lang)))
            }
            Incoming::Notification => None,
            Incoming::Stray | Incoming::Garbage => {
                self.post.garbage();
                None
            }
        }
    }

    fn lang(&self) -> Lang {
        self.post.host.guest(&self.post.settings.name, "").map(|guest| guest.policy.lang).unwrap_or_default()
    }

    /// The tools as they are now.
    fn tools(&self) -> (Vec<rmcp::model::Tool>, (u64, u64)) {
        let host = &self.post.host;
        // Read before the tools: a change in between is then seen again instead of being missed.
        let revision = host.revision();
        let guest = host.guest(&self.post.settings.name, "");
        (guest.map(|guest| host.tools(&guest)).unwrap_or_default(), revision)
    }

    fn list(&mut self, id: &Id) -> String {
        let (tools, seen) = self.tools();
        let list = frames::tool_list(&tools);
        let frame = frames::listed(id, &list);
        self.tools = Sent { list: Some(list), seen, differ_since: None };
        self.post.status.send_modify(|status| {
            status.tools = tools.iter().map(|tool| tool.name.to_string()).collect();
            status.tools_at = Some(SystemTime::now());
        });
        frame
    }

    /// Whether the line has to be renewed so that other tools go over.
    fn must_renew(&mut self) -> bool {
        let Some(sent) = &self.tools.list else { return false };
        let (now, tuning) = (Instant::now(), &self.post.tuning);
        if self.post.host.revision() != self.tools.seen {
            let (tools, seen) = self.tools();
            let is_other = frames::tool_list(&tools) != *sent;
            self.tools.seen = seen;
            self.tools.differ_since = is_other.then_some(now);
        }
        let has_settled = self.tools.differ_since.is_some_and(|since| now >= since + tuning.settle);
        has_settled && self.calls.is_empty() && now >= self.began + tuning.renew_after
    }

    /// Begins a call; what is refused at once is answered at once.
    fn call(&mut self, id: Id, call: Call) -> Option<String> {
        let post = self.post.clone();
        let Some(guest) = post.host.guest(&post.settings.name, id.session()) else {
            return Some(error(&id, Code::InvalidRequest, Trouble::NoAccess, Lang::default()));
        };
        let guest = within(guest, post.profile().answer_by_ms_max());
        post.status.send_modify(|status| {
            status.calls += 1;
            status.last_call = Some(SystemTime::now());
        });
        let limit = post.tuning.calls_max;
        if self.calls.len() >= limit {
            let busy = answer::refusal(&Refusal::QueueFull { limit }, None, guest.policy.lang);
            return frames::result(&id, &busy.for_endpoint(guest.policy.style));
        }
        self.calls.spawn(carry_out(post, guest, id, call, self.gone.clone()));
        None
    }

    async fn send(&mut self, message: Message) -> Result<(), End> {
        match timeout(self.post.tuning.write, self.line.send(message)).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(self.broken(&error).await),
            Err(_nobody_reads) => Err(End::new(EndWord::Silent)),
        }
    }

    /// Before this side closes the line: whoever works for a call is told that nobody waits, and each call is answered that it is
    /// not known what became of it. Silence would be taken for anything.
    async fn end_calls(&mut self) -> Result<(), End> {
        self.gone.cancel();
        let by = Instant::now() + self.post.tuning.close;
        while let Ok(Some(done)) = timeout_at(by, self.calls.join_next()).await {
            if let Ok(Some(frame)) = done {
                self.send(Message::text(frame)).await?;
            }
        }
        Ok(())
    }

    /// Closes the line, and waits until the other side has closed it, too.
    async fn close(&mut self, word: EndWord) -> End {
        let frame = CloseFrame { code: CloseCode::Normal, reason: "".into() };
        let closing = async {
            self.line.send(Message::Close(Some(frame))).await?;
            while self.line.next().await.transpose()?.is_some() {}
            Ok::<(), tungstenite::Error>(())
        };
        let answered = timeout(self.post.tuning.close, closing).await;
        // An error here is a line that has ended otherwise meanwhile: that much is sure on both sides.
        End { is_unclean: answered.is_err(), ..End::new(word) }
    }

    /// The other side has closed: the library answers its frame with the next read.
    async fn closed(&mut self, frame: Option<CloseFrame>) -> End {
        let answering = async { while let Some(Ok(_)) = self.line.next().await {} };
        let _or_it_is_dropped = timeout(self.post.tuning.close, answering).await;
        match frame {
            Some(frame) => End::closed(frame.code.into(), &frame.reason, self.post.profile()),
            None => End::new(EndWord::Closed),
        }
    }

    /// The line broke. Of what could not be read the other side is told (RFC 6455, 7.1.7).
    async fn broken(&mut self, error: &tungstenite::Error) -> End {
        use tungstenite::{Error, error::ProtocolError};
        let code = match error {
            Error::Io(error) => return lost(error),
            Error::ConnectionClosed
            | Error::AlreadyClosed
            | Error::Protocol(ProtocolError::ResetWithoutClosingHandshake) => return End::new(EndWord::Dropped),
            Error::Capacity(_) => CloseCode::Size,
            Error::Utf8(_) => CloseCode::Invalid,
            Error::Tls(_)
            | Error::Protocol(_)
            | Error::WriteBufferFull(_)
            | Error::AttackAttempt
            | Error::Url(_)
            | Error::Http(_)
            | Error::HttpFormat(_) => CloseCode::Protocol,
        };
        self.post.garbage();
        let telling = self.line.close(Some(CloseFrame { code, reason: "".into() }));
        let _best_effort = timeout(self.post.tuning.close, telling).await;
        End::with(EndWord::Garbled, None, &error.to_string())
    }
}

/// What an error of the socket says: whether the other side has ended it, or nobody knows what the other side believes.
fn lost(error: &std::io::Error) -> End {
    use std::io::ErrorKind;
    let told = [
        ErrorKind::ConnectionReset,
        ErrorKind::ConnectionAborted,
        ErrorKind::BrokenPipe,
        ErrorKind::UnexpectedEof,
        ErrorKind::NotConnected,
    ];
    let word = if told.contains(&error.kind()) { EndWord::Dropped } else { EndWord::Silent };
    End::with(word, None, &error.to_string())
}

/// A guest whose limit is below that of the other side.
fn within(mut guest: Guest, most_ms: u64) -> Guest {
    if guest.policy.answer_by_ms > most_ms {
        guest.policy = Arc::new(Policy { answer_by_ms: most_ms, ..(*guest.policy).clone() });
    }
    guest
}

fn error(id: &Id, code: Code, trouble: Trouble, lang: Lang) -> String {
    frames::error(id, code, answer::trouble(trouble, lang))
}

/// One call to the frame of its answer; `None` if none fits into a frame. Whatever happens inside, there is one by the
/// guest's limit.
async fn carry_out(post: Arc<Post>, guest: Guest, id: Id, call: Call, gone: CancellationToken) -> Option<String> {
    let (lang, style) = (guest.policy.lang, guest.policy.style);
    let limit = std::time::Duration::from_millis(guest.policy.answer_by_ms);
    let work = AssertUnwindSafe(post.host.call(&guest, &call, &gone)).catch_unwind();
    let rendered = match timeout(limit, work).await {
        Ok(Ok(Ok(rendered))) => rendered,
        // If the line is gone nobody hears it.
        Ok(Ok(Err(NoAnswer::Cancelled))) => return Some(error(&id, Code::InternalError, Trouble::Closing, lang)),
        Ok(Ok(Err(NoAnswer::NoSuchTool { .. }))) => {
            return Some(error(&id, Code::InvalidParams, Trouble::UnknownTool, lang));
        }
        Ok(Ok(Err(NoAnswer::NoAccess))) => return Some(error(&id, Code::InvalidRequest, Trouble::NoAccess, lang)),
        // Nothing outside of a model shows questions here, and none was said to.
        Ok(Ok(Err(NoAnswer::AskFirst(_)))) => answer::internal(lang),
        Ok(Err(_panic)) => answer::internal(lang),
        Err(_) => {
            let tool: String = call.tool.chars().take(TOOL_CHARS_MAX).collect();
            tracing::error!(endpoint = %post.settings.name, ?tool, "a call had no answer by its limit");
            post.late();
            answer::internal(lang)
        }
    };
    let told = rendered.for_endpoint(style);
    frames::result(&id, &told).or_else(|| frames::result(&id, &answer::internal(lang).for_endpoint(style)))
}
