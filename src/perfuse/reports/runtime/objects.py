"""Section `objects`: the lives of single objects."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from perfuse.analysis.backtraces import Backtrace, allocation_backtraces
from perfuse.analysis.object_life import ObjectLife, found_objects, lives_of, object_lives
from perfuse.reports.grid import Cell, Column, grid, section
from perfuse.reports.runtime.sections import Gathering, RuntimeRequest, block, one_line, plain
from perfuse.reports.text import Role, Style
from perfuse.reports.units import bytes_text, counted, duration_text, hex_text


@dataclass(frozen=True, slots=True)
class Told:
    """Objects, with the backtraces and threads that their moments name."""

    start_ns: int
    lives: list[ObjectLife]
    backtraces: dict[int | None, Backtrace]
    threads: dict[int, str]


def gather(of: Gathering) -> Told | None:
    """Objects that were asked for; None where none was."""
    asked = of.request
    lives = object_lives(of.profile, asked.track)
    if asked.find_bytes is not None or asked.find_type is not None:
        found = found_objects(of.profile, min_bytes=asked.find_bytes, type_part=asked.find_type, limit=asked.limit)
        lives += lives_of(of.profile, found)
    if not (asked.track or asked.find_bytes is not None or asked.find_type is not None):
        return None
    stacks = allocation_backtraces(of.profile, [moment.stack_id for life in lives for moment in life.moments])
    return Told(of.start_ns, lives, stacks, of.thread_labels)


def as_json(told: Told) -> Any:
    """Objects with their moments; each moment with its backtrace, outermost function first."""
    found = []
    for life in told.lives:
        moments = [
            {
                **plain(moment),
                "thread": _thread(told, moment.thread_id),
                "backtrace": list(told.backtraces[moment.stack_id]),
            }
            for moment in life.moments
        ]
        found.append({"type_name": life.type_name, "size_bytes": life.size_bytes, "moments": moments})
    return found


def lines(told: Told, asked: RuntimeRequest, style: Style) -> Iterator[str]:
    """An object a paragraph, a moment a line."""
    yield from section("Objects", style, counted(len(told.lives), "object"))
    for life in told.lives:
        size = "" if life.size_bytes is None else f", {bytes_text(life.size_bytes)}"
        yield "  " + style.paint(f"{life.type_name or '(unknown type)'}{size}", Role.NAME)
        if not life.moments:
            yield "    nothing was recorded of it"
        for moment in life.moments:
            row: list[Cell] = [
                duration_text(moment.ts_ns - told.start_ns),
                moment.what,
                hex_text(moment.object_address),
                moment.detail,
                (_thread(told, moment.thread_id) or "", Role.FAINT),
            ]
            columns = [
                Column("", right=True),
                Column(""),
                Column("", role=Role.FAINT),
                Column(""),
                Column("", shrinks=8),
            ]
            yield from grid(columns, [row], style, indent="    ")
            backtrace = told.backtraces[moment.stack_id]
            if backtrace and asked.stacks:
                yield from block(backtrace, asked.frames, style, indent="        ")
            elif backtrace:
                width = None if style.width is None else style.width - 8
                yield style.paint("        " + one_line(backtrace, width), Role.FAINT)


def _thread(told: Told, thread_id: int | None) -> str | None:
    return None if thread_id is None else told.threads.get(thread_id)
