//! A caller: a kept HTTP/1.1 connection in an MCP session that it may share, written by hand because the load shares the
//! processors with what it measures. Each answer is read to its end and parsed as a whole.

use std::{io::Write as _, sync::Arc};

use anyhow::{Context as _, bail, ensure};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

/// The protocol version that is spoken: the last one with sessions.
const PROTOCOL: &str = "2025-11-25";

/// What an answer to a tool call says, as far as it is checked.
#[derive(Debug, serde::Deserialize)]
struct Reply {
    id: u64,
    result: Option<CallResult>,
    error: Option<serde_json::Value>,
}

#[derive(Debug, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
struct CallResult {
    is_error: bool,
    structured_content: Structured,
}

#[derive(Debug, serde::Deserialize)]
struct Structured {
    result: String,
    success: Option<bool>,
    outcome: Option<String>,
}

/// What a tool call came to.
#[derive(Debug)]
pub(crate) enum Answer {
    /// Confirmed, and for an operation: success, converged.
    Good,
    /// Anything else, as it was said.
    Bad(String),
}

/// A session: the headers that name it.
#[derive(Clone, Debug)]
pub(crate) struct Session(Arc<str>);

/// A connection in a session.
#[derive(Debug)]
pub(crate) struct Caller {
    socket: TcpStream,
    host: String,
    session: Session,
    inbox: Vec<u8>,
    out: Vec<u8>,
    body: Vec<u8>,
    id: u64,
}

impl Caller {
    /// Connects without a session: for plain requests, and to open one.
    pub(crate) async fn connect(http: &str) -> anyhow::Result<Self> {
        Self::join(http, Session("".into()), 0).await
    }

    /// Connects within a session, as one of several: each numbers its calls in a range of its own.
    pub(crate) async fn join(http: &str, session: Session, number: u64) -> anyhow::Result<Self> {
        let socket = TcpStream::connect(http).await.with_context(|| format!("cannot connect to {http}"))?;
        socket.set_nodelay(true)?;
        let (host, id) = (http.to_owned(), number << 32);
        Ok(Self { socket, host, session, inbox: Vec::new(), out: Vec::new(), body: Vec::new(), id })
    }

    /// Opens a session.
    pub(crate) async fn open_session(http: &str) -> anyhow::Result<Session> {
        let mut caller = Self::connect(http).await?;
        let hello = format!(
            r#"{{"jsonrpc":"2.0","id":0,"method":"initialize","params":{{"protocolVersion":"{PROTOCOL}","capabilities":{{}},"clientInfo":{{"name":"bench","version":"1"}}}}}}"#
        );
        let head = caller.post(&hello, 200).await?;
        let id = header(&head, "mcp-session-id").context("no session came")?;
        caller.session = Session(format!("mcp-session-id: {id}\r\nmcp-protocol-version: {PROTOCOL}\r\n").into());
        caller.post(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#, 202).await?;
        Ok(caller.session)
    }

    /// Calls a tool; `arguments` is a JSON object.
    pub(crate) async fn call(&mut self, tool: &str, arguments: &str) -> anyhow::Result<Answer> {
        self.id += 1;
        let id = self.id;
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{tool}","arguments":{arguments}}}}}"#
        );
        self.post(&body, 200).await?;
        let reply: Reply = serde_json::from_slice(message(&self.body)?)
            .with_context(|| format!("no answer to a tool call: {}", String::from_utf8_lossy(&self.body)))?;
        ensure!(reply.id == id, "the answer to call {} came to call {id}", reply.id);
        let Some(CallResult { is_error, structured_content: said }) = reply.result else {
            return Ok(Answer::Bad(format!("{:?}", reply.error)));
        };
        let operation = said.outcome.is_some();
        let done = !operation || (said.success == Some(true) && said.outcome.as_deref() == Some("converged"));
        let good = !is_error && said.result == "confirmed" && done && operation == (tool == "switch_device");
        Ok(if good { Answer::Good } else { Answer::Bad(format!("{said:?}")) })
    }

    /// The body of a GET.
    pub(crate) async fn get(&mut self, path: &str) -> anyhow::Result<String> {
        self.out.clear();
        write!(self.out, "GET {path} HTTP/1.1\r\nhost: {}\r\n\r\n", self.host)?;
        self.exchange(200).await?;
        Ok(String::from_utf8(self.body.clone())?)
    }

    async fn post(&mut self, body: &str, status: u16) -> anyhow::Result<String> {
        self.out.clear();
        let (host, session, bytes) = (&self.host, &self.session.0, body.len());
        write!(
            self.out,
            "POST /mcp HTTP/1.1\r\nhost: {host}\r\ncontent-type: application/json\r\n\
             accept: application/json, text/event-stream\r\n{session}content-length: {bytes}\r\n\r\n{body}"
        )?;
        self.exchange(status).await
    }

    /// Sends what is in `out` and reads one answer: its head comes back, its body is in `body`.
    async fn exchange(&mut self, status: u16) -> anyhow::Result<String> {
        self.socket.write_all(&self.out).await?;
        self.body.clear();
        let end = loop {
            match find(&self.inbox, b"\r\n\r\n") {
                Some(at) => break at + 4,
                None => self.read().await?,
            }
        };
        let head = String::from_utf8(self.inbox.drain(..end).collect())?;
        let got: u16 = head.get(9..12).and_then(|code| code.parse().ok()).context("no status")?;
        if header(&head, "transfer-encoding").is_some_and(|coding| coding.eq_ignore_ascii_case("chunked")) {
            while self.chunk().await? {}
        } else {
            let bytes = header(&head, "content-length").map_or(Ok(0), str::parse)?;
            while self.inbox.len() < bytes {
                self.read().await?;
            }
            self.body.extend(self.inbox.drain(..bytes));
        }
        if got != status {
            bail!("status {got} instead of {status}: {}", String::from_utf8_lossy(&self.body));
        }
        Ok(head)
    }

    /// Reads one chunk (RFC 9112, 7.1); false for the last.
    async fn chunk(&mut self) -> anyhow::Result<bool> {
        let line = loop {
            match find(&self.inbox, b"\r\n") {
                Some(at) => break at,
                None => self.read().await?,
            }
        };
        let bytes = usize::from_str_radix(std::str::from_utf8(&self.inbox[..line])?, 16)?;
        let (from, to) = (line + 2, line + 2 + bytes);
        while self.inbox.len() < to + 2 {
            self.read().await?;
        }
        self.body.extend(&self.inbox[from..to]);
        self.inbox.drain(..to + 2);
        Ok(bytes > 0)
    }

    async fn read(&mut self) -> anyhow::Result<()> {
        ensure!(self.socket.read_buf(&mut self.inbox).await? > 0, "the hub closed a caller's connection");
        Ok(())
    }
}

/// The one JSON-RPC message of a body, plain or as an event stream.
fn message(body: &[u8]) -> anyhow::Result<&[u8]> {
    if body.starts_with(b"{") {
        return Ok(body);
    }
    let mut found = None;
    for line in body.split(|byte| *byte == b'\n') {
        if let Some(data) = line.strip_prefix(b"data: ").filter(|data| data.starts_with(b"{")) {
            ensure!(found.replace(data).is_none(), "two messages in one answer");
        }
    }
    found.with_context(|| format!("no message in {:?}", String::from_utf8_lossy(body)))
}

fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    head.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        key.eq_ignore_ascii_case(name).then(|| value.trim())
    })
}

fn find(bytes: &[u8], what: &[u8]) -> Option<usize> {
    bytes.windows(what.len()).position(|window| window == what)
}
