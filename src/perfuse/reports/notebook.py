"""Profiles and tables as HTML for notebooks; all text is escaped."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from itertools import islice
from typing import Any, Protocol

from perfuse.reports.json_text import address_value, is_address
from perfuse.reports.units import count_text, counted

ROWS_SHOWN = 10


class NamedTable(Protocol):
    """A common table; `perfuse.Table` is one."""

    name: str

    @property
    def columns(self) -> tuple[str, ...]:
        """Column names."""
        ...

    def to_arrow(self) -> Any:
        """The table, as an `arro3.core.Table`."""
        ...


def table_html(table: NamedTable) -> str:
    """The first rows of a table, and the number of rows."""
    arrow = table.to_arrow()
    columns = [arrow.column(name) for name in table.columns]
    rows = islice(zip(*columns, strict=True), ROWS_SHOWN)
    addresses = [is_address(name) for name in table.columns]
    cells = [[_cell(value.as_py(), address) for value, address in zip(row, addresses, strict=True)] for row in rows]
    return f"<p><b>{escape(table.name)}</b>: {counted(arrow.num_rows, 'row')}</p>" + _table(table.columns, cells)


def profile_html(profile: Any) -> str:
    """Title, number of samples and files of a profile."""
    files = [[r.path, r.format, r.summary.producer or ""] for r in profile.recordings]
    samples = counted(profile.tables["samples"].num_rows, "sample")
    return f"<p><b>{escape(profile.title)}</b>: {samples}</p>" + _table(("file", "format", "producer"), files)


def _table(names: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    head = "".join(f"<th>{escape(name)}</th>" for name in names)
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _cell(value: Any, address: bool) -> str:
    if value is None:
        return ""
    if isinstance(value, bytes):
        return counted(len(value), "byte")
    return str(address_value(value)) if address else (count_text(value) if isinstance(value, int) else str(value))
