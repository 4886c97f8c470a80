"""perfuse beside perf on one recording with copies of stacks: all of them unwound, every frame named.

Both have the recording in the page cache. perf prints every chain (`perf script`), perfuse adds them up by stack
(`perfuse convert --to collapsed`); neither resolves inlined calls.
"""

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

import measure
from measure import Goal

PERFUSE = Path(sys.executable).with_name("perfuse")
PROGRAM = Path(__file__).parents[1] / "tests" / "truth" / "programs" / "recursion.c"
TIMES_FASTER = 10
"""A fresh process each; perf's start costs less, so a short recording is no comparison."""
UNWIND = """
import json, sys, time
import perfuse as pf
profile = pf.fuse(sys.argv[1], debug_info=False)
started = time.perf_counter()
told = profile.unwinding
seconds = time.perf_counter() - started
print(json.dumps([seconds, told.num_stacks, sum(told.frames.values()), told.stops, told.frames]))
"""


def main() -> int:
    """Measures and prints; 1 where a goal is not met."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5, metavar="N", help="runs of each; the best counts")
    parser.add_argument("--recording", type=Path, metavar="FILE", help="another recording than one made here")
    options = parser.parse_args()
    measure.compile_perfuse()
    cache = Path(os.environ.get("PERFUSE_BENCH_DIR", "build/bench")).resolve() / "unwind"
    cache.mkdir(parents=True, exist_ok=True)
    if missing := [command for command in ("perf", "gcc") if shutil.which(command) is None]:
        print(f"not installed: {', '.join(missing)}")
        return 1
    recording = options.recording or _record(cache)
    measure.warm(recording)

    print(f"{recording.name}: {recording.stat().st_size:,} bytes")
    print(f"{measure.said('perf', '--version')}, {measure.said(PERFUSE, '--version')}")
    print(f"{platform.platform()}, {os.cpu_count()} processors\n")
    fields = ["-F", "comm,tid,time,event,ip,sym,dso", "--no-inline"]
    script = ["perf", "script", "-i", recording, *fields]
    folded = cache / "folded.txt"
    convert = [PERFUSE, "convert", recording, "--no-debug-info", "--to", "collapsed", "-o", folded]
    ours = measure.best(
        [measure.run(convert, cache / "perfuse.txt", cache, accept=(0, 1)) for _ in range(options.runs)]
    )
    theirs = measure.best([measure.run(script, cache / "perf.txt", cache) for _ in range(options.runs)])
    measure.print_costs({"perfuse convert --to collapsed": ours, "perf script": theirs})

    answers = [json.loads(measure.said(sys.executable, "-c", UNWIND, recording)) for _ in range(options.runs)]
    seconds, num_stacks, num_frames, stops, found = min(answers)
    print(f"\nin process, chains read, unwound, named: {num_stacks:,} stacks in {seconds:.3f} s")
    print(f"{num_stacks / seconds:,.0f} stacks a second, {num_frames / seconds / 1e6:.1f} million frames")
    print(f"found by {found}; they end {stops}\n")
    faster, leaner = theirs.wall_s / ours.wall_s, theirs.cpu_s / ours.cpu_s
    goals = [
        Goal(f"{faster:.1f} times faster than perf script, at least {TIMES_FASTER}", faster >= TIMES_FASTER),
        Goal(f"with {1 / leaner:.2f} of its processor time, at most 1", leaner >= 1),
        Goal(f"{theirs.wall_s / seconds:.1f} times faster in process, at least 4", theirs.wall_s / seconds >= 4),
    ]
    for goal in goals if options.recording is None else ():
        print(goal)
    return 0 if options.recording or all(goal.is_met for goal in goals) else 1


def _record(cache: Path) -> Path:
    """Records a program again and again, or takes what an earlier call has recorded."""
    recording = cache / "recursion.perf.data"
    if recording.exists():
        return recording
    print(f"recording in {cache}", file=sys.stderr)
    program = cache / "recursion"
    flags = ["-O2", "-fomit-frame-pointer", "-Wa,--gsframe"]
    subprocess.run(["gcc", *flags, PROGRAM, "-o", program], check=True)
    unfinished = recording.with_suffix(".unfinished")
    perf = ["perf", "record", "-q", "-e", "cpu-clock", "-F", "20000", "--call-graph", "dwarf,8192", "-o", unfinished]
    again = f"for i in $(seq 16); do {program}; done"
    subprocess.run([*perf, "--", "sh", "-c", again], check=True, stdout=subprocess.DEVNULL)
    unfinished.rename(recording)
    return recording


if __name__ == "__main__":
    sys.exit(main())
