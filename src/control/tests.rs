//! Over real sockets, with a handler on real credentials.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

use tokio::{io::Lines, sync::Notify};

use super::*;

/// A hub's end: credentials are real, a `set` is answered by its value, and that of `"wait"` never.
struct Hub {
    credentials: Credentials,
    waiting: Arc<Notify>,
    left: Arc<Left>,
}

#[derive(Default)]
struct Left {
    flag: AtomicBool,
    notify: Notify,
}

/// Says that a `set` was dropped before its end.
struct OnDrop(Arc<Left>);

impl Drop for OnDrop {
    fn drop(&mut self) {
        self.0.flag.store(true, SeqCst);
        self.0.notify.notify_one();
    }
}

impl Handler for Hub {
    async fn handle(&self, request: Request) -> Response {
        if let Some(response) = on_credentials(&self.credentials, "127.0.0.1:1883", &request) {
            return response;
        }
        let Request::Set { value, .. } = request else { panic!("all others are about credentials") };
        if value == "wait" {
            let _on_drop = OnDrop(self.left.clone());
            self.waiting.notify_one();
            std::future::pending::<()>().await;
        }
        Response::Answer { success: value == true, answer: serde_json::json!({ "value": value }) }
    }
}

struct Running {
    folder: tempfile::TempDir,
    data: DataFolder,
    waiting: Arc<Notify>,
    left: Arc<Left>,
    stop: CancellationToken,
    serving: tokio::task::JoinHandle<()>,
}

impl Running {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let data = DataFolder::open(folder.path()).unwrap();
        let (waiting, left) = (Arc::new(Notify::new()), Arc::new(Left::default()));
        let hub = Hub { credentials: data.credentials(), waiting: waiting.clone(), left: left.clone() };
        let stop = CancellationToken::new();
        let serving = tokio::spawn(Server::bind(&data).unwrap().run(hub, stop.clone()));
        Self { folder, data, waiting, left, stop, serving }
    }

    async fn ask(&self, request: Request) -> Result<Response, Error> {
        let path = self.folder.path().to_owned();
        tokio::task::spawn_blocking(move || ask(&path, &request)).await.unwrap()
    }

    async fn connect(&self) -> UnixStream {
        UnixStream::connect(self.folder.path().join(SOCKET)).await.unwrap()
    }
}

fn set(value: serde_json::Value) -> Request {
    Request::Set { device: "lamp".into(), property: "relay".into(), value }
}

fn add(name: &str) -> Request {
    Request::DeviceAdd { name: name.into() }
}

async fn answer(lines: &mut Lines<BufReader<UnixStream>>) -> Response {
    serde_json::from_str(&lines.next_line().await.unwrap().expect("an answer")).unwrap()
}

#[tokio::test]
async fn a_device_is_added_listed_rotated_and_removed_on_a_running_hub() {
    let hub = Running::start();
    let Response::Device { device, password, mqtt } = hub.ask(add("lamp")).await.unwrap() else { panic!() };
    assert_eq!((device.as_str(), mqtt.as_str()), ("lamp", "127.0.0.1:1883"));
    assert!(hub.data.credentials().verify("lamp", password.reveal().as_bytes()), "it counts at once");
    let Response::Error { message } = hub.ask(add("lamp")).await.unwrap() else { panic!() };
    assert!(message.contains("truetwin device rotate lamp"), "{message}");
    let Response::Error { message } = hub.ask(add("客厅灯")).await.unwrap() else { panic!() };
    assert!(message.contains("a-z"), "{message}");
    let listed = Listed { device: "lamp".into(), presence: None };
    assert_eq!(hub.ask(Request::DeviceList).await.unwrap(), Response::Devices { devices: vec![listed] });
    let Response::Device { .. } = hub.ask(Request::DeviceRotate { name: "lamp".into() }).await.unwrap() else {
        panic!()
    };
    assert!(!hub.data.credentials().verify("lamp", password.reveal().as_bytes()));
    let removed = hub.ask(Request::DeviceRemove { name: "lamp".into() }).await.unwrap();
    assert_eq!(removed, Response::Removed { device: "lamp".into() });
    assert!(hub.data.credentials().list().is_empty());
}

#[tokio::test]
async fn a_set_carries_its_value_and_its_answer_unchanged() {
    let hub = Running::start();
    for (value, success) in
        [(serde_json::json!(true), true), (serde_json::json!(2.5), false), (serde_json::json!("热"), false)]
    {
        let expected = Response::Answer { success, answer: serde_json::json!({ "value": value }) };
        assert_eq!(hub.ask(set(value)).await.unwrap(), expected);
    }
}

