# A small MQTT 3.1.1 client (will, QoS 1, one subscription) for MicroPython on a board and on Unix.
import select, socket, struct

def text(s): return struct.pack("!H", len(s.encode())) + s.encode()

class Mqtt:
    def __init__(self, host, port, name, password, will_topic, will, on_message):
        self.s, self.id, self.on_message, self.poller = socket.socket(), 1, on_message, select.poll()
        self.s.settimeout(5)  # a half packet or a full buffer is a dead link, not a reason to wait for ever
        self.s.connect(socket.getaddrinfo(host, port)[0][-1])
        try: self.s.setsockopt(6, 1, 1)  # TCP_NODELAY, else 40 ms a message
        except OSError: pass             # a port that can't
        self.poller.register(self.s, select.POLLIN)
        # Flags 0xce: user name, password, will at QoS 1, clean session. Keep-alive: 20 s.
        self.packet(0x10, text("MQTT") + b"\x04\xce\x00\x14" + b"".join(text(s) for s in (name, will_topic, will, name, password)))
        code = self.read(4)[3]
        if code: raise OSError("the broker refuses with code %d (4, 5: name or password)" % code)
    def packet(self, head, body):
        length, n = b"", len(body)
        while n > 127: length, n = length + bytes([n & 127 | 128]), n >> 7
        self.s.write(bytes([head]) + length + bytes([n]) + body)
    def read(self, n):
        b = b""
        while len(b) < n:
            part = self.s.read(n - len(b))
            if not part: raise OSError("connection closed")
            b += part
        return b
    def subscribe(self, topic): self.packet(0x82, b"\x00\x01" + text(topic) + b"\x00")
    def ping(self): self.packet(0xC0, b"")
    def publish(self, topic, payload):
        self.id = self.id % 65535 + 1
        self.packet(0x32, text(topic) + struct.pack("!H", self.id) + payload.encode())
    def poll(self, wait_ms):  # takes in one packet, if there is one; True if so
        if not self.poller.poll(wait_ms): return False
        head, b, n, shift = self.read(1)[0], 128, 0, 0
        while b > 127: b = self.read(1)[0]; n, shift = n | (b & 127) << shift, shift + 7
        body = self.read(n)
        if head & 0xF9 == 0x30:  # a publish that is not retained: a retained command is no command
            at = 2 + struct.unpack("!H", body)[0]
            if head & 6: self.packet(0x40, body[at:at + 2]); at += 2
            self.on_message(body[at:])
        return True
