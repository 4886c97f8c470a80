"""Section `records`: records by kind."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from perfuse.reports.grid import Cell, Column, grid, section
from perfuse.reports.runtime.sections import RuntimeRequest, SectionContext
from perfuse.reports.text import Style
from perfuse.reports.units import count_text, counted

RecordCounts = dict[str, int]
"""Records by kind, the most frequent first."""


def collect(context: SectionContext) -> RecordCounts:
    """Counts of records over all files."""
    counts: RecordCounts = {}
    for recording in context.profile.recordings:
        for kind, count in recording.summary.records.items():
            counts[kind] = counts.get(kind, 0) + count
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def as_json(data: RecordCounts) -> Any:
    """Counts by kind."""
    return data


def lines(data: RecordCounts, _request: RuntimeRequest, style: Style) -> Iterator[str]:
    """One line per kind."""
    yield from section("Records", style, counted(sum(data.values()), "record"))
    rows: list[list[Cell]] = [[count_text(count), kind] for kind, count in data.items()]
    yield from grid([Column("records", right=True), Column("kind")], rows, style)
