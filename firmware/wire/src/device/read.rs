//! Reading one command.

use core::fmt;

use crate::{
    flat::{Fields, Raw},
    limits::{ARGS_BYTES_MAX, ARGS_MAX, COMMAND_BYTES_MAX, is_id, is_name},
    scalar::Scalar,
    words::CommandWord,
};

/// What each command for an actuator carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head<'a> {
    /// The session that it belongs to; a board obeys only that of its last welcome (semantics 5.1).
    pub session: &'a str,
    /// The hub's monotonic clock when it was sent, milliseconds.
    pub hub_ms: u64,
}

/// One message from the hub. Texts are borrowed from the message and stand as they were sent; `reason`, `path` and
/// `allowed` are for a log and may hold escapes.
#[derive(Clone, Debug, PartialEq)]
pub enum Command<'a> {
    /// The greeting is accepted; commands of this session count from now on.
    Welcome {
        /// Session and clock.
        head: Head<'a>,
        /// The hub, random per data folder.
        hub: &'a str,
        /// Grows with each start of that hub.
        epoch: u32,
        /// How often to send a heartbeat, milliseconds.
        heartbeat_ms: u32,
    },
    /// The greeting is not accepted.
    Refused {
        /// One of [`crate::words::ErrorWord`].
        reason: &'a str,
        /// Where in the hello.
        path: Option<&'a str>,
        /// What is allowed there.
        allowed: Option<&'a str>,
    },
    /// Send a page of the description.
    Describe {
        /// From 0.
        page: u32,
    },
    /// An event could not be taken in.
    Error {
        /// The `seq` of that event, if it could be read.
        of_seq: Option<u32>,
        /// One of [`crate::words::ErrorWord`].
        reason: &'a str,
        /// Where in the event.
        path: Option<&'a str>,
        /// What is allowed there.
        allowed: Option<&'a str>,
    },
    /// Make a property have a value.
    Set {
        /// Session and clock.
        head: Head<'a>,
        /// The operation.
        op: &'a str,
        /// The property.
        property: &'a str,
        /// The value.
        value: Scalar,
        /// Until when it may begin, milliseconds after `hub_ms`.
        ttl_ms: u32,
    },
    /// Do something that leaves no state.
    Run {
        /// Session and clock.
        head: Head<'a>,
        /// The operation.
        op: &'a str,
        /// The action.
        action: &'a str,
        /// Its arguments.
        args: Args<'a>,
        /// Until when it may begin, milliseconds after `hub_ms`.
        ttl_ms: u32,
    },
    /// Say what the state is now.
    GetDeviceState {
        /// Session and clock.
        head: Head<'a>,
        /// The query.
        op: &'a str,
        /// One property; without it all.
        property: Option<&'a str>,
    },
    /// Do not begin this operation any more.
    Withdraw {
        /// Session and clock.
        head: Head<'a>,
        /// The operation.
        op: &'a str,
    },
    /// Send the last marks.
    GetLog {
        /// Session and clock.
        head: Head<'a>,
        /// The query.
        op: &'a str,
    },
}

/// The arguments of an action: a flat object, read when asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Args<'a>(&'a str);

impl<'a> Args<'a> {
    /// Checks and takes arguments as they stand in a command; `None` if they are no flat object of at most [`ARGS_MAX`]
    /// scalars and [`ARGS_BYTES_MAX`] bytes.
    pub fn new(text: &'a str) -> Option<Self> {
        let mut fields = Fields::new(text).ok().filter(|_| text.len() <= ARGS_BYTES_MAX)?;
        let mut count = 0;
        while let Some((name, raw)) = fields.next().ok()? {
            count += 1;
            if !is_name(name) || raw.scalar().is_none() || count > ARGS_MAX {
                return None;
            }
        }
        Some(Self(text))
    }

