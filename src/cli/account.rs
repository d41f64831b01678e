//! `truetwin account`: on the running hub at once, or, if none runs, on the data folder itself.

use std::{fmt::Write as _, path::Path};

use super::{AccountCommand, Exit, Failure, PasswordArgs, say, secret, table::table, tell, tls::only_tls, unexpected};
use crate::{
    config::Config,
    control::{self, AccountInfo, Request, Response},
    data::{DataFolder, Secret},
    topics,
};

pub(super) fn run(command: AccountCommand, folder: &Path) -> anyhow::Result<Exit> {
    let (request, json) = match command {
        AccountCommand::Add { name, read, write, password, json } => {
            let password = chosen(&password, name.as_str())?;
            (Request::AccountAdd { name: name.to_string(), read, write, password }, json)
        }
        AccountCommand::Allow { name, read, write } => {
            return allow(&Request::AccountAllow { name: name.to_string(), read, write }, folder);
        }
        AccountCommand::List { json } => (Request::AccountList, json),
        AccountCommand::Rotate { name, password, json } => {
            let password = chosen(&password, name.as_str())?;
            (Request::AccountRotate { name: name.to_string(), password }, json)
        }
        AccountCommand::Remove { name } => (Request::AccountRemove { name: name.to_string() }, false),
    };
    match carry_out(&request, folder)? {
        Response::Account { account, password, mqtt } if json => {
            let mut made = serde_json::json!(account);
            made["mqtt"] = serde_json::json!(mqtt);
            if let Some(password) = password {
                made["password"] = serde_json::json!(password);
            }
            say(&format!("{made}\n"))
        }
        Response::Account { account, password, mqtt } => {
            let mut text = shown(&account, password.as_ref(), &mqtt);
            if only_tls(folder) {
                text.push_str(
                    "It has to speak TLS (mqtt.tls is \"only\") and to trust what prints: truetwin tls show --pem\n",
                );
            }
            tell(&text)
        }
        Response::Accounts { accounts } if json => say(&format!("{}\n", serde_json::json!(accounts))),
        Response::Accounts { accounts } => tell(&list(&accounts)),
        Response::Removed { device } => say(&format!("{device} is removed; whoever used it is cut off\n")),
        other @ (Response::Device { .. }
        | Response::Devices { .. }
        | Response::Answer { .. }
        | Response::Endpoint { .. }
        | Response::Endpoints { .. }
        | Response::Token { .. }
        | Response::Tokens { .. }
        | Response::Disputed { .. }
        | Response::BackedUp
        | Response::Error { .. }) => unexpected(&other),
    }
}

/// More rights: there is no password to show.
#[expect(clippy::wildcard_enum_match_arm, reason = "an answer to another question is one mistake, whichever it is")]
fn allow(request: &Request, folder: &Path) -> anyhow::Result<Exit> {
    match carry_out(request, folder)? {
        Response::Account { account, .. } => say(&allowed(&account)),
        other => unexpected(&other),
    }
}

fn allowed(account: &AccountInfo) -> String {
    let (read, write) = (patterns(&account.read), patterns(&account.write));
    format!("{} may read {read} and write {write}; whoever is connected as it comes in anew\n", account.name)
}

/// The password that was chosen, if one was.
fn chosen(password: &PasswordArgs, name: &str) -> anyhow::Result<Option<Secret>> {
    match &password.password_file {
        Some(file) => secret::from_file(file).map(Some),
        None if password.ask => secret::ask_new(&format!("password of {name}: "), "once more: ").map(Some),
        None => Ok(None),
    }
}

fn carry_out(request: &Request, folder: &Path) -> anyhow::Result<Response> {
    match control::ask(folder, request) {
        Err(control::Error::NoHub { .. }) => {}
        answered => return Ok(answered?),
    }
    // A folder that was mistyped must not be made.
    if !folder.exists() && !matches!(request, Request::AccountAdd { .. }) {
        let message = format!(
            "there is no data folder {}; `--data` names another one, `truetwin serve` makes it",
            folder.display()
        );
        return Err(Failure { exit: Exit::Usage, message }.into());
    }
    let data = DataFolder::open_offline(folder)?;
    let mqtt = Config::default().mqtt.listen.to_string();
    Ok(control::on_accounts(&data.accounts(), &mqtt, request).expect("all requests here are about accounts"))
}

