"""Two libraries with the same file name and the same functions, in different directories, are two in every answer."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

import perf_crafting as crafting
from truth.command import command_line, run

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


@pytest.mark.parametrize("moved", [False, True], ids=["in place", "in another version's directory"])
def test_a_function_is_compared_with_that_of_the_same_library(tmp_path: Path, moved: bool) -> None:
    before = recorded(tmp_path / "1", tmp_path / "v1", BEFORE)
    after = recorded(tmp_path / "2", tmp_path / ("v2" if moved else "v1"), AFTER)
    rows = json.loads(command_line("diff", before, after, "--json"))["functions"]
    found = {Path(row["module"]).parent.name: (row["count"]["base"], row["count"]["new"]) for row in rows}
    assert found == {name: (BEFORE[name], AFTER[name]) for name in BEFORE}


def test_reports_state_which_of_them(tmp_path: Path) -> None:
    path = recorded(tmp_path / "1", tmp_path / "v1", BEFORE)
    whole = sum(BEFORE.values())
    for view in ([], ["--tree"], ["--by", "function"]):
        lines = [line.split() for line in command_line("report", path, *view).splitlines() if " init " in line]
        shares = {
            next(word for word in line if word.endswith("core.so")): next(word for word in line if "%" in word)
            for line in lines
        }
        assert shares == {f"{name}/core.so": f"{count / whole:.1%}" for name, count in BEFORE.items()}, view
    modules = command_line("report", path, "--by", "module")
    assert all(f"  {name}/core.so" in modules for name in BEFORE)
    wanted = run("annotate", path, "init")
    assert wanted.returncode == 2
    assert "init (a/core.so)" in wanted.stderr
    assert "init (b/core.so)" in wanted.stderr


def test_what_an_earlier_step_excludes_is_not_called_unknown(tmp_path: Path) -> None:
    path = recorded(tmp_path / "1", tmp_path / "v1", BEFORE)
    done = run("report", path, "--only", "module:*/a/core.so", "--drop", "module:*/b/core.so")
    assert done.returncode == 2
    assert "did you mean" not in done.stderr
    assert "the steps before it" in done.stderr
