"""Counters: last, smallest and largest values, and all values in time."""

import math
from dataclasses import dataclass

from perfuse.analysis.profiles import UNSELECTED, RuntimeProfile, read_selected


@dataclass(frozen=True, slots=True)
class CounterValues:
    """A counter with its values.

    Attributes:
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
    """Counters that have a value in the selected time, by section, in the order of the file."""
    samples: dict[int, list[tuple[int, float | None, str | None]]] = {}
    for counter, *sample in read_selected(
        profile, "counter_samples", "counter_id", "ts_ns", "value", "text", thread=None
    ):
        samples.setdefault(counter, []).append(tuple(sample))
    columns = ("counter_id", "section", "name", "unit", "kind", "monotonic")
    by_section: dict[str | None, list[CounterValues]] = {}
    # Sections in the order of their first counters, with their counters in order.
    for counter, section, name, unit, kind, monotonic in sorted(
        read_selected(profile, "counters", *columns, **UNSELECTED), key=lambda row: row[0]
    ):
        if counter in samples:
            by_section.setdefault(section, []).append(_values(section, name, unit, kind, monotonic, samples[counter]))
    return [one for counters in by_section.values() for one in counters]


def _values(
    section: str | None,
    name: str,
    unit: str | None,
    kind: str,
    monotonic: bool | None,
    samples: list[tuple[int, float | None, str | None]],
) -> CounterValues:
    # The sort is stable: values of equal times stay in the order of the table.
    samples = sorted(samples, key=lambda sample: sample[0])
    values = [(time, value) for time, value, _ in samples if value is not None]
    texts = [text for _, _, text in samples if text is not None]
    return CounterValues(
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