    /// The arguments as they stand, for keeping them.
    pub fn as_str(self) -> &'a str {
        self.0
    }

    /// The arguments in order; one that is no scalar is `None`. Ends early where the object is malformed.
    pub fn iter(self) -> impl Iterator<Item = (&'a str, Option<Scalar>)> {
        let mut fields = Fields::new(self.0).ok();
        core::iter::from_fn(move || {
            let (name, raw) = fields.as_mut()?.next().ok()??;
            Some((name, raw.scalar()))
        })
    }
}

/// Why a message could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParseErrorKind {
    /// Over 512 bytes.
    TooLong,
    /// No JSON object in UTF-8, nested too deep, or a field twice.
    Malformed,
    /// A `command` that this version does not know.
    UnknownCommand,
    /// A field that must be there.
    MissingField,
    /// A field of another sort, out of its range, or a name or an id that is none.
    BadField,
}

/// A message that could not be read, with what could be where it was JSON: enough for a board to answer `rejected`,
/// reason `malformed`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParseError<'a> {
    /// Why.
    pub kind: ParseErrorKind,
    /// Which field; empty if no particular one.
    pub field: &'static str,
    /// What it asked for, if that could be read; `None` also for a word that is unknown.
    pub command: Option<CommandWord>,
    /// Its session, if that could be read.
    pub session: Option<&'a str>,
    /// Its operation, if that could be read.
    pub op: Option<&'a str>,
}

impl fmt::Display for ParseError<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            ParseErrorKind::TooLong => write!(f, "a command of more than {COMMAND_BYTES_MAX} bytes"),
            ParseErrorKind::Malformed => f.write_str("a command that is no flat JSON object"),
            ParseErrorKind::UnknownCommand => f.write_str("a command of an unknown sort"),
            ParseErrorKind::MissingField => write!(f, "a command without {}", self.field),
            ParseErrorKind::BadField => write!(f, "a command whose {} is not allowed", self.field),
        }
    }
}

impl core::error::Error for ParseError<'_> {}

/// Reads one message from the hub. Unknown fields are ignored.
///
/// # Errors
/// [`ParseError`], with session and op where they could be read.
pub fn parse(bytes: &[u8]) -> Result<Command<'_>, ParseError<'_>> {
    let mut draft = Draft::default();
    match draft.read(bytes).and_then(|()| draft.command()) {
        Ok(command) => Ok(command),
        Err((kind, field)) => {
            // Of a text that is no JSON nothing can be trusted, not even what stood before the mistake.
            let whole = !matches!(kind, ParseErrorKind::TooLong | ParseErrorKind::Malformed);
            let command = draft.text("command").map(CommandWord::read).filter(|c| whole && *c != CommandWord::Unknown);
            let id = |field| draft.text(field).filter(|id| whole && is_id(id));
            Err(ParseError { kind, field, command, session: id("session"), op: id("op") })
        }
    }
}

