"""The known interoperability scenarios of MQTT 5, written from the specification (sections in the tests): what the door offers
works, what it does not offer is said in the CONNACK and refused with its code."""

import pytest
from home import until
from interop import properties
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.reasoncodes import ReasonCode
from paho.mqtt.subscribeoptions import SubscribeOptions

V = 5
QOS_2_NOT_SUPPORTED, NOT_AUTHORIZED, FILTER_INVALID = 0x9B, 0x87, 0x8F


def test_basic(peers):
    """Connecting, subscribing, messages of QoS 0 and 1 (4.3); QoS 2 is not offered: maximum QoS 1, 0x9B."""
    one = peers(V)
    assert (one.code, one.session_present, one.told["MaximumQoS"]) == (0, False, 1)
    assert one.subscribe("t/a") == [1], "less than was asked for is granted (3.8.4)"
    assert one.publish("t/a", "zero", qos=0) == 0
    assert one.publish("t/a", "one", qos=1) == 0
    assert [(m.qos, m.retain, m.topic) for m in one.hears("zero", "one")] == [(0, False, "t/a"), (1, False, "t/a")]
    one.client.publish("t/a", "two", qos=2)
    assert one.ended() == QOS_2_NOT_SUPPORTED


def test_retained_message(peers):
    """3.3.1.3: with its properties and the flag; an empty one clears it."""
    one = peers(V)
    assert one.told.get("RetainAvailable", 1) == 1
    one.publish("t/a", "kept", retain=True, UserProperty=[("a", "b"), ("a", "c")])
    two = peers(V)
    two.subscribe("t/#")
    message = two.hears("kept")[0]
    assert (message.retain, message.properties.UserProperty) == (True, [("a", "b"), ("a", "c")])
    one.publish("t/a", "", retain=True)
    two.hears("")
    three = peers(V)
    three.subscribe("t/#")
    one.publish("t/b", "live")
    three.hears("live")


def test_will_message(peers):
    """3.1.2.5: told at an end without a goodbye and after DISCONNECT 0x04, not after DISCONNECT 0; with its properties."""
    watcher = peers(V)
    watcher.subscribe("t/will")
    said = {"ContentType": "text/plain", "UserProperty": [("why", "because")]}
    will = lambda text: ("t/will", text, 1, False, properties_of_will(**said))  # noqa: E731
    peers(V, will=will("never")).client.disconnect()
    peers(V, will=will("gone")).breaks()
    message = watcher.hears("gone")[0]
    assert (message.properties.ContentType, message.properties.UserProperty) == ("text/plain", [("why", "because")])
    peers(V, will=will("on request")).client.disconnect(reasoncode=reason(0x04))
    watcher.hears("on request")
    assert peers(V, will=("t/will", "two", 2, False)).code == QOS_2_NOT_SUPPORTED
    assert peers(V, will=("truetwin/lamp/status", "forged", 1, False)).code == NOT_AUTHORIZED


def test_zero_length_clientid(peers):
    """3.1.3.1: allowed, with a clean start and without one; an id is assigned."""
    for clean in (True, False):
        assert peers(V, client_id="", clean=clean).told["AssignedClientIdentifier"]


def test_offline_message_queueing(peers):
    """3.1.2.11.2: the CONNACK says session expiry 0: nothing is queued for who is away."""
    one, two = peers(V, client_id="one", clean=False, SessionExpiryInterval=1000), peers(V)
    assert one.told["SessionExpiryInterval"] == 0
    one.subscribe("t/a")
    one.client.disconnect()
    one.ended()
    two.publish("t/a", "while it was away")
    back = peers(V, client_id="one", clean=False, SessionExpiryInterval=1000)
    assert not back.session_present
    back.subscribe("t/a")
    two.publish("t/a", "now")
    back.hears("now")


def test_overlapping_subscriptions(peers):
    """3.3.4: a message comes once for all filters that match, with the highest QoS of them."""
    one = peers(V)
    assert one.subscribe(("t/+", 0), ("t/#", 1)) == [0, 1]
    one.publish("t/a", "once")
    one.publish("t/a/b", "deeper")
    assert [m.qos for m in one.hears("once", "deeper")] == [1, 1]


def test_keepalive(peers):
    """3.1.2.10: silent for 1.5 times its keep-alive, a client is ended with 0x8D and its will is told."""
    watcher = peers(V, keepalive=1)
    watcher.subscribe("t/will")
    silent = peers(V, keepalive=1, will=("t/will", "it fell silent", 1, False))
    silent.client.loop_stop()
    watcher.hears("it fell silent")
    silent.client.loop_start()
    assert silent.ended() == 0x8D
    assert not watcher.gone


def test_redelivery_on_reconnect(peers):
    """4.4: nothing is sent again to a later connection, because its session was another one."""
    one, two = peers(V, client_id="one", clean=False, manual=True, SessionExpiryInterval=1000), peers(V)
    one.subscribe("t/a")
    two.publish("t/a", "never acknowledged")
    one.hears("never acknowledged")
    one.breaks()
    back = peers(V, client_id="one", clean=False)
    assert not back.session_present
    back.subscribe("t/a")
    two.publish("t/a", "next")
    back.hears("next")


