"""Section `objects`: the history of single objects."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from perfuse.analysis.functions import Backtrace, stack_backtraces
from perfuse.analysis.object_history import ObjectHistory, find_objects, histories_of, object_histories
from perfuse.analysis.objects import UNKNOWN_TYPE
from perfuse.errors import UsageError
from perfuse.reports.grid import Cell, Column, grid, section
from perfuse.reports.runtime.sections import RuntimeRequest, SectionContext, as_plain, more_rows_line, site_lines
from perfuse.reports.text import Role, Style
from perfuse.reports.units import bytes_text, counted, duration_text, hex_text
from perfuse.value_class import value_class


@value_class
class ObjectData:
    """Objects with their events, and the backtraces and threads of these; `num_objects` also counts those left out."""

    start_ns: int
    num_objects: int
    objects: list[ObjectHistory]
    backtraces: dict[int | None, Backtrace]
    threads: dict[int, str]


def collect(context: SectionContext) -> ObjectData:
    """The requested objects.

    Raises:
        UsageError: None are requested.
    """
    request = context.request
    if not (request.track or request.find_bytes is not None or request.find_type is not None):
        raise UsageError("which objects?", field="section", hint="--track ADDRESS, --find S:SIZE or --find T:TYPE")
    objects = object_histories(context.profile, request.track)
    num_objects = len(objects)
    if request.find_bytes is not None or request.find_type is not None:
        found = find_objects(context.profile, min_bytes=request.find_bytes, type_part=request.find_type)
        num_objects += len(found)
        objects += histories_of(context.profile, found[: request.limit])
    stacks = stack_backtraces(context.profile, [event.stack_id for history in objects for event in history.events])
    return ObjectData(context.start_ns, num_objects, objects, stacks, context.thread_labels)


def as_json(data: ObjectData) -> Any:
    """Objects with their events; each event with its backtrace, outermost function first."""
    found = []
    for history in data.objects:
        events = [
            {
                **as_plain(event),
                "thread": _thread(data, event.thread_id),
                "backtrace": list(data.backtraces[event.stack_id]),
            }
            for event in history.events
        ]
        found.append({"type_name": history.type_name, "size_bytes": history.size_bytes, "events": events})
    return found


def lines(data: ObjectData, request: RuntimeRequest, style: Style) -> Iterator[str]:
    """A paragraph per object, a line per event."""
    yield from section("Objects", style, counted(data.num_objects, "object"))
    for history in data.objects:
        size = "" if history.size_bytes is None else f", {bytes_text(history.size_bytes)}"
        yield "  " + style.paint(f"{history.type_name or UNKNOWN_TYPE}{size}", Role.NAME)
        if not history.events:
            yield "    no event was recorded"
        for event in history.events:
            row: list[Cell] = [
                duration_text(event.ts_ns - data.start_ns),
                event.what,
                hex_text(event.object_address),
                event.detail,
                (_thread(data, event.thread_id) or "", Role.FAINT),
            ]
            columns = [
                Column("", right=True),
                Column(""),
                Column("", role=Role.FAINT),
                Column(""),
                Column("", shrinks=8),
            ]
            yield from grid(columns, [row], style, indent="    ")
            backtrace = data.backtraces[event.stack_id]
            if backtrace:
                yield from site_lines(backtrace, request, style, indent="        ")
    yield from more_rows_line(data.num_objects - len(data.objects), "objects", request, style)


def _thread(data: ObjectData, thread_id: int | None) -> str | None:
    return None if thread_id is None else data.threads.get(thread_id)
