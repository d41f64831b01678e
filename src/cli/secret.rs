//! Asking for a secret: at a terminal without showing it, else the first line of standard input. Never an argument, which every
//! list of processes shows.

use std::io::{self, BufRead as _, IsTerminal as _, Read as _};

use super::{Exit, Failure};
use crate::data::{Secret, URL_BYTES_MAX};

/// Asks for one line.
pub(super) fn ask(prompt: &str) -> anyhow::Result<Secret> {
    let stdin = io::stdin();
    let line = if stdin.is_terminal() {
        rpassword::prompt_password(prompt).map_err(unread)?
    } else {
        let mut line = String::new();
        stdin.lock().take(2 * URL_BYTES_MAX as u64).read_line(&mut line).map_err(unread)?;
        line
    };
    if line.trim().is_empty() {
        let message = "nothing was given; paste it at the prompt, or give it on standard input".to_owned();
        return Err(Failure { exit: Exit::Usage, message }.into());
    }
    Ok(Secret::new(line.trim().to_owned()))
}

fn unread(error: io::Error) -> Failure {
    Failure { exit: Exit::Usage, message: format!("cannot read it: {error}") }
}
