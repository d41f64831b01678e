//! What the program and its documents tell people to type: it is understood, has the data folder in it, and ends with the codes
//! that are promised.
#![allow(clippy::unwrap_used, reason = "a test that fails here says where")]

mod program;

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    sync::OnceLock,
};

use clap::{CommandFactory as _, Parser as _};
use program::run;
use truetwin::cli::Cli;

/// The exit code of what its owner has to mend.
const USAGE: i32 = 2;

/// Words of a line as a shell takes them: quotes, and a comment at the end. Substitutions and pipes end it.
fn words(line: &str) -> Vec<String> {
    let (mut all, mut word, mut quote, mut begun) = (Vec::new(), String::new(), None, false);
    for c in line.chars() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (Some(_), c) => word.push(c),
            (None, '\'' | '"') => (quote, begun) = (Some(c), true),
            (None, '#' | '|' | ';' | '>' | ')') if !begun => break,
            (None, ';' | ')') => break,
            (None, c) if c.is_whitespace() => {
                if begun {
                    all.push(std::mem::take(&mut word));
                }
                begun = false;
            }
            (None, c) => {
                word.push(c);
                begun = true;
            }
        }
    }
    if begun {
        all.push(word);
    }
    all
}

/// A value for what is to be filled in.
fn filled(word: &str) -> &str {
    match word {
        "NAME" | "DEVICE" | "<NAME>" | "<DEVICE>" => "lamp",
        "ADDR" | "<ADDR>" => "127.0.0.1:1",
        "<N>" => "2",
        "<HOW>" => "http",
        word => word,
    }
}

/// The command line's definition, with what is global in each command.
fn built() -> &'static clap::Command {
    static BUILT: OnceLock<clap::Command> = OnceLock::new();
    BUILT.get_or_init(|| {
        let mut cli = Cli::command();
        cli.build();
        cli
    })
}

fn understood(words: &[String]) -> Result<(), String> {
    let words: Vec<&str> = words.iter().map(|word| filled(word)).collect();
    match Cli::try_parse_from(&words) {
        Ok(_) => Ok(()),
        Err(error) if !error.use_stderr() => Ok(()), // --help, --version
        Err(error) => Err(format!("{words:?}: {error}")),
    }
}

/// Each command with nothing below it, by its words.
fn leaves(command: &clap::Command, path: &[String], found: &mut Vec<(Vec<String>, clap::Command)>) {
    let path = [path, &[command.get_name().to_owned()]].concat();
    let below: Vec<_> = command.get_subcommands().filter(|sub| sub.get_name() != "help").collect();
    if below.is_empty() || !command.is_subcommand_required_set() && path.len() > 1 {
        found.push((path.clone(), command.clone()));
    }
    below.into_iter().for_each(|sub| leaves(sub, &path, found));
}

#[test]
fn each_usage_that_is_printed_is_understood_as_it_stands_with_each_of_its_options() {
    let mut found = Vec::new();
    leaves(built(), &[], &mut found);
    let mut tried = 0;
    for (path, mut command) in found {
        let usage = command.render_usage().to_string();
        let required: Vec<_> =
            command.get_arguments().filter(|a| a.is_required_set()).map(|a| a.get_id().clone()).collect();
        let options: Vec<Vec<String>> = command
            .get_opts()
            .chain(command.get_arguments().filter(|a| a.get_long().is_some() && !a.get_action().takes_values()))
            .filter(|a| !required.contains(a.get_id()) && !["help", "version"].contains(&a.get_id().as_str()))
            .map(|option| {
                let flag = format!("--{}", option.get_long().unwrap());
                let value = option.get_possible_values().first().map(|value| value.get_name().to_owned());
                let name = option.get_value_names().and_then(|names| names.first()).map(|name| format!("<{name}>"));
                let value = value.or(name).unwrap_or_else(|| "<X>".to_owned());
                let value = if option.get_id() == "lang" { "zh".to_owned() } else { value };
                match (option.get_action().takes_values(), option.is_require_equals_set()) {
                    (true, true) => vec![format!("{flag}={value}")],
                    (true, false) => vec![flag, value],
                    (false, _) => vec![flag],
                }
            })
            .chain([Vec::new()])
            .collect();
        let usages: Vec<&str> = usage.lines().map(|line| line.trim_start_matches("Usage: ").trim()).collect();
        for usage in usages {
            // Either all that may be left out stands there, or nothing of it; and each option once.
            let given: Vec<&str> = usage.split_whitespace().collect();
            let options =
                options.iter().filter(|option| option.first().is_none_or(|flag| !given.contains(&flag.as_str())));
            for (option, whole) in options.flat_map(|option| [(option, true), (option, false)]) {
                let mut line = Vec::new();
                for word in &given {
                    let optional = word.starts_with('[');
                    match word.trim_matches(['[', ']']).trim_end_matches("...") {
                        "OPTIONS" => line.extend(option.clone()),
                        "COMMAND" => {}
                        _ if optional && !whole => {}
                        word => line.push(word.to_owned()),
                    }
                }
                understood(&line).unwrap_or_else(|error| panic!("{path:?}, whose usage is {usage:?}: {error}"));
                tried += 1;
            }
        }
    }
    assert!(tried > 100, "only {tried} lines were tried");
}

