"""What the client tests start: the hub, simulated devices, Mosquitto, Prometheus. Everything on free ports of loopback, in
temporary folders; each wait has a bound, awaits a fact and says, when the bound is hit, what the process printed."""

import asyncio
import concurrent.futures
import contextlib
import json
import os
import pathlib
import random
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request

import paho.mqtt.client as mqtt
from mcp import Client

ROOT = pathlib.Path(__file__).resolve().parents[2]
BINARY = pathlib.Path(os.environ.get("TRUETWIN", ROOT / "target" / "ci" / "truetwin")).absolute()
NPM = ROOT / ".build" / "npm" / "node_modules" / ".bin"
MICROPYTHON = pathlib.Path(sys.executable).parent / "micropython"
# Far above what anything here takes; only a hang meets it.
PATIENCE_S = 30


def until(what, fact, seconds=PATIENCE_S, otherwise=lambda: ""):
    """Asks `fact` again and again until it says something true, and gives that back."""
    end = time.monotonic() + seconds
    while True:
        value = fact()
        if value:
            return value
        assert time.monotonic() < end, f"after {seconds} s still not so: {what}\n{otherwise()}"
        time.sleep(0.02)


def free_port():
    """A port that nothing listens on, below those that the kernel gives to outgoing connections, so that none of the tests
    beside this one takes it in the meantime."""
    while True:
        with contextlib.suppress(OSError), socket.socket() as s:
            port = random.randrange(15_000, 32_000)
            s.bind(("127.0.0.1", port))
            return port


class Process:
    """A program with its output in a file, ended with SIGTERM and, if that does nothing, SIGKILL."""

    def __init__(self, argv, log, stdin=None, **more):
        self.argv, self.log = [str(a) for a in argv], pathlib.Path(log)
        with open(self.log, "ab") as out:
            self.popen = subprocess.Popen(self.argv, stdout=out, stderr=subprocess.STDOUT, stdin=stdin, **more)

    def output(self):
        return self.log.read_text(errors="replace")

    def told(self):
        return f"{' '.join(self.argv)}, exit code {self.popen.poll()}, printed:\n{self.output()[-4000:]}"

    def alive(self):
        assert self.popen.poll() is None, f"ended early: {self.told()}"
        return True

    def says(self, text, times=1):
        until(
            f"output has {text!r}",
            lambda: self.output().count(text) >= times or (self.alive() and False),
            otherwise=self.told,
        )

    def tell(self, line):
        self.popen.stdin.write((line + "\n").encode())
        self.popen.stdin.flush()

    def stop(self, seconds=15):
        if self.popen.poll() is None:
            self.popen.terminate()
            try:
                self.popen.wait(seconds)
            except subprocess.TimeoutExpired:
                self.popen.kill()
                self.popen.wait(5)
        return self.popen.returncode


def get(url, headers=None, seconds=10):
    with urllib.request.urlopen(urllib.request.Request(url, headers=headers or {}), timeout=seconds) as answer:
        return answer.read().decode()


# What a client of the streamable HTTP transport sends along.
HUB_HEADERS = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}


def post(url, body, headers, seconds=10):
    """Status and body of a POST, whatever the status is; status 0 if the server hung up instead."""
    try:
        with urllib.request.urlopen(urllib.request.Request(url, data=body, headers=headers), timeout=seconds) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()
    except (urllib.error.URLError, ConnectionError):
        return 0, b""


def listens(host, port):
    with socket.socket() as s:
        s.settimeout(1)
        return s.connect_ex((host, port)) == 0


class Mosquitto(Process):
    """Debian's broker on a free port, anyone may do anything: for the firmware alone, without the hub."""

    def __init__(self, folder):
        self.port = free_port()
        config = pathlib.Path(folder) / "mosquitto.conf"
        config.write_text(f"listener {self.port} 127.0.0.1\nallow_anonymous true\npersistence false\n")
        program = "/usr/sbin/mosquitto" if os.path.exists("/usr/sbin/mosquitto") else "mosquitto"
        super().__init__([program, "-c", config], pathlib.Path(folder) / "mosquitto.log")
        until("mosquitto listens", lambda: self.alive() and listens("127.0.0.1", self.port), otherwise=self.told)


