//! Devices as resources: `twin://devices/lamp`, `twin://devices/board.relay2`. What a caller may not read is answered like
//! what is not there.

use std::time::{Duration, Instant};

use rmcp::model::{Resource, ResourceTemplate};
use serde_json::Value as Json;

use super::{
    Server, eyes,
    house::{Entry, House},
    paging::{BadCursor, page},
    session::Guest,
};
use crate::{
    answer::{self, Whole},
    names::Lang,
    twin::view::View,
};

/// In front of a thing's id.
pub(super) const SCHEME: &str = "twin://devices/";

/// The template of all of them, and the name of its one variable.
const TEMPLATE: &str = "twin://devices/{id}";
pub(super) const TEMPLATE_VARIABLE: &str = "id";

/// The media type of a twin.
pub(super) const JSON: &str = "application/json";

/// How long a twin may take to tell what it knows: it asks no device, so more would mean that the hub itself hangs.
const READ_WITHIN: Duration = Duration::from_secs(2);

/// Ids that a completion offers; what the protocol allows.
const COMPLETIONS_MAX: usize = 100;

impl Server {
    /// A page of the resources of a caller, in the order of their URIs, and the cursor of the next.
    ///
    /// # Errors
    /// [`BadCursor`].
    pub fn resources(&self, guest: &Guest, cursor: Option<&str>) -> Result<(Vec<Resource>, Option<String>), BadCursor> {
        let kept = self.house(guest);
        let (page, next) = page(&kept.resources, |resource| &resource.uri, cursor)?;
        Ok((page.to_vec(), next))
    }

    /// The templates of a caller: one.
    pub fn resource_templates(&self, guest: &Guest) -> Vec<ResourceTemplate> {
        let (title, description) = match guest.policy.lang {
            Lang::En => {
                ("A device", "All that is known of one device, without asking it: state, age, wishes, last operation.")
            }
            Lang::Zh => ("一个设备", "一个设备已知的全部情况（不去问设备）：状态、多久以前、要求、最近一次操作。"),
        };
        let template = ResourceTemplate::new(TEMPLATE, "device").with_title(title).with_description(description);
        vec![template.with_mime_type(JSON)]
    }

    /// A resource as JSON. `None`: there is none of that URI for this caller.
    pub async fn resource(&self, guest: &Guest, uri: &str) -> Option<Json> {
        let kept = self.house(guest);
        let entry = entry(&kept.house, uri)?;
        let view = self.seen(guest, uri).await?;
        let naming = entry.naming(None);
        let latest = view.latest.as_ref().map(|settled| entry.naming(Some(&settled.property)));
        let whole = Whole {
            id: &entry.thing.to_string(),
            naming: &naming,
            room: entry.room(),
            properties: entry.properties().collect(),
            latest: latest.as_ref(),
        };
        Some(answer::twin(&view, &whole, kept.house.lang()))
    }

    /// What a caller sees of a resource now. `None`: there is none of that URI for it.
    pub(super) async fn seen(&self, guest: &Guest, uri: &str) -> Option<View> {
        let kept = self.house(guest);
        let entry = entry(&kept.house, uri)?;
        let rights = kept.house.rights();
        let permitted = rights.look(&entry.thing).ok()?;
        let mut view = self.shared.fleet.view(&permitted, Instant::now() + READ_WITHIN).await?;
        view.state
            .amended
            .iter_mut()
            .chain(&mut view.latest)
            .for_each(|settled| eyes::without_unseen_sensor(settled, rights));
        Some(view.of(|name| {
            entry.properties().any(|property| &*property.name == name)
                || entry.actions().any(|action| &*action.name == name)
        }))
    }

    /// The ids that begin so, of those that a caller may read, and how many there are.
    pub fn completed(&self, guest: &Guest, begun: &str) -> (Vec<String>, usize) {
        let kept = self.house(guest);
        let ids = kept.house.entries().iter().map(|entry| entry.thing.to_string());
        let mut all: Vec<String> = ids.filter(|id| id.starts_with(begun)).collect();
        let total = all.len();
        all.truncate(COMPLETIONS_MAX);
        (all, total)
    }
}

/// The resources of a house, in the order of their URIs: what lists show.
pub(super) fn resource_list(house: &House) -> Vec<Resource> {
    let resource = |entry: &Entry| {
        let id = entry.thing.to_string();
        let resource = Resource::new(format!("{SCHEME}{id}"), id).with_title(&entry.shown).with_mime_type(JSON);
        match entry.room() {
            None => resource,
            Some(room) => resource.with_description(room),
        }
    };
    let mut all: Vec<Resource> = house.listed().map(resource).collect();
    all.sort_by(|a, b| a.uri.cmp(&b.uri));
    all
}

/// The thing of a URI.
pub(super) fn entry<'a>(house: &'a House, uri: &str) -> Option<&'a Entry> {
    let id = uri.strip_prefix(SCHEME)?;
    house.entries().iter().find(|entry| entry.thing.to_string() == id)
}

/// Whether a URI asks for completions of our template.
pub(super) fn is_template(uri: &str) -> bool {
    uri == TEMPLATE
}
