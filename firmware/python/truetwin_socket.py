"""A socket (or lamp) for truetwin in Python: level 1 of the native protocol, over MQTT 3.1.1 or 5 without TLS. Copy it, put your pin
into `Relay`, and the password that `truetwin device add lamp` shows into a file of yours; run:
python truetwin_socket.py --host 192.168.1.10 --name lamp --password-file lamp.secret [--mqtt 5]"""
import argparse, json, os, queue, socket, time
import paho.mqtt.client as mqtt  # pip install paho-mqtt

class Relay:
    """Your hardware. `read` must look at the pad, or at a sensor (evidence "sensor"), never at what was last asked for."""
    evidence = "pin"
    def __init__(self): self.level = False  # simulated; on a Raspberry Pi: self.pin = gpiozero.DigitalOutputDevice(17)
    def drive(self, on): self.level = on    # self.pin.value = on
    def read(self): return self.level       # return bool(self.pin.value)

class Device:
    def __init__(self, name, password, relay, host="127.0.0.1", port=1883, version=3):
        self.name, self.relay, self.boot, self.seq = name, relay, os.urandom(4).hex(), 0
        self.session, self.hub, self.epoch, self.beat_s, self.beaten = None, None, 0, 10, 0
        self.seen, self.last, self.inbox = {}, (None, None, None), queue.SimpleQueue()
        self.mqtt = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2, client_id=name, protocol={3: mqtt.MQTTv311, 5: mqtt.MQTTv5}[version])
        self.mqtt.username_pw_set(name, password)
        self.mqtt.will_set(f"truetwin/{name}/status", json.dumps({"boot": self.boot}), qos=1)
        self.mqtt.on_socket_open = lambda c, _, s: s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # else 40 ms each
        self.mqtt.on_connect = lambda c, _, flags, code, props: (print("broker:", code, flush=True), c.subscribe(f"truetwin/{name}/command"))
        self.mqtt.on_subscribe = lambda *_: self.hello()
        self.mqtt.on_message = lambda c, _, m: m.retain or self.inbox.put(m.payload)  # a retained command is no command
        self.mqtt.connect(host, port, keepalive=20)
    def event(self, event, **fields):
        self.seq += 1
        fields = {"event": event, "session": self.session, "boot": self.boot, "seq": self.seq, "up_ms": time.monotonic_ns() // 10**6} | fields
        self.mqtt.publish(f"truetwin/{self.name}/event", json.dumps({k: v for k, v in fields.items() if v is not None}), qos=1)
    def hello(self):
        self.session = None  # nothing is obeyed before the hub's welcome
        relay = {"name": "relay", "role": "socket", "kind": "bool", "feedback": self.relay.evidence, "expected_ms": 300,
                 "stable_ms": 200, "settable": True, "repeatable": True}
        self.event("hello", proto=1, level=1, fw="1.0", model="python-socket", desc="socket-1", properties=[relay], actions=[],
                   state={"relay": self.relay.read()}, evidence={"relay": relay["feedback"]}, seen=self.seen)
    def report(self, op, result, reason, on, **more):
        self.event("device_action_report", op=op, action="set", property="relay", result=result, reason=reason,
                   status={"relay": on}, evidence={"relay": self.relay.evidence}, **more)
    def obey(self, c):
        word, op, read = c.get("command"), c.get("op"), self.relay.read()
        if word in ("refused", "error"):
            print("the hub says:", c, flush=True)  # what it did not like, and where
        elif word == "welcome" and not (c["hub"] == self.hub and c["epoch"] < self.epoch):
            self.session, self.hub, self.epoch, self.beat_s = c["session"], c["hub"], c["epoch"], c["heartbeat_ms"] / 1000
        elif self.session is None or c.get("session") != self.session:
            pass  # meant for an earlier connection
        elif word == "get_device_state":
            self.event("device_state", op=op, status={"relay": read}, evidence={"relay": self.relay.evidence}, seen=self.seen)
        elif word == "set" and op == self.last[0]:
            self.report(*self.last, read, dup=True)  # told again: the result again, with what is so now; nothing moves
        elif word == "set" and (c["property"] != "relay" or type(c["value"]) is not bool):
            self.report(op, "rejected", "unsupported" if c["property"] != "relay" else "malformed", read)
        elif word == "set":
            self.report(op, "received", None, read)
            self.relay.drive(c["value"])
            read = self.relay.read()
            self.last = (op, *(("completed", None) if read == c["value"] else ("failed", "stuck")))
            if read == c["value"]: self.seen = {"relay": op}  # what failed is not in it
            self.report(*self.last, read)
    def run(self):  # one thread for network, commands and heartbeat: the heartbeat says that what drives is alive
        while True:
            if self.mqtt.loop(0.1) != mqtt.MQTT_ERR_SUCCESS:
                time.sleep(2)
                try: self.mqtt.reconnect()
                except OSError as error: print("no connection:", error, flush=True)
            while not self.inbox.empty():
                try: self.obey(json.loads(self.inbox.get()))
                except (ValueError, KeyError, AttributeError) as error: print("not understood:", repr(error), flush=True)
            if self.session and time.monotonic() - self.beaten > self.beat_s:
                self.beaten = time.monotonic()
                self.event("heartbeat")

if __name__ == "__main__":
    args = argparse.ArgumentParser()
    for flag, default in {"--host": "127.0.0.1", "--port": 1883, "--name": "lamp", "--password-file": "lamp.secret", "--mqtt": 3}.items():
        args.add_argument(flag, default=default, type=type(default))
    a = args.parse_args()
    try: device = Device(a.name, open(a.password_file).read().strip(), Relay(), a.host, a.port, a.mqtt)
    except OSError as error: raise SystemExit(f"cannot start: {error}; is {a.password_file} there (`truetwin device add {a.name}`), and a hub at {a.host}:{a.port}?") from error
    device.run()
