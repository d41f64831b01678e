"""Wrong input is the normal case: each is refused or answered with what was wrong and where, counted, and disturbs nobody:
after each, a call to another device still converges."""

import json

import pytest
from home import HUB_HEADERS, RawDevice, post, until

VERSIONS = pytest.mark.parametrize("version", [3, 5])
UNREADABLE = "truetwin_unreadable_events_total"


@pytest.fixture
def bystander(hub, sim):
    """Another device; at the end of the test it must converge as if nothing had happened."""
    sim("bystander")
    hub.online("bystander")
    yield
    answer = hub.call("switch_device", device="bystander", to="on")
    assert answer["success"], f"{answer}\n{hub.told()}"


@pytest.fixture
def lamp(hub, raw, bystander):
    """A device in good standing."""
    device = raw("lamp")
    device.subscribe()
    return device.hello()


BAD_EVENTS = {
    "not JSON": b"{relay on",
    "not UTF-8": b'{"event":"heartbeat","boot":"\xff\xfe"}',
    "nothing": b"",
    "a list": b"[1,2]",
    "an unknown event": {"event": "selfdestruct", "boot": "b", "seq": 90, "up_ms": 900},
    "no event": {"boot": "b", "seq": 90, "up_ms": 900},
    "no boot": {"event": "heartbeat", "seq": 90, "up_ms": 900},
    "seq of a wrong type": {"event": "heartbeat", "boot": "b", "seq": "ninety", "up_ms": 900},
    "a negative seq": {"event": "heartbeat", "boot": "b", "seq": -1, "up_ms": 900},
    "a number beyond all bounds": b'{"event":"heartbeat","boot":"b","seq":1e999,"up_ms":900}',
    "too deep": b'{"event":"heartbeat","boot":"b","seq":90,"up_ms":9,"status":' + b'{"a":' * 50 + b"1" + b"}" * 51,
    "longer than 2 KiB": {"event": "heartbeat", "boot": "b", "seq": 90, "up_ms": 900, "fw": "x" * 3000},
}


@pytest.mark.parametrize("what", BAD_EVENTS)
def test_an_event_that_cannot_be_read_is_answered_with_an_error_and_counted(hub, lamp, what):
    before, heard = hub.total(UNREADABLE), len(lamp.commands)
    payload = BAD_EVENTS[what]
    lamp.publish(payload | {"session": lamp.session} if isinstance(payload, dict) else payload)
    told = lamp.told("error", heard)
    assert told["reason"], told
    assert hub.total(UNREADABLE) == before + 1
    assert not lamp.gone, "the connection stands"


@pytest.mark.parametrize(
    ("fields", "path"),
    [
        ({"status": {"relay": "on"}}, "status.relay"),
        ({"status": {"relay": 7}}, "status.relay"),
        ({"status": {"relay": None}}, "status.relay"),
        ({"status": {"chimney": True}}, "status.chimney"),
    ],
)
def test_a_value_that_cannot_be_is_answered_with_its_path_and_changes_nothing(hub, lamp, fields, path):
    heard = len(lamp.commands)
    lamp.event("device_state", evidence={"relay": "pin"}, **fields)
    told = lamp.told("error", heard)
    assert told["path"] == path and told["of_seq"] == lamp.seq, told
    state = hub.call("get_device_state", device="lamp", fresh="no")
    assert "off" in str(state["device_state"]), state


def test_an_impossible_range_in_the_description_is_refused_with_its_path(hub, raw, bystander):
    device = raw("lamp")
    device.subscribe()
    dimmer = {
        "name": "brightness",
        "role": "light",
        "kind": "integer",
        "min": 100,
        "max": 0,
        "step": 1,
        "feedback": "pin",
        "settable": True,
    }
    device.event(**(RawDevice.HELLO | {"properties": [dimmer], "state": {}, "evidence": {}}))
    told = until("a refusal", lambda: next((c for c in device.commands if c["command"] in {"refused", "error"}), None))
    assert told["path"].startswith("properties"), told


