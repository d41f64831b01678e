//! No bytes make the codec panic, and what it says it has read was there.

use proptest::prelude::*;

use super::*;

/// xorshift64: the same sequence on every machine.
struct Seeded(u64);

impl Seeded {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % bound as u64).unwrap()
    }
}

/// Good packets of each kind in both versions.
fn seeds() -> Vec<Vec<u8>> {
    let login = joined(&[&field(b"c"), &field(b"truetwin/a/status"), &field(b"gone"), &field(b"a"), &field(b"pw")]);
    let login_v5 = joined(&[&field(b"c"), &[5, 0x18, 0, 0, 0, 1], &login[3..]]);
    let v5_properties = [11, 0x11, 0, 0, 0, 1, 0x21, 0, 9, 0x22, 0, 9];
    vec![
        packet(0x10, &joined(&[b"\0\x04MQTT\x04", &[0xCE, 0, 60], &login])),
        packet(0x10, &joined(&[b"\0\x04MQTT\x05", &[0xCE, 0, 60], &v5_properties, &login_v5])),
        packet(0x32, &joined(&[&field(b"truetwin/a/event"), &[0, 7], b"payload"])),
        packet(0x32, &joined(&[&field(b"truetwin/a/event"), &[0, 7], &[5, 0x02, 0, 0, 0, 9], b"payload"])),
        packet(0x32, &joined(&[&field("设备/灯".as_bytes()), &[0, 7], b"payload"])),
        packet(0x82, &joined(&[&[0, 1], &field(b"truetwin/a/command"), &[1]])),
        packet(0x82, &joined(&[&[0, 1], &[2, 0x0B, 5], &field(b"truetwin/a/command"), &[1]])),
        packet(0xA2, &joined(&[&[0, 1], &field(b"truetwin/a/command")])),
        packet(0xA2, &joined(&[&[0, 1, 0], &field(b"truetwin/a/command")])),
        vec![0x40, 4, 0, 7, 0, 0],
        vec![0xC0, 0],
        vec![0xE0, 2, 4, 0],
    ]
}

/// Reads everything that was read, so that a wrong slice would show.
fn exercise(bytes: &[u8]) {
    if let Ok(Some((_, used))) = decode_connect(bytes, 4096) {
        assert!(used <= bytes.len());
    }
    for version in [V3_1_1, V5] {
        if let Ok(Some((packet, used))) = decode(bytes, version, 4096) {
            assert!((2..=bytes.len()).contains(&used));
            match packet {
                Packet::Publish(publish) => assert!(publish.topic.len() + publish.payload.len() < used),
                Packet::Subscribe(subscribe) => assert!(subscribe.subscriptions().count() > 0),
                Packet::Unsubscribe(unsubscribe) => assert!(unsubscribe.filters().count() > 0),
                Packet::PubAck(_) | Packet::PingReq | Packet::Disconnect(_) => {}
            }
        }
    }
}

#[test]
fn two_hundred_thousand_mutated_packets_are_read_or_refused() {
    let seeds = seeds();
    let mut seeded = Seeded(0x9E37_79B9_7F4A_7C15);
    for _ in 0..200_000 {
        let mut bytes = seeds[seeded.below(seeds.len())].clone();
        for _ in 0..=seeded.below(4) {
            let at = seeded.below(bytes.len());
            let random = seeded.next();
            match random % 6 {
                0 => bytes[at] = (random >> 8) as u8,
                1 => bytes[at] ^= 1 << (random >> 8 & 7),
                2 => bytes.insert(at, (random >> 8) as u8),
                3 if bytes.len() > 2 => drop(bytes.remove(at)),
                4 => bytes.extend_from_slice(&random.to_be_bytes()[..3]),
                _ => bytes.truncate(at.max(2)),
            }
            if bytes.len() > 2 && random & 0x100_0000 != 0 && bytes.len() < 0x80 {
                bytes[1] = u8::try_from(bytes.len() - 2).unwrap(); // a right length lets the mutation reach the fields
            }
        }
        exercise(&bytes);
    }
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        exercise(&bytes);
    }

    #[test]
    fn any_body_behind_a_right_head_is_read_or_refused(
        first in prop_oneof![Just(0x10u8), Just(0x30), Just(0x32), Just(0x40), Just(0x82), Just(0xA2), Just(0xE0), any::<u8>()],
        body in proptest::collection::vec(any::<u8>(), 0..127),
    ) {
        exercise(&packet(first, &body));
    }

    #[test]
    fn a_cut_packet_waits_and_a_following_one_does_not_matter(cut in 0usize..60, kind in 0usize..12) {
        let seeds = seeds();
        let whole = &seeds[kind];
        let cut = cut.min(whole.len() - 1);
        for version in [V3_1_1, V5] {
            if let Ok(Some((_, used))) = decode(whole, version, 4096) {
                prop_assert_eq!(used, whole.len());
                prop_assert!(matches!(decode(&whole[..cut], version, 4096), Ok(None)));
                let followed = joined(&[whole, &[0xFF, 0xFF]]);
                prop_assert!(matches!(decode(&followed, version, 4096), Ok(Some((_, used))) if used == whole.len()));
            }
        }
    }
}
