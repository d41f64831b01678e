"""The official MCP SDK for Python against the hub, in both of its lifecycles: `legacy` opens a session, `auto` speaks the
stateless protocol of 2026 where the server does."""

import asyncio

import pytest
from home import BINARY
from mcp import Client, MCPError, StdioServerParameters

MODES = pytest.mark.parametrize("mode", ["legacy", "auto"])
# Semantics, "What each fault must give": result, outcome, stage.
FAULTS = {
    "none": ("confirmed", "converged", "settled"),
    "stuck": ("failed", "failed", "waiting_device_report"),
    "frozen": ("unconfirmed", "timed_out", "waiting_device_ack"),
    "lying": ("failed", "contradicted", "waiting_read_back"),
}


def state_words(answer):
    """The words in an answer's device_state, whatever the properties are called."""
    return list((answer["device_state"] or {}).values())


@MODES
def test_the_catalogue_is_short_flat_and_described(hub, sim, mode):
    sim("lamp")
    hub.online("lamp")
    tools = hub.session(lambda client: client.list_tools(), mode).tools
    assert {"find_devices", "get_device_state", "switch_device", "check_operation", "ping"} == {
        tool.name for tool in tools
    }
    described = set()
    for tool in tools:
        assert len(tool.description) > 60
        assert tool.input_schema["type"] == "object"
        for name, parameter in tool.input_schema.get("properties", {}).items():
            assert parameter["type"] in {"string", "number"}, f"{tool.name}.{name} is not flat"
            # Each parameter once, in the first tool that has it.
            assert parameter.get("description") or name in described, f"{tool.name}.{name} is described nowhere"
            described.add(name)
    reads = {tool.name for tool in tools if tool.annotations.read_only_hint}
    assert reads == {"find_devices", "get_device_state", "check_operation", "ping"}


@MODES
def test_a_switch_is_confirmed_only_by_the_device(hub, sim, mode):
    sim("lamp")
    hub.online("lamp")
    answer = hub.call("switch_device", mode, device="lamp", to="on", user_request="light please")
    assert (answer["success"], answer["result"], answer["next"]) == (True, "confirmed", "none"), answer
    assert (answer["outcome"], answer["stage"], answer["trust"]) == ("converged", "settled", "now")
    assert answer["confirmed_by"] in {"pin", "sensor"}
    assert state_words(answer) == ["on"]
    assert answer["operation"] and answer["elapsed_ms"] >= 0 and answer["stages_ms"]
    state = hub.call("get_device_state", mode, device="lamp")
    assert state_words(state) == ["on"] and state["trust"] == "now", state
    assert hub.call("switch_device", mode, device="lamp", to="off")["success"]


@MODES
@pytest.mark.parametrize("fault", FAULTS)
def test_s8_each_fault_gives_what_the_table_says(hub, sim, mode, fault):
    lamp = sim("lamp")
    hub.online("lamp")
    lamp.fault(fault)
    answer = hub.call("switch_device", mode, device="lamp", to="on")
    assert (answer["result"], answer["outcome"], answer["stage"]) == FAULTS[fault], answer
    assert answer["success"] is (fault == "none")
    if fault == "stuck":
        assert answer["reason"] == "stuck" and state_words(answer) == ["off"]
    if fault == "lying":
        assert state_words(answer) == ["off"], "the actual state, not the claimed one"
    if fault == "frozen":
        assert answer["reason"].startswith("timeout_after_") and answer["trust"] != "now"


@MODES
def test_s8_a_slow_device_is_confirmed_or_said_to_be_working_and_confirmed_later(hub, sim, mode):
    sim("lamp", "slow")
    hub.online("lamp")
    answer = hub.call("switch_device", mode, device="lamp", to="on")
    assert (answer["outcome"], answer["result"]) in {("converged", "confirmed"), ("working", "working")}, answer
    if answer["outcome"] == "working":
        assert answer["success"] is False and answer["next"] == "wait"


@MODES
def test_s5_5_an_offline_device_is_refused_and_nothing_is_sent(hub, sim, mode):
    lamp = sim("lamp")
    hub.online("lamp")
    lamp.stop()
    answer = hub.call("switch_device", mode, device="lamp", to="on")
    assert (answer["success"], answer["result"], answer["stage"]) == (False, "failed", "admission"), answer
    assert answer["outcome"] in {"offline", "hub_just_started"}


@MODES
def test_after_a_fault_is_mended_the_same_device_converges_again(hub, sim, mode):
    lamp = sim("lamp", "stuck")
    hub.online("lamp")
    assert hub.call("switch_device", mode, device="lamp", to="on")["outcome"] == "failed"
    lamp.fault("none")
    assert hub.call("switch_device", mode, device="lamp", to="on")["outcome"] == "converged"


