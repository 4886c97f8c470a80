"""Compares perfuse with llvm-xray on an XRay log of 20 million records: account, timeline export, decoding, lists, SQL.

The log is from the corpus (lua, 161 MB unpacked) and is stored in $PERFUSE_BENCH_DIR (build/bench if not set), with two
logs made from it: its first 10 MB, and its buffers ten times (1.6 GB). Each is in the page cache for both programs.
"""

import argparse
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import measure
import xray_logs
from measure import Goal

PERFUSE = Path(sys.executable).with_name("perfuse")
CORPUS = Path(os.environ.get("PERFUSE_CORPUS", Path(__file__).parents[2] / "shared" / "corpus"))
LLVM_XRAY = ("llvm-xray-22", "llvm-xray")
SHORT_BYTES, NUM_RUNS = 10_000_000, 10
"""Size of the short log, and how often the long log repeats the original."""
BY_FUNCTION = "SELECT function_id, count(*) AS calls, sum(self_ns) FROM slices GROUP BY ALL ORDER BY calls DESC"
BY_CALL = "SELECT count(*) FROM (SELECT slice_id, sum(self_ns) FROM slices GROUP BY ALL)"
"""A query with a group for each of 100 million calls: DuckDB needs more memory than it gets, and temporary files."""
HAS_FINDINGS = 1
"""Exit code of a successful report with diagnostics."""


