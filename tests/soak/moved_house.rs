//! A backup of a hub that runs, and another hub that begins with it where the first one was.

use std::{fs, sync::atomic::Ordering};

use crate::{
    WITHIN,
    chance::Chance,
    end::Limit,
    history::End,
    hub::{self, Hub},
    round::{DEVICES, HEATER, House, ask},
    until,
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn devices_obey_a_hub_that_was_restored_elsewhere_from_a_backup_under_load_and_nothing_old_moves() {
    let _limit = Limit::of("a hub that was restored elsewhere", 5 * WITHIN);
    let mut house = House::build(1).await;
    let callers = house.callers(&mut Chance::new(1));
    let many = |house: &House| house.common.asked.lock().unwrap().len();
    until("there is load", async || (many(&house) > 20).then_some(())).await;
    let (first, backup) = (house.hub.data.clone(), house.folder.path().join("home.truetwin"));
    let to = backup.to_str().unwrap().to_owned();
    let during = many(&house);
    tokio::task::spawn_blocking(move || hub::run(&first, &["backup", &to])).await.unwrap();
    until("the load goes on", async || (many(&house) > during + 10).then_some(())).await;
    house.common.over.store(true, Ordering::Relaxed);
    for caller in callers {
        caller.await.unwrap();
    }
    house.hub.kill();
    let died = house.now();
    let mut before = Vec::new();
    for device in &mut house.devices {
        before.push(device.life().await.moves.len());
    }
    let (epoch, second) = (
        |data: &std::path::Path| fs::read_to_string(data.join("epoch")).unwrap().trim().parse::<u64>().unwrap(),
        house.folder.path().join("elsewhere"),
    );
    let restored = hub::run(&second, &["restore", backup.to_str().unwrap()]);
    assert!(restored.contains("elsewhere"), "{restored}");
    let old = epoch(&house.hub.data);
    house.hub = Hub::start(house.folder.path(), &second, house.mqtt, house.common.http).await;
    assert!(epoch(&second) > old, "devices take no welcome of an older epoch");
    house.all_welcomed_since(died).await;
    // Each of them answers a question of this hub's, after which nothing of the old one's can be under way.
    let client = house.hub.client().await;
    for (at, (name, _)) in DEVICES.iter().enumerate() {
        until(&format!("{name} tells its state"), async || {
            let told = client.call("get_device_state", serde_json::json!({"device": name})).await.ok()?;
            (told.structured["trust"] == "now").then_some(())
        })
        .await;
        let moves = house.devices[at].life().await.moves.len();
        // The set point of the time of the backup is resumed: that is its owner's wish, as the backup has it.
        assert!(moves == before[at] || at == HEATER, "{name} moved without a wish: {before:?}, {moves}");
    }
    for device in 0..HEATER {
        for to in [1.0, 0.0] {
            let asked = ask(&house.common, &client, device, to).await;
            let End::Answered(answer) = &asked.end else { panic!("{asked:?}") };
            assert_eq!(answer["success"], true, "{answer}");
            let really = house.devices[device].life().await.at(asked.ended_ms);
            assert!((really - to).abs() < 0.5, "said to be {to}, is {really}");
        }
    }
    client.close().await;
}
