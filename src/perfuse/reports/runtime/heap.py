"""Section `heap` of the runtime report: heap snapshots, what retains objects, what grew."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from perfuse.analysis.handles import LeakedHandles, leaked_handles
from perfuse.analysis.heap import Heap, snapshots
from perfuse.analysis.heap_rows import ClassGrowth, HeapClass, HeapObject, LiveObjectSite, RootPath
from perfuse.analysis.heap_sums import ClassSize, SnapshotSize, SnapshotSums, changed_classes
from perfuse.analysis.objects import UNKNOWN_TYPE
from perfuse.reports.grid import Cell, Column, fields, grid, section
from perfuse.reports.json_text import address_value, is_address
from perfuse.reports.runtime.sections import RuntimeRequest, SectionContext
from perfuse.reports.text import Role, Style, cut_middle
from perfuse.reports.units import bytes_text, count_text, counted, duration_text, percent_text
from perfuse.value_class import as_dict, value_class

if TYPE_CHECKING:
    from perfuse.profile import Profile


MOST_PATHS = 5


@value_class
class Retainer:
    """An object that is not dominated by another, and a path from a root to it."""

    object: HeapObject
    path: RootPath | None


@value_class
class HeapReport:
    """The heap snapshots of the file with the last snapshot: that one by class, and what grew since the first.

    Attributes:
        snapshots: Those of the file.
        num_of_others: Number of selected snapshots of other files.
    """

    snapshots: list[SnapshotSize]
    num_of_others: int
    heap: Heap
    classes: list[HeapClass]
    num_classes: int
    retainers: list[Retainer]
    unreachable: list[HeapObject]
    growth: list[ClassGrowth]
    num_grown: int
    sites: list[LiveObjectSite]
    num_sited: int
    leaked_handles: list[LeakedHandles]

    def as_json(self) -> dict[str, Any]:
        """The JSON of section `heap`."""
        heap = self.heap
        facts = ("num_objects", "size_bytes", "num_references", "num_roots", "has_roots", "num_unreachable")
        more = ("unreachable_bytes", "num_dangling", "num_missed_roots", "num_repeated", "is_complete")
        return {
            "snapshots": [one.as_json() for one in self.snapshots],
            "num_of_others": self.num_of_others,
            "is_whole": True,
            "last": {
                "snapshot_id": heap.snapshot.snapshot_id,
                **{name: getattr(heap, name) for name in (*facts, *more)},
                "num_classes": self.num_classes,
                "classes": [_row_json(one) for one in self.classes],
                "retainers": [
                    {**_row_json(one.object), "path": None if one.path is None else _path_json(one.path)}
                    for one in self.retainers
                ],
                "unreachable": [_row_json(one) for one in self.unreachable],
                "sites": [_row_json(one) for one in self.sites],
                "num_sited": self.num_sited,
            },
            "num_grown": self.num_grown,
            "growth": [_row_json(one) for one in self.growth],
            "leaked_handles": [_row_json(one) for one in self.leaked_handles],
        }


def heap_report(profile: Profile, limit: int = 10) -> HeapReport | None:
    """Collects the heap snapshots of a profile; None where there are none.

    Args:
        profile: A profile of any recordings.
        limit: Rows per list; 0 for all.
    """
    every = snapshots(profile)
    if not every:
        return None
    # Of one file: objects of different programs cannot be compared.
    of_file = [one for one in every if one.source_id == every[-1].source_id]
    sums = SnapshotSums(profile)
    # One snapshot is in memory at a time: each may be as large as the program was.
    earlier = profile.heap(of_file[0].snapshot_id).classes() if len(of_file) > 1 else []
    heap = profile.heap(of_file[-1].snapshot_id)
    growth = heap.growth(of_file[0], earlier) if len(of_file) > 1 else []
    classes = heap.classes()
    retainers = heap.dominated(limit=min(limit, MOST_PATHS) if limit else None)
    return HeapReport(
        snapshots=[sums.size(one) for one in of_file],
        num_of_others=len(every) - len(of_file),
        heap=heap,
        classes=classes[: limit or None],
        num_classes=len(classes),
        retainers=[Retainer(one, heap.path_to_root(one.address)) for one in retainers],
        unreachable=heap.unreachable(limit or None),
        growth=growth[: limit or None],
        num_grown=len(growth),
        sites=heap.sites(limit or None),
        num_sited=heap.num_sited,
        leaked_handles=leaked_handles(profile, heap),
    )


def _row_json(one: Any) -> dict[str, Any]:
    return {name: address_value(value) if is_address(name) else value for name, value in as_dict(one).items()}


def _path_json(path: RootPath) -> dict[str, Any]:
    return {
        "root": None if path.root is None else {**_row_json(path.root), "text": str(path.root)},
        "steps": [_row_json(step) for step in path.steps],
    }


MOST_OBJECTS = 250_000
"""The overview of larger snapshots has no retained sizes: for up to this many objects they take a tenth of a second
or two, for more several times as long as the rest of the report."""


@value_class
class HeapOverview:
    """The heap snapshots of a file without retained sizes: the last by type, and what grew since the first.

    Attributes:
        snapshots: All snapshots of the file.
        num_of_others: Number of selected snapshots of other files.
        num_references: References in the last snapshot.
        classes: Types in the last snapshot, the largest first.
        growth: Types that changed since the first snapshot, the most growth first.
    """

    snapshots: list[SnapshotSize]
    num_of_others: int
    num_references: int
    classes: list[ClassSize]
    num_classes: int
    growth: list[ClassSize]
    num_grown: int
    leaked_handles: list[LeakedHandles]

    def as_json(self) -> dict[str, Any]:
        """The JSON of section `heap`."""
        last = self.snapshots[-1]
        return {
            "snapshots": [one.as_json() for one in self.snapshots],
            "num_of_others": self.num_of_others,
            "is_whole": False,
            "last": {
                "snapshot_id": last.snapshot.snapshot_id,
                "num_objects": last.num_objects,
                "size_bytes": last.size_bytes,
                "num_references": self.num_references,
                "is_complete": last.snapshot.end_ns is not None,
                "num_classes": self.num_classes,
                "classes": [
                    {**as_dict(one), "num_objects": one.num_objects[1], "size_bytes": one.size_bytes[1]}
                    for one in self.classes
                ],
            },
            "num_grown": self.num_grown,
            "growth": [
                {"type": one.type, "num_objects": one.num_objects, "size_bytes": one.size_bytes} for one in self.growth
            ],
            "leaked_handles": [as_dict(one) for one in self.leaked_handles],
        }


def large_snapshots(profile: Profile, limit: int, most_objects: int = MOST_OBJECTS) -> HeapOverview | None:
    """Collects the data; None where there are no snapshots, or the first and the last are not that large.

    Args:
        profile: A profile of any recordings.
        limit: Rows per list; 0 for all.
        most_objects: The number of objects up to which a snapshot is not large.
    """
    every = snapshots(profile)
    if not every:
        return None
    sums = SnapshotSums(profile)
    sizes = [sums.size(one) for one in every if one.source_id == every[-1].source_id]
    if max(sizes[0].num_objects, sizes[-1].num_objects) <= most_objects:
        return None
    first, last = sizes[0].snapshot, sizes[-1].snapshot
    rows = sums.classes(first, last)
    classes = [row for row in rows if row.num_objects[1]]
    growth = changed_classes(rows) if len(sizes) > 1 else []
    return HeapOverview(
        snapshots=sizes,
        num_of_others=len(every) - len(sizes),
        num_references=sums.num_references.get(last.snapshot_id, 0),
        classes=classes[: limit or None],
        num_classes=len(classes),
        growth=growth[: limit or None],
        num_grown=len(growth),
        leaked_handles=leaked_handles(profile) if profile.has("gc_handles") else [],
    )


SNAPSHOTS_SHOWN = 12
STEPS_SHOWN = 4
"""How many objects are shown at either end of a path."""
FRAMES_SHOWN = 4
RECORD_SITES = "mono --profile=log:alloc,heapshot records allocations and heap snapshots"


def heap_lines(report: HeapReport, style: Style) -> Iterator[str]:
    """Text about heap snapshots and handles never freed, line by line."""
    yield from _snapshot_sections(report, style)
    yield from handle_lines(report.leaked_handles, style)


def _snapshot_sections(report: HeapReport, style: Style) -> Iterator[str]:
    yield from _heading(report.snapshots, style)
    yield from fields(_fact_fields(report), style)
    yield ""
    yield from _class_table(report, style)
    if report.retainers:
        yield from section("Largest retained sizes, with a path from a root", style)
        yield from _retainer_table(report, style)
    if report.growth:
        yield from _growth_heading(report.snapshots, style)
        yield from _growth_table(report.growth, style)
        yield from more(report.num_grown - len(report.growth), style)
    yield from section("Allocation sites of live objects", style, _sited_text(report))
    if report.sites:
        yield from _site_table(report.sites, style)
    else:
        yield style.paint(f"  not recorded: {RECORD_SITES}", Role.FAINT)


def _sited_text(report: HeapReport) -> str:
    """How many of the live objects have a recorded allocation."""
    left = report.heap.num_objects - report.num_sited
    known = f"{count_text(report.num_sited)} of {counted(report.heap.num_objects, 'object')}"
    return f"{known}; the allocations of {count_text(left)} were not recorded" if left and report.num_sited else known


def handle_lines(handles: Sequence[LeakedHandles], style: Style) -> Iterator[str]:
    """Text about handles never freed; nothing where there are none."""
    if handles:
        yield from section("Handles never freed", style)
        yield from _handle_table(handles, style)


def _handle_table(handles: Sequence[LeakedHandles], style: Style) -> Iterator[str]:
    found = any(one.types for one in handles)
    columns = [
        Column("handles", right=True),
        Column("kind"),
        *([Column("retain", right=True), Column("objects", shrinks=16, cut=cut_middle)] if found else []),
        Column("created by", shrinks=20, role=Role.FAINT),
    ]
    rows: list[list[Cell]] = []
    for one in handles:
        retained: Cell = ("-", Role.FAINT) if one.retained_bytes is None else bytes_text(one.retained_bytes)
        objects: Cell = ", ".join(one.types) or ("not in the last snapshot", Role.FAINT)
        data = [retained, objects] if found else []
        rows.append([count_text(one.num_handles), _kind_text(one), *data, _stack_text(one.stack)])
    return grid(columns, rows, style)


def _kind_text(handles: LeakedHandles) -> Cell:
    kind = handles.kind.replace("_", " ")
    return kind if handles.keeps_objects else (kind, Role.FAINT)


def _heading(snapshots: Sequence[SnapshotSize], style: Style) -> Iterator[str]:
    """The table of all snapshots where there are several, and the heading of the last."""
    if len(snapshots) == 1:
        yield from section("Heap snapshot", style)
        return
    yield from _snapshot_lines(snapshots, style)
    yield from section(f"Heap snapshot {snapshots[-1].snapshot.snapshot_id}, the last", style)


def _growth_heading(snapshots: Sequence[SnapshotSize], style: Style) -> Iterator[str]:
    first, last = snapshots[0].snapshot, snapshots[-1].snapshot
    note = f"{duration_text(last.ts_ns - first.ts_ns)} earlier"
    yield from section(f"Growth since heap snapshot {first.snapshot_id}", style, note)


def _snapshot_lines(snapshots: Sequence[SnapshotSize], style: Style) -> Iterator[str]:
    """The table of all snapshots."""
    yield from section("Heap snapshots", style)
    columns = [
        Column("snapshot", right=True),
        Column("since first", right=True),
        Column("objects", right=True),
        Column("size", right=True),
        Column("", role=Role.FAINT),
    ]
    begin = snapshots[0].snapshot.ts_ns
    rows: list[list[Cell]] = [
        [
            str(one.snapshot.snapshot_id),
            duration_text(one.snapshot.ts_ns - begin),
            count_text(one.num_objects),
            bytes_text(one.size_bytes),
            "cut short" if one.snapshot.end_ns is None else "",
        ]
        for one in snapshots[-SNAPSHOTS_SHOWN:]
    ]
    yield from grid(columns, rows, style)
    yield from more(len(snapshots) - len(rows), style, "earlier ones")


def _fact_fields(report: HeapReport) -> list[tuple[str, Cell]]:
    heap = report.heap
    held = f"{counted(heap.num_objects, 'object')}, {bytes_text(heap.size_bytes)}"
    linked = f"{counted(heap.num_references, 'reference')}, {counted(heap.num_roots, 'root')}"
    facts: list[tuple[str, Cell]] = [("holds", held), ("linked by", linked)]
    if not heap.has_roots:
        facts.append(("roots", "none were recorded: objects without references to them are taken as roots"))
    elif heap.num_unreachable:
        size = (
            f"{bytes_text(heap.unreachable_bytes or 0)} ({percent_text(heap.unreachable_bytes or 0, heap.size_bytes)})"
        )
        facts.append(("unreachable", f"{counted(heap.num_unreachable, 'object')}, {size}, not reachable from a root"))
    if not heap.is_complete:
        facts.append(("cut short", "its end was not recorded: objects and references may be missing"))
    for number, what in (
        (heap.num_dangling, "references from or to addresses without an object"),
        (heap.num_missed_roots, "roots at addresses without an object"),
        (heap.num_repeated, "repeated records of an object"),
    ):
        if number:
            facts.append(("left out", f"{count_text(number)} {what}"))
    return [*facts, *_others(report.num_of_others)]


def _others(num: int) -> list[tuple[str, Cell]]:
    """What is stated of the snapshots of other files."""
    if not num:
        return []
    return [("left out", f"{counted(num, 'snapshot')} of other recordings: --process PID selects those of a process")]


def _class_table(report: HeapReport, style: Style) -> Iterator[str]:
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


def _retainer_table(report: HeapReport, style: Style) -> Iterator[str]:
    columns = [Column("retained", right=True), Column("objects", right=True), Column("path from a root", shrinks=30)]
    rows: list[list[Cell]] = [
        [bytes_text(one.object.retained_bytes), count_text(one.object.num_retained), _path_text(one.path)]
        for one in report.retainers
    ]
    return grid(columns, rows, style)


def _path_text(path: RootPath | None) -> Cell:
    if path is None:
        return ("not reachable from a root", Role.FAINT)
    steps = path.steps
    if len(steps) <= 2 * STEPS_SHOWN:
        return str(path)
    left = len(steps) - 2 * STEPS_SHOWN
    begin = RootPath(path.root, steps[:STEPS_SHOWN])
    end = str(RootPath(None, steps[-STEPS_SHOWN:])).split(" → ", 1)[1]
    return f"{begin} → … {counted(left, 'object')} … → {end}"


def _growth_table(growth: Sequence[ClassGrowth], style: Style) -> Iterator[str]:
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
    """The difference of the second number to the first, with its sign."""
    difference = numbers[1] - numbers[0]
    sign = "+" if difference > 0 else "-" if difference < 0 else ""
    return sign + text(abs(difference))


def _site_table(sites: Sequence[LiveObjectSite], style: Style) -> Iterator[str]:
    columns = [
        Column("size", right=True),
        Column("objects", right=True),
        Column("type", shrinks=16, cut=cut_middle),
        Column("by", shrinks=20, role=Role.FAINT),
    ]
    rows: list[list[Cell]] = [
        [bytes_text(one.size_bytes), count_text(one.num_objects), type_cell(one.type), _stack_text(one.stack)]
        for one in sites
    ]
    return grid(columns, rows, style)


def _stack_text(names: Sequence[str]) -> Cell:
    if not names:
        return ("no stack was recorded", Role.FAINT)
    written = [_method_text(name) for name in names]
    return " ← ".join(written[:FRAMES_SHOWN]) + (" ← …" if len(written) > FRAMES_SHOWN else "")


def _method_text(name: str) -> str:
    """Class and method, without namespaces and parameters.

    >>> _method_text("System.Collections.Generic.List`1<Ns.Page>:Add (Ns.Page)")
    'List`1:Add'
    """
    type_name, colon, method = name.split(" (", 1)[0].partition(":")
    return type_name.split("<")[0].rsplit(".", 1)[-1] + colon + method if colon else name


def type_cell(name: str | None) -> Cell:
    """The name of a type, or a placeholder."""
    return (UNKNOWN_TYPE, Role.FAINT) if name is None else name


def more(number: int, style: Style, what: str = "more") -> Iterator[str]:
    """A line with the number of rows that are not shown; nothing where all are."""
    if number > 0:
        yield style.paint(f"  … {count_text(number)} {what} (--json or --limit 0 shows all)", Role.FAINT)


LEFT_OUT = "large snapshots: retained sizes and paths from roots with --section heap"


def overview_lines(data: HeapOverview, style: Style) -> Iterator[str]:
    """Snapshots, the types of the last, what grew, and handles never freed, line by line."""
    yield from _heading(data.snapshots, style)
    last = data.snapshots[-1]
    facts: list[tuple[str, Cell]] = [
        ("holds", f"{counted(last.num_objects, 'object')}, {bytes_text(last.size_bytes)}"),
        ("linked by", counted(data.num_references, "reference")),
    ]
    if last.snapshot.end_ns is None:
        facts.append(("cut short", "its end was not recorded: objects and references may be missing"))
    yield from fields([*facts, *_others(data.num_of_others)], style)
    yield ""
    yield from _class_size_table(data.classes, last.size_bytes, style)
    yield from more(data.num_classes - len(data.classes), style)
    yield style.paint(f"  {LEFT_OUT}", Role.FAINT)
    if data.growth:
        yield from _growth_heading(data.snapshots, style)
        yield from _class_growth_table(data.growth, style)
        yield from more(data.num_grown - len(data.growth), style)
    yield from handle_lines(data.leaked_handles, style)


def _class_size_table(classes: Sequence[ClassSize], whole: int, style: Style) -> Iterator[str]:
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


def _class_growth_table(growth: Sequence[ClassSize], style: Style) -> Iterator[str]:
    columns = [
        Column("size", right=True),
        Column("objects", right=True),
        Column("type", shrinks=20, cut=cut_middle),
    ]
    rows: list[list[Cell]] = [
        [signed(bytes_text, one.size_bytes), signed(count_text, one.num_objects), type_cell(one.type)] for one in growth
    ]
    return grid(columns, rows, style)


def collect(context: SectionContext) -> HeapReport | HeapOverview | None:
    """The last snapshot, and what changed since the first; in an overview, large ones without retained sizes."""
    limit = context.request.rows(5) or 0
    is_brief = context.request.is_overview and limit
    large = large_snapshots(context.profile, limit) if is_brief else None
    return large or heap_report(context.profile, limit)


def as_json(data: HeapReport | HeapOverview) -> Any:
    """Snapshots, the last of them in full, growth."""
    return data.as_json()


def lines(data: HeapReport | HeapOverview, _request: RuntimeRequest, style: Style) -> Iterator[str]:
    """Snapshots, classes by retained size, paths from roots, growth, allocation sites."""
    return overview_lines(data, style) if isinstance(data, HeapOverview) else heap_lines(data, style)
