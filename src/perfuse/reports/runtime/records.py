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
    """Counts of records over all files, in the selected time; records are of no thread."""
    counts: RecordCounts = {}
    profile = context.profile
    if profile.selection.time_ns is not None:
        where = profile.selection.of_all_threads.where()
        query = f"SELECT kind::VARCHAR, count(*) FROM records WHERE {where} GROUP BY 1"
        counts = dict(profile.sql(query).fetchall())
    else:
        for recording in profile.recordings:
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
