//! Asking for a secret: at a terminal without showing it, else the first line of standard input. Never an argument, which every
//! list of processes shows.

use std::{
    fs::File,
    io::{self, BufRead as _, BufReader, IsTerminal as _, Read as _},
    os::unix::fs::PermissionsExt as _,
    path::Path,
};

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

/// The first line of a file that only its owner may read.
pub(super) fn from_file(path: &Path) -> anyhow::Result<Secret> {
    let usage = |message: String| Failure { exit: Exit::Usage, message };
    let cannot = |error: io::Error| usage(format!("cannot read {}: {error}", path.display()));
    let file = File::open(path).map_err(cannot)?;
    let mode = file.metadata().map_err(cannot)?.permissions().mode();
    if mode & 0o077 != 0 {
        let path = path.display();
        let message = format!("others may read {path}, so what is in it is no secret; mend it with: chmod 600 {path}");
        return Err(usage(message).into());
    }
    let mut line = String::new();
    BufReader::new(file).take(2 * URL_BYTES_MAX as u64).read_line(&mut line).map_err(cannot)?;
    if line.trim().is_empty() {
        return Err(usage(format!("{} has no password in its first line", path.display())).into());
    }
    Ok(Secret::new(line.trim().to_owned()))
}

fn unread(error: io::Error) -> Failure {
    Failure { exit: Exit::Usage, message: format!("cannot read it: {error}") }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test that fails there has said so")]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_others_may_read_is_refused_with_the_command_that_mends_it() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("password");
        let mode = |mode| std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
        std::fs::write(&file, "correct horse \nand more\n").unwrap();
        mode(0o600);
        assert_eq!(from_file(&file).unwrap().reveal(), "correct horse");
        for readable in [0o640, 0o604, 0o644] {
            mode(readable);
            let error = from_file(&file).unwrap_err().to_string();
            assert!(error.contains(&format!("chmod 600 {}", file.display())), "{error}");
        }
        std::fs::write(&file, "\n").unwrap();
        mode(0o600);
        assert!(from_file(&file).unwrap_err().to_string().contains("no password"));
    }
}
