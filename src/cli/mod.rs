//! The command line. Its words and exit codes are stable: scripts, units and clients are built on them.
//!
//! | exit code | meaning |
//! |---|---|
//! | 0 | done, and confirmed |
//! | 1 | the operation or an endpoint was not confirmed, the demo disagreed, or not all of a replay could be compared |
//! | 2 | usage, configuration, or a file that cannot be used as it is; its owner mends that |
//! | 3 | no hub is running |
//! | 4 | the address or the data folder is taken |
//! | 5 | internal, or the system refused something |
//! | 6 | a replay decides otherwise than was recorded |
//!
//! Results go to stdout, logs and errors to stderr. This is the only module that speaks on stdout; what a command does
//! is done by others.

mod account;
mod args;
mod audit;
mod backup;
mod device;
mod endpoint;
mod exit;
mod hint;
mod import;
mod listen;
mod log;
mod replay;
mod run;
mod secret;
mod table;
mod tls;
mod token;

use std::{
    future::Future,
    io::{self, Write as _},
    path::Path,
};

use anyhow::Context as _;

pub use self::{
    args::{
        AccountCommand, AuditArgs, AuditCommand, Cli, Command, DemoArgs, DeviceCommand, EndpointCommand, McpArgs,
        PasswordArgs, ReplayArgs, ServeArgs, SimArgs, TlsCommand, TokenCommand,
    },
    exit::{Exit, Failure, exit_of},
    hint::complete,
    listen::{Error as ListenError, listen},
};
use crate::{
    config::Config,
    control::{self, Request, Response},
    data, serve,
};

/// Runs a command.
///
/// # Errors
/// Whatever went wrong, with its causes; [`exit_of`] says with which code to end.
pub fn run(cli: Cli) -> anyhow::Result<Exit> {
    log::start(!matches!(cli.command, Command::Serve(_) | Command::Mcp(_) | Command::Sim(_)))?;
    let folder = || data::folder(cli.data.as_deref());
    if cli.data.is_some() || std::env::var_os("TRUETWIN_DATA").is_some_and(|value| !value.is_empty()) {
        hint::remember(&folder()?);
    }
    match cli.command {
        Command::Serve(args) => {
            let folder = folder()?;
            let config = serve_config(&args, Some(&folder))?;
            block_on(run::serve(config, folder))
        }
        Command::Demo(args) => block_on(run::demo(args)),
        Command::Mcp(args) if args.print_config.as_deref() == Some("http") => say(&http_config(&folder()?)),
        Command::Mcp(args) if args.print_config.is_some() => {
            let program = std::env::current_exe().context("cannot find my own path")?;
            say(&mcp_config(&program, &folder()?, &args))
        }
        Command::Mcp(args) => block_on(run::mcp(args, folder()?)),
        Command::Sim(args) => run::sim(&args),
        Command::Call { tool, arguments } => {
            let arguments = call_arguments(&arguments)?;
            block_on(run::call(tool, arguments, folder()?))
        }
        Command::Device { command } => device::run(&command, &folder()?),
        Command::Account { command } => account::run(command, &folder()?),
        Command::Endpoint { command } => endpoint::run(command, &folder()?),
        Command::Token { command } => token::run(command, &folder()?),
        Command::Tls { command } => tls::run(command, &folder()?),
        Command::Import { file, name } => import::run(file.as_deref(), name.as_deref(), &folder()?),
        Command::Audit(args) => audit::run(args, &folder()?),
        Command::Dispute { what, note } => audit::dispute(what, note, &folder()?),
        Command::Backup { file } => backup::make(&file, &folder()?),
        Command::Restore { file } => backup::restore(&file, &folder()?),
        Command::Replay(args) => replay::run(&args),
        Command::Set { device, property, value } => set(&folder()?, device, property, &value),
        Command::CheckConfig { config } => check_config(config.as_deref(), folder().ok().as_deref()),
    }
}

/// Prints what is in force; what is probably not meant goes to stderr.
fn check_config(file: Option<&Path>, folder: Option<&Path>) -> anyhow::Result<Exit> {
    let config = Config::load(file)?;
    startable(&config, folder)?;
    for note in config.notes().into_iter().chain(unknown(&config, folder)) {
        eprintln!("truetwin: note: {}", complete(&note));
    }
    say(&config.in_force())
}

/// Whether a hub can start with a configuration; all that is wrong is told. Without a data folder only what the configuration says
/// itself is looked at.
fn startable(config: &Config, folder: Option<&Path>) -> anyhow::Result<()> {
    let mistakes = serve::mistakes(config, folder).into_iter();
    let mut wrong: Vec<String> = mistakes.map(|mistake| format!("{:#}", anyhow::Error::new(mistake))).collect();
    let message = match wrong.len() {
        0 => return Ok(()),
        1 => wrong.remove(0),
        count => format!("{count} mistakes:\n  {}", wrong.join("\n  ")),
    };
    Err(Failure { exit: Exit::Usage, message }.into())
}

