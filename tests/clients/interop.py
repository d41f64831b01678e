"""Clients for the interoperability scenarios: paho as a service account, everything that it is told kept, and Mosquitto's shell
clients. Which scenario is which test is listed in src/broker/interoperability.md."""

import json
import socket
import subprocess

import paho.mqtt.client as mqtt
from home import BINARY, PATIENCE_S, until
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

# What every account of a scenario may do: read everything, write one tree. The devices' tree is nobody's to write.
RIGHTS = ["--read", "#", "--write", "t/#"]


def properties(packet, **values):
    """Properties of a packet: properties("PUBLISH", TopicAlias=1)."""
    made = Properties(getattr(PacketTypes, packet))
    for name, value in values.items():
        setattr(made, name, value)
    return made


class Peer:
    """One paho client. `asks` become properties of its CONNECT; `manual` leaves acknowledging to the test."""

    def __init__(
        self, hub, user, password, version, client_id="", keepalive=60, clean=True, will=None, manual=False, **asks
    ):
        self.heard, self.connack, self.granted, self.dropped, self.acks, self.gone = [], [], {}, {}, {}, []
        five = version == 5
        self.client = c = mqtt.Client(
            mqtt.CallbackAPIVersion.VERSION2,
            client_id=client_id,
            reconnect_on_failure=False,
            manual_ack=manual,
            protocol=mqtt.MQTTv5 if five else mqtt.MQTTv311,
            **({} if five else {"clean_session": clean}),
        )
        c.username_pw_set(user, password)
        if will:
            c.will_set(*will[:4], **({"properties": will[4]} if len(will) > 4 else {}))
        c.on_connect = lambda _c, _u, flags, code, more: self.connack.append((code, flags, more))
        c.on_message = lambda _c, _u, message: self.heard.append(message)
        c.on_publish = lambda _c, _u, mid, code, _p: self.acks.update({mid: code})
        c.on_subscribe = lambda _c, _u, mid, codes, _p: self.granted.update({mid: [code.value for code in codes]})
        c.on_unsubscribe = lambda _c, _u, mid, codes, _p: self.dropped.update({mid: [code.value for code in codes]})
        c.on_disconnect = lambda _c, _u, _f, code, _p: self.gone.append(code)
        more = {"clean_start": clean, "properties": properties("CONNECT", **asks)} if five else {}
        c.connect("127.0.0.1", hub.mqtt_port, keepalive, **more)
        c.loop_start()
        until("the answer to CONNECT", lambda: self.connack or self.gone)

    @property
    def code(self):
        """The code of the CONNACK."""
        return self.connack[0][0].value

    @property
    def told(self):
        """The properties of the CONNACK, by name."""
        return self.connack[0][2].json()

    @property
    def session_present(self):
        return self.connack[0][1].session_present

    def subscribe(self, *filters, qos=2, **more):
        """Subscribes to filters, or to (filter, options); the codes of the SUBACK."""
        wanted = [each if isinstance(each, tuple) else (each, qos) for each in filters]
        _, mid = self.client.subscribe(wanted, **more)
        return until("SUBACK", lambda: self.granted.get(mid), otherwise=lambda: str(self.gone))

    def unsubscribe(self, *filters):
        _, mid = self.client.unsubscribe(list(filters))
        until("UNSUBACK", lambda: mid in self.dropped)
        return self.dropped[mid]

    def publish(self, topic, payload=b"", qos=1, retain=False, **more):
        """Publishes; the code of the acknowledgement, or of the end of the connection."""
        asked = properties("PUBLISH", **more) if more else None
        mid = self.client.publish(topic, payload, qos, retain, asked).mid
        return until(
            "an acknowledgement, or the end", lambda: self.acks.get(mid) or self.gone[:1] and self.gone[0]
        ).value

    def hears(self, *payloads, anyhow=False):
        """What it has heard until the last of these payloads, which are all of it and in this order."""
        wanted = [payload.encode() for payload in payloads]
        seen = lambda: [message.payload for message in self.heard]  # noqa: E731
        until(f"{payloads[-1]!r} is heard", lambda: wanted[-1] in seen(), otherwise=lambda: f"{seen()} {self.gone}")
        heard, self.heard = self.heard, []
        told = [message.payload for message in heard]
        assert (sorted(told) == sorted(wanted)) if anyhow else (told == wanted), told
        return heard

    def ended(self):
        """The code of its end."""
        return until("the end of the connection", lambda: self.gone)[0].value

    def breaks(self):
        """Its socket ends without a goodbye."""
        self.client.loop_stop()
        self.client.socket().close()

    def stop(self):
        self.client.disconnect()
        self.client.loop_stop()


def account(hub, user, rights):
    """Makes an account; its password."""
    argv = [BINARY, "account", "add", user, *rights, "--json", "--data", hub.data]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=PATIENCE_S)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["password"]


def mosquitto(hub, program, user, password, *arguments):
    """One of Mosquitto's shell clients, run to its end: exit code and all that it printed."""
    argv = [program, "-p", str(hub.mqtt_port), "-u", user, "-P", password, *arguments]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=PATIENCE_S)
    return done.returncode, done.stdout + done.stderr


def connack_of(hub, *fields, flags):
    """What a CONNECT of 3.1.1 with these fields is answered, for what paho itself does not send: its return code."""
    body = b"\0\4MQTT\4" + bytes([flags]) + b"\0\x3c"
    for field in fields:
        body += len(field).to_bytes(2, "big") + field.encode()
    with socket.create_connection(("127.0.0.1", hub.mqtt_port), PATIENCE_S) as s:
        s.sendall(bytes([0x10, len(body)]) + body)
        answer = s.recv(4)
    assert answer[:1] == b"\x20", answer
    return answer[3]
