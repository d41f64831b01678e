//! `truetwin endpoint`: on the running hub at once, or, if none runs, on the data folder itself.

use std::{fmt::Write as _, path::Path};

use jiff::{Timestamp, tz::TimeZone};

use super::{EndpointCommand, Exit, Failure, say, secret, table::table, tell, unexpected};
use crate::{
    answer,
    control::{self, EndpointInfo, Request, Response},
    data::{DataFolder, Secret},
    endpoint::parse_url,
    names::Lang,
    serve::added,
};

/// What is asked for at the prompt.
const PROMPT: &str = "The address of the access point (wss://… or ws://…, not shown): ";

pub(super) fn run(command: EndpointCommand, folder: &Path) -> anyhow::Result<Exit> {
    match command {
        EndpointCommand::Add { name } => add(&name, &secret::ask(PROMPT)?, folder),
        EndpointCommand::List { json } => list(folder, json),
        EndpointCommand::Test { name } => test(name, folder),
        EndpointCommand::Remove { name } => remove(name, folder),
        EndpointCommand::Prompt { name, lang } => prompt(name.as_deref(), lang, folder),
    }
}

fn usage(message: impl ToString) -> Failure {
    Failure { exit: Exit::Usage, message: message.to_string() }
}

/// Adds one; shown is only what is no secret.
pub(super) fn add(name: &str, url: &Secret, folder: &Path) -> anyhow::Result<Exit> {
    // Looked at here first: what is no address need not be asked about.
    let address = parse_url(url.reveal()).map_err(usage)?;
    let info = added::info(name, Some(&address), None);
    say(&format!("{name}: {}\n", about(&info)))?;
    match control::ask(folder, &Request::EndpointAdd { name: name.to_owned(), url: url.clone() }) {
        Ok(Response::Endpoint { endpoint, found, good }) => {
            tell(&lines(&found))?;
            tell(&sent(&endpoint))?;
            Ok(if good { Exit::Success } else { Exit::NotConfirmed })
        }
        Ok(other) => unexpected(&other),
        Err(control::Error::NoHub { .. }) => {
            let data = DataFolder::open_offline(folder)?;
            added::add(&data.endpoints(), &[], name, url).map_err(usage)?;
            let folder = folder.display();
            tell(&format!("added; no hub runs, so nothing was dialled: truetwin serve --data {folder} will\n"))
        }
        Err(error) => Err(error.into()),
    }
}

/// What is said of an address before it is dialled.
fn about(info: &EndpointInfo) -> String {
    let until =
        info.expires.map_or_else(|| "the token says no end".to_owned(), |at| format!("valid until {}", date(at)));
    format!("{}, agent {}, {} access point, {until}", info.address, info.agent, info.profile)
}

fn sent(endpoint: &EndpointInfo) -> String {
    match endpoint.tools.as_slice() {
        [] => "no tools have gone over yet; look again with: truetwin endpoint list\n".to_owned(),
        tools => format!("tools that went over: {}\n", tools.join(", ")),
    }
}

fn lines(found: &[String]) -> String {
    found.iter().fold(String::new(), |mut text, line| {
        writeln!(text, "{line}").expect("writing to a string does not fail");
        text
    })
}

/// A time of a token, as a date in this machine's time zone.
fn date(at: u64) -> String {
    let at = i64::try_from(at).ok().and_then(|at| Timestamp::from_second(at).ok());
    at.map_or_else(|| "?".to_owned(), |at| at.to_zoned(TimeZone::system()).strftime("%Y-%m-%d").to_string())
}

