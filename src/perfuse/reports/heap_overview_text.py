"""The overview of large heap shots, for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from perfuse.analysis.heap_sums import ClassSize
from perfuse.reports.grid import Cell, Column, fields, grid
from perfuse.reports.heap_overview import HeapOverview
from perfuse.reports.heap_text import handle_lines, more, shot_lines, signed, type_cell
from perfuse.reports.section import section
from perfuse.reports.style import Role, Style
from perfuse.reports.text import cut_middle
from perfuse.reports.units import bytes_text, count_text, counted, duration_text, percent_text

LEFT_OUT = "large shots: what objects retain, and what keeps them alive, with --section heap"


def overview_lines(told: HeapOverview, style: Style) -> Iterator[str]:
    """Shots, the types of the last, what grew, and handles that are left, line by line."""
    if len(told.shots) > 1:
        yield from shot_lines(told.shots, style)
    last = told.shots[-1]
    title = "Heap shot" if len(told.shots) == 1 else f"Heap shot {last.snapshot.snapshot_id}, the last"
    yield from section(title, style)
    facts: list[tuple[str, Cell]] = [
        ("holds", f"{counted(last.num_objects, 'object')}, {bytes_text(last.size_bytes)}"),
        ("linked by", counted(told.num_references, "reference")),
    ]
    if last.snapshot.end_ns is None:
        facts.append(("cut short", "its end was not recorded: objects and what refers to them may be missing"))
    yield from fields(facts, style)
    yield ""
    yield from _classes(told.classes, last.size_bytes, style)
    yield from more(told.num_classes - len(told.classes), style)
    yield style.paint(f"  {LEFT_OUT}", Role.FAINT)
    if told.growth:
        first = told.shots[0].snapshot
        note = f"{duration_text(last.snapshot.ts_ns - first.ts_ns)} earlier"
        yield from section(f"Grew since heap shot {first.snapshot_id}", style, note)
        yield from _growth(told.growth, style)
        yield from more(told.num_grown - len(told.growth), style)
    yield from handle_lines(told.leaked_handles, style)


def _classes(classes: Sequence[ClassSize], whole: int, style: Style) -> Iterator[str]:
    columns = [
        Column("size", right=True),
        Column("", right=True),
        Column("objects", right=True),
        Column("type", shrinks=20, cut=cut_middle),
    ]
    rows: list[list[Cell]] = [
        [
            bytes_text(one.size_bytes[1]),
            percent_text(one.size_bytes[1], whole),
            count_text(one.num_objects[1]),
            type_cell(one.type),
        ]
        for one in classes
    ]
    return grid(columns, rows, style)


def _growth(growth: Sequence[ClassSize], style: Style) -> Iterator[str]:
    columns = [
        Column("size", right=True),
        Column("objects", right=True),
        Column("type", shrinks=20, cut=cut_middle),
    ]
    rows: list[list[Cell]] = [
        [signed(bytes_text, one.size_bytes), signed(count_text, one.num_objects), type_cell(one.type)] for one in growth
    ]
    return grid(columns, rows, style)
