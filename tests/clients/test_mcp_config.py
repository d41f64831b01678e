"""The hub as one entry of somebody's mcp_config.json: what `truetwin mcp --print-config` prints is read and started as such a
file's readers do it, by the official SDK."""

import asyncio
import json
import subprocess

import pytest
from home import BINARY, HUB_HEADERS, PATIENCE_S, Hub, post, until
from mcp import Client, StdioServerParameters


def printed(*arguments):
    """The file that a person would paste it into."""
    done = subprocess.run(
        [BINARY, "mcp", *map(str, arguments)], capture_output=True, text=True, timeout=PATIENCE_S, cwd="/"
    )
    assert done.returncode == 0, done.stderr
    servers = json.loads(done.stdout)["mcpServers"]
    assert list(servers) == ["truetwin"]
    return servers["truetwin"]


def started(entry, work):
    """What `work(client)` gives in a session with a server that is started as the entry says."""
    assert entry["type"] == "stdio" and set(entry) <= {"type", "command", "args", "env"}

    async def run():
        server = StdioServerParameters(command=entry["command"], args=entry["args"], env=entry.get("env"))
        async with Client(server, read_timeout_seconds=PATIENCE_S) as client:
            return await work(client)

    return asyncio.run(run())


@pytest.mark.parametrize("flag", ["--print-config", "--print-config=stdio"])
def test_the_entry_joins_the_hub_that_runs_and_the_audit_says_who_asked(hub, sim, flag):
    sim("lamp")
    hub.online("lamp")
    entry = printed(flag, "--data", hub.data)
    call = {"device": "lamp", "to": "on", "user_request": "开灯"}
    answer = started(entry, lambda client: client.call_tool("switch_device", call)).structured_content
    assert answer["success"] is True, answer
    lines = until(
        "the call is in the audit",
        lambda: (hub.data / "audit.jsonl").exists() and (hub.data / "audit.jsonl").read_text().splitlines(),
    )
    record = json.loads(lines[-1])
    assert (record["v"], record["tool"], record["result"]) == (1, "switch_device", "confirmed")
    assert (record["user_request"], record["heard"]) == ("开灯", "lamp")
    assert record["operation"] == answer["operation"] and record["say"] == answer["say"]
    thing = record["things"][0]
    assert (thing["device"], thing["want"], thing["acknowledged"]) == ("lamp", {"to": True}, True)


def test_the_entry_is_a_hub_of_its_own_where_none_runs(tmp_path):
    entry = printed("--print-config", "--data", tmp_path / "data", "--mqtt", "127.0.0.1:0", "--http", "127.0.0.1:0")
    tools = started(entry, lambda client: client.list_tools()).tools
    assert {"find_devices", "ping"} <= {tool.name for tool in tools}


def test_the_entry_over_http_names_the_hub_that_runs_and_where_the_token_goes(hub):
    entry = printed("--print-config=http", "--data", hub.data)
    assert (entry["type"], entry["url"]) == ("streamablehttp", hub.mcp)
    assert entry["headers"]["Authorization"].startswith("Bearer ")


def test_a_reader_that_fills_in_the_token_is_let_in_and_one_that_does_not_is_not(tmp_path, keep):
    hub = keep(Hub(tmp_path, config='[http]\ntokens = "required"\n'))
    made = subprocess.run(
        [BINARY, "token", "add", "desk", "--json", "--data", hub.data],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    entry, token = printed("--print-config=http", "--data", hub.data), json.loads(made.stdout)["token"]
    opening = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "reader", "version": "1"}}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": opening}).encode()
    status, _ = post(entry["url"], body, HUB_HEADERS | entry["headers"])
    assert status == 401, "what is printed is a place for a token"
    status, answer = post(entry["url"], body, HUB_HEADERS | {"Authorization": f"Bearer {token}"})
    assert status == 200 and b"serverInfo" in answer
