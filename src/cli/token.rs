//! `truetwin token`: on the running hub at once, or, if none runs, on the data folder itself.

use std::{fmt::Write as _, path::Path};

use jiff::{Timestamp, tz::TimeZone};

use super::{Exit, Failure, TokenCommand, say, table::table, tell, unexpected};
use crate::{
    control::{self, Request, Response, TokenInfo},
    data::{DataFolder, Secret},
    names::Lang,
};

pub(super) fn run(command: TokenCommand, folder: &Path) -> anyhow::Result<Exit> {
    let (request, json) = match command {
        TokenCommand::Add { name, devices, read, lang, json } => {
            let language = lang.map(|lang| if lang == Lang::Zh { "zh" } else { "en" }.to_owned());
            let (devices, read) = (devices.as_deref().map(listed), read.as_deref().map(listed));
            (Request::TokenAdd { name, devices, read, language }, json)
        }
        TokenCommand::List { json } => (Request::TokenList, json),
        TokenCommand::Revoke { name } => (Request::TokenRevoke { name }, false),
    };
    match carry_out(&request, folder)? {
        Response::Token { info, token } if json => {
            let mut made = serde_json::json!(info);
            made["token"] = serde_json::json!(token);
            say(&format!("{made}\n"))
        }
        Response::Token { info, token } => tell(&shown(&info, &token)),
        Response::Tokens { tokens } if json => say(&format!("{}\n", serde_json::json!(tokens))),
        Response::Tokens { tokens } => tell(&list(&tokens)),
        Response::Removed { device } => say(&format!("{device} is revoked; whoever has it is let in no more\n")),
        other @ (Response::Device { .. }
        | Response::Devices { .. }
        | Response::Answer { .. }
        | Response::Account { .. }
        | Response::Accounts { .. }
        | Response::Endpoint { .. }
        | Response::Endpoints { .. }
        | Response::Disputed { .. }
        | Response::BackedUp
        | Response::Error { .. }) => unexpected(&other),
    }
}

fn carry_out(request: &Request, folder: &Path) -> anyhow::Result<Response> {
    match control::ask(folder, request) {
        Err(control::Error::NoHub { .. }) => {}
        answered => return Ok(answered?),
    }
    // A folder that was mistyped must not be made.
    if !folder.exists() && !matches!(request, Request::TokenAdd { .. }) {
        let message = format!(
            "there is no data folder {}; `--data` names another one, `truetwin serve` makes it",
            folder.display()
        );
        return Err(Failure { exit: Exit::Usage, message }.into());
    }
    let data = DataFolder::open_offline(folder)?;
    let now = Timestamp::now().to_zoned(TimeZone::system()).strftime("%Y-%m-%dT%H:%M:%S%:z").to_string();
    Ok(control::on_tokens(&data.tokens(), &now, request).expect("all requests here are about tokens"))
}

/// A list as it is written on a command line, with commas of either script; of nothing, an empty one.
fn listed(text: &str) -> Vec<String> {
    text.split([',', '，']).map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

fn shown(info: &TokenInfo, token: &Secret) -> String {
    let mut text = String::new();
    let mut add = |line: &str| writeln!(text, "{line}").expect("writing to a string does not fail");
    add(&format!("The token {} is shown this once; the hub keeps only a hash of it.", info.name));
    add(token.reveal());
    add("");
    add("Clients send it as: Authorization: Bearer TOKEN");
    add("truetwin call and truetwin mcp take it from the environment: TRUETWIN_TOKEN");
    add(&format!("It may move: {}. It may look at: {}.", may_move(info), may_read(info)));
    for selector in &info.unmatched {
        add(&format!("Nothing is called {selector:?} now; until something is, it selects nothing."));
    }
    text
}

fn may_move(info: &TokenInfo) -> String {
    match (&info.devices, &info.read) {
        (None, None) => "everything".to_owned(),
        (None, Some(_)) => "nothing".to_owned(),
        (Some(names), _) => named(names),
    }
}

fn may_read(info: &TokenInfo) -> String {
    match (&info.devices, &info.read) {
        (_, Some(names)) if !names.is_empty() => match may_move(info).as_str() {
            "nothing" | "everything" => named(names),
            _ => format!("that, and {}", named(names)),
        },
        _ => may_move(info),
    }
}

fn named(names: &[String]) -> String {
    match names {
        [] => "nothing".to_owned(),
        names if names.iter().any(|name| name == "*") => "everything".to_owned(),
        names => names.join(", "),
    }
}

fn list(tokens: &[TokenInfo]) -> String {
    if tokens.is_empty() {
        return "no token; make one with: truetwin token add NAME\n".to_owned();
    }
    let dash = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_owned());
    let row = |t: &TokenInfo| {
        [t.name.clone(), t.created.clone(), dash(&t.last_call), dash(&t.language), may_move(t), may_read(t)]
    };
    let rows: Vec<[String; 6]> = tokens.iter().map(row).collect();
    let mut text = table(["name", "made", "last call", "language", "may move", "may look at"], &rows);
    for token in tokens {
        for selector in &token.unmatched {
            text.push_str(&format!("{}: nothing is called {selector:?} now; it selects nothing\n", token.name));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_made_listed_and_revoked_on_the_folder_where_no_hub_runs() {
        let folder = tempfile::tempdir().expect("a folder");
        let devices = Some(listed("study， 客厅的灯,"));
        let add = Request::TokenAdd { name: "tv".into(), devices, read: None, language: Some("zh".into()) };
        let Response::Token { token, info } = carry_out(&add, folder.path()).expect("made") else { panic!("no token") };
        assert_eq!(info.devices, Some(vec!["study".to_owned(), "客厅的灯".to_owned()]));
        let text = shown(&info, &token);
        assert!(text.contains(token.reveal()) && text.contains("may move: study, 客厅的灯."), "{text}");
        let kept = std::fs::read_to_string(folder.path().join("tokens.json")).expect("written");
        assert!(!kept.contains(token.reveal()), "only its hash is kept");
        let Response::Error { message } = carry_out(&add, folder.path()).expect("answered") else { panic!("twice") };
        assert!(message.contains("token revoke tv"), "{message}");
        let data = DataFolder::open_offline(folder.path()).expect("free again");
        assert_eq!(data.tokens().verify(token.reveal().as_bytes()).as_deref(), Some("tv"));
        assert_eq!(data.tokens().verify(b"wrong"), None);
        drop(data);
        let revoke = Request::TokenRevoke { name: "tv".into() };
        assert!(matches!(carry_out(&revoke, folder.path()), Ok(Response::Removed { .. })));
        let Response::Tokens { tokens } = carry_out(&Request::TokenList, folder.path()).expect("listed") else {
            panic!("no list")
        };
        assert!(tokens.is_empty());
    }

    #[test]
    fn a_list_says_what_each_may() {
        let info = |devices: Option<&str>, read: Option<&str>| TokenInfo {
            devices: devices.map(listed),
            read: read.map(listed),
            ..TokenInfo::default()
        };
        let may = |devices, read| (may_move(&info(devices, read)), may_read(&info(devices, read)));
        let pair = |a: &str, b: &str| (a.to_owned(), b.to_owned());
        assert_eq!(may(None, None), pair("everything", "everything"));
        assert_eq!(may(None, Some("*")), pair("nothing", "everything"));
        assert_eq!(may(Some(""), None), pair("nothing", "nothing"));
        assert_eq!(may(Some("study"), Some("hall")), pair("study", "that, and hall"));
    }
}
