"""Periods of 0: a sample counts as much as perf counts it."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

import perf_crafting as crafting
import perfuse as pf
from needs import need
from perf_crafting import Attribute, PerfFile

FIELDS = crafting.IP | crafting.TID | crafting.TIME | crafting.ID | crafting.PERIOD


def _weights(path: Path, periods: dict[int, list[int]]) -> dict[str, list[int]]:
    """Weights of the samples of events, software events by number, whose samples state these periods."""
    events = {
        config: Attribute.of((1, config), FIELDS, ids=[11 + config], period=100).with_size(128) for config in periods
    }
    records = [crafting.comm(next(iter(events.values())), 7, 7, "work")]
    for config, values in periods.items():
        for time, value in enumerate(values):
            records.append(crafting.sample(events[config], pid=7, tid=7, time=1000 + time, period=value))
    with pf.fuse(PerfFile(list(events.values()), records).write(path)) as profile:
        rows = profile.sql("SELECT event, weight FROM samples ORDER BY event, ts_ns").fetchall()
    weights: dict[str, list[int]] = {}
    for event, weight in rows:
        weights.setdefault(event, []).append(weight)
    return weights


def test_a_period_of_zero_is_zero(tmp_path: Path) -> None:
    path = tmp_path / "perf.data"
    assert _weights(path, {0: [0, 10, 0, 5]}) == {"cpu-clock": [0, 10, 0, 5]}
    need("perf")
    report = ["perf", "report", "--stdio", "-i", path, "-F", "period,comm"]
    printed = subprocess.run(report, check=True, capture_output=True, text=True).stdout
    assert re.findall(r"^ +(\d+) +work *$", printed, re.MULTILINE) == ["15"]


@pytest.mark.parametrize("event", [0, 10])
def test_an_event_without_periods_counts_samples(tmp_path: Path, event: int) -> None:
    """The kernel states 0 for all output of BPF programs (event 10)."""
    names = {0: "cpu-clock", 1: "task-clock", 10: "bpf-output"}
    found = _weights(tmp_path / "perf.data", {event: [0, 0], 1: [0, 7]})
    assert found == {names[event]: [100, 100], "task-clock": [0, 7]}