def test_subscribe_failure(peers):
    """3.9.3: each filter has its own answer and says why."""
    one = peers(V, user="reader", rights=["--read", "t/#"])
    wanted = ["t/a", "u/a", "#", "truetwin/#", "t/+/b"]
    assert one.subscribe(*wanted) == [1, NOT_AUTHORIZED, NOT_AUTHORIZED, NOT_AUTHORIZED, 1]


def test_dollar_topics(peers):
    """4.7.2: no wildcard at the beginning matches them, and no client may use them."""
    one = peers(V)
    assert one.subscribe("#", "+/x", "$SYS/#", "$x/y") == [1, 1, NOT_AUTHORIZED, NOT_AUTHORIZED]
    assert one.publish("$x/x", "not heard") == NOT_AUTHORIZED
    one.publish("t/a", "heard")
    one.hears("heard")


def test_unsubscribe(peers):
    """3.11.3: each filter has its own answer; nothing more comes of one that was ended."""
    one = peers(V)
    one.subscribe("t/a", "t/b")
    assert one.unsubscribe("t/a", "t/never") == [0x00, 0x11]
    one.publish("t/a", "a")
    one.publish("t/b", "b")
    one.hears("b")


def test_session_expiry(peers):
    """3.1.2.11.2, 3.2.2.3.2: whatever is asked for, a session ends with its connection, and the CONNACK says so."""
    for asked in (0, 5, 0xFFFFFFFF):
        one = peers(V, client_id="one", clean=False, SessionExpiryInterval=asked)
        assert not one.session_present
        assert one.told.get("SessionExpiryInterval", asked) == 0
        one.client.disconnect()
        one.ended()


def test_shared_subscriptions(peers):
    """4.8.2: not offered, as the CONNACK says; refused with 0x9E."""
    one = peers(V)
    assert one.told["SharedSubscriptionAvailable"] == 0
    assert one.subscribe("$share/group/t/a", "t/b") == [0x9E, 1]


def test_user_properties(peers):
    """3.3.2.3.7: all of them, in their order, also of one name."""
    one = peers(V)
    one.subscribe("t/a")
    said = [("room", "书房"), ("a", "1"), ("a", "2"), ("", "")]
    one.publish("t/a", "x", UserProperty=said)
    assert one.hears("x")[0].properties.UserProperty == said


def test_payload_format(peers):
    """3.3.2.3.2, 3.3.2.3.9: passed on; text that is none is refused with 0x99."""
    one = peers(V)
    one.subscribe("t/a")
    one.publish("t/a", "书房", PayloadFormatIndicator=1, ContentType="text/plain")
    told = one.hears("书房")[0].properties
    assert (told.PayloadFormatIndicator, told.ContentType) == (1, "text/plain")
    assert one.publish("t/a", b"\xff\xfe", PayloadFormatIndicator=1) == 0x99


def test_publication_expiry(peers):
    """3.3.2.3.3: what has expired is not told any more, the rest with the time that is left."""
    one = peers(V)
    one.publish("t/brief", "brief", retain=True, MessageExpiryInterval=1)
    one.publish("t/long", "long", retain=True, MessageExpiryInterval=1000)
    for _ in range(100):
        late = peers(V)
        late.subscribe("t/brief", "t/long", qos=1)
        late.publish("t/end", "")
        late.subscribe("t/end")
        late.publish("t/end", "end")
        told = {m.topic: m for m in heard_until(late, b"end")}
        left = told["t/long"].properties.MessageExpiryInterval
        assert 0 < left <= 1000
        if "t/brief" not in told:
            return
        late.stop()
    pytest.fail("what expires after a second is still told")


def test_subscribe_options(peers):
    """3.8.3.1: no local, retain as published, retain handling."""
    one = peers(V)
    one.publish("t/kept", "kept", retain=True)
    assert one.subscribe(("t/+", SubscribeOptions(qos=1, noLocal=True))) == [1]
    assert one.hears("kept")[0].retain
    one.publish("t/a", "its own")
    two = peers(V, user="two")
    assert two.subscribe(("t/+", SubscribeOptions(qos=1, retainAsPublished=True, retainHandling=2))) == [1]
    two.publish("t/a", "of another", retain=True)
    assert not one.hears("of another")[0].retain
    assert two.hears("of another")[0].retain, "as published; and nothing was told at the subscription"
    three = peers(V)
    once = ("t/kept", SubscribeOptions(qos=1, retainHandling=1))
    three.subscribe(once)
    three.hears("kept")
    three.subscribe(once)
    one.publish("t/kept", "again")
    three.hears("again")


def test_subscribe_identifiers(peers):
    """3.8.2.1.2: not offered, as the CONNACK says; refused with 0xA1."""
    one = peers(V)
    assert one.told["SubscriptionIdentifierAvailable"] == 0
    assert one.subscribe("t/a", properties=properties("SUBSCRIBE", SubscriptionIdentifier=7)) == [0xA1]


