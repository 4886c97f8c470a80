"""What a file is, in one screen."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from perfuse.reports.clock_text import Clock, clock_lines
from perfuse.reports.findings import counts_text
from perfuse.reports.grid import Cell, Column, bar, fields, grid
from perfuse.reports.names import format_titles
from perfuse.reports.section import section
from perfuse.reports.style import SEVERITY_ROLES, Role, Style
from perfuse.reports.units import bytes_text, count_text, duration_text

if TYPE_CHECKING:
    from perfuse import Recording

BAR_COLUMNS = 16


def info_lines(recording: Recording, severities: Mapping[str, int], style: Style) -> Iterator[str]:
    """The screen, line by line."""
    summary = recording.summary
    yield style.paint(recording.path, Role.TITLE)
    yield ""
    # A mode of a format that has no version, such as XRay's profiling mode, is told by its name.
    version = f" {'version ' if summary.version[0].isdigit() else ''}{summary.version}" if summary.version else ""
    byte_order = f"{summary.endian}-endian"
    pointers = f", {summary.pointer_bytes * 8}-bit" if summary.pointer_bytes else ""
    pairs: list[tuple[str, Cell]] = [
        ("format", f"{format_titles().get(recording.format, recording.format)}{version}"),
        ("producer", summary.producer or ("unknown", Role.FAINT)),
        ("machine", f"{summary.arch or 'unknown'}{pointers}, {byte_order}"),
        *(("" if index else "clock", line) for index, line in enumerate(_clock(recording))),
        ("span", _span(recording)),
        ("size", bytes_text(recording.size_bytes)),
        ("health", _health(severities)),
    ]
    yield from fields(pairs, style)
    if summary.header:
        yield from section("Header", style)
        yield from fields([(name, value_text(value)) for name, value in summary.header.items()], style)
    if summary.records:
        yield from section("Records", style)
        yield from _counts(summary.records, style)


def value_text(value: Any) -> str:
    """A field's value in one line."""
    if isinstance(value, bytes):
        return value.hex(" ")
    return str(value)


def _clock(recording: Recording) -> list[str]:
    clock = Clock(recording.path, **recording.clock)
    return [recording.summary.clock] if clock.hz_source == "defined" else clock_lines(clock)


def _span(recording: Recording) -> Cell:
    summary = recording.summary
    if summary.span_ns is not None:
        first, last = summary.span_ns
        return f"{duration_text(last - first)} ({first / 1e9:.6f} s to {last / 1e9:.6f} s)"
    if summary.span is not None:
        return f"{count_text(summary.span[1] - summary.span[0])} ticks ({summary.span[0]} to {summary.span[1]})"
    return ("no time stamps", Role.FAINT)


def _health(severities: Mapping[str, int]) -> Cell:
    if not severities:
        return "clean", Role.GOOD
    return counts_text(dict(severities)), SEVERITY_ROLES[next(iter(severities))]


def _counts(records: Mapping[str, int], style: Style) -> Iterator[str]:
    most = max(records.values())
    ordered = sorted(records.items(), key=lambda item: -item[1])
    rows: list[list[Cell]] = [
        [
            count_text(count),
            (bar(count / most if most else 0, BAR_COLUMNS).ljust(BAR_COLUMNS), Role.NAME),
            name,
        ]
        for name, count in ordered
    ]
    return grid([Column("", right=True), Column(""), Column("", shrinks=16)], rows, style)
