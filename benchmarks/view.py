"""Measures `perfuse view` on an XRay log of 20 million records: first picture, tiles, flame graphs of parts, memory.

The log is from the corpus (lua, 161 MB unpacked) and is stored in $PERFUSE_BENCH_DIR (build/bench if not set). A client
sends requests over one connection, as the page does: first what it needs for its first picture, then tiles of 200
windows of random place and size, each of 1,600 buckets and all rows.
"""

import argparse
import http.client
import json
import math
import os
import platform
import random
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import measure
import xray
from measure import Goal

WINDOWS, PARTS = 200, 10
WIDTH = 1600
"""Points of the screen that a window is wide."""
TILE_BUCKETS = 512


class Client:
    """A client of a server, over one connection."""

    def __init__(self, url: str) -> None:
        address, _, self._token = url.partition("/#t=")
        self._connection = http.client.HTTPConnection(address.removeprefix("http://"), timeout=120)

    def ask(self, question: str) -> bytes:
        """The bytes of an answer."""
        self._connection.request("GET", f"/api/{question}", headers={"X-Perfuse-Token": self._token})
        answer = self._connection.getresponse()
        body = answer.read()
        if answer.status != 200:
            raise measure.CommandError(f"{question}: {answer.status} {body[:200]!r}")
        return body

    def get(self, question: str) -> Any:
        """An answer in JSON."""
        return json.loads(self.ask(question))

    def wait(self, member: str) -> None:
        """Waits until a member of the state is `ready`."""
        state = self.get("state")
        while state[member] != "ready":
            if "failed" in (state["state"], state["timeline"]):
                raise measure.CommandError(str(state["error"]))
            state = self.get(f"state?after={state['generation']}")


def tiles_of(start_ns: int, window_ns: int, tracks: str) -> str:
    """The request for a window: the finest tiles with at most a bucket for each point of the screen."""
    k = max(0, math.ceil(math.log2(window_ns / WIDTH)))
    tile_ns = TILE_BUCKETS << k
    return f"tiles?k={k}&first={start_ns // tile_ns}&last={(start_ns + window_ns) // tile_ns}&tracks={tracks}"


def main() -> int:
    """Runs the benchmark and prints the results; returns 1 if a goal is not met."""
    return run(__doc__ or "", _measured)


def run(description: str, measured: Callable[[int, str, float], list[Goal]]) -> int:
    """Starts `perfuse view` on the log, measures it and prints the goals; returns 1 if one is not met.

    Args:
        description: The text of `--help`.
        measured: Measures the viewer: gets its pid, its address, and when it was started (`time.perf_counter`).
    """
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--log", type=Path, metavar="FILE", help="use this recording of calls (no goals)")
    options = parser.parse_args()
    measure.compile_perfuse()
    cache = Path(os.environ.get("PERFUSE_BENCH_DIR", "build/bench")).resolve() / "xray"
    cache.mkdir(parents=True, exist_ok=True)
    log = options.log or xray.unpacked(cache)
    measure.warm(log)
    print(f"{log.name}: {log.stat().st_size:,} bytes")
    print(f"{platform.platform()}, {os.cpu_count()} processors\n")

    started = time.perf_counter()
    command = [xray.PERFUSE, "view", "--no-browser", log]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            goals = measured(process.pid, process.stdout.readline().strip(), started)
        finally:
            process.terminate()
    print()
    for goal in goals:
        print(goal)
    return 0 if options.log or all(goal.is_met for goal in goals) else 1


def _measured(pid: int, address: str, started: float) -> list[Goal]:
    client = Client(address)
    times = {"the URL": time.perf_counter() - started}
    client.wait("state")
    overview = client.get("overview")
    times["overview"] = time.perf_counter() - started
    client.wait("timeline")
    timeline = client.get("timeline")
    client.ask("symbols")
    span, tracks = overview["span_ns"], ",".join(str(track["track"]) for track in timeline["tracks"])
    client.ask(tiles_of(0, span, tracks))
    first = times["first picture of all calls"] = time.perf_counter() - started
    for what, seconds in times.items():
        print(f"{what:32} {seconds:8.3f} s after the command")
    num = sum(track["slices"] for track in timeline["tracks"])
    print(f"{'calls':32} {num:8,} in {timeline['bytes'] / 1e6:,.0f} MB")

    drawn = random.Random(20261123)
    windows, sizes = [], []
    for _ in range(WINDOWS):
        window = int(span * 10 ** drawn.uniform(-5, 0))
        begun = time.perf_counter()
        answer = client.ask(tiles_of(drawn.randrange(max(1, span - window)), max(window, WIDTH), tracks))
        windows.append(time.perf_counter() - begun)
        sizes.append(len(answer))
    middle, most = percentile(windows, 0.5), percentile(windows, 0.95)
    size = f"{max(sizes) / 1e6:.2f} MB at most"
    print(f"{'tiles of a window':32} {middle * 1e3:8.1f} ms median, {most * 1e3:.1f} ms p95, {size}")

    parts = []
    for number in range(PARTS):
        begun = time.perf_counter()
        client.ask(f"tree?from={span * number // (2 * PARTS)}&to={span * (number + PARTS) // (2 * PARTS)}")
        parts.append(time.perf_counter() - begun)
    print(f"{'flame graph of half the time':32} {percentile(parts, 0.5) * 1e3:8.1f} ms median")
    print(f"{'memory of the server':32} {measure.peak_bytes(pid) / 1e6:8,.0f} MB")
    return [
        Goal(f"first picture {first:.2f} s after the command: at most 2 s", first <= 2),
        Goal(f"tiles of a window in {most * 1e3:.0f} ms (p95): at most 50 ms", most <= 0.050),
    ]


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest of the values that at least this share (0 to 1) of them do not exceed."""
    ordered = sorted(values)
    return ordered[math.ceil(len(ordered) * share) - 1]


if __name__ == "__main__":
    sys.exit(main())
