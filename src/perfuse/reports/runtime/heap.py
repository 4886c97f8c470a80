"""Section `heap`: what heap shots show to be alive, what keeps it so, and what grew."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from perfuse.reports.heap import HeapReport, heap_report
from perfuse.reports.heap_overview import HeapOverview, large_shots
from perfuse.reports.heap_overview_text import overview_lines
from perfuse.reports.heap_text import heap_lines
from perfuse.reports.runtime.gathering import Gathering, RuntimeRequest
from perfuse.reports.style import Style


def gather(of: Gathering) -> HeapReport | HeapOverview | None:
    """The last shot, and what changed since the first; of large ones an overview tells only what they hold."""
    limit = of.request.rows(5) or 0
    large = large_shots(of.profile, limit) if of.request.is_overview else None
    return large or heap_report(of.profile, limit)


def as_json(told: HeapReport | HeapOverview) -> Any:
    """Shots, the last of them in full, growth."""
    return told.as_json()


def lines(told: HeapReport | HeapOverview, _asked: RuntimeRequest, style: Style) -> Iterator[str]:
    """Shots, classes by what they retain, paths from roots, growth, sites."""
    return overview_lines(told, style) if isinstance(told, HeapOverview) else heap_lines(told, style)
