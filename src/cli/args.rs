//! What can be written on the command line.

use std::{net::SocketAddr, path::PathBuf};

use clap::{Args, Parser, Subcommand};

use super::exit;
use crate::{names::Lang, property::DeviceId};

/// A home-lab hub whose tool calls say done only when it is done.
#[derive(Debug, Parser)]
#[command(version, after_help = exit::help(), after_long_help = exit::help(), max_term_width = 100)]
pub struct Cli {
    /// The folder of what the hub must remember [default: $TRUETWIN_DATA, else $XDG_DATA_HOME/truetwin, else
    /// ~/.local/share/truetwin]
    #[arg(long, global = true, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run the hub
    Serve(ServeArgs),
    /// Show what the hub answers when a relay works, and when it does not; needs nothing but this program
    Demo(DemoArgs),
    /// Speak MCP on stdin and stdout, for a client on this machine; uses the hub that runs
    Mcp(McpArgs),
    /// Be a device, also one with a fault; speaks plain MQTT, which a hub with mqtt.tls = "only" refuses
    Sim(SimArgs),
    /// Give devices their passwords, also while the hub runs
    Device {
        /// What to do.
        #[command(subcommand)]
        command: DeviceCommand,
    },
    /// Let programs and people in that are no device (Home Assistant, Zigbee2MQTT, MQTT Explorer), also while the hub runs
    Account {
        /// What to do.
        #[command(subcommand)]
        command: AccountCommand,
    },
    /// Connect voice boxes: access points that the hub dials, also while it runs
    Endpoint {
        /// What to do.
        #[command(subcommand)]
        command: EndpointCommand,
    },
    /// Give HTTP clients their tokens, also while the hub runs
    Token {
        /// What to do.
        #[command(subcommand)]
        command: TokenCommand,
    },
    /// Make a certificate for TLS, and the authority that devices are given to trust
    Tls {
        /// What to do.
        #[command(subcommand)]
        command: TlsCommand,
    },
    /// Take the access points out of an existing configuration
    Import {
        /// A .env with MCP_ENDPOINT, a xiaozhi.config.json, or - for stdin; without one, $MCP_ENDPOINT
        file: Option<PathBuf>,
        /// What to call it; several are numbered [default: endpoint1, endpoint2 …]
        #[arg(long)]
        name: Option<String>,
    },
    /// Show what was called, by whom, and what was answered; works without a hub
    Audit(AuditArgs),
    /// Note that something which was said to be done was not
    Dispute {
        /// An operation's id, or a device: then the latest operation on it
        what: String,
        /// What was wrong
        #[arg(long, value_name = "TEXT")]
        note: Option<String>,
    },
    /// Copy all that the hub knows to one file, also while it runs
    Backup {
        /// The file; nothing may be there yet
        file: PathBuf,
    },
    /// Put a backup in the place of what the data folder holds; no hub may run on it
    Restore {
        /// The backup
        file: PathBuf,
    },
    /// Step what a hub recorded (serve --record) through the twin again, and say where it decides otherwise; works without a hub
    Replay(ReplayArgs),
    /// Set a property of a device, and say what became of it
    Set {
        /// Its id or name
        device: String,
        /// Its property
        property: String,
        /// The value: true, false, a number or a text
        #[arg(allow_hyphen_values = true)]
        value: String,
    },
    /// Call a tool of the running hub, as an assistant does
    Call {
        /// The tool
        tool: String,
        /// Its arguments, a JSON object
        #[arg(default_value = "{}", value_name = "JSON")]
        arguments: String,
    },
    /// Check a configuration and print what is in force
    CheckConfig {
        /// The configuration; without one, the defaults
        #[arg(long, value_name = "FILE")]
        config: Option<PathBuf>,
    },
}