@VERSIONS
def test_an_unknown_device_is_refused_at_the_door(hub, raw, bystander, version):
    stranger = raw("stranger", version=version, password="guess")
    assert stranger.codes[0].is_failure and stranger.codes[0].getName() in {
        "Not authorized",
        "Bad user name or password",
    }
    assert hub.total("truetwin_door_logins_failed_total") == 1


@pytest.mark.parametrize(
    "topic",
    [
        "truetwin/bystander/event",
        "truetwin/bystander/status",
        "truetwin/lamp/command",
        "truetwin/nobody/event",
        "灯",
        "$SYS/x",
    ],
)
def test_a_publish_to_a_foreign_topic_is_refused_and_counted(hub, lamp, topic):
    code = lamp.publish({"event": "heartbeat", "boot": "b", "seq": 1, "up_ms": 1}, topic=topic)
    assert code.is_failure and code.getName() == "Not authorized", code
    assert hub.total("truetwin_door_foreign_topics_total") == 1


def test_a_message_larger_than_the_door_allows_ends_that_connection_alone(hub, lamp):
    code = lamp.publish(b"x" * 200_000)
    assert code.is_failure, code
    until("its connection is ended", lambda: lamp.gone)
    assert hub.total("truetwin_door_oversize_total") == 1


def test_s5_6_a_second_client_with_the_same_name_is_counted_and_one_of_them_works(hub, lamp, raw):
    second = raw("lamp", password=lamp.password, client_id="second")
    if second.codes[0].is_failure:
        winner = lamp
    else:
        until("the first connection is taken over", lambda: lamp.gone)
        second.subscribe()
        winner = second.hello()
        assert hub.total("truetwin_door_takeovers_total") == 1
    assert not winner.gone
    before = len(winner.commands)
    call = hub.calling("switch_device", device="lamp", to="on")
    command = winner.told("set", before)
    winner.event(
        "device_action_report",
        op=command["op"],
        action="set",
        property="relay",
        result="rejected",
        reason="busy",
        status={"relay": False},
        evidence={"relay": "pin"},
    )
    answer = call.result(30)
    assert (answer["outcome"], answer["reason"]) == ("rejected", "busy"), answer


def test_s3_4_a_retained_report_converges_nothing(hub, lamp):
    call = hub.calling("switch_device", device="lamp", to="on")
    command = lamp.told("set")
    lamp.seq += 1
    lamp.publish(
        {
            "event": "device_action_report",
            "session": lamp.session,
            "boot": lamp.boot,
            "seq": lamp.seq,
            "up_ms": 999,
            "op": command["op"],
            "action": "set",
            "property": "relay",
            "result": "completed",
            "status": {"relay": True},
            "evidence": {"relay": "pin"},
        },
        retain=True,
    )
    answer = call.result(60)
    assert answer["success"] is False, answer


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b'{"jsonrpc":"2.0"}',
        b'{"jsonrpc":"2.0","id":1,"method":5}',
        b"\xff\xfe",
        b"[" * 10_000,
    ],
)
def test_broken_json_rpc_is_refused(hub, bystander, body):
    status, _ = post(hub.mcp, body, HUB_HEADERS)
    assert 400 <= status < 500, status


def test_a_body_beyond_all_bounds_is_refused(hub, bystander):
    status, _ = post(hub.mcp, b'{"jsonrpc":"2.0","id":1,"method":"' + b"x" * 100_000 + b'"}', HUB_HEADERS)
    assert status == 413, status


def test_a_page_of_another_origin_may_not_call(hub, bystander):
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping"}).encode()
    assert post(hub.mcp, body, HUB_HEADERS | {"Origin": "https://example.org"})[0] == 403
    assert post(hub.mcp, body, HUB_HEADERS | {"Host": "example.org"})[0] == 403
