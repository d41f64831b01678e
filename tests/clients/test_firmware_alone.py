"""The boards' firmware against a broker that nobody here wrote and a hub on paper: what the protocol asks of level 1,
without any of our Rust. The same devices meet the real hub in test_devices.py and test_micropython.py."""

import json
import sys

import pytest
from home import MICROPYTHON, ROOT, PaperHub, Process, until

PYTHON = ROOT / "firmware" / "python" / "truetwin_socket.py"
MICRO = ROOT / "firmware" / "micropython" / "main.py"


@pytest.fixture(params=["python-3.1.1", "python-5", "micropython"])
def pair(request, mosquitto, tmp_path, keep):
    """A paper hub, and the device that it has welcomed."""
    hub = keep(PaperHub(mosquitto.port, "lamp"))
    if request.param == "micropython":
        settings = tmp_path / "settings.json"
        settings.write_text(
            json.dumps({"host": "127.0.0.1", "port": mosquitto.port, "name": "lamp", "password": "x", "pin": 2})
        )
        argv = [MICROPYTHON, MICRO, settings]
    else:
        secret = tmp_path / "lamp.secret"
        secret.write_text("x\n")
        argv = [
            sys.executable,
            PYTHON,
            "--port",
            mosquitto.port,
            "--name",
            "lamp",
            "--password-file",
            secret,
            "--mqtt",
            "5" if request.param.endswith("5") else "3",
        ]
    device = keep(Process(argv, tmp_path / "device.log"))
    try:
        hub.heard("heartbeat")
    except AssertionError as error:
        raise AssertionError(f"{error}\n{device.told()}") from None
    return hub, device


def test_it_says_hello_with_its_description_and_state(pair):
    hub, _ = pair
    hello = hub.heard("hello")
    assert (hello["proto"], hello["level"], hello["seq"]) == (1, 1, 1)
    assert hello["properties"][0]["name"] == "relay" and hello["properties"][0]["feedback"] == "pin"
    assert hello["state"] == {"relay": False} and hello["evidence"] == {"relay": "pin"} and hello["seen"] == {}
    assert "session" not in hello


def test_s5_1_a_set_is_received_driven_read_back_and_completed(pair):
    hub, _ = pair
    received, completed = hub.set(True)
    assert received["result"] == "received" and received["status"] == {"relay": False}
    assert completed["result"] == "completed" and completed["status"] == {"relay": True}
    assert completed["evidence"] == {"relay": "pin"} and completed["session"] == hub.session
    assert [e["result"] for e in hub.set(True)] == ["received", "completed"], (
        "setting the present value moves nothing and is done"
    )


def test_s5_1_the_same_op_moves_nothing_and_repeats_its_result_with_the_state_of_now(pair):
    hub, _ = pair
    hub.set(True, op="first")
    hub.set(False, op="second")
    again = hub.set(False, op="second")
    assert [(e["result"], e.get("dup")) for e in again] == [("completed", True)]
    assert again[0]["status"] == {"relay": False}


def test_s5_1_commands_of_another_session_or_retained_are_not_obeyed(pair, keep):
    hub, device = pair
    hub.command("set", session="other", op="x1", property="relay", value=True, ttl_ms=1000)
    hub.command(
        "set", op="x2", property="relay", value=True, ttl_ms=1000, retain=True
    )  # live for us, retained for a newcomer
    assert hub.set(False)[-1]["status"] == {"relay": False}
    before = len(hub.events)
    device.stop()
    keep(Process(device.argv, device.log))
    hub.heard("heartbeat", before)
    hub.command("get_device_state", op="q1")
    state = hub.heard("device_state", before)
    assert state["op"] == "q1" and state["status"] == {"relay": False} and state["seen"] == {}, (
        "the broker's old command was obeyed"
    )
    assert not [e for e in hub.events if e.get("op") == "x1"]


def test_what_it_does_not_have_or_understand_is_rejected_with_the_reason(pair):
    hub, _ = pair
    assert [(e["result"], e["reason"]) for e in hub.set(True, property="lamp")] == [("rejected", "unsupported")]
    assert [(e["result"], e["reason"]) for e in hub.set("on")] == [("rejected", "malformed")]
    hub.client.publish("truetwin/lamp/command", b"{not json", qos=1)
    hub.client.publish("truetwin/lamp/command", b"[1]", qos=1)
    hub.client.publish("truetwin/lamp/command", json.dumps({"command": "welcome"}), qos=1)
    assert hub.set(True)[-1]["result"] == "completed"


def test_it_moves_on_no_message_of_the_vectors_that_is_not_right(pair):
    hub, _ = pair
    cases = json.loads((ROOT / "firmware" / "wire" / "vectors" / "commands.json").read_text())["commands"]
    assert len(cases) > 30
    for number, case in enumerate(cases):
        message = case["message"].replace("k3f9", hub.session).replace("4f1c9a", f"n{number}").encode()
        before = len(hub.events)
        hub.client.publish("truetwin/lamp/command", message.ljust(case.get("pad_to_bytes", 0)), qos=1)
        hub.command("get_device_state", op=f"v{number}")
        until(f"it lives after {case['name']}", lambda: any(e.get("op") == f"v{number}" for e in hub.events))  # noqa: B023
        results = [e["result"] for e in hub.events[before:] if e["event"] == "device_action_report"]
        moved = "completed" in results or "received" in results
        right = case.get("means", {})
        asks_for_it = right.get("property") == "relay" and isinstance(right.get("value"), bool)
        assert moved == asks_for_it, f"{case['name']}: {results}"


def test_sequence_and_uptime_only_grow(pair):
    hub, _ = pair
    hub.set(True)
    hub.set(False)
    assert [e["seq"] for e in hub.events] == list(range(1, len(hub.events) + 1))
    ups = [e["up_ms"] for e in hub.events]
    assert ups == sorted(ups) and len({e["boot"] for e in hub.events}) == 1