#[tokio::test]
async fn what_is_no_request_is_answered_and_the_next_is_served() {
    let hub = Running::start();
    let mut lines = BufReader::new(hub.connect().await).lines();
    for bad in ["", "{", "null", "{\"request\":\"reboot\"}", "{\"request\":\"device_add\",\"name\":\"a\",\"x\":1}"] {
        lines.get_mut().write_all(format!("{bad}\n").as_bytes()).await.unwrap();
        let Response::Error { message } = answer(&mut lines).await else { panic!("{bad}") };
        assert!(message.starts_with("not a request"), "{message}");
    }
    lines.get_mut().write_all(b"{\"request\":\"device_list\"}\n").await.unwrap();
    assert_eq!(answer(&mut lines).await, Response::Devices { devices: vec![] });
}

#[tokio::test]
async fn a_line_without_end_is_told_its_limit_and_closed() {
    let hub = Running::start();
    let mut lines = BufReader::new(hub.connect().await).lines();
    lines.get_mut().write_all(&[b'x'; REQUEST_BYTES_MAX + 1]).await.unwrap();
    let Response::Error { message } = answer(&mut lines).await else { panic!() };
    assert!(message.contains(&REQUEST_BYTES_MAX.to_string()), "{message}");
    assert!(lines.next_line().await.unwrap().is_none(), "closed");
}

#[tokio::test]
async fn one_connection_too_many_is_told_so_and_the_others_are_served() {
    let hub = Running::start();
    let mut held = Vec::new();
    for _ in 0..CONNECTIONS_MAX {
        let mut lines = BufReader::new(hub.connect().await).lines();
        lines.get_mut().write_all(b"{\"request\":\"device_list\"}\n").await.unwrap();
        answer(&mut lines).await;
        held.push(lines);
    }
    let Response::Error { message } = hub.ask(Request::DeviceList).await.unwrap() else { panic!() };
    assert!(message.contains("8 commands"), "{message}");
    held[3].get_mut().write_all(b"{\"request\":\"device_list\"}\n").await.unwrap();
    assert_eq!(answer(&mut held[3]).await, Response::Devices { devices: vec![] });
}

#[tokio::test]
async fn s4_7_a_caller_who_goes_away_stops_waiting() {
    let hub = Running::start();
    let mut stream = hub.connect().await;
    stream.write_all(&line(&set("wait".into()))).await.unwrap();
    hub.waiting.notified().await;
    assert!(!hub.left.flag.load(SeqCst));
    drop(stream);
    hub.left.notify.notified().await;
    assert!(hub.left.flag.load(SeqCst));
}

#[tokio::test]
async fn the_socket_is_private_and_gone_after_an_orderly_stop() {
    let hub = Running::start();
    let path = hub.folder.path().join(SOCKET);
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    hub.stop.cancel();
    hub.serving.await.unwrap();
    assert!(!path.exists());
    assert!(matches!(ask(hub.folder.path(), &Request::DeviceList), Err(Error::NoHub { .. })));
}

#[tokio::test]
async fn the_socket_of_a_dead_hub_is_no_hub_and_the_next_one_replaces_it() {
    let folder = tempfile::tempdir().unwrap();
    let data = DataFolder::open(folder.path()).unwrap();
    drop(Server::bind(&data).unwrap());
    assert!(folder.path().join(SOCKET).exists(), "a killed hub removes nothing");
    assert!(matches!(ask(folder.path(), &Request::DeviceList), Err(Error::NoHub { .. })));
    Server::bind(&data).expect("the lock says that nobody else listens there");
}

#[tokio::test]
async fn a_file_in_the_sockets_place_is_not_removed() {
    let folder = tempfile::tempdir().unwrap();
    let data = DataFolder::open(folder.path()).unwrap();
    std::fs::write(folder.path().join(SOCKET), "mine").unwrap();
    assert!(matches!(Server::bind(&data), Err(Error::InTheWay { .. })));
    assert_eq!(std::fs::read_to_string(folder.path().join(SOCKET)).unwrap(), "mine");
}

#[test]
fn a_request_is_one_flat_object() {
    let text = serde_json::to_string(&set(true.into())).unwrap();
    assert_eq!(text, r#"{"request":"set","device":"lamp","property":"relay","value":true}"#);
}
