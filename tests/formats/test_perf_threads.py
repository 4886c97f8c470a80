"""Threads of perf.data: which there are, and what they are called."""

from __future__ import annotations

import json
import re
import struct
import subprocess
from pathlib import Path

import pytest

import perf_crafting as crafting
import perfuse as pf
from needs import need
from perf_crafting import Attribute, PerfFile, Record
from perfuse.cli import run

SAMPLE_TYPE = crafting.IP | crafting.TID | crafting.TIME | crafting.PERIOD


@pytest.mark.parametrize(
    ("kind", "body", "table"),
    [
        (crafting.SWITCH, b"", "sched_states"),
        (crafting.NAMESPACES, struct.pack("<IIQ", 41, 43, 1) + struct.pack("<QQ", 4, 5), "namespaces"),
    ],
)
def test_a_thread_that_one_record_mentions_is_a_row(tmp_path: Path, kind: int, body: bytes, table: str) -> None:
    attribute = Attribute.of((1, 0), SAMPLE_TYPE).with_size(128)
    records = [
        crafting.comm(attribute, 41, 41, "app"),
        crafting.sample(attribute, ip=16, pid=41, tid=41, time=1000),
        Record(kind, 0, body + attribute.sample_id(41, 43, 2000)),
    ]
    recording = PerfFile([attribute], records).write(tmp_path / "perf.data")
    question = f"SELECT pid, tid FROM {table} JOIN threads USING (thread_id) JOIN processes USING (process_id)"
    with pf.fuse(recording) as profile:
        assert profile.sql(question).fetchall() == [(41, 43)]
        saved = profile.save(tmp_path / "saved.perfuse")
        threads = profile.sql("SELECT tid FROM threads ORDER BY tid").fetchall()
    with pf.fuse(saved.path) as profile:
        assert profile.sql(question).fetchall() == [(41, 43)]
        assert profile.sql("SELECT tid FROM threads ORDER BY tid").fetchall() == threads == [(41,), (43,)]


def test_samples_before_the_first_name_have_that(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As in `perf report`: a process whose parent was not recorded, which executes another program later."""
    need("perf")
    attribute = Attribute.of((1, 0), SAMPLE_TYPE).with_size(128)
    exec_of = crafting.comm(attribute, 41, 41, "second", 1004)
    samples = [crafting.sample(attribute, ip=16, pid=41, tid=41, time=time) for time in (1001, 1003, 1005)]
    records = [
        crafting.task(attribute, crafting.FORK, 41, 1, 41, 1000),
        samples[0],
        crafting.comm(attribute, 41, 41, "first", 1002),
        samples[1],
        Record(exec_of.type, 1 << 13, exec_of.body),
        samples[2],
    ]
    recording = PerfFile([attribute], records).write(tmp_path / "perf.data")
    command = ["perf", "report", "--stdio", "-i", str(recording), "-F", "sample,comm", "-g", "none"]
    printed = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path).stdout
    theirs = {name: int(count) for count, name in re.findall(r"^ +(\d+) +(\w+) *$", printed, re.MULTILINE)}
    assert run(["report", str(recording), "--by", "command", "--json"]) in (0, 1)
    groups = json.loads(capsys.readouterr().out)["groups"]
    assert {one["name"]: one["self_count"] for one in groups} == theirs == {"first": 2, "second": 1}
