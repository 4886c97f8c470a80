"""Compares perfuse with llvm-xray on one XRay log of 20 million records: account, timeline export, decoding.

The log is from the corpus (lua, 161 MB unpacked) and is stored in $PERFUSE_BENCH_DIR (build/bench if not set). It is in
the page cache for both programs.
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
LLVM_XRAY = ("llvm-xray-22", "llvm-xray")
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
    log = options.log or _unpacked(cache)
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

    def ours(*arguments: str | Path) -> measure.Cost:
        command = [PERFUSE, *arguments]
        runs = [
            measure.run(command, cache / "perfuse.txt", cache, accept=(0, HAS_FINDINGS)) for _ in range(options.runs)
        ]
        return measure.best(runs)

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
    faster, memory_ratio = account_peer.wall_s / account.wall_s, account_peer.rss_bytes / account.rss_bytes
    export = chrome_peer.wall_s / chrome.wall_s
    goals = [
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


def _unpacked(cache: Path) -> Path:
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
