use std::fs;

use super::*;

fn operation(op: &str, at_ms: i64) -> Entry {
    Entry::Ended(OperationRow { op: op.into(), device: "lamp".into(), at_ms, json: format!("{{\"op\":\"{op}\"}}") })
}

fn admission(op: &str) -> Entry {
    let text = |text: &str| text.to_owned();
    Entry::Admitted(Admission {
        op: text(op),
        device: text("lamp"),
        what: text("power"),
        caller: text("stdio"),
        at_ms: 1,
        json: text("true"),
    })
}

fn held(device: &str, json: &str) -> Entry {
    Entry::Held(HeldRow { device: device.into(), property: "target".into(), json: json.into() })
}

fn kept(journal: &Journal, entries: Vec<Entry>, lasting: Lasting) {
    journal.keep(entries, lasting).unwrap().blocking_recv().unwrap().unwrap();
}

fn open(folder: &Path) -> (Journal, Recovered, Running) {
    Journal::open(folder, Retention::default()).unwrap()
}

fn closed(journal: Journal, running: Running) {
    running.close(journal);
}

fn now_ms() -> i64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    i64::try_from(now.as_millis()).unwrap()
}

#[test]
fn s8_5_what_was_kept_is_there_after_the_process_died_without_a_word() {
    let (folder, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (journal, found, running) = open(folder.path());
    assert_eq!(found, Recovered::default(), "a new journal is empty");
    kept(&journal, vec![admission("a"), admission("b")], Lasting::Process);
    kept(&journal, vec![operation("a", 5), held("heater", "21")], Lasting::PowerCut);
    // What a killed process leaves: the files as they are at this moment, log and all.
    for file in fs::read_dir(folder.path()).unwrap() {
        let file = file.unwrap();
        fs::copy(file.path(), elsewhere.path().join(file.file_name())).unwrap();
    }
    let (after, found, running_after) = open(elsewhere.path());
    assert_eq!(found.operations.iter().map(|o| o.op.as_str()).collect::<Vec<_>>(), ["a"]);
    assert_eq!(found.admitted.iter().map(|a| a.op.as_str()).collect::<Vec<_>>(), ["b"], "taken in, never ended");
    assert_eq!(found.held.len(), 1);
    closed(after, running_after);
    closed(journal, running);
}

#[test]
fn the_last_word_on_an_operation_counts_and_what_is_held_no_more_is_gone() {
    let folder = tempfile::tempdir().unwrap();
    let (journal, _, running) = open(folder.path());
    kept(
        &journal,
        vec![operation("a", 1), operation("b", 2), held("heater", "21"), held("fan", "3")],
        Lasting::Process,
    );
    let amended = Entry::Ended(OperationRow { op: "a".into(), device: "lamp".into(), at_ms: 3, json: "late".into() });
    let unheld = Entry::Unheld { device: "heater".into(), property: "target".into() };
    let forgotten = Entry::Forgotten { device: "fan".into() };
    kept(&journal, vec![amended, unheld, forgotten], Lasting::Process);
    closed(journal, running);
    let (journal, found, running) = open(folder.path());
    let seen: Vec<_> = found.operations.iter().map(|o| (o.op.as_str(), o.json.as_str())).collect();
    assert_eq!(seen, [("b", "{\"op\":\"b\"}"), ("a", "late")]);
    assert_eq!(found.held, Vec::new());
    closed(journal, running);
}

#[test]
fn what_waits_together_is_one_commit() {
    let folder = tempfile::tempdir().unwrap();
    let (journal, _, running) = open(folder.path());
    let waiting: Vec<_> = (0..2_000)
        .map(|at| journal.keep(vec![operation(&format!("{at}"), now_ms())], Lasting::Process).unwrap())
        .collect();
    for kept in waiting {
        kept.blocking_recv().unwrap().unwrap();
    }
    let (entries, commits) = (journal.counters().entries(), journal.counters().commits());
    assert_eq!(entries, 2_000);
    assert!(commits < entries, "{commits} commits for {entries} entries");
    closed(journal, running);
    let (journal, found, running) = open(folder.path());
    assert_eq!(found.operations.len(), 2_000);
    closed(journal, running);
}

#[test]
fn a_backup_of_a_running_journal_is_whole_and_can_be_put_back_elsewhere() {
    let (folder, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (journal, _, running) = open(folder.path());
    kept(&journal, vec![held("heater", "21"), operation("a", 1)], Lasting::Process);
    let copy = folder.path().join("copy.db");
    journal.backup(copy.clone()).unwrap().blocking_recv().unwrap().unwrap();
    kept(&journal, vec![held("heater", "23")], Lasting::Process);
    let again = journal.backup(copy.clone()).unwrap().blocking_recv().unwrap();
    assert!(matches!(again, Err(Error::Backup { .. })), "a copy is never written over");
    closed(journal, running);

    let (other, _, running) = open(elsewhere.path());
    kept(&other, vec![held("elsewhere", "1")], Lasting::Process);
    closed(other, running);
    restore(elsewhere.path(), &copy).unwrap();
    let (journal, found, running) = open(elsewhere.path());
    assert_eq!(found.held, [HeldRow { device: "heater".into(), property: "target".into(), json: "21".into() }]);
    assert!(elsewhere.path().join("journal.db.before-restore").exists(), "what was there is kept");
    restore(elsewhere.path(), &copy).unwrap();
    let (kept, again) = ("journal.db.before-restore", "journal.db.before-restore-2");
    assert!(elsewhere.path().join(kept).exists() && elsewhere.path().join(again).exists(), "of each time");
    closed(journal, running);
}

#[test]
fn a_newer_a_damaged_and_an_unusable_journal_are_errors_that_say_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(FILE);
    let (journal, _, running) = open(folder.path());
    closed(journal, running);
    let connection = rusqlite::Connection::open(&path).unwrap();
    connection.pragma_update(None, "user_version", 99).unwrap();
    drop(connection);
    let error = Journal::open(folder.path(), Retention::default()).unwrap_err().to_string();
    assert!(error.contains("version 99") && error.contains("use a newer truetwin"), "{error}");
    let refused = restore(folder.path(), &path).unwrap_err().to_string();
    assert!(refused.contains("version 99"), "{refused}");

    fs::write(&path, vec![7_u8; 8_192]).unwrap();
    let error = Journal::open(folder.path(), Retention::default()).unwrap_err().to_string();
    assert!(error.contains("damaged") && error.contains("truetwin restore"), "{error}");
    assert_eq!(fs::read(&path).unwrap(), vec![7_u8; 8_192], "nothing was changed");

    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    let error = Journal::open(folder.path(), Retention::default()).unwrap_err().to_string();
    assert!(error.contains("check the disk and the rights"), "{error}");
}

#[test]
fn an_idle_house_of_three_hundred_devices_writes_less_than_20_mb_a_day() {
    let folder = tempfile::tempdir().unwrap();
    let (journal, _, running) = open(folder.path());
    let counted = journal.clone();
    // The actors look every quarter of an hour; each finds another value, and none comes with another.
    let (looks, looks_a_day) = (8, 96);
    for look in 0..looks {
        for device in 0..300 {
            let row = |look: i64| ReportedRow {
                device: format!("device-{device}"),
                property: "temperature".into(),
                at_ms: now_ms(),
                json: format!("{{\"value\":{}.25,\"evidence\":\"sensor\"}}", 18 + look),
            };
            journal.queue(vec![Entry::Reported(row(look))]);
        }
    }
    closed(journal, running);
    assert_eq!(counted.counters().not_kept(), 0);
    // Time makes as many commits of them again as their number does.
    let day = 2 * counted.counters().written_bytes() / looks.unsigned_abs() * looks_a_day;
    assert!(day < 20_000_000, "{day} bytes a day");
    let (journal, found, running) = open(folder.path());
    assert_eq!(found.reported.len(), 300);
    assert!(found.reported.iter().all(|row| row.json.contains("25.25")), "the last values");
    closed(journal, running);
}

#[test]
fn what_is_too_old_goes_and_what_is_young_stays() {
    let folder = tempfile::tempdir().unwrap();
    let mut connection = schema::open(&folder.path().join(FILE)).unwrap();
    let transaction = connection.transaction().unwrap();
    for (op, at_ms) in [("old", now_ms() - 2 * 3_600_000), ("young", now_ms())] {
        writer::keep(&transaction, &operation(op, at_ms)).unwrap();
    }
    let retention = Retention { age_ms: 3_600_000, ..Retention::default() };
    writer::delete_old(&transaction, retention).unwrap();
    transaction.commit().unwrap();
    let left = recovered::read(Path::new(FILE), &mut connection).unwrap().operations;
    assert_eq!(left.iter().map(|o| o.op.as_str()).collect::<Vec<_>>(), ["young"]);
    let transaction = connection.transaction().unwrap();
    writer::delete_old(&transaction, Retention { bytes: 0, ..Retention::default() }).unwrap();
    transaction.commit().unwrap();
    assert!(
        recovered::read(Path::new(FILE), &mut connection).unwrap().operations.is_empty(),
        "the oldest go where it is too much"
    );
}

#[test]
fn a_disk_that_refuses_is_told_to_who_waits_and_the_rest_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let (journal, _, running) = open(folder.path());
    kept(&journal, vec![operation("a", 1)], Lasting::Process);
    // Another writer holds the file for longer than anybody waits: as a disk that is full does, each commit fails.
    let mut other = schema::connect(&folder.path().join(FILE)).unwrap();
    let lock = other.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate).unwrap();
    let refused = journal.keep(vec![operation("b", 2)], Lasting::Process).unwrap().blocking_recv().unwrap();
    assert_eq!(refused, Err(NotKept::Refused));
    assert_eq!(journal.counters().not_kept(), 1);
    drop(lock);
    kept(&journal, vec![operation("c", 3)], Lasting::Process);
    closed(journal, running);
}

