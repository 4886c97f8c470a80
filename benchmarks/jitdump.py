"""perfuse beside perf on one recording of very many JIT functions: time, memory, files left behind.

The recording is made once and kept in $PERFUSE_BENCH_DIR (build/bench if not set); both have it in the page
cache. The goals are the ones perfuse holds itself to for 100,000 functions.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import measure
import recording
from measure import Cost

PERFUSE = Path(sys.executable).with_name("perfuse")
DECODE = Path(__file__).with_name("decode_lines.py")
GOALS_ARE_FOR = 100_000
"""Functions; with fewer, starting Python is most of the time."""

FOUND_SOMETHING = 1
"""Exit code of a report that has diagnostics to tell; it did its job."""


@dataclass(frozen=True, slots=True)
class Goal:
    """Something measured and what it has to be."""

    what: str
    is_met: bool

    def __str__(self) -> str:
        return f"{'met     ' if self.is_met else 'NOT MET '} {self.what}"


def main() -> int:
    """Measures and prints; 1 where a goal is not met."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--functions", type=int, default=100_000, metavar="N", help="functions to compile")
    parser.add_argument("--runs", type=int, default=5, metavar="N", help="runs of perfuse; the best counts")
    options = parser.parse_args()
    cache = Path(os.environ.get("PERFUSE_BENCH_DIR", "build/bench")).resolve()
    recorded = recording.make(cache, options.functions)
    _warm(recorded)

    dump_bytes = recorded.dump.stat().st_size
    print(f"{recorded.dump.name}: {dump_bytes:,} bytes; perf.data: {recorded.perf_data.stat().st_size:,} bytes")
    print(f"{_said('perf', '--version')}, {_said(str(PERFUSE), '--version')}")
    print(f"{platform.platform()}, {os.cpu_count()} processors\n")

    ours = measure.best([_perfuse_report(recorded, cache) for _ in range(options.runs)])
    inject, report = _perf(recorded, cache)
    theirs = inject + report
    _print_costs(
        {
            "perfuse report": ours,
            "perf inject --jit": inject,
            "perf report --stdio": report,
            "perf, both": theirs,
        }
    )

    decoding = [_decode(recorded) for _ in range(options.runs)]
    seconds, num_rows = min(decoding)
    copied, decoded = measure.copy_rate(dump_bytes), dump_bytes / seconds
    print(f"\nevery debug entry decoded: {num_rows:,} line rows in {seconds:.3f} s, {decoded / 1e9:.2f} GB/s")
    print(f"memory copy of as much:    {copied / 1e9:.2f} GB/s; decoding is 1/{copied / decoded:.1f} of it\n")

    if options.functions < GOALS_ARE_FOR:
        return 0
    goals = [
        Goal(f"report in {ours.wall_s:.2f} s, at most 1.5", ours.wall_s <= 1.5),
        Goal(
            f"{theirs.wall_s / ours.wall_s:.0f} times faster than perf, at least 25",
            theirs.wall_s >= 25 * ours.wall_s,
        ),
        Goal(f"{ours.rss_bytes / 1e6:.0f} MB at peak, under 500", ours.rss_bytes < 500e6),
        Goal(f"decoding at {decoded / 1e9:.2f} GB/s, at least 1", decoded >= 1e9),
    ]
    print(*goals, sep="\n")
    return 0 if all(goal.is_met for goal in goals) else 1


def _perfuse_report(recorded: recording.Recording, cache: Path) -> Cost:
    command: list[str | Path] = [PERFUSE, "report", recorded.perf_data, recorded.dump]
    return measure.run(command, cache / "perfuse.txt", recorded.dump.parent, accept=(0, FOUND_SOMETHING))


def _perf(recorded: recording.Recording, cache: Path) -> tuple[Cost, Cost]:
    """perf's two steps; its file for each function is counted and taken away."""
    injected, directory = cache / "injected.data", recorded.dump.parent
    try:
        inject = measure.run(
            ["perf", "inject", "--jit", "-i", recorded.perf_data, "-o", injected],
            cache / "inject.txt",
            directory,
        )
        report = measure.run(["perf", "report", "--stdio", "-i", injected], cache / "perf.txt", directory)
    finally:
        injected.unlink(missing_ok=True)
        for entry in os.scandir(directory):
            if entry.name.startswith("jitted-"):
                Path(entry.path).unlink()
    return inject, report


def _decode(recorded: recording.Recording) -> tuple[float, int]:
    done = subprocess.run([sys.executable, DECODE, recorded.dump], capture_output=True, text=True, check=True)
    answer = json.loads(done.stdout)
    return answer["seconds"], answer["num_rows"]


def _print_costs(costs: dict[str, Cost]) -> None:
    first = next(iter(costs.values()))
    print(f"{'':20} {'wall s':>8} {'cpu s':>8} {'peak MB':>8} {'files':>8} {'ratio':>7}")
    for name, cost in costs.items():
        ratio = cost.wall_s / first.wall_s
        times = f"{cost.wall_s:8.2f} {cost.cpu_s:8.2f}"
        print(f"{name:20} {times} {cost.rss_bytes / 1e6:8.0f} {cost.num_files:8,} {ratio:6.1f}x")


def _warm(recorded: recording.Recording) -> None:
    for path in (recorded.perf_data, recorded.dump):
        with path.open("rb", buffering=0) as file:
            while file.read(1 << 24):
                pass


def _said(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


if __name__ == "__main__":
    sys.exit(main())
