"""The conformance suite of MCP against the running hub, for each version of the protocol that it serves. What fails is listed
in conformance.toml with the reason; the list must be true: what fails unlisted, and what is listed and passes, fails here."""

import json
import os
import subprocess
import tomllib

import pytest
from home import NPM, PATIENCE_S, ROOT
from renaming import Renaming

# The released suite for the versions that it is for, the next one for the rest; and how many scenarios they have at least, so
# that a suite that runs nothing is noticed.
SUITES = [
    ("conformance-2026", "2025-03-26", 1),
    ("conformance", "2025-06-18", 26),
    ("conformance", "2025-11-25", 32),
    ("conformance-2026", "2026-07-28", 40),
]
# Scenarios of what the hub has under other names.
RENAMED = [
    "completion-complete",
    "resources-read-text",
    "resources-subscribe",
    "resources-templates-read",
    "resources-unsubscribe",
    "tools-call-error",
    "tools-call-simple-text",
    "tools-call-with-progress",
]
FINE = {"SUCCESS", "INFO", "SKIPPED"}


def listed(version):
    """What is expected to fail in this version: {"scenario/check": why}."""
    text = (ROOT / "tests" / "clients" / "conformance.toml").read_text()
    entries = [entry for entry in tomllib.loads(text)["fails"] if version in entry["versions"]]
    return {check: entry["because"] for entry in entries for check in entry["checks"]}


def run(suite, folder, url, version, *which):
    """Runs some scenarios: {scenario: {check: (status, complaint)}}."""
    program = ROOT / ".build" / suite / "node_modules" / ".bin" / "conformance"
    argv = [NPM / "node", program, "server", "--url", url, "--spec-version", version, "-o", folder, *which]
    env = os.environ | {"HOME": str(folder.parent), "PATH": f"{NPM}:{os.environ['PATH']}"}
    done = subprocess.run(argv, env=env, capture_output=True, text=True, timeout=PATIENCE_S * 10)
    found = {}
    for file in folder.glob("server-*/checks.json"):
        # The folder is called server-NAME-DATE, the date in ISO form with dashes.
        name = "-".join(file.parent.name.removeprefix("server-").split("-")[:-6])
        checks = found.setdefault(name, {})
        for check in json.loads(file.read_text()):
            told = (check["status"], check.get("errorMessage") or "")
            # Of several of one name, what fails counts.
            if check["id"] not in checks or checks[check["id"]][0] in FINE:
                checks[check["id"]] = told
    assert found, f"nothing was run: {done.stdout[-2000:]}\n{done.stderr[-2000:]}"
    return found


@pytest.mark.parametrize(("suite", "version", "scenarios"), SUITES)
def test_what_the_hub_offers_conforms_and_what_it_does_not_is_listed(
    suite, version, scenarios, hub, sim, keep, tmp_path
):
    for name, fault in [("lamp", "none"), ("pump", "stuck"), ("123", "none")]:
        sim(name, fault)
    hub.online("lamp", "pump", "123")
    found = run(suite, tmp_path / "all", hub.mcp, version, "--suite", "all")
    assert len(found) >= scenarios, sorted(found)
    relay = keep(Renaming(hub.mcp))
    for scenario in RENAMED:
        if scenario in found:
            found |= run(suite, tmp_path / scenario, relay.url, version, "--scenario", scenario)
    failed = {
        f"{scenario}/{check}": f"{status}: {complaint}"
        for scenario, checks in found.items()
        for check, (status, complaint) in checks.items()
        if status not in FINE
    }
    expected = listed(version)
    surprises = {check: told for check, told in failed.items() if check not in expected}
    assert not surprises, json.dumps(surprises, indent=2)
    assert set(expected) - set(failed) == set(), "listed, and does not fail any more"
