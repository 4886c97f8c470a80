"""Events in groups: what each counted since the sample before, as perf 7.2 delivers it."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

import perf_crafting as crafting
import perfuse as pf
from perf_crafting import Attribute, PerfFile
from perfuse.analysis.event_groups import event_group, ratios_of

RECORDED = Path(__file__).parents[1] / "truth" / "recorded" / "perf_machine"
EVENTS = ("cpu-clock", "task-clock", "page-faults", "context-switches")
_SAMPLE = re.compile(r"^\S+\s+(?P<tid>\d+)\s+(?P<s>\d+)\.(?P<ns>\d{9}):\s+(?P<period>\d+)\s+(?P<event>[\w-]+):\s*$")
_FRAME = re.compile(r"^\s+([0-9a-f]+)$")

Delivered = list[tuple[int, int, str, int, tuple[int, ...]]]


@pytest.fixture(scope="module")
def profile() -> pf.Profile:
    return pf.fuse(RECORDED / "group.perf.data")


@pytest.fixture(scope="module")
def delivered() -> Delivered:
    """Thread, time, event, period and chain of each sample that perf prints."""
    found: Delivered = []
    for line in (RECORDED / "group.perf-7.2.txt").read_text().splitlines():
        if sample := _SAMPLE.match(line):
            time = int(sample["s"] + sample["ns"])
            found.append((int(sample["tid"]), time, sample["event"], int(sample["period"]), ()))
        elif frame := _FRAME.match(line):
            found[-1] = (*found[-1][:4], (*found[-1][4], int(frame[1], 16)))
    return sorted(found)


def test_every_event_has_what_perf_delivers(profile: pf.Profile, delivered: Delivered) -> None:
    rows = profile.sql("""SELECT tid, ts_ns, event::VARCHAR, period,
        list_filter(addresses, lambda a: a < 18446744073709547521)
        FROM callchains JOIN threads USING (thread_id)""").fetchall()
    assert sorted((*row[:4], tuple(row[4])) for row in rows) == delivered
    assert {row[2] for row in rows} == set(EVENTS)


def test_functions_by_event_add_up_to_perfs_periods(profile: pf.Profile, delivered: Delivered) -> None:
    expected: Counter[str] = Counter()
    for _, _, event, period, _ in delivered:
        expected[event] += period
    group = event_group(profile, "page-faults")
    assert group.events[0].name == "page-faults"
    names = [event.name for event in group.events]
    assert dict(zip(names, group.total.weights, strict=True)) == expected
    sums = [sum(one.weights[number] for one in group.functions) for number in range(len(names))]
    assert dict(zip(names, sums, strict=True)) == expected


def test_ratios_are_found_by_plain_names() -> None:
    names = ["cpu_core/cycles/u", "cpu_core/instructions/u", "branch-misses:u", "branches:u", "page-faults"]
    found = [(one.name, one.part, one.whole) for one in ratios_of(names)]
    assert found == [
        ("IPC", "cpu_core/instructions/u", "cpu_core/cycles/u"),
        ("branch misses", "branch-misses:u", "branches:u"),
    ]


FORMAT_TIMES, FORMAT_ID, FORMAT_LOST = 3, 4, 16


@pytest.mark.parametrize("read_format", [FORMAT_ID | FORMAT_LOST, FORMAT_ID | FORMAT_TIMES, FORMAT_ID])
def test_an_event_by_itself_has_what_it_counted(tmp_path: Path, read_format: int) -> None:
    """`-e cpu-clock:S`: perf 7.2 delivers differences of the counts in samples, not the periods."""
    head = crafting.IP | crafting.TID | crafting.TIME | crafting.ID | crafting.PERIOD | crafting.READ
    event = Attribute.of((1, 0), head, ids=[9], read_format=read_format)
    times = [50, 40] if read_format & FORMAT_TIMES else []
    lost = [0] if read_format & FORMAT_LOST else []
    records = [crafting.comm(event, 7, 7, "crafted")]
    records += [
        crafting.sample(event, ip=0x1000, pid=7, tid=7, time=1000 + n, period=500, counts=[value, *times, 9, *lost])
        for n, value in enumerate((510, 1035, 1600))
    ]
    profile = pf.fuse(PerfFile([event], records).write(tmp_path / "perf.data"))
    rows = profile.sql("SELECT weight, weight_unit::VARCHAR FROM samples ORDER BY sample_id").fetchall()
    assert rows == [(510, "ns"), (525, "ns"), (565, "ns")]
