//! The audit: what each call was, who made it, what it was taken for and what was answered, kept so that "it said done and
//! it was not" can be looked into days later.
//!
//! # Where it is
//!
//! `DATA/audit.jsonl`, mode 0600, one JSON object a line, oldest first; older parts are `audit.1.jsonl` (the newest of them) to
//! `audit.3.jsonl`. The latest records are in memory as well ([`Audit::recent`]).
//!
//! | bound | value | at it |
//! |---|---|---|
//! | a file | 8 MiB | it becomes `audit.1.jsonl`, that one `audit.2.jsonl` …, and the fourth is removed: four files, some 50 000 calls |
//! | a line | 16 KiB | cannot be longer by the bounds below; a longer one in a file is skipped |
//! | waiting to be written | 4 096 records | one more is lost: counted, told in the log at most once a minute, never waited for |
//! | in memory | 512 records | the oldest is forgotten there |
//! | the user's words, a name, a sentence | 200, 64, 600 characters | cut, with `…` |
//! | arguments | 16, texts of 64 characters | cut; what is left out is not named |
//! | things of one call | 32 | `more_things` says how many are left out |
//!
//! A full disk loses records and nothing else: they are counted (`truetwin_audit_lost_total`) and told in the log. A line that a
//! power cut tore is skipped by whoever reads, with a note; the next record begins on a line of its own. Lines are handed to
//! the system at once (within 50 ms where hundreds come in a second) and brought to the disk at least every five seconds and when the hub stops.
//!
//! # The form of a line
//!
//! Version 1. It is final: a later version may add fields, which readers skip, and never changes what one means; a change that
//! would is another `v`. What does not apply is absent.
//!
//! | field | what |
//! |---|---|
//! | `v` | 1 |
//! | `event` | `call`; `turned_away`: no such tool, or no access; `confirmation`: a step of confirming other than a call (a button, a client's dialog); `dispute`: its owner says that it was not done |
//! | `at` | when the call came in, RFC 3339 with milliseconds and the offset of this machine's time zone |
//! | `clock` | `unsynchronised` while `at` cannot be relied on: nobody has set this machine's clock yet |
//! | `caller` | who asked: `endpoint:NAME`, `token:NAME`, `http`, `stdio`, `owner` |
//! | `session` | which session of that caller |
//! | `tool` | the tool; in `turned_away` the client's own word |
//! | `user_request` | what the user said, if the model passed it |
//! | `arguments` | the arguments, masked |
//! | `heard` | the name of a device or scene as the model said it |
//! | `things` | what that was taken for, see below |
//! | `more_things` | how many more there were |
//! | `outcome`, `result`, `stage`, `reason`, `confirmed_by` | as in the answer (semantics 8) |
//! | `refusal` | why nothing was begun, a word of semantics 8.4, or `unknown_tool`, `no_access` |
//! | `parameter`, `sent` | which argument was wrong, and what stood there, masked |
//! | `say` | the sentence |
//! | `duration_ms` | from the call to its answer |
//! | `operation` | the id of the operation, for `check_operation` and `dispute` |
//! | `cancelled` | `true`: the client no longer waited, so there is no answer |
//! | `agreed` | how a person agreed to what can do harm: `code`, `spoken_code`, `form`, `press`, joined by `+` |
//! | `note` | of a dispute: the owner's words; of a confirmation: what happened |
//!
//! Of each thing: `device` (its id), `property` (or `action`), `want` (`{"to": value}`, `{"by": number}` or `"toggle"`), and, where
//! it was more than looked at, `outcome`, `stage`, `reason`, `confirmed_by`, `operation`, `refusal`, and `acknowledged`: the device
//! had said that it has the command.
//!
//! Masked is: `***` for a value of a sensitive property, a code, and whatever looks like a token or a password, also inside a text
//! ([`masked`]), in what the user said also runs of four digits, which may be a spoken code ([`speech_masked`]). No token of the hub is ever in a call; this is for models that repeat what they were told.
//!
//! Knows no MCP, no twin, no configuration: whoever has those makes a [`Record`] of them.

mod clock;
mod dispute;
mod mask;
mod read;
mod record;
mod stats;
mod store;
mod when;

pub use self::{
    clock::{Clock, Synchrony},
    dispute::{Unknown, dispute},
    mask::{MASK, bounded, masked, speech_masked},
    read::{Filter, Found, read},
    record::{Event, HEARD_CHARS_MAX, Record, SAY_CHARS_MAX, Thing, VERSION, WORDS_CHARS_MAX, Want},
    stats::{CallerUse, Hint, HintKind, Refuted, Stats, ToolUse, WrongArgument},
    store::{Audit, Counts, append_offline},
    when::{BadSince, since},
};

use std::path::{Path, PathBuf};

/// The largest file, bytes.
pub const FILE_BYTES_MAX: u64 = 8 * 1024 * 1024;

/// How many files there are at most, the one that is written included.
pub const FILES_MAX: usize = 4;

/// The longest line, bytes with the newline.
pub const LINE_BYTES_MAX: usize = 16 * 1024;

/// The file of that age: 0 is written, [`FILES_MAX`] - 1 is the oldest.
fn file(folder: &Path, age: usize) -> PathBuf {
    folder.join(if age == 0 { "audit.jsonl".to_owned() } else { format!("audit.{age}.jsonl") })
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test that fails there has said so")]
mod tests;
