use super::*;

#[test]
fn a_publish_is_read_in_both_versions() {
    let v3 = packet(0x3B, &joined(&[&field(b"a/b"), &[0, 7], b"hi"]));
    let v5 = packet(0x3B, &joined(&[&field(b"a/b"), &[0, 7], &[2, 0x01, 1], b"hi"]));
    for (bytes, version) in [(v3, V3_1_1), (v5, V5)] {
        let Ok(Packet::Publish(publish)) = whole(&bytes, version) else { panic!("a publish") };
        assert_eq!((publish.topic, publish.payload), ("a/b", &b"hi"[..]));
        assert_eq!((publish.qos, publish.retain, publish.dup, publish.packet_id), (1, true, true, 7));
        assert_eq!(publish.properties.payload_is_text(), version == V5);
    }
    let bytes = packet(0x30, &field(b"a"));
    let Ok(Packet::Publish(publish)) = whole(&bytes, V3_1_1) else { panic!("a publish") };
    assert_eq!((publish.packet_id, publish.payload), (0, &b""[..]));
}

#[test]
fn a_publish_that_is_not_allowed_says_why() {
    for version in [V3_1_1, V5] {
        let no_properties: &[u8] = if version == V5 { &[0] } else { &[] };
        let of = |first, topic: &[u8], id: &[u8]| packet(first, &joined(&[&field(topic), id, no_properties]));
        assert_eq!(reason(&of(0x36, b"a", &[0, 1]), version), Reason::Malformed, "QoS 3");
        assert_eq!(reason(&of(0x38, b"a", &[]), version), Reason::Malformed, "DUP with QoS 0");
        assert_eq!(reason(&of(0x32, b"a", &[0, 0]), version), Reason::Protocol, "packet id 0");
        assert_eq!(reason(&of(0x30, b"a/+", &[]), version), Reason::TopicInvalid);
        let no_topic = if version == V5 { Reason::Protocol } else { Reason::TopicInvalid }; // in 5 an alias could stand for it
        assert_eq!(reason(&of(0x30, b"", &[]), version), no_topic);
        assert_eq!(reason(&of(0x30, b"\xC3\x28", &[]), version), Reason::Malformed, "not UTF-8");
        assert_eq!(reason(&of(0x30, b"a\0", &[]), version), Reason::Malformed);
        let bytes = of(0x34, "é/x".as_bytes(), &[0, 1]);
        let Ok(Packet::Publish(publish)) = whole(&bytes, version) else {
            panic!("QoS 2 and other topics are for the session to judge")
        };
        assert_eq!((publish.qos, publish.topic), (2, "é/x"));
    }
    let with = |properties: &[u8]| {
        let length = [u8::try_from(properties.len()).unwrap()];
        packet(0x30, &joined(&[&field(b""), &length, properties]))
    };
    assert!(matches!(whole(&with(&[0x23, 0, 1]), V5), Ok(Packet::Publish(Publish { alias: Some(1), topic: "", .. }))));
    assert_eq!(reason(&with(&[0x0B, 1]), V5), Reason::Protocol, "a subscription identifier from a client");
    assert_eq!(reason(&with(&[0x08, 0, 1, b'#']), V5), Reason::TopicInvalid, "a response topic with wildcards");
    assert_eq!(reason(&with(&[0x01, 2]), V5), Reason::Protocol, "a payload format of 2");
    assert_eq!(reason(&with(&[0x23, 0, 0]), V5), Reason::TopicAliasInvalid, "an alias of 0");
    assert_eq!(reason(&with(&[0x23, 0, 1, 0x23, 0, 1]), V5), Reason::Protocol, "two aliases");
    assert_eq!(reason(&with(&[0x11, 0, 0, 0, 0]), V5), Reason::Malformed, "a property of another packet");
    let text = |payload: &[u8]| packet(0x30, &joined(&[&field(b"a"), &[2, 0x01, 1], payload]));
    assert_eq!(reason(&text(b"\xFF"), V5), Reason::PayloadFormatInvalid);
    assert!(whole(&text(b"a\0b"), V5).is_ok(), "a payload may have a NUL");
}

