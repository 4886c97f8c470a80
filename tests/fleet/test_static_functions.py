"""Static functions of one name in one program: each is a function of a dataset, by its source file."""

from __future__ import annotations

import random
import shutil
import subprocess
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import pytest

import perf_crafting as crafting
from needs import need
from perf_crafting import Attribute, PerfFile, sample
from perfuse.fleet import Fleet
from perfuse.fleet.comparing import steps_since
from perfuse.fleet.questions import select_event, top_functions
from perfuse.fleet.selecting import Recordings

ALL = Recordings()
EVENT = Attribute.of((1, 0), crafting.IP | crafting.TID | crafting.TIME | crafting.PERIOD)
WORK = """
static __attribute__((noinline)) unsigned long work(unsigned long n) { return n * n OPERATOR n / 7; }
unsigned long NAME(unsigned long n) { return work(n) + 1; }
"""
MAIN = """
unsigned long first(unsigned long n), second(unsigned long n);
int main(int argc, char **argv) { return (int)(first(argc) + second(argc)); }
"""


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`debug/program` has source files, `stripped/program` is the same without."""
    need("gcc", "nm", "strip")
    folder = tmp_path_factory.mktemp("programs")
    (folder / "debug").mkdir()
    (folder / "stripped").mkdir()
    for name, operator in (("first", "+"), ("second", "-")):
        (folder / f"{name}.c").write_text(WORK.replace("OPERATOR", operator).replace("NAME", name))
    (folder / "main.c").write_text(MAIN)
    sources = ["first.c", "second.c", "main.c"]
    subprocess.run(["gcc", "-g", "-O1", "-no-pie", "-o", "debug/program", *sources], cwd=folder, check=True)
    subprocess.run(
        ["strip", "--strip-debug", "-o", "stripped/program", "debug/program"], cwd=folder, check=True, text=True
    )
    return folder


def _addresses(program: Path) -> dict[str, int]:
    """The functions, as nm has them: a static one precedes the function of its file that calls it."""
    printed = subprocess.run(["nm", "-n", program], check=True, capture_output=True, text=True).stdout
    found, last = {}, 0
    for address, kind, name in (row for line in printed.splitlines() if len(row := line.split()) == 3):
        if name == "work" and kind == "t":
            last = int(address, 16)
        elif name in ("first", "second"):
            found |= {name: int(address, 16), f"work of {name}.c": last}
    return found


def _record(program: Path, counts: Mapping[str, int], to: Path) -> Path:
    addresses = _addresses(program)
    records = [crafting.mmap2(EVENT, 7, str(program), 0x400000, 0x4000)]
    taken = [addresses[name] for name, number in counts.items() for _ in range(number)]
    records += [sample(EVENT, ip=at, pid=7, tid=7, time=number + 1) for number, at in enumerate(taken)]
    to.parent.mkdir(parents=True, exist_ok=True)
    return PerfFile([EVENT], records).write(to)


def test_each_is_a_function_whatever_was_sampled(programs: Path, tmp_path: Path) -> None:
    """The second recording has samples of one of them alone; the third program has no source files."""
    counts = ({"work of first.c": 3, "work of second.c": 1, "first": 2}, {"work of first.c": 5})
    debug = programs / "debug" / "program"
    for number, one in enumerate(counts):
        _record(debug, one, tmp_path / f"{number}.data")
    fleet = Fleet(tmp_path / "dataset")
    assert fleet.add([tmp_path / "0.data", tmp_path / "1.data"]).num_added == 2
    rows, _ = top_functions(fleet, ALL, select_event(fleet, ALL, None), limit=None)
    expected = Counter(counts[0]) + Counter(counts[1])
    found = {f"work of {Path(row.path or '').name}" if row.name == "work" else row.name: row.self for row in rows}
    assert found == expected


def test_builds_without_source_files_are_compared_by_sums(programs: Path, tmp_path: Path) -> None:
    """Builds 1 and 2 have no debug information, 3 and 4 do; nothing else differs."""
    chance = random.Random(4)
    names = ["work of first.c", "work of second.c", "first", "second"]
    for build in range(1, 5):
        # The program is at one place on all machines.
        program = tmp_path / str(build) / "program"
        program.parent.mkdir()
        shutil.copy(programs / ("stripped" if build < 3 else "debug") / "program", program)
        for run in range(4):
            drawn = Counter(chance.choices(names, (30, 40, 15, 15), k=300))
            _record(program, drawn, tmp_path / "runs" / f"{build}-{run}.data")
    fleet = Fleet(tmp_path / "dataset")
    assert fleet.add([tmp_path / "runs"], labels_from=r"(?P<build>\d+)-\d+\.data").num_added == 16
    found = steps_since(fleet, ALL, "1")
    assert (found.num_tested, [one.name for one in found.steps]) == (3, [])
