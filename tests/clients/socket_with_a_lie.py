"""firmware/python's socket, unchanged, with a relay that says once, right after driving, that it has done what it has not."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "firmware" / "python"))
from truetwin_socket import Device, Relay  # noqa: E402


class LyingRelay(Relay):
    claim = None

    def drive(self, on):
        self.claim = on

    def read(self):
        claim, self.claim = self.claim, None
        return self.level if claim is None else claim


if __name__ == "__main__":
    port, name, secret, version = sys.argv[1:]
    Device(name, pathlib.Path(secret).read_text().strip(), LyingRelay(), port=int(port), version=int(version)).run()