#[test]
fn the_properties_of_a_publish_can_be_looked_up_kept_and_passed_on() {
    let user = joined(&[&[0x26], &field(b"k"), &field(b"1")]);
    let answer = joined(&[&[0x08], &field(b"re/ply"), &[0x09], &field(&[1, 0xFF])]);
    let kept = joined(&[&user, &answer, &user, &[0x03], &field(b"t"), &[0x01, 1]]);
    let own = [0x23, 0, 3, 0x02, 0, 0, 0, 9];
    let properties = joined(&[&own[..3], &kept, &own[3..]]);
    let length = [u8::try_from(properties.len()).unwrap()];
    let bytes = packet(0x32, &joined(&[&field(b"a"), &[0, 7], &length, &properties, b"hi"]));
    let Ok(Packet::Publish(publish)) = whole(&bytes, V5) else { panic!("a publish") };
    assert_eq!((publish.alias, publish.properties.message_expiry_s()), (Some(3), Some(9)));
    assert_eq!(publish.properties.raw(), properties);
    assert_eq!(publish.properties.user().collect::<Vec<_>>(), [("k", "1"), ("k", "1")]);
    assert_eq!(publish.properties.response_topic(), Some("re/ply"));
    assert_eq!(publish.properties.correlation_data(), Some(&[1, 0xFF][..]));
    assert_eq!(publish.properties.passed_on().collect::<Vec<_>>().concat(), kept, "all but alias and expiry");
    assert_eq!(Properties::of_publish(&kept).unwrap().content_type(), Some("t"));
    assert!(Properties::of_publish(&[0x0B, 1]).is_err());

    let message = Outgoing {
        topic: "b",
        payload: b"hi",
        packet_id: 9,
        dup: true,
        retain: true,
        properties: publish.properties,
        expiry_s: Some(4),
    };
    let mut out = Vec::new();
    encode::publish(&mut out, V5, &message);
    let sent = joined(&[&[0x02, 0, 0, 0, 4], &kept]);
    let length = [u8::try_from(sent.len()).unwrap()];
    assert_eq!(out, packet(0x3B, &joined(&[&field(b"b"), &[0, 9], &length, &sent, b"hi"])));
    assert_eq!(out.len(), publish_bytes(V5, &message));
    out.clear();
    encode::publish(&mut out, V3_1_1, &message);
    assert_eq!(out, packet(0x3B, &joined(&[&field(b"b"), &[0, 9], b"hi"])), "3.1.1 has no properties");
    assert_eq!(out.len(), publish_bytes(V3_1_1, &message));
    out.clear();
    encode::publish(&mut out, V5, &Outgoing { packet_id: 0, dup: false, retain: false, expiry_s: None, ..message });
    assert_eq!(out[0], 0x30);
}

#[test]
fn subscribe_gives_its_filters_one_after_the_other() {
    let filters = joined(&[&field(b"a"), &[1], &field("é/#".as_bytes()), &[2]]);
    let v3 = packet(0x82, &joined(&[&[0, 9], &filters]));
    let v5 = packet(0x82, &joined(&[&[0, 9], &[2, 0x0B, 5], &filters]));
    for (bytes, version) in [(v3, V3_1_1), (v5, V5)] {
        let Ok(Packet::Subscribe(subscribe)) = whole(&bytes, version) else { panic!("a subscribe") };
        assert_eq!((subscribe.packet_id, subscribe.identified), (9, version == V5));
        let given: Vec<_> = subscribe.subscriptions().map(|each| (each.filter, each.qos)).collect();
        assert_eq!(given, [("a", 1), ("é/#", 2)]);
    }
}

#[test]
fn subscribe_options_are_checked_for_each_version() {
    let of = |options: u8, filter: &[u8], version| {
        let none: &[u8] = if version == V5 { &[0] } else { &[] };
        packet(0x82, &joined(&[&[0, 9], none, &field(filter), &[options]]))
    };
    for options in [0x04, 0x08, 0x10, 0x2E] {
        assert!(whole(&of(options, b"a", V5), V5).is_ok(), "{options:x}");
        assert_eq!(reason(&of(options, b"a", V3_1_1), V3_1_1), Reason::Malformed, "{options:x}");
    }
    for (options, why) in
        [(0x03, Reason::Protocol), (0x30, Reason::Protocol), (0x40, Reason::Malformed), (0x80, Reason::Malformed)]
    {
        assert_eq!(reason(&of(options, b"a", V5), V5), why, "{options:x}"); // 3.8.3.1
    }
    let bytes = of(0x2D, b"a", V5);
    let Ok(Packet::Subscribe(subscribe)) = whole(&bytes, V5) else { panic!("a subscribe") };
    let all = Subscription { filter: "a", qos: 1, no_local: true, retain_as_published: true, retain_handling: 2 };
    assert_eq!(subscribe.subscriptions().collect::<Vec<_>>(), [all]);
    assert_eq!(reason(&of(0x04, b"$share/g/a", V5), V5), Reason::Protocol, "no local on a shared one");
    assert_eq!(reason(&packet(0x82, &[0, 9]), V3_1_1), Reason::Protocol, "no filter");
    assert_eq!(reason(&packet(0x82, &[0, 9, 0]), V5), Reason::Protocol, "no filter");
    assert_eq!(reason(&packet(0x80, &[0, 9]), V3_1_1), Reason::Malformed, "reserved flags");
}

