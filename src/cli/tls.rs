//! `truetwin tls`: a certificate for the door, and the authority that devices are given to trust. Works on the data folder, whether
//! or not a hub runs on it: that looks at its certificate at each connection.

use std::{fmt::Write as _, path::Path};

use super::{Exit, TlsCommand, device::lan_address, say, tell};
use crate::{
    config::Config,
    data::{self, Authority, DataFolder, Made},
};

pub(super) fn run(command: TlsCommand, folder: &Path) -> anyhow::Result<Exit> {
    match command {
        TlsCommand::Make { names } => {
            // A folder that is there may be that of a running hub, which is no hindrance.
            if !folder.exists() {
                drop(DataFolder::open_offline(folder)?);
            }
            let names = if names.is_empty() { own_names() } else { names };
            let made = data::make_certificate(folder, &names)?;
            tell(&told(&made, &names, &door(folder)))
        }
        TlsCommand::Show { pem: true } => say(&data::authority(folder)?.pem),
        TlsCommand::Show { pem: false } => tell(&shown(&data::authority(folder)?, &door(folder))),
    }
}

/// By what devices usually reach this machine: its name, with `.local` where that is not said, its address in the network, itself.
fn own_names() -> Vec<String> {
    let host = rustix::system::uname().nodename().to_string_lossy().to_lowercase();
    let mut names = vec![host.clone()];
    if !host.contains('.') {
        names.push(format!("{host}.local"));
    }
    names.push("localhost".to_owned());
    names.extend(lan_address().ok().map(|address| address.to_string()));
    names.extend(["127.0.0.1", "::1"].map(str::to_owned));
    let mut seen = std::collections::BTreeSet::new();
    names.retain(|name| seen.insert(name.clone()));
    names
}

/// Whether a hub runs on the folder and takes no plain connection.
pub(super) fn only_tls(folder: &Path) -> bool {
    data::read_hub_json(folder).is_ok_and(|hub| hub.tls == "only")
}

/// Where devices connect: to the hub that runs, else by default.
enum Door {
    Running(String),
    Default,
}

fn door(folder: &Path) -> Door {
    data::read_hub_json(folder).map_or(Door::Default, |hub| Door::Running(hub.mqtt))
}

impl Door {
    /// The address, and a word on it where the configuration may say another.
    fn said(&self) -> (String, &'static str) {
        match self {
            Self::Running(address) => (address.clone(), ""),
            Self::Default => {
                (Config::default().mqtt.listen.to_string(), " (or where mqtt.listen says; no hub runs now)")
            }
        }
    }
}

fn told(made: &Made, names: &[String], door: &Door) -> String {
    let mut text = String::new();
    let mut add = |line: &str| writeln!(text, "{line}").expect("writing to a string does not fail");
    add(&format!("The hub has a certificate until {} for: {}", made.until, names.join(", ")));
    add("A hub that runs with mqtt.tls shows it from the next connection on. To switch it on, in the configuration:");
    add("");
    add("[mqtt]");
    add("tls = \"both\"   # or \"only\": who comes without is refused");
    add("");
    if made.is_new {
        add("Devices have to trust the home's authority, which is new. Give each this file:");
    } else {
        add("The home's authority is the same as before; devices that trust it need nothing. It is:");
    }
    text + &shown(&made.authority, door)
}

fn shown(authority: &Authority, door: &Door) -> String {
    let (file, (address, note)) = (authority.file.display(), door.said());
    format!(
        "{file}\nSHA-256 fingerprint: {}\n\nTry it, once the hub runs with TLS: openssl s_client -connect {address} -CAfile \
         {file}{note}\nArduino: client.setCACert(...) with what prints: truetwin tls show --pem\n",
        authority.fingerprint
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_port_is_that_of_the_hub_that_runs_and_else_said_to_be_the_default() {
        let folder = tempfile::tempdir().expect("a folder");
        let authority = Authority { file: "ca.pem".into(), pem: String::new(), fingerprint: "00".into() };
        let text = shown(&authority, &door(folder.path()));
        assert!(text.contains("-connect 127.0.0.1:1883") && text.contains("no hub runs now"), "{text}");
        let data = DataFolder::open(folder.path()).expect("a data folder");
        let [mqtt, http] = ["0.0.0.0:8883", "127.0.0.1:8080"].map(|address| address.parse().expect("an address"));
        data.write_hub_json(mqtt, http, "only", 1).expect("written");
        let text = shown(&authority, &door(folder.path()));
        assert!(text.contains("-connect 127.0.0.1:8883") && !text.contains("no hub runs"), "{text}");
        assert!(only_tls(folder.path()));
    }
}
