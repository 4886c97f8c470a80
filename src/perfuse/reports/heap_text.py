"""The report of heap shots, for a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from perfuse.analysis.handles import LeakedHandles
from perfuse.analysis.heap_rows import ClassGrowth, LiveObjectSite, RootPath
from perfuse.analysis.heap_sums import SnapshotSize
from perfuse.reports.grid import Cell, Column, fields, grid
from perfuse.reports.heap import HeapReport
from perfuse.reports.section import section
from perfuse.reports.style import Role, Style
from perfuse.reports.text import cut_middle
from perfuse.reports.units import bytes_text, count_text, counted, duration_text, percent_text

UNKNOWN = "[never described]"
SHOTS_SHOWN = 12
STEPS_SHOWN = 4
"""Objects of a path that are shown at either end."""
FRAMES_SHOWN = 4


def heap_lines(report: HeapReport, style: Style) -> Iterator[str]:
    """The sections of heap shots and of handles that are left, line by line."""
    yield from _shown(report, style)
    yield from handle_lines(report.leaked_handles, style)


def _shown(report: HeapReport, style: Style) -> Iterator[str]:
    if len(report.shots) > 1:
        yield from shot_lines(report.shots, style)
    heap = report.heap
    title = "Heap shot" if len(report.shots) == 1 else f"Heap shot {heap.snapshot.snapshot_id}, the last"
    yield from section(title, style)
    yield from fields(_facts(report), style)
    yield ""
    yield from _classes(report, style)
    if report.retainers:
        yield from section("What retains most, and why it is alive", style)
        yield from _retainers(report, style)
    if report.growth:
        note = f"{duration_text(heap.snapshot.ts_ns - report.shots[0].snapshot.ts_ns)} earlier"
        first = report.shots[0].snapshot.snapshot_id
        yield from section(f"Grew since heap shot {first}", style, note)
        yield from _growth(report.growth, style)
        yield from more(report.num_grown - len(report.growth), style)
    if report.sites:
        yield from section("Where what is alive was allocated", style)
        yield from _sites(report.sites, style)


def handle_lines(handles: Sequence[LeakedHandles], style: Style) -> Iterator[str]:
    """The section of handles that are left; nothing where there are none."""
    if handles:
        yield from section("Handles never freed", style)
        yield from _handles(handles, style)


def _handles(handles: Sequence[LeakedHandles], style: Style) -> Iterator[str]:
    found = any(one.types for one in handles)
    columns = [
        Column("handles", right=True),
        Column("kind"),
        *([Column("retain", right=True), Column("objects", shrinks=16, cut=cut_middle)] if found else []),
        Column("made by", shrinks=20, role=Role.FAINT),
    ]
    rows: list[list[Cell]] = []
    for one in handles:
        retained: Cell = ("-", Role.FAINT) if one.retained_bytes is None else bytes_text(one.retained_bytes)
        objects: Cell = ", ".join(one.types) or ("not in the last shot", Role.FAINT)
        told = [retained, objects] if found else []
        rows.append([count_text(one.num_handles), _kind(one), *told, _stack(one.stack)])
    return grid(columns, rows, style)


def _kind(handles: LeakedHandles) -> Cell:
    kind = handles.kind.replace("_", " ")
    return kind if handles.keeps_objects else (kind, Role.FAINT)


def shot_lines(shots: Sequence[SnapshotSize], style: Style) -> Iterator[str]:
    """The section of all shots."""
    yield from section("Heap shots", style)
    columns = [
        Column("shot", right=True),
        Column("after", right=True),
        Column("objects", right=True),
        Column("size", right=True),
        Column("", role=Role.FAINT),
    ]
    begin = shots[0].snapshot.ts_ns
    rows: list[list[Cell]] = [
        [
            str(one.snapshot.snapshot_id),
            duration_text(one.snapshot.ts_ns - begin),
            count_text(one.num_objects),
            bytes_text(one.size_bytes),
            "cut short" if one.snapshot.end_ns is None else "",
        ]
        for one in shots[-SHOTS_SHOWN:]
    ]
    yield from grid(columns, rows, style)
    yield from more(len(shots) - len(rows), style, "before them")


def _facts(report: HeapReport) -> list[tuple[str, Cell]]:
    heap = report.heap
    held = f"{counted(heap.num_objects, 'object')}, {bytes_text(heap.size_bytes)}"
    linked = f"{counted(heap.num_references, 'reference')}, {counted(heap.num_roots, 'root')}"
    facts: list[tuple[str, Cell]] = [("holds", held), ("linked by", linked)]
    if not heap.has_roots:
        facts.append(("roots", "none were recorded: objects that nothing refers to stand for them"))
    elif heap.num_unreachable:
        size = (
            f"{bytes_text(heap.unreachable_bytes or 0)} ({percent_text(heap.unreachable_bytes or 0, heap.size_bytes)})"
        )
        facts.append(("unreachable", f"{counted(heap.num_unreachable, 'object')}, {size}, kept alive by no root"))
    if not heap.is_complete:
        facts.append(("cut short", "its end was not recorded: objects and what refers to them may be missing"))
    for number, what in (
        (heap.num_dangling, "references of or to what is no object of the shot"),
        (heap.num_missed_roots, "roots of what is no object of the shot"),
        (heap.num_repeated, "records of objects that had one"),
    ):
        if number:
            facts.append(("left out", f"{count_text(number)} {what}"))
    return facts


def _classes(report: HeapReport, style: Style) -> Iterator[str]:
    columns = [
        Column("retained", right=True),
        Column("", right=True),
        Column("size", right=True),
        Column("objects", right=True),
        Column("type", shrinks=20, cut=cut_middle),
    ]
    whole = report.heap.size_bytes
    rows: list[list[Cell]] = [
        [
            bytes_text(one.retained_bytes),
            percent_text(one.retained_bytes, whole),
            bytes_text(one.size_bytes),
            count_text(one.num_objects),
            type_cell(one.type),
        ]
        for one in report.classes
    ]
    yield from grid(columns, rows, style)
    yield from more(report.num_classes - len(report.classes), style)


def _retainers(report: HeapReport, style: Style) -> Iterator[str]:
    columns = [Column("retained", right=True), Column("objects", right=True), Column("path from a root", shrinks=30)]
    rows: list[list[Cell]] = [
        [bytes_text(one.object.retained_bytes), count_text(one.object.num_retained), _path(one.path)]
        for one in report.retainers
    ]
    return grid(columns, rows, style)


def _path(path: RootPath | None) -> Cell:
    if path is None:
        return ("no root keeps it alive", Role.FAINT)
    steps = path.steps
    if len(steps) <= 2 * STEPS_SHOWN:
        return str(path)
    left = len(steps) - 2 * STEPS_SHOWN
    begin = RootPath(path.root, steps[:STEPS_SHOWN])
    end = str(RootPath(None, steps[-STEPS_SHOWN:])).split(" → ", 1)[1]
    return f"{begin} → … {counted(left, 'object')} … → {end}"


def _growth(growth: Sequence[ClassGrowth], style: Style) -> Iterator[str]:
    columns = [
        Column("retained", right=True),
        Column("size", right=True),
        Column("objects", right=True),
        Column("new", right=True),
        Column("gone", right=True),
        Column("type", shrinks=20, cut=cut_middle),
    ]
    rows: list[list[Cell]] = [
        [
            signed(bytes_text, one.retained_bytes),
            signed(bytes_text, one.size_bytes),
            signed(count_text, one.num_objects),
            count_text(one.num_new),
            count_text(one.num_gone),
            type_cell(one.type),
        ]
        for one in growth
    ]
    return grid(columns, rows, style)


def signed(text: Callable[[int], str], numbers: tuple[int, int]) -> str:
    """How much more or less the second is."""
    difference = numbers[1] - numbers[0]
    sign = "+" if difference > 0 else "-" if difference < 0 else ""
    return sign + text(abs(difference))


def _sites(sites: Sequence[LiveObjectSite], style: Style) -> Iterator[str]:
    columns = [
        Column("size", right=True),
        Column("objects", right=True),
        Column("type", shrinks=16, cut=cut_middle),
        Column("by", shrinks=20, role=Role.FAINT),
    ]
    rows: list[list[Cell]] = [
        [bytes_text(one.size_bytes), count_text(one.num_objects), type_cell(one.type), _stack(one.stack)]
        for one in sites
    ]
    return grid(columns, rows, style)


def _stack(names: Sequence[str]) -> Cell:
    if not names:
        return ("no stack was taken", Role.FAINT)
    # What the runtime put between says little.
    written = [_method(name) for name in names if not name.startswith("(wrapper ")]
    return " ← ".join(written[:FRAMES_SHOWN]) + (" ← …" if len(written) > FRAMES_SHOWN else "")


def _method(name: str) -> str:
    """Class and method: namespaces and parameters would push callers out of the line.

    >>> _method("System.Collections.Generic.List`1<Ns.Page>:Add (Ns.Page)")
    'List`1:Add'
    """
    type_name, colon, method = name.split(" (", 1)[0].partition(":")
    return type_name.split("<")[0].rsplit(".", 1)[-1] + colon + method if colon else name


def type_cell(name: str | None) -> Cell:
    """The name of a type, or that there is none."""
    return (UNKNOWN, Role.FAINT) if name is None else name


def more(number: int, style: Style, what: str = "more") -> Iterator[str]:
    """How many rows are not shown; nothing where all are."""
    if number > 0:
        yield style.paint(f"  … {count_text(number)} {what} (--json or --limit 0 has all)", Role.FAINT)
