# A truetwin socket: level 1 of the native protocol. Settings in settings.json; on Unix: micropython main.py FILE
import gc, json, os, sys, time
from mqtt import Mqtt

with open(sys.argv[1] if len(sys.argv) > 1 else "settings.json") as f: cfg = json.load(f)
try:
    import network  # joins and rejoins by itself; Unix has no such module and needs none
    wlan = network.WLAN(network.STA_IF)
    wlan.active(True)
    wlan.connect(cfg["ssid"], cfg["wifi_password"])
except ImportError: pass
try:
    from machine import Pin
    pin = Pin(cfg["pin"], Pin.OUT)  # Pin.OUT enables the input too: value() reads the pad, which is what "pin" claims
except ImportError:
    class pin:  # Unix has no pins: a simulated one
        level = [0]
        def value(*to): pin.level[:] = to or pin.level; return pin.level[0]

class Device:
    def __init__(self):
        self.name, self.boot, self.seq, self.up, self.tick = cfg["name"], "%08x" % int.from_bytes(os.urandom(4), "big"), 0, 0, time.ticks_ms()
        self.session = self.hub = self.link = self.known = None
        self.epoch, self.beat_ms, self.seen, self.last = 0, 10000, {}, (None, None, None)
    def up_ms(self):  # ticks_ms wraps after days, this does not
        now = time.ticks_ms()
        self.up, self.tick = self.up + time.ticks_diff(now, self.tick), now
        return self.up
    def event(self, event, **fields):
        self.seq += 1
        fields.update(event=event, session=self.session, boot=self.boot, seq=self.seq, up_ms=self.up_ms())
        self.link.publish("truetwin/%s/event" % self.name, json.dumps({k: v for k, v in fields.items() if v is not None}))
    def state(self, event, key="status", **fields):
        self.known = bool(pin.value())
        self.event(event, evidence={"relay": "pin"}, **{key: {"relay": self.known}}, **fields)
    def report(self, op, result, reason, **more):
        self.state("device_action_report", op=op, action="set", property="relay", result=result, reason=reason, **more)
    def obey(self, raw):
        try:
            c = json.loads(raw)
            word, op = c["command"], c.get("op")
            if word in ("refused", "error"): print("the hub says:", raw)
            elif word == "welcome" and not (c["hub"] == self.hub and c["epoch"] < self.epoch):
                self.session, self.hub, self.epoch, self.beat_ms = c["session"], c["hub"], c["epoch"], c["heartbeat_ms"]
            elif self.session is None or c.get("session") != self.session: pass  # meant for an earlier connection
            elif word == "get_device_state": self.state("device_state", op=op, seen=self.seen)
            elif word == "set" and op == self.last[0]: self.report(*self.last, dup=True)  # told again: nothing moves
            elif word == "set" and c["property"] != "relay": self.report(op, "rejected", "unsupported")
            elif word == "set" and not isinstance(c["value"], bool): self.report(op, "rejected", "malformed")
            elif word == "set":
                self.report(op, "received", None)
                pin.value(int(c["value"]))
                self.last = (op, "completed", None) if bool(pin.value()) == c["value"] else (op, "failed", "stuck")
                if self.last[1] == "completed": self.seen = {"relay": op}
                self.report(*self.last)
        except (ValueError, KeyError, TypeError) as e: print("not understood:", repr(e), raw)
    def run(self):
        self.session = None  # nothing is obeyed before the hub's welcome
        self.link = Mqtt(cfg["host"], cfg["port"], self.name, cfg["password"], "truetwin/%s/status" % self.name, json.dumps({"boot": self.boot}), self.obey)
        self.link.subscribe("truetwin/%s/command" % self.name)
        self.state("hello", "state", proto=1, level=1, fw="1.0", model="micropython-socket", desc="socket-1", actions=[], seen=self.seen, properties=[
            {"name": "relay", "role": "socket", "kind": "bool", "feedback": "pin", "expected_ms": 300, "stable_ms": 200, "settable": True, "repeatable": True}])
        heard = pinged = beaten = self.up_ms()
        while True:
            if self.link.poll(100): heard = self.up_ms()
            if self.up_ms() - heard > 20000: raise OSError("the broker is silent")
            if self.up - pinged > 8000: self.link.ping(); pinged = self.up
            if self.session and self.up - beaten > self.beat_ms: self.event("heartbeat"); beaten = self.up
            if bool(pin.value()) != self.known: self.state("device_state", cause="local")  # a button, a fault

device = Device()
while True:
    try: device.run()
    except OSError as e: print("no connection:", e)
    device.link = None; gc.collect(); time.sleep(2)  # gc closes the old socket: a board has few