@MODES
def test_an_unknown_device_is_answered_with_near_names_and_nothing_moves(hub, sim, mode):
    sim("desk-lamp")
    hub.online("desk-lamp")
    answer = hub.call("switch_device", mode, device="desk-lmap", to="on")
    assert (answer["success"], answer["result"], answer["next"], answer["outcome"]) == (
        False,
        "ask_user",
        "answer_question",
        "unknown_device",
    ), answer
    assert "desk-lamp" in answer["say"]
    assert hub.total("truetwin_operations_total") == 0


@MODES
@pytest.mark.parametrize(
    ("arguments", "outcome"),
    [
        ({"to": "on"}, "missing_argument"),
        ({"device": "lamp"}, "missing_argument"),
        ({"device": "lamp", "to": "purple"}, "invalid_value"),
        ({"device": "lamp", "to": 7}, "invalid_value"),
        ({"device": ["lamp"], "to": "on"}, "invalid_value"),
        ({"device": "lamp", "to": "on", "force": "yes"}, "unknown_argument"),
        ({"device": "", "to": "on"}, None),
        ({"device": "l" * 5000, "to": "on"}, None),
    ],
)
def test_malformed_arguments_are_a_question_and_nothing_moves(hub, sim, mode, arguments, outcome):
    sim("lamp")
    hub.online("lamp")
    answer = hub.call("switch_device", mode, **arguments)
    assert (answer["success"], answer["result"], answer["next"]) == (False, "ask_user", "answer_question"), answer
    assert outcome is None or answer["outcome"] == outcome, answer
    assert hub.total("truetwin_operations_total") == 0
    assert hub.call("switch_device", mode, device="lamp", to="on")["success"]


@MODES
def test_check_operation_tells_the_end_of_an_operation_and_moves_nothing(hub, sim, mode):
    sim("lamp", "stuck")
    hub.online("lamp")
    first = hub.call("switch_device", mode, device="lamp", to="on")
    for question in ({"operation": first["operation"]}, {"device": "lamp"}):
        told = hub.call("check_operation", mode, **question)
        assert (told["operation"], told["outcome"], told["success"]) == (first["operation"], "failed", False), told
    assert hub.total("truetwin_operations_total") == 1
    unknown = hub.call("check_operation", mode, operation="nosuchop")
    assert unknown["success"] is False and unknown["result"] in {"ask_user", "failed"}, unknown


@MODES
def test_find_devices_lists_what_there_is_and_ping_answers(hub, sim, mode):
    sim("lamp")
    sim("kettle")
    hub.online("lamp", "kettle")
    found = str(hub.call("find_devices", mode))
    assert "lamp" in found and "kettle" in found
    assert "kettle" not in str(hub.call("find_devices", mode, query="lam"))
    assert "pong" in str(hub.call("ping", mode))


@MODES
def test_an_unknown_tool_is_an_error_of_the_protocol(hub, mode):
    async def wrong(client):
        with pytest.raises(MCPError) as error:
            await client.call_tool("open_the_pod_bay_doors", {})
        return error.value.error.code

    assert hub.session(wrong, mode) == -32602


@MODES
def test_many_callers_in_one_session_each_get_their_own_answer(hub, sim, mode):
    names = ["one", "two", "three"]
    for name in names:
        sim(name, "stuck" if name == "two" else "none")
    hub.online(*names)

    async def all_at_once(client):
        return await asyncio.gather(
            *(client.call_tool("switch_device", {"device": name, "to": "on"}) for name in names * 4)
        )

    answers = [r.structured_content for r in hub.session(all_at_once, mode)]
    assert [a["device"] for a in answers] == names * 4
    assert [a["success"] for a in answers] == [True, False, True] * 4


def test_a_failed_call_is_marked_as_an_error_and_its_text_begins_with_the_sentence(hub, sim):
    sim("lamp", "stuck")
    hub.online("lamp")
    result = hub.session(lambda client: client.call_tool("switch_device", {"device": "lamp", "to": "on"}))
    assert result.is_error and result.content[0].text.startswith(result.structured_content["say"])


@MODES
def test_stdio_is_the_same_hub(hub, sim, mode):
    sim("lamp")
    hub.online("lamp")

    async def run():
        server = StdioServerParameters(command=str(BINARY), args=["mcp", "--data", str(hub.data)])
        async with Client(server, mode=mode) as client:
            listed = await client.list_tools()
            return {tool.name for tool in listed.tools}, await client.call_tool(
                "switch_device", {"device": "lamp", "to": "on"}
            )

    names, result = asyncio.run(run())
    assert "switch_device" in names and result.structured_content["success"]
    assert hub.total("truetwin_operations_total", outcome="converged") == 1
