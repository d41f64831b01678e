use super::*;

const HEAD_V3: &[u8] = b"\0\x04MQTT\x04";
const HEAD_V5: &[u8] = b"\0\x04MQTT\x05";

fn connect(bytes: &[u8]) -> Connect<'_> {
    decode_connect(bytes, 4096).unwrap().unwrap().0
}

fn refused(bytes: &[u8]) -> ConnectError {
    decode_connect(bytes, 4096).expect_err("it must be refused")
}

fn refused_with(bytes: &[u8]) -> Reason {
    match refused(bytes) {
        ConnectError::Bad(bad, _) => bad.reason,
        ConnectError::Version { .. } => panic!("it is a version that is spoken"),
    }
}

/// A v5 CONNECT with these properties and nothing else.
fn with_properties(properties: &[u8]) -> Vec<u8> {
    let length = [u8::try_from(properties.len()).unwrap()];
    packet(0x10, &joined(&[HEAD_V5, &[0x02, 0, 60], &length, properties, &field(b"c")]))
}

#[test]
fn a_whole_connect_is_read_in_both_versions() {
    let fields = [field(b"id"), field(b"truetwin/a/status"), field(b"gone"), field(b"a"), field(b"pw")];
    let fields_v5 = [field(b"id"), vec![0], fields[1..].concat()].concat();
    let v3 = packet(0x10, &joined(&[HEAD_V3, &[0xEE, 0, 60], &fields.concat()]));
    let v5 = packet(0x10, &joined(&[HEAD_V5, &[0xEE, 0, 60], &[5, 0x27, 0, 0, 1, 0], &fields_v5]));
    for (bytes, version, packet_bytes_max) in [(v3, V3_1_1, None), (v5, V5, Some(256))] {
        let connect = connect(&bytes);
        assert_eq!(connect.version, version);
        assert!(connect.clean);
        assert_eq!((connect.keep_alive_s, connect.client_id), (60, "id"));
        assert_eq!((connect.user, connect.password), (Some("a"), Some(&b"pw"[..])));
        let will = connect.will.unwrap();
        assert_eq!((will.topic, will.payload, will.qos, will.retain), ("truetwin/a/status", &b"gone"[..], 1, true));
        assert_eq!(connect.packet_bytes_max, packet_bytes_max);
    }
}

#[test]
fn a_connect_that_is_cut_anywhere_waits_for_more() {
    let bytes = with_properties(&[0x11, 0, 0, 0, 9]);
    for cut in 0..bytes.len() {
        assert!(decode_connect(&bytes[..cut], 4096).unwrap().is_none(), "{cut}");
    }
    assert_eq!(connect(&bytes).session_expiry_s, 9);
}

#[test]
fn other_levels_and_protocols_are_told_apart() {
    let of = |head: &[u8]| packet(0x10, &joined(&[head, &[2, 0, 60], &field(b"c")]));
    assert_eq!(refused(&of(b"\0\x06MQIsdp\x03")), ConnectError::Version { later: false });
    assert_eq!(refused(&of(b"\0\x04MQTT\x03")), ConnectError::Version { later: false });
    assert_eq!(refused(&of(b"\0\x04MQTT\x06")), ConnectError::Version { later: true });
    assert!(matches!(refused(&of(b"\0\x04HTTP\x04")), ConnectError::Bad(_, None)));
    for other in [&b"GET / HTTP/1.1"[..], b"\x16\x03\x01", b"\x30\x03", b"\x11\x00", b"\x20"] {
        assert!(matches!(refused(other), ConnectError::Bad(_, None)), "refused at once, without waiting for more");
    }
}

#[test]
fn flags_that_contradict_each_other_are_malformed() {
    for flags in [0x03, 0x0A, 0x22, 0x1E, 0x12] {
        for head in [HEAD_V3, HEAD_V5] {
            let bytes = packet(0x10, &joined(&[head, &[flags, 0, 60], &[0, 0, 0]]));
            assert_eq!(refused_with(&bytes), Reason::Malformed, "{flags:x}");
        }
    }
    let password_alone = packet(0x10, &joined(&[HEAD_V3, &[0x42, 0, 60], &field(b"c"), &field(b"pw")]));
    assert_eq!(refused_with(&password_alone), Reason::Malformed);
    let password_alone = packet(0x10, &joined(&[HEAD_V5, &[0x42, 0, 60], &[0], &field(b"c"), &field(b"pw")]));
    assert_eq!(connect(&password_alone).password, Some(&b"pw"[..]), "MQTT 5 allows it");
}

#[test]
fn text_must_be_utf8_without_nul_and_the_packet_must_end_with_its_fields() {
    let of = |id: &[u8], tail: &[u8]| packet(0x10, &joined(&[HEAD_V3, &[2, 0, 60], &field(id), tail]));
    assert_eq!(refused_with(&of(b"\xFF", b"")), Reason::Malformed);
    assert_eq!(refused_with(&of(b"a\0b", b"")), Reason::Malformed);
    assert_eq!(refused_with(&of(b"\xED\xA0\x80", b"")), Reason::Malformed, "a surrogate");
    assert_eq!(refused_with(&of(b"id", b"x")), Reason::Malformed);
    assert_eq!(connect(&of("灯/+#".as_bytes(), b"")).client_id, "灯/+#", "a client id is free");
}

#[test]
fn a_password_need_not_be_text() {
    let bytes = packet(0x10, &joined(&[HEAD_V3, &[0xC2, 0, 60], &field(b"c"), &field(b"a"), &field(b"\xFF\0")]));
    assert_eq!(connect(&bytes).password, Some(&b"\xFF\0"[..]));
}

