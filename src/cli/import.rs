//! `truetwin import`: takes the access points out of what people have already: `MCP_ENDPOINT` of the environment or of a
//! `.env`, and `mcpEndpoint` of a `xiaozhi.config.json`. Never prints a token, also not of what it does not understand.

use std::{io::Read as _, path::Path};

use serde_json::Value as Json;

use super::{Exit, Failure, endpoint, tell};
use crate::{
    control::{self, Request, Response},
    data::Secret,
    endpoint::parse_url,
};

/// The variable that the vendor's example reads.
const VARIABLE: &str = "MCP_ENDPOINT";

/// The largest file that is read, bytes.
const FILE_BYTES_MAX: u64 = 1_048_576;

/// What was found in a file.
#[derive(Debug, Default, PartialEq)]
struct Sources {
    /// The addresses, in the order of the file.
    urls: Vec<Secret>,
    /// What was found and is of no use here; names only.
    ignored: Vec<String>,
}

pub(super) fn run(file: Option<&Path>, name: Option<&str>, folder: &Path) -> anyhow::Result<Exit> {
    let sources = match file {
        None => environment()?,
        Some(file) => read(&content(file)?).map_err(|problem| usage(format!("{}: {problem}", file.display())))?,
    };
    for ignored in &sources.ignored {
        tell(&format!("ignored: {ignored}\n"))?;
    }
    if sources.urls.is_empty() {
        let message =
            format!("no access point in there; wanted is {VARIABLE} (.env) or mcpEndpoint (xiaozhi.config.json)");
        return Err(usage(message).into());
    }
    let mut taken = taken_names(folder);
    let single = sources.urls.len() == 1;
    let (mut worst, mut problems) = (Exit::Success, 0);
    for (at, url) in sources.urls.iter().enumerate() {
        let name = unused(name, single, &taken);
        match endpoint::add(&name, url, folder) {
            Ok(Exit::Success) => {}
            Ok(other) => worst = other,
            Err(error) => {
                problems += 1;
                tell(&format!("entry {}: not taken: {error:#}\n", at + 1))?;
            }
        }
        taken.push(name);
    }
    if problems == sources.urls.len() {
        return Err(usage("nothing was imported".to_owned()).into());
    }
    Ok(if problems > 0 { Exit::NotConfirmed } else { worst })
}

fn usage(message: String) -> Failure {
    Failure { exit: Exit::Usage, message }
}

fn environment() -> Result<Sources, Failure> {
    let url = std::env::var(VARIABLE)
        .map_err(|_| usage(format!("{VARIABLE} is not set; name a file, or - for standard input")))?;
    Ok(Sources { urls: vec![Secret::new(url)], ignored: Vec::new() })
}

fn content(file: &Path) -> Result<String, Failure> {
    let unread = |error: std::io::Error| usage(format!("cannot read {}: {error}", file.display()));
    let mut text = String::new();
    if file == Path::new("-") {
        std::io::stdin().lock().take(FILE_BYTES_MAX).read_to_string(&mut text).map_err(unread)?;
    } else {
        std::fs::File::open(file).map_err(unread)?.take(FILE_BYTES_MAX).read_to_string(&mut text).map_err(unread)?;
    }
    Ok(text)
}

/// Names that are in use, as far as can be known.
fn taken_names(folder: &Path) -> Vec<String> {
    match control::ask(folder, &Request::EndpointList) {
        Ok(Response::Endpoints { endpoints }) => endpoints.into_iter().map(|e| e.name).collect(),
        Ok(_) | Err(_) => crate::data::endpoint_names(folder).unwrap_or_default(),
    }
}

/// The name as it was given for a single address, else with the first number that is free.
fn unused(name: Option<&str>, single: bool, taken: &[String]) -> String {
    if let Some(name) = name.filter(|_| single) {
        return name.to_owned();
    }
    let base = name.unwrap_or("endpoint");
    let numbered = (1..).map(|number| format!("{base}{number}"));
    numbered.into_iter().find(|name| !taken.contains(name)).expect("there is always a number that nobody has")
}

/// Reads a file of either form.
fn read(text: &str) -> Result<Sources, String> {
    let text = text.trim_start_matches('\u{feff}').trim();
    if text.starts_with("wss://") || text.starts_with("ws://") {
        return Ok(Sources {
            urls: text.lines().map(|line| Secret::new(line.trim().to_owned())).collect(),
            ignored: Vec::new(),
        });
    }
    if text.starts_with('{') { json(text) } else { Ok(dotenv(text)) }
}

