"""What the official SDK for Python is told beside answers: resources and their changes, changed lists, progress; and calls
that it no longer waits for. In both of its lifecycles, over HTTP and through the bridge on standard input and output."""

import asyncio
import contextlib
import json
import subprocess

import pytest
from home import BINARY, PATIENCE_S, Hub, Sim, until
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.subscriptions import ResourcesListChanged, ResourceUpdated, ToolsListChanged

LAMP, KETTLE = "twin://devices/lamp", "twin://devices/kettle"
# A call waits for a device that has just gone away for as long as a test may need.
PATIENT = "[timing]\nwait_online_ms = 25000\nrecently_seen_ms = 600000\n"


class Told:
    """Whatever a client with a session is told unasked."""

    def __init__(self):
        self.methods = []

    async def __call__(self, message):
        if not isinstance(message, Exception):
            uri = getattr(message.params, "uri", None)
            self.methods.append((message.method, str(uri) if uri else None))

    async def of(self, method, uri=None):
        async with asyncio.timeout(PATIENCE_S):
            while (f"notifications/{method}", uri) not in self.methods:
                await asyncio.sleep(0.02)


# What sessions subscribe with is deprecated since there are streams; it is here to stay for those that have sessions.
pytestmark = pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning")
MODES = pytest.mark.parametrize("mode", ["legacy", "auto"])


async def twin(client, uri):
    read = await client.read_resource(uri)
    return json.loads(read.contents[0].text)


async def switched(client, device, to, **more):
    answer = await client.call_tool("switch_device", {"device": device, "to": to}, **more)
    assert answer.structured_content["success"], answer.structured_content
    return answer.structured_content


@MODES
def test_a_device_is_a_resource_and_an_unknown_one_is_not_found(hub, sim, way, mode):
    sim("lamp")
    hub.online("lamp")

    async def run():
        async with way(hub, mode) as client:
            assert [r.uri for r in (await client.list_resources()).resources] == [LAMP]
            templates = (await client.list_resource_templates()).resource_templates
            assert [t.uri_template for t in templates] == ["twin://devices/{id}"]
            answer = await switched(client, "lamp", "on")
            told = await twin(client, LAMP)
            assert told["online"] and told["properties"]["relay"]["value"] == "on", told
            assert told["last_operation"]["operation"] == answer["operation"], told
            with pytest.raises(MCPError) as error:
                await client.read_resource("twin://devices/nobody")
            assert error.value.error.code == (-32002 if mode == "legacy" else -32602)
            assert error.value.error.message == "resource not found"
            with pytest.raises(MCPError) as error:
                await client.list_resources(cursor="none of yours")
            assert error.value.error.code == -32602 and "cursor" in error.value.error.message

    asyncio.run(run())


def test_a_session_is_told_of_changed_lists_and_of_what_it_subscribed_to(hub, sim, way):
    sim("lamp")
    sim("kettle")
    hub.online("lamp", "kettle")

    async def run():
        told = Told()
        async with way(hub, "legacy", message_handler=told) as client:
            await client.subscribe_resource(LAMP)
            await switched(client, "kettle", "on")
            await switched(client, "lamp", "on")
            await told.of("resources/updated", LAMP)
            assert ("notifications/resources/updated", KETTLE) not in told.methods
            await client.unsubscribe_resource(LAMP)
            await asyncio.to_thread(sim, "radio")
            await told.of("resources/list_changed")
            await told.of("tools/list_changed")
            with pytest.raises(MCPError):
                await client.subscribe_resource("twin://devices/nobody")

    asyncio.run(run())


def test_a_stream_is_told_of_what_it_listens_to(hub, sim, way):
    sim("lamp")
    sim("kettle")
    hub.online("lamp", "kettle")

    async def run():
        async with way(hub, "auto") as client:
            wanted = {"tools_list_changed": True, "resources_list_changed": True, "resource_subscriptions": [LAMP]}
            async with client.listen(**wanted) as stream, asyncio.timeout(PATIENCE_S):
                await switched(client, "kettle", "on")
                await switched(client, "lamp", "on")
                assert await anext(stream) == ResourceUpdated(uri=LAMP)
                await asyncio.to_thread(sim, "radio")
                heard = set()
                while not {ToolsListChanged(), ResourcesListChanged()} <= heard:
                    heard.add(await anext(stream))
                assert ResourceUpdated(uri=KETTLE) not in heard

    asyncio.run(run())


