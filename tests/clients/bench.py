"""`make bench`: what a tool call takes on this machine, whole and by stage, through the official SDK and a simulated device.
A relay must hold for 200 ms before it is confirmed (semantics 3.6): that is in `waiting_read_back`, by design."""

import asyncio
import logging
import os
import pathlib
import platform
import tempfile
import time

from home import PATIENCE_S, Hub, Sim
from mcp import Client

CALLS = int(os.environ.get("CALLS", "50"))


def quantiles(values):
    ordered = sorted(values)
    return [ordered[min(len(ordered) - 1, int(len(ordered) * q))] for q in (0.5, 0.95, 0.99)]


def line(what, values):
    print(f"{what:<44} {len(values):>6} " + " ".join(f"{v:>9.2f}" for v in quantiles(values)))


async def load(hub, tool, names, arguments):
    """Each name in a session of its own, one call after the other: seconds of each call, and the answers."""
    took, answers = [], []

    async def one(name):
        async with Client(hub.mcp, mode="legacy", read_timeout_seconds=PATIENCE_S) as client:
            for i in range(CALLS):
                begun = time.perf_counter()
                result = await client.call_tool(tool, arguments(name, i))
                took.append((time.perf_counter() - begun) * 1000)
                answers.append(result.structured_content)

    await asyncio.gather(*(one(name) for name in names))
    return took, answers


def main():
    logging.getLogger("mcp").setLevel(logging.ERROR)  # a session that ends is no news
    with tempfile.TemporaryDirectory() as folder:
        hub = Hub(pathlib.Path(folder))
        names = [f"lamp-{i}" for i in range(8)]
        sims = [Sim(hub, name) for name in names]
        try:
            hub.online(*names)
            print(
                f"{platform.machine()}, {os.cpu_count()} processors, {CALLS} calls a caller; milliseconds; the callers are Python, on the same processors"
            )
            print(f"{'what':<44} {'calls':>6} {'p50':>9} {'p95':>9} {'p99':>9}")
            for callers in (1, 8):
                took, _ = asyncio.run(load(hub, "ping", names[:callers], lambda _name, _i: {}))
                line(f"ping, {callers} callers", took)
                took, _ = asyncio.run(load(hub, "get_device_state", names[:callers], lambda name, _i: {"device": name}))
                line(f"get_device_state (asks the device), {callers}", took)
                switch = lambda name, i: {"device": name, "to": ("on", "off")[i % 2]}  # noqa: E731
                took, answers = asyncio.run(load(hub, "switch_device", names[:callers], switch))
                line(f"switch_device, {callers} callers, whole", took)
                stages = dict.fromkeys(stage for answer in answers for stage in answer["stages_ms"])
                for stage in stages:
                    line(f"    {stage}", [a["stages_ms"][stage] for a in answers if stage in a["stages_ms"]])
                failed = [a for a in answers if not a["success"]]
                assert not failed, failed[0]
            print(f"resident memory of the hub: {hub.total('process_resident_memory_bytes') / 1e6:.1f} MB")
        finally:
            for process in (*sims, hub):
                process.stop()


if __name__ == "__main__":
    main()
