//! Topics of others: published to, subscribed to, left as a will, meant by an alias, covered by a wildcard.

use crate::{
    rig::{ASSISTANT, FORGED, MALLORY, Rig, Table, of},
    support::{publish, publish_with},
};

const BOTH: [bool; 2] = [false, true];

/// The property Topic Alias with the value 1 (MQTT 5 3.3.2.3.4).
const ALIAS_1: &[u8] = &[0x23, 0, 1];

pub(crate) async fn by_a_device(rig: &mut Rig, table: &mut Table) {
    let before = rig.metric("truetwin_door_foreign_topics_total").await;
    let moves = rig.sims["lamp"].moves();
    let topics = [
        "truetwin/lamp/event",
        "truetwin/lamp/status",
        "truetwin/lamp/command",
        "truetwin/mallory/command",
        "truetwin/mallory/event/x",
        "home/light",
        "$SYS/broker",
    ];
    for v5 in BOTH {
        for topic in topics {
            let mut mallory = rig.comes_in(MALLORY, v5).await;
            mallory.send(&publish(topic, 1, 7, FORGED.as_bytes(), v5)).await;
            if v5 {
                assert_eq!(mallory.acknowledged().await, Some((7, 0x87)), "{topic}");
                assert!(mallory.lives().await, "MQTT 5 has a code, so the connection stays");
            } else {
                assert_eq!(mallory.next().await, None, "{topic}");
            }
        }
    }
    let refused = rig.metric("truetwin_door_foreign_topics_total").await - before;
    assert_eq!(refused, 2 * topics.len() as u64);
    table.row("device publishes to a topic of others", "PUBACK 0x87; 3.1.1: closed", "counted, nobody hears it");

    for v5 in BOTH {
        for (filters, five) in [
            (&["truetwin/lamp/command", "truetwin/lamp/event", "truetwin/mallory/event", "home/light"][..], 0x87),
            (&["#", "+/+/command", "truetwin/#", "truetwin/+/command", "truetwin/mallory/#"], 0xA2),
            (&["$share/g/truetwin/lamp/command"], 0x9E),
        ] {
            let mut mallory = rig.comes_in(MALLORY, v5).await;
            for filter in filters {
                assert_eq!(mallory.subscribe(filter).await, of(v5, five, 0x80), "{filter}");
            }
        }
    }
    table.row("device subscribes to a topic of others", "SUBACK 0x87; 3.1.1: 0x80", "not subscribed");
    table.row("device subscribes with a wildcard, or shared", "SUBACK 0xA2, 0x9E; 3.1.1: 0x80", "not subscribed");

    for v5 in BOTH {
        for topic in ["truetwin/lamp/status", "truetwin/lamp/command", "truetwin/mallory/event", "home/light"] {
            let login = rig.login(MALLORY, v5).will(topic, FORGED);
            assert_eq!(rig.knocks(&login).await, of(v5, 0x87, 5), "{topic}");
        }
    }
    table.row("device leaves a will on a topic of others", "CONNACK 0x87; 3.1.1: 5", "not let in");

    let mut mallory = rig.comes_in(MALLORY, true).await;
    mallory.send(&publish_with("truetwin/lamp/event", 2, 7, FORGED.as_bytes(), Some(ALIAS_1))).await;
    assert_eq!(mallory.farewell().await, Some(0x94));
    table.row("device names a topic by an alias", "DISCONNECT 0x94: none are offered", "closed");

    rig.nothing_forged_was_seen("topics by a device").await;
    assert_eq!(rig.sims["lamp"].moves(), moves, "nothing of this moved the lamp");
    rig.converges("topics by a device").await;
}

pub(crate) async fn by_an_account(rig: &mut Rig, table: &mut Table) {
    let moves = rig.sims["lamp"].moves();
    for v5 in BOTH {
        for topic in [
            "truetwin/lamp/command",
            "truetwin/lamp/event",
            "truetwin/lamp/status",
            "truetwin/assistant/event",
            "notes/x",
            "homes",
            "$SYS/home",
            "Home/light",
        ] {
            for retain in [0, 1] {
                let mut account = rig.comes_in(ASSISTANT, v5).await;
                let packet = publish_with(topic, 2 | retain, 7, FORGED.as_bytes(), v5.then_some(&[]));
                account.send(&packet).await;
                if v5 {
                    assert_eq!(account.acknowledged().await, Some((7, 0x87)), "{topic}");
                } else {
                    assert_eq!(account.next().await, None, "{topic}");
                }
            }
        }
    }
    table.row("account publishes beyond its rights, or to a device", "PUBACK 0x87; 3.1.1: closed", "nobody hears it");

    for v5 in BOTH {
        let mut account = rig.comes_in(ASSISTANT, v5).await;
        for filter in ["truetwin/lamp/event", "truetwin/lamp/command", "truetwin/#", "#", "+/light", "$SYS/#", "home+"]
        {
            let five = if filter == "home+" { 0x8F } else { 0x87 };
            assert_eq!(account.subscribe(filter).await, of(v5, five, 0x80), "{filter}");
        }
        assert_eq!(account.subscribe("$share/g/truetwin/#").await, of(v5, 0x9E, 0x80));
        assert_eq!(account.subscribe("home/+/light").await, Some(1), "its own tree is its own");
        account.send(&[0xC0, 0]).await;
        assert_eq!(account.next().await.map(|(first, _)| first), Some(0xD0), "nothing else came");
    }
    table.row("account reads beyond its rights, by name or wildcard", "SUBACK 0x87; 3.1.1: 0x80", "hears nothing");

    for v5 in BOTH {
        for topic in ["truetwin/lamp/status", "truetwin/lamp/command", "notes/x"] {
            let login = rig.login(ASSISTANT, v5).will(topic, FORGED);
            assert_eq!(rig.knocks(&login).await, of(v5, 0x87, 5), "{topic}");
        }
    }
    table.row("account leaves a will beyond its rights", "CONNACK 0x87; 3.1.1: 5", "not let in");

    // An alias that meant a topic of its own now means the lamp's.
    let mut account = rig.comes_in(ASSISTANT, true).await;
    let mut say = async |id: u16, topic: &str, payload: &[u8]| {
        account.send(&publish_with(topic, 2, id, payload, Some(ALIAS_1))).await;
        account.acknowledged().await
    };
    assert_eq!(say(1, "home/light", b"fine").await, Some((1, 0)));
    assert_eq!(say(2, "truetwin/lamp/command", FORGED.as_bytes()).await, Some((2, 0x87)));
    assert_eq!(say(3, "", FORGED.as_bytes()).await, Some((3, 0x87)), "the alias is looked at as its topic is");
    table.row("account turns an alias to a topic of others", "PUBACK 0x87, each time", "nobody hears it");

    rig.nothing_forged_was_seen("topics by an account").await;
    assert_eq!(rig.sims["lamp"].moves(), moves, "nothing of this moved the lamp");
    rig.converges("topics by an account").await;
}
