"""Section `header`: fields of the file header."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from perfuse.reports.grid import fields, section
from perfuse.reports.names import module_text
from perfuse.reports.runtime.sections import RuntimeRequest, SectionContext
from perfuse.reports.text import Style
from perfuse.reports.units import hex_text

_LATEST = 253402300799
"""Seconds since 1970 at the end of the year 9999; damaged headers contain later times."""

HeaderFields = list[tuple[str, dict[str, Any]]]
"""Path and header fields of each file."""


def collect(context: SectionContext) -> HeaderFields:
    """The header of each recording."""
    return [(one.path, dict(one.header)) for one in context.profile.recordings]


def as_json(data: HeaderFields) -> Any:
    """Headers, in the order of the files."""
    return [{"path": path, "fields": found} for path, found in data]


def lines(data: HeaderFields, _request: RuntimeRequest, style: Style) -> Iterator[str]:
    """Every field, in the order of the specification."""
    for path, found in data:
        yield from section(f"Header of {module_text(path)}", style)
        yield from fields([(name, _text(name, value)) for name, value in found.items()], style)


def _text(name: str, value: Any) -> str:
    if type(value) is not int and isinstance(value, int) and not isinstance(value, bool):
        return hex_text(value)
    if name == "startup_time" and value:
        return f"{value} ({datetime.fromtimestamp(min(value / 1000, _LATEST), UTC):%Y-%m-%d %H:%M:%S} UTC)"
    return str(value)