#[test]
fn each_command_in_a_readme_is_understood() {
    for readme in ["README.md", "README.zh-CN.md"] {
        let text = fs::read_to_string(readme).unwrap();
        let blocks = text.split("```sh\n").skip(1).map(|rest| rest.split("```").next().unwrap());
        let shown: Vec<&str> = blocks.flat_map(str::lines).filter(|line| line.starts_with("truetwin ")).collect();
        assert!(shown.len() > 15, "{readme} shows {}", shown.len());
        for line in shown {
            // A list of what may follow is shown with brackets.
            let line: Vec<String> =
                words(line).into_iter().map(|word| word.trim_matches(['[', ']']).to_owned()).collect();
            understood(&line).unwrap_or_else(|error| panic!("{readme}: {error}"));
        }
        // Between backticks, and in the table of commands, where a cell begins with the command itself.
        for span in text.split('`').skip(1).step_by(2) {
            named(&format!("{readme}: {span}"), span);
        }
        let cells =
            text.lines().filter_map(|line| line.strip_prefix("| `")).filter_map(|line| line.split(" | ").next());
        for cell in cells.filter(|cell| leads(&cell.replace('`', ""))) {
            let first = cell.split(' ').next().unwrap().trim_matches('`');
            for span in cell.split('`').step_by(2).filter(|span| span.starts_with(char::is_alphabetic)) {
                let whole = if leads(span) { format!("truetwin {span}") } else { format!("truetwin {first} {span}") };
                named(&format!("{readme}: {span}"), &whole);
            }
        }
    }
}

/// Whether a text begins with a command.
fn leads(text: &str) -> bool {
    let first = text.split([' ', ',']).next().unwrap_or_default();
    built().find_subcommand(first).is_some()
}

/// A command that a text names somewhere: its words lead to one, and its flags are that command's.
fn named(place: &str, text: &str) -> usize {
    let mut count = 0;
    let cli = built();
    for rest in text.split("truetwin ").skip(1) {
        let mut line = words(rest.split([';', '`', '"', '\n', ')']).next().unwrap_or_default()).into_iter().peekable();
        let mut command = cli;
        while let Some(sub) = line.peek().and_then(|word| command.find_subcommand(word.trim_end_matches(','))) {
            (command, _) = (sub, line.next());
        }
        if std::ptr::eq(command, cli) {
            continue; // not a command, but the product's name
        }
        count += 1;
        for flag in
            line.filter_map(|word| word.trim_matches(['[', ']', ',', '.']).strip_prefix("--").map(str::to_owned))
        {
            let flag = flag.split(['=', '|', '[', ']', '\\']).next().unwrap_or_default();
            let known = command.get_arguments().any(|argument| argument.get_long() == Some(flag));
            assert!(known || flag == "help", "{place}: {} has no --{flag}", command.get_name());
        }
    }
    count
}

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => sources(&path, found),
            false if path.extension().is_some_and(|ending| ending == "rs") => found.push(path),
            false => {}
        }
    }
}

#[test]
fn each_command_that_a_sentence_of_the_program_names_is_there_with_its_flags() {
    let mut files = Vec::new();
    sources(Path::new("src"), &mut files);
    let mut count = 0;
    for file in files {
        for (at, line) in fs::read_to_string(&file).unwrap().lines().enumerate() {
            if !line.trim_start().starts_with("//") {
                count += named(&format!("{}:{}", file.display(), at + 1), line);
            }
        }
    }
    assert!(count > 50, "only {count} commands were found");
}

