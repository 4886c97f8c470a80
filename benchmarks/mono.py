"""Compares perfuse with mprof-report on logs of a compiler run: allocations, calls, heap snapshots, lists of records.

The compiler is Mono's; many_classes.py writes the program that it compiles. The logs are made once, in two minutes,
and stored in $PERFUSE_BENCH_DIR (build/bench if not set). The whole benchmark takes less than five minutes. It needs
mono, mcs and mprof-report, and the corpus for the log whose records are listed (3 MB). For heap snapshots of this
size the overview reports contents by type, as mprof-report does; mono_heap.py measures retained sizes.
"""

import argparse
import os
import platform
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import many_classes
import measure
from measure import Goal

PERFUSE = Path(sys.executable).with_name("perfuse")
CORPUS = Path(os.environ.get("PERFUSE_CORPUS", Path(__file__).parents[2] / "shared" / "corpus"))
COMPILER = "/usr/lib/mono/4.5/mcs.exe"
PEER = "mprof-report"
HAS_FINDINGS = 1
"""Exit code of a successful report with diagnostics."""


@dataclass(frozen=True, slots=True)
class LogKind:
    """A log: profiler options, number of source files, largest table, minimum speed-up of a report."""

    name: str
    options: str
    num_files: int
    table: str
    at_least: float


KINDS = (
    LogKind("big-alloc", "alloc,legacy,jit", 64, "allocations", 1.5),
    LogKind("large-calls", "nodefaults,calls,calldepth=100", 230, "call_events", 1.5),
    LogKind("large-heapshot", "heapshot,heapshot-on-shutdown", 170, "heap_objects", 1.5),
)


def main() -> int:
    """Runs the benchmark and prints the results; returns 1 if a goal is not met."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=3, metavar="N", help="runs of each; the best counts")
    parser.add_argument("--log", type=Path, metavar="FILE", help="use this log (no goals)")
    options = parser.parse_args()
    measure.compile_perfuse()
    if any(shutil.which(name) is None for name in ("mono", PEER)):
        print(
            "mono or mprof-report is not installed: apt-get install mono-runtime libmono-profiler mono-utils mono-mcs"
        )
        return 1
    cache = Path(os.environ.get("PERFUSE_BENCH_DIR", "build/bench")).resolve() / "mono"
    cache.mkdir(parents=True, exist_ok=True)
    print(f"{measure.output_of(PERFUSE, '--version')}, {measure.output_of('mono', '--version').splitlines()[0]}")
    print(f"{platform.platform()}, {os.cpu_count()} processors")
    if options.log:
        _compare(options.log, cache, options.runs)
        return 0
    goals = []
    for kind in KINDS:
        log = _recorded(kind, cache)
        faster = _compare(log, cache, options.runs)
        seconds, num_rows = min(measure.decode(log, kind.table) for _ in range(options.runs))
        log_bytes = log.stat().st_size
        copied, decoded = measure.copy_rate(log_bytes), log_bytes / seconds
        print(f"{kind.table}: {num_rows:,} rows in {seconds:.3f} s, {decoded / 1e6:.0f} MB/s of log")
        print(f"memory copy of equal size: {copied / 1e6:.0f} MB/s; decoding is 1/{copied / decoded:.1f} of it")
        if kind.at_least:
            what = f"{kind.name}: report {faster:.1f} times faster than mprof-report, at least {kind.at_least}"
            goals.append(Goal(what, faster >= kind.at_least))
        if kind.table == "allocations":
            what = f"{kind.table} decoded at 1/{copied / decoded:.1f} of a memory copy, at least 1/20"
            goals.append(Goal(what, copied <= 20 * decoded))
    goals.append(_compare_records(CORPUS / "mono" / "v17" / "everything.mlpd", cache, options.runs))
    print()
    print(*goals, sep="\n")
    return 0 if all(goal.is_met for goal in goals) else 1


def _compare(log: Path, cache: Path, runs: int) -> float:
    """The speed-up of the report over mprof-report."""
    measure.warm(log)
    print(f"\n{log.name}: {log.stat().st_size:,} bytes")
    ours = measure.best(
        [measure.run([PERFUSE, "report", log], cache / "perfuse.txt", cache, (0, HAS_FINDINGS)) for _ in range(runs)]
    )
    theirs = measure.best([measure.run([PEER, log], cache / "peer.txt", cache) for _ in range(runs)])
    measure.print_costs({"perfuse report": ours, "mprof-report": theirs})
    return theirs.wall_s / ours.wall_s


def _compare_records(log: Path, cache: Path, runs: int) -> Goal:
    """All records as text, as mprof-report prints them for its developers."""
    measure.warm(log)
    print(f"\n{log.name}: {log.stat().st_size:,} bytes")

    def best(command: list[str | Path], output: str) -> measure.Cost:
        return measure.best([measure.run(command, cache / output, cache, (0, HAS_FINDINGS)) for _ in range(runs)])

    ours = best([PERFUSE, "records", "--limit", "0", log], "perfuse.txt")
    json = best([PERFUSE, "records", "--json", log], "perfuse.json")
    theirs = best([PEER, "--debug", log], "peer.txt")
    measure.print_costs(
        {"perfuse records --limit 0": ours, "perfuse records --json": json, "mprof-report --debug": theirs}
    )
    return Goal(f"records {theirs.wall_s / ours.wall_s:.1f} times as fast, at least 1", ours.wall_s <= theirs.wall_s)


def _recorded(kind: LogKind, cache: Path) -> Path:
    """Records one run of the compiler, unless the log exists."""
    log = cache / f"{kind.name}.mlpd"
    if not log.exists():
        sources = many_classes.write(cache / f"sources-{kind.num_files}", kind.num_files)
        part = log.with_suffix(".part")
        profile = f"--profile=log:{kind.options},output={part}"
        compiled = ["-target:library", "-r:System.Core.dll", f"@{sources.name}", f"-out:{cache / 'many.dll'}"]
        subprocess.run(
            ["mono", profile, COMPILER, *compiled], cwd=sources.parent, check=True, stdout=subprocess.DEVNULL
        )
        part.rename(log)
    return log


if __name__ == "__main__":
    sys.exit(main())
