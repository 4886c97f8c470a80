"""Compares perfuse with mprof-report on heap snapshots: dominators, retained sizes, paths; reverse references; exports.

The logs are made with Mono from the corpus' BigHeap.cs and stored in $PERFUSE_BENCH_DIR (build/bench if not set). The
time of mprof-report grows faster than linearly (its hash table uses linear probing), so the ratio depends on the size
of the snapshot. It is measured for a snapshot that takes mprof-report about a minute, and with --whole for the largest.
"""

import argparse
import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

import measure
from measure import Goal

PERFUSE = Path(sys.executable).with_name("perfuse")
CORPUS = Path(os.environ.get("PERFUSE_CORPUS", Path(__file__).parents[2] / "shared" / "corpus"))
TOOLS = ("mono", "mcs", "mprof-report")
HAS_FINDINGS = 1
"""Exit code of a successful report with diagnostics."""
EXPORTS = {"heapsnapshot": (), "hprof": (), "pftrace": ("-O", "max_objects=20000000")}
"""Names of files for other heap viewers, with the options of each."""
LARGEST = 5_000_000
"""Links and as many cells in the largest snapshot: 11.3 million objects."""


def main() -> int:
    """Runs the benchmark and prints the results; returns 1 if a goal is not met."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=3, metavar="N", help="runs of perfuse; the best counts")
    parser.add_argument(
        "--size", type=int, default=3_000_000, metavar="N", help="links in the snapshot for both programs"
    )
    parser.add_argument("--whole", action="store_true", help="run mprof-report on the largest snapshot too: 10 minutes")
    options = parser.parse_args()
    measure.compile_perfuse()
    missing = [tool for tool in TOOLS if shutil.which(tool) is None]
    if missing:
        print(f"{', '.join(missing)}: not installed: apt-get install mono-runtime mono-mcs mono-utils libmono-profiler")
        return 1
    cache = Path(os.environ.get("PERFUSE_BENCH_DIR", "build/bench")).resolve() / "mono"
    cache.mkdir(parents=True, exist_ok=True)
    print(f"{measure.output_of('mono', '--version').splitlines()[0]}, {measure.output_of(PERFUSE, '--version')}")
    print(f"{platform.platform()}, {os.cpu_count()} processors\n")

    def ours(log: Path) -> measure.Cost:
        command = [PERFUSE, "report", "--section", "heap", log]
        runs = [
            measure.run(command, cache / "perfuse.txt", cache, accept=(0, HAS_FINDINGS)) for _ in range(options.runs)
        ]
        return measure.best(runs)

    def export(log: Path, ending: str, *given: str) -> measure.Cost:
        out = cache / f"out.{ending}"
        command = [PERFUSE, "convert", log, "-o", out, "--force", *given]
        runs = [
            measure.run(command, cache / "convert.txt", cache, accept=(0, HAS_FINDINGS)) for _ in range(options.runs)
        ]
        out.unlink()
        return measure.best(runs)

    def theirs(log: Path) -> measure.Cost:
        return measure.run(["mprof-report", "--traces", log], cache / "mprof-report.txt", cache)

    def both(size: int) -> tuple[measure.Cost, float]:
        log = log_of(cache, size)
        cost, peer = ours(log), theirs(log)
        print(f"\n{log.name}: {log.stat().st_size:,} bytes")
        measure.print_costs({"perfuse report --section heap": cost, "mprof-report --traces": peer})
        return cost, peer.wall_s / cost.wall_s

    _, ratio = both(options.size)
    goals = [Goal(f"{ratio:.0f} times faster than mprof-report on {options.size:,} links, at least 10", ratio >= 10)]
    if options.whole:
        largest, ratio = both(LARGEST)
        goals.append(Goal(f"{ratio:.0f} times faster on the largest, at least 50", ratio >= 50))
    else:
        log = log_of(cache, LARGEST)
        largest = ours(log)
        print(f"\n{log.name}: {log.stat().st_size:,} bytes")
        measure.print_costs({"perfuse report --section heap": largest})
    log = log_of(cache, LARGEST)
    exports = {ending: export(log, ending, *options) for ending, options in EXPORTS.items()}
    print(f"\n{log.name} for other heap viewers")
    measure.print_costs({f"perfuse convert -o x.{ending}": cost for ending, cost in exports.items()})
    goals += [
        Goal(f"{ending} of it in {cost.wall_s:.1f} s, at most 15", cost.wall_s <= 15)
        for ending, cost in exports.items()
    ]
    goals += [
        Goal(f"the largest in {largest.wall_s:.1f} s, at most 10", largest.wall_s <= 10),
        Goal(f"and in {largest.rss_bytes / 1e9:.2f} GB, at most 2", largest.rss_bytes <= 2e9),
    ]
    print("", *goals, sep="\n")
    return 0 if all(goal.is_met for goal in goals) else 1


def log_of(cache: Path, size: int) -> Path:
    """A log with one snapshot of `size` links, as many cells and a quarter as many strings, made if missing."""
    log = cache / f"bigheap-{size}.mlpd"
    program = cache / "BigHeap.exe"
    if not log.exists():
        source = CORPUS / "mono" / "src" / "BigHeap.cs"
        subprocess.run(["mcs", f"-out:{program}", source], check=True)
        part = log.with_suffix(".part")
        profiler = f"log:nodefaults,gcroot,gc,heapshot=ondemand,heapshot-on-shutdown,output={part}"
        command = ["mono", f"--profile={profiler}", program, str(size)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        part.rename(log)
    measure.warm(log)
    return log


if __name__ == "__main__":
    sys.exit(main())