#[test]
fn unsubscribe_ping_puback_and_disconnect_are_read() {
    let bytes = packet(0xA2, &joined(&[&[0, 3], &field(b"a"), &field(b"b")]));
    let Ok(Packet::Unsubscribe(unsubscribe)) = whole(&bytes, V3_1_1) else { panic!("an unsubscribe") };
    assert_eq!(unsubscribe.filters().collect::<Vec<_>>(), ["a", "b"]);
    assert_eq!(whole(&[0xC0, 0], V5), Ok(Packet::PingReq));
    for (bytes, code) in [(&[0x40, 2, 0, 1][..], 0), (&[0x40, 3, 0, 1, 0x10], 0x10), (&[0x40, 4, 0, 1, 0x80, 0], 0x80)]
    {
        let acknowledgement = PubAck { packet_id: 1, reason: code, properties: Properties::NONE };
        assert_eq!(whole(bytes, V5), Ok(Packet::PubAck(acknowledgement)));
    }
    let why = packet(0x40, &joined(&[&[0, 1, 0x97, 6, 0x1F], &field(b"why")]));
    let Ok(Packet::PubAck(acknowledgement)) = whole(&why, V5) else { panic!("an acknowledgement") };
    assert_eq!(acknowledgement.properties.reason_string(), Some("why"));
    assert_eq!(reason(&[0x40, 2, 0, 0], V5), Reason::Protocol, "packet id 0");
    assert_eq!(reason(&[0x40, 3, 0, 1, 0x55], V5), Reason::Protocol);
    assert_eq!(reason(&[0x40, 3, 0, 1, 0], V3_1_1), Reason::Malformed, "3.1.1 has no code there");
    let goodbyes =
        [(&[0xE0, 0][..], true), (&[0xE0, 1, 0], true), (&[0xE0, 1, 4], false), (&[0xE0, 2, 0x82, 0], false)];
    for (bytes, clean) in goodbyes {
        let Ok(Packet::Disconnect(goodbye)) = whole(bytes, V5) else { panic!("{bytes:x?}") };
        assert_eq!(goodbye.clean(), clean);
    }
    assert_eq!(reason(&[0xE0, 1, 0x8E], V5), Reason::Protocol, "a server's code");
    assert_eq!(reason(&[0xE0, 1, 0], V3_1_1), Reason::Malformed, "3.1.1 has no code there");
}

#[test]
fn packets_that_are_not_for_a_server_are_protocol_errors() {
    for version in [V3_1_1, V5] {
        for first in [0x00, 0x20, 0x50, 0x62, 0x70, 0x90, 0xB0, 0xD0, 0xF0] {
            assert_eq!(reason(&[first, 2, 0, 1], version), Reason::Protocol, "{first:x}");
        }
        assert_eq!(reason(&[0x10, 0], version), Reason::Protocol, "a second CONNECT");
        for first in [0x41, 0xC1, 0xE2, 0x12] {
            assert_eq!(reason(&[first, 0], version), Reason::Malformed, "{first:x}");
        }
    }
}

#[test]
fn lengths_are_checked() {
    assert_eq!(decode(&[0x30], V5, 4096), Ok(None));
    assert_eq!(decode(&[0x30, 0x80], V5, 4096), Ok(None));
    assert_eq!(reason(&[0x30, 0xFF, 0xFF, 0xFF, 0xFF], V5), Reason::Malformed);
    assert_eq!(reason(&[0x30, 0xFF, 0x7F], V5), Reason::PacketTooLarge, "before it is whole");
    assert_eq!(reason(&[0xC0, 0x80, 0x00], V5), Reason::Malformed, "longer than needed");
    assert_eq!(decode(&[0xC0, 0x80, 0x00], V3_1_1, 4096), Ok(Some((Packet::PingReq, 3))), "3.1.1 does not forbid it");
    assert_eq!(decode(&[0xC0, 0, 0xC0, 0], V5, 4096), Ok(Some((Packet::PingReq, 2))), "the second one waits");
}

