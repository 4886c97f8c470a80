"""A recording of a program with two libraries of one file name that have the same function, in two directories."""

from __future__ import annotations

import subprocess
from pathlib import Path

import perf_crafting as crafting

BEFORE = {"a": 10, "b": 1}
AFTER = {"a": 1, "b": 10}


def recorded(directory: Path, libraries: Path, samples: dict[str, int]) -> Path:
    """A recording with so many samples in `init` of each library."""
    event = crafting.Attribute.of((1, 0), crafting.IP | crafting.TID | crafting.TIME | crafting.PERIOD)
    records = [crafting.comm(event, 7, 7, "main")]
    for number, (name, count) in enumerate(samples.items(), 1):
        home = libraries / name
        home.mkdir(parents=True, exist_ok=True)
        (home / "x.c").write_text(f"int init(int n) {{ return n * {number + 3}; }}")
        subprocess.run(["gcc", "-shared", "-fPIC", "-O1", "-o", "core.so", "x.c"], cwd=home, check=True)
        symbols = subprocess.run(["nm", "core.so"], cwd=home, check=True, capture_output=True, text=True).stdout
        (offset,) = (int(line.split()[0], 16) for line in symbols.splitlines() if line.endswith(" T init"))
        start = 0x400000 * number
        records.append(crafting.mmap2(event, 7, str(home / "core.so"), start, 0x4000))
        records += [
            crafting.sample(event, ip=start + offset + 1, pid=7, tid=7, time=number * 1000 + index, period=1)
            for index in range(count)
        ]
    directory.mkdir(exist_ok=True)
    return crafting.PerfFile([event], records).write(directory / "perf.data")
