//! `truetwin demo`: the main job in front of one's eyes. A hub, six simulated sockets, one of them healthy and one for
//! each fault; each is called through a real MCP client, and what was answered is laid beside what its relay really did.

use std::{
    fmt::Write as _,
    net::SocketAddr,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use serde_json::{Value as Json, json};
use tokio::net::TcpListener;
use unicode_width::UnicodeWidthStr;

use crate::{
    config::Config,
    data::{self, DataFolder},
    mcp::{Client, ClientError},
    names::Lang,
    property::DeviceId,
    serve::{self, Hub},
    sim::{self, Fault, Simulator},
    twin::words::Presence,
};

/// How long the simulated sockets may take to come online: on a busy machine, loopback and six handshakes.
const ONLINE_MAX: Duration = Duration::from_secs(20);

/// Why the demo could not be given.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The hub.
    #[error("the hub of the demo cannot be started")]
    Hub(#[from] serve::Error),
    /// The data folder.
    #[error("the data folder of the demo cannot be used")]
    Data(#[from] data::Error),
    /// A port.
    #[error("no free port on 127.0.0.1")]
    Port(#[source] std::io::Error),
    /// The client.
    #[error("the MCP client failed")]
    Client(#[from] ClientError),
    /// The sockets.
    #[error("the simulated socket {0} did not come online within {max} s", max = ONLINE_MAX.as_secs())]
    NotOnline(DeviceId),
}

/// One simulated socket and what its fault must give (semantics, the fault table).
struct Case {
    device: &'static str,
    en: &'static str,
    zh: &'static str,
    fault: Fault,
    result: &'static str,
    outcome: &'static str,
    stage: &'static str,
    reason: Option<&'static str>,
    confirmed_by: Option<&'static str>,
    moves: u64,
}

#[rustfmt::skip]
const CASES: [Case; 6] = [
    Case { device: "healthy", en: "healthy socket", zh: "正常的插座",   fault: Fault::None,    result: "confirmed",   outcome: "converged",    stage: "settled",               reason: None,                      confirmed_by: Some("pin"),  moves: 1 },
    Case { device: "slow",    en: "slow socket",    zh: "慢插座",   fault: Fault::Slow,    result: "confirmed",   outcome: "converged",    stage: "settled",               reason: None,                      confirmed_by: Some("pin"),  moves: 1 },
    Case { device: "stuck",   en: "stuck socket",   zh: "卡住的插座", fault: Fault::Stuck,   result: "failed",      outcome: "failed",       stage: "waiting_device_report", reason: Some("stuck"),             confirmed_by: Some("none"), moves: 0 },
    Case { device: "lying",   en: "lying socket",   zh: "说谎的插座", fault: Fault::Lying,   result: "failed",      outcome: "contradicted", stage: "waiting_read_back",     reason: Some("read_back_differs"), confirmed_by: Some("none"), moves: 0 },
    Case { device: "frozen",  en: "frozen socket",  zh: "死机的插座", fault: Fault::Frozen,  result: "unconfirmed", outcome: "timed_out",    stage: "waiting_device_ack",    reason: Some("timeout_after_"),    confirmed_by: Some("none"), moves: 0 },
    Case { device: "offline", en: "absent socket",  zh: "断线的插座", fault: Fault::Offline, result: "failed",      outcome: "offline",      stage: "admission",             reason: None,                      confirmed_by: None, moves: 0 },
];

/// A hub with its sockets, on a fresh data folder that goes with it.
struct House {
    hub: Hub,
    sockets: Vec<Simulator>,
    folder: Folder,
}

/// A folder that is removed with its owner.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _left_to_the_system = std::fs::remove_dir_all(&self.0);
    }
}

/// Gives the demo, then stays up until `stop`, or ends at once with `exit`. Whether every answer agreed with the fault
/// table and with the relay.
///
/// # Errors
/// [`Error`], if it could not be given.
pub async fn run(lang: Lang, exit: bool, stop: impl Future<Output = ()>) -> Result<bool, Error> {
    let house = House::build(lang).await?;
    let client = Client::connect(&format!("http://{}/mcp", house.hub.http_addr())).await?;
    let (mut rows, mut said) = (Vec::new(), Vec::new());
    let mut agreed = true;
    for (case, socket) in CASES.iter().zip(&house.sockets) {
        socket.set_fault(case.fault);
        house.gone_if_offline(case).await;
        let before = socket.moves();
        let began = Instant::now();
        let name = case.name(lang);
        let called = client.call("switch_device", json!({"device": name, "to": "on"})).await?;
        let took = began.elapsed();
        // Were it told too late, it would move now.
        if case.fault == Fault::Frozen {
            socket.set_fault(Fault::None);
            house.answers_again(&client, case, lang).await?;
        }
        let moves = socket.moves() - before;
        let differs = case.differs(&called.structured, moves);
        agreed &= differs.is_empty();
        rows.push(row(case, &called.structured, moves, took, &differs, lang));
        said.push(format!("  {}: {}", name, called.structured["say"].as_str().unwrap_or_default()));
    }
    say(&table(&rows, lang));
    say(naive_note(lang));
    say(&format!("{}\n", said.join("\n")));
    say(verdict(agreed, lang));
    if !exit {
        say(&house.next_steps(lang));
        stop.await;
    }
    client.close().await;
    house.take_down().await;
    Ok(agreed)
}

impl House {
    async fn build(lang: Lang) -> Result<Self, Error> {
        let folder = Folder(std::env::temp_dir().join(format!("truetwin-demo-{}", crate::random::id(6))));
        let mut text = format!("language = \"{}\"\n", if lang == Lang::Zh { "zh" } else { "en" });
        for case in &CASES {
            let _never_fails =
                write!(text, "[devices.{}]\nname = \"{}\"\nname_zh = \"{}\"\n", case.device, case.en, case.zh);
        }
        let config = Config::parse("demo", &text).expect("the demo's own settings are allowed");
        let (mqtt, http) = (free_port().await?, free_port().await?);
        let data = DataFolder::open(&folder.0)?;
        let passwords = data.credentials().add_all(&CASES.each_ref().map(Case::id))?; // before the hub looks whom it knows
        let hub = Hub::start(config, data, mqtt, http).await?;
        let mut sockets = Vec::new();
        for (case, password) in CASES.iter().zip(passwords) {
            sockets.push(sim::start(sim::Options {
                mqtt: hub.mqtt_addr(),
                device: case.id().to_string(),
                password: password.reveal().to_owned(),
                fault: Fault::None,
                ..sim::Options::default()
            }));
        }
        let house = Self { hub, sockets, folder };
        for case in &CASES {
            house.wait_for(case, Presence::Online).await?;
        }
        Ok(house)
    }

    /// Waits until a socket that leaves is known to have left.
    async fn gone_if_offline(&self, case: &Case) {
        if case.fault == Fault::Offline {
            let _the_table_will_show_it = self.wait_for(case, Presence::Offline).await;
        }
    }

    async fn wait_for(&self, case: &Case, wanted: Presence) -> Result<(), Error> {
        let (device, by) = (case.id(), Instant::now() + ONLINE_MAX);
        while self.hub.parts().fleet.card(&device).is_none_or(|card| card.presence != wanted) {
            if Instant::now() > by {
                return Err(Error::NotOnline(device));
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        Ok(())
    }

    /// Waits until a socket that was frozen answers a question: by then it has read the old command too.
    async fn answers_again(&self, client: &Client, case: &Case, lang: Lang) -> Result<(), Error> {
        for _ in 0..10 {
            let state = client.call("get_device_state", json!({"device": case.name(lang)})).await?;
            if state.structured["trust"] == "now" {
                break;
            }
        }
        Ok(())
    }

    fn next_steps(&self, lang: Lang) -> String {
        next_steps(self.hub.mqtt_addr(), self.hub.http_addr(), &self.folder.0, lang)
    }

    async fn take_down(self) {
        for socket in self.sockets {
            socket.stop();
        }
        self.hub.stop().await;
    }
}

impl Case {
    fn id(&self) -> DeviceId {
        DeviceId::new(self.device).expect("the demo's ids are allowed")
    }

    fn name(&self, lang: Lang) -> &'static str {
        match lang {
            Lang::En => self.en,
            Lang::Zh => self.zh,
        }
    }

    /// What is other than the fault table says.
    fn differs(&self, answer: &Json, moves: u64) -> Vec<String> {
        let mut differs = Vec::new();
        let mut check = |field: &str, wanted: Json| {
            if answer[field] != wanted {
                differs.push(format!("{field} is {}, not {wanted}", answer[field]));
            }
        };
        check("success", json!(self.result == "confirmed"));
        check("result", json!(self.result));
        check("outcome", json!(self.outcome));
        check("stage", json!(self.stage));
        check("confirmed_by", json!(self.confirmed_by));
        let reason = answer["reason"].as_str();
        if self.reason.is_some_and(|wanted| !reason.is_some_and(|reason| reason.starts_with(wanted))) {
            differs.push(format!("reason is {reason:?}"));
        }
        if moves != self.moves {
            differs.push(format!("the relay moved {moves} times, not {}", self.moves));
        }
        differs
    }
}

async fn free_port() -> Result<TcpListener, Error> {
    TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0))).await.map_err(Error::Port)
}

