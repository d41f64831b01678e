"""The MCP Inspector's command line against the hub, over HTTP and over stdio."""

import json
import os
import subprocess

import pytest
from home import BINARY, NPM, PATIENCE_S


def inspector(home, target, *arguments):
    """One run of the Inspector: exit code, what it printed as JSON, what it complained of."""
    env = os.environ | {"PATH": f"{NPM}:{os.environ['PATH']}", "HOME": str(home)}
    done = subprocess.run(
        [NPM / "mcp-inspector", "--cli", *target, *arguments],
        env=env,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S * 2,
    )
    return done.returncode, json.loads(done.stdout) if done.stdout.strip() else None, done.stderr


@pytest.fixture(params=["http", "stdio"])
def target(request, hub, sim):
    """A hub with a healthy and a stuck device, and how the Inspector reaches it."""
    sim("lamp")
    sim("pump", "stuck")
    hub.online("lamp", "pump")
    if request.param == "http":
        return [hub.mcp, "--transport", "http"]
    return [BINARY, "mcp", "--data", hub.data, "--transport", "stdio"]


def test_the_schemas_are_portable_in_the_strict_sense(target, tmp_path):
    code, listed, complaints = inspector(tmp_path, target, "--method", "tools/list", "--strict")
    assert code == 0, complaints
    assert "warning" not in complaints.lower(), complaints
    assert {"find_devices", "get_device_state", "switch_device", "check_operation", "ping"} == {
        t["name"] for t in listed["tools"]
    }


def test_a_switch_and_a_failure_reach_a_person_at_the_command_line(target, tmp_path):
    call = ("--method", "tools/call", "--tool-name", "switch_device", "--tool-arg")
    code, answer, complaints = inspector(tmp_path, target, *call, "device=lamp", "to=on")
    assert code == 0, complaints
    assert answer["structuredContent"]["success"] is True and answer["structuredContent"]["outcome"] == "converged"
    code, answer, complaints = inspector(tmp_path, target, *call, "device=pump", "to=on")
    assert code == 5, "the Inspector's code for a tool that answers with an error"
    told = answer["structuredContent"]
    assert (told["success"], told["outcome"], told["reason"]) == (False, "failed", "stuck")


def test_devices_are_resources_that_can_be_listed_and_read(target, tmp_path):
    code, listed, complaints = inspector(tmp_path, target, "--method", "resources/list")
    assert code == 0, complaints
    assert [r["uri"] for r in listed["resources"]] == ["twin://devices/lamp", "twin://devices/pump"]
    code, listed, complaints = inspector(tmp_path, target, "--method", "resources/templates/list")
    assert code == 0 and listed["resourceTemplates"][0]["uriTemplate"] == "twin://devices/{id}", complaints
    code, read, complaints = inspector(tmp_path, target, "--method", "resources/read", "--uri", "twin://devices/lamp")
    assert code == 0, complaints
    twin = json.loads(read["contents"][0]["text"])
    assert twin["id"] == "lamp" and twin["online"] and twin["properties"]["relay"]["value"] == "off", twin
