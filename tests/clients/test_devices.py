"""Devices that use MQTT clients that nobody here wrote: paho in MQTT 3.1.1 and 5 (firmware/python, unchanged), and
Mosquitto's shell commands. At last the bare protocol by hand."""

import json
import subprocess
import sys

import pytest
from home import PATIENCE_S, ROOT, Hub, Process, RawDevice, free_port, until

VERSIONS = pytest.mark.parametrize("version", [3, 5])
SOCKET = ROOT / "firmware" / "python" / "truetwin_socket.py"


def python_socket(hub, keep, name, version):
    _, secret = hub.add(name)
    return keep(
        Process(
            [
                sys.executable,
                SOCKET,
                "--port",
                hub.mqtt_port,
                "--name",
                name,
                "--password-file",
                secret,
                "--mqtt",
                version,
            ],
            hub.folder / f"{name}.log",
        )
    )


@VERSIONS
def test_the_python_socket_converges(hub, keep, version):
    device = python_socket(hub, keep, "lamp", version)
    hub.online("lamp")
    for to in ("on", "off", "on"):
        answer = hub.call("switch_device", device="lamp", to=to)
        assert (answer["success"], answer["outcome"], answer["confirmed_by"]) == (True, "converged", "pin"), (
            f"{answer}\n{device.told()}"
        )
    assert hub.call("get_device_state", device="lamp")["trust"] == "now"
    assert hub.total("truetwin_unreadable_events_total") == 0 and hub.total("truetwin_unknown_words_total") == 0, (
        hub.told()
    )


@VERSIONS
def test_s3_7_a_python_socket_that_lies_is_caught(hub, keep, version):
    _, secret = hub.add("lamp")
    keep(
        Process(
            [
                sys.executable,
                ROOT / "tests" / "clients" / "socket_with_a_lie.py",
                hub.mqtt_port,
                "lamp",
                secret,
                version,
            ],
            hub.folder / "lamp.log",
        )
    )
    hub.online("lamp")
    answer = hub.call("switch_device", device="lamp", to="on")
    assert (answer["success"], answer["outcome"], answer["stage"]) == (False, "contradicted", "waiting_read_back"), (
        answer
    )
    assert "off" in str(answer["device_state"])


@VERSIONS
def test_the_python_socket_comes_back_after_the_hub_was_restarted(tmp_path, keep, version):
    hub = keep(Hub(tmp_path, mqtt=f"127.0.0.1:{free_port()}"))
    hub.add("lamp")
    secret, port = tmp_path / "lamp.secret", hub.mqtt_port
    device = keep(
        Process(
            [sys.executable, SOCKET, "--port", port, "--name", "lamp", "--password-file", secret, "--mqtt", version],
            tmp_path / "lamp.log",
        )
    )
    hub.online("lamp")
    assert hub.call("switch_device", device="lamp", to="on")["success"]
    assert hub.stop() == 0, hub.told()
    again = keep(Hub(tmp_path, mqtt=f"127.0.0.1:{port}"))
    again.online("lamp")
    assert again.call("switch_device", device="lamp", to="off")["success"], device.told()


def mosquitto(tool, hub, name, password, version, *arguments):
    """One run of mosquitto_sub, _pub or _rr as a device: exit code and all that it printed."""
    argv = [
        f"mosquitto_{tool}",
        "-h",
        "127.0.0.1",
        "-p",
        hub.mqtt_port,
        "-V",
        {3: "311", 5: "5"}[version],
        "-i",
        name,
        "-u",
        name,
        "-P",
        password,
        *arguments,
    ]
    done = subprocess.run([str(a) for a in argv], capture_output=True, text=True, timeout=PATIENCE_S)
    return done.returncode, done.stdout + done.stderr


@VERSIONS
def test_a_hello_by_shell_command_is_welcomed(hub, version):
    password, _ = hub.add("lamp")
    hello = json.dumps(RawDevice.HELLO | {"event": "hello", "boot": "b1", "seq": 1, "up_ms": 5})
    code, printed = mosquitto(
        "rr",
        hub,
        "lamp",
        password,
        version,
        "-q",
        1,
        "-W",
        10,
        "-t",
        "truetwin/lamp/event",
        "-e",
        "truetwin/lamp/command",
        "-m",
        hello,
    )
    assert code == 0, printed
    welcome = json.loads(printed)
    assert welcome["command"] == "welcome" and welcome["session"] and welcome["hub"] and welcome["epoch"] >= 1


