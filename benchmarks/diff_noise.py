"""How often `perfuse diff` names a function of equal programs, and how often it finds a planted change.

Records programs (C, node, Python) many times in random order, with and without a planted change, then compares runs
that are drawn from these recordings: 200 comparisons a row. The goals are in the last column. Recordings and what was
read of them stay in $PERFUSE_BENCH_DIR (build/bench if not set). Needs perf, gcc and node; a program that is not
installed is left out.
"""

import argparse
import os
import pickle
import platform
import random
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import perfuse
from perfuse.analysis.diff import Difference, DiffOptions
from perfuse.analysis.function_graph import FunctionGraph, function_graph

HZ = 5000
MOST_FALSE = 0.06
SHARES = {"large": 15, "small": 5, **{f"other{number}": 5 for number in range(16)}}
"""Functions of the C program, with their share of its time in percent."""


@dataclass(frozen=True)
class Program:
    """A program that is recorded: its name, how it is started, and its variants by name with their environment."""

    name: str
    command: tuple[str, ...]
    variants: dict[str, dict[str, str]]


def c_program(folder: Path) -> Program:
    """A program whose functions do the same work in each run; the environment slows a function down."""
    bodies = "\n".join(
        f"__attribute__((noinline)) void {name}(long n) {{ unsigned long x = {number + 1}; "
        f"while (n--) x = x * 6364136223846793005ul + (x >> {number % 7 + 11}); sink += x; }}"
        for number, name in enumerate(SHARES)
    )
    calls = "\n".join(f'    {name}({share} * unit * percent("{name}") / 100);' for name, share in SHARES.items())
    source = folder / "work.c"
    source.write_text(
        "#include <stdlib.h>\n#include <string.h>\nvolatile unsigned long sink;\n"
        f"{bodies}\n"
        'static long percent(const char *name) { const char *slow = getenv("SLOW"); size_t n = strlen(name);\n'
        "  return slow && !strncmp(slow, name, n) && slow[n] == '=' ? atol(slow + n + 1) : 100; }\n"
        "int main(void) { long unit = 180000;\n  for (int round = 0; round < 50; round++) {\n"
        f"{calls}\n  }}\n  return 0; }}\n",
        encoding="ascii",
    )
    program = folder / "work"
    subprocess.run(["gcc", "-O1", "-g", "-fno-omit-frame-pointer", source, "-o", program], check=True)
    variants = {"base": {}, "large+10%": {"SLOW": "large=110"}, "small+50%": {"SLOW": "small=150"}}
    return Program("C", (str(program),), variants)


NODE = """
const words = Array.from({ length: 4000 }, (_, i) => "w" + ((i * 7919) % 1000));
function count(words) { const m = new Map(); for (const w of words) m.set(w, (m.get(w) ?? 0) + 1); return m; }
function order(m) { return [...m].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1)); }
function text(rows) { return rows.map((r) => r.join("=")).join("&"); }
function parse(t) { return t.split("&").map((one) => one.split("=")).filter((one) => one[1] > 2); }
function hash(t) { let h = 7; for (let i = 0; i < t.length; i++) h = (h * 31 + t.charCodeAt(i)) | 0; return h; }
function matrix(n) { const m = new Float64Array(n * n).fill(1.5); let s = 0;
  for (let i = 0; i < n; i++) for (let j = 0; j < n; j++) for (let k = 0; k < n; k++) s += m[i * n + k] * m[k * n + j];
  return s; }
let sum = 0;
for (let i = 0; i < 200; i++) { const t = text(order(count(words))); sum += hash(t) + parse(t).length + matrix(70);
  sum += JSON.stringify(JSON.parse(JSON.stringify(words))).length; }
console.log(sum);
"""

PYTHON = """
import json, re
words = ["w%d" % (i * 7919 % 1000) for i in range(4000)]
total = 0
for _ in range(70):
    counts = {}
    for word in words:
        counts[word] = counts.get(word, 0) + 1
    rows = sorted(counts.items(), key=lambda row: (-row[1], row[0]))
    text = json.dumps(rows)
    total += len(json.loads(text)) + len(re.findall(r"w\\d+5", text)) + hash(text.upper()) % 3
    total += sum(i * i % 7 for i in range(9000))
print(total)
"""


def programs(folder: Path, names: Sequence[str]) -> list[Program]:
    """The programs whose compiler or interpreter is installed."""
    found = []
    if "c" in names and shutil.which("gcc"):
        found.append(c_program(folder))
    if "node" in names and (node := shutil.which("node")):
        (folder / "work.js").write_text(NODE, encoding="utf-8")
        found.append(Program("node", (node, "--perf-prof", str(folder / "work.js")), {"base": {}}))
    if "python" in names:
        (folder / "work.py").write_text(PYTHON, encoding="utf-8")
        # The base interpreter: that of a virtual environment is a link to it.
        command = (str(Path(sys.executable).resolve()), "-S", str(folder / "work.py"))
        found.append(Program("Python", command, {"base": {"PYTHONHASHSEED": "0"}}))
    return found


