//! `truetwin tls`: a certificate for the door, and the authority that devices are given to trust. Works on the data folder, whether
//! or not a hub runs on it: that looks at its certificate at each connection.

use std::{fmt::Write as _, path::Path};

use super::{Exit, TlsCommand, device::lan_address, say};
use crate::data::{self, Authority, DataFolder, Made};

pub(super) fn run(command: TlsCommand, folder: &Path) -> anyhow::Result<Exit> {
    match command {
        TlsCommand::Make { names } => {
            // A folder that is there may be that of a running hub, which is no hindrance.
            if !folder.exists() {
                drop(DataFolder::open_offline(folder)?);
            }
            let names = if names.is_empty() { own_names() } else { names };
            let made = data::make_certificate(folder, &names)?;
            say(&told(&made, &names))
        }
        TlsCommand::Show { pem: true } => say(&data::authority(folder)?.pem),
        TlsCommand::Show { pem: false } => say(&shown(&data::authority(folder)?)),
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

fn told(made: &Made, names: &[String]) -> String {
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
    text + &shown(&made.authority)
}

fn shown(authority: &Authority) -> String {
    let file = authority.file.display();
    format!(
        "{file}\nSHA-256 fingerprint: {}\n\nTry it, once the hub runs with TLS: openssl s_client -connect localhost:1883 -CAfile \
         {file}\nArduino: client.setCACert(...) with what prints: truetwin tls show --pem\n",
        authority.fingerprint
    )
}
