//! Both sides held to each other: whatever one writes the other reads as it was meant, and no bytes make either panic.
#![allow(clippy::unwrap_used, clippy::wildcard_enum_match_arm, reason = "a test that fails here says where")]

use proptest::prelude::*;
use truetwin_wire::{
    Scalar, device,
    hub::{self, Command},
    limits::{COMMAND_BYTES_MAX, EVENT_BYTES_MAX},
    words::{CauseWord, EvidenceWord, ReasonWord, ReportResult},
};

fn id() -> impl Strategy<Value = String> {
    "[!#-\\[\\]-~]{1,16}"
}

fn name() -> impl Strategy<Value = String> {
    "[a-z0-9_灯 ]{1,10}"
}

fn scalar() -> impl Strategy<Value = Scalar> {
    prop_oneof![
        any::<bool>().prop_map(Scalar::Bool),
        any::<i32>().prop_map(Scalar::Integer),
        (-1.0..1.0_f64, -6..=15_i32).prop_map(|(m, e)| Scalar::number(m * 10_f64.powi(e)).unwrap()),
        "[ -~\\t\\n灯é]{0,42}".prop_map(|t| Scalar::text(&t).unwrap()),
    ]
}

fn command() -> impl Strategy<Value = Command> {
    let common = || (id(), any::<u64>(), id());
    prop_oneof![
        (id(), id(), any::<u32>(), any::<u64>(), any::<u32>()).prop_map(
            |(session, hub, epoch, hub_ms, heartbeat_ms)| {
                Command::Welcome { session, hub, epoch, hub_ms, heartbeat_ms, warnings: vec!["a \"b\"".to_owned()] }
            }
        ),
        (common(), name(), scalar(), any::<u32>()).prop_map(|((session, hub_ms, op), property, value, ttl_ms)| {
            Command::Set { session, hub_ms, op, property, value, ttl_ms }
        }),
        (common(), name(), prop::option::of((name(), scalar())), any::<u32>()).prop_map(
            |((session, hub_ms, op), action, arg, ttl_ms)| Command::Run {
                session,
                hub_ms,
                op,
                action,
                args: arg.into_iter().collect(),
                ttl_ms
            }
        ),
        (common(), prop::option::of(name())).prop_map(|((session, hub_ms, op), property)| Command::GetDeviceState {
            session,
            hub_ms,
            op,
            property
        }),
        common().prop_map(|(session, hub_ms, op)| Command::Withdraw { session, hub_ms, op }),
        common().prop_map(|(session, hub_ms, op)| Command::GetLog { session, hub_ms, op }),
    ]
}

/// What a board read, as the hub would write it.
fn back(read: device::Command<'_>) -> Option<Command> {
    let own = str::to_owned;
    Some(match read {
        device::Command::Welcome { head, hub, epoch, heartbeat_ms } => Command::Welcome {
            session: own(head.session),
            hub: own(hub),
            epoch,
            hub_ms: head.hub_ms,
            heartbeat_ms,
            warnings: vec!["a \"b\"".to_owned()],
        },
        device::Command::Set { head, op, property, value, ttl_ms } => Command::Set {
            session: own(head.session),
            hub_ms: head.hub_ms,
            op: own(op),
            property: own(property),
            value,
            ttl_ms,
        },
        device::Command::Run { head, op, action, args, ttl_ms } => Command::Run {
            session: own(head.session),
            hub_ms: head.hub_ms,
            op: own(op),
            action: own(action),
            args: args.iter().map(|(name, value)| Some((own(name), value?))).collect::<Option<_>>()?,
            ttl_ms,
        },
        device::Command::GetDeviceState { head, op, property } => Command::GetDeviceState {
            session: own(head.session),
            hub_ms: head.hub_ms,
            op: own(op),
            property: property.map(own),
        },
        device::Command::Withdraw { head, op } => {
            Command::Withdraw { session: own(head.session), hub_ms: head.hub_ms, op: own(op) }
        }
        device::Command::GetLog { head, op } => {
            Command::GetLog { session: own(head.session), hub_ms: head.hub_ms, op: own(op) }
        }
        device::Command::Refused { .. } | device::Command::Describe { .. } | device::Command::Error { .. } => {
            return None;
        }
    })
}

