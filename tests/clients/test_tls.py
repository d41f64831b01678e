"""TLS by clients that nobody here wrote: Mosquitto's shell commands (OpenSSL) and paho (Python's ssl), with the authority that
`truetwin tls make` makes."""

import json
import ssl
import subprocess

import paho.mqtt.client as mqtt
import pytest
from home import BINARY, PATIENCE_S, Hub, RawDevice, until

VERSIONS = pytest.mark.parametrize("version", [3, 5])


def make(data, *names):
    """`truetwin tls make`; the authority's file."""
    done = subprocess.run(
        [BINARY, "tls", "make", *names, "--data", data], capture_output=True, text=True, timeout=PATIENCE_S
    )
    assert done.returncode == 0, done.stderr
    return data / "ca.pem"


@pytest.fixture
def tls_only(tmp_path, keep):
    """A hub that wants TLS, and the authority to trust."""
    data = tmp_path / "data"
    authority = make(data, "localhost", "127.0.0.1")
    return keep(Hub(tmp_path, config='[mqtt]\ntls = "only"\n')), authority


def mosquitto_rr(hub, name, password, version, *more):
    """A hello as a shell command, and the answer to it: exit code and all that was printed."""
    hello = json.dumps(RawDevice.HELLO | {"event": "hello", "boot": "b1", "seq": 1, "up_ms": 5})
    argv = ["mosquitto_rr", "-h", "127.0.0.1", "-p", hub.mqtt_port, "-V", {3: "311", 5: "5"}[version]]
    argv += ["-i", name, "-u", name, "-P", password, "-q", 1, "-W", 10, "-m", hello]
    argv += ["-t", f"truetwin/{name}/event", "-e", f"truetwin/{name}/command", *more]
    done = subprocess.run([str(a) for a in argv], capture_output=True, text=True, timeout=PATIENCE_S)
    return done.returncode, done.stdout + done.stderr


@VERSIONS
@pytest.mark.parametrize("tls", ["tlsv1.2", "tlsv1.3"])
def test_mosquittos_commands_are_served_over_tls(tls_only, version, tls):
    hub, authority = tls_only
    password, _ = hub.add("lamp")
    code, printed = mosquitto_rr(hub, "lamp", password, version, "--cafile", authority, "--tls-version", tls)
    assert code == 0, printed
    assert json.loads(printed)["command"] == "welcome"
    assert hub.total("truetwin_door_tls_accepted_total") == 1


@VERSIONS
def test_without_tls_or_with_another_authority_nobody_comes_in(tls_only, tmp_path, version):
    hub, _ = tls_only
    password, _ = hub.add("lamp")
    code, printed = mosquitto_rr(hub, "lamp", password, version)
    assert code != 0, printed
    other = make(tmp_path / "other", "localhost", "127.0.0.1")
    code, printed = mosquitto_rr(hub, "lamp", password, version, "--cafile", other)
    assert code != 0, printed
    assert hub.total("truetwin_door_refused_plain_total") == 1
    until("the failed handshake is counted", lambda: hub.total("truetwin_door_tls_failed_total") == 1)
    assert hub.total("truetwin_door_connections_accepted_total") == 0


@VERSIONS
def test_paho_stays_connected_while_the_certificate_is_replaced(tls_only, version):
    hub, authority = tls_only
    password, _ = hub.add("lamp")
    codes = []

    def connected():
        client = mqtt.Client(
            mqtt.CallbackAPIVersion.VERSION2,
            client_id="lamp",
            protocol=mqtt.MQTTv5 if version == 5 else mqtt.MQTTv311,
        )
        client.username_pw_set("lamp", password)
        client.tls_set(ca_certs=str(authority), cert_reqs=ssl.CERT_REQUIRED)
        client.on_connect = lambda _c, _u, _f, code, _p: codes.append(code)
        return client

    first = connected()
    first.connect("127.0.0.1", hub.mqtt_port)
    first.loop_start()
    until("it is in", lambda: codes)
    make(hub.data, "localhost")
    elsewhere = connected()
    with pytest.raises(ssl.SSLCertVerificationError):
        elsewhere.connect("127.0.0.1", hub.mqtt_port)
    elsewhere.connect("localhost", hub.mqtt_port)
    elsewhere.loop_start()
    until("the second is in, in the place of the first", lambda: len(codes) == 2)
    assert not any(code.is_failure for code in codes)
    assert hub.total("truetwin_door_tls_reloads_total") == 1
    first.loop_stop()
    elsewhere.loop_stop()
