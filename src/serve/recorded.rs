//! What is recorded for a replay, out of the configuration.

use std::{collections::BTreeMap, path::PathBuf, sync::Arc};

use super::Error;
use crate::{
    config::Config,
    property::DeviceId,
    recorder::{Plan, Recorder},
};

/// Begins the recording that the owner wants, if any.
pub(super) async fn begin(config: &Config) -> Result<Option<Arc<Recorder>>, Error> {
    let Some(file) = &config.recording.file else { return Ok(None) };
    let bytes_max = u64::from(config.recording.size_max_mib) * 1_048_576;
    let plan = Plan { file: PathBuf::from(file), bytes_max, left_out: left_out(config) };
    let started = tokio::task::spawn_blocking(move || Recorder::start(plan)).await.map_err(|_| Error::Recorder)?;
    match started {
        Ok(recorder) => Ok(Some(recorder)),
        Err(error) if error.is_passing() => {
            tracing::warn!(%error, "nothing is recorded; the hub starts all the same");
            Ok(None)
        }
        Err(error) => Err(error.into()),
    }
}

/// The devices of which a value is nobody's to read (semantics 7.3), and those that look at such a value to confirm theirs: a
/// twin's state is made of all its values, so without one the rest could not be replayed.
fn left_out(config: &Config) -> BTreeMap<DeviceId, String> {
    let mut all = BTreeMap::new();
    for (id, device) in &config.devices {
        for (name, property) in &device.properties {
            let sensor = property.verify_with.as_ref();
            let sensor = sensor.filter(|s| config.property(&s.device, &s.property).is_some_and(|p| p.sensitive));
            let why = match sensor {
                _ if property.sensitive => format!("{name} is sensitive"),
                Some(sensor) => format!("{name} is verified with {sensor}, which is sensitive"),
                None => continue,
            };
            all.entry(id.clone()).or_insert(why);
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s7_3_a_device_with_a_value_that_is_nobodys_to_read_is_left_out_and_so_is_one_that_looks_at_it() {
        let config = Config::parse(
            "t",
            "[devices.safe.properties.code]\nsensitive = true\n[devices.door.properties.open]\nverify_with = \"safe.code\"\n\
             verify_expect = \"equals 1\"\n[devices.lamp.properties.relay]\nstable_ms = 0\n",
        );
        let left = left_out(&config.expect("a configuration"));
        let left: Vec<(&str, &str)> = left.iter().map(|(id, why)| (id.as_str(), why.as_str())).collect();
        assert_eq!(
            left,
            [("door", "open is verified with safe.code, which is sensitive"), ("safe", "code is sensitive")]
        );
    }

    #[tokio::test]
    async fn a_recording_that_is_full_keeps_no_hub_from_starting_and_a_file_that_is_none_does() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("r.jsonl");
        let config = format!("[recording]\nfile = \"{}\"\nsize_max_mib = 1\n", file.display());
        let config = Config::parse("t", &config).expect("a configuration");
        let head = "{\"truetwin_recording\":1,\"hub\":\"t\",\"unix_ms\":0}\n";
        std::fs::write(&file, head.to_owned() + &"\n".repeat(1_048_576)).expect("a file");
        assert!(begin(&config).await.expect("it starts").is_none());
        std::fs::write(&file, "precious\n").expect("a file");
        assert!(matches!(begin(&config).await, Err(Error::Recording(_))));
    }
}
