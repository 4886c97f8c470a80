"""Filters of stacks apply to every target that is made of stacks: files contain what is left of lists of frames."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from perfuse.profile import Profile
from perfuse.table import Columns

from . import exported
from .stack_walk import by_stack, samples_of
from .test_stack_filters import main_event, some_function


def left_over(profile: Profile, event: str, name: str) -> Counter[int]:
    """The weight of the stacks without a function, by thread id."""
    tids = dict(Columns(profile.tables["threads"]).tuples("thread_id", "tid"))
    found = Counter[int]()
    for (thread, stack), weight in samples_of(profile.tables, event).items():
        if name not in {frame.name for frame in stack}:
            found[tids[thread]] += weight
    return found


@pytest.mark.truth(
    recording=["perf_data", "perf_jsc", "perf_stacks"],
    path=["convert:otlp", "convert:perf-script", "convert:pprof"],
    source="the same selection of lists of frames, a sample at a time",
)
def test_weights_by_thread(profile: Profile, path: str, tmp_path: Path) -> None:
    target = path.removeprefix("convert:")
    event = main_event(profile)
    name = some_function(by_stack(samples_of(profile.tables, event)))
    profile.drop(name).export(tmp_path / "out", to=target)
    expected = left_over(profile, event, name)
    assert expected
    assert +exported.READERS[target](tmp_path / "out")[event] == expected


@pytest.mark.truth(
    recording=["perf_data", "perf_jsc", "perf_stacks"],
    path="convert:cpuprofile",
    source="the same selection of lists of frames, a sample at a time",
)
def test_samples_of_each_thread(profile: Profile, tmp_path: Path) -> None:
    event = main_event(profile)
    name = some_function(by_stack(samples_of(profile.tables, event)))
    filtered = profile.drop(name)
    (tmp_path / "out").mkdir()
    filtered.export(tmp_path / "out", to="cpuprofile", event=event)
    numbers, _ = exported.cpuprofiles(tmp_path / "out")
    weights = left_over(profile, event, name)
    assert numbers.keys() == weights.keys()
    assert numbers.total() == len(filtered.sql(f"SELECT 1 FROM samples WHERE event = '{event}'").fetchall())
