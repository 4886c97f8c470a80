"""Compares perfuse with perf on recordings with copied stacks: unwinding all of them, with a name for every frame.

Two programs are recorded: gcc, a large program that is unwound by `.eh_frame`, and a small recursive program that is
also unwound by SFrame. The recording is in the page cache for both. perf prints every chain (`perf script`), perfuse
adds them up by stack (`perfuse convert --to collapsed`); neither resolves inlined calls. Needs 5 GB of disk. A newer
perf is measured too where PATH has it under the name `perf-7`.
"""

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import measure
from measure import Goal

PERFUSE = Path(sys.executable).with_name("perfuse")
PEERS = ("perf", "perf-7")
RECURSION = Path(__file__).parents[1] / "tests" / "truth" / "programs" / "recursion.c"


@dataclass(frozen=True, slots=True)
class RecordedProgram:
    """A program to record, and the minimum speed-up over perf.

    Each run is a new process. For a recording that perf reads in a second, the start of Python is half of the time.
    """

    name: str
    hertz: int
    at_least: int


COMPILER = RecordedProgram("compiler", 10_000, 10)
SMALL = RecordedProgram("recursion", 20_000, 8)
UNWIND = """
import json, sys, time
import perfuse as pf
profile = pf.fuse(sys.argv[1], debug_info=False)
started = time.perf_counter()
unwinding = profile.unwinding
seconds = time.perf_counter() - started
print(json.dumps([seconds, unwinding.num_stacks, sum(unwinding.frames.values()), unwinding.stops, unwinding.frames]))
"""


def main() -> int:
    """Runs the benchmark and prints the results; returns 1 if a goal is not met."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5, metavar="N", help="runs of each; the best counts")
    parser.add_argument("--recording", type=Path, metavar="FILE", help="use this recording (no goals)")
    options = parser.parse_args()
    measure.compile_perfuse()
    cache = Path(os.environ.get("PERFUSE_BENCH_DIR", "build/bench")).resolve() / "unwind"
    cache.mkdir(parents=True, exist_ok=True)
    if missing := [command for command in ("perf", "gcc") if shutil.which(command) is None]:
        print(f"not installed: {', '.join(missing)}")
        return 1
    versions = [measure.output_of(peer, "--version") for peer in measure.installed(*PEERS)]
    print(f"{', '.join(versions)}, {measure.output_of(PERFUSE, '--version')}")
    print(f"{platform.platform()}, {os.cpu_count()} processors")
    if options.recording:
        _compare(options.recording, cache, options.runs)
        return 0
    goals = []
    for program in (COMPILER, SMALL):
        faster, cpu_ratio = _compare(_recorded(program, cache), cache, options.runs)
        least = program.at_least
        goals.append(
            Goal(f"{program.name}: {faster:.1f} times faster than perf script, at least {least}", faster >= least)
        )
        goals.append(Goal(f"{program.name}: with {1 / cpu_ratio:.2f} of its CPU time, at most 1", cpu_ratio >= 1))
    print()
    print(*goals, sep="\n")
    return 0 if all(goal.is_met for goal in goals) else 1


def _compare(recording: Path, cache: Path, runs: int) -> tuple[float, float]:
    """Measures both programs on a recording and prints the results; returns the ratios of wall time and CPU time."""
    measure.warm(recording)
    print(f"\n{recording.name}: {recording.stat().st_size:,} bytes")
    fields = ["-F", "comm,tid,time,event,ip,sym,dso", "--no-inline"]
    convert = [PERFUSE, "convert", recording, "--no-debug-info", "--to", "collapsed", "-o", cache / "folded.txt"]
    ours = measure.best([measure.run(convert, cache / "perfuse.txt", cache, accept=(0, 1)) for _ in range(runs)])
    costs = {"perfuse convert --to collapsed": ours}
    for peer in measure.installed(*PEERS):
        script = [peer, "script", "-i", recording, *fields]
        costs[f"{peer} script"] = measure.best([measure.run(script, cache / "perf.txt", cache) for _ in range(runs)])
    measure.print_costs(costs)
    theirs = min((cost for cost in costs.values() if cost is not ours), key=lambda cost: cost.wall_s)

    answers = [json.loads(measure.output_of(sys.executable, "-c", UNWIND, recording)) for _ in range(runs)]
    seconds, num_stacks, num_frames, stops, found = min(answers)
    print(f"in process, chains read, unwound, named: {num_stacks:,} stacks in {seconds:.3f} s,", end=" ")
    print(f"{theirs.wall_s / seconds:.1f} times faster")
    print(f"{num_stacks / seconds:,.0f} stacks a second, {num_frames / seconds / 1e6:.1f} million frames")
    print(f"found by {found}; they end {stops}")
    return theirs.wall_s / ours.wall_s, theirs.cpu_s / ours.cpu_s


def _recorded(program: RecordedProgram, cache: Path) -> Path:
    """Records a program unless the recording exists."""
    recording = cache / f"{program.name}.perf.data"
    if recording.exists():
        return recording
    print(f"recording in {cache}", file=sys.stderr)
    command = compiling(cache) if program is COMPILER else _calling(cache)
    unfinished = recording.with_suffix(".unfinished")
    stacks = ["-e", "cpu-clock", "-F", str(program.hertz), "--call-graph", "dwarf,8192"]
    perf = ["perf", "record", "-qN", *stacks, "-o", unfinished, "--", *command]
    subprocess.run(perf, check=True, stdout=subprocess.DEVNULL)
    unfinished.rename(recording)
    return recording


def compiling(cache: Path) -> list[str | Path]:
    """A command that runs gcc for some seconds on six thousand functions."""
    source = cache / "functions.c"
    loop = "s += sin(a * k) + {0}.0 / (k + 1); if (s > 100) s -= a; else if (k % 3 == 0) s *= 1.5;"
    line = "double f{0}(double a, int n) {{ double s = 0; for (int k = 0; k < n; k++) {{ " + loop + " }} return s; }}"
    source.write_text("\n".join(["#include <math.h>", *(line.format(number) for number in range(6000))]) + "\n")
    return ["gcc", "-O2", "-c", source, "-o", cache / "functions.o"]


def _calling(cache: Path) -> list[str | Path]:
    """A command that runs the small program repeatedly."""
    program = cache / "recursion"
    subprocess.run(["gcc", "-O2", "-fomit-frame-pointer", "-Wa,--gsframe", RECURSION, "-o", program], check=True)
    return ["sh", "-c", f"for i in $(seq 32); do {program}; done"]


if __name__ == "__main__":
    sys.exit(main())