type Row = [String; 9];

fn row(case: &Case, answer: &Json, moves: u64, took: Duration, differs: &[String], lang: Lang) -> Row {
    let word = |field: &str| answer[field].as_str().unwrap_or("").to_owned();
    let (naive, moved, still) = match lang {
        Lang::En => ("done", "moved", "still"),
        Lang::Zh => ("成功", "动了", "没动"),
    };
    let relay = if moves == 0 { still.to_owned() } else { format!("{moved} x{moves}") };
    let agrees = if differs.is_empty() { "=".to_owned() } else { format!("≠ {}", differs.join("; ")) };
    let confirmed_by = answer["confirmed_by"].as_str().filter(|word| *word != "none").unwrap_or("-");
    let reason = if word("reason").is_empty() { word("outcome") } else { word("reason") };
    [
        format!("{} ({})", case.name(lang), case.fault),
        naive.to_owned(),
        word("result"),
        word("stage"),
        reason,
        confirmed_by.to_owned(),
        format!("{:.2}s", took.as_secs_f64()),
        relay,
        agrees,
    ]
}

fn table(rows: &[Row], lang: Lang) -> String {
    let heads: Row = match lang {
        Lang::En => {
            ["device (fault)", "naive hub", "truetwin", "stage", "reason", "confirmed by", "time", "relay", "agrees"]
        }
        Lang::Zh => ["设备（故障）", "只管转发的中枢", "truetwin", "阶段", "原因", "证据", "用时", "继电器", "一致"],
    }
    .map(str::to_owned);
    let widths: Vec<usize> = (0..heads.len())
        .map(|column| rows.iter().chain([&heads]).map(|row| row[column].width()).max().unwrap_or(0))
        .collect();
    let line = |row: &Row| {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell}{}", " ".repeat(width - cell.width())));
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    let rule = widths.iter().map(|width| "-".repeat(*width)).collect::<Vec<_>>().join("  ");
    let mut text = format!("{}\n{rule}\n", line(&heads));
    for row in rows {
        text.push_str(&line(row));
        text.push('\n');
    }
    text
}

