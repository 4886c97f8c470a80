"""Measures the library that other programs embed, in a C program: opening a dump, look-ups a second.

The dumps are the recording of `benchmarks/jitdump.py`, of 520 MB, and one that is written here, whose functions have
lines. Look-ups in one thread are counted per second of the processor.
"""

import argparse
import os
import platform
import random
import struct
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import measure
import recording
from measure import Goal

import perfuse as pf

ROOT = Path(__file__).parents[1]
LINES_OF_A_FUNCTION = 64
GOALS_ARE_FOR = 100_000
"""Number of functions."""


@dataclass(frozen=True, slots=True)
class Speeds:
    """What the C program measured; look-ups are per second."""

    open_s: float
    poll_s: float
    code: float
    first: float
    again: float
    threads: float
    rss_bytes: int
    found: float
    """Share of look-ups that found code."""
    with_lines: float
    """Share of look-ups that found a line."""


def main() -> int:
    """Runs the benchmark and prints the results; returns 1 if a goal is not met."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--functions", type=int, default=100_000, metavar="N", help="functions in each dump")
    parser.add_argument("--look-ups", type=int, default=1_000_000, metavar="N", help="look-ups of each kind")
    parser.add_argument("--runs", type=int, default=3, metavar="N", help="runs; the best of each counts")
    options = parser.parse_args()
    cache = Path(os.environ.get("PERFUSE_BENCH_DIR", "build/bench")).resolve()
    cache.mkdir(parents=True, exist_ok=True)
    program = _compile(cache)
    print(f"{measure.output_of('cargo', '--version')}; {platform.platform()}, {os.cpu_count()} processors\n")
    recorded = recording.make(cache, options.functions).dump
    written = cache / f"lines-{options.functions}.dump"
    if not written.exists():
        _write(written, options.functions)

    print(
        "| dump | open | poll | peak memory | code a second | with lines, first | with lines, again | in two threads |"
    )
    print("|---|--:|--:|--:|--:|--:|--:|--:|")
    results = []
    for dump in (recorded, written):
        questions = _questions(dump, cache / "questions", options.look_ups)
        measure.warm(dump, questions)
        runs = [_run(program, dump, questions, cache) for _ in range(options.runs)]
        speeds = Speeds(
            open_s=min(run.open_s for run in runs),
            poll_s=min(run.poll_s for run in runs),
            code=max(run.code for run in runs),
            first=max(run.first for run in runs),
            again=max(run.again for run in runs),
            threads=max(run.threads for run in runs),
            rss_bytes=min(run.rss_bytes for run in runs),
            found=min(run.found for run in runs),
            with_lines=min(run.with_lines for run in runs),
        )
        results.append(speeds)
        size = f"{dump.stat().st_size / 1e6:.0f} MB, {speeds.with_lines:.0%} with lines"
        print(
            f"| {size} | {speeds.open_s:.2f} s | {speeds.poll_s * 1e6:.0f} µs | {speeds.rss_bytes / 1e6:.0f} MB "
            f"| {speeds.code / 1e6:.2f} M | {speeds.first / 1e6:.2f} M | {speeds.again / 1e6:.2f} M "
            f"| {speeds.threads / 1e6:.2f} M |"
        )
    if options.functions < GOALS_ARE_FOR:
        return 0
    big, lines = results
    goals = [
        Goal("every look-up finds code", big.found == lines.found == 1),
        Goal(f"the recording open in {big.open_s:.2f} s, at most 1", big.open_s <= 1),
        Goal(f"{big.rss_bytes / 1e6:.0f} MB at peak, under 200", big.rss_bytes < 200e6),
        Goal(f"{big.code / 1e6:.1f} million look-ups of code a second, at least 1", big.code >= 1e6),
        Goal(f"{lines.again / 1e6:.1f} million with lines, at least 0.2", lines.again >= 0.2e6),
    ]
    print("", *goals, sep="\n")
    return 0 if all(goal.is_met for goal in goals) else 1


def _compile(cache: Path) -> Path:
    """Builds the library as its users do, and the program."""
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    subprocess.run(["cargo", "build", "--release", "--quiet", "-p", "perfuse-symbolizer-c"], cwd=ROOT, check=True)
    program = cache / "embed"
    flags = ["-O2", "-Wall", "-Wextra", "-Werror", "-std=c11", f"-I{ROOT / 'crates/symbolizer_c/include'}"]
    library = target / "release" / "libperfuse_symbolizer_c.a"
    source = Path(__file__).with_name("embed.c")
    subprocess.run(["cc", *flags, "-o", program, source, library, "-lpthread", "-ldl", "-lm"], check=True)
    return program


def _questions(dump: Path, path: Path, num: int) -> Path:
    """Writes random times and addresses at which there is code."""
    rows = pf.open(dump).tables["code_objects"].to_arrow()
    columns = (rows[name].to_pylist() for name in ("create_ns", "start_address", "size_bytes"))
    code = [row for row in zip(*columns, strict=True) if row[2]]
    chosen = random.Random(1)
    pack = struct.Struct("<QQ").pack
    with path.open("wb") as out:
        for time, address, size in chosen.choices(code, k=num):
            out.write(pack(time, address + chosen.randrange(size)))
    return path


def _write(path: Path, num_functions: int) -> None:
    """Writes a dump of functions with lines; every tenth replaces code that is there."""
    unfinished = path.with_suffix(".unfinished")
    with unfinished.open("wb") as out:
        out.write(b"DTiJ" + struct.pack("<IIIIIQQ", 1, 40, 62, 0, 1, 0, 0))
        code = bytes(LINES_OF_A_FUNCTION * 16)
        for number in range(num_functions):
            address = 0x10_0000_0000 + (number - number // 10) * 2048
            name = f"/home/user/project/sources/module_{number % 500}.src".encode() + b"\0"
            lines = b"".join(
                struct.pack("<QII", address + line * 16, line + 1, 0) + name for line in range(LINES_OF_A_FUNCTION)
            )
            debug = struct.pack("<QQ", address, LINES_OF_A_FUNCTION) + lines
            load = struct.pack("<IIQQQQ", 1, 1, address, address, len(code), number) + b"function_%d\0" % number + code
            for kind, body in ((2, debug), (0, load)):
                out.write(struct.pack("<IIQ", kind, 16 + len(body), 1000 + number) + body)
    unfinished.rename(path)


def _run(program: Path, dump: Path, questions: Path, cache: Path) -> Speeds:
    output = cache / "embed.txt"
    cost = measure.run([program, dump, questions], output, cache)
    rows = {line.split("\t")[0]: line.split("\t")[1:] for line in output.read_text(encoding="ascii").splitlines()}
    num = questions.stat().st_size // 16
    return Speeds(
        open_s=float(rows["open"][0]),
        poll_s=float(rows["poll"][0]),
        code=float(rows["code"][0]),
        first=float(rows["first"][0]),
        again=float(rows["again"][0]),
        threads=float(rows["threads"][0]),
        rss_bytes=cost.rss_bytes,
        found=int(rows["code"][1]) / num,
        with_lines=int(rows["again"][2]) / num,
    )


if __name__ == "__main__":
    sys.exit(main())
