"""The audit at the command line: what was called, by whom, and what hints at wrong final words; also after the hub is gone."""

import json
import subprocess

from home import BINARY, PATIENCE_S


def run(hub, *arguments, code=0):
    done = subprocess.run(
        [BINARY, *map(str, arguments), "--data", hub.data], capture_output=True, text=True, timeout=PATIENCE_S
    )
    assert done.returncode == code, f"{arguments}: {done.stdout}{done.stderr}"
    return done.stdout


def records(hub, *arguments):
    return [json.loads(line) for line in run(hub, "audit", "--json", *arguments).splitlines()]


def test_calls_are_told_with_who_asked_and_what_became_of_them_also_without_a_hub(hub, sim):
    sim("lamp")
    sim("pump", "stuck")
    hub.online("lamp", "pump")
    hub.call("switch_device", device="lamp", to="on", user_request="把灯打开")
    done = hub.call("switch_device", device="lamp", to="off")
    hub.call("switch_device", device="pump", to="on")
    hub.call("switch_device", device="pump", to="on")
    hub.call("switch_device", device="lmap", to="on")
    hub.call("get_device_state", device="lamp")
    told = run(hub, "dispute", "lamp", "--note", "还亮着")
    assert done["operation"] in told and done["say"] in told
    hub.stop()

    everything = records(hub)
    assert [r["event"] for r in everything] == ["call"] * 6 + ["dispute"]
    assert all(r["v"] == 1 and r["at"][10] == "T" and r["at"][-6] in "+-" for r in everything)
    assert {r["caller"] for r in everything} == {"http", "owner"}
    assert [r["tool"] for r in records(hub, "--device", "pump")] == ["switch_device"] * 2
    assert [r["result"] for r in records(hub, "--failed", "--device", "pump", "--since", "1h")] == ["failed", "failed"]
    assert [r["tool"] for r in records(hub, "--tool", "get_device_state", "--caller", "http")] == ["get_device_state"]
    table = run(hub, "audit")
    assert "lmap → ?" in table and "stuck at waiting_device_report" in table and "DISPUTED" in table

    stats = json.loads(run(hub, "audit", "stats", "--json"))
    assert stats["tools"]["switch_device"]["results"] == {"confirmed": 2, "failed": 2, "ask_user": 1}
    assert "run_device_action" in stats["never_used"]
    wrong = stats["wrong_arguments"]
    assert [(w["parameter"], w["sent"], w["times"]) for w in wrong] == [("device", "lmap", 1)]
    assert [(r["device"], r["outcome"]) for r in stats["false_successes_avoided"]] == [("pump", "stuck")] * 2
    kinds = [(h["device"], h["kind"].split(" within")[0]) for h in stats["hints"]]
    assert kinds == [("lamp", "the opposite wish"), ("pump", "the same wish again"), ("lamp", "asked how it is")]
    assert [d["of"] for d in stats["disputed"]] == [done["operation"]]
    assert "no call arrived" not in run(hub, "audit", "stats")


def test_an_endpoint_from_which_no_call_came_is_seen(hub):
    address = "ws://127.0.0.1:1/mcp_endpoint/mcp/?token=nobody"
    done = subprocess.run(
        [BINARY, "import", "-", "--name", "kitchen", "--data", hub.data],
        input=f"MCP_ENDPOINT={address}\n",
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    assert done.returncode == 1 and "kitchen" in done.stdout and "cannot be reached" in done.stdout, done
    assert "nobody" not in done.stdout + done.stderr
    listed = json.loads(run(hub, "endpoint", "list", "--json"))
    assert [(e["name"], e["profile"], "last_call" in e) for e in listed] == [("kitchen", "relay", False)]
    assert "endpoint:kitchen" in run(hub, "audit", "stats") and "no call arrived" in run(hub, "audit", "stats")
    tested = run(hub, "endpoint", "test", "kitchen", code=1)
    assert "no call has arrived yet" in tested
    run(hub, "endpoint", "remove", "kitchen")
    assert json.loads(run(hub, "endpoint", "list", "--json")) == []


def test_a_time_or_an_operation_that_is_none_is_said(hub):
    run(hub, "audit", "--since", "yesterday", code=2)
    run(hub, "dispute", "nothing", code=2)
