"""pprof's profiles, read by pprof itself."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from fake_profile import FakeProfile
from perf_script import perf_script
from small_profile import MS
from tools import need, output_of

import perfuse
from perfuse.errors import ExportError
from perfuse.exporters import export


def pprof(path: Path, *options: str) -> str:
    need("go")
    return output_of("go", "tool", "pprof", *options, path)


def test_small_profile(small: FakeProfile, golden: Any, tmp_path: Path) -> None:
    export(small, tmp_path / "p.pb.gz")
    golden("small.pprof.txt", pprof(tmp_path / "p.pb.gz", "-raw"))


def test_another_event_is_another_value(small: FakeProfile, tmp_path: Path) -> None:
    small.add(
        "samples",
        sample_id=9,
        ts_ns=5003 * MS,
        thread_id=0,
        stack_id=1,
        weight=100,
        weight_unit="events",
        event="cache-misses",
    )
    export(small, tmp_path / "p.pb")
    raw = pprof(tmp_path / "p.pb", "-raw")
    assert "cpu-clock-samples/count cpu-clock/nanoseconds[dflt] cache-misses-samples/count cache-misses/count" in raw, (
        raw
    )
    assert "1    1000000          1        100: 1 2" in raw, raw


def test_stacks_are_those_of_the_tables(expected_script: Path, tmp_path: Path) -> None:
    profile = perf_script(expected_script)
    path = tmp_path / "p.pb.gz"
    export(profile, path)
    theirs: Counter[str] = Counter()
    stack: list[str] = []
    count = 0
    # A sample is its value and innermost function on one line, its callers on the next ones.
    for line in pprof(path, "-traces", "-sample_index=samples").splitlines():
        if line.startswith("-"):
            if count:
                theirs[";".join(reversed(stack))] += count
            stack, count = [], 0
        elif line.strip() and not line.lstrip().startswith(("pid:", "tid:", "thread:")):
            value, _, name = line.strip().partition("   ")
            if value.isdigit() and not stack:
                stack, count = [name.strip()], int(value)
            elif stack:
                stack.append(line.strip())
    weights = dict(profile.sql("SELECT coalesce(stack_id, -1), count(*) FROM samples GROUP BY 1").fetchall())
    assert sum(theirs.values()) == sum(num for stack_id, num in weights.items() if stack_id >= 0)


@pytest.mark.parametrize("name", ["small-v5", "sqmt-small-v5", "lua-small-v5"])
def test_traces_are_summed(name: str, traces: Path, tmp_path: Path) -> None:
    """Time in each function itself, and calls of it, are what its slices say."""
    profile = perfuse.fuse(traces / "fdr" / f"{name}.xray")
    profile.export(tmp_path / "p.pb.gz")
    for index, column, unit in (("wall-time", "sum(self_ns)", "ns"), ("calls", "count(*)", "")):
        rows = profile.sql(f"""
            SELECT f.name::VARCHAR, {column} FROM slices JOIN functions f USING (function_id) GROUP BY 1
        """).fetchall()
        options = ("-top", "-nodecount=0", "-nodefraction=0", f"-sample_index={index}", *(["-unit=ns"] if unit else []))
        lines = pprof(tmp_path / "p.pb.gz", *options).splitlines()
        first = next(number for number, line in enumerate(lines) if "flat%" in line) + 1
        split = (line.split(maxsplit=5) for line in lines[first:])
        theirs = {fields[5]: int(fields[0].removesuffix("ns")) for fields in split}
        assert {name: num for name, num in theirs.items() if num} == {name: num for name, num in rows if num}


def test_no_samples_is_said(tmp_path: Path) -> None:
    with pytest.raises(ExportError, match="no samples"):
        export(FakeProfile(), tmp_path / "p.pb.gz")
    assert list(tmp_path.iterdir()) == []
