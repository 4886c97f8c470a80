"""Counters belong to the process of their log in every export, also beside a recording of another process."""

from __future__ import annotations

import gzip
import json
import struct
from pathlib import Path

import pytest

import perfuse as pf
from perf_crafting import IP, TID, TIME, Attribute, PerfFile, comm, sample

OTHER = 3
FIRST_NS = 1_000


@pytest.mark.parametrize("name", ["tiny/v12-calls", "tiny/v07-heapshot", "v17/counters"])
def test_counters_are_of_the_process_in_the_header(mono_corpus: Path, tmp_path: Path, name: str) -> None:
    log = next(mono_corpus.glob(f"{name}.mlpd*"))
    data = log.read_bytes()
    header = gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
    (pid,) = struct.unpack_from("<I", header, 24 if header[4] < 3 else 32)
    event = Attribute.of((1, 0), IP | TID | TIME)
    records = [comm(event, OTHER, OTHER, "other"), sample(event, ip=4096, pid=OTHER, tid=OTHER, time=FIRST_NS)]
    other = PerfFile([event], records).write(tmp_path / "perf.data")
    with pf.fuse(other, log) as profile:
        assert profile.process_pids() == {1: pid}
        profile.export(tmp_path / "a.firefox.json")
        profile.export(tmp_path / "a.trace.json")
    counters = json.loads((tmp_path / "a.firefox.json").read_text())["counters"]
    assert {one["pid"] for one in counters} == {str(pid)}
    events = json.loads((tmp_path / "a.trace.json").read_text())["traceEvents"]
    assert {one["pid"] for one in events if one["ph"] == "C"} == {pid}
