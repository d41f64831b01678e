//! The endpoints that there are to be: those of the configuration and of the owner's command, kept in step while the hub
//! runs.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::configured;
use crate::{
    config::Config,
    data,
    endpoint::{Endpoints, Settings, parse_url},
};

/// Keeps the running endpoints those that are wanted, until `stop`.
pub(super) async fn keep(endpoints: Endpoints, config: Arc<Config>, store: data::Endpoints, stop: CancellationToken) {
    let mut changes = store.changes();
    loop {
        changes.borrow_and_update();
        let (config, kept) = (config.clone(), store.clone());
        // Their tokens are files.
        let wanted = tokio::task::spawn_blocking(move || wanted(&config, &kept)).await.unwrap_or_default();
        for error in endpoints.apply(wanted).await {
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
fn wanted(config: &Config, store: &data::Endpoints) -> Vec<Settings> {
    let (configured, broken) = configured::endpoints(config);
    for error in broken {
        tracing::error!(%error, "an endpoint is not dialled");
    }
    let stored = store.list().into_iter().filter_map(|stored| match parse_url(stored.url.reveal()) {
        Ok(address) => Some(configured::added(config, stored.name, address)),
        Err(error) => {
            tracing::error!(endpoint = %stored.name, %error, "an endpoint is not dialled");
            None
        }
    });
    let mut all = configured;
    for settings in stored {
        // A name that the configuration has with a URL is that one's.
        if !all.iter().any(|known| known.name == settings.name) {
            all.push(settings);
        }
    }
    all
}
