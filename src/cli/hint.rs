//! Commands that the program's sentences name: with the data folder of the one that says them, so that they can be typed as they
//! stand. What is for machines (JSON) is left as it is.

use std::{path::Path, sync::OnceLock};

/// The folder that was named, by `--data` or `TRUETWIN_DATA`; nothing where it is the usual one, which needs no word.
static NAMED: OnceLock<String> = OnceLock::new();

/// Commands that work on a data folder.
const ON_A_FOLDER: [&str; 15] = [
    "serve",
    "mcp",
    "device",
    "account",
    "endpoint",
    "token",
    "tls",
    "import",
    "audit",
    "dispute",
    "backup",
    "restore",
    "set",
    "call",
    "check-config",
];

/// From now on commands are told with this folder. The first call counts.
pub(super) fn remember(folder: &Path) {
    let _the_first_counts = NAMED.set(quoted(&folder.display().to_string()));
}

/// A sentence, with the data folder in each command that it names.
pub fn complete(text: &str) -> String {
    NAMED.get().map_or_else(|| text.to_owned(), |folder| with(text, folder))
}

/// `--data` stands before the command's own words, where none of its arguments can swallow it. A command that is told with its
/// folder already stays as it is.
fn with(text: &str, folder: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("truetwin ") {
        let (before, after) = rest.split_at(at + "truetwin ".len());
        out.push_str(before);
        let word = after.split(|c: char| !c.is_ascii_lowercase() && c != '-').next().unwrap_or_default();
        let line = after.split(['\n', ';']).next().unwrap_or_default();
        let own = line.split("truetwin ").next().unwrap_or_default();
        let is_command =
            !before.trim_end_matches("truetwin ").ends_with(|c: char| c.is_alphanumeric() || "/.-_".contains(c));
        if is_command && ON_A_FOLDER.contains(&word) && !own.contains("--data ") {
            out.push_str(&format!("--data {folder} "));
        }
        rest = after;
    }
    out + rest
}

/// A path as a shell takes it.
fn quoted(path: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "/._-+=:@,".contains(c);
    if !path.is_empty() && path.chars().all(plain) {
        path.to_owned()
    } else {
        format!("'{}'", path.replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_command_of_a_sentence_has_the_folder_once() {
        for (told, expected) in [
            ("no device x; truetwin device list shows them", "no device x; truetwin --data /d device list shows them"),
            ("`truetwin token list`, `truetwin call`", "`truetwin --data /d token list`, `truetwin --data /d call`"),
            ("start it: truetwin serve --data /d", "start it: truetwin serve --data /d"),
            ("truetwin sim --list; a newer truetwin and all", "truetwin sim --list; a newer truetwin and all"),
            ("/usr/bin/truetwin serve", "/usr/bin/truetwin serve"),
            ("a recording of truetwin 0.1.0", "a recording of truetwin 0.1.0"),
        ] {
            assert_eq!(with(told, "/d"), expected);
        }
    }

    #[test]
    fn a_path_is_quoted_where_a_shell_would_take_it_apart() {
        assert_eq!(quoted("/var/lib/truetwin"), "/var/lib/truetwin");
        assert_eq!(quoted("/home/a b/it's"), "'/home/a b/it'\\''s'");
        assert_eq!(quoted("/家"), "/家");
    }
}