/// What to do with service accounts. Their passwords are asked for or read from a file, never an argument.
#[derive(Debug, Subcommand)]
pub enum AccountCommand {
    /// Make one. Without a password its password is made, and printed this once
    // The lists of patterns take all words behind them: the name stands before.
    #[command(override_usage = "truetwin account add <NAME> [OPTIONS]")]
    Add {
        /// Its user name: 1 to 32 of a-z, 0-9, _ and -; no device has it
        #[arg(value_parser = account_name)]
        name: DeviceId,
        /// What it may read: topics with the wildcards of MQTT, as in 'homeassistant/#' 'zigbee2mqtt/+/set'
        #[arg(long, value_name = "PATTERN", num_args = 1..)]
        read: Vec<String>,
        /// What it may write; never the topics of devices, truetwin/…
        #[arg(long, value_name = "PATTERN", num_args = 1..)]
        write: Vec<String>,
        /// Where a password comes from.
        #[command(flatten)]
        password: PasswordArgs,
        /// Print a JSON object instead
        #[arg(long)]
        json: bool,
    },
    /// Let one read and write more; its program connects anew
    #[command(override_usage = "truetwin account allow <NAME> [OPTIONS]")]
    Allow {
        /// Which one
        #[arg(value_parser = account_name)]
        name: DeviceId,
        /// What it may read from now on, too
        #[arg(long, value_name = "PATTERN", num_args = 1..)]
        read: Vec<String>,
        /// What it may write from now on, too
        #[arg(long, value_name = "PATTERN", num_args = 1..)]
        write: Vec<String>,
    },
    /// List them: what each may read and write, its connections
    List {
        /// Print a JSON list instead
        #[arg(long)]
        json: bool,
    },
    /// Give one another password; the old one counts no more, and whoever uses it is cut off
    Rotate {
        /// Which one
        #[arg(value_parser = account_name)]
        name: DeviceId,
        /// Where a password comes from.
        #[command(flatten)]
        password: PasswordArgs,
        /// Print a JSON object instead
        #[arg(long)]
        json: bool,
    },
    /// Remove one; whoever uses it is cut off
    Remove {
        /// Which one
        #[arg(value_parser = account_name)]
        name: DeviceId,
    },
}

/// Where the password of a service account comes from; by default the hub makes one.
#[derive(Debug, Args)]
pub struct PasswordArgs {
    /// Its password is the first line of this file, which only its owner may read
    #[arg(long, value_name = "F", conflicts_with = "ask")]
    pub password_file: Option<PathBuf>,
    /// Ask for its password (hidden, and once more; or give it on standard input)
    #[arg(long)]
    pub ask: bool,
}

/// What to do with bearer tokens.
#[derive(Debug, Subcommand)]
pub enum TokenCommand {
    /// Make one and print it, this once
    Add {
        /// What to call it: 1 to 32 of a-z, 0-9, _ and -
        #[arg(value_parser = endpoint_name)]
        name: String,
        /// What it may look at and move: ids, names, rooms, groups, with commas between [default: everything]
        #[arg(long, value_name = "LIST")]
        devices: Option<String>,
        /// What it may only look at; alone, it may move nothing
        #[arg(long, value_name = "LIST")]
        read: Option<String>,
        /// Its language: en or zh [default: the hub's]
        #[arg(long, value_parser = lang)]
        lang: Option<Lang>,
        /// Print a JSON object instead
        #[arg(long)]
        json: bool,
    },
    /// List them: what each may, its last call
    List {
        /// Print a JSON list instead
        #[arg(long)]
        json: bool,
    },
    /// Take one back: from now on it may nothing
    Revoke {
        /// Which one
        name: String,
    },
}

/// What to do with the door's certificate.
#[derive(Debug, Subcommand)]
pub enum TlsCommand {
    /// Make the hub's certificate, also anew, and once the authority that signs it; print what devices need
    Make {
        /// The names and addresses by which devices reach the hub [default: those of this machine]
        names: Vec<String>,
    },
    /// Print where the authority is, and its fingerprint
    Show {
        /// Print its certificate instead
        #[arg(long)]
        pem: bool,
    },
}

