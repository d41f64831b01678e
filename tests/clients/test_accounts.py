"""Service accounts with MQTT clients that nobody here wrote: paho in both versions, and Mosquitto's shell commands. Wildcards,
rights, and retained messages over a restart of the hub, also one that was killed."""

import json
import subprocess

import paho.mqtt.client as mqtt
import pytest
from home import BINARY, PATIENCE_S, Hub, free_port, until
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

VERSIONS = pytest.mark.parametrize("version", [3, 5])


def account(hub, name, *rights, stdin=None, what="add"):
    """`truetwin account add NAME …`; what it printed as JSON."""
    done = subprocess.run(
        [BINARY, "account", what, name, *rights, "--json", "--data", hub.data],
        input=stdin,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    assert done.returncode == 0, f"account {what} {name}: {done.stderr}"
    return json.loads(done.stdout)


class Person:
    """A paho client of an account; what it hears and how it ends."""

    def __init__(self, hub, user, password, version=5, client_id="", will=None):
        self.heard, self.codes, self.granted, self.acks, self.gone = [], [], [], {}, []
        self.client = c = mqtt.Client(
            mqtt.CallbackAPIVersion.VERSION2,
            client_id=client_id,
            reconnect_on_failure=False,
            protocol=mqtt.MQTTv5 if version == 5 else mqtt.MQTTv311,
        )
        c.username_pw_set(user, password)
        if will:
            c.will_set(*will)
        c.on_connect = lambda _c, _u, _f, code, _p: self.codes.append(code)
        c.on_message = lambda _c, _u, message: self.heard.append(message)
        c.on_publish = lambda _c, _u, mid, code, _p: self.acks.update({mid: code})
        c.on_subscribe = lambda _c, _u, _mid, codes, _p: self.granted.append([code.value for code in codes])
        c.on_disconnect = lambda _c, _u, _f, code, _p: self.gone.append(code)
        c.connect("127.0.0.1", hub.mqtt_port)
        c.loop_start()
        until("the broker's answer to CONNECT", lambda: self.codes)

    def subscribe(self, *filters, qos=1):
        before = len(self.granted)
        self.client.subscribe([(each, qos) for each in filters])
        return until("SUBACK", lambda: self.granted[before:])[0]

    def publish(self, topic, payload, qos=1, retain=False, **more):
        """The reason code of the acknowledgement, or of the end."""
        mid = self.client.publish(topic, payload, qos, retain, **more).mid
        return until("PUBACK or the end", lambda: self.acks.get(mid) or (self.gone and self.gone[0]))

    def hears(self, topic, payload):
        """The first message on a topic with that payload."""
        return until(
            f"{payload!r} on {topic}",
            lambda: next((m for m in self.heard if (m.topic, m.payload) == (topic, payload.encode())), None),
            otherwise=lambda: str([(m.topic, m.payload) for m in self.heard]),
        )

    def stop(self):
        self.client.disconnect()
        self.client.loop_stop()


def shell(program, hub, user, password, *arguments):
    """Mosquitto's shell client: exit code, output."""
    argv = [program, "-p", str(hub.mqtt_port), "-u", user, "-P", password, *arguments]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=PATIENCE_S)
    return done.returncode, done.stdout + done.stderr


@VERSIONS
def test_home_assistant_and_zigbee2mqtt_as_they_speak(hub, keep, version):
    """Discovery, states, commands, availability by a retained will: over accounts with the rights of the README."""
    z2m_trees = ["zigbee2mqtt/#", "homeassistant/#"]
    z2m_password = account(hub, "z2m", "--read", *z2m_trees, "--write", *z2m_trees)["password"]
    ha_trees = ["--read", "zigbee2mqtt/#", "homeassistant/#", "--write", "zigbee2mqtt/+/set", "homeassistant/status"]
    ha_password = account(hub, "ha", *ha_trees)["password"]
    will = ("zigbee2mqtt/bridge/state", "offline", 1, True)
    z2m = keep(Person(hub, "z2m", z2m_password, version, "mqttjs_1", will))
    assert z2m.subscribe("zigbee2mqtt/#", "homeassistant/status") == [1, 1]
    assert z2m.publish("zigbee2mqtt/bridge/state", "online", retain=True) == 0
    large = json.dumps({"devices": ["x" * 1_000] * 300})
    assert z2m.publish("zigbee2mqtt/bridge/devices", large, retain=True) == 0
    assert z2m.publish("homeassistant/light/0x1/config", '{"name": "lamp"}', retain=True) == 0
    ha = keep(Person(hub, "ha", ha_password, version, "ha"))
    assert ha.subscribe("homeassistant/#", "zigbee2mqtt/#", qos=0) == [0, 0]
    assert ha.hears("homeassistant/light/0x1/config", '{"name": "lamp"}').retain
    assert ha.hears("zigbee2mqtt/bridge/devices", large).retain
    assert ha.publish("zigbee2mqtt/lamp/set", "ON") == 0
    z2m.hears("zigbee2mqtt/lamp/set", "ON")
    assert z2m.publish("zigbee2mqtt/lamp", "is on", qos=0) == 0
    assert not ha.hears("zigbee2mqtt/lamp", "is on").retain
    z2m.client.socket().close()  # it dies
    assert not ha.hears("zigbee2mqtt/bridge/state", "offline").retain
    later = keep(Person(hub, "ha", ha_password, version, "later"))
    later.subscribe("zigbee2mqtt/bridge/state")
    assert later.hears("zigbee2mqtt/bridge/state", "offline").retain


