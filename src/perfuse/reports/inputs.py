"""The files a report is about, and how many departures were found in them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from perfuse.reports.findings import GRAVITY
from perfuse.reports.names import format_titles, module_text

if TYPE_CHECKING:
    from perfuse.profile import Profile


@dataclass(frozen=True, slots=True)
class Input:
    """A file the profile was made from."""

    path: str
    format: str
    version: str | None
    producer: str | None
    arch: str | None


@dataclass(frozen=True, slots=True)
class DiagnosticCount:
    """Departures of one code in all files."""

    code: str
    severity: str
    count: int
    paths: int


def inputs(profile: Profile) -> list[Input]:
    """The files of a profile, in the order they were given or found."""
    rows = []
    for recording in profile.recordings:
        summary = recording.summary
        rows.append(Input(recording.path, recording.format, recording.version, summary.producer, summary.arch))
    return rows


def diagnostic_counts(profile: Profile) -> list[DiagnosticCount]:
    """The profile's diagnostics by code, the gravest first."""
    counts: Counter[tuple[str, str]] = Counter()
    paths: dict[str, set[str]] = {}
    for found in profile.diagnostics:
        counts[found.code, found.severity] += found.count
        paths.setdefault(found.code, set()).add(found.path)
    ordered = sorted(counts.items(), key=lambda item: (GRAVITY.index(item[0][1]), item[0][0]))
    return [DiagnosticCount(code, severity, count, len(paths[code])) for (code, severity), count in ordered]


def input_text(one: Input) -> str:
    """`jit-2345.dump: JITDUMP 1 by V8 on x86_64`"""
    told = [
        format_titles().get(one.format, one.format),
        one.version or "",
        f"by {one.producer}" if one.producer else "",
    ]
    told.append(f"on {one.arch}" if one.arch else "")
    return f"{module_text(one.path)}: {' '.join(part for part in told if part)}"