#[test]
fn each_property_is_checked() {
    let good: &[&[u8]] = &[
        &[0x11, 0, 0, 0, 1],
        &[0x21, 0, 1],
        &[0x22, 0, 0],
        &[0x19, 1, 0x17, 0],
        &[0x26, 0, 1, b'a', 0, 1, b'b', 0x26, 0, 1, b'a', 0, 1, b'c'],
        &[0x15, 0, 1, b'm', 0x16, 0, 1, 0xFF],
    ];
    for properties in good {
        connect(&with_properties(properties));
    }
    let protocol: &[&[u8]] = &[
        &[0x21, 0, 0],             // receive maximum 0
        &[0x27, 0, 0, 0, 0],       // maximum packet size 0
        &[0x19, 2],                // neither 0 nor 1
        &[0x17, 2],                //
        &[0x22, 0, 1, 0x22, 0, 1], // twice
        &[0x16, 0, 1, 0],          // data without a method
    ];
    for properties in protocol {
        assert_eq!(refused_with(&with_properties(properties)), Reason::Protocol, "{properties:x?}");
    }
    let malformed: &[&[u8]] = &[
        &[0x01, 0], // of another packet (2.2.2.2)
        &[0x23, 0, 1],
        &[0x7F, 0], // of none
        &[0xFF, 0x01],
        &[0x11, 0], // cut
        &[0x15, 0, 9, b'm'],
        &[0x26, 0, 1, b'a'],
    ];
    for properties in malformed {
        assert_eq!(refused_with(&with_properties(properties)), Reason::Malformed, "{properties:x?}");
    }
    assert!(connect(&with_properties(&[0x15, 0, 1, b'm'])).authentication);
}

#[test]
fn what_a_connect_asks_for_is_read() {
    let plain = with_properties(&[]);
    let plain = connect(&plain);
    assert_eq!((plain.receive_max, plain.topic_alias_max, plain.session_expiry_s), (65_535, 0, 0));
    assert_eq!((plain.request_response, plain.request_problem, plain.authentication), (false, true, false));
    let wishes = with_properties(&[
        0x21, 0, 9, 0x22, 0, 7, 0x11, 0, 0, 1, 0, 0x27, 0, 1, 0, 0, 0x19, 1, 0x17, 0, 0x26, 0, 1, b'a', 0, 1, b'b',
    ]);
    let wishes = connect(&wishes);
    assert_eq!((wishes.receive_max, wishes.topic_alias_max, wishes.session_expiry_s), (9, 7, 256));
    assert_eq!((wishes.packet_bytes_max, wishes.request_response, wishes.request_problem), (Some(65_536), true, false));
    assert_eq!(wishes.properties.user().collect::<Vec<_>>(), [("a", "b")]);
}

#[test]
fn a_will_has_properties_and_its_payload_is_what_they_say() {
    let of = |properties: &[u8], payload: &[u8]| {
        let length = [u8::try_from(properties.len()).unwrap()];
        let body = [HEAD_V5, &[0x0E, 0, 60], &[0], &field(b"c"), &length, properties, &field(b"a/w"), &field(payload)];
        packet(0x10, &joined(&body))
    };
    let properties =
        [0x18, 0, 0, 0, 5, 0x01, 1, 0x02, 0, 0, 0, 9, 0x03, 0, 1, b't', 0x08, 0, 1, b'r', 0x09, 0, 1, 0xFF];
    let bytes = of(&properties, "灯\0".as_bytes());
    let will = connect(&bytes).will.unwrap();
    assert_eq!((will.qos, will.delay_s, will.properties.message_expiry_s()), (1, 5, Some(9)));
    assert_eq!((will.properties.content_type(), will.properties.response_topic()), (Some("t"), Some("r")));
    assert_eq!(will.properties.correlation_data(), Some(&b"\xFF"[..]));
    assert_eq!(refused_with(&of(&properties, b"\xFF")), Reason::PayloadFormatInvalid);
    assert_eq!(connect(&of(&[0x01, 0], b"\xFF")).will.unwrap().payload, b"\xFF");
    assert_eq!(refused_with(&of(&[0x23, 0, 1], b"")), Reason::Malformed, "an alias");
    assert_eq!(refused_with(&of(&[0x0B, 1], b"")), Reason::Malformed, "a subscription identifier");
}

#[test]
fn the_length_of_a_v5_connect_is_as_short_as_it_can_be() {
    let of = |head: &[u8], properties: &[u8]| {
        let body = joined(&[head, &[2, 0, 60], properties, &field(b"c")]);
        joined(&[&[0x10, 0x80 | u8::try_from(body.len()).unwrap(), 0], &body])
    };
    assert_eq!(refused_with(&of(HEAD_V5, &[0])), Reason::Malformed);
    assert_eq!(connect(&of(HEAD_V3, &[])).client_id, "c", "3.1.1 does not forbid it");
}

#[test]
fn a_will_topic_with_a_wildcard_is_invalid_and_a_foreign_one_is_read() {
    let of = |topic: &[u8]| {
        packet(0x10, &joined(&[HEAD_V5, &[0x06, 0, 60], &[0], &field(b"c"), &[0], &field(topic), &field(b"")]))
    };
    assert_eq!(refused_with(&of(b"a/#")), Reason::TopicInvalid);
    assert_eq!(refused_with(&of(b"")), Reason::TopicInvalid);
    assert_eq!(connect(&of("é/x".as_bytes())).will.unwrap().topic, "é/x");
}

#[test]
fn a_connect_larger_than_allowed_is_refused_before_it_is_whole() {
    assert!(matches!(
        decode_connect(&[0x10, 0xFF, 0x7F], 4096),
        Err(ConnectError::Bad(Bad { reason: Reason::PacketTooLarge, .. }, None))
    ));
}
