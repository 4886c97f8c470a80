"""`perfuse tables`"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal

import click

from perfuse.cli.console import Console
from perfuse.cli.opening import ProfileOptions, open_profile
from perfuse.cli.options import FOLLOW, JSON, STRICT, is_path, limit
from perfuse.cli.result import write_result
from perfuse.cli.verbs import verb
from perfuse.errors import require_known
from perfuse.reports.grid import Cell, Column, grid
from perfuse.reports.text import Role, Style
from perfuse.reports.units import count_text
from perfuse.table import names, specification

if TYPE_CHECKING:
    from perfuse.profile import Profile


TEXT_LIMIT = 20


@verb(
    "tables",
    examples=[
        "perfuse tables jit-2345.dump",
        "perfuse tables jit-2345.dump code_objects --limit 20",
        "perfuse tables jit-2345.dump code_objects --columns code_object_id,code",
        "perfuse tables code_objects",
    ],
)
@click.argument("arguments", nargs=-1, required=True, metavar="FILE... [TABLE]")
@click.option(
    "--columns",
    metavar="A,B",
    help="Only these columns of TABLE; `code` of code_objects is filled only if it is named.",
)
@limit(None, f"rows of TABLE [{TEXT_LIMIT} as text]")
@JSON
@STRICT
@FOLLOW
def command(
    console: Console,
    arguments: tuple[str, ...],
    columns: str | None,
    limit: int | None,
    as_json: bool,
    strict: bool,
    follow: Literal["all", "named", "none"],
) -> None:
    """With files: all tables with their rows and columns, or the rows of one. With only a table: its columns."""
    *files, last = arguments
    table = last if last in names() and not is_path(last) else None
    if table is None:
        if files and not is_path(last) and last != "-":
            require_known(last, list(names()), "file or table")
        files.append(last)
    if columns is not None and (table is None or not files):
        raise click.UsageError("--columns selects columns of one table: give files and a table")
    if table is not None and not files:
        spec = specification(table)
        console.json(_spec_json(spec)) if as_json else console.lines(_spec_lines(spec, console.style))
        return
    profile = open_profile(console, files, ProfileOptions(strict=strict, follow=follow))
    if table is not None:
        if limit is None and not as_json:
            limit = TEXT_LIMIT
        write_result(console, profile.sql(_query(table, columns)), "json" if as_json else "table", None, limit)
        return
    counts = {name: _num_rows(profile, name) for name in profile.tables}
    if as_json:
        console.json({"tables": [{**_spec_json(specification(name)), "rows": rows} for name, rows in counts.items()]})
    else:
        console.lines(_table_lines(counts, console.style))


def _query(table: str, columns: str | None) -> str:
    if columns is None:
        return f"FROM {table}"
    known = [name for name, *_ in specification(table)["columns"]]
    selected = [require_known(name.strip(), known, f"column of {table}") for name in columns.split(",")]
    return f"SELECT {', '.join(f'{chr(34)}{name}{chr(34)}' for name in selected)} FROM {table}"


def _num_rows(profile: Profile, name: str) -> int | None:
    if name == "instructions":
        # All code would be disassembled.
        return None
    if name == "records":
        # They are counted already; decoding each again may take minutes.
        return sum(sum(recording.summary.records.values()) for recording in profile.recordings)
    # Streamed: a dump may have millions of line rows.
    return sum(batch.num_rows for batch in profile.tables[name].stream())


def _table_lines(counts: dict[str, int | None], style: Style) -> Iterator[str]:
    rows: list[list[Cell]] = []
    for name, count in counts.items():
        columns = ", ".join(column for column, *_ in specification(name)["columns"])
        shown = "on request" if count is None else count_text(count)
        rows.append([(name, Role.FAINT if count == 0 else Role.NAME), shown, (columns, Role.FAINT)])
    return grid([Column("table"), Column("rows", right=True), Column("columns", shrinks=24)], rows, style, indent="")


def _spec_lines(spec: dict[str, Any], style: Style) -> Iterator[str]:
    yield f"{style.paint(spec['name'], Role.TITLE)}  {spec['doc']}"
    yield ""
    columns: Sequence[Column] = [
        Column("column", role=Role.NAME),
        Column("type"),
        Column("null", role=Role.FAINT),
        Column("meaning", shrinks=30),
    ]
    rows: list[list[Cell]] = [
        [name, _type_name(kind), "null" if nullable else "", doc] for name, kind, nullable, doc in spec["columns"]
    ]
    yield from grid(columns, rows, style)


def _type_name(arrow_type: str) -> str:
    return "String" if arrow_type.startswith("Dictionary") else arrow_type


def _spec_json(spec: dict[str, Any]) -> dict[str, Any]:
    columns = [
        {"name": name, "type": _type_name(kind), "nullable": nullable, "doc": doc}
        for name, kind, nullable, doc in spec["columns"]
    ]
    return {"name": spec["name"], "doc": spec["doc"], "columns": columns}