def record(folder: Path, wanted: Sequence[Program], num_runs: int, num_slow: int) -> None:
    """Records what is missing, in random order: what changes with time is not a change of a variant."""
    jobs = [
        (program, variant, number)
        for program in wanted
        for variant in program.variants
        for number in range(num_runs if variant == "base" else num_slow)
    ]
    random.Random(1).shuffle(jobs)
    for done, (program, variant, number) in enumerate(jobs):
        run = folder / program.name / variant / str(number)
        if (run / "perf.data").exists():
            continue
        run.mkdir(parents=True, exist_ok=True)
        print(f"\r{done + 1} of {len(jobs)} runs", end="", file=sys.stderr, flush=True)
        words = ["perf", "--buildid-dir", str(folder / "buildid"), "record", "-q", "-e", "cpu-clock", "-F", str(HZ)]
        command = [*words, "-k", "mono", "-g", "-o", "unfinished", "--", *program.command]
        environment = {**os.environ, **program.variants[variant]}
        subprocess.run(command, cwd=run, env=environment, check=True, stdout=subprocess.DEVNULL)
        (run / "unfinished").rename(run / "perf.data")
    print(file=sys.stderr)


def graphs(folder: Path, program: Program, variant: str, number: int) -> list[FunctionGraph]:
    """The functions of the runs of a variant, as `perfuse diff` reads them."""
    found = []
    for run in sorted((folder / program.name / variant).iterdir(), key=lambda one: int(one.name))[:number]:
        cached = run / "functions.pickle"
        if not cached.exists():
            cached.write_bytes(pickle.dumps(function_graph(perfuse.fuse(run))))
        found.append(pickle.loads(cached.read_bytes()))
    return found


def rates(
    base: Sequence[FunctionGraph],
    new: Sequence[FunctionGraph],
    num_runs: int,
    comparisons: int,
    function: str | None,
    statistic: str = "self",
) -> float:
    """The share of comparisons that name any function, or the one function."""
    dice, found = random.Random(2), 0
    for _ in range(comparisons):
        if function is None:
            drawn = dice.sample(list(base), 2 * num_runs)
            sides = drawn[:num_runs], drawn[num_runs:]
        else:
            sides = dice.sample(list(base), num_runs), dice.sample(list(new), num_runs)
        difference = Difference(*sides, DiffOptions(statistic=statistic))
        named = {one.named.name for one in difference.functions if one.verdict in ("changed", "new", "gone")}
        found += bool(named) if function is None else function in named
    return found / comparisons


def main() -> int:
    """Records, compares and prints a table; returns 1 where a goal is not met."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=40, metavar="N", help="runs of each program")
    parser.add_argument("--slow-runs", type=int, default=24, metavar="N", help="runs with each planted change")
    parser.add_argument("--comparisons", type=int, default=200, metavar="N", help="comparisons for each row")
    parser.add_argument("--programs", nargs="+", default=["c", "node", "python"], choices=["c", "node", "python"])
    options = parser.parse_args()
    folder = Path(os.environ.get("PERFUSE_BENCH_DIR", "build/bench")).resolve() / "diff_noise"
    folder.mkdir(parents=True, exist_ok=True)
    wanted = programs(folder, options.programs)
    record(folder, wanted, options.runs, options.slow_runs)
    load = " ".join(f"{one:.1f}" for one in os.getloadavg())
    print(f"{platform.platform()}, {os.cpu_count()} processors, load {load}\n")
    print("| program | samples a run | runs a side | changed | named | goal |\n|---|---|---|---|---|---|")
    is_met = True
    for program in wanted:
        base = graphs(folder, program, "base", options.runs)
        samples = sum(graph.num_counted for graph in base) // len(base)
        for num_runs in (5, 10):
            if 2 * num_runs > len(base):
                continue
            for statistic in ("self", "total"):
                rate = rates(base, base, num_runs, options.comparisons, None, statistic)
                is_met &= rate <= MOST_FALSE
                row = f"| {program.name} | {samples:,} | {num_runs} | nothing, by {statistic} | {rate:.1%} |"
                print(f"{row} at most {MOST_FALSE:.0%} |", flush=True)
        for variant, least in (("large+10%", 0.8), ("small+50%", 0.95)):
            if variant not in program.variants:
                continue
            slow = graphs(folder, program, variant, options.slow_runs)
            for num_runs in (5, 10):
                if num_runs > len(slow):
                    continue
                rate = rates(base, slow, num_runs, options.comparisons, variant.split("+")[0])
                is_met &= rate >= least or num_runs < 10
                goal = f"at least {least:.0%}" if num_runs >= 10 else ""
                print(f"| {program.name} | {samples:,} | {num_runs} | {variant} | {rate:.1%} | {goal} |", flush=True)
    return 0 if is_met else 1


if __name__ == "__main__":
    sys.exit(main())