def test_assigned_clientid(peers):
    """3.2.2.3.7: told to who has none, each another one; not told to who has one."""
    one, two, three = peers(V), peers(V), peers(V, client_id="mine")
    assert one.told["AssignedClientIdentifier"] != two.told["AssignedClientIdentifier"]
    assert "AssignedClientIdentifier" not in three.told


def test_request_response(peers):
    """4.10: response topic and correlation data go with the request; response information is not offered, which is allowed."""
    asks, answers = peers(V, RequestResponseInformation=1), peers(V)
    assert "ResponseInformation" not in asks.told
    answers.subscribe("t/questions")
    asks.subscribe("t/answers/1")
    asks.publish("t/questions", "what time is it?", ResponseTopic="t/answers/1", CorrelationData=b"\x00\xff")
    told = answers.hears("what time is it?")[0].properties
    answers.publish(told.ResponseTopic, "late", CorrelationData=told.CorrelationData)
    assert asks.hears("late")[0].properties.CorrelationData == b"\x00\xff"


def test_client_topic_alias(peers):
    """3.3.2.3.4: as many as the CONNACK says, one may be given another topic; one beyond that ends the connection with 0x94."""
    one = peers(V)
    one.subscribe("t/#")
    many = one.told["TopicAliasMaximum"]
    assert many > 0
    one.publish("t/a", "1", TopicAlias=many)
    one.publish("", "2", TopicAlias=many)
    one.publish("t/b", "3", TopicAlias=many)
    one.publish("", "4", TopicAlias=many)
    assert [m.topic for m in one.hears("1", "2", "3", "4")] == ["t/a", "t/a", "t/b", "t/b"]
    again = peers(V)
    assert again.publish("", "x", TopicAlias=1) == 0x82, "an alias is of its connection"
    assert one.publish("t/a", "x", TopicAlias=many + 1) == 0x94


def test_server_topic_alias(peers):
    """3.1.2.11.5: a server may use none; each message comes with its topic."""
    one = peers(V, TopicAliasMaximum=10)
    one.subscribe("t/#")
    for at in range(3):
        one.publish("t/a", str(at))
    for message in one.hears("0", "1", "2"):
        assert message.topic == "t/a" and not hasattr(message.properties, "TopicAlias")


def test_maximum_packet_size(peers):
    """3.1.2.11.4, 3.2.2.3.6: a client is sent nothing larger than it takes; what is larger than the door takes ends it, 0x95."""
    small, large = peers(V, MaximumPacketSize=200), peers(V)
    small.subscribe("t/#")
    large.publish("t/a", "x" * 200)
    large.publish("t/a", "fits")
    small.hears("fits")
    limit = large.told["MaximumPacketSize"]
    assert limit >= 4096
    large.client.publish("t/a", "x" * limit, qos=1)
    assert large.ended() == 0x95


def test_server_keep_alive(peers):
    """3.2.2.3.14: who asks for more than is granted, or for none, is told what counts."""
    assert "ServerKeepAlive" not in peers(V, keepalive=60).told
    for asked in (0, 40_000):
        assert 0 < peers(V, keepalive=asked).told["ServerKeepAlive"] < 40_000


def test_flow_control1(peers):
    """3.3.4, 4.9: no more unacknowledged messages than the client's receive maximum; the rest comes behind its acknowledgements."""
    slow, fast = peers(V, manual=True, ReceiveMaximum=2), peers(V)
    slow.subscribe("t/a")
    for at in range(5):
        fast.publish("t/a", str(at))
    slow.hears("0", "1")
    slow.subscribe("t/b")  # its answer is behind all that could be sent
    assert not slow.heard
    for first in (1, 2, 3):
        slow.client.ack(first, 1)
        slow.hears(str(first + 1))


def test_flow_control2(peers):
    """3.2.2.3.3: the door's receive maximum is told; a client with more to say is acknowledged for all of it."""
    one = peers(V)
    assert one.told["ReceiveMaximum"] >= 1
    mids = [one.client.publish("t/a", str(at), qos=1).mid for at in range(3 * one.told["ReceiveMaximum"])]
    until("all are acknowledged", lambda: all(mid in one.acks for mid in mids))
    assert {one.acks[mid].value for mid in mids} <= {0x00, 0x10}


def test_will_delay(peers):
    """3.1.3.2.2: a will waits for the delay or the end of the session, whichever is first: here that of the connection."""
    watcher = peers(V)
    watcher.subscribe("t/will")
    delayed = properties_of_will(WillDelayInterval=100_000)
    one = peers(V, will=("t/will", "at once", 1, False, delayed), SessionExpiryInterval=100_000)
    assert one.told["SessionExpiryInterval"] == 0, "so the client knows"
    one.breaks()
    watcher.hears("at once")


def properties_of_will(**values):
    return properties("WILLMESSAGE", **values)


def reason(value):

    return ReasonCode(PacketTypes.DISCONNECT, identifier=value)


def heard_until(peer, payload):
    until("the last one", lambda: any(m.payload == payload for m in peer.heard))
    return list(peer.heard)