def main() -> int:
    """Runs the benchmark and prints the results; returns 1 if a goal is not met."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5, metavar="N", help="runs of perfuse; the best counts")
    parser.add_argument("--log", type=Path, metavar="FILE", help="use this log (no goals)")
    options = parser.parse_args()
    measure.compile_perfuse()
    cache = Path(os.environ.get("PERFUSE_BENCH_DIR", "build/bench")).resolve() / "xray"
    cache.mkdir(parents=True, exist_ok=True)
    log = options.log or unpacked(cache)
    peer = next((name for name in LLVM_XRAY if shutil.which(name)), None)
    if peer is None:
        print("llvm-xray is not installed: apt-get install llvm-22")
        return 1
    measure.warm(log)

    log_bytes = log.stat().st_size
    print(f"{log.name}: {log_bytes:,} bytes")
    version = next(line.strip() for line in measure.output_of(peer, "--version").splitlines() if "version" in line)
    print(f"{version}, {measure.output_of(PERFUSE, '--version')}")
    print(f"{platform.platform()}, {os.cpu_count()} processors\n")

    def ours(*arguments: str | Path, once: bool = False) -> measure.Cost:
        command = [PERFUSE, *arguments]
        num_runs = 1 if once else options.runs
        return measure.best(
            [measure.run(command, cache / "perfuse.txt", cache, accept=(0, HAS_FINDINGS)) for _ in range(num_runs)]
        )

    def theirs(*arguments: str | Path) -> measure.Cost:
        return measure.run([peer, *arguments], cache / "llvm-xray.txt", cache)

    trace = cache / "trace.json"
    account, account_peer = ours("report", log), theirs("account", log)
    measure.print_costs({"perfuse report": account, "llvm-xray account": account_peer})
    print()
    chrome = ours("convert", log, "-o", trace, "--to", "chrome")
    chrome_peer = theirs("convert", "-f", "trace_event", "-o", trace, log)
    measure.print_costs({"perfuse convert --to chrome": chrome, "llvm-xray convert -f trace_event": chrome_peer})
    trace.unlink()

    seconds, num_rows = min(measure.decode(log, "call_events") for _ in range(options.runs))
    copied, decoded = measure.copy_rate(log_bytes), log_bytes / seconds
    print(f"\nevery record decoded: {num_rows:,} rows in {seconds:.3f} s, {decoded / 1e9:.2f} GB/s")
    print(f"memory copy of equal size: {copied / 1e9:.2f} GB/s; decoding is 1/{copied / decoded:.1f} of it\n")

    if options.log:
        return 0
    print()
    goals = _records(cache, log, ours, theirs) + _queries(cache, log, ours, account_peer)
    faster, memory_ratio = account_peer.wall_s / account.wall_s, account_peer.rss_bytes / account.rss_bytes
    export = chrome_peer.wall_s / chrome.wall_s
    goals += [
        Goal(f"account {faster:.1f} times faster than llvm-xray, at least 20", faster >= 20),
        Goal(f"in 1/{memory_ratio:.1f} of its memory, at most 1/15", memory_ratio >= 15),
        Goal(f"Chrome trace {export:.1f} times faster, at least 10", export >= 10),
        Goal(
            f"decoding at 1/{copied / decoded:.1f} of a memory copy, at least 1/5 or 1 GB/s",
            decoded >= min(copied / 5, 1e9),
        ),
    ]
    print(*goals, sep="\n")
    return 0 if all(goal.is_met for goal in goals) else 1


Run = Callable[..., measure.Cost]


def _records(cache: Path, log: Path, ours: Run, theirs: Run) -> list[Goal]:
    """Records of the middle of the log, and all records of a short one."""
    middle = log.stat().st_size // 16
    few = ours("records", log, "--range", f"{middle}..{middle + 4}")
    last = ours("records", log, "--range", f"{log.stat().st_size - 32:#x}..")
    first = ours("records", log, "--limit", "4")
    measure.print_costs(
        {
            "perfuse records --limit 4": first,
            "perfuse records --range, middle": few,
            "perfuse records --range, end": last,
        }
    )
    short = xray_logs.shortened(log, cache / "lua-10mb.xray", SHORT_BYTES)
    measure.warm(short)
    print(f"\n{short.name}: {short.stat().st_size:,} bytes")
    text, json = ours("records", short, "--limit", "0"), ours("records", short, "--json")
    dump = measure.best([theirs("fdr-dump", short) for _ in range(3)])
    measure.print_costs({"perfuse records --limit 0": text, "perfuse records --json": json, "llvm-xray fdr-dump": dump})
    print()
    far = max(cost.wall_s for cost in (first, few, last))
    return [
        Goal(f"four records of 20 million in {far:.2f} s, at most 0.3", far <= 0.3),
        Goal(f"records as text {dump.wall_s / text.wall_s:.1f} times as fast, at least 1", text.wall_s <= dump.wall_s),
        Goal(f"records as JSON {dump.wall_s / json.wall_s:.1f} times as fast, at least 1", json.wall_s <= dump.wall_s),
    ]


def _queries(cache: Path, log: Path, ours: Run, account_peer: measure.Cost) -> list[Goal]:
    """SQL over every call, and over those of a log of 1.6 GB with limited memory."""
    grouped = ours("query", log, BY_FUNCTION)
    measure.print_costs({"perfuse query, GROUP BY function": grouped, "llvm-xray account": account_peer})
    long = cache / "lua-1610mb.xray"
    if not long.exists():
        xray_logs.repeated(log, long, NUM_RUNS)
    measure.warm(long)
    print(f"\n{long.name}: {long.stat().st_size:,} bytes (llvm-xray: not run, it takes 26 times the size of a log)")
    long_grouped = ours("query", long, BY_FUNCTION, "--memory", "1GB", once=True)
    long_calls = ours("query", long, BY_CALL, "--memory", "1GB", once=True)
    measure.print_costs(
        {
            "perfuse query --memory 1GB, GROUP BY function": long_grouped,
            "perfuse query --memory 1GB, GROUP BY call": long_calls,
        }
    )
    print()
    small, peak = grouped.rss_bytes, max(long_grouped.rss_bytes, long_calls.rss_bytes)
    return [
        Goal(f"GROUP BY over 10 million calls in {small / 1e6:.0f} MB, under 600", small < 600e6),
        Goal(f"over 100 million calls in {peak / 1e6:.0f} MB with --memory 1GB", peak <= 1e9),
    ]


def unpacked(cache: Path) -> Path:
    """Unpacks the log, unless the unpacked file exists."""
    log = cache / "lua-161mb.xray"
    packed = CORPUS / "xray" / "big" / "lua-161mb.xray.zst"
    if not log.exists():
        part = log.with_suffix(".part")
        subprocess.run(["zstd", "--quiet", "--force", "-d", packed, "-o", part], check=True)
        part.rename(log)
    return log


if __name__ == "__main__":
    sys.exit(main())