fn json(text: &str) -> Result<Sources, String> {
    // The reader's own words could quote what stands there.
    let broken = |error: serde_json::Error| format!("no JSON at line {}, column {}", error.line(), error.column());
    let Json::Object(all) = serde_json::from_str::<Json>(text).map_err(broken)? else { return Ok(Sources::default()) };
    let mut sources = Sources::default();
    for (key, value) in all {
        match (key.as_str(), value) {
            ("mcpEndpoint", Json::String(url)) => sources.take(&url),
            ("mcpEndpoint", Json::Array(urls)) => {
                for url in urls {
                    match url {
                        Json::String(url) => sources.take(&url),
                        Json::Null | Json::Bool(_) | Json::Number(_) | Json::Array(_) | Json::Object(_) => {
                            sources.ignored.push("an entry of mcpEndpoint that is no text".to_owned());
                        }
                    }
                }
            }
            ("mcpServers", Json::Object(servers)) => {
                let names: Vec<String> = servers.keys().map(|name| crate::audit::bounded(name, 40)).collect();
                let why =
                    "other tool servers are not this hub's; it can be one of them, see truetwin mcp --print-config";
                sources.ignored.push(format!("mcpServers ({}): {why}", names.join(", ")));
            }
            (key, _) => sources.ignored.push(crate::audit::bounded(key, 40)),
        }
    }
    Ok(sources)
}

fn dotenv(text: &str) -> Sources {
    let mut sources = Sources::default();
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let line = line.strip_prefix("export ").unwrap_or(line);
        let Some((key, value)) = line.split_once('=') else {
            sources.ignored.push("a line without =".to_owned());
            continue;
        };
        if key.trim() == VARIABLE {
            sources.take(value.trim().trim_matches(['"', '\'']));
        } else {
            sources.ignored.push(crate::audit::bounded(&crate::audit::masked(key.trim()), 40));
        }
    }
    sources
}

impl Sources {
    /// Takes an address; what is none (a text that is to be filled in) is ignored by its reason.
    fn take(&mut self, text: &str) {
        match parse_url(text) {
            Ok(_) => self.urls.push(Secret::new(text.to_owned())),
            Err(problem) => self.ignored.push(format!("an address that is none: {problem}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: &str = "ws://192.168.1.9:8004/mcp_endpoint/mcp/?token=aB3sec";
    const TWO: &str = "ws://192.168.1.9:8004/mcp_endpoint/mcp/?token=cD4sec";

    fn urls(text: &str) -> (Vec<String>, Vec<String>) {
        let sources = read(text).expect("readable");
        (sources.urls.iter().map(|url| url.reveal().to_owned()).collect(), sources.ignored)
    }

    #[test]
    fn a_dotenv_gives_its_one_address_and_says_what_else_there_was() {
        let text = format!("# mine\nexport MCP_ENDPOINT=\"{ONE}\"\nAPI_KEY=xyz\nnothing\n");
        assert_eq!(urls(&text), (vec![ONE.to_owned()], vec!["API_KEY".to_owned(), "a line without =".to_owned()]));
        assert_eq!(urls(&format!("MCP_ENDPOINT={ONE}\r\n")).0, [ONE]);
    }

    #[test]
    fn a_xiaozhi_configuration_gives_one_address_or_several() {
        assert_eq!(urls(&format!("{{\"mcpEndpoint\": \"{ONE}\"}}")).0, [ONE]);
        let text = format!(
            "{{\"mcpEndpoint\": [\"{ONE}\", \"{TWO}\", \"<fill in>\", 5], \"mcpServers\": {{\"calc\": {{}}}}, \"connection\": {{}}}}"
        );
        let (found, ignored) = urls(&text);
        assert_eq!(found, [ONE, TWO]);
        assert_eq!(ignored.len(), 4, "{ignored:?}");
        assert!(ignored.iter().any(|line| line.contains("calc") && line.contains("--print-config")), "{ignored:?}");
    }

    #[test]
    fn what_cannot_be_read_is_not_quoted() {
        let error = read(&format!("{{\"mcpEndpoint\": \"{ONE}\" oops")).expect_err("no JSON");
        assert!(!error.contains("sec") && error.contains("line 1"), "{error}");
        let (_, ignored) = urls(&format!("MCP_ENDPOINT=http{}\n{}=1", &ONE[2..], "k9".repeat(20)));
        assert!(ignored.iter().all(|line| !line.contains("sec") && !line.contains("k9k9")), "{ignored:?}");
    }

    #[test]
    fn names_are_made_up_beside_those_that_are_taken() {
        let taken = ["endpoint1".to_owned()];
        assert_eq!(unused(None, true, &taken), "endpoint2");
        assert_eq!(unused(Some("kitchen"), true, &taken), "kitchen");
        assert_eq!(unused(Some("kitchen"), false, &taken), "kitchen1");
    }
}
