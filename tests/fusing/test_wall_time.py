"""A call trace of the wall clock, which XRay uses where it does not know the processor's, and samples of another one.

Both are assembled here, so that which call is open at each sample is known.
"""

from __future__ import annotations

import json
import struct
from pathlib import Path

import pytest

import perfuse as pf
from perf_crafting import IP, TID, TIME, Attribute, PerfFile, comm, sample

PID, CODE = 77, 0x401000
START_NS, WALL_NS = 43_000_000_000_000, 1_790_000_000_000_000_000
"""The same moment on the clock of the samples and on the wall clock."""
CALLS_NS = {1: (1_000, 5_000), 2: (5_500, 9_000)}
"""Start and end of the call of each function, after that moment."""
CLOCK_DATA = 29


def _call_trace(path: Path) -> Path:
    """A Basic mode log of version 3: 1 billion ticks a second are those of `clock_gettime`."""
    records = b"".join(
        struct.pack("<HBBiQII8x", 0, 0, kind, function, WALL_NS + at_ns, PID, PID)
        for function, times in CALLS_NS.items()
        for kind, at_ns in enumerate(times)
    )
    path.write_bytes(struct.pack("<HHIQ16x", 3, 0, 3, 1_000_000_000) + records)
    return path


def _samples(path: Path, features: dict[int, bytes]) -> Path:
    event = Attribute.of((1, 0), IP | TID | TIME)
    times = (500, 1_500, 4_900, 5_200, 6_000, 9_500)
    records = [comm(event, PID, PID, "app")]
    records += [sample(event, ip=CODE, pid=PID, tid=PID, time=START_NS + at_ns) for at_ns in times]
    return PerfFile([event], records, features).write(path)


OPEN = f"""
    SELECT s.ts_ns - {START_NS}, f.native_id FROM samples s
    LEFT JOIN slices c ON s.ts_ns BETWEEN c.start_ns AND c.start_ns + c.duration_ns
    LEFT JOIN functions f USING (function_id) WHERE s.event = 'cpu-clock' ORDER BY 1
"""


def test_calls_are_open_at_the_samples_that_were_taken_in_them(tmp_path: Path) -> None:
    clock = struct.pack("<IIQQ", 1, 1, WALL_NS, START_NS)
    profile = pf.fuse(_samples(tmp_path / "perf.data", {CLOCK_DATA: clock}), _call_trace(tmp_path / "xray-log.app.1"))
    expected = [(500, None), (1_500, 1), (4_900, 1), (5_200, None), (6_000, 2), (9_500, None)]
    assert profile.sql(OPEN).fetchall() == expected
    assert "FU006" not in {one.code for one in profile.diagnostics}


def test_tracks_of_calls_have_the_names_that_the_samples_state(tmp_path: Path) -> None:
    """A trace states ids alone; its file of trace events has no other events of these threads."""
    recordings = _samples(tmp_path / "perf.data", {}), _call_trace(tmp_path / "xray-log.app.1")
    pf.fuse(*recordings).export(tmp_path / "a.trace.json")
    events = json.loads((tmp_path / "a.trace.json").read_bytes())["traceEvents"]
    names = {(one["name"], one["pid"], one["tid"], one["args"]["name"]) for one in events if one["ph"] == "M"}
    assert names == {("process_name", PID, PID, "app"), ("thread_name", PID, PID, "app")}


@pytest.mark.parametrize("clock", [None, 7], ids=["none", "of another clock"])
def test_without_a_time_of_both_clocks_the_calls_are_on_another(tmp_path: Path, clock: int | None) -> None:
    features = {} if clock is None else {CLOCK_DATA: struct.pack("<IIQQ", 1, clock, WALL_NS, START_NS)}
    profile = pf.fuse(_samples(tmp_path / "perf.data", features), _call_trace(tmp_path / "xray-log.app.1"))
    assert [one.code for one in profile.diagnostics].count("FU006") == 1
    assert profile.sql("SELECT alignment FROM clocks WHERE source_id = 1").fetchall() == [("none",)]
