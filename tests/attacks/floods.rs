//! Those who come in numbers: without a login, with wrong passwords, and one device that never stops talking.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU64, Ordering},
};

use crate::{
    rig::{ASSISTANT, MALLORY, OUTSIDE, Rig, Table, of},
    support::{Client, Login, publish, subscribe},
};

/// Connections without a login; `make load` has more of them.
const WITHOUT_LOGIN: usize = 500;

/// Calls to another device that each flood must let through.
const CALLS: usize = 10;

pub(crate) async fn without_login(rig: &mut Rig, table: &mut Table) {
    let failed = rig.metric("truetwin_door_logins_failed_total").await;
    let knocking = tokio::spawn({
        let to = rig.mqtt;
        async move {
            for at in 0..WITHOUT_LOGIN {
                let v5 = at % 2 == 1;
                let login = Login { user: None, password: None, ..Login::of("x").v5(v5) };
                // From many addresses: one alone would be slowed down after the fifth.
                let mut client = Client::raw_from([127, 0, 3, u8::try_from(at % 100).unwrap()], to, v5).await;
                assert_eq!(client.login(&login.packet()).await, of(v5, 0x87, 5));
            }
        }
    });
    for _ in 0..CALLS {
        rig.converges("while 500 come without a login").await;
    }
    knocking.await.unwrap();
    assert_eq!(rig.metric("truetwin_door_logins_failed_total").await - failed, WITHOUT_LOGIN as u64);
    table.row("500 connects without a login", "CONNACK 0x87; 3.1.1: 5", "counted; calls converge");

    for first in [&b"GET / HTTP/1.1\r\n\r\n"[..], &[0x30, 2, 0, 0], &[0xC0, 0], &[0xE0, 0], &[0x20, 2, 0, 0], &[0; 64]]
    {
        let mut client = rig.dial(false).await;
        client.send(first).await;
        assert_eq!(client.next().await, None, "{first:?}");
    }
    let mut client = rig.dial(false).await;
    client.send(&Login { user: None, password: None, ..Login::of("x") }.packet()).await;
    client.send(&subscribe(1, "#", 0, false)).await;
    assert_eq!(client.next().await, Some((0x20, vec![0, 5])));
    assert_eq!(client.next().await, None, "what comes behind a refused CONNECT is not looked at");
    table.row("another packet than CONNECT first, or one behind it", "nothing; closed", "not looked at");
    rig.converges("first packets").await;
}

pub(crate) async fn of_wrong_passwords(rig: &mut Rig, table: &mut Table) {
    let over = Arc::new(AtomicBool::new(false));
    let guessed = Arc::new(AtomicU64::new(0));
    let guessers: Vec<_> = (0..8u8)
        .map(|at| {
            let (over, guessed, to) = (over.clone(), guessed.clone(), rig.mqtt);
            tokio::spawn(async move {
                let name = [ASSISTANT, "lamp", "nobody"][usize::from(at) % 3];
                while !over.load(Ordering::Relaxed) {
                    let mut client = Client::raw_from([127, 0, 1, at], to, true).await;
                    let code = client.login(&Login::of(name).v5(true).password("guess").packet()).await;
                    // Refused as wrong, or not looked at because too many are: never let in.
                    assert!(matches!(code, Some(0x86 | 0x89 | 0x97) | None), "{name}: {code:?}");
                    guessed.fetch_add(1, Ordering::Relaxed);
                }
            })
        })
        .collect();
    for _ in 0..CALLS {
        rig.converges("while passwords are guessed").await;
    }
    // Who has the password comes in meanwhile: a device, and an account, which may have to try again.
    let fan = Client::raw(rig.mqtt, true).await;
    drop(fan);
    rig.comes_in(MALLORY, true).await;
    let login = rig.login(ASSISTANT, true);
    crate::rig::until("the account comes in", async || {
        let code = Client::raw_from([127, 0, 0, 5], rig.mqtt, true).await.login(&login.packet()).await;
        assert!(matches!(code, Some(0 | 0x89 | 0x97)), "{code:?}");
        (code == Some(0)).then_some(())
    })
    .await;
    over.store(true, Ordering::Relaxed);
    for guesser in guessers {
        guesser.await.unwrap();
    }
    assert!(guessed.load(Ordering::Relaxed) > 0);
    table.row(
        "passwords guessed on 8 connections at once",
        "CONNACK 0x86, or 0x89: busy",
        "nobody is let in; who has it comes in",
    );
}

/// What the flood is made of: its name, what is sent again and again, whether the connection may end for it.
fn floods() -> [(&'static str, Vec<u8>, &'static str); 4] {
    let topic = "truetwin/mallory/event";
    let beat = br#"{"event":"heartbeat","boot":"b00","seq":1,"up_ms":1}"#;
    [
        ("reports, as fast as they go", publish(topic, 0, 0, beat, true), "held back, `error` now and then"),
        ("reports that are no JSON", publish(topic, 1, 1, b"{relay on", true), "`error` now and then"),
        ("packets of 100 KiB", publish(topic, 1, 1, &vec![b'x'; 100 << 10], true), "DISCONNECT 0x95, each time"),
        ("malformed packets", vec![0x32, 5, 0, 9, b'a', b'b', b'c'], "DISCONNECT 0x81, each time"),
    ]
}

pub(crate) async fn from_one_device(rig: &mut Rig, table: &mut Table) {
    for (what, packet, told) in floods() {
        let over = Arc::new(AtomicBool::new(false));
        let (login, to) = (rig.login(MALLORY, true).packet(), rig.mqtt);
        let theirs = over.clone();
        let sent = Arc::new(AtomicU64::new(0));
        let counted = sent.clone();
        let ends = told.starts_with("DISCONNECT");
        let expected = if packet.len() > 4096 { 0x95 } else { 0x81 };
        let flood = tokio::spawn(async move {
            while !theirs.load(Ordering::Relaxed) {
                let mut mallory = Client::raw_from(OUTSIDE, to, true).await;
                assert_eq!(mallory.login(&login).await, Some(0));
                if ends {
                    mallory.send(&packet).await;
                    assert_eq!(mallory.farewell().await, Some(expected));
                    counted.fetch_add(1, Ordering::Relaxed);
                    continue;
                }
                let (mut read, mut write) = mallory.socket.into_split();
                // It reads what it is told, else it would only stand in its own way.
                let reading = tokio::spawn(async move { tokio::io::copy(&mut read, &mut tokio::io::sink()).await });
                let burst = packet.repeat(50);
                while !theirs.load(Ordering::Relaxed)
                    && tokio::io::AsyncWriteExt::write_all(&mut write, &burst).await.is_ok()
                {
                    counted.fetch_add(50, Ordering::Relaxed);
                }
                reading.abort();
            }
        });
        for _ in 0..CALLS {
            rig.converges(what).await;
        }
        crate::rig::until("the flood is one", async || (sent.load(Ordering::Relaxed) > 100).then_some(())).await;
        rig.converges(what).await;
        over.store(true, Ordering::Relaxed);
        if ends {
            flood.await.unwrap();
        } else {
            flood.abort(); // what it has written is read slowly, and nobody waits for that
        }
        let effect = format!("{} calls to another device converge", CALLS + 1);
        table.row(&format!("flood from one device: {what}"), told, &effect);
        rig.is_well();
    }
}
