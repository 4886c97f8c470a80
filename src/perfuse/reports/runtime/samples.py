"""Section `samples`: where samples were taken."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from perfuse.analysis.sampled import SUMMED, events
from perfuse.reports.grid import section
from perfuse.reports.profile import ProfileReport, profile_report, sample_lines
from perfuse.reports.runtime.sections import Gathering, RuntimeRequest
from perfuse.reports.text import Style
from perfuse.reports.units import counted, duration_text

_HEADER = ("kind", "title", "inputs", "joins", "diagnostics")


def gather(of: Gathering) -> ProfileReport | None:
    """The event with the most samples."""
    taken = [one.name for one in events(of.profile) if one.name not in SUMMED]
    if not taken:
        return None
    return profile_report(of.profile, of.request.rows(5) or 0, taken[0])


def as_json(told: ProfileReport) -> Any:
    """As `report --json` has samples, without what is about the whole."""
    found = {name: value for name, value in told.as_json().items() if name not in _HEADER}
    return {**found, "count": told.event.num_samples}


def lines(told: ProfileReport, asked: RuntimeRequest, style: Style) -> Iterator[str]:
    """Functions, threads and modules."""
    over = f" over {duration_text(told.duration_ns)}" if told.duration_ns else ""
    # Where the file does not say what was sampled, there is no more to say.
    of = "" if told.event.name == "sample" else f" of {told.event.name}"
    yield from section("Samples", style, f"{counted(told.event.num_samples, 'sample')}{of}{over}")
    yield from sample_lines(told, style, brief=asked.is_overview)
