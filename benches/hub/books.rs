//! What the hub says it did, from `/metrics`: held against what the load asked for and what the devices got.

use std::collections::BTreeMap;

use crate::{mcp::Caller, process::Hub};

/// All samples of one moment.
#[derive(Debug)]
pub(crate) struct Books(BTreeMap<String, f64>);

impl Books {
    /// Reads them.
    pub(crate) async fn read(hub: &Hub) -> anyhow::Result<Self> {
        let text = Caller::connect(&hub.http).await?.get("/metrics").await?;
        let lines = text.lines().filter(|line| !line.starts_with('#')).filter_map(|line| line.rsplit_once(' '));
        Ok(Self(lines.filter_map(|(name, value)| Some((name.to_owned(), value.parse().ok()?))).collect()))
    }

    /// One metric: the sum of its series that carry this label, or of all.
    pub(crate) fn sum(&self, metric: &str, label: &str) -> u64 {
        let mine = |name: &str| {
            let rest = name.strip_prefix(metric)?;
            ((rest.is_empty() || rest.starts_with('{')) && rest.contains(label)).then_some(())
        };
        self.0.iter().filter(|(name, _)| mine(name).is_some()).map(|(_, value)| *value as u64).sum()
    }
}
