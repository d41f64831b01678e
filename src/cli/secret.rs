//! Asking for a secret: at a terminal without showing it, else the first line of standard input. Never an argument, which every
//! list of processes shows.

use std::{
    io::{self, BufRead as _, BufReader, IsTerminal as _, Read as _},
    path::Path,
};

use super::{Exit, Failure};
use crate::{
    data::{Secret, URL_BYTES_MAX},
    private::{self, Refused},
};

/// Asks for one line.
pub(super) fn ask(prompt: &str) -> anyhow::Result<Secret> {
    given(&if io::stdin().is_terminal() { hidden(prompt)? } else { first_line()? })
}

/// Asks for one that somebody makes up now: at a terminal, where nobody sees what is typed, a second time. Standard input is read
/// once.
pub(super) fn ask_new(prompt: &str, again: &str) -> anyhow::Result<Secret> {
    if !io::stdin().is_terminal() {
        return given(&first_line()?);
    }
    twice(|second| hidden(if second { again } else { prompt }))
}

/// The same from both askings, of which the second is told that it is.
fn twice(mut asked: impl FnMut(bool) -> Result<String, Failure>) -> anyhow::Result<Secret> {
    let first = given(&asked(false)?)?;
    if asked(true)?.trim() != first.reveal() {
        let message = "the two are not the same; nothing was changed, try again".to_owned();
        return Err(Failure { exit: Exit::Usage, message }.into());
    }
    Ok(first)
}

fn hidden(prompt: &str) -> Result<String, Failure> {
    rpassword::prompt_password(prompt).map_err(unread)
}

fn first_line() -> Result<String, Failure> {
    let mut line = String::new();
    io::stdin().lock().take(2 * URL_BYTES_MAX as u64).read_line(&mut line).map_err(unread)?;
    Ok(line)
}

fn given(line: &str) -> anyhow::Result<Secret> {
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
    let file = private::open(path).map_err(|refused| match refused {
        Refused::Io(error) => cannot(error),
        Refused::Exposed { .. } => {
            let path = path.display();
            usage(format!("others may read {path}, so what is in it is no secret; mend it with: chmod 600 {path}"))
        }
    })?;
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
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn what_is_made_up_at_a_terminal_is_asked_for_twice_and_has_to_be_the_same() {
        let typed = |one: &'static str, other: &'static str| {
            let mut asked = Vec::new();
            let given = twice(|second| {
                asked.push(second);
                Ok(if second { other } else { one }.to_owned())
            });
            (given.map(|secret| secret.reveal().to_owned()).map_err(|error| error.to_string()), asked)
        };
        assert_eq!(typed("correct horse\n", "correct horse"), (Ok("correct horse".to_owned()), vec![false, true]));
        let (refused, _) = typed("correct horse", "correct hrose");
        assert!(refused.unwrap_err().contains("not the same"));
        let (refused, asked) = typed(" ", "");
        assert!(refused.is_err() && asked == [false], "what is nothing is not asked for again");
    }

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
