//! `truetwin device`: on the running hub at once, or, if none runs, on the data folder itself.

use std::{
    fmt::Write as _,
    io,
    net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket},
    path::Path,
};

use super::{DeviceCommand, Exit, Failure, say, tell, tls::only_tls, unexpected};
use crate::{
    config::Config,
    control::{self, Listed, Request, Response},
    data::{DataFolder, Secret},
};

/// What is said where the hub takes no plain connection.
const TLS_NEEDED: &str = "
This hub takes TLS only (mqtt.tls = \"only\"): the program has to speak TLS and to trust what prints: truetwin tls show --pem
The simulator and the devices in Python and MicroPython speak plain MQTT and are refused; mqtt.tls = \"both\" lets them in.
";

#[expect(clippy::wildcard_enum_match_arm, reason = "an answer to another question is one mistake, whichever it is")]
pub(super) fn run(command: &DeviceCommand, folder: &Path) -> anyhow::Result<Exit> {
    let (request, json) = match command {
        DeviceCommand::Add { name, json } => (Request::DeviceAdd { name: name.to_string() }, *json),
        DeviceCommand::List { json } => (Request::DeviceList, *json),
        DeviceCommand::Rotate { name, json } => (Request::DeviceRotate { name: name.to_string() }, *json),
        DeviceCommand::Remove { name } => (Request::DeviceRemove { name: name.to_string() }, false),
    };
    let (response, running) = carry_out(&request, folder)?;
    match response {
        Response::Device { device, password, mqtt } if json => {
            let made = Made { device, password, mqtt };
            say(&(serde_json::to_string(&made).expect("three strings are always JSON") + "\n"))
        }
        Response::Device { device, password, mqtt } => {
            let lan = lan_address().ok();
            let mut text = sketch(&device, &password, Some(mqtt.as_str()).filter(|_| running), lan);
            if running && only_tls(folder) {
                text.push_str(TLS_NEEDED);
            }
            tell(&text)
        }
        Response::Devices { devices } if json => say(&format!("{}\n", serde_json::json!(devices))),
        Response::Devices { devices } => say(&list(&devices)),
        Response::Removed { device } => say(&format!("{device} has no password any more\n")),
        other => unexpected(&other),
    }
}

/// What `--json` prints for a device with a new password.
#[derive(serde::Serialize)]
struct Made {
    device: String,
    password: Secret,
    mqtt: String,
}

/// What came of a request, and whether a running hub said so.
fn carry_out(request: &Request, folder: &Path) -> anyhow::Result<(Response, bool)> {
    match control::ask(folder, request) {
        Err(control::Error::NoHub { .. }) => {}
        answered => return Ok((answered?, true)),
    }
    // Only the first device makes a folder: a name that was mistyped must not.
    if !folder.exists() && !matches!(request, Request::DeviceAdd { .. }) {
        let message = format!("there is no data folder {}; `truetwin device add` makes one", folder.display());
        return Err(Failure { exit: Exit::Usage, message }.into());
    }
    // No hub, so the folder can be had; if it cannot, a hub is just starting or stopping, and the error says who.
    let data = DataFolder::open_offline(folder)?;
    let mqtt = Config::default().mqtt.listen.to_string();
    let response = control::on_credentials(&data.credentials(), &mqtt, request);
    Ok((response.expect("all requests here are about credentials"), false))
}

fn list(devices: &[Listed]) -> String {
    let line = |listed: &Listed| match &listed.presence {
        Some(presence) => format!("{:<32} {presence}\n", listed.device),
        None => format!("{}\n", listed.device),
    };
    devices.iter().map(line).collect()
}

/// What to paste into a board's program. `running`: where the hub listens, if one runs; `lan`: this machine's address in the
/// network.
fn sketch(device: &str, password: &Secret, running: Option<&str>, lan: Option<IpAddr>) -> String {
    let by_default = Config::default().mqtt.listen.to_string();
    let mqtt = running.unwrap_or(&by_default);
    let (host, port) = match mqtt.parse::<SocketAddr>() {
        Ok(address) if address.ip().is_unspecified() || address.ip().is_loopback() => {
            (lan.unwrap_or(address.ip()).to_string(), address.port().to_string())
        }
        Ok(address) => (address.ip().to_string(), address.port().to_string()),
        Err(_) => (mqtt.to_owned(), "1883".to_owned()),
    };
    let password = password.reveal();
    let mut text = String::new();
    let mut add = |line: &str| writeln!(text, "{line}").expect("writing to a string does not fail");
    add(&format!("The password of {device} is shown this once; the hub keeps only a hash of it."));
    if running.is_none() {
        add("No hub runs on this data folder: start one where boards reach it, with --mqtt 0.0.0.0:1883.");
    } else if mqtt.parse::<SocketAddr>().is_ok_and(|address| address.ip().is_loopback()) {
        add(&format!(
            "The hub listens on {mqtt}, which only this machine reaches; for boards serve with --mqtt 0.0.0.0:{port}."
        ));
    }
    add("");
    add("// Arduino, ESP-IDF");
    add(&format!("#define TRUETWIN_HOST \"{host}\""));
    add(&format!("#define TRUETWIN_PORT {port}"));
    add(&format!("#define TRUETWIN_DEVICE \"{device}\""));
    add(&format!("#define TRUETWIN_PASSWORD \"{password}\""));
    add("");
    add("MicroPython, settings.json (with your Wi-Fi and the pin of your relay):");
    let settings = serde_json::json!({
        "host": host, "port": port.parse::<u16>().unwrap_or(1883), "name": device, "password": password,
        "ssid": "...", "wifi_password": "...", "pin": 4,
    });
    add(&settings.to_string());
    add("");
    add(
        "Python, or truetwin sim: the password alone in a file of yours, for --password-file. Paste it after this, then Enter and Ctrl-D:",
    );
    add(&format!("(umask 077; cat > {device}.secret)"));
    text
}

/// The address of this machine on the way to elsewhere. Connecting a datagram socket sends nothing; the address is of a
/// network for documentation (RFC 5737), to which the default route leads.
pub(super) fn lan_address() -> io::Result<IpAddr> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
    socket.connect((Ipv4Addr::new(192, 0, 2, 1), 9))?;
    Ok(socket.local_addr()?.ip())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secret() -> Secret {
        serde_json::from_str("\"0011\"").expect("a secret is a string")
    }

    #[test]
    fn a_sketch_names_an_address_that_a_board_can_reach() {
        let lan = Some("192.168.1.7".parse().expect("an address"));
        let text = sketch("lamp", &secret(), Some("0.0.0.0:1884"), lan);
        for line in [
            "#define TRUETWIN_HOST \"192.168.1.7\"",
            "#define TRUETWIN_PORT 1884",
            "#define TRUETWIN_DEVICE \"lamp\"",
            "#define TRUETWIN_PASSWORD \"0011\"",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} in\n{text}");
        }
        assert!(!text.contains("no board reaches it"));
        assert!(text.contains("(umask 077; cat > lamp.secret)"), "{text}");
        let settings = text.lines().find(|line| line.starts_with('{')).expect("settings.json");
        let settings: serde_json::Value = serde_json::from_str(settings).expect("JSON");
        assert_eq!((&settings["host"], &settings["port"]), (&"192.168.1.7".into(), &1884.into()));
        assert_eq!((&settings["name"], &settings["password"]), (&"lamp".into(), &"0011".into()));
        assert!(sketch("lamp", &secret(), Some("10.0.0.3:1883"), lan).contains("TRUETWIN_HOST \"10.0.0.3\""));
        assert!(sketch("lamp", &secret(), Some("127.0.0.1:1883"), lan).contains("serve with --mqtt 0.0.0.0:1883"));
        let text = sketch("lamp", &secret(), None, lan);
        assert!(text.contains("No hub runs") && !text.contains("The hub listens"), "{text}");
    }

    #[test]
    fn without_a_hub_the_folder_itself_is_changed() {
        let folder = tempfile::tempdir().expect("a folder");
        let add = Request::DeviceAdd { name: "lamp".to_owned() };
        let (Response::Device { password, .. }, false) = carry_out(&add, folder.path()).expect("added") else {
            panic!("not a device")
        };
        let data = DataFolder::open(folder.path()).expect("given back");
        assert!(data.credentials().verify("lamp", password.reveal().as_bytes()));
        let error = carry_out(&Request::DeviceList, folder.path()).expect_err("a hub that does not listen yet");
        assert_eq!(super::super::exit_of(&error), Exit::Taken);
    }
}
