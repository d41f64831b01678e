"""Starting, stopping, and what a second hub or a wrong setting is told. Exit codes: 2 usage or configuration, 4 the address or
the data folder is taken (`truetwin --help`)."""

import json
import signal
import socket
import subprocess

from home import BINARY, PATIENCE_S, Hub, until


def run(*arguments):
    """A command that must end by itself: exit code, output, errors."""
    done = subprocess.run([BINARY, *map(str, arguments)], capture_output=True, text=True, timeout=PATIENCE_S)
    return done.returncode, done.stdout, done.stderr


def serve(folder, *more):
    return run("serve", "--data", folder, "--mqtt", "127.0.0.1:0", "--http", "127.0.0.1:0", *more)


def test_sigterm_answers_every_waiting_caller_and_exits_with_0(hub, sim):
    names = [f"lamp-{i}" for i in range(5)]
    sims = [sim(name) for name in names]
    hub.online(*names)
    for lamp in sims:
        lamp.fault("frozen")
    calls = [hub.calling("switch_device", device=name, to="on") for name in names]
    until(
        "five operations are in flight",
        lambda: hub.total("truetwin_operations_in_flight") == len(names),
        otherwise=hub.told,
    )
    hub.popen.send_signal(signal.SIGTERM)
    answers = [call.result(PATIENCE_S) for call in calls]
    for answer in answers:
        assert answer["success"] is False and answer["result"] in {"unconfirmed", "failed"} and answer["say"], answer
    assert hub.popen.wait(15) == 0, hub.told()
    assert not (hub.data / "hub.json").exists(), "a hub that has stopped says no address"


def test_sigint_stops_it_too(hub):
    hub.popen.send_signal(signal.SIGINT)
    assert hub.popen.wait(15) == 0, hub.told()


def test_a_second_hub_on_the_same_data_says_so(hub):
    code, _, errors = serve(hub.data)
    assert code == 4 and str(hub.data) in errors, errors
    assert hub.healthy()


def test_a_killed_hub_leaves_nothing_that_hinders_the_next(tmp_path, keep):
    first = keep(Hub(tmp_path))
    first.add("lamp")
    first.popen.kill()
    first.popen.wait(5)
    (tmp_path / "data" / "hub.json").unlink(missing_ok=True)
    assert keep(Hub(tmp_path)).healthy()


def test_an_address_in_use_is_said_with_the_address(tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        code, _, errors = run("serve", "--data", tmp_path / "data", "--mqtt", address, "--http", "127.0.0.1:0")
    assert code not in {0, 101} and address in errors, errors


def test_a_wrong_setting_is_said_with_its_line(tmp_path):
    config = tmp_path / "wrong.toml"
    config.write_text("[mqtt]\nlisten = 5\ncolour = 'red'\n")
    code, _, errors = serve(tmp_path / "data", "--config", config)
    assert code == 2 and "listen" in errors and "panicked" not in errors, errors


def test_a_device_name_that_cannot_be_is_said_and_none_is_made(tmp_path):
    code, printed, errors = run("device", "add", "Wohnzimmer Lampe", "--json", "--data", tmp_path / "data")
    assert code == 2 and not printed and "a-z" in errors, errors


def test_device_add_prints_what_a_device_needs_and_nothing_else(hub):
    code, printed, _ = run("device", "add", "lamp", "--json", "--data", hub.data)
    told = json.loads(printed)
    assert code == 0 and told["device"] == "lamp" and told["mqtt"] == hub.mqtt and len(told["password"]) >= 16
    code, printed, errors = run("device", "add", "lamp", "--json", "--data", hub.data)
    assert code not in {0, 101} and "lamp" in errors, "a second device of that name"


def test_passwords_are_not_in_the_log(hub, sim):
    sim("lamp")
    hub.online("lamp")
    password = (hub.folder / "lamp.secret").read_text().strip()
    hub.call("switch_device", device="lamp", to="on")
    assert password not in hub.output()


def test_the_demonstration_ends_well_in_both_languages():
    for language in ("en", "zh"):
        code, printed, errors = run("demo", "--exit", "--lang", language)
        assert code == 0 and printed, errors