class Hub(Process):
    """`truetwin serve` on free ports, in a data folder of its own."""

    def __init__(self, folder, *more, config=None, mqtt="127.0.0.1:0"):
        self.folder = pathlib.Path(folder)
        self.data = self.folder / "data"
        self.data.mkdir(parents=True, exist_ok=True)
        argv = [BINARY, "serve", "--data", self.data, "--mqtt", mqtt, "--http", "127.0.0.1:0", *more]
        if config:
            file = self.folder / "truetwin.toml"
            file.write_text(config)
            argv += ["--config", file]
        where = self.data / "hub.json"
        where.unlink(missing_ok=True)
        super().__init__(argv, self.folder / "hub.log")
        self.where = json.loads(
            until(
                "hub.json is there", lambda: self.alive() and where.exists() and where.read_text(), otherwise=self.told
            )
        )
        self.mqtt, self.http = self.where["mqtt"], self.where["http"]
        self.mqtt_port = int(self.mqtt.rsplit(":", 1)[1])
        self.mcp = self.http + "/mcp"
        until("healthz answers", self.healthy, otherwise=self.told)

    def healthy(self):
        self.alive()
        try:
            return get(self.http + "/healthz") is not None
        except OSError:
            return False

    def call(self, tool, mode="legacy", /, **arguments):
        """One tool call by the official SDK in a connection of its own: its structured answer."""
        return self.session(lambda client: client.call_tool(tool, arguments), mode).structured_content

    def session(self, work, mode="legacy"):
        """What `work(client)` gives in one connection of the official SDK."""

        async def run():
            async with Client(self.mcp, mode=mode, read_timeout_seconds=PATIENCE_S) as client:
                return await work(client)

        return asyncio.run(run())

    def calling(self, tool, **arguments):
        """The same call on a thread of its own: a future of its answer."""
        pool = concurrent.futures.ThreadPoolExecutor(1)
        future = pool.submit(self.call, tool, **arguments)
        pool.shutdown(wait=False)
        return future

    def online(self, *names):
        """Waits until the hub says of each of these devices that it is online."""
        until(
            f"{len(names)} devices are online",
            lambda: self.total("truetwin_devices", presence="online") >= len(names),
            otherwise=self.told,
        )

    def add(self, name):
        """Makes a device known; its password, and a file with it."""
        done = subprocess.run(
            [BINARY, "device", "add", name, "--json", "--data", self.data],
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
        )
        assert done.returncode == 0, f"device add {name}: {done.stderr}"
        password = json.loads(done.stdout)["password"]
        file = self.folder / f"{name}.secret"
        file.touch(0o600)
        file.write_text(password + "\n")
        return password, file

    def metrics(self):
        """Every sample of /metrics: {'name{label="value"}': number}."""
        lines = (line for line in get(self.http + "/metrics").splitlines() if line and not line.startswith("#"))
        return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in lines)}

    def total(self, name, **labels):
        """The sum of the samples of one metric that carry these labels."""
        wanted = [f'{key}="{value}"' for key, value in labels.items()]
        return sum(v for k, v in self.metrics().items() if k.split("{")[0] == name and all(w in k for w in wanted))


class Sim(Process):
    """A simulated device of the hub's own; `fault` switches what is wrong with it."""

    def __init__(self, hub, name, fault="none", kind="socket"):
        self.name = name
        _, file = hub.add(name)
        argv = [BINARY, "sim", "--mqtt", hub.mqtt, "--device", name, "--password-file", file, "--fault", fault]
        super().__init__(
            [*argv, "--kind", kind],
            hub.folder / f"{name}.log",
            stdin=subprocess.PIPE,
        )

    def fault(self, word):
        self.tell(f"fault {word}")
        self.says(f'"fault":"{word}"')


