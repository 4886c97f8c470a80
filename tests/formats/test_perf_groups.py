"""Events in groups: what each counted since the sample before, as perf 7.2 delivers it."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

import perfuse as pf
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