/// What the configuration names in vain, beside the devices of the data folder, if there is one: perhaps a typo. What a device has is in
/// the journal, which a running hub holds; the start of a hub tells that, too.
fn unknown(config: &Config, folder: Option<&Path>) -> Vec<String> {
    let Some(Ok(Some(known))) = folder.map(data::device_names) else { return Vec::new() };
    serve::unknown(config, &known, &serve::Described::new())
}

/// The configuration of `serve`: the file, and over it the flags. `folder`: the data folder, if a hub is to begin on it.
fn serve_config(args: &ServeArgs, folder: Option<&Path>) -> anyhow::Result<Config> {
    let mut config = Config::load(args.config.as_deref())?;
    if let Some(address) = args.mqtt {
        config.mqtt.listen = address;
    }
    if let Some(address) = args.http {
        config.http.listen = address;
    }
    if let Some(file) = &args.record {
        config.recording.file = Some(file.display().to_string());
    }
    config.check()?;
    startable(&config, folder)?;
    Ok(config)
}

fn block_on(work: impl Future<Output = anyhow::Result<Exit>>) -> anyhow::Result<Exit> {
    block_on_value(work)?
}

fn block_on_value<T>(work: impl Future<Output = T>) -> anyhow::Result<T> {
    // One thread for all that is asynchronous; the bus has its own, and what blocks has threads for that. A call goes through
    // a dozen tasks and hardly computes: on one thread each hands over to the next without waking a processor, which took
    // longer than the work. It is also all that a home needs (README, *What is honest*).
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().context("cannot start the runtime")?;
    let done = runtime.block_on(work);
    // Not by dropping it: that would wait for the thread that reads standard input, until the client says something more.
    runtime.shutdown_background();
    Ok(done)
}

#[expect(clippy::wildcard_enum_match_arm, reason = "an answer to another question is one mistake, whichever it is")]
fn set(folder: &Path, device: String, property: String, value: &str) -> anyhow::Result<Exit> {
    match control::ask(folder, &Request::Set { device, property, value: scalar(value) })? {
        Response::Answer { success, answer } => {
            say(&(answer.to_string() + "\n"))?;
            Ok(if success { Exit::Success } else { Exit::NotConfirmed })
        }
        other => unexpected(&other),
    }
}

/// The value as its JSON reads, if it is `true`, `false` or a number; any other is a text. The hub checks it against the
/// property.
fn scalar(text: &str) -> serde_json::Value {
    match serde_json::from_str(text) {
        Ok(value @ (serde_json::Value::Bool(_) | serde_json::Value::Number(_))) => value,
        Ok(_) | Err(_) => text.into(),
    }
}

fn call_arguments(text: &str) -> anyhow::Result<serde_json::Map<String, serde_json::Value>> {
    let usage = |problem: String| Failure { exit: Exit::Usage, message: problem };
    match serde_json::from_str(text) {
        Ok(serde_json::Value::Object(arguments)) => Ok(arguments),
        Ok(_) => Err(usage(format!("{text} is no JSON object; write for example '{{\"device\":\"lamp\"}}'")).into()),
        Err(error) => Err(usage(format!("the arguments are not JSON: {error}")).into()),
    }
}

/// An answer that is an error, or one to another question.
#[expect(clippy::wildcard_enum_match_arm, reason = "an answer to another question is one mistake, whichever it is")]
fn unexpected(response: &Response) -> anyhow::Result<Exit> {
    match response {
        Response::Error { message } => Err(Failure { exit: Exit::Usage, message: message.clone() }.into()),
        _ => Err(Failure { exit: Exit::Internal, message: "the hub answered another question".to_owned() }.into()),
    }
}

/// What Claude Desktop and its like want to have in their configuration.
fn mcp_config(program: &Path, folder: &Path, args: &McpArgs) -> String {
    let mut words = vec![serde_json::json!("mcp"), serde_json::json!("--data"), serde_json::json!(folder)];
    let mut flag =
        |name: &str, value: Option<serde_json::Value>| words.extend(value.into_iter().flat_map(|v| [name.into(), v]));
    // The client starts it in a folder of its own: a path that is relative here would lead elsewhere there.
    let config = args.inside.config.as_ref().map(|file| std::path::absolute(file).unwrap_or_else(|_| file.clone()));
    flag("--config", config.map(|file| serde_json::json!(file)));
    let record = args.inside.record.as_ref().map(|file| std::path::absolute(file).unwrap_or_else(|_| file.clone()));
    flag("--record", record.map(|file| serde_json::json!(file)));
    flag("--mqtt", args.inside.mqtt.map(|address| serde_json::json!(address)));
    flag("--http", args.inside.http.map(|address| serde_json::json!(address)));
    flag("--hub", args.hub.as_ref().map(|hub| serde_json::json!(hub)));
    let server = serde_json::json!({ "type": "stdio", "command": program, "args": words });
    let config = serde_json::json!({ "mcpServers": { "truetwin": server } });
    format!("{config:#}\n")
}

