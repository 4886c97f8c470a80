"""Measures the report of a small recording: most of its time is Python's start and imports.

A compiler run is recorded, about 1 MB, and is in the page cache for all. perf prints the same functions
(`perf report --no-inline`). A newer perf is measured too where PATH has it under the name `perf-7`.
"""

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

import measure
from measure import Goal

PERFUSE = Path(sys.executable).with_name("perfuse")
PEERS = ("perf", "perf-7")
MOST_SECONDS = 0.080
"""Goal for the wall time on an otherwise idle machine."""
SOURCE = "\n".join(f"int f{n}(int x) {{ return x * {n} + (x ^ {n + 1}); }}" for n in range(4000))


def main() -> int:
    """Runs the benchmark and prints the results; returns 1 if the goal is not met."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=15, metavar="N", help="runs of each, in turn; the best counts")
    parser.add_argument("--recording", type=Path, metavar="FILE", help="use this recording")
    options = parser.parse_args()
    measure.compile_perfuse()
    if shutil.which("perf") is None:
        print("perf is not installed: apt-get install linux-perf")
        return 1
    cache = Path(os.environ.get("PERFUSE_BENCH_DIR", "build/bench")).resolve() / "start"
    cache.mkdir(parents=True, exist_ok=True)
    recording = options.recording or _recorded(cache)
    measure.warm(recording)
    print(f"{recording.name}: {recording.stat().st_size:,} bytes")
    commands: dict[str, list[str | Path]] = {
        "perfuse report": [PERFUSE, "report", recording],
        "python -c pass": [sys.executable, "-c", "pass"],
    }
    for peer in measure.installed(*PEERS):
        commands[f"{peer} report --no-inline"] = [peer, "report", "--stdio", "--no-inline", "-i", recording]
    costs: dict[str, list[measure.Cost]] = {name: [] for name in commands}
    for _ in range(options.runs):
        for name, command in commands.items():
            costs[name].append(measure.run(command, cache / "out.txt", cache, (0, 1)))
    measure.print_costs({name: measure.best(runs) for name, runs in costs.items()})
    seconds = measure.best(costs["perfuse report"]).wall_s
    goal = Goal(f"report in {seconds * 1e3:.0f} ms, less than {MOST_SECONDS * 1e3:.0f}", seconds < MOST_SECONDS)
    print(f"\n{goal}")
    return 0 if goal.is_met else 1


def _recorded(cache: Path) -> Path:
    """Records a run of the C compiler, unless the file exists."""
    recording = cache / "perf.data"
    if not recording.exists():
        source = cache / "many.c"
        source.write_text(SOURCE, encoding="ascii")
        command = ["perf", "record", "-q", "-e", "cpu-clock", "-F", "2000", "-k", "mono", "-g", "-o", recording, "--"]
        compiler = [os.environ.get("CC", "cc"), "-O2", "-c", "-o", cache / "many.o", source]
        subprocess.run([*command, *compiler], check=True)
    return recording


if __name__ == "__main__":
    sys.exit(main())
