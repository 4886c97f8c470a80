"""`perfuse info`"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import perfuse
from perfuse.cli import exit_codes
from perfuse.cli.console import Console
from perfuse.cli.failures import Failure, failure
from perfuse.cli.opening import GRAVE
from perfuse.cli.options import FILES, JSON, STRICT
from perfuse.cli.verb import verb
from perfuse.reports.findings import severity_counts
from perfuse.reports.info_text import info_lines

if TYPE_CHECKING:
    from perfuse import Diagnostic, Recording


@verb("info", examples=["perfuse info jit-2345.dump", "perfuse info --json perf.data jit-2345.dump"])
@FILES
@JSON
@STRICT
def command(console: Console, files: tuple[str, ...], as_json: bool, strict: bool) -> int:
    """Version, byte order, machine, clock, time span, header fields and counts by record kind: one screen a file."""
    shown: list[dict[str, Any]] = []
    unreadable: list[dict[str, Any]] = []
    findings: list[Diagnostic] = []
    for path in files:
        try:
            recording = perfuse.open(path, strict=strict)
            diagnostics = recording.check(limit=1)
        except (OSError, perfuse.PerfuseError) as error:
            told = failure(error)
            if told is None or told.exit_code != exit_codes.UNREADABLE:
                raise
            console.note(told.message, told.hint)
            unreadable.append(_unreadable(path, error, told))
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
    # No note: the screen, and the JSON, have just told the health of every file.
    return exit_codes.FINDINGS if any(found.severity in GRAVE for found in findings) else exit_codes.CLEAN


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


def _unreadable(path: str, error: Exception, told: Failure) -> dict[str, Any]:
    return {
        "path": path,
        "message": told.message,
        "offset": getattr(error, "offset", None),
        "hint": told.hint,
    }
