"""Compares perfuse with perf on one recording of many JIT functions: time, memory, number of files written.

The recording is made once and stored in $PERFUSE_BENCH_DIR (build/bench if not set). It is in the page cache for both
programs. The goals apply to 100,000 functions. A newer perf is measured too where PATH has it under the name `perf-7`.
"""

import argparse
import os
import platform
import sys
from pathlib import Path

import measure
import recording
from measure import Cost, Goal

PERFUSE = Path(sys.executable).with_name("perfuse")
GOALS_ARE_FOR = 100_000
"""Number of functions; with fewer, the start of Python is most of the time."""

NEWER_PERF = "perf-7"
HAS_FINDINGS = 1
"""Exit code of a successful report with diagnostics."""


def main() -> int:
    """Runs the benchmark and prints the results; returns 1 if a goal is not met."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--functions", type=int, default=100_000, metavar="N", help="functions to compile")
    parser.add_argument("--runs", type=int, default=5, metavar="N", help="runs of perfuse; the best counts")
    options = parser.parse_args()
    measure.compile_perfuse()
    cache = Path(os.environ.get("PERFUSE_BENCH_DIR", "build/bench")).resolve()
    recorded = recording.make(cache, options.functions)
    measure.warm(recorded.perf_data, recorded.dump)

    dump_bytes = recorded.dump.stat().st_size
    print(f"{recorded.dump.name}: {dump_bytes:,} bytes; perf.data: {recorded.perf_data.stat().st_size:,} bytes")
    peers = measure.installed("perf", NEWER_PERF)
    versions = [measure.output_of(peer, "--version") for peer in peers]
    print(f"{', '.join(versions)}, {measure.output_of(PERFUSE, '--version')}")
    print(f"{platform.platform()}, {os.cpu_count()} processors\n")

    ours = measure.best([_perfuse_report(recorded, cache) for _ in range(options.runs)])
    costs = {"perfuse report": ours}
    screens = [_perfuse_annotate(recorded, cache) for _ in range(options.runs)]
    screen = costs["perfuse annotate of the dump"] = measure.best(screens)
    for peer in peers:
        inject, report = _perf(peer, recorded, cache)
        costs |= {
            f"{peer} inject --jit": inject,
            f"{peer} report --stdio": report,
            f"{peer}, both": inject + report,
        }
    theirs = min((costs[f"{peer}, both"] for peer in peers), key=lambda cost: cost.wall_s)
    measure.print_costs(costs)

    optimized = recording.make_optimized(cache, options.functions * 2 // 5)
    measure.warm(optimized)
    optimized_bytes = optimized.stat().st_size
    seconds, num_rows = min(measure.decode(optimized, "line_rows") for _ in range(options.runs))
    copied, decoded = measure.copy_rate(optimized_bytes), optimized_bytes / seconds
    print(f"\noptimized code (entries of baseline code have offsets of bytecode, not lines): {optimized_bytes:,} bytes")
    print(f"every debug entry decoded: {num_rows:,} line rows in {seconds:.3f} s, {decoded / 1e9:.2f} GB/s")
    print(f"memory copy of equal size: {copied / 1e9:.2f} GB/s; decoding is 1/{copied / decoded:.1f} of it\n")

    if options.functions < GOALS_ARE_FOR:
        return 0
    goals = [
        Goal(f"report in {ours.wall_s:.2f} s, at most 1.5", ours.wall_s <= 1.5),
        Goal(
            f"{theirs.wall_s / ours.wall_s:.0f} times faster than perf, at least 40",
            theirs.wall_s >= 40 * ours.wall_s,
        ),
        Goal(f"{ours.rss_bytes / 1e6:.0f} MB at peak, under 500", ours.rss_bytes < 500e6),
        Goal(f"code of one function in {screen.wall_s:.2f} s, at most 0.5", screen.wall_s <= 0.5),
        Goal(f"debug entries at 1/{copied / decoded:.1f} of a memory copy, at least 1/6", copied <= 6 * decoded),
    ]
    print(*goals, sep="\n")
    return 0 if all(goal.is_met for goal in goals) else 1


def _perfuse_report(recorded: recording.Recording, cache: Path) -> Cost:
    command: list[str | Path] = [PERFUSE, "report", recorded.perf_data, recorded.dump]
    return measure.run(command, cache / "perfuse.txt", recorded.dump.parent, accept=(0, HAS_FINDINGS))


def _perfuse_annotate(recorded: recording.Recording, cache: Path) -> Cost:
    """The first screen of one function, found by its handle."""
    command: list[str | Path] = [PERFUSE, "annotate", recorded.dump, "c1000"]
    return measure.run(command, cache / "annotated.txt", recorded.dump.parent, accept=(0, HAS_FINDINGS))


def _perf(perf: str, recorded: recording.Recording, cache: Path) -> tuple[Cost, Cost]:
    """The two steps of perf; the files that it writes for each function are counted and removed."""
    injected, directory = cache / "injected.data", recorded.dump.parent
    try:
        inject = measure.run(
            [perf, "inject", "--jit", "-i", recorded.perf_data, "-o", injected],
            cache / "inject.txt",
            directory,
        )
        report = measure.run([perf, "report", "--stdio", "--no-inline", "-i", injected], cache / "perf.txt", directory)
    finally:
        injected.unlink(missing_ok=True)
        for entry in os.scandir(directory):
            if entry.name.startswith("jitted-"):
                Path(entry.path).unlink()
    return inject, report


if __name__ == "__main__":
    sys.exit(main())
