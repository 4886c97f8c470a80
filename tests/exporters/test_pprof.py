"""pprof's profiles, read by pprof itself."""

import io
import re
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

_FUNCTION = re.compile(r" \S*:\d+:\d+ s=\d+(\(.*\))?$")
"""File, line, column and system name, which follow a name."""


def pprof(path: Path, *options: str) -> str:
    need("go")
    return output_of("go", "tool", "pprof", *options, path)


def test_small_profile(small: FakeProfile, golden: Any, tmp_path: Path) -> None:
    export(small, tmp_path / "p.pb.gz")
    golden("small.pprof.txt", pprof(tmp_path / "p.pb.gz", "-symbolize=none", "-raw"))


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
    raw = pprof(tmp_path / "p.pb", "-symbolize=none", "-raw")
    assert "cpu-clock-samples/count cpu-clock/nanoseconds[dflt] cache-misses-samples/count cache-misses/count" in raw, (
        raw
    )
    assert "1    1000000          1        100: 1 2" in raw, raw


def test_stacks_are_those_of_the_tables(expected_script: Path, tmp_path: Path) -> None:
    profile = perf_script(expected_script)
    path = tmp_path / "p.pb.gz"
    export(profile, path)
    out = io.BytesIO()
    export(profile, out, to="collapsed", root="none")
    lines = (line.rpartition(" ") for line in out.getvalue().decode().splitlines())
    ours = {stack: int(count) for stack, _, count in lines if stack != "[no stack]"}
    assert traces(pprof(path, "-symbolize=none", "-raw")) == ours


def traces(raw: str) -> Counter[str]:
    """Samples of each stack, as `-raw` shows them: locations by number, each with a line for every function at it."""
    samples, _, rest = raw.partition("\nLocations\n")
    functions: dict[str, list[str]] = {}
    for line in rest.partition("\nMappings\n")[0].splitlines():
        number, is_new, at = line.partition(": 0x")
        if is_new and number.strip().isdigit():
            names = functions.setdefault(number.strip(), [])
            at = at.partition(" M=")[2].partition(" ")[2]
        names.append(_FUNCTION.sub("", at.strip()))
    found: Counter[str] = Counter()
    for line in samples.splitlines():
        values, is_sample, locations = line.partition(":")
        if is_sample and values.split() and all(value.isdigit() for value in values.split()):
            stack = [name for location in locations.split() for name in functions[location]]
            found[";".join(" ".join(name.replace(";", ":").split()) for name in reversed(stack))] += int(
                values.split()[0]
            )
    return Counter({stack: num for stack, num in found.items() if stack})


@pytest.mark.parametrize("name", ["small-v5", "sqmt-small-v5", "lua-small-v5"])
def test_traces_are_summed(name: str, traces: Path, tmp_path: Path) -> None:
    """Time in each function itself, and calls of it, are those of its slices."""
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


def test_a_profile_without_samples_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ExportError, match="no samples"):
        export(FakeProfile(), tmp_path / "p.pb.gz")
    assert list(tmp_path.iterdir()) == []
