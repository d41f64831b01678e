//! A disk that takes nothing and says nothing: whoever asks is answered all the same (semantics 8.5).

use super::*;

/// Only a caller that is kept for ever meets it.
const HANG: Duration = Duration::from_secs(60);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s8_5_a_disk_that_stalls_keeps_no_caller_beyond_its_limit() {
    let stalls = |context: Context| context.with_journal(Some(Journal::stalled()));
    let hub = Hub::start_on(Limits::default(), Config::default(), stalls).await;
    let mut lamp = hub.board("lamp").await;
    hub.fleet.add(Name::new(id("new"), Label::same("new"), None)).await.unwrap();
    let wish = |device: &str| {
        let (fleet, device) = (hub.fleet.clone(), id(device));
        let wish = permitted(&device, Wish::to("relay", Value::Bool(true)));
        async move { fleet.set(&caller(), wish, Instant::now() + Duration::from_secs(1)).await }
    };
    let done = tokio::spawn(wish("lamp"));
    let set = lamp.next("set").await;
    lamp.complete(&set).await;
    let done = settled(tokio::time::timeout(HANG, done).await.expect("it waits for the disk for ever").unwrap());
    assert_eq!((done.outcome, done.recorded), (Outcome::Converged, false), "it is said, and that nobody wrote it down");
    // What a device has not described yet may have to be written down first.
    let first = tokio::time::timeout(HANG, wish("new")).await.expect("it waits for the disk for ever");
    assert_eq!(first, Reply::Refused(Refusal::JournalDown));
}
