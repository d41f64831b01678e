"""Fixtures. Nothing is built here: the hub's binary is $TRUETWIN, or target/ci/truetwin."""

import contextlib

import pytest
from home import BINARY, PATIENCE_S, Hub, Mosquitto, RawDevice, Sim
from interop import RIGHTS, Peer, account
from mcp import Client, StdioServerParameters


@pytest.fixture
def stack():
    """What is pushed here is stopped at the end of the test, last first."""
    with contextlib.ExitStack() as things:
        yield things


@pytest.fixture
def keep(stack):
    """Gives back a thing and stops it at the end of the test."""

    def kept(thing):
        stack.callback(thing.stop)
        return thing

    return kept


@pytest.fixture
def mosquitto(tmp_path, keep):
    return keep(Mosquitto(tmp_path))


@pytest.fixture
def hub(tmp_path, keep):
    assert BINARY.exists(), f"{BINARY} is not there: `make binary` builds it, or TRUETWIN names another"
    return keep(Hub(tmp_path))


@pytest.fixture
def sim(hub, keep):
    """Starts simulated devices of this test's hub."""
    return lambda name, fault="none", kind="socket": keep(Sim(hub, name, fault, kind))


@pytest.fixture(params=["http", "bridge"])
def way(request):
    """How a client of the official SDK reaches a hub: over HTTP, or through the bridge on standard input and output."""

    def connected(hub, mode, **more):
        server = hub.mcp
        if request.param == "bridge":
            server = StdioServerParameters(command=str(BINARY), args=["mcp", "--data", str(hub.data)])
        return Client(server, mode=mode, read_timeout_seconds=PATIENCE_S, **more)

    return connected


@pytest.fixture
def raw(hub, keep):
    """Starts devices that say whatever the test wants."""
    return lambda name, **more: keep(RawDevice(hub, name, **more))


@pytest.fixture
def peers(hub, keep):
    """Makes clients of service accounts: peers(version) of one, peers(version, user="two") of another."""
    passwords = {}

    def made(version, user="one", rights=RIGHTS, **more):
        if user not in passwords:
            passwords[user] = account(hub, user, rights)
        return keep(Peer(hub, user, passwords[user], version, **more))

    made.password = passwords.get
    return made