#[test]
fn a_command_that_is_told_has_the_data_folder_that_was_named_and_works_as_it_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("the home");
    let with = format!("truetwin --data '{}' ", data.display());
    for arguments in [
        &["device", "remove", "lamp"][..],
        &["account", "rotate", "ha"],
        &["token", "revoke", "tv"],
        &["endpoint", "remove", "kitchen"],
        &["set", "lamp", "relay", "true"],
        &["tls", "show"],
    ] {
        fs::create_dir_all(&data).unwrap();
        let (code, said) = run(&data, arguments, "");
        assert!(code != 0 && (said.contains(&with) || said.contains("--data ")), "{arguments:?}: {said}");
    }
    let (_, said) = run(&data, &["device", "remove", "lamp"], "");
    let told = said.lines().find(|line| line.contains(&with)).unwrap().split(with.as_str()).nth(1).unwrap();
    assert!(told.starts_with("device list"), "{told}");
}

#[test]
fn an_accounts_name_is_called_one_and_a_devices_name_that_of_a_device() {
    let folder = tempfile::tempdir().unwrap();
    let (code, said) = run(folder.path(), &["account", "add", "Bad Name"], "");
    assert!(code == USAGE && said.contains("no name of an account") && !said.contains("device id"), "{said}");
}

#[test]
fn what_its_owner_has_to_mend_ends_with_the_code_of_that_whichever_command_finds_it() {
    let folder = tempfile::tempdir().unwrap();
    let serve = ["serve", "--mqtt", "127.0.0.1:0", "--http", "127.0.0.1:0"];
    for data in [Path::new("/proc/nope"), Path::new("/dev/null"), Path::new("/dev/null/below")] {
        for arguments in
            [&serve[..], &["device", "add", "lamp"], &["account", "add", "ha", "--read", "#"], &["token", "add", "tv"]]
        {
            let (code, said) = run(data, arguments, "");
            assert_eq!(code, USAGE, "{} {arguments:?}: {said}", data.display());
        }
    }
    for file in ["accounts.json", "devices.json", "tokens.json", "endpoints.json", "epoch", "hub.id", "journal.db"] {
        for (content, mode) in [("{\"version\":1,\"rubbish\":[]}", 0o600), ("{\"version\":9}", 0o600), ("", 0o644)] {
            let data = folder.path().join(format!("{file}-{mode}-{}", content.len()));
            fs::create_dir(&data).unwrap();
            if file == "epoch" || file == "hub.id" || file == "journal.db" {
                if content.is_empty() {
                    continue; // no secret in it
                }
                fs::write(data.join(file), content.repeat(100)).unwrap();
            } else {
                fs::write(data.join(file), content).unwrap();
            }
            fs::set_permissions(data.join(file), fs::Permissions::from_mode(mode)).unwrap();
            let (code, said) = run(&data, &serve, "");
            assert_eq!(code, USAGE, "{file} {content}: {said}");
            assert!(said.contains(file), "{said}");
            if mode == 0o644 {
                let mend = format!("chmod 600 {}", data.join(file).display());
                assert!(said.contains(&mend), "{said}");
                let (code, said) = run(&data, &["device", "add", "lamp"], "");
                assert!(code == USAGE && said.contains(&mend), "{said}");
            }
        }
    }
}

#[test]
fn the_readmes_list_the_exit_codes_that_the_help_lists() {
    let (_, help) = run(Path::new("/tmp"), &["--help"], "");
    let codes = help.split("Exit codes:").nth(1).unwrap();
    let rows: Vec<(&str, &str)> = codes.lines().filter_map(|line| line.trim().split_once("  ")).collect();
    assert_eq!(rows.len(), 7, "{rows:?}");
    let english = fs::read_to_string("README.md").unwrap();
    let chinese = fs::read_to_string("README.zh-CN.md").unwrap();
    for (code, meaning) in rows {
        assert!(english.contains(&format!("| {code} | {meaning} |")), "README.md does not say: | {code} | {meaning} |");
        assert!(chinese.lines().any(|line| line.starts_with(&format!("| {code} | "))), "README.zh-CN.md: {code}");
    }
}
