"""The files of a report: format and producer, clock, diagnostics."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

from perfuse.filters.selection import ThreadKey
from perfuse.reports.grid import Cell, Column, grid, section
from perfuse.reports.names import format_titles, module_text
from perfuse.reports.text import SEVERITY_ROLES, Role, Style
from perfuse.reports.units import count_text, counted, duration_text, hex_text
from perfuse.table import Columns
from perfuse.value_class import value_class

if TYPE_CHECKING:
    from perfuse.clock import Clock
    from perfuse.diagnostics import Diagnostic
    from perfuse.profile import Profile


@value_class
class Input:
    """A file of the profile."""

    path: str
    format: str
    version: str | None
    producer: str | None
    arch: str | None


@value_class
class DiagnosticCount:
    """The number of diagnostics of one code, and of files that have them.

    Attributes:
        code: The rule.
        severity: Its severity.
        count: Number of diagnostics.
        paths: Number of files.
        messages: Messages of warnings and errors about how files fit together, which `perfuse check` does not list.
    """

    code: str
    severity: str
    count: int
    paths: int
    messages: list[str]


def selection_text(profile: Profile) -> str:
    """The options that select samples of a profile; empty where all are selected."""
    selection = profile.selection
    parts = []
    if selection.time_ns is not None:
        parts.append("--between")
    if selection.process is not None:
        parts.append(f"--process {selection.process}")
    if selection.thread is not None or (selection.process is None and selection.thread_ids is not None):
        parts.append(_threads_text(profile))
    return ", ".join([*parts, *([str(profile.stack_filter)] if profile.stack_filter else [])])


def _threads_text(profile: Profile) -> str:
    """The selected thread as an option; the page may select several."""
    selection = profile.selection
    if selection.thread_ids is None or selection.process is not None:
        is_key = isinstance(selection.thread, ThreadKey)
        return f"--thread {'t' if is_key else ''}{selection.thread}"
    rows = Columns(profile.tables["threads"]).tuples("thread_id", "tid")
    tids = [key if tid is None else tid for key, tid in rows if key in selection.thread_ids]
    return f"--thread {tids[0]}" if len(tids) == 1 else f"{len(tids)} threads"


def inputs(profile: Profile) -> list[Input]:
    """The files of a profile, in the order in which they were given or found."""
    rows = []
    for recording in profile.recordings:
        summary = recording.summary
        rows.append(Input(recording.path, recording.format, recording.version, summary.producer, summary.arch))
    return rows


def diagnostic_counts(profile: Profile) -> list[DiagnosticCount]:
    """The profile's diagnostics by code, the most severe first."""
    from perfuse import explain

    by_code: dict[str, list[Diagnostic]] = {}
    for found in profile.diagnostics:
        by_code.setdefault(found.code, []).append(found)
    counts = [
        DiagnosticCount(
            code,
            listed[0].severity,
            sum(found.count for found in listed),
            len({found.path for found in listed}),
            list(dict.fromkeys(found.message for found in listed))
            if listed[0].severity != "info" and explain(code).format in OF_SEVERAL_FILES
            else [],
        )
        for code, listed in by_code.items()
    ]
    return sorted(counts, key=lambda one: (SEVERITIES_BY_RANK.index(one.severity), one.code))


OF_SEVERAL_FILES = ("fusing", "instrumentation_map")
"""Groups of rules about how files fit together."""


def input_text(one: Input) -> str:
    """`jit-2345.dump: JITDUMP 1 by V8 on x86_64`"""
    parts = [
        format_titles().get(one.format, one.format),
        one.version or "",
        f"by {one.producer}" if one.producer else "",
    ]
    parts.append(f"on {one.arch}" if one.arch else "")
    return f"{module_text(one.path)}: {' '.join(part for part in parts if part)}"


@value_class
class InputClock:
    """The clock of a file in JSON: rate, source of the rate, rate that the file states, uncertainty of times."""

    path: str
    kind: str
    hz: int | None
    hz_source: str
    stated_hz: int | None
    uncertainty_ns: int | None


_NANOSECONDS_HZ = 1_000_000_000
_HZ_SOURCES = {
    "estimated": ", measured in the log itself",
    "header": ", from the header",
    "unverified": ", from the header, unverified",
    "given": ", from --tsc-hz",
}


def input_clocks(profile: Profile) -> list[InputClock]:
    """The clocks of the files."""
    sources, clocks = Columns(profile.tables["sources"]), Columns(profile.tables["clocks"])
    paths = dict(zip(sources["source_id"], sources["path"], strict=True))
    names = ("source_id", "kind", "hz", "hz_source", "stated_hz", "uncertainty_ns")
    rows = clocks.take(range(len(clocks)), names)
    return [InputClock(paths[source], *rest) for source, *rest in rows]