/// The same for a client that connects to a hub which runs: where it listens now, or where it does by default.
fn http_config(folder: &Path) -> String {
    let http = data::read_hub_json(folder)
        .map_or_else(|_| format!("http://{}", Config::default().http.listen), |hub| hub.http);
    let headers = serde_json::json!({ "Authorization": "Bearer (printed by: truetwin token add NAME)" });
    let server = serde_json::json!({ "type": "streamablehttp", "url": format!("{http}/mcp"), "headers": headers });
    let config = serde_json::json!({ "mcpServers": { "truetwin": server } });
    format!("{config:#}\n")
}

/// Writes what people read: commands that it names have the data folder. What is for machines goes through [`say`].
fn tell(text: &str) -> anyhow::Result<Exit> {
    say(&complete(text))
}

/// Writes a result. A reader that has gone, as `head` does, is no mistake.
fn say(text: &str) -> anyhow::Result<Exit> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error).context("cannot write to stdout"),
        Ok(()) | Err(_) => Ok(Exit::Success),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_what_it_reads_as() {
        assert_eq!(scalar("true"), serde_json::json!(true));
        assert_eq!(scalar("21.5"), serde_json::json!(21.5));
        assert_eq!(scalar("on"), serde_json::json!("on"));
        assert_eq!(scalar("#ff8800"), serde_json::json!("#ff8800"));
        assert_eq!(scalar("null"), serde_json::json!("null"));
        assert_eq!(scalar("[1]"), serde_json::json!("[1]"));
    }

    #[test]
    fn flags_go_over_the_file_and_are_checked_with_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("t.toml");
        std::fs::write(&file, "[http]\nlisten = \"127.0.0.1:8081\"").expect("a file");
        let args = |http: Option<&str>| ServeArgs {
            config: Some(file.clone()),
            mqtt: Some("0.0.0.0:0".parse().expect("an address")),
            http: http.map(|http| http.parse().expect("an address")),
            record: None,
        };
        let config = serve_config(&args(None), None).expect("good");
        assert_eq!((config.mqtt.listen.to_string(), config.http.listen.port()), ("0.0.0.0:0".to_owned(), 8081));
        let error = serve_config(&args(Some("0.0.0.0:80")), None).expect_err("not loopback");
        assert!(error.to_string().contains("--http"), "{error}");
        assert_eq!(exit_of(&error), Exit::Usage);
    }

    #[test]
    fn check_config_and_serve_refuse_the_same_and_tell_all_of_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("t.toml");
        let text = "[confirm]\ncode_file = \"none\"\n[[endpoint]]\nname = \"kitchen\"\nurl = \"ftp://x\"\n";
        std::fs::write(&file, text).expect("a file");
        let args = ServeArgs { config: Some(file.clone()), mqtt: None, http: None, record: None };
        let errors =
            [serve_config(&args, None).expect_err("refused"), check_config(Some(&file), None).expect_err("refused")];
        for error in errors {
            let said = format!("{error:#}");
            assert!(said.starts_with("2 mistakes:\n") && said.contains("kitchen"), "{said}");
            // By the path that it has, seen from the file; and what is wrong once.
            let code = folder.path().join("none").display().to_string();
            assert!(said.contains(&code) && said.matches("No such file").count() == 1, "{said}");
            assert_eq!(exit_of(&error), Exit::Usage);
        }
    }

    #[test]
    fn a_device_of_the_configuration_without_a_password_is_told() {
        let folder = tempfile::tempdir().expect("a folder");
        let config =
            Config::parse("t", "[devices.lamp]\nname = \"lamp\"\n[devices.lmap]\nname = \"other\"\n").expect("good");
        assert!(unknown(&config, Some(folder.path())).is_empty(), "no data folder to compare it with");
        let data = data::DataFolder::open(folder.path()).expect("a data folder");
        data.credentials().add(&crate::property::DeviceId::new("lamp").expect("an id")).expect("added");
        let told = unknown(&config, Some(folder.path()));
        assert!(told.len() == 1 && told[0].starts_with("devices.lmap: no device lmap"), "{told:?}");
    }
}
