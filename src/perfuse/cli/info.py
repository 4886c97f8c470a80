"""`perfuse info`"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import perfuse
from perfuse.cli import exit_codes
from perfuse.cli.console import Console
from perfuse.cli.exit_codes import Failure, describe_failure
from perfuse.cli.options import EACH_FILE, JSON, STRICT
from perfuse.cli.verbs import verb
from perfuse.reports.grid import Cell, Column, bar, fields, grid, section
from perfuse.reports.inputs import clock_lines, counts_text, severity_counts
from perfuse.reports.names import format_titles
from perfuse.reports.text import SEVERITY_ROLES, Role, Style
from perfuse.reports.units import bytes_text, count_text, duration_text

if TYPE_CHECKING:
    from perfuse import Diagnostic, Recording


@verb("info", examples=["perfuse info jit-2345.dump", "perfuse info --json perf.data jit-2345.dump"])
@EACH_FILE
@JSON
@STRICT
def command(console: Console, files: tuple[str, ...], as_json: bool, strict: bool) -> int:
    """Version, byte order, machine, clock, time span, header fields, and counts by kind of record.

    Of a directory, all recordings in it.
    """
    shown: list[dict[str, Any]] = []
    unreadable: list[dict[str, Any]] = []
    findings: list[Diagnostic] = []
    for path in files:
        try:
            recording = perfuse.open(path, strict=strict)
            diagnostics = recording.check(limit=1)
        except (OSError, perfuse.PerfuseError) as error:
            failure = describe_failure(error)
            if failure.exit_code != exit_codes.UNREADABLE:
                raise
            console.note(failure.message, failure.hint)
            unreadable.append(_unreadable(path, error, failure))
            continue
        if as_json:
            shown.append(recording_json(recording, diagnostics))
        else:
            if findings or shown:
                console.line()
            shown.append({})
            console.lines(info_lines(recording, severity_counts(diagnostics), console.style))
        findings += diagnostics
    if as_json:
        console.json({"recordings": shown, **({"unreadable": unreadable} if unreadable else {})})
    if unreadable:
        return exit_codes.UNREADABLE
    # No note: the output states the health of every file.
    return exit_codes.FINDINGS if any(found.is_loss for found in findings) else exit_codes.CLEAN


def recording_json(recording: Recording, diagnostics: list[Diagnostic]) -> dict[str, Any]:
    """An entry of `recordings` in the contract of `info --json`."""
    summary = recording.summary
    return {
        "path": recording.path,
        "format": recording.format,
        "version": summary.version,
        "endian": summary.endian,
        "arch": summary.arch,
        "producer": summary.producer,
        "clock": summary.clock,
        "span_ns": list(summary.span_ns) if summary.span_ns else None,
        "records": dict(summary.records),
        "header": dict(summary.header),
        "diagnostics": severity_counts(diagnostics),
    }


def _unreadable(path: str, error: Exception, failure: Failure) -> dict[str, Any]:
    return {
        "path": path,
        "message": failure.message,
        "offset": getattr(error, "offset", None),
        "hint": failure.hint,
    }


BAR_COLUMNS = 16


def info_lines(recording: Recording, severities: Mapping[str, int], style: Style) -> Iterator[str]:
    """The text for one file, line by line."""
    summary = recording.summary
    yield style.paint(recording.path, Role.TITLE)
    yield ""
    # Modes without a version number, such as XRay's profiling mode, have a name instead.
    version = f" {'version ' if summary.version[0].isdigit() else ''}{summary.version}" if summary.version else ""
    byte_order = f"{summary.endian}-endian"
    pointers = f", {summary.pointer_bytes * 8}-bit" if summary.pointer_bytes else ""
    pairs: list[tuple[str, Cell]] = [
        ("format", f"{format_titles().get(recording.format, recording.format)}{version}"),
        ("producer", summary.producer or ("unknown", Role.FAINT)),
        ("machine", f"{summary.arch or 'unknown'}{pointers}, {byte_order}"),
        *(("" if index else "clock", line) for index, line in enumerate(_clock_text(recording))),
        ("span", _span_text(recording)),
        ("size", bytes_text(recording.size_bytes)),
        ("health", _health_text(severities)),
    ]
    yield from fields(pairs, style)
    if summary.header:
        yield from section("Header", style)
        yield from fields([(name, value_text(value)) for name, value in summary.header.items()], style)
    if summary.records:
        yield from section("Records", style)
        yield from _record_table(summary.records, style)


def value_text(value: Any) -> str:
    """The value of a header field in one line."""
    if isinstance(value, bytes):
        return value.hex(" ")
    return str(value)


def _clock_text(recording: Recording) -> list[str]:
    clock = recording.clock
    return [recording.summary.clock] if clock.hz_source == "defined" else clock_lines(clock)


def _span_text(recording: Recording) -> Cell:
    summary = recording.summary
    if summary.span_ns is not None:
        first, last = summary.span_ns
        return f"{duration_text(last - first)} ({first / 1e9:.6f} s to {last / 1e9:.6f} s)"
    if summary.span is not None:
        return f"{count_text(summary.span[1] - summary.span[0])} ticks ({summary.span[0]} to {summary.span[1]})"
    return ("no time stamps", Role.FAINT)


def _health_text(severities: Mapping[str, int]) -> Cell:
    if not severities:
        return "clean", Role.GOOD
    return counts_text(dict(severities)), SEVERITY_ROLES[next(iter(severities))]


def _record_table(records: Mapping[str, int], style: Style) -> Iterator[str]:
    most = max(records.values())
    ordered = sorted(records.items(), key=lambda item: -item[1])
    rows: list[list[Cell]] = [
        [
            count_text(count),
            (bar(count, most, BAR_COLUMNS), Role.NAME),
            name,
        ]
        for name, count in ordered
    ]
    return grid([Column("", right=True), Column(""), Column("", shrinks=16)], rows, style)
