//! The endpoints that there are to be: those of the owner's command, kept in step while the hub runs.

use tokio_util::sync::CancellationToken;

use crate::{
    data,
    endpoint::{Endpoints, Settings, parse_url},
};

/// Boxes of an endpoint of which nothing else is said. More than one box may speak through an agent, and then nobody knows
/// in which room.
const BOXES: u32 = 1;

/// Keeps the running endpoints those that are wanted, until `stop`.
pub(super) async fn keep(endpoints: Endpoints, store: data::Endpoints, stop: CancellationToken) {
    let mut changes = store.changes();
    loop {
        changes.borrow_and_update();
        for error in endpoints.apply(wanted(&store)).await {
            tracing::error!(%error, "an endpoint is not dialled");
        }
        tokio::select! {
            changed = changes.changed() => {
                if changed.is_err() {
                    return;
                }
            }
            () = stop.cancelled() => return,
        }
    }
}

/// All that can be dialled. What cannot is said in the log, without its URL.
fn wanted(store: &data::Endpoints) -> Vec<Settings> {
    let stored = store.list().into_iter().filter_map(|stored| match parse_url(stored.url.reveal()) {
        Ok(address) => {
            let profile = address.profile();
            Some(Settings { name: stored.name, address, profile, boxes: BOXES })
        }
        Err(error) => {
            tracing::error!(endpoint = %stored.name, %error, "an endpoint is not dialled");
            None
        }
    });
    stored.collect()
}