type Wrong = (ParseErrorKind, &'static str);

/// All fields that any command has. What is not listed is ignored.
const KNOWN: [&str; 17] = [
    "command",
    "session",
    "hub_ms",
    "op",
    "property",
    "value",
    "ttl_ms",
    "action",
    "args",
    "hub",
    "epoch",
    "heartbeat_ms",
    "page",
    "reason",
    "path",
    "allowed",
    "of_seq",
];

/// The known fields of one message, by their place in [`KNOWN`].
#[derive(Default)]
struct Draft<'a> {
    fields: [Option<Raw<'a>>; KNOWN.len()],
}

impl<'a> Draft<'a> {
    fn read(&mut self, bytes: &'a [u8]) -> Result<(), Wrong> {
        if bytes.len() > COMMAND_BYTES_MAX {
            return Err((ParseErrorKind::TooLong, ""));
        }
        let malformed = (ParseErrorKind::Malformed, "");
        let text = core::str::from_utf8(bytes).map_err(|_| malformed)?;
        let mut fields = Fields::new(text).map_err(|_| malformed)?;
        while let Some((name, value)) = fields.next().map_err(|_| malformed)? {
            let Some(place) = KNOWN.iter().position(|known| *known == name) else { continue };
            let Some(slot) = self.fields.get_mut(place) else { continue };
            if slot.replace(value).is_some() {
                return Err((ParseErrorKind::Malformed, KNOWN.get(place).copied().unwrap_or_default()));
            }
        }
        Ok(())
    }

    fn command(&self) -> Result<Command<'a>, Wrong> {
        let command = self.text("command").ok_or(self.wrong("command"))?;
        Ok(match CommandWord::read(command) {
            CommandWord::Welcome => Command::Welcome {
                head: self.head()?,
                hub: self.id("hub")?,
                epoch: self.number("epoch")?,
                heartbeat_ms: self.number("heartbeat_ms")?,
            },
            CommandWord::Refused => Command::Refused {
                reason: self.text("reason").ok_or(self.wrong("reason"))?,
                path: self.text("path"),
                allowed: self.text("allowed"),
            },
            CommandWord::Describe => Command::Describe { page: self.number("page")? },
            CommandWord::Error => Command::Error {
                of_seq: self.number("of_seq").ok(),
                reason: self.text("reason").ok_or(self.wrong("reason"))?,
                path: self.text("path"),
                allowed: self.text("allowed"),
            },
            CommandWord::Set => Command::Set {
                head: self.head()?,
                op: self.id("op")?,
                property: self.name("property")?,
                value: self.get("value").and_then(|v| v.scalar()).ok_or(self.wrong("value"))?,
                ttl_ms: self.number("ttl_ms")?,
            },
            CommandWord::Run => Command::Run {
                head: self.head()?,
                op: self.id("op")?,
                action: self.name("action")?,
                args: self.args()?,
                ttl_ms: self.number("ttl_ms")?,
            },
            CommandWord::GetDeviceState => Command::GetDeviceState {
                head: self.head()?,
                op: self.id("op")?,
                property: self.get("property").map(|_| self.name("property")).transpose()?,
            },
            CommandWord::Withdraw => Command::Withdraw { head: self.head()?, op: self.id("op")? },
            CommandWord::GetLog => Command::GetLog { head: self.head()?, op: self.id("op")? },
            CommandWord::Unknown => return Err((ParseErrorKind::UnknownCommand, "command")),
        })
    }

    fn head(&self) -> Result<Head<'a>, Wrong> {
        Ok(Head { session: self.id("session")?, hub_ms: self.number("hub_ms")? })
    }

    /// A field that is there and not `null`.
    fn get(&self, field: &'static str) -> Option<Raw<'a>> {
        let place = KNOWN.iter().position(|known| *known == field)?;
        (*self.fields.get(place)?).filter(|raw| *raw != Raw::Null)
    }

    fn wrong(&self, field: &'static str) -> Wrong {
        (if self.get(field).is_some() { ParseErrorKind::BadField } else { ParseErrorKind::MissingField }, field)
    }

    fn text(&self, field: &'static str) -> Option<&'a str> {
        match self.get(field) {
            Some(Raw::Text(text)) => Some(text),
            _ => None,
        }
    }

    fn id(&self, field: &'static str) -> Result<&'a str, Wrong> {
        self.text(field).filter(|id| is_id(id)).ok_or(self.wrong(field))
    }

    fn name(&self, field: &'static str) -> Result<&'a str, Wrong> {
        self.text(field).filter(|name| is_name(name)).ok_or(self.wrong(field))
    }

    fn number<T: core::str::FromStr>(&self, field: &'static str) -> Result<T, Wrong> {
        match self.get(field) {
            Some(Raw::Number(number)) => number.parse().map_err(|_| self.wrong(field)),
            _ => Err(self.wrong(field)),
        }
    }

    fn args(&self) -> Result<Args<'a>, Wrong> {
        match self.get("args") {
            None => Ok(Args("{}")),
            Some(Raw::Nested(text)) => Args::new(text).ok_or((ParseErrorKind::BadField, "args")),
            Some(_) => Err((ParseErrorKind::BadField, "args")),
        }
    }
}
