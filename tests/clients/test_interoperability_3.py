"""The known interoperability scenarios of MQTT 3.1.1, written from the specification (sections in the tests): what the door offers
works, what it does not offer is refused as MQTT 3.1.1 can say it, which mostly is a closed connection."""

import pytest
from home import PATIENCE_S
from interop import connack_of, mosquitto

V = 3


def test_basic(peers):
    """Connecting, subscribing, messages of QoS 0 and 1 (4.3.1, 4.3.2); QoS 2 (4.3.3) is not offered: granted as 1, closed."""
    one = peers(V)
    assert (one.code, one.session_present) == (0, False)
    assert one.subscribe("t/a") == [1], "less than was asked for is granted (3.8.4)"
    assert one.publish("t/a", "zero", qos=0) == 0
    assert one.publish("t/a", "one", qos=1) == 0
    assert [(m.qos, m.retain, m.topic) for m in one.hears("zero", "one")] == [(0, False, "t/a"), (1, False, "t/a")]
    one.client.disconnect()
    assert one.ended() == 0
    two = peers(V)
    two.client.publish("t/a", "two", qos=2)
    assert two.ended() != 0, "3.1.1 has no code for it, so it is closed"


def test_retained_messages(peers):
    """3.3.1.3: the last one of each topic, with the flag; an empty one clears; what is told live has no flag."""
    one = peers(V)
    for qos in (0, 1):
        one.publish(f"t/{qos}", "old", qos=qos, retain=True)
        one.publish(f"t/{qos}", f"kept {qos}", qos=qos, retain=True)
    two = peers(V)
    two.subscribe("t/+")
    assert sorted((m.qos, m.retain) for m in two.hears("kept 0", "kept 1", anyhow=True)) == [(0, True), (1, True)]
    one.publish("t/0", "", retain=True)
    assert not two.hears("")[0].retain
    one.publish("t/1", "live", retain=True)
    assert not two.hears("live")[0].retain
    two.subscribe("t/+")
    assert two.hears("live")[0].retain, "told again to who subscribes again (3.8.4), and the cleared one is gone"


def test_zero_length_client_id(hub, peers):
    """3.1.3.1: allowed with a clean session, else 0x02."""
    assert peers(V, client_id="").code == 0
    assert connack_of(hub, "", "one", peers.password("one"), flags=0xC2) == 0
    assert connack_of(hub, "", "one", peers.password("one"), flags=0xC0) == 2


def test_offline_message_queueing(peers):
    """3.1.2.4: sessions do not outlive their connection, which session present 0 says; nothing is queued for who is away."""
    one, two = peers(V, client_id="one", clean=False), peers(V)
    one.subscribe("t/a")
    one.client.disconnect()
    one.ended()
    assert two.publish("t/a", "while it was away") == 0
    back = peers(V, client_id="one", clean=False)
    assert (back.code, back.session_present) == (0, False)
    assert two.publish("t/a", "not subscribed any more") == 0
    back.subscribe("t/a")
    assert two.publish("t/a", "now") == 0
    back.hears("now")


def test_overlapping_subscriptions(peers):
    """3.3.5: a message comes once for all filters that match, with the highest QoS of them."""
    one = peers(V)
    assert one.subscribe(("t/+", 0), ("t/#", 1), ("t/a", 0)) == [0, 1, 0]
    one.publish("t/a", "once")
    one.publish("t/a/b", "deeper")
    assert [m.qos for m in one.hears("once", "deeper")] == [1, 1]


def test_keepalive(peers):
    """3.1.2.10: silent for 1.5 times its keep-alive, a client is ended and its will is told; who pings stays."""
    watcher = peers(V, keepalive=1)
    watcher.subscribe("t/will")
    silent = peers(V, keepalive=1, will=("t/will", "it fell silent", 1, False))
    silent.client.loop_stop()
    assert watcher.hears("it fell silent")[0].qos == 1
    assert not watcher.gone, "its pings are counted, whatever is sent to it"


def test_redelivery_on_reconnect(peers):
    """4.4: nothing is sent again to a later connection, because its session was another one (session present 0)."""
    one, two = peers(V, client_id="one", clean=False, manual=True), peers(V)
    one.subscribe("t/a")
    two.publish("t/a", "never acknowledged")
    one.hears("never acknowledged")
    one.breaks()
    back = peers(V, client_id="one", clean=False)
    assert not back.session_present
    back.subscribe("t/a")
    two.publish("t/a", "next")
    back.hears("next")


def test_dollar_topics(peers):
    """4.7.2: no wildcard at the beginning matches them, and no client may use them."""
    one = peers(V)
    assert one.subscribe("#", "+/x", "$SYS/#", "$x/y") == [1, 1, 0x80, 0x80]
    two = peers(V)
    two.client.publish("$x/x", "not heard", qos=1)
    assert two.ended() != 0
    peers(V).publish("t/a", "heard")
    one.hears("heard")


def test_unsubscribe(peers):
    """3.10.4: nothing more comes of a filter that was ended, and all of the others."""
    one = peers(V)
    assert one.subscribe("t/a", "t/b", "t/c") == [1, 1, 1]
    one.unsubscribe("t/a", "t/never")
    for topic in ("a", "b", "c"):
        one.publish(f"t/{topic}", topic)
    one.hears("b", "c")


def test_subscribe_failure(peers):
    """3.9.3: each filter has its own answer: 0x80 for what the account may not read, or what is no filter."""
    one = peers(V, user="reader", rights=["--read", "t/#"])
    assert one.subscribe("t/a", "u/a", "#", "truetwin/#", "t/+/b", "$share/g/t/a") == [1, 0x80, 0x80, 0x80, 1, 0x80]


def test_will_message(peers):
    """3.1.2.5: told at an end without a goodbye, with its QoS and, if so wished, kept; not told after one."""
    watcher = peers(V)
    watcher.subscribe("t/will")
    peers(V, will=("t/will", "never", 1, False)).client.disconnect()
    peers(V, will=("t/will", "gone", 1, True)).breaks()
    assert (watcher.hears("gone")[0].qos, watcher.heard) == (1, [])
    late = peers(V)
    late.subscribe("t/will")
    assert late.hears("gone")[0].retain


@pytest.mark.parametrize("version", ["311", "5"])
def test_mosquitto_clients(hub, peers, version):
    """The same door, spoken to by Mosquitto's shell clients in both versions."""
    watcher = peers(V)
    watcher.subscribe("t/#")
    run = lambda program, *more: mosquitto(hub, program, "one", peers.password("one"), "-V", version, *more)  # noqa: E731
    assert run("mosquitto_pub", "-t", "t/a", "-m", "zero", "-q", "0") == (0, "")
    assert run("mosquitto_pub", "-t", "t/a", "-m", "kept", "-q", "1", "-r") == (0, "")
    watcher.hears("zero", "kept")
    subscribing = ["-t", "t/+", "-v", "-C", "1", "-W", str(PATIENCE_S)]
    assert run("mosquitto_sub", *subscribing, "-q", "2") == (0, "t/a kept\n")
    assert run("mosquitto_sub", *subscribing, "-q", "1", "-c", "-i", "stays") == (0, "t/a kept\n")
    code, said = run("mosquitto_pub", "-t", "t/a", "-m", "two", "-q", "2")
    assert code != 0 or said, "QoS 2 is not offered"
    code, said = run("mosquitto_pub", "-t", "truetwin/lamp/command", "-m", "x", "-q", "1")
    assert code != 0 or said, "the devices' tree is nobody's"
    watcher.publish("t/a", "last")
    watcher.hears("last")