@VERSIONS
def test_a_typo_in_the_hello_is_answered_with_a_sentence(hub, version):
    password, _ = hub.add("lamp")
    hello = json.dumps(RawDevice.HELLO | {"event": "hello", "boot": "b1", "seq": 1, "up_ms": 5}).replace(
        '"settable": true', '"settable": "yes"'
    )
    code, printed = mosquitto(
        "rr",
        hub,
        "lamp",
        password,
        version,
        "-q",
        1,
        "-W",
        10,
        "-t",
        "truetwin/lamp/event",
        "-e",
        "truetwin/lamp/command",
        "-m",
        hello,
    )
    assert code == 0, printed
    told = json.loads(printed)
    assert told["command"] in {"refused", "error"} and told["path"] == "properties[0].settable", told


@VERSIONS
def test_a_subscription_to_its_own_commands_is_granted(hub, version):
    password, _ = hub.add("lamp")
    _, printed = mosquitto("sub", hub, "lamp", password, version, "-t", "truetwin/lamp/command", "-d", "-W", 1)
    assert "Subscribed (mid: 1): 0" in printed or "Subscribed (mid: 1): 1" in printed, printed


@VERSIONS
def test_a_wrong_password_gets_its_code(hub, version):
    hub.add("lamp")
    code, printed = mosquitto("sub", hub, "lamp", "wrong", version, "-t", "truetwin/lamp/command", "-W", 5)
    assert code != 0 and ("not authorised" in printed.lower() or "bad user name or password" in printed.lower()), (
        printed
    )
    assert hub.total("truetwin_door_logins_failed_total") == 1


@VERSIONS
def test_a_device_that_was_never_added_gets_the_same_code(hub, version):
    code, printed = mosquitto("sub", hub, "nobody", "wrong", version, "-t", "truetwin/nobody/command", "-W", 5)
    assert code != 0 and ("not authorised" in printed.lower() or "bad user name or password" in printed.lower()), (
        printed
    )


@VERSIONS
@pytest.mark.parametrize("topic", ["truetwin/other/command", "truetwin/+/command", "#", "truetwin/lamp/event"])
def test_a_foreign_subscription_is_refused(hub, version, topic):
    password, _ = hub.add("lamp")
    hub.add("other")
    _, printed = mosquitto("sub", hub, "lamp", password, version, "-t", topic, "-W", 5)
    assert "denied" in printed.lower(), printed
    assert hub.total("truetwin_door_subscriptions_refused_total") == 1


def test_a_foreign_publish_is_refused_with_its_code(hub, version=5):
    password, _ = hub.add("lamp")
    hub.add("other")
    _, printed = mosquitto("pub", hub, "lamp", password, version, "-q", 1, "-t", "truetwin/other/event", "-m", "{}")
    assert "not authorized" in printed.lower() or "not authorised" in printed.lower(), printed
    assert hub.total("truetwin_door_foreign_topics_total") == 1


@VERSIONS
def test_a_device_by_hand_is_commanded_reports_and_converges(hub, raw, version):
    lamp = raw("lamp", version=version)
    lamp.subscribe()
    lamp.hello()
    call = hub.calling("switch_device", device="lamp", to="on")
    command = lamp.told("set")
    assert (command["property"], command["value"], command["session"]) == ("relay", True, lamp.session) and command[
        "ttl_ms"
    ] > 0
    for result, on in (("received", False), ("completed", True)):
        lamp.event(
            "device_action_report",
            op=command["op"],
            action="set",
            property="relay",
            result=result,
            status={"relay": on},
            evidence={"relay": "pin"},
        )
    try:  # with a time to hold, the hub asks once more
        query = until(
            "a query or the answer",
            lambda: call.done() or next((c for c in lamp.commands if c["command"] == "get_device_state"), None),
        )
        if query is not True:
            lamp.event(
                "device_state",
                op=query["op"],
                status={"relay": True},
                evidence={"relay": "pin"},
                seen={"relay": command["op"]},
            )
    finally:
        answer = call.result(PATIENCE_S)
    assert (answer["success"], answer["outcome"]) == (True, "converged"), answer
