//! What the owner asks over the control socket, carried out on the running hub.

use std::{path::PathBuf, sync::Arc, time::Instant};

use tokio::sync::Mutex;

use super::Parts;
use crate::{
    answer::{self, Rendered},
    backup,
    config::ms,
    control::{self, Handler, Request, Response},
    fleet::Caller,
    mcp::{House, Meant},
    property::{DeviceId, Value},
    twin::wish::Wish,
    twin::words::{Refusal, Reply},
};

/// Carries out the owner's requests.
pub(super) struct Owner {
    pub(super) parts: Arc<Parts>,
    /// One change at a time: credentials and fleet go together, or an `add` beside a `remove` would leave a device in one of
    /// them only.
    changing: Mutex<()>,
}

impl Handler for Owner {
    async fn handle(&self, request: Request) -> Response {
        match request {
            Request::Set { device, property, value } => self.set(&device, &property, &value).await,
            Request::EndpointAdd { name, url } => self.endpoint_add(name, url).await,
            Request::EndpointList => Response::Endpoints { endpoints: self.endpoints() },
            Request::EndpointTest { name } => self.endpoint_test(&name).await,
            Request::EndpointRemove { name } => self.endpoint_remove(name).await,
            Request::TokenAdd { .. } | Request::TokenList | Request::TokenRevoke { .. } => self.tokens(request).await,
            Request::AccountAdd { .. }
            | Request::AccountList
            | Request::AccountAllow { .. }
            | Request::AccountRotate { .. }
            | Request::AccountRemove { .. } => self.accounts(request).await,
            Request::Dispute { what, note } => self.dispute(what, note).await,
            Request::Backup { to } => self.backup(to).await,
            Request::DeviceAdd { .. }
            | Request::DeviceList
            | Request::DeviceRotate { .. }
            | Request::DeviceRemove { .. } => self.devices(request).await,
        }
    }
}

impl Owner {
    pub(super) fn new(parts: Arc<Parts>) -> Self {
        Self { parts, changing: Mutex::new(()) }
    }

    /// Copies all that the hub knows to a file. Credentials do not change meanwhile.
    async fn backup(&self, to: PathBuf) -> Response {
        let _one_at_a_time = self.changing.lock().await;
        let Some(journal) = &self.parts.journal else {
            let message = "the journal is off, so there is nothing to copy from; set journal.keep to on".to_owned();
            return Response::Error { message };
        };
        // What is retained with QoS 0 waits for some seconds to be written; the journal takes it in before it copies itself.
        self.parts.broker.write_retained();
        match backup::of_running(journal, self.parts.folder.clone(), to).await {
            Ok(()) => Response::BackedUp,
            Err(error) => Response::Error { message: error.to_string() },
        }
    }

    /// Changes the credentials, then what depends on them.
    async fn devices(&self, request: Request) -> Response {
        let parts = &self.parts;
        let _one_at_a_time = self.changing.lock().await;
        let (credentials, mqtt, asked) = (parts.credentials.clone(), parts.broker.local_addr(), request.clone());
        let on_disk = move || control::on_credentials(&credentials, &mqtt.to_string(), &asked);
        let done = tokio::task::spawn_blocking(on_disk).await.ok().flatten();
        let Some(mut response) = done else {
            return Response::Error {
                message: "the hub failed over this request; nothing is known to have changed".into(),
            };
        };
        if let Response::Devices { devices } = &mut response {
            let cards = parts.fleet.cards();
            for listed in devices {
                let card = cards.iter().find(|card| card.name.device.as_str() == listed.device);
                listed.presence = card.map(|card| card.presence.to_string());
            }
        }
        match (&request, &response) {
            (Request::DeviceAdd { name }, Response::Device { .. }) => {
                if let Ok(device) = DeviceId::new(name) {
                    let _stopping = parts.fleet.add(parts.config.name(&device)).await;
                }
            }
            (Request::DeviceRotate { name }, Response::Device { .. }) => parts.broker.kick(name),
            (Request::DeviceRemove { name }, Response::Removed { .. }) => {
                if let Ok(device) = DeviceId::new(name) {
                    let _stopping = parts.fleet.remove(&device).await;
                }
                parts.broker.kick(name);
            }
            _ => {}
        }
        response
    }