/// What to do with access points. Their addresses hold a token: they are asked for, never an argument.
#[derive(Debug, Subcommand)]
pub enum EndpointCommand {
    /// Add one: asks for its address (hidden; or give it on stdin), dials, and prints the tools that went over
    Add {
        /// What to call it: 1 to 32 of a-z, 0-9, _ and -
        #[arg(value_parser = endpoint_name)]
        name: String,
    },
    /// List them: state, how the last connection ended, the last call
    List {
        /// Print a JSON list instead
        #[arg(long)]
        json: bool,
    },
    /// Say whether calls can come through one, and what to do if not; 1 if not
    Test {
        /// Which one
        name: String,
    },
    /// Remove one that was added by command
    Remove {
        /// Which one
        name: String,
    },
    /// Print the text to paste into the role of its agent
    Prompt {
        /// Which one: its language is taken
        name: Option<String>,
        /// en or zh
        #[arg(long, value_parser = lang)]
        lang: Option<Lang>,
    },
}

/// Arguments of `audit`.
#[derive(Debug, Args)]
pub struct AuditArgs {
    /// Only calls of this caller or session, by a part of it: kitchen, token:ci, http
    #[arg(long, global = true)]
    pub caller: Option<String>,
    /// Only calls about this device, by its id or the name that was heard
    #[arg(long, global = true)]
    pub device: Option<String>,
    /// Only calls of this tool
    #[arg(long, global = true)]
    pub tool: Option<String>,
    /// Only calls since then: 90s, 30m, 2h, 3d, 1w, 2026-11-30, or RFC 3339
    #[arg(long, global = true, value_name = "WHEN")]
    pub since: Option<String>,
    /// Only calls that did not go as they should, and disputes
    #[arg(long, global = true)]
    pub failed: bool,
    /// Print the records as they are kept, one JSON object a line
    #[arg(long)]
    pub json: bool,
    /// Look at them together instead.
    #[command(subcommand)]
    pub command: Option<AuditCommand>,
}

/// What to do with the records.
#[derive(Debug, Subcommand)]
pub enum AuditCommand {
    /// Use by tool and caller, arguments that models get wrong, false successes avoided, hints at wrong final words
    Stats {
        /// Print a JSON object instead
        #[arg(long)]
        json: bool,
    },
}

/// Arguments of `serve`.
#[derive(Debug, Args)]
pub struct ServeArgs {
    /// The configuration; without one, the defaults (deploy/truetwin.toml lists them)
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Where devices connect, instead of mqtt.listen; port 0 takes a free one
    #[arg(long, value_name = "ADDR")]
    pub mqtt: Option<SocketAddr>,
    /// Where MCP clients connect, instead of http.listen; beyond loopback only with tokens; port 0 takes a free one
    #[arg(long, value_name = "ADDR")]
    pub http: Option<SocketAddr>,
    /// Record what reaches each device's twin and what it decides, for truetwin replay, instead of recording.file; a recording
    /// that is there goes on, any other file is refused
    #[arg(long, value_name = "FILE")]
    pub record: Option<PathBuf>,
}

