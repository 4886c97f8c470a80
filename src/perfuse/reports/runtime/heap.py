"""Section `heap`: what stays alive, and what keeps it alive."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from perfuse.reports.heap import MemoryReport, memory_report
from perfuse.reports.heap_text import memory_lines
from perfuse.reports.runtime.gathering import Gathering, RuntimeRequest
from perfuse.reports.style import Style


def gather(of: Gathering) -> MemoryReport | None:
    """Heap shots; None where there are none: handles alone have a section of their own."""
    told = memory_report(of.profile, of.request.rows(5) or 0)
    return told if told and told.heap else None


def as_json(told: MemoryReport) -> Any:
    """Shots, the last of them by class, what grew, and handles that were never freed."""
    found = told.as_json()
    return {**found["heap"], "leaked_handles": found.get("leaked_handles", [])}


def lines(told: MemoryReport, _asked: RuntimeRequest, style: Style) -> Iterator[str]:
    """As the report of heap shots has it."""
    return memory_lines(told, style)