def clock_lines(clock: Clock | InputClock) -> list[str]:
    """The rate of a clock with its source, the stated rate where that differs, and the uncertainty of times."""
    if clock.hz_source == "defined":
        return [{"monotonic": "monotonic, in nanoseconds", "perf": "perf's clock"}.get(clock.kind, clock.kind)]
    if clock.hz is None:
        return ["processor's counter of unknown rate (give it with --tsc-hz)"]
    if clock.stated_hz == clock.hz == _NANOSECONDS_HZ:
        lines = ["nanoseconds of clock_gettime in place of the processor's counter"]
    else:
        lines = [f"processor's counter at {_rate_text(clock.hz)}{_HZ_SOURCES.get(clock.hz_source, '')}"]
    if clock.hz_source == "unverified":
        lines.append("the true rate is often lower: durations may be longer then")
    elif clock.stated_hz and clock.hz_source != "header":
        off = clock.stated_hz / clock.hz - 1
        wrong = f", {abs(off):.1%} too {'high' if off > 0 else 'low'}" if abs(off) >= 0.001 else ", too"
        lines.append(f"the header states {_rate_text(clock.stated_hz)}{wrong}")
    if clock.uncertainty_ns is not None:
        lines.append(f"{clock.kind}, accurate to ± {duration_text(clock.uncertainty_ns)}")
    return lines


def _rate_text(hz: int) -> str:
    return f"{hz / 1e6:,.2f} MHz"


SEVERITIES_BY_RANK = ("error", "data_loss", "warning", "info")
_SEVERITY_WORDS = {"error": ("error", "errors"), "data_loss": ("loss of data", "losses of data")}


def severity_counts(diagnostics: Sequence[Diagnostic]) -> dict[str, int]:
    """The number of diagnostics per severity, the most severe first; severities without any are left out."""
    counts = dict.fromkeys(SEVERITIES_BY_RANK, 0)
    for found in diagnostics:
        counts[found.severity] += found.count
    return {severity: count for severity, count in counts.items() if count}


def counts_text(counts: dict[str, int]) -> str:
    """`1 loss of data, 2 warnings, 3 notes`; `clean` for none."""
    words = {**_SEVERITY_WORDS, "warning": ("warning", "warnings"), "info": ("note", "notes")}
    return ", ".join(counted(count, *words[severity]) for severity, count in counts.items()) or "clean"


def check_lines(
    path: str, diagnostics: Sequence[Diagnostic], limit: int, style: Style, accepted: Mapping[Any, int]
) -> Iterator[str]:
    """The diagnostics of a file: a heading per rule, a line per place, or for all places of a note one line.

    Args:
        path: The file.
        diagnostics: What is shown: of each rule at most `limit` rows, of which the last counts the others.
        limit: 0 for all.
        style: Colours.
        accepted: Number of accepted findings by what accepts them.
    """
    from perfuse import explain

    counts = severity_counts(diagnostics)
    text = counts_text(counts) + (f"; {count_text(sum(accepted.values()))} accepted" if accepted else "")
    yield (style.paint(path, Role.TITLE) + "  " + style.paint(text, Role.FAINT if counts else Role.GOOD))
    ordered = sorted(diagnostics, key=lambda found: (SEVERITIES_BY_RANK.index(found.severity), found.code))
    for code, group in groupby(ordered, key=lambda found: found.code):
        places = list(group)
        total = sum(found.count for found in places)
        rule = explain(code)
        mark = style.paint(rule.severity, SEVERITY_ROLES[rule.severity])
        times = style.paint(f"  {counted(total, 'time')}", Role.FAINT) if total > 1 else ""
        yield ""
        yield f"  {code}  {mark}  {rule.title}{times}"
        rows: list[list[Cell]] = [[_location_text(found), found.message] for found in places]
        yield from grid([Column("", role=Role.NAME), Column("", shrinks=30)], rows, style, indent="    ")
        if total > len(places):
            is_cut = places[0].is_finding and limit == len(places)
            rest = "(--limit 0 shows all)" if is_cut else "like it"
            yield style.paint(f"    … {count_text(total - len(places))} more {rest}", Role.FAINT)
    if accepted:
        yield ""
    for name, count in accepted.items():
        yield style.paint(f"  accepted  {name}  {counted(count, 'time')}", Role.FAINT)


def summary_lines(counts: Sequence[DiagnosticCount], style: Style) -> Iterator[str]:
    """The section of diagnostics in a report, one line per rule; nothing where there are none."""
    from perfuse import explain

    if not counts:
        return
    yield from section("Findings in the files", style, "places: perfuse check FILE; meaning: perfuse explain CODE")
    columns = [Column(""), Column(""), Column("", right=True, role=Role.FAINT), Column("", shrinks=30)]
    rows: list[list[Cell]] = [
        [
            one.code,
            (one.severity, SEVERITY_ROLES[one.severity]),
            f"{counted(one.count, 'time')}",
            explain(one.code).title,
        ]
        for one in counts
    ]
    for one, line in zip(counts, grid(columns, rows, style), strict=True):
        yield line
        yield from (f"    {message}" for message in one.messages)


def finding_lines(findings: Sequence[Diagnostic], style: Style) -> Iterator[str]:
    """The diagnostics of one file, one line per place."""
    columns = [Column(""), Column(""), Column("", right=True, role=Role.FAINT), Column("", shrinks=30)]
    rows: list[list[Cell]] = []
    for found in findings:
        place = "" if found.offset is None else hex_text(found.offset)
        more = f" (and {counted(found.count - 1, 'other')} like it)" if found.count > 1 else ""
        rows.append([found.code, (found.severity, SEVERITY_ROLES[found.severity]), place, found.message + more])
    return grid(columns, rows, style)


def _location_text(found: Diagnostic) -> str:
    parts = [hex_text(found.offset)] if found.offset is not None else []
    if found.record_index is not None:
        parts.append(f"#{found.record_index}")
    if found.field:
        parts.append(found.field)
    return " ".join(parts) or "-"