fn shown(account: &AccountInfo, password: Option<&Secret>, mqtt: &str) -> String {
    let mut text = String::new();
    let mut add = |line: &str| writeln!(text, "{line}").expect("writing to a string does not fail");
    match password {
        Some(password) => {
            add(&format!("The password of {} is shown this once; the hub keeps only a hash of it.", account.name));
            add(password.reveal());
        }
        None => add(&format!("{} has the password that was given; the hub keeps only a hash of it.", account.name)),
    }
    add(&format!("It connects to {mqtt} with the user name {}.", account.name));
    add(&format!("It may read {} and write {}.", patterns(&account.read), patterns(&account.write)));
    text
}

fn patterns(patterns: &[String]) -> String {
    if patterns.is_empty() { "nothing".to_owned() } else { topics::shown(&patterns.join(" ")) }
}

fn list(accounts: &[AccountInfo]) -> String {
    if accounts.is_empty() {
        return "no account; make one with: truetwin account add NAME --read PATTERN --write PATTERN\n".to_owned();
    }
    let row = |account: &AccountInfo| {
        let connections = account.connections.map_or_else(|| "-".to_owned(), |connections| connections.to_string());
        [account.name.clone(), connections, patterns(&account.read), patterns(&account.write)]
    };
    let rows: Vec<[String; 4]> = accounts.iter().map(row).collect();
    table(["name", "connections", "may read", "may write"], &rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(request: &Request, folder: &Path) -> Response {
        carry_out(request, folder).expect("answered")
    }

    fn add(name: &str, write: &str) -> Request {
        let (read, write) = (vec!["zigbee2mqtt/#".to_owned()], vec![write.to_owned()]);
        Request::AccountAdd { name: name.into(), read, write, password: None }
    }

    #[test]
    fn an_account_is_made_listed_and_removed_on_the_folder_where_no_hub_runs() {
        let folder = tempfile::tempdir().expect("a folder");
        let Response::Account { account, password: Some(password), mqtt } = asked(&add("z2m", "a/#"), folder.path())
        else {
            panic!("not made")
        };
        let text = shown(&account, Some(&password), &mqtt);
        assert!(text.contains(password.reveal()) && text.contains("may read zigbee2mqtt/# and write a/#"), "{text}");
        let kept = std::fs::read_to_string(folder.path().join("accounts.json")).expect("written");
        assert!(!kept.contains(password.reveal()), "only its hash is kept");
        let Response::Accounts { accounts } = asked(&Request::AccountList, folder.path()) else { panic!("no list") };
        assert!(list(&accounts).contains("zigbee2mqtt/#"));
        let chosen = Some(Secret::new("correct horse".into()));
        let rotate = Request::AccountRotate { name: "z2m".into(), password: chosen };
        let Response::Account { account, password: None, .. } = asked(&rotate, folder.path()) else { panic!("made") };
        assert!(account.chosen);
        let remove = Request::AccountRemove { name: "z2m".into() };
        assert_eq!(asked(&remove, folder.path()), Response::Removed { device: "z2m".into() });
        let Response::Error { message } = asked(&remove, folder.path()) else { panic!("twice") };
        assert!(message.contains("account list"), "{message}");
    }

    #[test]
    fn a_pattern_shows_what_cannot_be_seen_in_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let Response::Account { account, mqtt, .. } = asked(&add("z2m", "a/\u{202e}b"), folder.path()) else {
            panic!("not made")
        };
        for said in [shown(&account, None, &mqtt), allowed(&account), list(std::slice::from_ref(&account))] {
            assert!(said.contains(r"a/\u{202e}b") && !said.contains('\u{202e}'), "{said}");
        }
    }

    #[test]
    fn what_cannot_be_made_says_what_is_allowed() {
        let folder = tempfile::tempdir().expect("a folder");
        let Response::Error { message } = asked(&add("z2m", "#"), folder.path()) else { panic!("made") };
        assert!(message.contains("truetwin/"), "{message}");
        let device = crate::property::DeviceId::new("lamp").expect("a name");
        let data = DataFolder::open_offline(folder.path()).expect("free");
        data.credentials().add(&device).expect("added");
        drop(data);
        let Response::Error { message } = asked(&add("lamp", "a/#"), folder.path()) else { panic!("made") };
        assert!(message.contains("lamp is a device"), "{message}");
    }
}