proptest! {
    #[test]
    fn a_board_reads_whatever_the_hub_writes(command in command()) {
        let bytes = hub::encode(&command);
        prop_assert!(bytes.len() <= COMMAND_BYTES_MAX, "{}", bytes.len());
        prop_assert_eq!(back(device::parse(&bytes).unwrap()), Some(command));
    }

    #[test]
    fn the_hub_reads_whatever_a_board_writes(
        (session, boot, op) in (id(), id(), id()),
        (seq, up_ms) in (1..=u32::MAX, any::<u64>()),
        value in prop::option::of(scalar()),
        property in name(),
        which in 0..3_u8,
        flags in any::<(bool, bool)>(),
    ) {
        let readings =
            [device::Reading { property: &property, value: value.clone(), evidence: EvidenceWord::Pin, seen: Some(&op) }];
        let event = match which {
            0 => device::Event::ActionReport(device::ActionReport {
                op: &op, action: "set", property: Some(&property), result: ReportResult::Failed, readings: &readings,
                reason: Some(ReasonWord::Stuck), eta_ms: Some(seq), clamped: flags.0, dup: flags.1,
            }),
            1 => device::Event::DeviceState(
                device::DeviceState { op: flags.0.then_some(&*op), readings: &readings, cause: CauseWord::Query }),
            _ => device::Event::Heartbeat,
        };
        let mut buffer = [0; EVENT_BYTES_MAX];
        let envelope = device::Envelope { session: &session, boot: &boot, seq, up_ms };
        let len = device::write(&envelope, &event, &mut buffer).unwrap();
        let read = hub::decode_event(&buffer[..len]).unwrap();
        prop_assert_eq!((&*read.session, &*read.boot, read.seq, read.up_ms), (&*session, &*boot, seq, up_ms));
        prop_assert_eq!(read.unknown_words, 0);
        let status = match (&read.event, which) {
            (hub::Event::ActionReport(report), 0) => {
                prop_assert_eq!((&*report.op, report.clamped, report.dup), (&*op, flags.0, flags.1));
                &report.status
            }
            (hub::Event::DeviceState(state), 1) => {
                prop_assert_eq!(&state.seen, &[(property.as_str().into(), op.as_str().into())]);
                &state.status
            }
            (hub::Event::Heartbeat, 2) => return Ok(()),
            (other, _) => return Err(TestCaseError::fail(format!("{other:?}"))),
        };
        match (status.as_slice(), value) {
            ([], None) => {}
            ([(name, read)], Some(written)) => prop_assert!(**name == property && *read == written, "{read:?} {written:?}"),
            other => return Err(TestCaseError::fail(format!("{other:?}"))),
        }
    }

    #[test]
    fn no_bytes_make_either_side_panic(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
        if let Err(error) = hub::decode_event(&bytes) {
            prop_assert!(error.encode().len() <= COMMAND_BYTES_MAX);
        }
        let _any_result = (hub::decode_will(&bytes), device::parse(&bytes));
    }

    #[test]
    fn no_text_that_looks_like_a_message_makes_either_side_panic(
        text in r#"\{("(command|event|op|status|value|seq|session)":("?[a-z0-9\\ud]{0,6}"?|\{"a":|\[|nan|-?[0-9.e+]{1,5}|null),?){0,8}\}{0,3}"#,
    ) {
        if let Err(error) = hub::decode_event(text.as_bytes()) {
            prop_assert!(error.encode().len() <= COMMAND_BYTES_MAX);
        }
        let _any_result = device::parse(text.as_bytes());
    }

    #[test]
    fn a_message_cut_anywhere_is_an_error_and_no_panic(command in command(), cut in 0..511_usize) {
        let bytes = hub::encode(&command);
        if cut < bytes.len() {
            prop_assert!(device::parse(&bytes[..cut]).is_err());
            prop_assert!(hub::decode_event(&bytes[..cut]).is_err());
        }
    }
}