@MODES
def test_progress_is_told_stage_by_stage_before_the_answer_and_only_to_who_asked(hub, sim, way, mode):
    sim("lamp")
    hub.online("lamp")

    async def run():
        steps = []

        async def step(done, of, message):
            steps.append((done, of, message))

        async with way(hub, mode) as client:
            await switched(client, "lamp", "on", progress_callback=step)
            before = list(steps)
            await client.list_tools()
            await switched(client, "lamp", "off")
            assert steps == before, "never after the answer, and not of a call that did not ask"
            assert len(steps) >= 3 and [s[0] for s in steps] == sorted({s[0] for s in steps}), steps
            assert all(message and done < of for done, of, message in steps), steps

    asyncio.run(run())


@MODES
def test_s4_7_a_cancelled_call_moves_nothing(tmp_path, keep, way, mode):
    hub = keep(Hub(tmp_path, config=PATIENT))
    lamp = Lamp(hub, keep)

    async def run():
        waits = asyncio.Event()

        async def step(_done, _of, message):
            if message == "Waiting for its turn.":
                waits.set()

        async with way(hub, mode) as client:
            lamp.goes()
            call = asyncio.create_task(
                client.call_tool("switch_device", {"device": "lamp", "to": "on"}, progress_callback=step)
            )
            async with asyncio.timeout(PATIENCE_S):
                await waits.wait()
            call.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await call
            counted = lambda: hub.total("truetwin_tool_calls_total", result="cancelled") == 1  # noqa: E731
            await asyncio.to_thread(until, "the hub has heard that nobody waits", counted)
            await asyncio.to_thread(lamp.comes)
            state = await client.call_tool("get_device_state", {"device": "lamp", "fresh": "yes"})
            assert state.structured_content["trust"] == "now", state
            assert state.structured_content["device_state"]["relay"] == "off", state
        assert hub.total("truetwin_operations_total", outcome="converged") == 0

    asyncio.run(run())


class Lamp:
    """A simulated lamp that goes away and comes back."""

    def __init__(self, hub, keep):
        self.hub, self.sim = hub, keep(Sim(hub, "lamp"))
        hub.online("lamp")

    def goes(self):
        self.sim.fault("offline")
        until("it is offline", lambda: self.hub.total("truetwin_devices", presence="offline") == 1)

    def comes(self):
        self.sim.fault("none")
        self.hub.online("lamp")


def test_prompts_and_logging_are_unknown_methods(hub, way):
    async def run():
        async with way(hub, "legacy") as client:
            assert client.server_capabilities.prompts is None and client.server_capabilities.logging is None
            for ask in (client.list_prompts(), client.get_prompt("hello"), client.set_logging_level("debug")):
                with pytest.raises(MCPError) as error:
                    await ask
                assert error.value.error.code == -32601

    asyncio.run(run())


def test_a_restarted_hub_is_found_again_and_the_subscription_goes_on(tmp_path, keep):
    hub = keep(Hub(tmp_path))
    lamp = Lamp(hub, keep)

    async def run():
        told = Told()
        server = StdioServerParameters(command=str(BINARY), args=["mcp", "--data", str(hub.data)])
        async with Client(server, mode="legacy", read_timeout_seconds=PATIENCE_S, message_handler=told) as client:
            await client.subscribe_resource(LAMP)
            await asyncio.to_thread(hub.stop)
            lamp.sim.stop()
            second = keep(await asyncio.to_thread(Hub, tmp_path, mqtt=hub.mqtt))
            command = [BINARY, "sim", "--mqtt", second.mqtt, "--device", "lamp"]
            again = subprocess.Popen(
                [*map(str, command), "--password-file", str(tmp_path / "lamp.secret")],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
            )
            try:
                await asyncio.to_thread(second.online, "lamp")
                told.methods.clear()
                await switched(client, "lamp", "on")
                await told.of("resources/updated", LAMP)
            finally:
                again.terminate()
                again.wait(10)

    asyncio.run(run())