#[test]
fn a_log_that_takes_long_to_end_makes_commits_wait_and_refuses_none() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(FILE);
    let connection = schema::open(&path).unwrap();
    let (counters, waiting) = (Arc::<Counters>::default(), Arc::new(Waiting::new()));
    let (log, checkpoint) = checkpoint::start(&path, counters.clone()).unwrap();
    let turn = log.turn().clone();
    let writer = writer::start(connection, waiting.clone(), log, Retention::default(), counters.clone()).unwrap();
    let (journal, running) = (Journal { waiting, counters }, Running { writer, checkpoint });
    kept(&journal, vec![operation("a", 1)], Lasting::Process);
    // As the thread does it that ends the log, on a card that takes its time: its turn, and SQLite's lock of writers.
    let its_turn = turn.take();
    let mut ends_the_log = schema::connect(&path).unwrap();
    let lock = ends_the_log.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate).unwrap();
    let mut waits = journal.keep(vec![operation("b", 2)], Lasting::PowerCut).unwrap();
    // It takes longer than any commit waits for SQLite's lock: another one that came later has given up.
    let mut other = schema::connect(&path).unwrap();
    for _ in 0..2 {
        assert!(other.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate).is_err());
    }
    assert_eq!(waits.try_recv(), Err(oneshot::error::TryRecvError::Empty), "neither kept nor refused");
    drop(lock);
    drop(its_turn);
    waits.blocking_recv().unwrap().unwrap();
    assert_eq!(journal.counters().not_kept(), 0);
    closed(journal, running);
}

#[test]
fn commits_go_on_beside_a_reader_that_keeps_the_log_from_ending() {
    let folder = tempfile::tempdir().unwrap();
    let (journal, _, running) = open(folder.path());
    kept(&journal, vec![operation("a", 1)], Lasting::Process);
    let mut other = schema::connect(&folder.path().join(FILE)).unwrap();
    let reader = other.transaction().unwrap();
    reader.query_row("SELECT count(*) FROM operation", [], |row| row.get::<_, i64>(0)).unwrap();
    // More than the log may have, several times over.
    let large = || Entry::Named { name: "large".into(), value: "x".repeat(1 << 20) };
    for _ in 0..24 {
        kept(&journal, vec![large()], Lasting::Process);
    }
    assert_eq!(journal.counters().not_kept(), 0);
    drop(reader);
    closed(journal, running);
}
