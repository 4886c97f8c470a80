"""Sums of events that a saved profile states: those of all samples, calls and allocations of the recordings."""

from __future__ import annotations

from pathlib import Path

import pytest

import perfuse as pf
from perfuse.analysis.sampled import events, recorded_events
from perfuse.analysis.stack_groups import StackGroups
from truth.kinds import CORPUS

RECORDINGS = {
    "samples and code": ("jitdump/produced/node20.perf.data", "jitdump/produced/node20.dump"),
    "calls": ("xray/fdr/sqmt-small-v5.xray",),
    "runtime": ("mono/v17/everything.mlpd",),
}


@pytest.mark.parametrize("names", RECORDINGS.values(), ids=RECORDINGS)
def test_sums_are_those_of_the_recordings(names: tuple[str, ...], tmp_path: Path) -> None:
    with pf.fuse(*(CORPUS / name for name in names)) as whole:
        whole.save(tmp_path / "saved.perfuse")
        expected = {one.name: one for one in events(whole)}
        sums = {name: StackGroups(whole, name).whole for name in expected}
        assert recorded_events(whole) == expected
        with pf.fuse(tmp_path / "saved.perfuse") as saved:
            assert saved.stated_events is not None
            assert recorded_events(saved) == expected
            assert {name: StackGroups(saved, name).whole_of(expected) for name in expected} == sums
            first_ns, last_ns = saved.span_ns or (0, 0)
            assert recorded_events(saved.between(0, (last_ns - first_ns) / 2e9)) == expected