    /// Changes the service accounts. Whoever is connected with what holds no more is cut at once.
    async fn accounts(&self, request: Request) -> Response {
        let parts = &self.parts;
        let _one_at_a_time = self.changing.lock().await;
        let (accounts, mqtt, asked) = (parts.accounts.clone(), parts.broker.local_addr(), request.clone());
        let on_disk = move || control::on_accounts(&accounts, &mqtt.to_string(), &asked);
        let done = tokio::task::spawn_blocking(on_disk).await.ok().flatten();
        let Some(mut response) = done else {
            return Response::Error {
                message: "the hub failed over this request; nothing is known to have changed".into(),
            };
        };
        match (&request, &mut response) {
            (Request::AccountRotate { name, .. } | Request::AccountAllow { name, .. }, Response::Account { .. })
            | (Request::AccountRemove { name }, Response::Removed { .. }) => parts.broker.kick(name),
            (Request::AccountList, Response::Accounts { accounts }) => {
                for account in accounts {
                    account.connections = Some(parts.broker.account_connections(&account.name));
                }
            }
            _ => {}
        }
        response
    }

    /// Makes a wish true, as a tool call does, on any property.
    async fn set(&self, device: &str, property: &str, value: &serde_json::Value) -> Response {
        let (parts, lang) = (&self.parts, self.parts.config.language());
        let cards = parts.fleet.cards();
        let house = House::new(&cards, parts.config.scenes(), lang);
        let refused = |refusal| answered(&answer::refusal(&refusal, None, lang));
        let id = match house.find(device) {
            Meant::Thing(entry) => entry.thing.device.clone(),
            Meant::Several(candidates) => {
                return refused(Refusal::AmbiguousName { asked: device.into(), candidates });
            }
            Meant::Group(_) => return refused(Refusal::UnknownDevice { asked: device.into(), near: Vec::new() }),
            Meant::Nobody(near) => return refused(Refusal::UnknownDevice { asked: device.into(), near }),
        };
        let Some(value) = scalar(value) else {
            return Response::Error {
                message: format!("{value} is no value; allowed: true, false, a number or a text"),
            };
        };
        let naming = house.naming(&id, Some(property));
        let asked_at = Instant::now();
        let answer_by = asked_at + ms(parts.config.timing.answer_by_ms);
        let caller = Caller("cli".into());
        let reply = match house.rights().set(&id, Wish::to(property, value.clone())) {
            Ok(permitted) => parts.fleet.set(&caller, permitted, answer_by).await,
            Err(denied) => Reply::Refused(denied.refusal()),
        };
        let owed = parts.fleet.corrections_for(&caller).into_iter().map(|correction| {
            let naming = house.naming(&correction.device, Some(&correction.settled.property));
            (correction.settled, naming)
        });
        let answer = answer::reply(&reply, &naming, lang).corrected(&owed.collect::<Vec<_>>(), lang);
        parts.auditor.owner((device, &id, property, &value), &reply, &answer, asked_at.elapsed());
        answered(&answer)
    }
}

fn answered(rendered: &Rendered) -> Response {
    let success = rendered.structured["success"] == serde_json::Value::Bool(true);
    Response::Answer { success, answer: rendered.structured.clone() }
}

/// A JSON scalar as a value; a whole number in `i32` stays whole.
fn scalar(value: &serde_json::Value) -> Option<Value> {
    match value {
        serde_json::Value::Bool(value) => Some(Value::Bool(*value)),
        serde_json::Value::Number(number) => {
            let whole = number.as_i64().and_then(|whole| i32::try_from(whole).ok());
            whole.map(Value::Integer).or_else(|| number.as_f64().map(Value::Number))
        }
        serde_json::Value::String(text) => Some(Value::Text(text.as_str().into())),
        serde_json::Value::Null | serde_json::Value::Array(_) | serde_json::Value::Object(_) => None,
    }
}
