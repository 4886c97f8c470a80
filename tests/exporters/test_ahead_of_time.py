"""Code of .NET that was compiled ahead of time is one origin in flame graphs, reports and Firefox profiles.

The recording is assembled here: how many samples each function has is planted.
"""

from __future__ import annotations

import json
import struct
from collections import Counter
from pathlib import Path

import pytest

import perfuse as pf
from perf_crafting import IP, PERIOD, TID, TIME, Attribute, PerfFile, comm, sample
from perfuse.analysis.sampled import SampleFilter
from perfuse.analysis.weights import Weights

FUNCTIONS = {
    "int32 [App] App.Shop::Total(int32)[PreJIT]": ("ahead_of_time", "Ahead of time", 5),
    "void [App] App.Shop::Ready()[ReadyToRun]": ("ahead_of_time", "Ahead of time", 2),
    "void [App] App.Shop::Slow()[Tier0]": ("baseline", "Baseline JIT", 3),
    "void [App] App.Shop::Fast()[OptimizedTier1]": ("optimised", "Optimizing JIT", 7),
}
"""Origin, category of the Firefox Profiler, and number of samples by name in the dump."""


@pytest.fixture
def profile(tmp_path: Path) -> pf.Profile:
    event = Attribute.of((1, 0), IP | TID | TIME | PERIOD)
    records = [comm(event, 7, 7, "dotnet")]
    dump = struct.pack("<IIIIIIQQ", 0x4A695444, 1, 40, 62, 0, 7, 1, 0)
    time = 1000
    for number, (name, (*_, count)) in enumerate(FUNCTIONS.items()):
        start = 0x7F0000000000 + 0x100 * number
        body = struct.pack("<IIQQQQ", 7, 7, start, start, 64, number) + name.encode() + b"\0" + bytes(64)
        dump += struct.pack("<IIQ", 0, 16 + len(body), 1) + body
        for _ in range(count):
            time += 1000
            records.append(sample(event, ip=start + 8, pid=7, tid=7, time=time))
    (tmp_path / "jit-7.dump").write_bytes(dump)
    path = PerfFile([event], records).write(tmp_path / "perf.data")
    return pf.fuse(path, tmp_path / "jit-7.dump")


def planted(which: int) -> Counter[str]:
    counts: Counter[str] = Counter()
    for row in FUNCTIONS.values():
        counts[str(row[which])] += row[2]
    return counts


def test_reports_and_flame_graphs(profile: pf.Profile) -> None:
    found: Counter[str] = Counter()
    for row in Weights(profile, SampleFilter()).functions():
        found[row.origin] += row.self_samples
    assert found == planted(0)


def test_the_firefox_profile(profile: pf.Profile, tmp_path: Path) -> None:
    profile.export(tmp_path / "a.firefox.json")
    written = json.loads((tmp_path / "a.firefox.json").read_text())
    shared, categories = written["shared"], [one["name"] for one in written["meta"]["categories"]]
    found: Counter[str] = Counter()
    for thread in written["threads"]:
        for stack in thread["samples"]["stack"]:
            frame = shared["stackTable"]["frame"][stack]
            found[categories[shared["frameTable"]["category"][frame]]] += 1
    assert found == planted(1)