class RawDevice:
    """A connection with a device's name that says whatever a test wants, right or wrong, and remembers what it is told."""

    HELLO = {
        "event": "hello",
        "proto": 1,
        "level": 1,
        "fw": "1",
        "model": "raw",
        "desc": "raw-1",
        "actions": [],
        "seen": {},
        "state": {"relay": False},
        "evidence": {"relay": "pin"},
        "properties": [
            {
                "name": "relay",
                "role": "socket",
                "kind": "bool",
                "feedback": "pin",
                "settable": True,
                "repeatable": True,
                "expected_ms": 300,
                "stable_ms": 0,
            }
        ],
    }

    def __init__(self, hub, name, version=5, password=None, client_id=None, user=None):
        self.name, self.commands, self.seq, self.boot, self.acks, self.gone = name, [], 0, os.urandom(4).hex(), {}, []
        self.password = password or hub.add(name)[0]
        self.codes = []
        self.client = c = mqtt.Client(
            mqtt.CallbackAPIVersion.VERSION2,
            client_id=client_id or name,
            reconnect_on_failure=False,
            protocol=mqtt.MQTTv5 if version == 5 else mqtt.MQTTv311,
        )
        c.username_pw_set(user or name, self.password)
        c.on_connect = lambda _c, _u, _f, code, _p: self.codes.append(code)
        c.on_message = lambda _c, _u, message: self.commands.append(json.loads(message.payload))
        c.on_publish = lambda _c, _u, mid, code, _p: self.acks.update({mid: code})
        c.on_subscribe = lambda _c, _u, _mid, codes, _p: self.subscribed.extend(codes)
        c.on_disconnect = lambda _c, _u, _f, code, _p: self.gone.append(code)
        self.subscribed = []
        c.connect("127.0.0.1", hub.mqtt_port)
        c.loop_start()
        until("the broker's answer to CONNECT", lambda: self.codes)

    def subscribe(self, topic=None):
        before = len(self.subscribed)
        self.client.subscribe(topic or f"truetwin/{self.name}/command")
        return until("SUBACK", lambda: self.subscribed[before:] or self.gone)[0]

    def publish(self, payload, topic=None, qos=1, retain=False):
        """Publishes; the reason code of the acknowledgement, or of the end of the connection."""
        data = payload if isinstance(payload, (bytes, str)) else json.dumps(payload)
        mid = self.client.publish(topic or f"truetwin/{self.name}/event", data, qos=qos, retain=retain).mid
        return until("PUBACK or the end", lambda: self.acks.get(mid) or (self.gone and self.gone[0]))

    def event(self, event, **fields):
        self.seq += 1
        common = {"event": event, "boot": self.boot, "seq": self.seq, "up_ms": self.seq * 10}
        if getattr(self, "session", None):
            common["session"] = self.session
        return self.publish(common | fields)

    def hello(self, **changes):
        self.event(**(self.HELLO | changes))
        self.session = self.told("welcome")["session"]
        return self

    def told(self, command, after=0):
        return until(
            f"the command {command}",
            lambda: next((c for c in self.commands[after:] if c["command"] == command), None),
            otherwise=lambda: f"{self.commands[-3:]} {self.gone}",
        )

    def stop(self):
        self.client.disconnect()
        self.client.loop_stop()


class PaperHub:
    """The hub's side of the native protocol as far as a device needs it, written from the protocol's text, with a memory."""

    def __init__(self, port, device):
        self.device, self.events, self.sessions, self.ops = device, [], 0, 0
        self.client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2, client_id="paper-hub")
        self.client.on_message = self.hear
        self.client.connect("127.0.0.1", port)
        self.client.subscribe(f"truetwin/{device}/event", qos=1)
        self.client.loop_start()

    def hear(self, _client, _data, message):
        event = json.loads(message.payload)
        self.events.append(event)
        if event["event"] == "hello":
            self.sessions += 1
            self.command("welcome", hub="paper", epoch=1, heartbeat_ms=500)

    @property
    def session(self):
        return f"s{self.sessions}"

    def command(self, command, session=None, retain=False, **fields):
        payload = {"command": command, "session": session or self.session, "hub_ms": 1, **fields}
        self.client.publish(f"truetwin/{self.device}/command", json.dumps(payload), qos=1, retain=retain)

    def set(self, value, op=None, property="relay", **more):
        """One `set`; waits for its end and gives back all reports of it."""
        if op is None:
            self.ops += 1
            op = f"op{self.ops}"
        before = len(self.events)
        self.command("set", op=op, property=property, value=value, ttl_ms=1000, **more)
        last = ("completed", "failed", "rejected")
        mine = lambda: [e for e in self.events[before:] if e.get("op") == op]  # noqa: E731
        until(
            f"{op} has ended", lambda: any(e["result"] in last for e in mine()), otherwise=lambda: str(self.events[-5:])
        )
        return mine()

    def heard(self, event, after=0):
        return until(
            f"a {event} event",
            lambda: next((e for e in self.events[after:] if e["event"] == event), None),
            otherwise=lambda: str(self.events[-5:]),
        )

    def stop(self):
        self.client.disconnect()
        self.client.loop_stop()