#[test]
fn a_packet_of_exactly_the_maximum_is_read() {
    let payload = vec![b'x'; 4096 - 3 - 3];
    let mut bytes = vec![0x30, 0xFD, 0x1F];
    bytes.extend_from_slice(&joined(&[&field(b"a"), &payload]));
    assert_eq!(bytes.len(), 4096);
    assert!(whole(&bytes, V3_1_1).is_ok());
    bytes[1] += 1;
    assert_eq!(reason(&bytes, V3_1_1), Reason::PacketTooLarge);
}

#[test]
fn what_is_sent_has_the_bytes_of_the_standard() {
    let of = |write: &dyn Fn(&mut Vec<u8>)| {
        let mut out = Vec::new();
        write(&mut out);
        out
    };
    let words = Welcome {
        receive_max: 10,
        packet_bytes_max: 4096,
        topic_alias_max: 0,
        retain: false,
        wildcards: false,
        server_keep_alive_s: Some(120),
        assigned_client_id: Some("x"),
        response_information: None,
    };
    assert_eq!(of(&|out| welcome(out, V3_1_1, &words)), [0x20, 2, 0, 0]);
    let connack = of(&|out| welcome(out, V5, &words));
    let properties = [
        &[0x11, 0, 0, 0, 0][..],
        &[0x21, 0, 10, 0x24, 1, 0x25, 0, 0x27, 0, 0, 0x10, 0],
        &[0x12, 0, 1, b'x', 0x28, 0, 0x29, 0, 0x2A, 0, 0x13, 0, 120],
    ];
    assert_eq!(connack, joined(&[&[0x20, 33, 0, 0, 30], &properties.concat()]));
    let more = Welcome {
        topic_alias_max: 16,
        retain: true,
        wildcards: true,
        server_keep_alive_s: None,
        assigned_client_id: None,
        response_information: Some("r"),
        ..words
    };
    let properties = [
        &[0x11, 0, 0, 0, 0][..],
        &[0x21, 0, 10, 0x24, 1, 0x25, 1, 0x27, 0, 0, 0x10, 0, 0x22, 0, 16],
        &[0x28, 1, 0x29, 0, 0x2A, 0, 0x1A, 0, 1, b'r'],
    ];
    assert_eq!(of(&|out| welcome(out, V5, &more)), joined(&[&[0x20, 33, 0, 0, 30], &properties.concat()]));
    assert_eq!(of(&|out| refusal_v3(out, ReturnCode::BadLogin)), [0x20, 2, 0, 4]);
    assert_eq!(of(&|out| refusal_v5(out, Reason::BadLogin)), [0x20, 3, 0, 0x86, 0]);
    assert_eq!(of(&|out| puback(out, V5, 258, Reason::Success)), [0x40, 2, 1, 2]);
    assert_eq!(of(&|out| puback(out, V5, 258, Reason::NotAuthorized)), [0x40, 3, 1, 2, 0x87]);
    assert_eq!(of(&|out| suback(out, V3_1_1, 1, &[0, 0x80])), [0x90, 4, 0, 1, 0, 0x80]);
    assert_eq!(of(&|out| suback(out, V5, 1, &[0, 0xA2])), [0x90, 5, 0, 1, 0, 0, 0xA2]);
    assert_eq!(of(&|out| unsuback(out, V3_1_1, 1, &[0x11])), [0xB0, 2, 0, 1]);
    assert_eq!(of(&|out| unsuback(out, V5, 1, &[0x11])), [0xB0, 4, 0, 1, 0, 0x11]);
    assert_eq!(of(&pingresp), [0xD0, 0]);
    assert_eq!(of(&|out| disconnect(out, Reason::TakenOver)), [0xE0, 2, 0x8E, 0]);
    let because = of(&|out| disconnect_because(out, Reason::Malformed, "why"));
    assert_eq!(because, joined(&[&[0xE0, 8, 0x81, 6, 0x1F], &field(b"why")]));
    for words in [0, 1, 121, 122, 123, 200, 20_000] {
        let why = "x".repeat(words);
        assert_eq!(of(&|out| disconnect_because(out, Reason::Malformed, &why)).len(), disconnect_because_bytes(&why));
    }
    for version in [V3_1_1, V5] {
        for payload in [0, 90, 200, 600] {
            let bytes = of(&|out| command(out, version, "lamp", &vec![b'x'; payload]));
            assert_eq!(bytes.len(), command_bytes(version, "lamp", payload));
        }
    }
    let bytes = of(&|out| command(out, V5, "a", b"{}"));
    assert_eq!(bytes, joined(&[&[0x30, 23], &field(b"truetwin/a/command")[..], &[0], b"{}"]));
}
