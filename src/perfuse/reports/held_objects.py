"""The report of what holds the objects of some types: `report --section heap --type`."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

from perfuse.analysis.held_objects import HeldObjects, HeldType, HoldingPath, held_objects
from perfuse.errors import UsageError
from perfuse.reports.grid import Cell, Column, fields, grid, section
from perfuse.reports.registry import Options, Report
from perfuse.reports.text import Role, Style, cut_middle
from perfuse.reports.units import bytes_text, count_text, counted, hex_text
from perfuse.value_class import as_dict

if TYPE_CHECKING:
    from perfuse.profile import Profile


def build(profile: Profile, options: Options) -> Report:
    """Builds the report of `--type`."""
    if set(options.get("--section", ())) - {"heap"}:
        raise UsageError("--type selects objects of section heap", hint="leave out --section, or write --section heap")
    if profile.stack_filter:
        raise UsageError("filters of stacks do not select objects", hint="--event retained --tree takes them")
    found = held_objects(profile, options["--type"], options.get("--snapshot"), options.get("--since"))
    as_lines = partial(held_lines, found, profile.title, options["--limit"] or None)
    return Report(partial(_as_json, found, profile.title), as_lines, profile.diagnostics)


def _as_json(found: HeldObjects, title: str) -> dict[str, Any]:
    return {
        "kind": "held_objects",
        "title": title,
        "snapshot": as_dict(found.snapshot),
        "earlier": None if found.earlier is None else as_dict(found.earlier),
        "has_roots": found.has_roots,
        "types": [as_dict(one) for one in found.types],
        "paths": [_path_json(one) for one in found.paths],
    }


def _path_json(one: HoldingPath) -> dict[str, Any]:
    root = None
    if one.root is not None:
        slot = one.root.slot_address
        root = {**as_dict(one.root), "slot_address": None if slot is None else hex_text(slot), "text": str(one.root)}
    return {**as_dict(one), "types": list(one.types), "root": root, "address": hex_text(one.address)}


def held_lines(found: HeldObjects, title: str, limit: int | None, style: Style) -> Iterator[str]:
    """The report, line by line."""
    yield style.paint(title, Role.TITLE)
    yield ""
    pairs: list[tuple[str, Cell]] = [("heap snapshot", str(found.snapshot.snapshot_id))]
    if found.earlier is not None:
        other = "" if found.earlier.source_id == found.snapshot.source_id else " of the other file"
        pairs.append(("compared with", f"{found.earlier.snapshot_id}{other} (--since N for another)"))
    if found.snapshot.end_ns is None:
        pairs.append(("incomplete", "the recording ended within it: objects may be missing"))
    yield from fields(pairs, style)
    yield from section("Types", style, "by what would be freed with all objects of the type")
    yield from _type_table(found.types[:limit], style, found.earlier is not None)
    yield from _more(len(found.types) - len(found.types[:limit]), style)
    if not found.paths:
        return
    note = (
        "a shortest path for each object"
        if found.has_roots
        else "from objects that nothing refers to: no roots were recorded"
    )
    yield from section("Held by", style, note)
    rows: list[list[Cell]] = [
        [count_text(one.num_objects), bytes_text(one.size_bytes), bytes_text(one.retained_bytes), holder_text(one)]
        for one in found.paths[:limit]
    ]
    columns = [
        Column("objects", right=True),
        Column("own", right=True),
        Column("retained", right=True),
        Column("from the root to the objects", shrinks=40, cut=cut_middle),
    ]
    yield from grid(columns, rows, style)
    yield from _more(len(found.paths) - len(found.paths[:limit]), style)
    first = found.paths[0]
    yield ""
    yield f"  The {counted(first.num_objects, first.types[-1], first.types[-1])} that retain most: {holder_text(first)}"


def holder_text(one: HoldingPath) -> str:
    """`static field of Cache → Entry[] → Entry → Win`"""
    begin = [str(one.root)] if one.root is not None else [] if one.is_reachable else ["no root"]
    return " → ".join([*begin, *one.types])


def _type_table(types: list[HeldType], style: Style, is_compared: bool) -> Iterator[str]:
    columns = [Column("objects", right=True), Column("own", right=True), Column("retained", right=True)]
    if is_compared:
        columns += [Column("objects before", right=True), Column("change of retained", right=True)]
    rows: list[list[Cell]] = []
    for one in types:
        cells: list[Cell] = [count_text(one.num_objects), bytes_text(one.size_bytes), bytes_text(one.retained_bytes)]
        if is_compared:
            sign = "+" if one.growth_bytes > 0 else ""
            cells += [count_text(one.earlier_objects or 0), f"{sign}{bytes_text(one.growth_bytes)}"]
        rows.append([*cells, one.type])
    return grid([*columns, Column("type", shrinks=24)], rows, style)


def _more(count: int, style: Style) -> Iterator[str]:
    if count > 0:
        yield style.paint(f"  … {count_text(count)} more (--limit 0 shows all)", Role.FAINT)
