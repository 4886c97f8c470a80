"""Counters: last, smallest and largest values, and all values in time."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from perfuse.analysis.profiles import UNSELECTED, RuntimeProfile, read_selected
from perfuse.errors import UsageError


@dataclass(frozen=True, slots=True)
class CounterValues:
    """A counter with its values.

    Attributes:
        pid: Its process.
        section: Its section; None where the file states none.
        name: Its name.
        unit: `bytes`, `time`, `count`, `percentage` or `raw`; None where the file states none.
        kind: Type of its values, in the words of the recorder.
        monotonic: Whether it never decreases; None where the file states none.
        last: The last value; None where it is text.
        text: The last value, where it is text.
        min: The smallest number; None where there is none.
        max: The largest number.
        values: Every number with its time on the profile's clock.
    """

    pid: int
    section: str | None
    name: str
    unit: str | None
    kind: str
    monotonic: bool | None
    last: float | None
    text: str | None
    min: float | None
    max: float | None
    values: list[tuple[int, float]]


def counters(profile: RuntimeProfile) -> list[CounterValues]:
    """Counters that have a value in the selected time, by process and section, in the order of the files."""
    samples: dict[int, list[tuple[int, float | None, str | None]]] = {}
    for counter, *sample in read_selected(
        profile, "counter_samples", "counter_id", "ts_ns", "value", "text", thread="source_id"
    ):
        samples.setdefault(counter, []).append(tuple(sample))
    columns = ("counter_id", "source_id", "section", "name", "unit", "kind", "monotonic")
    by_section: dict[tuple[int, str | None], list[CounterValues]] = {}
    pids = profile.process_pids() if samples else {}
    # Sections in the order of their first counters, with their counters in order.
    for counter, source, *described in sorted(
        read_selected(profile, "counters", *columns, **UNSELECTED), key=lambda row: row[0]
    ):
        if counter in samples:
            values = _values(pids[source], described, samples[counter])
            by_section.setdefault((values.pid, values.section), []).append(values)
    return [one for counters in by_section.values() for one in counters]


def counters_by_name(profile: RuntimeProfile) -> dict[str, CounterValues]:
    """Counters that have a value in the selected time, by name.

    Raises:
        UsageError: Several processes have counters.
    """
    found = counters(profile)
    pids = {one.pid: None for one in found}
    if len(pids) > 1:
        hint = f"select one with --process: {', '.join(map(str, pids))}"
        raise UsageError(f"{len(pids)} processes have counters", hint=hint)
    return {one.name: one for one in found}


def _values(pid: int, described: Sequence[Any], samples: list[tuple[int, float | None, str | None]]) -> CounterValues:
    section, name, unit, kind, monotonic = described
    # The sort is stable: values of equal times stay in the order of the table.
    samples = sorted(samples, key=lambda sample: sample[0])
    values = [(time, value) for time, value, _ in samples if value is not None]
    texts = [text for _, _, text in samples if text is not None]
    return CounterValues(
        pid=pid,
        section=section,
        name=name,
        unit=unit,
        kind=kind,
        monotonic=monotonic,
        last=values[-1][1] if values else None,
        text=texts[-1] if texts else None,
        min=min((value for _, value in values), key=_nan_last, default=None),
        max=max((value for _, value in values), key=_nan_last, default=None),
        values=values,
    )


def _nan_last(value: float) -> tuple[bool, float]:
    """A sort key that places NaN after all numbers."""
    return math.isnan(value), value