/// Arguments of `replay`.
#[derive(Debug, Args)]
pub struct ReplayArgs {
    /// The recording
    pub file: PathBuf,
    /// Only this device
    #[arg(long, value_name = "NAME", value_parser = device_id)]
    pub device: Option<DeviceId>,
    /// Print JSON objects instead, one a line
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `demo`.
#[derive(Debug, Args)]
pub struct DemoArgs {
    /// End after the scripted calls; 1 if an answer was not what it must be
    #[arg(long)]
    pub exit: bool,
    /// The language of the sentences: en or zh
    #[arg(long, value_parser = lang, default_value = "en")]
    pub lang: Lang,
}

/// Arguments of `mcp`.
#[derive(Debug, Args)]
pub struct McpArgs {
    /// The hub, instead of the one that runs on the data folder
    #[arg(long, value_name = "URL")]
    pub hub: Option<String>,
    /// Print what to put into a client's configuration (Claude Desktop, an mcp_config.json), and end; http: for a hub that
    /// runs, with a bearer token
    #[arg(long, value_name = "HOW", num_args = 0..=1, default_missing_value = "stdio", require_equals = true, value_parser = ["stdio", "http"])]
    pub print_config: Option<String>,
    /// How the hub inside is to be, where none runs on the data folder
    #[command(flatten)]
    pub inside: ServeArgs,
}

/// Arguments of `sim`.
#[derive(Debug, Args)]
#[command(
    override_usage = "truetwin sim --mqtt <ADDR> --device <NAME> --password-file <F> [OPTIONS]\n       truetwin sim --list"
)]
pub struct SimArgs {
    /// List the kinds and the faults, and end
    #[arg(long)]
    pub list: bool,
    /// Where the hub listens for devices, host and port
    #[arg(long, value_name = "ADDR", required_unless_present = "list")]
    pub mqtt: Option<String>,
    /// The device to be
    #[arg(long, value_name = "NAME", value_parser = device_id, required_unless_present = "list")]
    pub device: Option<DeviceId>,
    /// The file with its password, so that it is in no list of processes; nobody else may read it (chmod 600)
    #[arg(long, value_name = "F", required_unless_present = "list")]
    pub password_file: Option<PathBuf>,
    /// What sort of device [default: socket]
    #[arg(long, value_name = "K")]
    pub kind: Option<String>,
    /// What goes wrong [default: none]
    #[arg(long, value_name = "X")]
    pub fault: Option<String>,
    /// How fast motors turn and rooms warm up: 10 makes a blind of 25 s one of 2.5 s
    #[arg(long, value_name = "N", default_value_t = 1.0)]
    pub speed: f64,
    /// Take lines of control here, too, as on standard input; this machine only, port 0 takes a free one
    #[arg(long, value_name = "ADDR")]
    pub control: Option<SocketAddr>,
}

/// What to do with devices.
#[derive(Debug, Subcommand)]
pub enum DeviceCommand {
    /// Give a new device a password, and print what to paste into its program
    Add {
        /// Its id: 1 to 32 of a-z, 0-9, _ and -
        #[arg(value_parser = device_id)]
        name: DeviceId,
        /// Print {"device", "password", "mqtt"} instead
        #[arg(long)]
        json: bool,
    },
    /// List the devices that have a password
    List {
        /// Print a JSON list instead
        #[arg(long)]
        json: bool,
    },
    /// Give a device another password; the old one counts no more
    Rotate {
        /// Its id
        #[arg(value_parser = device_id)]
        name: DeviceId,
        /// Print {"device", "password", "mqtt"} instead
        #[arg(long)]
        json: bool,
    },
    /// Take a device's password away
    Remove {
        /// Its id
        #[arg(value_parser = device_id)]
        name: DeviceId,
    },
}

fn device_id(text: &str) -> Result<DeviceId, String> {
    DeviceId::new(text).map_err(|error| error.to_string())
}

fn account_name(text: &str) -> Result<DeviceId, String> {
    DeviceId::new(text)
        .map_err(|_| format!("{text:?} is no name of an account: 1 to 32 of a-z, 0-9, _ and - are allowed"))
}

fn endpoint_name(text: &str) -> Result<String, String> {
    crate::data::endpoint_name(text).map(|name| name.to_string()).map_err(|error| error.to_string())
}

