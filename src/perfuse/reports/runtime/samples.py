"""Section `samples`: functions, threads and modules by samples."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from perfuse.analysis.sampled import events
from perfuse.reports.grid import section
from perfuse.reports.profile import ProfileReport, over_text, profile_report, sample_lines
from perfuse.reports.runtime.sections import RuntimeRequest, SectionContext
from perfuse.reports.text import Style
from perfuse.reports.units import counted
from perfuse.table import SUM_EVENTS

_HEADER = ("kind", "title", "inputs", "joins", "diagnostics")


def collect(context: SectionContext) -> ProfileReport | None:
    """The event with the most samples."""
    taken = [one.name for one in events(context.profile) if one.name not in SUM_EVENTS]
    if not taken:
        return None
    return profile_report(context.profile, context.request.rows(5) or 0, taken[0])


def as_json(data: ProfileReport) -> Any:
    """The JSON of the report of samples, without the facts about the whole profile."""
    found = {name: value for name, value in data.as_json().items() if name not in _HEADER}
    return {**found, "count": data.event.num_samples}


def lines(data: ProfileReport, request: RuntimeRequest, style: Style) -> Iterator[str]:
    """Functions, threads and modules."""
    # The file does not name the event.
    of = "" if data.event.name == "sample" else f" of {data.event.name}"
    yield from section("Samples", style, f"{counted(data.event.num_samples, 'sample')}{of}{over_text(data.event)}")
    yield from sample_lines(data, style, brief=request.is_overview)
