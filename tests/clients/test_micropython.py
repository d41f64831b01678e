"""firmware/micropython, unchanged, on MicroPython's Unix port, against the hub. On a board the same two files run."""

import json

import pytest
from home import MICROPYTHON, ROOT, Hub, Process, free_port

MAIN = ROOT / "firmware" / "micropython" / "main.py"


def board(hub, keep, name, password=None):
    settings = hub.folder / f"{name}.json"
    settings.write_text(
        json.dumps(
            {
                "host": "127.0.0.1",
                "port": hub.mqtt_port,
                "name": name,
                "password": password or hub.add(name)[0],
                "pin": 2,
            }
        )
    )
    return keep(Process([MICROPYTHON, MAIN, settings], hub.folder / f"{name}.log"))


def test_it_is_short_enough_to_be_read():
    lines = sum(len((MAIN.parent / name).read_text().splitlines()) for name in ("main.py", "mqtt.py"))
    assert lines < 120


def test_it_converges_and_nothing_that_it_says_is_unknown_to_the_hub(hub, keep):
    device = board(hub, keep, "lamp")
    hub.online("lamp")
    for to in ("on", "off", "on", "on"):
        answer = hub.call("switch_device", device="lamp", to=to)
        assert (answer["success"], answer["outcome"], answer["confirmed_by"]) == (True, "converged", "pin"), (
            f"{answer}\n{device.told()}"
        )
    assert "on" in str(hub.call("get_device_state", device="lamp")["device_state"])
    assert hub.total("truetwin_unreadable_events_total") == 0 and hub.total("truetwin_unknown_words_total") == 0, (
        hub.told()
    )


def test_a_wrong_password_is_said_on_its_console(hub, keep):
    hub.add("lamp")
    board(hub, keep, "lamp", password="wrong").says("refuses with code")


def test_it_comes_back_after_the_hub_was_restarted(tmp_path, keep):
    hub = keep(Hub(tmp_path, mqtt=f"127.0.0.1:{free_port()}"))
    device = board(hub, keep, "lamp")
    hub.online("lamp")
    assert hub.call("switch_device", device="lamp", to="on")["success"]
    assert hub.stop() == 0, hub.told()
    again = keep(Hub(tmp_path, mqtt=hub.mqtt))
    again.online("lamp")
    state = again.call("get_device_state", device="lamp")
    assert "on" in str(state["device_state"]) and state["trust"] == "now", f"{state}\n{device.told()}"


@pytest.mark.parametrize("count", [5])
def test_several_boards_do_not_touch_each_other(hub, keep, count):
    names = [f"board-{i}" for i in range(count)]
    for name in names:
        board(hub, keep, name)
    hub.online(*names)
    calls = [hub.calling("switch_device", device=name, to="on") for name in names[:-1]]
    assert all(call.result(30)["success"] for call in calls)
    assert "off" in str(hub.call("get_device_state", device=names[-1])["device_state"])
