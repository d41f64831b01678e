//! Names of others: who comes in as whom, and whose connection ends for it.

use crate::{
    rig::{ASSISTANT, MALLORY, Rig, Table, of},
    support::Client,
};

const BOTH: [bool; 2] = [false, true];

/// Where the clones of a board are; a hub tells them apart by that.
const CLONES: [[u8; 4]; 2] = [[127, 0, 0, 71], [127, 0, 0, 72]];

pub(crate) async fn taken(rig: &mut Rig, table: &mut Table) {
    let takeovers = rig.metric("truetwin_door_takeovers_total").await;
    let mut account = rig.comes_in(ASSISTANT, true).await;
    for v5 in BOTH {
        for (name, with_password_of) in
            [("lamp", MALLORY), ("lamp", ASSISTANT), (ASSISTANT, MALLORY), (MALLORY, "lamp"), ("nobody", MALLORY)]
        {
            let login = rig.login(with_password_of, v5);
            let login = crate::support::Login { user: Some(name.as_bytes().to_vec()), ..login };
            assert_eq!(rig.knocks(&login).await, of(v5, 0x86, 4), "{name} with the password of {with_password_of}");
        }
    }
    table.row("another's name with one's own password", "CONNACK 0x86; 3.1.1: 4", "the name's owner stays connected");

    for v5 in BOTH {
        for (name, client_id) in [(MALLORY, "lamp"), (MALLORY, ASSISTANT), (ASSISTANT, "lamp"), ("watcher", ASSISTANT)]
        {
            assert_eq!(rig.knocks(&rig.login(name, v5).client_id(client_id)).await, Some(0), "{name} as {client_id}");
        }
    }
    assert!(account.lives().await, "an account's connection is not ended by others with its client id");
    table.row("another's client id with one's own name", "let in as oneself", "the client id is nobody's: no takeover");
    let taken = rig.metric("truetwin_door_takeovers_total").await - takeovers;
    assert_eq!(taken, 0, "the lamp was taken over");

    let data = rig.data();
    for name in ["lamp", MALLORY] {
        let said = truetwin::control::ask(
            &data,
            &truetwin::control::Request::AccountAdd {
                name: name.to_owned(),
                read: vec!["#".to_owned()],
                write: Vec::new(),
                password: None,
            },
        );
        assert!(matches!(said, Ok(truetwin::control::Response::Error { .. })), "{said:?}");
    }
    table.row("an account that is called like a device", "cannot be made", "one name is one owner");

    // With the very credentials of a board, from elsewhere: it changes hands twice, then whoever has it stays (semantics 5.6).
    let login = rig.login("clone", true);
    let mut held: Vec<Client> = Vec::new();
    for (turn, (board, expected)) in [(0, 0), (1, 0), (0, 0), (1, 0x8A), (1, 0x8A)].into_iter().enumerate() {
        let mut client = Client::raw_from(CLONES[board], rig.mqtt, true).await;
        assert_eq!(client.login(&login.packet()).await, Some(expected), "turn {turn}");
        if expected == 0 {
            if let Some(mut old) = held.pop() {
                assert_eq!(old.farewell().await, Some(0x8E), "who lost it is told");
            }
            held.push(client);
        }
    }
    assert!(held.pop().unwrap().lives().await);
    table.row(
        "s5.6 a device's name and password, cloned",
        "DISCONNECT 0x8E; third time CONNACK 0x8A",
        "one of both works",
    );
    rig.converges("name takeover").await;
}