@VERSIONS
def test_what_an_account_may_not_is_refused_and_nobody_hears_it(hub, keep, raw, version):
    password = account(hub, "ha", "--read", "home/#", "truetwin/+/event", "--write", "home/#")["password"]
    lamp = raw("lamp")
    assert lamp.subscribe() == 0
    refused = 0x87 if version == 5 else 0x80
    ha = keep(Person(hub, "ha", password, version, "ha"))
    wanted = ["home/#", "#", "truetwin/+/event", "truetwin/lamp/command", "$SYS/#"]
    assert ha.subscribe(*wanted) == [1, refused, 1, refused, refused]
    if version == 5:
        assert ha.subscribe("$share/g/home/#") == [0x9E]
        assert ha.publish("truetwin/lamp/command", "{}", retain=True) == 0x87
        assert ha.publish("elsewhere", "x") == 0x87
        assert ha.publish("home/x", "x") == 0, "it is still there"
    else:
        assert ha.publish("truetwin/lamp/command", "{}") != 0, "3.1.1 has no code, so it is closed"
    lamp.hello()
    assert all(c["command"] != "set" for c in lamp.commands)
    if version == 5:
        until("the device's event is seen", lambda: [m for m in ha.heard if m.topic == "truetwin/lamp/event"])


def test_what_is_retained_outlives_a_killed_hub_and_its_orderly_stop(tmp_path, keep):
    port = free_port()
    hub = keep(Hub(tmp_path, mqtt=f"127.0.0.1:{port}"))
    password = account(hub, "ha", "--read", "home/#", "--write", "home/#", "--ask", stdin="correct horse\n")
    assert "password" not in password, "one that was given is not said back"
    secret = "correct horse"
    ha = keep(Person(hub, "ha", secret))
    assert ha.publish("home/acknowledged", "kept", retain=True) == 0
    assert ha.publish("home/cleared", "x", retain=True) == 0
    assert ha.publish("home/cleared", "", retain=True) == 0
    properties = Properties(PacketTypes.PUBLISH)
    properties.MessageExpiryInterval = 10_000
    properties.UserProperty = [("room", "书房")]
    assert ha.publish("home/with", "properties", retain=True, properties=properties) == 0
    hub.popen.kill()
    hub.popen.wait(PATIENCE_S)
    hub = keep(Hub(tmp_path, mqtt=f"127.0.0.1:{port}"))
    ha = keep(Person(hub, "ha", secret))
    ha.subscribe("home/+")
    assert ha.hears("home/acknowledged", "kept").retain
    carried = ha.hears("home/with", "properties").properties
    assert carried.UserProperty == [("room", "书房")] and 9_900 < carried.MessageExpiryInterval <= 10_000
    assert ha.publish("home/unpromised", "qos 0", qos=0, retain=True) == 0
    ha.hears("home/unpromised", "qos 0")
    assert all(m.topic != "home/cleared" for m in ha.heard)
    assert hub.stop() == 0
    hub = keep(Hub(tmp_path, mqtt=f"127.0.0.1:{port}"))
    ha = keep(Person(hub, "ha", secret))
    ha.subscribe("home/+")
    for topic, payload in [("home/acknowledged", "kept"), ("home/unpromised", "qos 0")]:
        assert ha.hears(topic, payload).retain
    assert hub.total("truetwin_accounts_retained_messages") == 3


def test_rotation_and_removal_cut_who_is_connected(hub, keep):
    old = account(hub, "ha", "--read", "#")["password"]
    ha = keep(Person(hub, "ha", old))
    new = account(hub, "ha", what="rotate")["password"]
    assert until("the end", lambda: ha.gone)[0] == 0x98
    assert keep(Person(hub, "ha", old)).codes[0] == 0x86
    ha = keep(Person(hub, "ha", new))
    assert ha.codes[0] == 0
    done = subprocess.run([BINARY, "account", "remove", "ha", "--data", hub.data], timeout=PATIENCE_S)
    assert done.returncode == 0
    assert until("the end", lambda: ha.gone)[0] == 0x98
    assert keep(Person(hub, "ha", new)).codes[0] == 0x86


def test_mosquittos_commands_are_served(hub):
    password = account(hub, "me", "--read", "home/#", "--write", "home/#")["password"]
    assert shell("mosquitto_pub", hub, "me", password, "-t", "home/a", "-m", "on", "-q", "1", "-r") == (0, "")
    code, out = shell("mosquitto_sub", hub, "me", password, "-t", "home/#", "-v", "-C", "1", "-W", str(PATIENCE_S))
    assert (code, out) == (0, "home/a on\n")
    code, out = shell("mosquitto_sub", hub, "me", password, "-V", "5", "-t", "#", "-C", "1", "-W", "5")
    assert "denied" in out.lower() or "not authorized" in out.lower(), out
    code, out = shell("mosquitto_pub", hub, "me", "wrong", "-t", "home/a", "-m", "x", "-V", "5")
    assert code != 0 and "not authorised" in out.lower().replace("ized", "ised") or "bad user" in out.lower(), out
