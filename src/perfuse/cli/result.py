"""Writing the result of a query: as a text table, CSV, JSON or Parquet."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from perfuse.cli.console import Console
from perfuse.reports.grid import Cell, Column, grid
from perfuse.reports.json_text import address_value, is_address, json_text
from perfuse.reports.text import Role, Style, cell_width, cut, cut_middle
from perfuse.reports.units import count_text

if TYPE_CHECKING:
    from perfuse.query import DuckDBRelation

FORMATS = ("table", "csv", "json", "parquet")
TABLE_LIMIT = 50
_NUMBERS = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "FLOAT", "DOUBLE", "DECIMAL")


def write_result(console: Console, relation: DuckDBRelation, form: str, path: str | None, limit: int | None) -> None:
    """Writes the rows of a relation to a file, or to standard output where `path` is None."""
    from perfuse.query import query_errors

    with query_errors():
        _write(console, relation, form, path, limit)


def _write(console: Console, relation: DuckDBRelation, form: str, path: str | None, limit: int | None) -> None:
    if limit is None and form == "table":
        limit = TABLE_LIMIT
    shown = relation.limit(limit) if limit else relation
    if form in {"csv", "parquet"}:
        write: Callable[[str], None] = shown.write_csv if form == "csv" else shown.write_parquet
        write(path) if path else _through_stdout(console, write)
    else:
        with contextlib.ExitStack() as stack:
            out = stack.enter_context(Path(path).open("w", encoding="utf-8")) if path else console.out
            if form == "json":
                _write_json(shown, out)
            else:
                style = console.style if path is None else Style()
                out.writelines(line + "\n" for line in table_lines(shown, style))
    if not limit:
        return
    [(total,)] = relation.count("*").fetchall()
    if total <= limit:
        return
    if form == "table" and path is None:
        console.line(console.style.paint(f"… {count_text(total - limit)} more rows (--limit 0 shows all)", Role.FAINT))
    else:
        console.note(f"{count_text(total - limit)} more rows were left out", "--limit 0 writes all")


def table_lines(relation: DuckDBRelation, style: Style) -> Iterator[str]:
    """The rows as an aligned table; null is empty, addresses are hexadecimal."""
    names = relation.columns
    rows = relation.fetchall()
    numeric = [any(part in str(kind) for part in _NUMBERS) and "[" not in str(kind) for kind in relation.types]
    columns = [
        Column(name, right=right, shrinks=None if right else 12, cut=cut_middle if name.endswith("path") else cut)
        for name, right in zip(names, numeric, strict=True)
    ]
    addresses = [is_address(name) for name in names]
    cells: list[list[Cell]] = [
        [_cell(value, address) for value, address in zip(row, addresses, strict=True)] for row in rows
    ]
    num_shown = _fitting(columns, cells, style)
    yield from grid(columns[:num_shown], [row[:num_shown] for row in cells], style, indent="")
    if num_shown < len(names):
        yield style.paint(f"… more columns: {', '.join(names[num_shown:])}", Role.FAINT)


def _fitting(columns: Sequence[Column], cells: Sequence[Sequence[Cell]], style: Style) -> int:
    """The number of columns that fit in a line."""
    if style.width is None:
        return len(columns)
    for num_shown in range(len(columns), 1, -1):
        lines = grid(columns[:num_shown], [row[:num_shown] for row in cells], Style(width=style.width), indent="")
        if all(cell_width(line) <= style.width for line in lines):
            return num_shown
    return 1


def _cell(value: Any, address: bool) -> str:
    if value is None:
        return ""
    if address:
        value = address_value(value)
    if isinstance(value, bytes):
        return value.hex(" ")
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, list):
        return "[" + ", ".join(str(item) for item in value) + "]"
    return str(value)


def _write_json(relation: DuckDBRelation, out: TextIO) -> None:
    """Writes an array with one object per line: one JSON document, and one row per line for grep."""
    names = relation.columns
    addresses = [is_address(name) for name in names]
    separator = "["
    for row in relation.fetchall():
        values = [address_value(value) if address else value for value, address in zip(row, addresses, strict=True)]
        out.write(separator + "\n" + json_text(dict(zip(names, values, strict=True)), indent=None))
        separator = ","
    out.write("[]\n" if separator == "[" else "\n]\n")


def _through_stdout(console: Console, write: Callable[[str], None]) -> None:
    """Lets DuckDB write to standard output.

    DuckDB writes to file names only. Opening /dev/stdout by name would truncate a file that output is appended to: it
    writes into a pipe instead, and a thread copies the pipe to standard output.
    """
    console.out.flush()
    reader, writer = os.pipe()
    failed: list[OSError] = []

    def pump() -> None:
        with open(reader, "rb", buffering=0) as source:  # noqa: PTH123 - a descriptor, not a path
            try:
                shutil.copyfileobj(source, sys.stdout.buffer, 1 << 20)
                sys.stdout.buffer.flush()
            except OSError as error:
                failed.append(error)

    thread = threading.Thread(target=pump)
    thread.start()
    try:
        write(f"/dev/fd/{writer}")
    except Exception:
        # Where copying failed, its error is the cause.
        if not failed:
            raise
    finally:
        os.close(writer)
        thread.join()
    if failed:
        raise failed[0]