/// What the second column is, and what the lines below the table are.
fn naive_note(lang: Lang) -> &'static str {
    match lang {
        Lang::En => "(A naive hub publishes the command and returns true.) What truetwin had the assistant say:",
        Lang::Zh => "（只管转发的中枢把命令发布出去就返回 true。）truetwin 让助手说的话：",
    }
}

fn verdict(agreed: bool, lang: Lang) -> &'static str {
    match (agreed, lang) {
        (true, Lang::En) => "Every answer agrees with the fault table and with what the relay really did.",
        (false, Lang::En) => {
            "An answer does not agree with the fault table or the relay (marked with ≠). That is a bug."
        }
        (true, Lang::Zh) => "每一句回答都与故障表和继电器的真实动作一致。",
        (false, Lang::Zh) => "有回答与故障表或继电器的真实动作不一致（标有 ≠）。这是一个错误。",
    }
}

fn next_steps(mqtt: SocketAddr, http: SocketAddr, folder: &Path, lang: Lang) -> String {
    let data = folder.display();
    let program = std::env::current_exe().map_or_else(|_| "truetwin".to_owned(), |path| path.display().to_string());
    let call = |device: &str| {
        format!("  {program} call switch_device '{{\"device\":\"{device}\",\"to\":\"off\"}}' --data {data}")
    };
    match lang {
        Lang::En => format!(
            "\nThe hub stays up until Ctrl-C. To try next, in another terminal:\n{}\n  {program} device list --data {data}\n  \
             curl -s http://{http}/metrics | grep truetwin_operations_total\n  \
             npx @modelcontextprotocol/inspector   then connect to http://{http}/mcp\n  \
             a device of your own: {program} device add mine --data {data}   (MQTT at {mqtt})",
            call("healthy socket")
        ),
        Lang::Zh => format!(
            "\n中枢会一直运行，按 Ctrl-C 结束。接下来可以在另一个终端里试：\n{}\n  {program} device list --data {data}\n  \
             curl -s http://{http}/metrics | grep truetwin_operations_total\n  \
             npx @modelcontextprotocol/inspector   然后连接 http://{http}/mcp\n  \
             接入自己的设备：{program} device add mine --data {data}   （MQTT 在 {mqtt}）",
            call("正常的插座")
        ),
    }
}

#[expect(clippy::print_stdout, reason = "this is a part of the command line")]
fn say(text: &str) {
    println!("{text}");
}