fn lang(text: &str) -> Result<Lang, String> {
    match text {
        "en" => Ok(Lang::En),
        "zh" => Ok(Lang::Zh),
        _ => Err("en or zh is allowed".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    fn parsed(line: &str) -> Result<Cli, clap::Error> {
        Cli::try_parse_from(line.split_whitespace())
    }

    #[test]
    fn the_definition_holds_together() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_documented_line_is_understood() {
        for line in [
            "truetwin serve",
            "truetwin serve --config f --data d --mqtt 0.0.0.0:1883 --http [::1]:0",
            "truetwin --data d serve",
            "truetwin demo --exit --lang zh",
            "truetwin mcp --hub http://127.0.0.1:8080 --data d",
            "truetwin mcp --print-config",
            "truetwin sim --mqtt localhost:1883 --device lamp --password-file f --kind lamp --fault stuck",
            "truetwin sim --mqtt 127.0.0.1:1 --device b --password-file f --kind blind --speed 10 --control 127.0.0.1:0",
            "truetwin sim --list",
            "truetwin device add lamp --json",
            "truetwin device list --data d",
            "truetwin device rotate lamp",
            "truetwin device remove lamp",
            "truetwin account add ha --read homeassistant/# truetwin/# --write homeassistant/# --json",
            "truetwin account add z2m --write zigbee2mqtt/# --read zigbee2mqtt/# --password-file f",
            "truetwin account add me --read # --ask",
            "truetwin account allow me --read #",
            "truetwin account allow me --read=-x/y --write=-x/#",
            "truetwin account list --json",
            "truetwin account rotate ha --ask",
            "truetwin account remove ha --data d",
            "truetwin endpoint add kitchen",
            "truetwin endpoint list --json",
            "truetwin endpoint test kitchen --data d",
            "truetwin endpoint remove kitchen",
            "truetwin endpoint prompt kitchen --lang zh",
            "truetwin endpoint prompt",
            "truetwin import .env --name kitchen",
            "truetwin import -",
            "truetwin import",
            "truetwin audit",
            "truetwin backup /tmp/home.truetwin",
            "truetwin restore home.truetwin --data d",
            "truetwin serve --record bug.jsonl",
            "truetwin replay bug.jsonl --device lamp --json",
            "truetwin audit --caller kitchen --device lamp --tool switch_device --since 2h --failed --json",
            "truetwin audit stats --since 2026-11-30 --json",
            "truetwin audit --since 1d stats",
            "truetwin dispute 4f1c --note dark",
            "truetwin mcp --print-config=http",
            "truetwin set lamp relay true",
            "truetwin set heater offset -2.5",
            "truetwin call ping",
            "truetwin call switch_device {\"device\":\"lamp\"}",
            "truetwin token add tv --devices study,all --read * --lang zh --json",
            "truetwin token list --json",
            "truetwin token revoke tv",
            "truetwin tls make",
            "truetwin tls make hub.local 192.168.1.7 --data d",
            "truetwin tls show --pem",
            "truetwin check-config --config f",
        ] {
            parsed(line).unwrap_or_else(|error| panic!("{line}: {error}"));
        }
    }

    /// Every argument of every command, with the command's name.
    fn arguments(command: &clap::Command, found: &mut Vec<String>) {
        found.extend(command.get_arguments().map(|argument| format!("{} {}", command.get_name(), argument.get_id())));
        command.get_subcommands().for_each(|sub| arguments(sub, found));
    }

    #[test]
    fn no_argument_is_a_secret_and_those_that_have_to_do_with_one_name_its_file() {
        let mut found = Vec::new();
        arguments(&Cli::command(), &mut found);
        assert!(found.len() > 40, "{found:?}");
        let secret = ["password", "secret", "token", "key", "code", "url", "credential"];
        let is_about =
            |argument: &&str| argument.split(' ').skip(1).any(|id| secret.iter().any(|word| id.contains(word)));
        let mut about: Vec<&str> = found.iter().map(String::as_str).filter(is_about).collect();
        about.sort_unstable();
        about.dedup();
        // A new one is thought about here: where does the secret come from? What is asked for (`endpoint add`, `account add --ask`)
        // or comes from the environment (TRUETWIN_TOKEN) is no argument.
        assert_eq!(about, ["add password_file", "rotate password_file", "sim password_file"], "{found:#?}");
    }

    #[test]
    fn what_is_not_understood_ends_with_the_code_of_usage() {
        for line in [
            "truetwin",
            "truetwin account add Ha --read #",
            "truetwin account add ha --ask --password-file f",
            "truetwin fly",
            "truetwin device add Lamp",
            "truetwin demo --lang de",
            "truetwin sim",
        ] {
            assert_eq!(parsed(line).expect_err(line).exit_code(), 2, "{line}");
        }
    }
}