/// All that are known: of the running hub with their states, else of the folder.
fn all(folder: &Path) -> anyhow::Result<(Vec<EndpointInfo>, bool)> {
    match control::ask(folder, &Request::EndpointList) {
        Ok(Response::Endpoints { endpoints }) => Ok((endpoints, true)),
        Ok(other) => unexpected(&other).map(|_| (Vec::new(), true)),
        Err(control::Error::NoHub { .. }) if !folder.exists() => Ok((Vec::new(), false)),
        Err(control::Error::NoHub { .. }) => {
            let data = DataFolder::open_offline(folder)?;
            Ok((data.endpoints().list().iter().map(added::info_of).collect(), false))
        }
        Err(error) => Err(error.into()),
    }
}

fn list(folder: &Path, json: bool) -> anyhow::Result<Exit> {
    let (endpoints, running) = all(folder)?;
    if json {
        return say(&format!("{}\n", serde_json::json!(endpoints)));
    }
    if endpoints.is_empty() {
        return tell("no endpoint; add one with: truetwin endpoint add NAME\n");
    }
    let rows: Vec<[String; 7]> = endpoints.iter().map(row).collect();
    let mut text = table(["name", "state", "last end", "last call", "agent", "valid until", "address"], &rows);
    if !running {
        text.push_str("(no hub runs: nothing is dialled)\n");
    }
    say(&text)
}

fn row(e: &EndpointInfo) -> [String; 7] {
    let dash = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_owned());
    let last_end = match (&e.last_end, e.last_code) {
        (Some(end), Some(code)) => format!("{end} ({code})"),
        (Some(end), None) => end.clone(),
        (None, _) => "-".to_owned(),
    };
    let last_call = e.last_call.clone().unwrap_or_else(|| "no call arrived".to_owned());
    let expires = e.expires.map_or_else(|| "-".to_owned(), date);
    [e.name.clone(), dash(&e.state), last_end, last_call, e.agent.clone(), expires, e.address.clone()]
}

fn test(name: String, folder: &Path) -> anyhow::Result<Exit> {
    let (found, good) = match control::ask(folder, &Request::EndpointTest { name: name.clone() }) {
        Ok(Response::Endpoint { endpoint, found, good }) => {
            say(&format!("{name}: {}\n", about(&endpoint)))?;
            (found, good)
        }
        Ok(other) => return unexpected(&other),
        Err(control::Error::NoHub { .. }) => {
            let data = DataFolder::open_offline(folder)?;
            let stored = data.endpoints().get(&name);
            let stored = stored.ok_or_else(|| crate::data::Error::UnknownEndpoint(name.clone()))?;
            let address = parse_url(stored.url.reveal()).map_err(usage)?;
            say(&format!("{name}: {}\n", about(&added::info_of(&stored))))?;
            super::block_on_value(added::test(&address))?
        }
        Err(error) => return Err(error.into()),
    };
    tell(&lines(&found))?;
    Ok(if good { Exit::Success } else { Exit::NotConfirmed })
}

fn remove(name: String, folder: &Path) -> anyhow::Result<Exit> {
    match control::ask(folder, &Request::EndpointRemove { name: name.clone() }) {
        Ok(Response::Removed { .. }) => {}
        Ok(other) => return unexpected(&other),
        Err(control::Error::NoHub { .. }) if folder.exists() => {
            DataFolder::open_offline(folder)?.endpoints().remove(&name)?
        }
        Err(error) => return Err(error.into()),
    }
    say(&format!(
        "{name} is removed; its token is still good for whoever has it: make a new one in the console to end that\n"
    ))
}

fn prompt(name: Option<&str>, lang: Option<Lang>, folder: &Path) -> anyhow::Result<Exit> {
    let known = match name {
        None => None,
        Some(name) => {
            let (endpoints, _) = all(folder)?;
            let known = endpoints.into_iter().find(|e| e.name == name);
            Some(known.ok_or_else(|| crate::data::Error::UnknownEndpoint(name.to_owned()))?)
        }
    };
    let own = known.and_then(|e| e.language).map(|word| if word == "en" { Lang::En } else { Lang::Zh });
    say(&format!("{}\n", answer::console_prompt(lang.or(own).unwrap_or(Lang::Zh))))
}
